"""Coordinates from a graph."""

from .directions import Directions
from .eigenmaps import LaplacianEigenmaps, eigenmap
from .hessian import HessianEigenmaps
from .lpi import LPI
from .nle import NLE
from .whitening import Whitening

__all__ = ["LPI", "NLE", "Directions", "HessianEigenmaps", "LaplacianEigenmaps", "Whitening", "eigenmap"]
