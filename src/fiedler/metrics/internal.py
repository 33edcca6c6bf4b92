"""Scores of hard labels on a graph: what the relaxed objectives of spectral clustering stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_labels
from ..core.backend import to_numpy
from ..core.sparse import to_scipy
from ..graph.affinity import AffinityGraph
from .matching import on_host


def _cuts(graph: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every cluster: the weight of the edges that leave it, its size, and its volume (sum of degrees)."""
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    labels = check_labels(on_host(labels), n_samples=graph.n_nodes)
    _, codes = np.unique(labels, return_inverse=True)
    sizes = np.bincount(codes)
    onehot = np.eye(len(sizes))[codes]
    degrees = to_numpy(graph.degrees).astype(np.float64)
    volumes = onehot.T @ degrees
    inside = np.sum(onehot * (to_scipy(graph.weights) @ onehot), axis=0)
    if graph.loops is not None:
        inside = inside + onehot.T @ to_numpy(graph.loops)
    return volumes - inside, sizes, volumes


def ratio_cut(graph: Any, labels: Any) -> float:
    """Σ_k cut(A_k, rest) / ``|A_k|`` = tr(H'LH) for the normalised indicators H. [nle, Eqs 4-5]

    On a signed graph the cut of a cluster is the size of all weights that leave it plus twice that of the negative
    ones inside: what the signed Laplacian measures.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> ratio_cut(path, [0, 1, 1])  # 1/1 + 1/2
    1.5
    """
    cuts, sizes, _ = _cuts(graph, labels)
    return float(np.sum(cuts / sizes))


def normalized_cut(graph: Any, labels: Any) -> float:
    """Σ_k cut(A_k, rest) / vol(A_k), a cluster without edges counting 0.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> normalized_cut(path, [0, 1, 1])  # 1/1 + 1/5
    1.2
    """
    cuts, _, volumes = _cuts(graph, labels)
    return float(np.sum(cuts[volumes > 0] / volumes[volumes > 0]))
