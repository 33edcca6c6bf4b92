import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import SpectralClustering as PeerSpectralClustering

from fiedler import AffinityGraph, FullGraph, KNNGraph, SpectralClustering
from fiedler.core.arrays import to_numpy
from fiedler.datasets import circles, two_moons
from fiedler.graph.cuts import association_eigenpairs
from fiedler.metrics import adjusted_rand_index, average_association, clustering_accuracy, normalized_cut, ratio_cut

CUTS = ["ncut", "njw", "ratio"]


@pytest.fixture
def bridged():
    """Two cliques of six and five nodes, joined by one light edge."""
    W = np.zeros((11, 11))
    W[:6, :6] = W[6:, 6:] = 1
    W[5, 6] = W[6, 5] = 0.1
    return AffinityGraph.from_matrix(W)


@pytest.mark.parametrize(
    ("cut", "objective"), [("ncut", normalized_cut), ("njw", normalized_cut), ("ratio", ratio_cut)]
)
def test_labels_have_the_smallest_of_all_cuts(cut, objective, bridged):
    best = min(objective(bridged, labels) for labels in itertools.product([0, 1], repeat=11) if 0 < sum(labels) < 11)

    labels = SpectralClustering(2, cut=cut, random_state=0).fit(bridged).labels_

    assert_allclose(objective(bridged, labels), best)


def test_association_has_the_largest_of_all_sums_inside(bridged):
    """Σ_k W(A_k, A_k) / |A_k| of all partitions into two."""
    partitions = [labels for labels in itertools.product([0, 1], repeat=11) if 0 < sum(labels) < 11]

    labels = SpectralClustering(2, cut="association", random_state=0).fit(bridged).labels_

    best = max(average_association(bridged, labels) for labels in partitions)
    assert_allclose(average_association(bridged, labels), best)


def test_average_association_is_the_printed_trace(uneven_graph, rng):
    """tr(H'WH) with H'H = I; without loops it is Σ_k vol(A_k)/|A_k| minus the Ratio Cut."""
    loops = rng.uniform(size=uneven_graph.n_nodes)
    labels = rng.permutation(np.arange(uneven_graph.n_nodes) % 3)
    H = np.eye(3)[labels] / np.sqrt(np.bincount(labels))
    W = uneven_graph.weights.toarray()

    assert_allclose(average_association(uneven_graph, labels), np.trace(H.T @ W @ H))
    assert_allclose(
        average_association(uneven_graph, labels),
        np.sum(np.bincount(labels, W.sum(axis=1)) / np.bincount(labels)) - ratio_cut(uneven_graph, labels),
    )
    looped = AffinityGraph(uneven_graph.weights, loops=loops)
    assert_allclose(average_association(looped, labels), np.trace(H.T @ (W + np.diag(loops)) @ H))


def test_association_relaxes_to_the_leading_eigenvectors_of_the_weights(uneven_graph, rng):
    """With loops on the diagonal; with equal degrees they are those of D - W, as in [lpi, Eq. 9]."""
    loops = rng.uniform(size=uneven_graph.n_nodes)
    looped = AffinityGraph(uneven_graph.weights, loops=loops)
    values = np.linalg.eigvalsh(uneven_graph.weights.toarray() + np.diag(loops))

    assert_allclose(association_eigenpairs(looped, 3).values, -values[::-1][:3], atol=1e-10)

    ring = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    regular = AffinityGraph.from_matrix(ring)
    vectors = association_eigenpairs(regular, 3).vectors
    assert_allclose(regular.laplacian() @ vectors, vectors * (2 + association_eigenpairs(regular, 3).values), atol=1e-8)


def test_association_is_the_same_on_every_back_end(foreign, rng):
    X = np.repeat(3 * np.eye(3), 20, axis=0) + rng.normal(size=(60, 3))
    model = SpectralClustering(3, FullGraph(bandwidth=1.0, self_loops=True), cut="association", random_state=0)
    reference, other = clone(model).fit(X), clone(model).fit(foreign(X))
    assert_allclose(to_numpy(other.eigenvalues_), reference.eigenvalues_, rtol=1e-6)
    assert adjusted_rand_index(to_numpy(other.labels_), reference.labels_) == 1
    assert_allclose(
        average_association(other.graph_, other.labels_), average_association(reference.graph_, reference.labels_)
    )


def test_association_predicts_new_points():
    X, _ = two_moons(n_samples=600, noise=0.05, random_state=0)
    model = SpectralClustering(2, cut="association", graph=KNNGraph(150, symmetrize="mean"), random_state=0).fit(X)

    assert (model.predict(X + 1e-9) == model.labels_).mean() > 0.99
    assert (model.predict(X) == model.labels_).all()
    with pytest.raises(ValueError, match="cut='association' counts rows"):
        model.fit(X, sample_weight=np.ones(600) + (np.arange(600) == 0))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("make", [two_moons, circles])
def test_curved_clusters_are_separated_and_predicted(cut, make):
    X, y = make(n_samples=600, noise=0.05, random_state=0)
    X_new, y_new = make(n_samples=300, noise=0.05, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the graph can have two components, one per cluster
        model = SpectralClustering(2, cut=cut, graph=KNNGraph(10), random_state=0).fit(X)

    assert clustering_accuracy(y, model.labels_) > 0.99
    assert clustering_accuracy(y_new, model.predict(X_new)) > 0.99
    assert (model.predict(X) == model.labels_).all()


def test_every_cut_agrees_with_scikit_learn_on_clear_clusters(rng):
    """scikit-learn clusters the rows of D^-1/2 u: our ncut, up to the scale of the columns."""
    X = np.repeat(5 * np.eye(4)[:, :3], 50, axis=0) + rng.normal(size=(200, 3))
    graph = KNNGraph(10).build(X)

    peer = PeerSpectralClustering(4, affinity="precomputed", random_state=0).fit(graph.weights)

    for cut in CUTS:
        ours = SpectralClustering(4, graph=graph, cut=cut, random_state=0).fit(X)
        assert adjusted_rand_index(peer.labels_, ours.labels_) > 0.95


@pytest.mark.parametrize("cut", CUTS)
def test_rescaled_weights_and_reordered_nodes_change_nothing(cut, rng):
    X = np.repeat([[0.0, 0], [3, 0], [0, 3]], 40, axis=0) + 0.7 * rng.normal(size=(120, 2))
    W, order = KNNGraph(8, weight="heat").build(X).weights, rng.permutation(120)
    fit = lambda W: SpectralClustering(3, cut=cut, random_state=0).fit(AffinityGraph.from_matrix(W)).labels_  # noqa: E731

    labels = fit(W)

    assert adjusted_rand_index(labels, fit(1000 * W)) == 1
    assert adjusted_rand_index(labels[order], fit(W[order][:, order])) == 1


@pytest.mark.parametrize("cut", CUTS)
def test_number_of_clusters_is_n_clusters(cut, uneven_graph):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for k in range(1, 5):
            assert len(np.unique(SpectralClustering(k, cut=cut, random_state=0).fit(uneven_graph).labels_)) == k


@pytest.mark.parametrize("cut", CUTS)
def test_n_clusters_components_are_the_clusters(cut, uneven_graph):
    with pytest.warns(UserWarning, match="3 connected components"):
        labels = SpectralClustering(3, cut=cut, random_state=0).fit(uneven_graph).labels_

    assert adjusted_rand_index(labels, uneven_graph.components()[1]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
        ({"n_clusters": 12}, r"n_clusters=12 is more than the number of rows \(n_samples=11\)"),
        ({"n_clusters": "two"}, "n_clusters must be an integer"),
        ({"cut": "min"}, r"cut='min' is not known; choose one of \['ncut', 'njw', 'ratio', 'association'\]"),
        ({"eigen_solver": "amg"}, r"eigen_solver='amg' is not known; choose one of \['auto'"),
    ],
)
def test_bad_options_raise_one_sentence(options, message, bridged):
    with pytest.raises(ValueError, match=message):
        SpectralClustering(**{"n_clusters": 2, **options}).fit(bridged)


def test_one_cluster_contains_all_nodes(bridged):
    assert SpectralClustering(1).fit(bridged).labels_.tolist() == [0] * 11
