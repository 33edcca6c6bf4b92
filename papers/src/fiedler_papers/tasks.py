"""Tasks of a cell: each takes a cell and its rows and returns scores and how they were reached."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fiedler._validation import choose
from fiedler.clustering.embed_kmeans import EXTRA_DIMENSIONS
from fiedler.core.kmeans import kmeans

from .build import build_for
from .illustrations import ILLUSTRATIONS
from .protocol import Cell, GridPoint
from .rows import Rows
from .smoothing import choose_steps
from .starts import nle_start
from .supervised import classify_from_labels, cluster_with_pairs
from .task_result import TaskResult, convergence_info, partition_scores

ROW_SIDES = ("k", "rate", "share")  # sides of the grid that select rows; the others are parameters of the model
MIN_TRAINING_ROWS = 20  # a graph of 15 neighbours needs as many


def cluster(cell: Cell, rows: Rows) -> TaskResult:
    """Cluster all rows without labels."""
    model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, **_model_settings(cell.at)).fit(rows.X)
    return TaskResult(partition_scores(rows.y, model.labels_), convergence_info(model))


def cluster_with_chosen_steps(cell: Cell, rows: Rows) -> TaskResult:
    """Cluster by LapGMM's rule (12), repeated as often as the modularity says. [lapgmm, Table 1]"""
    return choose_steps(cell, rows, _model_settings(cell.at))


def _model_settings(at: GridPoint) -> GridPoint:
    return {name: value for name, value in at.items() if name not in ROW_SIDES}


def best_dimension(cell: Cell, rows: Rows) -> TaskResult:
    """Run k-means in the first d dimensions of an embedding, for the d that is best by the true labels. [lpi, 5.4]"""
    sizes = cell.spec["options"]["dimensions"]
    n_components = min(max(sizes), min(rows.X.shape) - 1)
    Z = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, n_components=n_components).fit_transform(rows.X)
    results = {size: _kmeans_result(Z[:, :size], cell, rows) for size in sizes if size <= Z.shape[1]}
    best = max(results, key=lambda size: results[size].scores["AC"])
    return TaskResult(results[best].scores, results[best].details | {"best_at": best})


def train_on_share(cell: Cell, rows: Rows) -> TaskResult:
    """Learn a linear map from a random share of the rows, then run k-means on the images of all. [lpi, 5.6]"""
    size = max(rows.k + EXTRA_DIMENSIONS[cell.spec["options"]["dimensions"]], 1)
    model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, n_components=size)
    n = rows.X.shape[0]
    n_training = max(round(cell.at["share"] * n), 3 * rows.k, MIN_TRAINING_ROWS)
    training = np.random.RandomState(cell.draw).permutation(n)[:n_training]
    return _kmeans_result(model.fit(rows.X[np.sort(training)]).transform(rows.X), cell, rows)


def _kmeans_result(Z: np.ndarray, cell: Cell, rows: Rows) -> TaskResult:
    result = kmeans(np.ascontiguousarray(Z), rows.k, n_init=10, random_state=cell.draw)
    return TaskResult(partition_scores(rows.y, result.labels), {"objective": result.inertia, "n_iter": result.n_iter})


def illustrate(cell: Cell, rows: Rows) -> TaskResult:
    """Compute the numbers that a figure shows."""
    compute = choose(ILLUSTRATIONS, cell.spec["options"]["figure"], option="figure")
    return TaskResult({}, {"shown": compute(cell, rows)})  # archived records use this key


# By the names that protocols use.
TASKS: dict[str, Callable[[Cell, Rows], TaskResult]] = {
    "cluster": cluster,
    "best_dimension": best_dimension,
    "steps": cluster_with_chosen_steps,
    "part": train_on_share,
    "pairs": cluster_with_pairs,
    "labels": classify_from_labels,
    "start": nle_start,
    "illustrate": illustrate,
}
