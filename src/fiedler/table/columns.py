"""How the columns of a table are used: what each contains, and which are left out.

| kind     | what it is                                                        | used as                              |
|----------|-------------------------------------------------------------------|--------------------------------------|
| number   | numbers that differ in size                                       | one column                           |
| date     | dates and times                                                   | one column, in days                  |
| category | few different words, yes and no                                   | one column for each frequent word    |
| text     | sentences                                                         | the leading components of its terms  |
| vector   | equally many numbers in every cell, such as embeddings            | as many columns                      |
| id       | another value in every row, or in almost every one                | left out                             |
| constant | a single value                                                    | left out                             |
| empty    | no value at all                                                   | left out                             |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import as_array, did_you_mean, first_few, import_optional, is_foreign
from ..core.arrays import to_numpy
from ..errors import InputError, InputTypeError, shown, warn
from .values import Values, ValueType, Words, read_values

# ---------------------------------------------------------------------------------------------------------------------
# The columns of a data frame, whichever library it comes from, and of arrays and dictionaries.

MAX_SAMPLED_ROWS = 10_000  # from which a distribution of rows is estimated
MIN_PRESENT_ROWS = 10  # of every column among these
EXAMPLES = {"number": "1234.5", "date": "2024-12-31"}  # of cells that are read without further ado


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame of pandas, polars or pyarrow, or of another library that narwhals knows."""
    return not isinstance(X, np.ndarray) and hasattr(X, "schema" if hasattr(X, "column_names") else "columns")


def is_table(X: Any) -> bool:
    """Whether the columns of ``X`` have names: a data frame, or a dictionary of columns."""
    return is_frame(X) or isinstance(X, Mapping)


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    return [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]


def is_mixed(X: Any) -> bool:
    """Whether ``X`` is a data frame that is not made of finite numbers alone, so that it has to be encoded."""
    if not is_frame(X) or getattr(X, "sparse", None) is not None:  # pandas' sparse frames are numbers
        return False
    try:
        array = np.asarray(X)
        if array.dtype.kind in "Mm" or array.ndim != 2:
            return True
        return not bool(np.isfinite(array if array.dtype.kind in "biufc" else array.astype(np.float64)).all())
    except (ValueError, TypeError, OverflowError):
        return True


def table_cells(X: Any, estimator: str = "TableEncoder") -> dict[str, Any]:
    """Return the cells of every column by name.

    Parameters
    ----------
    X : data frame, dict of columns, or array of shape (n, d)
        The columns of an array are called x0, x1, ...
    estimator : str
        For which they are, in errors.
    """
    if sp.issparse(X):
        raise InputError(
            f"{estimator} does not take sparse rows",
            "pass them to the clusterer as they are",
            code="sparse_not_supported",
            parameter="X",
        )
    if isinstance(X, Mapping):
        columns = list(X.items())
    elif is_frame(X):
        columns = _frame_columns(X)
    else:
        array = to_numpy(X) if is_foreign(X) else as_array(X)
        if array is None:
            raise InputError(
                f"a table has rows and columns; got {shown(X)}", "pass rows of one length", code="wrong_shape",
                parameter="X",
            )  # fmt: skip
        columns = _array_columns(array)
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
        raise InputTypeError(
            f"this {type(X).__name__} cannot be read as a table: {error}",
            "pass a data frame of pandas, polars or pyarrow; call .collect() on a lazy one",
            code="not_a_table",
            parameter="X",
        ) from None
    return columns if names is None else [(name, cells) for name, (_, cells) in zip(names, columns)]


def _array_columns(array: np.ndarray) -> list[tuple[Any, Any]]:
    if array.ndim == 2 and not array.shape[1]:
        raise InputError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.",
            code="no_columns",
            parameter="X",
        )
    if array.ndim != 2:
        raise InputError(
            f"a table has rows and columns; got an array of shape {array.shape}. Reshape your data",
            code="wrong_shape",
            parameter="X",
        )
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported", "use real numbers", code="wrong_dtype", parameter="X")
    return [(f"x{j}", array[:, j]) for j in range(array.shape[1])]


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


# ----------------------------------------------------------------------------------------------- new rows for a model


def by_name(X: Any, cells: dict[str, Any], names: Sequence[str], estimator: str) -> dict[str, Any]:
    """Return the columns of ``X`` by the names of the fit; an array must have as many, in the same order."""
    if is_table(X):
        return cells
    if len(cells) != len(names):
        raise InputError(
            f"X has {len(cells)} features, but {estimator} is expecting {len(names)} features as input",
            code="wrong_n_features",
            parameter="X",
        )
    return dict(zip(names, cells.values()))


def check_columns(cells: Mapping[str, Any], names: Sequence[str], consequence: str) -> None:
    """Warn about columns that a table lacks; raise an error if it has none of them."""
    lacking = [name for name in names if name not in cells]
    if len(lacking) == len(names):
        raise InputError(
            f"the table has none of the columns {first_few([repr(name) for name in lacking], 10)}",
            "use a table with the columns of the fit",
            code="wrong_columns",
            parameter="X",
        )
    if lacking:
        warn(
            f"the table has no column {first_few([repr(name) for name in lacking], 10)}",
            consequence,
            code="missing_column",
            stacklevel=3,
            columns=lacking,
        )


def not_of_kind(column: str, row: int, cell: Any, kind: str, how: str = "") -> InputError:
    """Make the error for a cell that cannot be read like those of the fit."""
    like, cell = EXAMPLES.get(kind, "") if not how else "", cell.item() if isinstance(cell, np.generic) else cell
    return InputError(
        f"column {column!r}, row {row}: {cell!r} is not a {kind}{f' {how}' if how else ''}, as in the fit",
        f"write it like {like}, or leave it empty" if like else "correct it, or leave it empty",
        code="not_like_fit",
        column=column,
        row=row,
        value=cell,
        kind=f"{kind} {how}".strip(),
    )


def sample_rows(rows: np.ndarray) -> np.ndarray:
    """Return the rows from which a distribution is estimated: some of many, with some values of every column."""
    order = np.random.RandomState(0).permutation(len(rows))
    chosen = order[:MAX_SAMPLED_ROWS]
    present = ~np.isnan(rows)
    lacking = np.flatnonzero(present[chosen].sum(axis=0) < MIN_PRESENT_ROWS)
    added = [order[present[order, column]][:MIN_PRESENT_ROWS] for column in lacking]
    return np.unique(np.concatenate([chosen, *added]))


def float_type(X: Any) -> type[np.floating]:
    """Return float32 for arrays of float32, and float64 for all other tables."""
    return np.float32 if isinstance(X, np.ndarray) and X.dtype == np.float32 else np.float64


# ---------------------------------------------------------------------------------------------------------------------

Kind = Literal["number", "date", "category", "text", "vector", "id", "constant", "empty", "dropped"]

ID_NAME = re.compile(r"(?:^|[_\W])(?i:id|ids|key|uuid|guid|index|no|nr|number)\.?$|[a-z]I[Dd]$|^(?i:unnamed)")
MAX_DISTINCT_SHARE = 0.5  # different words per row, above which a column of words is an id
MIN_ROWS_OF_ID = 20  # fewer rows may all differ by chance
MIN_WORDS_OF_TEXT = 4  # on average, of free text
MIN_LEVELS_OF_TEXT = 20
MIN_LEVELS_OF_ID = 20  # different whole numbers of a column that is called an id
AS_ASKED = "as asked"  # the reason of a kind that was requested
LEFT_OUT: tuple[Kind, ...] = ("id", "constant", "empty", "dropped")


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    name : str
    kind : {'number', 'date', 'category', 'text', 'vector', 'id', 'constant', 'empty', 'dropped'}
    values : Values
    reason : str
        Why it is used in this way, in a few words.
    """

    name: str
    kind: Kind
    values: Values
    reason: str = ""

    @property
    def is_used(self) -> bool:
        """Whether rows are compared by it."""
        return self.kind not in LEFT_OUT


class Requests(NamedTuple):
    """What a person says about the columns of a table.

    Attributes
    ----------
    drop, category, number, text : tuple of str
        Columns that are left out, and those that are taken for a kind whatever they look like.
    weight : dict of str to float
        Factors of the columns that count more, or less, than the others.
    """

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
                raise InputError(
                    f"there is no column {name!r}{did_you_mean(name, names)}",
                    f"the columns are {first_few([repr(one) for one in names], 20)}",
                    code="no_such_column",
                    column=name,
                    columns=list(names),
                )
        twice = next((name for name in asked if asked.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"column {twice!r} is given two kinds", "give it one", code="two_roles", column=twice)
        for name, factor in self.weight.items():
            if not (np.isfinite(factor) and factor > 0):
                raise InputError(
                    f"the weight of column {name!r} is {factor!r}",
                    "use a positive number, or leave the column out",
                    code="invalid_weight",
                    column=name,
                )


def plan_columns(cells: Mapping[str, Any], requests: Requests, locations: Sequence[str] | None = None) -> list[Column]:
    """Decide how every column is used; all problems are in one error.

    Parameters
    ----------
    cells : dict of str to cells
        The cells of the columns by name.
    requests : Requests
    locations : sequence of str, optional
        Where each row is, for errors; by default ``row 0`` and so on.
    """
    requests.check(list(cells))
    columns = [_plan(name, column, requests) for name, column in cells.items()]
    wrong = [column for column in columns if column.values.n_mistakes]
    problems = [_describe_mistakes(column, cells[column.name], locations) for column in wrong]
    if problems:
        raise InputError(
            "; ".join(problems),
            "correct these cells or empty them, or choose categories for the columns (as_category), or drop them",
            code="mixed_column",
            columns=[column.name for column in wrong],
        )
    if not any(column.is_used for column in columns):
        listed = first_few([f"{column.name!r} ({column.reason})" for column in columns])
        is_equal = all(column.kind in ("constant", "empty") for column in columns)
        raise InputError(
            f"no column is left to compare rows by: {listed}",
            "check the data" if is_equal else "drop fewer columns, or choose categories for some (as_category)",
            code="no_values_differ" if is_equal else "no_features",
        )
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
    if column.reason == AS_ASKED:
        return f"column {column.name!r} is to be taken for {values.type}, but {shown}{more} is not {kind}"
    if values.in_several_ways:
        return f"column {column.name!r} has {values.type} in several notations: {shown}{more} differ from the others"
    return f"column {column.name!r}: {shown}{more} is not {kind}, as the other cells are"


def _is_array(cells: Any) -> bool:
    return isinstance(cells, np.ndarray) and cells.dtype.kind != "O"


def _plan(name: str, cells: Any, requests: Requests) -> Column:
    if name in requests.drop:
        return Column(name, "dropped", Values("words", np.empty(0, dtype=object)), "dropped")
    expected: ValueType | None = "numbers" if name in requests.number and not _is_array(cells) else None
    values = read_values(cells, as_words=name in requests.category or name in requests.text, expected=expected)
    if values.is_missing.all():
        return Column(name, "empty", values, "no values")
    n_distinct = count_distinct(values)
    if n_distinct == 1 and name not in requests.number:
        return Column(name, "constant", values, "all values are equal")
    for kind in ("category", "text"):
        if name in getattr(requests, kind):
            return Column(name, kind, values, AS_ASKED)
    if name in requests.number:
        if values.type != "numbers":
            raise InputError(
                f"column {name!r} was to be taken for numbers, but contains {values.type}",
                "leave that out",
                code="not_numbers",
                column=name,
            )
        return Column(name, "number", values, AS_ASKED)
    return Column(name, *_recognise(name, values, n_distinct))


def _recognise(name: str, values: Values, n_distinct: int) -> tuple[Kind, Values, str]:
    """Return the kind of a column, its values and the reason."""
    n_present = int((~values.is_missing).sum())
    all_differ = n_distinct == n_present and n_present >= MIN_ROWS_OF_ID
    if values.type == "vectors":
        return "vector", values, f"{values.cells.shape[1]} numbers each"
    if values.type == "dates":
        return "date", values, f"{values.how}; could be {values.doubt}" if values.doubt else values.how
    if values.type == "numbers":
        if all_differ and _counts_rows(values.cells):
            return "id", values, "another number in every row"
        if ID_NAME.search(name) and n_distinct >= MIN_LEVELS_OF_ID and _are_whole(values.cells):
            return "id", values, "whole numbers with the name of an id"
        return "number", values, values.how
    if n_distinct >= MIN_LEVELS_OF_TEXT and _mean_words(values.cells) >= MIN_WORDS_OF_TEXT:
        return "text", values, "sentences"
    if all_differ:
        return "id", values, "another value in every row"
    if n_distinct > MAX_DISTINCT_SHARE * n_present and n_present >= MIN_ROWS_OF_ID:
        return "id", values, f"{n_distinct} different values in {n_present} rows"
    return "category", values, f"{n_distinct} different values"


def count_distinct(values: Values) -> int:
    """Return the number of different values, without missing ones."""
    present = values.cells[~values.is_missing]
    if values.type == "words":
        return len(set(present))
    return len(np.unique(present, axis=0))


def _are_whole(numbers: np.ndarray) -> bool:
    present = numbers[~np.isnan(numbers)]
    return bool((present == np.round(present)).all())


def _counts_rows(numbers: np.ndarray) -> bool:
    """Whether numbers are 1, 2, 3, ... or begin with another one."""
    return bool((np.diff(numbers[~np.isnan(numbers)]) == 1).all())


def _mean_words(words: Iterable[str | None]) -> float:
    counts = [len(word.split()) for word in words if word is not None]
    return float(np.mean(counts))


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
    lines = []
    for column in columns:
        n_missing = int(column.values.is_missing.sum()) if column.is_used else 0
        details = [column.reason, f"{n_missing} missing" if n_missing else ""]
        use = column.kind if column.is_used else "left out"
        if not column.is_used and column.kind != "dropped":
            details = [f"{column.kind}: {column.reason}"]
        lines.append(f"{column.name:<{width}}  {use:<8}  {', '.join(filter(None, details))}".rstrip())
    return "\n".join(lines)
