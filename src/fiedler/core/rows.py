"""Rows of a dense or sparse matrix: their lengths, the same rows at length one, some of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .backend import Array, asarray_like, eps, is_numpy, namespace

UNIT_TOLERANCE = 16  # machine precisions between a length and one, below which the row has length one


def sq_row_norms(X: Array) -> Array:
    """The squared Euclidean length of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).sum(X * X, axis=1)


def row_norms(X: Array) -> Array:
    """The Euclidean length of every row."""
    lengths = sq_row_norms(X)
    return namespace(lengths).sqrt(lengths)


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


def normalize_row_sums(rows: Array) -> Array:
    """Nonnegative rows scaled to sum to one; a row of zeros stays."""
    xp = namespace(rows)
    total = xp.sum(rows, axis=1)[:, None]
    return rows / xp.where(total > 0, total, 1)


def take_rows(X: Array, chosen: np.ndarray) -> Array:
    """The rows of the given numbers."""
    return X[chosen] if is_numpy(X) else namespace(X).take(X, asarray_like(chosen, X), axis=0)


def random_subset(n: int, share: float, rng: np.random.RandomState) -> np.ndarray:
    """The numbers of a share of n rows, at least two, drawn at random and in order."""
    return np.sort(rng.permutation(n)[: max(round(share * n), 2)])
