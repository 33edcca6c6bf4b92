"""A graph of nearest neighbours in row blocks, and the exchange of values between them.

A block has the rows of the weight matrix that belong to its nodes. Its columns are its own nodes, followed by its
*halo*, the nodes of other blocks that are joined to them, by number; so they are int32 whatever the number of nodes.
Weights are symmetric: the nodes of a block that another one has in its halo are those that are joined to it, and the
block writes the values of these for the other one, besides all of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array, eps, take_rows
from ..core.fitting import stage
from ..core.sparse import from_coo, row_indices
from ..graph.affinity import AffinityGraph
from ..graph.coarsen import WeightedEdges, coarsen
from ..graph.kernels import KernelConstants, KernelName, RowPairs, edge_weights
from ..graph.recipes import SYMMETRIZE, SymmetrizeRule
from .neighbors import NO_NODE, search_neighbors
from .partition import CellBlocks, Layout, select_values, stack
from .store import Workspace

OWN = "own"  # the array with the values of all nodes of a block


# ----------------------------------------------------------------------------------------------------- in the workers


@dataclass(frozen=True, eq=False)
class BlockGraph:
    """The rows of one block of the weight matrix.

    Attributes
    ----------
    block : int
    weights : csr_array of shape (n, n + n_halo)
    neighbors : list of int
        The blocks to which it is joined, by number.
    exports : list of ndarray
        For each of these, the own nodes that it has in its halo.
    """

    block: int
    weights: sp.csr_array
    neighbors: list[int]
    exports: list[np.ndarray]

    @classmethod
    def read(cls, workspace: Workspace, step: str, block: int, size: int) -> BlockGraph:
        """Read a block of the graph of ``size`` neighbours."""
        indptr, columns, weights, neighbors, n_halo = workspace.read(
            step, block, "indptr", "columns", f"weights {size}", "neighbors", "n_halo"
        )
        n = len(indptr) - 1
        exports = workspace.read(step, block, *(f"export {other}" for other in neighbors))
        matrix = sp.csr_array((weights, columns, indptr), shape=(n, n + int(n_halo)))
        return cls(block, matrix, [int(other) for other in neighbors], list(exports))

    @property
    def n(self) -> int:
        """The number of own nodes."""
        return self.weights.shape[0]

    @cached_property
    def degrees(self) -> np.ndarray:
        """The sums of the weights of the own nodes, in double precision."""
        return np.asarray(self.weights.sum(axis=1, dtype=np.float64)).ravel()

    def share(self, values: Array) -> dict[str, Array]:
        """Return the values of the own nodes, and for every joined block those that it needs, as arrays by name."""
        return {OWN: values} | {f"for {other}": values[rows] for other, rows in zip(self.neighbors, self.exports)}

    def receive(self, workspace: Workspace, step: str, own: Array | None = None) -> Array:
        """Return the values of the own nodes and of the halo, as `share` of all blocks has written them in a step."""
        own = workspace.read_one(step, self.block, OWN) if own is None else own
        halo = [workspace.read_one(step, other, f"for {self.block}") for other in self.neighbors]
        return np.concatenate([own, *halo])


class WeightRule(NamedTuple):
    """How the lists of neighbours become weights, see :class:`fiedler.KNNGraph`.

    Attributes
    ----------
    weight : {'binary', 'heat', 'local'}
        The kernel.
    symmetrize : {'union', 'mutual', 'mean'}
    bandwidth : float, optional
        Of 'heat'.
    """

    weight: KernelName = "local"
    symmetrize: SymmetrizeRule = "mean"
    bandwidth: float | None = None


class DirectedEdges(NamedTuple):
    """Edges that end in a block, from the lists of its rows and of other blocks; those found from both sides twice.

    Attributes
    ----------
    own : ndarray of shape (e,)
        The node of the block, by its place in it.
    other : ndarray of shape (e,)
        The other node.
    lengths : ndarray of shape (e,)
    ranks : ndarray of shape (e,)
        The place in the list of neighbours in which it was found, from 0.
    scale_products : ndarray of shape (e,)
        The product of the scales of both nodes.
    """

    own: np.ndarray
    other: np.ndarray
    lengths: np.ndarray
    ranks: np.ndarray
    scale_products: np.ndarray

    @classmethod
    def read(cls, workspace: Workspace, block: int, layout: Layout, neighbors: str) -> DirectedEdges:
        """Read the edges of a block from the lists of neighbours."""
        nodes, distances, scales, targets = workspace.read(neighbors, block, "nodes", "distances", "scales", "targets")
        rows, ranks = np.nonzero(nodes != NO_NODE)
        found, lengths = nodes[rows, ranks].astype(np.int64), distances[rows, ranks]
        home, first = layout.blocks_of(found), layout.starts[block]
        here = home == block
        local = (lengths[here], ranks[here], scales[rows[here]] * scales[found[here] - first])
        parts = [(rows[here], found[here], *local), (found[here] - first, rows[here] + first, *local)]
        for other in targets:  # neighbours in other blocks
            there, scales_there = home == other, workspace.read_one(neighbors, other, "scales")
            products = scales[rows[there]] * scales_there[found[there] - layout.starts[other]]
            parts.append((rows[there], found[there], lengths[there], ranks[there], products))
        for other in range(layout.n_blocks):  # rows of other blocks whose neighbours are here
            if other == block or block not in workspace.read_one(neighbors, other, "targets"):
                continue
            names = (f"to {block}", f"from {block}", f"length {block}", f"rank {block}", "scales")
            own, row, length, rank, scales_there = workspace.read(neighbors, other, *names)
            products = scales[own] * scales_there[row]
            parts.append((own.astype(np.int64), row + layout.starts[other], length, rank, products))
        return cls(*(np.concatenate(column) for column in zip(*parts)))

    def weights(self, rule: WeightRule) -> np.ndarray:
        """Compute the weight of each edge by the kernel."""
        every, ones = slice(None), np.ones_like(self.lengths)
        pairs = RowPairs(ones, ones, self.lengths, every, every, self.scale_products, ones)
        return edge_weights(rule.weight, pairs, KernelConstants(bandwidth=rule.bandwidth))


def weigh_block(
    workspace: Workspace, block: int, *, layout: Layout, neighbors: str, sizes: tuple[int, ...], rule: WeightRule
) -> dict[str, Array]:
    """Compute the rows of a block of the weight matrix.

    ``sizes`` are the numbers of neighbours of nested graphs, the largest last; their weights stand side by side, 0
    where a smaller graph has no edge.
    """
    edges = DirectedEdges.read(workspace, block, layout, neighbors)
    order = np.lexsort((edges.other, edges.own))
    own, other, ranks, weights = (part[order] for part in (edges.own, edges.other, edges.ranks, edges.weights(rule)))
    is_first = np.ones(len(own), dtype=bool)
    is_first[1:] = (own[1:] != own[:-1]) | (other[1:] != other[:-1])
    heads = np.flatnonzero(is_first)
    by_size = [_undirected(weights, ranks < size, heads, rule.symmetrize) for size in sizes]
    kept = by_size[-1] > 0
    own, other, by_size = own[heads][kept], other[heads][kept], [summed[kept] for summed in by_size]
    arrays = _number_columns(own, other, block, layout)
    return arrays | {f"weights {size}": summed for size, summed in zip(sizes, by_size)}


def _undirected(weights: np.ndarray, is_edge: np.ndarray, heads: np.ndarray, symmetrize: str) -> np.ndarray:
    """Return the weight of each pair of nodes from the edges of one or both directions, which begin at ``heads``."""
    if not len(heads):
        return weights
    sums = np.add.reduceat(np.where(is_edge, weights, 0), heads)
    sides = np.add.reduceat(is_edge.astype(weights.dtype), heads)
    return (sums / np.maximum(sides, 1) * SYMMETRIZE[symmetrize](sides)).astype(weights.dtype)


def _number_columns(own: np.ndarray, other: np.ndarray, block: int, layout: Layout) -> dict[str, Array]:
    """Number the columns of a block of the weight matrix, and note which own nodes other blocks have in their halo."""
    n, start, home = layout.size(block), layout.starts[block], layout.blocks_of(other)
    outside = home != block
    halo, position = np.unique(other[outside], return_inverse=True)
    columns = np.empty(len(other), dtype=np.int32)
    columns[~outside], columns[outside] = other[~outside] - start, n + position
    neighbors = np.unique(home[outside])
    exports = {f"export {target}": np.unique(own[home == target]).astype(np.int32) for target in neighbors}
    indptr = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=n))])
    return {**exports, "indptr": indptr, "columns": columns, "neighbors": neighbors, "n_halo": np.array(len(halo))}


def group_block(
    workspace: Workspace, block: int, *, graph: str, size: int, max_share: float, random_state: int
) -> dict[str, Array]:
    """Group the nodes of a block to a share of their number, by the edges inside it."""
    rows = BlockGraph.read(workspace, graph, block, size)
    groups = np.arange(rows.n)
    if max_share < 1 and rows.n > 1:
        inner = sp.csr_array(rows.weights[:, : rows.n])
        crossing = rows.degrees - np.asarray(inner.sum(axis=1, dtype=np.float64)).ravel()
        local = AffinityGraph(inner, loops=np.maximum(crossing, 0).astype(inner.dtype))
        rng = np.random.RandomState([random_state, block])
        groups = coarsen(local, max(1, int(max_share * rows.n)), rng).supernodes
    return rows.share(groups.astype(np.int32)) | {"n_groups": np.array(groups.max() + 1 if rows.n else 0)}


def contract_block(
    workspace: Workspace, block: int, *, graph: str, groups: str, starts: np.ndarray, sizes: tuple[int, ...]
) -> dict[str, Array]:
    """Sum the weights between the groups of nodes, of the rows of a block."""
    arrays: dict[str, Array] = {}
    for size in sizes:
        rows = BlockGraph.read(workspace, graph, block, size)
        own = workspace.read_one(groups, block, OWN).astype(np.int64) + starts[block]
        halo = [workspace.read_one(groups, other, f"for {block}") + starts[other] for other in rows.neighbors]
        nodes = np.concatenate([own, *halo]) if halo else own
        entries = sp.coo_array(rows.weights)
        summed = sp.coo_array(
            (entries.data, (nodes[entries.row] - starts[block], nodes[entries.col])),
            shape=(int(starts[block + 1] - starts[block]), int(starts[-1])),
        ).tocsr()
        arrays[f"weights {size}"] = summed
    return arrays


def mean_block(
    workspace: Workspace, block: int, *, layout: Layout, groups: str, starts: np.ndarray
) -> dict[str, Array]:
    """Return the mean of the rows of each group; of sparse rows the first, since a mean is not sparse."""
    rows, own = layout.read_rows(workspace, block), workspace.read_one(groups, block, OWN)
    n_groups = int(starts[block + 1] - starts[block])
    order, counts = np.argsort(own, kind="stable"), np.bincount(own, minlength=n_groups)
    firsts = np.cumsum(counts) - counts
    if sp.issparse(rows):
        return {"means": take_rows(rows, order[firsts])}
    members = (np.ones(len(own), dtype=rows.dtype), order, np.append(firsts, len(own)))
    sums = sp.csr_array(members, shape=(n_groups, len(own))) @ rows
    return {"means": sums / counts[:, None].astype(rows.dtype)}


SELF_TUNED = WeightRule()


# ------------------------------------------------------------------------------------------------------ in the client


@dataclass(frozen=True, eq=False)
class GraphBlocks:
    """Nested self-tuned graphs of all rows, in blocks, and their groups of nodes.

    Attributes
    ----------
    cells : CellBlocks
    neighbors : str
        The step with the lists of neighbours.
    step : str
        The step with the graph.
    sizes : tuple of int
        The numbers of neighbours of the graphs, the largest last.
    """

    cells: CellBlocks
    neighbors: str
    step: str
    sizes: tuple[int, ...]

    @classmethod
    def build(
        cls,
        cells: CellBlocks,
        sizes: tuple[int, ...],
        prefix: str,
        rule: WeightRule = SELF_TUNED,
        metric: str = "euclidean",
    ) -> GraphBlocks:
        """Search neighbours and compute the weights, by default those of the self-tuned graph."""
        neighbors, step = search_neighbors(cells, sizes[-1], prefix, metric), f"{prefix}graph"
        options = {"layout": cells.layout, "neighbors": neighbors, "sizes": sizes, "rule": rule}
        cells.rows.run.map(step, weigh_block, cells.n_blocks, **options)
        return cls(cells, neighbors, step, sizes)

    def select(self, nodes: np.ndarray, source: str, step: str) -> Array:
        """Return the values that a step has written for some nodes, in a step of its own; see `select_values`."""
        cells = self.cells
        return select_values(cells.rows.run, step, source, (OWN,), nodes, cells.layout.starts)[0]

    def contract(self, max_nodes: int, prefix: str, random_state: int) -> CoarseGraphs:
        """Group nodes until about ``max_nodes`` groups are left, each within a block, and contract the graphs."""
        run, n_blocks = self.cells.rows.run, self.cells.n_blocks
        share = max_nodes / self.cells.layout.starts[-1]
        groups, contraction = f"{prefix}groups", f"{prefix}contraction"
        run.map(
            groups,
            group_block,
            n_blocks,
            graph=self.step,
            size=self.sizes[-1],
            max_share=min(1.0, share),
            random_state=random_state,
        )
        counts = [int(run.workspace.read_one(groups, block, "n_groups")) for block in range(n_blocks)]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        run.map(contraction, contract_block, n_blocks, graph=self.step, groups=groups, starts=starts, sizes=self.sizes)
        return CoarseGraphs(self, groups, contraction, starts)


@dataclass(frozen=True, eq=False)
class CoarseGraphs:
    """Contracted graphs, small enough for one machine.

    Attributes
    ----------
    graph : GraphBlocks
        The graphs of all rows.
    groups : str
        The step with the group of each node.
    contraction : str
        The step with the contracted weights.
    starts : ndarray of shape (n_blocks + 1,)
        The first group of each block, and their number.
    """

    graph: GraphBlocks
    groups: str
    contraction: str
    starts: np.ndarray

    @property
    def is_coarse(self) -> bool:
        """Whether there are fewer groups than rows."""
        return bool(self.starts[-1] < self.graph.cells.layout.starts[-1])

    def affinity(self, size: int) -> AffinityGraph:
        """Return the contracted graph of ``size`` neighbours."""
        workspace = self.graph.cells.rows.run.workspace
        blocks = [
            workspace.read_one(self.contraction, block, f"weights {size}") for block in range(len(self.starts) - 1)
        ]
        weights = sp.csr_array(sp.vstack(blocks, format="csr"))
        weights = sp.csr_array(0.5 * (weights + weights.T))  # the two sides were summed in another order
        loops = weights.diagonal()
        entries = sp.coo_array(weights)
        between = (entries.row != entries.col) & (entries.data > 0)
        inner = from_coo(entries.row[between], entries.col[between], entries.data[between], weights.shape)
        return AffinityGraph(inner, loops=loops if loops.any() else None)

    def connected(self, size: int) -> AffinityGraph:
        """Return the contracted graph, whose components are joined at the closest means of their nodes."""
        graph, cells = self.affinity(size), self.graph.cells
        if graph.components()[0] == 1:
            return graph
        run, options = cells.rows.run, {"layout": cells.layout, "groups": self.groups, "starts": self.starts}
        run.map("means", mean_block, cells.n_blocks, **options)
        means = stack([run.workspace.read_one("means", block, "means") for block in range(cells.n_blocks)])
        return graph._connect(means, "mst")

    def groups_of(self, nodes: np.ndarray) -> np.ndarray:
        """Return the groups of some nodes."""
        groups = self.graph.select(nodes, self.groups, f"{self.groups}-sampled")
        return self.starts[self.graph.cells.layout.blocks_of(nodes)] + groups


def read_groups(workspace: Workspace, block: int, groups: str, starts: Any) -> np.ndarray:
    """Return the groups of the nodes of a block, by their numbers among those of all blocks."""
    return workspace.read_one(groups, block, OWN).astype(np.int64) + int(starts[block])


# ---------------------------------------------------------------------------------------------------------------------
# Moves of nodes between communities on a graph in blocks, see :mod:`fiedler.graph.coarsen`.
#
# In every round, each block moves nodes of its own, by the labels that the round before left in its halo, and by the
# volumes of all communities, which the client adds up.

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


# ---------------------------------------------------------------------------------------------------------------------
# Memberships by a random walk on a graph in blocks, see :mod:`fiedler.manifold.memberships`.
#
# The memberships are the solution of F = (1-γ) P + γ D⁻¹W F. The eigenvalues of γ D⁻¹W are real and between -γ and γ,
# so Chebyshev's semi-iteration
#
#     F_{t+1} = ω_{t+1} ((1-γ) P + γ D⁻¹W F_t - F_{t-1}) + F_{t-1},
#     ω_1 = 1,      ω_2 = 2 / (2 - γ²),      ω_{t+1} = 1 / (1 - γ² ω_t / 4),
#
# [Golub & Varga 1961] reduces the error by the factor γ / (1 + √(1-γ²)) in every step, 0.41 for γ = 0.7, without sums
# over all blocks. One step is one task per block.

TOLERANCE = 1e-5  # by which errors are reduced


def walk(graph: GraphBlocks, start: str, gamma: float, prefix: str, *, tol: float = TOLERANCE) -> str:
    """Return the step with the memberships from the start of the walk, which another step has written.

    Parameters
    ----------
    graph : GraphBlocks
    start : str
        The step with P.
    gamma : float
        γ, the probability of every step of the walk.
    prefix : str
        Of the names of the steps.
    tol : float
        The factor by which errors are reduced.
    """
    if gamma == 0:
        return start
    run, n_steps = graph.cells.rows.run, n_iterations(gamma, tol)
    previous, current, omega = start, start, 1.0
    with stage("walking", n_steps) as tick:
        for number in range(1, n_steps + 1):
            following = f"{prefix}walk-{number:03d}"
            options = {"graph": graph.step, "size": graph.sizes[-1], "gamma": gamma, "omega": omega}
            steps = {"start": start, "current": current, "previous": previous}
            run.map(following, step_block, graph.cells.n_blocks, **options, **steps)
            if previous not in (start, current):
                run.drop(previous)
            previous, current = current, following
            omega = 2 / (2 - gamma**2) if number == 1 else 1 / (1 - gamma**2 * omega / 4)
            tick()
    if previous != start:
        run.drop(previous)
    return current


def n_iterations(gamma: float, tol: float = TOLERANCE) -> int:
    """Return the number of iterations that reduce errors by a factor.

    Examples
    --------
    >>> n_iterations(0.7)
    14
    """
    rate = gamma / (1 + math.sqrt(1 - gamma**2))
    return math.ceil(math.log(tol / 2) / math.log(rate))


def step_block(
    workspace: Workspace,
    block: int,
    *,
    graph: str,
    size: int,
    gamma: float,
    omega: float,
    start: str,
    current: str,
    previous: str,
) -> dict[str, Array]:
    """Make one step of the iteration on the nodes of a block."""
    rows = BlockGraph.read(workspace, graph, block, size)
    P = workspace.read_one(start, block, OWN)
    before = workspace.read_one(previous, block, OWN)
    degrees = rows.degrees.astype(P.dtype)
    walked = rows.weights @ rows.receive(workspace, current)
    walked *= (gamma / np.where(degrees > 0, degrees, 1))[:, None]
    walked += np.where(degrees > 0, 1 - gamma, 1.0).astype(P.dtype)[:, None] * P  # a node without edges keeps its row
    if omega != 1.0:
        walked = omega * (walked - before) + before
    return rows.share(walked.astype(P.dtype, copy=False))
