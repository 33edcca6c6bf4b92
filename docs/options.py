"""The directive ``command-options``: a table of a command's arguments and options, taken from the command itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def command(path: str) -> Any:
    """The command of a name such as ``data list``."""
    from typer.main import get_command

    from fiedler.cli.app import app

    found: Any = get_command(app)
    for name in path.split():
        found = found.commands[name]
    return found


def rows(path: str) -> list[tuple[str, str, str]]:
    """Name, what it means and default of everything that a command takes."""
    found = []
    for one in command(path).params:
        metavar, argument = one.metavar or "", one.param_type_name == "argument"
        names = [metavar or one.name.upper()] if argument else sorted([*one.opts, *one.secondary_opts], key=len)
        plain = isinstance(one.default, str | int | float | Path) and not isinstance(one.default, bool)
        name = ", ".join(names) + (f" {metavar}" if metavar and not argument else "")
        found.append((name, getattr(one, "help", None) or "", str(one.default) if plain else ""))
    return found


class CommandOptions(SphinxDirective):
    """``.. command-options:: cluster``."""

    has_content = False
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The table."""
        return [_table(("option", "meaning", "default"), rows(self.arguments[0]))]


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (30, 55, 15)), cols=3)
    group += nodes.thead("", _row(head, literal=()))
    group += nodes.tbody("", *(_row(one, literal=(0, 2)) for one in body))
    return nodes.table("", group, classes=["options"])


def _row(cells: tuple[str, ...], literal: tuple[int, ...]) -> nodes.row:
    made = nodes.row()
    for place, text in enumerate(cells):
        inner = nodes.literal(text, text) if place in literal and text else nodes.Text(text)
        made += nodes.entry("", nodes.paragraph("", "", inner))
    return made


def setup(app: Any) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_directive("command-options", CommandOptions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
