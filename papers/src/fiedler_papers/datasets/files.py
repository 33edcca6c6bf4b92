"""Files of data sets: ``.npz`` archives in the data folder or the cache, made from downloads where there are none.

An archive contains ``X`` (or the parts of a CSR matrix) and ``y``, and may contain ``target_names``, ``feature_names``
and arrays with one entry per sample. A sparse set stores ``data``, ``indices``, ``indptr``, ``shape`` and ``format``,
as :func:`scipy.sparse.save_npz` does. No archive needs pickle.

A download is parsed and its content compared with the registry's fingerprint before anything is written, so a
downloaded file in the cache is the data set after which it is named.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
import pooch
import scipy.sparse as sp

from fiedler._files import atomic_write
from fiedler.core.sparse import checked_csr
from fiedler.errors import DataNotFoundError, DownloadError, FileFormatError, not_enough_memory_to_read

if TYPE_CHECKING:
    from .registry import Remote, StoredDataset

Arrays = dict[str, np.ndarray]
Matrix: TypeAlias = np.ndarray | sp.csr_array

CSR_PARTS = ("data", "indices", "indptr", "shape", "format")
READ_ERRORS = (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error)
FINGERPRINT_DECIMALS = 6  # values are rounded to this many decimals
TIMEOUT_SECONDS = 30.0  # without any data


# ------------------------------------------------------------------------------------------------------------- folders


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


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Return ``cache``, else the folder given by ``FIEDLER_CACHE``, else the user's cache folder on this platform."""
    given = cache or os.environ.get("FIEDLER_CACHE")
    return Path(given).expanduser() if given else Path(pooch.os_cache("fiedler"))


def find_file(name: str, cache: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the local file of a data set, in the data folder or else in the cache; None if there is none."""
    folders = (data_folder(), cache_folder(cache))
    paths = (folder / f"{name}.npz" for folder in folders if folder is not None)
    return next((path for path in paths if path.exists()), None)


# ------------------------------------------------------------------------------------------------------------ archives


def pack(X: Matrix) -> Arrays:
    """Return the arrays that an archive stores for ``X``: itself if dense, the CSR parts if sparse."""
    if not sp.issparse(X):
        return {"X": np.asarray(X)}
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    shape, form = np.array(X.shape, dtype=np.int64), np.array(b"csr")
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": shape, "format": form}


def matrix(arrays: Arrays) -> Matrix:
    """Return ``X`` from the arrays of an archive, the inverse of :func:`pack`."""
    if "X" in arrays:
        return arrays["X"]
    if not arrays.keys() >= set(CSR_PARTS) or arrays["format"].item() != b"csr":
        raise FileFormatError(f"neither X nor a CSR matrix among {sorted(arrays)}", code="invalid_archive")
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    return checked_csr(*parts, shape=tuple(arrays["shape"].tolist()))


def read(path: Path) -> Arrays:
    """Read all arrays of an archive."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        _check_labels(arrays)
    except READ_ERRORS as error:
        raise FileFormatError(
            f"{str(path)!r} is not a valid data set ({type(error).__name__}: {error})",
            "replace it with a complete .npz archive that contains X and y, or remove it",
            code="invalid_archive",
            file=str(path),
        ) from error
    return arrays


def _check_labels(arrays: Arrays) -> None:
    """Check that there is one class number per sample."""
    if "y" not in arrays:
        raise FileFormatError(f"no y among {sorted(arrays)}", code="invalid_archive")
    (n_samples, _), y = matrix(arrays).shape, arrays["y"]
    if y.shape != (n_samples,) or y.dtype.kind not in "iu" or y.size == 0 or y.min() < 0:
        raise FileFormatError(
            f"y must contain one class number from 0 for each of {n_samples} samples", code="invalid_archive"
        )


def write(path: Path, arrays: Arrays) -> None:
    """Write an archive atomically."""
    members: dict[str, Any] = dict(arrays)
    with atomic_write(path) as draft:
        np.savez_compressed(draft, **members)


# -------------------------------------------------------------------------------------------------------- fingerprints


def fingerprint(X: Matrix, y: np.ndarray) -> str:
    """Return the SHA-256 of the labelled content, independent of row order and class numbering.

    Each row has a digest of its rounded values, each class one of its sorted row digests, and the data set one of its
    sorted class digests. The container, its compression and the dtype therefore make no difference.

    Examples
    --------
    >>> X, y = np.array([[0, 1], [2, 3], [4, 5]]), np.array([0, 0, 1])
    >>> fingerprint(X, y) == fingerprint(X[::-1].astype(np.float32), np.array([0, 1, 1]))
    True
    >>> fingerprint(X, y) == fingerprint(X, np.array([0, 1, 1]))
    False
    """
    members: dict[int, list[bytes]] = {}
    for label, row in zip(y.tolist(), _canonical_rows(X)):
        members.setdefault(label, []).append(_digest(row))
    classes = [_digest(b"".join(sorted(rows))) for rows in members.values()]
    n_features = X.shape[1].to_bytes(8, "little")
    return _digest(n_features + b"".join(sorted(classes))).hex()


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _canonical_rows(X: Matrix) -> Iterator[bytes]:
    """Yield the bytes of each row; for a sparse row the nonzero columns followed by their values."""
    if not sp.issparse(X):
        yield from (row.tobytes() for row in _canonical(X))
        return
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    columns, values = X.indices.astype("<i8"), _canonical(X.data)
    for start, end in zip(X.indptr[:-1], X.indptr[1:]):
        yield columns[start:end].tobytes() + values[start:end].tobytes()


def _canonical(values: np.ndarray) -> np.ndarray:
    """Return rounded little-endian float64 with a single representation of zero and of NaN."""
    rounded = np.round(np.asarray(values, dtype="<f8"), FINGERPRINT_DECIMALS) + 0.0  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(rounded), np.nan, rounded).astype("<f8")


# ----------------------------------------------------------------------------------------------------------- downloads


def read_or_download(
    row: StoredDataset, *, download: bool, cache: str | os.PathLike[str] | None, verbose: bool
) -> Arrays:
    """Return the arrays of a data set from its local file, or download it."""
    path, folder = find_file(row.name, cache), cache_folder(cache)
    if path is not None:
        return read(path)
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


def download_dataset(row: StoredDataset, remote: Remote, folder: Path, *, verbose: bool) -> Arrays:
    """Download a data set, convert it, compare it with its fingerprint, and store it in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fiedler-") as scratch:
        paths = [_download_file(row, url, Path(scratch), folder, verbose=verbose) for url in remote.urls]
        arrays = convert(row, remote, paths, folder)
    found = fingerprint(matrix(arrays), arrays["y"])
    if found != row.fingerprint:
        raise FileFormatError(
            f"the content of {_addresses(remote)} is not the data set {row.name!r} of the registry (fingerprint "
            f"{found[:12]}, expected {row.fingerprint[:12]}), so nothing was stored",
            _placement_hint(row, folder),
            code="wrong_fingerprint",
            name=row.name,
            url=remote.urls[0],
        )
    write(folder / f"{row.name}.npz", arrays)
    return arrays


def _download_file(row: StoredDataset, url: str, scratch: Path, folder: Path, *, verbose: bool) -> Path:
    """Download one raw file under its original name."""
    path = scratch / PurePosixPath(urlsplit(url).path).name
    try:
        pooch.HTTPDownloader(progressbar=verbose, timeout=TIMEOUT_SECONDS)(url, str(path), None)
    except OSError as error:  # so are those of requests
        raise DownloadError(
            f"data set {row.name!r} could not be downloaded from {url} ({error})",
            f"try again, or {_placement_hint(row, folder)}",
            name=row.name,
            url=url,
            reason=str(error),
        ) from error
    return path


def convert(row: StoredDataset, remote: Remote, paths: Sequence[Path], folder: Path) -> Arrays:
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


def _placement_hint(row: StoredDataset, folder: Path) -> str:
    file = f"{row.name}.npz"
    return f"set FIEDLER_DATA to a folder that contains {file}, or place {file} in {str(folder)!r}"
