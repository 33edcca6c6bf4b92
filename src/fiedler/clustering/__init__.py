"""Clusterers: from rows, embeddings and graphs to labels."""

from .documents import LPIClustering
from .embed_kmeans import EmbedKMeans
from .genie import GenieLinkage
from .spectral import SpectralClustering

__all__ = ["EmbedKMeans", "GenieLinkage", "LPIClustering", "SpectralClustering"]
