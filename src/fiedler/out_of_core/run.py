"""Where a fit in blocks does its work, and its steps: functions of one block, from files to files, run by Dask.

Tasks return nothing and need nothing but files, so any of them can be run again on any worker: a lost worker costs the
blocks that it was working on. What the next step needs is read from the files, by the tasks or, if it is small, by the
client. Blocks that are there already are not made again.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator

from .._validation import check_int, check_seed, import_optional
from .._version import __version__
from ..core.arrays import Array
from ..core.fitting import check_interrupt, stage
from ..core.parallel import available_memory, one_thread
from ..errors import InputError, SchedulerError, StorageError
from .store import Task, Workspace

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[..., Mapping[str, Array]]

CONNECT_SECONDS = 10  # within which a scheduler must answer
CLIENT_SHARE = 0.3  # of the memory, for this process: the coarse graph, the sample, and the scheduler
DEFAULT_SHARE = 0.8  # of the free memory, that is used if none is given
MALLOC_LIMITS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
MALLOC_BYTES = 2**27  # that workers keep for the next array: with Dask's 64 KiB they search neighbours half as fast
MIN_MEMORY = 2**30  # below, the libraries alone take most of it
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
MAX_REPAIRS = 5  # times that a fit looks for lost or damaged blocks
MAX_LOSSES = 10  # times that a block may lose its worker
WAIT_SECONDS = 1.0  # after which an interrupt is heard
WORKER_SECONDS = 30  # within which the first worker must be there


def import_dask(name: str = "dask") -> Any:
    """Import Dask or a part of it, or say how to install it."""
    return import_optional(name, extra="dask", purpose="Dask arrays")


# --------------------------------------------------------------------------------------------------- the configuration


@dataclass(frozen=True)
class Config:
    """Where work on Dask arrays is done, see `config_context`."""

    workdir: Path | None = None
    memory: int | None = None
    scheduler: str | None = None
    n_workers: int | None = None


_CONFIG: ContextVar[Config] = ContextVar("fiedler_out_of_core", default=Config())  # noqa: B039  # it is frozen


@contextmanager
def config_context(
    workdir: str | os.PathLike[str] | None = None,
    *,
    memory: int | str | None = None,
    scheduler: str | None = None,
    n_workers: int | None = None,
) -> Iterator[None]:
    """Set where the fits inside the context do their work on Dask arrays; what is not given stays as it is.

    Parameters
    ----------
    workdir : path, optional
        The directory of the blocks. A fit that was interrupted goes on from what it finds there. On a cluster, all
        workers must see it under the same name. By default a temporary directory, which is deleted with the results.
    memory : int or str, optional
        The memory of all processes together, in bytes or as in ``"4GB"``, if a local cluster is started; by default
        most of what is free.
    scheduler : str, optional
        The address of a Dask scheduler. By default the active client is used, or else a local cluster is started.
    n_workers : int, optional
        The number of processes of a local cluster; by default the number of cores.

    Examples
    --------
    >>> from fiedler.out_of_core import config_context
    >>> with config_context("work", memory="4GB"):
    ...     pass  # model.fit(dask_array)
    """
    if scheduler is not None and (memory is not None or n_workers is not None):
        problem = "memory and n_workers are those of local workers, but a scheduler is given"
        hint = "leave them out, or leave out scheduler"
        raise InputError(problem, hint, code="incompatible_parameters", parameter="scheduler")
    given: dict[str, Any] = {
        "workdir": None if workdir is None else Path(workdir).resolve(),
        "memory": None if memory is None else parse_memory(memory),
        "scheduler": scheduler,
        "n_workers": None if n_workers is None else check_int(n_workers, "n_workers"),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    token = _CONFIG.set(replace(_CONFIG.get(), **changes))
    try:
        yield
    finally:
        _CONFIG.reset(token)


def parse_memory(memory: int | str) -> int:
    """Return a number of bytes, such as ``"4GB"``.

    Examples
    --------
    >>> parse_memory("1.5 GB")
    1500000000
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", str(memory))
    try:
        n_bytes = int(float(match[1]) * UNITS[match[2].upper()]) if match else -1
    except (KeyError, ValueError):
        n_bytes = -1
    if n_bytes < MIN_MEMORY:
        problem = f"memory={memory!r} is not an amount of memory of at least 1 GiB"
        raise InputError(problem, 'give it as in "4GB"', code="invalid_memory", parameter="memory", value=memory)
    return n_bytes


# --------------------------------------------------------------------------------------------------------- the client


@contextmanager
def running_client() -> Iterator[Any]:
    """Yield the client of the scheduler that is configured, the active one, or one of a local cluster.

    The local cluster has processes with a memory limit, and ends with the context.
    """
    distributed, config = import_dask("distributed"), _CONFIG.get()
    with ExitStack() as stack:
        if config.scheduler is not None:
            client = stack.enter_context(connect(config.scheduler))
        else:
            try:
                client = distributed.get_client()
            except ValueError:
                cluster = stack.enter_context(_local_cluster(distributed, config))
                client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        stack.enter_context(client.as_current())
        yield client


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address."""
    distributed = import_dask("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        problem = f"the Dask scheduler at {address!r} cannot be reached: {error}"
        hint = "check the address, and that the scheduler runs"
        raise SchedulerError(problem, hint, code="no_scheduler", parameter="scheduler", value=address) from None
    with client:
        yield client


@contextmanager
def _local_cluster(distributed: Any, config: Config) -> Iterator[Any]:
    """Start workers with one thread each, which share the memory that this process leaves."""
    free, n_workers = available_memory(), config.n_workers or effective_n_jobs(-1)
    memory = config.memory or (None if free is None else int(DEFAULT_SHARE * free))
    environment = {f"distributed.nanny.pre-spawn-environ.{name}": MALLOC_BYTES for name in MALLOC_LIMITS}
    with (
        import_dask().config.set(environment),
        TemporaryDirectory(prefix="fiedler-dask-", ignore_cleanup_errors=True) as folder,  # heartbeats of workers etc.
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=int((1 - CLIENT_SHARE) * memory / n_workers) if memory else "auto",
            local_directory=folder,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
    ):
        cluster.adapt(minimum=n_workers, maximum=n_workers, interval="500ms")  # start lost workers again
        yield cluster


# ----------------------------------------------------------------------------------------------------------- the steps


@dataclass(eq=False)
class Run:
    """A fit in a work directory."""

    workspace: Workspace
    client: Any
    n_found: int = 0  # blocks that were there already
    n_made: int = 0
    _checked: set[tuple[str, int]] = field(default_factory=set)  # blocks that are known to be intact

    def map(self, step: str, work: Work, blocks: int | Sequence[int], /, **options: Any) -> None:
        """Make blocks of a step: ``work(task, **options)`` returns their arrays by name.

        The blocks are given by their numbers; an integer stands for all numbers below it.
        """
        numbers = range(blocks) if isinstance(blocks, int) else blocks

        def submit(block: int) -> Any:
            task = Task(self.workspace, block)
            return self.client.submit(_make, task, step, work, (task,), options, key=_key(step), pure=False)

        self._make(step, numbers, submit)

    def map_delayed(self, step: str, work: Work, inputs: Sequence[Any], /, **options: Any) -> None:
        """Make blocks from blocks of a Dask array: ``work(input, block, **options)`` returns arrays by name."""
        make = import_dask().delayed(_make, pure=False)

        def submit(block: int) -> Any:
            task, arguments = Task(self.workspace, block), (inputs[block], block)
            return self.client.compute(make(task, step, work, arguments, options, dask_key_name=_key(step)))

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
        return sum(self.read_all(step, name, blocks))

    def read_all(self, step: str, name: str, blocks: int | Sequence[int]) -> Iterator[Any]:
        """Yield an array of each of some blocks."""
        for block in range(blocks) if isinstance(blocks, int) else blocks:
            yield self.workspace.read_one(step, block, name)

    def drop(self, step: str) -> None:
        """Delete the blocks of a step that is not needed any more."""
        if not self.workspace.is_dropped(step):
            self.workspace.drop(step)

    def _missing(self, step: str, blocks: Sequence[int]) -> list[int]:
        """Return those of the blocks of a step that are not there, or damaged."""
        if self.workspace.is_dropped(step):
            return []
        there = sorted(self.workspace.finished(step))
        unknown = [block for block in there if (step, block) not in self._checked]
        intact = {block for block in there if (step, block) in self._checked}
        if unknown:
            task = (Workspace.is_intact, self.workspace, step)  # deletes a damaged block
            submit = lambda block: self.client.submit(*task, block, key=_key(f"check-{step}"), pure=False)  # noqa: E731
            self._finish_all(step, unknown, submit, lambda block: None)
            intact |= set(unknown) & self.workspace.finished(step)
            damaged = sorted(set(unknown) - intact)
            if damaged:
                log.warning("%s: the blocks %s are damaged and are made again", step, damaged)
            self._checked |= {(step, block) for block in intact}
            self.n_found += len(intact & set(unknown))
            log.info("%s: found %d of %d blocks", step, len(intact), len(blocks))
        return [block for block in blocks if block not in intact]

    def _make(self, step: str, blocks: Sequence[int], submit: Callable[[int], Any]) -> None:
        """Make the blocks that are missing."""
        missing, started = self._missing(step, blocks), time.perf_counter()

        def finish(block: int) -> None:
            self._checked.add((step, block))
            self.n_made += 1
            tick()

        with stage(step, len(blocks)) as tick:
            tick(len(blocks) - len(missing))
            self._finish_all(step, missing, submit, finish)
        if missing:
            log.info("%s: made %d blocks in %.1f s", step, len(missing), time.perf_counter() - started)

    def _finish_all(
        self, step: str, blocks: list[int], submit: Callable[[int], Any], finish: Callable[[int], None]
    ) -> None:
        """Submit the tasks of blocks and wait for them; submit again those whose workers are lost."""
        n_losses = 0
        while blocks:
            blocks = self._wait({submit(block): block for block in blocks}, finish)
            n_losses += bool(blocks)
            if n_losses > MAX_LOSSES:
                problem = f"the workers of block {blocks[0]} of the step {step!r} were lost {n_losses} times"
                hint = "they may need more memory than they have: give them more, or use smaller blocks"
                raise SchedulerError(problem, hint, code="workers_lost", step=step, block=blocks[0])

    def _wait(self, futures: dict[Any, int], finish: Callable[[int], None]) -> list[int]:
        """Wait for tasks; return the blocks whose workers were lost too often for the scheduler."""
        distributed = import_dask("distributed")
        lost, waiting, alone_since = [], set(futures), None
        try:
            while waiting:
                check_interrupt()
                if self.client.status not in ("running", "connecting"):
                    hint = "run the same fit again: with a work directory it goes on from the blocks that are finished"
                    raise SchedulerError("the connection to the Dask scheduler was lost", hint, code="connection_lost")
                has_workers = bool(self.client.scheduler_info(n_workers=1)["workers"])
                alone_since = None if has_workers else alone_since or time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since > WORKER_SECONDS:
                    problem = f"all workers are lost, and there was no other one for {WORKER_SECONDS} s"
                    hint = "start workers, and run the same fit again: with a work directory it goes on"
                    raise SchedulerError(problem, hint, code="no_workers")
                with suppress(TimeoutError, distributed.CancelledError):
                    distributed.wait(waiting, timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED")
                ended = {future for future in waiting if future.status != "pending"}
                waiting -= ended
                for future in ended:
                    block = futures.pop(future)  # else the scheduler makes it again if its worker is lost later
                    if future.status == "finished":
                        finish(block)
                    elif future.status == "error" and not isinstance(
                        error := future.exception(), distributed.scheduler.KilledWorker
                    ):
                        raise error
                    else:
                        lost.append(block)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(list(futures), force=True)
            raise
        return sorted(lost)


def _key(step: str) -> str:
    """Return a name of a task, unlike that of any other; the dashboard shows the step."""
    return f"{step.rsplit('/', maxsplit=1)[-1]}-{uuid4().hex}"


def _make(task: Task, step: str, work: Work, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Make a block in the worker, with a single thread: there are as many workers as the machine has cores."""
    with one_thread():
        task.workspace.write(step, task.block, work(*arguments, **options))


# ------------------------------------------------------------------------------------------------------------ the fit


def run_steps(
    model: BaseEstimator, X: Any, seed: int | list[int] | None, script: Callable[[Run], T], **given: Any
) -> T:
    """Run the steps of the fit of a model to a Dask array in the work directory that is configured, or a temporary one.

    ``script`` calls the steps; it is called again if a block is missing or damaged, and must then do the same. By the
    array, the parameters, the seed and other values that are ``given``, the blocks of another fit are recognised.
    """
    workdir, skipped = _CONFIG.get().workdir, ("n_jobs", "verbose", "random_state")
    options = {name: _token(value) for name, value in model.get_params().items() if name not in skipped}
    sizes = [None if np.isnan(size) else int(size) for size in X.chunks[0]]
    made_from = {
        "method": type(model).__name__,
        "data": [str(X.name), str(X.dtype), sizes],  # the name depends on the contents
        "options": options | {"random_state": seed},
        "version of fiedler": __version__,
        **{name: _token(value) for name, value in given.items()},
    }
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
            failure, step, block = error, error.fields["step"], error.fields["block"]
            log.warning("%s; making it again", error.problem)
            run.workspace.discard(step, block)
            run._checked.discard((step, block))
            if run.workspace.is_dropped(step):
                run.workspace.forget_dropped()
        else:
            log.info("%d blocks were made and %d found", run.n_made, run.n_found)
            return result
    raise failure


def check_workers(client: Any, workspace: Workspace, *, sees_files: bool = True) -> dict[str, str]:
    """Check that all workers have this version and, if they must, see the work directory; return their versions."""
    workspace.folder.mkdir(parents=True, exist_ok=True)
    mark = workspace.folder / f".{secrets.token_hex(8)}"
    mark.touch()
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        answers = client.run(_probe(str(mark)))
    except (OSError, TimeoutError) as error:
        problem = f"the Dask scheduler has no workers, or they do not answer: {error}"
        raise SchedulerError(problem, "start workers", code="no_workers") from None
    finally:
        mark.unlink()
    for worker, (version, sees_mark) in answers.items():
        if version != __version__:
            has = f"has fiedler {version}" if version else "has no fiedler"
            problem = f"the worker {worker} {has}, but this is version {__version__}"
            hint = "install the same version on all workers"
            raise SchedulerError(problem, hint, code="worker_without_package", worker=worker)
        if sees_files and not sees_mark:
            folder = str(workspace.folder)
            problem = f"the worker {worker} does not see the work directory {folder!r}"
            hint = "use a directory that all machines share"
            raise SchedulerError(problem, hint, code="work_directory_not_shared", worker=worker, file=folder)
    return {worker: version for worker, (version, _) in answers.items()}


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


def refuse(problem: str, options: Iterable[tuple[str, object, str]]) -> None:
    """Raise an error for the first option that is used: its name, whether it is, and what to do instead."""
    for name, is_used, hint in options:
        if is_used:
            sentence = f"{problem.format(name)} with Dask arrays"
            raise InputError(sentence, hint, code="not_out_of_core", parameter=name)


def draw_seed(random_state: Any) -> int | None:
    """Return a seed from a random state, by which a fit that goes on is recognised; None if none is given."""
    return None if random_state is None else int(check_seed(random_state).randint(2**31 - 1))


def _token(value: Any) -> Any:
    """Return a number or string itself, and for other values, such as arrays, a string that depends on the contents."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return import_dask("dask.base").tokenize(value)
