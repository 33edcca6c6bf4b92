"""Progress of a fit, reported to callbacks.

A loop runs inside a :func:`stage` and calls its ``tick`` after every step; loops nested in it are not reported. Inside
:func:`report_progress`, which ``fit`` enters, stages are reported to the callbacks that were set on the estimator, by
the protocol of scikit-learn (1.9 and later)::

    from sklearn.callback import ProgressBar

    LapGMM(10).set_callbacks(ProgressBar()).fit(X)

Steps of nested estimators are reported as steps of the outer one. An older scikit-learn has no callbacks; ``verbose``
and the log then remain.
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
        """Return the method unchanged."""
        return method


T = TypeVar("T")

# The estimator whose callbacks receive the next stage, with its callback context; None if nothing is reported.
_ACTIVE_FIT: ContextVar[tuple[Any, Any] | None] = ContextVar("fiedler_progress", default=None)


class ProgressMixin(_Callbacks):
    """Adds ``set_callbacks`` if scikit-learn supports it."""


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Report the steps of one part of a fit.

    Parameters
    ----------
    name : str
        The name of the part, for display.
    total : int, optional
        The maximum number of steps.

    Yields
    ------
    callable
        To be called after every step.

    Examples
    --------
    >>> with stage("counting", 3) as tick:  # without callbacks, does nothing
    ...     for _ in range(3):
    ...         tick()
    """
    active_fit = _ACTIVE_FIT.get()
    if active_fit is None:
        yield lambda: None
        return
    estimator, parent = active_fit
    context = parent.subcontext(name, max_subtasks=total).call_on_fit_task_begin(estimator=estimator)

    def tick() -> None:
        step = context.subcontext("step")
        step.call_on_fit_task_begin(estimator=estimator).call_on_fit_task_end(estimator=estimator)

    token = _ACTIVE_FIT.set(None)
    try:
        yield tick
    finally:
        _ACTIVE_FIT.reset(token)
        context.call_on_fit_task_end(estimator=estimator)


def track_progress(items: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """Iterate over items and report each as a step of a :func:`stage`.

    Examples
    --------
    >>> [number**2 for number in track_progress(range(3), "squares", 3)]
    [0, 1, 4]
    """
    with stage(name, total) as tick:
        for item in items:
            yield item
            tick()


@contextmanager
def report_progress(estimator: Any) -> Iterator[None]:
    """Report the stages of a ``fit`` to the callbacks that were set on the estimator.

    A context manager and not a decorator, so that warnings point to the line that called ``fit``.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield
        return
    try:
        context = estimator._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=estimator)
        token = _ACTIVE_FIT.set((estimator, context))
        try:
            yield
        finally:
            _ACTIVE_FIT.reset(token)
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        _tear_down_callbacks(estimator)


@with_callbacks
def _tear_down_callbacks(estimator: Any) -> None:
    """Release the callbacks' resources, as scikit-learn's decorator does at the end of a fit."""
