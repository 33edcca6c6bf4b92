"""What all plots share: the palette, the axes, the base class of displays, and the rows of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_labels, import_optional
from ..core.arrays import convert_like, to_numpy
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..metrics import match_labels
from ..metrics.scores import labels_to_numpy

if TYPE_CHECKING:  # matplotlib is optional and slow to import
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import Array, LabelsLike, MatrixLike

# The first six are from Okabe and Ito's palette. Each further colour is the one farthest from those before it, for
# normal and for red-green colour-blind vision, among colours of moderate chroma that are visible on white and on the
# dark background of a report.
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b01838", "#a8b058", "#9088f8", "#006870",
    "#a87038", "#b01068", "#903090", "#386840", "#00c0c8", "#1858b8", "#c06060", "#506000", "#90b888", "#9088c0",
    "#c89838", "#88a8ff", "#b068d0", "#b09860", "#885890", "#389080", "#e87090", "#489848", "#b84020", "#908818",
)  # fmt: skip
# The same colours on the background of the report's dark theme, mixed with as much white as a contrast of 4.5 needs.
DARK_BACKGROUND = "#1a1d22"
PALETTE_ON_DARK = (
    "#338ec1", "#d7660d", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#cc697e", "#a8b058", "#9088f8", "#4d959b",
    "#b17e4c", "#cc649d", "#b16eb1", "#6a8e70", "#00c0c8", "#5d8acd", "#c67070", "#84904d", "#90b888", "#9088c0",
    "#c89838", "#88a8ff", "#b068d0", "#b09860", "#a079a6", "#429686", "#e87090", "#489848", "#ca7058", "#908818",
)  # fmt: skip
UNASSIGNED = "#9e9e9e"  # colour of rows without a cluster
CONFIDENCE_COLORS = ("#c8412b", "#e0a36a", "#9fb4c4", "#5592c4", "#2468a8")  # at confidence 0, 1/4, 1/2, 3/4, 1
MIN_OPACITY = 0.15  # opacity is confidence, but even a row with low memberships stays visible
PRIMARY, SECONDARY, TERTIARY = PALETTE[:3]  # colours of lines
DARK, MIDDLE, LIGHT = "#333333", "#8a8a8a", "#dddddd"  # greys
TITLE_SIZE, LABEL_SIZE, SMALL_SIZE = 10, 9, 8  # font sizes in points


def color_codes(labels: LabelsLike) -> np.ndarray:
    """Return the colour number of each label: integers as they are, names in sorted order, -1 for unassigned rows."""
    labels = check_labels(labels_to_numpy(labels))
    if labels.dtype.kind in "iub":
        return np.maximum(labels.astype(np.int64), -1)
    assigned = ~np.isin(labels.astype(str), ["-1", "-1.0"])
    codes = np.full(len(labels), -1)
    codes[assigned] = np.unique(labels[assigned], return_inverse=True)[1]
    return codes


def palette_rgb(codes: ArrayLike) -> np.ndarray:
    """Return red, green and blue of each colour number, shape (n, 3): grey below zero, repeating after thirty."""
    rgb = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in (*PALETTE, UNASSIGNED)])
    codes = np.asarray(codes, dtype=np.int64)
    return rgb[np.where(codes < 0, -1, codes % len(PALETTE))]


def class_color_codes(labels: LabelsLike, y: LabelsLike) -> np.ndarray:
    """Return the colour number of each row's class: that of the best matching cluster, or a new one if none is left.

    Examples
    --------
    >>> class_color_codes([0, 0, 1, 1], ["b", "b", "a", "-1"])
    array([ 0,  0,  1, -1])
    """
    clusters = color_codes(labels)
    y = check_labels(labels_to_numpy(y), "y", n_samples=len(clusters))
    classes = color_codes(y)
    known, codes = classes >= 0, np.full(len(y), -1)
    if known.any():
        matched = match_labels(clusters[known], classes[known])
        unmatched = matched < 0
        matched[unmatched] = clusters.max() + 1 + np.unique(classes[known][unmatched], return_inverse=True)[1]
        codes[known] = matched
    return codes


class Display:
    """Base of the displays, which are dataclasses of what they draw: the axes and figure of the plot."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _open(self, ax: Axes | None, size: tuple[float, float] = (5.2, 4.0)) -> None:
        """Draw on ``ax``, or on new axes of ``size`` in inches."""
        import_optional("matplotlib", extra="plot", purpose="plots")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure


def nothing_to_draw(model: BaseEstimator, lacks: str, hint: str = "", *, code: str) -> InputError:
    """Return the error for a model without what a display draws."""
    name = type(model).__name__
    return InputError(f"{name} {lacks}", hint, code=code, estimator=name)


def different_rows(n_rows: int, problem: str, n_training_rows: int) -> InputError:
    """Return the error for rows other than the training rows."""
    problem = f"X has {n_rows} rows, but {problem}"
    hint = "pass the training rows"
    return InputError(problem, hint, code="not_the_training_rows", n_rows=n_rows, n_training_rows=n_training_rows)


def style_axes(ax: Axes, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Set title and axis labels in a small font, and hide the top and right spines."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(MIDDLE)
    ax.tick_params(labelsize=SMALL_SIZE, color=MIDDLE)
    ax.set_title(title, fontsize=TITLE_SIZE, color=DARK)
    ax.set_xlabel(xlabel, fontsize=LABEL_SIZE)
    ax.set_ylabel(ylabel, fontsize=LABEL_SIZE)


def add_legend(ax: Axes, handles: list[Any] | None = None) -> None:
    """Add a small, slightly transparent legend where there is room."""
    options = {} if handles is None else {"handles": handles}
    ax.legend(fontsize=SMALL_SIZE, facecolor="white", edgecolor="none", framealpha=0.8, **options)


def use_integer_ticks(axis: Axis) -> None:
    """Put the ticks of an axis at integers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


# ---------------------------------------------------------------------------------------------------- rows of a model

LABEL_ATTRIBUTES = ("labels_", "transduction_")
MEMBERSHIP_ATTRIBUTES = ("memberships_", "label_distributions_")


class LabeledRows(NamedTuple):
    """Rows and what a model gives for them; None where it gives nothing."""

    labels: np.ndarray | None
    memberships: np.ndarray | None = None
    graph: AffinityGraph | None = None
    X: Array | None = None
    feature_names: tuple[str, ...] | None = None


def labeled_rows(model: BaseEstimator, X: MatrixLike | AffinityGraph | None = None) -> LabeledRows:
    """Return the labels of ``X``: those of the fit for the training rows (or None), those of ``predict`` for others."""
    check_is_fitted(model)
    data = as_rows(X)
    if data is None or was_fitted_to(model, data):
        rows = training_rows(model, data)
    else:
        memberships = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
        rows = LabeledRows(to_numpy(model.predict(X)), memberships, None, data, feature_names(model))
    if rows.labels is None:
        raise nothing_to_draw(model, "has no labels to draw", "pass a fitted clusterer", code="model_without_labels")
    if data is not None and data.shape[0] != (n := len(rows.labels)):
        raise different_rows(data.shape[0], f"{type(model).__name__} has labels for the {n} training rows only", n)
    return rows


def training_rows(model: BaseEstimator, X: Array | None = None) -> LabeledRows:
    """Return what a model stores of the rows it was fitted to."""
    check_is_fitted(model)
    labels = _first_attribute(model, LABEL_ATTRIBUTES)
    memberships = _first_attribute(model, MEMBERSHIP_ATTRIBUTES)
    graph = getattr(model, "graph_", None)
    graph = graph if isinstance(graph, AffinityGraph) else None
    return LabeledRows(labels, memberships, graph, X, feature_names(model))


def as_rows(X: MatrixLike | AffinityGraph | None) -> Array | None:
    """Validate ``X`` as rows; None for a graph, whose nodes have no coordinates."""
    return None if X is None or isinstance(X, AffinityGraph) else check_data(X)


def check_memberships(memberships: Array, n: int | None = None) -> np.ndarray:
    """Validate memberships: one row per sample, one column per cluster, entries between 0 and 1."""
    array = to_numpy(memberships)
    if array.ndim != 2 or 0 in array.shape or n not in (None, len(array)):
        problem = (
            f"memberships must have shape ({'n' if n is None else n}, n_clusters), one row per sample; "
            f"got shape {array.shape}"
        )
        raise InputError(problem, code="wrong_shape", parameter="memberships", shape=array.shape)
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1 + 1e-6):
        problem = "memberships must lie between 0 and 1"
        raise InputError(problem, "scale the rows to sum to one", code="invalid_memberships", parameter="memberships")
    return array.astype(np.float64)


def was_fitted_to(model: Any, X: Array) -> bool:
    """Whether ``X`` are the training rows, as far as the model can tell; without ``predict`` they must be."""
    if not hasattr(model, "predict"):
        return True
    if not hasattr(model, "_fit_X"):
        return False
    training_X = model._rows_of_fit() if hasattr(model, "_rows_of_fit") else model._fit_X
    if training_X is None:  # fitted on a graph or an affinity matrix
        return True
    if tuple(training_X.shape) != tuple(X.shape):
        return False
    X = convert_like(X, training_X)
    if sp.issparse(training_X):
        return bool((training_X != X).nnz == 0)
    return bool(np.array_equal(to_numpy(X), to_numpy(training_X)))


def n_clusters_of(model: BaseEstimator) -> int | None:
    """Return the number of clusters that a model found or was asked for."""
    for name in ("n_clusters_", "n_clusters"):
        if isinstance(number := getattr(model, name, None), (int, np.integer)):
            return int(number)
    labels = _first_attribute(model, LABEL_ATTRIBUTES)
    return None if labels is None else len(np.unique(labels))


def feature_names(model: BaseEstimator) -> tuple[str, ...] | None:
    """Return the names of the columns, if the training data had names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _first_attribute(model: BaseEstimator, names: tuple[str, ...]) -> np.ndarray | None:
    for name in names:
        if (value := getattr(model, name, None)) is not None:
            return to_numpy(value)
    return None
