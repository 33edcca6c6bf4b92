"""KNNGraph on a Dask array: the weight matrix as a Dask array of sparse row blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import check_int, check_positive, choose
from ..core.arrays import Array
from ..errors import InputError
from ..graph.kernels import median_distance
from ..graph.neighbors import unit_rows
from ..graph.recipes import SYMMETRIZE, KNNGraph
from .graph import BlockGraph, DirectedEdges, GraphBlocks, WeightRule
from .memberships import collect_block
from .neighbors import search_neighbors
from .partition import CellBlocks, Layout, RowBlocks
from .run import Run, describe, run_steps
from .store import Workspace

# ---------------------------------------------------------------------------------------------------------------------
# Graphs of the rows of a Dask array by a recipe, :class:`fiedler.KNNGraph`.

MAX_SAMPLED = 50_000  # rows from which cells are made
MAX_SAMPLE_BYTES = 2**27
MEDIAN_DISTANCES = 10**6  # from which the median distance is estimated
WEIGHTS, METRICS = ("binary", "heat", "local"), ("euclidean", "cosine")


def build_recipe(rows: RowBlocks, recipe: Any, random_state: int) -> GraphBlocks:
    """Build the graph of a recipe in blocks."""
    check_recipe(recipe)
    if recipe.metric == "cosine":
        rows.run.map("unit-rows", unit_block, rows.blocks, rows=rows.step)
        rows = rows.transformed("unit-rows")
    n_neighbors = check_int(recipe.n_neighbors, "n_neighbors")
    if n_neighbors >= rows.n_rows:
        raise InputError(
            f"n_neighbors={n_neighbors} needs more rows than there are (n_samples={rows.n_rows})",
            f"choose at most {rows.n_rows - 1}",
            code="too_few_rows_for_neighbors",
            parameter="n_neighbors",
            n_neighbors=n_neighbors,
            n_samples=rows.n_rows,
        )
    cells = CellBlocks.divide(rows, draw_sample(rows, random_state)[1], "", random_state)
    rule = WeightRule(recipe.weight, recipe.symmetrize)
    if recipe.weight == "heat":
        rule = rule._replace(bandwidth=_bandwidth(recipe, cells, n_neighbors))
    return GraphBlocks.build(cells, (n_neighbors,), "", rule, metric=recipe.metric)


def check_recipe(recipe: Any) -> None:
    """Raise an error for a recipe, or an option of it, that has no block version."""
    if not isinstance(recipe, KNNGraph):
        raise InputError(
            "with Dask arrays, the graph must be a KNNGraph",
            "pass graph=KNNGraph(...)",
            code="not_out_of_core",
            parameter="graph",
        )
    choose(SYMMETRIZE, recipe.symmetrize, option="symmetrize")
    for name, is_supported, hint in (
        ("weight", recipe.weight in WEIGHTS, f"use one of {', '.join(WEIGHTS)}"),
        ("metric", recipe.metric in METRICS, f"use one of {', '.join(METRICS)}"),
        ("connect", recipe.connect is None, "use connect=None"),
        ("method", recipe.method in ("auto", "cells"), "use method='auto'"),
    ):
        if not is_supported:
            raise InputError(
                f"KNNGraph({name}={getattr(recipe, name)!r}) does not work with Dask arrays",
                hint,
                code="not_out_of_core",
                parameter=name,
            )


def draw_sample(rows: RowBlocks, random_state: int) -> tuple[np.ndarray, Array]:
    """Return the numbers of some rows, and these."""
    row_bytes = rows.dtype.itemsize * rows.n_features
    size = MAX_SAMPLED if rows.is_sparse else min(MAX_SAMPLED, max(1000, MAX_SAMPLE_BYTES // row_bytes))
    numbers = rows.draw(size, np.random.RandomState(random_state))
    return numbers, rows.select(numbers, "sample")


def unit_block(workspace: Workspace, block: int, *, rows: str) -> dict[str, Array]:
    """Scale the rows of a block to unit length."""
    return {"rows": unit_rows(workspace.read_one(rows, block, "rows"))}


def _bandwidth(recipe: KNNGraph, cells: CellBlocks, n_neighbors: int) -> float:
    """Return the bandwidth of the heat kernel: as given, or about the median distance of neighbours."""
    if recipe.bandwidth is not None:
        return check_positive(recipe.bandwidth, "bandwidth")
    step, run = search_neighbors(cells, n_neighbors, "", recipe.metric), cells.rows.run
    share = -(-2 * cells.rows.n_rows * n_neighbors // MEDIAN_DISTANCES)
    run.map("lengths", length_block, cells.n_blocks, layout=cells.layout, neighbors=step, share=share)
    lengths = [run.workspace.read_one("lengths", block, "lengths") for block in range(cells.n_blocks)]
    return median_distance(np.concatenate(lengths))


def length_block(workspace: Workspace, block: int, *, layout: Layout, neighbors: str, share: int) -> dict[str, Array]:
    """Return the lengths of one of ``share`` edges of a block, each of which counts once if found from both sides."""
    edges = DirectedEdges.read(workspace, block, layout, neighbors)
    _, first = np.unique(edges.own * layout.starts[-1] + edges.other, return_index=True)
    return {"lengths": edges.lengths[first][::share]}


# ---------------------------------------------------------------------------------------------------------------------

SEED = 0  # a recipe has no random state


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
    return run_steps(describe(recipe, X, SEED), lambda run: _build(recipe, run, X))


def _build(recipe: KNNGraph, run: Run, X: Any) -> GraphInBlocks:
    rows = RowBlocks.store(run, X)
    graph = build_recipe(rows, recipe, SEED)
    cells, options = graph.cells, {"layout": graph.cells.layout, "graph": graph.step, "size": graph.sizes[-1]}
    run.map("numbers", number_block, cells.n_blocks, starts=rows.starts, **options)
    run.map("ends", divide_weights, cells.n_blocks, **options)
    run.map("result", collect_block, rows.blocks, layout=cells.layout, ends="ends", names=("weights",))
    empty = sp.csr_array((0, rows.n_rows), dtype=rows.dtype)
    return GraphInBlocks(rows.as_dask("result", "weights", (rows.n_rows,), rows.dtype, empty), rows.n_rows)


def number_block(
    workspace: Workspace, block: int, *, layout: Layout, graph: str, size: int, starts: np.ndarray
) -> dict[str, Array]:
    """Return the numbers of the nodes of a block in the input."""
    read = workspace.read_one
    numbers = [starts[i] + np.flatnonzero(read(layout.step, i, "home") == block) for i in layout.origins]
    return BlockGraph.read(workspace, graph, block, size).share(np.concatenate(numbers))


def divide_weights(workspace: Workspace, block: int, *, layout: Layout, graph: str, size: int) -> dict[str, Array]:
    """Return the weights of the nodes of a block with columns in the order of the input, divided by its blocks."""
    edges = BlockGraph.read(workspace, graph, block, size)
    columns = edges.receive(workspace, "numbers")[edges.weights.indices]
    shape = (edges.n, int(layout.starts[-1]))
    weights = sp.csr_array((edges.weights.data, columns, edges.weights.indptr), shape=shape)
    weights.sort_indices()
    return layout.divide_by_origin({"weights": weights}, block)
