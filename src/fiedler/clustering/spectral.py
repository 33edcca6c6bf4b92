"""Spectral clustering: a graph cut relaxed to eigenvectors, and k-means to read the clusters off their rows.

========  ========================================  =======================================  ===========================
cut       objective over partitions A_1..A_K        vectors                                  reference
========  ========================================  =======================================  ===========================
ncut      Σ_k cut(A_k, rest) / vol(A_k)             random walk                              Shi & Malik 2000
njw       the same                                  symmetric, rows at length one            Ng, Jordan & Weiss 2002
ratio     Σ_k cut(A_k, rest) / |A_k|                combinatorial                            Hagen & Kahng 1992
========  ========================================  =======================================  ===========================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_n_clusters, choose
from ..core.backend import Array, namespace
from ..core.eigen import EigenSolver, LaplacianKind, smallest_eigenpairs
from ..core.kmeans import kmeans, nearest_center
from ..core.progress import report_progress
from ..core.rows import normalize_rows
from ..graph.constraints import check_constraints
from ..graph.estimator import GraphEstimatorMixin
from ..graph.pairs import group_means, has_repulsion
from ..graph.repulsion import repelled_eigenpairs


def _as_they_are(vectors: Array) -> Array:
    return vectors


class _Cut(NamedTuple):
    kind: LaplacianKind
    rows: Callable[[Array], Array]


CUTS = {
    "ncut": _Cut("random_walk", _as_they_are),
    # u = D^1/2 v, so that the rows of the symmetric vectors u and of the random walk's v have the same direction; a row
    # of zeros, a component beyond the first K, stays.
    "njw": _Cut("random_walk", normalize_rows),
    "ratio": _Cut("combinatorial", _as_they_are),
}


class SpectralClustering(GraphEstimatorMixin, ClusterMixin, BaseEstimator):
    """Clusters that a sparse graph cut separates, for any number of points, with ``predict``.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is made; None is ``KNNGraph()``. With 'precomputed', ``fit`` takes an affinity matrix.
    cut : {'ncut', 'njw', 'ratio'}, default='ncut'
        The objective that is relaxed.
    n_init : int, default=10
        Seedings of k-means.
    eigen_solver : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        See :func:`fiedler.core.eigen.smallest_eigenpairs`.
    eigen_tol : float, default=1e-8
    eigen_max_iter : int, optional
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    embedding_ : array of shape (n_samples, n_clusters)
        The rows that k-means saw.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        In the embedding.
    eigenvalues_, eigen_residuals_ : array of shape (n_clusters,)
    converged_ : bool
        Of the eigenvectors.
    n_connected_components_ : int
    graph_ : AffinityGraph
    n_features_in_ : int

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

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        cut: str = "ncut",
        n_init: int = 10,
        eigen_solver: EigenSolver = "auto",
        eigen_tol: float = 1e-8,
        eigen_max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.cut = cut
        self.n_init = n_init
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.eigen_max_iter = eigen_max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> SpectralClustering:
        """Cluster the rows of ``X``, or the nodes of a graph.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix if ``graph='precomputed'``
        y : array of shape (n,), optional
            For graphs made from labels.
        constraints : PairwiseConstraints, optional
            Must-links become edges; cannot-links, of up to 4000 rows, repel, see :mod:`fiedler.graph.repulsion`. Rows
            whose must-links are hard share one place in the embedding, and so a cluster.
        """
        cut = choose(CUTS, self.cut, option="cut")
        known = check_constraints(constraints, X)
        graph = self._build_graph(X, y, known)
        n_clusters = check_n_clusters(self.n_clusters, graph.n_nodes)
        rng = check_random_state(self.random_state)
        with report_progress(self):
            pairs = (repelled_eigenpairs if has_repulsion(graph, known) else smallest_eigenpairs)(
                graph, n_clusters, kind=cut.kind, method=self.eigen_solver, tol=self.eigen_tol,
                max_iter=self.eigen_max_iter, random_state=rng,
            )  # fmt: skip
        self.embedding_ = cut.rows(pairs.vectors)
        if known is not None and known.hard:
            self.embedding_ = group_means(self.embedding_, known.groups)
        best = kmeans(self.embedding_, n_clusters, n_init=self.n_init, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        self.eigenvalues_, self.eigen_residuals_, self.converged_ = pairs.values, pairs.residuals, pairs.converged
        self.n_connected_components_ = graph.components()[0]
        self.graph_, self._eigenvectors, self._cut = graph, pairs.vectors, self.cut
        return self

    def predict(self, X: Any) -> Array:
        """The cluster of each new point: its place in the embedding (Nyström), then the nearest centre."""
        check_is_fitted(self)
        cut = CUTS[self._cut]  # the one that was fitted, whatever the parameter says by now
        rows = cut.rows(self._nystrom(X, self._eigenvectors, self.eigenvalues_, cut.kind))
        labels, _ = nearest_center(rows, self.cluster_centers_)
        return namespace(labels).astype(labels, self.labels_.dtype)
