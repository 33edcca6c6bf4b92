"""Metrics learnt from pairs or labels, as the learned Laplacian is compared with: MMC and LMNN.

MMC [Xing, Ng, Jordan & Russell 2003; the paper's PGDML], M positive semidefinite:

    maximise  Σ_{cannot} √(δ'Mδ)   subject to   Σ_{must} δ'Mδ ≤ 1,     δ = x_i - x_j

With S = Σ_{must} δδ' and M = S^-½ N S^-½ the constraint is tr N ≤ 1, onto which a symmetric matrix is projected exactly
(eigenvalues onto the simplex); the objective is concave, and every accepted step raises it.

LMNN [Weinberger, Blitzer & Saul 2005], target neighbours j of i in its class, impostors l of other classes:

    minimise  (1-μ) Σ_ij ‖A(x_i - x_j)‖² + μ Σ_ijl [1 + ‖A(x_i - x_j)‖² - ‖A(x_i - x_l)‖²]₊
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import check_dense, check_fraction, check_int, check_positive
from ..core.backend import to_numpy
from ..graph.constraints import PairwiseConstraints, check_constraints
from ..graph.labels import as_column, known_labels


class _LearntMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """``metric_`` (A) and XA'."""

    metric_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """XA': rows whose Euclidean distances are the learnt ones."""
        check_is_fitted(self)
        return to_numpy(check_dense(X, estimator=self, reset=False)) @ self.metric_.T

    @property
    def _n_features_out(self) -> int:
        return int(self.metric_.shape[0])


class MMC(_LearntMetric):
    """The metric of Xing et al.: cannot-linked rows far apart while must-linked ones stay close.

    Parameters
    ----------
    ridge : float, default=1e-3
        Added to S, in units of its mean variance: must-links seldom span all features.
    max_iter : int, default=200
    tol : float, default=1e-6
        On the relative gain of a step.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        A with M = A'A.
    history_ : list of float
        The objective.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.supervision import PairwiseConstraints
    >>> X = np.array([[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]])
    >>> pairs = PairwiseConstraints([(0, 1), (2, 3)], [(0, 2), (1, 3)], 4)
    >>> A = MMC().fit(X, constraints=pairs).metric_
    >>> bool(abs(A[:, 0]).max() > 100 * abs(A[:, 1]).max())  # the second feature tells nothing
    True
    """

    def __init__(self, ridge: float = 1e-3, max_iter: int = 200, tol: float = 1e-6) -> None:
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> MMC:
        """Learn from pairs, or from labels ``y`` of some rows, -1 where unknown."""
        X = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        pairs = check_constraints(constraints, X)
        if pairs is None:
            pairs = PairwiseConstraints(n_samples=len(X)) if y is None else PairwiseConstraints.from_labels(y)
        if len(pairs.must_link) == 0 or len(pairs.cannot_link) == 0:
            raise ValueError("MMC needs pairs of both kinds, must-links and cannot-links")
        same, apart = (X[links[:, 0]] - X[links[:, 1]] for links in (pairs.must_link, pairs.cannot_link))
        if not apart.any():
            raise ValueError("all cannot-linked rows are equal, so that no metric can tell them apart")
        scatter = same.T @ same
        floor = check_positive(self.ridge, "ridge") * (np.trace(scatter) or 1.0) / X.shape[1]
        values, vectors = eigh(scatter + floor * np.eye(X.shape[1]))
        whiten = (vectors / np.sqrt(values)) @ vectors.T
        N = self._search_lam(apart @ whiten)
        values, vectors = eigh(N)
        self.metric_ = (np.sqrt(np.maximum(values, 0))[:, None] * vectors.T) @ whiten
        return self

    def _search_lam(self, apart: np.ndarray) -> np.ndarray:
        """Projected gradient ascent from N = I/d."""
        N, step = np.eye(apart.shape[1]) / apart.shape[1], 1.0
        value, self.history_, self.converged_ = spread_apart(N, apart), [], False
        self.history_.append(value)
        for _ in range(check_int(self.max_iter, "max_iter")):
            lengths = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", apart, N, apart), 1e-300))
            slope = 0.5 * apart.T @ (apart / lengths[:, None])
            slope /= np.linalg.norm(slope)
            moved = onto_spectrahedron(N + step * slope)
            while (found := spread_apart(moved, apart)) < value and step > 1e-12:
                step *= 0.5
                moved = onto_spectrahedron(N + step * slope)
            gain = found - value
            if gain > 0:
                N, value, step = moved, found, 2 * step
            self.history_.append(value)
            if gain <= self.tol * abs(value):
                self.converged_ = True
                break
        self.n_iter_ = len(self.history_) - 1
        return N


def spread_apart(N: np.ndarray, apart: np.ndarray) -> float:
    """Σ √(e'Ne) over the rows of ``apart``."""
    return float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", apart, N, apart), 0)).sum())


def onto_spectrahedron(N: np.ndarray) -> np.ndarray:
    """The nearest positive semidefinite matrix of trace at most one."""
    values, vectors = eigh(0.5 * (N + N.T))
    values = np.maximum(values, 0)
    if values.sum() > 1:  # onto the simplex: subtract what makes the positive ones sum to one
        ordered = np.sort(values)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
        values = np.maximum(values - excess[ordered > excess][-1], 0)
    return (vectors * values) @ vectors.T


class LMNN(_LearntMetric):
    """Large margin nearest neighbours: a metric under which a row's nearest rows share its class, with a margin.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of each labelled row, as many as its class has.
    push : float, default=0.5
        μ, the weight of the impostors.
    max_iter : int, default=100
        Of L-BFGS.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
    objective_ : float
    n_iter_ : int

    Examples
    --------
    >>> from fiedler.baselines import LMNN
    >>> X = [[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]]
    >>> A = LMNN(n_neighbors=1).fit(X, [0, 0, 1, 1]).metric_
    >>> bool(abs(A[:, 0]).max() > 2 * abs(A[:, 1]).max())  # the second feature tells nothing
    True
    """

    def __init__(self, n_neighbors: int = 3, push: float = 0.5, max_iter: int = 100) -> None:
        self.n_neighbors = n_neighbors
        self.push = push
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None) -> LMNN:
        """Learn from the rows whose label in ``y`` is not -1."""
        if y is None:
            raise ValueError("LMNN requires y to be passed, but the target y is None; use -1 for rows of unknown class")
        X = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        push = check_fraction(self.push, "push")
        known, labels = known_labels(as_column(y), len(X))
        X = X[known]
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(classes) < 2 or counts.min() < 2:
            raise ValueError("LMNN needs two classes or more and at least two labelled rows of each")
        rows, targets = target_neighbours(X, codes, check_int(self.n_neighbors, "n_neighbors"))
        unit = np.sqrt(((X[rows] - X[targets]) ** 2).sum(axis=1).mean()) or 1.0
        d = X.shape[1]
        found = minimize(
            lambda flat: _flat(large_margin(flat.reshape(d, d), X / unit, codes, rows, targets, push)),
            np.eye(d).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": check_int(self.max_iter, "max_iter")},
        )  # fmt: skip
        self.metric_, self.objective_, self.n_iter_ = found.x.reshape(d, d) / unit, float(found.fun), int(found.nit)
        return self


def _flat(found: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
    return found[0], found[1].ravel()


def target_neighbours(X: np.ndarray, codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows i and their nearest rows j of the same class, ``count`` each or as many as there are."""
    rows, targets = [], []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        distances = ((X[members][:, None] - X[members][None]) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argsort(distances, axis=1)[:, : min(count, len(members) - 1)]
        rows.append(np.repeat(members, nearest.shape[1]))
        targets.append(members[nearest].ravel())
    return np.concatenate(rows), np.concatenate(targets)


def large_margin(
    A: np.ndarray, X: np.ndarray, codes: np.ndarray, rows: np.ndarray, targets: np.ndarray, push: float
) -> tuple[float, np.ndarray]:
    """The objective of LMNN and its gradient, 2AΣ_ij c_ij δδ' with c_ij how often the pair (i, j) counts."""
    Z = X @ A.T
    sq_norms = (Z**2).sum(axis=1)
    distances = np.maximum(sq_norms[:, None] + sq_norms[None, :] - 2 * Z @ Z.T, 0)
    reach = distances[rows, targets]
    margins = 1 + reach[:, None] - distances[rows]  # (targets, n)
    active = (margins > 0) & (codes[rows][:, None] != codes[None, :])
    value = (1 - push) * reach.sum() + push * margins[active].sum()
    counts = np.zeros_like(distances)
    np.add.at(counts, (rows, targets), (1 - push) + push * active.sum(axis=1))
    np.add.at(counts, rows, -push * active)
    both = counts + counts.T
    return float(value), 2 * A @ (X.T @ (both.sum(axis=1)[:, None] * X - both @ X))
