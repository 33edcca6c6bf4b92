"""Cuts of hard labels on a graph: the objectives that spectral clustering relaxes."""

from __future__ import annotations

import numpy as np

from .._typing import LabelsLike, MatrixLike
from .._validation import check_labels
from ..core.backend import to_numpy
from ..core.sparse import matmul, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.cuts import CutProblem
from .matching import on_host


def ratio_cut(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Σ_k cut(A_k, rest) / ``|A_k|`` = tr(H'LH) for the normalised indicators H. [nle, Eqs 4-5]

    On a signed graph, the cut of a cluster is the absolute weight of all edges that leave it plus twice the absolute
    weight of the negative edges inside: what the signed Laplacian measures.

    Parameters
    ----------
    graph : AffinityGraph or symmetric matrix of shape (n, n)
    labels : array-like of shape (n,)

    Returns
    -------
    float

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> ratio_cut(path, [0, 1, 1])  # 1/1 + 1/2
    1.5
    """
    return _cut_value(graph, labels, by_degree=False)


def normalized_cut(graph: AffinityGraph | MatrixLike, labels: LabelsLike) -> float:
    """Σ_k cut(A_k, rest) / vol(A_k); a cluster without edges contributes 0.

    Parameters
    ----------
    graph : AffinityGraph or symmetric matrix of shape (n, n)
    labels : array-like of shape (n,)

    Returns
    -------
    float

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> normalized_cut(path, [0, 1, 1])  # 1/1 + 1/5
    1.2
    """
    return _cut_value(graph, labels, by_degree=True)


def _cut_value(graph: AffinityGraph | MatrixLike, labels: LabelsLike, *, by_degree: bool) -> float:
    """Return Σ_k cut(A_k, rest) / mass(A_k), where a node has mass 1 or its degree."""
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    codes = np.unique(check_labels(on_host(labels), n_samples=graph.n_nodes), return_inverse=True)[1]
    weights, degrees = to_scipy(graph.weights), to_numpy(graph.degrees).astype(np.float64)
    # An isolated node has cut 0, so that any positive mass makes a cluster of such nodes contribute 0.
    mass = np.where(degrees > 0, degrees, np.finfo(np.float64).tiny) if by_degree else np.ones_like(degrees)
    if graph.loops is not None:
        degrees = degrees - to_numpy(graph.loops)  # a loop adds to the volume of a cluster, but is never cut
    problem = CutProblem(lambda H: matmul(weights, H), None, degrees, mass)
    return problem.value(codes, int(codes.max()) + 1)
