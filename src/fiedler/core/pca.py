"""Principal components of dense, sparse and device rows; sparse rows are centred without being filled."""

from __future__ import annotations

import numbers
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA

from .._foreign_warnings import ignore_foreign_warnings
from ..errors import InputError, shown
from .arrays import Array, fix_signs, is_numpy, mean_row, namespace

MAX_COVARIANCE_COLUMNS = 1000  # of sparse rows whose covariance is computed as a dense matrix


class Projection(NamedTuple):
    """x -> (x - mean) @ components, with orthonormal columns."""

    mean: Array  # (d,)
    components: Array  # (d, m)

    def __call__(self, X: Array) -> Array:
        """Project rows; a sparse matrix is not filled, since the mean is subtracted after the product."""
        if sp.issparse(X):
            return X @ self.components - self.mean @ self.components
        return (X - self.mean) @ self.components

    def inverse(self, Z: Array) -> Array:
        """Return the rows with the given coordinates."""
        return Z @ namespace(Z).astype(self.components, Z.dtype).T + self.mean


def fit_pca(X: Array, n_components: int | float, *, random_state: int | None = None) -> Projection:
    """Compute the leading principal components: so many or, if below one, those that explain this share of variance."""
    max_components = min(X.shape) - (1 if sp.issparse(X) else 0)  # the Lanczos method finds all but one
    is_share = check_n_components(n_components, max_components)
    n_components = float(n_components) if is_share else int(n_components)  # PCA takes no other numbers
    if not is_numpy(X):
        return _fit_on_device(X, n_components, is_share)
    if sp.issparse(X) and is_share:
        problem = f"pca={n_components!r} is a share of the variance, which is not supported for sparse rows"
        hint = "use a number of components, for example pca=100"
        raise InputError(problem, hint, code="invalid_pca", parameter="pca", value=n_components)
    # ARPACK draws random vectors for rows of low rank, whatever the seed; few columns need no iteration.
    sparse_solver = "covariance_eigh" if X.shape[1] <= MAX_COVARIANCE_COLUMNS else "arpack"
    solver = "full" if is_share else sparse_solver if sp.issparse(X) else "auto"
    # The shares of the variance of equal rows are not defined, and not used.
    with ignore_foreign_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        try:
            model = PCA(n_components, svd_solver=solver, random_state=random_state).fit(X)
        except ArpackError:  # sparse rows without variance: all directions are alike
            return Projection(mean_row(X), np.eye(X.shape[1], int(n_components), dtype=X.dtype))
    return Projection(model.mean_.astype(X.dtype), np.ascontiguousarray(model.components_.T.astype(X.dtype)))


def check_n_components(n_components: object, max_components: int) -> bool:
    """Check the value of ``pca``; return whether it is a share of the variance."""
    is_integer = isinstance(n_components, numbers.Integral)
    is_share = isinstance(n_components, numbers.Real) and not is_integer and 0 < float(n_components) < 1
    if not is_share and not (isinstance(n_components, numbers.Integral) and 1 <= int(n_components) <= max_components):
        problem = (
            f"pca={shown(n_components)} must be a share of the variance in (0, 1) or an integer from 1 to "
            f"{max_components}"
        )
        hint = "there are at most as many components as rows or columns, less one for sparse rows"
        raise InputError(
            problem, hint, code="invalid_pca", parameter="pca", value=n_components, max_components=max_components
        )
    return is_share


def _fit_on_device(X: Array, n_components: int | float, is_share: bool) -> Projection:
    """Compute the eigenvectors of the covariance on the device."""
    xp = namespace(X)
    mean = xp.mean(X, axis=0)
    values, vectors = xp.linalg.eigh((X - mean).T @ (X - mean))
    values, vectors = xp.flip(values), xp.flip(vectors, axis=1)
    if is_share:
        explained = xp.cumulative_sum(values) / xp.sum(values)
        n_components = min(int(xp.sum(xp.astype(explained < n_components, xp.int64))) + 1, X.shape[1])
    return Projection(mean, fix_signs(vectors[:, : int(n_components)]))
