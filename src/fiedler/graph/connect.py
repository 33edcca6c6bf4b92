"""Edges that join the components of a disconnected graph, between their closest points.

Components are joined by Borůvka's algorithm: in every round each component but the largest asks for its closest pair
with a row outside. All pairs of rows would be too many. So rows are divided into about √n cells, and cells too far
apart are not compared: if u is the direction from the centre c_g of one cell to the centre c_h of another, then rows x
and y of these cells satisfy

    |x - y|  ≥  u·(y - x)  ≥  |c_h - c_g| - max_x u·(x - c_g) - max_y u·(c_h - y).

In many dimensions the reach max_x u·(x - c_g) of a cell towards another is much smaller than its radius, so that this
excludes nearly all pairs of cells between separated components. A search that ends by these bounds is exact. Where they
exclude little (components close to each other in many dimensions, documents) it ends after an amount of work that grows
as n log n, nearest cells first, and returns the closest pairs among those compared.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from ..core.arrays import Array, asarray_like, namespace, sq_row_norms, take_rows, to_numpy
from ..core.fitting import stage
from ..core.parallel import one_thread
from ..core.sparse import from_coo
from .voronoi import Cells, split_into_cells

log = logging.getLogger(__name__)

MAX_CELLS = 512  # more cells cost more than they exclude
FREE_WORK = 1.6e10  # multiplications for comparing pairs that are allowed in any case: all pairs of 10,000 x 50
WORK_PER_ROW = 2500  # further multiplications for each row, times log₂ n
PAIR_OVERHEAD = 32  # features whose multiplications take as long as all other work on a pair
BLOCK_PAIRS = 2**22  # pairs of rows compared at once
MIXED, NO_TARGET = -1, -2  # in place of the label of a cell: it has several; it has no row to be joined to


def mst_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a minimum spanning tree over the components, by Borůvka's algorithm.

    In every round each component but the largest is joined to its closest outside point, until one component is left.
    The largest need not be searched: the edges of the others include its edge in the tree.
    """
    bridges = []
    with one_thread(), stage("joining components", int(labels.max())) as tick:
        search = PairSearch(X, labels)
        while labels.max() > 0:
            pairs, distances = search.closest_pairs(labels, int(np.argmax(np.bincount(labels))))
            tree, labels = _join(labels, pairs, distances)
            bridges.append(pairs[tree])
            for _ in tree:
                tick()
    search.log_end()
    edges = np.sort(np.concatenate(bridges), axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return edges[:, 0], edges[:, 1]


def nearest_bridges(X: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every smaller component, its closest pair with the largest one (component 0)."""
    with one_thread():
        search = PairSearch(X, labels)
        pairs, _ = search.closest_pairs(labels, 0, only_to=True)
    search.log_end()
    return pairs[:, 0], pairs[:, 1]


BRIDGES = {"mst": mst_bridges, "nearest": nearest_bridges}


def _join(labels: np.ndarray, pairs: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of pairs that form a forest over the components, shortest first, and the new components.

    A pair can be the closest of both of its components, and equal distances can close a cycle.
    """
    n = int(labels.max()) + 1
    by_length = np.argsort(distances, kind="stable")
    ends = np.sort(labels[pairs[by_length]], axis=1)
    distinct, rank = np.unique(ends[:, 0] * n + ends[:, 1], return_index=True)  # the shortest pair of each two
    joined = from_coo(*np.divmod(distinct, n), rank + 1.0, (n, n))
    tree = minimum_spanning_tree(joined)
    return by_length[tree.data.astype(np.int64) - 1], connected_components(tree, directed=False)[1][labels]


# ---------------------------------------------------------------------------------------------------- branch and bound


class PairSearch:
    """Closest pairs of rows between components, by branch and bound over cells.

    Rows are addressed by their position in the order of the cells. Distances are computed in double precision, from
    rows centred on their cell, so that few digits cancel.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows, which stay on their device.
    labels : ndarray of shape (n,)
        The component of each row, for a start.

    Attributes
    ----------
    n_pairs : int
        The number of pairs of rows that were compared.
    is_exact : bool
        Whether all searches ended by the bounds.
    """

    def __init__(self, X: Array, labels: np.ndarray) -> None:
        n = X.shape[0]
        self.cells = split_into_cells(X, min(MAX_CELLS, int(n**0.5)), labels=labels)
        self.centers = _centers(self.cells)
        self.distances, self.reach = self._measure_cells()
        self.bounds = np.maximum(self.distances - self.reach - self.reach.T, 0)
        self.nearest_cells = np.argsort(self.distances, axis=1, kind="stable")
        self.max_pairs = int((FREE_WORK + WORK_PER_ROW * n * np.log2(n)) / (X.shape[1] + PAIR_OVERHEAD))
        self.n_pairs, self.is_exact = 0, True
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
                cells = self.nearest_cells[g]
                needed = (self.bounds[g, cells] < state.longest_best(g)) & ~visited[g, cells]
                cells = cells[needed & state.has_outside_rows(g, cells)]
                if len(cells) and self.n_pairs > max_pairs:
                    self.is_exact = False
                elif len(cells):
                    self._visit(g, cells[:width], state)
                    visited[g, cells[:width]] = True
                    unfinished.append(g)
            waiting, width = unfinished, 2 * width
        searched = np.flatnonzero(np.arange(len(state.best)) != largest)
        return self.cells.order[state.pairs[searched]], state.best[searched]

    def log_end(self) -> None:
        """Log the number of comparisons and whether they were enough."""
        how = "exactly" if self.is_exact else "approximately"
        log.info("connect: components joined %s after comparing %d pairs of rows", how, self.n_pairs)

    def _measure_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances between the centres, and the reach of every cell towards every other."""
        distances, reach = [], []
        for g in range(len(self.cells)):
            directions = self._directions(g, np.arange(len(self.cells)))
            lengths = np.sqrt(to_numpy(sq_row_norms(directions)))
            offsets = self._offsets(self.cells.slice(g), g, directions)
            farthest = to_numpy(namespace(offsets).max(offsets, axis=0))
            distances.append(lengths)
            reach.append(_divide(farthest, lengths))
        return np.array(distances), np.array(reach)

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
        queries, cells = self._near_queries(g, cells, state)
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

    def _near_queries(self, g: int, cells: np.ndarray, state: _Round) -> tuple[np.ndarray, np.ndarray]:
        """Return the queries in cell g that other cells may have a row for, closer than their best pair, and these."""
        queries = state.queries(g)
        distances = self.distances[g, cells]
        ahead = _divide(to_numpy(self._offsets(queries, g, self._directions(g, cells))), distances)
        is_near = distances - ahead - self.reach[cells, g] < state.best[state.labels[queries], None]
        return queries[is_near.any(axis=1)], cells[is_near.any(axis=0)]

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

    def longest_best(self, g: int) -> float:
        """Return the length of the longest of the best pairs of the components in cell g."""
        return float(self.best[self.labels[self.cells.slice(g)]].max())

    def has_outside_rows(self, g: int, cells: np.ndarray) -> np.ndarray:
        """Whether cells have rows that a query in cell g can be joined to."""
        labels = self.labels[self.queries(g)]
        others = self.only_label[cells]
        alone = (labels == labels[0]).all()
        return (others != NO_TARGET) & ((others != labels[0]) | (not alone))

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


def _centers(cells: Cells) -> Array:
    """Return the mean of every cell in double precision; of sparse cells the first row, since a mean is not sparse."""
    if sp.issparse(cells.rows):
        return cells.rows[cells.starts[:-1]].astype(np.float64)
    xp = namespace(cells.rows)
    means = [xp.mean(xp.astype(cells.rows[cells.slice(g), :], xp.float64), axis=0) for g in range(len(cells))]
    return xp.stack(means)


def _shortest_of_each(labels: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return the index of the shortest distance of every label, the first of equal ones."""
    order = np.lexsort((distances, labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def _divide(offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return products with directions as lengths along them; 0 if there is no direction."""
    return np.divide(offsets, lengths, out=np.zeros_like(offsets), where=lengths > 0)
