"""Read rows from tables: columns of any kind, each of which is recognised or has a role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._tables import (
    COMPRESSIONS,
    Table,
    csv_table,
    excel_table,
    is_number,
    is_plain,
    join_tables,
    json_lines_table,
    parquet_table,
    read_text,
)
from ..errors import FileFormatError, InputError
from ..table.columns import Requests, plan_columns
from ..table.values import is_missing, to_word
from ..text.read import read_documents
from .record import Input, Roles, encode_labels, number_rows

MAX_SHOWN = 40  # characters of a cell quoted in a message


def read_csv(path: Path) -> Table:
    """Read a CSV file in any usual encoding, compressed or not."""
    return text_to_table(read_text(path), path.name)


def text_to_table(content: str, name: str) -> Table:
    """Read the table in the text of a CSV file."""
    if "\0" in content:
        raise FileFormatError(
            f"{name!r} is not a table: it contains binary data",
            "save it as CSV",
            code="binary_file",
            file=name,
        )
    return csv_table(content, name)


def read_json_lines(path: Path) -> Table:
    """Read a table of JSON objects, one per line."""
    return json_lines_table(read_text(path), path.name)


TABLES: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": parquet_table,
    ".xlsx": excel_table,
    ".xls": excel_table,
    ".xlsb": excel_table,
    ".ods": excel_table,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}
COMPRESSED_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


def table_ending(path: Path) -> str | None:
    """Return the ending of the name of a table, without that of a compression; None if it is not one.

    Examples
    --------
    >>> table_ending(Path("customers.csv.gz")), table_ending(Path("photo.png"))
    ('.csv', None)
    """
    ending = path.suffix.lower()
    if ending in COMPRESSIONS:
        inner = Path(path.stem).suffix.lower()
        return inner if inner in COMPRESSED_TABLES else None
    return ending if ending in TABLES else None


def read_table(path: Path) -> Table:
    """Read a table by the ending of its name."""
    return TABLES[table_ending(path) or ".csv"](path)


def read_tables(folder: Path, paths: list[Path]) -> Table:
    """Read the tables of a folder, one below the other."""
    return join_tables({str(path.relative_to(folder)): read_table(path) for path in paths})


def from_table(table: Table, roles: Roles, file: str) -> Input:
    """Return the rows of a table, or its texts where a column of them is named, with row names and labels."""
    if roles.id is None and roles.names in table.columns:
        roles = roles._replace(id=roles.names)
    _check_roles(table, roles, file)
    if not table.numbers:
        under_header = " below its header" if table.columns else ""
        raise FileFormatError(f"{file!r} contains no rows{under_header}", "add some", code="no_rows", file=file)
    row_names = number_rows(len(table.numbers)) if roles.id is None else _as_text(table.columns[roles.id])
    labels, class_names = None, None
    if roles.labels is not None:
        labels, class_names = encode_labels(table.columns[roles.labels])
        if not class_names:
            raise InputError(
                f"{file!r}, column {roles.labels!r} contains no label",
                "choose another column of labels, or none",
                code="no_labels",
                file=file,
                column=roles.labels,
            )
    about: dict[str, Any] = {"labels": labels, "class_names": class_names, "label_name": roles.labels}
    weights = None if roles.row_weight is None else _weights(table, roles.row_weight, file)
    about |= {"id_name": roles.id, "table": table, "weights": weights}
    if roles.text is not None:
        texts = read_documents(_as_text(table.columns[roles.text])).texts
        return Input("texts", texts, row_names, [roles.text], **about)
    if roles.features:
        X = np.stack([_numbers(table, name, file) for name in roles.features], axis=1)
        return Input("table", X, row_names, list(roles.features), **about)
    return _mixed_rows(table, roles, file, Input("mixed", None, row_names, **about))


def _mixed_rows(table: Table, roles: Roles, file: str, result: Input) -> Input:
    """Return columns of any kind, to be encoded; as an array if they are complete columns of numbers."""
    others = {roles.labels, roles.id, roles.row_weight, *roles.drop}
    cells = {name: column for name, column in table.columns.items() if name not in others}
    if not cells:
        raise InputError(
            f"{file!r} has no column left as a feature", "drop fewer columns", code="no_features", file=file
        )
    if len(table.numbers) < 2 or roles.is_new:
        return result._replace(X=cells, feature_names=list(cells), encoder=roles.encoder())
    requests = Requests((), roles.category, roles.number, roles.free_text, dict(roles.weight))
    columns = plan_columns(cells, requests, [f"{file!r}, {location}" for location in table.locations])
    if len(table.columns) == 1 and columns[0].values.type == "words":
        shown = table.columns[columns[0].name][0]
        raise InputError(
            f"{file!r} has a single column, {columns[0].name!r}, and {shown!r} in it is not a number",
            "separate columns by a comma, semicolon, tab or |, or give the column a role as labels, id or text",
            code="single_column_not_numeric",
            file=file,
            column=columns[0].name,
        )
    plain = not roles.weight and all(
        one.kind == "number" and not one.values.how and not one.values.is_missing.any() for one in columns
    )
    if plain:
        X = np.stack([column.values.cells for column in columns], axis=1)
        return result._replace(kind="table", X=X, feature_names=list(cells))
    names = next((one.values for one in columns if one.kind == "id" and not one.values.is_missing.any()), None)
    if names is not None and roles.id is None:
        name = next(one.name for one in columns if one.values is names)
        result = result._replace(row_names=_as_text(table.columns[name]), id_name=name)
    return result._replace(X=cells, feature_names=list(cells), encoder=roles.encoder())


def _check_roles(table: Table, roles: Roles, file: str) -> None:
    for name in filter(None, (roles.labels, roles.id, roles.text, roles.row_weight, *roles.drop, *roles.features)):
        if name not in table.columns:
            columns = list(table.columns)
            raise InputError(
                f"{file!r} has no column {name!r}",
                f"its columns are {', '.join(map(repr, columns)) or 'none'}",
                code="no_such_column",
                file=file,
                column=name,
                columns=columns,
            )
    named = [*filter(None, (roles.labels, roles.id, roles.text, roles.row_weight)), *set(roles.drop)]
    duplicate = next((name for name in named if named.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"{file!r}, column {duplicate!r} is given two roles",
            "give it one",
            code="two_roles",
            file=file,
            column=duplicate,
        )


def _weights(table: Table, column: str, file: str) -> np.ndarray:
    """Return the weights of rows."""
    try:
        return _numbers(table, column, file)
    except InputError as error:
        hint = "choose a column of positive numbers as row_weight, or none"
        raise InputError(error.problem, hint, code="weights_not_numbers", **error.fields) from None


def _numbers(table: Table, column: str, file: str) -> np.ndarray:
    """Return a column as floats; the error names the location of the first cell that is not a finite number."""
    cells = table.columns[column]
    if any(isinstance(cell, list | dict) for cell in cells[:1]):
        raise InputError(
            f"{file!r}, column {column!r} contains lists",
            "save them as an NPY file, or leave the column out with drop",
            code="nested_column",
            file=file,
            column=column,
        )
    try:
        numbers = _floats(cells)
        invalid = np.flatnonzero(~np.isfinite(numbers))
    except (ValueError, TypeError):
        invalid = np.array([row for row, cell in enumerate(cells) if not is_number(cell)])
    if len(invalid):
        row = int(invalid[0])
        location = {"file": file, "column": column, table.unit: table.numbers[row]}
        prefix = f"{file!r}, column {column!r}, {table.locations[row]}: "
        raise _cell_error(cells[row], prefix, location, is_only_column=len(table.columns) == 1)
    return numbers


def _floats(cells: Any) -> np.ndarray:
    """Convert cells to floats, unless one of them is a number to Python's ``float`` only."""
    if isinstance(cells, list) and not is_plain("".join(cell for cell in cells if isinstance(cell, str))):
        raise ValueError
    return np.asarray(cells, dtype=np.float64)


def _cell_error(cell: Any, prefix: str, location: dict[str, Any], *, is_only_column: bool) -> InputError:
    """Say why a cell is not a finite number, and what to do about it."""
    if is_missing(cell) or is_number(cell):
        if is_number(cell) and not is_missing(cell):
            problem = f"the value is {float(cell)}"
        else:
            problem = f"the value is missing ({cell})" if str(cell or "").strip() else "the cell is empty"
        hint = "fill it, or leave out the row or the column"
        return InputError(prefix + problem, hint, code="missing_value", value=cell, **location)
    quoted = repr(cell)
    quoted = quoted if len(quoted) <= MAX_SHOWN else f"{quoted[: MAX_SHOWN - 3]}...'"
    problem = f"{prefix}{quoted} is not a number"
    if isinstance(cell, str) and cell.count(",") == 1 and is_number(cell.replace(",", ".")):
        return InputError(problem, "write decimals with a point", code="decimal_comma", value=cell, **location)
    if is_only_column:
        hint = "separate columns by a comma, semicolon, tab or |, or give the column a role as labels, id or text"
        return InputError(problem, hint, code="single_column_not_numeric", value=cell, **location)
    hint = "give the column a role as labels, id or text, or leave it out with drop"
    return InputError(problem, hint, code="not_a_number", value=cell, **location)


def _as_text(cells: Any) -> list[str]:
    """Return cells as strings, '' where missing."""
    return ["" if is_missing(cell) else to_word(cell) if isinstance(cell, float) else str(cell) for cell in cells]
