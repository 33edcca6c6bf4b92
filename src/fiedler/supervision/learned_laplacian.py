"""The learned Laplacian: a metric and a scale for which the graph agrees with known labels and pairs.

Paper key: learned_laplacian.

    minimise  Q(A) = Σ_{must} l_ij - Σ_{cannot} l_ij + λ Σ_j Σ_{i in N_j} l_ij,   w_ij = exp(-‖A(x_i - x_j)‖²)   (Eq. 8)

See `objective` for Q and its gradient and `descent` for the minimisers. As printed (``optimizer="doubling",
pair_weight=1, inject=False``) A starts at I/δ, δ the median distance, and takes fifty steps of the doubling rule.

Our default differs as follows. The number of pairs grows with the square of the number of labels, so they soon outweigh
the neighbourhoods and A overfits them (the published curves fall). By default only the neighbourhoods therefore shape A
(``pair_weight=0``), starting from the best scale, with a penalty on the distance to it. The pairs, not used so far,
select the penalty: the strongest one under which rows are as close to must-linked rows, compared with cannot-linked
rows, as under the best one, within one standard error. Then the pairs are written into the graph (``inject``): its
largest weight for must-links, zero for cannot-links.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._typing import LabelsLike, MatrixLike, RandomState
from .._validation import (
    Check,
    check_bool,
    check_data,
    check_dense,
    check_nonnegative,
    check_seed,
    integer,
    none_or,
    one_of,
    validate_parameters,
)
from ..core.arrays import Array, convert_rows, namespace, take_rows, to_numpy
from ..core.fitting import ProgressMixin, fit_method
from ..core.sparse import Sparse, to_scipy
from ..errors import InputError, InputTypeError, shown
from ..graph.affinity import AffinityGraph
from ..graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints, overwrite_edges
from ..graph.kernels import KernelConstants, check_complete_graph, pairwise_distances
from ..graph.labels import as_column
from ..graph.neighbors import k_nearest
from ..graph.recipes import FullGraph, KNNGraph
from .objective import (
    METRIC_FAMILIES,
    DenseWeights,
    DescentResult,
    LaplacianObjective,
    PairRanking,
    PairWeight,
    SparseWeights,
    best_scale,
    coefficients,
    doubling_descent,
    feature_identity,
    levenberg_marquardt,
    penalized_history,
    penalized_lbfgs,
    ranking_auc,
    ranking_from_pairs,
    select_strongest_penalty,
)

FULL_GRAPH_MAX_ROWS = 4096  # above this many rows the default graph is sparse
NEIGHBORHOOD_FACTOR = 5  # learn on this many times the neighbours of a sparse graph: on its edges all scales tie
PENALTIES = (math.inf, 0.1, 0.01, 0.001)  # candidates, from strong to weak; infinite: only the scale is learned
DEFAULT_PENALTY = 0.01  # where no pairs can select one
MAX_PAIRS = 200_000  # of each kind, drawn from labels

# Minimisers, and what they are given of the objective.
OPTIMIZERS: dict[str, tuple[Callable[..., DescentResult], Callable[[LaplacianObjective], Any]]] = {
    "lbfgs": (penalized_lbfgs, lambda objective: objective.value_and_gradient),
    "levenberg_marquardt": (levenberg_marquardt, lambda objective: objective.residuals),
    "doubling": (doubling_descent, lambda objective: objective.value_and_gradient),
}


def _check_penalty(value: object, name: str) -> None:
    """Raise an error unless a penalty is a non-negative number or infinity."""
    if not (isinstance(value, numbers.Real) and value == math.inf):
        check_nonnegative(value, name, or_else="infinity or 'auto'")


def _check_pair_weight(value: Any, name: str) -> None:
    """Raise an error unless a weight of pairs is one number or two."""
    both = (value, value) if np.ndim(value) == 0 else tuple(value)
    if len(both) != 2:
        problem = f"{name} must be a number, two numbers (must-links, cannot-links) or 'balanced'; got {shown(value)}"
        raise InputError(problem, code="invalid_parameter", parameter=name, value=value)
    for weight in both:
        check_nonnegative(weight, name)


def _check_graph(graph: Any, name: str) -> None:
    """Raise an error unless a graph is a recipe of neighbours by Euclidean distance."""
    if not (isinstance(graph, KNNGraph) and graph.metric == "euclidean"):
        problem = f"{name}={shown(graph)} must be 'full', a KNNGraph with Euclidean distances, or None"
        raise InputTypeError(problem, code="not_a_graph", parameter=name, value=graph)


class LearnedLaplacian(ProgressMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A graph whose metric and scale are learned from neighbourhoods and from known pairs or labels.

    Parameters
    ----------
    metric : {'full', 'diagonal', 'low_rank', 'scale'}, default='full'
        The form of A: any square matrix, a diagonal one, one with ``n_components`` rows, or a multiple of the identity.
    optimizer : {'lbfgs', 'levenberg_marquardt', 'doubling'}, default='lbfgs'
        'lbfgs' and 'levenberg_marquardt' start from the best scale and stay near it by ``penalty``; they minimise the
        same objective, the latter in fewer steps that cost more. 'doubling' is Fig. 1 of the paper.
    penalty : float or 'auto', default='auto'
        The penalty on ‖A - A₀‖²/‖A₀‖², in units of the neighbourhood term; 'doubling' has none. 'auto' selects it by
        the pairs; if they cannot (there are none of one kind, or they shape A themselves) it is 0.01.
    n_neighbors : int, default=20
        The size N of the neighbourhoods.
    lam : float, optional
        The weight λ of the neighbourhoods; default 1/N. Zero leaves them out ("Method 2" of the paper).
    pair_weight : float, pair of floats or 'balanced', default=0
        The weight of a pair in the objective, or of a must-link and of a cannot-link; 1 as printed. With 'balanced' the
        pairs of either kind at a row share one unit, as its neighbours do.
    inject : bool, default=True
        Whether to write the pairs into the learned graph.
    graph : {'full'}, KNNGraph or None, default=None
        'full': every pair of rows has a weight. A :class:`KNNGraph`: A is learned on the pairs and on the edges to five
        times as many neighbours, then the graph is built in the learned metric. None: with up to 4096 rows A is learned
        as for 'full', and the graph is that or one of ten neighbours in the learned metric, whichever agrees better
        with the pairs; with more rows, ``KNNGraph(20)``.
    n_components : int, optional
        The number of rows of A for 'low_rank'; default half the number of features, rounded down.
    max_iter : int, default=50
        The maximum number of steps.
    random_state : int, RandomState or None, default=None
        Random seed or generator, for sampling rows and pairs where there are too many to use all.

    Attributes
    ----------
    metric_ : array of shape (n_components, n_features)
        The matrix A: distances are ‖A(x - y)‖, weights exp(-‖A(x - y)‖²).
    graph_ : AffinityGraph
        The learned graph.
    scale_ : float
        The best scale in units of 1/δ, from which the descent starts; 1 for 'doubling'.
    penalty_ : float
        The selected penalty; infinite if only the scale was learned.
    evidence_ : dict
        For every candidate penalty, one AUC per constrained row: how often it is closer to a must-linked row than to a
        cannot-linked one. Empty if the pairs did not select.
    history_ : FitHistory
        The objective, Q plus the penalty, which is minimised. Terms: the "loss" Q and the "penalty"; for 'doubling',
        which has no penalty, the "rate" of the steps.
    n_iter_, n_failures_ : int
        The number of steps, and how many of them 'doubling' or 'levenberg_marquardt' undid.
    converged_ : bool
        Whether the minimisation converged. Reaching ``max_iter`` is not an error and gives no warning, since stopping
        early also keeps A near its start. Always True for 'doubling', which takes a fixed number of steps.
    constraints_ : PairwiseConstraints
        The pairs that were used, including those from labels.
    n_features_in_ : int
        The number of features of ``X``.

    Notes
    -----
    Every estimator with a ``graph`` parameter accepts it. Their ``fit(X, y)`` passes labels on to it (clusterers only
    partial labels, with -1 where unknown), and ``fit(X, constraints=...)`` of SpectralClustering, NLE, the mixtures and
    LLGC passes pairs on. The object that is given as the parameter is not changed.

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

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "metric": one_of(METRIC_FAMILIES),
        "optimizer": one_of(OPTIMIZERS),
        "penalty": one_of(["auto"], _check_penalty),
        "n_neighbors": integer(),
        "lam": none_or(check_nonnegative),
        "pair_weight": one_of(["balanced"], _check_pair_weight),
        "inject": check_bool,
        "graph": none_or(one_of(["full"], _check_graph)),
        "n_components": none_or(integer()),
        "max_iter": integer(),
        "random_state": check_seed,
    }
    uses_labels = True
    uses_constraints = True

    def __init__(
        self,
        metric: Literal["full", "diagonal", "low_rank", "scale"] = "full",
        optimizer: Literal["lbfgs", "levenberg_marquardt", "doubling"] = "lbfgs",
        *,
        penalty: float | Literal["auto"] = "auto",
        n_neighbors: int = 20,
        lam: float | None = None,
        pair_weight: float | tuple[float, float] | Literal["balanced"] = 0.0,
        inject: bool = True,
        graph: KNNGraph | Literal["full"] | None = None,
        n_components: int | None = None,
        max_iter: int = 50,
        random_state: RandomState = None,
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

    @fit_method
    def fit(self, X: MatrixLike, y: LabelsLike | None = None, *, constraints: ConstraintsLike = None) -> Self:
        """Learn from the rows of ``X``, pairs of rows, and labels ``y`` of some rows (-1 where unknown)."""
        return self._learn(check_data(X, estimator=self, min_samples=2), y, constraints)

    def build(self, X: MatrixLike, y: LabelsLike | None = None, constraints: ConstraintsLike = None) -> AffinityGraph:
        """Learn the graph on the rows of ``X`` without fitting this object; called by estimators with a ``graph``."""
        return self._build(check_data(X, min_samples=2), y, constraints)

    def link(self, X_new: MatrixLike, X: MatrixLike, graph: AffinityGraph) -> Sparse:
        """Return the weights (n_new, n) from new points to the rows of ``X``, in the metric learned with ``graph``."""
        return self._link(check_data(X_new), check_data(X), graph)

    def transform(self, X: MatrixLike) -> Array:
        """Return XA': rows whose Euclidean distances are the learned ones."""
        check_is_fitted(self)
        return convert_rows(check_dense(X, estimator=self, reset=False), self.metric_) @ self.metric_.T

    def _build(self, X: Array, y: LabelsLike | None = None, constraints: ConstraintsLike = None) -> AffinityGraph:
        """:meth:`build` for validated rows."""
        validate_parameters(self)
        return copy(self)._learn(X, y, constraints).graph_

    def _link(self, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
        """:meth:`link` for validated rows."""
        constants = graph.constants or KernelConstants()
        if constants.metric is None:
            problem = "the graph was not learned by LearnedLaplacian, so it has no metric for new points"
            raise InputError(problem, "pass the graph_ of a fitted LearnedLaplacian", code="not_a_learned_graph")
        recipe = FullGraph() if constants.neighbors is None else KNNGraph(constants.neighbors)
        return _in_learned_metric(recipe)._link(X_new @ constants.metric.T, X @ constants.metric.T, graph)

    def _learn(self, X: Array, y: LabelsLike | None, constraints: ConstraintsLike) -> Self:
        """Learn the metric and the graph from validated rows."""
        if sp.issparse(X):
            problem = "LearnedLaplacian does not accept sparse rows"
            hint = "reduce their dimension first, for example with TruncatedSVD"
            raise InputError(problem, hint, code="sparse_not_supported")
        recipes = self._recipes(X.shape[0])
        if isinstance(recipes[0], FullGraph):
            check_complete_graph(X.shape[0], X)
        rng = check_seed(self.random_state)
        pairs = _combine_constraints(X, y, constraints, rng)
        rows, axes = _standardize(X, rng)
        objective = self._objective(rows, pairs, recipes[0])
        scale, candidates = self._minimize(objective)
        embeddings = {penalty: objective.metric.embed(run.theta, rows) for penalty, run in candidates.items()}
        ranking = None if self._learns_from_pairs() else ranking_from_pairs(pairs, rng)
        selected = _select_graph(embeddings, recipes, ranking)
        descent = candidates[selected.penalty]
        self.metric_ = objective.metric.matrix(descent.theta, rows) @ axes
        self.graph_, self.constraints_ = self._finish(selected, self.metric_, pairs), pairs
        self.penalty_, self.scale_, self.evidence_ = selected.penalty, scale, selected.evidence
        self.history_, self.n_iter_, self.converged_ = descent.history, descent.n_iter, descent.converged
        self.n_failures_ = descent.n_failures
        return self

    def _recipes(self, n: int) -> list[FullGraph | KNNGraph]:
        """Return the graph to learn on and, for ``graph=None``, a sparse alternative for the final graph."""
        graphs: list[FullGraph | KNNGraph]
        if self.graph is None:
            graphs = [FullGraph(), KNNGraph(10, connect="mst")] if n <= FULL_GRAPH_MAX_ROWS else [KNNGraph(20)]
        else:
            graphs = [FullGraph() if isinstance(self.graph, str) else self.graph]
        feasible = [graph for graph in graphs if isinstance(graph, FullGraph) or graph.n_neighbors < n]
        return [_in_learned_metric(graph) for graph in feasible or graphs]

    def _objective(self, X: Array, pairs: PairwiseConstraints, recipe: FullGraph | KNNGraph) -> LaplacianObjective:
        """Set up Eq. 8 for these rows."""
        n = X.shape[0]
        metric, n_neighbors = METRIC_FAMILIES[self.metric], min(self.n_neighbors, n - 1)
        lam = 1 / n_neighbors if self.lam is None else float(self.lam)
        weights = _pair_weights(self.pair_weight, pairs)
        if lam == 0 and (pairs.n_pairs == 0 or not any(np.any(np.asarray(weight) > 0) for weight in weights)):
            problem = "there is nothing to learn from: lam=0 leaves out the neighbourhoods, and no pair has a weight"
            hint = "set lam above 0, or pass pairs and a pair_weight above 0"
            raise InputError(problem, hint, code="nothing_to_learn_from")
        C = coefficients(n, pairs.must_link, pairs.cannot_link, weights, neighbor_indicators(X, n_neighbors), lam)
        if isinstance(recipe, FullGraph):
            return LaplacianObjective(X, DenseWeights(C, X), metric)
        wider = min(NEIGHBORHOOD_FACTOR * recipe.n_neighbors, n - 1)
        edges = clone(recipe).set_params(n_neighbors=wider, weight="binary")._build(X).weights
        return LaplacianObjective(X, SparseWeights(C, to_scipy(edges), X), metric)

    def _minimize(self, objective: LaplacianObjective) -> tuple[float, dict[float, DescentResult]]:
        """Return the best scale, and the minimum for every candidate penalty."""
        max_iter, (n, d) = self.max_iter, objective.X.shape
        rank = max(d // 2, 1) if self.n_components is None else self.n_components
        start = objective.metric.start(objective.X, min(rank, d))
        minimizer, of_objective = OPTIMIZERS[self.optimizer]
        if minimizer is doubling_descent:
            return 1.0, {0.0: doubling_descent(objective.value_and_gradient, start, max_iter=max_iter)}
        scale = best_scale(lambda scale: objective.value(scale * start))
        start = scale * start
        scale_only = DescentResult(start, penalized_history([objective.value(start)], [0.0]), 1, True)
        if self.metric == "scale":
            return scale, {math.inf: scale_only}
        candidates, theta = {}, start
        for penalty in self._penalties():
            if math.isinf(penalty):
                candidates[penalty] = scale_only
                continue
            candidates[penalty] = minimizer(
                of_objective(objective), start, max_iter=max_iter, penalty=penalty, unit=n, start=theta
            )
            theta = candidates[penalty].theta
        return scale, candidates

    def _penalties(self) -> tuple[float, ...]:
        if not isinstance(self.penalty, str):
            return (float(self.penalty),)
        return (DEFAULT_PENALTY,) if self._learns_from_pairs() else PENALTIES

    def _learns_from_pairs(self) -> bool:
        """Whether pairs shape A, in which case they cannot be used to evaluate it."""
        return isinstance(self.pair_weight, str) or bool(np.any(np.asarray(self.pair_weight) != 0))

    def _finish(self, selected: _SelectedGraph, metric: Array, pairs: PairwiseConstraints) -> AffinityGraph:
        """Store the metric with the graph, and write the pairs into it if ``inject`` is set."""
        graph = selected.graph
        constants = replace(graph.constants or KernelConstants(), metric=metric, neighbors=selected.n_neighbors)
        graph = graph._with_weights(graph.weights, constants=constants)
        return overwrite_edges(graph, pairs) if self.inject and pairs.n_pairs else graph

    @property
    def _n_features_out(self) -> int:
        return int(self.metric_.shape[0])


def _combine_constraints(
    X: Array, y: LabelsLike | None, constraints: ConstraintsLike, rng: np.random.RandomState
) -> PairwiseConstraints:
    """Merge the given pairs, with those they imply, and the pairs that follow from labels."""
    n = X.shape[0]
    pairs = check_constraints(constraints, X) or PairwiseConstraints(n_samples=n)
    pairs = pairs.closure() if pairs.n_implied <= 2 * MAX_PAIRS else pairs
    if y is None:
        return pairs
    from_labels = PairwiseConstraints.from_labels(as_column(y), max_pairs=MAX_PAIRS, random_state=rng)
    must_link = np.concatenate([pairs.must_link, from_labels.must_link])
    return PairwiseConstraints(must_link, np.concatenate([pairs.cannot_link, from_labels.cannot_link]), n)


def _standardize(X: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Scale the rows to a median distance of one, so that A₀ = I; with fewer rows than features, use their span."""
    # Returns the new rows and the axes, new = axes @ (old - mean). The objective depends only on distances, so the
    # rotation changes nothing but the cost.
    xp, n = namespace(X), X.shape[0]
    sample = X if n <= FULL_GRAPH_MAX_ROWS else take_rows(X, np.sort(rng.permutation(n)[:1000]))
    distances = to_numpy(pairwise_distances(sample, sample))
    median = float(np.median(distances[~np.eye(len(distances), dtype=bool)]))
    if not median > 0:
        problem = "the median distance between rows is 0: more than half of the pairs of rows are duplicates"
        raise InputError(problem, "remove them", code="zero_median_distance")
    centered = X - xp.mean(X, axis=0)[None, :]
    rotate = X.shape[1] > n
    axes = (xp.linalg.svd(centered, full_matrices=False)[2] if rotate else feature_identity(X)) / median
    return centered @ axes.T, axes


def _in_learned_metric(recipe: FullGraph | KNNGraph) -> FullGraph | KNNGraph:
    """Return the recipe with the kernel exp(-d²): the heat kernel of bandwidth √½."""
    return clone(recipe).set_params(weight="heat", bandwidth=math.sqrt(0.5))


def neighbor_indicators(X: Array, n_neighbors: int) -> sp.csr_array:
    """Return a matrix with a one at (i, j) if j is among the nearest neighbours of i by Euclidean distance."""
    edges = k_nearest(X, n_neighbors)
    rows, columns = to_numpy(edges.rows), to_numpy(edges.columns)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(X.shape[0],) * 2)


def _pair_weights(
    pair_weight: float | tuple[float, float] | str, pairs: PairwiseConstraints
) -> tuple[PairWeight, PairWeight]:
    """Return the weights of must-links and of cannot-links."""
    if isinstance(pair_weight, str):
        n = pairs.n_samples
        return _balanced_weights(pairs.must_link, n), _balanced_weights(pairs.cannot_link, n)
    must_link, cannot_link = np.broadcast_to(pair_weight, 2)
    return float(must_link), float(cannot_link)


def _balanced_weights(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return 1/m_i + 1/m_j for every pair, m_i the number of pairs at row i."""
    counts = np.maximum(np.bincount(pairs.ravel(), minlength=n), 1)
    return (1 / counts[pairs]).sum(axis=1)


class _SelectedGraph(NamedTuple):
    """The selected penalty and graph, the size of its neighbourhoods (None if complete), and scores per penalty."""

    penalty: float
    graph: AffinityGraph
    n_neighbors: int | None
    evidence: dict[float, np.ndarray]


def _select_graph(
    embeddings: dict[float, Array], recipes: list[FullGraph | KNNGraph], ranking: PairRanking | None
) -> _SelectedGraph:
    """Select by the pairs: first the penalty, on the recipe that was learned on, then the recipe."""
    recipe, *alternatives = recipes
    n_neighbors = getattr(recipe, "n_neighbors", None)
    if ranking is None:
        penalty = DEFAULT_PENALTY if DEFAULT_PENALTY in embeddings else next(iter(embeddings))
        return _SelectedGraph(penalty, recipe._build(embeddings[penalty]), n_neighbors, {})
    graphs = {penalty: recipe._build(embedding) for penalty, embedding in embeddings.items()}
    evidence = {penalty: ranking_auc(graph, ranking) for penalty, graph in graphs.items()}
    penalty = select_strongest_penalty(evidence)
    best_graph, best_score = graphs[penalty], evidence[penalty].mean()
    for alternative in alternatives:
        graph = alternative._build(embeddings[penalty])
        if (score := ranking_auc(graph, ranking).mean()) > best_score:
            best_graph, best_score, n_neighbors = graph, score, getattr(alternative, "n_neighbors", None)
    return _SelectedGraph(penalty, best_graph, n_neighbors, evidence)
