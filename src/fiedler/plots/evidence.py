"""The evidence for a number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from ..clustering.n_clusters import NClustersChoice
from ..errors import InputError
from .style import LABEL_SIZE, MIDDLE, PRIMARY, SECONDARY, add_legend, get_axes, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


class EvidenceDisplay:
    """Stability of each number of clusters as a line, eigengaps as bars, the chosen number highlighted.

    Parameters
    ----------
    choice : NClustersChoice
        The result of :func:`fiedler.choose_n_clusters`.

    Attributes
    ----------
    line_ : ErrorbarContainer or None
        Stability with standard errors.
    bars_ : BarContainer or None
        Eigengaps.
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    gap_ax_ : matplotlib axes or None
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

    def __init__(self, choice: NClustersChoice) -> None:
        self.choice = choice

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Draw the evidence of a model fitted with ``n_clusters='auto'``.

        Parameters
        ----------
        model : fitted ManifoldClustering, or another estimator with ``evidence_``
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not isinstance(choice := getattr(model, "evidence_", None), NClustersChoice):
            raise InputError(
                f"{type(model).__name__} did not choose the number of clusters",
                "fit ManifoldClustering(n_clusters='auto'), or pass the result of choose_n_clusters to from_choice",
                code="no_evidence",
                estimator=type(model).__name__,
            )
        return cls.from_choice(choice, ax=ax)

    @classmethod
    def from_choice(cls, choice: NClustersChoice, *, ax: Axes | None = None) -> Self:
        """Draw the result of :func:`fiedler.choose_n_clusters`.

        Parameters
        ----------
        choice : NClustersChoice
        ax : matplotlib axes, optional
        """
        if choice.gaps is None and choice.stability is None:
            raise InputError(
                f"there is no evidence to draw: {choice.title}",
                code="no_evidence",
                n_clusters=choice.n_clusters,
            )
        return cls(choice).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the evidence.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = get_axes(ax, (5.6, 3.6))
        self.line_: Any = None
        self.bars_: Any = None
        self.gap_ax_: Any = None
        style_axes(self.ax_, title=self.choice.title, xlabel="number of clusters", ylabel="eigengap")
        if self.choice.stability is not None:
            self.line_ = self._draw_stability()
        if self.choice.gaps is not None:
            self.gap_ax_ = self.ax_ if self.line_ is None else self._add_right_axes()
            self.bars_ = self._draw_gaps()
        self.ax_.set_xticks(self.choice.candidates)
        add_legend(self.ax_, [handle for handle in (self.line_, self.bars_) if handle is not None])
        return self

    def _draw_stability(self) -> Any:
        choice = self.choice
        assert choice.stability is not None
        line = self.ax_.errorbar(
            choice.candidates, choice.stability, yerr=choice.stability_error, color=PRIMARY, marker="o", ms=4, lw=1.6,
            elinewidth=1, capsize=2, label="stability", zorder=3,
        )  # fmt: skip
        if choice.n_clusters in choice.candidates:  # one cluster has no stability
            chosen = choice.stability[choice.candidates.index(choice.n_clusters)]
            self.ax_.plot(choice.n_clusters, chosen, "o", ms=11, mfc="none", mec=SECONDARY, mew=1.6, zorder=4)
        self.ax_.set_ylabel("stability (adjusted Rand index)", fontsize=LABEL_SIZE)
        return line

    def _add_right_axes(self) -> Axes:
        """Add axes behind the line, with their scale on the right."""
        right_ax = self.ax_.twinx()
        self.ax_.set_zorder(right_ax.get_zorder() + 1)
        self.ax_.patch.set_visible(False)
        style_axes(right_ax, ylabel="eigengap")
        right_ax.spines["right"].set(visible=True, color=MIDDLE)
        return right_ax

    def _draw_gaps(self) -> Any:
        candidates, gaps = self.choice.candidates, self.choice.gaps
        colors = [SECONDARY if k == self.choice.n_clusters else MIDDLE for k in candidates]
        return self.gap_ax_.bar(candidates, gaps, width=0.7, color=colors, alpha=0.35, lw=0, label="eigengap")
