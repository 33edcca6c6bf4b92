"""How well a graph tells mates from others, by pairs that did not shape it: a number a row, so errors are known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.backend import asarray_like, to_numpy
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints
from .spreading import spread_labels

JUDGES = 300  # constrained rows, at most, that judge
REACH = 0.99  # α of the diffusion by which affinity is judged


class Judges(NamedTuple):
    """Constrained rows that know both mates and others; m of them among r known rows."""

    rows: np.ndarray  # (r,) row numbers
    mates: np.ndarray  # (m, r) bool
    others: np.ndarray  # (m, r) bool
    own: np.ndarray  # (m,) their places among the r


def mates_and_others(pairs: PairwiseConstraints, rng: np.random.RandomState) -> Judges | None:
    """The rows that must-links and cannot-links both speak of, or None if there are not even two."""
    rows = pairs.rows
    if len(rows) == 0:
        return None
    if len(rows) > JUDGES:
        rows = np.sort(rng.permutation(rows)[:JUDGES])
    groups, n = pairs.groups[rows], int(pairs.groups.max()) + 1
    low, high = np.minimum(groups[:, None], groups[None, :]), np.maximum(groups[:, None], groups[None, :])
    mates = (low == high) & ~np.eye(len(rows), dtype=bool)
    others = np.isin(low * n + high, pairs.opposed_groups @ np.array([n, 1]))
    own = np.flatnonzero(mates.any(axis=1) & others.any(axis=1))
    return Judges(rows, mates[own], others[own], own) if len(own) > 1 else None


def judged(graph: AffinityGraph, judges: Judges) -> np.ndarray:
    """For every judge the share of (mate, other) pairs in which the mate is nearer by diffusion: one AUC a row.

    The affinity is that of label spreading, K = (I - αS)⁻¹, with the diagonal scaled to one.
    """
    unit = np.zeros((graph.n_nodes, len(judges.rows)))
    unit[judges.rows, np.arange(len(judges.rows))] = 1
    start = asarray_like(unit, graph.degrees, dtype=graph.degrees.dtype)
    K = to_numpy(spread_labels(start, graph, REACH, tol=1e-6, max_iter=500).solution)[judges.rows].astype(np.float64)
    root = np.sqrt(np.maximum(np.diag(K), np.finfo(float).tiny))
    K = (K / root[:, None] / root[None, :])[judges.own]
    return np.array([_auc(row[mates], row[others]) for row, mates, others in zip(K, judges.mates, judges.others)])


def _auc(inside: np.ndarray, outside: np.ndarray) -> float:
    """How often an inside value is the larger, ties counting half."""
    ordered = np.sort(outside)
    below, up_to = np.searchsorted(ordered, inside, "left"), np.searchsorted(ordered, inside, "right")
    return float((below + up_to).mean() / (2 * len(outside)))


def firmest(evidence: dict[float, np.ndarray]) -> float:
    """The first penalty under which the rows judge as well as under the best one, within one standard error."""
    best = max(evidence.values(), key=np.mean)
    return next(penalty for penalty, shares in evidence.items() if _as_good(shares, best))


def _as_good(shares: np.ndarray, best: np.ndarray) -> bool:
    """Whether the mean is not below the best one's by more than a standard error of the differences, row by row."""
    short = best - shares
    return bool(short.mean() <= short.std() / math.sqrt(len(short)) + 1e-12)
