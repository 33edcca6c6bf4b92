"""The objective of a fit by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._records import FitHistory
from ..core.backend import to_numpy
from ..errors import InputError
from .style import DARK, PRIMARY, SECONDARY, add_legend, get_axes, style_axes, use_integer_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import Array

MIN_LOG_SCALE_RATIO = 10  # of the highest to the lowest value: from here on the scale is logarithmic


class HistoryDisplay:
    """The objective by iteration, and the objective without its penalty; the band between them is the penalty.

    Parameters
    ----------
    objective : array of shape (m,)
        The values of the objective.
    unpenalized : array of shape (m,), optional
        The objective without its penalty; the likelihood of a mixture.
    iterations : array of shape (m,), optional
        The iteration after which each value was recorded; by default 1, 2, ...
    unpenalized_name : str, default='without the penalty'
        The name of the second curve.

    Attributes
    ----------
    penalty : array of shape (m,) or None
        The difference between the two curves.
    lines_ : list of Line2D
        The curves.
    band_ : FillBetweenPolyCollection or None
        The area between them.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from fiedler import LapGMM
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.plots import HistoryDisplay
    >>> X, y = two_moons(n_samples=200, noise=0.05, random_state=0)
    >>> model = LapGMM(2, random_state=0).fit(X)
    >>> display = HistoryDisplay.from_estimator(model)
    >>> len(display.objective) == model.n_iter_
    True
    """

    def __init__(
        self,
        objective: np.ndarray,
        *,
        unpenalized: np.ndarray | None = None,
        iterations: np.ndarray | None = None,
        unpenalized_name: str = "without the penalty",
    ) -> None:
        self.objective = objective
        self.unpenalized = unpenalized
        self.iterations = iterations
        self.unpenalized_name = unpenalized_name

    @property
    def penalty(self) -> np.ndarray | None:
        """The difference between the objective with and without its penalty, whether it is maximised or minimised."""
        if self.unpenalized is None:
            return None
        return np.abs(np.asarray(self.objective) - np.asarray(self.unpenalized))

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        model : fitted mixture, NLE, GNMF, LearnedLaplacian or another estimator with ``history_``
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not isinstance(history := getattr(model, "history_", None), FitHistory):
            name = type(model).__name__
            raise InputError(f"{name} has no history of an objective to draw", code="no_history", estimator=name)
        return cls.from_history(history, ax=ax)

    @classmethod
    def from_history(cls, history: FitHistory, *, ax: Axes | None = None) -> Self:
        """Draw the ``history_`` of an estimator.

        Parameters
        ----------
        history : FitHistory
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler import FitHistory
        >>> from fiedler.plots import HistoryDisplay
        >>> history = FitHistory([3.0, 2.0], maximize=False, terms={"penalty": [1.0, 0.5]})
        >>> HistoryDisplay.from_history(history).unpenalized
        array([2. , 1.5])
        """
        penalty, unpenalized = history.terms.get("penalty"), None
        if penalty is not None and np.any(penalty != 0):
            unpenalized = history.objective + penalty if history.maximize else history.objective - penalty
        name = "likelihood" if "likelihood" in history.terms else "without the penalty"
        return cls.from_values(
            history.objective, unpenalized, iterations=history.iterations, unpenalized_name=name, ax=ax
        )

    @classmethod
    def from_values(
        cls,
        objective: ArrayLike,
        unpenalized: ArrayLike | None = None,
        *,
        iterations: ArrayLike | None = None,
        unpenalized_name: str = "without the penalty",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the values of any objective.

        Parameters
        ----------
        objective : array of shape (m,)
            The values of the objective.
        unpenalized : array of shape (m,), optional
            The objective without its penalty.
        iterations : array of shape (m,), optional
            The iteration after which each value was recorded; by default 1, 2, ...
        unpenalized_name : str, default='without the penalty'
            The name of the second curve.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import HistoryDisplay
        >>> HistoryDisplay.from_values([1.0, 2.0, 2.5], [1.5, 2.25, 2.5]).penalty
        array([0.5 , 0.25, 0.  ])
        """
        objective = _check_values(objective, "objective")
        m = len(objective)
        unpenalized = None if unpenalized is None else _check_values(unpenalized, "unpenalized", m)
        iterations = _check_values(np.arange(1, m + 1) if iterations is None else iterations, "iterations", m)
        return cls(
            objective, unpenalized=unpenalized, iterations=iterations, unpenalized_name=unpenalized_name
        ).plot(ax)  # fmt: skip

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = get_axes(ax, (5.2, 3.4))
        objective = np.asarray(self.objective)
        m = len(objective)
        x = np.arange(1, m + 1) if self.iterations is None else np.asarray(self.iterations)
        marker = "." if m <= 40 else ""
        (line,) = self.ax_.plot(x, objective, color=PRIMARY, lw=1.8, marker=marker, label="objective", zorder=3)
        self.lines_, self.band_ = [line], None
        if self.unpenalized is not None:
            self.lines_ += self.ax_.plot(
                x, self.unpenalized, color=SECONDARY, lw=1.2, marker=marker, label=self.unpenalized_name
            )
            self.band_ = self.ax_.fill_between(x, objective, self.unpenalized, color=DARK, alpha=0.1, lw=0)
            self.band_.set_label("penalty")
            add_legend(self.ax_)
        self.ax_.set_yscale("log" if _needs_log_scale(objective) else "linear")
        use_integer_ticks(self.ax_.xaxis)
        title = f"objective {objective[-1]:.6g} after {int(x[-1])} iterations"
        style_axes(self.ax_, title=title, xlabel="iteration", ylabel="objective")
        return self


def _needs_log_scale(objective: np.ndarray) -> bool:
    """Whether a linear scale would hide the changes among the lower values."""
    low, high = float(objective.min()), float(objective.max())
    return low > 0 and high / low > MIN_LOG_SCALE_RATIO


def _check_values(values: Array, name: str, m: int | None = None) -> np.ndarray:
    array = to_numpy(values)
    if array.ndim != 1 or array.size == 0 or m not in (None, len(array)):
        expected = "one value per iteration" if m is None else f"{m} values, one per iteration"
        raise InputError(
            f"{name} must have {expected}; got shape {array.shape}",
            code="wrong_shape",
            parameter=name,
            shape=array.shape,
        )
    return array.astype(np.float64)
