"""Callbacks hear of every stage of a fit, and nothing changes because they listen."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import registry
from fiedler import NLE, LapGMM, ManifoldClustering
from fiedler.core.progress import stage, track_progress

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")

EVERY = [
    *registry.ESTIMATORS,
    *registry.MIXTURES,
    *registry.SUPERVISED,
    *registry.TRANSDUCTIVE,
    *registry.FLAGSHIP,
    *registry.CUTS,
]


class Ear:
    """Writes down what it is told."""

    def __init__(self):
        self.heard, self.open = [], False

    def setup(self, estimator, context):
        self.open = True

    def on_fit_task_begin(self, estimator, context):
        assert self.open

    def on_fit_task_end(self, estimator, context):
        self.heard.append(context.task_name)

    def teardown(self, estimator, context):
        self.open = False


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    return np.abs(np.concatenate([rng.normal(size=(40, 4)) + 4 * place for place in range(3)])), np.repeat(
        [0, 1, 2], 40
    )


@pytest.mark.parametrize("estimator", [one for one in EVERY if hasattr(one, "set_callbacks")], ids=str)
def test_a_fit_with_a_listener_is_the_same_fit(estimator, rows):
    ear = Ear()
    model = clone(estimator).set_params(**({"random_state": 0} if "random_state" in estimator.get_params() else {}))
    plain, heard = clone(model).fit(*rows), clone(model).set_callbacks(ear).fit(*rows)

    assert ear.heard[-1] == "fit"
    assert ear.heard.count("fit") == 1
    assert not ear.open
    for name in ("labels_", "memberships_", "embedding_", "metric_", "transduction_"):
        if hasattr(plain, name):
            assert_array_equal(getattr(heard, name), getattr(plain, name))


def test_em_tells_every_iteration_and_nle_every_start(rows):
    ears = Ear(), Ear()
    mixture = LapGMM(3, random_state=0, lam=1.0).set_callbacks(ears[0]).fit(rows[0])
    NLE(3, n_init=4, random_state=0).set_callbacks(ears[1]).fit(rows[0])

    assert ears[0].heard.count("step") >= mixture.n_iter_
    assert "EM" in ears[0].heard
    assert ears[1].heard[-6:] == ["step"] * 4 + ["starts", "fit"]


def test_the_steps_of_models_inside_are_told_as_its_own(rows):
    ear = Ear()
    ManifoldClustering("auto", max_clusters=4, random_state=0).set_callbacks(ear).fit(rows[0])

    assert {"parts", "graphs", "EM"} <= set(ear.heard)


def test_a_fit_that_fails_lets_its_listeners_go(rows):
    ear = Ear()

    with pytest.raises(ValueError, match="more than the data holds"):
        LapGMM(500).set_callbacks(ear).fit(rows[0])
    assert not ear.open
    with stage("after", 1) as tick:
        tick()
    assert "after" not in ear.heard


def test_the_progress_bar_of_scikit_learn_takes_them(rows, capsys):
    pytest.importorskip("rich")

    LapGMM(3, random_state=0).set_callbacks(callback.ProgressBar()).fit(rows[0])

    assert "LapGMM" in capsys.readouterr().out


def test_without_a_listener_a_loop_is_a_loop():
    assert list(track_progress(iter("abc"), "letters")) == ["a", "b", "c"]
