"""Hard labels read off a graph: what several families start from."""

from __future__ import annotations

import numpy as np

from ..core.backend import Array
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.rows import normalize_rows
from .affinity import AffinityGraph


def spectral_labels(graph: AffinityGraph, n_clusters: int, *, random_state: np.random.RandomState) -> Array:
    """Ng, Jordan & Weiss: k-means (ten starts) on the rows, at length one, of the first eigenvectors."""
    pairs = smallest_eigenpairs(graph, n_clusters, kind="random_walk", random_state=random_state)
    return kmeans(normalize_rows(pairs.vectors), n_clusters, random_state=random_state).labels
