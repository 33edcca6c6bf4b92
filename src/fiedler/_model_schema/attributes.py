"""The attributes of the classes that a model file may contain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .kinds import (
    BOOLEAN,
    NONE,
    TEXT,
    Spec,
    agree,
    any_floats,
    booleans,
    either,
    floats,
    integer,
    integers,
    is_integer,
    is_real,
    labels,
    many,
    maybe,
    named,
    one_of,
    optional,
    real,
    record,
    rows,
    size,
    strings,
)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_term(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and is_real(value[1])


def _is_vocabulary(value: Any) -> bool:
    """Whether terms are numbered 0, 1, ..., each once; compiled code of scikit-learn uses the numbers unchecked."""
    if type(value) is not dict or not all(map(_is_string, value)) or not all(map(is_integer, value.values())):
        return False
    return sorted(value.values()) == list(range(len(value)))


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
            lambda value, sizes, _: sp.issparse(value) and agree(sizes, ("n", "n"), value.shape),
        ),
        "_signed": BOOLEAN,
        "_constants": maybe(record("KernelConstants", n="n")),
        "_recall": maybe(real()),
        "_loops": maybe(floats("n", low=0)),
    },
    "Candidate": {
        "family": TEXT,
        "n_neighbors": maybe(integer()),
        "covariance_type": maybe(one_of("full", "tied")),
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
        "bandwidth": maybe(Spec("number > 0", lambda value, *_: is_real(value) and 0 < value < math.inf)),
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
            lambda value, sizes, _: _is_vocabulary(value) and agree(sizes, ("d",), (len(value),)),
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
        "n_clusters_": size("k"),
        "_state": record("FittedState", columns="columns", d="d", p="p", m="m", n="n", k="k"),
        "_fit_X": maybe(rows("m", "p")),
        "_fit_recipe": RECIPE,
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
        "view_": TEXT,
        "consensus_": maybe(real()),
    },
    "FittedState": {
        "completer": maybe(record("TableCompleter", columns="columns")),
        "view": maybe(record("Whitening", d="d", p="p"), record("LPI", d="d", p="p"), record("Directions", d="p")),
        "landmarks": maybe(record("Landmarks", m="m", k="k")),
        "graph": maybe(record("AffinityGraph", n="m")),
        "weights": maybe(floats("m", low=0)),
        "copies": maybe(record("CopiedRows", m="m", n="n")),
        "candidates": many(record("Candidate")),
        "n_added": integer(),
        "n_compared": maybe(integer()),
        "no_mixture_reason": maybe(TEXT),
        "profiles": maybe(record("Profiles", k="k")),
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


def format_attributes() -> str:
    """Return the table of attributes in :doc:`/file_formats`."""
    lines = ["| class | attribute | value |", "| --- | --- | --- |"]
    for name, specs in sorted(ATTRIBUTES.items()):
        for key, spec in specs.items():
            lines.append(f"| `{name}` | `{key}`{'' if spec.is_required else '?'} | {spec.text} |")
    return "\n".join([*lines, ""])
