"""Nearest neighbours: exact on dense, sparse and device arrays, approximate by faiss; the point itself never counts.

======================  ==============================================================================================
dense NumPy             scikit-learn; in float32, beyond 15 features, the blocked product below (0.6 of its time)
torch, CuPy, ...        a blocked matrix product and partial sort, on the device
CSR rows                a blocked sparse product; nothing is densified beyond one block of similarities
``method="faiss"``      an inverted-file index whose probes are raised until a sample reaches the recall
======================  ==============================================================================================

``method="auto"`` is exact up to `APPROXIMATE_ABOVE` rows and, where faiss is installed, approximate above.
Where a matrix product finds the neighbours, |x|² + |y|² - 2x'y cancels. So products only propose; distances come from
differences, and rows in which single precision may have hidden a neighbour are searched again in double.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from .._validation import choose, import_optional, is_foreign
from ..core.backend import Array, arange, eps, is_numpy, itemsize, namespace, row_blocks, smallest_k
from ..core.blocks import map_blocks
from ..core.rows import normalize_rows, row_norms, sq_row_norms

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
    method: Any = "auto",
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
    return directions(X), None if queries is None else directions(queries), lambda d: 0.5 * d * d


def directions(X: Array) -> Array:
    """Rows at length one; a row of zeros has no direction and is refused."""
    norms = row_norms(X)
    xp = namespace(norms)
    n_zero = int(xp.sum(xp.astype(norms == 0, xp.int64)))
    if n_zero:
        raise ValueError(f"{n_zero} row(s) of X are all zero and have no cosine; remove them or use metric='euclidean'")
    return normalize_rows(X)


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
        return *_exact_products(X, queries, k, n_jobs), 1.0
    search = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=n_jobs).fit(X)
    distances, indices = search.kneighbors(queries)  # without queries scikit-learn drops each row by its index
    return distances.astype(X.dtype, copy=False), indices, 1.0


def _exact_products(X: Array, queries: Array | None, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """By matrix products, and again in double precision for the rows that single precision leaves in doubt."""
    xp = namespace(X)
    Q = X if queries is None else queries
    own = arange(Q.shape[0], X) if queries is None else None
    distances, indices, certain = _propose_and_check(X, Q, own, k, n_jobs)
    if X.dtype == xp.float64 or bool(xp.all(certain)):
        return distances, indices
    doubtful, sure = xp.nonzero(~certain)[0], xp.nonzero(certain)[0]
    double = lambda A: xp.astype(A, xp.float64)  # noqa: E731
    redone = _propose_and_check(
        double(X), double(xp.take(Q, doubtful, axis=0)), None if own is None else doubtful, k, n_jobs
    )
    place = xp.argsort(xp.concat([sure, doubtful]))
    merge = lambda old, new: xp.take(  # noqa: E731
        xp.concat([xp.take(old, sure, axis=0), xp.astype(new, old.dtype)], axis=0), place, axis=0
    )
    return merge(distances, redone[0]), merge(indices, redone[1])


def _propose_and_check(X: Array, Q: Array, own: Array | None, k: int, n_jobs: int | None) -> tuple[Array, Array, Array]:
    """Blocked matrix products and a partial sort, for any array library; ``own`` is each query's row in ``X``, if any.

    The products propose about twice as many candidates as wanted, of which the nearest by their differences are kept. A
    row is certain if its k-th distance is below that of every row not proposed, by more than the products' rounding.
    """
    xp = namespace(X)
    n_proposed = min(k + max(k, 16), X.shape[0])
    centre = xp.mean(X, axis=0)  # nearer the origin fewer digits cancel
    # |x|²/2 - q'x orders the rows x as the distance to q does: one product, the norms being a column more.
    shifted = X - centre
    half_sq_norms = 0.5 * xp.sum(shifted * shifted, axis=1)
    right = xp.concat([shifted, half_sq_norms[:, None]], axis=1).T
    largest = float(xp.max(half_sq_norms))
    rounding = (4 + 2 * X.shape[1] ** 0.5) * eps(X)

    def search(rows: slice) -> tuple[Array, Array, Array]:
        block = Q[rows, :]
        left = xp.concat([centre - block, xp.ones_like(block[:, :1])], axis=1)
        scores, proposed = smallest_k(left @ right, n_proposed)
        candidates = xp.reshape(xp.take(X, xp.reshape(proposed, (-1,)), axis=0), (*proposed.shape, -1))
        distances = xp.sqrt(xp.sum((block[:, None, :] - candidates) ** 2, axis=2))
        if own is not None:
            distances = xp.where(proposed == own[rows][:, None], xp.inf, distances)
        nearest, order = smallest_k(distances, k)
        half_sq_query = 0.5 * xp.sum((block - centre) ** 2, axis=1)
        slack = scores[:, -1] + half_sq_query - 0.5 * nearest[:, -1] ** 2
        certain = slack >= rounding * (half_sq_query + largest)
        return nearest, xp.take_along_axis(proposed, order, axis=1), certain | (n_proposed == X.shape[0])

    blocks = row_blocks(Q.shape[0], 2 * itemsize(X) * (X.shape[0] + n_proposed * X.shape[1]), Q)
    found = map_blocks(search, blocks, Q, n_jobs=n_jobs)
    distances, indices, certain = (xp.concat(list(part), axis=0) for part in zip(*found))
    return distances, indices, certain


def _exact_sparse(X: sp.csr_array, queries: sp.csr_array | None, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Blocks of the similarity matrix by sparse products in double; one dense block a worker is all that is held."""
    Q = X if queries is None else queries
    columns = X.T.tocsr().astype(np.float64, copy=False)
    half_sq_norms = 0.5 * sq_row_norms(X.astype(np.float64, copy=False))

    def search(rows: slice) -> tuple[Array, Array]:
        block = (Q[rows].astype(np.float64, copy=False) @ columns).toarray()
        np.subtract(half_sq_norms, block, out=block)  # half the squared distance, less |q|²/2, which orders alike
        if queries is None:
            block[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        return smallest_k(block, k)

    found = map_blocks(search, row_blocks(Q.shape[0], 24 * X.shape[0], Q), Q, n_jobs=n_jobs)
    scores, indices = (np.concatenate(part) for part in zip(*found))
    sq_norms = sq_row_norms(Q.astype(np.float64, copy=False))[:, None]
    sq_distances = np.maximum(2 * scores + sq_norms, 0)
    near = sq_distances <= 1e-6 * sq_norms  # half of the digits have cancelled: from the differences, then
    distances = np.sqrt(sq_distances).astype(X.dtype)
    distances[near] = pair_distances(Q, X, np.nonzero(near)[0], indices[near])
    return distances, indices


def _faiss(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    """An inverted file of √n lists; the probes double until a sample of rows reaches `TARGET_RECALL`."""
    if is_foreign(X) or sp.issparse(X) or metric != "euclidean":
        raise ValueError("method='faiss' takes dense NumPy rows and metric 'euclidean' or 'cosine'; use method='exact'")
    index, rows = _inverted_file(X)
    recall = _raise_probes(index, rows, X, k)
    if recall < TARGET_RECALL:  # single precision cannot tell these rows apart
        log.warning("neighbours: faiss reaches recall %.3f only on this data; searching exactly", recall)
        return _exact(X, queries, k, metric, n_jobs)
    if queries is None:
        indices = _drop_self(index.search(rows(X), k + 1)[1], np.arange(X.shape[0]))
    else:
        indices = index.search(rows(queries), k)[1]
    short = np.flatnonzero((indices < 0).any(axis=1))  # too few candidates in the probed lists
    if len(short):
        indices[short] = (
            _exact_rows(X, short, k) if queries is None else _exact(X, queries[short], k, metric, n_jobs)[1]
        )
    distances = pair_distances(X if queries is None else queries, X, *_flat(indices))
    return distances.reshape(indices.shape), indices, recall


def _inverted_file(X: Array) -> tuple[Any, Callable[[Array], Array]]:
    """The index, and how rows are given to it: in float32, centred and scaled into the middle of its range."""
    faiss = import_optional("faiss", extra="ann", purpose="approximate neighbours")
    n, d = X.shape
    centre = X.mean(axis=0)
    scale = max(float(np.abs(X - centre).max()), np.finfo(X.dtype).tiny)
    rows = lambda A: np.ascontiguousarray((A - centre) / scale, dtype=np.float32)  # noqa: E731
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, max(1, int(np.sqrt(n))))
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 10, 64, 1
    index.train(rows(X))
    index.add(rows(X))
    return index, rows


def _raise_probes(index: Any, rows: Callable[[Array], Array], X: Array, k: int) -> float:
    """Double the probes until the recall is reached or all lists are probed; copies of a neighbour count as found."""
    sample = np.random.RandomState(0).permutation(X.shape[0])[:RECALL_SAMPLE]
    lengths = lambda found: pair_distances(X[sample], X, *_flat(found)).reshape(found.shape)  # noqa: E731
    reach = (1 + 1e-5) * lengths(_exact_rows(X, sample, k)).max(axis=1)
    index.nprobe = 2
    while True:
        index.nprobe = min(2 * index.nprobe, index.nlist)
        found = _drop_self(index.search(rows(X[sample]), k + 1)[1], sample)
        recall = float(np.mean((lengths(found) <= reach[:, None]) & (found >= 0)))
        log.info("neighbours: %d of %d lists probed, recall %.4f on a sample", index.nprobe, index.nlist, recall)
        if recall >= TARGET_RECALL or index.nprobe == index.nlist:
            return recall


def _exact_rows(X: Array, rows: np.ndarray, k: int) -> np.ndarray:
    """Exact neighbours of some rows of ``X``, given by their indices."""
    search = NearestNeighbors(algorithm="brute").fit(X)
    return _drop_self(search.kneighbors(X[rows], k + 1, return_distance=False), rows)


def _drop_self(indices: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Each row of k + 1 candidates less the row itself; where copies crowded it out, less the farthest."""
    drop = indices == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    return indices[~drop].reshape(len(indices), -1)


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
    return Edges(rows, columns, distances if back is None else back(distances), (Q.shape[0], X.shape[0]), recall=1.0)


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


def from_transformer(transformer: Any, X: Array, queries: Array | None = None) -> Edges:
    """The edges that a scikit-learn neighbours transformer (or a compatible object) finds, in distances."""
    if isinstance(transformer, type) or not hasattr(transformer, "fit_transform") or is_foreign(X):
        raise TypeError(
            f"{transformer!r} cannot search for neighbours here; give 'auto', 'exact', 'faiss', or, for NumPy rows, "
            "a neighbours transformer such as KNeighborsTransformer()"
        )
    fitted = clone(transformer)
    if "mode" in fitted.get_params():
        fitted.set_params(mode="distance")
    fitted.fit(X)
    found = fitted.transform(X if queries is None else queries)
    if not sp.issparse(found) or found.shape[1] != X.shape[0]:
        raise TypeError(
            f"{transformer!r} gives no sparse matrix of neighbours; use one such as KNeighborsTransformer()"
        )
    found = sp.coo_array(found)
    rows, columns, data = found.row, found.col, found.data.astype(X.dtype, copy=False)
    others = rows != columns if queries is None else np.ones(len(rows), dtype=bool)
    return Edges(rows[others], columns[others], data[others], found.shape)


# ---------------------------------------------------------------------------------------------- distances and products


def pairwise_distances(A: Array, B: Array) -> Array:
    """All Euclidean distances between the rows of ``A`` and ``B``, dense; the products are made in double precision."""
    if is_numpy(A):
        return euclidean_distances(A, B)
    xp = namespace(A)
    centre = xp.mean(B, axis=0)
    left, right = xp.astype(A - centre, xp.float64), xp.astype(B - centre, xp.float64)
    sq_distances = xp.sum(left**2, axis=1)[:, None] + xp.sum(right**2, axis=1)[None, :] - 2 * (left @ right.T)
    return xp.astype(xp.sqrt(xp.where(sq_distances > 0, sq_distances, 0)), A.dtype)


def pair_distances(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """The distance of each pair ``A[rows[e]], B[columns[e]]``, from the differences."""
    if sp.issparse(A):
        return np.sqrt(_over_sparse_pairs(A, B, rows, columns, lambda a, b: (a - b).power(2)))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sqrt(xp.sum((a - b) ** 2, axis=1)))


def pair_products(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """The inner product of each pair ``A[rows[e]], B[columns[e]]``."""
    if sp.issparse(A):
        return _over_sparse_pairs(A, B, rows, columns, lambda a, b: a.multiply(b))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sum(a * b, axis=1))


def _over_sparse_pairs(A: Array, B: Array, rows: Array, columns: Array, entries: Callable) -> Array:
    """Row sums of a sparse function of each pair of rows, in blocks."""
    blocks = row_blocks(rows.shape[0], 48 * max(1, A.nnz // A.shape[0]), A)
    parts = [np.asarray(entries(A[rows[e]], B[columns[e]]).sum(axis=1)).ravel() for e in blocks]
    return np.concatenate(parts).astype(A.dtype, copy=False) if parts else np.empty(0, dtype=A.dtype)


def _over_pairs(A: Array, B: Array, rows: Array, columns: Array, function: Callable) -> Array:
    xp = namespace(A)
    blocks = row_blocks(rows.shape[0], 4 * itemsize(A) * A.shape[1], A)
    parts = [function(xp.take(A, rows[e], axis=0), xp.take(B, columns[e], axis=0), xp) for e in blocks]
    return xp.concat(parts) if parts else A[:0, 0]


def _flat(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.ravel()
