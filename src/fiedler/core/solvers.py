"""Solvers behind `eigen`: one function per method, from a `EigenProblem` to vectors that span the wanted eigenspace."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.linalg import eigh

from .._foreign_warnings import ignore_foreign_warnings
from ..errors import InputError
from .arrays import Array, asarray_like, eps, is_numpy, is_on_host, itemsize, namespace, standard_normal, to_numpy
from .fitting import stage
from .linear import chebyshev_factors
from .parallel import check_memory
from .sparse import add_diagonal, csr_parts, is_sparse, matmul, reorder_for_locality, to_dense, with_data

log = logging.getLogger(__name__)

N_GUARD_VECTORS = 8  # extra vectors of a block: with them the wanted ones converge as if the gap were wider
DENSE_COPIES = 4  # of a dense matrix, while LAPACK works on it
FIRST_DEGREE = 30  # degree of the first filter, before the gap is known
MAX_DEGREE = 200  # highest degree of a filter
MAX_CHEBYSHEV_ROUNDS = 40  # default number of filters
MAX_LOBPCG_ROUNDS = 500  # default number of iterations
SHIFTS = (1e-6, 1e-9, 1e-12)  # of ``shift_invert``, relative to the width of the spectrum
MAX_RESTARTS = 20  # default number of restarts of Lanczos for each shift; most problems need less than five

# ARPACK draws a new vector when it has found an invariant subspace; recent versions of SciPy let the caller seed it.
SEEDED_RESTARTS: dict[str, Any] = {"rng": 0} if "rng" in signature(spla.eigsh).parameters else {}


class EigenProblem(NamedTuple):
    """The search for ``n_wanted`` eigenpairs of ``matrix`` that are orthogonal to the columns of ``known``."""

    matrix: Any
    n_wanted: int
    known: Array  # (n, c) orthonormal eigenvectors, c >= 0
    lower: float  # bounds on the eigenvalues
    upper: float
    tol: float  # on the residual, in the unit of the matrix
    max_iter: int | None
    rng: np.random.RandomState


def _dense(problem: EigenProblem) -> tuple[Array, int]:
    """Use LAPACK on the dense matrix, with the eigenvalues of known vectors moved to the top of the spectrum."""
    xp, matrix = namespace(problem.known), problem.matrix
    if is_on_host(problem.known):
        n = matrix.shape[0]
        check_memory(DENSE_COPIES * itemsize(problem.known) * n * n, f"a dense matrix of {n} rows", "use method='auto'")
    if is_sparse(matrix):
        matrix = to_dense(matrix)
    elif isinstance(matrix, spla.LinearOperator):
        matrix = matmul(matrix, asarray_like(np.eye(matrix.shape[0]), problem.known, dtype=problem.known.dtype))
    lift = 2 * problem.upper - problem.lower
    lifted = matrix + lift * (problem.known @ problem.known.T)
    if is_numpy(lifted):
        with suppress(np.linalg.LinAlgError):  # computes only the wanted vectors, but may fail if many values are equal
            return eigh(lifted, subset_by_index=(0, problem.n_wanted - 1), check_finite=False)[1], 0
    return xp.linalg.eigh(lifted)[1][:, : problem.n_wanted], 0


def _chebyshev(problem: EigenProblem) -> tuple[Array, int]:
    """Iterate a Chebyshev-filtered subspace, with the rows of a SciPy matrix in an order that suits the cache."""
    if not sp.issparse(problem.matrix):
        return _filtered_subspace(problem)
    matrix, order, position = reorder_for_locality(problem.matrix)
    vectors, n_rounds = _filtered_subspace(problem._replace(matrix=matrix, known=problem.known[order]))
    return vectors[position], n_rounds


def _filtered_subspace(problem: EigenProblem) -> tuple[Array, int]:
    """Filter, orthonormalise and rotate onto Ritz vectors, until the wanted pairs are within the tolerance."""
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = min(wanted + max(N_GUARD_VECTORS, wanted // 4), n - problem.known.shape[1])
    block = standard_normal((n, width), problem.rng, problem.known)
    ritz, vectors, residual = _rayleigh_ritz(problem, block)
    low, cut = problem.lower, problem.lower + 0.1 * (sum(ritz) / width - problem.lower)
    degree, n_rounds = FIRST_DEGREE, 0
    max_rounds = problem.max_iter or MAX_CHEBYSHEV_ROUNDS
    with stage("eigenpairs", max_rounds, at_most=True) as tick:
        while residual > problem.tol and n_rounds < max_rounds:
            n_rounds += 1
            vectors = _filter(problem, vectors, degree, low, cut)
            ritz, vectors, residual = _rayleigh_ritz(problem, vectors)
            log.info(
                "eigenpairs: round %d, degree %d, residual %.1e (tolerance %.1e)",
                n_rounds, degree, residual, problem.tol,
            )  # fmt: skip
            tick()
            low, cut = ritz[0], min(ritz[-1], problem.upper - 1e-3 * (problem.upper - ritz[0]))
            growth = _Growth(cut, problem.upper)
            degree = _degree(growth(low), growth(ritz[wanted - 1]), 10 * residual / problem.tol, eps(vectors))
    return vectors[:, :wanted], n_rounds


class _Growth(NamedTuple):
    """Growth rate g of the Chebyshev polynomials of the interval [cut, upper]: T_r(x) ~ exp(r g(x)) for degree r."""

    cut: float
    upper: float

    def __call__(self, x: float) -> float:
        position = (0.5 * (self.upper + self.cut) - x) / (0.5 * (self.upper - self.cut))
        return math.acosh(max(position, 1.0))


def _degree(growth_low: float, growth_wanted: float, gain: float, precision: float) -> int:
    """Return the degree at which the filter amplifies the last wanted value by ``gain`` over the damped ones."""
    # It is limited: the lowest vectors' rounding errors, which are amplified more, would dominate the block.
    enough = math.acosh(max(gain, 2.0)) / max(growth_wanted, 1e-12)
    safe = math.log(0.01 / precision) / max(growth_low - growth_wanted, 1e-12)
    return max(2, math.ceil(min(enough, safe, MAX_DEGREE)))


def _filter(problem: EigenProblem, block: Array, degree: int, low: float, cut: float) -> Array:
    """Multiply by T_degree of the matrix, where [cut, upper] is mapped to [-1, 1], scaled to be 1 at ``low``."""
    # Known vectors are amplified most: they are projected out before their rounding errors grow a thousandfold.
    center, half_width = 0.5 * (problem.upper + cut), 0.5 * (problem.upper - cut)
    step = _shifted_product(problem.matrix, center, half_width)
    growth = _Growth(cut, problem.upper)(problem.lower)
    every = max(1, int(math.log(1000) / max(growth, 1e-3)))
    scale = half_width / (low - center)
    previous, current = block, step(block) * scale
    for j, (ahead, back) in zip(range(1, degree), chebyshev_factors(scale)):
        advanced = step(current)
        advanced *= ahead
        previous *= back
        advanced -= previous
        if j % every == 0:
            current, advanced = _project_out_known(problem, current), _project_out_known(problem, advanced)
        previous, current = current, advanced
    return current


def _project_out_known(problem: EigenProblem, block: Array) -> Array:
    if problem.known.shape[1] == 0:
        return block
    return block - problem.known @ (problem.known.T @ block)


def _shifted_product(matrix: Any, center: float, half_width: float) -> Callable[[Array], Array]:
    """Return the product with (A - center) / half_width, which is formed if A is sparse."""
    if is_sparse(matrix):
        data = csr_parts(matrix)[0]
        scaled = with_data(matrix, data / half_width)
        shift = namespace(data).full_like(data[:1], -center / half_width)
        scaled = add_diagonal(scaled, namespace(data).broadcast_to(shift, (matrix.shape[0],)))
        return lambda Y: matmul(scaled, Y)
    return lambda Y: (matmul(matrix, Y) - center * Y) / half_width


def _rayleigh_ritz(problem: EigenProblem, block: Array) -> tuple[list[float], Array, float]:
    """Return Ritz values and vectors orthogonal to the known vectors, and the largest residual of the wanted ones."""
    xp = namespace(block)
    block = block / xp.sqrt(xp.sum(block * block, axis=0))[None, :]
    basis, _ = xp.linalg.qr(_project_out_known(problem, block))
    basis = _project_out_known(problem, basis)
    product = matmul(problem.matrix, basis)
    small = basis.T @ product
    values, rotation = xp.linalg.eigh(0.5 * (small + small.T))
    vectors, product = basis @ rotation, product @ rotation
    residuals = xp.sqrt(xp.sum((product - vectors * values[None, :]) ** 2, axis=0))
    return to_numpy(values).tolist(), vectors, float(xp.max(residuals[: problem.n_wanted]))


def rayleigh_quotients(matrix: Any, vectors: Array) -> tuple[Array, Array]:
    """Return u'Au and the residual ‖Au - (u'Au) u‖ of each unit column u."""
    xp = namespace(vectors)
    product = matmul(matrix, vectors)
    values = xp.sum(vectors * product, axis=0)
    return values, xp.sqrt(xp.sum((product - vectors * values[None, :]) ** 2, axis=0))


def largest_residual(problem: EigenProblem, vectors: Array) -> float:
    """Return the largest residual of the columns as eigenvectors."""
    return float(namespace(vectors).max(rayleigh_quotients(problem.matrix, vectors)[1]))


def _check_on_host(problem: EigenProblem, method: str) -> None:
    if not is_numpy(problem.known):
        message = f"the eigensolver {method!r} supports only NumPy arrays"
        hint = "use 'chebyshev', 'dense' or 'auto' for arrays of other libraries"
        raise InputError(message, hint, code="numpy_required", solver=method)


def fits_lobpcg(n_columns: int, n_rows: int) -> bool:
    """Whether LOBPCG of SciPy accepts a block of this width."""
    return 5 * n_columns <= n_rows


def _lobpcg(problem: EigenProblem) -> tuple[Array, int]:
    _check_on_host(problem, "lobpcg")
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = wanted + N_GUARD_VECTORS
    if not fits_lobpcg(width + problem.known.shape[1], n):
        return _dense(problem)
    start = standard_normal((n, width), problem.rng, problem.known)
    with ignore_foreign_warnings():  # convergence is judged by the residuals, in `eigen`
        values, vectors, history = spla.lobpcg(
            problem.matrix, start, Y=problem.known if problem.known.shape[1] else None, tol=problem.tol, largest=False,
            maxiter=problem.max_iter or MAX_LOBPCG_ROUNDS, retResidualNormsHistory=True,
        )  # fmt: skip
    return vectors[:, np.argsort(values)[:wanted]], len(history)


def _arpack(problem: EigenProblem) -> tuple[Array, int]:
    """Apply the Lanczos method to upper - A, the known vectors projected out; it can miss repeated eigenvalues."""
    _check_on_host(problem, "arpack")

    def product(v: Array) -> Array:
        v = v - problem.known @ (problem.known.T @ v)
        return problem.upper * v - matmul(problem.matrix, v)

    return _lanczos(problem, product, {"which": "LA", "tol": problem.tol / problem.upper})


def _shift_invert(problem: EigenProblem) -> tuple[Array, int]:
    """Apply the Lanczos method to (A + shift)^-1 by sparse LU factors: few steps, but the factors can fill up."""
    # Eigenvalues far below the shift have nearly the same inverse; if they do not converge, a smaller one is tried.
    _check_on_host(problem, "shift_invert")
    if isinstance(problem.matrix, spla.LinearOperator):
        message = "the eigensolver 'shift_invert' needs the entries of the matrix, but an operator was given"
        hint = "use 'chebyshev', 'lobpcg', 'arpack' or 'auto'"
        raise InputError(message, hint, code="matrix_required", solver="shift_invert")
    attempts, n_products = [], 0
    for relative_shift in SHIFTS:
        shift = relative_shift * (problem.upper - problem.lower) - problem.lower
        with suppress(RuntimeError):  # a singular factor
            vectors, n_more = _inverse_lanczos(problem, shift)
            n_products += n_more
            attempts.append((largest_residual(problem, vectors), vectors))
            if attempts[-1][0] <= problem.tol:
                break
    if not attempts:  # their residuals show that random vectors have not converged
        random_vectors = problem.rng.standard_normal((problem.matrix.shape[0], problem.n_wanted))
        return np.linalg.qr(random_vectors)[0].astype(problem.known.dtype, copy=False), n_products
    return min(attempts, key=lambda attempt: attempt[0])[1], n_products


def _inverse_lanczos(problem: EigenProblem, shift: float) -> tuple[Array, int]:
    """Apply the Lanczos method to (A + shift)^-1 in double precision, in which a small shift is not lost."""
    matrix = sp.csr_array(problem.matrix, dtype=np.float64)
    shifted = sp.csc_array(add_diagonal(matrix, np.full(matrix.shape[0], shift)))
    factors = spla.splu(shifted, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def product(v: Array) -> Array:
        v = v - problem.known @ (problem.known.T @ v)
        v = factors.solve(v.astype(np.float64))
        return v - problem.known @ (problem.known.T @ v)

    limited = problem._replace(max_iter=problem.max_iter or MAX_RESTARTS)
    return _lanczos(limited, product, {"which": "LM", "tol": 0})


def _lanczos(problem: EigenProblem, product: Callable[[Array], Array], options: dict) -> tuple[Array, int]:
    if problem.n_wanted + problem.known.shape[1] >= problem.matrix.shape[0] - 1:  # no room for Lanczos vectors
        return _dense(problem)
    n_products = 0

    def counted_product(v: Array) -> Array:
        nonlocal n_products
        n_products += 1
        return product(v.reshape(-1))

    n, dtype = problem.matrix.shape[0], problem.known.dtype
    operator = spla.LinearOperator((n, n), matvec=counted_product, dtype=dtype)
    start = problem.rng.standard_normal(n).astype(dtype)
    try:
        options = {**options, **SEEDED_RESTARTS}
        _, vectors = spla.eigsh(operator, problem.n_wanted, v0=start, maxiter=problem.max_iter, **options)
    except spla.ArpackNoConvergence as error:
        # Random vectors take the place of the missing ones; their residuals show that they have not converged.
        n_missing = problem.n_wanted - error.eigenvectors.shape[1]
        random_vectors = problem.rng.standard_normal((n, n_missing))
        vectors, _ = np.linalg.qr(np.concatenate([error.eigenvectors, random_vectors], axis=1))
    return vectors.astype(dtype, copy=False), n_products


EIGEN_SOLVERS: dict[str, Callable[[EigenProblem], tuple[Array, int]]] = {
    "chebyshev": _chebyshev,
    "dense": _dense,
    "lobpcg": _lobpcg,
    "arpack": _arpack,
    "shift_invert": _shift_invert,
}
