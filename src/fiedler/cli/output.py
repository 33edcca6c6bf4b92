"""How a command speaks: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .wording import in_words

WIDE = 200  # columns where no terminal sets a width

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress.")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]


class Output(NamedTuple):
    """What a command was told of how to speak."""

    quiet: bool = False
    json: bool = False

    def result(self, plain: dict[str, Any], *shown: str | Table) -> None:
        """What was found: as JSON, or as text and tables."""
        if self.json:
            sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False, default=float) + "\n")
            return
        console = Console(soft_wrap=True, highlight=False)
        if not console.is_terminal:
            console.width = WIDE
        for part in shown:
            console.print(part, markup=False) if isinstance(part, str) else console.print(part)

    def note(self, text: str) -> None:
        """A remark beside the result."""
        if not self.quiet:
            sys.stderr.write(f"note: {in_words(text)}\n")

    @contextmanager
    def at_work(self, what: str) -> Iterator[ProgressCallback | None]:
        """While something takes its time: how long, and how far it is; afterwards a model's warnings as notes.

        The block is given a callback for the model, if there is a terminal to show its steps on.
        """
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught, self.progress() as progress:
                warnings.simplefilter("always")
                yield None if progress is None else ProgressCallback(progress, what)
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)):
                self.note(text)

    def progress(self) -> Any:
        """Bars on standard error, or None where there is no terminal to show them on."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            return nullcontext()
        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), TimeElapsedColumn(), BarColumn(20), TimeRemainingColumn(), text)
        return Progress(*columns, console=console, transient=True)


class ProgressCallback:
    """A callback in scikit-learn's protocol: the steps of a fit's stages as one bar, a stage after the other."""

    def __init__(self, progress: Progress, what: str) -> None:
        self.progress, self.what = progress, what
        self.task = progress.add_task(what, total=None)

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """It is over."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """A stage begins, or a step of one."""
        if context.max_subtasks:
            self.progress.reset(self.task, total=context.max_subtasks, description=f"{self.what}: {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """And ends."""
        if context.max_subtasks == 0:
            self.progress.advance(self.task)


def n_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_file(path: Path | None) -> None:
    """A place for a result is looked at before the work, not after it."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        what = "is a folder" if path.is_dir() else f"cannot be written: there is no folder {str(path.parent)!r}"
        raise ValueError(f"{str(path)!r} {what}; give another --out")


def table(title: str, *columns: str, rows: Any) -> Table:
    """A table for the terminal: the first column to the left, numbers to the right."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for place, name in enumerate(columns):
        made.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))  # brackets are brackets
    return made
