"""The problem that ``fit`` prepares for EM, and the hooks of the plain mixture, which the other models extend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Generic

from ..core.backend import Array, logsumexp, namespace, softmax
from ..core.blocks import map_rows
from ..graph.affinity import AffinityGraph
from .covariance import Gaussians, estimate, log_joint, prepare
from .em import EMState, S, Step, memberships_converged, objective_converged
from .links import Links, median_margin
from .statistics import mean_origin


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """The inputs of a fit.

    Attributes
    ----------
    Z : array of shape (n, d)
        The rows in the coordinates of the densities.
    kind : {'full', 'tied', 'diag', 'spherical'}
        The shape of the covariances.
    ridge : float
        Added to the variances, in the unit of Z².
    shrinks : bool
        Whether covariances are shrunken by the number of their rows.
    rows : array or CSR matrix, optional
        The rows as given, if Z has other coordinates.
    graph : AffinityGraph, optional
    sample_weight : array of shape (n,), optional
    known : array of shape (n, k), optional
        One-hot rows where the cluster is known, zeros elsewhere.
    links : Links, optional
        Known pairs.
    """

    Z: Array
    _: KW_ONLY
    kind: str
    ridge: float
    shrinks: bool = False
    rows: Any = None
    graph: AffinityGraph | None = None
    sample_weight: Array | None = None
    known: Array | None = None
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
class MixtureHooks(Generic[S]):
    """EM for a Gaussian mixture with sample weights, known clusters and known pairs; subclasses define ``start``."""

    problem: MixtureProblem
    _: KW_ONLY
    lam: float = 0.0  # the weight of the graph term

    def start(self, memberships: Array) -> S:
        """Return the state before the first iteration."""
        raise NotImplementedError

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

    def finish(self, model: Gaussians, state: S) -> Gaussians:
        """Return the components from which the memberships were computed."""
        return model

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
