"""Clusterers: from rows, embeddings and graphs to labels."""

from .documents import LPIClustering
from .embed_kmeans import EmbedKMeans
from .manifold import ClusterResult, ManifoldClustering, cluster
from .n_clusters import NClustersChoice, choose_n_clusters
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
