import signal

import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from fiedler import ManifoldClustering
from fiedler.core.fitting import listen
from fiedler.manifold import candidates

STAGES = ["joining components", "counting clusters", "searching communities", "fitting mixtures", "EM"]


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]


@pytest.fixture(autouse=True)
def default_handler():
    """A process in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Stages:
    """Collects the events of a fit and sends an interrupt in place of Ctrl-C at one of them."""

    def __init__(self, interrupt=None):
        self.events, self.interrupt = [], interrupt

    def begin(self, stage):
        self._receive("begin", stage)

    def advance(self, stage):
        self._receive("advance", stage)

    def end(self, stage):
        self._receive("end", stage)

    def _receive(self, what, stage):
        self.events.append((what, stage.name))
        if self.events[-1] == self.interrupt:
            self.interrupt = None
            signal.raise_signal(signal.SIGINT)


def fit(model, X, interrupt=None):
    stages = Stages(interrupt)
    with listen(stages):
        if interrupt is None:
            model.fit(X)
        else:
            with pytest.raises(KeyboardInterrupt):
                model.fit(X)
    return set(stages.events)


@pytest.mark.slow
@pytest.mark.parametrize(("n_jobs", "what"), [(None, "begin"), (2, "advance")])
def test_an_interrupt_at_any_stage_leaves_the_model_as_it_was(blobs, n_jobs, what, monkeypatch):
    monkeypatch.setattr(candidates, "MAX_SEARCHES", 1)
    model = ManifoldClustering(max_clusters=3, random_state=0, n_jobs=n_jobs)
    names = {name for event, name in fit(model, blobs) if event == what}
    fitted = ManifoldClustering(2, random_state=0).fit(blobs[::2]).set_params(**model.get_params())
    attributes, predicted = dict(vars(fitted)), fitted.predict(blobs)
    assert names >= {*STAGES}

    for name in sorted(names):
        unfitted = ManifoldClustering(**model.get_params())
        fit(unfitted, blobs, (what, name))
        assert vars(unfitted) == model.get_params()

        fit(fitted, blobs, (what, name))
        assert vars(fitted).keys() == attributes.keys()
        assert all(vars(fitted)[key] is value for key, value in attributes.items())

    assert_array_equal(fitted.predict(blobs), predicted)
    with pytest.raises(NotFittedError):
        unfitted.predict(blobs)
    assert_array_equal(fitted.fit(blobs).labels_, model.labels_)
