"""Every stage of a fit is reported: to callbacks, as lines of text, to any listener; the result is the same."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from fiedler import NLE, LapGMM, ManifoldClustering
from fiedler.core import fitting as progress
from fiedler.core.fitting import (
    format_seconds,
    listen,
    print_line,
    report_progress,
    stage,
    track_progress,
)
from registry_instances import check_instances

EVERY = list(check_instances())


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = np.abs(np.concatenate([rng.normal(size=(40, 4)) + 4 * shift for shift in range(3)]))
    return X, np.repeat([0, 1, 2], 40)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when told to: ``clock(2)`` is two seconds later."""
    now = [100.0]
    monkeypatch.setattr(progress, "clock", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "80")

    def wait(seconds):
        now[0] += seconds

    return wait


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal, and what it shows."""

    def isatty(self):
        return True

    def screen(self):
        return [line.split("\r")[-1].rstrip() for line in self.getvalue().split("\n") if line]


class Verbose:
    verbose = True


class Events:
    """A listener that records what it receives."""

    def __init__(self):
        self.received = []

    def begin(self, stage):
        self.received.append(("begin", stage.name, stage.parent and stage.parent.name))

    def advance(self, stage):
        self.received.append(("advance", stage.name, stage.done))

    def end(self, stage):
        self.received.append(("end", stage.name, stage.done))


# --------------------------------------------------------------------------------------------------------- listeners


def test_listeners_receive_nested_stages_and_their_steps():
    events = Events()
    with listen(events), stage("outer", 2) as tick:
        for _ in track_progress("ab", "inner"):
            pass
        tick(2)

    assert events.received == [
        ("begin", "outer", None),
        ("begin", "inner", "outer"),
        ("advance", "inner", 1),
        ("advance", "inner", 2),
        ("end", "inner", 2),
        ("advance", "outer", 2),
        ("end", "outer", 2),
    ]


def test_steps_may_be_reported_by_threads():
    events = Events()
    with listen(events), stage("blocks", 500) as tick, ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: tick(), range(500)))

    assert [done for kind, _, done in events.received if kind == "advance"] == list(range(1, 501))


def test_without_listeners_items_are_unchanged_and_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(progress, "clock", None)

    assert list(track_progress(iter("abc"), "letters")) == ["a", "b", "c"]


def test_a_failed_stage_ends():
    events = Events()
    with pytest.raises(KeyboardInterrupt), listen(events), stage("interrupted", 3):
        raise KeyboardInterrupt

    assert events.received[-1] == ("end", "interrupted", 0)
    with listen(events), stage("after"):
        pass
    assert ("begin", "after", None) in events.received


# ------------------------------------------------------------------------------------------------------ time left


def test_the_time_left_is_that_of_the_steps_so_far(clock):
    left = []

    class Clock(Events):
        def advance(self, stage):
            left.append(stage.seconds_left(progress.clock()))

    with listen(Clock()), stage("steps", 5) as tick:
        for seconds in (0.5, 1.5, 4.0, 2.0, 2.0):
            clock(seconds)
            tick()

    assert left == [None, 3.0, 4.0, 2.0, None]  # no evidence in the first half second; nothing left in the end


def test_the_time_left_counts_down_and_rises_if_a_step_is_late(clock):
    events = Events()
    with listen(events), stage("steps", 4) as tick:
        clock(2)
        tick()
        current = progress._ACTIVE.get().stage
        seconds = [current.seconds_left(100 + now) for now in (2, 4, 12)]

    assert seconds == [6.0, 4.0, 12.0]  # in the end the second of four steps takes ten seconds, so two more take twelve


def test_iterations_that_may_converge_have_an_upper_bound(clock):
    events = Events()
    with listen(events), stage("EM", 200, at_most=True) as tick:
        clock(3)
        tick(2)
        text = progress._ACTIVE.get().stage.describe(progress.clock())

    assert text == "EM 2 of at most 200, at most 4 min 57 s left"


def test_durations_are_in_words():
    assert [format_seconds(s) for s in (0.04, 1.2, 59.4, 60, 3599, 3600)] == [
        "0.0 s",
        "1 s",
        "59 s",
        "1 min 0 s",
        "59 min 59 s",
        "1 h 0 min",
    ]


# ---------------------------------------------------------------------------------------------------- lines of text


def show(stream, clock, monkeypatch):
    """Report two stages, the first with an inner one."""
    monkeypatch.setattr(sys, "stderr", stream)
    with report_progress(Verbose()):
        with stage("searching", 4) as tick:
            for _ in range(4):
                with stage("moves", 10) as inner_tick:
                    for _ in range(10):
                        clock(0.3)
                        inner_tick()
                tick()
        with stage("EM", 50, at_most=True) as tick:
            clock(0.1)
            tick()


def test_a_terminal_shows_one_bar_per_stage(clock, monkeypatch):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    show(terminal, clock, monkeypatch)

    searching, em = terminal.screen()
    assert searching.startswith("Verbose: searching: 100%")
    assert "4/4" in searching
    assert em.startswith("Verbose: EM:   2%")
    assert "1/50" in em


@pytest.mark.parametrize("terminal", [True, False])
def test_without_tqdm_or_a_terminal_there_is_a_line_per_stage_and_one_every_few_seconds(clock, monkeypatch, terminal):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    log = Terminal() if terminal else io.StringIO()
    show(log, clock, monkeypatch)

    assert log.getvalue().splitlines() == [
        "Verbose: searching",
        "Verbose: searching 25 %, 7 s left: moves 70 %, 1 s left",
        "Verbose: searching 75 %, 2 s left: moves 40 %, 2 s left",
        "Verbose: EM",
    ]


@pytest.mark.parametrize("tqdm", [True, False])
def test_stages_of_the_same_name_in_a_row_share_a_line(clock, monkeypatch, tqdm):
    if tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with report_progress(Verbose()):
        for _ in range(3):
            with stage("EM", 10) as tick:
                clock(1)
                tick(5)

    (line,) = terminal.screen()
    assert line.startswith("Verbose: EM")
    assert ("15/20" in line) == tqdm  # five steps of the last ten, after ten of the first two


def test_lines_of_a_fit_are_printed_above_its_bar(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with report_progress(Verbose()), stage("EM", 2) as tick:
        for i in range(2):
            print_line(f"iteration {i + 1}")
            tick()

    assert capsys.readouterr().out.splitlines() == ["iteration 1", "iteration 2"]
    assert "2/2" in terminal.screen()[-1]


def test_only_the_outermost_verbose_fit_prints(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with report_progress(Verbose()), stage("outer"), report_progress(Verbose()), stage("inner"):
        pass

    assert log.getvalue().splitlines() == ["Verbose: outer"]


def test_a_verbose_fit_inside_a_silent_one_prints_its_own_stages(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with listen(Events()), stage("outer"), report_progress(Verbose()), stage("inner"):
        pass

    assert log.getvalue().splitlines() == ["Verbose: inner"]


def test_verbose_estimators_print_progress_before_the_report(rows, capsys):
    ManifoldClustering(3, random_state=0, verbose=1).fit(rows[0])
    LapGMM(3, lam=1.0, random_state=0, verbose=True).fit(rows[0])

    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert "ManifoldClustering: searching communities" in lines
    assert "LapGMM: EM" in lines
    assert "3 clusters of 120 rows" in printed.out
    assert "searching" not in printed.out


def test_silent_estimators_print_nothing(rows, capsys):
    ManifoldClustering(3, random_state=0).fit(rows[0])

    assert capsys.readouterr() == ("", "")


# -------------------------------------------------------------------------------------------- scikit-learn's callbacks


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


needs_callbacks = pytest.mark.skipif(
    not hasattr(progress.ProgressMixin, "set_callbacks"), reason="scikit-learn has callbacks since 1.9"
)


@needs_callbacks
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


@needs_callbacks
def test_em_reports_every_iteration_and_nle_every_start(rows):
    em, nle = Recorder(), Recorder()
    mixture = LapGMM(3, random_state=0, lam=1.0).set_callbacks(em).fit(rows[0])
    NLE(3, n_init=4, random_state=0).set_callbacks(nle).fit(rows[0])

    assert em.tasks.count("step") >= mixture.n_iter_
    assert "EM" in em.tasks
    assert nle.tasks[-6:] == ["step"] * 4 + ["starts", "fit"]


@needs_callbacks
def test_steps_of_nested_models_are_reported(rows):
    recorder = Recorder()
    ManifoldClustering("auto", max_clusters=4, random_state=0).set_callbacks(recorder).fit(rows[0])

    assert {"counting clusters", "searching communities", "fitting mixtures"} <= set(recorder.tasks)


@needs_callbacks
def test_callbacks_receive_the_outermost_stages_in_a_bounded_number_of_steps():
    recorder, model = Recorder(), LapGMM(2)
    with report_progress(model.set_callbacks(recorder)), stage("rows", 1_000_000) as tick:
        for _ in range(4):
            with stage("inner", 1) as inner_tick:
                inner_tick()
            tick(250_000)

    assert recorder.tasks == ["step"] * progress.MAX_CALLBACK_STEPS + ["rows", "fit"]


@needs_callbacks
def test_callbacks_and_verbose_report_the_same_fit(rows, capsys):
    recorder = Recorder()
    LapGMM(3, lam=1.0, random_state=0, verbose=True).set_callbacks(recorder).fit(rows[0])

    assert "EM" in recorder.tasks
    assert "LapGMM: EM" in capsys.readouterr().err


@needs_callbacks
def test_a_failed_fit_tears_its_callbacks_down(rows):
    recorder = Recorder()

    with pytest.raises(ValueError, match="more than the number of rows"):
        LapGMM(500).set_callbacks(recorder).fit(rows[0])
    assert not recorder.open
    with stage("after", 1) as tick:
        tick()
    assert "after" not in recorder.tasks


@needs_callbacks
def test_the_progress_bar_of_scikit_learn_works(rows, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    LapGMM(3, random_state=0).set_callbacks(ProgressBar()).fit(rows[0])

    assert "LapGMM" in capsys.readouterr().out
