"""Coordinates from a graph."""

from .eigenmaps import LaplacianEigenmaps, eigenmap
from .lpi import LPI
from .nle import NLE

__all__ = ["LPI", "NLE", "LaplacianEigenmaps", "eigenmap"]
