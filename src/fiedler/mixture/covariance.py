"""Gaussian components: their densities and their weighted estimates, for four shapes of covariance.

===========  ====================  =============================================
full         (k, d, d)             one matrix per component
tied         (d, d)                one matrix for all components
diag         (k, d)                variances along the axes, per component
spherical    (k,)                  one variance per component
===========  ====================  =============================================

Both steps of EM are matrix products over blocks of rows, for all components at once. With F_k F_k' = Σ_k⁻¹,

    E:  ‖(x - μ_k)'F_k‖²  from  x'[F_1 ... F_K]         M:  Σ_i w_ik x_i x_i'  from  [w_1 x ... w_K x]' x

and for variances along the axes, from products with x². The sums of the M-step are those of :mod:`.statistics`, and the
components are estimated from them alone. Single-precision rows are summed in single precision, block by block; where
E[xx'] - μμ' then keeps fewer than three digits, the sums are computed again in double precision: clusters a million
times as far apart as they are wide still keep four digits of their covariance.

The ridge ρ is noise: every row is assumed to carry a blur ε ~ N(0, ρI). Added to the variances in the M-step alone, a
ridge maximises no likelihood; but Σ = S + ρI is exactly the maximiser of the expected log-density
E log N(x + ε; μ, Σ) = log N(x; μ, Σ) - ½ρ tr Σ⁻¹, and with that as the density of the E-step too, the objective of EM
never falls. How much is needed depends on how many covariance parameters p there are for the n rows; by default

    ρ = max(10⁻³, 10⁻¹ min(1, √(p / n)))        times the mean variance of the columns,

which follows the sampling error of the covariances: a tenth blurs clusters in two columns, a thousandth leaves
covariances of a hundred columns nearly singular.

With few rows per dimension, the eigenvalues of S_k spread too far: small ones are too small. *Shrinkage* moves each
covariance towards a multiple of the identity, the further the fewer rows n_k it comes from [Chen, Wiesel, Eldar & Hero
2010: OAS, Oracle Approximating Shrinkage],

    Σ_k = (1 - ρ_k) S_k + ρ_k (tr S_k / d) I,
    ρ_k = min(1, [(1 - 2/d) tr S_k² + tr² S_k] / [(n_k + 1 - 2/d) (tr S_k² - tr² S_k / d)]),

and needs no more than the sums of the M-step. (Ledoit & Wolf's estimate of ρ_k needs fourth moments as well.) It
maximises no likelihood, so the objective of EM need not rise in every iteration.

Log-determinants are computed from Cholesky factors: det() itself underflows above about a hundred dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import array_api_compat
import numpy as np

from ..core.arrays import (
    Array,
    asarray_like,
    identity,
    is_on_host,
    namespace,
    sq_norms,
    sq_row_norms,
    take_clusters,
    to_numpy,
)
from ..core.linear import affine_map, cholesky_or_nan, invert_lower_triangular, prepare_rows, prepared_bytes
from ..core.parallel import map_blocks
from ..errors import SingularCovarianceError
from .statistics import Statistics, centered, component_blocks, mean_origin, squared_sums, weighted_statistics

MAX_PREPARED_BYTES = 2**33  # on a device, for rows that are kept in a second form during a fit
MAX_CANCELLATION = 300  # factor by which an error of single-precision sums, about 1e-6, may grow in the difference

MIN_RIDGE, MAX_RIDGE = 1e-3, 0.1  # of the default, relative to the mean variance


class Gaussians(NamedTuple):
    """The components, in double precision."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # Σ, whose shape depends on `kind`
    factors: Array  # F with F F' = Σ⁻¹
    origin: Array  # (d,), from which rows are measured, representable in their precision
    kind: str
    ridge: float  # included in the covariances, in the unit of X²

    def reorder(self, order: np.ndarray) -> Gaussians:
        """Return the components in another order."""
        parts = ("weights", "means") if self.kind == "tied" else ("weights", "means", "covariances", "factors")
        return self._replace(**{name: take_clusters(getattr(self, name), order) for name in parts})


class Full:
    """One matrix per component."""

    # Differences are formed before they are squared, so that single precision suffices for single-precision rows.
    forms_differences = True

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute E[xx'] - μμ'."""
        return second_moments / counts[:, None, None] - means[:, :, None] * means[:, None, :]

    @staticmethod
    def add_ridge(covariances: Array, ridge: float) -> Array:
        """Return Σ + ρI."""
        return covariances + ridge * identity(covariances)

    @staticmethod
    def shrink(covariances: Array, counts: Array) -> Array:
        """Return the shrunken covariances of components with ``counts`` rows."""
        return oas(covariances, counts[:, None, None])

    @staticmethod
    def factorize(covariances: Array) -> Array:
        """Compute F, the inverse of the transposed Cholesky factor; NaN where Σ is not positive definite."""
        return namespace(covariances).matrix_transpose(invert_lower_triangular(cholesky_or_nan(covariances)))

    @staticmethod
    def sq_distances(means: Array, factors: Array) -> Callable[[Array], Array]:
        """Return the function from the result of `prepare_rows` to ‖(x - μ_k)'F_k‖², shape (b, k)."""
        # Differences have shape (k, d, b): their squares are added along the middle axis, over contiguous memory.
        xp, (k, d) = namespace(means), means.shape
        stacked = xp.reshape(xp.matrix_transpose(factors), (k * d, d))
        whiten = affine_map(stacked, -xp.reshape(means[:, None, :] @ factors, (k * d,)))
        return lambda rows: sq_norms(xp.reshape(whiten(rows), (k, d, rows.shape[0]))).T

    @staticmethod
    def log_det(factors: Array, d: int) -> Array:
        """Compute log det F = -½ log det Σ."""
        xp = namespace(factors)
        return xp.sum(xp.log(xp.linalg.diagonal(factors)), axis=-1)

    @staticmethod
    def variances(covariances: Array) -> Array:
        """Return diag Σ, shape (k, d)."""
        return namespace(covariances).linalg.diagonal(covariances)

    @staticmethod
    def precisions(factors: Array, d: int) -> Array:
        """Compute diag Σ⁻¹, shape (k, d)."""
        return namespace(factors).sum(factors**2, axis=-1)

    @staticmethod
    def traces(second_moments: Array, factors: Array) -> Array:
        """Compute tr Σ_k⁻¹M of every component and second moment M, shape (m, k)."""
        xp = namespace(factors)
        precisions = factors @ xp.matrix_transpose(factors)
        m, d, _ = second_moments.shape
        return xp.reshape(second_moments, (m, d * d)) @ xp.reshape(precisions, (-1, d * d)).T

    @staticmethod
    def precision_means(means: Array, factors: Array) -> Array:
        """Compute Σ_k⁻¹μ_k, shape (k, d)."""
        xp = namespace(factors)
        return ((means[:, None, :] @ factors) @ xp.matrix_transpose(factors))[:, 0, :]

    @staticmethod
    def sample_component(noise: Array, covariances: Array, c: int) -> Array:
        """Transform white noise so that it has the covariance of component ``c``."""
        return noise @ namespace(noise).linalg.cholesky(covariances[c, :, :]).T

    @staticmethod
    def n_parameters(k: int, d: int) -> int:
        """Count the free entries."""
        return k * d * (d + 1) // 2


class Tied(Full):
    """One matrix for all components: the mean of their covariances."""

    forms_differences = False

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute Σ_k α_k (E[xx'] - μμ')."""
        xp = namespace(counts)
        return (xp.sum(second_moments, axis=0) - (means * counts[:, None]).T @ means) / xp.sum(counts)

    @staticmethod
    def shrink(covariances: Array, counts: Array) -> Array:
        """Return the shrunken common covariance."""
        return oas(covariances, namespace(counts).sum(counts))

    @staticmethod
    def sq_distances(means: Array, factors: Array) -> Callable[[Array], Array]:
        """Return the function from rows to ‖(x - μ_k)'F‖², shape (b, k)."""
        white_means = means @ factors
        return lambda Z: _sq_distances(Z @ factors, white_means)

    @staticmethod
    def sample_component(noise: Array, covariances: Array, c: int) -> Array:
        """Give white noise the common covariance."""
        return noise @ namespace(noise).linalg.cholesky(covariances).T

    @staticmethod
    def n_parameters(k: int, d: int) -> int:
        """Count the free entries."""
        return d * (d + 1) // 2


class Diag:
    """Variances along the axes, per component."""

    forms_differences = False

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute E[x²] - μ²."""
        return squared_sums(second_moments) / counts[:, None] - means**2

    @staticmethod
    def add_ridge(covariances: Array, ridge: float) -> Array:
        """Return σ² + ρ."""
        return covariances + ridge

    @staticmethod
    def shrink(covariances: Array, counts: Array) -> Array:
        """Return the variances, which are not shrunken: each is estimated from all rows of its component."""
        return covariances

    @staticmethod
    def factorize(covariances: Array) -> Array:
        """Compute 1/σ; NaN where σ² is not positive."""
        xp = namespace(covariances)
        return 1 / xp.sqrt(xp.where(covariances > 0, covariances, math.nan))

    @staticmethod
    def sq_distances(means: Array, factors: Array) -> Callable[[Array], Array]:
        """Return the function from rows to Σ_a (x_a - μ_ka)² / σ_ka², shape (b, k)."""
        precisions = factors**2
        constant = namespace(means).sum(precisions * means**2, axis=1)
        return lambda Z: Z**2 @ precisions.T - 2 * (Z @ (precisions * means).T) + constant

    @staticmethod
    def log_det(factors: Array, d: int) -> Array:
        """Compute -½ Σ log σ²."""
        xp = namespace(factors)
        return xp.sum(xp.log(factors), axis=1)

    @staticmethod
    def variances(covariances: Array) -> Array:
        """Return σ²."""
        return covariances

    @staticmethod
    def precisions(factors: Array, d: int) -> Array:
        """Compute 1/σ²."""
        return factors**2

    @classmethod
    def traces(cls, second_moments: Array, factors: Array) -> Array:
        """Compute Σ_a M_aa / σ_ka² of every component and second moment M, shape (m, k)."""
        squares = squared_sums(second_moments)
        return squares @ cls.precisions(factors, squares.shape[1]).T

    @classmethod
    def precision_means(cls, means: Array, factors: Array) -> Array:
        """Compute μ_ka / σ_ka², shape (k, d)."""
        return means * cls.precisions(factors, means.shape[1])

    @staticmethod
    def sample_component(noise: Array, covariances: Array, c: int) -> Array:
        """Multiply white noise by σ."""
        return noise * namespace(noise).sqrt(covariances[c, ...])

    @staticmethod
    def n_parameters(k: int, d: int) -> int:
        """Count the free entries."""
        return k * d


class Spherical(Diag):
    """One variance per component: the mean over the axes."""

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute E‖x - μ‖² / d."""
        return namespace(means).mean(Diag.covariances(second_moments, counts, means), axis=1)

    @staticmethod
    def sq_distances(means: Array, factors: Array) -> Callable[[Array], Array]:
        """Return the function from rows to ‖x - μ_k‖² / σ_k², shape (b, k)."""
        return lambda Z: _sq_distances(Z, means) * factors**2

    @staticmethod
    def log_det(factors: Array, d: int) -> Array:
        """Compute -½ d log σ²."""
        return d * namespace(factors).log(factors)

    @staticmethod
    def variances(covariances: Array) -> Array:
        """Return σ², shape (k, 1)."""
        return covariances[:, None]

    @staticmethod
    def precisions(factors: Array, d: int) -> Array:
        """Repeat 1/σ² d times, shape (k, d)."""
        return namespace(factors).broadcast_to((factors**2)[:, None], (factors.shape[0], d))

    @staticmethod
    def n_parameters(k: int, d: int) -> int:
        """Count the free entries."""
        return k


def oas(covariances: Array, counts: Array) -> Array:
    """Return (1 - ρ) S + ρ (tr S / d) I of (..., d, d) covariances from ``counts`` rows, ρ by OAS."""
    xp, d = namespace(covariances), covariances.shape[-1]
    trace = xp.linalg.trace(covariances)[..., None, None]
    unit = xp.max(xp.abs(covariances), axis=(-2, -1), keepdims=True)  # ρ does not depend on it, and S² may overflow
    unit = xp.where(unit > 0, unit, 1)
    square = xp.sum((covariances / unit) ** 2, axis=(-2, -1), keepdims=True)
    sq_trace = (trace / unit) ** 2
    spread = (counts + 1 - 2 / d) * (square - sq_trace / d)
    share = ((1 - 2 / d) * square + sq_trace) / xp.where(spread > 0, spread, 1)
    share = xp.where((spread > 0) & (share < 1), share, 1)
    return (1 - share) * covariances + share * (trace / d) * identity(covariances)


def _sq_distances(rows: Array, points: Array) -> Array:
    """Compute ‖x - p‖² of every row and point, by one product."""
    return sq_row_norms(rows)[:, None] - 2 * (rows @ points.T) + sq_row_norms(points)


Shape = type[Full] | type[Diag]

SHAPES: dict[str, Shape] = {"full": Full, "tied": Tied, "diag": Diag, "spherical": Spherical}


def estimate(
    X: Array,
    weights: Array,
    *,
    kind: str,
    ridge: float,
    shrinks: bool = False,
    priors: Array | None = None,
    origin: Array | None = None,
) -> Gaussians:
    """Compute the weighted maximum-likelihood components [lapgmm, Eqs 13-15].

    ``weights``, of shape (n, k), can be negative for LCGMM; ``priors`` are memberships for the mixing weights, where
    they differ from them. ``ridge`` is in the unit of X².
    """
    xp, origin = namespace(X), mean_origin(X) if origin is None else origin
    mass = None if priors is None else xp.sum(priors, axis=0, dtype=xp.float64)
    options: dict[str, Any] = {"kind": kind, "ridge": ridge, "shrinks": shrinks, "mass": mass}

    def sums(dtype: Any) -> Statistics:
        return weighted_statistics(X, weights, kind=kind, origin=origin, dtype=dtype)

    if X.dtype != xp.float64:
        statistics = sums(X.dtype)
        model = _unchecked_gaussians(statistics, **options)
        if _cancellation(statistics, model) < MAX_CANCELLATION:  # not so if it is NaN
            return model
    return gaussians(sums(xp.float64), **options)


def keeps_digits(statistics: Statistics, *, kind: str, ridge: float, shrinks: bool) -> bool:
    """Whether statistics in single precision give covariances that have digits left."""
    model = _unchecked_gaussians(statistics, kind=kind, ridge=ridge, shrinks=shrinks, mass=None)
    return _cancellation(statistics, model) < MAX_CANCELLATION


def gaussians(
    statistics: Statistics, *, kind: str, ridge: float, shrinks: bool = False, mass: Array | None = None
) -> Gaussians:
    """Compute the components of which the statistics are given, each from one group."""
    xp = namespace(statistics.counts)
    model = _unchecked_gaussians(statistics, kind=kind, ridge=ridge, shrinks=shrinks, mass=mass)
    if not bool(xp.all(statistics.counts > 0)):
        problem = "a component has lost all its rows"
        raise SingularCovarianceError(problem, "use fewer clusters or another init", code="empty_component")
    if not bool(xp.all(xp.isfinite(model.factors))):
        reason = "too few rows for its dimension, or constant columns"
        hint = "raise ridge, reduce the dimension with pca, use fewer clusters, or covariance_type='diag'"
        raise SingularCovarianceError(f"the covariance of a component is not positive definite: {reason}", hint)
    return model


def _unchecked_gaussians(
    statistics: Statistics, *, kind: str, ridge: float, shrinks: bool, mass: Array | None
) -> Gaussians:
    """Compute the components; factors are NaN where a covariance is not positive definite."""
    # No value is read from the device, which would wait for the sums before it is sent the rest of the work.
    shape, xp = SHAPES[kind], namespace(statistics.counts)
    counts, means = xp.where(statistics.counts > 0, statistics.counts, 1), statistics.means
    mass = statistics.counts if mass is None else mass
    covariances = shape.covariances(statistics.second_moments, counts, means)
    covariances = shape.add_ridge(shape.shrink(covariances, counts) if shrinks else covariances, ridge)
    shares, factors = mass / xp.sum(mass), shape.factorize(covariances)
    return Gaussians(shares, means + statistics.origin, covariances, factors, statistics.origin, kind, ridge)


def _cancellation(statistics: Statistics, model: Gaussians) -> float:
    """Compute the factor by which a relative error of E[x_a²] grows in Σ: the largest (Σ⁻¹)_aa E[x_a²]."""
    # Infinite if a component has no rows, NaN or infinite if a covariance is not positive definite.
    shape, xp, d = SHAPES[model.kind], namespace(model.means), model.means.shape[1]
    squares = shape.variances(model.covariances) + statistics.means**2
    factors = shape.precisions(model.factors, d) * squares
    return float(xp.max(xp.where(statistics.counts[:, None] > 0, factors, math.inf)))


def prepare(X: Array, *, kind: str, origin: Array) -> Array | None:
    """Return all rows as the products of `log_joint` need them; None where blocks of rows are prepared in turn."""
    # That is on the host, for other types than full covariances, and for very many rows.
    shape = SHAPES[kind]
    if is_on_host(X) or not shape.forms_differences or X.shape[0] * prepared_bytes(X.shape[1]) > MAX_PREPARED_BYTES:
        return None
    return prepare_rows(centered(X, origin, X.dtype))


def log_joint(X: Array, model: Gaussians, prepared: Array | None = None) -> Array:
    """Compute log α_k + log N(x_i; μ_k, Σ_k) - ½ρ tr Σ_k⁻¹, shape (n, k): the joint log-density of blurred rows."""
    shape, xp, k = SHAPES[model.kind], namespace(X), model.means.shape[0]
    dtype = X.dtype if shape.forms_differences else xp.float64
    means, factors = (xp.astype(part, dtype) for part in (model.means - model.origin, model.factors))
    distances, constants = shape.sq_distances(means, factors), xp.astype(_log_constants(model), dtype)

    joint = xp.empty((X.shape[0], k), dtype=X.dtype, device=array_api_compat.device(X))

    def block(rows: slice) -> Array:
        if prepared is not None:
            return prepared[rows, :]
        Z = centered(X[rows, :], model.origin, dtype)
        return prepare_rows(Z) if shape.forms_differences else Z

    def fill(rows: slice) -> None:
        values = distances(block(rows))
        values *= -0.5
        values += constants
        joint[rows, :] = xp.astype(values, X.dtype, copy=False)

    row_bytes = 0 if is_on_host(X) else prepared_bytes(X.shape[1])
    map_blocks(fill, component_blocks(X, k, row_bytes=row_bytes), X)
    return joint


def mean_log_joint(statistics: Statistics, model: Gaussians) -> Array:
    """Compute the mean of `log_joint` over the rows of each group, shape (m, k)."""
    # The mean of (x - μ)'Σ⁻¹(x - μ) is tr Σ⁻¹M - 2 m'Σ⁻¹μ + μ'Σ⁻¹μ, with m = E[x] and M = E[xx'] in the group.
    shape, xp = SHAPES[model.kind], namespace(model.means)
    means = model.means - statistics.origin
    counts = xp.where(statistics.counts > 0, statistics.counts, 1)[:, None]
    precision_means = shape.precision_means(means, model.factors)
    distances = shape.traces(statistics.second_moments, model.factors) - 2 * (statistics.sums @ precision_means.T)
    return _log_constants(model) - 0.5 * (distances / counts + xp.sum(means * precision_means, axis=1))


def _log_constants(model: Gaussians) -> Array:
    """Compute log α_k - ½d log 2π - ½ log det Σ_k - ½ρ tr Σ_k⁻¹, shape (k,)."""
    shape, xp, d = SHAPES[model.kind], namespace(model.means), model.means.shape[1]
    constants = shape.log_det(model.factors, d) + xp.log(model.weights) - 0.5 * d * math.log(2 * math.pi)
    return constants - 0.5 * model.ridge * xp.sum(shape.precisions(model.factors, d), axis=-1)


def default_ridge(kind: str, k: int, d: int, n: int) -> float:
    """Compute max(10⁻³, 10⁻¹ min(1, √(p / n))) for n rows and p parameters of k covariances in d dimensions."""
    p = SHAPES[kind].n_parameters(k, d)
    return max(MIN_RIDGE, MAX_RIDGE * min(1.0, math.sqrt(p / n)))


def n_parameters(kind: str, k: int, d: int) -> int:
    """Count the free parameters of a mixture: covariances, means, and mixing weights, which sum to one."""
    return SHAPES[kind].n_parameters(k, d) + k * d + k - 1


def statistics_icl(statistics: Statistics, *, ridge: float, kinds: Sequence[str] = ("full", "tied")) -> float:
    """Compute the integrated completed likelihood of a partition per row, the highest over types of covariance.

        1/n [ Σ_i log α_k N(x_i; μ_k, Σ_k) - ½ν log n ],      k the cluster of row i, ν the number of parameters

    The Gaussians are fitted to the rows of the clusters with a ridge, which is also added to their densities. Then
    tr Σ_k⁻¹(S_k + ρI), added up over the clusters with n_k as weights, is n d, whatever the type of covariance, and

        Σ_i log α_k N(x_i; μ_k, Σ_k)  =  Σ_k n_k [ log α_k - ½ log det Σ_k ] - ½ n d (1 + log 2π)

    needs the statistics of the clusters alone [Biernacki, Celeux & Govaert 2000].
    """
    xp, occupied = namespace(statistics.counts), to_numpy(statistics.counts) > 0
    if not occupied.all():
        statistics = statistics.merge(np.maximum(np.cumsum(occupied) - 1, 0))  # adds nothing to the cluster before
    n, (k, d) = float(xp.sum(statistics.counts)), statistics.sums.shape
    values = [-math.inf]
    for kind in kinds:
        with suppress(SingularCovarianceError):
            model = gaussians(statistics, kind=kind, ridge=ridge)
            log_dets = SHAPES[kind].log_det(model.factors, d)  # of F, -½ log det Σ
            likelihood = float(xp.sum(model.weights * (xp.log(model.weights) + log_dets)))
            likelihood -= 0.5 * d * (1 + math.log(2 * math.pi))
            values.append(likelihood - 0.5 * n_parameters(kind, k, d) * math.log(n) / n)
    return max(values)


def draw(n_samples: int, model: Gaussians, rng: np.random.RandomState) -> tuple[Array, np.ndarray]:
    """Draw rows from the mixture, and return them with the component of each, in the order of the components."""
    shape, xp = SHAPES[model.kind], namespace(model.means)
    shares = to_numpy(model.weights)
    labels = np.repeat(np.arange(len(shares)), rng.multinomial(n_samples, shares / shares.sum()))
    noise = asarray_like(rng.standard_normal((n_samples, model.means.shape[1])), model.means)
    ends = [0, *np.cumsum(np.bincount(labels, minlength=len(shares))).tolist()]
    parts = [
        model.means[c, :] + shape.sample_component(noise[first:last, :], model.covariances, c)
        for c, (first, last) in enumerate(pairwise(ends))
    ]
    return xp.concat(parts, axis=0), labels
