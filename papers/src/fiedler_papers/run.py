"""Run cells and write their records: in parallel processes, each result on disk as soon as it is available."""

from __future__ import annotations

import hashlib
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fiedler import _version as _versions
from fiedler._validation import choose
from fiedler.core.parallel import peak_memory_mb, reset_peak_memory

from .protocol import Cell, Method
from .records import Record, RecordFile, record_key
from .rows import BACKENDS, Rows, load_rows
from .task_result import NotApplicable, TaskResult
from .tasks import TASKS
from .workers import run_in_processes

IMPORT_NAMES = {"umap-learn": "umap"}  # of packages whose import name differs from the name that pip uses
SCORE_DIGITS = 6  # significant digits of scores and objectives in a record
SECONDS_DIGITS = 4  # and of its run time
MAX_ERROR_LENGTH = 300  # characters of an error message in a record

RecordCallback = Callable[[Record], None]


# ------------------------------------------------------------------------------------------------------------ one cell


def run_cell(cell: Cell, backend: str = "numpy") -> Record:
    """Run one cell and return its record; if the model fails, the error message takes the place of the scores.

    Examples
    --------
    >>> from fiedler_papers import load_protocol, run_cell
    >>> cell = load_protocol("smoke").cells(only=["kmeans", "digits"])[0]
    >>> record = run_cell(cell)
    >>> record["data"], record["method"], sorted(record["scores"])
    ('digits', 'kmeans', ['AC', 'NMI'])
    """
    backend = cell.backend(backend)
    record: Record = {
        "paper": cell.paper,
        "data": cell.data,
        "method": cell.method,
        "at": cell.at,
        "draw": cell.draw,
        "seed": cell.draw,
        "digest": cell.digest,
        "backend": backend,
        "versions": versions(backend, cell.package),
        "code": code_digest(),
    }
    task = choose(TASKS, cell.spec["task"], option="task")
    with threadpool_limits(1):
        return record | _run_task(task, cell, load_rows(cell, backend))  # missing data end the run


def _run_task(task: Callable[[Cell, Rows], TaskResult], cell: Cell, rows: Rows) -> Record:
    """Return scores, details, run time and memory; or the reason why there are no scores."""
    record: Record = {}
    reset_peak_memory()
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = task(cell, rows)
        started -= result.shared_seconds
        record |= {"n": len(rows.y), "scores": _to_plain(result.scores), **_to_plain(result.details)}
    except NotApplicable as reason:
        record |= {"scores": {}, "skipped": str(reason)}
    except Exception as error:  # of any kind: the other cells still run, and the record contains the error
        message = f"{type(error).__name__}: {error}".splitlines()[0][:MAX_ERROR_LENGTH]
        record |= {"error": message, "where": _where(error)}
    seconds = _round_digits(time.perf_counter() - started, SECONDS_DIGITS)
    return record | {"seconds": seconds, "peak_mb": peak_memory_mb()}


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _to_plain(values: Any) -> Any:
    """Convert to types that JSON has, floats rounded to `SCORE_DIGITS` digits."""
    if isinstance(values, dict):
        return {key: _to_plain(value) for key, value in values.items()}
    if isinstance(values, np.ndarray):
        return _to_plain(values.tolist())
    if isinstance(values, list | tuple):
        return [_to_plain(value) for value in values]
    if isinstance(values, bool | np.bool_ | str) or values is None:
        return bool(values) if isinstance(values, np.bool_) else values
    return int(values) if isinstance(values, int | np.integer) else _round_digits(float(values), SCORE_DIGITS)


def _round_digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


@cache
def versions(backend: str, package: str | None = None) -> str:
    """Return the versions of fiedler, Python and the libraries in use, and the machine, in one line."""
    installed = _versions.versions(filter(None, [package]))
    if backend != "numpy":
        installed[backend] = import_module(backend).__version__
    return ", ".join([*(f"{name} {number}" for name, number in installed.items()), platform.machine()])


@cache
def code_digest() -> str:
    """Return a fingerprint of the source of the library and of this package."""
    digest = hashlib.sha256()
    for package in (_versions.__file__, __file__):
        for path in sorted(Path(package).parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# ---------------------------------------------------------------------------------------------------------- many cells


def missing_cells(cells: Iterable[Cell], records: Iterable[Record], backend: str | None = None) -> list[Cell]:
    """Return the cells without a record of a back end, or of any; a failed cell counts as missing."""
    done = {(*record_key(record), record["backend"]) for record in records if "error" not in record}
    backends = BACKENDS if backend is None else (backend,)
    return [cell for cell in cells if not any((*cell.key, cell.backend(name)) in done for name in backends)]


def missing_packages(methods: Iterable[Method]) -> dict[str, str]:
    """Return the methods whose package is not installed, with the name of the package."""
    return {
        method.key: method.package
        for method in methods
        if method.package and find_spec(IMPORT_NAMES.get(method.package, method.package)) is None
    }


def run_cells(
    cells: Sequence[Cell],
    records: RecordFile,
    *,
    backend: str = "numpy",
    n_jobs: int = 1,
    on_record: RecordCallback | None = None,
) -> list[Record]:
    """Run cells and append their records to a file, in the order in which they finish.

    Parameters
    ----------
    cells : sequence of Cell
        Those that share their rows run one after the other in the same process; those with a record are skipped.
    records : RecordFile
        The file to append to.
    backend : {'numpy', 'torch', 'cupy'}, default='numpy'
    n_jobs : int, default=1
        The number of processes.
    on_record : callable, optional
        Called with every record.

    Returns
    -------
    list of dict
        The new records.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fiedler_papers import RecordFile, load_protocol, run_cells
    >>> cells = load_protocol("smoke").cells(only=["kmeans", "digits"])[:1]
    >>> file = RecordFile(pathlib.Path(tempfile.mkdtemp()) / "records.jsonl")
    >>> run_cells(cells, file) == file.read()
    True
    """
    choose(dict.fromkeys(BACKENDS), backend, option="backend")
    new_records: list[Record] = []

    def save(record: Record) -> None:
        writer.add(record)
        new_records.append(record)
        if on_record is not None:
            on_record(record)

    with records.writing() as writer:
        to_run = missing_cells(cells, records.read(), backend)  # another run may have finished some by now
        groups = [list(members) for _, members in groupby(sorted(to_run, key=_run_order), key=lambda cell: cell.group)]
        if n_jobs == 1:
            for cell in (cell for group in groups for cell in group):
                save(run_cell(cell, backend))
        else:
            run_in_processes(run_cell, [[(cell, backend) for cell in group] for group in groups], n_jobs, save)
    return new_records


def _run_order(cell: Cell) -> tuple[Any, ...]:
    """Sort by draw, so that an interrupted run has about as many draws of every cell; then group cells by rows."""
    return (cell.draw, cell.group, cell.method)
