"""Plots of rows by cluster: a scatter plot, memberships as a Hinton diagram, and clusters against classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from sklearn.metrics.cluster import contingency_matrix

from .._validation import check_int, check_labels, choose
from ..core.arrays import normalize_row_sums
from ..metrics import clustering_accuracy, match_labels
from ..metrics.scores import check_pair, labels_to_numpy
from . import style
from .layouts import Layout2D, check_points, resolve_layout
from .style import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph
    from .layouts import LayoutLike

    ClusterNames = bool | Sequence[object] | Mapping[Any, object] | None
    Show = Literal["rows", "means"]

MAX_SIDE = 0.92  # side of the square of a membership of 1, in cells
MAX_DRAWN_ROWS = 60  # rows drawn by default
MAX_NAMED_CLUSTERS = 30  # more clusters leave no room for their numbers
NAME_WIDTH = 18  # characters of a line of a name
MAX_COLUMNS_WITH_SHARES, MAX_COLUMNS_WITH_COUNTS = 12, 25  # more columns leave no room for text in the cells


@dataclass(eq=False, repr=False)
class ClustersDisplay(Display):
    """Scatter plot of clusters: colour is the cluster, opacity the confidence, the edge of a marker a known class.

    Parameters
    ----------
    layout : array of shape (n, 2); coordinates of the rows
    labels : array of shape (n,)
        Clusters; -1, for none, is grey.
    confidence : array of shape (n,), optional; the largest membership of every row
    y : array of shape (n,), optional
        Known classes, -1 where unknown. A class has the colour of the cluster that it matches best, so the edge of a
        marker stands out where class and cluster differ.
    axis_names : pair of str, optional; labels of the axes

    Attributes
    ----------
    points_ : PathCollection; the markers
    names_ : list of Text; the names of the clusters
    ax_, figure_ : matplotlib axes and figure

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

    layout: np.ndarray
    labels: np.ndarray
    _: KW_ONLY
    confidence: np.ndarray | None = None
    y: np.ndarray | None = None
    axis_names: tuple[str, str] = ("", "")

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
            The training rows, the default, or new rows, whose labels are predicted.
        layout : array of shape (n, 2), 'features', 'spectral', 'pca', 'tsne' or None, default=None
            Coordinates of the rows, or how to compute them. None is 'features' if X has two of them. Otherwise it is
            'spectral', the first spectral coordinates of ``model.graph_``, for up to three clusters, since two
            coordinates separate no more, and 'pca', the first principal components, for more clusters.
        y : array of shape (n,), optional; known classes, -1 where unknown
        ax : matplotlib axes, optional
        **options : parameters of :meth:`plot`
        """
        rows = style.labeled_rows(model, X)
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
        layout, labels, y
            As in the class.
        memberships : array of shape (n, n_clusters), optional
            The confidence of a row is its largest membership.
        ax : matplotlib axes, optional
        **options : parameters of :meth:`plot`

        Examples
        --------
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
        confidence = None if memberships is None else style.check_memberships(memberships, n).max(axis=1)
        y = None if y is None else check_labels(labels_to_numpy(y), "y", n_samples=n)
        return cls(layout.points, labels, confidence=confidence, y=y, axis_names=layout.axis_names)

    def plot(self, ax: Axes | None = None, *, names: ClusterNames = True, size: float | None = None) -> Self:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib axes, optional
        names : bool, list or dict, default=True
            The text at the median of each cluster: its label, a name by label, or nothing.
        size : float, optional; the area of a marker, in square points
        """
        self._open(ax)
        if size is None:  # larger if the markers have edges
            size = float(np.clip(400 / len(self.labels) ** 0.5, 3, 40)) * (1 if self.y is None else 1.8)
        codes, edges = style.color_codes(self.labels), cast("Any", "none")
        opacity = np.ones(len(codes)) if self.confidence is None else np.clip(self.confidence, style.MIN_OPACITY, 1)
        faces = np.column_stack([style.palette_rgb(codes), opacity])
        if self.y is not None:
            classes = style.class_color_codes(self.labels, self.y)
            edges = np.column_stack([style.palette_rgb(classes), classes >= 0])
        x, y = np.transpose(self.layout)
        self.points_ = self.ax_.scatter(x, y, s=size, c=faces, edgecolors=edges, linewidths=0.9)
        self.names_ = self._draw_names(names)
        style.style_axes(self.ax_, self._title(), *self.axis_names)
        return self

    def _draw_names(self, names: ClusterNames) -> list[Any]:
        """Write the name of each cluster at its median."""
        from matplotlib.patheffects import withStroke

        if names is False or names is None:
            return []
        texts, labels, layout = [], np.asarray(self.labels), np.asarray(self.layout)
        for label in np.unique(labels[style.color_codes(labels) >= 0]).tolist():
            x, y = np.median(layout[labels == label], axis=0)
            name = _cluster_name(names, label)
            font: dict[str, Any] = {"size": style.LABEL_SIZE, "weight": "bold", "color": style.DARK}
            text = self.ax_.text(x, y, name, ha="center", va="center", **font)
            text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
            texts.append(text)
        return texts

    def _title(self) -> str:
        codes = style.color_codes(self.labels)
        n_clusters, n_unassigned = len(np.unique(codes[codes >= 0])), int((codes < 0).sum())
        title = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}"
        if self.confidence is not None:
            title += f", mean confidence {np.mean(self.confidence):.2f}"
        return title + (f", {n_unassigned} unassigned" if n_unassigned else "")


def _cluster_name(names: Any, label: object) -> str:
    """Look up the name of a cluster, in lines of whole words; the label itself if it has none."""
    has_place = not isinstance(names, bool | Mapping) and isinstance(label, int) and label < len(names)
    name = names.get(label) if isinstance(names, Mapping) else names[label] if has_place else None
    text = str(label if name is None else name)
    parts = [text] if len(text) <= NAME_WIDTH else text.replace(", ", ",\n").split("\n")
    return "\n".join(fill(part, NAME_WIDTH, break_long_words=False, break_on_hyphens=False) for part in parts)


@dataclass(eq=False, repr=False)
class MembershipDisplay(Display):
    """Squares whose area is the membership, with one column per row, grouped by cluster, and one line per cluster.

    Parameters
    ----------
    memberships : array of shape (m, n_clusters)
        Memberships of the rows that are drawn, in their order.
    labels : array of shape (m,); clusters of these rows, equal ones side by side
    n_rows : int; the number of all rows, drawn or not
    show : {'rows', 'means'}, default='rows'
        Whether ``memberships`` are those of single rows or means over clusters.

    Attributes
    ----------
    squares_ : PatchCollection; one square per membership, row by row
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from fiedler.plots import MembershipDisplay
    >>> display = MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    >>> display.memberships
    array([[1. , 0. ],
           [0.9, 0.1],
           [0.2, 0.8]])
    """

    memberships: np.ndarray
    labels: np.ndarray
    _: KW_ONLY
    n_rows: int
    show: Show = "rows"

    @classmethod
    def from_estimator(
        cls,
        model: BaseEstimator,
        X: MatrixLike | AffinityGraph | None = None,
        *,
        show: Show = "rows",
        max_rows: int = MAX_DRAWN_ROWS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the memberships that a model gives to rows.

        Parameters
        ----------
        model : fitted clusterer with memberships
        X : array or CSR matrix of shape (n, d), optional
            The training rows, the default, or new rows.
        show : {'rows', 'means'}, default='rows'; single rows, or the mean of every cluster
        max_rows : int, default=60
            The number of rows to draw; of more rows, a selection of every cluster, from its most confident row to its
            least confident one.
        ax : matplotlib axes, optional
        """
        rows = style.labeled_rows(model, X)
        if rows.memberships is None:
            raise style.nothing_to_draw(model, "has labels but no memberships to draw", code="no_memberships")
        return cls.from_predictions(rows.memberships, rows.labels, show=show, max_rows=max_rows, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        memberships: ArrayLike,
        labels: LabelsLike | None = None,
        *,
        show: Show = "rows",
        max_rows: int = MAX_DRAWN_ROWS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw memberships found by any method.

        Parameters
        ----------
        memberships : array of shape (n, n_clusters)
        labels : array of shape (n,), optional
            Clusters; by default that of the largest membership of each row.
        show, max_rows, ax
            As in :meth:`from_estimator`.

        Examples
        --------
        >>> MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]], show="means").memberships
        array([[0.95, 0.05],
               [0.2 , 0.8 ]])
        """
        Q = style.check_memberships(memberships)
        labels = Q.argmax(axis=1) if labels is None else check_labels(labels_to_numpy(labels), n_samples=len(Q))
        selected = choose(SHOW, show, option="show")(Q, labels, check_int(max_rows, "max_rows"))
        return cls(*selected, n_rows=len(Q), show=show).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the squares.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        """
        m, k = np.shape(self.memberships)
        width = float(np.clip(0.8 + 0.17 * m, 3.2, 12))
        self._open(ax, (width, max(1.5, 0.9 + (width - 0.8) * k / m)))
        self.squares_ = self.ax_.add_collection(self._squares())
        self.ax_.set(xlim=(-0.5, m - 0.5), ylim=(k - 0.5, -0.5), aspect="equal")
        labels = np.asarray(self.labels)
        starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
        for start in starts[1:] if self.show == "rows" else []:
            self.ax_.axvline(start - 0.5, color=style.UNASSIGNED, lw=0.8)
        middles = (starts + np.append(starts[1:], m) - 1) / 2
        self.ax_.set_xticks(middles, [str(labels[start]) for start in starts])
        self.ax_.set_yticks(range(k), [str(number) if k <= MAX_NAMED_CLUSTERS else "" for number in range(k)])
        self.ax_.tick_params(length=0)
        style.style_axes(self.ax_, title=self._title(), ylabel="cluster", xlabel="rows by cluster")
        return self

    def _squares(self) -> Any:
        """Build a square for every membership, in the colour of its cluster."""
        from matplotlib.collections import PolyCollection

        m, k = np.shape(self.memberships)
        row, column = (index.ravel() for index in np.indices((m, k)))
        half = 0.5 * MAX_SIDE * np.sqrt(np.ravel(self.memberships))
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        squares = np.column_stack([row, column])[:, None, :] + half[:, None, None] * corners
        return PolyCollection(squares, facecolors=style.palette_rgb(column), edgecolors="none")

    def _title(self) -> str:
        n, m = self.n_rows, len(self.labels)
        if self.show == "means":
            return f"mean memberships of {n:,} rows"
        return f"memberships of {m:,} of {n:,} rows" if m < n else f"memberships of {n:,} rows"


def _select_rows(Q: np.ndarray, labels: np.ndarray, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows by cluster and confidence; of too many, take evenly spaced ones of every cluster."""
    codes = style.color_codes(labels)
    order = np.lexsort((-Q.max(axis=1), np.where(codes < 0, codes.max() + 1, codes)))
    if len(order) > max_rows:
        groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        sizes = [max(1, round(max_rows * len(group) / len(order))) for group in groups]
        spaced = [np.linspace(0, len(group) - 1, size).round().astype(int) for group, size in zip(groups, sizes)]
        order = np.concatenate([group[positions] for group, positions in zip(groups, spaced)])
    return Q[order], labels[order]


def _cluster_means(Q: np.ndarray, labels: np.ndarray, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean memberships of every cluster."""
    sorted_Q, sorted_labels = _select_rows(Q, labels, len(labels))
    clusters = sorted_labels[np.sort(np.unique(sorted_labels, return_index=True)[1])]
    return np.array([sorted_Q[sorted_labels == cluster].mean(axis=0) for cluster in clusters]), clusters


SHOW = {"rows": _select_rows, "means": _cluster_means}


@dataclass(eq=False, repr=False)
class ConfusionDisplay(Display):
    """Counts by class (rows) and cluster (columns), matched pairs on the diagonal; colour is the share of the class.

    Parameters
    ----------
    counts : array of shape (n_classes, n_clusters)
        The number of rows of each class in each cluster.
    classes : array of shape (n_classes,); classes that match a cluster come first
    clusters : array of shape (n_clusters,)
        In the order of the classes they match; clusters without a match come last.
    accuracy : float; the share of all rows on the diagonal

    Attributes
    ----------
    shares : array of shape (n_classes, n_clusters); counts as shares of their class
    image_ : AxesImage; the coloured cells
    texts_ : list of Text; the numbers in the cells
    ax_, figure_ : matplotlib axes and figure

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

    counts: np.ndarray
    classes: np.ndarray
    clusters: np.ndarray
    accuracy: float

    @property
    def shares(self) -> np.ndarray:
        """Counts as shares of their class."""
        return normalize_row_sums(np.asarray(self.counts))

    @classmethod
    def from_estimator(
        cls, model: BaseEstimator, X: MatrixLike | AffinityGraph | None, y: LabelsLike, *, ax: Axes | None = None
    ) -> Self:
        """Compare the clusters that a fitted model gives to rows with classes.

        Parameters
        ----------
        model : fitted clusterer
        X : array or CSR matrix of shape (n, d), AffinityGraph or None
            The training rows, as also by None, or new rows, whose labels are predicted.
        y : array of shape (n,); the classes
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]]
        >>> model = KMeans(2, n_init=1, random_state=0).fit(X)
        >>> ConfusionDisplay.from_estimator(model, X, ["a", "a", "b", "b"]).accuracy
        1.0
        """
        labels = style.labeled_rows(model, X).labels
        assert labels is not None
        return cls.from_predictions(y, labels, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: LabelsLike, labels: LabelsLike, *, ax: Axes | None = None) -> Self:
        """Compare clusters found by any method with classes.

        Parameters
        ----------
        y_true : array of shape (n,); the classes
        labels : array of shape (n,); the clusters, -1 for none
        ax : matplotlib axes, optional
        """
        return cls(*matched_contingency(y_true, labels), clustering_accuracy(y_true, labels)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        """
        n_classes, n_clusters = np.shape(self.counts)
        cell = 0.5 if n_clusters <= MAX_COLUMNS_WITH_SHARES else 0.32  # inches
        self._open(ax, (1.6 + cell * max(n_clusters, 5), 1.2 + cell * max(n_classes, 4)))
        self.image_ = self.ax_.imshow(self.shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        self.texts_ = self._draw_numbers() if n_clusters <= MAX_COLUMNS_WITH_COUNTS else []
        self.ax_.set_xticks(range(n_clusters), [str(name) for name in self.clusters])
        self.ax_.set_yticks(range(n_classes), [str(name) for name in self.classes])
        if n_clusters > n_classes:
            self.ax_.axvline(n_classes - 0.5, color=style.MIDDLE, lw=1, ls="--")
        style.style_axes(self.ax_, title=f"accuracy {self.accuracy:.3f}", xlabel="cluster", ylabel="class")
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
            color = "white" if share > 0.6 else style.DARK
            size = style.SMALL_SIZE - 1
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
