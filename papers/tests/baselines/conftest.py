"""Generators of random numbers, and the back ends other than NumPy, as in the tests of the library."""

from __future__ import annotations

import os

import numpy as np
import pytest

from toys import BACKENDS


@pytest.fixture
def rng():
    """A generator whose seed can be varied, since what a test states does not depend on it."""
    return np.random.RandomState(int(os.environ.get("FIEDLER_TEST_SEED", "7")))


@pytest.fixture
def fixed_rng():
    """A generator of one seed, for examples: rows on which a method does well, as it does not on all rows."""
    return np.random.RandomState(7)


@pytest.fixture(params=[name for name in BACKENDS if name != "numpy"])
def foreign(request):
    """NumPy data to an array of the back end."""
    return BACKENDS[request.param]
