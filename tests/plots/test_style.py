"""Behaviour common to all displays: the palette, the use of given axes, and no change of global settings."""

import subprocess
import sys
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import fiedler._validation
from fiedler import GaussianMixture, KNNGraph, LapGMM, ManifoldClustering, SpectralClustering, plots
from fiedler.manifold import NClustersChoice
from fiedler.plots.style import (
    DARK_BACKGROUND,
    PALETTE,
    PALETTE_ON_DARK,
    UNASSIGNED,
    color_codes,
    palette_rgb,
)

matplotlib.use("Agg")

LAYOUT = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
LABELS = np.array([0, 0, 1, -1])
MEMBERSHIPS = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
W = np.array([[0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0.0]])
CHOICE = NClustersChoice(3, "stability", [2, 3, 4], [0.1, 0.5, 0.2], [1.0, 0.9, 0.4], [0.0, 0.1, 0.1])

DISPLAYS = {
    "ClustersDisplay": lambda ax: plots.ClustersDisplay.from_predictions(LAYOUT, LABELS, MEMBERSHIPS, y=LABELS, ax=ax),
    "GraphDisplay": lambda ax: plots.GraphDisplay.from_graph(W, LAYOUT, LABELS, ax=ax),
    "SpectrumDisplay": lambda ax: plots.SpectrumDisplay.from_values([0.0, 0.1, 0.5], n_clusters=2, ax=ax),
    "HistoryDisplay": lambda ax: plots.HistoryDisplay.from_values([1.0, 2.0], [1.5, 2.2], ax=ax),
    "MembershipDisplay": lambda ax: plots.MembershipDisplay.from_predictions(MEMBERSHIPS, LABELS, ax=ax),
    "ConfusionDisplay": lambda ax: plots.ConfusionDisplay.from_predictions([0, 0, 1, 1], LABELS, ax=ax),
    "EvidenceDisplay": lambda ax: plots.EvidenceDisplay.from_choice(CHOICE, ax=ax),
    "StabilityDisplay": lambda ax: plots.StabilityDisplay.from_results("lam", [1, 2], [LABELS, LABELS], ax=ax),
}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(params=list(DISPLAYS))
def draw(request):
    return DISPLAYS[request.param]


def test_every_display_is_tested():
    assert set(DISPLAYS) == set(plots.__all__)


def test_given_axes_are_used_without_pyplot(draw):
    figure = matplotlib.figure.Figure()
    _, ax = figure.subplots(1, 2)

    display = draw(ax)

    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == []


def test_new_axes_are_created_and_saved_without_a_warning(draw, tmp_path):
    display = draw(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display.figure_.savefig(tmp_path / "a.png")

    assert plt.get_fignums() == [display.figure_.number]
    assert display.ax_.get_title()
    assert not display.ax_.spines["top"].get_visible()


def test_a_display_can_be_drawn_again(draw):
    display = draw(None)
    first = display.ax_

    assert display.plot() is display
    assert display.ax_ is not first


def test_no_global_setting_is_changed_and_nothing_is_shown(draw, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a display was shown"))
    before, backend = dict(matplotlib.rcParams), matplotlib.get_backend()

    draw(None)

    assert dict(matplotlib.rcParams) == before
    assert matplotlib.get_backend() == backend


def test_missing_matplotlib_error_names_the_extra(draw, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(fiedler._validation.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"plots need 'matplotlib'; install it with: pip install \"fiedler\[plot\]\""):
        draw(None)


def test_importing_the_displays_does_not_import_matplotlib():
    code = "import sys, fiedler.plots; print('matplotlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(
    "draw_model",
    [
        lambda model: plots.ClustersDisplay.from_estimator(model, LAYOUT),
        lambda model: plots.GraphDisplay.from_estimator(model),
        lambda model: plots.SpectrumDisplay.from_estimator(model),
        lambda model: plots.HistoryDisplay.from_estimator(model),
        lambda model: plots.MembershipDisplay.from_estimator(model, LAYOUT),
        lambda model: plots.ConfusionDisplay.from_estimator(model, LAYOUT, LABELS),
        lambda model: plots.EvidenceDisplay.from_estimator(model),
        lambda model: plots.StabilityDisplay.from_estimator(model, LAYOUT, "lam", [1, 2]),
    ],
)
@pytest.mark.parametrize("model", [ManifoldClustering(2), LapGMM(2), SpectralClustering(2)])
def test_models_must_be_fitted(draw_model, model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        draw_model(model)


# ---------------------------------------------------------------------------------------------------------- the palette


def linear(rgb):
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear light."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = rgb @ to_xyz.T / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


SIGHT = {  # Machado, Oliveira & Fernandes 2009, severity 1
    "usual": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def smallest_distance(n, sight):
    """The smallest CIELAB distance among the first n colours, for one kind of colour vision."""
    seen = lab(np.clip(linear(palette_rgb(range(n))) @ np.transpose(SIGHT[sight]), 0, 1))
    return np.linalg.norm(seen[:, None] - seen[None], axis=2)[~np.eye(n, dtype=bool)].min()


@pytest.mark.parametrize(
    ("sight", "min_of_ten", "min_of_all"), [("usual", 25, 18), ("protan", 17, 8), ("deutan", 17, 8)]
)
def test_colours_differ_for_every_colour_vision(sight, min_of_ten, min_of_all):
    assert smallest_distance(10, sight) > min_of_ten
    assert smallest_distance(len(PALETTE), sight) > min_of_all


@pytest.mark.parametrize("paper", ["#ffffff", "#1a1d22"])
def test_colours_are_visible_on_white_and_on_a_dark_page(paper):
    luminance = linear(palette_rgb(range(len(PALETTE)))) @ [0.2126, 0.7152, 0.0722] + 0.05
    background = linear(np.array(to_rgb(paper))) @ [0.2126, 0.7152, 0.0722] + 0.05

    assert np.maximum(luminance / background, background / luminance).min() > 2.2  # WCAG's contrast


def test_colours_repeat_after_thirty():
    assert_allclose(palette_rgb([30, 31]), palette_rgb([0, 1]))
    assert palette_rgb(range(100)).min() >= 0
    assert palette_rgb(range(100)).max() <= 1
    assert_allclose(palette_rgb([-1]), [to_rgb(UNASSIGNED)])


def test_the_colour_of_an_integer_label_does_not_depend_on_other_labels(foreign):
    assert_array_equal(color_codes([3, 7, -1, -5]), [3, 7, -1, -1])
    assert_array_equal(color_codes(foreign(np.array([3, 7]))), [3, 7])
    assert_array_equal(color_codes(["b", "-1", "a"]), [1, -1, 0])
    assert_array_equal(color_codes([2.0, -1.0, 5.0]), [0, -1, 1])
    assert_array_equal(color_codes([True, False]), [1, 0])


def test_models_without_the_data_to_draw_raise_an_error():
    X = np.random.RandomState(0).normal(size=(30, 3))
    mixture, graph = GaussianMixture(2, random_state=0).fit(X), KNNGraph(5).build(X)
    spectral = SpectralClustering(2, random_state=0).fit(graph)
    for draw_model, message in (
        (lambda: plots.GraphDisplay.from_estimator(mixture), "GaussianMixture has no graph"),
        (lambda: plots.SpectrumDisplay.from_estimator(mixture), "neither a graph with edges nor eigenvalues"),
        (lambda: plots.HistoryDisplay.from_estimator(spectral), "SpectralClustering has no history"),
        (lambda: plots.MembershipDisplay.from_estimator(spectral), "has labels but no memberships to draw"),
        (lambda: plots.EvidenceDisplay.from_estimator(spectral), "did not choose the number of clusters"),
    ):
        with pytest.raises(ValueError, match=message):
            draw_model()


def contrast(color, background):
    """The contrast ratio of two colours, from 1 to 21 [WCAG 2.2, relative luminance]."""

    def luminance(color):
        channels = np.array(to_rgb(color))
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    lighter, darker = sorted((luminance(color), luminance(background)), reverse=True)
    return round((lighter + 0.05) / (darker + 0.05), 6)


def on_dark(color):
    """The colour mixed with as much white as it needs to be readable on the dark background of a report."""
    mixtures = (1 - (1 - white) * (1 - np.array(to_rgb(color))) for white in np.linspace(0, 1, 21))
    return next(to_hex(mixed) for mixed in mixtures if contrast(to_hex(mixed), DARK_BACKGROUND) >= 4.5)


def test_all_colours_can_be_read_on_the_dark_background():
    assert all(contrast(color, DARK_BACKGROUND) >= 4.5 for color in PALETTE_ON_DARK)
    assert len(set(PALETTE_ON_DARK)) == len(PALETTE)
    assert [on_dark(color) for color in PALETTE] == list(PALETTE_ON_DARK)
