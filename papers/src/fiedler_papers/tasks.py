"""What is done in a cell: rows of `TASKS`, each from a cell and its rows to scores and how they were reached."""

from __future__ import annotations

import numpy as np

from fiedler._validation import choose
from fiedler.clustering.embed_kmeans import SIZES
from fiedler.core.kmeans import kmeans

from .build import build_for
from .illustrations import ILLUSTRATIONS
from .protocol import At, Cell
from .rows import Rows
from .starts import start
from .supervised import labels, pairs
from .task_result import Outcome, convergence_info, partition_scores

PLACES = ("k", "rate", "share")  # of the grid, that choose rows; the others are parameters of the model


def cluster(cell: Cell, rows: Rows) -> Outcome:
    """Clusters of all rows, no label seen."""
    model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, **_settings(cell.at)).fit(rows.X)
    return Outcome(partition_scores(rows.y, model.labels_), convergence_info(model))


def _settings(at: At) -> At:
    """The parameters of the model among the places of the grid."""
    return {name: value for name, value in at.items() if name not in PLACES}


def best_dimension(cell: Cell, rows: Rows) -> Outcome:
    """K-means in the first d dimensions of an embedding, for the d that is best by the true labels. [lpi, 5.4]"""
    sizes = cell.spec["options"]["dimensions"]
    most = min(max(sizes), min(rows.X.shape) - 1)
    Z = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, n_components=most).fit_transform(rows.X)
    found = {size: _in_dimensions(Z[:, :size], cell, rows) for size in sizes if size <= Z.shape[1]}
    best = max(found, key=lambda size: found[size].scores["AC"])
    return Outcome(found[best].scores, found[best].details | {"best_at": best})


def part(cell: Cell, rows: Rows) -> Outcome:
    """A linear map learnt from a random share of the rows, k-means on the images of all. [lpi, 5.6]"""
    size = max(rows.k + SIZES[cell.spec["options"]["dimensions"]], 1)
    model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, n_components=size)
    n = rows.X.shape[0]
    least = max(3 * rows.k, 20)  # rows, below which there is no graph of fifteen neighbours
    some = np.random.RandomState(cell.draw).permutation(n)[: max(round(cell.at["share"] * n), least)]
    return _in_dimensions(model.fit(rows.X[np.sort(some)]).transform(rows.X), cell, rows)


def _in_dimensions(Z: np.ndarray, cell: Cell, rows: Rows) -> Outcome:
    found = kmeans(np.ascontiguousarray(Z), rows.k, n_init=10, random_state=cell.draw)
    return Outcome(partition_scores(rows.y, found.labels), {"objective": found.inertia, "n_iter": found.n_iter})


def illustrate(cell: Cell, rows: Rows) -> Outcome:
    """What a figure shows, as numbers."""
    show = choose(ILLUSTRATIONS, cell.spec["options"]["figure"], option="figure")
    return Outcome({}, {"shown": show(cell, rows)})


TASKS = {
    "cluster": cluster,
    "best_dimension": best_dimension,
    "part": part,
    "pairs": pairs,
    "labels": labels,
    "start": start,
    "illustrate": illustrate,
}
