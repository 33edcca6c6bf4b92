"""Documents as term vectors, and clusters of documents in words."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from fiedler import LPIClustering
from fiedler.errors import FiedlerWarning, InputError, NoKnownTermsWarning
from fiedler.io import read_documents
from fiedler.text import Documents, DocumentVectorizer, describe_clusters
from fiedler.text.documents import class_tfidf

TEXTS = ["The cat chased the cat and 3 mice", "Mice fear cats", "stocks rose", "stocks and bonds fell; bonds rose"]


def test_term_frequencies_of_unit_length_without_stop_words():
    """[lpi, section 5.1]."""
    words = DocumentVectorizer()
    X = words.fit_transform(TEXTS)
    terms = words.get_feature_names_out().tolist()

    assert sp.issparse(X)
    assert not {"the", "and", "3"} & set(terms)
    assert_allclose(X.multiply(X).sum(axis=1), 1)
    row = dict(zip(terms, X[[0]].toarray().ravel()))
    assert row["cat"] == pytest.approx(2 / np.sqrt(2**2 + 1 + 1))
    assert_allclose(words.counts(TEXTS)[[0]].sum(), 4)


def test_tfidf_agrees_with_scikit_learn():
    vectorizer = DocumentVectorizer("tfidf")
    reference = TfidfVectorizer(stop_words="english", token_pattern=vectorizer.token_pattern)
    assert_allclose(vectorizer.fit_transform(TEXTS).toarray(), reference.fit_transform(TEXTS).toarray())
    assert_allclose(vectorizer.transform(TEXTS[1:3]).toarray(), reference.transform(TEXTS[1:3]).toarray())


def test_hashing_stores_no_vocabulary_and_keeps_similarities():
    plain, hashed = DocumentVectorizer(), DocumentVectorizer(n_hash_features=2**18)
    X, H = plain.fit_transform(TEXTS), hashed.fit_transform(TEXTS)
    assert H.shape == (4, 2**18)
    assert_allclose((X @ X.T).toarray(), (H @ H.T).toarray())
    assert not hasattr(hashed, "vocabulary_")


def test_documents_without_a_known_term_are_kept_with_a_warning():
    words = DocumentVectorizer()
    with pytest.warns(NoKnownTermsWarning, match=r"1 document\(s\) contain no known term \(rows 2\)") as caught:
        X = words.fit_transform([TEXTS[0], TEXTS[2], "and the"])
    warning = caught[0].message
    assert (warning.code, warning.fields) == ("no_known_terms", {"n_documents": 1, "rows": [2]})
    assert X.shape[0] == 3
    assert_array_equal(words.empty_rows_, [2])
    with pytest.warns(UserWarning, match="2 document"):
        assert words.transform(["unheard", "of", "stocks"]).shape[0] == 3


@pytest.mark.parametrize(
    ("options", "texts"),
    [({}, ["the", "and"]), ({"min_df": 2}, ["cat", "dog"]), ({"max_df": 0.5}, ["cat", "cat"]), ({}, ["", "1 2 3"])],
)
def test_no_remaining_term_raises(options, texts):
    with pytest.raises(InputError, match=r"no term remains in 2 document\(s\); relax stop_words") as caught:
        DocumentVectorizer(**options).fit(texts)
    assert (caught.value.code, caught.value.fields) == ("no_terms", {"n_documents": 2})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_df": 3, "max_df": 2}, "max_df"),
        ({"min_df": -1}, "min_df"),
        ({"min_df": "many"}, "min_df"),
        ({"stop_words": 5}, "stop_words"),
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"token_pattern": "(a)(b)"}, "token_pattern"),
    ],
)
def test_invalid_parameters_raise_structured_errors(options, message):
    with pytest.raises(InputError, match=message) as caught:
        DocumentVectorizer(**options).fit(TEXTS)
    assert caught.value.code == "invalid_parameter"


def test_failed_fit_restores_the_state():
    words = DocumentVectorizer().fit(TEXTS)
    before = dict(vars(words))
    with pytest.raises(InputError, match="no term remains"):
        words.fit(["the", "and"])
    assert vars(words) == before


def test_invalid_parameters_or_documents_raise():
    with pytest.raises(ValueError, match="french"):
        DocumentVectorizer(stop_words="french").fit(TEXTS)
    with pytest.raises(ValueError, match="is not a regular expression"):
        DocumentVectorizer(token_pattern="(").fit(TEXTS)
    with pytest.raises(ValueError, match="need a vocabulary"):
        DocumentVectorizer(n_hash_features=64, min_df=2).fit(TEXTS)
    with pytest.raises(ValueError, match="there are no documents"):
        DocumentVectorizer().fit([])
    with pytest.raises(ValueError, match="must be a list with one text each"):
        DocumentVectorizer().fit("one text")
    with pytest.raises(ValueError, match="weight"):
        DocumentVectorizer("bm25").fit(TEXTS)


def test_accents_in_two_characters_are_part_of_words():
    words = DocumentVectorizer().fit(["nai\u0308ve cafe\u0301"])
    assert set(words.get_feature_names_out()) == {"na\u00efve", "caf\u00e9"}


def test_parameters_set_after_fit_apply_to_the_next_fit():
    words = DocumentVectorizer().fit(TEXTS)
    names = words.get_feature_names_out()
    words.set_params(n_hash_features=64)
    assert_array_equal(words.get_feature_names_out(), names)
    assert not hasattr(words.fit(TEXTS), "vocabulary_")


def test_folder_with_invalid_files_is_clustered_completely(tmp_path):
    for number in range(24):
        topic = ["cats chase mice", "stocks and bonds"][number % 2]
        (tmp_path / f"{number:02}.txt").write_text(f"{topic} {'often' * (number % 3)} number{'abc'[number % 3]}")
    (tmp_path / "30.txt").write_text("")
    (tmp_path / "31.txt").write_bytes("stocks na\xefve bonds".encode("latin-1"))
    with pytest.warns(FiedlerWarning, match=r"are empty|not UTF-8|copies of others") as caught:
        documents = read_documents(tmp_path)
    with pytest.warns(NoKnownTermsWarning, match="contain no known term"):
        X = DocumentVectorizer().fit_transform(documents)
    labels = LPIClustering(2, random_state=0).fit_predict(X)
    assert len(caught) == 3
    assert labels.shape == (26,)
    assert len(set(labels[0:24:2])) == len(set(labels[1:24:2])) == 1
    assert labels[0] != labels[1] == labels[25]


def test_documents_are_accepted_in_pipelines():
    documents = Documents(TEXTS * 5, [str(i) for i in range(20)])
    assert len(documents) == 20
    pipeline = make_pipeline(DocumentVectorizer(), LPIClustering(2, random_state=0))
    labels = clone(pipeline).fit_predict(documents)
    assert labels.shape == (20,)
    assert len({labels[0], labels[4], labels[8]}) == 1
    assert_array_equal(pipeline.fit(documents).predict(TEXTS), labels[:4])


def test_scores_equal_the_documented_formula(rng):
    X = rng.poisson(1.0, size=(8, 5)).astype(float)
    members = [np.arange(3), np.arange(3, 8)]
    frequency = np.array([X[rows].sum(axis=0) / X[rows].sum() for rows in members])
    expected = [[frequency[c, t] * np.log(1 + 1 / frequency[:, t].sum()) for t in range(5)] for c in range(2)]
    assert_allclose(class_tfidf(sp.csr_array(X), members), expected)


def test_clusters_have_characteristic_terms_and_typical_documents():
    texts = ["apple apple pie today", "apple pie", "pie today", "rocket moon today", "moon moon rocket", "today"]
    words = DocumentVectorizer().fit(texts)
    first, second = describe_clusters(
        words.counts(texts), np.array([5, 5, 5, 2, 2, -1]), words.get_feature_names_out(), n_terms=2, n_documents=1
    )[::-1]
    assert (first.cluster, first.size, second.cluster, second.size) == (5, 3, 2, 2)
    assert {term for term, _ in first.terms} == {"apple", "pie"}
    assert first.documents == [1] or first.documents == [0]
    assert str(second) == "2: moon, rocket (2 documents)"
    scores = [score for _, score in first.terms]
    assert scores == sorted(scores, reverse=True)


def test_labels_may_be_strings_and_a_cluster_may_have_no_terms():
    described = describe_clusters(np.array([[1.0, 0.0], [0.0, 0.0]]), ["x", "y"], ["a", "b"])
    assert [cluster.name for cluster in described] == ["a", "no terms"]
    assert describe_clusters(np.ones((2, 2)), [-1, -1], ["a", "b"]) == []


@pytest.mark.parametrize(
    ("counts", "labels", "terms", "message"),
    [
        (np.ones((3, 2)), [0, 1], ["a", "b"], "labels has 2 entries"),
        (np.ones((3, 2)), [0, 1, 1], ["a"], "terms has 1 names, but counts has 2 columns"),
        (-np.ones((3, 2)), [0, 1, 1], ["a", "b"], "negative entries"),
    ],
)
def test_invalid_counts_or_labels_raise(counts, labels, terms, message):
    with pytest.raises(InputError, match=message):
        describe_clusters(counts, labels, terms)
