"""Known pairs as mixtures take them: votes of linked rows in the E-step, or one membership for a must-linked group.

    log α_k p_k(x_i)  +  γ Σ_j v_ij q_jk,    v_ij = ½(1/m_i + 1/m_j) for must-links, minus that for cannot-links

m_i is the number of pairs of that kind at row i, so that the votes of either kind sum to about one a row however many
pairs there are; γ is ``strength`` times what densities usually decide by. It is the mean-field form of a hidden Markov
random field over the pairs (Lange, Law, Jain & Buhmann 2005). LapGMM adds λ tr(Q'VQ) to its objective instead, in which
V stands beside the graph's edges, and stays monotone.
"""

from __future__ import annotations

import numpy as np

from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.sparse import from_scipy_like, matmul
from ..graph.constraints import PairwiseConstraints
from ..graph.pairs import balanced_link_weights, group_means


def make_links(constraints: PairwiseConstraints | None, reference: Array) -> Links | None:
    """The links, or None where there are none that matter."""
    if constraints is None or (constraints.strength == 0 and not constraints.hard) or constraints.n_pairs == 0:
        return None
    return Links(constraints, reference)


class Links:
    """Pairs over the rows of a mixture."""

    def __init__(self, constraints: PairwiseConstraints, reference: Array) -> None:
        must, cannot = balanced_link_weights(constraints)
        self.matrix = from_scipy_like(must - cannot, reference)
        total = np.asarray((must + cannot).sum(axis=1)).ravel()
        self.total = asarray_like(total, reference, dtype=reference.dtype)[:, None]  # (n, 1)
        self.strength, self.groups = constraints.strength, constraints.groups if constraints.hard else None

    def votes(self, resp: Array) -> Array:
        """Σ_j v_ij q_j of every row."""
        return matmul(self.matrix, resp)

    def halfway(self, resp: Array, last: Array) -> Array:
        """Linked rows go half the way to their new memberships: rows that vote on each other at once would swing."""
        xp = namespace(resp)
        return xp.where(self.total > 0, 0.5 * (resp + last), resp)

    def together(self, values: Array) -> Array:
        """The mean over each row's group, where must-links are hard; else the values."""
        return values if self.groups is None else group_means(values, self.groups)


def median_margin(log_joint: Array) -> float:
    """The median difference between the two best clusters' joint log-densities; 0 for a single cluster."""
    if log_joint.shape[1] == 1:
        return 0.0
    two = np.partition(to_numpy(log_joint), -2, axis=1)[:, -2:]
    return float(np.median(two[:, 1] - two[:, 0]))
