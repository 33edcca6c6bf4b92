"""KNNGraph on a Dask array: the weight matrix as a Dask array of sparse row blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array
from ..graph.recipes import KNNGraph
from .cells import Layout
from .graph import BlockGraph
from .memberships import collect_block
from .recipes import build_recipe
from .rows import RowBlocks
from .run import Run, describe, run_steps
from .workspace import Workspace

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
