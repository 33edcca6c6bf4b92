"""Rows to cluster, the record that all readers return, and how the columns of a table become one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import FiedlerError, FileFormatError, InputError, not_enough_memory_to_read
from ..table import TableEncoder
from ..table.columns import Column, Requests, plan_columns, recognise_columns
from ..table.values import Words, is_missing, read_values, to_word
from ..text.documents import check_documents

MAX_SHOWN = 40  # characters of a cell quoted in a message
MAX_SAMPLED = 1000  # cells of a column by which the decimal mark is recognised

Kind = Literal["table", "mixed", "array", "images", "texts", "graph"]


class CsvStyle(NamedTuple):
    """How a CSV file is written."""

    delimiter: str = ","
    decimal: str = "."


class Table(NamedTuple):
    """Columns by name, and the number of the line or row that each table row was read from.

    ``columns`` has lists of strings from a CSV file, of numbers, strings and dates from an Excel file, and arrays for
    the numeric columns of a Parquet or Arrow file. ``numbers`` are counted from 1, in lines of text files or rows of
    others.
    """

    columns: dict[str, Any]
    numbers: list[int]
    unit: Literal["line", "row"]
    missing: frozenset[str] = frozenset()  # further words for missing values, in lower case
    delimiter: str | None = None  # of a CSV file
    unnamed: frozenset[str] = frozenset()  # columns that are called by their place, as they have no name in the file

    @property
    def style(self) -> CsvStyle:
        """The separator and the decimal mark of a CSV file, a point where no numbers are written with a comma."""
        if self.delimiter is None:
            return CsvStyle()
        samples = (cells[:MAX_SAMPLED] for cells in self.columns.values())
        has_commas = any(read_values(sample).notation == "decimal comma" for sample in samples)
        return CsvStyle(self.delimiter, "," if has_commas else ".")

    def header(self, name: str) -> str:
        """Return the name of a column in the file, which may be empty."""
        return "" if name in self.unnamed else name

    @property
    def cells(self) -> dict[str, Any]:
        """The columns with None for the further words for missing values."""
        return {name: self.present(name) for name in self.columns}

    def present(self, name: str) -> Any:
        """Return a column with None for the further words for missing values."""
        cells = self.columns[name]
        is_other = isinstance(cells, np.ndarray) and (cells.dtype.kind not in "iufO" or cells.ndim > 1)
        if is_other or not self.missing:
            return cells
        listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
        present = [None if to_word(cell).lower() in self.missing else cell for cell in listed]
        return type(cells)(present) if isinstance(cells, Words) else present

    @property
    def locations(self) -> list[str]:
        """Location of each row in words, such as ``line 7``."""
        return [f"{self.unit} {number}" for number in self.numbers]


class Input(NamedTuple):
    """Rows to cluster, with their names and known classes.

    Attributes
    ----------
    kind : {'table', 'mixed', 'array', 'images', 'texts', 'graph'}
        A table of numbers, or one with columns of any kind, which ``encoder`` turns into numbers.
    X : array or CSR matrix of shape (n, d), list of n texts, dict of columns of n cells, or AffinityGraph
        Images are rows of pixels between 0 and 1.
    row_names : list of str
        One name per row: the file, an id from the table, or the row number, counted from 0.
    feature_names : list of str or None
        Names of the columns of a table that are used.
    image_shape : tuple or None
        Height, width and, in colour, the number of channels of an image.
    labels : array of shape (n,) or None
        Known classes as integer codes into ``class_names``; -1 where unknown.
    class_names : list of str or None
        Name of each class.
    encoder : TableEncoder or None
        Of a mixed table, not fitted.
    id_name : str or None
        The name of the column of row names, if there is one.
    table : Table or None
        All columns of a table as they are in the file.
    label_name : str or None
        The name of the column of known classes.
    weights : array of shape (n,) or None
        The weights of the rows.
    skipped : tuple of str
        The names of files that were left out, as they cannot be read.
    representation : str or None
        What of an AnnData file was read: 'connectivities', 'X', or the name of rows in ``obsm``.
    plan : list of Column or None
        The columns of a table that are used, or left out, with their values; None for new rows of a model.

    Examples
    --------
    >>> from fiedler.io import Input
    >>> Input("texts", ["a sentence", "another"], ["first", "second"]).n_rows
    2
    """

    kind: Kind
    X: Any
    row_names: list[str]
    feature_names: list[str] | None = None
    image_shape: tuple[int, ...] | None = None
    labels: np.ndarray | None = None
    class_names: list[str] | None = None
    encoder: TableEncoder | None = None
    id_name: str | None = None
    table: Table | None = None
    label_name: str | None = None
    weights: np.ndarray | None = None
    skipped: tuple[str, ...] = ()
    representation: str | None = None
    plan: list[Column] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_names)

    @property
    def style(self) -> CsvStyle:
        """How CSV files with results of the rows are written: as the table is."""
        return CsvStyle() if self.table is None else self.table.style

    @property
    def id_header(self) -> str:
        """The name of the column of row names in the results."""
        if self.id_name is None:
            return "id"
        return self.id_name if self.table is None else self.table.header(self.id_name)

    @property
    def columns(self) -> dict[str, Any] | None:
        """The columns of the table that describe rows, also those that are not used, without names and classes."""
        if self.table is None:
            return None
        others = (self.id_name, self.label_name)
        return {name: cells for name, cells in self.table.cells.items() if name not in others}

    def read_columns(self, requests: Requests) -> list[Column]:
        """Return what `columns` contain; those of the plan are not read again."""
        planned = {column.name: column for column in self.plan or ()}
        cells = self.columns or {}
        others = {name: column for name, column in cells.items() if name not in planned}
        read = planned | {one.name: one for one in recognise_columns(others, requests)}
        return [read[name] for name in cells]

    @property
    def is_partially_labeled(self) -> bool:
        """Whether some but not all rows have a known class, so that a method can learn from them."""
        return self.labels is not None and bool((self.labels < 0).any())


class Roles(NamedTuple):
    """Roles of the columns of a table; columns without a role are features, unless ``features`` names them."""

    labels: str | None = None
    id: str | None = None
    text: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    requests: Requests = Requests()  # what features are taken for, and their weights
    is_new: bool = False  # whether the rows are new ones for a model, which decides how columns are used
    names: str | None = None  # a column of row names that need not exist
    row_weight: str | None = None
    missing: tuple[str, ...] = ()

    def encoder(self) -> TableEncoder:
        """Return the encoder of a mixed table."""
        _, category, number, text, weight = self.requests
        return TableEncoder(as_category=category, as_number=number, as_text=text, weight=dict(weight) or None)


def encode_labels(values: Iterable[Any], *, unknown: Container[str] = ()) -> tuple[np.ndarray, list[str]]:
    """Encode classes as integers, -1 where missing, and return the codes and the sorted class names.

    Floats that are whole numbers are named without a decimal point. Names in ``unknown`` count as missing.
    """
    names = [None if (name := _class_name(value)) in unknown else name for value in values]
    class_names = sorted({name for name in names if name is not None})
    code_of = {name: code for code, name in enumerate(class_names)}
    return np.array([-1 if name is None else code_of[name] for name in names], dtype=np.int64), class_names


def _class_name(value: Any) -> str | None:
    if is_missing(value):
        return None
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value).strip()


def known_classes(values: Iterable[Any], where: str, file: str, column: str) -> dict[str, Any]:
    """Return the classes in a column as fields of an :class:`Input`; at least one must be known."""
    labels, class_names = encode_labels(values)
    if not class_names:
        problem, hint = f"{where} contains no label", "choose another column of labels, or none"
        raise InputError(problem, hint, code="no_labels", file=file, column=column)
    return {"labels": labels, "class_names": class_names}


def number_rows(n_rows: int) -> list[str]:
    """Name rows by their numbers, counted from 0."""
    return [str(row) for row in range(n_rows)]


def refuse_roles(roles: Roles, source: str) -> None:
    """Raise an error for an option that names columns of a source without columns."""
    _, category, number, text, weight = roles.requests
    requests = {"as_category": category, "as_number": number, "as_text": text, "weight": weight}
    given = [name for name, value in (roles._asdict() | {"requests": None} | requests).items() if value]
    if given:
        problem, hint = f"{given[0]} is for tables, but {source} has no named columns", f"leave {given[0]} out"
        raise InputError(problem, hint, code="no_columns", parameter=given[0], file=source)


@contextmanager
def reading(file: str, problem: str, hint: str, code: str, **fields: Any) -> Iterator[None]:
    """Raise one kind of error for all the ways in which libraries fail to read a damaged file.

    In the problem, ``{error}`` and ``{kind}`` stand for the message and the class of the library's own error. A lack of
    memory or of a library is no evidence of damage, and the system has its own message for files without permission.
    """
    try:
        yield
    except MemoryError:
        raise not_enough_memory_to_read(file) from None
    except (FiedlerError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        problem = problem.replace("{error}", str(error)).replace("{kind}", type(error).__name__)
        raise FileFormatError(f"{file!r} {problem}", hint, code=code, file=file, **fields) from None


# ------------------------------------------------------------------------------------------------- rows of a table


def from_table(table: Table, roles: Roles, file: str) -> Input:
    """Return the rows of a table, or its texts where a column of them is named, with row names and labels."""
    if roles.id is None and roles.names in table.columns:
        roles = roles._replace(id=roles.names)
    table = table._replace(missing=frozenset(to_word(word).lower() for word in roles.missing))
    _check_roles(table, roles, file)
    if not table.numbers:
        under_header = " below its header" if table.columns else ""
        raise FileFormatError(f"{file!r} contains no rows{under_header}", "add some", code="no_rows", file=file)
    columns = table.cells
    row_names = number_rows(len(table.numbers)) if roles.id is None else _as_text(columns[roles.id])
    weights = None if roles.row_weight is None else _weights(table, roles.row_weight, file)
    about: dict[str, Any] = {"id_name": roles.id, "label_name": roles.labels, "table": table, "weights": weights}
    if roles.labels is not None:
        about |= known_classes(columns[roles.labels], f"{file!r}, column {roles.labels!r}", file, roles.labels)
    if roles.text is not None:
        texts = check_documents(_as_text(columns[roles.text])).texts
        return Input("texts", texts, row_names, [roles.text], **about)
    if roles.features:
        X = np.stack([_numbers(table, name, file) for name in roles.features], axis=1)
        return Input("table", X, row_names, list(roles.features), **about)
    return _mixed_rows(table, roles, file, Input("mixed", None, row_names, **about))


def _mixed_rows(table: Table, roles: Roles, file: str, result: Input) -> Input:
    """Return columns of any kind, to be encoded; as an array if they are complete columns of numbers."""
    others = {roles.labels, roles.id, roles.row_weight, *roles.drop}
    cells = {name: column for name, column in table.cells.items() if name not in others}
    if not cells:
        problem = f"{file!r} has no column left as a feature"
        raise InputError(problem, "drop fewer columns", code="no_features", file=file)
    if len(table.numbers) < 2 or roles.is_new:
        return result._replace(X=cells, feature_names=list(cells), encoder=roles.encoder())
    columns = plan_columns(cells, roles.requests, [f"{file!r}, {location}" for location in table.locations])
    if len(table.columns) == 1 and columns[0].values.type == "words":
        shown = table.columns[columns[0].name][0]
        problem = f"{file!r} has a single column, {columns[0].name!r}, and {shown!r} in it is not a number"
        hint = "separate columns by a comma, semicolon, tab or |, or give the column a role as labels, id or text"
        raise InputError(problem, hint, code="single_column_not_numeric", file=file, column=columns[0].name)
    is_plain = [one.kind == "number" and one.values.is_plain and not one.values.is_missing.any() for one in columns]
    if all(is_plain) and not roles.requests.weight:
        X = np.stack([column.values.cells for column in columns], axis=1)
        return result._replace(kind="table", X=X, feature_names=list(cells), plan=columns)
    id_name = next((one.name for one in columns if one.kind == "id" and not one.values.is_missing.any()), None)
    if id_name is not None and roles.id is None:
        result = result._replace(row_names=_as_text(table.columns[id_name]), id_name=id_name)
    return result._replace(X=cells, feature_names=list(cells), encoder=roles.encoder(), plan=columns)


def is_number(cell: Any) -> bool:
    """Whether a cell can be read as a number."""
    if isinstance(cell, str) and not _is_plain(cell):
        return False
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True


def _is_plain(text: str) -> bool:
    """Whether a text has none of the notation that only Python's ``float`` accepts: 1_0, digits of other scripts."""
    return text.isascii() and "_" not in text


def _check_roles(table: Table, roles: Roles, file: str) -> None:
    for name in filter(None, (roles.labels, roles.id, roles.text, roles.row_weight, *roles.drop, *roles.features)):
        if name not in table.columns:
            columns = list(table.columns)
            problem = f"{file!r} has no column {name!r}"
            hint = f"its columns are {', '.join(map(repr, columns)) or 'none'}"
            raise InputError(problem, hint, code="no_such_column", file=file, column=name, columns=columns)
    named = [*filter(None, (roles.labels, roles.id, roles.text, roles.row_weight)), *set(roles.drop)]
    duplicate = next((name for name in named if named.count(name) > 1), None)
    if duplicate is not None:
        problem = f"{file!r}, column {duplicate!r} is given two roles"
        raise InputError(problem, "give it one", code="two_roles", file=file, column=duplicate)


def _weights(table: Table, column: str, file: str) -> np.ndarray:
    """Return the weights of rows."""
    try:
        return _numbers(table, column, file)
    except InputError as error:
        hint = "choose a column of positive numbers as row_weight, or none"
        raise InputError(error.problem, hint, code="weights_not_numbers", **error.fields) from None


def _numbers(table: Table, column: str, file: str) -> np.ndarray:
    """Return a column as floats; the error names the location of the first cell that is not a finite number."""
    cells = table.present(column)
    if any(isinstance(cell, list | dict) for cell in cells[:1]):
        problem = f"{file!r}, column {column!r} contains lists"
        hint = "save them as an NPY file, or leave the column out with drop"
        raise InputError(problem, hint, code="nested_column", file=file, column=column)
    try:
        if isinstance(cells, list) and not _is_plain("".join(cell for cell in cells if isinstance(cell, str))):
            raise ValueError
        numbers = np.asarray(cells, dtype=np.float64)
        invalid = np.flatnonzero(~np.isfinite(numbers))
    except (ValueError, TypeError):
        invalid = np.array([row for row, cell in enumerate(cells) if not is_number(cell)])
    if len(invalid):
        row = int(invalid[0])
        location = {"file": file, "column": column, table.unit: table.numbers[row]}
        prefix = f"{file!r}, column {column!r}, {table.locations[row]}: "
        raise _cell_error(cells[row], prefix, location, is_only_column=len(table.columns) == 1)
    return numbers


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
