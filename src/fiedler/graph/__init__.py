"""Graphs built from data, and the operators on them."""

from .affinity import AffinityGraph
from .community import communities, modularity
from .hessian import combine_graphs, hessian
from .labels import LabelGraph
from .landmark_graph import LandmarkGraph, LowRankAffinity
from .operators import laplacian
from .recipes import FullGraph, KNNGraph, RadiusGraph, as_affinity
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
