"""min_cluster_size and max_cluster_size of ManifoldClustering."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

import fiedler
from fiedler import KNNGraph, ManifoldClustering, PairwiseConstraints
from fiedler.errors import InputError
from fiedler.manifold import choice as comparison
from fiedler.metrics import adjusted_rand_index


@pytest.fixture
def unequal():
    """Clusters of 120, 60 and 20 rows."""
    return make_blobs([120, 60, 20], centers=[[0, 0], [6, 0], [0, 6]], random_state=0)


@pytest.mark.parametrize("effort", ["fast", "default"])
def test_all_clusters_are_within_the_bounds(effort, unequal):
    X, y = unequal

    model = ManifoldClustering(3, min_cluster_size=30, max_cluster_size=110, effort=effort, random_state=0).fit(X)

    sizes = np.bincount(model.labels_, minlength=3)
    assert sizes.min() >= 30
    assert sizes.max() <= 110
    assert adjusted_rand_index(y, model.labels_) > 0.75  # about ten rows had to move from a cluster, and to another


def test_bounds_that_hold_anyway_change_nothing(unequal):
    X, _ = unequal
    free = ManifoldClustering(3, effort="fast", random_state=0).fit(X)

    bounded = ManifoldClustering(3, min_cluster_size=15, max_cluster_size=130, effort="fast", random_state=0).fit(X)

    assert_array_equal(bounded.labels_, free.labels_)
    assert_array_equal(bounded.memberships_, free.memberships_)


def test_bounds_on_a_sample_hold_for_all_rows(unequal, monkeypatch):
    X, _ = unequal
    effort = comparison.EFFORTS["default"]._replace(max_rows=100)
    monkeypatch.setitem(comparison.EFFORTS, "default", effort)

    labels = ManifoldClustering(3, min_cluster_size=40, random_state=0).fit(X).labels_

    assert np.bincount(labels, minlength=3).min() >= 40


def test_only_possible_numbers_of_clusters_are_considered(unequal):
    X, _ = unequal
    model = ManifoldClustering(max_cluster_size=60, max_clusters=6, effort="fast", random_state=0).fit(X)

    assert model.evidence_.candidates == [4, 5, 6]
    assert np.bincount(model.labels_).max() <= 60


def test_one_cluster_is_left_if_no_other_number_is_possible(unequal):
    X, _ = unequal

    assert ManifoldClustering(min_cluster_size=101, random_state=0).fit(X).n_clusters_ == 1


def test_sizes_are_by_weight_and_copies_stay_together(unequal, rng):
    X, _ = unequal
    counts = rng.randint(1, 4, size=200)
    rows = np.repeat(np.arange(200), counts)
    options = {"min_cluster_size": 80, "effort": "fast", "random_state": 0}

    weighted = ManifoldClustering(3, **options).fit(X, sample_weight=counts).labels_
    repeated = ManifoldClustering(3, **options).fit(X[rows]).labels_

    assert np.bincount(weighted, counts).min() >= 80
    assert_array_equal(repeated, weighted[rows])


def test_copies_that_fill_more_than_a_cluster_are_divided(rng):
    X = np.concatenate([np.zeros((60, 2)), rng.normal(size=(40, 2)) + 3])

    labels = ManifoldClustering(3, max_cluster_size=40, effort="fast", random_state=0).fit(X).labels_

    assert np.bincount(labels).max() <= 40


def test_known_labels_are_kept(unequal):
    X, y = unequal
    known = np.full(200, -1)
    known[::10] = y[::10]

    model = ManifoldClustering(3, min_cluster_size=50, effort="fast", random_state=0).fit(X, known)

    assert_array_equal(model.labels_[::10], y[::10])
    assert np.bincount(model.labels_).min() >= 50


def test_graphs_have_bounds(unequal):
    graph = KNNGraph(8, connect="mst").build(unequal[0])

    labels = fiedler.cluster(graph, 3, min_cluster_size=50, random_state=0).labels

    assert np.bincount(labels).min() >= 50


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"min_cluster_size": 70}, "3 clusters of at least 70 rows cannot hold 200 rows; choose at most 2 clusters"),
        ({"max_cluster_size": 60}, "3 clusters of at most 60 rows cannot hold 200 rows; choose at least 4 clusters"),
        ({"min_cluster_size": 9, "max_cluster_size": 3}, "no number of clusters of 9 to 3 rows"),
        ({"min_cluster_size": 9, "outliers": 0.1}, "cannot be kept with outliers"),
    ],
)
def test_impossible_bounds_get_one_sentence(options, sentence, unequal):
    with pytest.raises(InputError, match=sentence):
        ManifoldClustering(3, **options).fit(unequal[0])


def test_hard_must_links_are_refused(unequal):
    pairs = PairwiseConstraints([(0, 1)], [], 200, hard=True)

    with pytest.raises(InputError, match="cannot be kept with hard must-links"):
        ManifoldClustering(3, min_cluster_size=9).fit(unequal[0], constraints=pairs)
