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

import logging
import math
import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from .._validation import check_int, check_nonnegative, choose
from ..core.backend import (
    Array,
    asarray_like,
    namespace,
    safe_log,
    to_numpy,
)
from ..core.blocks import map_rows
from ..core.eigen import spectral_bounds
from ..core.sparse import Sparse, csr_parts, matmul, with_data
from ..graph.affinity import AffinityGraph
from ..graph.smoothing import diffuse, heat_flow, iterate, resolvent
from .base import BaseMixture, GaussianHooks, natural_lam, partition_quality
from .covariance import Gaussians, SingularCovarianceError
from .em import EMResult, Hooks, Step, memberships_settled, run_em
from .links import Links
from .simplex import entropic_maximiser

log = logging.getLogger(__name__)

GAMMAS = (0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99)
SMALLEST_GAMMA = 1e-3
LAM_GRIDS = {"auto": (1.0, 4.0, 16.0, 64.0, 256.0), "natural": (1.0,)}  # of lam, in units of the natural scale
TRIAL_ITERATIONS = 50  # iterations with each of them


# --------------------------------------------------------------------------------------------- smoothing operators


class Smoother(NamedTuple):
    """A positive semidefinite operator A: its product with memberships, and c such that diag(c) - A is one too."""

    apply: Callable[[Array], Array]
    bound: Array  # (n, 1)


def _in_precision_of(reference: Array, S: Sparse) -> Sparse:
    """A matrix whose products with memberships stay in their precision."""
    data = csr_parts(S)[0]
    bits = namespace(data).finfo(data.dtype).bits
    if bits == namespace(reference).finfo(reference.dtype).bits:
        return S
    xp = namespace(data)
    return with_data(S, xp.astype(data, xp.float32 if bits == 64 else xp.float64))


def _laplacian(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L = D - S, below 2D."""
    L = _in_precision_of(reference, graph.laplacian())
    degrees = asarray_like(to_numpy(graph.degrees), reference, dtype=reference.dtype)
    return Smoother(lambda F: matmul(L, F), 2 * degrees[:, None])


def _iterated(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L², scaled by the mean degree to the size of L."""
    L, xp = _in_precision_of(reference, graph.laplacian()), namespace(reference)
    scale = max(float(to_numpy(graph.degrees).mean()), 1e-300)
    top = spectral_bounds(L)[1] ** 2 / scale
    return Smoother(lambda F: iterate(F, L, 2) / scale, xp.full_like(reference[:, :1], top))


def _heat(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = d̄ (I - exp(-L/d̄)), which penalises what a unit of heat flow would smooth away; below the mean degree d̄."""
    L, xp = _in_precision_of(reference, graph.laplacian()), namespace(reference)
    scale = max(float(to_numpy(graph.degrees).mean()), 1e-300)
    return Smoother(lambda F: scale * (F - heat_flow(F, L, 1 / scale)), xp.full_like(reference[:, :1], scale))


def _with_votes(smoother: Smoother, links: Links | None, graph: AffinityGraph) -> Smoother:
    """A - d̄ · strength · V, V the votes of known pairs; no eigenvalue of -V is above its row sums of sizes."""
    if links is None:
        return smoother
    unit = links.strength * float(to_numpy(graph.degrees).mean())
    return Smoother(lambda F: smoother.apply(F) - unit * links.votes(F), smoother.bound + unit * links.total)


OPERATORS = {"laplacian": _laplacian, "iterated": _iterated, "heat": _heat}


def smoothing_step(log_joint: Array, resp: Array, pull: Array, c: Array, row_weight: Array | float = 1.0) -> Array:
    """One step of the Q-step that never lowers J; ``pull`` is AQ with its λ and ``c`` the bound λ·diag on A, (n, 1)."""

    def step(log_joint: Array, resp: Array, pull: Array, c: Array) -> Array:
        return entropic_maximiser(log_joint + 2 * (c * resp - pull), 2 * c)

    return map_rows(step, log_joint, resp, pull / row_weight, c / row_weight)


# ------------------------------------------------------------------------------------------------------------- hooks


class _Variational(GaussianHooks):
    """The penalised evidence bound J; monotone."""

    def __init__(self, model: LapGMM, lam: float, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(Z, **plain)
        self.lam, self.n_smooth = lam, check_int(model.n_smooth, "n_smooth")
        self.smoother = _with_votes(choose(OPERATORS, model.operator, option="operator")(graph, Z), self.links, graph)
        self.pulled: tuple[Any, Any] = (None, None)
        if self.sample_weight is not None:  # a row of weight zero follows its neighbours, by an entropy of almost none
            xp = namespace(Z)
            least = 1e-8 * float(xp.max(self.sample_weight))
            self.row_weight = xp.where(self.sample_weight > least, self.sample_weight, least)

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """``n_smooth`` steps from the last memberships; without the graph term, the posterior."""
        if self.lam == 0:
            return super().refine(log_joint, resp)
        rows = 1.0 if self.sample_weight is None else self.row_weight[:, None]
        together = (lambda values: values) if self.links is None else self.links.together
        log_joint, c = together(log_joint), together(self.lam * self.smoother.bound)
        for _ in range(self.n_smooth):
            resp = self.clamp(smoothing_step(log_joint, resp, together(self.lam * self.pull(resp)), c, rows))
        return resp

    def pull(self, resp: Array) -> Array:
        """A times the memberships; the last product is kept, since the score needs what the next step begins with."""
        if self.pulled[0] is not resp:
            self.pulled = resp, self.smoother.apply(resp)
        return self.pulled[1]

    def settled(self, history: list[Step], tol: float) -> bool:
        """By the memberships: see `LapGMM`."""
        return memberships_settled(history, tol)

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """J and its two parts."""
        xp = namespace(resp)

        def sums(q: Array, log_joint: Array, pull: Array, last: Array) -> Array:
            parts = (_evidence_bound(q, log_joint), xp.sum(q * pull, axis=1), xp.sum(xp.abs(q - last), axis=1))
            return xp.stack(parts, axis=1)

        found = map_rows(sums, resp, log_joint, self.pull(resp), last)
        likelihood, penalty = self.total(found[:, 0]), self.lam * float(xp.sum(found[:, 1]))
        return Step(likelihood - penalty, likelihood, penalty, float(xp.sum(found[:, 2])) / resp.shape[0])


def _evidence_bound(q: Array, log_joint: Array) -> Array:
    """Σ_k q_k (log α_k p_k - log q_k) of every row."""
    xp = namespace(q)
    return xp.sum(q * (xp.where(q > 0, log_joint, 0) - safe_log(q)), axis=1)


class _Regularised(GaussianHooks):
    """What the paper's own readings share: the regularised log-likelihood (6) of smoothed memberships."""

    def __init__(self, model: LapGMM, lam: float, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(Z, **plain)
        if model.operator != "laplacian":
            raise ValueError(f"operator={model.operator!r} is offered by solver='variational'; this one is the paper's")
        self.lam, self.graph = lam, graph
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

    def __init__(self, model: LapGMM, lam: float, graph: AffinityGraph, Z: Array, **plain: Any) -> None:
        super().__init__(model, lam, graph, Z, **plain)
        self.walk, self.n_smooth = graph.laplacian("random_walk"), check_int(model.n_smooth, "n_smooth")
        self.gamma = check_gamma(model.gamma)

    def smooth(self, posterior: Array) -> Array:
        """``n_smooth`` steps of Eq. 12."""
        return self.clamp(diffuse(posterior, self.walk, self.gamma, self.n_smooth))

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """Lines 5, 6, 9 and 10 of Table 1: γ shrinks until the objective does not fall, or smoothing has ended."""
        posterior = super().refine(log_joint, resp)
        while (found := self.accept(self.smooth(posterior), resp)) is resp and self.gamma > SMALLEST_GAMMA:
            self.gamma *= 0.9
        return found


class _Anchored(_Regularised):
    """Smoothing tied to the posterior, its strength searched at every iteration."""

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """The best of the candidates, if it is better than what was."""
        posterior = super().refine(log_joint, resp)
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
        How the graph is made; None is ``KNNGraph(9, weight="local", symmetrize="mean")``, and the paper's is
        ``KNNGraph(8)``. It sees all of X, whatever ``pca``.
    lam : float, 'auto' or 'natural', default='auto'
        Weight of the smoothness, in nats an edge. 'natural' is the value at which a row's neighbours weigh as much as
        its densities; 'auto' tries multiples of it and keeps the one whose partition has the highest modularity on the
        graph.
    solver : {'variational', 'anchored', 'printed'}, default='variational'
        See the module's page; 'variational' is monotone.
    operator : {'laplacian', 'iterated', 'heat'}, default='laplacian'
        The smoothing operator of 'variational'.
    gamma : float, default=0.9
        First step of 'printed'.
    n_smooth : int, default=1
        Smoothing steps an iteration, of 'variational' and 'printed'.
    covariance_type, ridge, pca, init, n_init, max_iter, random_state, verbose
        As in :class:`GaussianMixture`; ``init`` is 'community' by default, and with ``lam='auto'`` several starts are
        compared by modularity.
    tol : float, default=1e-3
        On the mean movement of the memberships in an iteration. An early stop, and part of the method: run further, J
        still rises, but memberships leak along the graph and a thin cluster, such as a half moon, loses its shape.

    Attributes
    ----------
    labels_, memberships_, weights_, means_, covariances_, history_, n_iter_, converged_
        As in :class:`GaussianMixture`, and so are ``objective_``, ``likelihood_`` and ``penalty_``.
    graph_ : AffinityGraph
    lam_ : float
        The λ that was used.

    References
    ----------
    X. He, D. Cai, Y. Shao, H. Bao, J. Han, "Laplacian regularized Gaussian mixture model for data clustering",
    IEEE Transactions on Knowledge and Data Engineering 23, 2011.

    Examples
    --------
    >>> from fiedler import LapGMM
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = LapGMM(2, random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.99
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        lam: Any = "auto",
        solver: str = "variational",
        operator: str = "laplacian",
        gamma: float = 0.9,
        n_smooth: int = 1,
        covariance_type: str = "full",
        ridge: float = 0.1,
        pca: Any = None,
        init: Any = "community",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: bool = False,
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
        self.verbose = verbose

    def _hooks(self, plain: dict[str, Any], Z: Array, graph: AffinityGraph | None, lam: float) -> Hooks:
        assert graph is not None
        return choose(SOLVERS, self.solver, option="solver")(self, lam, graph, Z, **plain)

    def _run(self, start: Array, Z: Array, graph: AffinityGraph | None, options: dict[str, Any]) -> EMResult:
        """EM from one start, with the λ given or found."""
        if isinstance(self.lam, str) and self.lam in LAM_GRIDS:
            return self._search_lam(start, Z, graph, options)
        lam = check_nonnegative(self.lam, "lam", or_else="'auto' or 'natural'")
        return replace(run_em(start, self._hooks(options, Z, graph, lam), **self._limits()), lam=lam)

    def _search_lam(self, start: Array, Z: Array, graph: AffinityGraph | None, options: dict[str, Any]) -> EMResult:
        """Try every λ of the grid for `TRIAL_ITERATIONS` iterations and continue the best.

        The search stops after two values in a row that lose clusters.

        The best has the most clusters, and of those the highest modularity.
        """
        limits = self._limits()
        most, trials, failures = limits["max_iter"], [], []
        for lam in self._lam_grid(start, Z, graph, options):
            hooks = self._hooks(options, Z, graph, lam)
            try:
                run = replace(run_em(start, hooks, **limits | {"max_iter": min(TRIAL_ITERATIONS, most)}), lam=lam)
            except SingularCovarianceError as error:
                failures.append(error)
                continue
            trials.append((partition_quality(run.resp, graph), run, hooks))
            self._report_trial(lam, *trials[-1][0])
            if len(trials) > 2 and all(trial[0][0] < trials[0][0][0] for trial in trials[-2:]):
                break  # two in a row that smooth clusters out of existence: stronger ones seldom bring them back
        if not trials:
            raise failures[0]
        _, best, hooks = max(trials, key=lambda trial: trial[0])
        if best.converged or best.n_iter >= most:
            return best
        rest = run_em(best.resp, hooks, **limits | {"max_iter": most - best.n_iter})
        return replace(rest, history=best.history + rest.history, n_iter=best.n_iter + rest.n_iter, lam=best.lam)

    def _report_trial(self, lam: float, n_clusters: int, reached: float) -> None:
        text = f"LapGMM: lam = {lam:.4g} gives {n_clusters} clusters of modularity {reached:.4f}"
        log.info(text)
        if self.verbose:
            print(text)

    def _selection_score(self, run: EMResult, graph: AffinityGraph | None) -> Any:
        """Modularity where λ was found: objectives of different λ do not compare."""
        return partition_quality(run.resp, graph) if isinstance(self.lam, str) else super()._selection_score(run, graph)

    def _lam_grid(self, start: Array, Z: Array, graph: AffinityGraph | None, options: dict[str, Any]) -> list[float]:
        """The λ to try: multiples of the one at which neighbours weigh as much as densities."""
        assert graph is not None
        plain = GaussianHooks(Z, **options)
        scale = natural_lam(plain.expect(plain.maximise(plain.clamp(start))), graph)
        return [step * scale for step in LAM_GRIDS[self.lam]]

    def _store(self, best: EMResult, *fitted: Any) -> None:
        super()._store(best, *fitted)
        self.lam_ = best.lam

    def _coupling(self, joint: Array, graph: AffinityGraph) -> float:
        return self.lam_
