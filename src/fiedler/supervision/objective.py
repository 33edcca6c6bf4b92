"""The objective of the learned Laplacian and its gradient. Paper key: learned_laplacian.

    Q(A) = Σ_ij C_ij l_ij,   l_ij = δ_ij - w_ij/√(d_i d_j),   w_ij = exp(-‖A(x_i - x_j)‖²)             (Eqs 3, 4, 8)

C is ½ for both orders of a must-link, -½ for both orders of a cannot-link, plus ½λ for each direction in which one
point is among the N nearest neighbours of the other. With B = C∘W/√(d_i d_j) and its row sums r, Eqs 9 to 12 add up to

    M_ij = ½ w_ij (r_i/d_i + r_j/d_j) - B_ij,     dQ/dA = -4 A X'(diag(M1) - M)X                 (samples as rows)

so no d x d matrix per pair is formed: the cost is one product of a matrix the size of the graph with X, and one of X
with itself. With s_ij = w_ij/√(d_i d_j), which is between 0 and 1, Q is a sum of squares minus a constant,

    Q(A) = Σ_ij r_ij² - Σ_{C>0} C_ij,     r_ij = √(C_ij (1 - s_ij)) if C_ij > 0, else √(-C_ij s_ij),

as the Levenberg-Marquardt algorithm needs it (section III-C). The product of its Jacobian with a vector takes three
products of the size of the graph. C and B are sparse. The pairs with a weight are all pairs (`DenseWeights`) or those
of a sparse graph (`SparseWeights`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import device
from scipy.optimize import OptimizeResult, minimize, minimize_scalar

from .._records import FitHistory
from ..core.arrays import Array, asarray_like, eps, is_numpy, namespace, to_numpy
from ..core.fitting import stage
from ..core.linear import conjugate_gradient
from ..core.sparse import csr_parts, from_coo, from_scipy_like, matmul, row_indices, row_sums, to_scipy, with_data
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints
from ..graph.kernels import pair_distances
from .llgc import spread_labels

PairWeight: TypeAlias = float | np.ndarray  # one weight for all pairs of a kind, or one per pair


class DenseWeights:
    """Weights of all pairs, stored as an (n, n) array."""

    def __init__(self, pairs: sp.csr_array, reference: Array) -> None:
        self.pairs = SparsityPattern(pairs, reference)
        self._flat_indices = asarray_like(
            row_indices(pairs).astype(np.int64) * pairs.shape[0] + pairs.indices, reference
        )

    def kernel(self, Y: Array) -> Array:
        """Return w_ij = exp(-‖y_i - y_j‖²), w_ii = 0. [learned_laplacian, Eq. 4]"""
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
        """Return the sums Σ_j w_ij."""
        return namespace(W).sum(W, axis=1)

    def at_pairs(self, W: Array) -> Array:
        """Return the weights at the entries where C is not zero."""
        xp = namespace(W)
        return xp.take(xp.reshape(W, (-1,)), self._flat_indices)

    def product(self, W: Array, X: Array) -> Array:
        """Return WX."""
        return W @ X


class SparseWeights:
    """Weights of the edges of a sparse graph and of the constrained pairs, one value per stored entry."""

    def __init__(self, pairs: sp.csr_array, edges: sp.csr_array, reference: Array) -> None:
        n = edges.shape[0]
        rows = np.concatenate([row_indices(edges), row_indices(pairs)])
        columns = np.concatenate([edges.indices, pairs.indices])
        union = from_coo(rows, columns, np.concatenate([np.zeros(edges.nnz), pairs.data]), (n, n))
        self.pairs = SparsityPattern(pairs, reference)
        numbered = sp.csr_array((np.arange(1, union.nnz + 1), union.indices, union.indptr), shape=union.shape)
        positions = np.asarray(numbered[row_indices(pairs), pairs.indices]).ravel() - 1
        self._pair_positions = asarray_like(positions.astype(np.int64), reference)
        self._edges = SparsityPattern(union, reference)

    def kernel(self, Y: Array) -> Array:
        """Return w_ij = exp(-‖y_i - y_j‖²), w_ii = 0. [learned_laplacian, Eq. 4]"""
        distances = pair_distances(Y, Y, self._edges.rows, self._edges.columns)
        return namespace(Y).exp(-(distances**2))

    def degrees(self, W: Array) -> Array:
        """Return the sums Σ_j w_ij over the edges."""
        return self._edges.sums(W)

    def at_pairs(self, W: Array) -> Array:
        """Return the weights at the entries where C is not zero."""
        return namespace(W).take(W, self._pair_positions)

    def product(self, W: Array, X: Array) -> Array:
        """Return WX."""
        return self._edges.product(W, X)


class SparsityPattern:
    """Positions of the entries of a sparse matrix; values at these positions are vectors, such as ``values``."""

    def __init__(self, matrix: sp.csr_array, reference: Array) -> None:
        self.matrix = from_scipy_like(matrix, reference)
        self.values, self.columns, _ = csr_parts(self.matrix)
        self.rows = row_indices(self.matrix)
        if is_numpy(self.rows) and not is_numpy(reference):  # an array library without sparse matrices
            self.values, self.columns, self.rows = (
                asarray_like(part, reference) for part in (self.values, self.columns, self.rows)
            )

    def sums(self, values: Array) -> Array:
        """Return the row sums of the matrix with these values, shape (n,)."""
        return row_sums(with_data(self.matrix, values), values)

    def product(self, values: Array, X: Array) -> Array:
        """Multiply the matrix with these values by ``X``."""
        return matmul(with_data(self.matrix, values), X)


def coefficients(
    n: int,
    must_link: np.ndarray,
    cannot_link: np.ndarray,
    weights: tuple[PairWeight, PairWeight],
    neighbors: sp.csr_array,
    lam: float,
) -> sp.csr_array:
    """Return C, with the weights of the two kinds of pairs and λ for the neighbourhoods. [learned_laplacian, Eq. 8]"""
    total = 0.5 * lam * (neighbors + neighbors.T)
    for pairs, weight, sign in ((must_link, weights[0], 0.5), (cannot_link, weights[1], -0.5)):
        values = sign * np.broadcast_to(np.asarray(weight, dtype=np.float64), len(pairs))
        directed = sp.csr_array((values, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        total = total + directed + directed.T
    return to_scipy(total)


class Metric(NamedTuple):
    """A family of matrices A(θ): the start of θ, A itself, XA', and dQ/dθ from Z."""

    # Z is (diag(M1) - M)X with w_ij r_i/d_i in place of the symmetric ½ w_ij (r_i/d_i + r_j/d_j), which saves a
    # product: the symmetric part of X'Z is the same.

    start: Callable[[Array, int], Array]
    matrix: Callable[[Array, Array], Array]
    embed: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array, Array], Array]


def feature_identity(X: Array) -> Array:
    """Return the identity matrix of size n_features, in the array library, dtype and device of ``X``."""
    return namespace(X).eye(X.shape[1], dtype=X.dtype, device=device(X))


def _ones(X: Array, count: int) -> Array:
    return namespace(X).ones_like(X[0, :count])


_FULL = Metric(
    start=lambda X, rank: feature_identity(X),
    matrix=lambda theta, X: theta,
    embed=lambda theta, X: X @ theta.T,
    gradient=lambda theta, X, Z: -2 * theta @ (X.T @ Z + Z.T @ X),
)
METRIC_FAMILIES = {
    "full": _FULL,
    "low_rank": _FULL._replace(start=lambda X, rank: namespace(X).linalg.svd(X, full_matrices=False)[2][:rank, :]),
    "diagonal": Metric(
        start=lambda X, rank: _ones(X, X.shape[1]),
        matrix=lambda theta, X: theta[:, None] * feature_identity(X),
        embed=lambda theta, X: X * theta[None, :],
        gradient=lambda theta, X, Z: -4 * theta * namespace(X).sum(X * Z, axis=0),
    ),
    "scale": Metric(
        start=lambda X, rank: _ones(X, 1),
        matrix=lambda theta, X: theta[0] * feature_identity(X),
        embed=lambda theta, X: X * theta[0],
        gradient=lambda theta, X, Z: -4 * theta * namespace(X).sum(X * Z),
    ),
}


# Q is NaN after a step that is too long, and the step is undone: no reason for a warning.
_may_overflow = np.errstate(over="ignore", invalid="ignore")


class Residuals(NamedTuple):
    """Residuals r, of which Q is the sum of squares up to a constant, and products with their Jacobian J."""

    loss: float  # Q
    values: Array  # (m,)
    forward: Callable[[Array], Array]  # Jv, of v in the shape of θ
    adjoint: Callable[[Array], Array]  # J'u


class LaplacianObjective(NamedTuple):
    """Objective Q as a function of the parameters θ of a metric."""

    X: Array
    layout: DenseWeights | SparseWeights
    metric: Metric

    @_may_overflow
    def value(self, theta: Array) -> float:
        """Return Q. [learned_laplacian, Eq. 8]"""
        _, _, weights, scaling = self._parts(theta)
        B = self.layout.pairs.values * weights * scaling
        return -float(namespace(B).sum(B))

    @_may_overflow
    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return Q and dQ/dθ. [learned_laplacian, Eqs 9 to 12]"""
        W, degrees, weights, scaling = self._parts(theta)
        B = self.layout.pairs.values * weights * scaling
        return -float(namespace(B).sum(B)), self._gradient(theta, W, degrees, B)

    @_may_overflow
    def residuals(self, theta: Array) -> Residuals:
        """Return the residuals at θ, whose squares add up to Q + Σ_{C>0} C_ij."""
        W, degrees, weights, scaling = self._parts(theta)
        similarity = weights * scaling
        C, xp = self.layout.pairs.values, namespace(similarity)
        size, joins = xp.abs(C), C > 0
        smallest = eps(similarity) ** 0.5  # of 1 - s, below which it is rounding: two copies far from all other rows
        resolved = 1 - similarity > smallest
        rest = xp.where(resolved, 1 - similarity, smallest)
        values = xp.sqrt(size * xp.where(joins, rest, similarity))
        # dr = slope · d log s, with d log s = -d‖y_i - y_j‖² - ½(dd_i/d_i + dd_j/d_j)
        slope = 0.5 * xp.where(joins, xp.where(resolved, -similarity * xp.sqrt(size / rest), 0), values)

        def forward(direction: Array) -> Array:
            return slope * self._change_of_log_similarity(theta, direction, W, degrees)

        return Residuals(
            -float(xp.sum(C * similarity)), values, forward, lambda u: -self._gradient(theta, W, degrees, slope * u)
        )

    def _change_of_log_similarity(self, theta: Array, direction: Array, W: Array, degrees: Array) -> Array:
        """Return the derivative of log s_ij along a direction; Y = XA' is linear in θ."""
        xp, pairs, product = namespace(theta), self.layout.pairs, self.layout.product
        Y, dY = self.metric.embed(theta, self.X), self.metric.embed(direction, self.X)
        inner = xp.sum(Y * dY, axis=1)
        crossed = xp.sum(Y * product(W, dY) + dY * product(W, Y), axis=1)
        change = -2 * (degrees * inner - crossed + product(W, inner[:, None])[:, 0]) / degrees  # dd_i/d_i
        gap, dgap = (xp.take(V, pairs.rows, axis=0) - xp.take(V, pairs.columns, axis=0) for V in (Y, dY))
        return -2 * xp.sum(gap * dgap, axis=1) - 0.5 * (xp.take(change, pairs.rows) + xp.take(change, pairs.columns))

    def _gradient(self, theta: Array, W: Array, degrees: Array, B: Array) -> Array:
        """Return the derivative of -Σ B_ij by θ, for B = C∘W/√(d_i d_j) with a symmetric C."""
        pairs, X = self.layout.pairs, self.X
        r = pairs.sums(B)
        ratio = (r / degrees)[:, None]  # r_i/d_i
        row_sums_M = 0.5 * (ratio * degrees[:, None] + self.layout.product(W, ratio)) - r[:, None]  # M1
        Z = row_sums_M * X - ratio * self.layout.product(W, X) + pairs.product(B, X)
        return self.metric.gradient(theta, X, Z)

    def _parts(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return W, the degrees, and w_ij and 1/√(d_i d_j) where C is stored. [learned_laplacian, Eq. 3]"""
        pairs = self.layout.pairs
        W = self.layout.kernel(self.metric.embed(theta, self.X))
        degrees = self.layout.degrees(W)
        xp = namespace(degrees)
        tiny = float(xp.finfo(degrees.dtype).smallest_normal) ** 0.5  # the degree of an outlier underflows
        degrees = xp.where(degrees > tiny, degrees, tiny)
        root = 1 / xp.sqrt(degrees)
        scaling = xp.take(root, pairs.rows) * xp.take(root, pairs.columns)
        return W, degrees, self.layout.at_pairs(W), scaling


# Minimisers of the learned Laplacian's objective: the doubling rule of the paper, and two with a penalty.
#
# L-BFGS uses the gradient alone. Levenberg-Marquardt, which the paper names (section III-C), uses that the objective is
# a sum of squares, and solves its linear systems by conjugate gradients: no matrix of the size of A squared is formed.

FIRST_DAMPING = 1e-3  # of Levenberg-Marquardt, relative to the curvature along the gradient
SMALLEST_DECREASE = 1e-9  # of the objective, relative to its size, at which Levenberg-Marquardt has converged
MAX_INNER_ITERATIONS = 100  # of conjugate gradients in one step
INNER_TOL = 1e-3  # relative residual of the linear system of a step


class DescentResult(NamedTuple):
    """The parameters that a minimisation reached, and how it ended."""

    theta: Array
    history: FitHistory
    n_iter: int
    converged: bool
    n_failures: int = 0


ValueAndGradient = Callable[[Array], tuple[float, Array]]


def doubling_descent(evaluate: ValueAndGradient, theta: Array, *, max_iter: int) -> DescentResult:
    """Minimise by at most ``max_iter`` gradient steps with the doubling rule. [learned_laplacian, Fig. 1]"""
    # The rate doubles after a step that does not increase Q; otherwise the step is undone and the rate halves.
    (value, gradient), rate = evaluate(theta), 1.0
    values, rates, n_failures = [value], [rate], 0
    with stage("descent", max_iter) as tick:
        for _ in range(max_iter):
            new_theta = theta - rate * gradient
            new_value, new_gradient = evaluate(new_theta)
            if new_value <= value:  # false for NaN too
                theta, value, gradient, rate = new_theta, new_value, new_gradient, 2 * rate
            else:
                n_failures, rate = n_failures + 1, 0.5 * rate
            values.append(value)
            rates.append(rate)
            tick()
    history = FitHistory(
        np.array(values), maximize=False, terms={"rate": np.array(rates)}, iterations=np.arange(max_iter + 1)
    )
    return DescentResult(theta, history, max_iter, True, n_failures)


def penalized_lbfgs(
    evaluate: ValueAndGradient, center: Array, *, max_iter: int, penalty: float, unit: float, start: Array | None = None
) -> DescentResult:
    """Minimise Q + penalty · unit · ‖θ - θ₀‖²/‖θ₀‖² by L-BFGS, with θ₀ = ``center``, from ``start`` (default θ₀)."""
    # Without the penalty, Q overfits the pairs.
    flat_start = to_numpy(center if start is None else start).astype(np.float64).ravel()
    flat_center = to_numpy(center).astype(np.float64).ravel()
    weight = penalty * unit / float(flat_center @ flat_center)
    objectives: list[float] = []
    penalties: list[float] = []

    def unflatten(flat: np.ndarray) -> Array:
        return namespace(center).reshape(asarray_like(flat, center, dtype=center.dtype), center.shape)

    def penalized(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(unflatten(flat))
        offset, flat_gradient = flat - flat_center, to_numpy(gradient).astype(np.float64).ravel()
        return value + weight * float(offset @ offset), flat_gradient + 2 * weight * offset

    def record(intermediate_result: OptimizeResult) -> None:
        offset = intermediate_result.x - flat_center
        penalties.append(weight * float(offset @ offset))
        objectives.append(float(intermediate_result.fun))
        tick()

    with stage("descent", max_iter, at_most=True) as tick:
        result = minimize(
            penalized, flat_start, jac=True, method="L-BFGS-B", callback=record, options={"maxiter": max_iter}
        )
        if not objectives:  # the start is a minimum already
            record(result)
    history = penalized_history(objectives, penalties, first=min(int(result.nit), 1))
    return DescentResult(unflatten(result.x), history, int(result.nit), bool(result.success))


def levenberg_marquardt(
    residuals: Callable[[Array], Residuals],
    center: Array,
    *,
    max_iter: int,
    penalty: float,
    unit: float,
    start: Array | None = None,
) -> DescentResult:
    """Minimise the same objective as :func:`penalized_lbfgs` by at most ``max_iter`` steps of Levenberg-Marquardt."""
    # A step solves (J'J + (ω + μ)I) δ = -(J'r + ω(θ - θ₀)), with ω the weight of the penalty. It is undone, and the
    # damping μ raised, if Q rises; μ falls the more, the better the model predicted the decrease [Nielsen 1999].
    xp = namespace(center)
    weight = penalty * unit / float(xp.sum(center * center))
    theta = center if start is None else start
    at = residuals(theta)
    offset = theta - center
    value, gradient = at.loss + weight * float(xp.sum(offset * offset)), at.adjoint(at.values) + weight * offset
    damping, growth = FIRST_DAMPING * (_curvature(at, gradient) + weight), 2.0
    values, penalties, n_failures, converged = [value], [value - at.loss], 0, False
    with stage("descent", max_iter, at_most=True) as tick:
        while len(values) <= max_iter and not converged:
            step = _solve_roughly(at, weight + damping, -gradient)
            predicted = damping * float(xp.sum(step * step)) - float(xp.sum(gradient * step))
            new_at, new_offset = residuals(theta + step), theta + step - center
            new_value = new_at.loss + weight * float(xp.sum(new_offset * new_offset))
            smallest = SMALLEST_DECREASE * max(abs(value), 1.0)
            converged = predicted <= smallest
            if new_value <= value:  # false for NaN too
                gain = (value - new_value) / max(predicted, smallest)
                converged = converged or value - new_value <= smallest
                theta, at, offset, value = theta + step, new_at, new_offset, new_value
                gradient = at.adjoint(at.values) + weight * offset
                damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
            else:
                damping, growth, n_failures = damping * growth, 2 * growth, n_failures + 1
            values.append(value)
            penalties.append(value - at.loss)
            tick()
    history = penalized_history(values, penalties, first=0)
    return DescentResult(theta, history, len(values) - 1, converged, n_failures)


def _curvature(at: Residuals, direction: Array) -> float:
    """Return v'J'Jv / v'v; 1 for v = 0."""
    xp = namespace(direction)
    length = float(xp.sum(direction * direction))
    return float(xp.sum(at.forward(direction) ** 2)) / length if length > 0 else 1.0


def _solve_roughly(at: Residuals, shift: float, target: Array) -> Array:
    """Solve (J'J + shift · I) v = b approximately, for arrays of any shape."""
    xp, shape = namespace(target), target.shape
    column = xp.reshape(target, (-1, 1))

    def product(v: Array) -> Array:
        v = xp.reshape(v, shape)
        return xp.reshape(at.adjoint(at.forward(v)) + shift * v, (-1, 1))

    solved = conjugate_gradient(
        product, column, start=xp.zeros_like(column),
        tol=INNER_TOL, max_iter=min(MAX_INNER_ITERATIONS, 2 * math.prod(shape)), warns=False,
    )  # fmt: skip
    return xp.reshape(solved.solution, shape)


def penalized_history(objectives: list[float], penalties: list[float], *, first: int = 1) -> FitHistory:
    """Build a history of the penalised objective with its two terms, the loss Q and the penalty."""
    terms = {"loss": np.subtract(objectives, penalties), "penalty": np.array(penalties)}
    return FitHistory(np.array(objectives), False, terms, iterations=np.arange(first, first + len(objectives)))


def best_scale(value: Callable[[float], float]) -> float:
    """Return the s in [e⁻², e⁴] with the smallest value: a grid search, refined around its best point."""
    grid = np.linspace(-2.0, 4.0, 13)
    best = int(np.argmin([value(float(np.exp(log_scale))) for log_scale in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    result = minimize_scalar(
        lambda log_scale: value(float(np.exp(log_scale))), bounds=bounds, method="bounded", options={"xatol": 0.02}
    )
    return float(np.exp(result.x))


# Score a graph by held-out labels and pairs: how often a row is closer to must-linked than to cannot-linked rows.
#
# The score is one AUC per row, so differences between graphs have a standard error.

MAX_RANKED_ROWS = 300  # constrained rows used at most; more are sampled
DIFFUSION_ALPHA = 0.99  # α of the diffusion that measures closeness


class PairRanking(NamedTuple):
    """Rows with both kinds of links; a query should be closer to its positives (must-links) than to its negatives."""

    rows: np.ndarray  # (r,) row numbers
    queries: np.ndarray  # (m,) positions of the queries among the r
    positives: np.ndarray  # (m, r) bool
    negatives: np.ndarray  # (m, r) bool


def ranking_from_pairs(pairs: PairwiseConstraints, rng: np.random.RandomState) -> PairRanking | None:
    """Collect the rows with must-links as well as cannot-links; None if there are fewer than two."""
    rows = pairs.rows
    if len(rows) == 0:
        return None
    if len(rows) > MAX_RANKED_ROWS:
        rows = np.sort(rng.permutation(rows)[:MAX_RANKED_ROWS])
    groups, n_groups = pairs.groups[rows], int(pairs.groups.max()) + 1
    low, high = np.minimum(groups[:, None], groups[None, :]), np.maximum(groups[:, None], groups[None, :])
    positives = (low == high) & ~np.eye(len(rows), dtype=bool)
    negatives = np.isin(low * n_groups + high, pairs.opposed_groups @ np.array([n_groups, 1]))
    queries = np.flatnonzero(positives.any(axis=1) & negatives.any(axis=1))
    return PairRanking(rows, queries, positives[queries], negatives[queries]) if len(queries) > 1 else None


def ranking_auc(graph: AffinityGraph, ranking: PairRanking) -> np.ndarray:
    """Return one AUC per query: the share of (positive, negative) pairs whose positive is closer by diffusion."""
    # The affinity is that of label spreading, K = (I - αS)⁻¹, with the diagonal scaled to one.
    indicators = np.zeros((graph.n_nodes, len(ranking.rows)))
    indicators[ranking.rows, np.arange(len(ranking.rows))] = 1
    Y = asarray_like(indicators, graph.degrees, dtype=graph.degrees.dtype)
    diffusion = spread_labels(Y, graph, DIFFUSION_ALPHA, tol=1e-6, max_iter=500).solution
    K = to_numpy(diffusion)[ranking.rows].astype(np.float64)
    root = np.sqrt(np.maximum(np.diag(K), np.finfo(float).tiny))
    K = (K / root[:, None] / root[None, :])[ranking.queries]
    rows = zip(K, ranking.positives, ranking.negatives)
    return np.array([_auc(affinities[positives], affinities[negatives]) for affinities, positives, negatives in rows])


def _auc(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return how often a positive value is larger than a negative one, ties counting half."""
    ordered = np.sort(negatives)
    below, up_to = np.searchsorted(ordered, positives, "left"), np.searchsorted(ordered, positives, "right")
    return float((below + up_to).mean() / (2 * len(negatives)))


def select_strongest_penalty(scores: dict[float, np.ndarray]) -> float:
    """Return the first penalty, strongest first, whose AUCs are within one standard error of the best ones."""
    best = max(scores.values(), key=np.mean)
    shortfalls = {penalty: best - auc for penalty, auc in scores.items()}  # row by row
    return next(penalty for penalty, gap in shortfalls.items() if gap.mean() <= gap.std() / math.sqrt(len(gap)) + 1e-12)
