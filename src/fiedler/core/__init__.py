"""Numerics that are independent of graphs and models: arrays in, arrays out, on NumPy, torch and CuPy."""
