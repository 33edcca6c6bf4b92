"""Make the k-th operation of a kind fail, for every k until none is left.

An operation counts if it concerns a file below a folder, so that files of other libraries are left alone. A failed
write leaves half of its bytes in the file, as a full disk does.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FULL_DISK = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FILE_FAULTS = ("open", "write", "close", "fsync", "replace", "mkdir")
ALLOCATORS = ("array", "empty", "zeros", "ones", "full", "frombuffer", "concatenate", "stack")


class Fault:
    """A countdown to the operation that fails; if it is ``lasting``, all operations after it fail as well."""

    def __init__(self, kind: str, k: int, folder: Path, lasting: bool = False) -> None:
        self.kind, self.left, self.folder, self.lasting = kind, k, str(folder), lasting

    @property
    def has_happened(self) -> bool:
        """Whether there were as many operations."""
        return self.left <= 0

    def is_due(self, kind: str, path: Any = None) -> bool:
        """Count an operation, and return whether it has to fail."""
        if kind != self.kind or not (path is None or self._is_ours(path)):
            return False
        self.left -= 1
        return self.left <= 0 if self.lasting else self.left == 0

    def _is_ours(self, path: Any) -> bool:
        return not isinstance(path, int) and os.path.abspath(os.fspath(path)).startswith(self.folder)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the functions that open, write, move and allocate."""
        real_open, opens_for_writing = io.open, set("wxa+")

        def open_file(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if not (opens_for_writing & set(mode) and isinstance(path, str | os.PathLike) and self._is_ours(path)):
                return real_open(path, mode, *args, **kwargs)
            if self.is_due("open", path):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
            return FailingFile(real_open(path, mode, *args, **kwargs), self)

        def failing(kind: str, function: Callable[..., Any], by_path: bool = True) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                if self.is_due(kind, args[0] if by_path else None):
                    raise MemoryError if kind == "allocate" else FULL_DISK
                return function(*args, **kwargs)

            return run

        patch.setattr(io, "open", open_file)
        patch.setattr(builtins, "open", open_file)
        patch.setattr(os, "fsync", failing("fsync", os.fsync, by_path=False))
        for name in ("replace", "rename"):
            patch.setattr(os, name, failing("replace", getattr(os, name)))
        patch.setattr(os, "mkdir", failing("mkdir", os.mkdir))
        if self.kind == "allocate":
            for name in ALLOCATORS:
                patch.setattr(np, name, failing("allocate", getattr(np, name), by_path=False))


class FailingFile:
    """An open file, each of whose writes, and whose close, may be the one that fails."""

    def __init__(self, file: Any, fault: Fault) -> None:
        self._file, self._fault = file, fault

    def write(self, data: Any) -> int:
        """Write all, or half and fail."""
        if self._fault.is_due("write"):
            self._file.write(data[: len(data) // 2])
            raise FULL_DISK
        return self._file.write(data)

    def close(self) -> None:
        """Close the file; a failure is that of the last flush."""
        is_first = not self._file.closed
        self._file.close()
        if is_first and self._fault.is_due("close"):
            raise FULL_DISK

    def __enter__(self) -> FailingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def every_fault(kind: str, folder: Path, *, lasting: bool = False, step: float = 1.0) -> Iterator[Fault]:
    """Yield a fault for k = 1, 2, ..., until the last one did not happen; a ``step`` above 1 leaves out later ones."""
    k = 1
    while True:
        fault = Fault(kind, k, folder, lasting)
        yield fault
        if not fault.has_happened:
            return
        k = max(k + 1, int(step * k))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, by their relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
