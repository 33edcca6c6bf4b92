"""The command-line application: built-in commands, commands of other distributions, and how errors are shown.

Another distribution adds a command by an entry point of the group ``fiedler.commands`` that loads to a function; a dot
in its name makes it a command of a group, here ``fiedler data list``::

    [project.entry-points."fiedler.commands"]
    reproduce = "fiedler_papers.command:reproduce"
    "data.list" = "fiedler_papers.command:list_data"
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.models import OptionInfo

from .. import __version__
from .._registry import PAPERS_HINT
from ..errors import MissingDependencyError
from . import INTERRUPTED, cluster, doctor, predict, report
from .options import Debug
from .output import COMMAND_OPTIONS, one_line, render

Command = Callable[..., None]

ENTRY_POINT_GROUP = "fiedler.commands"

COMMANDS: dict[str, Command] = {
    "cluster": cluster.cluster,
    "compare": cluster.compare,
    "predict": predict.predict,
    "update": predict.update,
    "report": report.report,
    "explain": report.explain,
    "doctor": doctor.doctor,
}

# Commands of the distribution fiedler-papers, with their help where it is not installed and that of the group.
PAPERS_COMMANDS = {"reproduce": "Reproduce the tables of papers", "data": "Show and download the data sets"}


def build_app() -> typer.Typer:
    """Build the application with the built-in commands and those of installed distributions."""
    app = _group()
    app.callback()(application)
    groups: dict[str, typer.Typer] = {}
    others = {entry_point.name: load_command(entry_point) for entry_point in entry_points(group=ENTRY_POINT_GROUP)}
    for name, command in (COMMANDS | {name: others[name] for name in others if name not in COMMANDS}).items():
        group, _, last = name.rpartition(".")
        if group and group not in groups:
            groups[group] = _group(help=f"{PAPERS_COMMANDS.get(group, f'Commands of {group}')}.")
            app.add_typer(groups[group], name=group)
        (groups[group] if group else app).command(last)(with_error_handling(command))
    present = {command.name for command in app.registered_commands} | groups.keys()
    for name, about in PAPERS_COMMANDS.items():
        if name not in present:  # any arguments are accepted, so that every call shows the installation hint
            settings = {"allow_extra_args": True, "ignore_unknown_options": True}
            text = f"{about}; needs the distribution fiedler-papers."
            app.command(name, context_settings=settings, help=text)(with_error_handling(missing_command))
    return app


def _group(**options: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, **options)


def missing_command(context: typer.Context) -> None:
    """Name the distribution to install."""
    problem = f"fiedler {context.info_name} needs the distribution fiedler-papers"
    raise MissingDependencyError(problem, PAPERS_HINT, module="fiedler_papers")


def load_command(entry_point: EntryPoint) -> Command:
    """Load a command; if it cannot be imported, return one that shows the reason, so that all others still work."""
    try:
        return entry_point.load()
    except Exception as error:  # whatever importing it may raise
        reason = one_line(f"{type(error).__name__}: {error}")

    def unavailable() -> None:
        """Show why this command could not be loaded."""
        problem = f"the command {entry_point.name!r} cannot be loaded from {entry_point.value!r} ({reason})"
        raise MissingDependencyError(problem, "install its distribution again", module=entry_point.module)

    return unavailable


def print_version(requested: bool) -> None:
    """Print the version and exit, for ``--version``."""
    if requested:
        typer.echo(f"fiedler {__version__}")
        raise typer.Exit


def application(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Cluster data that lie on a manifold."""


def is_group(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is a group of options."""
    return is_dataclass(parameter.annotation)


def flat_parameters(command: Command) -> list[inspect.Parameter]:
    """Return the parameters of a command, with those of a group of options, a dataclass, in place of the group."""
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups = [flat_parameters(one.annotation) if is_group(one) else [one] for one in parameters]
    return [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for group in groups for one in group]


def with_error_handling(command: Command) -> Command:
    """Wrap a command so that errors are shown as one sentence or, with ``--debug``, as a traceback."""
    signature = inspect.signature(command, eval_str=True)
    groups = {name: one.annotation for name, one in signature.parameters.items() if is_group(one)}

    @wraps(command)
    def run(debug: bool = False, **options: Any) -> None:
        token = COMMAND_OPTIONS.set(option_names(command))
        try:
            for name, group in groups.items():
                options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
            command(**options)
        except KeyboardInterrupt:
            typer.echo(INTERRUPTED, err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except typer.Exit:
            raise
        except Exception as error:
            if debug:
                raise
            typer.echo(f"fiedler: {render(error)}", err=True)
            raise typer.Exit(1) from None
        finally:
            COMMAND_OPTIONS.reset(token)

    debug_option = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    run.__signature__ = signature.replace(parameters=[*flat_parameters(command), debug_option])  # type: ignore[attr-defined]
    return run


def option_names(command: Command) -> frozenset[str]:
    """Return the names of the options of a command."""
    names = {"--debug"}
    for parameter in flat_parameters(command):
        infos = getattr(parameter.annotation, "__metadata__", ())
        for info in (info for info in infos if isinstance(info, OptionInfo)):
            given = (info.default, *(info.param_decls or ()))  # the first name is in the place of a default
            declared = [one for one in given if isinstance(one, str) and one.startswith("-")]
            names.update(declared or [f"--{parameter.name.replace('_', '-')}"])
    return frozenset(names)


app = build_app()
