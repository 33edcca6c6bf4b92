"""``fiedler reproduce``: a paper's table made again, beside the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import progress as bars

from ..experiments import list_protocols, load_protocol
from ..experiments import reproduce as work
from ..experiments.layout import as_text
from ..experiments.reproduce import Plan
from ..experiments.tables import Line, failures
from .voice import Debug, cores


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
    debug: Debug = False,
) -> None:
    """Make a paper's table again: run what is missing and lay it beside the published figures."""
    if list_all or key is None:
        _list_papers()
        return
    todo = work.plan(
        key, table=table, figure=figure, draws=draws, only=only or (), backend=backend, archived=archived, out=out
    )
    _say_plan(todo)
    if dry_run:
        return
    if run:
        try:
            _run(todo, jobs or cores())
        except KeyboardInterrupt:
            typer.echo("stopped; what was done is kept, and the same command goes on from there", err=True)
            raise typer.Exit(130) from None
    found = work.compare(todo)
    for name, lines in found.items():
        _print_lines(todo, name, lines)
    written = work.write_results(todo, found) + ([work.archive(todo)] if keep else [])
    typer.echo(f"\nwritten to {todo.file.path.parent}: {', '.join(path.name for path in written)}")


def _list_papers() -> None:
    for key, title in list_protocols().items():
        protocol = load_protocol(key)
        tables = dict.fromkeys(one.table for one in protocol.experiments.values() if one.table)
        figures = sorted({name for one in protocol.experiments.values() for name in one.figures})
        typer.echo(f"{key}: {title}\n  tables {', '.join(tables)}; figures {', '.join(figures)}; ", nl=False)
        typer.echo(f"{len(protocol.cells())} cells")


def _say_plan(todo: Plan) -> None:
    typer.echo(f"{todo.protocol.title}\n{len(todo.cells)} cells, {len(todo.todo)} to run")
    for method, package in todo.skipped.items():
        typer.echo(f"left out: {todo.protocol.methods[method].label}, which needs: pip install {package}")


def _run(todo: Plan, jobs: int) -> None:
    """With a bar that tells the time left."""
    if not todo.todo:
        return
    times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    with bars.Progress(
        bars.BarColumn(), bars.MofNCompleteColumn(), *times, bars.TextColumn("{task.description}")
    ) as progress:
        bar = progress.add_task("", total=len(todo.todo))

        def tell(record: dict[str, Any]) -> None:
            progress.update(bar, advance=1, description=f"{record['data']}, {record['method']}")
            if "error" in record:
                progress.console.print(f"{record['data']}, {record['method']}: {record['error']}", markup=False)

        work.carry_out(todo, n_jobs=min(jobs, len(todo.todo)), tell=tell)


def _print_lines(todo: Plan, name: str, lines: list[Line]) -> None:
    experiment = todo.protocol.experiments[name]
    title = f"Table {experiment.table}: {experiment.title}" if experiment.table else experiment.title
    typer.echo(f"\n{title}\n{as_text(lines)}")
    for method, count in failures(todo.protocol, experiment, todo.records).items():
        typer.echo(f"{count} cells of {todo.protocol.methods[method].label} failed and will be tried again")
