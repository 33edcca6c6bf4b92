"""The fitted state of ManifoldClustering, which fits in memory and in blocks, updates and files share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..embedding.lpi import LPI
from ..embedding.whitening import Whitening
from ..graph.affinity import AffinityGraph
from ..graph.weights import CopiedRows
from ..table import TableCompleter
from ..table.profiles import Profiles
from .candidates import Candidate


class Landmarks(NamedTuple):
    """Some of the rows of a fit in blocks, which stand for all of them in predictions and reports.

    Attributes
    ----------
    numbers : ndarray of shape (m,)
        Which rows they are.
    n_rows : int
        The number of all rows.
    memberships : ndarray of shape (m, n_clusters)
    agreement : ndarray of shape (m,) or None
        Their part of ``row_agreement_``.
    is_drawn : ndarray of shape (m,)
        Whether they were drawn at random among all rows, or among those of a rare cluster.
    """

    numbers: np.ndarray
    n_rows: int
    memberships: np.ndarray
    agreement: np.ndarray | None
    is_drawn: np.ndarray

    def drawn(self) -> Landmarks:
        """Return those that were drawn among all rows, of which clusters have about their share."""
        agreement = None if self.agreement is None else self.agreement[self.is_drawn]
        kept = (self.numbers[self.is_drawn], self.n_rows, self.memberships[self.is_drawn], agreement)
        return Landmarks(*kept, self.is_drawn[self.is_drawn])


@dataclass(frozen=True, eq=False)
class FittedState:
    """What a fitted model keeps besides its public attributes and the rows of its graph, ``_fit_X``.

    Attributes
    ----------
    candidates : sequence of Candidate
        The partitions of ``candidates_``, with their labels.
    n_compared : int or None
        The number of rows on which methods and views were compared; None if they were not.
    no_mixture_reason : str or None
        The reason for which LapGMM took no part.
    view : Whitening, LPI or None
        The map of new points to the chosen view; None for the rows themselves.
    weights : ndarray of shape (m,) or None
        The weights of the rows of the graph, of mean one.
    copies : CopiedRows or None
        Which rows are equal, if the rows of the graph are the different ones.
    graph : AffinityGraph or None
        The graph of the different rows; None if it is ``graph_``.
    completer : TableCompleter or None
        Completes new rows of a data frame of numbers.
    profiles : Profiles or None
        The columns by cluster, where they cannot be computed from the rows that the model keeps.
    landmarks : Landmarks or None
        The sample of a fit in blocks.
    n_added : int
        The number of rows that updates have added.
    """

    candidates: Sequence[Candidate] = ()
    n_compared: int | None = None
    no_mixture_reason: str | None = None
    view: Whitening | LPI | None = None
    weights: np.ndarray | None = None
    copies: CopiedRows | None = None
    graph: AffinityGraph | None = None
    completer: TableCompleter | None = None
    profiles: Profiles | None = None
    landmarks: Landmarks | None = None
    n_added: int = 0
