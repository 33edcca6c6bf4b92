"""NLE over many starts: one seeding of k-means, the updates from there, single moves after them [nle, Table II].

The text leaves open whether the K eigenvectors of spectral clustering include the constant one, and how long the
columns of the first Q are; ``start`` and ``scale`` of a method's options are the readings.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fiedler._validation import choose
from fiedler.core.kmeans import kmeans
from fiedler.embedding.nle import INDICATOR_OFFSET, Update, run_updates, unit_columns
from fiedler.graph.cuts import CutProblem, cut_eigenvectors, cut_problem, polish
from fiedler.metrics import clustering_accuracy

from .build import build
from .protocol import Cell
from .rows import Rows
from .task_result import TaskResult, TimedCache

NLE_MAX_ITER, NLE_TOL = 300, 1e-4


class GraphCut(NamedTuple):
    """What all starts on one graph share: rows, cut problem, update of NLE, eigenvectors and number of clusters."""

    X: Any
    problem: CutProblem
    update: Update
    vectors: Any  # K + 1 of them, the first constant
    k: int

    @property
    def mean_weight(self) -> float:
        """Mean weight over all pairs.

        The paper's Ratio Cuts are about n(K - 1), which a mean weight of one reproduces.
        """
        n = len(self.problem.degrees)
        return float(np.sum(self.problem.degrees)) / (n * (n - 1))


def nle_start(cell: Cell, rows: Rows) -> TaskResult:
    """Score the labels of one start after one stage: 'spectral', 'nle' or 'moves'."""
    cut, seconds = graph_cut(cell, rows)
    options, first = cell.spec["options"], first_labels(cut, cell)
    labels, n_iter = STAGES[options["stage"]](cut, first, first_embedding(first, cut.k, options.get("scale", "unit")))
    value = cut.problem.value(np.asarray(labels, dtype=np.int64), cut.k) / cut.mean_weight
    has_empty_cluster = not np.isfinite(value)  # no cut is defined then
    scores = {"AC": clustering_accuracy(rows.y, labels)} | ({} if has_empty_cluster else {"cut": value})
    return TaskResult(scores, {"n_iter": n_iter, "objective": None if has_empty_cluster else value}, seconds)


_CUTS: TimedCache[GraphCut] = TimedCache(8)


def graph_cut(cell: Cell, rows: Rows) -> tuple[GraphCut, float]:
    """Return the cut problem of the rows, and the seconds that an earlier cell spent on it."""
    options = {name: cell.spec["options"][name] for name in ("graph", "cut", "signed")}

    def compute() -> GraphCut:
        graph, rng = build(options["graph"]).build(rows.X), np.random.RandomState(0)
        problem = cut_problem(graph, options["cut"], options["signed"])
        vectors = cut_eigenvectors(graph, problem, rows.k + 1, options["cut"], rng, options["signed"])
        return GraphCut(rows.X, problem, Update(problem, rng), vectors, rows.k)

    return _CUTS.get_or_compute((rows.key, json.dumps(options, sort_keys=True)), compute)


# The points on which k-means finds the first labels, by the names that protocols use.
POINTS: dict[str, Callable[[GraphCut], Any]] = {
    "spectral": lambda cut: cut.vectors[:, : cut.k],
    "nonconstant": lambda cut: cut.vectors[:, 1 : cut.k + 1],
    "kmeans": lambda cut: cut.X,
}


def first_labels(cut: GraphCut, cell: Cell) -> Any:
    """Run k-means from one seeding, on the eigenvectors unless the options say otherwise."""
    points = choose(POINTS, cell.spec["options"].get("start", "spectral"), option="start")(cut)
    return kmeans(np.ascontiguousarray(points), cut.k, n_init=1, random_state=cell.draw).labels


def first_embedding(labels: Any, k: int, scale: str = "unit") -> np.ndarray:
    """Return NLE's start, indicators plus 0.2, with columns of length one or as ``"printed"``. [nle, section X]"""
    Q = np.eye(k)[labels] + INDICATOR_OFFSET
    return choose({"unit": unit_columns(Q), "printed": Q}, scale, option="scale")


def _first(cut: GraphCut, labels: Any, Q: np.ndarray) -> tuple[Any, int]:
    return labels, 0


def _nle(cut: GraphCut, labels: Any, Q: np.ndarray) -> tuple[Any, int]:
    result = run_updates(cut.update, Q, max_iter=NLE_MAX_ITER, tol=NLE_TOL)
    return result.labels, result.n_iter


def _moves(cut: GraphCut, labels: Any, Q: np.ndarray) -> tuple[Any, int]:
    labels, n_iter = _nle(cut, labels, Q)
    return polish(cut.problem, labels, cut.k)[0], n_iter


# Labels and number of updates after each stage, by the names that protocols use.
STAGES = {"spectral": _first, "nle": _nle, "moves": _moves}
