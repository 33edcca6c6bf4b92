"""A few processes that work through groups of calls and hand every result over as soon as it is there.

Each has a pipe of its own, so that one that dies takes nothing with it but the call it was at, and is missed at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)

TERMINATE_SECONDS = 10.0  # seconds that a process has to come to its end by itself

Call = tuple[Any, ...]  # the arguments of one


def in_processes(
    function: Callable[..., Any], groups: Sequence[Sequence[Call]], n_jobs: int, keep: Callable[[Any], None]
) -> None:
    """Call ``function`` for every call of every group; the calls of a group run one after the other in one process.

    Parameters
    ----------
    function : callable
        Importable by name, as are its arguments and results.
    groups : sequence of sequences of tuples
    n_jobs : int
        Processes, each with one BLAS thread.
    keep : callable
        Called here with every result.
    """
    waiting = iter(groups)
    with _started(function, min(n_jobs, len(groups))) as pipes:
        busy = {pipe for pipe in pipes if _give(pipe, waiting)}
        while busy:
            for pipe in wait(busy):
                assert isinstance(pipe, Connection)
                done, result = _received(pipe)
                if not done:
                    keep(result)
                elif not _give(pipe, waiting):
                    busy.remove(pipe)


def _give(pipe: Connection, waiting: Iterator[Sequence[Call]]) -> bool:
    """The next group to a process, if there is one."""
    group = next(waiting, None)
    if group is not None:
        pipe.send(list(group))
    return group is not None


def _received(pipe: Connection) -> tuple[bool, Any]:
    """(False, a result) or (True, None) at the end of a group; an error of the process is raised here."""
    try:
        kind, value = pipe.recv()
    except EOFError as error:
        raise RuntimeError(
            "a process ended without a word, most likely for want of memory; what was done is kept: run again, with "
            "fewer --jobs"
        ) from error
    if kind == "error":
        raise value
    return kind == "end", value


@contextmanager
def _started(function: Callable[..., Any], n_jobs: int) -> Iterator[list[Connection]]:
    """Processes and the pipes to them; however the block is left, none of them lives on."""
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    with _one_thread(), _deaf_to_interrupts():
        for _ in range(n_jobs):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(function, there), daemon=True)
            process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
    try:
        yield pipes
        for pipe in pipes:
            pipe.close()  # which ends a process that waits for more, in good order
        for process in processes:
            process.join(TERMINATE_SECONDS)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


@contextmanager
def _one_thread() -> Iterator[None]:
    """The environment of processes that begin here: read when they import NumPy."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that begin here leave Ctrl-C to their parent, from their first moment on."""
    if threading.current_thread() is not threading.main_thread():  # which alone may say how signals are answered
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(function: Callable[..., Any], pipe: Connection) -> None:
    """In a process: groups until the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            for call in pipe.recv():
                pipe.send(("result", function(*call)))
            pipe.send(("end", None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:  # told to the parent, which raises it
        pipe.send(("error", error))


def _end_with_parent() -> None:
    """No long call outlives a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
