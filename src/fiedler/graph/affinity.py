"""`AffinityGraph`: a weighted undirected graph, built once and then left alone; everything else takes it from here."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import array_api_compat
import numpy as np
import scipy.sparse as sp

from .._files import atomic_write
from .._validation import check_data, choose
from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.eigen import SpectralForm
from ..core.sparse import Sparse, csr, csr_parts, filter_entries, from_coo, from_scipy, is_sparse, row_indices, to_scipy
from .connect import BRIDGES
from .kernels import Constants
from .laplacian import component_labels, laplacian, spectral_form, weighted_degrees

SYMMETRY_TOLERANCE = 1e-6  # relative to the largest weight: rounding, not structure
FILE_VERSION = 1


class AffinityGraph:
    """A weighted undirected graph, immutable.

    Made by a recipe (``KNNGraph(...).build(X)``) or from a matrix (:meth:`from_matrix`). The weights live where the
    data did: SciPy CSR for NumPy, a CSR tensor for torch, a CuPy matrix for CuPy.

    Parameters
    ----------
    weights : sparse matrix of shape (n_nodes, n_nodes)
        Symmetric, with a zero diagonal; use :meth:`from_matrix` to have that checked.
    signed : bool, default=False
        Whether negative weights (repulsion) are allowed. Degrees are then Σ|w|.
    constants : Constants, optional
        What the kernel took from the data (bandwidth, local scales), for edges to new points.
    recall : float, optional
        The share of true neighbours that the search found; 1 for an exact one.
    loops : array of shape (n_nodes,), optional
        Weights of self-loops, the diagonal of W; only :class:`LabelGraph` has them. They count in the degrees and as
        weight inside a cluster, and leave D - W as it is.

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
        constants: Constants | None = None,
        recall: float | None = None,
        loops: Array | None = None,
    ) -> None:
        self._loops = _read_only(loops)
        self._weights = _freeze(weights)
        self._signed = bool(signed)
        self._constants = constants
        self._recall = recall

    # ------------------------------------------------------------------------------------------------ ways to make one

    @classmethod
    def from_matrix(cls, W: Any, *, signed: bool = False) -> AffinityGraph:
        """A graph from a symmetric affinity matrix, dense or sparse, of any back end.

        The diagonal is not part of a graph and is left out. Asymmetry of the size of rounding is averaged away; more is
        refused, as are NaN, infinity and (unless ``signed``) negative weights.

        Examples
        --------
        >>> AffinityGraph.from_matrix([[1, -1], [-1, 1]])
        Traceback (most recent call last):
        ...
        ValueError: the affinity matrix has negative weights (smallest -1); pass signed=True if they mean repulsion...
        """
        weights = _as_host_matrix(W)
        _check_affinity(weights, signed=signed)
        weights = to_scipy(0.5 * (weights + weights.T))
        home = _home(W)
        return cls(weights if home is None else from_scipy(weights, home), signed=signed)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AffinityGraph:
        """A graph from a file that :meth:`save` wrote. Arrays only: loading runs no code."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no graph file {str(path)!r}") from None
        except Exception as error:  # a damaged archive fails in more ways than can be listed
            raise ValueError(f"{str(path)!r} is not a graph file, or it is damaged: {error}") from error
        try:
            return _from_arrays(cls, arrays)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ValueError(f"{str(path)!r} holds no sound graph: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one ``.npz`` file, whole or not at all."""
        if not str(path).endswith(".npz"):
            raise ValueError(f"graph files end in .npz; got {str(path)!r}")
        W, constants = to_scipy(self._weights), self._constants or Constants()
        optional = {"bandwidth": constants.bandwidth, "scales": constants.scales, "metric": constants.metric}
        optional |= {"neighbors": constants.neighbors}
        optional |= {"recall": self._recall, "loops": self._loops}
        arrays: dict[str, Any] = {name: to_numpy(value) for name, value in optional.items() if value is not None}
        arrays |= {"data": W.data, "indices": W.indices, "indptr": W.indptr, "shape": np.array(W.shape)}
        arrays |= {"signed": self._signed, "degree": constants.degree, "has_constants": self._constants is not None}
        with atomic_write(path) as draft:
            np.savez_compressed(draft, fiedler_graph=FILE_VERSION, **arrays)

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def weights(self) -> Sparse:
        """The symmetric weight matrix W in CSR with int32 indices, zero diagonal, read-only."""
        return self._weights

    @property
    def signed(self) -> bool:
        """Whether negative weights are allowed."""
        return self._signed

    @property
    def constants(self) -> Constants | None:
        """What the kernel took from the data, or None for a graph from a matrix."""
        return self._constants

    @property
    def recall(self) -> float | None:
        """The share of true neighbours found by the search, estimated on a sample; 1 if exact, None if unknown."""
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

    # -------------------------------------------------------------------------------------------------- what it offers

    @cached_property
    def _components(self) -> tuple[int, np.ndarray]:
        return component_labels(self._weights)

    def components(self) -> tuple[int, np.ndarray]:
        """The number of connected components and each node's, numbered by falling size; isolated nodes count."""
        return self._components

    def laplacian(self, kind: str = "combinatorial") -> Sparse:
        """The Laplacian matrix: 'combinatorial', 'symmetric', 'random_walk' or 'signed'."""
        return laplacian(self, kind)

    def spectral_form(self, kind: str = "symmetric") -> SpectralForm:
        """The Laplacian as an eigenproblem with its null space; what :func:`smallest_eigenpairs` asks for."""
        return spectral_form(self, kind)

    def connect(self, X: Array, how: str = "mst") -> AffinityGraph:
        """A connected graph: the components joined by edges between their closest points.

        Parameters
        ----------
        X : array of shape (n_nodes, n_features)
            The rows that the nodes stand for.
        how : {'mst', 'nearest'}, default='mst'
            'mst' adds the edges of a minimum spanning tree over the components, 'nearest' one edge from every smaller
            component to the largest. An added edge weighs as little as the lightest edge there is (1 if there is none),
            so that a cut through it costs least.

        Returns
        -------
        AffinityGraph
            This graph itself if it is connected.
        """
        X = check_data(X)
        n_components, labels = self.components()
        if X.shape[0] != self.n_nodes:
            raise ValueError(
                f"X has {X.shape[0]} rows, but the graph has {self.n_nodes} nodes; pass the rows it was built on"
            )
        bridges = choose(BRIDGES, how, option="how")
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
        return self.with_weights(joined)

    def with_weights(self, weights: Sparse, **changes: Any) -> AffinityGraph:
        """Other weights on the same nodes, with what else is known of them but for the ``changes``."""
        kept: dict[str, Any] = {
            "signed": self._signed,
            "constants": self._constants,
            "recall": self._recall,
            "loops": self._loops,
        }
        return AffinityGraph(weights, **(kept | changes))


# ---------------------------------------------------------------------------------------------------------- its parts


def _freeze(weights: Sparse) -> Sparse:
    """The same matrix behind read-only views, where the library has such a thing; the caller's arrays stay writable."""
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


def _home(W: Any) -> Array | None:
    """The array that says where ``W`` lives, or None for the host."""
    if is_sparse(W):
        data = csr_parts(W)[0] if hasattr(W, "indptr") or not sp.issparse(W) else None
        return None if data is None or array_api_compat.is_numpy_array(data) else data
    foreign = array_api_compat.is_array_api_obj(W) and not array_api_compat.is_numpy_array(W)
    return W if foreign else None


def _as_host_matrix(W: Any) -> sp.csr_array:
    """The edges of ``W`` as square float CSR on the host, in float32 if it came so: off the diagonal and not zero."""
    host = to_scipy(W) if is_sparse(W) else to_numpy(W)
    if host.ndim != 2 or host.dtype.kind not in "fiub":
        raise ValueError(f"an affinity matrix is square and numeric; got shape {host.shape}, dtype {host.dtype}")
    if host.shape[0] != host.shape[1] or host.shape[0] == 0:
        raise ValueError(f"an affinity matrix is square, one row a node; got shape {host.shape}")
    host = sp.csr_array(host, dtype=np.float32 if host.dtype == np.float32 else np.float64)
    return filter_entries(host, (row_indices(host) != host.indices))


def _check_affinity(W: sp.csr_array, *, signed: bool) -> None:
    """Finite, symmetric, and nonnegative unless signed."""
    if not np.isfinite(W.data).all():
        raise ValueError("the affinity matrix holds NaN or infinity; remove or fill those entries first")
    if W.nnz == 0:
        return
    if not signed and W.data.min() < 0:
        raise ValueError(
            f"the affinity matrix has negative weights (smallest {W.data.min():.3g}); pass signed=True if they mean "
            "repulsion, otherwise shift or clip them"
        )
    asymmetry = abs(W - W.T)
    largest = float(asymmetry.max()) if asymmetry.nnz else 0.0
    if largest > SYMMETRY_TOLERANCE * float(np.abs(W.data).max()):
        raise ValueError(
            f"the affinity matrix is not symmetric (w_ij and w_ji differ by up to {largest:.3g}); "
            "symmetrise it first, for example with (W + W.T) / 2"
        )


def _from_arrays(cls: type[AffinityGraph], arrays: dict[str, np.ndarray]) -> AffinityGraph:
    """A graph from the arrays of a file, none of which is trusted."""
    if "fiedler_graph" not in arrays:
        raise ValueError("it was not written by AffinityGraph.save")
    if (version := int(arrays["fiedler_graph"])) > FILE_VERSION:
        raise ValueError(f"its format {version} is newer than this version reads; update fiedler")
    shape = tuple(int(size) for size in arrays["shape"])
    W = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    W.check_format(full_check=True)
    signed = bool(arrays["signed"])
    _check_affinity(W, signed=signed)
    constants = None
    if arrays["has_constants"]:
        bandwidth = float(arrays["bandwidth"]) if "bandwidth" in arrays else None
        near = int(arrays["neighbors"]) if "neighbors" in arrays else None
        constants = Constants(bandwidth, int(arrays["degree"]), arrays.get("scales"), arrays.get("metric"), near)
    recall = float(arrays["recall"]) if "recall" in arrays else None
    loops = arrays.get("loops")
    if loops is not None and (loops.shape != shape[:1] or not np.isfinite(loops).all() or loops.min() < 0):
        raise ValueError("its self-loops are not one nonnegative number a node")
    return cls(to_scipy(W), signed=signed, constants=constants, recall=recall, loops=loops)
