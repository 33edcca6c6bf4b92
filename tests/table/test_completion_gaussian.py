"""Rows with missing values under a Gaussian distribution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.errors import SingularCovarianceError
from fiedler.table.completion import GaussianOfRows, fit_gaussian, objective, patterns


@pytest.fixture
def rows(rng):
    """400 rows of correlated columns, of which a tenth of the entries is missing."""
    X = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4)) + [1.0, -2.0, 0.0, 5.0]
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X


def test_without_missing_values_one_iteration_gives_mean_and_covariance(rng):
    X = rng.normal(size=(50, 3))

    fit = fit_gaussian(X, ridge=0.0)

    assert_allclose(fit.gaussian.mean, X.mean(axis=0))
    assert_allclose(fit.gaussian.covariance, np.cov(X.T, bias=True), atol=1e-12)
    assert len(fit.history.objective) == 1
    assert fit.converged


def test_the_expected_values_are_those_of_the_printed_formula(rng):
    """[dempster77, 4.1.3]  x_m = μ_m + Σ_mo Σ_oo⁻¹ (x_o - μ_o)"""
    A = rng.normal(size=(4, 4))
    gaussian = GaussianOfRows(rng.normal(size=4), A @ A.T)
    x = np.array([[0.3, np.nan, -1.0, np.nan]])
    o, m = [0, 2], [1, 3]

    filled = gaussian.fill(x)[0]

    S, mu = gaussian.covariance, gaussian.mean
    printed = mu[m] + S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)]) @ (x[0, o] - mu[o])
    assert_allclose(filled[m], printed, rtol=1e-12)
    assert_array_equal(filled[o], x[0, o])


def test_a_row_without_values_is_the_mean(rng):
    gaussian = GaussianOfRows(np.array([1.0, 2.0]), np.eye(2))

    assert_array_equal(gaussian.fill(np.full((1, 2), np.nan)), [[1.0, 2.0]])


def test_the_objective_is_the_log_likelihood_of_the_observed_entries(rows):
    from scipy.stats import multivariate_normal

    gaussian = fit_gaussian(rows, max_iter=3).gaussian
    total = 0.0
    for row in rows:
        o = np.flatnonzero(~np.isnan(row))
        if len(o):
            marginal = multivariate_normal(gaussian.mean[o], gaussian.covariance[np.ix_(o, o)])
            total += marginal.logpdf(row[o])

    assert_allclose(objective(rows, gaussian, 0.0), total / len(rows), rtol=1e-10)


def test_the_penalty_of_the_objective_is_the_printed_one(rows):
    """ρn/2 tr Σ⁻¹, per row"""
    gaussian = fit_gaussian(rows, max_iter=3).gaussian

    penalty = objective(rows, gaussian, 0.0) - objective(rows, gaussian, 0.3)

    assert_allclose(penalty, 0.15 * np.trace(np.linalg.inv(gaussian.covariance)))


def test_an_iteration_is_the_printed_one(rows):
    """μ = Σ x_i / n,  Σ = Σ ((x_i - μ)(x_i - μ)ᵀ + C_i) / n + ρI, from the diagonal start"""
    fit = fit_gaussian(rows, ridge=0.01, max_iter=1)

    variances = np.nanvar(rows, axis=0)
    rho = 0.01 * variances.mean()
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)  # without covariances the means are expected
    C = np.diag((variances + rho) * np.isnan(rows).sum(axis=0))
    centred = filled - filled.mean(axis=0)
    printed = (centred.T @ centred + C) / len(rows) + rho * np.eye(4)
    assert_allclose(fit.gaussian.mean, filled.mean(axis=0))
    assert_allclose(fit.gaussian.covariance, printed)


def test_every_iteration_raises_the_objective(rows):
    fit = fit_gaussian(rows, tol=-1.0, max_iter=20)

    assert (np.diff(fit.history.objective) >= -1e-10).all()
    assert not fit.converged


def test_the_estimates_approach_those_of_complete_rows(rng):
    A = rng.normal(size=(5, 5))
    complete = rng.normal(size=(20_000, 5)) @ A
    X = complete.copy()
    X[rng.uniform(size=X.shape) < 0.15] = np.nan

    fit = fit_gaussian(X, ridge=1e-6)

    assert_allclose(fit.gaussian.covariance, A.T @ A, atol=0.15 * np.abs(A.T @ A).max())
    error = lambda filled: np.sqrt(np.mean((filled - complete)[np.isnan(X)] ** 2))  # noqa: E731
    means = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    assert error(fit.gaussian.fill(X)) < 0.9 * error(means)  # how much less depends on the correlations in A


def test_rows_are_grouped_by_what_they_lack(rows):
    found = list(patterns(rows))

    assert sorted(row for members, _ in found for row in members) == np.flatnonzero(np.isnan(rows).any(axis=1)).tolist()
    for members, missing in found:
        assert_array_equal(np.isnan(rows[members]), np.isin(np.arange(4), missing)[None].repeat(len(members), axis=0))


def test_a_covariance_that_is_not_positive_definite_cannot_fill_rows():
    gaussian = GaussianOfRows(np.zeros(3), -np.eye(3))

    with pytest.raises(SingularCovarianceError, match="not positive definite, so missing values cannot be estimated"):
        gaussian.fill(np.array([[1.0, np.nan, 2.0]]))
