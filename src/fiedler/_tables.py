"""Read tables by column: CSV with the usual delimiters, encodings and compressions, Excel, JSON lines, and Parquet."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ._validation import first_few, import_optional
from .errors import FileFormatError, unreadable_for_lack_of_memory, warn

DELIMITERS = ",;\t|"  # in order of preference
PARQUET_FLOATS = ("halffloat", "float", "double")  # names of the floating-point types in Parquet files


class Table(NamedTuple):
    """Columns by name, and the number of the line or row that each table row was read from.

    Attributes
    ----------
    columns : dict of str to list or array
        Cells of each column: lists of strings from a CSV file, of numbers, strings and dates from an Excel file, arrays
        for the numeric columns of a Parquet file.
    numbers : list of int
        Where each row is in the file, counted from 1.
    unit : {'line', 'row'}
        What ``numbers`` counts: lines of a CSV file, rows of other files.
    """

    columns: dict[str, Any]
    numbers: list[int]
    unit: Literal["line", "row"]

    @property
    def locations(self) -> list[str]:
        """Location of each row in words, such as ``line 7``."""
        return [f"{self.unit} {number}" for number in self.numbers]


# ------------------------------------------------------------------------------------------------------------- text


def read_text(path: Path) -> str:
    """Read a text file in any usual encoding, compressed or not."""
    return decode(decompress(path), path.name)


def decompress(path: Path) -> bytes:
    """Read a file, decompressed if its ending is one of `COMPRESSIONS`."""
    opener = COMPRESSIONS.get(path.suffix.lower())
    if opener is None:
        return path.read_bytes()
    try:
        return opener(path)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise FileFormatError(
            f"{path.name!r} cannot be decompressed ({error})",
            "compress it again",
            code="invalid_compression",
            file=path.name,
        ) from None


def _read_gzip(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def _read_bz2(path: Path) -> bytes:
    with bz2.open(path) as file:
        return file.read()


def _read_xz(path: Path) -> bytes:
    with lzma.open(path) as file:
        return file.read()


def _read_zip(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if len(members) != 1:
            raise FileFormatError(
                f"{path.name!r} contains {len(members)} files", "give one of them", code="several_files", file=path.name
            )
        return archive.read(members[0])


def _read_zstd(path: Path) -> bytes:
    pyarrow = import_optional("pyarrow", extra="text", purpose="Zstandard files")
    with pyarrow.input_stream(str(path), compression="zstd") as stream:
        return stream.read()


COMPRESSIONS = {".gz": _read_gzip, ".bz2": _read_bz2, ".xz": _read_xz, ".zip": _read_zip, ".zst": _read_zstd}


def decode(content: bytes, name: str) -> str:
    r"""Decode text: UTF-8, UTF-16 or UTF-32 by its mark, else UTF-8, or Windows-1252 with a warning.

    Examples
    --------
    >>> decode("\ufeffZürich".encode("utf-16-le"), "cities.csv")
    'Zürich'
    """
    for mark, encoding in MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError as error:
                raise _not_text(name, encoding, error.start) from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise _not_text(name, "UTF-8", error.start) from None
    text = content.decode("cp1252", errors="replace")
    warn(
        f"{name!r} is not UTF-8, and was read as Windows-1252 (Latin-1)",
        "save it as UTF-8 if letters are wrong",
        code="not_utf8",
        stacklevel=2,
        file=name,
    )
    return text


MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def _not_text(name: str, encoding: str, byte: int) -> FileFormatError:
    return FileFormatError(
        f"{name!r} is not {encoding} text (byte {byte})", "save it as UTF-8", code="not_utf8", file=name, byte=byte
    )


# -------------------------------------------------------------------------------------------------------------- CSV


def csv_table(content: str, name: str) -> Table:
    r"""Read the table in the text of a CSV file.

    Rows of another length than the header raise an error, since values would be lost or shifted.

    Examples
    --------
    >>> csv_table("height;width\n1.5;2\n", "boxes.csv")
    Table(columns={'height': ['1.5'], 'width': ['2']}, numbers=[2], unit='line')
    """
    if content.startswith("sep="):  # a line that tells Excel the delimiter
        content = content.partition("\n")[2]
    unquoted_header = re.sub(r'"[^"]*"', "", content.partition("\n")[0])  # quoted text contains no delimiter
    delimiter = max(DELIMITERS, key=unquoted_header.count)  # the first of equally frequent ones
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
    header = [title.strip() for title in header]
    is_used = [bool(title) or len(header) == 1 or any(row[i].strip() for row in rows) for i, title in enumerate(header)]
    titles = checked_header(header, name, is_used)
    used = [(i, title) for i, title in enumerate(titles) if is_used[i]]
    return Table({title: [row[i] for row in rows] for i, title in used}, line_numbers, "line")


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
                "put text that contains the delimiter in quotes"
                if len(header) > 1
                else "the first line must contain the names of the columns, and no other line may precede it",
                code="wrong_number_of_fields",
                file=name,
                line=reader.line_num,
                n_fields=len(cells),
                n_columns=len(header),
            )
        rows.append(cells)
        line_numbers.append(reader.line_num)
    return rows, line_numbers


def checked_header(header: Sequence[str], name: str, is_used: Sequence[bool] | None = None) -> list[str]:
    """Return a name for every column, by its place for those without one, with a warning; names must be unique.

    A header of numbers is a row of data that would be lost, unless it counts the columns behind one without a name, as
    pandas writes it.

    Parameters
    ----------
    header : sequence of str
    name : str
        Of the file.
    is_used : sequence of bool, optional
        Which columns are not empty; names are required of these alone.
    """
    named = [title for title in header if title]
    counts_columns = len(named) < len(header) and named == [str(i) for i in range(len(named))]
    if named and all(is_number(title) for title in named) and not counts_columns:
        raise FileFormatError(
            f"{name!r} begins with numbers instead of column names",
            "add a line of names",
            code="no_header",
            file=name,
        )
    titles = [title or f"column {i}" for i, title in enumerate(header, 1)] if len(header) > 1 else list(header)
    unnamed = [
        title for title, given, used in zip(titles, header, is_used or [True] * len(header)) if used and not given
    ]
    if unnamed and len(header) > 1:
        warn(
            f"{name!r} has columns without a name, which are called {first_few([repr(title) for title in unnamed])}",
            "name them, or leave them out",
            code="unnamed_column",
            stacklevel=3,
            file=name,
            columns=unnamed,
        )
    header = titles
    title, count = Counter(header).most_common(1)[0] if header else ("", 0)
    if count > 1:
        raise FileFormatError(
            f"{name!r} has several columns {title!r}",
            "rename them",
            code="duplicate_column",
            file=name,
            column=title,
        )
    return header


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


# ---------------------------------------------------------------------------------------------------- other formats


def excel_table(path: Path) -> Table:
    """Read the first sheet of an Excel or OpenDocument file."""
    calamine = import_optional("python_calamine", extra="table", purpose="Excel files")
    try:
        workbook = calamine.CalamineWorkbook.from_path(str(path))
        sheets = [sheet for name in workbook.sheet_names if (sheet := workbook.get_sheet_by_name(name)).height]
        rows = sheets[0].to_python(skip_empty_area=False) if sheets else []
    except calamine.CalamineError as error:
        raise FileFormatError(
            f"{path.name!r} cannot be read as a spreadsheet ({error})",
            "save it again",
            code="invalid_spreadsheet",
            file=path.name,
        ) from None
    if len(sheets) > 1:
        warn(
            f"{path.name!r} has {len(sheets)} sheets; the first one, {sheets[0].name!r}, was read",
            "save another one as a file of its own",
            code="several_sheets",
            stacklevel=2,
            file=path.name,
        )
    numbered = [(number, row) for number, row in enumerate(rows, 1) if any(cell != "" for cell in row)]
    titles, numbered = (numbered[0][1], numbered[1:]) if numbered else ([], [])
    used = [i for i, title in enumerate(titles) if title != "" or any(row[i] != "" for _, row in numbered)]
    header = [str(_cell(titles[i]) if titles[i] != "" else "").strip() for i in used]
    header = checked_header(header, path.name)
    columns = {title: [_cell(row[i]) for _, row in numbered] for title, i in zip(header, used)}
    return Table(columns, [number for number, _ in numbered], "row")


def _cell(cell: Any) -> Any:
    """Return None for an empty cell, and whole numbers, which spreadsheets store as floats, as integers."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return None if cell == "" else cell


def json_lines_table(content: str, name: str) -> Table:
    """Read a table of JSON objects, one per line; a field that an object does not have is missing."""
    records, numbers = [], []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        record = parse_json_line(line, name, number)
        if not isinstance(record, dict):
            raise FileFormatError(
                f"{name!r}, line {number} is not an object with fields",
                'write one object per line, such as {"id": 1, "text": "..."}',
                code="invalid_json",
                file=name,
                line=number,
            )
        records.append(record)
        numbers.append(number)
    titles = dict.fromkeys(title for record in records for title in record)
    return Table({title: [record.get(title) for record in records] for title in titles}, numbers, "line")


def parse_json_line(line: str, name: str, number: int) -> Any:
    """Parse a line of a file; an error names the file and the line."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"{name!r}, line {number} is not JSON: {error}",
            "write one JSON value per line",
            code="invalid_json",
            file=name,
            line=number,
        ) from error


def join_tables(tables: dict[str, Table]) -> Table:
    """Join the tables of several files, by name, that have the same columns."""
    (first_name, first), *others = tables.items()
    for name, table in others:
        if set(table.columns) != set(first.columns):
            differing = sorted(set(table.columns) ^ set(first.columns))
            raise FileFormatError(
                f"{name!r} and {first_name!r} differ in the columns {', '.join(map(repr, differing))}",
                "give all files the same columns",
                code="different_columns",
                file=name,
            )
    n_rows = sum(len(table.numbers) for table in tables.values())
    join = lambda title: [cell for table in tables.values() for cell in table.columns[title]]  # noqa: E731
    return Table({title: join(title) for title in first.columns}, list(range(1, n_rows + 1)), "row")


def parquet_table(path: Path) -> Table:
    """Read the table in a Parquet file."""
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    try:
        table = parquet.read_table(path)
    except MemoryError:
        raise unreadable_for_lack_of_memory(path.name) from None
    except Exception as error:  # pyarrow raises many classes
        raise FileFormatError(
            f"{path.name!r} cannot be read as Parquet ({error})",
            "write the file again",
            code="invalid_parquet",
            file=path.name,
        ) from error
    titles = checked_header(table.column_names, path.name)
    columns = {title: _cells(table.column(i)) for i, title in enumerate(titles)}
    return Table(columns, list(range(1, table.num_rows + 1)), "row")


def _vectors(column: Any) -> Any:
    """Return lists of equally many numbers, such as embeddings, as an array of shape (n, width); None for others."""
    if not str(column.type).startswith(("list<", "large_list<", "fixed_size_list<")) or column.null_count:
        return None
    compute = import_optional("pyarrow.compute", extra="text", purpose="Parquet files")
    widths = compute.list_value_length(column).unique().to_pylist()
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    is_full = len(widths) == 1 and widths[0] > 0 and values.dtype.kind in "iuf"
    return values.reshape(len(column), widths[0]) if is_full else None


def _cells(column: Any) -> Any:
    """Return numbers as an array and anything else as a list, with None for missing values.

    Integers with missing values are a list too: an array would turn them into floats and NaN.
    """
    if (vectors := _vectors(column)) is not None:
        return vectors
    values = column.to_numpy()
    is_numeric = values.dtype.kind in "iub" or (values.dtype.kind == "f" and str(column.type) in PARQUET_FLOATS)
    return values if is_numeric else column.to_pylist()
