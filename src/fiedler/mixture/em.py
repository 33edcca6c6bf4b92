"""One EM loop for all mixtures: the models differ in a few hooks.

=========  ==========================================  ============================  ==============================
model      memberships from log α_k N_k(x_i)           M-step weights                penalty
=========  ==========================================  ============================  ==============================
GMM        normalised                                  the memberships               0
LapGMM     smoothed over the graph                     the memberships               λ tr(Q'LQ)
LCGMM      normalised                                  (I - λL) memberships          λ Σ_k p_k' L log p_k
=========  ==========================================  ============================  ==============================

Hooks are pure functions of their arguments: whatever one iteration passes to the next is in the :class:`EMState`, so
the same hooks serve any number of starts, and a run can be continued from the state in which it ended.

The loop ends after an E-step: the memberships it returns are those of the components it returns (or, for the paper's
own solvers of LapGMM, the components are refitted from the smoothed memberships).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from .._records import FitHistory
from ..core.arrays import (
    Array,
    asarray_like,
    is_numpy,
    logsumexp,
    namespace,
    order_by_first_row,
    smallest_k,
    softmax,
    take_clusters,
    to_numpy,
)
from ..core.fitting import stage
from ..core.parallel import map_rows
from ..core.sparse import Sparse, from_scipy_like, matmul
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints, constraint_weights, group_means
from .covariance import Gaussians, estimate, log_joint, prepare
from .statistics import mean_origin

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """Values recorded in one iteration: objective = likelihood - penalty, and the mean change of the memberships."""

    objective: float
    likelihood: float
    penalty: float
    change: float


@dataclass(frozen=True, eq=False)
class EMState:
    """Values that one iteration passes to the next; models add their own."""

    resp: Array  # the memberships, (n, k)
    # The size of the terms that known pairs add to the log-densities, in nats: that of the first iteration, since the
    # iteration would not converge if it changed with the densities.
    pair_scale: float | None = None

    def reorder(self, order: np.ndarray) -> Self:
        """Return the state with its clusters in another order."""
        return replace(self, resp=take_clusters(self.resp, order, axis=1))


S = TypeVar("S", bound=EMState)


class Hooks(Protocol[S]):
    """The steps in which models differ. None of them changes the object."""

    def start(self, memberships: Array) -> S:
        """Return the state before the first iteration."""

    def maximize(self, state: S) -> tuple[Gaussians, S]:
        """Estimate the components from the memberships."""

    def expect(self, model: Gaussians) -> Array:
        """Compute log α_k + log N(x_i; θ_k), shape (n, k)."""

    def refine(self, log_joint: Array, state: S) -> S:
        """Compute new memberships from the densities and the last memberships."""

    def score(self, log_joint: Array, state: S, last_resp: Array) -> Step:
        """Compute the objective and its terms."""

    def finish(self, model: Gaussians, state: S) -> Gaussians:
        """Return the components that belong to the last memberships: those from which they were computed."""
        return model

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Whether the last iteration changed no more than ``tol``: by default the memberships."""
        return memberships_converged(steps, tol)


@dataclass(frozen=True, eq=False)
class EMResult(Generic[S]):
    """The outcome of one run of EM."""

    state: S
    model: Gaussians
    history: FitHistory
    n_iter: int
    converged: bool
    lam: float = 0.0  # the weight of the penalty

    @property
    def resp(self) -> Array:
        """The last memberships, shape (n, k)."""
        return self.state.resp

    def numbered_by_first_row(self) -> EMResult[S]:
        """Return the outcome with its clusters in the order of their first rows."""
        labels = namespace(self.resp).argmax(self.resp, axis=1)
        order = order_by_first_row(labels, self.resp.shape[1])
        return replace(self, state=self.state.reorder(order), model=self.model.reorder(order))


def run_em(
    state: S, hooks: Hooks[S], *, max_iter: int, tol: float, report: Callable[[int, Step], None] | None = None
) -> EMResult[S]:
    """Iterate from ``state`` to convergence or for ``max_iter`` iterations; ``report`` is called after each one."""
    steps: list[Step] = []
    with stage("EM", max_iter, at_most=True) as tick:
        while True:
            model, state = hooks.maximize(state)  # M-step
            log_joint = hooks.expect(model)  # E-step: densities ...
            last, state = state, hooks.refine(log_joint, state)  # ... and memberships
            steps.append(hooks.score(log_joint, state, last.resp))
            log.info("EM: iteration %d, %s", len(steps), steps[-1])
            if report is not None:
                report(len(steps), steps[-1])
            tick()
            converged = len(steps) > 1 and hooks.has_converged(steps, tol)
            if converged or len(steps) >= max_iter:
                history = FitHistory._from_steps(steps, maximize=True)
                return EMResult(state, hooks.finish(model, state), history, len(steps), converged)


def objective_converged(steps: Sequence[Step], total_weight: float, tol: float) -> bool:
    """Whether the objective changed by at most ``tol`` per sample (per unit of sample weight)."""
    return abs(steps[-1].objective - steps[-2].objective) <= tol * total_weight


def memberships_converged(steps: Sequence[Step], tol: float) -> bool:
    """Whether the memberships changed by at most ``tol`` on average: the test for iterations that are not monotone."""
    return steps[-1].change <= tol


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """The inputs of a fit."""

    Z: Array  # the rows in the coordinates of the densities, (n, d)
    _: KW_ONLY
    kind: str  # the shape of the covariances
    ridge: float  # added to the variances, in the unit of Z²
    shrinks: bool = False  # whether covariances are shrunken by the number of their rows
    rows: Any = None  # as given, if Z has other coordinates
    graph: AffinityGraph | None = None
    sample_weight: Array | None = None  # (n,)
    known: Array | None = None  # (n, k): one-hot rows where the cluster is known, zeros elsewhere
    links: Links | None = None

    def clamp(self, resp: Array) -> Array:
        """Fix the memberships of rows with a known cluster, and share those of rows in one hard group."""
        resp = self.group_mean(resp)
        if self.known is None:
            return resp
        xp = namespace(resp)
        return xp.where(xp.sum(self.known, axis=1)[:, None] > 0, self.known, resp)

    def group_mean(self, values: Array) -> Array:
        """Average over the rows that hard must-links join; without any, return the values."""
        return values if self.links is None else self.links.group_mean(values)

    def weighted(self, resp: Array) -> Array:
        """Multiply memberships by the sample weights."""
        return resp if self.sample_weight is None else resp * self.sample_weight[:, None]

    def estimate(self, weights: Array, priors: Array | None = None) -> Gaussians:
        """Estimate the components; see :func:`.covariance.estimate`."""
        options: dict[str, Any] = {"kind": self.kind, "ridge": self.ridge, "shrinks": self.shrinks}
        return estimate(self.Z, weights, **options, priors=priors, origin=self.origin)

    def log_joint(self, model: Gaussians) -> Array:
        """Compute log α_k + log N(x_i; θ_k), shape (n, k)."""
        return log_joint(self.Z, model, self.prepared)

    @cached_property
    def prepared(self) -> Array | None:
        """The rows as the densities of all iterations need them, where it pays to keep them."""
        return prepare(self.Z, kind=self.kind, origin=self.origin)

    @cached_property
    def origin(self) -> Array:
        """The point from which rows are measured."""
        return mean_origin(self.Z)

    def total(self, values: Array) -> float:
        """Compute the weighted sum over rows."""
        xp = namespace(values)
        return float(xp.sum(values if self.sample_weight is None else values * self.sample_weight))

    @cached_property
    def total_weight(self) -> float:
        """The sum of the sample weights, or the number of rows."""
        weights = self.sample_weight
        return float(self.Z.shape[0] if weights is None else namespace(weights).sum(weights))

    def mean_change(self, resp: Array, last_resp: Array) -> float:
        """Compute the mean over rows of ‖q_i - last q_i‖₁."""
        xp = namespace(resp)
        changes = map_rows(lambda q, last: xp.linalg.vector_norm(q - last, axis=1, ord=1), resp, last_resp)
        return self.total(changes) / self.total_weight

    @property
    def counts(self) -> Array | None:
        """The number of rows for which each row of Z stands, shape (n,); None if it is one."""
        return None

    def likelihood(self, log_joint: Array) -> float:
        """Compute Σ_i log p(x_i), with log p(x_i, known cluster) where the cluster is known."""
        rows = map_rows(logsumexp, log_joint)
        if self.known is not None:
            xp = namespace(rows)
            is_known = xp.sum(self.known, axis=1) > 0
            rows = xp.where(is_known, xp.sum(xp.where(self.known > 0, log_joint, 0), axis=1), rows)
        return self.total(rows)


@dataclass(frozen=True, eq=False)
class MixtureHooks(Hooks[S]):
    """EM for a Gaussian mixture with sample weights, known clusters and known pairs; subclasses define ``start``."""

    problem: MixtureProblem
    _: KW_ONLY
    lam: float = 0.0  # the weight of the graph term

    def maximize(self, state: S) -> tuple[Gaussians, S]:
        """Compute the weighted estimates [lapgmm, Eqs 13-15]."""
        return self.estimate(state.resp), state

    def estimate(self, resp: Array) -> Gaussians:
        """Estimate the components from memberships."""
        return self.problem.estimate(self.problem.weighted(resp))

    def expect(self, model: Gaussians) -> Array:
        """Compute the joint log-densities."""
        return self.problem.log_joint(model)

    def refine(self, log_joint: Array, state: S) -> S:
        """Compute the posterior; with pairs, see :meth:`posterior`."""
        scale = self.pair_scale(log_joint, state)
        return replace(state, resp=self.posterior(log_joint, state.resp, scale), pair_scale=scale)

    def posterior(self, log_joint: Array, resp: Array, pair_scale: float | None) -> Array:
        """Compute the posterior [lapgmm, Eq. 8]; linked rows move halfway to the one that includes their pairs."""
        problem, links = self.problem, self.problem.links
        if links is None or pair_scale is None:
            return problem.clamp(map_rows(softmax, log_joint))
        with_pairs = links.group_mean(log_joint + pair_scale * links.linked_sum(resp))
        return problem.clamp(links.damp(map_rows(softmax, with_pairs), resp))

    def pair_scale(self, log_joint: Array, state: S) -> float | None:
        """Return the scale of the pairs' terms: that of the state or, in the first iteration, from the densities."""
        if self.problem.links is None or state.pair_scale is not None:
            return state.pair_scale
        return self.problem.links.strength * median_margin(log_joint, self.problem.counts)

    def score(self, log_joint: Array, state: S, last_resp: Array) -> Step:
        """Compute the log-likelihood minus the disagreement of linked rows."""
        likelihood, penalty = self.problem.likelihood(log_joint), self.disagreement(state)
        return Step(likelihood - penalty, likelihood, penalty, self.problem.mean_change(state.resp, last_resp))

    def disagreement(self, state: S) -> float:
        """Compute -½γ Σ_ij v_ij q_i'q_j over linked rows; 0 without any."""
        links, resp = self.problem.links, state.resp
        if links is None or state.pair_scale is None:
            return 0.0
        return -0.5 * state.pair_scale * float(namespace(resp).sum(resp * links.linked_sum(resp)))

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Test the objective; with pairs, which can lower it, the memberships."""
        if self.problem.links is not None:
            return memberships_converged(steps, tol)
        return objective_converged(steps, self.problem.total_weight, tol)


@dataclass(frozen=True, eq=False)
class GaussianHooks(MixtureHooks[EMState]):
    """The plain Gaussian mixture."""

    def start(self, memberships: Array) -> EMState:
        """Return the clamped memberships."""
        return EMState(self.problem.clamp(memberships))


# --------------------------------------------------------------------------------------------------------- known pairs

# Known pairs in a mixture: terms in the E-step, or one common membership for a must-linked group.
#
#     log α_k p_k(x_i)  +  γ Σ_j v_ij q_jk,    v_ij = ½(1/m_i + 1/m_j) for must-links, minus that for cannot-links
#
# m_i is the number of pairs of that kind at row i, so that the weights of either kind sum to about one per row whatever
# the number of pairs; γ is ``strength`` times the median margin of the log-densities. It is the mean-field form of a
# hidden Markov random field over the pairs (Lange, Law, Jain & Buhmann 2005). LapGMM adds λ tr(Q'VQ) to its objective
# instead, in which V is added to the edges of the graph, and stays monotone.


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs over the rows of a mixture."""

    matrix: Sparse  # the weights v_ij, (n, n)
    total: Array  # Σ_j |v_ij|, 0 for rows without a pair, (n, 1)
    strength: float
    groups: np.ndarray | None  # of each row, where must-links are hard

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
    must, cannot = constraint_weights(constraints)
    total = asarray_like(np.asarray((must + cannot).sum(axis=1)).ravel(), reference, dtype=reference.dtype)
    groups = constraints.groups if constraints.hard else None
    return Links(from_scipy_like(must - cannot, reference), total[:, None], constraints.strength, groups)


def group_links(constraints: PairwiseConstraints | None, groups: np.ndarray, reference: Array) -> Links | None:
    """Build the links of groups of rows, in the array library of ``reference``.

    The weight of two groups is the sum of the signed weights of their pairs, as in the term of the rows. Pairs inside a
    group have no effect, and no must-link is hard, since pairs that agree on rows may contradict each other on groups:
    hard must-links take effect on rows alone.
    """
    if constraints is None or constraints.strength == 0 or constraints.n_pairs == 0:
        return None
    must, cannot = constraint_weights(constraints)
    members = sp.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))))
    pairs = sp.coo_array(members @ (must - cannot) @ members.T)
    between = pairs.row != pairs.col
    matrix = sp.csr_array((pairs.data[between], (pairs.row[between], pairs.col[between])), shape=pairs.shape)
    total = asarray_like(np.asarray(abs(matrix).sum(axis=1)).ravel(), reference, dtype=reference.dtype)
    return Links(from_scipy_like(matrix, reference), total[:, None], constraints.strength, None)


def median_margin(log_joint: Array, counts: Array | None = None) -> float:
    """Compute the median gap of a row's two largest log-densities, with ``counts`` copies of it; 0 for one cluster."""
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
