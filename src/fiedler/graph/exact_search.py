"""The exact search for nearest neighbours, on dense, sparse and device arrays.

======================  ==============================================================================================
dense NumPy             scikit-learn; in float32 with more than 8 features a blocked product (0.6 of the time)
torch, CuPy, ...        a blocked matrix product and partial sort, on the device
CSR rows                a blocked sparse product; only one block of similarities is dense at a time
======================  ==============================================================================================

|x|² + |y|² - 2x'y suffers from cancellation. So matrix products only propose candidates, and their distances are
computed from differences; rows for which single precision may have missed a neighbour are searched again in double.

Of equally near rows, the first ones are neighbours. Distances of counts, pixels and categories are often equal, and
their last digits depend on the processor and the number of threads, since they come from matrix products. So a search
proposes a few rows more than needed; their distances are computed again, from differences, compared in single
precision, and sorted by distance and then by index. A query whose last neighbour is as far as the last proposed row may
have further neighbours at that distance: these are sought among all rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances as metric_distances
from sklearn.neighbors import NearestNeighbors

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import is_foreign
from ..core.arrays import (
    Array,
    arange,
    asarray_like,
    eps,
    itemsize,
    namespace,
    replace_rows,
    row_blocks,
    smallest_k,
    sq_row_norms,
    take_rows,
    to_numpy,
)
from ..core.fitting import is_worker_thread, stage
from ..core.parallel import map_blocks

EXTRA_CANDIDATES = 4  # rows proposed for each query beyond those needed
TIE = 1e-7  # relative difference of equal distances
ROUNDING_ERRORS = 8  # bound on the error of a squared distance by products, in units of eps · (|x|² + |y|²)


MAX_TREE_FEATURES = 8  # features up to which scikit-learn's trees are faster than products of all float32 rows
SLICE_ROWS = 512  # queries of one call of scikit-learn, after which an interrupt is heard
MIN_ROWS_FOR_PIECES = 10_000  # rows above which scikit-learn searches them piece by piece

# ------------------------------------------------------------------------------------------------------------ ties


def first_of_ties(
    X: Array, Q: Array, candidates: Array, k: int, distances: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return the distances and indices of the ``k`` nearest of the proposed rows, of equally near ones the first.

    There are at least ``k`` candidates, without the query itself; ``distances`` are theirs if not Euclidean. The third
    result is whether no row that was not proposed can be as near.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [-1.0], [3.0]])
    >>> first_of_ties(X, X[:1], np.array([[2, 1, 3]]), 1)[1]
    array([[1]])
    """
    xp = namespace(candidates)
    by_index = xp.argsort(candidates, axis=1)
    candidates = xp.take_along_axis(candidates, by_index, axis=1)
    exact = _lengths(X, Q, candidates) if distances is None else xp.take_along_axis(distances, by_index, axis=1)
    largest = xp.max(exact, axis=1)[:, None]
    # Relative distances in single precision hide rounding errors.
    keys = xp.astype(exact / xp.where(largest > 0, largest, 1), xp.float32)
    nearest = xp.argsort(keys, axis=1, stable=True)
    kth, last = (xp.take_along_axis(keys, nearest[:, j : j + 1], axis=1)[:, 0] for j in (k - 1, keys.shape[1] - 1))
    distances, indices = (xp.take_along_axis(part, nearest[:, :k], axis=1) for part in (exact, candidates))
    return distances, indices, kth < last


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

    ``self_indices`` is the row of each query in ``X``, if it is one, ``found`` the distances and indices of its
    neighbours, the nearest first. ``distances`` returns those of some queries to all rows, shape (b, n), if not
    Euclidean.
    """
    if distances is None:
        is_tied = _euclidean_ties(X)
    else:
        is_tied = lambda queries, radius: namespace(radius).abs(distances(queries) - radius) <= TIE * radius  # noqa: E731

    def complete(rows: slice) -> tuple[Array, Array]:
        own = None if self_indices is None else self_indices[rows]
        lengths, indices = found[0][rows, :], found[1][rows, :]
        ties = _first_rows(is_tied(Q[rows, :], lengths[:, -1:]), indices.shape[1] + EXTRA_CANDIDATES, own)
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

    def is_tied(queries: Array, radius: Array) -> Array:
        left = _double(queries) if center is None else _double(queries) - center
        products = left @ right.T
        products = products.toarray() if sp.issparse(products) else products
        xp = namespace(products)
        sizes = sq_row_norms(left)[:, None] + sq_norms[None, :]
        return xp.abs(sizes - 2 * products - radius**2) <= TIE * radius**2 + ROUNDING_ERRORS * eps(products) * sizes

    return is_tied


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
    has_k_rows = (xp.sum(xp.astype(is_wanted, xp.int64), axis=1) >= k)[:, None]
    joined = (xp.concat([lengths, exact], axis=1), xp.concat([indices, proposed], axis=1))
    chosen = [xp.take_along_axis(part, order, axis=1) for part in joined]
    return xp.where(has_k_rows, chosen[0], lengths), xp.where(has_k_rows, chosen[1], indices)


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


# --------------------------------------------------------------------------------------------------- the exact search


@ignore_foreign_warnings()
def exact_neighbors(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
    """Search exactly; of equally near rows, the first ones are neighbours, see the module."""
    n_candidates, Q = X.shape[0] - (queries is None), X if queries is None else queries
    n_proposed = min(k + EXTRA_CANDIDATES, n_candidates)
    given, proposed = _propose(X, queries, n_proposed, metric, n_jobs)
    is_euclidean = metric == "euclidean"
    distances, indices, is_settled = first_of_ties(X, Q, proposed, k, None if is_euclidean else given)
    tied = np.flatnonzero(~to_numpy(is_settled)) if n_proposed < n_candidates else np.empty(0, dtype=np.int64)
    if len(tied):
        of_metric = None if is_euclidean else (lambda block: metric_distances(block, X, metric=metric))
        own = tied if queries is None else None
        found = tuple(take_rows(part, tied) for part in (distances, indices))
        completed = complete_ties(X, take_rows(Q, tied), own, found, distances=of_metric, n_jobs=n_jobs)
        distances, indices = (replace_rows(old, tied, new) for old, new in zip((distances, indices), completed))
    return namespace(distances).astype(distances, X.dtype), indices, 1.0


def _propose(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array | None, Array]:
    """Return the distances, if computed, and indices of the ``k`` nearest rows, by the fastest exact search."""
    if sp.issparse(X):
        return None, _exact_sparse(X, queries, k, n_jobs)
    if is_foreign(X) or (metric == "euclidean" and X.dtype == np.float32 and X.shape[1] > MAX_TREE_FEATURES):
        Q, self_indices = (X, arange(X.shape[0], X)) if queries is None else (queries, None)
        return neighbors_by_products(X, Q, self_indices, k, n_jobs)
    in_one_call = (X if queries is None else queries).shape[0] < MIN_ROWS_FOR_PIECES
    threads = n_jobs if in_one_call and not is_worker_thread() else None
    search = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=threads).fit(X)
    if in_one_call:
        return search.kneighbors(queries)  # without queries scikit-learn drops each row by its index
    if queries is None:
        parts = _in_slices(lambda rows: search.kneighbors(X[rows], k + 1), X, n_jobs)
        return drop_self(stack_neighbors(parts), np.arange(X.shape[0]))
    return stack_neighbors(_in_slices(lambda rows: search.kneighbors(queries[rows]), queries, n_jobs))


def _in_slices(search: Callable[[slice], tuple], Q: Array, n_jobs: int | None) -> list[tuple]:
    """Call scikit-learn on slices of queries."""
    slices = [slice(start, start + SLICE_ROWS) for start in range(0, Q.shape[0], SLICE_ROWS)]
    with stage("searching neighbours", len(slices)) as tick:
        return map_blocks(search, slices, Q, n_jobs=n_jobs, tick=tick)


def neighbors_by_products(
    X: Array, Q: Array, self_indices: Array | None, k: int, n_jobs: int | None
) -> tuple[Array, Array]:
    """Search by matrix products, and again in double precision for rows that are uncertain in single precision.

    ``self_indices`` is the row of each query in ``X``, if it is one.
    """
    xp = namespace(X)
    distances, indices, certain = _propose_and_check(X, Q, self_indices, k, n_jobs)
    if X.dtype == xp.float64 or bool(xp.all(certain)):
        return distances, indices
    uncertain = np.flatnonzero(to_numpy(~certain))
    own = None if self_indices is None else take_rows(self_indices, uncertain)
    redone = _propose_and_check(_double(X), _double(take_rows(Q, uncertain)), own, k, n_jobs)
    distances = replace_rows(distances, uncertain, xp.astype(redone[0], distances.dtype))
    return distances, replace_rows(indices, uncertain, redone[1])


def _propose_and_check(
    X: Array, Q: Array, self_indices: Array | None, k: int, n_jobs: int | None
) -> tuple[Array, Array, Array]:
    """Search by blocked matrix products and a partial sort, in any array library.

    The products propose about twice as many candidates as wanted, of which the nearest by their differences are kept. A
    row is certain if its k-th distance is below that of every row not proposed by more than the rounding error of the
    products.
    """
    xp = namespace(X)
    n_proposed = min(k + max(k, 16), X.shape[0])
    center = xp.mean(X, axis=0)  # near the origin fewer digits cancel
    # |x|²/2 - q'x orders the rows x as the distance to q does: one product, with the norms as one more column.
    shifted = X - center
    half_sq_norms = 0.5 * xp.sum(shifted * shifted, axis=1)
    right = xp.concat([shifted, half_sq_norms[:, None]], axis=1).T
    largest = float(xp.max(half_sq_norms))
    rounding = (4 + 2 * X.shape[1] ** 0.5) * eps(X)

    def search(rows: slice) -> tuple[Array, Array, Array]:
        block = Q[rows, :]
        left = xp.concat([center - block, xp.ones_like(block[:, :1])], axis=1)
        scores, proposed = smallest_k(left @ right, n_proposed)
        candidates = xp.reshape(xp.take(X, xp.reshape(proposed, (-1,)), axis=0), (*proposed.shape, -1))
        distances = xp.sqrt(xp.sum((block[:, None, :] - candidates) ** 2, axis=2))
        if self_indices is not None:
            distances = xp.where(proposed == self_indices[rows][:, None], xp.inf, distances)
        nearest, order = smallest_k(distances, k)
        half_sq_query = 0.5 * xp.sum((block - center) ** 2, axis=1)
        slack = scores[:, -1] + half_sq_query - 0.5 * nearest[:, -1] ** 2
        certain = slack >= rounding * (half_sq_query + largest)
        return nearest, xp.take_along_axis(proposed, order, axis=1), certain | (n_proposed == X.shape[0])

    blocks = list(row_blocks(Q.shape[0], 2 * itemsize(X) * (X.shape[0] + n_proposed * X.shape[1]), Q))
    with stage("searching neighbours", len(blocks)) as tick:
        results = map_blocks(search, blocks, Q, n_jobs=n_jobs, tick=tick)
    distances, indices, certain = (xp.concat(list(part), axis=0) for part in zip(*results))
    return distances, indices, certain


def _exact_sparse(X: sp.csr_array, queries: sp.csr_array | None, k: int, n_jobs: int | None) -> Array:
    """Return the nearest rows by sparse products in double precision; every worker keeps one dense block of them."""
    Q = X if queries is None else queries
    columns = X.T.tocsr().astype(np.float64, copy=False)
    half_sq_norms = 0.5 * sq_row_norms(X.astype(np.float64, copy=False))

    def search(rows: slice) -> Array:
        block = (Q[rows].astype(np.float64, copy=False) @ columns).toarray()
        np.subtract(half_sq_norms, block, out=block)  # half the squared distance minus |q|²/2, which has the same order
        if queries is None:
            block[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        return smallest_k(block, k)[1]

    blocks = list(row_blocks(Q.shape[0], 24 * X.shape[0], Q))
    with stage("searching neighbours", len(blocks)) as tick:
        results = map_blocks(search, blocks, Q, n_jobs=n_jobs, tick=tick)
    return np.concatenate(results)


def exact_neighbors_of_rows(X: Array, rows: np.ndarray, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the exact neighbours of some rows of ``X``, given by their indices."""
    return neighbors_by_products(X, take_rows(X, rows), asarray_like(rows, X), k, n_jobs)


def stack_neighbors(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Join the distances and the indices of consecutive rows."""
    return np.concatenate([distances for distances, _ in parts]), np.concatenate([indices for _, indices in parts])


def drop_self(neighbors: tuple[np.ndarray, np.ndarray], self_indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the row itself from its k + 1 neighbours, or the farthest if it is not among them because of its copies."""
    distances, indices = neighbors
    keep = indices != self_indices[:, None]
    keep[keep.all(axis=1), -1] = False
    return distances[keep].reshape(len(indices), -1), indices[keep].reshape(len(indices), -1)
