"""Peak memory of the running process."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

CLEAR_REFS = Path("/proc/self/clear_refs")  # writing "5" to it resets the peak (Linux only)
STATUS = Path("/proc/self/status")  # reports the peak as VmHWM, in KiB (Linux only)


def reset_peak_memory() -> None:
    """Reset the measurement of peak memory, if the operating system allows it (Linux)."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return


def peak_memory_mb() -> int | None:
    """Return the peak resident memory in MiB, or None if the operating system does not report it.

    On Linux it is the peak since :func:`reset_peak_memory`, elsewhere that of the whole process.

    Examples
    --------
    >>> reset_peak_memory()
    >>> peak_memory_mb() > 1
    True
    """
    try:
        lines = STATUS.read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)
    except (OSError, StopIteration):
        pass
    try:
        resource: Any = import_module("resource")  # not available on Windows
    except ImportError:
        return None
    bytes_per_unit = 1 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 2**20)
