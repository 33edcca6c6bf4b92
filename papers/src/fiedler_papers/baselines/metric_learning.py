"""Metrics learned from pairs or labels, with which the learned Laplacian is compared: MMC and LMNN.

MMC [Xing, Ng, Jordan & Russell 2003; the paper's PGDML], M positive semidefinite:

    maximise  Σ_{cannot} √(δ'Mδ)   subject to   Σ_{must} δ'Mδ ≤ 1,     δ = x_i - x_j

With S = Σ_{must} δδ' and M = S^-½ N S^-½ the constraint is tr N ≤ 1, onto which a symmetric matrix is projected exactly
(eigenvalues onto the simplex); the objective is concave, and every accepted step increases it.

LMNN [Weinberger, Blitzer & Saul 2005], target neighbours j of i in its class, impostors l of other classes:

    minimise  (1-μ) Σ_ij ‖A(x_i - x_j)‖² + μ Σ_ijl [1 + ‖A(x_i - x_j)‖² - ‖A(x_i - x_l)‖²]₊
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fiedler._records import FitHistory
from fiedler._typing import LabelsLike, MatrixLike
from fiedler._validation import check_dense, check_fraction, check_int, check_labels, check_nonnegative, check_positive
from fiedler.core.arrays import to_numpy
from fiedler.core.fitting import restore_on_failure
from fiedler.errors import InputError, NotConvergedWarning, warn
from fiedler.graph.constraints import ConstraintsLike, PairwiseConstraints, check_constraints
from fiedler.graph.labels import as_column, known_labels

MIN_STEP = 1e-12  # of the ascent, in the unit of N, whose trace is one: the line search stops here
MIN_SQ_DISTANCE = 1e-300  # against division by zero in the gradient


class _LearnedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A linear transformer with a learned matrix ``metric_`` (A)."""

    metric_: np.ndarray

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return XA', rows whose Euclidean distances are those of the learned metric."""
        check_is_fitted(self)
        rows = to_numpy(check_dense(X, estimator=self, reset=False))
        return rows @ self.metric_.T.astype(rows.dtype)

    @property
    def _n_features_out(self) -> int:
        return int(self.metric_.shape[0])


class MMC(_LearnedMetric):
    """The metric of Xing et al., which separates cannot-linked rows while must-linked rows stay close.

    Parameters
    ----------
    ridge : float, default=1e-3
        Added to S, in units of its mean variance, since must-links rarely span all features.
    max_iter : int, default=200
        Maximum number of steps.
    tol : float, default=1e-6
        Tolerance on the relative increase of the objective in a step.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        A with M = A'A.
    objective_ : float
        The objective at the end.
    history_ : FitHistory
        The objective, which increases, at the start (iteration 0) and after each step.
    n_iter_ : int
        The number of steps.
    converged_ : bool
        Whether the last step met ``tol``.
    n_features_in_ : int
        The number of features seen during fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.supervision import PairwiseConstraints
    >>> X = np.array([[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]])
    >>> pairs = PairwiseConstraints([(0, 1), (2, 3)], [(0, 2), (1, 3)], 4)
    >>> A = MMC().fit(X, constraints=pairs).metric_
    >>> bool(abs(A[:, 0]).max() > 100 * abs(A[:, 1]).max())  # the second feature is irrelevant
    True
    """

    def __init__(self, ridge: float = 1e-3, max_iter: int = 200, tol: float = 1e-6) -> None:
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: MatrixLike, y: LabelsLike | None = None, *, constraints: ConstraintsLike = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,), optional
            Classes of some rows, -1 where unknown, from which pairs are made if ``constraints`` is None.
        constraints : PairwiseConstraints, optional
            Pairs of both kinds.
        """
        with restore_on_failure(self):
            return self._fit(X, y, constraints)

    def _fit(self, X: MatrixLike, y: LabelsLike | None, constraints: ConstraintsLike) -> Self:
        rows = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        ridge, max_iter = check_positive(self.ridge, "ridge"), check_int(self.max_iter, "max_iter")
        tol = check_nonnegative(self.tol, "tol")
        pairs = check_constraints(constraints, rows)
        if pairs is None and y is not None:
            pairs = PairwiseConstraints.from_labels(check_labels(y, "y", n_samples=len(rows)))
        elif pairs is None:
            pairs = PairwiseConstraints(n_samples=len(rows))
        if len(pairs.must_link) == 0 or len(pairs.cannot_link) == 0:
            raise InputError(
                f"MMC needs pairs of both kinds, but there are {len(pairs.must_link)} must-links and "
                f"{len(pairs.cannot_link)} cannot-links",
                "pass both kinds, or labels of at least two classes with two rows of one of them",
                code="pairs_required",
                n_must_link=len(pairs.must_link),
                n_cannot_link=len(pairs.cannot_link),
            )
        must, cannot = (rows[links[:, 0]] - rows[links[:, 1]] for links in (pairs.must_link, pairs.cannot_link))
        if not cannot.any():
            raise InputError(
                "all cannot-linked rows are equal, so no metric can separate them",
                "check the pairs",
                code="equal_cannot_linked_rows",
            )
        scatter = must.T @ must
        floor = ridge * (np.trace(scatter) or 1.0) / rows.shape[1]
        values, vectors = eigh(scatter + floor * np.eye(rows.shape[1]))
        whiten = (vectors / np.sqrt(values)) @ vectors.T
        result = maximize_distances(cannot @ whiten, max_iter=max_iter, tol=tol)
        if not result.converged:
            warn(
                f"MMC did not converge within max_iter={max_iter} steps",
                "increase max_iter or tol",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=3,
                max_iter=max_iter,
            )
        values, vectors = eigh(result.N)
        self.metric_ = (np.sqrt(np.maximum(values, 0))[:, None] * vectors.T) @ whiten
        self.objective_ = float(result.history.objective[-1])
        self.history_, self.converged_ = result.history, result.converged
        self.n_iter_ = len(result.history.objective) - 1
        return self


class Ascent(NamedTuple):
    """The result of :func:`maximize_distances`."""

    N: np.ndarray
    history: FitHistory
    converged: bool


def maximize_distances(differences: np.ndarray, *, max_iter: int, tol: float) -> Ascent:
    """Maximise Σ √(e'Ne) over the spectrahedron by projected gradient ascent from N = I/d."""
    N, step = np.eye(differences.shape[1]) / differences.shape[1], 1.0
    value, converged = sum_of_distances(N, differences), False
    values = [value]
    for _ in range(max_iter):
        lengths = np.sqrt(np.maximum(_sq_distances(N, differences), MIN_SQ_DISTANCE))
        gradient = 0.5 * differences.T @ (differences / lengths[:, None])
        gradient /= np.linalg.norm(gradient)
        candidate = project_to_spectrahedron(N + step * gradient)
        while (candidate_value := sum_of_distances(candidate, differences)) < value and step > MIN_STEP:
            step *= 0.5
            candidate = project_to_spectrahedron(N + step * gradient)
        gain = candidate_value - value
        if gain > 0:
            N, value, step = candidate, candidate_value, 2 * step
        values.append(value)
        if gain <= tol * abs(value):
            converged = True
            break
    return Ascent(N, FitHistory(np.array(values), maximize=True, iterations=np.arange(len(values))), converged)


def _sq_distances(N: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Return e'Ne for each row e."""
    return np.einsum("ij,jk,ik->i", differences, N, differences)


def sum_of_distances(N: np.ndarray, differences: np.ndarray) -> float:
    """Return Σ √(e'Ne) over the rows e of ``differences``."""
    return float(np.sqrt(np.maximum(_sq_distances(N, differences), 0)).sum())


def project_to_spectrahedron(N: np.ndarray) -> np.ndarray:
    """Return the nearest positive semidefinite matrix of trace at most one."""
    values, vectors = eigh(0.5 * (N + N.T))
    values = np.maximum(values, 0)
    if values.sum() > 1:  # onto the simplex: subtract the constant for which the positive parts sum to one
        ordered = np.sort(values)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
        values = np.maximum(values - excess[ordered > excess][-1], 0)
    return (vectors * values) @ vectors.T


class LMNN(_LearnedMetric):
    """Large margin nearest neighbours: a metric under which the nearest rows share a class, with a margin.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbours of each labelled row; fewer if its class is smaller.
    push : float, default=0.5
        μ, the weight of the impostors.
    max_iter : int, default=100
        Maximum number of iterations of L-BFGS.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        A.
    objective_ : float
        The objective at the end, for rows scaled to a mean distance of one between target neighbours.
    history_ : FitHistory
        The objective, which decreases, at the start (iteration 0) and after each iteration.
    n_iter_ : int
        The number of iterations of L-BFGS.
    converged_ : bool
        Whether L-BFGS converged.
    n_features_in_ : int
        The number of features seen during fit.

    Examples
    --------
    >>> from fiedler_papers.baselines import LMNN
    >>> X = [[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]]
    >>> A = LMNN(n_neighbors=1).fit(X, [0, 0, 1, 1]).metric_
    >>> bool(abs(A[:, 0]).max() > 2 * abs(A[:, 1]).max())  # the second feature is irrelevant
    True
    """

    def __init__(self, n_neighbors: int = 3, push: float = 0.5, max_iter: int = 100) -> None:
        self.n_neighbors = n_neighbors
        self.push = push
        self.max_iter = max_iter

    def fit(self, X: MatrixLike, y: LabelsLike | None = None) -> Self:
        """Learn the metric from the rows whose label in ``y`` is not -1."""
        with restore_on_failure(self):
            return self._fit(X, y)

    def _fit(self, X: MatrixLike, y: LabelsLike | None) -> Self:
        if y is None:
            raise InputError(
                "LMNN requires y to be passed, but the target y is None",
                "use -1 for rows of unknown class",
                code="labels_required",
                parameter="y",
            )
        rows = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        push, max_iter = check_fraction(self.push, "push"), check_int(self.max_iter, "max_iter")
        known, labels = known_labels(as_column(y), len(rows))
        rows = rows[known]
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(classes) < 2 or counts.min() < 2:
            raise InputError(
                "LMNN needs at least two classes and at least two labelled rows of each class",
                "label more rows",
                code="too_few_labels",
                parameter="y",
                n_classes=len(classes),
            )
        sources, targets = target_neighbors(rows, codes, check_int(self.n_neighbors, "n_neighbors"))
        scale = np.sqrt(((rows[sources] - rows[targets]) ** 2).sum(axis=1).mean()) or 1.0
        result, values = _minimize_lmnn(rows / scale, codes, sources, targets, push, max_iter)
        if not result.success:
            warn(
                f"LMNN did not converge: L-BFGS stopped after {result.nit} iterations ({result.message})",
                "increase max_iter, or scale the features to similar ranges",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=3,
                max_iter=max_iter,
            )
        self.metric_, self.objective_ = result.x.reshape(rows.shape[1], -1) / scale, float(result.fun)
        self.history_ = FitHistory(np.array(values), maximize=False, iterations=np.arange(len(values)))
        self.n_iter_, self.converged_ = int(result.nit), bool(result.success)
        return self


def _minimize_lmnn(
    X: np.ndarray, codes: np.ndarray, sources: np.ndarray, targets: np.ndarray, push: float, max_iter: int
) -> tuple[Any, list[float]]:
    """Minimise the objective from A = I by L-BFGS; return SciPy's result, and the objective at each iteration."""
    d = X.shape[1]

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = lmnn_objective(flat.reshape(d, d), X, codes, sources, targets, push)
        return value, gradient.ravel()

    def record(intermediate_result: OptimizeResult) -> None:  # SciPy recognises the name of the parameter
        values.append(float(intermediate_result.fun))

    start = np.eye(d).ravel()
    values = [value_and_gradient(start)[0]]
    options = {"maxiter": max_iter}
    return minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", callback=record, options=options), values


def target_neighbors(X: np.ndarray, codes: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows i and their nearest rows j of the same class, ``n_neighbors`` each or all if there are fewer."""
    sources, targets = [], []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        distances = ((X[members][:, None] - X[members][None]) ** 2).sum(axis=2)
        np.fill_diagonal(distances, np.inf)
        nearest = np.argsort(distances, axis=1)[:, : min(n_neighbors, len(members) - 1)]
        sources.append(np.repeat(members, nearest.shape[1]))
        targets.append(members[nearest].ravel())
    return np.concatenate(sources), np.concatenate(targets)


def lmnn_objective(
    A: np.ndarray, X: np.ndarray, codes: np.ndarray, sources: np.ndarray, targets: np.ndarray, push: float
) -> tuple[float, np.ndarray]:
    """Return the objective of LMNN and its gradient, 2AΣ_ij c_ij δδ' with c_ij how often the pair (i, j) counts."""
    Z = X @ A.T
    sq_norms = (Z**2).sum(axis=1)
    distances = np.maximum(sq_norms[:, None] + sq_norms[None, :] - 2 * Z @ Z.T, 0)
    target_distances = distances[sources, targets]
    margins = 1 + target_distances[:, None] - distances[sources]  # (targets, n)
    active = (margins > 0) & (codes[sources][:, None] != codes[None, :])
    value = (1 - push) * target_distances.sum() + push * margins[active].sum()
    counts = np.zeros_like(distances)
    np.add.at(counts, (sources, targets), (1 - push) + push * active.sum(axis=1))
    np.add.at(counts, sources, -push * active)
    symmetric = counts + counts.T
    return float(value), 2 * A @ (X.T @ (symmetric.sum(axis=1)[:, None] * X - symmetric @ X))
