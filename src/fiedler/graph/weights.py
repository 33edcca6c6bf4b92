"""Matrices of weights: what a caller's matrix or one of a file must be to become a graph."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, to_numpy
from ..core.sparse import csr_parts, filter_entries, is_sparse, row_indices, to_scipy
from ..errors import InputError, shown
from .kernels import MAX_SHARE

SYMMETRY_TOLERANCE = 1e-6  # relative to the largest weight; a smaller asymmetry is due to rounding
CHUNK = 2**18  # entries that are compared at a time


def as_host_matrix(W: Any) -> sp.csr_array:
    """Return the non-zero off-diagonal entries of ``W`` as square CSR on the host; float32 is kept."""
    try:
        host = to_scipy(W) if is_sparse(W) else to_numpy(W)
    except (ValueError, TypeError):  # a ragged list, or a sparse tensor in another format than CSR
        raise InputError(
            f"an affinity matrix must have rows of the same length; got {shown(W)}",
            "pass a square array, a SciPy matrix or a tensor in CSR format",
            code="invalid_affinity",
        ) from None
    if host.ndim != 2 or host.dtype.kind not in "fiub":
        raise InputError(
            f"an affinity matrix must be square and numeric; got shape {host.shape}, dtype {host.dtype}",
            code="invalid_affinity",
        )
    if host.shape[0] != host.shape[1] or host.shape[0] == 0:
        raise InputError(
            f"an affinity matrix must be square, with one row per node; got shape {host.shape}", code="invalid_affinity"
        )
    host = sp.csr_array(host, dtype=np.float32 if host.dtype == np.float32 else np.float64)
    return filter_entries(host, (row_indices(host) != host.indices))


def foreign_reference(W: Any) -> Array | None:
    """Return an array that has the library and device of ``W``, or None if these are NumPy's."""
    if is_sparse(W):
        data = csr_parts(W)[0] if hasattr(W, "indptr") or not sp.issparse(W) else None
        return None if data is None or array_api_compat.is_numpy_array(data) else data
    foreign = array_api_compat.is_array_api_obj(W) and not array_api_compat.is_numpy_array(W)
    return W if foreign else None


def check_affinity(W: sp.csr_array, *, signed: bool) -> None:
    """Raise an error unless ``W`` is finite, symmetric, and non-negative or signed."""
    if not np.isfinite(W.data).all():
        raise InputError(
            "the affinity matrix contains NaN or infinity", "remove or fill those entries first", code="not_finite"
        )
    if W.nnz == 0:
        return
    if not _largest(W) <= MAX_SHARE * np.finfo(W.dtype).max:
        raise InputError(
            "the affinity matrix has weights whose sums could overflow",
            "divide it by its largest weight",
            code="weights_overflow",
        )
    if not signed and W.data.min() < 0:
        raise InputError(
            f"the affinity matrix has negative weights (smallest {W.data.min():.3g})",
            "pass signed=True if they mean repulsion, otherwise shift or clip them",
            code="negative_weights",
            smallest=float(W.data.min()),
        )
    asymmetry = abs(W - W.T)
    largest = float(asymmetry.max()) if asymmetry.nnz else 0.0
    if largest > SYMMETRY_TOLERANCE * _largest(W):
        raise InputError(
            f"the affinity matrix is not symmetric (w_ij and w_ji differ by up to {largest:.3g})",
            "symmetrise it first, for example with (W + W.T) / 2",
            code="not_symmetric",
            largest=largest,
        )


def check_stored_weights(W: Any, *, signed: bool) -> None:
    """Raise a ValueError unless a matrix of a file can be the weights of a graph.

    As `check_affinity`, but one more copy of the matrix is all the memory that it needs.
    """
    if not isinstance(W, sp.csr_array) or W.dtype.kind != "f" or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError("the weights of a graph are not a square sparse matrix of floats")
    if not W.has_canonical_format:
        raise ValueError("the weights of a graph are not sorted, or repeated")
    largest = _largest(W)
    if not largest <= MAX_SHARE * np.finfo(W.dtype).max:
        raise ValueError("the weights of a graph are not finite, or their sums could overflow")
    mirrored = W.T.tocsr()
    if not np.array_equal(W.indptr, mirrored.indptr):
        raise ValueError("the weights of a graph are not symmetric")
    for part in _chunks(W.nnz):
        data, columns = W.data[part], W.indices[part]
        if not signed and data.min() < 0:
            raise ValueError("the weights of a graph are negative")
        asymmetry = np.abs(data - mirrored.data[part]).max()
        if not np.array_equal(columns, mirrored.indices[part]) or asymmetry > SYMMETRY_TOLERANCE * largest:
            raise ValueError("the weights of a graph are not symmetric")
        if (np.searchsorted(W.indptr, np.arange(part.start, part.stop), side="right") - 1 == columns).any():
            raise ValueError("a weight joins a node of a graph to itself")


def _largest(W: sp.csr_array) -> float:
    """Return the largest absolute weight, in chunks, without a copy of all."""
    return max((float(np.abs(W.data[part]).max()) for part in _chunks(W.nnz)), default=0.0)


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
