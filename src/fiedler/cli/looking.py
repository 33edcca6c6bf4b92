"""``fiedler data`` and ``fiedler doctor``: what there is."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import threadpoolctl
import typer

from .. import __version__
from .._versions import version_of
from ..datasets import list_datasets, load
from ..datasets.registry import DATASETS
from ..datasets.store import cache_folder, data_folder
from .methods import pick
from .output import Json, Output, Quiet, n_cores, table
from .wording import in_words

PACKAGES = {
    "numpy": "required",
    "scipy": "required",
    "scikit-learn": "required",
    "array-api-compat": "required",
    "faiss-cpu": "ann",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "plot",
    "pillow": "image",
    "pyarrow": "text",
    "umap-learn": "peers",
    "torch": "torch",
    "cupy-cuda12x": "cupy",
}


def list_all(json: Json = False) -> None:
    """The data sets, and whether they are on this machine."""
    rows = {name: {"about": about, "here": _is_here(name)} for name, about in list_datasets().items()}
    shown = [(name, "yes" if row["here"] else "-", row["about"]) for name, row in rows.items()]
    lines = "\n".join(f"{name:16} {here:5} {about}" for name, here, about in [("name", "here", "about"), *shown])
    Output(json=json).result(rows, lines)


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As fiedler data list has it.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Bring a data set to this machine and say what it holds."""
    pick(DATASETS, name, "the data set")
    found = load(name, verbose=not quiet)
    rows, columns = found.X.shape
    plain = {"name": name, "rows": rows, "columns": columns, "classes": len(found.target_names)}
    Output(quiet, json).result(plain, f"{name}: {rows} rows, {columns} columns, {plain['classes']} classes")


def _is_here(name: str) -> bool:
    """Without a download: made here, or a file in the data folder or the cache."""
    if DATASETS[name].remote is None:
        return True
    return any(folder is not None and (folder / f"{name}.npz").exists() for folder in (data_folder(), cache_folder()))


def doctor(json: Json = False) -> None:
    """What fiedler runs on: versions, back ends, threads, folders."""
    packages = {name: version_of(name) for name in PACKAGES}
    pools = [f"{pool['internal_api']} {pool['num_threads']}" for pool in _pools()]
    devices = _devices()
    plain = {
        "fiedler": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": n_cores(),
        "threads": pools,
        "packages": packages,
        "devices": devices,
        "data_folder": None if data_folder() is None else str(data_folder()),
        "cache_folder": str(cache_folder()),
    }
    rows = [
        (name, found or "-", "" if found or extra == "required" else f"pip install 'fiedler[{extra}]'")
        for (name, extra), found in zip(PACKAGES.items(), packages.values())
    ]
    head = [
        f"fiedler {__version__}, Python {plain['python']}, {plain['system']}",
        f"{n_cores()} cores; threads: {', '.join(pools) or 'unknown'}",
        f"devices: {', '.join(devices) or 'none beside the processor'}",
        f"data folder (FIEDLER_DATA): {plain['data_folder'] or 'not set'}; cache: {plain['cache_folder']}\n",
    ]
    made = table("", "package", "version", "for more", rows=rows)
    for column in made.columns:
        column.justify = "left"
    Output(json=json).result(plain, "\n".join(head), made)


def _pools() -> list[dict[str, Any]]:
    import_module("sklearn.cluster")  # so that its libraries are loaded
    return threadpoolctl.threadpool_info()


def _devices() -> list[str]:
    """The accelerators that torch and CuPy see, or why one of them sees none."""
    found = []
    for name, listed in LISTED.items():
        if find_spec(name) is None:
            continue
        try:
            found += [f"{name} {device}" for device in listed(import_module(name))]
        except Exception as error:  # a driver that does not fit has many ways to say so
            found.append(f"{name} sees none ({in_words(str(error))})")
    return found


def _of_torch(torch: Any) -> list[str]:
    return [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]


def _of_cupy(cupy: Any) -> list[str]:
    return [f"device {place}" for place in range(cupy.cuda.runtime.getDeviceCount())]


LISTED: dict[str, Callable[[Any], list[str]]] = {"torch": _of_torch, "cupy": _of_cupy}
