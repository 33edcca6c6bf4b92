"""Displays of numbers about a fit: spectrum, history, evidence for K, stability."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs

from fiedler import (
    LPI,
    NLE,
    GaussianMixture,
    KNNGraph,
    LandmarkGraph,
    LapGMM,
    LaplacianEigenmaps,
    LearnedLaplacian,
    ManifoldClustering,
    SpectralClustering,
    choose_n_clusters,
)
from fiedler.baselines import GNMF
from fiedler.clustering import NClustersChoice
from fiedler.core.eigen import widest_gap
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.plots import EvidenceDisplay, HistoryDisplay, SpectrumDisplay, StabilityDisplay
from fiedler.plots.style import MAIN, MIDDLE, OTHER

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


# ------------------------------------------------------------------------------------------------------------- spectrum


def test_the_widest_gap_is_marked():
    values = np.array([0.0, 0.01, 0.03, 0.4, 0.5])
    display = SpectrumDisplay.from_values(values, n_clusters=2)

    assert display.gap == widest_gap(values) == 3
    assert_allclose(display.points_.get_offsets(), np.column_stack([[1, 2, 3, 4, 5], values]))
    assert_allclose(display.points_.get_facecolors(), [to_rgba(MAIN)] * 3 + [to_rgba(MIDDLE)] * 2)
    assert_allclose((display.band_.get_y(), display.band_.get_y() + display.band_.get_height()), (0.03, 0.4))
    assert_allclose(display.chosen_.get_xdata(), 2.5)  # between the second value and the third
    assert display.ax_.get_title() == "widest gap after 3"


def test_one_value_and_no_number_of_clusters():
    display = SpectrumDisplay.from_values([0.0])

    assert display.band_ is None
    assert display.chosen_ is None
    assert SpectrumDisplay.from_values([0.0, 1.0], n_clusters=9).chosen_ is None  # beyond what is drawn


@pytest.mark.parametrize("kind", ["symmetric", "combinatorial"])
def test_values_are_those_of_the_laplacian(kind, uneven_graph):
    display = SpectrumDisplay.from_graph(uneven_graph, 6, kind=kind)

    assert_allclose(display.values, np.linalg.eigvalsh(uneven_graph.laplacian(kind).toarray())[:6], atol=1e-9)
    assert len(SpectrumDisplay.from_graph(uneven_graph.weights.toarray(), 99).values) == 10  # all there are


def test_a_model_shows_the_gap_after_its_clusters(blobs):
    model = SpectralClustering(3, KNNGraph(8, connect="mst"), random_state=0).fit(blobs[0])
    display = SpectrumDisplay.from_estimator(model)

    assert_allclose(display.values[:3], model.eigenvalues_, atol=1e-7)
    assert len(display.values) == 10
    assert display.n_clusters == 3
    other = SpectrumDisplay.from_graph(model.graph_, 10, n_clusters=3)
    assert_array_equal(display.values, other.values)
    assert len(SpectrumDisplay.from_estimator(model, n=4).values) == 4


def test_a_ratio_cut_has_the_spectrum_of_its_own_laplacian(blobs):
    model = SpectralClustering(3, KNNGraph(8, connect="mst"), cut="ratio", random_state=0).fit(blobs[0])

    assert_allclose(SpectrumDisplay.from_estimator(model).values[:3], model.eigenvalues_, atol=1e-6)


def test_eigenvalues_serve_where_there_is_no_graph(blobs):
    model = LaplacianEigenmaps(4, KNNGraph(8, connect="mst"), random_state=0).fit(blobs[0])
    values, model.graph_ = model.eigenvalues_, None

    assert_array_equal(SpectrumDisplay.from_estimator(model).values, values)
    assert SpectrumDisplay.from_estimator(model).n_clusters is None


@pytest.mark.parametrize(
    ("values", "sentence"),
    [([], "list of finite eigenvalues"), ([[0.0]], "got shape"), ([0, np.nan], "finite"), ([1, 0], "must ascend")],
)
def test_bad_values_get_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        SpectrumDisplay.from_values(np.array(values, dtype=float))


# -------------------------------------------------------------------------------------------------------------- history


def test_a_mixtures_objective_is_its_likelihood_less_its_penalty(blobs):
    model = LapGMM(3, lam=0.5, random_state=0).fit(blobs[0])
    display = HistoryDisplay.from_estimator(model)

    objective, likelihood = display.lines_
    assert_array_equal(objective.get_ydata(), [step.objective for step in model.history_])
    assert_array_equal(likelihood.get_ydata(), [step.likelihood for step in model.history_])
    assert_array_equal(objective.get_xdata(), np.arange(1, model.n_iter_ + 1))
    assert_allclose(display.penalty, [step.penalty for step in model.history_], atol=1e-9)
    assert likelihood.get_label() == "likelihood"
    other = HistoryDisplay.from_values(display.objective, display.free)
    assert_array_equal(other.penalty, display.penalty)
    assert_array_equal(other.iterations, display.iterations)


def test_without_a_penalty_there_is_one_line(blobs):
    display = HistoryDisplay.from_estimator(GaussianMixture(3, random_state=0).fit(blobs[0]))

    assert len(display.lines_) == 1
    assert display.band_ is None
    assert display.ax_.get_legend() is None


def test_the_updates_of_an_embedding(blobs):
    model = NLE(3, KNNGraph(8), n_init=1, random_state=0).fit(blobs[0])
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_["objective"])
    assert_array_equal(display.iterations, np.arange(1, model.n_iter_ + 1))


@pytest.mark.filterwarnings("ignore:GNMF did not converge")
def test_values_looked_at_now_and_then_stand_where_they_were(blobs):
    model = GNMF(3, n_init=1, max_iter=25, tol=0, random_state=0).fit(blobs[0] - blobs[0].min(axis=0))
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_.objective)
    assert_array_equal(display.iterations, [0, 10, 20, 25])


@pytest.mark.parametrize("optimizer", ["lbfgs", "doubling"])
def test_a_learnt_laplacian(optimizer, blobs):
    partial = np.where(np.arange(90) < 20, blobs[1], -1)
    weight = {"metric": "diagonal", "pair_weight": 1.0} if optimizer == "doubling" else {}
    model = LearnedLaplacian(optimizer=optimizer, max_iter=5, random_state=0, **weight).fit(blobs[0], partial)
    display = HistoryDisplay.from_estimator(model)

    told, penalty = np.array(model.history_["objective"]), np.array(model.history_.get("penalty", 0.0))
    assert_allclose(display.objective, told + penalty)
    assert display.iterations[-1] == model.n_iter_
    assert (display.penalty is None) == (optimizer == "doubling")


def test_values_that_fall_far_have_a_logarithmic_scale():
    assert HistoryDisplay.from_values([1000.0, 5.0, 4.0]).ax_.get_yscale() == "log"
    assert HistoryDisplay.from_values([5.0, 4.0]).ax_.get_yscale() == "linear"
    assert HistoryDisplay.from_values([-1000.0, 4.0]).ax_.get_yscale() == "linear"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (([],), "objective must be a value an iteration"),
        (([[1.0]],), "objective must be"),
        (([1.0, 2.0], [1.0]), "free must be 2 values, one an iteration"),
    ],
)
def test_bad_histories_get_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        HistoryDisplay.from_values(*values)


# ------------------------------------------------------------------------------------------------------------- evidence


def test_evidence_is_drawn_as_it_is():
    choice = NClustersChoice(3, "stability", [2, 3, 5], [0.1, 0.5, 0.2], [1.0, 0.9, 0.4], [0.0, 0.1, 0.1])
    display = EvidenceDisplay.from_choice(choice)

    line = display.line_.lines[0]
    assert_array_equal(line.get_xdata(), choice.candidates)
    assert_array_equal(line.get_ydata(), choice.stability)
    assert [bar.get_height() for bar in display.bars_] == choice.gaps
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in display.bars_], choice.candidates)
    shades = [bar.get_facecolor()[:3] for bar in display.bars_]
    assert_allclose(shades, [to_rgba(shade)[:3] for shade in (MIDDLE, OTHER, MIDDLE)])  # the chosen one in colour
    assert display.gap_ax_ is not display.ax_
    assert display.ax_.get_title() == "3 clusters, by stability"


def test_either_kind_of_evidence_is_enough(blobs):
    gaps = choose_n_clusters(blobs[0], range(2, 6), estimator=SpectralClustering(), by="eigengap", random_state=0)
    display = EvidenceDisplay.from_choice(gaps)
    assert display.line_ is None
    assert display.gap_ax_ is display.ax_
    stability = EvidenceDisplay.from_choice(NClustersChoice(2, "stability", [2, 3], None, [1.0, 0.5], [0.0, 0.1]))
    assert stability.bars_ is None
    with pytest.raises(ValueError, match="no evidence to draw: 2 clusters, by lack of choice"):
        EvidenceDisplay.from_choice(NClustersChoice(2, "lack of choice", [2], None))


def test_a_model_that_counted_shows_why(blobs):
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match="ManifoldClustering has counted no clusters; fit"):
        EvidenceDisplay.from_estimator(model)
    model.evidence_ = NClustersChoice(3, "eigengap", [2, 3], [0.1, 0.2])  # as n_clusters="auto" leaves it

    assert EvidenceDisplay.from_estimator(model).choice is model.evidence_


# ------------------------------------------------------------------------------------------------------------ stability


def test_agreements_are_those_of_refitted_copies(blobs):
    X, y = blobs
    model = SpectralClustering(3, KNNGraph(8), random_state=0).fit(X)
    values = [2, 3, 4]
    display = StabilityDisplay.from_estimator(model, X, "n_clusters", values, y=y)

    labels = [clone(model).set_params(n_clusters=k).fit(X).labels_ for k in values]
    assert_allclose(display.with_next, [adjusted_rand_index(labels[i], labels[i + 1]) for i in range(2)])
    assert_allclose(display.with_fitted, [adjusted_rand_index(model.labels_, own) for own in labels])
    assert display.with_fitted[1] == 1
    assert_allclose(display.accuracy, [clustering_accuracy(y, own) for own in labels])
    other = StabilityDisplay.from_results("n_clusters", values, labels, fitted=model.labels_, y=y)
    for name in ("with_next", "with_fitted", "accuracy"):
        assert_array_equal(getattr(display, name), getattr(other, name))


def test_lines_stand_at_settings_and_between_them(blobs):
    display = StabilityDisplay.from_results(
        "lam", [0, 0.1, "auto"], [[0, 0, 1], [0, 1, 1], [0, 1, 1]], fitted=[0, 0, 1], y=[0, 1, 1]
    )

    assert_array_equal(display.lines_["next"].get_xdata(), [0.5, 1.5])
    assert_array_equal(display.lines_["next"].get_ydata(), display.with_next)
    assert_array_equal(display.lines_["fitted"].get_xdata(), [0, 1, 2])
    assert_array_equal(display.lines_["accuracy"].get_ydata(), [2 / 3, 1, 1])
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "0.1", "auto"]
    assert display.ax_.get_xlabel() == "λ"
    low, high = display.ax_.get_ylim()
    assert low < display.with_next.min()
    assert high > 1
    assert set(StabilityDisplay.from_results("p", [1, 2], [[0, 1], [0, 1]]).lines_) == {"next"}


@pytest.mark.parametrize(
    ("fitted", "values", "at"),
    [(2, [1, 2, 4], 1), (3, [1, 2, 4], 1.5), (9, [1, 2, 4], None), ("full", ["tied", "full"], 1), (None, [1, 2], None)],
)
def test_the_setting_of_the_fitted_model_is_marked(fitted, values, at):
    labels = [[0, 0, 1]] * len(values)
    mark = StabilityDisplay.from_results("a", values, labels, fitted=labels[0], fitted_value=fitted).mark_

    assert (None if mark is None else mark.get_xdata()[0]) == at


def test_a_setting_that_the_model_found_itself_is_marked(blobs):
    model = LapGMM(3, random_state=0).fit(blobs[0])
    display = StabilityDisplay.from_estimator(model, blobs[0], "lam", [0, 2 * model.lam_])

    assert display.fitted_value == model.lam_
    assert_allclose(display.mark_.get_xdata(), 0.5)
    assert model.lam == "auto"  # left as it was


def test_settings_of_the_graph(blobs):
    model = SpectralClustering(3, random_state=0).fit(blobs[0])
    display = StabilityDisplay.from_estimator(model, blobs[0], "graph__n_neighbors", [8, 12])

    assert model.graph is None
    assert display.ax_.get_xlabel() == "number of neighbours"


def test_bad_settings_get_a_sentence(blobs):
    model = SpectralClustering(3, KNNGraph(8), random_state=0).fit(blobs[0])
    for draw, sentence in (
        (lambda: StabilityDisplay.from_estimator(model, blobs[0], "n_clusters", [3]), "at least two settings"),
        (lambda: StabilityDisplay.from_estimator(model, blobs[0], "lamb", [1, 2]), "Invalid parameter 'lamb'"),
        (lambda: StabilityDisplay.from_results("p", [1, 2], [[0, 1]]), "each of the 2 values; got 1"),
        (lambda: StabilityDisplay.from_results("p", [1, 2], [[0, 1], [0]]), "labels hold 1 entries, but 2"),
        (
            lambda: StabilityDisplay.from_estimator(LPI(2, KNNGraph(5)).fit(blobs[0]), blobs[0], "alpha", [0, 1]),
            "LPI has no labels to compare",
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            draw()


def test_landmarks_have_no_spectrum(blobs):
    model = NLE(3, LandmarkGraph(20, random_state=0), n_init=1, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match="NLE has neither a graph of single edges nor eigenvalues"):
        SpectrumDisplay.from_estimator(model)
