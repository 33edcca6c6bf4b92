"""Scatter plot of rows, coloured by cluster, with opacity by membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._validation import check_labels
from ..metrics.matching import labels_to_numpy
from .layouts import Layout2D, check_points, resolve_layout
from .rows import check_memberships, labeled_rows
from .style import (
    DARK,
    LABEL_SIZE,
    MIN_OPACITY,
    class_color_codes,
    color_codes,
    get_axes,
    palette_rgb,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph
    from .layouts import LayoutLike

    ClusterNames = bool | Sequence[object] | Mapping[Any, object] | None


class ClustersDisplay:
    """Scatter plot of clusters: colour is the cluster, opacity the confidence, the edge of a marker a known class.

    Parameters
    ----------
    layout : array of shape (n, 2)
        Coordinates of the rows.
    labels : array of shape (n,)
        Clusters; -1, for none, is grey.
    confidence : array of shape (n,), optional
        The largest membership of every row.
    y : array of shape (n,), optional
        Known classes, -1 where unknown. A class has the colour of the cluster that it matches best, so the edge of a
        marker stands out where class and cluster differ.
    axis_names : pair of str, optional
        Labels of the axes.

    Attributes
    ----------
    points_ : PathCollection
        The markers.
    names_ : list of Text
        The names of the clusters.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.plots import ClustersDisplay
    >>> X, y = two_moons(n_samples=200, noise=0.05, random_state=0)
    >>> display = ClustersDisplay.from_estimator(ManifoldClustering(2, random_state=0).fit(X), X)
    >>> len(display.points_.get_offsets())
    200
    """

    def __init__(
        self,
        layout: np.ndarray,
        labels: np.ndarray,
        *,
        confidence: np.ndarray | None = None,
        y: np.ndarray | None = None,
        axis_names: tuple[str, str] = ("", ""),
    ) -> None:
        self.layout = layout
        self.labels = labels
        self.confidence = confidence
        self.y = y
        self.axis_names = axis_names

    @classmethod
    def from_estimator(
        cls,
        model: BaseEstimator,
        X: MatrixLike | AffinityGraph | None = None,
        layout: LayoutLike = None,
        *,
        y: LabelsLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the clusters of a fitted model.

        Parameters
        ----------
        model : fitted clusterer
        X : array or CSR matrix of shape (n, d), optional
            The training rows, drawn with the labels of the fit, or new rows, whose labels are predicted; None for the
            training rows.
        layout : array of shape (n, 2), 'features', 'spectral', 'pca', 'tsne' or None, default=None
            Coordinates of the rows, or how to compute them. None is 'features' if X has two of them. Otherwise it is
            'spectral', the first spectral coordinates of ``model.graph_``, for up to three clusters, since two
            coordinates separate no more, and 'pca', the first principal components, for more clusters.
        y : array of shape (n,), optional
            Known classes, -1 where unknown.
        ax : matplotlib axes, optional
        **options
            Parameters of :meth:`plot`.
        """
        rows = labeled_rows(model, X)
        assert rows.labels is not None
        positions = resolve_layout(layout, rows, len(rows.labels))
        return cls._from_layout(positions, rows.labels, rows.memberships, y).plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        layout: ArrayLike,
        labels: LabelsLike,
        memberships: ArrayLike | None = None,
        *,
        y: LabelsLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw clusters found by any method.

        Parameters
        ----------
        layout : array of shape (n, 2)
            Coordinates of the rows.
        labels : array of shape (n,)
            Clusters; -1, for none, is grey.
        memberships : array of shape (n, n_clusters), optional
            The confidence of a row is its largest membership.
        y : array of shape (n,), optional
            Known classes, -1 where unknown.
        ax : matplotlib axes, optional
        **options
            Parameters of :meth:`plot`.

        Examples
        --------
        >>> from fiedler.plots import ClustersDisplay
        >>> memberships = [[0.9, 0.1], [0.6, 0.4], [0.0, 1.0]]
        >>> display = ClustersDisplay.from_predictions([[0, 0], [0, 1], [4, 4]], [0, 0, 1], memberships)
        >>> display.points_.get_facecolors()[:, 3]  # opacity is confidence
        array([0.9, 0.6, 1. ])
        """
        return cls._from_layout(Layout2D(check_points(layout)), labels, memberships, y).plot(ax, **options)

    @classmethod
    def _from_layout(cls, layout: Layout2D, labels: Any, memberships: Any, y: Any) -> Self:
        n = len(layout.points)
        labels = check_labels(labels_to_numpy(labels), n_samples=n)
        confidence = None if memberships is None else check_memberships(memberships, n).max(axis=1)
        y = None if y is None else check_labels(labels_to_numpy(y), "y", n_samples=n)
        return cls(layout.points, labels, confidence=confidence, y=y, axis_names=layout.axis_names)

    def plot(self, ax: Axes | None = None, *, names: ClusterNames = True, size: float | None = None) -> Self:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib axes, optional
        names : bool, list or dict, default=True
            The text at the median of each cluster: its label, a name by label, or nothing.
        size : float, optional
            The area of a marker, in square points.
        """
        self.ax_, self.figure_ = get_axes(ax)
        if size is None:  # larger if the markers have edges
            size = float(np.clip(400 / len(self.labels) ** 0.5, 3, 40)) * (1 if self.y is None else 1.8)
        x, y = np.transpose(self.layout)
        self.points_ = self.ax_.scatter(
            x, y, s=size, c=self._face_colors(), edgecolors=self._edge_colors(), linewidths=0.9
        )  # fmt: skip
        self.names_ = self._draw_names(names)
        xlabel, ylabel = self.axis_names
        style_axes(self.ax_, title=self._title(), xlabel=xlabel, ylabel=ylabel)
        return self

    def _face_colors(self) -> np.ndarray:
        codes = color_codes(self.labels)
        opacity = np.ones(len(codes)) if self.confidence is None else np.clip(self.confidence, MIN_OPACITY, 1)
        return np.column_stack([palette_rgb(codes), opacity])

    def _edge_colors(self) -> np.ndarray | str:
        if self.y is None:
            return "none"
        codes = class_color_codes(self.labels, self.y)
        return np.column_stack([palette_rgb(codes), codes >= 0])

    def _draw_names(self, names: ClusterNames) -> list[Any]:
        """Write the name of each cluster at its median."""
        from matplotlib.patheffects import withStroke

        if names is False or names is None:
            return []
        texts, labels, layout = [], np.asarray(self.labels), np.asarray(self.layout)
        for label in np.unique(labels[color_codes(labels) >= 0]).tolist():
            x, y = np.median(layout[labels == label], axis=0)
            name = _cluster_name(names, label)
            text = self.ax_.text(x, y, name, ha="center", va="center", fontsize=LABEL_SIZE, weight="bold", color=DARK)
            text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
            texts.append(text)
        return texts

    def _title(self) -> str:
        codes = color_codes(self.labels)
        n_clusters, n_unassigned = len(np.unique(codes[codes >= 0])), int((codes < 0).sum())
        title = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}"
        if self.confidence is not None:
            title += f", mean confidence {np.mean(self.confidence):.2f}"
        return title + (f", {n_unassigned} unassigned" if n_unassigned else "")


def _cluster_name(names: Any, label: object) -> str:
    """Look up the name of a cluster; the label itself if it has none."""
    if isinstance(names, Mapping):
        return str(names.get(label, label))
    has_name = not isinstance(names, bool) and isinstance(label, int) and label < len(names)
    return str(names[label] if has_name else label)
