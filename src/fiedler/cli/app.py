"""The commands, gathered."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from .. import __version__
from . import clustering, comparing, looking, reproducing

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fiedler {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Its number.")
    ] = False,
) -> None:
    """Clustering for data that lies on a manifold."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """A command that Ctrl-C ends with a word."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            typer.echo("fiedler: interrupted; nothing half-written is left", err=True)
            raise typer.Exit(130) from None

    return run


for command in (
    clustering.cluster,
    comparing.compare,
    clustering.predict,
    clustering.report,
    reproducing.reproduce,
    looking.doctor,
):
    app.command()(_interruptible(command))
app.add_typer(looking.data, name="data")
