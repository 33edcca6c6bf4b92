"""Memberships of the nodes of all blocks, from the partition and the votes to the blocks of the input.

They are the ends of walks that start with the labels H of a partition and, where methods and views were compared, the
votes V of the nearest sampled row, see :mod:`fiedler.clustering.memberships`.
"""

from __future__ import annotations

import numpy as np

from ..clustering.memberships import WALK
from ..core.backend import Array, one_hot
from ..core.rows import normalize_row_sums, take_rows
from ..graph.cells import nearest_centers
from .cells import Layout
from .graph import OWN, BlockGraph, GraphBlocks
from .rows import stack
from .walk import walk
from .workspace import Workspace

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
