"""Embeddings and graphs to labels."""

from .documents import LPIClustering
from .embed_kmeans import EmbedKMeans
from .select import NClustersChoice, choose_n_clusters
from .spectral import SpectralClustering

__all__ = ["EmbedKMeans", "LPIClustering", "NClustersChoice", "SpectralClustering", "choose_n_clusters"]
