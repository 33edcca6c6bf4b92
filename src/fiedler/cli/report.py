"""``fiedler report`` writes the HTML report of a folder of results again; ``fiedler explain`` explains its clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.pipeline import Pipeline

from .._validation import did_you_mean
from ..errors import InputError
from ..io.record import CsvStyle
from ..manifold.explain import Explanation, RowExplanation
from ..persistence import load, read_notes
from ..report import read_summary, write_report
from ..report.cards import jsonable
from .options import Json, Quiet
from .output import Output
from .predict import read_ids
from .results import LABELS_FILE, MODEL_FILE, PAGE_FILE, SUMMARY_FILE, check_file, finish_results


def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder written by fiedler cluster.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML file; default: report.html in that folder.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the report again from a folder of results."""
    output = Output(quiet, json)
    folder = results if results.is_dir() else results.parent
    finish_results(folder)
    target = out or folder / PAGE_FILE
    check_file(target)
    with output.working("writing the report"):
        write_report(read_summary(folder / SUMMARY_FILE if results.is_dir() else results), target)
    output.result({"files": {target.name: str(target)}}, f"written to {target}")


def explain(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="A folder written by fiedler cluster, or its model.safetensors.")
    ],
    row: Annotated[
        str | None,
        typer.Argument(metavar="ROW", help="The name of a row, as in labels.csv, to explain instead of the clusters."),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what sets each cluster apart, or why a row is in its cluster."""
    output = Output(quiet, json)
    folder = results if results.is_dir() else results.parent
    finish_results(folder)
    path = folder / MODEL_FILE if results.is_dir() else results
    fitted: Any = load(path)
    model = fitted[-1] if isinstance(fitted, Pipeline) and not hasattr(fitted, "explain") else fitted
    clusterer = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    if not hasattr(clusterer, "explain"):
        problem = f"the clusters of a {type(clusterer).__name__} cannot be explained"
        raise InputError(problem, "cluster the rows with fiedler cluster --method auto", code="cannot_explain")
    names, labels = None, folder / LABELS_FILE
    if labels.exists():
        style = CsvStyle(*(read_notes(path).get("csv_style") or ()))
        names, _ = read_ids(labels, len(clusterer.labels_), style)
    with output.working("explaining the clusters"):
        explanation = model.explain(None if row is None else _row_number(row, names))
    output.result(_as_json(explanation, names), explanation.describe(names))


def _row_number(row: str, names: list[str] | None) -> int:
    """Return the number of a row from its name, or from its number where rows have no names."""
    if names is None and row.isascii() and row.isdigit():
        return int(row)
    if names is None or row not in names:
        known = names or []
        problem = f"there is no row {row!r} in {LABELS_FILE}{did_you_mean(row, known[:1000])}"
        raise InputError(problem, "pass a name from its first column", code="no_such_row", value=row)
    return names.index(row)


def _as_json(explanation: Explanation | RowExplanation, names: list[str] | None) -> dict[str, Any]:
    """Return an explanation as plain values, with the names of rows."""
    name_of = lambda row: str(row) if names is None or row is None else names[row]  # noqa: E731
    if isinstance(explanation, RowExplanation):
        neighbors = [one._asdict() | {"row": name_of(one.row)} for one in explanation.neighbors]
        return {**jsonable(explanation), "row": name_of(explanation.row), "neighbors": jsonable(neighbors)}
    clusters = []
    for one in explanation.clusters:
        contrasts = [contrast._asdict() for contrast in one.contrasts]
        borderline = [row._asdict() | {"row": name_of(row.row)} for row in one.borderline]
        typical = [name_of(row) for row in one.typical]
        clusters.append(
            {**jsonable(one), **jsonable({"contrasts": contrasts, "borderline": borderline, "typical": typical})}
        )
    return {"clusters": clusters}
