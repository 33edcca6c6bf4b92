"""Rows in blocks that need not fit into memory together: block versions of estimators, for Dask arrays."""

from .graph import GraphInBlocks
from .manifold import LandmarkModel, on_landmarks
from .run import config_context

__all__ = ["GraphInBlocks", "LandmarkModel", "config_context", "on_landmarks"]
