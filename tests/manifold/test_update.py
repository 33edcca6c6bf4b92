"""Rows added to a fitted model: what joins, what moves, what is new, and whether the rows have changed."""

import copy
import functools
import os

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import fiedler
from fiedler import AffinityGraph, KNNGraph, ManifoldClustering
from fiedler.datasets import blobs, two_moons
from fiedler.errors import InputError
from fiedler.manifold import Drift
from fiedler.manifold.memberships import PartialSupervision, walk_memberships
from fiedler.manifold.update import (
    change_by_chance,
    equal_rows,
    find_new_clusters,
    moved_shares,
    shares_behind,
    walk_until_settled,
)
from fiedler.metrics import adjusted_rand_index


@pytest.fixture(scope="module")
def digits():
    """All rows of the digits in random order, with noise so that no two distances are equal."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    order = rng.permutation(len(X))
    return X[order] + rng.normal(scale=0.01, size=X.shape), y[order]


@functools.cache
def _fitted(n_clusters, options, rows, shape, dtype):
    X = np.frombuffer(rows, dtype).reshape(shape)
    return ManifoldClustering(n_clusters, random_state=0, **dict(options)).fit(X)


def fit(X, n_clusters, **options):
    """Fit a model, once for equal rows: updates change a copy."""
    if not isinstance(X, np.ndarray):
        return ManifoldClustering(n_clusters, random_state=0, **options).fit(X)
    return copy.deepcopy(_fitted(n_clusters, tuple(options.items()), X.tobytes(), X.shape, X.dtype.str))


def state_of(model):
    return {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in vars(model).items()}


# -------------------------------------------------------------------------------------------------------------- limits


def test_the_walk_starts_from_the_shares_behind_memberships(uneven_graph, rng):
    """S = (Q - γPQ) / (1-γ) inverts Q = (1-γ) (I - γP)⁻¹ S."""
    labels = rng.randint(3, size=uneven_graph.n_nodes)
    votes = rng.dirichlet(np.ones(3), size=len(labels))
    nothing = PartialSupervision(None, None, None)
    Q = walk_memberships(labels, 3, uneven_graph, nothing, votes, votes=votes, consensus=0.6)

    linked = uneven_graph.degrees > 0
    expected = 0.6 * np.eye(3)[labels] + 0.4 * votes
    assert_allclose(shares_behind(Q, uneven_graph)[linked], expected[linked], atol=1e-4)


def test_on_the_same_graph_no_row_moves(digits):
    model = fit(digits[0][:600], 10)
    Q, labels = model.memberships_, model.memberships_.argmax(axis=1)

    again, settled = walk_until_settled(shares_behind(Q, model.graph_), labels, labels, model.graph_, Q)

    assert_array_equal(settled, labels)
    assert_allclose(again, Q, atol=1e-4)


def test_a_moved_row_gives_its_largest_share_to_its_new_cluster():
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])

    assert_allclose(moved_shares(shares, np.array([0, 1]), np.array([2, 1])), [[0.1, 0.2, 0.7], [0.1, 0.6, 0.3]])


@pytest.mark.slow
def test_copies_of_rows_change_no_old_label(digits):
    model = fit(digits[0], 10)
    before = model.labels_.copy()

    result = model.update(digits[0][::10])

    assert_array_equal(model.labels_[: len(before)], before)
    assert_array_equal(result.labels, before[::10])
    assert (len(result.moved), result.new_clusters, result.drift.far_share) == (0, [], pytest.approx(0.01, abs=0.015))


@pytest.mark.slow
def test_two_updates_are_about_one(digits):
    X = digits[0]
    once, twice = fit(X[:1400], 10), fit(X[:1400], 10)

    once.update(X[1400:])
    twice.update(X[1400:1600])
    twice.update(X[1600:])

    assert_allclose(once.graph_.weights.toarray(), twice.graph_.weights.toarray(), atol=1e-9)
    assert adjusted_rand_index(once.labels_, twice.labels_) > 0.98


# ------------------------------------------------------------------------------------------------------- the new model


def test_an_updated_model_is_that_of_all_rows(digits):
    X = digits[0]
    model = fit(X[:1400], 10, effort="fast")
    model.update(X[1400:])
    fresh = fit(X, 10, effort="fast")

    for name in ("labels_", "memberships_", "outlier_score_"):
        assert getattr(model, name).shape == getattr(fresh, name).shape
    assert_allclose(model.graph_.weights.toarray(), fresh.graph_.weights.toarray(), atol=1e-9)
    assert_allclose(model.outlier_score_, fresh.outlier_score_, atol=1e-6)
    assert_allclose(model.memberships_.sum(axis=1), 1)
    assert_array_equal(model.labels_, model.memberships_.argmax(axis=1))
    assert_array_equal(model.predict(X[1400:]), model.labels_[1400:])  # the new rows are known
    assert adjusted_rand_index(model.labels_, fresh.labels_) > 0.9
    assert "1,797 rows" in model.report()


def test_moved_rows_are_listed_with_both_clusters():
    """A new group beside an old one draws rows at its boundary."""
    rng = np.random.RandomState(2)
    near = lambda n, x, width: np.stack([rng.normal(x, width, n), rng.normal(0, 0.3, n)], axis=1)  # noqa: E731
    model = fit(np.concatenate([near(150, 0, 0.3), near(150, 3, 0.3), near(20, 2, 0.1)]), 2, effort="fast")
    before = model.labels_.copy()

    result = model.update(near(200, 1, 0.3))

    after = model.labels_[:320]
    assert len(result.moved) > 0
    assert_array_equal(result.moved, np.flatnonzero(before != after))
    assert_array_equal(result.moved_from, before[result.moved])
    assert_array_equal(result.moved_to, after[result.moved])


def test_updated_models_can_be_saved(digits, tmp_path):
    model = fit(digits[0][:600], 10)
    model.update(digits[0][600:700])
    fiedler.save(model, tmp_path / "model.safetensors")

    loaded = fiedler.load(tmp_path / "model.safetensors")

    assert_array_equal(loaded.labels_, model.labels_)
    assert_array_equal(loaded.update(digits[0][700:800]).labels, model.update(digits[0][700:800]).labels)


def test_the_same_share_of_rows_are_outliers(digits):
    model = fit(digits[0][:600], 10, outliers=0.05)
    result = model.update(digits[0][600:800])

    assert (model.labels_ == -1).sum() == 40
    assert_array_equal(result.labels, model.labels_[600:])


def test_a_table_is_encoded_as_in_the_fit():
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    kind = np.arange(300) % 2
    table = pd.DataFrame(
        {
            "amount": np.exp(rng.normal(1 + 3 * kind, 0.3)),
            "plan": np.where(kind == 1, "pro", "basic"),
            "age": 30 + 20 * kind + rng.normal(size=300),
        }
    )
    model = fit(table[:200], 2)
    labels = model.update(table[200:]).labels

    assert adjusted_rand_index(labels, kind[200:]) == 1
    assert len(model.labels_) == 300


def test_sparse_rows_of_documents_are_added():
    rng = np.random.RandomState(0)
    topic = np.arange(240) % 3
    counts = rng.poisson(0.3, size=(240, 60)) + rng.poisson(3.0, size=(240, 60)) * (
        np.arange(60) // 20 == topic[:, None]
    )
    X = sp.csr_array(counts / np.linalg.norm(counts, axis=1, keepdims=True))
    model = fit(X[:200], 3)

    assert adjusted_rand_index(model.update(X[200:]).labels, topic[200:]) == 1


# ------------------------------------------------------------------------------------------------------- new clusters


def test_a_far_group_becomes_a_cluster_with_the_next_number():
    X, y = blobs(400, n_features=4, n_clusters=4, random_state=3)
    model = fit(X[y < 3], 3)
    before = model.labels_.copy()

    result = model.update(X[y == 3])

    assert result.new_clusters == [3]
    assert set(result.labels) == {3}
    assert_array_equal(model.labels_[: len(before)], before)
    assert (model.n_clusters_, model.memberships_.shape[1]) == (4, 4)
    assert result.drift.is_large


@pytest.mark.slow
def test_a_class_that_was_unknown_becomes_a_cluster(digits):
    X, y = digits
    model = fit(X[y != 0], 9)

    result = model.update(X[y == 0])

    assert result.new_clusters == [9]
    assert (result.labels == 9).mean() > 0.95


def test_rows_of_known_clusters_make_no_new_one(digits):
    model = fit(digits[0][:900], 10)

    assert model.update(digits[0][900:]).new_clusters == []


def test_few_far_rows_are_no_cluster():
    X, _ = two_moons(n_samples=300, noise=0.05, random_state=0)
    model = fit(X, 2)

    result = model.update(np.array([50.0, 50.0]) + np.random.RandomState(0).normal(size=(9, 2)))

    assert result.new_clusters == []
    assert result.drift.far_share == 1


def test_a_new_cluster_has_few_edges_to_the_rest():
    """Two cliques of new nodes: one has a thin edge to the old nodes, the other as much weight to them as inside."""
    n_old, size = 6, 5
    W = np.zeros((n_old + 2 * size, n_old + 2 * size))
    for nodes in (range(n_old), range(n_old, n_old + size), range(n_old + size, n_old + 2 * size)):
        W[np.ix_(nodes, nodes)] = 1
    W[n_old, 0] = W[0, n_old] = 0.1
    W[n_old + size :, 0] = W[0, n_old + size :] = 1.0
    np.fill_diagonal(W, 0)
    graph = AffinityGraph.from_matrix(W)

    (found,) = find_new_clusters(graph, n_old, min_size=5)

    assert_array_equal(found, np.arange(n_old, n_old + size))
    assert find_new_clusters(graph, n_old, min_size=6) == []


# ---------------------------------------------------------------------------------------------------- replaced rows


def test_a_model_with_replaced_rows_is_that_of_the_new_values(digits):
    """Rows are replaced, by new values in a random order, and added: the graph is that of a fit on the result."""
    X = digits[0][:900]
    numbers = np.random.RandomState(1).permutation(600)[:100]
    model = fit(X[:600], 10, effort="fast")
    before = model.labels_.copy()

    result = model.update(X[600:], replaces=np.concatenate([numbers, np.full(200, -1)]))

    changed = np.concatenate([X[:600], X[700:]])
    changed[numbers] = X[600:700]
    fresh = fit(changed, 10, effort="fast")
    assert_array_equal(model._rows_of_fit(), changed)
    assert_allclose(model.graph_.weights.toarray(), fresh.graph_.weights.toarray(), atol=1e-9)
    assert_allclose(model.outlier_score_, fresh.outlier_score_, atol=1e-6)
    assert adjusted_rand_index(model.labels_, fresh.labels_) > 0.9
    assert_array_equal(result.labels, model.labels_[np.concatenate([numbers, np.arange(600, 800)])])
    assert_array_equal(result.replaced, np.sort(numbers))
    assert_array_equal(result.moved, np.flatnonzero(model.labels_[:600] != before))
    assert np.isin(result.moved, numbers).mean() > 0.5
    assert "200 rows were added to 600, of which 100 were replaced" in str(result)
    assert_array_equal(model.predict(changed), model.labels_)


def test_rows_replaced_by_themselves_change_nothing(digits):
    X = digits[0][:600]
    model = fit(X, 10)
    before = copy.deepcopy(model)

    result = model.update(X, replaces=np.arange(600))

    assert_array_equal(model.labels_, before.labels_)
    assert_allclose(model.memberships_, before.memberships_, atol=1e-4)
    assert_allclose(model.graph_.weights.toarray(), before.graph_.weights.toarray(), atol=1e-9)
    assert str(result).startswith("600 of 600 rows were replaced\nrows that moved to another cluster: 0\n")


def test_a_cluster_that_loses_all_rows_is_named():
    """Its number stays, and rows near its old place are a new cluster later."""
    y = np.arange(120) % 2
    X = 9.0 * y[:, None] + np.random.RandomState(0).normal(size=(120, 2))
    model = fit(X, 2, effort="fast")

    result = model.update(X[y == 0] + 0.01, replaces=np.flatnonzero(y == 1))

    assert result.empty_clusters == [1]
    assert "clusters without rows: 1\n" in str(result)
    assert set(model.labels_) == {0}
    assert model.update(X[y == 1]).new_clusters == [2]


def test_copies_of_rows_can_be_replaced(with_copies):
    """One of two copies is replaced by a row of its own, a row by a copy of another one, and both copies by one row."""
    X, X_new = with_copies
    model = fit(X, 10, effort="fast")
    X_new = np.concatenate([X_new[:1], X[1:2], X_new[1:2], X_new[1:2]])

    model.update(X_new, replaces=[600, 2, 3, 601])

    changed = X.copy()
    changed[[600, 2, 3, 601]] = X_new
    fresh = fit(changed, 10, effort="fast")
    order = fresh._state.copies.nodes[model._state.copies.first]
    assert_array_equal(order[model._state.copies.nodes], fresh._state.copies.nodes)
    assert_allclose(model._state.weights, fresh._state.weights[order])
    in_order = fresh._state.graph.reorder(order)
    assert_allclose(model._state.graph.weights.toarray(), in_order.weights.toarray(), atol=1e-9)
    assert len(model.labels_) == len(X)


@pytest.mark.parametrize("make_rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_equal_rows_are_recognised(digits, make_rows):
    X = digits[0][:300] * (digits[0][:300] > 1)
    model, changed = fit(make_rows(X), 5, effort="fast"), X[:20].copy()
    changed[3, 20] += 0.5

    found = equal_rows(model, make_rows(changed), np.arange(20))

    assert_array_equal(np.flatnonzero(~found), [3])


@pytest.mark.parametrize(
    ("replaces", "message"),
    [
        ([0, 1], "replaces must be 3 numbers of old rows, 0 to 299, or -1 for new rows that are added"),
        ([0, 1, 300], "replaces must be 3 numbers"),
        ([0.0, 1.0, 2.0], "replaces must be 3 numbers"),
        ([[0], [1, 2], 3], "replaces must be 3 numbers"),
        ([0, -1, 0], "replaces has the row 0 more than once"),
    ],
)
def test_rows_that_cannot_be_replaced(digits, replaces, message):
    model = fit(digits[0][:300], 10)

    with pytest.raises(InputError, match=message):
        model.update(digits[0][300:303], replaces=replaces)


def test_enough_different_rows_must_be_left(digits):
    model = fit(digits[0][:20], 2)

    with pytest.raises(InputError, match="only 1 different rows would be left"):
        model.update(np.repeat(digits[0][:1], 20, axis=0), replaces=np.arange(20))


# --------------------------------------------------------------------------------------------------------------- drift


def test_rows_of_the_same_kind_have_no_drift(digits):
    drift = fit(digits[0][:1300], 10).update(digits[0][1300:]).drift

    assert not drift.is_large
    assert drift.distance_ratio == pytest.approx(1, abs=0.05)
    assert str(drift).startswith("none: the new rows are as near to the old ones as these to each other")


def test_shifted_rows_and_shifted_shares_are_drift(digits):
    X, y = digits
    wider, other_shares = fit(X[:1300], 10), fit(X[:1300], 10)
    rng = np.random.RandomState(0)

    far = wider.update(X[1300:] + rng.normal(scale=6, size=X[1300:].shape)).drift
    shifted = other_shares.update(X[1300:][y[1300:] < 3]).drift

    assert far.distance_ratio > 1.3
    assert "clear: 497 of the 497 new rows lie farther out than 99 % of the old ones" in str(far)
    assert "consider a new fit" in str(far)
    assert shifted.share_change > 0.5
    assert shifted.is_large
    assert str(shifted).startswith("only in the shares of the clusters: cluster ")
    assert str(shifted).endswith("as near to the old ones as these to each other, so that is no reason for a new fit")


@pytest.mark.parametrize("n_new", [1, 5, 20, 100])
def test_rows_of_the_same_kind_are_rarely_called_different(n_new):
    rng, shares = np.random.RandomState(1), np.array([0.5, 0.3, 0.2])
    limit = max(change_by_chance(shares, 400, n_new), 0.1)

    changes = [
        0.5 * np.abs(rng.multinomial(400, shares) / 400 - rng.multinomial(n_new, shares) / n_new).sum()
        for _ in range(2000)
    ]

    assert np.mean(np.array(changes) > limit) < 0.02


def drift_of(**changes):
    distances = {"distance_ratio": 1.0, "far_share": 0.0, "far_by_chance": 0.03, "n_new": 200}
    shares = {"share_change": 0.0, "change_by_chance": 0.1, "most_changed": (1, 0.5, 0.5)}
    return Drift(**(distances | shares | changes))


def test_drift_needs_more_than_chance():
    assert not drift_of(share_change=0.4, change_by_chance=0.45).is_large  # a handful of rows
    assert drift_of(share_change=0.4, change_by_chance=0.05).is_large
    assert not drift_of(far_share=0.05, far_by_chance=0.1).is_large  # one of twenty rows is far
    assert drift_of(far_share=0.2, far_by_chance=0.1).is_large
    assert not drift_of(far_share=1.0, far_by_chance=0.0, n_new=1).is_large  # a single row


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "none: "),
        ({"far_share": 0.03, "share_change": 0.1}, "none: "),
        ({"far_share": 0.04}, "small: 8 of the 200 new rows lie farther out than 99 % of the old ones (at most 6 by"),
        ({"far_share": 0.2}, "clear: 40 of the 200 new rows lie farther out than 99 % of the old ones (at most 6 by"),
        ({"far_share": 1.0, "n_new": 1, "far_by_chance": 0.0}, "small: 1 of the 1 new rows lie"),
        ({"share_change": 0.5, "most_changed": (1, 0.5, 1.0)}, "only in the shares of the clusters: cluster 1 has 50%"),
        ({"share_change": 0.11, "most_changed": (1, 0.5, 0.6)}, "only in the shares of the clusters: cluster 1 has"),
        ({"far_share": 0.2, "share_change": 0.5, "most_changed": (7, 0.0, 0.5)}, "clear: 40 of the 200 new rows"),
    ],
)
def test_the_sentence_about_drift_does_not_contradict_itself(changes, expected):
    """It says that the rows are like the old ones, or in what they differ, and asks for a new fit for one reason."""
    drift = drift_of(**changes)
    sentence = str(drift)

    assert sentence.startswith(expected)
    assert ("as near to the old ones" in sentence) == (drift.far_share <= drift.far_by_chance)
    assert ("about the same shares" in sentence) == sentence.startswith("none")
    assert ("consider a new fit" in sentence) == sentence.startswith("clear")


# --------------------------------------------------------------------------------------------------------------- errors


def test_no_rows_is_an_error(digits):
    model = fit(digits[0][:300], 10)

    with pytest.raises(InputError, match="0 sample"):
        model.update(digits[0][:0])


def test_a_failed_update_leaves_the_model_as_it_was(digits, monkeypatch):
    model = fit(digits[0][:300], 10)
    before = state_of(model)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(ManifoldClustering, "_score_outliers", fail)
    with pytest.raises(MemoryError):
        model.update(digits[0][300:400])

    assert before.keys() == vars(model).keys()
    assert_array_equal(model.labels_, before["labels_"])
    assert model.graph_ is before["graph_"]


def test_models_of_graphs_and_of_known_labels_cannot_be_updated(digits):
    X = digits[0][:300]
    some = np.full(300, -1)
    some[:3] = [0, 1, 2]
    with pytest.raises(InputError, match="fitted to a given graph"):
        ManifoldClustering(5, graph=KNNGraph(8), random_state=0).fit(X).update(X)
    with pytest.raises(InputError, match="known labels or pairs"):
        ManifoldClustering(5, random_state=0).fit(X, some).update(X)


# ----------------------------------------------------------------------------------------------------------- real data


@pytest.mark.slow
@pytest.mark.skipif("FIEDLER_DATA" not in os.environ, reason="FIEDLER_DATA is not set")
def test_usps_in_parts_is_usps_at_once():
    """Pixels from 0 to 1, at unit length; at their original range a fit finds one of several partitions."""
    X = normalize((fiedler.datasets.load("usps").X + 1) / 2)
    X = X[np.random.RandomState(0).permutation(len(X))]
    parts = np.split(X, (len(X) * np.array([0.8, 0.85, 0.9, 0.95])).astype(int))
    model = fit(parts[0], 10)
    for part in parts[1:]:
        model.update(part)

    assert adjusted_rand_index(model.labels_, fit(X, 10).labels_) >= 0.95


# --------------------------------------------------------------------------------------------------------------- copies


@pytest.fixture(scope="module")
def with_copies(digits):
    """600 different rows, every third of them twice, and 200 further ones."""
    X = digits[0][:800]
    return np.concatenate([X[:600], X[:600:3]]), X[600:]


def test_copies_among_the_rows_count_as_weights_of_nodes(with_copies):
    X, X_new = with_copies
    model = fit(X, 10, effort="fast")
    copied = np.concatenate([X_new, X_new[:50], X[:20]])  # new rows, copies of them, and copies of old ones

    result = model.update(copied)

    fresh = fit(np.concatenate([X, copied]), 10, effort="fast")
    order = fresh._state.copies.nodes[model._state.copies.first]  # of the different rows, which a fit sorts
    assert_array_equal(model._state.copies.first, fresh._state.copies.first[order])
    assert_array_equal(order[model._state.copies.nodes], fresh._state.copies.nodes)
    assert_allclose(model._state.weights, fresh._state.weights[order])
    in_order = fresh._state.graph.reorder(order)
    assert_allclose(model._state.graph.weights.toarray(), in_order.weights.toarray(), atol=1e-9)
    assert model.labels_.shape == (len(X) + len(copied),) == model.outlier_score_.shape
    assert_array_equal(result.labels[:50], result.labels[200:250])
    assert_array_equal(result.labels[250:], model.labels_[:20])
    assert_array_equal(model.predict(copied), result.labels)
    assert "rows were added" in str(result)


def test_rows_that_are_all_copies_change_only_weights(with_copies):
    X, _ = with_copies
    model = fit(X, 10, effort="fast")
    before = model.labels_.copy()

    result = model.update(X[100:130])

    assert_array_equal(result.labels, model.labels_[100:130])
    assert np.mean(model.labels_[: len(X)] == before) > 0.99
    assert len(model._fit_X) == 600
    assert result.drift.distance_ratio == pytest.approx(1, abs=0.3)


def test_explanations_know_copies(with_copies):
    X, X_new = with_copies
    model = fit(X, 10, effort="fast")

    profiles = model.explain().profiles

    expected = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(10)])
    assert_allclose(profiles.means, expected)
    assert model.explain(600).columns == model.explain(0).columns
    why = model.explain(X_new[0])
    assert all(model.labels_[one.row] == one.label for one in why.neighbors)
    assert_allclose(why.memberships, model.predict_proba(X_new[:1])[0])
    model.update(X_new)
    assert model.explain().profiles.means.shape == (10, 64)


def test_equal_rows_that_were_not_merged_stay_nodes_of_their_own():
    X = np.repeat([[0.0, 0], [5, 5], [9, 0]], 10, axis=0)  # fewer different rows than clusters
    model = fit(X, 4)

    result = model.update(X[:1])

    assert_array_equal(result.labels, model.labels_[:1])
    assert model._fit_X.shape == (31, 2)


def test_tables_are_explained_in_their_columns_after_an_update():
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    y = np.tile([0, 1], 100)
    table = pd.DataFrame({"amount": rng.normal(20 + 60 * y, 4), "plan": np.where(y, "pro", "basic")})
    model = fiedler.cluster(table[:150], 2, random_state=0).model

    model.update(table[150:])

    fresh = fiedler.cluster(table, 2, random_state=0).model.explain().profiles
    grown = model.explain().profiles
    order = np.argsort(grown.means[:, 0])
    assert (grown.columns, grown.levels) == (fresh.columns, fresh.levels)
    assert_allclose(grown.means[order], fresh.means[np.argsort(fresh.means[:, 0])])
    assert_allclose(grown.scales, fresh.scales)
    assert {name for name, value in model.explain(table[:1]).columns if value > 0} == {"amount", "plan"}


def test_reports_tell_rows_of_the_fit_from_added_ones(digits):
    model = fit(digits[0][:350], 10)

    model.update(digits[0][350:400])

    report = model.report()
    assert "clusters of 350 rows" in report
    assert "sample" not in report
    assert "50 rows were added afterwards. What follows is about all 400 rows." in report


def test_outliers_do_not_move(digits):
    model = fit(digits[0][:500], 10, outliers=0.05, effort="fast")

    result = model.update(digits[0][500:600])

    assert (result.moved_from >= 0).all()
    assert (result.moved_to >= 0).all()
    assert (model.labels_ == -1).sum() == pytest.approx(30, abs=1)


def test_models_with_weights_or_sizes_cannot_be_updated(digits):
    X = digits[0][:300]
    weighted = ManifoldClustering(5, effort="fast", random_state=0).fit(X, sample_weight=np.arange(1, 301))
    with pytest.raises(InputError, match="cannot be added to a model that was fitted with weights of rows"):
        weighted.update(X[:5] + 1)
    with pytest.raises(InputError, match="cannot be added to a model that has bounds on the sizes of clusters"):
        fit(X, 5, effort="fast", max_cluster_size=100).update(X[:5] + 1)
    with pytest.raises(InputError, match="cannot be added to a model that has fewer than 10 different rows"):
        fit(X[:9], 2).update(X[9:12])
