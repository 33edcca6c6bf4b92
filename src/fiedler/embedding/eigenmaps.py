"""Laplacian eigenmaps: minimise Σ_ij w_ij ‖y_i - y_j‖² subject to Y'DY = I and Y'D1 = 0 [Belkin & Niyogi 2003].

The solutions are the generalised eigenvectors L y = λ D y of smallest λ, that is y = D^-1/2 u for the eigenvectors u of
the symmetric Laplacian, without the constant one. On a disconnected graph the constant is one direction of a null
space with a dimension a component: exactly that direction is left out, the others tell the components apart and stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._records import EigenResult
from .._validation import check_int
from ..core.backend import Array, asarray_like, fix_signs, namespace, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.progress import report_progress
from ..graph.affinity import AffinityGraph
from ..graph.estimator import GraphEstimatorMixin


def drop_constant(vectors: Array, n_null: int, heights: Array) -> Array:
    """Eigenvectors without the trivial one: the first ``n_null`` columns are rotated so that one of them carries all of
    the overlap with ``heights`` (the constant, in the vectors' own coordinates), and that one is left out.
    """
    xp = namespace(vectors)
    null = vectors[:, :n_null]
    overlap = to_numpy(null.T @ heights[:, None])
    rotation, _ = np.linalg.qr(np.concatenate([overlap, np.eye(n_null)], axis=1))
    rotated = null @ asarray_like(rotation[:, 1:], vectors, dtype=vectors.dtype)
    return xp.concat([rotated, vectors[:, n_null:]], axis=1)


def eigenmap(graph: AffinityGraph, n_components: int, **solver: Any) -> EigenResult:
    """The smoothest functions on a graph, without the trivial one, as columns Y with Y'DY = I.

    Parameters
    ----------
    graph : AffinityGraph
    n_components : int
    **solver
        Options of :func:`fiedler.core.eigen.smallest_eigenpairs`.

    Returns
    -------
    EigenResult
        Vectors Y, their eigenvalues, and the residuals of all pairs computed, the trivial one included.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> from fiedler.embedding import eigenmap
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> eigenmap(path, 1).values.round(6)  # 1 - cos(π/2)
    array([1.])
    """
    if n_components >= graph.n_nodes:
        raise ValueError(
            f"n_components={n_components} must be less than the number of rows (n_samples={graph.n_nodes})"
        )
    n_trivial = 0 if graph.has_negative_weights else 1  # there the constant is no eigenvector
    pairs = smallest_eigenpairs(graph, n_components + n_trivial, kind="symmetric", **solver)
    xp = namespace(graph.degrees)
    heights = xp.sqrt(xp.where(graph.degrees > 0, graph.degrees, 1))
    vectors = pairs.vectors
    if n_trivial:
        vectors = drop_constant(vectors, min(graph.components()[0], n_components + 1), heights)
    return replace(pairs, values=pairs.values[n_trivial:], vectors=fix_signs(vectors / heights[:, None]))


class LaplacianEigenmaps(GraphEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Coordinates in which neighbours stay close: the smoothest functions on the graph.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is made; None is ``KNNGraph()``. With 'precomputed', ``fit`` takes an affinity matrix.
    eigen_solver : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        See :func:`fiedler.core.eigen.smallest_eigenpairs`.
    eigen_tol : float, default=1e-8
    eigen_max_iter : int, optional
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Y with Y'DY = I.
    eigenvalues_ : array of shape (n_components,)
        Of the normalised Laplacian, ascending, the constant's zero left out.
    eigen_residuals_ : array of shape (n_components + 1,)
        Of all pairs computed, the constant's included.
    converged_ : bool
    n_connected_components_ : int
    graph_ : AffinityGraph
    n_features_in_ : int

    Notes
    -----
    ``transform`` places new points by the Nyström formula, which needs a recipe and the training rows; a training row
    gets its own coordinates back.

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

    def __init__(
        self,
        n_components: int = 2,
        graph: Any = None,
        *,
        eigen_solver: str = "auto",
        eigen_tol: float = 1e-8,
        eigen_max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.eigen_max_iter = eigen_max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LaplacianEigenmaps:
        """Build the graph on ``X`` (or take ``X`` as the graph) and find its smoothest functions."""
        graph = self._build_graph(X, y)
        n_components = check_int(self.n_components, "n_components")
        with report_progress(self):
            pairs = eigenmap(
                graph, n_components, method=self.eigen_solver, tol=self.eigen_tol, max_iter=self.eigen_max_iter,
                random_state=self.random_state,
            )  # fmt: skip
        self.n_connected_components_ = graph.components()[0]
        self.embedding_, self.eigenvalues_ = pairs.vectors, pairs.values
        self.eigen_residuals_, self.converged_ = pairs.residuals, pairs.converged
        self.graph_ = graph
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit and return the embedding of the training rows."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Coordinates of new points."""
        check_is_fitted(self)
        return self._nystrom(X, self.embedding_, self.eigenvalues_, "random_walk")

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
