"""Gaussian components: their densities and their weighted estimates, for four shapes of covariance.

===========  ====================  =============================================
full         (k, d, d)             one matrix per component
tied         (d, d)                one matrix for all components
diag         (k, d)                variances along the axes, per component
spherical    (k,)                  one variance per component
===========  ====================  =============================================

Both steps of EM are matrix products over blocks of rows, for all components at once. With F_k F_k' = Σ_k⁻¹,

    E:  ‖(x - μ_k)'F_k‖²  from  x'[F_1 ... F_K]         M:  Σ_i w_ik x_i x_i'  from  [w_1 x ... w_K x]' x

and for variances along the axes, from products with x². Blocks fit the cache of a core, and rows are measured from
their mean. Single-precision rows are summed in single precision, block by block; where E[xx'] - μμ' then keeps fewer
than three digits, the sums are computed again in double precision: clusters a million times as far apart as they are
wide still keep four digits of their covariance.

The ridge ρ is noise: every row is assumed to carry a blur ε ~ N(0, ρI). Added to the variances in the M-step alone, a
ridge maximises no likelihood; but Σ = S + ρI is exactly the maximiser of the expected log-density
E log N(x + ε; μ, Σ) = log N(x; μ, Σ) - ½ρ tr Σ⁻¹, and with that as the density of the E-step too, the objective of EM
never falls.

Log-determinants are computed from Cholesky factors: det() itself underflows above about a hundred dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._validation import choose
from ..core.backend import Array, asarray_like, identity, namespace, row_blocks, sq_norms, to_numpy
from ..core.blocks import map_blocks
from ..core.linear import cholesky, invert_lower_triangular
from ..core.rows import sq_row_norms
from ..errors import SingularCovarianceError

CACHE_BYTES = 2**22  # size of a block of rows on the host: fits the cache of a core
DEVICE_BYTES = 2**28  # size of a block of rows on an accelerator
SUMS_BYTES = 2**26  # size of the sums of all parts together
MAX_PARTS = 16  # parts of the rows, whose sums are added in order whatever the number of threads
MAX_CANCELLATION = 300  # factor by which an error of single-precision sums, about 1e-6, may grow in the difference


class Gaussians(NamedTuple):
    """The components, in double precision.

    Attributes
    ----------
    weights : array of shape (k,)
    means : array of shape (k, d)
    covariances, factors : array
        Σ and F with F F' = Σ⁻¹; their shape depends on ``kind``.
    origin : array of shape (d,)
        The point from which rows are measured, representable in their precision.
    kind : {'full', 'tied', 'diag', 'spherical'}
    ridge : float
        Included in the covariances, in the unit of X².
    """

    weights: Array
    means: Array
    covariances: Array
    factors: Array
    origin: Array
    kind: str
    ridge: float


# ------------------------------------------------------------------------------------------------- the four shapes


@cache
def _triangle(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and columns of the upper triangle of a d x d matrix, and the position in it of each matrix entry."""
    rows, columns = np.triu_indices(d)
    position = np.zeros((d, d), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(len(rows))
    return rows, columns, position.ravel()


def _singular() -> SingularCovarianceError:
    return SingularCovarianceError(
        "the covariance of a component is not positive definite: too few rows for its dimension, or constant columns",
        "raise ridge, reduce the dimension with pca, use fewer clusters, or covariance_type='diag'",
    )


class Full:
    """One matrix per component."""

    # Differences are formed before they are squared, so that single precision suffices for single-precision rows.
    forms_differences = True

    @staticmethod
    def second_moments(Z: Array, w: Array) -> Array:
        """Compute Σ_i w_ik x_i x_i', shape (k d, d).

        Weights times rows, times rows; or, if there are at least as many components as dimensions, products of columns,
        which all components share, times weights: twice as fast for 30 components in 30 dimensions.
        """
        xp, (b, d), k = namespace(Z), Z.shape, w.shape[1]
        if d > k:
            return xp.reshape(w[:, :, None] * Z[:, None, :], (b, k * d)).T @ Z
        rows, columns, position = _triangle(d)
        Zt = Z.T + 0.0  # columns become contiguous
        products = xp.take(Zt, asarray_like(rows, Z), axis=0)
        products *= xp.take(Zt, asarray_like(columns, Z), axis=0)
        return xp.reshape(xp.take((products @ w).T, asarray_like(position, Z), axis=1), (k * d, d))

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute E[xx'] - μμ'."""
        k, d = means.shape
        products = namespace(second_moments).reshape(second_moments, (k, d, d)) / counts[:, None, None]
        return products - means[:, :, None] * means[:, None, :]

    @staticmethod
    def add_ridge(covariances: Array, ridge: float) -> Array:
        """Return Σ + ρI."""
        return covariances + ridge * identity(covariances)

    @staticmethod
    def factorize(covariances: Array) -> Array:
        """Compute F, the inverse of the transposed Cholesky factor."""
        lower = cholesky(covariances)
        if lower is None:
            raise _singular()
        return namespace(covariances).matrix_transpose(invert_lower_triangular(lower))

    @staticmethod
    def sq_distances(means: Array, factors: Array) -> Callable[[Array], Array]:
        """Return the function from rows to ‖(x - μ_k)'F_k‖², shape (b, k)."""
        xp, (k, d) = namespace(means), means.shape
        stacked = xp.reshape(xp.permute_dims(factors, (1, 0, 2)), (d, k * d))
        offsets = xp.reshape(means[:, None, :] @ factors, (1, k * d))
        affine = xp.concat([stacked, -offsets], axis=0)

        def distances(Z: Array) -> Array:
            white = xp.concat([Z, xp.ones_like(Z[:, :1])], axis=1) @ affine
            return sq_norms(xp.reshape(white, (Z.shape[0], k, d)))

        return distances

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
    def second_moments(Z: Array, w: Array) -> Array:
        """Compute Σ_ik w_ik x_i x_i', shape (d, d)."""
        return (Z * namespace(w).sum(w, axis=1)[:, None]).T @ Z

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute Σ_k α_k (E[xx'] - μμ')."""
        return (second_moments - (means * counts[:, None]).T @ means) / namespace(counts).sum(counts)

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
    def second_moments(Z: Array, w: Array) -> Array:
        """Compute Σ_i w_ik x_i², shape (k, d)."""
        return w.T @ Z**2

    @staticmethod
    def covariances(second_moments: Array, counts: Array, means: Array) -> Array:
        """Compute E[x²] - μ²."""
        return second_moments / counts[:, None] - means**2

    @staticmethod
    def add_ridge(covariances: Array, ridge: float) -> Array:
        """Return σ² + ρ."""
        return covariances + ridge

    @staticmethod
    def factorize(covariances: Array) -> Array:
        """Compute 1/σ."""
        xp = namespace(covariances)
        if not bool(xp.all(covariances > 0)):
            raise _singular()
        return 1 / xp.sqrt(covariances)

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


def _sq_distances(rows: Array, points: Array) -> Array:
    """Compute ‖x - p‖² of every row and point, by one product."""
    return sq_row_norms(rows)[:, None] - 2 * (rows @ points.T) + sq_row_norms(points)


Shape = type[Full] | type[Diag]

SHAPES: dict[str, Shape] = {"full": Full, "tied": Tied, "diag": Diag, "spherical": Spherical}


# ------------------------------------------------------------------------------------------ estimates and densities


def estimate(X: Array, weights: Array, *, kind: str, ridge: float, priors: Array | None = None) -> Gaussians:
    """Compute the weighted maximum-likelihood components [lapgmm, Eqs 13-15].

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n, k)
        The weight of each row in each component; LCGMM's can be negative.
    kind : {'full', 'tied', 'diag', 'spherical'}
    ridge : float
        Added to the variances, in the unit of X².
    priors : array of shape (n, k), optional
        Memberships for the mixing weights, where they differ from ``weights``.
    """
    shape, xp = choose(SHAPES, kind, option="covariance_type"), namespace(X)
    origin = _origin(X)

    def components(dtype: Any) -> Gaussians:
        counts, first, second_moments = _sums(X, weights, origin, shape, dtype)
        if not bool(xp.all(counts > 0)):
            raise SingularCovarianceError(
                "a component has lost all its rows", "use fewer clusters or another init", code="empty_component"
            )
        means = first / counts[:, None]
        covariances = shape.add_ridge(shape.covariances(second_moments, counts, means), ridge)
        mass = counts if priors is None else xp.astype(xp.sum(priors, axis=0), xp.float64)
        shares, factors = mass / xp.sum(mass), shape.factorize(covariances)
        return Gaussians(shares, means + origin, covariances, factors, origin, kind, ridge)

    if X.dtype != xp.float64:
        with suppress(SingularCovarianceError):
            model = components(X.dtype)
            if _cancellation(model) < MAX_CANCELLATION:
                return model
    return components(xp.float64)


def _cancellation(model: Gaussians) -> float:
    """Compute the factor by which a relative error of E[x_a²] grows in Σ: the largest (Σ⁻¹)_aa E[x_a²]."""
    shape, xp, d = SHAPES[model.kind], namespace(model.means), model.means.shape[1]
    squares = shape.variances(model.covariances) + (model.means - model.origin) ** 2
    return float(xp.max(shape.precisions(model.factors, d) * squares))


def log_joint(X: Array, model: Gaussians) -> Array:
    """Compute log α_k + log N(x_i; μ_k, Σ_k) - ½ρ tr Σ_k⁻¹, shape (n, k): the joint log-density of blurred rows."""
    shape, xp, (k, d) = SHAPES[model.kind], namespace(X), model.means.shape
    constants = shape.log_det(model.factors, d) + xp.log(model.weights) - 0.5 * d * math.log(2 * math.pi)
    constants = constants - 0.5 * model.ridge * xp.sum(shape.precisions(model.factors, d), axis=-1)
    dtype = X.dtype if shape.forms_differences else xp.float64
    means, factors = (xp.astype(part, dtype) for part in (model.means - model.origin, model.factors))
    distances, constants = shape.sq_distances(means, factors), xp.astype(constants, dtype)

    def densities(rows: slice) -> Array:
        Z = _centered(X[rows, :], model.origin, dtype)
        return xp.astype(constants - 0.5 * distances(Z), X.dtype)

    return xp.concat(map_blocks(densities, _blocks(X, k), X), axis=0)


def n_parameters(kind: str, k: int, d: int) -> int:
    """Count the free parameters of a mixture: covariances, means, and mixing weights, which sum to one."""
    return choose(SHAPES, kind, option="covariance_type").n_parameters(k, d) + k * d + k - 1


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


# ----------------------------------------------------------------------------------------------- sums over the rows


def _blocks(X: Array, k: int, part: slice | None = None) -> Iterator[slice]:
    """Yield slices of (a part of) the rows that, repeated for every component, fit the cache (host) or fill the device.

    Blocks have at least twice as many rows as columns: adding up their (k, d, d) sums would otherwise take longer than
    computing them.
    """
    first, last = (0, X.shape[0]) if part is None else (part.start, part.stop)
    d = X.shape[1]
    sized = row_blocks(
        last - first, 8 * d * k, X, host_bytes=CACHE_BYTES, device_bytes=DEVICE_BYTES, min_rows=max(64, 2 * d)
    )
    return (slice(first + block.start, first + block.stop) for block in sized)


def _centered(X: Array, origin: Array, dtype: Any) -> Array:
    """Return x - origin for every row, rounded once to ``dtype``."""
    xp = namespace(X)
    return xp.astype(X, dtype) - xp.astype(origin, dtype)


def _origin(X: Array) -> Array:
    """Return the mean row rounded to X's precision, in double: differences from it are exact up to one rounding."""
    xp = namespace(X)
    sums = map_blocks(lambda rows: xp.sum(xp.astype(X[rows, :], xp.float64), axis=0), _blocks(X, 1), X)
    return xp.astype(xp.astype(sum(sums) / X.shape[0], X.dtype), xp.float64)


def _sums(X: Array, weights: Array, origin: Array, shape: Shape, dtype: Any) -> tuple[Array, Array, Array]:
    """Compute Σ w (k,), Σ w x (k, d) and Σ w xx' (by shape) of rows measured from ``origin``, blocks in ``dtype``."""
    xp, (n, k) = namespace(X), weights.shape

    def sums(part: slice) -> tuple[Array, Array, Array]:
        totals = (0.0, 0.0, 0.0)
        for rows in _blocks(X, k, part):
            Z, w = _centered(X[rows, :], origin, dtype), xp.astype(weights[rows, :], dtype)
            block = (xp.sum(w, axis=0), w.T @ Z, shape.second_moments(Z, w))
            totals = tuple(total + xp.astype(term, xp.float64) for total, term in zip(totals, block))
        return totals

    d = X.shape[1]
    n_parts = 1 if 8 * n * k * d <= CACHE_BYTES else max(1, min(MAX_PARTS, SUMS_BYTES // (8 * k * d * d), n // (4 * d)))
    width = -(-n // n_parts)
    parts = (slice(start, min(start + width, n)) for start in range(0, n, width))
    counts, first, second_moments = (sum(part) for part in zip(*map_blocks(sums, parts, X)))
    return counts, first, second_moments
