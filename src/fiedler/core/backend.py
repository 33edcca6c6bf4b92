"""Access to array libraries: the namespace of an array, and a few operations that the array API standard lacks.

Dense code is written against the array API standard, which `array_api_compat` provides for NumPy, torch and CuPy.
Random numbers are drawn by NumPy and then moved to the device, so that a seed gives the same numbers everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from array_api_compat import numpy as numpy_namespace

from .._typing import Array as Array
from .._validation import is_sparse_tensor
from ..errors import InputTypeError

BLOCK_BYTES = 64 * 2**20  # size of the temporaries of a blocked computation on the host
DEVICE_BLOCK_BYTES = 2 * 2**30  # the same on an accelerator, which smaller blocks would leave idle
ALIGNMENT = 64  # large blocks on an accelerator have a multiple of it: products of unaligned matrices are slower
SIGN_TIE = 1e-4  # entries of a vector within this relative distance of the largest are considered equal to it


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace shared by ``arrays``; SciPy sparse matrices count as NumPy."""
    if all(type(a) is np.ndarray for a in arrays):  # at once, as this is called for every block of rows
        return numpy_namespace
    dense = [a for a in arrays if not sp.issparse(a)]
    return array_api_compat.array_namespace(*dense) if dense else numpy_namespace


def is_numpy(X: Array) -> bool:
    """Whether ``X`` is a NumPy array or a SciPy sparse matrix."""
    return sp.issparse(X) or array_api_compat.is_numpy_array(X)


def is_on_host(X: Array) -> bool:
    """Whether an array is in the memory of the host."""
    return is_numpy(X) or "cpu" in str(array_api_compat.device(X)).lower()


def to_numpy(X: Array) -> np.ndarray:
    """Return ``X`` as a NumPy array, copied from the device if necessary."""
    if array_api_compat.is_torch_array(X):
        if is_sparse_tensor(X):
            raise InputTypeError("a sparse tensor is given", "pass a dense one, by .to_dense()", code="sparse_tensor")
        return X.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(X):
        return X.get()
    return np.asarray(X)


def asarray_like(values: Any, reference: Array, *, dtype: Any = None) -> Array:
    """Convert host data to an array of the library of ``reference``, on its device; ``dtype`` is not taken from it."""
    xp = namespace(reference)
    if sp.issparse(reference):
        return xp.asarray(values, dtype=dtype)
    if array_api_compat.is_torch_array(reference) or array_api_compat.is_cupy_array(reference):
        values = np.ascontiguousarray(values)
    return xp.asarray(values, dtype=dtype, device=array_api_compat.device(reference))


def convert_like(X: Array, reference: Array) -> Array:
    """Convert ``X`` to the container of ``reference``: dense or CSR, its library, device and dtype."""
    if sp.issparse(reference):
        return sp.csr_array(X if sp.issparse(X) else to_numpy(X), dtype=reference.dtype)
    dense = X.toarray() if sp.issparse(X) else X
    if is_numpy(reference):
        return to_numpy(dense).astype(reference.dtype, copy=False)
    xp = namespace(reference)
    if not is_numpy(dense) and namespace(dense) is xp:
        return xp.astype(dense, reference.dtype)
    return asarray_like(dense, reference, dtype=reference.dtype)


def arange(n: int, reference: Array, *, dtype: Any = None) -> Array:
    """Return the integers 0 .. n-1 in the library and on the device of ``reference``."""
    xp = namespace(reference)
    device = None if sp.issparse(reference) else array_api_compat.device(reference)
    return xp.arange(n, dtype=dtype or xp.int64, device=device)


def identity(matrices: Array) -> Array:
    """Return the (d, d) identity in the dtype and on the device of (..., d, d) matrices."""
    xp = namespace(matrices)
    return xp.eye(matrices.shape[-1], dtype=matrices.dtype, device=array_api_compat.device(matrices))


def standard_normal(shape: tuple[int, ...], rng: np.random.RandomState, reference: Array) -> Array:
    """Draw standard normal numbers on the host, so that a seed gives the same ones on every back end."""
    return asarray_like(rng.standard_normal(shape), reference, dtype=reference.dtype)


def eps(X: Array) -> float:
    """Return the machine epsilon of the dtype of ``X``."""
    return float(namespace(X).finfo(X.dtype).eps)


def itemsize(X: Array) -> int:
    """Return the number of bytes of one (floating-point) entry of ``X``."""
    return int(namespace(X).finfo(X.dtype).bits) // 8


def row_blocks(
    n_rows: int,
    bytes_per_row: int,
    reference: Array,
    *,
    host_bytes: int | None = None,
    device_bytes: int | None = None,
    min_rows: int = 1,
) -> Iterator[slice]:
    """Return slices of rows whose temporaries, of ``bytes_per_row`` each, fit into a block of memory.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    bytes_per_row : int
        Size of the temporaries of one row.
    reference : array
        Decides between the host and the device.
    host_bytes, device_bytes : int, optional
        Size of a block; default ``BLOCK_BYTES`` and ``DEVICE_BLOCK_BYTES``.
    min_rows : int, default=1
        The minimum number of rows of a slice.
    """
    on_host = is_on_host(reference)
    budget = (host_bytes or BLOCK_BYTES) if on_host else (device_bytes or DEVICE_BLOCK_BYTES)
    size = min(n_rows, budget // max(1, bytes_per_row))
    if not on_host and ALIGNMENT < size < n_rows:
        size -= size % ALIGNMENT
    size = max(min_rows, size)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def smallest_k(values: Array, k: int) -> tuple[Array, Array]:
    """Return the ``k`` smallest entries of each row, ascending, and their columns.

    The standard has no partial sort, and NumPy's is slow on long rows. So the columns are divided into groups: the
    ``k`` smallest entries of a row lie in the ``k`` groups with the smallest minima, and only those are searched.
    """
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        smallest = xp.topk(values, k, dim=1, largest=False, sorted=True)
        return smallest.values, smallest.indices
    if _sorts_whole_rows(values):
        return _smallest_by_keys(values, k, xp)
    columns = _candidate_columns(values, k, xp)
    candidates = xp.take_along_axis(values, columns, axis=1)
    order = _argpartition(candidates, k, xp)
    ascending = xp.argsort(xp.take_along_axis(candidates, order, axis=1), axis=1, stable=True)
    order = xp.take_along_axis(order, ascending, axis=1)
    return xp.take_along_axis(candidates, order, axis=1), xp.take_along_axis(columns, order, axis=1)


def _smallest_by_keys(values: Array, k: int, xp: Any) -> tuple[Array, Array]:
    """Return the ``k`` smallest entries of each row and their columns, from integers that contain both; no NaN."""
    columns = _candidate_columns(values, k, xp)
    keys = _pack(xp.take_along_axis(values, columns, axis=1), columns, xp)
    keys = xp.sort(xp.partition(keys, k - 1, axis=1)[:, :k], axis=1)
    bits = xp.astype(keys >> 32, xp.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(xp.float32), keys & 0xFFFFFFFF


def _sorts_whole_rows(values: Array) -> bool:
    """Whether ``argpartition`` sorts whole rows, but ``partition`` does not: in CuPy, for keys of 32 bits."""
    return array_api_compat.is_cupy_array(values) and values.dtype == namespace(values).float32


def _pack(values: Array, columns: Array, xp: Any) -> Array:
    """Return integers ordered like ``values``, single-precision floats, whose lower half is the column.

    The bits of positive floats are ordered like the floats, those of negative ones the other way round.
    """
    bits = values.view(xp.int32)
    return (xp.astype(bits ^ ((bits >> 31) & 0x7FFFFFFF), xp.int64) << 32) | columns


def _candidate_columns(values: Array, k: int, xp: Any) -> Array:
    """Return columns of each row that include its ``k`` smallest entries: those of the ``k`` best groups.

    Group g consists of the columns g, g + n_groups, g + 2 n_groups, ..., so that minima are taken over contiguous
    memory; the columns left over at the end are always candidates.
    """
    n_rows, n_columns = values.shape
    width = max(1, int((n_columns / k) ** 0.5))
    n_groups = n_columns // width
    if width < 4 or n_groups <= k:
        return xp.broadcast_to(arange(n_columns, values)[None, :], (n_rows, n_columns))
    grouped = xp.reshape(values[:, : n_groups * width], (n_rows, width, n_groups))
    best = _argpartition(xp.min(grouped, axis=1), k, xp)
    columns = best[:, :, None] + n_groups * arange(width, values)[None, None, :]
    columns = xp.reshape(columns, (n_rows, k * width))
    n_left = n_columns - n_groups * width
    left_over = xp.broadcast_to(arange(n_columns, values)[None, n_groups * width :], (n_rows, n_left))
    return xp.concat([columns, left_over], axis=1)


def _argpartition(values: Array, k: int, xp: Any) -> Array:
    """Return the columns of the ``k`` smallest entries of each row, in any order."""
    if _sorts_whole_rows(values):
        return xp.partition(_pack(values, arange(values.shape[1], values), xp), k - 1, axis=1)[:, :k] & 0xFFFFFFFF
    if array_api_compat.is_numpy_array(values) or array_api_compat.is_cupy_array(values):
        return xp.argpartition(values, k - 1, axis=1)[:, :k]
    return xp.argsort(values, axis=1, stable=False)[:, :k]


def sq_norms(vectors: Array) -> Array:
    """Return Σ_a v_kab² of (k, d, b) vectors, shape (k, b), in one pass.

    On accelerators ``einsum`` becomes a batch of tiny products, twenty times slower than a norm along axis 1.
    """
    if is_on_host(vectors):
        host = to_numpy(vectors)
        return asarray_like(np.einsum("kab,kab->kb", host, host), vectors)
    return namespace(vectors).linalg.vector_norm(vectors, axis=1) ** 2


def outer_rows(w: Array, Z: Array) -> Array:
    """Compute w_ik z_ia, shape (n, k, d), from arrays of shape (n, k) and (n, d).

    torch's time on an accelerator depends on the number of entries, not on their size: it is faster with half as many
    complex numbers, each a pair of columns.
    """
    xp, (n, d) = namespace(Z), Z.shape
    if not array_api_compat.is_torch_array(Z) or is_on_host(Z) or Z.dtype != xp.float32 or d % 2:
        return w[:, :, None] * Z[:, None, :]
    pairs = xp.view_as_complex(xp.reshape(Z, (n, d // 2, 2)).contiguous())
    weighted = xp.astype(w, xp.complex64)[:, :, None] * pairs[:, None, :]
    return xp.reshape(xp.view_as_real(weighted), (n, -1, d))


def logsumexp(values: Array) -> Array:
    """Return log Σ_k exp(values_ik) of every row, without overflow; a row of -inf gives -inf."""
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        return xp.logsumexp(values, dim=1)  # a single pass
    top = xp.max(values, axis=1)
    finite = xp.where(xp.isfinite(top), top, 0)
    return finite + xp.log(xp.sum(xp.exp(values - finite[:, None]), axis=1))


def safe_log(values: Array) -> Array:
    """Return the logarithm of non-negative numbers; zero is replaced by the smallest normal number."""
    xp = namespace(values)
    smallest = float(xp.finfo(values.dtype).smallest_normal)
    return xp.log(xp.where(values > smallest, values, smallest))


def exp_or_zero(values: Array) -> Array:
    """Return the exponential, or 0 where it would be subnormal: processors are many times slower on such numbers."""
    xp = namespace(values)
    lowest = math.log(float(xp.finfo(values.dtype).smallest_normal)) + 1
    return xp.where(values > lowest, xp.exp(xp.where(values > lowest, values, lowest)), 0)


def softmax(values: Array) -> Array:
    """Return exp(values) with every row scaled to sum to one."""
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        return xp.softmax(values, dim=1)  # a single pass
    weights = exp_or_zero(values - xp.max(values, axis=1)[:, None])
    return weights / xp.sum(weights, axis=1)[:, None]


def positive_part(A: Array) -> Array:
    """Return max(a, 0) of every entry."""
    return namespace(A).where(A > 0, A, 0)


def one_hot(labels: Array, k: int, reference: Array) -> Array:
    """One-hot encode labels 0..k-1 in the dtype and on the device of ``reference``; a negative label gives zeros."""
    xp = namespace(reference)
    labels = asarray_like(labels, reference) if is_numpy(labels) and not is_numpy(reference) else labels
    return xp.astype(labels[:, None] == arange(k, reference, dtype=labels.dtype)[None, :], reference.dtype)


def fix_signs(vectors: Array) -> Array:
    """Flip columns so that their entry with the largest magnitude is positive.

    If several entries are equally large up to rounding, the first decides, so that symmetric vectors have a sign too.
    """
    xp = namespace(vectors)
    magnitudes = xp.abs(vectors)
    is_largest = magnitudes >= (1 - SIGN_TIE) * xp.max(magnitudes, axis=0)[None, :]
    first = xp.argmax(xp.astype(is_largest, xp.int8), axis=0)
    signs = xp.sign(xp.take_along_axis(vectors, first[None, :], axis=0))
    return vectors * xp.where(signs == 0, xp.ones_like(signs), signs)
