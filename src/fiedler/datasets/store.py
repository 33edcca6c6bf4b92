"""Where data sets lie: the folder named by ``FIEDLER_DATA``, then the cache, which downloads fill.

A download is parsed and its content compared with the registry's fingerprint before anything is written, so a file
that a download left in the cache is the set it is named after.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import numpy as np

from . import archive
from .archive import Arrays
from .download import fetch
from .registry import Dataset, Remote


def obtain(row: Dataset, *, download: bool, cache: str | os.PathLike[str] | None, verbose: bool) -> Arrays:
    """The arrays of a set that is kept in a file: from the data folder, the cache, or its public home."""
    folder = cache_folder() if cache is None else Path(cache).expanduser()
    places = [place / f"{row.name}.npz" for place in (data_folder(), folder) if place is not None]
    found = next((place for place in places if place.exists()), None)
    if found is not None:
        return archive.read(found)
    if row.remote is None:
        raise FileNotFoundError(f"data set {row.name!r} has no public home in this form; {_remedy(row, folder)}")
    if not download:
        raise FileNotFoundError(f"data set {row.name!r} was not found; pass download=True, or {_remedy(row, folder)}")
    return bring(row, row.remote, folder, verbose=verbose)


def bring(row: Dataset, remote: Remote, folder: Path, *, verbose: bool) -> Arrays:
    """Download a set, convert it, compare it with its fingerprint, and keep it in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fiedler-") as scratch:
        paths = [_download(row, url, Path(scratch), folder, verbose=verbose) for url in remote.urls]
        arrays = convert(row, remote, paths, folder)
    found = archive.fingerprint(archive.matrix(arrays), arrays["y"])
    if found != row.fingerprint:
        raise ValueError(
            f"what {_addresses(remote)} holds is not the data set {row.name!r} known here (fingerprint {found[:12]}, "
            f"expected {row.fingerprint[:12]}), so nothing was kept; {_remedy(row, folder)}"
        )
    archive.write(folder / f"{row.name}.npz", arrays)
    return arrays


def _download(row: Dataset, url: str, scratch: Path, folder: Path, *, verbose: bool) -> Path:
    """One raw file, under the name it has at its home."""
    path = scratch / PurePosixPath(urlsplit(url).path).name
    try:
        fetch(url, path, verbose=verbose)
    except OSError as error:
        raise OSError(
            f"data set {row.name!r} could not be downloaded from {url} ({error}); try again, or {_remedy(row, folder)}"
        ) from error
    return path


def convert(row: Dataset, remote: Remote, paths: Sequence[Path], folder: Path) -> Arrays:
    """Raw files to the arrays of an archive, names included."""
    try:
        arrays = remote.parse(paths)
    except Exception as error:  # bytes from elsewhere can fail a parser in any way
        raise ValueError(
            f"what {_addresses(remote)} holds cannot be read as data set {row.name!r} "
            f"({type(error).__name__}: {error}), so nothing was kept; {_remedy(row, folder)}"
        ) from error
    named = {"target_names": row.target_names, "feature_names": row.feature_names}
    return arrays | {key: np.array(value) for key, value in named.items() if value}


def _addresses(remote: Remote) -> str:
    first, *others = remote.urls
    return f"{first} (and {len(others)} more)" if others else first


def _remedy(row: Dataset, folder: Path) -> str:
    file = f"{row.name}.npz"
    return f"set FIEDLER_DATA to a folder that holds {file}, or place {file} in {str(folder)!r}"


def data_folder() -> Path | None:
    """The folder that ``FIEDLER_DATA`` names, if it names one."""
    named = os.environ.get("FIEDLER_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"FIEDLER_DATA={named!r} is not a folder; let it name one, or unset it")
    return folder


def cache_folder() -> Path:
    """``FIEDLER_CACHE``, or this user's cache directory on this platform."""
    named = os.environ.get("FIEDLER_CACHE")
    return Path(named).expanduser() if named else CACHES.get(sys.platform, _xdg_cache)() / "fiedler"


def _xdg_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _mac_cache() -> Path:
    return Path.home() / "Library" / "Caches"


def _windows_cache() -> Path:
    return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")


CACHES: dict[str, Callable[[], Path]] = {"darwin": _mac_cache, "win32": _windows_cache}
