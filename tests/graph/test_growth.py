"""Rows that join a graph: the result is the graph of all rows, built anew."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.datasets import blobs, two_moons
from fiedler.graph.neighbors import k_nearest
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.graph.weights import grow_graph, known_neighbors


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
def test_neighbours_are_known_from_the_graph(kind):
    X = split_rows(kind)
    X = sp.csr_array(X) if sp.issparse(X) else X
    lists = known_neighbors(self_tuned(9, connect="mst").build(X), X, 9)

    edges = k_nearest(X, 9)
    assert_allclose(lists.distances.ravel(), edges.distances, rtol=1e-5, atol=1e-6)
    if kind != "float32":
        assert_array_equal(np.sort(lists.indices, axis=1), np.sort(edges.columns.reshape(-1, 9), axis=1))
