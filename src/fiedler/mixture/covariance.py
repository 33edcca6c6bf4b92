"""Gaussian components: their densities and their weighted estimates, for four shapes of covariance.

===========  ====================  =============================================
full         (k, d, d)             each component its own matrix
tied         (d, d)                one matrix for all
diag         (k, d)                each its own variances along the axes
spherical    (k,)                  each one variance
===========  ====================  =============================================

The ridge ρ is noise: every row is taken to carry a blur ε ~ N(0, ρI). Added to the variances in the M-step alone it
would be no step of any likelihood; but Σ = S + ρI is exactly the maximiser of the expected log-density
E log N(x + ε; μ, Σ) = log N(x; μ, Σ) - ½ρ tr Σ⁻¹, and with that as the density of the E-step too, EM always rises.

Everything works on sums over blocks of rows, small enough to stay in the processor's cache, and on any array library.
Differences x - μ are formed before they are squared, so that clusters far apart lose no digits. Log-determinants come
from Cholesky factors: det() itself underflows past a hundred dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import array_api_compat

from .._validation import choose
from ..core.backend import Array, itemsize, namespace, row_blocks

CACHE_BYTES = 2**18  # of a block of rows on the host: what a core keeps close
DEVICE_BYTES = 2**28  # and on an accelerator


class Gaussians(NamedTuple):
    """The components: mixing weights (k,), means (k, d), covariances and inverse Cholesky factors (by shape)."""

    weights: Array
    means: Array
    covariances: Array
    factors: Array  # F with F F' = Σ^-1, so that the Mahalanobis distance is ‖(x - μ)' F‖
    kind: str
    ridge: float


class SingularCovarianceError(ValueError):
    """A covariance is not positive definite, and the sentence says what to do."""


def blocks(X: Array) -> Iterator[slice]:
    """Slices of rows that fit the cache (host) or fill the device."""
    return row_blocks(X.shape[0], itemsize(X) * X.shape[1], X, host=CACHE_BYTES, device=DEVICE_BYTES, least=64)


# ---------------------------------------------------------------------------------------------------- weighted sums


def _scatter(X: Array, weights: Array, means: Array) -> list[Array]:
    """Σ_i w_ik (x_i - μ_k)(x_i - μ_k)' of every component."""
    k = means.shape[0]
    sums: list[Any] = [0.0] * k
    for rows in blocks(X):
        block, w = X[rows, :], weights[rows, :]
        for c in range(k):
            difference = block - means[c, :]
            sums[c] = sums[c] + (difference * w[:, c : c + 1]).T @ difference
    return sums


def _sq_sums(X: Array, weights: Array, means: Array) -> Array:
    """Σ_i w_ik (x_ij - μ_kj)², shape (k, d)."""
    xp = namespace(X)
    total: Any = 0.0
    for rows in blocks(X):
        block, w = X[rows, :], weights[rows, :]
        parts = [w[:, c] @ (block - means[c, :]) ** 2 for c in range(means.shape[0])]
        total = total + xp.stack(parts)
    return total


def _full(X: Array, weights: Array, means: Array, counts: Array) -> Array:
    xp = namespace(X)
    return xp.stack(_scatter(X, weights, means)) / counts[:, None, None]


def _tied(X: Array, weights: Array, means: Array, counts: Array) -> Array:
    xp = namespace(X)
    return xp.sum(xp.stack(_scatter(X, weights, means)), axis=0) / xp.sum(counts)


def _diag(X: Array, weights: Array, means: Array, counts: Array) -> Array:
    return _sq_sums(X, weights, means) / counts[:, None]


def _spherical(X: Array, weights: Array, means: Array, counts: Array) -> Array:
    return namespace(X).mean(_diag(X, weights, means, counts), axis=1)


# ------------------------------------------------------------------------------------------------ ridges and factors


def _ridge_matrix(covariances: Array, ridge: float) -> Array:
    xp = namespace(covariances)
    d = covariances.shape[-1]
    return covariances + ridge * xp.eye(d, dtype=covariances.dtype, device=array_api_compat.device(covariances))


def _ridge_variances(covariances: Array, ridge: float) -> Array:
    return covariances + ridge


def _factor_matrix(covariances: Array) -> Array:
    """The inverse of the transposed Cholesky factor."""
    xp = namespace(covariances)
    try:
        lower = xp.linalg.cholesky(covariances)
    except Exception as error:  # every library has its own name for it
        raise _singular() from error
    if not bool(xp.all(xp.isfinite(lower))):
        raise _singular()
    identity = xp.eye(covariances.shape[-1], dtype=lower.dtype, device=array_api_compat.device(lower))
    inverse = xp.linalg.solve(lower, xp.broadcast_to(identity, lower.shape))
    return xp.matrix_transpose(inverse)


def _factor_variances(covariances: Array) -> Array:
    xp = namespace(covariances)
    if not bool(xp.all(covariances > 0)):
        raise _singular()
    return 1 / xp.sqrt(covariances)


def _singular() -> SingularCovarianceError:
    return SingularCovarianceError(
        "a component's covariance is not positive definite: too few rows for its dimension, or constant columns; "
        "raise ridge, reduce the dimension with pca, use fewer clusters, or covariance_type='diag'"
    )


# -------------------------------------------------------------------------------------------------------- densities


def _mahalanobis(X: Array, means: Array, whiten: Callable[[Array, int], Array]) -> Array:
    """‖(x_i - μ_k)' F_k‖² for every row and component; ``whiten(difference, k)`` multiplies by F_k."""
    xp = namespace(X)
    parts = []
    for rows in blocks(X):
        block = X[rows, :]
        columns = [xp.sum(whiten(block - means[c, :], c) ** 2, axis=1) for c in range(means.shape[0])]
        parts.append(xp.stack(columns, axis=1))
    return xp.concat(parts, axis=0)


def _log_det_matrix(factors: Array, k: int, d: int) -> Array:
    """Log det F_k = -½ log det Σ_k."""
    xp = namespace(factors)
    return xp.sum(xp.log(xp.linalg.diagonal(factors)), axis=-1)


def _trace_matrix(factors: Array, k: int, d: int) -> Array:
    """Tr Σ_k^-1 = ‖F_k‖²."""
    return namespace(factors).sum(factors**2, axis=(-2, -1))


class Shape(NamedTuple):
    """One row of the table: how a covariance is estimated, loaded with a ridge, factorised and used."""

    estimate: Callable[[Array, Array, Array, Array], Array]
    add_ridge: Callable[[Array, float], Array]
    factorise: Callable[[Array], Array]
    mahalanobis: Callable[[Array, Array, Array], Array]
    log_det_factor: Callable[[Array, int, int], Array]
    trace_precision: Callable[[Array, int, int], Array]
    n_parameters: Callable[[int, int], int]


SHAPES = {
    "full": Shape(
        _full,
        _ridge_matrix,
        _factor_matrix,
        lambda X, means, factors: _mahalanobis(X, means, lambda z, c: z @ factors[c, :, :]),
        _log_det_matrix,
        _trace_matrix,
        lambda k, d: k * d * (d + 1) // 2,
    ),
    "tied": Shape(
        _tied,
        _ridge_matrix,
        _factor_matrix,
        lambda X, means, factors: _mahalanobis(X, means, lambda z, c: z @ factors),
        _log_det_matrix,
        _trace_matrix,
        lambda k, d: d * (d + 1) // 2,
    ),
    "diag": Shape(
        _diag,
        _ridge_variances,
        _factor_variances,
        lambda X, means, factors: _mahalanobis(X, means, lambda z, c: z * factors[c, :]),
        lambda factors, k, d: namespace(factors).sum(namespace(factors).log(factors), axis=1),
        lambda factors, k, d: namespace(factors).sum(factors**2, axis=1),
        lambda k, d: k * d,
    ),
    "spherical": Shape(
        _spherical,
        _ridge_variances,
        _factor_variances,
        lambda X, means, factors: _mahalanobis(X, means, lambda z, c: z * factors[c]),
        lambda factors, k, d: d * namespace(factors).log(factors),
        lambda factors, k, d: d * factors**2,
        lambda k, d: k,
    ),
}


# ---------------------------------------------------------------------------------------------- what the models call


def estimate(X: Array, weights: Array, *, kind: str, ridge: float, priors: Array | None = None) -> Gaussians:
    """The weighted maximum-likelihood components [lapgmm, Eqs 13-15].

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n, k)
        Of each row in each component; for LCGMM they may be negative.
    kind : {'full', 'tied', 'diag', 'spherical'}
    ridge : float
        Added to the variances, in the unit of X².
    priors : array of shape (n, k), optional
        Memberships for the mixing weights, where they differ from ``weights``.
    """
    shape = choose(SHAPES, kind, option="covariance_type")
    xp = namespace(X)
    counts = xp.sum(weights, axis=0)
    if not bool(xp.all(counts > 0)):
        raise SingularCovarianceError("a component has lost all its rows; use fewer clusters or another init")
    means = (weights.T @ X) / counts[:, None]
    covariances = shape.add_ridge(shape.estimate(X, weights, means, counts), ridge)
    mass = counts if priors is None else xp.sum(priors, axis=0)
    return Gaussians(mass / xp.sum(mass), means, covariances, shape.factorise(covariances), kind, ridge)


def log_joint(X: Array, model: Gaussians) -> Array:
    """Log α_k + log N(x_i; μ_k, Σ_k) - ½ρ tr Σ_k⁻¹, shape (n, k): the joint log-density of blurred rows."""
    shape, (k, d) = SHAPES[model.kind], model.means.shape
    sq_distances = shape.mahalanobis(X, model.means, model.factors)
    constants = shape.log_det_factor(model.factors, k, d) + namespace(X).log(model.weights)
    constants = constants - 0.5 * model.ridge * shape.trace_precision(model.factors, k, d)
    return constants - 0.5 * (d * math.log(2 * math.pi) + sq_distances)


def n_parameters(kind: str, k: int, d: int) -> int:
    """Free parameters of a mixture: covariances, means, and the mixing weights, which sum to one."""
    return choose(SHAPES, kind, option="covariance_type").n_parameters(k, d) + k * d + k - 1
