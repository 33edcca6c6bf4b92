"""The scores by which methods are usually compared, in one dictionary."""

from __future__ import annotations

from .._typing import LabelsLike, MatrixLike
from ..graph.affinity import AffinityGraph
from ..graph.community import modularity
from ..graph.cuts import normalized_cut
from .external import adjusted_rand_index, normalized_mutual_information
from .matching import clustering_accuracy

EXTERNAL = {"AC": clustering_accuracy, "NMI": normalized_mutual_information, "ARI": adjusted_rand_index}
INTERNAL = {"cut": normalized_cut, "modularity": modularity}


def score_table(
    y_true: LabelsLike | None, labels: LabelsLike, graph: AffinityGraph | MatrixLike | None = None
) -> dict[str, float]:
    """Score labels against known classes, on a graph, or both.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        The classes, for accuracy after matching (AC), normalised mutual information and adjusted Rand index.
    labels : array-like of shape (n,)
        The clusters.
    graph : AffinityGraph or symmetric matrix of shape (n, n), optional
        For the normalised cut (lower is better) and the modularity (higher is better).

    Returns
    -------
    dict of floats

    Examples
    --------
    >>> from fiedler.metrics import score_table
    >>> score_table([0, 0, 1, 1], [1, 1, 0, 0])
    {'AC': 1.0, 'NMI': 1.0, 'ARI': 1.0}
    """
    scores = {} if y_true is None else {name: score(y_true, labels) for name, score in EXTERNAL.items()}
    if graph is not None:
        scores |= {name: score(graph, labels) for name, score in INTERNAL.items()}
    return {name: float(value) for name, value in scores.items()}
