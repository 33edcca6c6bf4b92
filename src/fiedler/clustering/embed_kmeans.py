"""An embedding, then k-means: how the papers cluster with LSI, Laplacian eigenmaps, principal components and LPI."""

from __future__ import annotations

from typing import Any, Literal

import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_n_clusters, choose
from ..core.backend import Array, convert_like, namespace
from ..core.kmeans import METRICS, kmeans, nearest_center
from ..core.rows import normalize_rows

SIZES = {"k": 0, "k-1": -1}  # dimensions beside the number of clusters


class EmbedKMeans(ClusterMixin, BaseEstimator):
    """K-means on the rows themselves, or on an embedding of them.

    Parameters
    ----------
    n_clusters : int, default=8
    embedding : transformer, optional
        ``TruncatedSVD()`` for LSI, ``LaplacianEigenmaps()``, ``LPI()``, ``PCA(0.98)``; None clusters the rows.
    n_components : {'k', 'k-1'} or int, optional
        Dimensions to ask of the embedding; None leaves them as they are.
    metric : {'euclidean', 'cosine'}, default='euclidean'
        'cosine' is spherical k-means.
    n_init : int, default=10
        Seedings; the run of lowest inertia is kept.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    cluster_centers_ : array of shape (n_clusters, n_components)
    inertia_ : float
    n_iter_ : int
    embedding_ : array of shape (n_samples, n_components)
        What k-means saw, if there is an embedding.
    embedder_ : transformer
        The fitted embedding, or None.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fiedler import EmbedKMeans, LaplacianEigenmaps
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = EmbedKMeans(10, LaplacianEigenmaps(), n_components="k-1", random_state=0).fit(X)
    >>> model.embedding_.shape
    (1797, 9)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        embedding: Any = None,
        *,
        n_components: Any = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        n_init: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.n_components = n_components
        self.metric = metric
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> EmbedKMeans:
        """Embed the rows of ``X`` and cluster them."""
        self._spherical = choose(METRICS, self.metric, option="metric")
        if self.embedding is not None and not hasattr(self.embedding, "fit_transform"):
            raise ValueError(f"embedding={self.embedding!r} is no transformer; give one such as TruncatedSVD()")
        X = check_data(X, estimator=self)
        k = check_n_clusters(self.n_clusters, X.shape[0])
        rng = check_random_state(self.random_state)
        self.embedder_ = self._embedder(k, rng)
        rows = X
        self.__dict__.pop("embedding_", None)
        if self.embedder_ is not None:
            self.embedding_ = self.embedder_.fit_transform(X, y)
            rows = check_data(self.embedding_)  # of any transformer, so not validated yet
        best = kmeans(rows, k, metric=self.metric, n_init=self.n_init, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        self.inertia_, self.n_iter_ = best.inertia, best.n_iter
        return self

    def predict(self, X: Any) -> Array:
        """The cluster of each new row."""
        check_is_fitted(self)
        X = check_data(X, estimator=self, reset=False)
        rows = X if self.embedder_ is None else self.embedder_.transform(X)
        rows = rows if sp.issparse(rows) else convert_like(rows, self.cluster_centers_)
        labels, _ = nearest_center(normalize_rows(rows) if self._spherical else rows, self.cluster_centers_)
        return namespace(labels).astype(labels, self.labels_.dtype)

    def _embedder(self, k: int, rng: Any) -> Any:
        extra = choose(SIZES, self.n_components, option="n_components") if isinstance(self.n_components, str) else 0
        if self.embedding is None:
            return None
        embedder = clone(self.embedding)
        if hasattr(embedder, "set_output"):
            embedder.set_output(transform="default")
        if "random_state" in embedder.get_params() and embedder.random_state is None:
            embedder.set_params(random_state=rng.randint(2**31 - 1))
        if isinstance(self.n_components, str):
            embedder.set_params(n_components=max(k + extra, 1))
        elif self.n_components is not None:
            embedder.set_params(n_components=check_int(self.n_components, "n_components"))
        return embedder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        known = hasattr(self.embedding, "__sklearn_tags__")
        tags.input_tags.sparse = not known or get_tags(self.embedding).input_tags.sparse
        return tags
