"""Principal components for dense, sparse and device rows; sparse rows are centred without being filled."""

from __future__ import annotations

import numbers
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from .backend import Array, fix_signs, is_numpy, namespace


class Projection(NamedTuple):
    """x -> (x - mean) @ components, with orthonormal columns."""

    mean: Array
    components: Array  # (d, m)

    def __call__(self, X: Array) -> Array:
        """The coordinates of rows; a sparse matrix stays sparse, since the mean is subtracted after the product."""
        if sp.issparse(X):
            return X @ self.components - self.mean @ self.components
        return (X - self.mean) @ self.components

    def back(self, Z: Array) -> Array:
        """The rows at given coordinates."""
        return Z @ namespace(Z).astype(self.components, Z.dtype).T + self.mean


def fit_pca(X: Array, size: int | float, *, random_state: int | None = None) -> Projection:
    """The leading principal components: a number of them, or as many as hold a share of the variance.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    size : int or float
        How many, or, for a number below one, the share of the variance to keep (dense rows only).
    """
    is_share = isinstance(size, numbers.Real) and 0 < float(size) < 1
    most = min(X.shape) - (1 if sp.issparse(X) else 0)  # Lanczos' method finds all but one
    if not is_share and not (isinstance(size, numbers.Integral) and 1 <= int(size) <= most):
        raise ValueError(
            f"pca={size!r} must be a share of the variance in (0, 1) or a whole number of at most {most}: the smaller "
            "of rows and columns, less one for sparse rows"
        )
    if is_numpy(X):
        if sp.issparse(X) and is_share:
            raise ValueError("on sparse rows pca takes a number of components, for example pca=100")
        solver = "arpack" if sp.issparse(X) else "auto"
        model = PCA(size, svd_solver="full" if is_share else solver, random_state=random_state).fit(X)
        return Projection(model.mean_.astype(X.dtype), np.ascontiguousarray(model.components_.T.astype(X.dtype)))
    return _fit_device(X, size, is_share)


def _fit_device(X: Array, size: int | float, is_share: bool) -> Projection:
    """By the eigenvectors of the covariance, on the device."""
    xp = namespace(X)
    mean = xp.mean(X, axis=0)
    values, vectors = xp.linalg.eigh((X - mean).T @ (X - mean))
    values, vectors = xp.flip(values), xp.flip(vectors, axis=1)
    if is_share:
        reached = xp.cumulative_sum(values) / xp.sum(values)
        size = min(int(xp.sum(xp.astype(reached < size, xp.int64))) + 1, X.shape[1])
    return Projection(mean, fix_signs(vectors[:, : int(size)]))
