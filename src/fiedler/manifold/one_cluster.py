"""Whether rows have more structure than a single cluster: the spectrum of their graph compared with that of one cloud.

    c = max_K [ mean_b log λ_K(b) - log λ_K ],      K = 2..8

λ_K is the K-th smallest eigenvalue of the normalised Laplacian of the self-tuned neighbour graph of the rows, λ_K(b)
that of rows drawn from a Gaussian with the mean and covariance of the rows. K clusters make K eigenvalues small. So
does a long narrow shape, but then also for the Gaussian, which has the same principal axes. This is the gap statistic
of Tibshirani, Walther & Hastie (2001), with eigenvalues in place of the dispersion inside k-means clusters, which
depends on shapes and tails: a self-tuned graph hardly depends on the density.

A Gaussian has c ≈ 0, and other shapes without gaps (a cube, a ball, heavy or one-sided tails) have up to 0.91. An arc
or a rolled sheet is longer than its principal axes tell. So c is computed a second time with the principal axes of the
*unrolled* rows: their coordinates by classical scaling of the distances along the graph to some landmarks [Tenenbaum
et al. 2000]. Most arcs and rolls have less than 1.8 then. A closed loop cannot be unrolled; rows whose unrolled
coordinates lie on a circle, with an empty middle, are compared with a ring as wide as theirs.

Clusters that touch may leave the spectrum as it is. Then it counts how much thinner the rows are on the border between
the parts of a partition that is found again in subsets (`evidence_against_one`). Along a line and around a loop, some
border is thin in every sample. There it counts how far the rows are from having a single mode:

    dip(x_1, ..., x_n) = min over unimodal F of max_x |F_n(x) - F(x)|

where F_n is the distribution function of the longest unrolled coordinate, or of the angle from where it is the least
dense; or of the nearest linear function of the rows if its dip is smaller, because distances along a graph come in
steps [Hartigan & Hartigan 1985]. The evidence is ((√n + 0.8) dip / 0.7)². Of all distributions with one mode, the
uniform one has the largest dips; with it, the evidence is above 1 in about three of 1,000 samples of any size. Where
the dip alone says that there are several clusters, their number is that of the modes of the simplest F with
max_x |F_n(x) - F(x)| ≤ 0.5 / (√n + 0.8).

The thresholds were settled on 240 draws of clouds, balls, cubes, heavy and one-sided tails, arcs, rings, rolls and
lines (``benchmarks/quality_count.py single``), so that one cluster is found in at least 95 of 100 new ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from .._typing import Array
from ..core.arrays import asarray_like, is_numpy, random_subset, take_rows, to_numpy
from ..core.eigen import smallest_eigenpairs
from ..core.sparse import row_indices, to_scipy
from ..graph.affinity import AffinityGraph
from ..graph.kernels import pair_distances
from ..graph.recipes import as_affinity, default_recipe
from ..graph.weights import different_rows

MIN_CLUSTERABILITY = math.log(2.5)  # above which there is more than one cluster
FEW_AXES, MIN_UNROLLED = 4.0, 2.3  # of rows on a curve or a surface; the same for the unrolled rows
HIGH_DIMENSION, HIGH_CLUSTERABILITY = 5.5, 1.5  # of others, one of which is needed: tails have more structure, too
LINE_AXES, MIN_VALLEY = 1.5, 0.25  # of rows that are no line, and the evidence for a valley among them
CLEAR_DIMENSION, CLEAR_VALLEY = 2.5, 2.0  # the same for rows of more structure than a cloud, even along a line
MIN_DIP, MODE_RADIUS = 0.7, 0.5  # relative dip of rows on a line or a loop, and the distance up to which modes count
ANTIMODE_SHARE = 0.05  # of the rows on a loop: the longest arc with so few of them is the least dense one
ERROR = 0.05  # of the test: how often rows without clusters are more than one
MIN_CLUSTERABILITY_ROWS = 20  # distinct ones; with fewer the spectrum of a graph says little
MAX_CLUSTERABILITY_ROWS = 1000  # a random sample of more rows
MAX_EIGENVALUES = 8
N_DRAWS = 4
EIGENVALUE_FLOOR = 1e-4  # smaller ones are raised to it: they depend on the single edges that join components
N_LANDMARKS = 60
MIN_RELATIVE_VARIANCE = 1e-3  # of the coordinates of the unrolled rows
MIN_LOOP_AXIS, MIN_LOOP_RADIUS = 0.85, 0.65  # of a loop: the second axis relative to the first, and the radius ...
LOOP_QUANTILE = 0.02  # ... of the rows nearest to the middle, relative to the median


class Clusterability(NamedTuple):
    """How much smaller the eigenvalues of the graph of the rows are than those of one cloud."""

    plain: float
    unrolled: float
    n_axes: float  # (Σ a²)² / Σ a⁴ for the axes a of the unrolled rows: along how many they extend
    is_loop: bool = False  # whether the unrolled rows lie on a circle
    dip: float = 0.0  # of rows along the line or around the loop, times √n + 0.8; zero for others ...
    n_modes: int = 1  # ... and the number of their modes there


def evidence_against_one(structure: Clusterability, valley: float, dimension: float) -> float:
    """Return the evidence that rows without gaps are more than one cluster; 1 is the least that suffices.

    The largest of three kinds of it, each relative to its threshold: more structure than a single cloud (for rows on a
    curve or a surface, also more than the unrolled one), a valley (along a line or a loop, the dip, squared as in the
    logarithm of its probability), and both.

    Parameters
    ----------
    structure : Clusterability
    valley : float
        The largest s² e v of up to eight clusters: stable partitions with a valley.
    dimension : float
        The number of dimensions near the rows.
    """
    more_than_cloud = structure.plain / MIN_CLUSTERABILITY
    if structure.n_axes < FEW_AXES:
        evidence = min(more_than_cloud, structure.unrolled / MIN_UNROLLED)
    else:
        evidence = more_than_cloud if dimension >= HIGH_DIMENSION else structure.plain / HIGH_CLUSTERABILITY
    if structure.n_axes >= LINE_AXES and not structure.is_loop:
        evidence = max(evidence, valley / MIN_VALLEY)
    else:
        evidence = max(evidence, (structure.dip / MIN_DIP) ** 2)
    if dimension >= CLEAR_DIMENSION:
        evidence = max(evidence, min(more_than_cloud, valley / CLEAR_VALLEY))
    return max(evidence, 0.0)


def error_probability(evidence: float) -> float:
    """Return about how often rows without clusters show as much evidence: 0.05 at the threshold."""
    return ERROR**evidence


def clusterability(X: Array, random_state: np.random.RandomState) -> Clusterability | None:
    """Return c with the principal axes of the rows, and with those of the unrolled rows; None for very few rows.

    Repeated rows count once: they would form clusters of their own, as in counts and rounded measurements.
    """
    sample = random_subset(X.shape[0], min(1.0, MAX_CLUSTERABILITY_ROWS / X.shape[0]), random_state)
    rows = take_rows(X, sample)
    rows = take_rows(rows, different_rows(rows)[0])
    if rows.shape[0] < MIN_CLUSTERABILITY_ROWS:
        return None
    graph = _graph_of(rows)
    log_values = _log_eigenvalues(graph, random_state)
    axes, unrolled = principal_axes(rows), unrolled_coordinates(rows, graph, random_state)
    lengths, spread = unrolled.std(axis=0), loop_spread(unrolled)
    clouds = [draw_gaussian(axes, rows, random_state) for _ in range(N_DRAWS)]
    unrolled_clouds = [
        draw_gaussian(lengths, rows, random_state) if spread is None else draw_ring(spread, rows, random_state)
        for _ in range(N_DRAWS)
    ]
    plain, of_unrolled = (
        float(np.max(np.mean([_log_eigenvalues(_graph_of(one), random_state) for one in drawn], axis=0) - log_values))
        for drawn in (clouds, unrolled_clouds)
    )
    shares = (lengths / lengths.max()) ** 2  # relative, so that no power overflows
    n_axes, is_loop = float(np.sum(shares) ** 2 / np.sum(shares**2)), spread is not None
    if n_axes >= LINE_AXES and not is_loop:
        return Clusterability(plain, of_unrolled, n_axes)
    along, scale = positions(rows, unrolled, is_loop), dip_scale(len(unrolled))
    n_modes = count_modes(along, MODE_RADIUS / scale)
    return Clusterability(plain, of_unrolled, n_axes, is_loop, scale * dip(along), n_modes)


def _graph_of(rows: Array) -> AffinityGraph:
    return as_affinity(default_recipe(rows.shape[0], connect="mst"), rows, validated=True)


def _log_eigenvalues(graph: AffinityGraph, random_state: np.random.RandomState) -> np.ndarray:
    """Compute log λ_K for K = 2..8."""
    values = smallest_eigenpairs(graph, min(MAX_EIGENVALUES, graph.n_nodes - 1), random_state=random_state).values
    return np.log(np.maximum(to_numpy(values)[1:], EIGENVALUE_FLOOR))


def principal_axes(rows: Array) -> np.ndarray:
    """Return the standard deviations of the rows along their principal axes, those that are not zero."""
    n, d = rows.shape
    if sp.issparse(rows):  # centred after the product, so that it is not filled
        Z = rows.astype(np.float64)
        inner = (Z @ Z.T).toarray()
        inner = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
        variances = np.linalg.eigvalsh(inner)[::-1][:d] / n
    else:
        Z = to_numpy(rows).astype(np.float64)
        variances = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False) ** 2 / n
    return np.sqrt(variances[variances > n * np.finfo(np.float32).eps * variances[0]])


def unrolled_coordinates(rows: Array, graph: AffinityGraph, random_state: np.random.RandomState) -> np.ndarray:
    """Return coordinates of the rows whose distances are about those along the graph, the longest axis first.

    With D the distances to landmarks and J their centring matrix, the landmarks have the coordinates V √Λ, where
    -1/2 J D∘D J = V Λ V'; every other row is placed by its distances to them.
    """
    weights = to_scipy(graph.weights)
    rows = rows if sp.issparse(rows) else to_numpy(rows)
    lengths = pair_distances(rows, rows, row_indices(weights), weights.indices).astype(np.float64)
    scale = lengths.max() or 1.0  # squares of the distances must not overflow
    lengths = np.maximum(lengths / scale, np.finfo(float).tiny)
    n = graph.n_nodes
    landmarks = random_state.choice(n, min(N_LANDMARKS, n), replace=False)
    along = sp.csr_array((lengths, weights.indices, weights.indptr), shape=weights.shape)
    squared = dijkstra(along, directed=False, indices=landmarks) ** 2
    among = squared[:, landmarks]
    means = among.mean(axis=0)
    inner = -0.5 * (among - means - means[:, None] + among.mean())
    values, vectors = np.linalg.eigh(inner)
    kept = values > MIN_RELATIVE_VARIANCE * values[-1]
    kept[: len(landmarks) // 2] = False
    coordinates = -0.5 * (squared.T - means) @ (vectors[:, kept] / np.sqrt(values[kept]))
    return scale * coordinates[:, ::-1]


def loop_spread(coordinates: np.ndarray) -> float | None:
    """Return the relative standard deviation of the radius of rows that lie on a circle, None if they do not."""
    lengths = coordinates.std(axis=0)
    if len(lengths) < 2 or lengths[1] < MIN_LOOP_AXIS * lengths[0]:
        return None
    radius = np.hypot(*(coordinates[:, :2] / lengths[:2]).T)
    is_hollow = np.quantile(radius, LOOP_QUANTILE) >= MIN_LOOP_RADIUS * np.median(radius)
    return float(radius.std() / radius.mean()) if is_hollow else None


def draw_gaussian(axes: np.ndarray, rows: Array, random_state: np.random.RandomState) -> Array:
    """Draw as many rows as given ones from a Gaussian with the given principal axes, in coordinates along these."""
    drawn = random_state.standard_normal((rows.shape[0], len(axes))) * axes
    return drawn if is_numpy(rows) else asarray_like(drawn, rows, dtype=rows.dtype)


def draw_ring(spread: float, rows: Array, random_state: np.random.RandomState) -> Array:
    """Draw as many rows as given ones from a ring in the plane, with the given standard deviation of its radius."""
    angle = random_state.uniform(0, 2 * np.pi, rows.shape[0])
    radius = 1 + spread * random_state.standard_normal(rows.shape[0])
    drawn = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return drawn if is_numpy(rows) else asarray_like(drawn, rows, dtype=rows.dtype)


# ------------------------------------------------------------------------------------------------------------- the dip


def dip(values: np.ndarray) -> float:
    """Return the distance of the distribution function of a sample from the nearest one with a single mode.

    To the left of the mode the nearest one is half way between the sample's and its greatest convex minorant, to the
    right half way to its least concave majorant. The mode is narrowed down: where minorant and majorant are the
    farthest apart, both cannot hold, until they are no farther apart than the sample is from them outside.
    """
    x, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / counts.sum()  # F_n at the values ...
    below = above - counts / counts.sum()  # ... and to the left of them
    height = 0.0
    while len(x) > 1:
        convex, concave = _convex_minorant(x, below), _convex_minorant(x, -above)
        minorant, majorant = np.interp(x, x[convex], below[convex]), np.interp(x, x[concave], above[concave])
        vertices = np.union1d(convex, concave)
        gaps = (majorant - minorant)[vertices]
        if gaps.max() <= height:
            break
        mode = vertices[gaps.argmax()]
        left, right = convex[convex <= mode][-1], concave[concave >= mode][0]
        outside = np.append((above - minorant)[:left], (majorant - below)[right + 1 :])
        height = float(np.max(outside, initial=height))
        x, below, above = (array[left : right + 1] for array in (x, below, above))
    return height / 2


def positions(rows: Array, unrolled: np.ndarray, is_loop: bool) -> np.ndarray:
    """Return where rows are along a line, or around a loop: by the unrolled rows, or by projections on directions.

    Of the two, those of the smaller dip. The directions are those that the unrolled coordinates covary with.
    """
    Z = rows if sp.issparse(rows) else to_numpy(rows)
    Z = Z.astype(np.float64) / abs(Z).max()
    plane = unrolled[:, :2] / abs(unrolled).max()
    centred = plane - plane.mean(axis=0)
    both = [cut_angles(points) if is_loop else points[:, 0] for points in (plane, Z @ (Z.T @ centred))]
    return min(both, key=dip)


def dip_scale(n_rows: int) -> float:
    """Return the number by which the dip is multiplied, so that its upper quantiles hardly depend on the sample."""
    return math.sqrt(n_rows) + 0.8


def _convex_minorant(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points are vertices of the greatest convex function below all of them; x increases."""
    vertices: list[tuple[float, float]] = []
    places: list[int] = []
    for place, (c, f_c) in enumerate(zip(x.tolist(), y.tolist())):
        while len(vertices) > 1:
            (a, f_a), (b, f_b) = vertices[-2:]
            if (f_b - f_a) * (c - b) < (f_c - f_b) * (b - a):
                break
            vertices.pop()
            places.pop()
        vertices.append((c, f_c))
        places.append(place)
    return np.array(places)


def count_modes(values: np.ndarray, radius: float) -> int:
    """Return the fewest modes of a distribution function within a distance of that of a sample, with the same ends.

    It is a string pulled taut between the bounds [Davies & Kovac 2001]: from where it last touched one of them, it goes
    straight on until the lines that the bounds permit are used up, and then bends around the one that is in its way. A
    mode is between a bend to the left, around the upper bound, and one to the right.
    """
    x, counts = np.unique(values, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    low, high = middle - radius, middle + radius
    low[-1] = high[-1] = middle[-1]
    start, height, to_the_left = 0, middle[0], [True]
    while start < len(x) - 1:
        steps = x[start + 1 :] - x[start]
        upper, lower = (high[start + 1 :] - height) / steps, (low[start + 1 :] - height) / steps
        least_upper = np.minimum.accumulate(upper)
        crossing = np.flatnonzero(np.maximum.accumulate(lower) > least_upper)
        if len(crossing) == 0:
            break
        end = crossing[0]
        to_the_left.append(bool(lower[end] > least_upper[end - 1]))
        start += 1 + int(upper[:end].argmin() if to_the_left[-1] else lower[:end].argmax())
        height = high[start] if to_the_left[-1] else low[start]
    return sum(left and not following for left, following in zip(to_the_left, [*to_the_left[1:], False]))


def cut_angles(coordinates: np.ndarray) -> np.ndarray:
    """Return the angles of points on a circle, in turns, from the middle of the arc where there are the fewest."""
    plane = coordinates[:, :2] / coordinates[:, 0].std()
    design = np.column_stack([2 * plane, np.ones(len(plane))])  # |x|² = 2 x'm + const for points around m
    middle = np.linalg.lstsq(design, np.sum(plane**2, axis=1), rcond=None)[0][:2]
    x, y = (plane - middle).T
    angles = np.sort(np.arctan2(y, x) / (2 * np.pi) % 1.0)
    m = max(round(ANTIMODE_SHARE * len(angles)), 1)
    lengths = np.append(angles[m:], angles[:m] + 1) - angles
    start = lengths.argmax()
    return (angles - angles[start] - lengths[start] / 2) % 1.0
