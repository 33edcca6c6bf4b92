"""Rows of files that need not fit into memory, as Dask arrays: every block is read when it is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_int, import_optional
from ..errors import DataNotFoundError, FileFormatError

BLOCK_BYTES = 2**26  # of a block, by default ...
BLOCK_ROWS = 2**17  # ... and rows, at most


def read_blocks(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    block_rows: int | None = None,
) -> Any:
    """Open the rows of a file or of a folder of Parquet files as a Dask array.

    Parameters
    ----------
    path : path
        An ``.npy`` array, a ``.parquet`` file, a folder of such files (in the order of their names), or a Zarr array
        (``.zarr``).
    columns : sequence of str, optional
        The columns of Parquet files, of numbers or of vectors; by default all.
    drop : sequence of str
        Columns of Parquet files to leave out.
    block_rows : int, optional
        The number of rows in a block; by default at most 64 MB and 131,072 rows. Blocks of Parquet files are made of
        whole row groups.

    Returns
    -------
    dask.array.Array of shape (n, d)

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from fiedler.io import read_blocks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, np.zeros((100, 3), dtype=np.float32))
    >>> read_blocks(path, block_rows=40).chunks
    ((40, 40, 20), (3,))
    """
    path = Path(path).resolve()  # workers may have another current folder
    if not path.exists():
        raise DataNotFoundError(f"there is no file or folder {str(path)!r}", file=str(path))
    rows = None if block_rows is None else check_int(block_rows, "block_rows")
    if path.suffix in (".npy", ".zarr") and (columns is not None or drop):
        raise FileFormatError(
            f"the columns of {path.name!r} have no names", "leave out columns and drop", file=path.name
        )
    if path.suffix == ".npy":
        return _npy_blocks(path, rows)
    if path.suffix == ".zarr":
        array = import_optional("dask.array", extra="dask", purpose="Dask arrays").from_zarr(str(path))
        array = array.rechunk({0: rows or _default_rows(array.shape[1] * array.dtype.itemsize), 1: -1})
        return array.map_blocks(_unchanged, stamp=_folder_stamp(path), dtype=array.dtype, meta=array._meta)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or files[0].suffix != ".parquet":
        raise FileFormatError(
            f"{path.name!r} is neither an .npy, .parquet or .zarr file nor a folder of .parquet files",
            "convert the data to one of these",
            file=path.name,
        )
    return _parquet_blocks(files, columns, drop, rows)


def _default_rows(row_bytes: int) -> int:
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(row_bytes, 1)))


def _npy_blocks(path: Path, block_rows: int | None) -> Any:
    """Divide an array in a file; every task opens the file itself."""
    array = _open_npy(path)
    if array.ndim != 2:
        raise FileFormatError(
            f"{path.name!r} contains an array of shape {array.shape}", "rows and columns are needed", file=path.name
        )
    n, size = len(array), block_rows or _default_rows(array.shape[1] * array.dtype.itemsize)
    parts = [(start, min(start + size, n)) for start in range(0, n, size)]
    tasks = [(_npy_part, str(path), *part) for part in parts]
    return _stack(tasks, [stop - start for start, stop in parts], array.shape[1], array.dtype)


def _open_npy(path: str | Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{str(path)!r} is not an array of numbers: {error}", file=str(path)) from None


def _npy_part(path: str, start: int, stop: int, stamp: Any = None) -> np.ndarray:
    return np.array(_open_npy(path)[start:stop])


def _parquet_blocks(
    files: list[Path], columns: Sequence[str] | None, drop: Sequence[str], block_rows: int | None
) -> Any:
    """Group the row groups of each file to blocks; all files must have the columns of the first, of the same types."""
    schemas = [_schema(file) for file in files]
    names = [name for name in (schemas[0].names if columns is None else columns) if name not in drop]
    unknown = [name for name in drop if name not in schemas[0].names]
    if unknown or not names:
        raise FileFormatError(
            f"{files[0].name!r} has no column {unknown[0]!r}" if unknown else "no columns are left",
            f"it has {schemas[0].names}",
            file=files[0].name,
        )
    for file, schema in zip(files, schemas):
        for name in names:
            if name not in schema.names or schema.field(name).type != schemas[0].field(name).type:
                raise FileFormatError(
                    f"{file.name!r} has no column {name!r}, or one of another type than {files[0].name!r}",
                    f"choose among {schemas[0].names} with columns=",
                    file=file.name,
                    column=name,
                )
    groups = [(file, *group) for file in files for group in _row_groups(file)]
    if not groups:
        raise FileFormatError(f"{files[0].name!r} has no rows", file=files[0].name)
    file, group, _ = next((group for group in groups if group[2]), groups[0])
    first = _parquet_part(str(file), [group], names)
    size = block_rows or _default_rows(first.shape[1] * first.dtype.itemsize)
    tasks: list[tuple[Any, ...]] = []
    sizes: list[int] = []
    for file, group, n_rows in groups:
        if tasks and tasks[-1][1] == str(file) and sizes[-1] < size:
            tasks[-1][2].append(group)
            sizes[-1] += n_rows
        else:
            tasks.append((_parquet_part, str(file), [group], names))
            sizes.append(n_rows)
    return _stack(tasks, sizes, first.shape[1], first.dtype)


def _schema(file: Path) -> Any:
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    try:
        return parquet.read_schema(file)
    except (OSError, ValueError) as error:  # pyarrow's errors are among these
        raise FileFormatError(f"{file.name!r} cannot be read as Parquet: {error}", file=file.name) from None


def _row_groups(file: Path) -> list[tuple[int, int]]:
    """Return the number and the size of every row group."""
    metadata = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files").read_metadata(file)
    return [(group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]


def _parquet_part(path: str, groups: list[int], names: list[str], stamp: Any = None) -> np.ndarray:
    """Read row groups of a file: columns of numbers, and of vectors, side by side."""
    parquet = import_optional("pyarrow.parquet", extra="text", purpose="Parquet files")
    table = parquet.ParquetFile(path).read_row_groups(groups, columns=names)
    parts = [_column(table.column(name), name, Path(path).name) for name in names]
    return np.concatenate(parts, axis=1)


def _column(cells: Any, name: str, file: str) -> np.ndarray:
    """Return a column as an array of shape (n, width); missing cells are NaN."""
    types = import_optional("pyarrow.types", extra="text", purpose="Parquet files")
    kind, array = cells.type, cells.combine_chunks()
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        values = array.flatten().to_numpy(zero_copy_only=False)
        width = len(values) // max(len(array), 1)
        if array.null_count or len(np.unique(array.value_lengths().to_numpy())) > 1:
            raise FileFormatError(
                f"the vectors in column {name!r} of {file!r} differ in length",
                "choose other columns with columns=",
                file=file,
                column=name,
            )
        return values.reshape(len(array), width)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise FileFormatError(
            f"column {name!r} of {file!r} contains {kind}, which are not numbers",
            "choose columns of numbers or vectors with columns=",
            file=file,
            column=name,
        )
    values = array.to_numpy(zero_copy_only=False)
    return values.astype(values.dtype if values.dtype.kind == "f" else np.float64)[:, None]


def _stack(tasks: Sequence[tuple[Any, ...]], sizes: Sequence[int], d: int, dtype: Any) -> Any:
    """Return a Dask array of blocks that are read by tasks: a function and its arguments."""
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
