"""Numerics that are independent of graphs and models: arrays in, arrays out, on NumPy, torch and CuPy."""

from . import eigen

__all__ = ["eigen"]
