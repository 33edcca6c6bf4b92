"""Smoothing over graphs, and combined Laplacians with weights chosen without labels."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from fiedler import AffinityGraph, KNNGraph, SpectralClustering
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.datasets import blobs
from fiedler.errors import InputError, NotConvergedWarning
from fiedler.graph import combine_graphs, diffuse, dirichlet_energy, heat_flow, iterate, laplacian, resolvent
from fiedler.metrics import clustering_accuracy

KINDS = ["combinatorial", "symmetric", "random_walk"]


@pytest.fixture(params=["uneven_graph", "connected_graph"])
def graph(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def F(graph, rng):
    P = rng.uniform(0.1, 1, size=(graph.n_nodes, 3))
    return P / P.sum(axis=1, keepdims=True)


def converted(graph, backend):
    return AffinityGraph.from_matrix(backend(graph.weights.toarray()))


@pytest.mark.parametrize(("kind", "scale"), [("combinatorial", np.ones_like), ("symmetric", np.sqrt)])
def test_dirichlet_energy_is_the_printed_sum(kind, scale, graph, rng, backend):
    """[vonLuxburg07, Prop. 1 and 3]: 1/2 sum_ij w_ij (f_i/s_i - f_j/s_j)^2 with s = 1 or sqrt(d)."""
    W, s = graph.weights.toarray(), np.where(graph.degrees > 0, scale(graph.degrees), 1)
    f = rng.normal(size=len(s))

    printed = 0.5 * sum(W[i, j] * (f[i] / s[i] - f[j] / s[j]) ** 2 for i in range(len(f)) for j in range(len(f)))

    assert_allclose(
        dirichlet_energy(backend(f[:, None]), laplacian(converted(graph, backend), kind)), printed, rtol=1e-12
    )


def test_diffusion_is_the_printed_step(graph, F, backend):
    """[lapgmm, Eq. 12]: f_i <- (1 - step) f_i + step sum_j w_ij f_j / sum_j w_ij; an isolated node keeps its value."""
    W, step = graph.weights.toarray(), 0.9
    printed = F.copy()
    for i in range(len(F)):
        if W[i].sum() > 0:
            printed[i] = (1 - step) * F[i] + step * sum(W[i, j] * F[j] for j in range(len(F))) / W[i].sum()

    diffused = to_numpy(diffuse(backend(F), converted(graph, backend).laplacian("random_walk"), step))

    assert_allclose(diffused, printed)
    assert_allclose(diffused.sum(axis=1), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_powers_are_matrix_powers(kind, graph, F, backend):
    L, L_backend = graph.laplacian(kind).toarray(), converted(graph, backend).laplacian(kind)

    assert_allclose(to_numpy(iterate(backend(F), L_backend, 3)), np.linalg.matrix_power(L, 3) @ F, atol=1e-10)
    assert_allclose(to_numpy(iterate(backend(F), L_backend, 0)), F)
    step = np.eye(len(L)) - 0.1 * L
    assert_allclose(
        to_numpy(diffuse(backend(F), L_backend, 0.1, n_steps=4)), np.linalg.matrix_power(step, 4) @ F, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time", [0.0, 0.01, 1.0, 30.0])
def test_heat_flow_is_the_matrix_exponential(kind, time, graph, F, backend):
    expected = scipy.linalg.expm(-time * graph.laplacian(kind).toarray()) @ F

    assert_allclose(
        to_numpy(heat_flow(backend(F), converted(graph, backend).laplacian(kind), time)), expected, atol=1e-13
    )


@pytest.mark.parametrize("kind", KINDS)
def test_heat_flows_compose_and_end_in_the_null_space(kind, graph, F):
    L = graph.laplacian(kind)

    assert_allclose(heat_flow(heat_flow(F, L, 0.7), L, 1.9), heat_flow(F, L, 2.6), atol=1e-13)
    assert_allclose(L @ heat_flow(F, L, 3000.0), 0, atol=1e-8)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.99])
def test_the_resolvent_is_the_dense_inverse(gamma, graph, F, backend):
    W, d = graph.weights.toarray(), graph.degrees
    walk = np.where(d[:, None] > 0, W / np.where(d > 0, d, 1)[:, None], np.eye(len(d)))  # isolated nodes stay
    expected = (1 - gamma) * np.linalg.solve(np.eye(len(d)) - gamma * walk, F)

    smoothed = to_numpy(resolvent(backend(F), converted(graph, backend), gamma, tol=1e-13))

    assert_allclose(smoothed, expected, atol=1e-11)
    assert_allclose(smoothed.sum(axis=1), 1, atol=1e-11)


def test_the_resolvent_is_the_limit_of_anchored_diffusion(graph, F):
    gamma, walk = 0.8, np.eye(graph.n_nodes) - graph.laplacian("random_walk").toarray()
    anchored = F
    for _ in range(300):
        anchored = (1 - gamma) * F + gamma * walk @ anchored

    assert_allclose(resolvent(F, graph, gamma, tol=1e-13), anchored, atol=1e-11)


def test_the_resolvent_minimises_its_objective(connected_graph, rng):
    P, gamma, L = rng.normal(size=(6, 1)), 0.7, connected_graph.laplacian()

    def objective(F):
        return (1 - gamma) / gamma * np.sum(connected_graph.degrees[:, None] * (F - P) ** 2) + dirichlet_energy(F, L)

    best = resolvent(P, connected_graph, gamma, tol=1e-13)
    assert all(objective(best + 1e-3 * rng.normal(size=(6, 1))) > objective(best) for _ in range(50))


def test_for_gamma_near_one_every_component_is_constant(uneven_graph, rng):
    P = rng.normal(size=(10, 2))
    F = resolvent(P, uneven_graph, 1 - 1e-9, tol=1e-12, max_iter=10_000)

    d = uneven_graph.degrees
    for nodes in (range(6), range(6, 9)):
        mean = np.average(P[list(nodes)], axis=0, weights=d[list(nodes)])
        assert_allclose(F[list(nodes)], np.tile(mean, (len(nodes), 1)), atol=1e-6)


SMOOTHERS = {
    "diffuse": lambda F, graph: diffuse(F, graph.laplacian("random_walk"), 0.5, 3),
    "heat_flow": lambda F, graph: heat_flow(F, graph.laplacian(), 2.0),
    "resolvent": lambda F, graph: resolvent(F, graph, 0.9),
    "iterate": lambda F, graph: iterate(F, graph.laplacian("symmetric"), 2),
}


@pytest.mark.parametrize("smoother", list(SMOOTHERS))
def test_float32_is_kept_and_agrees_with_float64(smoother, rng, backend):
    X, F = rng.normal(size=(50, 3)).astype(np.float32), rng.uniform(size=(50, 4)).astype(np.float32)

    single = SMOOTHERS[smoother](backend(F), KNNGraph(5).build(backend(X)))

    double = SMOOTHERS[smoother](F.astype(np.float64), KNNGraph(5).build(X.astype(np.float64)))
    assert "float32" in str(single.dtype)
    assert_allclose(to_numpy(single), double, atol=1e-4)


def graph_of(F):
    return AffinityGraph.from_matrix(np.ones((len(F), len(F))))


def test_operator_and_array_must_be_of_one_library_and_precision():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    L = AffinityGraph.from_matrix(torch.ones((4, 4), dtype=torch.float64)).laplacian()
    for F in (np.ones((4, 1)), torch.ones((4, 1), dtype=torch.float32)):
        with pytest.raises(ValueError, match="convert both to one library and one dtype"):
            diffuse(F, L, 0.1)


def test_invalid_options_raise(connected_graph, signed_graph, F):
    with pytest.raises(ValueError, match=r"gamma must be in \[0, 1\); got 1"):
        resolvent(F, connected_graph, 1)
    with pytest.raises(ValueError, match="needs non-negative weights, but the graph is signed"):
        resolvent(F, signed_graph, 0.5)
    with pytest.raises(ValueError, match="time must be finite and non-negative"):
        heat_flow(F, connected_graph.laplacian(), -1.0)
    with pytest.raises(ValueError, match=r"time=1e.20 is too long for this graph"):
        heat_flow(F, connected_graph.laplacian(), 1e20)
    for bad in (F[:, 0], F[:3], F.tolist()):
        with pytest.raises(ValueError, match=r"F must be an array of shape \(\d+, k\), with one row per node"):
            diffuse(bad, graph_of(F).laplacian(), 0.1)
    with pytest.raises(ValueError, match="n_steps must be an integer of at least 0"):
        diffuse(F, connected_graph.laplacian(), 0.1, -1)


def test_a_resolvent_that_does_not_converge_warns(uneven_graph, rng):
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        resolvent(rng.normal(size=(10, 2)), uneven_graph, 0.99, max_iter=1)


@pytest.fixture
def views(rng):
    """Three graphs on the same rows: of two noisy views of three clusters, and of noise alone."""
    X, y = blobs(120, n_clusters=3, noise=0.6, random_state=0)
    rows = [X, X + rng.normal(size=X.shape), rng.normal(size=X.shape)]
    return [KNNGraph(8).build(view) for view in rows], rows, y


def scaled_laplacians(graphs):
    return [graph.laplacian().toarray() / graph.degrees.mean() for graph in graphs]


def test_the_laplacian_is_the_weighted_sum(views):
    graphs, _, _ = views

    combined = combine_graphs(graphs, 2)

    printed = sum(mu * L for mu, L in zip(combined.weights, scaled_laplacians(graphs)))
    assert_allclose(combined.graph.laplacian().toarray(), printed, atol=1e-12)
    assert_allclose(combined.weights.sum(), 1)


def test_the_weights_are_a_fixed_point_and_the_objective_never_rises(views):
    """[Nie, Li & Li 2016]: μ_g ∝ 1 / √tr(Y'L_gY), Y the smallest eigenvectors of Σ μ_g L_g."""
    graphs, _, _ = views
    laplacians = scaled_laplacians(graphs)

    combined = combine_graphs(graphs, 2, max_iter=200, tol=1e-10)

    _, Y = eigh(sum(mu * L for mu, L in zip(combined.weights, laplacians)), subset_by_index=(0, 2))
    energies = np.array([np.trace(Y.T @ L @ Y) for L in laplacians])
    assert_allclose(combined.weights, energies**-0.5 / (energies**-0.5).sum(), rtol=1e-6)
    assert len(combined.objectives) > 3
    assert (np.diff(combined.objectives) <= 1e-12).all()


def test_graphs_of_noise_weigh_least_and_clusters_of_the_combination_are_closest(views):
    graphs, rows, y = views
    equal = AffinityGraph.from_matrix(sum(graph.weights / graph.degrees.mean() for graph in graphs))

    combined = combine_graphs(graphs, 2)

    assert combined.weights[0] > combined.weights[1] > combined.weights[2]
    accuracy = [
        clustering_accuracy(y, SpectralClustering(3, graph, random_state=0).fit(rows[1]).labels_)
        for graph in (combined.graph, equal, graphs[1], graphs[2])
    ]
    assert accuracy == sorted(accuracy, reverse=True)
    assert accuracy[0] > accuracy[1]


def test_weights_that_still_change_are_worth_a_warning(views):
    with pytest.warns(
        NotConvergedWarning, match="did not converge within max_iter=2 iterations; raise max_iter or tol"
    ):
        combine_graphs(views[0], 2, max_iter=2)


def test_one_graph_keeps_its_shape_and_back_ends_agree(views, backend):
    graphs, rows, _ = views

    single = combine_graphs(graphs[:1], 2).graph
    foreign = combine_graphs([KNNGraph(8).build(backend(view)) for view in rows], 2)

    assert_allclose(single.weights.toarray() * graphs[0].degrees.mean(), graphs[0].weights.toarray())
    expected = combine_graphs(graphs, 2)
    assert_allclose(foreign.weights, expected.weights, atol=1e-4)
    assert_allclose(to_scipy(foreign.graph.weights).toarray(), expected.graph.weights.toarray(), atol=1e-4)
    assert to_numpy(foreign.graph.degrees).shape == (120,)


def test_graphs_that_cannot_be_combined_are_refused(uneven_graph, connected_graph, signed_graph):
    with pytest.raises(InputError, match="there is no graph to combine"):
        combine_graphs([], 1)
    with pytest.raises(InputError, match="must have the same nodes; they have 6, 10 of them"):
        combine_graphs([uneven_graph, connected_graph], 1)
    with pytest.raises(InputError, match="must not have negative weights"):
        combine_graphs([signed_graph, AffinityGraph.from_matrix(np.ones((8, 8)) - np.eye(8))], 1)
