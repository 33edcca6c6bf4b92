"""Kernels, which turn distances into edge weights, and low-rank approximations of whole kernel matrices.

============  =============================================  ====================================================
binary        1                                              [lapgmm, section 3.2], [lpi, section 4.3]
heat          exp(-‖x-y‖² / (2 bandwidth²))                  the papers write exp(-‖x-y‖²/t), so t = 2 bandwidth²
dot           x'y                                            [lapgmm, section 3.2], [lpi, section 4.3]
polynomial    (x'y + 1)^degree                               [lpi, section 4.3]
cosine        x'y / (‖x‖ ‖y‖), 0 for a row of zeros          dot on unit rows
local         exp(-‖x-y‖² / (s_x s_y))                       Zelnik-Manor & Perona 2004, s = 7th neighbour's distance
============  =============================================  ====================================================

Each is one row of `KERNELS`. `LandmarkGraph` approximates the matrix of all weights in linear memory [nle, section
VI-B].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances

from .._foreign_warnings import ignore_foreign_warnings
from .._typing import MatrixLike, RandomState
from .._validation import check_data, check_int, check_positive, check_seed, choose
from ..core.arrays import (
    Array,
    arange,
    asarray_like,
    is_numpy,
    is_on_host,
    itemsize,
    namespace,
    row_blocks,
    row_norms,
    to_numpy,
)
from ..core.parallel import check_memory
from ..errors import InputError

# -------------------------------------------------------------------------------------- distances and inner products


def pairwise_distances(A: Array, B: Array) -> Array:
    """Return all Euclidean distances between rows of ``A`` and ``B``; products are computed in double precision."""
    if is_numpy(A):
        with ignore_foreign_warnings():
            return euclidean_distances(A, B)
    xp = namespace(A)
    center = xp.mean(B, axis=0)
    left, right = xp.astype(A - center, xp.float64), xp.astype(B - center, xp.float64)
    sq_distances = xp.sum(left**2, axis=1)[:, None] + xp.sum(right**2, axis=1)[None, :] - 2 * (left @ right.T)
    return xp.astype(xp.sqrt(xp.where(sq_distances > 0, sq_distances, 0)), A.dtype)


def pair_distances(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """Return the distance of each pair ``A[rows[e]], B[columns[e]]``, computed from differences."""
    if sp.issparse(A):
        return np.sqrt(_over_sparse_pairs(A, B, rows, columns, lambda a, b: (a - b).power(2)))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sqrt(xp.sum((a - b) ** 2, axis=1)))


def pair_products(A: Array, B: Array, rows: Array, columns: Array) -> Array:
    """Return the inner product of each pair ``A[rows[e]], B[columns[e]]``."""
    if sp.issparse(A):
        return _over_sparse_pairs(A, B, rows, columns, lambda a, b: a.multiply(b))
    return _over_pairs(A, B, rows, columns, lambda a, b, xp: xp.sum(a * b, axis=1))


def _over_sparse_pairs(A: Array, B: Array, rows: Array, columns: Array, entries: Callable) -> Array:
    """Return the row sums of a sparse function of each pair of rows, in blocks."""
    blocks = row_blocks(rows.shape[0], 48 * max(1, A.nnz // A.shape[0]), A)
    parts = [np.asarray(entries(A[rows[e]], B[columns[e]]).sum(axis=1)).ravel() for e in blocks]
    return np.concatenate(parts).astype(A.dtype, copy=False) if parts else np.empty(0, dtype=A.dtype)


def _over_pairs(A: Array, B: Array, rows: Array, columns: Array, function: Callable) -> Array:
    xp = namespace(A)
    blocks = row_blocks(rows.shape[0], 4 * itemsize(A) * A.shape[1], A)
    parts = [function(xp.take(A, rows[e], axis=0), xp.take(B, columns[e], axis=0), xp) for e in blocks]
    return xp.concat(parts) if parts else A[:0, 0]


# ------------------------------------------------------------------------------------------------------- kernels

KernelName: TypeAlias = Literal["binary", "heat", "dot", "polynomial", "cosine", "local"]

MAX_SHARE = 1e-8  # of the largest number, up to which weights can be added up
LOCAL_NEIGHBOR = 7  # the neighbour whose distance is the scale of a row in the local kernel


@dataclass(frozen=True)
class KernelConstants:
    """Constants of a kernel, computed from the training data and used again for new points."""

    bandwidth: float | None = None
    degree: int = 2
    scales: Array | None = None  # (n,) distance of each training point to its 7th neighbour, for "local"
    metric: Array | None = None  # (r, d) the learned matrix A, under which rows are compared as A x
    neighbors: int | None = None  # under that metric, the number of rows that a new point is linked to; None: all


@dataclass(frozen=True)
class RowPairs:
    """The pairs ``A[rows[e]], B[columns[e]]`` on which a kernel is evaluated.

    Without ``rows`` these are all pairs, and ``distances`` is a matrix.
    """

    A: Array
    B: Array
    distances: Array
    rows: Array | None = None
    columns: Array | None = None
    scales_a: Array | None = None
    scales_b: Array | None = None

    def products(self) -> Array:
        """Return the inner products x'y; only the kernels that need them call this."""
        if self.rows is not None:
            return pair_products(self.A, self.B, self.rows, self.columns)
        products = self.A @ self.B.T
        return products.toarray() if hasattr(products, "toarray") else products

    def outer(self, a: Array, b: Array) -> Array:
        """Return ``a_i b_j`` for every pair."""
        return a[:, None] * b[None, :] if self.rows is None else a[self.rows] * b[self.columns]


def _decay(exponents: Array) -> Array:
    """Compute exp(-x); a weight so small that the inverse of a degree could overflow is zero."""
    xp = namespace(exponents)
    weights, limits = xp.exp(-exponents), xp.finfo(exponents.dtype)
    return xp.where(weights * limits.eps >= limits.smallest_normal, weights, 0)


def _cosine(pairs: RowPairs, constants: KernelConstants) -> Array:
    products, lengths = pairs.products(), pairs.outer(row_norms(pairs.A), row_norms(pairs.B))
    xp = namespace(products)
    return xp.where(lengths > 0, products / xp.where(lengths > 0, lengths, 1), 0)


def _local(pairs: RowPairs, constants: KernelConstants) -> Array:
    sq_distances, scales = pairs.distances**2, pairs.outer(pairs.scales_a, pairs.scales_b)
    xp = namespace(sq_distances)
    # A point with seven exact copies has scale 0; the limit of the formula is 1 at distance 0 and 0 elsewhere.
    limit = xp.astype(sq_distances == 0, sq_distances.dtype)
    return xp.where(scales > 0, _decay(sq_distances / xp.where(scales > 0, scales, 1)), limit)


Kernel = Callable[[RowPairs, KernelConstants], Array]
KERNELS: dict[str, Kernel] = {
    "binary": lambda pairs, constants: namespace(pairs.distances).ones_like(pairs.distances),
    "heat": lambda pairs, constants: _decay(0.5 * (pairs.distances / constants.bandwidth) ** 2),
    "dot": lambda pairs, constants: pairs.products(),
    "polynomial": lambda pairs, constants: (pairs.products() + 1) ** constants.degree,
    "cosine": _cosine,
    "local": _local,
}


def edge_weights(kernel: str, pairs: RowPairs, constants: KernelConstants) -> Array:
    """Return the weight of every pair; raise an error if their sums could overflow."""
    if (kernel == "heat" and constants.bandwidth is None) or (kernel == "local" and pairs.scales_b is None):
        problem = f"the graph was not built with weight={kernel!r}, so it lacks the constants of that kernel"
        hint = "pass the graph that the recipe built"
        raise InputError(problem, hint, code="no_kernel_constants", parameter="weight", value=kernel)
    with np.errstate(over="ignore", invalid="ignore"):
        weights = choose(KERNELS, kernel, option="weight")(pairs, constants)
    xp = namespace(weights)
    if 0 not in weights.shape and not float(xp.max(xp.abs(weights))) <= MAX_SHARE * float(xp.finfo(weights.dtype).max):
        problem = f"weight={kernel!r} overflows on this data"
        hint = "scale X down, or use weight='heat'"
        raise InputError(problem, hint, code="weights_overflow", parameter="weight", value=kernel)
    return weights


def fit_constants(
    kernel: str, distances: Array, *, bandwidth: float | None, degree: int, scales: Array | None
) -> KernelConstants:
    """Return the constants of a kernel; a missing bandwidth is estimated from the neighbour distances."""
    if kernel == "polynomial":
        return KernelConstants(degree=check_int(degree, "degree"))
    if kernel == "local":
        return KernelConstants(scales=scales)
    if kernel != "heat":
        return KernelConstants()
    return KernelConstants(median_distance(distances) if bandwidth is None else check_positive(bandwidth, "bandwidth"))


def median_distance(distances: Array) -> float:
    """Return the median neighbour distance, the default bandwidth."""
    median = float(np.median(to_numpy(distances))) if distances.shape[0] else 0.0
    if median > 0:
        return median
    problem = (
        "the median neighbour distance is 0 (no edges, or more than half of them join duplicate rows), "
        "so the bandwidth cannot be estimated"
    )
    hint = "set bandwidth to a positive number, or remove the duplicates"
    raise InputError(problem, hint, code="zero_bandwidth", parameter="bandwidth")


# ------------------------------------------------------------------------------- complete graphs, also of low rank

MAX_FULL_NODES = 10_000  # nodes of a FullGraph: 100 million weights, 1.2 GB, and about 4.5 GB while it is built
BUILD_BYTES, LINK_BYTES = 45, 32  # peak memory per weight of a FullGraph, and per weight to a new point


def check_complete_graph(n: int, X: Array) -> None:
    """Raise an error if a complete graph of n rows has too many weights, or more than the memory can hold."""
    if n > MAX_FULL_NODES:
        problem = (
            f"FullGraph on {n} rows would have {n * n:,} weights, about {1e-9 * BUILD_BYTES * n * n:.0f} GB while it "
            "is built"
        )
        raise InputError(problem, "use KNNGraph", code="too_many_rows", n_samples=n, max_samples=MAX_FULL_NODES)
    if is_on_host(X):
        check_memory(BUILD_BYTES * n * n, f"FullGraph on {n} rows", "use KNNGraph")


def check_links_to_all(n_new: int, n: int, X: Array) -> None:
    """Raise an error if the weights between new points and all nodes need more memory than there is."""
    if is_on_host(X):
        purpose = f"linking {n_new} new points to all {n} nodes of a FullGraph"
        check_memory(LINK_BYTES * n_new * n, purpose, "pass fewer points at a time, or use KNNGraph")


class LowRankAffinity(NamedTuple):
    """A dense affinity W = FF' without its diagonal, stored as its factor; negative weights are approximation errors.

    Attributes
    ----------
    factor : array of shape (n_nodes, m)
        The factor F.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.graph import LowRankAffinity
    >>> W = LowRankAffinity(np.array([[1.0], [2.0], [3.0]]))
    >>> W.product(np.ones((3, 1))).ravel()  # 1·2 + 1·3, 2·1 + 2·3, 3·1 + 3·2
    array([5., 8., 9.])
    """

    factor: Array  # (n, m)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.factor.shape[0])

    def product(self, Q: Array) -> Array:
        """Return W Q."""
        diagonal = namespace(Q).sum(self.factor * self.factor, axis=1)[:, None]
        return self.factor @ (self.factor.T @ Q) - diagonal * Q


class LandmarkGraph(BaseEstimator):
    """A low-rank approximation of the complete graph, for :class:`NLE`.

    W ≈ CA⁺C' with C the kernel between all rows and m landmarks and A the kernel among the landmarks (Nyström). Memory
    and products are linear in the number of rows; those of :class:`FullGraph` are quadratic.

    Parameters
    ----------
    n_landmarks : int, default=200
        The number of landmarks, which are rows drawn at random.
    weight : {'heat', 'dot', 'polynomial', 'cosine'}, default='heat'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        The bandwidth of 'heat'; by default the median distance between landmarks.
    degree : int, default=2
        The degree of 'polynomial'.
    random_state : int, RandomState or None, default=0
        Random seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import FullGraph, LandmarkGraph
    >>> X = np.random.RandomState(0).normal(size=(300, 2))
    >>> F = LandmarkGraph(100, bandwidth=1.0).build(X).factor
    >>> exact = FullGraph(bandwidth=1.0).build(X).weights.toarray() + np.eye(300)
    >>> bool(np.abs(F @ F.T - exact).mean() < 0.01)
    True
    """

    def __init__(
        self,
        n_landmarks: int = 200,
        weight: Literal["heat", "dot", "polynomial", "cosine"] = "heat",
        bandwidth: float | None = None,
        degree: int = 2,
        random_state: RandomState = 0,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.random_state = random_state

    def build(self, X: MatrixLike) -> LowRankAffinity:
        """Build the affinity of the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The rows.
        """
        return self._build(check_data(X, min_samples=2))

    def _build(self, X: Array) -> LowRankAffinity:
        if sp.issparse(X):
            problem = "LandmarkGraph does not accept sparse rows"
            hint = "reduce their dimension first, for example with TruncatedSVD"
            raise InputError(problem, hint, code="sparse_not_supported")
        choose(KERNELS, self.weight, option="weight")
        if self.weight in ("local", "binary"):
            problem = f"weight={self.weight!r} is not a function of two rows"
            fields = {"value": self.weight, "options": ["heat", "dot", "polynomial", "cosine"]}
            hint = "use 'heat', 'dot', 'polynomial' or 'cosine'"
            raise InputError(problem, hint, code="unknown_option", parameter="weight", **fields)
        size = min(check_int(self.n_landmarks, "n_landmarks", minimum=2), X.shape[0])
        xp = namespace(X)
        chosen = np.sort(check_seed(self.random_state).permutation(X.shape[0])[:size])
        landmarks = xp.take(X, asarray_like(chosen, X), axis=0)
        constants = self._kernel_constants(landmarks)
        check_links_to_all(X.shape[0], size, X)
        links = edge_weights(self.weight, RowPairs(X, landmarks, pairwise_distances(X, landmarks)), constants)
        A = xp.take(links, asarray_like(chosen, X), axis=0)
        values, vectors = xp.linalg.eigh(0.5 * (A + A.T))
        if float(values[-1]) <= 0:
            problem = "the kernel matrix of the landmarks has no positive eigenvalue"
            hint = "check for rows of zeros, or use weight='heat'"
            raise InputError(problem, hint, code="kernel_not_positive", parameter="weight")
        first = int(xp.sum(xp.astype(values <= 1e-6 * float(values[-1]), xp.int64)))
        root = vectors[:, first:] / xp.sqrt(values[first:])[None, :]
        return LowRankAffinity(links @ root)

    def _kernel_constants(self, landmarks: Array) -> KernelConstants:
        """Return the constants of the kernel, and check that no two landmarks have a negative weight."""
        xp, n = namespace(landmarks), landmarks.shape[0]
        check_complete_graph(n, landmarks)
        distances = pairwise_distances(landmarks, landmarks)
        nodes = arange(n, landmarks)
        others = xp.reshape(nodes[:, None] != nodes[None, :], (-1,))
        flat = xp.reshape(distances, (-1,))[others]
        constants = fit_constants(self.weight, flat, bandwidth=self.bandwidth, degree=self.degree, scales=None)
        weights = edge_weights(self.weight, RowPairs(landmarks, landmarks, distances), constants)
        if float(xp.min(xp.reshape(weights + weights.T, (-1,))[others])) < 0:
            problem = f"weight={self.weight!r} is negative between some landmarks"
            hint = "use weight='heat', or rows without negative entries"
            raise InputError(problem, hint, code="negative_weights", parameter="weight", value=self.weight)
        return constants
