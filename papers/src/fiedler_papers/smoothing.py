"""LapGMM's rule (12) with the number of smoothing steps chosen without labels. [lapgmm, Table 1, line 6]

The paper smooths "until convergence", where memberships are constant on every connected component. How often the rule
is repeated is therefore part of the method. Each number of ``options.steps`` is tried from the same start on the same
graph; the trial whose partition has the highest modularity on the graph is kept. The record has all trials, so that
other choices can be compared.
"""

from __future__ import annotations

from typing import Any

from fiedler.core.arrays import to_numpy
from fiedler.graph.affinity import AffinityGraph
from fiedler.mixture.base import partition_quality

from .build import build_for
from .protocol import Cell
from .rows import Rows
from .task_result import TaskResult, convergence_info, partition_scores


def choose_steps(cell: Cell, rows: Rows, settings: dict[str, Any]) -> TaskResult:
    """Fit with every number of steps and return the scores of the partition with the highest modularity."""
    steps = cell.spec["options"]["steps"]
    model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, **settings)
    graph = model.graph.build(rows.X)
    trials = {n: trial(model.set_params(graph=graph, n_smooth=n), graph, rows) for n in steps}
    best = max(trials, key=lambda n: trials[n]["modularity"])
    scores = {name: trials[best][name] for name in ("AC", "NMI")}
    info = {name: trials[best][name] for name in ("objective", "n_iter", "converged")}
    return TaskResult(scores, info | {"best_at": best, "trials": {str(n): one for n, one in trials.items()}})


def trial(model: Any, graph: AffinityGraph, rows: Rows) -> dict[str, Any]:
    """Fit and return the scores, the objective (6) with its two terms, and the modularity of the partition."""
    model.fit(rows.X)
    n_clusters, modularity = partition_quality(model.memberships_, graph)
    terms = {"likelihood": model.likelihood_, "penalty": model.penalty_, "modularity": modularity}
    labels = to_numpy(model.labels_)
    return {**partition_scores(rows.y, labels), **convergence_info(model), **terms, "n_clusters": n_clusters}
