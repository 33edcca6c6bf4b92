"""Approximate nearest neighbours of dense rows, in cells of nearby rows, with a recall measured on a sample.

======================  ==============================================================================================
``method="cells"``      products of the rows of a cell with those of the nearest cells, on any back end
``method="faiss"``      an inverted-file index; the number of probes grows until a sample reaches the recall
======================  ==============================================================================================

Both compare a sample with the exact search, look into as many cells as its recall requires, and search exactly if that
fails. Cells are the Voronoi cells of a few centres. With the rows sorted by cell, a cell is a slice, so that two cells
are compared by one product of two slices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import import_optional
from ..core.arrays import (
    Array,
    asarray_like,
    is_numpy,
    is_on_host,
    itemsize,
    namespace,
    row_blocks,
    smallest_k,
    sq_row_norms,
    take_rows,
    to_numpy,
)
from ..core.fitting import stage
from ..core.parallel import map_blocks, map_pieces
from ..errors import InputError
from .exact_search import drop_self, exact_neighbors, exact_neighbors_of_rows, stack_neighbors
from .kernels import pair_distances

log = logging.getLogger(__name__)

TARGET_RECALL = 0.995  # fraction of the true neighbours of the sample that an approximate search must find
RECALL_SAMPLE = 500  # rows whose exact neighbours determine the number of cells to search
CELLS_PER_ROOT = 2  # cells on the host, per √n
DEVICE_CELLS_PER_ROOT = 0.4  # fewer on a device, which is faster at few large products
CELL_ITERATIONS = 4  # k-means iterations that place the centres of the cells
MAX_NEAR_SHARE = 0.5  # share of the cells above which the exact search is as fast
LOW_RECALL = "neighbours: %s reaches a recall of only %.3f on this data; searching exactly"
MAX_RELATIVE_SIZE = 4  # a cell with more rows, relative to the mean, is cut into several
SEED = 1  # not that of a sample on which the recall is measured: a row at the centre of its cell is easier
TRAINING_ROWS = 48  # rows per cell on which centres are moved


@dataclass(frozen=True)
class Cells:
    """A partition of the rows into cells, none of them empty; ``order`` and ``starts`` are on the host."""

    rows: Array  # (n, d), sorted by cell, in their library, dtype and device
    centers: Array  # (n_cells, d), the nearest centre of all rows of the cell
    order: np.ndarray  # (n,), the index of each sorted row
    starts: np.ndarray  # (n_cells + 1,): cell g is rows[starts[g]:starts[g + 1]]

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

    The centres of dense rows are moved by ``n_iter`` k-means iterations on a sample. ``labels`` order rows in a cell.
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
    max_size = max(1, MAX_RELATIVE_SIZE * n // n_cells)
    n_pieces = -(-sizes // max_size)  # a cell that is too large is cut into several, an empty one into none
    cell = np.repeat(np.arange(n_cells), n_pieces)
    piece = np.arange(len(cell)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
    starts = np.cumsum(sizes)[cell] - sizes[cell] + piece * sizes[cell] // n_pieces[cell]
    return Cells(take_rows(X, order), take_rows(centers, cell), order, np.append(starts, n))


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

    Row g of ``near`` lists the cells to search for queries in cell g, which have more than ``k`` rows together. By
    default the queries are the rows, and none is its own neighbour.
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


# ------------------------------------------------------------------------------------- searches of a given recall


@dataclass(frozen=True, eq=False)
class CellSearch:
    """A search in cells near that of each query, whose recall is known from the exact neighbours of a sample."""

    X: Array
    k: int
    cells: Cells
    near: np.ndarray  # (n_cells, n_cells): for every cell, all cells by distance
    sample: np.ndarray  # (m,), rows whose exact neighbours are known
    reach: np.ndarray  # (m, 1), the distance to the last of them
    ranks: np.ndarray  # (m * k,), how many of the nearest cells lead to each of them, ascending

    @classmethod
    def of(cls, X: Array, k: int, n_jobs: int | None = None) -> CellSearch:
        """Divide dense rows into cells, and search the neighbours of a sample exactly."""
        per_root = CELLS_PER_ROOT if is_on_host(X) else DEVICE_CELLS_PER_ROOT
        cells = split_into_cells(X, max(1, int(per_root * X.shape[0] ** 0.5)), n_iter=CELL_ITERATIONS)
        near, sample = nearest_cells(cells), _sample(X)
        n_exact = min(4 * k, X.shape[0] - 1)  # more than k, so that equally near rows are known
        lengths, neighbors = map(to_numpy, exact_neighbors_of_rows(X, sample, n_exact, n_jobs))
        reach, cell = (1 + 1e-5) * lengths[:, k - 1 : k], cells.of_rows()
        rank = np.argsort(near, axis=1)[cell[sample][:, None], cell[neighbors]]  # cells that lead to each neighbour
        ranks = np.sort(np.where(lengths <= reach, rank, len(cells)), axis=1)[:, :k]
        return cls(X, k, cells, near, sample, reach, np.sort(ranks, axis=None))

    def n_near(self, recall: float) -> int:
        """Return the number of cells to search for a recall; they have more than k rows together."""
        needed = 1 + int(self.ranks[int(np.ceil(recall * self.ranks.size)) - 1])
        n_rows = np.cumsum(np.diff(self.cells.starts)[self.near], axis=1)
        return max(needed, 1 + int(np.sum(n_rows <= self.k, axis=1).max()))

    def is_worthwhile(self, n_near: int) -> bool:
        """Whether so few cells have to be searched that it is faster than the exact search."""
        return n_near <= MAX_NEAR_SHARE * len(self.cells)

    def search(self, queries: Array | None, n_near: int, k: int, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return the distances and indices of the ``k`` nearest rows in the ``n_near`` nearest cells."""
        return search_in_cells(self.cells, self.near[:, :n_near], self.X, queries, k, n_jobs)

    def search_rows(self, rows: np.ndarray, n_near: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of some of the rows, on the host, without each row itself."""
        found = self.search(take_rows(self.X, rows), n_near, self.k + 1, n_jobs)
        return drop_self((to_numpy(found[0]), to_numpy(found[1])), rows)


def neighbors_in_cells(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
    """Compare the rows of each cell with those of the nearest cells, as many as a sample needs for `TARGET_RECALL`."""
    _check_dense("cells", X, metric, is_supported=not sp.issparse(X))
    copies = Copies.of(X, k) if queries is None and is_numpy(X) else None
    if copies is None or not copies.n_groups:
        return _in_cells(X, queries, k, metric, n_jobs)
    searched = copies.searched(X.shape[0])
    distances, indices, recall = _in_cells(X[searched], None, k, metric, n_jobs)
    return *copies.complete(X.shape[0], searched, distances, indices), recall


def _in_cells(X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None) -> tuple[Array, Array, float]:
    search = CellSearch.of(X, k, n_jobs)
    n_near, n_cells = search.n_near(TARGET_RECALL), len(search.cells)
    if not search.is_worthwhile(n_near):
        log.info("neighbours: %d of %d cells would have to be searched; searching exactly", n_near, n_cells)
        return exact_neighbors(X, queries, k, metric, n_jobs)
    recall = float(np.mean(search.search_rows(search.sample, n_near, n_jobs)[0] <= search.reach))
    log.info("neighbours: %d of %d cells searched, recall %.4f on a sample", n_near, n_cells, recall)
    if recall < TARGET_RECALL:
        log.warning(LOW_RECALL, "the search in cells", recall)
        return exact_neighbors(X, queries, k, metric, n_jobs)
    return *search.search(queries, n_near, k, n_jobs), recall


def neighbors_by_faiss(
    X: Array, queries: Array | None, k: int, metric: str, n_jobs: int | None
) -> tuple[Array, Array, float]:
    """Search an inverted file of √n lists; the number of probes grows until a sample reaches `TARGET_RECALL`."""
    _check_dense("faiss", X, metric, is_supported=is_numpy(X) and not sp.issparse(X))
    index, to_index = _inverted_file(X)
    recall = _raise_probes(index, to_index, X, k, n_jobs)
    if recall < TARGET_RECALL:  # single precision cannot distinguish these rows
        log.warning(LOW_RECALL, "faiss", recall)
        return exact_neighbors(X, queries, k, metric, n_jobs)
    Q = X if queries is None else queries
    found = map_pieces(
        lambda rows: index.search(to_index(Q[rows]), k + (queries is None)), len(Q), "searching neighbours"
    )
    distances, indices = stack_neighbors(found)
    if queries is None:
        distances, indices = drop_self((distances, indices), np.arange(X.shape[0]))
    short = np.flatnonzero((indices < 0).any(axis=1))  # too few candidates in the probed lists
    if len(short):
        indices[short] = (
            exact_neighbors_of_rows(X, short, k, n_jobs)
            if queries is None
            else exact_neighbors(X, queries[short], k, metric, n_jobs)
        )[1]
    distances = pair_distances(Q, X, *_flat(indices))
    return distances.reshape(indices.shape), indices, recall


def _inverted_file(X: Array) -> tuple[Any, Callable[[Array], Array]]:
    """Return the index and the function that prepares rows for it: float32, centred and scaled."""
    faiss = import_optional("faiss", extra="ann", purpose="approximate neighbours")
    n, d = X.shape
    center = X.mean(axis=0)
    rounding = np.finfo(X.dtype).eps * float(np.abs(center).max())  # equal rows differ from their mean by this much
    scale = max(float(np.abs(X - center).max()), rounding) or 1.0
    to_index = lambda A: np.ascontiguousarray((A - center) / scale, dtype=np.float32)  # noqa: E731
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, max(1, int(np.sqrt(n))))
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 10, 64, 1
    index.train(to_index(X[np.random.RandomState(0).permutation(n)[: 64 * index.nlist]]))
    map_pieces(lambda rows: index.add(to_index(X[rows])), n, "building the index")
    return index, to_index


def _raise_probes(index: Any, to_index: Callable[[Array], Array], X: Array, k: int, n_jobs: int | None) -> float:
    """Probe more lists until the recall is reached or all are probed; copies of a neighbour count as found."""
    sample = _sample(X)
    rows = to_index(X[sample])
    reach = (1 + 1e-5) * exact_neighbors_of_rows(X, sample, k, n_jobs)[0][:, -1:]
    index.nprobe = 2
    while True:
        index.nprobe = min(-(-3 * index.nprobe // 2), index.nlist)
        _, neighbors = drop_self(index.search(rows, k + 1), sample)
        lengths = pair_distances(X[sample], X, *_flat(neighbors)).reshape(neighbors.shape)
        recall = float(np.mean((lengths <= reach) & (neighbors >= 0)))
        log.info("neighbours: %d of %d lists probed, recall %.4f on a sample", index.nprobe, index.nlist, recall)
        if recall >= TARGET_RECALL or index.nprobe == index.nlist:
            return recall


def _sample(X: Array) -> np.ndarray:
    """Return the indices of some rows, always the same ones."""
    return np.random.RandomState(0).permutation(X.shape[0])[:RECALL_SAMPLE]


def _check_dense(method: str, X: Array, metric: str, *, is_supported: bool) -> None:
    if not is_supported or metric != "euclidean":
        kind = "dense NumPy" if method == "faiss" else "dense"
        problem = f"method={method!r} needs {kind} rows and metric 'euclidean' or 'cosine'"
        hint = "use method='exact'"
        raise InputError(problem, hint, code=f"{method}_not_supported", parameter="method", value=method)


def _flat(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.ravel()


# ------------------------------------------------------------------------------------------ rows that occur many times
#
# The nearest neighbours of a row with more than k equal rows are k of these, at distance 0. So they need no search, and
# no other row needs more than a few of them as neighbours. Without them, cells of equal rows are not searched over and
# over.


class Copies(NamedTuple):
    """Groups of equal rows, each of more than ``k``."""

    members: np.ndarray  # the rows of all groups, group by group, in ascending order within each
    starts: np.ndarray  # (n_groups + 1,): group g is members[starts[g]:starts[g + 1]]
    k: int

    @classmethod
    def of(cls, X: np.ndarray | sp.csr_array, k: int) -> Copies:
        """Find the groups of rows."""
        order, differs = order_of_equal_rows(X)
        starts = np.flatnonzero(differs)
        sizes = np.diff(starts)
        is_large = sizes > k
        kept = np.repeat(is_large, sizes)
        return cls(order[kept], np.concatenate([[0], np.cumsum(sizes[is_large])]), k)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.starts) - 1

    def searched(self, n: int) -> np.ndarray:
        """Return the rows, of ``n``, that have to be searched: all but those beyond the first k + 1 of each group."""
        rank = np.arange(len(self.members)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        is_searched = np.ones(n, dtype=bool)
        is_searched[self.members[rank > self.k]] = False
        return np.flatnonzero(is_searched)

    def neighbors(self) -> np.ndarray:
        """Return the k neighbours of all members, of shape (m, k).

        The members of a group form a ring, in which every one is joined to those at distances from 1 to half of the
        ring, so that no part of the group can be cut off at few edges.
        """
        sizes = np.diff(self.starts)
        steps = np.repeat(_steps(sizes, self.k), sizes, axis=0)
        first, size = (np.repeat(part, sizes)[:, None] for part in (self.starts[:-1], sizes))
        place = np.arange(len(self.members))[:, None] - first
        return self.members[first + (place + steps) % size]

    def complete(
        self, n: int, searched: np.ndarray, distances: np.ndarray, indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances and neighbours of all ``n`` rows from those of the rows that were searched."""
        all_distances, all_indices = np.zeros((n, self.k), dtype=distances.dtype), np.empty((n, self.k), dtype=np.int64)
        all_distances[searched], all_indices[searched] = distances, searched[indices]
        all_distances[self.members], all_indices[self.members] = 0, self.neighbors()
        return all_distances, all_indices


def order_of_equal_rows(X: np.ndarray | sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of n rows in which equal ones are adjacent and ascending, and where groups begin, n included.

    Equal rows have the same product with a random vector.
    """
    n, row_bytes = X.shape[0], X.dtype.itemsize * X.shape[1]
    direction = np.asarray(np.random.RandomState(0).normal(size=X.shape[1]), dtype=X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite products are compared by their rows
        if sp.issparse(X):
            products = X @ direction
        else:  # X @ direction may differ for equal rows
            products = np.concatenate([(X[part] * direction).sum(axis=1) for part in row_blocks(n, 2 * row_bytes, X)])
    order = np.argsort(products, kind="stable")
    differs = np.ones(n + 1, dtype=bool)
    alike = np.flatnonzero(products[order[1:]] == products[order[:-1]])
    for part in row_blocks(len(alike), 4 * row_bytes, products) if len(alike) else ():
        first, second = X[order[alike[part]]], X[order[alike[part] + 1]]
        unequal = first != second
        differs[alike[part] + 1] = unequal.sum(axis=1) > 0 if sp.issparse(X) else unequal.any(axis=1)
    return order, differs


def _steps(sizes: np.ndarray, k: int) -> np.ndarray:
    """Return k different distances in a ring of each size, which grow geometrically from 1 to half of the ring.

    Examples
    --------
    >>> _steps(np.array([5, 1000]), 4).tolist()
    [[1, 2, 3, 4], [1, 8, 63, 500]]
    """
    steps = np.zeros((len(sizes), k), dtype=np.int64)
    for j in range(k):
        wanted = np.round((sizes / 2) ** (j / max(k - 1, 1))).astype(np.int64)
        after_last = steps[:, j - 1] + 1 if j else np.ones_like(sizes)
        steps[:, j] = np.minimum(np.maximum(wanted, after_last), sizes - k + j)
    return steps
