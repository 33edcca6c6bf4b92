"""MMC, LMNN, MPCKMeans and the transductive SVM, each compared with its defining objective."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.svm import SVC

from fiedler.errors import FiedlerWarning, InputError, NotConvergedWarning
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import PairwiseConstraints
from fiedler_papers.baselines import LMNN, MMC, MPCKMeans, TransductiveSVM
from fiedler_papers.baselines.metric_learning import lmnn_objective, project_to_spectrahedron, target_neighbors
from fiedler_papers.baselines.mpckmeans import _PairObjective, penalized_distances
from fiedler_papers.baselines.tsvm import label_highest, switch_labels


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
    must, cannot = (X[links[:, 0]] - X[links[:, 1]] for links in (pairs.must_link, pairs.cannot_link))

    def loss(flat, S=must.T @ must):
        L = np.array([[flat[0], 0], [flat[1], flat[2]]])
        N = L @ L.T / np.trace(L @ L.T @ S)  # the objective is best on the boundary
        return -np.sqrt(np.einsum("ij,jk,ik->i", cannot, N, cannot)).sum()

    best = min(
        minimize(loss, rng.normal(size=3), method="Nelder-Mead", options={"maxiter": 4000}).fun for _ in range(5)
    )
    assert np.trace(M @ (must.T @ must)) == pytest.approx(1, abs=1e-6)
    assert np.sqrt(np.einsum("ij,jk,ik->i", cannot, M, cannot)).sum() == pytest.approx(-best, rel=1e-4)
    assert (np.diff(model.history_.objective) >= 0).all()
    assert model.history_.maximize
    assert_array_equal(model.history_.iterations, np.arange(model.n_iter_ + 1))
    assert model.history_.objective[-1] == model.objective_ == pytest.approx(-best, rel=1e-4)
    assert model.converged_


def test_the_projection_is_onto_the_spectrahedron(rng):
    for size in (0.1, 3.0):
        N = size * rng.normal(size=(4, 4))
        P = project_to_spectrahedron(N)
        assert np.linalg.eigvalsh(P).min() >= -1e-12
        assert np.trace(P) <= 1 + 1e-12
        for _ in range(50):  # no other matrix of the set is closer to the symmetric part
            R = rng.normal(size=(4, 4))
            R = R @ R.T / np.trace(R @ R.T)
            symmetric = 0.5 * (N + N.T)
            assert np.linalg.norm(symmetric - P) <= np.linalg.norm(symmetric - R) + 1e-9


def test_mmc_finds_the_relevant_feature(rng):
    X, y = noisy(rng)
    model = MMC().fit(X, np.where(np.arange(60) < 20, y, -1))
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[0] > 5 * lengths[1]
    assert_allclose(model.transform(X), X @ model.metric_.T)


@pytest.mark.parametrize("pairs", [None, PairwiseConstraints([(0, 1)], [], 60), PairwiseConstraints([], [(0, 1)], 60)])
def test_mmc_needs_pairs_of_both_kinds(pairs, rng):
    with pytest.raises(InputError, match="pairs of both kinds") as raised:
        MMC().fit(noisy(rng)[0], constraints=pairs)
    assert raised.value.code == "pairs_required"


def test_equal_cannot_linked_rows_raise_an_error():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0], [5.0, 5.0]])
    with pytest.raises(InputError, match="no metric can separate them") as raised:
        MMC().fit(X, constraints=PairwiseConstraints([(0, 1)], [(2, 3)], 4))
    assert raised.value.code == "equal_cannot_linked_rows"


def test_a_warning_says_that_mmc_did_not_converge(rng):
    X, y = noisy(rng)
    with pytest.warns(NotConvergedWarning, match="MMC did not converge within max_iter=1 steps") as warned:
        model = MMC(max_iter=1).fit(X, y)
    assert (warned[0].message.code, model.n_iter_, model.converged_) == ("not_converged", 1, False)


# --------------------------------------------------------------------------------------------------------------- LMNN


def test_lmnn_is_the_printed_objective_and_its_gradient(rng):
    X, y = noisy(rng, 16)
    rows, targets = target_neighbors(X, y, 2)
    A = np.eye(2) + 0.1 * rng.normal(size=(2, 2))

    def distance(i, j):
        return np.linalg.norm(A @ (X[i] - X[j])) ** 2

    printed = 0.7 * sum(distance(i, j) for i, j in zip(rows, targets))
    for (i, j), impostor in itertools.product(zip(rows, targets), range(16)):
        if y[impostor] != y[i]:
            printed += 0.3 * max(0, 1 + distance(i, j) - distance(i, impostor))
    value, gradient = lmnn_objective(A, X, y, rows, targets, 0.3)
    assert value == pytest.approx(printed)
    slope = approx_fprime(A.ravel(), lambda flat: lmnn_objective(flat.reshape(2, 2), X, y, rows, targets, 0.3)[0], 1e-7)
    assert_allclose(gradient.ravel(), slope, rtol=1e-4, atol=1e-4)


def test_target_neighbors_are_the_nearest_of_the_class(rng):
    X, y = noisy(rng, 12)
    rows, targets = target_neighbors(X, y, 2)
    for i in range(12):
        mates = [j for j in range(12) if j != i and y[j] == y[i]]
        nearest = sorted(mates, key=lambda j: np.linalg.norm(X[i] - X[j]))[:2]
        assert set(targets[rows == i]) == set(nearest)


def test_lmnn_lowers_its_objective_and_finds_the_relevant_feature(rng):
    X, y = noisy(rng)
    model = LMNN().fit(X, np.where(np.arange(60) < 40, y, -1))
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[0] > 3 * lengths[1]
    assert (np.diff(model.history_.objective) < 0).all()
    assert not model.history_.maximize
    assert_array_equal(model.history_.iterations, np.arange(model.n_iter_ + 1))
    assert model.history_.objective[-1] == model.objective_
    assert model.converged_


def test_lmnn_needs_labels(rng):
    X, y = noisy(rng)
    with pytest.raises(InputError, match="two labelled rows of each") as raised:
        LMNN().fit(X, np.where(np.arange(60) < 2, y, -1))
    assert raised.value.code == "too_few_labels"
    with pytest.raises(InputError, match="requires y") as raised:
        LMNN().fit(X)
    assert raised.value.code == "labels_required"


def test_a_warning_says_that_lmnn_did_not_converge(rng):
    X, y = noisy(rng)
    with pytest.warns(NotConvergedWarning, match="LMNN did not converge: L-BFGS stopped after 2 iterations") as warned:
        model = LMNN(max_iter=2).fit(X, y)
    assert (warned[0].message.code, model.n_iter_, model.converged_) == ("not_converged", 2, False)


# ---------------------------------------------------------------------------------------------------------- MPCKMeans


def test_mpckmeans_is_the_printed_objective(rng):
    X = rng.normal(size=(12, 2))
    pairs = PairwiseConstraints([(0, 1), (2, 3)], [(4, 5), (0, 6)], 12)
    problem, labels = _PairObjective(X, pairs, 0.7, np.ones(12)), rng.randint(2, size=12)
    centers, metrics = rng.normal(size=(2, 2)), rng.uniform(0.5, 2, size=(2, 2))
    span = (X.max(axis=0) - X.min(axis=0)) ** 2
    printed = sum(
        ((X[i] - centers[c]) ** 2 * metrics[c]).sum() - np.log(metrics[c]).sum() for i, c in enumerate(labels)
    )
    for i, j in pairs.must_link:
        if labels[i] != labels[j]:
            printed += 0.7 * 0.5 * ((X[i] - X[j]) ** 2 * (metrics[labels[i]] + metrics[labels[j]])).sum()
    for i, j in pairs.cannot_link:
        if labels[i] == labels[j]:
            printed += 0.7 * ((span - (X[i] - X[j]) ** 2) * metrics[labels[i]]).sum()
    assert problem.objective(labels, centers, metrics) == pytest.approx(printed)


def test_the_cost_of_a_row_is_its_part_of_the_objective(rng):
    """Moving one row changes the objective by the difference of its costs."""
    X = rng.normal(size=(12, 2))
    pairs = PairwiseConstraints.from_labels(np.arange(12) % 3).sample(25, random_state=0)
    problem, labels = _PairObjective(X, pairs, 0.7, np.ones(12)), rng.randint(3, size=12)
    centers, metrics = rng.normal(size=(3, 2)), rng.uniform(0.5, 2, size=(3, 2))
    for i in range(12):
        costs = penalized_distances(X, centers, metrics)[i] + 0.7 * problem.violation_costs(i, labels, metrics)
        values = []
        for c in range(3):
            moved = labels.copy()
            moved[i] = c
            values.append(problem.objective(moved, centers, metrics))
        assert_allclose(np.diff(costs), np.diff(values))


def test_a_row_with_a_weight_is_as_many_equal_rows(rng):
    """Groups of must-links, of which the two that are largest by weight are the first centres, contain all copies."""
    X, _ = noisy(rng)
    counts = rng.randint(1, 5, size=len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    must = [(i, i + 2) for i in range(20)]
    starts = np.cumsum(counts) - counts
    copies = [(row, row + 1) for row in np.flatnonzero(rows[1:] == rows[:-1]) if rows[row] < 22]
    pairs = PairwiseConstraints(must, n_samples=len(X))
    copied_pairs = PairwiseConstraints([*((starts[i], starts[j]) for i, j in must), *copies], n_samples=len(rows))
    model = MPCKMeans(2, weight=0.0, random_state=0)  # violated pairs would count once for all copies
    copied = clone(model).fit(X[rows], constraints=copied_pairs)

    weighted = model.fit(X, sample_weight=counts, constraints=pairs)

    assert_array_equal(weighted.labels_[rows], copied.labels_)
    assert_allclose(weighted.cluster_centers_, copied.cluster_centers_)
    assert_allclose(weighted.metrics_, copied.metrics_)
    assert weighted.objective_ == pytest.approx(copied.objective_)
    assert np.abs(weighted.cluster_centers_ - clone(model).fit(X, constraints=pairs).cluster_centers_).max() > 0.01


def test_mpckmeans_never_increases_its_objective_and_satisfies_pairs(rng):
    X, y = noisy(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.4, random_state=0)
    model = MPCKMeans(2, random_state=0).fit(X, constraints=pairs)
    values = model.history_.objective
    assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()
    assert not model.history_.maximize
    assert (len(values), values[-1]) == (model.n_iter_, model.objective_)
    assert model.converged_
    plain = KMeans(2, n_init=5, random_state=0).fit(X).labels_
    assert adjusted_rand_index(y, model.labels_) > adjusted_rand_index(y, plain) + 0.3
    assert pairs.violations(model.labels_).n_pairs < 0.1 * pairs.n_pairs
    assert (model.metrics_[:, 0] > model.metrics_[:, 1]).all()
    assert (model.predict(X) == model.labels_).mean() > 0.8


def test_a_warning_says_that_mpckmeans_did_not_converge(rng):
    with pytest.warns(NotConvergedWarning, match="MPCKMeans did not converge within max_iter=1 iterations") as warned:
        model = MPCKMeans(2, max_iter=1, random_state=0).fit(noisy(rng)[0])
    assert (warned[0].message.code, model.n_iter_, model.converged_) == ("not_converged", 1, False)


def test_without_pairs_and_with_equal_feature_scales_it_is_close_to_k_means(rng):
    X = np.repeat(8 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))
    model = MPCKMeans(3, random_state=0).fit(X)
    assert adjusted_rand_index(model.labels_, KMeans(3, n_init=5, random_state=0).fit(X).labels_) == 1


# --------------------------------------------------------------------------------------------------- transductive SVM


def test_switching_labels_lowers_their_slacks(rng):
    signs, slack = np.where(np.arange(20) < 10, 1, -1), 3 * rng.uniform(size=20)
    known = np.arange(20) % 5 == 0
    switched = switch_labels(signs, known, slack)
    moved = switched != signs
    assert moved.any()
    assert not moved[known].any()
    assert (switched == 1).sum() == 10
    after = np.where(moved, np.maximum(0, 2 - slack), slack)
    assert after.sum() < slack.sum()
    assert switch_labels(signs, known, np.full(20, 0.9)) is None


def test_the_share_of_positive_labels_is_kept():
    assert_array_equal(label_highest(np.array([0.1, 0.9, 0.5, 0.3]), 0.5), [-1, 1, 1, -1])
    assert_array_equal(label_highest(np.array([0.1, 0.9]), 0.0), [-1, 1])


def test_with_all_rows_labelled_it_is_a_support_vector_machine(rng):
    X, y = noisy(rng)
    model, machine = TransductiveSVM().fit(X, y), SVC(kernel="linear").fit(X, y)
    assert_array_equal(model.predict(X), machine.predict(X))
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * machine.decision_function(X))
    printed = 0.5 * np.sum(machine.coef_**2) + slack.sum()
    # One machine for each of the two classes; both libraries stop at a tolerance of 1e-3.
    assert_allclose(model.history_.objective, [2 * printed], rtol=1e-3)
    assert (model.n_iter_, model.converged_) == (1, True)


def test_unlabelled_rows_help(rng):
    """One labelled row per class, away from the centre of the class, misleads the inductive machine."""
    y = np.arange(200) % 2
    X = np.column_stack([4.0 * y + 0.5 * rng.normal(size=200), 0.5 * rng.normal(size=200)])
    X[0], X[1] = (0.5, -3.0), (3.0, 3.0)
    some = np.full(200, -1)
    some[:2] = y[:2]
    model = TransductiveSVM().fit(X, some)
    transductive = (model.transduction_ == y).mean()
    inductive = (SVC(kernel="linear").fit(X[:2], y[:2]).predict(X) == y).mean()
    assert transductive > max(inductive, 0.98)
    assert model.converged_
    assert_allclose(model.history_["unlabeled_weight"], [0.001, 0.004, 0.016, 0.064, 0.256, 1])
    assert model.n_iter_ > len(model.history_.objective)


def test_a_warning_says_that_labels_could_still_be_switched(fixed_rng):
    X, some = fixed_rng.normal(size=(100, 5)), np.where(np.arange(100) < 6, np.arange(100) % 2, -1)
    assert TransductiveSVM(10).fit(X, some).converged_
    with pytest.warns(NotConvergedWarning, match="after max_switches=1 rounds") as warned:
        model = TransductiveSVM(10, max_switches=1).fit(X, some)
    assert (warned[0].message.code, model.converged_) == ("not_converged", False)


@pytest.mark.parametrize(
    ("y", "code", "words"),
    [
        (np.full(60, -1), "too_few_labels", "y has no labels, only -1"),
        (np.zeros(60), "too_few_labels", "at least two classes"),
        (None, "labels_required", "requires y"),
    ],
)
def test_bad_labels_raise_an_error(y, code, words, rng):
    with pytest.raises(InputError, match=words) as raised:
        TransductiveSVM().fit(noisy(rng)[0], y)
    assert raised.value.code == code


def test_mpckmeans_warns_of_clusters_without_rows():
    with pytest.warns(FiedlerWarning, match="only 2 of the 4 clusters contain any rows"):
        MPCKMeans(4, random_state=0).fit(np.repeat([[0.0, 0], [5, 5]], 8, axis=0))


def test_transductive_svm_does_not_draw_from_the_global_generator(rng):
    classes = np.arange(30) // 15
    X, y = rng.normal(size=(30, 2)) + 3 * classes[:, None], np.where(np.arange(30) % 3, -1, classes)
    before = np.random.get_state()  # noqa: NPY002

    TransductiveSVM().fit(X, y)

    assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert np.random.get_state()[2] == before[2]  # noqa: NPY002
