"""Download files in blocks, with a progress line on stderr."""

from __future__ import annotations

import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Self, TextIO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ..errors import DownloadError

DOWNLOAD_BLOCK_BYTES = 1 << 16
TIMEOUT_SECONDS = 30.0  # without any data
TERMINAL_SECONDS, LOG_SECONDS = 0.2, 10.0  # between two reports: a terminal redraws the line, a log adds one


def fetch(url: str, path: Path, *, verbose: bool = True, timeout: float = TIMEOUT_SECONDS) -> None:
    """Save the content of ``url`` as ``path``; a :class:`DownloadError` states the reason of a failure."""
    request = Request(url, headers={"User-Agent": "fiedler"})
    try:
        with (
            urlopen(request, timeout=timeout) as response,
            path.open("wb") as file,
            Progress(path.name, response.length, sys.stderr if verbose else None) as progress,
        ):
            while block := response.read(DOWNLOAD_BLOCK_BYTES):
                file.write(block)
                progress.add(len(block))
    except (OSError, HTTPException) as error:
        raise DownloadError(_reason(error), url=url) from error
    if progress.expected is not None and progress.received != progress.expected:
        raise DownloadError(f"only {progress.received} of {progress.expected} bytes arrived", url=url)


def _reason(error: Exception) -> str:
    """Describe a network error in a few words."""
    if isinstance(error, HTTPError):
        error.close()
        return f"HTTP {error.code} {error.reason}"
    return str(error.reason if isinstance(error, URLError) else error) or type(error).__name__


class Progress:
    """Count the bytes of a download and report them, with the rate, on ``stream`` (None: no report)."""

    def __init__(self, label: str, expected: int | None, stream: TextIO | None) -> None:
        self.label, self.expected, self.stream = label, expected, stream
        self.received = 0
        self.redraw = stream is not None and stream.isatty()
        self.seconds_between_reports = TERMINAL_SECONDS if self.redraw else LOG_SECONDS
        self.started = self.reported = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def add(self, n_bytes: int) -> None:
        """Count a block, and report if the last report is old enough."""
        self.received += n_bytes
        if time.monotonic() - self.reported > self.seconds_between_reports:
            self._report(end="" if self.redraw else "\n")

    def __exit__(self, *_: object) -> None:
        self._report(end="\n")

    def _report(self, *, end: str) -> None:
        if self.stream is None:
            return
        self.reported = time.monotonic()
        rate = self.received / max(self.reported - self.started, 1e-9)
        total = "" if self.expected is None else f" of {_size(self.expected)}"
        line = f"{self.label}: {_size(self.received)}{total}, {_size(rate)}/s"
        self.stream.write(f"\r{line:<79}{end}" if self.redraw else f"{line}{end}")
        self.stream.flush()


def _size(n_bytes: float) -> str:
    """Format a number of bytes with a unit.

    Examples
    --------
    >>> _size(512), _size(19_486), _size(4_500_000)
    ('512 B', '19.5 kB', '4.5 MB')
    """
    for limit, unit in ((1e6, "MB"), (1e3, "kB")):
        if n_bytes >= limit:
            return f"{n_bytes / limit:.1f} {unit}"
    return f"{n_bytes:.0f} B"
