"""Data sets: real ones by ``load(name)``, and generators of synthetic manifolds with known clusters."""

from .loading import is_available, list_datasets, load
from .make import blobs, circles, swiss_roll, tanh_manifold, two_moons

__all__ = ["blobs", "circles", "is_available", "list_datasets", "load", "swiss_roll", "tanh_manifold", "two_moons"]
