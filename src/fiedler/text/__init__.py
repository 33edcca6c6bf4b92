"""Raw documents to term vectors, and clusters of documents to words."""

from .describe import ClusterDescription, describe_clusters
from .read import Documents, read_documents
from .vectorize import DocumentVectorizer

__all__ = ["ClusterDescription", "DocumentVectorizer", "Documents", "describe_clusters", "read_documents"]
