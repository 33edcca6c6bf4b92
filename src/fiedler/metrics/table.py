"""The scores that people compare methods by, at once."""

from __future__ import annotations

from typing import Any

from ..graph.community import modularity
from .external import adjusted_rand_index, normalized_mutual_information
from .internal import normalized_cut
from .matching import clustering_accuracy

EXTERNAL = {"AC": clustering_accuracy, "NMI": normalized_mutual_information, "ARI": adjusted_rand_index}
INTERNAL = {"cut": normalized_cut, "modularity": modularity}


def score_table(y_true: Any, labels: Any, graph: Any = None) -> dict[str, float]:
    """Scores of labels against a truth, on a graph, or both.

    Parameters
    ----------
    y_true : array of shape (n,) or None
        The classes: accuracy after matching (AC), normalised mutual information and adjusted Rand index.
    labels : array of shape (n,)
    graph : AffinityGraph, optional
        The normalised cut (less is better) and the modularity (more is better).

    Returns
    -------
    dict of floats

    Examples
    --------
    >>> from fiedler.metrics import score_table
    >>> score_table([0, 0, 1, 1], [1, 1, 0, 0])
    {'AC': 1.0, 'NMI': 1.0, 'ARI': 1.0}
    """
    found = {} if y_true is None else {name: measure(y_true, labels) for name, measure in EXTERNAL.items()}
    if graph is not None:
        found |= {name: measure(graph, labels) for name, measure in INTERNAL.items()}
    return {name: float(value) for name, value in found.items()}
