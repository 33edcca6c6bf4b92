"""The clustering step of BERTopic: in BERTopic, where it is installed, and in a stand-in that makes the same calls."""

from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import AgglomerativeClustering

from fiedler import GaussianMixture, GenieLinkage, LPIClustering, ManifoldClustering
from fiedler.datasets import blobs
from fiedler.errors import InputError, InputTypeError
from fiedler.integrations.bertopic import ClusterModel, transform

SIZES = (10, 40, 25)  # so that the order of topics, by size, is not that of clusters
CLASS_OF_TOPIC = np.array([1, 2, 0])
WORDS = ("star planet orbit", "bread butter oven", "river lake stream")


class Mapper:
    """The topic of each cluster, as BERTopic's TopicMapper: the first topic is the largest."""

    def __init__(self, labels):
        sizes = Counter(label for label in labels if label >= 0).most_common()
        self.topic_of = {label: topic for topic, (label, _) in enumerate(sizes)}
        self.topic_of |= {-1: -1} if -1 in labels else {}

    def get_mappings(self, original_topics=True):
        return self.topic_of


class StandIn:
    """What BERTopic does with its ``hdbscan_model``: ``_cluster_embeddings``, ``_map_probabilities``, ``transform``."""

    def __init__(self, hdbscan_model):
        self.hdbscan_model = hdbscan_model

    def fit(self, documents, embeddings, y=None):
        try:
            self.hdbscan_model.fit(embeddings, y=y)
        except TypeError:
            self.hdbscan_model.fit(embeddings)
        labels = self.hdbscan_model.labels_
        self.topic_mapper_ = Mapper(labels.tolist())
        mapping = self.topic_mapper_.get_mappings(original_topics=True)
        self.topics_ = [mapping[label] for label in labels]
        self.probabilities_ = None
        if hasattr(self.hdbscan_model, "probabilities_"):
            probabilities = self.hdbscan_model.probabilities_
            self.probabilities_ = np.zeros((len(probabilities), len(set(mapping.values()) - {-1})))
            for label, topic in mapping.items():
                if label != -1 and topic != -1:
                    self.probabilities_[:, topic] += probabilities[:, label]
        return self

    def transform(self, documents, embeddings=None):
        mapping = self.topic_mapper_.get_mappings(original_topics=True)
        return [mapping.get(label, -1) for label in self.hdbscan_model.predict(embeddings)], None


def skip_without_bertopic():
    """Skip a test; without hdbscan, BERTopic cannot transform with any clusterer."""
    if find_spec("bertopic") is None or find_spec("hdbscan") is None:
        pytest.skip("BERTopic is not installed")


def make_bertopic(hdbscan_model):
    from bertopic import BERTopic
    from bertopic.dimensionality import BaseDimensionalityReduction

    return BERTopic(embedding_model=None, umap_model=BaseDimensionalityReduction(), hdbscan_model=hdbscan_model)


@pytest.fixture(params=["stand-in", "BERTopic"])
def make_topics(request):
    """Make a topic model with a cluster model."""
    if request.param == "BERTopic":
        skip_without_bertopic()
    return StandIn if request.param == "stand-in" else make_bertopic


@pytest.fixture
def documents(fixed_rng):
    """Texts of three topics, their embeddings and their classes."""
    y = np.repeat(range(3), SIZES)
    centers = 9 * np.eye(3, 5)
    return [f"{WORDS[k]} text{i}" for i, k in enumerate(y)], centers[y] + fixed_rng.normal(size=(len(y), 5)), y


CLUSTERERS = {
    "default": None,
    "LPI": LPIClustering(3, random_state=0),
    "mixture": GaussianMixture(3, random_state=0),
    "outliers": ManifoldClustering(3, outliers=0.04, random_state=0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLUSTERERS)
def test_topics_have_probabilities_in_the_fit_and_for_new_documents(name, make_topics, documents):
    texts, embeddings, y = documents
    model = make_topics(ClusterModel(CLUSTERERS[name])).fit(texts, embeddings)

    topics, probabilities = transform(model, texts, embeddings)

    fitted = np.array(model.topics_)
    assigned = fitted >= 0
    assert (name == "outliers") == (not assigned.all())
    assert_array_equal(CLASS_OF_TOPIC[fitted[assigned]], y[assigned])
    for Q in (model.probabilities_, probabilities):
        assert Q.shape == (75, fitted.max() + 1)
        assert_allclose(Q.sum(axis=1), 1)
    assert_array_equal(model.probabilities_.argmax(axis=1)[assigned], fitted[assigned])
    assert_array_equal(np.array(topics)[assigned], fitted[assigned])
    assert_array_equal(probabilities.argmax(axis=1), topics)
    assert_array_equal(model.transform(texts, embeddings)[0], topics)


def test_a_clusterer_without_memberships_has_no_probabilities(make_topics, documents):
    texts, embeddings, y = documents
    model = make_topics(ClusterModel(GenieLinkage(3))).fit(texts, embeddings)

    topics, probabilities = transform(model, texts, embeddings)

    assert_array_equal(CLASS_OF_TOPIC[topics], y)
    assert_array_equal(model.topics_, topics)
    assert probabilities is None
    assert model.probabilities_ is None


class OneEmpty(ClusterMixin, BaseEstimator):
    """Four clusters by the sign of two columns, of which the second is without rows."""

    def fit(self, X, y=None):
        self.memberships_ = self.predict_proba(X)
        self.labels_ = np.array([0, 2, 3])[self.memberships_[:, [0, 2, 3]].argmax(axis=1)]
        return self

    def predict_proba(self, X):
        return np.array([[0.1, 0.5, 0.3, 0.1], [0.7, 0.1, 0.1, 0.1], [0, 1, 0, 0], [0, 0, 0, 1]])[X[:, 0].astype(int)]


def test_clusters_without_documents_are_no_topics():
    X = np.repeat(np.arange(4.0), 5)[:, None]
    model = StandIn(ClusterModel(OneEmpty())).fit(None, X[X[:, 0] != 2])

    topics, probabilities = transform(model, None, X[::5])

    Q = model.hdbscan_model.predict_proba(X[::5])
    assert_allclose(
        Q, [[0.2, 0, 0.6, 0.2], [7 / 9, 0, 1 / 9, 1 / 9], [1 / 3, 0, 1 / 3, 1 / 3], [0, 0, 0, 1]], atol=1e-12
    )
    assert probabilities.shape == (4, 3)
    for shares in (probabilities, model.probabilities_):
        assert_allclose(shares.sum(axis=1), 1)
    assert min(topics) == 0


def test_known_topics_of_some_documents_guide_the_clusters(make_topics, documents):
    texts, embeddings, y = documents
    known = np.where(np.arange(len(y)) % 5 == 0, 2 - y, -1)

    model = make_topics(ClusterModel(ManifoldClustering(3, random_state=0))).fit(texts, embeddings, y=known)

    assert_array_equal(model.hdbscan_model.labels_, 2 - y)


def test_merged_topics_have_the_sum_of_their_probabilities(documents):
    skip_without_bertopic()
    texts, embeddings, _ = documents
    model = make_bertopic(ClusterModel(GaussianMixture(3, random_state=0))).fit(texts, embeddings)
    before = transform(model, texts, embeddings)[1]

    model.merge_topics(texts, [1, 2])
    topics, probabilities = transform(model, texts, embeddings)

    assert set(topics) == {0, 1}
    assert_allclose(probabilities, np.stack([before[:, 0], before[:, 1] + before[:, 2]], axis=1))
    assert_allclose(probabilities.sum(axis=1), 1)


def test_a_topic_model_with_another_clusterer_is_refused(documents):
    texts, embeddings, _ = documents
    model = StandIn(ManifoldClustering(3, random_state=0)).fit(texts, embeddings)

    with pytest.raises(InputTypeError, match=r"has no ClusterModel .*; pass BERTopic\(hdbscan_model=ClusterModel"):
        transform(model, texts, embeddings)


def test_the_clusterer_is_cloned_and_its_parameters_are_nested():
    clusterer = LPIClustering(3, random_state=0)
    X, _ = blobs(60, n_features=4, n_clusters=3, random_state=0)
    model = clone(ClusterModel(clusterer)).set_params(clusterer__n_clusters=2).fit(X)

    assert model.probabilities_.shape == (60, 2)
    assert not hasattr(clusterer, "labels_")
    assert clusterer.n_clusters == 3


def test_weights_are_those_of_the_clusterer():
    X, _ = blobs(60, n_features=3, n_clusters=3, random_state=0)
    weights = np.random.RandomState(0).randint(1, 5, size=60)

    model = ClusterModel(GaussianMixture(3, random_state=0)).fit(X, sample_weight=weights)

    assert_allclose(model.probabilities_, GaussianMixture(3, random_state=0).fit(X, sample_weight=weights).memberships_)
    with pytest.raises(InputError, match="AgglomerativeClustering does not weigh rows; leave sample_weight out"):
        ClusterModel(AgglomerativeClustering(3)).fit(X, sample_weight=weights)
