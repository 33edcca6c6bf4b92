"""What is done with a mutated file: it is read, and what it contains is used."""

import os
import tempfile
import traceback
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import fiedler
from fiedler import AffinityGraph
from fiedler._archive import check_archive
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.errors import FiedlerError, NotFittedError
from fiedler.graph.affinity import read_archived_graph
from fiedler.persistence import LIMITS, _read_model
from fiedler.report import read_summary

PREDICTORS = ("predict", "predict_proba", "transform")
PACKAGE = str(Path(fiedler.__file__).parent)
REFUSED, LOADED = "refused", "loaded"


def examine(kind: str, data: bytes, rows: Any = None) -> str:
    """Read a file and use what it contains.

    Returns
    -------
    str
        Whether it was refused or loaded. Any error that is not one of fiedler's own is raised, as are errors of more
        than one line.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value = READERS[kind](data)
        except FiedlerError as error:
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error!r}") from error
            return REFUSED
        if kind == "model":
            _predict(value, rows)
        elif kind == "graph":
            value.components(), smallest_eigenpairs(value, min(2, value.n_nodes))
        return LOADED


def _predict(model: Any, rows: Any) -> None:
    for name in PREDICTORS:
        try:
            method = getattr(model, name, None)
            if method is not None:
                method(rows)
        except (FiedlerError, NotFittedError):  # the latter is scikit-learn's, and ours by name
            pass
        except (ValueError, TypeError) as error:
            if not _is_of_another_package(error):
                raise


def _is_of_another_package(error: Exception) -> bool:
    """Whether an error comes from a step of a pipeline that is scikit-learn's, which checks its rows in its own way."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return not any(name.startswith(PACKAGE) for name in frames)


def _read_model_file(data: bytes) -> Any:
    archive = check_archive(BytesIO(data), "mutated.npz", "model file", code="not_a_model_file", limits=LIMITS)
    return _read_model(archive, "mutated.npz")


def _read_graph_file(data: bytes) -> AffinityGraph:
    archive = check_archive(BytesIO(data), "mutated.npz", "graph file", code="invalid_graph_file")
    return AffinityGraph(**read_archived_graph(archive, "mutated.npz"))


def _read_summary_file(data: bytes) -> Any:
    path = Path(tempfile.gettempdir()) / f"fiedler-mutated-{os.getpid()}.json"
    try:
        path.write_bytes(data)
        return read_summary(path)
    finally:
        path.unlink(missing_ok=True)


READERS = {"model": _read_model_file, "graph": _read_graph_file, "summary": _read_summary_file}
