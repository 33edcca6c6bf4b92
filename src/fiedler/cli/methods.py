"""Clustering methods of the command line, which come from the registry, and the preparation of rows for them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from .._registry import methods
from .._validation import check_range, check_rows_differ, choose, first_few, import_class
from ..errors import FiedlerWarning, InputError, warn
from ..graph.affinity import AffinityGraph
from ..io import Input
from ..table.completion import completer_of
from ..text import DocumentVectorizer

NClusters = int | Literal["auto"]

MAX_COLUMNS_WITHOUT_PCA = 20  # mixtures use up to this many columns as they are
PCA_VARIANCE = 0.98  # fraction of the variance that the principal components of more columns keep
MAX_PCA_OF_SPARSE = 100  # principal components of sparse rows

SCALES: dict[str, Callable[[], Any] | None] = {
    "standard": StandardScaler,  # columns to mean 0 and variance 1
    "range": MinMaxScaler,  # columns to [0, 1]
    "unit": Normalizer,  # rows to length 1
    "none": None,
}

SCALES_FOR_SPARSE = ("unit", "none")  # those that keep zeros

# Scales of --scale auto: columns of a table differ in their units, images in their brightness.
# The columns of a mixed table have the same variance already.
DEFAULT_SCALE = {
    "table": "standard",
    "mixed": "none",
    "array": "none",
    "images": "unit",
    "texts": "none",
    "graph": "none",
}

GRAPH_METHODS = ("auto", "spectral", "nle")  # those that take a graph instead of rows


class PreparedRows(NamedTuple):
    """Rows as the methods take them, and the fitted transformers that prepared them."""

    steps: list[tuple[str, Any]]
    rows: Any
    scale: str


def prepare(data: Input, scale: str = "auto") -> PreparedRows:
    """Turn texts into term weights and mixed columns into numbers, scale the rows, and check that they differ."""
    if data.kind == "graph":
        return _prepare_graph(data, scale)
    steps, rows = [], data.X
    if data.kind == "texts":
        vectorizer = DocumentVectorizer("tfidf")
        with naming_texts_without_terms(data, lambda: vectorizer.empty_rows_):
            steps, rows = [("terms", vectorizer)], vectorizer.fit_transform(rows)
    if data.encoder is not None:
        steps, rows = [("table", data.encoder)], data.encoder.fit_transform(rows)
    check_range(rows.data if sp.issparse(rows) else rows)
    if data.kind == "table" and data.feature_names is not None:  # passes these rows on, and completes new ones
        completer = completer_of(data.feature_names, rows)
        steps = [] if completer is None else [("table", completer)]
    scale = DEFAULT_SCALE[data.kind] if scale == "auto" else scale
    make_scaler = choose(SCALES, scale, option="scale", also=["auto"])
    if make_scaler is not None:
        if sp.issparse(rows) and scale not in SCALES_FOR_SPARSE:
            raise InputError(
                f"--scale {scale} would make sparse rows dense",
                f"use {' or '.join(SCALES_FOR_SPARSE)}",
                code="scale_of_sparse",
                parameter="scale",
                value=scale,
            )
        scaler = make_scaler()
        steps, rows = [*steps, ("scale", scaler)], scaler.fit_transform(rows)
    check_rows_differ(rows)
    return PreparedRows(steps, rows, scale)


def _prepare_graph(data: Input, scale: str) -> PreparedRows:
    if scale not in ("auto", "none"):
        raise InputError(
            f"--scale {scale} is for rows, but the cells are given by their graph",
            "leave it out, or use --use-rep X_pca or X",
            code="scale_of_graph",
            parameter="scale",
            value=scale,
        )
    return PreparedRows([], data.X, "none")


def check_takes_graph(data: Input, method: str) -> None:
    """Raise an error if a method needs rows, but the input is a graph."""
    if data.kind == "graph" and method not in GRAPH_METHODS:
        raise InputError(
            f"--method {method} needs rows, but the cells are given by their graph",
            f"use --use-rep X_pca or X, or one of --method {', '.join(GRAPH_METHODS)}",
            code="method_needs_rows",
            parameter="method",
            value=method,
        )


@contextmanager
def naming_texts_without_terms(data: Input, rows_without_terms: Callable[[], np.ndarray]) -> Iterator[None]:
    """Replace the warning about texts without known terms by one that names them; empty texts have their own."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
            names = [data.row_names[row] for row in rows_without_terms() if data.X[row].strip()]
    finally:
        for warning in caught:
            if not (isinstance(warning.message, FiedlerWarning) and warning.message.code == "no_known_terms"):
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if names:
        warn(
            f"{len(names)} document(s) contain no known word ({first_few(names)})",
            "they are kept, but are similar to no other document",
            code="no_known_terms",
            n_documents=len(names),
            row_names=names,
            stacklevel=2,
        )


def is_own(method: str) -> bool:
    """Whether a method is the class of another package, as in ``sklearn.cluster:KMeans``."""
    return ":" in method


def make_clusterer(
    method: str, n_clusters: NClusters, rows: Any, seed: int = 0, effort: str = "default", **options: Any
) -> Any:
    """Make the estimator of a method, with principal components that suit the rows, and the effort, if it has these.

    Further options that are not None must be parameters of the estimator.
    """
    estimator = import_class(method) if is_own(method) else methods()[method].load()
    params = {
        "n_clusters": n_clusters,
        "random_state": seed,
        "pca": n_principal_components(rows),
        "effort": effort,
    }
    accepted = inspect.signature(estimator).parameters
    for name, value in options.items():
        if value is not None and name not in accepted:
            raise InputError(
                f"--method {method} does not take --{name.replace('_', '-')}",
                "use --method auto",
                code="option_not_supported",
                parameter=name,
            )
    params |= options
    if "n_clusters" not in accepted:  # as in scikit-learn's mixtures
        params["n_components"] = n_clusters
    return estimator(**{name: value for name, value in params.items() if name in accepted})


def n_principal_components(rows: Any) -> float | int | None:
    """Choose ``pca``: None for few columns, a fixed number for sparse rows, otherwise a fraction of the variance."""
    if isinstance(rows, AffinityGraph):
        return None
    if sp.issparse(rows):
        return max(1, min(MAX_PCA_OF_SPARSE, *(size - 1 for size in rows.shape)))
    return None if rows.shape[1] <= MAX_COLUMNS_WITHOUT_PCA else PCA_VARIANCE


def parse_n_clusters(text: str) -> NClusters:
    """Parse ``-k``."""
    if text == "auto":
        return "auto"
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InputError(
            f"-k must be an integer of at least 1, or auto; got {text!r}",
            code="invalid_parameter",
            parameter="n_clusters",
            value=text,
        )
    return int(text)


def check_rows_for_clusters(data: Input, n_clusters: NClusters) -> None:
    """Raise an error for a single row, more clusters than rows, or fewer clusters than partially known classes."""
    if data.n_rows < 2:
        raise InputError("there is only one row", "use at least two rows", code="too_few_rows", n_samples=data.n_rows)
    if n_clusters == "auto":
        return
    if n_clusters > data.n_rows:
        raise InputError(
            f"-k {n_clusters} is more than the {data.n_rows} rows",
            f"choose at most {data.n_rows}",
            code="n_clusters_too_large",
            parameter="n_clusters",
            value=n_clusters,
            n_samples=data.n_rows,
        )
    classes = data.class_names or []
    if data.is_partially_labeled and n_clusters < len(classes):
        raise InputError(
            f"-k {n_clusters} is less than the {len(classes)} classes of the known labels ({first_few(classes)})",
            f"choose at least {len(classes)}, or -k auto",
            code="fewer_clusters_than_classes",
            parameter="n_clusters",
            value=n_clusters,
            n_classes=len(classes),
        )
