"""Positions of rows in two dimensions: their two features, spectral coordinates, principal components or t-SNE.

t-SNE is that of an affinity graph. With p_ij the affinities of the graph, those of a row summing to about 1/n, and
q_ij = 1 / (1 + ‖y_i - y_j‖²) those of the layout, gradient descent minimises KL(P ‖ Q); the gradient is

    4 [ a Σ_j p_ij q_ij (y_i - y_j)  -  1/Z Σ_j q_ij² (y_i - y_j) ],      Z = Σ_(k≠l) q_kl,

where the exaggeration a is large at first, so that clusters form, and then 1. The attraction is a sum over edges. The
repulsion is a convolution: rows are interpolated to a grid, the grid is convolved by FFT and the result is
interpolated back, so that an iteration is linear in the number of rows (Linderman et al. 2019). It is many times
faster than the Barnes-Hut trees of scikit-learn.

If there are more than `MAX_EMBEDDED_ROWS` rows, a sample is embedded and the others are placed between their
neighbours in the sample: a map of 100,000 rows shows no more detail.

References
----------
G. C. Linderman et al., "Fast interpolation-based t-SNE for improved visualization of single-cell RNA-seq data",
Nature Methods 16, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, Union

import numpy as np
import scipy.fft
import scipy.sparse as sp

from .._validation import check_seed, choose
from ..core.arrays import normalize_row_sums, random_subset, take_rows, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.pca import fit_pca
from ..core.sparse import row_indices, to_scipy
from ..embedding.eigenmaps import eigenmap
from ..errors import InputError
from ..graph.affinity import AffinityGraph
from ..graph.constraints import attractive_part
from ..graph.neighbors import k_nearest
from ..graph.recipes import self_tuned
from .style import LabeledRows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._typing import Array, RandomState, SupportsShape

MAX_EMBEDDED_ROWS = 5000  # of more rows a random sample of this size is embedded
PLACEMENT_NEIGHBORS = 5  # rows of the sample that determine the position of a row outside it
TSNE_NEIGHBORS = 12  # of the graph that is built if there is none
MAX_COORDINATES = 50  # principal components in which neighbours are searched
N_EIGENVECTORS = 10  # coordinates of the nodes of a graph without rows
MAX_EDGES_PER_ROW = 100  # a denser graph does not distinguish near rows from far ones
PHASES = ((12.0, 0.5, 120), (1.0, 0.8, 230))  # exaggeration, momentum, iterations
MIN_GRID_SIDE, MAX_GRID_SIDE = 32, 256  # grid nodes per axis
GRID_NODES_PER_ROOT = 8  # the side of the grid is also at most this times √n
CELL_SIZE = 0.5  # of the grid, in units of the layout; q has width 1


def embed_tsne(
    X: Array | None, graph: AffinityGraph | None, *, random_state: RandomState = 0
) -> tuple[np.ndarray, str]:
    """Embed rows in two dimensions by t-SNE on their graph, or on a graph of nearest neighbours.

    The graph is used if its nodes are the rows and it is sparse. Returns the points and a description of them.
    """
    rng = check_seed(random_state)
    if X is None:
        assert graph is not None
        Z = _eigenvectors(graph, rng)
    else:
        Z = _principal_components(X, rng)
    n = Z.shape[0]
    if n < 3:
        return np.column_stack([np.arange(n), np.zeros(n)]), "side by side"
    if n > MAX_EMBEDDED_ROWS:
        sample = random_subset(n, MAX_EMBEDDED_ROWS / n, rng)
        points = _place(Z, sample, minimize_kl(_neighbor_weights(Z[sample]), Z[sample], rng))
        others = f"the others placed by their {PLACEMENT_NEIGHBORS} nearest neighbours among them"
        return points, f"t-SNE of {MAX_EMBEDDED_ROWS:,} rows, {others}"
    sparse = None if graph is None or graph.n_nodes != n else sparse_attractive_part(graph)
    if sparse is not None:
        return minimize_kl(to_scipy(sparse.weights), Z, rng), "t-SNE of the graph"
    return minimize_kl(_neighbor_weights(Z), Z, rng), f"t-SNE of {min(TSNE_NEIGHBORS, n - 1)} nearest neighbours"


# ---------------------------------------------------------------------------------------------- start and neighbours


def sparse_attractive_part(graph: AffinityGraph) -> AffinityGraph | None:
    """Return the graph without negative weights; None if it has no edges, or too many to tell which rows are near."""
    graph = attractive_part(graph)
    return graph if 0 < graph.n_edges <= MAX_EDGES_PER_ROW * graph.n_nodes else None


def _principal_components(X: Array, rng: np.random.RandomState) -> np.ndarray:
    """Return the rows in at most `MAX_COORDINATES` dimensions."""
    max_components = min(X.shape) - (1 if sp.issparse(X) else 0)
    if max_components < 1 or (X.shape[1] <= MAX_COORDINATES and not sp.issparse(X)):
        return X.toarray() if sp.issparse(X) else X
    return fit_pca(X, min(MAX_COORDINATES, max_components), random_state=rng.randint(2**31 - 1))(X)


def _eigenvectors(graph: AffinityGraph, rng: np.random.RandomState) -> np.ndarray:
    """Return the first eigenvectors of the random walk, without the constant one."""
    size = min(N_EIGENVECTORS + 1, graph.n_nodes)
    pairs = smallest_eigenpairs(attractive_part(graph), size, kind="random_walk", tol=1e-4, random_state=rng)
    return to_numpy(pairs.vectors)[:, 1:]


def _neighbor_weights(Z: np.ndarray) -> sp.csr_array:
    return to_scipy(self_tuned(min(TSNE_NEIGHBORS, Z.shape[0] - 1))._build(Z).weights)


def _place(Z: np.ndarray, sample: np.ndarray, sample_points: np.ndarray) -> np.ndarray:
    """Place every row at the mean of its nearest neighbours in the sample, weighted by 1 / distance²."""
    neighbors = k_nearest(take_rows(Z, sample), PLACEMENT_NEIGHBORS, queries=Z)
    sq_distances = neighbors.distances.reshape(-1, PLACEMENT_NEIGHBORS) ** 2
    weights = 1 / (sq_distances + 1e-6 * sq_distances.mean() + np.finfo(float).tiny)
    positions = sample_points[neighbors.columns.reshape(-1, PLACEMENT_NEIGHBORS)]
    return np.einsum("nk,nka->na", normalize_row_sums(weights), positions)


# ---------------------------------------------------------------------------------------------------- the descent


def minimize_kl(W: sp.csr_array, start: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Minimise KL(P ‖ Q) for the weights of a graph, starting from the first two columns of ``start``."""
    P, n = affinities(W), W.shape[0]
    rows, learning_rate = row_indices(P), max(n / PHASES[0][0], min(n, 50.0))
    Y = _scaled_start(start, n, rng)
    velocity, gains = np.zeros_like(Y), np.ones_like(Y)
    for exaggeration, momentum, n_iterations in PHASES:
        for _ in range(n_iterations):
            gradient = 4 * (exaggeration * attraction(P, rows, Y) - repulsion(Y))
            gains = np.maximum(np.where((gradient > 0) == (velocity > 0), 0.8 * gains, gains + 0.2), 0.01)
            velocity = momentum * velocity - learning_rate * gains * gradient
            Y = Y + velocity
            Y = Y - Y.mean(axis=0)
    return Y


def affinities(W: sp.csr_array) -> sp.csr_array:
    """Return P = (D⁻¹W + WD⁻¹) / 2n, which is symmetric with entries that sum to one."""
    walk = normalize_row_sums(W.astype(np.float64))
    return sp.csr_array((walk + walk.T) / (2 * W.shape[0]))


def _scaled_start(start: np.ndarray, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Scale two columns to a size of about 1e-4, with noise so that no two rows coincide."""
    Y = np.zeros((n, 2))
    Y[:, : min(2, start.shape[1])] = start[:, :2] - start[:, :2].mean(axis=0)
    Y /= max(float(Y[:, 0].std()), np.finfo(float).tiny)
    return 1e-4 * (np.clip(Y, -5, 5) + 0.01 * rng.standard_normal((n, 2)))


def attraction(P: sp.csr_array, rows: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return Σ_j p_ij q_ij (y_i - y_j) for every row; ``rows`` are the row indices of the entries of P."""
    differences = Y[rows] - Y[P.indices]
    forces = P.data / (1 + np.einsum("ea,ea->e", differences, differences))
    return np.column_stack([np.bincount(rows, forces * axis, len(Y)) for axis in differences.T])


def repulsion(Y: np.ndarray) -> np.ndarray:
    """Approximate 1/Z Σ_j q_ij² (y_i - y_j) for every row on a grid."""
    low = Y.min(axis=0)
    span = max(float((Y.max(axis=0) - low).max()), 1e-9)
    max_side = max(MIN_GRID_SIDE, min(MAX_GRID_SIDE, GRID_NODES_PER_ROOT * math.sqrt(len(Y))))
    side = scipy.fft.next_fast_len(int(np.clip(span / CELL_SIZE, MIN_GRID_SIDE, max_side)), real=True)
    cell = span / (side - 1)
    interpolation = _bilinear_weights((Y - low) / cell, side)
    mass = (interpolation.T @ np.ones(len(Y))).reshape(side, side)
    offsets = cell * np.concatenate([np.arange(side), np.arange(-side, 0)])  # wrap around, as convolution by FFT does
    dx, dy = offsets[:, None], offsets[None, :]
    q = 1 / (1 + dx**2 + dy**2)
    mass_spectrum = scipy.fft.rfft2(mass, q.shape)
    kernels = (q, q * q * dx, q * q * dy)
    fields = [scipy.fft.irfft2(mass_spectrum * scipy.fft.rfft2(kernel), q.shape) for kernel in kernels]
    at_rows = interpolation @ np.column_stack([field[:side, :side].ravel() for field in fields])
    # Z leaves out q_ii: what each row contributes to itself by way of its four grid nodes.
    corners = cell * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    corner_q = 1 / (1 + np.sum((corners[:, None] - corners) ** 2, axis=2))
    weights = interpolation.data.reshape(-1, 4)
    return at_rows[:, 1:] / max(at_rows[:, 0].sum() - np.sum(weights @ corner_q * weights), 1e-12)


def _bilinear_weights(positions: np.ndarray, side: int) -> sp.csr_array:
    """Return the weights of the four grid nodes around each row, shape (n, side²)."""
    n = len(positions)
    base = np.clip(positions.astype(np.int64), 0, side - 2)
    (right, up), (left, down) = (positions - base).T, (1 - (positions - base)).T
    weights = np.stack([left * down, left * up, right * down, right * up], axis=1)
    nodes = (base[:, 0] * side + base[:, 1])[:, None] + np.array([0, 1, side, side + 1])
    return sp.csr_array((weights.ravel(), nodes.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, side * side))


# ------------------------------------------------------------------------------------------------------------- layouts

LayoutName: TypeAlias = Literal["features", "spectral", "pca", "tsne"]
LayoutLike: TypeAlias = Union["ArrayLike", "SupportsShape", LayoutName, "Layout2D", None]

MAX_SPECTRAL_CLUSTERS = 3  # K clusters need K - 1 spectral coordinates, and two are drawn


class Layout2D(NamedTuple):
    """Points of shape (n, 2), the names of the axes, and a short description of how the points were computed."""

    points: np.ndarray
    axis_names: tuple[str, str] = ("", "")
    description: str = "as given"


def check_points(points: Array, n: int | None = None) -> np.ndarray:
    """Validate points as a finite array of shape (n, 2)."""
    array = to_numpy(points)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf" or n not in (None, len(array)):
        expected = f"({'n' if n is None else n}, 2)"
        problem = f"layout must be an array of numbers of shape {expected}, one row per sample; got shape {array.shape}"
        raise InputError(problem, code="wrong_shape", parameter="layout", shape=array.shape)
    if not np.isfinite(array).all():
        problem = "layout contains NaN or infinity"
        raise InputError(problem, "remove those rows or give them coordinates", code="not_finite", parameter="layout")
    return array.astype(np.float64)


def _features(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None or rows.X.shape[1] != 2:
        raise _not_available("features", "needs rows X with two features", "try layout='pca' or 'spectral'")
    dense = rows.X.toarray() if hasattr(rows.X, "toarray") else to_numpy(rows.X)
    first, second = rows.feature_names or ("feature 0", "feature 1")
    return Layout2D(check_points(dense), (first, second), "the two features")


def _spectral(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    """Return the two smoothest functions on the graph besides the constant, with degree-weighted mean square one."""
    if rows.graph is None:
        raise _not_available("spectral", "needs a model with a graph on these rows", "try layout='pca'")
    scale = float(to_numpy(rows.graph.degrees).sum()) ** 0.5
    return _numbered("spectral coordinate", scale * to_numpy(eigenmap(rows.graph, 2, random_state=0).vectors))


def _pca(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None or min(rows.X.shape) < 2:
        hint = "pass layout as an array of shape (n, 2)"
        raise _not_available("pca", "needs rows X with at least two features", hint)
    return _numbered("principal component", to_numpy(fit_pca(rows.X, 2, random_state=0)(rows.X)))


def _tsne(rows: LabeledRows, random_state: RandomState) -> Layout2D:
    if rows.X is None and rows.graph is None:
        raise _not_available("tsne", "needs rows X or a model with a graph", "pass layout as an array of shape (n, 2)")
    X = rows.X if rows.X is None or hasattr(rows.X, "toarray") else to_numpy(rows.X)
    points, description = embed_tsne(X, rows.graph, random_state=random_state)
    return Layout2D(points, ("t-SNE 1", "t-SNE 2"), description)


def _numbered(name: str, points: np.ndarray) -> Layout2D:
    return Layout2D(points, (f"{name} 1", f"{name} 2"), f"{name}s")


def _not_available(layout: str, requirement: str, hint: str) -> InputError:
    problem = f"layout={layout!r} {requirement}"
    return InputError(problem, hint, code="layout_not_available", parameter="layout", value=layout)


LAYOUTS: dict[str, Callable[[LabeledRows, RandomState], Layout2D]] = {
    "features": _features,
    "spectral": _spectral,
    "pca": _pca,
    "tsne": _tsne,
}


def default_layout(rows: LabeledRows) -> LayoutName:
    """Choose two features if there are two, spectral for a graph alone or few clusters, and otherwise PCA."""
    if rows.X is None or rows.X.shape[1] == 2:
        return "spectral" if rows.X is None else "features"
    few = rows.labels is None or len(np.unique(rows.labels)) <= MAX_SPECTRAL_CLUSTERS
    return "spectral" if rows.graph is not None and few else "pca"


def resolve_layout(layout: LayoutLike, rows: LabeledRows, n: int, *, random_state: RandomState = 0) -> Layout2D:
    """Return a layout given as points or as a name of `LAYOUTS`; None is :func:`default_layout`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fiedler.plots.style import LabeledRows
    >>> layout = resolve_layout("tsne", LabeledRows(None, X=load_iris().data), 150)
    >>> layout.points.shape, layout.description
    ((150, 2), 't-SNE of 12 nearest neighbours')
    """
    layout = default_layout(rows) if layout is None else layout
    if isinstance(layout, str):
        layout = choose(LAYOUTS, layout, option="layout")(rows, random_state)
    if not isinstance(layout, Layout2D):
        layout = Layout2D(layout)  # type: ignore[arg-type]
    return layout._replace(points=check_points(layout.points, n))
