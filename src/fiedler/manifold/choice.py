"""The comparison of views and methods: which partitions are found, on which rows, and which one they agree on.

Several methods run in the rows themselves. If these agree, that is enough; otherwise other views follow. The choice is
by their agreement, see below.

Of many rows a random sample is compared, so that a million rows do not pay for several neighbour searches. The best
communities of all rows take part in the comparison, too, and are kept unless another partition of the sample has a
clearly higher consensus. Otherwise only the view of the chosen partition is built for all rows, and every row joins the
cluster of its nearest sampled row there. Rows outside the sample have the votes of their nearest sampled row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..core.arrays import Array, first_best, take_rows, to_numpy
from ..graph.constraints import PairwiseConstraints
from ..graph.neighbors import k_nearest
from ..graph.recipes import DEFAULT_NEIGHBORS
from ..graph.sizes import SizeBounds
from ..metrics.scores import agreement_matrix, match_clusters, weighted_ari
from .candidates import MAX_SEARCHES, ROWS, Candidate, PartitionScorer, agrees_as_well
from .views import INDICATORS, VIEWS, View, find_in_rows, find_in_views

# ---------------------------------------------------------------------------------------------------------------------
# The choice among partitions of several views and methods by their agreement, without labels.
#
# Partitions of one method in one view are a *family*; they differ in an option. A partition that many families come
# close to, each in its own way, is less likely to be an artefact of one of them. The consensus of partition i is
#
#     s_i = Σ_f w_f max_{j ∈ f} ARI⁺(i, j) / Σ_f w_f,        f over the families other than that of i,
#
# with the adjusted Rand index, 0 where it is negative. Families of a view whose graph has clearer clusters count more:
# with g_v = log λ_{K+1}/λ_K, the eigengap of the graph of view v, its families have the weight
#
#     w_f = √max(g_v / max_u g_u, `MIN_RELATIVE_GAP`).
#
# The two views of a table with categories count alike, as the gaps of its indicators, which take few values, need not
# be those of its clusters.
#
# The partition of the highest consensus is chosen, or one of the rows themselves whose consensus is equally high. Among
# documents and embeddings the consensus is multiplied by e_i^⅓ first, with the evenness e_i = exp(-Σ p log p) / K of
# the shares p of the clusters: methods also agree on small islands of texts and on the rest in one cluster. Then
# every family votes, with its partition that is closest to the chosen one: the share of the votes of row i for cluster
# k is
#
#     v_ik = Σ_f w_f [row i is in the cluster of f that is matched with cluster k] / Σ_f w_f,
#
# where clusters are matched one to one so that as many rows as possible agree. Rows with weights count by them.

MIN_RELATIVE_GAP = 0.1  # of a view's eigengap to the largest
EVENNESS_OF_TEXTS = 1 / 3  # exponent of the evenness
TIE = 0.01  # a smaller difference of the consensus is none
NOT_COMPARED = ("spectral",)  # methods whose partitions are listed but do not take part


def view_weights(eigengaps: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the families of each view from the eigengaps of the views' graphs."""
    largest = max(eigengaps.values())
    relative = {view: gap / largest if largest > 0 else 1.0 for view, gap in eigengaps.items()}
    return {view: math.sqrt(max(gap, MIN_RELATIVE_GAP)) for view, gap in relative.items()}


def with_consensus(
    candidates: Sequence[Candidate], weights: Mapping[str, float], row_weights: np.ndarray | None = None
) -> list[Candidate]:
    """Return the candidates with their consensus: 0 without another family, NaN for those that do not take part."""
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


def evenness(labels: np.ndarray) -> float:
    """Return the exponential of the entropy of the shares of clusters, divided by their number."""
    shares = np.bincount(labels) / len(labels)
    positive = shares[shares > 0]
    return math.exp(-float(np.sum(positive * np.log(positive)))) / len(shares)


def select_by_consensus(candidates: Sequence[Candidate], n_known: int = 0, exponent: float = 0.0) -> Candidate:
    """Select the partition of the highest consensus among those of the best agreement with ``n_known`` known values.

    The consensus is multiplied by a power of the evenness. A partition of the rows as they are is preferred if its
    consensus is as high up to `TIE`.
    """
    competing = [candidate for candidate in candidates if not math.isnan(candidate.consensus)]
    best = max((candidate.agreement for candidate in competing), default=math.nan)
    agreeing = [candidate for candidate in competing if agrees_as_well(candidate.agreement, best, n_known)]
    score = lambda one: one.consensus * evenness(one.labels) ** exponent if exponent else one.consensus  # noqa: E731
    highest = max(map(score, agreeing))
    of_rows = [one for one in agreeing if one.view == ROWS and score(one) >= highest - TIE]
    return first_best(of_rows or agreeing, score)


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
        agreement = math.inf if one is chosen else weighted_ari(chosen.labels, one.labels, row_weights)
        if agreement > closest.get(_family(one), (-math.inf, one))[0]:
            closest[_family(one)] = (agreement, one)
    votes, total, rows = np.zeros((len(chosen.labels), n_clusters), np.float32), 0.0, np.arange(len(chosen.labels))
    for (view, _), (_, one) in closest.items():
        votes[rows, match_clusters(one.labels, chosen.labels, n_clusters, row_weights)] += weights[view]
        total += weights[view]
    return votes / total


def _taking_part(candidates: Sequence[Candidate]) -> list[int]:
    """Return the positions of the candidates with the most clusters, other than those `NOT_COMPARED`."""
    competing = [i for i, candidate in enumerate(candidates) if candidate.family not in NOT_COMPARED]
    most = max(candidates[i].n_clusters for i in competing)
    return [i for i in competing if candidates[i].n_clusters == most]


def _family(candidate: Candidate) -> tuple[str, str]:
    return candidate.view, candidate.family


# ------------------------------------------------------------------------------------------------------ the comparison

MIN_ROWS = 20  # fewer are not compared
MIN_ROWS_PER_CLUSTER = 10  # of a sample; fewer are not compared
KEPT_WITHIN = 0.02  # of the highest consensus: the communities of all rows are kept, and no other view is built in full


class Effort(NamedTuple):
    """How much is compared."""

    max_rows: int  # of more, a sample is compared, see `n_rows`
    sufficient_consensus: float  # of a partition of the rows themselves, above which no other view is compared
    max_searches: int  # for communities on each graph of the rows

    def n_rows(self, low_dimensional: bool) -> int:
        """Return the largest number of rows that are compared: twice as many if there is only one other view."""
        return self.max_rows if low_dimensional else 2 * self.max_rows


EFFORTS: dict[str, Effort | None] = {
    "fast": None,
    "default": Effort(max_rows=5_000, sufficient_consensus=0.95, max_searches=1),
    "thorough": Effort(max_rows=20_000, sufficient_consensus=math.inf, max_searches=MAX_SEARCHES),
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was compared, and the result."""

    candidates: list[Candidate]  # with their consensus, those found before first; of the sampled rows, if some are
    position: int  # of the chosen one in the list
    labels: np.ndarray  # the chosen partition of all rows
    votes: np.ndarray  # the share of the votes for each of its clusters, (n, n_clusters)
    view: View  # its view of all rows
    n_compared: int  # the number of rows that were compared

    @property
    def chosen(self) -> Candidate:
        """The chosen candidate."""
        return self.candidates[self.position]


@dataclass(frozen=True)
class Comparer:
    """Compares views of rows."""

    effort: Effort
    n_clusters: int
    low_dimensional: bool  # whether the other views are whitened, or LPI
    random_state: int
    pairs: PairwiseConstraints | None = None  # known pairs of all rows, for the graphs of other views
    n_known: int = 0  # labels and pairs
    n_jobs: int | None = None

    def compare(self, rows: View, scorer: PartitionScorer, found: Sequence[Candidate], leader: int) -> Comparison:
        """Compare the partitions found on the graphs of all rows with those of other methods and views.

        ``leader`` is the place of the best communities among those that were ``found``.
        """
        if rows.rows.shape[0] > self.effort.n_rows(self.low_dimensional):
            return self._compare_sample(rows, scorer.bounds, found, leader)
        candidates, views, weights = self._find(rows, scorer, found, leader)
        chosen = select_by_consensus(candidates, self.n_known, self._exponent)
        return self._comparison(candidates, chosen, views, weights, rows.weights)

    @property
    def _exponent(self) -> float:
        return 0.0 if self.low_dimensional else EVENNESS_OF_TEXTS

    def _find(
        self, rows: View, scorer: PartitionScorer, found: Sequence[Candidate], leader: int
    ) -> tuple[list[Candidate], dict[str, View], dict[str, float]]:
        """Return all candidates with their consensus, those found already first, the views, and their weights."""
        partitions, eigengap = find_in_rows(rows, self.n_clusters, found[leader], self.random_state)
        views, weights, is_table = {ROWS: rows}, {ROWS: 1.0}, rows.indicators is not None
        candidates = with_consensus([*found, *map(scorer.score, partitions)], weights, rows.weights)
        if max(np.nan_to_num([one.consensus for one in candidates], nan=0.0)) >= self.effort.sufficient_consensus:
            return candidates, views, weights
        is_for = "tables" if is_table else "few components" if self.low_dimensional else "many components"
        names = [name for name, kind in VIEWS.items() if kind.is_for == is_for]
        others, partitions, eigengaps = find_in_views(
            names, rows, self.n_clusters, self.random_state, self.pairs, self.n_jobs
        )
        weights = dict.fromkeys([ROWS, *others], 1.0) if is_table else view_weights({ROWS: eigengap, **eigengaps})
        candidates = with_consensus([*candidates, *map(scorer.score, partitions)], weights, rows.weights)
        return candidates, views | others, weights

    def _comparison(
        self,
        candidates: list[Candidate],
        chosen: Candidate,
        views: dict[str, View],
        weights: dict[str, float],
        row_weights: np.ndarray | None,
    ) -> Comparison:
        votes = vote_shares(candidates, chosen, self.n_clusters, weights, row_weights)
        place, labels = candidates.index(chosen), chosen.labels
        return Comparison(candidates, place, labels, votes, views[chosen.view], len(labels))

    def _compare_sample(
        self, rows: View, bounds: SizeBounds | None, found: Sequence[Candidate], leader: int
    ) -> Comparison:
        """Compare a sample of the rows, and extend the chosen partition and the votes to all of them."""
        rng = np.random.RandomState(self.random_state)
        sample = np.sort(rng.choice(rows.rows.shape[0], self.effort.n_rows(self.low_dimensional), replace=False))
        on_sample = [replace(one, labels=one.labels[sample]) for one in found]
        weights = None if rows.weights is None else rows.weights[sample]
        bounds = None if bounds is None else bounds.subset(sample)
        indicators = None if rows.indicators is None else take_rows(rows.indicators, sample)
        compared = self.compare_sample(take_rows(rows.rows, sample), on_sample, leader, weights, bounds, indicators)
        view = self._in_full(compared.view, rows)
        nearest = nearest_sampled(view.rows, compared.view.rows, sample)
        is_of_all = compared.position < len(found)
        labels = found[compared.position].labels if is_of_all else compared.labels[nearest]
        return replace(compared, labels=labels, votes=compared.votes[nearest], view=view)

    def compare_sample(
        self,
        rows: Array,
        found: Sequence[Candidate],
        leader: int,
        weights: np.ndarray | None = None,
        bounds: SizeBounds | None = None,
        indicators: Array | None = None,
    ) -> Comparison:
        """Compare partitions of a sample of many rows, found on all of them, with those of other methods and views.

        The labels of those that were ``found``, the ``weights``, the ``bounds`` and the ``indicators`` are those of the
        sampled rows, and so is the result. ``leader`` is the place of the best communities among them.
        """
        some = replace(View.of(ROWS, rows, weights=weights, n_jobs=self.n_jobs), indicators=indicators)
        scorer = PartitionScorer({DEFAULT_NEIGHBORS: some.graph}, self.n_clusters, bounds=bounds)
        candidates, views, of_views = self._find(some, scorer, [scorer.score(one) for one in found], leader)
        chosen, of_leader = select_by_consensus(candidates, exponent=self._exponent), candidates[leader]
        if np.nan_to_num(of_leader.consensus, nan=-1.0) >= chosen.consensus - KEPT_WITHIN:
            chosen = of_leader
        return self._comparison(candidates, chosen, views, of_views, weights)

    def _in_full(self, view: View, rows: View) -> View:
        """Return the view of all rows that corresponds to a view of the sample."""
        options: dict[str, Any] = {"weights": rows.weights, "n_jobs": self.n_jobs}
        if view.name == INDICATORS:
            return View.of(view.name, rows.indicators, **options)
        if view.transformer is None:
            return rows
        return View.of(view.name, view.transformer._embed(rows.rows), view.transformer, **options)


def nearest_sampled(rows: Array, sampled_rows: Array, sample: np.ndarray) -> np.ndarray:
    """Return the position in the sample of the nearest sampled row of every row; of a sampled row, its own."""
    nearest = to_numpy(k_nearest(sampled_rows, 1, queries=rows).columns).astype(np.int64)
    nearest[sample] = np.arange(len(sample))
    return nearest
