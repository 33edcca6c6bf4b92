import logging
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components

from fiedler.graph import tree as connect
from fiedler.graph.kernels import pairwise_distances
from fiedler.graph.tree import PairSearch, mst_bridges, nearest_bridges
from toys import BACKENDS

CONTAINERS = {**BACKENDS, "sparse": sp.csr_array}


def by_size(y):
    """Number the components by decreasing size, as a graph does."""
    y = np.unique(y, return_inverse=True)[1]
    rank = np.empty(y.max() + 1, dtype=np.int64)
    rank[np.argsort(-np.bincount(y), kind="stable")] = np.arange(y.max() + 1)
    return rank[y]


def all_distances(X):
    return np.linalg.norm(X[:, None].astype(np.float64) - X[None], axis=2)


def gaps(distances, labels):
    """Return the distances of the closest points of every two components, by comparing all rows."""
    k = labels.max() + 1
    return np.array([[distances[np.ix_(labels == a, labels == b)].min() for b in range(k)] for a in range(k)])


def tree_length(between):
    """Return the length of a minimum spanning tree, by Prim's algorithm, which takes distances of 0 as such."""
    outside, closest, total = np.arange(1, len(between)), between[0], 0.0
    while len(outside):
        best = outside[np.argmin(closest[outside])]
        total, closest, outside = total + closest[best], np.minimum(closest, between[best]), outside[outside != best]
    return total


def blobs(n, n_features, n_blobs=12, separation=40.0, dtype=np.float64):
    """Gaussian blobs of standard deviation 1 at about the given distance from each other."""
    rng = np.random.RandomState(0)
    centers = separation / np.sqrt(2 * n_features) * rng.normal(size=(n_blobs, n_features))
    y = by_size(rng.randint(n_blobs, size=n))
    return (centers[y] + rng.normal(size=(n, n_features))).astype(dtype), y


def awkward_components(case, rng):
    """Rows and components: overlapping, apart, tied, with copies, of one row each, or far from the origin."""
    n, k = 200, 20
    y = rng.randint(k, size=n) * rng.randint(2, size=n)  # half of the rows are in component 0
    if case == "overlapping":
        return rng.normal(size=(n, 4)), y
    if case == "apart":
        return rng.normal(size=(n, 30)) + 50 * rng.normal(size=(k, 30))[y], y
    if case == "tied":
        return np.stack(np.divmod(np.arange(n), 20), axis=1).astype(np.float64), y
    if case == "copies":
        return rng.randint(3, size=(n, 3)).astype(np.float64), y
    if case == "single rows":
        return rng.normal(size=(n, 2)), np.arange(n)
    return 0.1 * rng.normal(size=(n, 3)) + 1e7 * rng.randint(2, size=(n, 1)), y


CASES = ["overlapping", "apart", "tied", "copies", "single rows", "far from the origin"]
NO_DIGITS = ("far from the origin", "sparse")  # sparse rows are not centred, so that no digits of 0.1 remain beside 1e7


@pytest.mark.parametrize(("case", "container"), [pair for pair in product(CASES, CONTAINERS) if pair != NO_DIGITS])
def test_bridges_are_the_shortest(case, container, rng):
    """Against the minimum spanning tree over all distances, and the closest rows of the largest component."""
    X, y = awkward_components(case, rng)
    labels = by_size(y)
    distances = all_distances(X)
    between = gaps(distances, labels)
    rows = CONTAINERS[container](X)

    i, j = mst_bridges(rows, labels)
    assert len(i) == labels.max()  # a tree, although ties can close cycles
    assert connected_components(sp.coo_array((np.ones(len(i)), (labels[i], labels[j])), shape=between.shape))[0] == 1
    assert_allclose(distances[i, j].sum(), tree_length(between), rtol=1e-9)

    i, j = nearest_bridges(rows, labels)
    assert_array_equal(labels[j], 0)
    assert_array_equal(np.sort(labels[i]), np.arange(1, labels.max() + 1))
    assert_allclose(distances[i, j], between[labels[i], 0], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_back_ends_find_the_same_edges(dtype, backend):
    X, labels = blobs(400, 5, dtype=dtype)
    for bridges in (mst_bridges, nearest_bridges):
        assert_array_equal(bridges(backend(X), labels), bridges(X, labels))


@pytest.mark.parametrize("n_features", [2, 10, 50])
def test_well_separated_components_need_few_comparisons(n_features):
    """Eight times the rows have 64 times the pairs; the search compares at most 12 times as many."""
    n_pairs = []
    for n in (1500, 12_000):
        X, labels = blobs(n, n_features)
        search = PairSearch(X, labels)
        search.closest_pairs(labels, 0)
        assert search.is_exact
        n_pairs.append(search.n_pairs)
    assert n_pairs[1] < 12 * n_pairs[0]
    assert search.n_pairs + 2 * n * len(search.cells) < 0.04 * n**2  # including pairs of a row and a centre


def test_without_bounds_the_closest_of_the_compared_pairs_are_taken(monkeypatch, caplog):
    """Noise in 60 dimensions, in which no cell is far from another, with next to no work allowed."""
    rng = np.random.RandomState(0)
    X, labels = rng.normal(size=(2000, 60)), by_size(rng.randint(4, size=2000))
    between = gaps(pairwise_distances(X, X), labels)
    monkeypatch.setattr(connect, "FREE_WORK", 0)
    monkeypatch.setattr(connect, "WORK_PER_ROW", 1)
    caplog.set_level(logging.INFO, logger="fiedler")

    i, j = mst_bridges(X, labels)

    assert "components joined approximately" in caplog.text
    assert connected_components(sp.coo_array((np.ones(3), (labels[i], labels[j])), shape=(4, 4)))[0] == 1
    assert tree_length(between) < np.linalg.norm(X[i] - X[j], axis=1).sum() < 1.3 * tree_length(between)


def test_copies_in_one_cell_do_not_cost_all_their_pairs():
    """Two thousand copies of one row lie in one Voronoi cell, which is cut into several."""
    X, labels = np.zeros((2000, 3)), by_size(np.arange(2000) % 2)
    search = PairSearch(X, labels)

    _, distances = search.closest_pairs(labels, 0)

    assert_array_equal(distances, 0)
    assert search.n_pairs < 0.01 * 2000**2
