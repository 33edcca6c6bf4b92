"""Values of nodes extended to new points: eigenvectors by the Nyström formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.backend import Array, asarray_like, is_numpy, namespace, to_numpy
from ..core.rows import take_rows
from ..core.sparse import Sparse, csr_parts, is_sparse, matmul, row_indices
from ..errors import warn
from .affinity import AffinityGraph
from .distances import pair_distances
from .graph_parameter import link_new_points
from .laplacians import weighted_degrees
from .neighbors import k_nearest


def nystrom(F: Array, values: Array, kind: str, *, recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Array:
    """Extend eigenvectors ``F`` of a Laplacian to new points, by the row of the eigenequation of a new node.

    For the random walk, D⁻¹W f = (1-λ) f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) (1-λ)); for the combinatorial
    Laplacian, (d - λ) f = W f gives f(x) = Σ_j w(x, x_j) f_j / (d(x) - λ) [Bengio et al. 2004]; for -W ('association'),
    f(x) = Σ_j w(x, x_j) f_j / (-λ). A point that equals a training row takes the values of that row; one without any
    neighbour takes those of the nearest row, with a warning.
    """
    W, xp = link_weights(F, recipe, X_new, X, graph), namespace(F)
    degrees = link_degrees(W, signed=graph.signed)
    relative = values[None, :] / _positive(degrees)[:, None]  # λ / d(x)
    shrink = {"random_walk": (1 - values)[None, :], "association": -relative}.get(kind, 1 - relative)
    average = matmul(W, F) / _positive(degrees)[:, None]
    extended = average / xp.where(
        shrink > 1e-3, shrink, 1
    )  # an eigenvector that is not smooth is averaged, not amplified
    return replace_coincident_rows(extended, F, W, to_numpy(degrees) == 0, X_new, X)


def link_weights(F: Array, recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Any:
    """Return the weights from new points to the nodes, in the library of ``F`` (one row per node), which they multiply.

    If a library has no sparse matrices, values of the nodes may be on the host while the points are not.
    """
    W = link_new_points(recipe, X_new, X, graph)
    return W if is_sparse(W) or namespace(W) is namespace(F) else asarray_like(to_numpy(W), F, dtype=F.dtype)


def link_degrees(W: Sparse, *, signed: bool) -> Array:
    """Return the degrees of new points: the sums of their weights, or of the absolute weights on a signed graph."""
    if is_sparse(W):
        return weighted_degrees(W, signed=signed)
    xp = namespace(W)
    return xp.sum(xp.abs(W) if signed else W, axis=1)


def _positive(values: Array) -> Array:
    xp = namespace(values)
    return xp.where(values > 0, values, 1)


def replace_coincident_rows(
    extended: Array, F: Array, W: Sparse, isolated: np.ndarray, X_new: Array, X: Array
) -> Array:
    """Replace extended rows by rows of ``F`` if the new point is a training row or is isolated, with a warning."""
    source = coincident_rows(W, X_new, X)
    unlinked = np.flatnonzero(isolated & (source < 0))
    if len(unlinked):
        warn(
            f"{len(unlinked)} new point(s) have no weight to any row of the graph and take the values of the nearest",
            "use a larger radius or bandwidth, or weight='binary'",
            code="no_weight_to_graph",
            n_points=len(unlinked),
            stacklevel=4,
        )
        points = take_rows(X_new, unlinked)
        source[unlinked] = to_numpy(k_nearest(X, 1, queries=points, method="exact").columns)
    if (source < 0).all():
        return extended
    xp = namespace(F)
    known = asarray_like(source >= 0, F, dtype=xp.bool)
    rows = xp.take(F, asarray_like(np.maximum(source, 0), F, dtype=xp.int64), axis=0)
    return xp.where(known[:, None], rows, extended)


def coincident_rows(W: Sparse, X_new: Array, X: Array) -> np.ndarray:
    """Return, for each new point, the index of an equal training row among those it is linked to, or -1."""
    if is_sparse(W):
        rows, columns = row_indices(W), csr_parts(W)[1]
        if is_numpy(rows) and not is_numpy(X):
            rows, columns = asarray_like(rows, X), asarray_like(columns, X)
    else:
        nearest = k_nearest(X, 1, queries=X_new, method="exact")
        rows, columns = nearest.rows, nearest.columns
    equal = to_numpy(pair_distances(X_new, X, rows, columns)) == 0
    source = np.full(X_new.shape[0], -1, dtype=np.int64)
    source[to_numpy(rows)[equal]] = to_numpy(columns)[equal]
    return source
