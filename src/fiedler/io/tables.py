"""Read rows from tables: numeric columns are features, all others need a role or are dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._tables import Table, csv_table, is_number, is_plain, parquet_table
from ..errors import FileFormatError, InputError
from ..text.read import read_documents
from .record import Input, Roles, encode_labels, is_missing, number_rows

MAX_SHOWN = 40  # characters of a cell quoted in a message


def from_csv(path: Path, roles: Roles) -> Input:
    """Read the rows of a CSV file in UTF-8."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path.name!r} is not UTF-8 text (byte {error.start})",
            "save it as UTF-8",
            code="not_utf8",
            file=path.name,
            byte=error.start,
        ) from None
    if "\0" in content:
        raise FileFormatError(
            f"{path.name!r} is not a table: it contains binary data",
            "save it as CSV",
            code="binary_file",
            file=path.name,
        )
    return from_table(csv_table(content, path.name), roles, path.name)


def from_parquet(path: Path, roles: Roles) -> Input:
    """Read the rows of a Parquet file."""
    return from_table(parquet_table(path), roles, path.name)


TABLES: dict[str, Callable[[Path, Roles], Input]] = {".csv": from_csv, ".tsv": from_csv, ".parquet": from_parquet}


def from_table(table: Table, roles: Roles, file: str) -> Input:
    """Return the features of a table, or its texts where a column of them is named, with row names and labels."""
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
    if roles.text is not None:
        texts = read_documents(_as_text(table.columns[roles.text])).texts
        return Input("texts", texts, row_names, labels=labels, class_names=class_names)
    others = {roles.labels, roles.id, *roles.drop}
    features = list(roles.features) or [name for name in table.columns if name not in others]
    if not features:
        raise InputError(
            f"{file!r} has no column left as a feature", "drop fewer columns", code="no_features", file=file
        )
    X = np.stack([_numbers(table, name, file) for name in features], axis=1)
    return Input("table", X, row_names, features, labels=labels, class_names=class_names)


def _check_roles(table: Table, roles: Roles, file: str) -> None:
    for name in filter(None, (roles.labels, roles.id, roles.text, *roles.drop, *roles.features)):
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
    named = [*filter(None, (roles.labels, roles.id, roles.text)), *set(roles.drop)]
    duplicate = next((name for name in named if named.count(name) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"{file!r}, column {duplicate!r} is given two roles",
            "give it one",
            code="two_roles",
            file=file,
            column=duplicate,
        )


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
    return ["" if cell is None or cell != cell else str(cell) for cell in cells]  # NaN differs from itself
