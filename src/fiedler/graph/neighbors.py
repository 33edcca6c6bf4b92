"""Nearest neighbours: exact on dense, sparse and device arrays, approximate by faiss; the point itself never counts.

======================  ==============================================================================================
dense NumPy             scikit-learn; in float32, beyond 15 features, the blocked product below (0.6 of its time)
torch, CuPy, ...        a blocked matrix product and partial sort, on the device
CSR rows                a blocked sparse product; nothing is densified beyond one block of similarities
``method="faiss"``      an inverted-file index whose probes are raised until a sample reaches the recall
======================  ==============================================================================================

``method="auto"`` is exact up to `APPROXIMATE_ABOVE` rows and, where faiss is installed, approximate above.
Distances are recomputed from differences where a matrix product found the neighbours, since |x|² + |y|² - 2x'y cancels.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info, threadpool_limits

from .._validation import choose, is_foreign, require
from ..core.backend import Array, arange, is_numpy, itemsize, namespace, row_blocks, smallest_k

log = logging.getLogger(__name__)

APPROXIMATE_ABOVE = 50_000  # rows; the exact search below takes seconds, and approximate indices gain little
TREES_UP_TO = 15  # features; scikit-learn's trees beat any index there, so "auto" stays exact
TARGET_RECALL = 0.995
RECALL_SAMPLE = 500  # rows whose exact neighbours settle the number of probes


@dataclass(frozen=True)
class Edges:
    """Directed edges ``rows[e] -> columns[e]`` with their lengths; ``recall`` where the search estimated it."""

    rows: Array
    columns: Array
    distances: Array
    shape: tuple[int, int]
    recall: float | None = None


# ---------------------------------------------------------------------------------------------- k nearest neighbours


def k_nearest(
    X: Array,
    n_neighbors: int,
    *,
    queries: Array | None = None,
    metric: str = "euclidean",
    method: str | BaseEstimator = "auto",
    n_jobs: int | None = None,
) -> Edges:
    """Each row's ``n_neighbors`` nearest rows of ``X``, sorted by distance.

    Without ``queries`` the rows of ``X`` look for each other and a row is never its own neighbour: it is removed by its
    index, so that duplicates of it stay. ``method`` may also be a scikit-learn neighbours transformer.
    """
    if not isinstance(method, str):
        return from_transformer(method, X, queries)
    n_candidates = X.shape[0] - (queries is None)
    if n_neighbors > n_candidates:
        raise ValueError(
            f"n_neighbors={n_neighbors} needs more rows than there are (n_samples={X.shape[0]}); "
            f"ask for at most {n_candidates} neighbours"
        )
    X, queries, back = _as_euclidean(X, queries, metric)
    if method == "auto":
        method = "faiss" if _approximate_pays(X, metric) and queries is None else "exact"
    search = choose(SEARCHES, method, option="method")
    distances, indices, recall = search(X, queries, n_neighbors, metric if back is None else "euclidean", n_jobs)
    xp = namespace(distances)
    n_queries = indices.shape[0]
    rows = xp.broadcast_to(arange(n_queries, distances)[:, None], indices.shape)
    return Edges(
        rows=xp.reshape(rows, (-1,)),
        columns=xp.reshape(indices, (-1,)),
        distances=xp.reshape(distances if back is None else back(distances), (-1,)),
        shape=(n_queries, X.shape[0]),
        recall=recall,
    )


def _as_euclidean(X: Array, queries: Array | None, metric: str) -> tuple[Array, Array | None, Callable | None]:
    """Cosine as a Euclidean problem on unit rows, where |x - y|² = 2 (1 - cos); other metrics as they are."""
    if metric != "cosine":
        if metric != "euclidean" and (is_foreign(X) or sp.issparse(X)):
            kind = "sparse" if sp.issparse(X) else "device"
            raise ValueError(
                f"metric={metric!r} is offered for dense NumPy arrays; {kind} ones take 'euclidean', 'cosine'"
            )
        return X, queries, None
    return unit_rows(X), None if queries is None else unit_rows(queries), lambda d: 0.5 * d * d


def unit_rows(X: Array) -> Array:
    """Rows scaled to length one; a row of zeros has no direction and is refused."""
    norms = row_norms(X)
    xp = namespace(norms)
    n_zero = int(xp.sum(xp.astype(norms == 0, xp.int64)))
    if n_zero:
        raise ValueError(f"{n_zero} row(s) of X are all zero and have no cosine; remove them or use metric='euclidean'")
    return sp.diags_array(1 / norms) @ X if sp.issparse(X) else X / norms[:, None]


def row_norms(X: Array) -> Array:
    """The Euclidean length of every row."""
    if sp.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    xp = namespace(X)
    return xp.sqrt(xp.sum(X * X, axis=1))


def _approximate_pays(X: Array, metric: str) -> bool:
    return (
        is_numpy(X)
        and not sp.issparse(X)
        and X.shape[0] > APPROXIMATE_ABOVE
        and X.shape[1] > TREES_UP_TO
        and metric in ("euclidean", "cosine")
        and importlib.util.find_spec("faiss") is not None
    )


def _exact(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    if sp.issparse(X):
        return *_exact_sparse(X, queries, k, n_jobs), 1.0
    if is_foreign(X) or (metric == "euclidean" and X.dtype == np.float32 and X.shape[1] > TREES_UP_TO):
        return *_exact_blocks(X, queries, k, n_jobs), 1.0
    search = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=n_jobs).fit(X)
    distances, indices = search.kneighbors(queries)  # without queries scikit-learn drops each row by its index
    return distances.astype(X.dtype, copy=False), indices, 1.0


def _exact_blocks(X: Array, queries: Array | None, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Blocked matrix products and a partial sort, for any array library.

    The products only propose: of about twice as many candidates as wanted, the nearest by their differences are kept,
    so that digits lost to cancellation in single precision do not swap neighbours.
    """
    xp = namespace(X)
    Q = X if queries is None else queries
    n_proposed = min(k + max(k, 16), X.shape[0])
    centre = xp.mean(X, axis=0)  # nearer the origin fewer digits cancel
    # |x|²/2 - q'x orders the rows x as the distance to q does: one product, the norms being a column more.
    shifted = X - centre
    right = xp.concat([shifted, 0.5 * xp.sum(shifted * shifted, axis=1)[:, None]], axis=1).T
    own = arange(Q.shape[0], X)

    def search(rows: slice) -> tuple[Array, Array]:
        block = Q[rows, :]
        left = xp.concat([centre - block, xp.ones_like(block[:, :1])], axis=1)
        _, proposed = smallest_k(left @ right, n_proposed)
        candidates = xp.reshape(xp.take(X, xp.reshape(proposed, (-1,)), axis=0), (*proposed.shape, -1))
        distances = xp.sqrt(xp.sum((block[:, None, :] - candidates) ** 2, axis=2))
        if queries is None:
            distances = xp.where(proposed == own[rows][:, None], xp.inf, distances)
        nearest, order = smallest_k(distances, k)
        return nearest, xp.take_along_axis(proposed, order, axis=1)

    found = _over_blocks(search, Q, 2 * itemsize(X) * (X.shape[0] + n_proposed * X.shape[1]), n_jobs)
    distances, indices = (xp.concat(list(part), axis=0) for part in zip(*found))
    return distances, indices


def _exact_sparse(X: sp.csr_array, queries: sp.csr_array | None, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Blocks of the similarity matrix by sparse products; one dense block a worker is all that is held."""
    Q = X if queries is None else queries
    sq_norms, columns = row_norms(X) ** 2, X.T.tocsr()

    def search(rows: slice) -> tuple[Array, Array]:
        block = (Q[rows] @ columns).toarray()
        np.subtract(0.5 * sq_norms, block, out=block)  # half the squared distance, less |q|²/2, which orders alike
        if queries is None:
            block[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        half, indices = smallest_k(block, k)
        sq_distances = 2 * half + (row_norms(Q[rows]) ** 2)[:, None]
        return np.sqrt(np.maximum(sq_distances, 0)), indices

    found = _over_blocks(search, Q, 3 * X.dtype.itemsize * X.shape[0], n_jobs)
    distances, indices = (np.concatenate(part) for part in zip(*found))
    return distances.astype(X.dtype, copy=False), indices


def _over_blocks(search: Callable, Q: Array, bytes_per_row: int, n_jobs: int | None) -> list:
    """``search`` over blocks of the rows of ``Q``: in threads of one BLAS thread each, or in turn on a device."""
    blocks = list(row_blocks(Q.shape[0], bytes_per_row, Q))
    if is_foreign(Q):
        return [search(rows) for rows in blocks]
    if n_jobs is None:
        n_jobs = max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
    with threadpool_limits(1, user_api="blas"):
        return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(search)(rows) for rows in blocks)


def _faiss(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    """An inverted file of √n lists; the probes double until a sample of rows reaches `TARGET_RECALL`."""
    if is_foreign(X) or sp.issparse(X) or metric != "euclidean":
        raise ValueError("method='faiss' takes dense NumPy rows and metric 'euclidean' or 'cosine'; use method='exact'")
    index = _inverted_file(X)
    recall = _raise_probes(index, X, k)
    Q = np.ascontiguousarray(X if queries is None else queries, dtype=np.float32)
    _, indices = index.search(Q, k + (queries is None))
    if queries is None:
        indices = _drop_self(indices)
    short = (indices < 0).any(axis=1)  # too few candidates in the probed lists: those rows are searched exactly
    if short.any():
        indices[short] = _exact_rows(X, np.flatnonzero(short) if queries is None else Q[short], k)
    pairs = pair_distances(X if queries is None else queries, X, *_flat(indices))
    return pairs.reshape(indices.shape), indices, recall


def _inverted_file(X: Array) -> Any:
    faiss = require("faiss", extra="ann", purpose="approximate neighbours")
    n, d = X.shape
    n_lists = max(1, int(np.sqrt(n)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, n_lists)
    rows = np.ascontiguousarray(X, dtype=np.float32)
    index.cp.niter, index.cp.max_points_per_centroid = 10, 64
    index.train(rows)
    index.add(rows)
    return index


def _raise_probes(index: Any, X: Array, k: int) -> float:
    sample = np.random.RandomState(0).permutation(X.shape[0])[:RECALL_SAMPLE]
    exact = _exact_rows(X, sample, k)
    queries = np.ascontiguousarray(X[sample], dtype=np.float32)
    index.nprobe, recall = 2, 0.0
    while recall < TARGET_RECALL and index.nprobe < index.nlist:
        index.nprobe = min(2 * index.nprobe, index.nlist)
        recall = overlap(_drop_self(index.search(queries, k + 1)[1], own=sample), exact)
        log.info("neighbours: %d of %d lists probed, recall %.4f on a sample", index.nprobe, index.nlist, recall)
    return recall


def _exact_rows(X: Array, rows: Array, k: int) -> Array:
    """Exact neighbours of some rows of ``X`` (given by index, self removed) or of new points."""
    search = NearestNeighbors(algorithm="brute").fit(X)
    if rows.ndim == 2:
        return search.kneighbors(rows, k, return_distance=False)
    return _drop_self(search.kneighbors(X[rows], k + 1, return_distance=False), own=rows)


def _drop_self(indices: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
    """Each row of k + 1 candidates less the row itself; where copies crowded it out, less the farthest."""
    own = np.arange(len(indices)) if own is None else own
    drop = indices == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    return indices[~drop].reshape(len(indices), -1)


def overlap(found: np.ndarray, exact: np.ndarray) -> float:
    """Recall: the share of the exact neighbours that were found, row by row."""
    hits = [np.isin(e, f, assume_unique=False).sum() for f, e in zip(found, exact)]
    return float(np.sum(hits) / exact.size)


SEARCHES = {"exact": _exact, "faiss": _faiss}


# ------------------------------------------------------------------------------------------------- other neighbourhoods


def within_radius(
    X: Array, radius: float, *, queries: Array | None = None, metric: str = "euclidean", n_jobs: int | None = None
) -> Edges:
    """All pairs at distance at most ``radius`` (the ε-neighbours), the point itself left out."""
    X, queries, back = _as_euclidean(X, queries, metric)
    if back is not None:
        radius, metric = float(np.sqrt(2 * radius)), "euclidean"
    Q = X if queries is None else queries
    if is_foreign(X):
        rows, columns = _radius_device(X, queries, radius)
        distances = pair_distances(Q, X, rows, columns)
    else:
        search = NearestNeighbors(radius=radius, metric=metric, n_jobs=n_jobs).fit(X)
        lengths, indices = search.radius_neighbors(queries)
        rows = np.repeat(np.arange(Q.shape[0]), [len(i) for i in indices])
        columns, distances = np.concatenate(indices), np.concatenate(lengths).astype(X.dtype, copy=False)
    return Edges(rows, columns, distances if back is None else back(distances), (Q.shape[0], X.shape[0]))


def _radius_device(X: Array, queries: Array | None, radius: float) -> tuple[Array, Array]:
    xp = namespace(X)
    Q = X if queries is None else queries
    rows_found, columns_found = [], []
    for rows in row_blocks(Q.shape[0], 4 * itemsize(X) * X.shape[0], X):
        near = pairwise_distances(Q[rows, :], X) <= radius
        if queries is None:
            near = near & (arange(X.shape[0], X)[None, :] != arange(X.shape[0], X)[rows][:, None])
        block_rows, block_columns = xp.nonzero(near)
        rows_found.append(block_rows + rows.start)
        columns_found.append(block_columns)
    return xp.concat(rows_found), xp.concat(columns_found)


def from_transformer(transformer: BaseEstimator, X: Array, queries: Array | None = None) -> Edges:
    """The edges that a scikit-learn neighbours transformer (or a compatible object) finds, in distances."""
    fitted = clone(transformer)
    if "mode" in fitted.get_params():
        fitted.set_params(mode="distance")
    fitted.fit(X)
    found = sp.coo_array(fitted.transform(X if queries is None else queries))
    others = found.row != found.col if queries is None else np.ones(found.nnz, dtype=bool)
    rows, columns = found.row[others], found.col[others]
    return Edges(rows, columns, found.data[others].astype(X.dtype, copy=False), found.shape)


# ---------------------------------------------------------------------------------------------- distances and products


def pairwise_distances(A: Array, B: Array) -> Array:
    """All Euclidean distances between the rows of ``A`` and ``B``, dense."""
    if sp.issparse(A):
        products = (A @ B.T).toarray()
        xp, sq_a, sq_b = np, row_norms(A) ** 2, row_norms(B) ** 2
    else:
        xp = namespace(A)
        centre = xp.mean(B, axis=0)
        A, B = A - centre, B - centre
        products, sq_a, sq_b = A @ B.T, xp.sum(A * A, axis=1), xp.sum(B * B, axis=1)
    sq_distances = sq_a[:, None] + sq_b[None, :] - 2 * products
    return xp.sqrt(xp.where(sq_distances > 0, sq_distances, 0))


def pair_distances(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """The distance of each pair ``A[rows[e]], B[columns[e]]``, from the differences."""
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sqrt(xp.sum((a - b) ** 2, axis=1)))


def pair_products(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """The inner product of each pair ``A[rows[e]], B[columns[e]]``."""
    if sp.issparse(A):
        blocks = row_blocks(rows.shape[0], 24 * max(1, A.nnz // A.shape[0]), A)
        parts = [np.asarray(A[rows[e]].multiply(B[columns[e]]).sum(axis=1)).ravel() for e in blocks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=A.dtype)
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sum(a * b, axis=1))


def _over_pairs(A: Array, B: Array, rows: Array, columns: Array, function: Callable) -> Array:
    xp = namespace(A)
    blocks = row_blocks(rows.shape[0], 4 * itemsize(A) * A.shape[1], A)
    parts = [function(xp.take(A, rows[e], axis=0), xp.take(B, columns[e], axis=0), xp) for e in blocks]
    return xp.concat(parts) if parts else A[:0, 0]


def _flat(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.ravel()
