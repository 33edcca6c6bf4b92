"""Clusters matched to classes one to one, by the Hungarian method."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from .._validation import check_labels, is_foreign
from ..core.backend import to_numpy


def check_pair(labels_true: Any, labels_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two labelings of the same samples."""
    truth = check_labels(on_host(labels_true), "labels_true")
    return truth, check_labels(on_host(labels_pred), "labels_pred", n_samples=len(truth))


def on_host(labels: Any) -> Any:
    """Labels of another array library brought to NumPy; everything else as it is."""
    return to_numpy(labels) if is_foreign(labels) else labels


def match_labels(labels_true: Any, labels_pred: Any) -> np.ndarray:
    """The predicted clusters renamed to the classes they match best, one to one.

    Clusters left over when there are more of them than classes are called -1.

    Examples
    --------
    >>> match_labels(["a", "a", "b", "b"], [1, 1, 0, 0])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    >>> match_labels([0, 0, 1, 1], [5, 5, 5, 7])
    array([0, 0, 0, 1])
    """
    truth, predicted = check_pair(labels_true, labels_pred)
    classes, clusters = np.unique(truth), np.unique(predicted)
    rows, columns = linear_sum_assignment(contingency_matrix(truth, predicted), maximize=True)
    names = dict(zip(clusters[columns].tolist(), classes[rows].tolist()))
    return np.array([names.get(label, -1) for label in predicted.tolist()])


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """AC: the share of samples in their class under the best one-to-one map of clusters to classes.

    The numbers of clusters and classes may differ; what is left over on either side counts as wrong.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    truth, predicted = check_pair(labels_true, labels_pred)
    table = contingency_matrix(truth, predicted)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / len(truth))
