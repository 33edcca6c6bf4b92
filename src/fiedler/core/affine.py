"""Affine maps of many rows by one matrix product, on tensor cores where these are fast enough.

A row x becomes [x, 1], so that A x + b is the product with [A, b]: no further pass over the images adds the offsets.

The tensor cores of data-centre GPUs multiply 16-bit numbers more than ten times as fast as their other units multiply
single precision. A single-precision number is the sum of three bfloat16 numbers, of eight bits each (unless it is so
small that the last part vanishes), and the six largest of the nine products of their parts suffice:

    x y  ≈  x₁y₁ + x₁y₂ + x₂y₁ + x₂y₂ + x₁y₃ + x₃y₁

The parts stand side by side, so that it is still one product, with an inner dimension six times as large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import array_api_compat

from .backend import Array, is_on_host, namespace

ALIGNED_COLUMNS = 8  # products on accelerators are faster if the number of columns is a multiple of it
LEFT_PARTS, RIGHT_PARTS = (0, 0, 1, 1, 0, 2), (0, 1, 0, 1, 2, 0)  # which parts of x and y are multiplied
TENSOR_CORE_CAPABILITIES = ((8, 0), (9, 0), (10, 0))  # compute capabilities of A100, H100 and H200, B200


def prepare_rows(Z: Array) -> Array:
    """Return rows of shape (b, d) in the form that the functions of `affine_map` expect."""
    rows = _with_ones(Z)
    return _parts(rows, RIGHT_PARTS) if _uses_tensor_cores(Z) else rows


def affine_map(matrix: Array, offsets: Array) -> Callable[[Array], Array]:
    """Return the function from prepared rows to ``matrix @ rows.T + offsets``, shape (m, b).

    Parameters
    ----------
    matrix : array of shape (m, d)
    offsets : array of shape (m,)
    """
    xp, left = namespace(matrix), _with_ones(matrix)
    left[:, matrix.shape[1]] = offsets
    if not _uses_tensor_cores(matrix):
        return lambda rows: left @ rows.T
    parts = _parts(left, LEFT_PARTS)
    return lambda rows: xp.mm(parts, rows.T, out_dtype=xp.float32)


def _with_ones(Z: Array) -> Array:
    """Append a column of ones and, on accelerators, zeros up to a multiple of `ALIGNED_COLUMNS`."""
    xp, (b, d) = namespace(Z), Z.shape
    width = 1 if is_on_host(Z) else 1 + -(d + 1) % ALIGNED_COLUMNS
    last = xp.eye(1, width, dtype=Z.dtype, device=array_api_compat.device(Z))
    return xp.concat([Z, xp.broadcast_to(last, (b, width))], axis=1)


def _parts(rows: Array, order: tuple[int, ...]) -> Array:
    """Split every entry of torch rows into three bfloat16 numbers and return their columns in this order."""
    xp = namespace(rows)
    first = xp.astype(rows, xp.bfloat16)
    rest = rows - first
    second = xp.astype(rest, xp.bfloat16)
    parts = (first, second, xp.astype(rest - second, xp.bfloat16))
    return xp.concat([parts[p] for p in order], axis=1)


def prepared_bytes(n_columns: int) -> int:
    """Return the size of the temporaries and the result of `prepare_rows` for one row, in bytes, at most."""
    return 4 * 10 * (n_columns + ALIGNED_COLUMNS)


def _uses_tensor_cores(Z: Array) -> bool:
    """Whether rows are multiplied as bfloat16 parts: single-precision torch arrays on a suitable GPU."""
    if not array_api_compat.is_torch_array(Z) or is_on_host(Z) or Z.dtype != namespace(Z).float32:
        return False
    return _has_fast_tensor_cores(Z.device)


@cache
def _has_fast_tensor_cores(device: Any) -> bool:
    """Whether six products of bfloat16 matrices are faster than one in single precision on a torch device.

    Their sum must have single precision, which torch has offered since version 2.8.
    """
    import torch

    has_sums = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 8)
    if not has_sums or device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) in TENSOR_CORE_CAPABILITIES
