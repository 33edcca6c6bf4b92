"""NLE: nonnegative Laplacian embedding, which gives the clusters of a graph cut directly. Paper key: nle.

    maximise  tr[Q'(W - D + σI)Q]   subject to   Q'Q = I, Q ≥ 0                                              (Eq. 9)

With both constraints the columns of Q are normalised indicators and the objective is Kσ minus the Ratio Cut (Theorem
1). Spectral clustering keeps the orthogonality and drops the sign; NLE keeps the sign, and the update

    Q ← Q ∘ √( [(W + σI)Q + QΛ⁻] / [DQ + QΛ⁺] ),   Λ = Q'(W + σI - D)Q                                   (Eqs 11, 12)

brings Q'Q close to I, with σ the largest eigenvalue of D - W. A row of Q says how much a node belongs to each cluster.
For the normalised cut the same update is applied to D^-½WD^-½ and I.

Differences from the paper: neither the objective nor the cut of the labels is monotone, so the labels with the lowest
cut are kept; of several starts the one with the lowest cut without empty clusters is selected; and single nodes are
then moved while that lowers the cut (`polish`). Negative weights, section V: W = W⁺ - W⁻, with W⁻ and negative degrees
on the other side of the fraction (``signed="split"``), or W + c for all pairs (``"shift"``), a matrix that is never
formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._records import FitHistory
from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from .._validation import (
    Check,
    check_bool,
    check_data,
    check_labels,
    check_n_clusters,
    check_nonnegative,
    check_seed,
    integer,
    one_of,
    start_from,
)
from ..core.arrays import (
    Array,
    asarray_like,
    eps,
    first_best,
    namespace,
    normalize_row_sums,
    one_hot,
    order_by_first_row,
    positive_part,
    renumber,
    take_clusters,
    take_rows,
    to_numpy,
)
from ..core.fitting import fit_method, track_progress
from ..core.kmeans import kmeans
from ..core.parallel import map_rows
from ..core.sparse import csr_parts, matmul, reorder_for_locality
from ..errors import InputError, NotConvergedWarning, warn
from ..graph.affinity import AffinityGraph
from ..graph.coarsen import contract
from ..graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints, has_cannot_links
from ..graph.cuts import CutProblem, cut_eigenvectors, cut_problem, polish
from ..graph.estimator import ClustererMixin, GraphEstimatorMixin
from ..graph.kernels import LandmarkGraph, LowRankAffinity
from ..graph.recipes import is_precomputed, self_tuned
from ..graph.smoothing import coincident_rows, replace_coincident_rows
from ..graph.weights import check_relative_weights, weigh_graph
from .eigenmaps import EmbeddingMixin


def multiplicative_update(
    Q: Array, numerator: Array, denominator: Array, *, epsilon: float, floor: float = 0.0, power: float = 0.5
) -> Array:
    """Return Q ∘ (numerator / (denominator + epsilon))^power, at least ``floor``, since zero would be absorbing."""
    xp = namespace(Q)
    ratio = numerator / (denominator + epsilon)
    updated = Q * (xp.sqrt(ratio) if power == 0.5 else ratio**power)
    return xp.where(updated > floor, updated, floor)


DENOMINATOR_SHARE = 1e-10  # of the mean degree, added to the denominator against division by zero
MIN_ENTRY = 1e-10  # of Q, whose columns start at length one: zero is absorbing
INDICATOR_OFFSET = 0.2  # Q starts at indicators plus this [nle, section X]
LABEL_CHECK_INTERVAL = 10  # updates between two computations of the labels and their cut
RENUMBER_FROM = 20_000  # nodes, above which Q no longer fits the cache, so that numbering neighbours closely pays off

START_KINDS = ("spectral", "kmeans", "random")  # which init="auto" takes in turn


@dataclass(frozen=True)
class NLERun:
    """The result of one start."""

    labels: Array
    value: float  # the cut of the labels; infinite if a cluster is empty
    Q: Array
    history: FitHistory
    n_iter: int
    converged: bool

    def expand(self, node_of_row: Any) -> NLERun:
        """Return the result for rows instead of nodes."""
        return replace(self, labels=self.labels[node_of_row], Q=self.Q[node_of_row, :])

    def numbered_by_first_row(self) -> NLERun:
        """Return the result with its clusters in the order of their first rows."""
        order = order_by_first_row(self.labels, self.Q.shape[1])
        return replace(self, labels=renumber(self.labels, order), Q=take_clusters(self.Q, order, axis=1))


class Update:
    """The update of Q, Eqs 11 and 12, for one problem."""

    def __init__(self, problem: CutProblem, rng: np.random.RandomState) -> None:
        xp = namespace(problem.degrees)
        self.problem, self.root = problem, problem.inverse_root[:, None]
        self.unscaled = bool(xp.all(problem.mass == 1))  # the Ratio Cut
        diagonal = problem.degrees[:, None] * self.root**2
        self.inward, self.outward = positive_part(-diagonal), positive_part(diagonal)
        self.sigma = problem.largest_eigenvalue(rng)
        self.unit = max(float(xp.mean(xp.abs(diagonal))), 1e-3 * self.sigma, 1e-300)

    def pulls(self, Q: Array) -> tuple[Array, ...]:
        """Return W⁺Q and, if there are negative weights, W⁻Q, both scaled by M^-½ from either side."""
        scaled = Q if self.unscaled else self.root * Q
        operators = (self.problem.attract, self.problem.repel)
        products = (operator(scaled) for operator in operators if operator is not None)
        if self.problem.approximate:
            products = (positive_part(product) for product in products)
        return tuple(products) if self.unscaled else tuple(self.root * product for product in products)

    def multipliers(self, Q: Array, attract: Array, repel: Array | None = None) -> Array:
        """Return Λ = Q'(W + σI - D)Q. [nle, Eq. 12]"""
        net = attract + (self.sigma + self.inward - self.outward) * Q
        product = Q.T @ (net if repel is None else net - repel)
        return 0.5 * (product + product.T)

    def step(self, Q: Array) -> tuple[Array, float]:
        """Return Q after one update, and the trace objective before it. [nle, Eq. 11]"""
        xp, pulls = namespace(Q), self.pulls(Q)
        multipliers = self.multipliers(Q, *pulls)
        up, down = positive_part(multipliers), positive_part(-multipliers)

        def rows(Q: Array, inward: Array, outward: Array, attract: Array, repel: Array | float = 0.0) -> Array:
            numerator = attract + (self.sigma + inward) * Q + Q @ down
            denominator = repel + outward * Q + Q @ up
            return multiplicative_update(
                Q, numerator, denominator, epsilon=DENOMINATOR_SHARE * self.unit, floor=MIN_ENTRY
            )

        return map_rows(rows, Q, self.inward, self.outward, *pulls), float(xp.sum(xp.linalg.diagonal(multipliers)))


def unit_columns(Q: Array) -> Array:
    """Scale columns to length one."""
    xp = namespace(Q)
    lengths = xp.sqrt(xp.sum(Q * Q, axis=0))
    return Q / xp.where(lengths > 0, lengths, 1)[None, :]


def run_updates(update: Update, Q: Array, *, max_iter: int, tol: float) -> NLERun:
    """Update one start until labels and memberships stay the same; keep the labels with the lowest cut."""
    xp, k, nan = namespace(Q), Q.shape[1], float("nan")
    traces: list[float] = []
    terms: dict[str, list[float]] = {"cut": [], "moved": []}
    labels, n_iter, converged = xp.argmax(Q, axis=1), 0, False
    value = update.problem.value(labels, k)
    best_value, best_labels = value, labels
    while n_iter < max_iter and not converged:
        previous_Q, (Q, trace) = Q, update.step(Q)
        n_iter += 1
        traces.append(trace)
        if n_iter % LABEL_CHECK_INTERVAL and n_iter < max_iter:
            terms["cut"].append(nan)
            terms["moved"].append(nan)
            continue
        moved = float(xp.max(xp.abs(Q - previous_Q))) / float(xp.max(Q))
        previous_labels, labels = labels, xp.argmax(Q, axis=1)
        same = bool(xp.all(labels == previous_labels))
        if not same:
            value = update.problem.value(labels, k)
            if value < best_value:
                best_value, best_labels = value, labels
        terms["cut"].append(value)
        terms["moved"].append(moved)
        converged = same and moved < tol
    history = FitHistory(np.array(traces), True, {name: np.array(values) for name, values in terms.items()})
    return NLERun(best_labels, best_value, Q, history, n_iter, converged)


class NLE(GraphEstimatorMixin, ClustererMixin, EmbeddingMixin, BaseEstimator):
    """Nonnegative Laplacian embedding: soft clusters with a low Ratio Cut or normalised cut.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        The graph or how to build it; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. Use
        :class:`LandmarkGraph` for complete graphs of many rows. With 'precomputed', ``fit`` takes a similarity matrix,
        whose entries may be negative.
    cut : {'ratio', 'ncut'}, default='ratio'
        The cut to minimise: 'ratio' divides by the sizes of the clusters, 'ncut' by their volumes.
    signed : {'split', 'shift'}, default='split'
        How negative weights are treated: 'split' writes W = W⁺ - W⁻, 'shift' adds a constant to the weights of all
        pairs, so that the smallest is zero; it also does so for a complete non-negative graph.
    init : {'auto', 'spectral', 'kmeans', 'random'} or array, default='spectral'
        The starts: indicators of spectral clustering plus 0.2 ('spectral'), the same of k-means on the rows ('kmeans'),
        uniform random numbers ('random'), or all in turn ('auto', without k-means if no rows are given). An array of
        labels or memberships is a single start.
    n_init : int, default=10
        The number of starts, unless ``init`` is an array. Those from k-means, on eigenvectors or on rows, differ by its
        seeding.
    max_iter : int, default=300
        Maximum number of updates of each start.
    tol : float, default=1e-4
        Tolerance on the largest change of Q in an update, relative to its largest entry. The updates stop when it is
        met and the labels have not changed.
    polish : bool, default=True
        Whether to move single nodes afterwards while that lowers the cut.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The labels with the lowest cut; with ``polish``, after moving single nodes.
    memberships_ : array of shape (n_samples, n_clusters)
        Rows of Q scaled to sum to one. Where ``polish`` moved a node, its largest membership can be that of another
        cluster than its label.
    embedding_ : array of shape (n_samples, n_clusters)
        Q of the best start after its last update.
    objective_ : float
        The cut of ``labels_``; lower is better. The best start is the one with the lowest cut.
    history_ : FitHistory
        The updates of the best start. ``history_.objective`` is the trace of Eq. 9, which the updates increase, though
        not at every step, measured before each update. The terms 'cut', the cut of the labels, and 'moved', the change
        that is compared with ``tol``, are measured after every tenth update and NaN otherwise.
    n_iter_ : int
        The number of updates of the best start.
    converged_ : bool
        Whether the best start met ``tol``.
    outlier_score_ : array of shape (n_samples,)
        Scores between 0 and 1: one minus the confidence of the membership (0 for equal shares, 1 for a single cluster)
        times the degree relative to the median degree, at most 1. Points that are similar to few others, or that
        belong equally to several clusters, have high scores.
    graph_ : AffinityGraph or LowRankAffinity
        The graph on the training rows.
    n_features_in_ : int
        The number of features seen during fit.

    References
    ----------
    D. Luo, C. Ding, H. Huang, T. Li, "Non-negative Laplacian embedding", IEEE International Conference on Data Mining
    2009.

    Examples
    --------
    >>> from fiedler import NLE, KNNGraph
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = two_moons(n_samples=300, noise=0.05, random_state=0)
    >>> model = NLE(2, KNNGraph(10), random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_)
    1.0
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "cut": one_of(["ratio", "ncut"]),
        "signed": one_of(["split", "shift"]),
        "init": start_from(["auto", *START_KINDS]),
        "n_init": integer(),
        "max_iter": integer(),
        "tol": check_nonnegative,
        "polish": check_bool,
        "random_state": check_seed,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        cut: Literal["ratio", "ncut"] = "ratio",
        signed: Literal["split", "shift"] = "split",
        init: Literal["auto", "spectral", "kmeans", "random"] | LabelsLike | MatrixLike = "spectral",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        polish: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.cut = cut
        self.signed = signed
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.polish = polish
        self.random_state = random_state

    @fit_method
    def fit(
        self,
        X: MatrixLike | AffinityGraph,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Cluster the rows of ``X``, the nodes of a graph, or the objects of a similarity matrix.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or similarity matrix if ``graph='precomputed'``
        y : array of shape (n,), optional
            For graphs built from labels, such as :class:`LabelGraph`.
        sample_weight : array of shape (n,), optional
            Positive weights of the rows, in the graph, see :mod:`fiedler.graph.weights`, and in the sizes of
            clusters.
        constraints : PairwiseConstraints, optional
            Must-links become edges of positive weight; cannot-links become edges of negative weight, which count
            against a cluster that contains both ends. Rows connected by hard must-links become one node.
        """
        pairs = check_constraints(constraints, X)
        graph, rows = self._affinity(X, y, pairs)
        weights = check_relative_weights(sample_weight, graph.n_nodes)
        graph = graph if weights is None else weigh_graph(_with_edges(graph), weights)
        nodes = _make_nodes(graph, pairs.groups if pairs is not None and pairs.hard else None, weights)
        k = check_n_clusters(self.n_clusters, nodes.graph.n_nodes)
        rng = check_seed(self.random_state)
        repelling = isinstance(graph, AffinityGraph) and has_cannot_links(graph, pairs)
        problem = cut_problem(nodes.graph, self.cut, self.signed, nodes.sizes, repelling=repelling)
        self._signed = self.signed
        _check_weights_differ(nodes.graph, problem)
        update = Update(problem, rng)
        starts = track_progress(self._starts(rows, nodes, problem, k, rng), "starts", self.n_init)
        results = (
            run_updates(update, unit_columns(start), max_iter=self.max_iter, tol=float(self.tol)) for start in starts
        )
        polished = (self._polish(result, problem, k) for result in results)
        best = first_best(polished, lambda result: result.value, lowest=True)
        best = best.expand(nodes.node_of_row)
        self._store(best.numbered_by_first_row() if isinstance(self.init, str) else best, graph, problem)
        return self

    def fit_transform(self, X: MatrixLike | AffinityGraph, y: LabelsLike | None = None, **fit_params: Any) -> Array:
        """Fit and return the memberships; parameters as in :meth:`fit`."""
        return self.fit(X, y, **fit_params).memberships_

    def transform(self, X: MatrixLike) -> Array:
        """Return the memberships of points.

        Those of a new point are its weights to the nodes times Q, scaled to sum to one. A training row keeps its
        memberships.
        """
        return self._memberships(*self._weights_to(X))

    def predict(self, X: MatrixLike) -> Array:
        """Return the cluster of each point: the largest membership of a new point, the label of a training row."""
        weights, X = self._weights_to(X)
        labels = to_numpy(self._memberships(weights, X)).argmax(axis=1)
        source = coincident_rows(weights, X, self._fit_X)
        labels = np.where(source >= 0, to_numpy(self.labels_)[np.maximum(source, 0)], labels)
        return asarray_like(labels, self.labels_, dtype=self.labels_.dtype)

    def _memberships(self, weights: Any, X: Array) -> Array:
        rows = positive_part(matmul(weights, self.embedding_))
        isolated = to_numpy(namespace(rows).max(rows, axis=1)) == 0
        return replace_coincident_rows(normalize_row_sums(rows), self.memberships_, weights, isolated, X, self._fit_X)

    def _weights_to(self, X: MatrixLike) -> tuple[Any, Array]:
        """Return the weights from points to the nodes, and the points converted to the type of the training rows."""
        check_is_fitted(self)
        if isinstance(self.graph_, LowRankAffinity):
            message = "a model fitted with LandmarkGraph cannot predict new points"
            raise InputError(message, "fit with a graph of neighbours such as KNNGraph()", code="no_new_points")
        if self._signed == "shift":
            message = "a model fitted with signed='shift' cannot predict new points"
            raise InputError(message, "fit with signed='split'", code="no_new_points")
        return self._links_to(X, self.embedding_)

    def _recipe(self) -> Any:
        """Return the graph parameter, or the default recipe; a matrix as a graph, whose weights may be negative."""
        if self.graph is None:
            return self_tuned()
        graph: Any = self.graph
        return AffinityGraph.from_matrix(graph, signed=True) if hasattr(graph, "shape") else graph

    def _affinity(
        self, X: Any, y: Any, pairs: PairwiseConstraints | None
    ) -> tuple[AffinityGraph | LowRankAffinity, Array | None]:
        """Return the graph on ``X`` (or ``X`` itself) with pairs as edges, or a factor from landmarks; and any rows."""
        recipe = self._recipe()
        if isinstance(recipe, LandmarkGraph) and not isinstance(X, AffinityGraph):
            if pairs is not None:
                message = "LandmarkGraph has no edges to which pairs could be added"
                hint = "use a graph of neighbours such as KNNGraph()"
                raise InputError(message, hint, code="no_edges_for_pairs", parameter="graph")
            self._fit_recipe, self._fit_X = recipe, None
            rows = check_data(X, estimator=self, min_samples=2)
            return recipe._build(rows), rows
        if is_precomputed(recipe) and not isinstance(X, AffinityGraph):
            X = AffinityGraph.from_matrix(check_data(X, estimator=self, min_samples=2), signed=True)
        return self._build_graph(X, y, pairs), self._fit_X

    def _starts(
        self, rows: Array | None, nodes: _Nodes, problem: CutProblem, k: int, rng: np.random.RandomState
    ) -> Iterable[Array]:
        """Return an iterator over the starts, each computed when it is needed."""
        if not isinstance(self.init, str):
            return [_start_from_array(self.init, problem.degrees, k, nodes.n_rows)[nodes.row_of_node, :]]
        if self.init == "kmeans" and rows is None:
            message = "init='kmeans' needs rows, but X is a graph or an affinity matrix"
            raise InputError(message, "use init='spectral'", code="rows_required", parameter="init", value="kmeans")
        kinds = START_KINDS if self.init == "auto" else (self.init,)
        possible = [kind for kind in kinds if kind != "kmeans" or rows is not None]
        names = [possible[i % len(possible)] for i in range(self.n_init)]
        points: dict[str, Any] = {}
        if "kmeans" in names:
            points["kmeans"] = take_rows(rows, np.arange(nodes.n_rows)[nodes.row_of_node])
        if "spectral" in names:
            points["spectral"] = cut_eigenvectors(nodes.graph, problem, k, self.cut, rng, self.signed)
        seeds = rng.randint(2**31 - 1, size=self.n_init)
        return (_start(points.get(name), problem, k, np.random.RandomState(seed)) for name, seed in zip(names, seeds))

    def _polish(self, result: NLERun, problem: CutProblem, k: int) -> NLERun:
        if not self.polish:
            return result
        labels, value = polish(problem, result.labels, k)
        return replace(result, labels=labels, value=value)

    def _store(self, best: NLERun, graph: AffinityGraph | LowRankAffinity, problem: CutProblem) -> None:
        if best.value == float("inf"):
            hint = "choose fewer clusters, or try more starts or another graph"
            sizes = {"n_found": len(np.unique(to_numpy(best.labels))), "n_clusters": best.Q.shape[1]}
            raise InputError("every start left a cluster empty", hint, code="empty_clusters", **sizes)
        if not best.converged:
            message = f"NLE did not converge within max_iter={self.max_iter} updates"
            hint = "increase max_iter to look for labels with a lower cut"
            warn(message, hint, code="not_converged", category=NotConvergedWarning, max_iter=self.max_iter)
        xp = namespace(best.Q)
        self.labels_, self.objective_ = xp.astype(best.labels, xp.int64), best.value
        self.embedding_, self.history_ = best.Q, best.history
        self.memberships_ = normalize_row_sums(best.Q)
        self.n_iter_, self.converged_, self.graph_ = best.n_iter, best.converged, graph
        degrees = problem.degrees if isinstance(graph, LowRankAffinity) else graph.degrees
        degrees = asarray_like(to_numpy(degrees), best.Q, dtype=best.Q.dtype)
        self.outlier_score_ = outlier_scores(self.memberships_, degrees)


class _Nodes(NamedTuple):
    """The nodes of the cut: rows, or groups of rows, in an order that suits the cache."""

    graph: AffinityGraph | LowRankAffinity
    row_of_node: Any  # one row of each node
    node_of_row: Any  # the node of each row
    sizes: Any  # the number of rows of each node, or the sum of their weights; None: one each
    n_rows: int


def _with_edges(graph: AffinityGraph | LowRankAffinity) -> AffinityGraph:
    """Return a graph with edges, or raise an error for one without, whose rows cannot have weights."""
    if isinstance(graph, AffinityGraph):
        return graph
    message = "a LandmarkGraph has no edges, so sample_weight cannot be used"
    hint = "use a graph with edges, or leave sample_weight out"
    raise InputError(message, hint, code="incompatible_parameters", parameter="sample_weight")


def _make_nodes(
    graph: AffinityGraph | LowRankAffinity, groups: np.ndarray | None, row_weights: np.ndarray | None
) -> _Nodes:
    """Merge groups of rows into nodes, and renumber a large SciPy graph so that neighbours have close numbers."""
    n, all_rows = graph.n_nodes, slice(None)
    nodes = _Nodes(graph, all_rows, all_rows, row_weights, n)
    if isinstance(graph, LowRankAffinity):
        return nodes
    if groups is not None:
        _, first = np.unique(groups, return_index=True)
        graph = contract(graph, groups)
        nodes = _Nodes(graph, first, groups, np.bincount(groups, row_weights), n)
    if not sp.issparse(graph.weights) or graph.n_nodes < RENUMBER_FROM:
        return nodes
    weights, order, position = reorder_for_locality(graph.weights)
    loops, sizes = (None if values is None else values[order] for values in (graph.loops, nodes.sizes))
    renumbered = AffinityGraph(weights, signed=graph.signed, loops=loops)
    row_of_node, node_of_row = np.arange(n)[nodes.row_of_node][order], position[nodes.node_of_row]
    return _Nodes(renumbered, row_of_node, node_of_row, sizes, n)


def outlier_scores(memberships: Array, degrees: Array) -> Array:
    """Return one minus confidence times relative degree; see :class:`NLE`."""
    xp, k = namespace(memberships), memberships.shape[1]
    confidence = (k * xp.max(memberships, axis=1) - 1) / (k - 1) if k > 1 else xp.ones_like(memberships[:, 0])
    median = float(np.median(to_numpy(degrees)))
    relative = positive_part(degrees) / median if median > 0 else xp.ones_like(degrees)
    return 1 - confidence * xp.where(relative < 1, relative, 1)


def _start(points: Any, problem: CutProblem, k: int, rng: np.random.RandomState) -> Array:
    """Return a start from k-means on points, which are eigenvectors or rows, or a random one without points."""
    n, reference = problem.degrees.shape[0], problem.degrees
    if points is None:
        return asarray_like(rng.uniform(size=(n, k)), reference, dtype=reference.dtype)
    labels = kmeans(points, k, n_init=1, random_state=rng).labels
    return _lifted_indicators(to_numpy(labels), k, reference)


def _lifted_indicators(labels: np.ndarray, k: int, reference: Array) -> Array:
    return one_hot(asarray_like(labels.astype(np.int64), reference), k, reference) + INDICATOR_OFFSET


def _start_from_array(init: Any, reference: Array, k: int, n: int) -> Array:
    """Return a start from labels or memberships of the n rows."""
    try:
        array = to_numpy(init.toarray() if hasattr(init, "toarray") else init)
    except ValueError as error:
        message = f"init must be labels of shape ({n},) or memberships of shape ({n}, {k}); its rows differ in length"
        raise InputError(message, code="invalid_init", parameter="init") from error
    if array.ndim == 2:
        valid = array.shape == (n, k) and array.dtype.kind in "fiub" and np.isfinite(array).all() and (array >= 0).all()
        if not valid or (array.max(axis=0) == 0).any():
            message = (
                f"init as memberships must be finite, non-negative numbers of shape ({n}, {k}) without a column of "
                f"zeros; got shape {array.shape}, dtype {array.dtype}"
            )
            raise InputError(message, code="invalid_init", parameter="init")
        return asarray_like(array, reference, dtype=reference.dtype)
    labels = check_labels(array, "init", n_samples=n)
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= k:
        raise InputError(f"init as labels must be integers from 0 to {k - 1}", code="invalid_init", parameter="init")
    return _lifted_indicators(labels, k, reference)


def _check_weights_differ(graph: AffinityGraph | LowRankAffinity, problem: CutProblem) -> None:
    """Raise an error if all cuts are equal: there are no weights, or all pairs have the same weight."""
    xp, n = namespace(problem.degrees), graph.n_nodes
    if isinstance(graph, LowRankAffinity):
        rows = graph.factor
        equal = float(xp.max(xp.abs(rows - rows[:1, :]))) <= 1e-6 * float(xp.max(xp.abs(rows)))
    else:
        data = csr_parts(graph.weights)[0]
        equal = data.shape[0] == 0
        if n > 2 and data.shape[0] == n * (n - 1):
            spread = float(namespace(data).max(data)) - float(namespace(data).min(data))
            equal = spread <= 100 * eps(data) * abs(float(data[0]))
    if equal:
        message = "all similarities are equal, so no cut is better than another"
        raise InputError(message, "check the data or the graph", code="equal_similarities")
