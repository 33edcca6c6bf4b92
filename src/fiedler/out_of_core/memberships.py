"""Memberships of the nodes of all blocks, from the partition and the votes to the blocks of the input.

They are the ends of walks that start with the labels H of a partition and, where methods and views were compared, the
votes V of the nearest sampled row, see :mod:`fiedler.manifold.memberships`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from .._validation import check_int
from ..core.arrays import Array, normalize_row_sums, one_hot, take_rows
from ..errors import InputError
from ..graph.voronoi import nearest_centers
from ..manifold.candidates import RIDGE, Candidate, PartitionScorer
from ..manifold.estimator import ManifoldClustering
from ..manifold.memberships import WALK
from ..mixture.statistics import Statistics, group_statistics
from .graph import OWN, BlockGraph, CoarseGraphs, GraphBlocks, read_groups, walk
from .partition import Layout, RowBlocks, select_values, stack
from .run import Run
from .store import Workspace

# ---------------------------------------------------------------------------------------------------------------------
# Statistics of Gaussian components in files, and their sums over blocks.

NAMES = ("counts", "sums", "second_moments", "origin")


def statistics_arrays(statistics: Statistics) -> dict[str, Array]:
    """Return statistics as arrays by name."""
    return {name: getattr(statistics, name) for name in NAMES}


def read_statistics(workspace: Workspace, step: str, block: int = 0) -> Statistics:
    """Read the statistics of a block."""
    return Statistics(*workspace.read(step, block, *NAMES))


def sum_statistics(run: Run, step: str, blocks: Iterable[int]) -> Statistics:
    """Add the statistics of blocks, always in the same order."""
    first, *others = blocks
    total = read_statistics(run.workspace, step, first)
    for block in others:
        total = total + read_statistics(run.workspace, step, block)
    return total


# ---------------------------------------------------------------------------------------------------------------------
# Candidate partitions of the groups of nodes of all blocks: their scores, and their place in files.


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockScorer(PartitionScorer):
    """Scores partitions of groups of nodes, with sums over the rows of all blocks.

    Attributes
    ----------
    coarse : CoarseGraphs
    estimates_mixtures : bool
        Whether mixtures can be estimated from the rows.
    """

    coarse: CoarseGraphs
    estimates_mixtures: bool

    @property
    def rows(self) -> RowBlocks:
        """The rows in the blocks of the input."""
        return self.coarse.graph.cells.rows

    @property
    def has_rows(self) -> bool:
        """Whether mixtures can be estimated."""
        return self.estimates_mixtures

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return self.rows.n_features

    @cached_property
    def origin(self) -> Array:
        """The mean of the rows, representable in their precision."""
        return self.rows.moments[0].astype(self.rows.dtype)

    @cached_property
    def ridge(self) -> float:
        """The ridge on covariances, in the unit of X²."""
        return RIDGE * float(self.rows.moments[1].mean())

    def icl(self, labels: np.ndarray) -> float:
        """Return NaN: only partitions that compete by their likelihood are worth a pass over all rows."""
        return math.nan

    def likelihood(self, labels: np.ndarray) -> float:
        """Return the integrated completed likelihood of a partition per row."""
        return super().icl(labels)

    @cached_property
    def _numbers(self) -> Iterator[int]:
        """The numbers of the sums, which are the same if a fit goes on."""
        return count()

    def group_statistics(self, groups: np.ndarray) -> Statistics:
        """Return the sums of the rows of all nodes of each group."""
        run, cells, step = self.rows.run, self.coarse.graph.cells, f"sums/{next(self._numbers):02d}"
        run.once(f"{step}-groups", lambda: {"groups": groups})

        def total() -> dict[str, Array]:
            run.map(
                f"{step}-blocks",
                sum_block,
                cells.n_blocks,
                layout=cells.layout,
                groups=f"{step}-groups",
                origin=self.origin,
                supernodes=self.coarse.groups,
                starts=self.coarse.starts,
            )
            return statistics_arrays(sum_statistics(run, f"{step}-blocks", range(cells.n_blocks)))

        run.once(step, total)
        run.drop(f"{step}-blocks")
        return read_statistics(run.workspace, step)


def sum_block(
    workspace: Workspace,
    block: int,
    *,
    layout: Layout,
    groups: str,
    origin: np.ndarray,
    supernodes: str,
    starts: np.ndarray,
) -> dict[str, Array]:
    """Sum the rows of a block by the groups of their supernodes."""
    of_supernodes = workspace.read_one(groups, 0, "groups")
    own = of_supernodes[read_groups(workspace, block, supernodes, starts)]
    rows = layout.read_rows(workspace, block)
    return statistics_arrays(group_statistics(rows, own, int(of_supernodes.max()) + 1, origin=origin))


def pack_candidates(candidates: Sequence[Candidate]) -> dict[str, Array]:
    """Return candidates as arrays by name."""
    records = [{name: value for name, value in asdict(one).items() if name != "labels"} for one in candidates]
    labels = np.stack([one.labels.astype(np.int32) for one in candidates])
    return {"labels": labels, "records": np.array(json.dumps(records))}


def unpack_candidates(labels: np.ndarray, records: np.ndarray) -> list[Candidate]:
    """Return candidates from the arrays of `pack_candidates`."""
    return [Candidate(**record, labels=row.astype(np.int64)) for record, row in zip(json.loads(str(records)), labels)]


# ---------------------------------------------------------------------------------------------------------------------

START, RESULT = "start", "result"


def compute_memberships(
    graph: GraphBlocks, labels: str | None, compared: str | None, consensus: float, n_clusters: int
) -> str:
    """Compute the memberships of all rows; return the step that has them in the blocks of the input.

    Its arrays are ``memberships``, ``labels`` and, after a comparison, ``agreement``. Where a cluster would lose its
    last row, walks are shorter.

    Parameters
    ----------
    graph : GraphBlocks
        The graph of the chosen view.
    labels : str or None
        The step with the labels of the nodes; None takes those of the nearest sampled rows.
    compared : str or None
        The step with the result of the comparison.
    consensus : float
        s, the weight of the labels against the votes.
    n_clusters : int
    """
    cells, run = graph.cells, graph.cells.rows.run
    run.map(
        START,
        start_block,
        cells.n_blocks,
        layout=cells.layout,
        graph=graph.step,
        size=graph.sizes[-1],
        labels=labels,
        compared=compared,
        consensus=float(consensus),
        n_clusters=n_clusters,
    )
    n_found = _count_clusters(graph, START)
    for gamma in (WALK, WALK / 2, WALK / 4, 0.0):
        ends = f"walk-{gamma:g}/ends"
        walked = walk(graph, START, gamma, f"walk-{gamma:g}/")
        run.map(ends, end_block, cells.n_blocks, layout=cells.layout, walked=walked, has_votes=compared is not None)
        if _count_clusters(graph, ends) >= n_found:
            break
    names = ("memberships", "labels", *(["agreement"] if compared is not None else []))
    run.map(RESULT, collect_block, cells.rows.blocks, layout=cells.layout, ends=ends, names=names)
    return RESULT


def _count_clusters(graph: GraphBlocks, step: str) -> int:
    """Return the number of clusters that have rows."""
    return int(np.count_nonzero(graph.cells.rows.run.total(step, "counts", graph.cells.n_blocks)))


def start_block(
    workspace: Workspace,
    block: int,
    *,
    layout: Layout,
    graph: str,
    size: int,
    labels: str | None,
    compared: str | None,
    consensus: float,
    n_clusters: int,
) -> dict[str, Array]:
    """Return s H + (1-s) V of the nodes of a block."""
    edges = BlockGraph.read(workspace, graph, block, size)
    like = np.zeros(0, dtype=edges.weights.dtype)
    own = None if labels is None else workspace.read_one(labels, block, OWN).astype(np.int64)
    if compared is None:
        assert own is not None
        return edges.share(one_hot(own, n_clusters, like)) | _counts(own, n_clusters)
    sampled, votes, chosen = workspace.read(compared, 0, "sampled", "votes", "of_chosen")
    rows = layout.read_rows(workspace, block)
    nearest = nearest_centers(rows, sampled) if rows.shape[0] else np.zeros(0, dtype=np.int64)
    own = chosen[nearest].astype(np.int64) if own is None else own
    shares = consensus * one_hot(own, n_clusters, like) + (1 - consensus) * votes[nearest]
    return edges.share(shares.astype(like.dtype)) | {"votes": votes[nearest]} | _counts(own, n_clusters)


def _counts(labels: np.ndarray, n_clusters: int) -> dict[str, Array]:
    return {"counts": np.bincount(labels, minlength=n_clusters)}


def end_block(workspace: Workspace, block: int, *, layout: Layout, walked: str, has_votes: bool) -> dict[str, Array]:
    """Return memberships, labels and agreement of the nodes of a block, divided by blocks of the input."""
    Q = normalize_row_sums(np.maximum(workspace.read_one(walked, block, OWN), 0))
    labels = Q.argmax(axis=1)
    values = {"memberships": Q, "labels": labels.astype(np.int64)}
    if has_votes:
        votes = workspace.read_one(START, block, "votes")
        values["agreement"] = votes[np.arange(len(labels)), labels]
    divided = layout.divide_by_origin(values, block)
    return divided | _counts(labels, Q.shape[1])


def collect_block(
    workspace: Workspace, block: int, *, layout: Layout, ends: str, names: tuple[str, ...]
) -> dict[str, Array]:
    """Collect the results of the rows of a block of the input, in their order."""
    by_home = np.argsort(workspace.read_one(layout.step, block, "home"), kind="stable")
    places = np.empty_like(by_home)
    places[by_home] = np.arange(len(by_home))
    read = lambda name: [workspace.read_part(ends, other, name, block) for other in range(layout.n_blocks)]  # noqa: E731
    return {name: take_rows(stack(read(name)), places) for name in names}


# ---------------------------------------------------------------------------------------------------------------------
# The landmarks of a model that was fitted in blocks: which rows they are, and a model of their own for reports.

MIN_CLUSTER_LANDMARKS = 100  # rows of a cluster that are landmarks, if it has so many; fewer of many clusters


# ---------------------------------------------------------------------------------------------------------- the choice


def add_rare_clusters(rows: RowBlocks, result: str, numbers: np.ndarray, n_clusters: int) -> np.ndarray:
    """Add rows of the clusters of which a sample has few, so that new points can be placed in these.

    Parameters
    ----------
    rows : RowBlocks
    result : str
        The step with the labels of the rows.
    numbers : ndarray of shape (m,)
        The sampled rows, in ascending order.
    n_clusters : int

    Returns
    -------
    ndarray
        The numbers of all landmarks, in ascending order.
    """
    if len(numbers) == rows.n_rows:
        return numbers
    run, n_wanted = rows.run, min(MIN_CLUSTER_LANDMARKS, len(numbers) // n_clusters)
    (labels,) = select_values(run, "sampled-labels", result, ("labels",), numbers, rows.starts)
    n_lacking = np.maximum(n_wanted - np.bincount(labels, minlength=n_clusters), 0)
    if not n_lacking.any():
        return numbers
    run.map("rare-clusters", find_rare, rows.blocks, result=result, is_rare=n_lacking > 0, n_wanted=n_wanted)
    parts = [run.workspace.read("rare-clusters", block, "places", "labels") for block in rows.blocks]
    places = np.concatenate([rows.starts[block] + part for block, (part, _) in zip(rows.blocks, parts)])
    of_places = np.concatenate([part for _, part in parts])
    is_new = ~np.isin(places, numbers)
    places, of_places = places[is_new], of_places[is_new]
    added = [evenly_spaced(places[of_places == c], n_lacking[c]) for c in np.flatnonzero(n_lacking)]
    return np.union1d(numbers, np.concatenate(added))


def find_rare(workspace: Workspace, block: int, *, result: str, is_rare: np.ndarray, n_wanted: int) -> dict[str, Array]:
    """Return some rows of the rare clusters, by their places in a block, and the labels of these."""
    labels = workspace.read_one(result, block, "labels")
    rows = np.flatnonzero(is_rare[labels])
    rows = rows[np.argsort(labels[rows], kind="stable")]
    groups = np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1)
    places = np.concatenate([evenly_spaced(group, n_wanted) for group in groups])
    return {"places": places, "labels": labels[places]}


def evenly_spaced(numbers: np.ndarray, size: int) -> np.ndarray:
    """Return ``size`` of the numbers, or all if there are no more.

    Examples
    --------
    >>> evenly_spaced(np.arange(10, 20), 3)
    array([10, 14, 19])
    """
    return numbers if len(numbers) <= size else numbers[np.linspace(0, len(numbers) - 1, size).astype(np.int64)]


# ----------------------------------------------------------------------------------------------------- a model of them


class LandmarkModel(NamedTuple):
    """A model on its landmarks alone.

    Attributes
    ----------
    model : ManifoldClustering
        A copy whose ``labels_``, ``memberships_`` and ``graph_`` are those of the landmarks.
    rows : array or CSR matrix of shape (m, d)
        The landmarks, in the view of the model.
    numbers : ndarray of shape (m,)
        The numbers of the landmarks among all rows.
    """

    model: ManifoldClustering
    rows: Array
    numbers: np.ndarray


def on_landmarks(model: ManifoldClustering, max_rows: int | None = None) -> LandmarkModel:
    """Return a model on its landmarks alone, as plots and reports need it.

    They are those that were drawn at random, so that clusters have about their share of the rows.

    Parameters
    ----------
    model : ManifoldClustering
        Fitted to a Dask array.
    max_rows : int, optional
        The largest number of landmarks; of more, some are drawn, always the same ones.
    """
    landmarks = model._state.landmarks
    if landmarks is None:
        raise InputError(
            "the model was not fitted to a Dask array, so it has no landmarks", "use it as it is", code="no_landmarks"
        )
    chosen = np.flatnonzero(landmarks.is_drawn)
    if max_rows is not None and len(chosen) > check_int(max_rows, "max_rows", minimum=2):
        chosen = np.sort(np.random.RandomState(0).permutation(chosen)[:max_rows])
    sampled, rows = copy(model), take_rows(model._fit_X, chosen)
    sampled._keep(landmarks=None)
    sampled._fit_X, sampled.graph_ = rows, model._fit_recipe._build(rows)
    sampled.memberships_ = landmarks.memberships[chosen]
    sampled.labels_ = sampled.memberships_.argmax(axis=1)
    sampled.row_agreement_ = None if landmarks.agreement is None else landmarks.agreement[chosen]
    return LandmarkModel(sampled, rows, landmarks.numbers[chosen])
