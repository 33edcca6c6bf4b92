"""The search for K communities of a graph of at most a few thousand nodes: moves, exchanges and recombination.

1. *Moves* of single nodes, see :mod:`.moves`.
2. *Exchanges*: two communities are merged, a third is split in two (along its Fiedler vector, then by moves), and the
   moves start again. This corrects partitions in which one group is split and two others are merged.
3. *Recombination*: the cells on which several partitions agree are merged greedily down to K.

It runs in NumPy whatever the library of the graph: the operations are so small that starting them on an accelerator
would take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._records import CommunityResult
from ..core.selection import first_best
from ..core.sparse import row_sums, sum_entries, with_data
from .affinity import AffinityGraph
from .cuts import sum_of_cut_ratios
from .moves import MIN_GAIN, WeightedEdges

LOWER_CUT_FACTOR = 0.7  # a spectral partition below this part of the communities' normalised cut: γ was too high
LOWER_RESOLUTION_FACTORS = (1 / 2, 1 / 4, 1 / 16, 1 / 64)  # on γ, searched in that case
MIN_RELATIVE_VOLUME = 0.05  # of the mean volume: smaller communities found at lower resolutions are tails
MAX_CELLS = 400  # that are merged: the matrices have MAX_CELLS² entries
N_JITTERED_MERGES = 20  # ways of merging cells that are tried besides the greedy one
N_EXCHANGES = 5  # exchanges with the highest estimated gain that are tried


@dataclass(frozen=True)
class CommunitySearch:
    """The search for K communities in one graph, on the host.

    Attributes
    ----------
    edges : WeightedEdges
    weights : csr_array of shape (n, n)
        The same edges as a matrix.
    loops : array of shape (n,)
        The weights of self-loops.
    k : int
    rng : RandomState
    """

    edges: WeightedEdges
    weights: sp.csr_array
    loops: np.ndarray
    k: int
    rng: np.random.RandomState

    @classmethod
    def on(
        cls, graph: AffinityGraph, k: int, rng: np.random.RandomState, attracting: AffinityGraph | None = None
    ) -> CommunitySearch:
        """Return the search on a graph in SciPy, see `WeightedEdges.of`."""
        loops = np.zeros(graph.n_nodes) if graph.loops is None else graph.loops
        return cls(WeightedEdges.of(graph, attracting), graph.weights, loops, k, rng)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.edges.n

    @property
    def degrees(self) -> np.ndarray:
        """The degrees d_i, without negative weights."""
        return self.edges.degrees

    @property
    def total(self) -> float:
        """2m."""
        return self.edges.total

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
        trials = [_agglomerate(between, self.k)[halves]]
        triples = _best_exchanges(_split_gains(between), 2 * self.cohesion(current.labels, self.k, gamma), N_EXCHANGES)
        trials += [_rearrange(current.labels, halves, *triple) for triple in triples]
        results = (self.move(trial, gamma) for trial in trials)
        return next((result for result in results if result.modularity > current.modularity + MIN_GAIN), None)

    def bisect(self, labels: np.ndarray, gamma: float, n_power: int = 60, n_moves: int = 15) -> np.ndarray:
        """Split every community l into 2l and 2l + 1, along its Fiedler vector and then by moves."""
        same = labels[self.edges.rows] == labels[self.edges.columns]
        inner = with_data(self.weights, np.where(same, self.weights.data, 0))
        inner_degrees = row_sums(inner)
        side = (self._fiedler_vectors(inner, inner_degrees + self.loops, labels, n_power) > 0).astype(float)
        volumes = self.sums(labels, self.degrees)[labels]
        for _ in range(n_moves):
            # the weight to the second half minus that to the first, each minus what the volumes of the halves explain
            second = self.sums(labels, self.degrees * side)[labels]
            gain = 2 * (inner @ side) - inner_degrees
            gain -= (gamma / self.total) * self.degrees * (2 * second - volumes - self.degrees * (2 * side - 1))
            would_gain = np.where(side > 0, gain < 0, gain > 0)
            if not would_gain.any():
                break
            side = np.where(would_gain & (self.rng.random_sample(self.n) < 0.5), 1 - side, side)
        return 2 * labels + side.astype(labels.dtype)

    def _fiedler_vectors(
        self, inner: sp.csr_array, degrees: np.ndarray, labels: np.ndarray, n_power: int
    ) -> np.ndarray:
        """Return the second eigenvector of the random walk inside each community, as one vector, by power iteration."""
        degrees = np.where(degrees > 0, degrees, 1)
        volumes = self.sums(labels, degrees)
        volumes = np.where(volumes > 0, volumes, 1)
        walk = sp.diags_array(1 / degrees) @ (inner + sp.diags_array(self.loops))
        x = self.rng.standard_normal(self.n)
        for _ in range(n_power):
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
        volumes = self.relative_volumes(labels, k)
        return between / self.total - gamma * np.outer(volumes, volumes)

    def relative_volumes(self, labels: np.ndarray, k: int) -> np.ndarray:
        """Return the volumes of the communities over 2m."""
        return self.sums(labels, self.degrees, k) / self.total

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
        cells = np.zeros(self.n, dtype=np.int64)
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
        tries = [_move_cells(_agglomerate(cohesion, self.k), cohesion, self.k)]
        for _ in range(N_JITTERED_MERGES):
            jitter = np.exp(self.rng.standard_normal(cohesion.shape))
            tries.append(_move_cells(_agglomerate(cohesion * (jitter + jitter.T), self.k), cohesion, self.k))
        return first_best(tries, lambda labels: _modularity_of_cells(labels, cohesion))[cells]

    def normalized_cut(self, labels: np.ndarray) -> float:
        """Return Σ_k cut(A_k) / vol(A_k); infinite if a community is empty.

        `fiedler.graph.cuts.normalized_cut` cannot serve here: it skips missing labels, where the search must reject an
        empty community, and it takes the degrees Σ|w| of a signed graph, where negative weights are not in the volumes.
        """
        volumes = self.relative_volumes(labels, self.k)
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
        volumes = self.relative_volumes(labels, self.k)
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


# ---------------------------------------------------------------------------------------------------------- helpers


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


def _rearrange(labels: np.ndarray, halves: np.ndarray, target: int, merged: int, split: int) -> np.ndarray:
    """Merge community ``merged`` into ``target``, and give its number to the second half of ``split``."""
    joined = np.where(labels == merged, target, labels)
    return np.where(halves == 2 * split + 1, merged, joined)


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
