"""Instances of the estimators of the registry, on which contract tests, laws and tests of files run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fiedler import _registry

_registry.import_papers()  # the baselines are checked as well, where that distribution is installed


@dataclass(frozen=True)
class Spec:
    """An estimator by name with parameters, for parameters that are estimators themselves."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


THREE = {"n_clusters": 3}
KNN = Spec("KNNGraph", {"n_neighbors": 5})

# Parameters of the instances, for estimators that are not checked with their defaults alone.
PARAMETERS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "ManifoldClustering": (THREE,),
    "LapGMM": (
        THREE,
        {**THREE, "solver": "anchored"},  # 'printed' may smooth a whole cluster away on pure noise, as published
    ),
    "LCGMM": (THREE,),
    "SpectralClustering": tuple({**THREE, "cut": cut} for cut in ("ncut", "njw", "ratio")),
    "GenieLinkage": (THREE, {**THREE, "length": "local", "gini_threshold": 0.1}),
    "LPIClustering": (THREE, {**THREE, "assign": "kmeans"}),
    "NLE": (
        {**THREE, "n_init": 2, "max_iter": 100},
        {**THREE, "n_init": 2, "max_iter": 100, "cut": "ncut", "init": "auto"},
    ),
    "GaussianMixture": (THREE,),
    "EmbedKMeans": (THREE, {**THREE, "embedding": Spec("LPI", {"graph": KNN}), "n_components": "k-1"}),
    "LPI": (  # dot-product weights, the paper's and LPI's default, need rows without negative entries
        {"n_components": 2, "graph": KNN},
        {"n_components": 2, "graph": KNN, "solver": "regression"},
    ),
    "LaplacianEigenmaps": ({}, {"normalized": False}),
    "HessianEigenmaps": ({"graph": Spec("KNNGraph", {"n_neighbors": 8})},),
    "Whitening": ({}, {"by": "cells", "n_cells": 3}, {"by": "edges"}),
    "Directions": ({}, {"center": False}),
    "LearnedLaplacian": (
        {"max_iter": 10},
        {"metric": "diagonal", "optimizer": "doubling", "pair_weight": 1.0, "max_iter": 10},
    ),
    "LLGC": ({}, {"normalize": None, "alpha": 0.5}),
    "NMFClustering": (THREE,),
    "GNMF": ({**THREE, "n_init": 1, "max_iter": 50},),
    "MMC": ({"max_iter": 20},),
    "LMNN": ({"max_iter": 10},),
    "MPCKMeans": (THREE,),
    "DocumentVectorizer": (),  # takes texts
    "KNNGraph": ({"n_neighbors": 5}, {"n_neighbors": 5, "weight": "local"}),
    "RadiusGraph": ({"radius": 4.0},),
    "FullGraph": ({"weight": "heat", "bandwidth": 1.5},),
    "LandmarkGraph": ({"n_landmarks": 30, "weight": "heat", "bandwidth": 2.0},),
    "LabelGraph": ({"base": KNN},),
}


def build(spec: Spec) -> Any:
    """Make an estimator from its name and parameters."""
    params = {name: build(value) if isinstance(value, Spec) else value for name, value in spec.params.items()}
    return _registry.ESTIMATORS[spec.name].load()(**params)


def check_instances(*names: str) -> Iterator[Any]:
    """Make every estimator that can be fitted, or those of some classes."""
    return (one for one in _instances(*names) if hasattr(one, "fit"))


def check_recipes(*names: str) -> Iterator[Any]:
    """Make every graph recipe, or those of some classes."""
    return (one for one in _instances(*names) if not hasattr(one, "fit"))


def _instances(*names: str) -> Iterator[Any]:
    for row in _registry.ESTIMATORS.values():
        if not names or row.name in names:
            yield from (build(Spec(row.name, params)) for params in PARAMETERS.get(row.name, ({},)))
