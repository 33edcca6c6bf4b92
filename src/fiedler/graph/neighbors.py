"""Nearest neighbours: exact on dense, sparse and device arrays, or approximate; the point itself is excluded.

======================  ==============================================================================================
dense NumPy             scikit-learn; in float32 with more than 8 features a blocked product (0.6 of the time)
torch, CuPy, ...        a blocked matrix product and partial sort, on the device
CSR rows                a blocked sparse product; only one block of similarities is dense at a time
``method="cells"``      products of the rows of a cell with those of the nearest cells; dense rows on any back end
``method="faiss"``      an inverted-file index; the number of probes grows until a sample reaches the recall
======================  ==============================================================================================

``method="auto"`` searches dense rows in cells if there are more than `APPROXIMATE_ABOVE` of them (on a device
`DEVICE_APPROXIMATE_ABOVE`) with more than a few features, and exactly otherwise. The approximate searches compare a
sample with the exact search, look into as many cells as its recall requires, and search exactly if that fails.
|x|² + |y|² - 2x'y suffers from cancellation. So matrix products only propose candidates, and their distances are
computed from differences; in the exact search, rows for which single precision may have missed a neighbour are searched
again in double.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import pairwise_distances as metric_distances
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import VALID_METRICS, NearestNeighbors

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import check_n_jobs, choose, did_you_mean, import_optional, is_foreign
from ..core.backend import (
    Array,
    arange,
    asarray_like,
    eps,
    is_numpy,
    is_on_host,
    itemsize,
    namespace,
    row_blocks,
    smallest_k,
    to_numpy,
)
from ..core.blocks import map_blocks, map_pieces
from ..core.interrupts import is_worker_thread
from ..core.progress import stage
from ..core.rows import normalize_rows, replace_rows, row_norms, sq_row_norms, take_rows
from ..errors import InputError, InputTypeError
from .cells import Cells, nearest_cells, search_in_cells, split_into_cells
from .copies import Copies
from .ties import EXTRA_CANDIDATES, complete_ties, first_of_ties

log = logging.getLogger(__name__)

SearchMethod: TypeAlias = Literal["auto", "exact", "cells", "faiss"]

APPROXIMATE_ABOVE = 50_000  # rows; below, the exact search takes seconds and an approximate one gains little
DEVICE_APPROXIMATE_ABOVE = 100_000  # the same for device arrays
MAX_TREE_FEATURES = 8  # features up to which scikit-learn's trees are faster than products of all float32 rows
MAX_TREE_FEATURES_OF_MANY = 4  # features up to which they are faster than cells, so that "auto" is exact
SLICE_ROWS = 512  # queries of one call of scikit-learn, after which an interrupt is heard
MIN_ROWS_FOR_PIECES = 10_000  # rows above which scikit-learn searches them piece by piece
TARGET_RECALL = 0.995  # fraction of the true neighbours of the sample that an approximate search must find
RECALL_SAMPLE = 500  # rows whose exact neighbours determine the number of cells to search
CELLS_PER_ROOT = 2  # cells on the host, per √n
DEVICE_CELLS_PER_ROOT = 0.4  # fewer on a device, which is faster at few large products
CELL_ITERATIONS = 4  # k-means iterations that place the centres of the cells
MAX_NEAR_SHARE = 0.5  # share of the cells above which the exact search is as fast


@dataclass(frozen=True)
class Edges:
    """Directed edges ``rows[e] -> columns[e]`` with their lengths, and the recall if the search estimated it."""

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
    method: SearchMethod | Any = "auto",
    n_jobs: int | None = None,
) -> Edges:
    """Return the ``n_neighbors`` nearest rows of ``X`` for every query, sorted by distance.

    ``X`` and ``queries`` must be validated already. Without ``queries`` the rows of ``X`` are the queries, and a row is
    never its own neighbour: it is removed by its index, so that its duplicates remain. ``method`` may also be a
    scikit-learn neighbours transformer.
    """
    if not isinstance(method, str):
        return from_transformer(method, X, queries)
    n_candidates = X.shape[0] - (queries is None)
    if n_neighbors > n_candidates:
        raise InputError(
            f"n_neighbors={n_neighbors} needs more rows than there are (n_samples={X.shape[0]})",
            f"choose at most {n_candidates}",
            code="too_few_rows_for_neighbors",
            parameter="n_neighbors",
            n_neighbors=n_neighbors,
            n_samples=X.shape[0],
        )
    n_jobs = check_n_jobs(n_jobs)
    X, queries, to_metric = _as_euclidean(X, queries, metric)
    if method == "auto":
        method = "cells" if _prefers_cells(X, metric) and queries is None else "exact"
    search = choose(SEARCHES, method, option="method", also=["auto"])
    distances, indices, recall = search(X, queries, n_neighbors, metric if to_metric is None else "euclidean", n_jobs)
    xp = namespace(distances)
    n_queries = indices.shape[0]
    rows = xp.broadcast_to(arange(n_queries, distances)[:, None], indices.shape)
    return Edges(
        rows=xp.reshape(rows, (-1,)),
        columns=xp.reshape(indices, (-1,)),
        distances=xp.reshape(distances if to_metric is None else to_metric(distances), (-1,)),
        shape=(n_queries, X.shape[0]),
        recall=recall,
    )


def nearest_of_rows(X: Array, rows: np.ndarray, k: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances and numbers of the ``k`` nearest neighbours of some rows of ``X``, on the host."""
    found = k_nearest(X, k + 1, queries=take_rows(X, rows), n_jobs=n_jobs)
    distances, indices = (to_numpy(part).reshape(len(rows), k + 1) for part in (found.distances, found.columns))
    return _drop_self((distances, indices), rows)


def _as_euclidean(X: Array, queries: Array | None, metric: str) -> tuple[Array, Array | None, Callable | None]:
    """Rewrite cosine as a Euclidean problem on unit rows, where |x - y|² = 2 (1 - cos); keep other metrics.

    The third result converts Euclidean distances back, or is None.
    """
    if metric != "cosine":
        _check_metric(metric)
        if metric != "euclidean" and (is_foreign(X) or sp.issparse(X)):
            kind = "sparse" if sp.issparse(X) else "device"
            raise InputError(
                f"metric={metric!r} is not supported for {kind} arrays",
                "use 'euclidean' or 'cosine', or pass a dense NumPy array",
                code="unsupported_metric",
                parameter="metric",
                value=metric,
            )
        return X, queries, None
    return unit_rows(X), None if queries is None else unit_rows(queries), lambda d: 0.5 * d * d


def _check_metric(metric: Any) -> None:
    """Raise an error unless ``metric`` is a function or a name that scikit-learn's NearestNeighbors knows."""
    names = sorted({*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"]} - {"precomputed"})
    if not callable(metric) and metric not in names:
        raise InputError(
            f"metric={metric!r} is not known{did_you_mean(str(metric), names)}",
            "choose 'euclidean', 'cosine' or another metric of scikit-learn's NearestNeighbors",
            code="unknown_option",
            parameter="metric",
            value=metric,
            options=names,
        )


def unit_rows(X: Array) -> Array:
    """Scale rows to unit length; raise an error for a row of zeros, which has no direction."""
    norms = row_norms(X)
    xp = namespace(norms)
    n_zero = int(xp.sum(xp.astype(norms == 0, xp.int64)))
    if n_zero:
        raise InputError(
            f"{n_zero} row(s) of X are all zero and have no cosine",
            "remove them, or use metric='euclidean'",
            code="zero_rows",
            n_rows=n_zero,
        )
    return normalize_rows(X)


def _prefers_cells(X: Array, metric: str) -> bool:
    if sp.issparse(X) or metric not in ("euclidean", "cosine"):
        return False
    if is_foreign(X):
        return bool(X.shape[0] > DEVICE_APPROXIMATE_ABOVE)
    return bool(X.shape[0] > APPROXIMATE_ABOVE and X.shape[1] > MAX_TREE_FEATURES_OF_MANY)


@ignore_foreign_warnings()
def _exact(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
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
        return _exact_products(X, Q, self_indices, k, n_jobs)
    in_one_call = (X if queries is None else queries).shape[0] < MIN_ROWS_FOR_PIECES
    threads = n_jobs if in_one_call and not is_worker_thread() else None
    search = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=threads).fit(X)
    if in_one_call:
        return search.kneighbors(queries)  # without queries scikit-learn drops each row by its index
    if queries is None:
        parts = _in_slices(lambda rows: search.kneighbors(X[rows], k + 1), X, n_jobs)
        return _drop_self(_stack(parts), np.arange(X.shape[0]))
    return _stack(_in_slices(lambda rows: search.kneighbors(queries[rows]), queries, n_jobs))


def _in_slices(search: Callable[[slice], tuple], Q: Array, n_jobs: int | None) -> list[tuple]:
    """Call scikit-learn on slices of queries."""
    slices = [slice(start, start + SLICE_ROWS) for start in range(0, Q.shape[0], SLICE_ROWS)]
    with stage("searching neighbours", len(slices)) as tick:
        return map_blocks(search, slices, Q, n_jobs=n_jobs, tick=tick)


def _exact_products(X: Array, Q: Array, self_indices: Array | None, k: int, n_jobs: int | None) -> tuple[Array, Array]:
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


# ------------------------------------------------------------------------------------------------ approximate searches


@dataclass(frozen=True, eq=False)
class CellSearch:
    """A search in cells near that of each query, whose recall is known from the exact neighbours of a sample.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows.
    k : int
        The number of neighbours.
    cells : Cells
    near : ndarray of shape (n_cells, n_cells)
        For every cell, all cells by distance.
    sample : ndarray of shape (m,)
        The rows whose exact neighbours are known.
    reach : ndarray of shape (m, 1)
        The distance to the last of them.
    ranks : ndarray of shape (m * k,)
        How many of the nearest cells have to be searched to find each of them, ascending.
    """

    X: Array
    k: int
    cells: Cells
    near: np.ndarray
    sample: np.ndarray
    reach: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, X: Array, k: int, n_jobs: int | None = None) -> CellSearch:
        """Divide dense rows into cells, and search the neighbours of a sample exactly."""
        per_root = CELLS_PER_ROOT if is_on_host(X) else DEVICE_CELLS_PER_ROOT
        cells = split_into_cells(X, max(1, int(per_root * X.shape[0] ** 0.5)), n_iter=CELL_ITERATIONS)
        near, sample = nearest_cells(cells), _sample(X)
        n_exact = min(4 * k, X.shape[0] - 1)  # more than k, so that equally near rows are known
        lengths, neighbors = map(to_numpy, _exact_rows(X, sample, n_exact, n_jobs))
        reach, cell = (1 + 1e-5) * lengths[:, k - 1 : k], cells.of_rows()
        rank = np.argsort(near, axis=1)[cell[sample][:, None], cell[neighbors]]  # cells that lead to each neighbour
        ranks = np.sort(np.where(lengths <= reach, rank, len(cells)), axis=1)[:, :k]
        return cls(X, k, cells, near, sample, reach, np.sort(ranks, axis=None))

    def n_near(self, recall: float) -> int:
        """Return the number of cells to search for a recall; they have more than k rows together."""
        needed = 1 + int(self.ranks[int(np.ceil(recall * self.ranks.size)) - 1])
        n_rows = np.cumsum(np.diff(self.cells.starts)[self.near], axis=1)
        return max(needed, 1 + int(np.sum(n_rows <= self.k, axis=1).max()))

    def is_worthwhile(self, n_near: int) -> bool:
        """Whether so few cells have to be searched that it is faster than the exact search."""
        return n_near <= MAX_NEAR_SHARE * len(self.cells)

    def search(self, queries: Array | None, n_near: int, k: int, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return the distances and indices of the ``k`` nearest rows in the ``n_near`` nearest cells."""
        return search_in_cells(self.cells, self.near[:, :n_near], self.X, queries, k, n_jobs)

    def search_rows(self, rows: np.ndarray, n_near: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of some of the rows, on the host, without each row itself."""
        found = self.search(take_rows(self.X, rows), n_near, self.k + 1, n_jobs)
        return _drop_self((to_numpy(found[0]), to_numpy(found[1])), rows)


def _cells(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    """Compare the rows of each cell with those of the nearest cells, as many as a sample needs for `TARGET_RECALL`."""
    _check_dense("cells", X, metric, is_supported=not sp.issparse(X))
    copies = Copies.of(X, k) if queries is None and is_numpy(X) else None
    if copies is None or not copies.n_groups:
        return _in_cells(X, queries, k, metric, n_jobs)
    searched = copies.searched(X.shape[0])
    distances, indices, recall = _in_cells(X[searched], None, k, metric, n_jobs)
    return *copies.complete(X.shape[0], searched, distances, indices), recall


def _in_cells(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    search = CellSearch.of(X, k, n_jobs)
    n_near, n_cells = search.n_near(TARGET_RECALL), len(search.cells)
    if not search.is_worthwhile(n_near):
        log.info("neighbours: %d of %d cells would have to be searched; searching exactly", n_near, n_cells)
        return _exact(X, queries, k, metric, n_jobs)
    recall = float(np.mean(search.search_rows(search.sample, n_near, n_jobs)[0] <= search.reach))
    log.info("neighbours: %d of %d cells searched, recall %.4f on a sample", n_near, n_cells, recall)
    if recall < TARGET_RECALL:
        _warn_of_recall("the search in cells", recall)
        return _exact(X, queries, k, metric, n_jobs)
    return *search.search(queries, n_near, k, n_jobs), recall


def _faiss(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    """Search an inverted file of √n lists; the number of probes grows until a sample reaches `TARGET_RECALL`."""
    _check_dense("faiss", X, metric, is_supported=is_numpy(X) and not sp.issparse(X))
    index, to_index = _inverted_file(X)
    recall = _raise_probes(index, to_index, X, k, n_jobs)
    if recall < TARGET_RECALL:  # single precision cannot distinguish these rows
        _warn_of_recall("faiss", recall)
        return _exact(X, queries, k, metric, n_jobs)
    Q = X if queries is None else queries
    found = map_pieces(
        lambda rows: index.search(to_index(Q[rows]), k + (queries is None)), len(Q), "searching neighbours"
    )
    distances, indices = _stack(found)
    if queries is None:
        distances, indices = _drop_self((distances, indices), np.arange(X.shape[0]))
    short = np.flatnonzero((indices < 0).any(axis=1))  # too few candidates in the probed lists
    if len(short):
        indices[short] = (
            _exact_rows(X, short, k, n_jobs) if queries is None else _exact(X, queries[short], k, metric, n_jobs)
        )[1]
    distances = pair_distances(Q, X, *_flat(indices))
    return distances.reshape(indices.shape), indices, recall


def _check_dense(method: str, X: Array, metric: str, *, is_supported: bool) -> None:
    if not is_supported or metric != "euclidean":
        kind = "dense NumPy" if method == "faiss" else "dense"
        raise InputError(
            f"method={method!r} needs {kind} rows and metric 'euclidean' or 'cosine'",
            "use method='exact'",
            code=f"{method}_not_supported",
            parameter="method",
            value=method,
        )


def _warn_of_recall(search: str, recall: float) -> None:
    log.warning("neighbours: %s reaches a recall of only %.3f on this data; searching exactly", search, recall)


def _inverted_file(X: Array) -> tuple[Any, Callable[[Array], Array]]:
    """Return the index and the function that prepares rows for it: float32, centred and scaled."""
    faiss = import_optional("faiss", extra="ann", purpose="approximate neighbours")
    n, d = X.shape
    center = X.mean(axis=0)
    rounding = np.finfo(X.dtype).eps * float(np.abs(center).max())  # equal rows differ from their mean by this much
    scale = max(float(np.abs(X - center).max()), rounding) or 1.0
    to_index = lambda A: np.ascontiguousarray((A - center) / scale, dtype=np.float32)  # noqa: E731
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, max(1, int(np.sqrt(n))))
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 10, 64, 1
    index.train(to_index(X[np.random.RandomState(0).permutation(n)[: 64 * index.nlist]]))
    map_pieces(lambda rows: index.add(to_index(X[rows])), n, "building the index")
    return index, to_index


def _raise_probes(index: Any, to_index: Callable[[Array], Array], X: Array, k: int, n_jobs: int | None) -> float:
    """Probe more lists until the recall is reached or all are probed; copies of a neighbour count as found."""
    sample = _sample(X)
    rows = to_index(X[sample])
    reach = (1 + 1e-5) * _exact_rows(X, sample, k, n_jobs)[0][:, -1:]
    index.nprobe = 2
    while True:
        index.nprobe = min(-(-3 * index.nprobe // 2), index.nlist)
        _, neighbors = _drop_self(index.search(rows, k + 1), sample)
        lengths = pair_distances(X[sample], X, *_flat(neighbors)).reshape(neighbors.shape)
        recall = float(np.mean((lengths <= reach) & (neighbors >= 0)))
        log.info("neighbours: %d of %d lists probed, recall %.4f on a sample", index.nprobe, index.nlist, recall)
        if recall >= TARGET_RECALL or index.nprobe == index.nlist:
            return recall


def _sample(X: Array) -> np.ndarray:
    """Return the indices of some rows, always the same ones."""
    return np.random.RandomState(0).permutation(X.shape[0])[:RECALL_SAMPLE]


def _exact_rows(X: Array, rows: np.ndarray, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the exact neighbours of some rows of ``X``, given by their indices."""
    return _exact_products(X, take_rows(X, rows), asarray_like(rows, X), k, n_jobs)


def _stack(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Join the distances and the indices of consecutive rows."""
    return np.concatenate([distances for distances, _ in parts]), np.concatenate([indices for _, indices in parts])


def _drop_self(neighbors: tuple[np.ndarray, np.ndarray], self_indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the row itself from its k + 1 neighbours, or the farthest if it is not among them because of its copies."""
    distances, indices = neighbors
    keep = indices != self_indices[:, None]
    keep[keep.all(axis=1), -1] = False
    return distances[keep].reshape(len(indices), -1), indices[keep].reshape(len(indices), -1)


SEARCHES = {"exact": _exact, "cells": _cells, "faiss": _faiss}


# ------------------------------------------------------------------------------------------------- other searches


def within_radius(
    X: Array, radius: float, *, queries: Array | None = None, metric: str = "euclidean", n_jobs: int | None = None
) -> Edges:
    """Return all pairs at distance at most ``radius`` (the ε-neighbours), without a point and itself.

    ``X`` and ``queries`` must be validated already.
    """
    n_jobs = check_n_jobs(n_jobs)
    X, queries, to_metric = _as_euclidean(X, queries, metric)
    if to_metric is not None:
        radius, metric = float(np.sqrt(2 * radius)), "euclidean"
    Q = X if queries is None else queries
    if is_foreign(X):
        rows, columns = _radius_device(X, queries, radius)
        distances = pair_distances(Q, X, rows, columns)
    else:
        with ignore_foreign_warnings():
            search = NearestNeighbors(radius=radius, metric=metric, n_jobs=n_jobs).fit(X)
            lengths, indices = search.radius_neighbors(queries)
        rows = np.repeat(np.arange(Q.shape[0]), [len(i) for i in indices])
        columns, distances = np.concatenate(indices), np.concatenate(lengths).astype(X.dtype, copy=False)
    if to_metric is not None:
        distances = to_metric(distances)
    return Edges(rows, columns, distances, (Q.shape[0], X.shape[0]), recall=1.0)


def _radius_device(X: Array, queries: Array | None, radius: float) -> tuple[Array, Array]:
    xp = namespace(X)
    Q = X if queries is None else queries
    row_parts, column_parts = [], []
    for rows in row_blocks(Q.shape[0], 4 * itemsize(X) * X.shape[0], X):
        near = pairwise_distances(Q[rows, :], X) <= radius
        if queries is None:
            near = near & (arange(X.shape[0], X)[None, :] != arange(X.shape[0], X)[rows][:, None])
        block_rows, block_columns = xp.nonzero(near)
        row_parts.append(block_rows + rows.start)
        column_parts.append(block_columns)
    return xp.concat(row_parts), xp.concat(column_parts)


def from_transformer(transformer: Any, X: Array, queries: Array | None = None) -> Edges:
    """Return the neighbours found by a scikit-learn neighbours transformer (or a compatible object) as edges."""
    if isinstance(transformer, type) or not hasattr(transformer, "fit_transform") or is_foreign(X):
        raise InputTypeError(
            f"{transformer!r} cannot search for neighbours of this data",
            "use 'auto', 'exact', 'cells', 'faiss', or, for NumPy rows, a neighbours transformer such as "
            "KNeighborsTransformer()",
            code="not_a_neighbors_transformer",
            parameter="method",
        )
    fitted = clone(transformer)
    if "mode" in fitted.get_params():
        fitted.set_params(mode="distance")
    fitted.fit(X)
    distances = fitted.transform(X if queries is None else queries)
    if not sp.issparse(distances) or distances.shape[1] != X.shape[0]:
        raise InputTypeError(
            f"{transformer!r} does not return a sparse matrix of neighbours",
            "use a transformer such as KNeighborsTransformer()",
            code="not_a_neighbors_transformer",
            parameter="method",
        )
    distances = sp.coo_array(distances)
    rows, columns, lengths = distances.row, distances.col, distances.data.astype(X.dtype, copy=False)
    others = rows != columns if queries is None else np.ones(len(rows), dtype=bool)
    return Edges(rows[others], columns[others], lengths[others], distances.shape)


# ---------------------------------------------------------------------------------------------- distances and products


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


def _flat(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.ravel()
