"""Which pairs to ask about: those whose answer the model can guess least, where it matters.

An edge (i, j) of the graph joins rows that look alike. With memberships q the model believes p = q_i'q_j that they
belong together; the answer tells most where the entropy of p is largest, at the boundary between clusters, and little
at rows that few others resemble. So edges are ranked by

    H(q_i'q_j) · min(1, d_i/d̃, d_j/d̃),    d̃ the median degree,

and taken from the top, a row and its nearest neighbours being asked about once only: they would have the same answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int
from ..core.backend import to_numpy
from ..core.sparse import row_indices, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.constraints import check_constraints
from ..graph.pairs import split_by_sign
from ..graph.smoothing import resolvent

HEAVIEST = 2_000_000  # edges, at most, that are looked at
NEAREST = 8  # neighbours of a row that is asked about, which are not
BLUR = 0.9  # how far hard labels are spread to find what is uncertain


def suggest_pairs(model: Any, n_pairs: int = 10, *, constraints: Any = None) -> np.ndarray:
    """Pairs of rows to ask a person about, the most telling first.

    Parameters
    ----------
    model : fitted estimator
        With ``graph_`` and ``memberships_``, ``label_distributions_`` or ``labels_``.
    n_pairs : int, default=10
    constraints : PairwiseConstraints, optional
        What is known already; pairs that follow from it are not asked again.

    Returns
    -------
    ndarray of shape (at most n_pairs, 2)
        Row numbers. Fewer where the graph has no more edges apart from each other.

    Examples
    --------
    >>> from fiedler import KNNGraph, SpectralClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.supervision import PairwiseConstraints, suggest_pairs
    >>> X, y = two_moons(n_samples=300, noise=0.15, random_state=0)
    >>> model = SpectralClustering(2, KNNGraph(10), random_state=0).fit(X)
    >>> asked = suggest_pairs(model, 20)
    >>> together = y[asked[:, 0]] == y[asked[:, 1]]  # what the person answers
    >>> pairs = PairwiseConstraints(asked[together], asked[~together], len(X))
    >>> model.fit(X, constraints=pairs).labels_.shape
    (300,)
    """
    check_is_fitted(model)
    graph = getattr(model, "graph_", None)
    if not isinstance(graph, AffinityGraph):
        raise ValueError(f"{type(model).__name__} has no graph whose edges could be asked about")
    count, known = check_int(n_pairs, "n_pairs"), check_constraints(constraints, graph)
    if graph.has_negative_weights:
        graph = split_by_sign(graph)[0]
    first, second = _heavy_edges(graph)
    if known is not None:
        asked = _implied(first, second, known.closure())
        first, second = first[~asked], second[~asked]
    worth = informativeness(_memberships(model, graph), to_numpy(graph.degrees), first, second)
    return _apart(graph, first, second, worth, count)


def informativeness(memberships: np.ndarray, degrees: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """H(q_i'q_j) · min(1, d_i/d̃, d_j/d̃) of every pair, H in bits."""
    p = np.clip((memberships[first] * memberships[second]).sum(axis=1), 1e-12, 1 - 1e-12)
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    relative = np.minimum(degrees / max(float(np.median(degrees)), 1e-300), 1)
    return entropy * np.minimum(relative[first], relative[second])


def _memberships(model: Any, graph: AffinityGraph) -> np.ndarray:
    """The model's own, or its labels spread over the graph."""
    for name in ("memberships_", "label_distributions_"):
        if hasattr(model, name):
            shares = to_numpy(getattr(model, name)).astype(np.float64)
            return np.where(shares.sum(axis=1)[:, None] > 0, shares, 1 / shares.shape[1])  # an undecided row may be any
    if not hasattr(model, "labels_"):
        raise ValueError(f"{type(model).__name__} makes no clusters or classes, so there is nothing to ask about")
    labels = to_numpy(model.labels_)
    host = AffinityGraph(to_scipy(graph.weights).astype(np.float64))
    return resolvent(np.eye(int(labels.max()) + 1)[labels], host, BLUR, tol=1e-4)


def _heavy_edges(graph: AffinityGraph) -> tuple[np.ndarray, np.ndarray]:
    W = to_scipy(graph.weights)
    rows = row_indices(W)
    upper = np.flatnonzero(rows < W.indices)
    if len(upper) > HEAVIEST:
        upper = upper[np.argpartition(-W.data[upper], HEAVIEST)[:HEAVIEST]]
    return rows[upper].astype(np.int64), W.indices[upper].astype(np.int64)


def _implied(first: np.ndarray, second: np.ndarray, closed: Any) -> np.ndarray:
    """Whether the answer for a pair is known."""
    n = closed.n_samples
    answered = np.concatenate([links[:, 0] * n + links[:, 1] for links in (closed.must_link, closed.cannot_link)])
    return np.isin(np.minimum(first, second) * n + np.maximum(first, second), answered)


def _apart(graph: AffinityGraph, first: np.ndarray, second: np.ndarray, worth: np.ndarray, count: int) -> np.ndarray:
    """The best pairs, none at a row that is asked about already, or next to one."""
    W = to_scipy(graph.weights)
    near = np.zeros(graph.n_nodes, dtype=bool)
    chosen: list[tuple[int, int]] = []
    for at in np.argsort(-worth, kind="stable"):
        if len(chosen) == count or worth[at] <= 0:
            break
        pair = int(first[at]), int(second[at])
        if near[list(pair)].any():
            continue
        chosen.append(pair)
        for row in pair:
            span = slice(W.indptr[row], W.indptr[row + 1])
            near[row] = True
            near[W.indices[span][np.argsort(-W.data[span], kind="stable")[:NEAREST]]] = True
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)
