"""What an update of a model with new rows has changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.backend import Array, to_numpy
from .drift import Drift

REORGANIZED = ", since the graph of all rows has clusters with a clearly lower cut"


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
