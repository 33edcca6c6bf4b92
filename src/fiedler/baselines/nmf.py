"""Clusters by nonnegative matrix factorisation, plain and normalised-cut weighted [Xu, Liu & Gong 2003].

X ≈ VU', V and U nonnegative; document i belongs to the cluster of its largest v_ik, once the columns of U are brought
to length one. NCW weighs document i by (x_i · Σ_j x_j)^-½ first, the inverse root of its degree in the graph of dot
products, which relates the factorisation to the normalised cut. The factorisation is scikit-learn's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.decomposition import NMF
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._validation import check_data, check_int, check_n_clusters, choose
from ..core.backend import is_numpy
from ..core.rows import normalize_row_sums, normalize_rows

WEIGHTS = {"ncw": True, "none": False}


def check_nonnegative_rows(X: Any, *, estimator: Any, reset: bool = True, min_samples: int = 1) -> Any:
    """Rows on the host without a negative value."""
    X, name = check_data(X, estimator=estimator, reset=reset, min_samples=min_samples), type(estimator).__name__
    if not is_numpy(X):
        raise ValueError(f"{name} runs on NumPy and SciPy arrays; bring the rows to the host")
    smallest = X.data.min() if sp.issparse(X) and X.nnz else (0.0 if sp.issparse(X) else X.min())
    if smallest < 0:
        raise ValueError(f"Negative values in data passed to {name} (smallest {smallest:.3g}); shift them")
    return X


class NMFClustering(ClusterMixin, BaseEstimator):
    """Clusters read off a nonnegative factorisation of nonnegative rows.

    Parameters
    ----------
    n_clusters : int, default=8
    weight : {'ncw', 'none'}, default='ncw'
        Normalised-cut weights on the rows, or none.
    max_iter : int, default=200
    tol : float, default=1e-4
    init : str, optional
        Of :class:`sklearn.decomposition.NMF`: by default from singular vectors; 'random' depends on ``random_state``.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    memberships_ : array of shape (n_samples, n_clusters)
        Rows of V scaled to sum to one; even shares for a row of zeros.
    components_ : array of shape (n_clusters, n_features)
        U' with rows of length one.
    objective_ : float
        The Frobenius norm of what is left, of the weighted rows.
    n_iter_ : int
    n_features_in_ : int

    References
    ----------
    W. Xu, X. Liu, Y. Gong, "Document clustering based on non-negative matrix factorization", SIGIR 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler.baselines import NMFClustering
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]], 5, axis=0)
    >>> NMFClustering(2, random_state=0).fit_predict(X)
    array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weight: str = "ncw",
        max_iter: int = 200,
        tol: float = 1e-4,
        init: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> NMFClustering:
        """Factorise the rows of ``X``."""
        X = check_nonnegative_rows(X, estimator=self)
        k = check_n_clusters(self.n_clusters, X.shape[0])
        self._total = np.asarray(X.sum(axis=0)).ravel() if choose(WEIGHTS, self.weight, option="weight") else None
        self._nmf = NMF(
            k, init=self.init, max_iter=check_int(self.max_iter, "max_iter"), tol=self.tol,
            random_state=self.random_state,
        )  # fmt: skip
        V = self._nmf.set_output(transform="default").fit_transform(self._weighted(X))
        self._lengths = np.linalg.norm(self._nmf.components_, axis=1)
        self.components_ = normalize_rows(self._nmf.components_)
        self.memberships_ = self._shares(V)
        self.labels_, self.n_iter_ = self.memberships_.argmax(axis=1), self._nmf.n_iter_
        self.objective_ = float(self._nmf.reconstruction_err_)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The memberships of rows, seen or not."""
        check_is_fitted(self)
        return self._shares(self._nmf.transform(self._weighted(check_nonnegative_rows(X, estimator=self, reset=False))))

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row, seen or not."""
        return self.predict_proba(X).argmax(axis=1)

    def _weighted(self, X: Any) -> Any:
        """Rows divided by the root of their degree x_i · Σ_j x_j; a row of zeros stays."""
        if self._total is None:
            return X
        degree = np.asarray(X @ self._total).ravel()
        factor = 1 / np.sqrt(np.where(degree > 0, degree, 1))
        return sp.csr_array(sp.diags_array(factor) @ X) if sp.issparse(X) else X * factor[:, None]

    def _shares(self, V: np.ndarray) -> np.ndarray:
        V = V * self._lengths
        return np.where(V.sum(axis=1, keepdims=True) > 0, normalize_row_sums(V), 1 / V.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.positive_only = True, True
        return tags
