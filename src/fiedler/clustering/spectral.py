"""Spectral clustering: a graph cut relaxed to eigenvectors, whose rows are clustered by k-means.

===========  =====================================  =======================================  ===========================
cut          objective over partitions A_1..A_K     vectors                                  reference
===========  =====================================  =======================================  ===========================
ncut         Σ_k cut(A_k, rest) / vol(A_k)          random walk                              Shi & Malik 2000
njw          the same                               symmetric, rows of unit length           Ng, Jordan & Weiss 2002
ratio        Σ_k cut(A_k, rest) / |A_k|             combinatorial                            Hagen & Kahng 1992
association  -Σ_k W(A_k, A_k) / |A_k|               those of -W                              Shi & Malik 2000
===========  =====================================  =======================================  ===========================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._records import EigenResult
from .._typing import Array, GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from .._validation import Check, check_n_clusters, check_seed, integer, one_of
from ..core.arrays import namespace, normalize_rows
from ..core.eigen import EIGEN_CHECKS, EigenSolver, LaplacianKind, eigen_options, smallest_eigenpairs
from ..core.fitting import dispatch_blocks, fit_method
from ..core.kmeans import kmeans, nearest_center
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.constraints import ConstraintsLike, check_constraints, group_means, has_cannot_links
from ..graph.cuts import association_eigenpairs, cannot_link_eigenpairs
from ..graph.estimator import ClustererMixin, GraphEstimatorMixin
from ..graph.weights import check_relative_weights, weigh_graph


class _Cut(NamedTuple):
    """How a cut is relaxed: the matrix whose eigenvectors are computed, and how their rows are scaled."""

    matrix: LaplacianKind | Literal["association"]
    scale_rows: Callable[[Array], Array]


COUNTS_ROWS = ("ratio", "association")  # cuts that divide by the number of rows of a cluster

RELAXATIONS = {
    "ncut": _Cut("random_walk", lambda vectors: vectors),
    # u = D^1/2 v, so the rows of the symmetric eigenvectors u and of the random walk's v have the same direction. A row
    # of zeros, in a component beyond the first K, stays zero.
    "njw": _Cut("random_walk", normalize_rows),
    "ratio": _Cut("combinatorial", lambda vectors: vectors),
    "association": _Cut("association", lambda vectors: vectors),
}


class SpectralClustering(GraphEstimatorMixin, ClustererMixin, BaseEstimator):
    """Spectral clustering on a sparse graph, with ``predict`` for new points.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is built; None is ``KNNGraph()``. With 'precomputed', ``fit`` takes an affinity matrix.
    cut : {'ncut', 'njw', 'ratio', 'association'}, default='ncut'
        The objective that is relaxed. 'association', the average association, is for graphs of about equal degrees:
        its vectors concentrate on nodes of high degree.
    n_init : int, default=10
        The number of k-means initialisations; the run with the lowest inertia is kept.
    eigen_solver : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        See :func:`fiedler.core.eigen.smallest_eigenpairs`.
    eigen_tol : float, default=1e-8
        Tolerance on the residuals of the eigenvectors.
    eigen_max_iter : int, optional
        The maximum number of iterations of the eigensolver.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    embedding_ : array of shape (n_samples, n_clusters)
        The spectral coordinates that k-means clustered.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        The centres in the embedding.
    eigenvalues_, eigen_residuals_ : array of shape (n_clusters,)
        The smallest eigenvalues, of -W for 'association', and the residuals of their vectors.
    converged_ : bool
        Whether all residuals are within the tolerance.
    n_connected_components_ : int
        The number of connected components of the graph.
    graph_ : AffinityGraph
        The graph.
    n_features_in_ : int
        The number of features.

    References
    ----------
    U. von Luxburg, "A tutorial on spectral clustering", Statistics and Computing 17, 2007.

    Examples
    --------
    >>> from fiedler import KNNGraph, SpectralClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = SpectralClustering(n_clusters=2, graph=KNNGraph(15), random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_)
    1.0
    >>> X_new, y_new = two_moons(n_samples=100, noise=0.05, random_state=1)
    >>> clustering_accuracy(y_new, model.predict(X_new))
    1.0
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "cut": one_of(RELAXATIONS),
        "n_init": integer(),
        **EIGEN_CHECKS,
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        cut: Literal["ncut", "njw", "ratio", "association"] = "ncut",
        n_init: int = 10,
        eigen_solver: EigenSolver = "auto",
        eigen_tol: float = 1e-8,
        eigen_max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.cut = cut
        self.n_init = n_init
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.eigen_max_iter = eigen_max_iter
        self.random_state = random_state

    @fit_method
    def fit(
        self,
        X: MatrixLike | AffinityGraph,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Cluster the rows of ``X``, or the nodes of a graph.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix if ``graph='precomputed'``
            The rows.
        y : array of shape (n,), optional
            Labels, for recipes that build the graph from them.
        sample_weight : array of shape (n,), optional
            Positive weights of the rows, in the graph and in k-means; see :mod:`fiedler.graph.weights`. Not with
            ``cut='ratio'`` and ``'association'``, which count rows.
        constraints : PairwiseConstraints, optional
            Must-links become edges; cannot-links, for up to 4000 rows, repel, see :mod:`fiedler.graph.cuts`. Rows
            whose must-links are hard have the same coordinates in the embedding, and so the same cluster.

        Returns
        -------
        self
        """
        cut = RELAXATIONS[self.cut]
        pairs = check_constraints(constraints, X)
        graph = self._build_graph(X, y, pairs)
        n_clusters = check_n_clusters(self.n_clusters, graph.n_nodes)
        weights = check_relative_weights(sample_weight, graph.n_nodes)
        if weights is not None:
            if self.cut in COUNTS_ROWS:
                problem = f"cut={self.cut!r} counts rows, so sample_weight cannot be used"
                hint = "use cut='ncut', or leave sample_weight out"
                raise InputError(problem, hint, code="incompatible_parameters", parameter="sample_weight")
            graph = weigh_graph(graph, weights)
        rng = check_seed(self.random_state)
        eigenpairs = self._eigenpairs(graph, n_clusters, cut, rng, repels=has_cannot_links(graph, pairs))
        self.embedding_ = cut.scale_rows(eigenpairs.vectors)
        if pairs is not None and pairs.hard:
            self.embedding_ = group_means(self.embedding_, pairs.groups)
        best = kmeans(self.embedding_, n_clusters, n_init=self.n_init, sample_weight=weights, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        self.eigenvalues_, self.eigen_residuals_ = eigenpairs.values, eigenpairs.residuals
        self.converged_ = eigenpairs.converged
        self.n_connected_components_ = graph.components()[0]
        self.graph_, self._eigenvectors, self._fit_cut = graph, eigenpairs.vectors, self.cut
        return self

    def _eigenpairs(self, graph: Any, k: int, cut: _Cut, rng: np.random.RandomState, *, repels: bool) -> EigenResult:
        options = eigen_options(self)
        if cut.matrix == "association":  # weights of cannot-links are negative in W, and need no other problem
            return association_eigenpairs(graph, k, random_state=rng, **options)
        solve = cannot_link_eigenpairs if repels else smallest_eigenpairs
        return solve(graph, k, kind=cut.matrix, random_state=rng, **options)

    @dispatch_blocks
    def predict(self, X: MatrixLike) -> Array:
        """Return the cluster of each new point: the centre nearest to its Nyström coordinates.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, n_features)

        Returns
        -------
        labels : array of shape (m,)
        """
        check_is_fitted(self)
        cut = RELAXATIONS[self._fit_cut]  # set_params may have changed self.cut since
        coordinates = cut.scale_rows(self._nystrom(X, self._eigenvectors, self.eigenvalues_, cut.matrix))
        labels, _ = nearest_center(coordinates, self.cluster_centers_)
        # A model that was fitted in blocks and read from a file has no labels of its own.
        return namespace(labels).astype(labels, self.labels_.dtype) if hasattr(self, "labels_") else labels
