"""Two coordinates a row, to draw a clustering: t-SNE on an affinity graph.

With p_ij the graph's affinities, a row's adding up to about 1/n, and q_ij = 1 / (1 + ‖y_i - y_j‖²) those in the plane,
the layout goes down the gradient of KL(P ‖ Q),

    4 [ a Σ_j p_ij q_ij (y_i - y_j)  -  1/Z Σ_j q_ij² (y_i - y_j) ],      Z = Σ_(k≠l) q_kl,

where a is large at first, so that clusters find together, and then 1. Attraction runs over the edges alone. Repulsion
is a convolution: rows are spread over a grid, the grid is convolved by FFT, and every row reads off what it feels, so
that an iteration is linear in the rows (Linderman et al. 2019). scikit-learn's trees take many times as long.

Beyond `LAID_OUT` rows a sample is laid out, and the others are placed among it: a map of 100,000 rows shows no more.

References
----------
G. C. Linderman et al., "Fast interpolation-based t-SNE for improved visualization of single-cell RNA-seq data",
Nature Methods 16, 2019.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..core.backend import to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.pca import fit_pca
from ..core.rows import normalize_row_sums, random_subset, take_rows
from ..core.sparse import row_indices, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.neighbors import k_nearest
from ..graph.pairs import attractive_part
from ..graph.recipes import self_tuned
from ..plots.layouts import Layout2D

LAID_OUT = 5000  # rows
PLACED_BY = 5  # neighbours
N_NEIGHBORS = 12  # of the graph that is built where the model has none
COORDINATES = 50  # in which neighbours are searched; of a graph alone, eigenvectors
EIGENVECTORS = 10
MOST_EDGES = 100  # a row; a fuller graph does not say who is near
PHASES = ((12.0, 0.5, 120), (1.0, 0.8, 230))  # exaggeration, momentum, iterations
FEWEST_NODES, MOST_NODES, NODES_A_ROW = 32, 256, 8  # of the grid's side; the last times √n
CELL = 0.5  # of the grid, in the plane's unit: q is 1 wide


def layout_rows(model: Any, X: Any, *, random_state: Any = 0) -> Layout2D:
    """Where to draw each row: its two features if it has two, else t-SNE on the model's graph or on one built for it.

    Parameters
    ----------
    model : fitted clusterer
        Its ``graph_`` is used if it has one of all rows.
    X : array or CSR matrix of shape (n, d), or AffinityGraph
    random_state : int, RandomState or None, default=0

    Returns
    -------
    Plane

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> plane = layout_rows(KMeans(3), X)
    >>> plane.points.shape, plane.how
    ((150, 2), 't-SNE of 12 nearest neighbours')
    """
    rng = check_random_state(random_state)
    if not isinstance(X, AffinityGraph) and X.shape[1] == 2:
        return Layout2D(X.toarray() if sp.issparse(X) else X, how="the two features")
    Z = _eigenvectors(X, rng) if isinstance(X, AffinityGraph) else principal(X, rng)
    n = Z.shape[0]
    if n < 3:
        return Layout2D(np.column_stack([np.arange(n), np.zeros(n)]), how="side by side")
    if n > LAID_OUT:
        sample = random_subset(n, LAID_OUT / n, rng)
        xy = _placed(Z, sample, layout(_neighbours(Z[sample]), Z[sample], rng))
        return Layout2D(xy, how=f"t-SNE of {LAID_OUT:,} rows, the others placed by their nearest {PLACED_BY} of these")
    graph = sparse_graph(X if isinstance(X, AffinityGraph) else model, n)
    if graph is not None:
        return Layout2D(layout(to_scipy(graph.weights), Z, rng), how="t-SNE of the graph")
    return Layout2D(layout(_neighbours(Z), Z, rng), how=f"t-SNE of {min(N_NEIGHBORS, n - 1)} nearest neighbours")


# ------------------------------------------------------------------------------------------------ what it starts from


def sparse_graph(model: Any, n: int) -> AffinityGraph | None:
    """The model's graph without repulsion, if it is of ``n`` rows and tells near from far."""
    graph = model if isinstance(model, AffinityGraph) else getattr(model, "graph_", None)
    if not isinstance(graph, AffinityGraph) or graph.n_nodes != n:
        return None
    graph = attractive_part(graph)
    return graph if 0 < graph.n_edges <= MOST_EDGES * n else None


def principal(X: Any, rng: np.random.RandomState) -> np.ndarray:
    """The rows in at most `COORDINATES` principal coordinates."""
    most = min(X.shape) - (1 if sp.issparse(X) else 0)
    if most < 1 or (X.shape[1] <= COORDINATES and not sp.issparse(X)):
        return X.toarray() if sp.issparse(X) else X
    return fit_pca(X, min(COORDINATES, most), random_state=rng.randint(2**31 - 1))(X)


def _eigenvectors(graph: AffinityGraph, rng: np.random.RandomState) -> np.ndarray:
    """Of the random walk, the constant one left out."""
    size = min(EIGENVECTORS + 1, graph.n_nodes)
    pairs = smallest_eigenpairs(attractive_part(graph), size, kind="random_walk", tol=1e-4, random_state=rng)
    return to_numpy(pairs.vectors)[:, 1:]


def _neighbours(Z: np.ndarray) -> sp.csr_array:
    return to_scipy(self_tuned(min(N_NEIGHBORS, Z.shape[0] - 1)).build(Z).weights)


def _placed(Z: np.ndarray, sample: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """All rows, each at the mean of its nearest ones in the sample, weighted by 1 / distance²."""
    near = k_nearest(take_rows(Z, sample), PLACED_BY, queries=Z)
    sq_distances = near.distances.reshape(-1, PLACED_BY) ** 2
    weights = 1 / (sq_distances + 1e-6 * sq_distances.mean() + np.finfo(float).tiny)
    places = xy[near.columns.reshape(-1, PLACED_BY)]
    return np.einsum("nk,nka->na", normalize_row_sums(weights), places)


# --------------------------------------------------------------------------------------------------------- the layout


def layout(W: sp.csr_array, start: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """t-SNE of a graph's weights, from the first two columns of ``start``."""
    P, n = affinities(W), W.shape[0]
    rows, rate = row_indices(P), max(n / PHASES[0][0], min(n, 50.0))
    Y = _small(start, n, rng)
    velocity, gains = np.zeros_like(Y), np.ones_like(Y)
    for exaggeration, momentum, iterations in PHASES:
        for _ in range(iterations):
            gradient = 4 * (exaggeration * attraction(P, rows, Y) - repulsion(Y))
            gains = np.maximum(np.where((gradient > 0) == (velocity > 0), 0.8 * gains, gains + 0.2), 0.01)
            velocity = momentum * velocity - rate * gains * gradient
            Y = Y + velocity
            Y = Y - Y.mean(axis=0)
    return Y


def affinities(W: sp.csr_array) -> sp.csr_array:
    """P = (D⁻¹W + WD⁻¹) / 2n: symmetric, its entries adding up to one."""
    walk = normalize_row_sums(W.astype(np.float64))
    return sp.csr_array((walk + walk.T) / (2 * W.shape[0]))


def _small(start: np.ndarray, n: int, rng: np.random.RandomState) -> np.ndarray:
    """Two columns of about 1e-4 in size, no two rows in one place."""
    Y = np.zeros((n, 2))
    Y[:, : min(2, start.shape[1])] = start[:, :2] - start[:, :2].mean(axis=0)
    Y /= max(float(Y[:, 0].std()), np.finfo(float).tiny)
    return 1e-4 * (np.clip(Y, -5, 5) + 0.01 * rng.standard_normal((n, 2)))


def attraction(P: sp.csr_array, rows: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Σ_j p_ij q_ij (y_i - y_j) of every row."""
    apart = Y[rows] - Y[P.indices]
    pull = P.data / (1 + np.einsum("ea,ea->e", apart, apart))
    return np.column_stack([np.bincount(rows, pull * along, len(Y)) for along in apart.T])


def repulsion(Y: np.ndarray) -> np.ndarray:
    """1/Z Σ_j q_ij² (y_i - y_j) of every row, through a grid."""
    low = Y.min(axis=0)
    span = max(float((Y.max(axis=0) - low).max()), 1e-9)
    most = max(FEWEST_NODES, min(MOST_NODES, NODES_A_ROW * math.sqrt(len(Y))))
    size = scipy.fft.next_fast_len(int(np.clip(span / CELL, FEWEST_NODES, most)), real=True)
    cell = span / (size - 1)
    share = _corners((Y - low) / cell, size)
    mass = (share.T @ np.ones(len(Y))).reshape(size, size)
    step = cell * np.concatenate([np.arange(size), np.arange(-size, 0)])  # wraps around, as convolution by FFT does
    across, down = step[:, None], step[None, :]
    q = 1 / (1 + across**2 + down**2)
    spread = scipy.fft.rfft2(mass, q.shape)
    kernels = (q, q * q * across, q * q * down)
    fields = [scipy.fft.irfft2(spread * scipy.fft.rfft2(kernel), q.shape) for kernel in kernels]
    felt = share @ np.column_stack([field[:size, :size].ravel() for field in fields])
    corners = cell * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    on_itself = 1 / (1 + np.sum((corners[:, None] - corners) ** 2, axis=2))
    own = share.data.reshape(-1, 4)
    return felt[:, 1:] / max(felt[:, 0].sum() - np.sum(own @ on_itself * own), 1e-12)


def _corners(at: np.ndarray, size: int) -> sp.csr_array:
    """Each row's shares in the four grid nodes around it, bilinear, shape (n, size²)."""
    n = len(at)
    base = np.clip(at.astype(np.int64), 0, size - 2)
    (right, up), (left, down) = (at - base).T, (1 - (at - base)).T
    shares = np.stack([left * down, left * up, right * down, right * up], axis=1)
    nodes = (base[:, 0] * size + base[:, 1])[:, None] + np.array([0, 1, size, size + 1])
    return sp.csr_array((shares.ravel(), nodes.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, size * size))
