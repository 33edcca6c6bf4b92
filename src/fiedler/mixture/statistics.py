"""Sufficient statistics of Gaussian components: counts, sums and second moments of groups of rows, which add up.

    n_g = Σ_{i ∈ g} 1,      s_g = Σ_{i ∈ g} x_i,      M_g = Σ_{i ∈ g} x_i x_i'

The components of a mixture depend on the rows through these sums alone, with memberships as weights in EM. Those of
disjoint rows are added, and those of groups are merged to coarser groups, without a pass over the rows: a partition
whose clusters are unions of a thousand groups is scored from a thousand records.

Rows are measured from a common origin, their mean, so that E[xx'] - μμ' keeps its digits. Groups are summed in double
precision; there each row is used once, n d² operations whatever the number of groups. Weighted sums use every row for
every component, n K d² operations, and can be computed in single precision, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import array_api_compat
import numpy as np

from ..core.arrays import Array, arange, asarray_like, is_numpy, namespace, outer_rows, row_blocks, to_numpy
from ..core.parallel import map_blocks
from ..core.sparse import csr, matmul

CACHE_BYTES = 2**22  # size of a block of rows on the host: fits the cache of a core
DEVICE_BYTES = 2**32  # size of a block of rows on an accelerator in double precision, half of it in single
OUTER_FACTOR = 3  # columns per component above which NumPy multiplies weights by rows first
SUMS_BYTES = 2**26  # size of the sums of all parts together
MAX_PARTS = 16  # parts of the rows, whose sums are added in order whatever the number of threads
GROUP_CHUNK = 64  # smallest number of rows of one group that are multiplied at once


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over the rows of m groups (or components), in double precision."""

    counts: Array  # (m,): numbers of rows, or their total weights
    sums: Array  # (m, d): Σ x, measured from the origin
    second_moments: Array  # Σ xx' of each group (m, d, d), of all groups (1, d, d), or the diagonals alone (m, d)
    origin: Array  # (d,), from which rows are measured, representable in their precision

    @property
    def means(self) -> Array:
        """The mean row of each group, measured from the origin; that of an empty group is the origin."""
        return self.sums / namespace(self.counts).where(self.counts > 0, self.counts, 1)[:, None]

    @property
    def mean_variance(self) -> float:
        """The variance of all rows, averaged over the columns."""
        xp, total = namespace(self.counts), float(namespace(self.counts).sum(self.counts))
        squares, mean = xp.sum(squared_sums(self.second_moments), axis=0) / total, xp.sum(self.sums, axis=0) / total
        return float(xp.mean(squares - mean**2))

    def __add__(self, other: Statistics) -> Statistics:
        """Add the sums of other rows of the same groups, measured from the same origin."""
        return replace(
            self,
            counts=self.counts + other.counts,
            sums=self.sums + other.sums,
            second_moments=self.second_moments + other.second_moments,
        )

    def merge(self, groups: Array, n_groups: int | None = None) -> Statistics:
        """Sum the groups that have the same number in ``groups``, shape (m,), into one."""
        host = to_numpy(groups)
        n_groups = int(host.max()) + 1 if n_groups is None else n_groups
        order, ends = np.argsort(host, kind="stable"), np.cumsum(np.bincount(host, minlength=n_groups))
        members = csr(
            namespace(self.counts).ones_like(self.counts),
            asarray_like(order, self.counts),
            asarray_like(np.concatenate([[0], ends]), self.counts),
            (n_groups, len(host)),
        )
        return self._transformed(lambda values: matmul(members, values))

    def combine(self, weights: Array) -> Statistics:
        """Compute the sums of k components in which group g has weight ``weights[g, k]``."""
        return self._transformed(lambda values: weights.T @ values)

    def _transformed(self, transform: Any) -> Statistics:
        """Apply a linear map of the groups to all three sums."""
        xp, moments = namespace(self.counts), self.second_moments
        if moments.ndim == 2 or moments.shape[0] == self.counts.shape[0]:
            flat = transform(xp.reshape(moments, (moments.shape[0], -1)))
            moments = xp.reshape(flat, (flat.shape[0], *moments.shape[1:]))
        counts = transform(self.counts[:, None])[:, 0]
        return replace(self, counts=counts, sums=transform(self.sums), second_moments=moments)


def squared_sums(second_moments: Array) -> Array:
    """Return Σ x_a², the diagonals of second moments of any shape."""
    return second_moments if second_moments.ndim == 2 else namespace(second_moments).linalg.diagonal(second_moments)


def group_statistics(
    X: Array,
    groups: Array,
    n_groups: int | None = None,
    *,
    squares_only: bool = False,
    origin: Array | None = None,
    weights: np.ndarray | None = None,
) -> Statistics:
    """Compute the statistics of groups of rows, in double precision."""
    # Rows are ordered by group and cut into chunks of equal length, so that thousands of groups take one call.
    xp, d, host = namespace(X), X.shape[1], to_numpy(groups)
    origin = mean_origin(X) if origin is None else origin
    n_groups = int(host.max()) + 1 if n_groups is None else n_groups
    counts = np.bincount(host, minlength=n_groups)
    order = xp.argsort(asarray_like(host, X), stable=True)
    size = max(GROUP_CHUNK, d)
    n_chunks = -(-counts // size)
    group_of_chunk = np.repeat(np.arange(n_groups), n_chunks)
    number_in_group = np.arange(len(group_of_chunk)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
    first_row = np.repeat(np.cumsum(counts) - counts, n_chunks) + size * number_in_group
    n_rows = np.minimum(np.repeat(counts, n_chunks) - size * number_in_group, size)
    within = arange(size, X)
    row_weights = None if weights is None else asarray_like(weights, X, dtype=xp.float64)

    def sums(chunks: slice) -> tuple[int, Statistics]:
        first, filled = (asarray_like(part[chunks], X)[:, None] for part in (first_row, n_rows))
        positions = xp.where(within < filled, first + within, first)
        numbers = xp.take(order, xp.reshape(positions, (-1,)), axis=0)
        Z = xp.reshape(centered(xp.take(X, numbers, axis=0), origin, xp.float64), (-1, size, d))
        Z = xp.where((within < filled)[:, :, None], Z, 0)
        w, wZ = xp.astype(within < filled, xp.float64), Z
        if row_weights is not None:
            w = w * xp.reshape(xp.take(row_weights, numbers), (-1, size))
            wZ = w[:, :, None] * Z
        moments = xp.sum(wZ * Z, axis=1) if squares_only else xp.matrix_transpose(wZ) @ Z
        of_chunks = Statistics(xp.sum(w, axis=1), xp.sum(wZ, axis=1), moments, origin)
        own = group_of_chunk[chunks]
        return int(own[0]), of_chunks.merge(own - own[0])

    bytes_per_chunk = 16 * size * d + 8 * d * d
    blocks = row_blocks(len(group_of_chunk), bytes_per_chunk, X, host_bytes=CACHE_BYTES, device_bytes=DEVICE_BYTES)
    zeros = lambda *shape: xp.zeros(shape, dtype=xp.float64, device=array_api_compat.device(X))  # noqa: E731
    total = (zeros(n_groups), zeros(n_groups, d), zeros(n_groups, d) if squares_only else zeros(n_groups, d, d))
    for start, part in map_blocks(sums, blocks, X):
        stop = start + part.counts.shape[0]
        for values, terms in zip(total, (part.counts, part.sums, part.second_moments)):
            values[start:stop, ...] += terms
    return Statistics(*total, origin)


@cache
def _triangle(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and columns of the upper triangle of a d x d matrix, and the position in it of each matrix entry."""
    rows, columns = np.triu_indices(d)
    position = np.zeros((d, d), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(len(rows))
    return rows, columns, position.ravel()


def _matrices(Z: Array, w: Array) -> tuple[Array, Array]:
    """Compute Σ_i w_ik x_i, shape (k, d), and Σ_i w_ik x_i x_i', shape (k, d, d).

    Products of columns, which all components share, times weights, half the operations; or, if there are far more
    dimensions than components, weights times rows, times rows. Only NumPy gathers columns fast: elsewhere the second is
    used for more dimensions than components.
    """
    xp, (b, d), k = namespace(Z), Z.shape, w.shape[1]
    if d > (OUTER_FACTOR * k if is_numpy(Z) else k):
        weighted = xp.reshape(outer_rows(w, Z), (b, k * d))
        return w.T @ Z, xp.reshape(weighted.T @ Z, (k, d, d))
    rows, columns, position = _triangle(d)
    Zt = Z.T + 0.0  # columns become contiguous
    products = xp.take(Zt, asarray_like(rows, Z), axis=0)
    products *= xp.take(Zt, asarray_like(columns, Z), axis=0)
    triangles = (products @ w).T
    return w.T @ Z, xp.reshape(xp.take(triangles, asarray_like(position, Z), axis=1), (k, d, d))


def _pooled_matrix(Z: Array, w: Array) -> tuple[Array, Array]:
    """Compute Σ_i w_ik x_i, shape (k, d), and Σ_ik w_ik x_i x_i', shape (1, d, d)."""
    return w.T @ Z, ((Z * namespace(w).sum(w, axis=1)[:, None]).T @ Z)[None, :, :]


def _squares(Z: Array, w: Array) -> tuple[Array, Array]:
    """Compute Σ_i w_ik x_i and Σ_i w_ik x_i², shape (k, d)."""
    return w.T @ Z, w.T @ Z**2


MOMENTS = {"full": _matrices, "tied": _pooled_matrix, "diag": _squares, "spherical": _squares}


def weighted_statistics(X: Array, weights: Array, *, kind: str, origin: Array, dtype: Any) -> Statistics:
    """Compute Σ w (k,), Σ w x (k, d) and the second moments that ``kind`` of covariance needs, blocks in ``dtype``."""
    xp, (n, k), moments = namespace(X), weights.shape, MOMENTS[kind]

    def sums(part: slice) -> tuple[Array, Array, Array]:
        totals = (0.0, 0.0, 0.0)
        for rows in component_blocks(X, k, part):
            Z, w = centered(X[rows, :], origin, dtype), xp.astype(weights[rows, :], dtype, copy=False)
            block = (xp.sum(w, axis=0), *moments(Z, w))
            totals = tuple(total + xp.astype(term, xp.float64) for total, term in zip(totals, block))
        return totals

    d = X.shape[1]
    in_one_part = not is_numpy(X) or 8 * n * k * d <= CACHE_BYTES
    n_parts = 1 if in_one_part else max(1, min(MAX_PARTS, SUMS_BYTES // (8 * k * d * d), n // (4 * d)))
    width = -(-n // n_parts)
    parts = (slice(start, min(start + width, n)) for start in range(0, n, width))
    counts, first, second = (sum(part) for part in zip(*map_blocks(sums, parts, X)))
    return Statistics(counts, first, second, origin)


def component_blocks(X: Array, k: int, part: slice | None = None, *, row_bytes: int = 0) -> Iterator[slice]:
    """Yield slices of (a part of) the rows that, repeated for every component, fit the cache (host) or fill the device.

    Blocks have at least twice as many rows as columns: adding up their (k, d, d) sums would otherwise take longer than
    computing them. ``row_bytes`` is the size of other temporaries of a row.
    """
    first, last = (0, X.shape[0]) if part is None else (part.start, part.stop)
    d = X.shape[1]
    sized = row_blocks(
        last - first,
        max(8 * d * k, row_bytes),
        X,
        host_bytes=CACHE_BYTES,
        device_bytes=DEVICE_BYTES,
        min_rows=max(64, 2 * d),
    )
    return (slice(first + block.start, first + block.stop) for block in sized)


def centered(X: Array, origin: Array, dtype: Any) -> Array:
    """Return x - origin for every row, rounded once to ``dtype``."""
    xp = namespace(X)
    return xp.astype(X, dtype, copy=False) - xp.astype(origin, dtype)


def mean_origin(X: Array) -> Array:
    """Return the mean row rounded to X's precision, in double: differences from it are exact up to one rounding."""
    xp = namespace(X)
    sums = map_blocks(lambda rows: xp.sum(X[rows, :], axis=0, dtype=xp.float64), component_blocks(X, 1), X)
    return xp.astype(xp.astype(sum(sums) / X.shape[0], X.dtype), xp.float64)
