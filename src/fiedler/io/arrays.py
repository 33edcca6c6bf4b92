"""Read rows from NumPy and SciPy files. Nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import FileFormatError, InputError, unreadable_for_lack_of_memory
from .images import as_rows
from .record import Input, Roles, encode_labels, number_rows, table_options_error

UNKNOWN_NAMES = ("-1",)  # names that mean an unknown class in arrays of labels


def from_npy(path: Path, roles: Roles) -> Input:
    """Read the rows of one array."""
    _check_no_roles(roles, path.name)
    return from_array(_load(path), path.name)


def from_npz(path: Path, roles: Roles) -> Input:
    """Read a sparse matrix, the array ``X`` (with labels such as ``y``), or the only array of an NPZ file."""
    with _load(path) as file:
        arrays = {name: _member(file, name, path.name) for name in file.files}
    if {"format", "shape", "data"} <= set(arrays):
        _check_no_roles(roles, path.name)
        return from_array(_load_sparse(path), path.name)
    _check_no_roles(roles._replace(labels=None), path.name)
    name = "X" if "X" in arrays else next(iter(arrays), "")
    if name != "X" and len(arrays) != 1:
        raise FileFormatError(
            f"{path.name!r} contains the arrays {sorted(arrays)}",
            "name the one with the rows 'X'",
            code="several_arrays",
            file=path.name,
            arrays=sorted(arrays),
        )
    labels, class_names = (None, None) if roles.labels is None else _labels(arrays, roles.labels, path.name)
    return from_array(arrays[name], path.name, labels, class_names)


def from_array(X: Any, source: str, labels: np.ndarray | None = None, class_names: list[str] | None = None) -> Input:
    """Return the rows of an array of shape (n, d), or images of shape (n, height, width) or (n, height, width, 3)."""
    if not sp.issparse(X) and X.dtype.kind not in "iufb":
        raise FileFormatError(
            f"{source!r} contains an array of {X.dtype}, which are not numbers",
            "use an array of numbers",
            code="not_numeric",
            file=source,
        )
    if X.ndim == 0 or 0 in X.shape:
        raise FileFormatError(
            f"{source!r} contains an empty array of shape {X.shape}",
            "use an array with rows and columns",
            code="empty_array",
            file=source,
        )
    if labels is not None and len(labels) != X.shape[0]:
        raise FileFormatError(
            f"{source!r} contains {X.shape[0]} rows but {len(labels)} labels",
            "use one label per row",
            code="wrong_length",
            file=source,
        )
    row_names = number_rows(X.shape[0])
    if X.ndim == 3 or (X.ndim == 4 and X.shape[3] in (1, 3)):
        return Input("images", as_rows(X), row_names, None, X.shape[1:], labels, class_names)
    if X.ndim != 2:
        raise FileFormatError(
            f"{source!r} contains an array of shape {X.shape}",
            "rows have shape (n, d), images (n, height, width)",
            code="wrong_shape",
            file=source,
        )
    return Input("array", _as_finite_floats(X, source), row_names, labels=labels, class_names=class_names)


def _as_finite_floats(X: Any, source: str) -> Any:
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return X.astype(np.float64)
    if not np.isfinite(values).all():
        row = None if sp.issparse(X) else int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise InputError(
            f"{source!r}{'' if row is None else f', row {row}'} contains NaN or infinity",
            "fill these values, or remove the rows",
            code="not_finite",
            file=source,
            row=row,
        )
    return X if values.dtype in (np.float32, np.float64) else X.astype(np.float32)


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except MemoryError:
        raise unreadable_for_lack_of_memory(path.name) from None
    except Exception as error:  # a damaged file fails in many ways, and NumPy then suggests to unpickle it
        if isinstance(error, OSError) and error.errno is not None:  # no permission, a folder: the system's own message
            raise
        raise FileFormatError(
            f"{path.name!r} is not a NumPy file, or it is damaged",
            "write it with numpy.save, as numbers",
            code="not_a_numpy_file",
            file=path.name,
        ) from None


def _member(file: Any, name: str, file_name: str) -> np.ndarray:
    try:
        return file[name]
    except MemoryError:
        raise unreadable_for_lack_of_memory(file_name) from None
    except Exception:  # as in _load
        raise FileFormatError(
            f"{file_name!r} is damaged, or its array {name!r} does not contain numbers",
            "write it again with numpy.savez, as numbers",
            code="damaged_array",
            file=file_name,
            array=name,
        ) from None


def _load_sparse(path: Path) -> sp.csr_array:
    try:
        stored = sp.load_npz(path)
        if hasattr(stored, "check_format"):  # before compiled code converts it, which follows every index
            stored.check_format(full_check=True)
        matrix = sp.csr_array(stored)
    except MemoryError:
        raise unreadable_for_lack_of_memory(path.name) from None
    except Exception as error:  # as in _load
        raise FileFormatError(
            f"{path.name!r} does not contain a valid sparse matrix ({error})",
            "write it again with scipy.sparse.save_npz",
            code="invalid_sparse_matrix",
            file=path.name,
        ) from None
    return matrix


def _labels(arrays: dict[str, np.ndarray], name: str, file: str) -> tuple[np.ndarray, list[str]]:
    if name not in arrays:
        raise FileFormatError(
            f"{file!r} has no array {name!r} of labels",
            f"its arrays are {sorted(arrays)}",
            code="no_such_array",
            file=file,
            array=name,
            arrays=sorted(arrays),
        )
    if arrays[name].ndim != 1:
        raise FileFormatError(
            f"{file!r}: the labels {name!r} have shape {arrays[name].shape}",
            "use one label per row",
            code="wrong_shape",
            file=file,
        )
    return encode_labels(arrays[name], unknown=UNKNOWN_NAMES)


def _check_no_roles(roles: Roles, file: str) -> None:
    if roles != Roles():
        raise table_options_error(repr(file))
