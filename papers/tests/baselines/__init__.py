"""A package, so that pytest distinguishes its conftest.py from the one above it."""
