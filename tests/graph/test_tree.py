"""Spanning trees of neighbour graphs, and Genie's merges compared with the literal definition."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from fiedler.core.fitting import listen
from fiedler.datasets import blobs
from fiedler.graph import tree as module
from fiedler.graph.tree import (
    LENGTHS,
    SpanningTree,
    cut_tree,
    genie_merges,
    linkage_matrix,
    minimum_tree,
    spanning_tree,
)
from fiedler.metrics import adjusted_rand_index

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
