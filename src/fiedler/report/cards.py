"""What there is to say of each cluster: its size, its typical and doubtful rows, what sets it apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from ..core.rows import sq_row_norms
from ..graph.affinity import AffinityGraph
from ..text import DocumentVectorizer, describe_clusters
from .jsonable import Summary, clean, rounded

N_TERMS, N_FEATURES = 10, 6
LEAST_APART = 0.05  # in standard deviations: less is shown as 0.0
SURE = 0.995  # a confidence that is shown as 1


def cluster_sizes(labels: Any, memberships: Any = None, *, n_clusters: int | None = None) -> list[Summary]:
    """Every cluster's number of rows, its share of all rows, and how sure its rows are of it on average.

    Parameters
    ----------
    labels : array of shape (n,)
        Numbers of clusters, -1 for none.
    memberships : array of shape (n, k), optional
        The confidence of a row is its largest one.
    n_clusters : int, optional
        How many clusters there are, some of which may be empty; default the columns of ``memberships``, else as many as
        ``labels`` name.

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
    found = []
    for label in range(n_clusters):
        own = labels == label
        size = int(own.sum())
        sure = None if confidence is None or size == 0 else rounded(confidence[own].mean())
        found.append({"label": label, "size": size, "share": rounded(size / len(labels)), "confidence": sure})
    return found


def clusters_of(rows: Any, labels: np.ndarray, Q: np.ndarray | None, k: int, sizes: tuple[int, int]) -> list[Summary]:
    """Every cluster's size, confidence, typical and doubtful rows."""
    n_typical, n_doubtful = sizes
    found = cluster_sizes(labels, Q, n_clusters=k)
    for one in found:
        members = np.flatnonzero(labels == one["label"])
        own = None if Q is None else Q[members]
        one["typical"] = typical(rows, members, own)[:n_typical].tolist()
        one["doubtful"] = doubtful(members, own, one["label"], n_doubtful)
    return found


def typical(rows: Any, members: np.ndarray, memberships: np.ndarray | None) -> np.ndarray:
    """The members, most typical first: by confidence to two digits, then by distance to their mean."""
    far = np.zeros(len(members)) if isinstance(rows, AffinityGraph) else sq_distances_to_mean(rows[members])
    sure = np.zeros(len(members)) if memberships is None else memberships.max(axis=1).round(2)
    return members[np.lexsort((far, -sure))]


def sq_distances_to_mean(rows: Any) -> np.ndarray:
    """‖x - m‖² of every row, m their mean; sparse rows stay sparse: ‖x‖² - 2x'm + ‖m‖²."""
    if not rows.shape[0]:
        return np.zeros(0)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    return sq_row_norms(rows) - 2 * (rows @ mean) + mean @ mean if sp.issparse(rows) else sq_row_norms(rows - mean)


def doubtful(members: np.ndarray, memberships: np.ndarray | None, label: int, most: int) -> list[Summary]:
    """The members that are not sure, least confident first, with the other cluster each might belong to."""
    if memberships is None or memberships.shape[1] < 2 or not len(members):
        return []
    confidence, others = memberships.max(axis=1), memberships.copy()
    others[:, label] = -1
    rivals = others.argmax(axis=1)
    return [
        {
            "row": int(members[i]),
            "confidence": rounded(confidence[i]),
            "other": int(rivals[i]),
            "share": rounded(others[i, rivals[i]]),
        }
        for i in np.argsort(confidence, kind="stable")[:most]
        if confidence[i] < SURE
    ]


def describe(
    clusters: list[Summary], rows: Any, labels: np.ndarray, texts: Any, names: Any, pixels: np.ndarray | None
) -> None:
    """Add what sets every cluster apart: terms, or features; a mean image speaks for itself."""
    terms = _terms(rows, labels, texts, names)
    apart = [] if terms or pixels is not None or isinstance(rows, AffinityGraph) else differences(rows, labels, names)
    for one in clusters:
        one["terms"] = terms.get(one["label"], [])
        one["features"] = apart[one["label"]] if one["size"] and apart else []


def are_terms(rows: Any, names: Any) -> bool:
    """Whether the columns are counts or weights of terms: sparse, named, nowhere negative."""
    return sp.issparse(rows) and names is not None and (rows.nnz == 0 or bool(rows.data.min() >= 0))


def _terms(rows: Any, labels: np.ndarray, texts: Any, names: Any) -> dict[int, list[Any]]:
    """The leading terms of every cluster, from the columns of a sparse matrix or else from the texts."""
    if are_terms(rows, names):
        counts, vocabulary = rows, names
    elif texts is not None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a document without terms is no news here
                words = DocumentVectorizer().fit(list(texts))
        except ValueError:  # no term is left
            return {}
        counts, vocabulary = words.counts(list(texts)), words.get_feature_names_out()
    else:
        return {}
    found = describe_clusters(counts, labels, vocabulary, n_terms=N_TERMS)
    return {one.cluster: [[clean(term), rounded(score)] for term, score in one.terms] for one in found}


def differences(rows: Any, labels: np.ndarray, names: Any) -> list[list[Any]]:
    """Of every cluster the features that differ most: name, (mean - mean of all) / standard deviation, mean."""
    overall = np.asarray(rows.mean(axis=0)).ravel()
    scales = StandardScaler(with_mean=not sp.issparse(rows)).fit(rows).scale_  # 1 for a constant
    found = []
    for label in range(labels.max() + 1):
        members = labels == label
        mean = np.asarray(rows[members].mean(axis=0)).ravel() if members.any() else overall
        apart = np.round((mean - overall) / scales, 4)
        order = [i for i in np.argsort(-np.abs(apart), kind="stable")[:N_FEATURES] if abs(apart[i]) >= LEAST_APART]
        found.append([[_feature(names, i), float(apart[i]), float(f"{mean[i]:.4g}")] for i in order])
    return found


def _feature(names: Any, column: int) -> str:
    return f"feature {column}" if names is None else clean(names[column])
