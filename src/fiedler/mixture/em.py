"""One EM loop for all mixtures: the models differ in a few hooks.

=========  ==========================================  ============================  ==============================
model      memberships from log α_k N_k(x_i)           M-step weights                penalty
=========  ==========================================  ============================  ==============================
GMM        normalised                                  the memberships               0
LapGMM     smoothed over the graph                     the memberships               λ tr(Q'LQ)
LCGMM      normalised                                  (I - λL) memberships          λ Σ_k p_k' L log p_k
=========  ==========================================  ============================  ==============================

The loop ends after an E-step: the memberships it returns are those of the components it returns (or, for the paper's
own solvers of LapGMM, the components are refitted from the smoothed memberships).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..core.backend import Array
from ..core.progress import stage
from .covariance import Gaussians

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """What one iteration reached: objective = likelihood - penalty, and how far the memberships moved."""

    objective: float
    likelihood: float
    penalty: float
    change: float


class Hooks(Protocol):
    """What a model brings to the loop."""

    def expect(self, model: Gaussians) -> Array:
        """Log α_k + log N(x_i; θ_k), shape (n, k)."""

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """New memberships, given the last ones."""

    def maximise(self, resp: Array) -> Gaussians:
        """Components for given memberships."""

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """The objective and its parts."""

    def clamp(self, resp: Array) -> Array:
        """Memberships with the known rows put right."""

    def finish(self, model: Gaussians, resp: Array) -> Gaussians:
        """The components to return with the last memberships."""

    def settled(self, history: list[Step], tol: float) -> bool:
        """Whether the last iterations changed no more than ``tol``."""


@dataclass(frozen=True)
class EMResult:
    """Where one start of EM ended."""

    resp: Array
    model: Any
    history: tuple[Step, ...]
    n_iter: int
    converged: bool
    lam: float = 0.0  # the weight of the penalty, where a model has found it itself


def run_em(
    start: Array,
    hooks: Hooks,
    *,
    max_iter: int,
    tol: float,
    report: Callable[[int, Step], None] | None = None,
) -> EMResult:
    """From memberships to a fixed point, or to ``max_iter`` iterations; ``report`` hears of every one."""
    resp, history = hooks.clamp(start), list[Step]()
    model, converged = hooks.maximise(resp), False
    with stage("EM", max_iter) as tick:
        while True:
            log_joint = hooks.expect(model)
            last, resp = resp, hooks.refine(log_joint, resp)
            history.append(hooks.score(log_joint, resp, last))
            log.info("EM: iteration %d, %s", len(history), history[-1])
            if report is not None:
                report(len(history), history[-1])
            tick()
            converged = len(history) > 1 and hooks.settled(history, tol)
            if converged or len(history) >= max_iter:
                return EMResult(resp, hooks.finish(model, resp), tuple(history), len(history), converged)
            model = hooks.maximise(resp)


def objective_settled(history: list[Step], total_weight: float, tol: float) -> bool:
    """The objective moved by at most ``tol`` a sample (a unit of weight)."""
    return abs(history[-1].objective - history[-2].objective) <= tol * total_weight


def memberships_settled(history: list[Step], tol: float) -> bool:
    """The memberships moved by at most ``tol`` on average: the test for iterations that are not monotone."""
    return history[-1].change <= tol
