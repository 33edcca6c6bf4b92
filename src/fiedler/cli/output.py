"""Print results to standard output, notes and progress to standard error."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

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

from ..core.fitting import Stage, clock, describe_stages, listen
from ..errors import FiedlerError, FiedlerWarning
from .options import Json, Quiet

# Characters that begin terminal escapes, and those that change the direction of text; not tabs and line breaks.
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Exceptions that other libraries raise for unusable data; their own text is shown.
EXPECTED = (ValueError, TypeError, OSError, RuntimeError, ImportError)

# The options of the running command; the parameter use_rep is called --use-rep if that is one of them.
COMMAND_OPTIONS: ContextVar[frozenset[str]] = ContextVar("COMMAND_OPTIONS", default=frozenset())

# What parameters of the library are called on the command line, where they have another name.
OPTIONS = {
    "cannot_link": "--pairs",
    "column": "--text",
    "constraints": "--pairs",
    "fiedler.datasets.list_datasets()": "'fiedler data list'",
    "must_link": "--pairs",
    "n_clusters": "-k",
    "paper": "paper",
    "random_state": "--seed",
    "sample_weight": "--row-weight",
}

# Parameters that no command has an option for, with their value in words.
IN_WORDS = {
    "max_iter": "{}",
    "n_components": "{} components",
    "n_features": "{} column(s)",
    "n_neighbors": "a graph of {} neighbours",
    "n_samples": "{} rows",
}

UNREADABLE_CELLS = ("mixed_column", "not_like_fit")  # errors about words among numbers or dates

QUOTED = r"'[^']*'|\"[^\"]*\""
OPTION_NAME = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
OF_ANOTHER_COMMAND = re.compile(r"fiedler [a-z]+( --?[a-z][a-z-]*( [\w.]+)?)+")  # such as fiedler cluster -k 3
# What no command has an option for.
PYTHON = re.compile(r"\w=|\w\(|[a-z]_[a-z]|\b(bandwidth|init|neighbours|radius|tol)\b")
CLAUSE = re.compile(r", or |; ")


def render(error: BaseException) -> str:
    """Return one line that says what is wrong and what to do, in terms of the command line.

    Examples
    --------
    >>> from fiedler.errors import InputError
    >>> render(InputError("init='x' needs n_components=4 of n_samples=3", "increase tol, or remove rows"))
    "init='x' needs 4 components of 3 rows; remove rows"
    >>> render(PermissionError(13, "Permission denied", "rows.csv"))
    "Permission denied: 'rows.csv'"
    >>> render(KeyError("x"))
    "unexpected KeyError ('x'); rerun with --debug to see where"
    """
    if isinstance(error, FiedlerError | FiedlerWarning):
        return one_line(_in_options(error))
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror
    text = one_line(str(error))
    if text and isinstance(error, (*EXPECTED, Warning)):
        return text
    return f"unexpected {type(error).__name__} ({text}); rerun with --debug to see where"


def one_line(text: str) -> str:
    """Return a text with line breaks and repeated blanks replaced by single blanks, without control characters."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    r"""Return a text with its control characters written out, so that names in data cannot control a terminal.

    Examples
    --------
    >>> print(printable("red\x1b[31m"))
    red\x1b[31m
    """
    return CONTROL_CHARACTERS.sub(lambda match: repr(match[0])[1:-1], text)


def _in_options(error: FiedlerError | FiedlerWarning) -> str:
    """Return the sentence of an error with options for parameters, without advice about options that are missing."""
    options, parameter = COMMAND_OPTIONS.get(), error.fields.get("parameter")
    names = {name[2:].replace("-", "_"): name for name in options if name.startswith("--")}
    names |= {name: option for name, option in OPTIONS.items() if option in options or not option.startswith("-")}
    problem, hint = (_rename(text, names, parameter) for text in (error.problem, error.hint))
    clauses = CLAUSE.split("use another --method" if parameter in IN_WORDS else hint)
    usable = [clause for clause in clauses if _is_usable(clause, options)]
    hint = ", or ".join(usable) if usable != CLAUSE.split(hint) else hint
    if error.code in UNREADABLE_CELLS and "--missing" in options:
        hint = f"{hint}, or name the words for missing values with --missing"
    if isinstance(choices := error.fields.get("options"), list):
        hint = hint.replace(str(choices), ", ".join(map(str, choices)))
    return f"{problem}; {hint}" if hint else problem


def _rename(text: str, names: dict[str, str], parameter: str | None) -> str:
    """Replace, outside quotes, ``name=value``, names with an underscore, and the error's parameter as the subject."""
    given = "|".join(re.escape(name) for name in (*names, *IN_WORDS) if name != "weight")  # which graphs have, too
    bare = "|".join(re.escape(name) for name in names if "_" in name) or "$^"
    text = re.sub(rf"(^|\bleave ){parameter}(?= )", rf"\1{names[parameter]}", text) if parameter in names else text

    def replace(match: re.Match[str]) -> str:
        name, value, word = match.groups()
        if name in IN_WORDS:
            return IN_WORDS[name].format(value)
        if name:
            return f"{names[name]} {'' if value == 'True' else value}".strip(" ") + " " * (not value)
        return names[word] if word else "" if match[0] == " of X" else match[0]

    text = re.sub(rf"{QUOTED}| of X\b|(?<![\w-])(?:({given})=([\w.]*)|({bare})(?!\w))", replace, text)
    return text.rstrip()


def _is_usable(advice: str, options: frozenset[str]) -> bool:
    """Whether advice names only options that the running command has, and nothing of Python."""
    named = OPTION_NAME.findall(OF_ANOTHER_COMMAND.sub("", advice))
    return options.issuperset(named) if named else not PYTHON.search(re.sub(QUOTED, "", advice))


DEFAULT_WIDTH = 200  # characters per line where no terminal sets a width


@dataclass(frozen=True)
class Output:
    """Printer of a command, configured by ``--quiet`` and ``--json``."""

    quiet: Quiet = False
    json: Json = False

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
    """A listener of :mod:`fiedler.core.fitting` that shows what a command is doing: bar, stage, share and time left.

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

    def advance(self, stage: Stage) -> None:
        """Show a stage that begins, or after a step."""
        self.stages = stage.path()
        outermost = self.stages[0]
        self.progress.update(self.task, total=outermost.total, completed=outermost.done)

    begin = advance

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
