"""MMC, LMNN, MPCKMeans and the transductive SVM, each against the objective that defines it."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from sklearn.cluster import KMeans
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from fiedler.baselines import LMNN, MMC, MPCKMeans, TransductiveSVM
from fiedler.baselines.metric_learning import large_margin, onto_spectrahedron, target_neighbours
from fiedler.baselines.mpckmeans import _Problem
from fiedler.baselines.tsvm import split_at_share, switched
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import PairwiseConstraints

MINUS_ONE = "-1 is no class but says that the class is unknown"


def expected_failures(estimator):
    return {"check_classifiers_classes": MINUS_ONE} if isinstance(estimator, TransductiveSVM) else {}


@parametrize_with_checks([MPCKMeans(3), TransductiveSVM()], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def noisy(rng, n=60):
    """Two classes that differ in the first feature; the second is noise of larger size."""
    y = np.arange(n) % 2
    return np.column_stack([2.0 * y + 0.3 * rng.normal(size=n), 4 * rng.normal(size=n)]), y


# ---------------------------------------------------------------------------------------------------------------- MMC


def test_mmc_reaches_the_optimum_of_its_convex_problem(rng):
    """Against a general optimiser over M = LL' in two dimensions."""
    X, y = noisy(rng, 20)
    pairs = PairwiseConstraints.from_labels(y, rate=0.5, random_state=0)
    model = MMC(ridge=1e-9, max_iter=2000, tol=1e-12).fit(X, constraints=pairs)
    M = model.metric_.T @ model.metric_
    same, apart = (X[links[:, 0]] - X[links[:, 1]] for links in (pairs.must_link, pairs.cannot_link))

    def loss(flat, S=same.T @ same):
        L = np.array([[flat[0], 0], [flat[1], flat[2]]])
        N = L @ L.T / np.trace(L @ L.T @ S)  # the objective is best on the boundary
        return -np.sqrt(np.einsum("ij,jk,ik->i", apart, N, apart)).sum()

    best = min(
        minimize(loss, rng.normal(size=3), method="Nelder-Mead", options={"maxiter": 4000}).fun for _ in range(5)
    )
    assert np.trace(M @ (same.T @ same)) == pytest.approx(1, abs=1e-6)
    assert np.sqrt(np.einsum("ij,jk,ik->i", apart, M, apart)).sum() == pytest.approx(-best, rel=1e-4)
    assert (np.diff(model.history_) >= 0).all()
    assert model.converged_


def test_the_projection_is_onto_the_spectrahedron(rng):
    for size in (0.1, 3.0):
        N = size * rng.normal(size=(4, 4))
        P = onto_spectrahedron(N)
        assert np.linalg.eigvalsh(P).min() >= -1e-12
        assert np.trace(P) <= 1 + 1e-12
        for _ in range(50):  # nothing in the set is nearer to the symmetric part
            R = rng.normal(size=(4, 4))
            R = R @ R.T / np.trace(R @ R.T)
            symmetric = 0.5 * (N + N.T)
            assert np.linalg.norm(symmetric - P) <= np.linalg.norm(symmetric - R) + 1e-9


def test_mmc_finds_the_feature_that_matters(rng):
    X, y = noisy(rng)
    model = MMC().fit(X, np.where(np.arange(60) < 20, y, -1))
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[0] > 5 * lengths[1]
    assert_allclose(model.transform(X), X @ model.metric_.T)


@pytest.mark.parametrize("pairs", [None, PairwiseConstraints([(0, 1)], [], 60), PairwiseConstraints([], [(0, 1)], 60)])
def test_mmc_needs_pairs_of_both_kinds(pairs, rng):
    with pytest.raises(ValueError, match="pairs of both kinds"):
        MMC().fit(noisy(rng)[0], constraints=pairs)


def test_rows_that_no_metric_tells_apart_end_in_a_sentence():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0], [5.0, 5.0]])
    with pytest.raises(ValueError, match="no metric can tell them apart"):
        MMC().fit(X, constraints=PairwiseConstraints([(0, 1)], [(2, 3)], 4))


# --------------------------------------------------------------------------------------------------------------- LMNN


def test_lmnn_is_the_printed_objective_and_its_gradient(rng):
    X, y = noisy(rng, 16)
    rows, targets = target_neighbours(X, y, 2)
    A = np.eye(2) + 0.1 * rng.normal(size=(2, 2))

    def distance(i, j):
        return np.linalg.norm(A @ (X[i] - X[j])) ** 2

    printed = 0.7 * sum(distance(i, j) for i, j in zip(rows, targets))
    for (i, j), other in itertools.product(zip(rows, targets), range(16)):
        if y[other] != y[i]:
            printed += 0.3 * max(0, 1 + distance(i, j) - distance(i, other))
    value, gradient = large_margin(A, X, y, rows, targets, 0.3)
    assert value == pytest.approx(printed)
    slope = approx_fprime(A.ravel(), lambda flat: large_margin(flat.reshape(2, 2), X, y, rows, targets, 0.3)[0], 1e-7)
    assert_allclose(gradient.ravel(), slope, rtol=1e-4, atol=1e-4)


def test_target_neighbours_are_the_nearest_of_the_class(rng):
    X, y = noisy(rng, 12)
    rows, targets = target_neighbours(X, y, 2)
    for i in range(12):
        mates = [j for j in range(12) if j != i and y[j] == y[i]]
        nearest = sorted(mates, key=lambda j: np.linalg.norm(X[i] - X[j]))[:2]
        assert set(targets[rows == i]) == set(nearest)


def test_lmnn_lowers_its_objective_and_finds_the_feature_that_matters(rng):
    X, y = noisy(rng)
    model = LMNN().fit(X, np.where(np.arange(60) < 40, y, -1))
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[0] > 3 * lengths[1]
    with pytest.raises(ValueError, match="two labelled rows of each"):
        LMNN().fit(X, np.where(np.arange(60) < 2, y, -1))
    with pytest.raises(ValueError, match="requires y"):
        LMNN().fit(X)


# ---------------------------------------------------------------------------------------------------------- MPCKMeans


def test_mpckmeans_is_the_printed_objective(rng):
    X = rng.normal(size=(12, 2))
    pairs = PairwiseConstraints([(0, 1), (2, 3)], [(4, 5), (0, 6)], 12)
    problem, labels = _Problem(X, pairs, 0.7), rng.randint(2, size=12)
    centres, metrics = rng.normal(size=(2, 2)), rng.uniform(0.5, 2, size=(2, 2))
    span = (X.max(axis=0) - X.min(axis=0)) ** 2
    printed = sum(
        ((X[i] - centres[c]) ** 2 * metrics[c]).sum() - np.log(metrics[c]).sum() for i, c in enumerate(labels)
    )
    for i, j in pairs.must_link:
        if labels[i] != labels[j]:
            printed += 0.7 * 0.5 * ((X[i] - X[j]) ** 2 * (metrics[labels[i]] + metrics[labels[j]])).sum()
    for i, j in pairs.cannot_link:
        if labels[i] == labels[j]:
            printed += 0.7 * ((span - (X[i] - X[j]) ** 2) * metrics[labels[i]]).sum()
    assert problem.objective(labels, centres, metrics) == pytest.approx(printed)


def test_a_rows_price_is_its_part_of_the_objective(rng):
    """Moving one row changes the objective by the difference of its prices."""
    X = rng.normal(size=(12, 2))
    pairs = PairwiseConstraints.from_labels(np.arange(12) % 3).sample(25, random_state=0)
    problem, labels = _Problem(X, pairs, 0.7), rng.randint(3, size=12)
    centres, metrics = rng.normal(size=(3, 2)), rng.uniform(0.5, 2, size=(3, 2))
    for i in range(12):
        prices = problem.distances(centres, metrics)[i] + 0.7 * problem._broken(i, labels, metrics)
        values = []
        for c in range(3):
            moved = labels.copy()
            moved[i] = c
            values.append(problem.objective(moved, centres, metrics))
        assert_allclose(np.diff(prices), np.diff(values))


def test_mpckmeans_never_raises_its_objective_and_keeps_pairs(rng):
    X, y = noisy(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.4, random_state=0)
    model = MPCKMeans(2, random_state=0).fit(X, constraints=pairs)
    assert (np.diff(model.history_) <= 1e-9 * np.abs(model.history_[:-1])).all()
    plain = KMeans(2, n_init=5, random_state=0).fit(X).labels_
    assert adjusted_rand_index(y, model.labels_) > adjusted_rand_index(y, plain) + 0.3
    assert pairs.violations(model.labels_).n_pairs < 0.1 * pairs.n_pairs
    assert (model.metrics_[:, 0] > model.metrics_[:, 1]).all()
    assert (model.predict(X) == model.labels_).mean() > 0.8


def test_without_pairs_and_with_one_feature_size_it_is_close_to_k_means(rng):
    X = np.repeat(8 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))
    model = MPCKMeans(3, random_state=0).fit(X)
    assert adjusted_rand_index(model.labels_, KMeans(3, n_init=5, random_state=0).fit(X).labels_) == 1


# --------------------------------------------------------------------------------------------------- transductive SVM


def test_a_switch_lowers_the_slacks_it_touches(rng):
    signs, slack = np.where(np.arange(20) < 10, 1, -1), 3 * rng.uniform(size=20)
    known = np.arange(20) % 5 == 0
    swapped = switched(signs, known, slack)
    moved = swapped != signs
    assert moved.any()
    assert not moved[known].any()
    assert (swapped == 1).sum() == 10
    after = np.where(moved, np.maximum(0, 2 - slack), slack)
    assert after.sum() < slack.sum()
    assert switched(signs, known, np.full(20, 0.9)) is None


def test_shares_are_kept():
    assert_array_equal(split_at_share(np.array([0.1, 0.9, 0.5, 0.3]), 0.5), [-1, 1, 1, -1])
    assert_array_equal(split_at_share(np.array([0.1, 0.9]), 0.0), [-1, 1])


def test_with_all_rows_labelled_it_is_a_support_vector_machine(rng):
    X, y = noisy(rng)
    ours, theirs = TransductiveSVM().fit(X, y), SVC(kernel="linear").fit(X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))


def test_unlabelled_rows_help(rng):
    """A labelled row of each class away from its centre misleads the inductive machine."""
    y = np.arange(200) % 2
    X = np.column_stack([4.0 * y + 0.5 * rng.normal(size=200), 0.5 * rng.normal(size=200)])
    X[0], X[1] = (0.5, -3.0), (3.0, 3.0)
    some = np.full(200, -1)
    some[:2] = y[:2]
    transductive = (TransductiveSVM().fit(X, some).transduction_ == y).mean()
    inductive = (SVC(kernel="linear").fit(X[:2], y[:2]).predict(X) == y).mean()
    assert transductive > max(inductive, 0.98)


@pytest.mark.parametrize(
    ("y", "words"), [(np.full(60, -1), "no label at all"), (np.zeros(60), "two classes"), (None, "requires y")]
)
def test_bad_labels_end_in_a_sentence(y, words, rng):
    with pytest.raises(ValueError, match=words):
        TransductiveSVM().fit(noisy(rng)[0], y)
