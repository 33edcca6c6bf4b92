"""What the mixtures share around the EM loop: starts, fit, prediction, scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._validation import (
    check_data,
    check_int,
    check_n_clusters,
    check_nonnegative,
    check_positive,
    check_rows_differ,
    choose,
)
from ..core.backend import Array, asarray_like, convert_like, logsumexp, namespace, one_hot, softmax, to_numpy
from ..core.blocks import map_rows
from ..core.kmeans import kmeans
from ..core.pca import Projection, fit_pca
from ..core.progress import report_progress
from ..core.sparse import matmul
from ..graph.affinity import AffinityGraph
from ..graph.community import RESOLUTION, communities, modularity
from ..graph.constraints import PairwiseConstraints, check_constraints
from ..graph.estimator import GraphEstimatorMixin, restore_on_failure
from ..graph.labels import check_partial_labels, spread_over_groups
from ..graph.out_of_sample import link_degrees
from ..graph.partition import spectral_labels
from ..graph.recipes import as_affinity, is_pairwise, link_new_points, self_tuned
from .covariance import SHAPES, Gaussians, SingularCovarianceError, draw, estimate, log_joint, n_parameters
from .em import EMResult, Hooks, Step, memberships_settled, objective_settled, run_em
from .links import Links, make_links, median_margin
from .simplex import entropic_maximiser

# ------------------------------------------------------------------------------------------------------------ starts


def _kmeans_start(Z: Array, k: int, graph: AffinityGraph | None, rng: np.random.RandomState) -> Array:
    return one_hot(kmeans(Z, k, n_init=10, random_state=rng).labels, k, Z)


def _spectral_start(Z: Array, k: int, graph: AffinityGraph | None, rng: np.random.RandomState) -> Array:
    assert graph is not None
    return one_hot(spectral_labels(graph, k, random_state=rng), k, Z)


def _random_start(Z: Array, k: int, graph: AffinityGraph | None, rng: np.random.RandomState) -> Array:
    """The nearest of k rows drawn far from each other, after one step of k-means."""
    return one_hot(kmeans(Z, k, n_init=1, max_iter=1, random_state=rng).labels, k, Z)


def _community_start(Z: Array, k: int, graph: AffinityGraph | None, rng: np.random.RandomState) -> Array:
    """The communities of the graph, of which the search begins from k-means on the rows as well."""
    assert graph is not None
    rows = kmeans(Z, k, n_init=1, random_state=rng).labels
    return one_hot(communities(graph, k, starts=[rows], random_state=rng).labels, k, Z)


STARTS = {
    "kmeans": _kmeans_start,
    "spectral": _spectral_start,
    "community": _community_start,
    "random": _random_start,
}
FROM_GRAPH = ("spectral", "community", "auto")
AUTO = ("community", "spectral", "kmeans")  # what init="auto" tries


def start_from_array(init: Any, k: int, Z: Array) -> Array:
    """Memberships (n, k) or labels (n,) that the caller brought, as memberships."""
    n = Z.shape[0]
    wanted = f"labels 0..{k - 1} of shape ({n},), or nonnegative memberships of shape ({n}, {k})"
    try:
        host = to_numpy(init)
    except ValueError as error:
        raise ValueError(f"init must be {wanted}; its rows are of different lengths") from error
    if host.dtype.kind not in "iuf":
        raise ValueError(f"init must be {wanted}; got entries of type {host.dtype}")
    if host.shape == (n,) and host.dtype.kind in "iu" and host.min() >= 0 and host.max() < k:
        return one_hot(host.astype(np.int64), k, Z)
    if host.shape == (n, k) and np.isfinite(host).all() and (host >= 0).all() and (host.sum(axis=1) > 0).all():
        return asarray_like(host / host.sum(axis=1, keepdims=True), Z, dtype=Z.dtype)
    raise ValueError(
        f"init must be one of {[*STARTS, 'auto']}, {wanted}; got an array of shape {host.shape} and type {host.dtype}"
    )


def align_to_labels(known: Array | None, start: Array) -> Array:
    """The start with its clusters numbered so that as many known rows as can be are in the cluster they belong to."""
    if known is None:
        return start
    together = to_numpy(known.T @ start)
    _, columns = linear_sum_assignment(together, maximize=True)
    return namespace(start).take(start, asarray_like(columns, start), axis=1)


# ------------------------------------------------------------------------------------------------------------- hooks


class GaussianHooks:
    """EM for a Gaussian mixture with row weights and, where labels are known, memberships held fixed."""

    def __init__(
        self,
        Z: Array,
        *,
        kind: str,
        ridge: float,
        sample_weight: Array | None = None,
        known: Array | None = None,
        links: Links | None = None,
    ) -> None:
        self.Z, self.kind, self.ridge, self.links = Z, kind, ridge, links
        self.unit: float | None = None  # of the votes of linked rows, in nats
        self.sample_weight = sample_weight  # (n,) or None
        self.known = known  # (n, k) one-hot rows where the label is known, zeros elsewhere, or None

    def expect(self, model: Gaussians) -> Array:
        """The joint log-densities."""
        return log_joint(self.Z, model)

    def refine(self, log_joint: Array, resp: Array) -> Array:
        """The posterior [lapgmm, Eq. 8]; with pairs, half the way to what they and the densities say."""
        if self.links is None:
            return self.clamp(map_rows(softmax, log_joint))
        if self.unit is None:  # once: a field that moved with the densities would never rest
            self.unit = self.links.strength * median_margin(log_joint)
        told = self.links.together(log_joint + self.unit * self.links.votes(resp))
        return self.clamp(self.links.halfway(map_rows(softmax, told), resp))

    def maximise(self, resp: Array) -> Gaussians:
        """The weighted estimates [lapgmm, Eqs 13-15]."""
        return estimate(self.Z, self.weighted(resp), kind=self.kind, ridge=self.ridge)

    def score(self, log_joint: Array, resp: Array, last: Array) -> Step:
        """The log-likelihood, less what linked rows disagree by."""
        likelihood, penalty = self.likelihood(log_joint), self.disagreement(resp)
        return Step(likelihood - penalty, likelihood, penalty, self.moved(resp, last))

    def disagreement(self, resp: Array) -> float:
        """-½γ Σ_ij v_ij q_i'q_j over the votes of linked rows; 0 without any."""
        if self.links is None or self.unit is None:
            return 0.0
        return -0.5 * self.unit * float(namespace(resp).sum(resp * self.links.votes(resp)))

    def likelihood(self, log_joint: Array) -> float:
        """Σ_i log p(x_i), or log p(x_i, known cluster) where it is known."""
        rows = map_rows(logsumexp, log_joint)
        if self.known is not None:
            xp = namespace(rows)
            is_known = xp.sum(self.known, axis=1) > 0
            rows = xp.where(is_known, xp.sum(xp.where(self.known > 0, log_joint, 0), axis=1), rows)
        return self.total(rows)

    def finish(self, model: Gaussians, resp: Array) -> Gaussians:
        """The components to return with ``resp``: those it came from."""
        return model

    def settled(self, history: list[Step], tol: float) -> bool:
        """By the objective; with pairs, under which it may fall, by the memberships."""
        if self.links is not None:
            return memberships_settled(history, tol)
        return objective_settled(history, self.total_weight, tol)

    def clamp(self, resp: Array) -> Array:
        """Rows with a known label keep it, rows of a hard group share theirs."""
        if self.links is not None:
            resp = self.links.together(resp)
        if self.known is None:
            return resp
        xp = namespace(resp)
        return xp.where(xp.sum(self.known, axis=1)[:, None] > 0, self.known, resp)

    def weighted(self, resp: Array) -> Array:
        """Memberships times the rows' weights."""
        return resp if self.sample_weight is None else resp * self.sample_weight[:, None]

    @property
    def total_weight(self) -> float:
        """The rows' weights added up, or their number."""
        weights = self.sample_weight
        return float(self.Z.shape[0] if weights is None else namespace(weights).sum(weights))

    def total(self, values: Array) -> float:
        """The weighted sum over rows."""
        xp = namespace(values)
        return float(xp.sum(values if self.sample_weight is None else values * self.sample_weight))

    @staticmethod
    def moved(resp: Array, last: Array) -> float:
        """The mean distance that memberships moved."""
        xp = namespace(resp)
        return float(xp.sum(map_rows(lambda q, p: xp.sum(xp.abs(q - p), axis=1), resp, last))) / resp.shape[0]


# --------------------------------------------------------------------------------------------------------- the class


class BaseMixture(GraphEstimatorMixin, ClusterMixin, BaseEstimator):
    """Fit, predict and score around :func:`run_em`; a model overrides ``_hooks`` and names its parameters."""

    n_clusters: int
    covariance_type: str
    ridge: float
    pca: Any
    init: Any
    n_init: int
    max_iter: int
    tol: float
    random_state: Any
    verbose: Any

    _needs_graph = True
    _hooks: Callable[..., Hooks]  # (options of PlainHooks, coordinates, graph) -> what the model brings to the loop

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, constraints: Any = None) -> Any:
        """Fit the mixture.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Sparse rows need ``pca``.
        y : array of shape (n,), optional
            Known clusters 0..n_clusters-1 of some rows, -1 where unknown; known rows keep theirs. Ignored if it holds
            no -1, as every clusterer ignores the labels that pipelines and searches pass along.
        sample_weight : array of shape (n,), optional
        constraints : PairwiseConstraints, optional
            Linked rows vote on each other's memberships, see :mod:`fiedler.mixture.links`; rows whose must-links are
            hard have the same.
        """
        with report_progress(self), restore_on_failure(self):
            self._fit(X, y, sample_weight, constraints)
        self._warn_of_trouble()
        return self

    def _warn_of_trouble(self) -> None:
        """What a user should know of a fit that did not fail, said where ``fit`` was called."""
        if not self.converged_:
            text = f"EM did not settle within max_iter={self.max_iter} iterations; raise max_iter or tol"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        n_clusters, n_found = self.memberships_.shape[1], len(np.unique(to_numpy(self.labels_)))
        if n_found < n_clusters:
            warnings.warn(
                f"only {n_found} of the {n_clusters} clusters are any row's most probable one; ask for fewer, weaken "
                "the smoothing, or try another init",
                UserWarning,
                stacklevel=3,
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, *, constraints: Any = None) -> Array:
        """Fit the mixture and give each row's cluster; parameters as in :meth:`fit`."""
        return self.fit(X, y, sample_weight=sample_weight, constraints=constraints).labels_

    def _fit(self, X: Any, y: Any, sample_weight: Any, constraints: Any) -> None:
        if isinstance(X, AffinityGraph) or is_pairwise(self.graph):
            raise ValueError("densities need the rows themselves: fit on data, and pass the affinities as graph=")
        X = check_data(X, estimator=self, min_samples=2)
        k = check_n_clusters(self.n_clusters, X.shape[0])
        choose(SHAPES, self.covariance_type, option="covariance_type")
        self._limits()
        rng = check_random_state(self.random_state)
        known = check_constraints(constraints, X)
        graph = self._graph_for(X, y, known)
        projection = self._project(X, rng)
        Z = X if projection is None else projection(X)
        options = self._plain_options(Z, sample_weight)
        options["known"], options["links"] = known_memberships(y, k, Z, known), make_links(known, Z)
        best = self._best_of_starts(Z, k, graph, options, rng)
        self._store(best, graph, X, projection)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.pca is not None
        return tags

    def _recipe(self) -> Any:
        """The graph parameter with the mixtures' default filled in."""
        return self_tuned() if self.graph is None else self.graph

    def _graph_for(self, X: Array, y: Any, known: PairwiseConstraints | None) -> AffinityGraph | None:
        """The graph, if the model or its start asks for one."""
        recipe = self._recipe()
        if not self._needs_graph and not (isinstance(self.init, str) and self.init in FROM_GRAPH):
            return None
        graph = as_affinity(recipe, X, self._labels_for(recipe, y), known, validated=True)
        if graph.has_negative_weights:
            raise ValueError("memberships are smoothed over nonnegative weights, but the graph has negative ones")
        return graph

    def _project(self, X: Array, rng: np.random.RandomState) -> Projection | None:
        if self.pca is not None:
            return fit_pca(X, self.pca, random_state=rng.randint(2**31 - 1))
        if sp.issparse(X):
            raise ValueError("densities on sparse rows need fewer dimensions; give pca, for example pca=100")
        return None

    def _plain_options(self, Z: Array, sample_weight: Any) -> dict[str, Any]:
        xp = namespace(Z)
        ridge = check_nonnegative(self.ridge, "ridge") * float(xp.mean(xp.var(Z, axis=0)))
        check_rows_differ(Z)
        weights = None
        if sample_weight is not None:
            host = _check_sample_weight(to_numpy(sample_weight), np.empty((Z.shape[0], 1)), ensure_non_negative=True)
            weights = asarray_like(host, Z, dtype=Z.dtype)
        return {"kind": self.covariance_type, "ridge": ridge, "sample_weight": weights}

    def _best_of_starts(
        self,
        Z: Array,
        k: int,
        graph: AffinityGraph | None,
        options: dict[str, Any],
        rng: np.random.RandomState,
    ) -> EMResult:
        """The best run by `_selection_score`; a start that ends in a singular covariance does not stop the others."""
        runs, failures = [], []
        for seed in rng.randint(2**31 - 1, size=check_int(self.n_init, "n_init")):
            for start in self._starts(Z, k, graph, options["known"], np.random.RandomState(seed)):
                try:
                    runs.append(self._run(start, Z, graph, options))
                except SingularCovarianceError as error:
                    failures.append(error)
        if not runs:
            raise failures[0]
        return max(runs, key=lambda run: self._selection_score(run, graph))

    def _selection_score(self, run: EMResult, graph: AffinityGraph | None) -> Any:
        """What runs are compared by: the objective, but modularity across kinds of start (``init='auto'``).

        The likelihood prefers starts that suit the Gaussians.
        """
        auto = isinstance(self.init, str) and self.init == "auto"
        return partition_quality(run.resp, graph) if auto else run.history[-1].objective

    def _starts(
        self,
        Z: Array,
        k: int,
        graph: AffinityGraph | None,
        known: Array | None,
        rng: np.random.RandomState,
    ) -> Iterator[Array]:
        """First memberships of every kind that ``init`` stands for, numbered like the known rows."""
        if not isinstance(self.init, str):
            yield start_from_array(self.init, k, Z)
            return
        for kind in AUTO if self.init == "auto" else (self.init,):
            yield align_to_labels(known, choose(STARTS, kind, option="init")(Z, k, graph, rng))

    def _run(self, start: Array, Z: Array, graph: AffinityGraph | None, options: dict[str, Any]) -> EMResult:
        """EM from one start."""
        hooks = self._hooks(options, Z, graph)
        return run_em(start, hooks, **self._limits())

    def _limits(self) -> dict[str, Any]:
        """How long EM runs, and who hears of it."""
        report = None if not self.verbose else self._report
        return {
            "max_iter": check_int(self.max_iter, "max_iter"),
            "tol": check_positive(self.tol, "tol"),
            "report": report,
        }

    def _report(self, iteration: int, step: Step) -> None:
        print(f"{type(self).__name__}: iteration {iteration}, objective {step.objective:.6g}, change {step.change:.1e}")

    def _store(self, best: EMResult, graph: AffinityGraph | None, X: Array, projection: Projection | None) -> None:
        self._model, self._projection = best.model, projection
        recipe = self._recipe()
        self._fit_recipe = clone(recipe) if hasattr(recipe, "build") else recipe  # set_params is for the next fit
        xp, dtype = namespace(best.resp), best.resp.dtype
        model = best.model
        self.weights_, self.means_, self.covariances_ = (
            xp.astype(part, dtype) for part in (model.weights, model.means, model.covariances)
        )
        self.memberships_ = best.resp
        self.labels_ = xp.argmax(best.resp, axis=1)
        self.history_, self.n_iter_, self.converged_ = best.history, best.n_iter, best.converged
        self.objective_, self.likelihood_, self.penalty_, _ = best.history[-1]
        self.graph_, self._fit_X = graph, X

    # ------------------------------------------------------------------------------------------------ after the fit

    def _log_joint(self, X: Any) -> Array:
        check_is_fitted(self)
        return log_joint(self._coordinates(X), self._model)

    def _coordinates(self, X: Any) -> Array:
        """Where the densities live: the rows themselves or their principal coordinates."""
        X = convert_like(check_data(X, estimator=self, reset=False), self._fit_X)
        return X if self._projection is None else self._projection(X)

    def predict_proba(self, X: Any, *, use_graph: bool = False) -> Array:
        """The probability of every cluster for each new point.

        By the densities; with ``use_graph`` the points are also joined to their training neighbours, whose memberships
        q_j stay as they are: the maximiser of Σ_k q_k (log α_k p_k - log q_k) - λ Σ_j w_j ‖q - q_j‖². λ is that of a
        fitted LapGMM; for the other models it is such that neighbours count about as much as densities.
        """
        joint = self._log_joint(X)
        if not use_graph:
            return softmax(joint)
        X = convert_like(check_data(X), self._fit_X)
        graph = as_affinity(self._fit_recipe, self._fit_X, validated=True) if self.graph_ is None else self.graph_
        W = link_new_points(self._fit_recipe, X, self._fit_X, graph)
        degrees, target = link_degrees(W, signed=False), matmul(W, self.memberships_)
        degrees = asarray_like(to_numpy(degrees), joint, dtype=joint.dtype)[:, None]
        lam = self._coupling(joint, graph)
        return entropic_maximiser(joint + 2 * lam * target, 2 * lam * degrees)

    def _coupling(self, joint: Array, graph: AffinityGraph) -> float:
        return natural_lam(joint, graph)

    def predict(self, X: Any) -> Array:
        """The most probable cluster of each new point."""
        proba = self.predict_proba(X)
        return namespace(proba).argmax(proba, axis=1)

    def score_samples(self, X: Any) -> Array:
        """The log-density of each row (in the principal coordinates, with ``pca``), without the ridge's blur."""
        check_is_fitted(self)
        return logsumexp(log_joint(self._coordinates(X), self._model._replace(ridge=0.0)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density."""
        density = self.score_samples(X)
        return float(namespace(density).mean(density))

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Rows drawn from the mixture, and the cluster of each, in the order of the clusters.

        With ``pca`` the rows lie in the plane of the principal components.
        """
        check_is_fitted(self)
        rng = check_random_state(self.random_state)
        Z, labels = draw(check_int(n_samples, "n_samples"), self._model, rng)
        X = Z if self._projection is None else self._projection.back(Z)
        return namespace(X).astype(X, self.means_.dtype), asarray_like(labels, self.means_)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion; lower is better."""
        return self._deviance(X) + self._n_parameters() * math.log(np.shape(X)[0])

    def aic(self, X: Any) -> float:
        """Akaike information criterion; lower is better."""
        return self._deviance(X) + 2 * self._n_parameters()

    def _deviance(self, X: Any) -> float:
        density = self.score_samples(X)
        return -2 * float(namespace(density).sum(density))

    def _n_parameters(self) -> int:
        return n_parameters(self._model.kind, *self.means_.shape)


def partition_quality(resp: Array, graph: AffinityGraph | None) -> tuple[int, float]:
    """How good a partition the memberships make, without labels: clusters in use, then modularity."""
    assert graph is not None
    labels = to_numpy(namespace(resp).argmax(resp, axis=1))
    return len(np.unique(labels)), modularity(graph, labels, resolution=RESOLUTION)


def natural_lam(log_joint: Array, graph: AffinityGraph) -> float:
    """The λ at which a row's neighbours weigh as much as its densities.

    A row whose neighbours all are in another cluster pays 2λ times its degree for staying in its own, and gains the
    difference of the log-densities: so this is the median difference between the two best clusters over twice the mean
    degree.
    """
    degree = float(to_numpy(graph.degrees).mean())
    return median_margin(log_joint) / (2 * degree) if degree > 0 else 0.0


def known_memberships(y: Any, k: int, Z: Array, constraints: PairwiseConstraints | None) -> Array | None:
    """One-hot rows where ``y`` names a cluster, and for the rows hard must-links hold with them; zeros elsewhere."""
    labels = check_partial_labels(y, Z.shape[0], k)
    if labels is not None and constraints is not None and constraints.hard:
        labels = spread_over_groups(labels, constraints.groups)
    return None if labels is None else one_hot(labels, k, Z)
