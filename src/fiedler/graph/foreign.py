"""Graphs of networkx and igraph, and the cells of AnnData objects, as an affinity graph or as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import import_optional
from ..errors import InputError
from .affinity import AffinityGraph

CONNECTIVITIES, PRINCIPAL_COMPONENTS = "connectivities", "X_pca"


def rows_or_graph(X: Any) -> Any:
    """Return the graph of an object of networkx or igraph, the graph or rows of AnnData, and anything else as it is.

    Examples
    --------
    >>> rows_or_graph([[1.0, 2.0]])
    [[1.0, 2.0]]
    """
    library = type(X).__module__.partition(".")[0]
    if library == "networkx" and hasattr(X, "adj"):
        return from_networkx(X)
    if library == "igraph" and hasattr(X, "get_edgelist"):
        return from_igraph(X)
    if library == "anndata" and hasattr(X, "obsp"):
        return cells_of(X)
    return X


def from_networkx(graph: Any) -> AffinityGraph:
    """Return the graph of a networkx object; edges without a ``weight`` have weight 1."""
    networkx = import_optional("networkx", extra="table", purpose="graphs of networkx")
    _check_undirected(graph.is_directed(), "networkx")
    return AffinityGraph.from_matrix(networkx.to_scipy_sparse_array(graph, weight="weight", dtype=np.float64))


def from_igraph(graph: Any) -> AffinityGraph:
    """Return the graph of an igraph object; without an edge attribute ``weight``, edges have weight 1."""
    _check_undirected(graph.is_directed(), "igraph")
    edges = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights = np.array(graph.es["weight"] if "weight" in graph.es.attributes() else np.ones(len(edges)), dtype=float)
    n = graph.vcount()
    half = sp.csr_array((weights, (edges[:, 0], edges[:, 1])), shape=(n, n))
    return AffinityGraph.from_matrix(half + half.T)


def _check_undirected(is_directed: bool, library: str) -> None:
    if is_directed:
        raise InputError(
            f"the graph of {library} is directed, and clusters are those of undirected graphs",
            "pass graph.to_undirected()" if library == "networkx" else "pass graph.as_undirected()",
            code="directed_graph",
            parameter="X",
        )


def choose_representation(adata: Any, *, allow_graph: bool = True) -> str:
    """Return the name of the graph or of the rows by which cells are compared by default."""
    if allow_graph and CONNECTIVITIES in adata.obsp:
        return CONNECTIVITIES
    return PRINCIPAL_COMPONENTS if PRINCIPAL_COMPONENTS in adata.obsm else "X"


def cells_of(adata: Any, use_rep: str | None = None) -> Any:
    """Return the graph of the cells of an AnnData object, or their rows.

    Parameters
    ----------
    adata : AnnData
    use_rep : str, optional
        The rows in ``adata.obsm``, or ``"X"``. By default the graph in ``adata.obsp["connectivities"]``, else the rows
        in ``adata.obsm["X_pca"]``, else ``adata.X``.
    """
    use_rep = use_rep or choose_representation(adata)
    if use_rep == CONNECTIVITIES and CONNECTIVITIES in adata.obsp:
        return AffinityGraph.from_matrix(adata.obsp[CONNECTIVITIES])
    if use_rep == "X":
        return _matrix_of(adata)
    if use_rep not in adata.obsm:
        raise InputError(
            f"there is no {use_rep!r} in adata.obsm",
            f"choose one of {[*adata.obsm.keys(), 'X']}",
            code="no_such_representation",
            parameter="use_rep",
            value=use_rep,
            options=[*adata.obsm.keys(), "X"],
        )
    return np.asarray(adata.obsm[use_rep])


def _matrix_of(adata: Any) -> Any:
    """Return the matrix ``adata.X``."""
    try:
        rows = adata.X[:] if adata.isbacked else adata.X
    except KeyError:  # of a file without X
        rows = None
    if rows is None:
        raise InputError(
            "the AnnData object has no X",
            f"choose one of {list(adata.obsm.keys())} in obsm with use_rep" if adata.obsm else "add X",
            code="no_matrix",
            parameter="use_rep",
        )
    return sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows)


def refuse_affinity_as_rows(X: Any) -> None:
    """Raise an error if sparse rows look like an affinity matrix, whose rows are seldom meant to be compared."""
    if not sp.issparse(X) or X.shape[0] != X.shape[1] or X.shape[0] < 3:
        return
    matrix = sp.csr_array(X)
    if matrix.nnz and matrix.data.min() >= 0 and abs(matrix - matrix.T).max() == 0:
        raise InputError(
            f"X is a symmetric sparse matrix of shape {X.shape}, which looks like a graph",
            "pass AffinityGraph.from_matrix(X) if it is one, or graph=KNNGraph() if its rows are features",
            code="affinity_or_features",
            parameter="X",
        )
