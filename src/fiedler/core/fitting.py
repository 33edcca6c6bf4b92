"""What all fits share: dispatch to blocks, restoration after a failure, interrupts and progress.

A method decorated by :func:`fit_method` reports its progress. A loop runs inside a :func:`stage` and calls its ``tick``
after every step, in any thread. Stages may be nested: an inner one is a detail of the outer one. They are reported to

- standard error if the estimator has ``verbose=True``: bars on a terminal with tqdm, else a line every few seconds;
- callbacks that were set on the estimator by ``set_callbacks`` of scikit-learn (1.9 and later), which receive the
  outermost stages;
- any other :class:`Listener` inside :func:`listen`, such as the progress bar of the command line.

Stages of nested estimators are stages of the outer one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from threading import Event, RLock
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import array_api_compat

from .._foreign_warnings import ignore_foreign_warnings
from .._validation import validate_parameters
from ..errors import InputError

try:
    from sklearn.callback import CallbackSupportMixin as _Callbacks
    from sklearn.callback import with_callbacks
except ImportError:  # before 1.9
    _Callbacks = object

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])
Tick = Callable[..., None]

# Modules with a function for each method of a class that takes Dask arrays, which are imported when they are needed;
# those of `ANY_ESTIMATOR` are for all classes.
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


def dispatch_blocks(method: Method) -> Method:
    """Call the block version of a method if its first argument is a Dask array, a stack of row blocks."""

    @wraps(method)
    def method_or_block_version(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        version = block_version(self, method.__name__) if is_dask_array(X) else method
        return version(self, X, *args, **kwargs)

    return cast("Method", method_or_block_version)


def block_version(estimator: Any, name: str) -> Callable[..., Any]:
    """Return the block version of a method of an estimator."""
    modules = [MODULES[cls.__name__] for cls in type(estimator).__mro__ if cls.__name__ in MODULES]
    for module in (*modules, ANY_ESTIMATOR):
        version = getattr(import_module(module), name, None)
        if version is not None:
            return cast("Callable[..., Any]", version)
    problem = f"{type(estimator).__name__}.{name} does not take Dask arrays"
    hint = f"pass X.compute() if the rows fit into memory, or a sample of them, or use {' or '.join(MODULES)}"
    raise InputError(problem, hint, code="dask_array", parameter="X")


def fit_method(fit: Method) -> Method:
    """Decorate a ``fit``: check parameters, dispatch Dask arrays, report progress, restore the model if it fails."""

    @wraps(fit)
    def decorated(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        with ignore_foreign_warnings(), report_progress(self), restore_on_failure(self):
            validate_parameters(self)
            version = block_version(self, fit.__name__) if is_dask_array(X) else fit
            return version(self, X, *args, **kwargs)

    return cast("Method", decorated)


@contextmanager
def restore_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises, so that a failed fit leaves the model as it was."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__ = before  # in one step, so that a second interrupt cannot come between
        raise


# Python delivers Ctrl-C to the main thread alone. Other threads are told by a flag, which they check between the steps
# of their computation: raising an exception inside them from outside could stop them in a library that is starting a
# thread or holds a lock, which would then wait for ever.
_FLAG: ContextVar[Event | None] = ContextVar("fiedler_interrupt", default=None)


def check_interrupt(n_steps: int = 1) -> None:
    """Raise KeyboardInterrupt in a worker thread whose computation was interrupted or has failed in another thread."""
    # Loops whose steps may take a tenth of a second call it in every step.
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


LOG_SECONDS = 5.0  # between two lines of progress
EVIDENCE_SECONDS = 1.0  # that the steps of a stage must have taken before the time left is estimated from them
MAX_CALLBACK_STEPS = 1000  # steps of a stage of which scikit-learn's callbacks are told: each takes some microseconds

clock = time.monotonic
_LOCK = RLock()  # steps may be reported by several threads


@dataclass(eq=False)
class Stage:
    """One part of a fit: its steps so far and in total, if known, and the times of its begin and of the last step."""

    name: str
    total: int | None
    at_most: bool  # whether `total` is an upper bound, such as the maximum number of iterations
    parent: Stage | None  # the stage of which this one is a detail
    started: float
    advanced: float
    done: int = 0

    def seconds_left(self, now: float) -> float | None:
        """Return the time left at the rate of the steps so far, or of a late current one; None without evidence."""
        elapsed = self.advanced - self.started
        if not self.total or not 0 < self.done < self.total or elapsed < EVIDENCE_SECONDS:
            return None
        n_left = self.total - self.done
        by_last_step = elapsed * n_left / self.done - (now - self.advanced)
        if_step_ends_now = (now - self.started) * (n_left - 1) / (self.done + 1)
        return max(by_last_step, if_step_ends_now)

    def describe(self, now: float) -> str:
        """Return the name, the share that is done and the time left, as far as they are known."""
        if not self.done or not self.total:
            return f"{self.name} {self.done}" if self.done else self.name
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


def format_seconds(seconds: float) -> str:
    """Format a duration in words."""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


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
def _set_active(active: _Active) -> Iterator[None]:
    token = _ACTIVE.set(active)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


@contextmanager
def stage(name: str, total: int | None = None, *, at_most: bool = False) -> Iterator[Tick]:
    """Report the steps of one part of a fit, of which there are ``total``, or fewer with ``at_most``.

    Yields a function to be called after every step, or with the number of steps after several, in any thread.
    """
    active = _ACTIVE.get()
    check_interrupt()
    if not active.listeners:
        yield check_interrupt
        return
    current = Stage(name, total, at_most, active.stage, clock(), clock())

    def tell(event: str) -> None:
        with _LOCK:
            for listener in active.listeners:
                getattr(listener, event)(current)

    def tick(n_steps: int = 1) -> None:
        check_interrupt()
        with _LOCK:
            current.done += n_steps
            current.advanced = clock()
            tell("advance")

    tell("begin")
    try:
        with _set_active(active._replace(stage=current)):
            yield tick
    finally:
        tell("end")


def track_progress(items: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """Iterate over items and report each as a step of a :func:`stage`."""
    with stage(name, total) as tick:
        for item in items:
            yield item
            tick()


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Report the stages inside the block to a listener, besides those that listen already."""
    active = _ACTIVE.get()
    with _set_active(active._replace(listeners=(*active.listeners, listener))):
        yield


@contextmanager
def report_progress(estimator: Any) -> Iterator[None]:
    """Report the stages of a ``fit``: print them if it is ``verbose``, and tell the callbacks of the estimator."""
    is_printed = any(isinstance(listener, ProgressPrinter) for listener in _ACTIVE.get().listeners)
    prints = getattr(estimator, "verbose", False) and not is_printed
    if not prints and not getattr(estimator, "_skl_callbacks", None):
        yield
        return
    with ExitStack() as stack:
        if getattr(estimator, "_skl_callbacks", None):
            stack.enter_context(_tell_callbacks(estimator))
        if prints:
            printer = ProgressPrinter(type(estimator).__name__, root=_ACTIVE.get().stage)
            stack.callback(printer.close)
            stack.enter_context(listen(printer))
        yield


class ProgressPrinter:
    """Prints stages inside ``root`` on standard error: bars on a terminal with tqdm, else a line every few seconds."""

    def __init__(self, title: str, root: Stage | None = None) -> None:
        self.title, self.root = title, root
        self.make_bar = _import_tqdm() if sys.stderr.isatty() else None
        self.bar: Any = None
        self.name, self.n_before, self.printed = "", 0, clock()

    def begin(self, stage: Stage) -> None:
        """Begin a bar or a line for an outermost stage."""
        if stage.parent is self.root and stage.name != self.name:
            self.close()
            self.name = stage.name
            if self.make_bar is None:
                self._print(stage)
            else:
                self.bar = self.make_bar(desc=f"{self.title}: {stage.name}", file=sys.stderr)
        if self.bar is not None and stage.parent is self.root:
            self.n_before = self.bar.n
            self.bar.total = None if stage.total is None else self.n_before + stage.total

    def advance(self, stage: Stage) -> None:
        """Move the bar, or print a line if the last one is old."""
        outermost = stage.path(self.root)[0]
        if self.bar is not None:
            self.bar.set_postfix_str("" if stage is outermost else stage.describe(clock()), refresh=False)
            self.bar.update(self.n_before + outermost.done - self.bar.n)
        elif clock() - self.printed >= LOG_SECONDS:
            self._print(stage)

    def end(self, stage: Stage) -> None:
        """Do nothing: the next stage may continue the bar."""

    def close(self) -> None:
        """End the bar."""
        if self.bar is not None:
            self.bar.close()
        self.name, self.bar = "", None

    def _print(self, stage: Stage) -> None:
        self.printed = clock()
        print(f"{self.title}: {describe_stages(stage.path(self.root), self.printed)}", file=sys.stderr, flush=True)


def _import_tqdm() -> Any:
    try:
        return import_module("tqdm").tqdm
    except ImportError:
        return None


def print_line(text: str) -> None:
    """Print a line of a verbose fit on standard output, above its bars."""
    with _LOCK:
        bars = [one.bar for one in _ACTIVE.get().listeners if isinstance(one, ProgressPrinter) and one.bar is not None]
        if bars:
            bars[0].write(text)
        else:
            print(text, flush=True)


class ProgressMixin(_Callbacks):
    """Adds ``set_callbacks`` if scikit-learn supports it."""


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
