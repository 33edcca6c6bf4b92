"""Communities: K groups of nodes with more weight inside than their volumes explain.

    Q(labels; γ) = (1/2m) Σ_ij [S_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i,

is the modularity at resolution γ; the number of communities is given. The search needs products of the sparse weights
with one-hot memberships (sums over edges on the host), which run in the array library of the graph, and small dense
matrices of the communities, for which labels are copied to the host.

1. *Moves*: for every node and community the gain SH - γ d vol'/2m is computed; of the nodes that would gain, a random
   half moves at once (if all did, neighbours would swap places back and forth).
2. *Exchanges*: two communities are merged, a third is split in two (along its Fiedler vector, then by moves), and the
   moves start again. This corrects partitions in which one group is split and two others are merged.
3. *Recombination*: the search runs from several starts; the cells on which all of them agree are merged greedily down
   to K.

Negative weights repel: they count in the gains, but not in the volumes. This is how cannot-links influence the search.

γ = 1 is Newman's modularity. It depends on sizes as much as on edges, and splits large groups before it separates small
ones. A small γ respects sizes, but then two small groups are merged, or a tail is cut off. The search starts at
`RESOLUTION`. If one of the K communities becomes empty, γ is multiplied by `RESOLUTION_FACTOR` until none is. If a
spectral partition has a normalised cut far below that of the communities, one group is much larger than the others, and
high modularity has split it and merged small ones: then lower resolutions are searched from that partition.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._records import CommunityResult
from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import check_n_clusters, check_positive, check_seed
from ..core.backend import Array, asarray_like, eps, is_numpy, namespace, one_hot, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.rows import normalize_rows
from ..core.sparse import Sparse, csr_parts, from_coo, matmul, row_indices, row_sums, to_scipy, with_data
from ..errors import InputError
from .affinity import AffinityGraph
from .cuts import sum_of_cut_ratios
from .labels import check_node_labels
from .pairs import attractive_part

RESOLUTION = 0.5  # γ at which the search starts
RESOLUTION_FACTOR = 1.25  # on γ, as long as a community is empty
MAX_RESOLUTION = 8.0  # γ beyond which empty communities are filled by splitting others
LOWER_CUT_FACTOR = 0.7  # a spectral partition below this part of the communities' normalised cut: γ was too high
LOWER_RESOLUTION_FACTORS = (1 / 2, 1 / 4, 1 / 16, 1 / 64)  # on γ, searched in that case
EIGENVECTORS_PER_CLUSTER = (1.0, 1.5, 2.0)  # groups are not always the K slowest modes
MIN_EIGENVECTORS = 10  # for fine starts
CELLS_PER_CLUSTER = 4  # of a fine start ...
MIN_CELLS = (20, 40, 80)  # ... which has at least so many: few communities of an odd shape need fine starts
MAX_CELLS = 400  # that are merged: the matrices have MAX_CELLS² entries
N_JITTERED_MERGES = 20  # ways of merging cells that are tried besides the greedy one
START_TOL = 1e-4  # of the eigenvectors, from which the search only starts
MIN_GAIN = 1e-6  # of modularity that is worth another round: one edge in a million
MAX_MOVE_ROUNDS = 100  # rounds of moves among communities
MAX_CELL_ROUNDS = 20  # rounds of moves among cells, which are merged afterwards
MAX_ROUNDS_WITHOUT_GAIN = 5  # rounds of moves after which the moves stop
N_EXCHANGES = 5  # exchanges with the highest estimated gain that are tried


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
    codes = np.unique(check_node_labels(labels, graph.n_nodes), return_inverse=True)[1]
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
    k = check_n_clusters(n_clusters, graph.n_nodes)
    search = _Search.on(graph, k, check_seed(random_state))
    if search.total <= 0:
        raise InputError("the graph has no edges, so it has no communities", "use more neighbours", code="no_edges")
    user_starts = [_check_start(labels, search) for labels in starts]
    gamma = RESOLUTION if resolution is None else check_positive(resolution, "resolution")
    spectral = _spectral_starts(attractive_part(graph), search)
    best = search.evolve([search.improve(start, gamma) for start in [*user_starts, *spectral.values()]], gamma)
    if resolution is None:
        if best.n_communities == k:
            best = search.lower_resolution(best, spectral.values())
        else:
            best = search.raise_resolution(best)
    return replace(best, starts=spectral)


def _check_start(labels: LabelsLike, search: _Search) -> Array:
    host = check_node_labels(labels, search.n)
    if host.dtype.kind not in "iu" or host.min() < 0 or host.max() >= search.k:
        raise InputError(
            f"a start must contain labels from 0 to {search.k - 1}, one per node; got {host!r:.80}",
            code="invalid_init",
            parameter="starts",
        )
    return search.to_graph_library(host)


def _spectral_starts(graph: AffinityGraph, search: _Search) -> dict[str, Array]:
    """Return k-means on K and on more eigenvectors, and fine partitions merged down to K, by name."""
    k, n, rng = search.k, search.n, search.rng
    starts: dict[str, Array] = {}
    counts = [min(n, max(k, round(factor * k))) for factor in EIGENVECTORS_PER_CLUSTER]
    n_vectors = min(n, max(counts[-1], MIN_EIGENVECTORS))
    vectors = smallest_eigenpairs(graph, n_vectors, kind="random_walk", tol=START_TOL, random_state=rng).vectors
    for count in counts:
        starts[f"{count} eigenvectors"] = search.to_graph_library(_cluster_directions(vectors[:, :count], k, 3, rng))
    for n_cells in sorted({min(n, max(k, min(CELLS_PER_CLUSTER * k, MAX_CELLS), least)) for least in MIN_CELLS}):
        cells = search.to_graph_library(_cluster_directions(vectors, n_cells, 1, rng))
        fine = search.move(cells, RESOLUTION * n_cells / k, n_cells, MAX_CELL_ROUNDS).labels
        merged = search.merge(np.unique(to_numpy(fine), return_inverse=True)[1], RESOLUTION)
        starts[f"{n_cells} cells merged"] = merged
    return starts


def _cluster_directions(vectors: Array, k: int, n_init: int, rng: np.random.RandomState) -> Array:
    """Return labels by k-means on unit rows; if rows are repeated, fewer than k groups are a valid start, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans(normalize_rows(vectors), k, n_init=n_init, random_state=rng).labels


# ------------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True)
class _Search:
    """The search for K communities in one graph."""

    weights: Sparse
    degrees: Array
    total: float
    k: int
    rng: np.random.RandomState

    @classmethod
    def on(cls, graph: AffinityGraph, k: int, rng: np.random.RandomState) -> _Search:
        """Return the search on ``graph``, in the array library of its weights."""
        data = csr_parts(graph.weights)[0]
        degrees = attractive_part(graph).degrees
        host = to_numpy(degrees)
        degrees = degrees if is_numpy(data) == is_numpy(degrees) else asarray_like(host, data, dtype=data.dtype)
        return cls(graph.weights, degrees, float(host.sum(dtype=np.float64)), k, rng)

    @cached_property
    def edges(self) -> tuple[Array, Array, Array]:
        """Row, column and weight of every stored entry; cached because every exchange needs them."""
        data, columns, _ = csr_parts(self.weights)
        rows = row_indices(self.weights)
        return (
            rows.astype(np.int64) if is_numpy(rows) else rows,
            columns,
            data,
        )  # int64, because rows times K is computed

    @property
    def n(self) -> int:
        """The number of nodes."""
        return int(self.weights.shape[0])

    def to_graph_library(self, labels: Any) -> Array:
        """Return labels in the array library of the weights."""
        xp = namespace(self.degrees)
        return asarray_like(to_numpy(labels).astype(np.int64), self.degrees, dtype=xp.int64)

    def gains(self, labels: Array, k: int, gamma: float) -> tuple[Array, Array, float]:
        """Return the gain of each node from each community (up to a factor 2/2m), from its current one, and Q."""
        xp = namespace(self.degrees)
        weight, volumes = self.weight_to(labels, k), self.community_sums(labels, k)(self.degrees)
        gains = weight - (gamma / self.total) * self.degrees[:, None] * volumes[None, :]
        own_volume = (gamma / self.total) * self.degrees**2  # of the node itself, which does not count
        current = _own_column(gains, labels) + own_volume
        inside = float(xp.sum(_own_column(weight, labels)))
        squares = float(np.sum(to_numpy(volumes).astype(np.float64) ** 2))
        return gains, current, inside / self.total - gamma * squares / self.total**2

    def weight_to(self, labels: Array, k: int) -> Array:
        """Return the weight from each node to each community, (n, k): S times the one-hot labels.

        On the host it is summed edge by edge, which takes 1/K of the time of the product.
        """
        if not is_numpy(self.degrees):
            return matmul(self.weights, one_hot(labels, k, self.degrees))
        rows, columns, data = self.edges
        return np.bincount(rows * k + labels[columns], data, minlength=self.n * k).reshape(self.n, k)

    def community_sums(self, labels: Array, k: int) -> Callable[[Array], Array]:
        """Return a function that sums values over the communities."""
        if is_numpy(self.degrees):
            return lambda values: np.bincount(labels, values, minlength=k).astype(values.dtype, copy=False)
        H = one_hot(labels, k, self.degrees)
        return lambda values: H.T @ values

    def random_half(self) -> Array:
        """Return a mask of a random half of the nodes."""
        return asarray_like(self.rng.random_sample(self.n) < 0.5, self.degrees)

    def move(
        self, labels: Array, gamma: float, k: int | None = None, max_rounds: int = MAX_MOVE_ROUNDS
    ) -> CommunityResult:
        """Move nodes among K (or ``k``) labels in rounds, until none would gain; return the best partition seen."""
        xp = namespace(self.degrees)
        rounding = 16 * eps(self.degrees) * self.total / self.n
        best, best_labels, n_without_gain = -np.inf, labels, 0
        for _ in range(max_rounds):
            gains, current, reached = self.gains(labels, k or self.k, gamma)
            if reached > best + MIN_GAIN:
                best, best_labels, n_without_gain = reached, labels, 0
            else:
                n_without_gain += 1
            would_gain = xp.max(gains, axis=1) > current + rounding
            if n_without_gain >= MAX_ROUNDS_WITHOUT_GAIN or not bool(xp.any(would_gain)):
                break
            labels = xp.where(would_gain & self.random_half(), xp.argmax(gains, axis=1), labels)
        return CommunityResult(best_labels, best, gamma, _count(best_labels))

    def improve(self, labels: Array, gamma: float) -> CommunityResult:
        """Move nodes, then exchange communities as long as that increases Q."""
        current = self.move(labels, gamma)
        while (better := self._exchange(current, gamma)) is not None:
            current = better
        return current

    def _exchange(self, current: CommunityResult, gamma: float) -> CommunityResult | None:
        """Regroup the halves of all communities, or merge two and split a third; return the first improvement."""
        halves = self.bisect(current.labels, gamma)
        between = self.cohesion(halves, 2 * self.k, gamma)
        trials = [self.to_graph_library(_agglomerate(between, self.k)[to_numpy(halves)])]
        triples = _best_exchanges(_split_gains(between), 2 * self.cohesion(current.labels, self.k, gamma), N_EXCHANGES)
        trials += [_rearrange(current.labels, halves, *triple) for triple in triples]
        results = (self.move(trial, gamma) for trial in trials)
        return next((result for result in results if result.modularity > current.modularity + MIN_GAIN), None)

    def bisect(self, labels: Array, gamma: float, n_power: int = 60, n_moves: int = 15) -> Array:
        """Split every community l into 2l and 2l + 1, along its Fiedler vector and then by moves."""
        xp = namespace(self.degrees)
        rows, columns, data = self.edges
        same = xp.take(labels, rows) == xp.take(labels, columns)
        inner = with_data(self.weights, xp.where(same, data, 0))
        add, inner_degrees = self.community_sums(labels, self.k), row_sums(inner)
        side = xp.astype(self._fiedler_vectors(inner, inner_degrees, add, labels, n_power) > 0, self.degrees.dtype)
        volumes = xp.take(add(self.degrees), labels)
        for _ in range(n_moves):
            # the weight to the second half minus that to the first, each minus what the volumes of the halves explain
            second = xp.take(add(self.degrees * side), labels)
            gain = 2 * matmul(inner, side[:, None])[:, 0] - inner_degrees
            gain = gain - (gamma / self.total) * self.degrees * (2 * second - volumes - self.degrees * (2 * side - 1))
            would_gain = xp.where(side > 0, gain < 0, gain > 0)
            if not bool(xp.any(would_gain)):
                break
            side = xp.where(would_gain & self.random_half(), 1 - side, side)
        return 2 * labels + xp.astype(side, labels.dtype)

    def _fiedler_vectors(
        self, inner: Sparse, degrees: Array, add: Callable[[Array], Array], labels: Array, n_power: int
    ) -> Array:
        """Return the second eigenvector of the random walk inside each community, as one vector, by power iteration."""
        xp = namespace(self.degrees)
        degrees = xp.where(degrees > 0, degrees, 1)
        volumes = add(degrees)
        volumes = xp.where(volumes > 0, volumes, 1)
        x = asarray_like(self.rng.standard_normal(self.n), self.degrees, dtype=self.degrees.dtype)
        for _ in range(n_power):
            x = x - xp.take(add(degrees * x) / volumes, labels)
            norm = xp.sqrt(add(degrees * x * x) / volumes)
            x = x / xp.take(xp.where(norm > 0, norm, 1), labels)
            x = 0.5 * (x + matmul(inner, x[:, None])[:, 0] / degrees)
        return x - xp.take(add(degrees * x) / volumes, labels)

    def cohesion(self, labels: Array, k: int, gamma: float) -> np.ndarray:
        """Return the weight between communities minus what their volumes explain, over 2m: (k, k), on the host."""
        xp = namespace(self.degrees)
        rows, columns, data = self.edges
        between = from_coo(xp.take(labels, rows), xp.take(labels, columns), data, (k, k))
        volumes = self.relative_volumes(labels, k)
        return to_scipy(between).toarray().astype(np.float64) / self.total - gamma * np.outer(volumes, volumes)

    def relative_volumes(self, labels: Array, k: int) -> np.ndarray:
        """Return the volumes of the communities over 2m, on the host."""
        return np.bincount(to_numpy(labels), to_numpy(self.degrees), minlength=k) / self.total

    def evolve(self, population: list[CommunityResult], gamma: float) -> CommunityResult:
        """Recombine partitions, the best first, as long as the result is better than all of them."""
        while True:
            population = sorted(population, key=lambda run: -run.modularity)
            child = self.improve(self.recombine([run.labels for run in population], gamma), gamma)
            if child.modularity <= population[0].modularity + MIN_GAIN:
                return population[0]
            population = [child, *population]

    def recombine(self, partitions: Sequence[Array], gamma: float) -> Array:
        """Merge the cells on which the partitions agree down to K; if there are too many, use fewer partitions."""
        cells = np.zeros(self.n, dtype=np.int64)
        for labels in partitions:
            _, finer = np.unique(cells * self.k + to_numpy(labels), return_inverse=True)
            if finer.max() >= MAX_CELLS:
                break
            cells = finer
        return self.merge(cells, gamma)

    def merge(self, cells: np.ndarray, gamma: float) -> Array:
        """Merge cells into K communities, pair by pair and then by single moves; the best of several jittered tries."""
        n_cells = int(cells.max()) + 1
        if n_cells <= self.k:
            return self.to_graph_library(cells)
        cohesion = self.cohesion(self.to_graph_library(cells), n_cells, gamma)
        tries = [_move_cells(_agglomerate(cohesion, self.k), cohesion, self.k)]
        for _ in range(N_JITTERED_MERGES):
            jitter = np.exp(self.rng.standard_normal(cohesion.shape))
            tries.append(_move_cells(_agglomerate(cohesion * (jitter + jitter.T), self.k), cohesion, self.k))
        return self.to_graph_library(max(tries, key=lambda labels: _modularity_of_cells(labels, cohesion))[cells])

    def normalized_cut(self, labels: Array) -> float:
        """Return Σ_k cut(A_k) / vol(A_k); infinite if a community is empty.

        `fiedler.graph.cuts.normalized_cut` cannot serve here: it skips missing labels, where the search must reject an
        empty community, and it takes the degrees Σ|w| of a signed graph, where negative weights are not in the volumes.
        """
        volumes = self.relative_volumes(labels, self.k)
        return sum_of_cut_ratios(volumes - np.diag(self.cohesion(labels, self.k, 0.0)), volumes)

    def lower_resolution(self, current: CommunityResult, spectral: Iterable[Array]) -> CommunityResult:
        """Search at lower resolutions if the cut of a spectral partition shows that γ is too high for these sizes."""
        smallest_cut = min(spectral, key=self.normalized_cut)
        if self.normalized_cut(smallest_cut) >= LOWER_CUT_FACTOR * self.normalized_cut(current.labels):
            return current
        lower = (self.improve(smallest_cut, current.resolution * factor) for factor in LOWER_RESOLUTION_FACTORS)
        return min([current, *lower], key=lambda trial: self.normalized_cut(trial.labels))

    def raise_resolution(self, current: CommunityResult) -> CommunityResult:
        """Search at higher resolutions as long as a community is empty; in the end split the largest ones."""
        gamma = current.resolution
        while current.n_communities < self.k and gamma < MAX_RESOLUTION:
            gamma *= RESOLUTION_FACTOR
            current = self.improve(self.fill_empty(current.labels, gamma), gamma)
        return self.without_empty(current)

    def without_empty(self, current: CommunityResult) -> CommunityResult:
        """Split the largest communities until there are K, if no resolution has kept all of them non-empty."""
        labels = to_numpy(current.labels).copy()
        for empty in np.flatnonzero(np.bincount(labels, minlength=self.k) == 0):
            largest = int(np.argmax(np.bincount(labels)))
            halves = to_numpy(self.bisect(self.to_graph_library(labels), current.resolution))
            members = np.flatnonzero(labels == largest)
            second = members[halves[members] == 2 * largest + 1]
            labels[second if 0 < len(second) < len(members) else members[: len(members) // 2]] = empty
        reached = self.gains(self.to_graph_library(labels), self.k, current.resolution)[2]
        return CommunityResult(self.to_graph_library(labels), reached, current.resolution, _count(labels))

    def fill_empty(self, labels: Array, gamma: float) -> Array:
        """Fill empty communities with halves of others, those first whose split increases Q most."""
        host = to_numpy(labels)
        empty = np.flatnonzero(np.bincount(host, minlength=self.k) == 0)
        halves = self.bisect(labels, gamma)
        gains = _split_gains(self.cohesion(halves, 2 * self.k, gamma))
        filled = host.copy()
        for target, split in zip(empty, np.argsort(-gains, kind="stable")):
            filled[to_numpy(halves) == 2 * split + 1] = target
        return self.to_graph_library(filled)


# ---------------------------------------------------------------------------------------------------------- helpers


def _own_column(values: Array, labels: Array) -> Array:
    """Return the entry of each row in the column of its label."""
    return namespace(values).take_along_axis(values, labels[:, None], axis=1)[:, 0]


def _count(labels: Array) -> int:
    return len(np.unique(to_numpy(labels)))


def _split_gains(cohesion: np.ndarray) -> np.ndarray:
    """Return the gain of Q from separating each pair of halves 2c, 2c + 1."""
    return -2 * np.diagonal(cohesion, 1)[::2]


def _best_exchanges(split: np.ndarray, merge: np.ndarray, count: int) -> list[tuple[int, int, int]]:
    """Return the triples (a, b, c) with the highest gain: b is merged into a, and half of another c replaces b."""
    a, b = np.triu_indices(len(split), 1)
    order = np.argsort(-split, kind="stable")[:3]  # one of three is neither a nor b
    gains = merge[a, b][:, None] + split[order][None, :]
    gains[(order[None, :] == a[:, None]) | (order[None, :] == b[:, None])] = -np.inf
    flat = np.argsort(-gains, axis=None, kind="stable")[:count]
    pair, which = np.unravel_index(flat, gains.shape)
    return [(int(a[p]), int(b[p]), int(order[w])) for p, w in zip(pair, which) if np.isfinite(gains[p, w])]


def _rearrange(labels: Array, halves: Array, target: int, merged: int, split: int) -> Array:
    """Merge community ``merged`` into ``target``, and give its number to the second half of ``split``."""
    xp = namespace(labels)
    joined = xp.where(labels == merged, target, labels)
    return xp.where(halves == 2 * split + 1, merged, joined)


def _agglomerate(cohesion: np.ndarray, k: int) -> np.ndarray:
    """Merge cells greedily; return the new label 0..k-1 of each."""
    n = len(cohesion)
    gains, labels = cohesion.copy(), np.arange(n)
    np.fill_diagonal(gains, -np.inf)
    for _ in range(n - k):
        i, j = divmod(int(gains.argmax()), n)
        gains[i] += gains[j]  # cohesion adds up over merged cells
        gains[:, i] = gains[i]
        gains[j] = gains[:, j] = gains[i, i] = -np.inf
        labels[labels == j] = i
    return np.unique(labels, return_inverse=True)[1]


def _move_cells(labels: np.ndarray, cohesion: np.ndarray, k: int) -> np.ndarray:
    """Move cells one at a time, always the one that gains most, until none would gain."""
    labels, cells = labels.copy(), np.arange(len(labels))
    joint = cohesion @ np.eye(k)[labels]
    for _ in range(4 * len(labels)):
        gains = joint - (joint[cells, labels] - np.diagonal(cohesion))[:, None]
        gains[cells, labels] = 0
        cell, target = divmod(int(gains.argmax()), k)
        if gains[cell, target] <= 1e-12:
            break
        joint[:, labels[cell]] -= cohesion[:, cell]
        joint[:, target] += cohesion[:, cell]
        labels[cell] = target
    return labels


def _modularity_of_cells(labels: np.ndarray, cohesion: np.ndarray) -> float:
    """Return the modularity of grouped cells."""
    return float(cohesion[labels[:, None] == labels[None, :]].sum())
