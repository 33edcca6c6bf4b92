"""How far the clusters depend on a setting."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from .._validation import check_labels
from ..core.backend import to_numpy
from ..metrics import adjusted_rand_index, clustering_accuracy
from ..metrics.matching import on_host
from .fitted import kept
from .style import MAIN, OTHER, THIRD, Axes, canvas, legend, quiet

NAMES = {"lam": "λ", "graph__n_neighbors": "number of neighbours", "n_clusters": "number of clusters"}


class StabilityDisplay:
    """Agreement (adjusted Rand index) of the clusters at one setting with those at the next, and with a fitted model.

    Parameters
    ----------
    name : str
        Of the setting.
    values : list
        What it was set to; drawn at even distances.
    with_next : array of shape (m - 1,)
        The agreement of each with the next.
    with_fitted : array of shape (m,), optional
        The agreement of each with the clusters of a fitted model.
    accuracy : array of shape (m,), optional
    fitted_value : object, optional
        What the setting of the fitted model was.

    Attributes
    ----------
    lines_ : dict of Line2D
        'next', 'fitted', 'accuracy', as far as they are drawn.
    mark_ : Line2D or None
        At the setting of the fitted model, where it lies among those tried.
    ax_, figure_

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
        with_next: Any,
        *,
        with_fitted: Any = None,
        accuracy: Any = None,
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
        cls, model: Any, X: Any, name: str, values: Sequence[Any], *, y: Any = None, ax: Axes = None
    ) -> StabilityDisplay:
        """Fit copies of a model with other settings.

        Parameters
        ----------
        model : fitted clusterer
            It is left as it is. With ``random_state=None`` the copies differ by their seeds too.
        X : array or CSR matrix of shape (n, d), AffinityGraph, or affinity matrix
            What it was fitted to.
        name : str
            The parameter, as for ``set_params``: 'lam', 'graph__n_neighbors'.
        values : list
            At least two settings, in order.
        y : array of shape (n,), optional
            Classes, for the accuracy; no model sees them.
        ax : matplotlib axes, optional
        """
        fitted = kept(model).labels
        if fitted is None:
            raise ValueError(f"{type(model).__name__} has no labels to compare; give a fitted clusterer")
        values = _check_settings(values)
        labels = [to_numpy(clone(model).set_params(**{name: value}).fit(X).labels_) for value in values]
        return cls.from_results(
            name, values, labels, fitted=fitted, fitted_value=_setting(model, name), y=y, ax=ax
        )  # fmt: skip

    @classmethod
    def from_results(
        cls,
        name: str,
        values: Sequence[Any],
        labels: Sequence[Any],
        *,
        fitted: Any = None,
        fitted_value: Any = None,
        y: Any = None,
        ax: Axes = None,
    ) -> StabilityDisplay:
        """Labels that are known.

        Parameters
        ----------
        name : str
            Of the setting.
        values : list
            At least two settings, in order.
        labels : list of arrays of shape (n,)
            The clusters at each setting.
        fitted : array of shape (n,), optional
            The clusters of a fitted model.
        fitted_value : object, optional
            What its setting was.
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
        values = _check_settings(values)
        if len(labels) != len(values):
            raise ValueError(f"labels must be given for each of the {len(values)} values; got {len(labels)}")
        n = len(labels[0])
        found = [check_labels(on_host(one), n_samples=n) for one in labels]
        with_next = [adjusted_rand_index(one, other) for one, other in pairwise(found)]
        with_fitted = None if fitted is None else [adjusted_rand_index(fitted, one) for one in found]
        accuracy = None if y is None else [clustering_accuracy(y, one) for one in found]
        return cls(
            name, values, np.array(with_next), fitted_value=fitted_value,
            with_fitted=None if with_fitted is None else np.array(with_fitted),
            accuracy=None if accuracy is None else np.array(accuracy),
        ).plot(ax)  # fmt: skip

    def plot(self, ax: Axes = None) -> StabilityDisplay:
        """Draw the agreements.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = canvas(ax, (5.6, 3.6))
        places = np.arange(len(self.values))
        self.lines_ = {}
        for key, x, y, label, style in (
            ("next", places[:-1] + 0.5, self.with_next, "with the next setting", {"color": MAIN, "marker": "s"}),
            ("fitted", places, self.with_fitted, "with the fitted model", {"color": OTHER, "marker": "o"}),
            ("accuracy", places, self.accuracy, "accuracy", {"color": THIRD, "marker": "^", "ls": "--"}),
        ):
            if y is not None:
                (self.lines_[key],) = self.ax_.plot(x, y, ms=4.5, lw=1.4, label=label, **style)
        self.mark_ = self._mark()
        self.ax_.set_xticks(places, [_written(value) for value in self.values])
        lowest = min(float(line.get_ydata().min()) for line in self.lines_.values())
        self.ax_.set_ylim(min(0.0, lowest) - 0.03, 1.04)
        legend(self.ax_)
        quiet(self.ax_, title=self._title(), xlabel=NAMES.get(self.name, self.name), ylabel="agreement")
        return self

    def _mark(self) -> Any:
        if (at := _place(self.fitted_value, self.values)) is None:
            return None
        name = f"fitted: {_written(self.fitted_value)}"
        return self.ax_.axvline(at, color=OTHER, lw=1, ls=":", zorder=0, label=name)

    def _title(self) -> str:
        return f"agreement with the next setting {np.mean(self.with_next):.2f} on average"


def _place(value: Any, values: Sequence[Any]) -> float | None:
    """Where a setting lies among others: between two numbers, at its equal, or nowhere."""
    if not all(map(_is_number, (value, *values))):
        same = [place for place, other in enumerate(values) if _written(other) == _written(value)]
        return float(same[0]) if same and value is not None else None
    inside = (np.diff(values) > 0).all() and values[0] <= value <= values[-1]
    return float(np.interp(value, values, np.arange(len(values)))) if inside else None


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _setting(model: Any, name: str) -> Any:
    """The value a fitted model used: what it found itself (lam_), else its parameter; None if that has no such name."""
    return getattr(model, f"{name}_", model.get_params().get(name))


def _check_settings(values: Any) -> list[Any]:
    values = list(values)
    if len(values) < 2:
        raise ValueError(f"values must hold at least two settings to compare; got {values!r}")
    return values


def _written(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) and not isinstance(value, numbers.Integral) else str(value)
