"""Fixtures: toy graphs, awkward on purpose, and the back ends that parity is tested on."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from fiedler import AffinityGraph
from toys import BACKENDS, uneven_weights

collect_ignore_glob = ["typing/*"]  # for type checkers, never run


def pytest_collection_finish():
    """Leave the thousands of tests, which live to the end, out of every garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng():
    """A generator whose seed can be varied, since what a test states does not depend on it."""
    return np.random.RandomState(int(os.environ.get("FIEDLER_TEST_SEED", "7")))


@pytest.fixture
def fixed_rng():
    """A generator of one seed, for examples: rows on which a method does well, as it does not on all rows."""
    return np.random.RandomState(7)


@pytest.fixture
def uneven_graph():
    return AffinityGraph.from_matrix(uneven_weights())


@pytest.fixture
def connected_graph():
    return AffinityGraph.from_matrix(uneven_weights()[:6, :6])


@pytest.fixture
def signed_graph():
    """A balanced component (0-3: friends within, foes between), an unbalanced triangle (4-6), and 7 isolated."""
    W = np.zeros((8, 8))
    edges = {(0, 1): 1.0, (2, 3): 2.0, (0, 2): -0.5, (1, 3): -1.5, (4, 5): 1.0, (5, 6): 1.0, (4, 6): -1.0}
    for (i, j), w in edges.items():
        W[i, j] = W[j, i] = w
    return AffinityGraph.from_matrix(W, signed=True)


@pytest.fixture(params=list(BACKENDS))
def backend(request):
    """NumPy data to an array of the back end."""
    return BACKENDS[request.param]


@pytest.fixture(params=[name for name in BACKENDS if name != "numpy"])
def foreign(request):
    """The same, for the back ends other than NumPy."""
    return BACKENDS[request.param]
