"""Communities: K groups of nodes with more weight inside than their volumes explain.

    Q(labels; γ) = (1/2m) Σ_ij [w_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i,

is the modularity at resolution γ; the number of communities is given. The search has several levels:

1. *Coarsening* (:mod:`.coarsen`): a large graph is contracted to a few thousand supernodes, on which Q is the same.
2. *Search* (:mod:`.community_search`): from spectral partitions of the coarse graph, by moves, exchanges of communities
   and recombination, on the host.
3. *Refinement* (:mod:`.moves`): the partition is carried over to the finer graphs one by one, and nodes on a boundary
   move, in the array library of the graph.

A graph of up to `MAX_SEARCH_NODES` nodes is searched as it is, which is the same algorithm with a single level.

γ = 1 is Newman's modularity. It depends on sizes as much as on edges, and splits large groups before it separates small
ones. A small γ respects sizes, but then two small groups are merged, or a tail is cut off. The search starts at
`RESOLUTION`. If one of the K communities becomes empty, γ is multiplied by `RESOLUTION_FACTOR` until none is. If a
spectral partition has a normalised cut far below that of the communities, one group is much larger than the others, and
high modularity has split it and merged small ones: then lower resolutions are searched from that partition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._records import CommunityResult
from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_n_clusters, check_positive, check_seed
from ..core.backend import Array, asarray_like, is_numpy, namespace, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.rows import normalize_rows
from ..core.sparse import csr_parts, row_indices, to_scipy
from ..errors import InputError, ignore_warnings, shown
from .affinity import AffinityGraph
from .coarsen import Hierarchy, coarsen
from .community_search import MAX_CELLS, CommunitySearch
from .labels import check_node_labels, consecutive
from .moves import WeightedEdges

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
        raise InputError(
            "modularity is defined for non-negative weights, but the graph has negative ones", code="negative_weights"
        )
    codes = consecutive(check_node_labels(labels, graph.n_nodes))
    volumes = np.bincount(codes, to_numpy(graph.degrees))
    total = float(volumes.sum())
    if total <= 0:
        raise InputError(
            "the graph has no edges, so its modularity is undefined", "use more neighbours", code="no_edges"
        )
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
    start_labels = [_check_start(labels, graph.n_nodes, k) for labels in starts]
    gamma = None if resolution is None else check_positive(resolution, "resolution")
    multilevel = MultilevelSearch.on(graph, k, rng)
    return multilevel.find(k, rng, starts=start_labels, resolution=gamma)


def _check_start(labels: LabelsLike, n_nodes: int, k: int) -> np.ndarray:
    host = check_node_labels(labels, n_nodes)
    if host.dtype.kind not in "iu" or host.min() < 0 or host.max() >= k:
        raise InputError(
            f"a start must contain labels from 0 to {k - 1}, one per node; got {shown(host)}",
            code="invalid_init",
            parameter="starts",
        )
    return host.astype(np.int64)


# ------------------------------------------------------------------------------------------------ the multilevel search


@dataclass(frozen=True)
class MultilevelSearch:
    """Searches for communities of one graph, which share its coarser versions and their eigenvectors.

    Attributes
    ----------
    hierarchy : Hierarchy
        The graph and its coarser versions.
    search : CommunitySearch
        On the coarsest of them, on the host; the number of communities is replaced.
    vectors : array of shape (n_coarse, m)
        The slowest eigenvectors of its random walk.
    values : array of shape (m,)
        Their eigenvalues, of the normalised Laplacian.
    """

    hierarchy: Hierarchy
    search: CommunitySearch
    vectors: np.ndarray
    values: np.ndarray

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
        coarsest, attracting = _on_host(hierarchy.coarsest), _on_host(hierarchy.attracting[-1])
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
        cells: Sequence[np.ndarray] | None = None,
    ) -> CommunityResult:
        """Search ``k`` communities of the coarsest graph and refine them.

        Parameters
        ----------
        k : int
        rng : RandomState
        starts : sequence of label arrays
            Partitions of the graph from which the search begins, besides the spectral ones.
        resolution : float, optional
            γ; by default it is chosen.
        cells : sequence of label arrays, optional
            Fine partitions of the coarsest graph that several searches share. These searches are quick: communities are
            exchanged only in the end, not from every start.
        """
        search, supernodes = replace(self.search, k=k, rng=rng), self.hierarchy.supernodes
        quick = cells is not None
        spectral = _spectral_starts(self.vectors, search, quick)
        cells = self.cells(k, rng) if cells is None else cells
        spectral |= _merged_cells(cells, search)
        population = [*(most_frequent(labels, supernodes, k) for labels in starts), *spectral.values()]
        gamma = RESOLUTION if resolution is None else resolution
        improve = search.move if quick else search.improve
        coarse = search.evolve([improve(start, gamma) for start in population], gamma)
        if resolution is None and coarse.n_communities == k:
            coarse = search.lower_resolution(coarse, spectral.values())
        result = self.refine(coarse, k, rng)
        while resolution is None and result.n_communities < k and gamma < MAX_RESOLUTION:
            gamma *= RESOLUTION_FACTOR
            remaining = most_frequent(to_numpy(result.labels), supernodes, k)
            coarse = improve(search.fill_empty(remaining, gamma), gamma)
            result = self.refine(coarse, k, rng)
        if resolution is None and result.n_communities < k:
            coarse = search.without_empty(coarse)
            result = replace(coarse, labels=coarse.labels[supernodes])
        spectral = {name: labels[supernodes] for name, labels in spectral.items()}
        return replace(result, labels=self._to_library(result.labels), starts=spectral)

    def _to_library(self, labels: Array) -> Array:
        """Return labels in the array library of the graph."""
        if not is_numpy(labels):
            return labels
        reference = csr_parts(self.hierarchy.graphs[0].weights)[0]
        return asarray_like(labels, reference, dtype=namespace(reference).int64)

    def find_each(self, numbers: Sequence[int], rng: np.random.RandomState) -> list[CommunityResult]:
        """Search communities for each of several numbers of them, quickly."""
        cells: dict[int, list[np.ndarray]] = {}
        results = []
        for k in numbers:
            shared = min(2 ** math.ceil(math.log2(k)), max(numbers))  # numbers up to this one share their cells
            if shared not in cells:
                cells[shared] = self.cells(shared, rng)
            results.append(self.find(k, rng, cells=cells[shared]))
        return results

    def cells(self, k: int, rng: np.random.RandomState) -> list[np.ndarray]:
        """Return fine partitions of the coarsest graph, to be merged to at most ``k`` communities."""
        n = self.search.n
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


def _on_host(graph: AffinityGraph) -> AffinityGraph:
    """Return the graph in SciPy: small graphs are searched there, where starting an operation takes no time."""
    if is_numpy(csr_parts(graph.weights)[0]):
        return graph
    loops = None if graph.loops is None else to_numpy(graph.loops)
    return AffinityGraph(to_scipy(graph.weights), signed=graph.signed, loops=loops)


def _vector_counts(k: int, n_nodes: int) -> list[int]:
    """Return the numbers of eigenvectors on which k-means looks for k clusters."""
    return [min(n_nodes, max(k, round(factor * k))) for factor in EIGENVECTORS_PER_CLUSTER]


def _spectral_starts(vectors: np.ndarray, search: CommunitySearch, quick: bool) -> dict[str, np.ndarray]:
    """Return k-means on K and, unless ``quick``, on more eigenvectors, by name."""
    counts = _vector_counts(search.k, search.n)
    return {
        f"{count} eigenvectors": _cluster_directions(vectors[:, :count], search.k, 1 if quick else 3, search.rng)
        for count in (counts[:1] if quick else counts)
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
