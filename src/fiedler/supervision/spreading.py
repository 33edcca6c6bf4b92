"""F = (I - αS)⁻¹ Y, S = D^-½WD^-½, sure in every row: labels spread however far [Zhou et al. 2004, Eq. 4].

F falls off exponentially with the distance to the labels, while the tolerance of an iteration is relative to the whole:
far rows would be noise, or zero. So rows that are sure so far are held, and the same equations solved for the others,

    F_U = (I - αS_UU)⁻¹ αS_UR F_R,

whose right-hand side is as small as its solution; and so on outwards. Most graphs need no such step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.backend import Array, asarray_like, eps, identity, namespace, to_numpy
from ..core.linear import SolveResult, conjugate_gradient
from ..core.multiplicative import positive_part
from ..core.sparse import is_nearly_dense, matmul, to_dense
from ..graph.affinity import AffinityGraph
from ..graph.laplacian import power_of_degrees
from ..graph.smoothing import spread

CLOSED_UP_TO = 500  # rows, below which the dense solve is quicker than iterating
CLOSED_IF_FILLED = 5000  # rows, the same for a graph that is sparse in name only
STEPS = 200  # outwards at most
MARGIN = 10.0  # by which a row must be above the error to be sure


def spread_labels(Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int) -> SolveResult:
    """F for nonnegative weights: in closed form for a small or complete graph, else by conjugate gradients."""
    if graph.n_nodes <= CLOSED_UP_TO or (is_nearly_dense(graph.weights) and graph.n_nodes <= CLOSED_IF_FILLED):
        return _closed_form(Y, graph, alpha)
    found = spread(Y, graph, alpha, tol=tol, max_iter=max_iter)
    return _outwards(found, Y, graph, alpha, tol=max(tol, 10 * eps(Y)), max_iter=max_iter)


def _closed_form(Y: Array, graph: AffinityGraph, alpha: float) -> SolveResult:
    """By LAPACK: I - αS = αL + (1-α)I, where L is zero for an isolated node and S as well."""
    xp, L = namespace(Y), to_dense(graph.laplacian("symmetric"))
    isolated = xp.astype(graph.degrees == 0, Y.dtype)[:, None]
    F = xp.linalg.solve(alpha * L + (1 - alpha + alpha * isolated) * identity(L), Y)
    return SolveResult(F, xp.zeros_like(F[0, :]), 1, True)


def _outwards(
    found: SolveResult, Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int
) -> SolveResult:
    """The solution carried on, step by step, to rows where it is smaller than the error of the largest ones."""
    xp, walk = namespace(Y), _walk(graph, alpha, Y)
    reachable = asarray_like(in_a_labelled_component(Y, graph), Y, dtype=Y.dtype)[:, None]
    F, iterations, size, sure = found.solution, found.iterations, _longest_column(Y), xp.zeros_like(reachable)
    for _ in range(STEPS):
        above = xp.max(F, axis=1)[:, None] > MARGIN * tol * size / (1 - alpha)
        sure, before = xp.where(above, reachable, sure), sure
        rest = reachable - sure
        if not bool(xp.any(rest > 0)) or bool(xp.all(sure == before)):
            break
        right = rest * walk(sure * F)
        unit = float(xp.max(right))
        if unit == 0:  # smaller than any number
            break
        step = _restricted(walk, rest, right / unit, tol, max_iter)
        F, iterations = sure * F + unit * positive_part(step.solution), iterations + step.iterations
        size = unit * _longest_column(right / unit)
    return found._replace(solution=F, iterations=iterations)


def _walk(graph: AffinityGraph, alpha: float, reference: Array) -> Callable[[Array], Array]:
    """V -> αSV."""
    root = power_of_degrees(asarray_like(to_numpy(graph.degrees), reference, dtype=reference.dtype), -0.5)[:, None]
    own = 0.0 if graph.loops is None else asarray_like(to_numpy(graph.loops), reference, dtype=reference.dtype)[:, None]
    return lambda V: alpha * root * (matmul(graph.weights, root * V) + own * root * V)


def _restricted(walk: Callable[[Array], Array], rows: Array, right: Array, tol: float, max_iter: int) -> SolveResult:
    """(I - αS_UU)⁻¹ of the right-hand side, U the rows marked by one."""
    ones = namespace(rows).ones_like(rows)[:, 0]
    return conjugate_gradient(lambda V: V - rows * walk(rows * V), right, diagonal=ones, tol=tol, max_iter=max_iter)


def _longest_column(Y: Array) -> float:
    xp = namespace(Y)
    return float(xp.max(xp.sqrt(xp.sum(Y * Y, axis=0))))


def in_a_labelled_component(Y: Array, graph: AffinityGraph) -> np.ndarray:
    """Whether a row lies in a component of the graph in which some row has a label."""
    _, component = graph.components()
    labelled = to_numpy(namespace(Y).sum(Y, axis=1)) > 0
    return np.isin(component, component[labelled])
