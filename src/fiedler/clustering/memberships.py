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

import numpy as np

from ..core.backend import Array, asarray_like, namespace, one_hot, positive_part, to_numpy
from ..core.rows import normalize_row_sums
from ..graph.affinity import AffinityGraph
from ..graph.pairs import group_means
from ..graph.smoothing import resolvent
from .partial_supervision import PartialSupervision

WALK = 0.7  # γ: a walk takes 2.3 steps on average


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

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The partition, numbered as the known labels are.
    n_clusters : int
    graph : AffinityGraph
        With non-negative weights.
    supervision : PartialSupervision
    reference : array
        Decides the array library, dtype and device of the result.
    votes : ndarray of shape (n, n_clusters), optional
    consensus : float, default=1
        s.

    Returns
    -------
    memberships : array of shape (n, n_clusters)
    """
    certain, n_found = one_hot(labels, n_clusters, reference), len(np.unique(labels))
    shares = certain
    if votes is not None:
        shares = consensus * certain + (1 - consensus) * asarray_like(votes, reference, dtype=reference.dtype)
    for start, walk in ((shares, WALK), (shares, WALK / 2), (certain, WALK / 4), (certain, 0.0)):
        stops = resolvent(supervision.clamp(start), graph, walk, tol=1e-6)
        Q = normalize_row_sums(positive_part(stops))  # up to rounding, rows sum to one already
        if supervision.pairs is not None and supervision.pairs.hard:
            Q = group_means(Q, supervision.pairs.groups)
        Q = supervision.clamp(Q)
        if len(np.unique(to_numpy(namespace(Q).argmax(Q, axis=1)))) >= n_found:
            break
    return Q
