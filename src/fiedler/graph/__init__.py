"""Graphs built from data, and the operators on them."""

from .affinity import AffinityGraph
from .combine import combine_graphs
from .community import communities, modularity
from .graph_parameter import as_affinity
from .hessian import hessian
from .labels import LabelGraph
from .landmarks import LandmarkGraph, LowRankAffinity
from .laplacians import laplacian
from .recipes import FullGraph, KNNGraph, RadiusGraph
from .smoothing import diffuse, dirichlet_energy, heat_flow, iterate, resolvent

__all__ = [
    "AffinityGraph",
    "FullGraph",
    "KNNGraph",
    "LabelGraph",
    "LandmarkGraph",
    "LowRankAffinity",
    "RadiusGraph",
    "as_affinity",
    "combine_graphs",
    "communities",
    "diffuse",
    "dirichlet_energy",
    "heat_flow",
    "hessian",
    "iterate",
    "laplacian",
    "modularity",
    "resolvent",
]
