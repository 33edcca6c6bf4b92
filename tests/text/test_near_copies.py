"""Texts that repeat each other, and texts without a known term, in all that clusters rows of terms."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import normalize

from fiedler import LPIClustering, ManifoldClustering, choose_n_clusters, load, save
from fiedler.errors import InputError, NoKnownTermsWarning
from fiedler.graph.weights import COPY_COSINE, EMBEDDED_COSINE, TEMPLATE_COSINE, UNPLACED, CopiedRows, near_copies
from fiedler.manifold.choice import select_by_consensus
from fiedler.manifold.n_clusters import Evidence, _choose
from fiedler.manifold.views import are_documents
from fiedler.metrics import clustering_accuracy

N_TERMS = 900


def draw_texts(rng, topic, n, n_topics=3):
    """Count the words of texts: of twenty, four in five are of the topic's own 200 words."""
    counts = np.zeros((n, N_TERMS))
    for row in counts:
        own = rng.randint(200, size=16) + 200 * topic
        words = np.concatenate([own, rng.randint(200 * n_topics, N_TERMS, size=4)])
        np.add.at(row, words, 1)
    return counts


def copy_of(rng, text, n, n_changes=3):
    """Copy a text with a few words replaced by others."""
    copies = np.tile(text, (n, 1))
    for row in copies:
        row[rng.choice(np.flatnonzero(row), n_changes, replace=False)] = 0
        row[rng.randint(N_TERMS, size=n_changes)] += 1
    return copies


@pytest.fixture(scope="module")
def corpus():
    """Three topics of 70 texts, and 25 copies of two texts of each; the topics, and the template of each copy."""
    rng = np.random.RandomState(3)
    texts = [draw_texts(rng, topic, 70) for topic in range(3)]
    copies = [copy_of(rng, texts[topic][i], 25) for topic in range(3) for i in (0, 1)]
    y = np.concatenate([np.repeat(range(3), 70), np.repeat(range(3), 50)])
    template = np.concatenate([np.arange(210), np.repeat([70 * topic + i for topic in range(3) for i in (0, 1)], 25)])
    order = rng.permutation(len(y))
    X = normalize(sp.csr_array(np.concatenate([*texts, *copies])))[order]
    return sp.csr_array(X), y[order], template[order]


@pytest.fixture(scope="module")
def fitted(corpus):
    return ManifoldClustering(3, random_state=0).fit(corpus[0])


def with_empty_rows(X, rows):
    X = X.tolil()
    X[rows] = 0
    return sp.csr_array(X.tocsr())


# -------------------------------------------------------------------------------------------------------- near-copies


def test_copies_with_small_changes_are_found(corpus):
    X, _, template = corpus
    copies, cosine = near_copies(X)
    assert cosine == TEMPLATE_COSINE
    assert_array_equal(template[copies.first[copies.nodes]], template)
    assert len(copies.first) == 210


def test_first_rows_are_no_near_copies_and_all_others_belong_to_the_most_similar_one(rng):
    """Overlapping templates: a chain of texts, each of which shares most words with the next one."""
    words = np.zeros((300, 600))
    for i, row in enumerate(words):
        row[np.arange(12) + i] = rng.uniform(1, 1.2, size=12)
    X = normalize(sp.csr_array(words))
    copies, cosine = near_copies(X)
    similarity = (X @ X[copies.first].T).toarray()

    among_first = similarity[copies.first] - 2 * np.eye(len(copies.first))
    assert among_first.max() < cosine
    assert similarity[np.arange(300), copies.nodes].min() >= cosine - 1e-9
    assert_allclose(similarity[np.arange(300), copies.nodes], similarity.max(axis=1))


def test_texts_that_are_alike_throughout_are_no_templates_but_copies_are_found(rng):
    """Half of the words of all texts of a topic are the same: a cosine of 0.7 is usual there, one of 0.95 is not."""
    texts = np.zeros((240, N_TERMS))
    for i, row in enumerate(texts):
        row[30 * (i % 12) + np.arange(14)] = 1
        row[rng.randint(400, N_TERMS, size=5)] = 1
    texts[200:] = texts[:40]
    texts[200:, :2] += 0.1
    copies, cosine = near_copies(normalize(sp.csr_array(texts)))
    assert cosine == COPY_COSINE
    assert_array_equal(copies.first[copies.nodes[200:]], np.arange(40))


@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_rows_that_are_no_texts_have_no_near_copies(rng, shift):
    """Pixels, which have high cosines, and rows with negative entries."""
    X = np.repeat(rng.uniform(size=(10, 50)), 20, axis=0) + 0.01 * rng.normal(size=(200, 50)) + shift * np.eye(10, 50)[
        np.arange(200) // 20
    ]  # fmt: skip
    assert near_copies(sp.csr_array(X))[0] is None


def test_templates_do_not_split_topics(corpus, fitted):
    X, y, template = corpus
    for model in (fitted, LPIClustering(3, random_state=0).fit(X)):
        assert clustering_accuracy(y, model.labels_) > 0.95
        assert_array_equal(model.labels_[template < 210], model.predict(X)[template < 210])
    assert_array_equal(fitted.memberships_, fitted.memberships_[fitted._state.copies.first[fitted._state.copies.nodes]])
    assert fitted.graph_.n_nodes == len(y)


def test_near_copies_count_by_their_number(corpus, fitted):
    X, _, _ = corpus
    copies = fitted._state.copies
    weighted = ManifoldClustering(3, random_state=0).fit(X[copies.first], sample_weight=copies.total())
    assert clustering_accuracy(weighted.labels_[copies.nodes], fitted.labels_) == 1
    assert_allclose(fitted._state.weights, copies.total() / copies.total().mean())
    assert copies.total().max() == 26


def test_the_order_of_texts_does_not_matter(corpus, fitted):
    X, _, _ = corpus
    order = np.random.RandomState(0).permutation(X.shape[0])
    other = ManifoldClustering(3, random_state=0).fit(X[order])
    assert clustering_accuracy(fitted.labels_[order], other.labels_) == 1


def test_predictions_of_training_rows_and_of_new_copies(corpus, fitted, tmp_path):
    X, _, template = corpus
    assert_array_equal(fitted.predict_proba(X), fitted.memberships_)
    text = X[[int(np.flatnonzero(template == 70)[0])]].toarray()[0]
    new = sp.csr_array(copy_of(np.random.RandomState(9), text / text.max(), 8, 2))
    assert_allclose(fitted.predict_proba(new), np.tile(fitted.memberships_[template == 70][:1], (8, 1)))

    save(fitted, tmp_path / "model.safetensors")
    restored = load(tmp_path / "model.safetensors")
    assert_array_equal(restored.predict_proba(sp.vstack([X, new]).tocsr())[: X.shape[0]], fitted.memberships_)
    assert restored.report() == fitted.report()


def test_near_copies_are_reported_in_a_sentence(fitted):
    assert "156 rows are near-copies of one another (a cosine of 0.6 or more), in 6 group(s) of up to 26" in (
        fitted.report()
    )


def test_levels_updates_and_explanations_of_texts_with_copies(corpus, fitted):
    X, y, _ = corpus
    assert_array_equal(fitted.at(2).labels_.shape, y.shape)
    model = ManifoldClustering(3, random_state=0).fit(X[:300])
    model.update(with_empty_rows(X[300:], [0]))
    assert model.labels_[300] == -1
    assert clustering_accuracy(y[model.labels_ >= 0], model.labels_[model.labels_ >= 0]) > 0.95
    assert fitted.explain(0).neighbors


# ------------------------------------------------------------------------------------------------- no known term


def test_texts_without_a_known_term_are_in_no_cluster(corpus, fitted):
    X, _, _ = corpus
    both = sp.csr_array(sp.vstack([X, sp.csr_array((2, N_TERMS))]))
    with pytest.warns(NoKnownTermsWarning, match=r"2 row\(s\) have no entries.*rows 360, 361.*label is -1") as caught:
        model = ManifoldClustering(3, random_state=0).fit(both)
    assert caught[0].message.fields["n_documents"] == 2
    assert_array_equal(model.labels_[360:], [-1, -1])
    assert_allclose(model.memberships_[360:], 1 / 3)
    assert_array_equal(model.labels_[:360], fitted.labels_)  # without them, nothing changes
    assert_allclose(model.memberships_[:360], fitted.memberships_)
    assert model.graph_.degrees[360:].max() == 0
    assert_array_equal(model.at(2).labels_[360:], [-1, -1])
    with pytest.raises(InputError, match="row 361 has no entries"):
        model.explain(361)


@pytest.mark.parametrize("options", [{}, {"assign": "kmeans"}], ids=["mixture", "kmeans"])
def test_new_texts_without_a_known_term(corpus, fitted, options):
    X, _, _ = corpus
    new = with_empty_rows(X[:5], [1, 3])
    for model in (fitted, LPIClustering(3, random_state=0, **options).fit(X)):
        with pytest.warns(NoKnownTermsWarning, match=r"2 row\(s\)"):
            labels = model.predict(new)
        assert_array_equal(labels, np.where(np.isin(range(5), [1, 3]), -1, model.labels_[:5]))
        if hasattr(model, "predict_proba"):
            with pytest.warns(NoKnownTermsWarning, match=r"2 row\(s\)"):
                assert_allclose(model.predict_proba(new)[[1, 3]], 1 / 3)


@pytest.mark.parametrize("convert", [sp.csr_array, lambda X: X.toarray()], ids=["sparse", "dense"])
@pytest.mark.filterwarnings("ignore::fiedler.errors.NoKnownTermsWarning")
def test_documents_without_a_term_are_unknown_to_lpi(corpus, convert):
    X, y, _ = corpus
    model = LPIClustering(3, random_state=0).fit(convert(with_empty_rows(X, [4, 5])))
    assert_array_equal(np.flatnonzero(model.labels_ < 0), [4, 5])
    assert_allclose(model.memberships_[4:6], 1 / 3)
    assert clustering_accuracy(y[model.labels_ >= 0], model.labels_[model.labels_ >= 0]) > 0.9


@pytest.mark.filterwarnings("ignore::fiedler.errors.NoKnownTermsWarning")
def test_a_known_label_of_a_text_without_a_term_is_kept(corpus):
    X, y, _ = corpus
    known = np.where(np.arange(90) < 20, y[:90], -1)
    labels = ManifoldClustering(3, effort="fast", random_state=0).fit(with_empty_rows(X[:90], [2, 50]), known).labels_
    assert (labels[2], labels[50]) == (y[2], -1)


@pytest.mark.filterwarnings("ignore::fiedler.errors.NoKnownTermsWarning")
def test_too_few_texts_with_terms(corpus):
    X, _, _ = corpus
    with pytest.raises(InputError, match="only 3 of 30 rows have any entry, too few for 4 clusters") as caught:
        ManifoldClustering(4).fit(with_empty_rows(X[:30], np.arange(3, 30)))
    assert caught.value.code == "too_few_documents"


def test_rows_that_are_left_out_have_no_node():
    copies = CopiedRows(np.array([0, 1, 2]), np.array([0, 1, 2, 1])).without(np.array([False, True, False]))
    assert_array_equal(copies.first, [0, 2])
    assert_array_equal(copies.nodes, [0, UNPLACED, 1, UNPLACED])
    assert_array_equal(copies.total(np.array([1.0, 2, 3, 4])), [1, 3])
    assert_array_equal(copies.expand(np.array([5, 7]), -1), [5, -1, 7, -1])


# ------------------------------------------------------------------------------------------ the choice among texts


def test_a_coarse_number_of_topics_must_be_stable():
    coarse = {
        2: Evidence(0.85, 0.01, 0.4, 1, 1),
        5: Evidence(0.6, 0.01, 0.66, 1, 1),
        9: Evidence(0.5, 0.01, 0.67, 1, 1),
    }
    assert _choose(coarse, 1, 10) == 2
    assert _choose(coarse, 1, 10, are_texts=lambda: True) == 5
    assert _choose({**coarse, 2: Evidence(0.95, 0.01, 0.4, 1, 1)}, 1, 10, are_texts=lambda: True) == 2
    assert _choose({**coarse, 2: Evidence(0.91, 0.02, 0.4, 1, 1)}, 1, 10, are_texts=lambda: True) == 5


def test_uneven_partitions_need_a_clearly_higher_consensus(corpus, fitted):
    one = fitted._state.candidates[0]
    uneven = one.__class__("a", np.repeat([0, 1], [98, 2]), 0.0, n_clusters=2, consensus=0.6)
    even = one.__class__("b", np.repeat([0, 1], [50, 50]), 0.0, n_clusters=2, consensus=0.5)
    assert select_by_consensus([uneven, even]) is uneven
    assert select_by_consensus([uneven, even], exponent=1 / 3) is even


def test_the_number_of_topics_is_that_of_the_texts_without_copies(corpus):
    X, _, template = corpus
    choice = choose_n_clusters(X, range(2, 6), random_state=0)
    once = choose_n_clusters(X[np.unique(template, return_index=True)[1]], range(2, 6), random_state=0)
    assert choice.n_clusters == once.n_clusters == 3


@pytest.mark.parametrize("convert", [np.asarray, np.float32], ids=["double", "single"])
def test_embeddings_have_near_copies_too(rng, convert):
    """Rows of many dimensions that are spread over all of them; of few dimensions, or with a common part, none."""
    texts = np.repeat(rng.normal(size=(60, 200)), 3, axis=0) + 0.3 * rng.normal(size=(180, 200))
    X = convert(np.concatenate([texts, rng.normal(size=(140, 200))]))
    copies, cosine = near_copies(X)
    assert cosine == EMBEDDED_COSINE
    assert len(copies.first) == 200
    model = ManifoldClustering(2, effort="fast", random_state=0).fit(X)
    assert_array_equal(model._state.copies.nodes[:180].reshape(60, 3).std(axis=1), 0)
    assert_array_equal(model.predict_proba(X[:180]), model.memberships_[:180])
    assert near_copies(X + 3) == (None, 1.0)
    assert not are_documents(X[:, :50])
    assert are_documents(X)


def test_texts_without_any_term_are_refused():
    with pytest.raises(InputError, match="all rows of X are equal"):
        ManifoldClustering(2).fit(sp.csr_array((30, 5)))
