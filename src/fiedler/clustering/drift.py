"""Drift: how different new rows are from those of a model, measured without labels and compared with chance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from ..graph.copies import CopiedRows
from ..graph.growth import GrownGraph

CHANCE, N_DRAWS = 0.99, 2000  # probability of what is by chance at most, and samples from which it is estimated
FAR_PERCENTILE = 99  # of the old rows' neighbour distances, beyond which a row is far
LARGE_FAR_SHARE = 0.05  # of the new rows, instead of 1 %
LARGE_SHARE_CHANGE = 0.1


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


def measure_drift(grown: GrownGraph, copies: CopiedRows, n_rows: int, labels: np.ndarray, n_clusters: int) -> Drift:
    """Compare new rows with old ones by their distances to different old rows, and by their clusters.

    Parameters
    ----------
    grown : GrownGraph
    copies : CopiedRows
        Of which nodes the rows are copies.
    n_rows : int
        The number of old rows, which come first.
    labels : ndarray of shape (n_nodes,)
        Their clusters, 0, 1, ...
    n_clusters : int
    """
    by_node = [lists.distances.mean(axis=1, dtype=np.float64) for lists in (grown.of_old, grown.to_old)]
    old, new = np.split(np.concatenate(by_node)[copies.nodes], [n_rows])
    old_labels, new_labels = np.split(labels[copies.nodes], [n_rows])
    typical = float(np.median(old))
    ratio = float(np.median(new)) / typical if typical > 0 else (1.0 if np.median(new) == 0 else math.inf)
    p, q = (np.bincount(part, minlength=n_clusters) / len(part) for part in (old_labels, new_labels))
    return Drift(
        distance_ratio=ratio,
        far_share=float(np.mean(new > np.percentile(old, FAR_PERCENTILE))),
        share_change=0.5 * float(np.abs(p - q).sum()),
        change_by_chance=change_by_chance(p, len(old_labels), len(new_labels)),
        far_by_chance=float(binom.ppf(CHANCE, len(new), 1 - FAR_PERCENTILE / 100)) / len(new),
    )


def change_by_chance(shares: np.ndarray, n_old: int, n_new: int) -> float:
    """Return the total variation of shares that 99 % of pairs of samples from the same clusters do not exceed.

    It is found by drawing samples of both sizes from the clusters, always the same ones.
    """
    rng = np.random.RandomState(0)
    old, new = (rng.multinomial(size, shares, size=N_DRAWS) / size for size in (n_old, n_new))
    return float(np.quantile(0.5 * np.abs(old - new).sum(axis=1), CHANCE))
