"""LCGMM: a Gaussian mixture with a locally consistent M-step. Paper key: lcgmm.

    maximise  Σ_i log P(x_i; Θ) - λ Σ_ij D_ij W_ij,   D_ij = ½ (KL(P_i‖P_j) + KL(P_j‖P_i))

Holding the posteriors P, the regulariser turns the M-step's weights P into P∘T with
T_ik = 1 - λ Σ_j (1 - P_jk/P_ik) W_ij (Eq. 6). P∘T = (I - λL)P exactly, so T is never formed: dividing by P_ik and
multiplying back would lose the neighbours' mass where P_ik is tiny. Columns of L sum to zero, so the weights of a
component still sum to N_k = Σ_i P_ik (Eqs 9 and 11).

Weights can be negative (down to 1 - λ·degree times a membership). They are used unchanged while every covariance
stays positive definite; otherwise they are clipped at zero, a component is divided by the sum of its clipped weights,
and a warning is given. The iteration is not monotone; it stops when the posteriors no longer change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState
from .._validation import Check, check_nonnegative, one_of
from ..core.arrays import Array, namespace, safe_log
from ..core.sparse import Sparse, matmul
from ..errors import SingularCovarianceError, warn
from .base import BaseMixture, CovarianceType, Start
from .covariance import Gaussians
from .em import EMResult, EMState, MixtureHooks, MixtureProblem, Step, memberships_converged


@dataclass(frozen=True, eq=False)
class _ConsistentState(EMState):
    """Adds whether negative weights had to be clipped; a run that needed it once is clipped to its end."""

    clipped: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class _LocallyConsistent(MixtureHooks[_ConsistentState]):
    """M-step weights smoothed by one explicit diffusion step."""

    L: Sparse  # the graph Laplacian
    use_signed: bool  # whether signed weights are tried
    may_clip: bool  # whether they are clipped if a covariance is not positive definite

    def start(self, memberships: Array) -> _ConsistentState:
        """Return the clamped memberships."""
        return _ConsistentState(self.problem.clamp(memberships))

    def maximize(self, state: _ConsistentState) -> tuple[Gaussians, _ConsistentState]:
        """Eqs 7, 9 and 11: mixing weights from P, means and covariances from (I - λL)P."""
        priors = self.problem.weighted(state.resp)
        weights = priors - self.lam * matmul(self.L, state.resp)
        if self.use_signed and not state.clipped:
            try:
                return self.problem.estimate(weights, priors), state
            except SingularCovarianceError:
                if not self.may_clip:
                    raise
                state = replace(state, clipped=True)
        clipped = namespace(weights).where(weights > 0, weights, 0)
        return self.problem.estimate(clipped, priors), state

    def score(self, log_joint: Array, state: _ConsistentState, last_resp: Array) -> Step:
        """Compute the penalised log-likelihood, R = Σ_k p_k' L log p_k."""
        resp, likelihood = state.resp, self.problem.likelihood(log_joint)
        divergence = float(namespace(resp).sum(resp * matmul(self.L, safe_log(resp))))
        penalty = self.lam * divergence + self.disagreement(state)
        return Step(likelihood - penalty, likelihood, penalty, self.problem.mean_change(resp, last_resp))

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the posteriors, since the objective can fall."""
        return memberships_converged(steps, tol)


class LCGMM(BaseMixture):
    """Gaussian mixture with local consistency: components are estimated from memberships smoothed over the graph.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph or how to build it; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. It is built from all
        columns of X, whatever ``pca``.
    lam : float, default=0.1
        Weight of the consistency; up to one over the largest degree all weights are non-negative.
    negative_weights : {'auto', 'signed', 'clip'}, default='auto'
        'auto' uses negative weights while the covariances stay positive definite and clips them at zero from then on;
        'signed' never clips, 'clip' always does.
    covariance_type, ridge, pca, init, n_init, max_iter, tol, random_state, verbose
        As in :class:`GaussianMixture`; ``init`` is 'community' by default, and ``tol`` applies to the mean change of
        the posteriors.

    Attributes
    ----------
    labels_, memberships_, weights_, means_, covariances_ : array
        As in :class:`GaussianMixture`.
    history_, objective_, likelihood_, penalty_, n_iter_, converged_
        As in :class:`GaussianMixture`.
    graph_ : AffinityGraph
        The graph.

    References
    ----------
    J. Liu, D. Cai, X. He, "Gaussian mixture model with local consistency", AAAI 2010.

    Examples
    --------
    >>> from fiedler import LCGMM
    >>> from fiedler.datasets import blobs
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = blobs(n_samples=300, n_clusters=3, noise=0.5, random_state=0)
    >>> model = LCGMM(3, random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.9
    True
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        **BaseMixture._parameter_checks,
        "lam": check_nonnegative,
        "negative_weights": one_of(["auto", "signed", "clip"]),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        lam: float = 0.1,
        negative_weights: Literal["auto", "signed", "clip"] = "auto",
        covariance_type: CovarianceType = "full",
        ridge: float | Literal["auto", "oas"] = "auto",
        pca: int | float | None = None,
        init: Start | MatrixLike | LabelsLike = "community",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_clusters, graph, covariance_type=covariance_type, ridge=ridge, pca=pca, init=init, n_init=n_init,
            max_iter=max_iter, tol=tol, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.lam = lam
        self.negative_weights = negative_weights

    def _hooks(self, problem: MixtureProblem) -> MixtureHooks[_ConsistentState]:
        assert problem.graph is not None
        use_signed, may_clip = self.negative_weights != "clip", self.negative_weights != "signed"
        L = problem.graph.laplacian()
        return _LocallyConsistent(problem, lam=float(self.lam), L=L, use_signed=use_signed, may_clip=may_clip)

    def _warn_about_fit(self, result: EMResult[Any], n_found: int) -> None:
        if result.state.clipped:
            problem = "a covariance was not positive definite with negative weights, so they were clipped at zero"
            warn(problem, "use a smaller lam to avoid that", code="clipped_weights", lam=self.lam)
        super()._warn_about_fit(result, n_found)
