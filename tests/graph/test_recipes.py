import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.preprocessing import StandardScaler

from fiedler import AffinityGraph, FullGraph, KNNGraph, RadiusGraph
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import csr_parts, to_scipy
from fiedler.errors import InputError
from fiedler.graph import as_affinity

RECIPES = [KNNGraph(6), RadiusGraph(1.5), FullGraph(bandwidth=1.0)]


@pytest.fixture
def points(rng):
    return rng.normal(size=(60, 3))


@pytest.fixture
def directed(points):
    """The 0/1 matrix of the 4 nearest neighbours, before symmetrisation."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    A = np.zeros((60, 60))
    np.put_along_axis(A, np.argsort(distances, axis=1)[:, 1:5], 1, axis=1)
    return A


@pytest.mark.parametrize(
    ("rule", "combine"), [("union", np.maximum), ("mutual", np.minimum), ("mean", lambda A, B: (A + B) / 2)]
)
def test_symmetrisation_is_the_printed_rule(rule, combine, points, directed, backend):
    graph = KNNGraph(4, symmetrize=rule).build(backend(points))

    assert_array_equal(to_scipy(graph.weights).toarray(), combine(directed, directed.T))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_and_back_end_are_kept(recipe, dtype, points, backend):
    X = backend(points.astype(dtype))

    graph = clone(recipe).set_params(weight="heat", bandwidth=1.0).build(X)

    data, indices, _ = csr_parts(graph.weights)
    reference = clone(recipe).set_params(weight="heat", bandwidth=1.0).build(points.astype(dtype))
    assert np.dtype(dtype).name in str(data.dtype)
    assert "int32" in str(indices.dtype)
    assert_allclose(
        to_scipy(graph.weights).toarray(), reference.weights.toarray(), atol=1e-5 if dtype == np.float32 else 1e-9
    )


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: type(r).__name__)
def test_permuted_rows_give_the_permuted_graph(recipe, points, rng):
    order = rng.permutation(60)

    W = recipe.build(points).weights.toarray()

    assert_allclose(recipe.build(points[order]).weights.toarray(), W[np.ix_(order, order)], atol=1e-12)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("weight", ["binary", "heat", "local", "polynomial"])
def test_links_of_new_points_use_the_training_constants(recipe, weight, points, rng, backend):
    """The weights of a new point are computed with the bandwidth and scales of the training data."""
    X_new = rng.normal(size=(7, 3))
    recipe = clone(recipe).set_params(weight=weight)
    graph = recipe.build(points)
    constants, distances = graph.constants, np.linalg.norm(X_new[:, None] - points[None], axis=2)
    scales_new = np.sort(distances, axis=1)[:, 6]
    expected = {
        "binary": np.ones_like(distances),
        "heat": np.exp(-(distances**2) / (2 * (constants.bandwidth or 1) ** 2)),
        "local": np.exp(-(distances**2) / np.outer(scales_new, constants.scales if weight == "local" else np.ones(60))),
        "polynomial": (X_new @ points.T + 1) ** 2,
    }[weight]
    near = {"KNNGraph": distances <= np.sort(distances, axis=1)[:, [5]], "RadiusGraph": distances <= 1.5}
    expected = expected * near.get(type(recipe).__name__, True)

    converted = recipe.build(backend(points))
    W = recipe.link(backend(X_new), backend(points), converted)

    W = to_scipy(W).toarray() if hasattr(W, "nnz") or "sparse" in str(getattr(W, "layout", "")) else to_numpy(W)
    assert_allclose(W, expected, atol=1e-9)


def test_recipes_have_scikit_learn_parameters():
    recipe = KNNGraph(5, weight="heat")

    assert clone(recipe).get_params() == recipe.get_params()
    assert recipe.set_params(n_neighbors=7).n_neighbors == 7
    assert repr(recipe) == "KNNGraph(n_neighbors=7, weight='heat')"


def test_sparse_rows_are_never_densified(monkeypatch):
    """Only one block of similarities is dense at a time."""
    X = sp.random(300, 200_000, density=2e-4, format="csr", random_state=0)
    monkeypatch.setattr("fiedler.core.arrays.BLOCK_BYTES", 300_000)
    sizes = []
    real = sp.csr_array.toarray
    monkeypatch.setattr(
        sp.csr_array, "toarray", lambda self, *a, **k: sizes.append(np.prod(self.shape)) or real(self, *a, **k)
    )

    KNNGraph(5, weight="dot").build(X)

    assert max(sizes) <= 300_000 / 8


# -------------------------------------------------------------------------------------------------------- as_affinity


def test_every_type_of_graph_parameter_gives_the_same_graph(points, directed):
    W = np.maximum(directed, directed.T)
    built = KNNGraph(4).build(points)

    for graph in (
        KNNGraph(4),
        built,
        W,
        sp.csr_array(W),
        sp.csr_matrix(W),
        W.tolist(),
        KNeighborsTransformer(n_neighbors=4),
    ):
        assert_array_equal(as_affinity(graph, points).weights.toarray(), W)
    assert_array_equal(as_affinity("precomputed", W).weights.toarray(), W)
    assert as_affinity(KNNGraph(), built) is built


def test_a_radius_transformer_is_accepted(points):
    graph = as_affinity(RadiusNeighborsTransformer(radius=1.5), points)

    assert_array_equal(graph.weights.toarray(), RadiusGraph(1.5).build(points).weights.toarray())


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (object(), TypeError, "is not a graph; pass a recipe such as KNNGraph"),
        (KNNGraph, TypeError, "is not a graph; pass a recipe such as KNNGraph"),
        (StandardScaler(), TypeError, "does not return a sparse matrix of neighbours"),
        ("knn", ValueError, r"graph='knn' is not known; use 'precomputed', or pass a recipe"),
        (np.eye(4), ValueError, "the graph has 4 nodes, but X has 60 rows; build it on the same rows"),
        (AffinityGraph.from_matrix(np.eye(4)), ValueError, "the graph has 4 nodes, but X has 60 rows"),
    ],
)
def test_invalid_graph_parameters_raise(graph, error, message, points):
    with pytest.raises(error, match=message):
        as_affinity(graph, points)


# ------------------------------------------------------------------------------------------------------ invalid input


@pytest.mark.parametrize("recipe", [KNNGraph(2), RadiusGraph(), FullGraph(bandwidth=1)], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [0, 1], [1, 1]]), "NaN"),
        (np.array([[1.0, np.inf], [0, 1], [1, 1]]), "infinity"),
        (np.zeros((0, 3)), r"0 sample\(s\)|n_samples=0"),
        (np.zeros((1, 3)), r"1 sample\(s\)|n_samples=1"),
        (np.zeros((4, 0)), r"0 feature\(s\)|n_features=0"),
        (np.zeros(5), "1D array|two dimensions"),
        (np.zeros((2, 2, 2)), "dim 3|two dimensions"),
    ],
)
def test_invalid_data_raises_on_every_back_end(recipe, X, message, backend):
    with pytest.raises(ValueError, match=message):
        recipe.build(backend(X))


def test_text_raises():
    with pytest.raises(ValueError, match="could not convert string to float"):
        KNNGraph(1).build([["a", "b"], ["c", "d"]])


@pytest.mark.parametrize("factor", [1e-200, 1e155])
def test_values_whose_squares_leave_the_range_raise(factor, points, backend):
    with pytest.raises(ValueError, match=r"squares (overflow|underflow in) .*float64; scale X (up|down)"):
        KNNGraph(4).build(backend(points * factor))


def test_repeated_entries_of_a_sparse_matrix_are_added_up(points):
    split = sp.coo_array(
        (np.r_[points.ravel(), points.ravel()], np.indices((2, 60, 3)).reshape(3, -1)[1:]), shape=(60, 3)
    )
    for recipe in RECIPES:
        built = recipe.build(sp.csr_array(split, copy=True))
        assert_allclose(built.weights.toarray(), recipe.build(2 * points).weights.toarray(), atol=1e-6)


def test_local_scales_with_a_transformer_come_from_an_exact_search(points):
    transformed = KNNGraph(5, weight="local", method=KNeighborsTransformer(n_neighbors=5)).build(points)

    assert_allclose(transformed.weights.toarray(), KNNGraph(5, weight="local").build(points).weights.toarray())


def test_copies_keep_their_local_weight_in_sparse_single_precision(rng):
    X = np.concatenate([np.tile(rng.uniform(size=(1, 30)), (9, 1)), rng.uniform(size=(20, 30))]).astype(np.float32)

    assert_array_equal(KNNGraph(8, weight="local").build(sp.csr_array(X)).weights.toarray()[:9, :9], 1 - np.eye(9))


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda X: X.half(), "X has dtype torch.float16; convert it to float32 or float64"),
        (lambda X: X + 1j, "X has dtype torch.complex128; convert it to float32 or float64"),
        (lambda X: X.to_sparse_csr(), "sparse tensors are accepted as graphs, not as data"),
    ],
)
def test_unsupported_tensors_raise(convert, message, points):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(ValueError, match=message):
        KNNGraph(4).build(convert(torch.asarray(points)))


def test_integers_are_accepted(points, backend):
    counts = np.round(1000 * points).astype(np.int64)  # without ties

    built = KNNGraph(4, weight="polynomial").build(backend(counts))

    assert_allclose(
        to_scipy(built.weights).toarray(),
        KNNGraph(4, weight="polynomial").build(counts.astype(float)).weights.toarray(),
    )


def test_constant_rows_have_a_binary_graph():
    graph = KNNGraph(3).build(np.ones((10, 4)))

    assert graph.n_nodes == 10
    assert (graph.degrees >= 3).all()


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (KNNGraph(0), "n_neighbors must be an integer of at least 1; got 0"),
        (KNNGraph(2.5), "n_neighbors must be an integer of at least 1; got 2.5"),
        (KNNGraph(60), r"n_neighbors=60 needs more rows than there are \(n_samples=60\)"),
        (KNNGraph(symmetrize="or"), r"symmetrize='or' is not known; choose one of \['union', 'mutual', 'mean'\]"),
        (RadiusGraph(-1), "radius must be a positive number; got -1"),
        (FullGraph(metric="manhattan"), r"metric='manhattan' is not known; choose one of \['euclidean', 'cosine'\]"),
        (KNNGraph(connect="glue"), r"connect='glue' is not known; choose one of \['mst', 'nearest'\]"),
    ],
)
def test_invalid_options_raise(recipe, message, points):
    with pytest.raises(ValueError, match=message):
        recipe.build(points)


def test_a_full_graph_on_too_many_rows_raises(monkeypatch, points):
    monkeypatch.setattr("fiedler.graph.kernels.MAX_FULL_NODES", 50)
    with pytest.raises(ValueError, match=r"FullGraph on 60 rows would have 3,600 weights, .* use KNNGraph"):
        FullGraph().build(points)


@pytest.mark.parametrize("weight", ["heat", "dot", "polynomial", "cosine", "local", "binary"])
def test_self_loops_have_the_weight_of_a_row_with_itself(weight, rng):
    X = rng.uniform(0.1, 1, size=(12, 3))
    plain, looped = (FullGraph(weight, self_loops=loops).build(X) for loops in (False, True))
    itself = {"dot": np.sum(X * X, axis=1), "polynomial": (np.sum(X * X, axis=1) + 1) ** 2}.get(weight, np.ones(12))

    assert plain.loops is None
    assert_allclose(looped.loops, itself, rtol=1e-7)
    assert_allclose(looped.weights.toarray(), plain.weights.toarray())
    assert_allclose(looped.degrees, plain.degrees + itself)


def test_self_loops_are_the_same_on_every_back_end(foreign, rng):
    X, recipe = rng.uniform(0.1, 1, size=(12, 3)), FullGraph("dot", self_loops=True)
    reference, graph = recipe.build(X), recipe.build(foreign(X))
    assert_allclose(to_numpy(graph.loops), reference.loops)
    assert_allclose(to_numpy(graph.degrees), reference.degrees)


@pytest.mark.parametrize("recipe", [FullGraph("heat"), FullGraph("local"), KNNGraph(3, weight="local")], ids=str)
def test_new_points_need_the_constants_of_the_kernel(recipe, points):
    other = AffinityGraph.from_matrix(np.ones((len(points), len(points))))

    with pytest.raises(InputError, match=f"was not built with weight={recipe.weight!r}") as error:
        recipe.link(points[:2], points, other)
    assert error.value.code == "no_kernel_constants"
