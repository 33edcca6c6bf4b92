"""Outlier scores from the distances to the nearest neighbours and a random walk.

With r_i the mean distance of row i to its nearest neighbours, and P the random walk that steps from a row to one of its
nearest neighbours, each with the same probability,

    o_i = log r_i - Σ_j R_ij log r_j,      R = (1 - γ) (I - γP)⁻¹

compares the distances around row i with those where a walk from i stops after 1 / (1 - γ) steps on average. The walk
leads from an outlier to the rows of the nearest cluster, and stays in it, so that a row is compared with its cluster
and not only with its neighbours, which may be outliers themselves. In clusters of any density, o_i is about 0 for most
rows.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..core.backend import to_numpy
from ..core.interrupts import check_interrupt
from ..graph.neighbors import Edges

OUTLIER_WALK = 0.95  # γ: 20 steps on average
PRECISION = 1e-3  # part of the walks that is cut off


def outlier_scores(edges: Edges) -> np.ndarray:
    """Return the outlier score of every row from its nearest neighbours, equally many for each; higher is farther out.

    Rows that coincide with all their neighbours get the smallest distance that occurs.
    """
    n = edges.shape[0]
    columns, distances = (to_numpy(part).reshape(n, -1) for part in (edges.columns, edges.distances))
    mean_distances = distances.mean(axis=1, dtype=np.float64)
    positive = mean_distances[mean_distances > 0]
    log_distances = np.log(np.maximum(mean_distances, positive.min() if len(positive) else 1.0))
    step = sp.csr_array(
        (
            np.full(columns.size, 1 / columns.shape[1]),
            columns.ravel(),
            np.arange(0, columns.size + 1, columns.shape[1]),
        ),
        shape=(n, n),
    )
    visited, mean = log_distances, (1 - OUTLIER_WALK) * log_distances
    for _ in range(int(np.ceil(np.log(PRECISION) / np.log(OUTLIER_WALK)))):
        check_interrupt()
        visited = OUTLIER_WALK * (step @ visited)
        mean = mean + (1 - OUTLIER_WALK) * visited
    return log_distances - mean - visited * OUTLIER_WALK  # the rest of the walks stops where they are now


def farthest(scores: np.ndarray, share: float, kept: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the rows with the highest scores, a share of all rows by weight, without those that are ``kept``."""
    order = np.argsort(np.where(kept, -np.inf, scores), kind="stable")[::-1]
    n_farthest = round(share * len(scores))
    if weights is not None:
        n_farthest = int(np.searchsorted(np.cumsum(weights[order]), share * weights.sum(), side="right"))
    return order[: min(n_farthest, int((~kept).sum()))]
