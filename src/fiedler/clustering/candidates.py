"""Partitions that compete for being the answer: where they come from, what is measured of them, which one is kept.

    c(P) = [Π_g Ncut_g(P)]^(1/G),      Ncut_g(P) = Σ_k cut_g(A_k, rest) / vol_g(A_k)

is the cut of a partition: the geometric mean of its normalised cuts on the G graphs, so that no scale of neighbourhood
counts more than another. Two stages:

1. *The graph decides.* Communities on every graph; those of the lowest cut lead. The spectral partitions from which
   their search begins are shown beside them but do not compete: the eigenvectors that make a cut small also make it cut
   tails off, which the communities' term for sizes forbids. For the same reason communities that were searched at a
   lower resolution than usual, with less regard to sizes, lead only if they cut far less than the others.
2. *Densities may improve on it*, where they can be estimated at all: where there are at least as many rows as K full
   covariances have parameters. LapGMM starts from the leader. A result that still has K clusters and at most
   `MAX_CUT_RATIO` times the leader's cut is admitted, and of these and the leader the one of the highest integrated
   completed likelihood (`icl`) is kept.

A graph knows nothing of shapes and sizes and will cut a long tail off rather than part two clusters that touch;
densities know nothing of manifolds and will cut a half moon in two. How far the cut rises tells which of them is at
work: by a few per cent to a half where clusters are compact, tenfold where they are not. docs/manifold.md has the
experiments behind these choices.

Where labels or pairs are known, only partitions that agree with them about as well as the best one (within two standard
errors) are compared: ten labels cannot tell 95 from 97 %, and must not decide between them.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from ..core.backend import Array, namespace, one_hot, to_numpy
from ..core.blocks import one_blas_thread
from ..core.progress import track_progress
from ..graph.affinity import AffinityGraph
from ..graph.community import LOWER_CUT_FACTOR, RESOLUTION, communities, modularity
from ..graph.constraints import PairwiseConstraints
from ..metrics import normalized_cut
from ..mixture import LapGMM
from ..mixture.covariance import SingularCovarianceError, estimate, log_joint, n_parameters

log = logging.getLogger(__name__)

MAX_CUT_RATIO = 2.0  # times the lowest cut, up to which densities may choose
SHAPES = ("full", "tied")
RIDGE = 0.1  # on covariances, in units of the mean variance, as LapGMM has it
MAX_SEARCHES = 6
SEARCH_ROW_BUDGET = 15_000  # in all searches on a graph, about
MAX_SEARCHES_WITHOUT_GAIN = 2  # searches without a lower cut
TRIAL_ITERATIONS = 30  # iterations of EM, after which a hopeless run is stopped
MAX_ITERATIONS = 100


@dataclass(frozen=True)
class Candidate:
    """A partition and what is known of it without labels.

    Attributes
    ----------
    family : str
        'spectral', 'communities' or 'LapGMM'.
    graph : str
        The graph it was found on.
    detail : str
    labels : array of shape (n,)
        On the host.
    n_clusters : int
        In use.
    cut : float
        Geometric mean over the graphs of the normalised cuts.
    modularity : float
        On the sparsest graph.
    icl : float
        Integrated completed likelihood, a row; nan where densities are not estimated.
    resolution : float
        At which communities were searched; nan for other partitions.
    agreement : float
        Share of the known labels or pairs it agrees with; nan without any.
    seconds : float
    """

    family: str
    graph: str
    detail: str
    labels: np.ndarray
    n_clusters: int
    cut: float
    modularity: float
    icl: float
    resolution: float
    agreement: float
    seconds: float


COLUMNS = ("family", "graph", "detail", "n_clusters", "cut", "modularity", "icl", "resolution", "agreement", "seconds")


@dataclass(frozen=True)
class PartitionScorer:
    """What partitions are measured with: the graphs (attracting weights only), the rows, and what is known.

    Attributes
    ----------
    graphs : dict of AffinityGraph
        By name, the sparsest first.
    k : int
        The number of clusters asked for.
    rows : array of shape (n, d) or None
        Where densities can be estimated.
    agree : callable or None
        Labels to the share of what is known that they agree with.
    """

    graphs: dict[str, AffinityGraph]
    k: int
    rows: Array | None = None
    agree: Callable[[np.ndarray], float] | None = None

    def score(
        self, labels: Any, family: str, graph: str, detail: str, seconds: float, resolution: float = math.nan
    ) -> Candidate:
        """A partition with every criterion."""
        host = to_numpy(labels).astype(np.int64)
        found = Candidate(
            family,
            graph,
            detail,
            host,
            n_clusters=len(np.unique(host)),
            cut=mean_normalized_cut(self.graphs.values(), host),
            modularity=modularity(next(iter(self.graphs.values())), host),
            icl=math.nan if self.rows is None else icl(self.rows, host),
            resolution=resolution,
            agreement=math.nan if self.agree is None else self.agree(host),
            seconds=seconds,
        )
        log.info("%s %s on %s: cut %.4g, ICL %.4g", family, detail, graph, found.cut, found.icl)
        return found


def mean_normalized_cut(graphs: Iterable[AffinityGraph], labels: np.ndarray) -> float:
    """The geometric mean of the normalised cuts; 0 where some graph is not cut at all."""
    cuts = np.array([normalized_cut(graph, labels) for graph in graphs])
    return float(np.exp(np.mean(np.log(cuts)))) if (cuts > 0).all() else 0.0


def icl(Z: Array, labels: np.ndarray) -> float:
    """The integrated completed likelihood of a partition, a row: under full or tied covariances, whichever is higher.

        1/n [ Σ_i log α_k N(x_i; μ_k, Σ_k) - ½ ν log n ],      k the cluster of row i, ν the number of parameters

    with the Gaussians fitted to the clusters' rows, and LapGMM's ridge, which widens them and blurs the rows alike
    [Biernacki, Celeux & Govaert 2000].
    """
    xp, (n, d) = namespace(Z), Z.shape
    used, codes = np.unique(labels, return_inverse=True)
    H = one_hot(codes, len(used), Z)
    ridge = RIDGE * float(xp.mean(xp.var(Z, axis=0)))
    found = [-math.inf]
    for shape in SHAPES:
        try:
            joint = log_joint(Z, estimate(Z, H, kind=shape, ridge=ridge))
        except SingularCovarianceError:
            continue
        price = 0.5 * n_parameters(shape, len(used), d) * math.log(n) / n
        found.append(float(xp.mean(xp.sum(xp.where(H > 0, joint, 0), axis=1))) - price)
    return max(found)


def why_no_mixture(X: Any, k: int) -> str | None:
    """What stands against densities, in words; None if there are as many rows as K full covariances have parameters."""
    if k == 1:
        return "there is only one cluster"
    if X is None or sp.issparse(X):
        return "there are no dense rows to estimate them from"
    n, d = X.shape
    return None if n >= k * d * (d + 1) / 2 else "their covariances have more parameters than there are rows"


# --------------------------------------------------------------------------------------------------------- two stages


def graph_candidates(
    yard: PartitionScorer,
    steered: dict[str, AffinityGraph],
    *,
    starts: Sequence[Any] = (),
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Spectral partitions and communities on every graph; ``steered`` are the graphs with known pairs in them."""

    def on_one(name: str, graph: AffinityGraph, seeds: Sequence[int]) -> list[Candidate]:
        found: list[Candidate] = []
        for again, seed in enumerate(seeds):
            begun = time.perf_counter()
            run = communities(graph, yard.k, starts=starts, random_state=seed)
            seconds, detail = time.perf_counter() - begun, f"search {again + 1}, resolution {run.resolution:.2g}"
            if again == 0:
                spectral = [pair for pair in run.starts.items() if pair[0].endswith("eigenvectors")]
                found += [yard.score(labels, "spectral", name, key, math.nan) for key, labels in spectral]
            found.append(yard.score(run.labels, "communities", name, detail, seconds, run.resolution))
            if _settled([one.cut for one in found if one.family == "communities"]):
                break
        return found

    n = next(iter(steered.values())).n_nodes
    seeds = rng.randint(2**31 - 1, size=(len(steered), n_searches(n))).tolist()
    jobs = [delayed(on_one)(name, graph, own) for (name, graph), own in zip(steered.items(), seeds)]
    with one_blas_thread():
        groups = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs)
        return [candidate for group in track_progress(groups, "graphs", len(jobs)) for candidate in group]


def n_searches(n: int) -> int:
    """The most searches on a graph of ``n`` nodes: many where they are cheap, so that seeds agree."""
    return max(1, min(MAX_SEARCHES, SEARCH_ROW_BUDGET // n))


def _settled(cuts: Sequence[float]) -> bool:
    """Whether the last `MAX_SEARCHES_WITHOUT_GAIN` searches have found nothing better."""
    return (
        len(cuts) > MAX_SEARCHES_WITHOUT_GAIN
        and min(cuts[-MAX_SEARCHES_WITHOUT_GAIN:]) >= min(cuts[:-MAX_SEARCHES_WITHOUT_GAIN]) - 1e-9
    )


def mixture_candidates(
    yard: PartitionScorer, leader: Candidate, *, constraints: PairwiseConstraints | None, random_state: int
) -> list[Candidate]:
    """LapGMM from the leading partition, one fit for each shape of covariance."""
    assert yard.rows is not None
    found = []
    for shape in SHAPES:
        begun = time.perf_counter()
        model = LapGMM(
            yard.k,
            yard.graphs[leader.graph],
            lam="natural",
            init=leader.labels,
            covariance_type=shape,
            ridge=RIDGE,
            random_state=random_state,
        )
        labels = _fitted(model, yard, leader, constraints)
        if labels is not None:
            seconds = time.perf_counter() - begun
            found.append(yard.score(labels, "LapGMM", leader.graph, f"{shape} covariances", seconds))
    return found


def _fitted(
    model: LapGMM, yard: PartitionScorer, leader: Candidate, constraints: PairwiseConstraints | None
) -> Array | None:
    """Labels after a first look and, if it leaves hope, after the whole run; None if a covariance is singular."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that is stopped, or loses a cluster, is a candidate that loses
        try:
            model.set_params(max_iter=TRIAL_ITERATIONS).fit(yard.rows, constraints=constraints)
            if not model.converged_ and _admitted(to_numpy(model.labels_), yard, leader):
                model.set_params(max_iter=MAX_ITERATIONS, init=model.memberships_)
                model.fit(yard.rows, constraints=constraints)
        except SingularCovarianceError:
            return None
    return model.labels_


def _admitted(labels: np.ndarray, yard: PartitionScorer, leader: Candidate) -> bool:
    whole = len(np.unique(labels)) == leader.n_clusters
    return whole and mean_normalized_cut(yard.graphs.values(), labels) <= MAX_CUT_RATIO * leader.cut


# ---------------------------------------------------------------------------------------------------------- the choice


def select_by_cut(candidates: Sequence[Candidate], n_known: int = 0) -> Candidate:
    """The communities of lowest cut, of those that are most in number and agree with what is known as well as any."""
    competing = [candidate for candidate in candidates if candidate.family == "communities"]
    most = max(candidate.n_clusters for candidate in competing)
    whole = [candidate for candidate in competing if candidate.n_clusters == most]
    best = max((candidate.agreement for candidate in whole), default=math.nan)
    good = [candidate for candidate in whole if agrees_as_well(candidate.agreement, best, n_known)]
    return min(good, key=lambda one: one.cut / (LOWER_CUT_FACTOR if one.resolution < RESOLUTION else 1.0))


def select_by_likelihood(leader: Candidate, rivals: Sequence[Candidate], n_known: int = 0) -> Candidate:
    """The leader or, of the admitted rivals, the one of the highest integrated completed likelihood."""
    admitted = [
        rival
        for rival in rivals
        if rival.n_clusters == leader.n_clusters
        and rival.cut <= MAX_CUT_RATIO * leader.cut
        and agrees_as_well(rival.agreement, leader.agreement, n_known)
    ]
    return max([leader, *admitted], key=lambda candidate: candidate.icl)


def agrees_as_well(share: float, best: float, n_known: int) -> bool:
    """Whether one share of agreement is within two standard errors of another, out of ``n_known`` things known."""
    if n_known == 0 or math.isnan(best):
        return True
    middle = min(max(best, 0.5 / n_known), 1 - 0.5 / n_known)  # a share of 1 out of ten is not known to be 1
    return share >= best - 2 * math.sqrt(middle * (1 - middle) / n_known)


def candidates_table(candidates: Sequence[Candidate], chosen: Candidate) -> dict[str, list[Any]]:
    """Columns by name, ready for a data frame."""
    table: dict[str, list[Any]] = {name: [getattr(c, name) for c in candidates] for name in COLUMNS}
    return table | {"chosen": [candidate is chosen for candidate in candidates]}
