"""One rule chooses the number of clusters, for every estimator."""

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs, make_moons, make_swiss_roll
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import (
    NLE,
    AffinityGraph,
    EmbedKMeans,
    KNNGraph,
    LandmarkGraph,
    LPIClustering,
    ManifoldClustering,
    SpectralClustering,
    choose_n_clusters,
)
from fiedler.errors import FiedlerWarning, InputError
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.manifold import n_clusters as module
from fiedler.manifold.n_clusters import (
    Evidence,
    NClustersChoice,
    RowDensity,
    count_clusters,
    count_rows,
    default_candidates,
    subgraph,
)
from fiedler.metrics import modularity


@pytest.fixture
def blobs():
    return make_blobs(150, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)[0]


def seeded(seed=0):
    return np.random.RandomState(seed)


def documents(rng, n_topics=3, n_terms=40):
    """Word counts of topics that use different words."""
    topics = rng.dirichlet(np.full(n_terms, 0.1), size=n_topics)
    return np.concatenate([rng.poisson(30 * topic, size=(60, n_terms)) for topic in topics]).astype(float)


# ------------------------------------------------------------------------------------------------------------- one home


def test_the_function_the_class_and_the_first_call_agree(blobs):
    choice = choose_n_clusters(blobs)
    model = ManifoldClustering(random_state=0).fit(blobs)

    assert choice == model.evidence_ == fiedler.cluster(blobs, random_state=0).model.evidence_
    assert choice.n_clusters == model.n_clusters_ == 3


def test_the_count_does_not_depend_on_the_seed_of_the_model(rng):
    X = rng.normal(size=(200, 2)) * [3, 1]

    first, second = (ManifoldClustering(effort="fast", random_state=seed).fit(X).evidence_ for seed in (1, 2))

    assert first == second


def test_the_order_of_the_rows_does_not_matter(fixed_rng):
    X = fixed_rng.normal(size=(300, 3)) + 2.5 * fixed_rng.randint(3, size=(300, 1))

    assert choose_n_clusters(X) == choose_n_clusters(X[fixed_rng.permutation(300)])


def test_scale_and_rotation_do_not_matter(fixed_rng):
    X = make_blobs(120, centers=4, cluster_std=0.8, random_state=fixed_rng)[0]
    turn = np.array([[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]])

    numbers = [choose_n_clusters(rows).n_clusters for rows in (X, 1e5 * X, X @ turn, X.astype(np.float32))]

    assert set(numbers) == {numbers[0]}


def test_two_subsets_are_one_pair_without_an_error(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose_n_clusters(blobs, range(2, 5), n_subsets=2, random_state=0)

    assert choice.n_clusters == 3
    assert choice.stability_error == [0, 0, 0]


def test_their_defaults_agree():
    counts = [inspect.signature(one).parameters for one in (choose_n_clusters, count_clusters)]
    models = [inspect.signature(one).parameters for one in (ManifoldClustering, fiedler.cluster, fiedler.estimate)]

    assert counts[0]["candidates"].default is None
    assert counts[0]["n_subsets"].default == counts[1]["n_subsets"].default
    assert counts[0]["fraction"].default == counts[1]["fraction"].default
    assert {one["max_clusters"].default for one in models} == {None}
    assert {one["n_clusters"].default for one in models} == {"auto"}


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
    assert len(choice.score) == len(choice.modularity) == len(choice.stability_error) == 4


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
    assert str(choice).startswith(choice.sentence)
    assert choice.sentence.startswith("3 clusters")
    assert str(choice).count("<") == 1


def test_a_graph_can_be_counted(blobs):
    graph = KNNGraph(9, connect="mst").build(blobs)

    alone = choose_n_clusters(graph)

    assert (alone.n_clusters, alone.n_separated, alone.valley, alone.clusterability) == (3, 3, None, None)
    assert choose_n_clusters(graph, range(2, 6)).n_clusters == 3
    assert choose_n_clusters(graph, range(2, 6), estimator=SpectralClustering()).n_clusters == 3


def test_a_subgraph_is_the_block_of_its_rows(blobs):
    graph = KNNGraph(9).build(blobs)

    block = subgraph(graph, np.arange(50, 100))

    assert_allclose(block.weights.toarray(), graph.weights.toarray()[50:100, 50:100])


def test_back_ends_are_counted_alike(backend, blobs):
    choice = choose_n_clusters(backend(blobs.astype(np.float32)))

    assert (choice.n_clusters, choice.by) == (3, "gaps")


def test_large_data_are_sampled(blobs, monkeypatch):
    graph, sizes = KNNGraph(9).build(blobs), []
    monkeypatch.setattr(module, "MAX_SAMPLED_ROWS", 100)

    def subset_graph(rows):
        sizes.append(len(rows))
        return KNNGraph(9).build(blobs[rows])

    assert count_clusters(graph, [2, 3, 4], subset_graph, random_state=seeded()).n_clusters == 3
    assert sizes == [80] * 6


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([],), {}, "candidates is empty; pass numbers of clusters of at least 2"),
        (([1],), {}, "one cluster has no alternative; pass numbers of clusters of at least 2"),
        ((5,), {}, "must be an iterable of integers; pass for example range"),
        (
            ([2, 61],),
            {},
            "candidate 61 is more than half of the 120 different rows in each subset; pass numbers up to 60",
        ),
        (([151],), {}, "the candidate 151 is more than half of the 120 different rows"),
        (([2, 0],), {}, "every candidate must be an integer of at least 1"),
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


def test_a_graph_of_pairs_can_be_counted():
    W = np.kron(np.eye(20), [[0, 1], [1, 0]])

    assert choose_n_clusters(AffinityGraph.from_matrix(W)).n_clusters >= 2


def test_copies_count_once_and_candidates_are_compared_with_all_rows(fixed_rng):
    X = np.round(2 * fixed_rng.normal(size=(1000, 2)))
    values = np.repeat(np.arange(5.0), 100)[:, None]

    assert choose_n_clusters(X).n_clusters == count_rows(X).n_clusters == 1
    assert choose_n_clusters(X, sample_weight=np.ones(1000)) == choose_n_clusters(X)
    assert choose_n_clusters(values, range(2, 10)).n_clusters == 5
    assert count_rows(values).by == "one for each different row"
    assert count_rows(values, max_clusters=3).n_clusters == 3


def test_a_graph_without_edges_is_refused():
    with pytest.raises(InputError, match="the graph has no edges"):
        choose_n_clusters(AffinityGraph.from_matrix(np.zeros((30, 30))))


# --------------------------------------------------------------------------------------------------------- the evidence


@pytest.mark.parametrize("valley", [-1.0, 0.05, 0.4, 1.0, 2.5])
@pytest.mark.parametrize(("stability", "quality"), [(0.9, 0.6), (-0.1, 0.6), (0.9, -0.2)])
def test_the_score_is_the_printed_product(stability, quality, valley):
    """(s³ Q)² e √v, with s and Q at least zero and v between 0.1 and 1."""
    evidence = Evidence(stability, 0.01, quality, 0.8, valley)

    printed = (max(stability, 0) ** 3 * max(quality, 0)) ** 2 * 0.8 * math.sqrt(min(max(valley, 0.1), 1))

    assert evidence.score == pytest.approx(printed)


def test_stability_is_the_mean_agreement_of_subsets(blobs):
    """Of every two subsets, on the rows they share; the scores of random labels are the printed ones."""
    graph, drawn = KNNGraph(9, connect="mst").build(blobs), []

    def partition(graph, rows, numbers, seed):
        labels = [[np.arange(len(rows)) % k if seed % 2 else seeded(seed).randint(k, size=len(rows))] for k in numbers]
        drawn.append((graph, dict(zip(rows, labels[0][0])), labels[0][0]))
        return labels

    choice = count_clusters(
        graph, [3, 4], lambda rows: subgraph(graph, rows), partition, n_subsets=3, random_state=seeded()
    )

    agreement = []
    for (_, first, _), (_, second, _) in itertools.combinations(drawn, 2):
        shared = sorted(set(first) & set(second))
        agreement.append(adjusted_rand_score([first[i] for i in shared], [second[i] for i in shared]))
    quality = np.mean([modularity(graph, labels) for graph, _, labels in drawn])
    shares = [np.bincount(labels) / len(labels) for _, _, labels in drawn]
    evenness = np.mean([np.exp(-np.sum(p * np.log(p))) / 3 for p in shares])
    assert_allclose(choice.stability[0], np.mean(agreement))
    assert_allclose(choice.stability_error[0], np.std(agreement, ddof=1) / math.sqrt(3))
    assert_allclose(choice.modularity[0], quality)
    assert_allclose(choice.score[0], (max(np.mean(agreement), 0) ** 3 * max(quality, 0)) ** 2 * evenness)


def test_of_two_methods_the_one_with_the_higher_score_counts(blobs):
    graph, truth = KNNGraph(9, connect="mst").build(blobs), KMeans(3, random_state=0).fit_predict(blobs)

    def partition(graph, rows, numbers, seed):
        return [[seeded(seed).randint(k, size=len(rows)), truth[rows] % k] for k in numbers]

    choice = count_clusters(graph, [2, 3], lambda rows: subgraph(graph, rows), partition, random_state=seeded())

    assert choice.stability == [1, 1]


def density_of(X, k=9):
    edges, (graph,) = nested_graphs(self_tuned(k, connect="mst"), X, [k])
    return RowDensity.of(edges), edges, graph


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_dimension_of_uniform_rows_is_found(d, rng):
    density, _, _ = density_of(rng.uniform(size=(2000, d)))

    assert density.dimension == pytest.approx(d, rel=0.1)


def test_the_dimension_is_the_printed_mean(rng):
    """m = 1 / mean_ij log(r_i / d_ij) over the neighbours but the last."""
    X = rng.normal(size=(60, 4))
    density, _, _ = density_of(X, 5)
    D = np.sort(np.linalg.norm(X[:, None] - X[None], axis=-1), axis=1)[:, 1:6]

    logs = [math.log(D[i, -1] / D[i, j]) for i in range(60) for j in range(4)]

    assert_allclose(density.dimension, 1 / np.mean(logs), rtol=1e-5)
    assert_allclose(density.log_radii, np.log(D[:, -1]), rtol=1e-5, atol=1e-6)


def test_repeated_rows_have_a_density(rng):
    X = np.repeat(rng.normal(size=(5, 3)), 30, axis=0)

    density, _, _ = density_of(X)

    assert np.isfinite(density.log_radii).all()
    assert np.isfinite(density.dimension)


def test_a_valley_is_the_printed_difference(fixed_rng):
    """m (mean log r at borders - mean log r inside), over clusters, weighted by their rows at borders.

    Rows at borders have a share of edges that leave the cluster; of a cluster of up to 20 rows, a share of weight.
    """
    X = fixed_rng.normal(size=(80, 2)) + np.repeat([[0, 0], [3, 0], [0, 3], [60, 0]], [30, 24, 20, 6], axis=0)
    density, _, graph = density_of(X, 5)
    labels = np.repeat([0, 1, 2, 3], [30, 24, 20, 6])
    rows = np.arange(80)
    W = graph.weights.toarray()

    falls, n_borders = [], []
    for cluster in range(4):
        border, inside = [], []
        for i in np.flatnonzero(labels == cluster):
            neighbors = np.flatnonzero(W[i])
            counted = W[i, neighbors] if np.sum(labels == cluster) <= 20 else None
            leaving = np.average(labels[neighbors] != cluster, weights=counted)
            if leaving >= 0.3:
                border.append(density.log_radii[i])
            if leaving <= 0.1:
                inside.append(density.log_radii[i])
        if len(border) > 1:
            falls.append(np.mean(border) - np.mean(inside) if len(inside) > 1 else 0)
            n_borders.append(len(border))

    printed = density.dimension * np.sum(np.multiply(falls, n_borders)) / np.sum(n_borders)

    assert len(n_borders) == 3  # one cluster has no border
    assert_allclose(density.valley(graph, rows, labels), printed)


def test_the_valley_of_a_subset_uses_its_own_rows(fixed_rng):
    X = fixed_rng.normal(size=(90, 2)) * [3, 1]
    density, _, _ = density_of(X, 5)
    rows, labels = fixed_rng.permutation(90)[:70], fixed_rng.randint(2, size=70)
    graph = self_tuned(5, connect="mst").build(X[rows])

    of_subset = RowDensity(density.log_radii[rows], density.dimension)

    assert density.valley(graph, rows, labels) == of_subset.valley(graph, np.arange(70), labels)


def test_clusters_without_borders_have_the_deepest_valley(fixed_rng):
    X = np.concatenate([fixed_rng.normal(size=(50, 2)), 100 + fixed_rng.normal(size=(50, 2))])
    density, _, graph = density_of(X)

    assert density.valley(graph, np.arange(100), np.repeat([0, 1], 50)) == module.MAX_VALLEY


def test_a_border_in_a_gap_has_a_valley_and_one_through_a_cloud_has_none(fixed_rng):
    X = fixed_rng.normal(size=(600, 2)) + np.repeat([[0, 0], [4, 0]], 300, axis=0)
    density, _, graph = density_of(X)

    between, across = (
        density.valley(graph, np.arange(600), labels.astype(int)) for labels in (X[:, 0] > 2, X[:, 1] > 0)
    )

    assert between > 0.8
    assert across < 0.3


# --------------------------------------------------------------------------------------------------------------- choice


def evidence_of(**changes):
    """Evidence with a score of 0.5 at K = 2, 3, 4, and with some scores multiplied."""
    plain = {k: Evidence(1.0, 0.0, 0.5, 1.0, 1.0) for k in (2, 3, 4)}
    return plain | {k: plain[k]._replace(**change) for k, change in changes.get("of", {}).items()}


def test_without_gaps_the_highest_score_is_chosen():
    assert module._choose(evidence_of(of={3: {"modularity": 0.6}}), 1, 2) == 3
    assert module._choose(evidence_of(of={3: {"modularity": 0.6}, 4: {"stability": 0.9, "modularity": 0.7}}), 1, 2) == 3


def test_no_number_below_that_of_the_gaps_is_chosen():
    assert module._choose(evidence_of(of={2: {"modularity": 0.9}}), 3, 2) == 3


def test_clear_parts_of_groups_need_a_less_high_score():
    groups = Evidence(1.0, 0.0, 0.84, 1.0, 3.0)
    clear = Evidence(1.0, 0.0, 0.9, 1.0, 3.0)  # 1.15 times the score

    assert clear.is_finer_than(groups, 2)
    assert not clear._replace(valley=1.0).is_finer_than(groups, 2)
    assert not clear._replace(stability=0.97).is_finer_than(groups, 2)
    assert not clear._replace(modularity=0.87).is_finer_than(groups, 2)
    assert not groups.is_finer_than(clear, 2)
    assert not clear.is_finer_than(groups, 1.0)  # along a line


def test_along_a_line_the_gaps_decide():
    evidence = {2: Evidence(1.0, 0.0, 0.5, 1.0, 3.0), 4: Evidence(0.99, 0.0, 0.7, 1.0, 1.3)}

    assert [module._choose(evidence, 2, dimension) for dimension in (1.0, 1.5, 2.0)] == [2, 4, 4]


def test_more_clusters_than_gaps_must_be_stable():
    for stability, expected in ((0.95, 4), (0.85, 3)):
        assert module._choose(evidence_of(of={4: {"modularity": 0.9, "stability": stability}}), 3, 2) == expected


@pytest.mark.parametrize("n", [20, 84, 100, 500, 2000, 10_000])
def test_candidates_are_dense_then_geometric(n):
    numbers = default_candidates(n)
    largest = min(max(n // module.MIN_SUBSET_ROWS_PER_CLUSTER, min(n // 4, 6)), module.MAX_CELLS // 2)

    assert numbers[: module.DENSE_UP_TO - 1] == list(range(2, min(largest, module.DENSE_UP_TO) + 1))
    assert numbers == sorted(set(numbers))
    assert largest / module.GRID_FACTOR < numbers[-1] <= largest
    assert all(b <= math.ceil(module.GRID_FACTOR * a) or b == a + 1 for a, b in itertools.pairwise(numbers))


def test_the_number_of_separated_groups_is_a_candidate():
    assert 61 not in default_candidates(2000)
    assert 61 in default_candidates(2000, 61)
    assert 61 not in default_candidates(100, 61)  # fewer than two rows each
    assert default_candidates(2000, 1) == default_candidates(2000)


def test_numbers_next_to_the_chosen_one_are_compared():
    """Every number between its neighbours on the grid, or some of many."""
    assert module._numbers_between([2, 3, 4, 15, 19], 3) == []
    assert module._numbers_between([12, 15, 19, 24], 15) == [13, 14, 16, 17, 18]
    assert module._numbers_between([72, 90, 112], 112) == list(range(91, 112, 3))


# ----------------------------------------------------------------------------------------------------- the cases of use


def uneven(n, m, seed):
    return np.concatenate([seeded(seed).normal(size=(n, 2)), np.array([12, 0]) + seeded(seed + 1).normal(size=(m, 2))])


def far(n, d, distance, seed=0):
    X = seeded(seed).normal(size=(2 * n, d))
    X[n:, 0] += distance
    return X


def prices(n, seed):
    return np.concatenate([seeded(seed).normal(10, 1, n), seeded(seed + 1).normal(500, 20, n)])[:, None]


def ring(n, noise, seed):
    angles = seeded(seed).uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) + noise * seeded(seed + 1).normal(size=(n, 2))


def test_clusters_far_apart_are_two_at_any_distance():
    for n, distance in ((100, 10), (500, 40), (100, 1000)):
        choice = choose_n_clusters(far(n, 2, distance))
        assert (choice.n_clusters, choice.by, choice.n_separated) == (2, "gaps", 2)


@pytest.mark.parametrize("seed", range(2))
def test_groups_in_one_dimension_are_two(seed):
    assert choose_n_clusters(prices(100, seed)).n_clusters == 2


def test_a_group_of_one_percent_is_a_cluster():
    choice = choose_n_clusters(uneven(990, 10, 0))

    assert (choice.n_clusters, choice.by) == (2, "gaps")


@pytest.mark.slow
def test_groups_of_2000_and_20_are_two():
    for seed in range(3):
        assert choose_n_clusters(uneven(2000, 20, seed)).n_clusters == 2


@pytest.mark.slow
@pytest.mark.parametrize("n_centers", [30, 50])
def test_many_blobs_in_twenty_dimensions_are_counted_exactly(n_centers):
    for seed in range(2):
        X = make_blobs(5000, 20, centers=n_centers, random_state=seed)[0]
        assert choose_n_clusters(X).n_clusters == n_centers


@pytest.mark.slow
def test_thirty_blobs_in_a_box_are_counted():
    """Two of them are less than four standard deviations apart."""
    X = make_blobs(3000, centers=30, cluster_std=0.5, center_box=(-30, 30), random_state=0)[0]

    assert choose_n_clusters(X).n_clusters in (29, 30)


def test_more_than_twenty_clusters_are_counted():
    centers = 10 * np.stack(np.meshgrid(range(5), range(5)), axis=-1).reshape(-1, 2)
    X = make_blobs(500, centers=centers, random_state=0)[0]

    assert choose_n_clusters(X).n_clusters == 25


THREE_MOONS = pytest.mark.xfail(strict=True, reason="no gap is found, and three clusters are as stable as two")


@pytest.mark.parametrize("seed", range(3))
def test_two_moons_are_two(seed):
    assert choose_n_clusters(make_moons(500, noise=0.05, random_state=seed)[0]).n_clusters == 2


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, marks=THREE_MOONS),
        *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 6)),
    ],
)
def test_two_larger_moons_are_two(seed):
    assert choose_n_clusters(make_moons(1000, noise=0.05, random_state=seed)[0]).n_clusters == 2


ONE = {
    "Gaussian": lambda seed: seeded(seed).normal(size=(300, 2)),
    "stretched Gaussian": lambda seed: seeded(seed).normal(size=(300, 3)) * [50, 5, 1],
    "line": lambda seed: seeded(seed).uniform(size=(300, 1)),
    "lognormal": lambda seed: seeded(seed).lognormal(size=(500, 2)),
    "lognormal in five dimensions": lambda seed: seeded(seed).lognormal(size=(500, 5)),
    "ring": lambda seed: ring(300, 0.05, seed),
    "large ring": lambda seed: ring(1000, 0.05, seed),
    "Swiss roll": lambda seed: make_swiss_roll(1000, random_state=seed)[0],
}


@pytest.mark.parametrize("shape", [shape for shape in ONE if shape != "large ring"])
def test_no_clusters_are_found_in_one_cloud(shape):
    choice = choose_n_clusters(ONE[shape](0))

    assert (choice.n_clusters, choice.by, choice.n_separated) == (1, "one cluster", 1)
    assert choice.strength is None
    assert choice.sentence == "No clusters found; give n_clusters to split the rows anyway."


@pytest.mark.slow
@pytest.mark.parametrize("shape", list(ONE))
def test_one_cloud_is_one_cluster_in_nearly_all_draws(shape):
    """At least 95 of 100: with fewer than 18 of 20 this would be unlikely."""
    numbers = [choose_n_clusters(ONE[shape](seed)).n_clusters for seed in range(100, 120)]

    assert numbers.count(1) >= 18


def test_five_distinct_rows_are_five_clusters():
    X = np.repeat(seeded().normal(size=(5, 4)), 20_000, axis=0)

    assert choose_n_clusters(X).n_clusters == 5


# ------------------------------------------------------------------------------------------------- limits on the number


def test_a_limit_that_binds_is_worth_a_warning(blobs):
    with pytest.warns(FiedlerWarning, match="max_clusters=3 is the largest number of clusters") as caught:
        model = ManifoldClustering(max_clusters=3, effort="fast").fit(make_blobs(250, centers=10 * np.eye(5))[0])

    assert model.n_clusters_ == 3
    assert model.evidence_.is_capped
    assert "max_clusters_reached" in {one.message.code for one in caught}
    assert model.evidence_.sentence.endswith("Larger numbers were not compared.")
    free = ManifoldClustering(max_clusters=6, effort="fast").fit(blobs)
    assert (free.n_clusters_, free.evidence_.is_capped, free.evidence_.candidates) == (3, False, [2, 3, 4, 5, 6])


def test_the_largest_number_by_default_is_a_limit_as_well(fixed_rng):
    """Ten groups of nine rows, which are too few for the search for gaps."""
    X = 100 * np.repeat(fixed_rng.normal(size=(10, 2)), 9, axis=0) + fixed_rng.normal(size=(90, 2))

    choice = choose_n_clusters(X)

    assert (choice.n_clusters, choice.n_separated, choice.is_capped) == (10, 1, True)
    assert choice.sentence.endswith("Larger numbers were not compared.")


def test_fewer_clusters_than_gaps_separate_are_weakly_supported():
    X = np.repeat(30 * np.eye(5), 40, axis=0) + seeded().normal(size=(200, 5))

    choice = choose_n_clusters(X, [2, 3])

    assert (choice.n_clusters, choice.by, choice.n_separated, choice.strength) == (3, "limit", 5, "weak")


def test_a_limit_of_two_binds_as_well(blobs):
    with pytest.warns(FiedlerWarning, match="max_clusters=2 is the largest number of clusters"):
        ManifoldClustering(max_clusters=2, effort="fast").fit(blobs)


def test_candidates_are_compared_as_they_are_given(blobs):
    assert choose_n_clusters(blobs, [5, 2, 4]).candidates == [2, 4, 5]
    assert choose_n_clusters(blobs, [5, 2, 4]).n_clusters == 4  # not fewer than the gaps separate
    assert choose_n_clusters(blobs, [2]).by == "the only candidate"


# ------------------------------------------------------------------------------------------------------------ sentences

STABILITY = [1.0, 0.98, 0.7, 0.6]


def choice_of(chosen, stability=STABILITY, score=(0.3, 0.6, 0.1, 0.1), by="score", **others):
    return NClustersChoice(chosen, by, [2, 3, 4, 5], list(stability), score=list(score), **others)


@pytest.mark.parametrize(
    ("choice", "strength"),
    [
        (choice_of(3), "strong"),
        (choice_of(3, score=(0.5, 0.6, 0.1, 0.1)), "moderate"),  # another one is nearly as good
        (choice_of(3, stability=(1, 0.85, 0.7, 0.6)), "moderate"),
        (choice_of(3, stability=(1, 0.79, 0.7, 0.6)), "weak"),
        (choice_of(3, stability=(1, 0.79, 0.7, 0.6), by="gaps"), "strong"),
        (choice_of(3, by="gaps", p_value=0.2), "moderate"),
        (choice_of(3, by="limit", n_separated=5), "weak"),
        (choice_of(1, by="one cluster"), None),
        (NClustersChoice(3, "the only candidate", [3]), None),
    ],
)
def test_the_strength_depends_on_stability_and_on_the_next_best_number(choice, strength):
    assert choice.strength == strength
    assert choice.is_stable == (strength != "weak")


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (
            choice_of(3),
            "3 clusters. 2 would be as stable (1.00), 4 would be less stable (0.70): the evidence for 3 is strong.",
        ),
        (
            choice_of(4, score=(0.5, 0.1, 0.6, 0.2), by="gaps"),
            "4 clusters, separated by gaps. 2 would be more stable (1.00), 5 would be less stable (0.60): "
            "the evidence for 4 is strong.",
        ),
        (
            choice_of(5, is_capped=True),
            "5 clusters. 2 would be more stable (1.00), 3 would be more stable (0.98): the evidence for 5 is weak. "
            "Larger numbers were not compared.",
        ),
        (
            choice_of(3, by="limit", n_separated=5, is_capped=True),
            "3 clusters, though gaps separate 5 groups. 2 would be as stable (1.00), 4 would be less stable (0.70): "
            "the evidence for 3 is weak. Larger numbers were not compared.",
        ),
        (
            choice_of(3, by="modes"),
            "3 clusters, the modes along a line or a loop. 2 would be as stable (1.00), 4 would be less stable (0.70): "
            "the evidence for 3 is strong.",
        ),
        (NClustersChoice(3, "the only candidate", [3]), "3 clusters, the only candidate."),
        (NClustersChoice(1, "one cluster", [2, 3]), "No clusters found; give n_clusters to split the rows anyway."),
        (NClustersChoice(1, "the only candidate", [1]), "1 cluster, the only candidate."),
    ],
)
def test_the_evidence_is_one_sentence(choice, sentence):
    assert choice.sentence == sentence
    assert str(choice).splitlines()[0] == sentence


def test_numbers_close_to_a_better_one_are_no_alternatives():
    """25 to 29 are one answer."""
    choice = NClustersChoice(27, "score", [9, 25, 27, 29, 60], [0.9] * 5, score=[0.1, 0.5, 0.6, 0.55, 0.2])

    assert choice.sentence.startswith("27 clusters. 9 would be as stable (0.90), 60 would be as stable")
    assert choice.strength == "strong"


def test_the_table_has_a_line_for_every_number():
    choice = choice_of(3, stability_error=[0, 0.01, 0.02, 0.03], modularity=[0.4, 0.5, 0.3, 0.2], valley=[1, 2, 0.1, 0])

    lines = str(choice).splitlines()

    assert lines[1].split() == ["K", "stability", "modularity", "valley", "score"]
    assert lines[3].split() == ["3", "0.980", "±", "0.010", "0.5000", "2.00", "0.6000", "<"]
    assert len(lines) == 6
    assert "groups separated by gaps: 3" in str(choice_of(3, n_separated=3))


def test_the_report_begins_with_the_sentence(blobs):
    model = ManifoldClustering(effort="fast").fit(blobs)

    assert model.report().startswith(model.evidence_.sentence + "\n")
    assert "stability" not in model.evidence_.sentence


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
    choice = NClustersChoice(chosen, "r", [2, 3, 4, 5, 6, 7], stability=stability)

    assert choice.levels == levels
    assert ("persistent: 3 (0.90), 6 (0.94)" in str(choice)) == (levels == [(3, 0.9), (6, 0.94)])


def test_of_equally_stable_numbers_the_one_of_the_highest_score_is_a_level():
    stability, score = [0.999, 1.0, 0.7, 0.8, 0.97, 0.9], [0.1, 0.4, 0.1, 0.1, 0.6, 0.1]

    assert NClustersChoice(6, "r", [2, 3, 4, 5, 6, 7], stability=stability, score=score).levels == [(3, 1.0), (6, 0.97)]


def test_levels_need_stability():
    assert NClustersChoice(3, "r", [2, 3]).levels == []


def test_clusters_of_clusters_have_several_levels(fixed_rng):
    corners = np.array([[0, 0], [8, 0], [0, 8]])
    parts = np.concatenate([corner + 1.2 * np.array([[1, 0], [-0.5, 0.9], [-0.5, -0.9]]) for corner in corners])
    X = np.concatenate([part + 0.4 * fixed_rng.normal(size=(60, 2)) for part in parts])

    model = ManifoldClustering(effort="fast", random_state=0).fit(X)

    levels = zip(model.levels_["n_clusters"], model.levels_["stability"], model.levels_["persistent"])
    persistent = {k: stability for k, stability, is_persistent in levels if is_persistent}
    assert {3, 9} <= set(persistent)
    assert min(persistent.values()) >= 0.85


def test_weak_evidence_is_worth_a_warning(monkeypatch, fixed_rng):
    X = fixed_rng.normal(size=(120, 2)) + np.repeat([[0, 0], [8, 0]], 60, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManifoldClustering(effort="fast").fit(X)

    monkeypatch.setattr(NClustersChoice, "strength", "weak")
    with pytest.warns(FiedlerWarning, match="2 clusters.*: the evidence for 2 is weak; look at report") as caught:
        ManifoldClustering(effort="fast").fit(X)
    assert [one.message.code for one in caught] == ["unstable_n_clusters"]
