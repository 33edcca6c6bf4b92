import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler.metrics import calibration_error


def test_calibration_error_is_the_printed_sum(rng):
    """[Guo et al. 2017, Eq. 3], bin by bin; clusters are named differently from classes."""
    P = rng.dirichlet([0.4, 0.4, 0.4], size=300)
    y = np.where(rng.uniform(size=300) < 0.7, P.argmax(axis=1), rng.randint(3, size=300))
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y

    printed = 0.0
    for b in range(10):
        inside = (confidence >= b / 10) & ((confidence < (b + 1) / 10) | (b == 9))
        if inside.any():
            printed += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())

    assert_allclose(calibration_error(y, P[:, [2, 0, 1]], n_bins=10), printed)


def test_certainty_about_everything_costs_what_is_wrong():
    y = np.array([0, 0, 0, 1, 1])

    assert_allclose(calibration_error(y, np.eye(2)[[0, 0, 1, 1, 1]]), 1 / 5)
    assert calibration_error(y, np.eye(2)[y]) == 0


@pytest.mark.parametrize(
    ("memberships", "sentence"),
    [
        (np.eye(2), "memberships must be of shape"),
        (np.ones(3), "memberships must be of shape"),
        (np.ones((3, 2)), "sum to one"),
        ([[1.5, -0.5]] * 3, "nonnegative"),
        ([[np.nan, 1.0]] * 3, "nonnegative"),
    ],
)
def test_bad_memberships_get_a_sentence(memberships, sentence):
    with pytest.raises(ValueError, match=sentence):
        calibration_error([0, 1, 1], memberships)
