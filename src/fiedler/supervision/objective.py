"""The objective of the learned Laplacian and its gradient. Paper key: learned_laplacian.

    Q(A) = Σ_ij C_ij l_ij,   l_ij = δ_ij - w_ij/√(d_i d_j),   w_ij = exp(-‖A(x_i - x_j)‖²)             (Eqs 3, 4, 8)

C holds ½ for either order of a must-link, -½ of a cannot-link, and ½λ for every direction in which one point is among
the other's N nearest. With B = C∘W/√(d_i d_j), r the row sums of B, Eqs 9 to 12 add up to

    M_ij = ½ w_ij (r_i/d_i + r_j/d_j) - B_ij,     dQ/dA = -4 A X'(diag(M1) - M)X                 (samples as rows)

so that no matrix a pair is ever formed: one product of the size of the graph with X, one of X with itself. C and B are
sparse. The pairs that have a weight at all are all of them (`AllPairs`), or those of a sparse graph (`EdgeList`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import device

from ..core.backend import Array, asarray_like, is_numpy, namespace
from ..core.sparse import (
    Sparse,
    csr_parts,
    from_coo,
    from_scipy_like,
    matmul,
    row_indices,
    row_sums,
    to_scipy,
    with_data,
)
from ..graph.neighbors import pair_distances

# --------------------------------------------------------------------------------------------------- where weights are


class AllPairs:
    """Every pair: values are (n, n)."""

    def __init__(self, pairs: sp.csr_array, reference: Array) -> None:
        self.pairs = Pattern(pairs, reference)
        self._flat = asarray_like(row_indices(pairs).astype(np.int64) * pairs.shape[0] + pairs.indices, reference)

    def kernel(self, Y: Array) -> Array:
        """exp(-‖y_i - y_j‖²), and 0 for a point with itself. [learned_laplacian, Eq. 4]"""
        xp = namespace(Y)
        half = 0.5 * xp.sum(Y * Y, axis=1)
        products = Y @ Y.T
        products -= half[:, None]
        products -= half[None, :]
        products *= 2
        flat = xp.reshape(xp.exp(products), (-1,))
        flat[:: Y.shape[0] + 1] = 0.0
        return xp.reshape(flat, products.shape)

    def degrees(self, W: Array) -> Array:
        """Σ_j w_ij."""
        return namespace(W).sum(W, axis=1)

    def at_pairs(self, W: Array) -> Array:
        """The weights where C is not zero."""
        xp = namespace(W)
        return xp.take(xp.reshape(W, (-1,)), self._flat)

    def product(self, W: Array, X: Array) -> Array:
        """WX."""
        return W @ X


class EdgeList:
    """The edges of a sparse graph and the constrained pairs: values are one a stored entry."""

    def __init__(self, pairs: sp.csr_array, edges: sp.csr_array, reference: Array) -> None:
        n = edges.shape[0]
        rows, columns = (np.concatenate([of(edges), of(pairs)]) for of in (row_indices, lambda matrix: matrix.indices))
        both = from_coo(rows, columns, np.concatenate([np.zeros(edges.nnz), pairs.data]), (n, n))
        self.pairs = Pattern(pairs, reference)
        numbered = sp.csr_array((np.arange(1, both.nnz + 1), both.indices, both.indptr), shape=both.shape)
        places = np.asarray(numbered[row_indices(pairs), pairs.indices]).ravel() - 1
        self._places = asarray_like(places.astype(np.int64), reference)
        self._edges = Pattern(both, reference)

    def kernel(self, Y: Array) -> Array:
        """exp(-‖y_i - y_j‖²), and 0 for a point with itself. [learned_laplacian, Eq. 4]"""
        distances = pair_distances(Y, Y, self._edges.rows, self._edges.columns)
        return namespace(Y).exp(-(distances**2))

    def degrees(self, W: Array) -> Array:
        """Σ_j w_ij over the edges."""
        return self._edges.sums(W)

    def at_pairs(self, W: Array) -> Array:
        """The weights where C is not zero."""
        return namespace(W).take(W, self._places)

    def product(self, W: Array, X: Array) -> Array:
        """WX."""
        return self._edges.product(W, X)


class Pattern:
    """Where a sparse matrix has entries; ``values``, and any others on the same places, as a vector."""

    def __init__(self, matrix: sp.csr_array, reference: Array) -> None:
        self.matrix = from_scipy_like(matrix, reference)
        self.values, self.columns, _ = csr_parts(self.matrix)
        self.rows = row_indices(self.matrix)
        if is_numpy(self.rows) and not is_numpy(reference):  # a back end without sparse matrices
            self.values, self.columns, self.rows = (
                asarray_like(part, reference) for part in (self.values, self.columns, self.rows)
            )

    def sums(self, values: Array) -> Array:
        """Σ_j of the values, shape (n,)."""
        return row_sums(self._filled(values), values)

    def product(self, values: Array, X: Array) -> Array:
        """The matrix of the values times ``X``."""
        return matmul(self._filled(values), X)

    def _filled(self, values: Array) -> Sparse:
        return with_data(self.matrix, values)


def coefficients(
    n: int,
    must_link: np.ndarray,
    cannot_link: np.ndarray,
    weights: tuple[Any, Any],
    neighbors: sp.csr_array,
    lam: float,
) -> sp.csr_array:
    """C: the pairs by their weights, and λ for every direction of the neighbourhoods. [learned_laplacian, Eq. 8]"""
    total = 0.5 * lam * (neighbors + neighbors.T)
    for pairs, weight, sign in ((must_link, weights[0], 0.5), (cannot_link, weights[1], -0.5)):
        values = sign * np.broadcast_to(np.asarray(weight, dtype=np.float64), len(pairs))
        one_way = sp.csr_array((values, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        total = total + one_way + one_way.T
    return to_scipy(total)


# ---------------------------------------------------------------------------------------------------- kinds of metric


class Metric(NamedTuple):
    """A family of matrices A(θ): where θ starts, A itself, XA', and dQ/dθ from Z.

    Z is (diag(M1) - M)X with w_ij r_i/d_i in place of the symmetric ½ w_ij (r_i/d_i + r_j/d_j), which spares a product:
    the symmetric part of X'Z is the same.
    """

    start: Callable[[Array, int], Array]
    matrix: Callable[[Array, Array], Array]
    embed: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array, Array], Array]


def _leading_axes(X: Array, rank: int) -> Array:
    xp = namespace(X)
    return xp.linalg.svd(X, full_matrices=False)[2][:rank, :]


def eye(X: Array) -> Array:
    """The identity of the size of a row, beside ``X``."""
    return namespace(X).eye(X.shape[1], dtype=X.dtype, device=device(X))


def _ones(X: Array, count: int) -> Array:
    return namespace(X).ones_like(X[0, :count])


METRICS = {
    "full": Metric(
        start=lambda X, rank: eye(X),
        matrix=lambda theta, X: theta,
        embed=lambda theta, X: X @ theta.T,
        gradient=lambda theta, X, Z: -2 * theta @ (X.T @ Z + Z.T @ X),
    ),
    "low_rank": Metric(
        start=_leading_axes,
        matrix=lambda theta, X: theta,
        embed=lambda theta, X: X @ theta.T,
        gradient=lambda theta, X, Z: -2 * theta @ (X.T @ Z + Z.T @ X),
    ),
    "diagonal": Metric(
        start=lambda X, rank: _ones(X, X.shape[1]),
        matrix=lambda theta, X: theta[:, None] * eye(X),
        embed=lambda theta, X: X * theta[None, :],
        gradient=lambda theta, X, Z: -4 * theta * namespace(X).sum(X * Z, axis=0),
    ),
    "scale": Metric(
        start=lambda X, rank: _ones(X, 1),
        matrix=lambda theta, X: theta[0] * eye(X),
        embed=lambda theta, X: X * theta[0],
        gradient=lambda theta, X, Z: -4 * theta * namespace(X).sum(X * Z),
    ),
}


# ------------------------------------------------------------------------------------------------------ the objective


class LaplacianObjective(NamedTuple):
    """Q as a function of the parameters θ of a metric."""

    X: Array
    layout: Any
    metric: Metric

    def value(self, theta: Array) -> float:
        """Q. [learned_laplacian, Eq. 8]"""
        _, _, B = self._parts(theta)
        return -float(namespace(B).sum(B))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Q and dQ/dθ. [learned_laplacian, Eqs 9 to 12]"""
        W, degrees, B = self._parts(theta)
        pairs, X = self.layout.pairs, self.X
        bent = pairs.sums(B)
        share = (bent / degrees)[:, None]  # r_i/d_i
        mass = 0.5 * (share * degrees[:, None] + self.layout.product(W, share)) - bent[:, None]  # M1
        Z = mass * X - share * self.layout.product(W, X) + pairs.product(B, X)
        return -float(namespace(B).sum(B)), self.metric.gradient(theta, X, Z)

    def _parts(self, theta: Array) -> tuple[Array, Array, Array]:
        """W, the degrees, and B = C∘W/√(d_i d_j) where C is not zero, so that Q = -ΣB. [learned_laplacian, Eq. 3]"""
        pairs = self.layout.pairs
        W = self.layout.kernel(self.metric.embed(theta, self.X))
        degrees = self.layout.degrees(W)
        xp = namespace(degrees)
        tiny = float(xp.finfo(degrees.dtype).smallest_normal) ** 0.5  # a point far from all others has no degree left
        degrees = xp.where(degrees > tiny, degrees, tiny)
        root = 1 / xp.sqrt(degrees)
        ends = xp.take(root, pairs.rows) * xp.take(root, pairs.columns)
        return W, degrees, pairs.values * self.layout.at_pairs(W) * ends
