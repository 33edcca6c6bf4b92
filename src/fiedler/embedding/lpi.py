"""LPI: locality preserving indexing, a linear map under which neighbouring documents stay close. Paper key: lpi.

    minimise  Σ_ij S_ij (a'x_i - a'x_j)²   subject to   a'X̂DX̂'a = 1

for rows x̂ = x - x̄ measured from their D-weighted mean x̄ = Σ d_i x_i / Σ d_i. Solutions satisfy X̂LX̂'a = λX̂DX̂'a (Eq. 1),
equivalently X̂SX̂'a = (1-λ)X̂DX̂'a, and y = a'x̂ places any document, seen or not.

With B = D^½X̂ = PΓR' (rows are documents here) and N = D^-½SD^-½ the problem is that of the symmetric matrix P'NP: the
eigenmap of the graph, restricted to functions that are linear in the terms. Two solvers, rows of `SOLVERS`:

- ``svd``: exactly that, P and Γ from the smaller of the two products BB' and B'B, singular values below 10⁻⁵ of the
  largest left out (step 3). Cubic in the smaller of documents and terms.
- ``regression``: the eigenmap Y of the graph, then the map a with a'x̂ ≈ y by damped least squares weighted by D
  [Cai, He & Han 2007], and the best D-normalised directions within it. Linear in the non-zeros; the same map as ``svd``
  when there are as many independent terms as documents (Theorem 2). A sparse matrix is never filled by either.

``alpha`` adds αI to X̂DX̂' in both, α in units of its mean eigenvalue over the documents.
Where we differ from the authors' programs: vectors stay D-normalised, as in the paper, and rows are not centred by
their plain mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_nonnegative, check_positive, choose
from ..core.backend import Array, asarray_like, convert_like, fix_signs, is_numpy, namespace, to_numpy
from ..core.eigen import widest_gap
from ..core.linear import least_squares
from ..core.progress import report_progress
from ..core.rows import sq_row_norms
from ..core.sparse import csr_parts, matmul, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.estimator import GraphEstimatorMixin
from ..graph.labels import known_labels
from ..graph.recipes import KNNGraph
from .eigenmaps import eigenmap

CUT = 1e-5  # of the largest singular value: below it a direction is noise
EXACT_UP_TO = 2_000  # of the smaller of documents and terms, for solver='auto'
MOST_AUTO = 30  # directions looked at when n_components is to be found


class Centred(NamedTuple):
    """Rows measured from a point, as an operator: a sparse matrix keeps its zeros and a shift."""

    X: Array
    transposed: Array  # X' as it is best multiplied
    origin: Array  # (d,), what the rows shown to `apply` are measured from: zero for dense ones, which are moved
    mean: Array  # (d,)

    def apply(self, a: Array) -> Array:
        """X̂a."""
        return matmul(self.X, a) - self.origin[None, :] @ a

    def adjoint(self, z: Array) -> Array:
        """X̂'z."""
        return matmul(self.transposed, z) - self.origin[:, None] * namespace(z).sum(z, axis=0)[None, :]

    def gram(self) -> Array:
        """X̂X̂', dense."""
        product = _dense(self.X @ self.transposed)
        shift = matmul(self.X, self.origin[:, None])
        return product - shift - shift.T + self.origin @ self.origin

    def scatter(self, weights: Array) -> Array:
        """X̂'diag(w)X̂ for weights whose mean the origin is, dense."""
        X = sp.diags_array(weights) @ self.X if sp.issparse(self.X) else weights[:, None] * self.X
        return _dense(self.transposed @ X) - namespace(weights).sum(weights) * self.origin[:, None] * self.origin

    def sq_lengths(self) -> Array:
        """‖x̂‖² of every row."""
        return sq_row_norms(self.X) - 2 * matmul(self.X, self.origin[:, None])[:, 0] + self.origin @ self.origin


def _dense(product: Any) -> Array:
    return product.toarray() if sp.issparse(product) else product


def centred_by(X: Array, degrees: Array) -> Centred:
    """Rows measured from their D-weighted mean. [lpi, step 3]"""
    xp = namespace(degrees)
    transposed = sp.csr_array(X.T) if sp.issparse(X) else X.T
    mean = matmul(transposed, degrees[:, None])[:, 0] / xp.sum(degrees)
    if sp.issparse(X):
        return Centred(X, transposed, mean, mean)
    moved = X - mean
    return Centred(moved, moved.T, xp.zeros_like(mean), mean)


class LinearMap(NamedTuple):
    """Directions a as columns, the λ of each, and how they were reached."""

    directions: Array  # (d, k)
    values: Array  # (k,)
    n_iter: int = 0
    converged: bool = True


class _Problem(NamedTuple):
    """What both solvers are given."""

    rows: Centred
    graph: AffinityGraph
    degrees: Array
    alpha: float  # in the unit of X̂'DX̂
    tol: float
    rng: np.random.RandomState


# ------------------------------------------------------------------------------------------------------- the solvers


def _svd(problem: _Problem, n_components: int) -> LinearMap:
    """Eq. 1 in the coordinates of the singular vectors of D^½X̂: exact. As many directions as asked, or as the rank."""
    rows, root = problem.rows, namespace(problem.degrees).sqrt(problem.degrees)
    xp, (n, m) = namespace(root), rows.X.shape
    values, vectors = xp.linalg.eigh(
        root[:, None] * rows.gram() * root[None, :] if n <= m else rows.scatter(problem.degrees)
    )
    values, vectors = _above(values, vectors, CUT**2)
    singular = xp.sqrt(values)
    if n <= m:  # P itself; R = B'PΓ⁻¹
        basis, back = vectors, lambda c: rows.adjoint(root[:, None] * (vectors @ (c / singular[:, None])))
    else:  # R itself; P = BRΓ⁻¹
        basis, back = root[:, None] * rows.apply(vectors / singular[None, :]), lambda c: vectors @ c
    inverse_root = xp.where(root > 0, 1 / xp.where(root > 0, root, 1), 0)
    walk = inverse_root[:, None] * _products(problem.graph, inverse_root[:, None] * basis)
    damped = xp.sqrt(singular**2 + problem.alpha)
    shrink = singular / damped
    beta, inner = xp.linalg.eigh(shrink[:, None] * (basis.T @ walk) * shrink[None, :])
    beta, inner = xp.flip(beta)[:n_components], xp.flip(inner, axis=1)[:, :n_components]
    return LinearMap(back(inner / damped[:, None]), 1 - beta)


def _regression(problem: _Problem, n_components: int) -> LinearMap:
    """The eigenmap of the graph as a linear function of the rows, by damped least squares."""
    rows, degrees = problem.rows, problem.degrees
    xp = namespace(degrees)
    root = xp.sqrt(degrees)[:, None]
    target = root * asarray_like(_eigenmap(problem, n_components), degrees, dtype=degrees.dtype)
    fit = least_squares(
        lambda a: root * rows.apply(a), lambda z: rows.adjoint(root * z), target, damp=problem.alpha, tol=problem.tol
    )
    return _rayleigh_ritz(problem, fit.solution)._replace(n_iter=fit.iterations, converged=fit.converged)


def _eigenmap(problem: _Problem, n_components: int) -> np.ndarray:
    """The eigenmap on the nodes that have edges; the others, whose weight in D is zero, lie at the origin."""
    graph, degrees = problem.graph, to_numpy(problem.graph.degrees)
    joined = np.flatnonzero(degrees > 0)
    if len(joined) < len(degrees):
        W = to_scipy(graph.weights)[joined][:, joined]
        graph = AffinityGraph(W, loops=None if graph.loops is None else to_numpy(graph.loops)[joined])
    target = np.zeros((len(degrees), min(n_components, len(joined) - 1)))
    target[joined] = to_numpy(eigenmap(graph, target.shape[1], random_state=problem.rng).vectors)
    return target


def _rayleigh_ritz(problem: _Problem, directions: Array) -> LinearMap:
    """The solutions of Eq. 1 within the span of some directions, as many as are independent."""
    Y, degrees = problem.rows.apply(directions), problem.degrees
    xp = namespace(Y)
    spread = Y.T @ (degrees[:, None] * Y) + problem.alpha * (directions.T @ directions)
    values, vectors = xp.linalg.eigh(spread)
    values, vectors = _above(values, vectors, CUT)
    white = vectors / xp.sqrt(values)[None, :]
    beta, inner = xp.linalg.eigh(white.T @ (Y.T @ _products(problem.graph, Y)) @ white)
    return LinearMap(directions @ (white @ xp.flip(inner, axis=1)), 1 - xp.flip(beta))


def _above(values: Array, vectors: Array, share: float) -> tuple[Array, Array]:
    """The eigenpairs, ascending, whose value is above a share of the largest."""
    xp = namespace(values)
    first = int(xp.sum(xp.astype(values <= max(share * float(values[-1]), 0.0), xp.int64)))
    return values[first:], vectors[:, first:]


def _products(graph: AffinityGraph, F: Array) -> Array:
    """S F, the self-loops included, in the precision of the weights."""
    xp, data = namespace(F), csr_parts(graph.weights)[0]
    apart = is_numpy(data) and not is_numpy(F)  # a back end without sparse matrices
    product = xp.astype(matmul(graph.weights, F if apart else xp.astype(F, data.dtype)), F.dtype)
    return (
        product if graph.loops is None else product + asarray_like(to_numpy(graph.loops), F, dtype=F.dtype)[:, None] * F
    )


SOLVERS = {"svd": _svd, "regression": _regression}


# --------------------------------------------------------------------------------------------------------- the class


class LPI(GraphEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Locality preserving indexing: few coordinates, linear in the terms, in which related documents lie together.

    Parameters
    ----------
    n_components : int, optional
        Dimensions. By default as many as there are eigenvalues below the widest gap among the first thirty, which is
        k - 1 for k well separated topics; with :class:`LabelGraph`, one less than there are classes.
    graph : recipe, AffinityGraph or matrix, default=None
        How the graph is made; None is ``KNNGraph(15, weight="dot")``, the paper's, for rows of length one.
        :class:`LabelGraph` makes it supervised or semi-supervised.
    solver : {'auto', 'svd', 'regression'}, default='auto'
        'svd' is exact, 'regression' linear in the non-zeros; 'auto' is the first up to 2,000 documents or terms.
    alpha : float, default=0.0
        Ridge on the map, in units of the mean of d_i ‖x_i - x̄‖². For documents that are few beside their terms a
        small one, 0.1 say, steadies the map for unseen ones.
    tol : float, default=1e-2
        Of 'regression': the gradient of the least squares, relative to its first.
    random_state : int, RandomState or None, default=None
        Of the eigensolver.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The map W', D-normalised: W'(X̂'DX̂ + αI)W = I for rows X̂.
    mean_ : array of shape (n_features,)
        The D-weighted mean of the rows.
    eigenvalues_ : array of shape (n_components,)
        λ of Eq. 1, with the ridge in it, ascending.
    n_iter_, converged_ : int, bool
        Rounds of the least squares and whether they met ``tol``; 0 and True for 'svd'.
    embedding_ : array of shape (n_samples, n_components)
        The coordinates of the rows seen.
    solver_ : str
        The one that was used.
    graph_ : AffinityGraph
    n_features_in_ : int

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

    _warns_if_disconnected = False  # of texts and of classes the graph often falls apart, and the map holds it together

    def __init__(
        self,
        n_components: int | None = None,
        graph: Any = None,
        *,
        solver: str = "auto",
        alpha: float = 0.0,
        tol: float = 1e-2,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.solver = solver
        self.alpha = alpha
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LPI:
        """Learn the map from documents; ``y`` is for graphs made from labels."""
        with report_progress(self):
            return self._fit(X, y, at_most=False)

    def _fit(self, X: Any, y: Any, *, at_most: bool) -> LPI:
        """With ``at_most``, as many dimensions as were asked for or as there are."""
        graph = self._build_graph(X, y)
        rows, self._fit_X = self._fit_X, None  # the map needs no training rows
        if rows is None:
            raise ValueError("LPI maps the rows themselves: fit on data, and pass the affinities as graph=")
        if graph.has_negative_weights:
            raise ValueError("LPI asks for nonnegative weights; the graph has negative ones")
        self.solver_ = self._solver_for(rows)
        problem = self._problem(rows, graph)
        wanted, (n, m) = self._n_wanted(y, rows.shape[0]), rows.shape
        most = min(n - 1, m)
        if not at_most and (wanted or 1) > most:
            raise ValueError(
                f"n_components={wanted} is too many for {n} rows of n_features={m}; ask for at most {most}"
            )
        found = SOLVERS[self.solver_](problem, min(wanted or MOST_AUTO, most))
        size = wanted or widest_gap(to_numpy(found.values))
        self._store(_first(found, min(size, found.values.shape[0]) if at_most else size), problem, rows)
        self.graph_ = graph
        return self

    def transform(self, X: Any) -> Array:
        """Coordinates of documents, seen or not: (x - mean) W."""
        return self._embed(X)

    def _embed(self, X: Any) -> Array:
        """As `transform`, and never a data frame."""
        check_is_fitted(self)
        X = check_data(X, estimator=self, reset=False)
        return project(X if sp.issparse(X) else convert_like(X, self.components_), self.mean_, self.components_)

    def _recipe(self) -> Any:
        """The graph parameter with the paper's default filled in."""
        return KNNGraph(15, weight="dot") if self.graph is None else self.graph

    def _solver_for(self, rows: Array) -> str:
        if self.solver == "auto":
            return "svd" if min(rows.shape) <= EXACT_UP_TO else "regression"
        choose(SOLVERS, self.solver, option="solver")
        return self.solver

    def _problem(self, rows: Array, graph: AffinityGraph) -> _Problem:
        """The rows centred, in double precision for the exact solver, with what else it needs."""
        xp = namespace(rows)
        if self.solver_ == "svd":
            rows = rows.astype(np.float64) if sp.issparse(rows) else xp.astype(rows, xp.float64)
        home = rows.data if sp.issparse(rows) else rows
        degrees = asarray_like(to_numpy(graph.degrees), home, dtype=home.dtype)
        if not bool(xp.any(degrees > 0)):
            raise ValueError("the graph has no edges, so no direction keeps neighbours together; use more neighbours")
        centred = centred_by(rows, degrees)
        mean_eigenvalue = float(degrees @ centred.sq_lengths()) / rows.shape[0]
        if mean_eigenvalue <= 1e-12 * float(degrees @ sq_row_norms(rows)) / rows.shape[0]:
            raise ValueError("all rows of X are equal, so there is nothing to map; check the data")
        alpha = check_nonnegative(self.alpha, "alpha") * mean_eigenvalue
        tol = check_positive(self.tol, "tol")
        return _Problem(centred, graph, degrees, alpha, tol, check_random_state(self.random_state))

    def _n_wanted(self, y: Any, n: int) -> int | None:
        """The dimensions asked for: given, or one less than the classes of a graph of labels, or None."""
        if self.n_components is not None:
            return check_int(self.n_components, "n_components")
        if not getattr(self._fit_recipe, "uses_labels", False):
            return None
        return max(len(np.unique(known_labels(y, n)[1])) - 1, 1)

    def _store(self, found: LinearMap, problem: _Problem, rows: Array) -> None:
        directions = fix_signs(found.directions)
        xp = namespace(directions)
        dtype = (rows.data if sp.issparse(rows) else rows).dtype
        self.components_ = xp.astype(directions, dtype).T
        self.mean_, self.eigenvalues_ = xp.astype(problem.rows.mean, dtype), found.values
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.embedding_ = project(rows, self.mean_, self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def project(X: Array, mean: Array, components: Array) -> Array:
    """(x - x̄)W, a sparse matrix left sparse. [lpi, step 4]"""
    return matmul(X, components.T) - mean[None, :] @ components.T


def _first(found: LinearMap, wanted: int) -> LinearMap:
    rank = found.values.shape[0]
    if rank < wanted:
        raise ValueError(
            f"the rows allow {rank} independent directions (singular values above 1e-5 of the largest), but "
            f"n_components={wanted}; ask for fewer, or bring the columns to one scale"
        )
    return found._replace(directions=found.directions[:, :wanted], values=found.values[:wanted])
