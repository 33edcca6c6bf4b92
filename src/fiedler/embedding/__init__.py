"""Coordinates from a graph."""

from .eigenmaps import HessianEigenmaps, LaplacianEigenmaps, eigenmap
from .lpi import LPI
from .nle import NLE
from .whitening import Directions, Whitening

__all__ = ["LPI", "NLE", "Directions", "HessianEigenmaps", "LaplacianEigenmaps", "Whitening", "eigenmap"]
