"""Files of data sets: one ``.npz`` archive with ``X`` (or the parts of a CSR matrix) and ``y``.

An archive may also contain ``target_names``, ``feature_names`` and arrays with one entry per sample. A sparse set
stores ``data``, ``indices``, ``indptr``, ``shape`` and ``format``, as :func:`scipy.sparse.save_npz` does. No archive
needs pickle.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._files import atomic_write
from ..core.sparse import checked_csr
from ..errors import FileFormatError

Arrays = dict[str, np.ndarray]
Matrix: TypeAlias = np.ndarray | sp.csr_array

CSR_PARTS = ("data", "indices", "indptr", "shape", "format")
READ_ERRORS = (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error)
FINGERPRINT_DECIMALS = 6  # values are rounded to this many decimals


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
