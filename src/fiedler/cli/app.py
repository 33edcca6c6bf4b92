"""The commands, gathered; how they end, well or badly, is told here."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from .. import __version__
from ..errors import MissingDependencyError
from . import clustering, compare, looking
from .wording import sentence

Debug = Annotated[bool, typer.Option("--debug", help="A traceback where there would be a sentence.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
data = typer.Typer(no_args_is_help=True, help="The data sets that fiedler knows.")


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


def _answering(command: Callable[..., None]) -> Callable[..., None]:
    """A command that answers for its end: whatever is wrong is one sentence or, with ``--debug``, a traceback."""

    @wraps(command)
    def run(debug: bool = False, **options: Any) -> None:
        try:
            command(**options)
        except KeyboardInterrupt:
            typer.echo("fiedler: interrupted; nothing half-written is left", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # a reader such as `head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except typer.Exit:
            raise
        except Exception as error:
            if debug:
                raise
            typer.echo(f"fiedler: {sentence(error)}", err=True)
            raise typer.Exit(1) from None

    taken = inspect.signature(command, eval_str=True)
    more = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), more])  # type: ignore[attr-defined]
    return run


COMMANDS = (
    clustering.cluster,
    compare.compare,
    clustering.predict,
    clustering.report,
    looking.doctor,
)

PLUGINS = "fiedler.commands"  # the group of entry points by which another package adds commands


def _without_papers(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Reproduce a paper's tables and figures; needs the package fiedler-papers."""
    raise MissingDependencyError(
        "'fiedler reproduce' needs the package fiedler-papers",
        "install it from a clone of fiedler with: pip install ./papers",
        module="fiedler_papers",
        words=words,
    )


for command in COMMANDS:
    app.command()(_answering(command))
plugins = {point.name: point for point in entry_points(group=PLUGINS)}
for name, point in plugins.items():
    app.command(name=name)(_answering(point.load()))
if "reproduce" not in plugins:
    any_words = {"ignore_unknown_options": True}
    app.command(name="reproduce", context_settings=any_words)(_answering(_without_papers))
data.command(name="list")(_answering(looking.list_all))
data.command()(_answering(looking.get))
app.add_typer(data, name="data")
