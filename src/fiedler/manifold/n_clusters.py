"""The number of clusters: the most stable one, and among equally stable ones that of the largest relative eigengap.

1. *Stability.* The rows are subsampled several times and every subset is clustered for every candidate K. The adjusted
   Rand index (0 for chance, whatever K) measures how well two subsets agree on the rows they share. A K that is too
   large splits clusters arbitrarily and so differently in every subset (Ben-Hur, Elisseeff & Guyon 2002).
2. *Relative eigengap.* Of the candidates within `STABILITY_TOLERANCE` of the most stable one, the K of the largest
   log λ_(K+1) / λ_K is chosen, λ being the eigenvalues of the graph's normalised Laplacian: a graph of K well separated
   groups has K small eigenvalues and then a gap [vonLuxburg07, 8.3]. Eigenvalues below `SMALLEST_EIGENVALUE` count as
   equal; where that makes all gaps zero they say nothing, and the largest of the stable numbers is taken.

One cluster is always stable and has no gap before it. It is chosen where the rows have no more structure than a single
Gaussian, see `clusterability`.

Either kind of evidence alone is often misleading: coarse partitions are always stable, and two clusters far from the
rest open a large gap. Modularity is reported as well but not used: it rises when a curved cluster is cut. The
notes on ManifoldClustering in the documentation have the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._typing import Array, MatrixLike, RandomState, SupportsShape
from .._validation import (
    check_data,
    check_fraction,
    check_int,
    check_n_clusters,
    check_n_jobs,
    check_seed,
    check_takes_weights,
)
from ..core.arrays import asarray_like, is_numpy, random_subset, take_rows, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.parallel import map_tasks
from ..core.sparse import to_scipy
from ..errors import InputError, shown
from ..graph.affinity import AffinityGraph
from ..graph.community import MultilevelSearch, modularity, search_hierarchy
from ..graph.estimator import ClustererMixin, GraphEstimatorMixin
from ..graph.kernels import LandmarkGraph
from ..graph.neighbors import APPROXIMATE_ABOVE
from ..graph.recipes import as_affinity, default_recipe, is_precomputed
from ..graph.weights import canonical_order, check_relative_weights, different_rows, weigh_graph
from ..metrics import adjusted_rand_index
from ..metrics.scores import weighted_ari

# ---------------------------------------------------------------------------------------------------------------------
# Clusterability: whether rows have more than one cluster, by the spectrum of their graph compared with a Gaussian's.
#
#     c = max_K [ mean_b log λ_K(b) - log λ_K ],      K = 2..8
#
# λ_K is the K-th smallest eigenvalue of the normalised Laplacian of the self-tuned neighbour graph of the rows, λ_K(b)
# that of rows drawn from a Gaussian with the mean and covariance of the rows. K separated clusters make K eigenvalues
# small. So does a long narrow shape, but then also for the Gaussian, which has the same principal axes. This is the gap
# statistic of Tibshirani, Walther & Hastie (2001), with eigenvalues in place of the dispersion inside k-means clusters,
# which depends on shapes and tails: a self-tuned graph hardly depends on the density.
#
# A Gaussian has c ≈ 0, and other shapes without gaps (a cube, a ball, heavy or one-sided tails) have up to 0.91. A few
# far outliers are clusters of their own: six in 300 rows suffice.

MIN_CLUSTERABILITY = math.log(2.5)  # above which there is more than one cluster
MIN_CLUSTERABILITY_ROWS = 20  # distinct ones; with fewer the spectrum of a graph says little
MAX_CLUSTERABILITY_ROWS = 1000  # a random sample of more rows
MAX_EIGENVALUES = 8
N_DRAWS = 4
EIGENVALUE_FLOOR = 1e-4  # smaller ones are raised to it: they depend on the single edges that join components


def clusterability(X: Array, random_state: np.random.RandomState) -> float | None:
    """Return c: about 0 for a single Gaussian, usually above 0.92 if clusters are separated by thin regions.

    Repeated rows count once: they would form clusters of their own, as in counts and rounded measurements.
    """
    sample = random_subset(X.shape[0], min(1.0, MAX_CLUSTERABILITY_ROWS / X.shape[0]), random_state)
    rows = take_rows(X, sample)
    rows = take_rows(rows, different_rows(rows)[0])
    if rows.shape[0] < MIN_CLUSTERABILITY_ROWS:
        return None
    log_values, axes = _log_eigenvalues(rows, random_state), principal_axes(rows)
    drawn = [_log_eigenvalues(draw_gaussian(axes, rows, random_state), random_state) for _ in range(N_DRAWS)]
    return float(np.max(np.mean(drawn, axis=0) - log_values))


def _log_eigenvalues(rows: Array, random_state: np.random.RandomState) -> np.ndarray:
    """Compute log λ_K for K = 2..8, of the self-tuned graph of nine neighbours."""
    n = rows.shape[0]
    graph = as_affinity(default_recipe(n, connect="mst"), rows, validated=True)
    values = smallest_eigenpairs(graph, min(MAX_EIGENVALUES, n - 1), random_state=random_state).values
    return np.log(np.maximum(to_numpy(values)[1:], EIGENVALUE_FLOOR))


def principal_axes(rows: Array) -> np.ndarray:
    """Return the standard deviations of the rows along their principal axes, those that are not zero."""
    n, d = rows.shape
    if sp.issparse(rows):  # centred after the product, so that it is not filled
        Z = rows.astype(np.float64)
        inner = (Z @ Z.T).toarray()
        inner = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
        variances = np.linalg.eigvalsh(inner)[::-1][:d] / n
    else:
        Z = to_numpy(rows).astype(np.float64)
        variances = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2 / n
    return np.sqrt(variances[variances > n * np.finfo(np.float32).eps * variances[0]])


def draw_gaussian(axes: np.ndarray, rows: Array, random_state: np.random.RandomState) -> Array:
    """Draw as many rows as given ones from a Gaussian with the given principal axes, in coordinates along these."""
    drawn = random_state.standard_normal((rows.shape[0], len(axes))) * axes
    return drawn if is_numpy(rows) else asarray_like(drawn, rows, dtype=rows.dtype)


# -------------------------------------------------------------------------------------------------------- the evidence

DEFAULT_CANDIDATES = range(1, 21)
MAX_SAMPLED_ROWS = 2500  # a random sample of this size gives the same answer
PERSISTENT_ABOVE = 0.85  # stability of a persistent number of clusters
UNSTABLE_BELOW = 0.8  # largest stability below which no number is stable
STABILITY_TOLERANCE = 0.05  # in the adjusted Rand index
SMALLEST_EIGENVALUE = 0.003  # smaller ones are raised to it: their ratios depend on single edges between clusters

# Clusters one subset of the rows: its graph, its row numbers, the numbers of clusters and a seed, to one label array
# per number of clusters.
Partition = Callable[[AffinityGraph, np.ndarray, Sequence[int], int], list[np.ndarray]]


@dataclass(frozen=True)
class NClustersChoice:
    """A number of clusters and the evidence for it.

    Attributes
    ----------
    n_clusters : int
        The chosen number.
    by : str
        The rule that chose it.
    candidates : list of int
        The numbers that were compared.
    gaps : list of float or None
        Relative eigengap log λ_(K+1) / λ_K of the graph, for every candidate K.
    stability : list of float or None
        Mean adjusted Rand index between clusterings of subsets, for every candidate.
    stability_error : list of float or None
        Standard errors of these means.
    modularity : list of float or None
        Mean modularity of the clusterings of subsets, for every candidate.
    clusterability : float or None
        How much smaller the eigenvalues of the graph are than those of a single Gaussian, on a logarithmic scale; if it
        is at most log 2.5, there is one cluster. None if one cluster was not considered.

    Examples
    --------
    >>> from fiedler.manifold import NClustersChoice
    >>> print(NClustersChoice(3, "stability, then eigengap", [2, 3], gaps=[0.01, 0.3]))
    3 clusters, by stability, then eigengap
      K     gap      stability  modularity
      2  0.0100              -           -
      3  0.3000              -           -  <
    """

    n_clusters: int
    by: str
    candidates: list[int]
    gaps: list[float] | None
    stability: list[float] | None = None
    stability_error: list[float] | None = None
    modularity: list[float] | None = None
    clusterability: float | None = None

    @property
    def levels(self) -> list[tuple[int, float]]:
        """The numbers of clusters that are persistent, with their stability.

        They are the local maxima of the stability of at least 0.85: clusters of clusters have several. Of equally
        stable neighbours the smallest stands for all, and the chosen number for a maximum next to it, if it is above
        the threshold, too. One cluster has no levels.
        """
        if self.stability is None or self.n_clusters == 1:
            return []
        chosen = self.candidates.index(self.n_clusters)
        stands_for_others = self.stability[chosen] >= PERSISTENT_ABOVE
        levels = [chosen] if stands_for_others else []
        padded = [-1.0, *self.stability, -1.0]
        for value, run in groupby(enumerate(self.stability), key=lambda pair: pair[1]):
            first, *_, last = [i for i, _ in run] * 2
            is_peak = value >= PERSISTENT_ABOVE and value > padded[first] and value > padded[last + 2]
            if is_peak and not (stands_for_others and first - 1 <= chosen <= last + 1):
                levels.append(first)
        return [(self.candidates[i], self.stability[i]) for i in sorted(levels)]

    @property
    def is_stable(self) -> bool:
        """Whether some number of clusters is found again in random subsets, or one cluster was chosen."""
        return self.n_clusters == 1 or self.stability is None or max(self.stability) >= UNSTABLE_BELOW

    @property
    def title(self) -> str:
        """The number and the rule in a line."""
        return f"{self.n_clusters} {'cluster' if self.n_clusters == 1 else 'clusters'}, by {self.by}"

    def __str__(self) -> str:
        lines = [self.title, "  K     gap      stability  modularity"]
        errors = self.stability_error or [0.0] * len(self.candidates)
        for i, k in enumerate(self.candidates):
            stability = "-" if self.stability is None else f"{self.stability[i]:.3f} ± {errors[i]:.3f}"
            gap = "-" if self.gaps is None else f"{self.gaps[i]:.4f}"
            quality = "-" if self.modularity is None else f"{self.modularity[i]:.4f}"
            mark = "  <" if k == self.n_clusters else ""
            lines.append(f"{k:3d}  {gap:>6s}  {stability:>13s}  {quality:>10s}{mark}")
        if len(self.levels) > 1:
            lines.append("persistent: " + ", ".join(f"{k} ({value:.2f})" for k, value in self.levels))
        if not self.is_stable:
            lines.append("no number of clusters is stable")
        if self.clusterability is not None:
            lines.append(
                f"clusterability {self.clusterability:.2f}; up to {MIN_CLUSTERABILITY:.2f} for a single cluster"
            )
        return "\n".join(lines)


def choose_n_clusters(
    X: MatrixLike | AffinityGraph,
    candidates: Iterable[int] = DEFAULT_CANDIDATES,
    *,
    estimator: Any = None,
    n_subsets: int = 4,
    fraction: float = 0.8,
    sample_weight: SupportsShape | Sequence[float] | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> NClustersChoice:
    """Choose the number of clusters by stability under subsampling, then by eigengap.

    ``ManifoldClustering(n_clusters="auto")`` uses this function without an ``estimator``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or AffinityGraph
        The rows, or a graph on them.
    candidates : iterable of int, default=range(1, 21)
        The numbers to choose from. One is chosen if the rows have no more structure than a single Gaussian; it is left
        out if a graph is given, as ``X`` or as the estimator's own, or fewer than 20 distinct rows.
    estimator : clusterer, optional
        The model whose clusters are counted: any scikit-learn clusterer with a parameter ``n_clusters`` or
        ``n_components``. By default the communities of the nearest-neighbour graph.
    n_subsets : int, default=4
        Random subsets that are clustered; every two of them are compared.
    fraction : float, default=0.8
        The fraction of the rows in each subset.
    sample_weight : array of shape (n_samples,), optional
        Positive weights of the rows, in the graph, in the estimator and in the comparison of subsets.
    random_state : int, RandomState or None, default=None
        Random seed or generator.
    n_jobs : int, optional
        The number of threads, at most one per subset.

    Returns
    -------
    NClustersChoice

    Notes
    -----
    The eigengaps are those of the estimator's own graph if it has one, otherwise of a self-tuned graph of nine
    neighbours. If there are more than 2,500 rows, subsets of a random sample are clustered; the eigengaps of more than
    10,000 rows are those of a coarser version of the graph.

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
    data = _Data.from_input(X, estimator)
    data = data.weighed(check_relative_weights(sample_weight, data.graph.n_nodes), estimator)
    numbers = _check_candidates(candidates, data.graph.n_nodes)
    return count_clusters(
        data.graph,
        [k for k in numbers if k > 1],
        data.subset_graph,
        _communities if estimator is None else _partition_by(estimator, data),
        n_subsets=check_int(n_subsets, "n_subsets", minimum=2),
        fraction=check_fraction(fraction, "fraction"),
        random_state=check_seed(random_state),
        n_jobs=check_n_jobs(n_jobs),
        rows=data.rows if numbers[0] == 1 else None,
        weights=data.weights,
    )


def _check_candidates(candidates: Iterable[int], n_samples: int) -> list[int]:
    if not isinstance(candidates, Iterable):
        problem = f"candidates={shown(candidates)} must be an iterable of integers"
        raise InputError(problem, "pass for example range(2, 16)", parameter="candidates", value=candidates)
    numbers = sorted({check_n_clusters(k, n_samples - 2) for k in candidates})
    if not numbers or numbers == [1]:
        problem = "one cluster has no alternative" if numbers else "candidates is empty"
        raise InputError(problem, "pass numbers of clusters of at least 2", parameter="candidates", value=numbers)
    return numbers


class _Data(NamedTuple):
    """What is clustered: the graph of all rows, for the eigengaps, and the rows unless only a graph is given."""

    graph: AffinityGraph
    X: Array | None
    recipe: Any  # builds the graph of a subset; None if the induced subgraph is used
    rows: Array | None = None  # as the default graph uses them; None if the graph is another one
    weights: np.ndarray | None = None  # of the rows
    order: np.ndarray | None = None  # of the given rows; None if it is their own

    @classmethod
    def from_input(cls, X: MatrixLike | AffinityGraph, estimator: Any) -> _Data:
        """Validate the input and build the graph: the estimator's own if it has one, else the default graph."""
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
        order = None
        if estimator is None and rows.shape[0] <= APPROXIMATE_ABOVE:
            order = canonical_order(rows)
            rows = take_rows(rows, order)
        recipe = default_recipe(rows.shape[0], connect="mst")
        graph = as_affinity(recipe, rows, validated=True)
        return cls(graph, rows, None if estimator is not None else recipe, rows, order=order)

    def weighed(self, weights: np.ndarray | None, estimator: Any) -> _Data:
        """Return the data with weights of the rows, which an estimator must take."""
        if weights is not None and estimator is not None:
            check_takes_weights(estimator)
        if weights is not None and self.order is not None:
            weights = weights[self.order]
        return self._replace(graph=weigh_graph(self.graph, weights), weights=weights)

    def subset_graph(self, rows: np.ndarray) -> AffinityGraph:
        """Return the graph of some rows: built anew for communities, else induced."""
        if self.recipe is None:
            return subgraph(self.graph, rows)
        graph = as_affinity(default_recipe(len(rows), connect="mst"), take_rows(self.X, rows), validated=True)
        return weigh_graph(graph, None if self.weights is None else self.weights[rows])


def subgraph(graph: AffinityGraph, rows: np.ndarray) -> AffinityGraph:
    """Return the graph induced on some of its nodes."""
    return AffinityGraph.from_matrix(to_scipy(graph.weights)[rows][:, rows], signed=graph.signed)


# ------------------------------------------------------------------------------------------- partitions of one subset


def _communities(graph: AffinityGraph, rows: np.ndarray, n_clusters: Sequence[int], seed: int) -> list[np.ndarray]:
    rng = np.random.RandomState(seed)
    search = MultilevelSearch.on(graph, max(n_clusters), rng)
    return [to_numpy(result.labels) for result in search.find_each(n_clusters, rng)]


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

    def partition(graph: AffinityGraph, rows: np.ndarray, n_clusters: Sequence[int], seed: int) -> list[np.ndarray]:
        subset = graph if data.X is None else take_rows(data.X, rows)
        fixed: dict[str, Any] = {seed_name: seed} if seed_name is not None else {}
        fixed |= {"graph": graph} if has_built_graph else {}
        models = (clone(estimator).set_params(**{name: k}, **fixed) for k in n_clusters)
        weights = {} if data.weights is None else {"sample_weight": data.weights[rows]}
        return [to_numpy(model.fit_predict(subset, **weights)) for model in models]

    return partition


def _parameter(estimator: Any, params: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of some parameters that an estimator has, or the last step of a pipeline."""
    prefix = f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""
    return next((prefix + name for name in names if prefix + name in params), None)


# ----------------------------------------------------------------------------------------------------------- the rule


def count_clusters(
    graph: AffinityGraph,
    candidates: Sequence[int],
    subset_graph: Callable[[np.ndarray], AffinityGraph],
    partition: Partition = _communities,
    *,
    n_subsets: int = 4,
    fraction: float = 0.8,
    random_state: np.random.RandomState,
    n_jobs: int | None = None,
    rows: Array | None = None,
    weights: np.ndarray | None = None,
) -> NClustersChoice:
    """Apply the rule to a graph."""
    n_samples = graph.n_nodes
    sample = random_subset(n_samples, min(1.0, MAX_SAMPLED_ROWS / n_samples), random_state)
    subsets = [sample[random_subset(len(sample), fraction, random_state)] for _ in range(n_subsets)]
    possible = [k for k in candidates if k <= min(map(len, subsets)) // 2]
    structure = None if rows is None else clusterability(rows, random_state)
    is_one = structure is not None and structure <= MIN_CLUSTERABILITY
    if len(possible) < 2:
        only = possible[0] if possible else min(*candidates, n_samples)
        if structure is None:
            return NClustersChoice(only, "the only candidate", [only], None)
        return NClustersChoice(1 if is_one else only, "clusterability", [only], None, clusterability=structure)

    def cluster_subset(task: tuple[np.ndarray, int]) -> tuple[list[np.ndarray], list[float]]:
        rows, seed = task
        part = subset_graph(rows)
        partitions = partition(part, rows, possible, seed)
        return partitions, [modularity(part, labels) for labels in partitions]

    seeds = random_state.randint(2**31 - 1, size=n_subsets)
    results = map_tasks(cluster_subset, list(zip(subsets, seeds)), "counting clusters", n_jobs)
    agreement = _agreement([partitions for partitions, _ in results], subsets, weights)
    n_pairs = agreement.shape[1]
    means, errors = agreement.mean(axis=1), agreement.std(axis=1, ddof=min(1, n_pairs - 1)) / np.sqrt(n_pairs)
    coarse = search_hierarchy(graph, possible[-1], random_state).coarsest
    gaps = relative_eigengaps(coarse, possible, random_state)
    stable_gaps = np.where(means >= means.max() - STABILITY_TOLERANCE, gaps, -np.inf)
    best = int(np.flatnonzero(stable_gaps == stable_gaps.max())[-1])
    return NClustersChoice(
        1 if is_one else possible[best],
        "clusterability" if is_one else "stability, then eigengap",
        possible,
        gaps.tolist(),
        means.tolist(),
        errors.tolist(),
        np.mean([quality for _, quality in results], axis=0).tolist(),
        structure,
    )


def relative_eigengaps(graph: AffinityGraph, candidates: Sequence[int], random_state: RandomState) -> np.ndarray:
    """Return log λ_(K+1) / λ_K of the graph's normalised Laplacian for every candidate K."""
    values = to_numpy(smallest_eigenpairs(graph, candidates[-1] + 1, random_state=random_state).values)
    values = np.maximum(values, SMALLEST_EIGENVALUE)
    return np.array([np.log(values[k] / values[k - 1]) for k in candidates])


def _agreement(
    partitions: Sequence[Sequence[np.ndarray]], subsets: Sequence[np.ndarray], weights: np.ndarray | None = None
) -> np.ndarray:
    """Compute the adjusted Rand index of every two subsets on the rows they share, (candidates, pairs)."""
    table = []
    for (labels_a, rows_a), (labels_b, rows_b) in combinations(zip(partitions, subsets), 2):
        shared, in_a, in_b = np.intersect1d(rows_a, rows_b, return_indices=True)
        pairs = [(a[in_a], b[in_b]) for a, b in zip(labels_a, labels_b)]
        if weights is None:
            table.append([adjusted_rand_index(*pair) for pair in pairs])
        else:
            table.append([weighted_ari(*pair, weights[shared]) for pair in pairs])
    return np.array(table).T
