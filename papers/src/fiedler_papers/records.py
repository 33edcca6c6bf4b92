"""Records of runs: one JSON line a cell, added whole, read back without a line that a kill cut short."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fiedler._files import atomic_write

Record = dict[str, Any]


def key_of(record: Record) -> tuple[str, ...]:
    """What a record is recognised by; the same as `Cell.key`."""
    place = json.dumps(record["at"], sort_keys=True)
    return (record["data"], record["method"], place, str(record["draw"]), record["digest"])


def parse(lines: Iterable[str]) -> list[Record]:
    """Records from JSON lines; of two for the same cell and back end the later one counts.

    Examples
    --------
    >>> line = '{"data": "d", "method": "m", "at": {}, "draw": 0, "digest": "x", "scores": {"AC": 1}}'
    >>> len(parse([line, line]))
    1
    """
    found = {}
    for line in lines:
        record = json.loads(line)
        found[(*key_of(record), record.get("backend", ""))] = record
    return list(found.values())


class RecordFile:
    """Records in a file that only one run at a time may add to.

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
        """All whole records; a last line without its end was cut short by a kill and does not count."""
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        try:
            return parse(lines)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{str(self.path)!r} holds a line that is no record ({error}); remove that line, or the file"
            ) from error

    @contextmanager
    def writing(self) -> Iterator[RecordFile]:
        """The right to add records; a second run on the same file is refused."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _lock(file, self.path)
            self._cut_torn_end(file)
            self._file = file
            try:
                yield self
            finally:
                self._file = None

    def add(self, record: Record) -> None:
        """Add one record: one write of one whole line, on disk before this returns."""
        if self._file is None:
            raise RuntimeError("records are added within `with file.writing():`")
        self._file.write((json.dumps(record, sort_keys=True) + "\n").encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    @staticmethod
    def _cut_torn_end(file: Any) -> None:
        file.seek(0)
        whole = file.read()
        end = whole.rfind(b"\n") + 1
        if end < len(whole):
            file.truncate(end)


def _lock(file: Any, path: Path) -> None:
    """Hold ``file`` until it is closed, where the system can."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where two runs at once are the user's to avoid
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RuntimeError(f"another run is adding to {str(path)!r}; wait for it, or choose another --out") from error


# ------------------------------------------------------------------------------------------------------------ archives


def read_archive(path: Path) -> list[Record]:
    """The records of an ``.xz`` file; none if there is no such file."""
    if not path.exists():
        return []
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return parse(file)
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(path)!r} holds no records that can be read ({error}); restore it") from error


def write_archive(path: Path, records: Iterable[Record]) -> None:
    """Write records, sorted, whole or not at all; the same records give the same bytes."""
    lines = sorted(json.dumps(record, sort_keys=True) for record in records)
    with atomic_write(path) as draft, lzma.open(draft, "wt", encoding="utf-8", preset=9) as file:
        file.writelines(f"{line}\n" for line in lines)
