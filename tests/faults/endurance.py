"""Fits in a long-lived process: many one after another, and several at once.

``make endurance`` runs 1,000 fits over all estimators of the registry, checks that memory, threads and file descriptors
do not grow, and that eight threads at once give what one gives. The tests run a short version.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from contract import INSTANCES, blobs, fit, result, rows_for

MIB = 2**20


class Resources(NamedTuple):
    """What a process holds."""

    memory_mib: float  # resident
    n_threads: int
    n_descriptors: int


def resources() -> Resources:
    """Return what this process holds (Linux)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    n_threads = len(os.listdir("/proc/self/task"))
    return Resources(pages * os.sysconf("SC_PAGE_SIZE") / MIB, n_threads, len(os.listdir("/proc/self/fd")))


def jobs(n_per_cluster: int) -> list[Callable[[], np.ndarray]]:
    """Return one function per estimator of the registry that fits a new model and returns what it says of the rows."""
    return [_job(_seeded(model), rows_for(model, blobs(n_per_cluster))) for model in INSTANCES]


def _seeded(model: Any) -> Any:
    return clone(model).set_params(random_state=0) if "random_state" in model.get_params() else clone(model)


def _job(model: Any, X: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: result(fit(clone(model), X), X)


def run_in_threads(work: Sequence[Callable[[], np.ndarray]], n_threads: int, repeats: int) -> list[list[np.ndarray]]:
    """Run every job ``repeats`` times, several at once; return the results of each job."""
    with ThreadPoolExecutor(n_threads) as executor:
        futures = [[executor.submit(job) for job in work] for _ in range(repeats)]
        return [[run[i].result() for run in futures] for i in range(len(work))]


def global_state() -> tuple[Any, ...]:
    """Return the state of the process that a fit must not change."""
    kind, keys, position, *rest = np.random.get_state()  # noqa: NPY002
    return (
        list(warnings.filters),
        warnings.showwarning,
        np.geterr(),
        (kind, keys.tolist(), position, *rest),
        random.getstate(),
        dict(os.environ),
        os.getcwd(),
        threading.active_count(),
    )


def main(n_fits: int) -> None:
    """Run ``n_fits`` fits one after another, then all estimators in eight threads, and report growth."""
    warnings.simplefilter("ignore")
    work = jobs(20)
    expected = [job() for job in work]
    for job in work:  # warm-up: caches of libraries, arenas of the allocator
        job()
    before, start = resources(), time.perf_counter()
    print(f"after {2 * len(work)} fits: {before}", flush=True)
    for i in range(n_fits):
        job = i % len(work)
        if not np.array_equal(work[job](), expected[job]):
            sys.exit(f"fit {i} of {INSTANCES[job]} differs from the first one")
        if (i + 1) % (n_fits // 10 or 1) == 0:
            print(f"after {i + 1} more: {resources()}, {time.perf_counter() - start:.0f} s", flush=True)
    after, state = resources(), global_state()
    for i, runs in enumerate(run_in_threads(work, 8, 3)):
        if not all(np.array_equal(run, expected[i]) for run in runs):
            sys.exit(f"{INSTANCES[i]} gives another result while other threads fit")
    if global_state() != state:
        sys.exit("fits in threads have changed the state of the process")
    print(f"after {3 * len(work)} in 8 threads: {resources()}")
    if (growth := after.memory_mib - before.memory_mib) > max(10, 0.01 * n_fits):
        sys.exit(f"the memory grew by {growth:.1f} MiB")
    if after.n_threads > before.n_threads or after.n_descriptors > before.n_descriptors:
        sys.exit(f"threads or descriptors grew: {before}, {after}")
    print(f"{n_fits} fits: memory {growth:+.1f} MiB, no new threads or descriptors, same results in 8 threads")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
