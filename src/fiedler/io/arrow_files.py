"""Tables in Parquet and Arrow files, some parts at a time: row groups of Parquet, record batches of Arrow (Feather)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import import_optional
from ..errors import FileFormatError

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
        From the name of a file, the numbers of some parts and the names of some columns to a table.
    """

    name: str
    read_schema: Callable[[str], Any]
    count_rows: Callable[[str], list[int]]
    read_parts: Callable[[str, list[int], list[str]], Any]


def _parquet_schema(file: str) -> Any:
    return arrow("pyarrow.parquet").read_schema(file)


def _count_parquet_rows(file: str) -> list[int]:
    metadata = arrow("pyarrow.parquet").read_metadata(file)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def _read_parquet(file: str, parts: list[int], names: list[str]) -> Any:
    return arrow("pyarrow.parquet").ParquetFile(file).read_row_groups(parts, columns=names)


def _open_ipc(file: str, fields: list[int] | None = None) -> Any:
    ipc = arrow("pyarrow.ipc")
    options = ipc.IpcReadOptions(included_fields=fields)
    return ipc.open_file(arrow("pyarrow").memory_map(file), options=options)


def _ipc_schema(file: str) -> Any:
    return _open_ipc(file).schema


def _count_ipc_rows(file: str) -> list[int]:
    reader = _open_ipc(file, [0])  # one column is enough
    return [reader.get_batch(part).num_rows for part in range(reader.num_record_batches)]


def _read_ipc(file: str, parts: list[int], names: list[str]) -> Any:
    schema = _ipc_schema(file)
    reader = _open_ipc(file, sorted(schema.get_field_index(name) for name in names))
    return arrow("pyarrow").Table.from_batches([reader.get_batch(part) for part in parts])


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
    kind = FORMATS[file.suffix]
    try:
        return kind.read_schema(str(file))
    except (OSError, ValueError) as error:  # pyarrow's errors are among these
        raise FileFormatError(f"{file.name!r} cannot be read as {kind.name}: {error}", file=file.name) from None


def count_rows(file: Path) -> list[int]:
    """Return the numbers of rows of the parts of a file."""
    return FORMATS[file.suffix].count_rows(str(file))


def read_parts(path: str, parts: list[int], names: Sequence[str]) -> np.ndarray:
    """Read parts of a file: columns of numbers, and of vectors, side by side."""
    file = Path(path)
    table = FORMATS[file.suffix].read_parts(path, parts, list(names))
    return np.concatenate([_column(table.column(name), name, file.name) for name in names], axis=1)


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
