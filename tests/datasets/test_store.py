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

RAW = b"A_ECOLI  0.1 0.2 0.3 0.4 0.5 0.6 0.7  cp\nB_ECOLI  0.7 0.6 0.5 0.4 0.3 0.2 0.1  im\n"
X = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]])
Y = np.array([0, 1])


@pytest.fixture
def small_ecoli(home, monkeypatch):
    """The ecoli set reduced to two samples, at a home on this machine."""
    row = DATASETS["ecoli"]
    remote = replace(row.remote, urls=(f"{home.url}/ecoli.data",))
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=remote, fingerprint=archive.fingerprint(X, Y)))
    home.files["/ecoli.data"] = RAW
    return home


def test_a_download_is_cached_and_the_network_asked_once(small_ecoli, cache):
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


def test_all_files_of_a_set_are_fetched(small_ecoli, cache, monkeypatch):
    row = DATASETS["ecoli"]
    lines = RAW.splitlines()
    small_ecoli.files.update({"/xaa.dat": lines[0], "/xab.dat": lines[1]})
    remote = replace(row.remote, urls=(f"{small_ecoli.url}/xaa.dat", f"{small_ecoli.url}/xab.dat"))
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=remote))

    assert_array_equal(load("ecoli", verbose=False).X, X)


def test_the_cache_argument_comes_before_the_usual_cache(small_ecoli, cache, tmp_path):
    load("ecoli", cache=tmp_path / "elsewhere", verbose=False)

    assert (tmp_path / "elsewhere" / "ecoli.npz").exists()
    assert not cache.exists()


def test_the_data_folder_comes_first(small_ecoli, cache, tmp_path, monkeypatch):
    load("ecoli", verbose=False)
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path))
    archive.write(tmp_path / "ecoli.npz", {"X": X[:1], "y": Y[:1]})

    assert len(load("ecoli").y) == 1


def _not_there(home):
    home.files.clear()


def _cut_short(home):
    home.missing_bytes = 100


def _another_value(home):
    home.files["/ecoli.data"] = RAW.replace(b"0.7", b"0.8")


def _another_class(home):
    home.files["/ecoli.data"] = RAW.replace(b"im", b"cp")


def _a_web_page(home):
    home.files["/ecoli.data"] = b"<html>We have moved</html>"


FAILURES = {
    "404": (
        _not_there,
        OSError,
        r"could not be downloaded from http://127.0.0.1:\d+/ecoli.data \(HTTP 404 Not Found\)",
    ),
    "short": (_cut_short, OSError, f"only {len(RAW)} of {len(RAW) + 100} bytes arrived|IncompleteRead"),
    "value": (_another_value, ValueError, "is not the data set 'ecoli' known here .* so nothing was kept"),
    "class": (_another_class, ValueError, "is not the data set 'ecoli' known here .* so nothing was kept"),
    "page": (_a_web_page, ValueError, "cannot be read as data set 'ecoli' .* so nothing was kept"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failed_download_says_what_to_do_and_leaves_nothing(kind, small_ecoli, cache):
    spoil, error, message = FAILURES[kind]
    spoil(small_ecoli)

    with pytest.raises(error, match=message) as caught:
        load("ecoli", verbose=False)

    text = str(caught.value)
    assert "'ecoli'" in text
    assert f"{small_ecoli.url}/ecoli.data" in text
    assert f"set FIEDLER_DATA to a folder that holds ecoli.npz, or place ecoli.npz in '{cache}'" in text
    assert "\n" not in text
    assert list(cache.iterdir()) == []


def test_no_network_is_said_so(small_ecoli, cache, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/ecoli.data"
    row = DATASETS["ecoli"]
    monkeypatch.setitem(DATASETS, "ecoli", replace(row, remote=replace(row.remote, urls=(url,))))

    with pytest.raises(
        OSError, match=r"'ecoli' could not be downloaded from .*refused.*; try again, or set FIEDLER_DATA"
    ):
        load("ecoli", verbose=False)


def test_a_silent_server_times_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(OSError, match="timed out"):
            fetch(url, tmp_path / "never", verbose=False, timeout=0.1)


def test_without_download_the_network_is_left_alone(small_ecoli, cache):
    with pytest.raises(FileNotFoundError, match="'ecoli' was not found; pass download=True, or set FIEDLER_DATA"):
        load("ecoli", download=False)

    assert small_ecoli.requests == []


def test_a_set_without_a_home_says_where_to_place_it(cache):
    with pytest.raises(
        FileNotFoundError, match=r"'umist' has no public home in this form; set FIEDLER_DATA .*umist\.npz"
    ):
        load("umist")


def test_a_data_folder_that_is_none_is_named(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path / "nowhere"))

    with pytest.raises(NotADirectoryError, match=r"FIEDLER_DATA=.*nowhere' is not a folder"):
        load("ecoli")


def test_a_broken_file_in_the_cache_is_named(small_ecoli, cache):
    cache.mkdir()
    (cache / "ecoli.npz").write_bytes(b"half a file")

    with pytest.raises(ValueError, match=r"ecoli\.npz' is not a data set that can be read"):
        load("ecoli")


@pytest.mark.parametrize(("verbose", "lines"), [(True, 1), (False, 0)])
def test_progress_is_reported_on_stderr_when_asked(verbose, lines, small_ecoli, cache, capsys):
    load("ecoli", verbose=verbose)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == lines
    assert (f"ecoli.data: {len(RAW)} B of {len(RAW)} B, " in captured.err) == verbose


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_redrawn(monkeypatch):
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
def test_the_cache_is_where_the_platform_keeps_such_files(platform, variables, expected, monkeypatch):
    for variable in ("FIEDLER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.platform", platform)

    assert cache_folder() == Path(expected).expanduser()
