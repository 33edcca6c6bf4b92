"""Expected time and memory of a fit of ManifoldClustering, before it starts.

The CPU seconds are a sum of few terms in the number of rows n, of columns d and of clusters K, with coefficients that
were measured on one core of a virtual x86-64 server; two short probes scale them to this machine. Correlated columns
are searched faster, and EM needs more iterations if clusters overlap: the time is right within a factor of about three.
The memory is an upper bound. ``python benchmarks/bench_estimate.py`` compares both with measured fits.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import DTypeLike

from .._validation import check_int, check_n_clusters, check_n_jobs, check_positive, choose
from ..core.arrays import BLOCK_BYTES
from ..core.fitting import format_seconds
from ..core.parallel import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, MAX_NODE_BYTES, MAX_NODES, one_thread
from ..errors import InputError
from ..graph.community import n_search_nodes
from ..graph.neighbors import APPROXIMATE_ABOVE, DEVICE_APPROXIMATE_ABOVE, MAX_TREE_FEATURES_OF_MANY
from .candidates import MAX_SEARCHES, has_enough_rows, max_supernodes, n_searches
from .choice import EFFORTS
from .n_clusters import MAX_SAMPLED_ROWS

ASSUMED_CLUSTERS = 20  # where the number is not given
TREE_FEATURES = 15  # columns up to which neighbours are searched by trees
PROBE_SECONDS = 0.0068  # of both probes on the machine of the measurements
MEMORY = {"cpu": (3.0e8, 1.2), "cuda": (1.3e9, 7.0)}  # fixed bytes, and copies of the rows


@dataclass(frozen=True)
class FitCost:
    """Expected cost of a fit of ManifoldClustering, see :func:`fiedler.estimate`.

    Attributes
    ----------
    n_rows, n_columns, n_clusters : int
        The size of the fit; of a number of clusters that is still to be chosen, the largest.
    seconds, cpu_seconds : float
        The time with the threads or workers of the fit, and on all cores together.
    peak_bytes, data_bytes : int
        An upper bound on the memory, in blocks that of all processes, and the memory of the rows, which it includes.
    n_workers, disk_bytes : int or None
        The number of worker processes of a fit in blocks, and the size of its work directory.

    Examples
    --------
    >>> from fiedler.manifold import FitCost
    >>> print(FitCost(1000, 5, 3, seconds=2.0, cpu_seconds=4.0, peak_bytes=3 * 10**8, data_bytes=40_000))
    1,000 x 5 rows, 3 clusters: about 2 s (4 s of CPU time), at most 300 MB of memory
    """

    n_rows: int
    n_columns: int
    n_clusters: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    data_bytes: int
    n_workers: int | None = None
    disk_bytes: int | None = None

    @property
    def extra_bytes(self) -> int:
        """The peak of the memory besides the rows."""
        return self.peak_bytes - self.data_bytes

    def __str__(self) -> str:
        size = f"{self.n_rows:,} x {self.n_columns:,} rows, {self.n_clusters} clusters"
        size += "" if self.n_workers is None else f", in blocks on {self.n_workers} workers"
        disk = "" if self.disk_bytes is None else f" and {format_bytes(self.disk_bytes)} of disk"
        times = f"{format_seconds(self.seconds)} ({format_seconds(self.cpu_seconds)} of CPU time)"
        return f"{size}: about {times}, at most {format_bytes(self.peak_bytes)} of memory{disk}"


def format_bytes(n_bytes: float) -> str:
    """Format a number of bytes: 340e6 is '340 MB', 2.36e9 is '2.4 GB', 48e9 is '48 GB'."""
    if n_bytes < 0.95e9:
        return f"{n_bytes / 1e6:.0f} MB"
    return f"{n_bytes / 1e9:.{1 if n_bytes < 9.5e9 else 0}f} GB"


def estimate(
    n_rows: int,
    n_columns: int,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    max_clusters: int | None = None,
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
    n_clusters, max_clusters, effort, n_jobs
        As in :class:`ManifoldClustering`; it is assumed that methods do not agree at once, and that 'auto' chooses at
        most 20 clusters.
    dtype : dtype, default=float64
        The type of the data; only float32 is not converted to float64.
    nnz_per_row : float, optional
        The mean number of stored entries in a row of sparse data; by default the data are dense.
    device : {'cpu', 'cuda'}, default='cpu'
        Where the rows are; on an accelerator, the memory is that of the device, and times are those of an NVIDIA H200.
    n_workers : int, optional
        Estimate a fit in blocks instead, see :doc:`/out_of_core`, on so many worker processes of one core each.

    Returns
    -------
    FitCost
        ``seconds``, ``cpu_seconds`` and ``peak_bytes``, in blocks also ``disk_bytes``; ``print`` shows a sentence. The
        first call measures how fast this machine is, in some 50 ms.

    Examples
    --------
    >>> import fiedler
    >>> fiedler.estimate(200_000, 50, n_clusters=20, dtype="float32").peak_bytes < 2e9
    True
    """
    n, d, n_jobs = check_int(n_rows, "n_rows", minimum=2), check_int(n_columns, "n_columns"), check_n_jobs(n_jobs)
    is_auto = isinstance(n_clusters, str) and n_clusters == "auto"
    largest = ASSUMED_CLUSTERS if max_clusters is None else check_int(max_clusters, "max_clusters", minimum=2)
    fixed_bytes, copies = choose(MEMORY, device, option="device")
    nnz = None if nnz_per_row is None else check_positive(nnz_per_row, "nnz_per_row")
    itemsize = 4 if np.dtype(dtype) == np.float32 else 8
    compared = choose(EFFORTS, effort, option="effort")
    k = min(largest, ASSUMED_CLUSTERS, n) if is_auto else check_n_clusters(n_clusters, n, or_else="'auto'")
    n_compared = 0 if compared is None else min(n, compared.n_rows(low_dimensional=nnz is None))
    if n_workers is not None:
        return _estimate_blocks(n, d, k, itemsize, nnz, check_int(n_workers, "n_workers"))
    with one_thread() as n_blas_threads:
        n_threads = effective_n_jobs(n_jobs) if n_jobs else n_blas_threads
    searches = min(MAX_SEARCHES if compared is None else compared.max_searches, n_searches(n))
    scatter = min(n, max_supernodes(d)) * d**2 if nnz is None and k > 1 and has_enough_rows(n, d, k) else 0
    others = 0.4 + n * ((3e-5 if device == "cpu" else 3e-6) + 2e-7 * k)  # graphs, memberships
    others += searches * n_search_nodes(n, k) * k * (1.9e-6 + 1.3e-7 * k)  # communities
    others += (2e-9 * n * d**2 if scatter else 0.0) + 4.4e-9 * scatter * k  # mixtures
    others += n_compared * (4e-4 + 6e-7 * k**2 + 5e-10 * n_compared * min(d, 50))  # comparison of views
    others += 0.4 + 1.2e-3 * min(n, MAX_SAMPLED_ROWS) + 2e-5 * min(n, 10_000) if is_auto else 0.0  # the count
    search, scale = _search_seconds(n, d, nnz, device), slowness() if device == "cpu" else 1.0
    speedup, of_search = (1 + 0.7 * (threads - 1) for threads in (min(effective_n_jobs(n_jobs or 1), 2), n_threads))
    data = n * (d * itemsize if nnz is None else nnz * (itemsize + 4) + 4)
    blocks = min(n_threads * 1.2 * BLOCK_BYTES, 9.0 * n * (3 * n + 50 * d))  # of an exact search
    peak = round(fixed_bytes + (1 + copies) * data + n * (1100 + 50 * k) + 28 * scatter + blocks)
    seconds = scale * (search / of_search + others / speedup)
    return FitCost(n, d, k, seconds, scale * (search + others), peak, round(data))


def _search_seconds(n: int, d: int, nnz: float | None, device: str) -> float:
    """Return the time of the search of neighbours, by the method that ``graph.neighbors.k_nearest`` chooses."""
    if device != "cpu":
        return 1e-11 * n**1.5 * min(n, DEVICE_APPROXIMATE_ABOVE) ** 0.5
    if nnz is not None:
        return 5.2e-8 * n**2 * nnz**2 / d
    if n > APPROXIMATE_ABOVE and d > MAX_TREE_FEATURES_OF_MANY:
        return 2.5e-11 * n**1.5 * d**2  # in cells, of which there are more for more columns
    return 1e-8 * n * math.log2(n) * d**2 if d <= TREE_FEATURES else 5e-11 * n**2 * (d + 40)


def _estimate_blocks(n: int, d: int, k: int, itemsize: int, nnz: float | None, n_workers: int) -> FitCost:
    """Estimate a fit in blocks, as ``benchmarks/bench_out_of_core.py`` measured it on ten million rows."""
    if nnz is not None:
        problem = "the cost of sparse rows in blocks is not known"
        raise InputError(problem, "leave out nnz_per_row", parameter="nnz_per_row")
    n_blocks = max(1, math.ceil(max(n / MAX_BLOCK_ROWS, n * d * itemsize / MAX_BLOCK_BYTES)))
    n_nodes = min(n, MAX_NODES, MAX_NODE_BYTES // (d * itemsize))
    overhead = 0.34 * n_blocks + 0.002 * n_blocks**2  # of tasks, and of reading a part of every file in every block
    block_seconds, client_seconds = (
        slowness() * n * (1e-4 + 2.2e-6 * d + 1e-6 * k) + overhead,
        slowness() * 1.8e-4 * n_nodes,
    )
    worker_bytes = 3e8 + n / n_blocks * (6 * d * itemsize + 2600 + 20 * k)
    peak = round(n_workers * worker_bytes + 4e8 + 8000 * n_nodes)
    data, disk = n * d * itemsize, round(n * (3 * d * itemsize + 520 + 6.5 * k * itemsize))
    return FitCost(
        n, d, k, block_seconds / n_workers + client_seconds, block_seconds + client_seconds, peak, data, n_workers, disk
    )


@cache
def slowness() -> float:
    """Return the time of a matrix product and a gather relative to the machine of the measurements."""
    rng, times = np.random.RandomState(0), []
    A = rng.standard_normal((640, 640)).astype(np.float32)
    indices, values = rng.randint(2**18, size=2**19), rng.random_sample(2**18)
    with one_thread():
        for _ in range(3):  # other programs disturb the shortest least
            start = time.thread_time()
            A @ A
            np.bincount(indices, values[indices])
            times.append(time.thread_time() - start)
    return min(times) / PROBE_SECONDS
