"""New rows join the graph of nearest neighbours: the graph of all rows, without a search of all rows.

The k nearest neighbours of an old row among all rows are the nearest of its old neighbours and of the new rows, so n
old and m new rows need 2nm + m² distances instead of (n + m)². The old neighbours need not be kept: they are the k
nearest of the rows to which a row is joined in the graph, which contains an edge for each of them. Weights take a time
linear in the number of edges and are computed again for all rows; components are joined again, too. The result is the
graph that a search of all rows would give, up to ties and rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from ..core.arrays import Array, append_rows, asarray_like, to_numpy
from ..core.sparse import row_indices, to_scipy
from .affinity import AffinityGraph
from .kernels import LOCAL_NEIGHBOR, pair_distances
from .neighbors import Edges, k_nearest, nearest_of_rows
from .recipes import KNNGraph, nearest_edges, nth_distances
from .weights import weigh_graph

SCALE_TOLERANCE = 1e-3  # relative difference of a row's scale from that of the graph, above which it is searched again


class NeighborLists(NamedTuple):
    """The nearest neighbours of rows, sorted by distance, on the host.

    Attributes
    ----------
    indices : ndarray of shape (n, k)
    distances : ndarray of shape (n, k)
    """

    indices: np.ndarray
    distances: np.ndarray

    def nearest_of(self, others: NeighborLists, k: int) -> NeighborLists:
        """Return the ``k`` nearest of these neighbours and of others of the same rows; of equals, these first."""
        indices = np.concatenate([self.indices, others.indices], axis=1)
        distances = np.concatenate([self.distances, others.distances], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return NeighborLists(np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1))


class GrownGraph(NamedTuple):
    """The graph of old and new rows, the old ones first.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n + m, d)
    edges : Edges
        The nearest neighbours of all rows.
    unconnected : AffinityGraph
        Their graph.
    graph : AffinityGraph
        The same with edges that join its components.
    sparser : AffinityGraph
        The connected graph of fewer neighbours.
    to_old : NeighborLists
        The neighbours of the new rows among the old ones.
    of_old : NeighborLists
        The neighbours of the old rows among themselves.
    """

    rows: Array
    edges: Edges
    unconnected: AffinityGraph
    graph: AffinityGraph
    sparser: AffinityGraph
    to_old: NeighborLists
    of_old: NeighborLists

    def weighed(self, weights: np.ndarray | None) -> GrownGraph:
        """Return the graphs of rows with weights."""
        graphs = (self.unconnected, self.graph, self.sparser)
        unconnected, graph, sparser = (weigh_graph(one, weights) for one in graphs)
        return self._replace(unconnected=unconnected, graph=graph, sparser=sparser)


def grow_graph(recipe: KNNGraph, graph: AffinityGraph, X: Array, X_new: Array, n_fewer: int) -> GrownGraph:
    """Join new rows to a graph with local weights that ``recipe`` has built on the rows of ``X``.

    Parameters
    ----------
    recipe : KNNGraph
        With ``weight='local'`` and the Euclidean metric.
    graph : AffinityGraph
        Without edges of given pairs.
    X : array or CSR matrix of shape (n, d)
        The rows of the graph.
    X_new : array or CSR matrix of shape (m, d)
        In the array library of ``X``; m may be 0.
    n_fewer : int
        The number of neighbours in the sparser graph.
    """
    k, n_jobs = int(recipe.n_neighbors), recipe.n_jobs
    of_old = known_neighbors(graph, X, k, n_jobs)
    to_old = NeighborLists(of_old.indices[:0], of_old.distances[:0])
    if X_new.shape[0]:
        to_old = _lists(k_nearest(X, k, queries=X_new, n_jobs=n_jobs))
    rows = append_rows(X, X_new)
    edges = _edges(_all_lists(of_old, to_old, X, X_new, k, n_jobs), rows, recall=graph.recall)
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
