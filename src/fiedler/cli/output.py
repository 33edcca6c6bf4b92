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

from .._validation import did_you_mean
from ..core.fitting import Stage, clock, describe_stages, listen
from ..errors import FiedlerError, FiedlerWarning

# ---------------------------------------------------------------------------------------------------------------------
# Word errors and warnings for the command line.
#
# Errors and warnings of fiedler have a code and fields (:mod:`fiedler.errors`). Where the library's own sentence speaks
# of Python parameters, the tables below have one that speaks of command-line options. What names an option that the
# running command does not have is not shown. Exceptions of other libraries are recognised by their class.

# Those that begin terminal escapes, and those that change the direction of text; not tabs and line breaks.
CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# The options of the running command; None if there is none, so that all may be named.
COMMAND_OPTIONS: ContextVar[frozenset[str] | None] = ContextVar("COMMAND_OPTIONS", default=None)
OPTION_NAME = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
OF_ANOTHER_COMMAND = re.compile(r"fiedler [a-z]+( --?[a-z][a-z-]*( [\w.]+)?)+")  # such as fiedler cluster -k 3

# Exceptions that other libraries raise for unusable data; their own text is shown.
EXPECTED = (ValueError, TypeError, OSError, RuntimeError, ImportError)

# Command-line options for Python parameters.
OPTIONS = {
    "column": "--text",
    "constraints": "--pairs",
    "labels_from_folders": "--labels-from-folders",
    "method": "--method",
    "methods": "--methods",
    "n_clusters": "-k",
    "random_state": "--seed",
    "scale": "--scale",
    "size": "--size",
    "skip_broken": "--skip-broken",
    "use_rep": "--use-rep",
}

_FEWER_CLUSTERS = "request fewer clusters with -k, or use another method"

# Whole sentences, by code. Templates may use the fields of the error and {option}, {choices} and {suggestion}.
SENTENCES = {
    # options
    "unknown_option": "{option} {value!r} is not known{suggestion}; choose one of {choices}",
    "n_clusters_too_large": "{option} {value} is more than the {n_samples} rows; choose at most {n_samples}",
    "option_of_other_input": "{option} is for {inputs}, but {file!r} is not one of these; leave it out",
    "invalid_pca": "this method needs at least two columns; use the method auto",
    # rows
    "equal_rows": "all rows are equal, so there is nothing to cluster; check the data",
    "values_too_large": "the data contain values of magnitude {largest:.1e}, whose squares overflow; use a larger unit",
    "values_too_small": "no value in the data exceeds {largest:.1e}, so their squares underflow; use a smaller unit",
    "too_few_rows_for_neighbors": (
        "this method connects every row to {n_neighbors} others, but there are only {n_samples} rows; "
        "use the method auto or kmeans"
    ),
    "zero_bandwidth": "so many rows are equal that the graph has no distance scale; remove the duplicates",
    "no_directions": "lpi compares rows by their direction, and a single column has none; use another method",
    "duplicate_rows": "k-means found {n_distinct} distinct groups instead of {n_clusters}; some rows are duplicates",
    "not_enough_memory": (
        "clustering {n_rows} x {n_columns} values needs up to {required_gb:.1f} GB of memory, but only "
        "{available_gb:.1f} GB is free; use fewer rows or columns, or try anyway with --no-memory-check"
    ),
    "invalid_sample_weight": "--row-weight must be a column of positive numbers; correct it, or leave it out",
    # texts
    "no_such_representation": "the file has no {value!r} in obsm; choose one of {choices} with --use-rep",
    "no_such_column": "{file!r} has no column {column!r}; its columns are {columns}; choose one with {option}",
    "no_terms": (
        "no words are left in the {n_documents} document(s) after removing numbers and the most common words; "
        "use longer texts"
    ),
    # clusters
    "empty_component": f"a cluster has lost all its rows; {_FEWER_CLUSTERS}",
    "empty_clusters": f"only {{n_found}} of the {{n_clusters}} clusters contain rows; {_FEWER_CLUSTERS}",
    "too_many_components": (
        f"the data have {{n_directions}} independent directions, but {{n_components}} are needed; {_FEWER_CLUSTERS}"
    ),
    "disconnected_graph": (
        "the graph of nearest neighbours has {n_components} connected components; if that is not intended, "
        "cluster the rows by the method auto, which connects them"
    ),
    "no_weight_to_graph": (
        "{n_points} new row(s) are far from all rows of the model; they get the cluster of the nearest row"
    ),
    "not_converged": "the fit did not converge within {max_iter} iterations; the result may be less accurate",
    # pairs
    "pairs_file_unreadable": "--pairs {file!r} cannot be read: {reason}",
    "pairs_file_encoding": "--pairs {file!r} is not UTF-8 text; save it as UTF-8",
    "invalid_pair": "--pairs contains the {kind} {pair}, but {reason}; correct or remove it",
    "self_pair": "--pairs contains {n_pairs} pair(s) of a row with itself; remove them",
}

# Hints that replace those of the library, by code; the problem is stated as in Python.
HINTS = {
    "cannot_update": "cluster all rows again, or use fiedler predict for the new ones",
    "image_sizes_differ": "resize all to the same size, such as --size 32",
    "invalid_image": "repair or remove such files, or leave them out with --skip-broken",
    "mixed_column": "correct these cells or empty them, or use --as-category or --drop for the columns",
    "nested_column": "save them as an NPY file, or leave the column out with --drop",
    "no_class_folders": "put the files of each class into a subfolder, or leave out --labels-from-folders",
    "no_columns": "--labels, --id, --text and --drop are for tables",
    "no_features": "drop fewer columns, or use --as-category for some",
    "no_labels": "choose another --labels column, or none",
    "no_such_field": "choose another with --text",
    "no_such_source": "check the path; 'fiedler data list' lists the data sets",
    "not_a_number": "give the column a role with --labels, --id or --text, or leave it out with --drop",
    "not_converged": "the result may be less accurate",
    "single_column_not_numeric": (
        "separate columns by a comma, semicolon, tab or |, or give the column a role with --text"
    ),
    "too_many_pairs": "use fewer pairs",
    "weights_not_numbers": "choose a column of positive numbers with --row-weight, or none",
    "wrong_encoding": "save the files as UTF-8",
}

# Hints for commands without the options that the hints above, or those of the library, name.
OTHER_HINTS = {
    "no_columns": "--id, --text and --drop are for tables",
    "no_features": "drop fewer columns",
    "no_such_representation": "use a file that has it, as that of the fit",
    "not_a_number": "correct it",
    "not_writable": "change the permissions of the folder",
}


def render(error: BaseException) -> str:
    """Return one line that says what is wrong and what to do, in terms of the command line.

    Examples
    --------
    >>> from fiedler.errors import InputError
    >>> render(InputError("n_clusters=12 is more than ...", code="n_clusters_too_large", parameter="n_clusters",
    ...     value=12, n_samples=10))
    '-k 12 is more than the 10 rows; choose at most 10'
    >>> render(PermissionError(13, "Permission denied", "rows.csv"))
    "Permission denied: 'rows.csv'"
    >>> render(KeyError("x"))
    "unexpected KeyError ('x'); rerun with --debug to see where"
    """
    if isinstance(error, FiedlerError | FiedlerWarning):
        return one_line(_from_tables(error))
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


def _from_tables(error: FiedlerError | FiedlerWarning) -> str:
    """Fill the template of the error's code; where there is none, or a field is missing, use the library's sentence."""
    fields = _fields(error)
    sentence = _fill(SENTENCES.get(error.code), fields)
    own = error.hint.replace("{", "{{").replace("}", "}}")
    hints = (HINTS.get(error.code, own), OTHER_HINTS.get(error.code), own)
    hint = next((hint for template in hints if (hint := _fill(template, fields))), None)
    return sentence or (f"{error.problem}; {hint}" if hint else error.problem)


def _names_other_options(text: str, fields: dict[str, Any]) -> bool:
    """Whether a template names an option that the running command does not have."""
    options = COMMAND_OPTIONS.get()
    text = OF_ANOTHER_COMMAND.sub("", text.replace("{option}", str(fields.get("option", ""))))
    return options is not None and any(name not in options for name in OPTION_NAME.findall(text))


def _fill(template: str | None, fields: dict[str, Any]) -> str | None:
    """Return a template with its fields; None if one is missing, or if it names options of other commands."""
    if template is None or _names_other_options(template, fields):
        return None
    try:
        return template.format(**fields)
    except KeyError:  # an error without one of the fields
        return None


def _fields(error: FiedlerError | FiedlerWarning) -> dict[str, Any]:
    """Return the fields of an error for templates: lists are joined, and the parameter's option is added."""
    fields = {
        name: ", ".join(map(repr, value)) if isinstance(value, list) else value for name, value in error.fields.items()
    }
    if "parameter" in error.fields:
        fields["option"] = OPTIONS.get(error.fields["parameter"], error.fields["parameter"])
    if "options" in error.fields:
        fields["choices"] = ", ".join(error.fields["options"])
        fields["suggestion"] = did_you_mean(str(error.fields.get("value")), error.fields["options"])
    return fields


# ---------------------------------------------------------------------------------------------------------------------

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
