"""``fiedler data list`` and ``fiedler data get``: the data sets that fiedler can load."""

from __future__ import annotations

from typing import Annotated

import typer

from ..datasets import is_available, list_datasets, load
from .options import Json, Quiet
from .output import Output


def list_all(json: Json = False) -> None:
    """List the data sets and whether they are available on this machine."""
    rows = {name: {"about": about, "available": is_available(name)} for name, about in list_datasets().items()}
    cells = [(name, "yes" if row["available"] else "-", row["about"]) for name, row in rows.items()]
    lines = "\n".join(f"{name:16} {mark:9} {about}" for name, mark, about in [("name", "available", "about"), *cells])
    Output(json=json).result(rows, lines)


def get(
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
