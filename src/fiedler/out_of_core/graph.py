"""A graph of nearest neighbours in row blocks: its weights, the exchange of values, and its contraction.

A block has the rows of the weight matrix that belong to its nodes. Its columns are its own nodes, followed by its
*halo*, the nodes of other blocks that are joined to them, by number; so they are int32 whatever the number of nodes.
Weights are symmetric: the nodes of a block that another one has in its halo are those that are joined to it, and the
block writes the values of these for the other one, besides all of its own.

Groups of nodes of each block make up a graph that is small enough for one machine. A partition of it becomes one of all
nodes, which then move between communities, see :mod:`fiedler.graph.coarsen`: in every round, each block moves nodes of
its own, by the labels that the round before left in its halo, and by the volumes of all communities, which the client
adds up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import check_int, check_positive, choose
from ..core.arrays import Array, eps, take_rows
from ..core.fitting import stage
from ..core.sparse import from_coo, row_indices
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.coarsen import WeightedEdges, coarsen
from ..graph.kernels import KernelConstants, KernelName, RowPairs, edge_weights, median_distance
from ..graph.neighbors import unit_rows
from ..graph.recipes import SYMMETRIZE, KNNGraph, SymmetrizeRule
from .neighbors import NO_NODE, search_neighbors
from .partition import CellBlocks, Layout, RowBlocks, select_values, stack
from .run import Run, refuse, run_steps
from .store import Task

OWN = "own"  # the array with the values of all nodes of a block
WEIGHTS, METRICS = ("binary", "heat", "local"), ("euclidean", "cosine")
MIN_SAMPLED, MAX_SAMPLED, MAX_SAMPLE_BYTES = 1000, 50_000, 2**27  # rows from which cells are made
MEDIAN_DISTANCES = 10**6  # from which the median distance is estimated
MAX_ROUNDS = 20  # of moves
MAX_ROUNDS_WITHOUT_GAIN = 2
MIN_GAIN = 1e-4  # of modularity, that is worth another round over all blocks
SEED = 0  # a recipe has no random state


# ------------------------------------------------------------------------------------------------ a block of the graph


class StoredGraph(NamedTuple):
    """Where the blocks of a graph are: the step that wrote them, and the number of neighbours of one of its graphs."""

    step: str
    size: int

    def read(self, task: Task) -> BlockGraph:
        """Read a block."""
        names = ("indptr", "columns", f"weights {self.size}", "neighbors", "n_halo")
        indptr, columns, weights, neighbors, n_halo = task.read(self.step, *names)
        n = len(indptr) - 1
        exports = task.read(self.step, *(f"export {other}" for other in neighbors))
        matrix = sp.csr_array((weights, columns, indptr), shape=(n, n + int(n_halo)))
        return BlockGraph(matrix, [int(other) for other in neighbors], list(exports))


@dataclass(frozen=True, eq=False)
class BlockGraph:
    """The rows of one block of the weight matrix."""

    weights: sp.csr_array  # (n, n + n_halo)
    neighbors: list[int]  # the blocks to which it is joined, by number
    exports: list[np.ndarray]  # for each of these, the own nodes that it has in its halo

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

    def receive(self, task: Task, step: str) -> Array:
        """Return the values of the own nodes and of the halo, as `share` of all blocks has written them in a step."""
        halo = [task.workspace.read_one(step, other, f"for {task.block}") for other in self.neighbors]
        return np.concatenate([task.read_one(step, OWN), *halo])


class WeightRule(NamedTuple):
    """How the lists of neighbours become weights, see :class:`fiedler.KNNGraph`; by default a self-tuned graph."""

    weight: KernelName = "local"
    symmetrize: SymmetrizeRule = "mean"
    bandwidth: float | None = None  # of the heat kernel


SELF_TUNED = WeightRule()


class DirectedEdges(NamedTuple):
    """Edges that end in a block, from the lists of its rows and of other blocks; those found from both sides twice."""

    own: np.ndarray  # the node of the block, by its place in it
    other: np.ndarray  # the other node
    lengths: np.ndarray
    ranks: np.ndarray  # the place in the list of neighbours in which it was found, from 0
    scale_products: np.ndarray  # of both nodes

    @classmethod
    def read(cls, task: Task, layout: Layout, neighbors: str) -> DirectedEdges:
        """Read the edges of a block from the lists of neighbours."""
        nodes, distances, scales, targets = task.read(neighbors, "nodes", "distances", "scales", "targets")
        rows, ranks = np.nonzero(nodes != NO_NODE)
        others, lengths = nodes[rows, ranks].astype(np.int64), distances[rows, ranks]
        home, first = layout.blocks_of(others), layout.starts[task.block]
        here = home == task.block
        local = (lengths[here], ranks[here], scales[rows[here]] * scales[others[here] - first])
        parts = [(rows[here], others[here], *local), (others[here] - first, rows[here] + first, *local)]
        for other in targets:  # neighbours in other blocks
            there, scales_there = home == other, task.workspace.read_one(neighbors, other, "scales")
            products = scales[rows[there]] * scales_there[others[there] - layout.starts[other]]
            parts.append((rows[there], others[there], lengths[there], ranks[there], products))
        for other in range(layout.n_blocks):  # rows of other blocks whose neighbours are here
            if other == task.block or task.block not in task.workspace.read_one(neighbors, other, "targets"):
                continue
            names = (f"to {task.block}", f"from {task.block}", f"length {task.block}", f"rank {task.block}", "scales")
            own, row, length, rank, scales_there = task.workspace.read(neighbors, other, *names)
            products = scales[own] * scales_there[row]
            parts.append((own.astype(np.int64), row + layout.starts[other], length, rank, products))
        return cls(*(np.concatenate(column) for column in zip(*parts)))

    def weights(self, rule: WeightRule) -> np.ndarray:
        """Compute the weight of each edge by the kernel."""
        every, ones = slice(None), np.ones_like(self.lengths)
        pairs = RowPairs(ones, ones, self.lengths, every, every, self.scale_products, ones)
        return edge_weights(rule.weight, pairs, KernelConstants(bandwidth=rule.bandwidth))


def weigh_block(
    task: Task, *, layout: Layout, neighbors: str, sizes: tuple[int, ...], rule: WeightRule
) -> dict[str, Array]:
    """Compute the rows of a block of the weight matrix.

    ``sizes`` are the numbers of neighbours of nested graphs, the largest last; their weights stand side by side, 0
    where a smaller graph has no edge.
    """
    edges = DirectedEdges.read(task, layout, neighbors)
    order = np.lexsort((edges.other, edges.own))
    own, other, ranks, weights = (part[order] for part in (edges.own, edges.other, edges.ranks, edges.weights(rule)))
    is_first = np.ones(len(own), dtype=bool)
    is_first[1:] = (own[1:] != own[:-1]) | (other[1:] != other[:-1])
    heads = np.flatnonzero(is_first)
    by_size = [_undirected(weights, ranks < size, heads, rule.symmetrize) for size in sizes]
    kept = by_size[-1] > 0
    own, other, by_size = own[heads][kept], other[heads][kept], [summed[kept] for summed in by_size]

    n, start, home = layout.size(task.block), layout.starts[task.block], layout.blocks_of(other)
    outside = home != task.block
    halo, position = np.unique(other[outside], return_inverse=True)
    columns = np.empty(len(other), dtype=np.int32)
    columns[~outside], columns[outside] = other[~outside] - start, n + position
    joined = np.unique(home[outside])
    return {
        **{f"export {target}": np.unique(own[home == target]).astype(np.int32) for target in joined},
        "indptr": np.concatenate([[0], np.cumsum(np.bincount(own, minlength=n))]),
        "columns": columns,
        "neighbors": joined,
        "n_halo": np.array(len(halo)),
        **{f"weights {size}": summed for size, summed in zip(sizes, by_size)},
    }


def _undirected(weights: np.ndarray, is_edge: np.ndarray, heads: np.ndarray, symmetrize: str) -> np.ndarray:
    """Return the weight of each pair of nodes from the edges of one or both directions, which begin at ``heads``."""
    if not len(heads):
        return weights
    sums = np.add.reduceat(np.where(is_edge, weights, 0), heads)
    sides = np.add.reduceat(is_edge.astype(weights.dtype), heads)
    return (sums / np.maximum(sides, 1) * SYMMETRIZE[symmetrize](sides)).astype(weights.dtype)


# --------------------------------------------------------------------------------------------------- the graph of a run


@dataclass(frozen=True, eq=False)
class GraphBlocks:
    """Nested graphs of all rows, in blocks."""

    cells: CellBlocks
    step: str
    sizes: tuple[int, ...]  # the numbers of neighbours of the graphs, the largest last

    @classmethod
    def build(
        cls,
        cells: CellBlocks,
        sizes: tuple[int, ...],
        prefix: str,
        rule: WeightRule = SELF_TUNED,
        metric: str = "euclidean",
    ) -> GraphBlocks:
        """Search neighbours and compute the weights; the names of the steps begin with ``prefix``."""
        neighbors, step = search_neighbors(cells, sizes[-1], prefix, metric), f"{prefix}graph"
        options = {"layout": cells.layout, "neighbors": neighbors, "sizes": sizes, "rule": rule}
        cells.run.map(step, weigh_block, cells.n_blocks, **options)
        return cls(cells, step, sizes)

    @property
    def largest(self) -> StoredGraph:
        """The graph with the most neighbours."""
        return StoredGraph(self.step, self.sizes[-1])

    def select(self, nodes: np.ndarray, source: str, step: str) -> Array:
        """Return the values that a step has written for some nodes, in a step of its own; see `select_values`."""
        return select_values(self.cells.run, step, source, (OWN,), nodes, self.cells.layout.starts)[0]

    def contract(self, max_nodes: int, random_state: int) -> CoarseGraphs:
        """Group nodes until about ``max_nodes`` groups are left, each within a block, and contract the graphs."""
        run, n_blocks, share = self.cells.run, self.cells.n_blocks, max_nodes / self.cells.layout.starts[-1]
        options = {"graph": self.largest, "max_share": min(1.0, share), "random_state": random_state}
        run.map("groups", group_block, n_blocks, **options)
        counts = [int(count) for count in run.read_all("groups", "n_groups", n_blocks)]
        groups = Groups("groups", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        run.map("contraction", contract_block, n_blocks, graph=self.step, groups=groups, sizes=self.sizes)
        return CoarseGraphs(self, groups)


# ---------------------------------------------------------------------------------------------------- contracted graphs


class Groups(NamedTuple):
    """Groups of the nodes of all blocks: the step that wrote them, the first one of each block, and their number."""

    step: str
    starts: np.ndarray

    def read(self, task: Task) -> np.ndarray:
        """Return the groups of the nodes of a block, by their numbers among those of all blocks."""
        return task.read_one(self.step, OWN).astype(np.int64) + int(self.starts[task.block])


def group_block(task: Task, *, graph: StoredGraph, max_share: float, random_state: int) -> dict[str, Array]:
    """Group the nodes of a block to a share of their number, by the edges inside it."""
    rows = graph.read(task)
    groups = np.arange(rows.n)
    if max_share < 1 and rows.n > 1:
        inner = sp.csr_array(rows.weights[:, : rows.n])
        crossing = rows.degrees - np.asarray(inner.sum(axis=1, dtype=np.float64)).ravel()
        local = AffinityGraph(inner, loops=np.maximum(crossing, 0).astype(inner.dtype))
        rng = np.random.RandomState([random_state, task.block])
        groups = coarsen(local, max(1, int(max_share * rows.n)), rng).supernodes
    return rows.share(groups.astype(np.int32)) | {"n_groups": np.array(groups.max() + 1 if rows.n else 0)}


def contract_block(task: Task, *, graph: str, groups: Groups, sizes: tuple[int, ...]) -> dict[str, Array]:
    """Sum the weights between the groups of nodes, of the rows of a block."""
    arrays, starts = {}, groups.starts
    for size in sizes:
        rows = StoredGraph(graph, size).read(task)
        halo = [
            task.workspace.read_one(groups.step, other, f"for {task.block}") + starts[other] for other in rows.neighbors
        ]
        nodes = np.concatenate([groups.read(task), *halo])
        entries = sp.coo_array(rows.weights)
        arrays[f"weights {size}"] = sp.coo_array(
            (entries.data, (nodes[entries.row] - starts[task.block], nodes[entries.col])),
            shape=(int(starts[task.block + 1] - starts[task.block]), int(starts[-1])),
        ).tocsr()
    return arrays


def mean_block(task: Task, *, layout: Layout, groups: Groups) -> dict[str, Array]:
    """Return the mean of the rows of each group; of sparse rows the first, since a mean is not sparse."""
    rows, own = layout.read_rows(task), task.read_one(groups.step, OWN)
    n_groups = int(groups.starts[task.block + 1] - groups.starts[task.block])
    order, counts = np.argsort(own, kind="stable"), np.bincount(own, minlength=n_groups)
    firsts = np.cumsum(counts) - counts
    if sp.issparse(rows):
        return {"means": take_rows(rows, order[firsts])}
    members = (np.ones(len(own), dtype=rows.dtype), order, np.append(firsts, len(own)))
    sums = sp.csr_array(members, shape=(n_groups, len(own))) @ rows
    return {"means": sums / counts[:, None].astype(rows.dtype)}


@dataclass(frozen=True, eq=False)
class CoarseGraphs:
    """Contracted graphs, small enough for one machine."""

    graph: GraphBlocks
    groups: Groups

    @property
    def is_coarse(self) -> bool:
        """Whether there are fewer groups than rows."""
        return bool(self.groups.starts[-1] < self.graph.cells.layout.starts[-1])

    def affinity(self, size: int) -> AffinityGraph:
        """Return the contracted graph of ``size`` neighbours."""
        cells = self.graph.cells
        blocks = [*cells.run.read_all("contraction", f"weights {size}", cells.n_blocks)]
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
        cells.run.map("means", mean_block, cells.n_blocks, layout=cells.layout, groups=self.groups)
        return graph._connect(stack([*cells.run.read_all("means", "means", cells.n_blocks)]), "mst")

    def groups_of(self, nodes: np.ndarray) -> np.ndarray:
        """Return the groups of some nodes."""
        groups = self.graph.select(nodes, self.groups.step, f"{self.groups.step}-sampled")
        return self.groups.starts[self.graph.cells.layout.blocks_of(nodes)] + groups


# ---------------------------------------------------------------------------------------------- moves of nodes


def project_block(task: Task, *, graph: StoredGraph, groups: Groups, labels: str) -> dict[str, Array]:
    """Give every node the label of its group."""
    rows, of_groups = graph.read(task), task.workspace.read_one(labels, 0, "labels")
    own = of_groups[groups.read(task)]
    return rows.share(own) | {"volumes": np.bincount(own, rows.degrees, minlength=int(of_groups.max()) + 1)}


def move_block(
    task: Task, *, graph: StoredGraph, previous: str, volumes: np.ndarray, gamma: float, seed: int
) -> dict[str, Array]:
    """Move nodes of a block, and note the weight that left their communities before."""
    rows = graph.read(task)
    labels, degrees = rows.receive(task, previous).astype(np.int64), rows.degrees.astype(rows.weights.dtype)
    sources, (targets, weights) = row_indices(rows.weights), (rows.weights.indices, rows.weights.data)
    inside, total = float(rows.degrees.sum()), float(volumes.sum())
    edges = WeightedEdges(sources, targets, weights, degrees, degrees, total, inside, False)
    gains = edges.boundary_gains(labels, volumes, gamma)
    rounding = 16 * eps(degrees) * float(degrees.mean()) if rows.n else 0.0
    moved = edges.take_step(labels, gains, rounding, np.random.RandomState([seed, task.block]))[: rows.n]
    moved = moved.astype(np.int32)
    sums = {"volumes": np.bincount(moved, rows.degrees, minlength=len(volumes)), "crossing": np.array(gains.crossing)}
    return rows.share(moved) | sums


def refine(coarse: CoarseGraphs, labels: np.ndarray, size: int, gamma: float | None, random_state: int) -> str:
    """Give all nodes the labels of their groups and, unless ``gamma`` is None, move them until few would gain.

    Nodes move on the graph of ``size`` neighbours at the resolution ``gamma``. Returns the step with the labels.
    """
    run, n_blocks = coarse.graph.cells.run, coarse.graph.cells.n_blocks
    graph = StoredGraph(coarse.graph.step, size)
    run.once("coarse-labels", lambda: {"labels": labels.astype(np.int32)})
    run.map("moves-00", project_block, n_blocks, graph=graph, groups=coarse.groups, labels="coarse-labels")
    if gamma is None or not coarse.is_coarse:
        return "moves-00"
    current, best_step, best, n_without_gain = "moves-00", "moves-00", -np.inf, 0
    with stage("moving nodes", MAX_ROUNDS, at_most=True) as tick:
        for number in range(1, MAX_ROUNDS + 1):
            volumes, following = run.total(current, "volumes", n_blocks), f"moves-{number:02d}"
            state = {"previous": current, "volumes": volumes, "gamma": gamma, "seed": random_state + number}
            run.map(following, move_block, n_blocks, graph=graph, **state)
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


# ------------------------------------------------------------------------------------------------------------- recipes


def build_recipe(rows: RowBlocks, recipe: Any, random_state: int) -> GraphBlocks:
    """Build the graph of a recipe in blocks."""
    check_recipe(recipe)
    if recipe.metric == "cosine":
        rows = rows.transform("unit-rows", unit_rows)
    n_neighbors = check_int(recipe.n_neighbors, "n_neighbors")
    if n_neighbors >= rows.n_rows:
        problem = f"n_neighbors={n_neighbors} needs more rows than there are (n_samples={rows.n_rows})"
        hint, code = f"choose at most {rows.n_rows - 1}", "too_few_rows_for_neighbors"
        fields = {"n_neighbors": n_neighbors, "n_samples": rows.n_rows}
        raise InputError(problem, hint, code=code, parameter="n_neighbors", **fields)
    cells = CellBlocks.divide(rows, draw_sample(rows, random_state)[1], "", random_state)
    bandwidth = _bandwidth(recipe, cells, n_neighbors) if recipe.weight == "heat" else None
    rule = WeightRule(recipe.weight, recipe.symmetrize, bandwidth)
    return GraphBlocks.build(cells, (n_neighbors,), "", rule, metric=recipe.metric)


def check_recipe(recipe: Any) -> None:
    """Raise an error for a recipe, or an option of it, that has no block version."""
    if not isinstance(recipe, KNNGraph):
        problem = "with Dask arrays, the graph must be a KNNGraph"
        raise InputError(problem, "pass graph=KNNGraph(...)", code="not_out_of_core", parameter="graph")
    choose(SYMMETRIZE, recipe.symmetrize, option="symmetrize")
    for name, is_supported, hint in (
        ("weight", recipe.weight in WEIGHTS, f"use one of {', '.join(WEIGHTS)}"),
        ("metric", recipe.metric in METRICS, f"use one of {', '.join(METRICS)}"),
        ("connect", recipe.connect is None, "use connect=None"),
        ("method", recipe.method in ("auto", "cells"), "use method='auto'"),
    ):
        refuse(f"KNNGraph({{}}={getattr(recipe, name)!r}) does not work", [(name, not is_supported, hint)])


def draw_sample(rows: RowBlocks, random_state: int) -> tuple[np.ndarray, Array]:
    """Return the numbers of some rows, and these."""
    size = max(MIN_SAMPLED, rows.most_rows(MAX_SAMPLED, MAX_SAMPLE_BYTES))
    numbers = rows.draw(size, np.random.RandomState(random_state))
    return numbers, rows.select(numbers, "sample")


def _bandwidth(recipe: KNNGraph, cells: CellBlocks, n_neighbors: int) -> float:
    """Return the bandwidth of the heat kernel: as given, or about the median distance of neighbours."""
    if recipe.bandwidth is not None:
        return check_positive(recipe.bandwidth, "bandwidth")
    step, run = search_neighbors(cells, n_neighbors, "", recipe.metric), cells.run
    share = -(-2 * cells.rows.n_rows * n_neighbors // MEDIAN_DISTANCES)
    run.map("lengths", length_block, cells.n_blocks, layout=cells.layout, neighbors=step, share=share)
    return median_distance(np.concatenate([*run.read_all("lengths", "lengths", cells.n_blocks)]))


def length_block(task: Task, *, layout: Layout, neighbors: str, share: int) -> dict[str, Array]:
    """Return the lengths of one of ``share`` edges of a block, each of which counts once if found from both sides."""
    edges = DirectedEdges.read(task, layout, neighbors)
    _, first = np.unique(edges.own * layout.starts[-1] + edges.other, return_index=True)
    return {"lengths": edges.lengths[first][::share]}


# --------------------------------------------------------------------------------------------- KNNGraph.build in blocks


class GraphInBlocks(NamedTuple):
    """The graph of the rows of a Dask array.

    Attributes
    ----------
    weights : dask.array.Array of shape (n_nodes, n_nodes)
        The symmetric weight matrix W, with the row blocks of the rows; each is a SciPy CSR array with all columns.
    n_nodes : int
        The number of rows.
    """

    weights: Any
    n_nodes: int


def build(recipe: KNNGraph, X: Any) -> GraphInBlocks:
    """Build the graph on the rows of a Dask array."""

    def script(run: Run) -> GraphInBlocks:
        rows = RowBlocks.store(run, X)
        graph = build_recipe(rows, recipe, SEED)
        cells, options = graph.cells, {"layout": graph.cells.layout, "graph": graph.largest}
        run.map("numbers", number_block, cells.n_blocks, starts=rows.starts, **options)
        run.map("ends", divide_weights, cells.n_blocks, **options)
        result = cells.collect("ends", ("weights",))
        empty = sp.csr_array((0, rows.n_rows), dtype=rows.dtype)
        return GraphInBlocks(rows.as_dask(result, "weights", (rows.n_rows,), rows.dtype, empty), rows.n_rows)

    return run_steps(recipe, X, SEED, script)


def number_block(task: Task, *, layout: Layout, graph: StoredGraph, starts: np.ndarray) -> dict[str, Array]:
    """Return the numbers of the nodes of a block in the input."""
    read = task.workspace.read_one
    numbers = [starts[i] + np.flatnonzero(read(layout.step, i, "home") == task.block) for i in layout.origins]
    return graph.read(task).share(np.concatenate(numbers))


def divide_weights(task: Task, *, layout: Layout, graph: StoredGraph) -> dict[str, Array]:
    """Return the weights of the nodes of a block with columns in the order of the input, divided by its blocks."""
    edges = graph.read(task)
    columns = edges.receive(task, "numbers")[edges.weights.indices]
    shape = (edges.n, int(layout.starts[-1]))
    weights = sp.csr_array((edges.weights.data, columns, edges.weights.indptr), shape=shape)
    weights.sort_indices()
    return layout.divide_by_origin({"weights": weights}, task.block)
