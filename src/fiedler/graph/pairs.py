"""Known pairs written into a graph: as the strongest weights and none at all, or as edges of either sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, asarray_like, to_numpy
from ..core.sparse import csr_parts, filter_entries, from_scipy_like, to_scipy, with_data
from .affinity import AffinityGraph
from .constraints import PairwiseConstraints


def overwrite_links(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """The graph with the largest weight it has (1 if it has none) for must-links, and no edge for cannot-links."""
    W = to_scipy(graph.weights)
    heaviest = float(W.data.max()) if W.nnz else 1.0
    must, cannot = (symmetric_pairs(pairs, graph.n_nodes) for pairs in (constraints.must_link, constraints.cannot_link))
    untouched = W - W.multiply(must + cannot)
    return _rebuilt(graph, sp.csr_array(untouched + heaviest * must))


def add_links(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """The graph with an edge of positive weight added for must-links and one of negative weight for cannot-links.

    The weights of either kind at a row sum to about ``strength`` times the mean degree, however many pairs there are:
    w_ij = ½ strength · d̄ · (1/m_i + 1/m_j), m_i the number of pairs of that kind at row i. Neighbours that must not be
    linked lose the edge they had.
    """
    if constraints.strength == 0 or constraints.n_pairs == 0:
        return graph
    if graph.has_negative_weights and len(constraints.cannot_link):
        raise ValueError("the graph has negative weights of its own, beside which cannot-links could not be told")
    W, n = to_scipy(graph.weights), graph.n_nodes
    unit = constraints.strength * (abs(W).sum() / n or 1.0)
    cannot = symmetric_pairs(constraints.cannot_link, n)
    votes = link_votes(constraints)
    linked = W - W.multiply(cannot) + unit * (votes[0] - votes[1])
    return _rebuilt(graph, sp.csr_array(linked), signed=bool(cannot.nnz) or graph.signed)


def has_repulsion(graph: AffinityGraph, constraints: PairwiseConstraints | None) -> bool:
    """Whether the negative weights of a graph are cannot-links."""
    links = constraints is not None and constraints.strength > 0 and len(constraints.cannot_link) > 0
    return links and graph.has_negative_weights


def split_by_sign(graph: AffinityGraph) -> tuple[AffinityGraph, AffinityGraph]:
    """The attracting edges with what else the graph has, and the sizes of the repelling ones; W = W⁺ - W⁻."""
    W = graph.weights
    data = csr_parts(W)[0]
    return graph.with_weights(filter_entries(W, data > 0), signed=False), AffinityGraph(
        filter_entries(with_data(W, -data), data < 0)
    )


def attractive_part(graph: AffinityGraph) -> AffinityGraph:
    """The graph without the weights that repel."""
    if graph.has_negative_weights:
        return split_by_sign(graph)[0]
    return graph.with_weights(graph.weights, signed=False) if graph.signed else graph


def contract_groups(graph: AffinityGraph, groups: np.ndarray) -> AffinityGraph:
    """One node a group: weights between groups added up, those within as self-loops."""
    members = _members(groups)
    W = sp.csr_array(members.T @ to_scipy(graph.weights) @ members)
    loops = W.diagonal() if graph.loops is None else W.diagonal() + members.T @ to_numpy(graph.loops)
    W.setdiag(0)
    home = csr_parts(graph.weights)[0]
    return _rebuilt(graph, W, loops=asarray_like(np.maximum(loops, 0), home, dtype=home.dtype))


def group_means(values: Array, groups: np.ndarray) -> Array:
    """Every row of ``values`` replaced by the mean over its group."""
    members = _members(groups)
    sizes = np.asarray(members.sum(axis=0)).ravel()
    means = (members.T @ to_numpy(values)) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    return asarray_like(means[groups], values, dtype=values.dtype)


def _members(groups: np.ndarray) -> sp.csr_array:
    return sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))


def symmetric_pairs(pairs: np.ndarray, n: int) -> sp.csr_array:
    """Ones for both orders of every pair."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def link_votes(constraints: PairwiseConstraints) -> tuple[sp.csr_array, sp.csr_array]:
    """½(1/m_i + 1/m_j) for every must-link and every cannot-link, m_i the number of pairs of that kind at row i."""
    pairs, n = (constraints.must_link, constraints.cannot_link), constraints.n_samples
    return _shared(symmetric_pairs(pairs[0], n)), _shared(symmetric_pairs(pairs[1], n))


def _shared(pattern: sp.csr_array) -> sp.csr_array:
    counts = np.asarray(pattern.sum(axis=1)).ravel()
    share = sp.diags_array(1 / np.maximum(counts, 1)) @ pattern
    return sp.csr_array(0.5 * (share + share.T))


def _rebuilt(graph: AffinityGraph, W: sp.csr_array, **changes: Any) -> AffinityGraph:
    """Other weights, in the library and precision of the graph."""
    W.eliminate_zeros()
    return graph.with_weights(from_scipy_like(W, csr_parts(graph.weights)[0]), **changes)
