"""Print results to standard output, notes and progress to standard error."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ..core.progress import Stage, clock, describe_stages, listen
from .messages import CONTROL_CHARACTERS, one_line, printable, render

DEFAULT_WIDTH = 200  # characters per line where no terminal sets a width
MAX_LISTED_CLUSTERS = 30  # rows of the table in the terminal


class Output(NamedTuple):
    """Printer of a command, configured by ``--quiet`` and ``--json``."""

    quiet: bool = False
    json: bool = False

    def result(self, data: dict[str, Any], *shown: str | Table) -> None:
        """Print the result: ``data`` as JSON, or ``shown``, text and tables."""
        if self.json:
            text = json.dumps(data, indent=2, ensure_ascii=False, default=float)
            sys.stdout.write(CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
            return
        console = Console(soft_wrap=True, highlight=False)
        if not console.is_terminal:
            console.width = DEFAULT_WIDTH
        for part in shown:
            console.print(printable(part), markup=False) if isinstance(part, str) else console.print(part)

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        if not self.quiet:
            sys.stderr.write(f"note: {one_line(text)}\n")

    @contextmanager
    def working(self, description: str) -> Iterator[None]:
        """Show progress during the block, and the warnings raised in it as notes afterwards."""
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught, self._show_stages(description):
                warnings.simplefilter("always")
                yield
        finally:
            messages = [warning.message for warning in caught if issubclass(warning.category, UserWarning)]
            for text in dict.fromkeys(render(message) for message in messages if isinstance(message, Warning)):
                self.note(text)

    def progress(self) -> Any:
        """Return a context of progress bars on standard error, or of None where there is no terminal."""
        return self._bars(TimeRemainingColumn(), TextColumn("{task.description}", markup=False))

    @contextmanager
    def _show_stages(self, description: str) -> Iterator[None]:
        """Show the stages of a fit in one bar."""
        column = StageColumn(description)
        with self._bars(column) as progress:
            if progress is None:
                yield
                return
            column.attach(progress)
            with listen(column):
                yield

    def _bars(self, *columns: ProgressColumn) -> Any:
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            return nullcontext()
        return Progress(SpinnerColumn(), TimeElapsedColumn(), BarColumn(20), *columns, console=console, transient=True)


class StageColumn(ProgressColumn):
    """A listener of :mod:`fiedler.core.progress` that shows what a command is doing: bar, stage, share and time left.

    The bar is that of the outermost stage. Its time left is computed whenever the column is drawn, so it counts down
    between two steps.
    """

    def __init__(self, description: str) -> None:
        super().__init__()
        self.description = description
        self.stages: list[Stage] = []

    def attach(self, progress: Progress) -> None:
        """Add the bar that the column belongs to."""
        self.progress, self.task = progress, progress.add_task("", total=None)

    def begin(self, stage: Stage) -> None:
        """Show a stage that begins."""
        self.advance(stage)

    def advance(self, stage: Stage) -> None:
        """Show a stage after a step."""
        self.stages = stage.path()
        outermost = self.stages[0]
        self.progress.update(self.task, total=outermost.total, completed=outermost.done)

    def end(self, stage: Stage) -> None:
        """Show the outer stage, if there is one."""
        self.stages = stage.path()[:-1]

    def render(self, task: Task) -> Text:
        """Return the description of the command and of its stages."""
        stages = self.stages
        return Text(f"{self.description}: {describe_stages(stages, clock())}" if stages else self.description)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]]) -> Table:
    """Make a table for the terminal: the first column is left-aligned, all others right-aligned."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))  # Text, so that brackets are not taken for markup
    return table


def cluster_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a cluster's row of the table: label and name, size, share and, where known, confidence."""
    confidence = () if row["confidence"] is None else (f"{row['confidence']:.2f}",)
    label = row["label"] if row.get("name") is None else f"{row['label']} {row['name']}"
    return (label, row["size"], f"{row['share']:.1%}", *confidence)
