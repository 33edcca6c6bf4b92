"""Agreement of two labelings, none of which needs matching names."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, rand_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from .._validation import choose
from .matching import check_pair

AVERAGES = {"max": "max", "arithmetic": "arithmetic", "geometric": "geometric", "min": "min"}


def normalized_mutual_information(labels_true: Any, labels_pred: Any, average: str = "max") -> float:
    """NMI: the mutual information over an average of the two entropies.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
    average : {'max', 'arithmetic', 'geometric', 'min'}, default='max'
        The papers divide by the larger entropy. scikit-learn's default is the arithmetic mean, which is never smaller
        as a score: do not mix them in one table.

    Examples
    --------
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    method = choose(AVERAGES, average, option="average")
    return float(normalized_mutual_info_score(*check_pair(labels_true, labels_pred), average_method=method))


def rand_index(labels_true: Any, labels_pred: Any) -> float:
    """The share of pairs on which the labelings agree: together in both, or apart in both.

    Examples
    --------
    >>> round(rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8333
    """
    return float(rand_score(*check_pair(labels_true, labels_pred)))


def adjusted_rand_index(labels_true: Any, labels_pred: Any) -> float:
    """The Rand index corrected for chance: 0 on average for random labels, 1 for equal partitions.

    Examples
    --------
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return float(adjusted_rand_score(*check_pair(labels_true, labels_pred)))


def balanced_rand_index(labels_true: Any, labels_pred: Any) -> float:
    """Half the agreement on pairs of one class plus half the agreement on pairs of two classes.

    With many classes nearly all pairs are of two classes and dominate the plain index; here both kinds weigh the same
    [learned_laplacian, section V]. Where only one kind of pair exists, its agreement is the score.

    Examples
    --------
    >>> balanced_rand_index([0, 0, 1, 1], [0, 0, 1, 2])  # (1/2 + 4/4) / 2
    0.75
    """
    truth, predicted = check_pair(labels_true, labels_pred)
    (apart, joined), (split, together) = pair_confusion_matrix(truth, predicted).tolist()
    kinds = [(together, split), (apart, joined)]  # (agreed, not agreed) on pairs of one class, of two classes
    shares = [agreed / (agreed + missed) for agreed, missed in kinds if agreed + missed]
    return float(sum(shares) / len(shares)) if shares else 1.0


def purity(labels_true: Any, labels_pred: Any) -> float:
    """The share of samples that belong to their cluster's most frequent class; rises with the number of clusters.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    truth, predicted = check_pair(labels_true, labels_pred)
    return float(contingency_matrix(truth, predicted).max(axis=0).sum() / len(truth))
