"""Recipes, which build a graph from data: parameters and ``build``, with no fitted state.

A recipe has scikit-learn's ``get_params`` and ``set_params``, so a search over an estimator with a recipe as ``graph``
can vary ``graph__n_neighbors``. `as_affinity` accepts what else a ``graph`` parameter may be: a graph, a matrix, a
neighbours transformer or 'precomputed'.

``build`` and ``link`` validate their input and call ``_build`` and ``_link``; estimators call these directly on rows
that they have validated already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._typing import GraphLike, LabelsLike, MatrixLike
from .._validation import check_bool, check_data, check_int, check_positive, choose, did_you_mean, is_foreign, one_of
from ..core.arrays import Array, arange, asarray_like, namespace, normalize_rows, positive_part, to_numpy
from ..core.fitting import dispatch_blocks
from ..core.sparse import Sparse, csr, csr_parts, filter_entries, from_coo, is_sparse, row_indices, with_data
from ..errors import InputError, InputTypeError, shown
from .affinity import AffinityGraph, BridgeRule
from .kernels import (
    KERNELS,
    LOCAL_NEIGHBOR,
    KernelConstants,
    KernelName,
    RowPairs,
    check_complete_graph,
    check_links_to_all,
    edge_weights,
    fit_constants,
    pairwise_distances,
)
from .neighbors import Edges, SearchMethod, from_transformer, k_nearest, unit_rows, within_radius

if TYPE_CHECKING:
    from .constraints import PairwiseConstraints

SymmetrizeRule: TypeAlias = Literal["union", "mutual", "mean"]

# The factor on the weight of an edge, by the number of its ends (1 or 2) that have the other end as a neighbour:
SYMMETRIZE = {
    "union": lambda sides: sides >= 1,
    "mutual": lambda sides: sides >= 2,
    "mean": lambda sides: 0.5 * sides,
}


class _Recipe(BaseEstimator):
    """Base class of the recipes: weighted graphs from directed edges, and links from new points."""

    weight: KernelName
    bandwidth: float | None
    degree: int
    metric: str
    connect: BridgeRule | None
    signed: bool

    @dispatch_blocks
    def build(self, X: MatrixLike) -> AffinityGraph:
        """Build the graph on the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The rows.
        """
        return self._build(check_data(X, min_samples=2))

    def link(self, X_new: MatrixLike, X: MatrixLike, graph: AffinityGraph) -> Sparse:
        """Return the weights (n_new, n) of the edges from new points to the rows of ``X``.

        Parameters
        ----------
        X_new : array or CSR matrix of shape (n_new, n_features)
            The new points.
        X : array or CSR matrix of shape (n, n_features)
            The rows on which ``graph`` was built.
        graph : AffinityGraph
            The graph, whose kernel constants are used.
        """
        if not isinstance(graph, AffinityGraph):
            problem = f"graph must be the AffinityGraph of the rows of X; got {shown(graph)}"
            raise InputTypeError(problem, code="not_a_graph", parameter="graph")
        return self._link(check_data(X_new), check_data(X), graph)

    def _build(self, X: Array) -> AffinityGraph:
        """Build the graph on validated rows."""
        edges, scales = self._search(X)
        return self._weigh(X, edges, scales)

    def _link(self, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
        """Return the weights from validated new points to validated rows."""
        edges, scales = self._search(X, queries=X_new)
        constants = graph.constants or KernelConstants()
        pairs = RowPairs(X_new, X, edges.distances, edges.rows, edges.columns, scales, constants.scales)
        return from_coo(edges.rows, edges.columns, edge_weights(self.weight, pairs, constants), edges.shape)

    def _search(self, X: Array, queries: Array | None = None) -> tuple[Edges, Array | None]:
        """Return the edges and, for the local kernel, the scale of each query."""
        raise NotImplementedError

    def _weigh(self, X: Array, edges: Edges, scales: Array | None, symmetrize: str = "union") -> AffinityGraph:
        """Symmetrise the edges, compute their weights, and check that the weights are valid for a graph."""
        pattern, distances = symmetric_edges(edges, symmetrize)
        factor, columns, _ = csr_parts(pattern)
        rows = row_indices(pattern)
        if not isinstance(distances, np.ndarray) or not is_foreign(X):
            pairs = RowPairs(X, X, distances, rows, columns, scales, scales)
        else:  # a back end without sparse matrices: pattern on the host, kernel where X is
            distances, factor = asarray_like(distances, X), asarray_like(factor, X)
            pairs = RowPairs(X, X, distances, asarray_like(rows, X), asarray_like(columns, X), scales, scales)
        constants = fit_constants(self.weight, distances, bandwidth=self.bandwidth, degree=self.degree, scales=scales)
        weights = edge_weights(self.weight, pairs, constants) * factor
        return self._finish(X, with_data(pattern, weights), constants, edges.recall)

    def _finish(self, X: Array, weights: Sparse, constants: KernelConstants, recall: float | None) -> AffinityGraph:
        data = csr_parts(weights)[0]
        xp = namespace(data)
        smallest = float(xp.min(data)) if data.shape[0] else 0.0
        if smallest < 0 and not self.signed:
            problem = f"weight={self.weight!r} gives negative weights on this data (smallest {smallest:.3g})"
            hint = "use rows without negative entries, weight='heat', or signed=True if they mean repulsion"
            raise InputError(
                problem, hint, code="negative_weights", parameter="weight", value=self.weight, smallest=smallest
            )
        if not bool(xp.all(data != 0)):
            weights = filter_entries(weights, data != 0)
        graph = AffinityGraph(weights, signed=self.signed, constants=constants, recall=recall)
        if self.connect is None:
            return graph
        return graph._connect(normalize_rows(X) if self.metric == "cosine" else X, self.connect, option="connect")


def symmetric_edges(edges: Edges, rule: str) -> tuple[Sparse, Array]:
    """Make directed edges undirected: return a matrix of factors (see `SYMMETRIZE`) and the length of each entry.

    Edges found from both sides are summed: a sum of ones counts the sides, and the length is the mean of the two, which
    differ only by rounding.
    """
    factor_of = choose(SYMMETRIZE, rule, option="symmetrize")
    xp = namespace(edges.distances)
    rows, columns = xp.concat([edges.rows, edges.columns]), xp.concat([edges.columns, edges.rows])
    twice = xp.concat([edges.distances, edges.distances])
    sides = from_coo(rows, columns, xp.ones_like(twice), edges.shape)
    lengths = csr_parts(from_coo(rows, columns, twice, edges.shape))[0]
    count = csr_parts(sides)[0]
    ns = namespace(count)
    factor, lengths = ns.astype(factor_of(count), count.dtype), lengths / count
    if bool(ns.all(factor > 0)):
        return with_data(sides, factor), lengths
    return filter_entries(with_data(sides, factor), factor > 0), lengths[factor > 0]


class KNNGraph(_Recipe):
    """The graph of the k nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=8
        The number of neighbours of each point, not counting the point itself.
    weight : {'binary', 'heat', 'dot', 'polynomial', 'cosine', 'local'}, default='binary'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        The bandwidth of 'heat', in the unit of X; by default the median neighbour distance.
    degree : int, default=2
        The degree of 'polynomial'.
    metric : str, default='euclidean'
        'euclidean', 'cosine', or, for dense NumPy rows, any metric of scikit-learn's NearestNeighbors.
    symmetrize : {'union', 'mutual', 'mean'}, default='union'
        'union' keeps an edge if i is a neighbour of j *or* j of i, 'mutual' if both are; 'mean' keeps it with half of
        its weight for each of the two.
    method : {'auto', 'exact', 'cells', 'faiss'} or neighbours transformer, default='auto'
        'auto' is exact for sparse rows, up to 50,000 rows or 4 features, and on devices up to 100,000 rows; above, it
        is 'cells', which searches the rows in cells near that of each row. The recall of 'cells' and 'faiss' is at
        least 0.995 on a sample and available as ``graph.recall``. A scikit-learn neighbours transformer searches with
        its own parameters.
    connect : {None, 'mst', 'nearest'}, default=None
        Join the components of a disconnected graph; see :meth:`AffinityGraph.connect`.
    signed : bool, default=False
        Allow negative weights ('dot', 'polynomial', 'cosine').
    n_jobs : int, optional
        The number of threads of the search; None means as many as the BLAS has, or one for scikit-learn's trees.

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> KNNGraph(n_neighbors=1).build([[0.0], [1.0], [5.0]]).weights.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """

    def __init__(
        self,
        n_neighbors: int = 8,
        weight: KernelName = "binary",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: str = "euclidean",
        symmetrize: SymmetrizeRule = "union",
        method: SearchMethod | BaseEstimator = "auto",
        connect: BridgeRule | None = None,
        signed: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.metric = metric
        self.symmetrize = symmetrize
        self.method = method
        self.connect = connect
        self.signed = signed
        self.n_jobs = n_jobs

    def _build(self, X: Array) -> AffinityGraph:
        return self.build_with_edges(X)[1]

    def build_with_edges(self, X: Array) -> tuple[Edges, AffinityGraph]:
        """Return the nearest neighbours of validated rows, and the graph of them."""
        choose(SYMMETRIZE, self.symmetrize, option="symmetrize")
        edges, scales = self._search(X)
        return edges, self._weigh(X, edges, scales, self.symmetrize)

    def _search(self, X: Array, queries: Array | None = None) -> tuple[Edges, Array | None]:
        choose(KERNELS, self.weight, option="weight")
        n_neighbors = check_int(self.n_neighbors, "n_neighbors")
        search: dict[str, Any] = {"queries": queries, "metric": self.metric, "n_jobs": self.n_jobs}
        edges = k_nearest(X, n_neighbors, method=self.method, **search)
        if self.weight != "local":
            return edges, None
        if n_neighbors >= LOCAL_NEIGHBOR and isinstance(self.method, str):  # the seventh is among the edges
            return edges, nth_distances(edges, n_neighbors)
        method = self.method if isinstance(self.method, str) else "exact"  # a transformer has its own n_neighbors
        return edges, local_scales(X, method=method, **search)


class RadiusGraph(_Recipe):
    """The graph of all pairs at distance at most ``radius`` (ε-neighbours).

    Parameters
    ----------
    radius : float, default=1.0
        The largest distance of two neighbours, in the unit of the metric.
    weight, bandwidth, degree, metric, connect, signed, n_jobs
        As in :class:`KNNGraph`.

    Examples
    --------
    >>> from fiedler import RadiusGraph
    >>> RadiusGraph(radius=1.5).build([[0.0], [1.0], [5.0]])
    AffinityGraph(n_nodes=3, n_edges=1, signed=False)
    """

    def __init__(
        self,
        radius: float = 1.0,
        weight: KernelName = "binary",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: str = "euclidean",
        connect: BridgeRule | None = None,
        signed: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.radius = radius
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.metric = metric
        self.connect = connect
        self.signed = signed
        self.n_jobs = n_jobs

    def _search(self, X: Array, queries: Array | None = None) -> tuple[Edges, Array | None]:
        choose(KERNELS, self.weight, option="weight")
        search: dict[str, Any] = {"queries": queries, "metric": self.metric, "n_jobs": self.n_jobs}
        edges = within_radius(X, check_positive(self.radius, "radius"), **search)
        return edges, local_scales(X, **search) if self.weight == "local" else None


class FullGraph(_Recipe):
    """The complete graph, in which every pair has a weight; needs quadratic memory, so at most 10,000 rows.

    Parameters
    ----------
    weight : {'heat', 'dot', 'polynomial', 'cosine', 'local', 'binary'}, default='heat'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        The bandwidth of 'heat', in the unit of X; by default the median distance.
    degree, metric, connect, signed
        As in :class:`KNNGraph`; the metric is 'euclidean' or 'cosine'.
    self_loops : bool, default=False
        Whether every row has a self-loop, of the weight of its kernel with itself. The weights are then the whole
        kernel matrix, such as XX' for 'dot' [lpi, Eq. 3]: loops count in the degrees, and do not change D - W.

    Examples
    --------
    >>> from fiedler import FullGraph
    >>> FullGraph(weight="dot").build([[1.0, 0.0], [2.0, 1.0]]).weights.toarray()
    array([[0., 2.],
           [2., 0.]])
    >>> FullGraph(weight="dot", self_loops=True).build([[1.0, 0.0], [2.0, 1.0]]).degrees
    array([3., 7.])
    """

    def __init__(
        self,
        weight: KernelName = "heat",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        connect: BridgeRule | None = None,
        signed: bool = False,
        self_loops: bool = False,
    ) -> None:
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.metric = metric
        self.connect = connect
        self.signed = signed
        self.self_loops = self_loops

    def _build(self, X: Array) -> AffinityGraph:
        n = X.shape[0]
        check_complete_graph(n, X)
        distances, scales = self._all_pairs(X)
        xp = namespace(distances)
        nodes = arange(n, distances)
        others = xp.reshape(nodes[:, None] != nodes[None, :], (-1,))
        flat = xp.reshape(distances, (-1,))[others]
        constants = fit_constants(self.weight, flat, bandwidth=self.bandwidth, degree=self.degree, scales=scales)
        weights = edge_weights(self.weight, RowPairs(X, X, distances, scales_a=scales, scales_b=scales), constants)
        weights = 0.5 * (weights + weights.T)  # products of blocks may differ in the last digit
        columns = xp.reshape(xp.broadcast_to(nodes[None, :], (n, n)), (-1,))[others]
        indptr = arange(n + 1, distances) * (n - 1)
        flat = xp.reshape(weights, (-1,))
        graph = self._finish(X, csr(flat[others], columns, indptr, (n, n)), constants, 1.0)
        if not check_bool(self.self_loops, "self_loops"):
            return graph
        data = csr_parts(graph.weights)[0]
        return graph._with_weights(graph.weights, loops=asarray_like(to_numpy(flat[~others]), data, dtype=data.dtype))

    def _link(self, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
        check_links_to_all(X_new.shape[0], X.shape[0], X)
        distances, scales_new = self._all_pairs(X, queries=X_new)
        constants = graph.constants or KernelConstants()
        pairs = RowPairs(X_new, X, distances, scales_a=scales_new, scales_b=constants.scales)
        return edge_weights(self.weight, pairs, constants)

    def _all_pairs(self, X: Array, queries: Array | None = None) -> tuple[Array, Array | None]:
        """Return all distances, from ``queries`` or from the rows, and the scales if the kernel is local."""
        one_of(("euclidean", "cosine"))(self.metric, "metric")
        choose(KERNELS, self.weight, option="weight")
        scales = local_scales(X, queries=queries, metric=self.metric) if self.weight == "local" else None
        Q = X if queries is None else queries
        if self.metric == "cosine":
            return 0.5 * pairwise_distances(unit_rows(Q), unit_rows(X)) ** 2, scales
        return pairwise_distances(Q, X), scales


def local_scales(X: Array, *, queries: Array | None, **search: Any) -> Array:
    """Return the distance of each query to its seventh neighbour (to its last, if there are fewer)."""
    k = min(LOCAL_NEIGHBOR, X.shape[0] - (queries is None))
    return nth_distances(k_nearest(X, k, queries=queries, **search), k)


def nth_distances(edges: Edges, k: int) -> Array:
    """Return the distance to the seventh (or last) of the k neighbours of every row."""
    xp = namespace(edges.distances)
    return xp.sort(xp.reshape(edges.distances, (-1, k)), axis=1)[:, min(k, LOCAL_NEIGHBOR) - 1]


DEFAULT_NEIGHBORS = 9  # of the default graph


def self_tuned(n_neighbors: int = DEFAULT_NEIGHBORS, **options: Any) -> KNNGraph:
    """Return the default recipe of the models that cluster the nodes of a graph.

    Its weights are self-tuned, and an edge found from one side only counts half: this is sparse enough to separate
    close clusters and dense enough to keep a thin cluster connected.
    """
    return KNNGraph(n_neighbors, weight="local", symmetrize="mean", **options)


def default_recipe(n_samples: int, **options: Any) -> KNNGraph:
    """Return the recipe of the default graph of ``n_samples`` rows, which may be too few for all its neighbours."""
    return self_tuned(min(DEFAULT_NEIGHBORS, n_samples - 1), **options)


def nested_graphs(recipe: KNNGraph, X: Array, sizes: Iterable[int]) -> tuple[Edges, list[AffinityGraph]]:
    """Build one graph of ``recipe`` per number of neighbours in ``sizes``, on validated rows, with a single search.

    The nearest neighbours, as many as the largest graph has, are returned as well.
    """
    sizes = list(sizes)
    largest = max(sizes)
    edges, scales = clone(recipe).set_params(n_neighbors=largest)._search(X)
    graphs = [recipe._weigh(X, nearest_edges(edges, largest, size), scales, recipe.symmetrize) for size in sizes]
    return edges, graphs


def nearest_edges(edges: Edges, k: int, size: int) -> Edges:
    """Return the ``size`` nearest of the ``k`` neighbours of every row, which are sorted."""
    xp = namespace(edges.distances)
    first = lambda values: xp.reshape(xp.reshape(values, (-1, k))[:, :size], (-1,))  # noqa: E731
    return replace(edges, rows=first(edges.rows), columns=first(edges.columns), distances=first(edges.distances))


# ----------------------------------------------------------------------------------- the graph parameter of estimators


def as_affinity(
    graph: GraphLike,
    X: MatrixLike | AffinityGraph,
    y: LabelsLike | None = None,
    constraints: PairwiseConstraints | None = None,
    *,
    validated: bool = False,
) -> AffinityGraph:
    """Return the graph that a ``graph`` parameter means for the rows of ``X``.

    Parameters
    ----------
    graph : recipe, AffinityGraph, matrix, neighbours transformer or 'precomputed'
        A recipe is cloned before it is used. A scikit-learn neighbours transformer means binary weights and 'union';
        'precomputed' means that ``X`` is the affinity matrix.
    X : array or CSR matrix of shape (n_samples, n_features), or AffinityGraph
        The rows; a graph is returned unchanged.
    y : array-like of shape (n_samples,), optional
        Labels, for recipes that use them.
    constraints : PairwiseConstraints, optional
        Pairs, for recipes that use them.
    validated : bool, default=False
        Whether ``X`` has been validated already, as an estimator does at the beginning of ``fit``.

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> as_affinity(KNNGraph(1), [[0.0], [1.0], [5.0]])
    AffinityGraph(n_nodes=3, n_edges=2, signed=False)
    >>> as_affinity("precomputed", [[0, 2], [2, 0]])
    AffinityGraph(n_nodes=2, n_edges=1, signed=False)
    """
    uses_rows = is_recipe(graph) or is_transformer(graph)
    if not validated and uses_rows and not isinstance(X, AffinityGraph):
        X = check_data(X, min_samples=2 if is_recipe(graph) else 1)
    return build_affinity(graph, X, y, constraints)[0]


def build_affinity(graph: Any, X: Any, y: Any = None, constraints: Any = None) -> tuple[AffinityGraph, Any]:
    """Return the graph as `as_affinity` does, from validated rows, and the recipe that links new points to it.

    The recipe is a clone: neither its fit, if it learns, nor a later ``set_params`` may change an object of the caller.
    """
    if is_recipe(graph):
        recipe = clone(graph, safe=False)
        if isinstance(X, AffinityGraph):
            return X, recipe
        arguments = {"y": y} if getattr(recipe, "uses_labels", False) else {}
        if learns_from_constraints(recipe):
            arguments["constraints"] = constraints
        built = _without_validation(recipe, "build")(X, **arguments)
        if not isinstance(built, AffinityGraph):
            problem = f"{type(recipe).__name__} does not build an AffinityGraph and is accepted by NLE only"
            raise InputTypeError(problem, "use KNNGraph() here", code="not_a_graph", parameter="graph")
        return built, recipe
    if isinstance(X, AffinityGraph):
        return X, graph
    if isinstance(graph, str):
        check_graph_name(graph)
        return AffinityGraph.from_matrix(X), graph
    if isinstance(graph, AffinityGraph):
        return _check_n_nodes(graph, X), graph
    if is_transformer(graph):
        return KNNGraph()._weigh(X, from_transformer(graph, X), None), graph
    if is_sparse(graph) or isinstance(graph, list) or (hasattr(graph, "shape") and not isinstance(graph, type)):
        return _check_n_nodes(AffinityGraph.from_matrix(graph), X), graph
    problem = f"graph={shown(graph)} is not a graph"
    raise InputTypeError(
        problem,
        (
            "pass a recipe such as KNNGraph(), an AffinityGraph, a symmetric matrix, a neighbours transformer, or "
            "'precomputed'"
        ),
        code="not_a_graph",
        parameter="graph",
    )


def check_graph_name(graph: str, *, names: Sequence[str] = ("precomputed",)) -> None:
    """Raise an error unless ``graph`` is one of the names that stand for a graph."""
    if graph not in names:
        problem = f"graph={graph!r} is not known{did_you_mean(graph, names)}"
        hint = f"use {' or '.join(map(repr, names))}, or pass a recipe such as KNNGraph()"
        raise InputError(problem, hint, code="unknown_option", parameter="graph", value=graph, options=list(names))


def _without_validation(recipe: Any, method: Literal["build", "link"]) -> Callable[..., Any]:
    """Return ``_build`` or ``_link`` of a recipe, or the public method of a foreign one, which must validate again.

    The public method is also returned if a subclass overrides only that one: the override must not be bypassed.
    """
    for cls in type(recipe).__mro__:
        if f"_{method}" in vars(cls):
            return getattr(recipe, f"_{method}")
        if method in vars(cls):
            break
    return getattr(recipe, method)


def _check_n_nodes(graph: AffinityGraph, X: Any) -> AffinityGraph:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if graph.n_nodes != n:
        problem = f"the graph has {graph.n_nodes} nodes, but X has {n} rows"
        hint = "build it on the same rows"
        raise InputError(problem, hint, code="graph_size_mismatch", n_nodes=graph.n_nodes, n_samples=n)
    return graph


def is_recipe(graph: Any) -> bool:
    """Whether ``graph`` builds a graph from rows."""
    return hasattr(graph, "build") and not isinstance(graph, type)


def is_transformer(graph: Any) -> bool:
    """Whether ``graph`` is a neighbours transformer of scikit-learn, or compatible."""
    return hasattr(graph, "fit_transform") and not isinstance(graph, type)


def learns_from_constraints(graph: Any) -> bool:
    """Whether a recipe uses pairwise constraints itself."""
    return bool(getattr(graph, "uses_constraints", False))


def link_new_points(recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
    """Return the weights from new points to the training rows, both validated, by the recipe that built the graph.

    A kernel such as the inner product can be negative for new points, although no weight of the graph is. Such weights
    are 0, so that means over neighbours are means; only on a signed graph they stay.
    """
    if hasattr(recipe, "link"):
        W = _without_validation(recipe, "link")(X_new, X, graph)
        if getattr(graph, "signed", False):
            return W
        return with_data(W, positive_part(csr_parts(W)[0])) if is_sparse(W) else positive_part(W)
    problem = "new points need a recipe to be joined to the graph, but the graph was given ready-made"
    hint = "fit with graph=KNNGraph(...) (or another recipe) to use predict and transform"
    raise InputError(problem, hint, code="no_recipe_for_new_points", parameter="graph")


def is_precomputed(graph: Any) -> bool:
    """Whether ``X`` is the affinity matrix itself, for scikit-learn's ``pairwise`` tag."""
    return isinstance(graph, str) and graph == "precomputed"
