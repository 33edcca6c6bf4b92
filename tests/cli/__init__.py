"""A package, so that its conftest.py is told apart from the one above it."""
