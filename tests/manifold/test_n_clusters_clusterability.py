"""Clusterability: near zero for a single Gaussian, above the threshold where there are clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans

import fiedler
from fiedler import KNNGraph, ManifoldClustering, choose_n_clusters
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import blobs, circles, two_moons
from fiedler.graph.recipes import self_tuned
from fiedler.manifold import n_clusters as module
from fiedler.manifold.n_clusters import MIN_CLUSTERABILITY, clusterability, draw_gaussian, principal_axes

SHAPES = {
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "Gaussian": lambda rng, n, d: rng.normal(size=(n, d)) * np.arange(1, d + 1),
    "heavy tails": lambda rng, n, d: rng.standard_t(5, size=(n, d)),
}


@pytest.mark.parametrize("d", [2, 10, 50])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_single_cluster_is_not_clusterable(shape, d):
    for seed in range(5):
        X = SHAPES[shape](np.random.RandomState(seed), 300, d)
        assert clusterability(X, np.random.RandomState(seed)) < MIN_CLUSTERABILITY


@pytest.mark.parametrize("make", [blobs, two_moons, circles])
def test_clusters_are_clusterable(make):
    for seed in range(3):
        X, _ = make(400, noise=0.05, random_state=seed)
        assert clusterability(X, np.random.RandomState(seed)) > MIN_CLUSTERABILITY


def test_it_is_the_printed_difference(rng, monkeypatch):
    """max_K [mean_b log λ_K(b) - log λ_K], here with draws that are given."""
    X, drawn = rng.normal(size=(80, 3)), [rng.normal(size=(80, 3)) for _ in range(module.N_DRAWS)]
    iterator = iter(drawn)
    monkeypatch.setattr(module, "draw_gaussian", lambda *args: next(iterator))

    def log_values(rows):
        values = smallest_eigenpairs(self_tuned(9, connect="mst").build(rows), 8).values[1:]
        return np.log(np.maximum(values, 1e-4))

    expected = np.max(np.mean([log_values(rows) for rows in drawn], axis=0) - log_values(X))
    assert_allclose(clusterability(X, np.random.RandomState(0)), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(50, 4), (20, 70)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_draws_have_the_principal_axes_of_the_rows(shape, kind, rng):
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1])) + 3
    axes = principal_axes(kind(X))
    expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) / np.sqrt(len(X))

    assert_allclose(axes, expected[: min(shape[1], shape[0] - 1)], rtol=1e-6)
    many = draw_gaussian(axes, np.zeros((20_000, 1)), np.random.RandomState(0))
    assert_allclose(many.std(axis=0), axes, rtol=0.05)


def test_rotation_shift_and_scale_do_not_matter(rng):
    X = rng.normal(size=(200, 4)) * [5, 1, 1, 0.2]
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    first, second = (clusterability(rows, np.random.RandomState(0)) for rows in (X, 30 * X @ rotation + 7))
    assert_allclose(first, second, atol=1e-4)


def test_single_precision_far_from_the_origin():
    X, _ = two_moons(400, noise=0.05, random_state=0)
    shifted = (X + 1000).astype(np.float32)

    assert_allclose(principal_axes(shifted), principal_axes(X), rtol=1e-3)
    assert clusterability(shifted, np.random.RandomState(0)) > MIN_CLUSTERABILITY


def test_repeated_rows_count_once(rng):
    """Rounded measurements, of which most are repeated."""
    X = np.round(2 * rng.normal(size=(500, 2)))
    assert clusterability(X, np.random.RandomState(0)) < MIN_CLUSTERABILITY


def test_back_ends_agree(backend):
    X, _ = two_moons(200, random_state=0)
    expected = clusterability(X.astype(np.float32), np.random.RandomState(0))
    assert_allclose(clusterability(backend(X.astype(np.float32)), np.random.RandomState(0)), expected, atol=0.02)


def test_few_distinct_rows_say_nothing(rng):
    assert clusterability(rng.normal(size=(19, 2)), np.random.RandomState(0)) is None
    assert clusterability(np.repeat(rng.normal(size=(10, 2)), 5, axis=0), np.random.RandomState(0)) is None


def test_auto_answers_one_where_there_is_no_structure(rng):
    X = rng.uniform(size=(300, 2))
    labels, memberships, model = fiedler.cluster(X, random_state=0)

    assert (model.n_clusters_, model.evidence_.n_clusters, model.evidence_.by) == (1, 1, "clusterability")
    assert memberships.shape == (300, 1)
    assert set(labels) == {0}
    assert model.report().startswith("1 cluster, by clusterability")
    assert "clusterability 0." in str(model.evidence_)
    assert choose_n_clusters(X, estimator=KMeans(), random_state=0).n_clusters == 1
    assert choose_n_clusters(X, range(2, 8), random_state=0).n_clusters > 1  # one is not among the candidates
    assert choose_n_clusters(X, [1, 2], random_state=0).n_clusters == 1
    assert choose_n_clusters(two_moons(200, random_state=0)[0], [1, 2], random_state=0).n_clusters == 2
    assert ManifoldClustering(max_clusters=2, random_state=0).fit(X).n_clusters_ == 1


def test_one_is_not_considered_with_labels_graphs_or_few_rows(rng):
    X = rng.uniform(size=(120, 2))
    y = np.where(np.arange(120) < 5, np.arange(120) % 2, -1)
    models = [
        ManifoldClustering(max_clusters=3, random_state=0).fit(X, y),
        ManifoldClustering(graph=KNNGraph(9, connect="mst"), max_clusters=3, random_state=0).fit(X),
        ManifoldClustering(max_clusters=3, random_state=0).fit(KNNGraph(9, connect="mst").build(X)),
        ManifoldClustering(max_clusters=3, random_state=0).fit(X[:19]),
    ]
    assert [model.evidence_.clusterability for model in models] == [None] * 4
    assert min(model.n_clusters_ for model in models) >= 2
