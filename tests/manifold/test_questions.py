"""Questions about pairs of rows: the answers choose among coarse and fine partitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import AffinityGraph, KNNGraph, ManifoldClustering, PairwiseConstraints
from fiedler.errors import InputError
from fiedler.manifold import NClustersChoice
from fiedler.manifold.questions import FITTED_SHARE, candidate_prior, nearest_along_edges
from fiedler.metrics import adjusted_rand_index

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def nested_blobs(rng, n=60):
    """Three groups of three clusters each: the rows, the groups and the clusters."""
    groups, clusters = np.repeat(np.arange(3), 3 * n), np.repeat(np.arange(9), n)
    triangle = np.array([[0, 0], [1, 0], [0, 1]])
    X = 20 * triangle[groups] + 5 * triangle[clusters % 3] + rng.normal(size=(9 * n, 2))
    order = rng.permutation(9 * n)
    return X[order], groups[order], clusters[order]


@pytest.fixture(scope="module")
def nested():
    X, groups, clusters = nested_blobs(np.random.RandomState(7))
    return ManifoldClustering(random_state=0).fit(X), X, groups, clusters


def ask(model, meant, n_rounds, n_pairs=1):
    """The model after a person has answered."""
    for _ in range(n_rounds):
        pairs = model.questions(n_pairs)
        model = model.answer(pairs, meant[pairs[:, 0]] == meant[pairs[:, 1]])
    return model


# -------------------------------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("level", ["groups", "clusters"])
@pytest.mark.parametrize("n_pairs", [1, 3])
def test_three_answers_choose_the_coarse_or_the_fine_level(nested, level, n_pairs):
    model, X, groups, clusters = nested
    meant = groups if level == "groups" else clusters

    asked = ask(model, meant, 3 // n_pairs, n_pairs)

    assert asked.n_clusters_ == len(np.unique(meant))
    assert adjusted_rand_index(meant, asked.labels_) > 0.95
    assert asked.memberships_.shape == (len(X), asked.n_clusters_)
    assert_allclose(asked.memberships_.sum(axis=1), 1)
    assert_array_equal(asked.predict(X), asked.labels_)


@pytest.mark.parametrize("n_clusters", [3, 9])
@pytest.mark.parametrize("level", ["groups", "clusters"])
def test_a_given_number_of_clusters_can_be_corrected(nested, n_clusters, level):
    _, X, groups, clusters = nested
    meant = groups if level == "groups" else clusters

    asked = ask(ManifoldClustering(n_clusters, random_state=0).fit(X), meant, 8)

    assert adjusted_rand_index(meant, asked.labels_) > 0.95


def test_a_wrong_answer_is_outvoted(nested):
    model, _, groups, clusters = nested
    for meant in (groups, clusters):
        pairs = model.questions(8)
        same = meant[pairs[:, 0]] == meant[pairs[:, 1]]
        same[3] ^= True

        assert adjusted_rand_index(meant, model.answer(pairs, same).labels_) > 0.95


def test_the_model_that_was_asked_stays_as_it_is(nested):
    _, X, groups, clusters = nested
    model = ManifoldClustering(random_state=0).fit(X)
    before, state = dict(vars(model)), dict(vars(model._state))
    labels = model.labels_.copy()

    for meant in (groups, clusters):
        ask(model, meant, 2)

    assert vars(model) == before
    assert all(vars(model._state)[name] is value for name, value in state.items())
    assert_array_equal(model.labels_, labels)


def test_the_same_answers_give_the_same_questions_and_model(nested):
    model, _, _, clusters = nested
    first, second = (ask(model, clusters, 3, 2) for _ in range(2))

    assert_array_equal(first.questions(4), second.questions(4))
    assert_array_equal(first.labels_, second.labels_)


def test_answers_accumulate_and_pairs_are_not_asked_again(nested):
    model, _, groups, _ = nested
    pairs = model.questions(3)
    same = groups[pairs[:, 0]] == groups[pairs[:, 1]]
    at_once, one_by_one = model.answer(pairs, same), model
    for pair, answer in zip(pairs, same):
        one_by_one = one_by_one.answer([pair], [answer])
    again = at_once.questions(20)

    assert_array_equal(at_once.labels_, one_by_one.labels_)
    assert_array_equal(again, one_by_one.questions(20))
    assert not {tuple(pair) for pair in again.tolist()} & {tuple(pair) for pair in pairs.tolist()}


def test_answers_that_confirm_the_fit_leave_its_results(nested):
    model, _, _, _ = nested
    asked = ask(model, model.labels_, 3)

    assert_array_equal(asked.labels_, model.labels_)
    assert_array_equal(asked.memberships_, model.memberships_)
    assert asked.consensus_ == model.consensus_
    assert asked.evidence_ is model.evidence_


def test_a_person_who_sees_one_group_gets_one_cluster(nested):
    model, X, _, _ = nested

    asked = ask(model, np.zeros(len(X), dtype=int), 15)

    assert asked.n_clusters_ == 1
    assert set(asked.labels_.tolist()) == {0}


# --------------------------------------------------------------------------------------------- what is fitted, and how


def test_outliers_stay_outliers(nested):
    _, X, groups, _ = nested
    model = ManifoldClustering(9, outliers=0.1, random_state=0).fit(X)

    asked = ask(model, groups, 8)

    inside = asked.labels_ >= 0
    assert asked.n_clusters_ == 3
    assert_array_equal(~inside, model.labels_ < 0)
    assert adjusted_rand_index(groups[inside], asked.labels_[inside]) > 0.95


def test_copies_of_a_row_have_one_label(nested):
    _, X, groups, clusters = nested
    X, groups = np.concatenate([X, X[:60], X[:30]]), np.concatenate([groups, groups[:60], groups[:30]])
    model = ManifoldClustering(9, random_state=0).fit(X)

    asked = ask(model, groups, 8)

    assert len(np.unique(asked._state.inquiry.pairs, axis=0)) == 8
    assert adjusted_rand_index(groups, asked.labels_) > 0.95
    assert_array_equal(asked.labels_[len(clusters) : len(clusters) + 60], asked.labels_[:60])
    assert asked.graph_ is model.graph_
    assert_array_equal(asked.predict(X), asked.labels_)
    copy_of_first = [[len(clusters), 1]]
    assert_array_equal(
        model.answer(copy_of_first, [True])._state.inquiry.pairs, model.answer([[0, 1]], [True])._state.inquiry.pairs
    )


def test_rows_outside_the_sample_are_placed_along_the_graph(nested, monkeypatch):
    _, X, groups, clusters = nested
    monkeypatch.setattr("fiedler.manifold.questions.MAX_SAMPLED_ROWS", 250)
    model = ManifoldClustering(random_state=0).fit(X)
    assert len(model._inquiry().rows) == 250

    for meant in (groups, clusters):
        asked = ask(model, meant, 4)
        assert adjusted_rand_index(meant, asked.labels_) > 0.9
    rng = np.random.RandomState(0)
    pairs = rng.permutation(len(X))[:200].reshape(-1, 2)  # not all in the sample
    by_any_pairs = model.answer(pairs, clusters[pairs[:, 0]] == clusters[pairs[:, 1]])
    assert adjusted_rand_index(clusters, by_any_pairs.labels_) > 0.9


def test_graphs_can_be_asked(nested):
    _, X, groups, _ = nested
    model = ManifoldClustering(9, random_state=0).fit(KNNGraph(6, connect="mst").build(X))

    assert adjusted_rand_index(groups, ask(model, groups, 8).labels_) > 0.95


def test_weighted_rows_can_be_asked(nested):
    _, X, groups, _ = nested
    weights = np.random.RandomState(0).randint(1, 4, size=len(X))
    model = ManifoldClustering(9, random_state=0).fit(X, sample_weight=weights)

    assert adjusted_rand_index(groups, ask(model, groups, 8).labels_) > 0.95


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_rows_have_few_questions(n, rng):
    model = ManifoldClustering(2, random_state=0).fit(rng.normal(size=(n, 2)))
    pairs = model.questions(200)

    assert 1 <= len(pairs) <= n * (n - 1) // 2
    assert len(model.answer(pairs, np.ones(len(pairs), dtype=bool)).labels_) == n


def test_rows_can_be_added_after_answers(nested):
    _, X, groups, _ = nested
    model = ask(ManifoldClustering(9, random_state=0).fit(X[:500]), groups, 8)

    result = model.update(X[500:])
    asked = ask(model, groups, 2)

    assert not result.new_clusters
    assert adjusted_rand_index(groups, model.labels_) > 0.95
    assert adjusted_rand_index(groups, asked.labels_) > 0.95


def test_the_report_says_that_answers_decided(nested):
    model, X, groups, _ = nested
    model = ManifoldClustering(9, random_state=0).fit(X)

    report = ask(model, groups, 8).report()

    assert "3 clusters of 540 rows, chosen by answers to questions" in report.replace("\n", " ")


def test_answers_are_part_of_the_file(nested, tmp_path):
    model, _, groups, _ = nested
    asked = ask(model, groups, 2)
    fiedler.save(asked, tmp_path / "model.safetensors")

    loaded = fiedler.load(tmp_path / "model.safetensors")

    assert_array_equal(loaded.labels_, asked.labels_)
    assert_array_equal(loaded.questions(3), asked.questions(3))
    assert_array_equal(ask(loaded, groups, 2).labels_, ask(asked, groups, 2).labels_)


# ---------------------------------------------------------------------------------------------------------- the parts


def test_prior_is_the_squared_score_shared_by_the_partitions_of_a_number():
    evidence = NClustersChoice(3, "score", [2, 3, 4], score=[0.2, 0.4, 0.0])

    prior = candidate_prior(np.array([3, 3, 2, 2, 4]), evidence)

    shares = np.array([0.5, 0.5, 0.125, 0.125, 9e-4])
    printed = (1 - FITTED_SHARE) * shares / shares.sum() + FITTED_SHARE * np.array([1, 0, 0, 0, 0])
    assert_allclose(prior, printed)


def test_prior_of_a_given_number_is_symmetric_in_its_ratio():
    prior = candidate_prior(np.array([6, 3, 12]), None)

    assert_allclose(prior, 0.7 * np.array([2, 1, 1]) / 4 + 0.3 * np.array([1, 0, 0]))


def test_nodes_join_the_nearest_one_along_strong_edges():
    """A chain 0 - 1 - 2 - 3 with a weak last edge, and a node without edges."""
    W = sp.csr_array(([1.0, 1.0, 0.1], ([0, 1, 2], [1, 2, 3])), shape=(5, 5))
    graph = AffinityGraph.from_matrix(W + W.T)

    assert_array_equal(nearest_along_edges(graph, np.array([3, 0])), [1, 1, 1, 0, 0])
    assert_array_equal(nearest_along_edges(graph, np.array([4, 2, 0, 1, 3])), [2, 3, 1, 4, 0])


# ----------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("pairs", "same", "message"),
    [
        ([[0, 540]], [True], r"\(0, 540\).*two different rows from 0 to 539"),
        ([[-1, 3]], [True], r"\(-1, 3\)"),
        ([[4, 4]], [True], r"\(4, 4\)"),
        ([[0, 1], [2, 3]], [True], "True or False for each of the 2 pairs"),
        ([[0, 1]], True, "True or False"),
        ([[0, 1]], [1], "True or False"),
        ([[0, 1]], [None], "leave out pairs without an answer"),
        ([[0.5, 1.0]], [True], "pairs of row numbers"),
        ([0, 1], [True], "pairs of row numbers"),
        ([[0, 1], [2]], [True, True], "pairs of row numbers"),
        ("ab", [True], "pairs of row numbers"),
    ],
)
def test_mistakes_in_answers_give_one_sentence(nested, pairs, same, message):
    with pytest.raises(InputError, match=message) as caught:
        nested[0].answer(pairs, same)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n_pairs", [0, -1, 2.5, "many", True])
def test_a_number_of_questions_that_is_none_raises(nested, n_pairs):
    with pytest.raises(InputError, match="n_pairs"):
        nested[0].questions(n_pairs)


def test_models_whose_partition_is_given_cannot_be_asked(nested):
    _, X, groups, _ = nested
    known = np.where(np.arange(len(X)) < 20, groups, -1)
    pairs = PairwiseConstraints([(0, 1)], [], len(X))
    models = [
        (ManifoldClustering(3, random_state=0).fit(X, known), "known labels or pairs"),
        (ManifoldClustering(3, random_state=0).fit(X, constraints=pairs), "known labels or pairs"),
        (ManifoldClustering(3, min_cluster_size=150, random_state=0).fit(X), "bounds on the sizes"),
    ]
    for model, message in models:
        with pytest.raises(InputError, match=message):
            model.questions()
        with pytest.raises(InputError, match=message):
            model.answer([[0, 1]], [True])


def test_a_model_must_be_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        ManifoldClustering().questions()
