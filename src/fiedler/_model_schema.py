"""What the objects in a model file consist of: the attributes of each class, with their types and sizes.

:data:`ATTRIBUTES` is the specification that :doc:`/file_formats` prints. Letters in it are sizes: within one object all
attributes that name a letter must agree on it, and an object in an object passes some of its letters on. Parameters of
constructors are checked against their annotations, or against the constraints that scikit-learn declares.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import validate_parameter_constraints

from .graph.affinity import AffinityGraph, check_weights

MAX_THREADS = 1024  # that a parameter n_jobs may ask for
FLOATS, INTEGERS, BOOLEANS = "f", "iu", "b"

Sizes: TypeAlias = dict[str, int]
SizesOf: TypeAlias = Callable[[Any], Sizes]  # the sizes of an object that has been checked


class Spec(NamedTuple):
    """What a value must be: in words, and as a test that also notes down the sizes that it finds."""

    text: str
    matches: Callable[[Any, Sizes, SizesOf], bool]


# --------------------------------------------------------------------------------------------------- kinds of values


def _agree(sizes: Sizes, letters: Sequence[str | int], shape: Sequence[int]) -> bool:
    """Whether a shape has the sizes that its letters stand for; those of new letters are noted down."""
    if len(letters) != len(shape):
        return False
    return all(
        size == (letter if isinstance(letter, int) else sizes.setdefault(letter, size))
        for letter, size in zip(letters, shape)
    )


def _array(
    kinds: str, word: str, letters: tuple[str | int, ...], is_valid: Callable[[np.ndarray, Sizes], bool]
) -> Spec:
    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in kinds
        return is_array and _agree(sizes, letters, value.shape) and (not value.size or is_valid(value, sizes))

    shape = ", ".join(map(str, letters)) + ("," if len(letters) == 1 else "")
    return Spec(f"{word} ({shape})", matches)


def floats(*letters: str | int, low: float = -math.inf) -> Spec:
    """Describe an array of finite numbers, of at least ``low``."""
    word = "float" if low == -math.inf else f"float ≥ {low:g}"
    return _array(FLOATS, word, letters, lambda value, _: bool(np.isfinite(value).all()) and bool(value.min() >= low))


def any_floats(*letters: str | int) -> Spec:
    """Describe an array of numbers, infinity or NaN."""
    return _array(FLOATS, "float or NaN", letters, lambda value, _: True)


def integers(*letters: str | int, low: int = 0, below: str | None = None) -> Spec:
    """Describe an array of integers from ``low``, and less than the size ``below``."""

    def is_valid(value: np.ndarray, sizes: Sizes) -> bool:
        return bool(value.min() >= low) and (below is None or int(value.max()) < sizes.get(below, math.inf))

    return _array(INTEGERS, f"int ≥ {low}" + (f" and < {below}" if below else ""), letters, is_valid)


def booleans(*letters: str | int) -> Spec:
    """Describe an array of truth values."""
    return _array(BOOLEANS, "bool", letters, lambda value, _: True)


def labels(*letters: str | int) -> Spec:
    """Describe an array of classes, which may be numbers or strings."""
    return _array("biufUSO", "int, float, bool or string", letters, lambda value, _: True)


def strings(*letters: str | int) -> Spec:
    """Describe an array of strings."""
    return _array("UO", "string", letters, lambda value, _: True)


def rows(n: str, d: str) -> Spec:
    """Describe rows of finite numbers, an array or a sparse matrix."""

    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        is_matrix = (isinstance(value, np.ndarray) or sp.issparse(value)) and value.dtype.kind in "biuf"
        return is_matrix and _agree(sizes, (n, d), value.shape) and bool(np.isfinite(_entries(value)).all())

    return Spec(f"number ({n}, {d}), dense or sparse", matches)


def _entries(matrix: Any) -> np.ndarray:
    return matrix.data if sp.issparse(matrix) else matrix


def real(low: float = -math.inf) -> Spec:
    """Describe a number of at least ``low``; NaN and infinity are numbers unless there is a bound."""
    text = "number" if low == -math.inf else f"number ≥ {low:g}"
    return Spec(text, lambda value, *_: _is_real(value) and (low == -math.inf or low <= value < math.inf))


def integer(low: int = 0) -> Spec:
    """Describe an integer of at least ``low``."""
    return Spec(f"integer ≥ {low}", lambda value, *_: _is_integer(value) and value >= low)


def size(letter: str) -> Spec:
    """Describe an integer that is a size."""
    return Spec(f"integer, {letter}", lambda value, sizes, _: _is_integer(value) and _agree(sizes, (letter,), (value,)))


def one_of(*options: Any) -> Spec:
    """Describe one of some strings, or None."""
    return Spec(" or ".join(map(repr, options)), lambda value, *_: isinstance(value, str | None) and value in options)


def record(*names: str, **letters: str) -> Spec:
    """Describe an object of one of some classes; ``letters`` says which of its sizes are which of this object."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        if type(value).__name__ not in names:
            return False
        inner = sizes_of(value)
        pairs = [(outer, inner[own]) for own, outer in letters.items() if own in inner]
        return _agree(sizes, [outer for outer, _ in pairs], [number for _, number in pairs])

    passed_on = ", ".join(own if own == outer else f"{own} = {outer}" for own, outer in letters.items())
    return Spec(" or ".join(names) + (f" ({passed_on})" if passed_on else ""), matches)


def either(*specs: Spec) -> Spec:
    """Describe a value that is described by one of several specifications."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        for spec in specs:
            found = dict(sizes)
            if spec.matches(value, found, sizes_of):
                sizes.update(found)
                return True
        return False

    return Spec(", or ".join(spec.text for spec in specs), matches)


def maybe(*specs: Spec) -> Spec:
    """Describe a value that may also be None."""
    return either(*specs, NONE)


def many(item: Spec, letter: str = "") -> Spec:
    """Describe a list, of a length that is a size."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        is_list = isinstance(value, list) and (not letter or _agree(sizes, (letter,), (len(value),)))
        return is_list and all(item.matches(one, sizes, sizes_of) for one in value)

    return Spec(f"list of {letter + ' times ' if letter else ''}{item.text}", matches)


def named(key: Spec, item: Spec) -> Spec:
    """Describe a dictionary."""

    def matches(value: Any, sizes: Sizes, sizes_of: SizesOf) -> bool:
        return type(value) is dict and all(
            key.matches(name, sizes, sizes_of) and item.matches(one, sizes, sizes_of) for name, one in value.items()
        )

    return Spec(f"dict of {key.text}: {item.text}", matches)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


NONE = Spec("None", lambda value, *_: value is None)
TEXT = Spec("string", lambda value, *_: isinstance(value, str))
BOOLEAN = Spec("bool", lambda value, *_: isinstance(value, bool | np.bool_))


# ----------------------------------------------------------------------------------------------- attributes of classes

RECIPES = ("KNNGraph", "RadiusGraph", "FullGraph", "LabelGraph", "LandmarkGraph", "LearnedLaplacian")
VIEWS = ("Whitening", "Directions")
GRAPH = maybe(record("AffinityGraph", n="n"))
RECIPE = maybe(record(*RECIPES), record("AffinityGraph"), rows("given_rows", "given_columns"), one_of("precomputed"))
FEATURES: dict[str, Spec] = {"n_features_in_": size("d"), "feature_names_in_": strings("d")}
ENDED: dict[str, Spec] = {"n_iter_": integer(), "converged_": BOOLEAN}
HISTORY: dict[str, Spec] = {"history_": record("FitHistory"), **ENDED}
FIT_ROWS: dict[str, Spec] = {"_fit_X": maybe(rows("m", "d")), "_fit_recipe": RECIPE}
OUTPUT: dict[str, Spec] = {"_sklearn_output_config": named(TEXT, TEXT)}

_MIXTURE: dict[str, Spec] = {
    **FEATURES,
    "_projection": maybe(record("Projection", d="d", p="p")),
    "_model": record("Gaussians", k="k", d="p"),
    "weights_": floats("k", low=0),
    "means_": floats("k", "p"),
    "covariances_": either(floats("k", "p", "p"), floats("p", "p"), floats("k", "p"), floats("k")),
    **HISTORY,
    "objective_": real(),
    "likelihood_": real(),
    "penalty_": real(),
    "memberships_": floats("n", "k"),
    "labels_": integers("n", low=-1, below="k"),
    "graph_": GRAPH,
    "_fit_X": maybe(rows("n", "d")),
    "_fit_recipe": RECIPE,
    "lam_": real(0),
}
_SVD: dict[str, Spec] = {
    "components_": floats("p", "d"),
    "explained_variance_": any_floats("p"),
    "explained_variance_ratio_": any_floats("p"),
    "singular_values_": any_floats("p"),
}

# The attributes of an object, other than the parameters of its constructor. Not all of them are always there.
ATTRIBUTES: dict[str, dict[str, Spec]] = {
    "AffinityGraph": {
        "_weights": Spec(
            "symmetric float (n, n), sparse",
            lambda value, sizes, _: sp.issparse(value) and _agree(sizes, ("n", "n"), value.shape),
        ),
        "_signed": BOOLEAN,
        "_constants": maybe(record("KernelConstants", n="n")),
        "_recall": maybe(real()),
        "_loops": maybe(floats("n", low=0)),
    },
    "Candidate": {
        "family": TEXT,
        "graph": TEXT,
        "detail": TEXT,
        "n_clusters": size("k"),
        "labels": integers("n", low=-1),
        **dict.fromkeys(("cut", "modularity", "icl", "resolution", "agreement", "seconds", "consensus"), real()),
        "view": TEXT,
    },
    "ColumnEncoding": {
        "name": TEXT,
        "kind": one_of("number", "date", "category", "text"),
        "how": TEXT,
        "center": floats("w"),
        "scale": real(),
        "levels": many(TEXT),
        "has_other": BOOLEAN,
        "known": many(TEXT),
        "vectorizer": maybe(record("DocumentVectorizer", d="terms")),
        "components": maybe(record("TruncatedSVD", d="terms", p="w")),
    },
    "CopiedRows": {"first": integers("m", below="n"), "nodes": integers("n", below="m")},
    "FitHistory": {
        "objective": any_floats("t"),
        "maximize": BOOLEAN,
        "terms": named(TEXT, any_floats("t")),
        "iterations": integers("t"),
    },
    "GaussianOfRows": {"mean": floats("d"), "covariance": floats("d", "d")},
    "Gaussians": {
        "weights": floats("k", low=0),
        "means": floats("k", "d"),
        "kind": one_of("full", "tied", "diag", "spherical"),
        **dict.fromkeys(
            ("covariances", "factors"), either(floats("k", "d", "d"), floats("d", "d"), floats("k", "d"), floats("k"))
        ),
        "origin": floats("d"),
        "ridge": real(0),
    },
    "KernelConstants": {
        "bandwidth": maybe(real(0)),
        "degree": integer(),
        "scales": maybe(floats("n", low=0)),
        "metric": maybe(floats("r", "d")),
        "neighbors": maybe(integer(1)),
    },
    "Landmarks": {
        "numbers": integers("m", below="n"),
        "n_rows": size("n"),
        "memberships": floats("m", "k"),
        "agreement": maybe(any_floats("m")),
        "is_drawn": booleans("m"),
    },
    "LowRankAffinity": {"factor": floats("n", "m")},
    "NClustersChoice": {
        "n_clusters": integer(1),
        "by": TEXT,
        "candidates": many(integer(1), "c"),
        **dict.fromkeys(("gaps", "stability", "stability_error", "modularity"), maybe(many(real(), "c"))),
        "clusterability": maybe(real()),
    },
    "PairwiseConstraints": {
        "n_samples": size("n"),
        "must_link": integers("must", 2, below="n"),
        "cannot_link": integers("cannot", 2, below="n"),
        "strength": real(0),
        "hard": BOOLEAN,
    },
    "Profiles": {
        "columns": many(TEXT, "m"),
        "kinds": many(TEXT, "m"),
        "levels": many(maybe(TEXT), "m"),
        "overall": any_floats("m"),
        "scales": any_floats("m"),
        "means": any_floats("k", "m"),
        "counts": any_floats("k1", "m"),
        "terms": named(TEXT, many(many(Spec("tuple of string and number", lambda value, *_: _is_term(value))), "k")),
        "left_out": Spec("tuple of strings", lambda value, *_: type(value) is tuple and all(map(_is_string, value))),
    },
    "Projection": {"mean": floats("d"), "components": floats("d", "p")},
    "CountVectorizer": {
        "fixed_vocabulary_": BOOLEAN,
        "vocabulary_": Spec(
            "dict of d strings: each of the numbers 0, ..., d - 1",
            lambda value, sizes, _: _is_vocabulary(value) and _agree(sizes, ("d",), (len(value),)),
        ),
        "_stop_words_id": Spec("integer", lambda value, *_: _is_integer(value)),
    },
    "HashingVectorizer": {},
    "MinMaxScaler": {
        **FEATURES,
        "n_samples_seen_": integer(),
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), floats("d")),
        **OUTPUT,
    },
    "NMF": {
        **FEATURES,
        "components_": floats("p", "d", low=0),
        "_n_components": size("p"),
        "n_components_": size("p"),
        "_beta_loss": real(),
        "reconstruction_err_": real(),
        "n_iter_": integer(),
        **OUTPUT,
    },
    "Normalizer": {**FEATURES, **OUTPUT},
    "PCA": {
        **FEATURES,
        "mean_": floats("d"),
        "n_components_": size("p"),
        **_SVD,
        "noise_variance_": real(),
        "n_samples_": integer(),
        "_fit_svd_solver": TEXT,
        **OUTPUT,
    },
    "StandardScaler": {
        **FEATURES,
        "n_samples_seen_": either(real(), labels("d")),
        **dict.fromkeys(("mean_", "var_", "scale_"), maybe(floats("d"))),
        **OUTPUT,
    },
    "TfidfTransformer": {**FEATURES, "idf_": floats("d"), **OUTPUT},
    "TruncatedSVD": {**FEATURES, **_SVD, **OUTPUT},
    "ManifoldClustering": {
        "n_features_in_": size("columns"),
        "feature_names_in_": strings("columns"),
        "encoder_": maybe(record("TableEncoder", columns="columns", d="d")),
        "_view": maybe(record(*VIEWS, d="d", p="p")),
        "n_clusters_": size("k"),
        "_landmarks": maybe(record("Landmarks", m="m", k="k")),
        "_fit_X": maybe(rows("m", "p")),
        "_fit_recipe": RECIPE,
        "_fit_graph": maybe(record("AffinityGraph", n="m")),
        "_fit_weights": maybe(floats("m", low=0)),
        "_copies": maybe(record("CopiedRows", m="m", n="n")),
        "graph_": GRAPH,
        "memberships_": floats("n", "k"),
        "labels_": integers("n", low=-1, below="k"),
        "row_agreement_": maybe(any_floats("n")),
        "outlier_score_": maybe(any_floats("n")),
        "evidence_": maybe(record("NClustersChoice")),
        "candidates_": named(
            TEXT,
            Spec(
                "list of plain values",
                lambda value, *_: (
                    isinstance(value, list)
                    and all(isinstance(one, bool | int | float | str | np.generic) for one in value)
                ),
            ),
        ),
        "_candidates": many(record("Candidate")),
        "_n_added": integer(),
        "_n_compared": maybe(integer()),
        "_why_no_mixture": maybe(TEXT),
        "view_": TEXT,
        "consensus_": maybe(real()),
        "_profiles": maybe(record("Profiles", k="k")),
    },
    "LapGMM": _MIXTURE,
    "LCGMM": _MIXTURE,
    "GaussianMixture": _MIXTURE,
    "SpectralClustering": {
        **FEATURES,
        **FIT_ROWS,
        "_fit_cut": one_of("ncut", "njw", "ratio"),
        "_eigenvectors": floats("m", "p"),
        "eigenvalues_": floats("p"),
        "cluster_centers_": floats("k", "p"),
        "embedding_": floats("n", "p"),
        "labels_": integers("n", below="k"),
        "eigen_residuals_": any_floats("r"),
        "n_connected_components_": integer(1),
        "graph_": maybe(record("AffinityGraph", n="m"), record("LowRankAffinity", n="m")),
        **ENDED,
    },
    "GenieLinkage": {
        **FEATURES,
        "_fit_X": rows("n", "d"),
        "labels_": integers("n", below="n"),
        "children_": integers("n1", 2),
        "distances_": floats("n1", low=0),
        "n_clusters_": integer(1),
        "n_leaves_": size("n"),
    },
    "LPIClustering": {
        **FEATURES,
        "_soft": BOOLEAN,
        "lpi_": record("LPI", d="d", p="p"),
        "graph_": maybe(record("AffinityGraph")),
        "embedding_": floats("n", "p"),
        "cluster_centers_": floats("k", "p"),
        "labels_": integers("n", below="k"),
        "mixture_": record("GaussianMixture", d="p", k="k"),
        "memberships_": floats("n", "k"),
        **HISTORY,
        **OUTPUT,
    },
    "NLE": {
        **FEATURES,
        "_fit_recipe": RECIPE,
        "_fit_X": maybe(rows("n", "d")),
        "_signed": one_of("split", "shift"),
        "embedding_": floats("n", "k", low=0),
        "memberships_": floats("n", "k"),
        "labels_": integers("n", below="k"),
        "objective_": real(),
        **HISTORY,
        "graph_": maybe(record("AffinityGraph", n="n"), record("LowRankAffinity", n="n")),
        "outlier_scores_": any_floats("n"),
        **OUTPUT,
    },
    "EmbedKMeans": {
        **FEATURES,
        "_spherical": BOOLEAN,
        "embedder_": maybe(
            record("LPI", "PCA", "TruncatedSVD", "NMF", "Whitening", "Directions", d="d", p="p"),
            record("LaplacianEigenmaps", "NLE", "StandardScaler", "MinMaxScaler", "Normalizer", d="d"),
            record("LearnedLaplacian", "MMC", "LMNN", d="d", r="p"),
        ),
        "cluster_centers_": floats("k", "p"),
        "labels_": integers("n", below="k"),
        "embedding_": rows("n", "p"),
        "inertia_": real(),
        **ENDED,
    },
    "LPI": {
        **FEATURES,
        "_fit_recipe": RECIPE,
        "_fit_X": NONE,
        "solver_": one_of("svd", "regression"),
        "components_": floats("p", "d"),
        "mean_": floats("d"),
        "eigenvalues_": floats("p"),
        "embedding_": floats("n", "p"),
        "graph_": GRAPH,
        **ENDED,
        **OUTPUT,
    },
    "LaplacianEigenmaps": {
        **FEATURES,
        **FIT_ROWS,
        "embedding_": floats("m", "p"),
        "eigenvalues_": floats("p"),
        "eigen_residuals_": any_floats("r"),
        "n_connected_components_": integer(1),
        "graph_": maybe(record("AffinityGraph", n="m"), record("LowRankAffinity", n="m")),
        **ENDED,
        **OUTPUT,
    },
    "Whitening": {**FEATURES, "mean_": floats("d"), "components_": floats("p", "d"), "_fit_X": NONE, **OUTPUT},
    "Directions": {**FEATURES, "mean_": floats("d"), "_fit_X": NONE, **OUTPUT},
    "LearnedLaplacian": {
        **FEATURES,
        "metric_": floats("r", "d"),
        "graph_": GRAPH,
        "constraints_": maybe(record("PairwiseConstraints", n="n")),
        "penalty_": real(),
        "scale_": real(),
        "evidence_": named(real(), any_floats("e")),
        **HISTORY,
        "n_failures_": integer(),
        **OUTPUT,
    },
    "LLGC": {
        **FEATURES,
        **FIT_ROWS,
        "classes_": labels("k"),
        "_landmark_distributions": maybe(floats("m", "k")),
        "label_distributions_": floats("n", "k"),
        "transduction_": labels("n"),
        "graph_": maybe(record("AffinityGraph", n="m")),
        **ENDED,
    },
    "NMFClustering": {
        **FEATURES,
        "_nmf": record("NMF", d="d", p="k"),
        "_total": maybe(floats("d")),
        "_lengths": floats("k"),
        "components_": floats("k", "d"),
        "memberships_": floats("n", "k"),
        "labels_": integers("n", below="k"),
        "objective_": real(),
        **ENDED,
    },
    "GNMF": {
        **FEATURES,
        "components_": floats("k", "d"),
        "embedding_": floats("n", "k"),
        "labels_": integers("n", below="k"),
        "objective_": real(),
        **HISTORY,
    },
    "MMC": {**FEATURES, "metric_": floats("r", "d"), "objective_": real(), **HISTORY, **OUTPUT},
    "LMNN": {**FEATURES, "metric_": floats("r", "d"), "objective_": real(), **HISTORY, **OUTPUT},
    "MPCKMeans": {
        **FEATURES,
        "cluster_centers_": floats("k", "d"),
        "metrics_": floats("k", "d"),
        "labels_": integers("n", below="k"),
        "objective_": real(),
        **HISTORY,
    },
    "DocumentVectorizer": {
        "_counter": record("CountVectorizer", "HashingVectorizer", d="d"),
        "vocabulary_": Spec("the vocabulary of _counter", lambda value, *_: _is_vocabulary(value)),
        "_idf": maybe(record("TfidfTransformer", d="d")),
        "empty_rows_": integers("empty"),
    },
    "TableEncoder": {
        "n_features_in_": size("columns"),
        "feature_names_in_": strings("columns"),
        "encodings_": many(record("ColumnEncoding")),
        "plan_": TEXT,
        "uses_": named(TEXT, TEXT),
        "gaussian_": record("GaussianOfRows", d="d"),
        "smoothing_": floats("d", "d"),
        **HISTORY,
        **OUTPUT,
    },
}


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_term(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and _is_real(value[1])


def _is_vocabulary(value: Any) -> bool:
    """Whether terms are numbered 0, 1, ..., each once; compiled code of scikit-learn uses the numbers unchecked."""
    if type(value) is not dict or not all(map(_is_string, value)) or not all(map(_is_integer, value.values())):
        return False
    return sorted(value.values()) == list(range(len(value)))


# ------------------------------------------------------------------------------------------------ checks of one object


def _check_graph(state: Mapping[str, Any]) -> None:
    check_weights(state["_weights"], signed=bool(state["_signed"]))


def _check_vectorizer(state: Mapping[str, Any]) -> None:
    """Check that documents are texts: otherwise they would be names of files, which scikit-learn reads."""
    if state.get("input") != "content":
        raise ValueError("its vectorizer reads files, not texts")


def _check_gaussians(state: Mapping[str, Any]) -> None:
    k, d = state["means"].shape
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[state["kind"]]
    if any(state[name].shape != shape for name in ("covariances", "factors")):
        raise ValueError(f"the covariances of its Gaussians are not of kind {state['kind']!r}")


# What the attributes of a class must have to do with each other, besides their sizes.
RELATIONS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "AffinityGraph": _check_graph,
    "CountVectorizer": _check_vectorizer,
    "HashingVectorizer": _check_vectorizer,
    "Gaussians": _check_gaussians,
}


def check_state(cls: type, state: Mapping[str, Any], sizes_of: SizesOf) -> Sizes:
    """Check the attributes of an object, parameters among them, and return its sizes.

    Classes without a row in :data:`ATTRIBUTES`, those of other packages, have their parameters checked only.
    """
    name, sizes = cls.__name__, dict[str, int]()
    parameters = _parameter_names(cls) - ATTRIBUTES.get(name, {}).keys()
    check_parameters(cls, {key: value for key, value in state.items() if key in parameters})
    if name not in ATTRIBUTES:
        return sizes
    if unknown := [key for key in state if key not in ATTRIBUTES[name] and key not in parameters]:
        raise ValueError(f"its {name} has unknown attributes: {', '.join(unknown)}")
    for key, spec in ATTRIBUTES[name].items():
        if key in state and not spec.matches(state[key], sizes, sizes_of):
            raise ValueError(f"its {name}.{key} is not as it must be, {spec.text}")
    if name in RELATIONS:
        RELATIONS[name](state)
    return sizes


@cache
def _parameter_names(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters)


def check_parameters(cls: type, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a constructor by its annotations, or by the constraints that scikit-learn declares."""
    if (constraints := getattr(cls, "_parameter_constraints", None)) is not None:
        validate_parameter_constraints(constraints, dict(parameters), cls.__name__)
    hints = _hints(cls)
    for key, value in parameters.items():
        if key == "n_jobs" and _is_integer(value) and abs(value) > MAX_THREADS:
            raise ValueError(f"its {cls.__name__}.n_jobs is larger than {MAX_THREADS}")
        if key == "token_pattern" and isinstance(value, str):
            _check_pattern(value)
        if key in hints and not conforms(value, hints[key]):
            raise ValueError(f"its {cls.__name__}.{key} has the wrong type or an unknown value")


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"its token pattern is not a regular expression: {error}") from None


@cache
def _hints(cls: type) -> dict[str, Any]:
    if not cls.__module__.startswith("fiedler."):
        return {}
    return typing.get_type_hints(cls.__init__, localns={"AffinityGraph": AffinityGraph, "np": np})


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; numbers may be of NumPy, and an integer is a float.

    Examples
    --------
    >>> conforms(3, float | None), conforms("3", float | None), conforms("a", Literal["a", "b"])
    (True, False, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return isinstance(value, str | int) and value in arguments
    if origin in TESTS_OF_CONTAINERS:
        return TESTS_OF_CONTAINERS[origin](value, arguments)
    if arguments:
        return any(conforms(value, argument) for argument in arguments)
    return hint is Any or TESTS_OF_TYPES.get(hint, lambda value: _is_instance(value, hint))(value)


def _is_instance(value: Any, hint: Any) -> bool:
    """Whether a value is of a class, or has the methods of a protocol."""
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    return isinstance(value, hint)


def _is_sequence(value: Any, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, list | tuple) and all(conforms(one, arguments[0]) for one in value)


def _is_tuple(value: Any, arguments: tuple[Any, ...]) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == len(arguments)
    return is_pair and all(conforms(one, argument) for one, argument in zip(value, arguments))


def _is_mapping(value: Any, arguments: tuple[Any, ...]) -> bool:
    key, item = arguments
    return isinstance(value, dict) and all(conforms(name, key) and conforms(one, item) for name, one in value.items())


TESTS_OF_CONTAINERS: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    list: _is_sequence,
    Sequence: _is_sequence,
    tuple: _is_tuple,
    Mapping: _is_mapping,
}
TESTS_OF_TYPES: dict[Any, Callable[[Any], bool]] = {
    int: _is_integer,
    float: _is_real,
    bool: lambda value: isinstance(value, bool | np.bool_) or (_is_integer(value) and value in (0, 1)),
}
