"""LapGMM: a Gaussian mixture whose memberships vary smoothly over a graph. Paper key: lapgmm.

    maximise  J(Q, Θ) = Σ_ik q_ik [log α_k + log N(x_i; μ_k, Σ_k) - log q_ik] - λ tr(Q'AQ)

over memberships Q (rows on the simplex) and components Θ, with A the graph Laplacian L = D - S or another positive
semidefinite smoothing operator. For λ = 0 the best Q is the posterior and J the log-likelihood: EM for a plain mixture.

There are four solvers for the memberships, the rows of `MEMBERSHIP_SOLVERS`. With P the posterior at Θ, Eq. 6 of the
paper is J(P, Θ), and J(Q, Θ) = Σ_i log Σ_k α_k N(x_i) - λ tr(Q'AQ) - Σ_i KL(q_i ‖ p_i). Hence

    Eq. 6 at Θ = J(P, Θ) ≤ max_Q J(Q, Θ) ≤ Σ_i log Σ_k α_k N(x_i; μ_k, Σ_k)

so that ``variational`` maximises an upper bound of Eq. 6. The others evaluate Eq. 6 with the penalty at the smoothed
memberships F, not at the posterior of the components refitted from them, and stop when it no longer rises.

- ``variational``: J itself, and monotone. The M-step is the plain one. For the Q-step take C = diag(c) with C - A
  positive semidefinite (2D for the Laplacian): -tr(Q'AQ) = -tr(Q'CQ) + tr(Q'(C - A)Q), the last term is convex and lies
  above its tangent, so that maximising the rest exactly, row by row, never lowers J:
  q_i = argmax_q q'a_i - λ c_i ‖q‖² - q' log q on the simplex, a_i = log α p(x_i) + 2λ((C - A)Q)_i.
- ``printed``: Eq. 12 of the paper, a fixed small number of steps F ← (1-γ)F + γD⁻¹SF after each E-step. The paper runs
  it "until convergence", whose limit is constant on every connected component; we do not. γ is multiplied by 0.9 while
  the regularised likelihood (6) of the refitted components would fall, and the posterior is smoothed anew.
- ``in_place``: the same with lines 6 and 10 of Table 1 read literally: line 6 overwrites the memberships, so that "go
  to 6" smooths those that have been smoothed already, and every attempt is smoother than the one before.
- ``anchored``: F = (1-γ)(I - γD⁻¹S)⁻¹P with P the posterior held fixed, γ searched in [0, 0.99] at every iteration by
  the same likelihood; γ = 0, no smoothing, is always a candidate, and only improvements are accepted.
"""

from __future__ import annotations

import logging
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState
from .._validation import Check, check_nonnegative, integer, one_of
from ..core.arrays import Array, first_best, namespace, normalize_row_sums, safe_log, take_clusters
from ..core.fitting import print_line
from ..core.parallel import map_rows
from ..core.pca import Projection
from ..core.sparse import Sparse
from ..errors import InputError, SingularCovarianceError, shown
from ..graph.affinity import AffinityGraph
from ..graph.smoothing import diffuse, resolvent
from .base import BaseMixture, CovarianceType, Start, natural_lam, partition_quality
from .covariance import Gaussians
from .em import EMResult, EMState, GaussianHooks, MixtureHooks, MixtureProblem, Step, memberships_converged, run_em
from .operators import Smoother, entropic_maximizer, laplacian_smoother, make_smoother

log = logging.getLogger(__name__)

GAMMAS = (0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99)  # steps that the solver 'anchored' compares
SMALLEST_GAMMA = 1e-3  # below it the solver 'printed' stops shrinking its step
GAMMA_DECAY = 0.9  # factor by which it shrinks
LAM_GRIDS = {"auto": (1.0, 4.0, 16.0, 64.0, 256.0), "natural": (1.0,)}  # values of lam, in units of `natural_lam`
LAM_TRIAL_ITERATIONS = 50  # iterations of EM with each value of the grid
SMALLEST_ROW_WEIGHT = 1e-8  # of the largest: a row of weight zero follows its neighbours, with almost no entropy


@dataclass(frozen=True, eq=False)
class _SmoothedState(EMState):
    """Adds the product AQ: the score needs it, and the next step begins with it."""

    product: Array = None

    def reorder(self, order: np.ndarray) -> Self:
        """Return the state with its clusters in another order."""
        return replace(super().reorder(order), product=take_clusters(self.product, order, axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Variational(MixtureHooks[_SmoothedState]):
    """The penalised evidence bound J; monotone."""

    smoother: Smoother
    row_weight: Array | float  # sample weights above zero, (n, 1), or 1
    n_smooth: int

    @classmethod
    def build(cls, model: LapGMM, problem: MixtureProblem, lam: float) -> _Variational:
        """Build the hooks from the model's parameters."""
        assert problem.graph is not None
        smoother = make_smoother(model.operator, problem.graph, problem.Z, problem.links)
        row_weight = _positive_weights(problem.sample_weight)
        return cls(problem, lam=lam, smoother=smoother, row_weight=row_weight, n_smooth=model.n_smooth)

    def start(self, memberships: Array) -> _SmoothedState:
        """Return the clamped memberships and their product with A."""
        resp = self.problem.clamp(memberships)
        return _SmoothedState(resp, product=self.smoother.apply(resp))

    def refine(self, log_joint: Array, state: _SmoothedState) -> _SmoothedState:
        """Take ``n_smooth`` steps from the last memberships; without the graph term, compute the posterior."""
        if self.lam == 0:
            state = super().refine(log_joint, state)
            return replace(state, product=self.smoother.apply(state.resp))
        problem, resp, product = self.problem, state.resp, state.product
        log_joint, bound = problem.group_mean(log_joint), problem.group_mean(self.lam * self.smoother.bound)
        for _ in range(self.n_smooth):
            penalty_gradient = problem.group_mean(self.lam * product)
            resp = problem.clamp(smoothing_step(log_joint, resp, penalty_gradient, bound, self.row_weight))
            product = self.smoother.apply(resp)
        return replace(state, resp=resp, product=product)

    def score(self, log_joint: Array, state: _SmoothedState, last_resp: Array) -> Step:
        """Compute J and its two terms."""
        xp = namespace(log_joint)

        def terms(q: Array, log_joint: Array, product: Array, last: Array) -> Array:
            columns = (evidence_bound(q, log_joint), xp.sum(q * product, axis=1), xp.sum(xp.abs(q - last), axis=1))
            return xp.stack(columns, axis=1)

        rows = map_rows(terms, state.resp, log_joint, state.product, last_resp)
        likelihood, penalty = self.problem.total(rows[:, 0]), self.lam * float(xp.sum(rows[:, 1]))
        change = self.problem.total(rows[:, 2]) / self.problem.total_weight
        return Step(likelihood - penalty, likelihood, penalty, change)

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the memberships: see ``tol`` of :class:`LapGMM`."""
        return memberships_converged(steps, tol)


def _positive_weights(sample_weight: Array | None) -> Array | float:
    if sample_weight is None:
        return 1.0
    xp = namespace(sample_weight)
    smallest = SMALLEST_ROW_WEIGHT * float(xp.max(sample_weight))
    return xp.where(sample_weight > smallest, sample_weight, smallest)[:, None]


def smoothing_step(
    log_joint: Array, resp: Array, penalty_gradient: Array, bound: Array, row_weight: Array | float = 1.0
) -> Array:
    """Take one Q-step, which never lowers J; the gradient is λAQ, and ``bound`` λ times that on A, shape (n, 1)."""

    def step(log_joint: Array, resp: Array, penalty_gradient: Array, bound: Array) -> Array:
        return entropic_maximizer(log_joint + 2 * (bound * resp - penalty_gradient), 2 * bound)

    return map_rows(step, log_joint, resp, penalty_gradient / row_weight, bound / row_weight)


def evidence_bound(q: Array, log_joint: Array) -> Array:
    """Compute Σ_k q_k (log α_k p_k - log q_k) for every row."""
    xp = namespace(q)
    return xp.sum(q * (xp.where(q > 0, log_joint, 0) - safe_log(q)), axis=1)


@dataclass(frozen=True, eq=False)
class _RegularizedState(EMState):
    """Adds the terms of the regularised log-likelihood (6) at the memberships, and the step γ of 'printed'."""

    likelihood: float = -math.inf
    penalty: float = 0.0
    gamma: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class _Regularized(MixtureHooks[_RegularizedState]):
    """Shared by the readings of the paper: the regularised log-likelihood (6) of smoothed memberships."""

    graph: AffinityGraph
    smoother: Smoother

    def start(self, memberships: Array) -> _RegularizedState:
        """Return the clamped memberships, which any other may replace."""
        return _RegularizedState(self.problem.clamp(memberships))

    def penalty(self, resp: Array) -> float:
        """Compute λ Σ_k f_k' L f_k. [lapgmm, Eq. 5; Eq. 11 drops the ½ and so doubles λ]"""
        return self.lam * float(namespace(resp).sum(resp * self.smoother.apply(resp)))

    def refitted(self, resp: Array) -> tuple[float, float]:
        """Compute the two terms of the regularised log-likelihood (6) for the components refitted from ``resp``."""
        return self.problem.likelihood(self.expect(self.estimate(resp))), self.penalty(resp)

    def accept(self, resp: Array, state: _RegularizedState) -> _RegularizedState:
        """Return a state with ``resp`` if its refitted objective is no lower than that of ``state``, else ``state``."""
        likelihood, penalty = self.refitted(resp)
        if likelihood - penalty < state.likelihood - state.penalty:
            return state
        return replace(state, resp=resp, likelihood=likelihood, penalty=penalty)

    def score(self, log_joint: Array, state: _RegularizedState, last_resp: Array) -> Step:
        """Return the likelihood of the refitted components minus the penalty of the smoothed memberships."""
        # The penalty of Eq. 6 is that of the posterior at these components, which another E-step would give.
        likelihood, penalty = state.likelihood, state.penalty
        return Step(likelihood - penalty, likelihood, penalty, self.problem.mean_change(state.resp, last_resp))

    def finish(self, model: Gaussians, state: _RegularizedState) -> Gaussians:
        """Refit the components from the smoothed memberships: line 7 of Table 1."""
        return self.estimate(state.resp)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Printed(_Regularized):
    """Table 1 of the paper with a fixed number of smoothing steps."""

    walk: Sparse  # the random-walk Laplacian
    gamma: float  # the first step
    n_smooth: int
    in_place: bool  # whether a smaller step is taken from the last smoothed memberships, not from the posterior

    @classmethod
    def build(cls, model: LapGMM, problem: MixtureProblem, lam: float) -> _Printed:
        """Build the hooks from the model's parameters."""
        graph = _graph_of_paper(model, problem)
        smoother, walk = laplacian_smoother(graph, problem.Z), graph.laplacian("random_walk")
        return cls(
            problem, lam=lam, graph=graph, smoother=smoother, walk=walk, gamma=float(model.gamma),
            n_smooth=model.n_smooth, in_place=model.solver == "in_place",
        )  # fmt: skip

    def start(self, memberships: Array) -> _RegularizedState:
        """Return the clamped memberships and the first step."""
        return replace(super().start(memberships), gamma=self.gamma)

    def smooth(self, posterior: Array, gamma: float) -> Array:
        """Take ``n_smooth`` steps of Eq. 12."""
        return self.problem.clamp(diffuse(posterior, self.walk, gamma, self.n_smooth))

    def refine(self, log_joint: Array, state: _RegularizedState) -> _RegularizedState:
        """Lines 5, 6, 9 and 10 of Table 1: γ shrinks until the objective does not fall, or smoothing has ended."""
        state = replace(state, pair_scale=self.pair_scale(log_joint, state))
        posterior = self.posterior(log_joint, state.resp, state.pair_scale)
        memberships = posterior
        while True:
            memberships = self.smooth(memberships if self.in_place else posterior, state.gamma)
            smoothed = self.accept(memberships, state)
            if smoothed is not state or state.gamma <= SMALLEST_GAMMA:
                return smoothed
            state = replace(state, gamma=GAMMA_DECAY * state.gamma)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Anchored(_Regularized):
    """Smoothing tied to the posterior, with a strength searched for in every iteration."""

    @classmethod
    def build(cls, model: LapGMM, problem: MixtureProblem, lam: float) -> _Anchored:
        """Build the hooks from the model's parameters."""
        graph = _graph_of_paper(model, problem)
        return cls(problem, lam=lam, graph=graph, smoother=laplacian_smoother(graph, problem.Z))

    def refine(self, log_joint: Array, state: _RegularizedState) -> _RegularizedState:
        """Return the best of the candidates and the state itself."""
        state = replace(state, pair_scale=self.pair_scale(log_joint, state))
        posterior = self.posterior(log_joint, state.resp, state.pair_scale)
        for gamma in GAMMAS:
            smoothed = normalize_row_sums(resolvent(posterior, self.graph, gamma, tol=1e-6))  # one up to tol
            state = self.accept(self.problem.clamp(smoothed), state)
        return state


def _graph_of_paper(model: LapGMM, problem: MixtureProblem) -> AffinityGraph:
    """Return the graph, whose Laplacian is the only operator of the paper's solvers."""
    if not (isinstance(model.operator, str) and model.operator == "laplacian"):
        name = repr(model.operator) if isinstance(model.operator, str) else "a matrix"
        message = (
            f"operator={name} needs solver='variational'; got solver={model.solver!r}, which is defined for the "
            "graph Laplacian"
        )
        hint = "set solver='variational' or operator='laplacian'"
        raise InputError(message, hint, code="incompatible_parameters", parameter="operator")
    assert problem.graph is not None
    return problem.graph


def check_gamma(gamma: Any, name: str) -> float:
    """Check a step in [0, 1]."""
    is_number = isinstance(gamma, numbers.Real) and not isinstance(gamma, bool)
    if is_number and 0 <= gamma <= 1:  # compared before it is converted, as an integer may exceed all floats
        return float(gamma)
    problem = f"{name} must be in [0, 1]; got {shown(gamma)}"
    raise InputError(problem, code="invalid_parameter", parameter=name, value=gamma)


def check_lam(lam: object, name: str) -> None:
    """Check a weight of the smoothness, or how it is found."""
    if not (isinstance(lam, str) and lam in LAM_GRIDS):
        check_nonnegative(lam, name, or_else="'auto' or 'natural'")


MEMBERSHIP_SOLVERS: dict[str, Callable[[LapGMM, MixtureProblem, float], MixtureHooks[Any]]] = {
    "variational": _Variational.build,
    "printed": _Printed.build,
    "in_place": _Printed.build,
    "anchored": _Anchored.build,
}


class LapGMM(BaseMixture):
    """Gaussian mixture whose memberships vary smoothly over a graph.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph or how to build it; None is ``KNNGraph(9, weight="local", symmetrize="mean")``, and the paper's is
        ``KNNGraph(8)``. It is built from all columns of X, whatever ``pca``.
    lam : float, 'auto' or 'natural', default='auto'
        Weight of the smoothness, in nats per edge. 'natural' is the value at which the neighbours of a row weigh as
        much as its densities; 'auto' tries multiples of it and keeps the one whose partition has the highest
        modularity on the graph.
    solver : {'variational', 'anchored', 'printed', 'in_place'}, default='variational'
        How memberships are smoothed: by maximising the penalised evidence bound, which is monotone, or by a reading of
        the paper's rule. If its objective falls, 'printed' smooths the posterior anew with a smaller step, and
        'in_place' goes on from the smoothed memberships.
    operator : {'laplacian', 'iterated', 'heat', 'hessian'} or matrix of shape (n, n), default='laplacian'
        The smoothing operator A of 'variational': the graph Laplacian L, L² over the mean degree d̄,
        d̄(I - exp(-L/d̄)), the Hessian operator of a surface, see :func:`fiedler.graph.hessian`, scaled to the trace of
        L, or a symmetric positive semidefinite array or sparse matrix. 'auto' and 'natural' values of ``lam`` suit a
        matrix on the scale of L.
    gamma : float, default=0.9
        The first step of 'printed' and 'in_place'.
    n_smooth : int, default=1
        Smoothing steps per iteration, of 'variational', 'printed' and 'in_place'.
    covariance_type, ridge, pca, init, n_init, max_iter, random_state, verbose
        As in :class:`GaussianMixture`; ``init`` is 'community' by default, and with ``lam='auto'`` several starts are
        compared by modularity.
    tol : float, default=1e-3
        'variational' stops when memberships change by at most this much on average. Stopping early is part of the
        method: in further iterations J still rises, but memberships leak along the graph and a thin cluster, such as a
        half moon, loses its shape. The other solvers stop when the objective changes by at most this much per sample;
        with known pairs, which can lower the objective, all of them look at the memberships.

    Attributes
    ----------
    labels_, memberships_, weights_, means_, covariances_ : array
        As in :class:`GaussianMixture`.
    history_, objective_, likelihood_, penalty_, n_iter_, converged_
        As in :class:`GaussianMixture`.
    graph_ : AffinityGraph
        The graph.
    lam_ : float
        The weight of the smoothness that was used.

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

    _parameter_checks: ClassVar[dict[str, Check]] = {
        **BaseMixture._parameter_checks,
        "lam": check_lam,
        "solver": one_of(MEMBERSHIP_SOLVERS),
        "gamma": check_gamma,
        "n_smooth": integer(),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        lam: float | Literal["auto", "natural"] = "auto",
        solver: Literal["variational", "printed", "in_place", "anchored"] = "variational",
        operator: Literal["laplacian", "iterated", "heat", "hessian"] | MatrixLike = "laplacian",
        gamma: float = 0.9,
        n_smooth: int = 1,
        covariance_type: CovarianceType = "full",
        ridge: float | Literal["auto", "oas"] = "auto",
        pca: int | float | None = None,
        init: Start | MatrixLike | LabelsLike = "community",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_clusters, graph, covariance_type=covariance_type, ridge=ridge, pca=pca, init=init, n_init=n_init,
            max_iter=max_iter, tol=tol, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.lam = lam
        self.solver = solver
        self.operator = operator
        self.gamma = gamma
        self.n_smooth = n_smooth

    def _hooks(self, problem: MixtureProblem) -> MixtureHooks[Any]:
        return MEMBERSHIP_SOLVERS[self.solver](self, problem, 0.0 if self._searches_lam() else float(self.lam))

    def _searches_lam(self) -> bool:
        return isinstance(self.lam, str) and self.lam in LAM_GRIDS

    def _run(self, start: Array, hooks: MixtureHooks[Any]) -> EMResult[Any]:
        """Run EM from one start, with λ as given or searched for."""
        if not self._searches_lam():
            return super()._run(start, hooks)
        grid, graph = self._lam_grid(start, hooks.problem), hooks.problem.graph
        return self._search_lam(start, hooks, grid, lambda result: partition_quality(result.resp, graph))

    def _search_lam(
        self,
        start: Any,
        hooks: Any,
        grid: Sequence[float],
        quality: Callable[[EMResult[Any]], tuple[int, float]],
        discard: Callable[[EMResult[Any]], None] | None = None,
    ) -> EMResult[Any]:
        """Try the values of the grid for `LAM_TRIAL_ITERATIONS` iterations each and continue the best run."""
        # It has the most clusters and, among those, the highest modularity. The search stops after two values in a row
        # that lose clusters: larger ones seldom bring them back. ``discard`` is called on the other runs.
        limits = self._limits()
        max_iter = limits.pop("max_iter")
        runs, failures = [], []
        for lam in grid:
            trial = replace(hooks, lam=lam)
            try:
                result = run_em(trial.start(start), trial, max_iter=min(LAM_TRIAL_ITERATIONS, max_iter), **limits)
            except SingularCovarianceError as error:
                failures.append(error)
                continue
            runs.append((quality(result), replace(result, lam=lam), trial))
            self._report_trial(lam, *runs[-1][0])
            if len(runs) > 2 and all(n_clusters < runs[0][0][0] for (n_clusters, _), _, _ in runs[-2:]):
                break
        if not runs:
            raise failures[0]
        _, best, trial = first_best(runs, lambda run: run[0])
        for _, other, _ in runs:
            if discard is not None and other is not best:
                discard(other)
        if best.converged or best.n_iter >= max_iter:
            return best
        rest = run_em(best.state, trial, max_iter=max_iter - best.n_iter, **limits)
        return replace(rest, history=best.history + rest.history, n_iter=best.n_iter + rest.n_iter, lam=best.lam)

    def _report_trial(self, lam: float, n_clusters: int, modularity: float) -> None:
        text = f"LapGMM: lam = {lam:.4g} gives {n_clusters} clusters of modularity {modularity:.4f}"
        log.info(text)
        if self.verbose:
            print_line(text)

    def _selection_score(self, run: EMResult[Any], graph: AffinityGraph | None) -> Any:
        """Return the modularity where λ is searched for: objectives at different λ are not comparable."""
        return partition_quality(run.resp, graph) if self._searches_lam() else super()._selection_score(run, graph)

    def _lam_grid(self, start: Array, problem: MixtureProblem) -> list[float]:
        """Return the values of λ to try: multiples of the one at which neighbours weigh as much as densities."""
        assert problem.graph is not None
        hooks = GaussianHooks(problem)
        model, _ = hooks.maximize(hooks.start(start))
        scale = natural_lam(hooks.expect(model), problem.graph, problem.counts)
        return [factor * scale for factor in LAM_GRIDS[str(self.lam)]]

    def _store(self, best: EMResult[Any], graph: AffinityGraph | None, X: Array, projection: Projection | None) -> None:
        super()._store(best, graph, X, projection)
        self.lam_ = best.lam

    def _neighbor_weight(self, log_joint: Array, graph: AffinityGraph) -> float:
        return self.lam_
