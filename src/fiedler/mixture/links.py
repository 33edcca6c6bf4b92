"""Known pairs in a mixture: terms in the E-step, or one common membership for a must-linked group.

    log α_k p_k(x_i)  +  γ Σ_j v_ij q_jk,    v_ij = ½(1/m_i + 1/m_j) for must-links, minus that for cannot-links

m_i is the number of pairs of that kind at row i, so that the weights of either kind sum to about one per row whatever
the number of pairs; γ is ``strength`` times the median margin of the log-densities. It is the mean-field form of a
hidden Markov random field over the pairs (Lange, Law, Jain & Buhmann 2005). LapGMM adds λ tr(Q'VQ) to its objective
instead, in which V is added to the edges of the graph, and stays monotone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, asarray_like, is_numpy, namespace, smallest_k, to_numpy
from ..core.sparse import Sparse, from_scipy_like, matmul
from ..graph.constraints import PairwiseConstraints
from ..graph.pairs import balanced_link_weights, group_means


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs over the rows of a mixture.

    Attributes
    ----------
    matrix : sparse matrix of shape (n, n)
        The weights v_ij.
    total : array of shape (n, 1)
        Σ_j |v_ij|, 0 for rows without a pair.
    strength : float
    groups : array of shape (n,), optional
        The group of each row, where must-links are hard.
    """

    matrix: Sparse
    total: Array
    strength: float
    groups: np.ndarray | None

    def linked_sum(self, resp: Array) -> Array:
        """Compute Σ_j v_ij q_j for every row."""
        return matmul(self.matrix, resp)

    def damp(self, resp: Array, last_resp: Array) -> Array:
        """Move linked rows only halfway to their new memberships: updated at the same time they would oscillate."""
        return namespace(resp).where(self.total > 0, 0.5 * (resp + last_resp), resp)

    def group_mean(self, values: Array) -> Array:
        """Average over each row's group, where must-links are hard; otherwise return the values."""
        return values if self.groups is None else group_means(values, self.groups)


def make_links(constraints: PairwiseConstraints | None, reference: Array) -> Links | None:
    """Build the links in the array library of ``reference``; None if there are no pairs with an effect."""
    if constraints is None or (constraints.strength == 0 and not constraints.hard) or constraints.n_pairs == 0:
        return None
    must, cannot = balanced_link_weights(constraints)
    total = np.asarray((must + cannot).sum(axis=1)).ravel()
    return Links(
        from_scipy_like(must - cannot, reference),
        asarray_like(total, reference, dtype=reference.dtype)[:, None],
        constraints.strength,
        constraints.groups if constraints.hard else None,
    )


def group_links(constraints: PairwiseConstraints | None, groups: np.ndarray, reference: Array) -> Links | None:
    """Build the links of groups of rows, in the array library of ``reference``.

    The weight of two groups is the sum of the signed weights of their pairs, as in the term of the rows. Pairs inside a
    group have no effect, and no must-link is hard, since pairs that agree on rows may contradict each other on groups:
    hard must-links take effect on rows alone.
    """
    if constraints is None or constraints.strength == 0 or constraints.n_pairs == 0:
        return None
    must, cannot = balanced_link_weights(constraints)
    members = sp.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))))
    pairs = sp.coo_array(members @ (must - cannot) @ members.T)
    between = pairs.row != pairs.col
    matrix = sp.csr_array((pairs.data[between], (pairs.row[between], pairs.col[between])), shape=pairs.shape)
    total = asarray_like(np.asarray(abs(matrix).sum(axis=1)).ravel(), reference, dtype=reference.dtype)
    return Links(from_scipy_like(matrix, reference), total[:, None], constraints.strength, None)


def median_margin(log_joint: Array, counts: Array | None = None) -> float:
    """Compute the median difference between the two largest joint log-densities of a row; 0 for a single cluster.

    With ``counts`` every row is repeated that many times.
    """
    if log_joint.shape[1] == 1:
        return 0.0
    top_two = np.partition(log_joint, -2, axis=1)[:, -2:] if is_numpy(log_joint) else -smallest_k(-log_joint, 2)[0]
    margins = np.abs(to_numpy(top_two[:, 1] - top_two[:, 0]))
    if counts is None:
        return float(np.median(margins))
    order = np.argsort(margins)
    ends = np.cumsum(to_numpy(counts)[order])
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    return float(margins[order[middle]].mean())
