import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import FullGraph, KNNGraph, RadiusGraph
from fiedler.core.sparse import to_scipy
from fiedler.errors import InputError
from fiedler.graph.kernels import KERNELS
from toys import BACKENDS

BANDWIDTH, DEGREE = 0.8, 3


def printed(weight, x, y, s_x, s_y):
    """The formulas as the papers print them, one pair at a time."""
    sq_distance = sum((a - b) ** 2 for a, b in zip(x, y))
    dot = sum(a * b for a, b in zip(x, y))
    return {
        "binary": 1.0,
        "heat": np.exp(-sq_distance / (2 * BANDWIDTH**2)),
        "dot": dot,
        "polynomial": (dot + 1) ** DEGREE,
        "cosine": dot / np.sqrt(sum(a * a for a in x) * sum(b * b for b in y)),
        "local": np.exp(-sq_distance / (s_x * s_y)),
    }[weight]


@pytest.fixture
def points(rng):
    return rng.uniform(0.1, 2, size=(25, 4))


@pytest.mark.parametrize("recipe", [KNNGraph(5), RadiusGraph(1.2), FullGraph()], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("weight", list(KERNELS))
@pytest.mark.parametrize("container", ["sparse", *BACKENDS])
def test_every_edge_has_the_printed_weight(recipe, weight, container, points, request):
    X = sp.csr_array(points) if container == "sparse" else BACKENDS[container](points)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    scales = np.sort(distances, axis=1)[:, 7]  # position 0 is the point itself

    graph = recipe.set_params(weight=weight, bandwidth=BANDWIDTH, degree=DEGREE).build(X)

    W = to_scipy(graph.weights).toarray()
    i, j = np.nonzero(W)
    assert len(i) > 50
    expected = [printed(weight, points[a], points[b], scales[a], scales[b]) for a, b in zip(i, j)]
    assert_allclose(W[i, j], expected, rtol=1e-9)
    assert (W == W.T).all()
    assert np.diag(W).sum() == 0


def test_the_default_bandwidth_is_the_median_neighbour_distance(points):
    graph = KNNGraph(3, weight="heat").build(points)

    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    edges = distances[graph.weights.toarray() > 0]
    assert_allclose(graph.constants.bandwidth, np.median(edges))


def test_local_weights_of_seven_copies_are_one():
    X = np.concatenate([np.zeros((9, 2)), np.random.RandomState(0).normal(size=(20, 2)) + 3])

    W = KNNGraph(9, weight="local").build(X).weights.toarray()

    assert_allclose(W[:9, :9], 1 - np.eye(9))
    assert W[:9, 9:].sum() == 0


def test_heat_on_duplicates_needs_a_bandwidth():
    with pytest.raises(InputError, match=r"median neighbour distance is 0 .* set bandwidth to") as caught:
        KNNGraph(2, weight="heat").build(np.zeros((6, 2)))
    assert caught.value.code == "zero_bandwidth"


def test_cosine_of_a_zero_row_is_zero():
    W = FullGraph(weight="cosine").build([[1.0, 0], [1, 1], [0, 0]]).weights.toarray()

    assert_allclose(W, [[0, 0.5**0.5, 0], [0.5**0.5, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("weight", ["dot", "cosine"])
def test_negative_weights_raise_unless_signed(weight):
    X = np.array([[1.0, 0.2], [-1, 0.1], [0.3, 1]])
    with pytest.raises(ValueError, match=rf"weight='{weight}' gives negative weights .* or signed=True"):
        FullGraph(weight=weight).build(X)

    assert FullGraph(weight=weight, signed=True).build(X).weights.min() < 0


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (KNNGraph(weight="gauss"), r"weight='gauss' is not known; choose one of \['binary', 'heat'"),
        (KNNGraph(weight="heat", bandwidth=-1), "bandwidth must be a positive number; got -1"),
        (KNNGraph(weight="polynomial", degree=1.5), "degree must be an integer of at least 1; got 1.5"),
        (KNNGraph(weight="polynomial", degree=2000), "weight='polynomial' overflows on this data"),
    ],
)
def test_invalid_options_raise(recipe, message, points):
    with pytest.raises(ValueError, match=message):
        recipe.build(points)
