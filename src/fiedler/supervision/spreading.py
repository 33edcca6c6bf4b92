"""Label spreading F = (I - αS)⁻¹ Y, S = D^-½WD^-½, accurate in every row [Zhou et al. 2004, Eq. 4].

F decays exponentially with the distance to the labels, while the tolerance of an iteration is relative to the largest
entries: rows far from any label would be noise, or zero. So rows that are accurate are held fixed, and the same
equations are solved for the others,

    F_U = (I - αS_UU)⁻¹ αS_UR F_R,

whose right-hand side is as small as its solution; this is repeated outwards. Most graphs need no such step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.backend import Array, asarray_like, eps, identity, namespace, positive_part, to_numpy
from ..core.linear import SolveResult, conjugate_gradient
from ..core.sparse import is_nearly_dense, matmul, to_dense
from ..graph.affinity import AffinityGraph
from ..graph.laplacians import power_of_degrees
from ..graph.smoothing import spread

DENSE_SOLVE_MAX_ROWS = 500  # up to this many rows a dense solve is faster than iterating
DENSE_SOLVE_MAX_ROWS_IF_FILLED = 5000  # the same for a sparse matrix that is nearly dense
MAX_OUTWARD_STEPS = 200
ERROR_MARGIN = 10.0  # a row is accurate if its largest entry exceeds the error by this factor


def spread_labels(Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int) -> SolveResult:
    """Return F for non-negative weights: by a dense solve for small or dense graphs, else by conjugate gradients."""
    nearly_dense = is_nearly_dense(graph.weights) and graph.n_nodes <= DENSE_SOLVE_MAX_ROWS_IF_FILLED
    if graph.n_nodes <= DENSE_SOLVE_MAX_ROWS or nearly_dense:
        return _dense_solve(Y, graph, alpha)
    result = spread(Y, graph, alpha, tol=tol, max_iter=max_iter)
    return _extend_outwards(result, Y, graph, alpha, tol=max(tol, 10 * eps(Y)), max_iter=max_iter)


def _dense_solve(Y: Array, graph: AffinityGraph, alpha: float) -> SolveResult:
    """Solve by LAPACK: I - αS = αL + (1-α)I, except that both L and S are zero at an isolated node."""
    xp, L = namespace(Y), to_dense(graph.laplacian("symmetric"))
    isolated = xp.astype(graph.degrees == 0, Y.dtype)[:, None]
    F = xp.linalg.solve(alpha * L + (1 - alpha + alpha * isolated) * identity(L), Y)
    return SolveResult(F, xp.zeros_like(F[0, :]), 1, True)


def _extend_outwards(
    result: SolveResult, Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int
) -> SolveResult:
    """Continue a solution, step by step, to rows where it is smaller than the error of the largest entries."""
    xp, apply_walk = namespace(Y), _walk_operator(graph, alpha, Y)
    reachable = asarray_like(in_labeled_component(Y, graph), Y, dtype=Y.dtype)[:, None]
    F, iterations, converged = result.solution, result.iterations, result.converged
    right_norm, accurate = _max_column_norm(Y), xp.zeros_like(reachable)
    for _ in range(MAX_OUTWARD_STEPS):
        above_error = xp.max(F, axis=1)[:, None] > ERROR_MARGIN * tol * right_norm / (1 - alpha)
        accurate, previous = xp.where(above_error, reachable, accurate), accurate
        remaining = reachable - accurate
        if not bool(xp.any(remaining > 0)) or bool(xp.all(accurate == previous)):
            break
        right = remaining * apply_walk(accurate * F)
        scale = float(xp.max(right))
        if scale == 0:  # underflow
            break
        step = _solve_restricted(apply_walk, remaining, right / scale, tol, max_iter)
        F = accurate * F + scale * positive_part(step.solution)
        iterations, converged = iterations + step.iterations, converged and step.converged
        right_norm = scale * _max_column_norm(right / scale)
    return result._replace(solution=F, iterations=iterations, converged=converged)


def _walk_operator(graph: AffinityGraph, alpha: float, reference: Array) -> Callable[[Array], Array]:
    """Return the function V -> αSV."""
    root = power_of_degrees(asarray_like(to_numpy(graph.degrees), reference, dtype=reference.dtype), -0.5)[:, None]
    loops = (
        0.0 if graph.loops is None else asarray_like(to_numpy(graph.loops), reference, dtype=reference.dtype)[:, None]
    )
    return lambda V: alpha * root * (matmul(graph.weights, root * V) + loops * root * V)


def _solve_restricted(
    apply_walk: Callable[[Array], Array], mask: Array, right: Array, tol: float, max_iter: int
) -> SolveResult:
    """Solve (I - αS_UU) F_U = right, where ``mask`` is one for the rows in U and zero elsewhere."""
    ones = namespace(mask).ones_like(mask)[:, 0]
    return conjugate_gradient(
        lambda V: V - mask * apply_walk(mask * V), right, diagonal=ones, tol=tol, max_iter=max_iter
    )


def _max_column_norm(Y: Array) -> float:
    xp = namespace(Y)
    return float(xp.max(xp.sqrt(xp.sum(Y * Y, axis=0))))


def in_labeled_component(Y: Array, graph: AffinityGraph) -> np.ndarray:
    """Whether each row is in a connected component with at least one labelled row."""
    _, component = graph.components()
    labeled = to_numpy(namespace(Y).sum(Y, axis=1)) > 0
    return np.isin(component, component[labeled])
