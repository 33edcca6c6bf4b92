"""The folder of results: whose it is, and its files written all together or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..persistence import read_notes

DRAFT = ".fiedler-"
LABELS, MODEL, SUMMARY, PAGE = FILES = ("labels.csv", "model.npz", "summary.json", "report.html")


def source_name(source: str) -> str:
    """What an input is called: a file without its ending, a folder, a data set."""
    path = Path(source)
    return path.resolve().name if path.is_dir() else path.stem


def relative_source(folder: Path, source: str) -> str:
    """The input's address for the folder of its results, so that both can be moved together; a data set's is its name.

    Examples
    --------
    >>> relative_source(Path("out/moons"), "two_moons")
    'two_moons'
    """
    path = Path(source)
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix() if path.exists() else source


def check_folder(folder: Path, source: str, *, force: bool) -> None:
    """A place for results is looked at before the work: it can be written to, and no other results are lost in it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file, where a folder for the results should be; give another --out")
    _try_to_write(folder)
    taken = next((name for name in FILES if (folder / name).exists()), None)
    if taken and not force and (whose := _whose(folder)) != relative_source(folder, source):
        held = f"a {taken} of unknown origin" if whose is None else f"the results of {_address(folder, whose)!r}"
        raise ValueError(f"{str(folder)!r} holds {held}; give another --out, or replace them with --force")


def _try_to_write(folder: Path) -> None:
    """Make a folder where the draft will be, and take it away again."""
    try:
        os.rmdir(tempfile.mkdtemp(prefix=DRAFT, dir=_nearest(folder)))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise type(error)(f"{str(folder)!r} cannot be written to ({why}); give another --out") from None


def _whose(folder: Path) -> str | None:
    """The address of the input that the results are of, if they are this tool's."""
    try:
        return read_notes(folder / MODEL).get("source")
    except (OSError, ValueError):
        return None


def _address(folder: Path, whose: str) -> str:
    """The input's address for the reader."""
    path = os.path.normpath(folder / whose)
    return path if os.path.exists(path) else whose


def _nearest(folder: Path) -> Path:
    """The folder, or the first one above it that is there."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A draft beside the folder, whose files go into it when the block ends well; a failure leaves nothing."""
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=_nearest(folder)))
    try:
        yield draft
        folder.mkdir(parents=True, exist_ok=True)
        for path in draft.iterdir():
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
