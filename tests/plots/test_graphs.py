"""Displays of graphs: their edges, and their spectra."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from fiedler import (
    NLE,
    AffinityGraph,
    KNNGraph,
    LandmarkGraph,
    LaplacianEigenmaps,
    ManifoldClustering,
    SpectralClustering,
)
from fiedler.core.eigen import widest_gap
from fiedler.plots import (
    GraphDisplay,
    SpectrumDisplay,
)
from fiedler.plots.style import MIDDLE, PRIMARY, SECONDARY, palette_rgb

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


@pytest.fixture(scope="module")
def far_blobs():
    return make_blobs(90, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)


@pytest.fixture(scope="module")
def model(far_blobs):
    return ManifoldClustering(3, random_state=0).fit(far_blobs[0])


# ---------------------------------------------------------------------------------------------------------------- graph


def test_every_edge_is_drawn_once(uneven_graph, rng):
    layout = rng.normal(size=(10, 2))
    display = GraphDisplay.from_graph(uneven_graph, layout)

    W = uneven_graph.weights.toarray()
    assert [tuple(edge) for edge in display.edges] == [(i, j) for i in range(10) for j in range(i, 10) if W[i, j]]
    assert_array_equal(display.weights, [W[i, j] for i, j in display.edges])
    assert_allclose(display.lines_.get_segments(), layout[display.edges])
    assert_allclose(display.points_.get_offsets(), layout)
    assert display.ax_.get_title() == "11 edges"


def test_edges_with_larger_weights_are_wider_and_more_opaque(uneven_graph, rng):
    display = GraphDisplay.from_graph(uneven_graph, rng.normal(size=(10, 2)))

    order = np.argsort(display.weights)
    assert (np.diff(np.array(display.lines_.get_linewidths())[order]) >= 0).all()
    assert (np.diff(display.lines_.get_colors()[order, 3]) >= 0).all()


def test_negative_edges_have_another_colour(signed_graph, rng):
    display = GraphDisplay.from_graph(signed_graph, rng.normal(size=(8, 2)), labels=np.arange(8) % 2)

    negative, shades = display.weights < 0, display.lines_.get_colors()[:, :3]
    assert negative.sum() == 3
    assert_allclose(shades[negative], [to_rgb(SECONDARY)] * 3)
    assert_allclose(shades[~negative], [to_rgb(MIDDLE)] * 4)
    assert display.ax_.get_title() == "7 edges, 3 negative"
    assert_allclose(display.points_.get_facecolors()[:, :3], palette_rgb(np.arange(8) % 2))


def test_a_sample_of_too_many_edges_is_drawn_and_the_title_says_so(far_blobs):
    graph = KNNGraph(5).build(far_blobs[0])
    display = GraphDisplay.from_graph(graph, far_blobs[0], max_edges=40)

    assert len(display.edges) == len(display.weights) == 40
    assert display.n_edges == graph.n_edges
    assert display.ax_.get_title() == f"40 of {graph.n_edges} edges"
    assert len({tuple(edge) for edge in display.edges}) == 40
    assert_array_equal(display.weights, [graph.weights[i, j] for i, j in display.edges])


def test_graph_from_estimator_and_from_graph_agree(far_blobs, model):
    from_model = GraphDisplay.from_estimator(model, far_blobs[0])
    direct = GraphDisplay.from_graph(model.graph_, far_blobs[0], model.labels_)

    for name in ("layout", "edges", "weights", "labels", "n_edges"):
        assert_array_equal(getattr(from_model, name), getattr(direct, name))


def test_graphs_can_be_drawn_without_rows_and_labels(far_blobs):
    model = LaplacianEigenmaps(graph=KNNGraph(8, connect="mst"), random_state=0).fit(far_blobs[0])
    display = GraphDisplay.from_estimator(model)

    assert display.labels is None
    assert display.axis_names[0] == "spectral coordinate 1"
    assert len(GraphDisplay.from_graph(AffinityGraph.from_matrix(np.zeros((3, 3))), np.eye(3)[:, :2]).edges) == 0
    landmarks = NLE(3, LandmarkGraph(20, random_state=0), n_init=1, random_state=0).fit(far_blobs[0])
    with pytest.raises(ValueError, match="NLE has no graph whose edges can be drawn"):
        GraphDisplay.from_estimator(landmarks)


# ------------------------------------------------------------------------------------------------------------- spectrum


def test_the_widest_gap_is_marked():
    values = np.array([0.0, 0.01, 0.03, 0.4, 0.5])
    display = SpectrumDisplay.from_values(values, n_clusters=2)

    assert display.gap == widest_gap(values) == 3
    assert_allclose(display.points_.get_offsets(), np.column_stack([[1, 2, 3, 4, 5], values]))
    assert_allclose(display.points_.get_facecolors(), [to_rgba(PRIMARY)] * 3 + [to_rgba(MIDDLE)] * 2)
    assert_allclose((display.band_.get_y(), display.band_.get_y() + display.band_.get_height()), (0.03, 0.4))
    assert_allclose(display.chosen_.get_xdata(), 2.5)  # between the second value and the third
    assert display.ax_.get_title() == "widest gap after 3"


def test_one_eigenvalue_has_neither_gap_nor_line():
    display = SpectrumDisplay.from_values([0.0])

    assert display.band_ is None
    assert display.chosen_ is None
    assert SpectrumDisplay.from_values([0.0, 1.0], n_clusters=9).chosen_ is None  # beyond what is drawn


@pytest.mark.parametrize("kind", ["symmetric", "combinatorial"])
def test_values_are_the_eigenvalues_of_the_laplacian(kind, uneven_graph):
    display = SpectrumDisplay.from_graph(uneven_graph, 6, kind=kind)

    assert_allclose(display.values, np.linalg.eigvalsh(uneven_graph.laplacian(kind).toarray())[:6], atol=1e-9)
    assert len(SpectrumDisplay.from_graph(uneven_graph.weights.toarray(), 99).values) == 10  # there are no more


def test_spectrum_of_a_model_includes_the_gap_after_its_clusters(blobs):
    model = SpectralClustering(3, KNNGraph(8, connect="mst"), random_state=0).fit(blobs[0])
    display = SpectrumDisplay.from_estimator(model)

    assert_allclose(display.values[:3], model.eigenvalues_, atol=1e-7)
    assert len(display.values) == 10
    assert display.n_clusters == 3
    direct = SpectrumDisplay.from_graph(model.graph_, 10, n_clusters=3)
    assert_array_equal(display.values, direct.values)
    assert len(SpectrumDisplay.from_estimator(model, n=4).values) == 4


def test_spectrum_of_an_average_association_is_that_of_the_symmetric_laplacian(blobs):
    """It is a relaxation without a Laplacian."""
    model = SpectralClustering(3, KNNGraph(8), cut="association", random_state=0).fit(blobs[0])
    display = SpectrumDisplay.from_estimator(model, 5)
    assert_allclose(display.values, SpectrumDisplay.from_graph(model.graph_, 5).values, atol=1e-10)


def test_spectrum_of_a_ratio_cut_is_that_of_the_combinatorial_laplacian(blobs):
    model = SpectralClustering(3, KNNGraph(8, connect="mst"), cut="ratio", random_state=0).fit(blobs[0])

    assert_allclose(SpectrumDisplay.from_estimator(model).values[:3], model.eigenvalues_, atol=1e-6)


def test_eigenvalues_of_the_model_are_drawn_without_a_graph(blobs):
    model = LaplacianEigenmaps(4, KNNGraph(8, connect="mst"), random_state=0).fit(blobs[0])
    values, model.graph_ = model.eigenvalues_, None

    assert_array_equal(SpectrumDisplay.from_estimator(model).values, values)
    assert SpectrumDisplay.from_estimator(model).n_clusters is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "list of finite eigenvalues"),
        ([[0.0]], "got shape"),
        ([0, np.nan], "finite"),
        ([1, 0], "must be in ascending order"),
    ],
)
def test_invalid_eigenvalues_raise_an_error(values, message):
    with pytest.raises(ValueError, match=message):
        SpectrumDisplay.from_values(np.array(values, dtype=float))


def test_landmark_graphs_have_no_spectrum(blobs):
    model = NLE(3, LandmarkGraph(20, random_state=0), n_init=1, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match="NLE has neither a graph with edges nor eigenvalues"):
        SpectrumDisplay.from_estimator(model)
