"""Rows in blocks: those of a Dask array, written to files once, and divided anew by cells of nearby rows.

Most neighbours of a row should be in its own block.
The centres of the cells are found by k-means on a sample. Cells are joined to as many blocks as there are of the input,
of about the same number of rows, by repeated bisection along the direction in which the centres vary most. A row
belongs to the block of its nearest centre, its *home*, and is a *guest* in the nearest other block: it is searched for
in both, and searches in both. A cell with far more rows than a block should have is divided again; if its rows are
equal, it belongs to several blocks, and each of its rows to one of these, drawn at random.

Rows are numbered by block, and in a block by their order in the input. A row is known by this *node* in all graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.random import sample_without_replacement

from .._validation import check_data
from ..core.arrays import Array, row_blocks, sq_row_norms, take_rows
from ..core.fitting import is_dask_array
from ..core.kmeans import kmeans
from ..core.parallel import CELLS_PER_BLOCK, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, MAX_CELLS
from ..errors import InputError, ignore_warnings
from .run import Run, import_dask
from .store import Sliced, Task, Workspace

MIN_SAMPLED_PER_CELL = 4
MAX_ITERATIONS = 10  # of k-means
MAX_DIVISIONS = 10  # of a large cell into smaller ones
MAX_CELL_SIZE = 2  # rows of a cell that is not divided, relative to those of a block
SEED = 0  # of the blocks of equal rows
MIN_BLOCK_ROWS = 500  # on average; of fewer rows, most have neighbours in many other blocks
MAX_FINER = 8  # times as many blocks as these limits ask for, if the input has as many


# ------------------------------------------------------------------------------------------ the rows of a Dask array


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Rows in the blocks of a Dask array, in files."""

    run: Run
    step: str  # that wrote the blocks
    sizes: np.ndarray  # the number of rows of each block
    n_features: int
    dtype: np.dtype
    is_sparse: bool

    @classmethod
    def store(cls, run: Run, X: Any) -> RowBlocks:
        """Compute the blocks of a Dask array, check them, and write them to files."""
        step, blocks = "rows", input_blocks(X)
        width = None if np.isnan(X.shape[1]) else int(X.shape[1])
        run.map_delayed(step, check_block, blocks, n_features=width, dtype=float_type(X.dtype))
        shapes = np.array([*run.read_all(step, "shape", len(blocks))])
        kinds = {bool(kind) for kind in run.read_all(step, "is_sparse", np.flatnonzero(shapes[:, 0]).tolist())}
        if len(kinds) > 1:
            problem = "some blocks of X are sparse and some are not"
            raise InputError(problem, "use one kind", code="mixed_blocks", parameter="X")
        widths = shapes[shapes[:, 0] > 0, 1]
        if not len(widths):
            raise InputError("X has no rows", "check how it is read", code="no_rows", parameter="X")
        if len(set(widths.tolist())) > 1:
            other = int(np.flatnonzero((shapes[:, 1] != widths[0]) & (shapes[:, 0] > 0))[0])
            problem = f"block {other} of X has {shapes[other, 1]} columns, but the first one has {widths[0]}"
            raise InputError(problem, "give all blocks the same columns", code="unequal_blocks", block=other)
        return cls(run, step, shapes[:, 0], int(widths[0]), float_type(X.dtype), kinds.pop())

    def transform(self, step: str, function: Callable[[Array], Array]) -> RowBlocks:
        """Return the same rows in other columns, which a function computes from the rows of a block."""
        self.run.map(step, transform_block, self.blocks, rows=self.step, function=function)
        X = self.run.workspace.read_one(step, self.blocks[0], "rows")
        return replace(self, step=step, n_features=X.shape[1], dtype=X.dtype, is_sparse=sp.issparse(X))

    def describe(self, model: Any) -> None:
        """Set the attributes of a model that tell of its input."""
        model.n_features_in_ = self.n_features
        model.__dict__.pop("feature_names_in_", None)

    @cached_property
    def blocks(self) -> list[int]:
        """The numbers of the blocks that are not empty."""
        return [int(block) for block in np.flatnonzero(self.sizes)]

    @property
    def n_rows(self) -> int:
        """The number of rows of all blocks together."""
        return int(self.sizes.sum())

    @cached_property
    def starts(self) -> np.ndarray:
        """The number of the first row of each block, and n."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def most_rows(self, max_rows: int, max_bytes: int) -> int:
        """Return how many rows there may be within limits of their number and, if they are dense, their size."""
        return max_rows if self.is_sparse else min(max_rows, max_bytes // (self.dtype.itemsize * self.n_features))

    def draw(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw the numbers of some rows, in ascending order; all rows if there are no more."""
        if size >= self.n_rows:
            return np.arange(self.n_rows)
        return np.sort(sample_without_replacement(self.n_rows, size, random_state=rng))

    def select(self, numbers: np.ndarray, step: str) -> Array:
        """Return some rows, given by their numbers, in a step of its own; see `select_values`."""
        return select_values(self.run, step, self.step, ("rows",), numbers, self.starts)[0]

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the variance of each column of dense rows, in double precision."""
        read = self.run.workspace.read
        parts = ((int(self.sizes[block]), *read(self.step, block, "mean", "deviations")) for block in self.blocks)
        return add_moments(parts)

    def as_dask(self, step: str, name: str, width: tuple[int, ...], dtype: Any, empty: Array | None = None) -> Any:
        """Return values that a step has written for all blocks with rows, as a Dask array with the blocks of the rows.

        The array keeps a temporary work directory alive. ``empty`` is a block without rows, if blocks are sparse.
        """
        empty = np.empty((0, *width), dtype=dtype) if empty is None else empty
        return import_dask("dask.array").map_blocks(
            _read_block,
            workspace=self.run.workspace,
            identity=self.run.workspace.identity,  # another fit in the same directory has other values
            source=(step, name),
            empty=empty,
            blocks=self.blocks,
            chunks=(tuple(self.sizes.tolist()), *((size,) for size in width)),
            dtype=dtype,
            meta=empty,
        )


def transform_block(task: Task, *, rows: str, function: Callable[[Array], Array]) -> dict[str, Array]:
    """Transform the rows of a block of the input."""
    transformed = function(task.read_one(rows, "rows"))
    return {"rows": sp.csr_array(transformed) if sp.issparse(transformed) else np.asarray(transformed)}


def _read_block(
    *, workspace: Workspace, identity: str, source: tuple[str, str], empty: Array, blocks: list[int], block_id: Any
) -> np.ndarray:
    """Read the values of one block of a Dask array; blocks without rows have no file."""
    (step, name), block = source, block_id[0]
    return workspace.read_one(step, block, name) if block in blocks else empty


def select_values(
    run: Run, step: str, source: str, names: tuple[str, ...], numbers: np.ndarray, starts: np.ndarray
) -> tuple[Array, ...]:
    """Return values of some rows or nodes: workers read the blocks and select them, this process joins the parts.

    They are the arrays ``names`` that the step ``source`` wrote. ``starts`` has the first number of each block, and
    the number of all.
    """
    numbers, back = np.unique(numbers, return_inverse=True)
    (stored,) = run.once(f"{step}-numbers", lambda: {"numbers": numbers, "starts": starts}, "numbers")
    assert np.array_equal(stored, numbers), f"the step {step} selects other rows"
    blocks = np.unique(np.searchsorted(starts, numbers, side="right") - 1).tolist()
    run.map(step, select_block, blocks, source=source, names=names, numbers=f"{step}-numbers")
    joined = (stack([*run.read_all(step, name, blocks)]) for name in names)
    is_sorted = np.array_equal(back, np.arange(len(numbers)))
    return tuple(values if is_sorted else take_rows(values, back) for values in joined)


def select_block(task: Task, *, source: str, names: tuple[str, ...], numbers: str) -> dict[str, Array]:
    """Select values of a block."""
    wanted, starts = task.workspace.read(numbers, 0, "numbers", "starts")
    first, last = np.searchsorted(wanted, starts[task.block : task.block + 2])
    places = wanted[first:last] - starts[task.block]
    return {name: take_rows(task.read_one(source, name), places) for name in names}


def store_values(rows: RowBlocks, values: Any, step: str, check: Callable[[np.ndarray], np.ndarray]) -> None:
    """Write given values of the rows, an array or a Dask array, in the blocks of the rows."""
    if not is_dask_array(values):
        values = np.asarray(values)
        if values.ndim and values.shape[0] == rows.n_rows:
            chunks = (tuple(rows.sizes.tolist()), *values.shape[1:])
            values = import_dask("dask.array").from_array(values, chunks=chunks)
    if not is_dask_array(values) or len(values.chunks[0]) != len(rows.sizes):
        problem = (
            f"{step} must have one value for each of the {rows.n_rows} rows of X, in the same blocks; "
            f"its shape is {tuple(values.shape)}"
        )
        raise InputError(problem, "give it the chunks of X", code="wrong_length", parameter=step)
    blocks = list(values.to_delayed(optimize_graph=False).ravel())
    rows.run.map_delayed(step, check_values, blocks, sizes=rows.sizes, check=check, name=step)


def check_values(
    values: Any, block: int, *, sizes: np.ndarray, check: Callable[[np.ndarray], np.ndarray], name: str
) -> dict[str, Array]:
    """Check the values of the rows of a block."""
    values = np.asarray(values)
    if values.ndim == 0 or len(values) != sizes[block]:
        problem = f"block {block} of {name} has {values.size} values, but that of X has {sizes[block]} rows"
        raise InputError(problem, "give it the chunks of X", code="wrong_length", parameter=name, block=block)
    return {"values": check(values)}


def stack(parts: Sequence[Array]) -> Array:
    """Join dense or sparse rows."""
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def input_blocks(X: Any) -> list[Any]:
    """Return the blocks of a Dask array as delayed objects, after a check of its shape and type."""
    check_shape(X)
    # without optimisation: the fused tasks of two computations may have the same names and differ, which confuses Dask
    return list(X.to_delayed(optimize_graph=False).ravel())


def check_shape(X: Any) -> None:
    """Check that a Dask array has rows of numbers, whose columns are not divided."""
    if X.ndim != 2:
        problem = f"X must have two dimensions (samples, features); got shape {tuple(X.shape)}"
        raise InputError(problem, code="wrong_shape")
    if len(X.chunks[1]) > 1:
        problem = f"the columns of X are divided into {len(X.chunks[1])} blocks"
        hint = "make blocks of whole rows with X.rechunk({1: -1})"
        raise InputError(problem, hint, code="divided_columns", parameter="X")
    if np.dtype(X.dtype).kind not in "biuf":
        problem = f"X has dtype {X.dtype}, which is not one of numbers"
        raise InputError(problem, "convert it to float32 or float64", code="wrong_dtype")


def float_type(dtype: Any) -> np.dtype:
    """Return float32 for float32, and float64 for all other numbers."""
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


def check_block(rows: Any, block: int, *, n_features: int | None, dtype: np.dtype) -> dict[str, Array]:
    """Check the rows of a block of a Dask array."""
    rows = sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows)
    if rows.ndim == 2 and rows.shape[0] == 0:
        return {"rows": rows.astype(dtype), "shape": np.array(rows.shape), "is_sparse": np.array(sp.issparse(rows))}
    try:
        checked = check_data(rows)
    except InputError as error:
        where = f"block {block}, row {error.fields['row']} of it" if "row" in error.fields else f"block {block}"
        fields = {**error.fields, "block": block}
        raise InputError(f"{where}: {error.problem}", error.hint, code=error.code, **fields) from None
    if n_features is not None and checked.shape[1] != n_features:
        problem = f"block {block} of X has {checked.shape[1]} columns, but X has {n_features}"
        raise InputError(problem, "give all blocks the same columns", code="unequal_blocks", block=block)
    facts: dict[str, Array] = {"shape": np.array(checked.shape), "is_sparse": np.array(sp.issparse(checked))}
    if not sp.issparse(checked):
        facts["mean"] = mean = checked.mean(axis=0, dtype=np.float64)
        parts = row_blocks(checked.shape[0], 16 * checked.shape[1], checked)
        facts["deviations"] = sum(((checked[part] - mean) ** 2).sum(axis=0) for part in parts)
    return {"rows": checked.astype(dtype, copy=False), **facts}


def add_moments(parts: Iterable[tuple[int, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the columns of all rows.

    The parts are the number of rows, the mean, and the sum of squared deviations from it, of each block with rows.
    """
    count, mean, deviations = 0, np.zeros(()), np.zeros(())
    for size, mean_here, deviations_here in parts:
        difference, count = mean_here - mean, count + size
        deviations = deviations + deviations_here + difference**2 * (size * (count - size) / count)
        mean = mean + difference * (size / count)
    return mean, deviations / count


# ---------------------------------------------------------------------------------------------- blocks of nearby rows


@dataclass(frozen=True, eq=False)
class CellBlocks:
    """Rows in blocks of nearby rows."""

    rows: RowBlocks  # in the blocks of the input
    layout: Layout

    @classmethod
    def divide(cls, rows: RowBlocks, sample: Array, prefix: str, random_state: int) -> CellBlocks:
        """Divide rows by the cells of a sample of them; the names of the steps begin with ``prefix``."""
        run = rows.run
        n_blocks = min(count_blocks(rows), max(1, sample.shape[0] // MIN_SAMPLED_PER_CELL))
        (blocks,) = run.once(f"{prefix}cells", lambda: find_cells(sample, n_blocks, random_state)._asdict(), "blocks")
        n_blocks = int(blocks[-1]) + 1
        step = f"{prefix}division"
        run.map(step, divide_block, rows.blocks, rows=rows.step, cells=f"{prefix}cells", n_blocks=n_blocks)
        counts = np.zeros((len(rows.sizes), n_blocks), dtype=np.int64)
        counts[rows.blocks] = [*run.read_all(step, "counts", rows.blocks)]
        run.once(f"{prefix}layout", lambda: {"counts": counts})
        return cls(rows, Layout.read(run.workspace, step, f"{prefix}layout"))

    @property
    def run(self) -> Run:
        """The fit."""
        return self.rows.run

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self.layout.n_blocks

    def divide_values(self, step: str, source: str) -> None:
        """Divide the values of rows that a step wrote by the blocks of nearby rows, see `Layout.read_values`."""
        self.run.map(step, divide_values, self.rows.blocks, layout=self.layout, source=source)

    def collect(self, ends: str, names: tuple[str, ...]) -> str:
        """Return the step with values of all nodes, divided by the blocks of the input, in the order of its rows."""
        self.run.map("result", collect_block, self.rows.blocks, layout=self.layout, ends=ends, names=names)
        return "result"

    def nodes_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the nodes of some rows, given by their numbers."""
        starts, step = self.rows.starts, self.layout.step
        home, rank = select_values(self.run, f"{step}-places", step, ("home", "rank"), numbers, starts)
        origin = np.searchsorted(starts, numbers, side="right") - 1
        return self.layout.nodes(origin, home.astype(np.int64), rank.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Layout:
    """Which nodes are the rows of each block: what a task knows of the other blocks.

    It is sent to tasks as the name of its file, which every worker reads once.
    """

    step: str  # that divided the rows
    counts: np.ndarray  # (n_inputs, n_blocks), the number of rows that each block has from each block of the input
    source: tuple[Any, ...]  # the arguments of `read`

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

    def read_rows(self, task: Task) -> Array:
        """Read the rows of a block, in the order of their nodes."""
        return stack(task.read_parts(self.step, self.origins, "rows"))

    def read_values(self, task: Task, step: str) -> np.ndarray:
        """Read values of the rows of a block, in the order of their nodes."""
        return np.concatenate(task.read_parts(step, self.origins, "values"))

    def read_guests(self, task: Task) -> tuple[Array, np.ndarray]:
        """Read the guests of a block, and their nodes."""
        names = ("guests", "guests' home", "guests' rank")
        guests, homes, ranks = (task.read_parts(self.step, self.origins, name) for name in names)
        nodes = [self.nodes(origin, home, rank) for origin, home, rank in zip(self.origins, homes, ranks)]
        return stack(guests), np.concatenate(nodes)


@lru_cache(maxsize=4)
def _read_layout(folder: str, identity: str | None, step: str, file: str) -> Layout:
    return Layout.read(Workspace(folder), step, file)


def count_blocks(rows: RowBlocks) -> int:
    """Return the number of blocks into which rows are divided: that of the input, within limits of their size."""
    row_bytes = 0 if rows.is_sparse else rows.dtype.itemsize * rows.n_features
    needed = math.ceil(max(rows.n_rows / MAX_BLOCK_ROWS, rows.n_rows * row_bytes / MAX_BLOCK_BYTES))
    n_blocks = min(max(len(rows.blocks), needed), MAX_FINER * needed)
    return max(1, min(n_blocks, rows.n_rows // MIN_BLOCK_ROWS))


class BlockCells(NamedTuple):
    """Cells, and the blocks to which they belong."""

    centers: np.ndarray
    cells: np.ndarray  # pairs of a cell and a block, in the order of the blocks ...
    blocks: np.ndarray  # ... of which a cell of many equal rows belongs to several


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


def divide_block(task: Task, *, rows: str, cells: str, n_blocks: int) -> dict[str, Array | Sliced]:
    """Divide the rows of a block of the input by their home, and by the block in which they are guests."""
    X = task.read_one(rows, "rows")
    home, second = two_nearest_blocks(X, BlockCells(*task.workspace.read(cells, 0, *BlockCells._fields)), n_blocks)
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


def divide_values(task: Task, *, layout: Layout, source: str) -> dict[str, Sliced]:
    """Divide values of the rows of a block of the input by the home of the rows."""
    values, home = task.read_one(source, "values"), task.read_one(layout.step, "home")
    return {"values": Sliced.sorted_by(values, home, layout.n_blocks)}


def collect_block(task: Task, *, layout: Layout, ends: str, names: tuple[str, ...]) -> dict[str, Array]:
    """Collect values of the rows of a block of the input, in their order."""
    places = np.argsort(np.argsort(task.read_one(layout.step, "home"), kind="stable"))
    every = range(layout.n_blocks)
    return {name: take_rows(stack(task.read_parts(ends, every, name)), places) for name in names}


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
