"""Linear equations on any back end: iterative solvers for many right-hand sides at once, and triangular factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import array_api_compat
import numpy as np
from scipy.linalg import get_lapack_funcs

from ..errors import NotConvergedWarning, warn
from .arrays import Array, eps, identity, is_numpy, is_on_host, namespace


class SolveResult(NamedTuple):
    """The solution of linear equations with several right-hand sides."""

    solution: Array
    residuals: Array  # relative, one per column
    iterations: int
    converged: bool  # whether every residual is within the tolerance


def conjugate_gradient(
    product: Callable[[Array], Array],
    right: Array,
    *,
    diagonal: Array | None = None,
    start: Array | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    warns: bool = True,
) -> SolveResult:
    """Solve A X = B, A positive definite, by conjugate gradients, preconditioned by the diagonal of A."""
    # ``product`` is X -> A X for (n, k) arrays, and ``tol`` is on ‖B - A X‖ / ‖B‖ of each column.
    xp = namespace(right)
    precondition = lambda R: R if diagonal is None else R / diagonal[:, None]  # noqa: E731
    dots = lambda U, V: xp.sum(U * V, axis=0)  # noqa: E731
    safe = lambda values: xp.where(values > 0, values, 1)  # noqa: E731  a converged column divides 0 by 1
    solution = precondition(right) if start is None else start
    residual = right - product(solution)
    right_norms = xp.sqrt(dots(right, right))
    max_residuals = max(tol, 10 * eps(right)) * right_norms
    preconditioned = precondition(residual)
    direction, energy, iterations = preconditioned, dots(residual, preconditioned), 0
    while iterations < max_iter and bool(xp.any(xp.sqrt(dots(residual, residual)) > max_residuals)):
        iterations += 1
        image = product(direction)
        step = energy / safe(dots(direction, image))
        solution = solution + step[None, :] * direction
        residual = residual - step[None, :] * image
        preconditioned = precondition(residual)
        new_energy = dots(residual, preconditioned)
        direction = preconditioned + (new_energy / safe(energy))[None, :] * direction
        energy = new_energy
    residuals = xp.sqrt(dots(residual, residual)) / safe(right_norms)
    converged = bool(xp.all(residuals * safe(right_norms) <= max_residuals))
    if warns and not converged:
        largest = float(xp.max(residuals))
        problem = f"conjugate gradients stopped after {iterations} iterations with a relative residual of {largest:.1e}"
        hint = "raise max_iter or tol"
        warn(problem, hint, category=NotConvergedWarning, max_iter=max_iter, residual=largest, tol=tol)
    return SolveResult(solution, residuals, iterations, converged)


def chebyshev_factors(scale: float) -> Iterator[tuple[float, float]]:
    """Yield the factors (a, b) of Y_{j+1} = a B Y_j - b Y_{j-1}, from Y_0 and Y_1 = scale · B Y_0, for j = 1, 2, ...

    Y_j = T_j(B) Y_0 / T_j(1/scale) with the Chebyshev polynomials T_j, so that the values do not overflow; a = 2σ_{j+1}
    and b = σ_j σ_{j+1} with σ_1 = scale. [Zhou & Saad 2007, Alg. 3.2]
    """
    sigma = scale
    while True:
        following = 1 / (2 / scale - sigma)
        yield 2 * following, sigma * following
        sigma = following


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

    All columns share one search space: on the documents of TDT2, thirty columns took 23 iterations together, but 78
    one by one. The gradients are stored as an orthonormal basis times coefficients [Ji & Li 2017: BCGrQ], from which
    directions that have converged are dropped. The iteration starts from zero, so that it finds the shortest of several
    minimisers. Stopping early is itself a regularisation, so there is no warning. ``tol`` is on the gradient of each
    column relative to its initial value; these are the residuals of the result.
    """
    xp = namespace(right)
    gradient = adjoint(right)
    solution, initial = xp.zeros_like(gradient), _column_norms(gradient)
    min_length = eps(right) * float(xp.max(initial)) if right.shape[1] else 0.0
    basis, coefficients = _orthonormal_basis(gradient, min_length)
    directions, n_iter, remaining = basis, 0, _safe_ratio(initial, initial)
    while n_iter < max_iter and basis.shape[1] and bool(xp.any(remaining > tol)):
        n_iter += 1
        image = product(directions)
        curvature = image.T @ image + damp * (directions.T @ directions)
        solution = solution + directions @ xp.linalg.solve(curvature, coefficients)
        change = adjoint(image) + damp * directions
        basis, factor = _orthonormal_basis(basis - xp.linalg.solve(curvature, change.T).T, 10 * eps(right))
        directions, coefficients = basis + directions @ factor.T, factor @ coefficients
        remaining = _safe_ratio(_column_norms(coefficients), initial)
    return SolveResult(solution, remaining, n_iter, bool(xp.all(remaining <= tol)))


def _orthonormal_basis(block: Array, min_length: float) -> tuple[Array, Array]:
    """Return orthonormal columns and coefficients whose product is the block, up to parts of at most ``min_length``."""
    xp = namespace(block)
    basis, triangle = xp.linalg.qr(block)
    left, lengths, right = xp.linalg.svd(triangle, full_matrices=False)
    rank = int(xp.sum(xp.astype(lengths > min_length, xp.int64)))
    return basis @ left[:, :rank], lengths[:rank, None] * right[:rank, :]


def _column_norms(X: Array) -> Array:
    xp = namespace(X)
    return xp.sqrt(xp.sum(X * X, axis=0))


def _safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, or 0 where the denominator is 0."""
    xp = namespace(numerator)
    return xp.where(denominator > 0, numerator / xp.where(denominator > 0, denominator, 1), 0)


def cholesky(matrices: Array) -> Array | None:
    """Return the lower Cholesky factors of (..., d, d) matrices, or None if one is not positive definite."""
    xp, factors = namespace(matrices), cholesky_or_nan(matrices)
    return factors if bool(xp.all(xp.isfinite(factors))) else None


def cholesky_or_nan(matrices: Array) -> Array:
    """Return the lower Cholesky factors of (..., d, d) matrices, NaN (some or all) if one is not positive definite."""
    # On an accelerator no value is read, so that work which follows can be sent before the factors are computed.
    xp = namespace(matrices)
    if array_api_compat.is_torch_array(matrices):
        factors, failures = xp.linalg.cholesky_ex(matrices)
        return xp.where(failures[..., None, None] == 0, factors, math.nan)
    try:
        return xp.linalg.cholesky(matrices)  # CuPy returns NaN
    except np.linalg.LinAlgError:
        return xp.full_like(matrices, math.nan)


def invert_lower_triangular(matrices: Array) -> Array:
    """Invert lower triangular matrices (..., d, d) with a positive diagonal."""
    # The general solver of the array API standard takes four times as long as those of NumPy and torch.
    if array_api_compat.is_torch_array(matrices):
        return namespace(matrices).linalg.solve_triangular(matrices, identity(matrices), upper=False)
    if not is_numpy(matrices):
        xp = namespace(matrices)
        return xp.linalg.solve(matrices, xp.broadcast_to(identity(matrices), matrices.shape))
    (trtri,) = get_lapack_funcs(("trtri",), (matrices,))
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    return np.stack([trtri(matrix, lower=1)[0] for matrix in flat]).reshape(matrices.shape)


# --------------------------------------------------------------------------------------- affine maps on tensor cores

# Affine maps of many rows by one matrix product, on tensor cores where these are fast enough.
#
# A row x becomes [x, 1], so that A x + b is the product with [A, b]: no further pass over the images adds the offsets.
#
# The tensor cores of data-centre GPUs multiply 16-bit numbers more than ten times as fast as their other units multiply
# single precision. A single-precision number is the sum of three bfloat16 numbers, of eight bits each (unless it is so
# small that the last part vanishes), and the six largest of the nine products of their parts suffice:
#
#     x y  ≈  x₁y₁ + x₁y₂ + x₂y₁ + x₂y₂ + x₁y₃ + x₃y₁
#
# The parts stand side by side, so that it is still one product, with an inner dimension six times as large.

ALIGNED_COLUMNS = 8  # products on accelerators are faster if the number of columns is a multiple of it
LEFT_PARTS, RIGHT_PARTS = (0, 0, 1, 1, 0, 2), (0, 1, 0, 1, 2, 0)  # which parts of x and y are multiplied
TENSOR_CORE_CAPABILITIES = ((8, 0), (9, 0), (10, 0))  # compute capabilities of A100, H100 and H200, B200


def prepare_rows(Z: Array) -> Array:
    """Return rows of shape (b, d) in the form that the functions of `affine_map` expect."""
    rows = _with_ones(Z)
    return _parts(rows, RIGHT_PARTS) if _uses_tensor_cores(Z) else rows


def affine_map(matrix: Array, offsets: Array) -> Callable[[Array], Array]:
    """Return the function from prepared rows to ``matrix @ rows.T + offsets``, shape (m, b)."""
    xp, left = namespace(matrix), _with_ones(matrix)
    left[:, matrix.shape[1]] = offsets
    if not _uses_tensor_cores(matrix):
        return lambda rows: left @ rows.T
    parts = _parts(left, LEFT_PARTS)
    return lambda rows: xp.mm(parts, rows.T, out_dtype=xp.float32)


def _with_ones(Z: Array) -> Array:
    """Append a column of ones and, on accelerators, zeros up to a multiple of `ALIGNED_COLUMNS`."""
    xp, (b, d) = namespace(Z), Z.shape
    width = 1 if is_on_host(Z) else 1 + -(d + 1) % ALIGNED_COLUMNS
    last = xp.eye(1, width, dtype=Z.dtype, device=array_api_compat.device(Z))
    return xp.concat([Z, xp.broadcast_to(last, (b, width))], axis=1)


def _parts(rows: Array, order: tuple[int, ...]) -> Array:
    """Split every entry of torch rows into three bfloat16 numbers and return their columns in this order."""
    xp = namespace(rows)
    first = xp.astype(rows, xp.bfloat16)
    rest = rows - first
    second = xp.astype(rest, xp.bfloat16)
    parts = (first, second, xp.astype(rest - second, xp.bfloat16))
    return xp.concat([parts[p] for p in order], axis=1)


def prepared_bytes(n_columns: int) -> int:
    """Return the size of the temporaries and the result of `prepare_rows` for one row, in bytes, at most."""
    return 4 * 10 * (n_columns + ALIGNED_COLUMNS)


def _uses_tensor_cores(Z: Array) -> bool:
    """Whether rows are multiplied as bfloat16 parts: single-precision torch arrays on a suitable GPU."""
    if not array_api_compat.is_torch_array(Z) or is_on_host(Z) or Z.dtype != namespace(Z).float32:
        return False
    return _has_fast_tensor_cores(Z.device)


@cache
def _has_fast_tensor_cores(device: Any) -> bool:
    """Whether six products of bfloat16 matrices are faster than one in single precision on a torch device."""
    # Their sum must have single precision, which torch has offered since version 2.8.
    import torch

    has_sums = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 8)
    if not has_sums or device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) in TENSOR_CORE_CAPABILITIES
