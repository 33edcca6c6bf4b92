"""Recipes: how to make a graph from data. Parameters and ``build``, nothing fitted.

A recipe is a scikit-learn parameter object, so an estimator that holds one as ``graph`` can be searched over
``graph__n_neighbors``. `as_affinity` is where every way of naming a graph meets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._validation import check_data, check_int, check_positive, choose, is_foreign
from ..core.backend import Array, arange, asarray_like, namespace
from ..core.rows import normalize_rows
from ..core.sparse import Sparse, csr, csr_parts, filter_entries, from_coo, is_sparse, row_indices, with_data
from .affinity import AffinityGraph
from .kernels import KERNELS, LOCAL_NEIGHBOR, Constants, Pairs, edge_weights, fit_constants
from .neighbors import Edges, directions, from_transformer, k_nearest, pairwise_distances, within_radius

FULL_UP_TO = 10_000  # nodes of a FullGraph: 100 million weights, 1.2 GB and about 4.5 GB while it is built

# An edge found from one side counts once, from both sides twice; what remains of it, as a factor on its weight:
SYMMETRIZE = {
    "union": lambda sides: sides >= 1,
    "mutual": lambda sides: sides >= 2,
    "mean": lambda sides: 0.5 * sides,
}


class _Recipe(BaseEstimator):
    """What the recipes share: from directed edges to a weighted graph, and from new points to it."""

    weight: str
    bandwidth: float | None
    degree: int
    metric: str
    connect: str | None
    signed: bool

    def _weigh(self, X: Array, edges: Edges, scales: Array | None, symmetrize: str = "union") -> AffinityGraph:
        """Symmetrise the edges, weigh them, and check that the weights are what a graph may hold."""
        pattern, distances = symmetric_edges(edges, symmetrize)
        factor, columns, _ = csr_parts(pattern)
        rows = row_indices(pattern)
        if not isinstance(distances, np.ndarray) or not is_foreign(X):
            pairs = Pairs(X, X, distances, rows, columns, scales, scales)
        else:  # a back end without sparse matrices: pattern on the host, kernel where X is
            distances, factor = asarray_like(distances, X), asarray_like(factor, X)
            pairs = Pairs(X, X, distances, asarray_like(rows, X), asarray_like(columns, X), scales, scales)
        constants = fit_constants(self.weight, distances, bandwidth=self.bandwidth, degree=self.degree, scales=scales)
        weights = edge_weights(self.weight, pairs, constants) * factor
        return self._finish(X, with_data(pattern, weights), constants, edges.recall)

    def _finish(self, X: Array, weights: Sparse, constants: Constants, recall: float | None) -> AffinityGraph:
        data = csr_parts(weights)[0]
        xp = namespace(data)
        if not bool(xp.all(xp.isfinite(data))):
            raise ValueError(f"weight={self.weight!r} overflows on this data; scale X down")
        smallest = float(xp.min(data)) if data.shape[0] else 0.0
        if smallest < 0 and not self.signed:
            raise ValueError(
                f"weight={self.weight!r} gives negative weights on this data (smallest {smallest:.3g}); use rows "
                "without negative entries, weight='heat', or signed=True if they mean repulsion"
            )
        if not bool(xp.all(data != 0)):
            weights = filter_entries(weights, data != 0)
        graph = AffinityGraph(weights, signed=self.signed, constants=constants, recall=recall)
        if self.connect is None:
            return graph
        return graph.connect(normalize_rows(X) if self.metric == "cosine" else X, self.connect)

    def _cross(self, X_new: Array, X: Array, edges: Edges, graph: AffinityGraph, scales_new: Array | None) -> Sparse:
        """Weights on the edges from new points, with the training data's constants."""
        constants = graph.constants or Constants()
        pairs = Pairs(X_new, X, edges.distances, edges.rows, edges.columns, scales_new, constants.scales)
        return from_coo(edges.rows, edges.columns, edge_weights(self.weight, pairs, constants), edges.shape)


def symmetric_edges(edges: Edges, rule: str) -> tuple[Sparse, Array]:
    """Directed edges made undirected: a matrix of factors (see `SYMMETRIZE`) and the length of each of its entries.

    Edges found from both sides are summed, so their number of sides is what a sum of ones gives, and their length the
    mean of the two, which differ by rounding at most.
    """
    kept = choose(SYMMETRIZE, rule, option="symmetrize")
    xp = namespace(edges.distances)
    rows, columns = xp.concat([edges.rows, edges.columns]), xp.concat([edges.columns, edges.rows])
    twice = xp.concat([edges.distances, edges.distances])
    sides = from_coo(rows, columns, xp.ones_like(twice), edges.shape)
    lengths = csr_parts(from_coo(rows, columns, twice, edges.shape))[0]
    count = csr_parts(sides)[0]
    ns = namespace(count)
    factor, lengths = ns.astype(kept(count), count.dtype), lengths / count
    if bool(ns.all(factor > 0)):
        return with_data(sides, factor), lengths
    return filter_entries(with_data(sides, factor), factor > 0), lengths[factor > 0]


class KNNGraph(_Recipe):
    """The graph of the k nearest neighbours.

    Parameters
    ----------
    n_neighbors : int, default=8
        Neighbours of each point, the point itself not counted.
    weight : {'binary', 'heat', 'dot', 'polynomial', 'cosine', 'local'}, default='binary'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        Of 'heat', in the unit of X; default the median neighbour distance.
    degree : int, default=2
        Of 'polynomial'.
    metric : str, default='euclidean'
        'euclidean', 'cosine', or, for dense NumPy rows, any metric of scikit-learn's NearestNeighbors.
    symmetrize : {'union', 'mutual', 'mean'}, default='union'
        An edge for i among j's neighbours *or* j among i's; *and*; or half the weight for either.
    method : {'auto', 'exact', 'faiss'} or neighbours transformer, default='auto'
        'auto' is exact up to 50 000 rows (or 15 features) and uses faiss above, where it is installed; the recall is
        then at least 0.99 on a sample and found as ``graph.recall``. A scikit-learn neighbours transformer is used as
        it is.
    connect : {None, 'mst', 'nearest'}, default=None
        Join the components of a disconnected graph; see :meth:`AffinityGraph.connect`.
    signed : bool, default=False
        Allow negative weights ('dot', 'polynomial', 'cosine').
    n_jobs : int, optional
        Threads of the search; None is as many as the BLAS has, or one for scikit-learn's trees.

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
        weight: str = "binary",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: str = "euclidean",
        symmetrize: str = "union",
        method: Any = "auto",
        connect: str | None = None,
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

    def build(self, X: Any) -> AffinityGraph:
        """The graph on the rows of ``X``."""
        X = check_data(X, min_samples=2)
        choose(SYMMETRIZE, self.symmetrize, option="symmetrize")
        edges, scales = self._search(X)
        return self._weigh(X, edges, scales, self.symmetrize)

    def link(self, X_new: Any, X: Any, graph: AffinityGraph) -> Sparse:
        """The weights (n_new, n) from new points to their nearest rows of ``X``, on which ``graph`` was built."""
        X_new, X = check_data(X_new), check_data(X)
        edges, scales = self._search(X, queries=X_new)
        return self._cross(X_new, X, edges, graph, scales)

    def _search(self, X: Array, queries: Array | None = None) -> tuple[Edges, Array | None]:
        """The edges and, for the local kernel, each row's distance to its seventh neighbour."""
        choose(KERNELS, self.weight, option="weight")
        n_neighbors = check_int(self.n_neighbors, "n_neighbors")
        search: dict[str, Any] = {
            "queries": queries,
            "metric": self.metric,
            "method": self.method,
            "n_jobs": self.n_jobs,
        }
        edges = k_nearest(X, n_neighbors, **search)
        if self.weight != "local":
            return edges, None
        if n_neighbors >= LOCAL_NEIGHBOR and isinstance(self.method, str):  # they are among the neighbours found
            return edges, nth_distances(edges, n_neighbors)
        return edges, local_scales(X, **search)


class RadiusGraph(_Recipe):
    """The graph of all pairs at distance at most ``radius`` (ε-neighbours).

    Parameters
    ----------
    radius : float, default=1.0
        In the unit of the metric.
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
        weight: str = "binary",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: str = "euclidean",
        connect: str | None = None,
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

    def build(self, X: Any) -> AffinityGraph:
        """The graph on the rows of ``X``."""
        X = check_data(X, min_samples=2)
        edges, scales = self._search(X)
        return self._weigh(X, edges, scales)

    def link(self, X_new: Any, X: Any, graph: AffinityGraph) -> Sparse:
        """The weights (n_new, n) from new points to the rows of ``X`` within the radius."""
        X_new, X = check_data(X_new), check_data(X)
        edges, scales = self._search(X, queries=X_new)
        return self._cross(X_new, X, edges, graph, scales)

    def _search(self, X: Array, queries: Array | None = None) -> tuple[Edges, Array | None]:
        choose(KERNELS, self.weight, option="weight")
        search: dict[str, Any] = {"queries": queries, "metric": self.metric, "n_jobs": self.n_jobs}
        edges = within_radius(X, check_positive(self.radius, "radius"), **search)
        return edges, local_scales(X, **search) if self.weight == "local" else None


class FullGraph(_Recipe):
    """The complete graph: every pair has a weight. Quadratic in memory, so for up to 10 000 rows.

    Parameters
    ----------
    weight : {'heat', 'dot', 'polynomial', 'cosine', 'local', 'binary'}, default='heat'
        The kernel; see :mod:`fiedler.graph.kernels` for the formulas.
    bandwidth : float, optional
        Of 'heat', in the unit of X; default the median distance.
    degree, metric, connect, signed
        As in :class:`KNNGraph`; the metric is 'euclidean' or 'cosine'.

    Examples
    --------
    >>> from fiedler import FullGraph
    >>> FullGraph(weight="dot").build([[1.0, 0.0], [2.0, 1.0]]).weights.toarray()
    array([[0., 2.],
           [2., 0.]])
    """

    def __init__(
        self,
        weight: str = "heat",
        bandwidth: float | None = None,
        degree: int = 2,
        metric: str = "euclidean",
        connect: str | None = None,
        signed: bool = False,
    ) -> None:
        self.weight = weight
        self.bandwidth = bandwidth
        self.degree = degree
        self.metric = metric
        self.connect = connect
        self.signed = signed

    def build(self, X: Any) -> AffinityGraph:
        """The graph on the rows of ``X``."""
        X = check_data(X, min_samples=2)
        n = X.shape[0]
        if n > FULL_UP_TO:
            size = f"{n * n:,} weights, about {45e-9 * n * n:.0f} GB while it is built"
            raise ValueError(f"FullGraph on {n} rows would hold {size}; use KNNGraph")
        distances, scales = self._all_pairs(X, X, own=True)
        return self._assemble(X, distances, scales)

    def _assemble(self, X: Array, distances: Array, scales: Array | None) -> AffinityGraph:
        xp, n = namespace(distances), X.shape[0]
        nodes = arange(n, distances)
        others = xp.reshape(nodes[:, None] != nodes[None, :], (-1,))
        flat = xp.reshape(distances, (-1,))[others]
        constants = fit_constants(self.weight, flat, bandwidth=self.bandwidth, degree=self.degree, scales=scales)
        weights = edge_weights(self.weight, Pairs(X, X, distances, scales_a=scales, scales_b=scales), constants)
        weights = 0.5 * (weights + weights.T)  # products of blocks may differ in the last digit
        columns = xp.reshape(xp.broadcast_to(nodes[None, :], (n, n)), (-1,))[others]
        indptr = arange(n + 1, distances) * (n - 1)
        matrix = csr(xp.reshape(weights, (-1,))[others], columns, indptr, (n, n))
        return self._finish(X, matrix, constants, 1.0)

    def link(self, X_new: Any, X: Any, graph: AffinityGraph) -> Sparse:
        """The weights (n_new, n) between new points and all rows of ``X``."""
        X_new, X = check_data(X_new), check_data(X)
        distances, scales_new = self._all_pairs(X_new, X, own=False)
        constants = graph.constants or Constants()
        pairs = Pairs(X_new, X, distances, scales_a=scales_new, scales_b=constants.scales)
        return edge_weights(self.weight, pairs, constants)

    def _all_pairs(self, A: Array, B: Array, *, own: bool) -> tuple[Array, Array | None]:
        """All distances, by the metric, and the local scales where the kernel asks for them."""
        metric = choose(FULL_METRICS, self.metric, option="metric")
        scales = None
        if self.weight == "local":
            scales = local_scales(B, queries=None if own else A, metric=self.metric)
        return metric(A, B), scales


def _cosine_distances(A: Array, B: Array) -> Array:
    return 0.5 * pairwise_distances(directions(A), directions(B)) ** 2


FULL_METRICS = {"euclidean": pairwise_distances, "cosine": _cosine_distances}


def local_scales(X: Array, *, queries: Array | None, **search: Any) -> Array:
    """Each row's distance to its seventh neighbour (to its last, where there are fewer)."""
    k = min(LOCAL_NEIGHBOR, X.shape[0] - (queries is None))
    if not isinstance(search.get("method", "auto"), str):  # a transformer finds as many neighbours as it likes
        search["method"] = "exact"
    return nth_distances(k_nearest(X, k, queries=queries, **search), k)


def nth_distances(edges: Edges, k: int) -> Array:
    """Of the k neighbours of every row, the distance to the seventh, or to the last."""
    xp = namespace(edges.distances)
    return xp.sort(xp.reshape(edges.distances, (-1, k)), axis=1)[:, min(k, LOCAL_NEIGHBOR) - 1]


def self_tuned(n_neighbors: int = 9, **options: Any) -> KNNGraph:
    """The default graph of the models that read clusters off it.

    Self-tuned weights, an edge found from one side only counting half: sparse enough to keep close clusters apart,
    dense enough that a thin cluster holds together.
    """
    return KNNGraph(n_neighbors, weight="local", symmetrize="mean", **options)


def nested_graphs(recipe: KNNGraph, X: Any, sizes: Iterable[int]) -> list[AffinityGraph]:
    """The graphs of the ``sizes`` nearest neighbours, each as ``recipe`` says, all from one search."""
    sizes = list(sizes)
    X = check_data(X, min_samples=2)
    most = max(sizes)
    edges, scales = clone(recipe).set_params(n_neighbors=most)._search(X)
    return [recipe._weigh(X, _nearest(edges, most, size), scales, recipe.symmetrize) for size in sizes]


def _nearest(edges: Edges, k: int, size: int) -> Edges:
    """The ``size`` nearest of every row's ``k`` neighbours, which are sorted."""
    xp = namespace(edges.distances)
    first = lambda values: xp.reshape(xp.reshape(values, (-1, k))[:, :size], (-1,))  # noqa: E731
    return replace(edges, rows=first(edges.rows), columns=first(edges.columns), distances=first(edges.distances))


# ----------------------------------------------------------------------------------------------------- all roads meet

USES = {"y": "uses_labels", "constraints": "uses_constraints"}  # what a recipe says of itself


def as_affinity(graph: Any, X: Any, y: Any = None, constraints: Any = None) -> AffinityGraph:
    """The graph that ``graph`` means for the rows of ``X``; labels ``y`` and pairs are for recipes that use them.

    ``graph`` is a recipe, a built graph, an affinity matrix, a scikit-learn neighbours transformer (binary weights,
    union), or "precomputed" when ``X`` itself is the affinity matrix. ``X`` may also be a built graph.

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> as_affinity(KNNGraph(1), [[0.0], [1.0], [5.0]])
    AffinityGraph(n_nodes=3, n_edges=2, signed=False)
    >>> as_affinity("precomputed", [[0, 2], [2, 0]])
    AffinityGraph(n_nodes=2, n_edges=1, signed=False)
    """
    if isinstance(X, AffinityGraph):
        return X
    if isinstance(graph, str):
        choose({"precomputed": None}, graph, option="graph")
        return AffinityGraph.from_matrix(X)
    if hasattr(graph, "build") and not isinstance(graph, type):
        known = {"y": y, "constraints": constraints}
        built = graph.build(X, **{name: known[name] for name in known if getattr(graph, USES[name], False)})
        if isinstance(built, AffinityGraph):
            return built
        raise TypeError(f"{type(graph).__name__} makes no graph of edges; only NLE takes it, use KNNGraph() here")
    if isinstance(graph, AffinityGraph):
        return _matching(graph, X)
    if hasattr(graph, "fit_transform") and not isinstance(graph, type):
        edges = from_transformer(graph, check_data(X))
        return KNNGraph()._weigh(X, edges, None)
    if is_sparse(graph) or isinstance(graph, list) or (hasattr(graph, "shape") and not isinstance(graph, type)):
        return _matching(AffinityGraph.from_matrix(graph), X)
    raise TypeError(
        f"graph={graph!r} is not a graph; give a recipe such as KNNGraph(), an AffinityGraph, a symmetric matrix, "
        "a neighbours transformer, or 'precomputed'"
    )


def _matching(graph: AffinityGraph, X: Any) -> AffinityGraph:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if graph.n_nodes != n:
        raise ValueError(f"the graph has {graph.n_nodes} nodes, but X has {n} rows; build it on the same rows")
    return graph


def learns_from_pairs(graph: Any) -> bool:
    """Whether a recipe takes known pairs into account itself."""
    return bool(getattr(graph, USES["constraints"], False))


def link_new_points(graph: Any, X_new: Any, X: Any, built: AffinityGraph) -> Sparse:
    """Weights from new points to the training rows, by the recipe that built the graph."""
    if hasattr(graph, "link"):
        return graph.link(X_new, X, built)
    raise ValueError(
        "new points need a recipe to be joined to the graph, but the graph was given ready-made; "
        "fit with graph=KNNGraph(...) (or another recipe) to use predict and transform"
    )


def is_pairwise(graph: Any) -> bool:
    """Whether ``X`` is the affinity matrix itself, for scikit-learn's ``pairwise`` tag."""
    return isinstance(graph, str) and graph == "precomputed"
