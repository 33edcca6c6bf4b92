"""The Hessian operator: a quadratic form H that is zero for functions which are affine on a flat manifold.

    f'Hf = Σ_i ‖W_i' f(N_i)‖²,   W_i an orthonormal basis of the quadratic functions on the neighbourhood N_i of row i
                                 that are orthogonal to the constant and linear ones        [Donoho & Grimes 2003]

Linear and quadratic functions are those of tangent coordinates, the d leading principal components of the neighbours.
Unlike the Laplacian, whose energy tr(f'Lf) is zero for constants alone, H has a null space of d + 1 dimensions on a
manifold that is isometric to an open connected set of the plane, convex or not: smoothing by it does not flatten.
scikit-learn's ``LocallyLinearEmbedding(method="hessian")`` is the same where a neighbourhood has as many rows as a
quadratic function has coefficients; of larger ones it penalises everything that is not linear.

References
----------
D. L. Donoho, C. Grimes, "Hessian eigenmaps: locally linear embedding techniques for high-dimensional data", PNAS 100,
2003.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._typing import MatrixLike
from .._validation import check_int
from ..core.arrays import Array, asarray_like, eps, namespace, row_blocks, to_numpy
from ..core.eigen import SpectralForm, smallest_eigenpairs, spectral_bounds
from ..core.sparse import Sparse, csr_parts, from_coo, row_indices, row_sums, to_scipy
from ..errors import InputError, NotConvergedWarning, warn
from .affinity import AffinityGraph
from .smoothing import dirichlet_energy

RANK_TOL_POWER = 0.5  # directions shorter than eps to this power, relative to the longest, are rounding errors


def n_neighbors_needed(n_dimensions: int) -> int:
    """Return the number of coefficients of a quadratic function, 1 + d + d(d + 1)/2, each of which needs a neighbour.

    Examples
    --------
    >>> n_neighbors_needed(2)
    6
    """
    return 1 + n_dimensions + n_dimensions * (n_dimensions + 1) // 2


def hessian(X: Array, graph: AffinityGraph | Sparse, n_dimensions: int = 2) -> Sparse:
    """Return the matrix of the Hessian operator on rows that lie near a manifold.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows.
    graph : AffinityGraph or sparse matrix of shape (n, n)
        The neighbours of row i are the stored entries of row i, whatever their weights.
    n_dimensions : int, default=2
        The dimension of the manifold, at most that of the rows.

    Returns
    -------
    sparse matrix of shape (n, n)
        Symmetric and positive semidefinite, in double precision, in the array library of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import KNNGraph
    >>> from fiedler.graph import hessian
    >>> X = np.random.RandomState(0).uniform(size=(200, 2))
    >>> H = hessian(X, KNNGraph(8).build(X))
    >>> np.abs(H @ X).max() < 1e-12  # coordinates are affine functions
    np.True_
    """
    d = _check_dimensions(n_dimensions, X.shape[1])
    neighbors = to_scipy(graph.weights if isinstance(graph, AffinityGraph) else graph)
    _check_neighbors(neighbors, X.shape[0], d)
    xp = namespace(X)
    X = xp.astype(X, xp.float64)
    blocks = (columns for _, columns in neighborhoods(neighbors, X))
    triplets = [_triplets(_local_forms(_take_groups(X, columns), d), columns) for columns in blocks]
    rows, columns, data = (xp.concat(parts) for parts in zip(*triplets))
    return from_coo(rows, columns, data, neighbors.shape)


def hessian_form(H: Sparse) -> SpectralForm:
    """Return H as an eigenproblem: its spectrum is not negative, and the constant is a null vector."""
    xp = namespace(csr_parts(H)[0])
    constant = xp.full_like(row_sums(H), H.shape[0] ** -0.5)[:, None]
    return SpectralForm(H, upper=spectral_bounds(H)[1], null_vectors=lambda k: constant)


def _local_forms(rows: Array, d: int) -> Array:
    """Return W_i W_i', shape (m, p, p), of m neighbourhoods of p rows, shape (m, p, D)."""
    xp, p = namespace(rows), rows.shape[1]
    U, _, _, _ = tangent_coordinates(rows, d)
    quadratics = xp.stack([U[:, :, a] * U[:, :, b] for a in range(d) for b in range(a, d)], axis=2)
    affine = xp.concat([xp.full_like(U[:, :, :1], p**-0.5), U], axis=2)
    rest = quadratics - affine @ (xp.matrix_transpose(affine) @ quadratics)
    W, lengths, _ = xp.linalg.svd(rest, full_matrices=False)
    longest = xp.sqrt(xp.sum(quadratics**2, axis=(1, 2)))[:, None]
    W = W * _positive_lengths(lengths, longest)
    return W @ xp.matrix_transpose(W)


def tangent_coordinates(rows: Array, d: int) -> tuple[Array, Array, Array, Array]:
    """Return the leading principal components of m neighbourhoods of p rows, shape (m, p, D).

    Returns
    -------
    U, lengths, directions, centers : arrays of shapes (m, p, d), (m, 1, d), (m, d, D) and (m, 1, D)
        The centred rows are about (U · lengths) @ directions. Columns of U are orthonormal and sum to zero; those of
        directions in which the rows do not differ are zero.
    """
    xp = namespace(rows)
    centers = xp.mean(rows, axis=1, keepdims=True)
    U, lengths, directions = xp.linalg.svd(rows - centers, full_matrices=False)
    kept = _positive_lengths(lengths, lengths[:, :1])[:, :, :d]
    return U[:, :, :d] * kept, lengths[:, None, :d] * kept, directions[:, :d, :], centers


def _positive_lengths(lengths: Array, longest: Array) -> Array:
    """Return 1 for singular values above rounding errors and 0 for others, shape (m, 1, ·)."""
    xp = namespace(lengths)
    return xp.astype(lengths > eps(lengths) ** RANK_TOL_POWER * longest, lengths.dtype)[:, None, :]


def _triplets(forms: Array, columns: Array) -> tuple[Array, Array, Array]:
    """Return row, column and value of every entry of the local forms."""
    xp = namespace(forms)
    flat = lambda A: xp.reshape(xp.broadcast_to(A, forms.shape), (-1,))  # noqa: E731
    return flat(columns[:, :, None]), flat(columns[:, None, :]), flat(forms)


def neighborhoods(neighbors: Any, reference: Array) -> Iterator[tuple[Array, Array]]:
    """Yield nodes and their neighbours, shape (m, p), in blocks of nodes that have equally many of them."""
    counts = np.diff(neighbors.indptr)
    for p in np.unique(counts[counts > 0]):
        nodes = np.flatnonzero(counts == p)
        columns = neighbors.indices[neighbors.indptr[nodes][:, None] + np.arange(p)].astype(np.int64)
        for block in row_blocks(len(nodes), 8 * int(p) * (3 * int(p) + 2 * reference.shape[1]), reference):
            yield asarray_like(nodes[block], reference), asarray_like(columns[block], reference)


def extend_affinely(F: Array, X_new: Array, X: Array, links: Any, d: int) -> Array:
    """Return at new points the affine functions of tangent coordinates that fit ``F`` at the rows they are linked to.

    Such functions have no Hessian. A point without links has zeros.
    """
    xp = namespace(X)
    X, X_new, extended = xp.astype(X, xp.float64), xp.astype(X_new, xp.float64), np.zeros((X_new.shape[0], F.shape[1]))
    F_double = asarray_like(to_numpy(F), X, dtype=xp.float64)
    for nodes, columns in neighborhoods(to_scipy(links), X):
        points, values = xp.take(X_new, nodes, axis=0), _take_groups(F_double, columns)
        extended[to_numpy(nodes)] = to_numpy(_affine_fit(points, _take_groups(X, columns), values, d))
    return asarray_like(extended, F, dtype=F.dtype)


def _affine_fit(points: Array, rows: Array, values: Array, d: int) -> Array:
    """Return at one point a neighbourhood the affine function that fits ``values`` at the rows by least squares."""
    xp = namespace(rows)
    U, lengths, directions, centers = tangent_coordinates(rows, d)
    coordinates = ((points[:, None, :] - centers) @ xp.matrix_transpose(directions)) / xp.where(lengths > 0, lengths, 1)
    fitted = xp.mean(values, axis=1, keepdims=True) + coordinates @ (xp.matrix_transpose(U) @ values)
    return fitted[:, 0, :]


def _take_groups(values: Array, groups: Array) -> Array:
    """Return the rows of groups of m p indices as an array of shape (m, p, ·)."""
    xp = namespace(values)
    return xp.reshape(xp.take(values, xp.reshape(groups, (-1,)), axis=0), (*groups.shape, values.shape[1]))


# --------------------------------------------------------------------------------------------------------------- checks


def _check_dimensions(n_dimensions: object, n_features: int) -> int:
    d = check_int(n_dimensions, "n_dimensions")
    if d > n_features:
        raise InputError(
            f"a manifold of {d} dimensions needs rows of at least {d} columns, but X has {n_features}",
            f"choose at most {n_features} dimensions",
            code="too_many_dimensions",
            parameter="n_dimensions",
            value=d,
            n_features=n_features,
        )
    return d


def _check_neighbors(neighbors: Any, n: int, d: int) -> None:
    if neighbors.shape != (n, n):
        raise InputError(
            f"the graph has {neighbors.shape[0]} nodes, but X has {n} rows",
            "build the graph from the same rows",
            code="graph_size_mismatch",
            parameter="graph",
        )
    counts, needed = np.diff(neighbors.indptr), n_neighbors_needed(d)
    if counts.min() < needed:
        row = int(counts.argmin())
        raise InputError(
            f"a quadratic function in {d} dimensions needs {needed} neighbours, but row {row} has {counts[row]}",
            f"use KNNGraph({needed}) or more neighbours, or fewer dimensions",
            code="too_few_neighbors",
            row=row,
            n_neighbors=int(counts[row]),
            n_needed=needed,
        )


# ---------------------------------------------------------------------------------------------------------------------
# One graph from several on the same nodes: L = Σ_g μ_g L_g, with weights μ chosen without labels.
#
# Combined Laplacians were proposed for learning from labels, which then choose the weights [Argyriou, Herbster & Pontil
# 2005]. Without any, the weights are those of the functions that are smooth on all graphs together [Nie, Li & Li 2016]:
#
#     minimise  Σ_g √tr(Y'L_gY)   subject to   Y'Y = I, Y'1 = 0,        each L_g divided by its mean degree
#
# The concave root lies below its tangent, 1/(2√e_g) tr(Y'L_gY) + const, with e_g = tr(Y'L_gY) at the last Y. So the
# smallest eigenvectors Y of Σ_g μ_g L_g with μ_g ∝ 1/√e_g never raise the sum, and a graph on which the shared
# functions vary more has a smaller weight. Minimising Σ_g μ_g tr(Y'L_gY) over μ as well would select a single graph.
#
# References
# ----------
# A. Argyriou, M. Herbster, M. Pontil, "Combining graph Laplacians for semi-supervised learning", Advances in Neural
# Information Processing Systems 18, 2005.
# F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning", International Joint Conference on
# Artificial Intelligence 2016.

SMALLEST_ENERGY = 1e-8  # per function: a graph with as many components as functions would have an infinite weight


class CombinedGraph(NamedTuple):
    """The combination of several graphs.

    Attributes
    ----------
    graph : AffinityGraph
        Its weights are Σ_g μ_g W_g / d̄_g, with d̄_g the mean degree of graph g.
    weights : ndarray of shape (n_graphs,)
        μ, which sums to one.
    objectives : ndarray of shape (n_iterations,)
        Σ_g √tr(Y'L_gY) after each iteration.
    """

    graph: AffinityGraph
    weights: np.ndarray
    objectives: np.ndarray


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
        warn(
            f"the weights of the graphs did not converge within max_iter={max_iter} iterations",
            "raise max_iter or tol",
            category=NotConvergedWarning,
            max_iter=max_iter,
        )
    return CombinedGraph(_weighted_sum(checked, weights * scales), weights, np.array(objectives))


def _weighted_sum(graphs: Sequence[AffinityGraph], factors: np.ndarray) -> AffinityGraph:
    """Return the graph with the weights Σ_g factor_g W_g, whose Laplacian is Σ_g factor_g L_g."""
    xp, shape = namespace(graphs[0].degrees), (graphs[0].n_nodes, graphs[0].n_nodes)
    rows = xp.concat([row_indices(graph.weights) for graph in graphs])
    columns = xp.concat([csr_parts(graph.weights)[1] for graph in graphs])
    data = xp.concat([float(factor) * csr_parts(graph.weights)[0] for graph, factor in zip(graphs, factors)])
    return AffinityGraph(from_coo(rows, columns, data, shape), loops=_weighted_loops(graphs, factors))


def _weighted_loops(graphs: Sequence[AffinityGraph], factors: np.ndarray) -> Array | None:
    total = None
    for graph, factor in zip(graphs, factors):
        if graph.loops is not None:
            total = float(factor) * graph.loops + (0 if total is None else total)
    return total


def _check_graphs(graphs: Sequence[AffinityGraph | MatrixLike]) -> list[AffinityGraph]:
    """Validate at least one graph, all on the same nodes and without negative weights, in one array library."""
    checked = [graph if isinstance(graph, AffinityGraph) else AffinityGraph.from_matrix(graph) for graph in graphs]
    if not checked:
        raise InputError("there is no graph to combine", "pass at least one", code="no_graphs", parameter="graphs")
    sizes = sorted({graph.n_nodes for graph in checked})
    if len(sizes) > 1:
        raise InputError(
            f"graphs to combine must have the same nodes; they have {', '.join(map(str, sizes))} of them",
            "build all of them from the same rows",
            code="graph_size_mismatch",
            parameter="graphs",
        )
    if any(graph.has_negative_weights for graph in checked):
        raise InputError(
            "graphs to combine must not have negative weights",
            "use graphs without repulsion",
            code="negative_weights",
            parameter="graphs",
        )
    return checked
