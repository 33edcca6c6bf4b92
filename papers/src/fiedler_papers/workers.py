"""Worker processes that run groups of calls and return every result as soon as it is available.

Each worker has its own pipe, so that one that dies loses only the call it was running and is noticed at once.
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

from .errors import RunError

# Environment variables that libraries read when they are imported.
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)

EXIT_SECONDS = 10.0  # that a worker has to exit by itself before it is terminated

Arguments = tuple[Any, ...]


def run_in_processes(
    function: Callable[..., Any],
    groups: Sequence[Sequence[Arguments]],
    n_jobs: int,
    on_result: Callable[[Any], None],
) -> None:
    """Call ``function`` with all arguments of all groups; the calls of a group run one after the other in one process.

    Parameters
    ----------
    function : callable
        Importable by name; its arguments and results can be pickled.
    groups : sequence of sequences of tuples
        The arguments of each call.
    n_jobs : int
        The number of processes, each with one BLAS thread.
    on_result : callable
        Called in this process with every result.
    """
    remaining = iter(groups)
    with _start_workers(function, min(n_jobs, len(groups))) as pipes:
        busy = {pipe for pipe in pipes if _send_next_group(pipe, remaining)}
        while busy:
            for pipe in wait(busy):
                assert isinstance(pipe, Connection)
                group_done, result = _receive(pipe)
                if not group_done:
                    on_result(result)
                elif not _send_next_group(pipe, remaining):
                    busy.remove(pipe)


def _send_next_group(pipe: Connection, remaining: Iterator[Sequence[Arguments]]) -> bool:
    """Send the next group to a worker; return whether there was one."""
    group = next(remaining, None)
    if group is not None:
        pipe.send(list(group))
    return group is not None


def _receive(pipe: Connection) -> tuple[bool, Any]:
    """Return (False, result), or (True, None) at the end of a group; an error of the worker is raised here."""
    try:
        kind, value = pipe.recv()
    except EOFError as error:
        raise RunError(
            "the worker died, probably out of memory",
            "its finished cells are saved: run the command again with fewer --jobs",
            code="worker_died",
        ) from error
    if kind == "error":
        raise value
    return kind == "end", value


@contextmanager
def _start_workers(function: Callable[..., Any], n_jobs: int) -> Iterator[list[Connection]]:
    """Start workers and yield the pipes to them; all of them are stopped when the block is left, however it is left."""
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    with _one_thread_per_process(), _ignore_interrupts():
        for _ in range(n_jobs):
            parent_end, worker_end = context.Pipe()
            process = context.Process(target=_work, args=(function, worker_end), daemon=True)
            process.start()
            worker_end.close()
            processes.append(process)
            pipes.append(parent_end)
    try:
        yield pipes
        for pipe in pipes:
            pipe.close()  # a worker that waits for the next group exits
        for process in processes:
            process.join(EXIT_SECONDS)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


@contextmanager
def _one_thread_per_process() -> Iterator[None]:
    """Set the environment that processes started in the block inherit."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Let processes started in the block ignore Ctrl-C, which their parent handles."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set signal handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(function: Callable[..., Any], pipe: Connection) -> None:
    """Run groups in a worker until the pipe is closed."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        while True:
            for arguments in pipe.recv():
                pipe.send(("result", function(*arguments)))
            pipe.send(("end", None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:  # raised again in the parent
        pipe.send(("error", error))


def _exit_with_parent() -> None:
    """Exit when the parent is killed, even in the middle of a long call."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
