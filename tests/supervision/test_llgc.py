import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.semi_supervised import LabelSpreading

from fiedler import LLGC, AffinityGraph, FullGraph, KNNGraph
from fiedler.core.backend import to_numpy
from fiedler.datasets import two_moons
from fiedler.graph.smoothing import spread
from fiedler.supervision import PairwiseConstraints, spreading
from fiedler.supervision.llgc import class_mass
from fiedler.supervision.spreading import spread_labels


def closed_form(W, Y, alpha):
    """[Zhou et al. 2004, Eq. 4] F = (I - αS)⁻¹ Y."""
    degrees = W.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    return np.linalg.solve(np.eye(len(W)) - alpha * root[:, None] * W * root[None, :], Y)


def three_groups(rng, n=90):
    y = np.arange(n) % 3
    return 5 * np.eye(3)[y] + rng.normal(size=(n, 3)), y


def some_of(y, every=10):
    return np.where(np.arange(len(y)) % every < 3, y, -1)


@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_spreading_is_the_closed_form(alpha, uneven_graph, rng):
    """Isolated nodes and several components included."""
    Y = rng.uniform(size=(uneven_graph.n_nodes, 3))
    printed = closed_form(uneven_graph.weights.toarray(), Y, alpha)
    assert_allclose(spread(Y, uneven_graph, alpha, tol=1e-12).solution, printed, rtol=1e-8)
    assert_allclose(spread_labels(Y, uneven_graph, alpha, tol=1e-6, max_iter=9).solution, printed, rtol=1e-10)


def test_spreading_is_the_limit_of_the_iteration(connected_graph, rng):
    """F ← αSF + (1-α)Y."""
    W, alpha = connected_graph.weights.toarray(), 0.8
    S = W / np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1)))
    Y = rng.uniform(size=(len(W), 2))
    F = Y
    for _ in range(500):
        F = alpha * S @ F + (1 - alpha) * Y
    assert_allclose((1 - alpha) * spread(Y, connected_graph, alpha).solution, F, rtol=1e-6)


def test_it_equals_scikit_learns_label_spreading_on_the_same_kernel(rng):
    """An rbf kernel, whose diagonal scikit-learn keeps out of S as we do."""
    X, y = three_groups(rng)
    some = some_of(y)
    gamma, alpha = 0.05, 0.5
    theirs = LabelSpreading(kernel="rbf", gamma=gamma, alpha=alpha, max_iter=3000, tol=1e-14).fit(X, some)
    ours = LLGC(FullGraph(bandwidth=(0.5 / gamma) ** 0.5), alpha, normalize=None).fit(X, some)
    assert_allclose(ours.label_distributions_, theirs.label_distributions_, atol=1e-6)
    assert_array_equal(ours.transduction_, theirs.transduction_)


def test_class_masses_become_the_shares_of_the_labels(rng):
    F, shares = rng.uniform(size=(20, 3)), np.array([0.5, 0.3, 0.2])
    assert_allclose(class_mass(F, shares).sum(axis=0), shares)
    X, y = three_groups(rng)
    even = LLGC().fit(X, some_of(y))
    assert (even.transduction_ == y).mean() > 0.97


def test_conjugate_gradients_give_what_the_dense_solve_gives(rng, monkeypatch):
    X, y = three_groups(rng)
    dense = LLGC(tol=1e-10).fit(X, some_of(y))
    monkeypatch.setattr(spreading, "CLOSED_UP_TO", 10)
    sparse = LLGC(tol=1e-10).fit(X, some_of(y))
    assert sparse.n_iter_ > 1 == dense.n_iter_
    assert sparse.converged_
    assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=1e-7)


def test_new_points_take_their_neighbours_classes_and_seen_ones_their_own(rng):
    X, y = three_groups(rng)
    model = LLGC(KNNGraph(6)).fit(X, some_of(y))
    assert_array_equal(model.predict(X), model.transduction_)
    assert_allclose(model.predict_proba(X), model.label_distributions_)
    fresh = 5 * np.eye(3)[y] + rng.normal(size=X.shape)
    assert (model.predict(fresh) == y).mean() > 0.95
    assert_allclose(model.predict_proba(fresh).sum(axis=1), 1)


@pytest.mark.parametrize("names", [np.array(["ant", "bee", "cow"]), np.array(["ant", "bee", "cow"], dtype=object)])
def test_names_are_classes(names, rng):
    X, y = three_groups(rng)
    some = some_of(y)
    given = (
        np.where(some < 0, "-1", names[some])
        if names.dtype != object
        else np.array([-1 if i < 0 else names[i] for i in some], dtype=object)
    )
    by_name, by_number = LLGC().fit(X, given), LLGC().fit(X, some)
    assert_array_equal(by_name.classes_, names.astype(str))
    assert_array_equal(by_name.transduction_, names.astype(str)[by_number.transduction_])


def test_graphs_and_precomputed_affinities(rng):
    X, y = three_groups(rng)
    graph = KNNGraph(6).build(X)
    from_rows = LLGC(KNNGraph(6)).fit(X, some_of(y))
    for model, data in ((LLGC(), graph), (LLGC("precomputed"), graph.weights), (LLGC(graph), X)):
        assert_array_equal(model.fit(data, some_of(y)).transduction_, from_rows.transduction_)
    with pytest.raises(ValueError, match="fitted on a graph"):
        LLGC().fit(graph, some_of(y)).predict(X)


@pytest.mark.parametrize("names", [np.array([4, 7]), np.array(["a", "b"])])
def test_a_component_without_a_label_stays_undecided_and_says_so(names):
    W = sp.block_diag([np.ones((3, 3)) - np.eye(3)] * 3).toarray()
    y = np.full(9, "-1" if names.dtype.kind == "U" else -1)
    y[0], y[3] = names
    with pytest.warns(UserWarning, match=r"no label reaches 3 row\(s\)"):
        model = LLGC("precomputed").fit(W, y)
    assert_array_equal(model.transduction_[:6], np.repeat(names, 3))
    assert [str(label) for label in model.transduction_[6:]] == ["-1"] * 3
    assert (model.label_distributions_[6:] == 0).all()


def test_new_points_near_an_undecided_component_are_undecided_too(rng):
    X = np.concatenate([rng.normal(size=(20, 2)), 50 + rng.normal(size=(20, 2))])
    y = np.full(40, -1)
    y[:2] = 0, 1
    with pytest.warns(UserWarning, match="no label reaches 20"):
        model = LLGC(KNNGraph(5)).fit(X, y)
    near = 50 + rng.normal(size=(3, 2))
    assert_array_equal(model.predict(near), [-1, -1, -1])
    assert_allclose(model.predict_proba(near), 0.5)


def test_all_points_labelled_and_one_class_only(rng):
    X, y = three_groups(rng)
    assert (LLGC(alpha=0.5).fit(X, y).transduction_ == y).all()
    one = LLGC(KNNGraph(connect="mst")).fit(X, np.where(np.arange(90) == 0, 5, -1))
    assert (one.transduction_ == 5).all()


def test_noisy_labels_may_be_overruled(rng):
    X, y = three_groups(rng)
    wrong = y.copy()
    wrong[0] = (y[0] + 1) % 3
    assert LLGC(alpha=0.99).fit(X, wrong).transduction_[0] == y[0]


@pytest.mark.parametrize(
    ("options", "y", "words"),
    [
        ({}, np.full(90, -1), "no label at all"),
        ({}, None, "requires y"),
        ({}, np.zeros(5), "hold 5 entries, but 90"),
        ({"alpha": 1.0}, np.zeros(90), "between 0 and 1"),
        ({"alpha": 0.0}, np.zeros(90), "alpha"),
        ({"normalize": "mass"}, np.zeros(90), "normalize='mass'"),
        ({}, np.linspace(0, 1, 90), "Unknown label type|continuous"),
        ({"graph": FullGraph("dot", signed=True)}, np.arange(90) % 3, "nonnegative weights"),
    ],
)
def test_what_cannot_be_done_ends_in_a_sentence(options, y, words, rng):
    with pytest.raises(ValueError, match=words):
        LLGC(**options).fit(three_groups(rng)[0], y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [90, 600])
def test_back_ends_agree(foreign, dtype, n, rng):
    X, y = three_groups(rng, n)
    X = X.astype(dtype)
    here, there = (LLGC().fit(rows, some_of(y, 30)) for rows in (X, foreign(X)))
    assert_allclose(to_numpy(there.label_distributions_), here.label_distributions_, atol=2e-3)
    assert str(to_numpy(there.label_distributions_).dtype) == dtype
    assert (there.predict(foreign(X[::7])) == here.predict(X[::7])).mean() > 0.99


def test_weights_of_a_signed_graph_from_a_matrix_are_refused():
    W = np.array([[0, 1.0, -1], [1, 0, 1], [-1, 1, 0]])
    with pytest.raises(ValueError, match="nonnegative weights"):
        LLGC().fit(AffinityGraph.from_matrix(W, signed=True), [0, -1, 1])


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99])
def test_labels_reach_the_middle_of_a_long_path(alpha):
    """Where F is far below the tolerance: with default options, every row as by the closed form."""
    n = 1000
    W = sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], format="csr")
    y = np.full(n, -1)
    y[0], y[-1] = 0, 1
    model = LLGC(alpha=alpha, normalize=None).fit(AffinityGraph.from_matrix(W), y)
    Y = np.zeros((n, 2))
    Y[0, 0] = Y[-1, 1] = 1
    exact = closed_form(W.toarray(), Y, alpha)
    inside = np.r_[:480, 520:1000]
    assert_array_equal(model.transduction_[inside], exact.argmax(axis=1)[inside])
    assert (model.transduction_ >= 0).all()
    near = np.r_[:100, 900:1000]
    found = spread_labels(Y, AffinityGraph.from_matrix(W), alpha, tol=1e-8, max_iter=1000).solution
    assert_allclose(found[near].max(axis=1), exact[near].max(axis=1), rtol=0.05)


@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_far_rows_are_decided_as_by_the_closed_form(alpha, monkeypatch):
    """Two labels on two moons of two thousand points, where shares differ by thirty orders of magnitude."""
    X, y = two_moons(n_samples=2000, noise=0.05, random_state=0)
    some = np.full(2000, -1)
    some[[np.argmax(y == 0), np.argmax(y == 1)]] = 0, 1
    graph = KNNGraph(9, connect="mst").build(X)
    found = LLGC(graph, alpha).fit(X, some).transduction_
    monkeypatch.setattr(spreading, "CLOSED_UP_TO", 3000)
    assert_array_equal(found, LLGC(graph, alpha).fit(X, some).transduction_)
    assert (found == y).mean() > 0.98


def test_pairs_are_for_graphs_that_learn(rng):
    X, y = three_groups(rng)
    with pytest.raises(ValueError, match="LLGC spreads labels"):
        LLGC().fit(X, some_of(y), constraints=PairwiseConstraints([(0, 3)], [], 90))
