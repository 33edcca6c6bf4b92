"""Score a graph by held-out labels and pairs: how often a row is closer to must-linked than to cannot-linked rows.

The score is one AUC per row, so differences between graphs have a standard error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.backend import asarray_like, to_numpy
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints
from .spreading import spread_labels

MAX_RANKED_ROWS = 300  # constrained rows used at most; more are sampled
DIFFUSION_ALPHA = 0.99  # α of the diffusion that measures closeness


class PairRanking(NamedTuple):
    """Queries and candidates: m rows with both kinds of links, among r constrained rows.

    Every query should be closer to its positives (must-linked rows) than to its negatives (cannot-linked rows).
    """

    rows: np.ndarray  # (r,) row numbers
    queries: np.ndarray  # (m,) positions of the queries among the r
    positives: np.ndarray  # (m, r) bool
    negatives: np.ndarray  # (m, r) bool


def ranking_from_pairs(pairs: PairwiseConstraints, rng: np.random.RandomState) -> PairRanking | None:
    """Collect the rows with must-links as well as cannot-links; None if there are fewer than two."""
    rows = pairs.rows
    if len(rows) == 0:
        return None
    if len(rows) > MAX_RANKED_ROWS:
        rows = np.sort(rng.permutation(rows)[:MAX_RANKED_ROWS])
    groups, n_groups = pairs.groups[rows], int(pairs.groups.max()) + 1
    low, high = np.minimum(groups[:, None], groups[None, :]), np.maximum(groups[:, None], groups[None, :])
    positives = (low == high) & ~np.eye(len(rows), dtype=bool)
    negatives = np.isin(low * n_groups + high, pairs.opposed_groups @ np.array([n_groups, 1]))
    queries = np.flatnonzero(positives.any(axis=1) & negatives.any(axis=1))
    return PairRanking(rows, queries, positives[queries], negatives[queries]) if len(queries) > 1 else None


def ranking_auc(graph: AffinityGraph, ranking: PairRanking) -> np.ndarray:
    """Return one AUC per query: the share of (positive, negative) pairs in which the positive is closer by diffusion.

    The affinity is that of label spreading, K = (I - αS)⁻¹, with the diagonal scaled to one.
    """
    indicators = np.zeros((graph.n_nodes, len(ranking.rows)))
    indicators[ranking.rows, np.arange(len(ranking.rows))] = 1
    Y = asarray_like(indicators, graph.degrees, dtype=graph.degrees.dtype)
    diffusion = spread_labels(Y, graph, DIFFUSION_ALPHA, tol=1e-6, max_iter=500).solution
    K = to_numpy(diffusion)[ranking.rows].astype(np.float64)
    root = np.sqrt(np.maximum(np.diag(K), np.finfo(float).tiny))
    K = (K / root[:, None] / root[None, :])[ranking.queries]
    return np.array(
        [
            _auc(affinities[positives], affinities[negatives])
            for affinities, positives, negatives in zip(K, ranking.positives, ranking.negatives)
        ]
    )


def _auc(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return how often a positive value is larger than a negative one, ties counting half."""
    ordered = np.sort(negatives)
    below, up_to = np.searchsorted(ordered, positives, "left"), np.searchsorted(ordered, positives, "right")
    return float((below + up_to).mean() / (2 * len(negatives)))


def select_strongest_penalty(scores: dict[float, np.ndarray]) -> float:
    """Return the first penalty whose scores are as good as the best ones, within one standard error.

    ``scores`` contains one array of AUCs per penalty, from the strongest penalty to the weakest.
    """
    best = max(scores.values(), key=np.mean)
    return next(penalty for penalty, auc in scores.items() if _within_one_standard_error(auc, best))


def _within_one_standard_error(auc: np.ndarray, best: np.ndarray) -> bool:
    """Whether the mean shortfall, row by row, is at most its standard error."""
    shortfall = best - auc
    return bool(shortfall.mean() <= shortfall.std() / math.sqrt(len(shortfall)) + 1e-12)
