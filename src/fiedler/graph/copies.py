"""Rows that occur many times, which a search for neighbours can leave out.

The nearest neighbours of a row with more than k equal rows are k of these, at distance 0. So they need no search, and
no other row needs more than a few of them as neighbours. Without them, cells of equal rows are not searched over and
over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.backend import row_blocks


class Copies(NamedTuple):
    """Groups of equal rows, each of more than ``k``.

    Attributes
    ----------
    members : ndarray of shape (m,)
        The rows of all groups, group by group, in ascending order within each.
    starts : ndarray of shape (n_groups + 1,)
        Group g is ``members[starts[g]:starts[g + 1]]``.
    k : int
    """

    members: np.ndarray
    starts: np.ndarray
    k: int

    @classmethod
    def of(cls, X: np.ndarray, k: int) -> Copies:
        """Find the groups of dense rows; equal rows have the same product with a random vector."""
        direction = np.asarray(np.random.RandomState(0).normal(size=X.shape[1]), dtype=X.dtype)
        parts = list(row_blocks(len(X), 2 * X.itemsize * X.shape[1], X))
        with np.errstate(over="ignore", invalid="ignore"):  # infinite products are compared by their rows
            products = np.concatenate([(X[part] * direction).sum(axis=1) for part in parts])  # X @ direction may differ
        order = np.argsort(products, kind="stable")
        differs = np.ones(len(X) + 1, dtype=bool)
        alike = np.flatnonzero(products[order[1:]] == products[order[:-1]])
        for part in row_blocks(len(alike), 4 * X.itemsize * X.shape[1], X) if len(alike) else ():
            pairs = alike[part]
            differs[pairs + 1] = (X[order[pairs]] != X[order[pairs + 1]]).any(axis=1)
        starts = np.flatnonzero(differs)
        sizes = np.diff(starts)
        is_large = sizes > k
        kept = np.repeat(is_large, sizes)
        return cls(order[kept], np.concatenate([[0], np.cumsum(sizes[is_large])]), k)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.starts) - 1

    def searched(self, n: int) -> np.ndarray:
        """Return the rows, of ``n``, that have to be searched: all but those beyond the first k + 1 of each group."""
        rank = np.arange(len(self.members)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        is_searched = np.ones(n, dtype=bool)
        is_searched[self.members[rank > self.k]] = False
        return np.flatnonzero(is_searched)

    def neighbors(self) -> np.ndarray:
        """Return the k neighbours of all members, of shape (m, k).

        The members of a group form a ring, in which every one is joined to those at distances from 1 to half of the
        ring, so that no part of the group can be cut off at few edges.
        """
        sizes = np.diff(self.starts)
        steps = np.repeat(_steps(sizes, self.k), sizes, axis=0)
        first, size = (np.repeat(part, sizes)[:, None] for part in (self.starts[:-1], sizes))
        place = np.arange(len(self.members))[:, None] - first
        return self.members[first + (place + steps) % size]

    def complete(
        self, n: int, searched: np.ndarray, distances: np.ndarray, indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances and neighbours of all ``n`` rows from those of the rows that were searched."""
        all_distances, all_indices = np.zeros((n, self.k), dtype=distances.dtype), np.empty((n, self.k), dtype=np.int64)
        all_distances[searched], all_indices[searched] = distances, searched[indices]
        all_distances[self.members], all_indices[self.members] = 0, self.neighbors()
        return all_distances, all_indices


def _steps(sizes: np.ndarray, k: int) -> np.ndarray:
    """Return k different distances in a ring of each size, which grow geometrically from 1 to half of the ring.

    Examples
    --------
    >>> _steps(np.array([5, 1000]), 4).tolist()
    [[1, 2, 3, 4], [1, 8, 63, 500]]
    """
    steps = np.zeros((len(sizes), k), dtype=np.int64)
    for j in range(k):
        wanted = np.round((sizes / 2) ** (j / max(k - 1, 1))).astype(np.int64)
        after_last = steps[:, j - 1] + 1 if j else np.ones_like(sizes)
        steps[:, j] = np.minimum(np.maximum(wanted, after_last), sizes - k + j)
    return steps
