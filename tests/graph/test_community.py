import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.backend import to_numpy
from fiedler.datasets import load, two_moons
from fiedler.graph import communities
from fiedler.graph import community as module
from fiedler.graph.community import RESOLUTION, _agglomerate, _move_cells, _Search
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


def test_gains_are_differences_of_modularity(rng):
    """Moving node i from its community to c changes Q by 2/2m (gain_ic - gain of its community)."""
    W, labels = uneven_weights(), rng.randint(3, size=10)
    search = _Search.on(AffinityGraph.from_matrix(W), 3, rng)

    gains, current, reached = search.gains(labels, 3, 0.7)

    assert_allclose(reached, printed(W, labels, 0.7))
    for i, c in itertools.product(range(10), range(3)):
        if c == labels[i]:
            continue
        moved = labels.copy()
        moved[i] = c
        expected = printed(W, moved, 0.7) - printed(W, labels, 0.7)
        assert_allclose(2 * (gains[i, c] - current[i]) / W.sum(), expected, atol=1e-12)


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

    assert clustering_accuracy(y, to_numpy(result.labels)) == 1.0
    assert_allclose(result.modularity, modularity(graph, result.labels, resolution=result.resolution), rtol=1e-6)


def test_the_result_is_no_lower_than_the_start(rng, monkeypatch):
    """Without other starts, a start that cannot be improved is returned."""
    W, _ = planted(rng)
    graph = AffinityGraph.from_matrix(W)
    best = communities(graph, 3, resolution=1.0, random_state=0).labels
    monkeypatch.setattr(module, "_spectral_starts", lambda graph, search: {})

    result = communities(graph, 3, starts=[best], resolution=1.0, random_state=1)

    assert (result.labels == best).all()
    from_random = communities(graph, 3, starts=[rng.randint(3, size=len(W))], resolution=1.0, random_state=1)
    assert from_random.modularity <= result.modularity + 1e-9


def test_cohesion_of_cells_adds_up_to_modularity(rng):
    """The modularity of grouped cells is that of their nodes."""
    W, y = planted(rng)
    search = _Search.on(AffinityGraph.from_matrix(W), 3, rng)
    cells = rng.randint(12, size=len(W))
    cohesion = search.cohesion(cells, 12, 0.8)

    labels = _agglomerate(cohesion, 3)
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
    search = _Search.on(AffinityGraph.from_matrix(W), 3, rng)
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
