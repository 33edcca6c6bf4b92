"""Bounds on the sizes of clusters: the assignment of the largest memberships within them.

With q_ik the membership of row i in cluster k and m_i its weight,

    maximise  Σ_i m_i log q_i,l_i      such that  lower ≤ Σ_{i: l_i = k} m_i ≤ upper  for every cluster k.

Without bounds every row is in the cluster of its largest membership. From there rows move along the cheapest paths of
clusters, from one that is too large, or has rows to spare, to one that has room, or is too small. A path may lead
through other clusters, each of which passes one of its rows on. For rows of equal weight these are the shortest paths
of a flow of minimum cost, so that the result is the optimum; of many rows several move at once, which is about as good.

A partition is repaired in the same way, with the memberships of a long walk on the graph that starts at its labels:
rows near the boundary move first. Then a walk starts at the new labels, and so on while the normalised cut falls: rows
that moved attract their neighbours, and others move back in their place.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._validation import check_int
from ..core.arrays import one_hot, to_numpy
from ..core.fitting import check_interrupt
from ..core.sparse import csr_parts
from ..errors import InputError
from .affinity import AffinityGraph
from .cuts import normalized_cut
from .smoothing import resolvent

REPAIR_WALK = 0.97  # γ: walks of 33 steps, which reach deep into clusters
MAX_REPAIRS = 5  # rounds of a repair; the cut hardly falls in later ones
SMALLEST_MEMBERSHIP = 1e-9  # smaller ones are rounding errors of the walk
SHARE_MOVED = 1 / 200  # of the largest excess that moves at once, or one row


class SizeBounds(NamedTuple):
    """Bounds on the sizes of clusters."""

    lower: float  # in the unit of the weights
    upper: float
    weights: np.ndarray  # of the rows, 1 without weights

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def n_clusters(self) -> tuple[int, int]:
        """Return the smallest and the largest number of clusters within the bounds; the rounding of sums is allowed."""
        largest = len(self.weights) if self.lower <= 0 else math.floor(self.total / self.lower * (1 + 1e-12))
        return max(1, math.ceil(self.total / self.upper * (1 - 1e-12))), min(largest, len(self.weights))

    def check_n_clusters(self, n_clusters: int) -> None:
        """Raise an error if so many clusters cannot be within the bounds."""
        fewest, most = self.n_clusters()
        if fewest <= n_clusters <= most:
            return
        name, size = ("max_cluster_size", self.upper) if n_clusters < fewest else ("min_cluster_size", self.lower)
        raise InputError(
            f"{n_clusters} clusters of at {'most' if n_clusters < fewest else 'least'} {size:g} rows cannot hold "
            f"{self.total:g} rows",
            f"choose {f'at least {fewest}' if n_clusters < fewest else f'at most {most}'} clusters, or another {name}",
            code="impossible_sizes",
            parameter=name,
        )

    def subset(self, rows: np.ndarray) -> SizeBounds:
        """Return the bounds for some of the rows, of which every cluster has about its share."""
        weights = self.weights[rows]
        share = float(weights.sum()) / self.total
        return SizeBounds(self.lower * share, self.upper * share, weights)

    def repair(self, graph: AffinityGraph, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return a partition within the bounds: itself if it is, else with rows near its boundaries moved."""
        if self.is_met(labels, n_clusters):
            return labels
        memberships = _walk(graph, labels, n_clusters)
        memberships[np.arange(len(labels)), labels] = memberships.max(axis=1)  # rows move only if they have to
        best = self.assign(memberships)
        lowest_cut, n_found = normalized_cut(graph, best), len(np.unique(best))
        for _ in range(MAX_REPAIRS - 1):
            labels = self.assign(_walk(graph, best, n_clusters))
            cut = normalized_cut(graph, labels)
            if cut >= lowest_cut or len(np.unique(labels)) < n_found:
                break
            best, lowest_cut = labels, cut
        return best

    def is_met(self, labels: np.ndarray, n_clusters: int) -> bool:
        """Whether all clusters are within the bounds."""
        return not _violations(np.bincount(labels, self.weights, minlength=n_clusters), self).any()

    def assign(self, memberships: np.ndarray, fixed: np.ndarray | None = None) -> np.ndarray:
        """Return the labels of the largest memberships within the bounds."""
        labels, n_clusters = memberships.argmax(axis=1), memberships.shape[1]
        scores = np.log(np.maximum(memberships.astype(np.float64), SMALLEST_MEMBERSHIP))
        movable = np.ones(len(labels), dtype=bool) if fixed is None else ~fixed
        sizes = np.bincount(labels, self.weights, minlength=n_clusters)
        share = SHARE_MOVED
        while (violations := _violations(sizes, self)).any():
            check_interrupt()
            losses = _losses(scores, labels, movable, n_clusters)
            path = _cheapest_path(losses, *_ends(sizes, self))
            if path is None:
                raise _not_found(self)
            moved = _move_along(path, scores, labels, movable, self.weights, share * violations.max())
            reached = np.bincount(moved, self.weights, minlength=n_clusters)
            if _violations(reached, self).sum() < violations.sum() - 1e-12 * self.total:
                labels, sizes = moved, reached
            elif share > 0:
                share = 0.0  # one row at a time
            else:
                movable[np.flatnonzero(moved != labels)] = False  # too heavy
        return labels


def check_size_bounds(
    min_cluster_size: object, max_cluster_size: object, weights: np.ndarray | None, n_samples: int
) -> SizeBounds | None:
    """Return the bounds on the sizes of clusters; None without any."""
    if min_cluster_size is None and max_cluster_size is None:
        return None
    weights = np.ones(n_samples) if weights is None else weights
    lower = 0 if min_cluster_size is None else check_int(min_cluster_size, "min_cluster_size")
    upper = float(weights.sum()) if max_cluster_size is None else check_int(max_cluster_size, "max_cluster_size")
    bounds = SizeBounds(lower, upper, weights)
    fewest, most = bounds.n_clusters()
    if lower > upper or fewest > most:
        problem = f"no number of clusters of {lower:g} to {upper:g} rows holds {bounds.total:g} rows"
        hint = "choose a smaller min_cluster_size or a larger max_cluster_size"
        raise InputError(problem, hint, code="impossible_sizes", parameter="min_cluster_size")
    if weights.max() > upper:
        problem = f"a row of weight {weights.max():g} is larger than max_cluster_size={upper:g}"
        hint = "choose a larger max_cluster_size"
        raise InputError(problem, hint, code="impossible_sizes", parameter="max_cluster_size")
    return bounds


def _walk(graph: AffinityGraph, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the memberships of a long walk that starts at labels."""
    start = one_hot(labels, n_clusters, csr_parts(graph.weights)[0])
    return np.array(to_numpy(resolvent(start, graph, REPAIR_WALK, tol=1e-8)))


# ----------------------------------------------------------------------------------------------------------- the moves


def _violations(sizes: np.ndarray, bounds: SizeBounds) -> np.ndarray:
    """Return by how much each size is out of bounds; rounding errors of sums of weights do not count."""
    excess = np.maximum(sizes - bounds.upper, bounds.lower - sizes)
    return np.where(excess > 1e-9 * bounds.total, excess, 0.0)


def _ends(sizes: np.ndarray, bounds: SizeBounds) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters from which a path of moves may lead, and those to which it may."""
    violations = _violations(sizes, bounds)
    too_large = (violations > 0) & (sizes > bounds.upper)
    if too_large.any():
        return too_large, sizes < bounds.upper
    return sizes > bounds.lower, (violations > 0) & (sizes < bounds.lower)


def _losses(scores: np.ndarray, labels: np.ndarray, movable: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the smallest loss of log-membership when a row moves from one cluster to another, (k, k)."""
    losses = np.full((n_clusters, n_clusters), np.inf)
    for cluster in range(n_clusters):
        members = scores[(labels == cluster) & movable]
        if len(members):
            losses[cluster] = (members[:, [cluster]] - members).min(axis=0)
    np.fill_diagonal(losses, np.inf)
    return losses


def _cheapest_path(losses: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> list[int] | None:
    """Return the clusters on the cheapest path from a source to a target (Bellman and Ford); None without one."""
    k = len(losses)
    costs, previous = np.where(sources, 0.0, np.inf), np.full(k, -1)
    for _ in range(k - 1):
        through = costs[:, None] + losses
        best = through.argmin(axis=0)
        shorter = through[best, np.arange(k)] < costs - 1e-12
        if not shorter.any():
            break
        costs, previous = np.where(shorter, through[best, np.arange(k)], costs), np.where(shorter, best, previous)
    reached = np.where(targets, costs, np.inf)
    if not np.isfinite(reached.min()):
        return None
    path = [int(reached.argmin())]
    while previous[path[-1]] >= 0 and len(path) <= k:
        path.append(int(previous[path[-1]]))
    if len(set(path)) == len(path) > 1:
        return path[::-1]
    direct = np.where(sources[:, None] & targets[None, :], losses, np.inf)  # after moves in batches: a cycle that gains
    return [int(end) for end in np.unravel_index(direct.argmin(), direct.shape)]


def _move_along(
    path: list[int],
    scores: np.ndarray,
    labels: np.ndarray,
    movable: np.ndarray,
    weights: np.ndarray,
    batch: float,
) -> np.ndarray:
    """Move the rows of the smallest loss from each cluster on a path to the next, of about the weight ``batch``."""
    moved = labels.copy()
    for cluster, following in pairwise(path):
        members = np.flatnonzero((labels == cluster) & movable)
        order = members[np.argsort(scores[members, cluster] - scores[members, following], kind="stable")]
        n_moved = max(1, int(np.searchsorted(np.cumsum(weights[order]), batch, side="right")))
        moved[order[:n_moved]] = following
    return moved


def _not_found(bounds: SizeBounds) -> InputError:
    problem = (
        f"no clusters of {bounds.lower:g} to {bounds.upper:g} rows were found: the weights of some rows are too large, "
        "or labels of others are given"
    )
    return InputError(problem, "choose wider bounds", code="impossible_sizes", parameter="max_cluster_size")
