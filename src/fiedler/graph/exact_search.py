"""The exact search for nearest neighbours, on dense, sparse and device arrays.

======================  ==============================================================================================
dense NumPy             scikit-learn; in float32 with more than 8 features a blocked product (0.6 of the time)
torch, CuPy, ...        a blocked matrix product and partial sort, on the device
CSR rows                a blocked sparse product; only one block of similarities is dense at a time
======================  ==============================================================================================

|x|² + |y|² - 2x'y suffers from cancellation. So matrix products only propose candidates, and their distances are
computed from differences; rows for which single precision may have missed a neighbour are searched again in double.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances as metric_distances
from sklearn.neighbors import NearestNeighbors

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import is_foreign
from ..core.backend import (
    Array,
    arange,
    asarray_like,
    eps,
    itemsize,
    namespace,
    row_blocks,
    smallest_k,
    to_numpy,
)
from ..core.blocks import map_blocks
from ..core.interrupts import is_worker_thread
from ..core.progress import stage
from ..core.rows import replace_rows, sq_row_norms, take_rows
from .ties import EXTRA_CANDIDATES, complete_ties, first_of_ties

MAX_TREE_FEATURES = 8  # features up to which scikit-learn's trees are faster than products of all float32 rows
SLICE_ROWS = 512  # queries of one call of scikit-learn, after which an interrupt is heard
MIN_ROWS_FOR_PIECES = 10_000  # rows above which scikit-learn searches them piece by piece


@ignore_foreign_warnings()
def exact_neighbors(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
    """Search exactly; of equally near rows, the first ones are neighbours, see :mod:`.ties`."""
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
    uncertain, settled = xp.nonzero(~certain)[0], xp.nonzero(certain)[0]
    double = lambda A: xp.astype(A, xp.float64)  # noqa: E731
    own = None if self_indices is None else xp.take(self_indices, uncertain)
    redone = _propose_and_check(double(X), double(xp.take(Q, uncertain, axis=0)), own, k, n_jobs)
    order = xp.argsort(xp.concat([settled, uncertain]))
    merge = lambda old, new: xp.take(  # noqa: E731
        xp.concat([xp.take(old, settled, axis=0), xp.astype(new, old.dtype)], axis=0), order, axis=0
    )
    return merge(distances, redone[0]), merge(indices, redone[1])


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
