"""Ties between neighbours: of equally near rows, the first ones are chosen.

Distances of counts, pixels and categories are often equal, and their last digits depend on the processor and the number
of threads, since they come from matrix products. So a search proposes a few rows more than needed; their distances are
computed again, from differences, compared in single precision, and sorted by distance and then by index. A query whose
last neighbour is as far as the last proposed row may have further neighbours at that distance: it is compared with all
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, arange, asarray_like, namespace, row_blocks, smallest_k, to_numpy
from ..core.interrupts import check_interrupt
from ..core.rows import sq_row_norms

EXTRA_CANDIDATES = 4  # rows proposed for each query beyond those needed
DISTANCE_BITS, INDEX_BITS = 36, 27  # of the integers by which all rows are sorted


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


def nearest_of_all(
    X: Array, Q: Array, self_indices: np.ndarray | None, k: int, distances: Callable[[Array], Array] | None = None
) -> tuple[Array, Array]:
    """Return the distances and indices of the ``k`` nearest rows of each query, compared with all rows.

    Parameters
    ----------
    X, Q, k
        As in :func:`first_of_ties`.
    self_indices : ndarray of shape (m,), optional
        The row of each query in ``X``, if it is one.
    distances : callable, optional
        The distances of some queries to all rows, shape (b, n), if not Euclidean.
    """
    n_candidates = X.shape[0] - (self_indices is not None)
    n_proposed = min(2 * k + EXTRA_CANDIDATES, n_candidates)
    parts = []
    for rows, lengths in _all_distances(X, Q, distances):
        keys = _sort_keys(lengths)
        xp = namespace(keys)
        if self_indices is not None:
            own = asarray_like(self_indices[rows], keys)[:, None]
            keys = xp.where(arange(X.shape[0], keys)[None, :] == own, (1 << 63) - 1, keys)
        proposed = smallest_k(keys, n_proposed)[1]
        given = None if distances is None else xp.take_along_axis(lengths, proposed, axis=1)
        parts.append(first_of_ties(X, Q[rows, :], proposed, k, given))
    xp = namespace(parts[0].distances)
    return xp.concat([part.distances for part in parts], axis=0), xp.concat([part.indices for part in parts], axis=0)


def _all_distances(X: Array, Q: Array, distances: Callable[[Array], Array] | None) -> Iterator[tuple[slice, Array]]:
    """Yield slices of queries with their distances to all rows, squared and from products if Euclidean."""
    of_block = _squared_distances(X) if distances is None else distances
    for rows in row_blocks(Q.shape[0], 48 * X.shape[0], X.data if sp.issparse(X) else X):
        check_interrupt()
        yield rows, of_block(Q[rows, :])


def _squared_distances(X: Array) -> Callable[[Array], Array]:
    """Return the function from a block of queries to their squared distances to all rows, in double precision."""
    center = 0.0 if sp.issparse(X) else namespace(X).mean(X, axis=0)  # near the origin fewer digits cancel
    centered = lambda A: _double(A if sp.issparse(A) else A - center)  # noqa: E731
    right = centered(X)
    sq_norms = sq_row_norms(right)

    def of_block(queries: Array) -> Array:
        left = centered(queries)
        products = left @ right.T
        products = products.toarray() if sp.issparse(products) else products
        return sq_row_norms(left)[:, None] + sq_norms[None, :] - 2 * products

    return of_block


def _sort_keys(distances: Array) -> Array:
    """Return integers that sort the columns of each row by distance, up to rounding, and then by index."""
    xp = namespace(distances)
    rounded = xp.astype(xp.round(xp.clip(_relative(distances), 0, 1) * (2**DISTANCE_BITS - 1)), xp.int64)
    return rounded * 2**INDEX_BITS + arange(distances.shape[1], rounded)[None, :]


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
    return namespace(distances).astype(_relative(distances), namespace(distances).float32)


def _relative(distances: Array) -> Array:
    """Divide distances by the largest of each row."""
    xp = namespace(distances)
    largest = xp.max(distances, axis=1)[:, None]
    return distances / xp.where(largest > 0, largest, 1)
