"""The columns of a data frame, whichever library it comes from, and of arrays and dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import import_optional, is_foreign
from ..core.backend import to_numpy
from ..errors import InputError, InputTypeError


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame of pandas, polars or pyarrow, or of another library that narwhals knows."""
    return not isinstance(X, np.ndarray) and hasattr(X, "schema" if hasattr(X, "column_names") else "columns")


def is_mixed(X: Any) -> bool:
    """Whether ``X`` is a data frame that is not made of finite numbers alone, so that it has to be encoded."""
    if not is_frame(X):
        return False
    if find_spec("narwhals") is None and _is_numeric(X):  # frames of numbers need no other library
        return False
    for cells in table_cells(X).values():
        if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "iuf" or not np.isfinite(cells).all():
            return True
    return False


def _is_numeric(X: Any) -> bool:
    try:
        return bool(np.isfinite(np.asarray(X, dtype=np.float64)).all())
    except (ValueError, TypeError):
        return False


def table_cells(X: Any) -> dict[str, Any]:
    """Return the cells of every column by name.

    Parameters
    ----------
    X : data frame, dict of columns, or array of shape (n, d)
        The columns of an array are called x0, x1, ...
    """
    if sp.issparse(X):
        raise InputError(
            "TableEncoder does not take sparse rows",
            "pass them to the clusterer as they are",
            code="sparse_not_supported",
            parameter="X",
        )
    if isinstance(X, Mapping):
        cells = {str(name): column for name, column in X.items()}
    elif is_frame(X):
        narwhals = import_optional("narwhals", extra="table", purpose="data frames")
        frame = narwhals.from_native(X, eager_only=True)
        cells = {str(name): _series_cells(frame[name], narwhals) for name in frame.columns}
    else:
        array = to_numpy(X) if is_foreign(X) else np.asarray(X)
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
        cells = {f"x{j}": array[:, j] for j in range(array.shape[1])}
    lengths = {len(column) for column in cells.values()}
    if len(lengths) > 1:
        raise InputError("the columns of the table differ in length", code="wrong_length", parameter="X")
    return cells


def _series_cells(series: Any, narwhals: Any) -> Any:
    """Return numbers and dates as arrays where that loses nothing, and other cells as a list."""
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return np.asarray(series.cast(narwhals.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
    if series.dtype in (narwhals.Datetime, narwhals.Date) and getattr(series.dtype, "time_zone", None) is None:
        return np.asarray(series.cast(narwhals.Datetime("us")).to_numpy(), dtype="datetime64[us]")
    return series.to_list()


def n_rows_of(cells: Mapping[str, Any]) -> int:
    """Return the number of rows, of which there must be two at least."""
    if not cells:
        raise InputTypeError("the table has no columns", "check how it is read", code="no_columns", parameter="X")
    return len(next(iter(cells.values())))
