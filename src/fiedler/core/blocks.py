"""Work on blocks of rows: in threads of one BLAS thread each on the host, in turn on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from .backend import Array, is_numpy, itemsize, namespace, row_blocks

ROW_BYTES = 2**20  # of a few temporaries of a row-wise computation: what a core keeps close
DEVICE_ROW_BYTES = 2**30


def map_blocks(work: Callable[[slice], Any], blocks: Iterable[slice], X: Array, *, n_jobs: int | None = None) -> list:
    """``work`` on every block of the rows of ``X``, results in order.

    Small products keep one core busy each; a BLAS that spreads each of them over all cores spends its time waiting.

    Parameters
    ----------
    work : callable
    blocks : iterable of slice
    X : array
        Where the rows are: threads are for NumPy only.
    n_jobs : int, optional
        None is as many threads as the BLAS has.
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
    """``function`` of arrays with as many rows, computed block by block; it gives a row for each of theirs."""
    first = arrays[0]
    width = 4 * itemsize(first) * first.shape[1]
    blocks = row_blocks(first.shape[0], width, first, host=ROW_BYTES, device=DEVICE_ROW_BYTES, least=64)
    work = lambda rows: function(*(array[rows, ...] for array in arrays))  # noqa: E731
    return namespace(first).concat(map_blocks(work, blocks, first), axis=0)


class _OneThreadBLAS:
    """While anyone is inside, BLAS uses one thread; says how many it had.

    The limit belongs to the process, not to a thread: the first to come sets it, the last to go lifts it.
    """

    def __init__(self) -> None:
        self.controller = ThreadpoolController()  # finding the libraries takes milliseconds, so it is done once
        self.lock, self.inside, self.n_threads = Lock(), 0, 1
        self.limit: Any = None

    def __enter__(self) -> int:
        with self.lock:
            if self.inside == 0:
                pools = self.controller.select(user_api="blas").lib_controllers
                self.n_threads = max((pool.num_threads for pool in pools), default=1)
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.inside += 1
            return self.n_threads

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


@cache
def one_blas_thread() -> _OneThreadBLAS:
    """A block in which BLAS uses one thread: for work that threads share already, or that is made of small products."""
    return _OneThreadBLAS()
