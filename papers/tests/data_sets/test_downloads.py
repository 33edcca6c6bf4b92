from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fiedler.datasets import load
from fiedler.errors import DataNotFoundError, DownloadError, FileFormatError
from fiedler_papers.datasets import DATASETS, cache_folder, files

RAW = b"A_ECOLI  0.1 0.2 0.3 0.4 0.5 0.6 0.7  cp\nB_ECOLI  0.7 0.6 0.5 0.4 0.3 0.2 0.1  im\n"
X = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]])
Y = np.array([0, 1])


@pytest.fixture
def small_ecoli(server, monkeypatch):
    """The ecoli data set reduced to two samples, on a local server."""
    row = DATASETS["ecoli"]
    remote = replace(row.remote, urls=(f"{server.url}/ecoli.data",))
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=remote, fingerprint=files.fingerprint(X, Y)))
    server.files["/ecoli.data"] = RAW
    return server


def test_download_is_cached(small_ecoli, cache):
    first = load("ecoli", verbose=False)
    small_ecoli.files.clear()
    second = load("ecoli", verbose=False)

    assert small_ecoli.requests == ["/ecoli.data"]
    for bunch in (first, second):
        assert_array_equal(bunch.X, X)
        assert_array_equal(bunch.y, Y)
        assert_array_equal(bunch.target_names, DATASETS["ecoli"].target_names)
        assert_array_equal(bunch.feature_names, DATASETS["ecoli"].feature_names)
    assert [path.name for path in cache.iterdir()] == ["ecoli.npz"]


def test_all_files_of_a_set_are_downloaded(small_ecoli, cache, monkeypatch):
    row = DATASETS["ecoli"]
    lines = RAW.splitlines()
    small_ecoli.files.update({"/xaa.dat": lines[0], "/xab.dat": lines[1]})
    remote = replace(row.remote, urls=(f"{small_ecoli.url}/xaa.dat", f"{small_ecoli.url}/xab.dat"))
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=remote))

    assert_array_equal(load("ecoli", verbose=False).X, X)


def test_cache_argument_replaces_the_default_cache(small_ecoli, cache, tmp_path):
    load("ecoli", cache=tmp_path / "elsewhere", verbose=False)

    assert (tmp_path / "elsewhere" / "ecoli.npz").exists()
    assert not cache.exists()


def test_data_folder_is_searched_first(small_ecoli, cache, tmp_path, monkeypatch):
    load("ecoli", verbose=False)
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path))
    files.write(tmp_path / "ecoli.npz", {"X": X[:1], "y": Y[:1]})

    assert len(load("ecoli").y) == 1


def _missing(server):
    server.files.clear()


def _truncated(server):
    server.missing_bytes = 100


def _another_value(server):
    server.files["/ecoli.data"] = RAW.replace(b"0.7", b"0.8")


def _another_class(server):
    server.files["/ecoli.data"] = RAW.replace(b"im", b"cp")


def _web_page(server):
    server.files["/ecoli.data"] = b"<html>We have moved</html>"


CHANGED = "is not the data set 'ecoli' of the registry .* so nothing was stored"

FAILURES = {
    "404": (
        _missing,
        DownloadError,
        "download_failed",
        r"could not be downloaded from http://127.0.0.1:\d+/ecoli.data \(404 Client Error: Not Found for url",
    ),
    "short": (
        _truncated,
        DownloadError,
        "download_failed",
        rf"could not be downloaded .*IncompleteRead\({len(RAW)} bytes read, 100 more expected\)",
    ),
    "value": (_another_value, FileFormatError, "wrong_fingerprint", CHANGED),
    "class": (_another_class, FileFormatError, "wrong_fingerprint", CHANGED),
    "page": (
        _web_page,
        FileFormatError,
        "invalid_download",
        "cannot be read as data set 'ecoli' .* nothing was stored",
    ),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_failed_download_gives_a_hint_and_stores_nothing(kind, small_ecoli, cache):
    break_download, error, code, message = FAILURES[kind]
    break_download(small_ecoli)

    with pytest.raises(error, match=message) as caught:
        load("ecoli", verbose=False)

    assert caught.value.code == code
    assert caught.value.fields["name"] == "ecoli"
    text = str(caught.value)
    assert "'ecoli'" in text
    assert f"{small_ecoli.url}/ecoli.data" in text
    assert f"set FIEDLER_DATA to a folder that contains ecoli.npz, or place ecoli.npz in '{cache}'" in text
    assert "\n" not in text
    assert list(cache.iterdir()) == []


def test_refused_connection_raises(small_ecoli, cache, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/ecoli.data"
    row = DATASETS["ecoli"]
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=replace(row.remote, urls=(url,))))

    with pytest.raises(
        DownloadError, match=r"'ecoli' could not be downloaded from .*refused.*; try again, or set FIEDLER_DATA"
    ):
        load("ecoli", verbose=False)


def test_a_silent_server_times_out(small_ecoli, cache, monkeypatch):
    monkeypatch.setattr(files, "TIMEOUT_SECONDS", 0.1)
    row = DATASETS["ecoli"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/ecoli.data"
        monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=replace(row.remote, urls=(url,))))
        with pytest.raises(DownloadError, match="timed out"):
            load("ecoli", verbose=False)


def test_download_false_makes_no_request(small_ecoli, cache):
    message = "'ecoli' is not on this machine; pass download=True, or set FIEDLER_DATA"
    with pytest.raises(DataNotFoundError, match=message) as caught:
        load("ecoli", download=False)

    assert caught.value.code == "dataset_not_found"
    assert small_ecoli.requests == []


def test_set_without_a_public_source_gives_a_hint(cache):
    with pytest.raises(
        DataNotFoundError, match=r"'umist' .*no public source.*; set FIEDLER_DATA .*umist\.npz"
    ) as caught:
        load("umist")

    assert caught.value.code == "dataset_not_downloadable"


def test_data_folder_that_does_not_exist_raises(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path / "nowhere"))

    with pytest.raises(DataNotFoundError, match=r"FIEDLER_DATA=.*nowhere' is not a folder"):
        load("ecoli")


def test_broken_file_in_the_cache_raises(small_ecoli, cache):
    cache.mkdir()
    (cache / "ecoli.npz").write_bytes(b"half a file")

    with pytest.raises(FileFormatError, match=r"ecoli\.npz' is not a valid data set"):
        load("ecoli")


@pytest.mark.parametrize("verbose", [True, False])
def test_progress_is_reported_on_stderr_if_verbose(verbose, small_ecoli, cache, capfd):
    load("ecoli", verbose=verbose)

    captured = capfd.readouterr()
    assert captured.out == ""
    assert ("100%" in captured.err) == verbose


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_CACHE_HOME": "/somewhere"}, "/somewhere/fiedler"),
        ({"FIEDLER_CACHE": "~/mine", "XDG_CACHE_HOME": "/somewhere"}, "~/mine"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="pooch knows the folders of the other platforms")
def test_cache_folder_follows_the_environment(variables, expected, monkeypatch):
    monkeypatch.delenv("FIEDLER_CACHE", raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    assert cache_folder() == Path(expected).expanduser()
