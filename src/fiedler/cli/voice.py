"""How a command speaks: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="A traceback where there would be a sentence.")]


class Voice(NamedTuple):
    """What a command was told of how to speak."""

    quiet: bool = False
    json: bool = False

    def result(self, plain: dict[str, Any], *shown: str | Table) -> None:
        """What was found: as JSON, or as text and tables."""
        if self.json:
            sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False, default=float) + "\n")
            return
        console = Console(soft_wrap=True, highlight=False)
        for part in shown:
            console.print(part, markup=False) if isinstance(part, str) else console.print(part)

    def note(self, text: str) -> None:
        """A remark beside the result."""
        if not self.quiet:
            sys.stderr.write(f"note: {' '.join(text.split())}\n")

    @contextmanager
    def at_work(self, what: str) -> Iterator[None]:
        """While something takes its time: how long, and what a model said last; its warnings as notes afterwards."""
        with warnings.catch_warnings(record=True) as caught, self._spinner(what):
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)):
            self.note(text)

    @contextmanager
    def _spinner(self, what: str) -> Iterator[None]:
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            yield
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(what)
            with _heard(lambda said: progress.update(task, description=f"{what}: {said}")):
                yield


@contextmanager
def _heard(tell: Any) -> Iterator[None]:
    """Hand on what fiedler's models log while they are fitted."""

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    log, ear = logging.getLogger("fiedler"), Ear(logging.INFO)
    before = log.level
    log.addHandler(ear)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(ear)
        log.setLevel(before)


def table(title: str, *columns: str, rows: Any) -> Table:
    """A table for the terminal: the first column to the left, numbers to the right."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for place, name in enumerate(columns):
        made.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made
