"""Tables to rows: columns of numbers are features, the others have to be given a role or left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._tables import Table, csv_table, is_number, parquet_table
from .record import Input, Roles, numbered

OTHERWISE = "give it a role as labels, id or text, or leave it out with drop"


def from_csv(path: Path, roles: Roles) -> Input:
    """The rows of a CSV file, in UTF-8."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name!r} is not text in UTF-8 (byte {error.start}); save it as UTF-8") from None
    if "\0" in content:
        raise ValueError(f"{path.name!r} is not a table: it holds binary data")
    return from_table(csv_table(content, path.name), roles, path.name)


def from_parquet(path: Path, roles: Roles) -> Input:
    """The rows of a Parquet file."""
    return from_table(parquet_table(path), roles, path.name)


TABLES: dict[str, Callable[[Path, Roles], Input]] = {".csv": from_csv, ".tsv": from_csv, ".parquet": from_parquet}


def from_table(table: Table, roles: Roles, file: str) -> Input:
    """Features, or texts where a column of them is named, with ids and labels."""
    _check_roles(table, roles, file)
    if not table.places:
        raise ValueError(f"{file!r} holds no rows" + (" under its header" if table.columns else ""))
    names = numbered(len(table.places)) if roles.id is None else _as_text(table.columns[roles.id])
    labels = None if roles.labels is None else _as_text(table.columns[roles.labels])
    if labels is not None and not any(labels):
        raise ValueError(f"{file!r}, column {roles.labels!r}: no label is given; leave the column out")
    if roles.text is not None:
        return Input("texts", _as_text(table.columns[roles.text]), names, labels=labels)
    others = {roles.labels, roles.id, *roles.drop}
    features = list(roles.features) or [name for name in table.columns if name not in others]
    if not features:
        raise ValueError(f"{file!r} holds no column that is left as a feature")
    X = np.stack([_numbers(table, name, file) for name in features], axis=1)
    return Input("table", X, names, columns=features, labels=labels)


def _check_roles(table: Table, roles: Roles, file: str) -> None:
    for name in filter(None, (roles.labels, roles.id, roles.text, *roles.drop, *roles.features)):
        if name not in table.columns:
            known = ", ".join(repr(title) for title in table.columns) or "none"
            raise ValueError(f"{file!r} has no column {name!r}; its columns are {known}")


def _numbers(table: Table, name: str, file: str) -> np.ndarray:
    """A column as floats; the first cell that is no number is named with its place."""
    cells = table.columns[name]
    try:
        numbers = np.asarray(cells, dtype=np.float64)
    except (ValueError, TypeError):
        row = next(row for row, cell in enumerate(cells) if not is_number(cell))
        where = f"{file!r}, column {name!r}, {table.places[row]}"
        if _is_empty(cells[row]):
            raise ValueError(f"{where}: the cell is empty; fill it, or leave the row or the column out") from None
        advice = "write decimals with a point" if _has_decimal_comma(cells[row]) else OTHERWISE
        raise ValueError(f"{where}: {_shown(cells[row])} is no number; {advice}") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(
            f"{file!r}, column {name!r}, {table.places[row]}: the value is {numbers[row]}; fill it, or leave the row "
            "or the column out"
        )
    return numbers


def _has_decimal_comma(cell: Any) -> bool:
    return isinstance(cell, str) and cell.count(",") == 1 and is_number(cell.replace(",", "."))


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:37]}...'"


def _as_text(cells: Any) -> list[str]:
    """Cells as names; '' where nothing is."""
    return ["" if cell is None or cell != cell else str(cell).strip() for cell in cells]  # NaN is not itself
