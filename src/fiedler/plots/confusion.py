"""Clusters beside classes, after the best matching of one to the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from ..core.rows import normalize_row_sums
from ..metrics import clustering_accuracy, match_labels
from ..metrics.matching import check_pair
from .fitted import shown
from .style import DARK, MIDDLE, SMALL, Axes, canvas, quiet

WITH_SHARES, WITH_COUNTS = 12, 25  # columns, at most, for which there is room to write them


class ConfusionDisplay:
    """Counts by class (rows) and cluster (columns), the matched ones on the diagonal; colour is the share of the class.

    Parameters
    ----------
    counts : array of shape (n_classes, n_clusters)
    classes : array of shape (n_classes,)
        Those that a cluster matches come first.
    clusters : array of shape (n_clusters,)
        In the order of the classes they match; those left over come last.
    accuracy : float
        The share of all rows on the diagonal.

    Attributes
    ----------
    shares : array of shape (n_classes, n_clusters)
        Counts as shares of their class.
    image_ : AxesImage
    texts_ : list of Text
    ax_, figure_

    Examples
    --------
    >>> from fiedler.plots import ConfusionDisplay
    >>> display = ConfusionDisplay.from_predictions(["a", "a", "b", "b", "b"], [1, 1, 0, 0, 2])
    >>> display.counts
    array([[2, 0, 0],
           [0, 2, 1]])
    >>> display.clusters, display.accuracy
    (array([1, 0, 2]), 0.8)
    """

    def __init__(self, counts: Any, classes: Any, clusters: Any, accuracy: float) -> None:
        self.counts = counts
        self.classes = classes
        self.clusters = clusters
        self.accuracy = accuracy

    @property
    def shares(self) -> np.ndarray:
        """Counts as shares of their class."""
        return normalize_row_sums(np.asarray(self.counts))

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Axes = None) -> ConfusionDisplay:
        """The clusters that a model gives to ``X``, beside the classes ``y``.

        Parameters
        ----------
        model : fitted clusterer
        X : array or CSR matrix of shape (n, d), AffinityGraph or None
            Rows of the fit, which show what it found, or new ones, which are predicted; None for those of the fit.
        y : array of shape (n,)
        ax : matplotlib axes, optional
        """
        return cls.from_predictions(y, shown(model, X).labels, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: Any, labels: Any, *, ax: Axes = None) -> ConfusionDisplay:
        """Clusters that are known, beside classes.

        Parameters
        ----------
        y_true : array of shape (n,)
            Classes.
        labels : array of shape (n,)
            Clusters.
        ax : matplotlib axes, optional
        """
        return cls(*matched_table(y_true, labels), clustering_accuracy(y_true, labels)).plot(ax)

    def plot(self, ax: Axes = None) -> ConfusionDisplay:
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        n_classes, n_clusters = np.shape(self.counts)
        cell = 0.5 if n_clusters <= WITH_SHARES else 0.32
        self.ax_, self.figure_ = canvas(ax, (1.6 + cell * max(n_clusters, 5), 1.2 + cell * max(n_classes, 4)))
        self.image_ = self.ax_.imshow(self.shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        self.texts_ = self._write() if n_clusters <= WITH_COUNTS else []
        self.ax_.set_xticks(range(n_clusters), [str(name) for name in self.clusters])
        self.ax_.set_yticks(range(n_classes), [str(name) for name in self.classes])
        if n_clusters > n_classes:
            self.ax_.axvline(n_classes - 0.5, color=MIDDLE, lw=1, ls="--")
        quiet(self.ax_, title=f"accuracy {self.accuracy:.3f}", xlabel="cluster", ylabel="class")
        self.ax_.tick_params(length=0)
        return self

    def _write(self) -> list[Any]:
        """Counts and, where there is room, shares into the cells; nothing into empty ones."""
        written, counts = [], np.asarray(self.counts)
        for (row, column), share in np.ndenumerate(self.shares):
            if counts[row, column] == 0:
                continue
            text = f"{counts[row, column]}"
            text += f"\n{100 * share:.0f}%" if counts.shape[1] <= WITH_SHARES else ""
            style = {"ha": "center", "va": "center", "fontsize": SMALL - 1, "color": "white" if share > 0.6 else DARK}
            written.append(self.ax_.text(column, row, text, **style))
        return written


def matched_table(y_true: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, classes and clusters, the matched ones on the diagonal."""
    truth, found = check_pair(y_true, labels)
    classes, numbers = np.unique(truth, return_inverse=True)
    clusters, first = np.unique(found, return_index=True)
    match = match_labels(numbers, found)[first]  # the class of every cluster, -1 for those left over
    columns = np.argsort(np.where(match < 0, len(classes), match), kind="stable")
    rows = np.argsort(~np.isin(np.arange(len(classes)), match), kind="stable")
    counts = contingency_matrix(truth, found)[rows][:, columns]
    return counts, classes[rows], clusters[columns]
