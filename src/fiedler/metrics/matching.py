"""One-to-one matching of clusters to classes, by the Hungarian method."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from .._typing import LabelsLike
from .._validation import check_labels, is_foreign
from ..core.backend import to_numpy
from ..errors import InputError


def check_pair(labels_true: LabelsLike, labels_pred: LabelsLike) -> tuple[np.ndarray, np.ndarray]:
    """Validate two labelings of the same samples."""
    classes = check_discrete(labels_true, "labels_true")
    return classes, check_discrete(labels_pred, "labels_pred", n_samples=len(classes))


def check_discrete(labels: LabelsLike, name: str, *, n_samples: int | None = None) -> np.ndarray:
    """Validate labels that can be told apart and sorted: integers, whole numbers, truth values or strings."""
    array = check_labels(labels_to_numpy(labels), name, n_samples=n_samples)
    kind = array.dtype.kind
    if kind == "c" or (kind == "f" and (array != np.round(array)).any()):
        raise InputError(
            f"{name} contains numbers that are not whole",
            "use integers or strings",
            code="labels_are_not_classes",
            parameter=name,
        )
    if kind == "O" and not _are_of_one_kind(array):
        raise InputError(
            f"{name} contains missing labels, or numbers and strings together",
            "give every sample a label, all of one type",
            code="mixed_labels",
            parameter=name,
        )
    return array


def _are_of_one_kind(labels: np.ndarray) -> bool:
    return all(isinstance(label, str) for label in labels) or all(
        isinstance(label, numbers.Integral | np.bool_) for label in labels
    )


def labels_to_numpy(labels: Any) -> Any:
    """Convert an array of another library to NumPy; return anything else unchanged."""
    return to_numpy(labels) if is_foreign(labels) else labels


def match_labels(labels_true: LabelsLike, labels_pred: LabelsLike) -> np.ndarray:
    """Rename clusters to the classes that they match best, one to one.

    If there are more clusters than classes, the clusters left over are named -1.

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        The classes.
    labels_pred : array-like of shape (n,)
        The clusters.

    Returns
    -------
    array of shape (n,)
        The class matched to the cluster of each sample.

    Examples
    --------
    >>> match_labels(["a", "a", "b", "b"], [1, 1, 0, 0])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    >>> match_labels([0, 0, 1, 1], [5, 5, 5, 7])
    array([0, 0, 0, 1])
    """
    y_true, y_pred = check_pair(labels_true, labels_pred)
    classes, clusters = np.unique(y_true), np.unique(y_pred)
    rows, columns = linear_sum_assignment(contingency_matrix(y_true, y_pred), maximize=True)
    class_of = dict(zip(clusters[columns].tolist(), classes[rows].tolist()))
    return np.array([class_of.get(label, -1) for label in y_pred.tolist()])


def clustering_accuracy(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the accuracy: the share of samples assigned correctly by the best one-to-one map of clusters to classes.

    The numbers of clusters and classes can differ; samples of clusters or classes left over count as errors.

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        The classes.
    labels_pred : array-like of shape (n,)
        The clusters.

    Returns
    -------
    float

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    y_true, y_pred = check_pair(labels_true, labels_pred)
    counts = contingency_matrix(y_true, y_pred)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y_true))
