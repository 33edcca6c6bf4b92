"""Spanning trees of neighbour graphs, edges between components, and Genie's merges compared with the definition."""

import itertools
import logging
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from fiedler.core.fitting import listen
from fiedler.datasets import blobs
from fiedler.graph import tree as module
from fiedler.graph.kernels import pairwise_distances
from fiedler.graph.tree import (
    LENGTHS,
    PairSearch,
    SpanningTree,
    cut_tree,
    genie_merges,
    linkage_matrix,
    minimum_tree,
    mst_bridges,
    nearest_bridges,
    spanning_tree,
)
from fiedler.metrics import adjusted_rand_index
from toys import BACKENDS

THRESHOLDS = (0.05, 0.3, 0.6, 1.0)


def printed_gini(sizes):
    """G(c) = Σ_{i<j} |c_i - c_j| / ((k - 1) Σ_i c_i)."""
    pairs = itertools.combinations(sizes, 2)
    return sum(abs(a - b) for a, b in pairs) / ((len(sizes) - 1) * sum(sizes))


def literal_genie(D, threshold, n_clusters, weights=None):
    """Merge the two clusters at the smallest distance, one of them a smallest one if the sizes are too unequal."""
    clusters, weights = [{i} for i in range(len(D))], np.ones(len(D)) if weights is None else weights
    size_of = lambda cluster: sum(weights[i] for i in sorted(cluster))  # noqa: E731
    while len(clusters) > n_clusters:
        sizes = [size_of(cluster) for cluster in clusters]
        is_unequal = len(clusters) > 1 and printed_gini(sizes) > threshold
        allowed = [
            (min(D[i, j] for i in a for j in b), number_a, number_b)
            for (number_a, a), (number_b, b) in itertools.combinations(enumerate(clusters), 2)
            if not is_unequal or min(size_of(a), size_of(b)) == min(sizes)
        ]
        _, a, b = min(allowed)
        clusters[a] |= clusters.pop(b)
    labels = np.empty(len(D), dtype=int)
    for number, cluster in enumerate(clusters):
        labels[list(cluster)] = number
    return labels


def lengths_of_all_pairs(X, length):
    """The three printed lengths, for all pairs."""
    D = squareform(pdist(X))
    nearest = np.sort(D, axis=1)[:, 1:]
    core, scale = nearest[:, 2], nearest[:, 6]
    return {
        "distance": D,
        "mutual": np.maximum(np.maximum(D, core[:, None]), core[None, :]),
        "local": D / np.sqrt(scale[:, None] * scale[None, :]),
    }[length]


@pytest.mark.parametrize("length", list(LENGTHS))
def test_the_tree_of_all_neighbours_is_that_of_the_printed_lengths(length, rng):
    X = rng.normal(size=(40, 3))
    D = lengths_of_all_pairs(X, length)
    tree = spanning_tree(X, 39, length=length)

    assert_allclose(tree.lengths, D[tuple(tree.ends.T)])
    np.fill_diagonal(D, 0)
    assert_allclose(tree.lengths.sum(), minimum_spanning_tree(D).sum())
    assert (np.diff(tree.lengths) >= 0).all()


def test_components_are_joined_by_their_closest_pairs(backend):
    X, _ = blobs(60, n_clusters=3, noise=0.2, random_state=0)
    X = 100 * X
    tree = spanning_tree(backend(X), 4, length="distance")

    assert_allclose(tree.lengths, np.sort(minimum_spanning_tree(squareform(pdist(X))).data), rtol=1e-5)


def test_equal_lengths_are_ordered_by_ties_and_repeated_edges_count_once():
    ends = np.array([[1, 0], [0, 1], [1, 2], [2, 0]])
    tree = minimum_tree(ends, np.array([5.0, 5.0, 5.0, 5.0]), 3, ties=np.array([3.0, 3.0, 2.0, 1.0]))

    assert_array_equal(tree.ends, [[0, 2], [1, 2]])


def test_repeated_rows_have_length_zero():
    X = np.repeat(np.eye(3), 9, axis=0)
    for length in LENGTHS:
        lengths = spanning_tree(X, 5, length=length).lengths
        assert_allclose(lengths[:24], 0, atol=1e-12)
        assert (lengths[24:] > 1).all()


def test_the_sum_of_size_differences_is_the_printed_gini_index(rng):
    current = [*[1] * 15, *rng.randint(1, 9, size=15).tolist()]
    sizes = module._Sizes(current)
    assert sizes.spread == sum(abs(a - b) for a, b in itertools.combinations(current, 2))
    while len(current) > 2:
        a, b = (current.pop(rng.randint(len(current))) for _ in range(2))
        sizes.merge(a, b)
        current.append(a + b)
        gini = printed_gini(current)
        assert sizes.gini_exceeds(gini - 1e-9)
        assert not sizes.gini_exceeds(gini + 1e-9)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("length", list(LENGTHS))
def test_merges_follow_the_literal_definition(threshold, length, rng):
    X = np.concatenate([rng.normal(size=(25, 2)), 3 + 0.2 * rng.normal(size=(10, 2)), [[9.0, 9.0]]])
    merges = genie_merges(spanning_tree(X, 35, length=length), threshold)
    D = lengths_of_all_pairs(X, length) + 1e-9 * squareform(pdist(X))  # ties of mutual lengths by distance
    for k in (2, 3, 7, 20):
        assert adjusted_rand_index(literal_genie(D, threshold, k), cut_tree(merges, k)) == 1


@pytest.mark.parametrize("threshold", [0.1, 0.4])
@pytest.mark.parametrize("unit", [1.0, 0.37])
def test_merges_with_weights_follow_the_literal_definition(threshold, unit, rng):
    X, weights = rng.normal(size=(30, 2)), unit * rng.randint(1, 9, size=30)
    merges = genie_merges(spanning_tree(X, 29, length="distance"), threshold, weights)
    D = lengths_of_all_pairs(X, "distance")
    exact = (weights / unit).round()  # sums of fractions that should be equal may differ in their last digit
    for k in (2, 3, 7, 20):
        assert adjusted_rand_index(literal_genie(D, threshold, k, exact), cut_tree(merges, k)) == 1


def test_without_a_limit_it_is_single_linkage(rng):
    X = rng.normal(size=(80, 2))
    merges = genie_merges(spanning_tree(X, 79, length="distance"), 1.0)
    Z = linkage(X, "single")

    assert_allclose(merges.distances, Z[:, 2])
    for k in (2, 5, 30):
        assert adjusted_rand_index(fcluster(Z, k, "maxclust"), cut_tree(merges, k)) == 1


def test_a_low_threshold_balances_the_sizes(rng):
    X = rng.normal(size=(300, 2))
    tree = spanning_tree(X, 10)
    smallest = [np.bincount(cut_tree(genie_merges(tree, g), 4)).min() for g in (0.1, 1.0)]

    assert smallest[0] > 20
    assert smallest[1] == 1


def test_labels_are_numbered_in_the_order_of_the_rows(rng):
    merges = genie_merges(spanning_tree(rng.normal(size=(50, 2)), 5), 0.3)
    for k in (1, 4, 50):
        labels = cut_tree(merges, k)
        _, first = np.unique(labels, return_index=True)
        assert len(first) == k
        assert (np.diff(first) > 0).all()


def test_scipy_can_draw_the_tree(rng):
    Z = linkage_matrix(genie_merges(spanning_tree(rng.normal(size=(50, 2)), 5), 0.2))

    assert is_valid_linkage(Z)
    assert Z[-1, 3] == 50
    assert (np.diff(Z[:, 2]) >= 0).all()


def test_the_order_of_the_rows_does_not_matter(rng):
    X, order = rng.normal(size=(200, 3)), rng.permutation(200)
    labels, shuffled = (cut_tree(genie_merges(spanning_tree(rows, 8), 0.3), 6) for rows in (X, X[order]))

    assert adjusted_rand_index(labels[order], shuffled) == 1


def test_merges_are_reported(monkeypatch, rng):
    monkeypatch.setattr(module, "MERGES_PER_TICK", 10)
    ticks = []

    class Listener:
        begin = end = staticmethod(lambda stage: None)
        advance = staticmethod(lambda stage: ticks.append((stage.name, stage.done, stage.total)))

    with listen(Listener()):
        genie_merges(SpanningTree(np.stack([np.arange(49), np.arange(1, 50)], axis=1), np.arange(49.0)), 0.3)
    assert ticks[-1] == ("merging clusters", 4, 5)


def test_distances_are_lowered_to_those_of_later_merges():
    """Rows 2 and 3 are far from all others; Genie merges them before the two pairs that are closer."""
    tree = SpanningTree(np.array([[0, 1], [4, 5], [1, 4], [1, 2], [4, 3]]), np.array([1.0, 2.0, 3.0, 8.0, 9.0]))
    merges = genie_merges(tree, 0.1)

    assert_allclose(merges.distances, [1, 2, 3, 3, 3])
    assert_allclose(genie_merges(tree, 1.0).distances, tree.lengths)


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


def far_blobs(n, n_features, n_blobs=12, separation=40.0, dtype=np.float64):
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
    X, labels = far_blobs(400, 5, dtype=dtype)
    for bridges in (mst_bridges, nearest_bridges):
        assert_array_equal(bridges(backend(X), labels), bridges(X, labels))


@pytest.mark.parametrize("n_features", [2, 10, 50])
def test_well_separated_components_need_few_comparisons(n_features):
    """Eight times the rows have 64 times the pairs; the search compares at most 12 times as many."""
    n_pairs = []
    for n in (1500, 12_000):
        X, labels = far_blobs(n, n_features)
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
    monkeypatch.setattr(module, "FREE_WORK", 0)
    monkeypatch.setattr(module, "WORK_PER_ROW", 1)
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
