"""Progress of a fit: what it is doing, how much of that is done, and how long it will still take.

A loop runs inside a :func:`stage` and calls its ``tick`` after every step, in any thread. Stages may be nested: an
inner one is a detail of the outer one. They are reported to listeners, if there are any:

- ``verbose=True`` prints them on standard error while the fit runs: on a terminal one line per stage, which is redrawn
  in place, elsewhere a line every few seconds.
- Callbacks that were set on the estimator receive the outermost stages, by the protocol of scikit-learn (1.9 and
  later)::

      from sklearn.callback import ProgressBar

      LapGMM(10).set_callbacks(ProgressBar()).fit(X)

- Any other :class:`Listener` receives all stages inside :func:`listen`, such as the progress bar of the command line.

Every ``fit`` enters :func:`report_progress`, which attaches the first two. Stages of nested estimators are stages of
the outer one.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from threading import Event, RLock
from typing import Any, NamedTuple, Protocol, TextIO, TypeVar, cast

import array_api_compat

from ..errors import InputError

# ---------------------------------------------------------------------------------------------------------------------
# What runs in place of a method of an estimator when it meets a Dask array.
#
# A Dask array is a stack of row blocks that need not fit into memory together. The models know nothing about Dask:
# their methods that have a block version are marked by `in_blocks`, and the versions are found by name in
# :mod:`fiedler.out_of_core`, which is imported when it is needed.

Method = TypeVar("Method", bound=Callable[..., Any])

# Modules with a function for each method of a class, by class; those of `ANY_ESTIMATOR` are for all classes.
MODULES = {
    "GaussianMixture": "fiedler.out_of_core.mixture",
    "KNNGraph": "fiedler.out_of_core.graph",
    "LapGMM": "fiedler.out_of_core.mixture",
    "LLGC": "fiedler.out_of_core.walk",
    "ManifoldClustering": "fiedler.out_of_core.manifold",
    "SpectralClustering": "fiedler.out_of_core.spectral",
}
ANY_ESTIMATOR = "fiedler.out_of_core.prediction"


def is_dask_array(X: object) -> bool:
    """Whether ``X`` is a ``dask.array.Array``."""
    return array_api_compat.is_dask_array(X)


def in_blocks(method: Method) -> Method:
    """Mark a method whose first argument may be a Dask array, for which its block version is called."""

    @wraps(method)
    def method_or_block_version(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask_array(X):
            return method(self, X, *args, **kwargs)
        return block_version(self, method.__name__)(self, X, *args, **kwargs)

    return cast("Method", method_or_block_version)


def block_version(estimator: Any, name: str) -> Callable[..., Any]:
    """Return the block version of a method of an estimator."""
    modules = [MODULES[cls.__name__] for cls in type(estimator).__mro__ if cls.__name__ in MODULES]
    for module in (*modules, ANY_ESTIMATOR):
        version = getattr(import_module(module), name, None)
        if version is not None:
            return cast("Callable[..., Any]", version)
    raise InputError(
        f"{type(estimator).__name__}.{name} does not take Dask arrays",
        f"pass X.compute() if the rows fit into memory, or a sample of them, or use {' or '.join(MODULES)}",
        code="dask_array",
        parameter="X",
    )


# ---------------------------------------------------------------------------------------------------------------------
# `restore_on_failure`, around every fit: an estimator is fitted, or it is as it was.


@contextmanager
def restore_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises, so that a failed fit leaves the model as it was.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> model = BaseEstimator()
    >>> try:
    ...     with restore_on_failure(model):
    ...         model.labels_ = [0, 1]
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(hasattr(model, "labels_"))
    False
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__ = before  # in one step, so that a second interrupt cannot come between
        raise


# ---------------------------------------------------------------------------------------------------------------------
# Interrupts of computations that run in several threads.
#
# Python delivers Ctrl-C to the main thread alone. Other threads are told by a flag, which they check between the steps
# of their computation: raising an exception inside them from outside could stop them in a library that is starting a
# thread or holds a lock, which would then wait for ever.

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


# ---------------------------------------------------------------------------------------------------------------------

try:
    from sklearn.callback import CallbackSupportMixin as _Callbacks
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9
    _Callbacks = object

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


T = TypeVar("T")
Tick = Callable[..., None]

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # between two reports: a terminal redraws the line, a log adds one
EVIDENCE_SECONDS = 1.0  # that the steps of a stage must have taken before the time left is estimated from them
MAX_CALLBACK_STEPS = 1000  # steps of a stage of which scikit-learn's callbacks are told: each takes some microseconds

clock = time.monotonic
_LOCK = RLock()  # steps may be reported by several threads


class ProgressMixin(_Callbacks):
    """Adds ``set_callbacks`` if scikit-learn supports it."""


# ------------------------------------------------------------------------------------------------------------- stages


@dataclass(eq=False)
class Stage:
    """One part of a fit, as listeners see it.

    Attributes
    ----------
    name : str
    total : int or None
        The number of steps, if it is known.
    at_most : bool
        Whether ``total`` is only an upper bound, such as the maximum number of iterations.
    parent : Stage or None
        The stage of which this one is a detail.
    started, advanced : float
        The time of the begin and of the last step.
    done : int
        The number of steps so far.
    """

    name: str
    total: int | None
    at_most: bool
    parent: Stage | None
    started: float
    advanced: float
    done: int = 0

    def seconds_left(self, now: float) -> float | None:
        """Return the time left at the rate of the steps so far; None without evidence.

        A step that takes longer than those before it lowers the rate before it ends.
        """
        elapsed = self.advanced - self.started
        if not self.total or not 0 < self.done < self.total or elapsed < EVIDENCE_SECONDS:
            return None
        n_left = self.total - self.done
        by_last_step = elapsed * n_left / self.done - (now - self.advanced)
        if_step_ends_now = (now - self.started) * (n_left - 1) / (self.done + 1)
        return max(by_last_step, if_step_ends_now)

    def describe(self, now: float) -> str:
        """Return the name, the share that is done and the time left, as far as they are known.

        Examples
        --------
        >>> Stage("neighbours", 8, False, None, started=0.0, advanced=6.0, done=2).describe(now=6.0)
        'neighbours 25 %, 18 s left'
        >>> Stage("EM", 200, True, None, started=0.0, advanced=0.5, done=12).describe(now=0.5)
        'EM 12 of at most 200'
        """
        if not self.done:
            return self.name
        if not self.total:
            return f"{self.name} {self.done}"
        share = f"{self.done} of at most {self.total}" if self.at_most else f"{100 * self.done // self.total} %"
        if (left := self.seconds_left(now)) is None:
            return f"{self.name} {share}"
        return f"{self.name} {share}, {'at most ' if self.at_most else ''}{format_seconds(max(left, 1.0))} left"

    def path(self, root: Stage | None = None) -> list[Stage]:
        """Return the stages from the outermost one inside ``root`` to this one."""
        return [self] if self.parent is root or self.parent is None else [*self.parent.path(root), self]


def describe_stages(path: Sequence[Stage], now: float) -> str:
    """Describe the outermost of some nested stages and, as a detail, the innermost one."""
    return ": ".join(part.describe(now) for part in dict.fromkeys((path[0], path[-1])))


class Listener(Protocol):
    """Receives the stages of a fit, one call at a time."""

    def begin(self, stage: Stage) -> None:
        """Receive a stage before its first step."""

    def advance(self, stage: Stage) -> None:
        """Receive a stage after some of its steps."""

    def end(self, stage: Stage) -> None:
        """Receive a stage after its last step."""


class _Active(NamedTuple):
    """Who listens, and the stage that is running."""

    listeners: tuple[Listener, ...] = ()
    stage: Stage | None = None


_NOBODY = _Active()
_ACTIVE: ContextVar[_Active] = ContextVar("fiedler_progress", default=_NOBODY)


@contextmanager
def stage(name: str, total: int | None = None, *, at_most: bool = False) -> Iterator[Tick]:
    """Report the steps of one part of a fit.

    Parameters
    ----------
    name : str
        The name of the part, for display.
    total : int, optional
        The number of steps.
    at_most : bool, default=False
        Whether there may be fewer steps, as in an iteration that converges.

    Yields
    ------
    callable
        To be called after every step, or with the number of steps after several. Threads may call it.

    Examples
    --------
    >>> with stage("counting", 3) as tick:  # without listeners, only checks whether the fit was interrupted
    ...     for _ in range(3):
    ...         tick()
    """
    active = _ACTIVE.get()
    check_interrupt()
    if not active.listeners:
        yield _only_check_interrupt
        return
    now = clock()
    current = Stage(name, total, at_most, active.stage, now, now)

    def tick(n_steps: int = 1) -> None:
        check_interrupt()
        with _LOCK:
            current.done += n_steps
            current.advanced = clock()
            for listener in active.listeners:
                listener.advance(current)

    with _LOCK:
        for listener in active.listeners:
            listener.begin(current)
    token = _ACTIVE.set(active._replace(stage=current))
    try:
        yield tick
    finally:
        _ACTIVE.reset(token)
        with _LOCK:
            for listener in active.listeners:
                listener.end(current)


def _only_check_interrupt(n_steps: int = 1) -> None:
    """Take the place of ``tick`` where nobody listens."""
    check_interrupt()


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
def listen(listener: Listener) -> Iterator[None]:
    """Report the stages inside the block to a listener, besides those that listen already."""
    active = _ACTIVE.get()
    token = _ACTIVE.set(active._replace(listeners=(*active.listeners, listener)))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


@contextmanager
def report_progress(estimator: Any) -> Iterator[None]:
    """Report the stages of a ``fit``: print them if it is ``verbose``, and tell the callbacks of the estimator.

    A context manager and not a decorator, so that warnings point to the line that called ``fit``.
    """
    with ExitStack() as stack:
        if getattr(estimator, "_skl_callbacks", None):
            stack.enter_context(_tell_callbacks(estimator))
        is_printed = any(isinstance(listener, ProgressLines) for listener in _ACTIVE.get().listeners)
        if getattr(estimator, "verbose", False) and not is_printed:
            lines = ProgressLines(type(estimator).__name__, sys.stderr, root=_ACTIVE.get().stage)
            stack.callback(lines.close)
            stack.enter_context(listen(lines))
        yield


# -------------------------------------------------------------------------------------------------- progress as text


class ProgressLines:
    """Prints stages: on a terminal one line each, which is redrawn in place, elsewhere a line every few seconds.

    A line shows an outermost stage and, as a detail, the innermost one. Stages of the same name in a row share a line.

    Parameters
    ----------
    title : str
        The beginning of all lines.
    stream : file
    root : Stage, optional
        The stage that was running before; outermost stages are those inside it.
    """

    def __init__(self, title: str, stream: TextIO, root: Stage | None = None) -> None:
        self.title, self.stream, self.root = title, stream, root
        self.redraws = stream.isatty()
        self.seconds_between = TERMINAL_SECONDS if self.redraws else LOG_SECONDS
        self.reported = -float("inf")
        self.drawn = 0  # characters on the terminal's last line
        self.replaced: set[str] = set()  # stages that print lines of their own, see print_line
        self.name = ""  # of the last outermost stage, and the time and steps of all in a row that had the same name
        self.seconds, self.n_steps = 0.0, 0

    def begin(self, stage: Stage) -> None:
        """Say that a stage has begun."""
        if stage.parent is not self.root:
            self.advance(stage)
        elif stage.name != self.name:
            self.close()
            self.name = stage.name
            self._report(stage)

    def advance(self, stage: Stage) -> None:
        """Report a stage if the last report is old enough."""
        if clock() - self.reported >= self.seconds_between:
            self._report(stage)

    def end(self, stage: Stage) -> None:
        """Add up the time of an outermost stage."""
        if stage.parent is self.root:
            self.seconds += clock() - stage.started
            self.n_steps += stage.done
            if self.redraws and self.name not in self.replaced:
                self._write(self._summary())

    def close(self) -> None:
        """Say how long the last stage took: on a terminal always, in a log if it was long."""
        with _LOCK:
            if self.drawn:
                self.stream.write("\n")
                self.stream.flush()
                self.drawn = 0
            elif not self.redraws and self.seconds >= LOG_SECONDS and self.name not in self.replaced:
                self._write(self._summary())
            self.name, self.seconds, self.n_steps = "", 0.0, 0

    def make_room(self, stage: Stage | None) -> None:
        """Erase the line in progress for one that stands for the report of a stage."""
        if stage is not None:
            self.replaced.add(stage.name)
        if self.drawn:
            self.stream.write(f"\r{'':{self.drawn}}\r")
            self.stream.flush()
            self.drawn = 0

    def _report(self, stage: Stage) -> None:
        shown = [part for part in stage.path(self.root) if part.name not in self.replaced]
        if shown:
            self.reported = clock()
            self._write(describe_stages(shown, self.reported))

    def _summary(self) -> str:
        steps = f"{self.n_steps} step{'s' if self.n_steps > 1 else ''} in " if self.n_steps else ""
        return f"{self.name}: {steps}{format_seconds(self.seconds)}"

    def _write(self, text: str) -> None:
        line = f"{self.title}: {text}"
        if self.redraws:
            line = line[: shutil.get_terminal_size().columns - 1]
            self.stream.write(f"\r{line:<{self.drawn}}")
            self.drawn = len(line)
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()


def print_line(text: str) -> None:
    """Print a line of a verbose fit on standard output; it takes the place of the progress of the running stage."""
    active = _ACTIVE.get()
    with _LOCK:
        for listener in active.listeners:
            if isinstance(listener, ProgressLines):
                listener.make_room(active.stage)
        print(text, flush=True)


def format_seconds(seconds: float) -> str:
    """Format a duration in words.

    Examples
    --------
    >>> format_seconds(0.31), format_seconds(12.4), format_seconds(200), format_seconds(3900)
    ('0.3 s', '12 s', '3 min 20 s', '1 h 5 min')
    """
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


# --------------------------------------------------------------------------------------------- scikit-learn's callbacks


class _CallbackListener:
    """Tells scikit-learn's callbacks of the outermost stages: one task each, with one subtask per step."""

    def __init__(self, estimator: Any, context: Any, root: Stage | None) -> None:
        self.estimator, self.context, self.root = estimator, context, root
        self.tasks: dict[Stage, Any] = {}
        self.n_told: dict[Stage, int] = {}

    def begin(self, stage: Stage) -> None:
        """Begin the task of an outermost stage."""
        if stage.parent is self.root:
            n_steps = min(stage.total, MAX_CALLBACK_STEPS) if stage.total else None
            task = self.context.subcontext(stage.name, max_subtasks=n_steps)
            self.tasks[stage], self.n_told[stage] = task.call_on_fit_task_begin(estimator=self.estimator), 0

    def advance(self, stage: Stage) -> None:
        """Begin and end a subtask for every step, or for every so many of them."""
        if (task := self.tasks.get(stage)) is None:
            return
        is_long = stage.total is not None and stage.total > MAX_CALLBACK_STEPS
        n_steps = MAX_CALLBACK_STEPS * stage.done // stage.total if is_long else stage.done  # type: ignore[operator]
        while self.n_told[stage] < n_steps:
            self.n_told[stage] += 1
            step = task.subcontext("step").call_on_fit_task_begin(estimator=self.estimator)
            step.call_on_fit_task_end(estimator=self.estimator)

    def end(self, stage: Stage) -> None:
        """End the task."""
        if (task := self.tasks.pop(stage, None)) is not None:
            del self.n_told[stage]
            task.call_on_fit_task_end(estimator=self.estimator)


@contextmanager
def _tell_callbacks(estimator: Any) -> Iterator[None]:
    try:
        context = estimator._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=estimator)
        try:
            with listen(_CallbackListener(estimator, context, _ACTIVE.get().stage)):
                yield
        finally:
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        _tear_down_callbacks(estimator)


@with_callbacks
def _tear_down_callbacks(estimator: Any) -> None:
    """Release the callbacks' resources, as scikit-learn's decorator does at the end of a fit."""
