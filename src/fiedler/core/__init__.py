"""Numerics that know nothing of graphs or models: arrays in, arrays out, on NumPy, torch and CuPy."""
