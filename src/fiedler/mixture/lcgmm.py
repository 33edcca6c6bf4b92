"""LCGMM: a Gaussian mixture with a locally consistent M-step. Paper key: lcgmm.

    maximise  Σ_i log P(x_i; Θ) - λ Σ_ij D_ij W_ij,   D_ij = ½ (KL(P_i‖P_j) + KL(P_j‖P_i))

Holding the posteriors P, the regulariser turns the M-step's weights P into P∘T with
T_ik = 1 - λ Σ_j (1 - P_jk/P_ik) W_ij (Eq. 6). P∘T = (I - λL)P exactly, so T is never formed: dividing by P_ik and
multiplying back would lose the neighbours' mass where P_ik is tiny. Columns of L sum to zero, so the weights of a
component still sum to N_k = Σ_i P_ik (Eqs 9 and 11).

Weights can be negative (down to 1 - λ·degree times a membership). They are used as they are while every covariance
stays positive definite; otherwise they are clipped at zero, a component is divided by the sum of its own weights, and
the model says so. The iteration is not monotone; it stops when the posteriors rest.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._validation import check_nonnegative, choose
from ..core.backend import Array, namespace, safe_log
from ..core.sparse import matmul
from ..graph.affinity import AffinityGraph
from .base import BaseMixture, GaussianHooks
from .covariance import Gaussians, SingularCovarianceError, estimate
from .em import Hooks, Step, memberships_settled


class _LocallyConsistent(GaussianHooks):
    """M-step weights smoothed by one explicit diffusion step."""

    def __init__(self, model: LCGMM, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(Z, **plain)
        self.lam, self.L = check_nonnegative(model.lam, "lam"), graph.laplacian()
        self.signed, self.may_clip = choose(NEGATIVE_WEIGHTS, model.negative_weights, option="negative_weights")
        self.clipped = False

    def maximise(self, resp: Array) -> Gaussians:
        """Eqs 7, 9 and 11: mixing weights from P, means and covariances from (I - λL)P."""
        priors = self.weighted(resp)
        weights = priors - self.lam * matmul(self.L, resp)
        if self.signed and not self.clipped:
            try:
                return estimate(self.Z, weights, kind=self.kind, ridge=self.ridge, priors=priors)
            except SingularCovarianceError:
                if not self.may_clip:
                    raise
                self.clipped = True  # a start that needed clipping once is clipped to its end
                warnings.warn(
                    "the smoothed weights turned negative enough to spoil a covariance, so they are clipped at zero "
                    "from here on; a smaller lam avoids that",
                    UserWarning,
                    stacklevel=7,
                )
        xp = namespace(weights)
        return estimate(self.Z, xp.where(weights > 0, weights, 0), kind=self.kind, ridge=self.ridge, priors=priors)

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """The penalised log-likelihood, R = Σ_k p_k' L log p_k."""
        likelihood = self.likelihood(log_joint)
        penalty = self.lam * float(namespace(resp).sum(resp * matmul(self.L, safe_log(resp)))) + self.disagreement(resp)
        return Step(likelihood - penalty, likelihood, penalty, self.moved(resp, last))

    def settled(self, history: list[Step], tol: float) -> bool:
        """By the posteriors, since the objective may fall."""
        return memberships_settled(history, tol)


NEGATIVE_WEIGHTS = {  # name -> whether signed weights are tried, whether they may be clipped
    "auto": (True, True),
    "signed": (True, False),
    "clip": (False, True),
}


class LCGMM(BaseMixture):
    """A Gaussian mixture whose components are estimated from memberships made consistent with their neighbours'.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph or matrix, default=None
        How the graph is made; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. It sees all of X, whatever
        ``pca``.
    lam : float, default=0.1
        Weight of the consistency; λ times the largest degree up to 1 keeps all weights nonnegative.
    negative_weights : {'auto', 'signed', 'clip'}, default='auto'
        Use negative weights while the covariances allow it, then clip; insist on them; or always clip.
    covariance_type, ridge, pca, init, n_init, max_iter, tol, random_state, verbose
        As in :class:`GaussianMixture`; ``init`` is 'community' by default, and ``tol`` is on the mean movement of the
        posteriors.

    Attributes
    ----------
    labels_, memberships_, weights_, means_, covariances_, history_, n_iter_, converged_
        As in :class:`GaussianMixture`, and so are ``objective_``, ``likelihood_`` and ``penalty_``.
    graph_ : AffinityGraph

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

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        lam: float = 0.1,
        negative_weights: str = "auto",
        covariance_type: str = "full",
        ridge: float = 0.1,
        pca: Any = None,
        init: Any = "community",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.lam = lam
        self.negative_weights = negative_weights
        self.covariance_type = covariance_type
        self.ridge = ridge
        self.pca = pca
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _hooks(self, plain: dict[str, Any], Z: Array, graph: AffinityGraph | None) -> Hooks:
        assert graph is not None
        return _LocallyConsistent(self, graph, Z, **plain)
