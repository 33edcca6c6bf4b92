"""Arguments and options that several commands share.

A command takes a group of them, a dataclass, as one parameter (:func:`fiedler.cli.app.flat_parameters`).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError

Source = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Table (CSV, Excel, Parquet, JSON lines), NPY or NPZ array, h5ad file of cells, folder of tables, images "
        "or .txt files, name of a data set, or - for a CSV table on standard input.",
    ),
]
Clusters = Annotated[str, typer.Option("-k", "--clusters", metavar="K", help="Number of clusters, or auto.")]
Id = Annotated[str | None, typer.Option("--id", metavar="COL", help="Column of row names.")]
Text = Annotated[str | None, typer.Option(metavar="COL", help="Column of texts to cluster.")]
Columns = list[str] | None
Drop = Annotated[Columns, typer.Option(metavar="COLS", help="Columns to leave out, separated by commas.")]
Missing = Annotated[
    Columns, typer.Option(metavar="WORDS", help="Further words for missing values, such as 'tbd,-999'.")
]
Size = Annotated[int | None, typer.Option(metavar="N", min=2, help="Resize images to N x N pixels.")]
SkipBroken = Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")]
Scale = Annotated[
    str, typer.Option(help="auto (suits columns of tables; unit for images, else none), standard, range, unit or none.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Work in blocks, in files, within this memory, such as 4GB, for large inputs."),
]
Workdir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder of the blocks: the same command after an interruption goes on from what is there."
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Work in blocks on a Dask cluster, such as tcp://host:8786.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress notes and progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback instead of a one-line error.")]


def parse_columns(values: Sequence[str] | None) -> list[str]:
    """Return names or words that are separated by commas or given one by one.

    Examples
    --------
    >>> parse_columns(["a, b", '"c, in EUR"'])
    ['a', 'b', 'c, in EUR']
    """
    parts = csv.reader(values or (), skipinitialspace=True)
    return [name.strip() for names in parts for name in names if name.strip()]


def parse_weights(values: Sequence[str] | None) -> dict[str, float]:
    """Return the weights of columns from texts such as ``age=2``."""
    weights = {}
    for value in values or ():
        name, _, factor = value.rpartition("=")
        try:
            weights[name] = float(factor)
        except ValueError:
            problem = f"--weight {value!r} is not a column and a number"
            raise InputError(problem, "write it as in --weight age=2", code="invalid_parameter") from None
    return weights


@dataclass
class Reading:
    """How an input is read, and what its columns are."""

    labels: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of known classes. If some are missing, the known ones guide the clustering; otherwise they "
            "are only compared with the clusters.",
        ),
    ] = None
    labels_from_folders: Annotated[
        bool,
        typer.Option(
            "--labels-from-folders", help="The class of an image or text is the subfolder that it is in; see --labels."
        ),
    ] = False
    id: Id = None
    text: Text = None
    drop: Drop = None
    as_category: Annotated[
        Columns, typer.Option(metavar="COLS", help="Columns of codes, or words as they are written.")
    ] = None
    as_number: Annotated[Columns, typer.Option(metavar="COLS", help="Columns that are numbers, such as an id.")] = None
    as_text: Annotated[Columns, typer.Option(metavar="COLS", help="Columns of free text, compared by their words.")] = (
        None
    )
    weight: Annotated[
        Columns,
        typer.Option(metavar="COL=FACTOR", help="Weight of a column of a table, 1 for the others; may be repeated."),
    ] = None
    missing: Missing = None
    row_weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of weights: a row of weight 3 counts as three rows.")
    ] = None
    size: Size = None
    skip_broken: SkipBroken = False
    use_rep: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What of an h5ad file is compared: connectivities, X, or a name in obsm."),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of :func:`fiedler.io.read_input`."""
        lists = ("drop", "as_category", "as_number", "as_text", "missing")
        columns = {name: parse_columns(getattr(self, name)) for name in lists}
        return {**asdict(self), **columns, "weight": parse_weights(self.weight)}


@dataclass
class NewRows:
    """How new rows for a model are read."""

    id: Id = None
    text: Text = None
    drop: Drop = None
    missing: Missing = None
    size: Size = None
    skip_broken: SkipBroken = False
