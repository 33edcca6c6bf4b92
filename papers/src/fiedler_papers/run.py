"""Cells to records: in parallel processes with one BLAS thread each, every result on disk as soon as it is there."""

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

from fiedler import _versions
from fiedler._validation import choose
from fiedler.core.memory import peak_memory_mb, reset_peak_memory

from .protocol import Cell, Method
from .records import Record, RecordFile, key_of
from .rows import BACKENDS, Rows, rows_of
from .task_result import NotApplicable, Outcome
from .tasks import TASKS
from .workers import in_processes

MODULES = {"umap-learn": "umap"}  # where they are not called as their packages are
DIGITS = 6  # significant ones, of scores and objectives in a record

Tell = Callable[[Record], None]


# ------------------------------------------------------------------------------------------------------------ one cell


def run_cell(cell: Cell, backend: str = "numpy") -> Record:
    """The record of one cell; a model that fails leaves its sentence in place of scores.

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
        return record | _result(task, cell, rows_of(cell, backend))  # data that are not there end the run


def _result(task: Callable[[Cell, Rows], Outcome], cell: Cell, rows: Rows) -> Record:
    """Scores, how they were reached, seconds and memory; or why there are none."""
    record: Record = {}
    reset_peak_memory()
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = task(cell, rows)
        started -= outcome.seconds_before
        record |= {"n": len(rows.y), "scores": _rounded(outcome.scores), **_rounded(outcome.details)}
    except NotApplicable as reason:
        record |= {"scores": {}, "skipped": str(reason)}
    except Exception as error:  # whatever a model may raise: the others go on, and the record says so
        record |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300], "where": _where(error)}
    return record | {"seconds": _short(time.perf_counter() - started, 4), "peak_mb": peak_memory_mb()}


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
def versions(backend: str, package: str | None = None) -> str:
    """What it ran on, in a line."""
    found = _versions.versions(filter(None, [package]))
    if backend != "numpy":
        found[backend] = import_module(backend).__version__
    return ", ".join([*(f"{name} {number}" for name, number in found.items()), platform.machine()])


@cache
def code_digest() -> str:
    """Return a fingerprint of the source of the library and of this package."""
    digest = hashlib.sha256()
    for package in (_versions.__file__, __file__):
        for path in sorted(Path(package).parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# ---------------------------------------------------------------------------------------------------------- many cells


def missing(cells: Iterable[Cell], records: Iterable[Record], backend: str | None = None) -> list[Cell]:
    """The cells without a record of their back end, or of any; a failed one is tried again."""
    done = {(*key_of(one), one["backend"]) for one in records if "error" not in one}
    backends = BACKENDS if backend is None else (backend,)
    return [cell for cell in cells if not any((*cell.key, cell.backend(name)) in done for name in backends)]


def without_package(methods: Iterable[Method]) -> dict[str, str]:
    """The methods whose package is not installed, and what it is called."""
    return {
        method.key: method.package
        for method in methods
        if method.package and find_spec(MODULES.get(method.package, method.package)) is None
    }


def run_cells(
    cells: Sequence[Cell], records: RecordFile, *, backend: str = "numpy", n_jobs: int = 1, tell: Tell | None = None
) -> list[Record]:
    """Run cells and add their records, in the order in which they come to an end.

    Parameters
    ----------
    cells : sequence of Cell
        Those that share their rows are run one after the other in the same process, those that have a record already
        are left out.
    records : RecordFile
    backend : {'numpy', 'torch', 'cupy'}, default='numpy'
    n_jobs : int, default=1
        Processes.
    tell : callable, optional
        Called with every record.

    Returns
    -------
    list of records
        The new ones.

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
    found: list[Record] = []

    def keep(record: Record) -> None:
        writer.add(record)
        found.append(record)
        if tell is not None:
            tell(record)

    with records.writing() as writer:
        todo = missing(cells, records.read(), backend)  # by now another run may have done some
        groups = [list(members) for _, members in groupby(sorted(todo, key=_order), key=lambda cell: cell.group)]
        if n_jobs == 1:
            for cell in (cell for group in groups for cell in group):
                keep(run_cell(cell, backend))
        else:
            in_processes(run_cell, [[(cell, backend) for cell in group] for group in groups], n_jobs, keep)
    return found


def _order(cell: Cell) -> tuple[Any, ...]:
    """Draw by draw, so that a run cut short is an even one; the methods of a draw side by side."""
    return (cell.draw, cell.group, cell.method)
