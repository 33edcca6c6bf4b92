"""The papers' data sets: rows of ``DATASETS``, which :func:`fiedler.datasets.load` finds by name."""

from .files import cache_folder, data_folder
from .registry import DATASETS

__all__ = ["DATASETS", "cache_folder", "data_folder"]
