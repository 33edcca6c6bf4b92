"""Rows that stand for all rows of a fit in blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
