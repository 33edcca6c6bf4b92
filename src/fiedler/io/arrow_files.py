"""Tables in Parquet and Arrow files, some parts at a time: row groups of Parquet, record batches of Arrow (Feather)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import import_optional
from ..errors import FileFormatError

BATCH_ROWS = 65_536  # that are read at a time

arrow: Callable[[str], Any] = partial(import_optional, extra="text", purpose="Parquet and Arrow files")


class ArrowFormat(NamedTuple):
    """How files of a format are read.

    Attributes
    ----------
    name : str
    read_schema : callable
        From the name of a file to its columns and their types.
    count_rows : callable
        From the name of a file to the numbers of rows of its parts.
    read_parts : callable
        From the name of a file, the numbers of some parts and the names of some columns to tables of a few rows each,
        one after another.
    """

    name: str
    read_schema: Callable[[str], Any]
    count_rows: Callable[[str], list[int]]
    read_parts: Callable[[str, list[int], list[str]], Iterator[Any]]


def _parquet_schema(file: str) -> Any:
    return arrow("pyarrow.parquet").read_schema(file)


def _count_parquet_rows(file: str) -> list[int]:
    metadata = arrow("pyarrow.parquet").read_metadata(file)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def _read_parquet(file: str, parts: list[int], names: list[str]) -> Iterator[Any]:
    return arrow("pyarrow.parquet").ParquetFile(file).iter_batches(BATCH_ROWS, row_groups=parts, columns=names)


def _open_ipc(file: str, fields: list[int] | None = None) -> Any:
    ipc = arrow("pyarrow.ipc")
    options = ipc.IpcReadOptions(included_fields=fields)
    return ipc.open_file(arrow("pyarrow").memory_map(file), options=options)


def _ipc_schema(file: str) -> Any:
    return _open_ipc(file).schema


def _count_ipc_rows(file: str) -> list[int]:
    reader = _open_ipc(file, [0])  # one column is enough
    return [reader.get_batch(part).num_rows for part in range(reader.num_record_batches)]


def _read_ipc(file: str, parts: list[int], names: list[str]) -> Iterator[Any]:
    schema = _ipc_schema(file)
    reader = _open_ipc(file, sorted(schema.get_field_index(name) for name in names))
    return (reader.get_batch(part) for part in parts)


PARQUET = ArrowFormat("Parquet", _parquet_schema, _count_parquet_rows, _read_parquet)
IPC = ArrowFormat("Arrow", _ipc_schema, _count_ipc_rows, _read_ipc)
FORMATS = {".parquet": PARQUET, ".arrow": IPC, ".feather": IPC, ".ipc": IPC}


def find_files(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, in the order of their names; hidden ones are left out."""
    found = [path for path in folder.rglob("*") if path.suffix in FORMATS and path.is_file()]
    return sorted(path for path in found if not _is_hidden(path.relative_to(folder)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def read_schema(file: Path) -> Any:
    """Return the columns of a file and their types."""
    with _reading(file):
        return FORMATS[file.suffix].read_schema(str(file))


def count_rows(file: Path) -> list[int]:
    """Return the numbers of rows of the parts of a file."""
    with _reading(file):
        return FORMATS[file.suffix].count_rows(str(file))


def read_parts(
    path: str, parts: list[int], names: Sequence[str], start: int = 0, stop: int | None = None
) -> np.ndarray:
    """Read the rows of parts of a file, from ``start`` to ``stop``: numbers and vectors of columns side by side."""
    file, n_read = Path(path), 0
    batches: list[Any] = []
    with _reading(file):
        for batch in FORMATS[file.suffix].read_parts(path, parts, list(names)):
            first, n_read = n_read, n_read + batch.num_rows
            if n_read > start or not batches:
                low, high = max(start - first, 0), batch.num_rows if stop is None else max(stop - first, 0)
                batches.append(batch.slice(low, max(high - low, 0)))
            if stop is not None and n_read >= stop:
                break
        table = arrow("pyarrow").Table.from_batches(batches)
    return np.concatenate([_column(table.column(name), name, file.name) for name in names], axis=1)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Say which file cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's errors are among these
        name = FORMATS[file.suffix].name
        raise FileFormatError(f"{file.name!r} cannot be read as {name}: {error}", file=file.name) from None


def _column(cells: Any, name: str, file: str) -> np.ndarray:
    """Return a column as an array of shape (n, width); missing cells are NaN."""
    types = arrow("pyarrow.types")
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
