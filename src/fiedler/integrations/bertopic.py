"""The clustering step of BERTopic, with memberships as the probabilities of topics.

BERTopic calls ``fit(X, y=None)`` and ``predict(X)`` of its ``hdbscan_model`` and reads ``labels_`` and, if it is there,
``probabilities_``: with one column per label, these become the probabilities of all topics, in the order of topics.
Only HDBSCAN is asked for the probabilities of new documents, so :func:`transform` returns these.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._typing import LabelsLike, MatrixLike, SupportsShape
from .._validation import check_takes_weights
from ..core.arrays import normalize_row_sums, to_numpy
from ..core.fitting import restore_on_failure
from ..errors import InputTypeError
from ..manifold.estimator import ManifoldClustering


def _has_memberships(model: ClusterModel) -> bool:
    return hasattr(model.clusterer_ if hasattr(model, "clusterer_") else model.clusterer, "predict_proba")


class ClusterModel(ClusterMixin, BaseEstimator):
    """A clusterer as the ``hdbscan_model`` of BERTopic.

    Parameters
    ----------
    clusterer : estimator, optional
        Any clusterer with ``predict``; it is cloned. With ``memberships_`` and ``predict_proba``, topics have
        probabilities. By default ``ManifoldClustering(random_state=0)``, which chooses the number of topics.

    Attributes
    ----------
    clusterer_ : estimator
        The fitted clusterer.
    labels_ : ndarray of shape (n_documents,)
        The cluster of each document, -1 for none. BERTopic numbers topics by their size, so they have other numbers.
    probabilities_ : ndarray of shape (n_documents, n_clusters)
        The memberships; rows sum to one, and clusters without documents have none. Only with a clusterer that has
        memberships.

    See Also
    --------
    transform : The topics of new documents with their probabilities.

    Examples
    --------
    >>> from fiedler import LPIClustering
    >>> from fiedler.datasets import blobs
    >>> from fiedler.integrations.bertopic import ClusterModel
    >>> embeddings, _ = blobs(90, n_features=8, n_clusters=3, random_state=0)
    >>> model = ClusterModel(LPIClustering(3, random_state=0)).fit(embeddings)
    >>> model.probabilities_.shape
    (90, 3)

    In BERTopic, which may leave the reduction of the dimension to the clusterer::

        BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=model)
    """

    def __init__(self, clusterer: Any = None) -> None:
        self.clusterer = clusterer

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
    ) -> Self:
        """Cluster the embeddings.

        Parameters
        ----------
        X : array of shape (n_documents, d)
            The embeddings, reduced or not.
        y : array of shape (n_documents,), optional
            The ``y`` of BERTopic, as the clusterer takes it: known clusters of some documents, -1 where unknown.
        sample_weight : array of shape (n_documents,), optional
            Weights of the documents, for a clusterer that takes them. BERTopic passes none.
        """
        clusterer = ManifoldClustering(random_state=0) if self.clusterer is None else clone(self.clusterer)
        if sample_weight is not None:
            check_takes_weights(clusterer)
        weights: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
        with restore_on_failure(self):
            self.clusterer_ = clusterer.fit(X, y, **weights)
            self.labels_ = to_numpy(self.clusterer_.labels_)
            self._clusters = np.unique(self.labels_[self.labels_ >= 0])
        return self

    @property
    def probabilities_(self) -> np.ndarray:
        """The memberships of the documents."""
        check_is_fitted(self)
        return self._of_clusters_with_documents(to_numpy(self.clusterer_.memberships_))

    @available_if(_has_memberships)
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the memberships, of shape (m, n_clusters), of new documents, whose embeddings have shape (m, d)."""
        check_is_fitted(self)
        return self._of_clusters_with_documents(to_numpy(self.clusterer_.predict_proba(X)))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the clusters, of shape (m,), of new documents, whose embeddings have shape (m, d)."""
        check_is_fitted(self)
        if hasattr(self, "predict_proba"):
            return self.predict_proba(X).argmax(axis=1)
        return to_numpy(self.clusterer_.predict(X))

    def _of_clusters_with_documents(self, memberships: np.ndarray) -> np.ndarray:
        """Return memberships of zero for clusters without documents, which are no topics; rows sum to one."""
        if len(self._clusters) == memberships.shape[1]:
            return memberships
        shares = np.zeros_like(memberships)
        smallest = np.finfo(memberships.dtype).tiny  # for documents that belong only to the clusters without documents
        shares[:, self._clusters] = np.maximum(memberships[:, self._clusters], smallest)
        return normalize_row_sums(shares)


class _Recorder:
    """A cluster model that keeps the memberships behind its predictions."""

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self.memberships: np.ndarray | None = None

    def predict(self, X: MatrixLike) -> np.ndarray:
        if not hasattr(self.model, "predict_proba"):
            return self.model.predict(X)
        self.memberships = self.model.predict_proba(X)
        return self.memberships.argmax(axis=1)


def transform(
    topic_model: Any, documents: str | Sequence[str], embeddings: np.ndarray | None = None, **options: Any
) -> tuple[list[int], np.ndarray | None]:
    """Return the topics of new documents and the probabilities of all topics.

    BERTopic's own ``transform`` returns the same topics, and probabilities only if its ``hdbscan_model`` is HDBSCAN.

    Parameters
    ----------
    topic_model : BERTopic
        Fitted, with a :class:`ClusterModel` as its ``hdbscan_model``.
    documents : str or sequence of str
    embeddings : array of shape (n_documents, d), optional
        Their embeddings; by default those of the model's encoder.
    **options
        Further arguments of ``BERTopic.transform``.

    Returns
    -------
    topics : list of int
    probabilities : ndarray of shape (n_documents, n_topics) or None
        In the order of topics, as ``topic_model.probabilities_``; merged topics have the sum of theirs. None if the
        clusterer has no memberships.

    Examples
    --------
    >>> from bertopic import BERTopic  # doctest: +SKIP
    >>> topic_model = BERTopic(hdbscan_model=ClusterModel()).fit(texts)  # doctest: +SKIP
    >>> topics, probabilities = transform(topic_model, ["a new document"])  # doctest: +SKIP
    """
    if not isinstance(getattr(topic_model, "hdbscan_model", None), ClusterModel):
        problem = "the topic model has no ClusterModel as its hdbscan_model, so there are no memberships"
        hint = "pass BERTopic(hdbscan_model=ClusterModel(...)), and save it as a pickle, which keeps the ClusterModel"
        raise InputTypeError(problem, hint, code="no_cluster_model", parameter="topic_model")
    with_memberships = copy(topic_model)
    with_memberships.hdbscan_model = recorder = _Recorder(topic_model.hdbscan_model)
    topics, _ = with_memberships.transform(documents, embeddings, **options)
    if recorder.memberships is None:
        return topics, None
    topic_of, memberships = topic_model.topic_mapper_.get_mappings(original_topics=True), recorder.memberships
    probabilities = np.zeros((len(memberships), max(topic_of.values()) + 1), dtype=memberships.dtype)
    for cluster, topic in topic_of.items():
        if cluster >= 0 and topic >= 0:  # those below zero are none
            probabilities[:, topic] += memberships[:, cluster]
    return topics, probabilities
