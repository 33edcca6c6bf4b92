"""The papers behind fiedler: their experiments, the methods that they compare with, and their data sets.

Protocols become cells, cells become records, and records become tables and figures. Importing the package registers the
baselines with fiedler, so that they can be saved and loaded; its names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fiedler._registry import Estimator, register

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from .protocol import Cell, Protocol, list_protocols, load_protocol
    from .records import RecordFile
    from .run import run_cell, run_cells

__all__ = ["Cell", "Protocol", "RecordFile", "list_protocols", "load_protocol", "run_cell", "run_cells"]

MODULES = {"RecordFile": "records", "run_cell": "run", "run_cells": "run"}  # the others are in protocol
BASELINES = {
    "NMFClustering": "nmf",
    "GNMF": "gnmf",
    "MMC": "metric_learning",
    "LMNN": "metric_learning",
    "MPCKMeans": "mpckmeans",
    "TransductiveSVM": "tsvm",
}

for _name, _module in BASELINES.items():
    register(Estimator(_name, f"fiedler_papers.baselines.{_module}", "Baselines", top_level=False))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES.get(name, 'protocol')}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
