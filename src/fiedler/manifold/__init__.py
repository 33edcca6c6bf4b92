"""The flagship: partitions of several views of the rows, one chosen without labels, and soft memberships."""

from .cost import FitCost, estimate
from .estimator import ClusterResult, ManifoldClustering, cluster
from .explain import ClusterExplanation, Explanation, RowExplanation
from .n_clusters import NClustersChoice, choose_n_clusters
from .update import Drift, UpdateResult

__all__ = [
    "ClusterExplanation",
    "ClusterResult",
    "Drift",
    "Explanation",
    "FitCost",
    "ManifoldClustering",
    "NClustersChoice",
    "RowExplanation",
    "UpdateResult",
    "choose_n_clusters",
    "cluster",
    "estimate",
]
