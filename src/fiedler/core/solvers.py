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
from scipy.linalg import eigh

from .backend import Array, asarray_like, eps, is_numpy, namespace, standard_normal, to_numpy
from .progress import stage
from .sparse import add_diagonal, csr_parts, is_sparse, matmul, reorder_for_locality, to_dense, with_data

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
    if is_sparse(matrix):
        matrix = to_dense(matrix)
    elif isinstance(matrix, spla.LinearOperator):
        matrix = matmul(matrix, asarray_like(np.eye(matrix.shape[0]), problem.known, dtype=problem.known.dtype))
    lift = 2 * problem.upper - problem.lower
    lifted = matrix + lift * (problem.known @ problem.known.T)
    if is_numpy(lifted):  # SciPy computes the wanted ones only
        return eigh(lifted, subset_by_index=(0, problem.n_wanted - 1), check_finite=False)[1], 0
    return xp.linalg.eigh(lifted)[1][:, : problem.n_wanted], 0


def _chebyshev(problem: Problem) -> tuple[Array, int]:
    """Chebyshev-filtered subspace iteration, the rows of a SciPy matrix put into an order that suits the cache."""
    if not sp.issparse(problem.matrix):
        return _filtered_subspace(problem)
    matrix, order, place = reorder_for_locality(problem.matrix)
    vectors, rounds = _filtered_subspace(problem._replace(matrix=matrix, known=problem.known[order]))
    return vectors[place], rounds


def _filtered_subspace(problem: Problem) -> tuple[Array, int]:
    """Filter, orthonormalise, rotate onto Ritz vectors, until the wanted pairs are within the tolerance."""
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = min(wanted + max(GUARD, wanted // 4), n - problem.known.shape[1])
    block = standard_normal((n, width), problem.rng, problem.known)
    ritz, vectors, worst = _rayleigh_ritz(problem, block)
    low, cut = problem.lower, problem.lower + 0.1 * (sum(ritz) / width - problem.lower)
    degree, rounds = FIRST_DEGREE, 0
    most = problem.max_iter or 40
    with stage("eigenpairs", most) as tick:
        while worst > problem.tol and rounds < most:
            rounds += 1
            vectors = _filter(problem, vectors, degree, low, cut)
            ritz, vectors, worst = _rayleigh_ritz(problem, vectors)
            log.info("eigenpairs: round %d, degree %d, residual %.1e (wanted %.1e)", rounds, degree, worst, problem.tol)
            tick()
            low, cut = ritz[0], min(ritz[-1], problem.upper - 1e-3 * (problem.upper - ritz[0]))
            growth = _Growth(cut, problem.upper)
            degree = _degree(growth(low), growth(ritz[wanted - 1]), 10 * worst / problem.tol, eps(vectors))
    return vectors[:, :wanted], rounds


class _Growth(NamedTuple):
    """How fast the Chebyshev polynomials of the interval [cut, upper] grow with their degree: T_r(x) ~ exp(r g(x))."""

    cut: float
    upper: float

    def __call__(self, x: float) -> float:
        position = (0.5 * (self.upper + self.cut) - x) / (0.5 * (self.upper - self.cut))
        return math.acosh(max(position, 1.0))


def _degree(growth_low: float, growth_wanted: float, gain: float, precision: float) -> int:
    """The degree at which the filter lifts the last wanted value by ``gain`` over the damped ones.

    Not so high that the lowest value outgrows it by what the precision can tell apart: rounding errors along the lowest
    vectors would then fill the whole block.
    """
    enough = math.acosh(max(gain, 2.0)) / max(growth_wanted, 1e-12)
    safe = math.log(0.01 / precision) / max(growth_low - growth_wanted, 1e-12)
    return max(2, math.ceil(min(enough, safe, MAX_DEGREE)))


def _filter(problem: Problem, block: Array, degree: int, low: float, cut: float) -> Array:
    """T_degree of the matrix mapped so that [cut, upper] goes to [-1, 1], scaled to be 1 at ``low``.

    [Zhou & Saad 2007, Alg. 3.2]: Y_{j+1} = 2 σ_{j+1}/e (A - c) Y_j - σ_j σ_{j+1} Y_{j-1}, with c, e the centre and
    half-width of the damped interval; the σ keep the values from overflowing. The known vectors, which the polynomial
    would lift most of all, are projected out again before their rounding errors have grown a thousandfold.
    """
    centre, half_width = 0.5 * (problem.upper + cut), 0.5 * (problem.upper - cut)
    step = _shifted(problem.matrix, centre, half_width)
    growth = _Growth(cut, problem.upper)(problem.lower)
    every = max(1, int(math.log(1000) / max(growth, 1e-3)))
    first = sigma = half_width / (low - centre)
    previous, current = block, step(block) * sigma
    for j in range(1, degree):
        following = 1 / (2 / first - sigma)
        advanced = step(current)
        advanced *= 2 * following
        previous *= sigma * following
        advanced -= previous
        if j % every == 0:
            current, advanced = _without_known(problem, current), _without_known(problem, advanced)
        previous, current, sigma = current, advanced, following
    return current


def _without_known(problem: Problem, block: Array) -> Array:
    if problem.known.shape[1] == 0:
        return block
    return block - problem.known @ (problem.known.T @ block)


def _shifted(matrix: Any, centre: float, half_width: float) -> Callable[[Array], Array]:
    """The product with (A - centre)/half_width; a sparse matrix takes shift and scale into its entries."""
    if is_sparse(matrix):
        data = csr_parts(matrix)[0]
        scaled = with_data(matrix, data / half_width)
        shift = namespace(data).full_like(data[:1], -centre / half_width)
        scaled = add_diagonal(scaled, namespace(data).broadcast_to(shift, (matrix.shape[0],)))
        return lambda Y: matmul(scaled, Y)
    return lambda Y: (matmul(matrix, Y) - centre * Y) / half_width


def _rayleigh_ritz(problem: Problem, block: Array) -> tuple[list[float], Array, float]:
    """The Ritz values and vectors of a block orthogonal to the known vectors, and the worst residual of the wanted."""
    xp = namespace(block)
    block = block / xp.sqrt(xp.sum(block * block, axis=0))[None, :]
    basis, _ = xp.linalg.qr(_without_known(problem, block))
    basis = _without_known(problem, basis)
    product = matmul(problem.matrix, basis)
    small = basis.T @ product
    values, rotation = xp.linalg.eigh(0.5 * (small + small.T))
    vectors, product = basis @ rotation, product @ rotation
    residuals = xp.sqrt(xp.sum((product - vectors * values[None, :]) ** 2, axis=0))
    return to_numpy(values).tolist(), vectors, float(xp.max(residuals[: problem.n_wanted]))


def _host_only(problem: Problem, method: str) -> None:
    if not is_numpy(problem.known):
        raise ValueError(f"method={method!r} runs on NumPy; device arrays take 'chebyshev', 'dense' or 'auto'")


def _lobpcg(problem: Problem) -> tuple[Array, int]:
    _host_only(problem, "lobpcg")
    n, wanted = problem.matrix.shape[0], problem.n_wanted
    width = wanted + GUARD
    if 5 * (width + problem.known.shape[1]) > n:  # beyond which SciPy's blocks do not fit
        return _dense(problem)
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
    if problem.n_wanted + problem.known.shape[1] >= problem.matrix.shape[0] - 1:  # no room for Lanczos vectors
        return _dense(problem)
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
