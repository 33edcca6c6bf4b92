"""The folder of results: checked before the work, and written completely or not at all.

Files are written to a temporary folder. If the folder of results does not exist, the temporary one is renamed to it.
Otherwise it is renamed to `FINISHED` inside the folder of results, which may contain other files. From that moment on
the results are the new ones, even if the process is killed: whichever command uses the folder next moves them to their
places first.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._files import DRAFT_PREFIX, draft_name, remove_drafts
from .._tables import COMPRESSIONS
from ..errors import InputError
from ..persistence import read_notes

FINISHED = ".fiedler-finished"  # the folder of results that have to be moved to their places
FILES = ("labels.csv", "model.safetensors", "summary.json", "report.html")
LABELS_FILE, MODEL_FILE, SUMMARY_FILE, PAGE_FILE = FILES

TABLE_FILE = "table.csv"  # of --append


def source_name(source: str) -> str:
    """Return the short name of an input: a file without its endings, a folder, or a data set."""
    if source == "-":
        return "stdin"
    path = Path(source)
    if path.is_dir():
        return path.resolve().name
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


def relative_source(folder: Path, source: str) -> str:
    """Return the path of an input relative to its results, so that both can be moved; a data set keeps its name.

    Examples
    --------
    >>> relative_source(Path("out/moons"), "two_moons")
    'two_moons'
    """
    path = Path(source)
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix() if path.exists() else source


def check_folder(folder: Path, source: str, *, force: bool, append: bool = False) -> None:
    """Check before the work that results can be written to a folder and would not replace those of another input."""
    if append and (folder / TABLE_FILE).resolve() == Path(source).resolve():
        raise _out_error(
            folder, f"contains the input {TABLE_FILE}, and --append would replace it", code="replaces_input"
        )
    if folder.exists() and not folder.is_dir():
        raise _out_error(folder, "is a file, not a folder for results", code="not_a_folder")
    _check_writable(folder)
    finish_results(folder)
    names = (*FILES, TABLE_FILE) if append else FILES
    existing = next((name for name in names if (folder / name).exists()), None)
    if existing and not force and (origin := _origin(folder)) != relative_source(folder, source):
        content = (
            f"{existing}, which was not written by fiedler"
            if origin is None
            else f"the results of {_seen_from_here(folder, origin)!r}"
        )
        raise InputError(
            f"{str(folder)!r} contains {content}",
            "choose another --out, or replace them with --force",
            code="results_exist",
            file=str(folder),
        )


def check_file(path: Path | None) -> None:
    """Check before the work that a result can be written to a file."""
    if path is not None and path.is_dir():
        raise _out_error(path, "is a folder", code="not_a_file")
    if path is not None and not path.parent.is_dir():
        raise _out_error(path, f"cannot be written: there is no folder {str(path.parent)!r}", code="no_such_folder")


def _out_error(path: Path, problem: str, *, code: str) -> InputError:
    return InputError(f"{str(path)!r} {problem}", "choose another --out", code=code, file=str(path))


def _check_writable(folder: Path) -> None:
    """Create and remove a temporary folder where the draft will be."""
    try:
        os.rmdir(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=_nearest_existing(folder)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _out_error(folder, f"cannot be written to ({reason})", code="not_writable") from None


def _origin(folder: Path) -> str | None:
    """Return the input of the results in a folder, relative to it; None if they are not from fiedler."""
    try:
        return read_notes(folder / MODEL_FILE).get("source")
    except (OSError, ValueError):
        return None


def _seen_from_here(folder: Path, origin: str) -> str:
    """Return the path of an input as seen from the working directory."""
    path = os.path.normpath(folder / origin)
    return path if os.path.exists(path) else origin


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files replace those in ``folder`` on success, all or none."""
    folder = Path(os.path.realpath(folder))  # of a link, and without ".."
    place = _nearest_existing(folder)
    for drafts in (place, folder.absolute().parent):  # where a run has written when the folder did not exist
        remove_drafts(drafts)
    draft = place / draft_name()
    draft.mkdir()
    try:
        yield draft
        with _uninterrupted():
            _publish(draft, folder)
    finally:
        with _uninterrupted():
            shutil.rmtree(draft, ignore_errors=True)


def _publish(draft: Path, folder: Path) -> None:
    """Make the files of a draft the results, by one rename."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(folder)
        return
    finish_results(folder)
    draft.replace(folder / FINISHED)
    finish_results(folder)


def finish_results(folder: Path) -> None:
    """Move the files of a finished run to their places, if it was killed before it could, the model last."""
    finished = folder / FINISHED
    if not finished.is_dir():
        return
    if not (finished / TABLE_FILE).exists():
        _remove_table(folder)
    for path in sorted(finished.iterdir(), key=lambda path: path.name == MODEL_FILE):
        if path.is_dir():
            shutil.rmtree(folder / path.name, ignore_errors=True)
        path.replace(folder / path.name)
    finished.rmdir()


def _remove_table(folder: Path) -> None:
    """Remove the table that an earlier run with --append has written, which has other clusters."""
    try:
        if read_notes(folder / MODEL_FILE).get("append"):
            (folder / TABLE_FILE).unlink(missing_ok=True)
    except (OSError, ValueError):
        return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defer an interrupt (Ctrl-C) to the end of the block, so that all files are moved or removed."""
    in_main_thread = threading.current_thread() is threading.main_thread()  # the only one that is interrupted
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if received:
        raise KeyboardInterrupt
