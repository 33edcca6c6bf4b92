r"""Groups of nodes that thin borders separate, whatever their number, size, density and shape.

1. *Links.* Edges count, not weights: in a graph of nearest neighbours their number hardly depends on the density of the
   rows. Edges far weaker than the strongest one of either end do not count; they lead to outliers.
2. *Cells.* Small groups of nodes, by coarsening the graph (:mod:`.coarsen`).
3. *Merging.* With b_AB the number of links between two groups, and c_A that of the thinnest cut found through A,

       thinness(A, B) = (b_AB + 1/2) / (min(c_A, c_B) + 1/2).

   The two groups with the thickest border are merged, again and again, until every border is thinner than the cuts
   through its two sides would be by chance: until the thinness is below `MAX_THINNESS`, and

       z(A, B) = 2 (√(min(c_A, c_B) + 1/2) - √(b_AB + 1/2)) > `MIN_Z`

   (the root of a Poisson count has variance 1/4). Without groups a border is no thinner than the cut through one of its
   sides: both are the thinnest places of one cloud, ring or line.

The thinnest cut through A is that of a sweep over the distances (in links) from one of its ends, as they are and
smoothed, and the thinnest border among those that merged in A; each side has at least `MIN_SHARE` of the links of A.

Groups that touch, with a thin region but no gap between them, are not separated in this sense.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from ..core.sparse import row_indices, row_maxima
from .affinity import AffinityGraph
from .coarsen import WeightedEdges, coarsen
from .community import COARSE_NODES, MAX_SEARCH_NODES, on_host

MAX_THINNESS, MIN_Z = 0.25, 3.0  # of gaps; settled on drawn situations (benchmarks/quality_count.py)
MIN_SHARE = 0.1  # of the links, on each side of a cut through a group
MIN_RELATIVE_WEIGHT = math.exp(-5)  # of the strongest edge of either end; weaker edges do not count
MAX_CELLS, NODES_PER_CELL = 300, 12
CELL_RESOLUTION = 0.05  # times the number of cells: γ of the moves of nodes between cells
CELL_ROUNDS = 30
SMOOTHING_STEPS = 20
MIN_GROUP_SIZE = 8  # nodes; smaller groups are outliers
MIN_OWN_SHARE = 0.7  # of the edges of a group that stay inside; a group with fewer is the background of others
NEGLIGIBLE_SHARE = 0.03  # of a group; after smaller additions its thinnest cut is not searched again ...
MIN_NODES_TO_NEGLECT = 200  # ... if it has so many nodes


class Split(NamedTuple):
    """The border between two groups."""

    thinness: float
    links: float  # across the border
    cut: float  # links of the thinnest cut through one of the groups

    @property
    def z(self) -> float:
        """How much thinner the border is than the cut, in standard deviations of a count."""
        return 2 * (math.sqrt(self.cut + 0.5) - math.sqrt(self.links + 0.5))

    @property
    def p_value(self) -> float:
        """How often chance makes a border this thin: the upper tail of ``z``."""
        return math.erfc(self.z / math.sqrt(2)) / 2

    @property
    def is_gap(self) -> bool:
        """Whether the border is thinner than chance would make it."""
        return self.links == 0 or (self.thinness < MAX_THINNESS and self.z > MIN_Z)


@dataclass(frozen=True)
class SeparatedGroups:
    """The groups of nodes that gaps separate."""

    labels: np.ndarray  # (n,), -1 for outliers
    n_groups: int
    thickest: Split | None  # the border that is nearest to being none; None if there is no border


def separated_groups(graph: AffinityGraph, rng: np.random.RandomState) -> SeparatedGroups:
    """Find the groups of nodes that thin borders separate.

    A graph of more than `MAX_SEARCH_NODES` nodes is coarsened first; links between supernodes are counted.
    """
    graph = on_host(graph)
    weights = graph.weights
    pattern = with_ones(weights)
    links, nodes = strong_links(weights), None
    if graph.n_nodes > MAX_SEARCH_NODES:
        hierarchy = coarsen(graph, COARSE_NODES, rng)
        nodes, graph = hierarchy.supernodes, hierarchy.coarsest
        links, pattern = _contract(links, nodes), _contract(pattern, nodes)
    merged, thickest = merge_cells(links, find_cells(graph, rng))
    sizes = np.bincount(merged if nodes is None else merged[nodes])
    counted = (sizes >= MIN_GROUP_SIZE) & (_own_shares(pattern, merged, len(sizes)) >= MIN_OWN_SHARE)
    numbers = np.where(counted, np.cumsum(counted) - 1, -1)[merged]
    return SeparatedGroups(numbers if nodes is None else numbers[nodes], int(counted.sum()), thickest)


def with_ones(weights: sp.csr_array) -> sp.csr_array:
    """Return the pattern of a matrix: one where it has an entry."""
    return sp.csr_array((np.ones(weights.nnz), weights.indices, weights.indptr), shape=weights.shape)


def strong_links(weights: sp.csr_array) -> sp.csr_array:
    """Return the pattern of the edges that are not far weaker than the strongest one of either end."""
    strongest, rows = row_maxima(weights), row_indices(weights)
    strong = weights.data >= MIN_RELATIVE_WEIGHT * np.maximum(strongest[rows], strongest[weights.indices])
    kept = (np.ones(int(strong.sum())), (rows[strong], weights.indices[strong]))
    return sp.csr_array(sp.coo_array(kept, shape=weights.shape))


def _contract(links: sp.csr_array, nodes: np.ndarray) -> sp.csr_array:
    """Return the numbers of links between supernodes; those inside are on the diagonal."""
    members = sp.csr_array((np.ones(len(nodes)), (np.arange(len(nodes)), nodes)))
    return sp.csr_array(members.T @ links @ members)


def find_cells(graph: AffinityGraph, rng: np.random.RandomState, nodes_per_cell: int = NODES_PER_CELL) -> np.ndarray:
    """Return the cell of each node: coarse groups, between which nodes moved."""
    n_cells = max(2, min(MAX_CELLS, graph.n_nodes // nodes_per_cell))
    cells = coarsen(graph, n_cells, rng).supernodes.astype(np.int64)
    n_cells = int(cells.max()) + 1
    moved = WeightedEdges.of(graph).move(cells, CELL_RESOLUTION * n_cells, n_cells, rng, max_rounds=CELL_ROUNDS)
    return np.unique(moved.labels, return_inverse=True)[1]


def _own_shares(pattern: sp.csr_array, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the share of the edges of each group that stay inside."""
    rows = labels[row_indices(pattern)]
    inside = rows == labels[pattern.indices]
    total = np.bincount(rows, pattern.data, minlength=n_groups)
    return np.bincount(rows[inside], pattern.data[inside], minlength=n_groups) / np.where(total > 0, total, 1)


def thinnest_cut(links: sp.csr_array) -> float:
    """Return the number of links of the thinnest cut found through a group, of which the links are given."""
    n = links.shape[0]
    degrees = np.maximum(np.asarray(links.sum(axis=1)).ravel(), 1)
    if n < 4:
        return 0.0
    start = int(np.argmax(_distances(links, 0)))
    position = _distances(links, start)
    walk = sp.csr_array(sp.diags_array(1 / degrees) @ links)
    smoothed = position
    for _ in range(SMOOTHING_STEPS):
        smoothed = (smoothed + walk @ smoothed) / 2
    ends = row_indices(links), links.indices
    return min(_sweep(links.data, ends, degrees, order) for order in (position, smoothed))


def _distances(links: sp.csr_array, start: int) -> np.ndarray:
    """Return the number of links on the shortest path to each node; nodes that are not reached are the farthest."""
    distances = dijkstra(links, indices=start, unweighted=True)
    reached = np.isfinite(distances)
    return np.where(reached, distances, distances[reached].max() + 1)


def _sweep(weights: np.ndarray, ends: tuple[np.ndarray, np.ndarray], degrees: np.ndarray, key: np.ndarray) -> float:
    """Return the thinnest of the cuts that divide the nodes, sorted by a key, into first and last ones."""
    order = np.argsort(key, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    first, last = places[ends[0]], places[ends[1]]
    opening = first < last  # each link has two entries
    changes = np.bincount(first[opening], weights[opening], minlength=len(order))
    changes -= np.bincount(last[opening], weights[opening], minlength=len(order))
    cuts, volumes = np.cumsum(changes)[:-1], np.cumsum(degrees[order])
    balanced = (volumes[:-1] >= MIN_SHARE * volumes[-1]) & (volumes[:-1] <= (1 - MIN_SHARE) * volumes[-1])
    return float(cuts[balanced].min() if balanced.any() else cuts.min())


def thinness(links: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return the thinness of borders, 0 where there is no link."""
    return np.where(links > 0, (links + 0.5) / (cuts + 0.5), 0.0)


def merge_cells(links: sp.csr_array, cells: np.ndarray) -> tuple[np.ndarray, Split | None]:
    """Merge cells until gaps separate all groups; return the group of each node, and the thickest border left."""
    k, rows = int(cells.max()) + 1, row_indices(links)
    between = sp.coo_array((links.data, (cells[rows], cells[links.indices])), shape=(k, k)).toarray()
    volumes = between.sum(axis=1)
    np.fill_diagonal(between, 0)
    members = [np.flatnonzero(cells == cell) for cell in range(k)]
    cuts = np.array([thinnest_cut(links[nodes][:, nodes]) for nodes in members])
    thick = thinness(between, np.minimum(cuts[:, None], cuts[None, :]))
    left, thickest = k, None
    while left > 1:
        a, b = np.unravel_index(int(thick.argmax()), thick.shape)
        thickest = Split(float(thick[a, b]), float(between[a, b]), float(min(cuts[a], cuts[b])))
        if thickest.is_gap:
            break
        a, b = (a, b) if volumes[a] >= volumes[b] else (b, a)
        border, added = between[a, b], volumes[b] / (volumes[a] + volumes[b])
        between[a] += between[b]
        between[:, a] += between[:, b]
        between[a, a] = between[b] = between[:, b] = 0
        volumes[a] += volumes[b]
        members[a], members[b] = np.concatenate([members[a], members[b]]), members[b][:0]
        if added >= NEGLIGIBLE_SHARE or len(members[a]) < MIN_NODES_TO_NEGLECT:
            cuts[a] = thinnest_cut(links[members[a]][:, members[a]])
        if added >= MIN_SHARE:
            cuts[a] = min(cuts[a], border)
        thick[b] = thick[:, b] = 0
        thick[a] = thick[:, a] = thinness(between[a], np.minimum(cuts[a], cuts))
        left, thickest = left - 1, None
    labels = np.empty(len(cells), dtype=np.int64)
    for number, nodes in enumerate(group for group in members if len(group)):
        labels[nodes] = number
    return labels, thickest
