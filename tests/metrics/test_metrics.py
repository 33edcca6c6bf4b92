import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as peer

from fiedler import metrics
from fiedler.metrics import (
    adjusted_rand_index,
    balanced_rand_index,
    clustering_accuracy,
    match_labels,
    normalized_cut,
    normalized_mutual_information,
    purity,
    rand_index,
    ratio_cut,
)

EXTERNAL = [
    adjusted_rand_index,
    balanced_rand_index,
    clustering_accuracy,
    normalized_mutual_information,
    purity,
    rand_index,
]


@pytest.fixture(params=[(3, 3), (4, 2), (2, 4), (1, 3), (3, 1)], ids=str)
def labelings(request, rng):
    classes, clusters = request.param
    return rng.randint(classes, size=40), rng.randint(clusters, size=40)


def test_accuracy_is_the_best_over_all_one_to_one_maps(labelings):
    y, labels = labelings
    names = list(range(4))  # zero-padded to four on both sides
    best = max(np.mean(np.array(p)[labels] == y) for p in itertools.permutations(names))

    assert_allclose(clustering_accuracy(y, labels), best)


def test_matched_labels_reach_the_accuracy(labelings):
    y, labels = labelings

    assert_allclose(np.mean(match_labels(y, labels) == y), clustering_accuracy(y, labels))


def test_nmi_divides_by_the_larger_entropy(labelings):
    y, labels = labelings
    joint = np.histogram2d(y, labels, bins=(np.arange(5), np.arange(5)))[0] / 40
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    entropy = lambda d: -sum(x * np.log(x) for x in d if x > 0)  # noqa: E731
    information = sum(
        joint[i, j] * np.log(joint[i, j] / (p[i] * q[j])) for i in range(4) for j in range(4) if joint[i, j] > 0
    )

    assert_allclose(normalized_mutual_information(y, labels), information / max(entropy(p), entropy(q)), atol=1e-12)
    assert normalized_mutual_information(y, labels) <= peer.normalized_mutual_info_score(y, labels) + 1e-12


def pairs(y, labels):
    """Agreement on pairs of one class and on pairs of two, by going through all pairs."""
    together, apart = [], []
    for i, j in itertools.combinations(range(len(y)), 2):
        (together if y[i] == y[j] else apart).append((labels[i] == labels[j]) == (y[i] == y[j]))
    return together, apart


def test_rand_indices_go_through_all_pairs(labelings):
    y, labels = labelings
    together, apart = pairs(y, labels)

    assert_allclose(rand_index(y, labels), np.mean(together + apart))
    assert_allclose(balanced_rand_index(y, labels), np.mean([np.mean(kind) for kind in (together, apart) if kind]))
    assert_allclose(adjusted_rand_index(y, labels), peer.adjusted_rand_score(y, labels))


def test_purity_counts_each_clusters_favourite(labelings):
    y, labels = labelings

    assert_allclose(purity(y, labels), sum(np.bincount(y[labels == c]).max() for c in np.unique(labels)) / 40)


@pytest.mark.parametrize("score", EXTERNAL, ids=lambda f: f.__name__)
def test_names_and_order_do_not_matter(score, rng, backend):
    y, labels, order = rng.randint(3, size=30), rng.randint(4, size=30), rng.permutation(30)
    expected = score(y, labels)

    assert_allclose(score(y[order], labels[order]), expected)
    assert_allclose(score(np.array(["a", "b", "c"])[y], np.array([9, -1, 5, 7])[labels]), expected)
    assert_allclose(score(backend(y), backend(labels)), expected)
    assert score(y, (y + 1) % 3) == pytest.approx(1)


@pytest.mark.parametrize("score", EXTERNAL, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("y", "labels", "message"),
    [
        ([0, 1], [0, 1, 1], "labels_pred hold 3 entries, but 2 are needed, one a sample"),
        ([], [], "labels_true must be one label a sample, a non-empty list"),
        ([[0, 1]], [0, 1], r"labels_true must be one label a sample.* got shape \(1, 2\)"),
        ([0.0, np.nan], [0, 1], "labels_true contain NaN or infinity"),
        ([[0], [1, 2]], [0, 1], "labels_true must be one label a sample; got a ragged list"),
    ],
)
def test_bad_labels_get_a_sentence(score, y, labels, message):
    with pytest.raises(ValueError, match=message):
        score(y, labels)


def test_an_unknown_average_lists_the_known():
    with pytest.raises(ValueError, match=r"average='mean' is not known; choose one of \['max', 'arithmetic'"):
        normalized_mutual_information([0, 1], [0, 1], average="mean")


# -------------------------------------------------------------------------------------------------- cuts on a graph


@pytest.mark.parametrize("name", ["uneven_graph", "connected_graph"])
def test_cuts_are_the_printed_sums(name, request, rng):
    """[nle, Eq. 5]: sum over pairs of clusters of s(A, B)/|A| + s(A, B)/|B|; for Ncut with volumes."""
    graph = request.getfixturevalue(name)
    W, labels = graph.weights.toarray(), rng.randint(3, size=graph.n_nodes)
    groups = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    size, volume = len, lambda A: W[A].sum()

    def printed(weigh):
        s = lambda A, B: W[np.ix_(A, B)].sum()  # noqa: E731
        return sum(s(A, B) / weigh(A) + s(A, B) / weigh(B) for A, B in itertools.combinations(groups, 2))

    assert_allclose(ratio_cut(graph, labels), printed(size))
    assert_allclose(normalized_cut(graph, labels), printed(volume))


@pytest.mark.parametrize("name", ["uneven_graph", "connected_graph", "signed_graph"])
def test_the_ratio_cut_is_a_trace(name, request, rng):
    """[nle, Theorem 1]: tr(H'LH) for the indicators of the clusters at length one, on signed graphs too."""
    graph = request.getfixturevalue(name)
    labels = rng.randint(3, size=graph.n_nodes)
    H = np.eye(3)[labels]
    H = H[:, H.sum(axis=0) > 0]
    H /= np.linalg.norm(H, axis=0)

    assert_allclose(ratio_cut(graph, labels), metrics.dirichlet_energy(H, graph.laplacian()))


def test_components_cost_nothing(uneven_graph):
    _, labels = uneven_graph.components()

    assert_allclose([ratio_cut(uneven_graph, labels), normalized_cut(uneven_graph, labels)], 0, atol=1e-15)


def test_a_matrix_is_a_graph_too(uneven_graph, rng):
    labels = rng.randint(2, size=10)

    assert ratio_cut(uneven_graph.weights.toarray(), labels) == ratio_cut(uneven_graph, labels)


def test_labels_must_fit_the_graph(uneven_graph):
    with pytest.raises(ValueError, match="labels hold 3 entries, but 10 are needed"):
        ratio_cut(uneven_graph, [0, 1, 1])


def test_everything_public_is_listed():
    assert_array_equal(sorted(metrics.__all__), metrics.__all__)
