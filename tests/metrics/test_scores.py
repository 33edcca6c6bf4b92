"""Scores with and without classes, and the calibration of memberships."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as peer

from fiedler import AffinityGraph, metrics
from fiedler.errors import InputError
from fiedler.metrics import (
    adjusted_rand_index,
    balanced_rand_index,
    calibration_error,
    clustering_accuracy,
    match_labels,
    min_max_cut,
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
    names = list(range(4))  # more than either side has
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
    """Return the agreement on every pair of the same class and on every pair of different classes."""
    joined, separated = [], []
    for i, j in itertools.combinations(range(len(y)), 2):
        (joined if y[i] == y[j] else separated).append((labels[i] == labels[j]) == (y[i] == y[j]))
    return joined, separated


def test_rand_indices_agree_with_a_loop_over_all_pairs(labelings):
    y, labels = labelings
    joined, separated = pairs(y, labels)

    assert_allclose(rand_index(y, labels), np.mean(joined + separated))
    assert_allclose(balanced_rand_index(y, labels), np.mean([np.mean(kind) for kind in (joined, separated) if kind]))
    assert_allclose(adjusted_rand_index(y, labels), peer.adjusted_rand_score(y, labels))


def test_purity_counts_the_most_frequent_class_of_each_cluster(labelings):
    y, labels = labelings

    assert_allclose(purity(y, labels), sum(np.bincount(y[labels == c]).max() for c in np.unique(labels)) / 40)


@pytest.mark.parametrize("score", EXTERNAL, ids=lambda f: f.__name__)
def test_label_names_and_sample_order_do_not_matter(score, rng, backend):
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
        ([0, 1], [0, 1, 1], "labels_pred has 3 entries, but 2 are required, one per sample"),
        ([], [], "labels_true must be a non-empty 1-D array with one label per sample"),
        ([[0, 1]], [0, 1], r"labels_true must be a non-empty 1-D array.* got shape \(1, 2\)"),
        ([0.0, np.nan], [0, 1], "labels_true contains NaN or infinity"),
        ([[0], [1, 2]], [0, 1], "labels_true must have one label per sample; got .{2}0., .1, 2..$"),
    ],
)
def test_invalid_labels_are_an_error(score, y, labels, message):
    with pytest.raises(InputError, match=message):
        score(y, labels)


def test_an_unknown_average_is_an_error_that_lists_the_valid_ones():
    with pytest.raises(InputError, match=r"average='mean' is not known; choose one of \['max', 'arithmetic'"):
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


def test_the_min_max_cut_is_the_printed_sum(connected_graph):
    """[Ding et al. 2001]: sum over pairs of clusters of s(A, B)/s(A, A) + s(A, B)/s(B, B)."""
    W, groups = connected_graph.weights.toarray(), ([0, 1], [2, 3], [4, 5])
    s = lambda A, B: W[np.ix_(A, B)].sum()  # noqa: E731

    printed = sum(s(A, B) / s(A, A) + s(A, B) / s(B, B) for A, B in itertools.combinations(groups, 2))

    assert_allclose(min_max_cut(connected_graph, np.repeat([0, 1, 2], 2)), printed)


def test_the_min_max_cut_of_a_cluster_without_edges_is_infinite(connected_graph, signed_graph):
    assert min_max_cut(connected_graph, [0, 0, 0, 0, 0, 1]) == np.inf
    with pytest.raises(InputError, match="the min-max cut needs non-negative weights"):
        min_max_cut(signed_graph, np.zeros(8, dtype=int))


@pytest.mark.parametrize("name", ["uneven_graph", "connected_graph", "signed_graph"])
def test_the_ratio_cut_is_a_trace(name, request, rng):
    """[nle, Theorem 1]: tr(H'LH) for indicators of unit length, also on signed graphs."""
    graph = request.getfixturevalue(name)
    labels = rng.randint(3, size=graph.n_nodes)
    H = np.eye(3)[labels]
    H = H[:, H.sum(axis=0) > 0]
    H /= np.linalg.norm(H, axis=0)

    assert_allclose(ratio_cut(graph, labels), metrics.dirichlet_energy(H, graph.laplacian()))


def test_the_cut_between_components_is_zero(uneven_graph):
    _, labels = uneven_graph.components()

    assert_allclose([ratio_cut(uneven_graph, labels), normalized_cut(uneven_graph, labels)], 0, atol=1e-15)


def test_a_matrix_is_accepted_as_a_graph(uneven_graph, rng):
    labels = rng.randint(2, size=10)

    assert ratio_cut(uneven_graph.weights.toarray(), labels) == ratio_cut(uneven_graph, labels)


def test_clusters_of_isolated_nodes_contribute_nothing():
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = 1.0
    W[1, 2] = W[2, 1] = 2.0

    assert_allclose(normalized_cut(W, [0, 1, 1, 2, 2]), 1 / 1 + 1 / 5)


def test_loops_count_in_the_volume_and_are_not_cut():
    """Coarse nodes keep the weight inside them as loops: the cut is that of the fine graph."""
    fine = np.array([[0.0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 3], [0, 0, 3, 0]])
    coarse = AffinityGraph(sp.csr_array([[0.0, 1], [1, 0]]), loops=np.array([2.0, 6.0]))

    assert_allclose(normalized_cut(coarse, [0, 1]), normalized_cut(fine, [0, 0, 1, 1]))


def test_labels_must_fit_the_graph(uneven_graph):
    with pytest.raises(InputError, match="labels has 3 entries, but 10 are required"):
        ratio_cut(uneven_graph, [0, 1, 1])


def test_public_names_are_sorted():
    assert_array_equal(sorted(metrics.__all__), metrics.__all__)


def test_calibration_error_is_the_printed_sum(rng):
    """[Guo et al. 2017, Eq. 3], bin by bin; clusters are named differently from classes."""
    P = rng.dirichlet([0.4, 0.4, 0.4], size=300)
    y = np.where(rng.uniform(size=300) < 0.7, P.argmax(axis=1), rng.randint(3, size=300))
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y

    printed = 0.0
    for b in range(10):
        inside = (confidence >= b / 10) & ((confidence < (b + 1) / 10) | (b == 9))
        if inside.any():
            printed += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())

    assert_allclose(calibration_error(y, P[:, [2, 0, 1]], n_bins=10), printed)


def test_the_error_of_hard_memberships_is_the_error_rate():
    y = np.array([0, 0, 0, 1, 1])

    assert_allclose(calibration_error(y, np.eye(2)[[0, 0, 1, 1, 1]]), 1 / 5)
    assert calibration_error(y, np.eye(2)[y]) == 0


@pytest.mark.parametrize(
    ("memberships", "message", "code"),
    [
        (np.eye(2), "memberships must have shape", "wrong_shape"),
        (np.ones(3), "memberships must have shape", "wrong_shape"),
        (np.ones((3, 2)), "sum to one", "invalid_memberships"),
        ([[1.5, -0.5]] * 3, "non-negative", "invalid_memberships"),
        ([[np.nan, 1.0]] * 3, "non-negative", "invalid_memberships"),
        ([[1.0], [0.5, 0.5], [1.0]], "matrix of numbers", "wrong_dtype"),
    ],
)
def test_invalid_memberships_are_an_error(memberships, message, code):
    with pytest.raises(InputError, match=message) as caught:
        calibration_error([0, 1, 1], memberships)

    assert caught.value.code == code
