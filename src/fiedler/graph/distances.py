"""Distances and inner products of rows: of all pairs, or of given ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from .._foreign_warnings import ignore_foreign_warnings
from ..core.backend import Array, is_numpy, itemsize, namespace, row_blocks


def pairwise_distances(A: Array, B: Array) -> Array:
    """Return all Euclidean distances between rows of ``A`` and ``B``; products are computed in double precision."""
    if is_numpy(A):
        with ignore_foreign_warnings():
            return euclidean_distances(A, B)
    xp = namespace(A)
    center = xp.mean(B, axis=0)
    left, right = xp.astype(A - center, xp.float64), xp.astype(B - center, xp.float64)
    sq_distances = xp.sum(left**2, axis=1)[:, None] + xp.sum(right**2, axis=1)[None, :] - 2 * (left @ right.T)
    return xp.astype(xp.sqrt(xp.where(sq_distances > 0, sq_distances, 0)), A.dtype)


def pair_distances(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """Return the distance of each pair ``A[rows[e]], B[columns[e]]``, computed from differences."""
    if sp.issparse(A):
        return np.sqrt(_over_sparse_pairs(A, B, rows, columns, lambda a, b: (a - b).power(2)))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sqrt(xp.sum((a - b) ** 2, axis=1)))


def pair_products(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """Return the inner product of each pair ``A[rows[e]], B[columns[e]]``."""
    if sp.issparse(A):
        return _over_sparse_pairs(A, B, rows, columns, lambda a, b: a.multiply(b))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sum(a * b, axis=1))


def _over_sparse_pairs(A: Array, B: Array, rows: Array, columns: Array, entries: Callable) -> Array:
    """Return the row sums of a sparse function of each pair of rows, in blocks."""
    blocks = row_blocks(rows.shape[0], 48 * max(1, A.nnz // A.shape[0]), A)
    parts = [np.asarray(entries(A[rows[e]], B[columns[e]]).sum(axis=1)).ravel() for e in blocks]
    return np.concatenate(parts).astype(A.dtype, copy=False) if parts else np.empty(0, dtype=A.dtype)


def _over_pairs(A: Array, B: Array, rows: Array, columns: Array, function: Callable) -> Array:
    xp = namespace(A)
    blocks = row_blocks(rows.shape[0], 4 * itemsize(A) * A.shape[1], A)
    parts = [function(xp.take(A, rows[e], axis=0), xp.take(B, columns[e], axis=0), xp) for e in blocks]
    return xp.concat(parts) if parts else A[:0, 0]
