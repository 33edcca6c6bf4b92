"""LapGMM: a Gaussian mixture whose memberships vary smoothly over a graph. Paper key: lapgmm.

    maximise  J(Q, Θ) = Σ_ik q_ik [log α_k + log N(x_i; μ_k, Σ_k) - log q_ik] - λ tr(Q'AQ)

over memberships Q (rows on the simplex) and components Θ, with A the graph Laplacian L = D - S or another positive
semidefinite smoothing operator. For λ = 0 the best Q is the posterior and J the log-likelihood: EM for a plain mixture.

Three ways to the memberships, rows of `SOLVERS`:

- ``variational``: J itself, and monotone. The M-step is the plain one. For the Q-step take C = diag(c) with C - A
  positive semidefinite (2D for the Laplacian): -tr(Q'AQ) = -tr(Q'CQ) + tr(Q'(C - A)Q), the last term is convex and lies
  above its tangent, so that maximising the rest exactly, row by row, never lowers J:
  q_i = argmax_q q'a_i - λ c_i ‖q‖² - q' log q on the simplex, a_i = log α p(x_i) + 2λ((C - A)Q)_i.
- ``printed``: Eq. 12 of the paper, a fixed small number of steps F ← (1-γ)F + γD⁻¹SF after each E-step. The paper runs
  it "until convergence", whose limit is constant on every connected component: we do not. γ shrinks by 0.9 whenever
  the regularised likelihood (6) of the refitted components would fall.
- ``anchored``: F = (1-γ)(I - γD⁻¹S)⁻¹P with P the posterior held fixed, γ searched in [0, 0.99] at every iteration by
  the same likelihood; γ = 0, no smoothing, is always a candidate, and only improvements are accepted.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from .._validation import check_data, check_int, choose
from ..core.backend import Array, alike, like, namespace, safe_log, softmax, to_numpy
from ..core.eigen import spectral_bounds
from ..core.sparse import matmul
from ..graph.affinity import AffinityGraph
from ..graph.extend import link_degrees
from ..graph.recipes import link_new_points
from ..graph.smoothing import diffuse, heat_flow, iterate, resolvent
from .base import BaseMixture, PlainHooks, check_nonnegative
from .covariance import Gaussians
from .em import Hooks, Step

GAMMAS = (0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99)
SMALLEST_GAMMA = 1e-3


# --------------------------------------------------------------------------------------------- smoothing operators


class Smoother(NamedTuple):
    """A positive semidefinite operator A: its product with memberships, and c such that diag(c) - A is one too."""

    apply: Callable[[Array], Array]
    bound: Array  # (n, 1)


def _laplacian(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L = D - S, below 2D."""
    L = graph.laplacian()
    degrees = like(to_numpy(graph.degrees), reference, dtype=reference.dtype)
    return Smoother(lambda F: matmul(L, F), 2 * degrees[:, None])


def _iterated(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L², scaled by the mean degree to the size of L."""
    L, xp = graph.laplacian(), namespace(reference)
    scale = max(float(to_numpy(graph.degrees).mean()), 1e-300)
    top = spectral_bounds(L)[1] ** 2 / scale
    return Smoother(lambda F: iterate(F, L, 2) / scale, xp.full_like(reference[:, :1], top))


def _heat(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = d̄ (I - exp(-L/d̄)), which penalises what a unit of heat flow would smooth away; below the mean degree d̄."""
    L, xp = graph.laplacian(), namespace(reference)
    scale = max(float(to_numpy(graph.degrees).mean()), 1e-300)
    return Smoother(lambda F: scale * (F - heat_flow(F, L, 1 / scale)), xp.full_like(reference[:, :1], scale))


OPERATORS = {"laplacian": _laplacian, "iterated": _iterated, "heat": _heat}


def entropic_maximiser(a: Array, b: Array, n_newton: int = 30) -> Array:
    """Argmax over the simplex of q'a - ½ b ‖q‖² - q' log q, row by row; b = 0 gives the softmax.

    Stationarity reads log q_k + b q_k = a_k - ν, with ν the row's multiplier. Σ_k q_k(ν) - 1 is convex and falling in
    ν, so Newton's steps from a ν at which the largest entry alone is 1 approach the root from one side.
    """
    xp = namespace(a)
    a = a - xp.max(a, axis=1)[:, None]
    nu, u = -b, _log_share(a + b, b)
    for _ in range(n_newton):
        q = xp.exp(u)
        excess = xp.sum(q, axis=1)[:, None] - 1
        if not bool(xp.any(excess > 8 * float(xp.finfo(a.dtype).eps))):
            break
        nu = nu + excess / xp.sum(q / (1 + b * q), axis=1)[:, None]
        u = _log_share(a - nu, b)
    q = xp.exp(u)
    return q / xp.sum(q, axis=1)[:, None]


def _log_share(s: Array, b: Array) -> Array:
    """The u with u + b exp(u) = s (the logarithm of Lambert's W, over b), by Newton's steps from above."""
    xp = namespace(s)
    log_b = xp.log(xp.where(b > 0, b, 1))
    t = s + log_b
    # W(e^t) lies below softplus(t), and u below s; from an upper bound the steps fall towards the root.
    softplus = xp.where(t > 0, t, 0) + xp.log1p(xp.exp(-xp.abs(t)))
    upper = xp.log(xp.where(t > -20, softplus, 1)) - log_b
    u = xp.where((t > -20) & (b > 0) & (upper < s), upper, s)
    for _ in range(12):
        scaled = b * xp.exp(u)
        u = u - (u + scaled - s) / (1 + scaled)
    return u


def smoothing_step(log_joint: Array, resp: Array, pull: Array, c: Array, row_weight: Array | float = 1.0) -> Array:
    """One step of the Q-step that never lowers J; ``pull`` is λAQ and ``c`` the bound λ·diag on it."""
    return entropic_maximiser(log_joint + 2 * (c * resp - pull) / row_weight, 2 * c / row_weight)


# ------------------------------------------------------------------------------------------------------------- hooks


class _Variational(PlainHooks):
    """The penalised evidence bound J; monotone."""

    def __init__(self, model: LapGMM, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(Z, **plain)
        self.lam, self.n_smooth = check_nonnegative(model.lam, "lam"), check_int(model.n_smooth, "n_smooth")
        self.smoother = choose(OPERATORS, model.operator, option="operator")(graph, Z)
        if self.sample_weight is not None:  # a row of weight zero follows its neighbours, by an entropy of almost none
            xp = namespace(Z)
            least = 1e-8 * float(xp.max(self.sample_weight))
            self.row_weight = xp.where(self.sample_weight > least, self.sample_weight, least)

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """``n_smooth`` steps from the last memberships; without the graph term, the posterior."""
        if self.lam == 0:
            return self.clamp(softmax(log_joint))
        rows = 1.0 if self.sample_weight is None else self.row_weight[:, None]
        c = self.lam * self.smoother.bound
        for _ in range(self.n_smooth):
            resp = self.clamp(smoothing_step(log_joint, resp, self.lam * self.smoother.apply(resp), c, rows))
        return resp

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """J and its two parts."""
        xp = namespace(resp)
        bound = xp.sum(resp * (xp.where(resp > 0, log_joint, 0) - safe_log(resp)), axis=1)
        likelihood = self.total(bound)
        penalty = self.lam * float(xp.sum(resp * self.smoother.apply(resp)))
        return Step(likelihood - penalty, likelihood, penalty, self.moved(resp, last))


class _Regularised(PlainHooks):
    """What the paper's own readings share: the regularised log-likelihood (6) of smoothed memberships."""

    def __init__(self, model: LapGMM, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(Z, **plain)
        if model.operator != "laplacian":
            raise ValueError(f"operator={model.operator!r} is offered by solver='variational'; this one is the paper's")
        self.lam, self.graph = check_nonnegative(model.lam, "lam"), graph
        self.smoother, self.reached = _laplacian(graph, Z), (-math.inf, 0.0)

    def penalty(self, resp: Array) -> float:
        """λ Σ_k f_k' L f_k. [lapgmm, Eq. 5; Eq. 11 drops the ½ and so doubles λ]"""
        return self.lam * float(namespace(resp).sum(resp * self.smoother.apply(resp)))

    def refitted(self, resp: Array) -> tuple[float, float]:
        """The two parts of the regularised log-likelihood (6) for the components refitted from ``resp``."""
        return self.likelihood(self.expect(self.maximise(resp))), self.penalty(resp)

    def finish(self, model: Gaussians, resp: Array) -> Gaussians:
        """Refitted from the smoothed memberships: line 7 of Table 1."""
        return self.maximise(resp)

    def accept(self, resp: Array, last: Array) -> Array:
        """``resp`` if its refitted objective is no lower than the best so far, else the last memberships again."""
        parts = self.refitted(resp)
        if parts[0] - parts[1] < self.reached[0] - self.reached[1]:
            return last
        self.reached = parts
        return resp

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """Eq. 6 at the smoothed memberships and the components refitted from them."""
        likelihood, penalty = self.reached
        return Step(likelihood - penalty, likelihood, penalty, self.moved(resp, last))


class _Printed(_Regularised):
    """Table 1 of the paper with a fixed number of smoothing steps."""

    def __init__(self, model: LapGMM, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(model, graph, Z, **plain)
        self.walk, self.n_smooth = graph.laplacian("random_walk"), check_int(model.n_smooth, "n_smooth")
        self.gamma = check_gamma(model.gamma)

    def smooth(self, posterior: Array) -> Array:
        """``n_smooth`` steps of Eq. 12."""
        return self.clamp(diffuse(posterior, self.walk, self.gamma, self.n_smooth))

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """Lines 5, 6, 9 and 10 of Table 1: γ shrinks until the objective does not fall, or smoothing has ended."""
        posterior = self.clamp(softmax(log_joint))
        while (found := self.accept(self.smooth(posterior), resp)) is resp and self.gamma > SMALLEST_GAMMA:
            self.gamma *= 0.9
        return found


class _Anchored(_Regularised):
    """Smoothing tied to the posterior, its strength searched at every iteration."""

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """The best of the candidates, if it is better than what was."""
        posterior = self.clamp(softmax(log_joint))
        found = resp
        for gamma in GAMMAS:
            candidate = self.accept(self.clamp(resolvent(posterior, self.graph, gamma, tol=1e-6)), resp)
            found = candidate if candidate is not resp else found
        return found


SOLVERS = {"variational": _Variational, "printed": _Printed, "anchored": _Anchored}


def check_gamma(gamma: Any) -> float:
    """A step in [0, 1]."""
    if isinstance(gamma, numbers.Real) and not isinstance(gamma, bool) and 0 <= float(gamma) <= 1:
        return float(gamma)
    raise ValueError(f"gamma must be in [0, 1]; got {gamma!r}")


# --------------------------------------------------------------------------------------------------------- the class


class LapGMM(BaseMixture):
    """A Gaussian mixture whose memberships vary smoothly over the graph.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph or matrix, default=None
        How the graph is made; None is ``KNNGraph()``, the paper's. It sees all of X, whatever ``pca``.
    lam : float, default=1.0
        Weight of the smoothness, in nats an edge. Good values grow with the dimension over the mean degree.
    solver : {'variational', 'anchored', 'printed'}, default='variational'
        See the module's page; 'variational' is monotone and has no further options.
    operator : {'laplacian', 'iterated', 'heat'}, default='laplacian'
        The smoothing operator of 'variational'.
    gamma : float, default=0.9
        First step of 'printed'.
    n_smooth : int, default=3
        Smoothing steps an iteration, of 'variational' and 'printed'.
    covariance_type, ridge, pca, init, n_init, max_iter, tol, random_state
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    labels_, memberships_, weights_, means_, covariances_, history_, n_iter_, converged_
        As in :class:`GaussianMixture`, and so are ``objective_``, ``likelihood_`` and ``penalty_``.
    graph_ : AffinityGraph

    References
    ----------
    X. He, D. Cai, Y. Shao, H. Bao, J. Han, "Laplacian regularized Gaussian mixture model for data clustering",
    IEEE Transactions on Knowledge and Data Engineering 23, 2011.

    Examples
    --------
    >>> from fiedler import KNNGraph, LapGMM
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = LapGMM(2, KNNGraph(15), lam=100.0, init="spectral", random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.99
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        lam: float = 1.0,
        solver: str = "variational",
        operator: str = "laplacian",
        gamma: float = 0.9,
        n_smooth: int = 3,
        covariance_type: str = "full",
        ridge: float = 0.1,
        pca: Any = None,
        init: Any = "kmeans",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.lam = lam
        self.solver = solver
        self.operator = operator
        self.gamma = gamma
        self.n_smooth = n_smooth
        self.covariance_type = covariance_type
        self.ridge = ridge
        self.pca = pca
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _hooks(self, plain: dict[str, Any], Z: Array, graph: AffinityGraph | None) -> Hooks:
        assert graph is not None
        return choose(SOLVERS, self.solver, option="solver")(self, graph, Z, **plain)

    def _store(self, *fitted: Any) -> None:
        super()._store(*fitted)
        self._fit_lam = float(self.lam)

    def predict_proba(self, X: Any, *, use_graph: bool = False) -> Array:
        """The probability of every cluster for each new point.

        With ``use_graph`` the points are also joined to their training neighbours, whose memberships q_j stay as they
        are: the maximiser of Σ_k q_k (log α_k p_k - log q_k) - λ Σ_j w_j ‖q - q_j‖², whatever ``operator`` was.
        """
        joint = self._log_joint(X)
        if not use_graph:
            return softmax(joint)
        X = alike(check_data(X), self._fit_X)
        W = link_new_points(self._fit_recipe, X, self._fit_X, self.graph_)
        degrees, target = link_degrees(W, signed=False)[:, None], matmul(W, self.memberships_)
        lam = self._fit_lam
        return entropic_maximiser(joint + 2 * lam * target, 2 * lam * degrees)
