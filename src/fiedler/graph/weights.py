"""Rows that are weighted, repeated or added: the graphs of rows with weights, equal rows, and new rows in a graph.

A row of weight m stands for m equal rows. With w the graph of the different rows, the graph of the weighted rows is

    w'_ij = √(m_i m_j) w_ij.

It is the contraction of a graph of all copies, in which each of the m_i copies of row i is joined to each of the m_j
copies of its neighbour j with weight w_ij / √(m_i m_j): cut, volumes and modularity of a partition that keeps copies
together are the same on both. Where neighbours have equal weights, every copy has the degree of its row, as every row
of a neighbour graph has about the same degree, wherever it is dense. So a volume is about a number of rows. Without
the root, w_ij m_i m_j, volumes would grow with the square of the number of copies, and a few rows with many copies
would outweigh all others.

Copies are not joined to each other. Such edges would be self-loops of w', of no effect on cuts, and their weight
relative to the others would depend on the unit of m; as it is, only ratios of weights matter.

New rows join a graph of nearest neighbours without a search of all rows. The k nearest neighbours of an old row are the
nearest of its old neighbours and of the new rows, so n old and m new rows need 2nm + m² distances instead of (n + m)².
The old neighbours need not be kept: they are the k nearest of the rows to which a row is joined in the graph. Weights
take a time linear in the number of edges and are computed again for all rows; components are joined again, too. Where
old rows are removed, those that lose a neighbour are searched again. The result is the graph that a search of all rows
would give, up to ties and rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight

from ..core.arrays import Array, append_rows, asarray_like, namespace, row_blocks, sq_row_norms, take_rows, to_numpy
from ..core.sparse import csr_parts, from_coo, row_indices, to_scipy, with_data
from ..errors import InputError
from .affinity import AffinityGraph
from .kernels import LOCAL_NEIGHBOR, pair_distances
from .neighbors import APPROXIMATE_ABOVE, Edges, k_nearest, nearest_of_rows
from .recipes import KNNGraph, nearest_edges, nth_distances
from .voronoi import order_of_equal_rows

SCALE_TOLERANCE = 1e-3  # relative difference of a row's scale from that of the graph, above which it is searched again

# --------------------------------------------------------------------------------------------------- weights of rows


def check_sample_weight(sample_weight: Any, n_samples: int, *, allow_zero: bool = False) -> np.ndarray | None:
    """Return the weights of rows as a NumPy array of doubles; None without weights.

    Some may be zero if ``allow_zero``; those of the nodes of a graph may not.
    """
    if sample_weight is None:
        return None
    try:
        with np.errstate(over="ignore"):  # of numbers in extended precision
            weights = np.asarray(
                _check_sample_weight(to_numpy(sample_weight), np.empty((n_samples, 1)), dtype=np.float64)
            )
        if weights.min() < 0 or weights.max() == 0 or (weights.min() == 0 and not allow_zero):
            raise ValueError("a weight is negative or zero")
    except (TypeError, ValueError, OverflowError) as error:
        kind, remedy = "non-negative", "correct it"
        if not allow_zero:
            kind, remedy = "positive", "leave out rows of weight zero and use predict for them"
        raise InputError(
            f"sample_weight must be {n_samples} finite, {kind} numbers, one per row{', not all zero' * allow_zero}",
            f"{remedy}, or leave sample_weight out for equal weights",
            code="invalid_sample_weight",
            parameter="sample_weight",
            n_samples=n_samples,
        ) from error
    return weights


def relative_weights(weights: np.ndarray) -> np.ndarray | None:
    """Return weights divided by their mean; None if all are equal."""
    return None if (weights == weights[0]).all() else weights / weights.mean()


def check_relative_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Return positive weights of mean one; None without weights, or if all are equal."""
    weights = check_sample_weight(sample_weight, n_samples)
    return None if weights is None else relative_weights(weights)


def weigh_graph(graph: AffinityGraph, weights: np.ndarray | None) -> AffinityGraph:
    """Return the graph √(m_i m_j) w_ij of rows with positive weights m; the graph itself if these are None.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> weigh_graph(AffinityGraph.from_matrix([[0, 1], [1, 0]]), np.array([4.0, 9.0])).weights.toarray()
    array([[0., 6.],
           [6., 0.]])
    """
    if weights is None:
        return graph
    data, columns, _ = csr_parts(graph.weights)
    xp, m = namespace(data), asarray_like(weights, data, dtype=data.dtype)
    factor = xp.sqrt(xp.take(m, row_indices(graph.weights)) * xp.take(m, columns))  # the same for ij and ji
    loops = None if graph.loops is None else graph.loops * asarray_like(weights, graph.loops, dtype=graph.loops.dtype)
    return graph._with_weights(with_data(graph.weights, data * factor), loops=loops)


def expand_graph(graph: AffinityGraph, nodes: np.ndarray) -> AffinityGraph:
    """Return a graph of all copies of the nodes of a graph without self-loops, whose contraction is that graph.

    ``nodes`` is the node of which each row is a copy; every one occurs. An edge of weight w between nodes with a ≥ b
    copies becomes a edges of weight w / a, in which each copy of the second node has about equally many; so there are
    not a · b of them. Kernel constants are left out.
    """
    data, columns, _ = csr_parts(graph.weights)
    rows, columns = (to_numpy(ends).astype(np.int64) for ends in (row_indices(graph.weights), columns))
    counts, order = np.bincount(nodes, minlength=graph.n_nodes), np.argsort(nodes, kind="stable")
    starts = np.cumsum(counts) - counts
    n_edges = np.maximum(counts[rows], counts[columns])
    entry = np.repeat(np.arange(len(rows)), n_edges)
    number = np.arange(len(entry)) - np.repeat(np.cumsum(n_edges) - n_edges, n_edges)
    ends = (order[starts[end] + number * counts[end] // n_edges[entry]] for end in (rows[entry], columns[entry]))
    first, second = (asarray_like(end, data) for end in ends)
    shares = data / asarray_like(n_edges, data, dtype=data.dtype)
    shares = namespace(data).take(shares, asarray_like(entry, data))
    weights = from_coo(first, second, shares, (len(nodes), len(nodes)))
    return AffinityGraph(weights, signed=graph.signed, recall=graph.recall)


# --------------------------------------------------------------------------------------------------------- equal rows


class CopiedRows(NamedTuple):
    """Which rows are equal.

    Examples
    --------
    >>> CopiedRows.of(np.array([[1.0], [0.0], [1.0]]))
    CopiedRows(first=array([0, 1]), nodes=array([0, 1, 0]))
    """

    first: np.ndarray  # the first of every group of equal rows, ascending unless reordered: the different rows
    nodes: np.ndarray  # (n,), the position in ``first`` of every row's group

    @classmethod
    def of(cls, X: Array) -> CopiedRows:
        """Find equal rows."""
        return cls(*different_rows(X))

    @classmethod
    def none(cls, n_rows: int) -> CopiedRows:
        """Return that no rows are equal."""
        return cls(np.arange(n_rows), np.arange(n_rows))

    def reorder(self, order: np.ndarray) -> CopiedRows:
        """Return the same rows with the different ones in another order."""
        return CopiedRows(self.first[order], np.argsort(order)[self.nodes])

    @property
    def exist(self) -> bool:
        """Whether any rows are equal."""
        return len(self.first) < len(self.nodes)

    def total(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the sum of the weights of the copies of each different row; their number without weights."""
        return np.bincount(self.nodes, weights, minlength=len(self.first)).astype(np.float64)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, CopiedRows]:
        """Return which nodes have some of the rows, ascending, and these rows in the given order.

        Examples
        --------
        >>> CopiedRows.of(np.array([[1.0], [0.0], [1.0]])).take(np.array([2, 0]))
        (array([0]), CopiedRows(first=array([0]), nodes=array([0, 0])))
        """
        used, first, nodes = np.unique(self.nodes[rows], return_index=True, return_inverse=True)
        return used, CopiedRows(first, nodes)

    def join(self, X: Array, X_new: Array) -> tuple[np.ndarray, CopiedRows]:
        """Return which new rows differ from all others, and all rows, with these as further nodes of ``X``."""
        n_nodes, n_rows = len(self.first), len(self.nodes)
        first, nodes = different_rows(append_rows(X, X_new))
        if not np.array_equal(first[:n_nodes], np.arange(n_nodes)):  # some old rows are equal, but were not joined
            fresh, new_nodes = np.arange(X_new.shape[0]), n_nodes + np.arange(X_new.shape[0])
        else:
            fresh, new_nodes = first[n_nodes:] - n_nodes, nodes[n_nodes:]
        return fresh, CopiedRows(np.concatenate([self.first, n_rows + fresh]), np.concatenate([self.nodes, new_nodes]))


def ordered_copies(X: Array, accept: Callable[[CopiedRows], bool]) -> CopiedRows | None:
    """Return the different rows in the order in which they are clustered, None for all rows in their own order.

    Equal rows are clustered as one, which has the sum of their weights, if that is acceptable. The order does not
    depend on that of the rows, so that the partition does not either; of more than `APPROXIMATE_ABOVE` rows, neighbours
    may depend on it in any case.
    """
    copies = CopiedRows.of(X)
    if not accept(copies):
        copies = CopiedRows.none(X.shape[0])
    if X.shape[0] > APPROXIMATE_ABOVE:
        return copies if copies.exist else None
    return copies.reorder(canonical_order(take_rows(X, copies.first) if copies.exist else X))


def different_rows(X: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the first one of every group of equal rows, ascending, and the position of its group for every row."""
    order, differs = order_of_equal_rows(X if sp.issparse(X) else to_numpy(X))
    first_of_group = order[differs[:-1]]
    first, rank = np.sort(first_of_group), np.argsort(np.argsort(first_of_group))
    nodes = np.empty(len(order), dtype=np.int64)
    nodes[order] = rank[np.cumsum(differs[:-1]) - 1]
    return first, nodes


def canonical_order(X: Array) -> np.ndarray:
    """Return an order of rows that depends on the rows, but not on the order in which they are given.

    By the distance from their mean, which shifts, rotations and changes of scale preserve, and for equal distances by
    the product with a random vector. Distances are compared in single precision, which hides that their last digits
    depend on the order of the rows.

    Examples
    --------
    >>> canonical_order(np.array([[0.0], [9.0], [4.0]]))
    array([2, 0, 1])
    """
    rows = X if sp.issparse(X) else to_numpy(X)
    n, scale = X.shape[0], float(abs(rows).max()) or 1.0
    blocks = [slice(0, n)] if sp.issparse(X) else list(row_blocks(n, 24 * X.shape[1], rows))
    scaled = lambda block: rows[block].astype(np.float64) / scale  # noqa: E731
    mean = np.asarray(sum(scaled(block).sum(axis=0) for block in blocks) / n).ravel()
    mean = mean.astype(np.float32).astype(np.float64)
    if sp.issparse(X):
        sq_distances = sq_row_norms(scaled(blocks[0])) - 2 * (scaled(blocks[0]) @ mean) + mean @ mean
    else:
        sq_distances = np.concatenate([((scaled(block) - mean) ** 2).sum(axis=1) for block in blocks])
    distances = np.sqrt(np.maximum(sq_distances, 0)).astype(np.float32)
    order, _ = order_of_equal_rows(rows)
    return order[np.argsort(distances[order], kind="stable")]


# ----------------------------------------------------------------------------------------------------------- new rows


class NeighborLists(NamedTuple):
    """The nearest neighbours of rows, sorted by distance, on the host."""

    indices: np.ndarray  # (n, k)
    distances: np.ndarray  # (n, k)

    def nearest_of(self, others: NeighborLists, k: int) -> NeighborLists:
        """Return the ``k`` nearest of these neighbours and of others of the same rows; of equals, these first."""
        indices = np.concatenate([self.indices, others.indices], axis=1)
        distances = np.concatenate([self.distances, others.distances], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return NeighborLists(np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1))

    def among(self, numbers: np.ndarray, X: Array, n_jobs: int | None = None) -> NeighborLists:
        """Return the neighbours of some rows, ``X``, among themselves; rows that lose one are searched again."""
        place = np.full(len(self.indices), -1)
        place[numbers] = np.arange(len(numbers))
        indices, distances = place[self.indices[numbers]], self.distances[numbers]
        incomplete = np.flatnonzero((indices < 0).any(axis=1))
        if len(incomplete):
            k = indices.shape[1]
            distances[incomplete], indices[incomplete] = nearest_of_rows(X, incomplete, k, n_jobs)
        return NeighborLists(indices, distances)


class GrownGraph(NamedTuple):
    """The graph of old and new rows, the old ones first."""

    rows: Array  # (n + m, d), without old rows that are removed
    edges: Edges  # the nearest neighbours of all rows
    unconnected: AffinityGraph  # their graph
    graph: AffinityGraph  # the same with edges that join its components
    sparser: AffinityGraph  # the connected graph of fewer neighbours
    to_old: NeighborLists  # neighbours of the new rows among all old ones
    of_old: NeighborLists  # neighbours of all old rows among themselves

    def weighed(self, weights: np.ndarray | None) -> GrownGraph:
        """Return the graphs of rows with weights."""
        graphs = (self.unconnected, self.graph, self.sparser)
        unconnected, graph, sparser = (weigh_graph(one, weights) for one in graphs)
        return self._replace(unconnected=unconnected, graph=graph, sparser=sparser)


def grow_graph(
    recipe: KNNGraph, graph: AffinityGraph, X: Array, X_new: Array, n_fewer: int, kept: np.ndarray | None = None
) -> GrownGraph:
    """Join new rows to the graph that ``recipe`` has built on the rows of ``X``, without edges of constraints.

    The recipe has local weights and the Euclidean metric; the sparser graph has ``n_fewer`` neighbours. Of the old
    rows, only those in ``kept`` are in the new graph, by default all.
    """
    k, n_jobs = int(recipe.n_neighbors), recipe.n_jobs
    of_old = known_neighbors(graph, X, k, n_jobs)
    to_old = NeighborLists(of_old.indices[:0], of_old.distances[:0])
    if X_new.shape[0]:
        to_old = _lists(k_nearest(X, k, queries=X_new, n_jobs=n_jobs))
    rows, lists = append_rows(X, X_new), _all_lists(of_old, to_old, X, X_new, k, n_jobs)
    if kept is not None and len(kept) < X.shape[0]:
        numbers = np.concatenate([kept, X.shape[0] + np.arange(X_new.shape[0])])
        rows = take_rows(rows, numbers)
        lists = lists.among(numbers, rows, n_jobs)
    edges = _edges(lists, rows, recall=graph.recall)
    scales, unconnected_recipe = nth_distances(edges, k), clone(recipe).set_params(connect=None)
    unconnected = unconnected_recipe._weigh(rows, edges, scales, recipe.symmetrize)
    connected = unconnected if recipe.connect is None else unconnected._connect(rows, recipe.connect, option="connect")
    sparser = recipe._weigh(rows, nearest_edges(edges, k, min(n_fewer, k)), scales, recipe.symmetrize)
    return GrownGraph(rows, edges, unconnected, connected, sparser, to_old, of_old)


def known_neighbors(graph: AffinityGraph, X: Array, k: int, n_jobs: int | None = None) -> NeighborLists:
    """Return the ``k`` nearest neighbours of every row from the graph that they have built.

    Edges of weight 0 are not in the graph. Rows that miss one, so that they have fewer than k neighbours or another
    scale than that of the graph, are searched again.
    """
    W, n = to_scipy(graph.weights), graph.n_nodes
    rows, columns = row_indices(W), W.indices
    places = (asarray_like(part, X) for part in (rows, columns)) if not isinstance(X, np.ndarray) else (rows, columns)
    lengths = to_numpy(pair_distances(X, X, *places))
    order = np.lexsort((lengths, rows))
    rank = np.arange(len(rows)) - np.repeat(W.indptr[:-1], np.diff(W.indptr))
    kept = order[rank < k]
    indices, distances = np.zeros((n, k), dtype=np.int64), np.full((n, k), np.inf, dtype=lengths.dtype)
    indices[rows[kept], rank[rank < k]], distances[rows[kept], rank[rank < k]] = columns[kept], lengths[kept]
    assert graph.constants is not None
    scales = to_numpy(graph.constants.scales)
    found = distances[:, min(k, LOCAL_NEIGHBOR) - 1]
    incomplete = ~np.isfinite(distances[:, -1]) | ~(np.abs(found - scales) <= SCALE_TOLERANCE * scales)
    if incomplete.any():
        missing = np.flatnonzero(incomplete)
        distances[missing], indices[missing] = nearest_of_rows(X, missing, k, n_jobs)
    return NeighborLists(indices, distances)


def _all_lists(
    of_old: NeighborLists, to_old: NeighborLists, X: Array, X_new: Array, k: int, n_jobs: int | None
) -> NeighborLists:
    """Return the neighbours of old and new rows among all of them."""
    n, m = X.shape[0], X_new.shape[0]
    if m == 0:
        return of_old
    from_old = _lists(k_nearest(X_new, min(k, m), queries=X, n_jobs=n_jobs), shift=n)
    old = of_old.nearest_of(from_old, k)
    if m == 1:
        return NeighborLists(*(np.concatenate(parts) for parts in zip(old, to_old)))
    among_new = _lists(k_nearest(X_new, min(k, m - 1), n_jobs=n_jobs), shift=n)
    new = to_old.nearest_of(among_new, k)
    return NeighborLists(*(np.concatenate(parts) for parts in zip(old, new)))


def _lists(edges: Edges, shift: int = 0) -> NeighborLists:
    """Return neighbours, equally many for each row, as lists; ``shift`` is the number of the first row searched."""
    columns, distances = (to_numpy(part).reshape(edges.shape[0], -1) for part in (edges.columns, edges.distances))
    return NeighborLists(columns.astype(np.int64) + shift, distances)


def _edges(lists: NeighborLists, X: Array, recall: float | None) -> Edges:
    """Return lists as edges in the array library of the rows."""
    n, k = lists.indices.shape
    edges = Edges(np.repeat(np.arange(n), k), lists.indices.ravel(), lists.distances.ravel(), (n, n), recall)
    if isinstance(X, np.ndarray):
        return edges
    places = {name: asarray_like(getattr(edges, name), X) for name in ("rows", "columns", "distances")}
    return replace(edges, **places)
