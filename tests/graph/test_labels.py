import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph, LabelGraph, LapGMM, LaplacianEigenmaps
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.core.sparse import to_scipy
from fiedler.graph import resolvent
from fiedler.graph.labels import known_labels
from fiedler.metrics import clustering_accuracy, modularity, normalized_cut, ratio_cut

Y = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])


@pytest.fixture
def X(rng):
    return rng.normal(size=(9, 3))


def test_weights_are_the_printed_formula(X):
    """[lpi, Eq. 5]: W_ij = 1/n_l within class l, rows sum to one, the self-loop included."""
    graph = LabelGraph().build(X, Y)
    printed = np.array([[1 / np.sum(Y[i] == Y) if Y[i] == Y[j] else 0.0 for j in range(9)] for i in range(9)])
    assert_allclose(graph.weights.toarray() + np.diag(graph.loops), printed)
    assert_allclose(graph.degrees, 1)
    assert_allclose(graph.laplacian().toarray(), np.eye(9) - printed)
    assert_allclose(graph.laplacian("symmetric").toarray(), np.eye(9) - printed)
    assert_allclose(graph.laplacian("random_walk").toarray(), np.eye(9) - printed)


def test_self_loops_leave_the_null_space_exact(X):
    pairs = smallest_eigenpairs(LabelGraph().build(X, Y), 5)
    assert_allclose(pairs.values, [0, 0, 0, 1, 1], atol=1e-12)


def test_known_labels_add_and_remove_edges_of_the_neighbours(X):
    y = np.array([0, 0, -1, 1, -1, -1, -1, -1, 1])
    base = KNNGraph(3).build(X)
    graph = LabelGraph(base, strength=2.0).build(X, y)
    W, B = graph.weights.toarray(), base.weights.toarray()
    clique = 2.0 * np.asarray(base.degrees).mean() / 2
    for i in range(9):
        for j in range(i):
            known = y[i] >= 0 and y[j] >= 0
            expected = 0 if known and y[i] != y[j] else B[i, j] + (clique if known else 0)
            assert W[i, j] == pytest.approx(expected)
    assert_allclose(graph.loops, np.where(y >= 0, clique, 0))


def test_without_strength_edges_are_only_removed(X):
    unknown = LabelGraph(KNNGraph(3), strength=0).build(X, np.full(9, -1))
    assert_allclose(unknown.weights.toarray(), KNNGraph(3).build(X).weights.toarray())


def test_labels_may_be_names_and_new_points_use_the_base(X):
    names = LabelGraph().build(X, [f"class {c}" for c in Y])
    assert_allclose(names.weights.toarray(), LabelGraph().build(X, Y + 10).weights.toarray())
    recipe = LabelGraph(KNNGraph(2))
    graph = recipe.build(X, np.where(Y == 1, -1, Y))
    assert_allclose(recipe.link(X[:2] + 0.1, X, graph).toarray(), KNNGraph(2).link(X[:2] + 0.1, X, graph).toarray())


def test_loops_survive_a_file(X, tmp_path):
    graph = LabelGraph().build(X, Y)
    graph.save(tmp_path / "graph.safetensors")
    again = AffinityGraph.load(tmp_path / "graph.safetensors")
    assert_array_equal(again.loops, graph.loops)
    assert_array_equal(again.degrees, graph.degrees)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("base", [None, KNNGraph(3)])
def test_back_ends_agree(X, foreign, dtype, base):
    X, recipe = X.astype(dtype), LabelGraph(base)
    host, device = recipe.build(X, Y), recipe.build(foreign(X), Y)
    assert to_scipy(device.weights).dtype == dtype
    assert_allclose(to_scipy(device.weights).toarray(), host.weights.toarray(), rtol=1e-5)
    assert_allclose(to_numpy(device.degrees), host.degrees, rtol=1e-5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "built from labels"),
        (Y[:4], "y has 4 entries"),
        (np.where(Y == 0, -1, Y), "3 rows have no label and would be isolated; set base="),
    ],
)
def test_missing_labels_raise(X, y, message):
    with pytest.raises(ValueError, match=message):
        LabelGraph().build(X, y)


def test_unknown_is_minus_one_for_labels_of_every_type(X):
    base, y = KNNGraph(3), np.where(Y == 1, -1, Y)
    expected = LabelGraph(base).build(X, y).weights.toarray()
    names = [f"class {c}" if c >= 0 else -1 for c in y]
    for labels in (y.astype(object), y.astype(float), y.tolist(), names, np.array(names, dtype=object)):
        assert_allclose(LabelGraph(base).build(X, labels).weights.toarray(), expected)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, float("nan")])
def test_missing_labels_are_unknown_whatever_their_type(X, missing):
    base, y = KNNGraph(3), np.where(Y == 1, -1, Y)
    expected = LabelGraph(base).build(X, y).weights.toarray()
    numbers, names = [int(c) if c >= 0 else missing for c in y], [f"class {c}" if c >= 0 else missing for c in y]
    of_pandas = pd.Series(y).where(y >= 0)
    for labels in (numbers, np.array(numbers, dtype=object), names, of_pandas, of_pandas.astype("Int64")):
        assert_allclose(LabelGraph(base).build(X, labels).weights.toarray(), expected)


def test_the_word_nan_is_a_class():
    known, labels = known_labels(["nan", "b", None], 3)
    assert known.tolist() == [True, True, False]
    assert labels.tolist() == ["nan", "b"]


def test_self_loops_count_as_weight_inside_clusters(X):
    """A partition into the classes cuts no weight."""
    graph = LabelGraph().build(X, Y)
    assert ratio_cut(graph, Y) == pytest.approx(0, abs=1e-12)
    assert normalized_cut(graph, Y) == pytest.approx(0, abs=1e-12)
    shares = np.bincount(Y) / 9
    assert modularity(graph, Y) == pytest.approx(1 - np.sum(shares**2))
    P = np.random.RandomState(0).dirichlet(np.ones(3), size=9)
    assert_allclose(resolvent(P, graph, 0.8).sum(axis=1), 1)
    W = graph.weights.toarray() + np.diag(graph.loops)
    assert_allclose(resolvent(P, graph, 0.8), 0.2 * np.linalg.inv(np.eye(9) - 0.8 * W) @ P, atol=1e-7)


def test_without_a_base_new_points_raise(X):
    with pytest.raises(ValueError, match="pass a base to LabelGraph"):
        LabelGraph().link(X, X, LabelGraph().build(X, Y))
    assert LabelGraph(strength=0).build(X, Y).n_edges == 0


def test_estimators_pass_labels_to_the_recipe(fixed_rng):
    y = np.repeat([0, 1], 40)
    X = fixed_rng.normal(size=(80, 2)) + 1.5 * y[:, None]
    partial = np.where(np.arange(80) % 2, y, -1)
    graph = LabelGraph(KNNGraph(8), strength=5.0)
    coordinate = LaplacianEigenmaps(1, graph=graph).fit(X, partial).embedding_[:, 0]
    assert clustering_accuracy(y, (coordinate > np.median(coordinate)).astype(int)) > 0.95
    assert LapGMM(2, graph, random_state=0).fit(X, partial).graph_.loops is not None
