"""Agreement of two labelings, by scores that do not depend on the names of clusters."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, rand_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from .._typing import LabelsLike
from .._validation import choose
from .matching import check_pair

AVERAGES = {"max": "max", "arithmetic": "arithmetic", "geometric": "geometric", "min": "min"}


def normalized_mutual_information(
    labels_true: LabelsLike,
    labels_pred: LabelsLike,
    average: Literal["max", "arithmetic", "geometric", "min"] = "max",
) -> float:
    """Return the normalised mutual information: that of two labelings divided by an average of the two entropies.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
    average : {'max', 'arithmetic', 'geometric', 'min'}, default='max'
        The papers divide by the larger entropy. scikit-learn's default, the arithmetic mean, never gives a lower
        score: do not mix the two in one table.

    Returns
    -------
    float

    Examples
    --------
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    method = choose(AVERAGES, average, option="average")
    return float(normalized_mutual_info_score(*_numbered(labels_true, labels_pred), average_method=method))


def rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the share of pairs on which two labelings agree: both join the pair, or both separate it.

    Examples
    --------
    >>> round(rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8333
    """
    return float(rand_score(*_numbered(labels_true, labels_pred)))


def adjusted_rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the Rand index corrected for chance: 0 on average for random labels, 1 for equal partitions.

    Examples
    --------
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return float(adjusted_rand_score(*_numbered(labels_true, labels_pred)))


def balanced_rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the mean of the agreement on pairs of the same class and the agreement on pairs of different classes.

    With many classes, nearly all pairs are of different classes and dominate the Rand index; here both kinds have the
    same weight [learned_laplacian, section V]. If only one kind of pair exists, the score is the agreement on it.

    Examples
    --------
    >>> balanced_rand_index([0, 0, 1, 1], [0, 0, 1, 2])  # (1/2 + 4/4) / 2
    0.75
    """
    (n_separated, n_wrongly_joined), (n_wrongly_separated, n_joined) = pair_confusion_matrix(
        *_numbered(labels_true, labels_pred)
    ).tolist()
    agreements = [(n_joined, n_wrongly_separated), (n_separated, n_wrongly_joined)]
    shares = [right / (right + wrong) for right, wrong in agreements if right + wrong]
    return float(sum(shares) / len(shares)) if shares else 1.0


def purity(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the share of samples in the most frequent class of their cluster; it rises with the number of clusters.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    y_true, y_pred = _numbered(labels_true, labels_pred)
    return float(contingency_matrix(y_true, y_pred).max(axis=0).sum() / len(y_true))


def _numbered(labels_true: LabelsLike, labels_pred: LabelsLike) -> tuple[np.ndarray, np.ndarray]:
    """Validate two labelings and number their labels: scikit-learn takes neither bytes nor large floats."""
    y_true, y_pred = (np.unique(labels, return_inverse=True)[1] for labels in check_pair(labels_true, labels_pred))
    return y_true, y_pred
