"""MPCKMeans: k-means with pairs and a metric of its own for each cluster [Bilenko, Basu & Mooney 2004].

    minimise  Σ_i (‖x_i - μ_l‖²_l - log det A_l) + w Σ_{must, l_i ≠ l_j} ½(‖δ‖²_{l_i} + ‖δ‖²_{l_j})
              + w Σ_{cannot, l_i = l_j} (D_l - ‖δ‖²_l),      ‖δ‖²_l = δ'A_lδ, A_l diagonal, δ = x_i - x_j

D_l bounds the squared distances of rows under the metric of cluster l: the squared ranges of the features times A_l
(the paper takes the largest distance itself). Centres start at the centroids of must-linked groups, the largest first,
then at rows far from those. The steps: rows one by one to their best cluster, centres to means, and A_l in closed form;
none raises the objective, but for the floor on the scatter.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_dense, check_int, check_n_clusters, check_nonnegative
from ..core.backend import to_numpy
from ..graph.constraints import PairwiseConstraints, check_constraints
from ..graph.pairs import symmetric_pairs


class MPCKMeans(ClusterMixin, BaseEstimator):
    """K-means that pays for broken pairs and learns a diagonal metric a cluster.

    Parameters
    ----------
    n_clusters : int, default=8
    weight : float, default=1.0
        w, of a broken pair.
    max_iter : int, default=50
    random_state : int, RandomState or None, default=None
        The order in which rows are placed, and centres beyond the groups.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    metrics_ : ndarray of shape (n_clusters, n_features)
        The diagonals of A_l.
    history_ : list of float
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from fiedler import PairwiseConstraints
    >>> from fiedler.baselines import MPCKMeans
    >>> X = [[0.0, 0.0], [0.0, 4.0], [3.0, 0.0], [3.0, 4.0]]
    >>> pairs = PairwiseConstraints(must_link=[(0, 1)], cannot_link=[(0, 2)], n_samples=4)
    >>> labels = MPCKMeans(2, random_state=0).fit(X, constraints=pairs).labels_
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """

    def __init__(self, n_clusters: int = 8, weight: float = 1.0, max_iter: int = 50, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> MPCKMeans:
        """Cluster the rows of ``X`` under the pairs."""
        X = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        k, rng = check_n_clusters(self.n_clusters, len(X)), check_random_state(self.random_state)
        pairs = check_constraints(constraints, X) or PairwiseConstraints(n_samples=len(X))
        problem = _Problem(X, pairs, check_nonnegative(self.weight, "weight"))
        centres, metrics = starting_centres(X, pairs, k, rng), np.ones((k, X.shape[1])) / (X.var(axis=0).mean() or 1.0)
        labels = problem.distances(centres, metrics).argmin(axis=1)
        self.history_, self.converged_ = [], False
        for _ in range(check_int(self.max_iter, "max_iter")):
            last = labels
            labels = problem.assign(labels, centres, metrics, rng)
            centres = np.array([X[labels == c].mean(axis=0) if (labels == c).any() else centres[c] for c in range(k)])
            metrics = problem.metrics(labels, centres, metrics)
            self.history_.append(problem.objective(labels, centres, metrics))
            if (labels == last).all() and len(self.history_) > 1:
                self.converged_ = True
                break
        self.labels_, self.cluster_centers_, self.metrics_ = labels.astype(np.int64), centres, metrics
        self.n_iter_ = len(self.history_)
        if not self.converged_:
            text = f"MPCKMeans still moved rows after max_iter={self.max_iter}; raise it"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The nearest centre under the clusters' metrics."""
        check_is_fitted(self)
        X = to_numpy(check_dense(X, estimator=self, reset=False)).astype(np.float64)
        return to_centres(X, self.cluster_centers_, self.metrics_).argmin(axis=1)


def to_centres(X: np.ndarray, centres: np.ndarray, metrics: np.ndarray) -> np.ndarray:
    """‖x_i - μ_l‖²_l - log det A_l, shape (n, k)."""
    return np.stack(
        [((X - centre) ** 2) @ scale - np.log(scale).sum() for centre, scale in zip(centres, metrics)], axis=1
    )


def starting_centres(X: np.ndarray, pairs: PairwiseConstraints, k: int, rng: np.random.RandomState) -> np.ndarray:
    """The centroids of the largest must-linked groups, then rows as far as can be from those there are."""
    sizes = np.bincount(pairs.groups)
    largest = [g for g in np.argsort(-sizes, kind="stable")[:k] if sizes[g] > 1]
    centres = [X[pairs.groups == g].mean(axis=0) for g in largest] or [X[rng.randint(len(X))]]
    while len(centres) < k:
        distances = np.min([((X - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        centres.append(X[distances.argmax()])
    return np.array(centres)


class _Problem:
    """The objective and its steps for given rows and pairs."""

    def __init__(self, X: np.ndarray, pairs: PairwiseConstraints, weight: float) -> None:
        self.X, self.pairs, self.weight = X, pairs, weight
        self.span = (X.max(axis=0) - X.min(axis=0)) ** 2  # bounds every squared difference, feature by feature
        self.must, self.cannot = (symmetric_pairs(links, len(X)) for links in (pairs.must_link, pairs.cannot_link))

    def distances(self, centres: np.ndarray, metrics: np.ndarray) -> np.ndarray:
        """What a row costs in each cluster, pairs apart."""
        return to_centres(self.X, centres, metrics)

    def objective(self, labels: np.ndarray, centres: np.ndarray, metrics: np.ndarray) -> float:
        """The whole objective."""
        cost = float(self.distances(centres, metrics)[np.arange(len(labels)), labels].sum())
        for links, cannot in ((self.pairs.must_link, False), (self.pairs.cannot_link, True)):
            first, second = links.T
            broken = (labels[first] == labels[second]) == cannot
            first, second = first[broken], second[broken]
            squared = (self.X[first] - self.X[second]) ** 2
            if cannot:
                terms = ((self.span - squared) * metrics[labels[first]]).sum(axis=1)
            else:
                terms = 0.5 * (squared * (metrics[labels[first]] + metrics[labels[second]])).sum(axis=1)
            cost += self.weight * float(terms.sum())
        return cost

    def assign(
        self, labels: np.ndarray, centres: np.ndarray, metrics: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """Rows in random order, each to the cluster of its lowest cost given where the others are."""
        labels, costs = labels.copy(), self.distances(centres, metrics)
        linked = self.pairs.rows
        free = np.ones(len(labels), dtype=bool)
        free[linked] = False
        labels[free] = costs[free].argmin(axis=1)
        for i in rng.permutation(linked):
            labels[i] = (costs[i] + self.weight * self._broken(i, labels, metrics)).argmin()
        return labels

    def _broken(self, i: int, labels: np.ndarray, metrics: np.ndarray) -> np.ndarray:
        """What the pairs of row i cost in each cluster."""
        mates, others = (side.indices[side.indptr[i] : side.indptr[i + 1]] for side in (self.must, self.cannot))
        squared = (self.X[mates] - self.X[i]) ** 2
        own = (squared * metrics[labels[mates]]).sum(axis=1)  # under the metric of the mate's cluster
        price = 0.5 * (squared @ metrics.T + own[:, None])  # (mates, clusters)
        price[np.arange(len(mates)), labels[mates]] = 0
        cost = price.sum(axis=0)
        apart = (self.span - (self.X[others] - self.X[i]) ** 2) @ metrics.T
        np.add.at(cost, labels[others], apart[np.arange(len(others)), labels[others]])
        return cost

    def metrics(self, labels: np.ndarray, centres: np.ndarray, last: np.ndarray) -> np.ndarray:
        """A_l = |X_l| / (scatter of the cluster + that of its broken pairs), feature by feature."""
        k, floor = len(centres), 1e-6 * (self.X.var(axis=0).mean() or 1.0)
        found = last.copy()
        for c in range(k):
            inside = labels == c
            if not inside.any():
                continue
            scatter = ((self.X[inside] - centres[c]) ** 2).sum(axis=0) + self.weight * self._pair_scatter(labels, c)
            found[c] = inside.sum() / np.maximum(scatter, floor * inside.sum())
        return found

    def _pair_scatter(self, labels: np.ndarray, c: int) -> np.ndarray:
        first, second = self.pairs.must_link.T
        torn = (labels[first] != labels[second]) & ((labels[first] == c) | (labels[second] == c))
        scatter = 0.5 * ((self.X[first[torn]] - self.X[second[torn]]) ** 2).sum(axis=0)
        first, second = self.pairs.cannot_link.T
        joined = (labels[first] == c) & (labels[second] == c)
        return scatter + (self.span - (self.X[first[joined]] - self.X[second[joined]]) ** 2).sum(axis=0)
