"""``fiedler reproduce``: a paper's table made again, beside the published figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from fiedler.cli.output import Json, Output, Quiet, n_cores

from . import reproduce as work
from .layout import as_text
from .protocol import list_protocols, load_protocol
from .reproduce import Plan
from .tables import Line, failures


def reproduce(
    key: Annotated[str | None, typer.Argument(help="The paper: lapgmm, lcgmm, lpi, nle, learned_laplacian.")] = None,
    table: Annotated[str | None, typer.Option(help="One table of it.")] = None,
    figure: Annotated[str | None, typer.Option(help="One figure of it.")] = None,
    draws: Annotated[int | None, typer.Option(help="At most so many draws of each cell.", min=1)] = None,
    only: Annotated[list[str] | None, typer.Option(help="A data set, a method, or k=5; may be repeated.")] = None,
    backend: Annotated[str, typer.Option(help="numpy, torch or cupy.")] = "numpy",
    jobs: Annotated[int | None, typer.Option(help="Processes; default one a core.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Where records and results are kept.")] = Path("out") / "reproduce",
    archived: Annotated[bool, typer.Option(help="Count the records that come with fiedler.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Add the records to those in papers/.")] = False,
    run: Annotated[bool, typer.Option(help="Run what is missing, or only show what is there.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Show what there is.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make a paper's table again: run what is missing and lay it beside the published figures."""
    voice = Output(quiet, json)
    if list_all or key is None:
        voice.result(*_papers())
        return
    todo = work.plan(
        key, table=table, figure=figure, draws=draws, only=only or (), backend=backend, archived=archived, out=out
    )
    for method, package in todo.skipped.items():
        voice.note(f"left out: {todo.protocol.methods[method].label}, which needs: pip install {package}")
    planned = {"paper": key, "title": todo.protocol.title, "cells": len(todo.cells), "to_run": len(todo.todo)}
    head = f"{planned['title']}\n{planned['cells']} cells, {planned['to_run']} to run"
    if dry_run:
        voice.result(planned, head)
        return
    if not json:
        typer.echo(head)  # before the work, which may take hours
    if run and todo.todo:
        _run(todo, jobs or n_cores(), voice)
    found = work.compare(todo)
    written = work.write_results(todo, found) + ([work.archive(todo)] if keep else [])
    voice.result(
        {
            **planned,
            "tables": {name: [_plain(line) for line in lines] for name, lines in found.items()},
            "files": [str(path) for path in written],
        },
        *(_shown(todo, name, lines) for name, lines in found.items()),
        f"\nwritten to {todo.file.path.parent}: {', '.join(path.name for path in written)}",
    )


def _papers() -> tuple[dict[str, Any], str]:
    """What there is, as plain data and as text."""
    plain: dict[str, Any] = {}
    for key, title in list_protocols().items():
        protocol = load_protocol(key)
        tables = dict.fromkeys(one.table for one in protocol.experiments.values() if one.table)
        figures = sorted({name for one in protocol.experiments.values() for name in one.figures})
        plain[key] = {"title": title, "tables": [*tables], "figures": figures, "cells": len(protocol.cells())}
    lines = [
        f"{key}: {one['title']}\n  tables {', '.join(one['tables'])}; figures {', '.join(one['figures'])}; "
        f"{one['cells']} cells"
        for key, one in plain.items()
    ]
    return plain, "\n".join(lines)


def _run(todo: Plan, jobs: int, voice: Output) -> None:
    """With a bar that tells the time left; what was done when it is stopped is kept."""
    with voice.progress() as progress:
        bar = None if progress is None else progress.add_task("", total=len(todo.todo))

        def tell(record: dict[str, Any]) -> None:
            what = f"{record['data']}, {record['method']}"
            if bar is not None:
                progress.update(bar, advance=1, description=what)
            if "error" in record:
                voice.note(f"{what}: {record['error']}")

        try:
            work.carry_out(todo, n_jobs=min(jobs, len(todo.todo)), tell=tell)
        except KeyboardInterrupt:
            typer.echo("fiedler: stopped; what was done is kept, and the same command goes on from there", err=True)
            raise typer.Exit(130) from None


def _plain(line: Line) -> dict[str, Any]:
    """A line of a table; None where nothing was published, or there is nothing to compare."""
    ours, published = line.ours, line.published
    return {
        "data": line.data,
        "method": line.label,
        "place": line.place,
        "score": line.score,
        "published": None if published is None else published.value,
        "ours": ours.value,
        "error": None if math.isnan(ours.error) else ours.error,
        "draws": ours.draws,
        "mark": line.mark,
    }


def _shown(todo: Plan, name: str, lines: list[Line]) -> str:
    experiment = todo.protocol.experiments[name]
    title = f"Table {experiment.table}: {experiment.title}" if experiment.table else experiment.title
    failed = [
        f"{count} cells of {todo.protocol.methods[method].label} failed and will be tried again"
        for method, count in failures(todo.protocol, experiment, todo.records).items()
    ]
    return "\n".join([f"\n{title}", as_text(lines), *failed])
