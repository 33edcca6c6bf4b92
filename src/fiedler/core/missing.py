"""Rows with missing values under a Gaussian distribution: EM for its parameters, and the expected values.

With o and m the observed and the missing entries of row i, the E-step of [dempster77, 4.1.3] and the M-step are

    x_m = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o),      C_i = Σ_mm - Σ_mo Σ_oo⁻¹ Σ_om  (0 elsewhere),
    μ = Σ_i x_i / n,      Σ = Σ_i ((x_i - μ)(x_i - μ)ᵀ + C_i) / n + ρI.

The ridge ρ makes Σ_oo invertible where columns depend on each other, as the indicators of a category do. Every
iteration raises the log-likelihood of the observed entries minus ρn/2 tr Σ⁻¹. Without missing values, one iteration
gives the mean and the covariance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._records import FitHistory
from ..errors import SingularCovarianceError

RIDGE = 0.01  # ρ, relative to the mean variance of the columns
MAX_ITERATIONS = 50
TOLERANCE = 1e-5  # change of the objective per row


class GaussianOfRows(NamedTuple):
    """Mean and covariance of rows.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)
    """

    mean: np.ndarray
    covariance: np.ndarray

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Return rows with the expected values, given those of the row, in the place of NaN."""
        filled = X.copy()
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
            raise SingularCovarianceError(
                "the covariance of the columns is not positive definite, so missing values cannot be estimated",
                "fill them first, or fit the model again",
            ) from None
        coefficients = cho_solve(factor, crossing)
        expected = self.mean[missing] + (X[:, observed] - self.mean[observed]) @ coefficients
        return expected, self.covariance[np.ix_(missing, missing)] - crossing.T @ coefficients


def patterns(X: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that lack the same entries, and these entries; complete rows are left out.

    Examples
    --------
    >>> [(rows.tolist(), missing.tolist()) for rows, missing in patterns(np.array([[1, np.nan], [2, 3], [4, np.nan]]))]
    [([0, 2], [1])]
    """
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
    """The result of EM.

    Attributes
    ----------
    gaussian : GaussianOfRows
    history : FitHistory
        The objective per row of every iteration.
    converged : bool
    """

    gaussian: GaussianOfRows
    history: FitHistory
    converged: bool


def fit_gaussian(
    X: np.ndarray, *, ridge: float = RIDGE, max_iter: int = MAX_ITERATIONS, tol: float = TOLERANCE
) -> GaussianFit:
    """Estimate mean and covariance of rows with missing values, NaN, by EM.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Every column has at least one value.
    ridge : float
        ρ, relative to the mean variance of the columns.
    max_iter : int
    tol : float
        The change of the objective per row at which EM stops.
    """
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
