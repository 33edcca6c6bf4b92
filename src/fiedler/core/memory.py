"""Peak memory of the running process, and free memory of an accelerator."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import array_api_compat

from .._typing import Array

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


def free_device_memory(X: Array) -> int:
    """Return the number of bytes that are free on the accelerator of ``X``, those that its library keeps included.

    0 for an array on the host.
    """
    if array_api_compat.is_cupy_array(X):
        import cupy

        with X.device:
            return int(X.device.mem_info[0]) + int(cupy.get_default_memory_pool().free_bytes())
    if array_api_compat.is_torch_array(X) and X.device.type == "cuda":
        import torch

        kept = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
        return int(torch.cuda.mem_get_info(X.device)[0]) + kept
    return 0
