"""Rows of files that need not fit into memory, as Dask arrays: every block is read when it is needed.

Tables in Parquet and Arrow (Feather) files are read some parts at a time: row groups or record batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import import_optional
from ..core.parallel import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS
from ..errors import FileFormatError
from .record import reading

BATCH_ROWS = 65_536  # that are read at a time

arrow_module: Callable[..., Any] = partial(import_optional, extra="text", purpose="Parquet and Arrow files")


class Parquet:
    """Parquet files, whose parts are row groups."""

    name, code = "Parquet", "invalid_parquet"

    @staticmethod
    def read(file: str) -> Any:
        """Return the whole table."""
        return arrow_module("pyarrow.parquet", purpose="Parquet files").read_table(file)

    @staticmethod
    def read_schema(file: str) -> Any:
        """Return the columns and their types."""
        return arrow_module("pyarrow.parquet").read_schema(file)

    @staticmethod
    def count_rows(file: str) -> list[int]:
        """Return the numbers of rows of the parts."""
        metadata = arrow_module("pyarrow.parquet").read_metadata(file)
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    @staticmethod
    def read_parts(file: str, parts: list[int], names: list[str]) -> Iterator[Any]:
        """Return some columns of some parts, a few rows at a time."""
        parquet = arrow_module("pyarrow.parquet")
        return parquet.ParquetFile(file).iter_batches(BATCH_ROWS, row_groups=parts, columns=names)


class Arrow:
    """Arrow (Feather) files, whose parts are record batches."""

    name, code = "Arrow", "invalid_arrow"

    @staticmethod
    def read(file: str) -> Any:
        """Return the whole table."""
        return arrow_module("pyarrow.feather").read_table(file)

    @classmethod
    def read_schema(cls, file: str) -> Any:
        """Return the columns and their types."""
        return cls._open(file).schema

    @classmethod
    def count_rows(cls, file: str) -> list[int]:
        """Return the numbers of rows of the parts."""
        reader = cls._open(file, [0])  # one column is enough
        return [reader.get_batch(part).num_rows for part in range(reader.num_record_batches)]

    @classmethod
    def read_parts(cls, file: str, parts: list[int], names: list[str]) -> Iterator[Any]:
        """Return some columns of some parts, a few rows at a time."""
        schema = cls.read_schema(file)
        reader = cls._open(file, sorted(schema.get_field_index(name) for name in names))
        return (reader.get_batch(part) for part in parts)

    @staticmethod
    def _open(file: str, fields: list[int] | None = None) -> Any:
        ipc = arrow_module("pyarrow.ipc")
        options = ipc.IpcReadOptions(included_fields=fields)
        return ipc.open_file(arrow_module("pyarrow").memory_map(file), options=options)


Parts = type[Parquet] | type[Arrow]


def reading_parts(file: Path, parts: Parts) -> AbstractContextManager[None]:
    """Say which file cannot be read."""
    return reading(file.name, f"cannot be read as {parts.name} ({{error}})", "write the file again", parts.code)


def count_rows(file: Path, parts: Parts) -> list[int]:
    """Return the numbers of rows of the parts of a file."""
    with reading_parts(file, parts):
        return parts.count_rows(str(file))


def read_rows(
    path: str,
    parts: Parts,
    numbers: list[int],
    names: Sequence[str],
    start: int = 0,
    stop: int | None = None,
    stamp: Any = None,
) -> np.ndarray:
    """Read rows ``start`` to ``stop`` of some parts of a file: numbers and vectors of columns side by side."""
    file, n_read = Path(path), 0
    batches: list[Any] = []
    with reading_parts(file, parts):
        for batch in parts.read_parts(path, numbers, list(names)):
            first, n_read = n_read, n_read + batch.num_rows
            if n_read > start or not batches:
                low, high = max(start - first, 0), batch.num_rows if stop is None else max(stop - first, 0)
                batches.append(batch.slice(low, max(high - low, 0)))
            if stop is not None and n_read >= stop:
                break
        table = arrow_module("pyarrow").Table.from_batches(batches)
    return np.concatenate([_column(table.column(name), name, file.name) for name in names], axis=1)


def _column(cells: Any, name: str, file: str) -> np.ndarray:
    """Return a column as an array of shape (n, width); missing cells are NaN."""
    types = arrow_module("pyarrow.types")
    kind, array = cells.type, cells.combine_chunks()
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        values = array.flatten().to_numpy(zero_copy_only=False)
        width = len(values) // max(len(array), 1)
        if array.null_count or len(np.unique(array.value_lengths().to_numpy())) > 1:
            problem = f"the vectors in column {name!r} of {file!r} differ in length"
            raise FileFormatError(problem, "choose other columns with columns=", file=file, column=name)
        return values.reshape(len(array), width)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        problem = f"column {name!r} of {file!r} contains {kind}, which are not numbers"
        raise FileFormatError(problem, "choose columns of numbers or vectors with columns=", file=file, column=name)
    values = array.to_numpy(zero_copy_only=False)
    return values.astype(values.dtype if values.dtype.kind == "f" else np.float64)[:, None]


# -------------------------------------------------------------------------------------------------------------- blocks


def table_blocks(
    files: Sequence[tuple[Path, Parts]], columns: Sequence[str] | None, drop: Sequence[str], block_rows: int | None
) -> Any:
    """Group the parts of each file to blocks; all files must have the columns of the first, of the same types."""
    names = _check_columns(files, columns, drop)
    counts = [(file, parts, i, n) for file, parts in files for i, n in enumerate(count_rows(file, parts)) if n]
    if not counts:
        raise FileFormatError(f"{files[0][0].name!r} has no rows", file=files[0][0].name)
    file, parts, number, _ = counts[0]
    first = read_rows(str(file), parts, [number], names, stop=1)
    size = block_rows or _default_rows(first.shape[1] * first.dtype.itemsize)
    tasks: list[tuple[Any, ...]] = []
    sizes: list[int] = []
    for file, parts, number, n_rows in counts:
        if tasks and tasks[-1][1] == str(file) and sizes[-1] + n_rows <= size:
            tasks[-1][3].append(number)
            sizes[-1] += n_rows
            continue
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            tasks.append((read_rows, str(file), parts, [number], names, start, stop if stop < n_rows else None))
            sizes.append(stop - start)
    return _stack(tasks, sizes, first.shape[1], first.dtype)


def _check_columns(
    files: Sequence[tuple[Path, Parts]], columns: Sequence[str] | None, drop: Sequence[str]
) -> list[str]:
    """Return the names of the columns, which all files must have."""
    schemas = []
    for file, parts in files:
        with reading_parts(file, parts):
            schemas.append(parts.read_schema(str(file)))
    first = files[0][0].name
    names = [name for name in (schemas[0].names if columns is None else columns) if name not in drop]
    unknown = [name for name in drop if name not in schemas[0].names]
    if unknown or not names:
        problem = f"{first!r} has no column {unknown[0]!r}" if unknown else "no columns are left"
        raise FileFormatError(problem, f"it has {schemas[0].names}", file=first)
    for (file, _), schema in zip(files, schemas):
        for name in names:
            if name not in schema.names or schema.field(name).type != schemas[0].field(name).type:
                problem = f"{file.name!r} has no column {name!r}, or one of another type than {first!r}"
                hint = f"choose among {schemas[0].names} with columns="
                raise FileFormatError(problem, hint, file=file.name, column=name)
    return names


def npy_blocks(path: Path, block_rows: int | None) -> Any:
    """Divide an array in a file; every task opens the file itself."""
    array = _open_npy(path)
    _check_shape(array.shape, path)
    n, size = len(array), block_rows or _default_rows(array.shape[1] * array.dtype.itemsize)
    ranges = [(start, min(start + size, n)) for start in range(0, n, size)]
    tasks = [(_npy_rows, str(path), *one) for one in ranges]
    return _stack(tasks, [stop - start for start, stop in ranges], array.shape[1], array.dtype)


def zarr_blocks(path: Path, block_rows: int | None) -> Any:
    """Open a Zarr array in blocks of whole rows."""
    import_optional("zarr", extra="zarr", purpose="Zarr arrays")
    array = import_optional("dask.array", extra="dask", purpose="Dask arrays").from_zarr(str(path))
    _check_shape(array.shape, path)
    array = array.rechunk({0: block_rows or _default_rows(array.shape[1] * array.dtype.itemsize), 1: -1})
    return array.map_blocks(_unchanged, stamp=_folder_stamp(path), dtype=array.dtype, meta=array._meta)


def _default_rows(row_bytes: int) -> int:
    return max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_BYTES // max(row_bytes, 1)))


def _check_shape(shape: tuple[int, ...], path: Path) -> None:
    if len(shape) != 2:
        problem = f"{path.name!r} contains an array of shape {shape}"
        raise FileFormatError(problem, "rows and columns are needed", file=path.name)


def _open_npy(path: str | Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{str(path)!r} is not an array of numbers: {error}", file=str(path)) from None


def _npy_rows(path: str, start: int, stop: int, stamp: Any = None) -> np.ndarray:
    return np.array(_open_npy(path)[start:stop])


def _stack(tasks: Sequence[tuple[Any, ...]], sizes: Sequence[int], d: int, dtype: Any) -> Any:
    """Return a Dask array of blocks that are read by tasks: a function and its arguments, the path first."""
    da = import_optional("dask.array", extra="dask", purpose="Dask arrays")
    delayed = import_optional("dask", extra="dask", purpose="Dask arrays").delayed
    blocks = [
        da.from_delayed(delayed(read, pure=True)(*arguments, stamp=_stamp(arguments[0])), (size, d), dtype=dtype)
        for (read, *arguments), size in zip(tasks, sizes)
        if size
    ]
    return da.concatenate(blocks) if blocks else da.empty((0, d), dtype=dtype)


def _unchanged(rows: np.ndarray, stamp: Any) -> np.ndarray:
    return rows


def _folder_stamp(folder: Path) -> tuple[int, int]:
    """Return the size and the latest time of the files of a folder, by which Dask notices that it has changed."""
    status = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(one.st_size for one in status), max((one.st_mtime_ns for one in status), default=0)


def _stamp(path: str) -> tuple[int, int]:
    """Return size and time of a file, by which Dask tells a block of a changed file from one it has already."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
