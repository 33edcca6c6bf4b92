from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fiedler import LLGC, KNNGraph, LandmarkGraph, LapGMM, LearnedLaplacian, SpectralClustering
from fiedler.embedding import NLE
from fiedler.metrics import adjusted_rand_index
from fiedler.metrics.scores import agreement_matrix
from fiedler.supervision import PairwiseConstraints, suggest_pairs
from fiedler.supervision.questions import (
    ERROR_RATE,
    Inquiry,
    draw_pairs,
    informativeness,
    posterior,
    select_decisive_pairs,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")


def touching(rng, n=200):
    y = np.arange(n) % 2
    return np.column_stack([2.4 * y + 0.6 * rng.normal(size=n), rng.normal(size=n)]), y


def test_informativeness_is_entropy_scaled_down_at_outliers():
    q = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.9, 0.1]])
    degrees = np.array([2.0, 2.0, 2.0, 0.5])
    scores = informativeness(q, degrees, np.array([0, 2, 2]), np.array([1, 2, 3]))
    assert_allclose(scores, [1.0, 0.0, 0.25 * -(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))], atol=1e-9)


@pytest.mark.parametrize("kind", [SpectralClustering, LapGMM, NLE])
def test_pairs_are_at_the_boundary_and_apart_from_each_other(kind, fixed_rng):
    X, _ = touching(fixed_rng)
    model = kind(2, KNNGraph(8), random_state=0).fit(X)
    asked = suggest_pairs(model, 8)
    assert 4 <= len(asked) <= 8
    assert len(np.unique(asked)) == asked.size
    crossing = model.graph_.weights @ np.eye(2)[model.labels_]
    crossing = crossing.min(axis=1) > 0  # rows with neighbours in both clusters
    assert crossing[asked].any(axis=1).mean() > max(0.5, 3 * crossing.mean())


@pytest.mark.slow
@pytest.mark.parametrize("model", [LapGMM(2, random_state=0), NLE(2, n_init=2, max_iter=100, random_state=0)])
def test_answers_help_more_than_answers_on_random_pairs(model):
    """On average over six draws."""
    gains = []
    for seed in range(6):
        X, y = touching(np.random.RandomState(seed))
        model.fit(X)
        at_random = np.random.RandomState(seed).permutation(200)[:16].reshape(-1, 2)
        scores = []
        for asked in (suggest_pairs(model, 8), at_random):
            same = y[asked[:, 0]] == y[asked[:, 1]]
            pairs = PairwiseConstraints(asked[same], asked[~same], 200, strength=3.0)
            scores.append(adjusted_rand_index(y, clone(model).fit(X, constraints=pairs).labels_))
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0


def test_known_pairs_are_not_suggested_again(rng):
    X, y = touching(rng)
    model = SpectralClustering(2, KNNGraph(8), random_state=0).fit(X)
    first = suggest_pairs(model, 5)
    same = y[first[:, 0]] == y[first[:, 1]]
    pairs = PairwiseConstraints(first[same], first[~same], 200)
    again = suggest_pairs(model, 5, constraints=pairs)
    assert not {tuple(pair) for pair in again.tolist()} & {tuple(pair) for pair in first.tolist()}
    constrained = model.fit(X, constraints=pairs)  # its graph has edges of both signs
    assert len(suggest_pairs(constrained, 5, constraints=pairs)) > 0


def test_classifiers_are_accepted(rng):
    X, y = touching(rng)
    model = LLGC(KNNGraph(8)).fit(X, np.where(np.arange(200) < 6, y, -1))
    assert len(suggest_pairs(model, 3)) == 3


def test_models_without_edges_raise(rng):
    X, _ = touching(rng)
    with pytest.raises(ValueError, match="no graph whose edges"):
        suggest_pairs(NLE(2, LandmarkGraph(50), random_state=0).fit(X))


def test_undecided_rows_are_suggested(rng):
    X = np.concatenate([rng.normal(size=(30, 2)), 40 + rng.normal(size=(30, 2))])
    y = np.full(60, -1)
    y[:2] = 0, 1
    asked = suggest_pairs(LLGC(KNNGraph(5)).fit(X, y), 6)
    assert (asked >= 30).any()


def test_models_without_clusters_raise(rng):
    with pytest.raises(ValueError, match="neither clusters nor classes"):
        suggest_pairs(LearnedLaplacian("scale").fit(touching(rng)[0]))


# ---------------------------------------------------------------------------------------------------- among partitions

NESTED = [np.arange(24) * k // 24 for k in (2, 4, 8)]  # each one divides the clusters of the one before


def random_partitions(rng, n_candidates=5, n_rows=9):
    labels = np.stack([rng.randint(rng.randint(2, 5), size=n_rows) for _ in range(n_candidates)])
    return labels, rng.dirichlet(np.ones(n_candidates))


def every_pair(n_rows):
    return np.array(list(combinations(range(n_rows), 2)))


def answers_of(labels, pairs):
    return labels[pairs[:, 0]] == labels[pairs[:, 1]]


def test_posterior_is_the_printed_product(rng):
    labels, prior = random_partitions(rng)
    pairs, same = rng.permutation(every_pair(9))[:6], rng.rand(6) < 0.5

    printed = prior.copy()
    for c, partition in enumerate(labels):
        for (i, j), answer in zip(pairs, same):
            printed[c] *= 0.9 if (partition[i] == partition[j]) == answer else 0.1

    assert_allclose(posterior(labels, prior, pairs, same, 0.1), printed / printed.sum(), rtol=1e-12)


def test_posterior_without_answers_is_the_prior(rng):
    labels, prior = random_partitions(rng)

    assert_allclose(posterior(labels, prior, np.empty((0, 2), dtype=int), np.empty(0, dtype=bool)), prior)


def expected_choice(labels, prior, agreement, pairs):
    """The expected agreement of the choice after answers about some pairs, by all outcomes one by one."""
    total = 0.0
    for outcome in product([True, False], repeat=len(pairs)):
        joint = prior.copy()
        for pair, answer in zip(pairs, outcome):
            agrees = (labels[:, pair[0]] == labels[:, pair[1]]) == answer
            joint *= np.where(agrees, 1 - ERROR_RATE, ERROR_RATE)
        total += max(agreement @ joint)
    return total


def test_pairs_are_selected_greedily_by_the_expected_choice_of_all_outcomes(rng, monkeypatch):
    monkeypatch.setattr("fiedler.supervision.questions.ENTROPY_WEIGHT", 0.0)
    labels, prior = random_partitions(rng)
    agreement, pairs = agreement_matrix(labels), every_pair(9)
    together = labels[:, pairs[:, 0]] == labels[:, pairs[:, 1]]

    selected = select_decisive_pairs(together, prior, agreement, 3)

    assert len(set(selected)) == 3
    for count in (1, 2, 3):
        before = pairs[selected[: count - 1]].tolist()
        values = [expected_choice(labels, prior, agreement, [*before, pair]) for pair in pairs.tolist()]
        left = [value for number, value in enumerate(values) if number not in selected[: count - 1]]
        assert values[selected[count - 1]] == pytest.approx(max(left), abs=1e-8)


def test_where_no_answer_changes_the_choice_the_most_uncertain_one_is_asked():
    labels = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1]])
    together = np.array([[True, True], [True, False], [True, False]])

    assert select_decisive_pairs(together, np.array([0.98, 0.01, 0.01]), np.eye(len(labels)), 1) == [1]


@pytest.mark.parametrize("meant", NESTED, ids=["coarse", "medium", "fine"])
def test_right_answers_find_the_partition_that_is_meant(meant):
    inquiry = Inquiry.among(NESTED, np.ones(3))
    for _ in range(4):
        pairs = inquiry.ask(1)
        inquiry = inquiry.with_answers(pairs, answers_of(meant, pairs))

    assert_array_equal(inquiry.chosen, meant)
    assert inquiry.weights.max() > 0.9


@pytest.mark.parametrize("wrong", range(6))
def test_one_wrong_answer_of_six_does_not_change_a_clear_choice(wrong):
    inquiry = Inquiry.among([NESTED[0], NESTED[2]], np.ones(2))
    pairs = inquiry.ask(6)
    same = answers_of(NESTED[2], pairs)
    same[wrong] ^= True

    assert_array_equal(inquiry.with_answers(pairs, same).chosen, NESTED[2])


def test_several_pairs_at_once_tell_apart_what_one_cannot():
    inquiry = Inquiry.among(NESTED, np.ones(3))
    answers = {tuple(answers_of(partition, inquiry.ask(4)).tolist()) for partition in NESTED}

    assert len(answers) == 3


def test_no_pair_is_asked_twice():
    inquiry = Inquiry.among([np.arange(4) % 2, np.zeros(4, dtype=int)], np.ones(2))
    first = inquiry.ask(4)
    rest = inquiry.with_answers(first[:, ::-1], np.ones(4, dtype=bool)).ask(4)
    asked = {tuple(pair) for pair in np.concatenate([first, rest]).tolist()}

    assert len(asked) == len(first) + len(rest) == 6


@pytest.mark.parametrize("n_rows", [1, 2, 40])
def test_one_candidate_has_questions_and_is_chosen(n_rows):
    only = np.arange(n_rows) % 3
    inquiry = Inquiry.among([only], [1.0])
    pairs = inquiry.ask(3)

    assert pairs.shape == (min(3, n_rows * (n_rows - 1) // 2), 2)
    assert_array_equal(inquiry.with_answers(pairs, np.zeros(len(pairs), dtype=bool)).chosen, only)


def test_pairs_are_different_and_half_of_them_within_clusters(rng):
    labels = np.arange(1000)[None] // 10
    pairs = draw_pairs(labels, np.ones(1), 200, rng)

    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert 0.35 < answers_of(labels[0], pairs).mean() < 0.65


def test_the_partition_between_two_extremes_is_chosen_if_nothing_is_known():
    """The mode of the prior is not: its expected agreement with the other two is lower."""
    inquiry = Inquiry.among(NESTED, [0.3, 0.3, 0.4])

    assert_array_equal(inquiry.chosen, NESTED[1])
