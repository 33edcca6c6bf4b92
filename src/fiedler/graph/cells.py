"""Cells of nearby rows: the Voronoi cells of a few centres, with the rows sorted by cell.

A search that looks into few cells avoids most pairs of rows. A cell is a slice of the sorted rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, namespace, row_blocks, to_numpy
from ..core.blocks import map_blocks
from ..core.rows import sq_row_norms, take_rows


@dataclass(frozen=True)
class Cells:
    """A partition of the rows into cells, none of them empty; ``order`` and ``starts`` are on the host.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n, d)
        The rows sorted by cell, in their library, dtype and device.
    order : ndarray of shape (n,)
        The index of each sorted row.
    starts : ndarray of shape (n_cells + 1,)
        Cell g is ``rows[starts[g]:starts[g + 1]]``.
    """

    rows: Array
    order: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def slice(self, cell: int) -> slice:
        """Return where a cell lies among the sorted rows."""
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))


def split_into_cells(X: Array, n_cells: int, *, labels: np.ndarray | None = None) -> Cells:
    """Partition rows by the nearest of ``n_cells`` rows drawn at random, always the same ones.

    A cell of more than twice the mean size is cut into several. Rows of a cell are sorted by ``labels`` before that.
    """
    n = X.shape[0]
    pivots = np.sort(np.random.RandomState(0).permutation(n)[:n_cells])
    nearest = nearest_centers(X, take_rows(X, pivots))
    order = np.argsort(nearest, kind="stable") if labels is None else np.lexsort((labels, nearest))
    sizes = np.bincount(nearest)
    n_pieces = -(-sizes // max(1, -(-2 * n // n_cells)))
    piece = np.arange(n_pieces.sum()) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    sizes, n_pieces = np.repeat(sizes, n_pieces), np.repeat(n_pieces, n_pieces)
    sizes = (piece + 1) * sizes // n_pieces - piece * sizes // n_pieces
    return Cells(take_rows(X, order), order, np.concatenate([[0], np.cumsum(sizes)]))


def nearest_centers(X: Array, centers: Array) -> np.ndarray:
    """Return the index of the nearest centre of every row, on the host, up to rounding in the precision of ``X``."""
    is_sparse = sp.issparse(X)
    shift = 0 if is_sparse else namespace(X).mean(centers, axis=0)  # near the origin fewer digits cancel
    centers = centers - shift if not is_sparse else centers
    half_sq_norms = 0.5 * sq_row_norms(centers)
    xp = namespace(half_sq_norms)

    def assign(rows: slice) -> np.ndarray:
        products = (X[rows] @ centers.T).toarray() if is_sparse else (X[rows, :] - shift) @ centers.T
        return to_numpy(xp.argmin(half_sq_norms[None, :] - products, axis=1))

    return np.concatenate(map_blocks(assign, row_blocks(X.shape[0], 24 * centers.shape[0], X), X))
