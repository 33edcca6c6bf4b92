"""What a person has said beforehand, labels of some rows and pairs, and how far a partition agrees with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..core.backend import Array, asarray_like, namespace, one_hot, to_numpy
from ..core.sparse import csr_parts
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints
from ..graph.labels import UNKNOWN, check_partial_labels, spread_over_groups
from ..supervision.spreading import spread_labels

MOST_PAIRS = 20_000  # of either kind that labels are turned into
ALPHA = 0.99  # of the spreading, as LLGC has it


@dataclass(frozen=True)
class PartialSupervision:
    """Labels and pairs.

    Attributes
    ----------
    labels : array of shape (n,) or None
        Clusters 0, 1, ..., and -1 where unknown; None where nothing is known.
    given : PairwiseConstraints or None
        The pairs as the user gave them.
    pairs : PairwiseConstraints or None
        These and the pairs that the labels make, for the graphs.
    """

    labels: np.ndarray | None
    given: PairwiseConstraints | None
    pairs: PairwiseConstraints | None

    @classmethod
    def of(cls, y: Any, given: PairwiseConstraints | None, n: int) -> PartialSupervision:
        """What ``y`` and the pairs say of ``n`` rows."""
        labels = check_partial_labels(y, n)
        if labels is None:
            return cls(None, given, given)
        if given is not None and given.hard:
            labels = spread_over_groups(labels, given.groups)
        pairs = PairwiseConstraints.from_labels(labels, max_pairs=MOST_PAIRS, random_state=0)
        return cls(labels, given, pairs if given is None else _both(pairs, given))

    @property
    def n_classes(self) -> int:
        """The number of clusters that the labels name."""
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @property
    def n_known(self) -> int:
        """Labels and given pairs."""
        n_labels = 0 if self.labels is None else int((self.labels != UNKNOWN).sum())
        return n_labels + (0 if self.given is None else self.given.n_pairs)

    def check(self, k: int) -> None:
        """Refuse labels beyond the number of clusters."""
        if self.labels is not None:
            check_partial_labels(self.labels, len(self.labels), k)

    def agreement(self, labels: np.ndarray) -> float:
        """The share of the known labels, under the best numbering of the clusters, and pairs that a partition meets."""
        right = 0.0 if self.given is None else self.given.n_pairs - self.given.violations(labels).n_pairs
        if self.labels is not None:
            together = self._together(labels, max(int(labels.max()) + 1, self.n_classes))
            right += together[linear_sum_assignment(together, maximize=True)].sum()
        return right / self.n_known

    def named(self, labels: np.ndarray, k: int) -> np.ndarray:
        """The partition with its clusters numbered as the known rows are, as far as can be."""
        if self.labels is None:
            return labels
        names, clusters = linear_sum_assignment(self._together(labels, k), maximize=True)
        return names[np.argsort(clusters)][labels]

    def clamped(self, memberships: Array) -> Array:
        """Memberships with the known rows put right."""
        if self.labels is None:
            return memberships
        xp = namespace(memberships)
        own = one_hot(asarray_like(self.labels, memberships), memberships.shape[1], memberships)
        return xp.where(xp.sum(own, axis=1)[:, None] > 0, own, memberships)

    def spread(self, graph: AffinityGraph, k: int) -> list[np.ndarray]:
        """The labels carried over the graph, as a start for the search; none where no label is known."""
        if self.labels is None:
            return []
        home = csr_parts(graph.weights)[0]
        Y = one_hot(asarray_like(self.labels, home), k, home)
        return [to_numpy(spread_labels(Y, graph, ALPHA, tol=1e-6, max_iter=500).solution).argmax(axis=1)]

    def _together(self, labels: np.ndarray, k: int) -> np.ndarray:
        """How many known rows of each name (rows) each cluster (columns) holds, (k, k)."""
        assert self.labels is not None
        known = self.labels != UNKNOWN
        counts = np.zeros((k, k))
        np.add.at(counts, (self.labels[known], labels[known]), 1)
        return counts


def _both(one: PairwiseConstraints, other: PairwiseConstraints) -> PairwiseConstraints:
    """The pairs of both, meant as the second are."""
    must, cannot = (np.concatenate([getattr(one, kind), getattr(other, kind)]) for kind in ("must_link", "cannot_link"))
    return PairwiseConstraints(must, cannot, other.n_samples, strength=other.strength, hard=other.hard)
