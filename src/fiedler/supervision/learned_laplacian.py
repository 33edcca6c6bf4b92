"""The learned Laplacian: a metric and a scale under which the graph agrees with what is known. Key: learned_laplacian.

    minimise  Q(A) = Σ_{must} l_ij - Σ_{cannot} l_ij + λ Σ_j Σ_{i in N_j} l_ij,   w_ij = exp(-‖A(x_i - x_j)‖²)   (Eq. 8)

See `objective` for Q and its gradient and `descent` for the minimisers. As printed (``optimizer="doubling",
pair_weight=1, inject=False``) A starts at I/δ, δ the median distance, and takes fifty steps of the doubling rule.

Where our default differs, and why. Pairs grow with the square of the labels and soon outweigh the neighbourhoods, so
that A fits them at the cost of everything else (the published curves fall). So by default only the neighbourhoods shape
A (``pair_weight=0``), from the best scale on and held near it by a penalty; the pairs, not used so far, judge how
firmly: of the penalties tried the firmest one that is as good at telling mates from others, within the error, is taken.
Then the pairs are written into the graph (``inject``): its largest weight for must-links, none for cannot-links.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_dense, check_int, check_nonnegative, choose
from ..core.backend import Array, convert_like, namespace, to_numpy
from ..core.progress import ProgressMixin, report_progress
from ..core.rows import take_rows
from ..core.sparse import Sparse, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.constraints import PairwiseConstraints, check_constraints
from ..graph.kernels import Constants
from ..graph.labels import as_column
from ..graph.neighbors import k_nearest, pairwise_distances
from ..graph.pairs import overwrite_links
from ..graph.recipes import FullGraph, KNNGraph
from .descent import Descent, best_scale, doubling, near_the_start
from .evidence import Judges, firmest, judged, mates_and_others
from .objective import METRICS, AllPairs, EdgeList, LaplacianObjective, coefficients, eye

FULL_UP_TO = 4096  # rows, above which the default graph is sparse
WIDER = 5  # a sparse graph is learnt on so many times its neighbours: among neighbours alone every scale is as good
PENALTIES = (math.inf, 0.1, 0.01, 0.001)  # from firm to loose; infinite: the scale alone
UNJUDGED = 0.01  # the penalty where no pairs can tell
MAX_PAIRS = 200_000  # of either kind, drawn from labels
PER_POINT = "balanced"


class LearnedLaplacian(ProgressMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A graph whose metric and scale are learnt from the data's neighbourhoods and from pairs or labels of some rows.

    Parameters
    ----------
    metric : {'full', 'diagonal', 'low_rank', 'scale'}, default='full'
        The shape of A.
    optimizer : {'lbfgs', 'doubling'}, default='lbfgs'
        'lbfgs' begins at the best scale and is held near it by ``penalty``; 'doubling' is Fig. 1 of the paper.
    penalty : float or 'auto', default='auto'
        Of 'lbfgs', on ‖A - A₀‖²/‖A₀‖², in units of the neighbourhood term. 'auto' lets the pairs judge; where they
        cannot (none of one kind, or they shape A themselves) it is 0.01.
    n_neighbors : int, default=20
        N, the size of the neighbourhoods.
    lam : float, optional
        λ; default 1/N. Zero leaves the neighbourhoods out ("Method 2" of the paper).
    pair_weight : float, pair of floats or 'balanced', default=0
        What a pair weighs in the objective, or a must-link and a cannot-link; 1 is as printed. 'balanced': the pairs of
        either kind at a row share one unit, as its neighbours do.
    inject : bool, default=True
        Write the pairs into the graph that was learnt.
    graph : {'full'}, KNNGraph or None, default=None
        'full': every pair of rows has a weight. A recipe of neighbours: learnt on the edges of five times as many and
        the pairs, then built in the learnt metric, with its weights. None: up to 4096 rows learnt as 'full', and that
        or ten neighbours in the learnt metric, whichever tells mates from others better; above, ``KNNGraph(20)``.
    n_components : int, optional
        The rows of A for 'low_rank'; default half the features, rounded down.
    max_iter : int, default=50
    random_state : int, RandomState or None, default=None
        Draws the rows and pairs where there are too many to use all.

    Attributes
    ----------
    metric_ : array of shape (n_components, n_features)
        A: distances are ‖A(x - y)‖, weights exp(-‖A(x - y)‖²).
    graph_ : AffinityGraph
    scale_ : float
        The best scale, in units of 1/δ; what 'lbfgs' began from. 1 for 'doubling'.
    penalty_ : float
        The penalty taken; infinite for the scale alone.
    evidence_ : dict
        For every penalty tried, how often a row is nearer to its mates than to others: one share a judging row.
    history_ : dict of list
        'objective', and by optimizer 'rate' or 'penalty'.
    n_iter_, n_failures_ : int
        Steps, and those undone by the doubling rule.
    converged_ : bool
        Of 'lbfgs', for which running out of steps is no fault: stopping early holds A near its start as well. The
        printed rule ends after its steps.
    constraints_ : PairwiseConstraints
    n_features_in_ : int

    Notes
    -----
    Accepted as ``graph=`` by every estimator that takes one. ``fit(X, y)`` hands on what is known, to clusterers only
    partial labels, with -1 where unknown; so does ``fit(X, constraints=...)`` of SpectralClustering, NLE, the mixtures
    and LLGC.

    References
    ----------
    B. Xie, M. Wang, D. Tao, "Toward the optimization of normalized graph Laplacian", IEEE Transactions on Neural
    Networks 22, 2011.

    Examples
    --------
    >>> from fiedler import SpectralClustering
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.metrics import clustering_accuracy
    >>> from fiedler.supervision import LearnedLaplacian, PairwiseConstraints
    >>> X, y = two_moons(n_samples=200, noise=0.1, random_state=0)
    >>> pairs = PairwiseConstraints.from_labels(y, rate=0.05, random_state=0)
    >>> model = SpectralClustering(2, LearnedLaplacian(), random_state=0).fit(X, constraints=pairs)
    >>> clustering_accuracy(y, model.labels_) > 0.95
    True
    """

    uses_labels = True
    uses_constraints = True

    def __init__(
        self,
        metric: str = "full",
        optimizer: str = "lbfgs",
        *,
        penalty: float | str = "auto",
        n_neighbors: int = 20,
        lam: float | None = None,
        pair_weight: Any = 0.0,
        inject: bool = True,
        graph: Any = None,
        n_components: int | None = None,
        max_iter: int = 50,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.optimizer = optimizer
        self.penalty = penalty
        self.n_neighbors = n_neighbors
        self.lam = lam
        self.pair_weight = pair_weight
        self.inject = inject
        self.graph = graph
        self.n_components = n_components
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> LearnedLaplacian:
        """Learn from the rows of ``X``, pairs of them, and labels ``y`` of some of them, -1 where unknown."""
        X = check_dense(X, estimator=self, min_samples=2)
        rng = check_random_state(self.random_state)
        pairs = self._known(X, y, constraints, rng)
        rows = _standardised(X, rng)
        recipes = self._recipes(X.shape[0])
        problem = self._problem(rows.X, pairs, recipes[0])
        with report_progress(self):
            candidates = self._candidates(problem)
        places = {penalty: problem.metric.embed(found.theta, rows.X) for penalty, found in candidates.items()}
        judges = None if self._learns_from_pairs() else mates_and_others(pairs, rng)
        self.penalty_, graph = self._best_graph(places, recipes, judges)
        found = candidates[self.penalty_]
        self.metric_ = problem.metric.matrix(found.theta, rows.X) @ rows.axes
        self._store(found, graph, pairs)
        return self

    def build(self, X: Any, y: Any = None, constraints: Any = None) -> AffinityGraph:
        """The graph on the rows of ``X``, learnt; what estimators with a ``graph`` parameter call."""
        return self.fit(X, y, constraints=constraints).graph_

    def link(self, X_new: Any, X: Any, graph: AffinityGraph) -> Sparse:
        """The weights (n_new, n) from new points to the rows of ``X``, under the metric of ``graph``."""
        learnt = graph.constants or Constants()
        if learnt.metric is None:
            raise ValueError("the graph was not learnt by LearnedLaplacian, so there is no metric for new points")
        X, X_new = (check_data(rows) @ learnt.metric.T for rows in (X, X_new))
        return _in_learnt_metric(_as_recipe(learnt.neighbors)).link(X_new, X, graph)

    def transform(self, X: Any) -> Array:
        """XA': rows whose Euclidean distances are the learnt ones."""
        check_is_fitted(self)
        return convert_like(check_dense(X, estimator=self, reset=False), self.metric_) @ self.metric_.T

    # ------------------------------------------------------------------------------------------------------ its parts

    def _known(self, X: Array, y: Any, constraints: Any, rng: np.random.RandomState) -> PairwiseConstraints:
        n = X.shape[0]
        pairs = check_constraints(constraints, X) or PairwiseConstraints(n_samples=n)
        pairs = pairs.closure() if pairs.n_implied <= 2 * MAX_PAIRS else pairs
        if y is None:
            return pairs
        labelled = PairwiseConstraints.from_labels(as_column(y), max_pairs=MAX_PAIRS, random_state=rng)
        must = np.concatenate([pairs.must_link, labelled.must_link])
        return PairwiseConstraints(must, np.concatenate([pairs.cannot_link, labelled.cannot_link]), n)

    def _recipes(self, n: int) -> list[Any]:
        """The graph to learn on and, where the choice is ours, a sparse one that may be better in the end."""
        graphs: list[Any] = [self.graph]
        if self.graph is None:
            graphs = [FullGraph(), KNNGraph(10, connect="mst")] if n <= FULL_UP_TO else [KNNGraph(20)]
        elif isinstance(self.graph, str):
            graphs = [choose({"full": FullGraph()}, self.graph, option="graph")]
        elif not isinstance(self.graph, KNNGraph) or self.graph.metric != "euclidean":
            raise TypeError(f"graph={self.graph!r} must be 'full', a KNNGraph of Euclidean distances, or None")
        fitting = [graph for graph in graphs if isinstance(graph, FullGraph) or graph.n_neighbors < n]
        return [_in_learnt_metric(graph) for graph in fitting or graphs]

    def _problem(self, X: Array, pairs: PairwiseConstraints, recipe: Any) -> LaplacianObjective:
        """Eq. 8 for these rows."""
        n = X.shape[0]
        metric = choose(METRICS, self.metric, option="metric")
        wanted = min(check_int(self.n_neighbors, "n_neighbors"), n - 1)
        lam = 1 / wanted if self.lam is None else check_nonnegative(self.lam, "lam")
        weights = _pair_weights(self.pair_weight, pairs)
        if lam == 0 and (pairs.n_pairs == 0 or not any(np.any(np.asarray(weight) > 0) for weight in weights)):
            raise ValueError("there is nothing to learn from: lam=0 leaves neighbours out, and no pair has a weight")
        C = coefficients(n, pairs.must_link, pairs.cannot_link, weights, _neighbour_pattern(X, wanted), lam)
        if isinstance(recipe, FullGraph):
            return LaplacianObjective(X, AllPairs(C, X), metric)
        wide = clone(recipe).set_params(n_neighbors=min(WIDER * recipe.n_neighbors, n - 1), weight="binary")
        return LaplacianObjective(X, EdgeList(C, to_scipy(wide.build(X).weights), X), metric)

    def _candidates(self, problem: LaplacianObjective) -> dict[float, Descent]:
        """The minimum for every penalty to be tried."""
        max_iter = check_int(self.max_iter, "max_iter")
        d, penalties = problem.X.shape[1], self._penalties()
        rank = max(d // 2, 1) if self.n_components is None else check_int(self.n_components, "n_components")
        start = problem.metric.start(problem.X, min(rank, d))
        optimizer = choose({"lbfgs": near_the_start, "doubling": doubling}, self.optimizer, option="optimizer")
        if optimizer is doubling:
            self.scale_ = 1.0
            return {0.0: doubling(problem.value_and_gradient, start, max_iter=max_iter)}
        self.scale_ = best_scale(lambda scale: problem.value(scale * start))
        start = self.scale_ * start
        still = Descent(start, {"objective": [problem.value(start)], "penalty": [0.0]}, 1, True)
        if self.metric == "scale":
            return {math.inf: still}
        found, theta = {}, start
        for penalty in penalties:
            if math.isinf(penalty):
                found[penalty] = still
                continue
            found[penalty] = near_the_start(
                problem.value_and_gradient, start, max_iter=max_iter, penalty=penalty, size=problem.X.shape[0], at=theta
            )
            theta = found[penalty].theta
        return found

    def _penalties(self) -> tuple[float, ...]:
        if not isinstance(self.penalty, str):
            return (self.penalty if self.penalty == math.inf else check_nonnegative(self.penalty, "penalty"),)
        choose({"auto": None}, self.penalty, option="penalty")
        return (UNJUDGED,) if self._learns_from_pairs() else PENALTIES

    def _learns_from_pairs(self) -> bool:
        """Whether pairs shape A, so that they can no longer judge it."""
        return isinstance(self.pair_weight, str) or bool(np.any(np.asarray(self.pair_weight) != 0))

    def _best_graph(
        self, places: dict[float, Array], recipes: list[Any], judges: Judges | None
    ) -> tuple[float, AffinityGraph]:
        """By what the pairs say: the penalty first, on the kind of graph that was learnt on, then the kind of graph."""
        recipe, *others = recipes
        self.evidence_, self._neighbors = {}, getattr(recipe, "n_neighbors", None)
        if judges is None:
            unjudged = UNJUDGED if UNJUDGED in places else next(iter(places))
            return unjudged, recipe.build(places[unjudged])
        graphs = {penalty: recipe.build(place) for penalty, place in places.items()}
        self.evidence_ = {penalty: judged(graph, judges) for penalty, graph in graphs.items()}
        chosen = firmest(self.evidence_)
        best, reached = graphs[chosen], self.evidence_[chosen].mean()
        for other in others:
            graph = other.build(places[chosen])
            if (mean := judged(graph, judges).mean()) > reached:
                best, reached, self._neighbors = graph, mean, other.n_neighbors
        return chosen, best

    def _store(self, found: Descent, graph: AffinityGraph, pairs: PairwiseConstraints) -> None:
        self.history_, self.n_iter_, self.converged_ = found.history, found.n_iter, found.converged
        self.n_failures_, self.constraints_ = found.n_failures, pairs
        constants = replace(graph.constants or Constants(), metric=self.metric_, neighbors=self._neighbors)
        told = graph.with_weights(graph.weights, constants=constants)
        self.graph_ = overwrite_links(told, pairs) if self.inject and pairs.n_pairs else told

    @property
    def _n_features_out(self) -> int:
        return int(self.metric_.shape[0])


# ---------------------------------------------------------------------------------------------------- rows and weights


class _Rows(NamedTuple):
    """Rows centred, rotated and divided by the median distance, and the matrix that takes the old ones to them."""

    X: Array
    axes: Array  # (r, d): new = axes @ (old - mean)


def _standardised(X: Array, rng: np.random.RandomState) -> _Rows:
    """Rows at a median distance of one, so that A₀ = I; rotated into their own span where features outnumber them.

    Euclidean distances are all that the objective sees, so the rotation changes nothing but the cost.
    """
    xp, n = namespace(X), X.shape[0]
    part = X if n <= FULL_UP_TO else take_rows(X, np.sort(rng.permutation(n)[:1000]))
    distances = to_numpy(pairwise_distances(part, part))
    median = float(np.median(distances[~np.eye(len(distances), dtype=bool)]))
    if not median > 0:
        raise ValueError(
            "the median distance between rows is 0: more than half of the pairs are duplicates; remove them"
        )
    centred = X - xp.mean(X, axis=0)[None, :]
    own_span = X.shape[1] > n
    axes = (xp.linalg.svd(centred, full_matrices=False)[2] if own_span else eye(X)) / median
    return _Rows(centred @ axes.T, axes)


def _as_recipe(neighbors: int | None) -> Any:
    return FullGraph() if neighbors is None else KNNGraph(neighbors)


def _in_learnt_metric(recipe: Any) -> Any:
    """The recipe with exp(-d²) for its kernel: the heat kernel of bandwidth √½."""
    return clone(recipe).set_params(weight="heat", bandwidth=math.sqrt(0.5))


def _neighbour_pattern(X: Array, count: int) -> sp.csr_array:
    """One for every j among the nearest of i, by Euclidean distance."""
    edges = k_nearest(X, count)
    rows, columns = to_numpy(edges.rows), to_numpy(edges.columns)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(X.shape[0],) * 2)


def _pair_weights(given: Any, pairs: PairwiseConstraints) -> tuple[Any, Any]:
    """The weights of must-links and of cannot-links."""
    if isinstance(given, str):
        choose({PER_POINT: None}, given, option="pair_weight")
        return _per_point(pairs.must_link, pairs.n_samples), _per_point(pairs.cannot_link, pairs.n_samples)
    both = (given, given) if np.ndim(given) == 0 else tuple(given)
    if len(both) != 2:
        raise ValueError(
            f"pair_weight must be a number, two numbers (must-links, cannot-links) or 'balanced'; got {given!r}"
        )
    return check_nonnegative(both[0], "pair_weight"), check_nonnegative(both[1], "pair_weight")


def _per_point(pairs: np.ndarray, n: int) -> np.ndarray:
    """1/m_i + 1/m_j, m_i the number of pairs at row i."""
    counts = np.maximum(np.bincount(pairs.ravel(), minlength=n), 1)
    return (1 / counts[pairs]).sum(axis=1)
