"""The steps of a fit: functions of one block, from files to files, which Dask distributes.

Tasks return nothing and need nothing but files, so any of them can be run again on any worker: a lost worker costs the
blocks that it was working on. What the next step needs is read from the files, by the tasks or, if it is small, by the
client. Blocks that are there already are not made again.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator

from .._validation import check_seed, import_optional
from .._version import __version__
from ..core.backend import Array
from ..core.blocks import one_thread
from ..core.interrupts import check_interrupt
from ..core.progress import stage
from ..errors import SchedulerError, StorageError
from .config import get_config, running_client
from .workspace import Workspace

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[..., Mapping[str, Array]]

MAX_REPAIRS = 5  # times that a fit looks for lost or damaged blocks
MAX_LOSSES = 10  # times that a block may lose its worker
WAIT_SECONDS = 1.0  # after which an interrupt is heard
WORKER_SECONDS = 30  # within which the first worker must be there


@dataclass(eq=False)
class Run:
    """A fit in a work directory.

    Attributes
    ----------
    workspace : Workspace
    client : distributed.Client
    n_found : int
        The number of blocks that were there already.
    n_made : int
        The number of blocks that were made.
    """

    workspace: Workspace
    client: Any
    n_found: int = 0
    n_made: int = 0
    _checked: set[tuple[str, int]] = field(default_factory=set)

    def map(self, step: str, work: Work, blocks: int | Sequence[int], /, **options: Any) -> None:
        """Make blocks of a step: ``work(workspace, block, **options)`` returns their arrays by name.

        The blocks are given by their numbers; an integer stands for all numbers below it.
        """
        numbers = range(blocks) if isinstance(blocks, int) else blocks

        def submit(block: int) -> Any:
            task = (self.workspace, step, work, block, options)
            return self.client.submit(_make, *task, key=_key(step), pure=False)

        self._make(step, numbers, submit)

    def map_delayed(self, step: str, work: Work, inputs: Sequence[Any], /, **options: Any) -> None:
        """Make blocks from blocks of a Dask array: ``work(input, block, **options)`` returns arrays by name."""
        delayed = import_optional("dask", extra="dask", purpose="Dask arrays").delayed
        make = delayed(_make_from_input, pure=False)

        def submit(block: int) -> Any:
            task = make(inputs[block], self.workspace, step, work, block, options, dask_key_name=_key(step))
            return self.client.compute(task)

        self._make(step, range(len(inputs)), submit)

    def once(self, step: str, compute: Callable[[], Mapping[str, Array]], *names: str) -> tuple[Any, ...]:
        """Return arrays that this process computes, or has computed before."""
        if self._missing(step, [0]):
            started = time.perf_counter()
            self.workspace.write(step, 0, compute())
            self._checked.add((step, 0))
            self.n_made += 1
            log.info("%s: made %d blocks in %.1f s", step, 1, time.perf_counter() - started)
        return self.workspace.read(step, 0, *names)

    def seed(self, random_state: int | None) -> int:
        """Return a seed: without a random state another one in every fit, but the same one if a fit goes on."""
        draw = lambda: {"seed": np.array(check_seed(random_state).randint(2**31 - 1))}  # noqa: E731
        return int(self.once("seed", draw, "seed")[0])

    def total(self, step: str, name: str, blocks: int | Sequence[int]) -> Any:
        """Return the sum of an array over blocks, always in the same order."""
        numbers = range(blocks) if isinstance(blocks, int) else blocks
        return sum(self.workspace.read_one(step, block, name) for block in numbers)

    def drop(self, step: str) -> None:
        """Delete the blocks of a step that is not needed any more."""
        if not self.workspace.is_dropped(step):
            self.workspace.drop(step)

    # ------------------------------------------------------------------------------------------------------- the blocks

    def _missing(self, step: str, blocks: Sequence[int]) -> list[int]:
        """Return those of the blocks of a step that are not there, or damaged."""
        if self.workspace.is_dropped(step):
            return []
        there = sorted(self.workspace.finished(step))
        unknown = [block for block in there if (step, block) not in self._checked]
        intact = {block for block in there if (step, block) in self._checked}
        if unknown:
            self._check(step, unknown)
            intact |= set(unknown) & self.workspace.finished(step)
            damaged = sorted(set(unknown) - intact)
            if damaged:
                log.warning("%s: the blocks %s are damaged and are made again", step, damaged)
            self._checked |= {(step, block) for block in intact}
            self.n_found += len(intact & set(unknown))
            log.info("%s: found %d of %d blocks", step, len(intact), len(blocks))
        return [block for block in blocks if block not in intact]

    def _check(self, step: str, blocks: list[int]) -> None:
        """Delete the blocks that are damaged."""
        waiting = blocks
        while waiting:
            submit = lambda block: self.client.submit(  # noqa: E731
                _is_intact, self.workspace, step, block, key=_key(f"check-{step}"), pure=False
            )
            waiting = self._wait({submit(block): block for block in waiting}, lambda block: None)

    def _make(self, step: str, blocks: Sequence[int], submit: Callable[[int], Any]) -> None:
        """Submit the tasks of the blocks that are missing, and again those whose workers are lost."""
        missing, n_losses, started = self._missing(step, blocks), 0, time.perf_counter()
        waiting = missing

        def finish(block: int) -> None:
            self._checked.add((step, block))
            self.n_made += 1
            tick()

        with stage(step, len(blocks)) as tick:
            tick(len(blocks) - len(missing))
            while waiting:
                lost = self._wait({submit(block): block for block in waiting}, finish)
                n_losses += bool(lost)
                if n_losses > MAX_LOSSES:
                    raise SchedulerError(
                        f"the workers of block {lost[0]} of the step {step!r} were lost {n_losses} times",
                        "they may need more memory than they have: give them more, or use smaller blocks",
                        code="workers_lost",
                        step=step,
                        block=lost[0],
                    )
                waiting = lost
        if missing:
            log.info("%s: made %d blocks in %.1f s", step, len(missing), time.perf_counter() - started)

    def _wait(self, futures: dict[Any, int], finish: Callable[[int], None]) -> list[int]:
        """Wait for tasks; return the blocks whose workers were lost too often for the scheduler."""
        distributed = import_optional("distributed", extra="dask", purpose="Dask arrays")
        lost, waiting, alone_since = [], set(futures), None
        try:
            while waiting:
                check_interrupt()
                self._check_connection()
                alone_since = None if self._has_workers() else alone_since or time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since > WORKER_SECONDS:
                    raise SchedulerError(
                        f"all workers are lost, and there was no other one for {WORKER_SECONDS} s",
                        "start workers, and run the same fit again: with a work directory it goes on",
                        code="no_workers",
                    )
                with suppress(TimeoutError, distributed.CancelledError):
                    distributed.wait(waiting, timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED")
                ended = {future for future in waiting if future.status != "pending"}
                waiting -= ended
                for future in ended:
                    block = futures.pop(future)  # else the scheduler makes it again if its worker is lost later
                    if future.status == "finished":
                        finish(block)
                    elif future.status == "error" and not _is_loss(error := future.exception()):
                        raise error
                    else:
                        lost.append(block)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            raise
        return sorted(lost)

    def _has_workers(self) -> bool:
        return bool(self.client.scheduler_info(n_workers=1)["workers"])

    def _check_connection(self) -> None:
        """Raise an error if the scheduler is gone."""
        if self.client.status not in ("running", "connecting"):
            raise SchedulerError(
                "the connection to the Dask scheduler was lost",
                "run the same fit again: with a work directory it goes on from the blocks that are finished",
                code="connection_lost",
            )


def _is_loss(error: BaseException) -> bool:
    """Whether a task failed since its workers died, and not by an error of its own."""
    distributed = import_optional("distributed", extra="dask", purpose="Dask arrays")
    return isinstance(error, distributed.scheduler.KilledWorker)


def _key(step: str) -> str:
    """Return a name of a task, unlike that of any other; the dashboard shows the step."""
    return f"{step.rsplit('/', maxsplit=1)[-1]}-{uuid4().hex}"


def _make(workspace: Workspace, step: str, work: Work, block: int, options: dict[str, Any]) -> None:
    """Make a block in the worker, with a single thread: workers have as many as the machine has cores."""
    with one_thread():
        workspace.write(step, block, work(workspace, block, **options))


def _make_from_input(
    rows: Any, workspace: Workspace, step: str, work: Work, block: int, options: dict[str, Any]
) -> None:
    with one_thread():
        workspace.write(step, block, work(rows, block, **options))


def _is_intact(workspace: Workspace, step: str, block: int) -> bool:
    return workspace.is_intact(step, block)


# ------------------------------------------------------------------------------------------------------------ the fit


def run_steps(made_from: Mapping[str, Any], script: Callable[[Run], T]) -> T:
    """Run the steps of a fit in the work directory that is configured, or in a temporary one.

    Parameters
    ----------
    made_from : dict
        The data and options, as numbers and strings, by which the blocks of another fit are recognised.
    script : callable
        Calls the steps. It is called again if a block is missing or damaged, and must then do the same.
    """
    workdir = get_config().workdir
    with running_client() as client:
        workspace = Workspace.temporary() if workdir is None else Workspace(workdir)
        with workspace.writing():
            workspace.folder.mkdir(parents=True, exist_ok=True)
        with workspace.locked():
            if workspace.claim(made_from):
                log.info("going on from the blocks in %s", workspace.folder)
            check_workers(client, workspace)
            return _run_and_repair(Run(workspace, client), script)


def _run_and_repair(run: Run, script: Callable[[Run], T]) -> T:
    """Run the steps, and again as long as blocks turn out to be missing or damaged."""
    for _ in range(MAX_REPAIRS):
        try:
            result = script(run)
        except StorageError as error:
            if error.code not in ("missing_block", "damaged_block"):
                raise
            failure = error
            _repair(run, error)
        else:
            log.info("%d blocks were made and %d found", run.n_made, run.n_found)
            return result
    raise failure


def _repair(run: Run, error: StorageError) -> None:
    """Forget a block that cannot be read, and what was made from others that are not there any more."""
    log.warning("%s; making it again", error.problem)
    step, block = error.fields["step"], error.fields["block"]
    run.workspace.discard(step, block)
    run._checked.discard((step, block))
    if run.workspace.is_dropped(step):
        run.workspace.forget_dropped()


def check_workers(client: Any, workspace: Workspace, *, sees_files: bool = True) -> dict[str, str]:
    """Check that all workers have this version of the package and, if they must, see the work directory.

    Returns
    -------
    dict
        The version of each worker.
    """
    workspace.folder.mkdir(parents=True, exist_ok=True)
    mark = workspace.folder / f".{secrets.token_hex(8)}"
    mark.touch()
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        found = client.run(_probe(str(mark)))
    except (OSError, TimeoutError) as error:
        raise SchedulerError(
            f"the Dask scheduler has no workers, or they do not answer: {error}", "start workers", code="no_workers"
        ) from None
    finally:
        mark.unlink()
    for worker, (version, sees_mark) in found.items():
        if version != __version__:
            has = f"has fiedler {version}" if version else "has no fiedler"
            raise SchedulerError(
                f"the worker {worker} {has}, but this is version {__version__}",
                "install the same version on all workers",
                code="worker_without_package",
                worker=worker,
            )
        if sees_files and not sees_mark:
            raise SchedulerError(
                f"the worker {worker} does not see the work directory {str(workspace.folder)!r}",
                "use a directory that all machines share",
                code="work_directory_not_shared",
                worker=worker,
                file=str(workspace.folder),
            )
    return {worker: version for worker, (version, _) in found.items()}


def _probe(mark: str) -> Callable[[], tuple[str | None, bool]]:
    """Return a function that workers can run without this package, since it is sent by value."""

    def probe() -> tuple[str | None, bool]:
        import os

        try:
            import fiedler
        except ImportError:
            return None, False
        return fiedler.__version__, os.path.exists(mark)

    return probe


def draw_seed(random_state: Any) -> int | None:
    """Return a seed from a random state, by which a fit that goes on is recognised; None if none is given."""
    return None if random_state is None else int(check_seed(random_state).randint(2**31 - 1))


def describe(model: BaseEstimator, X: Any, seed: int | list[int] | None) -> dict[str, Any]:
    """Return what the blocks of a fit are made from: the name of a Dask array, which depends on its contents, etc."""
    skipped = ("n_jobs", "verbose", "random_state")
    params = {name: token(value) for name, value in model.get_params().items() if name not in skipped}
    return {
        "method": type(model).__name__,
        "data": [str(X.name), str(X.dtype), [_size(size) for size in X.chunks[0]]],
        "options": params | {"random_state": seed},
        "version of fiedler": __version__,
    }


def token(value: Any) -> Any:
    """Return a number or string itself, and for other values, such as arrays, a string that depends on the contents."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return import_optional("dask.base", extra="dask", purpose="Dask arrays").tokenize(value)


def _size(size: float) -> int | None:
    return None if np.isnan(size) else int(size)
