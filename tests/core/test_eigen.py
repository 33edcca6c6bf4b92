from unittest.mock import Mock

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.testing import assert_allclose

from fiedler import AffinityGraph, KNNGraph
from fiedler.core import parallel as memory
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import generalized_eigenpairs, smallest_eigenpairs, spectral_bounds
from fiedler.core.sparse import to_scipy
from fiedler.errors import InputError, NotConvergedWarning

ITERATIVE = ["chebyshev", "lobpcg", "arpack", "shift_invert"]
KINDS = ["symmetric", "combinatorial", "random_walk", "signed"]


def clouds(n_each=(400, 250, 150), seed=0):
    rng = np.random.RandomState(seed)
    return np.concatenate([rng.normal(size=(n, 3)) + 100 * i for i, n in enumerate(n_each)])


@pytest.fixture(scope="module")
def three_components():
    """Return a graph of three separate clouds and two isolated points: the eigenvalue 0 five times."""
    W = KNNGraph(10, weight="heat").build(clouds()).weights
    return AffinityGraph.from_matrix(sp.block_diag([W, sp.csr_array((2, 2))]))


def lapack(graph, kind):
    """Return the eigenvalues of the dense matrix, by the general solver for the random walk, which is not symmetric."""
    return np.linalg.eigvals(graph.laplacian(kind).toarray()).real if kind == "random_walk" else np.linalg.eigvalsh(
        graph.laplacian(kind).toarray()
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "dense", *ITERATIVE])
def test_eigenvalues_are_those_of_lapack(kind, method, three_components):
    k = 12
    result = smallest_eigenpairs(three_components, k, kind=kind, method=method)

    assert result.converged
    assert_allclose(result.values, np.sort(lapack(three_components, kind))[:k], atol=1e-8)
    assert np.sum(np.abs(result.values) < 1e-9) == three_components.components()[0] == 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["dense", *ITERATIVE])
def test_vectors_solve_the_equation_and_are_orthonormal(kind, method, three_components):
    result = smallest_eigenpairs(three_components, 8, kind=kind, method=method)
    L, V = three_components.laplacian(kind).toarray(), result.vectors

    assert_allclose(L @ V, V * result.values, atol=2e-7 if kind == "combinatorial" else 1e-7)
    if kind != "random_walk":
        assert_allclose(V.T @ V, np.eye(8), atol=1e-8)
        assert_allclose(np.linalg.norm(L @ V - V * result.values, axis=0), result.residuals, atol=1e-12)
    assert (V[np.abs(V).argmax(axis=0), np.arange(8)] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_entry_is_positive_also_where_degrees_differ(kind):
    graph = KNNGraph(6, weight="local").build(clouds((300,)))
    V = smallest_eigenpairs(graph, 40, kind=kind).vectors

    assert (V[np.abs(V).argmax(axis=0), np.arange(40)] > 0).all()


@pytest.mark.parametrize("method", ["dense", *ITERATIVE])
def test_more_components_than_pairs_needs_no_iteration(method, three_components):
    result = smallest_eigenpairs(three_components, 4, method=method)

    assert_allclose(result.values, 0, atol=1e-12)
    assert result.iterations == 0


@pytest.mark.parametrize("method", ["chebyshev", "dense", "auto"])
def test_repeated_eigenvalues_are_all_found(method):
    """A ring has every eigenvalue but the first twice: 1 - cos(2πj/n)."""
    n = 600
    ring = sp.diags_array([np.ones(n - 1), np.ones(n - 1), [1.0], [1.0]], offsets=[1, -1, n - 1, 1 - n])
    result = smallest_eigenpairs(AffinityGraph.from_matrix(ring), 7, method=method)

    j = np.array([0, 1, 1, 2, 2, 3, 3])
    assert_allclose(result.values, 1 - np.cos(2 * np.pi * j / n), atol=1e-10)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-8), (np.float64, 1e-8), (np.float64, 1e-14)])
def test_a_wide_gap_above_the_known_zero_is_harmless(dtype, tol, backend, rng):
    """Noise in fifty dimensions: 0 is known and λ_2 near 0.5, so the filter amplifies rounding along the first most."""
    graph = KNNGraph(15).build(backend(rng.normal(size=(1500, 50)).astype(dtype)))

    result = smallest_eigenpairs(graph, 8, method="chebyshev", tol=tol)

    exact = np.linalg.eigvalsh(to_scipy(graph.laplacian("symmetric")).toarray().astype(np.float64))[:8]
    assert result.converged
    assert result.iterations < 12
    assert_allclose(to_numpy(result.values), exact, atol=1e-5 if dtype == np.float32 else 1e-8)


def test_an_outlier_far_below_is_harmless():
    A = np.diag(np.concatenate([[-100.0], np.linspace(0, 1, 900)]))

    assert_allclose(smallest_eigenpairs(A, 3, method="chebyshev").values, [-100, 0, 1 / 899], atol=1e-6)


@pytest.mark.parametrize("method", ["dense", *ITERATIVE])
@pytest.mark.parametrize("scale", [1e-200, 1e-16, 1e200])
def test_the_scale_of_the_weights_does_not_matter(method, scale):
    graph = KNNGraph(6).build(clouds((700,)))
    scaled = AffinityGraph.from_matrix(graph.weights * scale)
    expected, result = (smallest_eigenpairs(g, 4, kind="combinatorial", method=method) for g in (graph, scaled))

    assert result.converged
    assert_allclose(result.values / scale, expected.values, atol=1e-6)
    assert_allclose(np.abs(np.sum(result.vectors * expected.vectors, axis=0)), 1, atol=1e-6)


@pytest.mark.parametrize("shape", [sp.csr_array, sp.coo_array, sp.lil_array, sp.dia_array, sp.csr_matrix, np.asarray])
def test_matrices_of_any_format_and_integers_are_accepted(shape):
    A = np.diag(np.arange(5, 605))

    assert_allclose(smallest_eigenpairs(shape(A), 3).values, [5, 6, 7])
    assert_allclose(smallest_eigenpairs(sp.eye_array(700), 2).values, 1)
    assert_allclose(smallest_eigenpairs(sp.csr_array((700, 700)), 2).values, 0)


@pytest.mark.parametrize("method", ["dense", *ITERATIVE])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_small_problems_and_all_pairs(method, k, connected_graph):
    result = smallest_eigenpairs(connected_graph, k, method=method)

    assert_allclose(result.values, np.linalg.eigvalsh(connected_graph.laplacian("symmetric").toarray())[:k], atol=1e-8)
    operator = spla.aslinearoperator(np.diag([2.0, 1.0]))
    assert_allclose(smallest_eigenpairs(operator, 2).values, [1, 2])


def test_auto_uses_a_factorisation_if_the_filter_stalls():
    """A walk on a path of 20,000 nodes mixes so slowly that no polynomial of moderate degree separates its modes."""
    n = 20_000
    path = AffinityGraph.from_matrix(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))

    result = smallest_eigenpairs(path, 4, kind="combinatorial", tol=1e-12)

    assert result.converged
    assert result.method == "shift_invert"
    assert_allclose(result.values, 2 - 2 * np.cos(np.pi * np.arange(4) / n), rtol=1e-4, atol=1e-13)


def test_a_factorisation_separates_eigenvalues_far_below_its_first_shift():
    """On 20,000 points at random on a curve the twentieth eigenvalue is 1e-11; with a shift of 1e-6 none converged."""
    angle = np.random.default_rng(0).uniform(0, 30, 20_000)
    curve = KNNGraph(8, weight="heat").build(np.column_stack([angle * np.cos(angle), angle * np.sin(angle)]))

    result = smallest_eigenpairs(curve, 20, method="shift_invert", tol=1e-12)

    assert result.converged
    assert_allclose(result.values, 0, atol=2e-11)


@pytest.fixture(scope="module")
def narrow_kernel():
    """A graph whose weights underflow: many eigenvalues are zero up to rounding, and neither method converges."""
    return KNNGraph(8, weight="heat", bandwidth=0.03).build(np.random.RandomState(0).normal(size=(2000, 3)))


def test_auto_uses_lapack_if_no_iteration_converges(narrow_kernel):
    with pytest.warns(NotConvergedWarning):
        assert not smallest_eigenpairs(narrow_kernel, 10, method="shift_invert").converged

    result = smallest_eigenpairs(narrow_kernel, 10)

    assert (result.method, result.converged) == ("dense", True)
    assert_allclose(result.values, 0, atol=1e-12)


def test_auto_skips_factors_that_would_fill_up(rng):
    near = sp.kron(sp.eye_array(150), np.ones((10, 10)))
    far = sp.random_array((1500, 1500), density=0.01, random_state=rng)

    result = smallest_eigenpairs(AffinityGraph.from_matrix(near + 1e-200 * (far + far.T)), 8)

    assert (result.method, result.converged) == ("dense", True)
    assert_allclose(result.values, 0, atol=1e-12)


def test_auto_returns_the_smallest_residual_if_memory_is_short(narrow_kernel, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**7)

    with pytest.warns(NotConvergedWarning, match="allow more iterations or a larger tolerance$"):
        result = smallest_eigenpairs(narrow_kernel, 10)

    assert result.method in ("chebyshev", "shift_invert")
    assert result.residuals.max() < 1e-2


def test_small_shifts_are_not_lost_in_single_precision():
    X = np.random.RandomState(0).normal(size=(3000, 3)).astype(np.float32)
    graph = KNNGraph(8, weight="heat", bandwidth=0.05).build(X)

    result = smallest_eigenpairs(graph, 60)

    assert result.vectors.dtype == np.float32
    assert result.converged


def test_singular_factors_are_a_warning(connected_graph, monkeypatch):
    monkeypatch.setattr("fiedler.core.solvers.spla.splu", Mock(side_effect=RuntimeError("Factor is exactly singular")))

    with pytest.warns(NotConvergedWarning, match="shift_invert stopped after 0 iterations"):
        result = smallest_eigenpairs(connected_graph, 3, method="shift_invert")

    assert_allclose(np.linalg.norm(to_numpy(result.vectors), axis=0), 1)


def test_shift_invert_needs_the_entries_of_a_matrix():
    operator = spla.aslinearoperator(sp.diags_array(np.arange(1.0, 700.0)))

    with pytest.raises(InputError, match="needs the entries of the matrix, but an operator was given"):
        smallest_eigenpairs(operator, 2, method="shift_invert")


@pytest.mark.parametrize(("density", "method"), [(0.4, "dense"), (0.02, "chebyshev")])
def test_a_nearly_dense_matrix_is_solved_by_lapack(density, method, rng):
    """A learned affinity with 44 % of its entries stored took more than ten minutes to factorise."""
    kept = np.triu(rng.random((700, 700)) < density, 1)
    weights = sp.csr_array((kept | kept.T) * 1.0)

    result = smallest_eigenpairs(AffinityGraph.from_matrix(weights), 4)

    assert result.method == method
    assert result.converged


def test_not_converging_is_a_warning():
    graph = KNNGraph(5).build(clouds((900,)))

    with pytest.warns(
        NotConvergedWarning, match=r"allow more iterations or a larger tolerance, or use the solver"
    ) as caught:
        result = smallest_eigenpairs(graph, 6, method="chebyshev", max_iter=1, tol=1e-13)
    assert not result.converged
    assert caught[0].message.code == "not_converged"
    assert caught[0].message.fields["max_iter"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_signed_graphs_have_a_zero_for_every_balanced_component(kind, signed_graph):
    values = np.sort(lapack(signed_graph, kind))

    result = smallest_eigenpairs(signed_graph, 5, kind=kind)

    assert_allclose(result.values, values[:5], atol=1e-10)
    assert np.sum(np.abs(values) < 1e-10) == 2  # components 0-3 (balanced) and 7 (isolated), not the triangle 4-6


def test_a_matrix_stands_for_itself(backend, rng):
    A = rng.normal(size=(700, 700))
    A = np.diag(np.linspace(-3, 10, 700)) + 0.01 * (A + A.T)
    result = smallest_eigenpairs(backend(A), 5, method="chebyshev", tol=1e-9)

    assert_allclose(to_numpy(result.values), np.linalg.eigvalsh(A)[:5], atol=1e-8)
    assert type(result.vectors) is type(backend(A))


def test_operators_and_sparse_matrices_are_accepted(three_components):
    L = three_components.laplacian("symmetric")
    for matrix in (L, spla.aslinearoperator(L)):
        result = smallest_eigenpairs(matrix, 7, method="chebyshev")
        assert_allclose(result.values, np.linalg.eigvalsh(L.toarray())[:7], atol=1e-8)


def test_bounds_enclose_the_spectrum(three_components):
    for matrix in (three_components.laplacian(), -three_components.laplacian("symmetric")):
        values = np.linalg.eigvalsh(matrix.toarray())
        for form in (matrix, matrix.toarray(), spla.aslinearoperator(matrix)):
            lower, upper = spectral_bounds(form)
            assert lower <= values[0] + 1e-9
            assert upper >= values[-1] - 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_and_back_ends_agree(dtype, backend):
    X = clouds().astype(dtype)
    reference = smallest_eigenpairs(KNNGraph(8).build(X), 8, method="chebyshev")

    result = smallest_eigenpairs(KNNGraph(8).build(backend(X)), 8, method="chebyshev")

    tol = 1e-4 if dtype == np.float32 else 1e-6
    assert np.dtype(dtype).name in str(result.vectors.dtype)
    assert_allclose(to_numpy(result.values), reference.values, atol=tol)
    assert_allclose(np.abs(to_numpy(result.vectors).T @ reference.vectors).max(axis=0), 1, atol=100 * tol)


def test_the_same_seed_gives_the_same_result(three_components):
    first, second = (smallest_eigenpairs(three_components, 9, method="chebyshev", random_state=3) for _ in range(2))

    assert (first.vectors == second.vectors).all()


@pytest.mark.parametrize(
    ("matrix", "options", "message", "code"),
    [
        (
            np.eye(6),
            {"k": 7},
            r"k=7 eigenpairs are more than the matrix has rows \(6\); choose at most 6",
            "too_many_eigenpairs",
        ),
        (np.eye(6), {"method": "magic"}, r"method='magic' is not known; choose one of \['auto'", "unknown_option"),
        (
            np.eye(4),
            {"kind": "symmetric"},
            "selects a Laplacian of a graph, but a matrix was given",
            "kind_needs_a_graph",
        ),
        (np.ones((4, 3)), {}, "must be square", "wrong_shape"),
        (np.diag([1.0, np.nan]), {}, "the matrix contains NaN or infinity", "not_finite"),
        (np.eye(3) * 1j, {}, "must be real; got dtype complex128", "wrong_dtype"),
        (np.triu(np.ones((4, 4))), {}, "not symmetric", "not_symmetric"),
        (np.eye(4), {"tol": 0}, "tol must be a positive number", "invalid_parameter"),
        (np.eye(4), {"tol": -1}, "tol must be a positive number", "invalid_parameter"),
        (np.eye(4), {"tol": float("nan")}, "tol must be a positive number", "invalid_parameter"),
        (np.eye(4), {"tol": "small"}, "tol must be a positive number", "invalid_parameter"),
        (np.eye(4), {"max_iter": 0}, "max_iter must be an integer of at least 1", "invalid_parameter"),
    ],
)
def test_invalid_arguments_are_errors(matrix, options, message, code):
    with pytest.raises(InputError, match=message) as caught:
        smallest_eigenpairs(matrix, **{"k": 1, **options})

    assert caught.value.code == code


def test_more_pairs_than_nodes_is_an_error(connected_graph):
    with pytest.raises(InputError, match="k=7 eigenpairs are more than the matrix has rows"):
        smallest_eigenpairs(connected_graph, 7)


@pytest.mark.parametrize("method", ["lobpcg", "arpack", "shift_invert"])
def test_methods_of_scipy_need_numpy(method, foreign):
    with pytest.raises(InputError, match="supports only NumPy arrays; use 'chebyshev'") as caught:
        smallest_eigenpairs(foreign(np.diag(np.arange(1.0, 50))), 2, method=method)

    assert caught.value.code == "numpy_required"


# ------------------------------------------------------------------------------------------- the generalised problem


@pytest.fixture
def pencil(rng):
    A, B = rng.normal(size=(2, 60, 60))
    return A + A.T, B @ B.T + np.eye(60)


@pytest.mark.parametrize("largest", [False, True])
def test_generalised_pairs_are_those_of_lapack(largest, pencil, backend):
    A, B = pencil
    values = scipy.linalg.eigh(A, B, eigvals_only=True)

    result = generalized_eigenpairs(backend(A), backend(B), 4, largest=largest)

    V = to_numpy(result.vectors)
    assert_allclose(to_numpy(result.values), values[-4:] if largest else values[:4], atol=1e-9)
    assert_allclose(V.T @ B @ V, np.eye(4), atol=1e-8)
    assert_allclose(A @ V, B @ V * to_numpy(result.values), atol=1e-7)


@pytest.mark.parametrize("wrap", [sp.csr_array, spla.aslinearoperator])
def test_generalised_pairs_of_operators(wrap):
    """L y = λ D y is the random walk's problem."""
    graph = KNNGraph(10).build(clouds((700,)))
    L, D = graph.laplacian(), sp.diags_array(graph.degrees)

    result = generalized_eigenpairs(wrap(L), wrap(D.tocsr()), 5, tol=1e-7)

    assert result.method == "lobpcg"
    assert result.converged
    assert_allclose(result.values, smallest_eigenpairs(graph, 5, kind="random_walk").values, atol=1e-6)


def test_an_indefinite_b_is_an_error(pencil, backend):
    A, B = pencil
    with pytest.raises(InputError, match="B is not positive definite; add a small ridge"):
        generalized_eigenpairs(backend(A), backend(-B), 2)
