r"""The number of clusters: what is found again in subsets, with thin borders, and no coarser than the gaps.

1. *Gaps.* Groups of rows that gaps separate (:mod:`fiedler.graph.borders`) are the fewest clusters that there can be.
2. *Evidence.* Random subsets of the rows are clustered into K clusters by several methods, for many K, and

       s_K   stability: the mean adjusted Rand index of two subsets on the rows they share
             [Ben-Hur, Elisseeff & Guyon 2002]; too large a K splits clusters differently in every subset
       Q_K   modularity at γ = 1: coarse partitions are stable as well, but explain fewer of the edges
       e_K   evenness: exp(-Σ p log p) / K for the shares p of the clusters; splitting off tiny groups is stable as well
       v_K   valley: m (mean log r of rows on borders - mean log r of rows inside), where r_i is the distance of row i
             to its last neighbour and m the dimension near the rows: by how much the density falls at the borders

   are combined to the score  (s_K³ Q_K)² e_K √v_K,  v_K between 0.1 and 1; of several methods the highest one counts.
3. *Choice.* If gaps separate groups, their number, unless a larger one is clearly better and has valleys (groups that
   touch). Otherwise the number of the highest score, or the finest clearly different one with nearly as high a score:
   clusters can be merged later. Coarse partitions of documents and embeddings are often the most stable without being
   stable: below 0.9 only numbers with a modularity within 0.02 of the highest compete.
4. *One cluster* if there are no gaps, and the rows have neither more structure than a single cloud nor stable parts
   with valleys between them (:mod:`fiedler.manifold.one_cluster`). Without more structure, valleys choose the number;
   along a line and around a loop, the number of modes.

The notes on ManifoldClustering in the documentation have the figures, and those of the rules that were not better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._typing import Array, MatrixLike, RandomState, SupportsShape
from .._validation import (
    check_data,
    check_fraction,
    check_int,
    check_n_jobs,
    check_seed,
    check_takes_weights,
)
from ..core.arrays import first_best, random_subset, take_rows, to_numpy
from ..core.parallel import map_tasks
from ..core.sparse import row_indices, to_scipy
from ..errors import FiedlerWarning, InputError, ignore_warnings, shown
from ..graph.affinity import AffinityGraph
from ..graph.borders import MAX_CELLS, MIN_GROUP_SIZE, SeparatedGroups, separated_groups
from ..graph.community import modularity
from ..graph.estimator import ClustererMixin, GraphEstimatorMixin
from ..graph.kernels import LandmarkGraph
from ..graph.neighbors import Edges
from ..graph.partitions import partitions
from ..graph.recipes import as_affinity, default_recipe, is_precomputed, nested_graphs, self_tuned
from ..graph.weights import CopiedRows, check_sample_weight, ordered_copies, relative_weights, weigh_graph
from ..metrics.scores import weighted_ari
from ..table import TableEncoder
from ..table.columns import is_dense_frame
from .choice import MIN_ROWS, evenness
from .one_cluster import (
    ERROR,
    HIGH_DIMENSION,
    MIN_CLUSTERABILITY,
    MIN_UNROLLED,
    Clusterability,
    clusterability,
    error_probability,
    evidence_against_one,
)
from .views import are_documents

# -------------------------------------------------------------------------------------------------------- the evidence

MAX_SAMPLED_ROWS = 2500  # a random sample of this size gives the same answer
MIN_SUBSET_ROWS_PER_CLUSTER = 7  # of a subset, for the numbers of clusters that are compared by default
FEWEST_COMPARED = 6  # however few the rows are, but at least four for each cluster
DENSE_UP_TO = 12  # every number up to this one is compared ...
GRID_FACTOR = 1.25  # ... and then every so much larger one, up to half the number of cells of a graph
MIN_DEPTH, MAX_DEPTH = 0.1, 1.0  # in the score
MAX_VALLEY = 3.0  # of clusters without borders, and in the evidence for a valley
MAX_VALLEY_CLUSTERS = 8  # for which a valley is evidence against one cluster, if they have more than few rows
NEARLY_AS_GOOD = 0.9  # relative score of a finer number that is preferred
BORDER_SHARE, INSIDE_SHARE = 0.3, 0.1  # of the edges of a row that leave its cluster, at least and at most ...
FEW_ROWS = 20  # ... of their weight in a cluster of so few rows, most of which have edges to others
PERSISTENT_ABOVE = 0.85  # stability of a persistent number of clusters
UNSTABLE_BELOW = 0.8  # stability of the chosen number below which the evidence is weak
STABLE_ABOVE = 0.9  # stability of strong evidence
FINER_STABILITY, FINER_VALLEY = 0.75, 0.5  # at least, of more clusters than gaps separate ...
FINER_FACTOR = 1.5  # ... and their score relative to that of the groups; a lower one ...
CLEAR_STABILITY, CLEAR_DEPTH, CLEARLY_FINER = 0.98, 2.0, 1.1  # ... is enough with such a stability and valley
MIN_FINER_DIMENSION = 1.2  # near the rows: along a line gaps decide
MIN_FOUND = 0.9  # of the clusters that were asked for; partitions with fewer are no evidence
LINE_DIMENSION, LINE_NEIGHBORS = 1.7, 15  # near rows on a curve, and their neighbours in the search for gaps
MAX_UNCOUNTED = 0.05  # share of rows in groups that are too small for the search for gaps, which then says nothing
NEARLY_AS_MODULAR = 0.02  # difference of the modularity
NEARLY_AS_STABLE = 0.05  # difference of the adjusted Rand index
CLEAR_FACTOR = 0.7  # the score of any other number, relative to the chosen one, where the evidence is strong
SIMILAR_NUMBERS = 0.15  # relative difference of numbers that are not alternatives to each other

# Clusters one subset of the rows: its graph, its row numbers, the numbers of clusters and a seed, to the label arrays
# of one or several methods per number of clusters.
Partition = Callable[[AffinityGraph, np.ndarray, Sequence[int], int], list[list[np.ndarray]]]


@dataclass(frozen=True)
class NClustersChoice:
    """A number of clusters and the evidence for it.

    Attributes
    ----------
    n_clusters : int
        The chosen number.
    by : str
        The evidence that decided: 'gaps', 'score', 'valley', 'modes' or 'one cluster', 'limit' if gaps separate more
        groups than were allowed, or why there was nothing to decide.
    candidates : list of int
        The numbers that were compared.
    stability : list of float or None
        Mean adjusted Rand index between clusterings of subsets, for every candidate.
    stability_error : list of float or None
        Standard errors of these means.
    modularity : list of float or None
        Mean modularity of the clusterings of subsets, for every candidate.
    valley : list of float or None
        By how much the density falls at the borders of the clusters, on a logarithmic scale, for every candidate; None
        if distances are not known.
    score : list of float or None
        What these give together: the chosen number is that of the highest score, unless gaps decide.
    n_separated : int or None
        The number of groups that gaps separate; None if nothing was counted.
    clusterability, unrolled : float or None
        How much smaller the eigenvalues of the graph are than those of a single cloud, as long and wide as the rows and
        as the unrolled rows, on a logarithmic scale. None if one cluster was not considered, as where there are gaps.
    p_value : float or None
        About how often rows without clusters show as much evidence for several. It is calibrated for a mixture of
        shapes (clouds, cubes, heavy tails, curves), at 0.05 above all: above it one cluster is chosen. Where gaps
        separate groups, how often chance makes the thickest border so thin. None if neither was tested.
    is_capped : bool
        Whether the largest number that was compared was chosen, or fewer than gaps separate.

    Examples
    --------
    >>> from fiedler.manifold import NClustersChoice
    >>> print(NClustersChoice(3, "score", [2, 3], stability=[0.7, 1.0], score=[0.1, 0.6]))
    3 clusters. 2 would be less stable (0.70): the evidence for 3 is strong.
      K   stability      modularity  valley   score
      2  0.700 ± 0.000            -       -  0.1000
      3  1.000 ± 0.000            -       -  0.6000  <
    """

    n_clusters: int
    by: str
    candidates: list[int]
    stability: list[float] | None = None
    stability_error: list[float] | None = None
    modularity: list[float] | None = None
    valley: list[float] | None = None
    score: list[float] | None = None
    n_separated: int | None = None
    clusterability: float | None = None
    unrolled: float | None = None
    p_value: float | None = None
    is_capped: bool = False

    @property
    def levels(self) -> list[tuple[int, float]]:
        """The numbers of clusters that are persistent, with their stability.

        They are the local maxima of the stability of at least 0.85: clusters of clusters have several. Of neighbours
        that are equally stable, to two digits, the one of the highest score stands for all, and the chosen number for a
        maximum next to it, if it is above the threshold, too. One cluster has no levels.
        """
        if self.stability is None or self.n_clusters not in self.candidates:
            return []
        chosen = self.candidates.index(self.n_clusters)
        stands_for_others = self.stability[chosen] >= PERSISTENT_ABOVE
        levels = [chosen] if stands_for_others else []
        rounded = [round(value, 2) for value in self.stability]
        padded, scores = [-1.0, *rounded, -1.0], self.score or [0.0] * len(rounded)
        for value, run in groupby(range(len(rounded)), key=rounded.__getitem__):
            places = list(run)
            is_peak = value >= PERSISTENT_ABOVE and value > padded[places[0]] and value > padded[places[-1] + 2]
            if is_peak and not (stands_for_others and places[0] - 1 <= chosen <= places[-1] + 1):
                levels.append(first_best(places, scores.__getitem__))
        return [(self.candidates[i], self.stability[i]) for i in sorted(levels)]

    @property
    def strength(self) -> str | None:
        """The strength of the evidence: 'strong', 'moderate' or 'weak'; None for one cluster and without evidence."""
        if self.stability is None or self.score is None or self.n_clusters not in self.candidates:
            return None
        chosen = self.candidates.index(self.n_clusters)
        if self.n_separated is not None and self.n_clusters < self.n_separated:
            return "weak"
        if self.by == "gaps":
            return "strong" if self.p_value is None or self.p_value <= ERROR else "moderate"
        if self.stability[chosen] < UNSTABLE_BELOW:
            return "weak"
        others = [self.score[i] for i in self._alternatives()]
        is_clear = max(others, default=0.0) < CLEAR_FACTOR * self.score[chosen]
        return "strong" if is_clear and self.stability[chosen] >= STABLE_ABOVE else "moderate"

    @property
    def is_stable(self) -> bool:
        """Whether the evidence is not weak."""
        return self.strength != "weak"

    def _alternatives(self) -> list[int]:
        """Return the positions of the best other numbers, the highest score first: those not close to a better one."""
        assert self.score is not None
        kept: list[int] = [self.candidates.index(self.n_clusters)]
        for i in np.argsort(-np.array(self.score), kind="stable").tolist():
            numbers = [self.candidates[j] for j in kept]
            if all(abs(self.candidates[i] - k) > SIMILAR_NUMBERS * max(self.candidates[i], k) for k in numbers):
                kept.append(i)
        return kept[1:]

    @property
    def sentence(self) -> str:
        """The number, the best other ones, and the strength of the evidence, in a sentence or two."""
        if self.n_clusters == 1:
            if self.by == "one cluster":
                return "No clusters found; give n_clusters to split the rows anyway."
            return f"1 cluster, {self.by}."
        number = f"{self.n_clusters} clusters"
        capped = " Larger numbers were not compared." if self.is_capped else ""
        if self.strength is None:
            return f"{number}, {self.by}.{capped}"
        assert self.stability is not None
        own, others = self.stability[self.candidates.index(self.n_clusters)], self._alternatives()[:2]
        reasons = {"gaps": ", separated by gaps", "modes": ", the modes along a line or a loop"}
        reason = reasons.get(self.by, "")
        if self.by == "limit":
            reason = f", though gaps separate {self.n_separated} groups"
        clauses = []
        for i in sorted(others):
            difference = self.stability[i] - own
            relation = "would be less stable" if difference < -NEARLY_AS_STABLE else (
                "would be more stable" if difference > NEARLY_AS_STABLE else "would be as stable"
            )  # fmt: skip
            clauses.append(f"{self.candidates[i]} {relation} ({self.stability[i]:.2f})")
        verdict = f"the evidence for {self.n_clusters} is {self.strength}.{capped}"
        return f"{number}{reason}. {', '.join(clauses)}: {verdict}" if clauses else f"{number}{reason}: {verdict}"

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.stability is not None:
            lines.append("  K   stability      modularity  valley   score")
            errors = self.stability_error or [0.0] * len(self.candidates)
            for i, k in enumerate(self.candidates):
                cells = [f"{self.stability[i]:.3f} ± {errors[i]:.3f}"]
                for column, places in ((self.modularity, 4), (self.valley, 2), (self.score, 4)):
                    cells.append("-" if column is None else f"{column[i]:.{places}f}")
                mark = "  <" if k == self.n_clusters else ""
                lines.append(f"{k:3d}  {cells[0]}  {cells[1]:>11s}  {cells[2]:>6s}  {cells[3]:>6s}{mark}")
        if len(self.levels) > 1:
            lines.append("persistent: " + ", ".join(f"{k} ({value:.2f})" for k, value in self.levels))
        if self.n_separated is not None:
            lines.append(f"groups separated by gaps: {self.n_separated}")
        if self.p_value is not None:
            lines.append(f"as much evidence for several where there is one cluster: p = {self.p_value:.2g}")
        if self.clusterability is not None and self.unrolled is not None:
            lines.append(
                f"clusterability {self.clusterability:.2f} (one cluster has up to {MIN_CLUSTERABILITY:.2f}), "
                f"unrolled {self.unrolled:.2f} (up to {MIN_UNROLLED:.2f})"
            )
        return "\n".join(lines)


def choose_n_clusters(
    X: MatrixLike | AffinityGraph,
    candidates: Iterable[int] | None = None,
    *,
    estimator: Any = None,
    n_subsets: int = 6,
    fraction: float = 0.8,
    sample_weight: SupportsShape | Sequence[float] | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> NClustersChoice:
    """Choose the number of clusters by gaps, stability under subsampling, modularity and valleys of the density.

    ``ManifoldClustering(n_clusters="auto")`` uses this function without an ``estimator``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), data frame, or AffinityGraph
        The rows, or a graph on them. The columns of a data frame are brought to a common scale, as those of
        ``ManifoldClustering`` are, unless there is an estimator.
    candidates : iterable of int, optional
        The numbers to choose from; by default all that the number of rows permits, up to 150, and 300 where gaps
        separate the clusters. One is chosen if the rows have no more structure than a single cloud; it is left out if a
        graph is given, as ``X`` or as the estimator's own, or fewer than 20 distinct rows.
    estimator : clusterer, optional
        The model whose clusters are counted: any scikit-learn clusterer with a parameter ``n_clusters`` or
        ``n_components``. By default the communities of the nearest-neighbour graph.
    n_subsets : int, default=6
        Random subsets that are clustered; every two of them are compared.
    fraction : float, default=0.8
        The fraction of the rows in each subset.
    sample_weight : array of shape (n_samples,), optional
        Positive weights of the rows, in the graph, in the estimator and in the comparison of subsets.
    random_state : int, RandomState or None, default=0
        Random seed or generator. ``ManifoldClustering`` counts with 0, whatever its own seed.
    n_jobs : int, optional
        The number of threads, at most one per subset.

    Returns
    -------
    NClustersChoice

    Notes
    -----
    Gaps, modularity and valleys are those of the estimator's own graph if it has one, otherwise of a self-tuned graph
    of nine neighbours. If there are more than 2,500 rows, subsets of a random sample are clustered; the gaps are those
    of all rows, with more than 10,000 of a coarser version of the graph.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from fiedler import choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> choose_n_clusters(X, range(2, 8), random_state=0).n_clusters
    4
    >>> choose_n_clusters(X, range(2, 8), estimator=KMeans(), random_state=0).n_clusters
    4
    """
    if estimator is None and is_dense_frame(X):
        X = TableEncoder().fit_transform(X)
    data = _Data.from_input(X, estimator, range(2, MIN_ROWS) if candidates is None else range(0))
    data = data.weighed(check_sample_weight(sample_weight, data.n_rows), estimator)
    if data.has_few_values:
        return one_for_each(data.graph.n_nodes)
    fraction = check_fraction(fraction, "fraction")
    numbers = None if candidates is None else _check_candidates(candidates, data.graph.n_nodes, fraction)
    return count_clusters(
        data.graph,
        None if numbers is None else [k for k in numbers if k > 1],
        data.subset_graph,
        None if estimator is None else _partition_by(estimator, data),
        n_subsets=check_int(n_subsets, "n_subsets", minimum=2),
        fraction=fraction,
        random_state=check_seed(random_state),
        n_jobs=check_n_jobs(n_jobs),
        rows=data.rows,
        may_be_one=numbers is None or numbers[0] == 1,
        density=data.density,
        weights=data.weights,
    )


def count_rows(
    X: MatrixLike | AffinityGraph,
    sample_weight: np.ndarray | None = None,
    *,
    min_clusters: int = 1,
    max_clusters: int | None = None,
    n_jobs: int | None = None,
) -> NClustersChoice:
    """Count the clusters as :func:`choose_n_clusters` does without candidates, within limits."""
    most = MIN_ROWS if max_clusters is None else max_clusters
    data = _Data.from_input(X, None, range(max(2, min_clusters), most + 1)).weighed(sample_weight, None)
    if data.has_few_values:
        return one_for_each(data.graph.n_nodes)
    return count_clusters(
        data.graph,
        None,
        data.subset_graph,
        min_clusters=max(2, min_clusters),
        max_clusters=max_clusters,
        random_state=np.random.RandomState(0),
        n_jobs=n_jobs,
        rows=data.rows,
        may_be_one=min_clusters == 1,
        density=data.density,
        weights=data.weights,
    )


def _check_candidates(candidates: Iterable[int], n_samples: int, fraction: float) -> list[int]:
    if not isinstance(candidates, Iterable):
        problem = f"candidates={shown(candidates)} must be an iterable of integers"
        raise InputError(problem, "pass for example range(2, 16)", parameter="candidates", value=candidates)
    numbers = sorted({check_int(k, "every candidate") for k in candidates})
    if not numbers or numbers == [1]:
        problem = "one cluster has no alternative" if numbers else "candidates is empty"
        raise InputError(problem, "pass numbers of clusters of at least 2", parameter="candidates", value=numbers)
    subset = max(round(fraction * min(n_samples, MAX_SAMPLED_ROWS)), 2)
    if numbers[-1] > subset // 2 and (len(numbers) > 1 or numbers[-1] > n_samples):
        problem = f"the candidate {numbers[-1]} is more than half of the {subset} different rows in each subset"
        hint = f"pass numbers up to {subset // 2}"
        raise InputError(problem, hint, code="too_many_clusters", parameter="candidates", value=numbers[-1])
    return numbers


class _Data(NamedTuple):
    """What is clustered: the graph of all rows and the rows, unless only a graph is given."""

    graph: AffinityGraph
    X: Array | None
    recipe: Any  # builds the graph of a subset; None if the induced subgraph is used
    rows: Array | None = None  # as the default graph uses them; None if the graph is another one
    weights: np.ndarray | None = None  # of the rows
    copies: CopiedRows | None = None  # which of the given rows are equal, if only the different ones are clustered
    density: RowDensity | None = None

    @classmethod
    def from_input(cls, X: MatrixLike | AffinityGraph, estimator: Any, few_values: Container[int]) -> _Data:
        """Validate the input and build the graph: the estimator's own if it has one, else the default graph.

        Rows of a few values are those values if their number is among ``few_values``.
        """
        if estimator is not None and not hasattr(estimator, "fit_predict"):
            problem = f"estimator={shown(estimator)} has no fit_predict"
            raise InputError(problem, "pass a clusterer", code="not_a_clusterer", parameter="estimator")
        parameter = getattr(estimator, "graph", None) if isinstance(estimator, GraphEstimatorMixin) else None
        if isinstance(X, AffinityGraph) or is_precomputed(parameter):
            if estimator is not None and not isinstance(estimator, GraphEstimatorMixin):
                problem = f"{type(estimator).__name__} cannot cluster a graph"
                raise InputError(problem, "pass rows", code="rows_required")
            return cls(X if isinstance(X, AffinityGraph) else AffinityGraph.from_matrix(X), None, None)
        rows = check_data(X, min_samples=4)
        if isinstance(estimator, GraphEstimatorMixin):
            own = estimator._recipe()
            transformed = estimator._transform_rows(rows) if isinstance(estimator, ClustererMixin) else rows
            if not isinstance(own, LandmarkGraph):  # which has no edges
                comparable = transformed if estimator._graph_is_default() else None
                return cls(as_affinity(own, transformed, validated=True), rows, None, comparable)
        copies = None
        if estimator is None:
            copies, _ = ordered_copies(
                rows,
                lambda one: len(one.first) >= MIN_ROWS or (has_few_values(one) and len(one.first) in few_values),
                are_documents,
            )
        rows = rows if copies is None else take_rows(rows, copies.first)
        recipe = default_recipe(rows.shape[0], connect="mst")
        edges, (graph,) = nested_graphs(recipe, rows, [recipe.n_neighbors])
        built_anew = None if estimator is not None else recipe
        return cls(graph, rows, built_anew, rows, copies=copies, density=RowDensity.of(edges))

    @property
    def n_rows(self) -> int:
        """The number of given rows."""
        return self.graph.n_nodes if self.copies is None else len(self.copies.nodes)

    @property
    def has_few_values(self) -> bool:
        """Whether each different row is a cluster."""
        return self.copies is not None and has_few_values(self.copies)

    def weighed(self, weights: np.ndarray | None, estimator: Any) -> _Data:
        """Return the data with weights of the given rows, which an estimator must take."""
        if weights is not None and estimator is not None:
            check_takes_weights(estimator)
        if self.copies is not None and (weights is not None or self.copies.exist):
            weights = self.copies.total(weights)
        weights = None if weights is None else relative_weights(weights)
        return self._replace(graph=weigh_graph(self.graph, weights), weights=weights)

    def subset_graph(self, rows: np.ndarray) -> AffinityGraph:
        """Return the graph of some rows: built anew for communities, else induced."""
        if self.recipe is None:
            return subgraph(self.graph, rows)
        graph = as_affinity(default_recipe(len(rows), connect="mst"), take_rows(self.X, rows), validated=True)
        return weigh_graph(graph, None if self.weights is None else self.weights[rows])


def has_few_values(copies: CopiedRows) -> bool:
    """Return whether so few rows differ, with so many copies, that each is a cluster."""
    return len(copies.first) < MIN_ROWS and len(copies.nodes) >= MIN_GROUP_SIZE * len(copies.first)


def one_for_each(n_rows: int) -> NClustersChoice:
    """Return the choice of one cluster for each of some different rows."""
    return NClustersChoice(n_rows, "one for each different row", [n_rows])


def subgraph(graph: AffinityGraph, rows: np.ndarray) -> AffinityGraph:
    """Return the graph induced on some of its nodes."""
    return AffinityGraph.from_matrix(to_scipy(graph.weights)[rows][:, rows], signed=graph.signed)


# ------------------------------------------------------------------------------------------- partitions of one subset


def _communities(
    graph: AffinityGraph, rows: np.ndarray, n_clusters: Sequence[int], seed: int
) -> list[list[np.ndarray]]:
    return partitions(graph, n_clusters, np.random.RandomState(seed))


def _partition_by(estimator: Any, data: _Data) -> Partition:
    """Return the function that fits clones of an estimator to a subset."""
    params = estimator.get_params()
    name = _parameter(estimator, params, "n_clusters", "n_components")
    if name is None:
        problem = f"{type(estimator).__name__} has no parameter n_clusters or n_components"
        hint = "pass a clusterer whose number of clusters can be set"
        raise InputError(problem, hint, code="no_n_clusters", parameter="estimator")
    seed_name = _parameter(estimator, params, "random_state")
    has_built_graph = data.X is not None and isinstance(estimator, GraphEstimatorMixin) and not (
        estimator.graph is None or isinstance(estimator.graph, str) or hasattr(estimator.graph, "build")
    )  # fmt: skip

    def partition(
        graph: AffinityGraph, rows: np.ndarray, n_clusters: Sequence[int], seed: int
    ) -> list[list[np.ndarray]]:
        subset = graph if data.X is None else take_rows(data.X, rows)
        fixed: dict[str, Any] = {seed_name: seed} if seed_name is not None else {}
        fixed |= {"graph": graph} if has_built_graph else {}
        models = (clone(estimator).set_params(**{name: k}, **fixed) for k in n_clusters)
        weights = {} if data.weights is None else {"sample_weight": data.weights[rows]}
        with ignore_warnings(FiedlerWarning):  # about one subset of many
            labels = [to_numpy(model.fit_predict(subset, **weights)) for model in models]
        return [[np.unique(one, return_inverse=True)[1]] for one in labels]  # noise and gaps in the numbers, too

    return partition


def _parameter(estimator: Any, params: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of some parameters that an estimator has, or the last step of a pipeline."""
    prefix = f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""
    return next((prefix + name for name in names if prefix + name in params), None)


# ------------------------------------------------------------------------------------------------------- the density


class RowDensity(NamedTuple):
    """How densely the rows lie, by the distances to their nearest neighbours."""

    log_radii: np.ndarray  # (n,), logarithm of the distance to the last neighbour
    dimension: float  # the number of dimensions near the rows

    @classmethod
    def of(cls, edges: Edges) -> RowDensity:
        """Return the density of rows from their neighbours, equally many for each and sorted by distance.

        The dimension is m = 1 / mean_ij log(r_i / d_ij), where d_ij is the distance to the j-th neighbour [Levina &
        Bickel 2004, averaged as in MacKay & Ghahramani 2005].
        """
        distances = to_numpy(edges.distances).reshape(edges.shape[0], -1).astype(np.float64)
        positive = distances[distances > 0]
        smallest = positive.min() if len(positive) else 1.0
        logs = np.log(np.maximum(distances, smallest))
        spread = float(np.mean(logs[:, -1:] - logs[:, :-1])) if logs.shape[1] > 1 else 0.0
        return cls(logs[:, -1], 1 / max(spread, 1e-3))

    def valley(self, graph: AffinityGraph, rows: np.ndarray, labels: np.ndarray) -> float:
        """Return by how much the density falls at the borders of clusters of some rows, of which the graph is given.

        The mean over the clusters, weighted by their rows on a border. `MAX_VALLEY` if there are hardly any such rows.
        """
        weights = to_scipy(graph.weights)
        sizes, ends, n = np.bincount(labels), row_indices(weights), len(labels)
        counted = np.where(sizes[labels[ends]] <= FEW_ROWS, weights.data, 1.0)
        total = np.bincount(ends, counted, minlength=n)
        crossing = np.bincount(ends, counted * (labels[ends] != labels[weights.indices]), minlength=n)
        leaving = crossing / np.where(total > 0, total, 1)
        values, k = self.log_radii[rows], int(labels.max()) + 1
        border, inside = leaving >= BORDER_SHARE, leaving <= INSIDE_SHARE
        n_border, n_inside = (np.bincount(labels[part], minlength=k) for part in (border, inside))
        if not (n_border > 1).any():
            return MAX_VALLEY
        sums = [np.bincount(labels[part], values[part], minlength=k) for part in (border, inside)]
        fall = sums[0] / np.maximum(n_border, 1) - sums[1] / np.maximum(n_inside, 1)
        fall = np.where(n_inside > 1, fall, 0)
        return float(self.dimension * np.average(fall, weights=np.where(n_border > 1, n_border, 0)))


# ----------------------------------------------------------------------------------------------------------- the rule


class Evidence(NamedTuple):
    """What the partitions of subsets show for a number of clusters."""

    stability: float
    error: float
    modularity: float
    evenness: float
    valley: float
    is_complete: bool = True  # whether about as many clusters were found as were asked for

    @property
    def score(self) -> float:
        """(s³ Q)² e √v."""
        depth = min(max(self.valley, MIN_DEPTH), MAX_DEPTH)
        return (max(self.stability, 0.0) ** 3 * max(self.modularity, 0.0)) ** 2 * self.evenness * math.sqrt(depth)

    def is_finer_than(self, groups: Evidence, dimension: float) -> bool:
        """Whether clusters inside of groups that gaps separate are real, near rows of so many dimensions."""
        is_found = self.stability >= FINER_STABILITY and self.valley >= FINER_VALLEY
        is_found = is_found and dimension >= MIN_FINER_DIMENSION
        is_clear = self.stability >= CLEAR_STABILITY and self.valley >= CLEAR_DEPTH
        factor = CLEARLY_FINER if is_clear else FINER_FACTOR
        return is_found and self.score > factor * groups.score

    @property
    def valley_score(self) -> float:
        """s² e v: whether there are two parts at all, with a valley between them."""
        return max(self.stability, 0.0) ** 2 * self.evenness * min(max(self.valley, 0.0), MAX_VALLEY)


@dataclass(frozen=True, eq=False)
class _Subsets:
    """Random subsets of the rows, and what their partitions into some numbers of clusters show."""

    rows: list[np.ndarray]
    graphs: list[AffinityGraph]
    seeds: np.ndarray
    partition: Partition
    density: RowDensity | None
    weights: np.ndarray | None
    n_jobs: int | None

    @cached_property
    def shared(self) -> list[tuple[int, int, np.ndarray, np.ndarray, np.ndarray | None]]:
        """Every two subsets, the places of the rows they share in each, and the weights of these."""
        pairs = []
        for a, b in combinations(range(len(self.rows)), 2):
            rows, in_a, in_b = np.intersect1d(self.rows[a], self.rows[b], assume_unique=True, return_indices=True)
            if len(rows) < 2:
                raise InputError("two subsets share no rows", "use a larger fraction", parameter="fraction")
            pairs.append((a, b, in_a, in_b, None if self.weights is None else self.weights[rows]))
        return pairs

    def compare(self, numbers: Sequence[int]) -> dict[int, Evidence]:
        """Return the evidence for each number of clusters: that of the method with the highest score."""

        def cluster_subset(i: int) -> list[list[np.ndarray]]:
            return self.partition(self.graphs[i], self.rows[i], numbers, int(self.seeds[i]))

        found = map_tasks(cluster_subset, list(range(len(self.rows))), "counting clusters", self.n_jobs)
        evidence = {}
        for place, k in enumerate(numbers):
            n_methods = min(len(one[place]) for one in found)
            methods = [self._evidence([one[place][method] for one in found], k) for method in range(n_methods)]
            evidence[k] = first_best(methods, lambda one: one.score if one.is_complete else -1.0)
        return {k: one for k, one in evidence.items() if one.is_complete} or evidence

    def _evidence(self, partitions: list[np.ndarray], k: int) -> Evidence:
        agreement = np.array(
            [weighted_ari(partitions[a][i], partitions[b][j], weights) for a, b, i, j, weights in self.shared]
        )
        error = agreement.std(ddof=min(1, len(agreement) - 1)) / math.sqrt(len(agreement))
        parts = list(zip(self.graphs, self.rows, partitions))
        quality = np.mean([modularity(graph, labels) for graph, _, labels in parts])
        falls = [1.0 if self.density is None else self.density.valley(*part) for part in parts]
        even = np.mean([evenness(labels) for labels in partitions])
        n_found = np.mean([len(np.unique(labels)) for labels in partitions])
        stability, valley = float(agreement.mean()), float(np.mean(falls))
        return Evidence(stability, float(error), float(quality), float(even), valley, bool(n_found >= MIN_FOUND * k))


def count_clusters(
    graph: AffinityGraph,
    candidates: Sequence[int] | None,
    subset_graph: Callable[[np.ndarray], AffinityGraph],
    partition: Partition | None = None,
    *,
    min_clusters: int = 2,
    max_clusters: int | None = None,
    n_subsets: int = 6,
    fraction: float = 0.8,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
    rows: Array | None = None,
    may_be_one: bool = False,
    density: RowDensity | None = None,
    weights: np.ndarray | None = None,
) -> NClustersChoice:
    """Apply the rule to a graph; ``candidates`` other than one, None for all numbers within the limits.

    The ``rows`` are those of the graph, if it is the default one; only then one cluster can be considered.
    """
    n_samples = graph.n_nodes
    if not np.any(to_numpy(graph.degrees) > 0):
        raise InputError("the graph has no edges, so it has no communities", "use more neighbours", code="no_edges")
    groups = _separated_groups(graph, rows, density, random_state)
    separated = groups.n_groups if np.mean(groups.labels < 0) <= MAX_UNCOUNTED else 1
    sample = random_subset(n_samples, min(1.0, MAX_SAMPLED_ROWS / n_samples), random_state)
    subsets = [sample[random_subset(len(sample), fraction, random_state)] for _ in range(n_subsets)]
    numbers = _numbers_to_compare(candidates, min(map(len, subsets)), separated, min_clusters, max_clusters)
    least = next((k for k in numbers if k >= separated), numbers[-1]) if numbers and separated >= 2 else 1
    is_considered = may_be_one and separated < 2 and rows is not None
    structure = clusterability(rows, random_state) if is_considered else None
    about: dict[str, Any] = {"n_separated": separated}
    if separated >= 2 and groups.thickest is not None:
        about["p_value"] = groups.thickest.p_value
    if structure is not None:
        about |= {"clusterability": structure.plain, "unrolled": structure.unrolled}
    if not numbers or (len(numbers) < 2 and structure is None):
        only = numbers[0] if numbers else min(n_samples, max(min_clusters, *(candidates or [0])))
        if structure is not None and structure.plain <= MIN_CLUSTERABILITY:
            return NClustersChoice(1, "one cluster", [only], **about)
        return NClustersChoice(only, "the only candidate", [only], is_capped=only < separated, **about)
    graphs = map_tasks(subset_graph, subsets, "building graphs of subsets", n_jobs)
    seeds = random_state.randint(2**31 - 1, size=n_subsets)
    compared = _Subsets(subsets, graphs, seeds, partition or _communities, density, weights, n_jobs)
    evidence = compared.compare(numbers)
    dimension = HIGH_DIMENSION if density is None else density.dimension
    are_texts = cache(lambda: rows is not None and are_documents(rows))
    choose_number = partial(_choose, least=least, dimension=dimension, are_texts=are_texts)
    chosen = choose_number(evidence)
    if candidates is None and (between := _numbers_between(numbers, chosen)):
        evidence = dict(sorted((evidence | compared.compare(between)).items()))
        chosen = choose_number(evidence)
    by = "gaps" if chosen == separated >= 2 else "limit" if chosen < separated else "score"
    if structure is not None:
        most = min(MAX_VALLEY_CLUSTERS, min(map(len, subsets)) // FEW_ROWS)
        valleys = {} if density is None else {k: one.valley_score for k, one in evidence.items()}
        chosen, by, about["p_value"] = _test_one_cluster(structure, valleys, dimension, most, chosen, list(evidence))
    is_largest = candidates is None and chosen == max(numbers) and chosen != separated
    return NClustersChoice(
        chosen,
        by,
        list(evidence),
        stability=[one.stability for one in evidence.values()],
        stability_error=[one.error for one in evidence.values()],
        modularity=[one.modularity for one in evidence.values()],
        valley=None if density is None else [one.valley for one in evidence.values()],
        score=[one.score for one in evidence.values()],
        is_capped=chosen > 1 and (chosen < separated or is_largest),
        **about,
    )


def _numbers_to_compare(
    candidates: Sequence[int] | None, n_rows: int, separated: int, min_clusters: int, max_clusters: int | None
) -> list[int]:
    """Return the numbers of clusters to compare for subsets of so many rows, within the limits."""
    if candidates is not None:
        return [k for k in candidates if k <= n_rows // 2]
    limits = {k for k in (min_clusters, max_clusters) if k is not None and k <= n_rows // 2}
    numbers = sorted({*default_candidates(n_rows, separated), *limits})
    return [k for k in numbers if min_clusters <= k and (max_clusters is None or k <= max_clusters)]


def _test_one_cluster(
    structure: Clusterability,
    valleys: Mapping[int, float],
    dimension: float,
    most: int,
    chosen: int,
    numbers: Sequence[int],
) -> tuple[int, str, float]:
    """Return the number of clusters of rows without gaps, the reason and the p-value of the test for one cluster.

    Valleys between up to ``most`` clusters are evidence against one: those of more, or of few rows, come by chance.
    Where only a valley is evidence for several, the deepest one of a stable partition chooses the number, and where
    only the dip along a line or a loop is, the number next to that of the modes does.
    """
    deepest = max((valley for k, valley in valleys.items() if k <= most), default=0.0)
    against_one = evidence_against_one(structure, deepest, dimension)
    by = "score"
    if against_one <= 1:
        chosen, by = 1, "one cluster"
    elif evidence_against_one(structure._replace(dip=0.0), deepest, dimension) <= 1:
        chosen, by = min(numbers, key=lambda k: abs(k - structure.n_modes)), "modes"
    elif valleys and structure.plain <= MIN_CLUSTERABILITY:
        chosen, by = first_best(list(valleys), valleys.__getitem__), "valley"
    return chosen, by, error_probability(against_one)


def _separated_groups(
    graph: AffinityGraph, rows: Array | None, density: RowDensity | None, random_state: np.random.RandomState
) -> SeparatedGroups:
    """Return the groups that gaps separate.

    On a line, nine neighbours to one side happen to be closer than the first one to the other side somewhere among a
    few thousand rows. There, more neighbours are used.
    """
    if rows is not None and density is not None and density.dimension < LINE_DIMENSION:
        graph = as_affinity(self_tuned(min(LINE_NEIGHBORS, rows.shape[0] - 1)), rows, validated=True)
    return separated_groups(graph, random_state)


def default_candidates(n_rows: int, n_separated: int = 1) -> list[int]:
    """Return the numbers of clusters that are compared for subsets of ``n_rows`` rows: dense, then geometric."""
    largest = min(max(n_rows // MIN_SUBSET_ROWS_PER_CLUSTER, min(n_rows // 4, FEWEST_COMPARED)), MAX_CELLS // 2)
    numbers, k = set(range(2, min(DENSE_UP_TO, largest) + 1)), float(DENSE_UP_TO)
    while (k := k * GRID_FACTOR) <= largest:
        numbers.add(round(k))
    return sorted(numbers | ({n_separated} if 2 <= n_separated <= n_rows // 2 else set()))


def _numbers_between(numbers: Sequence[int], chosen: int) -> list[int]:
    """Return some numbers between the chosen one and those compared before and after it."""
    place = numbers.index(chosen)
    low, high = numbers[max(place - 1, 0)], numbers[min(place + 1, len(numbers) - 1)]
    missing = [k for k in range(low + 1, high) if k not in numbers]
    return missing[:: math.ceil(len(missing) / 8)] if missing else []


def _choose(
    evidence: Mapping[int, Evidence], least: int, dimension: float, *, are_texts: Callable[[], bool] = bool
) -> int:
    """Return the number that the gaps give, or a clearly better one; without gaps the best, or a finer one as good.

    Along a line, where a sample happens to be thin is a valley between stable parts; there the gaps decide. Of texts
    the best is one that explains nearly as many edges as any, unless it is stable.
    """
    if least in evidence:
        finer = [k for k, one in evidence.items() if k > least and one.is_finer_than(evidence[least], dimension)]
        return first_best(finer, lambda k: evidence[k].score) if finer else least
    scores = {k: one.score for k, one in evidence.items() if k >= least}
    if not scores:
        return least
    best = first_best(list(scores), scores.__getitem__)
    good = [k for k in scores if k * (1 - SIMILAR_NUMBERS) > best and scores[k] >= NEARLY_AS_GOOD * scores[best]]
    similar = [k for k in scores if good and max(best, max(good) * (1 - SIMILAR_NUMBERS)) < k <= max(good)]
    chosen = first_best(similar, scores.__getitem__) if similar else best
    if evidence[chosen].stability - evidence[chosen].error < STABLE_ABOVE and are_texts():
        lowest = max(evidence[k].modularity for k in scores) - NEARLY_AS_MODULAR
        return _choose({k: evidence[k] for k in scores if evidence[k].modularity >= lowest}, least, dimension)
    return chosen
