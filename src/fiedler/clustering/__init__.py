"""Clusterers: from rows, embeddings and graphs to labels."""

from .block_cost import BlockCost
from .cost import estimate
from .cost_records import FitCost, StageCost
from .documents import LPIClustering
from .drift import Drift
from .embed_kmeans import EmbedKMeans
from .explanation_records import ClusterExplanation, Explanation, RowExplanation
from .genie import GenieLinkage
from .manifold import ClusterResult, ManifoldClustering, cluster
from .n_clusters import NClustersChoice, choose_n_clusters
from .spectral import SpectralClustering
from .update_records import UpdateResult

__all__ = [
    "BlockCost",
    "ClusterExplanation",
    "ClusterResult",
    "Drift",
    "EmbedKMeans",
    "Explanation",
    "FitCost",
    "GenieLinkage",
    "LPIClustering",
    "ManifoldClustering",
    "NClustersChoice",
    "RowExplanation",
    "SpectralClustering",
    "StageCost",
    "UpdateResult",
    "choose_n_clusters",
    "cluster",
    "estimate",
]
