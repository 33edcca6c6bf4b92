import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler import AffinityGraph
from fiedler.core.arrays import to_numpy
from fiedler.graph.coarsen import WeightedEdges
from toys import uneven_weights


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
            assert_allclose(2 * (gains[position, c] - current[position]) / edges.total, expected, atol=1e-6)


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
    assert (gains.max(axis=1) <= current + 1e-3).all()


def test_one_community_has_no_boundary(rng):
    edges = WeightedEdges.of(AffinityGraph.from_matrix(uneven_weights()))
    result = edges.move(np.zeros(10, dtype=int), 1.0, 3, rng)
    assert (result.labels == 0).all()
    assert result.n_communities == 1
    assert_allclose(result.modularity, 0, atol=1e-12)  # 1 - γ
