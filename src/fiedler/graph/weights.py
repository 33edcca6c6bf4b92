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

Texts repeat each other with other names, dates and headers. Where the neighbours of a text are all copies of it, they
join it to nothing else: a group of copies is an island, and islands have the lowest cuts of all. So *near-copies* are
counted like copies, by their cosine, see `near_copies`. Rows without entries have no direction and are no one's copy.

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

from .._validation import first_few
from ..core.arrays import (
    Array,
    append_rows,
    asarray_like,
    namespace,
    normalize_rows,
    row_blocks,
    sq_row_norms,
    take_rows,
    to_numpy,
)
from ..core.sparse import csr_parts, from_coo, row_indices, to_scipy, with_data
from ..errors import InputError, NoKnownTermsWarning, warn
from .affinity import AffinityGraph
from .kernels import LOCAL_NEIGHBOR, pair_distances
from .neighbors import APPROXIMATE_ABOVE, Edges, k_nearest, nearest_of_rows
from .recipes import KNNGraph, nearest_edges, nth_distances
from .voronoi import order_of_equal_rows

MAX_TEXT_COSINE = 0.15  # mean of all pairs of rows that are taken for texts; pixels and measurements have more
TEMPLATE_COSINE, COPY_COSINE = 0.6, 0.9  # of near-copies: texts of one template, and copies with small changes
EMBEDDED_COSINE = 0.8  # of the embeddings of either
MAX_MERGED = 0.5  # share of the rows that texts of one template may be: more are the usual similarity of these rows
COSINE_ERROR = 1e-6  # of a cosine that is computed in single precision
TEMPLATE_NEIGHBORS = 9  # searched for near-copies, again until there are none

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

    ``nodes`` is the node of which each row is a copy; every one occurs. Rows without one have no edges. An edge of
    weight w between nodes with a ≥ b copies becomes a edges of weight w / a, in which each copy of the second node has
    about equally many; so there are not a · b of them. Kernel constants are left out.
    """
    data, columns, _ = csr_parts(graph.weights)
    rows, columns = (to_numpy(ends).astype(np.int64) for ends in (row_indices(graph.weights), columns))
    nodes = np.where(nodes == UNPLACED, graph.n_nodes, nodes)
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


UNPLACED = -1  # the node of rows that are left out of the graph


class CopiedRows(NamedTuple):
    """Which rows are equal.

    Examples
    --------
    >>> CopiedRows.of(np.array([[1.0], [0.0], [1.0]]))
    CopiedRows(first=array([0, 1]), nodes=array([0, 1, 0]))
    """

    first: np.ndarray  # the first of every group of equal rows, ascending unless reordered: the different rows
    nodes: np.ndarray  # (n,), the position in ``first`` of every row's group; -1 for rows that are left out

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
        return self.merge(np.argsort(order), order)

    def merge(self, groups: np.ndarray, firsts: np.ndarray) -> CopiedRows:
        """Return the rows with their nodes joined in groups; ``firsts`` is the node that stands for each."""
        return CopiedRows(self.first[firsts], np.append(groups, UNPLACED)[self.nodes])

    def without(self, left_out: np.ndarray) -> CopiedRows:
        """Return the rows without some nodes."""
        kept = np.flatnonzero(~left_out)
        return self.merge(np.where(left_out, UNPLACED, np.cumsum(~left_out) - 1), kept)

    @property
    def exist(self) -> bool:
        """Whether any rows are equal."""
        return len(self.first) < len(self.nodes)

    def total(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the sum of the weights of the copies of each different row; their number without weights."""
        placed = self.nodes != UNPLACED
        weights = None if weights is None else weights[placed]
        return np.bincount(self.nodes[placed], weights, minlength=len(self.first)).astype(np.float64)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, CopiedRows]:
        """Return which nodes have some of the rows, ascending, and these rows in the given order.

        Examples
        --------
        >>> CopiedRows.of(np.array([[1.0], [0.0], [1.0]])).take(np.array([2, 0]))
        (array([0]), CopiedRows(first=array([0]), nodes=array([0, 0])))
        """
        nodes = self.nodes[rows]
        placed = np.flatnonzero(nodes != UNPLACED)
        used, first, numbers = np.unique(nodes[placed], return_index=True, return_inverse=True)
        nodes[placed] = numbers
        return used, CopiedRows(placed[first], nodes)

    def expand(self, values: Array, unplaced: Any) -> Array:
        """Return the value of each row's node, and ``unplaced`` for rows that are left out."""
        expanded = take_rows(values, self.nodes)
        left_out = self.nodes == UNPLACED
        if not left_out.any():
            return expanded
        xp = namespace(values)
        mask = asarray_like(left_out.reshape(-1, *[1] * (values.ndim - 1)), values, dtype=xp.bool)
        return xp.where(mask, xp.asarray(unplaced, dtype=values.dtype), expanded)

    def join(self, X: Array, X_new: Array, left_out: np.ndarray | None = None) -> tuple[np.ndarray, CopiedRows]:
        """Return which new rows differ from all others, and all rows, with these as further nodes of ``X``.

        ``left_out`` are the new rows without a node.
        """
        placed = np.arange(X_new.shape[0]) if left_out is None else np.flatnonzero(~left_out)
        n_nodes, n_rows = len(self.first), len(self.nodes)
        first, nodes = different_rows(append_rows(X, take_rows(X_new, placed)))
        if not np.array_equal(first[:n_nodes], np.arange(n_nodes)):  # some old rows are equal, but were not joined
            fresh, nodes_of_placed = placed, n_nodes + np.arange(len(placed))
        else:
            fresh, nodes_of_placed = placed[first[n_nodes:] - n_nodes], nodes[n_nodes:]
        new_nodes = np.full(X_new.shape[0], UNPLACED)
        new_nodes[placed] = nodes_of_placed
        return fresh, CopiedRows(np.concatenate([self.first, n_rows + fresh]), np.concatenate([self.nodes, new_nodes]))


def ordered_copies(
    X: Array,
    accept: Callable[[CopiedRows], bool],
    are_texts: Callable[[Array], bool] = sp.issparse,
    n_jobs: int | None = None,
) -> tuple[CopiedRows | None, Templates | None]:
    """Return the different rows in the order in which they are clustered, None for all rows in their own order.

    Equal rows are clustered as one, which has the sum of their weights, if that is acceptable, and so are near-copies
    among texts, of which the second result has the rows that stand for others; sparse rows without entries are left
    out. The order does not depend on that of the rows, so that the partition does not either; of more than
    `APPROXIMATE_ABOVE` rows, neighbours may depend on it in any case.
    """
    copies, templates = CopiedRows.of(X), None
    if not accept(copies):
        copies = CopiedRows.none(X.shape[0])
    left_out = empty_rows(X)[copies.first]
    if left_out.any() and not left_out.all():
        copies = copies.without(left_out)
    if X.shape[0] <= APPROXIMATE_ABOVE:
        copies = copies.reorder(canonical_order(take_rows(X, copies.first) if copies.exist else X))
    near, cosine = near_copies(take_rows(X, copies.first), n_jobs) if are_texts(X) else (None, 1.0)
    if near is not None and accept(merged := copies.merge(near.nodes, near.first)):
        copies, nodes = merged, np.flatnonzero(near.total() > 1)
        templates = Templates(take_rows(X, copies.first[nodes]), nodes, copies.total()[nodes], cosine)
    return (None if X.shape[0] > APPROXIMATE_ABOVE and not copies.exist else copies), templates


def empty_rows(X: Array) -> np.ndarray:
    """Return which rows of a sparse matrix have no entry other than zero; none of a dense one, whose zeros are values.

    Examples
    --------
    >>> empty_rows(sp.csr_array([[0, 1], [0, 0]]))
    array([False,  True])
    """
    return to_numpy(sq_row_norms(sp.csr_array(X))) == 0 if sp.issparse(X) else np.zeros(X.shape[0], dtype=bool)


def warn_of_empty_rows(X: Array, *, stacklevel: int = 2) -> None:
    """Warn about sparse rows without entries, which are in no cluster."""
    empty = np.flatnonzero(empty_rows(X)) if sp.issparse(X) else np.array([])
    if len(empty):
        n, rows = len(empty), first_few([str(row) for row in empty])
        problem = f"{n} row(s) have no entries, as texts without a known term have none (rows {rows})"
        hint = "they are in no cluster: their label is -1, and all their memberships are equal"
        about: dict[str, Any] = {"n_documents": n, "rows": empty.tolist()}
        warn(problem, hint, category=NoKnownTermsWarning, stacklevel=stacklevel + 1, **about)


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


# -------------------------------------------------------------------------------------------------------- near-copies


class Templates(NamedTuple):
    """Rows that stand for near-copies."""

    rows: Array  # (n_templates, d)
    nodes: np.ndarray  # the node of each
    sizes: np.ndarray  # how many rows each stands for
    cosine: float  # of a near-copy with its template, at least

    def find(self, X: Array) -> np.ndarray:
        """Return the node of the template of which each row is a near-copy, `UNPLACED` for all others."""
        if sp.issparse(X) != sp.issparse(self.rows):
            X = sp.csr_array(X) if sp.issparse(self.rows) else X.toarray()
        X = normalize_rows(X)
        found, filled = np.full(X.shape[0], UNPLACED), np.flatnonzero(to_numpy(sq_row_norms(X)) > 0)
        if len(filled):
            nearest = k_nearest(normalize_rows(self.rows), 1, queries=X[filled])
            is_near = _cosines(nearest) >= self.cosine - COSINE_ERROR
            found[filled[is_near]] = self.nodes[to_numpy(nearest.columns)[is_near]]
        return found

    def take(self, nodes: np.ndarray) -> Templates | None:
        """Return the templates among some nodes, ascending, by their numbers among these; None if there are none."""
        kept = np.flatnonzero(np.isin(self.nodes, nodes))
        if not len(kept):
            return None
        numbers = np.searchsorted(nodes, self.nodes[kept])
        return Templates(take_rows(self.rows, kept), numbers, self.sizes[kept], self.cosine)

    @property
    def sentence(self) -> str:
        """How many rows are near-copies, and how they count."""
        n, largest = int(self.sizes.sum()), int(self.sizes.max())
        return (
            f"{n} rows are near-copies of one another (a cosine of {self.cosine:g} or more), in {len(self.nodes)} "
            f"group(s) of up to {largest}: each group counts as one row with their number as its weight."
        )


def may_be_texts(X: Array) -> bool:
    """Whether rows, in memory, may be texts or their embeddings: their mean cosine is low.

    Sparse rows must not have negative entries.
    """
    if not sp.issparse(X) and not isinstance(X, np.ndarray):
        return False
    if sp.issparse(X) and X.data.min(initial=0) < 0:
        return False
    norms = np.sqrt(sq_row_norms(X))
    mean = X.T @ (1 / np.where(norms > 0, norms, np.inf)) / X.shape[0]
    return float(mean @ mean) <= MAX_TEXT_COSINE


def near_copies(X: Array, n_jobs: int | None = None) -> tuple[CopiedRows | None, float]:
    """Group the different rows of a matrix of texts by near-copies, and return the least cosine of these.

    Every group has a first row, which no other first row is a near-copy of; all others belong to the most similar
    one. Texts of one template are near-copies, unless these are more than half of all rows; then copies with small
    changes are. Embeddings have a threshold of their own. Rows with a high mean cosine are no texts, and have none.

    The pairs are found by a search of a few neighbours, which is repeated among the first rows of groups until it finds
    no more; it takes the time of one search of all rows, and memory linear in their number.

    Examples
    --------
    >>> words = np.eye(40)
    >>> words[1] = words[0] + 0.1 * words[1]
    >>> near_copies(sp.csr_array(words))[0].nodes[:4]
    array([0, 0, 1, 2])
    """
    n = X.shape[0]
    if n < 2 or not may_be_texts(X):
        return None, 1.0
    unit = normalize_rows(X)
    edges = k_nearest(unit, min(TEMPLATE_NEIGHBORS, n - 1), n_jobs=n_jobs)
    for cosine in (TEMPLATE_COSINE, COPY_COSINE) if sp.issparse(X) else (EMBEDDED_COSINE,):
        near = np.unique(np.concatenate(_near_pairs(edges, cosine)))
        groups = CopiedRows(*np.unique(_templates_of(unit, near, cosine, n_jobs), return_inverse=True))
        is_exceptional = n - len(groups.first) <= MAX_MERGED * n
        if is_exceptional:
            break
    return (groups if groups.exist and (is_exceptional or sp.issparse(X)) else None), cosine


def _templates_of(unit: Array, near: np.ndarray, cosine: float, n_jobs: int | None) -> np.ndarray:
    """Return the row that stands for each row of unit length, itself unless it is one of those ``near`` another."""
    stands_for, rest, firsts = np.arange(unit.shape[0]), near, near[:0]
    while len(rest):
        firsts = np.concatenate([firsts, _dissimilar_rows(unit, rest, cosine, n_jobs)])
        nearest = k_nearest(unit[firsts], 1, queries=unit[rest], n_jobs=n_jobs)
        rest = np.setdiff1d(rest[_cosines(nearest) < cosine], firsts)
    if len(near):
        copies = np.setdiff1d(near, firsts)
        stands_for[copies] = np.sort(firsts)[
            to_numpy(k_nearest(unit[np.sort(firsts)], 1, queries=unit[copies]).columns)
        ]
    return stands_for


def _dissimilar_rows(unit: Array, rows: np.ndarray, cosine: float, n_jobs: int | None) -> np.ndarray:
    """Return some of the rows that are not near each other, by dropping those near an earlier one that is kept."""
    while len(rows) > 1:
        edges = k_nearest(unit[rows], min(TEMPLATE_NEIGHBORS, len(rows) - 1), n_jobs=n_jobs)
        first, second = _near_pairs(edges, cosine)
        if not len(first):
            break
        shape, ends = (len(rows), len(rows)), (np.concatenate([first, second]), np.concatenate([second, first]))
        pairs, dropped = sp.csr_array((np.ones(len(ends[0]), dtype=bool), ends), shape=shape), np.zeros(shape[0], bool)
        for row in range(len(rows)):
            if not dropped[row]:
                others = pairs.indices[pairs.indptr[row] : pairs.indptr[row + 1]]
                dropped[others[others > row]] = True
        rows = rows[~dropped]
    return rows


def _near_pairs(edges: Edges, cosine: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the edges between rows of unit length with at least this cosine."""
    is_near = _cosines(edges) >= cosine
    return to_numpy(edges.rows)[is_near], to_numpy(edges.columns)[is_near]


def _cosines(edges: Edges) -> np.ndarray:
    """Return the cosines of rows of unit length, whose squared distance is 2 - 2 cos."""
    return 1 - to_numpy(edges.distances) ** 2 / 2


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
