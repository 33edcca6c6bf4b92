"""Whitening: the printed scatter matrices, and what the map does to them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import LPI, AffinityGraph, KNNGraph, Whitening
from fiedler.core.arrays import to_numpy
from fiedler.core.kmeans import kmeans
from fiedler.datasets import blobs
from fiedler.embedding.whitening import N_CELL_RUNS, whitening_factors
from fiedler.errors import InputError


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + [5.0, 0.0, -3.0, 1.0]


def printed_scatter(X, by, graph=None, cells=None):
    """The three formulas, row by row and edge by edge."""
    Z = X - X.mean(axis=0)
    if by == "rows":
        return sum(np.outer(z, z) for z in Z) / len(Z)
    if by == "cells":
        runs = [sum(np.outer(z, z) for z in Z - run.centers[run.labels]) / len(Z) for run in cells]
        return np.mean(runs, axis=0)
    W = graph.weights.toarray()
    pairs = itertools.product(range(len(Z)), range(len(Z)))
    return 0.5 * sum(W[i, j] * np.outer(Z[i] - Z[j], Z[i] - Z[j]) for i, j in pairs) / W.sum()


@pytest.mark.parametrize("by", ["rows", "cells", "edges"])
def test_the_printed_scatter_becomes_the_identity(by, X):
    graph = KNNGraph(5, weight="heat").build(X) if by == "edges" else None
    model = Whitening(by, ridge=0.0, n_cells=4, graph=graph, random_state=0)

    Y = model.fit_transform(X)

    rng = np.random.RandomState(0)
    rng.randint(2**31 - 1)  # the seed of the principal components
    cells = [kmeans(X - X.mean(axis=0), 4, n_init=1, random_state=rng) for _ in range(N_CELL_RUNS)]
    S = printed_scatter(X, by, graph, cells)
    assert_allclose(model.components_ @ S @ model.components_.T, np.eye(4), atol=1e-8)
    assert_allclose(Y, (X - X.mean(axis=0)) @ model.components_.T, rtol=1e-10)


def test_the_directions_of_lpi_are_those_of_least_scatter_along_edges(X):
    """LPI minimises a'X'LXa / a'X'DXa [lpi, Eq. 1]: on whitened rows, whose X'LX is the identity, 1 / b'Y'DYb."""
    graph = KNNGraph(5, weight="heat").build(X)
    whitening = Whitening("edges", ridge=0.0, graph=graph).fit(X)
    lpi = LPI(4, graph=graph).fit(X)

    mean = graph.degrees @ X / graph.degrees.sum()
    Y = (X - mean) @ whitening.components_.T
    largest = np.linalg.eigvalsh((Y.T * graph.degrees) @ Y)[::-1]
    assert_allclose(graph.degrees.sum() / largest, lpi.eigenvalues_, rtol=1e-6)


def test_the_ridge_is_relative_to_the_largest_variance():
    """V (Λ + ρ λ_max I)^(-1/2); a large ridge only rotates and scales."""
    S = np.diag([4.0, 1.0, 0.0])
    F = whitening_factors(S, 0.5)

    assert_allclose(F @ F.T, np.diag([1 / 6, 1 / 3, 1 / 2]))
    assert_allclose(F.T @ (S + 2 * np.eye(3)) @ F, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("by", ["cells", "edges"])
def test_directions_of_noise_are_shrunk(by, rng):
    """Clusters in one column that is smaller than a column of noise: their distance grows relative to their width."""
    y = rng.randint(3, size=300)
    X = np.stack([y + 0.05 * rng.normal(size=300), 4 * rng.normal(size=300)], axis=1)

    def separation(rows):
        return np.linalg.norm(rows[y == 0].mean(axis=0) - rows[y == 1].mean(axis=0)) / rows[y == 0].std(axis=0).max()

    Y = Whitening(by, ridge=1e-4, n_cells=30, random_state=0).fit_transform(X)
    assert separation(Y) > 1.2 * separation(X)


def test_many_columns_are_reduced_and_sparse_rows_stay_sparse(rng):
    X = sp.random(80, 300, density=0.1, random_state=0, format="csr")
    model = Whitening(max_components=10, random_state=0).fit(X)

    assert model.transform(X).shape == (80, 10)
    assert_allclose(model.transform(X), model.transform(X.toarray()), atol=1e-8)
    assert model.get_feature_names_out().tolist() == [f"whitening{i}" for i in range(10)]


def test_back_ends_agree_on_given_graphs(backend, X):
    graph = KNNGraph(5).build(X)
    Y = Whitening("edges", graph=graph).fit_transform(X)
    model = Whitening("edges", graph=graph).fit(backend(X))

    assert_allclose(np.abs(to_numpy(model.transform(backend(X)))), np.abs(Y), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"by": "columns"}, np.eye(4), "by='columns'"),
        ({"ridge": -1.0}, np.eye(4), "ridge"),
        ({}, np.ones((4, 2)), "no scatter by 'rows'"),
        ({}, np.full((30, 2), 0.1, dtype=np.float32), "no scatter by 'rows'"),
        ({"by": "cells"}, np.repeat([[0.0, 0.0], [3.0, 1.0]], 9, axis=0), "no scatter by 'cells'"),
        ({"by": "rows", "graph": KNNGraph(2)}, np.eye(4), "does not use it"),
        ({"by": "edges", "graph": np.zeros((4, 4))}, np.eye(4), "no edges"),
        ({"by": "edges", "graph": AffinityGraph.from_matrix(-np.ones((4, 4)), signed=True)}, np.eye(4), "negative"),
    ],
)
@pytest.mark.filterwarnings("ignore:the graph has")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_mistakes_are_named(options, rows, message):
    with pytest.raises(InputError, match=message):
        Whitening(**options).fit(rows)


def test_the_default_graph_is_the_one_that_set_params_changes(X):
    first = Whitening("edges").fit(X).components_
    second = Whitening("edges").set_params(graph__n_neighbors=9).fit(X).components_
    assert_allclose(np.abs(first), np.abs(second))


def test_single_precision_rows_far_from_the_origin(rng):
    """A mean added up in single precision would be off by more than the width of the rows."""
    X = (rng.normal(size=(200_000, 2)) + 1e4).astype(np.float32)
    assert_allclose(Whitening().fit_transform(X).std(axis=0), 1, rtol=0.02)


def test_whitening_by_rows_is_that_of_scikit_learn():
    from sklearn.decomposition import PCA

    X, _ = blobs(100, n_clusters=3, random_state=0)
    ours, theirs = Whitening(ridge=0.0).fit_transform(X), PCA(whiten=True).fit_transform(X)
    scale = np.sqrt(100 / 99)  # scikit-learn divides by n - 1
    assert_allclose(np.abs(ours[:, ::-1]), scale * np.abs(theirs), rtol=1e-6)
