"""Tables of numbers, whose missing values are estimated, and what all transformers of tables share.

With o and m the observed and the missing entries of row i, the E-step of [dempster77, 4.1.3] and the M-step of EM for
the Gaussian distribution of rows are

    x_m = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o),      C_i = Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om  (0 elsewhere),
    μ = Σ_i x_i / n,      Σ = Σ_i ((x_i - μ)(x_i - μ)ᵀ + C_i) / n + ρI.

The ridge ρ makes Σ_oo invertible where columns depend on each other, as the indicators of a category do. Every
iteration raises the log-likelihood of the observed entries minus ρn/2 tr Σ⁻¹. Without missing values, one iteration
gives the mean and the covariance.

Of more than `MAX_COLUMNS` columns, or of fewer where rows lack too many different sets of entries, no covariance is
estimated. Missing values are then the means of their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, TransformerMixin

from .._records import FitHistory
from .._validation import first_few
from ..errors import InputError, SingularCovarianceError, warn
from .columns import is_table, n_rows_of, table_cells
from .values import Values, ValueType, describe_notation, read_values

MAX_SAMPLED_ROWS = 10_000  # from which a distribution of rows is estimated
MIN_PRESENT_ROWS = 10  # of every column among these
MAX_COLUMNS = 1_000  # of which a covariance is estimated
RIDGE = 0.01  # ρ, relative to the mean variance of the columns
MAX_ITERATIONS, MIN_ITERATIONS = 50, 3
MAX_OPERATIONS = 5e10  # of the iterations, some ten seconds
TOLERANCE = 1e-5  # change of the objective per row


class GaussianOfRows(NamedTuple):
    """Mean and covariance of rows."""

    mean: np.ndarray  # (d,)
    covariance: np.ndarray  # (d, d); empty for wide tables, whose missing values are the means

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Return rows with the expected values, given those of the row, in the place of NaN."""
        filled = X.copy()
        if not self.covariance.size:
            return np.where(np.isnan(filled), self.mean, filled)
        for rows, missing in patterns(X):
            filled[np.ix_(rows, missing)] = self._expected(X[rows], missing)[0]
        return filled

    def _expected(self, X: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x_m and C of rows that lack the same entries."""
        observed = np.setdiff1d(np.arange(len(self.mean)), missing)
        if not len(observed):
            return np.broadcast_to(self.mean[missing], (len(X), len(missing))), self.covariance
        crossing = self.covariance[np.ix_(observed, missing)]
        try:
            factor = cho_factor(self.covariance[np.ix_(observed, observed)], lower=True)
        except np.linalg.LinAlgError:
            problem = "the covariance of the columns is not positive definite, so missing values cannot be estimated"
            raise SingularCovarianceError(problem, "fill them first, or fit the model again") from None
        coefficients = cho_solve(factor, crossing)
        expected = self.mean[missing] + (X[:, observed] - self.mean[observed]) @ coefficients
        return expected, self.covariance[np.ix_(missing, missing)] - crossing.T @ coefficients


def patterns(X: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that lack the same entries, and these entries; complete rows are left out."""
    is_missing = np.isnan(X)
    incomplete = np.flatnonzero(is_missing.any(axis=1))
    if not len(incomplete):
        return
    packed = np.packbits(is_missing[incomplete], axis=1)
    _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    for rows, one in zip(np.split(incomplete[order], np.cumsum(np.bincount(group.ravel()))[:-1]), first):
        yield rows, np.flatnonzero(is_missing[incomplete[one]])


class GaussianFit(NamedTuple):
    """The result of EM."""

    gaussian: GaussianOfRows
    history: FitHistory  # the objective per row of every iteration
    converged: bool


def fit_gaussian(
    X: np.ndarray, *, ridge: float = RIDGE, max_iter: int = MAX_ITERATIONS, tol: float = TOLERANCE
) -> GaussianFit:
    """Estimate mean and covariance of rows with missing values, NaN, by EM; every column has at least one value."""
    variances = np.nanvar(X, axis=0)
    rho = ridge * float(variances.mean()) or ridge
    groups = list(patterns(X))
    gaussian = GaussianOfRows(np.nanmean(X, axis=0), np.diag(variances + rho))
    objectives: list[float] = []
    for _ in range(max_iter):
        filled, correction = X.copy(), np.zeros((X.shape[1], X.shape[1]))
        for rows, missing in groups:
            filled[np.ix_(rows, missing)], conditional = gaussian._expected(X[rows], missing)
            correction[np.ix_(missing, missing)] += len(rows) * conditional
        mean = filled.mean(axis=0)
        centred = filled - mean
        gaussian = GaussianOfRows(mean, (centred.T @ centred + correction) / len(X) + rho * np.eye(len(mean)))
        objectives.append(objective(X, gaussian, rho))
        if not groups or (len(objectives) > 1 and objectives[-1] - objectives[-2] < tol):
            return GaussianFit(gaussian, FitHistory(np.array(objectives), maximize=True), True)
    return GaussianFit(gaussian, FitHistory(np.array(objectives), maximize=True), False)


def fit_affordable(X: np.ndarray) -> GaussianFit:
    """Fit the distribution with as many iterations as are affordable, or return the means of columns of wide tables.

    An iteration takes about d³ operations for each set of entries that rows lack.
    """
    n_patterns, work = sum(1 for _ in patterns(X)), float(X.shape[1]) ** 3
    n_iter = int(MAX_OPERATIONS / max(n_patterns * work, 1.0)) if n_patterns else MAX_ITERATIONS
    if X.shape[1] <= MAX_COLUMNS and n_iter >= MIN_ITERATIONS:
        return fit_gaussian(X, max_iter=min(n_iter, MAX_ITERATIONS))
    means = GaussianOfRows(np.nanmean(X, axis=0), np.zeros((0, 0)))
    return GaussianFit(means, FitHistory(np.zeros(0), maximize=True), True)


def objective(X: np.ndarray, gaussian: GaussianOfRows, rho: float) -> float:
    """Return the log-likelihood of the observed entries minus ρn/2 tr Σ⁻¹, per row."""
    total = 0.0
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    for rows, missing in [*patterns(X), *([(complete, np.zeros(0, dtype=np.int64))] if len(complete) else [])]:
        observed = np.setdiff1d(np.arange(X.shape[1]), missing)
        if not len(observed):
            continue
        factor = cho_factor(gaussian.covariance[np.ix_(observed, observed)], lower=True)
        centred = X[np.ix_(rows, observed)] - gaussian.mean[observed]
        log_det = 2 * np.log(np.diag(factor[0])).sum() + len(observed) * np.log(2 * np.pi)
        total -= 0.5 * (np.sum(centred.T * cho_solve(factor, centred.T)) + len(rows) * log_det)
    return float(total / len(X) - 0.5 * rho * np.trace(np.linalg.inv(gaussian.covariance)))


def sample_rows(rows: np.ndarray) -> np.ndarray:
    """Return the rows from which a distribution is estimated: some of many, with some values of every column."""
    order = np.random.RandomState(0).permutation(len(rows))
    chosen = order[:MAX_SAMPLED_ROWS]
    present = ~np.isnan(rows)
    lacking = np.flatnonzero(present[chosen].sum(axis=0) < MIN_PRESENT_ROWS)
    added = [order[present[order, column]][:MIN_PRESENT_ROWS] for column in lacking]
    return np.unique(np.concatenate([chosen, *added]))


# ----------------------------------------------------------------------------------------------- transformers of tables

EXAMPLES = {"number": "1234.5", "date": "2024-12-31"}  # of cells that are read without further ado
TYPES: dict[str, ValueType] = {"number": "numbers", "date": "dates", "vector": "vectors"}


class TableTransformer(TransformerMixin, BaseEstimator):
    """Base class of transformers that find the columns of new tables by the names of the fit."""

    n_features_in_: int
    feature_names_in_: np.ndarray

    def _read_table(self, X: Any) -> dict[str, Any]:
        """Return the cells of a table to fit to, by column."""
        cells = table_cells(X, type(self).__name__)
        if n_rows_of(cells) < 2:
            problem = f"a table needs at least two rows; got n_samples={n_rows_of(cells)}"
            raise InputError(problem, code="too_few_rows", parameter="X")
        return cells

    def _set_names(self, X: Any, names: Sequence[str]) -> None:
        """Store the names of the columns, if those of ``X`` have any."""
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if is_table(X):
            self.feature_names_in_ = np.array(names, dtype=object)

    @property
    def _names(self) -> list[str]:
        """The names of the columns of the fit."""
        return list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))

    def _read_new(self, X: Any, names: Sequence[str], consequence: str) -> dict[str, Any]:
        """Return the cells of new rows by the names of the fit; an array must have as many columns, in its order.

        Columns that a table lacks give a warning, with its ``consequence``; a table without any is an error.
        """
        cells = table_cells(X, type(self).__name__)
        if not is_table(X):
            if len(cells) != self.n_features_in_:
                expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
                raise InputError(f"X has {len(cells)} features, but {expected}", code="wrong_n_features", parameter="X")
            return dict(zip(self._names, cells.values()))
        lacking = [name for name in names if name not in cells]
        listed = first_few([repr(name) for name in lacking], 10)
        if len(lacking) == len(names):
            problem = f"the table has none of the columns {listed}"
            raise InputError(problem, "use a table with the columns of the fit", code="wrong_columns", parameter="X")
        if lacking:
            others = first_few([repr(name) for name in cells if name not in self._names], 10)
            problem = f"the table has no column {listed}{f', and the model does not know {others}' if others else ''}"
            hint = f"{consequence}; if columns have other names now, rename them" if others else consequence
            warn(problem, hint, code="missing_column", stacklevel=3, columns=lacking)
        return cells

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # as the cells of a CSV file
        return tags


def read_like_fit(column: str, kind: str, cells: Any, notation: str = "", unit: str = "") -> Values:
    """Read the cells of a column of numbers, dates or vectors as those of the fit were read."""
    expected = TYPES[kind]
    values = read_values(cells, expected=expected, notation=notation, unit=unit)
    is_empty = values.is_missing.all() and not values.n_mistakes
    if is_empty or (values.type == expected and not values.n_mistakes):
        return values
    row = values.mistakes[0] if values.mistakes else int(np.flatnonzero(~values.is_missing)[0])
    cell = cells[row].item() if isinstance(cells[row], np.generic) else cells[row]
    described = f"{kind} {describe_notation(notation, unit)}".strip()
    like = EXAMPLES.get(kind, "") if described == kind else ""
    problem = f"column {column!r}, row {row}: {cell!r} is not a {described}, as in the fit"
    hint = f"write it like {like}, or leave it empty" if like else "correct it, or leave it empty"
    raise InputError(problem, hint, code="not_like_fit", column=column, row=row, value=cell, kind=described)


def float_type(X: Any) -> type[np.floating]:
    """Return float32 for arrays of float32, and float64 for all other tables."""
    return np.float32 if isinstance(X, np.ndarray) and X.dtype == np.float32 else np.float64
