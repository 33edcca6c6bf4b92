"""Clustering by nonnegative matrix factorisation, unweighted or weighted for the normalised cut [Xu, Liu & Gong 2003].

X ≈ VU', V and U non-negative; document i belongs to the cluster of its largest v_ik, after the columns of U are scaled
to length one. NCW first multiplies document i by (x_i · Σ_j x_j)^-½, the inverse root of its degree in the graph of dot
products, which relates the factorisation to the normalised cut. The factorisation is that of scikit-learn. With weights
m_i of rows it minimises Σ_i m_i ‖x_i - v_i U'‖², that of the rows √m_i x_i, and degrees count them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.decomposition import NMF, non_negative_factorization
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from fiedler._foreign_warnings import ignore_foreign_warnings
from fiedler._typing import LabelsLike, MatrixLike, RandomState, SupportsShape
from fiedler._validation import check_data, check_int, check_n_clusters, check_nonnegative, check_seed, choose
from fiedler.core.arrays import convert_rows, is_numpy, normalize_row_sums, normalize_rows, order_by_first_row
from fiedler.core.fitting import restore_on_failure
from fiedler.errors import InputError, NotConvergedWarning, warn
from fiedler.graph.estimator import SoftClustererMixin, warn_if_clusters_are_empty
from fiedler.graph.weights import check_sample_weight

USES_ROW_WEIGHTS = {"ncw": True, "none": False}  # whether rows are weighted
INITS = ("random", "nndsvd", "nndsvda", "nndsvdar")  # initialisations of scikit-learn's NMF


def check_nonnegative_rows(X: MatrixLike, *, estimator: Any, reset: bool = True, min_samples: int = 1) -> Any:
    """Validate ``X`` as a NumPy array or CSR matrix without negative values."""
    rows, name = check_data(X, estimator=estimator, reset=reset, min_samples=min_samples), type(estimator).__name__
    if not is_numpy(rows):
        raise InputError(
            f"{name} does not support arrays of {type(rows).__module__.partition('.')[0]}",
            "convert the rows to NumPy",
            code="numpy_required",
            parameter="X",
        )
    smallest = rows.data.min() if sp.issparse(rows) and rows.nnz else (0.0 if sp.issparse(rows) else rows.min())
    if smallest < 0:
        raise InputError(
            f"Negative values in data passed to {name} (smallest {smallest:.3g})",
            "shift or scale the rows to non-negative values",
            code="negative_values",
            parameter="X",
            smallest=float(smallest),
        )
    return rows


class NMFClustering(SoftClustererMixin, BaseEstimator):
    """Clustering by a nonnegative factorisation of non-negative rows.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    weight : {'ncw', 'none'}, default='ncw'
        Normalised-cut weights on the rows, or none.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-4
        Tolerance of the stopping condition, as in :class:`sklearn.decomposition.NMF`.
    init : str, optional
        Initialisation of :class:`sklearn.decomposition.NMF`: by default from singular vectors; 'random' depends on
        ``random_state``.
    random_state : int, RandomState or None, default=None
        Random seed or generator.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    memberships_ : array of shape (n_samples, n_clusters)
        Rows of V scaled to sum to one; equal shares for a row of zeros.
    components_ : array of shape (n_clusters, n_features)
        U', with rows of length one.
    objective_ : float
        The Frobenius norm of the residual of the weighted rows.
    n_iter_ : int
        The number of iterations. scikit-learn keeps no history of them, so there is no ``history_``.
    converged_ : bool
        Whether the iterations met ``tol`` before ``max_iter``.
    n_features_in_ : int
        The number of features seen during fit.

    References
    ----------
    W. Xu, X. Liu, Y. Gong, "Document clustering based on non-negative matrix factorization", SIGIR 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler_papers.baselines import NMFClustering
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]], 5, axis=0)
    >>> NMFClustering(2, random_state=0).fit_predict(X)
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weight: Literal["ncw", "none"] = "ncw",
        max_iter: int = 200,
        tol: float = 1e-4,
        init: Literal["random", "nndsvd", "nndsvda", "nndsvdar"] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(
        self,
        X: MatrixLike,
        y: LabelsLike | None = None,
        *,
        sample_weight: SupportsShape | Sequence[float] | None = None,
    ) -> Self:
        """Factorise the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            Positive weights: a row of weight 3 stands for three equal rows.
        """
        with restore_on_failure(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: MatrixLike, sample_weight: Any) -> Self:
        rows = check_nonnegative_rows(X, estimator=self)
        weights = check_sample_weight(sample_weight, rows.shape[0])
        k, max_iter = check_n_clusters(self.n_clusters, rows.shape[0]), check_int(self.max_iter, "max_iter")
        if not rows.sum() > 0:
            raise InputError("all entries of X are zero", "check the data", code="zero_rows", parameter="X")
        self._total = None
        if choose(USES_ROW_WEIGHTS, self.weight, option="weight"):
            self._total = np.asarray(rows.sum(axis=0) if weights is None else rows.T @ weights).ravel()
        if self.init is not None:
            choose(dict.fromkeys(INITS), self.init, option="init")
            if self.init != "random" and k > min(rows.shape):
                raise InputError(
                    f"init={self.init!r} needs as many rows and features as n_clusters={k}; X has shape {rows.shape}",
                    "use init='random'",
                    code="incompatible_parameters",
                    parameter="init",
                    value=self.init,
                )
        check_nonnegative(self.tol, "tol")
        check_seed(self.random_state)
        self._nmf = NMF(k, init=self.init, max_iter=max_iter, tol=self.tol, random_state=self.random_state)
        counted = self._weighted(rows) if weights is None else _scaled(self._weighted(rows), np.sqrt(weights))
        with ignore_foreign_warnings(), np.errstate(invalid="ignore"):  # replaced by the one below
            V = self._nmf.set_output(transform="default").fit_transform(counted)  # memberships are shares of its rows
        self._lengths = np.linalg.norm(self._nmf.components_, axis=1)
        order = order_by_first_row(self._memberships(V).argmax(axis=1), k)
        self._nmf.components_, self._lengths = self._nmf.components_[order], self._lengths[order]
        self.components_ = normalize_rows(self._nmf.components_)
        self.memberships_ = self._memberships(V[:, order])
        self.labels_, self.n_iter_ = self.memberships_.argmax(axis=1), self._nmf.n_iter_
        # The error of sparse rows is the root of a difference, which rounding can make negative instead of zero.
        self.objective_ = float(np.nan_to_num(self._nmf.reconstruction_err_))
        self.converged_ = self.n_iter_ < max_iter
        if not self.converged_ and self.tol > 0:
            warn(
                f"NMF did not converge within max_iter={max_iter} iterations",
                "increase max_iter or tol",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=3,
                max_iter=max_iter,
            )
        warn_if_clusters_are_empty(len(np.unique(self.labels_)), k, "use fewer clusters or another init", stacklevel=3)
        return self

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return the memberships of rows, including new ones."""
        check_is_fitted(self)
        rows = check_nonnegative_rows(X, estimator=self, reset=False)
        components, max_iter = self._nmf.components_, self._nmf.max_iter
        reference = sp.csr_array(components.shape, dtype=components.dtype) if sp.issparse(rows) else components
        options = {"n_components": len(components), "update_H": False, "tol": self._nmf.tol, "max_iter": max_iter}
        with ignore_foreign_warnings():  # replaced by the one below
            V, _, n_iter = non_negative_factorization(
                self._weighted(convert_rows(rows, reference)), H=components, random_state=0, **options
            )
        if n_iter >= max_iter and self._nmf.tol > 0:
            warn(
                f"the memberships of new rows did not converge within max_iter={max_iter} iterations",
                "increase max_iter or tol",
                code="not_converged",
                category=NotConvergedWarning,
                stacklevel=2,
                max_iter=max_iter,
            )
        return self._memberships(V)

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the cluster of each row, including new ones."""
        return self.predict_proba(X).argmax(axis=1)

    def _weighted(self, X: Any) -> Any:
        """Divide rows by the root of their degree x_i · Σ_j x_j; a row of zeros is left unchanged."""
        if self._total is None:
            return X
        degree = np.asarray(X @ self._total).ravel()
        return _scaled(X, 1 / np.sqrt(np.where(degree > 0, degree, 1)))

    def _memberships(self, V: np.ndarray) -> np.ndarray:
        V = V * self._lengths
        return np.where(V.sum(axis=1, keepdims=True) > 0, normalize_row_sums(V), 1 / V.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.positive_only = True, True
        return tags


def _scaled(X: Any, factors: np.ndarray) -> Any:
    """Multiply rows by factors, in the precision of the rows."""
    factors = factors.astype(X.dtype)
    return sp.csr_array(sp.diags_array(factors) @ X) if sp.issparse(X) else X * factors[:, None]
