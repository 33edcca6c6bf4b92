"""The figures of the papers, drawn from records alone. A protocol names the entries of `FIGURES`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fiedler._files import atomic_write
from fiedler._validation import choose, import_optional

from .illustrations import rule_label
from .protocol import Experiment, Protocol, grid_points
from .records import Record
from .tables import AVERAGE, SCORES, TableLine, place_name, select_records, table_lines

Axes = Any  # matplotlib has no type information
Figure = Any
PANEL_WIDTH = 4.2  # inches
MAX_COLUMNS = 4  # of panels
COLOURS = [*(f"C{i}" for i in range(10)), "navy", "gold", "black", "teal", "salmon", "indigo", "lime", "sienna"]
# Labels of the axis for the sides of a grid.
AXIS_LABELS = {
    "k": "classes",
    "rate": "share of labelled rows",
    "lam": "λ",
    "graph__n_neighbors": "p",
    "embedding__graph__n_neighbors": "p",
    "share": "share of the documents",
}


def write_figures(
    protocol: Protocol,
    experiments: Iterable[Experiment],
    records: list[Record],
    folder: Path,
    backend: str | None = None,
) -> list[Path]:
    """Draw all figures for which there are records; return the files written."""
    matplotlib = import_optional("matplotlib", extra="plot", purpose="figures")
    matplotlib.use("Agg")
    written = []
    for experiment in experiments:
        selected = select_records(protocol, experiment, records, backend)
        for number in experiment.figures:
            figure = choose(FIGURES, experiment.plot, option="plot")(protocol, experiment, selected)
            if figure is None:
                continue
            path = folder / f"figure_{number}{f'_{experiment.key}' if _is_shared(protocol, number) else ''}.png"
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as draft:
                figure.savefig(draft, dpi=130)
            written.append(path)
            _close(figure)
    return written


def _is_shared(protocol: Protocol, number: str) -> bool:
    """Whether several experiments draw a part of this figure."""
    return sum(number in experiment.figures for experiment in protocol.experiments.values()) > 1


def _panels(rows: int, columns: int, *, n_legend: int = 0) -> tuple[Figure, np.ndarray]:
    """Create panels in rows and columns, with room for a legend of ``n_legend`` methods below them."""
    import matplotlib.pyplot as plt

    size = (PANEL_WIDTH * columns, 0.78 * PANEL_WIDTH * rows + 0.2 * math.ceil(1.5 * n_legend / (columns + 1)))
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def _close(figure: Figure) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)


# -------------------------------------------------------------------------------------------------------------- curves


def curves(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot mean scores against the last side of the grid, one panel per data set and score; published ones dashed."""
    lines = [line for line in table_lines(protocol, experiment, records) if line.place != AVERAGE]
    if not lines:
        return None
    side = list(experiment.grid)[-1]
    panels = list(itertools.product(experiment.data, experiment.scores))
    columns = len(experiment.scores) if len(experiment.scores) > 1 else min(len(panels), MAX_COLUMNS)
    figure, axes = _panels(math.ceil(len(panels) / columns), columns, n_legend=len(experiment.methods))
    for axis, (data, score) in zip(axes.flat, panels):
        panel_lines = [line for line in lines if line.data == data and line.score == score]
        _plot_curves(axis, protocol, experiment, panel_lines)
        axis.set(title=data, xlabel=AXIS_LABELS[side], ylabel=SCORES[score])
        if side == "lam":
            axis.set_xscale("symlog", linthresh=0.1)
    handles = {name: handle for axis in axes.flat for handle, name in zip(*axis.get_legend_handles_labels())}
    options = {"ncols": columns + 1, "fontsize": 8, "frameon": False}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", **options)
    return figure


def _plot_curves(axis: Axes, protocol: Protocol, experiment: Experiment, panel_lines: list[TableLine]) -> None:
    """Plot one curve per method, averaged over all sides of the grid but the last."""
    side = list(experiment.grid)[-1]
    by_place = {place_name(at): at[side] for at in grid_points(experiment.grid)}
    drawn = set()
    for number, name in enumerate(experiment.methods):
        lines, method = [line for line in panel_lines if line.method == name], protocol.methods[name]
        if not lines:
            continue
        colour = COLOURS[number % len(COLOURS)]
        x, ours = _means([(by_place[line.place], line.ours.value) for line in lines])
        axis.plot(x, ours, color=colour, lw=1.0 if method.role == "peer" else 1.8, marker=".", label=method.label)
        printed = [(by_place[line.place], line.published.value) for line in lines if line.published is not None]
        if printed and method.published not in drawn:
            name = method.label.partition(",")[0]  # the part that several readings of a column share
            axis.plot(*_means(printed), color=colour, lw=0.9, ls="--", label=f"{name}, published")
            drawn.add(method.published)


def _means(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    x = sorted({place for place, _ in points})
    return x, [float(np.mean([value for place, value in points if place == at])) for at in x]


# -------------------------------------------------------------------------------------------------------------- lapgmm


def two_moons(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot the toy data and three clusterings of it. [lapgmm, Fig. 1]"""
    if not records:
        return None
    values = records[0]["shown"]
    X = np.array(values["X"])
    rule = rule_label("kmeans", 4)
    panels = {"(a) two moons": "truth", "(b) GMM": "GMM", "(c) LapGMM, our default": "LapGMM", f"(d) {rule}": rule}
    figure, axes = _panels(1, len(panels))
    for axis, (title, name) in zip(axes[0], panels.items()):
        axis.scatter(*X.T, c=values[name], cmap="coolwarm", s=6)
        axis.set(title=title, xticks=[], yticks=[])
        axis.set_aspect("equal")
    return figure


# ----------------------------------------------------------------------------------------------------------------- lpi


def text_embeddings(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot documents in two dimensions of LSI, above, and of LPI, below. [lpi, Fig. 1]"""
    records = sorted(records, key=lambda record: record["at"]["k"])
    if not records:
        return None
    figure, axes = _panels(2, len(records))
    for column, record in zip(axes.T, records):
        for axis, name in zip(column, ("LSI", "LPI")):
            Z = np.array(record["shown"][name])
            axis.scatter(*Z.T, c=record["shown"]["truth"], cmap="tab10", s=3)
            axis.set(title=f"{name}, {record['at']['k']} classes", xticks=[], yticks=[])
    return figure


def best_dimensions(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot the dimension that is best by the true labels, mean and deviation over the draws. [lpi, Fig. 2]"""
    records = [record for record in records if "best_at" in record]
    if not records:
        return None
    figure, axes = _panels(1, 1)
    for shift, method in ((-0.2, "lsi_best"), (0.2, "lpi_best")):
        ks = sorted({record["at"]["k"] for record in records})
        values = [[r["best_at"] for r in records if r["method"] == method and r["at"]["k"] == k] for k in ks]
        if all(values):
            means, spreads = [np.mean(v) for v in values], [np.std(v) for v in values]
            label = protocol.methods[method].label
            below = np.minimum(means, spreads)  # no bar of error extends below zero
            axes[0, 0].bar(np.array(ks) + shift, means, 0.4, yerr=[below, spreads], capsize=2, label=label)
    axes[0, 0].set(title=experiment.data[0], xlabel="classes", ylabel="best dimension")
    axes[0, 0].legend(frameon=False)
    return figure


# ----------------------------------------------------------------------------------------------------------------- nle


def nle_evolution(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot the rows of Q after some updates, and the objective over all of them. [nle, Fig. 2]"""
    if not records:
        return None
    import matplotlib.pyplot as plt

    values = records[0]["shown"]
    figure = plt.figure(figsize=(2.9 * 5, 2.9), layout="constrained")
    for column, (step, Q) in enumerate(sorted(values["Q"].items(), key=lambda item: int(item[0])), start=1):
        axis: Any = figure.add_subplot(1, 5, column, projection="3d")
        axis.scatter(*np.array(Q).T, c=values["truth"], cmap="brg", s=16)
        axis.set(title=f"after {step}", xticks=[], yticks=[], zticks=[])
    axis = figure.add_subplot(1, 5, 5)
    axis.plot(np.arange(1, len(values["objective"]) + 1), values["objective"])
    axis.set(xlabel="update", ylabel="objective")
    return figure


def hinton(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Draw every membership as a square of that area; outliers in orange. [nle, Fig. 3]"""
    if not records:
        return None
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    memberships = np.array(records[0]["shown"]["memberships"])
    figure, axis = plt.subplots(figsize=(12, 1.9), layout="constrained")
    for (i, k), share in np.ndenumerate(memberships):
        side = 0.9 * np.sqrt(share)
        corner = (i + 1 - side / 2, k + 1 - side / 2)
        axis.add_patch(Rectangle(corner, side, side, color="tab:blue" if i < 30 else "tab:orange"))
    axis.set(xlim=(0, len(memberships) + 1), ylim=(0.4, 3.6), yticks=[1, 2, 3], xlabel="image", ylabel="cluster")
    axis.set_aspect("equal")
    axis.invert_yaxis()
    return figure


def nle_progress(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot objective, accuracy, change of the Lagrangian and |Q'Q - I| over the updates. [nle, Figs 4 and 5]"""
    if not records:
        return None
    labels = {
        "objective": "objective", "accuracy": "accuracy", "lagrangian": "change of Eq. 15 / σ",
        "orthogonality": "largest entry of |Q'Q - I|",
    }  # fmt: skip
    figure, axes = _panels(1, len(labels))
    for axis, (name, label) in zip(axes[0], labels.items()):
        values = records[0]["shown"][name]
        axis.plot(np.arange(1, len(values) + 1), values)
        axis.set(title=experiment.data[0], xlabel="update", ylabel=label)
    axes[0, 2].set_yscale("log")
    return figure


def best_of_starts(protocol: Protocol, experiment: Experiment, records: list[Record]) -> Figure | None:
    """Plot the mean best accuracy and lowest cut among N starts, for N = 1, 2, 4, ... [nle, Fig. 6]"""
    starts = ("spectral", "nle", "nle_moves")
    records = [record for record in records if record["method"] in starts and "cut" in record["scores"]]
    if not records:
        return None
    figure, axes = _panels(2, len(experiment.data))
    for column, data in zip(axes.T, experiment.data):
        lowest = min((r["scores"]["cut"] for r in records if r["data"] == data), default=0.0)
        for axis, score, best in zip(column, ("AC", "cut"), (np.max, np.min)):
            for method in starts:
                values = [r["scores"][score] for r in records if r["data"] == data and r["method"] == method]
                sizes = [2**i for i in range(int(np.log2(len(values))) + 1)] if values else []
                means = [np.mean(best(_blocks(values, size), axis=1)) for size in sizes]
                shift = lowest if score == "cut" else 0.0
                axis.plot(sizes, np.array(means) - shift, marker=".", label=protocol.methods[method].label)
            axis.set(title=data, xscale="log", xlabel="starts", ylabel=SCORES[score])
    axes[0, 0].legend(frameon=False, fontsize=7)
    return figure


def _blocks(values: list[float], size: int) -> np.ndarray:
    """Split values into blocks of one size; a remainder is dropped."""
    return np.reshape(values[: len(values) // size * size], (-1, size))


# By the names that protocols use; None where there are no records to draw.
FIGURES: dict[str, Callable[[Protocol, Experiment, list[Record]], Figure | None]] = {
    "curves": curves,
    "two_moons": two_moons,
    "text_embeddings": text_embeddings,
    "best_dimensions": best_dimensions,
    "nle_evolution": nle_evolution,
    "hinton": hinton,
    "nle_progress": nle_progress,
    "best_of_starts": best_of_starts,
}
