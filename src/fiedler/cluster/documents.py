"""`LPIClustering`: documents to clusters through locality preserving indexing. Paper key: lpi.

The paper maps documents to k - 1 dimensions by LPI on 15 neighbours with dot-product weights and runs k-means there.
Ours differs in two places, for one reason: topics are of very unequal size.

- The graph has twelve neighbours with self-tuned weights, an edge found from one side counting half. A small topic has
  few neighbours of its own.
- Clusters are read off by a Gaussian mixture started from k-means. K-means prefers clusters of equal spread and cuts
  large topics; in LPI's coordinates small topics lie far out and are tight, large ones near the origin and wide.

``graph=KNNGraph(15, weight="dot"), alpha=0, assign="kmeans"`` is the paper's.
"""

from __future__ import annotations

import numbers
from typing import Any

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_n_clusters, choose
from ..core.backend import Array, is_numpy, like, namespace
from ..core.kmeans import kmeans, nearest_center
from ..core.rows import unit_rows
from ..embedding.lpi import LPI
from ..graph.estimator import GraphEstimatorMixin
from ..graph.recipes import KNNGraph
from ..mixture.gaussian import GaussianMixture

N_NEIGHBORS = 12
ASSIGN = {"mixture": True, "kmeans": False}  # whether memberships are soft


def _is_soft(model: Any) -> bool:
    return bool(ASSIGN.get(model.assign, False))


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
        Dimensions of LPI; by default ``n_clusters - 1``.
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
    Rows are taken at length one, whatever their length: documents differ by direction. A row of zeros is mapped to
    where the origin goes.

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
        solver: str = "auto",
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
        soft = choose(ASSIGN, self.assign, option="assign")
        X = unit_rows(check_data(X, estimator=self, min_samples=2))
        if X.shape[1] < 2:
            raise ValueError(
                "rows at length one have no directions to tell apart with n_features=1; give more features"
            )
        k = check_n_clusters(self.n_clusters, X.shape[0])
        rng = check_random_state(self.random_state)
        self.lpi_ = self._learn(X, y, k, rng)
        self.graph_ = self.lpi_.graph_
        self.embedding_ = self.lpi_.transform(X)
        best = kmeans(self.embedding_, k, n_init=self.n_init, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        if soft:
            seed = rng.randint(2**31 - 1)
            self.mixture_ = GaussianMixture(k, init=best.labels, random_state=seed).fit(self.embedding_)
            self.labels_, self.cluster_centers_ = self.mixture_.labels_, self.mixture_.means_
            self.memberships_ = self.mixture_.memberships_
        return self

    def predict(self, X: Any) -> Array:
        """The cluster of each document, seen or not."""
        rows = self.transform(X)
        if self.assign == "mixture":
            return self.mixture_.predict(rows)
        labels, _ = nearest_center(rows, self.cluster_centers_)
        return namespace(labels).astype(labels, self.labels_.dtype)

    @available_if(_is_soft)
    def predict_proba(self, X: Any) -> Array:
        """The memberships of documents, seen or not."""
        rows = self.transform(X)
        return self.mixture_.predict_proba(rows)

    def transform(self, X: Any) -> Array:
        """The coordinates of documents, seen or not."""
        check_is_fitted(self)
        return self.lpi_.transform(unit_rows(check_data(X, estimator=self, reset=False)))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _recipe(self) -> Any:
        """The graph parameter with the default filled in: fewer neighbours among fewer documents."""
        if self.graph is not None:
            return self.graph
        return KNNGraph(max(round(N_NEIGHBORS * self._share() ** 0.5), 3), weight="local", symmetrize="mean")

    def _share(self) -> float:
        share = self.fit_fraction
        if isinstance(share, numbers.Real) and not isinstance(share, bool) and 0 < float(share) <= 1:
            return float(share)
        raise ValueError(f"fit_fraction={share!r} must be a share of the documents, above 0 and at most 1")

    def _learn(self, X: Array, y: Any, k: int, rng: Any) -> LPI:
        """LPI on all rows, or on the share of them asked for."""
        n_components = max(k - 1, 1) if self.n_components is None else check_int(self.n_components, "n_components")
        share = self._share()
        model = LPI(n_components, self._recipe(), solver=self.solver, alpha=self.alpha, random_state=rng)
        if share == 1:
            return model.fit(X, y)
        chosen = rng.permutation(X.shape[0])[: max(round(share * X.shape[0]), 2)]
        chosen.sort()
        rows = X[chosen] if is_numpy(X) else namespace(X).take(X, like(chosen, X), axis=0)
        return model.fit(rows, None if y is None else [y[i] for i in chosen])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags
