"""Displays of how a fit went: history, evidence for the number of clusters, stability."""

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
    LapGMM,
    LearnedLaplacian,
    ManifoldClustering,
    SpectralClustering,
)
from fiedler._records import FitHistory
from fiedler.manifold import NClustersChoice
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.plots import EvidenceDisplay, HistoryDisplay, StabilityDisplay
from fiedler.plots.style import MIDDLE, SECONDARY
from fiedler_papers.baselines import GNMF

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)


# -------------------------------------------------------------------------------------------------------------- history


def test_a_maximised_objective_is_drawn_with_the_likelihood_above():
    terms = {"likelihood": [1.0, 2.0, 3.0], "penalty": [0.5, 0.25, 0.25]}
    history = FitHistory([0.5, 1.75, 2.75], maximize=True, terms=terms)
    display = HistoryDisplay.from_history(history)

    objective, likelihood = display.lines_
    assert_array_equal(objective.get_ydata(), [0.5, 1.75, 2.75])
    assert_array_equal(objective.get_xdata(), [1, 2, 3])
    assert_array_equal(likelihood.get_ydata(), [1, 2, 3])  # objective + penalty
    assert likelihood.get_label() == "likelihood"
    assert_array_equal(display.penalty, [0.5, 0.25, 0.25])


def test_a_minimised_objective_is_drawn_with_its_unpenalized_part_below():
    history = FitHistory([5.0, 3.0], maximize=False, terms={"penalty": [1.0, 2.0], "change": [1.0, 0.5]})
    display = HistoryDisplay.from_history(history)

    assert_array_equal(display.unpenalized, [4, 1])  # objective - penalty
    assert_array_equal(display.penalty, [1, 2])
    assert display.lines_[1].get_label() == "without the penalty"


@pytest.mark.parametrize("terms", [{}, {"penalty": [0.0, 0.0]}, {"cut": [0.5, np.nan]}])
def test_without_a_penalty_there_is_one_line(terms):
    display = HistoryDisplay.from_history(FitHistory([1.0, 2.0], maximize=True, terms=terms))

    assert len(display.lines_) == 1
    assert display.band_ is None
    assert display.ax_.get_legend() is None


def test_values_are_drawn_at_the_iterations_that_recorded_them():
    display = HistoryDisplay.from_history(FitHistory([3.0, 2.0, 1.0], maximize=False, iterations=[0, 10, 15]))

    assert_array_equal(display.lines_[0].get_xdata(), [0, 10, 15])
    assert display.ax_.get_title() == "objective 1 after 15 iterations"


def test_history_of_a_mixture(blobs):
    model = LapGMM(3, lam=0.5, random_state=0).fit(blobs[0])
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_.objective)
    assert_allclose(display.unpenalized, model.history_["likelihood"])
    assert_allclose(display.penalty, model.history_["penalty"], atol=1e-9)
    assert_array_equal(display.iterations, np.arange(1, model.n_iter_ + 1))
    assert len(HistoryDisplay.from_estimator(GaussianMixture(3, random_state=0).fit(blobs[0])).lines_) == 1


def test_history_of_nle(blobs):
    model = NLE(3, KNNGraph(8), n_init=1, random_state=0).fit(blobs[0])
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_.objective)
    assert_array_equal(display.iterations, np.arange(1, model.n_iter_ + 1))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_history_of_gnmf_is_recorded_every_tenth_iteration(blobs):
    model = GNMF(3, n_init=1, max_iter=25, tol=0, random_state=0).fit(blobs[0] - blobs[0].min(axis=0))
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_.objective)
    assert_array_equal(display.iterations, [0, 10, 20, 25])


@pytest.mark.parametrize("optimizer", ["lbfgs", "levenberg_marquardt", "doubling"])
def test_history_of_a_learned_laplacian(optimizer, blobs):
    partial = np.where(np.arange(90) < 20, blobs[1], -1)
    weight = {"metric": "diagonal", "pair_weight": 1.0} if optimizer == "doubling" else {"penalty": 0.1}
    model = LearnedLaplacian(optimizer=optimizer, max_iter=5, random_state=0, **weight).fit(blobs[0], partial)
    display = HistoryDisplay.from_estimator(model)

    assert_array_equal(display.objective, model.history_.objective)
    assert display.iterations[-1] == model.n_iter_
    assert (display.penalty is None) == (optimizer == "doubling")


def test_values_over_several_magnitudes_have_a_logarithmic_scale():
    assert HistoryDisplay.from_values([1000.0, 5.0, 4.0]).ax_.get_yscale() == "log"
    assert HistoryDisplay.from_values([5.0, 4.0]).ax_.get_yscale() == "linear"
    assert HistoryDisplay.from_values([-1000.0, 4.0]).ax_.get_yscale() == "linear"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([],), "objective must have one value per iteration"),
        (([[1.0]],), "objective must have"),
        (([1.0, 2.0], [1.0]), "unpenalized must have 2 values, one per iteration"),
    ],
)
def test_invalid_histories_raise_an_error(values, message):
    with pytest.raises(ValueError, match=message):
        HistoryDisplay.from_values(*values)


# ------------------------------------------------------------------------------------------------------------- evidence


def test_evidence_is_drawn_with_the_chosen_number_highlighted():
    choice = NClustersChoice(3, "score", [2, 3, 5], [1.0, 0.9, 0.4], [0.0, 0.1, 0.1], score=[0.1, 0.5, 0.2])
    display = EvidenceDisplay.from_choice(choice)

    line = display.line_.lines[0]
    assert_array_equal(line.get_xdata(), choice.candidates)
    assert_array_equal(line.get_ydata(), choice.stability)
    assert [bar.get_height() for bar in display.bars_] == choice.score
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in display.bars_], choice.candidates)
    shades = [bar.get_facecolor()[:3] for bar in display.bars_]
    assert_allclose(shades, [to_rgba(shade)[:3] for shade in (MIDDLE, SECONDARY, MIDDLE)])  # the chosen one in colour
    assert display.score_ax_ is not display.ax_
    assert display.score_ax_.get_ylabel() == "score"
    assert display.ax_.get_title() == "3 clusters"


def test_the_ticks_of_many_candidates_do_not_overlap():
    candidates = [*range(2, 13), 15, 19, 24, 30, 37, 46, 57, 71, 89, 111, 139]
    display = EvidenceDisplay.from_choice(NClustersChoice(3, "score", candidates, score=[0.1] * len(candidates)))

    ticks = display.ax_.get_xticks()

    assert len(ticks) < 12
    assert_array_equal(ticks, np.round(ticks))


def test_one_kind_of_evidence_is_enough(blobs):
    display = EvidenceDisplay.from_choice(NClustersChoice(3, "score", [2, 3], score=[0.1, 0.3]))
    assert display.line_ is None
    assert display.score_ax_ is display.ax_
    stability = EvidenceDisplay.from_choice(NClustersChoice(2, "score", [2, 3], [1.0, 0.5], [0.0, 0.1]))
    assert stability.bars_ is None
    assert stability.score_ax_ is None
    with pytest.raises(ValueError, match=r"no evidence to draw: 2 clusters, the only candidate\."):
        EvidenceDisplay.from_choice(NClustersChoice(2, "the only candidate", [2]))


def test_evidence_of_a_model_that_chose_the_number_of_clusters(blobs):
    model = ManifoldClustering(3, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match="ManifoldClustering did not choose the number of clusters; fit"):
        EvidenceDisplay.from_estimator(model)
    model.evidence_ = NClustersChoice(3, "score", [2, 3], score=[0.1, 0.2])  # as after fit with n_clusters="auto"

    assert EvidenceDisplay.from_estimator(model).choice is model.evidence_


# ------------------------------------------------------------------------------------------------------------ stability


def test_agreement_equals_that_of_refitted_copies(blobs):
    X, y = blobs
    model = SpectralClustering(3, KNNGraph(8), random_state=0).fit(X)
    values = [2, 3, 4]
    display = StabilityDisplay.from_estimator(model, X, "n_clusters", values, y=y)

    labels = [clone(model).set_params(n_clusters=k).fit(X).labels_ for k in values]
    assert_allclose(display.with_next, [adjusted_rand_index(labels[i], labels[i + 1]) for i in range(2)])
    assert_allclose(display.with_fitted, [adjusted_rand_index(model.labels_, fitted) for fitted in labels])
    assert display.with_fitted[1] == 1
    assert_allclose(display.accuracy, [clustering_accuracy(y, fitted) for fitted in labels])
    direct = StabilityDisplay.from_results("n_clusters", values, labels, fitted=model.labels_, y=y)
    for name in ("with_next", "with_fitted", "accuracy"):
        assert_array_equal(getattr(display, name), getattr(direct, name))


def test_lines_are_drawn_at_the_values_and_between_them(blobs):
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
def test_the_value_of_the_fitted_model_is_marked(fitted, values, at):
    labels = [[0, 0, 1]] * len(values)
    mark = StabilityDisplay.from_results("a", values, labels, fitted=labels[0], fitted_value=fitted).mark_

    assert (None if mark is None else mark.get_xdata()[0]) == at


def test_a_value_chosen_by_the_fit_is_marked(blobs):
    model = LapGMM(3, random_state=0).fit(blobs[0])
    display = StabilityDisplay.from_estimator(model, blobs[0], "lam", [0, 2 * model.lam_])

    assert display.fitted_value == model.lam_
    assert_allclose(display.mark_.get_xdata(), 0.5)
    assert model.lam == "auto"  # the model is not changed


def test_parameters_of_the_graph(blobs):
    model = SpectralClustering(3, random_state=0).fit(blobs[0])
    display = StabilityDisplay.from_estimator(model, blobs[0], "graph__n_neighbors", [8, 12])

    assert model.graph is None
    assert display.ax_.get_xlabel() == "number of neighbours"


def test_invalid_parameter_values_raise_an_error(blobs):
    model = SpectralClustering(3, KNNGraph(8), random_state=0).fit(blobs[0])
    for draw, message in (
        (lambda: StabilityDisplay.from_estimator(model, blobs[0], "n_clusters", [3]), "at least two values"),
        (lambda: StabilityDisplay.from_estimator(model, blobs[0], "lamb", [1, 2]), "Invalid parameter 'lamb'"),
        (lambda: StabilityDisplay.from_results("p", [1, 2], [[0, 1]]), "each of the 2 values; got 1"),
        (lambda: StabilityDisplay.from_results("p", [1, 2], [[0, 1], [0]]), "labels has 1 entries, but 2"),
        (
            lambda: StabilityDisplay.from_estimator(LPI(2, KNNGraph(5)).fit(blobs[0]), blobs[0], "alpha", [0, 1]),
            "LPI has no labels to compare",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            draw()
