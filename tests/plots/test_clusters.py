"""Displays of rows: clusters, memberships, confusion matrix; what they refuse."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from fiedler import LLGC, LapGMM, LaplacianEigenmaps, ManifoldClustering
from fiedler.core.arrays import to_numpy
from fiedler.metrics import clustering_accuracy
from fiedler.plots import ClustersDisplay, ConfusionDisplay, GraphDisplay, MembershipDisplay
from fiedler.plots.clusters import MAX_SIDE
from fiedler.plots.layouts import embed_tsne
from fiedler.plots.style import MIN_OPACITY, UNASSIGNED, palette_rgb

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)


@pytest.fixture(scope="module")
def model(blobs):
    return ManifoldClustering(3, random_state=0).fit(blobs[0])


@pytest.fixture(scope="module")
def wide():
    """Five clusters in six dimensions."""
    X, _ = make_blobs(100, centers=8 * np.eye(6)[:5], n_features=6, random_state=0)
    return X


# ------------------------------------------------------------------------------------------------------------- clusters


def test_rows_are_drawn_at_their_features_in_the_colour_of_their_cluster(blobs, model):
    display = ClustersDisplay.from_estimator(model, blobs[0])

    faces = display.points_.get_facecolors()
    assert_allclose(display.points_.get_offsets(), blobs[0])
    assert_allclose(faces[:, :3], palette_rgb(model.labels_))
    assert_allclose(faces[:, 3], model.memberships_.max(axis=1))  # transparency is the confidence
    assert display.ax_.get_xlabel() == "feature 0"
    assert display.ax_.get_title() == f"3 clusters, mean confidence {model.memberships_.max(axis=1).mean():.2f}"


def test_from_estimator_and_from_predictions_agree(blobs, model):
    from_model = ClustersDisplay.from_estimator(model, blobs[0], y=blobs[1])
    direct = ClustersDisplay.from_predictions(blobs[0], model.labels_, model.memberships_, y=blobs[1])

    for name in ("layout", "labels", "confidence", "y"):
        assert_array_equal(getattr(from_model, name), getattr(direct, name))
    assert_array_equal(from_model.points_.get_facecolors(), direct.points_.get_facecolors())


def test_unassigned_rows_are_grey_and_every_row_is_visible():
    memberships = [[1.0, 0.0], [0.05, 0.05], [0.3, 0.7]]
    display = ClustersDisplay.from_predictions([[0, 0], [1, 1], [2, 2]], [0, -1, 1], memberships)

    assert_allclose(display.points_.get_facecolors()[1], [*to_rgb(UNASSIGNED), MIN_OPACITY])
    assert [text.get_text() for text in display.names_] == ["0", "1"]
    assert display.ax_.get_title().endswith(", 1 unassigned")


def test_rows_without_memberships_are_opaque():
    assert_array_equal(ClustersDisplay.from_predictions([[0, 0], [1, 1]], ["b", "a"]).points_.get_facecolors()[:, 3], 1)


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (True, ["0", "2"]),
        (["x", "y", "z"], ["x", "z"]),
        ({0: "zero"}, ["zero", "2"]),
        (["x"], ["x", "2"]),
        (["high age", "", None], ["high age", "2"]),  # a cluster without a name
        ({0: "high amount_of_all_purchases, low age"}, ["high\namount_of_all_purchases,\nlow age", "2"]),  # whole words
    ],
)
def test_names_are_written_at_the_medians(names, written):
    layout = [[0, 0], [1, 5], [9, 1], [4, 4], [6, 6]]
    display = ClustersDisplay.from_predictions(layout, [0, 0, 0, 2, 2], names=names)

    assert [text.get_text() for text in display.names_] == written
    assert_allclose([text.get_position() for text in display.names_], [[1, 1], [5, 5]])
    assert display.plot(names=False).names_ == []


def test_a_known_class_is_an_edge_in_the_colour_of_the_cluster_it_matches():
    labels, y = [0, 0, 0, 1, 1, 1], ["b", "b", "a", "a", "a", "-1"]
    display = ClustersDisplay.from_predictions(np.eye(6)[:, :2], labels, y=y)

    edges = display.points_.get_edgecolors()
    assert_allclose(edges[:5, :3], palette_rgb([0, 0, 1, 1, 1]))  # row 2 is of the class that cluster 1 matches
    assert_array_equal(edges[:, 3], [1, 1, 1, 1, 1, 0])  # row 5 is of no known class


def test_unmatched_classes_have_new_colours():
    display = ClustersDisplay.from_predictions(np.eye(4)[:, :2], [0, 0, 0, 0], y=[5, 5, 6, 7])

    assert_allclose(display.points_.get_edgecolors()[:, :3], palette_rgb([0, 0, 1, 2]))


def test_layouts(wide):
    model = ManifoldClustering(5, random_state=0).fit(wide)
    offsets = lambda *args: to_numpy(ClustersDisplay.from_estimator(model, *args).points_.get_offsets())  # noqa: E731

    principal = PCA(2).fit_transform(wide)
    assert_allclose(np.abs(offsets(wide)), np.abs(principal), atol=1e-8)  # the default for five clusters
    degrees, Y = model.graph_.degrees, offsets(wide, "spectral")
    assert_allclose(degrees @ Y**2 / degrees.sum(), 1)
    assert_allclose(degrees @ Y, 0, atol=1e-6 * degrees.sum())
    assert_array_equal(offsets(None), Y)  # the default without rows
    assert_array_equal(offsets(wide, wide[:, 3:5]), wide[:, 3:5])
    assert_array_equal(offsets(wide, "tsne"), embed_tsne(wide, model.graph_, random_state=0)[0])


def test_tsne_layout_needs_no_graph_or_no_rows(blobs, model):
    by_rows = ClustersDisplay.from_estimator(DBSCAN().fit(blobs[0]), blobs[0], "tsne")
    by_graph = GraphDisplay.from_graph(model.graph_, "tsne")

    assert by_rows.axis_names == by_graph.axis_names == ("t-SNE 1", "t-SNE 2")
    assert np.isfinite(by_graph.layout).all()


def test_few_clusters_are_drawn_in_spectral_coordinates(wide):
    display = ClustersDisplay.from_estimator(ManifoldClustering(3, random_state=0).fit(wide), wide)

    assert display.axis_names == ("spectral coordinate 1", "spectral coordinate 2")


def test_axes_are_named_after_the_columns(blobs):
    frame = pd.DataFrame(blobs[0], columns=["width", "height"])
    display = ClustersDisplay.from_estimator(ManifoldClustering(3, random_state=0).fit(frame), frame)

    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")


def test_new_rows_are_predicted_even_if_their_number_is_that_of_the_training_rows(blobs, model):
    new = blobs[0][::-1] + 0.1
    display = ClustersDisplay.from_estimator(model, new)

    assert_array_equal(display.labels, model.predict(new))
    assert_allclose(display.confidence, model.predict_proba(new).max(axis=1))
    assert (display.labels != model.labels_).any()


def test_training_rows_show_the_memberships_of_the_fit(blobs):
    """A mixture with a graph predicts by its densities alone, so ``predict_proba`` differs from ``memberships_``."""
    model = LapGMM(3, random_state=0).fit(blobs[0])
    display = ClustersDisplay.from_estimator(model, blobs[0])

    assert_array_equal(display.confidence, model.memberships_.max(axis=1))
    assert np.abs(model.predict_proba(blobs[0]) - model.memberships_).max() > 0


def test_models_of_scikit_learn_and_classifiers(blobs):
    X, y = blobs
    few = np.where(np.arange(90) < 12, y, -1)

    assert_array_equal(ClustersDisplay.from_estimator(DBSCAN().fit(X), X).labels, DBSCAN().fit(X).labels_)
    assert_array_equal(ClustersDisplay.from_estimator(LLGC().fit(X, few), X).labels, LLGC().fit(X, few).transduction_)


def test_models_on_other_back_ends(foreign):
    X, _ = make_blobs(60, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)
    model = ManifoldClustering(3, random_state=0).fit(foreign(X))
    display = ClustersDisplay.from_estimator(model, foreign(X))

    assert_array_equal(display.labels, to_numpy(model.labels_))
    assert_allclose(display.points_.get_offsets(), X)
    GraphDisplay.from_estimator(model, foreign(X))
    MembershipDisplay.from_estimator(model)


def test_sparse_rows(wide):
    X = sp.csr_array(wide)
    display = ClustersDisplay.from_estimator(ManifoldClustering(5, random_state=0).fit(X), X)

    assert_allclose(np.abs(display.layout), np.abs(PCA(2).fit_transform(wide)), atol=1e-6)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: ClustersDisplay.from_predictions(np.zeros((3, 3)), [0, 0, 0]),
            r"layout must be an array of numbers of shape \(n, 2",
        ),
        (lambda: ClustersDisplay.from_predictions([[0, np.nan]], [0]), "layout contains NaN"),
        (
            lambda: ClustersDisplay.from_predictions(np.zeros((3, 2)), [0, 0]),
            "labels has 2 entries, but 3 are required",
        ),
        (
            lambda: ClustersDisplay.from_predictions(np.zeros((1, 2)), [0], [[1], [0]]),
            r"memberships must have shape \(1,",
        ),
        (
            lambda: ClustersDisplay.from_predictions(np.zeros((1, 2)), [0], [[2.0]]),
            "memberships must lie between 0 and 1",
        ),
        (lambda: ClustersDisplay.from_predictions(np.zeros((1, 2)), [0], y=[1, 2]), "y has 2 entries, but 1"),
        (lambda: MembershipDisplay.from_predictions([0.5, 0.5]), r"memberships must have shape \(n, n_clusters\)"),
        (lambda: MembershipDisplay.from_predictions([[1.0]], show="all"), "show='all' is not known"),
        (lambda: MembershipDisplay.from_predictions([[1.0]], max_rows=0), "max_rows must be an integer"),
        (
            lambda: GraphDisplay.from_graph(np.zeros((2, 2)), np.zeros((3, 2))),
            r"shape \(2, 2\), one row per sample; got",
        ),
        (lambda: GraphDisplay.from_graph(np.zeros((2, 2)), np.zeros((2, 2)), [0]), "labels has 1 entries"),
        (lambda: ConfusionDisplay.from_predictions([0, 1], [0]), "labels_pred has 1 entries"),
    ],
)
def test_invalid_input_raises_an_error(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_models_that_do_not_match_the_rows_raise_an_error(blobs, model):
    X = blobs[0]
    for draw, message in (
        (
            lambda: ClustersDisplay.from_estimator(DBSCAN().fit(X), X[:9]),
            "X has 9 rows, but DBSCAN has labels for the 90",
        ),
        (lambda: ClustersDisplay.from_estimator(LaplacianEigenmaps(graph=model.graph_).fit(X), X), "no labels to draw"),
        (lambda: ClustersDisplay.from_estimator(model, X, "umap"), r"layout='umap' is not known; choose one of"),
        (lambda: ClustersDisplay.from_estimator(model, X + 1, "spectral"), "needs a model with a graph on these rows"),
        (lambda: ClustersDisplay.from_estimator(model, None, "pca"), "layout='pca' needs rows X"),
        (
            lambda: ClustersDisplay.from_estimator(DBSCAN().fit(X), None, "tsne"),
            "layout='tsne' needs rows X or a model",
        ),
        (lambda: ClustersDisplay.from_estimator(model, None, "features"), "layout='features' needs rows X with two"),
        (lambda: GraphDisplay.from_estimator(model, X[:9]), "X has 9 rows, but the graph has 90 nodes"),
    ):
        with pytest.raises(ValueError, match=message):
            draw()


# ---------------------------------------------------------------------------------------------------------- memberships


def test_the_area_of_a_square_is_the_membership(rng):
    memberships = rng.dirichlet(np.ones(3), size=5)
    display = MembershipDisplay.from_predictions(memberships)

    corners = np.array([path.vertices[:4] for path in display.squares_.get_paths()])
    sides = np.ptp(corners, axis=1)
    assert_allclose(sides[:, 0] * sides[:, 1], MAX_SIDE**2 * display.memberships.ravel())
    assert_allclose(corners.mean(axis=1), [(i, k) for i in range(5) for k in range(3)], atol=1e-12)
    assert_allclose(display.squares_.get_facecolors()[:3, :3], palette_rgb([0, 1, 2]))


def test_rows_are_sorted_by_cluster_and_confidence():
    memberships = np.array([[0.6, 0.4], [0.1, 0.9], [0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    display = MembershipDisplay.from_predictions(memberships, [0, 1, 0, -1, 1])

    assert_array_equal(display.memberships, memberships[[2, 0, 1, 4, 3]])
    assert_array_equal(display.labels, [0, 0, 1, 1, -1])
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "1", "-1"]
    assert_allclose(display.ax_.get_xticks(), [0.5, 2.5, 4])


def test_a_selection_of_every_cluster_is_drawn_if_there_are_many_rows(rng):
    memberships = rng.dirichlet(np.ones(3), size=500)
    labels = np.repeat([0, 1, 2], [300, 199, 1])
    display = MembershipDisplay.from_predictions(memberships, labels, max_rows=50)

    assert_array_equal(np.bincount(display.labels), [30, 20, 1])
    confidence = memberships[:300].max(axis=1)
    drawn = display.memberships[:30].max(axis=1)
    assert_allclose(drawn[[0, -1]], [confidence.max(), confidence.min()])  # from the most to the least confident
    assert display.ax_.get_title() == "memberships of 51 of 500 rows"


def test_mean_memberships_of_clusters(rng):
    memberships = rng.dirichlet(np.ones(3), size=40)
    labels = np.arange(40) % 3
    display = MembershipDisplay.from_predictions(memberships, labels, show="means")

    assert_allclose(display.memberships, [memberships[labels == k].mean(axis=0) for k in range(3)])
    assert display.ax_.get_title() == "mean memberships of 40 rows"


def test_memberships_from_estimator_and_from_predictions_agree(blobs, model):
    from_model = MembershipDisplay.from_estimator(model, blobs[0])
    direct = MembershipDisplay.from_predictions(model.memberships_, model.labels_)

    assert_array_equal(from_model.memberships, direct.memberships)
    assert_array_equal(from_model.labels, direct.labels)


# ------------------------------------------------------------------------------------------------- clusters and classes


def test_confusion_matrix_equals_a_worked_example():
    """Clusters 7, 2 and 5 match a, b and c; 9 has no match."""
    y_true = list("aaaabbbbcc")
    labels = [7, 7, 7, 2, 2, 2, 9, 9, 5, 5]
    display = ConfusionDisplay.from_predictions(y_true, labels)

    assert_array_equal(display.clusters, [7, 2, 5, 9])
    assert_array_equal(display.classes, ["a", "b", "c"])
    assert_array_equal(display.counts, [[3, 1, 0, 0], [0, 2, 0, 2], [0, 0, 2, 0]])
    assert_allclose(display.shares, [[0.75, 0.25, 0, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]])
    assert_allclose(display.image_.get_array(), display.shares)
    assert display.accuracy == clustering_accuracy(y_true, labels) == 0.7
    assert display.ax_.get_title() == "accuracy 0.700"
    assert [text.get_text() for text in display.texts_] == ["3\n75%", "1\n25%", "2\n50%", "2\n50%", "2\n100%"]
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["7", "2", "5", "9"]


def test_unmatched_classes_come_last():
    display = ConfusionDisplay.from_predictions([0, 1, 1, 2, 2, 2], [4, 4, 4, 6, 6, 6])

    assert_array_equal(display.classes, [1, 2, 0])
    assert_array_equal(display.counts, [[2, 0], [0, 3], [1, 0]])
    assert_allclose(np.trace(display.counts) / 6, display.accuracy)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(4, 4), (3, 7), (7, 3), (1, 3), (30, 30)])
def test_the_trace_of_the_matrix_is_the_accuracy(n_classes, n_clusters, rng):
    y, labels = rng.randint(n_classes, size=200), rng.randint(n_clusters, size=200)
    display = ConfusionDisplay.from_predictions(y, labels)

    assert display.counts.sum() == 200
    assert_allclose(np.trace(display.counts) / 200, clustering_accuracy(y, labels))
    assert bool(display.texts_) == (n_clusters <= 25)


def test_confusion_from_estimator_and_from_predictions_agree(blobs, model):
    from_model = ConfusionDisplay.from_estimator(model, *blobs)
    direct = ConfusionDisplay.from_predictions(blobs[1], model.labels_)

    assert_array_equal(from_model.counts, direct.counts)
    assert from_model.accuracy == direct.accuracy == 1
    with pytest.raises(ValueError, match="labels_pred has 90 entries, but 9 are required"):
        ConfusionDisplay.from_estimator(model, blobs[0], blobs[1][:9])
