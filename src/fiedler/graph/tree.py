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
operations.

Differs from the paper: the spanning tree is that of the neighbour graph, whose components are joined by their closest
pairs, and not that of all pairs of rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from .._validation import choose
from ..core.backend import Array, asarray_like, to_numpy
from ..core.progress import stage
from ..core.sparse import from_coo
from .connect import mst_bridges
from .kernels import LOCAL_NEIGHBOR
from .laplacians import component_labels
from .neighbors import Edges, k_nearest, pair_distances

EdgeLength = Literal["distance", "mutual", "local"]

CORE_NEIGHBOR = 3  # the neighbour whose distance is c_i
MERGES_PER_TICK = 1000  # merges between two reports of progress


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


class _Sizes:
    """The sizes of clusters, as Fenwick trees of their number and sum, for Σ_j |c_j - x| in O(log n)."""

    def __init__(self, n: int) -> None:
        """Begin with n clusters of size 1."""
        self.counts, self.sums = [0] * (n + 1), [0] * (n + 1)
        self.n_clusters = self.n_rows = 0
        self.spread = 0  # Σ_{i<j} |c_i - c_j|
        self._add(1, n)

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
        position = size
        while position < len(self.counts):
            self.counts[position] += count
            self.sums[position] += count * size
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

    def __init__(self, ends: np.ndarray) -> None:
        n = len(ends) + 1
        self.ends = ends.tolist()
        self.parents, self.sizes = list(range(n)), [1] * n
        self.edges: list[list[int]] = [[] for _ in range(n)]
        for edge, (i, j) in enumerate(self.ends):
            self.edges[i].append(edge)  # ascending, so that every list is a heap
            self.edges[j].append(edge)
        self.by_size = {1: sorted((edges[0], row) for row, edges in enumerate(self.edges) if edges)}
        self.next_edge, self.smallest = 0, 1

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
            heap = self.by_size.get(self.smallest, [])
            while heap:
                edge, cluster = heap[0]
                if self.parents[cluster] == cluster and self.sizes[cluster] == self.smallest:
                    return edge
                heapq.heappop(heap)
            self.smallest += 1  # clusters only grow

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
            heapq.heappush(self.by_size.setdefault(self.sizes[kept], []), (leaving[0], kept))
        return kept, other


def genie_merges(tree: SpanningTree, gini_threshold: float) -> MergeTree:
    """Merge clusters along the edges of a spanning tree, by Genie's rule; with a threshold of 1, by single linkage."""
    n = len(tree.ends) + 1
    clusters, sizes, nodes = _Clusters(tree.ends), _Sizes(n), list(range(n))
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
