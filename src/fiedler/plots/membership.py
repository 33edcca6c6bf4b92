"""Memberships as a Hinton diagram: a square for every share, as large as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_int, check_labels, choose
from ..metrics.matching import on_host
from .fitted import shown
from .shares import check_memberships
from .style import UNASSIGNED, Axes, canvas, codes, colours, quiet

FULL = 0.92  # the side of the square of a whole membership, a cell being 1
MANY = 60  # rows side by side


class MembershipDisplay:
    """Squares whose area is the membership: rows from left to right, grouped by cluster, clusters from top to bottom.

    Parameters
    ----------
    memberships : array of shape (m, n_clusters)
        Of the rows drawn, in their order.
    labels : array of shape (m,)
        Their clusters, equal ones side by side.
    n_rows : int
        How many rows there are, drawn or not.
    show : {'rows', 'means'}, default='rows'
        What ``memberships`` are: of single rows or means of clusters.

    Attributes
    ----------
    squares_ : PatchCollection
        One a membership, row by row.
    ax_, figure_

    Examples
    --------
    >>> from fiedler.plots import MembershipDisplay
    >>> display = MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    >>> display.memberships
    array([[1. , 0. ],
           [0.9, 0.1],
           [0.2, 0.8]])
    """

    def __init__(self, memberships: Any, labels: Any, *, n_rows: int, show: str = "rows") -> None:
        self.memberships = memberships
        self.labels = labels
        self.n_rows = n_rows
        self.show = show

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, show: str = "rows", max_rows: int = MANY, ax: Axes = None
    ) -> MembershipDisplay:
        """The memberships that a model gives to rows.

        Parameters
        ----------
        model : fitted clusterer with memberships
        X : array or CSR matrix of shape (n, d), optional
            Rows of the fit or new ones; None for those of the fit.
        show : {'rows', 'means'}, default='rows'
            Single rows, or the mean of every cluster.
        max_rows : int, default=60
            The most rows that are drawn; of more, some of every cluster, from its surest to its least sure.
        ax : matplotlib axes, optional
        """
        rows = shown(model, X)
        if rows.memberships is None:
            raise ValueError(f"{type(model).__name__} has no memberships to draw, only labels")
        return cls.from_predictions(rows.memberships, rows.labels, show=show, max_rows=max_rows, ax=ax)

    @classmethod
    def from_predictions(
        cls, memberships: Any, labels: Any = None, *, show: str = "rows", max_rows: int = MANY, ax: Axes = None
    ) -> MembershipDisplay:
        """Memberships that are known.

        Parameters
        ----------
        memberships : array of shape (n, n_clusters)
        labels : array of shape (n,), optional
            Default the largest membership of each row.
        show : {'rows', 'means'}, default='rows'
            Single rows, or the mean of every cluster.
        max_rows : int, default=60
            The most rows that are drawn.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from fiedler.plots import MembershipDisplay
        >>> MembershipDisplay.from_predictions([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]], show="means").memberships
        array([[0.95, 0.05],
               [0.2 , 0.8 ]])
        """
        shares = check_memberships(memberships)
        labels = shares.argmax(axis=1) if labels is None else check_labels(on_host(labels), n_samples=len(shares))
        picked = choose(SHOW, show, option="show")(shares, labels, check_int(max_rows, "max_rows"))
        return cls(*picked, n_rows=len(shares), show=show).plot(ax)

    def plot(self, ax: Axes = None) -> MembershipDisplay:
        """Draw the squares.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        m, k = np.shape(self.memberships)
        width = float(np.clip(0.8 + 0.17 * m, 3.2, 12))
        self.ax_, self.figure_ = canvas(ax, (width, max(1.5, 0.9 + (width - 0.8) * k / m)))
        self.squares_ = self.ax_.add_collection(self._squares())
        self.ax_.set(xlim=(-0.5, m - 0.5), ylim=(k - 0.5, -0.5), aspect="equal")
        starts, names = self._groups()
        for start in starts[1:] if self.show == "rows" else []:
            self.ax_.axvline(start - 0.5, color=UNASSIGNED, lw=0.8)
        middles = (starts + np.append(starts[1:], m) - 1) / 2
        self.ax_.set_xticks(middles, names)
        self.ax_.set_yticks(range(k), [str(number) if k <= 30 else "" for number in range(k)])
        self.ax_.tick_params(length=0)
        quiet(self.ax_, title=self._title(), ylabel="cluster", xlabel="rows by cluster")
        return self

    def _squares(self) -> Any:
        """A square for every membership, in the colour of its cluster."""
        from matplotlib.collections import PolyCollection

        m, k = np.shape(self.memberships)
        row, column = (index.ravel() for index in np.indices((m, k)))
        half = 0.5 * FULL * np.sqrt(np.ravel(self.memberships))
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        squares = np.column_stack([row, column])[:, None, :] + half[:, None, None] * corners
        return PolyCollection(squares, facecolors=colours(column), edgecolors="none")

    def _groups(self) -> tuple[np.ndarray, list[str]]:
        """Where each group begins, and its name."""
        labels = np.asarray(self.labels)
        starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
        return starts, [str(labels[start]) for start in starts]

    def _title(self) -> str:
        n, m = self.n_rows, len(self.labels)
        if self.show == "means":
            return f"mean memberships of {n:,} rows"
        return f"memberships of {m:,} of {n:,} rows" if m < n else f"memberships of {n:,} rows"


def _rows(shares: np.ndarray, labels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows by cluster, the surest first; of too many, evenly spaced ones of every cluster."""
    numbers = codes(labels)
    order = np.lexsort((-shares.max(axis=1), np.where(numbers < 0, numbers.max() + 1, numbers)))
    if len(order) > most:
        groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
        order = np.concatenate([_some(group, most * len(group) / len(order)) for group in groups])
    return shares[order], labels[order]


def _some(group: np.ndarray, quota: float) -> np.ndarray:
    """About ``quota`` entries, evenly spaced, at least one."""
    return group[np.linspace(0, len(group) - 1, max(1, round(quota))).round().astype(int)]


def _means(shares: np.ndarray, labels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean memberships of every cluster."""
    ordered, own = _rows(shares, labels, len(labels))
    names = own[np.sort(np.unique(own, return_index=True)[1])]
    return np.array([ordered[own == name].mean(axis=0) for name in names]), names


SHOW = {"rows": _rows, "means": _means}
