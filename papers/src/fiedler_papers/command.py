"""``fiedler reproduce``, which reproduces a table of a paper, and ``fiedler data``, which lists and loads data sets.

The entry points ``fiedler.commands`` of this distribution add them to the command line of fiedler.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from fiedler.cli.options import Json, Quiet
from fiedler.cli.output import Output, n_cores
from fiedler.datasets import is_available, list_datasets, load

from .layout import as_text, published_value
from .protocol import TEST_PROTOCOL, list_protocols, load_protocol
from .records import Record
from .reproduce import Plan, add_to_archive, compare_with_published, make_plan, run_plan, write_results
from .tables import TableLine, count_failures


def reproduce(
    key: Annotated[str | None, typer.Argument(help="The paper: lapgmm, lcgmm, lpi, nle, learned_laplacian.")] = None,
    table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
    figure: Annotated[str | None, typer.Option(help="Only this figure.")] = None,
    draws: Annotated[int | None, typer.Option(help="Maximum number of draws per cell.", min=1)] = None,
    only: Annotated[list[str] | None, typer.Option(help="A data set, a method, or k=5; can be repeated.")] = None,
    backend: Annotated[str, typer.Option(help="numpy, torch or cupy.")] = "numpy",
    jobs: Annotated[int | None, typer.Option(help="Number of processes; one per core by default.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Folder for records and results.")] = Path("out") / "reproduce",
    archived: Annotated[bool, typer.Option(help="Use the records that come with fiedler-papers.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Add the records to the archive in papers/.")] = False,
    run: Annotated[bool, typer.Option(help="Run missing cells, or only show the existing records.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how many cells would be run, and exit.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the papers with their tables and figures.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce a table of a paper: run missing cells and compare the results with the published figures."""
    output = Output(quiet, json)
    if list_all or key is None:
        output.result(*_list_papers())
        return
    plan = make_plan(
        key, table=table, figure=figure, draws=draws, only=only or (), backend=backend, archived=archived, out=out
    )
    for method, package in plan.skipped.items():
        output.note(f"{plan.protocol.methods[method].label} is skipped; it needs: pip install {package}")
    summary = {
        "paper": key,
        "title": plan.protocol.title,
        "cells": len(plan.cells),
        "to_run": len(plan.cells_to_run),
    }
    heading = f"{summary['title']}\n{summary['cells']} cells, {summary['to_run']} to run"
    if dry_run:
        output.result(summary, heading)
        return
    if not json:
        typer.echo(heading)  # before the run, which can take hours
    if run and plan.cells_to_run:
        _run(plan, jobs or n_cores(), output)
    tables = compare_with_published(plan)
    written = write_results(plan, tables) + ([add_to_archive(plan)] if keep else [])
    output.result(
        {
            **summary,
            "tables": {name: [_as_dict(line) for line in lines] for name, lines in tables.items()},
            "files": [str(path) for path in written],
        },
        *(_table_text(plan, name, lines) for name, lines in tables.items()),
        f"\nwritten to {plan.record_file.path.parent}: {', '.join(path.name for path in written)}",
    )


def _list_papers() -> tuple[dict[str, Any], str]:
    """Return all papers with their tables and figures, as a dictionary and as text."""
    papers: dict[str, Any] = {}
    for key, title in list_protocols().items():
        if key == TEST_PROTOCOL:
            continue
        protocol = load_protocol(key)
        experiments = protocol.experiments.values()
        papers[key] = {
            "title": title,
            "tables": list(dict.fromkeys(experiment.table for experiment in experiments if experiment.table)),
            "figures": sorted({name for experiment in experiments for name in experiment.figures}),
            "cells": len(protocol.cells()),
        }
    texts = [
        f"{key}: {paper['title']}\n  tables {', '.join(paper['tables'])}; figures {', '.join(paper['figures'])}; "
        f"{paper['cells']} cells"
        for key, paper in papers.items()
    ]
    return papers, "\n".join(texts)


def _run(plan: Plan, n_jobs: int, output: Output) -> None:
    """Run a plan with a progress bar; finished cells stay saved when it is interrupted."""
    with output.progress() as progress:
        bar = None if progress is None else progress.add_task("", total=len(plan.cells_to_run))

        def report(record: Record) -> None:
            description = f"{record['data']}, {record['method']}"
            if bar is not None:
                progress.update(bar, advance=1, description=description)
            if "error" in record:
                output.note(f"{description}: {record['error']}")

        try:
            run_plan(plan, n_jobs=min(n_jobs, len(plan.cells_to_run)), on_record=report)
        except KeyboardInterrupt:
            typer.echo("fiedler: interrupted; finished cells are saved, run the same command to continue", err=True)
            raise typer.Exit(130) from None


def _as_dict(line: TableLine) -> dict[str, Any]:
    """Return a line for JSON; None where nothing was published or nothing can be compared."""
    ours = line.ours
    return {
        "data": line.data,
        "method": line.label,
        "place": line.place,
        "score": line.score,
        "published": published_value(line),
        "ours": ours.value,
        "error": None if math.isnan(ours.error) else ours.error,
        "draws": ours.draws,
        "mark": line.mark,
    }


def _table_text(plan: Plan, name: str, lines: list[TableLine]) -> str:
    experiment = plan.protocol.experiments[name]
    title = f"Table {experiment.table}: {experiment.title}" if experiment.table else experiment.title
    failures = [
        f"{count} cells of {plan.protocol.methods[method].label} failed; they will be run again next time"
        for method, count in count_failures(plan.protocol, experiment, plan.records).items()
    ]
    return "\n".join([f"\n{title}", as_text(lines), *failures])


def list_data(json: Json = False) -> None:
    """List the data sets and whether they are available on this machine."""
    rows = {name: {"about": about, "available": is_available(name)} for name, about in list_datasets().items()}
    cells = [(name, "yes" if row["available"] else "-", row["about"]) for name, row in rows.items()]
    lines = "\n".join(f"{name:16} {mark:9} {about}" for name, mark, about in [("name", "available", "about"), *cells])
    Output(json=json).result(rows, lines)


def get_data(
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
