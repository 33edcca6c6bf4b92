"""The fitted state of ManifoldClustering, which fits in memory and in blocks, updates and files share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array
from ..embedding.lpi import LPI
from ..embedding.whitening import Whitening
from ..graph.affinity import AffinityGraph
from ..graph.weights import CopiedRows, Templates
from ..supervision.questions import Inquiry
from ..table.profiles import Profiles
from .candidates import Candidate


class Landmarks(NamedTuple):
    """Some of the rows of a fit in blocks, which stand for all of them in predictions and reports."""

    numbers: np.ndarray  # which rows they are
    n_rows: int  # the number of all rows
    memberships: np.ndarray
    agreement: np.ndarray | None  # their part of ``row_agreement_``
    is_drawn: np.ndarray  # whether they were drawn at random among all rows, or among those of a rare cluster

    def drawn(self) -> Landmarks:
        """Return those that were drawn among all rows, of which clusters have about their share."""
        agreement = None if self.agreement is None else self.agreement[self.is_drawn]
        kept = (self.numbers[self.is_drawn], self.n_rows, self.memberships[self.is_drawn], agreement)
        return Landmarks(*kept, self.is_drawn[self.is_drawn])


class FittedLevel(NamedTuple):
    """The partition of a fit."""

    labels: Array
    memberships: Array
    profiles: Profiles | None = None  # as in `FittedState`


@dataclass(frozen=True, eq=False)
class FittedState:
    """What a fitted model keeps besides its public attributes."""

    rows: Any = None  # of the graph, in the chosen view; None for a given graph
    recipe: Any = None  # of the graph, which places new points in it
    candidates: Sequence[Candidate] = ()  # the partitions of ``candidates_``, with their labels
    n_compared: int | None = None  # rows on which methods and views were compared
    no_mixture_reason: str | None = None  # the reason for which LapGMM took no part
    view: Whitening | LPI | None = None  # the map to the chosen view; None for the rows themselves
    weights: np.ndarray | None = None  # of the rows of the graph, of mean one
    copies: CopiedRows | None = None  # which rows are equal, if the rows of the graph are the different ones
    templates: Templates | None = None  # the rows that stand for near-copies, if there are any
    graph: AffinityGraph | None = None  # that of the different rows; None if it is ``graph_``
    profiles: Profiles | None = None  # of columns that cannot be computed from the rows that the model keeps
    landmarks: Landmarks | None = None  # the sample of a fit in blocks
    n_added: int = 0  # rows, by updates
    inquiry: Inquiry | None = None  # candidates for questions, and the answers so far
    fitted: FittedLevel | None = None  # the partition of the fit, of a model at another level

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What is computed when it is first needed; files do not contain it, and a change of the state forgets it."""
        return {}
