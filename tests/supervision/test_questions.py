import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fiedler import LLGC, KNNGraph, LandmarkGraph, LapGMM, LearnedLaplacian, SpectralClustering
from fiedler.embedding import NLE
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import PairwiseConstraints, suggest_pairs
from fiedler.supervision.questions import informativeness

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
