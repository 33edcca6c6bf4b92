"""Edges that join the components of a disconnected graph, between their closest points."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..core.backend import Array, is_numpy, to_numpy
from .neighbors import k_nearest

N_NEARBY = 16  # neighbours per point in the search over all components, before single ones are searched


def _closest_pair(X: Array, inside: np.ndarray, outside: np.ndarray) -> tuple[int, int]:
    """Return the closest pair between two sets of rows."""
    neighbors = k_nearest(X[outside], 1, queries=X[inside], method="exact")
    best = int(np.argmin(neighbors.distances))
    return int(inside[best]), int(outside[neighbors.columns[best]])


def _closest_outside_pairs(X: Array, labels: np.ndarray) -> list[tuple[int, int]]:
    """Return, for every component but the largest, its closest pair with a point outside.

    One search for a few nearest neighbours of all those points settles most components; a component none of whose
    points has a neighbour outside is searched separately.
    """
    small = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
    k = min(N_NEARBY, X.shape[0])
    neighbors = k_nearest(X, k, queries=X[small], method="exact")
    start, end = small[neighbors.rows], neighbors.columns
    leaving = labels[start] != labels[end]
    order = np.flatnonzero(leaving)[np.argsort(neighbors.distances[leaving], kind="stable")]
    components, first = np.unique(labels[start[order]], return_index=True)
    farthest = neighbors.distances.reshape(-1, k)[:, -1]  # neighbours beyond it were not searched
    searched = np.full(labels.max() + 1, np.inf)
    np.minimum.at(searched, labels[small], farthest)
    pairs = []
    for c in np.unique(labels[small]):
        best = order[first[components == c]]
        if len(best) and neighbors.distances[best[0]] <= searched[c]:
            pairs.append((int(start[best[0]]), int(end[best[0]])))
        else:
            pairs.append(_closest_pair(X, np.flatnonzero(labels == c), np.flatnonzero(labels != c)))
    return pairs


def mst_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a minimum spanning tree over the components, by Borůvka's algorithm.

    In every round each component but the largest is joined to its closest outside point, until one component is left.
    The largest need not be searched: the edges of the others include its edge in the tree.
    """
    X, bridges = _on_host(X), []
    while labels.max() > 0:
        pairs = _closest_outside_pairs(X, labels)
        bridges += pairs
        labels = _merge(labels, pairs)
    edges = np.array(sorted({(min(pair), max(pair)) for pair in bridges}), dtype=np.int64)
    return edges[:, 0], edges[:, 1]


def nearest_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every smaller component, its closest pair with the largest one (component 0), by one search."""
    X, main, rest = _on_host(X), np.flatnonzero(labels == 0), np.flatnonzero(labels != 0)
    neighbors = k_nearest(X[main], 1, queries=X[rest], method="exact")
    order = np.argsort(neighbors.distances, kind="stable")
    _, first = np.unique(labels[rest[order]], return_index=True)
    best = order[first]
    return rest[best], main[neighbors.columns[best]]


def _merge(labels: np.ndarray, bridges: list[tuple[int, int]]) -> np.ndarray:
    """Return the components after the bridges are added."""
    n = int(labels.max()) + 1
    ends = np.array([(labels[i], labels[j]) for i, j in bridges])
    joined = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(joined, directed=False)[1][labels]


def _on_host(X: Array) -> Array:
    return X if is_numpy(X) else to_numpy(X)


BRIDGES = {"mst": mst_bridges, "nearest": nearest_bridges}
