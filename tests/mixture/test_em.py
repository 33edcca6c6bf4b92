"""The EM loop: hooks are pure, products are computed once, histories are records."""

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import LCGMM, GaussianMixture, KNNGraph, LapGMM, PairwiseConstraints
from fiedler._records import FitHistory
from fiedler.datasets import two_moons
from fiedler.mixture.em import MixtureProblem, make_links, run_em

MODELS = {
    "gaussian": GaussianMixture(2),
    "variational": LapGMM(2, lam=2.0, n_smooth=2),
    "variational without the graph": LapGMM(2, lam=0.0),
    "printed": LapGMM(2, lam=1.0, solver="printed"),
    "anchored": LapGMM(2, lam=1.0, solver="anchored"),
    "consistent": LCGMM(2, lam=0.1),
    "consistent, clipped": LCGMM(2, lam=3.0),
}

NEVER = -1.0  # a tolerance that no change is below


@pytest.fixture
def moons():
    return two_moons(120, noise=0.15, random_state=0)


def make_problem(X, y, *, with_pairs):
    pairs = [(0, 5), (3, 9), (20, 40)]
    must = [pair for pair in pairs if y[pair[0]] == y[pair[1]]]
    cannot = [pair for pair in pairs if y[pair[0]] != y[pair[1]]]
    links = make_links(PairwiseConstraints(must, cannot, n_samples=len(X)), X) if with_pairs else None
    return MixtureProblem(X, kind="full", ridge=0.01, graph=KNNGraph(5).build(X), links=links)


@pytest.mark.parametrize("with_pairs", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_hooks_are_not_changed_by_a_run(name, with_pairs, moons):
    X, y = moons
    hooks = MODELS[name]._hooks(make_problem(X, y, with_pairs=with_pairs))
    before = {field.name: getattr(hooks, field.name) for field in fields(hooks)}
    start = np.eye(2)[np.arange(len(X)) % 2] * 0.6 + 0.2

    first, second = (run_em(hooks.start(start), hooks, max_iter=12, tol=1e-9) for _ in range(2))

    assert all(getattr(hooks, field) is value for field, value in before.items())
    assert vars(hooks).keys() == before.keys()
    assert_array_equal(first.resp, second.resp)
    assert_array_equal(first.history.objective, second.history.objective)


@pytest.mark.parametrize("name", list(MODELS))
def test_hooks_and_states_are_frozen(name, moons):
    X, y = moons
    hooks = MODELS[name]._hooks(make_problem(X, y, with_pairs=False))

    for record in (hooks, hooks.problem, hooks.start(np.eye(2)[y])):
        with pytest.raises(FrozenInstanceError):
            setattr(record, fields(record)[0].name, None)


@pytest.mark.parametrize("with_pairs", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_run_can_be_continued_from_its_state(name, with_pairs, moons):
    X, y = moons
    hooks = MODELS[name]._hooks(make_problem(X, y, with_pairs=with_pairs))
    state = hooks.start(np.eye(2)[np.arange(len(X)) % 2] * 0.6 + 0.2)

    whole = run_em(state, hooks, max_iter=10, tol=NEVER)
    half = run_em(state, hooks, max_iter=5, tol=NEVER)
    rest = run_em(half.state, hooks, max_iter=5, tol=NEVER)

    assert_array_equal(rest.resp, whole.resp)
    assert_array_equal((half.history + rest.history).objective, whole.history.objective)


@pytest.mark.parametrize("n_smooth", [1, 3])
def test_the_product_with_the_operator_is_computed_once_per_step(n_smooth, moons):
    X, y = moons
    hooks = LapGMM(2, lam=2.0, n_smooth=n_smooth)._hooks(make_problem(X, y, with_pairs=False))
    n_products = 0

    def apply(F):
        nonlocal n_products
        n_products += 1
        return hooks.smoother.apply(F)

    counted = replace(hooks, smoother=hooks.smoother._replace(apply=apply))
    run_em(counted.start(np.eye(2)[y]), counted, max_iter=7, tol=NEVER)

    assert n_products == 1 + 7 * n_smooth


@pytest.mark.parametrize("model", [GaussianMixture(2), LapGMM(2), LapGMM(2, lam=1.0), LCGMM(2)])
def test_the_history_is_a_record_of_every_iteration(model, moons):
    model = model.set_params(random_state=0).fit(moons[0])
    history = model.history_

    assert isinstance(history, FitHistory)
    assert history.maximize
    assert list(history) == ["objective", "likelihood", "penalty", "change"]
    assert_array_equal(history.iterations, np.arange(1, model.n_iter_ + 1))
    assert_allclose(history.objective, history["likelihood"] - history["penalty"])
    assert (model.objective_, model.likelihood_, model.penalty_) == tuple(
        history[name][-1] for name in ("objective", "likelihood", "penalty")
    )
