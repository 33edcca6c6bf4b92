"""Rows in blocks that need not fit into memory together: block versions of estimators, for Dask arrays."""

from .config import config_context
from .landmarks import LandmarkModel, on_landmarks
from .neighbor_graph import GraphInBlocks

__all__ = ["GraphInBlocks", "LandmarkModel", "config_context", "on_landmarks"]
