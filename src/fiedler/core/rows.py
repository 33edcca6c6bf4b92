"""Rows of a dense or sparse matrix: norms, scaling to unit length or to sum one, subsets."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._validation import check_overflow
from .backend import Array, asarray_like, convert_like, eps, is_numpy, itemsize, namespace

UNIT_TOLERANCE = 16  # machine precisions between a length and one, below which the row has length one


def convert_rows(X: Array, reference: Array) -> Array:
    """Convert validated new rows as :func:`convert_like` does; refuse entries too large for the dtype of the fit."""
    if itemsize(X) > itemsize(reference):
        check_overflow(*(one.data if sp.issparse(one) else one for one in (X, reference)))
    return convert_like(X, reference)


def sq_row_norms(X: Array) -> Array:
    """Return the squared Euclidean norm of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).sum(X * X, axis=1)


def row_norms(X: Array) -> Array:
    """Return the Euclidean norm of every row."""
    sq_norms = sq_row_norms(X)
    return namespace(sq_norms).sqrt(sq_norms)


def normalize_rows(X: Array) -> Array:
    """Scale rows to length one; a row of zeros, or one that has length one up to rounding, is left unchanged.

    Scaling twice is therefore the same as scaling once, to the last bit. Among equally near rows the last bit decides
    which are neighbours, so a graph on rows scaled twice could differ.
    """
    lengths = row_norms(X)
    xp = namespace(lengths)
    unchanged = (lengths == 0) | (xp.abs(lengths - 1) <= UNIT_TOLERANCE * eps(lengths))
    divisor = xp.where(unchanged, xp.ones_like(lengths), lengths)
    if not sp.issparse(X):
        return X / divisor[:, None]
    rows = sp.csr_array(X, copy=True)
    rows.data = rows.data / np.repeat(divisor, np.diff(rows.indptr))
    return rows


def normalize_row_sums(X: Array) -> Array:
    """Scale non-negative rows to sum to one; rows of zeros are left unchanged."""
    sums = np.asarray(X.sum(axis=1)).ravel() if sp.issparse(X) else namespace(X).sum(X, axis=1)
    sums = namespace(sums).where(sums > 0, sums, 1)
    return sp.csr_array(sp.diags_array(1 / sums) @ X) if sp.issparse(X) else X / sums[:, None]


def take_rows(X: Array, indices: np.ndarray) -> Array:
    """Return the rows with the given indices."""
    return X[indices] if is_numpy(X) else namespace(X).take(X, asarray_like(indices, X), axis=0)


def replace_rows(X: Array, indices: np.ndarray, others: Array) -> Array:
    """Return a copy of ``X`` in which ``others``, of the same library, are the rows with the given indices."""
    kept = np.ones(X.shape[0], dtype=bool)
    kept[indices] = False
    position = np.argsort(np.concatenate([np.flatnonzero(kept), indices]))
    return take_rows(append_rows(take_rows(X, np.flatnonzero(kept)), others), position)


def append_rows(X: Array, others: Array) -> Array:
    """Return the rows of ``X`` and those of ``others``, of the same library, in one array."""
    if sp.issparse(X):
        return sp.csr_array(sp.vstack([X, others], format="csr"))
    return namespace(X).concat([X, others], axis=0)


def random_subset(n: int, share: float, rng: np.random.RandomState) -> np.ndarray:
    """Draw a share of the indices 0 .. n-1, at least two of them, in ascending order."""
    return np.sort(rng.permutation(n)[: max(round(share * n), 2)])


def mean_row(X: Array) -> Array:
    """Return the mean of the rows, added up in double precision, in their own one."""
    if sp.issparse(X):
        return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(X.dtype)
    xp = namespace(X)
    return xp.astype(xp.sum(X, axis=0, dtype=xp.float64) / X.shape[0], X.dtype)
