"""Spanning trees of neighbour graphs, and Genie's hierarchical clustering on them.

An edge between rows i and j at distance d_ij has one of the lengths

    distance      d_ij
    mutual        max(d_ij, c_i, c_j),       c_i the distance to the third neighbour [Campello, Moulavi & Sander 2013]
    local         d_ij / √(s_i s_j),         s_i the distance to the seventh neighbour [Zelnik-Manor & Perona 2004]

The *mutual* (mutual reachability) length keeps single rows between two clusters from linking them; the *local* length
makes clusters of different density comparable.

Single linkage merges the two clusters that are joined by the shortest edge, until one is left; all its merges are edges
of the minimum spanning tree. Left to itself it grows one large cluster row by row. *Genie* [Gagolewski, Bartoszuk &
Cena 2016] computes the Gini index of the sizes c_1..c_k of the k clusters,

    G(c) = Σ_{i<j} |c_i - c_j| / ((k - 1) Σ_i c_i),

which is 0 if the sizes are equal and 1 if one cluster has almost all rows. While G(c) exceeds a threshold, only edges
that leave a smallest cluster may be used. All merges are still edges of the spanning tree, and they take O(n log² n)
operations. With weights of rows, the size of a cluster is their sum; G(c) depends on ratios of sizes alone.

Differs from the paper: the spanning tree is that of the neighbour graph, whose components are joined by their closest
pairs, and not that of all pairs of rows.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from .._validation import choose
from ..core.arrays import Array, asarray_like, to_numpy
from ..core.fitting import stage
from ..core.sparse import from_coo
from .connect import mst_bridges
from .kernels import LOCAL_NEIGHBOR, pair_distances
from .neighbors import Edges, k_nearest
from .operators import component_labels

EdgeLength = Literal["distance", "mutual", "local"]

CORE_NEIGHBOR = 3  # the neighbour whose distance is c_i
MERGES_PER_TICK = 1000  # merges between two reports of progress
MAX_TOTAL = 2**40  # sum of the sizes as whole numbers
UNIT_TOLERANCE = 1e-9  # remainder, relative to the largest weight, that counts as zero


class SpanningTree(NamedTuple):
    """The edges of a tree over n nodes, from the shortest to the longest.

    Attributes
    ----------
    ends : array of shape (n - 1, 2)
    lengths : array of shape (n - 1,)
    """

    ends: np.ndarray
    lengths: np.ndarray


class MergeTree(NamedTuple):
    """A hierarchy of clusters in scikit-learn's form: nodes 0..n-1 are rows, node n + i is the i-th merge.

    Attributes
    ----------
    children : array of shape (n - 1, 2)
        The two nodes that are merged.
    distances : array of shape (n - 1,)
        The length of the edge of each merge, or the smallest length of a later merge if that is smaller, so that the
        distances ascend; single linkage needs no correction.
    """

    children: np.ndarray
    distances: np.ndarray


# ----------------------------------------------------------------------------------------------------- spanning trees


def _distance_lengths(distances: np.ndarray, ends: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    return distances


def _mutual_lengths(distances: np.ndarray, ends: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Compute max(d_ij, c_i, c_j)."""
    core = nearest[:, min(CORE_NEIGHBOR, nearest.shape[1]) - 1]
    return np.maximum(distances, core[ends].max(axis=1))


def _local_lengths(distances: np.ndarray, ends: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Compute d_ij / √(s_i s_j); where s_i = 0, for a row repeated seven times, the smallest positive s is used."""
    scales = nearest[:, min(LOCAL_NEIGHBOR, nearest.shape[1]) - 1]
    positive = scales[scales > 0]
    scales = np.where(scales > 0, scales, positive.min() if len(positive) else 1.0)
    return distances / np.sqrt(scales[ends].prod(axis=1))


LENGTHS = {"distance": _distance_lengths, "mutual": _mutual_lengths, "local": _local_lengths}


def spanning_tree(
    X: Array, n_neighbors: int, *, length: EdgeLength = "mutual", n_jobs: int | None = None
) -> SpanningTree:
    """Return the minimum spanning tree of the graph of nearest neighbours, whose components are joined.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows, at least two.
    n_neighbors : int
        The number of neighbours of each row.
    length : {'distance', 'mutual', 'local'}, default='mutual'
        The length of an edge. Edges of equal length are ordered by their distance.
    n_jobs : int, optional
        The number of threads that search neighbours.
    """
    choose(LENGTHS, length, option="length")
    return spanning_trees(X, k_nearest(X, n_neighbors, n_jobs=n_jobs), [length])[0]


def spanning_trees(X: Array, edges: Edges, lengths: Sequence[EdgeLength]) -> list[SpanningTree]:
    """Return the minimum spanning tree of nearest neighbours that are known already, for every kind of length.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows, at least two.
    edges : Edges
        Equally many nearest neighbours of every row, in the order of their distance.
    lengths : sequence of {'distance', 'mutual', 'local'}
    """
    n = X.shape[0]
    ends = np.stack([to_numpy(edges.rows), to_numpy(edges.columns)], axis=1)
    distances = to_numpy(edges.distances).astype(np.float64)
    nearest = distances.reshape(n, -1)
    n_components, labels = component_labels(sp.csr_array((np.ones(len(ends)), ends.T), shape=(n, n)))
    if n_components > 1:
        bridges = np.stack(mst_bridges(X, labels), axis=1)
        bridge_distances = pair_distances(X, X, *(asarray_like(end, X) for end in bridges.T))
        ends = np.concatenate([ends, bridges])
        distances = np.concatenate([distances, to_numpy(bridge_distances)])
    return [minimum_tree(ends, LENGTHS[length](distances, ends, nearest), n, ties=distances) for length in lengths]


def minimum_tree(ends: np.ndarray, lengths: np.ndarray, n_nodes: int, ties: np.ndarray) -> SpanningTree:
    """Return the minimum spanning tree of a connected graph; equal lengths are ordered by ``ties``, then by nodes."""
    ends = np.sort(ends, axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0], ties, lengths))
    keys, first = np.unique(ends[order] @ [n_nodes, 1], return_index=True)  # an edge may be given in both directions
    graph = from_coo(*np.divmod(keys, n_nodes), first + 1.0, (n_nodes, n_nodes))
    used = order[np.sort(minimum_spanning_tree(graph).data).astype(np.int64) - 1]
    return SpanningTree(ends[used], lengths[used])


# -------------------------------------------------------------------------------------------------------- the merges


def whole_sizes(weights: np.ndarray) -> list[int]:
    """Return positive weights as whole numbers in the same ratios, so that sums of them are exact.

    Weights without a common unit are rounded to a share of 2⁻⁴⁰ of their sum.

    Examples
    --------
    >>> whole_sizes(np.array([0.6, 0.9]))
    [2, 3]
    """
    unit = max(common_unit(weights), float(weights.sum()) / MAX_TOTAL)
    return [max(round(weight / unit), 1) for weight in weights.tolist()]


def common_unit(weights: np.ndarray) -> float:
    """Return the largest number of which all weights are multiples, by Euclid's algorithm, up to rounding."""
    unit, tolerance = 0.0, UNIT_TOLERANCE * float(weights.max())
    for weight in np.unique(weights).tolist():
        rest = unit
        unit = weight
        while rest > tolerance:
            unit, rest = rest, unit % rest
    return unit


class _Sizes:
    """The sizes of clusters, as Fenwick trees of their number and sum, for Σ_j |c_j - x| in O(log Σ_j c_j)."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Begin with clusters of these sizes."""
        self.largest = sum(sizes)
        is_short = self.largest <= 10**6  # else most entries of a list would stay zero
        self.counts: Any = [0] * (self.largest + 1) if is_short else defaultdict(int)
        self.sums: Any = [0] * (self.largest + 1) if is_short else defaultdict(int)
        self.n_clusters = self.n_rows = 0
        self.spread = 0  # Σ_{i<j} |c_i - c_j|
        for size, count in zip(*np.unique(np.array(sizes, dtype=np.int64), return_counts=True)):
            self.spread += int(count) * self._sum_of_differences(int(size))
            self._add(int(size), int(count))

    def merge(self, a: int, b: int) -> None:
        """Replace a cluster of size a and one of size b by one of size a + b."""
        for size in (a, b):
            self._add(size, -1)
            self.spread -= self._sum_of_differences(size)
        self.spread += self._sum_of_differences(a + b)
        self._add(a + b, 1)

    def gini_exceeds(self, threshold: float) -> bool:
        """Whether the Gini index Σ_{i<j} |c_i - c_j| / ((k - 1) Σ_i c_i) exceeds a threshold."""
        return self.spread > threshold * (self.n_clusters - 1) * self.n_rows

    def _add(self, size: int, count: int) -> None:
        self.n_clusters += count
        self.n_rows += count * size
        position, added, counts, sums = size, count * size, self.counts, self.sums
        while position <= self.largest:
            counts[position] += count
            sums[position] += added
            position += position & -position

    def _sum_of_differences(self, size: int) -> int:
        """Compute Σ_j |c_j - size|, from the number and the sum of the sizes up to ``size``."""
        count, total, position = 0, 0, size
        while position:
            count += self.counts[position]
            total += self.sums[position]
            position -= position & -position
        return size * count - total + (self.n_rows - total) - size * (self.n_clusters - count)


class _Clusters:
    """Clusters that grow along the edges of a tree: a union-find structure that knows the edges leaving each cluster.

    Every cluster has a heap of the edges at its rows, and every size has a heap of its clusters by their shortest edge.
    What has become stale, an edge inside a cluster or a cluster that has grown, is dropped when it comes to the top.
    """

    def __init__(self, ends: np.ndarray, sizes: Sequence[int]) -> None:
        n = len(ends) + 1
        self.ends = ends.tolist()
        self.parents, self.sizes = list(range(n)), list(sizes)
        self.edges: list[list[int]] = [[] for _ in range(n)]
        for edge, (i, j) in enumerate(self.ends):
            self.edges[i].append(edge)  # ascending, so that every list is a heap
            self.edges[j].append(edge)
        self.by_size: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for first_edge, row in sorted((edges[0], row) for row, edges in enumerate(self.edges) if edges):
            self.by_size[sizes[row]].append((first_edge, row))
        self.smallest = sorted(self.by_size)  # a heap of sizes
        self.next_edge = 0

    def find(self, row: int) -> int:
        """Return the row that represents the cluster of a row."""
        parents = self.parents
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    def is_inside(self, edge: int) -> bool:
        """Whether both ends of an edge are in one cluster."""
        i, j = self.ends[edge]
        return self.find(i) == self.find(j)

    def shortest_edge(self) -> int:
        """Return the shortest edge between two clusters."""
        while self.is_inside(self.next_edge):
            self.next_edge += 1
        return self.next_edge

    def shortest_edge_of_smallest(self) -> int:
        """Return the shortest edge that leaves a cluster of the smallest size."""
        while True:
            size = self.smallest[0]
            heap = self.by_size[size]
            while heap:
                edge, cluster = heap[0]
                if self.parents[cluster] == cluster and self.sizes[cluster] == size:
                    return edge
                heapq.heappop(heap)
            del self.by_size[heapq.heappop(self.smallest)]

    def join(self, edge: int) -> tuple[int, int]:
        """Join the two clusters at an edge; return the one that represents both, and the other one."""
        kept, other = map(self.find, self.ends[edge])
        if len(self.edges[kept]) < len(self.edges[other]):
            kept, other = other, kept
        self.parents[other] = kept
        self.sizes[kept] += self.sizes[other]
        leaving = self.edges[kept]
        for each in self.edges[other]:
            heapq.heappush(leaving, each)
        self.edges[other] = []
        while leaving and self.is_inside(leaving[0]):
            heapq.heappop(leaving)
        if leaving:
            if self.sizes[kept] not in self.by_size:
                heapq.heappush(self.smallest, self.sizes[kept])
            heapq.heappush(self.by_size[self.sizes[kept]], (leaving[0], kept))
        return kept, other


def genie_merges(tree: SpanningTree, gini_threshold: float, weights: np.ndarray | None = None) -> MergeTree:
    """Merge clusters along the edges of a spanning tree, by Genie's rule; with a threshold of 1, by single linkage.

    Parameters
    ----------
    tree : SpanningTree
    gini_threshold : float
    weights : ndarray of shape (n,), optional
        The weights of the nodes, positive, whose sums are the sizes of clusters; by default 1.
    """
    n = len(tree.ends) + 1
    start = [1] * n if weights is None else whole_sizes(weights)
    clusters, sizes, nodes = _Clusters(tree.ends, start), _Sizes(start), list(range(n))
    children, used = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1, dtype=np.int64)
    with stage("merging clusters", n // MERGES_PER_TICK) as tick:
        for step in range(n - 1):
            unequal = sizes.gini_exceeds(gini_threshold)
            edge = clusters.shortest_edge_of_smallest() if unequal else clusters.shortest_edge()
            kept, other = clusters.join(edge)
            sizes.merge(clusters.sizes[kept] - clusters.sizes[other], clusters.sizes[other])
            children[step], used[step] = sorted((nodes[kept], nodes[other])), edge
            nodes[kept] = n + step
            if (step + 1) % MERGES_PER_TICK == 0:
                tick()
    return MergeTree(children, np.minimum.accumulate(tree.lengths[used][::-1])[::-1])


def add_copies(tree: MergeTree, nodes: np.ndarray) -> MergeTree:
    """Return the hierarchy of all copies of the rows of a hierarchy: they are merged first, at distance 0.

    Parameters
    ----------
    tree : MergeTree
        Of the different rows.
    nodes : ndarray of shape (n,)
        The row of which each one is a copy; every one occurs.

    Examples
    --------
    >>> add_copies(MergeTree(np.array([[0, 1]]), np.array([2.0])), np.array([0, 1, 0])).children.tolist()
    [[0, 2], [1, 3]]
    """
    n, n_different = len(nodes), len(tree.children) + 1
    current, copies = [-1] * n_different, []  # the node in which the copies of each row are merged
    for row, node in enumerate(nodes.tolist()):
        if current[node] >= 0:
            copies.append(sorted((current[node], row)))
            row = n + len(copies) - 1
        current[node] = row
    renamed = np.concatenate([current, np.arange(n + len(copies), 2 * n - 1)]).astype(np.int64)
    children = np.concatenate([np.array(copies, dtype=np.int64).reshape(-1, 2), renamed[tree.children]])
    return MergeTree(np.sort(children, axis=1), np.concatenate([np.zeros(len(copies)), tree.distances]))


def cut_tree(tree: MergeTree, n_clusters: int) -> np.ndarray:
    """Return the labels 0..n_clusters-1 after all but the last ``n_clusters - 1`` merges, in the order of the rows."""
    n = len(tree.children) + 1
    n_merges = n - n_clusters
    parents = np.repeat(np.arange(n, n + n_merges), 2)
    forest = sp.csr_array(
        (np.ones(2 * n_merges), (tree.children[:n_merges].ravel(), parents)), shape=(2 * n - 1, 2 * n - 1)
    )
    components = connected_components(forest, directed=False)[1][:n]
    _, first, labels = np.unique(components, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def linkage_matrix(tree: MergeTree) -> np.ndarray:
    """Return the hierarchy in SciPy's form: two nodes, their distance, and the number of rows, shape (n - 1, 4)."""
    n = len(tree.children) + 1
    counts = np.ones(2 * n - 1)
    for step, (a, b) in enumerate(tree.children.tolist()):
        counts[n + step] = counts[a] + counts[b]
    return np.column_stack([tree.children, tree.distances, counts[n:]]).astype(np.float64)
