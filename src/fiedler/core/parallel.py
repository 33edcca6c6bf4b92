"""Memory, and computations on blocks of rows: in parallel threads on the host, one after the other on a device.

All of them end soon after an interrupt, and so do their threads. A thread does not start further ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from threading import Event, Lock, local
from time import perf_counter
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from ..errors import NotEnoughMemoryError, ignore_warnings, ignored_warnings
from .arrays import Array, is_numpy, itemsize, namespace, row_blocks
from .fitting import check_interrupt, is_worker_thread, stage, worker_thread

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
    """Return the peak resident memory in MiB (on Linux since :func:`reset_peak_memory`), or None if it is not known."""
    if (peak := _read_kib(STATUS, "VmHWM")) is not None:
        return round(peak / 2**20)
    try:
        resource: Any = import_module("resource")  # not available on Windows
    except ImportError:
        return None
    bytes_per_unit = 1 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit / 2**20)


def available_memory() -> int | None:
    """Return the bytes that the machine, or a control group of the process, has left; None if they are not known."""
    amounts = [_read_kib(MEMORY_INFO, "MemAvailable"), *(_left_in_group(folder) for folder in _group_folders())]
    return min((amount for amount in amounts if amount is not None), default=None)


def check_memory(n_bytes: float, purpose: str, hint: str) -> None:
    """Raise an error if ``n_bytes`` exceed the available memory, where the operating system reports it."""
    free = available_memory() if n_bytes >= MIN_CHECKED_BYTES else None
    if free is not None and n_bytes > free:
        problem = f"{purpose} needs about {n_bytes / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is available"
        raise NotEnoughMemoryError(problem, hint, required_gb=n_bytes / 1e9, available_gb=free / 1e9)


def _read_kib(path: Path, name: str) -> int | None:
    """Return a value of a file of lines ``name: value kB``, in bytes."""
    try:
        lines = path.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 2**10
    except (OSError, StopIteration, ValueError):
        return None


def _group_folders() -> Iterator[Path]:
    """Yield the folders of all memory groups of this process: its own and those above, each of which has a limit."""
    # In a container the path may be that of the host; then only the top folder exists, which is the container's.
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


# Sizes of the blocks of rows that exceed the memory: what files are read in, fits work in, and estimates count.
MAX_BLOCK_ROWS, MAX_BLOCK_BYTES = 2**17, 2**26  # at most on average: a worker needs some hundred megabytes
CELLS_PER_BLOCK, MAX_CELLS = 8, 4096  # cells of nearby rows, of which blocks are made
MAX_NODES, MAX_NODE_BYTES = 200_000, 2**28  # of a contracted graph on one machine, and of the means of its nodes


T = TypeVar("T")
R = TypeVar("R")

ROW_BLOCK_BYTES = 2**20  # size of the temporaries of a row-wise computation: what fits into the cache of a core
DEVICE_ROW_BLOCK_BYTES = 2**30  # the same on an accelerator
PIECE_SECONDS = 0.5  # duration of one call of a library that hears no interrupt until it returns
FIRST_PIECE = 512  # rows of the first such call, by whose duration the next ones are sized


def map_blocks(
    work: Callable[[slice], Any],
    blocks: Iterable[slice],
    X: Array,
    *,
    n_jobs: int | None = None,
    tick: Callable[[], None] = lambda: None,
) -> list:
    """Call ``work`` on every block of the rows of ``X`` and return the results in order; ``tick`` after each.

    Each thread uses a single BLAS and OpenMP thread: libraries that spread small work over all cores spend their time
    waiting. After an error or an interrupt, blocks that have not begun are dropped.
    """
    blocks = list(blocks)
    if len(blocks) == 1 or not is_numpy(X):
        return list(_in_turn(map(work, blocks), tick))
    with one_thread() as n_threads:
        return _map_in_threads(work, blocks, effective_n_jobs(n_jobs) if n_jobs else n_threads, tick)


def _map_in_threads(work: Callable[[T], R], items: Sequence[T], n_threads: int, tick: Callable[[], None]) -> list[R]:
    """Call ``work`` on every item in several threads, or in this one if it is such a thread itself."""
    n_threads = 1 if is_worker_thread() else min(len(items), n_threads)
    if n_threads <= 1:
        return list(_in_turn(map(work, items), tick))
    flag, executor, ignored = Event(), ThreadPoolExecutor(n_threads), ignored_warnings()
    try:
        futures = [executor.submit(_call_in_thread, work, item, flag, ignored) for item in items]
        return list(_in_turn((future.result() for future in futures), tick))
    except BaseException:
        flag.set()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _call_in_thread(work: Callable[[T], R], item: T, flag: Event, ignored: tuple[type[Warning], ...]) -> R:
    with one_thread(), worker_thread(flag), ignore_warnings(*ignored):
        check_interrupt()
        return work(item)


def map_tasks(work: Callable[[T], R], items: Sequence[T], name: str, n_jobs: int | None = None) -> list[R]:
    """Call ``work`` on a few long items, in threads with one BLAS thread each; return the results in order."""
    with one_thread(), stage(name, len(items)) as tick:
        return _map_in_threads(work, items, effective_n_jobs(n_jobs), tick)


def _in_turn(results: Iterable[R], tick: Callable[[], None]) -> Iterator[R]:
    for result in results:
        check_interrupt()
        tick()
        yield result


def map_pieces(work: Callable[[slice], Any], n_rows: int, name: str) -> list:
    """Call ``work`` on consecutive slices of the rows that take about `PIECE_SECONDS` each, and report the percentage.

    It is for calls of other libraries that use threads of their own. The result of a row must not depend on the other
    rows of its slice, since the slices depend on the speed of the machine.
    """
    results, start, size = [], 0, FIRST_PIECE
    with stage(name, 100) as tick:
        while start < n_rows:
            stop, start_time = min(start + size, n_rows), perf_counter()
            results.append(work(slice(start, stop)))
            speed = PIECE_SECONDS / max(perf_counter() - start_time, 1e-3)
            for _ in range(100 * stop // n_rows - 100 * start // n_rows):
                tick()
            start, size = stop, max(1, int((stop - start) * min(speed, 4)))
    return results


def map_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a row-wise ``function`` to arrays of equally many rows, block by block, and concatenate the results."""
    first = arrays[0]
    width = 4 * itemsize(first) * first.shape[1]
    blocks = row_blocks(
        first.shape[0], width, first, host_bytes=ROW_BLOCK_BYTES, device_bytes=DEVICE_ROW_BLOCK_BYTES, min_rows=64
    )
    work = lambda rows: function(*(array[rows, ...] for array in arrays))  # noqa: E731
    return namespace(first).concat(map_blocks(work, blocks, first), axis=0)


class _OneThread:
    """A context in which BLAS and OpenMP use one thread; entering it returns the number of threads that BLAS had.

    BLAS is limited for the process: the first thread to enter sets the limit, the last to leave lifts it. OpenMP is
    limited for the thread that enters, so threads started inside must enter again. Libraries that are loaded while a
    thread is inside are found the next time.
    """

    def __init__(self) -> None:
        self.lock, self.n_inside, self.n_threads, self.n_modules = Lock(), 0, 1, 0
        self.blas: Any = None
        self.openmp: Any = None
        self.blas_limit: Any = None
        self.thread = local()

    def __enter__(self) -> int:
        with self.lock:
            if self.n_inside == 0:
                self._find_libraries()
        depth = getattr(self.thread, "depth", 0)
        if depth == 0:
            self.thread.openmp_limit = self.openmp.limit(limits=1)
        self.thread.depth = depth + 1
        try:
            with self.lock:
                if self.n_inside == 0:
                    self.n_threads = max((pool.num_threads for pool in self.blas.lib_controllers), default=1)
                    self.blas_limit = self.blas.limit(limits=1)
                self.n_inside += 1
        except BaseException:  # an interrupt
            self._leave_thread()
            raise
        return self.n_threads

    def _find_libraries(self) -> None:
        """Look for the libraries that are loaded; this takes milliseconds, so it is done only after further imports."""
        n_modules = len(sys.modules)
        if self.n_modules != n_modules:
            controller = ThreadpoolController()
            self.blas, self.openmp = (controller.select(user_api=api) for api in ("blas", "openmp"))
            self.n_modules = n_modules  # last, so that an interrupted search is repeated

    def __exit__(self, *_: Any) -> None:
        try:
            with self.lock:
                self.n_inside -= 1
                if self.n_inside == 0:
                    self.blas_limit.restore_original_limits()
        finally:
            self._leave_thread()  # last, since a BLAS that uses OpenMP, as that of faiss, sets the threads of both

    def _leave_thread(self) -> None:
        self.thread.depth -= 1
        if self.thread.depth == 0:
            self.thread.openmp_limit.restore_original_limits()


@cache
def one_thread() -> _OneThread:
    """Return a context in which BLAS and OpenMP use one thread."""
    # In threads, and for small products, the threads of these libraries mostly wait and burn processor time.
    return _OneThread()
