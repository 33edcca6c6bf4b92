"""K-means on every back end: greedy k-means++ seeding, Lloyd's iterations, restarts, and a cosine variant.

Euclidean k-means on NumPy is scikit-learn's, and so is that of small problems on other back ends, which takes no longer
there and has the same result. Everything else runs through one array API implementation below, where the sum of a
cluster is a product with one-hot memberships, so that no back end needs a scatter operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from .._foreign_warnings import ignore_foreign_warnings
from .._records import KMeansResult
from .._typing import RandomState
from .._validation import check_int, check_n_clusters, check_seed, choose
from ..errors import NotConvergedWarning, warn
from .arrays import (
    Array,
    asarray_like,
    eps,
    is_numpy,
    namespace,
    normalize_rows,
    one_hot,
    order_by_first_row,
    renumber,
    sq_row_norms,
    take_clusters,
    to_numpy,
)
from .fitting import check_interrupt
from .parallel import one_thread

IS_SPHERICAL = {"euclidean": False, "cosine": True}  # name -> whether rows and centres are scaled to unit length
MIN_THREADED_MULTIPLICATIONS = 2**27  # of one iteration; for fewer, the threads of OpenMP mostly wait for each other
MAX_HOST_MULTIPLICATIONS = 2**24  # of one iteration, up to which rows on a device are clustered on the host
ROUNDING_ERRORS = 8  # bound on the rounding error of an inertia, in units of eps · Σ_i ‖x_i‖²


def kmeans(
    X: Array,
    n_clusters: int,
    *,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    sample_weight: np.ndarray | None = None,
    random_state: RandomState = None,
) -> KMeansResult:
    """Return the best of ``n_init`` runs of k-means on validated rows, with clusters in the order of their first rows.

    The metric 'cosine' is spherical k-means: rows and centres are scaled to unit length. ``tol`` is on the squared
    movement of the centres, relative to the mean variance of the columns. If fewer clusters have rows, there is a
    NotConvergedWarning of code ``duplicate_rows``.
    """
    spherical = choose(IS_SPHERICAL, metric, option="metric")
    n_clusters = check_n_clusters(n_clusters, X.shape[0])
    n_init, max_iter = check_int(n_init, "n_init"), check_int(max_iter, "max_iter")
    rng = check_seed(random_state)
    if not spherical and (is_numpy(X) or X.shape[0] * X.shape[1] * n_clusters <= MAX_HOST_MULTIPLICATIONS):
        best = _fit_sklearn(X if sp.issparse(X) else to_numpy(X), n_clusters, n_init, max_iter, tol, rng, sample_weight)
        if not is_numpy(X):
            labels = asarray_like(best.labels.astype(np.int64), X)
            best = replace(best, labels=labels, centers=asarray_like(best.centers, X))
    else:
        best = _fit_array_api(X, n_clusters, n_init, max_iter, tol, rng, spherical, sample_weight)
    order = order_by_first_row(best.labels, n_clusters)
    best = replace(best, labels=renumber(best.labels, order), centers=take_clusters(best.centers, order))
    n_distinct = len(np.unique(to_numpy(best.labels)))
    if n_distinct < n_clusters:
        warn(
            f"k-means found only {n_distinct} distinct clusters for n_clusters={n_clusters}, possibly because rows of "
            "X are equal",
            "choose fewer clusters or remove duplicate rows",
            code="duplicate_rows",
            category=NotConvergedWarning,
            n_distinct=n_distinct,
            n_clusters=n_clusters,
        )
    return best


def _fit_sklearn(
    X: Array,
    k: int,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    sample_weight: np.ndarray | None,
) -> KMeansResult:
    model = KMeans(k, n_init=n_init, max_iter=max_iter, tol=tol, random_state=rng)
    is_small = k * (X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]) < MIN_THREADED_MULTIPLICATIONS
    with one_thread() if is_small else nullcontext(), ignore_foreign_warnings():
        # Its only ConvergenceWarning says that clusters are empty, which `kmeans` reports for every back end.
        model.fit(X, sample_weight=sample_weight)
    converged = model.n_iter_ < max_iter
    return KMeansResult(model.labels_, model.cluster_centers_, float(model.inertia_), model.n_iter_, converged)


def _fit_array_api(
    X: Array,
    k: int,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    spherical: bool,
    sample_weight: np.ndarray | None,
) -> KMeansResult:
    mean = None if spherical else namespace(X).mean(X, axis=0)  # centred rows lose fewer digits to cancellation
    X = normalize_rows(X) if spherical else X - mean
    max_shift = tol * _mean_variance(X)
    seeds = rng.randint(2**31 - 1, size=n_init)
    sq_norms = sq_row_norms(X)
    weights = None if sample_weight is None else asarray_like(sample_weight, sq_norms, dtype=sq_norms.dtype)
    runs = (_lloyd(X, k, seed, spherical, max_iter, max_shift, weights) for seed in seeds)
    sq_norms = _weighted(sq_norms, weights)
    best = _lowest_inertia(runs, ROUNDING_ERRORS * eps(sq_norms) * float(namespace(sq_norms).sum(sq_norms)))
    return best if spherical else replace(best, centers=best.centers + mean)


def _lowest_inertia(runs: Iterator[KMeansResult], resolution: float) -> KMeansResult:
    """Return the first of the runs whose inertia is lowest up to ``resolution``."""
    # Inertias of equal partitions differ by rounding: a plain minimum would number clusters differently per back end.
    best = next(runs)
    for run in runs:
        if run.inertia < best.inertia - resolution:
            best = run
    return best


def _weighted(values: Array, weights: Array | None) -> Array:
    """Return the value of each row times its weight."""
    return values if weights is None else values * weights


def _lloyd(
    X: Array, k: int, seed: int, spherical: bool, max_iter: int, max_shift: float, weights: Array | None
) -> KMeansResult:
    """Assign rows to the nearest centre and move the centres to the means, until they stop moving."""
    rng = np.random.RandomState(seed)
    centers = _seed(X, k, rng, weights)
    xp = namespace(centers)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        check_interrupt()
        n_iter += 1
        labels, sq_distances = nearest_center(X, centers)
        new_centers = _means(X, labels, sq_distances, k, spherical, weights)
        converged = float(xp.sum((new_centers - centers) ** 2)) <= max_shift
        centers = new_centers
    labels, sq_distances = nearest_center(X, centers)
    inertia = float(xp.sum(_weighted(sq_distances, weights)))
    inertia *= 0.5 if spherical else 1.0  # ‖x - c‖² = 2 (1 - cos) on the sphere
    return KMeansResult(labels, centers, inertia, n_iter, converged)


def nearest_center(X: Array, centers: Array) -> tuple[Array, Array]:
    """Return the index of the nearest centre of each row and the squared distance to it."""
    xp = namespace(centers)
    scores = xp.sum(centers * centers, axis=1)[None, :] - 2 * (X @ centers.T)
    labels = xp.argmin(scores, axis=1)
    sq_distances = xp.min(scores, axis=1) + sq_row_norms(X)
    return labels, xp.where(sq_distances > 0, sq_distances, 0)


def _means(
    X: Array, labels: Array, sq_distances: Array, k: int, spherical: bool, weights: Array | None = None
) -> Array:
    """Return the mean of each cluster; an empty cluster gets the row that is farthest from its centre."""
    xp = namespace(sq_distances)
    onehot = one_hot(labels, k, sq_distances)
    onehot = onehot if weights is None else onehot * weights[:, None]
    counts, sums = xp.sum(onehot, axis=0), onehot.T @ X
    means = sums / xp.where(counts > 0, counts, 1)[:, None]
    empty = [c for c in range(k) if float(counts[c]) == 0]
    if empty:
        farthest = xp.argsort(sq_distances, descending=True, stable=True)[: len(empty)]
        order = np.full(k, -1)
        order[empty] = np.arange(len(empty))
        refill = xp.take(_dense_rows(X, farthest), asarray_like(np.maximum(order, 0), labels, dtype=xp.int64), axis=0)
        means = xp.where((counts == 0)[:, None], refill, means)
    return normalize_rows(means) if spherical else means


def _seed(X: Array, k: int, rng: np.random.RandomState, weights: Array | None) -> Array:
    """Greedy k-means++ (Arthur & Vassilvitskii 2007): the best of a few rows drawn by squared distance."""
    n, n_trials = X.shape[0], 2 + int(math.log(k))
    centers = _dense_rows(X, asarray_like(np.array([rng.randint(n)]), X.data if sp.issparse(X) else X))
    xp = namespace(centers)
    closest = nearest_center(X, centers)[1]
    while centers.shape[0] < k:
        cumulative = xp.cumulative_sum(_weighted(closest, weights))
        draws = asarray_like(rng.uniform(size=n_trials), closest, dtype=closest.dtype) * cumulative[-1]
        drawn = xp.clip(xp.searchsorted(cumulative, draws), 0, n - 1)
        candidates = _dense_rows(X, drawn)
        distances = sq_row_norms(X)[:, None] + xp.sum(candidates**2, axis=1)[None, :] - 2 * (X @ candidates.T)
        distances = xp.where(distances > 0, distances, 0)
        improved = xp.where(distances < closest[:, None], distances, closest[:, None])
        best = int(xp.argmin(xp.sum(improved if weights is None else improved * weights[:, None], axis=0)))
        closest = improved[:, best]
        centers = xp.concat([centers, candidates[best : best + 1, :]], axis=0)
    return centers


def _dense_rows(X: Array, indices: Array) -> Array:
    return X[indices].toarray() if sp.issparse(X) else namespace(X).take(X, indices, axis=0)


def _mean_variance(X: Array) -> float:
    """Return the variance of the columns, averaged over them."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        return float(np.mean(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2))
    xp = namespace(X)
    return float(xp.mean(xp.var(X, axis=0)))
