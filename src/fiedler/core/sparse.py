"""Sparse matrices behind one door: SciPy, torch CSR and CuPy CSR, since the array standard has no sparse type.

A back end without sparse matrices (array-api-strict, say) keeps its graph in SciPy and multiplies through the host.
Index arrays are int32 wherever the sizes allow it: half the memory, and some libraries take nothing else.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from .backend import Array, arange, asarray_like, is_numpy, itemsize, namespace, to_numpy
from .blocks import map_blocks

THREADED_FROM = 2**22  # multiplications, below which starting threads costs more than they save

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
    """Whether ``S`` is a sparse matrix of any library we know."""
    return sp.issparse(S) or is_torch_csr(S) or is_cupy_sparse(S)


def csr(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Sparse:
    """A CSR matrix from its pieces, in the library of ``data`` or, if that has none, in SciPy."""
    fits = max(int(data.shape[0]), *shape) < 2**31
    if array_api_compat.is_torch_array(data):
        import torch

        index = torch.int32 if fits else torch.int64
        with _quiet():
            return torch.sparse_csr_tensor(
                indptr.to(index), indices.to(index), data, size=shape, check_invariants=False
            )
    if array_api_compat.is_cupy_array(data):
        import cupyx.scipy.sparse as csp

        return csp.csr_matrix((data, indices.astype("int32"), indptr.astype("int32")), shape=shape)
    index = np.int32 if fits else np.int64
    csr_parts = (
        to_numpy(data),
        to_numpy(indices).astype(index, copy=False),
        to_numpy(indptr).astype(index, copy=False),
    )
    return sp.csr_array(csr_parts, shape=shape)


@contextmanager
def _quiet() -> Iterator[None]:
    """No word from torch about its "beta" CSR layout and unchecked tensors: ours are built from checked parts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*[Ss]parse", category=UserWarning)
        yield


def csr_parts(S: Sparse) -> tuple[Array, Array, Array]:
    """``data, indices, indptr`` of a CSR matrix."""
    if is_torch_csr(S):
        return S.values(), S.col_indices(), S.crow_indices()
    return S.data, S.indices, S.indptr


def row_indices(S: Sparse) -> Array:
    """The row of every stored entry."""
    _, indices, indptr = csr_parts(S)
    xp = namespace(indices)
    counts = indptr[1:] - indptr[:-1]
    if array_api_compat.is_cupy_array(indices):  # CuPy's repeat takes counts from the host only
        marks = xp.searchsorted(indptr, arange(indices.shape[0], indices), side="right")
        return xp.astype(marks - 1, indices.dtype)
    return xp.repeat(arange(S.shape[0], indices, dtype=indices.dtype), counts)


def from_coo(rows: Array, columns: Array, data: Array, shape: tuple[int, int]) -> Sparse:
    """A CSR matrix from triplets: repeated positions are added up, zeros that come out of it stay stored."""
    if array_api_compat.is_torch_array(data):
        import torch

        positions = torch.stack([rows.to(torch.int64), columns.to(torch.int64)])
        with _quiet():
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
    """The pattern of ``S`` with other values."""
    _, indices, indptr = csr_parts(S)
    return csr(data, indices, indptr, S.shape)


def filter_entries(S: Sparse, mask: Array) -> Sparse:
    """The stored entries of ``S`` where ``mask`` holds."""
    data, indices, _ = csr_parts(S)
    return from_coo(row_indices(S)[mask], indices[mask], data[mask], S.shape)


def scale_rows_columns(S: Sparse, left: Array | None = None, right: Array | None = None) -> Sparse:
    """``diag(left) S diag(right)``."""
    data, indices, _ = csr_parts(S)
    if left is not None:
        data = data * left[row_indices(S)]
    if right is not None:
        data = data * right[indices]
    return with_data(S, data)


def add_diagonal(S: Sparse, diagonal: Array) -> Sparse:
    """``S + diag(diagonal)``, every diagonal entry stored."""
    data, indices, _ = csr_parts(S)
    xp = namespace(data)
    if is_numpy(data):
        return _int32(S + sp.diags_array(diagonal, format="csr", dtype=data.dtype))
    nodes = arange(S.shape[0], indices, dtype=indices.dtype)
    rows, columns = xp.concat([row_indices(S), nodes]), xp.concat([indices, nodes])
    return from_coo(rows, columns, xp.concat([data, diagonal]), S.shape)


def diagonal(S: Sparse) -> Array:
    """The diagonal of a matrix."""
    _, indices, _ = csr_parts(S)
    return row_sums(filter_entries(S, row_indices(S) == indices))


def is_nearly_dense(S: Sparse, part: float = 0.5) -> bool:
    """Whether a matrix is sparse in name only: ``part`` of its entries are stored, or more."""
    return csr_parts(S)[0].shape[0] >= part * S.shape[0] * S.shape[1]


def to_dense(S: Sparse) -> Array:
    """The matrix written out."""
    return S.to_dense() if is_torch_csr(S) else S.toarray()


def densify_if_full(S: Sparse) -> Any:
    """The matrix as products are fastest: written out if it is sparse in name only, which also takes less memory."""
    return to_dense(S) if is_nearly_dense(S) else S


def matmul(S: Any, X: Array) -> Array:
    """``S @ X`` for a sparse or dense ``S`` and a dense ``X``; a SciPy matrix meets a foreign array on the host."""
    if sp.issparse(S) and not is_numpy(X):
        return asarray_like(S @ to_numpy(X), X, dtype=X.dtype)
    if is_sparse(S) and not sp.issparse(S):
        home = csr_parts(S)[0]
        if is_numpy(X) or namespace(X) is not namespace(home) or X.dtype != home.dtype:
            here, there = (f"{array.dtype} on {type(array).__module__}" for array in (home, X))
            raise ValueError(f"the operator is {here}, the array {there}; bring both to one library and precision")
    if sp.issparse(S) and S.format == "csr" and X.ndim == 2 and S.nnz * X.shape[1] > THREADED_FROM:
        return _threaded(S, X)
    return S @ X


def _threaded(S: sp.csr_array, X: np.ndarray) -> np.ndarray:
    """The product by blocks of rows; SciPy lets go of the interpreter while it multiplies."""

    def product(rows: slice) -> np.ndarray:
        first, last = S.indptr[rows.start], S.indptr[rows.stop]
        part = (S.data[first:last], S.indices[first:last], S.indptr[rows.start : rows.stop + 1] - first)
        return sp.csr_array(part, shape=(rows.stop - rows.start, S.shape[1])) @ X

    width = -(-S.shape[0] // 16)
    blocks = (slice(start, min(start + width, S.shape[0])) for start in range(0, S.shape[0], width))
    return np.concatenate(map_blocks(product, blocks, X))


def reorder_for_locality(S: sp.csr_array) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """A symmetric matrix renumbered so that neighbours are near each other, the old number of each new row, the new
    number of each old one.

    Products with a sparse matrix wait for memory. In this order (reverse Cuthill-McKee, the time of about one product)
    they take half as long at 10,000 rows and a quarter at a million.
    """
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    matrix = S[order][:, order]
    matrix.sort_indices()
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    return matrix, order, place


def row_sums(S: Sparse, reference: Array | None = None) -> Array:
    """The sums of the rows, beside ``reference`` (default: where the matrix lives)."""
    data = csr_parts(S)[0] if reference is None else reference
    xp = namespace(data)
    device = array_api_compat.device(data)
    return matmul(S, xp.ones((S.shape[1], 1), dtype=data.dtype, device=device))[:, 0]


def to_scipy(S: Sparse) -> sp.csr_array:
    """The matrix on the host, as SciPy CSR."""
    if sp.issparse(S):
        host = sp.csr_array(S)
        if not host.has_canonical_format:
            host = host.copy()
            host.sum_duplicates()
        return _int32(host)
    data, indices, indptr = (to_numpy(piece) for piece in csr_parts(S))
    return _int32(sp.csr_array((data, indices, indptr), shape=S.shape))


def from_scipy(S: sp.csr_array, reference: Array) -> Sparse:
    """A SciPy matrix moved to the library and device of ``reference``."""
    return csr(
        asarray_like(S.data, reference), asarray_like(S.indices, reference), asarray_like(S.indptr, reference), S.shape
    )


def from_scipy_like(S: Any, reference: Array) -> Sparse:
    """A SciPy matrix moved to the library and device of ``reference``, in its precision."""
    return from_scipy(to_scipy(S.astype(np.float32 if itemsize(reference) == 4 else np.float64)), reference)


def _int32(S: sp.csr_array) -> sp.csr_array:
    return csr(S.data, S.indices, S.indptr, S.shape)
