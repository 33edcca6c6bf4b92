"""Records of runs: one JSON line per cell, appended atomically; an incomplete last line is ignored."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fiedler._files import atomic_write
from fiedler.errors import FileFormatError

from .errors import RunError

Record = dict[str, Any]


def record_key(record: Record) -> tuple[str, ...]:
    """Return the key by which a record is matched; the same as `Cell.key`."""
    return (record["data"], record["method"], str(record["draw"]), record["digest"])


def parse_records(lines: Iterable[str]) -> list[Record]:
    """Parse JSON lines; of two records of the same cell and back end the later one counts.

    Examples
    --------
    >>> line = '{"data": "d", "method": "m", "at": {}, "draw": 0, "digest": "x", "scores": {"AC": 1}}'
    >>> len(parse_records([line, line]))
    1
    """
    records = {}
    for line in lines:
        record = json.loads(line)
        records[(*record_key(record), record.get("backend", ""))] = record
    return list(records.values())


class RecordFile:
    """A file of records that only one run at a time may append to.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fiedler_papers import RecordFile
    >>> file = RecordFile(pathlib.Path(tempfile.mkdtemp()) / "records.jsonl")
    >>> with file.writing():
    ...     file.add({"data": "d", "method": "m", "at": {}, "draw": 0, "digest": "x", "scores": {"AC": 1}})
    >>> file.read()[0]["scores"]
    {'AC': 1}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None

    def read(self) -> list[Record]:
        """Return all complete records; a last line without a line end, left by a killed run, is ignored."""
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        try:
            return parse_records(lines)
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"{str(self.path)!r} contains a line that is not a record ({error})",
                "remove that line, or the file",
                file=str(self.path),
                reason=str(error),
            ) from error

    @contextmanager
    def writing(self) -> Iterator[RecordFile]:
        """Lock the file for appending; raise an error if another run holds it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _lock(file, self.path)
            self._drop_incomplete_line(file)
            self._file = file
            try:
                yield self
            finally:
                self._file = None

    def add(self, record: Record) -> None:
        """Append one record as one line, which is on disk when this returns."""
        if self._file is None:
            raise RuntimeError("records can only be added within `with file.writing():`")
        self._file.write((json.dumps(record, sort_keys=True) + "\n").encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    @staticmethod
    def _drop_incomplete_line(file: Any) -> None:
        file.seek(0)
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            file.truncate(end)


def _lock(file: Any, path: Path) -> None:
    """Lock ``file`` until it is closed, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there the user must not start two runs at once
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(
            f"another run is writing to {str(path)!r}",
            "wait for it, or choose another --out",
            code="file_locked",
            file=str(path),
        ) from error


# ------------------------------------------------------------------------------------------------------------ archives


def read_archive(path: Path) -> list[Record]:
    """Return the records of an ``.xz`` file; an empty list if there is no such file."""
    if not path.exists():
        return []
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return parse_records(file)
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"{str(path)!r} is not a valid archive of records ({error})",
            "restore it from the repository",
            file=str(path),
            reason=str(error),
        ) from error


def write_archive(path: Path, records: Iterable[Record]) -> None:
    """Write records atomically and sorted, so that the same records give the same bytes."""
    lines = sorted(json.dumps(record, sort_keys=True) for record in records)
    with atomic_write(path) as draft, lzma.open(draft, "wt", encoding="utf-8", preset=9) as file:
        file.writelines(f"{line}\n" for line in lines)
