"""``fiedler doctor``: the environment that fiedler runs in."""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import threadpoolctl

from .. import __version__
from .._registry import import_papers
from .._version import version_of
from ..errors import DataNotFoundError
from ..out_of_core.run import check_workers, connect
from ..out_of_core.store import Workspace
from .options import Json, Scheduler, Workdir
from .output import Output, make_table, n_cores, one_line

DEVELOPMENT = ("all", "dev", "docs", "peers", "test")  # extras that no command needs
REQUIREMENT = re.compile(r"([\w.-]+).*?(?:extra == ['\"](\w+)['\"])?$")  # name, and the extra that installs it


def list_packages() -> dict[str, str]:
    """Return the distributions that fiedler uses, each with the extra that installs it, or "required"."""
    try:
        lines = requires("fiedler") or []
    except PackageNotFoundError:  # a source tree that is not installed
        lines = []
    found = map(REQUIREMENT.match, lines)
    return {match[1]: match[2] or "required" for match in found if match and match[2] not in DEVELOPMENT}


def doctor(scheduler: Scheduler = None, workdir: Workdir = None, json: Json = False) -> None:
    """Show versions, array libraries, threads and folders, for example for a bug report; test a Dask cluster."""
    extras = list_packages()
    packages = {name: version_of(name) for name in extras}
    import_module("sklearn.cluster")  # loads the libraries whose threads are listed
    threads = [f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpoolctl.threadpool_info()]
    data_folder, cache_folder = _data_folders()
    devices, workers = _devices(), None if scheduler is None else _workers(scheduler, workdir)
    result = {
        "fiedler": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": n_cores(),
        "threads": threads,
        "packages": packages,
        "devices": devices,
        "data_folder": data_folder,
        "cache_folder": cache_folder,
        "workers": workers,
    }
    rows = [
        (name, version or "-", "" if version or extra == "required" else f"pip install 'fiedler[{extra}]'")
        for (name, extra), version in zip(extras.items(), packages.values())
    ]
    lines = [
        f"fiedler {__version__}, Python {result['python']}, {result['system']}",
        f"{n_cores()} cores; threads: {', '.join(threads) or 'unknown'}",
        f"devices: {', '.join(devices) or 'CPU only'}",
        f"data folder (FIEDLER_DATA): {data_folder or 'not set'}; cache: {cache_folder or 'none'}\n",
    ]
    if workers is not None:
        where = "" if workdir is None else f" and see {str(workdir)!r}"
        lines.insert(3, f"Dask scheduler {scheduler}: {len(workers)} workers, which have this version{where}")
    table = make_table("", "package", "version", "to install", rows=rows)
    for column in table.columns:
        column.justify = "left"
    Output(json=json).result(result, "\n".join(lines), table)


def _data_folders() -> tuple[str | None, str | None]:
    """Return the folder of data, or what is wrong with it, and that of downloads; fiedler-papers uses both."""
    papers = import_papers("datasets")
    if papers is None:
        return None, None
    try:
        folder = papers.data_folder()
    except DataNotFoundError as error:
        folder = error.problem
    return None if folder is None else str(folder), str(papers.cache_folder())


def _workers(scheduler: str, workdir: Path | None) -> dict[str, str]:
    """Check that the workers of a Dask cluster have this version, and see the work directory; return it by worker."""
    with connect(scheduler) as client, tempfile.TemporaryDirectory() as folder:
        if workdir is not None:
            return check_workers(client, Workspace(workdir))
        return check_workers(client, Workspace(folder), sees_files=False)


def _devices() -> list[str]:
    """Return the accelerators that torch and CuPy find, or why one of them fails to."""
    devices = []
    for name, list_devices in DEVICE_LISTS.items():
        if find_spec(name) is None:
            continue
        try:
            devices += [f"{name} {device}" for device in list_devices(import_module(name))]
        except Exception as error:  # an incompatible driver raises many classes
            devices.append(f"{name} finds none ({one_line(str(error))})")
    return devices


DEVICE_LISTS: dict[str, Callable[[Any], list[str]]] = {
    "torch": lambda torch: [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    "cupy": lambda cupy: [f"device {i}" for i in range(cupy.cuda.runtime.getDeviceCount())],
}
