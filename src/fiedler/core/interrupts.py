"""Interrupts of computations that run in several threads.

Python delivers Ctrl-C to the main thread alone. Other threads are told by a flag, which they check between the steps of
their computation: raising an exception inside them from outside could stop them in a library that is starting a thread
or holds a lock, which would then wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_FLAG: ContextVar[Event | None] = ContextVar("fiedler_interrupt", default=None)


def check_interrupt() -> None:
    """Raise KeyboardInterrupt in a worker thread whose computation was interrupted or has failed in another thread.

    Loops whose steps may take a tenth of a second call it in every step.
    """
    flag = _FLAG.get()
    if flag is not None and flag.is_set():
        raise KeyboardInterrupt


def is_worker_thread() -> bool:
    """Whether this thread is one of several that share a computation."""
    return _FLAG.get() is not None


@contextmanager
def worker_thread(flag: Event) -> Iterator[None]:
    """Mark this thread as one that computes until ``flag`` is set."""
    token = _FLAG.set(flag)
    try:
        yield
    finally:
        _FLAG.reset(token)
