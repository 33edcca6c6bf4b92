"""Hessian eigenmaps on flat and curved sheets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_swiss_roll

from fiedler import HessianEigenmaps, KNNGraph, LaplacianEigenmaps
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError


def roll_with_a_hole(n):
    """Rows of a swiss roll with a hole, and its flat coordinates: arc length and height."""
    X, angle = make_swiss_roll(n, hole=True, random_state=0)
    return X, np.c_[0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)), X[:, 1]]


def correlations(Y, coordinates):
    """Return the correlation of each coordinate with the linear function of the embedding that is closest to it."""
    basis = np.c_[np.ones(len(Y)), Y]
    fitted = basis @ np.linalg.lstsq(basis, coordinates, rcond=None)[0]
    return np.array([np.corrcoef(fitted[:, j], coordinates[:, j])[0, 1] for j in range(coordinates.shape[1])])


def test_a_swiss_roll_with_a_hole_is_unrolled(backend):
    X, coordinates = roll_with_a_hole(1000)

    hessian = HessianEigenmaps(random_state=0).fit(backend(X))
    laplacian = LaplacianEigenmaps(graph=KNNGraph(12), random_state=0).fit(X)

    assert correlations(to_numpy(hessian.embedding_), coordinates).min() > 0.999
    assert correlations(laplacian.embedding_, coordinates).min() < 0.6
    assert hessian.converged_


def test_new_points_are_placed_between_their_neighbours():
    X, coordinates = roll_with_a_hole(1400)
    model = HessianEigenmaps(random_state=0).fit(X[:1200])

    both = np.r_[model.embedding_, model.transform(X[1200:])]

    assert correlations(both, coordinates).min() > 0.999
    assert_allclose(model.transform(X[:5]), model.embedding_[:5])


def test_a_flat_patch_keeps_its_coordinates_and_loses_the_constant(rng):
    """All three null vectors have eigenvalues of rounding size, and the constant is the one that is left out."""
    X = rng.uniform(size=(200, 2))

    model = HessianEigenmaps(random_state=0).fit(X)

    assert_allclose(correlations(model.embedding_, X), 1, atol=1e-10)
    assert_allclose(model.embedding_.T @ np.c_[model.embedding_, np.ones(200)], np.eye(2, 3), atol=1e-10)


def test_what_cannot_be_embedded_is_refused(rng):
    X = rng.normal(size=(30, 3))

    with pytest.raises(InputError, match="n_components=4 is more than the 3 columns or the 29 directions of the rows"):
        HessianEigenmaps(4).fit(X)
    with pytest.raises(InputError, match="HessianEigenmaps maps the rows of X, but X is a graph"):
        HessianEigenmaps(2).fit(KNNGraph(8).build(X))
