"""What a cluster of documents is about: its own terms, its most typical documents, a short name.

Terms are ranked by class-based tf-idf: with f_tc the share of term t among the words of cluster c,

    score(t, c) = f_tc · log(1 + 1 / Σ_c' f_tc')

so that a term which every cluster uses counts little, however frequent it is, and large clusters do not outvote small
ones (Grootendorst 2022 uses the same product with the counts themselves).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import check_data, check_int, check_labels
from ..core.rows import normalize_row_sums, normalize_rows


@dataclass(frozen=True)
class ClusterDescription:
    """One cluster in words.

    Attributes
    ----------
    cluster : int or str
        Its label.
    size : int
        How many documents it holds.
    name : str
        Its three leading terms.
    terms : list of (str, float)
        Its leading terms with their class-based tf-idf, highest first.
    documents : list of int
        Its most central documents, nearest to the mean direction first.

    Examples
    --------
    >>> from fiedler.text import ClusterDescription
    >>> print(ClusterDescription(3, 120, "filter, signal, frequency", [("filter", 0.9)], [17]))
    3: filter, signal, frequency (120 documents)
    """

    cluster: Any
    size: int
    name: str
    terms: list[tuple[str, float]]
    documents: list[int]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.name} ({self.size} documents)"


def describe_clusters(
    counts: Any, labels: Any, terms: Sequence[str], *, n_terms: int = 10, n_documents: int = 3
) -> list[ClusterDescription]:
    """Every cluster's terms, typical documents, size and name, in the order of the labels.

    Parameters
    ----------
    counts : sparse matrix or array of shape (n_documents, n_terms)
        Term counts, or any nonnegative weights of the terms.
    labels : array of shape (n_documents,)
        The cluster of each document; -1 stands for none, and is not described.
    terms : sequence of str
        The name of each column.
    n_terms, n_documents : int, default=10 and 3
        How many of each to give.

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
        raise ValueError(f"there are {len(terms)} names for {X.shape[1]} terms; give one a column")
    if X.nnz and X.data.min() < 0:
        raise ValueError("counts of terms are not negative; give term counts, not coordinates")
    clusters = [cluster for cluster in np.unique(labels) if not (labels.dtype.kind in "if" and cluster == -1)]
    if not clusters:
        return []
    members = [np.flatnonzero(labels == cluster) for cluster in clusters]
    scores = class_tfidf(X, members)
    return [
        _describe(cluster, rows, _leading(score, n_terms), _central(X[rows], n_documents), terms)
        for cluster, rows, score in zip(clusters, members, scores)
    ]


def class_tfidf(X: sp.csr_array, members: list[np.ndarray]) -> np.ndarray:
    """score(t, c) of every term in every cluster, shape (n_clusters, n_terms)."""
    counts = np.array([np.asarray(X[rows].sum(axis=0)).ravel() for rows in members])
    share = normalize_row_sums(counts)
    everywhere = share.sum(axis=0)
    return share * np.log1p(1 / np.where(everywhere > 0, everywhere, 1))


def _leading(score: np.ndarray, n_terms: int) -> list[tuple[int, float]]:
    """Columns of the highest scores above zero; ties in the order of the columns."""
    order = np.argsort(-score, kind="stable")[:n_terms]
    return [(int(column), float(score[column])) for column in order if score[column] > 0]


def _central(X: sp.csr_array, n_documents: int) -> np.ndarray:
    """Positions of the rows closest in direction to the mean of the unit rows."""
    unit = normalize_rows(X)
    closeness = unit @ np.asarray(unit.sum(axis=0)).ravel()
    return np.argsort(-closeness, kind="stable")[:n_documents]


def _describe(
    cluster: Any, rows: np.ndarray, leading: list[tuple[int, float]], central: np.ndarray, names: Sequence[str]
) -> ClusterDescription:
    terms = [(str(names[column]), score) for column, score in leading]
    name = ", ".join(term for term, _ in terms[:3]) or "no terms"
    value = cluster.item() if isinstance(cluster, np.generic) else cluster
    return ClusterDescription(value, len(rows), name, terms, rows[central].tolist())
