"""From the nodes of a graph to new points: average over the neighbours, and eigenvectors by the Nyström formula."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.backend import Array, is_numpy, like, namespace, to_numpy
from ..core.sparse import is_sparse, matmul, row_sums
from .affinity import AffinityGraph
from .neighbors import k_nearest
from .recipes import link_new_points


def extend_eigenvectors(
    F: Array, values: Array, kind: str, *, recipe: Any, X_new: Array, X: Array, graph: AffinityGraph
) -> Array:
    """Eigenvectors ``F`` of a Laplacian at new points: the row of the eigenequation that a new node would have.

    For the random walk, D⁻¹W f = (1-λ) f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) (1-λ)); for the combinatorial
    Laplacian, (d - λ) f = W f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) - λ) [Bengio et al. 2004]. A point that equals a
    training row takes that row's values, and one without any neighbour the nearest row's, with a warning.
    """
    W = link_new_points(recipe, X_new, X, graph)
    xp = namespace(F)
    degrees = row_sums(W, F) if is_sparse(W) else xp.sum(W, axis=1)
    shrink = (1 - values)[None, :] if kind == "random_walk" else 1 - values[None, :] / _positive(degrees)[:, None]
    average = matmul(W, F) / _positive(degrees)[:, None]
    extended = average / xp.where(shrink > 1e-3, shrink, 1)  # a vector beyond the smooth ones is averaged, not blown up
    return _known_rows(extended, F, to_numpy(degrees) == 0, X_new, X)


def _positive(values: Array) -> Array:
    xp = namespace(values)
    return xp.where(values > 0, values, 1)


def _known_rows(extended: Array, F: Array, alone: np.ndarray, X_new: Array, X: Array) -> Array:
    """Rows of ``F`` in place of extended ones, where the new point is a training row or has no neighbour."""
    source = matching_rows(X_new, X)
    lost = np.flatnonzero(alone & (source < 0))
    if len(lost):
        warnings.warn(
            f"{len(lost)} new point(s) have no neighbour in the graph and take the values of the nearest training row; "
            "use a larger radius or a KNNGraph",
            UserWarning,
            stacklevel=4,
        )
        points = X_new[lost] if is_numpy(X_new) else namespace(X_new).take(X_new, like(lost, X_new), axis=0)
        source[lost] = to_numpy(k_nearest(X, 1, queries=points, method="exact").columns)
    xp = namespace(F)
    known = like(source >= 0, F, dtype=xp.bool)
    rows = xp.take(F, like(np.maximum(source, 0), F, dtype=xp.int64), axis=0)
    return xp.where(known[:, None], rows, extended)


def matching_rows(X_new: Array, X: Array) -> np.ndarray:
    """For each new row the index of an equal row of ``X``, or -1."""
    first: dict[bytes, int] = {}
    for i, key in enumerate(_row_keys(X)):
        first.setdefault(key, i)
    return np.array([first.get(key, -1) for key in _row_keys(X_new)], dtype=np.int64)


def _row_keys(X: Array) -> list[bytes]:
    """One byte string a row, equal for equal rows."""
    if sp.issparse(X):
        X = sp.csr_array(X)
        X.sum_duplicates()
        ends = zip(X.indptr[:-1], X.indptr[1:])
        return [X.indices[a:b].astype(np.int64).tobytes() + X.data[a:b].astype(np.float64).tobytes() for a, b in ends]
    rows = np.ascontiguousarray(to_numpy(X), dtype=np.float64) + 0.0  # -0.0 is 0.0
    return [row.tobytes() for row in rows]
