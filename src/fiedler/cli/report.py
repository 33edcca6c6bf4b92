"""``fiedler report``: write the HTML report of a folder of results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..report import read_summary, write_report
from .options import Json, Quiet
from .output import Output
from .results import PAGE_FILE, SUMMARY_FILE, check_file, finish_results


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
