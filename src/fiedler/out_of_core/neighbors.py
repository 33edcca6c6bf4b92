"""Nearest neighbours of the rows of all blocks.

In every block, the rows at home and the guests search each other, by the search that is used in memory. Every row has a
list from its home and one from the block in which it is a guest; these are merged.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..core.arrays import Array
from ..graph.kernels import LOCAL_NEIGHBOR
from ..graph.neighbors import MAX_TREE_FEATURES_OF_MANY, SearchMethod, k_nearest
from ..graph.voronoi import CellSearch, Copies
from .partition import CellBlocks, Layout, stack
from .store import Task

CELLS_ABOVE = 10_000  # rows, above which cells are faster than the exact search, which takes longer in every block
HOME_RECALL, GUEST_RECALL = 0.98, 0.9  # in a block: less than in memory, since every row is searched for twice
NO_NODE = -1  # in the place of a neighbour that a row does not have


def search_neighbors(cells: CellBlocks, n_neighbors: int, prefix: str, metric: str = "euclidean") -> str:
    """Search the nearest neighbours of all rows; return the step with the merged lists.

    Its arrays are ``nodes`` and ``distances`` of shape (n, n_neighbors), by distance, and ``scales`` of shape (n,).
    """
    run, options = cells.rows.run, {"layout": cells.layout, "k": n_neighbors}
    run.map(f"{prefix}lists", search_block, cells.n_blocks, metric=metric, **options)
    run.map(f"{prefix}neighbors", merge_lists, cells.n_blocks, lists=f"{prefix}lists", **options)
    return f"{prefix}neighbors"


def search_block(task: Task, *, layout: Layout, k: int, metric: str) -> dict[str, Array]:
    """Search the neighbours of the rows at home and of the guests among themselves, and sort them by home."""
    rows = layout.read_rows(task)
    guests, guest_nodes = layout.read_guests(task)
    n_home = rows.shape[0]
    nodes = np.concatenate([layout.starts[task.block] + np.arange(n_home), guest_nodes])
    neighbors, distances = _lists(stack([rows, guests]), nodes, n_home, k, metric)
    home = layout.blocks_of(nodes)
    arrays: dict[str, Array] = {}
    for target in np.unique(home):
        own = np.flatnonzero(home == target)
        arrays |= {
            f"positions {target}": (nodes[own] - layout.starts[target]).astype(np.int32),
            f"nodes {target}": neighbors[own].astype(layout.node_type),
            f"distances {target}": distances[own],
        }
    return arrays | {"homes": np.unique(home)}


def _lists(X: Array, nodes: np.ndarray, n_home: int, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and distances of the k nearest rows; in a block of few rows, some are missing."""
    m = X.shape[0]
    neighbors, distances = np.full((m, k), NO_NODE, dtype=np.int64), np.full((m, k), np.inf, dtype=X.dtype)
    size = min(k, m - 1)
    if size > 0:
        lengths, indices = _search(X, n_home, size, metric)
        neighbors[:, :size], distances[:, :size] = nodes[indices], lengths
    return neighbors, distances


def _search(X: Array, n_home: int, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Search in cells, or exactly where that is as fast; of dense rows that occur many times, only a few."""
    copies = Copies.of(X, k) if X.shape[0] > CELLS_ABOVE and not sp.issparse(X) else None
    if copies is None or not copies.n_groups:
        return _search_in_cells(X, n_home, k, metric) or _search_exactly(X, k, metric)
    searched = copies.searched(X.shape[0])
    some, n_home = X[searched], int(np.searchsorted(searched, n_home))
    lists = _search_in_cells(some, n_home, k, metric) or _search_exactly(some, k, metric)
    return copies.complete(X.shape[0], searched, *lists)


def _search_exactly(X: Array, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    edges = k_nearest(X, k, metric=metric, method="exact")
    return edges.distances.reshape(-1, k), edges.columns.reshape(-1, k)


def _search_in_cells(X: Array, n_home: int, k: int, metric: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Search the rows at home well, and the guests, most of whose neighbours are at their home, quickly.

    None if the exact search is as fast.
    """
    if search_method(X) != "cells":
        return None
    search = CellSearch.of(X, k)
    n_near = [search.n_near(recall) for recall in (HOME_RECALL, GUEST_RECALL)]
    if not search.is_worthwhile(n_near[0]):
        return None
    parts = (np.arange(n_home), np.arange(n_home, X.shape[0]))
    lists = [search.search_rows(part, width) for part, width in zip(parts, n_near) if len(part)]
    distances, indices = (np.concatenate(column) for column in zip(*lists))
    return 0.5 * distances**2 if metric == "cosine" else distances, indices


def search_method(X: Array) -> SearchMethod:
    """Return the search for rows that are one of many blocks: in cells, unless the exact one is as fast."""
    few = X.shape[0] <= CELLS_ABOVE or X.shape[1] <= MAX_TREE_FEATURES_OF_MANY
    return "auto" if few or sp.issparse(X) else "cells"


def merge_lists(task: Task, *, layout: Layout, k: int, lists: str) -> dict[str, Array]:
    """Merge the lists of the rows of a block, and tell other blocks which of their rows are neighbours of these."""
    n = layout.size(task.block)
    nodes = np.full((n, 2 * k), NO_NODE, dtype=np.int64)
    distances = np.full((n, 2 * k), np.inf, dtype=np.float64)
    dtype: np.dtype = np.dtype(np.float64)
    for other in range(layout.n_blocks):
        if task.block not in task.workspace.read_one(lists, other, "homes"):
            continue
        names = (f"positions {task.block}", f"nodes {task.block}", f"distances {task.block}")
        positions, neighbors, lengths = task.workspace.read(lists, other, *names)
        columns = slice(0, k) if other == task.block else slice(k, 2 * k)
        nodes[positions, columns], distances[positions, columns] = neighbors, lengths
        dtype = lengths.dtype
    nodes, distances = nearest_of(nodes, distances, k)
    scales = local_scales(distances)
    home = np.where(nodes == NO_NODE, task.block, layout.blocks_of(nodes))
    arrays: dict[str, Array] = {}
    for target in np.unique(home[home != task.block]):
        rows, ranks = np.nonzero(home == target)
        arrays |= {
            f"to {target}": (nodes[rows, ranks] - layout.starts[target]).astype(np.int32),
            f"from {target}": rows.astype(np.int32),
            f"rank {target}": ranks.astype(np.uint8),
            f"length {target}": distances[rows, ranks].astype(dtype),
        }
    return arrays | {
        "nodes": nodes.astype(layout.node_type),
        "distances": distances.astype(dtype),
        "scales": scales.astype(dtype),
        "targets": np.unique(home[home != task.block]),
    }


def nearest_of(nodes: np.ndarray, distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest of several lists of neighbours in a row, each node once.

    Examples
    --------
    >>> nearest_of(np.array([[7, 3, 3, 5]]), np.array([[2.0, 4.0, 4.0, 1.0]]), 2)
    (array([[5, 7]]), array([[1., 2.]]))
    """
    by_node = np.argsort(nodes, axis=1, kind="stable")
    nodes, distances = (np.take_along_axis(part, by_node, axis=1) for part in (nodes, distances))
    distances[:, 1:][nodes[:, 1:] == nodes[:, :-1]] = np.inf
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    nodes, distances = (np.take_along_axis(part, nearest, axis=1) for part in (nodes, distances))
    return np.where(np.isfinite(distances), nodes, NO_NODE), distances


def local_scales(distances: np.ndarray) -> np.ndarray:
    """Return the distance of each row to its seventh neighbour, or to its last."""
    counts = np.isfinite(distances).sum(axis=1)
    last = np.clip(np.minimum(counts, LOCAL_NEIGHBOR) - 1, 0, None)
    scales = np.take_along_axis(distances, last[:, None], axis=1)[:, 0]
    return np.where(np.isfinite(scales), scales, 0.0)
