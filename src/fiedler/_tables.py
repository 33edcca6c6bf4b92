"""Tables in files, column by column: CSV with any of the usual delimiters, and Parquet."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ._validation import import_optional

DELIMITERS = ",;\t|"
FLOATS = ("halffloat", "float", "double")  # as Parquet files call them


class Table(NamedTuple):
    """Columns by name, and where each row is to be found: ``line 7`` of a CSV file, ``row 6`` of a Parquet file."""

    columns: dict[str, Any]  # a list of cells each, strings in a CSV file; numbers of a Parquet file are an array
    places: list[str]


def csv_table(content: str, name: str) -> Table:
    r"""The table in the text of a CSV file.

    A row of another length than the header would lose or shift something, so it is refused.

    Examples
    --------
    >>> csv_table("height;width\n1.5;2\n", "boxes.csv")
    Table(columns={'height': ['1.5'], 'width': ['2']}, places=['line 2'])
    """
    first = re.sub(r'"[^"]*"', "", content.partition("\n")[0])  # what is quoted holds no delimiter
    delimiter = next((mark for mark in DELIMITERS if mark in first), ",")
    with _long_fields():
        rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
        try:
            header = next(rows, [])
            cells, places = _checked_rows(rows, header, name)
        except csv.Error as error:
            raise ValueError(
                f"{name!r}, line {rows.line_num} is not CSV ({error}); close every quote, and double those inside"
            ) from error
    _check_header(header, name)
    return Table({title: [row[place] for row in cells] for place, title in enumerate(header)}, places)


def _checked_rows(rows: Any, header: list[str], name: str) -> tuple[list[list[str]], list[str]]:
    found, places, blank = [], [], 0
    for row in rows:
        cells = row or [""]  # an empty line is an empty cell of a table with one column
        if not row and len(header) > 1:
            blank = blank or rows.line_num
            continue
        if blank:
            raise ValueError(f"{name!r}, line {blank} is empty; only the end of a table may be")
        if len(cells) != len(header):
            raise ValueError(
                f"{name!r}, line {rows.line_num} has {len(cells)} fields where the header has {len(header)}; put texts "
                "that hold the delimiter in quotes"
            )
        found.append(cells)
        places.append(f"line {rows.line_num}")
    return found, places


def _check_header(header: list[str], name: str) -> None:
    """A name for every column, each once; a line of numbers is a row, and would be lost."""
    if header and all(is_number(title) for title in header):
        raise ValueError(f"{name!r} begins with numbers where the names of its columns should be; add a line of names")
    if len(header) > 1 and "" in header:
        raise ValueError(f"{name!r}: column {header.index('') + 1} has no name; give it one, or take it out")
    title, count = Counter(header).most_common(1)[0] if header else ("", 0)
    if count > 1:
        raise ValueError(f"{name!r} has several columns {title!r}; rename them")


def is_plain(text: str) -> bool:
    """Whether a text is free of what only Python's ``float`` takes for numbers: 1_0, and digits of other scripts."""
    return text.isascii() and "_" not in text


def is_number(cell: Any) -> bool:
    """Whether a cell can be read as one.

    Examples
    --------
    >>> is_number("1.5"), is_number("one"), is_number("1_0"), is_number(None)
    (True, False, False, False)
    """
    if isinstance(cell, str) and not is_plain(cell):
        return False
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True


@contextmanager
def _long_fields() -> Iterator[None]:
    """A document may be longer than the 128 kB that a field of a table may have by default."""
    usual = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def parquet_table(path: Path) -> Table:
    """The table in a Parquet file."""
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow has many
        raise ValueError(f"{path.name!r} cannot be read as Parquet ({error}); write the file again") from error
    _check_header(table.column_names, path.name)
    columns = {title: _cells(table.column(title)) for title in table.column_names}
    return Table(columns, [f"row {number}" for number in range(1, table.num_rows + 1)])


def _cells(column: Any) -> Any:
    """Numbers as an array, without a Python object each; anything else as a list, None where nothing is.

    So are whole numbers with gaps, which an array would hold as 1.0 and NaN.
    """
    values = column.to_numpy()
    as_they_are = values.dtype.kind in "iub" or (values.dtype.kind == "f" and str(column.type) in FLOATS)
    return values if as_they_are else column.to_pylist()
