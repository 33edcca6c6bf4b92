"""The flagship: partitions of several views of the rows, one chosen without labels, and soft memberships."""

from .cost import BlockCost, FitCost, StageCost, estimate
from .estimator import ClusterResult, ManifoldClustering, cluster
from .explain import ClusterExplanation, Explanation, RowExplanation
from .n_clusters import NClustersChoice, choose_n_clusters
from .update import Drift, UpdateResult

__all__ = [
    "BlockCost",
    "ClusterExplanation",
    "ClusterResult",
    "Drift",
    "Explanation",
    "FitCost",
    "ManifoldClustering",
    "NClustersChoice",
    "RowExplanation",
    "StageCost",
    "UpdateResult",
    "choose_n_clusters",
    "cluster",
    "estimate",
]
