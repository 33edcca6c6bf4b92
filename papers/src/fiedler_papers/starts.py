"""NLE over many starts: one seeding of k-means, the updates from there, single moves after them [nle, Table II]."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

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
    """What all starts on one graph share: cut problem, update of NLE, eigenvectors and number of clusters."""

    problem: CutProblem
    update: Update
    vectors: Any
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
    labels, n_iter = STAGES[cell.spec["options"]["stage"]](cut, cell.draw)
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
        vectors = cut_eigenvectors(graph, problem, rows.k, options["cut"], rng, options["signed"])
        return GraphCut(problem, Update(problem, rng), vectors, rows.k)

    return _CUTS.get_or_compute((rows.key, json.dumps(options, sort_keys=True)), compute)


def spectral_labels(cut: GraphCut, seed: int) -> Any:
    """Run k-means from one seeding on the eigenvectors."""
    return kmeans(cut.vectors, cut.k, n_init=1, random_state=seed).labels


def lifted_indicators(cut: GraphCut, seed: int) -> np.ndarray:
    """Return NLE's start: the indicators of :func:`spectral_labels` plus 0.2, columns of length one."""
    return unit_columns(np.eye(cut.k)[spectral_labels(cut, seed)] + INDICATOR_OFFSET)


def _spectral(cut: GraphCut, seed: int) -> tuple[Any, int]:
    return spectral_labels(cut, seed), 0


def _nle(cut: GraphCut, seed: int) -> tuple[Any, int]:
    result = run_updates(cut.update, lifted_indicators(cut, seed), max_iter=NLE_MAX_ITER, tol=NLE_TOL)
    return result.labels, result.n_iter


def _moves(cut: GraphCut, seed: int) -> tuple[Any, int]:
    labels, n_iter = _nle(cut, seed)
    return polish(cut.problem, labels, cut.k)[0], n_iter


# Labels and number of updates after each stage, by the names that protocols use.
STAGES = {"spectral": _spectral, "nle": _nle, "moves": _moves}
