"""Arrays in NumPy's and SciPy's files to rows. Nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .images import as_rows
from .record import TABLE_OPTIONS_ONLY, Input, Roles, class_names, row_numbers

NO_ARRAY = "{!r} is not a NumPy file, or it is damaged; write it with numpy.save, as numbers"
UNKNOWN = "-1"  # a label that is none, in arrays


def from_npy(path: Path, roles: Roles) -> Input:
    """The rows of one array."""
    _refuse_columns(roles, path.name)
    return from_array(_loaded(path), None, path.name)


def from_npz(path: Path, roles: Roles) -> Input:
    """The rows of a sparse matrix, of the array ``X`` (with labels in ``y``), or of the only array."""
    with _loaded(path) as file:
        arrays = {name: _member(file, name, path.name) for name in file.files}
    if {"format", "shape", "data"} <= set(arrays):
        _refuse_columns(roles, path.name)
        return from_array(_sparse(path), None, path.name)
    _refuse_columns(roles._replace(labels=None), path.name)
    name = "X" if "X" in arrays else next(iter(arrays), "")
    if name != "X" and len(arrays) != 1:
        raise ValueError(f"{path.name!r} holds the arrays {sorted(arrays)}; call the one with the rows X")
    return from_array(arrays[name], _labels(arrays, roles.labels, path.name), path.name)


def from_array(X: Any, labels: list[str] | None, file: str) -> Input:
    """Rows of an array: (n, d), or images of shape (n, height, width) or (n, height, width, 3)."""
    if not sp.issparse(X) and X.dtype.kind not in "iufb":
        raise ValueError(f"{file!r} holds an array of {X.dtype}, not of numbers; give one of numbers")
    if X.ndim == 0 or 0 in X.shape:
        raise ValueError(f"{file!r} holds an empty array, of shape {X.shape}; give it rows and columns")
    if labels is not None and len(labels) != X.shape[0]:
        raise ValueError(f"{file!r} holds {X.shape[0]} rows but {len(labels)} labels; give one a row")
    names = row_numbers(X.shape[0])
    if X.ndim == 3 or (X.ndim == 4 and X.shape[3] in (1, 3)):
        return Input("images", as_rows(X), names, pixels=X.shape[1:], labels=labels)
    if X.ndim != 2:
        raise ValueError(f"{file!r} holds an array of shape {X.shape}; rows are (n, d), images (n, height, width)")
    return Input("array", _finite(X, file), names, labels=labels)


def _finite(X: Any, file: str) -> Any:
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return X.astype(np.float64)
    if not np.isfinite(values).all():
        where = "" if sp.issparse(X) else f", row {int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])}"
        raise ValueError(f"{file!r}{where} holds NaN or infinity; fill these values, or leave the rows out")
    return X if values.dtype in (np.float32, np.float64) else X.astype(np.float32)


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        if error.errno is not None:  # no permission, a folder: the system's own word
            raise
        raise ValueError(NO_ARRAY.format(path.name)) from None
    except Exception:  # a damaged file fails in more ways than can be listed, and NumPy's advice is to unpickle it
        raise ValueError(NO_ARRAY.format(path.name)) from None


def _member(file: Any, name: str, called: str) -> np.ndarray:
    try:
        return file[name]
    except Exception:
        raise ValueError(f"{called!r} is damaged, or its array {name!r} is not one of numbers") from None


def _sparse(path: Path) -> sp.csr_array:
    try:
        matrix = sp.csr_array(sp.load_npz(path))
        matrix.check_format(full_check=True)
    except Exception as error:
        raise ValueError(f"{path.name!r} holds no sound sparse matrix ({error}); write it again") from None
    return matrix


def _labels(arrays: dict[str, np.ndarray], name: str | None, file: str) -> list[str] | None:
    if name is None:
        return None
    if name not in arrays:
        raise ValueError(f"{file!r} has no array {name!r} of labels; its arrays are {sorted(arrays)}")
    if arrays[name].ndim != 1:
        raise ValueError(f"{file!r}: the labels {name!r} have shape {arrays[name].shape}; there is one a row")
    return ["" if value == UNKNOWN else value for value in class_names(arrays[name])]


def _refuse_columns(roles: Roles, file: str) -> None:
    if roles != Roles():
        raise ValueError(f"{file!r} has no columns to name; {TABLE_OPTIONS_ONLY}")
