"""Locations of data sets: the folder given by ``FIEDLER_DATA``, then the cache, to which downloads are written.

A download is parsed and its content compared with the registry's fingerprint before anything is written, so a
downloaded file in the cache is the data set after which it is named.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import numpy as np

from ..errors import DataNotFoundError, DownloadError, FileFormatError, not_enough_memory_to_read
from . import archive
from .archive import Arrays
from .download import fetch
from .registry import Dataset, Remote


def find_file(row: Dataset, cache: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the local file of a data set, in the data folder or else in the cache; None if there is none."""
    folders = (data_folder(), _resolve_cache(cache))
    paths = (folder / f"{row.name}.npz" for folder in folders if folder is not None)
    return next((path for path in paths if path.exists()), None)


def read_or_download(row: Dataset, *, download: bool, cache: str | os.PathLike[str] | None, verbose: bool) -> Arrays:
    """Return the arrays of a data set from its local file, or download it."""
    path = find_file(row, cache)
    if path is not None:
        return archive.read(path)
    folder = _resolve_cache(cache)
    if row.remote is None:
        raise DataNotFoundError(
            f"data set {row.name!r} is not on this machine and has no public source to download it from",
            _placement_hint(row, folder),
            code="dataset_not_downloadable",
            name=row.name,
        )
    if not download:
        raise DataNotFoundError(
            f"data set {row.name!r} is not on this machine",
            f"pass download=True, or {_placement_hint(row, folder)}",
            code="dataset_not_found",
            name=row.name,
        )
    return download_dataset(row, row.remote, folder, verbose=verbose)


def download_dataset(row: Dataset, remote: Remote, folder: Path, *, verbose: bool) -> Arrays:
    """Download a data set, convert it, compare it with its fingerprint, and store it in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fiedler-") as scratch:
        paths = [_download_file(row, url, Path(scratch), folder, verbose=verbose) for url in remote.urls]
        arrays = convert(row, remote, paths, folder)
    fingerprint = archive.fingerprint(archive.matrix(arrays), arrays["y"])
    if fingerprint != row.fingerprint:
        raise FileFormatError(
            f"the content of {_addresses(remote)} is not the data set {row.name!r} of the registry (fingerprint "
            f"{fingerprint[:12]}, expected {row.fingerprint[:12]}), so nothing was stored",
            _placement_hint(row, folder),
            code="wrong_fingerprint",
            name=row.name,
            url=remote.urls[0],
        )
    archive.write(folder / f"{row.name}.npz", arrays)
    return arrays


def _download_file(row: Dataset, url: str, scratch: Path, folder: Path, *, verbose: bool) -> Path:
    """Download one raw file under its original name."""
    path = scratch / PurePosixPath(urlsplit(url).path).name
    try:
        fetch(url, path, verbose=verbose)
    except OSError as error:
        raise DownloadError(
            f"data set {row.name!r} could not be downloaded from {url} ({error})",
            f"try again, or {_placement_hint(row, folder)}",
            name=row.name,
            url=url,
            reason=str(error),
        ) from error
    return path


def convert(row: Dataset, remote: Remote, paths: Sequence[Path], folder: Path) -> Arrays:
    """Convert raw files to the arrays of an archive, including names."""
    try:
        arrays = remote.parse(paths)
    except MemoryError:
        raise not_enough_memory_to_read(row.name) from None
    except Exception as error:  # downloaded bytes can make a parser fail in any way
        raise FileFormatError(
            f"the content of {_addresses(remote)} cannot be read as data set {row.name!r} ({type(error).__name__}: "
            f"{error}), so nothing was stored",
            _placement_hint(row, folder),
            code="invalid_download",
            name=row.name,
            url=remote.urls[0],
        ) from error
    names = {"target_names": row.target_names, "feature_names": row.feature_names}
    return arrays | {key: np.array(value) for key, value in names.items() if value}


def _addresses(remote: Remote) -> str:
    first, *others = remote.urls
    return f"{first} (and {len(others)} more)" if others else first


def _placement_hint(row: Dataset, folder: Path) -> str:
    file = f"{row.name}.npz"
    return f"set FIEDLER_DATA to a folder that contains {file}, or place {file} in {str(folder)!r}"


def data_folder() -> Path | None:
    """Return the folder given by ``FIEDLER_DATA``, or None if it is not set."""
    value = os.environ.get("FIEDLER_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise DataNotFoundError(
            f"FIEDLER_DATA={value!r} is not a folder",
            "set it to an existing folder, or unset it",
            code="data_folder_not_found",
            file=value,
        )
    return folder


def cache_folder() -> Path:
    """Return the folder given by ``FIEDLER_CACHE``, or the user's cache directory on this platform."""
    value = os.environ.get("FIEDLER_CACHE")
    return Path(value).expanduser() if value else CACHES.get(sys.platform, _xdg_cache)() / "fiedler"


def _resolve_cache(cache: str | os.PathLike[str] | None) -> Path:
    return cache_folder() if cache is None else Path(cache).expanduser()


def _xdg_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _mac_cache() -> Path:
    return Path.home() / "Library" / "Caches"


def _windows_cache() -> Path:
    return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")


CACHES: dict[str, Callable[[], Path]] = {"darwin": _mac_cache, "win32": _windows_cache}
