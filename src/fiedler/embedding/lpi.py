"""LPI: locality preserving indexing, a linear map under which neighbouring documents stay close. Paper key: lpi.

    minimise  Σ_ij S_ij (a'x_i - a'x_j)²   subject to   a'X̂DX̂'a = 1

for rows x̂ = x - x̄ centred by their D-weighted mean x̄ = Σ d_i x_i / Σ d_i. Solutions satisfy X̂LX̂'a = λX̂DX̂'a (Eq. 1),
equivalently X̂SX̂'a = (1-λ)X̂DX̂'a, and y = a'x̂ maps any document, including new ones. ``center=False`` is the original
LPI (section 2), with x̂ = x; if a linear function of the terms is constant on all documents, it is then the first
direction, of no use (Theorem 1).

With B = D^½X̂ = PΓR' (rows are documents here) and N = D^-½SD^-½ the problem is that of the symmetric matrix P'NP: the
eigenmap of the graph, restricted to functions that are linear in the terms. There are two solvers (`LPI_SOLVERS`):

- ``svd``: the exact solution, with P and Γ from the smaller of the two products BB' and B'B, without singular values
  below 10⁻⁵ of the largest (step 3). Cubic in the smaller of the numbers of documents and terms.
- ``regression``: the eigenmap Y of the graph, then the map a with a'x̂ ≈ y by damped least squares weighted by D
  [Cai, He & Han 2007], and the best D-normalised directions within its span. Linear in the non-zeros; the same map as
  ``svd`` when there are as many independent terms as documents (Theorem 2).

With pairs [lpi, section 6, question 3], must-links are edges of S, and cannot-links a graph of their own, whose
Laplacian L⁻ is in the denominator, as in `graph.cuts.cannot_link_eigenpairs`:

    X̂LX̂'a = λX̂(D + L⁻)X̂'a,   equivalently   X̂(S + L⁻)X̂'a = (1-λ)X̂(D + L⁻)X̂'a

Centring by D removes the trivial solution here too, since (D + L⁻)1 = D1.

Both keep a sparse matrix sparse. ``alpha`` adds αI to X̂DX̂' in both, with α in units of its mean eigenvalue over the
documents. Differences from the authors' programs: vectors stay D-normalised, as in the paper, and rows are not centred
by their unweighted mean.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from array_api_compat import device
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState
from .._validation import (
    Check,
    check_bool,
    check_data,
    check_nonnegative,
    check_positive,
    check_seed,
    integer,
    none_or,
    one_of,
)
from ..core.arrays import (
    Array,
    asarray_like,
    convert_rows,
    fix_signs,
    is_numpy,
    is_on_host,
    namespace,
    normalize_rows,
    sq_row_norms,
    to_numpy,
)
from ..core.eigen import generalized_eigenpairs, widest_gap
from ..core.fitting import fit_method
from ..core.linear import least_squares
from ..core.parallel import check_memory
from ..core.sparse import csr_parts, matmul, to_scipy
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.constraints import ConstraintsLike, PairwiseConstraints, add_constraints, check_constraints, split_by_sign
from ..graph.cuts import cannot_link_eigenpairs
from ..graph.estimator import GraphEstimatorMixin
from ..graph.labels import known_labels
from ..graph.recipes import KNNGraph, build_affinity, learns_from_constraints
from ..graph.weights import weigh_graph
from .eigenmaps import EmbeddingMixin, drop_constant, eigenmap

SINGULAR_VALUE_CUTOFF = 1e-5  # share of the largest singular value, below which a direction is considered noise
SVD_BYTES = 32  # peak memory per entry of the smaller of the two products
SVD_MAX_SIZE = 2_000  # of the smaller of the numbers of documents and terms: solver='auto' is exact up to here
MAX_AUTO_COMPONENTS = 30  # eigenvalues among which the widest gap is sought when n_components is None
EQUAL_ROWS_SPREAD = 1e-12  # share of the mean squared length, below which centred rows are zero up to rounding


class CenteredRows(NamedTuple):
    """Rows minus ``mean`` (zero without centring) as an operator; for a sparse matrix, products are shifted instead."""

    X: Array
    transposed: Array  # X' in the format that multiplies fastest
    origin: Array  # (d,), subtracted from the rows of X in products; zero for dense rows, which are centred in place
    mean: Array  # (d,)

    def apply(self, a: Array) -> Array:
        """Return X̂a."""
        return matmul(self.X, a) - self.origin[None, :] @ a

    def adjoint(self, z: Array) -> Array:
        """Return X̂'z."""
        return matmul(self.transposed, z) - self.origin[:, None] * namespace(z).sum(z, axis=0)[None, :]

    def gram(self) -> Array:
        """Return X̂X̂' as a dense array."""
        product = _dense(self.X @ self.transposed)
        shift = matmul(self.X, self.origin[:, None])
        return product - shift - shift.T + self.origin @ self.origin

    def scatter(self, weights: Array) -> Array:
        """Return X̂'diag(w)X̂ as a dense array, for the weights by which the rows are centred."""
        X = sp.diags_array(weights) @ self.X if sp.issparse(self.X) else weights[:, None] * self.X
        return _dense(self.transposed @ X) - namespace(weights).sum(weights) * self.origin[:, None] * self.origin

    def sq_lengths(self) -> Array:
        """Return ‖x̂‖² of every row."""
        return sq_row_norms(self.X) - 2 * matmul(self.X, self.origin[:, None])[:, 0] + self.origin @ self.origin


def _dense(product: Any) -> Array:
    return product.toarray() if sp.issparse(product) else product


def center_rows(X: Array, degrees: Array, *, center: bool = True) -> CenteredRows:
    """Centre the rows by their D-weighted mean [lpi, step 3], or leave them as they are [lpi, section 2]."""
    xp = namespace(degrees)
    transposed = sp.csr_array(X.T) if sp.issparse(X) else X.T
    mean = matmul(transposed, degrees[:, None])[:, 0] / xp.sum(degrees)
    if not center:
        return CenteredRows(X, transposed, 0 * mean, 0 * mean)
    if sp.issparse(X):
        return CenteredRows(X, transposed, mean, mean)
    centered = X - mean
    return CenteredRows(centered, centered.T, xp.zeros_like(mean), mean)


class LinearMap(NamedTuple):
    """Directions a as columns, their eigenvalues λ, and how the solver ended."""

    directions: Array  # (d, k)
    values: Array  # (k,)
    n_iter: int = 0
    converged: bool = True


class _LPIProblem(NamedTuple):
    """The input of both solvers."""

    rows: CenteredRows
    graph: AffinityGraph  # S
    repel: AffinityGraph | None  # cannot-links
    degrees: Array  # of S
    alpha: float  # in the unit of X̂'DX̂
    tol: float
    rng: np.random.RandomState
    center: bool = True


def _svd(problem: _LPIProblem, n_components: int) -> LinearMap:
    """Solve Eq. 1 exactly, in the basis of the singular vectors of D^½X̂, for at most as many directions as the rank."""
    rows, root = problem.rows, namespace(problem.degrees).sqrt(problem.degrees)
    xp, (n, m) = namespace(root), rows.X.shape
    if is_on_host(root):
        purpose = f"solver='svd' on {n} rows and {m} columns"
        check_memory(SVD_BYTES * min(n, m) ** 2, purpose, "use solver='regression'")
    values, vectors = xp.linalg.eigh(
        root[:, None] * rows.gram() * root[None, :] if n <= m else rows.scatter(problem.degrees)
    )
    values, vectors = _drop_small(values, vectors, SINGULAR_VALUE_CUTOFF**2)
    singular = xp.sqrt(values)
    if n <= m:  # P itself; R = B'PΓ⁻¹
        basis, to_features = vectors, lambda c: rows.adjoint(root[:, None] * (vectors @ (c / singular[:, None])))
    else:  # R itself; P = BRΓ⁻¹
        basis, to_features = root[:, None] * rows.apply(vectors / singular[None, :]), lambda c: vectors @ c
    inverse_root = xp.where(root > 0, 1 / xp.where(root > 0, root, 1), 0)
    smoothed = inverse_root[:, None] * _multiply_by_weights(problem.graph, inverse_root[:, None] * basis)  # NP
    damped = xp.sqrt(singular**2 + problem.alpha)
    shrink = singular / damped
    affinity = shrink[:, None] * (basis.T @ smoothed) * shrink[None, :]
    repulsion = _repulsion(problem, inverse_root[:, None] * basis * shrink[None, :])
    beta, inner = _largest_eigenpairs(affinity, repulsion, n_components)
    return LinearMap(to_features(inner / damped[:, None]), 1 - beta)


def _regression(problem: _LPIProblem, n_components: int) -> LinearMap:
    """Fit the eigenmap of the graph by a linear function of the rows, by damped least squares."""
    rows, degrees = problem.rows, problem.degrees
    xp = namespace(degrees)
    root = xp.sqrt(degrees)[:, None]
    target = root * asarray_like(_eigenmap(problem, n_components), degrees, dtype=degrees.dtype)
    fit = least_squares(
        lambda a: root * rows.apply(a), lambda z: rows.adjoint(root * z), target, damp=problem.alpha, tol=problem.tol
    )
    solution = _rayleigh_ritz(problem, fit.solution)
    directions, values = solution.directions[:, :n_components], solution.values[:n_components]
    return LinearMap(directions, values, n_iter=fit.iterations, converged=fit.converged)


def _eigenmap(problem: _LPIProblem, n_components: int) -> np.ndarray:
    """Return the eigenmap on the nodes that have edges; the others have weight zero in D and lie at the origin."""
    # Without centring, the trivial eigenvector, which is constant, is among the targets.
    graph, degrees = problem.graph, to_numpy(problem.graph.degrees)
    linked = np.flatnonzero(degrees > 0)
    if len(linked) < len(degrees):
        W = to_scipy(graph.weights)[linked][:, linked]
        graph = AffinityGraph(W, loops=None if graph.loops is None else to_numpy(graph.loops)[linked])
    k = min(n_components, len(linked) - 1)
    if problem.repel is not None:
        W = to_scipy(graph.weights) - to_scipy(problem.repel.weights)[linked][:, linked]
        signed = AffinityGraph(sp.csr_array(W), signed=True)
        functions = cannot_link_eigenpairs(signed, k + 1, kind="random_walk", random_state=problem.rng).vectors
        if problem.center:  # orthogonal in D + L⁻, and (D + L⁻)1 = D1
            functions = drop_constant(functions, k + 1, degrees[linked])
    else:
        functions = eigenmap(graph, k, random_state=problem.rng).vectors
        if not problem.center:
            functions = np.column_stack([np.full(len(linked), degrees.sum() ** -0.5), to_numpy(functions)])
    target = np.zeros((len(degrees), functions.shape[1]))
    target[linked] = to_numpy(functions)
    return target


def _rayleigh_ritz(problem: _LPIProblem, directions: Array) -> LinearMap:
    """Solve Eq. 1 within the span of the given directions, as many of them as are independent."""
    Y, degrees = problem.rows.apply(directions), problem.degrees
    xp = namespace(Y)
    spread = Y.T @ (degrees[:, None] * Y) + problem.alpha * (directions.T @ directions)
    affinity, repulsion = Y.T @ _multiply_by_weights(problem.graph, Y), _repulsion(problem, Y)
    if repulsion is not None:
        spread, affinity = spread + repulsion, affinity + repulsion
    values, vectors = xp.linalg.eigh(spread)
    values, vectors = _drop_small(values, vectors, SINGULAR_VALUE_CUTOFF)
    white = vectors / xp.sqrt(values)[None, :]
    beta, inner = xp.linalg.eigh(white.T @ affinity @ white)
    return LinearMap(directions @ (white @ xp.flip(inner, axis=1)), 1 - xp.flip(beta))


def _repulsion(problem: _LPIProblem, Y: Array) -> Array | None:
    """Return Y'L⁻Y, the variation of functions on the rows over the cannot-links; None if there are none."""
    if problem.repel is None:
        return None
    degrees = asarray_like(to_numpy(problem.repel.degrees), Y, dtype=Y.dtype)
    return Y.T @ (degrees[:, None] * Y - _multiply_by_weights(problem.repel, Y))


def _largest_eigenpairs(affinity: Array, repulsion: Array | None, k: int) -> tuple[Array, Array]:
    """Return the ``k`` largest β of (A + E)u = β(I + E)u, descending, with u'(I + E)u = 1; E = 0 without repulsion."""
    xp, k = namespace(affinity), min(k, affinity.shape[0])
    if repulsion is None:
        beta, vectors = xp.linalg.eigh(affinity)
    else:
        mass = repulsion + xp.eye(repulsion.shape[0], dtype=repulsion.dtype, device=device(repulsion))
        pairs = generalized_eigenpairs(affinity + repulsion, mass, k, largest=True, method="dense")
        beta, vectors = pairs.values, pairs.vectors
    return xp.flip(beta)[:k], xp.flip(vectors, axis=1)[:, :k]


def _drop_small(values: Array, vectors: Array, share: float) -> tuple[Array, Array]:
    """Keep the ascending eigenpairs whose value is above a share of the largest."""
    xp = namespace(values)
    first = int(xp.sum(xp.astype(values <= max(share * float(values[-1]), 0.0), xp.int64)))
    return values[first:], vectors[:, first:]


def _multiply_by_weights(graph: AffinityGraph, F: Array) -> Array:
    """Return S F, self-loops included, in the precision of the weights."""
    xp, data = namespace(F), csr_parts(graph.weights)[0]
    weights_on_host = is_numpy(data) and not is_numpy(F)  # a back end without sparse matrices
    product = xp.astype(matmul(graph.weights, F if weights_on_host else xp.astype(F, data.dtype)), F.dtype)
    if graph.loops is None:
        return product
    return product + asarray_like(to_numpy(graph.loops), F, dtype=F.dtype)[:, None] * F


def _check_sums(rows: Array, degrees: Array) -> None:
    """Raise an error if Σ d_i ‖x_i‖² may overflow: weights such as inner products grow with the rows."""
    xp, sq_lengths = namespace(degrees), sq_row_norms(rows)
    bound = 8.0 * rows.shape[0] * float(xp.max(degrees)) * float(xp.max(sq_lengths))
    if bound > float(xp.finfo(degrees.dtype).max):
        longest, hint = float(xp.max(sq_lengths)) ** 0.5, "scale X down, or use normalize=True"
        message = f"X has rows of length {longest:.1e}, whose weighted squares overflow {degrees.dtype}"
        raise InputError(message, hint, code="sums_overflow", largest=longest)


LPI_SOLVERS = {"svd": _svd, "regression": _regression}


class LPI(GraphEstimatorMixin, EmbeddingMixin, BaseEstimator):
    """Locality preserving indexing: few coordinates, linear in the terms, in which related documents are close.

    Parameters
    ----------
    n_components : int, optional
        The number of dimensions. By default the number of eigenvalues before the widest gap among the first thirty,
        which is k - 1 for k well separated topics; with :class:`LabelGraph`, the number of classes minus one.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph or how to build it; None is ``KNNGraph(15, weight="dot")``, as in the paper, for rows of length one.
        :class:`LabelGraph` makes LPI supervised or semi-supervised.
    solver : {'auto', 'svd', 'regression'}, default='auto'
        'svd' is exact, 'regression' is linear in the non-zeros; 'auto' is 'svd' for up to 2,000 documents or terms.
    alpha : float, default=0.0
        Ridge on the map, in units of the mean of d_i ‖x_i - x̄‖². If there are few documents for the number of terms, a
        small ridge such as 0.1 makes the map of new documents more stable.
    normalize : bool, default=False
        Whether to scale rows to unit length first: documents and embeddings differ by direction.
    center : bool, default=True
        Whether to subtract the D-weighted mean of the rows. False is the original LPI, whose first direction is often
        constant on all documents.
    tol : float, default=1e-2
        Tolerance of 'regression' on the gradient of the least squares, relative to its initial value.
    random_state : int, RandomState or None, default=None
        Random seed or generator of the eigensolver.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map W', D-normalised: W'(X̂'DX̂ + αI)W = I for rows X̂; with cannot-links D + L⁻ is in the place of D.
    mean_ : array of shape (n_features,)
        The D-weighted mean of the rows; zeros without centring.
    eigenvalues_ : array of shape (n_components,)
        λ of Eq. 1, including the ridge, ascending.
    n_iter_, converged_ : int, bool
        Iterations of the least squares and whether they met ``tol``; 0 and True for 'svd'.
    embedding_ : array of shape (n_samples, n_components)
        The coordinates of the training rows.
    solver_ : str
        The solver that was used.
    graph_ : AffinityGraph
        The graph on the training rows; must-links are edges, cannot-links edges of negative weight.
    n_features_in_ : int
        The number of features seen during fit.

    References
    ----------
    D. Cai, X. He, J. Han, "Document clustering using locality preserving indexing", IEEE Transactions on Knowledge and
    Data Engineering 17, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from fiedler import LPI
    >>> X = normalize(load_digits().data)
    >>> model = LPI(n_components=9).fit(X[:1000])
    >>> model.transform(X[1000:]).shape
    (797, 9)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_components": none_or(integer()),
        "solver": one_of(["auto", *LPI_SOLVERS]),
        "alpha": check_nonnegative,
        "normalize": check_bool,
        "center": check_bool,
        "tol": check_positive,
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_components: int | None = None,
        graph: GraphLike = None,
        *,
        solver: Literal["auto", "svd", "regression"] = "auto",
        alpha: float = 0.0,
        normalize: bool = False,
        center: bool = True,
        tol: float = 1e-2,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.solver = solver
        self.alpha = alpha
        self.normalize = normalize
        self.center = center
        self.tol = tol
        self.random_state = random_state

    @fit_method
    def fit(self, X: MatrixLike, y: LabelsLike | None = None, *, constraints: ConstraintsLike = None) -> Self:
        """Learn the map from documents.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n,), optional
            For graphs built from labels, such as :class:`LabelGraph`.
        constraints : PairwiseConstraints, optional
            Must-links become edges; cannot-links repel, with solver 'regression' for up to 4000 rows. ``hard`` makes no
            difference: a linear map gives different coordinates to different documents.
        """
        self._require_rows(X)
        rows = check_data(X, estimator=self, min_samples=2)
        return self._fit(rows, y, allow_fewer=False, pairs=check_constraints(constraints, rows))

    def _fit(
        self,
        rows: Array,
        y: LabelsLike | None,
        *,
        allow_fewer: bool,
        weights: np.ndarray | None = None,
        pairs: PairwiseConstraints | None = None,
    ) -> Self:
        """Fit to validated rows, with fewer dimensions if ``allow_fewer`` and the rows do not have enough."""
        # A disconnected graph is common for texts and for classes, and no reason to warn: the map connects it.
        recipe, rows = self._recipe(), self._scale(rows)
        graph, self._fit_recipe = build_affinity(recipe, rows, y, pairs)
        if graph.has_negative_weights:
            message = "LPI needs non-negative weights, but the graph has negative ones"
            hint = "use weights that are not negative, such as KNNGraph(weight='heat')"
            raise InputError(message, hint, code="negative_weights", parameter="graph")
        if pairs is not None and not learns_from_constraints(recipe):
            graph = add_constraints(graph, pairs)
        graph = weigh_graph(graph, weights)
        self.n_features_in_ = rows.shape[1]
        self._fit_X = None  # transform does not need the training rows
        self.solver_ = self._choose_solver(rows)
        problem = self._problem(rows, graph)
        n_components, (n, m) = self._n_requested(recipe, y, rows.shape[0]), rows.shape
        max_components = min(n - 1 if self.center else n, m)
        if not allow_fewer and (n_components or 1) > max_components:
            message = f"n_components={n_components} is too many for {n} rows of n_features={m}"
            hint = f"choose at most {max_components}"
            sizes = {"n_directions": max_components, "n_components": n_components}
            raise InputError(message, hint, code="too_many_components", **sizes)
        solution = LPI_SOLVERS[self.solver_](problem, min(n_components or MAX_AUTO_COMPONENTS, max_components))
        n_components, rank = n_components or widest_gap(to_numpy(solution.values)), solution.values.shape[0]
        if rank < n_components and not allow_fewer:
            message = (
                f"the rows have {rank} independent directions (singular values above {SINGULAR_VALUE_CUTOFF:g} of "
                f"the largest), but n_components={n_components}"
            )
            hint = "choose fewer components, or scale the columns to similar ranges"
            raise InputError(message, hint, code="too_many_components", n_directions=rank, n_components=n_components)
        self._store(solution, min(n_components, rank), problem, rows)
        self.graph_ = graph
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the coordinates (x - mean) W of documents, including new ones."""
        return self._embed(X)

    def _embed(self, X: MatrixLike) -> Array:
        """Return the coordinates as `transform` does, but always as an array, never as a data frame."""
        check_is_fitted(self)
        return self._embed_validated(check_data(X, estimator=self, reset=False))

    def _embed_validated(self, rows: Array) -> Array:
        return self._project(self._scale(rows if sp.issparse(rows) else convert_rows(rows, self.components_)))

    def _scale(self, rows: Array) -> Array:
        return normalize_rows(rows) if self.normalize else rows

    def _project(self, X: Array) -> Array:
        """Return (x - x̄)W; a sparse matrix stays sparse. [lpi, step 4]"""
        return matmul(X, self.components_.T) - self.mean_[None, :] @ self.components_.T

    def _recipe(self) -> Any:
        """Return the graph parameter, or the paper's recipe if it is None."""
        return KNNGraph(15, weight="dot") if self.graph is None else self.graph

    def _choose_solver(self, rows: Array) -> str:
        if self.solver == "auto":
            return "svd" if min(rows.shape) <= SVD_MAX_SIZE else "regression"
        return self.solver

    def _problem(self, rows: Array, graph: AffinityGraph) -> _LPIProblem:
        """Centre the rows, in double precision for the exact solver, and collect the other input of the solver."""
        xp = namespace(rows)
        if self.solver_ == "svd":
            rows = rows.astype(np.float64) if sp.issparse(rows) else xp.astype(rows, xp.float64)
        entries = rows.data if sp.issparse(rows) else rows
        graph, repel = split_by_sign(graph) if graph.has_negative_weights else (graph, None)
        degrees = asarray_like(to_numpy(graph.degrees), entries, dtype=entries.dtype)
        if not bool(xp.any(degrees > 0)):
            message = "the graph has no edges, so no direction keeps neighbours together"
            raise InputError(message, "use more neighbours", code="no_edges", parameter="graph")
        _check_sums(rows, degrees)
        centered = center_rows(rows, degrees, center=self.center)
        mean_eigenvalue = float(degrees @ centered.sq_lengths()) / rows.shape[0]
        if mean_eigenvalue <= EQUAL_ROWS_SPREAD * float(degrees @ sq_row_norms(rows)) / rows.shape[0]:
            problem = "all rows of X are equal, so there is no direction to find"
            raise InputError(problem, "check the data", code="equal_rows")
        alpha, rng = float(self.alpha) * mean_eigenvalue, check_seed(self.random_state)
        return _LPIProblem(centered, graph, repel, degrees, alpha, float(self.tol), rng, bool(self.center))

    def _n_requested(self, recipe: Any, y: LabelsLike | None, n: int) -> int | None:
        """Return ``n_components`` or, for a graph of labels, the number of classes, minus one if centred; else None."""
        if self.n_components is not None:
            return self.n_components
        if y is None or not getattr(recipe, "uses_labels", False):
            return None
        return max(len(np.unique(known_labels(y, n)[1])) - int(self.center), 1)

    def _store(self, solution: LinearMap, n_components: int, problem: _LPIProblem, rows: Array) -> None:
        directions = fix_signs(solution.directions[:, :n_components])
        xp = namespace(directions)
        dtype = (rows.data if sp.issparse(rows) else rows).dtype
        self.components_ = xp.astype(directions, dtype).T
        self.mean_, self.eigenvalues_ = xp.astype(problem.rows.mean, dtype), solution.values[:n_components]
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self.embedding_ = self._project(rows)
