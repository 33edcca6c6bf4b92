"""GNMF: nonnegative factors that vary smoothly over a graph [Cai, He, Han & Huang 2011].

    minimise  ‖X - VU'‖² + λ tr(V'LV)   over nonnegative V (n, K) and U (d, K) with columns of length one

by the multiplicative updates U ← U ∘ X'V / UV'V and V ← V ∘ (XU + λWV) / (VU'U + λDV), neither of which raises the
sum. K-means clusters the rows of V. No maintained library offers it.

Where we differ: the authors bring the columns of U to length one at the end. Without that the sum has no minimum worth
having, since V shrinks while U grows and the graph term fades; so we do it after every update.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state

from .._validation import check_int, check_n_clusters, check_nonnegative
from ..core.kmeans import kmeans
from ..core.multiplicative import multiplicative_update
from ..core.progress import ProgressMixin, report_progress, track_progress
from ..graph.affinity import AffinityGraph
from ..graph.recipes import KNNGraph, as_affinity
from .nmf import check_nonnegative_rows

GUARD = 1e-12
CHECK = 10  # updates between two looks at the objective


class Factors(NamedTuple):
    """X ≈ VU'."""

    V: np.ndarray  # (n, K)
    U: np.ndarray  # (d, K)


class Run(NamedTuple):
    """One start: what it came to."""

    factors: Factors
    history: list[float]
    n_iter: int
    converged: bool


def update(X: Any, W: Any, degrees: np.ndarray, lam: float, factors: Factors) -> Factors:
    """One update of U, then of V. [Cai et al. 2011, Eqs 14 and 15]"""
    V, U = factors
    U = multiplicative_update(U, X.T @ V, U @ (V.T @ V), guard=GUARD, power=1.0)
    above, below = X @ U + lam * (W @ V), V @ (U.T @ U) + lam * degrees[:, None] * V
    return Factors(multiplicative_update(V, above, below, guard=GUARD, power=1.0), U)


def objective(X: Any, W: Any, degrees: np.ndarray, lam: float, factors: Factors) -> float:
    """‖X - VU'‖² + λ tr(V'LV), without forming VU'."""
    V, U = factors
    squares = float((X.multiply(X)).sum()) if sp.issparse(X) else float(np.sum(X * X))
    fit = squares - 2 * float(np.sum((X @ U) * V)) + float(np.sum((V.T @ V) * (U.T @ U)))
    return fit + lam * float(np.sum(V * (degrees[:, None] * V - W @ V)))


def balanced(factors: Factors) -> Factors:
    """The same product, the columns of U at length one."""
    lengths = np.linalg.norm(factors.U, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return Factors(factors.V * lengths, factors.U / lengths)


class GNMF(ProgressMixin, ClusterMixin, BaseEstimator):
    """Clusters by graph-regularised nonnegative matrix factorisation of nonnegative rows.

    Parameters
    ----------
    n_clusters : int, default=8
    graph : recipe, AffinityGraph or matrix, default=None
        None is ``KNNGraph(5)``, the authors'.
    lam : float, default=100.0
        Weight of the graph term.
    n_init : int, default=3
        Random starts; the lowest objective wins.
    max_iter : int, default=300
    tol : float, default=1e-4
        On the relative fall of the objective over ten updates.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    embedding_ : array of shape (n_samples, n_clusters)
        V.
    components_ : array of shape (n_clusters, n_features)
        U', rows of length one.
    objective_ : float
    history_ : list of float
        The objective at the start and at every tenth update.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    References
    ----------
    D. Cai, X. He, J. Han, T. S. Huang, "Graph regularized nonnegative matrix factorization for data representation",
    IEEE Transactions on Pattern Analysis and Machine Intelligence 33(8), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.baselines import GNMF
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]], 8, axis=0) + 0.01 * np.arange(16)[:, None]
    >>> model = GNMF(2, random_state=0).fit(X)
    >>> len(set(model.labels_[:8])), len(set(model.labels_[8:]))
    (1, 1)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        graph: Any = None,
        *,
        lam: float = 100.0,
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.lam = lam
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> GNMF:
        """Factorise the rows of ``X`` and cluster their coordinates."""
        X = check_nonnegative_rows(X, estimator=self, min_samples=2)
        k, lam = check_n_clusters(self.n_clusters, X.shape[0]), check_nonnegative(self.lam, "lam")
        check_int(self.max_iter, "max_iter"), check_nonnegative(self.tol, "tol")
        graph = self._affinity(X)
        rng = check_random_state(self.random_state)
        seeds = rng.randint(2**31 - 1, size=check_int(self.n_init, "n_init"))
        with report_progress(self):
            runs = [self._run(X, graph, lam, k, seed) for seed in track_progress(seeds, "starts", len(seeds))]
        factors, self.history_, self.n_iter_, self.converged_ = min(runs, key=lambda one: one.history[-1])
        if not self.converged_:
            warnings.warn(
                f"GNMF was still falling after {self.n_iter_} updates; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.embedding_, self.components_ = factors.V, factors.U.T
        self.objective_ = self.history_[-1]
        self.labels_ = kmeans(self.embedding_, k, n_init=10, random_state=rng).labels
        return self

    def _run(self, X: Any, graph: AffinityGraph, lam: float, k: int, seed: int) -> Run:
        """Updates from one random start, in the scale of the rows."""
        rng = np.random.RandomState(seed)
        W, degrees = graph.weights, np.asarray(graph.degrees)
        V, U = balanced(Factors(rng.uniform(size=(X.shape[0], k)), rng.uniform(size=(X.shape[1], k))))
        factors = Factors(V * (float(X.sum()) / max(float(V.sum(axis=0) @ U.sum(axis=0)), GUARD)), U)
        history, n_iter, converged = [objective(X, W, degrees, lam, factors)], 0, False
        while n_iter < self.max_iter and not converged:
            factors, n_iter = balanced(update(X, W, degrees, lam, factors)), n_iter + 1
            if n_iter % CHECK == 0 or n_iter == self.max_iter:
                history.append(objective(X, W, degrees, lam, factors))
                converged = history[-2] - history[-1] <= self.tol * abs(history[-2])
        return Run(factors, history, n_iter, converged)

    def _affinity(self, X: Any) -> AffinityGraph:
        recipe = KNNGraph(min(5, X.shape[0] - 1)) if self.graph is None else self.graph
        return as_affinity(recipe, X, validated=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.positive_only = True, True
        return tags
