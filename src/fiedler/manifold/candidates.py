"""Candidate partitions of graphs: how they are generated, scored and, where views are not compared, chosen.

    c(P) = [Π_g Ncut_g(P)]^(1/G),      Ncut_g(P) = Σ_k cut_g(A_k, rest) / vol_g(A_k)

is the cut of a partition P: the geometric mean of its normalised cuts on the G graphs, so that no neighbourhood size
counts more than another. With ``effort="fast"`` and on a graph alone, the choice has two stages; otherwise it is that
of :mod:`.choice`.

1. *Communities* are searched on every graph; those of the lowest cut lead. The spectral partitions from which the
   search starts are listed but do not compete: the eigenvectors that make a cut small also cut tails off, which the
   size term of modularity prevents. For the same reason communities found at a resolution below the default, with less
   weight on sizes, lead only if they cut far less than the others.
2. *Mixtures* may replace the leader where there are at least as many rows as K full covariances have parameters. LapGMM
   starts from the leader, on at most `MAX_SUPERNODES` supernodes of its graph. A result with K clusters and at most
   `MAX_CUT_RATIO` times the leader's cut is admitted, and of these and the leader the one of the highest integrated
   completed likelihood (`icl`) is chosen. Only if that is a mixture, its fit continues on the rows; the refined
   partition is accepted by the same rule.

A graph ignores the shapes and sizes of clusters and may cut a long tail off instead of separating two clusters that
touch; a mixture ignores the manifold and may cut a half moon in two. The increase of the cut distinguishes the two: a
few per cent to a half where clusters are compact, tenfold where they are not. The documentation's page of experiments
has the figures behind these rules.

Where labels or pairs are given, only partitions that agree with them about as well as the best one (within two standard
errors) compete: ten labels cannot distinguish an agreement of 95 % from one of 97 %.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, first_best, namespace, to_numpy
from ..core.fitting import track_progress
from ..core.parallel import map_tasks
from ..errors import InputError, SingularCovarianceError, ignore_warnings
from ..graph.affinity import AffinityGraph
from ..graph.coarsen import SIZE_TOLERANCE, Hierarchy, coarsen, contract
from ..graph.community import LOWER_CUT_FACTOR, RESOLUTION, MultilevelSearch, modularity
from ..graph.constraints import PairwiseConstraints
from ..graph.recipes import DEFAULT_NEIGHBORS
from ..graph.sizes import SizeBounds
from ..metrics import normalized_cut
from ..mixture import LapGMM
from ..mixture.base import fit_supernodes
from ..mixture.covariance import statistics_icl
from ..mixture.em import group_links
from ..mixture.statistics import Statistics, group_statistics, mean_origin

log = logging.getLogger(__name__)

ROWS = "rows"  # the view of the rows as they are
MAX_CUT_RATIO = 2.0  # of a mixture's cut to the lowest one
CovarianceType = Literal["full", "tied"]
COVARIANCE_TYPES: tuple[CovarianceType, ...] = ("full", "tied")
RIDGE = 0.1  # on covariances, relative to the mean variance
MAX_SEARCHES = 6
SEARCH_NODE_BUDGET = 20_000  # approximate total over the searches on a graph
MAX_SEARCHES_WITHOUT_GAIN = 2
MAX_SUPERNODES = 1500  # on which mixtures are fitted ...
SCATTER_BYTES = 2**29  # ... fewer if their scatter matrices would take more memory ...
MIN_SUPERNODES = 100  # ... but at least so many
MAX_ITERATIONS = 100  # of EM on supernodes
MAX_ROW_ITERATIONS = 10  # of EM on rows, for a mixture that was chosen


@dataclass(frozen=True, eq=False)
class Candidate:
    """A partition, how it was found, and its scores, none of which uses true labels.

    Attributes
    ----------
    family : str
        The method: 'spectral', 'communities', 'linkage', 'k-means', 'mixture' or 'LapGMM'.
    labels : ndarray of shape (n,)
    seconds : float
        The time of the search or fit itself, without what it shares with others, such as the graph.
    detail : str
        The search, covariance type, or another option, as it is shown.
    view : str
        The view of the rows in which it was found.
    n_neighbors : int or None
        The number of neighbours in the graph on which it was found; None for a given graph.
    resolution : float
        The resolution at which communities were searched; NaN for other partitions.
    covariance_type : str or None
        That of LapGMM; None for other partitions.
    n_clusters : int
        The number of non-empty clusters.
    cut : float
        Geometric mean of the normalised cuts on the graphs.
    modularity : float
        On the sparsest graph.
    icl : float
        Integrated completed likelihood per row; NaN where no mixture is estimated.
    agreement : float
        Fraction of the given labels and pairs that it satisfies; NaN without any.
    consensus : float
        The mean agreement with the partitions of other methods and views; NaN where these are not compared.
    """

    family: str
    labels: np.ndarray
    seconds: float
    detail: str = ""
    view: str = ROWS
    n_neighbors: int | None = DEFAULT_NEIGHBORS
    resolution: float = math.nan
    covariance_type: CovarianceType | None = None
    n_clusters: int = 0
    cut: float = math.nan
    modularity: float = math.nan
    icl: float = math.nan
    agreement: float = math.nan
    consensus: float = math.nan

    @property
    def graph(self) -> str:
        """The name of the graph on which it was found."""
        return "the graph" if self.n_neighbors is None else f"{self.n_neighbors} neighbours"


COLUMNS = (
    "family",
    "view",
    "graph",
    "detail",
    "n_clusters",
    "consensus",
    "cut",
    "modularity",
    "icl",
    "resolution",
    "agreement",
    "seconds",
)


Graphs = dict[int | None, AffinityGraph]  # by their number of neighbours, the sparsest first; None for a given graph


@dataclass(frozen=True)
class PartitionScorer:
    """Scores partitions by every criterion.

    ``graphs`` have non-negative weights, and those of the rows already; ``X`` are the rows, where mixtures can be
    estimated; ``agreement`` maps labels to the fraction of the given labels and pairs that they satisfy. Partitions are
    brought within the ``bounds`` on the sizes of clusters before they are scored.
    """

    graphs: Graphs
    n_clusters: int
    X: Array | None = None
    agreement: Callable[[np.ndarray], float] | None = None
    weights: np.ndarray | None = None  # of the rows, of mean one
    bounds: SizeBounds | None = None

    @property
    def has_rows(self) -> bool:
        """Whether mixtures can be estimated."""
        return self.X is not None

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        assert self.X is not None
        return self.X.shape[1]

    @cached_property
    def origin(self) -> Array:
        """The point from which rows are measured in sums."""
        return mean_origin(self.X)

    @cached_property
    def ridge(self) -> float:
        """The ridge on covariances, in the unit of X²."""
        return RIDGE * float(namespace(self.X).mean(namespace(self.X).var(self.X, axis=0)))

    def score(self, candidate: Candidate, icl: float | None = None) -> Candidate:
        """Return a partition with its scores; ``icl`` is computed if it is not known."""
        labels = self.within_bounds(candidate.labels)
        icl = icl if labels is candidate.labels else None
        scored = replace(
            candidate,
            labels=labels,
            n_clusters=int(np.count_nonzero(np.bincount(labels))),
            cut=mean_normalized_cut(self.graphs.values(), labels),
            modularity=modularity(next(iter(self.graphs.values())), labels),
            icl=self.icl(labels) if icl is None else icl,
            agreement=math.nan if self.agreement is None else self.agreement(labels),
        )
        log.info("%s %s in %s: cut %.4g, ICL %.4g", scored.family, scored.detail, scored.view, scored.cut, scored.icl)
        return scored

    def within_bounds(self, labels: np.ndarray) -> np.ndarray:
        """Return a partition within the bounds on sizes; as it is if it is within, or cannot be brought there."""
        if self.bounds is None:
            return labels
        try:
            return self.bounds.repair(list(self.graphs.values())[-1], labels, self.n_clusters)
        except InputError:  # rows are too heavy
            return labels

    def icl(self, labels: np.ndarray) -> float:
        """Return the integrated completed likelihood of a partition per row; NaN without rows."""
        if not self.has_rows:
            return math.nan
        return statistics_icl(self.group_statistics(labels), ridge=self.ridge, kinds=COVARIANCE_TYPES)

    def group_statistics(self, groups: np.ndarray) -> Statistics:
        """Return the sums of the rows of each group."""
        return group_statistics(self.X, groups, origin=self.origin, weights=self.weights)


def mean_normalized_cut(graphs: Iterable[AffinityGraph], labels: np.ndarray) -> float:
    """Return the geometric mean of the normalised cuts; 0 if some graph is not cut at all."""
    cuts = np.array([normalized_cut(graph, labels) for graph in graphs])
    return float(np.exp(np.mean(np.log(cuts)))) if (cuts > 0).all() else 0.0


def reason_against_mixtures(X: Array | None, n_clusters: int) -> str | None:
    """Return the reason for which mixtures cannot take part; None if they can."""
    if n_clusters == 1:
        return "there is only one cluster"
    if X is None or sp.issparse(X):
        return "there are no dense rows"
    if not has_enough_rows(X.shape[0], X.shape[1], n_clusters):
        return "the covariances would have more parameters than there are rows"
    return None


def has_enough_rows(n_rows: int, n_features: int, n_clusters: int) -> bool:
    """Whether there are at least as many rows as ``n_clusters`` full covariances have parameters."""
    return n_rows >= n_clusters * n_features * (n_features + 1) / 2


# ---------------------------------------------------------------------------------------------------------- generators


def graph_candidates(
    scorer: PartitionScorer,
    search_graphs: Graphs,
    *,
    starts: Sequence[np.ndarray] = (),
    max_searches: int = MAX_SEARCHES,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> tuple[list[Candidate], dict[int | None, MultilevelSearch]]:
    """Search communities on every graph, and list the spectral partitions from which the searches start.

    ``search_graphs`` are the scorer's graphs with given pairs as weights of either sign; ``n_jobs`` threads are used,
    at most one per graph. The second result are the searches, with the coarser versions of each graph.
    """

    def search(task: tuple[int | None, int]) -> tuple[list[Candidate], MultilevelSearch]:
        n_neighbors, seed = task
        graph = search_graphs[n_neighbors]
        rng = np.random.RandomState(seed)
        multilevel = MultilevelSearch.on(graph, scorer.n_clusters, rng)
        candidates: list[Candidate] = []
        for i in range(min(max_searches, n_searches(graph.n_nodes))):
            candidates += communities_of_search(scorer, n_neighbors, multilevel, i, rng, starts)
            if has_settled(candidates):
                break
        return candidates, multilevel

    seeds = rng.randint(2**31 - 1, size=len(search_graphs)).tolist()
    found = map_tasks(search, list(zip(search_graphs, seeds)), "searching communities", n_jobs)
    searches = {n_neighbors: multilevel for n_neighbors, (_, multilevel) in zip(search_graphs, found)}
    return [candidate for candidates, _ in found for candidate in candidates], searches


def communities_of_search(
    scorer: PartitionScorer,
    n_neighbors: int | None,
    multilevel: MultilevelSearch,
    number: int,
    rng: np.random.RandomState,
    starts: Sequence[np.ndarray] = (),
) -> list[Candidate]:
    """Search communities once; the first search on a graph also gives the spectral partitions from which it starts."""
    start_time = time.perf_counter()
    result = multilevel.find(scorer.n_clusters, rng, starts=starts)
    seconds = time.perf_counter() - start_time
    candidates = []
    if number == 0:
        spectral = [pair for pair in result.starts.items() if pair[0].endswith("eigenvectors")]
        candidates += [Candidate("spectral", as_labels(labels), math.nan, key) for key, labels in spectral]
    detail = f"search {number + 1}, resolution {result.resolution:.2g}"
    labels = as_labels(result.labels)
    candidates.append(Candidate("communities", labels, seconds, detail, resolution=result.resolution))
    return [scorer.score(replace(one, n_neighbors=n_neighbors)) for one in candidates]


def as_labels(labels: Array) -> np.ndarray:
    """Return labels on the host."""
    return to_numpy(labels).astype(np.int64)


def n_searches(n_nodes: int) -> int:
    """Return the maximum number of searches on a graph: more on small graphs, so that results depend less on seeds."""
    return max(1, min(MAX_SEARCHES, SEARCH_NODE_BUDGET // n_nodes))


def has_settled(candidates: Sequence[Candidate]) -> bool:
    """Whether the last `MAX_SEARCHES_WITHOUT_GAIN` searches on a graph brought no lower cut."""
    patience, cuts = MAX_SEARCHES_WITHOUT_GAIN, [one.cut for one in candidates if one.family == "communities"]
    return len(cuts) > patience and min(cuts[-patience:]) >= min(cuts[:-patience]) - 1e-9


def mixture_candidates(
    scorer: PartitionScorer,
    leader: Candidate,
    hierarchy: Hierarchy,
    *,
    constraints: PairwiseConstraints | None,
    random_state: int,
) -> list[Candidate]:
    """Fit LapGMM from the leading partition, once for each type of covariance, on supernodes of its graph.

    Supernodes that the leading partition divides are divided, so that EM starts from this partition itself.
    """
    rng = np.random.RandomState(random_state)
    supernodes = coarsen(hierarchy, max_supernodes(scorer.n_features), rng).supernodes
    parts, supernodes = np.unique(supernodes * scorer.n_clusters + leader.labels, return_inverse=True)
    graph = contract(scorer.graphs[leader.n_neighbors], supernodes)
    statistics = scorer.group_statistics(supernodes)
    init = parts % scorer.n_clusters
    links = group_links(constraints, supernodes, statistics.counts)
    candidates = []
    for covariance_type in track_progress(COVARIANCE_TYPES, "fitting mixtures", len(COVARIANCE_TYPES)):
        start_time = time.perf_counter()
        model = _lapgmm(scorer, covariance_type, random_state).set_params(max_iter=MAX_ITERATIONS)
        try:
            with ignore_warnings(Warning):  # a fit that stops early or loses a cluster is a candidate that loses
                fit = fit_supernodes(model, statistics, graph, init, links=links)
        except SingularCovarianceError:
            continue
        labels = to_numpy(fit.resp).argmax(axis=1)
        icl = statistics_icl(statistics.merge(labels), ridge=scorer.ridge, kinds=COVARIANCE_TYPES)
        found = Candidate(
            "LapGMM",
            labels[supernodes],
            time.perf_counter() - start_time,
            f"{covariance_type} covariances",
            n_neighbors=leader.n_neighbors,
            covariance_type=covariance_type,
        )
        candidates.append(scorer.score(found, icl))
    return candidates


def max_supernodes(n_features: int) -> int:
    """Return the number of supernodes on which mixtures are fitted, limited by the memory of their scatter matrices."""
    return max(MIN_SUPERNODES, min(MAX_SUPERNODES, SCATTER_BYTES // (8 * n_features**2)))


def refine_mixture(
    scorer: PartitionScorer, chosen: Candidate, *, constraints: PairwiseConstraints | None, random_state: int
) -> Candidate:
    """Continue the fit of the chosen mixture on rows; return it as it was if that fails or is not needed."""
    assert scorer.X is not None
    if scorer.X.shape[0] <= (1 + SIZE_TOLERANCE) * max_supernodes(scorer.X.shape[1]):
        return chosen
    assert chosen.covariance_type is not None
    model = _lapgmm(scorer, chosen.covariance_type, random_state)
    model.set_params(graph=scorer.graphs[chosen.n_neighbors], init=chosen.labels, max_iter=MAX_ROW_ITERATIONS)
    start_time = time.perf_counter()
    with ignore_warnings(Warning):
        try:
            model._fit_validated(scorer.X, sample_weight=scorer.weights, constraints=constraints)
        except SingularCovarianceError:
            return chosen
    seconds = chosen.seconds + time.perf_counter() - start_time
    return scorer.score(replace(chosen, labels=as_labels(model.labels_), seconds=seconds))


def _lapgmm(scorer: PartitionScorer, covariance_type: CovarianceType, random_state: int) -> LapGMM:
    return LapGMM(
        scorer.n_clusters, lam="natural", covariance_type=covariance_type, ridge=RIDGE, random_state=random_state
    )


# ---------------------------------------------------------------------------------------------------------- the choice


def select_by_cut(candidates: Sequence[Candidate], n_known: int = 0) -> Candidate:
    """Select the communities with the lowest cut among those with the most clusters and the best agreement."""
    competing = [candidate for candidate in candidates if candidate.family == "communities"]
    max_clusters = max(candidate.n_clusters for candidate in competing)
    complete = [candidate for candidate in competing if candidate.n_clusters == max_clusters]
    best = max((candidate.agreement for candidate in complete), default=math.nan)
    agreeing = [candidate for candidate in complete if agrees_as_well(candidate.agreement, best, n_known)]
    return first_best(agreeing, _comparable_cut, lowest=True)


def _comparable_cut(candidate: Candidate) -> float:
    """Return the cut; that of a search at a lower resolution leads only if it is far lower."""
    return candidate.cut / (LOWER_CUT_FACTOR if candidate.resolution < RESOLUTION else 1.0)


def select_by_likelihood(leader: Candidate, rivals: Sequence[Candidate], n_known: int = 0) -> Candidate:
    """Select the partition with the highest integrated completed likelihood from the leader and its admitted rivals."""
    admitted = [
        rival
        for rival in rivals
        if rival.n_clusters == leader.n_clusters
        and rival.cut <= MAX_CUT_RATIO * leader.cut
        and agrees_as_well(rival.agreement, leader.agreement, n_known)
    ]
    return first_best([leader, *admitted], lambda candidate: candidate.icl)


def agrees_as_well(agreement: float, best: float, n_known: int) -> bool:
    """Whether an agreement with ``n_known`` labels and pairs is within two standard errors of the best one."""
    if n_known == 0 or math.isnan(best):
        return True
    p = min(max(best, 0.5 / n_known), 1 - 0.5 / n_known)  # ten of ten do not prove a probability of one
    return agreement >= best - 2 * math.sqrt(p * (1 - p) / n_known)


def candidates_table(candidates: Sequence[Candidate], chosen: Candidate) -> dict[str, list[Any]]:
    """Return the scores as columns by name, ready for a data frame."""
    table: dict[str, list[Any]] = {name: [getattr(one, name) for one in candidates] for name in COLUMNS}
    return table | {"chosen": [one is chosen for one in candidates]}
