import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler import AffinityGraph
from fiedler.core.sparse import to_scipy
from fiedler.graph import laplacian
from fiedler.graph.operators import LAPLACIANS, balanced_components, spectral_form

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
