"""Registry of the estimators and other public names.

A row of :data:`ESTIMATORS` is all that a new estimator needs to be exported from ``fiedler``, saved to a model file,
offered by the command line, put through every contract test and listed in the API reference. Rows name modules, so
that importing the registry imports nothing else. ``make stubs`` writes :file:`__init__.pyi`, which type checkers and
editors read, from the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

SUBPACKAGES = (
    "baselines",
    "clustering",
    "core",
    "datasets",
    "embedding",
    "errors",
    "graph",
    "integrations",
    "io",
    "manifold",
    "metrics",
    "mixture",
    "persistence",
    "plots",
    "report",
    "supervision",
    "table",
    "text",
)

# Public functions and classes that are not estimators, with the module that defines them.
EXPORTS = {
    "AffinityGraph": "graph.affinity",
    "FitHistory": "_records",
    "PairwiseConstraints": "graph.constraints",
    "choose_n_clusters": "manifold.n_clusters",
    "cluster": "manifold.estimator",
    "estimate": "manifold.cost",
    "load": "persistence",
    "save": "persistence",
}

# Records that a model file can contain in addition to estimators, with the module that defines them.
RECORDS = {
    "AffinityGraph": "fiedler.graph.affinity",
    "Candidate": "fiedler.manifold.candidates",
    "ColumnEncoding": "fiedler.table.encoder",
    "CopiedRows": "fiedler.graph.weights",
    "FittedState": "fiedler.manifold.state",
    "Landmarks": "fiedler.manifold.state",
    "KernelConstants": "fiedler.graph.kernels",
    "FitHistory": "fiedler._records",
    "GaussianOfRows": "fiedler.table.completion",
    "Gaussians": "fiedler.mixture.covariance",
    "LowRankAffinity": "fiedler.graph.landmark_graph",
    "NClustersChoice": "fiedler.manifold.n_clusters",
    "PairwiseConstraints": "fiedler.graph.constraints",
    "Profiles": "fiedler.table.profiles",
    "Projection": "fiedler.core.pca",
}

# Transformers of scikit-learn that may precede a model in a saved pipeline.
SKLEARN_STEPS = {
    "CountVectorizer": "sklearn.feature_extraction.text",
    "HashingVectorizer": "sklearn.feature_extraction.text",
    "MinMaxScaler": "sklearn.preprocessing",
    "NMF": "sklearn.decomposition",
    "Normalizer": "sklearn.preprocessing",
    "PCA": "sklearn.decomposition",
    "StandardScaler": "sklearn.preprocessing",
    "TfidfTransformer": "sklearn.feature_extraction.text",
    "TruncatedSVD": "sklearn.decomposition",
}


@dataclass(frozen=True)
class Spec:
    """An estimator by name with parameters, for parameters that are estimators themselves."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """How the command line offers a clusterer.

    Attributes
    ----------
    name : str
        The value of ``--method``.
    description : str
    supervision : tuple of str
        What the method learns from besides the rows: ``"labels"`` of some rows, ``"pairs"``.
    """

    name: str
    description: str
    supervision: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimator:
    """A row of the registry.

    Attributes
    ----------
    name : str
        The class.
    module : str
        The module that defines it, relative to ``fiedler`` unless it begins with another package's name.
    section : str
        Its section of the API reference.
    checks : tuple of dict
        Parameters with which the contract tests run, one instance each.
    top_level : bool
        Whether ``fiedler.<name>`` exists; otherwise the class is public in its subpackage only.
    method : Method, optional
        How the command line offers it.
    """

    name: str
    module: str
    section: str
    checks: tuple[Mapping[str, Any], ...] = ()
    top_level: bool = True
    method: Method | None = None

    @property
    def full_module(self) -> str:
        """The importable name of the module."""
        is_ours = self.module.split(".")[0] in SUBPACKAGES
        return f"fiedler.{self.module}" if is_ours else self.module

    def load(self) -> Any:
        """Import the class."""
        return getattr(import_module(self.full_module), self.name)


def _row(name: str, module: str, section: str, *checks: Mapping[str, Any], **options: Any) -> Estimator:
    return Estimator(name, module, section, checks, **options)


_THREE = {"n_clusters": 3}
_KNN = Spec("KNNGraph", {"n_neighbors": 5})
_BOTH = ("labels", "pairs")

ESTIMATORS: dict[str, Estimator] = {
    row.name: row
    for row in (
        _row(
            "ManifoldClustering",
            "manifold.estimator",
            "Clustering",
            _THREE,
            method=Method("auto", "several partitions, one chosen without labels", _BOTH),
        ),
        _row(
            "LapGMM",
            "mixture.lapgmm",
            "Mixtures",
            _THREE,
            {**_THREE, "solver": "anchored"},  # 'printed' may smooth a whole cluster away on pure noise, as published
            method=Method("lapgmm", "Gaussian mixture, smooth over the graph", _BOTH),
        ),
        _row(
            "LCGMM",
            "mixture.lcgmm",
            "Mixtures",
            _THREE,
            method=Method("lcgmm", "Gaussian mixture with a Kullback-Leibler regulariser", _BOTH),
        ),
        _row(
            "SpectralClustering",
            "clustering.spectral",
            "Clustering",
            {**_THREE, "cut": "ncut"},
            {**_THREE, "cut": "njw"},
            {**_THREE, "cut": "ratio"},
            method=Method("spectral", "spectral clustering by normalised cut", ("pairs",)),
        ),
        _row(
            "GenieLinkage",
            "clustering.genie",
            "Clustering",
            _THREE,
            {**_THREE, "length": "local", "gini_threshold": 0.1},
            method=Method("genie", "hierarchical clustering with a limit on unequal sizes"),
        ),
        _row(
            "LPIClustering",
            "clustering.documents",
            "Clustering",
            _THREE,
            {**_THREE, "assign": "kmeans"},
            method=Method("lpi", "locality preserving indexing, for documents", ("pairs",)),
        ),
        _row(
            "NLE",
            "embedding.nle",
            "Embeddings",
            {**_THREE, "n_init": 2, "max_iter": 100},
            {**_THREE, "n_init": 2, "max_iter": 100, "cut": "ncut", "init": "auto"},
            method=Method("nle", "nonnegative Laplacian embedding", ("pairs",)),
        ),
        _row(
            "GaussianMixture",
            "mixture.gaussian",
            "Mixtures",
            _THREE,
            method=Method("gmm", "Gaussian mixture", _BOTH),
        ),
        _row(
            "EmbedKMeans",
            "clustering.embed_kmeans",
            "Clustering",
            _THREE,
            {**_THREE, "embedding": Spec("LPI", {"graph": _KNN}), "n_components": "k-1"},
            method=Method("kmeans", "k-means"),
        ),
        _row(
            "LPI",
            "embedding.lpi",
            "Embeddings",
            # Dot-product weights, the paper's and LPI's default, need rows without negative entries.
            {"n_components": 2, "graph": _KNN},
            {"n_components": 2, "graph": _KNN, "solver": "regression"},
        ),
        _row("LaplacianEigenmaps", "embedding.eigenmaps", "Embeddings", {}, {"normalized": False}),
        _row("HessianEigenmaps", "embedding.eigenmaps", "Embeddings", {"graph": Spec("KNNGraph", {"n_neighbors": 8})}),
        _row("Whitening", "embedding.whitening", "Embeddings", {}, {"by": "cells", "n_cells": 3}, {"by": "edges"}),
        _row("Directions", "embedding.whitening", "Embeddings", {}, {"center": False}),
        _row(
            "LearnedLaplacian",
            "supervision.learned_laplacian",
            "Supervision",
            {"max_iter": 10},
            {"metric": "diagonal", "optimizer": "doubling", "pair_weight": 1.0, "max_iter": 10},
        ),
        _row("LLGC", "supervision.llgc", "Supervision", {}, {"normalize": None, "alpha": 0.5}),
        _row("NMFClustering", "baselines.nmf", "Baselines", _THREE, top_level=False),
        _row("GNMF", "baselines.gnmf", "Baselines", {**_THREE, "n_init": 1, "max_iter": 50}, top_level=False),
        _row("MMC", "baselines.metric_learning", "Baselines", {"max_iter": 20}, top_level=False),
        _row("LMNN", "baselines.metric_learning", "Baselines", {"max_iter": 10}, top_level=False),
        _row("MPCKMeans", "baselines.mpckmeans", "Baselines", _THREE, top_level=False),
        _row("TransductiveSVM", "baselines.tsvm", "Baselines", {}, top_level=False),
        _row("DocumentVectorizer", "text.vectorize", "Text", top_level=False),
        _row("TableEncoder", "table.encoder", "Tables", {}, top_level=False),
        _row("TableCompleter", "table.completion", "Tables", {}, top_level=False),
        _row("KNNGraph", "graph.recipes", "Graphs", {"n_neighbors": 5}, {"n_neighbors": 5, "weight": "local"}),
        _row("RadiusGraph", "graph.recipes", "Graphs", {"radius": 4.0}),
        _row("FullGraph", "graph.recipes", "Graphs", {"weight": "heat", "bandwidth": 1.5}),
        _row(
            "LandmarkGraph", "graph.landmark_graph", "Graphs", {"n_landmarks": 30, "weight": "heat", "bandwidth": 2.0}
        ),
        _row("LabelGraph", "graph.labels", "Graphs", {"base": _KNN}),
    )
}


def register(row: Estimator) -> None:
    """Add an estimator while the program runs, for example one of another package."""
    ESTIMATORS[row.name] = row


def public_names() -> dict[str, str]:
    """Names that ``fiedler`` exports, with the modules that define them."""
    functions = {name: f"fiedler.{module}" for name, module in EXPORTS.items()}
    return functions | {row.name: row.full_module for row in ESTIMATORS.values() if row.top_level}


def storable_classes() -> dict[str, str]:
    """Classes that a model file may name, with the modules that define them."""
    return {**RECORDS, **SKLEARN_STEPS, **{row.name: row.full_module for row in ESTIMATORS.values()}}


def methods() -> dict[str, Estimator]:
    """Clusterers that the command line offers, by the value of ``--method``."""
    return {row.method.name: row for row in ESTIMATORS.values() if row.method is not None}


def build(spec: Spec) -> Any:
    """Make an estimator from its name and parameters."""
    params = {name: build(value) if isinstance(value, Spec) else value for name, value in spec.params.items()}
    return ESTIMATORS[spec.name].load()(**params)


def check_instances(*names: str) -> Iterator[Any]:
    """Make every estimator that the contract tests run on, or those of some classes."""
    return (one for one in _instances(*names) if hasattr(one, "fit"))


def check_recipes(*names: str) -> Iterator[Any]:
    """Make every graph recipe that the contract tests run on, or those of some classes."""
    return (one for one in _instances(*names) if not hasattr(one, "fit"))


def _instances(*names: str) -> Iterator[Any]:
    for row in ESTIMATORS.values():
        if not names or row.name in names:
            yield from (build(Spec(row.name, params)) for params in row.checks)


def stub() -> str:
    """Write the type stub :file:`__init__.pyi`."""
    names = public_names()
    by_module: dict[str, list[str]] = {}
    for name, module in names.items():
        by_module.setdefault(module.removeprefix("fiedler"), []).append(name)
    lines = ['"""Generated from _registry.py by ``make stubs``; do not edit."""', ""]
    lines += [f"from . import {name} as {name}" for name in SUBPACKAGES]
    for module, own in sorted(by_module.items()):
        lines += [f"from {module} import {name} as {name}" for name in sorted(own)]
    return "\n".join([*lines, "", "__version__: str", ""])


def api_reference() -> str:
    """Write the estimators' part of the API reference, one section per family."""
    sections: dict[str, list[str]] = {}
    for row in ESTIMATORS.values():
        name = row.name if row.top_level else f"{row.module.split('.')[0]}.{row.name}"
        sections.setdefault(row.section, []).append(name)
    lines = ["Estimators", "==========", "", ".. currentmodule:: fiedler"]
    for section, names in sections.items():
        lines += [
            "",
            section,
            "-" * len(section),
            "",
            ".. autosummary::",
            "   :toctree: generated",
            "   :nosignatures:",
            "",
        ]
        lines += [f"   {name}" for name in names]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    from pathlib import Path

    Path(__file__).with_name("__init__.pyi").write_text(stub(), encoding="utf-8")
