"""Load data sets by name, with the same fields for every generator, file and library.

The library itself has the generators with their defaults and the sets that come with scikit-learn. The papers' data
sets, which are files, come with the distribution ``fiedler-papers``.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from .._registry import import_papers
from .._validation import check_int, choose, did_you_mean
from ..core.arrays import normalize_rows
from ..errors import DataNotFoundError, InputError, shown
from . import make

Fields = dict[str, Any]
Matrix: TypeAlias = np.ndarray | sp.csr_array
RowFilter = Callable[[Mapping[str, Any]], np.ndarray]

NAME_FIELDS = ("target_names", "feature_names")  # fields without one entry per sample


@dataclass(frozen=True)
class Image:
    """Layout of images: ``X[i].reshape(shape, order=order)`` is the upright image of sample i."""

    shape: tuple[int, int]
    order: Literal["C", "F"]


@dataclass(frozen=True)
class Dataset:
    """One data set, and the function that makes its ``X``, ``y`` and other fields."""

    name: str
    description: str
    shape: tuple[int, int]
    n_classes: int
    build: Callable[[], Fields] = dict
    image: Image | None = None
    subsets: Mapping[str, RowFilter] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Description, shape and number of classes in one line."""
        n_samples, n_features = self.shape
        return f"{self.description}: {n_samples} x {n_features}, {self.n_classes} classes"

    def is_local(self, cache: str | os.PathLike[str] | None) -> bool:
        """Return whether the set can be read without a download."""
        return True

    def read(self, *, download: bool, cache: str | os.PathLike[str] | None, verbose: bool) -> Fields:
        """Return ``X``, ``y`` and the other fields; the options are those of :func:`load`."""
        return self.build()


def _generated(generate: Callable[..., make.PointsAndLabels]) -> Callable[[], Fields]:
    """Use the defaults of a generator and a fixed seed."""
    return lambda: dict(zip(("X", "y"), generate(random_state=0)))


def _bundled(load_bunch: Callable[[], Any]) -> Callable[[], Fields]:
    """Use a set that comes with scikit-learn."""

    def build() -> Fields:
        bunch = load_bunch()
        names = {key: np.asarray(bunch[key]).astype(str) for key in NAME_FIELDS}
        return {"X": bunch.data, "y": bunch.target, **names}

    return build


DATASETS: dict[str, Dataset] = {
    row.name: row
    for row in (
        Dataset("two_moons", "two interleaved half circles", (500, 2), 2, _generated(make.two_moons)),
        Dataset("circles", "two concentric circles", (500, 2), 2, _generated(make.circles)),
        Dataset("swiss_roll", "a rolled-up sheet, cut into segments", (1000, 3), 4, _generated(make.swiss_roll)),
        Dataset("blobs", "round Gaussian clusters in the plane", (500, 2), 3, _generated(make.blobs)),
        Dataset("iris", "flowers of three iris species", (150, 4), 3, _bundled(sklearn_datasets.load_iris)),
        Dataset("wine", "chemical analysis of three wines", (178, 13), 3, _bundled(sklearn_datasets.load_wine)),
        Dataset(
            "breast_cancer",
            "cell nuclei of breast tumours, malignant or benign",
            (569, 30), 2,
            _bundled(sklearn_datasets.load_breast_cancer),
        ),
        Dataset(
            "digits",
            "handwritten digits of 8 x 8 pixels, 0 to 16",
            (1797, 64), 10,
            _bundled(sklearn_datasets.load_digits),
            Image((8, 8), "C"),
        ),
    )
}  # fmt: skip


def all_datasets() -> Mapping[str, Dataset]:
    """Return the rows of the library, and those of fiedler-papers if it is installed."""
    papers = import_papers("datasets")
    return DATASETS if papers is None else DATASETS | papers.DATASETS


def list_datasets() -> dict[str, str]:
    """Return the names of all data sets, each with a description in one line.

    Those of the papers are listed if the distribution ``fiedler-papers`` is installed.

    Returns
    -------
    dict of str to str
        Descriptions by name.

    Examples
    --------
    >>> list_datasets()["digits"]
    'handwritten digits of 8 x 8 pixels, 0 to 16: 1797 x 64, 10 classes'
    """
    return {name: row.summary for name, row in all_datasets().items()}


def is_available(name: str, *, cache: str | os.PathLike[str] | None = None) -> bool:
    """Return whether a data set can be loaded without a download.

    That is the case if it is generated, comes with scikit-learn, or is a file in the data folder or the cache.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    cache : path or None, default=None
        The cache folder, as in :func:`load`.

    Examples
    --------
    >>> is_available("iris")
    True
    """
    return _find_row(name).is_local(cache)


def load(
    name: str,
    *,
    subset: str | None = None,
    classes: int | Sequence[int] | None = None,
    normalize: Literal["unit", "standard", "unit_interval"] | None = None,
    download: bool = True,
    cache: str | os.PathLike[str] | None = None,
    verbose: bool = True,
) -> Bunch:
    """Load a data set by name.

    Synthetic and small sets need no file. The papers' data sets need the distribution ``fiedler-papers``. They are
    searched as ``<name>.npz`` in the folder given by the environment variable ``FIEDLER_DATA``, then in the cache
    (``FIEDLER_CACHE``, or the user's cache directory), and are otherwise downloaded from their public source, compared
    with a fingerprint of their content, and cached.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    subset : str or None, default=None
        A subset that papers use: ``"test"`` and ``"train"`` (usps, reuters21578), ``"top30"``, the 30 largest
        classes (tdt2, reuters21578; all term columns stay, even those that become empty), ``"ABCD"`` (letter),
        ``"unique"``, without copied images (umist), ``"complete"``, without the 8 rows that lack the age (dermatology).
        Classes without samples are dropped and the others renumbered.
    classes : int, sequence of int or None, default=None
        Keep only these classes, by number within the subset, and number them 0, 1, ... in the given order. An int K
        selects the first K classes.
    normalize : {"unit", "standard", "unit_interval"} or None, default=None
        Applied last, to ``X``: rows to unit Euclidean length (zero rows stay zero); columns to mean 0 and variance 1
        (constant columns to 0); or all values to [0, 1] by the minimum and maximum of all. Missing values stay missing.
        The last two do not accept sparse data.
    download : bool, default=True
        Whether to download the set if there is no local file.
    cache : path or None, default=None
        The cache folder; by default the one described above.
    verbose : bool, default=True
        Whether to report the progress of downloads on stderr.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields

        - ``X``: ndarray or csr_array of shape (n_samples, n_features), float32 if it is stored so, else float64;
        - ``y``: class numbers of shape (n_samples,);
        - ``target_names``: class names, so that ``target_names[y]`` names the class of each sample; without names, the
          class numbers in the complete set;
        - ``feature_names``: names of the columns, or None;
        - ``name`` and ``description``;
        - ``image_shape`` and ``image_order`` of images: ``X[i].reshape(image_shape, order=image_order)`` is upright;
        - other arrays with one entry per sample: ``is_test`` (usps, reuters21578), ``is_duplicate`` and ``X_28x23``, a
          smaller version of the images (umist).

    Examples
    --------
    >>> digits = load("digits", classes=[3, 8], normalize="unit_interval")
    >>> digits.X.shape, digits.target_names.tolist(), digits.image_shape
    ((357, 64), ['3', '8'], (8, 8))
    """
    row = _find_row(name)
    in_subset = None if subset is None else _check_subset(row, subset)
    normalizer = None if normalize is None else choose(NORMALIZERS, normalize, option="normalize")
    fields = _complete(row.read(download=download, cache=cache, verbose=verbose))
    if in_subset is not None:
        fields = _keep_rows(fields, in_subset(fields))
        fields = _keep_classes(fields, np.unique(fields["y"]))
    if classes is not None:
        fields = _keep_classes(fields, _check_classes(classes, len(fields["target_names"])))
    if normalizer is not None:
        fields["X"] = normalizer(fields["X"])
    image = {} if row.image is None else {"image_shape": row.image.shape, "image_order": row.image.order}
    return Bunch(**{"feature_names": None, **fields, **image}, name=row.name, description=row.summary)


def _find_row(name: str) -> Dataset:
    if isinstance(name, str) and name in DATASETS:  # without importing the others
        return DATASETS[name]
    rows = all_datasets()
    if isinstance(name, str) and name in rows:
        return rows[name]
    more = "" if import_papers() else "; for those of the papers, install fiedler-papers: pip install ./papers"
    problem = f"there is no data set {shown(name)}{did_you_mean(name, rows)}"
    hint = f"choose one of {list(rows)}{more}"
    raise DataNotFoundError(problem, hint, code="unknown_dataset", parameter="name", value=name)


def _complete(fields: Fields) -> Fields:
    """Return the fields with ``X`` as floats, ``y`` as int64, and a name for every class."""
    X, y = fields["X"], fields["y"].astype(np.int64)
    keep_float32 = X.dtype == np.float32 and not sp.issparse(X)
    class_numbers = np.arange(y.max() + 1).astype(str)
    return {"target_names": class_numbers, **fields, "X": X if keep_float32 else X.astype(np.float64), "y": y}


def _check_subset(row: Dataset, subset: str) -> RowFilter:
    """Return the row filter of a named subset."""
    if not row.subsets:
        problem = f"data set {row.name!r} has no named subsets"
        hint = "use subset=None, or select classes"
        raise InputError(problem, hint, code="no_subsets", parameter="subset", value=subset)
    return choose(row.subsets, subset, option="subset")


def _keep_classes(fields: Fields, classes: np.ndarray) -> Fields:
    """Return the samples of ``classes``, renumbered 0, 1, ... in the given order."""
    numbering = np.full(len(fields["target_names"]), -1)
    numbering[classes] = np.arange(len(classes))
    y = numbering[fields["y"]]
    renamed = {"y": y, "target_names": fields["target_names"][classes]}
    return _keep_rows(fields | renamed, y >= 0)


def _keep_rows(fields: Fields, keep: np.ndarray) -> Fields:
    return {key: value if key in NAME_FIELDS else value[keep] for key, value in fields.items()}


def _check_classes(classes: object, n_classes: int) -> np.ndarray:
    """Return ``classes`` as an array of distinct class numbers."""
    is_count = isinstance(classes, numbers.Integral)
    selected = np.arange(check_int(classes, "classes")) if is_count else np.asarray(classes)
    integers = selected.ndim == 1 and selected.size > 0 and selected.dtype.kind in "iu"
    if integers and selected.min() >= 0 and selected.max() < n_classes and len(np.unique(selected)) == len(selected):
        return selected
    problem = (
        f"classes must be distinct numbers from 0 to {n_classes - 1}, or a count of at most {n_classes}; "
        f"got {shown(classes)}"
    )
    raise InputError(problem, code="invalid_classes", parameter="classes", value=classes, n_classes=n_classes)


def _unit_rows(X: Matrix) -> Matrix:
    """Scale the rows to x / ‖x‖, ignoring missing entries."""
    if isinstance(X, sp.csr_array):
        return normalize_rows(X)
    missing = np.isnan(X)
    rows = normalize_rows(np.where(missing, 0, X))
    rows[missing] = np.nan
    return rows


def _standard_columns(X: Matrix) -> np.ndarray:
    """Scale the columns to (x - mean) / standard deviation."""
    _refuse_sparse(X, "standard")
    constant = np.nanmax(X, axis=0) == np.nanmin(X, axis=0)  # exact, whereas a computed deviation may be 1e-17
    means = np.nanmean(X, axis=0, dtype=np.float64)
    scales = np.nanstd(X, axis=0, dtype=np.float64)
    centered = np.where(constant & ~np.isnan(X), 0, X - means)
    return (centered / np.where(constant, 1, scales)).astype(X.dtype)


def _unit_interval(X: Matrix) -> np.ndarray:
    """Scale all values to (x - min) / (max - min)."""
    _refuse_sparse(X, "unit_interval")
    low, high = np.nanmin(X), np.nanmax(X)
    return (X - low) / (high - low if high > low else 1)


def _refuse_sparse(X: Matrix, normalize: str) -> None:
    if sp.issparse(X):
        problem = f"normalize={normalize!r} does not accept sparse data"
        raise InputError(problem, "choose 'unit'", code="sparse_not_supported", parameter="normalize", value=normalize)


NORMALIZERS: dict[str, Callable[[Matrix], Matrix]] = {
    "unit": _unit_rows,
    "standard": _standard_columns,
    "unit_interval": _unit_interval,
}
