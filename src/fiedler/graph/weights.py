"""Rows that occur many times, which a search for neighbours can leave out, and the different rows among all.

The nearest neighbours of a row with more than k equal rows are k of these, at distance 0. So they need no search, and
no other row needs more than a few of them as neighbours. Without them, cells of equal rows are not searched over and
over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight

from ..core.arrays import Array, append_rows, asarray_like, namespace, row_blocks, sq_row_norms, to_numpy
from ..core.sparse import csr_parts, from_coo, row_indices, with_data
from ..errors import InputError
from .affinity import AffinityGraph

# ---------------------------------------------------------------------------------------------------------------------
# Graphs of rows with weights: a row of weight m stands for m equal rows.
#
# With w the graph of the different rows, the graph of the weighted rows is
#
#     w'_ij = √(m_i m_j) w_ij.
#
# It is the contraction of a graph of all copies, in which each of the m_i copies of row i is joined to each of the m_j
# copies of its neighbour j with weight w_ij / √(m_i m_j): cut, volumes and modularity of a partition that keeps copies
# together are the same on both. Where neighbours have equal weights, every copy has the degree of its row, as every row
# of a neighbour graph has about the same degree, wherever it is dense. So a volume is about a number of rows. Without
# the root, w_ij m_i m_j, volumes would grow with the square of the number of copies, and a few rows with many copies
# would outweigh all others.
#
# Copies are not joined to each other. Such edges would be self-loops of w', of no effect on cuts, and their weight
# relative to the others would depend on the unit of m; as it is, only ratios of weights matter.


def check_sample_weight(sample_weight: Any, n_samples: int, *, allow_zero: bool = False) -> np.ndarray | None:
    """Return the weights of rows as a NumPy array of doubles; None without weights.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
    n_samples : int
    allow_zero : bool, default=False
        Whether some rows may have weight zero; a node of a graph may not.
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
    """Return weights divided by their mean; None if all are equal.

    Examples
    --------
    >>> import numpy as np
    >>> relative_weights(np.array([10.0, 30.0]))
    array([0.5, 1.5])
    """
    return None if (weights == weights[0]).all() else weights / weights.mean()


def check_relative_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Return positive weights of mean one; None without weights, or if all are equal."""
    weights = check_sample_weight(sample_weight, n_samples)
    return None if weights is None else relative_weights(weights)


def weigh_graph(graph: AffinityGraph, weights: np.ndarray | None) -> AffinityGraph:
    """Return the graph √(m_i m_j) w_ij of rows with weights m; the graph itself if these are None.

    Parameters
    ----------
    graph : AffinityGraph
        The graph of the different rows.
    weights : ndarray of shape (n_nodes,) or None
        m, positive.

    Examples
    --------
    >>> import numpy as np
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
    """Return a graph of all copies of the nodes of a graph whose contraction is that graph.

    An edge of weight w between nodes with a ≥ b copies becomes a edges of weight w / a, in which each copy of the
    second node has about equally many; so there are not a · b of them. Kernel constants are left out.

    Parameters
    ----------
    graph : AffinityGraph
        Without self-loops.
    nodes : ndarray of shape (n,)
        The node of which each row is a copy; every node occurs.
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


# ---------------------------------------------------------------------------------------------------------------------


class Copies(NamedTuple):
    """Groups of equal rows, each of more than ``k``.

    Attributes
    ----------
    members : ndarray of shape (m,)
        The rows of all groups, group by group, in ascending order within each.
    starts : ndarray of shape (n_groups + 1,)
        Group g is ``members[starts[g]:starts[g + 1]]``.
    k : int
    """

    members: np.ndarray
    starts: np.ndarray
    k: int

    @classmethod
    def of(cls, X: np.ndarray | sp.csr_array, k: int) -> Copies:
        """Find the groups of rows."""
        order, differs = _order_of_equal_rows(X)
        starts = np.flatnonzero(differs)
        sizes = np.diff(starts)
        is_large = sizes > k
        kept = np.repeat(is_large, sizes)
        return cls(order[kept], np.concatenate([[0], np.cumsum(sizes[is_large])]), k)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.starts) - 1

    def searched(self, n: int) -> np.ndarray:
        """Return the rows, of ``n``, that have to be searched: all but those beyond the first k + 1 of each group."""
        rank = np.arange(len(self.members)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        is_searched = np.ones(n, dtype=bool)
        is_searched[self.members[rank > self.k]] = False
        return np.flatnonzero(is_searched)

    def neighbors(self) -> np.ndarray:
        """Return the k neighbours of all members, of shape (m, k).

        The members of a group form a ring, in which every one is joined to those at distances from 1 to half of the
        ring, so that no part of the group can be cut off at few edges.
        """
        sizes = np.diff(self.starts)
        steps = np.repeat(_steps(sizes, self.k), sizes, axis=0)
        first, size = (np.repeat(part, sizes)[:, None] for part in (self.starts[:-1], sizes))
        place = np.arange(len(self.members))[:, None] - first
        return self.members[first + (place + steps) % size]

    def complete(
        self, n: int, searched: np.ndarray, distances: np.ndarray, indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances and neighbours of all ``n`` rows from those of the rows that were searched."""
        all_distances, all_indices = np.zeros((n, self.k), dtype=distances.dtype), np.empty((n, self.k), dtype=np.int64)
        all_distances[searched], all_indices[searched] = distances, searched[indices]
        all_distances[self.members], all_indices[self.members] = 0, self.neighbors()
        return all_distances, all_indices


class CopiedRows(NamedTuple):
    """Which rows are equal.

    Attributes
    ----------
    first : ndarray of shape (n_nodes,)
        The first one of every group of equal rows, ascending unless they are reordered: the different rows.
    nodes : ndarray of shape (n,)
        The position in ``first`` of every row's group.

    Examples
    --------
    >>> CopiedRows.of(np.array([[1.0], [0.0], [1.0]]))
    CopiedRows(first=array([0, 1]), nodes=array([0, 1, 0]))
    """

    first: np.ndarray
    nodes: np.ndarray

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

    def join(self, X: Array, X_new: Array) -> tuple[np.ndarray, CopiedRows]:
        """Return which new rows are different from all others, and all rows, these being further nodes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_nodes, d)
            The different rows, in their order.
        X_new : array or CSR matrix of shape (m, d)
        """
        n_nodes, n_rows = len(self.first), len(self.nodes)
        first, nodes = different_rows(append_rows(X, X_new))
        if not np.array_equal(first[:n_nodes], np.arange(n_nodes)):  # some old rows are equal, but were not joined
            fresh, new_nodes = np.arange(X_new.shape[0]), n_nodes + np.arange(X_new.shape[0])
        else:
            fresh, new_nodes = first[n_nodes:] - n_nodes, nodes[n_nodes:]
        return fresh, CopiedRows(np.concatenate([self.first, n_rows + fresh]), np.concatenate([self.nodes, new_nodes]))


def different_rows(X: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the first one of every group of equal rows, ascending, and the position of its group for every row.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Validated rows, of any array library.

    Examples
    --------
    >>> different_rows(np.array([[1.0], [0.0], [1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    order, differs = _order_of_equal_rows(X if sp.issparse(X) else to_numpy(X))
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

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Validated rows, of any array library.

    Examples
    --------
    >>> canonical_order(np.array([[0.0], [9.0], [4.0]]))
    array([2, 0, 1])
    """
    rows = X if sp.issparse(X) else to_numpy(X)
    order, _ = _order_of_equal_rows(rows)
    distances = _distances_from_mean(rows).astype(np.float32)
    return order[np.argsort(distances[order], kind="stable")]


def _distances_from_mean(X: np.ndarray | sp.csr_array) -> np.ndarray:
    """Return the distances of rows from their mean, rounded to single precision, relative to the largest entry."""
    scale = float(abs(X).max()) or 1.0
    if sp.issparse(X):
        rows = X.astype(np.float64) / scale
        mean = _rounded(rows.sum(axis=0) / X.shape[0])
        return np.sqrt(np.maximum(sq_row_norms(rows) - 2 * (rows @ mean) + mean @ mean, 0))
    parts, of_part = list(row_blocks(X.shape[0], 24 * X.shape[1], X)), lambda part: X[part].astype(np.float64) / scale
    mean = _rounded(sum(of_part(part).sum(axis=0) for part in parts) / X.shape[0])
    return np.concatenate([np.sqrt(((of_part(part) - mean) ** 2).sum(axis=1)) for part in parts])


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).ravel().astype(np.float32).astype(np.float64)


def _order_of_equal_rows(X: np.ndarray | sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of n rows in which equal ones are adjacent and ascending, and where groups begin, n included.

    Equal rows have the same product with a random vector.
    """
    n, row_bytes = X.shape[0], X.dtype.itemsize * X.shape[1]
    direction = np.asarray(np.random.RandomState(0).normal(size=X.shape[1]), dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite products are compared by their rows
        if sp.issparse(X):
            products = X @ direction
        else:  # X @ direction may differ for equal rows
            products = np.concatenate([(X[part] * direction).sum(axis=1) for part in row_blocks(n, 2 * row_bytes, X)])
    order = np.argsort(products, kind="stable")
    differs = np.ones(n + 1, dtype=bool)
    alike = np.flatnonzero(products[order[1:]] == products[order[:-1]])
    for part in row_blocks(len(alike), 4 * row_bytes, products) if len(alike) else ():
        first, second = X[order[alike[part]]], X[order[alike[part] + 1]]
        unequal = first != second
        differs[alike[part] + 1] = unequal.sum(axis=1) > 0 if sp.issparse(X) else unequal.any(axis=1)
    return order, differs


def _steps(sizes: np.ndarray, k: int) -> np.ndarray:
    """Return k different distances in a ring of each size, which grow geometrically from 1 to half of the ring.

    Examples
    --------
    >>> _steps(np.array([5, 1000]), 4).tolist()
    [[1, 2, 3, 4], [1, 8, 63, 500]]
    """
    steps = np.zeros((len(sizes), k), dtype=np.int64)
    for j in range(k):
        wanted = np.round((sizes / 2) ** (j / max(k - 1, 1))).astype(np.int64)
        after_last = steps[:, j - 1] + 1 if j else np.ones_like(sizes)
        steps[:, j] = np.minimum(np.maximum(wanted, after_last), sizes - k + j)
    return steps
