"""Where work on Dask arrays is done: the work directory, the scheduler, and the memory."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs

from .._validation import check_int, import_optional
from ..core.memory import available_memory
from ..errors import InputError, SchedulerError

CONNECT_SECONDS = 10  # within which a scheduler must answer
CLIENT_SHARE = 0.3  # of the memory, for this process: the coarse graph, the sample, and the scheduler
DEFAULT_SHARE = 0.8  # of the free memory, that is used if none is given
MALLOC_LIMITS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
MALLOC_BYTES = 2**27  # that workers keep for the next array: with Dask's 64 KiB they search neighbours half as fast
MIN_MEMORY = 2**30  # below, the libraries alone take most of it
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass(frozen=True)
class Config:
    """Where work on Dask arrays is done, see `config_context`."""

    workdir: Path | None = None
    memory: int | None = None
    scheduler: str | None = None
    n_workers: int | None = None


_DEFAULT = Config()
_CONFIG: ContextVar[Config] = ContextVar("fiedler_out_of_core", default=_DEFAULT)


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
        raise InputError(
            "memory and n_workers are those of local workers, but a scheduler is given",
            "leave them out, or leave out scheduler",
            code="incompatible_parameters",
            parameter="scheduler",
        )
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


def get_config() -> Config:
    """Return the settings of the surrounding `config_context`."""
    return _CONFIG.get()


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
        raise InputError(
            f"memory={memory!r} is not an amount of memory of at least 1 GiB",
            'give it as in "4GB"',
            code="invalid_memory",
            parameter="memory",
            value=memory,
        )
    return n_bytes


# --------------------------------------------------------------------------------------------------------- the client


@contextmanager
def running_client() -> Iterator[Any]:
    """Yield the client of the scheduler that is configured, the active one, or one of a local cluster.

    The local cluster has processes with a memory limit, and ends with the context.
    """
    distributed = import_optional("distributed", extra="dask", purpose="Dask arrays")
    config = get_config()
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
    distributed = import_optional("distributed", extra="dask", purpose="Dask arrays")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise SchedulerError(
            f"the Dask scheduler at {address!r} cannot be reached: {error}",
            "check the address, and that the scheduler runs",
            code="no_scheduler",
            parameter="scheduler",
            value=address,
        ) from None
    with client:
        yield client


@contextmanager
def _local_cluster(distributed: Any, config: Config) -> Iterator[Any]:
    """Start workers with one thread each, which share the memory that this process leaves."""
    dask = import_optional("dask", extra="dask", purpose="Dask arrays")
    n_workers = config.n_workers or effective_n_jobs(-1)
    memory = local_memory(config)
    with (
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": MALLOC_BYTES for name in MALLOC_LIMITS}),
        _temporary_directory() as folder,
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


def local_memory(config: Config) -> int | None:
    """Return the memory of all processes of a local cluster; None if it is not known."""
    free = available_memory()
    return config.memory or (None if free is None else int(DEFAULT_SHARE * free))


@contextmanager
def _temporary_directory() -> Iterator[str]:
    """Yield a directory for what Dask writes, such as the heartbeats of workers."""
    with tempfile.TemporaryDirectory(prefix="fiedler-dask-", ignore_cleanup_errors=True) as folder:
        yield folder
