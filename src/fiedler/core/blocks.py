"""Computations on blocks of rows: in parallel threads on the host, one after the other on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from .backend import Array, is_numpy, itemsize, namespace, row_blocks

ROW_BLOCK_BYTES = 2**20  # size of the temporaries of a row-wise computation: what fits into the cache of a core
DEVICE_ROW_BLOCK_BYTES = 2**30  # the same on an accelerator


def map_blocks(work: Callable[[slice], Any], blocks: Iterable[slice], X: Array, *, n_jobs: int | None = None) -> list:
    """Call ``work`` on every block of the rows of ``X`` and return the results in order.

    Each thread uses a single BLAS thread: a BLAS that spreads small products over all cores spends its time waiting.

    Parameters
    ----------
    work : callable
        A function of one slice.
    blocks : iterable of slice
        The blocks of rows.
    X : array
        The rows; only NumPy arrays and SciPy matrices are processed in parallel.
    n_jobs : int, optional
        Number of threads; default the number of BLAS threads.

    Returns
    -------
    list
        One result per block.
    """
    blocks = list(blocks)
    if len(blocks) == 1 or not is_numpy(X):
        return [work(rows) for rows in blocks]
    with (
        one_blas_thread() as n_threads,
        ThreadPoolExecutor(effective_n_jobs(n_jobs) if n_jobs else n_threads) as executor,
    ):
        return list(executor.map(work, blocks))


def map_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a row-wise ``function`` to arrays of equally many rows, block by block, and concatenate the results."""
    first = arrays[0]
    width = 4 * itemsize(first) * first.shape[1]
    blocks = row_blocks(
        first.shape[0], width, first, host_bytes=ROW_BLOCK_BYTES, device_bytes=DEVICE_ROW_BLOCK_BYTES, min_rows=64
    )
    work = lambda rows: function(*(array[rows, ...] for array in arrays))  # noqa: E731
    return namespace(first).concat(map_blocks(work, blocks, first), axis=0)


class _OneThreadBLAS:
    """A context in which BLAS uses one thread; entering it returns the number of threads it had.

    The limit applies to the process, not to a thread: the first thread to enter sets it, the last to leave lifts it.
    """

    def __init__(self) -> None:
        self.controller = ThreadpoolController()  # takes milliseconds, so it is made once
        self.lock, self.n_inside, self.n_threads = Lock(), 0, 1
        self.limit: Any = None

    def __enter__(self) -> int:
        with self.lock:
            if self.n_inside == 0:
                pools = self.controller.select(user_api="blas").lib_controllers
                self.n_threads = max((pool.num_threads for pool in pools), default=1)
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.n_inside += 1
            return self.n_threads

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.n_inside -= 1
            if self.n_inside == 0:
                self.limit.restore_original_limits()


@cache
def one_blas_thread() -> _OneThreadBLAS:
    """Return a context in which BLAS uses one thread: for work that runs in threads or consists of small products."""
    return _OneThreadBLAS()
