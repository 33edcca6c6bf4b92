import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler.errors import InputError
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


def test_the_error_of_hard_memberships_is_the_error_rate():
    y = np.array([0, 0, 0, 1, 1])

    assert_allclose(calibration_error(y, np.eye(2)[[0, 0, 1, 1, 1]]), 1 / 5)
    assert calibration_error(y, np.eye(2)[y]) == 0


@pytest.mark.parametrize(
    ("memberships", "message", "code"),
    [
        (np.eye(2), "memberships must have shape", "wrong_shape"),
        (np.ones(3), "memberships must have shape", "wrong_shape"),
        (np.ones((3, 2)), "sum to one", "invalid_memberships"),
        ([[1.5, -0.5]] * 3, "non-negative", "invalid_memberships"),
        ([[np.nan, 1.0]] * 3, "non-negative", "invalid_memberships"),
        ([[1.0], [0.5, 0.5], [1.0]], "matrix of numbers", "wrong_dtype"),
    ],
)
def test_invalid_memberships_are_an_error(memberships, message, code):
    with pytest.raises(InputError, match=message) as caught:
        calibration_error([0, 1, 1], memberships)

    assert caught.value.code == code
