"""A work directory: blocks of arrays in files, and what they were made from.

Every step of a fit is a function from files to files. A file is an ``.npz`` archive of the arrays of one block. It is
written under a temporary name, flushed to the disk and renamed, so that it is whole or not there, and the archive has a
checksum (CRC-32) of every array, which is compared when the array is read. An array of a file is read without the
others, so a block that is divided among others is one file with an array for each of them.

A manifest says from which data and with which options the blocks were made. The same fit in the same directory goes on
from the blocks that it finds; another fit is refused.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._files import atomic_write
from ..core.backend import Array
from ..errors import InputError, StorageError

MANIFEST = "manifest.json"
DROPPED = "dropped"  # the file in the place of the blocks of a finished step that are not needed any more
FORMAT = 1
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)  # errors of damaged archives
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Workspace:
    """The files of a fit.

    Parameters
    ----------
    folder : path
        The work directory, which all workers must see under the same name.
    owner : TemporaryDirectory, optional
        Deletes the directory when no object of this process refers to it any more.
    """

    def __init__(self, folder: str | os.PathLike[str], owner: TemporaryDirectory[str] | None = None) -> None:
        self.folder, self._owner = Path(folder), owner

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_owner": None}  # the copies of workers do not delete anything

    @classmethod
    def temporary(cls, parent: str | os.PathLike[str] | None = None) -> Self:
        """Create a directory that exists as long as this object and the results that read from it."""
        owner = TemporaryDirectory(prefix="fiedler-", dir=parent)
        return cls(owner.name, owner)

    # --------------------------------------------------------------------------------------------------- the manifest

    def claim(self, made_from: Mapping[str, Any]) -> bool:
        """Check that the blocks in the directory were made from the same data and options, or note these down.

        Returns
        -------
        bool
            Whether there was a manifest already.
        """
        manifest = {"format": FORMAT, **made_from}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            found = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._refuse_foreign_files()
            with atomic_write(self.folder / MANIFEST) as draft:
                draft.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            return False
        except (OSError, ValueError) as error:
            raise StorageError(
                f"the work directory {str(self.folder)!r} cannot be used: {error}",
                "choose another one",
                file=str(self.folder),
            ) from None
        for draft in self.folder.rglob(".*.npz"):  # of blocks that were being written when a fit was killed
            draft.unlink(missing_ok=True)
        differing = [name for name in {**manifest, **found} if manifest.get(name) != found.get(name)]
        if differing:
            raise InputError(
                f"the work directory {str(self.folder)!r} contains blocks made with another {_join(differing)}",
                "choose another directory, or delete this one",
                code="other_work",
                file=str(self.folder),
                differing=differing,
            )
        return True

    def _refuse_foreign_files(self) -> None:
        """Raise an error if the directory is not empty: it would be hard to tell blocks from other files."""
        if any(not name.startswith(".") for name in os.listdir(self.folder)):
            raise InputError(
                f"the work directory {str(self.folder)!r} contains files that are not those of a fit",
                "choose an empty or a new directory",
                code="not_a_work_directory",
                file=str(self.folder),
            )

    # ------------------------------------------------------------------------------------------------------ the blocks

    def path(self, step: str, block: int = 0) -> Path:
        """Return the file of a block."""
        return self.folder / step / f"{block:06d}.npz"

    def write(self, step: str, block: int, arrays: Mapping[str, Array]) -> None:
        """Write the arrays of a block, dense or CSR; the file is complete or does not exist."""
        path = self.path(step, block)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as draft, open(draft, "wb") as file:
                np.savez(file, **_flat(arrays))  # type: ignore[arg-type]  # its other argument is a bool
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            raise StorageError(
                f"the disk of the work directory {str(self.folder)!r} is full",
                "free some space and run the same fit again: it goes on from the blocks that are finished",
                code="disk_full",
                file=str(self.folder),
            ) from None

    def read(self, step: str, block: int, *names: str) -> tuple[Any, ...]:
        """Read some arrays of a block and compare their checksums."""
        path = self.path(step, block)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return tuple(_take(archive, name) for name in names)
        except FileNotFoundError:
            raise StorageError(
                f"block {block} of the step {step!r} is missing in {str(self.folder)!r}",
                "run the same fit again, which makes it again",
                code="missing_block",
                step=step,
                block=block,
            ) from None
        except DAMAGED as error:
            raise StorageError(
                f"block {block} of the step {step!r} in {str(self.folder)!r} is damaged: {error}",
                "run the same fit again, which makes it again",
                code="damaged_block",
                step=step,
                block=block,
            ) from None

    def read_one(self, step: str, block: int, name: str) -> Any:
        """Read one array of a block."""
        return self.read(step, block, name)[0]

    def names(self, step: str, block: int) -> list[str]:
        """Return the names of the arrays of a block."""
        with np.load(self.path(step, block), allow_pickle=False) as archive:
            return list(archive.files)

    def finished(self, step: str) -> set[int]:
        """Return the blocks of a step whose files are there."""
        folder = self.folder / step
        return {int(path.stem) for path in folder.glob("*.npz") if path.stem.isdigit()} if folder.is_dir() else set()

    def is_intact(self, step: str, block: int) -> bool:
        """Whether the file of a block is complete; one that is not is deleted."""
        path = self.path(step, block)
        try:
            with zipfile.ZipFile(path) as archive:
                if archive.testzip() is None:
                    return True
        except DAMAGED:
            pass
        self.discard(step, block)
        return False

    def discard(self, step: str, block: int) -> None:
        """Delete a block, which will be made again."""
        self.path(step, block).unlink(missing_ok=True)

    def drop(self, step: str) -> None:
        """Delete the blocks of a finished step that no later one needs, and note that it was finished."""
        folder = self.folder / step
        (folder / DROPPED).touch()
        for path in folder.glob("*.npz"):
            path.unlink()

    def is_dropped(self, step: str) -> bool:
        """Whether the blocks of a step were made, used, and deleted."""
        return (self.folder / step / DROPPED).exists()

    def forget_dropped(self) -> bool:
        """Make all dropped steps again, since a block that was made from them is lost; return whether there are any."""
        marks = list(self.folder.rglob(DROPPED))
        for mark in marks:
            shutil.rmtree(mark.parent)
        return bool(marks)


def _flat(arrays: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """Return arrays by name, the parts of sparse matrices one by one."""
    flat: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if sp.issparse(array):
            flat |= {f"{name}.{part}": np.asarray(getattr(array, part)) for part in SPARSE_PARTS}
        else:
            flat[name] = np.asarray(array)
    return flat


def _take(archive: Any, name: str) -> Any:
    if name in archive.files:
        return archive[name]
    data, indices, indptr, shape = (archive[f"{name}.{part}"] for part in SPARSE_PARTS)
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def _join(names: Iterable[str]) -> str:
    return " and ".join(names)
