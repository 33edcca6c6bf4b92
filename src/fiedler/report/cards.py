"""Facts about each cluster: its size, its typical and least confident rows, and how it differs from the others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ..core.rows import sq_row_norms
from ..graph.affinity import AffinityGraph
from ..text import DocumentVectorizer, describe_clusters
from .jsonable import Summary, clean_text, round_float

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._typing import Array

MAX_TERMS, MAX_FEATURES = 10, 6  # per cluster
MIN_DIFFERENCE = 0.05  # in standard deviations: smaller ones are displayed as 0.0
FULL_CONFIDENCE = 0.995  # rows of at least this confidence are not listed as least confident


class CardRows(NamedTuple):
    """The number of rows listed on the card of a cluster."""

    typical: int
    least_confident: int


def cluster_sizes(
    labels: ArrayLike, memberships: ArrayLike | None = None, *, n_clusters: int | None = None
) -> list[Summary]:
    """Return the number of rows of every cluster, its share of all rows, and its mean confidence.

    Parameters
    ----------
    labels : array of shape (n,)
        Numbers of clusters, -1 for none.
    memberships : array of shape (n, k), optional
        The confidence of a row is its largest membership.
    n_clusters : int, optional
        The number of clusters, including empty ones; by default the number of columns of ``memberships``, or else the
        largest label plus one.

    Returns
    -------
    list of dict
        With ``label``, ``size``, ``share`` and ``confidence``, which is None without memberships or rows.

    Examples
    --------
    >>> from fiedler.report.cards import cluster_sizes
    >>> cluster_sizes([0, 0, 1, -1], [[0.9, 0.1], [0.7, 0.3], [0.0, 1.0], [0.5, 0.5]])[0]
    {'label': 0, 'size': 2, 'share': 0.5, 'confidence': 0.8}
    """
    labels = np.asarray(labels)
    confidence = None if memberships is None else np.asarray(memberships).max(axis=1)
    if n_clusters is None:
        n_clusters = int(labels.max()) + 1 if memberships is None else np.shape(memberships)[1]
    clusters = []
    for label in range(n_clusters):
        members = labels == label
        size = int(members.sum())
        mean = None if confidence is None or size == 0 else round_float(confidence[members].mean())
        clusters.append({"label": label, "size": size, "share": round_float(size / len(labels)), "confidence": mean})
    return clusters


def cluster_cards(
    X: Array | AffinityGraph, labels: np.ndarray, memberships: np.ndarray | None, n_clusters: int, n_rows: CardRows
) -> list[Summary]:
    """Return size, confidence, typical and least confident rows of every cluster."""
    clusters = cluster_sizes(labels, memberships, n_clusters=n_clusters)
    for cluster in clusters:
        members = np.flatnonzero(labels == cluster["label"])
        Q = None if memberships is None else memberships[members]
        cluster["typical"] = typical_rows(X, members, Q)[: n_rows.typical].tolist()
        cluster["least_confident"] = least_confident_rows(members, Q, cluster["label"], n_rows.least_confident)
    return clusters


def typical_rows(X: Array | AffinityGraph, members: np.ndarray, memberships: np.ndarray | None) -> np.ndarray:
    """Sort the members by confidence to two digits, then by distance to their mean, most typical first."""
    n = len(members)
    sq_distances = np.zeros(n) if isinstance(X, AffinityGraph) else _sq_distances_to_mean(X[members])
    confidence = np.zeros(n) if memberships is None else memberships.max(axis=1).round(2)
    return members[np.lexsort((sq_distances, -confidence))]


def _sq_distances_to_mean(X: Array) -> np.ndarray:
    """Return ‖x - m‖² of every row, m their mean; sparse rows stay sparse: ‖x‖² - 2x'm + ‖m‖²."""
    if not X.shape[0]:
        return np.zeros(0)
    mean = np.asarray(X.mean(axis=0)).ravel()
    return sq_row_norms(X) - 2 * (X @ mean) + mean @ mean if sp.issparse(X) else sq_row_norms(X - mean)


def least_confident_rows(
    members: np.ndarray, memberships: np.ndarray | None, label: int, max_rows: int
) -> list[Summary]:
    """List the members with the lowest confidence, each with the other cluster with the largest membership."""
    if memberships is None or memberships.shape[1] < 2 or not len(members):
        return []
    confidence, others = memberships.max(axis=1), memberships.copy()
    others[:, label] = -1
    second = others.argmax(axis=1)
    return [
        {
            "row": int(members[i]),
            "confidence": round_float(confidence[i]),
            "other": int(second[i]),
            "share": round_float(others[i, second[i]]),
        }
        for i in np.argsort(confidence, kind="stable")[:max_rows]
        if confidence[i] < FULL_CONFIDENCE
    ]


def describe_cards(
    clusters: list[Summary],
    X: Array | AffinityGraph,
    labels: np.ndarray,
    *,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    has_images: bool,
) -> None:
    """Add to every cluster the terms or features by which it differs; a mean image needs no description."""
    terms = _cluster_terms(X, labels, texts, feature_names)
    compare_features = not (terms or has_images or isinstance(X, AffinityGraph))
    features = feature_differences(X, labels, feature_names) if compare_features else []
    for cluster in clusters:
        cluster["terms"] = terms.get(cluster["label"], [])
        cluster["features"] = features[cluster["label"]] if cluster["size"] and features else []


def columns_are_terms(X: Array | AffinityGraph, feature_names: Sequence[str] | None) -> bool:
    """Whether the columns are counts or weights of terms: sparse, named and non-negative."""
    if isinstance(X, AffinityGraph) or not sp.issparse(X) or feature_names is None:
        return False
    return X.nnz == 0 or bool(X.data.min() >= 0)


def _cluster_terms(
    X: Array | AffinityGraph, labels: np.ndarray, texts: Sequence[str] | None, feature_names: Sequence[str] | None
) -> dict[int, list[list[object]]]:
    """Return the leading terms of every cluster, from the columns of a sparse matrix or else from the texts."""
    counts: Array
    if feature_names is not None and columns_are_terms(X, feature_names):
        counts, vocabulary = X, list(feature_names)
    elif texts is not None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # documents without terms are expected here
                vectorizer = DocumentVectorizer().fit(list(texts))
        except ValueError:  # no document has a term
            return {}
        counts, vocabulary = vectorizer.counts(list(texts)), vectorizer.get_feature_names_out().tolist()
    else:
        return {}
    descriptions = describe_clusters(counts, labels, vocabulary, n_terms=MAX_TERMS)
    return {
        int(description.cluster): [[clean_text(term), round_float(score)] for term, score in description.terms]
        for description in descriptions
    }


def feature_differences(X: Array, labels: np.ndarray, feature_names: Sequence[str] | None) -> list[list[list[object]]]:
    """List for every cluster the features that differ most: name, (mean - overall mean) / standard deviation, mean."""
    overall = np.asarray(X.mean(axis=0)).ravel()
    scales = StandardScaler(with_mean=not sp.issparse(X)).fit(X).scale_  # 1 for a constant feature
    clusters = []
    for label in range(labels.max() + 1):
        members = labels == label
        mean = np.asarray(X[members].mean(axis=0)).ravel() if members.any() else overall
        differences = np.round((mean - overall) / scales, 4)
        largest = np.argsort(-np.abs(differences), kind="stable")[:MAX_FEATURES]
        clusters.append(
            [
                [_feature_name(feature_names, i), float(differences[i]), float(f"{mean[i]:.4g}")]
                for i in largest
                if abs(differences[i]) >= MIN_DIFFERENCE
            ]
        )
    return clusters


def _feature_name(feature_names: Sequence[str] | None, column: int) -> str:
    return f"feature {column}" if feature_names is None else clean_text(feature_names[column])
