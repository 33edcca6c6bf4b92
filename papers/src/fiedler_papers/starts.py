"""NLE over many starts: one seeding of k-means, the updates from there, single moves after them [nle, Table II]."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from fiedler.core.kmeans import kmeans
from fiedler.embedding.nle import LIFT, NLERun, Update, run, unit_columns
from fiedler.graph.cuts import CutProblem, cut_eigenvectors, cut_problem, polish
from fiedler.metrics import clustering_accuracy

from .build import build
from .protocol import Cell
from .rows import Rows
from .task_result import Memory, Outcome

UPDATES, TOL = 300, 1e-4


class Cut(NamedTuple):
    """What all starts on one graph share."""

    problem: CutProblem
    update: Update
    vectors: Any
    k: int

    @property
    def mean_weight(self) -> float:
        """Of all pairs. The paper's Ratio Cuts are about n(K - 1), which is what a mean weight of one makes them."""
        n = len(self.problem.degrees)
        return float(np.sum(self.problem.degrees)) / (n * (n - 1))


def start(cell: Cell, rows: Rows) -> Outcome:
    """The labels of one start at one stage: 'spectral', 'nle' or 'moves'."""
    cut, seconds = the_cut(cell, rows)
    labels, n_iter = STAGES[cell.spec["options"]["stage"]](cut, cell.draw)
    value = cut.problem.value(np.asarray(labels, dtype=np.int64), cut.k) / cut.mean_weight
    empty = not np.isfinite(value)  # a cluster without a node, which no cut is defined for
    scores = {"AC": clustering_accuracy(rows.y, labels)} | ({} if empty else {"cut": value})
    return Outcome(scores, {"n_iter": n_iter, "objective": None if empty else value}, seconds)


_CUTS: Memory[Cut] = Memory(8)


def the_cut(cell: Cell, rows: Rows) -> tuple[Cut, float]:
    """Graph, update and eigenvectors of the rows, and the seconds that an earlier cell spent on them."""
    options = {name: cell.spec["options"][name] for name in ("graph", "cut", "signed")}

    def make() -> Cut:
        graph, rng = build(options["graph"]).build(rows.X), np.random.RandomState(0)
        problem = cut_problem(graph, options["cut"], options["signed"])
        vectors = cut_eigenvectors(graph, problem, rows.k, options["cut"], rng, options["signed"])
        return Cut(problem, Update(problem, rng), vectors, rows.k)

    return _CUTS.recall((rows.key, json.dumps(options, sort_keys=True)), make)


def spectral(cut: Cut, seed: int) -> tuple[Any, int]:
    """One seeding of k-means on the eigenvectors."""
    return kmeans(cut.vectors, cut.k, n_init=1, random_state=seed).labels, 0


def updated(cut: Cut, seed: int) -> NLERun:
    """NLE from the indicators of one seeding plus 0.2."""
    return run(cut.update, unit_columns(np.eye(cut.k)[spectral(cut, seed)[0]] + LIFT), max_iter=UPDATES, tol=TOL)


def _nle(cut: Cut, seed: int) -> tuple[Any, int]:
    found = updated(cut, seed)
    return found.labels, found.n_iter


def _moves(cut: Cut, seed: int) -> tuple[Any, int]:
    labels, n_iter = _nle(cut, seed)
    return polish(cut.problem, labels, cut.k)[0], n_iter


STAGES = {"spectral": spectral, "nle": _nle, "moves": _moves}
