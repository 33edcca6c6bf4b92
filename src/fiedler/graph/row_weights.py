"""Graphs of rows with weights: a row of weight m stands for m equal rows.

With w the graph of the different rows, the graph of the weighted rows is

    w'_ij = √(m_i m_j) w_ij.

It is the contraction of a graph of all copies, in which each of the m_i copies of row i is joined to each of the m_j
copies of its neighbour j with weight w_ij / √(m_i m_j): cut, volumes and modularity of a partition that keeps copies
together are the same on both. Where neighbours have equal weights, every copy has the degree of its row, as every row
of a neighbour graph has about the same degree, wherever it is dense. So a volume is about a number of rows. Without the
root, w_ij m_i m_j, volumes would grow with the square of the number of copies, and a few rows with many copies would
outweigh all others.

Copies are not joined to each other. Such edges would be self-loops of w', of no effect on cuts, and their weight
relative to the others would depend on the unit of m; as it is, only ratios of weights matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..core.backend import asarray_like, namespace, to_numpy
from ..core.sparse import csr_parts, from_coo, row_indices, with_data
from ..errors import InputError
from .affinity import AffinityGraph


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
