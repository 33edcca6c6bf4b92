"""The evidence for a number of clusters."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..clustering.n_clusters import NClustersChoice
from .style import LABEL, MAIN, MIDDLE, OTHER, Axes, canvas, legend, quiet


class EvidenceDisplay:
    """Stability for every number of clusters as a line, the eigengap as bars, the chosen number in colour.

    Parameters
    ----------
    choice : NClustersChoice
        As :func:`fiedler.choose_n_clusters` returns it.

    Attributes
    ----------
    line_ : ErrorbarContainer or None
        Stability with its standard errors.
    bars_ : BarContainer or None
        Eigengaps.
    ax_, figure_
    gap_ax_ : matplotlib axes or None
        Those of the bars, with their scale on the right; ``ax_`` itself where there is no stability.

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
    def from_estimator(cls, model: Any, *, ax: Axes = None) -> EvidenceDisplay:
        """The evidence of a model that was fitted with ``n_clusters='auto'``.

        Parameters
        ----------
        model : fitted ManifoldClustering, or another with an ``evidence_``
        ax : matplotlib axes, optional
        """
        check_is_fitted(model)
        if not isinstance(choice := getattr(model, "evidence_", None), NClustersChoice):
            raise ValueError(
                f"{type(model).__name__} has counted no clusters; fit ManifoldClustering(n_clusters='auto'), or draw "
                "what choose_n_clusters returns"
            )
        return cls.from_choice(choice, ax=ax)

    @classmethod
    def from_choice(cls, choice: NClustersChoice, *, ax: Axes = None) -> EvidenceDisplay:
        """What :func:`fiedler.choose_n_clusters` returns.

        Parameters
        ----------
        choice : NClustersChoice
        ax : matplotlib axes, optional
        """
        if choice.gaps is None and choice.stability is None:
            raise ValueError(f"there is no evidence to draw: {choice.n_clusters} clusters, by {choice.by}")
        return cls(choice).plot(ax)

    def plot(self, ax: Axes = None) -> EvidenceDisplay:
        """Draw the evidence.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.ax_, self.figure_ = canvas(ax, (5.6, 3.6))
        self.line_: Any = None
        self.bars_: Any = None
        self.gap_ax_: Any = None
        title = f"{self.choice.n_clusters} clusters, by {self.choice.by}"
        quiet(self.ax_, title=title, xlabel="number of clusters", ylabel="eigengap")
        if self.choice.stability is not None:
            self.line_ = self._line()
        if self.choice.gaps is not None:
            self.gap_ax_ = self.ax_ if self.line_ is None else self._second_scale()
            self.bars_ = self._bars()
        self.ax_.set_xticks(self.choice.candidates)
        legend(self.ax_, [handle for handle in (self.line_, self.bars_) if handle is not None])
        return self

    def _line(self) -> Any:
        choice = self.choice
        line = self.ax_.errorbar(
            choice.candidates, choice.stability, yerr=choice.stability_error, color=MAIN, marker="o", ms=4, lw=1.6,
            elinewidth=1, capsize=2, label="stability", zorder=3,
        )  # fmt: skip
        at = choice.candidates.index(choice.n_clusters)
        self.ax_.plot(choice.n_clusters, choice.stability[at], "o", ms=11, mfc="none", mec=OTHER, mew=1.6, zorder=4)  # type: ignore[index]
        self.ax_.set_ylabel("stability (adjusted Rand index)", fontsize=LABEL)
        return line

    def _second_scale(self) -> Axes:
        """Axes behind the line, with their scale on the right."""
        behind = self.ax_.twinx()
        self.ax_.set_zorder(behind.get_zorder() + 1)
        self.ax_.patch.set_visible(False)
        quiet(behind, ylabel="eigengap")
        behind.spines["right"].set(visible=True, color=MIDDLE)
        return behind

    def _bars(self) -> Any:
        candidates, gaps = self.choice.candidates, self.choice.gaps
        shades = [OTHER if k == self.choice.n_clusters else MIDDLE for k in candidates]
        return self.gap_ax_.bar(candidates, gaps, width=0.7, color=shades, alpha=0.35, lw=0, label="eigengap")
