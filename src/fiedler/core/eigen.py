"""The smallest eigenpairs of a symmetric matrix, with residuals, on any back end; and A v = λ B v.

``chebyshev`` is the solver for graphs: a block of vectors is filtered by a Chebyshev polynomial that is small on the
unwanted part [cut, upper] of the spectrum and grows fast below it, then orthogonalised and rotated onto Ritz vectors
(Zhou & Saad 2007). It needs products, QR and a small eigenproblem, so one code serves NumPy, torch and CuPy; being a
block method it does not lose repeated eigenvalues, and the null space of a graph, one vector a component, is
supplied exactly and projected out. ``arpack`` (Lanczos), ``lobpcg`` and ``shift_invert`` (Lanczos on a sparse
LU factorisation) are SciPy's; the last one is where ``auto`` turns when the filter stalls: graphs that mix slowly,
such as curves and surfaces, are exactly those whose factors stay sparse. The methods themselves are in `solvers`.

References
----------
Y. Zhou, Y. Saad, "A Chebyshev-Davidson algorithm for large symmetric eigenproblems", SIAM J. Matrix Anal. 29, 2007.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._records import EigenResult
from .._validation import check_int, check_positive, choose, is_foreign
from .backend import Array, asarray_like, eps, fix_signs, namespace, to_numpy
from .solvers import GUARD, SOLVERS, Problem
from .sparse import csr_parts, diagonal, is_nearly_dense, is_sparse, matmul, row_sums, to_scipy, with_data

DENSE_UP_TO = 512  # rows; LAPACK is faster there and has no tolerance to miss
FULL_UP_TO = 5000  # rows; the same for a matrix that is hardly sparse: an LU factorisation would fill up
FULL_FROM = 0.1  # the part of the entries that makes it one; products cost as much as LAPACK from about here
MAX_STALLED_ROUNDS = 15  # rounds after which "auto" calls the Chebyshev filter stalled


@dataclass(frozen=True)
class SpectralForm:
    """A symmetric eigenproblem and what is known of it beforehand.

    ``null_vectors(k)`` gives at most k orthonormal null vectors; eigenvectors are handed back multiplied by
    ``row_scale``.
    """

    matrix: Any
    upper: float
    lower: float = 0.0
    null_vectors: Callable[[int], Array] | None = None
    row_scale: Array | None = None


# ---------------------------------------------------------------------------------------------------- the public door


def smallest_eigenpairs(
    graph_or_matrix: Any,
    k: int,
    *,
    kind: str | None = None,
    method: str = "auto",
    tol: float = 1e-8,
    max_iter: int | None = None,
    random_state: Any = 0,
) -> EigenResult:
    """The ``k`` smallest eigenpairs of a graph's Laplacian, or of a symmetric matrix.

    Parameters
    ----------
    graph_or_matrix : AffinityGraph, sparse matrix, array or LinearOperator
        A graph (its Laplacian of the given ``kind`` is meant) or a symmetric matrix (itself is meant).
    k : int
        How many pairs.
    kind : {'symmetric', 'combinatorial', 'random_walk', 'signed'}, optional
        The Laplacian, for a graph; default 'symmetric'. Vectors of 'random_walk' are D^-1/2 u for the unit vectors u
        of 'symmetric'.
    method : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        'auto' is dense for up to 512 rows (5000 where a tenth of the entries is stored), else Chebyshev, then
        shift-invert if that did not converge.
    tol : float, default=1e-8
        Bound on the residual ‖A u - λ u‖, relative to half the bound on the spectrum (1 for the normalised Laplacians),
        and never below what the precision of the matrix allows.
    max_iter : int, optional
        Rounds of the solver; each has its own default.
    random_state : int, RandomState or None, default=0
        Seeds the first block.

    Returns
    -------
    EigenResult
        ``values`` ascending, ``vectors`` as columns, ``residuals``, ``iterations``, ``converged``, ``method``.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1))
    >>> result = smallest_eigenpairs(path, 2, kind="combinatorial")
    >>> np.round(np.abs(result.values), 4)  # 2 - 2 cos(π j / 4)
    array([0.    , 0.5858])
    >>> np.round(result.vectors[:, 1], 3)  # the Fiedler vector
    array([ 0.653,  0.271, -0.271, -0.653])
    """
    k, tol = check_int(k, "k"), check_positive(tol, "tol")
    max_iter = None if max_iter is None else check_int(max_iter, "max_iter")
    form = _as_form(graph_or_matrix, kind)
    n = form.matrix.shape[0]
    if k > n:
        raise ValueError(f"k={k} eigenpairs were asked of a matrix with {n} rows; ask for at most {n}")
    empty = _empty_block(form)
    known = form.null_vectors(k) if form.null_vectors else empty
    unit = _power_of_two(max(form.upper, -form.lower))
    lower, upper = form.lower / unit, form.upper / unit
    allowed = max(tol, 50 * eps(empty)) * 0.5 * max(upper, -lower)
    problem = Problem(
        _divided(form.matrix, unit), k - known.shape[1], known, lower, upper, allowed, max_iter,
        check_random_state(random_state),
    )  # fmt: skip
    vectors, iterations, method = _solve(problem, method)
    return _finish(form, problem, unit, vectors, iterations, method)


def _power_of_two(bound: float) -> float:
    """The unit to solve in, so that weights of any size are alike: dividing by a power of two is exact."""
    return math.ldexp(1.0, math.frexp(bound)[1]) if bound > 0 else 1.0


def _divided(matrix: Any, unit: float) -> Any:
    if is_sparse(matrix):
        return with_data(matrix, csr_parts(matrix)[0] / unit)
    return matrix * (1 / unit)


def _as_form(source: Any, kind: str | None) -> SpectralForm:
    if hasattr(source, "spectral_form"):
        return source.spectral_form(kind or "symmetric")
    if kind is not None:
        raise ValueError(
            f"kind={kind!r} names a Laplacian of a graph, but a matrix was given; leave kind out for the matrix's own "
            "eigenpairs, or pass AffinityGraph.from_matrix(W)"
        )
    matrix = as_symmetric(source)
    lower, upper = spectral_bounds(matrix)
    return SpectralForm(matrix, upper=upper, lower=lower)


def as_symmetric(source: Any) -> Any:
    """A square, finite matrix of floats: an array, CSR, or an operator if it is large (a small one is written out)."""
    if isinstance(source, spla.LinearOperator):
        matrix = source if source.shape[0] > DENSE_UP_TO else source @ np.eye(source.shape[1])
    elif sp.issparse(source):
        matrix = to_scipy(source)
    else:
        matrix = source if is_sparse(source) or is_foreign(source) else np.asarray(source)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"eigenpairs are defined for a square matrix; got shape {tuple(matrix.shape)}")
    return matrix if isinstance(matrix, spla.LinearOperator) else _finite_floats(matrix)


def _finite_floats(matrix: Any) -> Any:
    data = csr_parts(matrix)[0] if is_sparse(matrix) else matrix
    xp = namespace(data)
    if not xp.isdtype(data.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"eigenpairs are computed for real matrices; got dtype {data.dtype}")
    if not xp.isdtype(data.dtype, "real floating"):
        data = xp.astype(data, xp.float64)
        matrix = with_data(matrix, data) if is_sparse(matrix) else data
    if not bool(xp.all(xp.isfinite(data))):
        raise ValueError("the matrix holds NaN or infinity; remove or fill those entries first")
    if not _is_symmetric(matrix):
        raise ValueError("the matrix is not symmetric; use (A + A.T) / 2 if that is what is meant")
    return matrix


def _is_symmetric(matrix: Any) -> bool:
    """Up to rounding; a sparse matrix on a device is taken at its word."""
    if is_sparse(matrix) and not sp.issparse(matrix):
        return True
    difference = matrix - matrix.T
    entries, gaps = (matrix.data, difference.data) if sp.issparse(matrix) else (matrix, difference)
    xp = namespace(entries)
    largest = lambda values: float(xp.max(xp.abs(values))) if 0 not in values.shape else 0.0  # noqa: E731
    return largest(gaps) <= 1e-6 * largest(entries)


def _empty_block(form: SpectralForm) -> Array:
    """An (n, 0) array of the library, device and dtype that the vectors will have."""
    if form.null_vectors is not None:
        return form.null_vectors(0)
    if isinstance(form.matrix, spla.LinearOperator):
        return np.empty((form.matrix.shape[0], 0))
    data = csr_parts(form.matrix)[0] if is_sparse(form.matrix) else form.matrix
    return asarray_like(np.empty((form.matrix.shape[0], 0)), data, dtype=data.dtype)


def spectral_bounds(matrix: Any) -> tuple[float, float]:
    """Lower and upper bounds of a symmetric spectrum: Gershgorin's discs, or a short Lanczos run for an operator."""
    if isinstance(matrix, spla.LinearOperator):
        ends = spla.eigsh(matrix, k=2, which="BE", tol=1e-2, return_eigenvectors=False)
        margin = 0.05 * float(np.max(np.abs(ends)))
        return float(np.min(ends)) - margin, float(np.max(ends)) + margin
    if is_sparse(matrix):
        data = csr_parts(matrix)[0]
        radius = row_sums(with_data(matrix, namespace(data).abs(data)))
        centres = diagonal(matrix)
    else:
        xp = namespace(matrix)
        radius, centres = xp.sum(xp.abs(matrix), axis=1), xp.linalg.diagonal(matrix)
    xp = namespace(radius)
    off = radius - xp.abs(centres)
    return float(xp.min(centres - off)), float(xp.max(centres + off))


def largest_eigenvalue(
    product: Callable[[Array], Array], start: Array, *, tol: float = 1e-6, n_steps: int = 100
) -> float:
    """A close upper bound of the largest eigenvalue of a symmetric operator, by Lanczos' method, on any back end.

    The Ritz value plus its residual, which bounds the eigenvalue next to it.

    Parameters
    ----------
    product : callable
        v -> A v for arrays of shape (n, 1).
    start : array of shape (n, 1)
        A random vector.
    tol : float, default=1e-6
        Relative residual at which to stop.
    n_steps : int, default=100
        And the most steps, each of which keeps a vector for orthogonalisation.
    """
    xp = namespace(start)
    vector = start / xp.sqrt(xp.sum(start**2))
    basis = [vector]
    diagonals: list[float] = []
    off: list[float] = []
    for step in range(min(n_steps, start.shape[0])):
        image = product(vector)
        diagonals.append(float(xp.sum(vector * image)))
        for _ in range(2):  # once is not enough
            for known in basis:
                image = image - known * xp.sum(known * image)
        length = float(xp.sqrt(xp.sum(image**2)))
        value, residual = _top_ritz(diagonals, off, length)
        if residual <= tol * abs(value) or step + 1 == start.shape[0]:
            break
        vector = image / length
        off.append(length)
        basis.append(vector)
    return value + residual


def _top_ritz(diagonals: list[float], off: list[float], length: float) -> tuple[float, float]:
    """The largest eigenvalue of Lanczos' tridiagonal matrix and the residual of its vector."""
    tridiagonal = np.diag(diagonals) + np.diag(off, 1) + np.diag(off, -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    return float(values[-1]), length * abs(float(vectors[-1, -1]))


def widest_gap(values: np.ndarray) -> int:
    """How many of the ascending values, at least one, come before the widest gap between two of them.

    Examples
    --------
    >>> widest_gap(np.array([0.01, 0.02, 0.5, 0.6]))
    2
    """
    return len(values) if len(values) < 2 else int(np.argmax(np.diff(values))) + 1


def _solve(problem: Problem, method: str) -> tuple[Array, int, str]:
    """Vectors that span the wanted space, by the named method or by the rule of ``auto``."""
    n = problem.matrix.shape[0]
    if problem.n_wanted == 0:
        return problem.known[:, :0], 0, "exact"
    if method != "auto":
        return *choose(SOLVERS, method, option="method")(problem), method
    crowded = is_sparse(problem.matrix) and is_nearly_dense(problem.matrix, FULL_FROM) and n <= FULL_UP_TO
    if n <= DENSE_UP_TO or crowded or 4 * (problem.n_wanted + GUARD) > n:
        return *SOLVERS["dense"](problem), "dense"
    if not sp.issparse(problem.matrix):
        return *SOLVERS["chebyshev"](problem), "chebyshev"
    vectors, rounds = SOLVERS["chebyshev"](problem._replace(max_iter=problem.max_iter or MAX_STALLED_ROUNDS))
    if _worst(problem, vectors) <= problem.tol:
        return vectors, rounds, "chebyshev"
    return *SOLVERS["shift_invert"](problem), "shift_invert"


def _finish(
    form: SpectralForm, problem: Problem, unit: float, found: Array, iterations: int, method: str
) -> EigenResult:
    """Rayleigh quotients, residuals, one order, one sign; a warning when the tolerance was missed."""
    xp = namespace(found)
    vectors = xp.concat([problem.known, found], axis=1)
    values, residuals = _rayleigh(problem.matrix, vectors)
    order = xp.argsort(values, stable=True)
    values, residuals, vectors = values[order], residuals[order], xp.take(vectors, order, axis=1)
    converged = bool(xp.all(residuals <= problem.tol))
    if not converged:
        worst, wanted = float(xp.max(residuals)) * unit, problem.tol * unit
        warnings.warn(
            f"{method} stopped after {iterations} rounds with a residual of {worst:.1e} (wanted {wanted:.1e}); "
            "raise max_iter or tol, or try method='shift_invert'",
            ConvergenceWarning,
            stacklevel=3,
        )
    if form.row_scale is not None:
        vectors = vectors * form.row_scale[:, None]
    return EigenResult(values * unit, fix_signs(vectors), residuals * unit, iterations, converged, method)


def _rayleigh(matrix: Any, vectors: Array) -> tuple[Array, Array]:
    """U'Au and ‖Au - (u'Au) u‖ of each unit column."""
    xp = namespace(vectors)
    product = matmul(matrix, vectors)
    values = xp.sum(vectors * product, axis=0)
    return values, xp.sqrt(xp.sum((product - vectors * values[None, :]) ** 2, axis=0))


def _worst(problem: Problem, vectors: Array) -> float:
    return float(namespace(vectors).max(_rayleigh(problem.matrix, vectors)[1]))


# ------------------------------------------------------------------------------------------- the generalised problem


def generalized_eigenpairs(
    A: Any,
    B: Any,
    k: int,
    *,
    largest: bool = False,
    method: str = "auto",
    tol: float = 1e-8,
    max_iter: int | None = None,
    random_state: Any = 0,
) -> EigenResult:
    """The ``k`` smallest (or largest) pairs of A v = λ B v, A symmetric and B positive definite.

    Parameters
    ----------
    A, B : array, sparse matrix or LinearOperator of shape (n, n)
    k : int
    largest : bool, default=False
        Take the other end of the spectrum (values still ascend).
    method : {'auto', 'dense', 'lobpcg'}, default='auto'
        'dense' reduces by the Cholesky factor of B, on any back end; 'lobpcg' needs products with A and B only.
        'auto' is dense for dense matrices and for up to 512 rows.
    tol, max_iter, random_state
        As in `smallest_eigenpairs`; the tolerance is relative to the largest ``|λ|`` found and ‖Bv‖.

    Returns
    -------
    EigenResult
        Vectors with v'Bv = 1; residuals ‖Av - λBv‖.

    Examples
    --------
    >>> import numpy as np
    >>> result = generalized_eigenpairs(np.diag([1.0, 6.0]), np.diag([1.0, 2.0]), 2)
    >>> result.values
    array([1., 3.])
    """
    A, B = as_symmetric(A), as_symmetric(B)
    n, k, tol = A.shape[0], check_int(k, "k"), check_positive(tol, "tol")
    if A.shape != (n, n) or B.shape != (n, n) or k > n:
        raise ValueError(f"A and B must be square and alike with at least k={k} rows; got {A.shape} and {B.shape}")
    operators = [isinstance(M, spla.LinearOperator) or is_sparse(M) for M in (A, B)]
    if method == "auto":
        method = "lobpcg" if any(operators) and n > DENSE_UP_TO else "dense"
    if method == "lobpcg" and 5 * (k + GUARD) > n:  # beyond which SciPy's blocks do not fit
        method = "dense"
    solve = choose({"dense": _generalized_dense, "lobpcg": _generalized_lobpcg}, method, option="method")
    vectors, iterations = solve(A, B, k, largest, tol, max_iter, check_random_state(random_state))
    xp = namespace(vectors)
    product_a, product_b = matmul(A, vectors), matmul(B, vectors)
    lengths = xp.sqrt(xp.sum(vectors * product_b, axis=0))
    vectors, product_a, product_b = (M / lengths[None, :] for M in (vectors, product_a, product_b))
    values = xp.sum(vectors * product_a, axis=0)
    order = xp.argsort(values, stable=True)
    residuals = xp.sqrt(xp.sum((product_a - product_b * values[None, :]) ** 2, axis=0))
    allowed = max(tol, 50 * eps(vectors)) * float(xp.max(xp.abs(values))) * xp.sqrt(xp.sum(product_b**2, axis=0))
    converged = method == "dense" or bool(xp.all(residuals <= allowed))
    if not converged:
        warnings.warn(
            f"lobpcg stopped after {iterations} rounds with a residual of {float(xp.max(residuals)):.1e}; "
            "raise max_iter or tol, or use method='dense'",
            ConvergenceWarning,
            stacklevel=2,
        )
    vectors = fix_signs(xp.take(vectors, order, axis=1))
    return EigenResult(values[order], vectors, residuals[order], iterations, converged, method)


def _generalized_dense(
    A: Any, B: Any, k: int, largest: bool, tol: float, max_iter: int | None, rng: np.random.RandomState
) -> tuple[Array, int]:
    """B = CC', then the ordinary problem C^-1 A C^-T y = λ y and v = C^-T y."""
    A, B = _densify(A), _densify(B)
    xp = namespace(A)
    try:
        factor = xp.linalg.cholesky(B)
    except Exception as error:  # every library has its own name for it
        raise ValueError("B is not positive definite; add a small ridge to its diagonal") from error
    if not bool(xp.all(xp.isfinite(factor))):
        raise ValueError("B is not positive definite; add a small ridge to its diagonal")
    half = xp.linalg.solve(factor, A)
    reduced = xp.linalg.solve(factor, half.T)
    _, rotated = xp.linalg.eigh(0.5 * (reduced + reduced.T))
    chosen = rotated[:, -k:] if largest else rotated[:, :k]
    return xp.linalg.solve(factor.T, chosen), 0


def _densify(matrix: Any) -> Array:
    if isinstance(matrix, spla.LinearOperator) or sp.issparse(matrix):
        return np.asarray(matrix @ np.eye(matrix.shape[0], dtype=matrix.dtype))
    return matrix.to_dense() if is_sparse(matrix) and hasattr(matrix, "to_dense") else matrix


def _generalized_lobpcg(
    A: Any, B: Any, k: int, largest: bool, tol: float, max_iter: int | None, rng: np.random.RandomState
) -> tuple[Array, int]:
    start = rng.standard_normal((A.shape[0], k + GUARD))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, vectors, history = spla.lobpcg(
            A, start, B=B, tol=tol, largest=largest, maxiter=max_iter or 1000, retResidualNormsHistory=True
        )
    order = np.argsort(values)
    return to_numpy(vectors)[:, order[-k:] if largest else order[:k]], len(history)
