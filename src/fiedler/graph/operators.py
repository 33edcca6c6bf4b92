"""Operators on a graph: Laplacians and the Hessian, as sparse matrices in the array library of the graph.

===============  =============================  ===================================================
combinatorial    D - W                          [vonLuxburg07, 3.1]; Ratio Cut
symmetric        I - D^-1/2 W D^-1/2            [vonLuxburg07, 3.2]; Normalised Cut, NJW
random_walk      I - D^-1 W                     [vonLuxburg07, 3.2]
signed           D̄ - W with D̄ = Σ|w|            Kunegis et al. 2010; positive semidefinite for any signs
===============  =============================  ===================================================

The degrees of a signed graph are Σ|w|, so that the first three are its signed versions too. A self-loop counts both in
the degree and on the diagonal of W, and so does not change D - W. An isolated node has a zero row in all of them (the
identity in the formulas is restricted to nodes with an edge). The multiplicity of the eigenvalue 0 is thus the number
of connected components, isolated nodes included (of balanced components, on a signed graph).

The Hessian operator is a quadratic form H that is zero for functions which are affine on a flat manifold:

    f'Hf = Σ_i ‖W_i' f(N_i)‖²,   W_i an orthonormal basis of the quadratic functions on the neighbourhood N_i of row i
                                 that are orthogonal to the constant and linear ones        [Donoho & Grimes 2003]

Linear and quadratic functions are those of tangent coordinates, the d leading principal components of the neighbours.
Unlike the Laplacian, whose energy tr(f'Lf) is zero for constants alone, H has a null space of d + 1 dimensions on a
manifold that is isometric to an open connected set of the plane, convex or not: smoothing by it does not flatten.
scikit-learn's ``LocallyLinearEmbedding(method="hessian")`` is the same where a neighbourhood has as many rows as a
quadratic function has coefficients; of larger ones it penalises everything that is not linear.

References
----------
[vonLuxburg07] U. von Luxburg, "A tutorial on spectral clustering", Statistics and Computing 17, 2007.
D. L. Donoho, C. Grimes, "Hessian eigenmaps: locally linear embedding techniques for high-dimensional data", PNAS 100,
2003.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .._validation import check_int, choose
from ..core.arrays import Array, asarray_like, eps, namespace, row_blocks, to_numpy
from ..core.eigen import LaplacianKind, SpectralForm, spectral_bounds
from ..core.sparse import (
    Sparse,
    add_diagonal,
    csr_parts,
    filter_entries,
    from_coo,
    row_indices,
    row_sums,
    scale_rows_columns,
    to_scipy,
    with_data,
)
from ..errors import InputError, InputTypeError

if TYPE_CHECKING:
    from .affinity import AffinityGraph


LAPLACIANS = dict.fromkeys(("combinatorial", "symmetric", "random_walk", "signed"))


def weighted_degrees(weights: Sparse, *, signed: bool) -> Array:
    """Return d_i = Σ_j w_ij, or Σ_j |w_ij| on a signed graph."""
    if not signed:
        return row_sums(weights)
    data = csr_parts(weights)[0]
    return row_sums(with_data(weights, namespace(data).abs(data)))


def power_of_degrees(degrees: Array, power: float) -> Array:
    """Return ``degrees ** power``, with 0 for isolated nodes, also those of a degree whose inverse would overflow."""
    xp = namespace(degrees)
    connected = degrees >= xp.finfo(degrees.dtype).smallest_normal
    return xp.where(connected, xp.where(connected, degrees, 1) ** power, 0)


def laplacian(graph: AffinityGraph, kind: LaplacianKind = "combinatorial") -> Sparse:
    """Return the Laplacian matrix of a graph.

    Parameters
    ----------
    graph : AffinityGraph
        The graph.
    kind : {'combinatorial', 'symmetric', 'random_walk', 'signed'}, default='combinatorial'
        The formula: D - W, I - D^-1/2 W D^-1/2, I - D^-1 W, or D - W with degrees Σ|w|.

    Returns
    -------
    sparse matrix of shape (n_nodes, n_nodes)
        In CSR, in the array library of the graph.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> laplacian(path).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  3., -2.],
           [ 0., -2.,  2.]])
    """
    if not hasattr(graph, "weights"):
        problem = f"a Laplacian needs a graph; got {type(graph).__name__}"
        raise InputTypeError(problem, "use AffinityGraph.from_matrix", code="not_a_graph", parameter="graph")
    choose(LAPLACIANS, kind, option="kind")
    W, degrees = graph.weights, graph.degrees
    if kind == "signed":
        return add_diagonal(with_data(W, -csr_parts(W)[0]), weighted_degrees(W, signed=True))
    # A self-loop is in the degree and on the diagonal of W, so that it is not on the diagonal of D - W.
    diagonal = degrees if graph.loops is None else degrees - graph.loops
    if kind == "combinatorial":
        return add_diagonal(with_data(W, -csr_parts(W)[0]), diagonal)
    inverse, root = power_of_degrees(degrees, -1.0), power_of_degrees(degrees, -0.5)
    # The diagonal of I - D⁻¹W is 1 for a node with edges, 0 for an isolated one, minus w_ii / d_i.
    diagonal = namespace(degrees).astype(degrees > 0, degrees.dtype) if graph.loops is None else diagonal * inverse
    scaled = scale_rows_columns(W, -inverse) if kind == "random_walk" else scale_rows_columns(W, -root, root)
    return add_diagonal(scaled, diagonal)


def spectral_form(graph: AffinityGraph, kind: LaplacianKind = "symmetric") -> SpectralForm:
    """Return the Laplacian as a symmetric eigenproblem: matrix, exact null vectors, spectral bound and row scaling.

    ``random_walk`` is solved through the symmetric one: L_rw v = λ v for v = D^-1/2 u. [vonLuxburg07, Prop. 3]
    """
    count, component, sign = balanced_components(graph)
    normalized = kind in ("symmetric", "random_walk")
    degrees = graph.degrees
    xp = namespace(degrees)
    null_values = xp.where(degrees > 0, xp.sqrt(degrees), 1) if normalized else xp.ones_like(degrees)
    data, indices, _ = csr_parts(graph.weights)
    upper = 2.0 if normalized else 1.0
    if not normalized and data.shape[0]:
        # [Anderson & Morley 1985]  the maximum of d_i + d_j over the edges bounds the spectrum of D - W
        upper = float(xp.max(degrees[row_indices(graph.weights)] + degrees[indices]))

    def null_vectors(k: int) -> Array:
        """Return orthonormal null vectors of the largest components: sign times ``null_values``, 0 elsewhere."""
        values, basis = to_numpy(null_values).astype(np.float64), np.zeros((len(component), min(k, count)))
        for c in range(min(k, count)):
            members = component == c
            basis[members, c] = sign[members] * values[members] / np.linalg.norm(values[members])
        return asarray_like(basis, null_values, dtype=null_values.dtype)

    return SpectralForm(
        matrix=laplacian(graph, "symmetric" if normalized else kind),
        null_vectors=null_vectors,
        upper=upper,
        row_scale=xp.where(degrees > 0, 1 / null_values, 1) if kind == "random_walk" else None,
    )


def component_labels(weights: Sparse) -> tuple[int, np.ndarray]:
    """Return the number of connected components and each node's, numbered by decreasing size."""
    count, labels = connected_components(to_scipy(weights), directed=False)
    by_size = np.argsort(-np.bincount(labels, minlength=count), kind="stable")
    rank = np.empty(count, dtype=np.int64)
    rank[by_size] = np.arange(count)
    return count, rank[labels]


def balanced_components(graph: AffinityGraph) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the components that have a null vector: their number, each node's component (-1: none) and its sign.

    These are all components of a graph with non-negative weights. On a signed graph they are the balanced ones: those
    whose nodes can be given signs with s_i s_j w_ij > 0 on every edge. In the double cover, where a negative edge leads
    to the other copy of its node, such a component splits into two.
    """
    count, component = component_labels(graph.weights)
    n = len(component)
    if not graph.signed:
        return count, component, np.ones(n)
    W = to_scipy(graph.weights)
    positive, negative = filter_entries(W, W.data > 0), filter_entries(W, W.data < 0)
    _, double_cover = connected_components(sp.block_array([[positive, negative], [negative, positive]]), directed=False)
    balanced = double_cover[:n] != double_cover[n:]
    first = np.full(count, -1)
    first[component[::-1]] = np.arange(n)[::-1]  # the first node of each component has the sign +1
    sign = np.where(double_cover[:n] == double_cover[:n][first[component]], 1.0, -1.0)
    kept = np.unique(component[balanced])
    renumber = np.full(count, -1)
    renumber[kept] = np.arange(len(kept))
    return len(kept), renumber[component], sign


# ---------------------------------------------------------------------------------------------- the Hessian operator

RANK_TOL_POWER = 0.5  # directions shorter than eps to this power, relative to the longest, are rounding errors


def n_neighbors_needed(n_dimensions: int) -> int:
    """Return 1 + d + d(d + 1)/2, the coefficients of a quadratic function, each of which needs a neighbour."""
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
    neighbors = to_scipy(graph.weights if hasattr(graph, "weights") else graph)
    d = _check_dimensions(n_dimensions, X, neighbors)
    xp = namespace(X)
    X = xp.astype(X, xp.float64)
    triplets = []
    for _, columns in neighborhoods(neighbors, X):
        forms = _local_forms(_take_groups(X, columns), d)
        entries = (columns[:, :, None], columns[:, None, :], forms)
        triplets.append([xp.reshape(xp.broadcast_to(part, forms.shape), (-1,)) for part in entries])
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

    They are U, lengths, directions and centers, of shapes (m, p, d), (m, 1, d), (m, d, D) and (m, 1, D), with the
    centred rows about (U · lengths) @ directions. Columns of U are orthonormal and sum to zero; those of directions in
    which the rows do not differ are zero.
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
        values = _take_groups(F_double, columns)
        U, lengths, directions, centers = tangent_coordinates(_take_groups(X, columns), d)
        offsets = xp.take(X_new, nodes, axis=0)[:, None, :] - centers
        coordinates = (offsets @ xp.matrix_transpose(directions)) / xp.where(lengths > 0, lengths, 1)
        fitted = xp.mean(values, axis=1, keepdims=True) + coordinates @ (xp.matrix_transpose(U) @ values)
        extended[to_numpy(nodes)] = to_numpy(fitted[:, 0, :])
    return asarray_like(extended, F, dtype=F.dtype)


def _take_groups(values: Array, groups: Array) -> Array:
    """Return the rows of groups of m p indices as an array of shape (m, p, ·)."""
    xp = namespace(values)
    return xp.reshape(xp.take(values, xp.reshape(groups, (-1,)), axis=0), (*groups.shape, values.shape[1]))


def _check_dimensions(n_dimensions: object, X: Array, neighbors: Any) -> int:
    """Return the dimension of the manifold; raise an error if the rows, or their neighbours, are too few for it."""
    d, (n, n_features) = check_int(n_dimensions, "n_dimensions"), X.shape
    if d > n_features:
        problem = f"a manifold of {d} dimensions needs rows of at least {d} columns, but X has {n_features}"
        hint = f"choose at most {n_features} dimensions"
        raise InputError(
            problem, hint, code="too_many_dimensions", parameter="n_dimensions", value=d, n_features=n_features
        )
    if neighbors.shape != (n, n):
        problem = f"the graph has {neighbors.shape[0]} nodes, but X has {n} rows"
        raise InputError(problem, "build the graph from the same rows", code="graph_size_mismatch", parameter="graph")
    counts, needed = np.diff(neighbors.indptr), n_neighbors_needed(d)
    if counts.min() < needed:
        row = int(counts.argmin())
        problem = f"a quadratic function in {d} dimensions needs {needed} neighbours, but row {row} has {counts[row]}"
        hint = f"use KNNGraph({needed}) or more neighbours, or fewer dimensions"
        raise InputError(
            problem, hint, code="too_few_neighbors", row=row, n_neighbors=int(counts[row]), n_needed=needed
        )
    return d
