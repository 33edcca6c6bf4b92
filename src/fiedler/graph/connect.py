"""Edges that join the components of a disconnected graph, between their closest points."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..core.backend import Array, is_numpy, to_numpy
from .neighbors import k_nearest

NEARBY = 16  # neighbours looked at before a component is searched as a whole


def _closest(X: Array, inside: np.ndarray, outside: np.ndarray) -> tuple[int, int]:
    """The closest pair between two sets of rows."""
    found = k_nearest(X[outside], 1, queries=X[inside], method="exact")
    best = int(np.argmin(found.distances))
    return int(inside[best]), int(outside[found.columns[best]])


def _shortest_way_out(X: Array, labels: np.ndarray) -> list[tuple[int, int]]:
    """For every component but the largest, its closest pair with a point outside.

    The few nearest neighbours of all those points settle most components in one search; a component whose points have
    none of them outside is searched by itself.
    """
    small = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
    k = min(NEARBY, X.shape[0])
    found = k_nearest(X, k, queries=X[small], method="exact")
    start, end = small[found.rows], found.columns
    leaving = labels[start] != labels[end]
    order = np.flatnonzero(leaving)[np.argsort(found.distances[leaving], kind="stable")]
    components, first = np.unique(labels[start[order]], return_index=True)
    farthest = found.distances.reshape(-1, k)[:, -1]  # beyond it nothing is known of a point's neighbours
    known = np.full(labels.max() + 1, np.inf)
    np.minimum.at(known, labels[small], farthest)
    ways = []
    for c in np.unique(labels[small]):
        best = order[first[components == c]]
        if len(best) and found.distances[best[0]] <= known[c]:
            ways.append((int(start[best[0]]), int(end[best[0]])))
        else:
            ways.append(_closest(X, np.flatnonzero(labels == c), np.flatnonzero(labels != c)))
    return ways


def mst_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a minimum spanning tree over the components, by Borůvka's rounds.

    Every component but the largest looks for its closest outside point and the components so joined become one, until
    one is left. The largest need not look: the others' choices include its own tree edge.
    """
    X, bridges = _on_host(X), []
    while labels.max() > 0:
        ways = _shortest_way_out(X, labels)
        bridges += ways
        labels = _merge(labels, ways)
    return _as_arrays(sorted({(min(way), max(way)) for way in bridges}))


def nearest_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From every smaller component its closest pair with the largest one (component 0), all by one search."""
    X, main, rest = _on_host(X), np.flatnonzero(labels == 0), np.flatnonzero(labels != 0)
    found = k_nearest(X[main], 1, queries=X[rest], method="exact")
    order = np.argsort(found.distances, kind="stable")
    _, first = np.unique(labels[rest[order]], return_index=True)
    best = order[first]
    return rest[best], main[found.columns[best]]


def _merge(labels: np.ndarray, bridges: list[tuple[int, int]]) -> np.ndarray:
    """The components once the bridges are crossed."""
    n = int(labels.max()) + 1
    ends = np.array([(labels[i], labels[j]) for i, j in bridges])
    joined = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(joined, directed=False)[1][labels]


def _on_host(X: Array) -> Array:
    return X if is_numpy(X) else to_numpy(X)


def _as_arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, dtype=np.int64)
    return array[:, 0], array[:, 1]


BRIDGES = {"mst": mst_bridges, "nearest": nearest_bridges}
