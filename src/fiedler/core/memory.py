"""Peak memory of the running process, the memory available to it, and a check before a large allocation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import NotEnoughMemoryError

CLEAR_REFS = Path("/proc/self/clear_refs")  # writing "5" to it resets the peak (Linux only)
STATUS = Path("/proc/self/status")  # reports the peak as VmHWM, in KiB (Linux only)
MEMORY_INFO = Path("/proc/meminfo")  # reports what the machine has left as MemAvailable, in KiB (Linux only)
OWN_GROUPS = Path("/proc/self/cgroup")  # the control groups of this process, one "number:controllers:path" a line
MIN_CHECKED_BYTES = 10**8  # allocations below are not checked, since asking the operating system takes longer
GROUPS = Path("/sys/fs/cgroup")  # their limits: version 2 in this folder, version 1 in its folder "memory"


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
    if (peak := _read_kib(STATUS, "VmHWM")) is not None:
        return round(peak / 2**20)
    try:
        resource: Any = import_module("resource")  # not available on Windows
    except ImportError:
        return None
    bytes_per_unit = 1 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 2**20)


def available_memory() -> int | None:
    """Return the bytes that this process can still allocate; None if the operating system does not report it (Linux).

    They are what the machine has left or, if that is less, a control group of the process, such as a container.
    """
    amounts = [_read_kib(MEMORY_INFO, "MemAvailable"), *(_left_in_group(folder) for folder in _group_folders())]
    return min((amount for amount in amounts if amount is not None), default=None)


def check_memory(n_bytes: float, purpose: str, hint: str) -> None:
    """Raise an error if an allocation of ``n_bytes`` would exceed the memory that is available.

    Where the operating system does not report what is available, nothing is checked.

    Examples
    --------
    >>> check_memory(1e18, "a complete graph of 158,000,000 rows", "use KNNGraph")
    Traceback (most recent call last):
    ...
    fiedler.errors.NotEnoughMemoryError: a complete graph of 158,000,000 rows needs about 1000000000.0 GB of memory, ...
    """
    free = available_memory() if n_bytes >= MIN_CHECKED_BYTES else None
    if free is not None and n_bytes > free:
        raise NotEnoughMemoryError(
            f"{purpose} needs about {n_bytes / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is available",
            hint,
            required_gb=n_bytes / 1e9,
            available_gb=free / 1e9,
        )


def _read_kib(path: Path, name: str) -> int | None:
    """Return a value of a file of lines ``name: value kB``, in bytes."""
    try:
        lines = path.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 2**10
    except (OSError, StopIteration, ValueError):
        return None


def _group_folders() -> Iterator[Path]:
    """Yield the folders of all memory groups of this process: its own and those above, each of which has a limit.

    In a container the path may be that of the host; then only the top folder exists, which is the container's.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            top = GROUPS / "memory" if controllers else GROUPS
            inside = PurePosixPath(path.lstrip("/"))
            yield from dict.fromkeys(top / part for part in (inside, *inside.parents))


# Files of a group: limit, usage, and the entry of memory.stat with pages of files that can be dropped at any time.
GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),  # version 2
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),  # version 1
)


def _left_in_group(folder: Path) -> int | None:
    """Return what a group may still use; None if it has no limit."""
    for limit_name, usage_name, droppable_name in GROUP_FILES:
        try:
            limit, usage = (folder / limit_name).read_text().strip(), int((folder / usage_name).read_text())
            if limit == "max":
                return None
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            return max(int(limit) - usage + int(stat.get(droppable_name, 0)), 0)
        except (OSError, ValueError):
            continue
    return None
