"""The file formats, one row each in `FORMATS`, and the readers of tables.

A new format is a function that reads a file as a :class:`Table`, or as rows, and a row in `FORMATS`. Texts are read in
the encoding of their byte-order mark, else as UTF-8, or as Windows-1252 with a warning; they may be compressed.
"""

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._validation import first_few, import_optional
from ..errors import FileFormatError, warn
from .arrays import from_h5ad, from_npy, from_npz
from .blocks import Arrow, Parquet, Parts, arrow_module, npy_blocks, reading_parts, zarr_blocks
from .record import Input, Table, is_number, reading

# ------------------------------------------------------------------------------------------------------ text of a file


def _read_zip(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if len(members) != 1:
            problem = f"{path.name!r} contains {len(members)} files"
            raise FileFormatError(problem, "give one of them", code="several_files", file=path.name)
        return archive.read(members[0])


def _read_zstd(path: Path) -> bytes:
    with arrow_module("pyarrow", purpose="Zstandard files").input_stream(str(path), compression="zstd") as stream:
        return stream.read()


def _read_with(open_file: Callable[[Path], Any], path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


COMPRESSIONS: dict[str, Callable[[Path], bytes]] = {
    ".gz": partial(_read_with, gzip.open),
    ".bz2": partial(_read_with, bz2.open),
    ".xz": partial(_read_with, lzma.open),
    ".zip": _read_zip,
    ".zst": _read_zstd,
}


def decompress(path: Path) -> bytes:
    """Read a file, decompressed if its ending is one of `COMPRESSIONS`."""
    try:
        return COMPRESSIONS.get(path.suffix.lower(), Path.read_bytes)(path)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError) or path.suffix.lower() not in COMPRESSIONS:
            raise
        problem = f"{path.name!r} cannot be decompressed ({error})"
        raise FileFormatError(problem, "compress it again", code="invalid_compression", file=path.name) from None


MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_text(path: Path) -> str:
    """Read a text file in any usual encoding, compressed or not."""
    return decode(decompress(path), path.name)


def decode(content: bytes, name: str) -> str:
    """Decode the text of a file, with a warning if its encoding had to be guessed."""
    (text,) = decode_files([(name, content)])
    return text


def decode_files(files: Iterable[tuple[str, bytes]]) -> list[str]:
    """Decode the texts of files, given as pairs of name and content; one warning for all that are not UTF-8."""
    texts, guessed = [], []
    for name, content in files:
        encoding = next((encoding for mark, encoding in MARKS if content.startswith(mark)), "UTF-8")
        try:
            texts.append(content.decode(encoding))
        except UnicodeDecodeError as error:
            if encoding != "UTF-8" or b"\0" in content:
                problem = f"{name!r} is not {encoding} text (byte {error.start})"
                hint = "save it as UTF-8"
                raise FileFormatError(problem, hint, code="not_utf8", file=name, byte=error.start) from None
            texts.append(content.decode("cp1252", errors="replace"))
            guessed.append(name)
    if guessed:
        subject = f"{guessed[0]!r} is" if len(guessed) == 1 else f"{len(guessed)} files ({first_few(guessed)}) are"
        warn(
            f"{subject} not UTF-8, and {'was' if len(guessed) == 1 else 'were'} read as Windows-1252 (Latin-1)",
            "save it as UTF-8 if letters are wrong" if len(guessed) == 1 else "save them as UTF-8 if letters are wrong",
            code="not_utf8",
            stacklevel=2,
            file=guessed[0],
            files=guessed,
        )
    return texts


# ----------------------------------------------------------------------------------------------------------------- CSV

DELIMITERS = ",;\t|"  # in order of preference


def csv_table(content: str, name: str) -> Table:
    """Read the table in the text of a CSV file.

    Rows of another length than the header raise an error, since values would be lost or shifted.
    """
    if "\0" in content:
        problem = f"{name!r} is not a table: it contains binary data"
        raise FileFormatError(problem, "save it as CSV", code="binary_file", file=name)
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
            problem = f"{name!r}, line {reader.line_num} is not CSV ({error})"
            hint = "close every quote, and double quotes inside quoted text"
            raise FileFormatError(problem, hint, code="invalid_csv", file=name, line=reader.line_num) from error
    header = [title.strip() for title in header]
    is_used = [bool(title) or len(header) == 1 or any(row[i].strip() for row in rows) for i, title in enumerate(header)]
    titles = checked_header(header, name, is_used)
    used = [(i, title) for i, title in enumerate(titles) if is_used[i]]
    columns = {title: [row[i] for row in rows] for i, title in used}
    unnamed = frozenset(title for i, title in used if not header[i])
    return Table(columns, line_numbers, "line", delimiter=delimiter, unnamed=unnamed)


def _checked_rows(reader: Any, header: list[str], name: str) -> tuple[list[list[str]], list[int]]:
    """Return the cells and line numbers of all rows; empty lines are allowed at the end only."""
    rows, line_numbers, first_blank = [], [], 0
    for row in reader:
        cells = row or [""]  # in a table with one column, an empty line is an empty cell
        if not row and len(header) > 1:
            first_blank = first_blank or reader.line_num
            continue
        if first_blank:
            problem = f"{name!r}, line {first_blank} is empty"
            hint = "remove it; only the end of a table may have empty lines"
            raise FileFormatError(problem, hint, code="empty_line", file=name, line=first_blank)
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
    pandas writes it. ``is_used`` says which columns are not empty: names are required of these alone.
    """
    named = [title for title in header if title]
    counts_columns = len(named) < len(header) and named == [str(i) for i in range(len(named))]
    if named and all(is_number(title) for title in named) and not counts_columns:
        problem = f"{name!r} begins with numbers instead of column names"
        raise FileFormatError(problem, "add a line of names", code="no_header", file=name)
    titles = [title or f"column {i}" for i, title in enumerate(header, 1)] if len(header) > 1 else list(header)
    used = is_used or [True] * len(header)
    unnamed = [title for title, given, is_used in zip(titles, header, used) if is_used and not given]
    if unnamed and len(header) > 1:
        warn(
            f"{name!r} has columns without a name, which are called {first_few([repr(title) for title in unnamed])}",
            "name them, or leave them out",
            code="unnamed_column",
            stacklevel=3,
            file=name,
            columns=unnamed,
        )
    title, count = Counter(titles).most_common(1)[0] if titles else ("", 0)
    if count > 1:
        problem = f"{name!r} has several columns {title!r}"
        raise FileFormatError(problem, "rename them", code="duplicate_column", file=name, column=title)
    return titles


@contextmanager
def _unlimited_field_size() -> Iterator[None]:
    """Lift the default limit of 128 kB per field, which documents may exceed."""
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)


# ---------------------------------------------------------------------------------------------- JSON lines and Excel


def json_lines(content: str, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of every line that is not empty."""
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            problem = f"{name!r}, line {number} is not JSON: {error}"
            hint = "write one JSON value per line"
            raise FileFormatError(problem, hint, code="invalid_json", file=name, line=number) from error


def json_lines_table(content: str, name: str) -> Table:
    """Read a table of JSON objects, one per line; a field that an object does not have is missing."""
    records = dict(json_lines(content, name))
    for number, record in records.items():
        if not isinstance(record, dict):
            problem = f"{name!r}, line {number} is not an object with fields"
            hint = 'write one object per line, such as {"id": 1, "text": "..."}'
            raise FileFormatError(problem, hint, code="invalid_json", file=name, line=number)
    titles = dict.fromkeys(title for record in records.values() for title in record)
    columns = {title: [record.get(title) for record in records.values()] for title in titles}
    return Table(columns, list(records), "line")


def excel_table(path: Path) -> Table:
    """Read the first sheet of an Excel or OpenDocument file."""
    calamine = import_optional("python_calamine", extra="table", purpose="Excel files")
    with reading(path.name, "cannot be read as a spreadsheet ({error})", "save it again", "invalid_spreadsheet"):
        workbook = calamine.CalamineWorkbook.from_path(str(path))
        sheets = [sheet for name in workbook.sheet_names if (sheet := workbook.get_sheet_by_name(name)).height]
        rows = sheets[0].to_python(skip_empty_area=False) if sheets else []
    if len(sheets) > 1:
        problem = f"{path.name!r} has {len(sheets)} sheets; the first one, {sheets[0].name!r}, was read"
        warn(problem, "save another one as a file of its own", code="several_sheets", file=path.name)
    numbered = [(number, row) for number, row in enumerate(rows, 1) if any(cell != "" for cell in row)]
    titles, numbered = (numbered[0][1], numbered[1:]) if numbered else ([], [])
    used = [i for i, title in enumerate(titles) if title != "" or any(row[i] != "" for _, row in numbered)]
    header = [str(_excel_cell(titles[i]) if titles[i] != "" else "").strip() for i in used]
    header = checked_header(header, path.name)
    columns = {title: [_excel_cell(row[i]) for _, row in numbered] for title, i in zip(header, used)}
    return Table(columns, [number for number, _ in numbered], "row")


def _excel_cell(cell: Any) -> Any:
    """Return None for an empty cell, and whole numbers, which spreadsheets store as floats, as integers."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return None if cell == "" else cell


# --------------------------------------------------------------------------------------------------- Parquet and Arrow

ARROW_FLOATS = ("halffloat", "float", "double")  # names of the floating-point types


def arrow_table(parts: Parts, path: Path) -> Table:
    """Read the table in a Parquet or Arrow file."""
    with reading_parts(path, parts):
        table = parts.read(str(path))
    titles = checked_header(table.column_names, path.name)
    columns = {title: _arrow_cells(table.column(i)) for i, title in enumerate(titles)}
    return Table(columns, list(range(1, table.num_rows + 1)), "row")


def _arrow_cells(column: Any) -> Any:
    """Return numbers as an array and anything else as a list, with None for missing values.

    Integers with missing values are a list too: an array would turn them into floats and NaN. Lists of equally many
    numbers, such as embeddings, are an array of shape (n, width).
    """
    if str(column.type).startswith(("list<", "large_list<", "fixed_size_list<")) and not column.null_count:
        widths = arrow_module("pyarrow.compute").list_value_length(column).unique().to_pylist()
        values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        if len(widths) == 1 and widths[0] > 0 and values.dtype.kind in "iuf":
            return values.reshape(len(column), widths[0])
    values = column.to_numpy()
    is_numeric = values.dtype.kind in "iub" or (values.dtype.kind == "f" and str(column.type) in ARROW_FLOATS)
    return values if is_numeric else column.to_pylist()


# --------------------------------------------------------------------------------------------------------- all formats


class Format(NamedTuple):
    """What can be read of the files with an ending."""

    table: Callable[..., Table] | None = None  # from text and name of a file, if it is text, otherwise from its path
    rows: Callable[..., Input] | None = None  # from path and roles, of files that are not tables
    is_text: bool = False  # in some encoding, and perhaps compressed; without a table, it is one document
    has_bare_texts: bool = False  # whether a row of a table may be a text without the name of a column
    parts: Parts | None = None  # how some rows of a table are read at a time
    blocks: Callable[[Path, int | None], Any] | None = None  # from path and number of rows, of files without columns

    @property
    def has_documents(self) -> bool:
        """Whether documents can be read: one, or those in a column of a table."""
        return self.is_text or self.table is not None

    @property
    def has_rows(self) -> bool:
        """Whether the whole file can be read at once."""
        return self.has_documents or self.rows is not None


CSV = Format(csv_table, is_text=True)
EXCEL = Format(excel_table)
JSON_LINES = Format(json_lines_table, is_text=True, has_bare_texts=True)
ARROW = Format(partial(arrow_table, Arrow), parts=Arrow)

FORMATS: dict[str, Format] = {
    ".csv": CSV,
    ".tsv": CSV,
    ".parquet": Format(partial(arrow_table, Parquet), parts=Parquet),
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".xlsx": EXCEL,
    ".xls": EXCEL,
    ".xlsb": EXCEL,
    ".ods": EXCEL,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".npy": Format(rows=from_npy, blocks=npy_blocks),
    ".npz": Format(rows=from_npz),
    ".txt": Format(is_text=True),
    ".h5ad": Format(rows=from_h5ad),
    ".zarr": Format(blocks=zarr_blocks),
}


def file_format(path: Path) -> Format | None:
    """Return the format of a file by the ending of its name, also of a compressed text; None if it is unknown.

    Examples
    --------
    >>> file_format(Path("customers.CSV.gz")) is FORMATS[".csv"], file_format(Path("photo.png"))
    (True, None)
    """
    if path.suffix.lower() not in COMPRESSIONS:
        return FORMATS.get(path.suffix.lower())
    inside = FORMATS.get(Path(path.stem).suffix.lower())
    return inside if inside is not None and inside.is_text else None


def is_table_file(path: Path) -> bool:
    """Whether a file is a table, judged by its ending."""
    known = file_format(path)
    return known is not None and known.table is not None


def read_table(path: Path) -> Table:
    """Read a table by the ending of its name."""
    known = file_format(path)
    if known is None or known.table is None:
        raise FileFormatError(f"{path.name!r} is not a table", code="unsupported_file_type", file=path.name)
    return known.table(read_text(path), path.name) if known.is_text else known.table(path)


def read_tables(folder: Path, paths: Sequence[Path]) -> Table:
    """Read the tables of a folder, which have the same columns, one below the other."""
    tables = {str(path.relative_to(folder)): read_table(path) for path in paths}
    (first_name, first), *others = tables.items()
    for name, table in others:
        if set(table.columns) != set(first.columns):
            differing = sorted(set(table.columns) ^ set(first.columns))
            problem = f"{name!r} and {first_name!r} differ in the columns {', '.join(map(repr, differing))}"
            raise FileFormatError(problem, "give all files the same columns", code="different_columns", file=name)
    n_rows = sum(len(table.numbers) for table in tables.values())
    columns = {title: [cell for table in tables.values() for cell in table.columns[title]] for title in first.columns}
    return first._replace(columns=columns, numbers=list(range(1, n_rows + 1)), unit="row")
