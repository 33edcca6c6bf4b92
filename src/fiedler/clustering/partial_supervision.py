"""What is known before clustering: labels of some rows and pairs, and how far a partition agrees with them."""

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

MAX_PAIRS_FROM_LABELS = 20_000  # of either kind
ALPHA = 0.99  # of label spreading, as in LLGC


@dataclass(frozen=True)
class PartialSupervision:
    """Labels of some rows and pairs.

    Attributes
    ----------
    labels : array of shape (n,) or None
        Clusters 0, 1, ..., and -1 where unknown; None if no label is known.
    given : PairwiseConstraints or None
        The pairs as the user gave them.
    pairs : PairwiseConstraints or None
        These pairs and those that the labels imply, for the graphs.
    """

    labels: np.ndarray | None
    given: PairwiseConstraints | None
    pairs: PairwiseConstraints | None

    @classmethod
    def from_fit_arguments(cls, y: Any, given: PairwiseConstraints | None, n_samples: int) -> PartialSupervision:
        """Collect what the arguments ``y`` and ``constraints`` of ``fit`` say."""
        labels = check_partial_labels(y, n_samples)
        if labels is None:
            return cls(None, given, given)
        if given is not None and given.hard:
            labels = spread_over_groups(labels, given.groups)
        pairs = PairwiseConstraints.from_labels(labels, max_pairs=MAX_PAIRS_FROM_LABELS, random_state=0)
        return cls(labels, given, pairs if given is None else _union(pairs, given))

    @property
    def n_classes(self) -> int:
        """The number of clusters that the labels name."""
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @property
    def n_known(self) -> int:
        """The number of known labels and given pairs."""
        n_labels = 0 if self.labels is None else int((self.labels != UNKNOWN).sum())
        return n_labels + (0 if self.given is None else self.given.n_pairs)

    def check_n_clusters(self, n_clusters: int) -> None:
        """Raise an error if the labels name more than ``n_clusters`` clusters."""
        if self.labels is not None:
            check_partial_labels(self.labels, len(self.labels), n_clusters)

    def agreement(self, labels: np.ndarray) -> float:
        """Return the fraction of known labels, under the best matching of clusters, and of pairs that are satisfied."""
        satisfied = 0.0 if self.given is None else self.given.n_pairs - self.given.violations(labels).n_pairs
        if self.labels is not None:
            counts = self._contingency(labels, max(int(labels.max()) + 1, self.n_classes))
            satisfied += counts[linear_sum_assignment(counts, maximize=True)].sum()
        return satisfied / self.n_known

    def numbering(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return the number of each cluster of a partition that matches the known labels as well as possible."""
        if self.labels is None:
            return np.arange(n_clusters)
        classes, clusters = linear_sum_assignment(self._contingency(labels, n_clusters), maximize=True)
        return classes[np.argsort(clusters)]

    def clamp(self, memberships: Array) -> Array:
        """Replace the memberships of labelled rows by their labels."""
        if self.labels is None:
            return memberships
        xp = namespace(memberships)
        known = one_hot(asarray_like(self.labels, memberships), memberships.shape[1], memberships)
        return xp.where(xp.sum(known, axis=1)[:, None] > 0, known, memberships)

    def spread(self, graph: AffinityGraph, n_clusters: int) -> list[np.ndarray]:
        """Spread the labels over the graph, as a start for a search; an empty list without labels."""
        if self.labels is None:
            return []
        reference = csr_parts(graph.weights)[0]
        Y = one_hot(asarray_like(self.labels, reference), n_clusters, reference)
        return [to_numpy(spread_labels(Y, graph, ALPHA, tol=1e-6, max_iter=500).solution).argmax(axis=1)]

    def _contingency(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Count the labelled rows of every class (rows) in every cluster (columns)."""
        assert self.labels is not None
        known = self.labels != UNKNOWN
        counts = np.zeros((n_clusters, n_clusters))
        np.add.at(counts, (self.labels[known], labels[known]), 1)
        return counts


def _union(implied: PairwiseConstraints, given: PairwiseConstraints) -> PairwiseConstraints:
    """Join two sets of pairs, with the strength of the given ones."""
    must_link = np.concatenate([implied.must_link, given.must_link])
    cannot_link = np.concatenate([implied.cannot_link, given.cannot_link])
    return PairwiseConstraints(must_link, cannot_link, given.n_samples, strength=given.strength, hard=given.hard)
