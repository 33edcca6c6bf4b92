"""Cells of nearby rows: the Voronoi cells of a few centres, with the rows sorted by cell.

A search that looks into few cells avoids most pairs of rows. A cell is a slice of the sorted rows, so that two cells
are compared by one product of two slices, on any back end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..core.arrays import (
    Array,
    asarray_like,
    itemsize,
    namespace,
    row_blocks,
    smallest_k,
    sq_row_norms,
    take_rows,
    to_numpy,
)
from ..core.fitting import stage
from ..core.parallel import map_blocks

MAX_RELATIVE_SIZE = 4  # a cell with more rows, relative to the mean, is cut into several
SEED = 1  # not that of a sample on which the recall is measured: a row at the centre of its cell is easier
TRAINING_ROWS = 48  # rows per cell on which centres are moved


@dataclass(frozen=True)
class Cells:
    """A partition of the rows into cells, none of them empty; ``order`` and ``starts`` are on the host.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n, d)
        The rows sorted by cell, in their library, dtype and device.
    centers : array or CSR matrix of shape (n_cells, d)
        The point that is the nearest centre of all rows of the cell.
    order : ndarray of shape (n,)
        The index of each sorted row.
    starts : ndarray of shape (n_cells + 1,)
        Cell g is ``rows[starts[g]:starts[g + 1]]``.
    """

    rows: Array
    centers: Array
    order: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def slice(self, cell: int) -> slice:
        """Return where a cell lies among the sorted rows."""
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    def of_rows(self) -> np.ndarray:
        """Return the cell of every row, in the order in which the rows were given."""
        cells = np.empty(len(self.order), dtype=np.int64)
        cells[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return cells


def split_into_cells(X: Array, n_cells: int, *, n_iter: int = 0, labels: np.ndarray | None = None) -> Cells:
    """Partition rows by the nearest of ``n_cells`` centres: rows drawn at random, always the same ones.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    n_cells : int
        The number of centres.
    n_iter : int, default=0
        Number of k-means iterations on a sample of the rows, which must be dense.
    labels : ndarray of shape (n,), optional
        Order of the rows within a cell.
    """
    n = X.shape[0]
    shuffled = np.random.RandomState(SEED).permutation(n)
    centers = take_rows(X, np.sort(shuffled[:n_cells]))
    sample = take_rows(X, np.sort(shuffled[: TRAINING_ROWS * n_cells])) if n_iter else None
    for _ in range(n_iter):
        centers = _means(sample, nearest_centers(sample, centers), centers)
    nearest = nearest_centers(X, centers)
    order = np.argsort(nearest, kind="stable") if labels is None else np.lexsort((labels, nearest))
    sizes = np.bincount(nearest, minlength=n_cells)
    cell, sizes = _cut(sizes, max(1, MAX_RELATIVE_SIZE * n // n_cells))
    return Cells(take_rows(X, order), take_rows(centers, cell), order, np.concatenate([[0], np.cumsum(sizes)]))


def _cut(sizes: np.ndarray, max_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut cells into equal pieces of at most ``max_size`` rows; return the cell and the size of each piece."""
    n_pieces = -(-sizes // max_size)  # none of an empty cell
    cell = np.repeat(np.arange(len(sizes)), n_pieces)
    piece = np.arange(len(cell)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    ends = lambda piece: piece * sizes[cell] // n_pieces[cell]  # noqa: E731
    return cell, ends(piece + 1) - ends(piece)


def _means(X: Array, nearest: np.ndarray, centers: Array) -> Array:
    """Return the mean of the rows of every centre; a centre without rows stays."""
    xp = namespace(X)
    counts = np.bincount(nearest, minlength=centers.shape[0])
    order = np.argsort(nearest, kind="stable")
    sums = xp.cumulative_sum(xp.astype(take_rows(X, order), xp.float64), axis=0, include_initial=True)
    ends = asarray_like(np.concatenate([[0], np.cumsum(counts)]), X, dtype=xp.int64)
    at_ends = xp.take(sums, ends, axis=0)
    divisor = asarray_like(np.maximum(counts, 1)[:, None].astype(np.float64), X)
    means = xp.astype((at_ends[1:, :] - at_ends[:-1, :]) / divisor, X.dtype)
    return xp.where(asarray_like(counts[:, None] > 0, X), means, centers)


def nearest_centers(X: Array, centers: Array) -> np.ndarray:
    """Return the index of the nearest centre of every row, on the host, up to rounding in the precision of ``X``."""
    is_sparse = sp.issparse(X)
    shift = 0 if is_sparse else namespace(X).mean(centers, axis=0)  # near the origin fewer digits cancel
    centers = centers if is_sparse else centers - shift
    half_sq_norms = 0.5 * sq_row_norms(centers)
    xp = namespace(half_sq_norms)

    def assign(rows: slice) -> np.ndarray:
        products = (X[rows] @ centers.T).toarray() if is_sparse else (X[rows, :] - shift) @ centers.T
        return to_numpy(xp.argmin(half_sq_norms[None, :] - products, axis=1))

    return np.concatenate(map_blocks(assign, row_blocks(X.shape[0], 24 * centers.shape[0], X), X))


# ---------------------------------------------------------------------------------------------- nearest neighbours


def nearest_cells(cells: Cells) -> np.ndarray:
    """Return, for every cell, all cells by the distance of their centres, itself first, on the host."""
    centers = to_numpy(cells.centers).astype(np.float64)
    centers = centers - centers.mean(axis=0)
    scores = 0.5 * np.sum(centers**2, axis=1) - centers @ centers.T
    np.fill_diagonal(scores, -np.inf)
    return np.argsort(scores, axis=1, kind="stable")


def search_in_cells(
    cells: Cells, near: np.ndarray, X: Array, queries: Array | None, k: int, n_jobs: int | None = None
) -> tuple[Array, Array]:
    """Return the distances and indices of the ``k`` nearest rows, among those in cells near that of each query.

    Parameters
    ----------
    cells : Cells
        The dense rows by cell.
    near : ndarray of shape (n_cells, n_near)
        The cells to search for queries in each cell; together they must have more than ``k`` rows.
    X : array of shape (n, d)
        The rows, in the order in which they were given.
    queries : array of shape (m, d), optional
        The queries; default the rows themselves, without each row as its own neighbour.
    k : int
        The number of neighbours.
    n_jobs : int, optional
        The number of threads on the host.
    """
    xp = namespace(X)
    positions = asarray_like(cells.order, X, dtype=xp.int64)
    if queries is None:
        Q, order, starts, self_indices = cells.rows, cells.order, cells.starts, positions
    else:
        cell = nearest_centers(queries, cells.centers)
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(cells) + 1))
        Q, self_indices = take_rows(queries, order), None
    sizes = np.diff(cells.starts)

    def search(block: slice) -> tuple[Array, Array]:
        g = int(np.searchsorted(starts, block.start, side="right")) - 1
        slices = [cells.slice(h) for h in near[g]]
        indices = xp.concat([positions[part] for part in slices])
        center = cells.centers[g, :]
        # |y|²/2 - x'y orders the rows y as the distance to x does: one product, with the norms as one more column.
        # Relative to the centre, x and y are short and few digits cancel.
        left, right = center - Q[block, :], xp.concat([cells.rows[part, :] for part in slices]) - center
        left = xp.concat([left, xp.ones_like(left[:, :1])], axis=1)
        right = xp.concat([right, 0.5 * xp.sum(right * right, axis=1)[:, None]], axis=1)
        proposed = smallest_k(left @ right.T, min(k + 1 + max(4, k // 4), indices.shape[0]))[1]
        proposed = xp.reshape(xp.take(indices, xp.reshape(proposed, (-1,))), proposed.shape)
        rows = xp.reshape(xp.take(X, xp.reshape(proposed, (-1,)), axis=0), (*proposed.shape, -1))
        distances = xp.sqrt(xp.sum((Q[block, :][:, None, :] - rows) ** 2, axis=2))
        if self_indices is not None:
            distances = xp.where(proposed == self_indices[block][:, None], xp.inf, distances)
        nearest, column = smallest_k(distances, k)
        return nearest, xp.take_along_axis(proposed, column, axis=1)

    blocks = []
    for g in np.flatnonzero(np.diff(starts)):
        start, stop = int(starts[g]), int(starts[g + 1])
        width = 2 * itemsize(X) * int(sizes[near[g]].sum())
        blocks += [slice(start + part.start, start + part.stop) for part in row_blocks(stop - start, width, X)]
    with stage("searching neighbours", len(blocks)) as tick:
        results = map_blocks(search, blocks, X, n_jobs=n_jobs, tick=tick)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    distances, indices = (take_rows(xp.concat(list(part), axis=0), back) for part in zip(*results))
    return distances, indices
