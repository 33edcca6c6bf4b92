"""Laplacians and the Hessian operator: their definitions, null spaces and errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.linalg import qr
from sklearn.manifold import LocallyLinearEmbedding

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.errors import InputError
from fiedler.graph import laplacian
from fiedler.graph.neighbors import k_nearest
from fiedler.graph.operators import (
    LAPLACIANS,
    balanced_components,
    extend_affinely,
    hessian,
    n_neighbors_needed,
    spectral_form,
)

GRAPHS = ["uneven_graph", "connected_graph", "signed_graph"]


@pytest.fixture(params=GRAPHS)
def graph(request):
    return request.getfixturevalue(request.param)


def printed(kind, W):
    """[vonLuxburg07, 3.1 and 3.2] entry by entry; an isolated node has a zero row."""
    d = np.abs(W).sum(axis=1)
    L = np.zeros_like(W)
    for i in range(len(W)):
        for j in range(len(W)):
            if kind in ("combinatorial", "signed"):
                L[i, j] = (d[i] if i == j else 0) - W[i, j]
            elif d[i] > 0 and d[j] > 0:
                scale = np.sqrt(d[i] * d[j]) if kind == "symmetric" else d[i]
                L[i, j] = (1 if i == j else 0) - W[i, j] / scale
    return L


@pytest.mark.parametrize("kind", list(LAPLACIANS))
def test_laplacians_are_the_printed_matrices(kind, graph, backend):
    converted = AffinityGraph.from_matrix(backend(graph.weights.toarray()), signed=graph.signed)

    assert_allclose(to_scipy(laplacian(converted, kind)).toarray(), printed(kind, graph.weights.toarray()), atol=1e-15)


@pytest.mark.parametrize("kind", list(LAPLACIANS))
def test_laplacians_are_positive_semidefinite(kind, graph):
    values = np.linalg.eigvals(graph.laplacian(kind).toarray())

    assert_allclose(values.imag, 0, atol=1e-12)
    assert values.real.min() > -1e-12


@pytest.mark.parametrize("name", ["uneven_graph", "connected_graph"])
@pytest.mark.parametrize(
    ("kind", "power"), [("combinatorial", 0), ("signed", 0), ("random_walk", 0), ("symmetric", 0.5)]
)
def test_constants_are_in_the_null_space(name, kind, power, request):
    """L1 = 0, and D^1/2 1 for the symmetric one."""
    graph = request.getfixturevalue(name)

    assert_allclose(graph.laplacian(kind) @ graph.degrees**power, 0, atol=1e-12)


def test_the_signed_laplacian_of_a_nonnegative_graph_is_the_combinatorial_one(uneven_graph):
    assert_allclose(uneven_graph.laplacian("signed").toarray(), uneven_graph.laplacian().toarray())


def test_the_signed_form_sums_over_edges(signed_graph, rng):
    """[Kunegis et al. 2010]  f'Lf = 1/2 sum_ij |w_ij| (f_i - sign(w_ij) f_j)^2."""
    W, f = signed_graph.weights.toarray(), rng.normal(size=8)

    printed = 0.5 * sum(abs(W[i, j]) * (f[i] - np.sign(W[i, j]) * f[j]) ** 2 for i in range(8) for j in range(8))

    assert_allclose(f @ (signed_graph.laplacian("signed") @ f), printed)


@pytest.mark.parametrize("kind", list(LAPLACIANS))
def test_null_vectors_and_bounds_are_exact(kind, graph):
    form = spectral_form(graph, kind)
    matrix = form.matrix.toarray()
    values = np.linalg.eigvalsh(matrix)

    null = form.null_vectors(99)

    assert_allclose(matrix @ null, 0, atol=1e-12)
    assert_allclose(null.T @ null, np.eye(null.shape[1]), atol=1e-12)
    assert np.sum(np.abs(values) < 1e-10) == null.shape[1]
    assert values[-1] <= form.upper + 1e-12


def test_balanced_components_and_their_signs(signed_graph):
    count, component, sign = balanced_components(signed_graph)

    assert count == 2
    assert component.tolist() == [0, 0, 0, 0, -1, -1, -1, 1]
    assert sign[:4].tolist() == [1, 1, -1, -1]


@pytest.mark.parametrize("kind", list(LAPLACIANS))
def test_float32_is_kept(kind, uneven_graph):
    graph = AffinityGraph.from_matrix(uneven_graph.weights.astype(np.float32))

    assert graph.laplacian(kind).dtype == np.float32


def test_an_unknown_kind_raises(uneven_graph):
    with pytest.raises(ValueError, match=r"kind='rw' is not known; choose one of \['combinatorial', 'symmetric'"):
        uneven_graph.laplacian("rw")


def flat_patch(rng, n=150, d=2, n_features=5):
    """Intrinsic coordinates of a flat patch, and its rows: the coordinates turned into a larger space."""
    coordinates = rng.uniform(size=(n, d))
    frame, _ = np.linalg.qr(rng.normal(size=(n_features, d)))
    return coordinates, coordinates @ frame.T + rng.normal(size=n_features)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_affine_functions_on_a_flat_patch_have_no_hessian(d, backend, rng):
    coordinates, X = flat_patch(rng, d=d)

    H = to_scipy(hessian(backend(X), KNNGraph(14).build(X), d))

    assert_allclose(H @ np.c_[np.ones(len(X)), coordinates], 0, atol=1e-8)
    values = np.linalg.eigvalsh(H.toarray())
    assert (values[: d + 1] > -1e-10).all()
    assert values[d + 1] > 1e-6  # and no others have none


def test_the_form_is_the_printed_sum(rng):
    """[Donoho & Grimes 2003]: Gram-Schmidt on 1, the tangent coordinates and their products; the last ones are W_i."""
    X, d = rng.normal(size=(40, 4)), 2
    graph = KNNGraph(8).build(X)
    f, printed = rng.normal(size=40), 0.0
    for i in range(40):
        neighbors = graph.weights[[i]].indices
        U = np.linalg.svd(X[neighbors] - X[neighbors].mean(axis=0), full_matrices=False)[0][:, :d]
        columns = np.c_[np.ones(len(neighbors)), U, U[:, 0] ** 2, U[:, 0] * U[:, 1], U[:, 1] ** 2]
        W = qr(columns, mode="economic")[0][:, d + 1 :]
        printed += ((W.T @ f[neighbors]) ** 2).sum()

    assert_allclose(f @ hessian(X, graph, d) @ f, printed, rtol=1e-10)


def test_the_smoothest_functions_are_those_of_scikit_learn(rng):
    """With six neighbours: of more, scikit-learn also penalises the functions that are not even quadratic."""
    angle, height = rng.uniform(1.5, 4.5, size=300), rng.uniform(0, 3, size=300)
    X = np.c_[np.cos(angle), height, np.sin(angle)]
    pairs = k_nearest(X, 6)
    neighbors = sp.csr_array((np.ones(len(pairs.rows)), (pairs.rows, pairs.columns)), shape=(300, 300))

    _, vectors = np.linalg.eigh(hessian(X, neighbors, 2).toarray())
    ours = vectors[:, :3]
    theirs = LocallyLinearEmbedding(
        n_neighbors=6, n_components=2, method="hessian", eigen_solver="dense"
    ).fit_transform(X)

    assert_allclose(ours @ (ours.T @ theirs), theirs, atol=1e-6)  # the same space, whatever the rotation


def test_directions_in_which_rows_do_not_differ_are_left_out(rng):
    """On a straight line in the plane, as on a line, linear functions alone have no Hessian."""
    t = rng.uniform(size=60)
    X = np.c_[t, 2 * t + 1]
    graph = KNNGraph(8).build(X)

    assert_allclose(hessian(X, graph, 2).toarray(), hessian(X, graph, 1).toarray(), atol=1e-6)


def test_affine_functions_are_extended_exactly(backend, rng):
    coordinates, X = flat_patch(rng)
    F = coordinates @ rng.normal(size=(2, 3)) + 1
    links = np.zeros((50, 100))
    for i in range(50):
        links[i, np.argsort(((X[:100] - X[100 + i]) ** 2).sum(axis=1))[: 3 + i % 4]] = 1

    extended = extend_affinely(backend(F[:100]), backend(X[100:]), backend(X[:100]), sp.csr_array(links), 2)

    assert_allclose(to_numpy(extended), F[100:], atol=1e-10)


def test_quadratic_functions_need_neighbours_and_columns(rng):
    X = rng.normal(size=(30, 3))
    assert [n_neighbors_needed(d) for d in (1, 2, 3)] == [3, 6, 10]

    with pytest.raises(
        InputError, match=r"in 2 dimensions needs 6 neighbours, but row \d+ has [45]; use KNNGraph\(6\)"
    ):
        hessian(X, KNNGraph(4).build(X), 2)
    with pytest.raises(InputError, match="a manifold of 4 dimensions needs rows of at least 4 columns, but X has 3"):
        hessian(X, KNNGraph(20).build(X), 4)
    with pytest.raises(InputError, match="the graph has 3 nodes, but X has 30 rows"):
        hessian(X, AffinityGraph.from_matrix(np.ones((3, 3)) - np.eye(3)), 1)
