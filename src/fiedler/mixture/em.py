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
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from .._records import FitHistory
from ..core.backend import Array, namespace
from ..core.numbering import order_by_first_row, take_clusters
from ..core.progress import stage
from .covariance import Gaussians

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """Values recorded in one iteration: objective = likelihood - penalty, and the mean change of the memberships."""

    objective: float
    likelihood: float
    penalty: float
    change: float


@dataclass(frozen=True, eq=False)
class EMState:
    """Values that one iteration passes to the next; models add their own.

    Attributes
    ----------
    resp : array of shape (n, k)
        The memberships.
    pair_scale : float, optional
        The size of the terms that known pairs add to the log-densities, in nats. Set in the first iteration and fixed
        from then on: the iteration would not converge if it changed with the densities.
    """

    resp: Array
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
        """Return the components that belong to the last memberships."""

    def has_converged(self, steps: Sequence[Step], tol: float) -> bool:
        """Whether the last iteration changed no more than ``tol``."""


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
    state: S,
    hooks: Hooks[S],
    *,
    max_iter: int,
    tol: float,
    report: Callable[[int, Step], None] | None = None,
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
