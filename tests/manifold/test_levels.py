"""Levels: a nested tree of clusters, the p-value of every split, and the model at another level."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import fiedler
from fiedler import AffinityGraph, KNNGraph, ManifoldClustering
from fiedler.errors import FiedlerWarning, InputError
from fiedler.graph.borders import Split, strong_links
from fiedler.manifold.levels import (
    FINEST_FACTOR,
    MIN_FINEST,
    LevelTree,
    bridge_lengths,
    build_tree,
    find_splits,
    merge_cells,
)
from fiedler.manifold.state import FittedLevel, FittedState
from fiedler.metrics import adjusted_rand_index


def groups_of_groups(n_rows=60, far=12.0, near=5.0, seed=0):
    """Return rows in three groups of three round clusters each, and their clusters."""
    rng, d = np.random.RandomState(seed), 4
    centers = [
        far * top + near * own
        for top in np.linalg.qr(rng.randn(d, d))[0][:3]
        for own in np.linalg.qr(rng.randn(d, d))[0][:3]
    ]
    X = np.concatenate([center + rng.randn(n_rows, d) for center in centers])
    return X, np.repeat(np.arange(9), n_rows)


def fit(X, n_clusters, **options):
    return ManifoldClustering(n_clusters, effort="fast", random_state=0, **options).fit(X)


@pytest.fixture(scope="module")
def nested():
    X, y = groups_of_groups()
    return X, y, fit(X, 5)


@pytest.fixture(scope="module")
def overlapping():
    """Clusters that touch, so that walks cross their borders."""
    rng = np.random.RandomState(1)
    X = np.concatenate([rng.randn(80, 3) + center for center in 2.2 * np.eye(3)])
    return X, fit(X, 3)


# ------------------------------------------------------------------------------------------------------------ the tree


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 9, "auto"])
@pytest.mark.parametrize(("far", "near"), [(12.0, 5.0), (40.0, 15.0)])  # groups that touch, and with wide gaps
def test_true_levels_are_there_whatever_number_was_fitted(n_clusters, far, near):
    X, y = groups_of_groups(far=far, near=near)

    model = fit(X, n_clusters)

    assert adjusted_rand_index(y // 3, model.at(3).labels_) == 1
    assert adjusted_rand_index(y, model.at(9).labels_) > 0.95


def test_every_cluster_is_inside_one_of_the_coarser_level(overlapping):
    _, model = overlapping
    finest = model.levels_["n_clusters"][-1]

    partitions = [model.at(k).labels_ for k in range(1, finest + 1)]

    for k, (coarse, fine) in enumerate(pairwise(partitions), start=2):
        assert len(np.unique(fine)) == k
        assert len(np.unique(np.stack([fine, coarse]), axis=1).T) == k  # one parent each


def test_table_names_the_split_of_every_level(overlapping):
    _, model = overlapping

    levels = model.levels_

    for k, split, into in zip(levels["n_clusters"], levels["split"], levels["into"]):
        coarse, fine = model.at(k - 1).labels_, model.at(k).labels_
        assert_array_equal(coarse == split, np.isin(fine, into))
        assert len(set(into)) == 2
    assert levels["n_clusters"] == list(range(2, max(FINEST_FACTOR * 3, MIN_FINEST) + 1))
    assert {len(column) for column in levels.values()} == {len(levels["n_clusters"])}


def test_fitted_level_is_the_model_and_stays_as_it_was(overlapping):
    X, model = overlapping
    labels, memberships = model.labels_.copy(), model.memberships_.copy()

    same, finer = model.at(3), model.at(6)

    assert_array_equal(same.labels_, labels)
    assert_array_equal(same.memberships_, memberships)
    assert_array_equal(finer.at(3).memberships_, memberships)  # and back again
    assert_array_equal(finer.at(3).predict(X), model.predict(X))
    assert_array_equal(model.labels_, labels)
    assert (model.n_clusters_, finer.n_clusters_) == (3, 6)
    assert finer.levels_ == model.levels_


def test_clusters_are_numbered_by_their_first_rows(nested):
    _, _, model = nested
    for k in (2, 3, 8, 12):
        labels = model.at(k).labels_
        assert_array_equal(labels[np.sort(np.unique(labels, return_index=True)[1])], np.arange(k))


def test_first_splits_are_not_of_single_rows(fixed_rng):
    X = np.concatenate([fixed_rng.normal(size=(300, 2)), [[9, 9], [-9, 9], [9, -9]]])

    model = fit(X, 1)

    for k in range(2, model.levels_["n_clusters"][-1] + 1):
        assert np.bincount(model.at(k).labels_).min() >= 4


def test_groups_are_merged_by_their_average_weight():
    """Three pairs of cells: of the three, the two with more weight for their volumes are merged first."""
    weights = np.zeros((24, 24))
    for start in range(0, 24, 8):
        weights[start : start + 8, start : start + 8] = 1.0
    weights[0, 8] = weights[8, 0] = 0.5
    weights[9, 16] = weights[16, 9] = 0.6
    np.fill_diagonal(weights, 0)
    graph = AffinityGraph.from_matrix(weights)

    lengths = bridge_lengths(graph.weights, None, None)
    groups, levels = merge_cells(graph, lengths, np.repeat(np.arange(3), 8), np.ones(24, dtype=bool), 3)

    assert_array_equal(levels[2][groups], np.repeat(np.arange(3), 8))
    first, second, third = levels[1][groups][[0, 8, 16]]
    assert second == third != first


def test_an_empty_cluster_is_merged_first(overlapping):
    _, model = overlapping
    labels, Q = np.where(model.labels_ == 1, 0, model.labels_), model.memberships_[:, [0, 0, 2]] * [1, 0, 1]
    base = FittedLevel(labels, Q / Q.sum(axis=1, keepdims=True))

    tree = build_tree(model.graph_, base, FittedState())

    assert tree.fitted == 3
    assert_array_equal(tree.level(3).labels, labels)  # cluster 1 has no rows
    assert_array_equal(tree.level(2).labels, np.unique(labels, return_inverse=True)[1])


def test_components_of_a_graph_are_merged_last():
    blocks = [np.ones((size, size)) - np.eye(size) for size in (20, 20, 20)]
    joined = sp.block_diag(blocks[:2]).toarray()
    joined[3, 33] = joined[33, 3] = 0.1
    graph = AffinityGraph.from_matrix(sp.csr_array(sp.block_diag([joined, blocks[2]])))

    with pytest.warns(FiedlerWarning, match="2 connected components"):
        model = ManifoldClustering(3, random_state=0).fit(graph)

    assert_array_equal(model.at(2).labels_, np.repeat([0, 0, 1], 20))


# --------------------------------------------------------------------------------------------------------- memberships


def test_memberships_add_up_to_those_of_the_coarser_levels(overlapping):
    _, model = overlapping
    for coarse, fine in [(1, 2), (2, 3), (3, 4), (3, 9), (5, 12)]:
        parents, parts = model.at(coarse), model.at(fine)
        parent_of = np.array([parents.labels_[parts.labels_ == part][0] for part in range(fine)])
        sums = np.stack([parts.memberships_[:, parent_of == k].sum(axis=1) for k in range(coarse)], axis=1)
        assert_allclose(sums, parents.memberships_, atol=1e-12)
        assert_allclose(parts.memberships_.sum(axis=1), 1)


def test_prediction_of_training_rows_are_their_labels(overlapping):
    X, model = overlapping
    assert_array_equal(model.predict(X), model.labels_)
    for k in (2, 4, 7, 12):
        level = model.at(k)
        assert_array_equal(level.predict(X), level.labels_)
        assert_allclose(level.predict_proba(X), level.memberships_, atol=1e-12)


def test_predictions_of_new_points_are_nested(overlapping, fixed_rng):
    _, model = overlapping
    X_new = 2 * fixed_rng.normal(size=(200, 3))

    predicted = [model.at(k).predict(X_new) for k in range(1, 13)]

    assert_array_equal(predicted[2], model.predict(X_new))
    for k in range(1, 12):  # as the labels are
        parents = {part: model.at(k).labels_[model.at(k + 1).labels_ == part][0] for part in range(k + 1)}
        assert_array_equal([parents[part] for part in predicted[k]], predicted[k - 1])


# ------------------------------------------------------------------------------------------------------------ p-values


def test_p_value_is_the_normal_tail():
    assert Split(1.0, 5, 5).p_value == 0.5
    assert_allclose(Split(0.4, 8, 20).p_value, norm.sf(2 * (np.sqrt(20.5) - np.sqrt(8.5))))


def test_links_and_cuts_of_splits_by_brute_force():
    """Two chains of five cells each, joined by few links: count the links, and try all cuts through the ends."""
    rng, n = np.random.RandomState(0), 40
    W = np.zeros((n, n))
    for start in (0, 20):
        for i in range(start, start + 20):
            for j in range(i + 1, min(i + 4, start + 20)):
                W[i, j] = W[j, i] = rng.uniform(0.8, 1)
    W[19, 20] = W[20, 19] = 0.9
    graph = AffinityGraph.from_matrix(W)
    labels = np.repeat([0, 1], 20)
    tree = LevelTree(labels, np.eye(2)[labels], np.array([[0, 0], [0, 1]]), 2)

    (split,) = find_splits(graph, tree, None)

    links = strong_links(sp.csr_array(W)).toarray()
    assert split.links == links[:20, 20:].sum() == 1
    cuts = [links[a : a + i, a + i : a + 20].sum() for a in (0, 20) for i in range(4, 17)]  # of a chain, between
    assert split.cut == min(cuts) == 6
    assert split.p_value == Split(0.0, 1, 6).p_value


def test_separated_groups_have_tiny_p_values_at_all_true_levels(nested):
    _, _, model = nested

    p_values = model.levels_["p_value"]

    assert max(p_values[:8]) < 1e-4  # of 2 to 9 clusters; the first parts are themselves groups of groups
    assert min(p_values[8:]) > 0.05


def test_a_single_cloud_has_no_small_p_value():
    p_values = []
    for seed in range(20):
        X = np.random.RandomState(seed).randn(150, 2 + seed % 3)
        p_values.append(fit(X, 2).levels_["p_value"][0])
    assert np.mean(np.array(p_values) > 0.05) >= 0.95


def test_one_cluster_can_be_split(fixed_rng):
    model = fit(fixed_rng.normal(size=(200, 2)), 1)
    assert len(np.unique(model.at(4).labels_)) == 4
    assert model.levels_["p_value"][0] > 0.05


def test_stability_is_that_of_the_numbers_compared():
    X, _ = groups_of_groups()

    model = fit(X, "auto")
    levels, evidence = model.levels_, model.evidence_

    known = dict(zip(evidence.candidates, evidence.stability))
    expected = [known.get(k, np.nan) for k in levels["n_clusters"]]
    assert_array_equal(levels["stability"], expected)
    persistent = [k for k, is_persistent in zip(levels["n_clusters"], levels["persistent"]) if is_persistent]
    assert persistent == [k for k, _ in evidence.levels]
    assert {3, 9} & set(persistent)


# ------------------------------------------------------------------------------------------------------- kinds of fits


def check_levels(model, X=None, finest=6):
    """Check labels, memberships and, with rows, predictions at a coarser and at a finer level."""
    fitted = model.labels_
    for k in (max(1, model.n_clusters_ - 1), finest):
        level = model.at(k)
        inside = fitted >= 0
        assert_array_equal(level.labels_ < 0, ~inside)
        assert set(level.labels_[inside]) == set(range(k))
        pairs = np.unique(np.stack([level.labels_, fitted])[:, inside], axis=1)
        assert pairs.shape[1] == max(k, model.n_clusters_)  # nested
        assert level.memberships_.shape == (len(fitted), k)
        assert_allclose(level.memberships_.sum(axis=1), 1, rtol=1e-5)
        if X is not None:
            assert_array_equal(level.predict(X)[inside], level.labels_[inside])
        assert str(k) in level.report()


def test_outliers_stay_outliers(nested):
    X, *_ = nested
    model = fit(X, 3, outliers=0.1)
    assert (model.labels_ < 0).sum() == 54
    check_levels(model, X, 9)


def test_equal_rows_are_in_one_cluster():
    X, _ = groups_of_groups(30)
    X = np.concatenate([X, X[:50], X[:50]])
    model = fit(X, 4)
    check_levels(model, X)
    labels = model.at(9).labels_
    assert_array_equal(labels[:50], labels[-50:])


def test_weights_of_rows(nested):
    X, *_ = nested
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(X, sample_weight=1 + np.arange(len(X)) % 3)
    check_levels(model, X, 9)


def test_given_graphs(nested):
    X, y, _ = nested
    graph = KNNGraph(9, connect="mst").build(X)
    for model in (
        ManifoldClustering(3, random_state=0).fit(graph),
        ManifoldClustering(3, graph="precomputed", random_state=0).fit(graph.weights),
    ):
        check_levels(model, finest=9)
        assert adjusted_rand_index(y, model.at(9).labels_) > 0.95


def test_recipes_sparse_rows_views_and_labels(nested):
    X, y, _ = nested
    with pytest.warns(FiedlerWarning, match="connected components"):
        check_levels(fit(X, 3, graph=KNNGraph(7)), X)
    check_levels(fit(sp.csr_array(X), 3), sp.csr_array(X))
    check_levels(ManifoldClustering(3, random_state=0).fit(X * [1, 1, 1, 50]), X * [1, 1, 1, 50])
    known = np.where(np.arange(len(X)) % 10 == 0, y // 3, -1)
    guided = ManifoldClustering(3, effort="fast", random_state=0).fit(X, known)
    check_levels(guided, X)
    check_levels(fit(X, 3, min_cluster_size=100))


def test_tables_are_described_at_other_levels():
    pandas = pytest.importorskip("pandas")
    X, y = groups_of_groups(30)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["u", "v", "w"])[y // 3])
    model = fit(frame, 3)
    finer = model.at(6)
    assert len(finer.explain().clusters) == 6
    assert str(finer.at(3).explain()) == str(model.explain())


def test_few_rows():
    model = fit(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), 2)
    assert model.levels_["n_clusters"] == [2]
    assert_array_equal(model.at(1).labels_, np.zeros(6))
    with pytest.raises(InputError, match="there is no level of 3 clusters; the model has levels of 1 to 2 clusters"):
        model.at(3)


@pytest.mark.parametrize("number", [0, -1, 2.5, "3", True, 10_000])
def test_bad_numbers_raise_one_sentence(nested, number):
    _, _, model = nested
    with pytest.raises(InputError, match=r"n_clusters must be|levels of 1 to 20 clusters"):
        model.at(number)


def test_levels_need_a_fit():
    assert not hasattr(ManifoldClustering(), "levels_")


def test_a_model_at_another_level_takes_no_update(nested):
    X, *_, model = nested
    with pytest.raises(InputError, match="is at another level than that of its fit"):
        model.at(3).update(X[:5])


def test_update_changes_the_levels():
    X, y = groups_of_groups()
    model = fit(X[y < 8], 3)
    before = model.levels_
    model.update(X[y == 8])
    assert model.levels_ != before
    check_levels(model, X[np.concatenate([np.flatnonzero(y < 8), np.flatnonzero(y == 8)])], 9)


def test_levels_are_the_same_from_files(nested, tmp_path):
    X, _, model = nested
    fiedler.save(model, tmp_path / "model.safetensors")
    fiedler.save(model.at(9), tmp_path / "finer.safetensors")

    loaded, finer = (fiedler.load(tmp_path / f"{name}.safetensors") for name in ("model", "finer"))

    assert loaded.levels_ == finer.levels_ == model.levels_
    assert_array_equal(loaded.at(9).labels_, model.at(9).labels_)
    assert_array_equal(finer.labels_, model.at(9).labels_)
    assert_array_equal(finer.predict(X), model.at(9).predict(X))
    assert_array_equal(finer.at(5).memberships_, model.memberships_)


def test_blocks_have_no_levels():
    array = pytest.importorskip("dask.array")
    X, _ = groups_of_groups(100)
    model = ManifoldClustering(3, random_state=0).fit(array.from_array(X, chunks=(300, 4)))
    assert model.levels_ is None
    with pytest.raises(InputError, match="a model that was fitted in blocks has no levels"):
        model.at(2)
