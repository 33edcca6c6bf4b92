import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from fiedler import LPI, EmbedKMeans, KNNGraph, LabelGraph, LPIClustering, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.core.kmeans import kmeans
from fiedler.metrics import adjusted_rand_index, clustering_accuracy


@pytest.fixture
def corpus(rng):
    """Three topics of 120, 50 and 25 documents that share a fifth of their words; counts."""
    topics = 0.8 * rng.dirichlet(np.full(300, 0.1), size=3) + 0.2 * rng.dirichlet(np.full(300, 0.5))
    y = np.repeat([0, 1, 2], [120, 50, 25])
    return rng.poisson(60 * topics[y]).astype(float), y


def test_the_papers_method_is_lpi_and_kmeans(corpus):
    """The graph has three components, so both coordinates have λ = 0 and are defined up to a rotation: what does not
    depend on it, and all that k-means uses, are the distances between rows."""
    X, _ = corpus
    graph = KNNGraph(15, weight="dot")
    embedding = LPI(2, graph=graph).fit_transform(normalize(X))
    expected = kmeans(embedding, 3, n_init=10, random_state=0).labels
    for model in (
        LPIClustering(3, graph, alpha=0, assign="kmeans", random_state=1),
        EmbedKMeans(3, LPI(graph=graph), n_components="k-1", random_state=1),
    ):
        rows = X if isinstance(model, LPIClustering) else normalize(X)
        assert adjusted_rand_index(model.fit(rows).labels_, expected) == 1
        assert_allclose(pdist(model.embedding_), pdist(embedding), atol=1e-8)


@pytest.fixture
def mixed(rng):
    """Three topics of 80 documents each that share four fifths of their words."""
    common = rng.dirichlet(np.full(200, 0.3))
    topics = 0.8 * common + 0.2 * rng.dirichlet(np.full(200, 0.1), size=3)
    y = np.arange(240) % 3
    return rng.poisson(30 * topics[y]).astype(float), y


@pytest.mark.parametrize("assign", ["mixture", "kmeans"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_pairs_improve_the_clusters(mixed, assign, container):
    X, y = mixed
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    rest = np.setdiff1d(np.arange(len(y)), pairs.rows)
    model = LPIClustering(3, assign=assign, random_state=0)
    without = clone(model).fit(container(X)).labels_
    labels = model.fit(container(X), constraints=pairs).labels_

    assert pairs.violations(labels).n_pairs < 0.1 * pairs.violations(without).n_pairs
    assert clustering_accuracy(y, labels) > clustering_accuracy(y, without)
    assert clustering_accuracy(y[rest], labels[rest]) >= clustering_accuracy(y[rest], without[rest])
    assert model.graph_.has_negative_weights


@pytest.mark.parametrize("assign", ["mixture", "kmeans"])
def test_hard_must_links_are_never_split(mixed, assign):
    X, y = mixed
    rows = np.flatnonzero(y < 2)[:20]  # of two topics
    pairs = PairwiseConstraints([(rows[0], row) for row in rows[1:]], n_samples=len(y), strength=0.01, hard=True)
    labels = LPIClustering(3, assign=assign, random_state=0).fit(X, constraints=pairs).labels_
    assert len(np.unique(labels[rows])) == 1


def test_pairs_count_among_the_documents_of_the_map(mixed):
    """Empty documents and those outside ``fit_fraction`` are not in the graph; pairs of others keep their rows."""
    X, y = mixed
    X[:10] = 0
    pairs = PairwiseConstraints.from_labels(np.where(np.arange(len(y)) < 40, y, -1))
    model = LPIClustering(3, random_state=0).fit(X, constraints=pairs)
    assert model.graph_.n_nodes == len(y) - 10
    kept = pairs.subset(np.arange(10, len(y)))
    negative = model.graph_.weights.toarray() < 0
    assert_array_equal(np.argwhere(np.triu(negative)), kept.cannot_link)
    part = LPIClustering(3, fit_fraction=0.5, random_state=0).fit(X, constraints=pairs)
    assert part.graph_.n_nodes == (len(y) - 10) // 2
    assert part.graph_.has_negative_weights


def test_no_pairs_leave_the_clusters_as_they_are(corpus):
    X, _ = corpus
    none = PairwiseConstraints(n_samples=len(X))
    with_none, plain = (LPIClustering(3, random_state=0).fit(X, constraints=pairs) for pairs in (none, None))
    assert_array_equal(with_none.embedding_, plain.embedding_)
    assert_array_equal(with_none.labels_, plain.labels_)


def test_unit_rows_are_not_rescaled(corpus):
    """Counts have equal dot products, and the last bit of a row would decide which of them are neighbours."""
    X, _ = corpus
    model = LPIClustering(3, KNNGraph(15, weight="dot"), alpha=0, assign="kmeans", random_state=0)
    scaled, raw = clone(model).fit(normalize(X)), clone(model).fit(X)
    assert (scaled.graph_.weights != raw.graph_.weights).nnz == 0
    assert_array_equal(scaled.embedding_, raw.embedding_)


@pytest.mark.parametrize("assign", ["mixture", "kmeans"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_topics_of_unequal_size_are_clustered_and_predicted(corpus, assign, container):
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


def test_map_can_be_fitted_on_a_fraction_of_the_documents(corpus):
    X, y = corpus
    model = LPIClustering(3, fit_fraction=0.4, alpha=0.1, random_state=0).fit(X)
    assert model.graph_.n_nodes == round(0.4 * len(y))
    assert model.labels_.shape == y.shape
    assert clustering_accuracy(y, model.labels_) > 0.95
    with pytest.raises(ValueError, match=r"fit_fraction must be a fraction above 0 .* got 1.5"):
        LPIClustering(3, fit_fraction=1.5).fit(X)


def test_partial_labels_guide_the_map(corpus):
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


@pytest.mark.parametrize("n_empty", [1, 12, 50])
@pytest.mark.parametrize("graph", [None, KNNGraph(9, weight="dot")])
def test_empty_documents_get_a_cluster_and_change_no_other(corpus, n_empty, graph):
    """At length one a row of zeros is nearer to every document than documents are to each other."""
    X, y = corpus
    rows = np.concatenate([X, np.zeros((n_empty, X.shape[1]))])
    plain, model = (LPIClustering(3, graph, random_state=0).fit(part) for part in (X, rows))
    assert np.isfinite(model.embedding_).all()
    assert model.graph_.n_nodes == len(X)
    assert clustering_accuracy(y, model.labels_[: len(y)]) >= clustering_accuracy(y, plain.labels_) - 0.01
    with pytest.raises(ValueError, match="0 of 20 documents contain any term"):
        LPIClustering(2).fit(np.zeros((20, 5)))


def test_fewer_features_than_clusters(rng):
    X = np.abs(rng.normal(size=(300, 5)))
    assert LPIClustering(8, random_state=0).fit(X).embedding_.shape[1] == 5
    with pytest.raises(ValueError, match="n_components=7 is too many"):
        LPIClustering(8, n_components=7).fit(X)


def test_labels_are_matched_by_position(corpus):
    X, y = corpus
    partial = np.where(np.arange(len(y)) % 3 == 0, y, -1)
    graph = LabelGraph(KNNGraph(9))
    shuffled = pd.Series(partial, index=np.random.RandomState(1).permutation(len(y)))
    first, second = (
        LPIClustering(3, graph, fit_fraction=0.6, random_state=0).fit(X, part) for part in (partial, shuffled)
    )
    assert_allclose(first.embedding_, second.embedding_)
    with pytest.raises(ValueError, match="y has 194 entries"):
        LPIClustering(3, graph, fit_fraction=0.6).fit(X, partial[:-1])


@pytest.mark.parametrize("assign", ["mixture", "kmeans"])
def test_data_frames_and_parameters_set_later(corpus, assign):
    X, _ = corpus
    model = LPIClustering(3, assign=assign, random_state=0).fit(X)
    labels = model.predict(X)
    with sklearn.config_context(transform_output="pandas"):
        assert_array_equal(LPIClustering(3, assign=assign, random_state=0).fit(X).predict(X), labels)
        assert isinstance(model.transform(X), pd.DataFrame)
        assert EmbedKMeans(3, LPI(graph=KNNGraph(9)), n_components="k-1").fit(X).predict(X).shape == labels.shape
    other = "kmeans" if assign == "mixture" else "mixture"
    model.set_params(assign=other)
    assert_array_equal(model.predict(X), labels)
    assert hasattr(model.fit(X), "memberships_") == (other == "mixture")


def test_sparse_documents_stay_sparse(corpus, monkeypatch):
    X, _ = corpus
    rows = sp.csr_array(X)

    def refuse(self, *args, **kwargs):
        if self.shape[1] == X.shape[1]:
            raise AssertionError("documents were converted to a dense array")
        return toarray(self, *args, **kwargs)

    toarray = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", refuse)
    monkeypatch.setattr(sp.csr_array, "todense", refuse)
    for solver in ("svd", "regression"):
        LPIClustering(3, solver=solver, random_state=0).fit(rows).predict(rows)


def test_back_ends_agree(corpus, foreign):
    X, _ = corpus
    numpy_model, foreign_model = (LPIClustering(3, random_state=0).fit(rows) for rows in (X, foreign(X)))
    assert adjusted_rand_index(to_numpy(foreign_model.labels_), numpy_model.labels_) == 1
    assert adjusted_rand_index(to_numpy(foreign_model.predict(foreign(X))), numpy_model.labels_) == 1


# ----------------------------------------------------------------------------------------- embeddings and k-means


def test_latent_semantic_indexing_then_kmeans(corpus):
    X, _ = corpus
    rows = sp.csr_array(normalize(X))
    model = EmbedKMeans(3, TruncatedSVD(), n_components="k", random_state=0).fit(rows)
    assert model.embedding_.shape == (len(X), 3)
    assert_array_equal(model.predict(rows), model.labels_)
    assert model.embedding.n_components == 2, "the transformer given is left as it was"


def test_spherical_kmeans_ignores_the_length_of_rows(corpus, rng):
    X, _ = corpus
    model = EmbedKMeans(3, metric="cosine", random_state=0).fit(X)
    scaled = X * rng.uniform(0.5, 9, size=(len(X), 1))
    assert_array_equal(model.predict(scaled), model.labels_)
    assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)


def test_new_rows_can_come_from_another_array_library(corpus, foreign):
    X, _ = corpus
    numpy_model, foreign_model = (EmbedKMeans(3, random_state=0).fit(rows) for rows in (X, foreign(X)))
    assert_array_equal(numpy_model.predict(foreign(X)), numpy_model.labels_)
    assert_array_equal(to_numpy(foreign_model.predict(X)), to_numpy(foreign_model.labels_))


def test_labels_are_passed_to_the_embedding_and_bad_options_raise(corpus):
    X, y = corpus
    model = EmbedKMeans(3, LPI(graph=LabelGraph(KNNGraph(9))), n_components="k-1", random_state=0)
    assert clustering_accuracy(y, model.fit(normalize(X), y).labels_) > 0.97
    with pytest.raises(ValueError, match="'lsi' is not a transformer"):
        EmbedKMeans(3, "lsi").fit(X)
    with pytest.raises(ValueError, match="n_components"):
        EmbedKMeans(3, n_components="zzz").fit(X)


def test_n_components_is_a_name_or_a_number(corpus):
    X, _ = corpus
    assert EmbedKMeans(4, TruncatedSVD(), n_components=7).fit(X).embedding_.shape[1] == 7
    assert EmbedKMeans(4, TruncatedSVD(5)).fit(X).embedding_.shape[1] == 5
    with pytest.raises(ValueError, match="n_components"):
        EmbedKMeans(4, TruncatedSVD(), n_components="2k").fit(X)
