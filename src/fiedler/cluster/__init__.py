"""Embeddings and graphs to labels. The folder is also a function: ``fiedler.cluster(X, n_clusters=10)``."""

import sys
from types import ModuleType
from typing import Any

from .documents import LPIClustering
from .embed_kmeans import EmbedKMeans
from .manifold import ClusterResult, ManifoldClustering, cluster
from .select import NClustersChoice, choose_n_clusters
from .spectral import SpectralClustering

__all__ = [
    "ClusterResult",
    "EmbedKMeans",
    "LPIClustering",
    "ManifoldClustering",
    "NClustersChoice",
    "SpectralClustering",
    "choose_n_clusters",
    "cluster",
]


class _CallableFolder(ModuleType):
    """``fiedler.cluster`` is where the clusterers live and the one call that most people need; it can be both."""

    def __call__(self, *args: Any, **kwargs: Any) -> ClusterResult:
        return cluster(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableFolder
