"""EM on supernodes: the objective of the rows, restricted to memberships that are constant on groups of rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import LCGMM, AffinityGraph, GaussianMixture, KNNGraph, LapGMM, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import from_scipy_like
from fiedler.datasets import blobs, two_moons
from fiedler.errors import SingularCovarianceError
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.base import fit_supernodes, natural_lam
from fiedler.mixture.covariance import SHAPES, default_ridge, estimate, log_joint
from fiedler.mixture.em import group_links, make_links, median_margin
from fiedler.mixture.statistics import group_statistics

NEVER = 1e-300


def coarsen(graph, groups):
    """P'WP, its diagonal as self-loops."""
    P = sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))
    W = sp.csr_array(P.T @ graph.weights @ P)
    loops = W.diagonal()
    W.setdiag(0)
    W.eliminate_zeros()
    return AffinityGraph(W, loops=loops)


@pytest.fixture
def supernodes():
    """240 rows of three clusters in 40 supernodes of one to eleven rows, cells of k-means++-like centres."""
    X, y = blobs(240, n_clusters=3, noise=1.2, random_state=0)
    centers = X[np.random.RandomState(1).choice(240, 40, replace=False)]
    groups = ((X[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
    graph = KNNGraph(6).build(X)
    start = np.array([np.bincount(y[groups == g], minlength=3).argmax() for g in range(40)])
    return X, groups, graph, coarsen(graph, groups), start


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize(
    "model", [GaussianMixture(3), LapGMM(3, lam=0.7), LapGMM(3, lam="natural"), LCGMM(3, lam=0.05)], ids=str
)
def test_supernodes_of_single_rows_are_the_rows(model, kind, supernodes):
    X, _, graph, _, _ = supernodes
    init = (X[:, 0] > X[:, 0].mean()).astype(int) + (X[:, 1] > X[:, 1].mean())
    model = type(model)(**model.get_params()).set_params(covariance_type=kind, max_iter=15, tol=NEVER)
    order = np.random.RandomState(0).permutation(240)  # the number of each row's supernode
    singletons = group_statistics(X, order)

    result = fit_supernodes(model, singletons, coarsen(graph, order), init[np.argsort(order)])
    rows = model.set_params(graph=graph, init=init).fit(X)

    assert_allclose(result.resp[order], rows.memberships_, atol=1e-7)
    assert_allclose(result.history.objective, rows.history_.objective, rtol=1e-8)
    assert_allclose(result.history["change"], rows.history_["change"], atol=1e-7)
    assert_allclose(result.model.covariances, rows.covariances_, rtol=1e-6)
    assert_allclose(result.lam, getattr(rows, "lam_", result.lam))


@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_the_objective_is_that_of_the_rows(kind, lam, supernodes):
    """Σ_ik q_ik [log α_k N(x_i) - ½ρ tr Σ_k⁻¹ - log q_ik] - λ ½ Σ_ij w_ij ‖q_i - q_j‖², every row with its own term."""
    X, groups, graph, coarse, start = supernodes
    model = LapGMM(3, lam=lam, covariance_type=kind, max_iter=7, tol=NEVER)
    result = fit_supernodes(model, group_statistics(X, groups), coarse, start)
    Q, W = result.resp[groups], graph.weights.tocoo()

    likelihood = np.sum(Q * (log_joint(X, result.model) - np.log(np.maximum(Q, 1e-300))))
    energy = 0.5 * np.sum(W.data[:, None] * (Q[W.row] - Q[W.col]) ** 2)

    assert_allclose(result.history["likelihood"][-1], likelihood, rtol=1e-10)
    assert_allclose(result.history["penalty"][-1], lam * energy, atol=1e-9)


def test_the_components_are_estimated_from_the_rows(supernodes):
    X, groups, _, coarse, start = supernodes
    ridge = default_ridge("full", 3, X.shape[1], len(X)) * X.var(axis=0).mean()
    result = fit_supernodes(LapGMM(3, lam=1.0, max_iter=1), group_statistics(X, groups), coarse, start)
    expected = estimate(X, np.eye(3)[start[groups]], kind="full", ridge=ridge)

    assert_allclose(result.model.means, expected.means)
    assert_allclose(result.model.covariances, expected.covariances)


@pytest.mark.filterwarnings("ignore:EM did not converge", "ignore:only 2 of the 3 clusters")
@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("lam", [0.0, 0.2, 5.0])
def test_the_objective_never_falls_and_rises_further_on_rows(kind, lam, supernodes):
    X, groups, graph, coarse, start = supernodes
    model = LapGMM(3, lam=lam, covariance_type=kind, max_iter=60, tol=1e-9)
    result = fit_supernodes(model, group_statistics(X, groups), coarse, start)
    restricted = result.history.objective
    free = model.set_params(graph=graph, init=result.resp[groups], max_iter=3).fit(X).history_.objective

    assert np.diff(restricted).min() >= -1e-10 * np.abs(restricted).max()
    assert (free > restricted[-1]).all()


def test_a_step_that_ignores_loops_moves_further(supernodes):
    """Edges within a supernode cost nothing, so they must not hold it back."""
    X, groups, _, coarse, start = supernodes
    model, statistics = LapGMM(3, lam=0.5, max_iter=3, tol=NEVER), group_statistics(X, groups)
    with_loops = fit_supernodes(model, statistics, coarse, start)
    without = fit_supernodes(model, statistics, AffinityGraph(coarse.weights), start)

    assert coarse.loops.max() > 10
    assert_array_equal(with_loops.resp, without.resp)


def test_the_natural_lam_weighs_rows(supernodes, rng):
    """The median is that over repeated rows, and the mean degree that of the fine graph."""
    _, groups, graph, coarse, _ = supernodes
    joint, counts = rng.normal(size=(40, 3)), np.bincount(groups)

    expected = median_margin(np.repeat(joint, counts, axis=0)) / (2 * graph.degrees.mean())

    assert_allclose(natural_lam(joint, coarse, counts), expected)
    assert_allclose(
        natural_lam(joint[:39], coarsen(graph, groups), np.ones(39)),
        median_margin(joint[:39]) / (2 * graph.degrees.sum() / 39),
    )


@pytest.mark.parametrize("single_rows", [True, False])
def test_the_links_of_supernodes_are_sums_over_their_rows(single_rows, supernodes, rng):
    """V'_st = Σ_{i ∈ s, j ∈ t} v_ij between supernodes; supernodes of single rows have the links of the rows."""
    X, groups, *_ = supernodes
    groups = rng.permutation(240) if single_rows else groups
    pairs = rng.permutation(240)[:80].reshape(-1, 2)
    constraints = PairwiseConstraints(pairs[:20], pairs[20:], 240, strength=0.7)
    V = make_links(constraints, X).matrix.toarray()

    links = group_links(constraints, groups, X)

    P = np.eye(groups.max() + 1)[groups]
    expected = P.T @ V @ P
    np.fill_diagonal(expected, 0)
    assert_allclose(links.matrix.toarray(), expected, atol=1e-12)
    assert_allclose(links.total[:, 0], np.abs(expected).sum(axis=1), atol=1e-12)
    assert (links.strength, links.groups) == (0.7, None)


@pytest.mark.parametrize("options", [{"strength": 0.0}, {"strength": 0.0, "hard": True}])
def test_pairs_without_strength_do_not_link_supernodes(options):
    """Hard must-links take effect on the memberships of the rows, not on supernodes."""
    assert group_links(PairwiseConstraints([(0, 1)], [], 4, **options), np.array([0, 1, 2, 2]), np.zeros(3)) is None
    assert group_links(None, np.array([0, 1]), np.zeros(2)) is None


@pytest.mark.parametrize("lam", ["natural", 100.0])
def test_small_supernodes_give_the_partition_of_the_rows(lam):
    X, y = two_moons(600, noise=0.06, random_state=0)
    graph = KNNGraph(8).build(X)
    centers = X[np.random.RandomState(0).choice(600, 80, replace=False)]
    groups = ((X[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
    start = np.array([np.bincount(y[groups == g], minlength=2).argmax() for g in range(80)])
    model = LapGMM(2, lam=lam, ridge=0.1)
    result = fit_supernodes(model, group_statistics(X, groups), coarsen(graph, groups), start)
    rows = model.set_params(graph=graph, init=start[groups]).fit(X)

    assert_allclose(result.lam, rows.lam_, rtol=0.05)
    assert clustering_accuracy(rows.labels_, result.resp.argmax(axis=1)[groups]) > 0.98


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_back_ends_agree(kind, supernodes, foreign):
    X, groups, _, coarse, start = supernodes
    model = LapGMM(3, lam="natural", covariance_type=kind, max_iter=10, tol=NEVER)
    expected = fit_supernodes(model, group_statistics(X, groups), coarse, start)
    statistics = group_statistics(foreign(X), foreign(groups))
    weights = from_scipy_like(coarse.weights, statistics.counts)
    graph = AffinityGraph(weights, loops=coarse.loops if sp.issparse(weights) else foreign(coarse.loops.copy()))
    result = fit_supernodes(model, statistics, graph, start)

    assert_allclose(to_numpy(result.resp), expected.resp, atol=1e-8)
    assert_allclose(result.history.objective, expected.history.objective)
    assert_allclose(result.lam, expected.lam)


def test_single_precision_rows_and_graph(supernodes):
    X, groups, _, coarse, start = supernodes
    model = LapGMM(3, lam=0.5)
    expected = fit_supernodes(model, group_statistics(X, groups), coarse, start)
    single = AffinityGraph(coarse.weights.astype(np.float32), loops=coarse.loops.astype(np.float32))
    result = fit_supernodes(model, group_statistics(X.astype(np.float32), groups), single, start)

    assert_allclose(result.resp, expected.resp, atol=1e-3)


def test_a_component_without_supernodes_is_an_error(supernodes):
    X, groups, _, coarse, start = supernodes
    with pytest.raises(SingularCovarianceError, match="a component has lost all its rows"):
        fit_supernodes(LapGMM(4, lam=0.5), group_statistics(X, groups), coarse, start)
