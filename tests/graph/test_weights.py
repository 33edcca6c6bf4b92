"""Rows with weights, equal rows, and rows that join a graph."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph
from fiedler.datasets import blobs, two_moons
from fiedler.errors import InputError
from fiedler.graph import modularity
from fiedler.graph.coarsen import contract
from fiedler.graph.neighbors import k_nearest
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.graph.weights import (
    check_sample_weight,
    different_rows,
    expand_graph,
    grow_graph,
    known_neighbors,
    relative_weights,
    weigh_graph,
)
from fiedler.metrics import normalized_cut


@pytest.fixture
def graph(rng):
    """An uneven graph of 12 nodes with a leaf."""
    W = np.triu(rng.uniform(0.1, 1, size=(12, 12)) * (rng.uniform(size=(12, 12)) < 0.4), 1)
    W[0, 1:], W[0, 5] = 0, 0.3
    return AffinityGraph.from_matrix(W + W.T)


@pytest.fixture
def counts(rng):
    return rng.randint(1, 6, size=12)


def graph_of_copies(graph, counts):
    """[row_weights]: each copy of i is joined to each copy of j with weight w_ij / √(m_i m_j)."""
    nodes = np.repeat(np.arange(len(counts)), counts)
    W = graph.weights.toarray() / np.sqrt(np.outer(counts, counts))
    return AffinityGraph.from_matrix(W[nodes][:, nodes]), nodes


def test_cut_volumes_and_modularity_are_those_of_the_graph_of_all_copies(graph, counts, rng):
    copies, nodes = graph_of_copies(graph, counts)
    weighted, labels = weigh_graph(graph, counts.astype(float)), rng.randint(3, size=12)

    assert_allclose(weighted.degrees, np.bincount(nodes, copies.degrees))
    assert_allclose(normalized_cut(weighted, labels), normalized_cut(copies, labels[nodes]))
    assert_allclose(modularity(weighted, labels), modularity(copies, labels[nodes]))


def test_every_copy_has_the_degree_of_its_row_where_weights_are_equal(graph):
    copies, nodes = graph_of_copies(graph, np.full(12, 3))

    assert_allclose(copies.degrees, graph.degrees[nodes])


def test_rescaled_weights_rescale_the_graph(graph, counts):
    one, other = (weigh_graph(graph, scale * counts) for scale in (1.0, 7.0))

    assert_allclose(other.weights.data, 7 * one.weights.data)
    assert_allclose(relative_weights(7.0 * counts), relative_weights(1.0 * counts))
    assert relative_weights(np.full(3, 0.2)) is None


def test_a_weighted_graph_is_symmetric_to_the_last_bit(graph, rng):
    W = weigh_graph(graph, rng.uniform(0.1, 9, size=12)).weights

    assert (W != W.T).nnz == 0


def test_self_loops_are_multiplied_by_the_weights(counts):
    graph = AffinityGraph(sp.csr_array(np.ones((2, 2)) - np.eye(2)), loops=np.array([1.0, 2.0]))

    assert_array_equal(weigh_graph(graph, np.array([3.0, 5.0])).loops, [3, 10])


def test_the_contraction_of_an_expanded_graph_is_the_graph(graph, counts, rng):
    nodes = rng.permutation(np.repeat(np.arange(12), counts))

    expanded = expand_graph(graph, nodes)

    assert expanded.n_nodes == len(nodes)
    assert (expanded.weights != expanded.weights.T).nnz == 0
    assert_allclose(contract(expanded, nodes).weights.toarray(), graph.weights.toarray())
    largest = np.maximum.outer(counts, counts)[graph.weights.toarray() > 0].sum()
    assert expanded.weights.nnz == largest


@pytest.mark.parametrize("convert", [np.asarray, lambda X: X.astype(np.float32), sp.csr_array])
def test_different_rows_are_those_of_numpy_in_their_order(convert, rng):
    X = rng.poisson(0.7, size=(200, 4)).astype(float)

    first, nodes = different_rows(convert(X))

    assert_array_equal(first, np.sort(np.unique(X, axis=0, return_index=True)[1]))
    assert_array_equal(X[first][nodes], X)


@pytest.mark.parametrize(
    "bad", [np.ones(4), -np.ones(5), np.zeros(5), [1, 1, 0, 1, 1], [1, 2, np.nan, 1, 1], ["a"] * 5]
)
def test_bad_weights_get_one_sentence(bad):
    with pytest.raises(InputError, match="sample_weight must be 5 finite, positive numbers, one per row") as caught:
        check_sample_weight(bad, 5)
    assert caught.value.code == "invalid_sample_weight"


def test_rows_may_have_weight_zero_where_they_are_not_nodes():
    assert_array_equal(check_sample_weight([1, 0, 2], 3, allow_zero=True), [1, 0, 2])
    with pytest.raises(InputError, match="not all zero"):
        check_sample_weight([0, 0, 0], 3, allow_zero=True)


def split_rows(kind):
    rng = np.random.RandomState(0)
    if kind == "moons":
        return two_moons(n_samples=300, noise=0.1, random_state=0)[0]
    if kind == "separated":  # the graph has components, which are joined
        return blobs(300, n_features=6, n_clusters=3, random_state=1)[0] * 10
    if kind == "float32":
        return rng.normal(size=(300, 12)).astype(np.float32)
    if kind == "outliers":  # weights to rows of another density vanish
        return np.concatenate([1e-3 * rng.normal(size=(270, 2)), 50 + 40 * rng.uniform(size=(30, 2))])[
            rng.permutation(300)
        ]
    return sp.random(300, 40, density=0.2, format="csr", random_state=0)


KINDS = ["moons", "separated", "float32", "outliers", "sparse"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_new", [1, 4, 90])
def test_the_grown_graph_is_the_graph_of_all_rows(kind, n_new):
    X, recipe = split_rows(kind), self_tuned(9, connect="mst")
    old, new = (sp.csr_array(part) if sp.issparse(X) else part for part in (X[:-n_new], X[-n_new:]))
    graph = recipe.build(old)

    grown = grow_graph(recipe, graph, old, new, n_fewer=5)

    rows = sp.csr_array(X) if sp.issparse(X) else X
    edges, (sparser, expected) = nested_graphs(recipe, rows, [5, 9])
    tolerance = 1e-3 if kind == "float32" else 1e-9
    assert_allclose(grown.graph.weights.toarray(), expected.weights.toarray(), atol=tolerance)
    assert_allclose(grown.sparser.weights.toarray(), sparser.weights.toarray(), atol=tolerance)
    assert_allclose(grown.graph.constants.scales, expected.constants.scales, rtol=1e-5)
    assert_allclose(grown.edges.distances, edges.distances, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_kept", [0, 150, 209])
def test_the_graph_without_removed_rows_is_that_of_the_others(kind, n_kept):
    X, recipe = split_rows(kind), self_tuned(9, connect="mst")
    old, new = (sp.csr_array(part) if sp.issparse(X) else part for part in (X[:210], X[210:]))
    kept = np.sort(np.random.RandomState(1).permutation(210)[:n_kept])

    grown = grow_graph(recipe, recipe.build(old), old, new, n_fewer=5, kept=kept)

    rows = X[np.concatenate([kept, np.arange(210, 300)])]
    _, (sparser, expected) = nested_graphs(recipe, sp.csr_array(rows) if sp.issparse(X) else rows, [5, 9])
    tolerance = 1e-3 if kind == "float32" else 1e-9
    assert_allclose(grown.graph.weights.toarray(), expected.weights.toarray(), atol=tolerance)
    assert_allclose(grown.sparser.weights.toarray(), sparser.weights.toarray(), atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_known_from_the_graph(kind):
    X = split_rows(kind)
    X = sp.csr_array(X) if sp.issparse(X) else X
    lists = known_neighbors(self_tuned(9, connect="mst").build(X), X, 9)

    edges = k_nearest(X, 9)
    assert_allclose(lists.distances.ravel(), edges.distances, rtol=1e-5, atol=1e-6)
    if kind != "float32":
        assert_array_equal(np.sort(lists.indices, axis=1), np.sort(edges.columns.reshape(-1, 9), axis=1))
