"""The rows of a cell: a data set loaded, prepared and cut down to the classes of its draw."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from fiedler._validation import choose, import_optional
from fiedler.core.rows import normalize_rows
from fiedler.datasets import load

from .protocol import Cell

BACKENDS = ("numpy", "torch", "cupy")


class Rows(NamedTuple):
    """What a task works on."""

    X: Any
    y: np.ndarray  # 0, 1, ..., K - 1
    k: int
    known: np.ndarray | None  # the rows whose label is known, where the draw says so
    key: tuple[Any, ...]  # what decides all of this


def _tfidf(X: Any) -> Any:
    return sp.csr_array(TfidfTransformer(norm=None).fit_transform(X))


def _standard(X: Any) -> Any:
    """Mean 0 and variance 1; a missing value becomes the mean."""
    scaled = StandardScaler().fit_transform(X)
    return np.where(np.isfinite(scaled), scaled, 0.0)


PREPARATIONS = {
    "unit": normalize_rows,
    "unit_interval": lambda X: (X - X.min()) / (X.max() - X.min()),
    "standard": _standard,
    "tfidf": _tfidf,
    "centred": lambda X: X - X.mean(axis=0),
}


@lru_cache(maxsize=8)
def _whole(source: str) -> tuple[Any, np.ndarray]:
    """A prepared data set, of which the last few are kept."""
    given = json.loads(source)
    data = load(**given["load"], verbose=False)
    X = sp.csr_array(data.X, dtype=np.float64) if sp.issparse(data.X) else np.asarray(data.X, dtype=np.float64)
    for step in given.get("prepare", ()):
        X = choose(PREPARATIONS, step, option="prepare")(X)
    return X, np.asarray(data.y)


@lru_cache(maxsize=4)
def _part(source: str, classes: tuple[int, ...] | None, reduce: int | None) -> tuple[Any, np.ndarray]:
    """The rows of some classes, sparse ones without the columns that none of them uses; then principal components."""
    X, y = _whole(source)
    if classes is not None:
        kept = np.isin(y, classes)
        X, y = X[kept], y[kept]
    if sp.issparse(X):
        X = sp.csr_array(X[:, np.flatnonzero(X.sum(axis=0))])
    if reduce is not None:
        X = principal(X, min(reduce, X.shape[0] - 1))
    return X, np.unique(y, return_inverse=True)[1]


def principal(X: Any, size: int) -> np.ndarray:
    """Centred coordinates in the leading singular directions, randomly sketched and seven times sharpened.

    The centre of sparse rows is taken off after the projection; of the rows' own singular directions the first is then
    nearly their mean.
    """
    Z = TruncatedSVD(size, n_iter=7, random_state=0).fit_transform(X)
    return Z - Z.mean(axis=0)


def rows_of(cell: Cell, backend: str = "numpy") -> Rows:
    """The rows of a cell, on a back end."""
    labelled = "rate" in cell.at
    source, options = json.dumps(cell.source, sort_keys=True), cell.spec["options"]
    X, y = _part(source, None if labelled else cell.chosen, options.get("reduce"))
    known = np.asarray(cell.chosen) if labelled else None
    key = (source, cell.chosen, labelled, options.get("reduce"), backend)
    return Rows(on_backend(X, backend), y, int(y.max()) + 1, known, key)


def on_backend(X: Any, backend: str) -> Any:
    """Dense rows as an array of ``backend``, on a GPU where there is one; sparse rows as they are."""
    if backend == "numpy" or sp.issparse(X):
        return X
    if backend == "torch":
        torch = import_optional("torch", extra="torch", purpose="the torch back end")
        return torch.asarray(X, device="cuda" if torch.cuda.is_available() else "cpu")
    return import_optional("cupy", extra="cupy", purpose="the CuPy back end").asarray(X)
