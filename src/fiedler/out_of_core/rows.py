"""The rows of a Dask array as blocks in files.

The blocks of the array are computed once; all later steps read files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.random import sample_without_replacement

from .._validation import check_data, import_optional
from ..core.backend import Array, row_blocks
from ..core.block_versions import is_dask_array
from ..core.rows import take_rows
from ..errors import InputError
from .run import Run
from .workspace import Workspace


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Rows in blocks, in files.

    Attributes
    ----------
    run : Run
    step : str
        The step that wrote the blocks.
    sizes : ndarray of shape (n_blocks,)
        The number of rows of each block.
    n_features : int
    dtype : dtype
    is_sparse : bool
    """

    run: Run
    step: str
    sizes: np.ndarray
    n_features: int
    dtype: np.dtype
    is_sparse: bool

    @classmethod
    def store(cls, run: Run, X: Any, step: str = "rows") -> RowBlocks:
        """Compute the blocks of a Dask array, check them, and write them to files."""
        blocks = input_blocks(X)
        width = None if np.isnan(X.shape[1]) else int(X.shape[1])
        run.map_delayed(step, check_block, blocks, n_features=width, dtype=float_type(X.dtype))
        return cls._found(run, step, len(blocks), float_type(X.dtype))

    @classmethod
    def _found(cls, run: Run, step: str, n_blocks: int, dtype: np.dtype) -> RowBlocks:
        """Return the blocks that a step has written."""
        shapes = np.array([run.workspace.read_one(step, block, "shape") for block in range(n_blocks)])
        kinds = {
            bool(run.workspace.read_one(step, block, "is_sparse")) for block in np.flatnonzero(shapes[:, 0]).tolist()
        }
        if len(kinds) > 1:
            raise InputError(
                "some blocks of X are sparse and some are not", "use one kind", code="mixed_blocks", parameter="X"
            )
        widths = shapes[shapes[:, 0] > 0, 1]
        if not len(widths):
            raise InputError("X has no rows", "check how it is read", code="no_rows", parameter="X")
        if len(set(widths.tolist())) > 1:
            other = int(np.flatnonzero((shapes[:, 1] != widths[0]) & (shapes[:, 0] > 0))[0])
            raise InputError(
                f"block {other} of X has {shapes[other, 1]} columns, but the first one has {widths[0]}",
                "give all blocks the same columns",
                code="unequal_blocks",
                block=other,
            )
        return cls(run, step, shapes[:, 0], int(widths[0]), dtype, kinds.pop())

    def transformed(self, step: str) -> RowBlocks:
        """Return the same rows in other columns, as a step has written them for all blocks with rows."""
        X = self.run.workspace.read_one(step, self.blocks[0], "rows")
        return replace(self, step=step, n_features=X.shape[1], dtype=X.dtype, is_sparse=sp.issparse(X))

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
        da = import_optional("dask.array", extra="dask", purpose="Dask arrays")
        sizes = tuple(int(size) for size in self.sizes)
        empty = np.empty((0, *width), dtype=dtype) if empty is None else empty
        chunks = (sizes, *((size,) for size in width))
        options = {"workspace": self.run.workspace, "step": step, "array": name, "empty": empty, "blocks": self.blocks}
        options["identity"] = self.run.workspace.identity  # another fit in the same directory has other values
        return da.map_blocks(_read_block, **options, chunks=chunks, dtype=dtype, meta=empty)


def _read_block(
    *,
    workspace: Workspace,
    step: str,
    array: str,
    empty: Array,
    blocks: list[int],
    identity: str | None,
    block_id: tuple[int, ...],
) -> np.ndarray:
    """Read the values of one block of a Dask array; blocks without rows have no file."""
    return workspace.read_one(step, block_id[0], array) if block_id[0] in blocks else empty


def select_values(
    run: Run, step: str, source: str, names: tuple[str, ...], numbers: np.ndarray, starts: np.ndarray
) -> tuple[Array, ...]:
    """Return values of some rows or nodes: workers read the blocks and select them, this process joins the parts.

    Parameters
    ----------
    run : Run
    step : str
        The name of the step that selects them.
    source : str
        The step that wrote the values.
    names : tuple of str
        The names of the arrays.
    numbers : ndarray of shape (m,)
        The numbers of the rows or nodes.
    starts : ndarray of shape (n_blocks + 1,)
        The first number of each block, and the number of all.
    """
    numbers, back = np.unique(numbers, return_inverse=True)
    (stored,) = run.once(f"{step}-numbers", lambda: {"numbers": numbers, "starts": starts}, "numbers")
    assert np.array_equal(stored, numbers), f"the step {step} selects other rows"
    blocks = np.unique(np.searchsorted(starts, numbers, side="right") - 1).tolist()
    run.map(step, select_block, blocks, source=source, names=names, numbers=f"{step}-numbers")
    joined = (stack([run.workspace.read_one(step, block, name) for block in blocks]) for name in names)
    is_sorted = np.array_equal(back, np.arange(len(numbers)))
    return tuple(values if is_sorted else take_rows(values, back) for values in joined)


def select_block(
    workspace: Workspace, block: int, *, source: str, names: tuple[str, ...], numbers: str
) -> dict[str, Array]:
    """Select values of a block."""
    wanted, starts = workspace.read(numbers, 0, "numbers", "starts")
    first, last = np.searchsorted(wanted, starts[block : block + 2])
    places = wanted[first:last] - starts[block]
    return {name: take_rows(workspace.read_one(source, block, name), places) for name in names}


def store_values(rows: RowBlocks, values: Any, step: str, check: Callable[[np.ndarray], np.ndarray]) -> None:
    """Write given values of the rows, an array or a Dask array, in the blocks of the rows."""
    da = import_optional("dask.array", extra="dask", purpose="Dask arrays")
    if not is_dask_array(values):
        values = np.asarray(values)
        if values.ndim and values.shape[0] == rows.n_rows:
            sizes = tuple(int(size) for size in rows.sizes)
            values = da.from_array(values, chunks=(sizes, *values.shape[1:]))
    if not is_dask_array(values) or len(values.chunks[0]) != len(rows.sizes):
        raise InputError(
            f"{step} must have one value for each of the {rows.n_rows} rows of X, in the same blocks; "
            f"its shape is {tuple(values.shape)}",
            "give it the chunks of X",
            code="wrong_length",
            parameter=step,
        )
    blocks = list(values.to_delayed(optimize_graph=False).ravel())
    rows.run.map_delayed(step, check_values, blocks, sizes=rows.sizes, check=check, name=step)


def check_values(
    values: Any, block: int, *, sizes: np.ndarray, check: Callable[[np.ndarray], np.ndarray], name: str
) -> dict[str, Array]:
    """Check the values of the rows of a block."""
    values = np.asarray(values)
    if values.ndim == 0 or len(values) != sizes[block]:
        raise InputError(
            f"block {block} of {name} has {values.size} values, but that of X has {sizes[block]} rows",
            "give it the chunks of X",
            code="wrong_length",
            parameter=name,
            block=block,
        )
    return {"values": check(values)}


def stack(parts: Sequence[Array]) -> Array:
    """Join dense or sparse rows."""
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def input_blocks(X: Any) -> list[Any]:
    """Return the blocks of a Dask array as delayed objects, after a check of its shape and type.

    Their graph is not optimised: the fused tasks of two computations may have the same names and differ, which confuses
    the scheduler.
    """
    check_shape(X)
    return list(X.to_delayed(optimize_graph=False).ravel())


def check_shape(X: Any) -> None:
    """Check that a Dask array has rows of numbers, whose columns are not divided."""
    if X.ndim != 2:
        raise InputError(
            f"X must have two dimensions (samples, features); got shape {tuple(X.shape)}", code="wrong_shape"
        )
    if len(X.chunks[1]) > 1:
        raise InputError(
            f"the columns of X are divided into {len(X.chunks[1])} blocks",
            "make blocks of whole rows with X.rechunk({1: -1})",
            code="divided_columns",
            parameter="X",
        )
    if np.dtype(X.dtype).kind not in "biuf":
        raise InputError(
            f"X has dtype {X.dtype}, which is not one of numbers",
            "convert it to float32 or float64",
            code="wrong_dtype",
        )


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
        raise InputError(
            f"block {block} of X has {checked.shape[1]} columns, but X has {n_features}",
            "give all blocks the same columns",
            code="unequal_blocks",
            block=block,
        )
    facts = {"shape": np.array(checked.shape), "is_sparse": np.array(sp.issparse(checked))}
    return {"rows": checked.astype(dtype, copy=False), **facts} | _moments(checked)


def add_moments(parts: Iterable[tuple[int, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the columns of all rows, from those of blocks of rows.

    Parameters
    ----------
    parts : iterable of tuples
        The number of rows, the mean, and the sum of squared deviations from it, of each block that has rows.
    """
    count, mean, deviations = 0, np.zeros(()), np.zeros(())
    for size, mean_here, deviations_here in parts:
        difference, count = mean_here - mean, count + size
        deviations = deviations + deviations_here + difference**2 * (size * (count - size) / count)
        mean = mean + difference * (size / count)
    return mean, deviations / count


def _moments(rows: Array) -> dict[str, Array]:
    """Return the mean of dense rows, and the sums of squared deviations from it, in double precision."""
    if sp.issparse(rows):
        return {}
    mean = rows.mean(axis=0, dtype=np.float64)
    parts = row_blocks(rows.shape[0], 16 * rows.shape[1], rows)
    return {"mean": mean, "deviations": sum(((rows[part] - mean) ** 2).sum(axis=0) for part in parts)}
