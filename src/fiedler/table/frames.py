"""The columns of a data frame, whichever library it comes from, and of arrays and dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import as_array, first_few, import_optional, is_foreign
from ..core.backend import to_numpy
from ..errors import InputError, InputTypeError, shown, warn
from .values import Words

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
