"""Mixtures on supernodes: EM over groups of rows that share their memberships, from their statistics alone.

A supernode s stands for n_s rows, in the coarse graph W_st = Σ_{i ∈ s, j ∈ t} w_ij. LapGMM's objective is restricted to
memberships that are constant on supernodes, q_i = q_s for all rows i of s:

    J(Q, Θ)  =  Σ_s n_s Σ_k q_sk [ mean_{i ∈ s} log α_k N(x_i; μ_k, Σ_k) - log q_sk ]  -  λ tr(Q'LQ)

with L the Laplacian of the coarse graph: rows of one supernode do not differ, so that the edges within cost nothing and
½ Σ_ij w_ij ‖q_i - q_j‖² is the sum over the edges between. No term is approximated: J is that of the rows, its maximum
over these memberships is a lower bound of that over all, and if every supernode is a single row, it is LapGMM.

The mean log-density of a supernode needs the mean of its rows and their products, the M-step the sums of its statistics
with memberships as weights. An iteration takes m K d² operations instead of n K d².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._typing import LabelsLike, MatrixLike
from ..core.arrays import Array, namespace
from ..graph.affinity import AffinityGraph
from .base import BaseMixture, memberships_from_array
from .covariance import Gaussians, gaussians, mean_log_joint
from .em import EMResult, Links, MixtureProblem
from .statistics import Statistics


@dataclass(frozen=True, eq=False, kw_only=True)
class SupernodeProblem(MixtureProblem):
    """The inputs of a fit on supernodes: ``Z`` are their mean rows, ``sample_weight`` their numbers of rows."""

    statistics: Statistics

    def estimate(self, weights: Array, priors: Array | None = None) -> Gaussians:
        """Estimate the components from the statistics of the supernodes."""
        counts = self.statistics.counts[:, None]
        mass = None if priors is None else namespace(priors).sum(priors, axis=0)
        options: dict[str, Any] = {"kind": self.kind, "ridge": self.ridge, "shrinks": self.shrinks}
        return gaussians(self.statistics.combine(weights / counts), **options, mass=mass)

    def log_joint(self, model: Gaussians) -> Array:
        """Compute the mean of log α_k + log N(x_i; θ_k) over the rows of each supernode, shape (m, k)."""
        return mean_log_joint(self.statistics, model)

    @property
    def counts(self) -> Array:
        """The number of rows of each supernode."""
        return self.statistics.counts


def fit_supernodes(
    model: BaseMixture,
    statistics: Statistics,
    graph: AffinityGraph | None,
    init: LabelsLike | MatrixLike,
    links: Links | None = None,
) -> EMResult[Any]:
    """Run EM for a mixture on supernodes, with the parameters of a model other than graph, init, n_init and pca.

    'natural' and the tolerance refer to the rows, and so does the history. ``graph``, of m nodes, has the weight inside
    supernodes as self-loops; ``init`` are labels or memberships of the supernodes, none of which is empty.
    """
    Z = statistics.means + statistics.origin
    n_rows = round(float(namespace(Z).sum(statistics.counts)))
    problem = SupernodeProblem(
        Z,
        kind=model.covariance_type,
        ridge=model._relative_ridge(n_rows, Z.shape[1]) * statistics.mean_variance,
        shrinks=model._shrinks(),
        graph=graph,
        sample_weight=statistics.counts,
        links=links,
        statistics=statistics,
    )
    return model._run(memberships_from_array(init, model.n_clusters, Z), model._hooks(problem))
