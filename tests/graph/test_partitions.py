"""Partitions into many numbers of clusters: as many clusters as asked for, and true groups at their number."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from fiedler import AffinityGraph, KNNGraph
from fiedler.graph import partitions as module
from fiedler.graph.coarsen import WeightedEdges
from fiedler.graph.partitions import partitions
from fiedler.graph.recipes import self_tuned
from fiedler.metrics import modularity, normalized_cut
from toys import uneven_weights

RandomState = np.random.RandomState


def default_graph(X):
    return self_tuned(9, connect="mst").build(X)


def blobs(rng, k=6, n=40):
    """Groups of n rows on a line in the plane, seven standard deviations apart."""
    truth = np.repeat(np.arange(k), n)
    return np.stack([7.0 * truth, np.zeros(k * n)], axis=1) + rng.normal(size=(k * n, 2)), truth


@pytest.mark.parametrize("numbers", [[2], [2, 3, 5, 12, 20], [12, 50]])
def test_there_are_as_many_clusters_as_asked_for(numbers, fixed_rng):
    graph = default_graph(fixed_rng.normal(size=(1000, 3)))

    found = partitions(graph, numbers, RandomState(0))

    assert len(found) == len(numbers)
    for number, methods in zip(numbers, found):
        for labels in methods:
            assert labels.shape == (1000,)
            assert_array_equal(np.unique(labels), np.arange(number))


def test_separated_blobs_are_found(rng):
    X, truth = blobs(rng)

    found = partitions(default_graph(X), [4, 6, 9], RandomState(0))

    assert adjusted_rand_score(truth, found[1][0]) > 0.98
    assert adjusted_rand_score(found[0][0], truth) < 0.9  # the other numbers have partitions of their own


@pytest.mark.parametrize(
    ("X", "truth"),
    [make_moons(500, noise=0.06, random_state=1), make_circles(600, noise=0.04, factor=0.5, random_state=1)],
    ids=["moons", "rings"],
)
def test_the_spectral_partition_finds_long_groups(X, truth):
    (methods,) = partitions(default_graph(X), [2], RandomState(0))

    assert adjusted_rand_score(truth, methods[-1]) > 0.98


def test_the_same_seed_gives_the_same_partitions(rng):
    graph = default_graph(rng.normal(size=(300, 2)))

    first, again = (partitions(graph, [2, 7, 20], RandomState(3)) for _ in range(2))

    assert_array_equal(np.concatenate(list(itertools.chain(*first))), np.concatenate(list(itertools.chain(*again))))


def test_many_clusters_need_no_eigenvectors(monkeypatch, rng):
    graph, counts = default_graph(rng.normal(size=(300, 2))), []
    eigenpairs = module.smallest_eigenpairs
    monkeypatch.setattr(module, "MAX_SPECTRAL", 4)
    monkeypatch.setattr(module, "MAX_SPECTRAL_WORK", 0)
    monkeypatch.setattr(
        module, "smallest_eigenpairs", lambda *args, **kw: counts.append(args[1]) or eigenpairs(*args, **kw)
    )

    assert [len(one) for one in partitions(graph, [5, 9], RandomState(0))] == [3, 3]  # the best one and two linkages
    assert counts == []
    partitions(graph, [3, 4, 5, 9], RandomState(0))
    assert counts == [4]


def test_the_first_partition_has_the_lowest_cut(rng):
    graph = default_graph(rng.normal(size=(300, 2)))

    for methods in partitions(graph, [2, 3, 6], RandomState(0)):
        cuts = [normalized_cut(graph, labels) for labels in (methods[0], *methods[3:])]  # those of moved nodes
        assert cuts[0] == min(cuts)


def test_linkages_find_groups_of_any_shape_and_density(fixed_rng):
    """A dense group next to a sparse one, and a long one, as single linkage on all distances does."""
    parts = [[0.1, 0.1] * fixed_rng.normal(size=(60, 2)), np.array([4, 0]) + fixed_rng.normal(size=(60, 2))]
    line = np.stack([np.linspace(-4, 8, 90), np.full(90, 9.0)], axis=1)
    X, truth = np.concatenate([*parts, line]), np.repeat([0, 1, 2], [60, 60, 90])

    (methods,) = partitions(default_graph(X), [3], RandomState(0))

    assert max(adjusted_rand_score(truth, labels) for labels in methods[1:3]) == 1


def test_a_linkage_merges_the_heaviest_edges_first_and_components_last():
    """With a threshold of one, single linkage of the lengths -log(w / max w)."""
    W = np.zeros((6, 6))
    W[[0, 1, 3], [1, 2, 4]] = [0.5, 1.0, 0.25]  # and node 5 alone
    trees = module._linkages(AffinityGraph.from_matrix(W + W.T))

    for tree in trees:
        assert_allclose(tree.distances[:3].max(), np.log(4))
        assert np.isinf(tree.distances[-2:]).all()


def test_moves_keep_clusters_from_becoming_empty(fixed_rng):
    """A resolution that is high enough for as many clusters as there were."""
    graph = default_graph(fixed_rng.normal(size=(400, 2)))
    start = np.argsort(np.argsort(fixed_rng.normal(size=400))) // 16  # 25 scattered clusters

    moved = module._move_nodes(WeightedEdges.of(graph), start, 25, RandomState(0))
    at_first = WeightedEdges.of(graph).move(start, module.RESOLUTION, 25, RandomState(0), max_rounds=module.MOVE_ROUNDS)

    assert at_first.n_communities < 25
    assert len(np.unique(moved)) > at_first.n_communities


@pytest.mark.parametrize("is_average", [False, True])
def test_the_dendrogram_merges_by_the_printed_gains(is_average, monkeypatch):
    """The pair with the largest e_ij - γ v_i v_j, or e_ij / (v_i v_j); here of single nodes, and without moves."""
    monkeypatch.setattr(module, "_move_cells", lambda labels, cohesion, k: labels)
    W = uneven_weights()[:6, :6] + 0.01 * np.arange(36).reshape(6, 6)
    W = np.triu(W, 1) + np.triu(W, 1).T
    weights, volumes = W / W.sum(), W.sum(axis=1) / W.sum()

    groups, expected = [{i} for i in range(6)], {6: {frozenset([i]) for i in range(6)}}
    while len(groups) > 2:

        def gain(pair):
            e = sum(weights[i, j] for i in pair[0] for j in pair[1])
            v, w = (sum(volumes[i] for i in group) for group in pair)
            return e / (v * w) if is_average else e - module.RESOLUTION * v * w

        a, b = max(itertools.combinations(groups, 2), key=gain)
        groups = [group for group in groups if group not in (a, b)] + [a | b]
        expected[len(groups)] = {frozenset(group) for group in groups}

    found = module._cut_dendrogram(weights, volumes, [2, 3, 4, 5], is_average)

    for number, labels in zip([2, 3, 4, 5], found):
        assert {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(number)} == expected[number]


def test_moves_of_cells_do_not_lower_the_modularity(rng, monkeypatch):
    graph = default_graph(rng.normal(size=(40, 2)))
    W, d = graph.weights.toarray(), np.asarray(graph.degrees)
    arguments = W / W.sum(), d / d.sum(), [3, 5, 8], False
    moved = module._cut_dendrogram(*arguments)
    monkeypatch.setattr(module, "_move_cells", lambda labels, cohesion, k: labels)

    for after, before in zip(moved, module._cut_dendrogram(*arguments)):
        resolution = module.RESOLUTION
        assert modularity(graph, after, resolution=resolution) >= modularity(graph, before, resolution=resolution)


def test_tails_and_empty_groups_have_a_higher_cut():
    """The normalised cut; K more with a tail, and infinite with an empty group."""
    graph = AffinityGraph.from_matrix(uneven_weights()[:9, :9])
    edges = WeightedEdges.of(graph)
    halves = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    tail = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])

    assert_allclose(module._cut_without_tails(edges, halves, 2), normalized_cut(graph, halves))
    assert_allclose(module._cut_without_tails(edges, tail, 2), normalized_cut(graph, tail))
    many = AffinityGraph.from_matrix(np.kron(np.eye(2), np.ones((40, 40)) - np.eye(40)) + 1e-3 * (1 - np.eye(80)))
    leaf = (np.arange(80) == 0).astype(int)
    assert_allclose(module._cut_without_tails(WeightedEdges.of(many), leaf, 2), normalized_cut(many, leaf) + 2)
    assert module._cut_without_tails(edges, halves, 3) == np.inf


def test_graphs_of_other_back_ends_are_partitioned(backend, rng):
    X, truth = blobs(rng, k=3)

    (methods,) = partitions(KNNGraph(9, connect="mst").build(backend(X.astype(np.float32))), [3], RandomState(0))

    assert isinstance(methods[0], np.ndarray)
    assert adjusted_rand_score(truth, methods[0]) > 0.98
