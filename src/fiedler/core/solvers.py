"""How the eigenpairs of `eigen` are found: one function a method, from a `Problem` to vectors that span the answer."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from .backend import Array, is_numpy, like, namespace, standard_normal
from .sparse import add_diagonal, is_sparse, matmul, pieces, with_data

log = logging.getLogger(__name__)

GUARD = 8  # extra vectors of a block: they let the wanted ones converge at the speed of a wider gap
FIRST_DEGREE = 30  # of the filter, before anything is known of the gap
MAX_DEGREE = 200


class Problem(NamedTuple):
    """One call's question: ``n_wanted`` pairs of ``matrix`` orthogonal to the columns of ``known``."""

    matrix: Any
    n_wanted: int
    known: Array  # (n, c), c may be 0
    lower: float
    upper: float
    tol: float  # on the residual, in units of the matrix
    max_iter: int | None
    rng: np.random.RandomState


def _dense(problem: Problem) -> tuple[Array, int]:
    """LAPACK on the full matrix, the known vectors moved out of the way to the top of the spectrum."""
    xp, matrix = namespace(problem.known), problem.matrix
    if isinstance(matrix, spla.LinearOperator) or is_sparse(matrix):
        matrix = matmul(matrix, like(np.eye(matrix.shape[0]), problem.known, dtype=problem.known.dtype))
    lift = 2 * problem.upper - problem.lower + 1
    _, vectors = xp.linalg.eigh(matrix + lift * (problem.known @ problem.known.T))
    return vectors[:, : problem.n_wanted], 0


def _chebyshev(problem: Problem) -> tuple[Array, int]:
    """Chebyshev-filtered subspace iteration; stops when the wanted Ritz pairs are within the tolerance."""
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = min(wanted + max(GUARD, wanted // 4), n - problem.known.shape[1])
    block = standard_normal((n, width), problem.rng, problem.known)
    ritz, vectors, _ = _rayleigh_ritz(problem, block)
    xp = namespace(vectors)
    mean = float(xp.mean(ritz))
    cut, degree, rounds = problem.lower + 0.1 * (mean - problem.lower), FIRST_DEGREE, 0
    max_iter = 40 if problem.max_iter is None else problem.max_iter
    while rounds < max_iter:
        rounds += 1
        vectors = _filter(problem.matrix, vectors, degree, problem.lower, cut, problem.upper)
        ritz, vectors, residuals = _rayleigh_ritz(problem, vectors)
        worst = float(xp.max(residuals[:wanted]))
        log.info("eigenpairs: round %d, degree %d, residual %.1e (wanted %.1e)", rounds, degree, worst, problem.tol)
        if worst <= problem.tol:
            break
        cut = float(ritz[-1])
        degree = _degree(float(ritz[wanted - 1]), cut, problem.upper, 10 * worst / problem.tol)
    return vectors[:, :wanted], rounds


def _filter(matrix: Any, block: Array, degree: int, lower: float, cut: float, upper: float) -> Array:
    """T_degree of the matrix mapped so that [cut, upper] goes to [-1, 1], scaled to be 1 at ``lower``.

    [Zhou & Saad 2007, Alg. 3.2]: Y_{j+1} = 2 σ_{j+1}/e (A - c) Y_j - σ_j σ_{j+1} Y_{j-1}, with c, e the centre and
    half-width of the damped interval; the σ keep the values from overflowing.
    """
    centre, half_width = 0.5 * (upper + cut), 0.5 * (upper - cut)
    step = _shifted(matrix, centre, half_width)
    first = sigma = half_width / (lower - centre)
    previous, current = block, step(block) * sigma
    for _ in range(degree - 1):
        following = 1 / (2 / first - sigma)
        advanced = step(current)
        advanced *= 2 * following
        previous *= sigma * following
        advanced -= previous
        previous, current, sigma = current, advanced, following
    return current


def _shifted(matrix: Any, centre: float, half_width: float) -> Callable[[Array], Array]:
    """The product with (A - centre)/half_width; a sparse matrix takes shift and scale into its entries."""
    if is_sparse(matrix):
        data = pieces(matrix)[0]
        scaled = with_data(matrix, data / half_width)
        shift = namespace(data).full_like(data[:1], -centre / half_width)
        scaled = add_diagonal(scaled, namespace(data).broadcast_to(shift, (matrix.shape[0],)))
        return lambda Y: matmul(scaled, Y)
    return lambda Y: (matmul(matrix, Y) - centre * Y) / half_width


def _degree(wanted: float, cut: float, upper: float, gain: float) -> int:
    """The degree at which the filter lifts the last wanted value by ``gain`` over the damped ones."""
    position = (0.5 * (upper + cut) - wanted) / (0.5 * (upper - cut))
    if position <= 1:
        return MAX_DEGREE
    return int(min(max(math.ceil(math.acosh(max(gain, 2.0)) / math.acosh(position)), 10), MAX_DEGREE))


def _rayleigh_ritz(problem: Problem, block: Array) -> tuple[Array, Array, Array]:
    """Orthonormalise against the known vectors and within, then the best values, vectors and residuals in the span."""
    xp = namespace(block)
    block = block / xp.sqrt(xp.sum(block * block, axis=0))[None, :]
    block = block - problem.known @ (problem.known.T @ block)
    basis, _ = xp.linalg.qr(block)
    product = matmul(problem.matrix, basis)
    small = basis.T @ product
    values, rotation = xp.linalg.eigh(0.5 * (small + small.T))
    vectors, product = basis @ rotation, product @ rotation
    residuals = xp.sqrt(xp.sum((product - vectors * values[None, :]) ** 2, axis=0))
    return values, vectors, residuals


def _host_only(problem: Problem, method: str) -> None:
    if not is_numpy(problem.known):
        raise ValueError(f"method={method!r} runs on NumPy; device arrays take 'chebyshev', 'dense' or 'auto'")


def _lobpcg(problem: Problem) -> tuple[Array, int]:
    _host_only(problem, "lobpcg")
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = min(wanted + GUARD, n - problem.known.shape[1])
    start = standard_normal((n, width), problem.rng, problem.known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # we judge by the residuals ourselves
        values, vectors, history = spla.lobpcg(
            problem.matrix, start, Y=problem.known if problem.known.shape[1] else None, tol=problem.tol, largest=False,
            maxiter=problem.max_iter or 500, retResidualNormsHistory=True,
        )  # fmt: skip
    return vectors[:, np.argsort(values)[:wanted]], len(history)


def _arpack(problem: Problem) -> tuple[Array, int]:
    """Lanczos on upper - A, the known vectors projected out. Repeated eigenvalues beyond those may be missed."""
    _host_only(problem, "arpack")

    def product(v: Array) -> Array:
        v = v - problem.known @ (problem.known.T @ v)
        return problem.upper * v - matmul(problem.matrix, v)

    return _lanczos(problem, product, {"which": "LA", "tol": problem.tol / problem.upper})


def _shift_invert(problem: Problem) -> tuple[Array, int]:
    """Lanczos on (A + shift)^-1 by a sparse LU factorisation: few steps, at the price of the factors' fill-in."""
    _host_only(problem, "shift_invert")
    shift = 1e-6 * (problem.upper - problem.lower) - problem.lower
    shifted = sp.csc_array(add_diagonal(sp.csr_array(problem.matrix), np.full(problem.matrix.shape[0], shift)))
    factors = spla.splu(shifted.astype(np.float64), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def product(v: Array) -> Array:
        v = v - problem.known @ (problem.known.T @ v)
        v = factors.solve(v.astype(np.float64))
        return v - problem.known @ (problem.known.T @ v)

    return _lanczos(problem, product, {"which": "LM", "tol": 0})


def _lanczos(problem: Problem, product: Callable[[Array], Array], options: dict) -> tuple[Array, int]:
    counter = [0]

    def counted(v: Array) -> Array:
        counter[0] += 1
        return product(v.reshape(-1))

    n, dtype = problem.matrix.shape[0], problem.known.dtype
    operator = spla.LinearOperator((n, n), matvec=counted, dtype=dtype)
    start = problem.rng.standard_normal(n).astype(dtype)
    try:
        _, vectors = spla.eigsh(operator, problem.n_wanted, v0=start, maxiter=problem.max_iter, **options)
    except spla.ArpackNoConvergence as error:
        missing = problem.n_wanted - error.eigenvectors.shape[1]
        filler = problem.rng.standard_normal((n, missing))
        vectors, _ = np.linalg.qr(np.concatenate([error.eigenvectors, filler], axis=1))
    return vectors.astype(dtype, copy=False), counter[0]


SOLVERS: dict[str, Callable[[Problem], tuple[Array, int]]] = {
    "chebyshev": _chebyshev,
    "dense": _dense,
    "lobpcg": _lobpcg,
    "arpack": _arpack,
    "shift_invert": _shift_invert,
}
