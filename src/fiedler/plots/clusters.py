"""Rows in a plane, coloured by cluster and as faint as their membership is unsure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._validation import check_labels
from ..metrics.matching import on_host
from .fitted import shown
from .layouts import Layout2D, check_layout, resolve_layout
from .shares import check_memberships, class_numbers
from .style import DARK, FAINTEST, LABEL, Axes, canvas, codes, colours, quiet


class ClustersDisplay:
    """Rows in two dimensions: the colour is the cluster, transparency the doubt, an edge the class that is known.

    Parameters
    ----------
    plane : array of shape (n, 2)
    labels : array of shape (n,)
        Clusters; -1, for none, is grey.
    confidence : array of shape (n,), optional
        The largest membership of every row.
    y : array of shape (n,), optional
        Known classes, -1 where unknown. A class has the colour of the cluster that it matches best, so that an edge is
        seen where the two differ.
    axis_names : pair of str, optional

    Attributes
    ----------
    points_ : PathCollection
    names_ : list of Text
    ax_, figure_

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
        plane: Any,
        labels: Any,
        *,
        confidence: Any = None,
        y: Any = None,
        axis_names: tuple[str, str] = ("", ""),
    ) -> None:
        self.plane = plane
        self.labels = labels
        self.confidence = confidence
        self.y = y
        self.axis_names = axis_names

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, plane: Any = None, *, y: Any = None, ax: Axes = None, **options: Any
    ) -> ClustersDisplay:
        """The clusters of a fitted model.

        Parameters
        ----------
        model : fitted clusterer
        X : array or CSR matrix of shape (n, d), optional
            Rows of the fit, which show what it found, or new ones, which are predicted; None for those of the fit.
        plane : array of shape (n, 2), 'features', 'spectral', 'pca' or None, default=None
            None is X itself if it has two features. Of others it is the first spectral coordinates of ``model.graph_``
            for up to three clusters, as two tell no more apart, and the first principal components for more.
        y : array of shape (n,), optional
            Known classes, -1 where unknown.
        ax : matplotlib axes, optional
        **options
            Of :meth:`plot`.
        """
        rows = shown(model, X)
        assert rows.labels is not None
        place = resolve_layout(plane, rows, len(rows.labels))
        return cls._of(place, rows.labels, rows.memberships, y).plot(ax, **options)

    @classmethod
    def from_predictions(
        cls, plane: Any, labels: Any, memberships: Any = None, *, y: Any = None, ax: Axes = None, **options: Any
    ) -> ClustersDisplay:
        """Clusters that any method has found.

        Parameters
        ----------
        plane : array of shape (n, 2)
        labels : array of shape (n,)
            Clusters; -1, for none, is grey.
        memberships : array of shape (n, n_clusters), optional
            The largest of a row is its confidence.
        y : array of shape (n,), optional
            Known classes, -1 where unknown.
        ax : matplotlib axes, optional
        **options
            Of :meth:`plot`.

        Examples
        --------
        >>> from fiedler.plots import ClustersDisplay
        >>> shares = [[0.9, 0.1], [0.6, 0.4], [0.0, 1.0]]
        >>> display = ClustersDisplay.from_predictions([[0, 0], [0, 1], [4, 4]], [0, 0, 1], shares)
        >>> display.points_.get_facecolors()[:, 3]  # opacity is confidence
        array([0.9, 0.6, 1. ])
        """
        return cls._of(Layout2D(plane), labels, memberships, y).plot(ax, **options)

    @classmethod
    def _of(cls, plane: Layout2D, labels: Any, memberships: Any, y: Any) -> ClustersDisplay:
        points = check_layout(plane.points)
        labels = check_labels(on_host(labels), n_samples=len(points))
        confidence = None if memberships is None else check_memberships(memberships, len(points)).max(axis=1)
        y = None if y is None else check_labels(on_host(y), "y", n_samples=len(points))
        return cls(points, labels, confidence=confidence, y=y, axis_names=plane.names)

    def plot(self, ax: Axes = None, *, names: Any = True, size: float | None = None) -> ClustersDisplay:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib axes, optional
        names : bool, list or dict, default=True
            What stands at the median of each cluster: its label, a name by label, or nothing.
        size : float, optional
            The area of a marker, in square points.
        """
        self.ax_, self.figure_ = canvas(ax)
        if size is None:  # with room for an edge, where there is one
            size = float(np.clip(400 / len(self.labels) ** 0.5, 3, 40)) * (1 if self.y is None else 1.8)
        self.points_ = self.ax_.scatter(
            *np.transpose(self.plane), s=size, c=self._faces(), edgecolors=self._edges(), linewidths=0.9
        )
        self.names_ = self._write(names)
        x, y = self.axis_names
        quiet(self.ax_, title=self._title(), xlabel=x, ylabel=y)
        return self

    def _faces(self) -> np.ndarray:
        alpha = np.ones(len(self.labels)) if self.confidence is None else np.clip(self.confidence, FAINTEST, 1)
        return np.column_stack([colours(codes(self.labels)), alpha])

    def _edges(self) -> Any:
        if self.y is None:
            return "none"
        classes = class_numbers(self.labels, self.y)
        return np.column_stack([colours(classes), classes >= 0])

    def _write(self, names: Any) -> list[Any]:
        """The names at the medians, those of unassigned rows left out."""
        from matplotlib.patheffects import withStroke

        if names is False or names is None:
            return []
        written, numbers = [], codes(self.labels)
        for label in np.unique(np.asarray(self.labels)[numbers >= 0]).tolist():
            x, y = np.median(self.plane[self.labels == label], axis=0)
            style = {"ha": "center", "va": "center", "fontsize": LABEL, "weight": "bold", "color": DARK}
            text = self.ax_.text(x, y, _name(names, label), **style)
            text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
            written.append(text)
        return written

    def _title(self) -> str:
        numbers = codes(self.labels)
        n_clusters, n_unassigned = len(np.unique(numbers[numbers >= 0])), int((numbers < 0).sum())
        title = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}"
        if self.confidence is not None:
            title += f", mean confidence {np.mean(self.confidence):.2f}"
        return title + (f", {n_unassigned} unassigned" if n_unassigned else "")


def _name(names: Any, label: Any) -> str:
    """The name of a cluster, by its label; the label itself where there is none."""
    if isinstance(names, Mapping):
        return str(names.get(label, label))
    listed = not isinstance(names, bool) and isinstance(label, int) and label < len(names)
    return str(names[label] if listed else label)
