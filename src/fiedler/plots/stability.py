"""Agreement of clusterings with different values of a parameter."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from .._validation import check_labels
from ..core.backend import to_numpy
from ..errors import InputError, shown
from ..metrics import adjusted_rand_index, clustering_accuracy
from ..metrics.matching import labels_to_numpy
from .rows import training_rows
from .style import PRIMARY, SECONDARY, TERTIARY, add_legend, get_axes, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph

# Axis labels of common parameters; others are shown by their name.
PARAMETER_LABELS = {"lam": "λ", "graph__n_neighbors": "number of neighbours", "n_clusters": "number of clusters"}


class StabilityDisplay:
    """Adjusted Rand index of the clusters at each value of a parameter with those at the next, and with a fitted model.

    Parameters
    ----------
    name : str
        The name of the parameter.
    values : list
        Its values; drawn at equal distances.
    with_next : array of shape (m - 1,)
        Agreement of the clusters at each value with those at the next.
    with_fitted : array of shape (m,), optional
        Agreement of the clusters at each value with those of a fitted model.
    accuracy : array of shape (m,), optional
        Clustering accuracy at each value.
    fitted_value : object, optional
        The value of the fitted model.

    Attributes
    ----------
    lines_ : dict of Line2D
        The lines that are drawn, by 'next', 'fitted' and 'accuracy'.
    mark_ : Line2D or None
        The line at the value of the fitted model, if it lies within the range of ``values``.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from fiedler import KNNGraph, SpectralClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.plots import StabilityDisplay
    >>> X, y = two_moons(n_samples=200, noise=0.05, random_state=0)
    >>> model = SpectralClustering(2, KNNGraph(10, connect="mst"), random_state=0).fit(X)
    >>> display = StabilityDisplay.from_estimator(model, X, "graph__n_neighbors", [8, 10, 12], y=y)
    >>> display.accuracy
    array([1., 1., 1.])
    """

    def __init__(
        self,
        name: str,
        values: Sequence[Any],
        with_next: np.ndarray,
        *,
        with_fitted: np.ndarray | None = None,
        accuracy: np.ndarray | None = None,
        fitted_value: Any = None,
    ) -> None:
        self.name = name
        self.values = values
        self.with_next = with_next
        self.with_fitted = with_fitted
        self.accuracy = accuracy
        self.fitted_value = fitted_value

    @classmethod
    def from_estimator(
        cls,
        model: BaseEstimator,
        X: MatrixLike | AffinityGraph,
        name: str,
        values: Sequence[Any],
        *,
        y: LabelsLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Fit copies of a model with other values of a parameter.

        Parameters
        ----------
        model : fitted clusterer
            It is not changed. With ``random_state=None`` the copies differ in their seeds as well.
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix
            The training data of the model.
        name : str
            The parameter, as for ``set_params``: 'lam', 'graph__n_neighbors'.
        values : list
            At least two values, in order.
        y : array of shape (n,), optional
            Classes, for the accuracy; they are not used in fitting.
        ax : matplotlib axes, optional
        """
        fitted = training_rows(model).labels
        if fitted is None:
            estimator = type(model).__name__
            raise InputError(
                f"{estimator} has no labels to compare",
                "pass a fitted clusterer",
                code="model_without_labels",
                estimator=estimator,
            )
        values = _check_parameter_values(values)
        # The value that the fit chose itself (lam_), else the parameter; None if there is no such parameter.
        fitted_value = getattr(model, f"{name}_", model.get_params().get(name))
        labels = [to_numpy(clone(model).set_params(**{name: value}).fit(X).labels_) for value in values]
        return cls.from_results(name, values, labels, fitted=fitted, fitted_value=fitted_value, y=y, ax=ax)

    @classmethod
    def from_results(
        cls,
        name: str,
        values: Sequence[Any],
        labels: Sequence[LabelsLike],
        *,
        fitted: LabelsLike | None = None,
        fitted_value: Any = None,
        y: LabelsLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compare given labels.

        Parameters
        ----------
        name : str
            The name of the parameter.
        values : list
            At least two values, in order.
        labels : list of arrays of shape (n,)
            The clusters at each value.
        fitted : array of shape (n,), optional
            The clusters of a fitted model.
        fitted_value : object, optional
            The value of the fitted model.
        y : array of shape (n,), optional
            Classes, for the accuracy.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import StabilityDisplay
        >>> labels = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]]
        >>> StabilityDisplay.from_results("lam", [0.1, 1, 10], labels, y=labels[0]).accuracy
        array([1.  , 1.  , 0.75])
        """
        values = _check_parameter_values(values)
        if len(labels) != len(values):
            raise InputError(
                f"labels must have one array for each of the {len(values)} values; got {len(labels)}",
                code="wrong_length",
                parameter="labels",
            )
        first = check_labels(labels_to_numpy(labels[0]))
        partitions = [first, *(check_labels(labels_to_numpy(other), n_samples=len(first)) for other in labels[1:])]
        return cls(
            name,
            values,
            np.array([adjusted_rand_index(current, following) for current, following in pairwise(partitions)]),
            with_fitted=None if fitted is None else np.array([adjusted_rand_index(fitted, p) for p in partitions]),
            accuracy=None if y is None else np.array([clustering_accuracy(y, p) for p in partitions]),
            fitted_value=fitted_value,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the agreements.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = get_axes(ax, (5.6, 3.6))
        positions = np.arange(len(self.values))
        self.lines_: dict[str, Any] = {}
        curves: list[tuple[str, np.ndarray, np.ndarray | None, str, dict[str, Any]]] = [
            ("next", positions[:-1] + 0.5, self.with_next, "with the next value", {"color": PRIMARY, "marker": "s"}),
            ("fitted", positions, self.with_fitted, "with the fitted model", {"color": SECONDARY, "marker": "o"}),
            ("accuracy", positions, self.accuracy, "accuracy", {"color": TERTIARY, "marker": "^", "ls": "--"}),
        ]
        for key, x, y, label, style in curves:
            if y is not None:
                (self.lines_[key],) = self.ax_.plot(x, y, ms=4.5, lw=1.4, label=label, **style)
        self.mark_ = self._draw_fitted_value()
        self.ax_.set_xticks(positions, [_format_value(value) for value in self.values])
        low = min(float(line.get_ydata().min()) for line in self.lines_.values())
        self.ax_.set_ylim(min(0.0, low) - 0.03, 1.04)
        add_legend(self.ax_)
        title = f"mean agreement with the next value {np.mean(self.with_next):.2f}"
        xlabel = PARAMETER_LABELS.get(self.name, self.name)
        style_axes(self.ax_, title=title, xlabel=xlabel, ylabel="agreement")
        return self

    def _draw_fitted_value(self) -> Any:
        if (position := _find_position(self.fitted_value, self.values)) is None:
            return None
        label = f"fitted: {_format_value(self.fitted_value)}"
        return self.ax_.axvline(position, color=SECONDARY, lw=1, ls=":", zorder=0, label=label)


def _find_position(value: object, values: Sequence[Any]) -> float | None:
    """Return the position of a value on the axis, interpolated between numbers; None if it is not within the range."""
    if not all(map(_is_number, (value, *values))):
        equal = [i for i, other in enumerate(values) if _format_value(other) == _format_value(value)]
        return float(equal[0]) if equal and value is not None else None
    number: Any = value
    inside = (np.diff(values) > 0).all() and values[0] <= number <= values[-1]
    return float(np.interp(number, values, np.arange(len(values)))) if inside else None


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_parameter_values(values: Any) -> list[Any]:
    values = list(values)
    if len(values) < 2:
        raise InputError(
            f"values must contain at least two values to compare; got {shown(values)}",
            code="too_few_values",
            parameter="values",
            value=values,
        )
    return values


def _format_value(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) and not isinstance(value, numbers.Integral) else str(value)
