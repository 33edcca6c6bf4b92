r"""Levels: the partitions of a nested tree whose level of K clusters is the fitted partition.

1. *Leaves.* The cells of the graph (:mod:`fiedler.graph.borders`) within each cluster; small ones join others.
2. *Merging.* Of the groups of one cluster the two with the largest average weight are merged,

       w_AB / (v_A v_B),      w_AB = Σ_{i∈A, j∈B} w_ij,   v_A = Σ_{i∈A} d_i,

   again and again until each cluster is one group; then clusters, until one is left. So coarser levels join whole
   clusters, and finer ones split them. Edges between rows that are not among the nearest ones of each other only
   connect components of the graph: groups without others are merged last, those with the shortest such edge first.
3. *Memberships.* Q is that of the fit, and S the shares of the groups of the finest level where random walks stop
   (:mod:`.memberships`); group g of cluster k has the part S_ig / Σ_{h in k} S_ih of Q_ik. Those of other levels are
   sums, so they add up to the memberships of all coarser levels. A row follows the larger share at every split.
4. *Splits.* With b the number of links between both parts and c that of the thinnest cut through either, a border is no
   thinner than a cut if there is one cloud, and  z = 2 (√(c + 1/2) - √(b + 1/2))  is about normal or smaller: its upper
   tail is the p-value. A part that is split significantly itself has the thinnest cut of its own parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int
from ..core.arrays import (
    Array,
    asarray_like,
    namespace,
    one_hot,
    order_by_first_row,
    take_clusters,
    take_rows,
    to_numpy,
)
from ..core.sparse import row_indices, sum_entries
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.borders import MIN_GROUP_SIZE, MIN_SHARE, Split, find_cells, strong_links, thinness, thinnest_cut
from ..graph.community import on_host
from ..graph.kernels import pair_distances
from ..graph.recipes import KNNGraph
from ..graph.weights import CopiedRows
from .memberships import walk
from .state import FittedLevel, FittedState

if TYPE_CHECKING:
    from .n_clusters import NClustersChoice

FINEST_FACTOR, MIN_FINEST = 4, 12  # clusters of the finest level: times those of the fit, or so many if that is more
SIGNIFICANT_BELOW = 0.05  # p-value of a split into parts that are groups of their own
NO_EDGE = float(np.finfo(np.float64).max)  # length
TINY = 1e-300  # in place of a sum of zero


class LevelTree(NamedTuple):
    """The nested partitions of the rows."""

    labels: np.ndarray  # (n,), the group of the finest level, -1 for outliers
    memberships: Array  # (n, m), those of the finest level
    clusters: np.ndarray  # (m, m), the cluster of every group at the level of 1, 2, ..., m clusters
    fitted: int  # the number of clusters of the fit

    @property
    def finest(self) -> int:
        """The largest number of clusters."""
        return len(self.clusters)

    def level(self, n_clusters: int) -> FittedLevel:
        """Return labels and memberships of a level."""
        labels = np.append(self.clusters[n_clusters - 1], -1)[self.labels]
        return FittedLevel(labels, sum_clusters(self.memberships, self.clusters[n_clusters - 1]))

    def place(self, memberships: Array, n_clusters: int) -> np.ndarray:
        """Return the cluster, at a level, of rows whose memberships at the finest level are given."""
        largest = to_numpy(sum_clusters(memberships, self.clusters[self.fitted - 1])).argmax(axis=1)
        return self.clusters[n_clusters - 1][descend(to_numpy(memberships), largest, self.clusters, self.fitted)]


def sum_clusters(memberships: Array, cluster_of: np.ndarray) -> Array:
    """Return the sums of the memberships of the groups of every cluster."""
    n_clusters = int(cluster_of.max()) + 1
    return memberships @ one_hot(asarray_like(cluster_of, memberships), n_clusters, memberships)


def descend(memberships: np.ndarray, labels: np.ndarray, clusters: np.ndarray, fitted: int) -> np.ndarray:
    """Return the groups that rows in clusters of the fit reach, at every split in the part with the larger share."""
    found = labels
    for k in range(fitted, len(clusters)):
        parent, parts = split_of(clusters, k + 1)
        shares = [memberships[:, clusters[k] == part].sum(axis=1) for part in parts]
        renumbered = np.zeros(k, dtype=np.int64)
        renumbered[clusters[k - 1]] = clusters[k]
        found = np.where(found == parent, np.where(shares[0] >= shares[1], *parts), renumbered[found])
    return np.argsort(clusters[-1])[found]


def split_of(clusters: np.ndarray, n_clusters: int) -> tuple[int, tuple[int, int]]:
    """Return which cluster of the next coarser level is split, and into which ones of the level."""
    pairs = np.unique(clusters[n_clusters - 2 : n_clusters], axis=1).T.tolist()
    parents = [parent for parent, _ in pairs]
    split = next(parent for parent in parents if parents.count(parent) == 2)
    first, second = (part for parent, part in pairs if parent == split)
    return split, (first, second)


# ------------------------------------------------------------------------------------------------------------ the tree


def bridge_lengths(weights: sp.csr_array, X: Array | None, recipe: Any) -> np.ndarray:
    """Return the lengths of the edges that only connect components of a graph of nearest neighbours, else `NO_EDGE`.

    They are those between rows that are not among the nearest ones of each other.
    """
    rows, columns = row_indices(weights), weights.indices
    if X is None or not isinstance(recipe, KNNGraph):
        return np.full(len(rows), NO_EDGE)
    is_numpy = isinstance(X, np.ndarray) or sp.issparse(X)
    ends = (rows, columns) if is_numpy else (asarray_like(rows, X), asarray_like(columns, X))
    lengths = to_numpy(pair_distances(X, X, *ends)).astype(np.float64)
    order = np.lexsort((lengths, rows))
    near = order[np.arange(len(rows)) - weights.indptr[rows] < recipe.n_neighbors]
    known = sp.csr_array((np.ones(len(near)), (rows[near], columns[near])), shape=weights.shape)
    is_known = np.asarray((known + known.T)[rows, columns]).ravel() > 0
    return np.where(is_known, NO_EDGE, lengths)


class _Groups:
    """Groups of nodes that are merged: weights between them, volumes, sizes, and the shortest of the long edges."""

    def __init__(self, graph: AffinityGraph, lengths: np.ndarray, groups: np.ndarray, counted: np.ndarray, m: int):
        rows, columns = groups[row_indices(graph.weights)], groups[graph.weights.indices]
        self.weights = sum_entries(rows, columns, np.where(lengths < NO_EDGE, 0.0, graph.weights.data), (m, m))
        self.lengths = np.full((m, m), NO_EDGE)
        np.minimum.at(self.lengths, (rows, columns), lengths)
        self.volumes = np.bincount(groups, to_numpy(graph.degrees), minlength=m)
        self.sizes = np.bincount(groups, counted, minlength=m)
        self.members = [[group] for group in range(m)]

    def containing(self) -> np.ndarray:
        """Return the group in which each of the first groups is."""
        found = np.empty(len(self.members), dtype=np.int64)
        for group, members in enumerate(self.members):
            found[members] = group
        return found

    def closeness(self, group: int) -> np.ndarray:
        """Return the average weight to each group; minus the length of an edge without any."""
        products = self.volumes[group] * self.volumes
        average = self.weights[group] / np.maximum(products, TINY)
        found = np.where(self.weights[group] > 0, average, -self.lengths[group])
        return np.where(self.sizes[group] * self.sizes > 0, found, np.inf)  # empty ones are merged first

    def join(self, a: int, b: int) -> None:
        """Merge group b into a."""
        for table, combine in ((self.weights, np.add), (self.lengths, np.minimum)):
            table[a] = combine(table[a], table[b])
            table[:, a] = table[a]
        self.volumes[a] += self.volumes[b]
        self.sizes[a] += self.sizes[b]
        self.members[a], self.members[b] = self.members[a] + self.members[b], []

    def join_small(self, owner: np.ndarray, min_size: int) -> None:
        """Merge groups that are smaller than ``min_size``, the smallest first, with the closest of their owner."""
        left = set(range(len(owner)))
        while small := [group for group in left if self.sizes[group] < min_size]:
            group = min(small, key=lambda one: (self.sizes[one], one))
            left.remove(group)
            mates = [other for other in sorted(left) if owner[other] == owner[group]]
            if mates:
                self.join(mates[int(self.closeness(group)[mates].argmax())], group)

    def merge(self, owner: np.ndarray) -> list[tuple[int, int]]:
        """Merge the two closest groups of one owner until each has one; return the pairs that were merged."""
        left = np.flatnonzero([len(members) > 0 for members in self.members])
        allowed = np.zeros((len(owner), len(owner)), dtype=bool)
        allowed[np.ix_(left, left)] = owner[left][:, None] == owner[left]
        np.fill_diagonal(allowed, val=False)
        table = np.where(allowed, np.stack([self.closeness(group) for group in range(len(owner))]), -np.inf)
        pairs = []
        while allowed.any():
            a, b = sorted(divmod(int(table.argmax()), len(owner)))
            pairs.append((a, b))
            self.join(a, b)
            allowed[b] = allowed[:, b] = False
            table[b] = table[:, b] = -np.inf
            table[a] = table[:, a] = np.where(allowed[a], self.closeness(a), -np.inf)
        return pairs


def merge_cells(
    graph: AffinityGraph, lengths: np.ndarray, labels: np.ndarray, counted: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each node at the finest level, and the cluster of each group at every level.

    Clusters of the level of ``n_clusters`` have the numbers of the ``labels``, others that of one of their groups.
    Nodes that are not ``counted``, outliers, have no part in the sizes of groups.
    """
    cells = find_cells(graph, np.random.RandomState(0))
    pairs, nodes = np.unique(np.stack([labels, cells]), axis=1, return_inverse=True)
    owner, nodes = np.append(pairs[0], np.setdiff1d(np.arange(n_clusters), labels)), nodes.ravel()  # also empty ones
    groups = _Groups(graph, lengths, nodes, counted, len(owner))
    groups.join_small(owner, MIN_GROUP_SIZE)
    current = groups.containing()
    pairs_merged = [*groups.merge(owner), *groups.merge(np.zeros_like(owner))]
    finest = min(len(pairs_merged) + 1, max(FINEST_FACTOR * n_clusters, MIN_FINEST))
    levels: list[np.ndarray] = []
    for n_groups, (kept, absorbed) in zip(range(len(pairs_merged) + 1, 0, -1), [*pairs_merged, (0, 0)]):
        if n_groups <= finest:
            names = owner[current] if n_groups == n_clusters else current
            levels.append(np.unique(names, return_inverse=True)[1])
        current = np.where(current == absorbed, kept, current)
    first = np.unique(levels[0], return_index=True)[1]  # a cell of each group of the finest level
    return levels[0][nodes], np.stack(levels[::-1])[:, first]


def number_by_first_row(clusters: np.ndarray, labels: np.ndarray, fitted: int) -> np.ndarray:
    """Return the clusters of every level, but that of the fit, numbered in the order of their first rows."""
    m = len(clusters)
    places = np.argsort(order_by_first_row(labels, m))  # of the groups
    numbered = np.empty_like(clusters)
    for k, level in enumerate(clusters, start=1):
        names, number = np.unique(level, return_inverse=True)
        first = np.full(len(names), m)
        np.minimum.at(first, number, places)
        numbered[k - 1] = level if k == fitted else np.argsort(np.argsort(first))[number]
    return numbered


def build_tree(graph: AffinityGraph, base: FittedLevel, state: FittedState) -> LevelTree:
    """Return the tree of a partition of the rows, whose graph is that of the different ones."""
    graph, n_clusters, copies = on_host(graph), int(base.memberships.shape[1]), state.copies
    first = np.arange(graph.n_nodes) if copies is None else copies.first
    Q, labels = take_rows(base.memberships, first), to_numpy(base.labels)[first].astype(np.int64)
    counted = labels >= 0
    labels = np.where(counted, labels, to_numpy(Q).argmax(axis=1))
    lengths = bridge_lengths(graph.weights, state.rows, state.recipe)
    groups, clusters = merge_cells(graph, lengths, labels, counted, n_clusters)
    m, owner = len(clusters), clusters[n_clusters - 1]
    start = one_hot(asarray_like(groups, Q), m, Q)
    S, xp = walk(start, graph), namespace(Q)
    sizes = np.bincount(groups, minlength=m) + TINY
    sizes = asarray_like(sizes / np.bincount(owner, sizes)[owner], Q, dtype=Q.dtype)
    total = take_clusters(sum_clusters(S, owner), owner, axis=1)
    shares = xp.where(total > 0, S / xp.where(total > 0, total, 1), sizes[None, :])
    shares = take_clusters(Q, owner, axis=1) * shares
    reached = descend(to_numpy(shares), labels, clusters, n_clusters)
    if len(np.unique(reached[counted])) == len(np.unique(groups[counted])):  # no group has lost its last row
        groups = reached
    groups = np.where(counted, groups, -1)
    if copies is not None:
        groups, shares = copies.expand(groups, -1), copies.expand(shares, 1 / m)
    return LevelTree(groups, shares, number_by_first_row(clusters, groups, n_clusters), n_clusters)


# ---------------------------------------------------------------------------------------------------------- the splits


def find_splits(graph: AffinityGraph, tree: LevelTree, copies: CopiedRows | None) -> list[Split]:
    """Return the split at the level of 2, 3, ... clusters: the border between its parts, and the cut through them."""
    links = strong_links(on_host(graph).weights)
    groups = tree.labels if copies is None else tree.labels[copies.first]
    cuts: dict[bytes, float] = {}
    found = []
    for k in range(tree.finest, 1, -1):
        _, parts = split_of(tree.clusters, k)
        sides = [tree.clusters[k - 1] == part for part in parts]
        first, second = (np.flatnonzero(np.append(side, False)[groups]) for side in sides)  # outliers are in neither
        for side, nodes in zip(sides, (first, second)):
            if side.sum() == 1:  # a group of the finest level; others were split there
                cuts[side.tobytes()] = thinnest_cut(links[nodes][:, nodes])
        border, cut = float(links[first][:, second].sum()), min(cuts[side.tobytes()] for side in sides)
        split = Split(float(thinness(np.array(border), np.array(cut))), border, cut)
        found.append(split)
        if split.p_value >= SIGNIFICANT_BELOW:
            both = np.concatenate([first, second])
            is_even = min(len(first), len(second)) >= MIN_SHARE * len(both)
            cut = min(thinnest_cut(links[both][:, both]), border if is_even else np.inf)
        cuts[(sides[0] | sides[1]).tobytes()] = cut
    return found[::-1]


def levels_table(tree: LevelTree, splits: list[Split], evidence: NClustersChoice | None) -> dict[str, list[Any]]:
    """Return what is known about every level, one column per key."""
    numbers = range(2, tree.finest + 1)
    compared, stability, persistent = [], None, set()
    if evidence is not None:
        compared, stability, persistent = evidence.candidates, evidence.stability, {k for k, _ in evidence.levels}
    measured = dict(zip(compared, stability or []))
    parts = [split_of(tree.clusters, k) for k in numbers]
    return {
        "n_clusters": list(numbers),
        "stability": [measured.get(k, math.nan) for k in numbers],
        "persistent": [k in persistent for k in numbers],
        "p_value": [split.p_value for split in splits],
        "split": [parent for parent, _ in parts],
        "into": [into for _, into in parts],
    }


# ---------------------------------------------------------------------------------------------------------- the method


class LevelsMixin:
    """Mixin for ``levels_`` and ``at``, of a model with memberships and the graph of its rows."""

    labels_: Array
    memberships_: Array
    graph_: AffinityGraph
    n_clusters_: int
    evidence_: NClustersChoice | None
    _state: FittedState
    _keep: Callable[..., None]
    _mean_memberships: Callable[[Any, Array], Array]

    def at(self, n_clusters: int) -> Self:
        """Return the model at another level of its tree of clusters, without a new fit.

        Clusters of coarser levels are unions of clusters of the fit, and those of finer ones their parts; ``levels_``
        says how likely a split is by chance. Clusters are numbered in the order of their first rows.

        Parameters
        ----------
        n_clusters : int
            The number of clusters, from 1 to the largest one in ``levels_``: four times the number of the fit, or 12 if
            that is more, and fewer if groups were smaller than 8 rows.

        Returns
        -------
        model : ManifoldClustering
            A fitted copy with the labels, memberships and predictions of the level. This model stays as it is.

        Notes
        -----
        Memberships of a cluster are the sum of those of its parts at any finer level. Labels are nested: a row between
        two clusters of the fit stays where it is, though its membership in another union may be larger. Outliers
        stay outliers. Bounds on sizes, known labels and hard must-links hold at the level of the fit; so do candidates,
        consensus and ``row_agreement_``, which stay those of the fit. A model at another level takes no ``update``.

        Examples
        --------
        >>> from fiedler import ManifoldClustering
        >>> from fiedler.datasets import blobs
        >>> X, y = blobs(300, n_features=4, n_clusters=3, random_state=0)
        >>> model = ManifoldClustering(3, random_state=0).fit(X)
        >>> coarser = model.at(2)
        >>> coarser.memberships_.shape, len(set(coarser.predict(X).tolist()))
        ((300, 2), 2)
        """
        check_is_fitted(self)
        n_clusters = check_int(n_clusters, "n_clusters", minimum=1)
        base, model = self._fitted_level(), copy(self)
        if n_clusters == self.n_clusters_:
            return model
        tree, memo = self._tree(), self._state.memo
        if n_clusters > tree.finest:
            largest = "one level, of 1 cluster" if tree.finest == 1 else f"levels of 1 to {tree.finest} clusters"
            problem = f"there is no level of {n_clusters} clusters; the model has {largest}"
            hint = "choose one of them, or fit a model with this number"
            raise InputError(problem, hint, code="no_such_level", parameter="n_clusters", value=n_clusters)
        is_fit = n_clusters == tree.fitted
        level = base if is_fit else tree.level(n_clusters)
        model.labels_ = asarray_like(level.labels, base.labels, dtype=base.labels.dtype)
        model.memberships_, model.n_clusters_ = level.memberships, n_clusters
        model._keep(fitted=None if is_fit else base, profiles=base.profiles if is_fit else None)
        model._state.memo.update(memo)
        return model

    def _predict_at_level(self, X: Any) -> Array:
        """Return the clusters of new points: from the most probable cluster of the fit along the splits of the tree."""
        tree = self._tree()
        reached = tree.place(self._mean_memberships(X, tree.memberships), self.n_clusters_)
        return asarray_like(reached, self.memberships_, dtype=namespace(self.memberships_).int64)

    def _level_sentence(self) -> str | None:
        """Return what a report of a model at another level begins with."""
        if self._state.fitted is None:
            return None
        tree = self._tree()
        return (
            f"A level of {self.n_clusters_}, of a fit with {tree.fitted} clusters. "
            "The reasons are those of the fit, the tables of clusters and of rows those of the level."
        )

    @property
    def levels_(self) -> dict[str, list[Any]] | None:
        """The levels, one column per key."""
        check_is_fitted(self)
        if self._state.landmarks is not None:
            return None
        tree, memo = self._tree(), self._state.memo
        if "splits" not in memo:
            memo["splits"] = find_splits(self._graph_of_nodes(), tree, self._state.copies)
        return levels_table(tree, memo["splits"], self.evidence_)

    def _fitted_level(self) -> FittedLevel:
        fitted = self._state.fitted
        return FittedLevel(self.labels_, self.memberships_, self._state.profiles) if fitted is None else fitted

    def _graph_of_nodes(self) -> AffinityGraph:
        return self.graph_ if self._state.graph is None else self._state.graph

    def _tree(self) -> LevelTree:
        """Return the tree, built when it is first needed."""
        if self._state.landmarks is not None:
            problem = "a model that was fitted in blocks has no levels"
            hint = "fit one to rows in memory, for example to a sample, or another one with this number of clusters"
            raise InputError(problem, hint, code="no_levels")
        memo = self._state.memo
        if "tree" not in memo:
            memo["tree"] = build_tree(self._graph_of_nodes(), self._fitted_level(), self._state)
        return cast("LevelTree", memo["tree"])
