"""Hard labels from a graph, from which several families of models start."""

from __future__ import annotations

import numpy as np

from ..core.backend import Array
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.rows import normalize_rows
from .affinity import AffinityGraph


def spectral_labels(graph: AffinityGraph, n_clusters: int, *, random_state: np.random.RandomState) -> Array:
    """Cluster the nodes as Ng, Jordan & Weiss do: k-means (ten starts) on unit rows of the first eigenvectors."""
    pairs = smallest_eigenpairs(graph, n_clusters, kind="random_walk", random_state=random_state)
    return kmeans(normalize_rows(pairs.vectors), n_clusters, random_state=random_state).labels
