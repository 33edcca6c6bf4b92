"""Of equally near rows, the first ones are neighbours: in every search, with and without queries."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances

from fiedler.core.arrays import to_numpy
from fiedler.graph.exact_search import first_of_ties
from fiedler.graph.neighbors import k_nearest


@pytest.fixture
def grid(rng):
    """Rows of few values, so that most distances are equal to many others."""
    return rng.randint(3, size=(120, 4)).astype(float)


def brute_force(X, k, metric="euclidean"):
    """Sort all rows by distance, then by index."""
    distances = pairwise_distances(X, metric=metric).round(9)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "single"])
def test_neighbors_are_sorted_by_distance_and_then_by_index(convert, grid):
    indices = k_nearest(convert(grid), 7).columns.reshape(-1, 7)
    assert_array_equal(indices, brute_force(grid, 7))


def test_other_array_libraries_choose_the_same_neighbors(grid, foreign):
    found = k_nearest(foreign(grid), 7)
    assert_array_equal(to_numpy(found.columns).reshape(-1, 7), brute_force(grid, 7))


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_ties_of_other_metrics_are_broken_by_index(metric, grid):
    assert_array_equal(k_nearest(grid, 7, metric=metric).columns.reshape(-1, 7), brute_force(grid, 7, metric))


def test_queries_that_are_not_rows_are_not_left_out(grid):
    indices = k_nearest(grid, 3, queries=grid[:5]).columns.reshape(-1, 3)
    expected = np.argsort(pairwise_distances(grid[:5], grid).round(9), axis=1, kind="stable")[:, :3]
    assert_array_equal(indices, expected)


def test_a_query_is_settled_only_if_a_proposed_row_is_farther():
    X = np.array([[0.0], [1.0], [-1.0], [2.0]])
    proposed = np.array([[2, 1, 3]])
    assert first_of_ties(X, X[:1], proposed, 2)[2].all()
    assert not first_of_ties(X, X[:1], proposed[:, :2], 1)[2].any()


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12])
def test_one_row_far_away_does_not_blur_the_others(far, rng):
    X = np.concatenate([rng.randint(3, size=(150, 8)), np.full((1, 8), far)]).astype(float)
    found, expected = k_nearest(X, 10), brute_force(X, 10)
    lengths = np.linalg.norm(X[:-1, None] - X[expected[:-1]], axis=2)
    assert_allclose(found.distances.reshape(-1, 10)[:-1], lengths)
    if far < 1e12:  # where products of the other rows keep no digit, ties are not broken by index
        assert_array_equal(found.columns.reshape(-1, 10)[:-1], expected[:-1])


def test_distances_are_those_of_differences_far_from_the_origin(rng):
    X = 1e8 + rng.randint(4, size=(50, 2)).astype(float)
    found = k_nearest(X, 5)
    expected = np.linalg.norm(X[found.rows] - X[found.columns], axis=1)
    assert_allclose(found.distances, expected, rtol=1e-12)
    assert_array_equal(found.columns.reshape(-1, 5), brute_force(X - 1e8, 5))
