"""Kernels, which turn distances into edge weights; each is one row of `KERNELS` and one formula.

============  =============================================  ====================================================
binary        1                                              [lapgmm, section 3.2], [lpi, section 4.3]
heat          exp(-‖x-y‖² / (2 bandwidth²))                  the papers write exp(-‖x-y‖²/t), so t = 2 bandwidth²
dot           x'y                                            [lapgmm, section 3.2], [lpi, section 4.3]
polynomial    (x'y + 1)^degree                               [lpi, section 4.3]
cosine        x'y / (‖x‖ ‖y‖), 0 for a row of zeros          dot on unit rows
local         exp(-‖x-y‖² / (s_x s_y))                       Zelnik-Manor & Perona 2004, s = 7th neighbour's distance
============  =============================================  ====================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import check_int, check_positive, choose
from ..core.arrays import Array, is_numpy, itemsize, namespace, row_blocks, row_norms, to_numpy
from ..errors import InputError

# ---------------------------------------------------------------------------------------------------------------------
# Distances and inner products of rows: of all pairs, or of given ones.


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


# ---------------------------------------------------------------------------------------------------------------------

KernelName: TypeAlias = Literal["binary", "heat", "dot", "polynomial", "cosine", "local"]

MAX_SHARE = 1e-8  # of the largest number, up to which weights can be added up
LOCAL_NEIGHBOR = 7  # the neighbour whose distance is the scale of a row in the local kernel


@dataclass(frozen=True)
class KernelConstants:
    """Constants of a kernel, computed from the training data and used again for new points."""

    bandwidth: float | None = None
    degree: int = 2
    scales: Array | None = None  # (n,) distance of each training point to its 7th neighbour, for "local"
    metric: Array | None = None  # (r, d) the learned matrix A, under which rows are compared as A x
    neighbors: int | None = None  # under that metric, the number of rows that a new point is linked to; None: all


@dataclass(frozen=True)
class RowPairs:
    """The pairs ``A[rows[e]], B[columns[e]]`` on which a kernel is evaluated.

    Without ``rows`` these are all pairs, and ``distances`` is a matrix.
    """

    A: Array
    B: Array
    distances: Array
    rows: Array | None = None
    columns: Array | None = None
    scales_a: Array | None = None
    scales_b: Array | None = None

    def products(self) -> Array:
        """Return the inner products x'y; only the kernels that need them call this."""
        if self.rows is not None:
            return pair_products(self.A, self.B, self.rows, self.columns)
        products = self.A @ self.B.T
        return products.toarray() if hasattr(products, "toarray") else products

    def outer(self, a: Array, b: Array) -> Array:
        """Return ``a_i b_j`` for every pair."""
        return a[:, None] * b[None, :] if self.rows is None else a[self.rows] * b[self.columns]


def _binary(pairs: RowPairs, constants: KernelConstants) -> Array:
    return namespace(pairs.distances).ones_like(pairs.distances)


def _heat(pairs: RowPairs, constants: KernelConstants) -> Array:
    return _decay(0.5 * (pairs.distances / constants.bandwidth) ** 2)


def _decay(exponents: Array) -> Array:
    """Compute exp(-x); a weight so small that the inverse of a degree could overflow is zero."""
    xp = namespace(exponents)
    weights, limits = xp.exp(-exponents), xp.finfo(exponents.dtype)
    return xp.where(weights * limits.eps >= limits.smallest_normal, weights, 0)


def _dot(pairs: RowPairs, constants: KernelConstants) -> Array:
    return pairs.products()


def _polynomial(pairs: RowPairs, constants: KernelConstants) -> Array:
    return (pairs.products() + 1) ** constants.degree


def _cosine(pairs: RowPairs, constants: KernelConstants) -> Array:
    products, lengths = pairs.products(), pairs.outer(row_norms(pairs.A), row_norms(pairs.B))
    xp = namespace(products)
    return xp.where(lengths > 0, products / xp.where(lengths > 0, lengths, 1), 0)


def _local(pairs: RowPairs, constants: KernelConstants) -> Array:
    sq_distances, scales = pairs.distances**2, pairs.outer(pairs.scales_a, pairs.scales_b)
    xp = namespace(sq_distances)
    # A point with seven exact copies has scale 0; the limit of the formula is 1 at distance 0 and 0 elsewhere.
    limit = xp.astype(sq_distances == 0, sq_distances.dtype)
    return xp.where(scales > 0, _decay(sq_distances / xp.where(scales > 0, scales, 1)), limit)


Kernel = Callable[[RowPairs, KernelConstants], Array]
KERNELS: dict[str, Kernel] = {
    "binary": _binary,
    "heat": _heat,
    "dot": _dot,
    "polynomial": _polynomial,
    "cosine": _cosine,
    "local": _local,
}


def edge_weights(kernel: str, pairs: RowPairs, constants: KernelConstants) -> Array:
    """Return the weight of every pair; raise an error if their sums could overflow."""
    if (kernel == "heat" and constants.bandwidth is None) or (kernel == "local" and pairs.scales_b is None):
        raise InputError(
            f"the graph was not built with weight={kernel!r}, so it lacks the constants of that kernel",
            "pass the graph that the recipe built",
            code="no_kernel_constants",
            parameter="weight",
            value=kernel,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        weights = choose(KERNELS, kernel, option="weight")(pairs, constants)
    xp = namespace(weights)
    if 0 not in weights.shape and not float(xp.max(xp.abs(weights))) <= MAX_SHARE * float(xp.finfo(weights.dtype).max):
        raise InputError(
            f"weight={kernel!r} overflows on this data",
            "scale X down, or use weight='heat'",
            code="weights_overflow",
            parameter="weight",
            value=kernel,
        )
    return weights


def fit_constants(
    kernel: str, distances: Array, *, bandwidth: float | None, degree: int, scales: Array | None
) -> KernelConstants:
    """Return the constants of a kernel; a missing bandwidth is estimated from the neighbour distances."""
    choose(KERNELS, kernel, option="weight")
    if kernel == "polynomial":
        return KernelConstants(degree=check_int(degree, "degree"))
    if kernel == "local":
        return KernelConstants(scales=scales)
    if kernel != "heat":
        return KernelConstants()
    if bandwidth is not None:
        return KernelConstants(bandwidth=check_positive(bandwidth, "bandwidth"))
    return KernelConstants(bandwidth=median_distance(distances))


def median_distance(distances: Array) -> float:
    """Return the median neighbour distance, the default bandwidth."""
    median = float(np.median(to_numpy(distances))) if distances.shape[0] else 0.0
    if median > 0:
        return median
    raise InputError(
        "the median neighbour distance is 0 (no edges, or more than half of them join duplicate rows), "
        "so the bandwidth cannot be estimated",
        "set bandwidth to a positive number, or remove the duplicates",
        code="zero_bandwidth",
        parameter="bandwidth",
    )
