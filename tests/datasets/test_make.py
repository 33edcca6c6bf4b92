from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn.neighbors import KNeighborsClassifier

from fiedler.datasets import blobs, circles, swiss_roll, tanh_manifold, two_moons
from fiedler.errors import InputError

MAKERS = [two_moons, circles, swiss_roll, blobs, tanh_manifold]


@pytest.mark.parametrize("make", MAKERS)
def test_seed_determines_points_and_labels(make):
    X, y = make(200, random_state=3)
    X_again, y_again = make(200, random_state=3)
    X_other, _ = make(200, random_state=4)

    assert_array_equal(X, X_again)
    assert_array_equal(y, y_again)
    assert not np.array_equal(X, X_other)


@pytest.mark.parametrize("make", MAKERS)
def test_every_point_has_a_label_and_every_cluster_a_point(make):
    X, y = make(301, random_state=0)

    assert X.shape[0] == len(y) == 301
    assert y.dtype == np.int64
    assert_array_equal(np.unique(y), np.arange(y.max() + 1))


def test_moons_are_half_circles():
    X, y = two_moons(100, noise=0, random_state=0)

    centers = np.array([[0, 0], [1, 0.5]])[y]
    assert_allclose(np.linalg.norm(X - centers, axis=1), 1)


def test_circles_have_radius_one_and_factor():
    X, y = circles(100, noise=0, factor=0.3, random_state=0)

    assert_allclose(np.linalg.norm(X, axis=1), np.array([1, 0.3])[y])


def test_roll_segments_have_equal_arc_length():
    X, y = swiss_roll(20_000, n_clusters=5, noise=0, random_state=0)
    angles = np.hypot(X[:, 0], X[:, 2])  # the spiral is r = t

    ends = [angles[y == segment].max() for segment in range(5)]
    arcs = [quad(lambda t: np.sqrt(1 + t**2), a, b)[0] for a, b in zip([1.5 * np.pi, *ends], ends)]

    assert_allclose(arcs, np.mean(arcs), rtol=0.01)


def test_blobs_follow_proportions_and_scales():
    X, y = blobs(8000, n_clusters=3, n_features=4, noise=[0.5, 1, 4], proportions=[1, 2, 5], random_state=0)

    scales = [X[y == k].std(axis=0).mean() for k in range(3)]
    assert_array_equal(np.bincount(y), [1000, 2000, 5000])
    assert_allclose(scales, [0.5, 1, 4], rtol=0.05)


@pytest.mark.parametrize(("n_samples", "weights"), [(10, [1, 1, 1]), (11, [0.2, 0.3, 0.5]), (7, [3, 3, 1])])
def test_blob_counts_are_within_one_of_their_proportion(n_samples, weights):
    _, y = blobs(n_samples, proportions=weights, random_state=0)

    expected = n_samples * np.array(weights) / np.sum(weights)
    assert np.abs(np.bincount(y) - expected).max() <= 1


def test_tanh_manifold_in_float32_is_the_rounded_float64_one():
    X, y = tanh_manifold(500, random_state=0)
    X_float32, y_float32 = tanh_manifold(500, dtype=np.float32, random_state=0)

    assert X_float32.dtype == np.float32
    assert_array_equal(X_float32, X.astype(np.float32))
    assert_array_equal(y_float32, y)


def test_tanh_manifold_clusters_are_separated_by_nearest_neighbors():
    X, y = tanh_manifold(3000, random_state=0)

    assert X.shape == (3000, 50)
    assert KNeighborsClassifier(10).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) > 0.98


def test_tanh_manifold_without_noise_has_the_rank_of_its_layer():
    X, _ = tanh_manifold(400, ambient=30, width=12, noise=0, random_state=0)

    assert np.linalg.matrix_rank(X) == 12


def test_tanh_manifold_blocks_are_different_draws(monkeypatch):
    monkeypatch.setattr("fiedler.datasets.make.BLOCK_ROWS", 100)
    X, y = tanh_manifold(250, random_state=0)

    assert len(np.unique(X[:, 0])) == 250
    assert len(np.unique(y)) == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_moons(0), "n_samples must be an integer of at least 1"),
        (lambda: circles(10, noise=-1), "noise must be a non-negative number"),
        (lambda: swiss_roll(3, n_clusters=4), r"n_clusters=4 is more than the number of rows \(n_samples=3\)"),
        (lambda: blobs(10, n_clusters=3, noise=[1, 2]), "noise must have n_clusters=3 numbers"),
        (lambda: blobs(10, n_clusters=2, proportions=[1, 0]), "proportions must be a positive number"),
        (lambda: blobs(10, n_clusters=2, proportions=[1, 100]), "leave a cluster empty"),
        (lambda: tanh_manifold(10, width=0), "width must be an integer"),
        (lambda: tanh_manifold(10, dtype=int), "dtype must be float32 or float64; got int64"),
    ],
)
def test_invalid_options_raise(call, message):
    with pytest.raises(InputError, match=message):
        call()
