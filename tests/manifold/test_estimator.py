import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import GridSearchCV

import fiedler
from fiedler import (
    AffinityGraph,
    GaussianMixture,
    KNNGraph,
    LapGMM,
    LearnedLaplacian,
    ManifoldClustering,
    PairwiseConstraints,
)
from fiedler.core.arrays import to_numpy
from fiedler.datasets import circles, load, two_moons
from fiedler.errors import FiedlerWarning, InputError
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.manifold import candidates as module
from fiedler.manifold.candidates import (
    Candidate,
    PartitionScorer,
    agrees_as_well,
    mean_normalized_cut,
    n_searches,
    reason_against_mixtures,
    select_by_cut,
    select_by_likelihood,
)
from fiedler.manifold.memberships import WALK, PartialSupervision
from fiedler.metrics import adjusted_rand_index, clustering_accuracy, normalized_cut, normalized_mutual_information


@pytest.fixture
def blobs():
    X, y = make_blobs(150, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)
    return X, y


@pytest.fixture
def moons():
    return two_moons(400, noise=0.05, random_state=0)


def a_candidate(family="communities", cut=1.0, n_clusters=2, icl=np.nan, agreement=np.nan, resolution=0.5):
    scores = {"n_clusters": n_clusters, "cut": cut, "icl": icl, "resolution": resolution, "agreement": agreement}
    return Candidate(family, np.zeros(4, dtype=int), 0.0, **scores)


def test_lower_resolution_is_selected_only_for_a_much_lower_cut():
    usual, lower = a_candidate(cut=1.0), a_candidate(cut=0.8, resolution=0.125)
    assert select_by_cut([usual, lower]) is usual
    much_less = a_candidate(cut=0.5, resolution=0.125)
    assert select_by_cut([usual, lower, much_less]) is much_less
    assert select_by_cut([lower]) is lower


def test_a_much_larger_cluster_is_not_split(rng):
    sizes, centers = (600, 30, 30, 30), 6 * np.eye(4)
    y = np.repeat(np.arange(4), sizes)
    X = centers[y] + rng.normal(size=(len(y), 4))
    assert clustering_accuracy(y, ManifoldClustering(4, random_state=0).fit(X).labels_) > 0.99


# ------------------------------------------------------------------------------------------------------- the formulas


def test_memberships_are_the_probabilities_of_where_the_walk_stops(blobs):
    """Q = (1-γ) (I - γ D⁻¹W)⁻¹ H."""
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])
    W, H = model.graph_.weights.toarray(), np.eye(3)[model.labels_]

    walk = W / W.sum(axis=1, keepdims=True)

    assert_allclose(model.memberships_, (1 - WALK) * np.linalg.solve(np.eye(150) - WALK * walk, H), atol=1e-5)
    assert_allclose(model.memberships_.sum(axis=1), 1, atol=1e-6)


def test_the_cut_is_the_geometric_mean_over_graphs(blobs, rng):
    graphs, labels = nested_graphs(self_tuned(), blobs[0], (5, 9))[1], rng.randint(3, size=150)

    one, other = (normalized_cut(graph, labels) for graph in graphs)

    assert one != other
    assert_allclose(mean_normalized_cut(graphs, labels), np.sqrt(one * other))


@pytest.mark.parametrize("shape", ["full", "tied"])
def test_completed_likelihood_uses_the_gaussian_of_each_rows_cluster(shape, blobs, monkeypatch):
    """1/n [Σ_i log α_k N(x_i; μ_k, Σ_k) - ½ ν log n], the ridge blurring the rows."""
    X, y = blobs
    monkeypatch.setattr(module, "COVARIANCE_TYPES", (shape,))
    ridge = 0.1 * X.var(axis=0).mean() * np.eye(2)
    covs = [np.cov(X[y == k].T, bias=True) for k in range(3)]
    pooled = sum(np.mean(y == k) * covs[k] for k in range(3))

    printed = 0.0
    for k in range(3):
        own, cov = X[y == k], (covs[k] if shape == "full" else pooled) + ridge
        blur = 0.5 * np.trace(np.linalg.solve(cov, ridge))
        density = multivariate_normal(own.mean(axis=0), cov).logpdf(own)
        printed += np.sum(np.log(len(own) / 150) + density - blur)
    n_parameters = 2 + 3 * 2 + {"full": 9, "tied": 3}[shape]

    icl = PartitionScorer({}, 3, X).icl
    assert_allclose(icl(y), (printed - 0.5 * n_parameters * np.log(150)) / 150)
    assert_allclose(icl(2 * y), icl(y))  # a number that no row has changes nothing


@pytest.mark.parametrize(("n", "enough"), [(17, False), (18, True)])
def test_mixtures_need_as_many_rows_as_parameters(n, enough):
    assert (reason_against_mixtures(np.zeros((n, 3)), 3) is None) is enough  # three covariances of six entries each
    assert "no dense rows" in reason_against_mixtures(sp.csr_array((1000, 3)), 3)
    assert "no dense rows" in reason_against_mixtures(None, 3)


def test_nested_graphs_are_the_graphs_built_one_by_one(blobs):
    for size, graph in zip((3, 5, 9), nested_graphs(self_tuned(connect="mst"), blobs[0], (3, 5, 9))[1]):
        alone = KNNGraph(size, weight="local", symmetrize="mean", connect="mst").build(blobs[0])
        assert_allclose(graph.weights.toarray(), alone.weights.toarray(), rtol=1e-12)


# --------------------------------------------------------------------------------------------------------- the choice


def test_communities_with_the_lowest_cut_are_selected():
    lowest, complete = a_candidate(cut=0.2), a_candidate(cut=0.3, n_clusters=3)

    assert select_by_cut([a_candidate("spectral", cut=0.1), a_candidate(cut=0.4), lowest]) is lowest
    assert select_by_cut([lowest, complete]) is complete  # a partition that has lost a cluster is not selected


@pytest.mark.parametrize(
    ("rival", "wins"),
    [
        (a_candidate("LapGMM", cut=0.39, icl=-1.0), True),
        (a_candidate("LapGMM", cut=0.41, icl=-1.0), False),  # cuts the graph more than twice as much
        (a_candidate("LapGMM", cut=0.2, icl=-3.0), False),  # less likely
        (a_candidate("LapGMM", cut=0.2, icl=-1.0, n_clusters=1), False),  # lost a cluster
    ],
)
def test_mixtures_are_selected_only_within_the_cut_ratio(rival, wins):
    leader = a_candidate(cut=0.2, icl=-2.0)

    assert (select_by_likelihood(leader, [rival]) is rival) is wins


def test_agreement_is_compared_within_two_standard_errors():
    assert agrees_as_well(0.9, 1.0, 10)  # nine of ten may be as good as ten of ten
    assert not agrees_as_well(0.9, 1.0, 1000)
    assert agrees_as_well(0.1, 0.9, 0)  # nothing known
    right, wrong = a_candidate(cut=0.3, agreement=0.9), a_candidate(cut=0.2, agreement=0.4)
    assert select_by_cut([right, wrong], n_known=100) is right
    assert select_by_cut([right, wrong], n_known=1) is wrong


def test_small_graphs_get_more_searches():
    assert [n_searches(n) for n in (10, 5000, 10**6)] == [module.MAX_SEARCHES, 4, 1]


def test_labels_of_overlapping_clusters_agree_with_mixtures_on_supernodes(rng, monkeypatch):
    """Pairs that agree on rows can contradict each other on supernodes; without links a half of them would agree."""
    monkeypatch.setattr(module, "MAX_SUPERNODES", 100)
    y = rng.randint(3, size=900)
    X = 2.0 * np.eye(3, 2)[y] + rng.normal(size=(900, 2))
    known = np.where(rng.uniform(size=900) < 0.1, y, -1)

    model = ManifoldClustering(3, random_state=0).fit(X, known)

    table = pd.DataFrame(model.candidates_)
    assert (table.agreement[table.family == "LapGMM"] > 0.95).all()
    assert (table.family == "LapGMM").sum() == 2


def test_a_mixture_that_wins_on_supernodes_is_refined_on_rows(rng, monkeypatch):
    """A narrow cluster on the side of a wide one, which the graph cuts through its middle."""
    monkeypatch.setattr(module, "MAX_SUPERNODES", 100)
    limits = row_fits(monkeypatch)
    y = rng.randint(2, size=1200)
    X = np.array([[0.0, 0.0], [2.5, 0.0]])[y] + np.array([0.5, 1.5])[y][:, None] * rng.normal(size=(1200, 2))

    table = pd.DataFrame(ManifoldClustering(2, effort="fast", random_state=0).fit(X).candidates_)

    chosen = table[table.chosen].iloc[0]
    assert chosen.family == "LapGMM"
    assert chosen.icl > table[table.family == "communities"].icl.max()
    assert limits == [module.MAX_ROW_ITERATIONS]


@pytest.mark.parametrize("make", [two_moons, circles])
def test_curved_clusters_are_not_split(make):
    """The mixtures have a higher likelihood, but would split the clusters; their cut is too high to be selected."""
    X, y = make(n_samples=600, noise=0.05, random_state=0)
    X_new, y_new = make(n_samples=300, noise=0.05, random_state=1)

    model = ManifoldClustering(2, effort="fast", random_state=0).fit(X)

    assert clustering_accuracy(y, model.labels_) > 0.99
    assert clustering_accuracy(y_new, model.predict(X_new)) > 0.99
    table = pd.DataFrame(model.candidates_)
    rivals, chosen = table[table.family == "LapGMM"], table[table.chosen]
    assert len(rivals) == 2
    assert chosen.family.item() == "communities"
    assert (rivals.icl > chosen.icl.item()).any()


def test_mixture_separates_touching_clusters(fixed_rng):
    """A small dense cluster at the edge of a large wide one: communities would split the large one."""
    X = np.concatenate([fixed_rng.normal(size=(400, 3)), [3, 0, 0] + 0.5 * fixed_rng.normal(size=(100, 3))])
    y = np.repeat([0, 1], [400, 100])

    model = ManifoldClustering(2, effort="fast", random_state=0).fit(X)

    table = pd.DataFrame(model.candidates_)
    assert table[table.chosen].family.item() == "LapGMM"
    assert clustering_accuracy(y, model.labels_) > 0.97


def row_fits(monkeypatch):
    """Return a list to which every fit of LapGMM on rows adds its maximum number of iterations."""
    limits, fit = [], module.LapGMM._fit_validated

    def watched(self, *args, **options):
        limits.append(self.max_iter)
        return fit(self, *args, **options)

    monkeypatch.setattr(module.LapGMM, "_fit_validated", watched)
    return limits


def test_mixtures_that_lose_are_not_fitted_to_rows(moons, monkeypatch):
    limits = row_fits(monkeypatch)
    model = ManifoldClustering(2, random_state=0).fit(moons[0])
    assert model.candidates_["family"].count("LapGMM") == 2
    assert limits == []


# ------------------------------------------------------------------------------------------------ after the fit


def test_rows_that_were_fitted_keep_their_memberships(blobs):
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])

    assert_allclose(model.predict_proba(blobs[0]), model.memberships_)
    assert_array_equal(model.predict(blobs[0]), model.labels_)


def test_new_points_take_the_mean_of_their_neighbours(blobs):
    X, new = blobs[0], np.array([[3.5, 0.1], [0.2, 3.4]])
    model = ManifoldClustering(3, random_state=0).fit(X)

    W = model._fit_recipe.link(new, X, model.graph_).toarray()

    assert (W > 0).sum(axis=1).tolist() == [9, 9]
    assert_allclose(model.predict_proba(new), W @ model.memberships_ / W.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("effort", "words"), [("fast", "adjusted Rand index"), ("default", "Other methods and views agree with it most")]
)
def test_report_gives_reason_stability_and_uncertain_rows(effort, words, blobs):
    model = ManifoldClustering(3, effort=effort, random_state=0).fit(blobs[0])

    report = model.report(n_uncertain=2)

    for part in ("3 clusters of 150 rows", "cut", "Uncertain", "communities"):
        assert part in report
    assert words in report.replace("\n", " ")
    two = np.sort(model.memberships_, axis=1)[:, -2:]
    closest = int(np.argmin(two[:, 1] - two[:, 0]))
    assert f"rows {closest} (" in report
    with pytest.raises(ValueError, match="n_uncertain must be an integer"):
        model.report(n_uncertain=-1)


def test_reports_can_be_printed_while_fitting(blobs, capsys):
    ManifoldClustering(3, random_state=0, verbose=True).fit(blobs[0])

    assert "3 clusters of 150 rows" in capsys.readouterr().out


def test_the_table_of_candidates_has_one_winner_and_every_criterion(blobs):
    table = pd.DataFrame(ManifoldClustering(3, random_state=0).fit(blobs[0]).candidates_)

    assert table.chosen.sum() == 1
    assert {"spectral", "communities", "LapGMM", "linkage", "k-means", "mixture"} == set(table.family)
    assert {"5 neighbours", "9 neighbours"} == set(table.graph)
    assert table[["cut", "modularity", "icl"]].notna().all(axis=None)
    assert (table.consensus.isna() == (table.family == "spectral")).all()


def test_cluster_function_equals_the_estimator(blobs):
    result = fiedler.cluster(blobs[0], n_clusters=3, random_state=0)

    assert clustering_accuracy(blobs[1], result.labels) == 1
    assert_array_equal(result.labels, result.memberships.argmax(axis=1))
    assert_array_equal(result.model.predict(blobs[0]), result.labels)
    assert_array_equal(ManifoldClustering(3, random_state=0).fit_predict(blobs[0]), result.labels)


# ------------------------------------------------------------------------------------------------ labels and pairs


def test_known_labels_are_kept_and_name_the_clusters(blobs):
    X, y = blobs
    names = np.array([2, 0, 1])[y]
    partial = np.full(150, -1)
    chosen = [np.flatnonzero(y == k)[0] for k in range(3)]
    partial[chosen] = names[chosen]

    model = ManifoldClustering(3, random_state=0).fit(X, partial)

    assert_array_equal(model.labels_, names)
    assert_array_equal(model.memberships_[chosen].max(axis=1), 1)


def test_complete_labels_are_ignored(blobs):
    X, y = blobs
    plain = ManifoldClustering(3, random_state=0).fit(X)

    assert_array_equal(ManifoldClustering(3, random_state=0).fit(X, (y + 1) % 3).labels_, plain.labels_)


def strip(rng, n=400):
    """An even strip, which can be cut in two anywhere."""
    return rng.uniform(size=(n, 2)) * [4, 1]


@pytest.mark.slow
def test_labels_determine_the_clusters_of_uniform_data():
    """The labels cut the strip lengthwise, where the graph alone never cuts it."""
    accuracies = []
    for seed in range(4):
        rng = np.random.RandomState(seed)
        X = strip(rng)
        y = (X[:, 1] > np.median(X[:, 1])).astype(int)
        partial = np.where(rng.uniform(size=len(y)) < 0.2, y, -1)
        models = [ManifoldClustering(2, random_state=0).fit(X, known) for known in (None, partial)]
        accuracies.append([clustering_accuracy(y, model.labels_) for model in models])

    plain, guided = np.mean(accuracies, axis=0)
    assert plain < 0.7
    assert guided > 0.9
    assert_array_equal(ManifoldClustering(2, random_state=0).fit_predict(X, partial), models[1].labels_)


def test_hard_must_links_share_their_memberships(blobs):
    pairs = PairwiseConstraints([(0, 1), (1, 2), (10, 90)], [], 150, hard=True)

    Q = ManifoldClustering(3, random_state=0).fit(blobs[0], constraints=pairs).memberships_

    assert_allclose(Q[0], Q[2])
    assert_allclose(Q[10], Q[90])


def test_pairs_change_the_partition(rng):
    X = strip(rng)
    right = X[:, 0] > np.quantile(X[:, 0], 0.7)
    first, second = rng.randint(400, size=(2, 600))
    same = right[first] == right[second]
    pairs = np.stack([first, second], axis=1)
    pairs, same = pairs[first != second], same[first != second]
    constraints = PairwiseConstraints(pairs[same], pairs[~same], 400)

    plain = ManifoldClustering(2, random_state=0).fit(X)
    steered = ManifoldClustering(2, random_state=0).fit(X, constraints=constraints)

    assert clustering_accuracy(right, steered.labels_) > max(0.95, clustering_accuracy(right, plain.labels_))
    assert pd.DataFrame(steered.candidates_).agreement.between(0, 1).all()
    assert "of the given labels and pairs" in steered.report()


def test_agreement_counts_labels_and_pairs():
    y = np.array([0, 0, 1, -1, -1])
    known = PartialSupervision.from_fit_arguments(y, PairwiseConstraints([(0, 1)], [(0, 4)], 5), 5)

    assert known.n_known == 5
    assert known.agreement(np.array([1, 1, 0, 0, 0])) == 1
    assert known.agreement(np.array([1, 0, 0, 0, 1])) == (2 + 0) / 5  # two labels right, both pairs broken
    assert_array_equal(known.numbering(np.array([1, 1, 0, 0, 2]), 3), [1, 0, 2])
    assert {tuple(pair) for pair in known.pairs.cannot_link} == {(0, 2), (1, 2), (0, 4)}


def test_contradicting_labels_and_pairs_raise(blobs):
    partial = np.full(150, -1)
    partial[:2] = [0, 1]

    with pytest.raises(ValueError, match="contradict"):
        ManifoldClustering(3).fit(blobs[0], partial, constraints=PairwiseConstraints([(0, 1)], [], 150))


# ---------------------------------------------------------------------------------------------- how many clusters


def test_number_of_clusters_is_estimated(blobs):
    model = ManifoldClustering(max_clusters=6, random_state=0).fit(blobs[0])

    assert model.n_clusters_ == 3
    assert clustering_accuracy(blobs[1], model.labels_) == 1
    evidence = model.evidence_
    assert evidence.candidates == [2, 3, 4, 5, 6]
    assert len(evidence.score) == len(evidence.stability) == len(evidence.modularity) == len(evidence.valley) == 5
    assert model.report().startswith("3 clusters, separated by gaps.")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("make", [ManifoldClustering, GaussianMixture, LapGMM])
def test_missing_labels_are_unknown(blobs, make, missing):
    y = [2, 0, 1] + [missing] * 147

    model = make(3, random_state=0).fit(blobs[0], y)

    assert model.labels_[:3].tolist() == [2, 0, 1]
    expected = make(3, random_state=0).fit(blobs[0], [2, 0, 1] + [-1] * 147)
    assert_array_equal(model.labels_, expected.labels_)
    for other in (np.array(y, dtype=object), pd.array(y, dtype="Int64")):
        assert_array_equal(make(3, random_state=0).fit(blobs[0], other).labels_, expected.labels_)


def test_targets_of_all_rows_are_ignored(blobs):
    """Pipelines and searches pass them, of any type."""
    X, plain = blobs[0], ManifoldClustering(3, random_state=0).fit(blobs[0])
    for y in (np.arange(150) % 3, np.linspace(-1, 1, 150), np.array(["a", "b", "nan"] * 50), np.array([True] * 150)):
        assert_array_equal(ManifoldClustering(3, random_state=0).fit(X, y).labels_, plain.labels_)


def test_known_labels_raise_the_number_of_clusters(blobs):
    partial = np.full(150, -1)
    partial[:5] = range(5)

    assert ManifoldClustering("auto", random_state=0).fit(blobs[0], partial).n_clusters_ >= 5
    with pytest.raises(InputError, match="require 5 clusters or more; leave out max_clusters=3, or allow as many"):
        ManifoldClustering("auto", max_clusters=3).fit(blobs[0], partial)
    with pytest.raises(InputError, match="sizes of clusters require 8 clusters or more; leave out max_clusters=3"):
        ManifoldClustering("auto", max_clusters=3, max_cluster_size=20).fit(blobs[0])


def test_one_known_class_does_not_exclude_one_cluster(fixed_rng):
    X, partial = fixed_rng.normal(size=(200, 2)), np.where(np.arange(200) == 0, 0, -1)

    model = ManifoldClustering(effort="fast", random_state=0).fit(X, partial)

    assert model.n_clusters_ == 1
    assert model.evidence_.by == "one cluster"


def test_a_report_after_an_update_does_not_begin_with_the_old_number(fixed_rng):
    model = ManifoldClustering(effort="fast", random_state=0).fit(fixed_rng.normal(size=(200, 2)))
    assert model.report().startswith("No clusters found")

    model.update(fixed_rng.normal(size=(30, 2)) + 50)

    assert model.n_clusters_ == 2
    assert "No clusters found" not in model.report()


def test_number_of_clusters_is_estimated_from_a_graph(blobs):
    graph = KNNGraph(9, connect="mst").build(blobs[0])
    model = ManifoldClustering("auto", max_clusters=5, random_state=0).fit(graph)

    assert model.n_clusters_ == 3


# -------------------------------------------------------------------------------------------- graphs, back ends, input


def test_recipe_built_graph_and_matrix_are_accepted(blobs):
    X, y = blobs
    graph = KNNGraph(8).build(X)
    for model in (
        ManifoldClustering(3, graph=KNNGraph(8), random_state=0).fit(X),
        ManifoldClustering(3, graph=graph, random_state=0).fit(X),
        ManifoldClustering(3, graph="precomputed", random_state=0).fit(graph.weights),
        ManifoldClustering(3, random_state=0).fit(graph),
    ):
        assert model.graph_.n_edges == graph.n_edges
        assert clustering_accuracy(y, model.labels_) == 1
        assert set(model.candidates_["graph"]) == {"the graph"}


def test_learned_graph(blobs):
    X, y = blobs
    pairs = PairwiseConstraints.from_labels(np.where(np.arange(150) % 10 == 0, y, -1))

    model = ManifoldClustering(3, graph=LearnedLaplacian(max_iter=5, random_state=0), random_state=0)

    assert clustering_accuracy(y, model.fit(X, constraints=pairs).labels_) == 1


def test_new_points_need_rows_and_a_recipe(blobs):
    graph = KNNGraph(8).build(blobs[0])
    with pytest.raises(ValueError, match="fitted on a graph, not on rows"):
        ManifoldClustering(3, random_state=0).fit(graph).predict(blobs[0])
    with pytest.raises(ValueError, match="new points need a recipe"):
        ManifoldClustering(3, graph=graph, random_state=0).fit(blobs[0]).predict(blobs[0])


def test_grid_search_over_graph_parameters(blobs):
    model = ManifoldClustering(3, random_state=0).set_params(graph__n_neighbors=7)
    assert (model.graph.n_neighbors, model.graph.weight, model.graph.connect) == (7, "local", "mst")

    def edges(model, X, y=None):
        return model.graph_.n_edges

    search = GridSearchCV(ManifoldClustering(3, random_state=0), {"graph__n_neighbors": [4, 9]}, scoring=edges, cv=2)
    assert search.fit(blobs[0]).best_params_ == {"graph__n_neighbors": 9}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_back_ends_agree(blobs, backend, dtype):
    X = blobs[0].astype(dtype)
    reference = ManifoldClustering(3, random_state=0).fit(X)

    model = ManifoldClustering(3, random_state=0).fit(backend(X))
    proba = model.predict_proba(backend(X[:9] + dtype(0.1)))

    assert type(proba) is type(backend(X))
    assert to_numpy(model.memberships_).dtype == to_numpy(proba).dtype == dtype
    assert adjusted_rand_index(model.labels_, reference.labels_) == 1
    order = [int(to_numpy(model.labels_)[reference.labels_ == k][0]) for k in range(3)]
    assert_allclose(to_numpy(proba)[:, order], reference.predict_proba(X[:9] + dtype(0.1)), atol=1e-4)


def test_sparse_and_dense_rows_agree(rng):
    X = np.repeat(4 * np.eye(30)[:3], 40, axis=0) + rng.normal(size=(120, 30))
    X = np.where(np.abs(X) > 0.5, X, 0)
    model = ManifoldClustering(3, effort="fast", random_state=0)
    dense, sparse = (clone(model).fit(make(X)) for make in (np.asarray, sp.csr_array))

    assert_allclose(sparse.memberships_, dense.memberships_, atol=1e-6)
    assert_allclose(sparse.predict_proba(sp.csr_array(X[:5] + 0.1)), dense.predict_proba(X[:5] + 0.1), atol=1e-6)


def test_same_seed_same_result_on_any_number_of_threads(moons):
    one, other = (ManifoldClustering(4, random_state=3, n_jobs=jobs).fit(moons[0]) for jobs in (1, 2))

    assert_array_equal(one.memberships_, other.memberships_)
    assert one.candidates_["cut"] == other.candidates_["cut"]


def test_the_order_of_the_rows_does_not_matter(blobs, rng):
    order = rng.permutation(150)
    original, permuted = (ManifoldClustering(3, random_state=0).fit(X) for X in (blobs[0], blobs[0][order]))

    assert adjusted_rand_index(original.labels_[order], permuted.labels_) == 1


def test_degenerate_data_can_be_clustered(rng):
    assert_array_equal(ManifoldClustering(1, random_state=0).fit(rng.normal(size=(20, 2))).memberships_, 1)
    assert sorted(ManifoldClustering(2, random_state=0).fit([[0.0], [1.0]]).labels_) == [0, 1]
    twice = np.repeat(np.repeat([[0.0, 0.0], [5.0, 5.0]], 5, axis=0) + rng.normal(size=(10, 2)), 2, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = ManifoldClustering(2, random_state=0).fit(twice).labels_
    assert adjusted_rand_index(labels, np.repeat([0, 1], 10)) == 1
    five = ManifoldClustering(5, random_state=0).fit(rng.normal(size=(5, 2)))
    assert sorted(five.labels_) == list(range(5))


@pytest.mark.parametrize(
    ("X", "options", "sentence"),
    [
        (np.zeros((0, 2)), {}, "minimum of 2 is required|0 sample"),
        (np.array([[0.0], [np.nan], [1.0]]), {}, "NaN"),
        (np.arange(3.0), {}, "2D array|two dimensions"),
        (np.ones((9, 2)), {}, "all rows of X are equal"),
        (np.ones((9, 2)), {"n_clusters": "auto"}, "all rows of X are equal"),
        (np.eye(3), {"n_clusters": 4}, "n_clusters=4 is more than the number of rows"),
        (np.eye(3), {"n_clusters": "many"}, "n_clusters must be an integer"),
        (np.eye(3), {"n_clusters": "auto", "max_clusters": 1}, "max_clusters must be an integer of at least 2"),
        (np.eye(3), {"n_clusters": 3, "max_clusters": 2}, "n_clusters=3 is more than max_clusters=2; leave out max_cl"),
        (np.eye(3), {"n_clusters": 2, "graph": "many"}, "graph='many' is not known"),
    ],
)
def test_bad_input_raises_one_sentence(X, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ManifoldClustering(**{"n_clusters": 2} | options).fit(X)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([5, -1, -1], "from 0 to 1"),
        ([-2, -1, 0], "y must contain 3 labels"),
        *(([*y], "y has 2 entries, but 3 are required") for y in ([0, -1], [0, 1], [0.5, 1.5], "ab")),
        (["a", None, "b"], "y has the class 'a' for a row, and others are unknown; number the classes from 0 on"),
        (["a", -1, "b"], "number the classes from 0 on"),
    ],
)
def test_bad_labels_raise_one_sentence(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        ManifoldClustering(2).fit(np.eye(3), y)


# ---------------------------------------------------------------------------------------------------------- real data


def test_digits():
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)

    model = ManifoldClustering(10, random_state=1).fit(X)

    assert clustering_accuracy(y, model.labels_) >= 0.90
    assert normalized_mutual_information(y, model.labels_) >= 0.89


@pytest.mark.slow
@pytest.mark.skipif("FIEDLER_DATA" not in os.environ, reason="FIEDLER_DATA is not set")
@pytest.mark.parametrize(("name", "ac", "nmi"), [("usps", 0.955, 0.895), ("coil20", 0.85, 0.91)])
def test_images(name, ac, nmi):
    data = load(name, normalize="unit")
    model = ManifoldClustering(len(np.unique(data.y)), random_state=0).fit(data.X.astype(np.float32))

    assert clustering_accuracy(data.y, model.labels_) >= ac
    assert normalized_mutual_information(data.y, model.labels_) >= nmi


def test_pickles_predict_the_same(blobs):
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])

    again = pickle.loads(pickle.dumps(model))

    assert_array_equal(again.predict_proba(blobs[0] + 0.1), model.predict_proba(blobs[0] + 0.1))
    assert again.report() == model.report()


def test_a_fit_that_fails_leaves_the_model_as_it_was(blobs):
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])
    expected = model.predict_proba(blobs[0][:9] + 0.1)

    with pytest.raises(ValueError, match="n_clusters=99 is more"):
        model.set_params(n_clusters=99).fit(blobs[0][:20])

    assert_array_equal(model.predict_proba(blobs[0][:9] + 0.1), expected)


def test_names_of_features_are_kept_with_every_graph(blobs):
    frame = pd.DataFrame(blobs[0], columns=["a", "b"])

    for graph in ("auto", KNNGraph(5, connect="mst")):
        assert list(ManifoldClustering(3, graph=graph, random_state=0).fit(frame).feature_names_in_) == ["a", "b"]


def test_threads_do_not_change_warning_filters(blobs):
    before = list(warnings.filters)

    ManifoldClustering(3, random_state=0, n_jobs=2).fit(np.repeat(blobs[0][:40], 3, axis=0))

    assert warnings.filters == before


@pytest.mark.filterwarnings("ignore:the graph has")
def test_signed_flag_without_negative_weights_changes_nothing(blobs):
    W = KNNGraph(8).build(blobs[0]).weights
    graphs = [AffinityGraph.from_matrix(W, signed=signed) for signed in (False, True)]
    unsigned, signed = (ManifoldClustering(3, random_state=0).fit(graph) for graph in graphs)

    assert_array_equal(unsigned.labels_, signed.labels_)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 12])
def test_number_of_clusters_is_estimated_from_few_rows(n, rng):
    model = ManifoldClustering("auto", random_state=0).fit(rng.normal(size=(n, 2)))

    assert 2 <= model.n_clusters_ <= n
    assert len(np.unique(model.labels_)) == model.n_clusters_


def test_hard_must_links_propagate_labels(blobs):
    partial = np.full(150, -1)
    partial[[0, 149]] = [0, 1]
    pairs = PairwiseConstraints([(0, 1), (0, 2)], [], 150, hard=True)

    model = ManifoldClustering(3, random_state=0).fit(blobs[0], partial, constraints=pairs)

    assert_array_equal(model.memberships_[:3], [[1, 0, 0]] * 3)
    partial[1] = 2
    with pytest.raises(ValueError, match="hard must-links keep together"):
        ManifoldClustering(3).fit(blobs[0], partial, constraints=pairs)


def test_every_cluster_keeps_a_row(rng):
    X = np.concatenate([rng.normal(size=(30, 2)), [[4.0, 0.0]]])

    for k in (2, 5, 15):
        assert len(np.unique(ManifoldClustering(k, random_state=0).fit(X).labels_)) == k


def test_graphs_without_edges_raise():
    with pytest.raises(ValueError, match="no edges"):
        ManifoldClustering(2).fit(AffinityGraph.from_matrix(np.zeros((4, 4))))


def test_equal_results_are_one_line_of_the_report(blobs):
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(blobs[0])
    table = pd.DataFrame(model.candidates_)
    communities = table[(table.family == "communities") & (table.graph == "5 neighbours")]

    lines = [line for line in model.report().splitlines() if "communities" in line and "5 neighbours  " in line]

    assert len(communities) > len(lines) == communities.cut.round(6).nunique()
    assert sum(line.endswith("<") for line in model.report().splitlines()) == 1


def test_clusters_of_outliers_alone_are_a_warning(fixed_rng):
    with pytest.warns(FiedlerWarning, match=r"only \d of the 3 clusters contain any rows") as caught:
        model = ManifoldClustering(3, outliers=0.8, random_state=0).fit(fixed_rng.normal(size=(40, 2)))

    (fields,) = [one.message.fields for one in caught if one.message.code == "empty_clusters"]
    assert fields["n_found"] == len(np.unique(model.labels_[model.labels_ >= 0])) < 3


def test_cluster_returns_data_frames_where_scikit_learn_is_told_to():
    """A series and a data frame with the index of a frame, of pandas or polars; the model keeps arrays."""
    pl = pytest.importorskip("polars")
    kind = np.arange(60) % 2
    columns = {"x": 5.0 * kind + np.arange(60) / 60, "plan": np.where(kind, "pro", "basic").tolist()}
    frame = pd.DataFrame(columns, index=[f"C{i}" for i in range(60)])
    expected = fiedler.cluster(frame, 2, effort="fast", random_state=0)

    with sklearn.config_context(transform_output="pandas"):
        labels, memberships, model = fiedler.cluster(frame, 2, effort="fast", random_state=0)
        of_rows = fiedler.cluster(kind[:, None] + np.arange(60)[:, None] / 99, 2, effort="fast", random_state=0)
    with sklearn.config_context(transform_output="polars"):
        of_polars = fiedler.cluster(pl.DataFrame(columns), 2, effort="fast", random_state=0)

    assert isinstance(expected.labels, np.ndarray)
    pd.testing.assert_series_equal(labels, pd.Series(expected.labels, frame.index, name="cluster"))
    names = ["cluster_0", "cluster_1"]
    pd.testing.assert_frame_equal(memberships, pd.DataFrame(expected.memberships, frame.index, names))
    assert isinstance(model.labels_, np.ndarray)
    assert list(of_rows.labels.index) == list(range(60))
    assert of_polars.labels.to_list() == expected.labels.tolist()
    assert of_polars.memberships.columns == names
    assert_allclose(of_polars.memberships.to_numpy(), expected.memberships)


def test_data_frames_of_memberships_survive_files(tmp_path):
    X, _ = two_moons(n_samples=200, noise=0.05, random_state=0)
    frame = pd.DataFrame(X, columns=["x", "y"])
    model = ManifoldClustering(2, effort="fast", random_state=0).set_output(transform="pandas").fit(frame)
    fiedler.save(model, tmp_path / "model.safetensors")

    again = fiedler.load(tmp_path / "model.safetensors").transform(frame)

    pd.testing.assert_frame_equal(again, model.transform(frame))
    assert list(again.columns) == ["manifoldclustering0", "manifoldclustering1"]
