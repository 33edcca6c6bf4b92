"""Sufficient statistics: sums over groups of rows, what is computed from them, and that they add up."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from fiedler.core.arrays import to_numpy
from fiedler.mixture import statistics as module
from fiedler.mixture.covariance import (
    SHAPES,
    estimate,
    gaussians,
    log_joint,
    mean_log_joint,
    n_parameters,
    statistics_icl,
)
from fiedler.mixture.statistics import Statistics, group_statistics, mean_origin, weighted_statistics


@pytest.fixture
def rows(rng):
    """300 rows far from zero in 7 groups of very different sizes, of which one is empty and one has a single row."""
    groups = rng.permutation(np.repeat([0, 1, 2, 3, 5, 6], [150, 70, 1, 9, 40, 30]))
    return rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 30 + groups[:, None], groups


def parts(statistics):
    return [to_numpy(part) for part in (statistics.counts, statistics.sums, statistics.second_moments)]


def assert_same(first, second, rtol=1e-9):
    for one, other in zip(parts(first), parts(second), strict=True):
        assert_allclose(one, other, rtol=rtol, atol=1e-8)


def printed(X, groups, n_groups, origin):
    """The three sums, row by row."""
    counts, sums, moments = np.zeros(n_groups), np.zeros((n_groups, 4)), np.zeros((n_groups, 4, 4))
    for x, g in zip(X - origin, groups):
        counts[g], sums[g], moments[g] = counts[g] + 1, sums[g] + x, moments[g] + np.outer(x, x)
    return Statistics(counts, sums, moments, origin)


@pytest.mark.parametrize("cache_bytes", [1, 2**14, 2**22])
def test_the_sums_are_the_printed_ones(cache_bytes, rows, backend, monkeypatch):
    """Chunks of 64 rows, in blocks of one and of many chunks."""
    monkeypatch.setattr(module, "CACHE_BYTES", cache_bytes)
    X, groups = rows
    statistics = group_statistics(backend(X), groups, 8)

    assert_allclose(to_numpy(statistics.origin), X.mean(axis=0))
    assert_same(statistics, printed(X, groups, 8, X.mean(axis=0)))


def test_groups_on_the_device_and_squares_alone(rows, backend):
    X, groups = rows
    full, squares = group_statistics(X, groups), group_statistics(backend(X), backend(groups), squares_only=True)

    assert to_numpy(squares.counts).shape == (7,)
    assert_allclose(to_numpy(squares.second_moments), np.diagonal(full.second_moments, axis1=1, axis2=2))


def test_statistics_of_disjoint_rows_add_up(rows, backend):
    X, groups = rows
    whole = group_statistics(backend(X), groups)
    first, rest = (
        group_statistics(backend(X[part]), groups[part], 7, origin=whole.origin)
        for part in (slice(100), slice(100, None))
    )

    assert_same(first + rest, whole)


def test_merged_groups_have_the_statistics_of_their_rows(rows, backend):
    X, groups = rows
    coarser = np.array([2, 0, 0, 2, 1, 2, 4])
    merged = group_statistics(backend(X), groups).merge(backend(coarser), 5)

    assert_same(merged, group_statistics(X, coarser[groups], 5))


def test_combining_with_memberships_is_summing_weighted_rows(rows, backend, rng):
    X, groups = rows
    resp = rng.dirichlet(np.ones(3), size=7)
    combined = group_statistics(backend(X), groups).combine(backend(resp))
    weighted = weighted_statistics(X, resp[groups], kind="full", origin=mean_origin(X), dtype=np.float64)

    assert_same(combined, weighted)


def test_means_and_variances_are_those_of_the_rows(rows):
    X, groups = rows
    statistics = group_statistics(X, groups)

    for g in (0, 1, 2, 3, 5, 6):
        assert_allclose(statistics.means[g] + statistics.origin, X[groups == g].mean(axis=0))
    assert_allclose(statistics.means[4], 0)
    assert_allclose(statistics.mean_variance, X.var(axis=0).mean())


@pytest.mark.parametrize("kind", list(SHAPES))
def test_components_of_groups_are_the_estimates_from_one_hot_weights(kind, rows, backend):
    X, groups = rows
    labels = np.array([0, 1, 1, 2, 2, 0, 1])[groups]
    expected = estimate(X, np.eye(3)[labels], kind=kind, ridge=0.2)
    model = gaussians(group_statistics(backend(X), labels), kind=kind, ridge=0.2)

    for name in ("weights", "means", "covariances", "factors"):
        assert_allclose(to_numpy(getattr(model, name)), getattr(expected, name), rtol=1e-8, atol=1e-10)


def test_single_precision_rows_keep_their_digits(rng):
    """A thousand widths apart: sums in single precision would lose the scatter of the groups."""
    groups = np.repeat([0, 1], 200)
    X = (rng.normal(size=(400, 3)) + 1000.0 * groups[:, None]).astype(np.float32)
    statistics = group_statistics(X, groups)

    assert statistics.second_moments.dtype == np.float64
    model = gaussians(statistics, kind="full", ridge=0.0)
    assert_allclose(model.covariances[1], np.cov(X[200:].T.astype(np.float64), bias=True), rtol=1e-8)


@pytest.mark.parametrize(
    ("kind", "squares_only"), [*((kind, False) for kind in SHAPES), ("diag", True), ("spherical", True)]
)
def test_mean_densities_of_groups_are_means_over_their_rows(kind, squares_only, rows, backend, rng):
    X, groups = rows
    groups = np.where(groups == 6, 4, groups)
    model = estimate(backend(X[:200]), backend(rng.uniform(size=(200, 3))), kind=kind, ridge=0.2)  # has another origin
    statistics = group_statistics(backend(X), groups, squares_only=squares_only)
    joint = to_numpy(log_joint(backend(X), model))

    expected = [joint[groups == g].mean(axis=0) for g in range(6)]
    assert_allclose(to_numpy(mean_log_joint(statistics, model)), expected, rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 6])
def test_all_formulas_for_weighted_moments_are_the_printed_sum(k, backend, rng, monkeypatch):
    """Weights times rows, and products of columns."""
    monkeypatch.setattr(module, "CACHE_BYTES", 2**10)  # several blocks
    X, weights = rng.normal(size=(150, 5)), rng.uniform(size=(150, k))
    origin = X.mean(axis=0)
    Z, w = backend(X), backend(weights)
    statistics = weighted_statistics(Z, w, kind="full", origin=backend(origin), dtype=Z.dtype)

    assert_allclose(to_numpy(statistics.counts), weights.sum(axis=0))
    assert_allclose(to_numpy(statistics.sums), weights.T @ (X - origin), rtol=1e-10, atol=1e-12)
    printed = np.einsum("ik,ia,ib->kab", weights, X - origin, X - origin)
    assert_allclose(to_numpy(statistics.second_moments), printed, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------- integrated completed likelihood


def printed_icl(X, labels, kind, ridge):
    """Σ_i [log α_k N(x_i; μ_k, Σ_k) - ½ρ tr Σ_k⁻¹] - ½ν log n per row, from the densities of the rows."""
    clusters, codes = np.unique(labels, return_inverse=True)
    model = estimate(X, np.eye(len(clusters))[codes], kind=kind, ridge=ridge)
    joint = log_joint(X, model)[np.arange(len(X)), codes]
    return joint.mean() - 0.5 * n_parameters(kind, len(clusters), X.shape[1]) * math.log(len(X)) / len(X)


@pytest.mark.parametrize("kind", list(SHAPES))
def test_the_completed_likelihood_is_that_of_the_rows(kind, rows, backend):
    X, groups = rows  # group 4 is empty
    value = statistics_icl(group_statistics(backend(X), groups), ridge=0.3, kinds=[kind])

    assert_allclose(value, printed_icl(X, groups, kind, 0.3), rtol=1e-11)


def test_the_completed_likelihood_without_a_ridge_is_scipys(rows):
    X, groups = rows
    labels = (groups > 0).astype(int)
    densities = [
        math.log(np.mean(labels == g)) + multivariate_normal(part.mean(axis=0), np.cov(part.T, bias=True)).logpdf(part)
        for g in (0, 1)
        for part in [X[labels == g]]
    ]
    expected = np.concatenate(densities).mean() - 0.5 * n_parameters("full", 2, 4) * math.log(300) / 300

    assert_allclose(statistics_icl(group_statistics(X, labels), ridge=0.0, kinds=["full"]), expected, rtol=1e-11)


def test_the_best_type_of_covariance_counts_and_singular_ones_do_not(rows):
    X, groups = rows
    statistics = group_statistics(X, groups)
    values = [statistics_icl(statistics, ridge=0.1, kinds=[kind]) for kind in ("full", "tied")]

    assert values[0] != values[1]
    assert statistics_icl(statistics, ridge=0.1) == max(values)
    assert statistics_icl(statistics, ridge=0.0, kinds=["full"]) == -math.inf  # the group of one row
    assert statistics_icl(statistics, ridge=0.0) == statistics_icl(statistics, ridge=0.0, kinds=["tied"])


def test_unions_of_groups_are_scored_like_their_rows(rows):
    X, groups = rows
    coarser = np.array([0, 1, 1, 1, 0, 2, 2])

    assert_allclose(
        statistics_icl(group_statistics(X, groups).merge(coarser), ridge=0.3),
        max(printed_icl(X, coarser[groups], kind, 0.3) for kind in ("full", "tied")),
        rtol=1e-11,
    )
