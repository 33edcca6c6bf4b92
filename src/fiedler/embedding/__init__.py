"""Coordinates from a graph."""

from .directions import Directions
from .eigenmaps import LaplacianEigenmaps, eigenmap
from .lpi import LPI
from .nle import NLE
from .whitening import Whitening

__all__ = ["LPI", "NLE", "Directions", "LaplacianEigenmaps", "Whitening", "eigenmap"]
