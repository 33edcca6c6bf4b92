"""Moves of nodes between communities on a graph in blocks, see :mod:`fiedler.graph.moves`.

In every round, each block moves nodes of its own, by the labels that the round before left in its halo, and by the
volumes of all communities, which the client adds up.
"""

from __future__ import annotations

import numpy as np

from ..core.backend import Array, eps
from ..core.progress import stage
from ..core.sparse import row_indices
from ..graph.moves import WeightedEdges
from .graph import BlockGraph, CoarseGraphs, read_groups
from .workspace import Workspace

MAX_ROUNDS = 20
MAX_ROUNDS_WITHOUT_GAIN = 2
MIN_GAIN = 1e-4  # of modularity, that is worth another round over all blocks


def project_block(
    workspace: Workspace, block: int, *, graph: str, groups: str, starts: np.ndarray, labels: str, size: int
) -> dict[str, Array]:
    """Give every node the label of its group."""
    rows = BlockGraph.read(workspace, graph, block, size)
    of_groups = workspace.read_one(labels, 0, "labels")
    own = of_groups[read_groups(workspace, block, groups, starts)]
    return rows.share(own) | _volumes(own, rows, int(of_groups.max()) + 1)


def move_block(
    workspace: Workspace,
    block: int,
    *,
    graph: str,
    size: int,
    previous: str,
    volumes: np.ndarray,
    gamma: float,
    seed: int,
) -> dict[str, Array]:
    """Move nodes of a block, and note the weight that left their communities before."""
    rows = BlockGraph.read(workspace, graph, block, size)
    labels = rows.receive(workspace, previous).astype(np.int64)
    edges = _edges(rows, float(volumes.sum()))
    found = edges.boundary_gains(labels, volumes, gamma)
    rounding = 16 * eps(edges.degrees) * float(edges.degrees.mean()) if rows.n else 0.0
    moved = edges.take_step(labels, found, rounding, np.random.RandomState([seed, block]))[: rows.n]
    moved = moved.astype(np.int32)
    return rows.share(moved) | _volumes(moved, rows, len(volumes)) | {"crossing": np.array(found.crossing)}


def _edges(rows: BlockGraph, total: float) -> WeightedEdges:
    """Return the edges of a block; its columns include the halo."""
    degrees = rows.degrees.astype(rows.weights.dtype)
    inside = float(rows.degrees.sum())
    return WeightedEdges(
        row_indices(rows.weights), rows.weights.indices, rows.weights.data, degrees, degrees, total, inside, False
    )


def _volumes(labels: np.ndarray, rows: BlockGraph, k: int) -> dict[str, Array]:
    return {"volumes": np.bincount(labels, rows.degrees, minlength=k)}


def refine(coarse: CoarseGraphs, labels: np.ndarray, size: int, gamma: float | None, random_state: int) -> str:
    """Give all nodes the labels of their groups and, unless ``gamma`` is None, move them until few would gain.

    Parameters
    ----------
    coarse : CoarseGraphs
    labels : ndarray of shape (n_groups,)
        The communities of the groups.
    size : int
        The number of neighbours of the graph on which nodes move.
    gamma : float or None
        The resolution.
    random_state : int

    Returns
    -------
    str
        The step with the labels.
    """
    graph, run = coarse.graph, coarse.graph.cells.rows.run
    n_blocks, options = graph.cells.n_blocks, {"graph": graph.step, "size": size}
    run.once("coarse-labels", lambda: {"labels": labels.astype(np.int32)})
    places = {"groups": coarse.groups, "starts": coarse.starts, "labels": "coarse-labels"}
    run.map("moves-00", project_block, n_blocks, **places, **options)
    if gamma is None or not coarse.is_coarse:
        return "moves-00"
    current, best_step, best, n_without_gain = "moves-00", "moves-00", -np.inf, 0
    with stage("moving nodes", MAX_ROUNDS, at_most=True) as tick:
        for number in range(1, MAX_ROUNDS + 1):
            volumes, following = run.total(current, "volumes", n_blocks), f"moves-{number:02d}"
            state = {"previous": current, "volumes": volumes, "gamma": gamma, "seed": random_state + number}
            run.map(following, move_block, n_blocks, **state, **options)
            reached = modularity(float(run.total(following, "crossing", n_blocks)), volumes, gamma)
            if reached > best + MIN_GAIN:
                best_step, best, n_without_gain = current, reached, 0
            else:
                n_without_gain += 1
            tick()
            if n_without_gain >= MAX_ROUNDS_WITHOUT_GAIN:
                break
            current = following
    return best_step


def modularity(crossing: float, volumes: np.ndarray, gamma: float) -> float:
    """Return Q from the weight between communities and their volumes."""
    total = float(volumes.sum())
    return (total - crossing) / total - gamma * float(np.sum((volumes / total) ** 2))
