r"""Partitions of one graph into many numbers of clusters, quickly: to compare the numbers, not to keep the partitions.

Up to four partitions are made for each number K:

1. two from dendrograms of the cells of the graph (:mod:`.borders`), in which at each step those two groups are merged
   for which

       e_ij - γ v_i v_j   (modularity)      or      e_ij / (v_i v_j)   (average weight)

   is largest; e_ij is the weight between them and v_i their volume, as shares of all. The first makes groups of about
   equal volume, the second also small ones and long ones. All numbers of clusters are cuts of one dendrogram, improved
   by moves of whole cells;
2. unless K is large, one by k-means on the directions of K eigenvectors, which finds long and curved groups;
3. two by Genie's linkage (:mod:`.tree`) on the spanning tree of the heaviest edges, which finds groups of any shape
   and density with thin borders; small groups are merged first where sizes are too unequal.

Nodes on a boundary move in the first three, of which the one of the lowest normalised cut is returned; so are the
linkages and the spectral one: what is found again in subsets by one method need not be by another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.arrays import first_best, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.sparse import row_indices, sum_entries, to_scipy
from .affinity import AffinityGraph
from .borders import find_cells
from .coarsen import WeightedEdges
from .community import MIN_RELATIVE_VOLUME, RESOLUTION, _cluster_directions, _move_cells, on_host
from .cuts import sum_of_cut_ratios
from .tree import MergeTree, cut_tree, genie_merges, minimum_tree

NODES_PER_CELL = 4  # up to as many cells as `find_cells` makes
MAX_SPECTRAL, MAX_SPECTRAL_WORK = 20, 40_000  # clusters, and clusters times nodes, up to one of which k-means is used
MOVE_ROUNDS = 6  # of nodes
MAX_MOVE_RESOLUTION = 4.0  # γ of these moves, which is raised while clusters become empty
GINI_THRESHOLDS = (0.1, 0.3)  # of the inequality of sizes above which Genie's linkage merges the smallest group
MIN_RELATIVE_WEIGHT = 1e-300  # before the logarithm
EIGENVECTOR_TOL = 1e-3


def partitions(graph: AffinityGraph, numbers: Sequence[int], rng: np.random.RandomState) -> list[list[np.ndarray]]:
    """Return the labels of up to four partitions for each number of clusters; the numbers ascend."""
    graph = on_host(graph)
    edges, cells = WeightedEdges.of(graph), find_cells(graph, rng, NODES_PER_CELL)
    k = int(cells.max()) + 1
    weights = sum_entries(cells[edges.rows], cells[edges.columns], edges.weights, (k, k)) / edges.total
    volumes = np.bincount(cells, edges.degrees, minlength=k) / edges.total
    merged = [_cut_dendrogram(weights, volumes, numbers, is_average) for is_average in (False, True)]
    most = max(MAX_SPECTRAL, MAX_SPECTRAL_WORK // graph.n_nodes)
    n_vectors = max((number for number in numbers if number <= most), default=0)
    if n_vectors:
        n_vectors = min(graph.n_nodes - 1, n_vectors)
        pairs = smallest_eigenpairs(graph, n_vectors, kind="random_walk", tol=EIGENVECTOR_TOL, random_state=rng)
        vectors = to_numpy(pairs.vectors)
    found, linkages = [], _linkages(graph)
    for i, number in enumerate(numbers):
        starts = [part[i][cells] for part in merged]
        if number <= n_vectors:
            starts.append(_cluster_directions(vectors[:, :number], number, 1, rng))
        moved = [_move_nodes(edges, start.astype(np.int64), number, rng) for start in starts]
        best = first_best(moved, lambda labels: _cut_without_tails(edges, labels, number), lowest=True)  # noqa: B023
        trees = [cut_tree(tree, number) for tree in linkages]
        found.append([best, *trees, *(one for one in moved[2:] if one is not best)])
    return found


def _linkages(graph: AffinityGraph) -> list[MergeTree]:
    """Return the hierarchies of Genie's linkage on the spanning tree of the heaviest edges.

    Components of the graph are joined by edges of infinite length.
    """
    weights = to_scipy(graph.weights)
    rows = row_indices(weights)
    upper = rows < weights.indices
    lengths = edge_lengths(weights.data[upper])
    first = np.unique(graph.components()[1], return_index=True)[1]
    ends = np.concatenate(
        [np.stack([rows[upper], weights.indices[upper]], axis=1), np.stack([first[:-1], first[1:]], axis=1)]
    ).astype(np.int64)
    lengths = np.concatenate([lengths, np.full(len(first) - 1, np.inf)])
    tree = minimum_tree(ends, lengths, graph.n_nodes, lengths)
    return [genie_merges(tree, threshold) for threshold in GINI_THRESHOLDS]


def edge_lengths(weights: np.ndarray) -> np.ndarray:
    """Return the lengths -log(w / max w) of edges."""
    data = weights.astype(np.float64)
    return -np.log(np.maximum(data / data.max(initial=MIN_RELATIVE_WEIGHT), MIN_RELATIVE_WEIGHT))


def _move_nodes(edges: WeightedEdges, start: np.ndarray, number: int, rng: np.random.RandomState) -> np.ndarray:
    """Move nodes on boundaries, at a resolution at which no cluster becomes empty if there is one."""
    n_clusters, gamma = len(np.unique(start)), RESOLUTION
    while True:
        moved = edges.move(start, gamma, number, rng, max_rounds=MOVE_ROUNDS)
        if moved.n_communities >= n_clusters or gamma >= MAX_MOVE_RESOLUTION:
            return moved.labels
        gamma *= 2


def _cut_dendrogram(
    weights: np.ndarray, volumes: np.ndarray, numbers: Sequence[int], is_average: bool
) -> list[np.ndarray]:
    """Merge cells two by two; return the groups of the cells for each number of them, improved by moves of cells."""
    n, shared, sizes = len(volumes), weights.copy(), volumes.copy()

    def gains(i: int) -> np.ndarray:
        products = sizes[i] * sizes
        return shared[i] / np.maximum(products, 1e-300) if is_average else shared[i] - RESOLUTION * products

    table = np.stack([gains(i) for i in range(n)])
    np.fill_diagonal(table, -np.inf)
    alive, groups = np.ones(n, dtype=bool), np.arange(n)
    cohesion = weights - RESOLUTION * np.outer(volumes, volumes)
    wanted, found = set(numbers), {}
    for left in range(n, 0, -1):
        if left in wanted or left == n:
            labels = np.unique(groups, return_inverse=True)[1]
            moved = _move_cells(labels, cohesion, left) if left < n else labels
            found[left] = moved if len(np.unique(moved)) == left else labels
        if left <= numbers[0]:
            break
        i, j = np.divmod(int(table.argmax()), n)
        groups[groups == j] = i
        shared[i] += shared[j]
        shared[:, i] += shared[:, j]
        sizes[i] += sizes[j]
        alive[j] = False
        table[j] = table[:, j] = -np.inf
        table[i] = table[:, i] = np.where(alive & (np.arange(n) != i), gains(i), -np.inf)
    return [found[min(number, n)] for number in numbers]


def _cut_without_tails(edges: WeightedEdges, labels: np.ndarray, k: int) -> float:
    """Return the normalised cut; with a tiny group (a tail) K is added, which no cut exceeds, and it is infinite with
    an empty one.
    """
    inside = labels[edges.rows] == labels[edges.columns]
    volumes = np.bincount(labels, edges.degrees, minlength=k)
    if not volumes.all():
        return np.inf
    cuts = np.bincount(labels[edges.rows[~inside]], edges.weights[~inside], minlength=k)
    return sum_of_cut_ratios(cuts, volumes) + (k if volumes.min() < MIN_RELATIVE_VOLUME / k * edges.total else 0)
