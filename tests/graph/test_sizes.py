"""Bounds on the sizes of clusters."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fiedler import AffinityGraph, KNNGraph
from fiedler.errors import InputError
from fiedler.graph.sizes import SizeBounds, check_size_bounds
from fiedler.metrics import normalized_cut


def random_memberships(rng, n, k):
    Q = rng.dirichlet(np.ones(k), size=n)
    return Q * [1.0, *[0.3] * (k - 1)] / (Q * [1.0, *[0.3] * (k - 1)]).sum(axis=1)[:, None]  # the first one is largest


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("lower", "upper"), [(2, 3), (0, 3), (2, 8), (1, 4)])
def test_the_assignment_is_the_best_of_all_within_the_bounds(lower, upper, seed):
    """[sizes]: the largest Σ_i log q_i,l_i of all 3⁷ assignments, by brute force."""
    Q = random_memberships(np.random.RandomState(seed), 7, 3)
    bounds, total = SizeBounds(lower, upper, np.ones(7)), lambda labels: np.log(Q[np.arange(7), labels]).sum()

    labels = bounds.assign(Q)

    allowed = [np.array(one) for one in product(range(3), repeat=7) if bounds.is_met(np.array(one), 3)]
    assert bounds.is_met(labels, 3)
    assert total(labels) == pytest.approx(max(map(total, allowed)))


def test_without_violations_rows_stay_where_their_memberships_are_largest(rng):
    Q = random_memberships(rng, 50, 3)
    labels = Q.argmax(axis=1)

    assert_array_equal(SizeBounds(0, 50, np.ones(50)).assign(Q), labels)


def test_weights_count_in_the_sizes(rng):
    Q, weights = random_memberships(rng, 80, 4), rng.uniform(0.5, 3, size=80)
    bounds = SizeBounds(25, 45, weights)

    labels = bounds.assign(Q)

    sizes = np.bincount(labels, weights)
    assert sizes.min() >= 25
    assert sizes.max() <= 45


def test_fixed_rows_keep_their_labels(rng):
    Q = random_memberships(rng, 60, 3)
    labels, fixed = Q.argmax(axis=1), rng.uniform(size=60) < 0.2

    assigned = SizeBounds(20, 20, np.ones(60)).assign(Q, fixed)

    assert_array_equal(np.bincount(assigned), [20, 20, 20])
    assert_array_equal(assigned[fixed], labels[fixed])


def test_many_rows_move_in_batches_to_the_same_sizes(rng, monkeypatch):
    Q = random_memberships(rng, 3000, 3)
    bounds = SizeBounds(1000, 1000, np.ones(3000))
    in_batches = bounds.assign(Q)
    monkeypatch.setattr("fiedler.graph.sizes.SHARE_MOVED", 0.0)

    one_by_one = bounds.assign(Q)

    assert_array_equal(np.bincount(in_batches), [1000, 1000, 1000])
    log_q = np.log(Q)
    values = [log_q[np.arange(3000), labels].sum() for labels in (one_by_one, in_batches)]
    assert values[1] == pytest.approx(values[0], rel=0.005)


def test_a_repaired_partition_of_a_line_has_the_boundary_at_the_bound():
    graph = KNNGraph(2).build(np.arange(30.0)[:, None])
    labels = (np.arange(30) >= 6).astype(int)

    repaired = SizeBounds(12, 30, np.ones(30)).repair(graph, labels, 2)

    assert_array_equal(repaired, (np.arange(30) >= 12).astype(int))


def test_a_partition_within_the_bounds_is_not_repaired():
    graph = KNNGraph(2).build(np.arange(30.0)[:, None])
    labels = np.arange(30) % 2

    assert SizeBounds(10, 20, np.ones(30)).repair(graph, labels, 2) is labels


def test_further_rounds_lower_the_cut(fixed_rng, monkeypatch):
    X = np.concatenate([fixed_rng.normal(size=(150, 2)), fixed_rng.normal(size=(50, 2)) + np.array([4, 0])])
    graph, labels = KNNGraph(8, connect="mst").build(X), np.repeat([0, 1], [150, 50])
    bounds = SizeBounds(90, 110, np.ones(200))
    cut = normalized_cut(graph, bounds.repair(graph, labels, 2))
    monkeypatch.setattr("fiedler.graph.sizes.MAX_REPAIRS", 1)

    assert cut < normalized_cut(graph, bounds.repair(graph, labels, 2))


def test_every_cluster_has_its_share_of_a_sample():
    bounds = SizeBounds(20, 60, np.ones(100)).subset(np.arange(50))

    assert (bounds.lower, bounds.upper, len(bounds.weights)) == (10, 30, 50)


@pytest.mark.parametrize(
    ("smallest", "largest", "sentence"),
    [
        (20, 10, "no number of clusters of 20 to 10 rows holds 100 rows"),
        (101, None, "no number of clusters of 101 to 100 rows"),
        (40, 45, "no number of clusters of 40 to 45 rows"),
        (0, None, "min_cluster_size"),
        (None, 2.5, "max_cluster_size"),
    ],
)
def test_impossible_bounds_get_one_sentence(smallest, largest, sentence):
    with pytest.raises(InputError, match=sentence):
        check_size_bounds(smallest, largest, None, 100)


def test_rows_heavier_than_the_largest_cluster_get_one_sentence():
    with pytest.raises(InputError, match="a row of weight 7 is larger than max_cluster_size=5"):
        check_size_bounds(None, 5, np.array([7.0, 1.0, 1.0]), 3)


@pytest.mark.parametrize(("n_clusters", "sentence"), [(2, "at least 4"), (6, "at most 5")])
def test_impossible_numbers_of_clusters_get_one_sentence(n_clusters, sentence):
    bounds = check_size_bounds(20, 30, None, 100)

    bounds.check_n_clusters(4)
    with pytest.raises(InputError, match=sentence):
        bounds.check_n_clusters(n_clusters)


def test_weights_that_cannot_be_divided_get_one_sentence():
    graph = AffinityGraph.from_matrix(np.ones((3, 3)) - np.eye(3))

    with pytest.raises(InputError, match="the weights of some rows are too large"):
        SizeBounds(4.5, 5.5, np.array([4.0, 4.0, 2.0])).repair(graph, np.array([0, 1, 1]), 2)
