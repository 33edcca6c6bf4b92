"""The highest memory use of this process."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

CLEAR_REFS = Path("/proc/self/clear_refs")  # Linux: writing 5 resets the peak


def reset_peak_memory() -> None:
    """Reset the peak that :func:`peak_memory_mb` reports, where the system can (Linux)."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return


def peak_memory_mb() -> int | None:
    """Return the highest resident memory in MiB since the last reset, or since the process started.

    None where the system does not report it.

    Examples
    --------
    >>> from fiedler.core.memory import peak_memory_mb
    >>> peak = peak_memory_mb()
    >>> peak is None or peak > 0
    True
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)
    except (OSError, StopIteration):
        pass
    try:
        resource: Any = import_module("resource")  # not on Windows
    except ImportError:
        return None
    bytes_per_unit = 1 if sys.platform == "darwin" else 2**10  # macOS counts bytes, other systems KiB
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 2**20)
