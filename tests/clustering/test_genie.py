import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster.hierarchy import is_valid_linkage
from sklearn.cluster import AgglomerativeClustering

from fiedler import GenieLinkage
from fiedler.core.arrays import to_numpy
from fiedler.datasets import circles, two_moons
from fiedler.errors import InputError
from fiedler.graph.tree import MergeTree, cut_tree
from fiedler.metrics import adjusted_rand_index, clustering_accuracy


def test_children_and_distances_are_those_of_scikit_learn_without_a_limit(rng):
    X = rng.normal(size=(60, 2))
    model = GenieLinkage(4, n_neighbors=59, length="distance", gini_threshold=1.0).fit(X)
    peer = AgglomerativeClustering(4, linkage="single", compute_distances=True).fit(X)

    np.testing.assert_allclose(model.distances_, peer.distances_)
    assert_array_equal(np.sort(model.children_, axis=1), np.sort(peer.children_, axis=1))
    assert adjusted_rand_index(peer.labels_, model.labels_) == 1
    assert model.n_leaves_ == peer.n_leaves_


@pytest.mark.parametrize("make", [two_moons, circles])
def test_curved_clusters_among_outliers(make, fixed_rng):
    """Single linkage would separate the outliers instead, unless the curves are components of the graph."""
    X, y = make(n_samples=500, noise=0.05, random_state=0)
    outliers = fixed_rng.uniform(-3, 3, size=(10, 2))
    rows = np.concatenate([X, outliers])

    labels = GenieLinkage(2).fit_predict(rows)[:500]
    single = GenieLinkage(2, gini_threshold=1.0).fit_predict(rows)[:500]

    assert clustering_accuracy(y, labels) > 0.99
    assert clustering_accuracy(y, single) < 0.6


def test_one_fit_has_all_numbers_of_clusters():
    X, _ = two_moons(n_samples=200, random_state=0)
    model = GenieLinkage(2).fit(X)
    tree = MergeTree(model.children_, model.distances_)

    for k in (1, 3, 200):
        assert_array_equal(cut_tree(tree, k), GenieLinkage(k).fit(X).labels_)


def test_new_points_join_the_cluster_of_their_nearest_row(backend):
    X, y = two_moons(n_samples=300, noise=0.05, random_state=0)
    new, y_new = two_moons(n_samples=100, noise=0.05, random_state=1)
    model = GenieLinkage(2).fit(backend(X))

    assert_array_equal(to_numpy(model.predict(backend(X))), to_numpy(model.labels_))
    assert clustering_accuracy(y_new, to_numpy(model.predict(backend(new)))) == 1
    assert clustering_accuracy(y, to_numpy(model.labels_)) == 1


@pytest.mark.parametrize("length", ["mutual", "local"])
def test_a_row_with_a_weight_is_as_many_equal_rows(length, rng):
    X, counts = rng.normal(size=(80, 2)) + 3 * (np.arange(80) % 2)[:, None], rng.randint(1, 12, size=80)
    order = rng.permutation(counts.sum())
    rows = np.repeat(np.arange(80), counts)[order]
    model = GenieLinkage(4, length=length, gini_threshold=0.2)

    weighted, children = model.fit(X, sample_weight=counts).labels_, model.children_
    copied = model.fit(X[rows]).labels_

    assert adjusted_rand_index(weighted[rows], copied) == 1
    assert is_valid_linkage(model.linkage_matrix())
    assert (model.distances_[: len(rows) - 80] == 0).all()
    assert_array_equal(model.fit(X, sample_weight=0.3 * counts).labels_, weighted)  # only ratios matter
    assert not np.array_equal(model.fit(X).children_, children)
    with pytest.raises(InputError, match="sample_weight must be 80 finite, positive numbers"):
        model.fit(X, sample_weight=counts - 1)


def test_equal_rows_alone_and_more_clusters_than_different_rows():
    assert_array_equal(GenieLinkage(2).fit([[1.0], [1.0], [1.0]]).labels_, [0, 0, 1])
    assert_array_equal(GenieLinkage(3).fit([[1.0], [2.0], [1.0], [2.0]]).labels_, [0, 1, 0, 2])


def test_few_rows_have_fewer_neighbours():
    assert_array_equal(
        GenieLinkage(2, n_neighbors=50, length="distance").fit_predict([[0.0], [0.1], [5.0], [5.1]]), [0, 0, 1, 1]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gini_threshold": 0}, "gini_threshold must be a fraction"),
        ({"length": "euclidean"}, "length='euclidean'"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_clusters": 5}, "5"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(InputError, match=message):
        GenieLinkage(**{"n_clusters": 2, **options}).fit([[0.0], [0.1], [5.0], [5.1]])
