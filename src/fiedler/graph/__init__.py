"""Graphs built from data, and the operators on them."""

from .affinity import AffinityGraph
from .community import communities, modularity
from .kernels import LandmarkGraph, LowRankAffinity
from .labels import LabelGraph
from .operators import hessian, laplacian
from .recipes import FullGraph, KNNGraph, RadiusGraph, as_affinity
from .smoothing import combine_graphs, diffuse, dirichlet_energy, heat_flow, iterate, resolvent

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
