"""The rows of a cell: a data set loaded, prepared and reduced to the classes of its draw."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from fiedler._typing import Array, MatrixLike
from fiedler._validation import choose, import_optional
from fiedler.core.arrays import normalize_rows
from fiedler.datasets import load

from .protocol import Cell

BACKENDS = ("numpy", "torch", "cupy")


class Rows(NamedTuple):
    """The data that a task works on."""

    X: Any
    y: np.ndarray  # 0, 1, ..., K - 1
    k: int
    labelled: np.ndarray | None  # indices of the rows with known labels, where the draw selects some
    key: tuple[Any, ...]  # determines all of the above


def _tfidf(X: MatrixLike) -> sp.csr_array:
    return sp.csr_array(TfidfTransformer(norm=None).fit_transform(X))


def _standardize(X: MatrixLike) -> np.ndarray:
    """Scale columns to mean 0 and variance 1; missing values become the mean."""
    scaled = StandardScaler().fit_transform(X)
    return np.where(np.isfinite(scaled), scaled, 0.0)


# By the names that protocols use.
PREPARATIONS = {
    "unit": normalize_rows,
    "unit_interval": lambda X: (X - X.min()) / (X.max() - X.min()),
    "standard": _standardize,
    "tfidf": _tfidf,
    "centred": lambda X: X - X.mean(axis=0),
}


@lru_cache(maxsize=8)
def _load_prepared(source: str) -> tuple[Any, np.ndarray]:
    """Load a data set and prepare it; ``source`` is the JSON text of its table in the protocol."""
    table = json.loads(source)
    data = load(**table["load"], verbose=False)
    X = sp.csr_array(data.X, dtype=np.float64) if sp.issparse(data.X) else np.asarray(data.X, dtype=np.float64)
    for step in table.get("prepare", ()):
        X = choose(PREPARATIONS, step, option="prepare")(X)
    return X, np.asarray(data.y)


@lru_cache(maxsize=4)
def _select_classes(source: str, classes: tuple[int, ...] | None, n_components: int | None) -> tuple[Any, np.ndarray]:
    """Select the rows of some classes, drop columns that are zero in all of them, then reduce the dimension."""
    X, y = _load_prepared(source)
    if classes is not None:
        selected = np.isin(y, classes)
        X, y = X[selected], y[selected]
    if sp.issparse(X):
        X = sp.csr_array(X[:, np.flatnonzero(X.sum(axis=0))])
    if n_components is not None:
        X = principal_components(X, min(n_components, X.shape[0] - 1))
    return X, np.unique(y, return_inverse=True)[1]


def principal_components(X: MatrixLike, n_components: int) -> np.ndarray:
    """Return centred coordinates in the leading singular directions, by a randomised SVD with 7 power iterations.

    Sparse rows are centred after the projection; the first singular direction of uncentred rows is nearly their mean.
    """
    Z = TruncatedSVD(n_components, n_iter=7, random_state=0).fit_transform(X)
    return Z - Z.mean(axis=0)


def load_rows(cell: Cell, backend: str = "numpy") -> Rows:
    """Load the rows of a cell as arrays of a back end."""
    has_labels = "rate" in cell.at
    source, n_components = json.dumps(cell.source, sort_keys=True), cell.spec["options"].get("reduce")
    X, y = _select_classes(source, None if has_labels else cell.drawn, n_components)
    labelled = np.asarray(cell.drawn) if has_labels else None
    key = (source, cell.drawn, has_labels, n_components, backend)
    return Rows(on_backend(X, backend), y, int(y.max()) + 1, labelled, key)


def on_backend(X: MatrixLike, backend: str) -> Array:
    """Return dense rows as an array of ``backend``, on a GPU if there is one; sparse rows unchanged."""
    if backend == "numpy" or sp.issparse(X):
        return X
    if backend == "torch":
        torch: Any = import_optional("torch", extra="torch", purpose="arrays of torch")
        return torch.asarray(X, device="cuda" if torch.cuda.is_available() else "cpu")
    cupy: Any = import_optional("cupy", extra="cupy", purpose="arrays of CuPy")
    return cupy.asarray(X)
