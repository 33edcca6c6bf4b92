"""`LPIClustering`: documents to clusters through locality preserving indexing. Paper key: lpi.

The paper maps documents to k - 1 dimensions by LPI on 15 neighbours with dot-product weights and runs k-means there.
Ours differs in two places, for one reason, that topics are of very unequal size; and by a small ridge, for speed.

- The graph has twelve neighbours with self-tuned weights, an edge found from one side counting half. A small topic has
  few neighbours of its own.
- Clusters are read off by a Gaussian mixture started from k-means. K-means prefers clusters of equal spread and cuts
  large topics; in LPI's coordinates small topics lie far out and are tight, large ones near the origin and wide.

``graph=KNNGraph(15, weight="dot"), alpha=0, assign="kmeans"`` is the paper's.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_fraction, check_int, check_labels, check_n_clusters, choose
from ..core.backend import Array, namespace, to_numpy
from ..core.kmeans import kmeans, nearest_center
from ..core.progress import report_progress
from ..core.rows import normalize_rows, random_subset, sq_row_norms, take_rows
from ..embedding.lpi import LPI
from ..graph.affinity import AffinityGraph
from ..graph.estimator import GraphEstimatorMixin
from ..graph.recipes import is_pairwise, self_tuned
from ..mixture.gaussian import GaussianMixture

N_NEIGHBORS = 12
ASSIGN = {"mixture": True, "kmeans": False}  # whether memberships are soft


def _is_soft(model: Any) -> bool:
    return bool(getattr(model, "_soft", ASSIGN.get(model.assign, False)))


class LPIClustering(
    GraphEstimatorMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Clusters of documents, with ``predict`` for documents not seen.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph or matrix, default=None
        How the graph is made; None is ``KNNGraph(12, weight="local", symmetrize="mean")``, with 12 times the root of
        ``fit_fraction`` neighbours, since a topic has fewer documents in a part.
    n_components : int, optional
        Dimensions of LPI; by default ``n_clusters - 1``, or as many as the rows allow.
    assign : {'mixture', 'kmeans'}, default='mixture'
        How clusters are read off the coordinates; 'mixture' gives memberships too.
    solver : {'auto', 'svd', 'regression'}, default='auto'
        Of :class:`LPI`.
    alpha : float, default=0.1
        Ridge of :class:`LPI`: steadies the map, and speeds up its regression. The paper's is 0.
    fit_fraction : float, default=1.0
        The share of the documents, drawn at random, from which the map is learned; all are then mapped and clustered.
    n_init : int, default=10
        Seedings of k-means, from whose best run the mixture starts.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    memberships_ : array of shape (n_samples, n_clusters)
        With ``assign='mixture'``.
    embedding_ : array of shape (n_samples, n_components)
    lpi_ : LPI
        The fitted map.
    mixture_ : GaussianMixture
        With ``assign='mixture'``.
    cluster_centers_ : array of shape (n_clusters, n_components)
    graph_ : AffinityGraph
        On the documents from which the map was learned.
    n_features_in_ : int

    Notes
    -----
    Rows are taken at length one, whatever their length: documents differ by direction. Rows of zeros take no part in
    the graph and the map, and are placed where the map puts the origin. More than a dozen copies of one document stand
    apart in a graph of a dozen neighbours and may be taken for a cluster.

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

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        n_components: int | None = None,
        assign: str = "mixture",
        solver: Literal["auto", "svd", "regression"] = "auto",
        alpha: float = 0.1,
        fit_fraction: float = 1.0,
        n_init: int = 10,
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any = None) -> LPIClustering:
        """Learn the map and cluster the rows of ``X``; ``y`` is for graphs made from labels."""
        self._soft = choose(ASSIGN, self.assign, option="assign")
        if isinstance(X, AffinityGraph) or is_pairwise(self.graph):
            raise ValueError("documents are mapped by their terms: fit on data, and pass the affinities as graph=")
        X = self._rows(check_data(X, estimator=self, min_samples=2))
        if X.shape[1] < 2:
            raise ValueError(
                "with n_features=1 rows at length one have no directions to tell apart; give more features"
            )
        k = check_n_clusters(self.n_clusters, X.shape[0])
        rng = check_random_state(self.random_state)
        with report_progress(self):
            self.lpi_ = self._learn(X, y, k, rng)
        self.graph_, self.embedding_ = self.lpi_.graph_, self.lpi_._embed(X)
        best = kmeans(self.embedding_, k, n_init=self.n_init, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        for name in ("mixture_", "memberships_"):
            self.__dict__.pop(name, None)
        if self._soft:
            seed = rng.randint(2**31 - 1)
            self.mixture_ = GaussianMixture(k, init=best.labels, random_state=seed).fit(self.embedding_)
            self.labels_, self.cluster_centers_ = self.mixture_.labels_, self.mixture_.means_
            self.memberships_ = self.mixture_.memberships_
        return self

    def predict(self, X: Any) -> Array:
        """The cluster of each document, seen or not."""
        rows = self._embed(X)
        if self._soft:
            return self.mixture_.predict(rows)
        labels, _ = nearest_center(rows, self.cluster_centers_)
        return namespace(labels).astype(labels, self.labels_.dtype)

    @available_if(_is_soft)
    def predict_proba(self, X: Any) -> Array:
        """The memberships of documents, seen or not."""
        rows = self._embed(X)
        return self.mixture_.predict_proba(rows)

    def transform(self, X: Any) -> Array:
        """The coordinates of documents, seen or not."""
        return self._embed(X)

    def _embed(self, X: Any) -> Array:
        """As `transform`, and never a data frame."""
        check_is_fitted(self)
        return self.lpi_._embed(self._rows(check_data(X, estimator=self, reset=False)))

    @staticmethod
    def _rows(X: Array) -> Array:
        """Documents as the graph and the map see them."""
        return normalize_rows(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _recipe(self) -> Any:
        """The graph parameter with the default filled in: fewer neighbours among fewer documents."""
        if self.graph is not None:
            return self.graph
        share = check_fraction(self.fit_fraction, "fit_fraction")
        return self_tuned(max(round(N_NEIGHBORS * share**0.5), 3))

    def _learn(self, X: Array, y: Any, k: int, rng: np.random.RandomState) -> LPI:
        """LPI on the rows that hold anything, or on the share of them asked for.

        A row of zeros is nearer to every document than documents are to each other, and would be everyone's neighbour.
        """
        recipe, share = self._recipe(), check_fraction(self.fit_fraction, "fit_fraction")
        n, given = X.shape[0], self.n_components
        wanted = max(k - 1, 1) if given is None else check_int(given, "n_components")
        chosen = np.flatnonzero(to_numpy(sq_row_norms(X)) > 0)
        if len(chosen) < 2:
            raise ValueError(f"of {n} documents {len(chosen)} hold any term, so there is nothing to cluster")
        if share < 1:
            chosen = chosen[random_subset(len(chosen), share, rng)]
        ready_made = not hasattr(recipe, "build")
        if ready_made and share < 1:
            raise ValueError(
                "a graph given ready-made covers all documents; use a recipe such as KNNGraph() with a part"
            )
        if len(chosen) == n or ready_made:
            chosen = np.arange(n)
        if self.graph is None:
            recipe.set_params(n_neighbors=min(recipe.n_neighbors, len(chosen) - 1))
        labels = None if y is None else check_labels(y, "y", n_samples=n)[chosen]
        seed = rng.randint(2**31 - 1)
        model = LPI(wanted, recipe, solver=self.solver, alpha=self.alpha, random_state=seed)
        return model._fit(X if len(chosen) == n else take_rows(X, chosen), labels, allow_fewer=given is None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags
