"""Nearest neighbours as edges: the k nearest, or those within a radius; a row is never its own neighbour.

``method="auto"`` searches dense rows in cells if there are more than `APPROXIMATE_ABOVE` of them (on a device
`DEVICE_APPROXIMATE_ABOVE`) with more than a few features, and exactly otherwise. The searches are in `exact_search` and
`approximate_search`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import VALID_METRICS, NearestNeighbors

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import check_n_jobs, choose, did_you_mean, import_optional, is_foreign
from ..core.arrays import (
    Array,
    arange,
    is_numpy,
    is_on_host,
    itemsize,
    namespace,
    normalize_rows,
    row_blocks,
    row_norms,
    take_rows,
    to_numpy,
)
from ..core.parallel import map_pieces
from ..errors import InputError, InputTypeError, shown
from .exact_search import drop_self, exact_neighbors, exact_neighbors_of_rows, stack_neighbors
from .kernels import pair_distances, pairwise_distances
from .voronoi import Cells, nearest_cells, search_in_cells, split_into_cells
from .weights import Copies

# ---------------------------------------------------------------------------------------------------------------------
# Approximate searches for nearest neighbours of dense rows, whose recall is measured on a sample.
#
# ======================  ==============================================================================================
# ``method="cells"``      products of the rows of a cell with those of the nearest cells, on any back end
# ``method="faiss"``      an inverted-file index; the number of probes grows until a sample reaches the recall
# ======================  ==============================================================================================
#
# Both compare a sample with the exact search, look into as many cells as its recall requires, and search exactly if
# that fails.

log = logging.getLogger(__name__)

TARGET_RECALL = 0.995  # fraction of the true neighbours of the sample that an approximate search must find
RECALL_SAMPLE = 500  # rows whose exact neighbours determine the number of cells to search
CELLS_PER_ROOT = 2  # cells on the host, per √n
DEVICE_CELLS_PER_ROOT = 0.4  # fewer on a device, which is faster at few large products
CELL_ITERATIONS = 4  # k-means iterations that place the centres of the cells
MAX_NEAR_SHARE = 0.5  # share of the cells above which the exact search is as fast


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
        lengths, neighbors = map(to_numpy, exact_neighbors_of_rows(X, sample, n_exact, n_jobs))
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
        return drop_self((to_numpy(found[0]), to_numpy(found[1])), rows)


def neighbors_in_cells(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
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
        return exact_neighbors(X, queries, k, metric, n_jobs)
    recall = float(np.mean(search.search_rows(search.sample, n_near, n_jobs)[0] <= search.reach))
    log.info("neighbours: %d of %d cells searched, recall %.4f on a sample", n_near, n_cells, recall)
    if recall < TARGET_RECALL:
        _warn_of_recall("the search in cells", recall)
        return exact_neighbors(X, queries, k, metric, n_jobs)
    return *search.search(queries, n_near, k, n_jobs), recall


def neighbors_by_faiss(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
    """Search an inverted file of √n lists; the number of probes grows until a sample reaches `TARGET_RECALL`."""
    _check_dense("faiss", X, metric, is_supported=is_numpy(X) and not sp.issparse(X))
    index, to_index = _inverted_file(X)
    recall = _raise_probes(index, to_index, X, k, n_jobs)
    if recall < TARGET_RECALL:  # single precision cannot distinguish these rows
        _warn_of_recall("faiss", recall)
        return exact_neighbors(X, queries, k, metric, n_jobs)
    Q = X if queries is None else queries
    found = map_pieces(
        lambda rows: index.search(to_index(Q[rows]), k + (queries is None)), len(Q), "searching neighbours"
    )
    distances, indices = stack_neighbors(found)
    if queries is None:
        distances, indices = drop_self((distances, indices), np.arange(X.shape[0]))
    short = np.flatnonzero((indices < 0).any(axis=1))  # too few candidates in the probed lists
    if len(short):
        indices[short] = (
            exact_neighbors_of_rows(X, short, k, n_jobs)
            if queries is None
            else exact_neighbors(X, queries[short], k, metric, n_jobs)
        )[1]
    distances = pair_distances(Q, X, *_flat(indices))
    return distances.reshape(indices.shape), indices, recall


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
    reach = (1 + 1e-5) * exact_neighbors_of_rows(X, sample, k, n_jobs)[0][:, -1:]
    index.nprobe = 2
    while True:
        index.nprobe = min(-(-3 * index.nprobe // 2), index.nlist)
        _, neighbors = drop_self(index.search(rows, k + 1), sample)
        lengths = pair_distances(X[sample], X, *_flat(neighbors)).reshape(neighbors.shape)
        recall = float(np.mean((lengths <= reach) & (neighbors >= 0)))
        log.info("neighbours: %d of %d lists probed, recall %.4f on a sample", index.nprobe, index.nlist, recall)
        if recall >= TARGET_RECALL or index.nprobe == index.nlist:
            return recall


def _sample(X: Array) -> np.ndarray:
    """Return the indices of some rows, always the same ones."""
    return np.random.RandomState(0).permutation(X.shape[0])[:RECALL_SAMPLE]


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


def _flat(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.ravel()


# ---------------------------------------------------------------------------------------------------------------------

SearchMethod: TypeAlias = Literal["auto", "exact", "cells", "faiss"]

SEARCHES = {"exact": exact_neighbors, "cells": neighbors_in_cells, "faiss": neighbors_by_faiss}
APPROXIMATE_ABOVE = 50_000  # rows; below, the exact search takes seconds and an approximate one gains little
DEVICE_APPROXIMATE_ABOVE = 100_000  # the same for device arrays
MAX_TREE_FEATURES_OF_MANY = 4  # features up to which scikit-learn's trees are faster than cells, so "auto" is exact


@dataclass(frozen=True)
class Edges:
    """Directed edges ``rows[e] -> columns[e]`` with their lengths, and the recall if the search estimated it."""

    rows: Array
    columns: Array
    distances: Array
    shape: tuple[int, int]
    recall: float | None = None


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
    return drop_self((distances, indices), rows)


def _as_euclidean(X: Array, queries: Array | None, metric: str) -> tuple[Array, Array | None, Callable | None]:
    """Rewrite cosine as a Euclidean problem on unit rows, where |x - y|² = 2 (1 - cos); keep other metrics.

    The third result converts Euclidean distances back, or is None.
    """
    _check_metric(metric)
    if metric != "cosine":
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
    if not callable(metric) and not (isinstance(metric, str) and metric in names):
        raise InputError(
            f"metric={shown(metric)} is not known{did_you_mean(metric, names)}",
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
            f"{shown(transformer)} cannot search for neighbours of this data",
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
            f"{shown(transformer)} does not return a sparse matrix of neighbours",
            "use a transformer such as KNeighborsTransformer()",
            code="not_a_neighbors_transformer",
            parameter="method",
        )
    distances = sp.coo_array(distances)
    rows, columns, lengths = distances.row, distances.col, distances.data.astype(X.dtype, copy=False)
    others = rows != columns if queries is None else np.ones(len(rows), dtype=bool)
    return Edges(rows[others], columns[others], lengths[others], distances.shape)
