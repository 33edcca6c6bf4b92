"""Coarser versions of a graph, on which a search is cheap: groups of nodes become supernodes.

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

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.interrupts import check_interrupt
from ..core.sparse import csr_parts, from_coo, row_indices, row_maxima, scale_rows_columns
from .affinity import AffinityGraph
from .laplacians import power_of_degrees
from .pairs import attractive_part

MAX_SHRINKAGE = 0.95  # the ratio of the numbers of nodes of two levels, above which coarsening stops
SIZE_TOLERANCE = 0.1  # by which a graph may have more nodes than asked for
JITTER = 1e-3  # relative, on the normalised weights: without it equal weights would chain all nodes together


@dataclass(frozen=True)
class Hierarchy:
    """A graph and its coarser versions.

    Attributes
    ----------
    graphs : tuple of AffinityGraph
        The graph itself first, the coarsest last.
    attracting : tuple of AffinityGraph
        The same from the positive weights of the graph alone.
    groups : tuple of arrays
        For every graph but the last, the supernode of each of its nodes: NumPy integers.
    """

    graphs: tuple[AffinityGraph, ...]
    attracting: tuple[AffinityGraph, ...]
    groups: tuple[np.ndarray, ...]

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
    targets, strengths = _strongest_neighbors(graph, degrees, rng)
    groups = _components(targets)
    n_groups = int(groups.max()) + 1
    if n_groups < min_groups:
        order = np.argsort(-strengths, kind="stable")
        groups = _components(_keep_strongest(targets, order, min_groups))
    return groups


def _keep_strongest(targets: np.ndarray, order: np.ndarray, n_groups: int) -> np.ndarray:
    """Keep so many pointers, in the given order, that about ``n_groups`` components remain (bisection)."""
    low, high = 0, len(order)
    while high - low > max(1, n_groups // 100):
        middle = (low + high) // 2
        if int(_components(_first_pointers(targets, order, middle)).max()) + 1 >= n_groups:
            low = middle
        else:
            high = middle
    return _first_pointers(targets, order, low)


def _first_pointers(targets: np.ndarray, order: np.ndarray, count: int) -> np.ndarray:
    kept = np.arange(len(targets), dtype=targets.dtype)
    kept[order[:count]] = targets[order[:count]]
    return kept


def _components(targets: np.ndarray) -> np.ndarray:
    """Return the connected components of the graph in which every node has an edge to its target."""
    n = len(targets)
    pointers = sp.csr_array((np.ones(n, dtype=np.int8), targets, np.arange(n + 1, dtype=np.int32)), shape=(n, n))
    return connected_components(pointers, directed=False)[1]


def _strongest_neighbors(
    graph: AffinityGraph, degrees: Array, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return the j with the largest w_ij / √(d_i d_j) for every node i, or i without neighbours, and that weight."""
    n = graph.n_nodes
    inverse_roots = power_of_degrees(degrees, -0.5)
    jitter = asarray_like(1 - JITTER * rng.random_sample(n), inverse_roots, dtype=inverse_roots.dtype)
    scaled = scale_rows_columns(graph.weights, right=inverse_roots * jitter)  # √d_i does not matter within a row
    values, columns, _ = csr_parts(scaled)
    xp, rows, maxima = namespace(values), row_indices(scaled), row_maxima(scaled)
    hits = xp.nonzero((values > 0) & (values == xp.take(maxima, rows)))[0]
    targets = np.arange(n, dtype=np.int32)
    targets[to_numpy(xp.take(rows, hits))] = to_numpy(xp.take(columns, hits))
    return targets, to_numpy(maxima * inverse_roots)


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
