"""Describe clusters of documents: characteristic terms, the most typical documents, and a short name.

Terms are ranked by class-based tf-idf: with f_tc the relative frequency of term t among the words of cluster c,

    score(t, c) = f_tc · log(1 + 1 / Σ_c' f_tc')

so a term that is used in every cluster has a low score, however frequent it is, and large clusters have no more
influence than small ones (Grootendorst 2022 uses the same product with counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import LabelsLike, MatrixLike
from .._validation import check_data, check_int, check_labels
from ..core.arrays import normalize_row_sums, normalize_rows
from ..errors import InputError


@dataclass(frozen=True)
class ClusterDescription:
    """Description of one cluster of documents.

    Attributes
    ----------
    cluster : int or str
        The label of the cluster.
    size : int
        The number of documents.
    name : str
        The three highest-ranked terms.
    terms : list of (str, float)
        The highest-ranked terms with their class-based tf-idf, in descending order.
    documents : list of int
        Row numbers of the most central documents, closest to the mean direction first.

    Examples
    --------
    >>> from fiedler.text import ClusterDescription
    >>> print(ClusterDescription(3, 120, "filter, signal, frequency", [("filter", 0.9)], [17]))
    3: filter, signal, frequency (120 documents)
    """

    cluster: int | str
    size: int
    name: str
    terms: list[tuple[str, float]]
    documents: list[int]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.name} ({self.size} documents)"


def describe_clusters(
    counts: MatrixLike, labels: LabelsLike, terms: Sequence[str], *, n_terms: int = 10, n_documents: int = 3
) -> list[ClusterDescription]:
    """Describe every cluster by its terms, typical documents, size and name, in the order of the labels.

    Parameters
    ----------
    counts : sparse matrix or array of shape (n_documents, n_terms)
        Term counts, or any non-negative weights of terms.
    labels : array of shape (n_documents,)
        The cluster of each document; -1 means no cluster and is not described.
    terms : sequence of str
        The name of each column.
    n_terms : int, default=10
        The number of terms per cluster.
    n_documents : int, default=3
        The number of typical documents per cluster.

    Returns
    -------
    list of ClusterDescription
        One description per cluster.

    Examples
    --------
    >>> from fiedler.text import DocumentVectorizer, describe_clusters
    >>> texts = ["a cat, a cat", "cat and mouse", "stocks fell", "stocks and bonds"]
    >>> words = DocumentVectorizer().fit(texts)
    >>> for cluster in describe_clusters(words.counts(texts), [0, 0, 1, 1], words.get_feature_names_out()):
    ...     print(cluster)
    0: cat, mouse (2 documents)
    1: stocks, bonds, fell (2 documents)
    """
    X = sp.csr_array(check_data(counts))
    labels = check_labels(labels, n_samples=X.shape[0])
    n_terms, n_documents = check_int(n_terms, "n_terms"), check_int(n_documents, "n_documents")
    if len(terms) != X.shape[1]:
        raise InputError(
            f"terms has {len(terms)} names, but counts has {X.shape[1]} columns",
            "pass one name per column",
            code="wrong_length",
            parameter="terms",
        )
    if X.nnz and X.data.min() < 0:
        raise InputError(
            "counts has negative entries",
            "pass term counts, not coordinates",
            code="negative_counts",
            parameter="counts",
        )
    clusters = [cluster for cluster in np.unique(labels) if not (labels.dtype.kind in "if" and cluster == -1)]
    if not clusters:
        return []
    members = [np.flatnonzero(labels == cluster) for cluster in clusters]
    scores = class_tfidf(X, members)
    return [
        _describe(cluster, rows, _top_terms(score, n_terms), _central_rows(X[rows], n_documents), terms)
        for cluster, rows, score in zip(clusters, members, scores)
    ]


def class_tfidf(X: sp.csr_array, members: list[np.ndarray]) -> np.ndarray:
    """Return score(t, c) of every term in every cluster, shape (n_clusters, n_terms)."""
    counts = np.array([np.asarray(X[rows].sum(axis=0)).ravel() for rows in members])
    frequency = normalize_row_sums(counts)
    total = frequency.sum(axis=0)
    return frequency * np.log1p(1 / np.where(total > 0, total, 1))


def _top_terms(score: np.ndarray, n_terms: int) -> list[tuple[int, float]]:
    """Return the columns with the highest positive scores; ties in column order."""
    order = np.argsort(-score, kind="stable")[:n_terms]
    return [(int(column), float(score[column])) for column in order if score[column] > 0]


def _central_rows(X: sp.csr_array, n_documents: int) -> np.ndarray:
    """Return the positions of the rows whose direction is closest to the mean of the unit rows."""
    unit_rows = normalize_rows(X)
    similarity = unit_rows @ np.asarray(unit_rows.sum(axis=0)).ravel()
    return np.argsort(-similarity, kind="stable")[:n_documents]


def _describe(
    cluster: Any, rows: np.ndarray, top_terms: list[tuple[int, float]], central: np.ndarray, names: Sequence[str]
) -> ClusterDescription:
    terms = [(str(names[column]), score) for column, score in top_terms]
    name = ", ".join(term for term, _ in terms[:3]) or "no terms"
    label = cluster.item() if isinstance(cluster, np.generic) else cluster
    return ClusterDescription(label, len(rows), name, terms, rows[central].tolist())
