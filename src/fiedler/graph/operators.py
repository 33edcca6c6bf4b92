"""Graph Laplacians, as sparse matrices in the array library of the graph.

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

References
----------
[vonLuxburg07] U. von Luxburg, "A tutorial on spectral clustering", Statistics and Computing 17, 2007.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .._validation import choose
from ..core.arrays import Array, asarray_like, namespace, to_numpy
from ..core.eigen import LaplacianKind, SpectralForm
from ..core.sparse import (
    Sparse,
    add_diagonal,
    csr_parts,
    filter_entries,
    row_indices,
    row_sums,
    scale_rows_columns,
    to_scipy,
    with_data,
)
from ..errors import InputTypeError


class Graph(Protocol):
    """The attributes of a graph from which its Laplacians are computed."""

    @property
    def weights(self) -> Sparse:
        """Symmetric, zero diagonal."""

    @property
    def degrees(self) -> Array:
        """Row sums of the absolute weights, self-loops included."""

    @property
    def loops(self) -> Array | None:
        """Weights of the self-loops, if there are any."""

    @property
    def signed(self) -> bool:
        """Whether weights may be negative."""


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


def _loopless_degrees(graph: Graph) -> Array:
    """Return the diagonal of D - W: degrees without the self-loops, which are on the diagonal of W as well."""
    return graph.degrees if graph.loops is None else graph.degrees - graph.loops


def _normalized_diagonal(graph: Graph) -> Array:
    """Return the diagonal of I - D⁻¹W: 1 for a node with edges, 0 for an isolated one, minus w_ii / d_i."""
    if graph.loops is not None:
        return _loopless_degrees(graph) * power_of_degrees(graph.degrees, -1.0)
    return namespace(graph.degrees).astype(graph.degrees > 0, graph.degrees.dtype)


def _combinatorial(graph: Graph) -> Sparse:
    return add_diagonal(with_data(graph.weights, -csr_parts(graph.weights)[0]), _loopless_degrees(graph))


def _symmetric(graph: Graph) -> Sparse:
    inverse_root = power_of_degrees(graph.degrees, -0.5)
    return add_diagonal(scale_rows_columns(graph.weights, -inverse_root, inverse_root), _normalized_diagonal(graph))


def _random_walk(graph: Graph) -> Sparse:
    return add_diagonal(
        scale_rows_columns(graph.weights, -power_of_degrees(graph.degrees, -1.0)), _normalized_diagonal(graph)
    )


def _signed(graph: Graph) -> Sparse:
    absolute = weighted_degrees(graph.weights, signed=True)
    return add_diagonal(with_data(graph.weights, -csr_parts(graph.weights)[0]), absolute)


LAPLACIANS = {
    "combinatorial": _combinatorial,
    "symmetric": _symmetric,
    "random_walk": _random_walk,
    "signed": _signed,
}


def laplacian(graph: Graph, kind: LaplacianKind = "combinatorial") -> Sparse:
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
        raise InputTypeError(
            f"a Laplacian needs a graph; got {type(graph).__name__}",
            "use AffinityGraph.from_matrix",
            code="not_a_graph",
            parameter="graph",
        )
    return choose(LAPLACIANS, kind, option="kind")(graph)


# ------------------------------------------------------------------------------------- input of the eigensolvers


def spectral_form(graph: Graph, kind: LaplacianKind = "symmetric") -> SpectralForm:
    """Return the Laplacian as a symmetric eigenproblem: matrix, exact null vectors, spectral bound and row scaling.

    ``random_walk`` is solved through the symmetric one: L_rw v = λ v for v = D^-1/2 u. [vonLuxburg07, Prop. 3]
    """
    choose(LAPLACIANS, kind, option="kind")
    count, component, sign = balanced_components(graph)
    normalized = kind in ("symmetric", "random_walk")
    degrees = graph.degrees
    xp = namespace(degrees)
    null_values = xp.where(degrees > 0, xp.sqrt(degrees), 1) if normalized else xp.ones_like(degrees)
    return SpectralForm(
        matrix=laplacian(graph, "symmetric" if normalized else kind),
        null_vectors=lambda k: _null_vectors(null_values, component, sign, min(k, count)),
        upper=2.0 if normalized else _largest_edge_degree(graph),
        row_scale=xp.where(degrees > 0, 1 / null_values, 1) if kind == "random_walk" else None,
    )


def _largest_edge_degree(graph: Graph) -> float:
    """Return the maximum of d_i + d_j over the edges, a bound of the spectrum of D - W. [Anderson & Morley 1985]"""
    _, indices, _ = csr_parts(graph.weights)
    if indices.shape[0] == 0:
        return 1.0
    return float(namespace(indices).max(graph.degrees[row_indices(graph.weights)] + graph.degrees[indices]))


def component_labels(weights: Sparse) -> tuple[int, np.ndarray]:
    """Return the number of connected components and each node's, numbered by decreasing size."""
    count, labels = connected_components(to_scipy(weights), directed=False)
    by_size = np.argsort(-np.bincount(labels, minlength=count), kind="stable")
    rank = np.empty(count, dtype=np.int64)
    rank[by_size] = np.arange(count)
    return count, rank[labels]


def balanced_components(graph: Graph) -> tuple[int, np.ndarray, np.ndarray]:
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


def _null_vectors(null_values: Array, component: np.ndarray, sign: np.ndarray, count: int) -> Array:
    """Return orthonormal null vectors of the ``count`` largest components: sign times ``null_values``, 0 elsewhere."""
    values = to_numpy(null_values).astype(np.float64)
    basis = np.zeros((len(component), count))
    for c in range(count):
        members = component == c
        basis[members, c] = sign[members] * values[members] / np.linalg.norm(values[members])
    return asarray_like(basis, null_values, dtype=null_values.dtype)
