"""t-SNE on a graph: its forces and its layouts."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from fiedler import KNNGraph
from fiedler.plots import layouts as tsne
from fiedler.plots.layouts import affinities, attraction, embed_tsne, repulsion


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, centers=[[0, 0, 0], [7, 0, 0], [0, 7, 0]], random_state=0)
    return X - X.min(), y


def test_attraction_is_the_printed_sum(rng):
    W, Y = KNNGraph(4).build(rng.normal(size=(20, 3))).weights, rng.normal(size=(20, 2))
    P = affinities(sp.csr_array(W))

    differences = Y[:, None] - Y[None]
    forces = P.toarray() / (1 + (differences**2).sum(axis=2))

    assert_allclose(P.sum(), 1)
    assert_allclose(attraction(P, P.tocoo().row, Y), (forces[:, :, None] * differences).sum(axis=1), atol=1e-12)


@pytest.mark.parametrize(("spread", "tolerance"), [(0.001, 0.01), (1.0, 0.03), (8.0, 0.2)])
def test_repulsion_on_the_grid_approximates_the_printed_sum(spread, tolerance, rng):
    Y = spread * rng.normal(size=(300, 2))

    differences = Y[:, None] - Y[None]
    q = 1 / (1 + (differences**2).sum(axis=2))
    printed = (q[:, :, None] ** 2 * differences).sum(axis=1) / (q.sum() - 300)

    assert np.linalg.norm(repulsion(Y) - printed) < tolerance * np.linalg.norm(printed)


def nearest_row_score(points, y):
    """The share of rows whose nearest row belongs to their cluster."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return (y[distances.argmin(axis=1)] == y).mean()


def test_clusters_are_separated_and_the_seed_determines_the_layout(blobs):
    X, y = blobs
    points, repeated = (embed_tsne(X, None, random_state=3)[0] for _ in range(2))

    assert_array_equal(points, repeated)
    assert nearest_row_score(points, y) > 0.95


def test_sparse_rows_can_be_embedded(blobs):
    assert nearest_row_score(embed_tsne(sp.csr_array(blobs[0]), None)[0], blobs[1]) > 0.95


def test_rows_outside_the_sample_are_placed_near_their_cluster(blobs, monkeypatch):
    monkeypatch.setattr(tsne, "MAX_EMBEDDED_ROWS", 45)
    points, description = embed_tsne(blobs[0], None)

    assert "45 rows" in description
    assert nearest_row_score(points, blobs[1]) > 0.95


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_few_rows_and_equal_rows_have_finite_coordinates(n, rng):
    assert np.isfinite(embed_tsne(rng.normal(size=(n, 4)), None)[0]).all()
    assert np.isfinite(embed_tsne(np.repeat(np.eye(4), n, axis=0), None)[0]).all()


def test_a_graph_is_embedded_with_or_without_rows(blobs):
    graph = KNNGraph(8, connect="mst").build(blobs[0])
    for X in (blobs[0], None):
        points, description = embed_tsne(X, graph)
        assert description == "t-SNE of the graph"
        assert nearest_row_score(points, blobs[1]) > 0.95


def test_a_dense_graph_or_one_of_other_rows_is_not_used(blobs):
    X = blobs[0][:, :1] @ np.ones((1, 3)) + np.arange(90)[:, None]
    other = KNNGraph(5).build(X[:50])

    assert embed_tsne(X, other)[1] == "t-SNE of 12 nearest neighbours"
