"""Expected cost of a fit of ManifoldClustering in blocks, see :mod:`fiedler.out_of_core`.

As in :mod:`.cost`, every stage is a sum of terms whose coefficients were measured, by
``python benchmarks/bench_out_of_core.py`` on two cores, with ten million rows of 50 columns and 20 clusters. Times are
scaled by the same probes. Work on blocks is divided among the workers, that of the client is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..core.block_sizes import CELLS_PER_BLOCK, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, MAX_CELLS, MAX_NODE_BYTES, MAX_NODES
from ..core.progress import format_seconds
from .cost_records import FitCost, StageCost, format_bytes

N_NEIGHBORS, MUTUAL = 9, 1.5  # of the graph, and entries of its matrix per neighbour
WALK_STEPS, MOVE_ROUNDS, N_SUMS = 14, 10, 2
HALO = 0.6  # rows in the halos of all blocks, per row
TASK_SECONDS = 0.01  # that a task takes besides its work
READ_SECONDS = 3e-4  # of reading a part of a file ...
N_DIVISIONS = 7  # ... and steps in which every block reads one of every file

# CPU seconds on one core, and bytes
SECONDS = {
    "rows": 3.0e-8,  # per value
    "division": 2.0e-10,  # per value and centre
    "neighbours": 1.5e-6,  # per row and (column + 50)
    "graph": 1.4e-5,  # per row
    "sums": 3.5e-8,  # per value
    "moves": 4.0e-7,  # per row and round
    "start": 5.1e-11,  # per value and compared row
    "walk": 7.0e-8,  # per row, cluster and step
    "search": 1.8e-4,  # per node of the contracted graph, on the client
}
WORKER_BYTES = {"fixed": 3.0e8, "value": 24.0, "row": 2600.0, "membership": 20.0}
CLIENT_BYTES = {"fixed": 4.0e8, "node": 8000.0}


class BlockStages(NamedTuple):
    """CPU seconds of the stages, those of blocks and those of the client."""

    blocks: dict[str, float]
    client: dict[str, float]


@dataclass(frozen=True)
class BlockCost(FitCost):
    """Expected cost of a fit of ManifoldClustering in blocks, see :func:`fiedler.estimate`.

    Attributes
    ----------
    n_rows, n_columns, n_clusters : int
        The size of the fit.
    stages : tuple of StageCost
        The stages in the order of the fit; the memory is that of a worker, or of the client.
    data_bytes : int
        The size of the rows.
    n_workers, n_blocks, n_tasks : int
        The number of worker processes, of blocks, and of tasks.
    worker_bytes, client_bytes : int
        The memory of a worker and of the client.
    disk_bytes : int
        The size of the work directory.
    moved_bytes : int
        What workers write to and read from the work directory.

    Examples
    --------
    >>> import fiedler
    >>> cost = fiedler.estimate(10_000_000, 50, n_clusters=20, dtype="float32", n_workers=2)
    >>> cost.n_blocks
    77
    >>> cost.worker_bytes + cost.client_bytes < 4e9
    True
    """

    n_workers: int
    n_blocks: int
    n_tasks: int
    worker_bytes: int
    client_bytes: int
    disk_bytes: int
    moved_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The memory of all processes together."""
        return self.n_workers * self.worker_bytes + self.client_bytes

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} x {self.n_columns:,} rows, {self.n_clusters} clusters, in {self.n_blocks} blocks on "
            f"{self.n_workers} workers: about {format_seconds(self.seconds)} "
            f"({format_seconds(self.cpu_seconds)} of CPU time)",
            f"  {format_bytes(self.worker_bytes)} of memory per worker and {format_bytes(self.client_bytes)} for the "
            f"client, {format_bytes(self.disk_bytes)} of disk",
            f"  {'stage':<21} {'seconds':>9} {'CPU s':>8}",
        ]
        lines += [f"  {stage.name:<21} {stage.seconds:>9.1f} {stage.cpu_seconds:>8.1f}" for stage in self.stages]
        return "\n".join(lines)


def block_cost(n: int, d: int, k: int, *, itemsize: int, n_workers: int, n_compared: int, slowness: float) -> BlockCost:
    """Apply the model to dense rows.

    Parameters
    ----------
    n, d, k : int
        The number of rows, columns and clusters.
    itemsize : int
        The bytes of a value.
    n_workers : int
    n_compared : int
        The number of rows that are compared.
    slowness : float
        The time of this machine relative to the one of the measurements.
    """
    n_blocks = max(1, math.ceil(max(n / MAX_BLOCK_ROWS, n * d * itemsize / MAX_BLOCK_BYTES)))
    n_nodes = min(n, MAX_NODES, MAX_NODE_BYTES // (d * itemsize))
    stages = _stages(n, d, k, n_blocks, n_nodes, n_compared)
    steps = 8 + N_SUMS + MOVE_ROUNDS + WALK_STEPS
    block_rows = n / n_blocks
    worker_bytes = round(
        WORKER_BYTES["fixed"]
        + block_rows * (WORKER_BYTES["value"] * d * itemsize / 4 + WORKER_BYTES["row"] + WORKER_BYTES["membership"] * k)
    )
    client_bytes = round(CLIENT_BYTES["fixed"] + CLIENT_BYTES["node"] * n_nodes)
    overhead = (TASK_SECONDS * steps * n_blocks + READ_SECONDS * N_DIVISIONS * n_blocks**2) / len(stages.blocks)
    cost = {name: slowness * seconds + overhead for name, seconds in stages.blocks.items()}
    listed = [StageCost(name, seconds / n_workers, seconds, worker_bytes) for name, seconds in cost.items()]
    listed += [StageCost(name, slowness * s, slowness * s, client_bytes) for name, s in stages.client.items()]
    values, graph_bytes = n * d * itemsize, n * N_NEIGHBORS * (MUTUAL * 12 + 40)
    memberships = n * k * itemsize
    disk = 3 * values + graph_bytes + 5 * (1 + HALO / 2) * memberships
    moved = 8 * values + 2.5 * graph_bytes + (MOVE_ROUNDS + WALK_STEPS) * n * N_NEIGHBORS * MUTUAL * 8
    moved += WALK_STEPS * (4 + 2 * HALO) * memberships
    return BlockCost(
        n,
        d,
        k,
        tuple(listed),
        round(values),
        n_workers=n_workers,
        n_blocks=n_blocks,
        n_tasks=steps * n_blocks,
        worker_bytes=worker_bytes,
        client_bytes=client_bytes,
        disk_bytes=round(disk),
        moved_bytes=round(moved),
    )


def _stages(n: int, d: int, k: int, n_blocks: int, n_nodes: int, n_compared: int) -> BlockStages:
    n_cells = max(min(CELLS_PER_BLOCK * n_blocks, MAX_CELLS), n_blocks)
    return BlockStages(
        {
            "rows and cells": SECONDS["rows"] * n * d + SECONDS["division"] * n * d * n_cells,
            "neighbours": SECONDS["neighbours"] * n * (d + 50),
            "graph": SECONDS["graph"] * n,
            "sums for mixtures": N_SUMS * SECONDS["sums"] * n * d,
            "moves": MOVE_ROUNDS * SECONDS["moves"] * n,
            "memberships": SECONDS["start"] * n * d * n_compared + WALK_STEPS * SECONDS["walk"] * n * k,
        },
        {"search, on the client": SECONDS["search"] * n_nodes},
    )
