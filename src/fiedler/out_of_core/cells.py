"""Rows divided anew, by cells of nearby rows, so that most neighbours of a row are in its own block.

The centres of the cells are found by k-means on a sample. Cells are joined to as many blocks as there are of the input,
of about the same number of rows, by repeated bisection along the direction in which the centres vary most. A row
belongs to the block of its nearest centre, its *home*, and is a *guest* in the nearest other block: it is searched for
in both, and searches in both. A cell with far more rows than a block should have is divided again; if its rows are
equal, it belongs to several blocks, and each of its rows to one of these, drawn at random.

Rows are numbered by block, and in a block by their order in the input. A row is known by this *node* in all graphs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..core.backend import Array, row_blocks
from ..core.block_sizes import CELLS_PER_BLOCK, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, MAX_CELLS
from ..core.kmeans import kmeans
from ..core.rows import sq_row_norms, take_rows
from ..errors import ignore_warnings
from .rows import RowBlocks, select_values, stack
from .workspace import Sliced, Workspace

MIN_SAMPLED_PER_CELL = 4
MAX_ITERATIONS = 10  # of k-means
MAX_DIVISIONS = 10  # of a large cell into smaller ones
MAX_CELL_SIZE = 2  # rows of a cell that is not divided, relative to those of a block
SEED = 0  # of the blocks of equal rows
MIN_BLOCK_ROWS = 500  # on average; of fewer rows, most have neighbours in many other blocks
MAX_FINER = 8  # times as many blocks as these limits ask for, if the input has as many


@dataclass(frozen=True, eq=False)
class CellBlocks:
    """Rows in blocks of nearby rows.

    Attributes
    ----------
    rows : RowBlocks
        The rows in the blocks of the input.
    step : str
        The step that divided them.
    layout : Layout
        Where the rows of each block come from.
    """

    rows: RowBlocks
    step: str
    layout: Layout

    @classmethod
    def divide(cls, rows: RowBlocks, sample: Array, prefix: str, random_state: int) -> CellBlocks:
        """Divide rows by the cells of a sample.

        Parameters
        ----------
        rows : RowBlocks
        sample : array or CSR matrix of shape (m, d)
            Some of the rows.
        prefix : str
            Of the names of the steps.
        random_state : int
        """
        run = rows.run
        n_blocks = min(count_blocks(rows), max(1, sample.shape[0] // MIN_SAMPLED_PER_CELL))
        (blocks,) = run.once(f"{prefix}cells", lambda: find_cells(sample, n_blocks, random_state)._asdict(), "blocks")
        n_blocks = int(blocks[-1]) + 1
        step = f"{prefix}division"
        run.map(step, divide_block, rows.blocks, rows=rows.step, cells=f"{prefix}cells", n_blocks=n_blocks)
        counts = np.zeros((len(rows.sizes), n_blocks), dtype=np.int64)
        for block in rows.blocks:
            counts[block] = run.workspace.read_one(step, block, "counts")
        run.once(f"{prefix}layout", lambda: {"counts": counts})
        return cls(rows, step, Layout.read(run.workspace, step, f"{prefix}layout"))

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self.layout.n_blocks

    def nodes_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the nodes of some rows, given by their numbers."""
        starts, step = self.rows.starts, f"{self.step}-places"
        home, rank = select_values(self.rows.run, step, self.step, ("home", "rank"), numbers, starts)
        origin = np.searchsorted(starts, numbers, side="right") - 1
        return self.layout.nodes(origin, home.astype(np.int64), rank.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Layout:
    """Which nodes are the rows of each block: what a task knows of the other blocks.

    It is sent to tasks as the name of its file, which every worker reads once.

    Attributes
    ----------
    step : str
        The step that divided the rows.
    counts : ndarray of shape (n_inputs, n_blocks)
        The number of rows that each block has from each block of the input.
    source : tuple
        The arguments of `read`.
    """

    step: str
    counts: np.ndarray
    source: tuple[Any, ...] = ()

    @classmethod
    def read(cls, workspace: Workspace, step: str, file: str) -> Layout:
        """Read a layout from the file that the client has written."""
        return cls(step, workspace.read_one(file, 0, "counts"), (workspace, step, file))

    def __reduce__(self) -> tuple[Any, ...]:
        workspace, step, file = self.source
        return _read_layout, (str(workspace.folder), workspace.identity, step, file)

    @cached_property
    def starts(self) -> np.ndarray:
        """The first node of each block, and the number of nodes."""
        return np.concatenate([[0], np.cumsum(self.counts.sum(axis=0))]).astype(np.int64)

    @cached_property
    def before(self) -> np.ndarray:
        """The number of rows of each block that come from earlier blocks of the input."""
        return np.concatenate([np.zeros_like(self.counts[:1]), np.cumsum(self.counts, axis=0)])[:-1]

    @cached_property
    def origins(self) -> list[int]:
        """The blocks of the input that have rows."""
        return [int(origin) for origin in np.flatnonzero(self.counts.sum(axis=1))]

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self.counts.shape[1]

    @property
    def node_type(self) -> type[np.signedinteger]:
        """The type of the numbers of nodes in files."""
        return np.int32 if self.starts[-1] < 2**31 else np.int64

    def size(self, block: int) -> int:
        """Return the number of rows of a block."""
        return int(self.starts[block + 1] - self.starts[block])

    def blocks_of(self, nodes: np.ndarray) -> np.ndarray:
        """Return the blocks to which nodes belong."""
        return np.searchsorted(self.starts, nodes, side="right") - 1

    def nodes(self, origin: np.ndarray | int, home: np.ndarray | int, rank: np.ndarray) -> np.ndarray:
        """Return the nodes of rows from a block of the input, by home and rank among the rows with this home."""
        return self.starts[home] + self.before[origin, home] + rank

    def divide_by_origin(self, values: Mapping[str, Array], block: int) -> dict[str, Sliced]:
        """Divide values of the nodes of a block by the blocks of the input from which they come."""
        starts = np.concatenate([[0], np.cumsum(self.counts[:, block])])
        return {name: Sliced(array, starts) for name, array in values.items()}

    def read_rows(self, workspace: Workspace, block: int) -> Array:
        """Read the rows of a block, in the order of their nodes."""
        return stack([workspace.read_part(self.step, origin, "rows", block) for origin in self.origins])

    def read_guests(self, workspace: Workspace, block: int) -> tuple[Array, np.ndarray]:
        """Read the guests of a block, and their nodes."""
        guests, nodes = [], []
        names = ("guests", "guests' home", "guests' rank")
        for origin in self.origins:
            rows, home, rank = (workspace.read_part(self.step, origin, name, block) for name in names)
            guests.append(rows)
            nodes.append(self.nodes(origin, home, rank))
        return stack(guests), np.concatenate(nodes)


@lru_cache(maxsize=4)
def _read_layout(folder: str, identity: str | None, step: str, file: str) -> Layout:
    return Layout.read(Workspace(folder), step, file)


# ------------------------------------------------------------------------------------------------------------ the cells


def count_blocks(rows: RowBlocks) -> int:
    """Return the number of blocks into which rows are divided: that of the input, within limits of their size."""
    row_bytes = 0 if rows.is_sparse else rows.dtype.itemsize * rows.n_features
    needed = math.ceil(max(rows.n_rows / MAX_BLOCK_ROWS, rows.n_rows * row_bytes / MAX_BLOCK_BYTES))
    n_blocks = min(max(len(rows.blocks), needed), MAX_FINER * needed)
    return max(1, min(n_blocks, rows.n_rows // MIN_BLOCK_ROWS))


class BlockCells(NamedTuple):
    """Cells, and the blocks to which they belong.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, d)
    cells, blocks : ndarray of shape (m,)
        Pairs of a cell and a block, in the order of the blocks; a cell of many equal rows belongs to several.
    """

    centers: np.ndarray
    cells: np.ndarray
    blocks: np.ndarray


def find_cells(sample: Array, n_blocks: int, random_state: int) -> BlockCells:
    """Divide the space by the centres of cells of a sample, and join cells to blocks of about equal size."""
    n_cells = min(CELLS_PER_BLOCK * n_blocks, MAX_CELLS, sample.shape[0] // MIN_SAMPLED_PER_CELL)
    block_size = sample.shape[0] / n_blocks
    centers, sizes = _divide_sample(sample, max(n_cells, n_blocks), block_size, random_state)
    n_copies = np.where(sizes > MAX_CELL_SIZE * block_size, np.ceil(sizes / block_size), 1).astype(np.int64)
    cells = np.repeat(np.arange(len(centers)), n_copies)
    n_blocks = min(n_blocks, len(cells))  # fewer, if there are few different rows
    blocks = join_cells(centers[cells].astype(np.float64), (sizes / n_copies)[cells], n_blocks)
    order = np.argsort(blocks, kind="stable")
    _, first, cells = np.unique(cells[order], return_index=True, return_inverse=True)
    by_block = np.argsort(first)  # without copies, the centres are in the order of the pairs
    return BlockCells(centers[by_block].astype(sample.dtype), np.argsort(by_block)[cells], blocks[order])


def _divide_sample(sample: Array, n_cells: int, block_size: float, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of cells and the number of their rows, which are not many more than those of a block."""
    max_size = max(MAX_CELL_SIZE * block_size, 2 * MIN_SAMPLED_PER_CELL)
    waiting, centers, sizes = [(sample, n_cells, 0)], [], []
    while waiting:
        rows, count, depth = waiting.pop()
        with ignore_warnings(ConvergenceWarning):  # repeated rows: some cells are empty
            result = kmeans(rows, count, n_init=1, max_iter=MAX_ITERATIONS, random_state=random_state)
        counts = np.bincount(result.labels, minlength=count)
        for cell in np.flatnonzero(counts):
            size = int(counts[cell])
            if size > max_size and depth < MAX_DIVISIONS and np.count_nonzero(counts) > 1:
                own = take_rows(rows, np.flatnonzero(result.labels == cell))
                n_parts = min(math.ceil(CELLS_PER_BLOCK * size / block_size), size // MIN_SAMPLED_PER_CELL)
                waiting.append((own, n_parts, depth + 1))
            else:
                centers.append(np.asarray(result.centers)[cell])
                sizes.append(size)
    return np.stack(centers), np.array(sizes)


def join_cells(centers: np.ndarray, weights: np.ndarray, n_blocks: int) -> np.ndarray:
    """Join cells to blocks of about equal weight, by bisection along the direction of largest variance.

    Examples
    --------
    >>> join_cells(np.array([[0.0], [5.0], [0.1], [5.1]]), np.ones(4), 2)
    array([0, 1, 0, 1])
    """
    blocks = np.zeros(len(centers), dtype=np.int64)
    waiting = [(np.arange(len(centers)), 0, n_blocks)]
    while waiting:
        cells, first, count = waiting.pop()
        if count == 1:
            blocks[cells] = first
            continue
        weight = weights[cells]
        centred = centers[cells] - np.average(centers[cells], axis=0, weights=weight)
        direction = np.linalg.svd(centred * np.sqrt(weight)[:, None], full_matrices=False)[2][0]
        direction = direction * np.sign(direction[np.argmax(np.abs(direction))] or 1.0)
        order, left = np.argsort(centred @ direction, kind="stable"), count // 2
        share = np.cumsum(weight[order]) / weight.sum()
        cut = int(np.clip(np.searchsorted(share, left / count) + 1, left, len(cells) - (count - left)))
        waiting += [(cells[order[:cut]], first, left), (cells[order[cut:]], first + left, count - left)]
    return blocks


def divide_block(
    workspace: Workspace, block: int, *, rows: str, cells: str, n_blocks: int
) -> dict[str, Array | Sliced]:
    """Divide the rows of a block of the input by their home, and by the block in which they are guests."""
    X = workspace.read_one(rows, block, "rows")
    home, second = two_nearest_blocks(X, BlockCells(*workspace.read(cells, 0, *BlockCells._fields)), n_blocks)
    order = np.argsort(home, kind="stable")
    counts = np.bincount(home, minlength=n_blocks)
    rank = np.empty(len(home), dtype=np.int32)
    rank[order] = np.arange(len(home)) - np.repeat(np.cumsum(counts) - counts, counts)
    guests = {"guests": X, "guests' home": home.astype(np.int32), "guests' rank": rank}
    return {
        "home": home.astype(np.int32),
        "rank": rank,
        "counts": counts,
        "rows": Sliced.sorted_by(X, home, n_blocks),
        **{name: Sliced.sorted_by(values, second, n_blocks) for name, values in guests.items()},
    }


def two_nearest_blocks(X: Array, cells: BlockCells, n_blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the block of the nearest centre of each row, and the block nearest among the others, -1 if there is none.

    If the nearest cell belongs to several blocks, one of them is drawn at random, always the same.
    """
    n, firsts, centers = X.shape[0], np.searchsorted(cells.blocks, np.arange(n_blocks)), cells.centers
    draws = np.random.RandomState(SEED).randint(2**31 - 1, size=n)
    home, second = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    shift = 0 if sp.issparse(X) else centers.mean(axis=0)  # near the origin fewer digits cancel
    centers = centers - shift
    half_sq_norms = 0.5 * sq_row_norms(centers)
    for part in row_blocks(n, 16 * len(centers), X) if n else []:
        products = (X[part] if sp.issparse(X) else X[part] - shift) @ centers.T
        scores = half_sq_norms - np.asarray(products)
        if len(cells.cells) > len(centers):
            scores = scores[:, cells.cells]
        nearness = np.minimum.reduceat(scores, firsts, axis=1)
        home[part] = _smallest(nearness, draws[part])
        if n_blocks > 1:
            nearness[np.arange(len(nearness)), home[part]] = np.inf
            second[part] = _smallest(nearness, draws[part])
    return home, second


def _smallest(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return the column of the smallest value in each row; of equal ones, that which a random number selects."""
    is_smallest = values == values.min(axis=1, keepdims=True)
    n_equal = np.count_nonzero(is_smallest, axis=1)
    columns = is_smallest.argmax(axis=1)
    several = np.flatnonzero(n_equal > 1)
    positions = np.cumsum(is_smallest[several], axis=1)
    columns[several] = (positions > (draws[several] % n_equal[several])[:, None]).argmax(axis=1)
    return columns
