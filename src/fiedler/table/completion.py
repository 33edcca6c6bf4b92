"""Rows of a table of numbers, in their own units; what new rows lack is estimated.

The rows of the fit are usually complete, and then pass as they are. Of up to `MAX_COLUMNS` columns, divided by their
standard deviations, the Gaussian distribution is estimated by EM (:mod:`fiedler.core.missing`), and the missing values
of a row are those expected from the others. The covariance of more columns would be larger than the table is worth:
there, missing values are the means of their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import check_overflow, first_few
from ..core.missing import GaussianOfRows, fit_gaussian
from ..core.restoring import restore_on_failure
from ..errors import InputError, warn
from .frames import by_name, check_columns, float_type, is_table, n_rows_of, not_of_kind, sample_rows, table_cells
from .values import read_values, standardize

MAX_COLUMNS = 200  # of which a covariance is estimated


class TableCompleter(TransformerMixin, BaseEstimator):
    """Pass complete rows of numbers on as they are, and complete new ones.

    Columns are found by name. The values of missing cells and columns are estimated from the others of the row, with a
    warning that names the columns.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (d,)
        Means and standard deviations of the columns; 1 for the latter if a column is constant.
    gaussian_ : GaussianOfRows or None
        The distribution of the standardised rows; None for more than 200 columns, whose missing values are the means of
        their columns.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        Their names, of a data frame.

    See Also
    --------
    TableEncoder : For columns of any kind.

    Examples
    --------
    >>> import warnings
    >>> from fiedler.table import TableCompleter
    >>> completer = TableCompleter().fit({"width": [1.0, 2.0, 3.0, 4.0], "height": [2.1, 3.9, 6.1, 7.9]})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     rows = completer.transform({"height": [6.0]})
    >>> rows.round(1).tolist()
    [[3.0, 6.0]]
    >>> print(caught[0].message)
    the table has no column 'width'; its values are estimated from the other columns
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the distribution of the rows.

        Parameters
        ----------
        X : data frame of pandas, polars or pyarrow, dict of columns, or array of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        cells = table_cells(X, type(self).__name__)
        if n_rows_of(cells) < 2:
            raise InputError(
                f"a table needs at least two rows; got n_samples={n_rows_of(cells)}", code="too_few_rows", parameter="X"
            )
        rows = np.stack([read_numbers(name, column) for name, column in cells.items()], axis=1)
        empty = [name for name, is_empty in zip(cells, np.isnan(rows).all(axis=0)) if is_empty]
        if empty:
            raise InputError(
                f"there is no value, only NaN, in column {first_few([repr(name) for name in empty])}",
                "leave it out",
                code="empty_column",
                columns=empty,
            )
        for name, column in zip(cells, rows.T):
            check_overflow(column[~np.isnan(column)], column, f"column {name!r}")
        with restore_on_failure(self):
            self._fit_rows(rows)
            self.n_features_in_ = len(cells)
            self._names = list(cells)
            self.__dict__.pop("feature_names_in_", None)
            if is_table(X):
                self.feature_names_in_ = np.array(self._names, dtype=object)
        return self

    def _fit_rows(self, rows: np.ndarray) -> None:
        """Estimate the distribution of rows of numbers, some of them NaN."""
        self.center_, scale = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        self.gaussian_: GaussianOfRows | None = None
        if rows.shape[1] <= MAX_COLUMNS:
            self.gaussian_ = fit_gaussian((rows[sample_rows(rows)] - self.center_) / self.scale_).gaussian

    def transform(self, X: Any) -> np.ndarray:
        """Return complete rows.

        Parameters
        ----------
        X : as in :meth:`fit`
            The columns of an array are those of the fit.

        Returns
        -------
        ndarray of shape (n, d)
        """
        check_is_fitted(self)
        cells = by_name(X, table_cells(X, type(self).__name__), self._names, type(self).__name__)
        how = "estimated from the other columns" if self.gaussian_ is not None else "column means of the fit"
        check_columns(cells, self._names, f"its values are {how}")
        missing = np.full(n_rows_of(cells), np.nan)
        columns = [read_numbers(name, cells[name]) if name in cells else missing for name in self._names]
        rows = np.stack(columns, axis=1)
        self._warn_about_missing_cells(rows, cells, how)
        return np.where(np.isnan(rows), self._filled(rows), rows).astype(float_type(X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns."""
        check_is_fitted(self)
        return np.array(self._names, dtype=object)

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with estimates in the place of NaN."""
        if self.gaussian_ is None:
            return np.where(np.isnan(rows), self.center_, rows)
        standardized = standardize(rows, self.center_, self.scale_, "the table")
        return self.gaussian_.fill(standardized) * self.scale_ + self.center_

    def _warn_about_missing_cells(self, rows: np.ndarray, cells: Mapping[str, Any], how: str) -> None:
        counts = dict(zip(self._names, np.isnan(rows).sum(axis=0).tolist()))
        counts = {name: count for name, count in counts.items() if count and name in cells}
        if counts:
            listed = first_few([f"{name!r} ({count})" for name, count in counts.items()], 10)
            warn(
                f"{sum(counts.values())} cell(s) are empty, in column {listed}",
                f"their values are {how}",
                code="missing_cells",
                stacklevel=3,
                columns=list(counts),
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # as those of a CSV file
        return tags


def read_numbers(name: str, cells: Any) -> np.ndarray:
    """Return the cells of a column as numbers, NaN where missing; True is 1.

    Examples
    --------
    >>> read_numbers("size", ["1.5", "", None])
    array([1.5, nan, nan])
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "b":
        return cells.astype(np.float64)
    cells = cells if isinstance(cells, np.ndarray) else [float(one) if isinstance(one, bool) else one for one in cells]
    values = read_values(cells, expected="numbers", how="")
    if values.type == "words" and values.is_missing.all():
        return np.full(len(cells), np.nan)
    if values.type != "numbers" or values.n_mistakes:
        row = values.mistakes[0] if values.mistakes else int(np.flatnonzero(~values.is_missing)[0])
        raise not_of_kind(name, row, cells[row], "number")
    return values.cells


def completer_of(names: Sequence[str], rows: np.ndarray) -> TableCompleter | None:
    """Fit a completer to the rows of a table of numbers; None if several columns have the same name."""
    return TableCompleter().fit(dict(zip(names, rows.T))) if len(set(names)) == len(names) else None
