"""Work on blocks of rows: in threads of one BLAS thread each on the host, in turn on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from .backend import Array, is_numpy


def over_blocks(work: Callable[[slice], Any], blocks: Iterable[slice], X: Array, *, n_jobs: int | None = None) -> list:
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
    pools = _pools()
    n_threads = pools.n_blas_threads() if n_jobs is None else effective_n_jobs(n_jobs)
    with pools.controller.limit(limits=1, user_api="blas"), ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(work, blocks))


class _Pools:
    """The BLAS libraries of this process; finding them takes milliseconds, so it is done once."""

    def __init__(self) -> None:
        self.controller = ThreadpoolController()

    def n_blas_threads(self) -> int:
        """The threads that BLAS would use now."""
        pools = self.controller.select(user_api="blas").lib_controllers
        return max((pool.num_threads for pool in pools), default=1)


@cache
def _pools() -> _Pools:
    return _Pools()
