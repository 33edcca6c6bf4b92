"""Facts about each cluster: its size, its typical and least confident rows, and what sets it apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..clustering.explanation import borderline_rows, typical_rows
from ..graph.affinity import AffinityGraph
from ..table.profiles import Contrast, Profiles, Terms, format_value, matrix_terms, profile_rows, text_terms
from .jsonable import MAX_TEXT_LENGTH, Summary, clean_text, round_float, shorten

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._typing import Array

MAX_PROFILES = 200  # entries of the table of columns by cluster: those that differ most


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
        borderline = borderline_rows(members, Q, cluster["label"], n_rows.least_confident)
        cluster["least_confident"] = [
            {**one._asdict(), "confidence": round_float(one.confidence), "share": round_float(one.share)}
            for one in borderline
        ]
    return clusters


def describe_cards(clusters: list[Summary], profiles: Profiles | None, names: Sequence[str | None]) -> None:
    """Add to every cluster its name, terms, and the columns in which it differs most."""
    for cluster, name in zip(clusters, names, strict=True):
        label = cluster["label"]
        described = profiles if cluster["size"] else None
        contrasts = [] if described is None else described.contrasts(label)
        terms = [] if described is None else described.leading_terms(label)
        cluster["name"] = None if name is None else shorten(clean_text(name), MAX_TEXT_LENGTH) or None
        cluster["terms"] = [[clean_text(term), round_float(score)] for term, score in terms]
        cluster["contrasts"] = [_contrast(one) for one in contrasts]


def _contrast(one: Contrast) -> Summary:
    return {
        "column": clean_text(one.title),
        "value": format_value(one.value, one.kind),
        "overall": format_value(one.overall, one.kind),
        "difference": round_float(one.difference),
        "lift": None if one.lift is None else round_float(one.lift),
    }


def name_clusters(
    given: Sequence[object] | None, profiles: Profiles | None, clusters: list[Summary], ids: Sequence[object] | None
) -> list[str | None]:
    """Return the name of every cluster: the given one, that of its columns or terms, or that of a typical row."""
    described = [None] * len(clusters) if profiles is None else profiles.names()
    names = []
    for label, cluster in enumerate(clusters):
        name = None if given is None else given[label]
        if name is None and cluster["size"]:
            typical = cluster["typical"][0]
            name = described[label] or f"like {typical if ids is None else ids[typical]}"
        names.append(None if name is None else str(name))
    return names


def columns_are_terms(X: Array | AffinityGraph, feature_names: Sequence[str] | None) -> bool:
    """Whether the columns are counts or weights of terms: sparse, named and non-negative."""
    if isinstance(X, AffinityGraph) or not sp.issparse(X) or feature_names is None:
        return False
    return X.nnz == 0 or bool(X.data.min() >= 0)


def describe_rows(
    X: Array | AffinityGraph,
    labels: np.ndarray,
    n_clusters: int,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
) -> Profiles | None:
    """Return the terms of documents, or the columns of other rows, by cluster; None for a graph."""
    terms: list[Terms] | None = None
    if feature_names is not None and columns_are_terms(X, feature_names):
        terms = matrix_terms(X, labels, n_clusters, feature_names)
    elif texts is not None:
        terms = text_terms(texts, labels, n_clusters)
    if terms is not None:
        nothing, means = np.zeros(0), np.zeros((n_clusters, 0))
        return Profiles([], [], [], nothing, nothing, means, np.zeros((n_clusters + 1, 0)), {"text": terms})
    return None if isinstance(X, AffinityGraph) else profile_rows(X, labels, n_clusters, feature_names)


def profile_lines(profiles: Profiles | None) -> list[Summary]:
    """Return the means and shares of all columns by cluster, of those that differ most if there are many."""
    if profiles is None or not profiles.columns:
        return []
    largest = np.abs(profiles.differences).max(axis=0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:MAX_PROFILES])
    return [
        {
            "column": clean_text(profiles.columns[i]),
            "level": None if profiles.levels[i] is None else clean_text(profiles.levels[i]),
            "used": profiles.columns[i] not in profiles.left_out,
            "overall": format_value(float(profiles.overall[i]), profiles.kinds[i]),
            "values": [format_value(float(value), profiles.kinds[i]) for value in profiles.means[:, i]],
            "differences": [round_float(value, 2) for value in profiles.differences[:, i]],
        }
        for i in shown
    ]
