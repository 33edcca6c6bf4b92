"""What a task hands back, and the small things tasks share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.backend import to_numpy
from ..metrics import clustering_accuracy, normalized_mutual_information

ENDINGS = {"objective": ("objective_", "inertia_"), "n_iter": ("n_iter_",), "converged": ("converged_",)}


class Outcome(NamedTuple):
    """Scores, and what else the record holds."""

    scores: dict[str, float]
    details: dict[str, Any]
    seconds_before: float = 0.0  # of work that an earlier cell did and this one used


class NotApplicable(Exception):
    """A method that asks for more than a draw has, as the paper says of it: no result, and no failure."""


class Same:
    """A value that counts as equal to any other, so that a cache goes by the other arguments alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 0


def partition_scores(y: np.ndarray, labels: Any) -> dict[str, float]:
    """Accuracy after the best matching, and mutual information over the larger entropy. [lapgmm, 4.3; lpi, 5.2]"""
    labels = to_numpy(labels)
    return {"AC": clustering_accuracy(y, labels), "NMI": normalized_mutual_information(y, labels)}


def how_it_ended(model: Any) -> dict[str, Any]:
    """Objective, iterations and convergence, as far as the model tells."""
    told = {}
    for name, attributes in ENDINGS.items():
        values = [getattr(model, attribute) for attribute in attributes if hasattr(model, attribute)]
        if values:
            told[name] = values[0]
    return told
