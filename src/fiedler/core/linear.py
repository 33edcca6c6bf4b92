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
    """Minimise ‖AX - B‖² + damp ‖X‖², every column with its own step, by conjugate gradients on A'A without forming it.

    From zero, so that of several minimisers it finds the shortest; stopping early is itself a regularisation, and no
    reason to warn. [Björck 1996, section 7.4: CGLS]

    Parameters
    ----------
    product, adjoint : callable
        X -> A X and R -> A'R for arrays with as many columns as ``right``.
    right : array of shape (n, k)
    damp : float, default=0
    tol : float, default=1e-6
        On the gradient A'(B - AX) - damp X of every column, relative to its first.
    max_iter : int, default=200
    """
    xp = namespace(right)
    residual, gradient = right, adjoint(right)
    solution, direction = xp.zeros_like(gradient), gradient
    steepness = xp.sum(gradient**2, axis=0)
    first = xp.where(steepness > 0, steepness, 1)
    n_iter = 0
    while n_iter < max_iter and bool(xp.any(steepness > tol**2 * first)):
        n_iter += 1
        image = product(direction)
        curvature = xp.sum(image**2, axis=0) + damp * xp.sum(direction**2, axis=0)
        step = _ratio(steepness, curvature)
        solution, residual = solution + step * direction, residual - step * image
        gradient = adjoint(residual) - damp * solution
        last, steepness = steepness, xp.sum(gradient**2, axis=0)
        direction = gradient + _ratio(steepness, last) * direction
    remaining = xp.sqrt(steepness / first)
    return SolveResult(solution, remaining, n_iter, bool(xp.all(remaining <= tol)))


def _ratio(above: Array, below: Array) -> Array:
    """Quotients, and 0 where a column has nothing left to do."""
    xp = namespace(above)
    return xp.where(below > 0, above / xp.where(below > 0, below, 1), 0)


def inverse_of_lower(matrices: Array) -> Array:
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
