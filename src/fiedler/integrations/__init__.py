"""Other libraries: cells of AnnData, and the clustering step of BERTopic."""

from . import anndata, bertopic

__all__ = ["anndata", "bertopic"]
