import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.graph.coarsen import WeightedEdges, coarsen, contract, group_by_strongest_neighbor, repelling_pairs
from fiedler.graph.constraints import add_constraints
from fiedler.metrics import modularity, normalized_cut
from toys import uneven_weights


@pytest.fixture
def rows(rng):
    return rng.normal(size=(800, 3))


def test_contraction_is_the_printed_product(backend, rng):
    """W' = P'WP with its diagonal as self-loops, d' = P'd."""
    W, groups = uneven_weights(), rng.randint(4, size=10)
    groups[:4] = range(4)
    graph = AffinityGraph.from_matrix(backend(W))
    P = np.eye(4)[groups]

    coarse = contract(graph, groups)

    expected = P.T @ W @ P
    assert_allclose(to_scipy(coarse.weights).toarray(), expected - np.diag(np.diag(expected)), rtol=1e-6)
    assert_allclose(to_numpy(coarse.loops), np.diag(expected), rtol=1e-5, atol=1e-6)
    assert_allclose(to_numpy(coarse.degrees), P.T @ W.sum(axis=1), rtol=1e-6)
    again = contract(coarse, np.array([0, 0, 1, 1]))
    twice = contract(graph, np.array([0, 0, 1, 1])[groups])
    assert_allclose(to_numpy(again.loops), to_numpy(twice.loops), rtol=1e-5)


def test_modularity_and_cuts_mean_the_same_on_every_level(rows, rng):
    graph = KNNGraph(6).build(rows)
    hierarchy = coarsen(graph, 60, rng)
    labels = rng.randint(5, size=hierarchy.coarsest.n_nodes)

    assert len(hierarchy.graphs) > 2
    for level, graph_of_level in enumerate(hierarchy.graphs):
        nodes = np.arange(graph_of_level.n_nodes)
        for groups in hierarchy.groups[level:]:
            nodes = groups[nodes]
        assert_allclose(
            modularity(graph_of_level, labels[nodes], resolution=0.7),
            modularity(graph, labels[hierarchy.supernodes], resolution=0.7),
        )
        assert_allclose(
            normalized_cut(graph_of_level, labels[nodes]), normalized_cut(graph, labels[hierarchy.supernodes])
        )


def test_modularity_with_repelling_weights_means_the_same_on_every_level(rows, rng):
    """Negative weights are added to positive ones between supernodes, but volumes are those of the positive ones."""
    graph = KNNGraph(6).build(rows)
    signed = add_constraints(
        graph, PairwiseConstraints([], rng.permutation(800)[:100].reshape(-1, 2), 800, strength=0.5)
    )
    hierarchy = coarsen(signed, 60, rng)
    labels = rng.randint(5, size=hierarchy.coarsest.n_nodes)
    expected = WeightedEdges.of(signed).modularity(labels[hierarchy.supernodes], 5, 0.7)

    assert len(hierarchy.graphs) > 2
    coarse = WeightedEdges.of(hierarchy.coarsest, hierarchy.attracting[-1]).modularity(labels, 5, 0.7)
    assert_allclose(coarse, expected)
    without = WeightedEdges.of(hierarchy.coarsest).modularity(labels, 5, 0.7)
    assert abs(without - expected) > 1e-4  # the sums of weights alone do not know the volumes


def test_nodes_join_their_strongest_normalised_neighbour(rng):
    """w_ij / √(d_i d_j): node 0 prefers node 1, although its weight to the hub 2 is larger."""
    W = np.zeros((6, 6))
    W[0, 1], W[0, 2], W[2, 3], W[2, 4], W[2, 5] = 1.0, 1.2, 5.0, 5.0, 5.0
    graph = AffinityGraph.from_matrix(W + W.T)
    groups = group_by_strongest_neighbor(graph, graph.degrees, 1, rng)

    assert groups[0] == groups[1] != groups[2]
    assert len(set(groups[2:])) == 1


def test_the_size_asked_for_is_reached(rows, rng):
    graph = KNNGraph(6).build(rows)
    for size in (700, 300, 100):
        n_nodes = coarsen(graph, size, rng).coarsest.n_nodes
        assert size <= n_nodes <= 1.1 * size
    assert coarsen(graph, 800, rng).coarsest is graph


def test_equal_weights_do_not_chain_all_nodes_together(rng):
    """On a ring of equal weights every node has two strongest neighbours."""
    W = np.roll(np.eye(400), 1, axis=1)
    graph = AffinityGraph.from_matrix(W + W.T)
    groups = group_by_strongest_neighbor(graph, graph.degrees, 1, rng)
    assert np.bincount(groups).max() < 40
    assert groups.max() > 50


def test_nodes_that_repel_each_other_stay_apart_on_every_level(rows, rng):
    """Also where the positive weights between two groups outweigh the negative ones."""
    graph = KNNGraph(6).build(rows)
    pairs = np.stack([np.arange(0, 800, 20), graph.weights.indices[graph.weights.indptr[:-1:20]]], axis=1)
    signed = add_constraints(graph, PairwiseConstraints([], pairs, 800, strength=0.1))

    free, hierarchy = (coarsen(each, 100, np.random.RandomState(0)) for each in (graph, signed))

    assert len(hierarchy.graphs) > 2
    assert len(repelling_pairs(hierarchy.coarsest)) < len(pairs)  # in the sums most no longer show
    assert (free.supernodes[pairs[:, 0]] == free.supernodes[pairs[:, 1]]).sum() > 10
    assert (hierarchy.supernodes[pairs[:, 0]] != hierarchy.supernodes[pairs[:, 1]]).all()


def test_isolated_nodes_and_graphs_without_edges_end_the_coarsening(rng):
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = 1.0
    hierarchy = coarsen(AffinityGraph.from_matrix(W), 2, rng)
    assert hierarchy.coarsest.n_nodes == 4
    assert_array_equal(np.bincount(hierarchy.supernodes), [2, 1, 1, 1])
    assert coarsen(AffinityGraph.from_matrix(np.zeros((5, 5))), 2, rng).coarsest.n_nodes == 5


def test_every_back_end_gives_the_same_groups(rows, backend):
    graph, other = (KNNGraph(6, weight="heat").build(X) for X in (rows, backend(rows)))
    first, second = (coarsen(each, 100, np.random.RandomState(0)) for each in (graph, other))
    assert_array_equal(first.supernodes, second.supernodes)


def printed(W, labels, gamma):
    """Q with degrees of the positive weights, pair by pair; the diagonal of W are self-loops."""
    d, n = np.maximum(W, 0).sum(axis=1), len(W)
    total = d.sum()
    pairs = itertools.product(range(n), range(n))
    return sum(W[i, j] - gamma * d[i] * d[j] / total for i, j in pairs if labels[i] == labels[j]) / total


def signed_weights():
    """Two negative weights, one of them at a node whose other neighbours share its label."""
    W = uneven_weights().astype(float)
    W[0, 1] = W[1, 0] = -0.5
    W[7, 9] = W[9, 7] = -2.0
    return W


@pytest.mark.parametrize("weights", [uneven_weights, signed_weights])
def test_gains_are_differences_of_modularity(weights, backend, rng):
    """Moving node i from its community to c changes Q by 2/2m (gain_ic - gain of its community)."""
    W, labels, loops = weights(), rng.randint(3, size=10), rng.uniform(size=10)
    graph = AffinityGraph.from_matrix(backend(W), signed=True)
    graph = graph._with_weights(graph.weights, loops=backend(loops))
    edges = WeightedEdges.of(graph)

    placed = edges.as_labels(labels)
    nodes, gains, current, _ = edges.boundary_gains(placed, edges.volumes(placed, 3), 0.7)
    reached = edges.modularity(placed, 3, 0.7)

    W = W + np.diag(loops)
    nodes, gains, current = (to_numpy(values) for values in (nodes, gains, current))
    assert_allclose(reached, printed(W, labels, 0.7), rtol=1e-6)
    is_inner = [(labels[W[i] != 0] == labels[i]).all() and (W[i] >= 0).all() for i in range(10)]
    assert set(nodes) == set(np.flatnonzero(~np.array(is_inner)))
    for (position, i), c in itertools.product(enumerate(nodes), range(3)):
        if c != labels[i]:
            moved = labels.copy()
            moved[i] = c
            expected = printed(W, moved, 0.7) - printed(W, labels, 0.7)
            assert_allclose(2 * (gains[c, position] - current[position]) / edges.total, expected, atol=1e-6)


def test_moves_raise_modularity_and_end_where_none_gains(fixed_rng):
    """On other graphs the last rounds without a gain may leave nodes that would gain a little."""
    rng = fixed_rng
    W = rng.uniform(size=(60, 60)) * (rng.uniform(size=(60, 60)) < 0.2)
    edges = WeightedEdges.of(AffinityGraph.from_matrix(W + W.T))
    start = rng.randint(4, size=60)

    result = edges.move(start, 1.0, 4, rng)

    assert result.modularity > edges.modularity(start, 4, 1.0) + 0.01
    assert_allclose(edges.modularity(result.labels, 4, 1.0), result.modularity)
    _, gains, current, _ = edges.boundary_gains(result.labels, edges.volumes(result.labels, 4), 1.0)
    assert (gains.max(axis=0) <= current + 1e-3).all()


def test_one_community_has_no_boundary(rng):
    edges = WeightedEdges.of(AffinityGraph.from_matrix(uneven_weights()))
    result = edges.move(np.zeros(10, dtype=int), 1.0, 3, rng)
    assert (result.labels == 0).all()
    assert result.n_communities == 1
    assert_allclose(result.modularity, 0, atol=1e-12)  # 1 - γ


def test_without_edges_nothing_moves():
    """As where all edges of a graph are inside its coarse nodes."""
    edges = WeightedEdges.of(AffinityGraph.from_matrix(np.zeros((4, 4))))

    moved = edges.move(np.array([0, 0, 1, 1]), 1.0, 2, np.random.RandomState(0))

    assert moved.labels.tolist() == [0, 0, 1, 1]
