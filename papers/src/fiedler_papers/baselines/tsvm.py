"""Transductive support vector machines, one class against the rest [Joachims 1999].

    minimise  ½‖w‖² + C Σ_{labelled} ξ_i + C* Σ_{unlabelled} ξ*_j   over w, b and the labels of the unlabelled rows

with a fixed share of the unlabelled rows on the positive side. C* grows from almost zero to C; at each value, pairs of
unlabelled rows of opposite labels whose slacks sum to more than two exchange their labels, which lowers the objective.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from fiedler._foreign_warnings import ignore_foreign_warnings
from fiedler._records import FitHistory
from fiedler._typing import LabelsLike, MatrixLike
from fiedler._validation import check_dense, check_int, check_nonnegative, check_positive, choose
from fiedler.core.arrays import to_numpy
from fiedler.core.fitting import restore_on_failure
from fiedler.errors import InputError, NotConvergedWarning, warn
from fiedler.graph.labels import as_column, check_classes, known_labels

INITIAL_WEIGHT = 1e-3  # C*/C at the start
WEIGHT_GROWTH = 4.0  # factor from one value of C* to the next
KERNELS = ("linear", "poly", "rbf", "sigmoid")
MIN_SLACK_EXCESS = 1e-9  # of the sum of two slacks over 2, below which exchanging labels gains only rounding errors
MIN_STEPS, STEPS_PER_ROW = 100_000, 100  # of the solver at most; it does not end for columns far from zero


class MachineRun(NamedTuple):
    """The machine of one class, and how it was trained."""

    machine: SVC
    weights: list[float]  # C*/C
    objectives: list[float]  # at the end of each value of C*
    n_iter: int  # fits of the machine
    converged: bool  # whether no exchange was left at any value of C*


class TransductiveSVM(ClassifierMixin, BaseEstimator):
    """A support vector machine that is trained on labelled and unlabelled rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the slacks, as in :class:`sklearn.svm.SVC`.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid'}, default='linear'
        Kernel, as in :class:`sklearn.svm.SVC`.
    gamma : {'scale', 'auto'} or float, default='scale'
        Kernel coefficient, as in :class:`sklearn.svm.SVC`.
    max_switches : int, default=20
        Maximum number of rounds of exchanging labels for each value of C*.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    transduction_ : ndarray of shape (n_samples,)
        The class of each training row: as in ``y``, or predicted where it is unknown.
    history_ : FitHistory
        The objective at the end of each value of C*, summed over the machines of all classes. Exchanging labels lowers
        it while C* is fixed; between values of C* it grows, since unlabelled rows count more. The term
        'unlabeled_weight' is C*/C.
    n_iter_ : int
        The number of fits of a support vector machine, of the class that needed most of them.
    converged_ : bool
        Whether no exchange of labels was left at any value of C*.
    n_features_in_ : int
        The number of features seen during fit.

    Examples
    --------
    >>> from fiedler_papers.baselines import TransductiveSVM
    >>> X = [[0.0], [0.2], [0.4], [2.6], [2.8], [3.0]]
    >>> TransductiveSVM().fit(X, [0, -1, -1, -1, -1, 1]).transduction_
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: Literal["linear", "poly", "rbf", "sigmoid"] = "linear",
        gamma: Literal["scale", "auto"] | float = "scale",
        max_switches: int = 20,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_switches = max_switches

    def fit(self, X: MatrixLike, y: LabelsLike) -> Self:
        """Learn from all rows of ``X`` and the labels of those where ``y`` is not -1."""
        with restore_on_failure(self), ignore_foreign_warnings():
            return self._fit(X, y)

    def _fit(self, X: MatrixLike, y: LabelsLike | None) -> Self:
        if y is None:
            raise InputError(
                "TransductiveSVM requires y to be passed, but the target y is None",
                "use -1 for rows of unknown class",
                code="labels_required",
                parameter="y",
            )
        rows = to_numpy(check_dense(X, estimator=self, min_samples=2)).astype(np.float64)
        known, labels = known_labels(as_column(y), len(rows))
        if not known.any():
            raise InputError(
                "y has no labels, only -1",
                "label at least one row of each class",
                code="too_few_labels",
                parameter="y",
                n_classes=0,
            )
        check_classes(labels)
        classes = np.unique(labels)
        if len(classes) < 2:
            raise InputError(
                "TransductiveSVM needs at least two classes, but only one class is labelled",
                "label at least one row of each class",
                code="too_few_labels",
                parameter="y",
                n_classes=1,
            )
        self._check_kernel()
        max_switches = check_int(self.max_switches, "max_switches")
        runs = [self._against_the_rest(rows, known, np.where(labels == name, 1, -1), max_switches) for name in classes]
        self._warn_about(runs, max_switches)
        self.classes_, self._machines = classes, [run.machine for run in runs]
        self.history_ = FitHistory(
            np.sum([run.objectives for run in runs], axis=0),
            maximize=False,
            terms={"unlabeled_weight": np.array(runs[0].weights)},
        )
        self.n_iter_ = max(run.n_iter for run in runs)
        self.converged_ = all(run.converged and not run.machine.fit_status_ for run in runs)
        self.transduction_ = self.classes_[self._scores(rows).argmax(axis=1)]
        self.transduction_[known] = labels
        return self

    def _warn_about(self, runs: list[MachineRun], max_switches: int) -> None:
        """Warn about exchanges of labels and machines that did not converge."""
        if not all(run.converged for run in runs):
            warn(
                f"TransductiveSVM did not converge: after max_switches={max_switches} rounds exchanging labels would "
                "lower the objective further",
                "increase max_switches",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=4,
                max_switches=max_switches,
            )
        if any(run.machine.fit_status_ for run in runs):
            warn(
                "a support vector machine of TransductiveSVM did not converge",
                "subtract the mean of each column and divide by its standard deviation",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=4,
            )

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score of every class, shape (n, n_classes); for two classes that of the second, shape (n,)."""
        scores = self._scores(self._check_rows(X))
        return scores if scores.shape[1] > 2 else 0.5 * (scores[:, 1] - scores[:, 0])

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the class of the highest score."""
        scores = self._scores(self._check_rows(X))
        return self.classes_[scores.argmax(axis=1)]

    def _check_rows(self, X: MatrixLike) -> np.ndarray:
        check_is_fitted(self)
        return to_numpy(check_dense(X, estimator=self, reset=False)).astype(np.float64)

    @ignore_foreign_warnings()
    def _scores(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([machine.decision_function(rows) for machine in self._machines], axis=1)

    def _check_kernel(self) -> None:
        if not callable(self.kernel):
            choose(dict.fromkeys(KERNELS), self.kernel, option="kernel")
        if not (isinstance(self.gamma, str) and self.gamma in ("scale", "auto")):
            check_nonnegative(self.gamma, "gamma", or_else="'scale' or 'auto'")

    def _fit_machine(self, X: np.ndarray, signs: np.ndarray, costs: np.ndarray) -> SVC:
        machine = SVC(
            C=check_positive(self.C, "C"),
            kernel=self.kernel,
            gamma=self.gamma,
            max_iter=max(MIN_STEPS, STEPS_PER_ROW * len(X)),
            random_state=0,
        )
        try:
            return machine.fit(X, signs, sample_weight=costs)
        except ValueError as error:
            raise InputError(
                f"a support vector machine cannot be trained: {error}",
                "subtract the mean of each column and divide by its standard deviation",
                code="sums_overflow",
                parameter="X",
            ) from None

    def _against_the_rest(
        self, X: np.ndarray, known: np.ndarray, known_signs: np.ndarray, max_switches: int
    ) -> MachineRun:
        """Train the machine of one class; ``known_signs`` are +1 for its labelled rows and -1 for those of others."""
        costs = np.ones(len(known_signs))
        machine = self._fit_machine(X[known], known_signs, costs)
        if known.all():
            return MachineRun(machine, [1.0], [self._objective(machine, X, known_signs, costs)], 1, True)
        signs = np.empty(len(X), dtype=np.int64)
        signs[known] = known_signs
        signs[~known] = label_highest(machine.decision_function(X[~known]), float((known_signs > 0).mean()))
        weights: list[float] = []
        objectives: list[float] = []
        n_iter, converged, weight = 1, True, INITIAL_WEIGHT
        while True:
            costs = np.where(known, 1.0, weight)
            machine, n_iter = self._fit_machine(X, signs, costs), n_iter + 1
            for _ in range(max_switches):
                switched = switch_labels(signs, known, 1 - signs * machine.decision_function(X))
                if switched is None:
                    break
                signs = switched
                machine, n_iter = self._fit_machine(X, signs, costs), n_iter + 1
            else:
                left = switch_labels(signs, known, 1 - signs * machine.decision_function(X))
                converged = converged and left is None
            weights.append(weight)
            objectives.append(self._objective(machine, X, signs, costs))
            if weight >= 1:
                return MachineRun(machine, weights, objectives, n_iter, converged)
            weight = min(WEIGHT_GROWTH * weight, 1.0)

    def _objective(self, machine: SVC, X: np.ndarray, signs: np.ndarray, costs: np.ndarray) -> float:
        """Return ½‖w‖² + C Σ cost_i ξ_i, with ‖w‖² = Σ_s α_s (f(x_s) - b) over the support vectors."""
        scores = machine.decision_function(X)
        sq_norm = float(machine.dual_coef_[0] @ (scores[machine.support_] - machine.intercept_[0]))
        return 0.5 * sq_norm + self.C * float((costs * np.maximum(0, 1 - signs * scores)).sum())


def label_highest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return +1 for the given share of highest scores and -1 for the others, at least one of each."""
    count = int(np.clip(round(share * len(scores)), min(1, len(scores) - 1), max(len(scores) - 1, 1)))
    signs = np.full(len(scores), -1)
    signs[np.argsort(-scores, kind="stable")[:count]] = 1
    return signs


def switch_labels(signs: np.ndarray, known: np.ndarray, slack: np.ndarray) -> np.ndarray | None:
    """Exchange the labels of the worst unlabelled rows of both sides whose slacks sum to more than 2; None if none do.

    An exchange turns slacks ξ, ξ' > 0 with ξ + ξ' > 2 into at most max(0, 2 - ξ) + max(0, 2 - ξ') < ξ + ξ' for the same
    w, so the objective decreases even before w is fitted again.
    """
    sides = [np.flatnonzero((signs == sign) & ~known & (slack > 0)) for sign in (1, -1)]
    sides = [side[np.argsort(-slack[side], kind="stable")] for side in sides]
    count = min(len(side) for side in sides)
    positive, negative = (side[:count] for side in sides)
    exchanged = slack[positive] + slack[negative] > 2 + MIN_SLACK_EXCESS
    if not exchanged.any():
        return None
    switched = signs.copy()
    switched[positive[exchanged]], switched[negative[exchanged]] = -1, 1
    return switched
