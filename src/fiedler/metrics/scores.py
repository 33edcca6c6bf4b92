"""Scores of labels and memberships against known classes, and the table of those that are usually compared.

Clusters are matched to classes one to one, by the Hungarian method. The scores of labels on a graph are in
:mod:`fiedler.graph.cuts` and :mod:`fiedler.graph.community`.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, rand_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from .._typing import LabelsLike, MatrixLike
from .._validation import check_int, check_labels, is_foreign, one_of
from ..core.arrays import to_numpy
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.community import modularity
from ..graph.cuts import normalized_cut

AVERAGES = ("max", "arithmetic", "geometric", "min")  # of entropies, as scikit-learn names them

# --------------------------------------------------------------------------------------------------------------- checks


def check_pair(labels_true: LabelsLike, labels_pred: LabelsLike) -> tuple[np.ndarray, np.ndarray]:
    """Validate two labelings of the same samples."""
    classes = check_discrete(labels_true, "labels_true")
    return classes, check_discrete(labels_pred, "labels_pred", n_samples=len(classes))


def check_discrete(labels: LabelsLike, name: str, *, n_samples: int | None = None) -> np.ndarray:
    """Validate labels that can be told apart and sorted: integers, whole numbers, truth values or strings."""
    array = check_labels(labels_to_numpy(labels), name, n_samples=n_samples)
    kind = array.dtype.kind
    if kind == "c" or (kind == "f" and (array != np.round(array)).any()):
        problem = f"{name} contains numbers that are not whole"
        raise InputError(problem, "use integers or strings", code="labels_are_not_classes", parameter=name)
    types: tuple[Any, ...] = (str, (numbers.Integral, np.bool_))
    if kind == "O" and not any(all(isinstance(label, one) for label in array) for one in types):
        problem = f"{name} contains missing labels, or numbers and strings together"
        raise InputError(problem, "give every sample a label, all of one type", code="mixed_labels", parameter=name)
    return array


def labels_to_numpy(labels: Any) -> Any:
    """Convert an array of another library to NumPy; return anything else unchanged."""
    return to_numpy(labels) if is_foreign(labels) else labels


def _numbered(labels_true: LabelsLike, labels_pred: LabelsLike) -> tuple[np.ndarray, np.ndarray]:
    """Validate two labelings and number their labels: scikit-learn takes neither bytes nor large floats."""
    y_true, y_pred = (np.unique(labels, return_inverse=True)[1] for labels in check_pair(labels_true, labels_pred))
    return y_true, y_pred


# --------------------------------------------------------------------------------------------------- matched to classes


def match_labels(labels_true: LabelsLike, labels_pred: LabelsLike) -> np.ndarray:
    """Rename clusters to the classes that they match best, one to one.

    If there are more clusters than classes, the clusters left over are named -1.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,), the classes and the clusters

    Returns
    -------
    array of shape (n,), the class matched to the cluster of each sample

    Examples
    --------
    >>> match_labels(["a", "a", "b", "b"], [1, 1, 0, 0])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    >>> match_labels([0, 0, 1, 1], [5, 5, 5, 7])
    array([0, 0, 0, 1])
    """
    y_true, y_pred = check_pair(labels_true, labels_pred)
    classes, clusters = np.unique(y_true), np.unique(y_pred)
    rows, columns = match_counts(contingency_matrix(y_true, y_pred))
    class_of = dict(zip(clusters[columns].tolist(), classes[rows].tolist()))
    return np.array([class_of.get(label, -1) for label in y_pred.tolist()])


def clustering_accuracy(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the accuracy: the share of samples assigned correctly by the best one-to-one map of clusters to classes.

    The numbers of clusters and classes can differ; samples of clusters or classes left over count as errors.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,), the classes and the clusters

    Returns
    -------
    score : float

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    y_true, y_pred = check_pair(labels_true, labels_pred)
    counts = contingency_matrix(y_true, y_pred)
    return float(counts[match_counts(counts)].sum() / len(y_true))


def match_counts(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of a contingency table, matched one to one so that their entries have the largest sum."""
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return rows, columns


def count_together(a: np.ndarray, b: np.ndarray, size: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the number, or the weight, of rows with each pair of labels 0, 1, ..., shape (size, size)."""
    counts = np.zeros((size, size))
    np.add.at(counts, (a, b), 1 if weights is None else weights)
    return counts


def match_clusters(
    labels: np.ndarray, reference: np.ndarray, n_clusters: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Renumber the clusters of a partition so that as many rows as possible have the label of the reference."""
    _, matched = match_counts(count_together(labels, reference, n_clusters, weights))
    return matched[labels]


# ---------------------------------------------------------------------------------------------- agreement of partitions


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
    score : float

    Examples
    --------
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    one_of(AVERAGES)(average, "average")
    return float(normalized_mutual_info_score(*_numbered(labels_true, labels_pred), average_method=average))


def rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the share of pairs on which two labelings agree: both join the pair, or both separate it.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters; their names do not matter.

    Returns
    -------
    score : float

    Examples
    --------
    >>> round(rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8333
    """
    return float(rand_score(*_numbered(labels_true, labels_pred)))


def adjusted_rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the Rand index corrected for chance: 0 on average for random labels, 1 for equal partitions.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters; their names do not matter.

    Returns
    -------
    score : float

    Examples
    --------
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return float(adjusted_rand_score(*_numbered(labels_true, labels_pred)))


def weighted_ari(a: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the adjusted Rand index of labels 0, 1, ...: without any checks, for hundreds of pairs of partitions.

    A pair of rows of weights m_i and m_j counts m_i m_j times.
    """
    width = int(b.max()) + 1
    together, in_a, in_b, total = (_n_pairs(labels, weights) for labels in (a * width + b, a, b, np.zeros_like(a)))
    expected, largest = in_a * in_b / total, (in_a + in_b) / 2
    return 1.0 if largest == expected else (together - expected) / (largest - expected)


def _n_pairs(labels: np.ndarray, weights: np.ndarray | None) -> float:
    """Count the pairs of different rows with the same label: [(Σ_i m_i)² - Σ_i m_i²] / 2, added over the labels."""
    counts = np.bincount(labels, weights).astype(np.float64)
    own = counts if weights is None else np.bincount(labels, weights**2)
    return float(np.sum(counts**2 - own)) / 2


def agreement_matrix(
    partitions: Sequence[np.ndarray] | np.ndarray, row_weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the adjusted Rand indices of all pairs of partitions, 0 where they are negative."""
    agreement = np.eye(len(partitions))
    for i, j in combinations(range(len(partitions)), 2):
        agreement[i, j] = agreement[j, i] = max(0.0, weighted_ari(partitions[i], partitions[j], row_weights))
    return agreement


def balanced_rand_index(labels_true: LabelsLike, labels_pred: LabelsLike) -> float:
    """Return the mean of the agreement on pairs of the same class and the agreement on pairs of different classes.

    With many classes, nearly all pairs are of different classes and dominate the Rand index; here both kinds have the
    same weight [learned_laplacian, section V]. If only one kind of pair exists, the score is the agreement on it.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters; their names do not matter.

    Returns
    -------
    score : float

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

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters; their names do not matter.

    Returns
    -------
    score : float

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    y_true, y_pred = _numbered(labels_true, labels_pred)
    return float(contingency_matrix(y_true, y_pred).max(axis=0).sum() / len(y_true))


# ---------------------------------------------------------------------------------------------------------- calibration


def calibration_error(labels_true: LabelsLike, memberships: MatrixLike, n_bins: int = 15) -> float:
    """Return the expected calibration error: how far confidence and accuracy differ, with clusters matched to classes.

    ::

        Σ_b |B_b|/n · | accuracy of B_b - mean confidence of B_b |

    over bins B_b of equal width of the confidence, the largest membership of each row; a row is correct if its
    most probable cluster is matched to its class [Guo et al. 2017, Eq. 3].

    Parameters
    ----------
    labels_true : array-like of shape (n,), the classes
    memberships : array-like of shape (n, k), non-negative rows that sum to one
    n_bins : int, default=15, the number of bins

    Returns
    -------
    score : float

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
    0.0
    """
    y_true = check_discrete(labels_true, "labels_true")
    resp = _check_memberships(memberships, len(y_true))
    n_bins = check_int(n_bins, "n_bins")
    confidence = resp.max(axis=1)
    correct = match_labels(y_true, resp.argmax(axis=1)) == y_true
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, correct.astype(np.float64) - confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(y_true))


def _check_memberships(memberships: MatrixLike, n_samples: int) -> np.ndarray:
    try:
        values = np.asarray(labels_to_numpy(memberships))
        with np.errstate(over="ignore"):  # of numbers in extended precision
            resp = values.astype(np.float64, casting="unsafe" if values.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError, OverflowError) as error:
        problem = "memberships must be a matrix of numbers"
        raise InputError(problem, code="wrong_dtype", parameter="memberships") from error
    if resp.ndim != 2 or resp.shape[0] != n_samples or resp.shape[1] == 0:
        problem = f"memberships must have shape ({n_samples}, k), one row per label; got {resp.shape}"
        raise InputError(problem, code="wrong_shape", parameter="memberships")
    sums_to_one = np.allclose(resp.sum(axis=1), 1, atol=1e-3)
    if not np.isfinite(resp).all() or resp.min() < 0 or not sums_to_one:
        problem = "memberships must be non-negative rows that sum to one"
        raise InputError(problem, "divide each row by its sum", code="invalid_memberships", parameter="memberships")
    return resp


# ---------------------------------------------------------------------------------------------------------------- table

EXTERNAL = {"AC": clustering_accuracy, "NMI": normalized_mutual_information, "ARI": adjusted_rand_index}
INTERNAL = {"cut": normalized_cut, "modularity": modularity}


def score_table(
    y_true: LabelsLike | None, labels: LabelsLike, graph: AffinityGraph | MatrixLike | None = None
) -> dict[str, float]:
    """Score labels against known classes, on a graph, or both.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        The classes, for accuracy after matching (AC), normalised mutual information and adjusted Rand index.
    labels : array-like of shape (n,)
        The clusters.
    graph : AffinityGraph or symmetric matrix of shape (n, n), optional
        For the normalised cut (lower is better) and the modularity (higher is better).

    Returns
    -------
    dict of floats

    Examples
    --------
    >>> from fiedler.metrics import score_table
    >>> score_table([0, 0, 1, 1], [1, 1, 0, 0])
    {'AC': 1.0, 'NMI': 1.0, 'ARI': 1.0}
    """
    scores = {} if y_true is None else {name: score(y_true, labels) for name, score in EXTERNAL.items()}
    if graph is not None:
        scores |= {name: score(graph, labels) for name, score in INTERNAL.items()}
    return {name: float(value) for name, value in scores.items()}
