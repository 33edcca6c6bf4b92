"""Transductive support vector machines, one class against the rest [Joachims 1999].

    minimise  ½‖w‖² + C Σ_{labelled} ξ_i + C* Σ_{unlabelled} ξ*_j   over w, b and the labels of the unlabelled rows

with a fixed share of the unlabelled rows on the positive side. C* grows from almost nothing to C; at each value pairs
of unlabelled rows of opposite labels whose slacks sum to more than two change places, which lowers the objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._validation import check_dense, check_int, check_positive
from ..core.backend import to_numpy
from ..graph.labels import as_column, known_labels

FIRST = 1e-3  # of C: where C* begins
GROWTH = 4.0


class TransductiveSVM(ClassifierMixin, BaseEstimator):
    """A support vector machine that also looks at unlabelled rows.

    Parameters
    ----------
    C : float, default=1.0
    kernel : str, default='linear'
        Of scikit-learn's SVC.
    gamma : float or str, default='scale'
    max_switches : int, default=20
        Rounds of switching for each value of C*.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
    n_features_in_ : int

    Examples
    --------
    >>> from fiedler.baselines import TransductiveSVM
    >>> X = [[0.0], [0.2], [0.4], [2.6], [2.8], [3.0]]
    >>> TransductiveSVM().fit(X, [0, -1, -1, -1, -1, 1]).transduction_
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(self, C: float = 1.0, kernel: str = "linear", gamma: Any = "scale", max_switches: int = 20) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_switches = max_switches

    def fit(self, X: Any, y: Any) -> TransductiveSVM:
        """Learn from all rows of ``X`` and the labels of those where ``y`` is not -1."""
        if y is None:
            raise ValueError("TransductiveSVM requires y to be passed, but the target y is None")
        X = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        known, labels = known_labels(as_column(y), len(X))
        if not known.any():
            raise ValueError("y holds no label at all, only -1; label at least one row of each class")
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError("TransductiveSVM needs two classes or more; only one class is labelled")
        self._machines = [self._against_the_rest(X, known, np.where(labels == name, 1, -1)) for name in self.classes_]
        self.transduction_ = self.predict(X)
        self.transduction_[known] = labels
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of every class, shape (n, n_classes); of two classes that of the second, shape (n,)."""
        scores = self._scores(X)
        return scores if scores.shape[1] > 2 else 0.5 * (scores[:, 1] - scores[:, 0])

    def predict(self, X: Any) -> np.ndarray:
        """The class of the highest score."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = to_numpy(check_dense(X, estimator=self, reset=False)).astype(np.float64)
        return np.stack([machine.decision_function(X) for machine in self._machines], axis=1)

    def _machine(self, X: np.ndarray, signs: np.ndarray, costs: np.ndarray) -> SVC:
        machine = SVC(C=check_positive(self.C, "C"), kernel=self.kernel, gamma=self.gamma)
        return machine.fit(X, signs, sample_weight=costs)

    def _against_the_rest(self, X: np.ndarray, known: np.ndarray, signs: np.ndarray) -> SVC:
        machine = self._machine(X[known], signs, np.ones(len(signs)))
        if known.all():
            return machine
        every = np.empty(len(X), dtype=np.int64)
        every[known] = signs
        every[~known] = split_at_share(machine.decision_function(X[~known]), float((signs > 0).mean()))
        weight = FIRST
        while True:
            costs = np.where(known, 1.0, weight)
            machine = self._machine(X, every, costs)
            for _ in range(check_int(self.max_switches, "max_switches")):
                swapped = switched(every, known, 1 - every * machine.decision_function(X))
                if swapped is None:
                    break
                every = swapped
                machine = self._machine(X, every, costs)
            if weight >= 1:
                return machine
            weight = min(GROWTH * weight, 1.0)


def split_at_share(scores: np.ndarray, share: float) -> np.ndarray:
    """+1 for the highest scores, as many as the share says but at least one of either sign, else -1."""
    count = int(np.clip(round(share * len(scores)), min(1, len(scores) - 1), max(len(scores) - 1, 1)))
    signs = np.full(len(scores), -1)
    signs[np.argsort(-scores, kind="stable")[:count]] = 1
    return signs


def switched(signs: np.ndarray, known: np.ndarray, slack: np.ndarray) -> np.ndarray | None:
    """Signs with the worst unlabelled rows of either side exchanged where both slacks sum to more than 2, or None.

    A switch turns slacks ξ, ξ' > 0 with ξ + ξ' > 2 into at most max(0, 2 - ξ) + max(0, 2 - ξ') < ξ + ξ' for the same w,
    so the objective falls even before w is fitted again.
    """
    sides = [np.flatnonzero((signs == sign) & ~known & (slack > 0)) for sign in (1, -1)]
    sides = [side[np.argsort(-slack[side], kind="stable")] for side in sides]
    count = min(len(side) for side in sides)
    first, second = (side[:count] for side in sides)
    worth = slack[first] + slack[second] > 2 + 1e-9
    if not worth.any():
        return None
    swapped = signs.copy()
    swapped[first[worth]], swapped[second[worth]] = -1, 1
    return swapped
