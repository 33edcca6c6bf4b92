"""The columns of a table, from any library of data frames: what each contains, and which are left out.

| kind     | what it is                                                        | used as                              |
|----------|-------------------------------------------------------------------|--------------------------------------|
| number   | numbers that differ in size                                       | one column                           |
| date     | dates and times                                                   | one column, in days                  |
| category | few different words, yes and no, codes such as postcodes           | one column for each frequent word    |
| text     | sentences                                                         | the leading components of its terms  |
| vector   | equally many numbers in every cell, such as embeddings            | as many columns                      |
| id       | another value in every row, or in almost every one                | left out                             |
| constant | a single value                                                    | left out                             |
| empty    | no value at all                                                   | left out                             |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import as_array, did_you_mean, first_few, import_optional, is_foreign
from ..core.arrays import to_numpy
from ..errors import InputError, InputTypeError, shown
from .values import Values, ValueType, Words, describe_notation, read_values, to_objects

# -------------------------------------------------------------------------------- cells of frames, dictionaries, arrays


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame of pandas, polars or pyarrow, or of another library that narwhals knows."""
    return not isinstance(X, np.ndarray) and hasattr(X, "schema" if hasattr(X, "column_names") else "columns")


def is_table(X: Any) -> bool:
    """Whether the columns of ``X`` have names: a data frame, or a dictionary of columns."""
    return is_frame(X) or isinstance(X, Mapping)


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    return [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]


def is_dense_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame whose columns are those of a table; a sparse one of pandas is a matrix."""
    return is_frame(X) and getattr(X, "sparse", None) is None


def table_cells(X: Any, estimator: str = "TableEncoder") -> dict[str, Any]:
    """Return the cells of every column by name; those of an array are called x0, x1, ..."""
    if sp.issparse(X):
        problem = f"{estimator} does not take sparse rows"
        raise InputError(problem, "pass them to the clusterer as they are", code="sparse_not_supported", parameter="X")
    if isinstance(X, Mapping):
        columns = list(X.items())
    elif is_frame(X):
        columns = _frame_columns(X)
    else:
        array = to_numpy(X) if is_foreign(X) else as_array(X)
        if array is None:
            problem = f"a table has rows and columns; got {shown(X)}"
            raise InputError(problem, "pass rows of one length", code="wrong_shape", parameter="X")
        if array.ndim == 2 and not array.shape[1]:
            problem = f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
            raise InputError(problem, code="no_columns", parameter="X")
        if array.ndim != 2:
            problem = f"a table has rows and columns; got an array of shape {array.shape}. Reshape your data"
            raise InputError(problem, code="wrong_shape", parameter="X")
        if np.iscomplexobj(array):
            raise InputError("Complex data not supported", "use real numbers", code="wrong_dtype", parameter="X")
        columns = [(f"x{j}", array[:, j]) for j in range(array.shape[1])]
    cells = {str(name): column for name, column in columns}
    if single := next((name for name, column in cells.items() if not hasattr(column, "__len__")), None):
        raise InputError(f"the column {single!r} is not a list of cells", code="wrong_shape", parameter="X")
    if len(cells) < len(columns):
        raise InputError("the table has several columns of the same name", "rename them", code="duplicate_column")
    if len({len(column) for column in cells.values()}) > 1:
        raise InputError("the columns of the table differ in length", code="wrong_length", parameter="X")
    return cells


def _frame_columns(X: Any) -> list[tuple[Any, Any]]:
    narwhals = import_optional("narwhals", extra="table", purpose="data frames")
    names = None
    if type(X).__module__.startswith("pandas"):  # whose columns may have names that are not strings
        names, X = list(X.columns), X.set_axis([str(place) for place in range(X.shape[1])], axis=1)
    try:
        frame = narwhals.from_native(X, eager_only=True)
        columns = [(series.name, _series_cells(series, narwhals)) for series in frame.iter_columns()]
    except (TypeError, ValueError) as error:
        problem = f"this {type(X).__name__} cannot be read as a table: {error}"
        hint = "pass a data frame of pandas, polars or pyarrow; call .collect() on a lazy one"
        raise InputTypeError(problem, hint, code="not_a_table", parameter="X") from None
    return columns if names is None else [(name, cells) for name, (_, cells) in zip(names, columns)]


def _series_cells(series: Any, narwhals: Any) -> Any:
    """Return numbers and dates as arrays where that loses nothing, categories as words, and other cells as a list."""
    dtype = series.dtype
    if dtype in (narwhals.Categorical, narwhals.Enum):
        return Words(series.to_list())
    if dtype.is_numeric() and not dtype.is_decimal():
        if dtype.is_integer() and series.null_count() == 0:
            return np.asarray(series.to_numpy())
        return np.asarray(series.cast(narwhals.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
    if dtype in (narwhals.Datetime, narwhals.Date) and getattr(dtype, "time_zone", None) is None:
        return np.asarray(series.cast(narwhals.Datetime("us")).to_numpy(), dtype="datetime64[us]")
    return series.to_list()


def n_rows_of(cells: Mapping[str, Any]) -> int:
    """Return the number of rows of a table, which must have columns."""
    if not cells:
        raise InputTypeError("the table has no columns", "check how it is read", code="no_columns", parameter="X")
    return len(next(iter(cells.values())))


# ------------------------------------------------------------------------------------------------ how columns are used

Kind = Literal["number", "date", "category", "text", "vector", "id", "constant", "empty", "dropped"]

CODE_NAME = re.compile(r"(?:^|[_\W])(?i:id|code|zip|zipcode|plz|postleitzahl|postcode|store)$|[a-z](?:I[Dd]|Code)$")
ID_NAME = re.compile(r"(?:^|[_\W])(?i:id|ids|key|uuid|guid|index|no|nr|number)\.?$|[a-z]I[Dd]$|^(?i:unnamed)")
MAX_DISTINCT_SHARE = 0.5  # different words per row, above which a column of words is an id
MIN_ROWS_OF_ID = 20  # fewer rows may all differ by chance
MIN_WORDS_OF_TEXT = 4  # on average, of free text
MIN_LEVELS_OF_TEXT = 20
MIN_LEVELS_OF_ID = 20  # different whole numbers of a column that is called an id
LEFT_OUT: tuple[Kind, ...] = ("id", "constant", "empty", "dropped")


class Column(NamedTuple):
    """A column of a table: what it contains, and why it is used in this way, in a few words."""

    name: str
    kind: Kind
    values: Values
    reason: str = ""
    is_requested: bool = False  # whether a person has said what it contains

    @property
    def is_used(self) -> bool:
        """Whether rows are compared by it."""
        return self.kind not in LEFT_OUT


class Requests(NamedTuple):
    """What a person says about columns: those to leave out, those of a kind whatever they look like, and weights."""

    drop: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    weight: Mapping[str, float] = {}

    def check(self, names: Sequence[str]) -> None:
        """Raise an error for a name that no column has, or that has two kinds."""
        asked = [*self.drop, *self.category, *self.number, *self.text]
        for name in [*asked, *self.weight]:
            if name not in names:
                problem = f"there is no column {name!r}{did_you_mean(name, names)}"
                hint = f"the columns are {first_few([repr(one) for one in names], 20)}"
                raise InputError(problem, hint, code="no_such_column", column=name, columns=list(names))
        twice = next((name for name in asked if asked.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"column {twice!r} is given two kinds", "give it one", code="two_roles", column=twice)
        for name, factor in self.weight.items():
            if not (np.isfinite(factor) and factor > 0):
                problem = f"the weight of column {name!r} is {factor!r}"
                hint = "use a positive number, or leave the column out"
                raise InputError(problem, hint, code="invalid_weight", column=name)


def plan_columns(cells: Mapping[str, Any], requests: Requests, locations: Sequence[str] | None = None) -> list[Column]:
    """Decide how every column is used; all problems are in one error, which says where the rows are (``locations``)."""
    requests.check(list(cells))
    columns = [_plan(name, column, requests) for name, column in cells.items()]
    wrong = [column for column in columns if column.values.n_mistakes]
    problems = [_describe_mistakes(column, cells[column.name], locations) for column in wrong]
    if problems:
        problem = "; ".join(problems)
        hint = "correct these cells or empty them, or choose categories for the columns (as_category), or drop them"
        raise InputError(problem, hint, code="mixed_column", columns=[column.name for column in wrong])
    if not any(column.is_used for column in columns):
        listed = first_few([f"{column.name!r} ({column.reason})" for column in columns])
        is_equal = all(column.kind in ("constant", "empty") for column in columns)
        problem = f"no column is left to compare rows by: {listed}"
        hint = "check the data" if is_equal else "drop fewer columns, or choose categories for some (as_category)"
        raise InputError(problem, hint, code="no_values_differ" if is_equal else "no_features")
    return columns


def recognise_columns(cells: Mapping[str, Any], requests: Requests) -> list[Column]:
    """Decide what every column contains, to describe it; one with cells of several types contains words."""
    requests = requests._replace(drop=())
    columns = [_plan(name, column, requests) for name, column in cells.items()]
    return [_plan(one.name, Words(cells[one.name]), requests) if one.values.n_mistakes else one for one in columns]


KIND_NAMES = {"dates": "a date", "numbers": "a finite number", "vectors": "a vector of as many finite numbers"}


def _describe_mistakes(column: Column, cells: Any, locations: Sequence[str] | None) -> str:
    values = column.values
    where = lambda row: f"row {row}" if locations is None else locations[row]  # noqa: E731
    shown = ", ".join(f"{cells[row]!r} ({where(row)})" for row in values.mistakes)
    kind = KIND_NAMES[values.type]
    more = "" if values.n_mistakes <= len(values.mistakes) else f" and {values.n_mistakes - len(values.mistakes)} more"
    if column.is_requested:
        return f"column {column.name!r} is to be taken for {values.type}, but {shown}{more} is not {kind}"
    if values.has_mixed_notations:
        return f"column {column.name!r} has {values.type} in several notations: {shown}{more} differ from the others"
    return f"column {column.name!r}: {shown}{more} is not {kind}, as the other cells are"


def _plan(name: str, cells: Any, requests: Requests) -> Column:
    if name in requests.drop:
        return Column(name, "dropped", Values("words", np.empty(0, dtype=object)), "dropped")
    is_typed = isinstance(cells, np.ndarray) and cells.dtype.kind != "O"
    expected: ValueType | None = "numbers" if name in requests.number and not is_typed else None
    given = read_values(cells, as_words=name in requests.category or name in requests.text, expected=expected)
    is_asked = name in {*requests.category, *requests.number, *requests.text}
    values, notes = (given, []) if is_asked else _as_category(name, cells, given)
    if values.is_missing.all():
        return Column(name, "empty", values, "no values")
    present = values.cells[~values.is_missing]
    n_distinct = len(set(present)) if values.type == "words" else len(np.unique(present, axis=0))
    if n_distinct == 1 and name not in requests.number:
        return Column(name, "constant", values, ", ".join(["all values are equal", *notes]))
    for kind in ("category", "text"):
        if name in getattr(requests, kind):
            return Column(name, kind, values, "as asked", is_requested=True)
    if name in requests.number:
        if values.type != "numbers":
            problem = f"column {name!r} was to be taken for numbers, but contains {values.type}"
            raise InputError(problem, "leave that out", code="not_numbers", column=name)
        return Column(name, "number", values, "as asked", is_requested=True)
    kind, reason = _recognise(name, values, present, n_distinct)
    if kind != "category":
        return Column(name, kind, given, reason)
    return Column(name, kind, values, ", ".join([reason, *notes]))


def _as_category(name: str, cells: Any, values: Values) -> tuple[Values, list[str]]:
    """Return the values of a column if it is a category, and what is changed: codes are words, spellings are joined."""
    if _has_codes(name, values):
        words = read_values(cells, as_words=True).cells
        present = [None if word in values.placeholders else word for word in words]
        return Values("words", to_objects(present)), ["codes, by the name"]
    if values.type == "words" and not isinstance(cells, Words):
        return _join_spellings(values)
    return values, []


def _has_codes(name: str, values: Values) -> bool:
    """Whether whole numbers are codes, such as postcodes: by the name of their column, if some occur more than once."""
    if values.type != "numbers" or not values.is_plain or not CODE_NAME.search(name):
        return False
    present = values.cells[~values.is_missing]
    if (present < 0).any() or (present != np.round(present)).any():
        return False
    n_distinct, n_present = len(np.unique(present)), len(present)
    is_id = ID_NAME.search(name) is not None and n_distinct >= MIN_LEVELS_OF_ID
    return not is_id and (n_distinct < n_present or n_present >= MIN_ROWS_OF_ID)


def _join_spellings(values: Values) -> tuple[Values, list[str]]:
    """Join the words of a category that differ in capitals only into the most frequent one; also say which."""
    counts = Counter(word for word in values.cells if word is not None)
    spelling: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        spelling.setdefault(word.casefold(), word)
    joined = {word: spelling[word.casefold()] for word in sorted(counts) if spelling[word.casefold()] != word}
    if not joined:
        return values, []
    cells = to_objects([joined.get(word, word) for word in values.cells])
    return values._replace(cells=cells, joined=tuple(joined)), [describe_spellings(joined)]


def describe_spellings(joined: Mapping[str, str]) -> str:
    """Say which words of a category are taken for which others."""
    return first_few([f"{word!r} is taken for {other!r}" for word, other in joined.items()])


def _recognise(name: str, values: Values, present: np.ndarray, n_distinct: int) -> tuple[Kind, str]:
    """Return the kind of a column and the reason, from its values that are not missing."""
    how = describe_notation(values.notation, values.unit)
    n_present = len(present)
    all_differ = n_distinct == n_present and n_present >= MIN_ROWS_OF_ID
    if values.type == "vectors":
        return "vector", f"{values.cells.shape[1]} numbers each"
    if values.type == "dates":
        return "date", f"{how}; could be {values.alternative}" if values.alternative else how
    if values.type == "numbers":
        if all_differ and (np.diff(present) == 1).all():  # 1, 2, 3, ... or from another number on
            return "id", "another number in every row"
        if ID_NAME.search(name) and n_distinct >= MIN_LEVELS_OF_ID and (present == np.round(present)).all():
            return "id", "whole numbers with the name of an id"
        return "number", how
    if n_distinct >= MIN_LEVELS_OF_TEXT and np.mean([len(text.split()) for text in present]) >= MIN_WORDS_OF_TEXT:
        return "text", "sentences"
    if all_differ:
        return "id", "another value in every row"
    if n_distinct > MAX_DISTINCT_SHARE * n_present and n_present >= MIN_ROWS_OF_ID:
        return "id", f"{n_distinct} different values in {n_present} rows"
    return "category", f"{n_distinct} different values"


def format_plan(columns: Sequence[Column]) -> str:
    """Return a line for every column: its name, how it is used, and why.

    Examples
    --------
    >>> print(format_plan(plan_columns({"age": [3, 5, 4], "id": ["a", "b", "c"], "unit": ["m"] * 3}, Requests())))
    age   number
    id    category  3 different values
    unit  left out  constant: all values are equal
    """
    width = max(len(column.name) for column in columns)
    return "\n".join(f"{name:<{width}}  {use:<8}  {details}".rstrip() for name, use, details in describe_plan(columns))


def describe_plan(columns: Sequence[Column]) -> list[tuple[str, str, str]]:
    """Return the name of every column, how it is used, and why, with the number of missing values."""
    lines: list[tuple[str, str, str]] = []
    for column in columns:
        n_missing = int(column.values.is_missing.sum()) if column.is_used else 0
        details = [column.reason, f"{n_missing} missing" if n_missing else ""]
        if column.is_used and column.values.placeholders:
            details[-1] += f" ({', '.join(map(repr, column.values.placeholders))} among them)"
        use = column.kind if column.is_used else "left out"
        if not column.is_used and column.kind != "dropped":
            details = [f"{column.kind}: {column.reason}"]
        lines.append((column.name, use, ", ".join(filter(None, details))))
    return lines
