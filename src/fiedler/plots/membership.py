"""Memberships as a Hinton diagram: squares whose area is the membership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .._validation import check_int, check_labels, choose
from ..errors import InputError
from ..metrics.matching import labels_to_numpy
from .rows import check_memberships, labeled_rows
from .style import UNASSIGNED, color_codes, get_axes, palette_rgb, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from .._typing import LabelsLike, MatrixLike
    from ..graph.affinity import AffinityGraph

    Show = Literal["rows", "means"]

MAX_SIDE = 0.92  # side of the square of a membership of 1, in cells
MAX_DRAWN_ROWS = 60  # rows drawn by default
MAX_NAMED_CLUSTERS = 30  # more clusters leave no room for their numbers


class MembershipDisplay:
    """Squares whose area is the membership, with one column per row, grouped by cluster, and one line per cluster.

    Parameters
    ----------
    memberships : array of shape (m, n_clusters)
        Memberships of the rows that are drawn, in their order.
    labels : array of shape (m,)
        Clusters of these rows, equal ones side by side.
    n_rows : int
        The number of all rows, drawn or not.
    show : {'rows', 'means'}, default='rows'
        Whether ``memberships`` are those of single rows or means over clusters.

    Attributes
    ----------
    squares_ : PatchCollection
        One square per membership, row by row.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> from fiedler.plots import MembershipDisplay
    >>> display = MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    >>> display.memberships
    array([[1. , 0. ],
           [0.9, 0.1],
           [0.2, 0.8]])
    """

    def __init__(self, memberships: np.ndarray, labels: np.ndarray, *, n_rows: int, show: Show = "rows") -> None:
        self.memberships = memberships
        self.labels = labels
        self.n_rows = n_rows
        self.show = show

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
            The training rows or new ones; None for the training rows.
        show : {'rows', 'means'}, default='rows'
            Single rows, or the mean of every cluster.
        max_rows : int, default=60
            The number of rows to draw; of more rows, a selection of every cluster, from its most confident row to its
            least confident one.
        ax : matplotlib axes, optional
        """
        rows = labeled_rows(model, X)
        if rows.memberships is None:
            name = type(model).__name__
            raise InputError(f"{name} has labels but no memberships to draw", code="no_memberships", estimator=name)
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
        show : {'rows', 'means'}, default='rows'
            Single rows, or the mean of every cluster.
        max_rows : int, default=60
            The number of rows to draw.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import MembershipDisplay
        >>> MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]], show="means").memberships
        array([[0.95, 0.05],
               [0.2 , 0.8 ]])
        """
        Q = check_memberships(memberships)
        labels = Q.argmax(axis=1) if labels is None else check_labels(labels_to_numpy(labels), n_samples=len(Q))
        selected = choose(SHOW, show, option="show")(Q, labels, check_int(max_rows, "max_rows"))
        return cls(*selected, n_rows=len(Q), show=show).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the squares.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        m, k = np.shape(self.memberships)
        width = float(np.clip(0.8 + 0.17 * m, 3.2, 12))
        self.ax_, self.figure_ = get_axes(ax, (width, max(1.5, 0.9 + (width - 0.8) * k / m)))
        self.squares_ = self.ax_.add_collection(self._squares())
        self.ax_.set(xlim=(-0.5, m - 0.5), ylim=(k - 0.5, -0.5), aspect="equal")
        starts, names = self._groups()
        for start in starts[1:] if self.show == "rows" else []:
            self.ax_.axvline(start - 0.5, color=UNASSIGNED, lw=0.8)
        middles = (starts + np.append(starts[1:], m) - 1) / 2
        self.ax_.set_xticks(middles, names)
        self.ax_.set_yticks(range(k), [str(number) if k <= MAX_NAMED_CLUSTERS else "" for number in range(k)])
        self.ax_.tick_params(length=0)
        style_axes(self.ax_, title=self._title(), ylabel="cluster", xlabel="rows by cluster")
        return self

    def _squares(self) -> Any:
        """Build a square for every membership, in the colour of its cluster."""
        from matplotlib.collections import PolyCollection

        m, k = np.shape(self.memberships)
        row, column = (index.ravel() for index in np.indices((m, k)))
        half = 0.5 * MAX_SIDE * np.sqrt(np.ravel(self.memberships))
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        squares = np.column_stack([row, column])[:, None, :] + half[:, None, None] * corners
        return PolyCollection(squares, facecolors=palette_rgb(column), edgecolors="none")

    def _groups(self) -> tuple[np.ndarray, list[str]]:
        """Return the first column of each group and its name."""
        labels = np.asarray(self.labels)
        starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
        return starts, [str(labels[start]) for start in starts]

    def _title(self) -> str:
        n, m = self.n_rows, len(self.labels)
        if self.show == "means":
            return f"mean memberships of {n:,} rows"
        return f"memberships of {m:,} of {n:,} rows" if m < n else f"memberships of {n:,} rows"


def _select_rows(Q: np.ndarray, labels: np.ndarray, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows by cluster and confidence; of too many, take evenly spaced ones of every cluster."""
    codes = color_codes(labels)
    order = np.lexsort((-Q.max(axis=1), np.where(codes < 0, codes.max() + 1, codes)))
    if len(order) > max_rows:
        groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        order = np.concatenate([_spaced(group, max_rows * len(group) / len(order)) for group in groups])
    return Q[order], labels[order]


def _spaced(group: np.ndarray, quota: float) -> np.ndarray:
    """Take about ``quota`` evenly spaced entries, at least one."""
    return group[np.linspace(0, len(group) - 1, max(1, round(quota))).round().astype(int)]


def _cluster_means(Q: np.ndarray, labels: np.ndarray, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean memberships of every cluster."""
    sorted_Q, sorted_labels = _select_rows(Q, labels, len(labels))
    clusters = sorted_labels[np.sort(np.unique(sorted_labels, return_index=True)[1])]
    return np.array([sorted_Q[sorted_labels == cluster].mean(axis=0) for cluster in clusters]), clusters


SHOW = {"rows": _select_rows, "means": _cluster_means}
