"""Temporary files: whose they are, and which of them are removed."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from fiedler import _files
from fiedler.errors import FiedlerError
from fiedler.io import read_input


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


@pytest.mark.parametrize(
    ("name", "function"), [("a.npy", "numpy.load"), ("a.npz", "numpy.lib.npyio.NpzFile.__getitem__")]
)
def test_a_lack_of_memory_is_not_taken_for_a_damaged_array(name, function, tmp_path, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    if name.endswith("npy"):
        np.save(tmp_path / name, np.ones((4, 2)))
    else:
        np.savez(tmp_path / name, X=np.ones((4, 2)))
    monkeypatch.setattr(function, fail)

    with pytest.raises(FiedlerError, match="memory"):
        read_input(tmp_path / name)


def test_a_lack_of_memory_is_not_taken_for_a_damaged_sparse_matrix(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.eye(4)))
    monkeypatch.setattr(sp, "load_npz", fail)

    with pytest.raises(FiedlerError, match="memory"):
        read_input(tmp_path / "a.npz")
