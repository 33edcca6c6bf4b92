import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler.errors import InputError
from fiedler.text import DocumentVectorizer, describe_clusters
from fiedler.text.documents import class_tfidf


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
def test_invalid_input_raises(counts, labels, terms, message):
    with pytest.raises(InputError, match=message):
        describe_clusters(counts, labels, terms)
