from __future__ import annotations

import io
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fiedler.datasets import archive, load
from fiedler.datasets.download import Progress, fetch
from fiedler.datasets.registry import DATASETS
from fiedler.datasets.store import cache_folder
from fiedler.errors import DataNotFoundError, DownloadError, FileFormatError

RAW = b"A_ECOLI  0.1 0.2 0.3 0.4 0.5 0.6 0.7  cp\nB_ECOLI  0.7 0.6 0.5 0.4 0.3 0.2 0.1  im\n"
X = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]])
Y = np.array([0, 1])


@pytest.fixture
def small_ecoli(server, monkeypatch):
    """The ecoli data set reduced to two samples, on a local server."""
    row = DATASETS["ecoli"]
    remote = replace(row.remote, urls=(f"{server.url}/ecoli.data",))
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=remote, fingerprint=archive.fingerprint(X, Y)))
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
    archive.write(tmp_path / "ecoli.npz", {"X": X[:1], "y": Y[:1]})

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
        r"could not be downloaded from http://127.0.0.1:\d+/ecoli.data \(HTTP 404 Not Found\)",
    ),
    "short": (
        _truncated,
        DownloadError,
        "download_failed",
        f"only {len(RAW)} of {len(RAW) + 100} bytes arrived|IncompleteRead",
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


def test_a_silent_server_times_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(DownloadError, match="timed out"):
            fetch(url, tmp_path / "never", verbose=False, timeout=0.1)


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


@pytest.mark.parametrize(("verbose", "lines"), [(True, 1), (False, 0)])
def test_progress_is_reported_on_stderr_if_verbose(verbose, lines, small_ecoli, cache, capsys):
    load("ecoli", verbose=verbose)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == lines
    assert (f"ecoli.data: {len(RAW)} B of {len(RAW)} B, " in captured.err) == verbose


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_redraws_one_line(monkeypatch):
    monkeypatch.setattr("fiedler.datasets.download.TERMINAL_SECONDS", -1)
    stream = Terminal()

    with Progress("a.zip", 3_000_000, stream) as progress:
        progress.add(1_000_000)
        progress.add(2_000_000)

    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().startswith("\ra.zip: 1.0 MB of 3.0 MB, ")
    assert "\ra.zip: 3.0 MB of 3.0 MB, " in stream.getvalue()


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "~/.cache/fiedler"),
        ("linux", {"XDG_CACHE_HOME": "/somewhere"}, "/somewhere/fiedler"),
        ("darwin", {}, "~/Library/Caches/fiedler"),
        ("win32", {}, "~/AppData/Local/fiedler"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/fiedler"),
        ("linux", {"FIEDLER_CACHE": "~/mine"}, "~/mine"),
    ],
)
def test_cache_folder_follows_the_platform(platform, variables, expected, monkeypatch):
    for variable in ("FIEDLER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.platform", platform)

    assert cache_folder() == Path(expected).expanduser()
