"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .methods import SCALES

Source = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="CSV, Parquet, NPY or NPZ file, JSON lines, folder of images or .txt files, or name of a data set.",
    ),
]
Clusters = Annotated[str, typer.Option("-k", "--clusters", metavar="K", help="Number of clusters, or auto.")]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of known classes. If some are missing, the known ones guide the clustering; otherwise they are "
        "only compared with the clusters.",
    ),
]
Id = Annotated[str | None, typer.Option("--id", metavar="COL", help="Column of row names.")]
Text = Annotated[str | None, typer.Option(metavar="COL", help="Column of texts to cluster.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out; may be repeated.")]
Size = Annotated[int | None, typer.Option(metavar="N", min=2, help="Resize images to N x N pixels.")]
Scale = Annotated[
    str, typer.Option(help=f"auto, {', '.join(SCALES)}. auto is standard for tables, unit for images, else none.")
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
