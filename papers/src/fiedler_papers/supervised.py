"""Tasks in which a few labels, or the pairs among them, are known [learned_laplacian, section IV]."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from fiedler.core.backend import to_numpy
from fiedler.graph.constraints import PairwiseConstraints
from fiedler.graph.recipes import FullGraph
from fiedler.metrics import balanced_rand_index, clustering_accuracy

from .build import build, build_for
from .protocol import Cell
from .rows import Rows
from .task_result import Memory, NotApplicable, Outcome, convergence_info

UNKNOWN = -1


class Candidate(NamedTuple):
    """Rows in some metric and their graph, if the model is to use one; ``place`` says which of several it is."""

    place: Any
    X: Any
    graph: Any = None
    seconds: float = 0.0  # of work that an earlier cell did
    learner: dict[str, Any] | None = None  # how the learning of the graph came to its end


def pairs(cell: Cell, rows: Rows) -> Outcome:
    """Clusters of all rows, pairs of labelled ones known: the Balanced Rand index. [learned_laplacian, Table II]"""
    told = {"constraints": known_pairs(rows)} if cell.spec["options"].get("told", False) else {}

    def scored(model: Any, X: Any) -> dict[str, float]:
        labels = to_numpy(model.fit(X, **told).labels_)
        return {"BR": balanced_rand_index(rows.y, labels), "AC": clustering_accuracy(rows.y, labels)}

    return _best(cell, rows, scored, lambda scores: scores["BR"])


def labels(cell: Cell, rows: Rows) -> Outcome:
    """Classes of the other rows from labelled ones: the share of errors. [learned_laplacian, Table III]"""
    some = known_labels(rows)

    def scored(model: Any, X: Any) -> dict[str, float]:
        found = to_numpy(model.fit(X, some).transduction_)
        return {"error": float((found != rows.y)[some == UNKNOWN].mean())}

    return _best(cell, rows, scored, lambda scores: -scores["error"])


def known_labels(rows: Rows) -> np.ndarray:
    """The labels of the draw, -1 elsewhere."""
    some = np.full(len(rows.y), UNKNOWN)
    some[rows.known] = rows.y[rows.known]
    return some


def known_pairs(rows: Rows) -> PairwiseConstraints:
    """All pairs among the labelled rows."""
    return PairwiseConstraints.from_labels(known_labels(rows))


def _best(
    cell: Cell, rows: Rows, scored: Callable[[Any, Any], dict[str, float]], worth: Callable[[dict[str, float]], float]
) -> Outcome:
    """The scores of the only candidate, or of the one that the true labels like best."""
    found = []
    for candidate in _candidates(cell, rows):
        settings = {} if candidate.graph is None else {"graph": candidate.graph}
        model = build_for(cell.spec["model"], k=rows.k, seed=cell.draw, **settings)
        scores = scored(model, candidate.X)
        found.append((scores, model, candidate))
    scores, model, candidate = max(found, key=lambda one: worth(one[0]))
    more = {"best_at": candidate.place, "learner": candidate.learner}
    told = {name: value for name, value in more.items() if value is not None}
    return Outcome(scores, convergence_info(model) | told, candidate.seconds)


def _candidates(cell: Cell, rows: Rows) -> Iterator[Candidate]:
    """One candidate, or one for every width of the kernel."""
    options = cell.spec["options"]
    if np.bincount(rows.y[rows.known]).min() < options.get("least", 1):
        raise NotApplicable(f"fewer than {options['least']} labelled rows in a class")
    X = _in_metric(options.get("metric"), rows)
    if "learner" in options:
        yield _learnt(cell, rows, X)
    elif "widths" in options:
        unit = median_distance(X) / 2**0.5
        yield from (Candidate(width, X, FullGraph(bandwidth=width * unit).build(X)) for width in options["widths"])
    else:
        yield Candidate(None, X)


def _in_metric(spec: dict[str, Any] | None, rows: Rows) -> Any:
    """Rows in a metric learnt from the labelled ones."""
    if spec is None:
        return rows.X
    model = build(spec)
    if spec["use"] == "MMC":
        pairs = known_pairs(rows)
        if len(pairs.must_link) == 0:
            raise NotApplicable("no two labelled rows of one class, so no must-link to learn a metric from")
        return model.fit(rows.X, constraints=pairs).transform(rows.X)
    return model.fit(rows.X[rows.known], rows.y[rows.known]).transform(rows.X)


_LEARNT: Memory[Any] = Memory(4)


def _learnt(cell: Cell, rows: Rows, X: Any) -> Candidate:
    """The learnt graph of a draw, which clusters and classes are both read off; the learner's own seed is 0."""
    learner = cell.spec["options"]["learner"]

    def learn() -> Any:
        model = build_for(learner, k=rows.k, seed=0).fit(X, constraints=known_pairs(rows))
        return model.graph_, convergence_info(model)

    (graph, ended), seconds = _LEARNT.recall((rows.key, json.dumps(cell.spec["options"], sort_keys=True)), learn)
    return Candidate(None, X, graph, seconds, ended)


def median_distance(X: np.ndarray) -> float:
    """Of two thousand rows at most."""
    kept = np.random.RandomState(0).permutation(len(X))[:2000]
    return float(np.median(pdist(X[kept])))
