r"""Coarser versions of a graph, on which a search is cheap: groups of nodes become supernodes.

Every node points to the neighbour with the largest normalised weight w_ij / √(d_i d_j), and the connected components of
these pointers become the nodes of the next graph. With P the indicator matrix of the groups,

    W' = P'WP,      the diagonal of W' as self-loops,      d' = P'd,

so the degrees, the volumes, the modularity at any resolution and the cuts of a partition of the supernodes are those of
the same partition of the nodes. Groups have about three nodes on average.

Negative weights repel: they are added to the positive ones between two supernodes, but do not count in degrees and
volumes. So the positive weights are contracted on their own as well, and every level has the degrees P'd of these. A
supernode cannot be divided on its own level, so nodes that repel each other, as cannot-linked rows do, must not be
grouped: a group that contains both ends of a negative weight of the graph is dissolved, on every level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .._records import CommunityResult
from ..core.arrays import Array, asarray_like, eps, is_numpy, namespace, one_hot, to_numpy
from ..core.fitting import check_interrupt
from ..core.sparse import csr_parts, from_coo, row_indices, row_maxima, row_sums, scale_rows_columns, sum_entries
from .affinity import AffinityGraph
from .constraints import attractive_part
from .operators import power_of_degrees

MAX_SHRINKAGE = 0.95  # the ratio of the numbers of nodes of two levels, above which coarsening stops
SIZE_TOLERANCE = 0.1  # by which a graph may have more nodes than asked for
JITTER = 1e-3  # relative, on the normalised weights: without it equal weights would chain all nodes together


@dataclass(frozen=True)
class Hierarchy:
    """A graph and its coarser versions, the coarsest last."""

    graphs: tuple[AffinityGraph, ...]
    attracting: tuple[AffinityGraph, ...]  # the same from the positive weights of the graph alone
    groups: tuple[np.ndarray, ...]  # for every graph but the last, the supernode of each of its nodes

    @property
    def coarsest(self) -> AffinityGraph:
        """The graph with the fewest nodes."""
        return self.graphs[-1]

    @cached_property
    def supernodes(self) -> np.ndarray:
        """The node of the coarsest graph to which each node of the first one belongs."""
        nodes = np.arange(self.coarsest.n_nodes)
        for groups in reversed(self.groups):
            nodes = nodes[groups]
        return nodes


def coarsen(hierarchy: Hierarchy | AffinityGraph, max_nodes: int, random_state: np.random.RandomState) -> Hierarchy:
    """Coarsen a graph, or a hierarchy further, until about ``max_nodes`` nodes are left or it hardly shrinks."""
    if isinstance(hierarchy, AffinityGraph):
        hierarchy = Hierarchy((hierarchy,), (attractive_part(hierarchy),), ())
    graphs, attracting, levels = list(hierarchy.graphs), list(hierarchy.attracting), list(hierarchy.groups)
    repelling = hierarchy.supernodes[repelling_pairs(graphs[0])]
    while graphs[-1].n_nodes > (1 + SIZE_TOLERANCE) * max_nodes:
        check_interrupt()
        degrees = attracting[-1].degrees
        groups = separate(group_by_strongest_neighbor(graphs[-1], degrees, max_nodes, random_state), repelling)
        if int(groups.max()) + 1 > MAX_SHRINKAGE * graphs[-1].n_nodes:
            break
        graphs.append(contract(graphs[-1], groups))
        attracting.append(contract(attracting[-1], groups) if len(repelling) else graphs[-1])
        levels.append(groups)
        repelling = groups[repelling]
    return Hierarchy(tuple(graphs), tuple(attracting), tuple(levels))


def group_by_strongest_neighbor(
    graph: AffinityGraph, degrees: Array, min_groups: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return the group of each node: the connected components of the pointers to the strongest neighbours.

    If these are fewer than ``min_groups``, only the strongest pointers are used, as many as give that number.
    """
    n = graph.n_nodes
    inverse_roots = power_of_degrees(degrees, -0.5)
    jitter = asarray_like(1 - JITTER * rng.random_sample(n), inverse_roots, dtype=inverse_roots.dtype)
    scaled = scale_rows_columns(graph.weights, right=inverse_roots * jitter)  # √d_i does not matter within a row
    values, columns, _ = csr_parts(scaled)
    xp, rows, maxima = namespace(values), row_indices(scaled), row_maxima(scaled)
    hits = xp.nonzero((values > 0) & (values == xp.take(maxima, rows)))[0]
    targets = np.arange(n, dtype=np.int32)  # a node without neighbours points to itself
    targets[to_numpy(xp.take(rows, hits))] = to_numpy(xp.take(columns, hits))
    groups = _components(targets)
    if int(groups.max()) + 1 >= min_groups:
        return groups
    order = np.argsort(-to_numpy(maxima * inverse_roots), kind="stable")  # the strongest first

    def groups_of_first(count: int) -> np.ndarray:
        kept = np.arange(len(targets), dtype=targets.dtype)
        kept[order[:count]] = targets[order[:count]]
        return _components(kept)

    low, high = 0, len(order)  # bisection of the number of pointers
    while high - low > max(1, min_groups // 100):
        middle = (low + high) // 2
        if int(groups_of_first(middle).max()) + 1 >= min_groups:
            low = middle
        else:
            high = middle
    return groups_of_first(low)


def _components(targets: np.ndarray) -> np.ndarray:
    """Return the connected components of the graph in which every node has an edge to its target."""
    n = len(targets)
    pointers = sp.csr_array((np.ones(n, dtype=np.int8), targets, np.arange(n + 1, dtype=np.int32)), shape=(n, n))
    return connected_components(pointers, directed=False)[1]


def repelling_pairs(graph: AffinityGraph) -> np.ndarray:
    """Return the ends of the negative weights, shape (m, 2)."""
    if not graph.has_negative_weights:
        return np.empty((0, 2), dtype=np.int64)
    data, columns, _ = csr_parts(graph.weights)
    negative = namespace(data).nonzero(data < 0)[0]
    ends = (to_numpy(namespace(data).take(part, negative)) for part in (row_indices(graph.weights), columns))
    return np.stack(list(ends), axis=1).astype(np.int64)


def separate(groups: np.ndarray, repelling: np.ndarray) -> np.ndarray:
    """Give every node of a group that contains both ends of a repelling pair a group of its own."""
    ends = groups[repelling]
    single = np.isin(groups, ends[ends[:, 0] == ends[:, 1], 0])
    separated = np.where(single, groups.max() + np.cumsum(single), groups)
    return np.unique(separated, return_inverse=True)[1] if single.any() else groups


def contract(graph: AffinityGraph, groups: np.ndarray) -> AffinityGraph:
    """Contract each group of nodes to one: weights between groups are summed, those inside become self-loops."""
    data, columns, _ = csr_parts(graph.weights)
    xp, n_groups = namespace(data), int(groups.max()) + 1
    placed = asarray_like(groups, columns, dtype=columns.dtype)
    rows, columns = xp.take(placed, row_indices(graph.weights)), xp.take(placed, columns)
    between, inside = xp.nonzero(rows != columns)[0], xp.nonzero(rows == columns)[0]
    entries = (xp.take(rows, between), xp.take(columns, between), xp.take(data, between))
    weights = from_coo(*entries, (n_groups, n_groups))
    loops = np.bincount(to_numpy(xp.take(rows, inside)), to_numpy(xp.take(data, inside)), minlength=n_groups)
    if graph.loops is not None:
        loops = loops + np.bincount(groups, to_numpy(graph.loops), minlength=n_groups)
    return graph._with_weights(weights, loops=asarray_like(np.maximum(loops, 0), data, dtype=data.dtype))


# -------------------------------------------------------------------------------------- moves between communities
#
#     Q(labels; γ) = (1/2m) Σ_ij [w_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i
#
# For every node on a boundary and every community A, the gain w(i, A) - γ d_i vol(A \ i) / 2m is computed; of the nodes
# that would gain, a random half moves at once (if all did, neighbours would swap places back and forth). A node whose
# neighbours all are in its own community does not move, unless some repel it. Most nodes are such ones, and a round
# takes a sum over the edges that leave a community.
#
# Negative weights repel: they count in the gains, but not in the volumes. This is how cannot-links influence the
# search.

MIN_GAIN = 1e-6  # of modularity that is worth another round: one edge in a million
MAX_MOVE_ROUNDS = 100  # rounds of moves
MAX_ROUNDS_WITHOUT_GAIN = 5  # rounds of moves after which the moves stop


class BoundaryGains(NamedTuple):
    """The nodes on a boundary and what they gain."""

    nodes: Array  # (b,), those with a neighbour in another community or a negative weight, ascending
    gains: Array  # (k, b), from each community the gain of each, in units of Q · m
    current: Array  # (b,), the gain of each from its own community
    crossing: float  # the weight of the edges that leave a community, both directions


@dataclass(frozen=True)
class WeightedEdges:
    """The edges of a graph, both directions of each, sorted by rows, and what the volumes need; of one library."""

    rows: Array
    columns: Array
    weights: Array
    degrees: Array  # (n,), sums of the positive weights and loops
    strengths: Array  # (n,), sums of all weights
    total: float  # 2m, the sum of the degrees; 1 without edges, so that quotients are zero
    inside: float  # the sum of all weights and loops: the weight inside a single community of all nodes
    has_negative: bool  # whether some weights repel

    @classmethod
    def of(cls, graph: AffinityGraph, attracting: AffinityGraph | None = None) -> WeightedEdges:
        """Return the edges of a graph, in the array library of its weights.

        The degrees are those of ``attracting``, by default the graph without its negative weights.
        """
        data, columns, _ = csr_parts(graph.weights)
        attracting = attractive_part(graph) if attracting is None else attracting
        degrees, strengths = attracting.degrees, row_sums(graph.weights)
        if not is_numpy(data):  # degrees are on the host in libraries without sparse matrices
            degrees, strengths = (asarray_like(to_numpy(part), data, dtype=data.dtype) for part in (degrees, strengths))
        loops = 0.0 if graph.loops is None else to_numpy(graph.loops).sum(dtype=np.float64)
        total, inside = (float(to_numpy(values).sum(dtype=np.float64)) for values in (degrees, strengths))
        rows, repels = row_indices(graph.weights), graph.has_negative_weights
        return cls(rows, columns, data, degrees, strengths, total or 1.0, inside + float(loops), repels)

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
        targets = xp.take(labels, self.columns)
        leaving = xp.take(labels, self.rows) != targets
        listed = xp.nonzero(leaving)[0]
        weights = xp.take(self.weights, listed)
        crossing = float(xp.sum(weights, dtype=xp.float64))
        if self.has_negative:
            listed = xp.nonzero(leaving | (self.weights < 0))[0]
            weights = xp.take(self.weights, listed)
        rows, targets = xp.take(self.rows, listed), xp.take(targets, listed)
        first = xp.concat([xp.ones_like(rows[:1], dtype=xp.bool), rows[1:] != rows[:-1]])
        nodes, position = xp.nonzero(first)[0], xp.cumulative_sum(xp.astype(first, xp.int64)) - 1
        nodes = xp.take(rows, nodes)
        weight_to = sum_entries(targets, position, weights, (k, int(nodes.shape[0])))

        degrees, own = xp.take(self.degrees, nodes), xp.take(labels, nodes)
        own_weight = xp.take(self.strengths, nodes) - xp.sum(weight_to, axis=0)
        if self.has_negative:  # otherwise the listed edges all leave the own community
            own_weight = own_weight + xp.take_along_axis(weight_to, own[None, :], axis=0)[0, :]
        expected = (gamma / self.total) * degrees
        gains = weight_to - volumes[:, None] * expected[None, :]
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
        would_gain = xp.max(gains, axis=0) > current + rounding
        if not bool(xp.any(would_gain)):
            return labels
        half = asarray_like(rng.random_sample(nodes.shape[0]) < 0.5, self.degrees)
        moving = xp.nonzero(would_gain & half)[0]
        moved = xp.asarray(labels, copy=True)
        moved[xp.take(nodes, moving)] = xp.argmax(xp.take(gains, moving, axis=1), axis=0)
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
