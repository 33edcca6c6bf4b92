"""Every stage of a fit is reported to callbacks, which do not change the result."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from fiedler import NLE, LapGMM, ManifoldClustering
from fiedler._registry import check_instances
from fiedler.core.progress import stage, track_progress

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")

EVERY = list(check_instances())


class Recorder:
    """Records the names of the tasks that ended."""

    def __init__(self):
        self.tasks, self.open = [], False

    def setup(self, estimator, context):
        self.open = True

    def on_fit_task_begin(self, estimator, context):
        assert self.open

    def on_fit_task_end(self, estimator, context):
        self.tasks.append(context.task_name)

    def teardown(self, estimator, context):
        self.open = False


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = np.abs(np.concatenate([rng.normal(size=(40, 4)) + 4 * shift for shift in range(3)]))
    return X, np.repeat([0, 1, 2], 40)


@pytest.mark.parametrize("estimator", [row for row in EVERY if hasattr(row, "set_callbacks")], ids=str)
def test_callbacks_do_not_change_a_fit(estimator, rows):
    recorder = Recorder()
    model = clone(estimator).set_params(**({"random_state": 0} if "random_state" in estimator.get_params() else {}))
    expected, fitted = clone(model).fit(*rows), clone(model).set_callbacks(recorder).fit(*rows)

    assert recorder.tasks[-1] == "fit"
    assert recorder.tasks.count("fit") == 1
    assert not recorder.open
    for name in ("labels_", "memberships_", "embedding_", "metric_", "transduction_"):
        if hasattr(expected, name):
            assert_array_equal(getattr(fitted, name), getattr(expected, name))


def test_em_reports_every_iteration_and_nle_every_start(rows):
    em, nle = Recorder(), Recorder()
    mixture = LapGMM(3, random_state=0, lam=1.0).set_callbacks(em).fit(rows[0])
    NLE(3, n_init=4, random_state=0).set_callbacks(nle).fit(rows[0])

    assert em.tasks.count("step") >= mixture.n_iter_
    assert "EM" in em.tasks
    assert nle.tasks[-6:] == ["step"] * 4 + ["starts", "fit"]


def test_steps_of_nested_models_are_reported(rows):
    recorder = Recorder()
    ManifoldClustering("auto", max_clusters=4, random_state=0).set_callbacks(recorder).fit(rows[0])

    assert {"counting clusters", "searching communities", "EM"} <= set(recorder.tasks)


def test_a_failed_fit_tears_its_callbacks_down(rows):
    recorder = Recorder()

    with pytest.raises(ValueError, match="more than the number of rows"):
        LapGMM(500).set_callbacks(recorder).fit(rows[0])
    assert not recorder.open
    with stage("after", 1) as tick:
        tick()
    assert "after" not in recorder.tasks


def test_the_progress_bar_of_scikit_learn_works(rows, capsys):
    pytest.importorskip("rich")

    LapGMM(3, random_state=0).set_callbacks(callback.ProgressBar()).fit(rows[0])

    assert "LapGMM" in capsys.readouterr().out


def test_without_callbacks_items_are_unchanged():
    assert list(track_progress(iter("abc"), "letters")) == ["a", "b", "c"]
