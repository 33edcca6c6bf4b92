"""The choice among partitions of several views and methods by their agreement, without labels.

Partitions of one method in one view are a *family*; they differ in an option. A partition that many families come
close to, each in its own way, is less likely to be an artefact of one of them. The consensus of partition i is

    s_i = Σ_f w_f max_{j ∈ f} ARI⁺(i, j) / Σ_f w_f,        f over the families other than that of i,

with the adjusted Rand index, 0 where it is negative. Families of a view whose graph has clearer clusters count more:
with g_v = log λ_{K+1}/λ_K, the eigengap of the graph of view v, its families have the weight

    w_f = √max(g_v / max_u g_u, `MIN_RELATIVE_GAP`).

The partition of the highest consensus is chosen, or one of the rows themselves whose consensus is equally high. Then
every family votes, with its partition that is closest to the chosen one: the share of the votes of row i for cluster k
is

    v_ik = Σ_f w_f [row i is in the cluster of f that is matched with cluster k] / Σ_f w_f,

where clusters are matched one to one so that as many rows as possible agree. Rows with weights count by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..core.selection import first_best
from .candidates import ROWS, Candidate, agrees_as_well

MIN_RELATIVE_GAP = 0.1  # of a view's eigengap to the largest
TIE = 0.01  # a smaller difference of the consensus is none
LISTED_ONLY = ("spectral",)  # methods whose partitions do not take part


def view_weights(eigengaps: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the families of each view from the eigengaps of the views' graphs."""
    largest = max(eigengaps.values())
    relative = {view: gap / largest if largest > 0 else 1.0 for view, gap in eigengaps.items()}
    return {view: math.sqrt(max(gap, MIN_RELATIVE_GAP)) for view, gap in relative.items()}


def with_consensus(
    candidates: Sequence[Candidate], weights: Mapping[str, float], row_weights: np.ndarray | None = None
) -> list[Candidate]:
    """Return the candidates with their consensus: 0 without another family, NaN for those that do not take part.

    Parameters
    ----------
    candidates : sequence of Candidate
    weights : dict
        By view, see `view_weights`.
    row_weights : ndarray of shape (n,), optional
    """
    taking_part = _taking_part(candidates)
    agreement = agreement_matrix([candidates[i].labels for i in taking_part], row_weights)
    families = [_family(candidates[i]) for i in taking_part]
    names = sorted(set(families))
    scored = list(candidates)
    if len(names) < 2:
        return [replace(one, consensus=0.0) if i in taking_part else one for i, one in enumerate(scored)]
    best = np.stack([agreement[:, [family == name for family in families]].max(axis=1) for name in names], axis=1)
    of_family = np.array([weights[view] for view, _ in names])
    for i, family, row in zip(taking_part, families, best):
        others = np.array([name != family for name in names])
        scored[i] = replace(candidates[i], consensus=float(np.average(row[others], weights=of_family[others])))
    return scored


def select_by_consensus(candidates: Sequence[Candidate], n_known: int = 0) -> Candidate:
    """Select the partition of the highest consensus among those of the best agreement with ``n_known`` known values.

    A partition of the rows as they are is preferred if its consensus is as high up to `TIE`.
    """
    competing = [candidate for candidate in candidates if not math.isnan(candidate.consensus)]
    best = max((candidate.agreement for candidate in competing), default=math.nan)
    agreeing = [candidate for candidate in competing if agrees_as_well(candidate.agreement, best, n_known)]
    highest = max(candidate.consensus for candidate in agreeing)
    of_rows = [one for one in agreeing if one.view == ROWS and one.consensus >= highest - TIE]
    return first_best(of_rows or agreeing, lambda candidate: candidate.consensus)


def vote_shares(
    candidates: Sequence[Candidate],
    chosen: Candidate,
    n_clusters: int,
    weights: Mapping[str, float],
    row_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the share of the votes for each cluster of the chosen partition, shape (n, n_clusters)."""
    closest: dict[tuple[str, str], tuple[float, Candidate]] = {}
    for i in _taking_part(candidates):
        one = candidates[i]
        agreement = math.inf if one is chosen else rand_index(chosen.labels, one.labels, row_weights)
        if agreement > closest.get(_family(one), (-math.inf, one))[0]:
            closest[_family(one)] = (agreement, one)
    votes, total, rows = np.zeros((len(chosen.labels), n_clusters), np.float32), 0.0, np.arange(len(chosen.labels))
    for (view, _), (_, one) in closest.items():
        votes[rows, match_clusters(one.labels, chosen.labels, n_clusters, row_weights)] += weights[view]
        total += weights[view]
    return votes / total


def agreement_matrix(partitions: Sequence[np.ndarray], row_weights: np.ndarray | None = None) -> np.ndarray:
    """Return the adjusted Rand indices of all pairs of partitions, 0 where they are negative."""
    agreement = np.eye(len(partitions))
    for i, j in combinations(range(len(partitions)), 2):
        agreement[i, j] = agreement[j, i] = max(0.0, rand_index(partitions[i], partitions[j], row_weights))
    return agreement


def rand_index(a: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Compute the adjusted Rand index of labels 0, 1, ...: without any checks, for hundreds of pairs of partitions.

    A pair of rows of weights m_i and m_j counts m_i m_j times.
    """
    width = int(b.max()) + 1
    together, in_a, in_b, total = (_n_pairs(labels, weights) for labels in (a * width + b, a, b, np.zeros_like(a)))
    expected, largest = in_a * in_b / total, (in_a + in_b) / 2
    return 1.0 if largest == expected else (together - expected) / (largest - expected)


def _n_pairs(labels: np.ndarray, weights: np.ndarray | None) -> float:
    """Count the pairs of different rows with the same label: [(Σ_i m_i)² - Σ_i m_i²] / 2, added over the labels."""
    counts = np.bincount(labels, weights).astype(np.float64)
    own = counts if weights is None else np.bincount(labels, weights**2)
    return float(np.sum(counts**2 - own)) / 2


def match_clusters(
    labels: np.ndarray, reference: np.ndarray, n_clusters: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Renumber the clusters of a partition so that as many rows as possible have the label of the reference."""
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (labels, reference), 1 if weights is None else weights)
    _, matched = linear_sum_assignment(counts, maximize=True)
    return matched[labels]


def _taking_part(candidates: Sequence[Candidate]) -> list[int]:
    """Return the positions of the candidates with the most clusters, other than those `LISTED_ONLY`."""
    competing = [i for i, candidate in enumerate(candidates) if candidate.family not in LISTED_ONLY]
    most = max(candidates[i].n_clusters for i in competing)
    return [i for i in competing if candidates[i].n_clusters == most]


def _family(candidate: Candidate) -> tuple[str, str]:
    return candidate.view, candidate.family
