"""Progress of a fit: loops say where they are, and whoever asked hears it.

A loop wraps itself in a :func:`stage` and ticks at every step, wherever it stands; it neither knows nor cares who
listens, and loops inside it keep quiet. A fit in a block of :func:`report_progress` hands the stages to the callbacks that were
set on the estimator, by scikit-learn's protocol (1.9 and later)::

    from sklearn.callback import ProgressBar

    LapGMM(10).set_callbacks(ProgressBar()).fit(X)

The steps of estimators that a fit makes use of are its own. With an older scikit-learn there is nobody to tell, and
``verbose`` and the log are what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin as _Callbacks
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9
    _Callbacks = object

    def with_callbacks(method: Any) -> Any:
        """As it is."""
        return method


T = TypeVar("T")

_LISTENING: ContextVar[tuple[Any, Any] | None] = ContextVar("fiedler_progress", default=None)  # estimator, its context


class ProgressMixin(_Callbacks):
    """``set_callbacks``, where scikit-learn has it."""


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """A part of a fit that takes steps: the block is given a function to call at the end of each.

    Parameters
    ----------
    name : str
        What the steps are, for people.
    total : int, optional
        The most there can be.

    Examples
    --------
    >>> with stage("counting", 3) as tick:  # nobody listens
    ...     for _ in range(3):
    ...         tick()
    """
    listening = _LISTENING.get()
    if listening is None:
        yield _nothing
        return
    estimator, above = listening
    own = above.subcontext(name, max_subtasks=total).call_on_fit_task_begin(estimator=estimator)

    def tick() -> None:
        own.subcontext("step").call_on_fit_task_begin(estimator=estimator).call_on_fit_task_end(estimator=estimator)

    token = _LISTENING.set(None)
    try:
        yield tick
    finally:
        _LISTENING.reset(token)
        own.call_on_fit_task_end(estimator=estimator)


def track_progress(things: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """Things one after the other, each a step of a stage.

    Examples
    --------
    >>> [one**2 for one in track_progress(range(3), "squares", 3)]
    [0, 1, 4]
    """
    with stage(name, total) as tick:
        for one in things:
            yield one
            tick()


def _nothing() -> None:
    return None


@contextmanager
def report_progress(estimator: Any) -> Iterator[None]:
    """Inside a ``fit``: its stages are told to the callbacks that were set on the estimator.

    A block and not a decorator, so that warnings point to where ``fit`` was called.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield
        return
    try:
        context = estimator._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=estimator)
        token = _LISTENING.set((estimator, context))
        try:
            yield
        finally:
            _LISTENING.reset(token)
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        _dismiss(estimator)


@with_callbacks
def _dismiss(estimator: Any) -> None:
    """Nothing but what the decorator does when a fit is over: the callbacks close what they have opened."""
