"""Smoothing over a graph; each function takes an (n, k) array and an operator, and computes only products.

=================  ==============================================================================
dirichlet_energy   tr(F'LF) = ½ Σ_ij w_ij ‖F_i - F_j‖²
diffuse            F - step · L F, the explicit step (lapgmm, Eq. 12, with the random-walk L)
iterate            Lᵐ F, the iterated Laplacian
heat_flow          exp(-t L) F, the heat semigroup
resolvent          (1-γ) (I - γ D⁻¹W)⁻¹ P, diffusion anchored at P
spread             (I - α D^-½WD^-½)⁻¹ Y, labels spread over the graph
=================  ==============================================================================

Arrays are NumPy, torch or CuPy arrays, and the operator is of the same library; a SciPy operator is applied to any
array, on the host. `nystrom` extends eigenvectors to new points, and `combine_graphs` weighs graphs by how smooth their
common functions are.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ive

from .._typing import MatrixLike
from .._validation import check_int
from ..core.arrays import Array, asarray_like, eps, is_numpy, namespace, take_rows, to_numpy
from ..core.eigen import smallest_eigenpairs, spectral_bounds
from ..core.linear import SolveResult, chebyshev_factors, conjugate_gradient
from ..core.sparse import Sparse, csr_parts, from_coo, is_sparse, matmul, row_indices
from ..errors import InputError, NotConvergedWarning, shown, warn
from .affinity import AffinityGraph
from .kernels import pair_distances
from .neighbors import k_nearest
from .operators import power_of_degrees, weighted_degrees
from .recipes import link_new_points

MAX_SCALED_TIME = 1e8  # of the heat flow, times half the bound of the spectrum: some 40,000 products


def _apply(L: Sparse, F: Array) -> Array:
    """Return ``L @ F``, or raise an error if the shapes do not match."""
    if not hasattr(F, "shape") or len(F.shape) != 2 or F.shape[0] != L.shape[1]:
        problem = (
            f"F must be an array of shape ({L.shape[1]}, k), with one row per node; got {shown(getattr(F, 'shape', F))}"
        )
        raise InputError(problem, code="wrong_shape", parameter="F")
    return matmul(L, F)


def dirichlet_energy(F: Array, L: Sparse) -> float:
    """Return the Dirichlet energy tr(F'LF), which measures the variation of ``F`` over the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> edge = AffinityGraph.from_matrix([[0, 3], [3, 0]])
    >>> dirichlet_energy(np.array([[0.0], [2.0]]), edge.laplacian())  # 3 · 2²
    12.0
    """
    # [vonLuxburg07, Prop. 1]  f'Lf = 1/2 sum_ij w_ij (f_i - f_j)^2, added over the columns of F
    return float(namespace(F).sum(F * _apply(L, F)))


def diffuse(F: Array, L: Sparse, step: float, n_steps: int = 1) -> Array:
    """Take ``n_steps`` explicit diffusion steps F ← F - step · L F.

    With the random-walk Laplacian and 0 ≤ step ≤ 1 this is [lapgmm, Eq. 12]: (1 - step) F + step · D⁻¹W F.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> edge = AffinityGraph.from_matrix([[0, 1], [1, 0]])
    >>> diffuse(np.array([[1.0], [0.0]]), edge.laplacian("random_walk"), step=0.25).ravel()
    array([0.75, 0.25])
    """
    for _ in range(check_int(n_steps, "n_steps", minimum=0)):
        F = F - step * _apply(L, F)
    return F


def iterate(F: Array, L: Sparse, power: int) -> Array:
    """Return Lᵐ F for m = ``power`` (0 returns F).

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> edge = AffinityGraph.from_matrix([[0, 1], [1, 0]])
    >>> iterate(np.array([[1.0], [0.0]]), edge.laplacian(), power=2).ravel()
    array([ 2., -2.])
    """
    for _ in range(check_int(power, "power", minimum=0)):
        F = _apply(L, F)
    return F


def heat_flow(F: Array, L: Sparse, time: float) -> Array:
    """Return exp(-time · L) F, computed by a Chebyshev series to machine precision.

    exp(-tx) on [0, b] is e^(-tb/2) Σ_j (2 - δ_j0) (-1)^j I_j(tb/2) T_j(2x/b - 1) with Bessel functions I_j; about
    √(tb) products are needed. The matrix may be the random-walk Laplacian: it is enough that its spectrum is real.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> edge = AffinityGraph.from_matrix([[0, 1], [1, 0]])
    >>> heat_flow(np.array([[1.0], [0.0]]), edge.laplacian(), time=np.log(2) / 2).ravel().round(6)
    array([0.75, 0.25])
    """
    if not (isinstance(time, numbers.Real) and 0 <= time <= sys.float_info.max):
        problem = f"time must be finite and non-negative; got {shown(time)}"
        raise InputError(problem, code="invalid_parameter", parameter="time", value=time)
    _, upper = spectral_bounds(L)
    half = 0.5 * max(upper, np.finfo(float).tiny)
    if time * half > MAX_SCALED_TIME:
        problem = f"time={time:.3g} is too long for this graph"
        hint = f"choose at most {MAX_SCALED_TIME / half:.3g}"
        raise InputError(problem, hint, code="time_too_long", parameter="time", value=time)
    coefficients = _heat_coefficients(time * half, eps(F))
    shifted = lambda Y: _apply(L, Y) / half - Y  # noqa: E731
    previous, current = F, shifted(F)
    total = coefficients[0] * previous + (coefficients[1] * current if len(coefficients) > 1 else 0)
    for coefficient, (ahead, back) in zip(coefficients[2:], chebyshev_factors(1.0)):
        previous, current = current, ahead * shifted(current) - back * previous
        total = total + coefficient * current
    return total


def _heat_coefficients(z: float, precision: float) -> list[float]:
    """Return (2 - δ_j0) (-1)^j e^-z I_j(z) for all j at which it exceeds the precision."""
    terms = math.ceil(20 + 4 * (z * max(1.0, -math.log10(precision))) ** 0.5)
    j = np.arange(terms + 1)
    values = np.where(j == 0, 1.0, 2.0) * (-1.0) ** j * ive(j, z)
    needed = np.flatnonzero(np.abs(values) > 0.1 * precision)
    return [float(v) for v in values[: int(needed[-1]) + 1]]


def resolvent(P: Array, graph: AffinityGraph, gamma: float, *, tol: float = 1e-8, max_iter: int = 1000) -> Array:
    """Return (1-γ) (I - γ D⁻¹W)⁻¹ P, the limit of diffusion anchored at ``P``.

    This is the limit of F ← (1-γ)P + γ D⁻¹W F, and the minimiser of (1-γ)/γ Σ d_i ‖F_i - P_i‖² + tr(F'LF). It is
    computed from the symmetric system (D - γW) F = (1-γ) D P by conjugate gradients, for all columns at once. Rows that
    sum to one still do; an isolated node keeps its row.

    Parameters
    ----------
    P : array of shape (n, k)
        The values to smooth.
    graph : AffinityGraph
        A graph with non-negative weights.
    gamma : float
        The amount of smoothing, in [0, 1): 0 returns P; as it approaches 1 every component becomes constant.
    tol : float, default=1e-8
        The relative tolerance of the residual.
    max_iter : int, default=1000
        The maximum number of iterations of conjugate gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> edge = AffinityGraph.from_matrix([[0, 1], [1, 0]])
    >>> resolvent(np.eye(2), edge, 0.5).round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    """
    return _anchored(P, graph, gamma, tol=tol, max_iter=max_iter).solution


def _anchored(P: Array, graph: AffinityGraph, gamma: float, *, tol: float, max_iter: int) -> SolveResult:
    """Return the resolvent with the number of iterations and whether they converged."""
    if not (isinstance(gamma, numbers.Real) and 0 <= gamma < 1):
        problem = f"gamma must be in [0, 1); got {shown(gamma)}"
        raise InputError(problem, code="invalid_parameter", parameter="gamma", value=gamma)
    if graph.signed:
        raise InputError("the resolvent needs non-negative weights, but the graph is signed", code="signed_graph")
    degrees = (
        asarray_like(to_numpy(graph.degrees), P, dtype=P.dtype)
        if namespace(graph.degrees) != namespace(P)
        else graph.degrees
    )
    xp = namespace(P)
    inverse = power_of_degrees(degrees, -1.0)
    diagonal = xp.where(degrees > 0, degrees, 1)
    isolated = (inverse == 0)[:, None]
    right = xp.where(isolated, P, (1 - gamma) * degrees[:, None] * P)
    loops = 0.0 if graph.loops is None else asarray_like(to_numpy(graph.loops), P, dtype=P.dtype)[:, None]
    product = lambda F: diagonal[:, None] * F - gamma * (_apply(graph.weights, F) + loops * F)  # noqa: E731
    return conjugate_gradient(product, right, diagonal=diagonal, start=P, tol=tol, max_iter=max_iter)


def spread(Y: Array, graph: AffinityGraph, alpha: float, *, tol: float = 1e-8, max_iter: int = 1000) -> SolveResult:
    """Return (I - αS)⁻¹ Y with S = D^-½WD^-½, the limit of label spreading up to the factor 1 - α.

    S = D^½ (D⁻¹W) D^-½, so this is the resolvent between two scalings. An isolated node keeps its row.
    [Zhou et al. 2004, Eq. 4]
    """
    xp = namespace(Y)
    degrees = asarray_like(to_numpy(graph.degrees), Y, dtype=Y.dtype)[:, None]
    root = xp.sqrt(xp.where(degrees > 0, degrees, 1))
    inner = _anchored(Y / root, graph, alpha, tol=tol, max_iter=max_iter)
    return inner._replace(solution=xp.where(degrees > 0, root / (1 - alpha), 1) * inner.solution)


# --------------------------------------------------------------------------------------------------------- new points


def nystrom(F: Array, values: Array, kind: str, *, recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Array:
    """Extend eigenvectors ``F`` of a Laplacian to new points, by the row of the eigenequation of a new node.

    For the random walk, D⁻¹W f = (1-λ) f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) (1-λ)); for the combinatorial
    Laplacian, (d - λ) f = W f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) - λ) [Bengio et al. 2004]; for -W ('association'),
    f(x) = Σ_j w(x, x_j) f_j / (-λ). A point that equals a training row takes the values of that row; one without any
    neighbour takes those of the nearest row, with a warning.
    """
    W, xp = link_weights(F, recipe, X_new, X, graph), namespace(F)
    degrees = link_degrees(W, signed=graph.signed)
    relative = values[None, :] / _positive(degrees)[:, None]  # λ / d(x)
    shrink = {"random_walk": (1 - values)[None, :], "association": -relative}.get(kind, 1 - relative)
    average = matmul(W, F) / _positive(degrees)[:, None]
    extended = average / xp.where(shrink > 1e-3, shrink, 1)  # what is not smooth is averaged, not amplified
    return replace_coincident_rows(extended, F, W, to_numpy(degrees) == 0, X_new, X)


def link_weights(F: Array, recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Any:
    """Return the weights from new points to the nodes, in the library of ``F`` (one row per node), which they multiply.

    If a library has no sparse matrices, values of the nodes may be on the host while the points are not.
    """
    W = link_new_points(recipe, X_new, X, graph)
    return W if is_sparse(W) or namespace(W) is namespace(F) else asarray_like(to_numpy(W), F, dtype=F.dtype)


def link_degrees(W: Sparse, *, signed: bool) -> Array:
    """Return the degrees of new points: the sums of their weights, or of the absolute weights on a signed graph."""
    if is_sparse(W):
        return weighted_degrees(W, signed=signed)
    xp = namespace(W)
    return xp.sum(xp.abs(W) if signed else W, axis=1)


def _positive(values: Array) -> Array:
    xp = namespace(values)
    return xp.where(values > 0, values, 1)


def replace_coincident_rows(
    extended: Array, F: Array, W: Sparse, isolated: np.ndarray, X_new: Array, X: Array
) -> Array:
    """Replace extended rows by rows of ``F`` if the new point is a training row or is isolated, with a warning."""
    source = coincident_rows(W, X_new, X)
    unlinked = np.flatnonzero(isolated & (source < 0))
    if len(unlinked):
        warn(
            f"{len(unlinked)} new point(s) have no weight to any row of the graph and take the values of the nearest",
            "use a larger radius or bandwidth, or weight='binary'",
            code="no_weight_to_graph",
            n_points=len(unlinked),
            stacklevel=4,
        )
        points = take_rows(X_new, unlinked)
        source[unlinked] = to_numpy(k_nearest(X, 1, queries=points, method="exact").columns)
    if (source < 0).all():
        return extended
    xp = namespace(F)
    known = asarray_like(source >= 0, F, dtype=xp.bool)
    rows = xp.take(F, asarray_like(np.maximum(source, 0), F, dtype=xp.int64), axis=0)
    return xp.where(known[:, None], rows, extended)


def coincident_rows(W: Sparse, X_new: Array, X: Array) -> np.ndarray:
    """Return, for each new point, the index of an equal training row among those it is linked to, or -1."""
    if is_sparse(W):
        rows, columns = row_indices(W), csr_parts(W)[1]
        if is_numpy(rows) and not is_numpy(X):
            rows, columns = asarray_like(rows, X), asarray_like(columns, X)
    else:
        nearest = k_nearest(X, 1, queries=X_new, method="exact")
        rows, columns = nearest.rows, nearest.columns
    equal = to_numpy(pair_distances(X_new, X, rows, columns)) == 0
    source = np.full(X_new.shape[0], -1, dtype=np.int64)
    source[to_numpy(rows)[equal]] = to_numpy(columns)[equal]
    return source


# ----------------------------------------------------------------------------------------------- one graph from several
#
# Combined Laplacians were proposed for learning from labels, which then choose the weights [Argyriou, Herbster & Pontil
# 2005]. Without any, the weights are those of the functions that are smooth on all graphs together [Nie, Li & Li 2016]:
#
#     minimise  Σ_g √tr(Y'L_gY)   subject to   Y'Y = I, Y'1 = 0,        each L_g divided by its mean degree
#
# The concave root lies below its tangent, 1/(2√e_g) tr(Y'L_gY) + const, with e_g = tr(Y'L_gY) at the last Y. So the
# smallest eigenvectors Y of L = Σ_g μ_g L_g with μ_g ∝ 1/√e_g never raise the sum, and a graph on which the shared
# functions vary more has a smaller weight. Minimising Σ_g μ_g tr(Y'L_gY) over μ as well would select a single graph.
#
# A. Argyriou, M. Herbster, M. Pontil, "Combining graph Laplacians for semi-supervised learning", NIPS 18, 2005.
# F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning", IJCAI 2016.

SMALLEST_ENERGY = 1e-8  # per function: a graph with as many components as functions would have an infinite weight


class CombinedGraph(NamedTuple):
    """The combination of several graphs."""

    graph: AffinityGraph  # with the weights Σ_g μ_g W_g / d̄_g, d̄_g the mean degree of graph g
    weights: np.ndarray  # (n_graphs,), μ, which sums to one
    objectives: np.ndarray  # Σ_g √tr(Y'L_gY) after each iteration


def combine_graphs(
    graphs: Sequence[AffinityGraph | MatrixLike], n_components: int, *, max_iter: int = 100, tol: float = 1e-4
) -> CombinedGraph:
    """Combine graphs on the same nodes with weights that favour those on which common functions are smooth.

    Parameters
    ----------
    graphs : list of AffinityGraph or matrix
        Graphs without negative weights, for example with several numbers of neighbours, kernels or views of the data.
    n_components : int
        The number of functions; that of clusters, less one, suits clustering.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when no weight changes by more than this.

    Returns
    -------
    CombinedGraph
        The graph, the weights and the objective of each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import KNNGraph
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.graph import combine_graphs
    >>> X, _ = two_moons(200, noise=0.05, random_state=0)
    >>> noise = np.random.RandomState(0).normal(size=(200, 2))
    >>> combined = combine_graphs([KNNGraph(8).build(X), KNNGraph(8).build(noise)], n_components=1)
    >>> bool(combined.weights[0] > 0.7)  # the graph of the rows, not that of the noise
    True
    """
    checked, p = _check_graphs(graphs), check_int(n_components, "n_components")
    scales = np.array([1 / max(float(to_numpy(graph.degrees).mean()), 1e-300) for graph in checked])
    laplacians = [graph.laplacian() for graph in checked]
    weights, objectives = np.full(len(checked), 1 / len(checked)), []
    for _ in range(check_int(max_iter, "max_iter")):
        Y = smallest_eigenpairs(_weighted_sum(checked, weights * scales), p + 1, kind="combinatorial").vectors
        energies = np.array([scale * dirichlet_energy(Y, L) for scale, L in zip(scales, laplacians)])
        roots = np.sqrt(np.maximum(energies, p * SMALLEST_ENERGY))
        objectives.append(roots.sum())
        last, weights = weights, (1 / roots) / (1 / roots).sum()
        if np.abs(weights - last).max() <= tol:
            break
    else:
        problem = f"the weights of the graphs did not converge within max_iter={max_iter} iterations"
        warn(problem, "raise max_iter or tol", category=NotConvergedWarning, max_iter=max_iter)
    return CombinedGraph(_weighted_sum(checked, weights * scales), weights, np.array(objectives))


def _weighted_sum(graphs: Sequence[AffinityGraph], factors: np.ndarray) -> AffinityGraph:
    """Return the graph with the weights Σ_g factor_g W_g, whose Laplacian is Σ_g factor_g L_g."""
    xp, shape = namespace(graphs[0].degrees), (graphs[0].n_nodes, graphs[0].n_nodes)
    rows = xp.concat([row_indices(graph.weights) for graph in graphs])
    columns = xp.concat([csr_parts(graph.weights)[1] for graph in graphs])
    data = xp.concat([float(factor) * csr_parts(graph.weights)[0] for graph, factor in zip(graphs, factors)])
    loops = [float(factor) * graph.loops for graph, factor in zip(graphs, factors) if graph.loops is not None]
    return AffinityGraph(from_coo(rows, columns, data, shape), loops=sum(loops) if loops else None)


def _check_graphs(graphs: Sequence[AffinityGraph | MatrixLike]) -> list[AffinityGraph]:
    """Validate at least one graph, all on the same nodes and without negative weights, in one array library."""
    checked = [graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph) for graph in graphs]
    if not checked:
        raise InputError("there is no graph to combine", "pass at least one", code="no_graphs", parameter="graphs")
    sizes = sorted({graph.n_nodes for graph in checked})
    if len(sizes) > 1:
        problem = f"graphs to combine must have the same nodes; they have {', '.join(map(str, sizes))} of them"
        hint = "build all of them from the same rows"
        raise InputError(problem, hint, code="graph_size_mismatch", parameter="graphs")
    if any(graph.has_negative_weights for graph in checked):
        problem = "graphs to combine must not have negative weights"
        raise InputError(problem, "use graphs without repulsion", code="negative_weights", parameter="graphs")
    return checked
