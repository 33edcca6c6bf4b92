"""K-means on an embedding: how the papers cluster with LSI, Laplacian eigenmaps, principal components and LPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from .._typing import Array, LabelsLike, MatrixLike, RandomState, SupportsShape, Transformer
from .._validation import Check, check_data, check_n_clusters, check_seed, integer, none_or, one_of
from ..core.arrays import convert_rows, is_numpy, namespace, normalize_rows
from ..core.fitting import fit_method
from ..core.kmeans import IS_SPHERICAL, kmeans, nearest_center
from ..errors import InputError, shown
from ..graph.estimator import ClustererMixin
from ..graph.weights import check_sample_weight

EXTRA_DIMENSIONS = {"k": 0, "k-1": -1}  # dimensions of the embedding minus the number of clusters


def _check_transformer(embedding: object, name: str) -> None:
    if not hasattr(embedding, "fit_transform"):
        problem = f"{name}={shown(embedding)} is not a transformer"
        raise InputError(problem, "pass one such as TruncatedSVD()", parameter=name, value=embedding)


class EmbedKMeans(ClustererMixin, BaseEstimator):
    """K-means on the rows or on an embedding of them.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    embedding : transformer, optional
        ``TruncatedSVD()`` for LSI, ``LaplacianEigenmaps()``, ``LPI()``, ``PCA(0.98)``; None clusters the rows.
    n_components : {'k', 'k-1'} or int, optional
        The number of dimensions of the embedding; None keeps the embedding's own.
    metric : {'euclidean', 'cosine'}, default='euclidean'
        'cosine' is spherical k-means.
    n_init : int, default=10
        The number of initialisations; the run with the lowest inertia is kept.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    cluster_centers_ : array of shape (n_clusters, n_components)
        The centres.
    inertia_ : float
        The sum of squared distances to the centres (for 'cosine', of 1 - cosine).
    n_iter_ : int
        The number of iterations of the best run.
    converged_ : bool
        Whether the best run converged.
    embedding_ : array of shape (n_samples, n_components)
        The embedded rows, if there is an embedding.
    embedder_ : transformer or None
        The fitted embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from fiedler import EmbedKMeans, LaplacianEigenmaps
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = EmbedKMeans(10, LaplacianEigenmaps(), n_components="k-1", random_state=0).fit(X)
    >>> model.embedding_.shape
    (1797, 9)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "embedding": none_or(_check_transformer),
        "n_components": none_or(one_of(EXTRA_DIMENSIONS, integer())),
        "metric": one_of(IS_SPHERICAL),
        "n_init": integer(),
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        embedding: Transformer | None = None,
        *,
        n_components: int | Literal["k", "k-1"] | None = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.n_components = n_components
        self.metric = metric
        self.n_init = n_init
        self.random_state = random_state

    @fit_method
    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
    ) -> Self:
        """Embed the rows of ``X`` and cluster them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The rows.
        y : array of shape (n,), optional
            Labels, passed to the embedding.
        sample_weight : array of shape (n,), optional
            Non-negative weights of the rows in k-means. The embedding does not use them.

        Returns
        -------
        self
        """
        self._spherical = IS_SPHERICAL[self.metric]
        rows: Array = check_data(X, estimator=self)
        k = check_n_clusters(self.n_clusters, rows.shape[0])
        weights = check_sample_weight(sample_weight, rows.shape[0], allow_zero=True)
        rng = check_seed(self.random_state)
        self.embedder_ = self._make_embedder(k, rng)
        self.__dict__.pop("embedding_", None)
        if self.embedder_ is not None:
            self.embedding_ = self.embedder_.fit_transform(rows, y)
            rows = check_data(self.embedding_)  # the output of any transformer, not validated yet
        best = kmeans(rows, k, metric=self.metric, n_init=self.n_init, sample_weight=weights, random_state=rng)
        self.labels_, self.cluster_centers_ = best.labels, best.centers
        self.inertia_, self.n_iter_, self.converged_ = best.inertia, best.n_iter, best.converged
        return self

    def predict(self, X: MatrixLike) -> Array:
        """Return the cluster of each new row.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, n_features)

        Returns
        -------
        labels : array of shape (m,)
        """
        check_is_fitted(self)
        X = check_data(X, estimator=self, reset=False)
        rows = X if self.embedder_ is None else self.embedder_.transform(X)
        if not (sp.issparse(rows) and is_numpy(self.cluster_centers_)):
            rows = convert_rows(rows, self.cluster_centers_)
        labels, _ = nearest_center(normalize_rows(rows) if self._spherical else rows, self.cluster_centers_)
        return namespace(labels).astype(labels, self.labels_.dtype)

    def _make_embedder(self, n_clusters: int, rng: np.random.RandomState) -> Any:
        """Clone the embedding and set its number of dimensions and its seed; None without an embedding."""
        if self.embedding is None:
            return None
        embedder = clone(self.embedding)
        if hasattr(embedder, "set_output"):
            embedder.set_output(transform="default")
        if "random_state" in embedder.get_params() and embedder.random_state is None:
            embedder.set_params(random_state=rng.randint(2**31 - 1))
        if isinstance(self.n_components, str):
            embedder.set_params(n_components=max(n_clusters + EXTRA_DIMENSIONS[self.n_components], 1))
        elif self.n_components is not None:
            embedder.set_params(n_components=self.n_components)
        return embedder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        has_tags = hasattr(self.embedding, "__sklearn_tags__")
        tags.input_tags.sparse = not has_tags or get_tags(self.embedding).input_tags.sparse
        return tags
