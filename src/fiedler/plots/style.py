"""What all pictures share: the palette, the axes to draw on, and a quiet frame around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_labels, require
from ..metrics.matching import on_host

Axes = Any  # matplotlib's, which is imported only where something is drawn

# Okabe and Ito's, then four of Tol's: told apart with red-green blindness too. Further rounds are lighter, then darker.
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#882255", "#999933", "#8c564b",
)  # fmt: skip
ROUNDS = ((1.0, 0.0), (0.5, 0.5), (0.55, 0.0))  # colour -> factor · colour + white
UNASSIGNED = (0.62, 0.62, 0.62)
MAIN, OTHER, THIRD = PALETTE[:3]
DARK, MIDDLE, LIGHT = "#333333", "#8a8a8a", "#dddddd"
TITLE, LABEL, SMALL = 10, 9, 8  # points


def codes(labels: Any) -> np.ndarray:
    """The number of each label's colour: integers are their own, names count in order, and -1 is unassigned.

    Examples
    --------
    >>> codes([2, 0, -1])
    array([ 2,  0, -1])
    >>> codes(["b", "a", "-1"])
    array([ 1,  0, -1])
    """
    labels = check_labels(on_host(labels))
    if labels.dtype.kind in "iub":
        return np.maximum(labels.astype(np.int64), -1)
    named = ~np.isin(labels.astype(str), ["-1", "-1.0"])
    numbers = np.full(len(labels), -1)
    numbers[named] = np.unique(labels[named], return_inverse=True)[1]
    return numbers


def colours(numbers: Any) -> np.ndarray:
    """Red, green and blue of each number, (n, 3); grey below zero. Thirty differ, then they come again."""
    base = np.array([[int(name[i : i + 2], 16) / 255 for i in (1, 3, 5)] for name in PALETTE])
    table = np.concatenate([*(factor * base + white for factor, white in ROUNDS), [UNASSIGNED]])
    numbers = np.asarray(numbers, dtype=np.int64)
    return table[np.where(numbers < 0, -1, numbers % (len(table) - 1))]


def canvas(ax: Axes, size: tuple[float, float] = (5.2, 4.0)) -> tuple[Axes, Any]:
    """The axes given, or new ones of ``size`` in inches, and their figure."""
    require("matplotlib", extra="plot", purpose="plots")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax, ax.figure


def quiet(ax: Axes, *, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Small words, and no frame where nothing is read off it."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(MIDDLE)
    ax.tick_params(labelsize=SMALL, color=MIDDLE)
    ax.set_title(title, fontsize=TITLE, color=DARK)
    ax.set_xlabel(xlabel, fontsize=LABEL)
    ax.set_ylabel(ylabel, fontsize=LABEL)


def legend(ax: Axes, handles: Any = None) -> None:
    """A small legend where there is room."""
    options = {} if handles is None else {"handles": handles}
    ax.legend(fontsize=SMALL, frameon=False, **options)


def whole_numbers(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))
