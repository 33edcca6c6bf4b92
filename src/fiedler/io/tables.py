"""Tables to rows: columns of numbers are features, the others have to be given a role or left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._tables import Table, csv_table, is_number, is_plain, parquet_table
from ..text.read import read_documents
from .record import Input, Roles, class_names, is_missing, row_numbers

OTHERWISE = "give it a role as labels, id or text, or leave it out with drop"
FILL = "fill it, or leave the row or the column out"


def from_csv(path: Path, roles: Roles) -> Input:
    """The rows of a CSV file, in UTF-8."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name!r} is not text in UTF-8 (byte {error.start}); save it as UTF-8") from None
    if "\0" in content:
        raise ValueError(f"{path.name!r} is not a table: it holds binary data; save it as CSV")
    return from_table(csv_table(content, path.name), roles, path.name)


def from_parquet(path: Path, roles: Roles) -> Input:
    """The rows of a Parquet file."""
    return from_table(parquet_table(path), roles, path.name)


TABLES: dict[str, Callable[[Path, Roles], Input]] = {".csv": from_csv, ".tsv": from_csv, ".parquet": from_parquet}


def from_table(table: Table, roles: Roles, file: str) -> Input:
    """Features, or texts where a column of them is named, with ids and labels."""
    _check_roles(table, roles, file)
    if not table.places:
        raise ValueError(f"{file!r} holds no rows{' under its header' * bool(table.columns)}; add some")
    names = row_numbers(len(table.places)) if roles.id is None else _as_text(table.columns[roles.id])
    labels = None if roles.labels is None else class_names(table.columns[roles.labels])
    if labels is not None and not any(labels):
        raise ValueError(f"{file!r}, column {roles.labels!r}: no label is given; leave the column out")
    if roles.text is not None:
        return Input("texts", read_documents(_as_text(table.columns[roles.text])).texts, names, labels=labels)
    others = {roles.labels, roles.id, *roles.drop}
    features = list(roles.features) or [name for name in table.columns if name not in others]
    if not features:
        raise ValueError(f"{file!r} holds no column that is left as a feature; leave fewer of them out")
    X = np.stack([_numbers(table, name, file) for name in features], axis=1)
    return Input("table", X, names, columns=features, labels=labels)


def _check_roles(table: Table, roles: Roles, file: str) -> None:
    for name in filter(None, (roles.labels, roles.id, roles.text, *roles.drop, *roles.features)):
        if name not in table.columns:
            known = ", ".join(repr(title) for title in table.columns) or "none"
            raise ValueError(f"{file!r} has no column {name!r}; its columns are {known}")
    given = [*filter(None, (roles.labels, roles.id, roles.text)), *set(roles.drop)]
    twice = next((name for name in given if given.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{file!r}, column {twice!r} is given two roles; give it one")


def _numbers(table: Table, name: str, file: str) -> np.ndarray:
    """A column as floats; the first cell that is no number is named with its place."""
    cells = table.columns[name]
    if any(isinstance(cell, list | dict) for cell in cells[:1]):
        raise ValueError(f"{file!r}, column {name!r} holds lists; save them as an NPY file, or leave it out with drop")
    try:
        numbers = _floats(cells)
        wrong = np.flatnonzero(~np.isfinite(numbers))
    except (ValueError, TypeError):
        wrong = np.array([row for row, cell in enumerate(cells) if not is_number(cell)])
    if len(wrong):
        row = int(wrong[0])
        why = _why_no_number(cells[row], alone=len(table.columns) == 1)
        raise ValueError(f"{file!r}, column {name!r}, {table.places[row]}: {why}")
    return numbers


def _floats(cells: Any) -> np.ndarray:
    """The cells as floats, if there is nothing among them that is a number to Python alone."""
    if isinstance(cells, list) and not is_plain("".join(cell for cell in cells if isinstance(cell, str))):
        raise ValueError
    return np.asarray(cells, dtype=np.float64)


def _why_no_number(cell: Any, *, alone: bool) -> str:
    """What is wrong with a cell, and what to do about it; ``alone`` in the only column there is."""
    if is_missing(cell):
        what = f"the value is missing ({cell})" if str(cell or "").strip() else "the cell is empty"
        return f"{what}; {FILL}"
    if is_number(cell):
        return f"the value is {float(cell)}; {FILL}"
    if _has_decimal_comma(cell):
        return f"{_shown(cell)} is no number; write decimals with a point"
    apart = "part columns by a comma, semicolon, tab or |, or " if alone else ""
    return f"{_shown(cell)} is no number; {apart}{OTHERWISE}"


def _has_decimal_comma(cell: Any) -> bool:
    return isinstance(cell, str) and cell.count(",") == 1 and is_number(cell.replace(",", "."))


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:37]}...'"


def _as_text(cells: Any) -> list[str]:
    """Cells as they are given; '' where nothing is."""
    return ["" if cell is None or cell != cell else str(cell) for cell in cells]  # NaN is not itself
