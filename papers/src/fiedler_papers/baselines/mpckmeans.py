"""MPCKMeans: k-means with pairs and a separate metric for each cluster [Bilenko, Basu & Mooney 2004].

    minimise  Σ_i (‖x_i - μ_l‖²_l - log det A_l) + w Σ_{must, l_i ≠ l_j} ½(‖δ‖²_{l_i} + ‖δ‖²_{l_j})
              + w Σ_{cannot, l_i = l_j} (D_l - ‖δ‖²_l),      ‖δ‖²_l = δ'A_lδ, A_l diagonal, δ = x_i - x_j

D_l bounds the squared distances of rows under the metric of cluster l: the squared ranges of the features times A_l
(the paper takes the largest distance itself). Centres start at the centroids of must-linked groups, the largest first,
then at rows far from those. The steps assign one row after the other to its best cluster, move centres to means, and
compute A_l in closed form; none increases the objective, except for the lower bound on the scatter. With weights m_i of
rows, the first sum is Σ_i m_i (...), centres are weighted means, and |X_l| is the sum of the weights of a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fiedler._records import FitHistory
from fiedler._typing import LabelsLike, MatrixLike, RandomState, SupportsShape
from fiedler._validation import check_dense, check_int, check_n_clusters, check_nonnegative, check_seed
from fiedler.core.arrays import order_by_first_row, renumber, to_numpy
from fiedler.core.fitting import restore_on_failure
from fiedler.errors import NotConvergedWarning, warn
from fiedler.graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints, symmetric_pairs
from fiedler.graph.estimator import ClustererMixin, warn_if_clusters_are_empty
from fiedler.graph.weights import check_sample_weight

MIN_VARIANCE_SHARE = 1e-6  # of the mean variance of the features: lower bound on the scatter per row of a cluster


class MPCKMeans(ClustererMixin, BaseEstimator):
    """K-means with a penalty for violated pairs and a learned diagonal metric for each cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    weight : float, default=1.0
        w, the weight of a violated pair.
    max_iter : int, default=50
        Maximum number of iterations.
    random_state : int, RandomState or None, default=None
        Random seed or generator, for the order in which rows are assigned and for centres beyond those of the groups.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of the clusters.
    metrics_ : ndarray of shape (n_clusters, n_features)
        The diagonals of A_l.
    objective_ : float
        The objective at the end.
    history_ : FitHistory
        The objective, which decreases, after each iteration.
    n_iter_ : int
        The number of iterations.
    converged_ : bool
        Whether the last iteration changed no label.
    n_features_in_ : int
        The number of features seen during fit.

    Examples
    --------
    >>> from fiedler import PairwiseConstraints
    >>> from fiedler_papers.baselines import MPCKMeans
    >>> X = [[0.0, 0.0], [0.0, 4.0], [3.0, 0.0], [3.0, 4.0]]
    >>> pairs = PairwiseConstraints(must_link=[(0, 1)], cannot_link=[(0, 2)], n_samples=4)
    >>> labels = MPCKMeans(2, random_state=0).fit(X, constraints=pairs).labels_
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """

    def __init__(
        self, n_clusters: int = 8, weight: float = 1.0, max_iter: int = 50, random_state: RandomState = None
    ) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
        constraints: ConstraintsLike = None,
    ) -> Self:
        """Cluster the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            Positive weights: a row of weight 3 stands for three equal rows.
        constraints : PairwiseConstraints, optional
            Must-links and cannot-links.
        """
        with restore_on_failure(self):
            return self._fit(X, sample_weight, constraints)

    def _fit(self, X: MatrixLike, sample_weight: Any, constraints: ConstraintsLike) -> Self:
        validated = to_numpy(check_dense(X, estimator=self, min_samples=2))
        rows = validated.astype(np.float64)  # the iterations run in double precision
        k, rng = check_n_clusters(self.n_clusters, len(rows)), check_seed(self.random_state)
        weight, max_iter = check_nonnegative(self.weight, "weight"), check_int(self.max_iter, "max_iter")
        pairs = check_constraints(constraints, rows) or PairwiseConstraints(n_samples=len(rows))
        given = check_sample_weight(sample_weight, len(rows))
        problem = _PairObjective(rows, pairs, weight, np.ones(len(rows)) if given is None else given)
        centers = initial_centers(rows, pairs, k, rng, problem.m)
        metrics = np.ones((k, rows.shape[1])) / problem.mean_variance
        labels = penalized_distances(rows, centers, metrics).argmin(axis=1)
        values: list[float] = []
        converged = False
        while len(values) < max_iter and not converged:
            previous = labels
            labels = problem.assign(labels, centers, metrics, rng)
            centers = np.array([_mean(rows, problem.m, labels == c, centers[c]) for c in range(k)])
            metrics = problem.metrics(labels, centers, metrics)
            values.append(problem.objective(labels, centers, metrics))
            converged = bool((labels == previous).all()) and len(values) > 1
        if not converged:
            warn(
                f"MPCKMeans did not converge within max_iter={max_iter} iterations",
                "increase max_iter",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=3,
                max_iter=max_iter,
            )
        warn_if_clusters_are_empty(len(np.unique(labels)), k, "use fewer clusters or other pairs", stacklevel=3)
        order = order_by_first_row(labels, k)
        self.labels_, self.metrics_ = renumber(labels.astype(np.int64), order), metrics[order]
        self.cluster_centers_ = centers[order].astype(validated.dtype)
        self.history_, self.objective_ = FitHistory(np.array(values), maximize=False), values[-1]
        self.n_iter_, self.converged_ = len(values), converged
        return self

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the nearest centre of each row under the metrics of the clusters."""
        check_is_fitted(self)
        rows = to_numpy(check_dense(X, estimator=self, reset=False)).astype(np.float64)
        return penalized_distances(rows, self.cluster_centers_, self.metrics_).argmin(axis=1)


def penalized_distances(X: np.ndarray, centers: np.ndarray, metrics: np.ndarray) -> np.ndarray:
    """Return ‖x_i - μ_l‖²_l - log det A_l, the cost of each row in each cluster without pairs, shape (n, k)."""
    return np.stack(
        [((X - center) ** 2) @ metric - np.log(metric).sum() for center, metric in zip(centers, metrics)], axis=1
    )


def _mean(X: np.ndarray, m: np.ndarray, members: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return the weighted mean of some rows; another point if there are none."""
    return np.average(X[members], axis=0, weights=m[members]) if members.any() else otherwise


def initial_centers(
    X: np.ndarray, pairs: PairwiseConstraints, k: int, rng: np.random.RandomState, m: np.ndarray
) -> np.ndarray:
    """Return the centroids of the largest must-linked groups, then the rows farthest from the centres chosen so far."""
    counts, sizes = np.bincount(pairs.groups), np.bincount(pairs.groups, m)
    largest = [g for g in np.argsort(-sizes, kind="stable") if counts[g] > 1][:k]
    centers = [_mean(X, m, pairs.groups == g, X[0]) for g in largest] or [X[rng.randint(len(X))]]
    while len(centers) < k:
        distances = np.min([((X - center) ** 2).sum(axis=1) for center in centers], axis=0)
        centers.append(X[distances.argmax()])
    return np.array(centers)


class _PairObjective:
    """The objective and its steps for given rows, with weights m, and pairs."""

    def __init__(self, X: np.ndarray, pairs: PairwiseConstraints, weight: float, m: np.ndarray) -> None:
        self.X, self.pairs, self.weight, self.m = X, pairs, weight, m
        mean = np.average(X, axis=0, weights=m)
        self.mean_variance = float(np.average((X - mean) ** 2, axis=0, weights=m).mean()) or 1.0
        self.sq_ranges = (X.max(axis=0) - X.min(axis=0)) ** 2  # bounds every squared difference, for each feature
        self.must, self.cannot = (symmetric_pairs(links, len(X)) for links in (pairs.must_link, pairs.cannot_link))

    def objective(self, labels: np.ndarray, centers: np.ndarray, metrics: np.ndarray) -> float:
        """Return the objective, including violated pairs."""
        cost = float(self.m @ penalized_distances(self.X, centers, metrics)[np.arange(len(labels)), labels])
        for links, cannot in ((self.pairs.must_link, False), (self.pairs.cannot_link, True)):
            first, second = links.T
            violated = (labels[first] == labels[second]) == cannot
            first, second = first[violated], second[violated]
            squared = (self.X[first] - self.X[second]) ** 2
            if cannot:
                terms = ((self.sq_ranges - squared) * metrics[labels[first]]).sum(axis=1)
            else:
                terms = 0.5 * (squared * (metrics[labels[first]] + metrics[labels[second]])).sum(axis=1)
            cost += self.weight * float(terms.sum())
        return cost

    def assign(
        self, labels: np.ndarray, centers: np.ndarray, metrics: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """Assign rows in random order to the cluster with the lowest cost, given the labels of the other rows."""
        labels, costs = labels.copy(), self.m[:, None] * penalized_distances(self.X, centers, metrics)
        linked = self.pairs.rows
        unlinked = np.ones(len(labels), dtype=bool)
        unlinked[linked] = False
        labels[unlinked] = costs[unlinked].argmin(axis=1)
        for i in rng.permutation(linked):
            labels[i] = (costs[i] + self.weight * self.violation_costs(i, labels, metrics)).argmin()
        return labels

    def violation_costs(self, i: int, labels: np.ndarray, metrics: np.ndarray) -> np.ndarray:
        """Return the cost of the violated pairs of row i in each cluster."""
        must, cannot = (links.indices[links.indptr[i] : links.indptr[i + 1]] for links in (self.must, self.cannot))
        squared = (self.X[must] - self.X[i]) ** 2
        partner_cost = (squared * metrics[labels[must]]).sum(axis=1)  # under the metric of the partner's cluster
        must_costs = 0.5 * (squared @ metrics.T + partner_cost[:, None])  # (must-links, clusters)
        must_costs[np.arange(len(must)), labels[must]] = 0
        costs = must_costs.sum(axis=0)
        cannot_costs = (self.sq_ranges - (self.X[cannot] - self.X[i]) ** 2) @ metrics.T
        np.add.at(costs, labels[cannot], cannot_costs[np.arange(len(cannot)), labels[cannot]])
        return costs

    def metrics(self, labels: np.ndarray, centers: np.ndarray, previous: np.ndarray) -> np.ndarray:
        """Return A_l = |X_l| / (scatter of the cluster + that of its violated pairs), for each feature."""
        min_variance = MIN_VARIANCE_SHARE * self.mean_variance
        metrics = previous.copy()
        for c in range(len(centers)):
            members = labels == c
            size = self.m[members].sum()
            if size == 0:
                continue
            scatter = self.m[members] @ (self.X[members] - centers[c]) ** 2 + self.weight * self._pair_scatter(
                labels, c
            )
            metrics[c] = size / np.maximum(scatter, min_variance * size)
        return metrics

    def _pair_scatter(self, labels: np.ndarray, c: int) -> np.ndarray:
        """Return the scatter of the violated pairs of cluster c."""
        first, second = self.pairs.must_link.T
        separated = (labels[first] != labels[second]) & ((labels[first] == c) | (labels[second] == c))
        scatter = 0.5 * ((self.X[first[separated]] - self.X[second[separated]]) ** 2).sum(axis=0)
        first, second = self.pairs.cannot_link.T
        together = (labels[first] == c) & (labels[second] == c)
        return scatter + (self.sq_ranges - (self.X[first[together]] - self.X[second[together]]) ** 2).sum(axis=0)
