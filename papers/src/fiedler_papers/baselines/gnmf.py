"""GNMF: non-negative factors that vary smoothly over a graph [Cai, He, Han & Huang 2011].

    minimise  ‖X - VU'‖² + λ tr(V'LV)   over non-negative V (n, K) and U (d, K) with columns of length one

by the multiplicative updates U ← U ∘ X'V / UV'V and V ← V ∘ (XU + λWV) / (VU'U + λDV), neither of which increases the
objective. K-means clusters the rows of V. No maintained library provides it.

With weights m of rows, M = diag(m), the first term is Σ_i m_i ‖x_i - v_i U'‖² and L that of the graph √(m_i m_j) w_ij
(:mod:`fiedler.graph.weights`). In the updates, X'V becomes X'MV, V'V becomes V'MV, XU becomes MXU and VU'U MVU'U.

Difference from the paper: the authors scale the columns of U to length one at the end. Without the scaling the
objective has no useful minimum, since V shrinks while U grows and the graph term vanishes; so we scale after every
update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from fiedler._records import FitHistory
from fiedler._typing import GraphLike, LabelsLike, MatrixLike, RandomState, SupportsShape
from fiedler._validation import check_int, check_n_clusters, check_nonnegative, check_seed
from fiedler.core.arrays import first_best
from fiedler.core.fitting import ProgressMixin, report_progress, restore_on_failure, track_progress
from fiedler.core.kmeans import kmeans
from fiedler.embedding.nle import multiplicative_update
from fiedler.errors import NotConvergedWarning, warn
from fiedler.graph.recipes import KNNGraph, as_affinity
from fiedler.graph.weights import check_sample_weight, weigh_graph

from .nmf import check_nonnegative_rows

DENOMINATOR_EPS = 1e-12  # added to denominators against division by zero
OBJECTIVE_INTERVAL = 10  # updates between two evaluations of the objective


class Factors(NamedTuple):
    """Factors of X ≈ VU'."""

    V: np.ndarray  # (n, K)
    U: np.ndarray  # (d, K)


class GNMFRun(NamedTuple):
    """The result of one start."""

    factors: Factors
    history: FitHistory
    n_iter: int
    converged: bool


class Problem(NamedTuple):
    """What is factorised: rows, the graph with its degrees, λ, and the weights of rows."""

    X: Any  # (n, d)
    W: Any  # (n, n), of the weighted rows
    degrees: np.ndarray  # (n,)
    lam: float
    m: np.ndarray  # (n, 1)


def update_factors(problem: Problem, factors: Factors) -> Factors:
    """Update U, then V. [Cai et al. 2011, Eqs 14 and 15]"""
    (X, W, degrees, lam, m), (V, U) = problem, factors
    U = multiplicative_update(U, X.T @ (m * V), U @ (V.T @ (m * V)), epsilon=DENOMINATOR_EPS, power=1.0)
    numerator, denominator = m * (X @ U) + lam * (W @ V), m * (V @ (U.T @ U)) + lam * degrees[:, None] * V
    return Factors(multiplicative_update(V, numerator, denominator, epsilon=DENOMINATOR_EPS, power=1.0), U)


def objective(problem: Problem, factors: Factors) -> float:
    """Return Σ_i m_i ‖x_i - v_i U'‖² + λ tr(V'LV) without forming VU'."""
    (X, W, degrees, lam, m), (V, U) = problem, factors
    squares = float(
        np.asarray((X.multiply(X)).sum(axis=1) if sp.issparse(X) else np.sum(X * X, axis=1)).ravel() @ m[:, 0]
    )
    fit = squares - 2 * float(np.sum(m * (X @ U) * V)) + float(np.sum((V.T @ (m * V)) * (U.T @ U)))
    return fit + lam * float(np.sum(V * (degrees[:, None] * V - W @ V)))


def normalize_factors(factors: Factors) -> Factors:
    """Scale the columns of U to length one without changing the product VU'."""
    lengths = np.linalg.norm(factors.U, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return Factors(factors.V * lengths, factors.U / lengths)


class GNMF(ProgressMixin, ClusterMixin, BaseEstimator):
    """Clustering by graph-regularised nonnegative matrix factorisation of non-negative rows.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph or matrix, default=None
        The graph or how to build it; None is ``KNNGraph(5)``, as in the paper.
    lam : float, default=100.0
        Weight of the graph term.
    n_init : int, default=3
        The number of random starts, of which the one with the lowest objective is kept.
    max_iter : int, default=300
        Maximum number of updates of each start.
    tol : float, default=1e-4
        Tolerance on the relative decrease of the objective over ten updates.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    embedding_ : array of shape (n_samples, n_clusters)
        V.
    components_ : array of shape (n_clusters, n_features)
        U', with rows of length one.
    objective_ : float
        The objective at the end of the best start.
    history_ : FitHistory
        The objective of the best start, before the first update and after every tenth; ``history_.iterations`` are the
        numbers of updates.
    n_iter_ : int
        The number of updates of the best start.
    converged_ : bool
        Whether the best start met ``tol``.
    n_features_in_ : int
        The number of features seen during fit.

    References
    ----------
    D. Cai, X. He, J. Han, T. S. Huang, "Graph regularized nonnegative matrix factorization for data representation",
    IEEE Transactions on Pattern Analysis and Machine Intelligence 33(8), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler_papers.baselines import GNMF
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]], 8, axis=0) + 0.01 * np.arange(16)[:, None]
    >>> model = GNMF(2, random_state=0).fit(X)
    >>> len(set(model.labels_[:8])), len(set(model.labels_[8:]))
    (1, 1)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        graph: GraphLike = None,
        *,
        lam: float = 100.0,
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.lam = lam
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
    ) -> Self:
        """Factorise the rows of ``X`` and cluster the rows of V.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            Positive weights: a row of weight 3 stands for three equal rows, which
            are not each other's neighbours in the graph.
        """
        with restore_on_failure(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: MatrixLike, sample_weight: Any) -> Self:
        rows = check_nonnegative_rows(X, estimator=self, min_samples=2)
        weights = check_sample_weight(sample_weight, rows.shape[0])
        k, lam = check_n_clusters(self.n_clusters, rows.shape[0]), check_nonnegative(self.lam, "lam")
        check_int(self.max_iter, "max_iter"), check_nonnegative(self.tol, "tol")
        recipe = KNNGraph(min(5, rows.shape[0] - 1)) if self.graph is None else self.graph
        graph = weigh_graph(as_affinity(recipe, rows, validated=True), weights)
        m = np.ones((rows.shape[0], 1)) if weights is None else weights[:, None]
        problem = Problem(rows, graph.weights, np.asarray(graph.degrees), lam, m)
        rng = check_seed(self.random_state)
        seeds = rng.randint(2**31 - 1, size=check_int(self.n_init, "n_init"))
        with report_progress(self):
            runs = [self._run(problem, k, seed) for seed in track_progress(seeds, "starts", len(seeds))]
        best = first_best(runs, lambda run: run.history.objective[-1], lowest=True)
        if not best.converged:
            warn(
                f"GNMF did not converge within max_iter={self.max_iter} updates",
                "increase max_iter or tol",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=3,
                max_iter=self.max_iter,
            )
        self.labels_ = kmeans(best.factors.V, k, n_init=10, sample_weight=weights, random_state=rng).labels
        self.embedding_ = best.factors.V.astype(rows.dtype)  # the updates run in double precision
        self.components_ = best.factors.U.T.astype(rows.dtype)
        self.objective_ = float(best.history.objective[-1])
        self.history_, self.n_iter_, self.converged_ = best.history, best.n_iter, best.converged
        return self

    def _run(self, problem: Problem, k: int, seed: int) -> GNMFRun:
        """Update one random start, whose product has the same sum as ``X``."""
        X, rng = problem.X, np.random.RandomState(seed)
        V, U = normalize_factors(Factors(rng.uniform(size=(X.shape[0], k)), rng.uniform(size=(X.shape[1], k))))
        factors = Factors(V * (float(X.sum()) / max(float(V.sum(axis=0) @ U.sum(axis=0)), DENOMINATOR_EPS)), U)
        values, iterations, n_iter, converged = [objective(problem, factors)], [0], 0, False
        while n_iter < self.max_iter and not converged:
            factors, n_iter = normalize_factors(update_factors(problem, factors)), n_iter + 1
            if n_iter % OBJECTIVE_INTERVAL == 0 or n_iter == self.max_iter:
                values.append(objective(problem, factors))
                iterations.append(n_iter)
                converged = values[-2] - values[-1] <= self.tol * abs(values[-2])
        history = FitHistory(np.array(values), maximize=False, iterations=np.array(iterations))
        return GNMFRun(factors, history, n_iter, converged)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.positive_only = True, True
        return tags
