import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from fiedler import LPI, EmbedKMeans, KNNGraph, LabelGraph, LPIClustering, SpectralClustering, choose_n_clusters
from fiedler.core.backend import to_numpy
from fiedler.core.kmeans import kmeans
from fiedler.metrics import adjusted_rand_index, clustering_accuracy


@pytest.fixture
def corpus(rng):
    """Three topics of 120, 50 and 25 documents that share a fifth of their words; counts."""
    topics = 0.8 * rng.dirichlet(np.full(300, 0.1), size=3) + 0.2 * rng.dirichlet(np.full(300, 0.5))
    y = np.repeat([0, 1, 2], [120, 50, 25])
    return rng.poisson(60 * topics[y]).astype(float), y


def test_the_papers_method_is_lpi_and_kmeans(corpus):
    X, _ = corpus
    graph = KNNGraph(15, weight="dot")
    embedding = LPI(2, graph=graph).fit_transform(normalize(X))
    by_hand = kmeans(embedding, 3, n_init=10, random_state=0).labels
    for model in (
        LPIClustering(3, graph, alpha=0, assign="kmeans", random_state=1),
        EmbedKMeans(3, LPI(graph=graph), n_components="k-1", random_state=1),
    ):
        rows = X if isinstance(model, LPIClustering) else normalize(X)
        assert adjusted_rand_index(model.fit(rows).labels_, by_hand) == 1
        assert_allclose(np.abs(model.embedding_), np.abs(embedding), atol=1e-8)


@pytest.mark.parametrize("assign", ["mixture", "kmeans"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_topics_of_unequal_size_are_found_and_unseen_documents_follow(corpus, assign, container):
    X, y = corpus
    seen = np.arange(len(y)) % 4 > 0
    model = LPIClustering(3, assign=assign, alpha=0.1, random_state=0).fit(container(X[seen]))
    assert clustering_accuracy(y[seen], model.labels_) > 0.97
    assert clustering_accuracy(y[~seen], model.predict(container(X[~seen]))) > 0.95
    assert_array_equal(model.predict(container(X[seen])), model.labels_)
    assert hasattr(model, "predict_proba") == (assign == "mixture")
    if assign == "mixture":
        assert_allclose(model.memberships_, model.predict_proba(container(X[seen])), atol=1e-6)
        assert_array_equal(model.memberships_.argmax(axis=1), model.labels_)


def test_a_part_of_the_documents_is_enough_for_the_map(corpus):
    X, y = corpus
    model = LPIClustering(3, fit_fraction=0.4, alpha=0.1, random_state=0).fit(X)
    assert model.graph_.n_nodes == round(0.4 * len(y))
    assert model.labels_.shape == y.shape
    assert clustering_accuracy(y, model.labels_) > 0.95
    with pytest.raises(ValueError, match=r"fit_fraction=1.5 must be a share"):
        LPIClustering(3, fit_fraction=1.5).fit(X)


def test_labels_may_guide_the_map(corpus):
    X, y = corpus
    partial = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    graph = LabelGraph(KNNGraph(9, weight="local", symmetrize="mean"))
    model = LPIClustering(3, graph, random_state=0).fit(X, partial)
    assert clustering_accuracy(y, model.labels_) > 0.97
    part = LPIClustering(3, graph, fit_fraction=0.5, random_state=0).fit(X, partial)
    assert clustering_accuracy(y, part.labels_) > 0.9


def test_the_length_of_a_document_does_not_matter(corpus, rng):
    X, _ = corpus
    longer = X * rng.randint(1, 9, size=(len(X), 1))
    first, second = (LPIClustering(3, random_state=0).fit(rows) for rows in (X, longer))
    assert adjusted_rand_index(first.labels_, second.labels_) == 1
    assert_array_equal(first.predict(longer), first.labels_)


def test_documents_without_words_get_a_cluster_too(corpus):
    X, _ = corpus
    X[7] = 0
    model = LPIClustering(3, graph=KNNGraph(9, weight="dot"), random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert model.labels_[7] in (0, 1, 2)


def test_it_runs_where_the_rows_are(corpus, foreign):
    X, _ = corpus
    here, there = (LPIClustering(3, random_state=0).fit(rows) for rows in (X, foreign(X)))
    assert adjusted_rand_index(to_numpy(there.labels_), here.labels_) == 1
    assert adjusted_rand_index(to_numpy(there.predict(foreign(X))), here.labels_) == 1


# ----------------------------------------------------------------------------------------- embeddings and k-means


def test_latent_semantic_indexing_then_kmeans(corpus):
    X, _ = corpus
    rows = sp.csr_array(normalize(X))
    model = EmbedKMeans(3, TruncatedSVD(), n_components="k", random_state=0).fit(rows)
    assert model.embedding_.shape == (len(X), 3)
    assert_array_equal(model.predict(rows), model.labels_)
    assert model.embedding.n_components == 2, "the transformer given is left as it was"


def test_spherical_kmeans_sees_directions_only(corpus, rng):
    X, _ = corpus
    model = EmbedKMeans(3, metric="cosine", random_state=0).fit(X)
    scaled = X * rng.uniform(0.5, 9, size=(len(X), 1))
    assert_array_equal(model.predict(scaled), model.labels_)
    assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)


def test_dimensions_are_named_or_counted(corpus):
    X, _ = corpus
    assert EmbedKMeans(4, TruncatedSVD(), n_components=7).fit(X).embedding_.shape[1] == 7
    assert EmbedKMeans(4, TruncatedSVD(5)).fit(X).embedding_.shape[1] == 5
    with pytest.raises(ValueError, match="n_components"):
        EmbedKMeans(4, TruncatedSVD(), n_components="2k").fit(X)


# --------------------------------------------------------------------------------------------- how many clusters


@pytest.mark.parametrize("by", ["stability", "eigengap"])
def test_the_number_of_topics_is_found_with_evidence(corpus, by):
    X, _ = corpus
    choice = choose_n_clusters(X, range(2, 7), by=by, n_pairs=4, random_state=0)
    assert choice.n_clusters == 3
    assert choice.candidates == [2, 3, 4, 5, 6]
    assert len(choice.gaps) == 5
    assert (choice.stability is not None) == (by == "stability")
    assert str(choice).startswith(f"3 clusters, by {by}")
    assert str(choice).count("<") == 1


def test_any_clusterer_may_be_asked(rng):
    X = np.repeat(6 * np.eye(4), 30, axis=0) + rng.normal(size=(120, 4))
    choice = choose_n_clusters(X, [2, 3, 4, 5], estimator=SpectralClustering(), n_pairs=3, random_state=0)
    assert choice.n_clusters == 4
    assert choice.stability[2] == pytest.approx(1, abs=0.02)


def test_bad_candidates_end_in_a_sentence(corpus):
    X, _ = corpus
    with pytest.raises(ValueError, match="no number of clusters to choose from"):
        choose_n_clusters(X, [])
    with pytest.raises(ValueError, match="is more than the data holds"):
        choose_n_clusters(X, [2, 500])
    with pytest.raises(ValueError, match="fraction="):
        choose_n_clusters(X, fraction=2)
