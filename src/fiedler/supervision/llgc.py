"""LLGC: learning with local and global consistency, labels spread over a graph. Used by paper key: learned_laplacian.

    F = (I - αS)⁻¹ Y,   S = D^-½WD^-½,   y_i the indicator of the label of row i, or zero   [Zhou et al. 2004, Eq. 4]

the limit of F ← αSF + (1-α)Y and the minimiser of ½ Σ_ij w_ij ‖F_i/√d_i - F_j/√d_j‖² + (1/α - 1) Σ_i ‖F_i - Y_i‖².
The equations are solved, by conjugate gradients on a sparse graph, where scikit-learn's LabelSpreading iterates a
fixed number of times. Class mass normalisation [Zhu et al. 2003] rescales the columns of F to the shares of the labels.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int, check_positive, choose
from ..core.backend import Array, asarray_like, namespace, to_numpy
from ..core.multiplicative import positive_part
from ..core.progress import report_progress
from ..core.rows import normalize_row_sums
from ..core.sparse import matmul
from ..graph.constraints import check_constraints
from ..graph.estimator import GraphEstimatorMixin
from ..graph.labels import UNKNOWN, as_column, known_labels
from ..graph.out_of_sample import link_degrees, replace_coincident_rows
from ..graph.recipes import learns_from_pairs, self_tuned
from .spreading import spread_labels


def class_mass(F: Array, shares: Array) -> Array:
    """Columns rescaled so that the mass of every class is its share among the labels. [Zhu et al. 2003, section 4]"""
    xp = namespace(F)
    mass = xp.sum(F, axis=0)
    return F * (shares / xp.where(mass > 0, mass, 1))[None, :]


NORMALIZE = {"cmn": class_mass}


class LLGC(GraphEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classes of all rows from the labels of some, by the shape of the data.

    Parameters
    ----------
    graph : recipe, AffinityGraph, matrix or 'precomputed', default=None
        How the graph is made; None is ``KNNGraph(9, weight="local", symmetrize="mean")``. A
        :class:`LearnedLaplacian` is learnt from the same labels. With 'precomputed', ``fit`` takes an affinity matrix.
    alpha : float, default=0.99
        In (0, 1): how far labels travel.
    normalize : {'cmn', None}, default='cmn'
        Class mass normalisation: classes keep the shares they have among the labels. Leave it out where labels were
        not drawn at random.
    tol : float, default=1e-8
        On the relative residual of the equations.
    max_iter : int, default=1000

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    label_distributions_ : array of shape (n_samples, n_classes)
        Rows that sum to one, or of zeros where no label reaches.
    transduction_ : ndarray of shape (n_samples,)
        The class of every row, labelled ones included (noisy labels may change); -1 where no label reaches.
    n_iter_ : int
        Rounds of conjugate gradients; 1 for the closed form.
    converged_ : bool
    graph_ : AffinityGraph
    n_features_in_ : int

    Notes
    -----
    A component of the graph without any label stays undecided: a warning says how many rows, ``transduction_`` and
    ``predict`` say -1 ("-1" among names), ``predict_proba`` gives equal shares.

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

    _warns_if_disconnected = False  # those without a label are what matters, and they are told of below

    def __init__(
        self,
        graph: Any = None,
        alpha: float = 0.99,
        *,
        normalize: str | None = "cmn",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, *, constraints: Any = None) -> LLGC:
        """Spread the labels ``y``, -1 where unknown, over the rows of ``X`` or the nodes of a graph.

        ``constraints`` are for a graph that learns from pairs, as :class:`LearnedLaplacian` does; the labels themselves
        are pairs to it already.
        """
        if constraints is not None and not learns_from_pairs(self._recipe()):
            raise ValueError("LLGC spreads labels; pairs are taken by a graph that learns, graph=LearnedLaplacian()")
        rescale = None if self.normalize is None else choose(NORMALIZE, self.normalize, option="normalize")
        alpha = check_positive(self.alpha, "alpha")
        if alpha >= 1:
            raise ValueError(f"alpha must be between 0 and 1, both excluded; got {alpha!r}")
        if y is None:
            raise ValueError("LLGC requires y to be passed, but the target y is None; use -1 for rows of unknown class")
        y = as_column(y)
        graph = self._build_graph(X, y, check_constraints(constraints, X))
        if graph.has_negative_weights:
            raise ValueError("labels spread over nonnegative weights, but the graph has negative ones")
        known, codes = self._classes(y, graph.n_nodes)
        reference = graph.degrees
        Y = np.zeros((graph.n_nodes, len(self.classes_)))
        Y[known, codes] = 1
        with report_progress(self):
            found = spread_labels(
                asarray_like(Y, reference, dtype=reference.dtype), graph, alpha,
                tol=check_positive(self.tol, "tol"), max_iter=check_int(self.max_iter, "max_iter"),
            )  # fmt: skip
        self.n_iter_, self.converged_ = max(found.iterations, 1), found.converged
        F = positive_part(found.solution)  # rounding apart it is
        if rescale:
            F = rescale(F, asarray_like(Y.mean(axis=0), F, dtype=F.dtype))
        self.label_distributions_, self.graph_ = normalize_row_sums(F), graph
        self.transduction_ = self._names(to_numpy(self.label_distributions_))
        self._say_what_is_undecided()
        return self

    def predict_proba(self, X: Any) -> Array:
        """The shares of the classes at new points: those of their neighbours by weight; of a seen row its own."""
        shares = self._at(X)
        xp = namespace(shares)
        undecided = xp.sum(shares, axis=1)[:, None] == 0
        return xp.where(undecided, 1 / shares.shape[1], shares)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each new point; -1 where no label reaches."""
        return self._names(to_numpy(self._at(X)))

    # ------------------------------------------------------------------------------------------------------ its parts

    def _recipe(self) -> Any:
        return self_tuned() if self.graph is None else self.graph

    def _classes(self, y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Which rows have a label, and the numbers of their classes."""
        known, labels = known_labels(y, n)
        if not known.any():
            raise ValueError("y holds no label at all, only -1; label at least one row of each class")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        return known, codes

    def _at(self, X: Any) -> Array:
        check_is_fitted(self)
        F = self.label_distributions_
        weights, X = self._links_to(X, F)
        rows = matmul(weights, F)
        alone = to_numpy(link_degrees(weights, signed=False)) == 0
        return replace_coincident_rows(normalize_row_sums(rows), F, weights, alone, X, self._fit_X)

    def _names(self, shares: np.ndarray) -> np.ndarray:
        names = self.classes_[shares.argmax(axis=1)]
        undecided = shares.sum(axis=1) == 0
        if not undecided.any():
            return names
        if names.dtype.kind in "iuf":
            return np.where(undecided, UNKNOWN, names)
        return np.where(undecided, str(UNKNOWN), names.astype(f"<U{max(names.dtype.itemsize // 4, 2)}"))

    def _say_what_is_undecided(self) -> None:
        undecided = int((to_numpy(self.label_distributions_).sum(axis=1) == 0).sum())
        if undecided:
            warnings.warn(
                f"no label reaches {undecided} row(s), which stay undecided (-1): they lie in components of the graph "
                "without a labelled row, or too far from any. Label more rows, or join the components with "
                "KNNGraph(connect='mst')",
                UserWarning,
                stacklevel=3,
            )
