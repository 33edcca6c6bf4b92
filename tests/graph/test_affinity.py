import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from toys import uneven_weights


def test_attributes_of_a_graph(uneven_graph):
    W = uneven_weights()

    assert_array_equal(uneven_graph.weights.toarray(), W)
    assert_allclose(uneven_graph.degrees, W.sum(axis=1))
    assert (uneven_graph.n_nodes, uneven_graph.n_edges) == (10, 11)
    assert uneven_graph.weights.indices.dtype == np.int32


def test_components_are_numbered_by_decreasing_size(uneven_graph):
    count, labels = uneven_graph.components()

    assert count == 3
    assert_array_equal(labels, [0] * 6 + [1] * 3 + [2])


def test_signed_degrees_are_sums_of_absolute_weights(signed_graph):
    assert_allclose(signed_graph.degrees, abs(signed_graph.weights).sum(axis=1))
    assert signed_graph.degrees[4] == 2


@pytest.mark.parametrize("array", ["data", "indices", "indptr"])
def test_a_graph_is_immutable(array, uneven_graph):
    with pytest.raises(ValueError, match="read-only"):
        getattr(uneven_graph.weights, array)[0] = 5
    with pytest.raises(AttributeError):
        uneven_graph.weights = None


def test_from_matrix_accepts_every_container(backend):
    W = uneven_weights()
    for matrix in (W, W.tolist(), sp.csr_array(W), sp.coo_matrix(W), backend(W)):
        assert_array_equal(to_scipy(AffinityGraph.from_matrix(matrix).weights).toarray(), W)


def test_from_matrix_keeps_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    graph = AffinityGraph.from_matrix(torch.asarray(uneven_weights()).to_sparse_csr())

    assert graph.weights.layout == torch.sparse_csr
    assert_allclose(to_numpy(graph.degrees), uneven_weights().sum(axis=1))


def test_the_diagonal_is_ignored():
    assert AffinityGraph.from_matrix(np.eye(4) + 1).weights.diagonal().sum() == 0


def test_signs_and_symmetry_are_checked_off_the_diagonal_only():
    assert AffinityGraph.from_matrix([[-1.0, 2.0], [2.0, -1.0]]).n_edges == 1
    split = sp.coo_array(([2.0, -1.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert_array_equal(AffinityGraph.from_matrix(sp.csr_array(split)).weights.toarray(), [[0, 1], [1, 0]])


def test_the_callers_matrix_stays_writable_and_clones_share_the_graph():
    W = sp.csr_array(uneven_weights())
    graph = AffinityGraph(W)
    W.data[0] = W.data[0]

    assert copy.deepcopy(graph) is graph
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(graph)).weights.data[0] = 5


def test_asymmetry_by_rounding_is_averaged():
    W = uneven_weights()
    W[0, 1] += 1e-12

    weights = AffinityGraph.from_matrix(W).weights

    assert abs(weights - weights.T).max() == 0


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), r"an affinity matrix must be square, with one row per node; got shape \(2, 3\)"),
        (np.ones(3), r"an affinity matrix must be square and numeric; got shape \(3,\)"),
        (np.array([["a", "b"], ["c", "d"]]), "square and numeric"),
        (np.zeros((0, 0)), "square, with one row per node"),
        (np.array([[0, np.nan], [np.nan, 0]]), "contains NaN or infinity"),
        (np.array([[0, np.inf], [np.inf, 0]]), "contains NaN or infinity"),
        (
            np.array([[0.0, 1.0], [0.5, 0.0]]),
            r"is not symmetric \(w_ij and w_ji differ by up to 0.5\); symmetrise it first",
        ),
        (np.array([[1e7, 3.0], [0.0, 0.0]]), r"is not symmetric \(w_ij and w_ji differ by up to 3\)"),
        (sp.csr_array(np.array([[0, 1j], [1j, 0]])), "square and numeric"),
        ([[0.0], [1.0, 0.0]], "must have rows of the same length; got ..0.0., .1.0, 0.0..; pass a square"),
        (np.array([[0.0, 1.7e308], [1.7e308, 0.0]]), "has weights whose sums could overflow; divide it by its largest"),
        (np.array([[0.0, -2.0], [-2.0, 0.0]]), r"has negative weights \(smallest -2\); pass signed=True"),
    ],
)
def test_invalid_affinity_raises(W, message):
    with pytest.raises(ValueError, match=message):
        AffinityGraph.from_matrix(W)


def test_a_graph_may_have_no_edges():
    graph = AffinityGraph.from_matrix(np.zeros((3, 3)))

    assert graph.n_edges == 0
    assert graph.components()[0] == 3
    assert_array_equal(graph.laplacian("symmetric").toarray(), np.zeros((3, 3)))


# --------------------------------------------------------------------------------------------------------- connecting


def clouds(rng):
    """Four clouds at 0, 10, 17 and 100 on a line, of 20, 15, 10 and 5 points."""
    sizes, places = [20, 15, 10, 5], [0.0, 10.0, 17.0, 100.0]
    offset = np.repeat(places, sizes)[:, None] * [1.0, 0.0]
    return rng.uniform(-1, 1, size=(50, 2)) + offset, np.repeat(np.arange(4), sizes)


def added_edges(before, after):
    extra = sp.triu(after.weights - before.weights).tocoo()
    return list(zip(extra.row.tolist(), extra.col.tolist()))


def test_mst_adds_the_shortest_edges_that_connect(rng):
    X, y = clouds(rng)
    graph = KNNGraph(4).build(X)
    assert graph.components()[0] == 4

    joined = graph.connect(X, "mst")

    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    shortest = {}
    for a, b in [(0, 1), (1, 2), (2, 3)]:  # the minimum spanning tree over clouds on a line joins neighbours
        block = np.where(np.outer(y == a, y == b), distances, np.inf)
        shortest[a, b] = np.unravel_index(block.argmin(), block.shape)
    assert joined.components()[0] == 1
    assert sorted(added_edges(graph, joined)) == sorted(tuple(map(int, e)) for e in shortest.values())


def test_nearest_joins_every_component_to_the_largest(rng):
    X, y = clouds(rng)
    graph = KNNGraph(4).build(X)

    joined = graph.connect(X, "nearest")

    assert joined.components()[0] == 1
    assert sorted((y[i], y[j]) for i, j in added_edges(graph, joined)) == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize("how", ["mst", "nearest"])
def test_bridges_have_the_smallest_weight_of_the_graph(how, rng, backend):
    X, _ = clouds(rng)
    graph = KNNGraph(4, weight="heat").build(backend(X))
    joined = graph.connect(backend(X), how)

    before, after = to_scipy(graph.weights), to_scipy(joined.weights)
    assert_allclose(after[before.toarray() == 0].max(), before.data.min())
    assert_array_equal(after.toarray(), after.toarray().T)


def test_isolated_nodes_are_connected_too(uneven_graph, rng):
    X = rng.normal(size=(10, 2))

    assert uneven_graph.connect(X).components()[0] == 1
    assert AffinityGraph.from_matrix(np.zeros((4, 4))).connect(X[:4]).n_edges == 3


def test_a_recipe_can_connect_its_graph(rng):
    X, _ = clouds(rng)

    assert KNNGraph(4, connect="mst").build(X).components()[0] == 1


def test_connect_returns_a_connected_graph_itself(connected_graph, rng):
    assert connected_graph.connect(rng.normal(size=(6, 2))) is connected_graph
    with pytest.raises(ValueError, match="X has 5 rows, but the graph has 6 nodes"):
        connected_graph.connect(np.zeros((5, 2)))
