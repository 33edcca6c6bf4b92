"""Rows that occur many times."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.graph.neighbors import k_nearest
from fiedler.graph.voronoi import Copies

K = 4


@pytest.fixture
def rows(rng):
    """300 rows: 40 times the first, 5 times the second and 4 times the third, in any order."""
    distinct = rng.normal(size=(254, 6)).astype(np.float32)
    numbers = np.concatenate([np.arange(254), np.zeros(39), np.full(4, 1), np.full(3, 2)]).astype(int)
    order = rng.permutation(300)
    return distinct[numbers[order]], numbers[order]


def test_groups_of_more_than_k_equal_rows_are_found(rows):
    X, numbers = rows

    copies = Copies.of(X, K)

    groups = [set(copies.members[a:b].tolist()) for a, b in zip(copies.starts[:-1], copies.starts[1:])]
    assert sorted(groups, key=len) == [set(np.flatnonzero(numbers == number).tolist()) for number in (1, 0)]
    assert Copies.of(np.unique(X, axis=0), K).n_groups == 0


def test_all_but_a_few_of_each_group_are_searched(rows):
    X, numbers = rows

    searched = Copies.of(X, K).searched(len(X))

    assert_array_equal(np.bincount(numbers[searched])[:4], [K + 1, 5, 4, 1])
    assert len(searched) == 300 - 35


def test_zero_and_minus_zero_are_equal_and_huge_values_are_no_problem():
    X = np.zeros((12, 3), dtype=np.float32)
    X[::2, 1] = -0.0
    X[6:, 0] = 3e38

    assert sorted(np.diff(Copies.of(X, K).starts).tolist()) == [6, 6]


@pytest.mark.parametrize("size", [100, 10_000])
def test_no_half_of_equal_rows_is_cut_off_at_few_edges(size):
    neighbors = Copies.of(np.zeros((size, 2)), 9).neighbors()

    is_left = np.arange(size) < size // 2
    crossing = np.mean(is_left[np.arange(size)][:, None] != is_left[neighbors])
    assert crossing > 0.15  # whatever the size; at most 1/2, that of random neighbours


def test_the_neighbors_of_copies_are_copies_and_all_are_neighbors_of_equally_many(rows):
    X, numbers = rows
    copies = Copies.of(X, K)

    neighbors = copies.neighbors()

    assert_array_equal(numbers[neighbors], np.repeat(numbers[copies.members][:, None], K, axis=1))
    assert all(len({row, *near}) == K + 1 for row, near in zip(copies.members, neighbors))
    in_degrees = np.bincount(neighbors.ravel(), minlength=300)[copies.members]
    assert_array_equal(in_degrees, K)  # no row is the neighbour of all others


def test_a_search_in_cells_finds_the_distances_of_the_exact_one(rng):
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    X[rng.permutation(3000)[:1000]] = X[0]

    found = k_nearest(X, K, method="cells")

    exact = k_nearest(X, K, method="exact")
    lengths, expected = (edges.distances.reshape(-1, K) for edges in (found, exact))
    assert np.mean(lengths <= expected * (1 + 1e-5) + 1e-7) > 0.98  # the search in cells is approximate
    assert (found.rows != found.columns).all()
    assert_allclose(np.linalg.norm(X[found.rows] - X[found.columns], axis=1), found.distances, atol=1e-5)
