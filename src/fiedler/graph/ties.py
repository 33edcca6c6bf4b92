"""Ties between neighbours: of equally near rows, the first ones are chosen.

Distances of counts, pixels and categories are often equal, and their last digits depend on the processor and the number
of threads, since they come from matrix products. So a search proposes a few rows more than needed; their distances are
computed again, from differences, compared in single precision, and sorted by distance and then by index. A query whose
last neighbour is as far as the last proposed row may have further neighbours at that distance: these are sought among
all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, arange, asarray_like, eps, namespace, row_blocks, to_numpy
from ..core.blocks import map_blocks
from ..core.rows import sq_row_norms

EXTRA_CANDIDATES = 4  # rows proposed for each query beyond those needed
TIE = 1e-7  # relative difference of equal distances
ROUNDING_ERRORS = 8  # bound on the error of a squared distance by products, in units of eps · (|x|² + |y|²)


class Neighbors(NamedTuple):
    """Neighbours of each query, nearest first.

    Attributes
    ----------
    distances, indices : array of shape (m, k)
    is_settled : array of shape (m,)
        Whether no row that was not proposed can be as near.
    """

    distances: Array
    indices: Array
    is_settled: Array


def first_of_ties(X: Array, Q: Array, candidates: Array, k: int, distances: Array | None = None) -> Neighbors:
    """Return the ``k`` nearest of the proposed rows for each query; of equally near ones, those with the lowest index.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    Q : array or CSR matrix of shape (m, d)
        The queries.
    candidates : array of shape (m, c)
        At least ``k`` proposed rows for each, without the query itself.
    k : int
    distances : array of shape (m, c), optional
        Their distances, if not Euclidean.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [-1.0], [3.0]])
    >>> first_of_ties(X, X[:1], np.array([[2, 1, 3]]), 1).indices
    array([[1]])
    """
    xp = namespace(candidates)
    by_index = xp.argsort(candidates, axis=1)
    candidates = xp.take_along_axis(candidates, by_index, axis=1)
    exact = _lengths(X, Q, candidates) if distances is None else xp.take_along_axis(distances, by_index, axis=1)
    keys = _comparable(exact)
    nearest = xp.argsort(keys, axis=1, stable=True)
    last, farthest = (xp.take_along_axis(keys, nearest[:, j : j + 1], axis=1)[:, 0] for j in (k - 1, keys.shape[1] - 1))
    nearest = nearest[:, :k]
    return Neighbors(
        xp.take_along_axis(exact, nearest, axis=1), xp.take_along_axis(candidates, nearest, axis=1), last < farthest
    )


def complete_ties(
    X: Array,
    Q: Array,
    self_indices: np.ndarray | None,
    found: tuple[Array, Array],
    *,
    distances: Callable[[Array], Array] | None = None,
    n_jobs: int | None = None,
) -> tuple[Array, Array]:
    """Replace neighbours at the largest distance of each query by the first rows, of all, at that distance.

    Parameters
    ----------
    X, Q
        As in :func:`first_of_ties`.
    self_indices : ndarray of shape (m,), optional
        The row of each query in ``X``, if it is one.
    found : tuple of arrays of shape (m, k)
        The distances and indices of the neighbours of each query, the nearest first.
    distances : callable, optional
        The distances of some queries to all rows, shape (b, n), if not Euclidean.
    n_jobs : int, optional
        The number of threads.
    """
    near_enough = _euclidean_ties(X) if distances is None else _metric_ties(distances)

    def complete(rows: slice) -> tuple[Array, Array]:
        own = None if self_indices is None else self_indices[rows]
        lengths, indices = found[0][rows, :], found[1][rows, :]
        ties = _first_rows(near_enough(Q[rows, :], lengths[:, -1:]), indices.shape[1] + EXTRA_CANDIDATES, own)
        return _join_ties(X, Q[rows, :], lengths, indices, ties, distances)

    blocks = list(row_blocks(Q.shape[0], 32 * X.shape[0], X.data if sp.issparse(X) else X))
    parts = map_blocks(complete, blocks, Q, n_jobs=n_jobs)
    xp = namespace(found[1])
    return xp.concat([part[0] for part in parts], axis=0), xp.concat([part[1] for part in parts], axis=0)


def _euclidean_ties(X: Array) -> Callable[[Array, Array], Array]:
    """Return the function from queries and radii to whether each row is at that distance, up to rounding."""
    right = _double(X)
    center = None if sp.issparse(X) else namespace(X).mean(right, axis=0)  # near the origin fewer digits cancel
    right = right if center is None else right - center
    sq_norms = sq_row_norms(right)

    def near_enough(queries: Array, radius: Array) -> Array:
        left = _double(queries) if center is None else _double(queries) - center
        products = left @ right.T
        products = products.toarray() if sp.issparse(products) else products
        xp = namespace(products)
        sizes = sq_row_norms(left)[:, None] + sq_norms[None, :]
        return xp.abs(sizes - 2 * products - radius**2) <= TIE * radius**2 + ROUNDING_ERRORS * eps(products) * sizes

    return near_enough


def _metric_ties(distances: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Return the same for the distances of another metric."""
    return lambda queries, radius: namespace(radius).abs(distances(queries) - radius) <= TIE * radius


def _first_rows(mask: Array, count: int, own: np.ndarray | None) -> np.ndarray:
    """Return the first ``count`` columns of each row of a mask, on the host, without its own; -1 if there are fewer."""
    rows, columns = (to_numpy(part) for part in namespace(mask).nonzero(mask))
    if own is not None:
        others = columns != own[rows]
        rows, columns = rows[others], columns[others]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    first = np.full((mask.shape[0], count), -1)
    first[rows[rank < count], rank[rank < count]] = columns[rank < count]
    return first


def _join_ties(
    X: Array, Q: Array, lengths: Array, indices: Array, ties: np.ndarray, distances: Callable[[Array], Array] | None
) -> tuple[Array, Array]:
    """Return the nearer neighbours of each query and the first ones at the largest distance, if these are enough."""
    xp, k = namespace(indices), indices.shape[1]
    radius, proposed = lengths[:, -1:], asarray_like(np.maximum(ties, 0), indices, dtype=indices.dtype)
    exact = _lengths(X, Q, proposed) if distances is None else xp.take_along_axis(distances(Q), proposed, axis=1)
    is_tie = asarray_like(ties >= 0, indices) & (xp.abs(exact - radius) <= TIE * radius)
    place = arange(k + ties.shape[1], indices)[None, :]
    is_wanted = xp.concat([lengths < (1 - TIE) * radius, is_tie], axis=1)
    order = xp.argsort(xp.where(is_wanted, place, 2 * place.shape[1]), axis=1, stable=True)[:, :k]
    are_enough = (xp.sum(xp.astype(is_wanted, xp.int64), axis=1) >= k)[:, None]
    joined = (xp.concat([lengths, exact], axis=1), xp.concat([indices, proposed], axis=1))
    chosen = [xp.take_along_axis(part, order, axis=1) for part in joined]
    return xp.where(are_enough, chosen[0], lengths), xp.where(are_enough, chosen[1], indices)


def _lengths(X: Array, Q: Array, candidates: Array) -> Array:
    """Return the distances of each query to its candidates, from differences in double precision, shape (m, c)."""
    m, c = candidates.shape
    xp = namespace(candidates)
    parts: list[Array] = []
    row_bytes = 24 * c * (max(1, X.nnz // X.shape[0]) if sp.issparse(X) else X.shape[1])
    for rows in row_blocks(m, row_bytes, candidates):
        flat = xp.reshape(candidates[rows, :], (-1,))
        queries = np.repeat(np.arange(rows.start, rows.stop), c)
        if sp.issparse(X):
            difference = (Q[queries] - X[to_numpy(flat)]).astype(np.float64)
            sums = np.asarray(difference.power(2).sum(axis=1)).ravel()
        else:
            near = xp.reshape(xp.take(X, flat, axis=0), (-1, c, X.shape[1]))
            difference = xp.astype(near, xp.float64) - xp.astype(Q[rows, :], xp.float64)[:, None, :]
            sums = xp.reshape(xp.sum(difference * difference, axis=2), (-1,))
        parts.append(xp.reshape(xp.sqrt(sums), (-1, c)))
    return xp.concat(parts, axis=0)


def _double(X: Array) -> Array:
    return X.astype(np.float64) if sp.issparse(X) else namespace(X).astype(X, namespace(X).float64)


def _comparable(distances: Array) -> Array:
    """Return distances relative to the largest of each row in single precision, which hides their rounding errors."""
    xp = namespace(distances)
    largest = xp.max(distances, axis=1)[:, None]
    return xp.astype(distances / xp.where(largest > 0, largest, 1), xp.float32)
