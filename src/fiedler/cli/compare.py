"""``fiedler compare``: several methods on the same rows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from sklearn.metrics import silhouette_score

from .._files import atomic_write
from .._registry import methods
from .._validation import choose, import_class
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.recipes import default_recipe
from ..graph.weights import weigh_graph
from ..io import Input, read_input
from ..metrics import score_table
from ..report.cards import jsonable
from .fitting import (
    NClusters,
    PreparedRows,
    accepts,
    check_rows_for_clusters,
    check_takes_graph,
    choose_number,
    fit,
    is_own,
    label_scores,
    parse_n_clusters,
    prepare,
    takes_weights,
)
from .options import Clusters, Reading, Scale, Seed, Source
from .output import EXPECTED, Output, make_table, render
from .results import check_file

DEFAULT_METHODS = ("auto", "lapgmm", "spectral", "lpi", "gmm", "kmeans")
SILHOUETTE_SAMPLE = 5000  # maximum number of rows for the silhouette
COLUMN_TITLES = {"clusters": "K", "modularity": "mod.", "silhouette": "silh.", "seconds": "s", "peak_mb": "MB"}


def compare(
    *,
    source: Source,
    k: Clusters,
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods to compare, separated by commas: {', '.join(methods())}, or an estimator of another package "
            "or of your own, such as sklearn.cluster:KMeans."
        ),
    ] = ",".join(DEFAULT_METHODS),
    reading: Reading,
    scale: Scale = "auto",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the table to a CSV file.")] = None,
    output: Output,
) -> None:
    """Compare methods by scores with and without known labels, time and memory.

    The normalised cut (lower is better) and the modularity (higher is better) are measured on the same graph for all
    methods, the silhouette on the rows. No single score decides: each favours the method that optimises it.
    """
    names, n_clusters = _parse_methods(methods), parse_n_clusters(k)
    check_file(out)
    with output.working(f"reading {source}"):
        data = read_input(source, allow_graph=False, **reading.keywords())
        check_rows_for_clusters(data, n_clusters)
        for name in names:
            check_takes_graph(data, name)
        prepared = prepare(data, scale)
    for note in _left_out(data, names):
        output.note(note)
    evidence, rows = None, []
    if n_clusters == "auto":
        with output.working("choosing the number of clusters"):
            n_clusters, evidence = choose_number(prepared, data.weights, seed=seed)
    with output.working("building the graph"):
        scorer = UnsupervisedScorer(prepared.rows, seed, data.weights)
    for i, name in enumerate(names, start=1):
        with output.working(f"{name} ({i} of {len(names)})"):
            rows.append(_fit_and_score(data, prepared, name, n_clusters, seed, scorer))
    if all("failed" in row for row in rows):
        raise InputError(
            f"no method could be fitted; {rows[0]['method']}: {rows[0]['failed']}", code="all_methods_failed"
        )
    if out is not None:
        _write_csv(out, rows)
    output.result(
        {"rows": data.n_rows, "skipped": list(data.skipped), "methods": rows, "evidence": jsonable(evidence)},
        *([] if evidence is None else [f"{evidence}\n"]),
        _as_table(f"{data.n_rows} rows", rows),
        *(f"{row['method']} failed: {row['failed']}" for row in rows if "failed" in row),
        *([] if out is None else [f"written to {out}"]),
    )


def _left_out(data: Input, names: list[str]) -> list[str]:
    """Say which methods are fitted without the labels or weights that are given."""
    left_out = {
        "labels": [name for name in names if data.is_partially_labeled and not accepts(name, "labels")],
        "weights of rows": [name for name in names if data.weights is not None and not takes_weights(name)],
    }
    notes = []
    for kind, without in left_out.items():
        do, are = ("do", "are") if len(without) > 1 else ("does", "is")
        if without:
            notes.append(f"{', '.join(without)} {do} not accept {kind} and {are} fitted without them")
    return notes


def _parse_methods(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("--methods is empty", f"choose some of {', '.join(methods())}", code="invalid_parameter")
    for name in names:
        import_class(name) if is_own(name) else choose(methods(), name, option="methods")
    return names


class UnsupervisedScorer:
    """Scores of labels that need no known classes, on the same graph and rows for every method."""

    def __init__(self, rows: Any, seed: int, weights: np.ndarray | None = None) -> None:
        self.rows, self.seed, self.has_rows = rows, seed, not isinstance(rows, AffinityGraph)
        self.graph = weigh_graph(default_recipe(rows.shape[0]).build(rows) if self.has_rows else rows, weights)

    def score(self, labels: np.ndarray) -> dict[str, float]:
        """Return cut and modularity and, for two or more clusters of rows, the silhouette."""
        scores = score_table(None, labels, self.graph)
        if self.has_rows and 1 < len(np.unique(labels)) < len(labels):
            size = min(SILHOUETTE_SAMPLE, len(labels))
            scores["silhouette"] = float(silhouette_score(self.rows, labels, sample_size=size, random_state=self.seed))
        return scores


def _fit_and_score(
    data: Input, prepared: PreparedRows, method: str, n_clusters: NClusters, seed: int, scorer: UnsupervisedScorer
) -> dict[str, Any]:
    """Return a method's row of the table, or the reason why it could not be fitted."""
    supervised = data if accepts(method, "labels") else data._replace(labels=None)
    supervised = supervised if takes_weights(method) else supervised._replace(weights=None)
    try:
        fitted = fit(supervised, prepared, method, n_clusters, seed=seed)
    except EXPECTED as error:
        return {"method": method, "failed": render(error)}
    return {
        "method": method,
        "clusters": len(np.unique(fitted.labels)),
        **scorer.score(fitted.labels),
        **label_scores(data, fitted.labels),
        "seconds": round(fitted.seconds, 3),
        "peak_mb": fitted.peak_mb,
    }


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _as_table(title: str, rows: list[dict[str, Any]]) -> Table:
    columns = [name for name in _columns(rows) if name != "failed"]
    cells = [[_format(row.get(column)) for column in columns] for row in rows]
    return make_table(title, *(COLUMN_TITLES.get(name, name) for name in columns), rows=cells)


def _format(value: Any) -> str:
    if value is None:
        return "-"
    return f"{round(value, 3) + 0:.3f}" if isinstance(value, float) else str(value)  # + 0 turns -0.0 into 0.0


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns(rows))
        writer.writeheader()
        writer.writerows(rows)
