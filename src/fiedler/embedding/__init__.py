"""Coordinates from a graph."""

from .eigenmaps import LaplacianEigenmaps

__all__ = ["LaplacianEigenmaps"]
