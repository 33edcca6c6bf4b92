"""New rows for a fitted ManifoldClustering: they join the graph, and only what they change changes.

1. *Graph*: that of all rows, see :mod:`fiedler.graph.growth`.
2. *Labels*: the memberships of the model are Q = (1-γ) (I - γP)⁻¹ S, with the random walk P on its graph and the shares
   S of labels and votes from which they were computed (:mod:`.memberships`). S = (Q - γPQ) / (1-γ) follows from them. A
   new row has the shares of the nearest row of its predicted cluster. With P' on the grown graph,

       Q' = (1-γ) (I - γP')⁻¹ S'

   are the new memberships. Where P' = P nothing changes, whatever method the partition came from. A row moves if
   another cluster has a larger membership now; its largest share is then that of its new cluster, and the walk is
   repeated until no row moves.
3. *New clusters*: groups of new rows that are joined to each other but not to the old rows, see `find_new_clusters`.
4. *Communities*: with more rows, another partition may be clearly better, which no moves of single rows lead to: one
   group was split and two others were merged. If the clusters are communities of the rows themselves, communities are
   searched again, on a coarse graph, and replace the clusters if their cut is clearly lower, see `better_communities`.
   They take over the numbers of the clusters with which they have most rows in common.
5. *Drift*: whether the new rows are like the old ones, see `Drift`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..core.backend import Array, asarray_like, namespace, positive_part, to_numpy
from ..core.interrupts import check_interrupt
from ..core.rows import normalize_row_sums
from ..core.sparse import to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.community import MultilevelSearch
from ..graph.growth import GrownGraph, NeighborLists, grow_graph
from ..graph.kernels import LOCAL_NEIGHBOR, KernelConstants, RowPairs, edge_weights
from ..graph.recipes import KNNGraph
from ..graph.smoothing import resolvent
from .candidates import mean_normalized_cut
from .consensus import match_clusters, rand_index
from .memberships import WALK

MAX_ROUNDS = 20  # of the walk, in each of which rows move
MAX_LINKED_SHARE = 0.5  # of the weight to old rows that is expected of a new row: rows of a new cluster have less
SPARSE_NEIGHBORS = 5  # of the sparser graph
COARSE_NODES = (
    2_000  # supernodes of the graph on which communities are searched again: a second, for any number of rows
)
SAME_ABOVE = 0.95  # adjusted Rand index above which communities are the same as the clusters
CLEARLY_LOWER = 0.9  # factor on the cut of the clusters, below which other communities replace them
MAX_CONDUCTANCE = 0.05  # share of the weight that leaves a new cluster, or that of half of the old clusters if larger
FAR_PERCENTILE = 99  # of the old rows' neighbour distances, beyond which a row is far
LARGE_FAR_SHARE = 0.05  # of the new rows, instead of 1 %
LARGE_SHARE_CHANGE = 0.1  # beyond what is expected by chance


REORGANIZED = ", since the graph of all rows has clusters with a clearly lower cut"


class Drift(NamedTuple):
    """How different new rows are from the rows of a model, without labels.

    Attributes
    ----------
    distance_ratio : float
        The median over the new rows of the mean distance to their nearest old rows, divided by the median of that
        distance of the old rows among themselves. About 1 for rows of the same kind.
    far_share : float
        The share of the new rows for which that distance is larger than for 99 % of the old rows: about 0.01 for rows
        of the same kind.
    share_change : float
        The total variation ½ Σ_k |p_k - q_k| between the shares p of the clusters among the old rows and q among the
        new ones: 0 if they are equal, 1 if no cluster has rows of both.
    expected_change : float
        What it would be by chance for rows of the same kind.

    Examples
    --------
    >>> from fiedler.clustering import Drift
    >>> Drift(distance_ratio=1.01, far_share=0.012, share_change=0.04, expected_change=0.05).is_large
    False
    """

    distance_ratio: float
    far_share: float
    share_change: float
    expected_change: float

    @property
    def is_large(self) -> bool:
        """Whether the new rows are clearly different."""
        return self._is_far or self._is_shifted

    @property
    def _is_far(self) -> bool:
        return self.far_share >= LARGE_FAR_SHARE

    @property
    def _is_shifted(self) -> bool:
        return self.share_change >= self.expected_change + LARGE_SHARE_CHANGE

    def __str__(self) -> str:
        reasons = []
        if self._is_far:
            reasons.append(f"{self.far_share:.0%} of them are farther from the old rows than 99 % of these are")
        if self._is_shifted:
            reasons.append(
                f"the shares of the clusters differ by {self.share_change:.0%} ({self.expected_change:.0%} by chance)"
            )
        if reasons:
            return f"the new rows differ from the old ones: {', and '.join(reasons)}; consider a new fit on all rows"
        return (
            f"none: distances to neighbours are {self.distance_ratio:.2f} times those of the old rows, and the shares "
            f"of the clusters differ by {self.share_change:.0%} ({self.expected_change:.0%} by chance)"
        )


@dataclass(frozen=True, eq=False)
class UpdateResult:
    """What :meth:`ManifoldClustering.update` has changed.

    Attributes
    ----------
    labels : array of shape (m,)
        The clusters of the new rows.
    moved : ndarray of shape (r,)
        The numbers of the old rows whose cluster is another one now.
    moved_from, moved_to : ndarray of shape (r,)
        Their clusters before and after.
    new_clusters : list of int
        The numbers of clusters that did not exist before, which follow those of the old ones.
    is_reorganized : bool
        Whether other communities, with a clearly lower cut, have replaced the clusters, which keep their numbers where
        most of their rows stay together. Otherwise rows have moved one by one.
    drift : Drift
        How different the new rows are.
    n_old : int
        The number of rows before.

    Examples
    --------
    >>> from fiedler import ManifoldClustering
    >>> from fiedler.datasets import two_moons
    >>> X, y = two_moons(n_samples=400, noise=0.05, random_state=0)
    >>> model = ManifoldClustering(2, random_state=0).fit(X[:300])
    >>> result = model.update(X[300:])
    >>> result.labels.shape, result.new_clusters, result.drift.is_large
    ((100,), [], False)
    """

    labels: Array
    moved: np.ndarray
    moved_from: np.ndarray
    moved_to: np.ndarray
    new_clusters: list[int]
    is_reorganized: bool
    drift: Drift
    n_old: int

    def __str__(self) -> str:
        labels = to_numpy(self.labels)
        sizes = [f"{label} ({int((labels == label).sum())} of the new rows)" for label in self.new_clusters]
        lines = [
            f"{len(labels)} rows were added to {self.n_old}",
            f"rows that moved to another cluster: {len(self.moved)}{REORGANIZED * self.is_reorganized}",
            f"new clusters: {', '.join(sizes) or 'none'}",
            f"drift: {self.drift}",
        ]
        return "\n".join(lines)


class GrownClustering(NamedTuple):
    """The clusters of old and new rows, the old ones first.

    Attributes
    ----------
    grown : GrownGraph
    memberships : array of shape (n + m, k + number of new clusters)
    labels : ndarray of shape (n + m,)
        The largest memberships.
    sources : ndarray of shape (m,)
        The old row whose shares each new row has taken over.
    shares : ndarray of shape (n + m, k + number of new clusters)
        The shares of labels and votes before any row moved.
    new_clusters : list of int
    is_reorganized : bool
        Whether other communities have replaced the clusters.
    drift : Drift
    """

    grown: GrownGraph
    memberships: Array
    labels: np.ndarray
    sources: np.ndarray
    shares: np.ndarray
    new_clusters: list[int]
    is_reorganized: bool
    drift: Drift


def grow_clustering(
    recipe: KNNGraph,
    graph: AffinityGraph,
    X: Array,
    X_new: Array,
    memberships: Array,
    rng: np.random.RandomState | None,
) -> GrownClustering:
    """Join new rows to the graph of a clustering and to its clusters, or to new ones.

    Parameters
    ----------
    recipe : KNNGraph
        That of the graph, with local weights.
    graph : AffinityGraph
        Without given pairs.
    X, X_new : array or CSR matrix of shape (n, d) and (m, d)
        The rows of the graph, and the new ones.
    memberships : array of shape (n, k)
    rng : RandomState or None
        Of the search for communities; None if the clusters were found by other means.
    """
    grown, Q = grow_graph(recipe, graph, X, X_new, SPARSE_NEIGHBORS), to_numpy(memberships)
    n_old, n_clusters, labels = len(Q), Q.shape[1], Q.argmax(axis=1)
    assert graph.constants is not None
    predicted = linked_labels(grown.to_old, to_numpy(graph.constants.scales), Q)
    sources = nearest_of_cluster(grown.to_old, labels, predicted)
    old_shares = shares_behind(Q, graph)
    limit = max(MAX_CONDUCTANCE, median_conductance(graph, labels))
    groups = find_new_clusters(grown.unconnected, n_old, grown.to_old.indices.shape[1] + 1, limit)
    shares = np.pad(np.concatenate([old_shares, old_shares[sources]]), ((0, 0), (0, len(groups))))
    start = np.concatenate([labels, predicted])
    for label, rows in enumerate(groups, n_clusters):
        start[rows], shares[rows] = label, np.eye(shares.shape[1])[label]
    Q_all, found = walk_until_settled(shares, start, start, grown.graph, memberships)
    better = None if rng is None else better_communities(grown, found, shares.shape[1], rng)
    if better is not None:
        Q_all, found = walk_until_settled(shares, start, better, grown.graph, memberships)
    drift = measure_drift(grown.of_old, grown.to_old, found[:n_old], found[n_old:], shares.shape[1])
    new_clusters = list(range(n_clusters, n_clusters + len(groups)))
    is_reorganized = better is not None and not np.array_equal(found[:n_old], labels)
    return GrownClustering(grown, Q_all, found, sources, shares, new_clusters, is_reorganized, drift)


# -------------------------------------------------------------------------------------------------------- memberships


def shares_behind(memberships: np.ndarray, graph: AffinityGraph) -> np.ndarray:
    """Return S = (Q - γPQ) / (1-γ), the shares from which the walk on the graph has computed memberships Q.

    Parameters
    ----------
    memberships : ndarray of shape (n, k)
    graph : AffinityGraph
        With non-negative weights.
    """
    Q, degrees = memberships.astype(np.float64), to_numpy(graph.degrees).astype(np.float64)[:, None]
    reached = to_scipy(graph.weights) @ Q
    steps = np.where(degrees > 0, reached / np.where(degrees > 0, degrees, 1), Q)
    return (Q - WALK * steps) / (1 - WALK)


def linked_labels(to_old: NeighborLists, scales: np.ndarray, memberships: np.ndarray) -> np.ndarray:
    """Return the clusters of new rows by the memberships of their neighbours, weighted as in the graph.

    A new row that equals an old one, or has no weight to any, has the cluster of the nearest row.

    Parameters
    ----------
    to_old : NeighborLists
        The neighbours of the new rows among the old ones.
    scales : ndarray of shape (n,)
        Of the old rows, in the local kernel.
    memberships : ndarray of shape (n, k)
        Of the old rows.
    """
    m, k = to_old.indices.shape
    own = to_old.distances[:, min(k, LOCAL_NEIGHBOR) - 1]
    rows, columns = np.repeat(np.arange(m), k), to_old.indices.ravel()
    pairs = RowPairs(None, None, to_old.distances.ravel(), rows, columns, own, scales)
    weights = edge_weights("local", pairs, KernelConstants()).reshape(m, k)
    weights[(weights.sum(axis=1) == 0) | (to_old.distances[:, 0] == 0)] = np.eye(1, k)
    return np.einsum("mk,mkc->mc", weights, memberships[to_old.indices]).argmax(axis=1)


def nearest_of_cluster(to_old: NeighborLists, labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the nearest old row of each new row among its neighbours of the predicted cluster.

    Parameters
    ----------
    to_old : NeighborLists
        The neighbours of the new rows among the old ones.
    labels : ndarray of shape (n,)
        The clusters of the old rows.
    predicted : ndarray of shape (m,)
        Those of the new rows; if no neighbour has it, the nearest row is returned.
    """
    is_same = labels[to_old.indices] == predicted[:, None]
    return to_old.indices[np.arange(len(predicted)), is_same.argmax(axis=1)]


def walk_until_settled(
    shares: np.ndarray, before: np.ndarray, labels: np.ndarray, graph: AffinityGraph, reference: Array
) -> tuple[Array, np.ndarray]:
    """Return memberships and labels after rows have moved to the cluster of their largest membership.

    Parameters
    ----------
    shares : ndarray of shape (n, k)
        S', of rows with the labels ``before``.
    before : ndarray of shape (n,)
    labels : ndarray of shape (n,)
        The labels from which rows move, 0, 1, ...
    graph : AffinityGraph
    reference : array
        Decides the array library, dtype and device of the memberships.
    """
    for _ in range(MAX_ROUNDS):
        check_interrupt()
        start = asarray_like(moved_shares(shares, before, labels), reference, dtype=reference.dtype)
        Q = normalize_row_sums(positive_part(resolvent(start, graph, WALK, tol=1e-6)))
        found = to_numpy(namespace(Q).argmax(Q, axis=1)).astype(np.int64)
        has_settled = np.array_equal(found, labels)
        labels = found
        if has_settled:
            break
    return Q, labels


def moved_shares(shares: np.ndarray, before: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the shares of rows after their move: the largest share of a moved row is that of its new cluster."""
    moved, result = np.flatnonzero(labels != before), shares.copy()
    largest, new = shares[moved].argmax(axis=1), labels[moved]
    result[moved, largest] = shares[moved, new]
    result[moved, new] = shares[moved, largest]
    return result


# --------------------------------------------------------------------------------------------------------- communities


def better_communities(
    grown: GrownGraph, labels: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray | None:
    """Search communities on the grown graph and the sparser one; return them if their cut is clearly lower.

    Parameters
    ----------
    grown : GrownGraph
    labels : ndarray of shape (n,)
        The clusters, of which each number is kept by the community with most of its rows.
    n_clusters : int
    rng : RandomState
    """
    if len(np.unique(labels)) < max(2, n_clusters):
        return None
    graphs = [grown.sparser, grown.graph]
    cut_of = lambda partition: mean_normalized_cut(graphs, partition)  # noqa: E731
    found = []
    for graph in graphs:
        search = MultilevelSearch.on(graph, n_clusters, rng, COARSE_NODES)
        found.append(to_numpy(search.find(n_clusters, rng).labels).astype(np.int64))
    best = min(found, key=cut_of)
    is_another = rand_index(best, labels) < SAME_ABOVE
    is_better = is_another and cut_of(best) < CLEARLY_LOWER * cut_of(labels)
    return match_clusters(best, labels, n_clusters) if is_better else None


# -------------------------------------------------------------------------------------------------------- new clusters


def find_new_clusters(
    graph: AffinityGraph, n_old: int, min_size: int, max_conductance: float = MAX_CONDUCTANCE
) -> list[np.ndarray]:
    """Return the groups of new rows that are clusters of their own, by the number of their first row.

    A new row like the old ones has about the share n / (n + m) of its weight to old rows. Rows with less than half of
    that are grouped by the edges between them. A group is a cluster if it has at least ``min_size`` rows and at most
    the share ``max_conductance`` of its weight leaves it.

    Parameters
    ----------
    graph : AffinityGraph
        Of all rows, the old ones first, without edges that join its components.
    n_old : int
    min_size : int
    max_conductance : float
    """
    W, degrees = to_scipy(graph.weights), to_numpy(graph.degrees).astype(np.float64)
    to_old = np.asarray(W[n_old:, :n_old].sum(axis=1), dtype=np.float64).ravel()
    limit = MAX_LINKED_SHARE * n_old / graph.n_nodes
    candidates = n_old + np.flatnonzero(to_old < limit * degrees[n_old:])
    if len(candidates) < min_size:
        return []
    n_groups, group = connected_components(W[candidates][:, candidates], directed=False)
    groups = [candidates[group == g] for g in range(n_groups)]
    return [rows for rows in groups if len(rows) >= min_size and conductance(W, degrees, rows) <= max_conductance]


def conductance(W: sp.csr_array, degrees: np.ndarray, rows: np.ndarray) -> float:
    """Return cut(A, rest) / vol(A) of a group of nodes; 1 if it has no edges."""
    volume = float(degrees[rows].sum())
    return 1.0 - float(W[rows][:, rows].sum()) / volume if volume > 0 else 1.0


def median_conductance(graph: AffinityGraph, labels: np.ndarray) -> float:
    """Return the median over the clusters of the share of their weight that leaves them."""
    W, degrees = to_scipy(graph.weights), to_numpy(graph.degrees).astype(np.float64)
    return float(np.median([conductance(W, degrees, np.flatnonzero(labels == label)) for label in np.unique(labels)]))


# --------------------------------------------------------------------------------------------------------------- drift


def measure_drift(
    of_old: NeighborLists, to_old: NeighborLists, old_labels: np.ndarray, new_labels: np.ndarray, n_clusters: int
) -> Drift:
    """Compare new rows with old ones by their distances to old rows, and by their clusters.

    Parameters
    ----------
    of_old, to_old : NeighborLists
        The neighbours of the old and of the new rows, among the old rows.
    old_labels, new_labels : ndarray
        Their clusters, 0, 1, ...
    n_clusters : int
    """
    old, new = (lists.distances.mean(axis=1, dtype=np.float64) for lists in (of_old, to_old))
    typical = float(np.median(old))
    ratio = float(np.median(new)) / typical if typical > 0 else (1.0 if np.median(new) == 0 else math.inf)
    p, q = (np.bincount(part, minlength=n_clusters) / len(part) for part in (old_labels, new_labels))
    return Drift(
        distance_ratio=ratio,
        far_share=float(np.mean(new > np.percentile(old, FAR_PERCENTILE))),
        share_change=0.5 * float(np.abs(p - q).sum()),
        expected_change=change_by_chance(p, len(old_labels), len(new_labels)),
    )


def change_by_chance(shares: np.ndarray, n_old: int, n_new: int) -> float:
    """Return the expected total variation between the shares in two samples from the same clusters.

    E|p̂_k - q̂_k| ≈ √(2/π) σ_k for normal differences, with σ_k² = p_k (1 - p_k) (1/n + 1/m).
    """
    deviations = np.sqrt(shares * (1 - shares) * (1 / n_old + 1 / n_new))
    return min(1.0, 0.5 * math.sqrt(2 / math.pi) * float(deviations.sum()))
