import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.semi_supervised import LabelSpreading

from fiedler import LLGC, AffinityGraph, FullGraph, KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.datasets import two_moons
from fiedler.errors import FiedlerWarning, InputError
from fiedler.graph.smoothing import spread
from fiedler.supervision import PairwiseConstraints
from fiedler.supervision import llgc as spreading
from fiedler.supervision.llgc import normalize_class_mass, spread_labels


def closed_form(W, Y, alpha):
    """[Zhou et al. 2004, Eq. 4] F = (I - αS)⁻¹ Y."""
    degrees = W.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    return np.linalg.solve(np.eye(len(W)) - alpha * root[:, None] * W * root[None, :], Y)


def three_groups(rng, n=90):
    y = np.arange(n) % 3
    return 5 * np.eye(3)[y] + rng.normal(size=(n, 3)), y


def partial_labels(y, every=10):
    return np.where(np.arange(len(y)) % every < 3, y, -1)


@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_spreading_equals_the_closed_form(alpha, uneven_graph, rng):
    """Including isolated nodes and several components."""
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


def test_agrees_with_label_spreading_of_scikit_learn(rng):
    """With an RBF kernel, whose diagonal scikit-learn leaves out of S as well."""
    X, y = three_groups(rng)
    some = partial_labels(y)
    gamma, alpha = 0.05, 0.5
    reference = LabelSpreading(kernel="rbf", gamma=gamma, alpha=alpha, max_iter=3000, tol=1e-14).fit(X, some)
    model = LLGC(FullGraph(bandwidth=(0.5 / gamma) ** 0.5), alpha, normalize=None).fit(X, some)
    assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-6)
    assert_array_equal(model.transduction_, reference.transduction_)


def test_class_masses_become_the_proportions_of_the_labels(rng):
    F, proportions = rng.uniform(size=(20, 3)), np.array([0.5, 0.3, 0.2])
    assert_allclose(normalize_class_mass(F, proportions).sum(axis=0), proportions)
    X, y = three_groups(rng)
    model = LLGC().fit(X, partial_labels(y))
    assert (model.transduction_ == y).mean() > 0.97


def test_conjugate_gradients_agree_with_the_dense_solve(rng, monkeypatch):
    X, y = three_groups(rng)
    dense = LLGC(tol=1e-10).fit(X, partial_labels(y))
    monkeypatch.setattr(spreading, "DENSE_SOLVE_MAX_ROWS", 10)
    sparse = LLGC(tol=1e-10).fit(X, partial_labels(y))
    assert sparse.n_iter_ > 1 == dense.n_iter_
    assert sparse.converged_
    assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=1e-7)


def test_new_points_take_the_classes_of_their_neighbors_and_training_rows_their_own(rng):
    X, y = three_groups(rng)
    model = LLGC(KNNGraph(6)).fit(X, partial_labels(y))
    assert_array_equal(model.predict(X), model.transduction_)
    assert_allclose(model.predict_proba(X), model.label_distributions_)
    X_new = 5 * np.eye(3)[y] + rng.normal(size=X.shape)
    assert (model.predict(X_new) == y).mean() > 0.95
    assert_allclose(model.predict_proba(X_new).sum(axis=1), 1)


@pytest.mark.parametrize("names", [np.array(["ant", "bee", "cow"]), np.array(["ant", "bee", "cow"], dtype=object)])
def test_classes_may_be_strings(names, rng):
    X, y = three_groups(rng)
    some = partial_labels(y)
    y_names = (
        np.where(some < 0, "-1", names[some])
        if names.dtype != object
        else np.array([-1 if i < 0 else names[i] for i in some], dtype=object)
    )
    by_name, by_number = LLGC().fit(X, y_names), LLGC().fit(X, some)
    assert_array_equal(by_name.classes_, names.astype(str))
    assert_array_equal(by_name.transduction_, names.astype(str)[by_number.transduction_])


def test_graphs_and_precomputed_affinities(rng):
    X, y = three_groups(rng)
    graph = KNNGraph(6).build(X)
    from_rows = LLGC(KNNGraph(6)).fit(X, partial_labels(y))
    for model, data in ((LLGC(), graph), (LLGC("precomputed"), graph.weights), (LLGC(graph), X)):
        assert_array_equal(model.fit(data, partial_labels(y)).transduction_, from_rows.transduction_)
    with pytest.raises(ValueError, match="fitted on a graph"):
        LLGC().fit(graph, partial_labels(y)).predict(X)


@pytest.mark.parametrize("names", [np.array([4, 7]), np.array(["a", "b"])])
def test_component_without_a_label_stays_undecided_with_a_warning(names):
    W = sp.block_diag([np.ones((3, 3)) - np.eye(3)] * 3).toarray()
    y = np.full(9, "-1" if names.dtype.kind == "U" else -1)
    y[0], y[3] = names
    with pytest.warns(FiedlerWarning, match=r"no label reaches 3 row\(s\)") as caught:
        model = LLGC("precomputed").fit(W, y)
    assert (caught[0].message.code, caught[0].message.fields) == ("undecided_rows", {"n_undecided": 3})
    assert caught[0].filename == __file__
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


def test_all_rows_labeled_and_a_single_class(rng):
    X, y = three_groups(rng)
    assert (LLGC(alpha=0.5).fit(X, y).transduction_ == y).all()
    single = LLGC(KNNGraph(connect="mst")).fit(X, np.where(np.arange(90) == 0, 5, -1))
    assert (single.transduction_ == 5).all()


def test_noisy_labels_can_change(rng):
    X, y = three_groups(rng)
    wrong = y.copy()
    wrong[0] = (y[0] + 1) % 3
    assert LLGC(alpha=0.99).fit(X, wrong).transduction_[0] == y[0]


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, np.full(90, -1), "contains no label, only -1"),
        ({}, None, "requires y"),
        ({}, np.zeros(5), "has 5 entries, but 90"),
        ({"alpha": 1.0}, np.zeros(90), "between 0 and 1"),
        ({"alpha": 0.0}, np.zeros(90), "alpha"),
        ({"normalize": "mass"}, np.zeros(90), "normalize='mass'"),
        ({}, np.linspace(0, 1, 90), "Unknown label type|continuous"),
        ({"graph": FullGraph("dot", signed=True)}, np.arange(90) % 3, "non-negative weights"),
    ],
)
def test_invalid_input_raises(options, y, message, rng):
    with pytest.raises(ValueError, match=message):
        LLGC(**options).fit(three_groups(rng)[0], y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [90, 600])
def test_array_libraries_agree(foreign, dtype, n, rng):
    X, y = three_groups(rng, n)
    X = X.astype(dtype)
    model, foreign_model = (LLGC().fit(rows, partial_labels(y, 30)) for rows in (X, foreign(X)))
    assert_allclose(to_numpy(foreign_model.label_distributions_), model.label_distributions_, atol=2e-3)
    assert str(to_numpy(foreign_model.label_distributions_).dtype) == dtype
    assert (foreign_model.predict(foreign(X[::7])) == model.predict(X[::7])).mean() > 0.99


def test_signed_graph_raises():
    W = np.array([[0, 1.0, -1], [1, 0, 1], [-1, 1, 0]])
    with pytest.raises(ValueError, match="non-negative weights"):
        LLGC().fit(AffinityGraph.from_matrix(W, signed=True), [0, -1, 1])


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99])
def test_labels_reach_the_middle_of_a_long_path(alpha):
    """F is far below the tolerance there; with default options every row agrees with the closed form."""
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
    F = spread_labels(Y, AffinityGraph.from_matrix(W), alpha, tol=1e-8, max_iter=1000).solution
    assert_allclose(F[near].max(axis=1), exact[near].max(axis=1), rtol=0.05)


@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_far_rows_agree_with_the_closed_form(alpha, monkeypatch):
    """Two labels on two moons of two thousand points, where the entries of F differ by thirty orders of magnitude."""
    X, y = two_moons(n_samples=2000, noise=0.05, random_state=0)
    some = np.full(2000, -1)
    some[[np.argmax(y == 0), np.argmax(y == 1)]] = 0, 1
    graph = KNNGraph(9, connect="mst").build(X)
    labels = LLGC(graph, alpha).fit(X, some).transduction_
    monkeypatch.setattr(spreading, "DENSE_SOLVE_MAX_ROWS", 3000)
    assert_array_equal(labels, LLGC(graph, alpha).fit(X, some).transduction_)
    assert (labels == y).mean() > 0.98


def test_failed_fit_restores_the_state(rng):
    X, y = three_groups(rng)
    model = LLGC().fit(X, partial_labels(y))
    before = dict(vars(model))
    with pytest.raises(InputError, match="contains no label") as caught:
        model.fit(X[:, :2], np.full(90, -1))
    assert caught.value.code == "too_few_labels"
    assert vars(model) == before


def test_pairs_require_a_graph_that_learns(rng):
    X, y = three_groups(rng)
    with pytest.raises(ValueError, match="LLGC spreads labels"):
        LLGC().fit(X, partial_labels(y), constraints=PairwiseConstraints([(0, 3)], [], 90))
