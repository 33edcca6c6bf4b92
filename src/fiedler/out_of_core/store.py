"""A work directory: blocks of arrays in files, and what they were made from.

Every step of a fit is a function from files to files. A file is an ``.npz`` archive of the arrays of one block. It is
written under a temporary name, flushed to the disk and renamed, so that it is whole or not there, and the archive has a
checksum (CRC-32) of every array, which is compared when the array is read. An array of a file is read without the
others. One that is divided among other blocks is in parts with checksums of their own, of which each block reads its
own.

A manifest says from which data and with which options the blocks were made. The same fit in the same directory goes on
from the blocks that it finds; another fit is refused.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import shutil
import socket
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from .._files import atomic_write
from ..core.arrays import Array, take_rows
from ..core.sparse import checked_csr
from ..errors import InputError, StorageError

MANIFEST, LOCK, ID = "manifest.json", "lock", "id"
DROPPED = "dropped"  # the file in the place of the blocks of a finished step that are not needed any more
FORMAT = 3
LOCAL_HEADER = "<4s5H3I2H"  # of a member of a zip archive; the last two numbers are the lengths of name and extra field
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
DAMAGED = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, struct.error)  # errors of damaged archives
UNUSABLE = "the work directory {} cannot be used: "
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Sliced(NamedTuple):
    """An array whose parts are for other blocks, each of which reads its own part and no more."""

    array: Array
    starts: np.ndarray  # part i is ``array[starts[i]:starts[i + 1]]``

    @classmethod
    def sorted_by(cls, array: Array, parts: np.ndarray, n_parts: int) -> Sliced:
        """Sort rows by the part for which they are; rows of a negative part are left out."""
        order = np.argsort(parts, kind="stable")
        starts = np.searchsorted(parts[order], np.arange(n_parts + 1))
        return cls(take_rows(array, order), starts)


class FinishedWork(NamedTuple):
    """The number of steps of which there are blocks, and of these blocks."""

    n_steps: int
    n_blocks: int


class Workspace:
    """The files of a fit, in a folder that all workers must see under the same name.

    A temporary folder is deleted when no object of this process refers to its owner any more.
    """

    def __init__(self, folder: str | os.PathLike[str], owner: TemporaryDirectory[str] | None = None) -> None:
        self.folder, self._owner = Path(folder), owner

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_owner": None}  # the copies of workers do not delete anything

    @classmethod
    def temporary(cls) -> Self:
        """Create a directory that exists as long as this object and the results that read from it."""
        owner = TemporaryDirectory(prefix="fiedler-")
        return cls(owner.name, owner)

    def claim(self, made_from: Mapping[str, Any]) -> bool:
        """Check that the blocks here were made from the same data and options, if there are any; return whether."""
        manifest = {"format": FORMAT, **made_from}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            stored = self._read_manifest()
        except FileNotFoundError:
            # In a directory with other files, it would be hard to tell these from blocks.
            if any(not name.startswith(".") and name != LOCK for name in os.listdir(self.folder)):
                problem = f"the work directory {str(self.folder)!r} contains files that are not those of a fit"
                hint = "choose an empty or a new directory"
                raise InputError(problem, hint, code="not_a_work_directory", file=str(self.folder)) from None
            with self.writing(), atomic_write(self.folder / MANIFEST) as draft:
                draft.write_text(json.dumps({**manifest, ID: secrets.token_hex(8)}, indent=1), encoding="utf-8")
            return False
        except OSError as error:
            raise error if isinstance(error, StorageError) else self._error(f"{UNUSABLE}{error}") from None
        for draft in self.folder.rglob(".*.npz"):  # of blocks that were being written when a fit was killed
            draft.unlink(missing_ok=True)
        differing = [name for name in {**manifest, **stored} if name != ID and manifest.get(name) != stored.get(name)]
        if differing:
            names = " and ".join(differing)
            problem = f"the work directory {str(self.folder)!r} contains blocks of a fit with other {names}"
            hint = "choose another directory, or delete this one"
            raise InputError(problem, hint, code="other_work", file=str(self.folder), differing=differing)
        return True

    @property
    def identity(self) -> str | None:
        """A name of the fit whose blocks these are, unlike that of any other; None without a manifest."""
        try:
            return self._read_manifest().get(ID)
        except FileNotFoundError:
            return None

    def _read_manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            manifest = None
        if not isinstance(manifest, dict):
            raise self._error(f"{UNUSABLE}its {MANIFEST} is damaged")
        return manifest

    def _error(self, problem: str, hint: str = "choose another one", code: str | None = None) -> StorageError:
        """Return an error of this directory, whose name is put into the sentence."""
        return StorageError(problem.format(repr(str(self.folder))), hint, code=code, file=str(self.folder))

    def count_finished(self) -> FinishedWork:
        """Return how much of a fit is done already."""
        blocks = [path for path in self.folder.rglob("*.npz") if path.stem.isdigit()]
        return FinishedWork(len({path.parent for path in blocks}), len(blocks))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other fits out of the directory; the lock of a process that has ended does not count."""
        path, own = self.folder / LOCK, f"{os.getpid()} {socket.gethostname()}"
        try:
            with self.writing(), open(path, "x", encoding="utf-8") as file:
                file.write(own)
        except FileExistsError:
            if _is_running(path):
                hint = f"wait for it, or choose another directory; if there is none, delete {str(path)!r}"
                raise self._error("another fit is working in {}", hint, "locked") from None
            path.write_text(own, encoding="utf-8")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def path(self, step: str, block: int = 0) -> Path:
        """Return the file of a block."""
        return self.folder / step / f"{block:06d}.npz"

    def write(self, step: str, block: int, arrays: Mapping[str, Array | Sliced]) -> None:
        """Write the arrays of a block, dense, CSR or in parts; the file is complete or does not exist."""
        path = self.path(step, block)
        with self.writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as draft, open(draft, "wb") as file:
                np.savez(file, **_flat(arrays))  # type: ignore[arg-type]  # its other argument is a bool
                file.flush()
                os.fsync(file.fileno())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say what is wrong if the directory cannot be written to."""
        try:
            yield
        except OSError as error:
            if isinstance(error, StorageError | FileExistsError):
                raise
            if error.errno in NO_SPACE:
                hint = "free some space and run the same fit again: it goes on from the blocks that are finished"
                raise self._error("the disk of the work directory {} is full", hint, "disk_full") from None
            problem = f"the work directory {{}} cannot be written to: {error.strerror or error}"
            raise self._error(problem, code="not_writable") from None

    def read(self, step: str, block: int, *names: str) -> tuple[Any, ...]:
        """Read some arrays of a block and compare their checksums."""
        with self._reading(step, block) as path, np.load(path, allow_pickle=False) as archive:
            return tuple(_take(archive, name) for name in names)

    def read_part(self, step: str, block: int, name: str, part: int) -> Any:
        """Read one part of an array that is in parts, and compare its checksum."""
        with self._reading(step, block) as path, np.load(path, allow_pickle=False) as archive:
            if f"{name}.starts" not in archive.files:
                return _take(archive, f"{name}/{part}")
            starts, checksum = archive[f"{name}.starts"], int(archive[f"{name}.checksums"][part])
            rows = _read_rows(archive.zip, path, f"{name}.npy", int(starts[part]), int(starts[part + 1]))
            if _checksum(rows) != checksum:
                raise zipfile.BadZipFile(f"bad checksum of part {part} of {name!r}")
            return rows

    @contextmanager
    def _reading(self, step: str, block: int) -> Iterator[Path]:
        """Yield the file of a block; errors say that it is missing or damaged."""
        try:
            yield self.path(step, block)
            return
        except FileNotFoundError:
            code, problem = "missing_block", f"is missing in {str(self.folder)!r}"
        except (*DAMAGED, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a seek beyond the end
                raise
            code, problem = "damaged_block", f"in {str(self.folder)!r} is damaged: {error}"
        problem, hint = f"block {block} of the step {step!r} {problem}", "run the same fit again, which makes it again"
        raise StorageError(problem, hint, code=code, step=step, block=block)

    def read_one(self, step: str, block: int, name: str) -> Any:
        """Read one array of a block."""
        return self.read(step, block, name)[0]

    def finished(self, step: str) -> set[int]:
        """Return the blocks of a step whose files are there."""
        folder = self.folder / step
        return {int(path.stem) for path in folder.glob("*.npz") if path.stem.isdigit()} if folder.is_dir() else set()

    def is_intact(self, step: str, block: int) -> bool:
        """Whether the file of a block is complete; one that is not is deleted."""
        try:
            with self._reading(step, block) as path, zipfile.ZipFile(path) as archive:
                if archive.testzip() is None:
                    return True
        except StorageError:
            pass
        self.discard(step, block)
        return False

    def discard(self, step: str, block: int) -> None:
        """Delete a block, which will be made again."""
        self.path(step, block).unlink(missing_ok=True)

    def drop(self, step: str) -> None:
        """Delete the blocks of a finished step that no later one needs, and note that it was finished."""
        folder = self.folder / step
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DROPPED).touch()
        for path in folder.glob("*.npz"):
            path.unlink()

    def is_dropped(self, step: str) -> bool:
        """Whether the blocks of a step were made, used, and deleted."""
        return (self.folder / step / DROPPED).exists()

    def forget_dropped(self) -> None:
        """Have all dropped steps made again, since a block that was made from them is lost."""
        for mark in list(self.folder.rglob(DROPPED)):
            shutil.rmtree(mark.parent)


class Task(NamedTuple):
    """A block to be made, which reads the files of its own number and, through the workspace, those of others."""

    workspace: Workspace
    block: int

    def read(self, step: str, *names: str) -> tuple[Any, ...]:
        """Read some arrays of this block."""
        return self.workspace.read(step, self.block, *names)

    def read_one(self, step: str, name: str) -> Any:
        """Read one array of this block."""
        return self.workspace.read_one(step, self.block, name)

    def read_parts(self, step: str, others: Iterable[int], name: str) -> list[Any]:
        """Read the parts of an array of other blocks that are for this one."""
        return [self.workspace.read_part(step, other, name, self.block) for other in others]


def _is_running(lock: Path) -> bool:
    """Whether the process that holds a lock may still run; one of another machine may."""
    try:
        number, host = lock.read_text(encoding="utf-8").split()
        if host != socket.gethostname():
            return True
        os.kill(int(number), 0)
    except (ValueError, ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True
    return int(number) != os.getpid()


def _flat(arrays: Mapping[str, Array | Sliced]) -> dict[str, np.ndarray]:
    """Return arrays by name, those that make up a sparse matrix one by one, and the checksums of parts."""
    flat: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if isinstance(array, Sliced) and sp.issparse(array.array):
            parts = {f"{name}/{i}": array.array[a:b] for i, (a, b) in enumerate(pairwise(array.starts))}
            flat |= _flat(parts)
        elif isinstance(array, Sliced):
            values = np.ascontiguousarray(array.array)
            checksums = [_checksum(values[a:b]) for a, b in pairwise(array.starts)]
            flat |= {name: values, f"{name}.starts": np.asarray(array.starts)}
            flat[f"{name}.checksums"] = np.array(checksums, dtype=np.uint32)
        elif sp.issparse(array):
            flat |= {f"{name}.{part}": np.asarray(getattr(array, part)) for part in SPARSE_PARTS}
        else:
            flat[name] = np.asarray(array)
            if flat[name].dtype == object:
                raise InputError(f"{name} has values of several types", "use numbers, or strings", code="wrong_dtype")
    return flat


def _checksum(values: np.ndarray) -> int:
    return zlib.crc32(values.tobytes())


def _read_rows(archive: zipfile.ZipFile, path: Path, member: str, start: int, stop: int) -> np.ndarray:
    """Read some rows of an array in an archive, without the others."""
    with open(path, "rb") as file:
        file.seek(archive.getinfo(member).header_offset)
        *_, name_length, extra_length = struct.unpack(LOCAL_HEADER, file.read(struct.calcsize(LOCAL_HEADER)))
        file.seek(name_length + extra_length, os.SEEK_CUR)
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
        row_bytes = dtype.itemsize * math.prod(shape[1:])
        file.seek(start * row_bytes, os.SEEK_CUR)
        content = file.read((stop - start) * row_bytes)
    return np.frombuffer(content, dtype=dtype).reshape(stop - start, *shape[1:])


def _take(archive: Any, name: str) -> Any:
    if name in archive.files:
        return archive[name]
    data, indices, indptr, shape = (archive[f"{name}.{part}"] for part in SPARSE_PARTS)
    return checked_csr(data, indices, indptr, shape=tuple(shape.tolist()))
