"""One door to each array library: which namespace an array belongs to, and the few steps the standard leaves out.

Dense mathematics is written against the array API standard, in the spelling that `array_api_compat` gives NumPy, torch
and CuPy alike. Random numbers are always drawn by NumPy and then moved, so that a seed means the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from .._typing import Array as Array

BLOCK_BYTES = 64 * 2**20  # a temporary of a blocked computation stays about this small on the host ...
DEVICE_BLOCK_BYTES = 2 * 2**30  # ... and this on an accelerator, which is idle on less


def namespace(*arrays: Array) -> Any:
    """The array API namespace shared by ``arrays``; sparse SciPy matrices count as NumPy."""
    dense = [a for a in arrays if not sp.issparse(a)]
    return array_api_compat.array_namespace(*dense) if dense else array_api_compat.array_namespace(np.empty(0))


def is_numpy(X: Array) -> bool:
    """Whether ``X`` is a NumPy array or a SciPy sparse matrix."""
    return sp.issparse(X) or array_api_compat.is_numpy_array(X)


def to_numpy(X: Array) -> np.ndarray:
    """A NumPy copy or view of ``X``, brought to the host if need be."""
    if array_api_compat.is_torch_array(X):
        return X.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(X):
        return X.get()
    return np.asarray(X)


def asarray_like(values: Any, reference: Array, *, dtype: Any = None) -> Array:
    """``values`` (host data) as an array of the library and on the device of ``reference``."""
    xp = namespace(reference)
    if sp.issparse(reference):
        return xp.asarray(values, dtype=dtype)
    if array_api_compat.is_torch_array(reference) or array_api_compat.is_cupy_array(reference):
        values = np.ascontiguousarray(values)
    return xp.asarray(values, dtype=dtype, device=array_api_compat.device(reference))


def convert_like(X: Array, reference: Array) -> Array:
    """Rows ``X`` in the container of ``reference``: dense or CSR, its library, its device, its dtype."""
    if sp.issparse(reference):
        return sp.csr_array(X if sp.issparse(X) else to_numpy(X), dtype=reference.dtype)
    dense = X.toarray() if sp.issparse(X) else X
    if is_numpy(reference):
        return to_numpy(dense).astype(reference.dtype, copy=False)
    foreign = not is_numpy(dense) and namespace(dense) is namespace(reference)
    return (
        namespace(reference).astype(dense, reference.dtype)
        if foreign
        else asarray_like(dense, reference, dtype=reference.dtype)
    )


def arange(n: int, reference: Array, *, dtype: Any = None) -> Array:
    """The integers 0 .. n-1 beside ``reference``."""
    xp = namespace(reference)
    device = None if sp.issparse(reference) else array_api_compat.device(reference)
    return xp.arange(n, dtype=dtype or xp.int64, device=device)


def identity(matrices: Array) -> Array:
    """The identity of the size, precision and device of (..., d, d) matrices."""
    xp = namespace(matrices)
    return xp.eye(matrices.shape[-1], dtype=matrices.dtype, device=array_api_compat.device(matrices))


def standard_normal(shape: tuple[int, ...], rng: np.random.RandomState, reference: Array) -> Array:
    """Normal numbers drawn on the host: the same ones for a seed on every back end."""
    return asarray_like(rng.standard_normal(shape), reference, dtype=reference.dtype)


def eps(X: Array) -> float:
    """The machine precision of the entries of ``X``."""
    return float(namespace(X).finfo(X.dtype).eps)


def itemsize(X: Array) -> int:
    """The bytes of one (floating) entry of ``X``."""
    return int(namespace(X).finfo(X.dtype).bits) // 8


def row_blocks(
    n_rows: int,
    bytes_per_row: int,
    reference: Array,
    *,
    host: int | None = None,
    device: int | None = None,
    least: int = 1,
) -> Iterator[slice]:
    """Slices of rows small enough for a temporary of ``bytes_per_row`` a row, within the budget of host or device."""
    on_host = is_numpy(reference) or _on_cpu(reference)
    budget = (host or BLOCK_BYTES) if on_host else (device or DEVICE_BLOCK_BYTES)
    size = max(least, min(n_rows, budget // max(1, bytes_per_row)))
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def _on_cpu(X: Array) -> bool:
    return "cuda" not in str(array_api_compat.device(X)).lower()


def smallest_k(values: Array, k: int) -> tuple[Array, Array]:
    """The ``k`` smallest entries of each row, ascending, and their columns.

    The standard has no partial sort, and NumPy's is slow on long rows. So a row is cut into groups: its ``k`` smallest
    entries lie in the ``k`` groups with the smallest minima, and only those are looked at again.
    """
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        found = xp.topk(values, k, dim=1, largest=False, sorted=True)
        return found.values, found.indices
    columns = _candidates(values, k, xp)
    inside = xp.take_along_axis(values, columns, axis=1)
    order = _argpartition(inside, k, xp)
    order = xp.take_along_axis(
        order, xp.argsort(xp.take_along_axis(inside, order, axis=1), axis=1, stable=True), axis=1
    )
    return xp.take_along_axis(inside, order, axis=1), xp.take_along_axis(columns, order, axis=1)


def _candidates(values: Array, k: int, xp: Any) -> Array:
    """Columns of each row among which its ``k`` smallest entries are: those of the ``k`` best groups.

    Group g holds the columns g, g + n_groups, g + 2 n_groups, ..., so that the minima are taken over whole stretches of
    memory; the columns left over at the end are always candidates.
    """
    n_rows, n_columns = values.shape
    width = max(1, int((n_columns / k) ** 0.5))
    n_groups = n_columns // width
    if width < 4 or n_groups <= k:
        return xp.broadcast_to(arange(n_columns, values)[None, :], (n_rows, n_columns))
    inside = xp.reshape(values[:, : n_groups * width], (n_rows, width, n_groups))
    best = _argpartition(xp.min(inside, axis=1), k, xp)
    columns = best[:, :, None] + n_groups * arange(width, values)[None, None, :]
    columns = xp.reshape(columns, (n_rows, k * width))
    rest = xp.broadcast_to(arange(n_columns, values)[None, n_groups * width :], (n_rows, n_columns - n_groups * width))
    return xp.concat([columns, rest], axis=1)


def _argpartition(values: Array, k: int, xp: Any) -> Array:
    """Columns of the ``k`` smallest entries of each row, in no particular order where the library can save that."""
    if array_api_compat.is_numpy_array(values):
        return np.argpartition(values, k - 1, axis=1)[:, :k]
    return xp.argsort(values, axis=1, stable=False)[:, :k]


def sq_norms(vectors: Array) -> Array:
    """Σ_a v_a² over the last axis, without a temporary where the library can save it."""
    xp = namespace(vectors)
    if hasattr(xp, "einsum"):
        return xp.einsum("...a,...a->...", vectors, vectors)
    return xp.sum(vectors * vectors, axis=-1)


def logsumexp(values: Array) -> Array:
    """Log Σ_k exp(values_ik) of every row, without overflow; a row of -inf gives -inf."""
    xp = namespace(values)
    top = xp.max(values, axis=1)
    finite = xp.where(xp.isfinite(top), top, 0)
    return finite + xp.log(xp.sum(xp.exp(values - finite[:, None]), axis=1))


def safe_log(shares: Array) -> Array:
    """The logarithm of nonnegative numbers, that of zero being the smallest normal number's."""
    xp = namespace(shares)
    floor = float(xp.finfo(shares.dtype).smallest_normal)
    return xp.log(xp.where(shares > floor, shares, floor))


def exp_or_zero(values: Array) -> Array:
    """The exponential, 0 where it would be subnormal: processors are many times slower on such numbers."""
    xp = namespace(values)
    floor = math.log(float(xp.finfo(values.dtype).smallest_normal)) + 1
    return xp.where(values > floor, xp.exp(xp.where(values > floor, values, floor)), 0)


def softmax(values: Array) -> Array:
    """Rows of exp(values) scaled to sum to one."""
    xp = namespace(values)
    weights = exp_or_zero(values - xp.max(values, axis=1)[:, None])
    return weights / xp.sum(weights, axis=1)[:, None]


def one_hot(labels: Array, k: int, reference: Array) -> Array:
    """Labels 0..k-1 as rows with a single one, in the dtype and place of ``reference``; a negative label gives none."""
    xp = namespace(reference)
    labels = asarray_like(labels, reference) if is_numpy(labels) and not is_numpy(reference) else labels
    return xp.astype(labels[:, None] == arange(k, reference, dtype=labels.dtype)[None, :], reference.dtype)


def fix_signs(vectors: Array) -> Array:
    """Columns turned so that their entry of largest size is positive: the one sign rule.

    Of several entries as large, up to rounding, the first decides, so that symmetric vectors have a sign too.
    """
    xp = namespace(vectors)
    sizes = xp.abs(vectors)
    large = sizes >= (1 - 1e-4) * xp.max(sizes, axis=0)[None, :]
    top = xp.argmax(xp.astype(large, xp.int8), axis=0)
    signs = xp.sign(xp.take_along_axis(vectors, top[None, :], axis=0))
    return vectors * xp.where(signs == 0, xp.ones_like(signs), signs)
