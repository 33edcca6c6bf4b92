"""The estimators under test: how each is made and fitted, and to which changes of the data it is blind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.utils import get_tags

from contract import LEARN_FROM_LABELS
from registry_instances import Spec, build, check_instances

SCALE, SHIFT, ROTATION, COPIES = "scale", "shift", "rotation", "copies"
ALL = {SCALE, SHIFT, ROTATION, COPIES}

# What a model is blind to: its result on well separated groups stays the same, as a partition or up to a rotation.
BLIND: dict[str, set[str]] = {
    "ManifoldClustering": {SCALE, ROTATION, COPIES},
    "LapGMM": ALL,
    "LCGMM": ALL,
    "SpectralClustering": {SCALE, SHIFT, ROTATION},  # copies take the places of other neighbours: more components
    "GenieLinkage": ALL,
    "LPIClustering": {SCALE, ROTATION},
    "NLE": {SCALE, SHIFT, ROTATION},  # as in SpectralClustering
    "GaussianMixture": ALL,
    "EmbedKMeans": ALL,
    "LaplacianEigenmaps": {SCALE, SHIFT, ROTATION},
    "HessianEigenmaps": {SCALE, SHIFT, ROTATION},
    "LPI": {SHIFT, ROTATION},
    "Whitening": {SCALE, SHIFT, ROTATION},
    "Directions": {SCALE, ROTATION},
    "LLGC": {SCALE, SHIFT, ROTATION},
    "NMFClustering": {SCALE},
    "MMC": {SHIFT},
    "TransductiveSVM": {SHIFT, ROTATION},
}

# Models whose `predict` gives the training rows the labels of the fit.
PREDICTS_TRAINING_LABELS = {"GaussianMixture", "GenieLinkage", "EmbedKMeans", "MPCKMeans", "NLE", "LPIClustering"}

# Models of factors or of linear directions, which find K groups in at least K dimensions.
GO_BY_DIRECTIONS = {"LPIClustering", "NMFClustering", "GNMF", "LPI"}

# Models of one connected sheet, whose coordinates are not unique on several groups.
OF_ONE_SHEET = {"HessianEigenmaps"}

# Models that take arrays of NumPy alone, and say so.
NUMPY_ONLY = {"NMFClustering", "GNMF"}

_GRAPHS: tuple[Any, ...] = (
    Spec("KNNGraph", {"n_neighbors": 3}),
    Spec("KNNGraph", {"n_neighbors": 4, "weight": "heat"}),
    Spec("KNNGraph", {"n_neighbors": 5, "weight": "cosine", "metric": "cosine"}),
    Spec("KNNGraph", {"n_neighbors": 2, "symmetrize": "mutual", "connect": "mst"}),
    Spec("FullGraph", {"weight": "heat"}),
    Spec("FullGraph", {"weight": "local"}),
    Spec("FullGraph", {"weight": "dot"}),
    Spec("FullGraph", {"weight": "cosine"}),
    Spec("FullGraph", {"weight": "polynomial"}),
    Spec("RadiusGraph", {"radius": 1.0}),
)
_COVARIANCES = ("full", "diag", "spherical", "tied")

# Values of parameters, besides those of the registry, that are tried on awkward data.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ManifoldClustering": {
        "graph": _GRAPHS,
        "effort": ("fast", "thorough"),
        "outliers": (0.1,),
        "min_cluster_size": (2, 5),
        "max_cluster_size": (3, 8),
        "n_clusters": ("auto",),
    },
    "LapGMM": {"graph": _GRAPHS, "covariance_type": _COVARIANCES, "pca": (1, 2), "lam": (0.0, 100.0)},
    "LCGMM": {"graph": _GRAPHS, "covariance_type": _COVARIANCES, "pca": (1, 2), "lam": (0.0, 10.0)},
    "GaussianMixture": {"covariance_type": _COVARIANCES, "pca": (1, 2), "n_init": (3,)},
    "SpectralClustering": {"graph": _GRAPHS},
    "GenieLinkage": {"n_neighbors": (1, 40), "gini_threshold": (1.0,)},
    "LPIClustering": {"graph": _GRAPHS, "n_components": (1, 3), "solver": ("svd", "regression")},
    "NLE": {"graph": _GRAPHS, "init": ("random",)},
    "LPI": {"graph": _GRAPHS, "n_components": (1, 4), "normalize": (True,)},
    "LaplacianEigenmaps": {"graph": _GRAPHS, "n_components": (1, 5)},
    "HessianEigenmaps": {"graph": _GRAPHS[:4], "n_components": (1, 3)},
    "Whitening": {"max_components": (1, 3), "ridge": (0.0,)},
    "LearnedLaplacian": {"n_components": (1, 2), "n_neighbors": (2,)},
    "LLGC": {"graph": _GRAPHS, "alpha": (0.01,)},
    "NMFClustering": {"init": ("random", "nndsvd"), "weight": (None,)},
    "GNMF": {"graph": _GRAPHS, "lam": (0.0,)},
    "LMNN": {"n_neighbors": (1,)},
    "MPCKMeans": {"weight": (0.0,)},
    "TransductiveSVM": {"kernel": ("rbf",), "C": (100.0,)},
    "EmbedKMeans": {"metric": ("cosine",)},
}


@dataclass(frozen=True)
class Subject:
    """An estimator of the registry, identified by its printed form."""

    name: str

    @property
    def prototype(self) -> Any:
        """The estimator with its parameters of the registry."""
        return _prototypes()[self.name]

    @property
    def class_name(self) -> str:
        return type(self.prototype).__name__

    def model(self, n_clusters: int | None = None, options: tuple[tuple[str, Any], ...] = ()) -> Any:
        """Make the estimator with a seed, a number of clusters and other parameters."""
        model = clone(self.prototype)
        known = model.get_params()
        changes = {"random_state": 0} | ({} if n_clusters is None else {"n_clusters": n_clusters}) | dict(options)
        changes = {name: build(value) if isinstance(value, Spec) else value for name, value in changes.items()}
        return model.set_params(**{name: value for name, value in changes.items() if name in known})

    def has(self, method: str) -> bool:
        return hasattr(self.prototype, method)

    @property
    def is_clusterer(self) -> bool:
        return is_clusterer(self.prototype)

    @property
    def is_classifier(self) -> bool:
        return is_classifier(self.prototype)

    @property
    def learns_from_labels(self) -> bool:
        return self.is_classifier or self.class_name in LEARN_FROM_LABELS

    @property
    def takes_sparse(self) -> bool:
        return get_tags(self.prototype).input_tags.sparse

    @property
    def positive_only(self) -> bool:
        return get_tags(self.prototype).input_tags.positive_only

    @property
    def blind_to(self) -> set[str]:
        blind = BLIND.get(self.class_name, set())
        return blind | {SHIFT} if self.class_name == "Directions" and self.prototype.center else blind

    @property
    def is_of_one_sheet(self) -> bool:
        return self.class_name in OF_ONE_SHEET

    @property
    def goes_by_directions(self) -> bool:
        """Whether groups in the same direction from the origin may be one to the model."""
        return self.class_name in GO_BY_DIRECTIONS or getattr(self.prototype, "embedding", None) is not None

    @property
    def learns_from_some(self) -> bool:
        """Whether the labels of some rows are enough."""
        return self.is_classifier or self.class_name == "LearnedLaplacian"


@cache
def _prototypes() -> dict[str, Any]:
    return {" ".join(repr(model).split()): model for model in check_instances()}


def subjects() -> list[Subject]:
    """All estimators that the contract tests run on."""
    return [Subject(name) for name in _prototypes()]


@st.composite
def options(draw, subject: Subject) -> tuple[tuple[str, Any], ...]:
    """Draw at most two parameters that differ from those of the registry."""
    table = OPTIONS.get(subject.class_name, {})
    if not table:
        return ()
    names = draw(st.lists(st.sampled_from(sorted(table)), max_size=2, unique=True))
    return tuple((name, draw(st.sampled_from(table[name]))) for name in sorted(names))
