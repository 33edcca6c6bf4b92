"""The directive ``command-options``: a table of the arguments and options of a command, read from the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def find_command(path: str) -> Any:
    """Return a command by its name, such as ``data list``."""
    from typer.main import get_command

    from fiedler.cli.app import app

    command: Any = get_command(app)
    for name in path.split():
        command = command.commands[name]
    return command


def rows(path: str) -> list[tuple[str, str, str]]:
    """Return name, meaning and default of all arguments and options of a command."""
    table = []
    for parameter in find_command(path).params:
        metavar, is_argument = parameter.metavar or "", parameter.param_type_name == "argument"
        flags = sorted([*parameter.opts, *parameter.secondary_opts], key=len)
        names = [metavar or parameter.name.upper()] if is_argument else flags
        default = parameter.default
        is_shown = isinstance(default, str | int | float | Path) and not isinstance(default, bool)
        name = ", ".join(names) + (f" {metavar}" if metavar and not is_argument else "")
        table.append((name, getattr(parameter, "help", None) or "", str(default) if is_shown else ""))
    return table


class CommandOptions(SphinxDirective):
    """``.. command-options:: cluster``."""

    has_content = False
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        return [_table(("option", "meaning", "default"), rows(self.arguments[0]))]


def _table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (30, 55, 15)), cols=3)
    group += nodes.thead("", _row(head, literal=()))
    group += nodes.tbody("", *(_row(cells, literal=(0, 2)) for cells in body))
    return nodes.table("", group, classes=["options"])


def _row(cells: tuple[str, ...], literal: tuple[int, ...]) -> nodes.row:
    row = nodes.row()
    for column, text in enumerate(cells):
        inner = nodes.literal(text, text) if column in literal and text else nodes.Text(text)
        row += nodes.entry("", nodes.paragraph("", "", inner))
    return row


def setup(app: Any) -> dict[str, Any]:
    """Register the directive; called by Sphinx."""
    app.add_directive("command-options", CommandOptions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
