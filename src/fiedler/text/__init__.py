"""Text: documents as term vectors, and clusters of documents described in words."""

from .documents import ClusterDescription, Documents, DocumentVectorizer, describe_clusters

__all__ = ["ClusterDescription", "DocumentVectorizer", "Documents", "describe_clusters"]
