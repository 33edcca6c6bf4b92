"""Statistics of Gaussian components in files, and their sums over blocks."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.backend import Array
from ..mixture.statistics import Statistics
from .run import Run
from .workspace import Workspace

NAMES = ("counts", "sums", "second_moments", "origin")


def statistics_arrays(statistics: Statistics) -> dict[str, Array]:
    """Return statistics as arrays by name."""
    return {name: getattr(statistics, name) for name in NAMES}


def read_statistics(workspace: Workspace, step: str, block: int = 0) -> Statistics:
    """Read the statistics of a block."""
    return Statistics(*workspace.read(step, block, *NAMES))


def sum_statistics(run: Run, step: str, blocks: Iterable[int]) -> Statistics:
    """Add the statistics of blocks, always in the same order."""
    first, *others = blocks
    total = read_statistics(run.workspace, step, first)
    for block in others:
        total = total + read_statistics(run.workspace, step, block)
    return total
