"""What all mixtures share: starts, fitting, prediction and scores; and fits on groups of rows.

Supernodes are groups of rows that share their memberships, of which EM needs the statistics alone. A supernode s stands
for n_s rows, in the coarse graph W_st = Σ_{i ∈ s, j ∈ t} w_ij. LapGMM's objective is restricted to memberships that are
constant on supernodes, q_i = q_s for all rows i of s:

    J(Q, Θ)  =  Σ_s n_s Σ_k q_sk [ mean_{i ∈ s} log α_k N(x_i; μ_k, Σ_k) - log q_sk ]  -  λ tr(Q'LQ)

with L the Laplacian of the coarse graph: rows of one supernode do not differ, so that the edges within cost nothing and
½ Σ_ij w_ij ‖q_i - q_j‖² is the sum over the edges between. No term is approximated: J is that of the rows, its maximum
over these memberships is a lower bound of that over all, and if every supernode is a single row, it is LapGMM. An
iteration takes m K d² operations instead of n K d².
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._records import FitHistory
from .._typing import GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from .._validation import (
    Check,
    check_bool,
    check_data,
    check_int,
    check_n_clusters,
    check_nonnegative,
    check_positive,
    check_rows_differ,
    check_seed,
    integer,
    one_of,
    start_from,
)
from ..core.arrays import (
    Array,
    asarray_like,
    convert_rows,
    first_best,
    logsumexp,
    namespace,
    normalize_row_sums,
    one_hot,
    softmax,
    to_numpy,
)
from ..core.fitting import dispatch_blocks, fit_method, print_line
from ..core.kmeans import kmeans
from ..core.pca import Projection, fit_pca
from ..core.sparse import is_sparse, matmul, to_scipy
from ..errors import InputError, NotConvergedWarning, SingularCovarianceError, warn
from ..graph.affinity import AffinityGraph
from ..graph.community import RESOLUTION, communities, modularity
from ..graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints
from ..graph.cuts import spectral_labels
from ..graph.estimator import GraphEstimatorMixin, SoftClustererMixin, warn_if_clusters_are_empty
from ..graph.labels import check_partial_labels, spread_over_groups
from ..graph.recipes import as_affinity, is_precomputed, link_new_points, self_tuned
from ..graph.smoothing import link_degrees
from ..graph.weights import check_sample_weight
from ..metrics.scores import match_counts
from .covariance import SHAPES, Gaussians, default_ridge, draw, gaussians, log_joint, mean_log_joint, n_parameters
from .em import EMResult, Links, MixtureHooks, MixtureProblem, Step, make_links, median_margin, run_em
from .operators import entropic_maximizer
from .statistics import Statistics


def _kmeans_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    return one_hot(kmeans(problem.Z, k, n_init=10, random_state=rng).labels, k, problem.Z)


def _spectral_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    assert problem.graph is not None
    return one_hot(spectral_labels(problem.graph, k, random_state=rng), k, problem.Z)


def _community_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Find communities of the graph; k-means on the rows is one of the partitions from which the search begins."""
    assert problem.graph is not None
    kmeans_labels = kmeans(problem.Z, k, n_init=1, random_state=rng).labels
    return one_hot(communities(problem.graph, k, starts=[kmeans_labels], random_state=rng).labels, k, problem.Z)


def _random_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Assign rows to the nearest of k rows drawn by k-means++, after one iteration of k-means."""
    return one_hot(kmeans(problem.Z, k, n_init=1, max_iter=1, random_state=rng).labels, k, problem.Z)


def _nmf_start(problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Array:
    """Assign rows to their largest coefficient in X ≈ VU', V and U non-negative, with columns of U at length one."""
    rows = problem.Z if problem.rows is None else problem.rows
    X: Any = to_scipy(rows) if is_sparse(rows) else to_numpy(rows)
    if (smallest := float(X.min())) < 0:
        message = f"init='nmf' needs rows without negative entries; the smallest is {smallest:.3g}"
        raise _invalid_init(message, "use another init, such as 'kmeans'")
    model = NMF(k, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not have converged
        V = model.fit_transform(X)
    labels = (V * np.linalg.norm(model.components_, axis=1)).argmax(axis=1)
    return one_hot(asarray_like(labels.astype(np.int64), problem.Z), k, problem.Z)


STARTS = {
    "kmeans": _kmeans_start,
    "spectral": _spectral_start,
    "community": _community_start,
    "random": _random_start,
    "nmf": _nmf_start,
}
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]
Start: TypeAlias = Literal["kmeans", "spectral", "community", "random", "nmf", "auto"]
GRAPH_STARTS = ("spectral", "community", "auto")  # values of init that need a graph
AUTO_STARTS = ("community", "spectral", "kmeans")  # the starts that init="auto" compares


def memberships_from_array(init: Any, k: int, Z: Array) -> Array:
    """Convert labels (n,) or memberships (n, k) given as ``init`` to memberships whose rows sum to one."""
    n = Z.shape[0]
    expected = f"labels 0..{k - 1} of shape ({n},), or non-negative memberships of shape ({n}, {k})"
    try:
        host = to_numpy(init)
    except ValueError as error:
        raise _invalid_init(f"init must be {expected}; its rows differ in length") from error
    if host.dtype.kind not in "iuf":
        raise _invalid_init(f"init must be {expected}; got entries of type {host.dtype}")
    if host.shape == (n,) and host.dtype.kind in "iu" and host.min() >= 0 and host.max() < k:
        return one_hot(host.astype(np.int64), k, Z)
    if host.shape == (n, k) and np.isfinite(host).all() and (host >= 0).all() and (host.sum(axis=1) > 0).all():
        return asarray_like(normalize_row_sums(host), Z, dtype=Z.dtype)
    raise _invalid_init(
        f"init must be one of {[*STARTS, 'auto']}, {expected}; got an array of shape {host.shape} and type {host.dtype}"
    )


def _invalid_init(problem: str, remedy: str = "") -> InputError:
    return InputError(problem, remedy, code="invalid_init", parameter="init")


def align_to_known(known: Array | None, memberships: Array) -> Array:
    """Renumber the clusters so that as many known rows as possible are in the cluster they belong to."""
    if known is None:
        return memberships
    _, columns = match_counts(to_numpy(known.T @ memberships))
    return namespace(memberships).take(memberships, asarray_like(columns, memberships), axis=1)


def known_memberships(y: Any, k: int, Z: Array, constraints: PairwiseConstraints | None) -> Array | None:
    """Return one-hot rows where ``y`` gives a cluster, and for rows hard must-links join to them; zeros elsewhere."""
    labels = check_partial_labels(y, Z.shape[0], k)
    if labels is not None and constraints is not None and constraints.hard:
        labels = spread_over_groups(labels, constraints.groups)
    return None if labels is None else one_hot(labels, k, Z)


SHRINKAGE_RIDGE = 1e-6  # added to shrunken covariances, so that no component collapses to a repeated row


def _finite(joint: Array) -> Array:
    """Replace the log-densities of rows too far away for their dtype by a very low number, which has a softmax."""
    xp = namespace(joint)
    lowest = float(xp.finfo(joint.dtype).min) / 4
    return xp.where(joint > lowest, joint, lowest)


class BaseMixture(GraphEstimatorMixin, SoftClustererMixin, BaseEstimator):
    """Base class of the mixtures; a model defines ``_hooks``, and parameters besides those that all have."""

    labels_: Array
    memberships_: Array
    history_: FitHistory

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_clusters": integer(),
        "covariance_type": one_of(SHAPES),
        "ridge": one_of(["auto", "oas"], check_nonnegative),
        "init": start_from(["auto", *STARTS]),
        "n_init": integer(),
        "max_iter": integer(),
        "tol": check_positive,
        "random_state": check_seed,
    }
    _needs_graph = True
    _model: Gaussians
    _projection: Projection | None

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        covariance_type: CovarianceType = "full",
        ridge: float | Literal["auto", "oas"] = "auto",
        pca: int | float | None = None,
        init: Start | MatrixLike | LabelsLike = "kmeans",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.covariance_type = covariance_type
        self.ridge = ridge
        self.pca = pca
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        *,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The rows to cluster. Sparse rows need ``pca``.
        y : array of shape (n,), optional
            Known clusters 0..n_clusters-1 of some rows, -1, NaN or None where unknown; known rows keep theirs. Ignored
            if all are known, as every clusterer ignores the labels that pipelines and searches pass along.
        sample_weight : array of shape (n,), optional
            Non-negative weights of the rows.
        constraints : PairwiseConstraints, optional
            Known pairs, which add terms to the log-densities of their rows, see :mod:`fiedler.mixture.em`; rows
            joined by hard must-links have equal memberships. In cross-validation, ``pairs.per_row()``.

        Returns
        -------
        self
        """
        if isinstance(X, AffinityGraph) or is_precomputed(self.graph):
            problem = "densities need the rows themselves, not their affinities"
            raise InputError(problem, "fit on data and pass the affinities as graph=", code="rows_required")
        return self._fit(check_data(X, estimator=self, min_samples=2), y, sample_weight, constraints)

    def _fit_validated(self, X: Array, *, sample_weight: Any = None, constraints: Any = None) -> Self:
        """Fit on validated rows: for estimators that contain a mixture, and number its clusters by their first rows."""
        self.n_features_in_ = X.shape[1]
        return self._fit(X, None, sample_weight, constraints, keep_numbers=False)

    def _fit(self, X: Array, y: Any, sample_weight: Any, constraints: Any, *, keep_numbers: bool = True) -> Self:
        """Fit to validated rows; known clusters keep their numbers, and those given as ``init`` if asked for."""
        k = check_n_clusters(self.n_clusters, X.shape[0])
        rng = check_seed(self.random_state)
        pairs = check_constraints(constraints, X)
        weights = check_sample_weight(sample_weight, X.shape[0], allow_zero=True)
        graph = self._graph_for(X, y, pairs)
        projection = self._fit_projection(X, rng)
        Z = X if projection is None else projection(X)
        check_rows_differ(Z)
        xp = namespace(Z)
        problem = MixtureProblem(
            Z,
            kind=self.covariance_type,
            ridge=self._relative_ridge(*Z.shape) * float(xp.mean(xp.var(Z, axis=0))),
            shrinks=self._shrinks(),
            rows=None if projection is None else X,
            graph=graph,
            sample_weight=None if weights is None else asarray_like(weights, Z, dtype=Z.dtype),
            known=known_memberships(y, k, Z, pairs),
            links=make_links(pairs, Z),
        )
        result = self._best_of_starts(problem, k, rng)
        if problem.known is None and (isinstance(self.init, str) or not keep_numbers):
            result = result.numbered_by_first_row()
        self._store(result, graph, X, projection)
        self._warn_about_fit(result, len(np.unique(to_numpy(self.labels_))))
        return self

    def _warn_about_fit(self, result: EMResult[Any], n_found: int) -> None:
        """Warn about non-convergence and empty clusters after a fit in which ``n_found`` clusters contain rows."""
        if not result.converged:
            problem = f"EM did not converge within max_iter={self.max_iter} iterations"
            warn(problem, "raise max_iter or tol", category=NotConvergedWarning, max_iter=self.max_iter)
        remedy = "use fewer clusters, less smoothing or another init"
        warn_if_clusters_are_empty(n_found, self.memberships_.shape[1], remedy, stacklevel=2)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.pca is not None
        return tags

    def _shrinks(self) -> bool:
        """Whether covariances are shrunken by the number of their rows."""
        return isinstance(self.ridge, str) and self.ridge == "oas"

    def _relative_ridge(self, n: int, d: int) -> float:
        """Return what is added to the variances of n rows, relative to the mean variance of their d coordinates."""
        if self._shrinks():
            return SHRINKAGE_RIDGE
        if isinstance(self.ridge, str):
            return default_ridge(self.covariance_type, self.n_clusters, d, n)
        return float(self.ridge)

    def _recipe(self) -> Any:
        """Return the graph parameter with the default of the mixtures filled in."""
        return self_tuned() if self.graph is None else self.graph

    def _graph_for(self, X: Array, y: Any, pairs: PairwiseConstraints | None) -> AffinityGraph | None:
        """Build the graph if the model or its start needs one."""
        recipe = self._recipe()
        if not self._needs_graph and not (isinstance(self.init, str) and self.init in GRAPH_STARTS):
            return None
        graph = as_affinity(recipe, X, self._labels_for(recipe, y, X.shape[0]), pairs, validated=True)
        if graph.has_negative_weights:
            problem = "memberships are smoothed over non-negative weights, but the graph has negative ones"
            raise InputError(problem, "use a graph without repulsion", code="negative_weights", parameter="graph")
        return graph

    def _fit_projection(self, X: Array, rng: np.random.RandomState) -> Projection | None:
        if self.pca is not None:
            return fit_pca(X, self.pca, random_state=rng.randint(2**31 - 1))
        if sp.issparse(X):
            problem = "densities of sparse rows need fewer dimensions"
            raise InputError(problem, "set pca, for example pca=100", code="sparse_needs_pca", parameter="pca")
        return None

    def _hooks(self, problem: MixtureProblem) -> MixtureHooks[Any]:
        """Build the hooks of the model."""
        raise NotImplementedError

    def _best_of_starts(self, problem: MixtureProblem, k: int, rng: np.random.RandomState) -> EMResult[Any]:
        """Return the best run by `_selection_score`."""
        seeds = rng.randint(2**31 - 1, size=self.n_init)
        starts = (start for seed in seeds for start in self._starts(problem, k, np.random.RandomState(seed)))
        runs = self._run_all(starts, self._hooks(problem))
        return first_best(runs, lambda run: self._selection_score(run, problem.graph))

    def _selection_score(self, run: EMResult[Any], graph: AffinityGraph | None) -> Any:
        """Return the value by which runs are compared: the objective, or modularity with ``init='auto'``."""
        # Across kinds of start the likelihood would prefer those that suit the Gaussians.
        is_auto = isinstance(self.init, str) and self.init == "auto"
        return partition_quality(run.resp, graph) if is_auto else run.history.objective[-1]

    def _starts(self, problem: MixtureProblem, k: int, rng: np.random.RandomState) -> Iterator[Array]:
        """Yield first memberships of every kind that ``init`` stands for, numbered like the known rows."""
        if not isinstance(self.init, str):
            yield memberships_from_array(self.init, k, problem.Z)
            return
        for name in AUTO_STARTS if self.init == "auto" else (self.init,):
            start = STARTS[name](problem, k, rng)
            yield align_to_known(problem.known, start)

    def _run_all(self, starts: Iterable[Any], hooks: Any) -> list[EMResult[Any]]:
        """Run EM from several starts; one that ends in a singular covariance is left out."""
        runs, failures = [], []
        for start in starts:
            try:
                runs.append(self._run(start, hooks))
            except SingularCovarianceError as error:
                failures.append(error)
        if not runs:
            raise failures[0]
        return runs

    def _run(self, start: Any, hooks: Any) -> EMResult[Any]:
        """Run EM from one start."""
        return replace(run_em(hooks.start(start), hooks, **self._limits()), lam=hooks.lam)

    def _limits(self) -> dict[str, Any]:
        """Return the arguments of `run_em` that are parameters of the model."""
        return {"max_iter": self.max_iter, "tol": float(self.tol), "report": self._print_step if self.verbose else None}

    def _print_step(self, iteration: int, step: Step) -> None:
        name = type(self).__name__
        print_line(f"{name}: iteration {iteration}, objective {step.objective:.6g}, change {step.change:.1e}")

    def _store(self, best: EMResult[Any], graph: AffinityGraph | None, X: Array, projection: Projection | None) -> None:
        self._store_components(best, best.resp.dtype)
        self.memberships_ = best.resp
        self.labels_ = namespace(best.resp).argmax(best.resp, axis=1)
        self.graph_, self._fit_X, self._projection = graph, X, projection

    def _store_components(self, best: EMResult[Any], dtype: Any) -> None:
        """Store what does not have one value per row."""
        recipe = self._recipe()
        self._fit_recipe = clone(recipe) if hasattr(recipe, "build") else recipe  # set_params is for the next fit
        self._model = model = best.model
        self.weights_, self.means_, self.covariances_ = (
            namespace(part).astype(part, dtype) for part in (model.weights, model.means, model.covariances)
        )
        self.history_, self.n_iter_, self.converged_ = best.history, best.n_iter, best.converged
        self.objective_ = float(best.history.objective[-1])
        self.likelihood_, self.penalty_ = (float(best.history[name][-1]) for name in ("likelihood", "penalty"))

    @dispatch_blocks
    def predict_proba(self, X: MatrixLike, *, use_graph: bool = False) -> Array:
        """Compute the probability of every cluster for each new point.

        By the densities; with ``use_graph`` the points are also joined to their training neighbours, whose memberships
        q_j stay fixed: the maximiser of Σ_k q_k (log α_k p_k - log q_k) - λ Σ_j w_j ‖q - q_j‖². λ is that of a fitted
        LapGMM; for the other models it is such that neighbours weigh about as much as densities.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        use_graph : bool, default=False
            Whether neighbours among the training rows count as well.

        Returns
        -------
        array of shape (n, k)
            Rows sum to one.
        """
        check_bool(use_graph, "use_graph")
        X = self._check_rows(X)
        joint = _finite(log_joint(self._coordinates(X), self._model))
        if not use_graph:
            return softmax(joint)
        rows: Any = self._fit_X
        if rows is None:
            problem = "the model was fitted to a Dask array, whose rows it does not keep"
            raise InputError(problem, "use use_graph=False", code="dask_array", parameter="use_graph")
        graph = as_affinity(self._fit_recipe, rows, validated=True) if self.graph_ is None else self.graph_
        W = link_new_points(self._fit_recipe, X, self._fit_X, graph)
        degrees, neighbor_sums = link_degrees(W, signed=False), matmul(W, self.memberships_)
        degrees = asarray_like(to_numpy(degrees), joint, dtype=joint.dtype)[:, None]
        lam = self._neighbor_weight(joint, graph)
        with np.errstate(over="ignore"):
            scores, weights = joint + 2 * lam * neighbor_sums, 2 * lam * degrees
        xp = namespace(joint)
        if not bool(xp.all(xp.isfinite(scores))) or not bool(xp.all(xp.isfinite(weights))):
            problem = "the weights of new rows to their neighbours overflow"
            raise InputError(problem, "scale X down", code="sums_overflow")
        return entropic_maximizer(scores, weights)

    def _check_rows(self, X: MatrixLike) -> Array:
        """Validate new rows and convert them to the library, device and precision of the training rows."""
        check_is_fitted(self)
        rows = check_data(X, estimator=self, reset=False)
        return convert_rows(rows, self.means_ if self._fit_X is None else self._fit_X)

    def _coordinates(self, X: Array) -> Array:
        """Return validated rows in the coordinates of the densities: as they are, or projected by ``pca``."""
        return X if self._projection is None else self._projection(X)

    def _neighbor_weight(self, log_joint: Array, graph: AffinityGraph) -> float:
        return natural_lam(log_joint, graph)

    @dispatch_blocks
    def predict(self, X: MatrixLike) -> Array:
        """Return the most probable cluster of each new point."""
        proba = self.predict_proba(X)
        return namespace(proba).argmax(proba, axis=1)

    def score_samples(self, X: MatrixLike) -> Array:
        """Compute the log-density of each row, in the principal coordinates with ``pca``, without the ridge's blur."""
        return logsumexp(log_joint(self._coordinates(self._check_rows(X)), self._model._replace(ridge=0.0)))

    def score(self, X: MatrixLike, y: LabelsLike | None = None) -> float:
        """Compute the mean log-density."""
        density = self.score_samples(X)
        return float(namespace(density).mean(density))

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the mixture, and return them with the cluster of each, in the order of the clusters.

        With ``pca`` the rows lie in the span of the principal components.
        """
        check_is_fitted(self)
        rng = check_seed(self.random_state)
        Z, labels = draw(check_int(n_samples, "n_samples"), self._model, rng)
        X = Z if self._projection is None else self._projection.inverse(Z)
        return namespace(X).astype(X, self.means_.dtype), asarray_like(labels, self.means_)

    def bic(self, X: MatrixLike) -> float:
        """Compute the Bayesian information criterion; lower is better."""
        density = self.score_samples(X)
        return -2 * float(namespace(density).sum(density)) + self._n_parameters() * math.log(density.shape[0])

    def aic(self, X: MatrixLike) -> float:
        """Compute the Akaike information criterion; lower is better."""
        density = self.score_samples(X)
        return -2 * float(namespace(density).sum(density)) + 2 * self._n_parameters()

    def _n_parameters(self) -> int:
        return n_parameters(self._model.kind, *self.means_.shape)


def partition_quality(resp: Array, graph: AffinityGraph | None) -> tuple[int, float]:
    """Rate the partition given by memberships without labels: the number of clusters in use, then the modularity."""
    assert graph is not None
    labels = to_numpy(namespace(resp).argmax(resp, axis=1))
    return len(np.unique(labels)), modularity(graph, labels, resolution=RESOLUTION)


def natural_lam(log_joint: Array, graph: AffinityGraph, counts: Array | None = None) -> float:
    """Compute the λ at which a row's neighbours weigh as much as its densities; nodes may stand for ``counts`` rows."""
    # A row whose neighbours are all in another cluster pays 2λ times its degree for staying in its own, and gains the
    # difference of the log-densities: so this is the median difference between the two best clusters over twice the
    # mean degree, both over rows.
    n_rows = graph.n_nodes if counts is None else float(to_numpy(counts).sum())
    degree = float(to_numpy(graph.degrees).sum(dtype=np.float64)) / n_rows
    return median_margin(log_joint, counts) / (2 * degree) if degree > 0 else 0.0


# --------------------------------------------------------------------------------------------------------- supernodes


@dataclass(frozen=True, eq=False, kw_only=True)
class SupernodeProblem(MixtureProblem):
    """The inputs of a fit on supernodes: ``Z`` are their mean rows, ``sample_weight`` their numbers of rows."""

    statistics: Statistics

    def estimate(self, weights: Array, priors: Array | None = None) -> Gaussians:
        """Estimate the components from the statistics of the supernodes."""
        counts = self.statistics.counts[:, None]
        mass = None if priors is None else namespace(priors).sum(priors, axis=0)
        options: dict[str, Any] = {"kind": self.kind, "ridge": self.ridge, "shrinks": self.shrinks}
        return gaussians(self.statistics.combine(weights / counts), **options, mass=mass)

    def log_joint(self, model: Gaussians) -> Array:
        """Compute the mean of log α_k + log N(x_i; θ_k) over the rows of each supernode, shape (m, k)."""
        return mean_log_joint(self.statistics, model)

    @property
    def counts(self) -> Array:
        """The number of rows of each supernode."""
        return self.statistics.counts


def fit_supernodes(
    model: BaseMixture,
    statistics: Statistics,
    graph: AffinityGraph | None,
    init: LabelsLike | MatrixLike,
    links: Links | None = None,
) -> EMResult[Any]:
    """Run EM for a mixture on supernodes, with the parameters of a model other than graph, init, n_init and pca.

    'natural' and the tolerance refer to the rows, and so does the history. ``graph``, of m nodes, has the weight inside
    supernodes as self-loops; ``init`` are labels or memberships of the supernodes, none of which is empty.
    """
    Z = statistics.means + statistics.origin
    n_rows = round(float(namespace(Z).sum(statistics.counts)))
    problem = SupernodeProblem(
        Z,
        kind=model.covariance_type,
        ridge=model._relative_ridge(n_rows, Z.shape[1]) * statistics.mean_variance,
        shrinks=model._shrinks(),
        graph=graph,
        sample_weight=statistics.counts,
        links=links,
        statistics=statistics,
    )
    return model._run(memberships_from_array(init, model.n_clusters, Z), model._hooks(problem))
