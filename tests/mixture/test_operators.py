"""A matrix as the smoothing operator of LapGMM."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import fiedler
from fiedler import KNNGraph, LapGMM
from fiedler.core.arrays import to_numpy
from fiedler.datasets import two_moons
from fiedler.errors import InputError
from fiedler.mixture.operators import check_operator, from_matrix


@pytest.fixture
def moons():
    X, y = two_moons(150, noise=0.1, random_state=0)
    return X, y, KNNGraph(6).build(X)


FORMS = {
    "dense": lambda L: L.toarray(),
    "csr": lambda L: L,
    "coo matrix": sp.coo_matrix,
    "list": lambda L: L.toarray().tolist(),
    "float32": lambda L: L.toarray().astype(np.float32),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_the_laplacian_as_a_matrix_is_the_operator_of_that_name(form, moons, backend):
    X, y, graph = moons
    options = {"lam": 2.0, "init": y, "tol": 1e-6, "max_iter": 30}
    by_name = LapGMM(2, graph, **options).fit(X)

    by_matrix = LapGMM(2, graph, operator=FORMS[form](graph.laplacian()), **options).fit(backend(X))

    assert_allclose(to_numpy(by_matrix.memberships_), by_name.memberships_, atol=1e-5)
    assert_allclose(by_matrix.history_.objective, by_name.history_.objective, rtol=1e-5)


def test_the_penalty_is_the_quadratic_form_of_the_matrix(moons):
    X, y, graph = moons
    L = graph.laplacian().toarray()
    model = LapGMM(2, graph, lam=0.5, operator=L @ L, init=y, max_iter=5).fit(X)

    assert_allclose(model.penalty_, 0.5 * np.trace(model.memberships_.T @ L @ L @ model.memberships_))


@pytest.mark.parametrize("rank", [1, 20, 150])
def test_the_bound_dominates_and_the_objective_rises(rank, moons, rng):
    """For matrices with entries of either sign, which no graph Laplacian is."""
    X, _, graph = moons
    factor = rng.normal(size=(150, rank))
    A = factor @ factor.T / rank
    smoother = from_matrix(A, X)

    assert np.linalg.eigvalsh(np.diag(smoother.bound[:, 0]) - A).min() > -1e-9
    model = LapGMM(2, graph, lam=0.1, operator=A, init="random", tol=1e-12, max_iter=60, random_state=0).fit(X)
    objective = model.history_.objective
    assert np.diff(objective).min() >= -1e-10 * np.abs(objective).max()


def test_a_negative_eigenvalue_is_found_in_a_large_sparse_matrix(rng):
    n = 1500
    L = KNNGraph(5).build(rng.normal(size=(n, 2))).laplacian()
    direction = np.zeros(n)
    direction[[3, 700]] = 1, -1
    indefinite = sp.csr_array(L - 30 * sp.csr_array(np.outer(direction, direction)))

    assert check_operator(L @ L, n) is not None  # not diagonally dominant, so that discs do not decide
    with pytest.raises(InputError, match="operator has a negative eigenvalue"):
        check_operator(indefinite, n)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(7), r"operator has shape \(7, 7\), but X has 150 rows; pass a matrix of shape \(150, 150\)"),
        (np.ones(150), r"operator has shape \(150,\), but X has 150 rows"),
        (np.eye(150) + np.eye(150, k=1), r"operator is not symmetric \(a_ij and a_ji differ by up to 1\); symmetrise"),
        (np.diag(np.r_[np.nan, np.ones(149)]), "operator contains NaN or infinity; remove those entries"),
        (sp.diags_array(np.r_[np.inf, np.ones(149)]), "operator contains NaN or infinity"),
        (
            np.diag(np.r_[-1.0, np.ones(149)]),
            r"operator has a negative eigenvalue \(-1\); pass a positive semidefinite",
        ),
        (np.full((150, 150), "a"), "operator has entries of type <U1; pass a matrix of real numbers"),
        ([[1.0], [0.0, 1.0]], "operator is not a matrix: its rows differ in length"),
    ],
)
def test_an_invalid_matrix_raises_an_error(matrix, message, moons):
    with pytest.raises(InputError, match=message) as caught:
        LapGMM(2, operator=matrix, random_state=0).fit(moons[0])
    assert caught.value.code == "invalid_operator"
    assert caught.value.fields["parameter"] == "operator"


def test_the_papers_solvers_reject_a_matrix(moons):
    with pytest.raises(InputError, match="operator=a matrix needs solver='variational'; got solver='anchored'"):
        LapGMM(2, operator=np.eye(150), solver="anchored", lam=1.0).fit(moons[0])


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_matrix_survives_copies_and_files(form, moons, tmp_path):
    X, y, graph = moons
    A = FORMS[form](graph.laplacian())
    model = LapGMM(2, graph, lam=2.0, operator=A, init=y).fit(X)

    assert model.get_params()["operator"] is A
    fiedler.save(model, tmp_path / "model.safetensors")
    for copy in (pickle.loads(pickle.dumps(model)), fiedler.load(tmp_path / "model.safetensors"), clone(model)):
        assert_allclose(sp.csr_array(copy.operator).toarray(), sp.csr_array(A).toarray())
        assert_array_equal(copy.fit(X).memberships_, model.memberships_)


def test_a_matrix_is_not_changed(moons):
    X, _, graph = moons
    A = graph.laplacian().toarray()
    before = A.copy()
    A.setflags(write=False)
    LapGMM(2, graph, lam=1.0, operator=A, random_state=0).fit(X)

    assert_array_equal(A, before)
