"""Edges that join the components of a disconnected graph, between their closest points."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from ..core.backend import Array, is_numpy, to_numpy


def _closest(X: Array, inside: np.ndarray, outside: np.ndarray) -> tuple[int, int, float]:
    """The closest pair between two sets of rows, and its length."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X[outside])
    distances, indices = search.kneighbors(X[inside])
    best = int(np.argmin(distances[:, 0]))
    return int(inside[best]), int(outside[indices[best, 0]]), float(distances[best, 0])


def mst_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a minimum spanning tree over the components, by Borůvka's rounds.

    Every component but the largest looks for its closest outside point and the components so joined become one, until
    one is left. The largest need not look: the others' choices include its own tree edge.
    """
    X, labels, bridges = _on_host(X), labels.copy(), []
    while (n_components := int(labels.max()) + 1) > 1:
        largest = int(np.argmax(np.bincount(labels)))
        for c in range(n_components):
            if c != largest:
                bridges.append(_closest(X, np.flatnonzero(labels == c), np.flatnonzero(labels != c)))
        labels = _merge(labels, bridges)
    unique = {(min(i, j), max(i, j)) for i, j, _ in bridges}
    return _as_arrays(sorted(unique))


def nearest_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From every smaller component its closest pair with the largest one (component 0)."""
    X, main = _on_host(X), np.flatnonzero(labels == 0)
    pairs = [_closest(X, np.flatnonzero(labels == c), main)[:2] for c in range(1, int(labels.max()) + 1)]
    return _as_arrays(pairs)


def _merge(labels: np.ndarray, bridges: list[tuple[int, int, float]]) -> np.ndarray:
    """The components once the bridges are crossed."""
    n = int(labels.max()) + 1
    ends = np.array([(labels[i], labels[j]) for i, j, _ in bridges])
    joined = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(joined, directed=False)[1][labels]


def _on_host(X: Array) -> Array:
    return X if is_numpy(X) else to_numpy(X)


def _as_arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, dtype=np.int64)
    return array[:, 0], array[:, 1]


BRIDGES = {"mst": mst_bridges, "nearest": nearest_bridges}
