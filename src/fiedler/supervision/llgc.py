"""LLGC: learning with local and global consistency, which spreads labels over a graph. Paper key: learned_laplacian.

    F = (I - αS)⁻¹ Y,   S = D^-½WD^-½,   y_i the indicator of the label of row i, or zero   [Zhou et al. 2004, Eq. 4]

the limit of F ← αSF + (1-α)Y and the minimiser of ½ Σ_ij w_ij ‖F_i/√d_i - F_j/√d_j‖² + (1/α - 1) Σ_i ‖F_i - Y_i‖².
The equations are solved, on a sparse graph by conjugate gradients, whereas scikit-learn's LabelSpreading iterates a
fixed number of times. Class mass normalisation [Zhu et al. 2003] rescales the columns of F to the proportions of the
labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._typing import GraphLike, LabelsLike, MatrixLike
from .._validation import Check, check_positive, integer, none_or, one_of
from ..core.arrays import Array, asarray_like, eps, identity, namespace, normalize_row_sums, positive_part, to_numpy
from ..core.fitting import dispatch_blocks, fit_method
from ..core.linear import SolveResult, conjugate_gradient
from ..core.sparse import is_nearly_dense, matmul, to_dense
from ..errors import InputError, shown, warn
from ..graph.affinity import AffinityGraph
from ..graph.constraints import ConstraintsLike, check_constraints
from ..graph.estimator import GraphEstimatorMixin
from ..graph.labels import UNKNOWN, as_column, check_classes, known_labels
from ..graph.operators import power_of_degrees
from ..graph.recipes import learns_from_constraints, self_tuned
from ..graph.smoothing import link_degrees, replace_coincident_rows, spread

# Label spreading F = (I - αS)⁻¹ Y, S = D^-½WD^-½, accurate in every row [Zhou et al. 2004, Eq. 4].
#
# F decays exponentially with the distance to the labels, while the tolerance of an iteration is relative to the largest
# entries: rows far from any label would be noise, or zero. So rows that are accurate are held fixed, and the same
# equations are solved for the others,
#
#     F_U = (I - αS_UU)⁻¹ αS_UR F_R,
#
# whose right-hand side is as small as its solution; this is repeated outwards. Most graphs need no such step.

DENSE_SOLVE_MAX_ROWS = 500  # up to this many rows a dense solve is faster than iterating
DENSE_SOLVE_MAX_ROWS_IF_FILLED = 5000  # the same for a sparse matrix that is nearly dense
MAX_OUTWARD_STEPS = 200
ERROR_MARGIN = 10.0  # a row is accurate if its largest entry exceeds the error by this factor


def spread_labels(Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int) -> SolveResult:
    """Return F for non-negative weights: by a dense solve for small or dense graphs, else by conjugate gradients."""
    nearly_dense = is_nearly_dense(graph.weights) and graph.n_nodes <= DENSE_SOLVE_MAX_ROWS_IF_FILLED
    if graph.n_nodes <= DENSE_SOLVE_MAX_ROWS or nearly_dense:
        return _dense_solve(Y, graph, alpha)
    result = spread(Y, graph, alpha, tol=tol, max_iter=max_iter)
    return _extend_outwards(result, Y, graph, alpha, tol=max(tol, 10 * eps(Y)), max_iter=max_iter)


def _dense_solve(Y: Array, graph: AffinityGraph, alpha: float) -> SolveResult:
    """Solve by LAPACK: I - αS = αL + (1-α)I, except that both L and S are zero at an isolated node."""
    xp, L = namespace(Y), to_dense(graph.laplacian("symmetric"))
    isolated = xp.astype(graph.degrees == 0, Y.dtype)[:, None]
    F = xp.linalg.solve(alpha * L + (1 - alpha + alpha * isolated) * identity(L), Y)
    return SolveResult(F, xp.zeros_like(F[0, :]), 1, True)


def _extend_outwards(
    result: SolveResult, Y: Array, graph: AffinityGraph, alpha: float, *, tol: float, max_iter: int
) -> SolveResult:
    """Continue a solution, step by step, to rows where it is smaller than the error of the largest entries."""
    xp, apply_walk = namespace(Y), _walk_operator(graph, alpha, Y)
    _, component = graph.components()
    labeled = to_numpy(xp.sum(Y, axis=1)) > 0
    reachable = asarray_like(np.isin(component, component[labeled]), Y, dtype=Y.dtype)[:, None]
    F, iterations, converged = result.solution, result.iterations, result.converged
    right_norm, accurate = _max_column_norm(Y), xp.zeros_like(reachable)
    for _ in range(MAX_OUTWARD_STEPS):
        above_error = xp.max(F, axis=1)[:, None] > ERROR_MARGIN * tol * right_norm / (1 - alpha)
        accurate, previous = xp.where(above_error, reachable, accurate), accurate
        remaining = reachable - accurate
        if not bool(xp.any(remaining > 0)) or bool(xp.all(accurate == previous)):
            break
        right = remaining * apply_walk(accurate * F)
        scale = float(xp.max(right))
        if scale == 0:  # underflow
            break
        step = _solve_restricted(apply_walk, remaining, right / scale, tol, max_iter)
        F = accurate * F + scale * positive_part(step.solution)
        iterations, converged = iterations + step.iterations, converged and step.converged
        right_norm = scale * _max_column_norm(right / scale)
    return result._replace(solution=F, iterations=iterations, converged=converged)


def _walk_operator(graph: AffinityGraph, alpha: float, reference: Array) -> Callable[[Array], Array]:
    """Return the function V -> αSV."""
    convert = lambda values: asarray_like(to_numpy(values), reference, dtype=reference.dtype)[:, None]  # noqa: E731
    root = power_of_degrees(convert(graph.degrees), -0.5)
    loops = 0.0 if graph.loops is None else convert(graph.loops)
    return lambda V: alpha * root * (matmul(graph.weights, root * V) + loops * root * V)


def _solve_restricted(
    apply_walk: Callable[[Array], Array], mask: Array, right: Array, tol: float, max_iter: int
) -> SolveResult:
    """Solve (I - αS_UU) F_U = right, where ``mask`` is one for the rows in U and zero elsewhere."""
    return conjugate_gradient(lambda V: V - mask * apply_walk(mask * V), right, tol=tol, max_iter=max_iter)


def _max_column_norm(Y: Array) -> float:
    xp = namespace(Y)
    return float(xp.max(xp.sqrt(xp.sum(Y * Y, axis=0))))


def normalize_class_mass(F: Array, proportions: Array) -> Array:
    """Rescale the columns so that class masses are the proportions of the labels. [Zhu et al. 2003, section 4]"""
    xp = namespace(F)
    mass = xp.sum(F, axis=0)
    return F * (proportions / xp.where(mass > 0, mass, 1))[None, :]


def check_any_label(known: Any) -> None:
    """Raise an error if no row has a label."""
    if not np.any(known):
        problem = "y contains no label, only -1"
        hint = "label at least one row of each class"
        raise InputError(problem, hint, code="too_few_labels", parameter="y", n_classes=0)


def check_alpha(alpha: object, name: str) -> float:
    """Check how far labels spread."""
    value = check_positive(alpha, name)
    if value < 1:
        return value
    problem = f"{name} must be between 0 and 1 (exclusive); got {shown(alpha)}"
    raise InputError(problem, code="invalid_parameter", parameter=name, value=alpha)


class LLGC(GraphEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classify all rows from the labels of some, by spreading the labels over a graph.

    Parameters
    ----------
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is built; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. A
        :class:`LearnedLaplacian` learns from the same labels. With 'precomputed', ``fit`` takes an affinity matrix.
    alpha : float, default=0.99
        How far labels spread, between 0 and 1 (exclusive).
    normalize : {'cmn', None}, default='cmn'
        Class mass normalisation, which keeps the class proportions of the labels. Use None if the labelled rows were
        not drawn at random.
    tol : float, default=1e-8
        Tolerance on the relative residual of the equations.
    max_iter : int, default=1000
        The maximum number of iterations of conjugate gradients.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    label_distributions_ : array of shape (n_samples, n_classes)
        Class probabilities of every row; zeros in rows that no label reaches.
    transduction_ : ndarray of shape (n_samples,)
        The class of every row, including labelled ones (a noisy label may change); -1 in rows that no label reaches.
    n_iter_ : int
        The number of iterations of conjugate gradients; 1 for a direct solve.
    converged_ : bool
        Whether the residuals are within ``tol``.
    graph_ : AffinityGraph
        The graph.
    n_features_in_ : int
        The number of features of ``X``.

    Notes
    -----
    Rows in a component of the graph without any label stay undecided: a warning gives their number, ``transduction_``
    and ``predict`` return -1 ("-1" if classes are strings), and ``predict_proba`` returns equal probabilities.

    References
    ----------
    D. Zhou, O. Bousquet, T. Lal, J. Weston, B. Schölkopf, "Learning with local and global consistency", NIPS 2004.
    X. Zhu, Z. Ghahramani, J. Lafferty, "Semi-supervised learning using Gaussian fields and harmonic functions",
    ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.datasets import two_moons
    >>> from fiedler.supervision import LLGC
    >>> X, y = two_moons(n_samples=300, noise=0.05, random_state=0)
    >>> few = np.full(300, -1)
    >>> few[[np.argmax(y == 0), np.argmax(y == 1)]] = 0, 1
    >>> model = LLGC().fit(X, few)
    >>> float((model.transduction_ == y).mean())
    1.0
    """

    _landmark_distributions: np.ndarray | None = None  # after a fit in blocks, of the rows that are kept
    _warns_if_disconnected = False  # components are fine if they contain a label; fit warns about the others

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "alpha": check_alpha,
        "normalize": none_or(one_of(["cmn"])),
        "tol": check_positive,
        "max_iter": integer(),
    }

    def __init__(
        self,
        graph: GraphLike = None,
        alpha: float = 0.99,
        *,
        normalize: Literal["cmn"] | None = "cmn",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter

    @fit_method
    def fit(self, X: MatrixLike | AffinityGraph, y: LabelsLike, *, constraints: ConstraintsLike = None) -> Self:
        """Spread the labels ``y``, -1, NaN or None where unknown, over the rows of ``X`` or the nodes of a graph.

        ``constraints`` are for a graph that learns from pairs, such as :class:`LearnedLaplacian`, which also learns
        from the labels.
        """
        if constraints is not None and not learns_from_constraints(self._recipe()):
            problem = "LLGC spreads labels; only a graph that learns can use pairs"
            hint = "set graph=LearnedLaplacian(), or leave out constraints"
            raise InputError(problem, hint, code="constraints_not_supported", parameter="constraints")
        if y is None:
            problem = "LLGC requires y to be passed, but the target y is None"
            raise InputError(problem, "use -1 for rows of unknown class", code="labels_required", parameter="y")
        self._landmark_distributions = None
        y = as_column(y)
        graph = self._build_graph(X, y, check_constraints(constraints, X))
        if graph.has_negative_weights:
            problem = "the graph has negative weights, but LLGC requires non-negative weights"
            raise InputError(problem, "build the graph without signed=True", code="negative_weights")
        known, labels = known_labels(y, graph.n_nodes)
        check_any_label(known)
        check_classes(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        reference = graph.degrees
        Y = np.zeros((graph.n_nodes, len(self.classes_)))
        Y[known, codes] = 1
        result = spread_labels(
            asarray_like(Y, reference, dtype=reference.dtype), graph, float(self.alpha),
            tol=float(self.tol), max_iter=self.max_iter,
        )  # fmt: skip
        self.n_iter_, self.converged_ = max(result.iterations, 1), result.converged
        F = positive_part(result.solution)  # non-negative up to rounding
        if self.normalize is not None:
            F = normalize_class_mass(F, asarray_like(Y.mean(axis=0), F, dtype=F.dtype))
        self.label_distributions_, self.graph_ = normalize_row_sums(F), graph
        self.transduction_ = self._decode(to_numpy(self.label_distributions_))
        self._warn_if_undecided()
        return self

    @dispatch_blocks
    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the class probabilities of new points: the weighted mean of their neighbours'.

        Points that coincide with a training row have its probabilities.
        """
        distributions = self._distributions(X)
        xp = namespace(distributions)
        undecided = xp.sum(distributions, axis=1)[:, None] == 0
        return xp.where(undecided, 1 / distributions.shape[1], distributions)

    @dispatch_blocks
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the class of each new point; -1 where no label reaches."""
        return self._decode(to_numpy(self._distributions(X)))

    def _recipe(self) -> GraphLike:
        return self_tuned() if self.graph is None else self.graph

    def _distributions(self, X: MatrixLike) -> Array:
        """Return the label distributions at new points; zeros where no label reaches."""
        check_is_fitted(self)
        F = self.label_distributions_ if self._landmark_distributions is None else self._landmark_distributions
        weights, X = self._links_to(X, F)
        rows = matmul(weights, F)
        unlinked = to_numpy(link_degrees(weights, signed=False)) == 0
        return replace_coincident_rows(normalize_row_sums(rows), F, weights, unlinked, X, self._fit_X)

    def _decode(self, distributions: np.ndarray) -> np.ndarray:
        """Return the most probable class of each row; -1 or "-1" for a row of zeros."""
        labels = self.classes_[distributions.argmax(axis=1)]
        undecided = distributions.sum(axis=1) == 0
        if not undecided.any():
            return labels
        if labels.dtype.kind in "iuf":
            return np.where(undecided, UNKNOWN, labels)
        return np.where(undecided, str(UNKNOWN), labels.astype(f"<U{max(labels.dtype.itemsize // 4, 2)}"))

    def _warn_if_undecided(self) -> None:
        n_undecided = int((to_numpy(self.label_distributions_).sum(axis=1) == 0).sum())
        if n_undecided:
            problem = (
                f"no label reaches {n_undecided} row(s), which stay undecided (-1): they are in components of the "
                "graph without a labelled row, or too far from any"
            )
            hint = "label more rows, or connect the components with KNNGraph(connect='mst')"
            warn(problem, hint, code="undecided_rows", n_undecided=n_undecided)
