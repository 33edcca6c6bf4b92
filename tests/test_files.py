"""Temporary files: whose they are, and which of them are removed."""

import os

import pytest

from fiedler import _files


@pytest.mark.parametrize(
    ("name", "error", "is_running"),
    [
        ("posix", None, True),
        ("posix", ProcessLookupError, False),
        ("posix", OverflowError, False),
        ("posix", PermissionError, True),
        ("nt", AssertionError, True),
    ],
)
def test_a_process_is_asked_whether_it_runs_except_where_that_would_end_it(name, error, is_running, monkeypatch):
    def kill(process, signal):
        if error is not None:
            raise error

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(_files.os, "name", name)

    assert _files._is_running(1) == is_running


def test_a_machine_without_namespaces_of_processes_has_a_number_too(monkeypatch):
    def readlink(path):
        raise FileNotFoundError(path)

    here = _files._machine()
    monkeypatch.setattr(os, "readlink", readlink)

    assert len(_files._machine()) == 8
    assert (_files._machine() == here) == (not os.path.exists("/proc/self/ns/pid"))
