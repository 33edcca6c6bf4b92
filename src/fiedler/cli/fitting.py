"""Prepare the rows of an input for the clustering methods of the registry, check the options, and fit a method."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.utils.validation import has_fit_parameter

from .._registry import methods
from .._validation import check_range, check_rows_differ, choose, first_few, import_class
from ..core.arrays import to_numpy
from ..core.parallel import available_memory, peak_memory_mb, reset_peak_memory
from ..errors import FiedlerWarning, InputError, NoKnownTermsWarning, ignore_warnings, warn
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints
from ..io import Input, read_input
from ..io.record import number_rows
from ..manifold import FitCost, estimate
from ..manifold.n_clusters import count_rows
from ..metrics import score_table
from ..table import TableEncoder
from ..table.encoder import DIVISORS, EncodedTable
from ..text import DocumentVectorizer
from .options import Reading
from .output import Output
from .results import check_append

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

# Scales of --scale auto: the encoder of a table chooses that of its columns; images differ in their brightness.
DEFAULT_SCALE = {"array": "none", "images": "unit", "texts": "none"}

SCORE_TITLES = {"NMI": "NMI (max)"}  # divided by the larger entropy, where scikit-learn takes the mean

GRAPH_METHODS = ("auto", "spectral", "nle")  # those that take a graph instead of rows


class PreparedRows(NamedTuple):
    """Rows as the methods take them, the fitted transformers that prepared them, and the table that they come from."""

    steps: list[tuple[str, Any]]
    rows: Any
    scale: str
    table: EncodedTable | None = None  # None if further steps follow


def prepare(data: Input, scale: str = "auto") -> PreparedRows:
    """Turn texts into term weights and mixed columns into numbers, scale the rows, and check that they differ."""
    if data.kind == "graph":
        if scale not in ("auto", "none"):
            problem = f"--scale {scale} is for rows, but the cells are given by their graph"
            raise InputError(problem, "leave it out, or use --use-rep X_pca or X", code="scale_of_graph")
        return PreparedRows([], data.X, "none")
    steps, rows = [], data.X
    if data.kind == "texts":
        vectorizer = DocumentVectorizer("tfidf")
        with naming_texts_without_terms(data, lambda: vectorizer.empty_rows_):
            steps, rows = [("terms", vectorizer)], vectorizer.fit_transform(rows)
    table, encoder = None, data.encoder
    if data.kind == "table":
        encoder, rows = TableEncoder(), dict(zip(data.feature_names or [], rows.T))
    if encoder is not None:
        encoder.set_params(scale=scale if scale in DIVISORS else "auto")
        table = encoder.fit_columns(rows, encoder.read(rows) if data.plan is None else data.plan)
        steps, rows = [("table", encoder)], table.rows
        if scale in DIVISORS:
            check_rows_differ(rows)
            return PreparedRows(steps, rows, scale, table)
    check_range(rows.data if sp.issparse(rows) else rows, "the input")
    scale = DEFAULT_SCALE[data.kind] if scale == "auto" else scale
    make_scaler = choose(SCALES, scale, option="scale", also=["auto"])
    if make_scaler is not None:
        if sp.issparse(rows) and scale not in SCALES_FOR_SPARSE:
            problem, hint = f"--scale {scale} would make sparse rows dense", f"use {' or '.join(SCALES_FOR_SPARSE)}"
            raise InputError(problem, hint, code="scale_of_sparse")
        scaler = make_scaler()
        steps, rows = [*steps, ("scale", scaler)], scaler.fit_transform(rows)
    check_rows_differ(rows)
    return PreparedRows(steps, rows, scale)


def read_rows(
    output: Output,
    source: str,
    reading: Reading,
    scale: str,
    n_clusters: NClusters,
    names: Iterable[str],
    *,
    append: bool = False,
    **options: Any,
) -> tuple[Input, PreparedRows]:
    """Read an input, check that it suits the methods and options, and prepare its rows."""
    with output.working(f"reading {source}"):
        data = read_input(source, **reading.keywords(), **options)
        check_rows_for_clusters(data, n_clusters)
        check_append(data, append)
        if data.kind == "graph" and (others := [name for name in names if name not in GRAPH_METHODS]):
            problem = f"--method {others[0]} needs rows, but the cells are given by their graph"
            hint = f"use --use-rep X_pca or X, or one of --method {', '.join(GRAPH_METHODS)}"
            raise InputError(problem, hint, code="method_needs_rows")
        return data, prepare(data, scale)


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
        problem = f"{len(names)} document(s) contain no known word ({first_few(names)})"
        hint = "they are in no cluster: their label is -1"
        warn(problem, hint, code="no_known_terms", n_documents=len(names), row_names=names)


def is_import_path(method: str) -> bool:
    """Whether a method is the class of another package, as in ``sklearn.cluster:KMeans``."""
    return ":" in method


def make_clusterer(
    method: str, n_clusters: NClusters, rows: Any, seed: int = 0, effort: str = "default", **options: Any
) -> Any:
    """Make the estimator of a method, with principal components that suit the rows, and the effort, if it has these.

    Further options that are not None must be parameters of the estimator.
    """
    estimator = import_class(method) if is_import_path(method) else methods()[method].load()
    params = {"n_clusters": n_clusters, "random_state": seed, "pca": n_principal_components(rows), "effort": effort}
    accepted = inspect.signature(estimator).parameters
    for name, value in options.items():
        if value is not None and name not in accepted:
            problem = f"--method {method} does not take --{name.replace('_', '-')}"
            raise InputError(problem, "use --method auto", code="option_not_supported")
    params |= options
    if "n_clusters" not in accepted:  # as in scikit-learn's mixtures
        params["n_components"] = n_clusters
    return estimator(**{name: value for name, value in params.items() if name in accepted})


def n_principal_components(rows: Any) -> float | int | None:
    """Choose ``pca``: None for few columns, a fixed number for sparse rows, otherwise a fraction of the variance."""
    if isinstance(rows, AffinityGraph):
        return None
    if sp.issparse(rows):
        if rows.shape[1] < 2:
            raise InputError("this method needs at least two columns", "use another --method", code="invalid_pca")
        return min(MAX_PCA_OF_SPARSE, *(size - 1 for size in rows.shape))
    return None if rows.shape[1] <= MAX_COLUMNS_WITHOUT_PCA else PCA_VARIANCE


def parse_n_clusters(text: str) -> NClusters:
    """Parse ``-k``."""
    if text == "auto":
        return "auto"
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InputError(f"-k must be an integer of at least 1, or auto; got {text!r}", code="invalid_parameter")
    return int(text)


def parse_levels(text: str | None, method: str) -> list[int]:
    """Parse ``--levels``: numbers of clusters, separated by commas."""
    if text is None:
        return []
    if method != "auto":
        problem = f"--method {method} does not take --levels"
        raise InputError(problem, "use --method auto", code="option_not_supported")
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isascii() and number.isdigit() and int(number) > 0 for number in numbers):
        problem = f"--levels must be numbers of clusters, separated by commas; got {text!r}"
        raise InputError(problem, "write it as in --levels 2,5", code="invalid_parameter")
    return sorted(set(map(int, numbers)))


def check_rows_for_clusters(data: Input, n_clusters: NClusters) -> None:
    """Raise an error for a single row, more clusters than rows, or fewer clusters than partially known classes."""
    if data.n_rows < 2:
        raise InputError("there is only one row", "use at least two rows", code="too_few_rows")
    if n_clusters == "auto":
        return
    if n_clusters > data.n_rows:
        problem, hint = f"-k {n_clusters} is more than the {data.n_rows} rows", f"choose at most {data.n_rows}"
        raise InputError(problem, hint, code="n_clusters_too_large")
    classes = data.class_names or []
    if data.is_partially_labeled and n_clusters < len(classes):
        problem = f"-k {n_clusters} is less than the {len(classes)} classes of the known labels ({first_few(classes)})"
        raise InputError(problem, f"choose at least {len(classes)}, or -k auto", code="fewer_clusters_than_classes")


class FittedClustering(NamedTuple):
    """A fitted pipeline and its clustering.

    ``evidence`` is why the number of clusters was chosen, where it was; ``peak_mb`` the peak memory during the fit, in
    MiB; ``cluster_names`` the classes of partially known labels that clusters stand for, None for other clusters.
    """

    model: Pipeline
    labels: np.ndarray
    memberships: np.ndarray | None
    evidence: Any
    seconds: float
    peak_mb: int | None
    cluster_names: list[str | None] | None = None

    @property
    def clusterer(self) -> Any:
        """The last step of the pipeline."""
        return self.model[-1]

    @property
    def confidence(self) -> np.ndarray | None:
        """Largest membership of each row."""
        return None if self.memberships is None else self.memberships.max(axis=1)

    @property
    def n_clusters(self) -> int:
        """Number of clusters: the columns of the memberships, or the largest label plus one."""
        return int(self.labels.max()) + 1 if self.memberships is None else self.memberships.shape[1]


def fit(
    data: Input,
    prepared: PreparedRows,
    method: str,
    n_clusters: NClusters,
    *,
    seed: int = 0,
    effort: str = "default",
    pairs: Path | None = None,
    **options: Any,
) -> FittedClustering:
    """Fit a method, with further options, to the prepared rows, guided by pairs and by partially known labels."""
    supervision = _supervision(data, method, pairs)
    reset_peak_memory()
    started, evidence = time.perf_counter(), None
    classes = (data.class_names or []) if data.is_partially_labeled else []
    if n_clusters == "auto" and method != "auto":
        at_least = max(2, len(classes)) if supervision.keys() - {"sample_weight"} else 1
        n_clusters, evidence = choose_number(prepared, data.weights, at_least)
        n_clusters = max(n_clusters, len(classes))
    clusterer = make_clusterer(method, n_clusters, prepared.rows, seed, effort, **options)
    takes_table = method == "auto" and prepared.table is not None
    with ignore_warnings(*[NoKnownTermsWarning] * (data.kind == "texts")):  # which has named them already
        clusterer.fit(prepared.table if takes_table else prepared.rows, **supervision)
    seconds = time.perf_counter() - started
    memberships = getattr(clusterer, "memberships_", None)
    result = FittedClustering(
        Pipeline([*([] if takes_table else prepared.steps), ("cluster", clusterer)]),
        to_numpy(clusterer.labels_ if hasattr(clusterer, "labels_") else clusterer.predict(prepared.rows)),
        None if memberships is None else to_numpy(memberships),
        getattr(clusterer, "evidence_", None) or evidence,
        seconds,
        peak_memory_mb(),
    )
    if not data.is_partially_labeled:
        return result
    return result._replace(cluster_names=[*classes, *[None] * (result.n_clusters - len(classes))])


def expected_cost(prepared: PreparedRows, n_clusters: NClusters, effort: str = "default") -> FitCost:
    """Estimate the time and memory of ``--method auto`` on the prepared rows."""
    rows = prepared.rows
    nnz_per_row = max(rows.nnz / rows.shape[0], 1.0) if sp.issparse(rows) else None
    n_rows, n_columns = rows.shape
    return estimate(n_rows, n_columns, n_clusters, effort=effort, dtype=rows.dtype, nnz_per_row=nnz_per_row)


def check_memory(cost: FitCost) -> None:
    """Raise an error if a fit is expected to need more memory than is free."""
    free = available_memory()
    if free is not None and cost.extra_bytes > free:
        needed = f"{cost.extra_bytes / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is free"
        problem = f"clustering {cost.n_rows} x {cost.n_columns} values needs up to {needed}"
        hint = "use fewer rows or columns, or try anyway with --no-memory-check"
        raise InputError(problem, hint, code="not_enough_memory")


def _supervision(data: Input, method: str, pairs: Path | None) -> dict[str, Any]:
    """Return the keyword arguments of ``fit`` for labels and pairs, if the method accepts them."""
    kinds = ["labels"] * data.is_partially_labeled + ["pairs"] * (pairs is not None)
    for kind in kinds:
        if not accepts(method, kind):
            hint = f"use one that does: {', '.join(name for name in methods() if accepts(name, kind))}"
            raise InputError(f"--method {method} does not accept {kind}", hint, code="supervision_not_supported")
    options: dict[str, Any] = {"y": data.labels} if data.is_partially_labeled else {}
    if data.weights is not None:
        if not takes_weights(method):
            others = ", ".join(filter(takes_weights, methods()))
            hint = f"use one that does: {others}, or leave out --row-weight"
            raise InputError(f"--method {method} does not weigh rows", hint, code="weights_not_supported")
        options["sample_weight"] = data.weights
    if pairs is not None:
        row_names = None if data.row_names == number_rows(data.n_rows) else data.row_names
        options["constraints"] = constraints = PairwiseConstraints.from_csv(pairs, data.n_rows, names=row_names)
        if constraints.n_pairs == 0:
            raise InputError(f"--pairs {str(pairs)!r} contains no pairs", "add some, or leave it out", code="no_pairs")
        if data.is_partially_labeled:
            _check_pairs_match_labels(constraints, data)
    return options


def takes_weights(method: str) -> bool:
    """Whether a method weighs rows."""
    estimator = import_class(method) if is_import_path(method) else methods()[method].load()
    return has_fit_parameter(estimator, "sample_weight")


def accepts(method: str, supervision: str) -> bool:
    """Whether a method learns from 'labels' of some rows, or from 'pairs'."""
    options = None if is_import_path(method) else methods()[method].method
    return options is not None and supervision in options.supervision


def _check_pairs_match_labels(pairs: PairwiseConstraints, data: Input) -> None:
    """Raise an error if pairs and partially known labels contradict each other."""
    labels, class_names = np.asarray(data.labels), data.class_names or []
    for kind, links, must_agree in (("must", pairs.must_link, True), ("cannot", pairs.cannot_link, False)):
        linked = labels[links]
        contradicts = (linked >= 0).all(axis=1) & ((linked[:, 0] == linked[:, 1]) != must_agree)
        if contradicts.any():
            first, second = links[contradicts][0]
            first_class, second_class = class_names[labels[first]], class_names[labels[second]]
            problem = (
                f"--pairs and --labels contradict each other: rows {first} and {second} are a {kind}-link, but their "
                f"labels are {first_class!r} and {second_class!r}"
            )
            raise InputError(problem, "correct one of them", code="pairs_contradict_labels")


def choose_number(prepared: PreparedRows, weights: np.ndarray | None = None, at_least: int = 1) -> tuple[int, Any]:
    """Choose the number of clusters as ManifoldClustering does; return it and the evidence."""
    choice = count_rows(prepared.rows, weights, min_clusters=at_least)
    return choice.n_clusters, choice


def label_scores(data: Input, labels: np.ndarray) -> dict[str, float]:
    """Score clusters against known labels; empty where there are none, or where they were used in the fit."""
    return {} if data.labels is None or data.is_partially_labeled else score_table(data.labels, labels)


def format_agreement(scores: dict[str, float]) -> str:
    """Return a line with the scores of clusters against known labels."""
    listed = ", ".join(f"{SCORE_TITLES.get(name, name)} {value:.3f}" for name, value in scores.items())
    return f"agreement with the known labels: {listed}"
