"""Generators of synthetic manifolds: each returns the points ``X`` and the true labels ``y``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.datasets import make_blobs, make_circles, make_moons, make_swiss_roll

from .._typing import RandomState
from .._validation import check_int, check_n_clusters, check_nonnegative, check_positive, check_seed
from ..errors import InputError, shown

PointsAndLabels = tuple[np.ndarray, np.ndarray]

ROLL_START, ROLL_END = 1.5 * np.pi, 4.5 * np.pi  # angles of scikit-learn's Swiss roll, in radians
CENTER_SCALE = 3.0  # spread of the centres of the latent mixture, in standard deviations of a cluster
BLOCK_ROWS = 16384  # rows generated at a time


def two_moons(n_samples: int = 500, *, noise: float = 0.05, random_state: RandomState = None) -> PointsAndLabels:
    """Generate two interleaved half circles in the plane, with half of the points on each.

    Parameters
    ----------
    n_samples : int, default=500
        Number of points.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise on each coordinate.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,), the moon of each point, 0 or 1

    Examples
    --------
    >>> X, y = two_moons(200, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 2), [0, 1])
    """
    n_samples, noise = check_int(n_samples, "n_samples"), check_nonnegative(noise, "noise")
    return make_moons(n_samples, noise=noise, random_state=check_seed(random_state))


def circles(
    n_samples: int = 500, *, noise: float = 0.05, factor: float = 0.5, random_state: RandomState = None
) -> PointsAndLabels:
    """Generate two concentric circles in the plane, with half of the points on each.

    Parameters
    ----------
    n_samples, noise, random_state
        As in :func:`two_moons`.
    factor : float, default=0.5
        Radius of the inner circle; the outer one has radius 1.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,), 0 on the outer circle, 1 on the inner one

    Examples
    --------
    >>> X, y = circles(100, noise=0, random_state=0)
    >>> (X[y == 1] ** 2).sum(axis=1).round(6).max()
    np.float64(0.25)
    """
    n_samples = check_int(n_samples, "n_samples")
    factor = check_nonnegative(factor, "factor")
    if factor >= 1:
        problem = f"factor must be a number from 0 to 1 (exclusive); got {factor!r}"
        raise InputError(problem, code="invalid_parameter", parameter="factor", value=factor)
    noise, rng = check_nonnegative(noise, "noise"), check_seed(random_state)
    return make_circles(n_samples, noise=noise, factor=factor, random_state=rng)


def swiss_roll(
    n_samples: int = 1000, *, n_clusters: int = 4, noise: float = 0.05, random_state: RandomState = None
) -> PointsAndLabels:
    """Generate a rolled-up sheet in space, cut into segments of equal arc length.

    Adjacent turns of the roll are close in space, so segments are separated along the sheet and not through space.

    Parameters
    ----------
    n_samples, noise, random_state
        As in :func:`two_moons`.
    n_clusters : int, default=4
        Number of segments.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
    y : ndarray of shape (n_samples,), the segment of each point, counted from the inside

    Examples
    --------
    >>> X, y = swiss_roll(400, n_clusters=3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 3), [0, 1, 2])
    """
    n_samples = check_int(n_samples, "n_samples")
    n_clusters = check_n_clusters(n_clusters, n_samples)
    noise, rng = check_nonnegative(noise, "noise"), check_seed(random_state)
    X, angles = make_swiss_roll(n_samples, noise=noise, random_state=rng)
    start, end = _spiral_arc(ROLL_START), _spiral_arc(ROLL_END)
    share = (_spiral_arc(angles) - start) / (end - start)
    return X, np.minimum((n_clusters * share).astype(np.int64), n_clusters - 1)


def _spiral_arc(angle: float | np.ndarray) -> Any:
    """Return the length of the spiral r = t from t = 0 to ``angle``: the integral of sqrt(1 + t^2)."""
    return (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2


def blobs(
    n_samples: int = 500,
    *,
    n_clusters: int = 3,
    n_features: int = 2,
    noise: float | Sequence[float] = 1.0,
    proportions: Sequence[float] | None = None,
    random_state: RandomState = None,
) -> PointsAndLabels:
    """Generate round Gaussian clusters with centres drawn uniformly from the box [-10, 10]^d.

    Parameters
    ----------
    n_samples : int, default=500
        Number of points.
    n_clusters : int, default=3
        Number of clusters.
    n_features : int, default=2
        Number of coordinates.
    noise : float or sequence of n_clusters floats, default=1.0
        Standard deviation of the clusters: one for all of them, or one each.
    proportions : sequence of n_clusters floats or None, default=None
        Relative sizes of the clusters; None makes them equal.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), the cluster of each point

    Examples
    --------
    >>> X, y = blobs(100, n_clusters=2, noise=[0.5, 2.0], proportions=[1, 3], random_state=0)
    >>> np.bincount(y).tolist()
    [25, 75]
    """
    n_samples = check_int(n_samples, "n_samples")
    n_clusters = check_n_clusters(n_clusters, n_samples)
    scales = [check_nonnegative(scale, "noise") for scale in _one_per_cluster(noise, "noise", n_clusters)]
    weights = _one_per_cluster(1.0 if proportions is None else proportions, "proportions", n_clusters)
    counts = _apportion(n_samples, [check_positive(weight, "proportions") for weight in weights])
    n_features, rng = check_int(n_features, "n_features"), check_seed(random_state)
    X, y = make_blobs(counts, n_features, cluster_std=scales, random_state=rng)
    return X, y.astype(np.int64)


def _apportion(n_samples: int, weights: Sequence[float]) -> np.ndarray:
    """Return integers that add up to ``n_samples`` and are proportional to ``weights`` to within one sample."""
    ends = np.round(n_samples * np.cumsum(weights) / np.sum(weights)).astype(int)
    counts = np.diff(ends, prepend=0)
    if counts.min() == 0:
        problem = f"proportions={list(weights)} leave a cluster empty with n_samples={n_samples}"
        fields = {"parameter": "proportions", "value": list(weights), "n_samples": n_samples}
        raise InputError(problem, "increase n_samples", code="empty_cluster", **fields)
    return counts


def tanh_manifold(
    n_samples: int = 10_000,
    *,
    n_clusters: int = 10,
    latent: int = 8,
    ambient: int = 50,
    width: int = 64,
    noise: float = 0.03,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = None,
) -> PointsAndLabels:
    """Generate a Gaussian mixture mapped to a higher dimension by a random network with one tanh layer.

    x = V' tanh(U' z + b) + noise, where the latent z is drawn around one of ``n_clusters`` centres. Points are
    generated in blocks, so only a few tens of megabytes are needed besides the result.

    Parameters
    ----------
    n_samples : int, default=10000
        Number of points.
    n_clusters : int, default=10
        Number of centres in the latent space, all equally probable.
    latent, width, ambient : int, default=8, 64, 50
        Dimensions of the latent mixture, of the tanh layer, and of the points.
    noise : float, default=0.03
        Standard deviation of the Gaussian noise on each coordinate.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the points; float32 gives the float64 points, rounded.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, ambient)
    y : ndarray of shape (n_samples,), the centre of each point

    Examples
    --------
    >>> X, y = tanh_manifold(1000, dtype=np.float32, random_state=0)
    >>> X.shape, X.dtype, len(set(y.tolist()))
    ((1000, 50), dtype('float32'), 10)
    """
    n_samples = check_int(n_samples, "n_samples")
    n_clusters = check_n_clusters(n_clusters, n_samples)
    latent, width, ambient = check_int(latent, "latent"), check_int(width, "width"), check_int(ambient, "ambient")
    noise = check_nonnegative(noise, "noise")
    rng = check_seed(random_state)
    centers = CENTER_SCALE * rng.normal(size=(n_clusters, latent))
    layer = rng.normal(size=(latent, width)) / np.sqrt(latent)
    bias = rng.normal(size=width)
    readout = rng.normal(size=(width, ambient)) / np.sqrt(width)
    if (kind := np.dtype(dtype)) not in (np.float32, np.float64):
        problem = f"dtype must be float32 or float64; got {kind.name}"
        raise InputError(problem, code="invalid_parameter", parameter="dtype", value=kind.name)
    X, y = np.empty((n_samples, ambient), dtype=kind), np.empty(n_samples, dtype=np.int64)
    for block, draw in _blocks(n_samples, rng):
        n_rows = block.stop - block.start
        y[block] = draw.integers(n_clusters, size=n_rows)
        Z = centers[y[block]] + draw.normal(size=(n_rows, latent))
        X[block] = np.tanh(Z @ layer + bias) @ readout + noise * draw.normal(size=(n_rows, ambient))
    return X, y


def _blocks(n_samples: int, rng: np.random.RandomState) -> Iterator[tuple[slice, np.random.Generator]]:
    """Yield slices that cover the rows, each with its own generator."""
    starts = range(0, n_samples, BLOCK_ROWS)
    for start, seed in zip(starts, rng.randint(2**31 - 1, size=len(starts))):
        yield slice(start, min(start + BLOCK_ROWS, n_samples)), np.random.default_rng(seed)


def _one_per_cluster(values: float | Sequence[float], name: str, n_clusters: int) -> list[float]:
    """Return one number per cluster, from as many or from one for all."""
    if np.shape(values) in ((), (n_clusters,)):
        return np.broadcast_to(values, n_clusters).tolist()
    problem = f"{name} must have n_clusters={n_clusters} numbers, one per cluster; got {shown(values)}"
    raise InputError(problem, code="wrong_length", parameter=name, value=values, n_clusters=n_clusters)
