"""One graph from several on the same nodes: L = Σ_g μ_g L_g, with weights μ chosen without labels.

Combined Laplacians were proposed for learning from labels, which then choose the weights [Argyriou, Herbster & Pontil
2005]. Without any, the weights are those of the functions that are smooth on all graphs together [Nie, Li & Li 2016]:

    minimise  Σ_g √tr(Y'L_gY)   subject to   Y'Y = I, Y'1 = 0,        each L_g divided by its mean degree

The concave root lies below its tangent, 1/(2√e_g) tr(Y'L_gY) + const, with e_g = tr(Y'L_gY) at the last Y. So the
smallest eigenvectors Y of Σ_g μ_g L_g with μ_g ∝ 1/√e_g never raise the sum, and a graph on which the shared functions
vary more has a smaller weight. Minimising Σ_g μ_g tr(Y'L_gY) over μ as well would select a single graph.

References
----------
A. Argyriou, M. Herbster, M. Pontil, "Combining graph Laplacians for semi-supervised learning", Advances in Neural
Information Processing Systems 18, 2005.
F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning", International Joint Conference on
Artificial Intelligence 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._typing import MatrixLike
from .._validation import check_int
from ..core.backend import Array, namespace, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.sparse import csr_parts, from_coo, row_indices
from ..errors import InputError, NotConvergedWarning, warn
from .affinity import AffinityGraph
from .smoothing import dirichlet_energy

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
