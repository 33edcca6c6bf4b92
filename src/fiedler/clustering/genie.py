"""GenieLinkage: hierarchical clustering on the spanning tree of a neighbour graph, see :mod:`fiedler.graph.tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, LabelsLike, MatrixLike, SupportsShape
from .._validation import Check, check_data, check_fraction, check_n_clusters, check_n_jobs, integer, one_of
from ..core.arrays import asarray_like, convert_rows, namespace, take_rows
from ..core.fitting import ProgressMixin, fit_method
from ..graph.estimator import ClustererMixin
from ..graph.neighbors import k_nearest
from ..graph.tree import (
    LENGTHS,
    EdgeLength,
    MergeTree,
    add_copies,
    cut_tree,
    genie_merges,
    linkage_matrix,
    spanning_tree,
)
from ..graph.weights import CopiedRows, check_sample_weight


class GenieLinkage(ProgressMixin, ClustererMixin, BaseEstimator):
    """Hierarchical clustering by single linkage with a limit on the inequality of cluster sizes (Genie).

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    n_neighbors : int, default=10
        The number of neighbours in the graph whose spanning tree is used; at most one less than there are rows.
    length : {'mutual', 'distance', 'local'}, default='mutual'
        The length of an edge: mutual reachability, which is robust against single rows between clusters; the distance;
        or the distance relative to the local scale of both rows, for clusters of different density.
    gini_threshold : float, default=0.3
        While the Gini index of the cluster sizes exceeds it, only a smallest cluster may be merged: values near 0 make
        the sizes as equal as the tree permits, 1 is single linkage.
    n_jobs : int, optional
        The number of threads that search neighbours.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    n_clusters_ : int
        The number of clusters.
    children_ : array of shape (n_samples - 1, 2)
        The two nodes of each merge. Nodes below ``n_samples`` are rows, node ``n_samples + i`` is the i-th merge.
    distances_ : array of shape (n_samples - 1,)
        The length of the edge of each merge, lowered to that of later merges where these are shorter, so that the
        distances ascend.
    n_leaves_ : int
        The number of rows.
    n_features_in_ : int
        The number of features.

    See Also
    --------
    ManifoldClustering : Combines several methods.
    sklearn.cluster.AgglomerativeClustering : Other linkages.

    Notes
    -----
    The tree contains the partition for every number of clusters: ``fiedler.graph.tree.cut_tree`` returns its labels
    without a new fit, and ``scipy.cluster.hierarchy.dendrogram(model.linkage_matrix())`` draws it. Equal rows are
    merged first, at distance 0, and are one row with the sum of their weights to all other steps.

    References
    ----------
    M. Gagolewski, M. Bartoszuk, A. Cena, "Genie: A new, fast, and outlier-resistant hierarchical clustering algorithm",
    Information Sciences 363, 2016.

    Examples
    --------
    >>> from fiedler import GenieLinkage
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = GenieLinkage(n_clusters=2).fit(X)
    >>> clustering_accuracy(y, model.labels_)
    1.0
    >>> model.linkage_matrix().shape
    (399, 4)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "n_neighbors": integer(),
        "length": one_of(LENGTHS),
        "gini_threshold": check_fraction,
        "n_jobs": check_n_jobs,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        length: EdgeLength = "mutual",
        gini_threshold: float = 0.3,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.length = length
        self.gini_threshold = gini_threshold
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fit_method
    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
    ) -> Self:
        """Cluster the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The rows.
        y : ignored
        sample_weight : array of shape (n,), optional
            Positive weights: a row of weight 3 stands for three equal rows. Only their ratios matter. The spanning tree
            is that of the different rows; weights count in the sizes of clusters, and so in their Gini index.

        Returns
        -------
        self
        """
        rows: Array = check_data(X, estimator=self, min_samples=2)
        weights = check_sample_weight(sample_weight, rows.shape[0])
        n_clusters = check_n_clusters(self.n_clusters, rows.shape[0])
        copies = CopiedRows.of(rows)
        merges = MergeTree(np.empty((0, 2), dtype=np.int64), np.empty(0))
        if len(copies.first) > 1:
            n_neighbors = min(self.n_neighbors, len(copies.first) - 1)
            different = take_rows(rows, copies.first)
            tree = spanning_tree(different, n_neighbors, length=self.length, n_jobs=check_n_jobs(self.n_jobs))
            merges = genie_merges(tree, float(self.gini_threshold), copies.total(weights))
        self.children_, self.distances_ = add_copies(merges, copies.nodes)
        self.labels_ = asarray_like(cut_tree(self._merge_tree(), n_clusters), rows)
        self.n_clusters_, self.n_leaves_, self._fit_X = n_clusters, rows.shape[0], rows
        return self

    def predict(self, X: MatrixLike) -> Array:
        """Return the cluster of the training row nearest to each new point.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, n_features)

        Returns
        -------
        labels : array of shape (m,)
        """
        check_is_fitted(self)
        points = convert_rows(check_data(X, estimator=self, reset=False), self._fit_X)
        nearest = k_nearest(self._fit_X, 1, queries=points, n_jobs=self.n_jobs)
        return namespace(self.labels_).take(self.labels_, nearest.columns)

    def linkage_matrix(self) -> np.ndarray:
        """Return the tree in the form of SciPy's hierarchical clustering.

        Returns
        -------
        Z : array of shape (n_samples - 1, 4)
            Two nodes, their distance and the number of rows below, for every merge.
        """
        check_is_fitted(self)
        return linkage_matrix(self._merge_tree())

    def _merge_tree(self) -> MergeTree:
        return MergeTree(self.children_, self.distances_)
