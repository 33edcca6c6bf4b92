"""``fiedler reproduce`` where the distribution that implements it is not installed."""

from __future__ import annotations

import typer

from ..errors import MissingDependencyError

# Any arguments are accepted, so that every call shows the installation hint.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def reproduce(context: typer.Context) -> None:
    """Reproduce the tables of papers; needs the distribution fiedler-papers."""
    raise MissingDependencyError(
        f"fiedler {context.info_name} needs the distribution fiedler-papers",
        "install it from the folder papers/ of the repository: pip install ./papers",
        module="fiedler_papers",
    )
