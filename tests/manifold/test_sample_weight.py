"""Weights of rows in the clusterers, and equal rows as weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import EmbedKMeans, KNNGraph, LPIClustering, ManifoldClustering, SpectralClustering
from fiedler.core.kmeans import kmeans
from fiedler.errors import InputError
from fiedler.graph.weights import weigh_graph
from fiedler.manifold.candidates import PartitionScorer
from fiedler.manifold.memberships import select_outliers
from fiedler.metrics import adjusted_rand_index
from fiedler.metrics.scores import match_clusters, weighted_ari
from fiedler.mixture.statistics import group_statistics
from fiedler.supervision import suggest_pairs


@pytest.fixture
def blobs():
    return make_blobs(150, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)


@pytest.fixture
def repeated(blobs, rng):
    """Different rows with their counts, and the rows repeated in any order, the first ones in the order of these."""
    X, _ = blobs
    counts = rng.randint(1, 5, size=len(X))
    extra = rng.permutation(np.repeat(np.arange(len(X)), counts - 1))
    return X, counts, np.concatenate([np.arange(len(X)), extra])


# --------------------------------------------------------------------------------------------------------- the pieces


def test_the_rand_index_of_weighted_rows_is_that_of_repeated_rows_without_pairs_of_copies(rng):
    a, b, counts = rng.randint(3, size=40), rng.randint(4, size=40), rng.randint(1, 5, size=40)
    i, j = np.triu_indices(40, 1)
    m, in_a, in_b = counts[i] * counts[j], a[i] == a[j], b[i] == b[j]
    expected = m[in_a].sum() * m[in_b].sum() / m.sum()
    printed = (m[in_a & in_b].sum() - expected) / ((m[in_a].sum() + m[in_b].sum()) / 2 - expected)

    assert_allclose(weighted_ari(a, b, counts.astype(float)), printed)
    assert_allclose(weighted_ari(a, b, 3.0 * counts), printed)
    assert_allclose(weighted_ari(a, b, np.ones(40)), adjusted_rand_score(a, b))
    assert_allclose(weighted_ari(a, b), adjusted_rand_score(a, b))


def test_clusters_are_matched_by_the_weight_of_their_rows():
    labels, reference = np.array([0, 0, 1]), np.array([0, 1, 1])

    assert_array_equal(match_clusters(labels, reference, 2, np.array([1.0, 9.0, 1.0])), [1, 1, 0])
    assert_array_equal(match_clusters(labels, reference, 2, np.array([9.0, 1.0, 9.0])), [0, 0, 1])


@pytest.mark.parametrize("squares_only", [False, True])
def test_statistics_of_weighted_rows_are_those_of_repeated_rows(squares_only, rng):
    X, groups, counts = rng.normal(size=(90, 3)), rng.randint(4, size=90), rng.randint(1, 5, size=90)
    options = {"squares_only": squares_only, "origin": np.zeros(3)}

    weighted = group_statistics(X, groups, weights=counts.astype(float), **options)
    expected = group_statistics(np.repeat(X, counts, axis=0), np.repeat(groups, counts), **options)

    for name in ("counts", "sums", "second_moments"):
        assert_allclose(getattr(weighted, name), getattr(expected, name))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_kmeans_of_weighted_rows_finds_the_centres_of_repeated_rows(metric, repeated):
    X, counts, rows = repeated
    X = X + np.array([3.0, 5.0])

    weighted = kmeans(X, 3, metric=metric, sample_weight=counts.astype(float), random_state=0)
    expected = kmeans(X[rows], 3, metric=metric, random_state=0)

    assert_allclose(weighted.inertia, expected.inertia, rtol=1e-6)
    assert_allclose(np.sort(weighted.centers, axis=0), np.sort(expected.centers, axis=0), rtol=1e-6)


def test_the_share_of_outliers_is_by_weight():
    scores, kept = np.array([4.0, 3.0, 2.0, 1.0]), np.zeros(4, dtype=bool)

    assert_array_equal(select_outliers(scores, 0.5, kept, np.array([1.0, 4.0, 1.0, 4.0])), [0, 1])
    assert_array_equal(
        select_outliers(scores, 0.5, kept, np.array([1.0, 1.0, 1.0, 1.0])), select_outliers(scores, 0.5, kept)
    )


def test_the_likelihood_of_weighted_rows_is_that_of_repeated_rows(repeated):
    X, counts, rows = repeated
    graph, labels = KNNGraph(5).build(X), (X[:, 0] > 3).astype(int)
    weighted = PartitionScorer({"g": weigh_graph(graph, counts)}, 2, X, weights=counts.astype(float))
    plain = PartitionScorer({"g": graph}, 2, X[rows])
    plain.__dict__["ridge"] = weighted.ridge

    assert_allclose(weighted.icl(labels), plain.icl(labels[rows]))


# ------------------------------------------------------------------------------------------------------ equal rows


@pytest.mark.slow
@pytest.mark.parametrize(("load", "n_clusters"), [(load_iris, 3), (load_wine, 3), (load_digits, 10)])
def test_data_written_twice_has_the_same_clusters(load, n_clusters):
    X, _ = load(return_X_y=True)
    once = ManifoldClustering(n_clusters, random_state=0).fit(X)

    twice = ManifoldClustering(n_clusters, random_state=0).fit(np.concatenate([X, X]))

    assert_array_equal(twice.labels_, np.tile(once.labels_, 2))
    assert_allclose(twice.memberships_, np.tile(once.memberships_, (2, 1)))
    assert_array_equal(twice.predict(X), once.predict(X))


@pytest.mark.parametrize(("effort", "convert"), [("fast", sp.csr_array), ("default", np.asarray)])
def test_counts_as_weights_give_the_results_of_the_repeated_rows(effort, convert, repeated):
    X, counts, rows = repeated
    options = {"effort": effort, "random_state": 0}

    weighted = ManifoldClustering(3, **options).fit(convert(X), sample_weight=counts)
    fitted = ManifoldClustering(3, **options).fit(convert(X[rows]))

    assert_array_equal(fitted.labels_, weighted.labels_[rows])
    assert_array_equal(fitted.memberships_, weighted.memberships_[rows])
    assert_array_equal(fitted.outlier_score_, weighted.outlier_score_[rows])
    assert_allclose(fitted.predict_proba(X + 0.1), weighted.predict_proba(X + 0.1), rtol=1e-12)
    assert fitted.graph_.n_nodes == len(rows)
    if effort == "default":
        assert_array_equal(fitted.row_agreement_, weighted.row_agreement_[rows])
    assert "150" not in fitted.report().split("\n\n")[0]  # all rows were compared, not a sample


def test_the_number_of_clusters_is_that_of_the_weighted_rows(repeated):
    X, counts, rows = repeated
    model = ManifoldClustering(max_clusters=5, effort="fast", random_state=0)

    weighted, fitted = clone(model).fit(X, sample_weight=counts), clone(model).fit(X[rows])

    assert fitted.n_clusters_ == weighted.n_clusters_ == 3
    assert fitted.evidence_.stability == weighted.evidence_.stability


def test_only_ratios_of_weights_matter(repeated):
    X, counts, _ = repeated
    one = ManifoldClustering(3, random_state=0).fit(X, sample_weight=counts)
    other = ManifoldClustering(3, random_state=0).fit(X, sample_weight=0.125 * counts)

    assert_array_equal(one.memberships_, other.memberships_)


def test_equal_weights_are_no_weights(blobs):
    X, _ = blobs
    plain, equal = (
        ManifoldClustering(3, random_state=0).fit(X, sample_weight=weight) for weight in (None, np.full(150, 0.3))
    )

    assert_array_equal(plain.memberships_, equal.memberships_)


def test_weights_of_copies_are_added(blobs, rng):
    X, _ = blobs
    weights, model = rng.uniform(0.5, 2, size=300), ManifoldClustering(3, effort="fast", random_state=0)

    apart = clone(model).fit(np.concatenate([X, X]), sample_weight=weights)
    added = clone(model).fit(X, sample_weight=weights[:150] + weights[150:])

    assert_array_equal(apart.memberships_[:150], added.memberships_)


def test_a_heavy_region_counts_as_many_rows(fixed_rng):
    """Two thirds of uniform rows on a line, by weight, are in its left fifth, so two clusters meet farther left."""
    X = np.sort(fixed_rng.uniform(size=(400, 1)), axis=0)
    weights = np.where(X[:, 0] < 0.2, 8.0, 1.0)

    model = ManifoldClustering(2, KNNGraph(10), random_state=0)
    plain, weighted = (model.fit(X, sample_weight=weight).labels_ for weight in (None, weights))

    boundary = lambda labels: X[np.flatnonzero(np.diff(labels))[0], 0]  # noqa: E731
    assert boundary(weighted) < 0.4 < boundary(plain)


def test_copies_of_labelled_rows_are_kept_apart(blobs):
    """Equal rows may have different labels, as they always could."""
    X, _ = blobs
    rows, known = np.concatenate([X, X[:1]]), np.full(151, -1)
    known[[0, 150]] = 0, 1

    labels = ManifoldClustering(3, random_state=0).fit(rows, known, sample_weight=np.linspace(1, 2, 151)).labels_

    assert (labels[0], labels[150]) == (0, 1)


def test_few_different_rows_are_not_merged():
    X = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 1.0]], 20, axis=0)

    labels = ManifoldClustering(3, random_state=0).fit(X).labels_

    assert adjusted_rand_index(np.repeat([0, 1, 2], 20), labels) == 1


def test_all_copies_of_an_outlier_are_outliers(repeated):
    X, counts, rows = repeated

    labels = ManifoldClustering(3, outliers=0.1, random_state=0).fit(X[rows]).labels_

    is_outlier = np.bincount(rows, labels == -1)
    assert set(is_outlier[is_outlier > 0]) <= set(counts[is_outlier > 0])
    assert 0.08 * len(rows) < (labels == -1).sum() <= 0.1 * len(rows)


def test_models_of_equal_rows_can_be_stored_and_asked(repeated, tmp_path):
    X, _, rows = repeated
    model = ManifoldClustering(3, random_state=0).fit(X[rows])

    fiedler.save(model, tmp_path / "model.safetensors")

    assert_array_equal(fiedler.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X))
    assert suggest_pairs(model, 3).max() < len(rows)


# ---------------------------------------------------------------------------------------------------- all clusterers


CLUSTERERS = [
    ManifoldClustering(3, KNNGraph(8), random_state=0),
    SpectralClustering(3, random_state=0),
    SpectralClustering(3, cut="njw", random_state=0),
    EmbedKMeans(3, random_state=0),
    LPIClustering(3, random_state=0),
]


@pytest.mark.parametrize("model", CLUSTERERS, ids=repr)
@pytest.mark.filterwarnings("ignore::fiedler.errors.FiedlerWarning")
def test_every_clusterer_takes_weights_of_any_unit(model, repeated):
    X, counts, _ = repeated
    X = X + np.array([3.0, 5.0])

    labels = model.fit(X, sample_weight=counts).labels_

    assert_array_equal(model.fit(X, sample_weight=4.0 * counts).labels_, labels)
    with pytest.raises(InputError, match="sample_weight must be 150 finite"):
        model.fit(X, sample_weight=-counts)


@pytest.mark.filterwarnings("ignore::fiedler.errors.FiedlerWarning")
def test_spectral_clustering_is_that_of_the_weighted_graph(repeated):
    X, counts, _ = repeated
    weights = counts / counts.mean()
    graph = KNNGraph(8).build(X)

    model = SpectralClustering(3, graph, random_state=0).fit(X, sample_weight=counts)

    assert_allclose(
        model.eigenvalues_, SpectralClustering(3, weigh_graph(graph, weights), random_state=0).fit(X).eigenvalues_
    )


@pytest.mark.filterwarnings("ignore::fiedler.errors.FiedlerWarning")
def test_ratio_cut_refuses_weights(blobs):
    with pytest.raises(InputError, match="cut='ratio' counts rows"):
        SpectralClustering(3, cut="ratio").fit(blobs[0], sample_weight=np.arange(1, 151))


def test_weights_are_routed_through_pipelines(repeated):
    X, counts, _ = repeated
    direct = ManifoldClustering(3, random_state=0).fit(StandardScaler().fit_transform(X), sample_weight=counts)
    with config_context(enable_metadata_routing=True):
        clusterer = ManifoldClustering(3, random_state=0).set_fit_request(sample_weight=True)
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clusterer)
        routed.fit(X, sample_weight=counts)

    assert_array_equal(routed[-1].labels_, direct.labels_)


def test_the_function_takes_weights(repeated):
    X, counts, _ = repeated

    labels = fiedler.cluster(X, 3, sample_weight=counts, random_state=0).labels

    assert_array_equal(labels, ManifoldClustering(3, random_state=0).fit(X, sample_weight=counts).labels_)
