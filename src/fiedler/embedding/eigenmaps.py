"""Laplacian eigenmaps: minimise Σ_ij w_ij ‖y_i - y_j‖² subject to Y'DY = I and Y'D1 = 0 [Belkin & Niyogi 2003].

The solutions are the generalised eigenvectors L y = λ D y with the smallest λ, that is y = D^-1/2 u for the
eigenvectors u of the symmetric Laplacian, without the constant one. On a disconnected graph the eigenvalue zero has as
many eigenvectors as there are components, and the constant is one direction in their span: exactly that direction is
left out. The others distinguish the components and are kept.

Without normalisation the constraints are Y'Y = I and Y'1 = 0, and the solutions are eigenvectors of L [nle, Eqs 1-4].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._records import EigenResult
from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState
from .._validation import Check, check_bool, check_dense, check_seed, integer
from ..core.arrays import Array, asarray_like, fix_signs, namespace, to_numpy
from ..core.eigen import DENSE_UP_TO, EIGEN_CHECKS, EigenSolver, LaplacianKind, eigen_options, smallest_eigenpairs
from ..core.fitting import fit_method
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.estimator import GraphEstimatorMixin
from ..graph.operators import extend_affinely, hessian, hessian_form, n_neighbors_needed
from ..graph.recipes import KNNGraph
from ..graph.smoothing import link_degrees, replace_coincident_rows


def drop_constant(vectors: Array, n_null: int, constant: Array) -> Array:
    """Rotate the ``n_null`` null vectors so that one has all of the overlap with ``constant``, and remove that one."""
    xp = namespace(vectors)
    null = vectors[:, :n_null]
    overlap = to_numpy(null.T @ constant[:, None])
    rotation, _ = np.linalg.qr(np.concatenate([overlap, np.eye(n_null)], axis=1))
    rotated = null @ asarray_like(rotation[:, 1:], vectors, dtype=vectors.dtype)
    return xp.concat([rotated, vectors[:, n_null:]], axis=1)


def eigenmap(graph: AffinityGraph, n_components: int, *, normalized: bool = True, **solver: Any) -> EigenResult:
    """Compute the smoothest functions on a graph, without the constant, as columns Y with Y'DY = I or Y'Y = I.

    Parameters
    ----------
    graph : AffinityGraph
    n_components : int
        The number of functions.
    normalized : bool, default=True
        Whether Y'DY = I; otherwise Y'Y = I.
    **solver
        Options of :func:`fiedler.core.eigen.smallest_eigenpairs`.

    Returns
    -------
    EigenResult
        Vectors Y, their eigenvalues, and the residuals of all computed pairs, including the constant.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> from fiedler.embedding import eigenmap
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> eigenmap(path, 1).values.round(6)  # 1 - cos(π/2)
    array([1.])
    """
    if n_components >= graph.n_nodes:
        problem = f"n_components={n_components} must be less than the number of rows (n_samples={graph.n_nodes})"
        raise _too_many_components(problem, n_components, graph.n_nodes, graph.n_nodes - 1)
    n_trivial = 0 if graph.has_negative_weights else 1  # with negative weights the constant is not an eigenvector
    kind: LaplacianKind = "symmetric" if normalized else "combinatorial"
    pairs = smallest_eigenpairs(graph, n_components + n_trivial, kind=kind, **solver)
    xp, degrees = namespace(graph.degrees), graph.degrees
    constant = xp.sqrt(xp.where(degrees > 0, degrees, 1)) if normalized else xp.ones_like(degrees)
    vectors = pairs.vectors
    if n_trivial:
        vectors = drop_constant(vectors, min(graph.components()[0], n_components + 1), constant)
    return replace(pairs, values=pairs.values[n_trivial:], vectors=fix_signs(vectors / constant[:, None]))


def _too_many_components(problem: str, n_components: int, n_samples: int, most: int) -> InputError:
    fields = {"value": n_components, "n_samples": n_samples, "n_directions": most, "n_components": n_components}
    hint = f"choose at most {most}"
    return InputError(problem, hint, code="too_many_components", parameter="n_components", **fields)


class EmbeddingMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for estimators that compute coordinates of the training rows, ``embedding_``, when they are fitted."""

    def fit_transform(
        self: Any, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None, **fit_params: Any
    ) -> Array:
        """Fit and return the embedding of the training rows; parameters as in ``fit``."""
        return self.fit(X, y, **fit_params).embedding_

    @property
    def _n_features_out(self: Any) -> int:
        return int(self.embedding_.shape[1])


class _Eigenmaps(GraphEstimatorMixin, EmbeddingMixin, BaseEstimator):
    """What both kinds of eigenmaps share."""

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_components": integer(),
        **EIGEN_CHECKS,
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_components: int = 2,
        graph: GraphLike = None,
        *,
        eigen_solver: EigenSolver = "auto",
        eigen_tol: float = 1e-8,
        eigen_max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.eigen_max_iter = eigen_max_iter
        self.random_state = random_state

    def _store(self, graph: AffinityGraph, pairs: EigenResult, values: Array, vectors: Array) -> None:
        self.eigenvalues_, self.embedding_, self.eigen_residuals_ = values, vectors, pairs.residuals
        self.n_iter_, self.converged_ = pairs.iterations, pairs.converged
        self.n_connected_components_, self.graph_ = graph.components()[0], graph


class LaplacianEigenmaps(_Eigenmaps):
    """Laplacian eigenmaps: coordinates in which neighbours stay close, the smoothest functions on the graph.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        The graph or how to build it; None is ``KNNGraph()``. With 'precomputed', ``fit`` takes an affinity matrix.
    normalized : bool, default=True
        Whether to scale the functions by the degrees, Y'DY = I, which belongs to the normalised cut; without, Y'Y = I,
        which belongs to the Ratio Cut.
    eigen_solver : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        See :func:`fiedler.core.eigen.smallest_eigenpairs`.
    eigen_tol : float, default=1e-8
        Tolerance on the residuals of the eigenpairs.
    eigen_max_iter : int, optional
        Maximum number of iterations of the eigensolver; by default the solver's own.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Y with Y'DY = I, or Y'Y = I.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the normalised or combinatorial Laplacian, ascending, without the zero of the constant.
    eigen_residuals_ : array of shape (n_components + 1,)
        Residuals of all computed pairs, including the constant.
    n_iter_ : int
        Iterations of the eigensolver; 0 for a direct one.
    converged_ : bool
        Whether all residuals are within the tolerance.
    n_connected_components_ : int
        The number of connected components of the graph.
    graph_ : AffinityGraph
        The graph on the training rows.
    n_features_in_ : int
        The number of features seen during fit.

    Notes
    -----
    ``transform`` embeds new points by the Nyström formula, which needs a recipe and the training rows. A training row
    is mapped to its coordinates in ``embedding_``.

    References
    ----------
    M. Belkin, P. Niyogi, "Laplacian eigenmaps for dimensionality reduction and data representation",
    Neural Computation 15, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fiedler import LaplacianEigenmaps
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = LaplacianEigenmaps(n_components=3, random_state=0).fit(X[:1000])
    >>> model.transform(X[1000:]).shape
    (797, 3)
    """

    _kind: LaplacianKind
    _parameter_checks: ClassVar[dict[str, Check]] = {**_Eigenmaps._parameter_checks, "normalized": check_bool}

    def __init__(
        self,
        n_components: int = 2,
        graph: GraphLike = None,
        *,
        normalized: bool = True,
        eigen_solver: EigenSolver = "auto",
        eigen_tol: float = 1e-8,
        eigen_max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_components, graph, eigen_solver=eigen_solver, eigen_tol=eigen_tol, eigen_max_iter=eigen_max_iter,
            random_state=random_state,
        )  # fmt: skip
        self.normalized = normalized

    @fit_method
    def fit(self, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None) -> Self:
        """Build the graph on the rows of ``X`` and compute its smoothest functions.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix if ``graph='precomputed'``
        y : array of shape (n,), optional
            For graphs built from labels, such as :class:`LabelGraph`.
        """
        graph = self._build_graph(X, y)
        pairs = eigenmap(
            graph, self.n_components, normalized=self.normalized, random_state=self.random_state, **eigen_options(self)
        )
        self._kind = "random_walk" if self.normalized else "combinatorial"
        self._store(graph, pairs, pairs.values, pairs.vectors)
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the coordinates of new points."""
        check_is_fitted(self)
        return self._nystrom(X, self.embedding_, self.eigenvalues_, self._kind)


# Hessian eigenmaps: minimise tr(Y'HY) subject to Y'Y = I and Y'1 = 0, H the Hessian operator [Donoho & Grimes 2003].
#
# On a manifold that is isometric to an open connected set of d-dimensional space, the functions without a Hessian are
# the affine ones, so that the d solutions are the isometric coordinates up to an affine map. Unlike Laplacian
# eigenmaps, this also holds if the set is not convex, for example if it has a hole. See `fiedler.graph.hessian`.

DEFAULT_NEIGHBORS = 12  # of the default graph, or what a quadratic function needs if that is more


class HessianEigenmaps(_Eigenmaps):
    """Hessian eigenmaps: the coordinates of a curved sheet, also of one with holes.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding, which is the dimension of the manifold.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph or how to build it; its edges say which rows are neighbours, and its weights are not used. None is
        ``KNNGraph(12)``, with more neighbours if a quadratic function of ``n_components`` variables needs them.
    eigen_solver : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        See :func:`fiedler.core.eigen.smallest_eigenpairs`. 'auto' is 'shift_invert' for more than 512 rows on the host:
        the wanted eigenvalues are many orders of magnitude below the others.
    eigen_tol : float, default=1e-8
        Tolerance on the residuals of the eigenpairs.
    eigen_max_iter : int, optional
        Maximum number of iterations of the eigensolver; by default the solver's own.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Y with Y'Y = I and Y'1 = 0.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the Hessian operator, ascending, without the zero of the constant.
    eigen_residuals_ : array of shape (n_components + 1,)
        Residuals of all computed pairs, including the constant.
    n_iter_ : int
        Iterations of the eigensolver; 0 for a direct one.
    converged_ : bool
        Whether all residuals are within the tolerance.
    n_connected_components_ : int
        The number of connected components of the graph.
    graph_ : AffinityGraph
        The graph on the training rows.
    n_features_in_ : int
        The number of features seen during fit.

    Notes
    -----
    ``transform`` fits an affine function of tangent coordinates to the embedding of a new point's neighbours, and maps
    a training row to its coordinates in ``embedding_``. It needs a recipe and the training rows.

    References
    ----------
    D. L. Donoho, C. Grimes, "Hessian eigenmaps: locally linear embedding techniques for high-dimensional data", PNAS
    100, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import HessianEigenmaps
    >>> from sklearn.datasets import make_swiss_roll
    >>> X, angle = make_swiss_roll(1000, hole=True, random_state=0)
    >>> Y = HessianEigenmaps(random_state=0).fit_transform(X)
    >>> height = np.c_[np.ones(1000), Y] @ np.linalg.lstsq(np.c_[np.ones(1000), Y], X[:, 1], rcond=None)[0]
    >>> bool(np.corrcoef(height, X[:, 1])[0, 1] > 0.99)
    True
    """

    @fit_method
    def fit(self, X: MatrixLike, y: LabelsLike | None = None) -> Self:
        """Fit quadratic functions to the neighbourhoods of the rows and compute the embedding.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), optional
            For graphs built from labels, such as :class:`LabelGraph`.
        """
        self._require_rows(X)
        rows = check_dense(X, estimator=self, min_samples=2)
        n_components, (n, n_features) = self.n_components, rows.shape
        if n_components > (most := min(n_features, n - 1)):
            available = f"the {n_features} columns or the {n - 1} directions of the rows"
            raise _too_many_components(f"n_components={n_components} is more than {available}", n_components, n, most)
        options = eigen_options(self)
        graph = self._build_graph(rows, y, validated=True)
        form = hessian_form(hessian(rows, graph, n_components))
        if options["method"] == "auto" and sp.issparse(form.matrix) and rows.shape[0] > DENSE_UP_TO:
            options["method"] = "shift_invert"
        pairs = smallest_eigenpairs(form, n_components + 1, random_state=self.random_state, **options)
        self._store(graph, pairs, *(asarray_like(part, rows, dtype=rows.dtype) for part in _split_off_constant(pairs)))
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the coordinates of new points."""
        check_is_fitted(self)
        links, X = self._links_to(X, self.embedding_)
        extended = extend_affinely(self.embedding_, X, self._fit_X, links, self.embedding_.shape[1])
        isolated = to_numpy(link_degrees(links, signed=True)) == 0
        return replace_coincident_rows(extended, self.embedding_, links, isolated, X, self._fit_X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _recipe(self) -> Any:
        if self.graph is not None:
            return self.graph
        return KNNGraph(max(DEFAULT_NEIGHBORS, n_neighbors_needed(self.n_components)))


def _split_off_constant(pairs: EigenResult) -> tuple[np.ndarray, np.ndarray]:
    """Return values and vectors without the constant, which on a flat manifold is one of several null vectors."""
    # Their eigenvalues are rounding errors, so that the constant can be in any place: its sum is not zero.
    values, vectors = to_numpy(pairs.values), to_numpy(pairs.vectors)
    constant = int(np.abs(vectors.sum(axis=0)).argmax())
    return np.delete(values, constant), np.delete(vectors, constant, axis=1)
