"""Clusterability: whether rows have more than one cluster, by the spectrum of their graph compared with a Gaussian's.

    c = max_K [ mean_b log λ_K(b) - log λ_K ],      K = 2..8

λ_K is the K-th smallest eigenvalue of the normalised Laplacian of the self-tuned neighbour graph of the rows, λ_K(b)
that of rows drawn from a Gaussian with the mean and covariance of the rows. K separated clusters make K eigenvalues
small. So does a long narrow shape, but then also for the Gaussian, which has the same principal axes. This is the gap
statistic of Tibshirani, Walther & Hastie (2001), with eigenvalues in place of the dispersion inside k-means clusters,
which depends on shapes and tails: a self-tuned graph hardly depends on the density.

A Gaussian has c ≈ 0, and other shapes without gaps (a cube, a ball, heavy or one-sided tails) have up to 0.91. A few
far outliers are clusters of their own: six in 300 rows suffice.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from .._typing import Array
from ..core.backend import asarray_like, is_numpy, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.rows import random_subset, take_rows
from ..graph.copies import different_rows
from ..graph.graph_parameter import as_affinity
from ..graph.recipes import default_recipe

MIN_CLUSTERABILITY = math.log(2.5)  # above which there is more than one cluster
MIN_CLUSTERABILITY_ROWS = 20  # distinct ones; with fewer the spectrum of a graph says little
MAX_CLUSTERABILITY_ROWS = 1000  # a random sample of more rows
MAX_EIGENVALUES = 8
N_DRAWS = 4
EIGENVALUE_FLOOR = 1e-4  # smaller ones are raised to it: they depend on the single edges that join components


def clusterability(X: Array, random_state: np.random.RandomState) -> float | None:
    """Return c: about 0 for a single Gaussian, usually above 0.92 if clusters are separated by thin regions.

    Repeated rows count once: they would form clusters of their own, as in counts and rounded measurements.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Validated rows.
    random_state : RandomState

    Returns
    -------
    float or None
        None if there are fewer than 20 distinct rows.
    """
    sample = random_subset(X.shape[0], min(1.0, MAX_CLUSTERABILITY_ROWS / X.shape[0]), random_state)
    rows = take_rows(X, sample)
    rows = take_rows(rows, different_rows(rows)[0])
    if rows.shape[0] < MIN_CLUSTERABILITY_ROWS:
        return None
    log_values, axes = _log_eigenvalues(rows, random_state), principal_axes(rows)
    drawn = [_log_eigenvalues(draw_gaussian(axes, rows, random_state), random_state) for _ in range(N_DRAWS)]
    return float(np.max(np.mean(drawn, axis=0) - log_values))


def _log_eigenvalues(rows: Array, random_state: np.random.RandomState) -> np.ndarray:
    """Compute log λ_K for K = 2..8, of the self-tuned graph of nine neighbours."""
    n = rows.shape[0]
    graph = as_affinity(default_recipe(n, connect="mst"), rows, validated=True)
    values = smallest_eigenpairs(graph, min(MAX_EIGENVALUES, n - 1), random_state=random_state).values
    return np.log(np.maximum(to_numpy(values)[1:], EIGENVALUE_FLOOR))


def principal_axes(rows: Array) -> np.ndarray:
    """Return the standard deviations of the rows along their principal axes, those that are not zero."""
    n, d = rows.shape
    if sp.issparse(rows):  # centred after the product, so that it is not filled
        Z = rows.astype(np.float64)
        inner = (Z @ Z.T).toarray()
        inner = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
        variances = np.linalg.eigvalsh(inner)[::-1][:d] / n
    else:
        Z = to_numpy(rows).astype(np.float64)
        variances = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2 / n
    return np.sqrt(variances[variances > n * np.finfo(np.float32).eps * variances[0]])


def draw_gaussian(axes: np.ndarray, rows: Array, random_state: np.random.RandomState) -> Array:
    """Draw as many rows as given ones from a Gaussian with the given principal axes, in coordinates along these."""
    drawn = random_state.standard_normal((rows.shape[0], len(axes))) * axes
    return drawn if is_numpy(rows) else asarray_like(drawn, rows, dtype=rows.dtype)
