"""Other libraries' objects: cells of AnnData."""

from . import anndata

__all__ = ["anndata"]
