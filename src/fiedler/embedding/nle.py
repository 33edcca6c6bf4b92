"""NLE: nonnegative Laplacian embedding, clusters of a graph cut read off directly. Paper key: nle.

    maximise  tr[Q'(W - D + σI)Q]   subject to   Q'Q = I, Q ≥ 0                                              (Eq. 9)

With both constraints Q holds normalised indicators and the objective is Kσ minus the Ratio Cut (Theorem 1). Spectral
clustering keeps the orthogonality and drops the sign; NLE keeps the sign and lets

    Q ← Q ∘ √( [(W + σI)Q + QΛ⁻] / [DQ + QΛ⁺] ),   Λ = Q'(W + σI - D)Q                                   (Eqs 11, 12)

bring Q'Q near I, with σ the largest eigenvalue of D - W. A row of Q says how much a node belongs to each cluster. For
the normalised cut the same update runs on D^-½WD^-½ and I.

Where we differ from the paper: neither the objective nor the cut of the labels is monotone, so the best labels seen are
kept; of several starts the one of the lowest cut with K clusters that are not empty wins; and single nodes are then
moved while that lowers the cut (`polish`). Negative weights, section V: W = W⁺ - W⁻, W⁻ and negative degrees changing
sides of the fraction (``signed="split"``), or W + c for all pairs (``"shift"``), which is never formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_labels, check_n_clusters, check_nonnegative
from ..core.backend import Array, asarray_like, eps, namespace, one_hot, to_numpy
from ..core.blocks import map_rows
from ..core.kmeans import kmeans
from ..core.multiplicative import multiplicative_update, positive_part
from ..core.progress import report_progress, track_progress
from ..core.rows import normalize_row_sums
from ..core.sparse import csr_parts, matmul, reorder_for_locality
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints, check_constraints
from ..graph.cuts import CutProblem, cut_eigenvectors, cut_problem, polish
from ..graph.estimator import GraphEstimatorMixin, warn_if_disconnected
from ..graph.landmarks import LandmarkGraph, LowRankAffinity
from ..graph.out_of_sample import coincident_rows, replace_coincident_rows
from ..graph.pairs import add_links, contract_groups, has_repulsion
from ..graph.recipes import is_pairwise, self_tuned

GUARD = 1e-10  # of the mean degree, added to the denominator
FLOOR = 1e-10  # of a unit column
LIFT = 0.2  # Q starts at indicators plus this [nle, section X]
CHECK = 10  # updates between two looks at the labels
RENUMBER_FROM = 20_000  # nodes, above which Q no longer fits the cache


@dataclass(frozen=True)
class NLERun:
    """One start: what it came to."""

    labels: Any
    value: float  # the cut of the labels; infinite if a cluster is empty
    Q: Any
    history: dict[str, list[float]]
    n_iter: int
    converged: bool

    def at(self, place: Any) -> NLERun:
        """The same for other numbers of the nodes."""
        return replace(self, labels=self.labels[place], Q=self.Q[place, :])


# --------------------------------------------------------------------------------------------------------- the update


class Update:
    """Eqs 11 and 12 for one problem."""

    def __init__(self, problem: CutProblem, rng: np.random.RandomState) -> None:
        xp = namespace(problem.degrees)
        self.problem, self.root = problem, problem.inverse_root[:, None]
        self.plain = bool(xp.all(problem.mass == 1))  # the Ratio Cut, which scales nothing
        diagonal = problem.degrees[:, None] * self.root**2
        self.inward, self.outward = positive_part(-diagonal), positive_part(diagonal)
        self.sigma = problem.top(rng)
        self.unit = max(float(xp.mean(xp.abs(diagonal))), 1e-3 * self.sigma, 1e-300)

    def pulls(self, Q: Array) -> tuple[Array, ...]:
        """W⁺Q and, where there are negative weights, W⁻Q, in the problem's own scale."""
        scaled = Q if self.plain else self.root * Q
        sides = (self.problem.attract, self.problem.repel)
        found = (side(scaled) for side in sides if side is not None)
        if self.problem.approximate:
            found = (positive_part(pull) for pull in found)
        return tuple(found) if self.plain else tuple(self.root * pull for pull in found)

    def multipliers(self, Q: Array, attract: Array, repel: Array | None = None) -> Array:
        """Λ = Q'(W + σI - D)Q. [nle, Eq. 12]"""
        net = attract + (self.sigma + self.inward - self.outward) * Q
        product = Q.T @ (net if repel is None else net - repel)
        return 0.5 * (product + product.T)

    def step(self, Q: Array) -> tuple[Array, float]:
        """Q after one update, and the trace objective before it. [nle, Eq. 11]"""
        xp, pulls = namespace(Q), self.pulls(Q)
        multipliers = self.multipliers(Q, *pulls)
        up, down = positive_part(multipliers), positive_part(-multipliers)

        def rows(Q: Array, inward: Array, outward: Array, attract: Array, repel: Array | float = 0.0) -> Array:
            above = attract + (self.sigma + inward) * Q + Q @ down
            below = repel + outward * Q + Q @ up
            return multiplicative_update(Q, above, below, guard=GUARD * self.unit, floor=FLOOR)

        return map_rows(rows, Q, self.inward, self.outward, *pulls), float(xp.sum(xp.linalg.diagonal(multipliers)))


def unit_columns(Q: Array) -> Array:
    """Columns scaled to length one."""
    xp = namespace(Q)
    lengths = xp.sqrt(xp.sum(Q * Q, axis=0))
    return Q / xp.where(lengths > 0, lengths, 1)[None, :]


def run(update: Update, Q: Array, *, max_iter: int, tol: float) -> NLERun:
    """Updates from one start until labels and memberships rest; the best labels seen are kept."""
    xp, k = namespace(Q), Q.shape[1]
    history: dict[str, list[float]] = {"objective": [], "cut": [], "moved": []}
    shown, n_iter, converged = xp.argmax(Q, axis=1), 0, False
    value = update.problem.value(shown, k)  # the start's own labels are the first seen
    best, best_labels = value, shown
    while n_iter < max_iter and not converged:
        last, (Q, trace) = Q, update.step(Q)
        n_iter += 1
        history["objective"].append(trace)
        if n_iter % CHECK and n_iter < max_iter:
            continue
        moved = float(xp.max(xp.abs(Q - last))) / float(xp.max(Q))
        labels = xp.argmax(Q, axis=1)
        same = bool(xp.all(labels == shown))
        if not same:
            shown, value = labels, update.problem.value(labels, k)
            if value < best:
                best, best_labels = value, labels
        history["cut"].append(value)
        history["moved"].append(moved)
        converged = same and moved < tol
    return NLERun(best_labels, best, Q, history, n_iter, converged)


# --------------------------------------------------------------------------------------------------------- the class


class NLE(GraphEstimatorMixin, ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Soft clusters of low Ratio Cut or normalised cut, read off a nonnegative embedding.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is made; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. :class:`LandmarkGraph` serves
        for complete graphs of many rows.
        With 'precomputed', ``fit`` takes a similarity matrix, whose entries may be negative.
    cut : {'ratio', 'ncut'}, default='ratio'
        The cut, by sizes or by volumes.
    signed : {'split', 'shift'}, default='split'
        How negative weights are taken; see the module's page. 'shift' also moves the smallest weight of a complete
        nonnegative graph to zero.
    init : {'auto', 'spectral', 'random'} or array, default='spectral'
        Starts: indicators of spectral clustering plus 0.2, uniform numbers, both kinds in turn; or labels, or
        memberships.
    n_init : int, default=10
        How many; spectral ones differ by the seeding of k-means. Of an array there is one.
    max_iter : int, default=300
    tol : float, default=1e-4
        On the largest movement of Q in an update, relative to its largest entry, once labels rest.
    polish : bool, default=True
        Move single nodes afterwards while that lowers the cut.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The best labels seen; with ``polish``, after it.
    memberships_ : array of shape (n_samples, n_clusters)
        Rows of Q scaled to sum to one. Where ``polish`` moved a node, its largest one need not be its label's.
    embedding_ : array of shape (n_samples, n_clusters)
        Q of the best start at its end.
    objective_ : float
        The cut of ``labels_``.
    history_ : dict of list
        Of the best start: 'objective', the trace of Eq. 9 before every update; 'cut' and 'moved' at every tenth.
    n_iter_ : int
    converged_ : bool
    outlier_scores_ : array of shape (n_samples,)
        Between 0 and 1: one minus the confidence of the membership (0 for even shares, 1 for a single cluster) times
        the degree as a share of the median degree, at most 1. Points that few others resemble, or that several
        clusters claim alike, score high.
    graph_ : AffinityGraph or LowRankAffinity
    n_features_in_ : int

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

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        cut: str = "ratio",
        signed: str = "split",
        init: Any = "spectral",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        polish: bool = True,
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> NLE:
        """Cluster the rows of ``X``, the nodes of a graph, or the objects of a similarity matrix.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), AffinityGraph, or similarity matrix if ``graph='precomputed'``
        y : array of shape (n,), optional
            For graphs made from labels.
        constraints : PairwiseConstraints, optional
            Must-links become edges of positive weight; cannot-links, edges of negative weight, count against a cluster
            that holds both ends. Rows whose must-links are hard become one node.
        """
        known = check_constraints(constraints, X)
        graph = self._affinity(X, y, known)
        nodes = _nodes(graph, known.groups if known is not None and known.hard else None)
        k = check_n_clusters(self.n_clusters, nodes.graph.n_nodes)
        max_iter, tol = check_int(self.max_iter, "max_iter"), check_nonnegative(self.tol, "tol")
        rng = check_random_state(self.random_state)
        problem = cut_problem(nodes.graph, self.cut, self.signed, nodes.sizes, repelling=has_repulsion(graph, known))
        self._signed = self.signed
        _check_differences(nodes.graph, problem)
        update = Update(problem, rng)
        with report_progress(self):
            starts = track_progress(self._starts(nodes, problem, k, rng), "starts", self.n_init)
            runs = (run(update, unit_columns(start), max_iter=max_iter, tol=tol) for start in starts)
            best = min((self._polished(one, problem, k) for one in runs), key=lambda one: one.value)
        self._store(best.at(nodes.place), graph, problem)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, constraints: Any = None) -> Array:
        """Fit and return the memberships."""
        return self.fit(X, y, constraints=constraints).memberships_

    def transform(self, X: Any) -> Array:
        """Memberships: of a new point its weights to the nodes times Q, scaled to sum to one; of a seen one its own."""
        return self._shares(*self._weights_to(X))

    def _shares(self, weights: Any, X: Array) -> Array:
        rows = positive_part(matmul(weights, self.embedding_))
        alone = to_numpy(namespace(rows).max(rows, axis=1)) == 0
        return replace_coincident_rows(normalize_row_sums(rows), self.memberships_, weights, alone, X, self._fit_X)

    def predict(self, X: Any) -> Array:
        """Clusters: of a new point the one of its largest membership; of a seen one its own."""
        weights, X = self._weights_to(X)
        labels, source = to_numpy(self._shares(weights, X)).argmax(axis=1), coincident_rows(weights, X, self._fit_X)
        labels = np.where(source >= 0, to_numpy(self.labels_)[np.maximum(source, 0)], labels)
        return asarray_like(labels, self.labels_, dtype=self.labels_.dtype)

    def _weights_to(self, X: Any) -> tuple[Any, Array]:
        """The weights from points to the nodes, and the points as the training rows are kept."""
        check_is_fitted(self)
        if isinstance(self.graph_, LowRankAffinity):
            raise ValueError("LandmarkGraph places no new points; fit with a graph of neighbours for that")
        if self._signed == "shift":
            raise ValueError("weights shifted for all pairs place no new points; fit with signed='split' for that")
        return self._links_to(X, self.embedding_)

    # ------------------------------------------------------------------------------------------------------ its parts

    def _recipe(self) -> Any:
        """The graph parameter with its default filled in; a matrix as a graph, whose weights may be negative."""
        if self.graph is None:
            return self_tuned()
        return AffinityGraph.from_matrix(self.graph, signed=True) if hasattr(self.graph, "shape") else self.graph

    def _affinity(self, X: Any, y: Any, known: PairwiseConstraints | None) -> Any:
        """The graph on ``X``, the graph that ``X`` is, or the landmarks' factor; pairs as edges."""
        recipe = self._recipe()
        if isinstance(recipe, LandmarkGraph) and not isinstance(X, AffinityGraph):
            if known is not None:
                raise ValueError("LandmarkGraph has no edges to which pairs could be added; use a graph of neighbours")
            self._fit_recipe, self._fit_X = recipe, None
            return recipe._build(check_data(X, estimator=self, min_samples=2))
        if is_pairwise(recipe) and not isinstance(X, AffinityGraph):
            self._fit_recipe, self._fit_X = recipe, None
            graph = AffinityGraph.from_matrix(check_data(X, estimator=self, min_samples=2), signed=True)
            graph = graph if known is None else add_links(graph, known)
            warn_if_disconnected(graph)
            return graph
        return self._build_graph(X, y, known)

    def _starts(self, nodes: _Nodes, problem: CutProblem, k: int, rng: np.random.RandomState) -> Iterable[Array]:
        """One start after the other, made when it is needed."""
        if not isinstance(self.init, str):
            return [_given(self.init, problem.degrees, k, nodes.n_rows)[nodes.order, :]]
        if self.init not in ("auto", "spectral", "random"):
            raise ValueError(f"init={self.init!r} must be 'auto', 'spectral', 'random', labels or memberships")
        kinds = {"spectral": ["spectral"], "random": ["random"], "auto": ["spectral", "random"]}[self.init]
        wanted = check_int(self.n_init, "n_init")
        names = [kinds[i % len(kinds)] for i in range(wanted)]
        vectors = cut_eigenvectors(nodes.graph, problem, k, self.cut, rng, self.signed) if "spectral" in names else None
        seeds = rng.randint(2**31 - 1, size=wanted)
        return (self._start(name, vectors, problem, k, np.random.RandomState(seed)) for name, seed in zip(names, seeds))

    def _start(self, name: str, vectors: Array, problem: CutProblem, k: int, rng: np.random.RandomState) -> Array:
        n, reference = problem.degrees.shape[0], problem.degrees
        if name == "random":
            return asarray_like(rng.uniform(size=(n, k)), reference, dtype=reference.dtype)
        labels = kmeans(vectors, k, n_init=1, random_state=rng).labels
        return one_hot(asarray_like(to_numpy(labels).astype(np.int64), reference), k, reference) + LIFT

    def _polished(self, one: NLERun, problem: CutProblem, k: int) -> NLERun:
        if not self.polish:
            return one
        labels, value = polish(problem, one.labels, k)
        return replace(one, labels=labels, value=value)

    def _store(self, best: NLERun, graph: Any, problem: CutProblem) -> None:
        if best.value == float("inf"):
            raise ValueError(
                "every start left a cluster empty; ask for fewer clusters, or try more starts or another graph"
            )
        if not best.converged:
            warnings.warn(
                f"the updates were still moving after max_iter={self.max_iter}; labels are the best seen, and a larger "
                "max_iter may find better ones",
                ConvergenceWarning,
                stacklevel=3,
            )
        xp = namespace(best.Q)
        self.labels_, self.objective_ = xp.astype(best.labels, xp.int64), best.value
        self.embedding_, self.history_ = best.Q, best.history
        self.memberships_ = best.Q / xp.sum(best.Q, axis=1)[:, None]
        self.n_iter_, self.converged_, self.graph_ = best.n_iter, best.converged, graph
        degrees = problem.degrees if isinstance(graph, LowRankAffinity) else graph.degrees
        degrees = asarray_like(to_numpy(degrees), best.Q, dtype=best.Q.dtype)
        self.outlier_scores_ = outlier_scores(self.memberships_, degrees)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


class _Nodes(NamedTuple):
    """The nodes that are cut: rows or groups of rows, in an order that suits the cache."""

    graph: Any
    order: Any  # a row of each node
    place: Any  # each row's node
    sizes: Any  # how many rows a node stands for; None: one
    n_rows: int


def _nodes(graph: Any, groups: np.ndarray | None) -> _Nodes:
    """Groups of rows made one node each; a large SciPy graph renumbered so that neighbours are near each other."""
    n, all_rows = graph.n_nodes, slice(None)
    nodes = _Nodes(graph, all_rows, all_rows, None, n)
    if groups is not None:
        _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
        nodes = _Nodes(contract_groups(graph, groups), first, groups, sizes, n)
    if isinstance(graph, LowRankAffinity) or not sp.issparse(graph.weights) or nodes.graph.n_nodes < RENUMBER_FROM:
        return nodes
    graph = nodes.graph
    weights, order, place = reorder_for_locality(graph.weights)
    loops = None if graph.loops is None else graph.loops[order]
    near = AffinityGraph(weights, signed=graph.signed, loops=loops)
    stands_for = None if nodes.sizes is None else nodes.sizes[order]
    return _Nodes(near, np.arange(n)[nodes.order][order], place[nodes.place], stands_for, n)


def outlier_scores(memberships: Array, degrees: Array) -> Array:
    """One minus confidence times relative degree; see :class:`NLE`."""
    xp, k = namespace(memberships), memberships.shape[1]
    confidence = (k * xp.max(memberships, axis=1) - 1) / (k - 1) if k > 1 else xp.ones_like(memberships[:, 0])
    usual = float(np.median(to_numpy(degrees)))
    relative = positive_part(degrees) / usual if usual > 0 else xp.ones_like(degrees)
    return 1 - confidence * xp.where(relative < 1, relative, 1)


def _given(init: Any, reference: Array, k: int, n: int) -> Array:
    """A start from labels or memberships of the n rows."""
    host = to_numpy(init.toarray() if hasattr(init, "toarray") else init)
    if host.ndim == 2:
        sound = host.shape == (n, k) and host.dtype.kind in "fiub" and np.isfinite(host).all() and (host >= 0).all()
        if not sound or (host.max(axis=0) == 0).any():
            raise ValueError(
                f"init as memberships must be finite and nonnegative numbers of shape ({n}, {k}), no column all zeros; "
                f"got shape {host.shape}, type {host.dtype}"
            )
        return asarray_like(host, reference, dtype=reference.dtype)
    labels = check_labels(host, "init", n_samples=n)
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= k:
        raise ValueError(f"init as labels must be whole numbers from 0 to {k - 1}")
    return one_hot(asarray_like(labels.astype(np.int64), reference), k, reference) + LIFT


def _check_differences(graph: Any, problem: CutProblem) -> None:
    """Refuse similarities under which all cuts are alike: none at all, or the same for every pair."""
    xp, n = namespace(problem.degrees), graph.n_nodes
    if isinstance(graph, LowRankAffinity):
        rows = graph.factor
        alike = float(xp.max(xp.abs(rows - rows[:1, :]))) <= 1e-6 * float(xp.max(xp.abs(rows)))
    else:
        data = csr_parts(graph.weights)[0]
        alike = data.shape[0] == 0
        if n > 2 and data.shape[0] == n * (n - 1):
            spread = float(namespace(data).max(data)) - float(namespace(data).min(data))
            alike = spread <= 100 * eps(data) * abs(float(data[0]))
    if alike:
        raise ValueError("all similarities are equal, so no cut is better than another; check the data or the graph")
