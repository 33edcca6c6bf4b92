"""Progress is shown on a terminal alone, with stage, share and time left."""

import io

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

from rich.console import Console
from rich.progress import Progress

from fiedler.cli import output
from fiedler.cli.output import Output, StageColumn
from fiedler.cli.results import write_labels
from fiedler.core import fitting as progress
from fiedler.core.fitting import listen, stage


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    for module in (progress, output):
        monkeypatch.setattr(module, "clock", lambda: now[0])
    return now


def test_the_column_shows_stage_share_and_time_left(clock):
    column = StageColumn("clustering 9 rows")
    bars = Progress(column, console=Console(file=io.StringIO(), width=100))
    column.attach(bars)
    shown = lambda: column.render(bars.tasks[0]).plain  # noqa: E731

    assert shown() == "clustering 9 rows"
    with listen(column), stage("searching", 4) as tick:
        clock[0] = 3.0
        tick()
        assert shown() == "clustering 9 rows: searching 25 %, 9 s left"
        assert (bars.tasks[0].completed, bars.tasks[0].total) == (1, 4)
        clock[0] = 5.0  # between two steps the time left counts down
        with stage("moves", 10):
            assert shown() == "clustering 9 rows: searching 25 %, 7 s left: moves"
        assert shown() == "clustering 9 rows: searching 25 %, 7 s left"
    assert shown() == "clustering 9 rows"


def test_progress_is_drawn_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(output, "Console", lambda stderr: Console(file=terminal, force_terminal=True, width=100))
    with Output().working("clustering"), stage("searching", 2) as tick:
        tick()
        tick()

    assert "clustering" in terminal.getvalue()


@pytest.mark.parametrize("quiet", [False, True])
def test_nothing_is_drawn_elsewhere(quiet, capsys):
    with Output(quiet).working("clustering"), stage("searching", 2) as tick:
        tick()

    assert capsys.readouterr() == ("", "")


def test_cells_cannot_control_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        write_labels(stream, ["a\x1b[31m", "=1+1"], np.array([0, 1]), None)
    assert terminal.getvalue() == "id,cluster\na\\x1b[31m,0\n'=1+1,1\n"
    assert file.getvalue() == "id,cluster\na\x1b[31m,0\n'=1+1,1\n"
