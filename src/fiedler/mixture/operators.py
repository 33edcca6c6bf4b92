"""Smoothing operators A of LapGMM's penalty λ tr(Q'AQ), each with a diagonal matrix that bounds it.

An operator is positive semidefinite, so that the penalty is convex and never negative. The bound c, with diag(c) - A
positive semidefinite, makes the steps of the solver monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from .._validation import choose
from ..core.arrays import Array, asarray_like, eps, exp_or_zero, namespace, normalize_row_sums, to_numpy
from ..core.eigen import spectral_bounds
from ..core.solvers import SEEDED_RESTARTS
from ..core.sparse import Sparse, csr_parts, diagonal, from_scipy_like, is_sparse, matmul, row_sums, to_scipy, with_data
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.operators import hessian
from ..graph.smoothing import heat_flow, iterate
from .em import Links

MAX_NEWTON_STEPS = 100  # for the rows that have no closed form


def entropic_maximizer(a: Array, b: Array) -> Array:
    """Maximise q'a - ½ b ‖q‖² - q' log q over the simplex, row by row, with b ≥ 0 of shape (n, 1); 0 gives the softmax.

    The stationarity condition is log q_k + b q_k = a_k - ν, with ν the row's multiplier. Where one entry takes all but
    a share s of the row and s(1 + b) is tiny, the others are exp(a_k - a_top + b - s(1 + b)) up to the square of that,
    in closed form. The remaining rows, near the borders of clusters, are solved by `_solve_rows`.
    """
    xp = namespace(a)
    tiny = 8 * eps(a) ** 0.5  # its square is the error of the closed form
    a = a - xp.max(a, axis=1)[:, None]
    above = a + b
    shares = exp_or_zero(xp.where(above > 0, 0, above))  # 1 for the largest entry and close rivals
    total = xp.sum(shares, axis=1)[:, None] - 1
    rest = total * (1 + b)
    shrink = xp.exp(-xp.where(rest < tiny, rest, 0))
    q = xp.where(a == 0, 1 - total * shrink, shares * shrink)
    open_rows = (rest >= tiny)[:, 0]
    if bool(xp.any(open_rows)):
        q[open_rows] = _solve_rows(a[open_rows], b[open_rows])
    return q


def _solve_rows(a: Array, b: Array) -> Array:
    """Solve the stationarity equations and Σ_k q_k = 1 by Newton's method in (log q, ν) jointly."""
    # u + b exp(u) is convex and increasing in u = log q: from upper bounds of u the steps approach from one side.
    xp = namespace(a)
    tol = 8 * eps(a)
    nu, u = -b, _upper_bound(a + b, b)
    for _ in range(MAX_NEWTON_STEPS):
        q = xp.exp(u)
        slope, residual = 1 / (1 + b * q), a - nu - u - b * q
        weight = q * slope
        total = xp.sum(weight, axis=1)[:, None]
        step = (xp.sum(weight * residual, axis=1)[:, None] + xp.sum(q, axis=1)[:, None] - 1) / total
        nu, u = nu + step, u + (residual - step) * slope
        if not bool(xp.any(xp.abs(step) * total > tol)) and not bool(xp.any(xp.abs(weight * residual) > tol)):
            break
    q = exp_or_zero(u)
    return normalize_row_sums(q)


def _upper_bound(s: Array, b: Array) -> Array:
    """Bound from above the u with u + b exp(u) = s: Lambert's W(exp t) is below softplus(t), and u is below s."""
    xp = namespace(s)
    log_b = xp.log(xp.where(b > 0, b, 1))
    t = s + log_b
    softplus = xp.where(t > 0, t, 0) + xp.log1p(xp.exp(-xp.abs(t)))
    bound = xp.log(xp.where(t > -20, softplus, 1)) - log_b
    return xp.where((t > -20) & (b > 0) & (bound < s), bound, s)


SMALLEST_DEGREE = 1e-300  # a mean degree by which to divide, for graphs without edges
HESSIAN_DIMENSIONS = 2  # of the manifold, or the columns of the rows if there are fewer
MAX_DENSE_ROWS = 512  # rows up to which all eigenvalues of a matrix are computed, by LAPACK


class Smoother(NamedTuple):
    """A positive semidefinite operator A."""

    apply: Callable[[Array], Array]  # F -> AF for arrays of shape (n, k)
    bound: Array  # c with diag(c) - A positive semidefinite, (n, 1)


def make_smoother(operator: Any, graph: AffinityGraph, reference: Array, links: Links | None = None) -> Smoother:
    """Build the operator that LapGMM's ``operator`` stands for, by name or as a matrix, with known pairs included."""
    if is_sparse(operator) or isinstance(operator, list) or hasattr(operator, "shape"):
        smoother = from_matrix(operator, reference)
    else:
        smoother = choose(OPERATORS, operator, option="operator")(graph, reference)
    return smoother if links is None else _with_pairs(smoother, links, graph)


def laplacian_smoother(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L = D - S, bounded by 2D; self-loops, which are in both D and S, do not count."""
    L = _in_precision_of(reference, graph.laplacian())
    degrees = to_numpy(graph.degrees) if graph.loops is None else to_numpy(graph.degrees) - to_numpy(graph.loops)
    return Smoother(lambda F: matmul(L, F), 2 * asarray_like(degrees, reference, dtype=reference.dtype)[:, None])


def _iterated(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = L², divided by the mean degree to have the scale of L."""
    L, xp = _in_precision_of(reference, graph.laplacian()), namespace(reference)
    scale = _mean_degree(graph)
    largest = spectral_bounds(L)[1] ** 2 / scale
    return Smoother(lambda F: iterate(F, L, 2) / scale, xp.full_like(reference[:, :1], largest))


def _heat(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = d̄ (I - exp(-L/d̄)), the part that heat flow over time 1/d̄ removes; bounded by the mean degree d̄."""
    L, xp = _in_precision_of(reference, graph.laplacian()), namespace(reference)
    scale = _mean_degree(graph)
    return Smoother(lambda F: scale * (F - heat_flow(F, L, 1 / scale)), xp.full_like(reference[:, :1], scale))


def _hessian(graph: AffinityGraph, reference: Array) -> Smoother:
    """A = H tr(L) / tr(H), H the Hessian operator of rows near a surface, with the scale of L; see `graph.hessian`."""
    H = hessian(reference, graph, min(HESSIAN_DIMENSIONS, reference.shape[1]))
    xp, trace = namespace(csr_parts(H)[0]), _mean_degree(graph) * graph.n_nodes
    scale = trace / max(float(xp.sum(diagonal(H))), SMALLEST_DEGREE)
    H = _in_precision_of(reference, with_data(H, scale * csr_parts(H)[0]))
    return Smoother(lambda F: matmul(H, F), _absolute_row_sums(H, reference))


def _absolute_row_sums(A: Sparse, reference: Array) -> Array:
    """Return c_i = Σ_j |a_ij|: diag(c) - A is diagonally dominant, and so positive semidefinite (Gershgorin)."""
    data = csr_parts(A)[0]
    sums = row_sums(with_data(A, namespace(data).abs(data)))
    return asarray_like(to_numpy(sums), reference, dtype=reference.dtype)[:, None]


OPERATORS = {"laplacian": laplacian_smoother, "iterated": _iterated, "heat": _heat, "hessian": _hessian}


def _mean_degree(graph: AffinityGraph) -> float:
    return max(float(to_numpy(graph.degrees).mean()), SMALLEST_DEGREE)


def _in_precision_of(reference: Array, S: Sparse) -> Sparse:
    """Convert a matrix so that its products with memberships stay in their precision."""
    data = csr_parts(S)[0]
    bits = namespace(data).finfo(data.dtype).bits
    if bits == namespace(reference).finfo(reference.dtype).bits:
        return S
    xp = namespace(data)
    return with_data(S, xp.astype(data, xp.float32 if bits == 64 else xp.float64))


def _with_pairs(smoother: Smoother, links: Links, graph: AffinityGraph) -> Smoother:
    """A - d̄ · strength · V, V the weights of known pairs; no eigenvalue of -V exceeds its largest absolute row sum."""
    scale = links.strength * float(to_numpy(graph.degrees).mean())
    return Smoother(lambda F: smoother.apply(F) - scale * links.linked_sum(F), smoother.bound + scale * links.total)


def from_matrix(matrix: Any, reference: Array) -> Smoother:
    """Use a symmetric positive semidefinite matrix, bounded by its absolute row sums (Gershgorin)."""
    A = check_operator(matrix, reference.shape[0])
    bound = asarray_like(np.asarray(abs(A).sum(axis=1)).reshape(-1, 1), reference, dtype=reference.dtype)
    if sp.issparse(A):
        A = from_scipy_like(A, reference)
    else:
        A = asarray_like(A, reference, dtype=reference.dtype)
    return Smoother(lambda F: matmul(A, F), bound)


def check_operator(matrix: Any, n: int) -> Any:
    """Validate a symmetric positive semidefinite matrix of shape (n, n); returned on the host in double precision."""
    A = _numbers(matrix)
    if A.shape != (n, n):
        raise _invalid(f"operator has shape {A.shape}, but X has {n} rows", f"pass a matrix of shape {(n, n)}")
    if not np.isfinite(A.data if sp.issparse(A) else A).all():
        raise _invalid("operator contains NaN or infinity", "remove those entries")
    tolerance = float(np.finfo(A.dtype).eps) ** 0.5  # relative: rounding is accepted, more is not
    A = A.astype(np.float64)
    size, asymmetry = float(abs(A).max()), float(abs(A - A.T).max())
    if asymmetry > tolerance * size:
        raise _invalid(
            f"operator is not symmetric (a_ij and a_ji differ by up to {asymmetry:.3g})",
            "symmetrise it, for example with (A + A.T) / 2",
        )
    A = (A + A.T) / 2
    smallest = _smallest_eigenvalue(A)
    if smallest < -tolerance * size:
        raise _invalid(
            f"operator has a negative eigenvalue ({smallest:.3g})",
            "pass a positive semidefinite matrix, such as a graph Laplacian",
        )
    return A


def _numbers(matrix: Any) -> Any:
    """Convert a matrix of any library to NumPy or CSR on the host, in single or double precision."""
    try:
        A = to_scipy(matrix) if is_sparse(matrix) else to_numpy(matrix)
    except ValueError as error:
        problem = "operator is not a matrix: its rows differ in length"
        raise _invalid(problem, "pass an array or a CSR matrix") from error
    if A.dtype.kind not in "biuf":
        raise _invalid(f"operator has entries of type {A.dtype}", "pass a matrix of real numbers")
    return A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)


def _smallest_eigenvalue(A: Any) -> float:
    """Bound the smallest eigenvalue by Gershgorin's discs if that shows it is not negative; else compute it."""
    # Lanczos approaches it from above, so that no large positive semidefinite matrix is rejected.
    lower, upper = spectral_bounds(A)
    if lower >= 0:
        return lower
    if A.shape[0] <= MAX_DENSE_ROWS:
        return float(np.linalg.eigvalsh(A.toarray() if sp.issparse(A) else A)[0])
    shift = max(abs(lower), abs(upper))  # the largest eigenvalue of shift I - A: ARPACK's tolerance is relative to it
    shifted = spla.LinearOperator(A.shape, matvec=lambda v: shift * v - A @ v, dtype=np.float64)
    v0 = np.random.RandomState(0).standard_normal(A.shape[0])
    try:
        options = {"which": "LA", "v0": v0, "tol": 1e-4, **SEEDED_RESTARTS}
        return shift - float(spla.eigsh(shifted, k=1, return_eigenvectors=False, **options)[0])
    except spla.ArpackNoConvergence:
        return 0.0  # no negative eigenvalue was found


def _invalid(problem: str, hint: str) -> InputError:
    return InputError(problem, hint, code="invalid_operator", parameter="operator")
