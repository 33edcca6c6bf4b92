"""Expected time and memory of a fit of ManifoldClustering, before it starts.

The time of every stage is a sum of few terms, and so is its peak memory,

    CPU seconds = Σ_t a_t s_t(n, d, K),      bytes = Σ_t b_t s_t(n, d, K),

where the size s_t of a term is a formula in the tables below, such as n² d for an exact search of neighbours. The
coefficients a_t and b_t were measured by ``python benchmarks/bench_estimate.py``, which prints them: a by least squares
of the relative error, b such that no measured fit took more. Times are then scaled to this machine by two short probes,
a matrix product and a gather.

What the rows are like matters as well: neighbours in few columns are found up to five times as fast if the columns are
correlated, and EM needs more iterations if clusters overlap. So the time is right within a factor of about two for most
data, while the memory is an upper estimate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import DTypeLike

from .._validation import check_int, check_n_clusters, check_n_jobs, check_positive, choose
from ..core.arrays import BLOCK_BYTES
from ..core.fitting import format_seconds
from ..core.parallel import (
    CELLS_PER_BLOCK,
    MAX_BLOCK_BYTES,
    MAX_BLOCK_ROWS,
    MAX_CELLS,
    MAX_NODE_BYTES,
    MAX_NODES,
    one_thread,
)
from ..errors import InputError
from ..graph.community import n_search_nodes
from ..graph.exact_search import MAX_TREE_FEATURES
from ..graph.neighbors import APPROXIMATE_ABOVE, DEVICE_APPROXIMATE_ABOVE, MAX_TREE_FEATURES_OF_MANY
from .candidates import MAX_SEARCHES, has_enough_rows, max_supernodes, n_searches
from .choice import EFFORTS
from .n_clusters import MAX_SAMPLED_ROWS

# ---------------------------------------------------------------------------------------------------------------------
# The expected cost of a fit, as it is shown.


@dataclass(frozen=True)
class StageCost:
    """Expected cost of one stage of a fit.

    Attributes
    ----------
    name : str
    seconds, cpu_seconds : float
        Time with the threads of this machine, and on all of its cores together.
    peak_bytes : int
        Memory during the stage, including the rows.

    Examples
    --------
    >>> import fiedler
    >>> [stage.name for stage in fiedler.estimate(5000, 100, n_clusters=10).stages]
    ['neighbour graphs', 'searching communities', 'comparing views', 'memberships']
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class FitCost:
    """Expected cost of a fit of ManifoldClustering, see :func:`fiedler.estimate`.

    Attributes
    ----------
    n_rows, n_columns, n_clusters : int
        The size of the fit; of a number of clusters that is still to be chosen, the largest.
    stages : tuple of StageCost
        The stages in the order of the fit.
    data_bytes : int
        The memory of the rows themselves.

    Examples
    --------
    >>> from fiedler.manifold import FitCost, StageCost
    >>> print(FitCost(1000, 5, 3, (StageCost("mixtures", 2.0, 4.0, 3 * 10**8),), data_bytes=40_000))
    1,000 x 5 rows, 3 clusters: about 2 s (4 s of CPU time), at most 300 MB
      stage                   seconds    CPU s   memory
      mixtures                    2.0      4.0   300 MB
    """

    n_rows: int
    n_columns: int
    n_clusters: int
    stages: tuple[StageCost, ...]
    data_bytes: int

    @property
    def seconds(self) -> float:
        """The time of the fit; right within a factor of about two."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def cpu_seconds(self) -> float:
        """The time on all cores together."""
        return sum(stage.cpu_seconds for stage in self.stages)

    @property
    def peak_bytes(self) -> int:
        """The peak of the memory, an upper estimate, including the rows."""
        return max(stage.peak_bytes for stage in self.stages)

    @property
    def extra_bytes(self) -> int:
        """The peak of the memory besides the rows."""
        return self.peak_bytes - self.data_bytes

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} x {self.n_columns:,} rows, {self.n_clusters} clusters: about "
            f"{format_seconds(self.seconds)} ({format_seconds(self.cpu_seconds)} of CPU time), "
            f"at most {format_bytes(self.peak_bytes)}",
            f"  {'stage':<21} {'seconds':>9} {'CPU s':>8} {'memory':>8}",
        ]
        for stage in self.stages:
            times = f"{stage.seconds:>9.1f} {stage.cpu_seconds:>8.1f}"
            lines.append(f"  {stage.name:<21} {times} {format_bytes(stage.peak_bytes):>8}")
        return "\n".join(lines)


def format_bytes(n_bytes: float) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> format_bytes(340e6), format_bytes(2.36e9), format_bytes(48e9)
    ('340 MB', '2.4 GB', '48 GB')
    """
    if n_bytes < 0.95e9:
        return f"{n_bytes / 1e6:.0f} MB"
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes < 9.5e9 else f"{n_bytes / 1e9:.0f} GB"


# ---------------------------------------------------------------------------------------------------------------------
# Expected cost of a fit of ManifoldClustering in blocks, see :mod:`fiedler.out_of_core`.
#
# As in :mod:`.cost`, every stage is a sum of terms whose coefficients were measured, by ``python
# benchmarks/bench_out_of_core.py`` on two cores, with ten million rows of 50 columns and 20 clusters. Times are scaled
# by the same probes. Work on blocks is divided among the workers, that of the client is not.

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


# ---------------------------------------------------------------------------------------------------------------------

MEMORY_MARGIN = 1.15  # on the memory that the model gives, which is that of the largest of the measured fits
THREAD_EFFICIENCY = 0.7  # part of an additional thread that shortens the time
N_PROPOSED = 50  # rows that a search compares with each row besides the products, at most
PROBE_SIZE, PROBE_REPEATS = 640, 3  # rows of the product, and how often each probe runs

GRAPHS, COUNTING = "neighbour graphs", "counting clusters"
COMMUNITIES, MIXTURES, MEMBERSHIPS = "searching communities", "mixtures", "memberships"
COMPARISON = "comparing views"
STAGES = (GRAPHS, COUNTING, COMMUNITIES, MIXTURES, COMPARISON, MEMBERSHIPS)

SKLEARN_TREE_FEATURES = 15  # features up to which scikit-learn searches double-precision rows by trees

Search = Literal["tree", "product", "double", "cells", "sparse", "device"]


class Problem(NamedTuple):
    """The size of a fit: n rows of d columns, k clusters."""

    n: int
    d: int
    k: int
    counts: bool  # whether the number of clusters is chosen, from 2 to k
    bytes_per_row: float
    nnz: float | None  # stored entries per row if the rows are sparse
    search: Search
    n_threads: int
    n_jobs: int
    n_compared: int = 0  # rows on which other methods and views are compared
    max_searches: int = MAX_SEARCHES

    @property
    def has_mixtures(self) -> bool:
        """Whether mixtures take part."""
        return self.nnz is None and self.k > 1 and has_enough_rows(self.n, self.d, self.k)

    @property
    def n_searches(self) -> int:
        """The number of searches on each graph."""
        return min(self.max_searches, n_searches(self.n))

    @property
    def n_search_nodes(self) -> int:
        """The number of nodes of the graphs on which communities are searched."""
        return n_search_nodes(self.n, self.k)


class TimeTerm(NamedTuple):
    """A term of the time of a stage: its size, and the probe that scales it to another machine."""

    stage: str
    probe: Literal["product", "gather"]
    size: Callable[[Problem], float]


def _if_search(kind: Search, size: Callable[[Problem], float]) -> Callable[[Problem], float]:
    return lambda p: size(p) if p.search == kind else 0.0


def _if_counting(size: Callable[[Problem], float]) -> Callable[[Problem], float]:
    return lambda p: size(p) if p.counts else 0.0


def _if_mixtures(size: Callable[[Problem], float]) -> Callable[[Problem], float]:
    return lambda p: size(p) if p.has_mixtures else 0.0


def _supernodes(p: Problem) -> int:
    """Return the number of supernodes on which mixtures are fitted."""
    return min(p.n, max_supernodes(p.d))


def _compared_pairs(p: Problem) -> float:
    """Return the number of pairs of rows that are compared on a device: all, or those in cells."""
    return p.n**2 if p.n <= DEVICE_APPROXIMATE_ABOVE else p.n**1.5 * DEVICE_APPROXIMATE_ABOVE**0.5


TIME_TERMS = {
    "graph": TimeTerm(GRAPHS, "gather", lambda p: p.n * math.log2(p.n)),
    "tree": TimeTerm(GRAPHS, "gather", _if_search("tree", lambda p: p.n * math.log2(p.n) * p.d**2)),
    "product": TimeTerm(GRAPHS, "product", _if_search("product", lambda p: p.n**2 * p.d)),
    "product, sort": TimeTerm(GRAPHS, "gather", _if_search("product", lambda p: p.n**2)),
    "double": TimeTerm(GRAPHS, "product", _if_search("double", lambda p: p.n**2 * p.d)),
    "double, sort": TimeTerm(GRAPHS, "gather", _if_search("double", lambda p: p.n**2)),
    "cells": TimeTerm(GRAPHS, "product", _if_search("cells", lambda p: p.n**1.5 * p.d**2)),  # more cells for more d
    "sparse": TimeTerm(GRAPHS, "gather", _if_search("sparse", lambda p: p.n**2 * (p.nnz or 0) ** 2 / p.d)),
    "device": TimeTerm(GRAPHS, "product", _if_search("device", _compared_pairs)),
    "counting, candidates": TimeTerm(COUNTING, "gather", _if_counting(lambda p: p.k)),
    "counting, sample": TimeTerm(COUNTING, "gather", _if_counting(lambda p: min(p.n, MAX_SAMPLED_ROWS) * p.k)),
    "communities, fixed": TimeTerm(COMMUNITIES, "gather", lambda p: 1.0),
    "communities, coarse": TimeTerm(COMMUNITIES, "gather", lambda p: p.n_searches * p.n_search_nodes * p.k),
    "communities, clusters": TimeTerm(COMMUNITIES, "gather", lambda p: p.n_searches * p.n_search_nodes * p.k**2),
    "communities, rows": TimeTerm(COMMUNITIES, "gather", lambda p: p.n),
    "communities, densities": TimeTerm(COMMUNITIES, "product", _if_mixtures(lambda p: p.n * p.d**2)),
    "mixtures": TimeTerm(MIXTURES, "product", _if_mixtures(lambda p: _supernodes(p) * p.k * p.d**2)),
    "mixtures, rows": TimeTerm(MIXTURES, "gather", _if_mixtures(lambda p: p.n * p.d)),
    "comparison, fixed": TimeTerm(COMPARISON, "gather", lambda p: 1.0 if p.n_compared else 0.0),
    "comparison, rows": TimeTerm(COMPARISON, "gather", lambda p: p.n_compared),
    "comparison, clusters": TimeTerm(COMPARISON, "gather", lambda p: p.n_compared * p.k**2),
    "comparison, pairs": TimeTerm(COMPARISON, "product", lambda p: p.n_compared**2 * min(p.d, 50)),
    "memberships": TimeTerm(MEMBERSHIPS, "gather", lambda p: p.n * p.k),
}

MEMORY_TERMS: dict[str, Callable[[Problem], float]] = {
    "fixed": lambda p: 1.0,
    "data": lambda p: p.n * p.bytes_per_row,
    "nodes": lambda p: p.n,
    "memberships": lambda p: p.n * p.k,
    "scatter": lambda p: _supernodes(p) * p.d**2 if p.has_mixtures else 0.0,
}

# Terms of each stage. The coefficient of the data is at least 1, for a copy of the rows.
MEMORY_TERMS_OF_STAGE = {
    GRAPHS: ("fixed", "data", "nodes"),
    COUNTING: ("fixed", "nodes"),
    COMMUNITIES: ("fixed", "data", "nodes", "memberships"),
    MIXTURES: ("fixed", "data", "nodes", "memberships", "scatter"),
    COMPARISON: ("fixed", "data", "nodes", "memberships"),
    MEMBERSHIPS: ("fixed", "nodes", "memberships"),
}


class Costs(NamedTuple):
    """What ``benchmarks/bench_estimate.py`` measured on one device.

    Attributes
    ----------
    probes : dict
        Seconds of the probes; empty if times are not scaled.
    seconds : dict
        CPU seconds of a unit of each of `TIME_TERMS`, on one core; on an accelerator, seconds.
    bytes : dict
        For each stage, the bytes of a unit of each of its `MEMORY_TERMS`.
    """

    probes: Mapping[str, float]
    seconds: Mapping[str, float]
    bytes: Mapping[str, Mapping[str, float]]


# Measured in November 2026 on a virtual x86-64 server, one core, NumPy 2.4, SciPy 1.17, scikit-learn 1.9. The memory of
# nodes and memberships is raised to that of a fit of a million rows, which the benchmark does not include. "cuda" is an
# NVIDIA H200 with torch; only the comparison of views, most of which runs on the host, has the figures of "cpu".
COSTS: dict[str, Costs] = {
    "cpu": Costs(
        probes={"product": 0.00498, "gather": 0.0018},
        seconds={
            "graph": 7.26e-07,
            "tree": 9.66e-09,
            "product": 3.61e-11,
            "product, sort": 1.45e-09,
            "double": 5.75e-11,
            "double, sort": 1.93e-09,
            "cells": 2.48e-11,
            "sparse": 5.21e-08,
            "counting, candidates": 0.128,
            "counting, sample": 4.42e-05,
            "communities, fixed": 0.513,
            "communities, coarse": 1.89e-06,
            "communities, clusters": 1.33e-07,
            "communities, rows": 1.89e-05,
            "communities, densities": 1.76e-09,
            "mixtures": 4.35e-09,
            "mixtures, rows": 3.95e-08,
            "comparison, fixed": 0.35,
            "comparison, rows": 0.000519,
            "comparison, clusters": 6.3e-07,
            "comparison, pairs": 5.38e-10,
            "memberships": 2.02e-07,
        },
        bytes={
            GRAPHS: {"fixed": 134217728.0, "data": 1.0, "nodes": 900.0},
            COUNTING: {"fixed": 134217728.0, "nodes": 900.0},
            COMMUNITIES: {"fixed": 134217728.0, "data": 1.0, "nodes": 900.0, "memberships": 10.0},
            MIXTURES: {"fixed": 134217728.0, "data": 1.0, "nodes": 900.0, "memberships": 10.0, "scatter": 24.0},
            COMPARISON: {"fixed": 268435456.0, "data": 1.0, "nodes": 900.0, "memberships": 10.0},
            MEMBERSHIPS: {"fixed": 134217728.0, "nodes": 500.0, "memberships": 40.0},
        },
    ),
    "cuda": Costs(
        probes={},
        seconds={
            "graph": 1.41e-07,
            "device": 9.21e-12,
            "counting, candidates": 0.526,
            "communities, fixed": 1.7,
            "communities, coarse": 1.7e-06,
            "communities, densities": 1.75e-09,
            "mixtures": 9.7e-10,
            "mixtures, rows": 3.52e-09,
            "comparison, fixed": 2.0,
            "comparison, rows": 0.000519,
            "comparison, clusters": 6.3e-07,
            "memberships": 1.78e-09,
        },
        bytes={
            GRAPHS: {"fixed": 1065827234.0, "data": 1.0, "nodes": 797.0},
            COUNTING: {"fixed": 134217728.0, "nodes": 797.0},
            COMMUNITIES: {"fixed": 134217728.0, "data": 1.0, "nodes": 797.0, "memberships": 44.0},
            MIXTURES: {"fixed": 134217728.0, "data": 6.0, "nodes": 797.0, "memberships": 0.0, "scatter": 24.0},
            COMPARISON: {"fixed": 1065827234.0, "data": 6.0, "nodes": 797.0, "memberships": 44.0},
            MEMBERSHIPS: {"fixed": 134217728.0, "nodes": 797.0, "memberships": 25.0},
        },
    ),
}


# ------------------------------------------------------------------------------------------------------- the estimate


def estimate(
    n_rows: int,
    n_columns: int,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    max_clusters: int = 20,
    effort: str = "default",
    dtype: DTypeLike = np.float64,
    nnz_per_row: float | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    n_workers: int | None = None,
) -> FitCost:
    """Estimate the time and the memory of a fit of ManifoldClustering.

    Parameters
    ----------
    n_rows, n_columns : int
        The size of the data.
    n_clusters : int or 'auto', default='auto'
        The number of clusters.
    max_clusters : int, default=20
        The largest number of clusters that 'auto' considers.
    effort : {'fast', 'default', 'thorough'}, default='default'
        How much is compared, as in ManifoldClustering; it is assumed that methods do not agree at once, and that the
        partition of the rows themselves is chosen.
    dtype : dtype, default=float64
        The type of the data; only float32 is not converted to float64.
    nnz_per_row : float, optional
        The mean number of stored entries in a row of sparse data; by default the data are dense.
    n_jobs : int, optional
        The number of threads, as in ManifoldClustering.
    device : {'cpu', 'cuda'}, default='cpu'
        Where the rows are; on an accelerator, the memory is that of the device, and times are those of an NVIDIA H200.
    n_workers : int, optional
        Estimate a fit in blocks instead, see :doc:`/out_of_core`, on so many worker processes of one core each.

    Returns
    -------
    FitCost
        ``seconds``, ``cpu_seconds`` and ``peak_bytes``, and the same of each stage; ``print`` shows a table. In blocks,
        a BlockCost, with ``worker_bytes``, ``client_bytes``, ``disk_bytes`` and ``moved_bytes`` as well.

    Notes
    -----
    The first call takes some 50 ms, in which it measures how fast this machine is.

    Examples
    --------
    >>> import fiedler
    >>> cost = fiedler.estimate(200_000, 50, n_clusters=20, dtype="float32")
    >>> cost.peak_bytes < fiedler.estimate(400_000, 50, n_clusters=20, dtype="float32").peak_bytes < 100e9
    True
    """
    n, d = check_int(n_rows, "n_rows", minimum=2), check_int(n_columns, "n_columns")
    counts = isinstance(n_clusters, str) and n_clusters == "auto"
    largest = min(check_int(max_clusters, "max_clusters", minimum=2), n)
    n_jobs = check_n_jobs(n_jobs)
    costs = choose(COSTS, device, option="device")
    is_single = np.dtype(dtype) == np.float32
    nnz = None if nnz_per_row is None else check_positive(nnz_per_row, "nnz_per_row")
    itemsize = 4 if is_single else 8
    compared = choose(EFFORTS, effort, option="effort")
    k = largest if counts else check_n_clusters(n_clusters, n, or_else="'auto'")
    n_compared = 0 if compared is None else min(n, compared.n_rows(low_dimensional=nnz is None))
    if n_workers is not None:
        return _estimate_blocks(n, d, k, itemsize, nnz, check_int(n_workers, "n_workers"), n_compared)
    with one_thread() as n_blas_threads:
        n_threads = effective_n_jobs(n_jobs) if n_jobs else n_blas_threads
    problem = Problem(
        n,
        d,
        k,
        counts,
        bytes_per_row=d * itemsize if nnz is None else nnz * (itemsize + 4) + 4,
        nnz=nnz,
        search=_search(n, d, is_single, nnz is not None, device),
        n_threads=n_threads,
        n_jobs=effective_n_jobs(n_jobs) if n_jobs else 1,
        n_compared=n_compared,
        max_searches=MAX_SEARCHES if compared is None else compared.max_searches,
    )
    return cost_of(problem, costs, machine_speed() if costs.probes else {})


def _estimate_blocks(
    n: int, d: int, k: int, itemsize: int, nnz: float | None, n_workers: int, n_compared: int
) -> FitCost:
    """Estimate a fit in blocks."""
    if nnz is not None:
        raise InputError(
            "the cost of sparse rows in blocks is not known", "leave out nnz_per_row", parameter="nnz_per_row"
        )
    slowness = machine_speed()["product"] / COSTS["cpu"].probes["product"]
    options: dict[str, Any] = {
        "itemsize": itemsize,
        "n_workers": n_workers,
        "n_compared": n_compared,
        "slowness": slowness,
    }
    return block_cost(n, d, k, **options)


def _search(n: int, d: int, is_single: bool, is_sparse: bool, device: str) -> Search:
    """Return the search that :func:`fiedler.graph.neighbors.k_nearest` uses."""
    if device != "cpu":
        return "device"
    if is_sparse:
        return "sparse"
    if n > APPROXIMATE_ABOVE and d > MAX_TREE_FEATURES_OF_MANY:
        return "cells"
    if is_single and d > MAX_TREE_FEATURES:
        return "product"
    return "tree" if d <= SKLEARN_TREE_FEATURES else "double"


def cost_of(problem: Problem, costs: Costs, probes: Mapping[str, float]) -> FitCost:
    """Apply the model to a problem, on a machine where the probes take the given seconds."""
    slowness = {name: probes[name] / reference for name, reference in costs.probes.items()}
    cpu_seconds = dict.fromkeys(STAGES, 0.0)
    for name, term in TIME_TERMS.items():
        cpu_seconds[term.stage] += costs.seconds.get(name, 0.0) * term.size(problem) * slowness.get(term.probe, 1.0)
    used = [stage for stage in STAGES if cpu_seconds[stage] > 0]
    return FitCost(
        problem.n,
        problem.d,
        problem.k,
        tuple(
            StageCost(
                stage,
                cpu_seconds[stage] / _speedup(stage, problem),
                cpu_seconds[stage],
                round(problem.n * problem.bytes_per_row + MEMORY_MARGIN * stage_bytes(stage, problem, costs)),
            )
            for stage in used
        ),
        round(problem.n * problem.bytes_per_row),
    )


def stage_bytes(stage: str, problem: Problem, costs: Costs) -> float:
    """Return the memory that a stage needs besides the rows, without the margin."""
    measured = sum(coefficient * MEMORY_TERMS[name](problem) for name, coefficient in costs.bytes[stage].items())
    return measured + block_bytes(problem)


def block_bytes(problem: Problem) -> float:
    """Return the memory of the blocks of rows in which neighbours are searched exactly, one for each thread.

    The allocator may keep it after the search, so it counts in all stages.
    """
    if problem.search not in ("product", "double", "sparse"):
        return 0.0
    all_rows = 8.0 * problem.n * (3 * problem.n + N_PROPOSED * problem.d)  # in a single block
    return min(problem.n_threads * float(BLOCK_BYTES), all_rows)


def _speedup(stage: str, problem: Problem) -> float:
    """Return how many times threads shorten a stage."""
    if problem.search == "device":
        return 1.0
    n_threads = {
        GRAPHS: problem.n_threads,
        COUNTING: min(problem.n_jobs, 4),  # subsets
        COMMUNITIES: min(problem.n_jobs, 2),  # graphs
        COMPARISON: min(problem.n_jobs, 2),  # three views, after the rows themselves
        MIXTURES: problem.n_threads,
    }.get(stage, 1)
    return 1 + THREAD_EFFICIENCY * (n_threads - 1)


# ------------------------------------------------------------------------------------------------------------- probes


@cache
def machine_speed() -> dict[str, float]:
    """Return the CPU seconds that one core takes for a matrix product and for a gather with sums."""
    rng = np.random.RandomState(0)
    A = rng.standard_normal((PROBE_SIZE, PROBE_SIZE)).astype(np.float32)
    indices, values = rng.randint(2**18, size=2**19), rng.random_sample(2**18)
    with one_thread():
        return {
            "product": _shortest(lambda: A @ A),
            "gather": _shortest(lambda: np.bincount(indices, values[indices])),
        }


def _shortest(work: Callable[[], Any]) -> float:
    """Return the shortest CPU time of some runs, which other programs disturb least."""
    times = []
    for _ in range(PROBE_REPEATS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)
