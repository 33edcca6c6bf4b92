"""Run the command line in the process of the tests."""

import sys
from typing import NamedTuple

import pytest


class Result(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def run_fiedler(monkeypatch, capsys):
    """Run ``fiedler`` with the given arguments."""
    from fiedler.cli import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fiedler", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run
