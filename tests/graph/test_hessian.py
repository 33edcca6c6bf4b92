"""The Hessian operator: its null space, its definition and its errors."""

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
from fiedler.graph.neighbors import k_nearest
from fiedler.graph.operators import extend_affinely, hessian, n_neighbors_needed


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
