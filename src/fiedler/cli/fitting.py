"""Fit one method to an input, and write its labels as a table."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from .._files import atomic_write
from .._registry import methods
from .._validation import import_class
from ..clustering import FitCost, choose_n_clusters, estimate
from ..clustering.cost_records import format_bytes
from ..clustering.n_clusters import DEFAULT_CANDIDATES
from ..core.backend import to_numpy
from ..core.memory import available_memory, peak_memory_mb, reset_peak_memory
from ..errors import InputError
from ..graph.constraints import PairwiseConstraints
from ..io import Input
from ..io.record import number_rows
from ..metrics import score_table
from .messages import printable
from .methods import NClusters, PreparedRows, is_own, make_clusterer

MEMBERSHIP_DECIMALS = 4  # in CSV files
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # with which a formula begins in spreadsheets
NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?")


class FittedClustering(NamedTuple):
    """A fitted pipeline and its clustering.

    Attributes
    ----------
    model : Pipeline
    labels : array of shape (n,)
    memberships : array of shape (n, k) or None
    evidence : NClustersChoice or None
        Why the number of clusters was chosen, where it was.
    seconds : float
    peak_mb : int or None
        Peak memory during the fit, in MiB.
    cluster_names : list of k names or None
        Classes of partially known labels that clusters stand for; None for clusters without one.
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
        n_clusters, evidence = choose_number(prepared, data.weights, seed=seed, at_least=at_least)
        n_clusters = max(n_clusters, len(classes))
    clusterer = make_clusterer(method, n_clusters, prepared.rows, seed, effort, **options)
    clusterer.fit(prepared.rows, **supervision)
    seconds = time.perf_counter() - started
    memberships = getattr(clusterer, "memberships_", None)
    result = FittedClustering(
        Pipeline([*prepared.steps, ("cluster", clusterer)]),
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
        raise InputError(
            f"clustering {cost.n_rows} x {cost.n_columns} values needs up to {format_bytes(cost.extra_bytes)} of "
            f"memory, but only {format_bytes(free)} is free",
            "use fewer rows or columns",
            code="not_enough_memory",
            n_rows=cost.n_rows,
            n_columns=cost.n_columns,
            required_gb=cost.extra_bytes / 1e9,
            available_gb=free / 1e9,
        )


def _supervision(data: Input, method: str, pairs: Path | None) -> dict[str, Any]:
    """Return the keyword arguments of ``fit`` for labels and pairs, if the method accepts them."""
    kinds = ["labels"] * data.is_partially_labeled + ["pairs"] * (pairs is not None)
    for kind in kinds:
        if not accepts(method, kind):
            others = ", ".join(name for name in methods() if accepts(name, kind))
            raise InputError(
                f"--method {method} does not accept {kind}",
                f"use one that does: {others}",
                code="supervision_not_supported",
                parameter="method",
                value=method,
                supervision=kind,
            )
    options: dict[str, Any] = {"y": data.labels} if data.is_partially_labeled else {}
    if data.weights is not None:
        _check_takes_weights(method)
        options["sample_weight"] = data.weights
    if pairs is not None:
        row_names = None if data.row_names == number_rows(data.n_rows) else data.row_names
        options["constraints"] = constraints = PairwiseConstraints.from_csv(pairs, data.n_rows, names=row_names)
        if constraints.n_pairs == 0:
            raise InputError(
                f"--pairs {str(pairs)!r} contains no pairs",
                "add some, or leave it out",
                code="no_pairs",
                file=str(pairs),
            )
        if data.is_partially_labeled:
            _check_pairs_match_labels(constraints, data)
    return options


def takes_weights(method: str) -> bool:
    """Whether a method weighs rows."""
    estimator = import_class(method) if is_own(method) else methods()[method].load()
    return has_fit_parameter(estimator, "sample_weight")


def _check_takes_weights(method: str) -> None:
    """Raise an error if a method does not weigh rows."""
    if not takes_weights(method):
        raise InputError(
            f"--method {method} does not weigh rows",
            f"use one that does: {', '.join(filter(takes_weights, methods()))}, or leave out --row-weight",
            code="weights_not_supported",
            parameter="method",
            value=method,
        )


def accepts(method: str, supervision: str) -> bool:
    """Whether a method learns from 'labels' of some rows, or from 'pairs'."""
    options = None if is_own(method) else methods()[method].method
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
            raise InputError(
                f"--pairs and --labels contradict each other: rows {first} and {second} are a {kind}-link, but their "
                f"labels are {first_class!r} and {second_class!r}",
                "correct one of them",
                code="pairs_contradict_labels",
                pair=(int(first), int(second)),
            )


def choose_number(
    prepared: PreparedRows, weights: np.ndarray | None = None, *, seed: int = 0, at_least: int = 1
) -> tuple[int, Any]:
    """Choose the number of clusters as ManifoldClustering does; return it and the evidence."""
    candidates = [k for k in DEFAULT_CANDIDATES if k >= at_least] or [at_least]
    choice = choose_n_clusters(prepared.rows, candidates, sample_weight=weights, random_state=seed)
    return choice.n_clusters, choice


def label_scores(data: Input, labels: np.ndarray) -> dict[str, float]:
    """Score clusters against known labels; empty where there are none, or where they were used in the fit."""
    return {} if data.labels is None or data.is_partially_labeled else score_table(data.labels, labels)


def format_agreement(scores: dict[str, float]) -> str:
    """Return a line with the scores of clusters against known labels."""
    return f"agreement with the known labels: {', '.join(f'{name} {value:.3f}' for name, value in scores.items())}"


def save_labels(
    path: Path,
    ids: list[str],
    labels: np.ndarray,
    memberships: np.ndarray | None,
    cluster_names: list[str | None] | None = None,
    id_name: str = "id",
) -> None:
    """Write :func:`write_labels` to a file, completely or not at all."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        write_labels(file, ids, labels, memberships, cluster_names, id_name)


def check_append(data: Input, append: bool) -> None:
    """Raise an error if there is no table to which results could be added."""
    if append and data.table is None:
        raise InputError(
            "--append is for tables, but the input is not one", "leave it out", code="no_table", parameter="append"
        )


def save_table(path: Path, data: Input, labels: np.ndarray, confidence: np.ndarray | None) -> None:
    """Write :func:`write_table` to a file, completely or not at all."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        write_table(file, data, labels, confidence)


def write_table(file: TextIO, data: Input, labels: np.ndarray, confidence: np.ndarray | None) -> None:
    """Write the columns of a table as they are in its file, with the cluster and the confidence of each row."""
    assert data.table is not None
    added: dict[str, Any] = {"cluster": labels.tolist()}
    if confidence is not None:
        added["confidence"] = [f"{value:.{MEMBERSHIP_DECIMALS}f}" for value in confidence]
    names = [_unused(name, data.table.columns) for name in added]
    columns = data.table.columns.values()
    cells = [*(cells.tolist() if isinstance(cells, np.ndarray) else cells for cells in columns), *added.values()]
    write_row = _row_writer(file)
    write_row([*data.table.columns, *names])
    for row in zip(*cells):
        write_row(row)


def _row_writer(file: TextIO) -> Callable[[Iterable[Any]], Any]:
    """Return the function that writes a row of CSV in safe cells; in a terminal, control characters are written out."""
    writer = csv.writer(file, lineterminator="\n")
    if not file.isatty():
        return lambda row: writer.writerow(map(safe_cell, row))
    return lambda row: writer.writerow(printable(c) if isinstance(c := safe_cell(cell), str) else c for cell in row)


def safe_cell(cell: Any) -> Any:
    """Return a cell of a CSV file that spreadsheets do not take for a formula: with an apostrophe in front.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-5.5"), safe_cell("Anna")
    ("'=cmd|' /C calc'!A0", '-5.5', 'Anna')
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA_SIGNS) or NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def original_cell(cell: str) -> str:
    """Return a cell as it was before :func:`safe_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_SIGNS) else cell


def _unused(name: str, taken: Container[str]) -> str:
    """Return a name that no column has."""
    while name in taken:
        name = f"{name}_"
    return name


def write_labels(
    file: TextIO,
    ids: list[str],
    labels: np.ndarray,
    memberships: np.ndarray | None,
    cluster_names: list[str | None] | None = None,
    id_name: str = "id",
) -> None:
    """Write one CSV row per sample: id, label, name of the cluster (if there are any), confidence and memberships."""
    write_row = _row_writer(file)
    shares = np.empty((len(labels), 0)) if memberships is None else memberships
    soft = [] if memberships is None else ["confidence", *(f"cluster_{k}" for k in range(shares.shape[1]))]
    write_row([id_name, "label", *(["cluster_name"] if cluster_names else []), *soft])
    for row_id, label, row in zip(ids, labels.tolist(), shares):
        name = [(cluster_names[label] if label >= 0 else None) or ""] if cluster_names else []
        numbers = [row.max(), *row] if soft else []
        write_row([row_id, label, *name, *(f"{value:.{MEMBERSHIP_DECIMALS}f}" for value in numbers)])
