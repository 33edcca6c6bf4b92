"""What an update of a model with new rows has changed, and how different these rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.backend import Array, to_numpy

LARGE_FAR_SHARE = 0.05  # of the new rows, instead of 1 %
LARGE_SHARE_CHANGE = 0.1
REORGANIZED = ", since the graph of all rows has clusters with a clearly lower cut"


class Drift(NamedTuple):
    """How different new rows are from the rows of a model, without labels.

    Attributes
    ----------
    distance_ratio : float
        The median over the new rows of the mean distance to their nearest old rows, divided by the median of that
        distance of the old rows among themselves. About 1 for rows of the same kind.
    far_share : float
        The share of the new rows for which that distance is larger than for 99 % of the old rows: about 0.01 for rows
        of the same kind.
    share_change : float
        The total variation between the shares of the clusters among the old and among the new rows, half the sum of
        the absolute differences: 0 if they are equal, 1 if no cluster has rows of both.
    far_by_chance, change_by_chance : float
        What 99 % of as many rows of the same kind do not exceed.

    Notes
    -----
    Missing and unknown values of a table are estimated from the old rows, so that they are no sign of drift.

    Examples
    --------
    >>> from fiedler.clustering import Drift
    >>> drift = Drift(distance_ratio=1.01, far_share=0.012, share_change=0.04, far_by_chance=0.03, change_by_chance=0.1)
    >>> drift.is_large
    False
    """

    distance_ratio: float
    far_share: float
    share_change: float
    far_by_chance: float
    change_by_chance: float

    @property
    def is_large(self) -> bool:
        """Whether the new rows are clearly different, and not by chance."""
        return self._is_far or self._is_shifted

    @property
    def _is_far(self) -> bool:
        return self.far_share > max(self.far_by_chance, LARGE_FAR_SHARE)

    @property
    def _is_shifted(self) -> bool:
        return self.share_change > max(self.change_by_chance, LARGE_SHARE_CHANGE)

    def __str__(self) -> str:
        reasons = []
        if self._is_far:
            reasons.append(f"{self.far_share:.0%} of them are farther from the old rows than 99 % of these are")
        if self._is_shifted:
            reasons.append(
                f"the shares of the clusters differ by {self.share_change:.0%} (at most {self.change_by_chance:.0%} by "
                "chance)"
            )
        if reasons:
            return f"the new rows differ from the old ones: {', and '.join(reasons)}; consider a new fit on all rows"
        return f"none beyond chance: distances to neighbours are {self.distance_ratio:.2f} times those of the old rows"


@dataclass(frozen=True, eq=False)
class UpdateResult:
    """What :meth:`ManifoldClustering.update` has changed.

    Attributes
    ----------
    labels : array of shape (m,)
        The clusters of the new rows.
    moved : ndarray of shape (r,)
        The numbers of the old rows whose cluster is another one now.
    moved_from, moved_to : ndarray of shape (r,)
        Their clusters before and after.
    new_clusters : list of int
        The numbers of clusters that did not exist before, which follow those of the old ones.
    is_reorganized : bool
        Whether other communities, with a clearly lower cut, have replaced the clusters, which keep their numbers where
        most of their rows stay together. Otherwise rows have moved one by one.
    drift : Drift
        How different the new rows are.
    n_old : int
        The number of rows before.

    Examples
    --------
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.datasets import two_moons
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = ManifoldClustering(2, random_state=0).fit(X[:300])
    >>> result = model.update(X[300:])
    >>> result.labels.shape, result.new_clusters, result.drift.is_large
    ((100,), [], False)
    """

    labels: Array
    moved: np.ndarray
    moved_from: np.ndarray
    moved_to: np.ndarray
    new_clusters: list[int]
    is_reorganized: bool
    drift: Drift
    n_old: int

    def __str__(self) -> str:
        labels = to_numpy(self.labels)
        sizes = [f"{label} ({int((labels == label).sum())} of the new rows)" for label in self.new_clusters]
        lines = [
            f"{len(labels)} row{'s were' if len(labels) != 1 else ' was'} added to {self.n_old}",
            f"rows that moved to another cluster: {len(self.moved)}{REORGANIZED * self.is_reorganized}",
            f"new clusters: {', '.join(sizes) or 'none'}",
            f"drift: {self.drift}",
        ]
        return "\n".join(lines)
