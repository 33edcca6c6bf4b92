"""Nearest neighbours as edges: the k nearest, or those within a radius; a row is never its own neighbour.

``method="auto"`` searches dense rows in cells if there are more than `APPROXIMATE_ABOVE` of them (on a device
`DEVICE_APPROXIMATE_ABOVE`) with more than a few features, and exactly otherwise. The searches are in `exact_search` and
`voronoi`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import VALID_METRICS, NearestNeighbors

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import check_n_jobs, choose, did_you_mean, is_foreign
from ..core.arrays import (
    Array,
    arange,
    itemsize,
    namespace,
    normalize_rows,
    row_blocks,
    row_norms,
    take_rows,
    to_numpy,
)
from ..errors import InputError, InputTypeError, shown
from .exact_search import drop_self, exact_neighbors
from .kernels import pair_distances, pairwise_distances
from .voronoi import neighbors_by_faiss, neighbors_in_cells

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
        problem = f"n_neighbors={n_neighbors} needs more rows than there are (n_samples={X.shape[0]})"
        fields = {"parameter": "n_neighbors", "n_neighbors": n_neighbors, "n_samples": X.shape[0]}
        raise InputError(problem, f"choose at most {n_candidates}", code="too_few_rows_for_neighbors", **fields)
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
    names = sorted({*VALID_METRICS["brute"], *VALID_METRICS["ball_tree"]} - {"precomputed"})
    if not callable(metric) and not (isinstance(metric, str) and metric in names):
        problem = f"metric={shown(metric)} is not known{did_you_mean(metric, names)}"
        hint = "choose 'euclidean', 'cosine' or another metric of scikit-learn's NearestNeighbors"
        raise InputError(problem, hint, code="unknown_option", parameter="metric", value=metric, options=names)
    if metric != "cosine":
        if metric != "euclidean" and (is_foreign(X) or sp.issparse(X)):
            kind = "sparse" if sp.issparse(X) else "device"
            problem = f"metric={metric!r} is not supported for {kind} arrays"
            hint = "use 'euclidean' or 'cosine', or pass a dense NumPy array"
            raise InputError(problem, hint, code="unsupported_metric", parameter="metric", value=metric)
        return X, queries, None
    return unit_rows(X), None if queries is None else unit_rows(queries), lambda d: 0.5 * d * d


def unit_rows(X: Array) -> Array:
    """Scale rows to unit length; raise an error for a row of zeros, which has no direction."""
    norms = row_norms(X)
    xp = namespace(norms)
    n_zero = int(xp.sum(xp.astype(norms == 0, xp.int64)))
    if n_zero:
        problem = f"{n_zero} row(s) of X are all zero and have no cosine"
        raise InputError(problem, "remove them, or use metric='euclidean'", code="zero_rows", n_rows=n_zero)
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
        problem = f"{shown(transformer)} cannot search for neighbours of this data"
        raise InputTypeError(
            problem,
            (
                "use 'auto', 'exact', 'cells', 'faiss', or, for NumPy rows, a neighbours transformer such as "
                "KNeighborsTransformer()"
            ),
            code="not_a_neighbors_transformer",
            parameter="method",
        )
    fitted = clone(transformer)
    if "mode" in fitted.get_params():
        fitted.set_params(mode="distance")
    fitted.fit(X)
    distances = fitted.transform(X if queries is None else queries)
    if not sp.issparse(distances) or distances.shape[1] != X.shape[0]:
        problem = f"{shown(transformer)} does not return a sparse matrix of neighbours"
        hint = "use a transformer such as KNeighborsTransformer()"
        raise InputTypeError(problem, hint, code="not_a_neighbors_transformer", parameter="method")
    distances = sp.coo_array(distances)
    rows, columns, lengths = distances.row, distances.col, distances.data.astype(X.dtype, copy=False)
    others = rows != columns if queries is None else np.ones(len(rows), dtype=bool)
    return Edges(rows[others], columns[others], lengths[others], distances.shape)
