"""Rows of files that need not fit into memory, as Dask arrays: every block is read when it is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_int, import_optional
from ..core.parallel import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS
from ..errors import DataNotFoundError, FileFormatError
from .arrow_files import FORMATS, count_rows, find_files, read_parts, read_schema

_ENDINGS = ", ".join(FORMATS)


def read_blocks(
    path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    block_rows: int | None = None,
) -> Any:
    """Open the rows of a file or of a folder of tables as a Dask array.

    Parameters
    ----------
    path : path or pyarrow.dataset.FileSystemDataset
        An ``.npy`` array; a table in a Parquet (``.parquet``) or Arrow file (``.arrow``, ``.feather``, ``.ipc``); a
        folder of tables, in the order of their names, those of subfolders included; a Zarr array (``.zarr``); or an
        Arrow data set of local files. The columns that the names of subfolders stand for are not read.
    columns : sequence of str, optional
        The columns of tables, of numbers or of vectors; by default all.
    drop : sequence of str
        Columns of tables to leave out.
    block_rows : int, optional
        The largest number of rows in a block; by default 131,072, or fewer in 64 MB. Blocks of tables are made of whole
        row groups (Parquet) or record batches (Arrow) where these are not larger.

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
    rows = None if block_rows is None else check_int(block_rows, "block_rows")
    if hasattr(path, "get_fragments"):
        return _table_blocks(_files_of_dataset(path), columns, drop, rows)
    path = _existing(path)
    if path.suffix in (".npy", ".zarr") and (columns is not None or drop):
        raise FileFormatError(
            f"the columns of {path.name!r} have no names", "leave out columns and drop", file=path.name
        )
    if path.suffix == ".npy":
        return _npy_blocks(path, rows)
    if path.suffix == ".zarr":
        import_optional("zarr", extra="zarr", purpose="Zarr arrays")
        array = import_optional("dask.array", extra="dask", purpose="Dask arrays").from_zarr(str(path))
        _check_shape(array.shape, path)
        array = array.rechunk({0: rows or _default_rows(array.shape[1] * array.dtype.itemsize), 1: -1})
        return array.map_blocks(_unchanged, stamp=_folder_stamp(path), dtype=array.dtype, meta=array._meta)
    files = find_files(path) if path.is_dir() else [path]
    if not files:
        raise FileFormatError(
            f"the folder {path.name!r} has no tables", f"give a folder of {_ENDINGS} files", file=path.name
        )
    return _table_blocks(files, columns, drop, rows)


def _existing(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file, since workers may have another current folder."""
    absolute = Path(path).resolve()
    if not absolute.exists():
        raise DataNotFoundError(f"there is no file or folder {str(absolute)!r}", file=str(absolute))
    return absolute


def _default_rows(row_bytes: int) -> int:
    return max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_BYTES // max(row_bytes, 1)))


def _npy_blocks(path: Path, block_rows: int | None) -> Any:
    """Divide an array in a file; every task opens the file itself."""
    array = _open_npy(path)
    _check_shape(array.shape, path)
    n, size = len(array), block_rows or _default_rows(array.shape[1] * array.dtype.itemsize)
    parts = [(start, min(start + size, n)) for start in range(0, n, size)]
    tasks = [(_npy_part, str(path), *part) for part in parts]
    return _stack(tasks, [stop - start for start, stop in parts], array.shape[1], array.dtype)


def _check_shape(shape: tuple[int, ...], path: Path) -> None:
    if len(shape) != 2:
        raise FileFormatError(
            f"{path.name!r} contains an array of shape {shape}", "rows and columns are needed", file=path.name
        )


def _files_of_dataset(dataset: Any) -> list[Path]:
    """Return the files of an Arrow data set, which must be local and contain no other rows than those of the set."""
    files = [_existing(file) for file in getattr(dataset, "files", [])]
    n_rows = sum(sum(count_rows(file)) for file in files if file.suffix in FORMATS)
    if not files or n_rows != dataset.count_rows():
        raise FileFormatError(
            "the Arrow data set is filtered, or not made of files" if files else "the Arrow data set has no files",
            "write it to Parquet files first, with pyarrow.dataset.write_dataset",
        )
    return files


def _open_npy(path: str | Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{str(path)!r} is not an array of numbers: {error}", file=str(path)) from None


def _npy_part(path: str, start: int, stop: int, stamp: Any = None) -> np.ndarray:
    return np.array(_open_npy(path)[start:stop])


def _table_blocks(files: list[Path], columns: Sequence[str] | None, drop: Sequence[str], block_rows: int | None) -> Any:
    """Group the parts of each file to blocks; all files must have the columns of the first, of the same types."""
    for file in files:
        if file.suffix not in FORMATS:
            raise FileFormatError(
                f"{file.name!r} is neither an array (.npy, .zarr) nor a table ({_ENDINGS})",
                "convert the data to one of these",
                file=file.name,
            )
    names = _check_columns(files, columns, drop)
    parts = [(file, number, n_rows) for file in files for number, n_rows in enumerate(count_rows(file)) if n_rows]
    if not parts:
        raise FileFormatError(f"{files[0].name!r} has no rows", file=files[0].name)
    first = read_parts(str(parts[0][0]), [parts[0][1]], names, stop=1)
    size = block_rows or _default_rows(first.shape[1] * first.dtype.itemsize)
    tasks: list[tuple[Any, ...]] = []
    sizes: list[int] = []
    for file, number, n_rows in parts:
        if tasks and tasks[-1][1] == str(file) and sizes[-1] + n_rows <= size:
            tasks[-1][2].append(number)
            sizes[-1] += n_rows
            continue
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            tasks.append((_table_part, str(file), [number], names, start, stop if stop < n_rows else None))
            sizes.append(stop - start)
    return _stack(tasks, sizes, first.shape[1], first.dtype)


def _check_columns(files: list[Path], columns: Sequence[str] | None, drop: Sequence[str]) -> list[str]:
    """Return the names of the columns, which all files must have."""
    schemas = [read_schema(file) for file in files]
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
    return names


def _table_part(
    path: str, parts: list[int], names: list[str], start: int, stop: int | None, stamp: Any = None
) -> np.ndarray:
    return read_parts(path, parts, names, start, stop)


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
