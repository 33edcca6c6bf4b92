"""Communities: K groups of nodes that hold more weight inside than their volumes explain.

    Q(labels; γ) = (1/2m) Σ_ij [S_ij - γ d_i d_j / 2m] 1(l_i = l_j),      2m = Σ_i d_i,

the modularity at resolution γ, for a number of communities that is given. The search needs products of the sparse
weights with one-hot memberships (tallies, on the host), which run wherever the graph lives, and small dense matrices of
the communities, for which labels come to the host.

1. *Moves*: every node has the gain SH - γ d vol'/2m of each community; a random half of those that would gain by moving
   move at once (if all did, neighbours would swap places to and fro).
2. *Exchanges*: two communities become one, a third becomes two (along its Fiedler vector, then by moves), and the moves
   begin again. This is the way out when one group has been cut in two and another two have been taken for one.
3. *Recombination*: several starts are searched; the cells on which all of them agree are merged greedily down to K.

Negative weights repel: they count in the gains, not in the volumes. That is how cannot-links steer the search.

γ = 1 is Newman's modularity. It weighs sizes as much as edges, and cuts large groups in two before it keeps small ones
apart. A small γ respects sizes, but then two small groups become one, or a tail is cut off. `RESOLUTION` is where the
search begins. Where one of the K communities dies out, γ is raised by `RAISE` until none does. Where a spectral
partition has a normalised cut far below that of the communities, one group outweighs the others, and high modularity
has cut it in two and left small ones together: then lower resolutions are searched from that partition.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._records import CommunityResult
from .._validation import check_labels, check_n_clusters, check_positive
from ..core.backend import Array, asarray_like, eps, is_numpy, namespace, one_hot, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.kmeans import kmeans
from ..core.rows import normalize_rows
from ..core.sparse import Sparse, csr_parts, from_coo, matmul, row_indices, row_sums, to_scipy, with_data
from .affinity import AffinityGraph
from .pairs import attractive_part

RESOLUTION = 0.5
RAISE = 1.25
HIGHEST_RESOLUTION = 8.0
SPARED = 0.7  # of the communities' normalised cut: what a spectral partition needs if sizes have misled the search
LOWER = (1 / 2, 1 / 4, 1 / 16, 1 / 64)  # of the resolution, searched then
MORE_EIGENVECTORS = (1.0, 1.5, 2.0)  # times K: groups are not always the K slowest modes
FEWEST_EIGENVECTORS = 10
FINE = 4  # cells of a fine start, times K, ...
CELLS = (20, 40, 80)  # ... and at least so many: few communities of an odd shape need fine starts
MOST_CELLS = 400
JITTERED = 20  # more ways of grouping cells than the greedy one
START_TOL = 1e-4  # of the eigenvectors, whose rows are only where the search begins
LEAST_GAIN = 1e-6  # of modularity, that is worth another round: an edge in a million
MOVE_ROUNDS = 100
FINE_ROUNDS = 20  # among cells, which are merged afterwards
MAX_ROUNDS_WITHOUT_GAIN = 5  # rounds of moves, and exchanges, without a gain


def modularity(graph: Any, labels: Any, *, resolution: float = 1.0) -> float:
    """Σ_k [w(A_k, A_k) / 2m - γ (vol(A_k) / 2m)²]: the weight inside clusters beyond what their volumes explain.

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
        raise ValueError("modularity is defined for nonnegative weights, but the graph has negative ones")
    codes = np.unique(check_labels(to_numpy(labels), n_samples=graph.n_nodes), return_inverse=True)[1]
    volumes = np.bincount(codes, to_numpy(graph.degrees))
    total = float(volumes.sum())
    if total <= 0:
        raise ValueError("the graph has no edges, so its modularity is undefined; use more neighbours")
    data, columns, _ = csr_parts(graph.weights)
    xp, placed = namespace(data), asarray_like(codes, data)
    same = xp.take(placed, row_indices(graph.weights)) == xp.take(placed, columns)
    inside = float(xp.sum(xp.where(same, data, 0), dtype=xp.float64))
    inside += 0.0 if graph.loops is None else float(to_numpy(graph.loops).sum())
    return inside / total - check_positive(resolution, "resolution") * float(np.sum((volumes / total) ** 2))


def communities(
    graph: AffinityGraph,
    n_clusters: int,
    *,
    starts: Iterable[Any] = (),
    resolution: float | None = None,
    random_state: Any = None,
) -> CommunityResult:
    """A partition of the nodes into ``n_clusters`` communities of high modularity.

    Parameters
    ----------
    graph : AffinityGraph or matrix
        Its negative weights, such as cannot-links have, repel.
    n_clusters : int
    starts : iterable of label arrays, optional
        Partitions to begin from, beside the spectral ones.
    resolution : float, optional
        γ; by default found: from 0.5 on, higher while communities die out, lower while sizes weigh more than edges.
    random_state : int, RandomState or None

    Returns
    -------
    CommunityResult

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> from fiedler.graph import communities
    >>> found = communities(KNNGraph(2).build([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]), 2, random_state=0)
    >>> bool(found.labels[0] == found.labels[2] != found.labels[3] == found.labels[5])
    True
    """
    graph = graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph)
    k = check_n_clusters(n_clusters, graph.n_nodes)
    search = _Search.on(graph, k, check_random_state(random_state))
    if search.total <= 0:
        raise ValueError("the graph has no edges, so it has no communities; use more neighbours")
    given = [_as_start(labels, search) for labels in starts]
    gamma = RESOLUTION if resolution is None else check_positive(resolution, "resolution")
    drawn = _spectral_starts(attractive_part(graph), search)
    best = search.evolve([search.improve(start, gamma) for start in [*given, *drawn.values()]], gamma)
    if resolution is None:
        best = search.with_less(best, drawn.values()) if best.n_communities == k else search.with_more(best)
    return replace(best, starts=drawn)


def _as_start(labels: Any, search: _Search) -> Array:
    host = check_labels(to_numpy(labels), n_samples=search.n)
    if host.dtype.kind not in "iu" or host.min() < 0 or host.max() >= search.k:
        raise ValueError(f"a start holds the labels 0 to {search.k - 1}, one a node; got {host!r:.80}")
    return search.place(host)


def _spectral_starts(graph: AffinityGraph, search: _Search) -> dict[str, Array]:
    """K-means on K and on more eigenvectors, and fine partitions merged down to K; by name."""
    k, n, rng = search.k, search.n, search.rng
    starts: dict[str, Array] = {}
    wanted = [min(n, max(k, round(share * k))) for share in MORE_EIGENVECTORS]
    most = min(n, max(wanted[-1], FEWEST_EIGENVECTORS))
    vectors = smallest_eigenpairs(graph, most, kind="random_walk", tol=START_TOL, random_state=rng).vectors
    for m in wanted:
        starts[f"{m} eigenvectors"] = search.place(_groups(vectors[:, :m], k, 3, rng))
    for n_cells in sorted({min(n, max(k, min(FINE * k, MOST_CELLS), cells)) for cells in CELLS}):
        cells = search.place(_groups(vectors, n_cells, 1, rng))
        fine = search.move(cells, RESOLUTION * n_cells / k, n_cells, FINE_ROUNDS).labels
        merged = search.merge(np.unique(to_numpy(fine), return_inverse=True)[1], RESOLUTION)
        starts[f"{n_cells} cells merged"] = merged
    return starts


def _groups(vectors: Array, k: int, n_init: int, rng: np.random.RandomState) -> Array:
    """Labels by k-means on directions; where rows repeat each other fewer groups than asked for are a start as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans(normalize_rows(vectors), k, n_init=n_init, random_state=rng).labels


# ------------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True)
class _Search:
    """A graph and a number of communities: everything a step needs."""

    weights: Sparse
    degrees: Array
    total: float
    k: int
    rng: np.random.RandomState

    @classmethod
    def on(cls, graph: AffinityGraph, k: int, rng: np.random.RandomState) -> _Search:
        """The search on ``graph``, where its weights live."""
        data = csr_parts(graph.weights)[0]
        degrees = attractive_part(graph).degrees
        host = to_numpy(degrees)
        degrees = degrees if is_numpy(data) == is_numpy(degrees) else asarray_like(host, data, dtype=data.dtype)
        return cls(graph.weights, degrees, float(host.sum(dtype=np.float64)), k, rng)

    @cached_property
    def edges(self) -> tuple[Array, Array, Array]:
        """Row, column and weight of every stored entry; every exchange asks for them."""
        data, columns, _ = csr_parts(self.weights)
        rows = row_indices(self.weights)
        return rows.astype(np.int64) if is_numpy(rows) else rows, columns, data  # of which rows times K is taken

    @property
    def n(self) -> int:
        """The number of nodes."""
        return int(self.weights.shape[0])

    def place(self, labels: Any) -> Array:
        """Labels beside the weights."""
        xp = namespace(self.degrees)
        return asarray_like(to_numpy(labels).astype(np.int64), self.degrees, dtype=xp.int64)

    def gains(self, labels: Array, k: int, gamma: float) -> tuple[Array, Array, float]:
        """What each node would gain (up to a common factor 2/2m) from each community, what it has, and Q."""
        xp = namespace(self.degrees)
        weight, volumes = self.weight_to(labels, k), self.adder(labels, k)(self.degrees)
        gains = weight - (gamma / self.total) * self.degrees[:, None] * volumes[None, :]
        own = _pick(gains, labels) + (gamma / self.total) * self.degrees**2  # a node's own volume does not count
        inside = float(xp.sum(_pick(weight, labels)))
        squares = float(np.sum(to_numpy(volumes).astype(np.float64) ** 2))
        return gains, own, inside / self.total - gamma * squares / self.total**2

    def weight_to(self, labels: Array, k: int) -> Array:
        """The weight from each node to each community, (n, k): S times the one-hot labels.

        On the host it is tallied, an edge at a time, which takes a K-th of the product's time.
        """
        if not is_numpy(self.degrees):
            return matmul(self.weights, one_hot(labels, k, self.degrees))
        rows, columns, data = self.edges
        return np.bincount(rows * k + labels[columns], data, minlength=self.n * k).reshape(self.n, k)

    def adder(self, labels: Array, k: int) -> Callable[[Array], Array]:
        """A function that adds values up over the communities."""
        if is_numpy(self.degrees):
            return lambda values: np.bincount(labels, values, minlength=k).astype(values.dtype, copy=False)
        H = one_hot(labels, k, self.degrees)
        return lambda values: H.T @ values

    def half(self) -> Array:
        """A random half of the nodes."""
        return asarray_like(self.rng.random_sample(self.n) < 0.5, self.degrees)

    def move(self, labels: Array, gamma: float, k: int | None = None, rounds: int = MOVE_ROUNDS) -> CommunityResult:
        """Rounds of moves among K (or ``k``) labels, until no node would gain; the best partition on the way."""
        xp = namespace(self.degrees)
        least = 16 * eps(self.degrees) * self.total / self.n
        best, best_labels, waited = -np.inf, labels, 0
        for _ in range(rounds):
            gains, own, reached = self.gains(labels, k or self.k, gamma)
            if reached > best + LEAST_GAIN:
                best, best_labels, waited = reached, labels, 0
            else:
                waited += 1
            willing = xp.max(gains, axis=1) > own + least
            if waited >= MAX_ROUNDS_WITHOUT_GAIN or not bool(xp.any(willing)):
                break
            labels = xp.where(willing & self.half(), xp.argmax(gains, axis=1), labels)
        return CommunityResult(best_labels, best, gamma, _count(best_labels))

    def improve(self, labels: Array, gamma: float) -> CommunityResult:
        """Moves, and exchanges for as long as they gain."""
        current = self.move(labels, gamma)
        while (better := self._exchange(current, gamma)) is not None:
            current = better
        return current

    def _exchange(self, current: CommunityResult, gamma: float) -> CommunityResult | None:
        """Regroup the halves of all communities, or merge two and split a third: the first trial that ends higher."""
        halves = self.bisect(current.labels, gamma)
        between = self.cohesion(halves, 2 * self.k, gamma)
        trials = [self.place(_agglomerate(between, self.k)[to_numpy(halves)])]
        triples = _candidates(
            _split_gains(between), 2 * self.cohesion(current.labels, self.k, gamma), MAX_ROUNDS_WITHOUT_GAIN
        )
        trials += [_rearranged(current.labels, halves, *triple) for triple in triples]
        ends = (self.move(trial, gamma) for trial in trials)
        return next((end for end in ends if end.modularity > current.modularity + LEAST_GAIN), None)

    def bisect(self, labels: Array, gamma: float, n_power: int = 60, n_moves: int = 15) -> Array:
        """Every community cut in two: labels 2l and 2l + 1, from its Fiedler vector and then by moves."""
        xp = namespace(self.degrees)
        rows, columns, data = self.edges
        same = xp.take(labels, rows) == xp.take(labels, columns)
        inner = with_data(self.weights, xp.where(same, data, 0))
        add, pull = self.adder(labels, self.k), row_sums(inner)
        side = xp.astype(self._fiedler_vectors(inner, pull, add, labels, n_power) > 0, self.degrees.dtype)
        volumes = xp.take(add(self.degrees), labels)
        for _ in range(n_moves):
            # the weight to the second half less that to the first, each less what the halves' volumes explain
            second = xp.take(add(self.degrees * side), labels)
            lean = 2 * matmul(inner, side[:, None])[:, 0] - pull
            lean = lean - (gamma / self.total) * self.degrees * (2 * second - volumes - self.degrees * (2 * side - 1))
            willing = xp.where(side > 0, lean < 0, lean > 0)
            if not bool(xp.any(willing)):
                break
            side = xp.where(willing & self.half(), 1 - side, side)
        return 2 * labels + xp.astype(side, labels.dtype)

    def _fiedler_vectors(
        self, inner: Sparse, degrees: Array, add: Callable[[Array], Array], labels: Array, n_power: int
    ) -> Array:
        """The second eigenvector of the random walk inside each community, all in one vector, by power iteration."""
        xp = namespace(self.degrees)
        degrees = xp.where(degrees > 0, degrees, 1)
        volumes = add(degrees)
        volumes = xp.where(volumes > 0, volumes, 1)
        x = asarray_like(self.rng.standard_normal(self.n), self.degrees, dtype=self.degrees.dtype)
        for _ in range(n_power):
            x = x - xp.take(add(degrees * x) / volumes, labels)
            size = xp.sqrt(add(degrees * x * x) / volumes)
            x = x / xp.take(xp.where(size > 0, size, 1), labels)
            x = 0.5 * (x + matmul(inner, x[:, None])[:, 0] / degrees)
        return x - xp.take(add(degrees * x) / volumes, labels)

    def cohesion(self, labels: Array, k: int, gamma: float) -> np.ndarray:
        """The weight between communities less what their volumes explain, as shares: (k, k), on the host."""
        xp = namespace(self.degrees)
        rows, columns, data = self.edges
        between = from_coo(xp.take(labels, rows), xp.take(labels, columns), data, (k, k))
        volumes = np.bincount(to_numpy(labels), to_numpy(self.degrees), minlength=k) / self.total
        return to_scipy(between).toarray().astype(np.float64) / self.total - gamma * np.outer(volumes, volumes)

    def evolve(self, found: list[CommunityResult], gamma: float) -> CommunityResult:
        """Recombine the partitions found, the best first, for as long as that leads higher."""
        while True:
            found = sorted(found, key=lambda run: -run.modularity)
            child = self.improve(self.recombine([run.labels for run in found], gamma), gamma)
            if child.modularity <= found[0].modularity + LEAST_GAIN:
                return found[0]
            found = [child, *found]

    def recombine(self, partitions: Sequence[Array], gamma: float) -> Array:
        """The cells on which the partitions agree, merged down to K; of many cells, those of fewer partitions."""
        cells = np.zeros(self.n, dtype=np.int64)
        for labels in partitions:
            _, finer = np.unique(cells * self.k + to_numpy(labels), return_inverse=True)
            if finer.max() >= MOST_CELLS:
                break
            cells = finer
        return self.merge(cells, gamma)

    def merge(self, cells: np.ndarray, gamma: float) -> Array:
        """Cells grouped into K communities: pair by pair, then one by one, several times with a jitter, the best."""
        n_cells = int(cells.max()) + 1
        if n_cells <= self.k:
            return self.place(cells)
        cohesion = self.cohesion(self.place(cells), n_cells, gamma)
        tries = [_move_cells(_agglomerate(cohesion, self.k), cohesion, self.k)]
        for _ in range(JITTERED):
            jitter = np.exp(self.rng.standard_normal(cohesion.shape))
            tries.append(_move_cells(_agglomerate(cohesion * (jitter + jitter.T), self.k), cohesion, self.k))
        return self.place(max(tries, key=lambda labels: _inside(labels, cohesion))[cells])

    def normalized_cut(self, labels: Array) -> float:
        """Σ_k cut(A_k) / vol(A_k); infinite if a community is empty."""
        between = self.cohesion(labels, self.k, 0.0)
        volumes = np.bincount(to_numpy(labels), to_numpy(self.degrees), minlength=self.k) / self.total
        return float(self.k - np.sum(np.diag(between) / volumes)) if (volumes > 0).all() else np.inf

    def with_less(self, found: CommunityResult, drawn: Iterable[Array]) -> CommunityResult:
        """``found``, or the communities of a lower resolution where a spectral partition shows that sizes misled it."""
        thrifty = min(drawn, key=self.normalized_cut)
        if self.normalized_cut(thrifty) >= SPARED * self.normalized_cut(found.labels):
            return found
        trials = [found, *(self.improve(thrifty, found.resolution * share) for share in LOWER)]
        return min(trials, key=lambda trial: self.normalized_cut(trial.labels))

    def with_more(self, found: CommunityResult) -> CommunityResult:
        """At higher resolutions, for as long as a community is empty; where none helps, the largest ones are halved."""
        gamma = found.resolution
        while found.n_communities < self.k and gamma < HIGHEST_RESOLUTION:
            gamma *= RAISE
            found = self.improve(self.refill(found.labels, gamma), gamma)
        return self.without_empty(found)

    def without_empty(self, found: CommunityResult) -> CommunityResult:
        """Where no resolution keeps all communities alive: the largest ones halved until K are there."""
        labels = to_numpy(found.labels).copy()
        for free in np.flatnonzero(np.bincount(labels, minlength=self.k) == 0):
            largest = int(np.argmax(np.bincount(labels)))
            halves = to_numpy(self.bisect(self.place(labels), found.resolution))
            own = np.flatnonzero(labels == largest)
            second = own[halves[own] == 2 * largest + 1]
            labels[second if 0 < len(second) < len(own) else own[: len(own) // 2]] = free
        reached = self.gains(self.place(labels), self.k, found.resolution)[2]
        return CommunityResult(self.place(labels), reached, found.resolution, _count(labels))

    def refill(self, labels: Array, gamma: float) -> Array:
        """Empty communities take the halves that others would gain most from letting go."""
        host = to_numpy(labels)
        empty = np.flatnonzero(np.bincount(host, minlength=self.k) == 0)
        halves = self.bisect(labels, gamma)
        gains = _split_gains(self.cohesion(halves, 2 * self.k, gamma))
        filled = host.copy()
        for free, cut in zip(empty, np.argsort(-gains, kind="stable")):
            filled[to_numpy(halves) == 2 * cut + 1] = free
        return self.place(filled)


# -------------------------------------------------------------------------------------------------------- its parts


def _pick(values: Array, labels: Array) -> Array:
    """The entry of each row that its label names."""
    return namespace(values).take_along_axis(values, labels[:, None], axis=1)[:, 0]


def _count(labels: Array) -> int:
    return len(np.unique(to_numpy(labels)))


def _split_gains(cohesion: np.ndarray) -> np.ndarray:
    """What Q gains when each pair of halves 2c, 2c + 1 is parted."""
    return -2 * np.diagonal(cohesion, 1)[::2]


def _candidates(split: np.ndarray, merge: np.ndarray, most: int) -> list[tuple[int, int, int]]:
    """Triples (a, b, c) of highest gain for "b joins a, half of c takes b's place", c being neither."""
    a, b = np.triu_indices(len(split), 1)
    order = np.argsort(-split, kind="stable")[:3]  # of three, one is neither a nor b
    gains = merge[a, b][:, None] + split[order][None, :]
    gains[(order[None, :] == a[:, None]) | (order[None, :] == b[:, None])] = -np.inf
    flat = np.argsort(-gains, axis=None, kind="stable")[:most]
    pair, which = np.unravel_index(flat, gains.shape)
    return [(int(a[p]), int(b[p]), int(order[w])) for p, w in zip(pair, which) if np.isfinite(gains[p, w])]


def _rearranged(labels: Array, halves: Array, merged: int, taken: int, cut: int) -> Array:
    """``taken`` joins ``merged``; the second half of ``cut`` takes its number."""
    xp = namespace(labels)
    joined = xp.where(labels == taken, merged, labels)
    return xp.where(halves == 2 * cut + 1, taken, joined)


def _agglomerate(cohesion: np.ndarray, k: int) -> np.ndarray:
    """Greedy merging of cells: the new label 0..k-1 of each."""
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
    """Cells moved one at a time, always the one that gains most, until none would."""
    labels, cells = labels.copy(), np.arange(len(labels))
    joint = cohesion @ np.eye(k)[labels]
    own = np.diagonal(cohesion)
    for _ in range(4 * len(labels)):
        gains = joint - (joint[cells, labels] - own)[:, None]
        gains[cells, labels] = 0
        cell, to = divmod(int(gains.argmax()), k)
        if gains[cell, to] <= 1e-12:
            break
        joint[:, labels[cell]] -= cohesion[:, cell]
        joint[:, to] += cohesion[:, cell]
        labels[cell] = to
    return labels


def _inside(labels: np.ndarray, cohesion: np.ndarray) -> float:
    """The modularity of grouped cells."""
    return float(cohesion[labels[:, None] == labels[None, :]].sum())
