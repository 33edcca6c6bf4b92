"""`LPIClustering`: clusters of documents through locality preserving indexing. Paper key: lpi.

The paper maps documents to K - 1 dimensions by LPI on 15 neighbours with dot-product weights and runs k-means there.
We differ in two places, because topics are of very unequal size, and use a small ridge for speed:

- The graph has twelve neighbours with self-tuned weights, and an edge found from one side only counts half. A small
  topic has few neighbours of its own.
- Clusters are found by a Gaussian mixture initialised by k-means. K-means prefers clusters of equal spread and splits
  large topics; in LPI's coordinates small topics are compact and far from the origin, large ones wide and near it.

``graph=KNNGraph(15, weight="dot"), alpha=0, assign="kmeans"`` is the paper's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from .._validation import (
    Check,
    check_data,
    check_fraction,
    check_labels,
    check_n_clusters,
    check_nonnegative,
    check_seed,
    integer,
    none_or,
    one_of,
)
from ..core.arrays import asarray_like, namespace, normalize_rows, random_subset, sq_row_norms, take_rows, to_numpy
from ..core.fitting import fit_method
from ..core.kmeans import kmeans, nearest_center
from ..embedding.lpi import LPI, LPI_SOLVERS
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints, group_means
from ..graph.estimator import ClustererMixin, GraphEstimatorMixin
from ..graph.labels import UNKNOWN
from ..graph.recipes import is_precomputed, self_tuned
from ..graph.weights import check_relative_weights, near_copies, relative_weights, warn_of_empty_rows
from ..mixture.gaussian import GaussianMixture

DOCUMENT_NEIGHBORS = 12  # of the default graph on all documents
ALPHA = 0.1  # default ridge of the map
RIDGE = 0.1  # on the covariances of the mixture


def without_direction(rows: Array, values: Array, unknown: float) -> Array:
    """Return the values of rows of unit length, and ``unknown`` for rows of zeros."""
    is_zero = to_numpy(sq_row_norms(rows)) == 0
    if not is_zero.any():
        return values
    xp = namespace(values)
    mask = asarray_like(is_zero.reshape(-1, *[1] * (values.ndim - 1)), values, dtype=xp.bool)
    return xp.where(mask, xp.asarray(unknown, dtype=values.dtype), values)


class LPIClustering(
    GraphEstimatorMixin, ClustererMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Clustering of documents by locality preserving indexing, with ``predict`` for new documents.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph or matrix, default=None
        How the graph is built; None is ``KNNGraph(12, weight="local", symmetrize="mean")``, with 12 times the root of
        ``fit_fraction`` neighbours, since a topic has fewer documents in a subset.
    n_components : int, optional
        The number of dimensions of LPI; by default ``n_clusters - 1``, or as many as the rows allow.
    assign : {'mixture', 'kmeans'}, default='mixture'
        How clusters are found in the coordinates; 'mixture' also gives memberships.
    solver : {'auto', 'svd', 'regression'}, default='auto'
        The solver of :class:`LPI`.
    alpha : float, default=0.1
        The ridge of :class:`LPI`, which stabilises the map and speeds up its regression. The paper's value is 0.
    fit_fraction : float, default=1.0
        The fraction of the documents, drawn at random, from which the map is learned; all are then mapped and
        clustered.
    n_init : int, default=10
        The number of k-means initialisations; the best run initialises the mixture.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each document; -1 for documents without any term.
    memberships_ : array of shape (n_samples, n_clusters)
        The probability of each cluster, with ``assign='mixture'``; equal ones for documents without any term.
    embedding_ : array of shape (n_samples, n_components)
        The coordinates of the documents.
    lpi_ : LPI
        The fitted map.
    mixture_ : GaussianMixture
        The fitted mixture, with ``assign='mixture'``.
    cluster_centers_ : array of shape (n_clusters, n_components)
        The centres in the coordinates.
    n_iter_ : int
        The number of iterations of the mixture, or of k-means.
    converged_ : bool
        Whether these iterations converged.
    history_ : FitHistory
        The history of the mixture, with ``assign='mixture'``.
    graph_ : AffinityGraph
        The graph on the documents from which the map was learned: with the default graph, one of each group of
        near-copies.
    n_features_in_ : int
        The number of features.

    Notes
    -----
    Rows are scaled to unit length: documents differ by direction. Rows of zeros are left out of the graph and the map,
    get the coordinates of the origin, and are in no cluster.

    Near-copies (copies with small changes, and texts of one template) count as one document with their number as its
    weight when the map is learned, so that the neighbours of a document are not all copies of it. With a graph of your
    own and with pairs they do not, and more than a dozen copies of one document, which are disconnected from the rest
    in a graph of a dozen neighbours, may become a cluster.

    References
    ----------
    D. Cai, X. He, J. Han, "Document clustering using locality preserving indexing", IEEE Transactions on Knowledge and
    Data Engineering 17, 2005.

    Examples
    --------
    >>> from fiedler import LPIClustering
    >>> from fiedler.text import DocumentVectorizer
    >>> cats, stocks = ["cats chase mice", "mice fear cats"] * 10, ["stocks and bonds", "bonds beat stocks"] * 10
    >>> X = DocumentVectorizer().fit_transform(cats + stocks)
    >>> labels = LPIClustering(2, random_state=0).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:])), labels[0] == labels[20]
    (1, 1, np.False_)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "n_components": none_or(integer()),
        "assign": one_of(["mixture", "kmeans"]),
        "solver": one_of(["auto", *LPI_SOLVERS]),
        "alpha": check_nonnegative,
        "fit_fraction": check_fraction,
        "n_init": integer(),
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        n_components: int | None = None,
        assign: Literal["mixture", "kmeans"] = "mixture",
        solver: Literal["auto", "svd", "regression"] = "auto",
        alpha: float = ALPHA,
        fit_fraction: float = 1.0,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.n_components = n_components
        self.assign = assign
        self.solver = solver
        self.alpha = alpha
        self.fit_fraction = fit_fraction
        self.n_init = n_init
        self.random_state = random_state

    @fit_method
    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Learn the map and cluster the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The documents, for example tf-idf weights of their terms.
        y : array of shape (n,), optional
            Labels, for recipes that build the graph from them.
        sample_weight : array of shape (n,), optional
            Positive weights of the documents, in the graph, k-means and the mixture.
        constraints : PairwiseConstraints, optional
            Must-links become edges of the graph of :class:`LPI`, and cannot-links repel. They count among the documents
            from which the map is learned. Documents whose must-links are hard have the same coordinates.

        Returns
        -------
        self
        """
        self._soft = self.assign == "mixture"
        if isinstance(X, AffinityGraph) or is_precomputed(self.graph):
            problem = "LPIClustering maps documents by their terms and cannot be fitted to affinities"
            hint = "fit it to the documents and pass the affinities as graph="
            raise InputError(problem, hint, code="rows_required", parameter="graph")
        rows: Array = self._transform_rows(check_data(X, estimator=self, min_samples=2))
        if rows.shape[1] < 2:
            problem = "with n_features=1 all rows of unit length have the same direction"
            raise InputError(problem, "pass more features", code="no_directions")
        k = check_n_clusters(self.n_clusters, rows.shape[0])
        weights, rng = check_relative_weights(sample_weight, rows.shape[0]), check_seed(self.random_state)
        pairs = check_constraints(constraints, rows)
        near = near_copies(rows)[0] if self.graph is None and pairs is None else None
        if near is None:
            self.lpi_ = self._fit_map(rows, y, k, rng, weights, pairs)
        else:
            totals = relative_weights(near.total(weights))
            self.lpi_ = self._fit_map(take_rows(rows, near.first), None, k, rng, totals)
        self.graph_, self.embedding_ = self.lpi_.graph_, self.lpi_._embed_validated(rows)
        if pairs is not None and pairs.hard:
            self.embedding_ = group_means(self.embedding_, pairs.groups)
        best = kmeans(self.embedding_, k, n_init=self.n_init, sample_weight=weights, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        self.n_iter_, self.converged_ = best.n_iter, best.converged
        for name in ("mixture_", "memberships_", "history_"):
            self.__dict__.pop(name, None)
        if self._soft:
            seed = rng.randint(2**31 - 1)
            mixture = GaussianMixture(k, ridge=RIDGE, init=best.labels, random_state=seed)
            self.mixture_ = mixture._fit_validated(self.embedding_, sample_weight=weights)
            self.labels_, self.cluster_centers_ = self.mixture_.labels_, self.mixture_.means_
            self.n_iter_, self.converged_ = self.mixture_.n_iter_, self.mixture_.converged_
            self.memberships_ = without_direction(rows, self.mixture_.memberships_, 1 / k)
            self.history_ = self.mixture_.history_
        self.labels_ = without_direction(rows, self.labels_, UNKNOWN)
        warn_of_empty_rows(rows, stacklevel=2)
        return self

    def predict(self, X: MatrixLike) -> Array:
        """Return the cluster of each document.

        Parameters
        ----------
        X : CSR matrix or array of shape (m, n_terms), or texts as in `fit`

        Returns
        -------
        labels : array of shape (m,)
        """
        rows = self._check_rows(X)
        coordinates = self.lpi_._embed_validated(rows)
        if self._soft:
            labels = self.mixture_.predict(coordinates)
        else:
            nearest, _ = nearest_center(coordinates, self.cluster_centers_)
            labels = namespace(nearest).astype(nearest, self.labels_.dtype)
        return without_direction(rows, labels, UNKNOWN)

    @available_if(lambda model: getattr(model, "_soft", model.assign == "mixture"))
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the memberships of documents.

        Parameters
        ----------
        X : CSR matrix or array of shape (m, n_terms), or texts as in `fit`

        Returns
        -------
        memberships : array of shape (m, n_clusters)
        """
        rows = self._check_rows(X)
        memberships = self.mixture_.predict_proba(self.lpi_._embed_validated(rows))
        return without_direction(rows, memberships, 1 / memberships.shape[1])

    def transform(self, X: MatrixLike) -> Array:
        """Return the coordinates of documents.

        Parameters
        ----------
        X : CSR matrix or array of shape (m, n_terms), or texts as in `fit`

        Returns
        -------
        coordinates : array of shape (m, n_components)
        """
        return self.lpi_._embed_validated(self._check_rows(X))

    def _check_rows(self, X: MatrixLike) -> Array:
        """Validate new documents and scale them to unit length."""
        check_is_fitted(self)
        rows = check_data(X, estimator=self, reset=False)
        warn_of_empty_rows(rows, stacklevel=3)
        return self._transform_rows(rows)

    def _transform_rows(self, X: Array) -> Array:
        """Scale documents to unit length, as the graph and the map use them."""
        return normalize_rows(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _recipe(self) -> Any:
        """Return the recipe of the graph: by default fewer neighbours among fewer documents."""
        if self.graph is not None:
            return self.graph
        return self_tuned(max(round(DOCUMENT_NEIGHBORS * self.fit_fraction**0.5), 3))

    def _fit_map(
        self,
        X: Array,
        y: Any,
        n_clusters: int,
        rng: np.random.RandomState,
        weights: np.ndarray | None,
        pairs: PairwiseConstraints | None = None,
    ) -> LPI:
        """Fit LPI to the non-empty rows, or to the requested fraction of them."""
        # A row of zeros is nearer to every document than documents are to each other: a neighbour of all.
        recipe, fraction = self._recipe(), float(self.fit_fraction)
        n, n_components = X.shape[0], self.n_components
        n_wanted = max(n_clusters - 1, 1) if n_components is None else n_components
        rows = np.flatnonzero(to_numpy(sq_row_norms(X)) > 0)
        if len(rows) < 2:
            problem = f"only {len(rows)} of {n} documents contain any term, so there is nothing to cluster"
            raise InputError(problem, code="too_few_documents", n_documents=n)
        if fraction < 1:
            rows = rows[random_subset(len(rows), fraction, rng)]
        is_built = not hasattr(recipe, "build")
        if is_built and fraction < 1:
            problem = "a graph that is already built covers all documents and cannot be used with fit_fraction below 1"
            raise InputError(problem, "use a recipe such as KNNGraph()", code="graph_already_built", parameter="graph")
        if len(rows) == n or is_built:
            rows = np.arange(n)
        if self.graph is None:
            recipe.set_params(n_neighbors=min(recipe.n_neighbors, len(rows) - 1))
        labels = None if y is None else check_labels(y, "y", n_samples=n)[rows]
        seed = rng.randint(2**31 - 1)
        model = LPI(n_wanted, recipe, solver=self.solver, alpha=self.alpha, normalize=True, random_state=seed)
        weights = None if weights is None else weights[rows]
        if len(rows) < n:
            X, pairs = take_rows(X, rows), None if pairs is None else pairs.subset(rows)
        return model._fit(X, labels, allow_fewer=n_components is None, weights=weights, pairs=pairs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags
