"""What runs in place of a method of an estimator when it meets a Dask array.

A Dask array is a stack of row blocks that need not fit into memory together. The models know nothing about Dask: their
methods that have a block version are marked by `in_blocks`, and the versions are found by name in
:mod:`fiedler.out_of_core`, which is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import array_api_compat

from ..errors import InputError

Method = TypeVar("Method", bound=Callable[..., Any])

# Modules with a function for each method of a class, by class; those of `ANY_ESTIMATOR` are for all classes.
MODULES = {
    "GaussianMixture": "fiedler.out_of_core.mixture",
    "KNNGraph": "fiedler.out_of_core.neighbor_graph",
    "LapGMM": "fiedler.out_of_core.lapgmm",
    "LLGC": "fiedler.out_of_core.llgc",
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
