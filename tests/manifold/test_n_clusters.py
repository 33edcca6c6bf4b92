"""One rule chooses the number of clusters, for every estimator."""

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import (
    NLE,
    EmbedKMeans,
    KNNGraph,
    LandmarkGraph,
    LPIClustering,
    ManifoldClustering,
    SpectralClustering,
    choose_n_clusters,
)
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.errors import FiedlerWarning, InputError
from fiedler.manifold import n_clusters as module
from fiedler.manifold.n_clusters import NClustersChoice, count_clusters, relative_eigengaps, subgraph


@pytest.fixture
def blobs():
    return make_blobs(150, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)[0]


def documents(rng, n_topics=3, n_terms=40):
    """Word counts of topics that use different words."""
    topics = rng.dirichlet(np.full(n_terms, 0.1), size=n_topics)
    return np.concatenate([rng.poisson(30 * topic, size=(60, n_terms)) for topic in topics]).astype(float)


def test_the_function_the_class_and_the_first_call_agree(blobs):
    choice = choose_n_clusters(blobs, range(1, 7), random_state=0)
    model = ManifoldClustering(max_clusters=6, random_state=0).fit(blobs)

    assert choice == model.evidence_ == fiedler.cluster(blobs, max_clusters=6, random_state=0).model.evidence_
    assert choice.n_clusters == model.n_clusters_ == 3


def test_two_subsets_are_one_pair_without_an_error(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_n_clusters(blobs, range(2, 5), n_subsets=2, random_state=0).n_clusters == 3


def test_their_defaults_agree():
    defaults = [inspect.signature(one).parameters for one in (choose_n_clusters, ManifoldClustering, fiedler.cluster)]

    assert defaults[0]["candidates"].default == range(1, defaults[1]["max_clusters"].default + 1)
    assert defaults[1]["max_clusters"].default == defaults[2]["max_clusters"].default
    assert defaults[1]["n_clusters"].default == defaults[2]["n_clusters"].default == "auto"


@pytest.mark.parametrize(
    "estimator",
    [SpectralClustering(), EmbedKMeans(), KMeans(n_init=9), AgglomerativeClustering(), GaussianMixture(n_init=9)],
    ids=lambda one: f"{type(one).__module__.split('.')[0]}.{type(one).__name__}",
)
@pytest.mark.filterwarnings("ignore:the graph has")
def test_any_clusterer_can_be_counted(estimator, rng):
    """Of fiedler or scikit-learn, with or without a graph, random_state or predict."""
    X = np.repeat(6 * np.eye(4), 30, axis=0) + rng.normal(size=(120, 4))

    choice = choose_n_clusters(X, [2, 3, 4, 5], estimator=estimator, random_state=0)

    assert choice.n_clusters == 4
    assert choice.stability[2] == pytest.approx(1, abs=0.02)
    assert len(choice.gaps) == len(choice.modularity) == len(choice.stability_error) == 4


def test_pipelines_and_graphs_that_are_already_built_can_be_counted(blobs):
    graph = KNNGraph(9, connect="mst").build(blobs)
    for estimator, X in (
        (make_pipeline(StandardScaler(), KMeans(n_init=5)), blobs),
        (SpectralClustering(graph=graph), blobs),
        (SpectralClustering(graph="precomputed"), graph.weights),
        (NLE(graph=LandmarkGraph(40, bandwidth=2.0), n_init=2), blobs),
    ):
        assert choose_n_clusters(X, range(2, 6), estimator=estimator, random_state=0).n_clusters == 3


def test_topics_are_counted_with_evidence(rng):
    choice = choose_n_clusters(documents(rng), range(2, 7), estimator=LPIClustering(), random_state=0)

    assert choice.n_clusters == 3
    assert str(choice).startswith("3 clusters, by stability, then eigengap")
    assert str(choice).count("<") == 1


def test_a_graph_can_be_counted(blobs):
    graph = KNNGraph(9, connect="mst").build(blobs)

    assert choose_n_clusters(graph, range(2, 6), random_state=0).n_clusters == 3
    assert choose_n_clusters(graph, range(2, 6), estimator=SpectralClustering(), random_state=0).n_clusters == 3


def test_a_subgraph_is_the_block_of_its_rows(blobs):
    graph = KNNGraph(9).build(blobs)

    block = subgraph(graph, np.arange(50, 100))

    assert_allclose(block.weights.toarray(), graph.weights.toarray()[50:100, 50:100])


def test_eigengaps_are_the_printed_logarithms(blobs):
    graph = KNNGraph(9, connect="mst").build(blobs)
    values = np.maximum(smallest_eigenpairs(graph, 5, random_state=0).values, module.SMALLEST_EIGENVALUE)

    printed = [np.log(values[k] / values[k - 1]) for k in (2, 3, 4)]  # lambda_(K+1) is values[K]

    assert_allclose(relative_eigengaps(graph, [2, 3, 4], 0), printed)


def test_curves_without_links_are_counted_although_they_have_no_gap(fixed_rng):
    """Long lines have small eigenvalues of their own, so that the gap does not follow the number of lines."""
    sizes, line = np.array([500, 300, 100]), np.repeat([0, 1, 2], [500, 300, 100])
    x = fixed_rng.uniform(size=900) * sizes[line] / 10
    X = np.stack([x, np.array([0.0, 50.0, 500.0])[line] + 0.1 * fixed_rng.normal(size=900)], axis=1)

    choice = choose_n_clusters(X, range(2, 6), random_state=0)

    assert choice.gaps[:2] == [0, 0]
    assert min(choice.stability[:2]) > 0.99
    assert choice.n_clusters == 3


def test_large_data_are_sampled(blobs, monkeypatch):
    graph, sizes = KNNGraph(9).build(blobs), []
    monkeypatch.setattr(module, "MAX_SAMPLED_ROWS", 100)

    def subset_graph(rows):
        sizes.append(len(rows))
        return KNNGraph(9).build(blobs[rows])

    assert count_clusters(graph, [2, 3, 4], subset_graph, random_state=np.random.RandomState(0)).n_clusters == 3
    assert sizes == [80] * 4


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([],), {}, "candidates is empty; pass numbers of clusters of at least 2"),
        (([1],), {}, "one cluster has no alternative; pass numbers of clusters of at least 2"),
        ((5,), {}, "must be an iterable of integers; pass for example range"),
        (([2, 500],), {}, "n_clusters=500 is more than the number of rows"),
        ((), {"fraction": 2}, "fraction must be a fraction above 0 and at most 1"),
        ((), {"n_subsets": 1}, "n_subsets must be an integer of at least 2"),
        ((), {"estimator": KNNGraph()}, "has no fit_predict; pass a clusterer"),
        ((), {"estimator": DBSCAN()}, "DBSCAN has no parameter n_clusters or n_components"),
    ],
)
def test_bad_arguments_give_one_sentence(blobs, arguments, options, sentence):
    with pytest.raises(InputError, match=sentence):
        choose_n_clusters(blobs, *arguments, **options)


def test_a_graph_needs_an_estimator_that_takes_graphs(blobs):
    with pytest.raises(InputError, match="KMeans cannot cluster a graph; pass rows"):
        choose_n_clusters(KNNGraph(9).build(blobs), estimator=KMeans())


# ------------------------------------------------------------------------------------------------- persistent numbers


@pytest.mark.parametrize(
    ("chosen", "stability", "levels"),
    [
        (6, [0.84, 0.9, 0.7, 0.95, 0.94, 0.8], [(3, 0.9), (6, 0.94)]),
        (6, [0.8, 0.8, 0.7, 0.86, 0.84, 0.8], [(5, 0.86)]),  # the chosen number is not persistent itself
        (3, [1.0, 1.0, 1.0, 0.5, 0.9, 0.9], [(3, 1.0), (6, 0.9)]),  # equally stable neighbours count once
        (2, [0.5, 0.6, 0.7, 0.6, 0.7, 0.7], []),
        (1, [0.99, 0.6, 0.7, 0.6, 0.9, 0.7], []),
    ],
)
def test_levels_are_the_local_maxima_of_the_stability(chosen, stability, levels):
    choice = NClustersChoice(chosen, "r", [2, 3, 4, 5, 6, 7], None, stability=stability)

    assert choice.levels == levels
    assert ("persistent: 3 (0.90), 6 (0.94)" in str(choice)) == (levels == [(3, 0.9), (6, 0.94)])


def test_levels_need_stability():
    assert NClustersChoice(3, "r", [2, 3], None).levels == []


def test_clusters_of_clusters_have_several_levels(fixed_rng):
    corners = np.array([[0, 0], [8, 0], [0, 8]])
    parts = np.concatenate([corner + 1.2 * np.array([[1, 0], [-0.5, 0.9], [-0.5, -0.9]]) for corner in corners])
    X = np.concatenate([part + 0.4 * fixed_rng.normal(size=(60, 2)) for part in parts])

    model = ManifoldClustering(max_clusters=12, random_state=0).fit(X)

    assert {3, 9} <= set(model.levels_["n_clusters"])
    assert min(model.levels_["stability"]) >= 0.85


@pytest.mark.parametrize(("stability", "is_stable"), [([0.5, 0.9], True), ([0.5, 0.6], False)])
def test_no_number_is_stable(stability, is_stable):
    choice = NClustersChoice(2, "r", [2, 3], None, stability=stability)

    assert choice.is_stable == is_stable
    assert ("no number of clusters is stable" in str(choice)) != is_stable
    assert NClustersChoice(1, "r", [2, 3], None, stability=stability).is_stable


def test_an_unstable_number_is_worth_a_warning(monkeypatch, rng):
    X = rng.normal(size=(120, 2)) + np.repeat([[0, 0], [8, 0]], 60, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManifoldClustering(max_clusters=4, random_state=0).fit(X)

    monkeypatch.setattr(module, "UNSTABLE_BELOW", 1.1)
    with pytest.warns(FiedlerWarning, match="no number of clusters is stable, so 2 is a guess"):
        ManifoldClustering(max_clusters=4, random_state=0).fit(X)


def test_weights_of_rows_count_in_the_graph_and_in_the_estimator(blobs, rng):
    X, weights = blobs, rng.randint(1, 6, size=150)

    plain, weighted = (choose_n_clusters(X, range(2, 6), sample_weight=m, random_state=0) for m in (None, weights))

    assert (plain.n_clusters, weighted.n_clusters) == (3, 3)
    assert plain.modularity != weighted.modularity
    again = choose_n_clusters(X, range(2, 6), sample_weight=4.0 * weights, random_state=0)
    assert_allclose(again.modularity, weighted.modularity)  # only ratios matter
    options = {"random_state": 0, "sample_weight": weights}
    assert choose_n_clusters(X, range(2, 6), estimator=KMeans(n_init=2), **options).n_clusters == 3
    with pytest.raises(InputError, match="AgglomerativeClustering does not weigh rows; leave sample_weight out"):
        choose_n_clusters(X, range(2, 6), estimator=AgglomerativeClustering(), **options)
