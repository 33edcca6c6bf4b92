"""Every data set behind ``load(name)``: the same fields, whichever file or generator it comes from."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from .._validation import check_int, choose
from ..core.rows import normalize_rows
from . import archive
from .registry import DATASETS, Dataset, RowFilter
from .store import obtain

Fields = dict[str, Any]

NAMES = ("target_names", "feature_names")  # the fields that are not one entry a sample


def list_datasets() -> dict[str, str]:
    """The names that :func:`load` knows, each with one line on what it is.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> list_datasets()["usps"]
    'USPS handwritten digits of 16 x 16 pixels, -1 to 1: 9298 x 256, 10 classes'
    """
    return {name: row.summary for name, row in DATASETS.items()}


def load(
    name: str,
    *,
    subset: str | None = None,
    classes: int | Sequence[int] | None = None,
    normalize: str | None = None,
    download: bool = True,
    cache: str | os.PathLike[str] | None = None,
    verbose: bool = True,
) -> Bunch:
    """A data set by name.

    Small and synthetic sets are at hand at once. The others are looked for as ``<name>.npz`` in the folder that the
    environment variable ``FIEDLER_DATA`` names, then in the cache (``FIEDLER_CACHE``, or the user's cache directory),
    and are otherwise downloaded from their public home, compared with a fingerprint of their content, and cached.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    subset : str or None, default=None
        A part of the set that papers use: ``"test"`` and ``"train"`` (usps, reuters21578), ``"top30"``, the 30 largest
        classes (tdt2, reuters21578; all term columns stay, even those that become empty), ``"ABCD"`` (letter),
        ``"unique"``, without copied images (umist), ``"complete"``, without the 8 rows that lack the age (dermatology).
        Classes that the part does not hold are dropped and the rest renumbered.
    classes : int, sequence of int or None, default=None
        Keep only these classes, by number within the subset, and number them 0, 1, ... in the order given. An int K
        stands for the first K classes.
    normalize : {"unit", "standard", "unit_interval"} or None, default=None
        Applied to ``X``, last: rows to unit Euclidean length (zero rows stay zero); columns to mean 0 and variance 1
        (constant columns to 0); or all values to [0, 1] by the smallest and largest of them. Missing values stay
        missing. The last two would fill a sparse matrix and refuse one.
    download : bool, default=True
        Whether a set that is not on this machine may be downloaded.
    cache : path or None, default=None
        Folder to use as the cache.
    verbose : bool, default=True
        Whether to report the progress of downloads on stderr.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        - ``X``: ndarray or csr_array of shape (n_samples, n_features), float32 where the set is, else float64;
        - ``y``: class numbers of shape (n_samples,);
        - ``target_names``: class names, so that ``target_names[y]`` names each sample's class; where no names are
          known, the class numbers of the whole set;
        - ``feature_names``: names of the columns, or None;
        - ``name`` and ``description``;
        - ``image_shape`` and ``image_order``, for images: ``X[i].reshape(image_shape, order=image_order)`` is upright;
        - what else the set holds a sample: ``is_test`` (usps, reuters21578), ``is_duplicate`` and ``X_28x23``, a
          smaller version of the images (umist).

    Examples
    --------
    >>> digits = load("digits", classes=[3, 8], normalize="unit_interval")
    >>> digits.X.shape, digits.target_names.tolist(), digits.image_shape
    ((357, 64), ['3', '8'], (8, 8))
    """
    row = choose(DATASETS, name, option="name")
    belongs = None if subset is None else _check_subset(row, subset)
    normalizer = None if normalize is None else choose(NORMALIZERS, normalize, option="normalize")
    if row.builtin is not None:
        fields = _as_fields(row.builtin())
    else:
        fields = _as_fields(obtain(row, download=download, cache=cache, verbose=verbose))
    if belongs is not None:
        fields = _keep_rows(fields, belongs(fields))
        fields = _keep_classes(fields, np.unique(fields["y"]))
    if classes is not None:
        fields = _keep_classes(fields, _check_classes(classes, len(fields["target_names"])))
    if normalizer is not None:
        fields["X"] = normalizer(fields["X"])
    return _as_bunch(fields, row)


def _as_fields(arrays: archive.Arrays) -> Fields:
    """An archive's arrays with ``X`` in floating point and a name for every class."""
    X, y = archive.matrix(arrays), arrays["y"].astype(np.int64)
    keep_single = X.dtype == np.float32 and not sp.issparse(X)
    extras = {key: value for key, value in arrays.items() if key not in archive.CSR_PIECES}
    numbers_as_names = np.arange(y.max() + 1).astype(str)
    return {"target_names": numbers_as_names, **extras, "X": X if keep_single else X.astype(np.float64), "y": y}


def _as_bunch(fields: Fields, row: Dataset) -> Bunch:
    """The fields, with what the registry knows of the set."""
    image = {} if row.image is None else {"image_shape": row.image.shape, "image_order": row.image.order}
    return Bunch(**{"feature_names": None, **fields, **image}, name=row.name, description=row.summary)


def _check_subset(row: Dataset, subset: str) -> RowFilter:
    """The filter behind a named subset."""
    if not row.subsets:
        raise ValueError(f"data set {row.name!r} has no named subsets; leave subset=None, or pick classes")
    return choose(row.subsets, subset, option="subset")


def _keep_classes(fields: Fields, classes: np.ndarray) -> Fields:
    """The samples of ``classes``, which become 0, 1, ... in the order given."""
    numbering = np.full(len(fields["target_names"]), -1)
    numbering[classes] = np.arange(len(classes))
    y = numbering[fields["y"]]
    renamed = {"y": y, "target_names": fields["target_names"][classes]}
    return _keep_rows(fields | renamed, y >= 0)


def _keep_rows(fields: Fields, keep: np.ndarray) -> Fields:
    return {key: value if key in NAMES else value[keep] for key, value in fields.items()}


def _check_classes(classes: object, n_classes: int) -> np.ndarray:
    """``classes`` as distinct class numbers."""
    one_number = isinstance(classes, numbers.Integral)
    chosen = np.arange(check_int(classes, "classes")) if one_number else np.asarray(classes)
    whole = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if whole and chosen.min() >= 0 and chosen.max() < n_classes and len(np.unique(chosen)) == len(chosen):
        return chosen
    raise ValueError(
        f"classes must be distinct numbers from 0 to {n_classes - 1}, or how many of the {n_classes} to take; "
        f"got {classes!r}"
    )


def _unit_rows(X: Any) -> Any:
    """Rows x / ||x||, over the entries that are known."""
    if sp.issparse(X):
        return normalize_rows(X)
    missing = np.isnan(X)
    rows = normalize_rows(np.where(missing, 0, X))
    rows[missing] = np.nan
    return rows


def _standard_columns(X: Any) -> np.ndarray:
    """(x - mean) / standard deviation, column by column."""
    _refuse_sparse(X, "standard")
    constant = np.nanmax(X, axis=0) == np.nanmin(X, axis=0)  # exact, where a computed deviation may be 1e-17
    means = np.nanmean(X, axis=0, dtype=np.float64)
    scales = np.nanstd(X, axis=0, dtype=np.float64)
    centred = np.where(constant & ~np.isnan(X), 0, X - means)
    return (centred / np.where(constant, 1, scales)).astype(X.dtype)


def _unit_interval(X: Any) -> np.ndarray:
    """(x - min) / (max - min), over the whole array."""
    _refuse_sparse(X, "unit_interval")
    low, high = np.nanmin(X), np.nanmax(X)
    return (X - low) / (high - low if high > low else 1)


def _refuse_sparse(X: Any, normalize: str) -> None:
    if sp.issparse(X):
        raise ValueError(f"normalize={normalize!r} would fill a sparse matrix; choose 'unit' for sparse data")


NORMALIZERS: dict[str, Callable[[Any], Any]] = {
    "unit": _unit_rows,
    "standard": _standard_columns,
    "unit_interval": _unit_interval,
}
