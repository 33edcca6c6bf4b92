"""fiedler: clustering on manifolds. A nearest-neighbour graph, its Laplacian, and models shaped by them.

The public names load on first use, so that ``import fiedler`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .cluster import EmbedKMeans, LPIClustering, ManifoldClustering, SpectralClustering, choose_n_clusters
    from .embedding import LPI, NLE, LaplacianEigenmaps
    from .graph import AffinityGraph, FullGraph, KNNGraph, LabelGraph, LandmarkGraph, RadiusGraph
    from .mixture import LCGMM, GaussianMixture, LapGMM
    from .models import load, save
    from .supervision import LLGC, LearnedLaplacian, PairwiseConstraints

_HOMES = {
    "AffinityGraph": "graph",
    "EmbedKMeans": "cluster",
    "FullGraph": "graph",
    "GaussianMixture": "mixture",
    "KNNGraph": "graph",
    "LCGMM": "mixture",
    "LLGC": "supervision",
    "LPI": "embedding",
    "LPIClustering": "cluster",
    "LabelGraph": "graph",
    "LandmarkGraph": "graph",
    "ManifoldClustering": "cluster",
    "NLE": "embedding",
    "LapGMM": "mixture",
    "LaplacianEigenmaps": "embedding",
    "LearnedLaplacian": "supervision",
    "PairwiseConstraints": "supervision",
    "RadiusGraph": "graph",
    "SpectralClustering": "cluster",
    "choose_n_clusters": "cluster",
    "load": "models",
    "save": "models",
}

_FOLDERS = {
    "baselines",
    "cluster",
    "core",
    "datasets",
    "embedding",
    "experiments",
    "graph",
    "inputs",
    "metrics",
    "mixture",
    "models",
    "plots",
    "report",
    "supervision",
    "text",
}

__all__ = [
    "LCGMM",
    "LLGC",
    "LPI",
    "NLE",
    "AffinityGraph",
    "EmbedKMeans",
    "FullGraph",
    "GaussianMixture",
    "KNNGraph",
    "LPIClustering",
    "LabelGraph",
    "LandmarkGraph",
    "LapGMM",
    "LaplacianEigenmaps",
    "LearnedLaplacian",
    "ManifoldClustering",
    "PairwiseConstraints",
    "RadiusGraph",
    "SpectralClustering",
    "__version__",
    "choose_n_clusters",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    if name in _FOLDERS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
