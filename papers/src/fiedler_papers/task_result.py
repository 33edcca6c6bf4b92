"""What a task hands back, and the small things tasks share."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from fiedler.core.backend import to_numpy
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

T = TypeVar("T")

ENDINGS = {"objective": ("objective_", "inertia_", "history_"), "n_iter": ("n_iter_",), "converged": ("converged_",)}


class Outcome(NamedTuple):
    """Scores, and what else the record holds."""

    scores: dict[str, float]
    details: dict[str, Any]
    seconds_before: float = 0.0  # spent by an earlier cell on work that this one uses as well


class NotApplicable(Exception):
    """A method that asks for more than a draw has, as the paper says of it: no result, and no failure."""


class Memory(Generic[T]):
    """The last few results of some work, by what decides them, and the seconds each took."""

    def __init__(self, size: int) -> None:
        self.size, self.kept = size, OrderedDict[Any, tuple[T, float]]()

    def recall(self, key: Any, work: Callable[[], T]) -> tuple[T, float]:
        """The result, and the seconds that were spent on it before now: none if the work is done here."""
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        began = time.perf_counter()
        value = work()
        self.kept[key] = value, time.perf_counter() - began
        while len(self.kept) > self.size:
            self.kept.popitem(last=False)
        return value, 0.0


def partition_scores(y: np.ndarray, labels: Any) -> dict[str, float]:
    """Accuracy after the best matching, and mutual information over the larger entropy. [lapgmm, 4.3; lpi, 5.2]"""
    labels = to_numpy(labels)
    return {"AC": clustering_accuracy(y, labels), "NMI": normalized_mutual_information(y, labels)}


def convergence_info(model: Any) -> dict[str, Any]:
    """Objective, iterations and convergence, as far as the model or the mixture in it tells.

    Examples
    --------
    >>> from fiedler.baselines import MPCKMeans
    >>> sorted(convergence_info(MPCKMeans(2).fit([[0.0], [0.1], [5.0], [5.1]])))
    ['converged', 'n_iter', 'objective']
    """
    model = getattr(model, "mixture_", model)
    told = {}
    for name, attributes in ENDINGS.items():
        values = [getattr(model, attribute) for attribute in attributes if hasattr(model, attribute)]
        if values:
            told[name] = _last(values[0])
    return told


def _last(value: Any) -> Any:
    """Of a history its end."""
    if isinstance(value, dict):
        value = value["objective"]
    return value[-1] if isinstance(value, list | tuple) else value
