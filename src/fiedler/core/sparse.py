"""Sparse matrices of SciPy, torch and CuPy in one interface, since the array API standard has no sparse type.

For a back end without sparse matrices (such as array-api-strict) they stay in SciPy and are multiplied on the host.
Index arrays are int32 if the shape allows it: half the memory, and some libraries accept nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from .._foreign_warnings import ignore_foreign_warnings
from ..errors import InputError
from .arrays import Array, arange, asarray_like, is_numpy, itemsize, namespace, to_numpy
from .parallel import map_blocks

MIN_THREADED_MULTIPLICATIONS = 2**26  # of a product; starting threads for smaller ones costs more than it saves
N_THREADED_BLOCKS = 16  # blocks of rows of a threaded product

Sparse = Any  # scipy.sparse.csr_array, torch.sparse_csr tensor or cupyx csr_matrix


def is_torch_csr(S: object) -> bool:
    """Whether ``S`` is a torch tensor in CSR layout."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(S, torch.Tensor) and S.layout == torch.sparse_csr


def is_cupy_sparse(S: object) -> bool:
    """Whether ``S`` is a sparse matrix of CuPy."""
    cupyx_sparse = sys.modules.get("cupyx.scipy.sparse")
    return cupyx_sparse is not None and bool(cupyx_sparse.issparse(S))


def is_sparse(S: object) -> bool:
    """Whether ``S`` is a sparse matrix of SciPy, torch or CuPy."""
    return sp.issparse(S) or is_torch_csr(S) or is_cupy_sparse(S)


def csr(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Sparse:
    """Build a CSR matrix from its three arrays, in the library of ``data`` or, if that has no sparse type, in SciPy."""
    fits_int32 = max(int(data.shape[0]), *shape) < 2**31
    if array_api_compat.is_torch_array(data):
        import torch

        index_dtype = torch.int32 if fits_int32 else torch.int64
        with ignore_foreign_warnings():
            return torch.sparse_csr_tensor(
                indptr.to(index_dtype), indices.to(index_dtype), data, size=shape, check_invariants=False
            )
    if array_api_compat.is_cupy_array(data):
        import cupyx.scipy.sparse as csp

        return csp.csr_matrix((data, indices.astype("int32"), indptr.astype("int32")), shape=shape)
    host_dtype = np.int32 if fits_int32 else np.int64
    indices, indptr = (to_numpy(array).astype(host_dtype, copy=False) for array in (indices, indptr))
    return sp.csr_array((to_numpy(data), indices, indptr), shape=shape)


def checked_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, ...]) -> sp.csr_array:
    """Build a CSR matrix from untrusted arrays, such as those of a file; ValueError if they do not fit together."""
    parts = (data, indices, indptr)
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts) or data.dtype.kind not in "biuf":
        raise ValueError("the parts of a sparse matrix are not arrays of numbers with one axis")
    if len(shape) != 2 or not all(0 <= size < 2**63 for size in shape) or len(indptr) != shape[0] + 1:
        raise ValueError(f"a sparse matrix has the shape {shape}, but {len(indptr) - 1} rows")
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64) or len(data) != len(indices):
        raise ValueError("the indices of a sparse matrix have a wrong type or length")
    is_ascending = indptr[0] == 0 and indptr[-1] == len(indices) and bool((indptr[1:] >= indptr[:-1]).all())
    if not is_ascending or (len(indices) and (indices.min() < 0 or indices.max() >= shape[1])):
        raise ValueError("an index of a sparse matrix is out of bounds")
    return sp.csr_array(parts, shape=shape)


def csr_parts(S: Sparse) -> tuple[Array, Array, Array]:
    """Return the arrays ``data, indices, indptr`` of a CSR matrix."""
    if is_torch_csr(S):
        return S.values(), S.col_indices(), S.crow_indices()
    return S.data, S.indices, S.indptr


def row_entries(S: Sparse, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and the values of the stored entries of a row, on the host."""
    data, indices, indptr = csr_parts(S)
    start, stop = (int(bound) for bound in indptr[row : row + 2])
    return to_numpy(indices[start:stop]), to_numpy(data[start:stop])


def row_indices(S: Sparse) -> Array:
    """Return the row of every stored entry."""
    _, indices, indptr = csr_parts(S)
    xp = namespace(indices)
    counts = indptr[1:] - indptr[:-1]
    if array_api_compat.is_cupy_array(indices):  # CuPy's repeat accepts counts only from the host
        next_rows = xp.searchsorted(indptr, arange(indices.shape[0], indices), side="right")
        return xp.astype(next_rows - 1, indices.dtype)
    return xp.repeat(arange(S.shape[0], indices, dtype=indices.dtype), counts)


def from_coo(rows: Array, columns: Array, data: Array, shape: tuple[int, int]) -> Sparse:
    """Build a CSR matrix from triplets; repeated positions are summed, and sums of zero stay stored."""
    if array_api_compat.is_torch_array(data):
        import torch

        positions = torch.stack([rows.to(torch.int64), columns.to(torch.int64)])
        with ignore_foreign_warnings():
            summed = torch.sparse_coo_tensor(positions, data, size=shape, check_invariants=False).coalesce()
        row, column = summed.indices()
        counts = torch.bincount(row, minlength=shape[0])
        indptr = torch.nn.functional.pad(torch.cumsum(counts, 0), (1, 0))
        return csr(summed.values(), column, indptr, shape)
    if array_api_compat.is_cupy_array(data):
        import cupyx.scipy.sparse as csp

        matrix = csp.coo_matrix((data, (rows.astype("int32"), columns.astype("int32"))), shape=shape)
        matrix.sum_duplicates()
        return matrix.tocsr()
    matrix = sp.coo_array((to_numpy(data), (to_numpy(rows), to_numpy(columns))), shape=shape).tocsr()
    matrix.sum_duplicates()
    return csr(matrix.data, matrix.indices, matrix.indptr, shape)


def with_data(S: Sparse, data: Array) -> Sparse:
    """Replace the stored values of ``S``."""
    _, indices, indptr = csr_parts(S)
    return csr(data, indices, indptr, S.shape)


def filter_entries(S: Sparse, mask: Array) -> Sparse:
    """Keep the stored entries of ``S`` at which ``mask`` is true."""
    data, indices, _ = csr_parts(S)
    return from_coo(row_indices(S)[mask], indices[mask], data[mask], S.shape)


def scale_rows_columns(S: Sparse, left: Array | None = None, right: Array | None = None) -> Sparse:
    """Return ``diag(left) S diag(right)``."""
    data, indices, _ = csr_parts(S)
    if left is not None:
        data = data * left[row_indices(S)]
    if right is not None:
        data = data * right[indices]
    return with_data(S, data)


def add_diagonal(S: Sparse, diagonal: Array) -> Sparse:
    """Return ``S + diag(diagonal)`` with every diagonal entry stored."""
    data, indices, _ = csr_parts(S)
    xp = namespace(data)
    if is_numpy(data):
        return _int32(S + sp.diags_array(diagonal, format="csr", dtype=data.dtype))
    nodes = arange(S.shape[0], indices, dtype=indices.dtype)
    rows, columns = xp.concat([row_indices(S), nodes]), xp.concat([indices, nodes])
    return from_coo(rows, columns, xp.concat([data, diagonal]), S.shape)


def diagonal(S: Sparse) -> Array:
    """Return the diagonal of a matrix."""
    _, indices, _ = csr_parts(S)
    return row_sums(filter_entries(S, row_indices(S) == indices))


def is_nearly_dense(S: Sparse, min_density: float = 0.5) -> bool:
    """Whether the share of stored entries is at least ``min_density``."""
    return csr_parts(S)[0].shape[0] >= min_density * S.shape[0] * S.shape[1]


def to_dense(S: Sparse) -> Array:
    """Convert to a dense array of the same library."""
    return S.to_dense() if is_torch_csr(S) else S.toarray()


def densify_if_full(S: Sparse) -> Any:
    """Convert a nearly dense matrix to a dense array: products are faster and it takes less memory."""
    return to_dense(S) if is_nearly_dense(S) else S


def matmul(S: Any, X: Array) -> Array:
    """Return ``S @ X`` for a sparse or dense ``S`` and a dense ``X``, on the host if only ``S`` is of SciPy."""
    if sp.issparse(S) and not is_numpy(X):
        return asarray_like(S @ to_numpy(X), X, dtype=X.dtype)
    if is_sparse(S) and not sp.issparse(S):
        data = csr_parts(S)[0]
        if is_numpy(X) or namespace(X) is not namespace(data) or X.dtype != data.dtype:
            S_type, X_type = (f"{array.dtype} of {type(array).__module__}" for array in (data, X))
            problem = f"the sparse matrix is {S_type}, but the array is {X_type}"
            hint = "convert both to one library and one dtype"
            raise InputError(problem, hint, code="mixed_libraries", matrix=S_type, array=X_type)
    if sp.issparse(S) and S.format == "csr" and X.ndim == 2 and S.nnz * X.shape[1] > MIN_THREADED_MULTIPLICATIONS:
        return _threaded_matmul(S, X)
    return S @ X


def _threaded_matmul(S: sp.csr_array, X: np.ndarray) -> np.ndarray:
    """Multiply by blocks of rows in threads; SciPy releases the interpreter lock while it multiplies."""

    def product(rows: slice) -> np.ndarray:
        first, last = S.indptr[rows.start], S.indptr[rows.stop]
        part = (S.data[first:last], S.indices[first:last], S.indptr[rows.start : rows.stop + 1] - first)
        return sp.csr_array(part, shape=(rows.stop - rows.start, S.shape[1])) @ X

    n_rows = -(-S.shape[0] // N_THREADED_BLOCKS)
    blocks = (slice(start, min(start + n_rows, S.shape[0])) for start in range(0, S.shape[0], n_rows))
    return np.concatenate(map_blocks(product, blocks, X))


def reorder_for_locality(S: sp.csr_array) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Permute a symmetric matrix so that the entries of a row are close to the diagonal (reverse Cuthill-McKee)."""
    # Products, limited by memory access, then take half as long for 10,000 rows and a quarter for a million.
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    matrix = S[order][:, order]
    matrix.sort_indices()
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=order.dtype)
    return matrix, order, position


def row_sums(S: Sparse, reference: Array | None = None) -> Array:
    """Return the sums of the rows, in the library of ``reference`` (default: that of the matrix)."""
    data = csr_parts(S)[0] if reference is None else reference
    xp = namespace(data)
    device = array_api_compat.device(data)
    return matmul(S, xp.ones((S.shape[1], 1), dtype=data.dtype, device=device))[:, 0]


def row_maxima(S: Sparse) -> Array:
    """Return the largest entry of every row, at least 0."""
    if is_torch_csr(S):
        import torch

        data, _, indptr = csr_parts(S)
        return torch.segment_reduce(data, "max", offsets=indptr.to(torch.int64), initial=0)
    return S.max(axis=1).toarray().reshape(-1)


def sum_entries(rows: Array, columns: Array, data: Array, shape: tuple[int, int]) -> Array:
    """Return the dense matrix in which the triplets are summed."""
    if is_numpy(data):
        keys = rows.astype(np.int64, copy=False) * shape[1] + columns
        sums = np.bincount(keys, data, minlength=shape[0] * shape[1])  # integers if there are no entries
        return sums.astype(np.float64, copy=False).reshape(shape)
    return to_dense(from_coo(rows, columns, data, shape))


def to_scipy(S: Sparse) -> sp.csr_array:
    """Convert to SciPy CSR on the host, without repeated entries."""
    if sp.issparse(S):
        host = sp.csr_array(S)
        if not host.has_canonical_format:
            host = host.copy()
            host.sum_duplicates()
        return _int32(host)
    data, indices, indptr = (to_numpy(part) for part in csr_parts(S))
    return _int32(sp.csr_array((data, indices, indptr), shape=S.shape))


def from_scipy(S: sp.csr_array, reference: Array) -> Sparse:
    """Convert a SciPy matrix to the library of ``reference``, on its device, in the dtype of the matrix."""
    return csr(
        asarray_like(S.data, reference), asarray_like(S.indices, reference), asarray_like(S.indptr, reference), S.shape
    )


def from_scipy_like(S: Any, reference: Array) -> Sparse:
    """Convert a SciPy matrix to the library, device and precision of ``reference``."""
    return from_scipy(to_scipy(S.astype(np.float32 if itemsize(reference) == 4 else np.float64)), reference)


def _int32(S: sp.csr_array) -> sp.csr_array:
    """Convert index arrays to int32 if the shape allows it."""
    return csr(S.data, S.indices, S.indptr, S.shape)
