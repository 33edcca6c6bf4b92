"""Coordinates from a graph."""

from .eigenmaps import LaplacianEigenmaps, eigenmap
from .lpi import LPI

__all__ = ["LPI", "LaplacianEigenmaps", "eigenmap"]
