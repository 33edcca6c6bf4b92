"""Scores of a clustering, against known classes (external) and on a graph (internal)."""

from ..graph.community import modularity
from ..graph.cuts import average_association, min_max_cut, normalized_cut, ratio_cut
from ..graph.smoothing import dirichlet_energy
from .scores import (
    adjusted_rand_index,
    balanced_rand_index,
    calibration_error,
    clustering_accuracy,
    match_labels,
    normalized_mutual_information,
    purity,
    rand_index,
    score_table,
)

__all__ = [
    "adjusted_rand_index",
    "average_association",
    "balanced_rand_index",
    "calibration_error",
    "clustering_accuracy",
    "dirichlet_energy",
    "match_labels",
    "min_max_cut",
    "modularity",
    "normalized_cut",
    "normalized_mutual_information",
    "purity",
    "rand_index",
    "ratio_cut",
    "score_table",
]
