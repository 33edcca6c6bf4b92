"""The objective by iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..baselines.gnmf import GNMF, OBJECTIVE_INTERVAL
from ..core.backend import to_numpy
from .style import DARK, MAIN, OTHER, Axes, canvas, legend, quiet, whole_numbers

FAR = 10  # from the highest to the lowest value: a logarithmic scale shows both


class Course(NamedTuple):
    """An objective, itself without its penalty, and what that is called."""

    objective: Sequence[float]
    free: Sequence[float] | None = None
    free_name: str = "without the penalty"


class HistoryDisplay:
    """How an objective changed, and with it its part that is no penalty: the penalty is the band between them.

    Parameters
    ----------
    objective : array of shape (m,)
    free : array of shape (m,), optional
        The objective without its penalty; the likelihood of a mixture.
    iterations : array of shape (m,), optional
        When each was measured; default 1, 2, ...
    free_name : str, default='without the penalty'

    Attributes
    ----------
    penalty : array of shape (m,) or None
    lines_ : list of Line2D
    band_ : FillBetweenPolyCollection or None
    ax_, figure_

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
        self, objective: Any, *, free: Any = None, iterations: Any = None, free_name: str = "without the penalty"
    ) -> None:
        self.objective = objective
        self.free = free
        self.iterations = iterations
        self.free_name = free_name

    @property
    def penalty(self) -> np.ndarray | None:
        """What the objective pays, whether it is to rise or to fall."""
        return None if self.free is None else np.abs(np.asarray(self.objective) - np.asarray(self.free))

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes = None) -> HistoryDisplay:
        """The history of a fitted model.

        Parameters
        ----------
        model : fitted mixture, NLE, GNMF, LearnedLaplacian or another with a ``history_``
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not hasattr(model, "history_"):
            raise ValueError(f"{type(model).__name__} keeps no history of its objective")
        course = _course(model.history_)
        iterations = _iterations(model, len(course.objective))
        return cls.from_values(
            course.objective, course.free, iterations=iterations, free_name=course.free_name, ax=ax
        )  # fmt: skip

    @classmethod
    def from_values(
        cls,
        objective: Any,
        free: Any = None,
        *,
        iterations: Any = None,
        free_name: str = "without the penalty",
        ax: Axes = None,
    ) -> HistoryDisplay:
        """Values that are known.

        Parameters
        ----------
        objective : array of shape (m,)
        free : array of shape (m,), optional
            The objective without its penalty.
        iterations : array of shape (m,), optional
            When each was measured; default 1, 2, ...
        free_name : str, default='without the penalty'
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import HistoryDisplay
        >>> HistoryDisplay.from_values([1.0, 2.0, 2.5], [1.5, 2.25, 2.5]).penalty
        array([0.5 , 0.25, 0.  ])
        """
        objective = _check_values(objective, "objective")
        free = None if free is None else _check_values(free, "free", len(objective))
        iterations = np.arange(1, len(objective) + 1) if iterations is None else iterations
        iterations = _check_values(iterations, "iterations", len(objective))
        return cls(objective, free=free, iterations=iterations, free_name=free_name).plot(ax)

    def plot(self, ax: Axes = None) -> HistoryDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = canvas(ax, (5.2, 3.4))
        m = len(self.objective)
        x = np.arange(1, m + 1) if self.iterations is None else self.iterations
        marker = "." if m <= 40 else ""
        (line,) = self.ax_.plot(x, self.objective, color=MAIN, lw=1.8, marker=marker, label="objective", zorder=3)
        self.lines_, self.band_ = [line], None
        if self.free is not None:
            self.lines_ += self.ax_.plot(x, self.free, color=OTHER, lw=1.2, marker=marker, label=self.free_name)
            self.band_ = self.ax_.fill_between(x, self.objective, self.free, color=DARK, alpha=0.1, lw=0)
            self.band_.set_label("penalty")
            legend(self.ax_)
        self.ax_.set_yscale("log" if _falls_far(self.objective) else "linear")
        whole_numbers(self.ax_.xaxis)
        quiet(self.ax_, title=self._title(), xlabel="iteration", ylabel="objective")
        return self

    def _title(self) -> str:
        last = self.iterations[-1] if self.iterations is not None else len(self.objective)
        return f"objective {self.objective[-1]:.6g} after {int(last)} iterations"


def _course(history: Any) -> Course:
    """The curves in a model's history: steps of EM, a dictionary of lists or a list."""
    if isinstance(history, Mapping):
        free = history["objective"]
        if "penalty" not in history:
            return Course(free)
        return Course(np.add(free, history["penalty"]).tolist(), free)  # there the penalty is kept apart, and falls too
    if history and hasattr(history[0], "likelihood"):
        likelihood = [step.likelihood for step in history]
        plain = all(step.penalty == 0 for step in history)
        return Course([step.objective for step in history], None if plain else likelihood, "likelihood")
    return Course(history)


def _iterations(model: Any, m: int) -> list[int]:
    """When the values were measured: after every iteration, from before the first one on, or now and then."""
    if isinstance(model, GNMF):
        return [*range(0, model.n_iter_, OBJECTIVE_INTERVAL), model.n_iter_]
    first = 0 if getattr(model, "n_iter_", m) == m - 1 else 1
    return list(range(first, first + m))


def _falls_far(objective: Any) -> bool:
    """Whether the first values would hide the others."""
    lowest, highest = float(np.min(objective)), float(np.max(objective))
    return lowest > 0 and highest / lowest > FAR


def _check_values(values: Any, name: str, m: int | None = None) -> np.ndarray:
    values = to_numpy(values)
    if values.ndim != 1 or values.size == 0 or m not in (None, len(values)):
        wanted = "a value an iteration" if m is None else f"{m} values, one an iteration"
        raise ValueError(f"{name} must be {wanted}; got shape {values.shape}")
    return values.astype(np.float64)
