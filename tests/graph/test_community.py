import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import AffinityGraph, KNNGraph, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import csr_parts
from fiedler.datasets import load, two_moons
from fiedler.graph import communities
from fiedler.graph import community as module
from fiedler.graph.community import (
    RESOLUTION,
    CommunitySearch,
    MultilevelSearch,
    _agglomerate,
    _move_cells,
    most_frequent,
)
from fiedler.graph.constraints import add_constraints
from fiedler.metrics import clustering_accuracy, modularity, normalized_cut
from toys import uneven_weights


def printed(W, labels, gamma):
    """Q, pair by pair."""
    d, total, n = W.sum(axis=1), W.sum(), len(W)
    pairs = itertools.product(range(n), range(n))
    return sum(W[i, j] - gamma * d[i] * d[j] / total for i, j in pairs if labels[i] == labels[j]) / total


def planted(rng, sizes=(40, 25, 12), inside=0.8, outside=0.02):
    """A random graph in which the groups are denser than the rest."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    odds = np.where(y[:, None] == y[None, :], inside, outside)
    W = np.triu(rng.uniform(size=odds.shape) < odds, 1) * rng.uniform(0.5, 1.5, size=odds.shape)
    return W + W.T, y


def one_large_and_four_small(rng):
    """One cluster of 900 rows and four of thirty, far apart."""
    sizes, centers = (900, 30, 30, 30, 30), 6 * np.eye(5)
    y = np.repeat(np.arange(5), sizes)
    return centers[y] + rng.normal(size=(len(y), 5)), y


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.0])
def test_modularity_is_the_printed_sum(gamma, rng):
    W, labels = uneven_weights(), rng.randint(3, size=10)

    assert_allclose(modularity(W, labels, resolution=gamma), printed(W, labels, gamma), rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_small_graphs_reach_the_global_optimum(k, rng):
    W, _ = planted(rng, sizes=(4, 3, 2), inside=0.9, outside=0.2)

    result = communities(AffinityGraph.from_matrix(W), k, resolution=1.0, random_state=0)

    best = max(printed(W, labels, 1.0) for labels in itertools.product(range(k), repeat=len(W)))
    assert_allclose(result.modularity, best, rtol=1e-9)


def test_planted_groups_are_found_on_every_back_end(backend, rng):
    W, y = planted(rng)
    graph = AffinityGraph.from_matrix(backend(W))

    result = communities(graph, 3, random_state=0)

    assert type(result.labels) is type(csr_parts(graph.weights)[0])
    assert clustering_accuracy(y, to_numpy(result.labels)) == 1.0
    assert_allclose(result.modularity, modularity(graph, result.labels, resolution=result.resolution), rtol=1e-6)


def test_the_result_is_no_lower_than_the_start(rng, monkeypatch):
    """Without other starts, a start that cannot be improved is returned."""
    W, _ = planted(rng)
    graph = AffinityGraph.from_matrix(W)
    best = communities(graph, 3, resolution=1.0, random_state=0).labels
    monkeypatch.setattr(module, "_spectral_starts", lambda vectors, search: {})
    monkeypatch.setattr(module, "_merged_cells", lambda cells, search: {})

    result = communities(graph, 3, starts=[best], resolution=1.0, random_state=1)

    assert (result.labels == best).all()
    from_random = communities(graph, 3, starts=[rng.randint(3, size=len(W))], resolution=1.0, random_state=1)
    assert from_random.modularity <= result.modularity + 1e-9


def test_cohesion_of_cells_adds_up_to_modularity(rng):
    """The modularity of grouped cells is that of their nodes."""
    W, y = planted(rng)
    search = CommunitySearch.on(AffinityGraph.from_matrix(W), 3, rng)
    cells = rng.randint(12, size=len(W))
    cohesion = search.cohesion(cells, 12, 0.8)

    labels = _agglomerate(cohesion[None], 3)[0]
    moved = _move_cells(labels, cohesion, 3)

    same = labels[:, None] == labels[None, :]
    assert_allclose(cohesion[same].sum(), printed(W, labels[cells], 0.8), rtol=1e-9)
    assert printed(W, moved[cells], 0.8) >= printed(W, labels[cells], 0.8)
    assert set(search.bisect(y, 0.8) // 2) == {0, 1, 2}
    assert (search.bisect(y, 0.8) // 2 == y).all()


def test_a_dominant_group_is_not_split(rng):
    X, y = one_large_and_four_small(rng)
    graph = KNNGraph(8, connect="mst").build(X)

    default = communities(graph, 5, resolution=RESOLUTION, random_state=0)
    result = communities(graph, 5, random_state=0)

    assert clustering_accuracy(y, default.labels) < 0.8  # the large group is split, small ones are merged
    assert default.modularity > modularity(
        graph, y, resolution=RESOLUTION
    )  # the search did not fail: its modularity is higher
    assert clustering_accuracy(y, result.labels) > 0.99
    assert result.resolution < RESOLUTION
    assert_allclose(result.modularity, modularity(graph, result.labels, resolution=result.resolution), rtol=1e-6)


def test_normalized_cut_of_the_search_is_the_metric(rng):
    W, y = planted(rng)
    search = CommunitySearch.on(AffinityGraph.from_matrix(W), 3, rng)
    assert_allclose(search.normalized_cut(y), normalized_cut(W, y))
    assert search.normalized_cut(np.minimum(y, 1)) == np.inf


def test_groups_of_similar_size_are_searched_at_the_default_resolution(rng):
    W, _ = planted(rng, sizes=(40, 40, 40))
    assert communities(AffinityGraph.from_matrix(W), 3, random_state=0).resolution == RESOLUTION


def test_resolution_is_raised_until_no_community_is_empty(rng):
    W, _ = planted(rng, sizes=(30, 30), inside=0.6, outside=0.02)

    result = communities(AffinityGraph.from_matrix(W), 6, random_state=0)

    assert result.n_communities == 6
    assert result.resolution > RESOLUTION
    assert communities(AffinityGraph.from_matrix(W), 6, resolution=0.1, random_state=0).n_communities < 6


def large_graph(rng, n=1500):
    """Six groups on a ring, more nodes than the search is allowed below."""
    y = rng.randint(6, size=n)
    angle = 2 * np.pi * y / 6
    return 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(size=(n, 2)), y


@pytest.fixture
def coarse_search(monkeypatch):
    """Coarsen graphs of more than 300 nodes to about 150."""
    monkeypatch.setattr(module, "MAX_SEARCH_NODES", 300)
    monkeypatch.setattr(module, "COARSE_NODES", 150)
    monkeypatch.setattr(module, "MIN_NODES_PER_CLUSTER", 10)


def test_a_coarse_search_reaches_the_modularity_of_a_search_of_the_graph_itself(fixed_rng, backend, coarse_search):
    X, y = large_graph(fixed_rng)
    graph = KNNGraph(8).build(backend(X))
    multilevel = MultilevelSearch.on(graph, 6, np.random.RandomState(0))
    coarse = communities(graph, 6, random_state=0)

    direct = MultilevelSearch.on(graph, 6, np.random.RandomState(0), max_nodes=10_000).find(6, np.random.RandomState(0))

    assert multilevel.search.edges.n < 170
    assert coarse.modularity > 0.995 * direct.modularity  # one supernode for ten nodes
    assert_allclose(coarse.modularity, modularity(graph, coarse.labels, resolution=coarse.resolution), rtol=1e-6)
    assert clustering_accuracy(y, to_numpy(coarse.labels)) > 0.9


def test_refinement_only_raises_modularity(rng, coarse_search):
    graph = KNNGraph(8).build(large_graph(rng)[0])
    multilevel = MultilevelSearch.on(graph, 6, np.random.RandomState(0))
    search = replace(multilevel.search, k=6, rng=np.random.RandomState(1))
    coarse = search.improve(rng.randint(6, size=search.edges.n), 1.0)

    refined = multilevel.refine(coarse, 6, np.random.RandomState(1))

    projected = modularity(graph, coarse.labels[multilevel.hierarchy.supernodes])
    assert_allclose(projected, coarse.modularity, rtol=1e-6)
    assert refined.modularity > projected


def test_cannot_links_survive_coarsening(rng, coarse_search):
    X, _ = large_graph(rng)
    graph = KNNGraph(8).build(X)
    pairs = np.stack([np.arange(0, 1500, 10), graph.weights.indices[graph.weights.indptr[:-1:10]]], axis=1)
    constraints = PairwiseConstraints([], pairs, 1500, strength=20.0)

    free = communities(graph, 6, random_state=0)
    signed = add_constraints(graph, constraints)
    repelled = communities(signed, 6, random_state=0)
    direct = MultilevelSearch.on(signed, 6, np.random.RandomState(0), max_nodes=10_000).find(
        6, np.random.RandomState(0)
    )

    assert constraints.violations(free.labels).n_pairs > 100
    assert constraints.violations(repelled.labels).n_pairs < 40
    assert repelled.modularity > 0.9 * direct.modularity


def test_must_links_survive_coarsening(rng, coarse_search):
    """Links between two blobs merge them into one community, which then is one of five."""
    X, y = large_graph(rng)
    graph = KNNGraph(8).build(X)
    first, second = (np.flatnonzero(y == label)[:150] for label in (0, 1))
    constraints = PairwiseConstraints(np.stack([first, second], axis=1), [], 1500, strength=5.0)

    free = communities(graph, 6, random_state=0)
    linked = communities(add_constraints(graph, constraints), 6, random_state=0)

    assert constraints.violations(free.labels).n_pairs > 100
    assert constraints.violations(linked.labels).n_pairs < 10


def test_a_graph_whose_components_all_become_single_supernodes(coarse_search):
    """Pairs of nodes: the coarse graph has self-loops alone."""
    W = sp.csr_array(np.kron(np.eye(250), [[0, 1], [1, 0]]))
    result = communities(AffinityGraph.from_matrix(W), 3, random_state=0)

    assert result.n_communities == 3
    assert (result.labels[::2] == result.labels[1::2]).all()


def test_one_search_finds_several_numbers_of_communities(rng):
    W, y = planted(rng)
    search = MultilevelSearch.on(AffinityGraph.from_matrix(W), 5, np.random.RandomState(0))

    results = [search.find(k, np.random.RandomState(0)) for k in (2, 3, 5)]

    assert [result.n_communities for result in results] == [2, 3, 5]
    assert clustering_accuracy(y, results[1].labels) == 1.0


def test_a_start_of_a_large_graph_is_carried_to_its_supernodes():
    assert (most_frequent(np.array([1, 1, 0, 2, 2]), np.array([0, 0, 0, 1, 1]), 3) == [1, 2]).all()


def test_tails_do_not_lower_the_resolution(rng):
    """A far smaller community does not count as a low cut, whatever its cut."""
    W, y = planted(rng, sizes=(100, 100, 1), inside=0.5, outside=0.02)
    search = CommunitySearch.on(AffinityGraph.from_matrix(W), 3, rng)

    assert search.normalized_cut(y) < np.inf
    assert search.cut_without_tails(y) == np.inf
    assert search.cut_without_tails(np.arange(201) % 3) == search.normalized_cut(np.arange(201) % 3)


def test_moons_are_separated():
    """The second eigenvector of a chain-like graph does not suffice; modularity does."""
    recipe = KNNGraph(10, weight="local", symmetrize="mean")
    for seed in range(3):
        X, y = two_moons(n_samples=600, noise=0.09, random_state=seed)
        assert clustering_accuracy(y, communities(recipe.build(X), 2, random_state=seed).labels) > 0.98


def test_the_same_seed_gives_the_same_partition(rng):
    W, _ = planted(rng)
    graph = AffinityGraph.from_matrix(W)
    first, second = (communities(graph, 4, random_state=3).labels for _ in range(2))

    assert (first == second).all()


def test_one_community_and_as_many_as_nodes(rng):
    graph = AffinityGraph.from_matrix(uneven_weights())

    assert set(communities(graph, 1, random_state=0).labels) == {0}
    assert communities(graph, 10, random_state=0).n_communities == 10


def test_modularity_is_not_below_louvain():
    """Compare with scikit-network's Louvain, whose resolution is tuned to the same number of communities."""
    clustering = pytest.importorskip("sknetwork.clustering", reason="scikit-network is not installed")
    k, graph = 10, KNNGraph().build(load("digits", normalize="unit").X)
    W = sp.csr_matrix(graph.weights)
    for resolution in np.geomspace(0.1, 3, 40):
        labels = clustering.Louvain(resolution=resolution, random_state=0).fit_predict(W)
        if len(set(labels)) == k:
            break
    else:
        pytest.skip("Louvain did not reach the number of communities")

    ours = communities(graph, k, resolution=1.0, random_state=0)

    assert ours.modularity >= modularity(graph, labels) - 1e-6


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.zeros((4, 4)), {}, "no edges, so it has no communities; use more neighbours"),
        (uneven_weights(), {"starts": [np.zeros(3, dtype=int)]}, "3"),
        (uneven_weights(), {"starts": [np.full(10, 7)]}, "a start must contain labels from 0 to 1"),
        (uneven_weights(), {"resolution": -1.0}, "resolution must be"),
    ],
)
def test_invalid_input_raises(matrix, options, message):
    with pytest.raises(ValueError, match=message):
        communities(AffinityGraph.from_matrix(matrix), 2, **options)


def test_modularity_refuses_signed_graphs():
    graph = AffinityGraph.from_matrix([[0, -1.0], [-1.0, 0]], signed=True)

    with pytest.raises(ValueError, match="non-negative weights"):
        modularity(graph, [0, 1])
    with pytest.raises(ValueError, match="no edges"):
        modularity(np.zeros((2, 2)), [0, 1])


def test_negative_weights_repel():
    """Four cliques on a ring: two neighbours are merged, unless a negative weight separates them."""
    W = np.kron(np.eye(4), np.ones((4, 4))) + 0.2 * np.kron(np.roll(np.eye(4), 1, axis=1), np.eye(4))
    W = np.maximum(W, W.T) - np.eye(16)
    plain = to_numpy(communities(AffinityGraph.from_matrix(W), 2, random_state=0).labels)
    friends = (0, 4) if plain[0] == plain[4] else (0, 12)
    W[friends] = W[friends[::-1]] = -3.0

    labels = to_numpy(communities(AffinityGraph.from_matrix(W, signed=True), 2, random_state=0).labels)

    assert labels[friends[0]] != labels[friends[1]]
    assert sorted(np.bincount(labels)) == sorted(np.bincount(plain)) == [8, 8]


def test_the_spectral_starts_are_returned(connected_graph):
    result = communities(connected_graph, 2, random_state=0)

    assert {"2 eigenvectors", "3 eigenvectors", "4 eigenvectors"} <= set(result.starts)
    assert all(len(labels) == connected_graph.n_nodes for labels in result.starts.values())
