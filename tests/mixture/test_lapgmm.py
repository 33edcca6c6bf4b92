from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

from fiedler import GaussianMixture, KNNGraph, LapGMM
from fiedler.core.arrays import to_numpy
from fiedler.datasets import load, two_moons
from fiedler.graph import resolvent
from fiedler.metrics import clustering_accuracy
from fiedler.mixture.covariance import estimate, log_joint
from fiedler.mixture.em import MixtureProblem
from fiedler.mixture.lapgmm import GAMMAS, MEMBERSHIP_SOLVERS, smoothing_step
from fiedler.mixture.operators import OPERATORS, entropic_maximizer

DATA = {
    "moons": lambda: two_moons(150, noise=0.1, random_state=0)[0],
    "iris": lambda: load("iris").X,
    "wine": lambda: load("wine", normalize="standard").X,
    "digits": lambda: load("digits", classes=3, normalize="unit").X[:200],
    "duplicates": lambda: np.repeat(np.random.RandomState(0).normal(size=(40, 2)), 3, axis=0),
}


def objectives(model):
    return model.history_.objective


@pytest.mark.parametrize("solver", list(MEMBERSHIP_SOLVERS))
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_without_the_graph_term_it_is_the_plain_mixture(solver, kind, backend, monkeypatch):
    X = backend(DATA["iris"]())
    options = {"covariance_type": kind, "init": np.arange(150) // 50, "tol": 1e-300, "max_iter": 60}
    monkeypatch.setattr("fiedler.mixture.lapgmm.GAMMAS", (0.0,))

    plain = GaussianMixture(3, **options).fit(X)
    lap = LapGMM(3, lam=0, solver=solver, gamma=0.0, **options).fit(X)

    assert_allclose(to_numpy(lap.memberships_), to_numpy(plain.memberships_), atol=1e-5)


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("name", list(DATA))
@pytest.mark.parametrize("solver", ["printed", "anchored"])
def test_the_objective_of_the_papers_solvers_never_falls(name, solver):
    model = LapGMM(3, lam=1.0, solver=solver, init="random", max_iter=40, random_state=1).fit(DATA[name]())

    assert np.diff(objectives(model)).min() >= 0


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("name", list(DATA))
@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_never_falls(name, operator, dtype):
    X = DATA[name]().astype(dtype)
    model = LapGMM(3, lam=3.0, operator=operator, init="random", max_iter=60, tol=1e-12, random_state=1)
    model.fit(X)

    size = np.abs(objectives(model)).max()
    assert np.diff(objectives(model)).min() >= -(2e-5 if dtype == np.float32 else 1e-10) * size


def small_problem(rng, operator="laplacian"):
    X = rng.normal(size=(12, 2))
    graph = KNNGraph(6 if operator == "hessian" else 3).build(X)  # a quadratic function has six coefficients
    joint = log_joint(X, estimate(X, rng.dirichlet(np.ones(3), size=12), kind="full", ridge=0.1))
    return joint, OPERATORS[operator](graph, X), graph


def objective(Q, joint, smoother, lam):
    return np.sum(Q * (joint - np.log(Q))) - lam * np.sum(Q * smoother.apply(Q))


def converge(joint, smoother, lam, steps=6000):
    Q = np.full(joint.shape, 1 / 3)
    for _ in range(steps):
        last, Q = Q, smoothing_step(joint, Q, lam * smoother.apply(Q), lam * smoother.bound)
        if np.abs(Q - last).max() < 1e-14:
            break
    return Q


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_entropic_maximiser_is_stationary(dtype, backend, rng):
    """a - b q - log q is constant along each row, for scores and quadratic terms of any size."""
    a = rng.normal(size=(500, 4)) * np.exp(rng.uniform(-3, 4, size=(500, 1)))
    b = np.exp(rng.uniform(-6, 20, size=(500, 1)))
    b[:20] = 0

    q = to_numpy(entropic_maximizer(backend(a.astype(dtype)), backend(b.astype(dtype))))

    assert_allclose(q.sum(axis=1), 1, rtol=1e-5)
    assert q.dtype == dtype
    assert_allclose(q[:20], np.exp(a[:20]) / np.exp(a[:20]).sum(axis=1, keepdims=True), atol=1e-6)
    if dtype == np.float64:
        gradient = np.where(q > 1e-200, a - b * q - np.log(np.maximum(q, 1e-300)), np.nan)
        assert_allclose(np.nanmax(gradient, axis=1), np.nanmin(gradient, axis=1), atol=1e-5)


@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("lam", [0.1, 1.0, 3.0])
def test_the_q_step_satisfies_its_optimality_conditions(operator, lam, rng):
    """For the concave problem on simplices: log p - log q - 1 - 2λAQ is constant along each row."""
    joint, smoother, _ = small_problem(rng, operator)
    Q = converge(joint, smoother, lam)

    gradient = joint - np.log(Q) - 1 - 2 * lam * smoother.apply(Q)

    assert_allclose(gradient - gradient.mean(axis=1, keepdims=True), 0, atol=1e-5)


def test_the_q_step_matches_a_general_optimiser(rng):
    joint, smoother, _ = small_problem(rng)

    def negative(logits):
        Q = np.exp(logits.reshape(12, 3))
        return -objective(Q / Q.sum(axis=1, keepdims=True), joint, smoother, 2.0)

    best = scipy.optimize.minimize(negative, np.zeros(36), method="BFGS", options={"gtol": 1e-8})

    assert_allclose(objective(converge(joint, smoother, 2.0), joint, smoother, 2.0), -best.fun, rtol=1e-8)


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_every_smoothing_step_rises_and_its_bound_dominates(operator, rng):
    for _ in range(20):
        joint, smoother, _ = small_problem(rng, operator)
        A = smoother.apply(np.eye(12))
        assert np.linalg.eigvalsh(np.diag(np.broadcast_to(smoother.bound, (12, 1))[:, 0]) - A).min() > -1e-9
        lam, Q = rng.uniform(0.1, 20), rng.dirichlet(np.ones(3), size=12)
        after = smoothing_step(joint, Q, lam * smoother.apply(Q), lam * smoother.bound)
        assert objective(after, joint, smoother, lam) >= objective(Q, joint, smoother, lam) - 1e-9


def first_iteration(model, X, graph):
    """The hooks, and the joint log-densities of two halves of the rows."""
    hooks = model._hooks(MixtureProblem(X, kind="full", ridge=0.1, graph=graph))
    fitted, _ = hooks.maximize(hooks.start(np.eye(2)[(X[:, 0] > 0).astype(int)]))
    return hooks, hooks.expect(fitted)


def test_printed_with_one_step_is_equation_12(rng):
    X = rng.normal(size=(40, 2))
    graph = KNNGraph(4).build(X)
    model = LapGMM(2, graph=graph, solver="printed", lam=0.5, gamma=0.9, n_smooth=1)
    hooks, joint = first_iteration(model, X, graph)
    P, S = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), graph.weights.toarray()

    printed = 0.1 * P + 0.9 * np.array([sum(S[i, j] * P[j] for j in range(40)) / S[i].sum() for i in range(40)])

    assert_allclose(hooks.refine(joint, hooks.start(P)).resp, printed)


def test_printed_shrinks_its_step_when_the_objective_falls(rng):
    X = rng.normal(size=(60, 2))
    graph = KNNGraph(4).build(X)
    hooks, joint = first_iteration(LapGMM(2, solver="printed", lam=0.5), X, graph)
    unreachable = replace(hooks.start(np.exp(joint)), likelihood=1e9)

    state = hooks.refine(joint, unreachable)

    assert state.resp is unreachable.resp
    assert state.gamma < 1e-3


def test_in_place_smooths_what_has_been_smoothed_when_the_objective_falls(rng):
    """Lines 6 to 10 of Table 1, literally: P is overwritten, and "go to 6" begins with what it then is."""
    X = rng.normal(size=(60, 2))
    graph = KNNGraph(4).build(X)
    hooks, joint = first_iteration(LapGMM(2, graph, solver="in_place", lam=5.0), X, graph)
    P, walk, gamma = (
        np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True),
        graph.weights / graph.degrees[:, None],
        0.9,
    )
    attempts, objectives = [], []
    for _ in range(4):
        P = (1 - gamma) * P + gamma * (walk @ P)
        attempts.append(P)
        objectives.append(np.subtract(*hooks.refitted(P)))
        gamma *= 0.9
    assert (np.diff(objectives) > 0).all()  # or another attempt would be accepted
    last = replace(hooks.start(np.exp(joint)), likelihood=(objectives[2] + objectives[1]) / 2)

    state = hooks.refine(joint, last)

    assert_allclose(state.resp, attempts[2])
    assert_allclose(state.gamma, 0.9**3)


def test_the_evidence_bound_lies_between_equation_6_and_the_likelihood(rng):
    """J(P, Θ) is Eq. 6 at the posterior P; J(Q, Θ) is Eq. 6 with the penalty at Q, minus KL(Q ‖ P)."""
    for lam in (0.1, 1.0, 10.0):
        joint, smoother, graph = small_problem(rng)
        L, likelihood = graph.laplacian().toarray(), np.log(np.exp(joint).sum(axis=1)).sum()
        P, Q = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), rng.dirichlet(np.ones(3), size=12)
        equation_6 = likelihood - lam * np.trace(P.T @ L @ P)
        divergence = np.sum(Q * np.log(Q / P))

        assert_allclose(objective(P, joint, smoother, lam), equation_6)
        assert_allclose(
            objective(Q, joint, smoother, lam), likelihood - lam * np.trace(Q.T @ L @ Q) - divergence, rtol=1e-10
        )
        best = objective(converge(joint, smoother, lam), joint, smoother, lam)
        assert equation_6 < best - 1e-3  # strictly: the two objectives differ
        assert best < likelihood


def test_a_fitted_bound_is_above_equation_6_of_its_components():
    X, _ = two_moons(100, noise=0.1, random_state=0)
    model = LapGMM(2, KNNGraph(8), lam=1.0, init="kmeans", tol=1e-9, max_iter=2000, random_state=0).fit(X)
    joint = log_joint(X, model._model)
    P, L = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), model.graph_.laplacian()

    equation_6 = np.log(np.exp(joint).sum(axis=1)).sum() - np.sum(P * (L @ P))

    assert model.objective_ > equation_6 + 0.1


def test_the_printed_objective_has_the_penalty_of_the_smoothed_memberships():
    X, _ = two_moons(100, noise=0.1, random_state=0)
    model = LapGMM(2, KNNGraph(8), lam=1.0, solver="printed", init="kmeans", random_state=0).fit(X)
    F, L = model.memberships_, model.graph_.laplacian()

    assert_allclose(model.penalty_, np.sum(F * (L @ F)))
    assert_allclose(model.likelihood_, np.log(np.exp(log_joint(X, model._model)).sum(axis=1)).sum())


@pytest.mark.parametrize("solver", ["variational", "printed", "anchored"])
def test_each_solver_stops_by_its_own_test(solver):
    """Memberships of 'variational', the objective per sample of the others, change by at most tol."""
    (X, _), tol = two_moons(100, noise=0.1, random_state=0), 3e-3
    model = LapGMM(2, KNNGraph(8), lam=1.0, solver=solver, init="kmeans", tol=tol, random_state=0).fit(X)
    per_sample = np.abs(np.diff(model.history_.objective)) / 100

    changes = model.history_["change"][1:] if solver == "variational" else per_sample
    assert (changes[:-1] > tol).all()
    assert changes[-1] <= tol


def test_anchored_takes_the_best_of_the_dense_resolvents(rng):
    X = rng.normal(size=(40, 2))
    graph = KNNGraph(4).build(X)
    hooks, joint = first_iteration(LapGMM(2, solver="anchored", lam=0.5), X, graph)
    P = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    walk = graph.weights.toarray() / graph.degrees[:, None]
    dense = [(1 - g) * np.linalg.solve(np.eye(40) - g * walk, P) for g in GAMMAS]

    assert GAMMAS[0] == 0
    best = max(dense, key=lambda F: np.subtract(*hooks.refitted(F)))
    assert_allclose(hooks.refine(joint, hooks.start(P)).resp, best, atol=1e-4)
    assert_allclose(dense[4], resolvent(P, graph, GAMMAS[4]), atol=1e-6)


def test_the_graph_separates_what_densities_cannot():
    X, y = two_moons(600, noise=0.06, random_state=0)
    start = GaussianMixture(2, random_state=0).fit(X)
    model = LapGMM(2, lam=100.0, init="spectral", random_state=0).fit(X)

    assert clustering_accuracy(y, start.labels_) < 0.95
    assert clustering_accuracy(y, model.labels_) > 0.99


def test_neighbours_improve_the_prediction_of_new_points():
    X, _ = two_moons(600, noise=0.06, random_state=0)
    X_new, y_new = two_moons(300, noise=0.06, random_state=1)
    model = LapGMM(2, lam=100.0, init="spectral", random_state=0).fit(X)

    coupled = model.predict_proba(X_new, use_graph=True)

    assert_allclose(coupled.sum(axis=1), 1)
    assert clustering_accuracy(y_new, coupled.argmax(axis=1)) > 0.99
    assert clustering_accuracy(y_new, model.predict(X_new)) < clustering_accuracy(y_new, coupled.argmax(axis=1))


@pytest.mark.parametrize("make", [GaussianMixture, LapGMM])
def test_wrong_labels_do_not_make_the_objective_fall(make, rng):
    X, _ = two_moons(200, noise=0.2, random_state=0)
    partial = np.where(rng.uniform(size=200) < 0.3, rng.randint(2, size=200), -1)

    assert np.diff(objectives(make(2, tol=1e-9, random_state=0).fit(X, partial))).min() > -1e-8


def test_rows_of_weight_zero_follow_their_neighbours(rng):
    X, y = two_moons(300, noise=0.05, random_state=0)
    weight = (rng.uniform(size=300) < 0.7).astype(float)
    model = LapGMM(2, KNNGraph(15), lam=100.0, init="spectral", random_state=0).fit(X, sample_weight=weight)

    assert clustering_accuracy(y, model.labels_) > 0.98


def test_the_printed_rule_uses_known_rows():
    X, y = two_moons(400, noise=0.1, random_state=0)
    partial = np.where(np.arange(400) % 2, y, -1)

    assert clustering_accuracy(y, LapGMM(2, solver="printed", random_state=0).fit(X, partial).labels_) > 0.98


def test_parameters_set_after_the_fit_do_not_change_predictions():
    X, _ = two_moons(200, noise=0.1, random_state=0)
    model = LapGMM(2, KNNGraph(8), lam=5.0, random_state=0).fit(X)
    expected = model.predict_proba(X + 0.05, use_graph=True)
    model.set_params(lam=0.0, graph__n_neighbors=3)

    assert_allclose(model.predict_proba(X + 0.05, use_graph=True), expected)


def test_constant_memberships_have_no_penalty_under_any_operator(rng):
    X = rng.normal(size=(30, 2))
    for make in OPERATORS.values():
        assert_allclose(make(KNNGraph(6).build(X), X).apply(np.ones((30, 2))), 0, atol=1e-10)


def test_partial_labels_and_weights_keep_the_objective_rising(rng):
    X, y = two_moons(200, noise=0.1, random_state=0)
    partial = np.where(rng.uniform(size=200) < 0.1, y, -1)
    model = LapGMM(2, lam=5.0, init="random", tol=1e-9, random_state=0)
    model.fit(X, partial, sample_weight=rng.uniform(0.1, 3, size=200))

    assert np.diff(objectives(model)).min() > -1e-8
    assert (model.labels_[partial >= 0] == partial[partial >= 0]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": -1}, "lam must be a non-negative number or 'auto' or 'natural'; got -1"),
        (
            {"solver": "exact"},
            r"solver='exact' is not known; choose one of \['variational', 'printed', 'in_place', 'anchored'\]",
        ),
        (
            {"operator": "third"},
            r"operator='third' is not known; choose one of \['laplacian', 'iterated', 'heat', 'hessian'\]",
        ),
        ({"operator": "heat", "solver": "printed"}, "operator='heat' needs solver='variational'; got solver='printed'"),
        ({"gamma": 2, "solver": "printed"}, r"gamma must be in \[0, 1\]; got 2"),
    ],
)
def test_invalid_options_raise_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        LapGMM(2, **options).fit(DATA["iris"]())
