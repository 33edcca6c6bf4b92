"""Communities: K groups of nodes with more weight inside than their volumes explain.

    Q(labels; γ) = (1/2m) Σ_ij [w_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i,

is the modularity at resolution γ; the number of communities is given. The search has several levels:

1. *Coarsening* (:mod:`.coarsen`): a large graph is contracted to a few thousand supernodes, on which Q is the same.
2. *Search*: from spectral partitions of the coarse graph, by *moves* of single nodes, *exchanges* (two communities are
   merged, a third is split in two along its Fiedler vector and then by moves, and the moves start again, which corrects
   partitions in which one group is split and two others are merged) and *recombination* (the cells on which several
   partitions agree are merged greedily down to K). It runs in NumPy whatever the library of the graph: the operations
   are so small that starting them on an accelerator would take longer.
3. *Refinement*: the partition is carried over to the finer graphs one by one, and nodes on a boundary move, in the
   array library of the graph.

A graph of up to `MAX_SEARCH_NODES` nodes is searched as it is, which is the same algorithm with a single level.

γ = 1 is Newman's modularity. It depends on sizes as much as on edges, and splits large groups before it separates small
ones. A small γ respects sizes, but then two small groups are merged, or a tail is cut off. The search starts at
`RESOLUTION`. If one of the K communities becomes empty, γ is multiplied by `RESOLUTION_FACTOR` until none is. If a
spectral partition has a normalised cut far below that of the communities, one group is much larger than the others, and
high modularity has split it and merged small ones: then lower resolutions are searched from that partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .._records import CommunityResult
from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_n_clusters, check_positive, check_seed
from ..core.arrays import asarray_like, first_best, is_numpy, namespace, normalize_rows, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.sparse import csr_parts, row_indices, sum_entries, to_scipy
from ..errors import InputError, ignore_warnings, shown
from .affinity import AffinityGraph
from .coarsen import MIN_GAIN, Hierarchy, WeightedEdges, coarsen
from .cuts import sum_of_cut_ratios
from .labels import check_node_labels, consecutive

RESOLUTION = 0.5  # γ at which the search starts
EIGENVECTORS_PER_CLUSTER = (1.0, 1.5, 2.0)  # groups are not always the K slowest modes
MIN_EIGENVALUE = 1e-6  # added to eigenvalues whose ratio is taken
MIN_EIGENVECTORS = 10  # for fine starts
CELLS_PER_CLUSTER = 4  # of a fine start ...
MIN_CELLS = (20, 40, 80)  # ... which has at least so many: few communities of an odd shape need fine starts
MAX_SEARCH_NODES = 10_000  # nodes up to which a graph is searched as it is
COARSE_NODES = 5_000  # nodes to which a larger one is coarsened, about
MIN_NODES_PER_CLUSTER = 30  # of these graphs
RESOLUTION_FACTOR = 1.25  # on γ, as long as a community is empty
MAX_RESOLUTION = 8.0  # γ beyond which empty communities are filled by splitting others
START_TOL = 1e-4  # of the eigenvectors, from which the search only starts
MAX_CELL_ROUNDS = 20  # rounds of moves among cells, which are merged afterwards
LOWER_CUT_FACTOR = 0.7  # a spectral partition below this part of the communities' normalised cut: γ was too high
LOWER_RESOLUTION_FACTORS = (1 / 2, 1 / 4, 1 / 16, 1 / 64)  # on γ, searched in that case
MIN_RELATIVE_VOLUME = 0.05  # of the mean volume: smaller communities found at lower resolutions are tails
MAX_CELLS = 400  # that are merged: the matrices have MAX_CELLS² entries
N_JITTERED_MERGES = 20  # ways of merging cells that are tried besides the greedy one
POWER_ITERATIONS = 60  # towards a Fiedler vector ...
BISECTION_ROUNDS = 15  # ... and rounds of moves between the two halves
N_EXCHANGES = 5  # exchanges with the highest estimated gain that are tried


@dataclass(frozen=True)
class CommunitySearch:
    """The search for K communities in one graph of at most a few thousand nodes, on the host."""

    edges: WeightedEdges
    weights: sp.csr_array  # (n, n), the same edges as a matrix
    loops: np.ndarray  # (n,), the weights of self-loops
    k: int
    rng: np.random.RandomState

    @classmethod
    def on(
        cls, graph: AffinityGraph, k: int, rng: np.random.RandomState, attracting: AffinityGraph | None = None
    ) -> CommunitySearch:
        """Return the search on a graph in SciPy, see `WeightedEdges.of`."""
        loops = np.zeros(graph.n_nodes) if graph.loops is None else graph.loops
        edges = WeightedEdges.of(graph, attracting)
        places = {"rows": edges.rows.astype(np.intp), "columns": edges.columns.astype(np.intp)}  # converted only once
        return cls(replace(edges, **places), graph.weights, loops, k, rng)

    def sums(self, labels: np.ndarray, values: np.ndarray, k: int | None = None) -> np.ndarray:
        """Return the sums of values over the communities."""
        return np.bincount(labels, values, minlength=k or self.k)

    def move(self, labels: np.ndarray, gamma: float) -> CommunityResult:
        """Move nodes among the K communities, until none would gain."""
        return self.edges.move(labels, gamma, self.k, self.rng)

    def improve(self, labels: np.ndarray, gamma: float) -> CommunityResult:
        """Move nodes, then exchange communities as long as that increases Q."""
        current = self.move(labels, gamma)
        while (better := self._exchange(current, gamma)) is not None:
            current = better
        return current

    def _exchange(self, current: CommunityResult, gamma: float) -> CommunityResult | None:
        """Regroup the halves of all communities, or merge two and split a third; return the first improvement."""
        halves = self.bisect(current.labels, gamma)
        between = self.cohesion(halves, 2 * self.k, gamma)
        trials = [_agglomerate(between[None], self.k)[0][halves]]
        triples = _best_exchanges(_split_gains(between), 2 * self.cohesion(current.labels, self.k, gamma))
        for target, merged, split in triples:  # the second half of ``split`` takes the number of ``merged``
            joined = np.where(current.labels == merged, target, current.labels)
            trials.append(np.where(halves == 2 * split + 1, merged, joined))
        results = (self.move(trial, gamma) for trial in trials)
        return next((result for result in results if result.modularity > current.modularity + MIN_GAIN), None)

    def bisect(self, labels: np.ndarray, gamma: float) -> np.ndarray:
        """Split every community l into 2l and 2l + 1, along its Fiedler vector and then by moves."""
        degrees, same = self.edges.degrees, labels[self.edges.rows] == labels[self.edges.columns]
        inner = self.weights.copy()
        inner.data *= same
        inner.eliminate_zeros()
        inner_degrees = inner @ np.ones(self.edges.n)
        side = (self._fiedler_vectors(inner, inner_degrees + self.loops, labels) > 0).astype(float)
        volumes = self.sums(labels, degrees)[labels]
        for _ in range(BISECTION_ROUNDS):
            # the weight to the second half minus that to the first, each minus what the volumes of the halves explain
            second = self.sums(labels, degrees * side)[labels]
            gain = 2 * (inner @ side) - inner_degrees
            gain -= (gamma / self.edges.total) * degrees * (2 * second - volumes - degrees * (2 * side - 1))
            would_gain = np.where(side > 0, gain < 0, gain > 0)
            if not would_gain.any():
                break
            side = np.where(would_gain & (self.rng.random_sample(self.edges.n) < 0.5), 1 - side, side)
        return 2 * labels + side.astype(labels.dtype)

    def _fiedler_vectors(self, inner: sp.csr_array, degrees: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the second eigenvector of the random walk inside each community, as one vector, by power iteration."""
        degrees = np.where(degrees > 0, degrees, 1)
        volumes = self.sums(labels, degrees)
        volumes = np.where(volumes > 0, volumes, 1)
        inner = inner + sp.diags_array(self.loops) if self.loops.any() else inner
        walk = sp.diags_array(1 / degrees) @ inner
        x = self.rng.standard_normal(self.edges.n)
        for _ in range(POWER_ITERATIONS):
            x -= (self.sums(labels, degrees * x) / volumes)[labels]
            norm = np.sqrt(self.sums(labels, degrees * x * x) / volumes)
            x /= np.where(norm > 0, norm, 1)[labels]
            x = 0.5 * (x + walk @ x)
        return x - (self.sums(labels, degrees * x) / volumes)[labels]

    def cohesion(self, labels: np.ndarray, k: int, gamma: float) -> np.ndarray:
        """Return the weight between communities minus what their volumes explain, over 2m: (k, k)."""
        edges = self.edges
        between = sum_entries(labels[edges.rows], labels[edges.columns], edges.weights, (k, k))
        between[np.arange(k), np.arange(k)] += self.sums(labels, self.loops, k)
        volumes = self.sums(labels, self.edges.degrees, k) / self.edges.total
        return between / self.edges.total - gamma * np.outer(volumes, volumes)

    def evolve(self, population: list[CommunityResult], gamma: float) -> CommunityResult:
        """Recombine partitions, the best first, as long as the result is better than all of them."""
        while True:
            population = sorted(population, key=lambda run: -run.modularity)
            child = self.improve(self.recombine([run.labels for run in population], gamma), gamma)
            if child.modularity <= population[0].modularity + MIN_GAIN:
                return population[0]
            population = [child, *population]

    def recombine(self, partitions: Sequence[np.ndarray], gamma: float) -> np.ndarray:
        """Merge the cells on which the partitions agree down to K; if there are too many, use fewer partitions."""
        cells = np.zeros(self.edges.n, dtype=np.int64)
        for labels in partitions:
            _, finer = np.unique(cells * self.k + labels, return_inverse=True)
            if finer.max() >= max(MAX_CELLS, self.k):
                break
            cells = finer
        return self.merge(cells, gamma)

    def merge(self, cells: np.ndarray, gamma: float) -> np.ndarray:
        """Merge cells into K communities, pair by pair and then by single moves; the best of several jittered tries."""
        n_cells = int(cells.max()) + 1
        if n_cells <= self.k:
            return cells
        cohesion = self.cohesion(cells, n_cells, gamma)
        jitter = np.exp(self.rng.standard_normal((N_JITTERED_MERGES, *cohesion.shape)))
        jittered = cohesion * (jitter + jitter.transpose(0, 2, 1))
        merged = _agglomerate(np.concatenate([cohesion[None], jittered]), self.k)
        tries = [_move_cells(labels, cohesion, self.k) for labels in merged]
        # The cohesion within groups of cells adds up to their modularity.
        return first_best(tries, lambda labels: float(cohesion[labels[:, None] == labels[None, :]].sum()))[cells]

    def normalized_cut(self, labels: np.ndarray) -> float:
        """Return Σ_k cut(A_k) / vol(A_k); infinite if a community is empty.

        Unlike `cuts.normalized_cut` it rejects empty communities, and negative weights are not in the volumes.
        """
        volumes = self.sums(labels, self.edges.degrees) / self.edges.total
        return sum_of_cut_ratios(volumes - np.diag(self.cohesion(labels, self.k, 0.0)), volumes)

    def lower_resolution(self, current: CommunityResult, spectral: Iterable[np.ndarray]) -> CommunityResult:
        """Search at lower resolutions if the cut of a spectral partition shows that γ is too high for these sizes.

        Partitions that cut off a tail, a community far smaller than the others, do not count: at a low resolution
        nothing prevents them.
        """
        cut = self.normalized_cut(current.labels)
        start = first_best(spectral, self.cut_without_tails, lowest=True)
        if self.cut_without_tails(start) >= LOWER_CUT_FACTOR * cut:
            return current
        lower = [self.improve(start, current.resolution * factor) for factor in LOWER_RESOLUTION_FACTORS]
        best = first_best(lower, lambda trial: self.cut_without_tails(trial.labels), lowest=True)
        return best if self.cut_without_tails(best.labels) < cut else current

    def cut_without_tails(self, labels: np.ndarray) -> float:
        """Return the normalised cut; infinite if a community is far smaller than the others."""
        volumes = self.sums(labels, self.edges.degrees) / self.edges.total
        return self.normalized_cut(labels) if volumes.min() >= MIN_RELATIVE_VOLUME / self.k else np.inf

    def without_empty(self, current: CommunityResult) -> CommunityResult:
        """Split the largest communities until there are K, if no resolution has kept all of them non-empty."""
        labels = current.labels.copy()
        for empty in np.flatnonzero(np.bincount(labels, minlength=self.k) == 0):
            largest = int(np.argmax(np.bincount(labels)))
            halves = self.bisect(labels, current.resolution)
            members = np.flatnonzero(labels == largest)
            second = members[halves[members] == 2 * largest + 1]
            labels[second if 0 < len(second) < len(members) else members[: len(members) // 2]] = empty
        reached = self.edges.modularity(labels, self.k, current.resolution)
        return CommunityResult(labels, reached, current.resolution, len(np.unique(labels)))

    def fill_empty(self, labels: np.ndarray, gamma: float) -> np.ndarray:
        """Fill empty communities with halves of others, those first whose split increases Q most."""
        empty = np.flatnonzero(np.bincount(labels, minlength=self.k) == 0)
        halves = self.bisect(labels, gamma)
        gains = _split_gains(self.cohesion(halves, 2 * self.k, gamma))
        filled = labels.copy()
        for target, split in zip(empty, np.argsort(-gains, kind="stable")):
            filled[halves == 2 * split + 1] = target
        return filled


def _split_gains(cohesion: np.ndarray) -> np.ndarray:
    """Return the gain of Q from separating each pair of halves 2c, 2c + 1."""
    return -2 * np.diagonal(cohesion, 1)[::2]


def _best_exchanges(split: np.ndarray, merge: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the triples (a, b, c) with the highest gain: b is merged into a, and half of another c replaces b."""
    a, b = np.triu_indices(len(split), 1)
    order = np.argsort(-split, kind="stable")[:3]  # one of three is neither a nor b
    gains = merge[a, b][:, None] + split[order][None, :]
    gains[(order[None, :] == a[:, None]) | (order[None, :] == b[:, None])] = -np.inf
    flat = np.argsort(-gains, axis=None, kind="stable")[:N_EXCHANGES]
    pair, which = np.unravel_index(flat, gains.shape)
    return [(int(a[p]), int(b[p]), int(order[w])) for p, w in zip(pair, which) if np.isfinite(gains[p, w])]


def _agglomerate(cohesions: np.ndarray, k: int) -> list[np.ndarray]:
    """Merge cells greedily, for several cohesions (t, n, n) at once; return the new labels 0..k-1 of the cells."""
    n_tries, n, _ = cohesions.shape
    gains, labels, tries = cohesions.copy(), np.tile(np.arange(n), (n_tries, 1)), np.arange(n_tries)
    gains[:, np.arange(n), np.arange(n)] = -np.inf
    for _ in range(n - k):
        i, j = np.divmod(gains.reshape(n_tries, -1).argmax(axis=1), n)
        merged = gains[tries, i] + gains[tries, j]  # cohesion adds up over merged cells
        gains[tries, i] = gains[tries, :, i] = merged
        gains[tries, j] = gains[tries, :, j] = gains[tries, i, i] = -np.inf
        labels = np.where(labels == j[:, None], i[:, None], labels)
    return [np.unique(one, return_inverse=True)[1] for one in labels]


def _move_cells(labels: np.ndarray, cohesion: np.ndarray, k: int) -> np.ndarray:
    """Move cells one at a time, always the one that gains most, until none would gain."""
    labels, cells, own = labels.copy(), np.arange(len(labels)), np.diagonal(cohesion)
    joint = cohesion @ np.eye(k)[labels]
    for _ in range(4 * len(labels)):
        gains = joint - (joint[cells, labels] - own)[:, None]
        gains[cells, labels] = 0
        cell, target = divmod(int(gains.argmax()), k)
        if gains[cell, target] <= 1e-12:
            break
        joint[:, labels[cell]] -= cohesion[:, cell]
        joint[:, target] += cohesion[:, cell]
        labels[cell] = target
    return labels


def modularity(graph: AffinityGraph | MatrixLike, labels: LabelsLike, *, resolution: float = 1.0) -> float:
    """Return the modularity Σ_k [w(A_k, A_k) / 2m - γ (vol(A_k) / 2m)²] of a partition.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        A graph with non-negative weights.
    labels : array-like of shape (n_nodes,)
        The cluster of each node.
    resolution : float, default=1.0
        γ.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> from fiedler.metrics import modularity
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> round(modularity(path, [0, 1, 1]), 4)  # 4/6 - (1/6)² - (5/6)²
    -0.0556
    """
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    if graph.has_negative_weights:
        problem = "modularity is defined for non-negative weights, but the graph has negative ones"
        raise InputError(problem, code="negative_weights")
    codes = consecutive(check_node_labels(labels, graph.n_nodes))
    volumes = np.bincount(codes, to_numpy(graph.degrees))
    total = float(volumes.sum())
    if total <= 0:
        problem = "the graph has no edges, so its modularity is undefined"
        raise InputError(problem, "use more neighbours", code="no_edges")
    data, columns, _ = csr_parts(graph.weights)
    xp, placed = namespace(data), asarray_like(codes, data)
    same = xp.take(placed, row_indices(graph.weights)) == xp.take(placed, columns)
    inside = float(xp.sum(xp.where(same, data, 0), dtype=xp.float64))
    inside += 0.0 if graph.loops is None else float(to_numpy(graph.loops).sum())
    return inside / total - check_positive(resolution, "resolution") * float(np.sum((volumes / total) ** 2))


def communities(
    graph: AffinityGraph | MatrixLike,
    n_clusters: int,
    *,
    starts: Iterable[LabelsLike] = (),
    resolution: float | None = None,
    random_state: RandomState = None,
) -> CommunityResult:
    """Partition the nodes into ``n_clusters`` communities with high modularity.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        The graph. Negative weights, such as those of cannot-links, repel.
    n_clusters : int
        The number of communities.
    starts : iterable of label arrays, optional
        Partitions to start from, in addition to the spectral ones.
    resolution : float, optional
        γ. By default it starts at 0.5, is raised while a community is empty, and lowered if sizes outweigh edges.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Returns
    -------
    CommunityResult
        The labels, their modularity, the resolution, and the spectral partitions from which the search started.

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> from fiedler.graph import communities
    >>> graph = KNNGraph(2).build([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]])
    >>> labels = communities(graph, 2, random_state=0).labels
    >>> bool(labels[0] == labels[2] != labels[3] == labels[5])
    True
    """
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    k, rng = check_n_clusters(n_clusters, graph.n_nodes), check_seed(random_state)
    start_labels = [check_node_labels(labels, graph.n_nodes) for labels in starts]
    for labels in start_labels:
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= k:
            problem = f"a start must contain labels from 0 to {k - 1}, one per node; got {shown(labels)}"
            raise InputError(problem, code="invalid_init", parameter="starts")
    gamma = None if resolution is None else check_positive(resolution, "resolution")
    return MultilevelSearch.on(graph, k, rng).find(
        k, rng, starts=[labels.astype(np.int64) for labels in start_labels], resolution=gamma
    )


# ------------------------------------------------------------------------------------------------ the multilevel search


@dataclass(frozen=True)
class MultilevelSearch:
    """Searches for communities of one graph, which share its coarser versions and their eigenvectors."""

    hierarchy: Hierarchy  # the graph and its coarser versions
    search: CommunitySearch  # on the coarsest of them; the number of communities is replaced
    vectors: np.ndarray  # (n_coarse, m), the slowest eigenvectors of its random walk
    values: np.ndarray  # (m,), their eigenvalues, of the normalised Laplacian

    @classmethod
    def on(
        cls,
        graph: AffinityGraph,
        max_clusters: int,
        rng: np.random.RandomState,
        max_nodes: int | None = None,
    ) -> MultilevelSearch:
        """Coarsen a graph to about ``max_nodes`` nodes, for searches of up to ``max_clusters`` communities.

        By default, a graph of more than `MAX_SEARCH_NODES` nodes is coarsened to `COARSE_NODES`.
        """
        hierarchy = search_hierarchy(graph, max_clusters, rng, max_nodes)
        coarsest, attracting = on_host(hierarchy.coarsest), on_host(hierarchy.attracting[-1])
        if float(np.sum(attracting.degrees)) <= 0:
            raise InputError("the graph has no edges, so it has no communities", "use more neighbours", code="no_edges")
        n_vectors = min(coarsest.n_nodes, max(_vector_counts(max_clusters, coarsest.n_nodes)[-1], MIN_EIGENVECTORS))
        eigenpairs = smallest_eigenpairs(attracting, n_vectors, kind="random_walk", tol=START_TOL, random_state=rng)
        search = CommunitySearch.on(coarsest, max_clusters, rng, attracting)
        return cls(hierarchy, search, eigenpairs.vectors, eigenpairs.values)

    def eigengap(self, k: int) -> float:
        """Return log λ_{k+1}/λ_k of the coarsest graph: how clearly it has k clusters; 0 if it has too few nodes."""
        if len(self.values) <= k:
            return 0.0
        return float(np.log((self.values[k] + MIN_EIGENVALUE) / (max(self.values[k - 1], 0.0) + MIN_EIGENVALUE)))

    def find(
        self,
        k: int,
        rng: np.random.RandomState,
        *,
        starts: Sequence[np.ndarray] = (),
        resolution: float | None = None,
    ) -> CommunityResult:
        """Search ``k`` communities of the coarsest graph and refine them.

        The search begins at partitions of the graph (``starts``) and at spectral ones, at a resolution that is chosen
        by default.
        """
        search, supernodes = replace(self.search, k=k, rng=rng), self.hierarchy.supernodes
        spectral = _spectral_starts(self.vectors, search) | _merged_cells(self.cells(k, rng), search)
        population = [*(most_frequent(labels, supernodes, k) for labels in starts), *spectral.values()]
        gamma = RESOLUTION if resolution is None else resolution
        coarse = search.evolve([search.improve(start, gamma) for start in population], gamma)
        if resolution is None and coarse.n_communities == k:
            coarse = search.lower_resolution(coarse, spectral.values())
        result = self.refine(coarse, k, rng)
        while resolution is None and result.n_communities < k and gamma < MAX_RESOLUTION:
            gamma *= RESOLUTION_FACTOR
            remaining = most_frequent(to_numpy(result.labels), supernodes, k)
            coarse = search.improve(search.fill_empty(remaining, gamma), gamma)
            result = self.refine(coarse, k, rng)
        if resolution is None and result.n_communities < k:
            coarse = search.without_empty(coarse)
            result = replace(coarse, labels=coarse.labels[supernodes])
        spectral = {name: labels[supernodes] for name, labels in spectral.items()}
        found = result.labels
        if is_numpy(found):
            reference = csr_parts(self.hierarchy.graphs[0].weights)[0]
            found = asarray_like(found, reference, dtype=namespace(reference).int64)
        return replace(result, labels=found, starts=spectral)

    def cells(self, k: int, rng: np.random.RandomState) -> list[np.ndarray]:
        """Return fine partitions of the coarsest graph, to be merged to at most ``k`` communities."""
        n = self.search.edges.n
        vectors = self.vectors[:, : max(_vector_counts(k, n)[-1], MIN_EIGENVECTORS)]
        counts = {min(n, max(k, min(CELLS_PER_CLUSTER * k, MAX_CELLS), least)) for least in MIN_CELLS}
        return [_cluster_directions(vectors, count, 1, rng) for count in sorted(counts)]

    def refine(self, coarse: CommunityResult, k: int, rng: np.random.RandomState) -> CommunityResult:
        """Carry a partition of the coarsest graph over to the finer ones, and move nodes on each of them."""
        refined, finer = coarse, zip(self.hierarchy.graphs, self.hierarchy.attracting, self.hierarchy.groups)
        for graph, attracting, groups in reversed(list(finer)):
            edges = WeightedEdges.of(graph, attracting)
            refined = edges.move(edges.as_labels(to_numpy(refined.labels)[groups]), coarse.resolution, k, rng)
        return refined


def search_hierarchy(
    graph: AffinityGraph, max_clusters: int, rng: np.random.RandomState, max_nodes: int | None = None
) -> Hierarchy:
    """Coarsen a graph so far that it can be searched for up to ``max_clusters`` communities."""
    return coarsen(graph, n_search_nodes(graph.n_nodes, max_clusters, max_nodes), rng)


def n_search_nodes(n_nodes: int, max_clusters: int, max_nodes: int | None = None) -> int:
    """Return the number of nodes, about, of the graph on which up to ``max_clusters`` communities are searched."""
    if max_nodes is None:
        max_nodes = COARSE_NODES if n_nodes > MAX_SEARCH_NODES else MAX_SEARCH_NODES
    return min(n_nodes, max(max_nodes, MIN_NODES_PER_CLUSTER * max_clusters))


def most_frequent(labels: np.ndarray, groups: np.ndarray, k: int) -> np.ndarray:
    """Return the most frequent label 0..k-1 of each group of nodes."""
    return np.bincount(groups * k + labels, minlength=k * (int(groups.max()) + 1)).reshape(-1, k).argmax(axis=1)


def on_host(graph: AffinityGraph) -> AffinityGraph:
    """Return the graph in SciPy: small graphs are searched there, where starting an operation takes no time."""
    if is_numpy(csr_parts(graph.weights)[0]):
        return graph
    loops = None if graph.loops is None else to_numpy(graph.loops)
    return AffinityGraph(to_scipy(graph.weights), signed=graph.signed, loops=loops)


def _vector_counts(k: int, n_nodes: int) -> list[int]:
    """Return the numbers of eigenvectors on which k-means looks for k clusters."""
    return [min(n_nodes, max(k, round(factor * k))) for factor in EIGENVECTORS_PER_CLUSTER]


def _spectral_starts(vectors: np.ndarray, search: CommunitySearch) -> dict[str, np.ndarray]:
    """Return k-means on K and on more eigenvectors, by name."""
    counts = _vector_counts(search.k, search.edges.n)
    return {
        f"{count} eigenvectors": _cluster_directions(vectors[:, :count], search.k, 3, search.rng) for count in counts
    }


def _merged_cells(partitions: Sequence[np.ndarray], search: CommunitySearch) -> dict[str, np.ndarray]:
    """Return fine partitions, improved by moves and merged down to K, by name."""
    starts = {}
    for cells in partitions:
        n_cells = int(cells.max()) + 1
        gamma = RESOLUTION * n_cells / search.k
        fine = search.edges.move(cells, gamma, n_cells, search.rng, max_rounds=MAX_CELL_ROUNDS).labels
        merged = search.merge(np.unique(fine, return_inverse=True)[1], RESOLUTION)
        starts[f"{n_cells} cells merged"] = merged
    return starts


def _cluster_directions(vectors: np.ndarray, k: int, n_init: int, rng: np.random.RandomState) -> np.ndarray:
    """Return labels by k-means on unit rows; if rows are repeated, fewer than k groups are a valid start, too."""
    with ignore_warnings(ConvergenceWarning):
        return kmeans(normalize_rows(vectors), k, n_init=n_init, random_state=rng).labels.astype(np.int64)
