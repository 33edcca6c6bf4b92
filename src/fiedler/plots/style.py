"""What all pictures share: the palette, the axes to draw on, and a quiet frame around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_labels, import_optional
from ..metrics.matching import on_host

Axes = Any  # matplotlib's, which is imported only where something is drawn

# Six of Okabe and Ito's; each further one is the farthest from those before it, to usual and to red-green blind eyes,
# among colours of moderate chroma that are seen on white and on the dark page of a report.
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b01838", "#a8b058", "#9088f8", "#006870",
    "#a87038", "#b01068", "#903090", "#386840", "#00c0c8", "#1858b8", "#c06060", "#506000", "#90b888", "#9088c0",
    "#c89838", "#88a8ff", "#b068d0", "#b09860", "#885890", "#389080", "#e87090", "#489848", "#b84020", "#908818",
)  # fmt: skip
UNASSIGNED = "#9e9e9e"
SURENESS = ("#c8412b", "#e0a36a", "#9fb4c4", "#5592c4", "#2468a8")  # a confidence of 0, 1/4, 1/2, 3/4, 1
FAINTEST = 0.15  # opacity is confidence, but a row that no cluster claims is still seen
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
    """Red, green and blue of each number, (n, 3); grey below zero. Thirty differ, then they come again.

    Examples
    --------
    >>> colours([0, -1]).round(2)
    array([[0.  , 0.45, 0.7 ],
           [0.62, 0.62, 0.62]])
    """
    table = np.array([[int(name[i : i + 2], 16) / 255 for i in (1, 3, 5)] for name in (*PALETTE, UNASSIGNED)])
    numbers = np.asarray(numbers, dtype=np.int64)
    return table[np.where(numbers < 0, -1, numbers % len(PALETTE))]


def canvas(ax: Axes, size: tuple[float, float] = (5.2, 4.0)) -> tuple[Axes, Any]:
    """The axes given, or new ones of ``size`` in inches, and their figure."""
    import_optional("matplotlib", extra="plot", purpose="plots")
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
    """A small legend where there is room; what lies behind it shows through a little."""
    options = {} if handles is None else {"handles": handles}
    ax.legend(fontsize=SMALL, facecolor="white", edgecolor="none", framealpha=0.8, **options)


def whole_numbers(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))
