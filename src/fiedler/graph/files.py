"""Graph files: the arrays of an `AffinityGraph` in one ``.npz``, read without trust; docs/file_formats.md."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._archive import Archive, check_ending, open_archive, write_archive
from ..core.backend import Array, to_numpy
from ..core.sparse import Sparse, checked_csr, to_scipy
from ..errors import FileFormatError
from .kernels import KernelConstants
from .weights import check_stored_weights

FILE_VERSION = 1  # of the format that `write_graph` writes

# The arrays of a file: the kinds of their entries and their numbers of axes.
REQUIRED = {
    "fiedler_graph": ("iu", 0),
    "shape": ("iu", 1),
    "data": ("f", 1),
    "indices": ("i", 1),
    "indptr": ("i", 1),
    "signed": ("b", 0),
    "degree": ("iu", 0),
    "has_constants": ("b", 0),
}
CONSTANTS = {"bandwidth": ("f", 0), "scales": ("f", 1), "metric": ("f", 2), "neighbors": ("iu", 0)}
OPTIONAL = {**CONSTANTS, "recall": ("f", 0), "loops": ("f", 1)}


def write_graph(
    path: str | os.PathLike[str],
    weights: Sparse,
    *,
    signed: bool,
    constants: KernelConstants | None,
    recall: float | None,
    loops: Array | None,
) -> None:
    """Write the attributes of a graph to a file, or nothing if writing fails."""
    check_ending(path, "graph file")
    W, kernel = to_scipy(weights), constants or KernelConstants()
    optional = {name: getattr(kernel, name) for name in CONSTANTS} | {"recall": recall, "loops": loops}
    arrays: dict[str, Any] = {name: to_numpy(value) for name, value in optional.items() if value is not None}
    arrays |= {"data": W.data, "indices": W.indices, "indptr": W.indptr, "shape": np.array(W.shape)}
    arrays |= {"signed": np.array(signed), "degree": np.array(kernel.degree)}
    arrays |= {"has_constants": np.array(constants is not None)}
    write_archive(path, {"fiedler_graph": np.array(FILE_VERSION), **arrays})


def read_graph(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what `write_graph` wrote: the arguments of an `AffinityGraph`, by name."""
    with open_archive(path, "graph file", code="invalid_graph_file") as archive:
        return read_archived_graph(archive, str(path))


def read_archived_graph(archive: Archive, file: str) -> dict[str, Any]:
    """As `read_graph`, from an open archive; errors name the file."""
    try:
        return _graph_arguments({name: archive.read(name) for name in archive.names})
    except ValueError as error:
        raise FileFormatError(
            f"{file!r} is not a valid graph file: {error}", code="invalid_graph_file", file=file
        ) from error


def _graph_arguments(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the arguments of an `AffinityGraph` from the arrays of a file, none of which is trusted."""
    _check_version(arrays)
    for name, array in arrays.items():
        if name not in {**REQUIRED, **OPTIONAL}:
            raise ValueError(f"it has an unknown array {name!r}")
        kinds, n_axes = {**REQUIRED, **OPTIONAL}[name]
        is_half_or_long = array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)
        if array.dtype.kind not in kinds or array.ndim != n_axes or is_half_or_long:
            raise ValueError(f"its array {name!r} has the type {array.dtype} and {array.ndim} axes")
    if missing := [name for name in REQUIRED if name not in arrays]:
        raise ValueError(f"it lacks {', '.join(missing)}")
    signed = bool(arrays["signed"])
    W = checked_csr(arrays["data"], arrays["indices"], arrays["indptr"], tuple(arrays["shape"].tolist()))
    check_stored_weights(W, signed=signed)
    recall, loops = (arrays.get(name) for name in ("recall", "loops"))
    if loops is not None and (loops.shape != W.shape[:1] or not np.isfinite(loops).all() or loops.min() < 0):
        raise ValueError("its self-loops are not one non-negative number per node")
    if recall is not None and not 0 <= recall <= 1:
        raise ValueError("its recall is not a share")
    return {
        "weights": W,
        "signed": signed,
        "constants": _read_constants(arrays, W.shape[0]),
        "recall": None if recall is None else float(recall),
        "loops": loops,
    }


def _check_version(arrays: dict[str, np.ndarray]) -> None:
    version = arrays.get("fiedler_graph")
    if version is None:
        raise ValueError("it was not written by AffinityGraph.save")
    if version.dtype.kind not in "iu" or version.ndim or version < 1:
        raise ValueError("the version of its format is not a positive integer")
    if version > FILE_VERSION:
        raise ValueError(f"its format {version} is newer than this version reads; update fiedler")


def _read_constants(arrays: dict[str, np.ndarray], n_nodes: int) -> KernelConstants | None:
    """Return the constants of the kernel, or None if there are none."""
    if arrays["degree"] < 1:
        raise ValueError("its degree is not positive")
    if not arrays["has_constants"]:
        if any(name in arrays for name in CONSTANTS):
            raise ValueError("it has constants of a kernel, but says that it has none")
        return None
    bandwidth, scales, metric, neighbors = (arrays.get(name) for name in CONSTANTS)
    if bandwidth is not None and not 0 < bandwidth < np.inf:
        raise ValueError("its bandwidth is not positive")
    if scales is not None and (len(scales) != n_nodes or not ((scales >= 0) & (scales < np.inf)).all()):
        raise ValueError("its scales are not one finite non-negative number per node")
    if metric is not None and not np.isfinite(metric).all():
        raise ValueError("its metric is not finite")
    if neighbors is not None and neighbors < 1:
        raise ValueError("its number of neighbours is not positive")
    return KernelConstants(
        None if bandwidth is None else float(bandwidth),
        int(arrays["degree"]),
        scales,
        metric,
        None if neighbors is None else int(neighbors),
    )
