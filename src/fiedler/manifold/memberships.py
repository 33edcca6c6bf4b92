"""Memberships by a random walk that starts at a row and stops with probability 1 - γ before every step.

q_ik is the expected share of cluster k where the walk from row i stops,

    Q = (1-γ) (I - γ D⁻¹W)⁻¹ [s H + (1-s) V],

with H the one-hot labels of a partition, V the votes of other methods and views, s the consensus of the partition (1 if
there was no comparison), and given labels in place. A row deep inside a cluster on which all agree belongs to it; a row
between two clusters, or one on which the views disagree, is shared.

The memberships are not those of LapGMM's Gaussians: in more than a few dimensions these are certain of every row,
right or wrong, while the confidence of the walk is close to the accuracy (measured in the documentation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, asarray_like, namespace, normalize_row_sums, one_hot, positive_part, to_numpy
from ..core.fitting import check_interrupt
from ..core.sparse import csr_parts
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints, group_means
from ..graph.labels import UNKNOWN, check_partial_labels, spread_over_groups
from ..graph.neighbors import Edges
from ..graph.smoothing import resolvent
from ..metrics.scores import count_together, match_counts
from ..supervision.llgc import spread_labels

# ---------------------------------------------------------------------------------------------------------------------
# What is known before clustering: labels of some rows and pairs, and how far a partition agrees with them.

MAX_PAIRS_FROM_LABELS = 20_000  # of either kind
ALPHA = 0.99  # of label spreading, as in LLGC


@dataclass(frozen=True)
class PartialSupervision:
    """Labels of some rows and pairs."""

    labels: np.ndarray | None  # clusters 0, 1, ..., and -1 where unknown; None if no label is known
    given: PairwiseConstraints | None  # the pairs as the user gave them
    pairs: PairwiseConstraints | None  # these and those that the labels imply, for the graphs

    @classmethod
    def from_fit_arguments(cls, y: Any, given: PairwiseConstraints | None, n_samples: int) -> PartialSupervision:
        """Collect what the arguments ``y`` and ``constraints`` of ``fit`` say."""
        labels = check_partial_labels(y, n_samples)
        if labels is None:
            return cls(None, given, given)
        if given is not None and given.hard:
            labels = spread_over_groups(labels, given.groups)
        pairs = PairwiseConstraints.from_labels(labels, max_pairs=MAX_PAIRS_FROM_LABELS, random_state=0)
        return cls(labels, given, pairs if given is None else _union(pairs, given))

    @property
    def n_classes(self) -> int:
        """The number of clusters that the labels name."""
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @property
    def n_known(self) -> int:
        """The number of known labels and given pairs."""
        n_labels = 0 if self.labels is None else int((self.labels != UNKNOWN).sum())
        return n_labels + (0 if self.given is None else self.given.n_pairs)

    def check_n_clusters(self, n_clusters: int) -> None:
        """Raise an error if the labels name more than ``n_clusters`` clusters."""
        if self.labels is not None:
            check_partial_labels(self.labels, len(self.labels), n_clusters)

    def agreement(self, labels: np.ndarray) -> float:
        """Return the fraction of known labels, under the best matching of clusters, and of pairs that are satisfied."""
        satisfied = 0.0 if self.given is None else self.given.n_pairs - self.given.violations(labels).n_pairs
        if self.labels is not None:
            counts = self._contingency(labels, max(int(labels.max()) + 1, self.n_classes))
            satisfied += counts[match_counts(counts)].sum()
        return satisfied / self.n_known

    def numbering(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the number of each cluster of a partition that matches the known labels as well as possible."""
        if self.labels is None:
            return np.arange(n_clusters)
        classes, clusters = match_counts(self._contingency(labels, n_clusters))
        return classes[np.argsort(clusters)]

    def clamp(self, memberships: Array) -> Array:
        """Replace the memberships of labelled rows by their labels."""
        if self.labels is None:
            return memberships
        xp = namespace(memberships)
        known = one_hot(asarray_like(self.labels, memberships), memberships.shape[1], memberships)
        return xp.where(xp.sum(known, axis=1)[:, None] > 0, known, memberships)

    def spread(self, graph: AffinityGraph, n_clusters: int) -> list[np.ndarray]:
        """Spread the labels over the graph, as a start for a search; an empty list without labels."""
        if self.labels is None:
            return []
        reference = csr_parts(graph.weights)[0]
        Y = one_hot(asarray_like(self.labels, reference), n_clusters, reference)
        return [to_numpy(spread_labels(Y, graph, ALPHA, tol=1e-6, max_iter=500).solution).argmax(axis=1)]

    def _contingency(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Count the labelled rows of every class (rows) in every cluster (columns)."""
        assert self.labels is not None
        known = self.labels != UNKNOWN
        return count_together(self.labels[known], labels[known], n_clusters)


def _union(implied: PairwiseConstraints, given: PairwiseConstraints) -> PairwiseConstraints:
    """Join two sets of pairs, with the strength of the given ones."""
    must_link = np.concatenate([implied.must_link, given.must_link])
    cannot_link = np.concatenate([implied.cannot_link, given.cannot_link])
    return PairwiseConstraints(must_link, cannot_link, given.n_samples, strength=given.strength, hard=given.hard)


# ------------------------------------------------------------------------------------------------------------ the walk

WALK = 0.7  # γ: a walk takes 2.3 steps on average
# γ, and whether the votes take part: the first walks after which no cluster has lost its last row, in memory and in
# blocks. The last ones keep the labels as they are.
WALKS = ((WALK, True), (WALK / 2, True), (WALK / 4, False), (0.0, False))


def walk(shares: Array, graph: AffinityGraph, gamma: float = WALK) -> Array:
    """Return Q = (1-γ) (I - γ D⁻¹W)⁻¹ S, the shares of the clusters where walks on a graph stop."""
    return normalize_row_sums(positive_part(resolvent(shares, graph, gamma, tol=1e-6)))


def walk_memberships(
    labels: np.ndarray,
    n_clusters: int,
    graph: AffinityGraph,
    supervision: PartialSupervision,
    reference: Array,
    *,
    votes: np.ndarray | None = None,
    consensus: float = 1.0,
) -> Array:
    """Compute the memberships; labelled rows keep their cluster, and hard groups share memberships.

    Where a cluster would lose its last row, walks are shorter, and in the end without votes.
    """
    certain, n_found = one_hot(labels, n_clusters, reference), len(np.unique(labels))
    shares = certain
    if votes is not None:
        shares = consensus * certain + (1 - consensus) * asarray_like(votes, reference, dtype=reference.dtype)
    for gamma, with_votes in WALKS:
        Q = walk(supervision.clamp(shares if with_votes else certain), graph, gamma)
        if supervision.pairs is not None and supervision.pairs.hard:
            Q = group_means(Q, supervision.pairs.groups)
        Q = supervision.clamp(Q)
        if len(np.unique(to_numpy(namespace(Q).argmax(Q, axis=1)))) >= n_found:
            break
    return Q


# ---------------------------------------------------------------------------------------------------------------------
# Outlier scores from the distances to the nearest neighbours and a random walk.
#
# With r_i the mean distance of row i to its nearest neighbours, and P the random walk that steps from a row to one of
# its nearest neighbours, each with the same probability,
#
#     o_i = log r_i - Σ_j R_ij log r_j,      R = (1 - γ) (I - γP)⁻¹
#
# compares the distances around row i with those where a walk from i stops after 1 / (1 - γ) steps on average. The walk
# leads from an outlier to the rows of the nearest cluster, and stays in it, so that a row is compared with its cluster
# and not only with its neighbours, which may be outliers themselves. In clusters of any density, o_i is about 0 for
# most rows.

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


def select_outliers(
    scores: np.ndarray, share: float, kept: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the rows with the highest scores, a share of all rows by weight, without those that are ``kept``."""
    order = np.argsort(np.where(kept, -np.inf, scores), kind="stable")[::-1]
    n_selected = round(share * len(scores))
    if weights is not None:
        n_selected = int(np.searchsorted(np.cumsum(weights[order]), share * weights.sum(), side="right"))
    return order[: min(n_selected, int((~kept).sum()))]
