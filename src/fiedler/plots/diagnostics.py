"""Plots of how a fit went: its objective, its stability under other parameters, and the number of clusters."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._records import FitHistory
from .._validation import check_labels
from ..core.arrays import to_numpy
from ..errors import InputError, shown
from ..manifold.n_clusters import NClustersChoice
from ..metrics import adjusted_rand_index, clustering_accuracy
from ..metrics.scores import labels_to_numpy
from . import style
from .style import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import Array, LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph

MIN_LOG_SCALE_RATIO = 10  # of the highest to the lowest value: from here on the scale is logarithmic

# Axis labels of common parameters; others are shown by their name.
PARAMETER_LABELS = {"lam": "λ", "graph__n_neighbors": "number of neighbours", "n_clusters": "number of clusters"}


@dataclass(eq=False, repr=False)
class HistoryDisplay(Display):
    """The objective by iteration, and the objective without its penalty; the band between them is the penalty.

    Parameters
    ----------
    objective : array of shape (m,); the values of the objective
    unpenalized : array of shape (m,), optional
        The objective without its penalty; the likelihood of a mixture.
    iterations : array of shape (m,), optional
        The iteration after which each value was recorded; by default 1, 2, ...
    unpenalized_name : str, default='without the penalty'; the name of the second curve

    Attributes
    ----------
    penalty : array of shape (m,) or None; the difference between the two curves
    lines_ : list of Line2D; the curves
    band_ : FillBetweenPolyCollection or None; the area between them
    ax_, figure_ : matplotlib axes and figure

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

    objective: np.ndarray
    _: KW_ONLY
    unpenalized: np.ndarray | None = None
    iterations: np.ndarray | None = None
    unpenalized_name: str = "without the penalty"

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
        model : fitted estimator with ``history_``
            A mixture, NLE, GNMF, LearnedLaplacian or another.
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not isinstance(history := getattr(model, "history_", None), FitHistory):
            raise style.nothing_to_draw(model, "has no history of an objective to draw", code="no_history")
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
        >>> history = FitHistory([3.0, 2.0], maximize=False, terms={"penalty": [1.0, 0.5]})
        >>> HistoryDisplay.from_history(history).unpenalized
        array([2. , 1.5])
        """
        penalty, unpenalized = history.terms.get("penalty"), None
        if penalty is not None and np.any(penalty != 0):
            unpenalized = history.objective + penalty if history.maximize else history.objective - penalty
        name = "likelihood" if "likelihood" in history.terms else "without the penalty"
        options: dict[str, Any] = {"iterations": history.iterations, "unpenalized_name": name}
        return cls.from_values(history.objective, unpenalized, **options, ax=ax)

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
        objective, unpenalized, iterations, unpenalized_name
            As in the class.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> HistoryDisplay.from_values([1.0, 2.0, 2.5], [1.5, 2.25, 2.5]).penalty
        array([0.5 , 0.25, 0.  ])
        """
        objective = _check_values(objective, "objective")
        m = len(objective)
        unpenalized = None if unpenalized is None else _check_values(unpenalized, "unpenalized", m)
        iterations = _check_values(np.arange(1, m + 1) if iterations is None else iterations, "iterations", m)
        options: dict[str, Any] = {"unpenalized": unpenalized, "iterations": iterations}
        return cls(objective, **options, unpenalized_name=unpenalized_name).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        """
        self._open(ax, (5.2, 3.4))
        objective = np.asarray(self.objective)
        m = len(objective)
        x = np.arange(1, m + 1) if self.iterations is None else np.asarray(self.iterations)
        marker = "." if m <= 40 else ""
        (line,) = self.ax_.plot(x, objective, color=style.PRIMARY, lw=1.8, marker=marker, label="objective", zorder=3)
        self.lines_, self.band_ = [line], None
        if self.unpenalized is not None:
            self.lines_ += self.ax_.plot(
                x, self.unpenalized, color=style.SECONDARY, lw=1.2, marker=marker, label=self.unpenalized_name
            )
            self.band_ = self.ax_.fill_between(x, objective, self.unpenalized, color=style.DARK, alpha=0.1, lw=0)
            self.band_.set_label("penalty")
            style.add_legend(self.ax_)
        low, high = float(objective.min()), float(objective.max())
        hides_changes = low > 0 and high / low > MIN_LOG_SCALE_RATIO  # among the lower values, on a linear scale
        self.ax_.set_yscale("log" if hides_changes else "linear")
        style.use_integer_ticks(self.ax_.xaxis)
        title = f"objective {objective[-1]:.6g} after {int(x[-1])} iterations"
        style.style_axes(self.ax_, title=title, xlabel="iteration", ylabel="objective")
        return self


def _check_values(values: Array, name: str, m: int | None = None) -> np.ndarray:
    array = to_numpy(values)
    if array.ndim != 1 or array.size == 0 or m not in (None, len(array)):
        expected = "one value per iteration" if m is None else f"{m} values, one per iteration"
        problem = f"{name} must have {expected}; got shape {array.shape}"
        raise InputError(problem, code="wrong_shape", parameter=name, shape=array.shape)
    return array.astype(np.float64)


@dataclass(eq=False, repr=False)
class StabilityDisplay(Display):
    """Adjusted Rand index of the clusters at each value of a parameter with those at the next, and with a fitted model.

    Parameters
    ----------
    name : str; the name of the parameter
    values : list
        Its values; drawn at equal distances.
    with_next : array of shape (m - 1,)
        Agreement of the clusters at each value with those at the next.
    with_fitted : array of shape (m,), optional
        Agreement of the clusters at each value with those of a fitted model.
    accuracy : array of shape (m,), optional; clustering accuracy at each value
    fitted_value : object, optional; the value of the fitted model

    Attributes
    ----------
    lines_ : dict of Line2D; the lines that are drawn, by 'next', 'fitted' and 'accuracy'
    mark_ : Line2D or None
        The line at the value of the fitted model, if it lies within the range of ``values``.
    ax_, figure_ : matplotlib axes and figure

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

    name: str
    values: Sequence[Any]
    with_next: np.ndarray
    _: KW_ONLY
    with_fitted: np.ndarray | None = None
    accuracy: np.ndarray | None = None
    fitted_value: Any = None

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
        name : str; the parameter, as for ``set_params``: 'lam', 'graph__n_neighbors'
        values : list; at least two values, in order
        y : array of shape (n,), optional
            Classes, for the accuracy; they are not used in fitting.
        ax : matplotlib axes, optional
        """
        fitted = style.training_rows(model).labels
        if fitted is None:
            hint = "pass a fitted clusterer"
            raise style.nothing_to_draw(model, "has no labels to compare", hint, code="model_without_labels")
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
        name, values, fitted_value
            As in the class; at least two values, in order.
        labels : list of arrays of shape (n,); the clusters at each value
        fitted : array of shape (n,), optional; the clusters of a fitted model
        y : array of shape (n,), optional; classes, for the accuracy
        ax : matplotlib axes, optional

        Examples
        --------
        >>> labels = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]]
        >>> StabilityDisplay.from_results("lam", [0.1, 1, 10], labels, y=labels[0]).accuracy
        array([1.  , 1.  , 0.75])
        """
        values = _check_parameter_values(values)
        if len(labels) != len(values):
            problem = f"labels must have one array for each of the {len(values)} values; got {len(labels)}"
            raise InputError(problem, code="wrong_length", parameter="labels")
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
        ax : matplotlib axes, optional; new ones by default
        """
        self._open(ax, (5.6, 3.6))
        positions = np.arange(len(self.values))
        self.lines_: dict[str, Any] = {}
        agreements = {
            "next": (positions[:-1] + 0.5, self.with_next, "with the next value", style.PRIMARY, "s-"),
            "fitted": (positions, self.with_fitted, "with the fitted model", style.SECONDARY, "o-"),
            "accuracy": (positions, self.accuracy, "accuracy", style.TERTIARY, "^--"),
        }
        for key, (x, y, label, color, form) in agreements.items():
            if y is not None:
                (self.lines_[key],) = self.ax_.plot(x, y, form, color=color, ms=4.5, lw=1.4, label=label)
        self.mark_: Any = None
        if (position := _find_position(self.fitted_value, self.values)) is not None:
            label = f"fitted: {_format_value(self.fitted_value)}"
            self.mark_ = self.ax_.axvline(position, color=style.SECONDARY, lw=1, ls=":", zorder=0, label=label)
        self.ax_.set_xticks(positions, [_format_value(value) for value in self.values])
        low = min(float(line.get_ydata().min()) for line in self.lines_.values())
        self.ax_.set_ylim(min(0.0, low) - 0.03, 1.04)
        style.add_legend(self.ax_)
        title = f"mean agreement with the next value {np.mean(self.with_next):.2f}"
        xlabel = PARAMETER_LABELS.get(self.name, self.name)
        style.style_axes(self.ax_, title=title, xlabel=xlabel, ylabel="agreement")
        return self


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
        problem = f"values must contain at least two values to compare; got {shown(values)}"
        raise InputError(problem, code="too_few_values", parameter="values", value=values)
    return values


def _format_value(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) and not isinstance(value, numbers.Integral) else str(value)


@dataclass(eq=False, repr=False)
class EvidenceDisplay(Display):
    """Stability of each number of clusters as a line, scores as bars, the chosen number highlighted.

    Parameters
    ----------
    choice : NClustersChoice; the result of :func:`fiedler.choose_n_clusters`

    Attributes
    ----------
    line_ : ErrorbarContainer or None; stability with standard errors
    bars_ : BarContainer or None; scores
    ax_, figure_ : matplotlib axes and figure
    score_ax_ : matplotlib axes or None
        The axes of the bars, with their scale on the right; ``ax_`` itself if there is no stability.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.plots import EvidenceDisplay
    >>> X, _ = make_blobs(150, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)
    >>> model = ManifoldClustering("auto", max_clusters=4, random_state=0).fit(X)
    >>> EvidenceDisplay.from_estimator(model).choice.n_clusters
    3
    """

    choice: NClustersChoice

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the evidence for the number of clusters that a model chose.

        Parameters
        ----------
        model : ManifoldClustering fitted with ``n_clusters='auto'``, or another model with ``evidence_``
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not isinstance(choice := getattr(model, "evidence_", None), NClustersChoice):
            hint = "fit ManifoldClustering(n_clusters='auto'), or pass the result of choose_n_clusters to from_choice"
            raise style.nothing_to_draw(model, "did not choose the number of clusters", hint, code="no_evidence")
        return cls.from_choice(choice, ax=ax)

    @classmethod
    def from_choice(cls, choice: NClustersChoice, *, ax: Axes | None = None) -> Self:
        """Draw the result of :func:`fiedler.choose_n_clusters`.

        Parameters
        ----------
        choice : NClustersChoice
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.manifold import NClustersChoice
        >>> choice = NClustersChoice(2, "score", [2, 3, 4], score=[0.5, 0.1, 0.2])
        >>> len(EvidenceDisplay.from_choice(choice).bars_)
        3
        """
        if choice.score is None and choice.stability is None:
            problem = f"there is no evidence to draw: {choice.sentence}"
            raise InputError(problem, code="no_evidence", n_clusters=choice.n_clusters)
        return cls(choice).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the evidence.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        """
        self._open(ax, (5.6, 3.6))
        self.line_: Any = None
        self.bars_: Any = None
        self.score_ax_: Any = None
        style.style_axes(
            self.ax_,
            title="1 cluster" if self.choice.n_clusters == 1 else f"{self.choice.n_clusters} clusters",
            xlabel="number of clusters",
            ylabel="score",
        )
        if self.choice.stability is not None:
            self.line_ = self._draw_stability()
        if (scores := self.choice.score) is not None:
            self.score_ax_ = self.ax_ if self.line_ is None else self._add_right_axes()
            candidates = self.choice.candidates
            colors = [style.SECONDARY if k == self.choice.n_clusters else style.MIDDLE for k in candidates]
            self.bars_ = self.score_ax_.bar(
                candidates, scores, width=0.7, color=colors, alpha=0.35, lw=0, label="score"
            )
        style.use_integer_ticks(self.ax_.xaxis)
        style.add_legend(self.ax_, [handle for handle in (self.line_, self.bars_) if handle is not None])
        return self

    def _draw_stability(self) -> Any:
        choice = self.choice
        assert choice.stability is not None
        line = self.ax_.errorbar(
            choice.candidates, choice.stability, yerr=choice.stability_error, color=style.PRIMARY, marker="o", ms=4,
            lw=1.6, elinewidth=1, capsize=2, label="stability", zorder=3,
        )  # fmt: skip
        if choice.n_clusters in choice.candidates:  # one cluster has no stability
            chosen = choice.stability[choice.candidates.index(choice.n_clusters)]
            self.ax_.plot(choice.n_clusters, chosen, "o", ms=11, mfc="none", mec=style.SECONDARY, mew=1.6, zorder=4)
        self.ax_.set_ylabel("stability (adjusted Rand index)", fontsize=style.LABEL_SIZE)
        return line

    def _add_right_axes(self) -> Axes:
        """Add axes behind the line, with their scale on the right."""
        right_ax = self.ax_.twinx()
        self.ax_.set_zorder(right_ax.get_zorder() + 1)
        self.ax_.patch.set_visible(False)
        style.style_axes(right_ax, ylabel="score")
        right_ax.spines["right"].set(visible=True, color=style.MIDDLE)
        return right_ax
