"""`AffinityGraph`: a weighted undirected graph, immutable, on which all models and operators work."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, TypeAlias

import array_api_compat
import numpy as np
import scipy.sparse as sp

from .._typing import MatrixLike
from .._validation import check_bool, check_data, choose
from ..core.arrays import Array, asarray_like, namespace, take_rows, to_numpy
from ..core.eigen import LaplacianKind, SpectralForm
from ..core.sparse import (
    Sparse,
    csr,
    csr_parts,
    filter_entries,
    from_coo,
    from_scipy,
    is_sparse,
    row_indices,
    to_scipy,
)
from ..errors import InputError, InputTypeError, shown
from ..persistence import GRAPH, read_object, write_object
from .kernels import MAX_SHARE, KernelConstants
from .operators import component_labels, laplacian, spectral_form, weighted_degrees
from .tree import BRIDGES

# ---------------------------------------------------------------------------------------------------------------------
# Matrices of weights: what a caller's matrix or one of a file must be to become a graph.

SYMMETRY_TOLERANCE = 1e-6  # relative to the largest weight; a smaller asymmetry is due to rounding
CHUNK = 2**18  # entries that are compared at a time


def as_host_matrix(W: Any) -> sp.csr_array:
    """Return the non-zero off-diagonal entries of ``W`` as square CSR on the host; float32 is kept."""
    try:
        host = to_scipy(W) if is_sparse(W) else to_numpy(W)
    except (ValueError, TypeError):  # a ragged list, or a sparse tensor in another format than CSR
        problem = f"an affinity matrix must have rows of the same length; got {shown(W)}"
        hint = "pass a square array, a SciPy matrix or a tensor in CSR format"
        raise InputError(problem, hint, code="invalid_affinity") from None
    if host.ndim != 2 or host.dtype.kind not in "fiub":
        problem = f"an affinity matrix must be square and numeric; got shape {host.shape}, dtype {host.dtype}"
        raise InputError(problem, code="invalid_affinity")
    if host.shape[0] != host.shape[1] or host.shape[0] == 0:
        problem = f"an affinity matrix must be square, with one row per node; got shape {host.shape}"
        raise InputError(problem, code="invalid_affinity")
    host = sp.csr_array(host, dtype=np.float32 if host.dtype == np.float32 else np.float64)
    return filter_entries(host, (row_indices(host) != host.indices))


def foreign_reference(W: Any) -> Array | None:
    """Return an array that has the library and device of ``W``, or None if these are NumPy's."""
    if is_sparse(W):
        data = csr_parts(W)[0] if hasattr(W, "indptr") or not sp.issparse(W) else None
        return None if data is None or array_api_compat.is_numpy_array(data) else data
    foreign = array_api_compat.is_array_api_obj(W) and not array_api_compat.is_numpy_array(W)
    return W if foreign else None


def check_affinity(W: sp.csr_array, *, signed: bool) -> None:
    """Raise an error unless ``W`` is finite, symmetric, and non-negative or signed."""
    if not np.isfinite(W.data).all():
        problem = "the affinity matrix contains NaN or infinity"
        raise InputError(problem, "remove or fill those entries first", code="not_finite")
    if W.nnz == 0:
        return
    if not _largest(W) <= MAX_SHARE * np.finfo(W.dtype).max:
        problem = "the affinity matrix has weights whose sums could overflow"
        raise InputError(problem, "divide it by its largest weight", code="weights_overflow")
    if not signed and W.data.min() < 0:
        problem = f"the affinity matrix has negative weights (smallest {W.data.min():.3g})"
        hint = "pass signed=True if they mean repulsion, otherwise shift or clip them"
        raise InputError(problem, hint, code="negative_weights", smallest=float(W.data.min()))
    asymmetry = abs(W - W.T)
    largest = float(asymmetry.max()) if asymmetry.nnz else 0.0
    if largest > SYMMETRY_TOLERANCE * _largest(W):
        problem = f"the affinity matrix is not symmetric (w_ij and w_ji differ by up to {largest:.3g})"
        hint = "symmetrise it first, for example with (W + W.T) / 2"
        raise InputError(problem, hint, code="not_symmetric", largest=largest)


def check_stored_weights(W: Any, *, signed: bool) -> None:
    """Raise a ValueError unless a matrix of a file can be the weights of a graph.

    As `check_affinity`, but one more copy of the matrix is all the memory that it needs.
    """
    if not isinstance(W, sp.csr_array) or W.dtype.kind != "f" or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError("the weights of a graph are not a square sparse matrix of floats")
    if not W.has_canonical_format:
        raise ValueError("the weights of a graph are not sorted, or repeated")
    largest = _largest(W)
    if not largest <= MAX_SHARE * np.finfo(W.dtype).max:
        raise ValueError("the weights of a graph are not finite, or their sums could overflow")
    mirrored = W.T.tocsr()
    if not np.array_equal(W.indptr, mirrored.indptr):
        raise ValueError("the weights of a graph are not symmetric")
    for part in _chunks(W.nnz):
        data, columns = W.data[part], W.indices[part]
        if not signed and data.min() < 0:
            raise ValueError("the weights of a graph are negative")
        asymmetry = np.abs(data - mirrored.data[part]).max()
        if not np.array_equal(columns, mirrored.indices[part]) or asymmetry > SYMMETRY_TOLERANCE * largest:
            raise ValueError("the weights of a graph are not symmetric")
        if (np.searchsorted(W.indptr, np.arange(part.start, part.stop), side="right") - 1 == columns).any():
            raise ValueError("a weight joins a node of a graph to itself")


def _largest(W: sp.csr_array) -> float:
    """Return the largest absolute weight, in chunks, without a copy of all."""
    return max((float(np.abs(W.data[part]).max()) for part in _chunks(W.nnz)), default=0.0)


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]


# ----------------------------------------------------------------------------------------------------------- the graph

BridgeRule: TypeAlias = Literal["mst", "nearest"]


class AffinityGraph:
    """A weighted undirected graph, immutable.

    Built by a recipe (``KNNGraph(...).build(X)``) or from a matrix (:meth:`from_matrix`). The weights are stored in the
    library of the data: SciPy CSR for NumPy, a CSR tensor for torch, a CuPy matrix for CuPy.

    Parameters
    ----------
    weights : sparse matrix of shape (n_nodes, n_nodes)
        Symmetric, with a zero diagonal. This is not checked; :meth:`from_matrix` checks it.
    signed : bool, default=False
        Whether negative weights (repulsion) are allowed. Degrees are then Σ|w|.
    constants : KernelConstants, optional
        Constants of the kernel (bandwidth, local scales), needed for edges to new points.
    recall : float, optional
        The fraction of true neighbours that the search found; 1 for an exact search.
    loops : array of shape (n_nodes,), optional
        Weights of self-loops, the diagonal of W; :class:`LabelGraph` has them, and :class:`FullGraph` on request. They
        count in the degrees and as weight inside a cluster, and do not change D - W.

    Examples
    --------
    >>> from fiedler import AffinityGraph
    >>> graph = AffinityGraph.from_matrix([[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    >>> graph
    AffinityGraph(n_nodes=3, n_edges=1, signed=False)
    >>> graph.degrees
    array([2., 2., 0.])
    >>> graph.components()
    (2, array([0, 0, 1]))
    """

    def __init__(
        self,
        weights: Sparse,
        *,
        signed: bool = False,
        constants: KernelConstants | None = None,
        recall: float | None = None,
        loops: Array | None = None,
    ) -> None:
        if not is_sparse(weights):
            problem = f"weights must be a sparse matrix; got {type(weights).__name__}"
            hint = "use AffinityGraph.from_matrix for other matrices"
            raise InputTypeError(problem, hint, code="not_a_graph", parameter="weights")
        self._loops = _read_only(loops)
        self._weights = _freeze(weights)
        self._signed = check_bool(signed, "signed")
        self._constants = constants
        self._recall = recall

    # ---------------------------------------------------------------------------------------------- construction, files

    @classmethod
    def from_matrix(cls, W: MatrixLike, *, signed: bool = False) -> AffinityGraph:
        """Build a graph from a symmetric affinity matrix, dense or sparse, of any array library.

        The diagonal is ignored. An asymmetry of the size of rounding errors is averaged away; a larger one is an error,
        as are NaN, infinity and (unless ``signed``) negative weights.

        Parameters
        ----------
        W : array or sparse matrix of shape (n_nodes, n_nodes)
            The weights.
        signed : bool, default=False
            Whether negative weights (repulsion) are allowed.

        Examples
        --------
        >>> AffinityGraph.from_matrix([[1, -1], [-1, 1]])
        Traceback (most recent call last):
        ...
        fiedler.errors.InputError: the affinity matrix has negative weights (smallest -1); pass signed=True if they ...
        """
        weights = as_host_matrix(W)
        check_affinity(weights, signed=check_bool(signed, "signed"))
        weights = to_scipy(0.5 * weights + 0.5 * weights.T)
        reference = foreign_reference(W)
        return cls(weights if reference is None else from_scipy(weights, reference), signed=signed)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AffinityGraph:
        """Read a graph from a file written by :meth:`save`.

        Loading runs no code from the file.
        """
        return read_object(path, GRAPH, cls)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one ``.safetensors`` file; if writing fails, no partial file is left."""
        write_object(self, path, GRAPH)

    # ------------------------------------------------------------------------------------------------------- properties

    @property
    def weights(self) -> Sparse:
        """The symmetric weight matrix W in CSR with int32 indices, zero diagonal, read-only."""
        return self._weights

    @property
    def signed(self) -> bool:
        """Whether negative weights are allowed."""
        return self._signed

    @property
    def constants(self) -> KernelConstants | None:
        """The constants of the kernel, or None for a graph from a matrix."""
        return self._constants

    @property
    def recall(self) -> float | None:
        """The fraction of true neighbours found by the search, estimated on a sample; 1 if exact, None if unknown."""
        return self._recall

    @property
    def loops(self) -> Array | None:
        """The weights of the self-loops, or None if there are none."""
        return self._loops

    @cached_property
    def has_negative_weights(self) -> bool:
        """Whether any weight is below zero."""
        data = csr_parts(self._weights)[0]
        return bool(namespace(data).any(data < 0))

    @cached_property
    def degrees(self) -> Array:
        """``d_i = Σ_j |w_ij|``, shape (n_nodes,); a self-loop counts once."""
        degrees = weighted_degrees(self._weights, signed=self._signed)
        return degrees if self._loops is None else degrees + self._loops

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self._weights.shape[0])

    @property
    def n_edges(self) -> int:
        """The number of undirected edges."""
        return int(csr_parts(self._weights)[0].shape[0]) // 2

    def __repr__(self) -> str:
        return f"AffinityGraph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, signed={self._signed})"

    def __deepcopy__(self, memo: dict[int, Any]) -> AffinityGraph:
        return self  # immutable, so that clone need not copy it

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._weights = _freeze(self._weights)

    def __check_restored__(self) -> None:
        """Raise a ValueError unless the weights of a graph that was read from a file are those of a graph."""
        check_stored_weights(self._weights, signed=self._signed)

    # ---------------------------------------------------------------------------------------------------------- methods

    @cached_property
    def _components(self) -> tuple[int, np.ndarray]:
        return component_labels(self._weights)

    def components(self) -> tuple[int, np.ndarray]:
        """Return the number of connected components and the component of each node.

        Components are numbered by decreasing size; an isolated node is a component.
        """
        return self._components

    def laplacian(self, kind: LaplacianKind = "combinatorial") -> Sparse:
        """Return the Laplacian matrix; see :func:`fiedler.graph.laplacian` for the kinds."""
        return laplacian(self, kind)

    def spectral_form(self, kind: LaplacianKind = "symmetric") -> SpectralForm:
        """Return the Laplacian as an eigenproblem with its null space, as :func:`smallest_eigenpairs` takes it."""
        return spectral_form(self, kind)

    def connect(self, X: MatrixLike, how: BridgeRule = "mst") -> AffinityGraph:
        """Return a connected graph, in which edges between their closest points join the components.

        Parameters
        ----------
        X : array of shape (n_nodes, n_features)
            The rows on which the graph was built.
        how : {'mst', 'nearest'}, default='mst'
            'mst' adds the edges of a minimum spanning tree over the components, 'nearest' one edge from every smaller
            component to the largest. The weight of an added edge is the smallest weight of the graph (1 if it has no
            edges), so that the new edges are the cheapest to cut. If components of many rows are close to each other
            in many dimensions, an edge may be one of the shortest instead of the shortest; see
            :mod:`fiedler.graph.tree`.

        Returns
        -------
        AffinityGraph
            This object itself if it is already connected.
        """
        return self._connect(check_data(X), how)

    def _connect(self, X: Array, how: str, *, option: str = "how") -> AffinityGraph:
        n_components, labels = self.components()
        if X.shape[0] != self.n_nodes:
            problem = f"X has {X.shape[0]} rows, but the graph has {self.n_nodes} nodes"
            hint = "pass the rows on which it was built"
            raise InputError(problem, hint, code="graph_size_mismatch", n_nodes=self.n_nodes, n_samples=X.shape[0])
        bridges = choose(BRIDGES, how, option=option)
        if n_components == 1:
            return self
        rows, columns = bridges(X, labels)
        data, indices, _ = csr_parts(self._weights)
        xp = namespace(data)
        lightest = float(xp.min(xp.abs(data))) if data.shape[0] else 1.0
        both = asarray_like(np.concatenate([rows, columns]), indices, dtype=indices.dtype)
        mirrored = asarray_like(np.concatenate([columns, rows]), indices, dtype=indices.dtype)
        joined = from_coo(
            xp.concat([row_indices(self._weights), both]),
            xp.concat([indices, mirrored]),
            xp.concat([data, asarray_like(np.full(2 * len(rows), lightest), data, dtype=data.dtype)]),
            self._weights.shape,
        )
        return self._with_weights(joined)

    def reorder(self, order: np.ndarray) -> AffinityGraph:
        """Return the graph with its nodes in another order.

        Parameters
        ----------
        order : ndarray of shape (n_nodes,)
            The old number of every node.

        Examples
        --------
        >>> path = AffinityGraph.from_matrix([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
        >>> path.reorder(np.array([2, 1, 0])).weights.toarray()
        array([[0., 2., 0.],
               [2., 0., 1.],
               [0., 1., 0.]])
        """
        data, columns, _ = csr_parts(self._weights)
        xp, place = namespace(data), asarray_like(np.argsort(order), columns)
        rows, columns = (xp.take(place, ends) for ends in (row_indices(self._weights), columns))
        of_nodes = lambda values: None if values is None else take_rows(values, order)  # noqa: E731
        constants = self._constants
        if constants is not None:
            constants = replace(constants, scales=of_nodes(constants.scales))
        weights = from_coo(rows, columns, data, self._weights.shape)
        return self._with_weights(weights, constants=constants, loops=of_nodes(self._loops))

    def _with_weights(self, weights: Sparse, **changes: Any) -> AffinityGraph:
        """Return a graph with other weights on the same nodes; its other attributes are kept, except ``changes``."""
        return AffinityGraph(weights, **(self._attributes | changes))

    @property
    def _attributes(self) -> dict[str, Any]:
        """The arguments of the constructor besides the weights, by name."""
        return {
            "signed": self._signed,
            "constants": self._constants,
            "recall": self._recall,
            "loops": self._loops,
        }


def _freeze(weights: Sparse) -> Sparse:
    """Return the matrix behind read-only views, if it is SciPy's; the caller's arrays stay writable."""
    if not sp.issparse(weights):
        return weights
    data, indices, indptr = (array.view() for array in csr_parts(weights))
    for view in (data, indices, indptr):
        view.flags.writeable = False
    return csr(data, indices, indptr, weights.shape)


def _read_only(array: Array | None) -> Array | None:
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


# ------------------------------------------------------------------------------------------ objects of other libraries

CONNECTIVITIES, PRINCIPAL_COMPONENTS = "connectivities", "X_pca"


def rows_or_graph(X: Any) -> Any:
    """Return the graph of an object of networkx or igraph, the graph or rows of AnnData, and anything else as it is.

    Edges without a ``weight`` have weight 1.
    """
    library = type(X).__module__.partition(".")[0]
    if library == "anndata" and hasattr(X, "obsp"):
        return cells_of(X)
    is_networkx, is_igraph = library == "networkx" and hasattr(X, "adj"), library == "igraph" and hasattr(X, "es")
    if not (is_networkx or is_igraph):
        return X
    if X.is_directed():
        problem = f"the graph of {library} is directed, and clusters are those of undirected graphs"
        hint = "pass graph.to_undirected()" if is_networkx else "pass graph.as_undirected()"
        raise InputError(problem, hint, code="directed_graph", parameter="X")
    if is_networkx:
        networkx = import_module("networkx")  # X is one of its objects
        return AffinityGraph.from_matrix(networkx.to_scipy_sparse_array(X, weight="weight", dtype=np.float64))
    edges = np.array(X.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights = np.array(X.es["weight"] if "weight" in X.es.attributes() else np.ones(len(edges)), dtype=float)
    half = sp.csr_array((weights, (edges[:, 0], edges[:, 1])), shape=(X.vcount(), X.vcount()))
    return AffinityGraph.from_matrix(half + half.T)


def choose_representation(adata: Any, *, allow_graph: bool = True) -> str:
    """Return the name of the graph or of the rows by which cells are compared by default."""
    if allow_graph and CONNECTIVITIES in adata.obsp:
        return CONNECTIVITIES
    return PRINCIPAL_COMPONENTS if PRINCIPAL_COMPONENTS in adata.obsm else "X"


def cells_of(adata: Any, use_rep: str | None = None) -> Any:
    """Return the graph of the cells of an AnnData object, or their rows.

    These are the rows in ``adata.obsm[use_rep]``, or ``"X"``; by default the graph in ``adata.obsp["connectivities"]``,
    else the rows in ``adata.obsm["X_pca"]``, else ``adata.X``.
    """
    use_rep = use_rep or choose_representation(adata)
    if use_rep == CONNECTIVITIES and CONNECTIVITIES in adata.obsp:
        return AffinityGraph.from_matrix(adata.obsp[CONNECTIVITIES])
    if use_rep == "X":
        try:
            rows = adata.X[:] if adata.isbacked else adata.X
        except KeyError:  # of a file without X
            rows = None
        if rows is None:
            problem = "the AnnData object has no X"
            hint = f"choose one of {list(adata.obsm.keys())} in obsm with use_rep" if adata.obsm else "add X"
            raise InputError(problem, hint, code="no_matrix", parameter="use_rep")
        return sp.csr_array(rows) if sp.issparse(rows) else np.asarray(rows)
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


def refuse_affinity_as_rows(X: Any) -> None:
    """Raise an error if sparse rows look like an affinity matrix, whose rows are seldom meant to be compared."""
    if not sp.issparse(X) or X.shape[0] != X.shape[1] or X.shape[0] < 3:
        return
    matrix = sp.csr_array(X)
    if matrix.nnz and matrix.data.min() >= 0 and abs(matrix - matrix.T).max() == 0:
        problem = f"X is a symmetric sparse matrix of shape {X.shape}, which looks like a graph"
        hint = "pass AffinityGraph.from_matrix(X) if it is one, or graph=KNNGraph() if its rows are features"
        raise InputError(problem, hint, code="affinity_or_features", parameter="X")
