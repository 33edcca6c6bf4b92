"""How a data set lies on disk: one ``.npz`` archive with ``X`` (or the pieces of a CSR matrix) and ``y``.

Beside these an archive may hold ``target_names``, ``feature_names`` and arrays with one entry a sample. A sparse set
stores ``data``, ``indices``, ``indptr``, ``shape`` and ``format``, as :func:`scipy.sparse.save_npz` does. No archive
needs pickle.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._files import atomic_write

Arrays = dict[str, np.ndarray]

CSR_PIECES = ("data", "indices", "indptr", "shape", "format")
UNREADABLE = (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error)
DECIMALS = 6


def pack(X: Any) -> Arrays:
    """The archive's arrays for ``X``: itself when dense, its CSR pieces when sparse."""
    if not sp.issparse(X):
        return {"X": np.asarray(X)}
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    shape, form = np.array(X.shape, dtype=np.int64), np.array(b"csr")
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": shape, "format": form}


def matrix(arrays: Arrays) -> Any:
    """``X`` from the archive's arrays, the other way round from :func:`pack`."""
    if "X" in arrays:
        return arrays["X"]
    if not arrays.keys() >= set(CSR_PIECES) or arrays["format"].item() != b"csr":
        raise ValueError(f"neither X nor a CSR matrix among {sorted(arrays)}")
    pieces = (arrays["data"], arrays["indices"], arrays["indptr"])
    return sp.csr_array(pieces, shape=tuple(arrays["shape"].tolist()))


def read(path: Path) -> Arrays:
    """All arrays of an archive, or one sentence on what is wrong with it."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        _check_labels(arrays)
    except UNREADABLE as error:
        raise ValueError(
            f"{str(path)!r} is not a data set that can be read ({type(error).__name__}: {error}); "
            "replace it with a whole .npz archive that holds X and y, or remove it"
        ) from error
    return arrays


def _check_labels(arrays: Arrays) -> None:
    """One class number a sample."""
    if "y" not in arrays:
        raise ValueError(f"no y among {sorted(arrays)}")
    (n_samples, _), y = matrix(arrays).shape, arrays["y"]
    if y.shape != (n_samples,) or y.dtype.kind not in "iu" or y.size == 0 or y.min() < 0:
        raise ValueError(f"y must hold one class number from 0 for each of {n_samples} samples")


def write(path: Path, arrays: Arrays) -> None:
    """Write an archive whole, or not at all."""
    members: dict[str, Any] = dict(arrays)
    with atomic_write(path) as draft:
        np.savez_compressed(draft, **members)


def fingerprint(X: Any, y: np.ndarray) -> str:
    """SHA-256 of the labelled content, whatever the order of the rows and the numbering of the classes.

    Each row has a digest of its values, rounded; each class one of its sorted row digests; the whole one of its sorted
    class digests. The container, its compression and the number type therefore leave no trace.

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


def _canonical_rows(X: Any) -> Iterator[bytes]:
    """The bytes of each row; a sparse row is its nonzero columns followed by their values."""
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
    """Little-endian float64, rounded, with one zero and one NaN."""
    rounded = np.round(np.asarray(values, dtype="<f8"), DECIMALS) + 0.0  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(rounded), np.nan, rounded).astype("<f8")
