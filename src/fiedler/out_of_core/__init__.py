"""Rows in blocks that need not fit into memory together: block versions of estimators, for Dask arrays."""

from .memberships import LandmarkModel, on_landmarks
from .neighbor_graph import GraphInBlocks
from .run import config_context

__all__ = ["GraphInBlocks", "LandmarkModel", "config_context", "on_landmarks"]
