"""Pairwise constraints as edges of a graph: with the largest weight and none, or with weights of either sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, asarray_like, to_numpy
from ..core.sparse import csr_parts, filter_entries, from_scipy_like, to_scipy, with_data
from ..errors import InputError
from .affinity import AffinityGraph
from .constraints import PairwiseConstraints


def overwrite_links(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """Give must-links the largest weight of the graph (1 if it has no edges), and remove the edges of cannot-links."""
    W = to_scipy(graph.weights)
    max_weight = float(W.data.max()) if W.nnz else 1.0
    must, cannot = (symmetric_pairs(pairs, graph.n_nodes) for pairs in (constraints.must_link, constraints.cannot_link))
    untouched = W - W.multiply(must + cannot)
    return _with_host_weights(graph, sp.csr_array(untouched + max_weight * must))


def add_links(graph: AffinityGraph, constraints: PairwiseConstraints) -> AffinityGraph:
    """Add edges of positive weight for must-links and of negative weight for cannot-links.

    The weights of either kind at a row sum to about ``strength`` times the mean degree, independently of the number of
    pairs: w_ij = ½ strength · d̄ · (1/m_i + 1/m_j), with m_i the number of pairs of that kind at row i. An edge between
    cannot-linked neighbours is replaced.
    """
    if constraints.strength == 0 or constraints.n_pairs == 0:
        return graph
    if graph.has_negative_weights and len(constraints.cannot_link):
        raise InputError(
            "the graph already has negative weights, which could not be distinguished from cannot-links",
            "use a graph with non-negative weights, or must-links only",
            code="negative_weights",
            parameter="constraints",
        )
    W, n = to_scipy(graph.weights), graph.n_nodes
    unit = constraints.strength * (abs(W).sum() / n or 1.0)
    cannot = symmetric_pairs(constraints.cannot_link, n)
    must_weights, cannot_weights = balanced_link_weights(constraints)
    linked = W - W.multiply(cannot) + unit * (must_weights - cannot_weights)
    return _with_host_weights(graph, sp.csr_array(linked), signed=bool(cannot.nnz) or graph.signed)


def has_repulsion(graph: AffinityGraph, constraints: PairwiseConstraints | None) -> bool:
    """Whether the negative weights of a graph are cannot-links."""
    links = constraints is not None and constraints.strength > 0 and len(constraints.cannot_link) > 0
    return links and graph.has_negative_weights


def split_by_sign(graph: AffinityGraph) -> tuple[AffinityGraph, AffinityGraph]:
    """Split the graph into its attracting edges and the absolute weights of the repelling ones; W = W⁺ - W⁻."""
    W = graph.weights
    data = csr_parts(W)[0]
    attracting = graph._with_weights(filter_entries(W, data > 0), signed=False)
    return attracting, AffinityGraph(filter_entries(with_data(W, -data), data < 0))


def attractive_part(graph: AffinityGraph) -> AffinityGraph:
    """Return the graph without its negative weights."""
    if graph.has_negative_weights:
        return split_by_sign(graph)[0]
    return graph._with_weights(graph.weights, signed=False) if graph.signed else graph


def group_means(values: Array, groups: np.ndarray) -> Array:
    """Replace every row of ``values`` by the mean over its group."""
    members = _members(groups)
    sizes = np.asarray(members.sum(axis=0)).ravel()
    means = (members.T @ to_numpy(values)) / sizes.reshape(-1, *[1] * (values.ndim - 1))
    return asarray_like(means[groups], values, dtype=values.dtype)


def _members(groups: np.ndarray) -> sp.csr_array:
    return sp.csr_array((np.ones(len(groups)), (np.arange(len(groups)), groups)))


def symmetric_pairs(pairs: np.ndarray, n: int) -> sp.csr_array:
    """Return the symmetric matrix with a one for every pair."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))


def balanced_link_weights(constraints: PairwiseConstraints) -> tuple[sp.csr_array, sp.csr_array]:
    """Return ½(1/m_i + 1/m_j) for must-links and for cannot-links, m_i the number of pairs of that kind at row i."""
    n = constraints.n_samples
    return _balanced(symmetric_pairs(constraints.must_link, n)), _balanced(symmetric_pairs(constraints.cannot_link, n))


def _balanced(pattern: sp.csr_array) -> sp.csr_array:
    counts = np.asarray(pattern.sum(axis=1)).ravel()
    per_row = sp.diags_array(1 / np.maximum(counts, 1)) @ pattern
    return sp.csr_array(0.5 * (per_row + per_row.T))


def _with_host_weights(graph: AffinityGraph, W: sp.csr_array, **changes: Any) -> AffinityGraph:
    """Return the graph with other weights, converted to its array library and precision."""
    W.eliminate_zeros()
    return graph._with_weights(from_scipy_like(W, csr_parts(graph.weights)[0]), **changes)
