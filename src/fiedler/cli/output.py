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
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .messages import one_line, render

DEFAULT_WIDTH = 200  # characters per line where no terminal sets a width


class Output(NamedTuple):
    """Printer of a command, configured by ``--quiet`` and ``--json``."""

    quiet: bool = False
    json: bool = False

    def result(self, data: dict[str, Any], *shown: str | Table) -> None:
        """Print the result: ``data`` as JSON, or ``shown``, text and tables."""
        if self.json:
            sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=float) + "\n")
            return
        console = Console(soft_wrap=True, highlight=False)
        if not console.is_terminal:
            console.width = DEFAULT_WIDTH
        for part in shown:
            console.print(part, markup=False) if isinstance(part, str) else console.print(part)

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        if not self.quiet:
            sys.stderr.write(f"note: {one_line(text)}\n")

    @contextmanager
    def working(self, description: str) -> Iterator[ProgressCallback | None]:
        """Show progress during the block, and the warnings raised in it as notes afterwards.

        The block receives a callback for the model, if there is a terminal to show its steps.
        """
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught, self.progress() as progress:
                warnings.simplefilter("always")
                yield None if progress is None else ProgressCallback(progress, description)
        finally:
            messages = [warning.message for warning in caught if issubclass(warning.category, UserWarning)]
            for text in dict.fromkeys(render(message) for message in messages if isinstance(message, Warning)):
                self.note(text)

    def progress(self) -> Any:
        """Return a context of progress bars on standard error, or of None where there is no terminal."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            return nullcontext()
        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), TimeElapsedColumn(), BarColumn(20), TimeRemainingColumn(), text)
        return Progress(*columns, console=console, transient=True)


class ProgressCallback:
    """Callback in scikit-learn's protocol that shows the stages of a fit one after the other in one bar."""

    def __init__(self, progress: Progress, description: str) -> None:
        self.progress, self.description = progress, description
        self.task = progress.add_task(description, total=None)

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing before a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing after a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Reset the bar for a new stage."""
        if context.max_subtasks:
            description = f"{self.description}: {context.task_name}"
            self.progress.reset(self.task, total=context.max_subtasks, description=description)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Advance the bar after a step."""
        if context.max_subtasks == 0:
            self.progress.advance(self.task)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_table(title: str, *columns: str, rows: Iterable[Sequence[Any]]) -> Table:
    """Make a table for the terminal: the first column is left-aligned, all others right-aligned."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))  # Text, so that brackets are not taken for markup
    return table
