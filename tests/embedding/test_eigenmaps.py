import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from fiedler import AffinityGraph, FullGraph, KNNGraph, LabelGraph, LaplacianEigenmaps, RadiusGraph
from fiedler.errors import InputError
from fiedler.graph.smoothing import coincident_rows


@pytest.fixture
def ring(rng):
    angles = np.sort(rng.uniform(0, 2 * np.pi, 300))
    return np.column_stack([np.cos(angles), np.sin(angles)]), angles


def test_coordinates_solve_the_generalised_problem(connected_graph):
    """[Belkin & Niyogi 2003]: L y = λ D y with y'Dy = 1 and y'D1 = 0, against LAPACK."""
    model = LaplacianEigenmaps(3).fit(connected_graph)
    L, D, Y = connected_graph.laplacian().toarray(), np.diag(connected_graph.degrees), model.embedding_

    values, vectors = eigh(L, D)

    assert_allclose(model.eigenvalues_, values[1:4], atol=1e-12)
    assert_allclose(L @ Y, D @ Y * model.eigenvalues_, atol=1e-12)
    assert_allclose(Y.T @ D @ Y, np.eye(3), atol=1e-12)
    assert_allclose(Y.T @ connected_graph.degrees, 0, atol=1e-12)
    assert_allclose(np.abs(np.sum(Y * (D @ vectors[:, 1:4]), axis=0)), 1)


def test_without_normalisation_coordinates_are_eigenvectors_of_the_laplacian(connected_graph):
    """[nle, Eqs 1-4]: minimise Σ_ij w_ij ‖r_i - r_j‖² = 2 tr R(D - W)R' with RR' = I and R1 = 0."""
    model = LaplacianEigenmaps(3, normalized=False).fit(connected_graph)
    W, Y = connected_graph.weights.toarray(), model.embedding_
    values = np.linalg.eigvalsh(np.diag(W.sum(axis=1)) - W)

    printed = sum(W[i, j] * ((Y[i] - Y[j]) ** 2).sum() for i in range(6) for j in range(6))

    assert_allclose(printed, 2 * values[1:4].sum())  # the lowest value that the constraints allow
    assert_allclose(model.eigenvalues_, values[1:4], atol=1e-12)
    assert_allclose(Y.T @ np.c_[Y, np.ones(6)], np.eye(3, 4), atol=1e-12)


@pytest.mark.filterwarnings("ignore:the graph has 3 connected components")
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_exactly_the_constant_is_left_out_of_a_null_space(n_components, uneven_graph):
    """Three components: two coordinates of eigenvalue 0 distinguish them, orthogonal to the constant."""
    model = LaplacianEigenmaps(n_components).fit(uneven_graph)
    Y, weight = model.embedding_, np.where(uneven_graph.degrees > 0, uneven_graph.degrees, 1)

    assert np.sum(np.abs(model.eigenvalues_) < 1e-10) == min(n_components, 2)
    assert_allclose(Y.T @ (weight[:, None] * Y), np.eye(n_components), atol=1e-10)
    assert_allclose(Y.T @ weight, 0, atol=1e-10)
    assert_allclose(uneven_graph.laplacian("random_walk") @ Y, Y * model.eigenvalues_, atol=1e-10)


def test_a_ring_is_embedded_as_a_ring_with_its_new_points(ring):
    """The first two coordinates of a ring are its cosine and sine, in some rotation."""
    X, _ = ring
    model = LaplacianEigenmaps(2, graph=KNNGraph(10), random_state=0).fit(X)
    new = np.linspace(0, 2 * np.pi, 50)
    Y = model.transform(np.column_stack([np.cos(new), np.sin(new)]))

    order = np.argsort(np.arctan2(*Y.T))
    turns = np.diff(np.unwrap(new[order]))
    assert np.mean(np.sign(turns) == np.sign(np.median(turns))) > 0.95


def test_transform_returns_the_coordinates_of_training_rows(ring):
    X, _ = ring
    model = LaplacianEigenmaps(3, random_state=0).fit(X)

    assert_allclose(model.transform(X), model.embedding_)
    assert_allclose(model.transform(X[5:9]), model.embedding_[5:9])


def test_nystrom_is_the_eigenequation_of_the_new_row(ring):
    """f(x) = sum_j w(x, x_j) f_j / (d(x) (1 - λ)), so a row left out and put back lands where it was, nearly."""
    X, _ = ring
    model = LaplacianEigenmaps(2, graph=KNNGraph(6, weight="heat", bandwidth=0.2, connect="mst"), random_state=0).fit(X)
    x = np.array([[0.5, 0.7]])
    distances = np.linalg.norm(X - x, axis=1)
    near = np.argsort(distances)[:6]
    w = np.exp(-(distances[near] ** 2) / (2 * 0.2**2))

    printed = (w @ model.embedding_[near]) / (w.sum() * (1 - model.eigenvalues_))

    assert_allclose(model.transform(x)[0], printed)


def test_a_point_beyond_the_radius_is_placed_at_the_nearest_row_with_a_warning(ring):
    X, _ = ring
    model = LaplacianEigenmaps(2, graph=RadiusGraph(0.5), random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"1 new point\(s\) have no weight to any row of the graph"):
        Y = model.transform(np.array([[50.0, 0.0]]))

    assert_allclose(Y[0], model.embedding_[np.argmax(X[:, 0])])


def test_only_exact_copies_of_training_rows_coincide(ring):
    X, _ = ring
    W = KNNGraph(5).link(np.concatenate([X[[7, 2]], X[:1] + 1e-12]), X, KNNGraph(5).build(X))

    assert coincident_rows(W, np.concatenate([X[[7, 2]], X[:1] + 1e-12]), X).tolist() == [7, 2, -1]


def test_new_points_on_a_signed_graph_divide_by_absolute_weights(rng):
    """From D̄⁻¹W f = (1 - λ) f with D̄ = Σ|w|."""
    X, x = rng.normal(size=(40, 3)), rng.normal(size=(1, 3))
    model = LaplacianEigenmaps(2, graph=FullGraph("dot", signed=True)).fit(X)
    w = (X @ x[0])[None, :]

    printed = (w @ model.embedding_) / (np.abs(w).sum() * (1 - model.eigenvalues_))

    assert_allclose(model.transform(x), printed)


def test_a_signed_graph_without_negative_weights_drops_the_constant(ring):
    plain, allowed = (LaplacianEigenmaps(2, graph=KNNGraph(10, signed=signed)).fit(ring[0]) for signed in (False, True))

    assert_allclose(allowed.embedding_, plain.embedding_)


def test_a_signed_graph_has_no_trivial_coordinate():
    """Positive weights within {0, 1} and {2, 3}, negative between: the balanced colouring is the first coordinate."""
    W = np.array([[0, 1, -1, -1], [1, 0, -1, -1], [-1, -1, 0, 1], [-1, -1, 1, 0]])
    Y = LaplacianEigenmaps(1).fit(AffinityGraph.from_matrix(W, signed=True)).embedding_

    assert_allclose(np.sign(Y[:, 0]), [1, 1, -1, -1])


def test_too_many_components_raise_an_error(ring):
    words = r"n_components=300 must be less than the number of rows \(n_samples=300\); choose at most 299"
    with pytest.raises(InputError, match=words) as raised:
        LaplacianEigenmaps(300).fit(ring[0])
    assert raised.value.code == "too_many_components"


@pytest.mark.filterwarnings("ignore:the graph has")
def test_fit_transform_passes_the_labels_to_the_graph(ring):
    X, _ = ring
    y = np.where(np.arange(300) % 3 == 0, np.arange(300) // 100, -1)
    model = LaplacianEigenmaps(2, LabelGraph(KNNGraph(10)), random_state=0)

    assert_allclose(model.fit_transform(X, y), model.fit(X, y).embedding_)
    with pytest.raises(ValueError, match="labels"):
        model.fit_transform(X)


def test_a_failed_fit_leaves_the_model_unchanged(ring):
    X, _ = ring
    model = LaplacianEigenmaps(2, random_state=0).fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="n_neighbors"):
        model.fit(X[:2])
    assert vars(model) == before
