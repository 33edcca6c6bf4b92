"""Embeddings and graphs to labels."""

from .spectral import SpectralClustering

__all__ = ["SpectralClustering"]
