"""Predictions for the rows of a Dask array, block by block, by any fitted estimator."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import Array
from ..core.fitting import is_dask_array
from ..core.parallel import one_thread
from .partition import check_shape, float_type
from .run import import_dask


def predict(model: Any, X: Any) -> Any:
    """Return the cluster of each row as a Dask array with the blocks of ``X``."""
    classes, dtype = getattr(model, "classes_", None), np.dtype(np.int64)
    if classes is not None:
        dtype = np.append(classes, "-1" if classes.dtype.kind in "US" else -1).dtype
    return _map(model, X, "predict", dtype, (), {})


def predict_proba(model: Any, X: Any, **options: Any) -> Any:
    """Return the memberships of each row as a Dask array with the blocks of ``X``."""
    check_is_fitted(model)
    names = ("classes_", "n_clusters_", "n_clusters")
    clusters = next(getattr(model, name) for name in names if hasattr(model, name))
    width = (len(clusters) if np.ndim(clusters) else int(clusters),)
    return _map(model, X, "predict_proba", float_type(X.dtype), width, options)


def _map(model: Any, X: Any, method: str, dtype: np.dtype, width: tuple[int, ...], options: dict[str, Any]) -> Any:
    """Call a method of a model on all blocks, when the result is computed."""
    check_is_fitted(model)
    check_shape(X)
    return X.map_blocks(
        _call,
        method=method,
        model=import_dask().delayed(_light(model), pure=False),
        options=options,
        empty=np.empty((0, *width), dtype=dtype),
        dtype=dtype,
        chunks=(X.chunks[0], *((size,) for size in width)),
        drop_axis=[] if width else [1],
        meta=np.empty((0, *width), dtype=dtype),
    )


def _light(model: Any) -> Any:
    """Return a copy of a model whose arrays with a value per training row, which predictions do not use, are empty."""
    light = copy(model)
    for name, value in vars(model).items():
        if is_dask_array(value):
            setattr(light, name, np.empty((0, *value.shape[1:]), dtype=value.dtype))
        elif name == "init" and not isinstance(value, str):
            setattr(light, name, None)
    return light


def _call(rows: Array, *, model: Any, method: str, options: dict[str, Any], empty: np.ndarray) -> Array:
    """Call a method of a model on the rows of a block."""
    if not rows.shape[0]:
        return empty
    with one_thread():
        return getattr(model, method)(rows, **options).astype(empty.dtype, copy=False)
