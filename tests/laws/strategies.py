"""Hypothesis strategies for rows, labels and pairs that are awkward, and for rows on which exact laws hold.

A strategy draws a short description, such as ``Rows('duplicates', n=7, d=2, seed=5, dtype='int8', form='F')``, and
``build`` makes the data from it. A description is quick to draw and to shrink, and printed it is code that makes the
same data again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

Maker = Callable[[np.random.RandomState, int, int], np.ndarray]


# --------------------------------------------------------------------------------------------------------- values


def _noise(rng, n, d):
    return rng.normal(size=(n, d))


def _scaled(rng, n, d, *, size):
    return size * rng.normal(size=(n, d))


def _positive(rng, n, d):
    return rng.exponential(size=(n, d))


def _duplicates(rng, n, d):
    distinct = rng.normal(size=(rng.randint(1, 1 + max(1, n // 2)), d))
    return distinct[rng.randint(len(distinct), size=n)]


def _equal(rng, n, d):
    return np.tile(rng.normal(size=(1, d)), (n, 1))


def _zeros(rng, n, d):
    return np.zeros((n, d))


def _constant_columns(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, rng.rand(d) < 0.6] = rng.choice([0.0, 1.0, -3.0, 1e6])
    return X


def _constant_rows(rng, n, d):
    return np.tile(rng.normal(size=(n, 1)), (1, d))


def _zero_rows(rng, n, d):
    return rng.normal(size=(n, d)) * (rng.rand(n, 1) < 0.5)


def _mostly_zero(rng, n, d):
    return rng.exponential(size=(n, d)) * (rng.rand(n, d) < 0.3)


def _grid(rng, n, d):
    return rng.randint(-1, 2, size=(n, d)).astype(np.float64)


def _line(rng, n, d):
    return np.arange(n, dtype=np.float64)[:, None] * rng.normal(size=(1, d))


def _one_huge_value(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.randint(n), rng.randint(d)] = 10.0 ** rng.randint(3, 151)
    return X


def _mixed_columns(rng, n, d):
    return rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-150, 150, size=(1, d))


def _mixed_rows(rng, n, d):
    return rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-20, 20, size=(n, 1))


def _nearly_equal(rng, n, d):
    return 1 + 1e-16 * rng.randint(0, 9, size=(n, d))


def _far_from_zero(rng, n, d):
    return 1e8 + rng.normal(size=(n, d))


def _special_values(rng, n, d):
    values = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-8, 1e-300, 5e-324, 1e8, 1e150]
    return rng.choice(values, size=(n, d))


def _missing(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.rand(n, d) < 0.2] = np.nan
    return X


def _infinite(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.randint(n), rng.randint(d)] = rng.choice([np.inf, -np.inf])
    return X


def _groups(rng, n, d):
    return 20.0 * rng.randint(0, 3, size=(n, 1)) + rng.normal(size=(n, d))


VALUES: dict[str, Maker] = {
    "noise": _noise,
    "groups": _groups,
    "positive": _positive,
    "duplicates": _duplicates,
    "equal": _equal,
    "zeros": _zeros,
    "constant columns": _constant_columns,
    "constant rows": _constant_rows,
    "zero rows": _zero_rows,
    "mostly zero": _mostly_zero,
    "grid": _grid,
    "line": _line,
    "one huge value": _one_huge_value,
    "mixed columns": _mixed_columns,
    "mixed rows": _mixed_rows,
    "nearly equal": _nearly_equal,
    "far from zero": _far_from_zero,
    "special values": _special_values,
    "large": partial(_scaled, size=1e150),
    "huge": partial(_scaled, size=1e300),
    "small": partial(_scaled, size=1e-150),
    "tiny": partial(_scaled, size=1e-300),
    "subnormal": partial(_scaled, size=1e-320),
    "missing": _missing,
    "infinite": _infinite,
}
FITTABLE = (
    "noise",
    "groups",
    "positive",
    "duplicates",
    "mostly zero",
    "grid",
    "line",
)  # that most models can be fitted to


# ---------------------------------------------------------------------------------------------------- dtypes, forms

DTYPES = (
    "float64",
    "float32",
    "float16",
    "longdouble",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint64",
    "bool",
    ">f8",
    ">f4",
    ">i4",
    "object",
)
EXOTIC = ("float16", "longdouble", ">f8", ">f4", ">i4", "object")  # unknown to SciPy's sparse arrays and to tensors


def to_dtype(X: np.ndarray, dtype: str) -> np.ndarray:
    """Convert; what an integer type cannot hold becomes the nearest value that it can."""
    kind = np.dtype(dtype).kind
    with np.errstate(all="ignore"):
        if kind in "iu":
            limits = np.iinfo(dtype)
            return np.nan_to_num(np.clip(np.nan_to_num(X), limits.min / 2, limits.max / 2)).astype(dtype)
        return X.astype(dtype)


def _every_second(X):
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


DENSE: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every second": _every_second,
    "read-only": _read_only,
    "list": lambda X: X.tolist(),
    "masked array": np.ma.asarray,
}


def _explicit_zeros(X):
    rows, columns = np.indices(X.shape)
    return sp.csr_array(sp.coo_array((X.ravel(), (rows.ravel(), columns.ravel())), shape=X.shape))


def _int64_indices(X):
    W = sp.csr_array(X)
    return sp.csr_array((W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64)), shape=W.shape)


def _unsorted(X):
    W = _explicit_zeros(X)
    data, indices = W.data.reshape(X.shape)[:, ::-1], W.indices.reshape(X.shape)[:, ::-1]
    return sp.csr_array((data.ravel(), indices.ravel(), W.indptr), shape=X.shape)


def _repeated(X):
    """Each entry as the sum of itself and a zero."""
    W = sp.coo_array(X)
    data = np.concatenate([W.data, np.zeros_like(W.data)])
    return sp.coo_array((data, (np.tile(W.coords[0], 2), np.tile(W.coords[1], 2))), shape=X.shape)


def _read_only_csr(X):
    W = sp.csr_array(X)
    for part in (W.data, W.indices, W.indptr):
        part.flags.writeable = False
    return W


SPARSE: dict[str, Callable[[np.ndarray], Any]] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "bsr": sp.bsr_array,
    "csr matrix": sp.csr_matrix,
    "csc matrix": sp.csc_matrix,
    "coo matrix": sp.coo_matrix,
    "csr with zeros": _explicit_zeros,
    "csr with int64 indices": _int64_indices,
    "csr unsorted": _unsorted,
    "coo with repeated entries": _repeated,
    "csr read-only": _read_only_csr,
}


def _pandas(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _polars(X):
    import polars as pl

    return pl.DataFrame({f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})


def _strict(X):
    import array_api_strict

    return array_api_strict.asarray(np.ascontiguousarray(X))


def _torch(X):
    import torch

    return torch.asarray(np.ascontiguousarray(X))


def _installed(forms: dict[str, tuple[str, Callable[[np.ndarray], Any]]]) -> dict[str, Callable[[np.ndarray], Any]]:
    return {name: make for name, (module, make) in forms.items() if importlib.util.find_spec(module)}


FRAMES = _installed({"pandas": ("pandas", _pandas), "polars": ("polars", _polars)})
FOREIGN = _installed({"strict": ("array_api_strict", _strict), "torch": ("torch", _torch)})
FORMS = DENSE | SPARSE | FRAMES | FOREIGN


@dataclass(frozen=True)
class Rows:
    """Rows by the name of their values, their shape, seed, dtype and form."""

    values: str
    n: int
    d: int
    seed: int = 0
    dtype: str = "float64"
    form: str = "C"

    def array(self) -> np.ndarray:
        """Return the rows as a plain array of the dtype, as far as the form knows it."""
        X = VALUES[self.values](np.random.RandomState(self.seed), self.n, self.d)
        unknown = self.form not in DENSE and (self.dtype in EXOTIC or (self.form in FOREIGN and self.dtype == "uint64"))
        return to_dtype(X, "float64" if unknown else self.dtype)

    def build(self) -> Any:
        """Return the rows in their form."""
        return FORMS[self.form](self.array())


SEEDS = st.integers(0, 10**6)


@st.composite
def rows(draw, values=tuple(VALUES), n=(1, 30), d=(1, 5), dtypes=DTYPES, forms=tuple(FORMS)) -> Rows:
    """Draw rows: half of them float64 in C order, so that each kind of values is met in its plain form too."""
    plain = draw(st.booleans())
    return Rows(
        draw(st.sampled_from(values)),
        draw(st.integers(*n)),
        draw(st.integers(*d)),
        draw(SEEDS),
        "float64" if plain else draw(st.sampled_from(dtypes)),
        "C" if plain else draw(st.sampled_from(forms)),
    )


@dataclass(frozen=True)
class Blobs:
    """Well separated groups of 10 to 20 rows, in random order, with the exact number of clusters."""

    n_clusters: int
    d: int
    seed: int

    def array(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows, multiples of 2**-10, so that float32 holds them without rounding, and their groups."""
        rng = np.random.RandomState(self.seed)
        labels = np.repeat(np.arange(self.n_clusters), 2 * rng.randint(5, 11, size=self.n_clusters))
        centers = 12 * np.eye(max(self.d, self.n_clusters))[: self.n_clusters, : self.d]
        if self.d < self.n_clusters:  # corners of a grid that are 12 apart
            centers = 12.0 * np.stack(np.unravel_index(np.arange(self.n_clusters), (2, 2, 2)[-self.d :])).T
        X = centers[labels] + rng.normal(size=(len(labels), self.d))
        order = rng.permutation(len(X))
        return np.round(X[order] * 2**10) / 2**10, labels[order]

    def sheet(self) -> np.ndarray:
        """Return 60 rows on a plane instead, for models of one sheet."""
        rng = np.random.RandomState(self.seed)
        axes = np.linalg.qr(rng.normal(size=(self.d, 2)))[0].T
        return np.round(rng.uniform(-8, 8, size=(60, 2)) @ axes * 2**10) / 2**10


@st.composite
def blobs(draw, own_directions: bool = False) -> Blobs:
    """Draw 2 to 4 groups in 2 to 5 dimensions, with ``own_directions`` in as many as there are groups or more."""
    n_clusters = draw(st.integers(2, 4))
    return Blobs(n_clusters, draw(st.integers(n_clusters if own_directions else 2, 5)), draw(SEEDS))


# ---------------------------------------------------------------------------------------------------- labels, pairs


@dataclass(frozen=True)
class Labels:
    """Labels by their kind, number and seed."""

    kind: str
    n: int
    seed: int = 0

    def build(self) -> Any:
        """Return the labels."""
        return LABELS[self.kind](np.random.RandomState(self.seed), self.n)


LABELS: dict[str, Callable[[np.random.RandomState, int], Any]] = {
    "thirds": lambda rng, n: np.arange(n) * 3 // max(n, 1),
    "random": lambda rng, n: rng.randint(0, 4, size=n),
    "half unknown": lambda rng, n: np.where(rng.rand(n) < 0.5, -1, np.arange(n) * 3 // max(n, 1)),
    "few known": lambda rng, n: np.where(np.arange(n) < 2, np.arange(n), -1),
    "one class": lambda rng, n: np.zeros(n, dtype=int),
    "all unknown": lambda rng, n: np.full(n, -1),
    "all different": lambda rng, n: rng.permutation(n),
    "large numbers": lambda rng, n: rng.choice([2**62, -(2**62), 7], size=n),
    "strings": lambda rng, n: rng.choice(["a", "b", "été"], size=n),
    "objects": lambda rng, n: np.array(["x", "y"], dtype=object)[rng.randint(0, 2, size=n)],
    "floats": lambda rng, n: rng.choice([0.0, 1.0, 2.5], size=n),
    "booleans": lambda rng, n: rng.rand(n) < 0.5,
    "uint8": lambda rng, n: rng.randint(0, 3, size=n).astype(np.uint8),
    "big-endian": lambda rng, n: rng.randint(-1, 3, size=n).astype(">i4"),
    "missing": lambda rng, n: np.where(rng.rand(n) < 0.5, np.nan, 1.0),
    "None": lambda rng, n: np.array([None, "a"], dtype=object)[rng.randint(0, 2, size=n)],
    "mixed": lambda rng, n: np.array([1, "a", 2.5], dtype=object)[rng.randint(0, 3, size=n)],
    "complex": lambda rng, n: rng.randint(0, 2, size=n) + 1j,
    "a column": lambda rng, n: rng.randint(0, 3, size=(n, 1)),
    "list": lambda rng, n: rng.randint(0, 3, size=n).tolist(),
    "one short": lambda rng, n: rng.randint(0, 3, size=max(n - 1, 0)),
    "read-only": lambda rng, n: _read_only(rng.randint(0, 3, size=n)),
}


def labels(kinds=tuple(LABELS), n=(0, 30)) -> st.SearchStrategy[Labels]:
    return st.builds(Labels, st.sampled_from(kinds), st.integers(*n), SEEDS)
