"""Confusion matrix of clusters and classes after the best one-to-one matching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from ..core.rows import normalize_row_sums
from ..metrics import clustering_accuracy, match_labels
from ..metrics.matching import check_pair
from .rows import labeled_rows
from .style import DARK, MIDDLE, SMALL_SIZE, get_axes, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph

MAX_COLUMNS_WITH_SHARES, MAX_COLUMNS_WITH_COUNTS = 12, 25  # more columns leave no room for text in the cells


class ConfusionDisplay:
    """Counts by class (rows) and cluster (columns), matched pairs on the diagonal; colour is the share of the class.

    Parameters
    ----------
    counts : array of shape (n_classes, n_clusters)
        The number of rows of each class in each cluster.
    classes : array of shape (n_classes,)
        Classes that match a cluster come first.
    clusters : array of shape (n_clusters,)
        In the order of the classes they match; clusters without a match come last.
    accuracy : float
        The share of all rows on the diagonal.

    Attributes
    ----------
    shares : array of shape (n_classes, n_clusters)
        Counts as shares of their class.
    image_ : AxesImage
        The coloured cells.
    texts_ : list of Text
        The numbers in the cells.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

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

    def __init__(self, counts: np.ndarray, classes: np.ndarray, clusters: np.ndarray, accuracy: float) -> None:
        self.counts = counts
        self.classes = classes
        self.clusters = clusters
        self.accuracy = accuracy

    @property
    def shares(self) -> np.ndarray:
        """Counts as shares of their class."""
        return normalize_row_sums(np.asarray(self.counts))

    @classmethod
    def from_estimator(
        cls,
        model: BaseEstimator,
        X: MatrixLike | AffinityGraph | None,
        y: LabelsLike,
        *,
        ax: Axes | None = None,
    ) -> Self:
        """Compare the clusters that a model gives to ``X`` with the classes ``y``.

        Parameters
        ----------
        model : fitted clusterer
        X : array or CSR matrix of shape (n, d), AffinityGraph or None
            The training rows, compared by the labels of the fit, or new rows, whose labels are predicted; None for the
            training rows.
        y : array of shape (n,)
            Classes.
        ax : matplotlib axes, optional
        """
        labels = labeled_rows(model, X).labels
        assert labels is not None
        return cls.from_predictions(y, labels, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: LabelsLike, labels: LabelsLike, *, ax: Axes | None = None) -> Self:
        """Compare clusters found by any method with classes.

        Parameters
        ----------
        y_true : array of shape (n,)
            Classes.
        labels : array of shape (n,)
            Clusters.
        ax : matplotlib axes, optional
        """
        return cls(*matched_contingency(y_true, labels), clustering_accuracy(y_true, labels)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        n_classes, n_clusters = np.shape(self.counts)
        cell = 0.5 if n_clusters <= MAX_COLUMNS_WITH_SHARES else 0.32  # inches
        self.ax_, self.figure_ = get_axes(ax, (1.6 + cell * max(n_clusters, 5), 1.2 + cell * max(n_classes, 4)))
        self.image_ = self.ax_.imshow(self.shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        self.texts_ = self._draw_numbers() if n_clusters <= MAX_COLUMNS_WITH_COUNTS else []
        self.ax_.set_xticks(range(n_clusters), [str(name) for name in self.clusters])
        self.ax_.set_yticks(range(n_classes), [str(name) for name in self.classes])
        if n_clusters > n_classes:
            self.ax_.axvline(n_classes - 0.5, color=MIDDLE, lw=1, ls="--")
        style_axes(self.ax_, title=f"accuracy {self.accuracy:.3f}", xlabel="cluster", ylabel="class")
        self.ax_.tick_params(length=0)
        return self

    def _draw_numbers(self) -> list[Any]:
        """Write counts and, if there is room, shares into the cells that are not empty."""
        texts, counts = [], np.asarray(self.counts)
        for (row, column), share in np.ndenumerate(self.shares):
            if counts[row, column] == 0:
                continue
            text = f"{counts[row, column]}"
            text += f"\n{100 * share:.0f}%" if counts.shape[1] <= MAX_COLUMNS_WITH_SHARES else ""
            color = "white" if share > 0.6 else DARK
            size = SMALL_SIZE - 1
            texts.append(self.ax_.text(column, row, text, ha="center", va="center", fontsize=size, color=color))
        return texts


def matched_contingency(y_true: LabelsLike, labels: LabelsLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, classes and clusters, with matched pairs on the diagonal."""
    y_true, labels = check_pair(y_true, labels)
    classes, class_codes = np.unique(y_true, return_inverse=True)
    clusters, first = np.unique(labels, return_index=True)
    matches = match_labels(class_codes, labels)[first]  # the class of every cluster, -1 if it has none
    columns = np.argsort(np.where(matches < 0, len(classes), matches), kind="stable")
    rows = np.argsort(~np.isin(np.arange(len(classes)), matches), kind="stable")
    counts = contingency_matrix(y_true, labels)[rows][:, columns]
    return counts, classes[rows], clusters[columns]
