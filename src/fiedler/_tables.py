"""Read tables by column: CSV with any of the usual delimiters, and Parquet."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ._validation import import_optional
from .errors import FileFormatError

DELIMITERS = ",;\t|"  # in order of preference
PARQUET_FLOATS = ("halffloat", "float", "double")  # names of the floating-point types in Parquet files


class Table(NamedTuple):
    """Columns by name, and the number of the line or row that each table row was read from.

    Attributes
    ----------
    columns : dict of str to list or array
        Cells of each column: lists of strings from a CSV file, arrays for the numeric columns of a Parquet file.
    numbers : list of int
        Where each row is in the file, counted from 1.
    unit : {'line', 'row'}
        What ``numbers`` counts: lines of a CSV file, rows of a Parquet file.
    """

    columns: dict[str, Any]
    numbers: list[int]
    unit: Literal["line", "row"]

    @property
    def locations(self) -> list[str]:
        """Location of each row in words, such as ``line 7``."""
        return [f"{self.unit} {number}" for number in self.numbers]


def csv_table(content: str, name: str) -> Table:
    r"""Read the table in the text of a CSV file.

    Rows of another length than the header raise an error, since values would be lost or shifted.

    Examples
    --------
    >>> csv_table("height;width\n1.5;2\n", "boxes.csv")
    Table(columns={'height': ['1.5'], 'width': ['2']}, numbers=[2], unit='line')
    """
    unquoted_header = re.sub(r'"[^"]*"', "", content.partition("\n")[0])  # quoted text contains no delimiter
    delimiter = next((mark for mark in DELIMITERS if mark in unquoted_header), ",")
    with _unlimited_field_size():
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
        try:
            header = next(reader, [])
            rows, line_numbers = _checked_rows(reader, header, name)
        except csv.Error as error:
            raise FileFormatError(
                f"{name!r}, line {reader.line_num} is not CSV ({error})",
                "close every quote, and double quotes inside quoted text",
                code="invalid_csv",
                file=name,
                line=reader.line_num,
            ) from error
    _check_header(header, name)
    return Table({title: [row[i] for row in rows] for i, title in enumerate(header)}, line_numbers, "line")


def _checked_rows(reader: Any, header: list[str], name: str) -> tuple[list[list[str]], list[int]]:
    """Return the cells and line numbers of all rows; empty lines are allowed at the end only."""
    rows, line_numbers, first_blank = [], [], 0
    for row in reader:
        cells = row or [""]  # in a table with one column, an empty line is an empty cell
        if not row and len(header) > 1:
            first_blank = first_blank or reader.line_num
            continue
        if first_blank:
            raise FileFormatError(
                f"{name!r}, line {first_blank} is empty",
                "remove it; only the end of a table may have empty lines",
                code="empty_line",
                file=name,
                line=first_blank,
            )
        if len(cells) != len(header):
            raise FileFormatError(
                f"{name!r}, line {reader.line_num} has {len(cells)} fields where the header has {len(header)}",
                "put text that contains the delimiter in quotes",
                code="wrong_number_of_fields",
                file=name,
                line=reader.line_num,
                n_fields=len(cells),
                n_columns=len(header),
            )
        rows.append(cells)
        line_numbers.append(reader.line_num)
    return rows, line_numbers


def _check_header(header: list[str], name: str) -> None:
    """Require a unique name for every column; a header of numbers is a row of data that would be lost."""
    if header and all(is_number(title) for title in header):
        raise FileFormatError(
            f"{name!r} begins with numbers instead of column names",
            "add a line of names",
            code="no_header",
            file=name,
        )
    if len(header) > 1 and "" in header:
        raise FileFormatError(
            f"{name!r}: column {header.index('') + 1} has no name",
            "name it, or remove it",
            code="unnamed_column",
            file=name,
        )
    title, count = Counter(header).most_common(1)[0] if header else ("", 0)
    if count > 1:
        raise FileFormatError(
            f"{name!r} has several columns {title!r}",
            "rename them",
            code="duplicate_column",
            file=name,
            column=title,
        )


def is_plain(text: str) -> bool:
    """Whether a text has none of the notation that only Python's ``float`` accepts: 1_0, digits of other scripts."""
    return text.isascii() and "_" not in text


def is_number(cell: Any) -> bool:
    """Whether a cell can be read as a number.

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
def _unlimited_field_size() -> Iterator[None]:
    """Lift the default limit of 128 kB per field, which documents may exceed."""
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


def parquet_table(path: Path) -> Table:
    """Read the table in a Parquet file."""
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow raises many classes
        raise FileFormatError(
            f"{path.name!r} cannot be read as Parquet ({error})",
            "write the file again",
            code="invalid_parquet",
            file=path.name,
        ) from error
    _check_header(table.column_names, path.name)
    columns = {title: _cells(table.column(title)) for title in table.column_names}
    return Table(columns, list(range(1, table.num_rows + 1)), "row")


def _cells(column: Any) -> Any:
    """Return numbers as an array and anything else as a list, with None for missing values.

    Integers with missing values are a list too: an array would turn them into floats and NaN.
    """
    values = column.to_numpy()
    is_numeric = values.dtype.kind in "iub" or (values.dtype.kind == "f" and str(column.type) in PARQUET_FLOATS)
    return values if is_numeric else column.to_pylist()
