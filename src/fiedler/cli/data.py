"""``fiedler data list`` and ``fiedler data get``: the data sets that fiedler can load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..datasets import is_available, list_datasets, load
from ..errors import MissingDependencyError
from ..report import read_summary, write_report
from .options import Json, Quiet
from .output import Output
from .results import PAGE_FILE, SUMMARY_FILE, check_file, finish_results


def list_all(json: Json = False) -> None:
    """List the data sets and whether they are available on this machine."""
    rows = {name: {"about": about, "available": is_available(name)} for name, about in list_datasets().items()}
    cells = [(name, "yes" if row["available"] else "-", row["about"]) for name, row in rows.items()]
    lines = "\n".join(f"{name:16} {mark:9} {about}" for name, mark, about in [("name", "available", "about"), *cells])
    Output(json=json).result(rows, lines)


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the data set, as in fiedler data list.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Download a data set, if necessary, and show its size."""
    data = load(name, verbose=not quiet)
    n_rows, n_columns = data.X.shape
    n_classes = len(data.target_names)
    Output(quiet, json).result(
        {"name": name, "rows": n_rows, "columns": n_columns, "classes": n_classes},
        f"{name}: {n_rows} rows, {n_columns} columns, {n_classes} classes",
    )


# ---------------------------------------------------------------------------------------------------------------------
# ``fiedler report``: write the HTML report of a folder of results again.


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


# ---------------------------------------------------------------------------------------------------------------------
# ``fiedler reproduce`` where the distribution that implements it is not installed.

# Any arguments are accepted, so that every call shows the installation hint.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def reproduce(context: typer.Context) -> None:
    """Reproduce the tables of papers; needs the distribution fiedler-papers."""
    raise MissingDependencyError(
        f"fiedler {context.info_name} needs the distribution fiedler-papers",
        "install it from the folder papers/ of the repository: pip install ./papers",
        module="fiedler_papers",
    )
