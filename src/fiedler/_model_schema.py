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
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

from .graph.affinity import AffinityGraph, check_weights

MAX_THREADS = 1024  # that a parameter n_jobs may ask for
MAX_SIZE = 2**40  # that an attribute may state
FLOATS, INTEGERS, BOOLEANS = "f", "iu", "b"

Sizes: TypeAlias = dict[str, int]
SizesOf: TypeAlias = Callable[[Any], Sizes]  # the sizes of an object that has been checked


class Spec(NamedTuple):
    """What a value must be: in words, and as a test that also notes down the sizes that it finds."""

    text: str
    matches: Callable[[Any, Sizes, SizesOf], bool]
    is_required: bool = True  # of a fitted model


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
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.dtype != np.float16
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
        is_matrix = (isinstance(value, np.ndarray) or sp.issparse(value)) and value.dtype in (np.float32, np.float64)
        return is_matrix and _agree(sizes, (n, d), value.shape) and bool(np.isfinite(_entries(value)).all())

    return Spec(f"float ({n}, {d}), dense or sparse", matches)


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

    def matches(value: Any, sizes: Sizes, _: SizesOf) -> bool:
        return _is_integer(value) and 0 <= value <= MAX_SIZE and _agree(sizes, (letter,), (value,))

    return Spec(f"integer, {letter}", matches)


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


def optional(spec: Spec) -> Spec:
    """Describe an attribute that not every fitted model has."""
    return spec._replace(is_required=False)


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
GRAPH = maybe(record("AffinityGraph", n="n"))
RECIPE = maybe(record(*RECIPES), record("AffinityGraph"), rows("given_rows", "given_columns"), one_of("precomputed"))
FEATURES: dict[str, Spec] = {"n_features_in_": size("d"), "feature_names_in_": optional(strings("d"))}
ENDED: dict[str, Spec] = {"n_iter_": integer(), "converged_": BOOLEAN}
HISTORY: dict[str, Spec] = {"history_": record("FitHistory"), **ENDED}
FIT_ROWS: dict[str, Spec] = {"_fit_X": maybe(rows("m", "d")), "_fit_recipe": RECIPE}
CONTAINERS = named(one_of("transform"), one_of("default", "pandas", "polars"))
OUTPUT: dict[str, Spec] = {"_sklearn_output_config": optional(CONTAINERS)}

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
    "memberships_": optional(floats("n", "k")),
    "labels_": optional(integers("n", low=-1, below="k")),
    "graph_": GRAPH,
    "_fit_X": maybe(rows("n", "d")),
    "_fit_recipe": RECIPE,
    "lam_": optional(real(0)),
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
        "kind": one_of("number", "date", "category", "text", "vector"),
        "how": TEXT,
        "center": floats("w"),
        "scale": real(),
        "levels": many(TEXT),
        "has_other": BOOLEAN,
        "known": many(TEXT),
        "vectorizer": maybe(record("DocumentVectorizer", d="terms")),
        "components": maybe(record("TruncatedSVD", d="terms", p="w")),
    },
    "CopiedRows": {"first": integers("m"), "nodes": integers("n", below="m")},
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
        "bandwidth": maybe(Spec("number > 0", lambda value, *_: _is_real(value) and 0 < value < math.inf)),
        "degree": integer(),
        "scales": maybe(floats("n", low=0)),
        "metric": maybe(floats("r", "d")),
        "neighbors": maybe(integer(1)),
    },
    "Landmarks": {
        "n_rows": size("n"),
        "numbers": integers("m", below="n"),
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
    },
    "HashingVectorizer": {},
    "MinMaxScaler": {
        **FEATURES,
        "n_samples_seen_": optional(integer()),
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), floats("d")),
        **OUTPUT,
    },
    "NMF": {
        **FEATURES,
        "components_": floats("p", "d", low=0),
        "_n_components": size("p"),
        "n_components_": size("p"),
        "_beta_loss": optional(real()),
        "reconstruction_err_": optional(real()),
        "n_iter_": optional(integer()),
        **OUTPUT,
    },
    "Normalizer": {**FEATURES, **OUTPUT},
    "PCA": {
        **FEATURES,
        "mean_": floats("d"),
        "n_components_": size("p"),
        **_SVD,
        "noise_variance_": optional(real()),
        "n_samples_": optional(integer()),
        "_fit_svd_solver": optional(TEXT),
        **OUTPUT,
    },
    "StandardScaler": {
        **FEATURES,
        "n_samples_seen_": optional(either(real(), labels("d"))),
        **dict.fromkeys(("mean_", "var_", "scale_"), maybe(floats("d"))),
        **OUTPUT,
    },
    "TfidfTransformer": {**FEATURES, "idf_": floats("d"), **OUTPUT},
    "TruncatedSVD": {**FEATURES, **_SVD, **OUTPUT},
    "ManifoldClustering": {
        "n_features_in_": size("columns"),
        "feature_names_in_": optional(strings("columns")),
        "encoder_": optional(maybe(record("TableEncoder", columns="columns", d="d"))),
        "_completer": optional(maybe(record("TableCompleter", columns="columns"))),
        "_view": maybe(record("Whitening", d="d", p="p"), record("LPI", d="d", p="p"), record("Directions", d="p")),
        "n_clusters_": size("k"),
        "_landmarks": maybe(record("Landmarks", m="m", k="k")),
        "_fit_X": maybe(rows("m", "p")),
        "_fit_recipe": RECIPE,
        "_fit_graph": maybe(record("AffinityGraph", n="m")),
        "_fit_weights": maybe(floats("m", low=0)),
        "_copies": maybe(record("CopiedRows", m="m", n="n")),
        "graph_": GRAPH,
        "memberships_": optional(floats("n", "k")),
        "labels_": optional(integers("n", low=-1, below="k")),
        "row_agreement_": optional(maybe(any_floats("n"))),
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
        "_fit_cut": one_of("ncut", "njw", "ratio", "association"),
        "_eigenvectors": floats("m", "p"),
        "eigenvalues_": floats("p"),
        "cluster_centers_": floats("k", "p"),
        "embedding_": optional(floats("n", "p")),
        "labels_": optional(integers("n", below="k")),
        "eigen_residuals_": any_floats("r"),
        "n_connected_components_": integer(1),
        "graph_": maybe(record("AffinityGraph", n="m"), record("LowRankAffinity", n="m")),
        "converged_": BOOLEAN,
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
        "mixture_": optional(record("GaussianMixture", d="p", k="k")),
        "memberships_": optional(floats("n", "k")),
        "history_": optional(record("FitHistory")),
        **ENDED,
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
            record(
                "LPI", "PCA", "TruncatedSVD", "NMF", "Whitening", "LaplacianEigenmaps", "HessianEigenmaps", d="d", p="p"
            ),
            record("NLE", d="d", k="p"),
            record("LearnedLaplacian", "MMC", "LMNN", d="d", r="p"),
            record("Directions", "StandardScaler", "MinMaxScaler", "Normalizer", d="p"),
        ),
        "cluster_centers_": floats("k", "p"),
        "labels_": integers("n", below="k"),
        "embedding_": optional(rows("n", "p")),
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
        "embedding_": optional(floats("n", "p")),  # a view of ManifoldClustering has neither
        "graph_": optional(GRAPH),
        **ENDED,
        **OUTPUT,
    },
    "LaplacianEigenmaps": {
        **FEATURES,
        **FIT_ROWS,
        "embedding_": floats("m", "p"),
        "eigenvalues_": floats("p"),
        "eigen_residuals_": any_floats("r"),
        "_kind": optional(one_of("random_walk", "combinatorial")),
        "n_connected_components_": integer(1),
        "graph_": maybe(record("AffinityGraph", n="m"), record("LowRankAffinity", n="m")),
        **ENDED,
        **OUTPUT,
    },
    "HessianEigenmaps": {
        **FEATURES,
        **FIT_ROWS,
        "embedding_": floats("m", "p"),
        "eigenvalues_": floats("p"),
        "eigen_residuals_": any_floats("r"),
        "n_connected_components_": integer(1),
        "graph_": record("AffinityGraph", n="m"),
        **ENDED,
        **OUTPUT,
    },
    "Whitening": {**FEATURES, "mean_": floats("d"), "components_": floats("p", "d"), "_fit_X": NONE, **OUTPUT},
    "Directions": {**FEATURES, "mean_": floats("d"), **OUTPUT},
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
        "label_distributions_": optional(floats("n", "k")),
        "transduction_": optional(labels("n")),
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
    "TransductiveSVM": {},  # has machines of scikit-learn, which are not stored, once it is fitted
    "DocumentVectorizer": {
        "_counter": record("CountVectorizer", "HashingVectorizer", d="d"),
        "vocabulary_": optional(Spec("the vocabulary of _counter", lambda value, *_: _is_vocabulary(value))),
        "_idf": maybe(record("TfidfTransformer", d="d")),
        "empty_rows_": integers("empty"),
    },
    "TableCompleter": {
        "n_features_in_": size("columns"),
        "feature_names_in_": optional(strings("columns")),
        "_names": many(TEXT),
        "center_": floats("columns"),
        "scale_": floats("columns"),
        "gaussian_": maybe(record("GaussianOfRows", d="columns")),
        **OUTPUT,
    },
    "TableEncoder": {
        "n_features_in_": size("columns"),
        "feature_names_in_": optional(strings("columns")),
        "encodings_": many(record("ColumnEncoding")),
        "plan_": TEXT,
        "uses_": named(TEXT, TEXT),
        "gaussian_": record("GaussianOfRows", d="d"),
        "smoothing_": floats("d", "d"),
        **HISTORY,
        **OUTPUT,
    },
}


# Parameters that need more than the type of their annotation, or that scikit-learn does not check.
DTYPE = Spec("type of numbers", lambda value, *_: isinstance(value, type) and issubclass(value, np.number))
NGRAMS = Spec("tuple of two integers from 1, ascending", lambda value, *_: _is_range(value))
PATTERN = Spec("regular expression", lambda value, *_: isinstance(value, str) and _is_pattern(value))
THREADS = maybe(
    Spec(f"integer up to {MAX_THREADS}", lambda value, *_: _is_integer(value) and abs(value) <= MAX_THREADS)
)
# Documents are texts: otherwise they would be names of files, which scikit-learn reads.
VECTORIZER: dict[str, Spec] = {
    "input": one_of("content"),
    "dtype": DTYPE,
    "ngram_range": NGRAMS,
    "token_pattern": PATTERN,
}
PARAMETERS: dict[str, dict[str, Spec]] = {
    "CountVectorizer": VECTORIZER,
    "HashingVectorizer": VECTORIZER,
    "DocumentVectorizer": {"ngram_range": NGRAMS, "token_pattern": PATTERN},
    "KNNGraph": {"method": TEXT, "n_jobs": THREADS},
    "RadiusGraph": {"n_jobs": THREADS},
    "GenieLinkage": {"n_jobs": THREADS},
    "ManifoldClustering": {"n_jobs": THREADS},
}


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_range(value: Any) -> bool:
    is_pair = type(value) is tuple and len(value) == 2 and all(map(_is_integer, value))
    return is_pair and 1 <= value[0] <= value[1]


def _is_pattern(value: str) -> bool:
    try:
        return bool(re.compile(value))
    except re.error:
        return False


def _is_term(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and _is_real(value[1])


def _is_vocabulary(value: Any) -> bool:
    """Whether terms are numbered 0, 1, ..., each once; compiled code of scikit-learn uses the numbers unchecked."""
    if type(value) is not dict or not all(map(_is_string, value)) or not all(map(_is_integer, value.values())):
        return False
    return sorted(value.values()) == list(range(len(value)))


# ------------------------------------------------------------------------------------------------ checks of one object


def _check_graph(state: Mapping[str, Any], sizes: Sizes) -> None:
    check_weights(state["_weights"], signed=bool(state["_signed"]))


def _check_gaussians(state: Mapping[str, Any], sizes: Sizes) -> None:
    k, d = sizes["k"], sizes["d"]
    shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[state["kind"]]
    if any(state[name].shape != shape for name in ("covariances", "factors")):
        raise ValueError(f"the covariances of its Gaussians are not of kind {state['kind']!r}")


def _check_copies(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(not sizes["m"] or state["first"].max() < sizes["n"], "row of that number")


def _check_factors(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(bool(state["components_"].any()), "component that is not zero")
    n_components = state["n_components"]  # which scikit-learn uses again for new rows; None is one for each column
    _require(n_components in (sizes["p"], "auto") or (n_components is None and sizes["p"] == sizes["d"]), "such number")


def _check_mixture(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require_equal(sizes, "d", "p", state["_projection"] is None)
    _require("memberships_" in state or state["_fit_X"] is None, "memberships")


def _check_embedder(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require_equal(sizes, "d", "p", state["embedder_"] is None)


def _check_documents(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require("mixture_" in state or not state["_soft"], "mixture")


def _check_propagation(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require("label_distributions_" in state or state["_landmark_distributions"] is not None, "label_distributions_")
    _require_equal(sizes, "m", "n", state["_landmark_distributions"] is None)


def _check_manifold(state: Mapping[str, Any], sizes: Sizes) -> None:
    view, landmarks, copies = state["_view"], state["_landmarks"], state["_copies"]
    if state.get("encoder_") is None:
        sizes.setdefault("d", sizes["columns"])
        _require_equal(sizes, "columns", "d", True)
    _require_equal(sizes, "d", "p", type(view).__name__ not in ("LPI", "Whitening"))
    _require(landmarks is not None or {"memberships_", "labels_"} <= state.keys(), "memberships")
    _require_equal(sizes, "m", "n", landmarks is None and copies is None)
    chosen = state["candidates_"].get("chosen", [])
    _require(chosen.count(True) == 1 and len(chosen) == len(state["_candidates"]), "candidate that was chosen")


def _check_table(state: Mapping[str, Any], sizes: Sizes) -> None:
    widths = sum(len(encoding.center) for encoding in state["encodings_"])
    _require(widths == sizes["d"], "column for each number")


def _check_completer(state: Mapping[str, Any], sizes: Sizes) -> None:
    _require(len(state["_names"]) == sizes["columns"] == len(set(state["_names"])), "name for each column")


def _require(is_there: bool, what: str) -> None:
    if not is_there:
        raise ValueError(f"it has no {what}")


def _require_equal(sizes: Sizes, one: str, other: str, is_required: bool) -> None:
    if is_required and sizes.get(one, sizes.get(other)) != sizes.get(other, sizes.get(one)):
        raise ValueError(f"two of its sizes differ, {sizes[one]} and {sizes[other]}")


# What the attributes of a fitted model must have to do with each other, besides their sizes.
RELATIONS: dict[str, Callable[[Mapping[str, Any], Sizes], None]] = {
    "AffinityGraph": _check_graph,
    "CopiedRows": _check_copies,
    "EmbedKMeans": _check_embedder,
    "GaussianMixture": _check_mixture,
    "Gaussians": _check_gaussians,
    "LapGMM": _check_mixture,
    "LCGMM": _check_mixture,
    "LLGC": _check_propagation,
    "LPIClustering": _check_documents,
    "ManifoldClustering": _check_manifold,
    "NMF": _check_factors,
    "TableCompleter": _check_completer,
    "TableEncoder": _check_table,
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
    others = {key: value for key, value in state.items() if key not in ATTRIBUTES[name] and key not in parameters}
    if unknown := [key for key, value in others.items() if _is_ours(cls) or not _is_scalar(value)]:
        raise ValueError(f"its {name} has unknown attributes: {', '.join(unknown)}")
    for key, spec in ATTRIBUTES[name].items():
        if key in state and not spec.matches(state[key], sizes, sizes_of):
            raise ValueError(f"its {name}.{key} is not as it must be, {spec.text}")
    required = [key for key, spec in ATTRIBUTES[name].items() if spec.is_required]
    missing = [key for key in required if key not in state] if not _is_record(cls) else []
    if 0 < len(missing) < len(required):
        raise ValueError(f"its {name} lacks {', '.join(missing)}")
    if name in RELATIONS and not missing:
        RELATIONS[name](state, sizes)
    return sizes


def _is_record(cls: type) -> bool:
    """Whether the attributes are the parameters, of which those that are required have been looked for."""
    return not issubclass(cls, BaseEstimator)


# The size of what a transformer returns, for the step of a pipeline that follows it.
RETURNED = {"StandardScaler": "d", "MinMaxScaler": "d", "Normalizer": "d", "DocumentVectorizer": "d", "Directions": "d"}
RETURNED |= dict.fromkeys(
    ("PCA", "TruncatedSVD", "NMF", "LPI", "Whitening", "LaplacianEigenmaps", "HessianEigenmaps"), "p"
)


def check_steps(steps: Sequence[Any], sizes_of: SizesOf) -> None:
    """Check that every step of a pipeline takes as many columns as the one before it returns."""
    for first, second in pairwise(steps):
        returned, taken = sizes_of(first).get(RETURNED.get(type(first).__name__, "")), sizes_of(second).get("d")
        if returned is not None and taken is not None and returned != taken:
            raise ValueError(f"a step of a pipeline returns {returned} columns, but the next one takes {taken}")


def _is_ours(cls: type) -> bool:
    """Whether a class is of this package; those of scikit-learn have further attributes, depending on its version."""
    return cls.__module__.startswith("fiedler.")


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


@cache
def _parameter_names(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters)


def check_parameters(cls: type, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a constructor by its annotations, or by the constraints that scikit-learn declares."""
    if (constraints := getattr(cls, "_parameter_constraints", None)) is not None:
        validate_parameter_constraints(constraints, dict(parameters), cls.__name__)
    hints, specs = _hints(cls), PARAMETERS.get(cls.__name__, {})
    for key, value in parameters.items():
        is_valid = specs[key].matches(value, {}, dict) if key in specs else conforms(value, hints.get(key, Any))
        if not is_valid:
            raise ValueError(f"its {cls.__name__}.{key} has the wrong type or an unknown value")


@cache
def _hints(cls: type) -> dict[str, Any]:
    if not _is_ours(cls):
        return {}
    names = {"AffinityGraph": AffinityGraph, "np": np}  # which annotations only mention
    return typing.get_type_hints(cls.__init__, localns=names)  # type: ignore[misc]


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


def format_attributes() -> str:
    """Return the table of attributes in :doc:`/file_formats`."""
    lines = ["| class | attribute | value |", "| --- | --- | --- |"]
    for name, specs in sorted(ATTRIBUTES.items()):
        for key, spec in specs.items():
            lines.append(f"| `{name}` | `{key}`{'' if spec.is_required else '?'} | {spec.text} |")
    return "\n".join([*lines, ""])
