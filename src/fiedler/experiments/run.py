"""Cells to records: in parallel processes with one BLAS thread each, every result on disk as soon as it is there."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .._validation import choose
from .outcome import NotApplicable
from .protocol import Cell, Method
from .records import Record, RecordFile, key_of
from .rows import BACKENDS, rows_of
from .tasks import TASKS

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PACKAGES = ("fiedler", "numpy", "scipy", "scikit-learn")
DIGITS = 6  # significant ones, of scores and objectives in a record
PEAK = Path("/proc/self/clear_refs")

Tell = Callable[[Record], None]


# ------------------------------------------------------------------------------------------------------------ one cell


def run_cell(cell: Cell, backend: str = "numpy") -> Record:
    """The record of one cell; a model that fails leaves its sentence in place of scores."""
    record: Record = {
        "paper": cell.paper,
        "data": cell.data,
        "method": cell.method,
        "at": cell.at,
        "draw": cell.draw,
        "seed": cell.draw,
        "digest": cell.digest,
        "backend": backend,
        "versions": versions(backend),
    }
    task = choose(TASKS, cell.spec["task"], option="task")
    rows = rows_of(cell, backend)  # untimed; data that are not there end the run, since no other cell would fare better
    _reset_peak()
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            outcome = task(cell, rows)
        started -= outcome.seconds_before
        record |= {"n": len(rows.y), "scores": _rounded(outcome.scores), **_rounded(outcome.details)}
    except NotApplicable as reason:
        record |= {"scores": {}, "skipped": str(reason)}
    except Exception as error:  # whatever a model may raise: the others go on, and the record says so
        record |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300], "where": _where(error)}
    return record | {"seconds": _short(time.perf_counter() - started, 4), "peak_mb": round(_peak_mb())}


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _rounded(values: Any) -> Any:
    """Plain numbers of `DIGITS` digits, whatever they were."""
    if isinstance(values, dict):
        return {key: _rounded(value) for key, value in values.items()}
    if isinstance(values, np.ndarray):
        return _rounded(values.tolist())
    if isinstance(values, list | tuple):
        return [_rounded(value) for value in values]
    if isinstance(values, bool | np.bool_ | str) or values is None:
        return bool(values) if isinstance(values, np.bool_) else values
    return int(values) if isinstance(values, int | np.integer) else _short(float(values), DIGITS)


def _short(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


@cache
def versions(backend: str) -> str:
    """What it ran on, in a line."""
    names = PACKAGES if backend == "numpy" else (*PACKAGES, backend)
    found = [f"{name} {_version(name)}" for name in names]
    return ", ".join([f"Python {platform.python_version()}", *found, platform.machine()])


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "checkout"


def _reset_peak() -> None:
    """Forget the highest memory so far, where the system can (Linux)."""
    try:
        PEAK.write_text("5")
    except OSError:
        return


def _peak_mb() -> float:
    """The highest resident memory since it was last forgotten, or of the whole process."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        import resource  # where there is no /proc

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------------------------------------------------- many cells


def missing(cells: Iterable[Cell], records: Iterable[Record], backend: str | None = None) -> list[Cell]:
    """The cells without a record of this back end, or of any; a failed one is tried again."""
    done = {key_of(one) for one in records if "error" not in one and backend in (None, one["backend"])}
    return [cell for cell in cells if cell.key not in done]


def without_package(methods: Iterable[Method]) -> dict[str, str]:
    """The methods whose package is not installed, and what it is called."""
    return {
        method.key: method.package
        for method in methods
        if method.package and find_spec(_module(method.package)) is None
    }


def _module(package: str) -> str:
    return {"umap-learn": "umap"}.get(package, package.replace("-", "_"))


def run_cells(
    cells: Sequence[Cell], records: RecordFile, *, backend: str = "numpy", n_jobs: int = 1, tell: Tell | None = None
) -> list[Record]:
    """Run cells and add their records, in the order in which they come to an end.

    Parameters
    ----------
    cells : sequence of Cell
        Those that share their rows are run one after the other in the same process.
    records : RecordFile
    backend : {'numpy', 'torch', 'cupy'}, default='numpy'
    n_jobs : int, default=1
        Processes.
    tell : callable, optional
        Called with every record.

    Returns
    -------
    list of records
    """
    choose(dict.fromkeys(BACKENDS), backend, option="backend")
    found: list[Record] = []

    def keep(record: Record) -> None:
        writer.add(record)
        found.append(record)
        if tell is not None:
            tell(record)

    with records.writing() as writer:
        groups = [list(members) for _, members in groupby(sorted(cells, key=_order), key=lambda cell: cell.group)]
        if n_jobs == 1:
            for cell in (cell for group in groups for cell in group):
                keep(run_cell(cell, backend))
        else:
            _in_processes(groups, backend, n_jobs, keep)
    return found


def _order(cell: Cell) -> tuple[Any, ...]:
    """Draw by draw, so that a run cut short is an even one; the methods of a draw side by side."""
    return (cell.draw, cell.group, cell.method)


def _in_processes(groups: list[list[Cell]], backend: str, n_jobs: int, keep: Tell) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    pinned = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read when a process starts, before NumPy is imported there
    try:
        with ProcessPoolExecutor(n_jobs, context, _begin, (results,)) as pool:
            pending: set[Future[None]] = {pool.submit(_run_group, group, backend) for group in groups}
            try:
                _collect(pending, results, sum(map(len, groups)), keep)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a process ended without a word, most likely for want of memory; what was done is kept: run again, with "
            "fewer --jobs"
        ) from error
    finally:
        for name, value in pinned.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _collect(pending: set[Future[None]], results: Any, expected: int, keep: Tell) -> None:
    """Keep records as they arrive, until all have; a process that died raises here."""
    while expected:
        try:
            keep(results.get(timeout=0.2))
            expected -= 1
        except Empty:
            done, pending = wait(pending, timeout=0, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()


_results: Any = None


def _begin(results: Any) -> None:
    """In a new process: where results go, and an end as soon as the parent is gone."""
    global _results
    _results = results
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _run_group(group: list[Cell], backend: str) -> None:
    for cell in group:
        _results.put(run_cell(cell, backend))
