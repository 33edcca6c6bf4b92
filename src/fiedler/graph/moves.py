r"""Moves of nodes between communities, on every level of a hierarchy and in the array library of its graph.

    Q(labels; γ) = (1/2m) Σ_ij [w_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i

For every node on a boundary and every community A, the gain w(i, A) - γ d_i vol(A \ i) / 2m is computed; of the nodes
that would gain, a random half moves at once (if all did, neighbours would swap places back and forth). A node whose
neighbours all are in its own community does not move, unless some repel it. Most nodes are such ones, and a round takes
a sum over the edges that leave a community.

Negative weights repel: they count in the gains, but not in the volumes. This is how cannot-links influence the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._records import CommunityResult
from ..core.backend import Array, asarray_like, eps, is_numpy, namespace, one_hot, to_numpy
from ..core.interrupts import check_interrupt
from ..core.sparse import csr_parts, row_indices, row_sums, sum_entries
from .affinity import AffinityGraph
from .pairs import attractive_part

MIN_GAIN = 1e-6  # of modularity that is worth another round: one edge in a million
MAX_MOVE_ROUNDS = 100  # rounds of moves
MAX_ROUNDS_WITHOUT_GAIN = 5  # rounds of moves after which the moves stop


class BoundaryGains(NamedTuple):
    """The nodes on a boundary and what they gain.

    Attributes
    ----------
    nodes : array of shape (b,)
        Nodes with a neighbour in another community or a negative weight, ascending.
    gains : array of shape (b, k)
        The gain of each from each community, in units of Q · m.
    current : array of shape (b,)
        The gain of each from its own community.
    crossing : float
        The weight of the edges that leave a community, both directions.
    """

    nodes: Array
    gains: Array
    current: Array
    crossing: float


@dataclass(frozen=True)
class WeightedEdges:
    """The edges of a graph, both directions of each, and what the volumes need; arrays of one library.

    Attributes
    ----------
    rows, columns, weights : array of shape (n_entries,)
        Sorted by rows.
    degrees, strengths : array of shape (n,)
        Sums of the positive weights and loops, and of all weights.
    total : float
        2m, the sum of the degrees.
    inside : float
        The sum of all weights and loops: the weight inside a single community of all nodes.
    has_negative : bool
        Whether some weights repel.
    """

    rows: Array
    columns: Array
    weights: Array
    degrees: Array
    strengths: Array
    total: float
    inside: float
    has_negative: bool

    @classmethod
    def of(cls, graph: AffinityGraph, attracting: AffinityGraph | None = None) -> WeightedEdges:
        """Return the edges of a graph, in the array library of its weights.

        The degrees are those of ``attracting``, by default the graph without its negative weights.
        """
        data, columns, _ = csr_parts(graph.weights)
        attracting = attractive_part(graph) if attracting is None else attracting
        degrees, strengths = (_like(values, data) for values in (attracting.degrees, row_sums(graph.weights)))
        loops = 0.0 if graph.loops is None else to_numpy(graph.loops).sum(dtype=np.float64)
        total, inside = (float(to_numpy(values).sum(dtype=np.float64)) for values in (degrees, strengths))
        rows, repels = row_indices(graph.weights), graph.has_negative_weights
        return cls(rows, columns, data, degrees, strengths, total, inside + float(loops), repels)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return int(self.degrees.shape[0])

    def as_labels(self, labels: Any) -> Array:
        """Return labels as integers in the array library of the weights."""
        return asarray_like(to_numpy(labels).astype(np.int64), self.degrees, dtype=namespace(self.degrees).int64)

    def volumes(self, labels: Array, k: int) -> Array:
        """Return the sum of the degrees in each community."""
        if is_numpy(self.degrees):
            return np.bincount(labels, self.degrees, minlength=k)
        return one_hot(labels, k, self.degrees).T @ self.degrees

    def boundary_gains(self, labels: Array, volumes: Array, gamma: float) -> BoundaryGains:
        """Compute what the nodes on a boundary gain from each community, of which the volumes are given."""
        xp, k = namespace(self.weights), int(volumes.shape[0])
        leaving = xp.take(labels, self.rows) != xp.take(labels, self.columns)
        crossing = float(xp.sum(self.weights[leaving], dtype=xp.float64))
        listed = xp.nonzero(leaving | (self.weights < 0) if self.has_negative else leaving)[0]
        rows, targets = xp.take(self.rows, listed), xp.take(labels, xp.take(self.columns, listed))
        first = xp.concat([xp.ones_like(rows[:1], dtype=xp.bool), rows[1:] != rows[:-1]])
        nodes, position = xp.nonzero(first)[0], xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
        nodes = xp.take(rows, nodes)
        weight_to = sum_entries(position, targets, xp.take(self.weights, listed), (int(nodes.shape[0]), k))

        degrees, own = xp.take(self.degrees, nodes), xp.take(labels, nodes)
        own_weight = xp.take(self.strengths, nodes) - xp.sum(weight_to, axis=1) + _own_column(weight_to, own)
        expected = (gamma / self.total) * degrees
        gains = weight_to - expected[:, None] * volumes[None, :]
        current = own_weight - expected * (xp.take(volumes, own) - degrees)
        return BoundaryGains(nodes, gains, current, crossing)

    def modularity(self, labels: Array, k: int, gamma: float) -> float:
        """Return Q of a partition."""
        volumes = self.volumes(labels, k)
        return self._modularity(self.boundary_gains(labels, volumes, gamma).crossing, volumes, gamma)

    def _modularity(self, crossing: float, volumes: Array, gamma: float) -> float:
        """Return Q of a partition from the weight between its communities and their volumes."""
        squares = float(np.sum(to_numpy(volumes).astype(np.float64) ** 2))
        return (self.inside - crossing) / self.total - gamma * squares / self.total**2

    def take_step(self, labels: Array, found: BoundaryGains, rounding: float, rng: np.random.RandomState) -> Array:
        """Move a random half of the nodes that gain more than a rounding error; return ``labels`` itself if none do."""
        xp, (nodes, gains, current, _) = namespace(self.degrees), found
        would_gain = xp.max(gains, axis=1) > current + rounding if nodes.shape[0] else nodes
        if not nodes.shape[0] or not bool(xp.any(would_gain)):
            return labels
        half = asarray_like(rng.random_sample(nodes.shape[0]) < 0.5, self.degrees)
        moving = xp.nonzero(would_gain & half)[0]
        moved = xp.asarray(labels, copy=True)
        moved[xp.take(nodes, moving)] = xp.argmax(xp.take(gains, moving, axis=0), axis=1)
        return moved

    def move(
        self,
        labels: Array,
        gamma: float,
        k: int,
        rng: np.random.RandomState,
        max_rounds: int = MAX_MOVE_ROUNDS,
    ) -> CommunityResult:
        """Move nodes among ``k`` communities in rounds, until none would gain; return the best partition seen."""
        rounding = 16 * eps(self.degrees) * self.total / self.n
        best, best_labels, n_without_gain = -np.inf, labels, 0
        for _ in range(max_rounds):
            check_interrupt()
            volumes = self.volumes(labels, k)
            found = self.boundary_gains(labels, volumes, gamma)
            reached = self._modularity(found.crossing, volumes, gamma)
            if reached > best + MIN_GAIN:
                best, best_labels, n_without_gain = reached, labels, 0
            else:
                n_without_gain += 1
            if n_without_gain >= MAX_ROUNDS_WITHOUT_GAIN:
                break
            moved = self.take_step(labels, found, rounding, rng)
            if moved is labels:
                break
            labels = moved
        n_communities = int(np.count_nonzero(np.bincount(to_numpy(best_labels), minlength=k)))
        return CommunityResult(best_labels, best, gamma, n_communities)


def _own_column(values: Array, labels: Array) -> Array:
    """Return the entry of each row in the column of its label."""
    return namespace(values).take_along_axis(values, labels[:, None], axis=1)[:, 0]


def _like(values: Array, reference: Array) -> Array:
    """Return values in the array library of ``reference``; degrees may be on the host for lack of sparse matrices."""
    if is_numpy(values) == is_numpy(reference):
        return values
    return asarray_like(to_numpy(values), reference, dtype=reference.dtype)
