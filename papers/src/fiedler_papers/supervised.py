"""Tasks in which a few labels, or the pairs among them, are known [learned_laplacian, section IV]."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from fiedler.core.arrays import to_numpy
from fiedler.graph.constraints import PairwiseConstraints
from fiedler.graph.recipes import FullGraph
from fiedler.metrics import balanced_rand_index, clustering_accuracy

from .build import build, build_for
from .protocol import Cell
from .rows import Rows
from .task_result import NotApplicable, TaskResult, TimedCache, convergence_info

UNLABELLED = -1
MAX_ROWS_FOR_DISTANCES = 2000  # rows whose pairwise distances are computed

Scores = dict[str, float]


class Candidate(NamedTuple):
    """Rows in some metric, and their graph if the model is to use one."""

    width: float | None  # of the kernel, where several are tried
    X: Any
    graph: Any = None
    shared_seconds: float = 0.0  # spent by an earlier cell on the graph
    learner: dict[str, Any] | None = None  # convergence of the learner of the graph


def cluster_with_pairs(cell: Cell, rows: Rows) -> TaskResult:
    """Cluster all rows given the pairs of labelled ones: the Balanced Rand index. [learned_laplacian, Table II]"""
    # The option is called "told" in the digests of archived records.
    constraints = {"constraints": known_pairs(rows)} if cell.spec["options"].get("told", False) else {}

    def score(model: Any, X: Any) -> Scores:
        labels = to_numpy(model.fit(X, **constraints).labels_)
        return {"BR": balanced_rand_index(rows.y, labels), "AC": clustering_accuracy(rows.y, labels)}

    return _best_candidate(cell, rows, score, lambda scores: scores["BR"])


def classify_from_labels(cell: Cell, rows: Rows) -> TaskResult:
    """Classify the other rows from the labelled ones: the error rate. [learned_laplacian, Table III]"""
    partial_labels = known_labels(rows)

    def score(model: Any, X: Any) -> Scores:
        predicted = to_numpy(model.fit(X, partial_labels).transduction_)
        return {"error": float((predicted != rows.y)[partial_labels == UNLABELLED].mean())}

    return _best_candidate(cell, rows, score, lambda scores: -scores["error"])


def known_labels(rows: Rows) -> np.ndarray:
    """Return the labels of the labelled rows, -1 elsewhere."""
    partial_labels = np.full(len(rows.y), UNLABELLED)
    partial_labels[rows.labelled] = rows.y[rows.labelled]
    return partial_labels


def known_pairs(rows: Rows) -> PairwiseConstraints:
    """Return all pairs among the labelled rows."""
    return PairwiseConstraints.from_labels(known_labels(rows))


def _best_candidate(
    cell: Cell, rows: Rows, score: Callable[[Any, Any], Scores], criterion: Callable[[Scores], float]
) -> TaskResult:
    """Score the only candidate, or the one that is best by the true labels."""
    results = []
    for candidate in _candidates(cell, rows):
        settings = {} if candidate.graph is None else {"graph": candidate.graph}
        model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, **settings)
        results.append((score(model, candidate.X), model, candidate))
    scores, model, candidate = max(results, key=lambda result: criterion(result[0]))
    optional = {"best_at": candidate.width, "learner": candidate.learner}
    details = convergence_info(model) | {name: value for name, value in optional.items() if value is not None}
    return TaskResult(scores, details, candidate.shared_seconds)


def _candidates(cell: Cell, rows: Rows) -> Iterator[Candidate]:
    """Yield one candidate, or one per width of the kernel."""
    options = cell.spec["options"]
    if np.bincount(rows.y[rows.labelled]).min() < options.get("least", 1):
        raise NotApplicable(f"fewer than {options['least']} labelled rows in a class")
    X = _transform_by_metric(options.get("metric"), rows)
    if "learner" in options:
        yield _learned_graph(cell, rows, X)
    elif "widths" in options:
        unit = median_distance(X) / 2**0.5
        yield from (Candidate(width, X, FullGraph(bandwidth=width * unit).build(X)) for width in options["widths"])
    else:
        yield Candidate(None, X)


def _transform_by_metric(spec: dict[str, Any] | None, rows: Rows) -> Any:
    """Return the rows in a metric learnt from the labelled ones."""
    if spec is None:
        return rows.X
    model = build(spec)
    if spec["use"] == "MMC":
        pairs = known_pairs(rows)
        if len(pairs.must_link) == 0:
            raise NotApplicable("no two labelled rows of one class, so no must-link to learn a metric from")
        return model.fit(rows.X, constraints=pairs).transform(rows.X)
    return model.fit(rows.X[rows.labelled], rows.y[rows.labelled]).transform(rows.X)


_LEARNED_GRAPHS: TimedCache[Any] = TimedCache(4)


def _learned_graph(cell: Cell, rows: Rows, X: Any) -> Candidate:
    """Learn the graph of a draw, which clustering and classification share; the seed of the learner is 0."""
    learner = cell.spec["options"]["learner"]

    def learn() -> Any:
        model = build_for(learner, k=rows.k, seed=0).fit(X, constraints=known_pairs(rows))
        return model.graph_, convergence_info(model)

    key = (rows.key, json.dumps(cell.spec["options"], sort_keys=True))
    (graph, convergence), seconds = _LEARNED_GRAPHS.get_or_compute(key, learn)
    return Candidate(None, X, graph, seconds, convergence)


def median_distance(X: np.ndarray) -> float:
    """Return the median distance between rows, of at most 2000 random ones."""
    sample = np.random.RandomState(0).permutation(len(X))[:MAX_ROWS_FOR_DISTANCES]
    return float(np.median(pdist(X[sample])))
