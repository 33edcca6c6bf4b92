"""K-means on every back end: k-means++ seeding, Lloyd's rounds, restarts, empty clusters refilled, a cosine variant.

Euclidean k-means on NumPy is scikit-learn's. Everything else runs through one array API implementation below, where
a cluster's sum is a product with one-hot memberships, so that no back end needs a scatter operation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from .._records import KMeansResult
from .._validation import check_data, check_int, check_n_clusters, choose
from .backend import Array, asarray_like, is_numpy, namespace, one_hot
from .rows import normalize_rows, sq_row_norms

METRICS = {"euclidean": False, "cosine": True}  # name -> whether rows and centres are kept at length one


def kmeans(
    X: Array,
    n_clusters: int,
    *,
    metric: str = "euclidean",
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: Any = None,
) -> KMeansResult:
    """The best of ``n_init`` runs of k-means.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        On NumPy, torch or CuPy.
    n_clusters : int
    metric : {'euclidean', 'cosine'}, default='euclidean'
        'cosine' is spherical k-means: rows and centres have length one. A row of zeros has no direction and may land in
        any cluster.
    n_init : int, default=10
        Seedings tried; the run of lowest inertia is kept.
    max_iter : int, default=300
    tol : float, default=1e-4
        On the squared movement of the centres, relative to the mean variance of the columns.
    random_state : int, RandomState or None

    Returns
    -------
    KMeansResult

    Examples
    --------
    >>> import numpy as np
    >>> run = kmeans(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, random_state=0)
    >>> float(round(run.inertia, 3))
    0.01
    """
    spherical = choose(METRICS, metric, option="metric")
    X = check_data(X)
    n_clusters = check_n_clusters(n_clusters, X.shape[0])
    n_init, max_iter = check_int(n_init, "n_init"), check_int(max_iter, "max_iter")
    rng = check_random_state(random_state)
    if is_numpy(X) and not spherical:
        model = KMeans(n_clusters, n_init=n_init, max_iter=max_iter, tol=tol, random_state=rng).fit(X)
        converged = model.n_iter_ < max_iter
        return KMeansResult(model.labels_, model.cluster_centers_, float(model.inertia_), model.n_iter_, converged)
    xp = namespace(X)
    centre = None if spherical else xp.mean(X, axis=0)  # nearer the origin fewer digits cancel
    X = normalize_rows(X) if spherical else X - centre
    allowed = tol * _mean_variance(X)
    seeds = rng.randint(2**31 - 1, size=n_init)
    runs = (_lloyd(X, n_clusters, seed, spherical, max_iter, allowed) for seed in seeds)
    best = min(runs, key=lambda run: run.inertia)
    return best if spherical else replace(best, centers=best.centers + centre)


def _lloyd(X: Array, k: int, seed: int, spherical: bool, max_iter: int, allowed: float) -> KMeansResult:
    """Assign to the nearest centre, move the centres to the means, until they rest."""
    rng = np.random.RandomState(seed)
    centers = _seed(X, k, rng)
    xp = namespace(centers)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        labels, sq_distances = nearest_center(X, centers)
        moved = _means(X, labels, sq_distances, k, spherical)
        converged = float(xp.sum((moved - centers) ** 2)) <= allowed
        centers = moved
    labels, sq_distances = nearest_center(X, centers)
    inertia = float(xp.sum(sq_distances)) * (0.5 if spherical else 1.0)  # |x - c|² = 2 (1 - cos) on the sphere
    return KMeansResult(labels, centers, inertia, n_iter, converged)


def nearest_center(X: Array, centers: Array) -> tuple[Array, Array]:
    """The nearest centre of each row and the squared distance to it."""
    xp = namespace(centers)
    scores = xp.sum(centers * centers, axis=1)[None, :] - 2 * (X @ centers.T)
    labels = xp.argmin(scores, axis=1)
    sq_distances = xp.min(scores, axis=1) + sq_row_norms(X)
    return labels, xp.where(sq_distances > 0, sq_distances, 0)


def _means(X: Array, labels: Array, sq_distances: Array, k: int, spherical: bool) -> Array:
    """The clusters' means; a cluster that lost all its points takes the row farthest from its own centre."""
    xp = namespace(sq_distances)
    onehot = one_hot(labels, k, sq_distances)
    counts, sums = xp.sum(onehot, axis=0), onehot.T @ X
    means = sums / xp.where(counts > 0, counts, 1)[:, None]
    empty = [c for c in range(k) if float(counts[c]) == 0]
    if empty:
        farthest = xp.argsort(sq_distances, descending=True, stable=True)[: len(empty)]
        order = np.full(k, -1)
        order[empty] = np.arange(len(empty))
        refill = xp.take(_rows(X, farthest), asarray_like(np.maximum(order, 0), labels, dtype=xp.int64), axis=0)
        means = xp.where((counts == 0)[:, None], refill, means)
    return normalize_rows(means) if spherical else means


def _seed(X: Array, k: int, rng: np.random.RandomState) -> Array:
    """Greedy k-means++ (Arthur & Vassilvitskii 2007): of a few rows drawn by squared distance, the best is taken."""
    n, n_trials = X.shape[0], 2 + int(math.log(k))
    centers = _rows(X, asarray_like(np.array([rng.randint(n)]), X.data if sp.issparse(X) else X))
    xp = namespace(centers)
    closest = nearest_center(X, centers)[1]
    while centers.shape[0] < k:
        cumulative = xp.cumulative_sum(closest)
        draws = asarray_like(rng.uniform(size=n_trials), closest, dtype=closest.dtype) * cumulative[-1]
        chosen = xp.clip(xp.searchsorted(cumulative, draws), 0, n - 1)
        candidates = _rows(X, chosen)
        distances = sq_row_norms(X)[:, None] + xp.sum(candidates**2, axis=1)[None, :] - 2 * (X @ candidates.T)
        distances = xp.where(distances > 0, distances, 0)
        improved = xp.where(distances < closest[:, None], distances, closest[:, None])
        best = int(xp.argmin(xp.sum(improved, axis=0)))
        closest = improved[:, best]
        centers = xp.concat([centers, candidates[best : best + 1, :]], axis=0)
    return centers


def _rows(X: Array, indices: Array) -> Array:
    """Some rows, dense."""
    return X[indices].toarray() if sp.issparse(X) else namespace(X).take(X, indices, axis=0)


def _mean_variance(X: Array) -> float:
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        return float(np.mean(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2))
    xp = namespace(X)
    return float(xp.mean(xp.var(X, axis=0)))
