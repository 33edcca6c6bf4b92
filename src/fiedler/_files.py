"""Atomic file writing: a file is written completely or not at all."""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import DataNotFoundError, InputTypeError, shown

MAX_ENDING = 20  # characters


def _machine() -> str:
    """Return eight digits for this machine, or container: elsewhere the same process number means another process."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return f"{zlib.crc32((platform.node() + processes).encode()):08x}"


DRAFT_PREFIX = f".fiedler-{_machine()}-"  # of temporary files and folders, before the number of the process
_DRAFT_NAME = re.compile(rf"{re.escape(DRAFT_PREFIX)}(\d+)-[0-9a-f]{{8}}(\..*)?")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` that replaces ``path`` on success and is deleted on failure.

    Where ``path`` is a symbolic link, the file that it points to is replaced. The temporary path has the same ending.
    Temporary files of processes that were killed are removed.
    """
    check_path(path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        problem = f"cannot write {str(target)!r}: the folder {str(target.parent)!r} does not exist"
        hint = "create it first"
        raise DataNotFoundError(problem, hint, code="no_such_folder", file=str(target), folder=str(target.parent))
    ending = target.name[target.name.rfind(".") :] if "." in target.name else ""
    remove_drafts(target.parent)
    draft = target.with_name(f"{draft_name()}{ending[:MAX_ENDING]}")
    try:
        yield draft
        with draft.open("r+b") as written:
            os.fsync(written.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def check_path(path: object) -> None:
    """Raise an error unless ``path`` can be the path of a file."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise InputTypeError(f"path must be a string or a Path; got {shown(path)}", code="not_a_path", parameter="path")


def draft_name() -> str:
    """Return the name of a temporary file or folder, from which its machine and process are known."""
    return f"{DRAFT_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"


def remove_drafts(folder: Path) -> None:
    """Remove the temporary files and folders of processes of this machine that were killed."""
    for draft in folder.glob(f"{DRAFT_PREFIX}*"):
        match = _DRAFT_NAME.fullmatch(draft.name)
        if match is None or _is_running(int(match[1])):
            continue
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            with suppress(OSError):
                draft.unlink()


def _is_running(process: int) -> bool:
    if os.name == "nt":  # there, os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of another user
        return True
    return True
