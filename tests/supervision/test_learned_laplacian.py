import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import LCGMM, LLGC, NLE, AffinityGraph, KNNGraph, LapGMM, LearnedLaplacian, SpectralClustering
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError, InputTypeError
from fiedler.graph.constraints import PairwiseConstraints
from fiedler.graph.operators import laplacian
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import learned_laplacian
from fiedler.supervision.objective import (
    METRIC_FAMILIES,
    DenseWeights,
    LaplacianObjective,
    SparseWeights,
    best_scale,
    coefficients,
    doubling_descent,
    levenberg_marquardt,
    penalized_lbfgs,
    ranking_auc,
    ranking_from_pairs,
)

MUST, CANNOT = np.array([(0, 1), (4, 5), (2, 9)]), np.array([(2, 3), (0, 7)])


def printed_laplacian(X, A):
    """[learned_laplacian, Eqs 2 to 4], entry by entry."""
    n = len(X)
    w = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        w[i, j] = np.exp(-(np.linalg.norm(A @ (X[i] - X[j])) ** 2))
    d = w.sum(axis=1)
    return np.array([[float(i == j) - w[i, j] / np.sqrt(d[i] * d[j]) for j in range(n)] for i in range(n)]), w, d


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


@pytest.fixture
def neighbors(X):
    """N_j as a list for every j, and as a matrix with one row per j."""
    nearest = [np.argsort(np.linalg.norm(X - x, axis=1))[1:4] for x in X]
    matrix = np.zeros((12, 12))
    for j, indices in enumerate(nearest):
        matrix[j, indices] = 1
    return nearest, sp.csr_array(matrix)


@pytest.fixture
def A(rng):
    return 0.7 * np.eye(3) + 0.2 * rng.normal(size=(3, 3))


def objective(X, neighbors, lam=0.1, weights=(1.0, 1.0), layout=DenseWeights, metric="full"):
    C = coefficients(len(X), MUST, CANNOT, weights, neighbors, lam)
    edges = () if layout is DenseWeights else (sp.csr_array(1 - np.eye(len(X))),)
    return LaplacianObjective(X, layout(C, *edges, X), METRIC_FAMILIES[metric])


# ---------------------------------------------------------------------------------------------------------- equations


def test_laplacian_equals_the_printed_formula(X, A):
    """Eq. 3 for the graph that the recipe builds."""
    printed, w, _ = printed_laplacian(X, A)
    (recipe,) = LearnedLaplacian(graph="full")._recipes(12)
    graph = recipe.build(X @ A.T)
    assert_allclose(graph.weights.toarray(), w, atol=1e-12)
    assert_allclose(laplacian(graph, "symmetric").toarray(), printed, atol=1e-12)


def test_label_smoothness_equals_the_sum_over_pairs(X, A, rng):
    """Eqs 6 and 7, for labels ±1 of all points: pairs in both orders, and every point with itself as a must-link."""
    L, w, d = printed_laplacian(X, A)
    f = rng.choice([-1.0, 1.0], size=12)
    smooth = 0.5 * sum(
        w[i, j] * (f[i] / np.sqrt(d[i]) - f[j] / np.sqrt(d[j])) ** 2 for i, j in itertools.product(range(12), repeat=2)
    )
    signed = sum(L[i, j] if f[i] == f[j] else -L[i, j] for i, j in itertools.product(range(12), repeat=2))
    assert_allclose([smooth, signed], f @ L @ f)


def test_objective_equals_the_printed_formula(X, neighbors, A):
    """Eq. 8."""
    L, _, _ = printed_laplacian(X, A)
    nearest, matrix = neighbors
    printed = sum(L[i, j] for i, j in MUST) - sum(L[i, j] for i, j in CANNOT)
    printed += 0.1 * sum(L[i, j] for j in range(12) for i in nearest[j])
    assert objective(X, matrix).value(A) == pytest.approx(printed)
    weighted = 2.0 * sum(L[i, j] for i, j in MUST) - 0.5 * sum(L[i, j] for i, j in CANNOT)
    assert objective(X, matrix, lam=0.0, weights=(2.0, 0.5)).value(A) == pytest.approx(weighted)


LAYOUTS = [DenseWeights, SparseWeights]


def parameters(metric, A):
    return {"full": A, "low_rank": A[:2], "diagonal": np.diag(A), "scale": A[0, :1]}[metric]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("metric", METRIC_FAMILIES)
def test_squares_of_the_residuals_add_up_to_the_objective(X, neighbors, A, layout, metric):
    """Eq. 8 plus the constant Σ_{C>0} C_ij; and the pieces, term by term."""
    target, theta = objective(X, neighbors[1], layout=layout, metric=metric), parameters(metric, A)
    at, C = target.residuals(theta), coefficients(12, MUST, CANNOT, (1.0, 1.0), neighbors[1], 0.1).toarray()

    assert at.loss == pytest.approx(target.value(theta))
    assert np.sum(at.values**2) == pytest.approx(target.value(theta) + C[C > 0].sum())
    similarity = -printed_laplacian(X, METRIC_FAMILIES[metric].matrix(theta, X))[0]
    squares = np.where(C > 0, C * (1 - similarity), -C * similarity)
    assert_allclose(at.values**2, squares[C != 0], rtol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("metric", METRIC_FAMILIES)
def test_jacobian_of_the_residuals_is_that_of_finite_differences(X, neighbors, A, layout, metric, rng):
    target, theta = objective(X, neighbors[1], layout=layout, metric=metric), parameters(metric, A)
    at, direction = target.residuals(theta), rng.normal(size=theta.shape)
    step = 1e-6

    change = target.residuals(theta + step * direction).values - target.residuals(theta - step * direction).values
    assert_allclose(at.forward(direction), change / (2 * step), rtol=1e-5, atol=1e-8)
    image = at.forward(direction)  # symmetric in the two orders of a pair, as J'u needs it
    assert np.sum(direction * at.adjoint(image)) == pytest.approx(np.sum(image**2))
    assert_allclose(2 * at.adjoint(at.values), target.value_and_gradient(theta)[1], rtol=1e-9, atol=1e-12)


def test_copies_far_from_all_rows_do_not_spoil_the_jacobian():
    """Their similarity is 1 up to rounding, which differs between (i, j) and (j, i), and a root would amplify it."""
    rng = np.random.RandomState(5)  # one of the draws for which the two differ
    X = rng.normal(size=(12, 3))
    X[0] = X[1] = 5.5 + 0.3 * rng.normal(size=3)
    target = objective(X + 200, sp.csr_array((12, 12)), lam=0.0)  # far from the origin: distances are rounded
    at, direction = target.residuals(0.7 * np.eye(3)), rng.normal(size=(3, 3))
    image = at.forward(direction)
    assert np.sum(direction * at.adjoint(image)) == pytest.approx(np.sum(image**2), rel=3e-6)


def test_gradient_equals_the_printed_sum(X, neighbors, A):
    """Eqs 9 to 12, pair by pair."""
    _, w, d = printed_laplacian(X, A)

    def of_w(i, j):
        return -2 * w[i, j] * A @ np.outer(X[i] - X[j], X[i] - X[j])

    def of_d(i):
        return sum(of_w(i, j) for j in range(12))

    def of_l(i, j):
        inner = w[i, j] / d[i] * of_d(i) + w[i, j] / d[j] * of_d(j) - 2 * of_w(i, j)
        return inner / (2 * np.sqrt(d[i] * d[j]))

    for i in (0, 3):  # Eq. 12: the sum without a matrix per pair
        scatter = X.T @ np.diag(w[i]) @ X + d[i] * np.outer(X[i], X[i])
        mixed = np.outer(X[i], X.T @ w[i])
        assert_allclose(of_d(i), -2 * A @ (scatter - mixed - mixed.T))
    nearest, matrix = neighbors
    printed = sum(of_l(i, j) for i, j in MUST) - sum(of_l(i, j) for i, j in CANNOT)
    printed = printed + 0.1 * sum(of_l(i, j) for j in range(12) for i in nearest[j])
    assert_allclose(objective(X, matrix).value_and_gradient(A)[1], printed, rtol=1e-10)


@pytest.mark.parametrize("layout", [DenseWeights, SparseWeights])
@pytest.mark.parametrize("metric", list(METRIC_FAMILIES))
def test_gradient_agrees_with_finite_differences(layout, metric, X, neighbors, rng):
    problem = objective(X, neighbors[1], layout=layout, metric=metric)
    theta = METRIC_FAMILIES[metric].start(X, 2)
    theta = 0.8 * theta + 0.1 * rng.normal(size=theta.shape)
    value, gradient = problem.value_and_gradient(theta)
    assert value == pytest.approx(problem.value(theta))
    for index in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[index] = 1e-6
        slope = (problem.value(theta + step) - problem.value(theta - step)) / 2e-6
        assert gradient[index] == pytest.approx(slope, abs=1e-7)


def test_all_pairs_agree_with_a_complete_edge_list(X, neighbors, A):
    dense, sparse = (
        objective(X, neighbors[1], layout=layout).value_and_gradient(A) for layout in (DenseWeights, SparseWeights)
    )
    assert dense[0] == pytest.approx(sparse[0])
    assert_allclose(dense[1], sparse[1], atol=1e-12)


@pytest.mark.parametrize("metric", list(METRIC_FAMILIES))
def test_metrics_embed_by_their_matrix(metric, X, rng):
    kind = METRIC_FAMILIES[metric]
    theta = kind.start(X, 2) + 0.1 * rng.normal(size=kind.start(X, 2).shape)
    assert_allclose(kind.embed(theta, X), X @ kind.matrix(theta, X).T, atol=1e-12)


# --------------------------------------------------------------------------------------------------------- minimisers


def quartic(theta):
    return float(np.sum(theta**4)), 4 * theta**3


def test_doubling_rule_never_accepts_an_increase_and_counts_failures():
    """[learned_laplacian, Fig. 1]: η doubles after a success and halves, A kept, after a failure; T steps in all."""
    result = doubling_descent(quartic, np.array([1.5, -2.0]), max_iter=30)
    values, rates = result.history.objective, result.history["rate"]
    assert (np.diff(values) <= 0).all()
    assert (len(values), result.n_iter) == (31, 30)
    assert_array_equal(result.history.iterations, np.arange(31))
    assert not result.history.maximize
    failed = rates[1:] < rates[:-1]
    assert_array_equal(rates[1:] / rates[:-1], np.where(failed, 0.5, 2.0))
    assert_array_equal(values[1:][failed], values[:-1][failed])
    assert failed.sum() == result.n_failures > 0
    assert rates[0] == 1


def test_strong_penalty_stays_at_the_start_and_none_finds_the_minimum():
    start = np.array([1.5, -2.0])
    strong, none = (penalized_lbfgs(quartic, start, max_iter=200, penalty=p, unit=1.0) for p in (1e9, 0.0))
    assert_allclose(strong.theta, start, atol=1e-5)
    assert_allclose(none.theta, 0, atol=0.05)
    assert none.history["loss"][-1] < strong.history["loss"][-1]


def test_history_of_lbfgs_is_the_penalized_objective_with_its_terms():
    start, penalty = np.array([1.5, -2.0]), 0.5
    result = penalized_lbfgs(quartic, start, max_iter=200, penalty=penalty, unit=3.0)
    loss = quartic(result.theta)[0]
    expected = penalty * 3.0 * ((result.theta - start) ** 2).sum() / (start**2).sum()
    history = result.history
    assert not history.maximize
    assert len(history.objective) == result.n_iter > 1
    assert_allclose(history.objective, history["loss"] + history["penalty"])
    assert (history["loss"][-1], history["penalty"][-1]) == pytest.approx((loss, expected))
    assert (np.diff(history.objective) <= 0).all()


def test_history_is_not_empty_if_the_start_is_the_minimum():
    result = penalized_lbfgs(quartic, np.zeros(2) + 1e-9, max_iter=10, penalty=0.0, unit=1.0)
    assert (result.n_iter, result.history.iterations.tolist()) == (0, [0])


def test_best_scale_finds_the_minimum():
    assert best_scale(lambda s: (math.log(s) - 1.3) ** 2) == pytest.approx(math.exp(1.3), rel=0.02)


# ---------------------------------------------------------------------------------------------------- the estimator


def stretched(rng, n=120):
    """Three classes that differ in two features, with four noise features of larger variance."""
    y = np.arange(n) % 3
    return np.hstack([3.0 * np.eye(3)[y][:, :2] + 0.4 * rng.normal(size=(n, 2)), 3 * rng.normal(size=(n, 4))]), y


def test_printed_algorithm_decreases_the_printed_objective(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian(optimizer="doubling", pair_weight=1.0, inject=False).fit(X, constraints=pairs)
    assert (np.diff(model.history_.objective) <= 0).all()
    assert (model.n_iter_, model.scale_, model.penalty_) == (50, 1.0, 0.0)
    median = np.median([np.linalg.norm(a - b) for a, b in itertools.combinations(X, 2)])
    first = LearnedLaplacian(optimizer="doubling", pair_weight=1.0, max_iter=1).fit(X, constraints=pairs)
    start = printed_laplacian(X, np.eye(6) / median)[0]
    nearest = np.argsort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1:21]
    printed = sum(start[i, j] for i, j in pairs.must_link) - sum(start[i, j] for i, j in pairs.cannot_link)
    printed += sum(start[i, j] for i in range(len(X)) for j in nearest[i]) / 20
    assert first.history_.objective[0] == pytest.approx(printed)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_levenberg_marquardt_returns_to_the_minimum_of_lbfgs(X, neighbors, layout, metric):
    target = objective(X, neighbors[1], layout=layout, metric=metric)
    center = parameters(metric, 0.8 * np.eye(3))
    options = {"max_iter": 500, "penalty": 0.02, "unit": 12}
    theirs = penalized_lbfgs(target.value_and_gradient, center, **options)
    start = theirs.theta + 0.01 * theirs.theta  # beside it, since there may be other minima
    ours = levenberg_marquardt(target.residuals, center, start=start, **options)

    assert ours.converged
    assert ours.history.objective[-1] == pytest.approx(theirs.history.objective[-1], abs=1e-6)
    assert_allclose(ours.theta, theirs.theta, atol=2e-3)
    assert ours.n_iter < 100


LM_OPTIONS = {"pair_weight": 1.0, "penalty": 1e-4, "max_iter": 30}


def test_levenberg_marquardt_never_raises_the_objective(rng):
    """Steps that would are undone and counted; the history has the loss and the penalty."""
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian(optimizer="levenberg_marquardt", **LM_OPTIONS).fit(X, constraints=pairs)
    history = model.history_

    assert (np.diff(history.objective) <= 0).all()
    assert history.objective[-1] < history.objective[0] - 1
    assert_allclose(history.terms["loss"] + history.terms["penalty"], history.objective)
    assert model.n_failures_ == np.sum(np.diff(history.objective) == 0)
    assert model.n_iter_ == len(history.objective) - 1 <= 30


def test_levenberg_marquardt_may_reach_the_objective_of_lbfgs(fixed_rng):
    """On these rows; there are several minima."""
    X, y = stretched(fixed_rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    ours, lbfgs = (
        LearnedLaplacian(optimizer=optimizer, **LM_OPTIONS).fit(X, constraints=pairs)
        for optimizer in ("levenberg_marquardt", "lbfgs")
    )

    assert ours.scale_ == lbfgs.scale_
    reached = lbfgs.history_.objective[-1]
    assert ours.history_.objective[-1] <= reached + 0.01 * abs(reached)


def test_levenberg_marquardt_stops_at_a_minimum(X, neighbors):
    target = objective(X, neighbors[1])
    options = {"max_iter": 200, "penalty": 0.02, "unit": 12}
    first = levenberg_marquardt(target.residuals, 0.8 * np.eye(3), **options)
    again = levenberg_marquardt(target.residuals, 0.8 * np.eye(3), start=first.theta, **options)
    assert again.converged
    assert again.n_iter < first.n_iter
    assert 0 <= again.history.objective[0] - again.history.objective[-1] < 1e-6  # of about -1
    limited = levenberg_marquardt(target.residuals, 0.8 * np.eye(3), **{**options, "max_iter": 2})
    assert (limited.converged, limited.n_iter) == (False, 2)


@pytest.mark.parametrize(
    ("metric", "optimizer"),
    [("full", "lbfgs"), ("diagonal", "lbfgs"), ("low_rank", "doubling"), ("full", "levenberg_marquardt")],
)
def test_pairs_increase_the_weight_of_informative_features(metric, optimizer, fixed_rng):
    X, y = stretched(fixed_rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.3, random_state=0)
    model = LearnedLaplacian(metric, optimizer, pair_weight=1.0, penalty=1e-3).fit(X, constraints=pairs)
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[:2].mean() > 1.5 * lengths[2:].mean()


def test_graph_is_the_kernel_of_the_transformed_rows(rng):
    X, _ = stretched(rng)
    model = LearnedLaplacian(inject=False).fit(X)
    Z = model.transform(X)
    W = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2)) - np.eye(len(X))
    assert_allclose(model.graph_.weights.toarray(), W, atol=1e-12)
    assert_allclose(Z, X @ model.metric_.T)


def test_injection_writes_the_pairs_into_the_graph(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    W = LearnedLaplacian().fit(X, constraints=pairs).graph_.weights.toarray()
    plain = LearnedLaplacian(inject=False).fit(X, constraints=pairs).graph_.weights.toarray()
    assert (W[tuple(pairs.must_link.T)] == plain.max()).all()
    assert (W[tuple(pairs.cannot_link.T)] == 0).all()
    rest = np.ones_like(W, dtype=bool)
    for i, j in np.concatenate([pairs.must_link, pairs.cannot_link]):
        rest[i, j] = rest[j, i] = False
    assert_allclose(W[rest], plain[rest])


def test_labels_are_equivalent_to_their_pairs(rng):
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 24, y, -1)
    by_labels = LearnedLaplacian(random_state=0).fit(X, some)
    by_pairs = LearnedLaplacian(random_state=0).fit(X, constraints=PairwiseConstraints.from_labels(some))
    assert_allclose(by_labels.graph_.weights.toarray(), by_pairs.graph_.weights.toarray(), atol=1e-12)
    both = LearnedLaplacian(random_state=0).fit(X, some, constraints=PairwiseConstraints([(100, 103)], [], 120))
    assert both.constraints_.n_pairs == by_labels.constraints_.n_pairs + 1


def test_more_features_than_rows_give_the_same_graph(fixed_rng):
    """On other rows the two fits may reach different minima."""
    X, y = stretched(fixed_rng, 60)
    wide = X @ np.linalg.qr(fixed_rng.normal(size=(80, 6)))[0].T
    narrow_model, wide_model = (
        LearnedLaplacian(random_state=0).fit(rows, np.where(y == 2, -1, y)) for rows in (X, wide)
    )
    assert wide_model.metric_.shape == (60, 80)
    assert_allclose(wide_model.graph_.weights.toarray(), narrow_model.graph_.weights.toarray(), atol=1e-4)


def test_pairs_select_the_penalty(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian().fit(X, constraints=pairs)
    assert list(model.evidence_) == list(learned_laplacian.PENALTIES)
    assert model.penalty_ in model.evidence_
    best = max(model.evidence_.values(), key=np.mean)
    shortfall = best - model.evidence_[model.penalty_]
    assert shortfall.mean() <= shortfall.std() / len(shortfall) ** 0.5 + 1e-12
    one_kind = LearnedLaplacian().fit(X, constraints=PairwiseConstraints([], [(0, 1)], 120))
    assert (one_kind.penalty_, one_kind.evidence_) == (learned_laplacian.DEFAULT_PENALTY, {})


def test_ranking_auc_is_the_share_of_must_links_that_are_closer():
    """On a path 0-1-2-3, row 0 is closer to 1 than to 3, and row 3 is closer to 2 than to 1."""
    graph = AffinityGraph.from_matrix(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    pairs = PairwiseConstraints([(0, 1)], [(0, 3)], 4)
    ranking = ranking_from_pairs(pairs.closure(), np.random.RandomState(0))
    assert_array_equal(ranking.rows[ranking.queries], [0, 1])
    assert_array_equal(ranking_auc(graph, ranking), [1, 1])
    contradicted = ranking_from_pairs(PairwiseConstraints([(3, 1)], [(3, 2), (1, 2)], 4), np.random.RandomState(0))
    assert ranking_auc(graph, contradicted)[-1] == 0


def test_the_better_of_two_graphs_is_selected(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian(penalty=0.1, inject=False).fit(X, constraints=pairs)
    ranking = ranking_from_pairs(pairs, np.random.RandomState(0))
    both = [LearnedLaplacian(penalty=0.1, inject=False, graph="full").fit(X, constraints=pairs).graph_]
    both.append(KNNGraph(10, "heat", bandwidth=0.5**0.5, connect="mst").build(model.transform(X)))
    means = [ranking_auc(graph, ranking).mean() for graph in both]
    assert ranking_auc(model.graph_, ranking).mean() == pytest.approx(max(means), abs=1e-6)
    assert model.graph_.n_edges == both[int(np.argmax(means))].n_edges
    assert model.link(X[:2] + 0.1, X, model.graph_).shape == (2, 120)


def test_sparse_graphs_learn_on_wider_neighborhoods(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    model = LearnedLaplacian(graph=KNNGraph(6), random_state=0).fit(X, constraints=pairs)
    complete = LearnedLaplacian(graph="full", random_state=0).fit(X, constraints=pairs)
    assert model.graph_.n_edges < 0.3 * complete.graph_.n_edges
    assert model.scale_ == pytest.approx(complete.scale_, rel=0.3)


def test_large_data_use_the_sparse_default(rng, monkeypatch):
    monkeypatch.setattr(learned_laplacian, "FULL_GRAPH_MAX_ROWS", 100)
    X, y = stretched(rng)
    model = LearnedLaplacian(random_state=0).fit(X, np.where(np.arange(120) < 20, y, -1))
    assert model.graph_.n_edges < 120 * 25


@pytest.mark.parametrize(
    "model",
    [
        SpectralClustering(3, random_state=0),
        LapGMM(3, random_state=0),
        LCGMM(3, random_state=0),
        NLE(3, n_init=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_accepts_it_as_graph(model, fixed_rng):
    y = np.arange(120) % 3
    X = 4 * np.eye(3)[y] + fixed_rng.normal(size=(120, 3))
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    fitted = model.set_params(graph=LearnedLaplacian()).fit(X, constraints=pairs)
    assert adjusted_rand_index(y, fitted.labels_) > 0.9
    assert adjusted_rand_index(y, fitted.predict(X + 0.01)) > 0.9
    assert_allclose(fitted.graph_.weights[tuple(pairs.cannot_link.T)], 0)


def test_models_leave_their_graph_parameter_unfitted(rng):
    X, y = stretched(rng)
    recipe = LearnedLaplacian("scale")
    before = dict(vars(recipe))
    SpectralClustering(3, recipe, random_state=0).fit(X, constraints=PairwiseConstraints.from_labels(y, rate=0.1))
    recipe.build(X, np.where(np.arange(120) < 30, y, -1))
    assert vars(recipe) == before


def test_failed_fit_leaves_the_learned_attributes(rng):
    X, _ = stretched(rng)
    model = LearnedLaplacian("scale").fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="optimizer='adam'"):
        model.set_params(optimizer="adam").fit(2 * X)
    assert vars(model.set_params(optimizer="lbfgs")) == before


def test_llgc_passes_labels_on(rng):
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 30, y, -1)
    model = LLGC(LearnedLaplacian("diagonal", pair_weight="balanced", penalty=1e-3)).fit(X, some)
    plain = LLGC().fit(X, some)
    assert (model.transduction_ == y).mean() > (plain.transduction_ == y).mean() + 0.05
    assert (model.predict(X[30:] + 1e-3) == y[30:]).mean() > 0.8


def test_new_points_need_a_learned_graph(rng):
    X, _ = stretched(rng)
    with pytest.raises(InputError, match="not learned by LearnedLaplacian") as caught:
        LearnedLaplacian().link(X, X, KNNGraph().build(X))
    assert caught.value.code == "not_a_learned_graph"


def test_no_pairs_and_all_rows_labeled(rng):
    X, y = stretched(rng)
    unsupervised = LearnedLaplacian().fit(X)
    assert unsupervised.constraints_.n_pairs == 0
    supervised = LearnedLaplacian().fit(X, y)
    assert adjusted_rand_index(y, SpectralClustering(3, supervised.graph_, random_state=0).fit(X).labels_) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "cubic"}, "metric='cubic'"),
        ({"optimizer": "adam"}, "optimizer='adam'"),
        ({"penalty": "some"}, "penalty='some'"),
        ({"penalty": -1.0}, "penalty"),
        ({"lam": 0.0}, "nothing to learn from"),
        ({"pair_weight": (1, 2, 3)}, "pair_weight must be"),
        ({"pair_weight": "heavy"}, "pair_weight='heavy'"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"graph": "sparse"}, "graph='sparse'"),
    ],
)
def test_invalid_parameters_raise(options, message, rng):
    with pytest.raises(InputError, match=message):
        LearnedLaplacian(**options).fit(stretched(rng)[0])


def test_invalid_input_raises(rng):
    with pytest.raises(ValueError, match="median distance between rows is 0"):
        LearnedLaplacian().fit(np.ones((20, 3)))
    with pytest.raises(ValueError, match="does not accept sparse rows"):
        LearnedLaplacian().fit(sp.csr_array(np.eye(20)))
    with pytest.raises(ValueError, match="does not accept sparse rows"):
        LearnedLaplacian().fit(rng.normal(size=(20, 3))).transform(sp.csr_array(np.eye(20)[:, :3]))
    with pytest.raises(InputTypeError, match="must be 'full', a KNNGraph with Euclidean"):
        LearnedLaplacian(graph=AffinityGraph.from_matrix(np.ones((20, 20)))).fit(rng.normal(size=(20, 2)))
    with pytest.raises(ValueError, match="9 rows"):
        LearnedLaplacian().fit(rng.normal(size=(20, 2)), constraints=PairwiseConstraints([(0, 1)], [], 9))


def test_metric_is_saved_with_the_graph(rng, tmp_path):
    X, _ = stretched(rng)
    model = LearnedLaplacian().fit(X)
    model.graph_.save(tmp_path / "graph.safetensors")
    loaded = AffinityGraph.load(tmp_path / "graph.safetensors")
    assert_allclose(loaded.constants.metric, model.metric_)
    assert_allclose(
        LearnedLaplacian().link(X[:3] + 0.1, X, loaded), LearnedLaplacian().link(X[:3] + 0.1, X, model.graph_)
    )


@pytest.mark.parametrize("graph", ["full", KNNGraph(8)], ids=["full", "sparse"])
@pytest.mark.parametrize("optimizer", ["lbfgs", "doubling", "levenberg_marquardt"])
def test_array_libraries_agree(foreign, optimizer, graph, rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    options = {"optimizer": optimizer, "graph": graph, "pair_weight": 1.0, "max_iter": 10, "random_state": 0}
    model, foreign_model = (LearnedLaplacian(**options).fit(rows, constraints=pairs) for rows in (X, foreign(X)))
    assert_allclose(to_numpy(foreign_model.metric_), model.metric_, rtol=1e-4, atol=1e-6)
    assert_allclose(foreign_model.history_.objective, model.history_.objective, rtol=1e-6)


def test_float32_is_kept(rng):
    X, _ = stretched(rng)
    model = LearnedLaplacian().fit(X.astype(np.float32))
    assert model.metric_.dtype == model.graph_.weights.dtype == np.float32
    assert_allclose(model.scale_, LearnedLaplacian().fit(X).scale_, rtol=0.05)


def test_new_points_are_linked_as_the_graph_was_built(rng):
    """The number of cannot-links that were removed from the graph does not matter."""
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 100, y, -1)
    for recipe in ("full", KNNGraph(8)):
        model = LearnedLaplacian("scale", graph=recipe).fit(X, some)
        weights = model.link(X[:5] + 0.1, X, model.graph_)
        counts = np.count_nonzero(weights, axis=1) if recipe == "full" else np.diff(weights.indptr)
        assert (counts == (120 if recipe == "full" else 8)).all()


def test_clusterers_pass_on_partial_labels_only(rng):
    """True labels that a grid search passes to every estimator must not be learned from."""
    X, y = stretched(rng)
    for kind in (SpectralClustering, LapGMM):
        model = kind(3, LearnedLaplacian("scale"), random_state=0)
        full, none = model.fit(X, y).graph_, kind(3, LearnedLaplacian("scale"), random_state=0).fit(X).graph_
        assert_allclose(full.weights.toarray(), none.weights.toarray())
        some = model.fit(X, np.where(np.arange(120) < 60, y, -1)).graph_
        assert abs(some.weights - none.weights).max() > 0.1


def test_number_of_pairs_from_labels_is_limited(rng, monkeypatch):
    monkeypatch.setattr(learned_laplacian, "MAX_PAIRS", 50)
    X, y = stretched(rng)
    assert LearnedLaplacian("scale").fit(X, y).constraints_.n_pairs == 100
    pairs = PairwiseConstraints.from_labels(y, max_pairs=60, random_state=0)
    assert LearnedLaplacian("scale").fit(X, constraints=pairs).constraints_.n_pairs == pairs.n_pairs


def test_infinite_penalty_learns_the_scale_only(rng):
    X, y = stretched(rng)
    model = LearnedLaplacian(penalty=math.inf).fit(X)
    assert model.penalty_ == math.inf
    assert_allclose(model.metric_, LearnedLaplacian("scale").fit(X).metric_)
    column = LearnedLaplacian("scale").fit(X, np.where(y == 0, 0, -1)[:, None])
    assert len(column.constraints_.must_link) > 0
