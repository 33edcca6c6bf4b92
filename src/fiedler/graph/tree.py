"""Spanning trees: edges that join the components of a graph, trees of neighbour graphs, and Genie's clustering on them.

*Components* are joined by Borůvka's algorithm: in every round each component but the largest asks for its closest pair
with a row outside. All pairs of rows would be too many. So rows are divided into about √n cells, and cells too far
apart are not compared: if u is the direction from the centre c_g of one cell to the centre c_h of another, then rows
x and y of these cells satisfy

    |x - y|  ≥  u·(y - x)  ≥  |c_h - c_g| - max_x u·(x - c_g) - max_y u·(c_h - y).

In many dimensions the reach max_x u·(x - c_g) of a cell towards another is much smaller than its radius, so that this
excludes nearly all pairs of cells between separated components. A search that ends by these bounds is exact. Where
they exclude little (components close to each other in many dimensions, documents) it ends after an amount of work that
grows as n log n, nearest cells first, and returns the closest pairs among those compared.

*Spanning trees*: an edge between rows i and j at distance d_ij has one of the lengths

    distance      d_ij
    mutual        max(d_ij, c_i, c_j),       c_i the distance to the third neighbour [Campello, Moulavi & Sander 2013]
    local         d_ij / √(s_i s_j),         s_i the distance to the seventh neighbour [Zelnik-Manor & Perona 2004]

The *mutual* (mutual reachability) length keeps single rows between two clusters from linking them; the *local* length
makes clusters of different density comparable.

*Genie*: single linkage merges the two clusters that are joined by the shortest edge, until one is left; all its merges
are edges of the minimum spanning tree. Left to itself it grows one large cluster row by row. Genie [Gagolewski,
Bartoszuk & Cena 2016] computes the Gini index of the sizes c_1..c_k of the k clusters,

    G(c) = Σ_{i<j} |c_i - c_j| / ((k - 1) Σ_i c_i),

which is 0 if the sizes are equal and 1 if one cluster has almost all rows. While G(c) exceeds a threshold, only edges
that leave a smallest cluster may be used. All merges are still edges of the spanning tree, and they take O(n log² n)
operations. With weights of rows, the size of a cluster is their sum; G(c) depends on ratios of sizes alone.

Differs from the paper: the spanning tree is that of the neighbour graph, whose components are joined by their closest
pairs, and not that of all pairs of rows.
"""

from __future__ import annotations

import heapq
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from .._validation import choose
from ..core.arrays import Array, asarray_like, namespace, sq_row_norms, take_rows, to_numpy
from ..core.fitting import stage
from ..core.parallel import one_thread
from ..core.sparse import from_coo
from .kernels import LOCAL_NEIGHBOR, pair_distances
from .neighbors import Edges, k_nearest
from .operators import component_labels
from .voronoi import Cells, split_into_cells

log = logging.getLogger(__name__)

MAX_CELLS = 512  # more cells cost more than they exclude
FREE_WORK = 1.6e10  # multiplications for comparing pairs that are allowed in any case: all pairs of 10,000 x 50
WORK_PER_ROW = 2500  # further multiplications for each row, times log₂ n
PAIR_OVERHEAD = 32  # features whose multiplications take as long as all other work on a pair
BLOCK_PAIRS = 2**22  # pairs of rows compared at once
MIXED, NO_TARGET = -1, -2  # in place of the label of a cell: it has several; it has no row to be joined to

CORE_NEIGHBOR = 3  # the neighbour whose distance is c_i
MERGES_PER_TICK = 1000  # merges between two reports of progress
MAX_TOTAL = 2**40  # sum of the sizes as whole numbers
UNIT_TOLERANCE = 1e-9  # remainder, relative to the largest weight, that counts as zero

EdgeLength = Literal["distance", "mutual", "local"]

# ----------------------------------------------------------------------------------------------- joining components


def mst_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a minimum spanning tree over the components, by Borůvka's algorithm.

    The largest component need not be searched: the edges of the others include its edge in the tree.
    """
    bridges = []
    with one_thread(), stage("joining components", int(labels.max())) as tick:
        search = PairSearch(X, labels)
        while labels.max() > 0:
            pairs, distances = search.closest_pairs(labels, int(np.argmax(np.bincount(labels))))
            # The pairs that form a forest over the components, shortest first: a pair can be the closest of both of its
            # components, and equal distances can close a cycle.
            n, by_length = int(labels.max()) + 1, np.argsort(distances, kind="stable")
            ends = np.sort(labels[pairs[by_length]], axis=1)
            distinct, rank = np.unique(ends @ [n, 1], return_index=True)  # the shortest pair of each two
            forest = minimum_spanning_tree(from_coo(*np.divmod(distinct, n), rank + 1.0, (n, n)))
            bridges.append(pairs[by_length[forest.data.astype(np.int64) - 1]])
            labels = connected_components(forest, directed=False)[1][labels]
            for _ in bridges[-1]:
                tick()
    search.log_result()
    edges = np.sort(np.concatenate(bridges), axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return edges[:, 0], edges[:, 1]


def nearest_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every smaller component, its closest pair with the largest one (component 0)."""
    with one_thread():
        search = PairSearch(X, labels)
        pairs, _ = search.closest_pairs(labels, 0, only_to=True)
    search.log_result()
    return pairs[:, 0], pairs[:, 1]


BRIDGES = {"mst": mst_bridges, "nearest": nearest_bridges}


# ---------------------------------------------------------------------------------------------------- branch and bound


class PairSearch:
    """Closest pairs of rows between components, by branch and bound over cells.

    Rows are addressed by their position in the order of the cells. Distances are computed in double precision, from
    rows centred on their cell, so that few digits cancel. The search is exact (``is_exact``) if it ended by the bounds.
    """

    def __init__(self, X: Array, labels: np.ndarray) -> None:
        n = X.shape[0]
        self.cells = split_into_cells(X, min(MAX_CELLS, int(n**0.5)), labels=labels)
        rows, starts = self.cells.rows, self.cells.starts
        if sp.issparse(rows):  # the first row of each cell, since a mean is not sparse
            self.centers = rows[starts[:-1]].astype(np.float64)
        else:
            xp = namespace(rows)
            of_cells = (xp.astype(rows[self.cells.slice(g), :], xp.float64) for g in range(len(self.cells)))
            self.centers = xp.stack([xp.mean(members, axis=0) for members in of_cells])
        distances, reach = [], []  # between the centres, and of every cell towards every other
        for g in range(len(self.cells)):
            directions = self._directions(g, np.arange(len(self.cells)))
            distances.append(np.sqrt(to_numpy(sq_row_norms(directions))))
            offsets = self._offsets(self.cells.slice(g), g, directions)
            reach.append(_divide(to_numpy(namespace(offsets).max(offsets, axis=0)), distances[-1]))
        self.distances, self.reach = np.array(distances), np.array(reach)
        self.bounds = np.maximum(self.distances - self.reach - self.reach.T, 0)
        self.nearest_cells = np.argsort(self.distances, axis=1, kind="stable")
        self.max_pairs = int((FREE_WORK + WORK_PER_ROW * n * np.log2(n)) / (X.shape[1] + PAIR_OVERHEAD))
        self.n_pairs, self.is_exact = 0, True  # pairs compared; whether all searches ended by the bounds
        self.found: list[tuple[np.ndarray, np.ndarray]] = []  # pairs and distances of earlier rounds

    def closest_pairs(
        self, labels: np.ndarray, largest: int, *, only_to: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the closest pair (inside, outside) of every component but the largest, and its length.

        With ``only_to`` the outside row is one of the largest component.
        """
        state = _Round(self.cells, labels, largest, only_to)
        if self.found:
            state.update(*map(np.concatenate, zip(*self.found)))
        is_last = only_to or len(state.best) == 2
        max_pairs = self.n_pairs + (self.max_pairs - self.n_pairs) // (1 if is_last else 2)
        visited = np.zeros(self.bounds.shape, dtype=bool)
        for g, h in state.first_visits(self.distances, self.nearest_cells):
            self._visit(g, np.array([h]), state)  # whatever it costs, since every component needs a pair
            visited[g, h] = True
        waiting, width = state.query_cells, 2
        while waiting:
            unfinished = []
            for g in waiting:
                cells, labels_of_cell = self.nearest_cells[g], state.labels[self.cells.slice(g)]
                longest = float(state.best[labels_of_cell].max())  # of the best pairs of the components in cell g
                needed = (self.bounds[g, cells] < longest) & ~visited[g, cells]
                asking, only = state.labels[state.queries(g)], state.only_label[cells]
                is_outside = (only != asking[0]) | (asking != asking[0]).any()
                cells = cells[needed & (only != NO_TARGET) & is_outside]
                if len(cells) and self.n_pairs > max_pairs:
                    self.is_exact = False
                elif len(cells):
                    self._visit(g, cells[:width], state)
                    visited[g, cells[:width]] = True
                    unfinished.append(g)
            waiting, width = unfinished, 2 * width
        searched = np.flatnonzero(np.arange(len(state.best)) != largest)
        return self.cells.order[state.pairs[searched]], state.best[searched]

    def log_result(self) -> None:
        """Log the number of comparisons and whether they were enough."""
        how = "exactly" if self.is_exact else "approximately"
        log.info("connect: components joined %s after comparing %d pairs of rows", how, self.n_pairs)

    def _directions(self, g: int, cells: np.ndarray) -> Array:
        """Return c_h - c_g for some cells h."""
        return take_rows(self.centers, cells) - take_rows(self.centers, np.full(len(cells), g))

    def _offsets(self, positions: slice | np.ndarray, g: int, directions: Array) -> Array:
        """Return (x - c_g)·v for some rows x and directions v."""
        products = self._centred(positions, g) @ directions.T
        if sp.issparse(products):  # the rows were not centred
            return products.toarray() - (self.centers[[g]] @ directions.T).toarray()
        return products

    def _centred(self, positions: slice | np.ndarray, g: int) -> Array:
        """Return rows in double precision, minus the centre of a cell if they are dense."""
        rows = self.cells.rows
        rows = rows[positions, ...] if isinstance(positions, slice) else take_rows(rows, positions)
        if sp.issparse(rows):
            return rows.astype(np.float64, copy=False)
        return namespace(rows).astype(rows, self.centers.dtype) - self.centers[g, :]

    def _visit(self, g: int, cells: np.ndarray, state: _Round) -> None:
        """Compare the queries in cell g with the rows of other cells, except for those that the bounds exclude."""
        queries, distances = state.queries(g), self.distances[g, cells]
        ahead = _divide(to_numpy(self._offsets(queries, g, self._directions(g, cells))), distances)
        is_near = distances - ahead - self.reach[cells, g] < state.best[state.labels[queries], None]
        queries, cells = queries[is_near.any(axis=1)], cells[is_near.any(axis=0)]
        if not len(queries):
            return
        longest = state.best[state.labels[queries]].max()
        candidates = np.concatenate([self._near_rows(g, h, longest) for h in cells])
        candidates = candidates[state.is_target[candidates]]
        size = max(1, BLOCK_PAIRS // max(1, len(candidates)))
        blocks = [queries[start : start + size] for start in range(0, len(queries), size)]
        for block in blocks if len(candidates) else []:
            pairs, distances = self._nearest(block, candidates, g, state.labels)
            self.n_pairs += len(block) * len(candidates)
            first = _shortest_of_each(state.labels[block], distances)
            first = first[np.isfinite(distances[first])]
            state.update(pairs[first], distances[first])
            self.found.append((pairs[first], distances[first]))

    def _near_rows(self, g: int, h: int, longest: float) -> np.ndarray:
        """Return the rows in cell h that may be closer to a row in cell g than ``longest``."""
        positions = np.arange(self.cells.starts[h], self.cells.starts[h + 1])
        if not np.isfinite(longest) or g == h:
            return positions
        offsets = to_numpy(self._offsets(self.cells.slice(h), h, self._directions(h, np.array([g]))))[:, 0]
        ahead = _divide(offsets, np.full(len(positions), self.distances[g, h]))
        return positions[self.distances[g, h] - ahead - self.reach[g, h] < longest]

    def _nearest(
        self, queries: np.ndarray, candidates: np.ndarray, g: int, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pair of each query with its nearest candidate of another component, and the distances."""
        left, right = self._centred(queries, g), self._centred(candidates, g)
        products = left @ right.T
        products = products.toarray() if sp.issparse(products) else products
        xp = namespace(products)
        scores = 0.5 * sq_row_norms(right)[None, :] - products
        inside, outside = labels[queries], labels[candidates]
        if np.isin(inside, outside).any():
            equal = asarray_like(inside, products)[:, None] == asarray_like(outside, products)[None, :]
            scores = xp.where(equal, xp.inf, scores)
        nearest = to_numpy(xp.argmin(scores, axis=1))
        sq_distances = to_numpy(2 * xp.min(scores, axis=1) + sq_row_norms(left))
        return np.stack([queries, candidates[nearest]], axis=1), np.sqrt(np.maximum(sq_distances, 0))


class _Round:
    """The state of one search: the closest pair of each component so far, and which cells can improve on it.

    ``labels``, ``is_query`` and ``is_target`` belong to rows in the order of the cells.
    """

    def __init__(self, cells: Cells, labels: np.ndarray, largest: int, only_to: bool) -> None:
        self.cells, self.labels = cells, labels[cells.order]
        self.is_query = self.labels != largest
        self.is_target = ~self.is_query if only_to else np.ones(len(labels), dtype=bool)
        n_components = int(labels.max()) + 1
        self.best = np.full(n_components, np.inf)
        self.best[largest] = 0  # nothing is asked for it
        self.pairs = np.full((n_components, 2), -1)
        starts = cells.starts[:-1]
        low, high = np.minimum.reduceat(self.labels, starts), np.maximum.reduceat(self.labels, starts)
        has_targets = np.logical_or.reduceat(self.is_target, starts)
        self.only_label = np.where(low == high, low, MIXED)
        self.only_label[~has_targets] = NO_TARGET
        self.query_cells = np.flatnonzero(np.logical_or.reduceat(self.is_query, starts)).tolist()

    def queries(self, g: int) -> np.ndarray:
        """Return the rows of cell g for which a pair is wanted."""
        return np.flatnonzero(self.is_query[self.cells.slice(g)]) + self.cells.starts[g]

    def first_visits(self, distances: np.ndarray, nearest_cells: np.ndarray) -> np.ndarray:
        """Return, for each component without a pair, its cell nearest to one with rows outside, and that one."""
        cell_of = np.repeat(np.arange(len(self.cells)), np.diff(self.cells.starts))
        asking = self.is_query & ~np.isfinite(self.best[self.labels])
        labels, g = np.unique(np.stack([self.labels[asking], cell_of[asking]]), axis=1)
        h, left = np.zeros_like(g), np.arange(len(g))
        for rank in range(len(self.cells)):
            h[left] = nearest_cells[g[left], rank]
            only = self.only_label[h[left]]
            left = left[(only == NO_TARGET) | (only == labels[left])]
            if not len(left):
                break
        first = _shortest_of_each(labels, distances[g, h])
        return np.unique(np.stack([g[first], h[first]], axis=1), axis=0)

    def update(self, pairs: np.ndarray, distances: np.ndarray) -> None:
        """Replace the best pairs of the components at both ends where these pairs are shorter."""
        pairs, distances = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([distances, distances])
        inside, outside = self.labels[pairs].T
        valid = (inside != outside) & self.is_query[pairs[:, 0]] & self.is_target[pairs[:, 1]]
        valid = np.flatnonzero(valid & (distances < self.best[inside]))
        first = valid[_shortest_of_each(inside[valid], distances[valid])]
        self.best[inside[first]], self.pairs[inside[first]] = distances[first], pairs[first]


def _shortest_of_each(labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return the index of the shortest distance of every label, the first of equal ones."""
    order = np.lexsort((distances, labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def _divide(offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return products with directions as lengths along them; 0 if there is no direction."""
    return np.divide(offsets, lengths, out=np.zeros_like(offsets), where=lengths > 0)


# ----------------------------------------------------------------------------------------------------- spanning trees


class SpanningTree(NamedTuple):
    """The edges of a tree over n nodes, from the shortest to the longest."""

    ends: np.ndarray  # (n - 1, 2)
    lengths: np.ndarray  # (n - 1,)


class MergeTree(NamedTuple):
    """A hierarchy of clusters in scikit-learn's form: nodes 0..n-1 are rows, node n + i is the i-th merge.

    The distance of a merge is the length of its edge, or the smallest length of a later merge if that is smaller, so
    that distances ascend; single linkage needs no correction.
    """

    children: np.ndarray  # (n - 1, 2), the two nodes that are merged
    distances: np.ndarray  # (n - 1,)


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


LENGTHS = {"distance": lambda distances, ends, nearest: distances, "mutual": _mutual_lengths, "local": _local_lengths}


def spanning_tree(
    X: Array, n_neighbors: int, *, length: EdgeLength = "mutual", n_jobs: int | None = None
) -> SpanningTree:
    """Return the minimum spanning tree of the graph of nearest neighbours, whose components are joined.

    Edges of equal length are ordered by their distance.
    """
    choose(LENGTHS, length, option="length")
    return spanning_trees(X, k_nearest(X, n_neighbors, n_jobs=n_jobs), [length])[0]


def spanning_trees(X: Array, edges: Edges, lengths: Sequence[EdgeLength]) -> list[SpanningTree]:
    """Return the minimum spanning tree of known neighbours for every kind of length.

    The edges are equally many nearest neighbours of every row, in the order of their distance.
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
    unit, tolerance = 0.0, UNIT_TOLERANCE * float(weights.max())
    for weight in np.unique(weights).tolist():  # the largest number of which all are multiples, by Euclid's algorithm
        unit, rest = weight, unit
        while rest > tolerance:
            unit, rest = rest, unit % rest
    unit = max(unit, float(weights.sum()) / MAX_TOTAL)
    return [max(round(weight / unit), 1) for weight in weights.tolist()]


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
        count, total, position, counts, sums = 0, 0, size, self.counts, self.sums
        while position:
            count += counts[position]
            total += sums[position]
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

    The sizes of clusters are the sums of the positive weights of their nodes, by default 1.
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

    ``nodes`` is the row of which each one is a copy; every one occurs.

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
