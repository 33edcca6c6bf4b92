"""The result of a task, and helpers that several tasks use."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from fiedler import FitHistory
from fiedler._typing import LabelsLike
from fiedler.core.arrays import to_numpy
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

T = TypeVar("T")

# Entries of a record, each with the attributes of a fitted model to read it from; the first that exists is used.
CONVERGENCE_ATTRIBUTES = {
    "objective": ("objective_", "inertia_", "history_"),
    "n_iter": ("n_iter_",),
    "converged": ("converged_",),
}


class TaskResult(NamedTuple):
    """Scores, further entries of the record, and the time that other cells spent on shared work."""

    scores: dict[str, float]
    details: dict[str, Any]
    shared_seconds: float = 0.0  # spent by an earlier cell on work that this one uses as well


class NotApplicable(Exception):
    """The method cannot be applied to this draw; the cell has no result and is not a failure."""


class TimedCache(Generic[T]):
    """The most recent results of an expensive computation, by key, with the seconds that each took."""

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self.entries: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()

    def get_or_compute(self, key: Hashable, compute: Callable[[], T]) -> tuple[T, float]:
        """Return the result and the seconds that were spent on it earlier: 0 if it is computed now."""
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        started = time.perf_counter()
        value = compute()
        self.entries[key] = value, time.perf_counter() - started
        while len(self.entries) > self.max_size:
            self.entries.popitem(last=False)
        return value, 0.0


def partition_scores(y: np.ndarray, labels: LabelsLike) -> dict[str, float]:
    """Return accuracy after the best matching, and NMI over the larger entropy. [lapgmm, 4.3; lpi, 5.2]"""
    labels = to_numpy(labels)
    return {"AC": clustering_accuracy(y, labels), "NMI": normalized_mutual_information(y, labels)}


def convergence_info(model: Any) -> dict[str, Any]:
    """Return objective, iterations and convergence, as far as the model or its mixture reports them.

    Examples
    --------
    >>> from fiedler_papers.baselines import MPCKMeans
    >>> sorted(convergence_info(MPCKMeans(2).fit([[0.0], [0.1], [5.0], [5.1]])))
    ['converged', 'n_iter', 'objective']
    """
    model = getattr(model, "mixture_", model)
    info = {}
    for name, attributes in CONVERGENCE_ATTRIBUTES.items():
        values = [getattr(model, attribute) for attribute in attributes if hasattr(model, attribute)]
        if values:
            info[name] = _final(values[0])
    return info


def _final(value: Any) -> Any:
    """Return the last objective of a history; any other value unchanged."""
    return float(value.objective[-1]) if isinstance(value, FitHistory) else value
