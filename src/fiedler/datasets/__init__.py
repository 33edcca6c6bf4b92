"""Data sets: every real one behind ``load(name)``, and synthetic manifolds with known answers."""

from .load import list_datasets, load
from .make import blobs, circles, swiss_roll, tanh_manifold, two_moons

__all__ = ["blobs", "circles", "list_datasets", "load", "swiss_roll", "tanh_manifold", "two_moons"]
