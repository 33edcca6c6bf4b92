"""Text: from raw documents to term vectors, and from clusters of documents to descriptions in words."""

from .describe import ClusterDescription, describe_clusters
from .read import Documents, read_documents
from .vectorize import DocumentVectorizer

__all__ = [
    "ClusterDescription",
    "DocumentVectorizer",
    "Documents",
    "describe_clusters",
    "read_documents",
]
