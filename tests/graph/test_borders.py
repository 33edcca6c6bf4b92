"""Thin borders separate groups of any number, size, density and shape, and nothing else does."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.datasets import make_circles, make_moons, make_swiss_roll
from sklearn.metrics import adjusted_rand_score

from fiedler import AffinityGraph
from fiedler.graph import borders as module
from fiedler.graph.borders import (
    Split,
    find_cells,
    merge_cells,
    separated_groups,
    strong_links,
    thinness,
    thinnest_cut,
)
from fiedler.graph.recipes import as_affinity, default_recipe
from toys import uneven_weights


def separate(X):
    """The groups of rows that gaps separate in their default graph."""
    graph = as_affinity(default_recipe(X.shape[0], connect="mst"), X)
    return separated_groups(graph, np.random.RandomState(0))


def assert_groups_are(found, truth):
    """Every true group is found; hardly any row is an outlier."""
    assert found.n_groups == len(np.unique(truth)) == found.labels.max() + 1
    assert np.mean(found.labels < 0) < 0.02
    assert adjusted_rand_score(truth[found.labels >= 0], found.labels[found.labels >= 0]) == 1


def path(n):
    """A line of nodes, each linked to the next."""
    return sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()


def two_cliques(n):
    """Two cliques of n nodes, joined by one edge."""
    W = np.kron(np.eye(2), np.ones((n, n)) - np.eye(n))
    W[n - 1, n] = W[n, n - 1] = 1
    return sp.csr_array(W)


# ------------------------------------------------------------------------------------------------- links and borders


def test_thinness_is_the_printed_quotient():
    """(b + 1/2) / (c + 1/2), and 0 without a link."""
    links, cuts = np.array([0.0, 1.0, 3.0, 8.0]), np.array([0.0, 9.0, 2.0, 8.0])

    assert_allclose(thinness(links, cuts), [0, 1.5 / 9.5, 3.5 / 2.5, 1])


@pytest.mark.parametrize(("links", "cut"), [(0, 0), (1, 9), (2, 9), (2, 15), (12, 60), (60, 60)])
def test_a_gap_is_thin_and_not_by_chance(links, cut):
    """b = 0, or thinness < 1/4 and 2 (√(c + 1/2) - √(b + 1/2)) > 3."""
    split = Split((links + 0.5) / (cut + 0.5), links, cut)
    z = 2 * (math.sqrt(cut + 0.5) - math.sqrt(links + 0.5))

    assert split.z == pytest.approx(z)
    assert split.is_gap == (links == 0 or ((links + 0.5) / (cut + 0.5) < 0.25 and z > 3))


def test_the_p_value_of_a_border_is_the_normal_tail():
    split = Split(0.1, 3, 40)

    assert_allclose(split.p_value, norm.sf(2 * (np.sqrt(40.5) - np.sqrt(3.5))))
    assert Split(1.0, 40, 40).p_value == 0.5


def test_strong_links_are_those_of_both_ends():
    """w_ij ≥ exp(-5) max(max_k w_ik, max_k w_jk)."""
    W = uneven_weights()
    W[3, 4] = W[4, 3] = 3.0 * np.exp(-5.1)  # too weak for 3, not for 4
    W[4, 5] = W[5, 4] = W[3, 4] * np.exp(-4.9)
    n = len(W)

    literal = [
        [W[i, j] > 0 and W[i, j] >= np.exp(-5) * max(W[i].max(), W[j].max()) for j in range(n)] for i in range(n)
    ]

    links = strong_links(sp.csr_array(W)).toarray()
    assert_array_equal(links, np.array(literal, dtype=float))
    assert (links[3, 4], links[4, 5]) == (0, 1)


@pytest.mark.parametrize("n", [4, 10, 41])
def test_one_link_is_the_thinnest_cut_of_a_path(n):
    assert thinnest_cut(path(n)) == 1


def test_one_edge_is_the_thinnest_cut_of_two_cliques():
    assert thinnest_cut(two_cliques(7)) == 1


@pytest.mark.parametrize("n", [8, 20])
def test_the_thinnest_cut_of_a_clique_leaves_the_least_share(n):
    """Of n nodes at least a tenth are on each side, and s nodes have s (n - s) links to the others."""
    side = math.ceil(module.MIN_SHARE * n)

    assert thinnest_cut(sp.csr_array(np.ones((n, n)) - np.eye(n))) == side * (n - side)


def test_a_group_of_two_parts_has_a_cut_of_no_link():
    assert thinnest_cut(sp.csr_array(np.kron(np.eye(2), np.ones((5, 5)) - np.eye(5)))) == 0


def test_a_cut_counts_all_links_between_supernodes():
    W = 3 * two_cliques(7)

    assert thinnest_cut(W) == 3 * thinnest_cut(two_cliques(7))


def test_cells_merge_until_a_gap_is_left():
    """Two cliques of 30 nodes, each of three cells, joined by one edge."""
    cells = np.repeat(np.arange(6), 10)

    labels, thickest = merge_cells(two_cliques(30), cells)

    assert_array_equal(labels, np.repeat([0, 1], 30))
    cut = thinnest_cut(two_cliques(30)[:30, :30])
    assert thickest == Split(1.5 / (cut + 0.5), 1, cut)


def test_cells_of_a_path_merge_to_one_group():
    labels, thickest = merge_cells(path(60), np.repeat(np.arange(6), 10))

    assert set(labels) == {0}
    assert thickest is None


def test_cells_are_small_connected_and_all_used(fixed_rng):
    graph = as_affinity(default_recipe(600, connect="mst"), fixed_rng.normal(size=(600, 2)))

    cells = find_cells(graph, np.random.RandomState(0))

    assert_array_equal(np.unique(cells), np.arange(cells.max() + 1))
    assert np.bincount(cells).max() < 60
    assert 0.5 < (cells.max() + 1) / (600 / module.NODES_PER_CELL) < 1.5


# ------------------------------------------------------------------------------------------- groups that are separated


def uneven(rng, *groups):
    """Gaussian groups, each with a centre, a standard deviation and a number of rows."""
    rows = [np.array(centre) + scale * rng.normal(size=(n, len(centre))) for centre, scale, n in groups]
    return np.concatenate(rows), np.repeat(np.arange(len(groups)), [n for *_, n in groups])


SEPARATED = {
    "sizes 15:1 and densities 900:1": [((0, 0), 1, 600), ((15, 0), 0.1, 200), ((0, 20), 3, 150), ((15, 15), 0.5, 40)],
    "990 and 10 rows": [((0, 0), 1, 990), ((12, 0), 1, 10)],
    "40 standard deviations": [((0, 0, 0), 1, 200), ((40, 0, 0), 1, 200)],
    "1,000 standard deviations": [((0, 0, 0), 1, 200), ((1000, 0, 0), 1, 200)],
    "one dimension": [((10,), 1, 100), ((500,), 20, 100)],
    "ten dimensions": [(tuple(10 * row), 1, 60) for row in np.eye(10)[:5]],
}


@pytest.mark.parametrize("name", list(SEPARATED))
@pytest.mark.parametrize("seed", range(3))
def test_groups_of_any_size_density_and_distance_are_separated(name, seed):
    X, truth = uneven(np.random.RandomState(seed), *SEPARATED[name])

    assert_groups_are(separate(X), truth)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: make_moons(2000, noise=0.05, random_state=seed),
        lambda seed: make_circles(800, noise=0.03, factor=0.4, random_state=seed),
    ],
    ids=["moons", "rings"],
)
def test_long_groups_are_separated(make, seed):
    X, truth = make(seed)

    assert_groups_are(separate(X), truth)


def ring(n, noise, rng):
    angles = rng.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) + noise * rng.normal(size=(n, 2))


CONNECTED = {
    "Gaussian": lambda rng: rng.normal(size=(500, 3)),
    "heavy tails": lambda rng: rng.standard_t(3, size=(500, 2)),
    "cube": lambda rng: rng.uniform(size=(500, 2)),
    "ring": lambda rng: ring(500, 0.05, rng),
    "Swiss roll": lambda rng: make_swiss_roll(1000, random_state=rng)[0],
}


@pytest.mark.parametrize("name", list(CONNECTED))
@pytest.mark.parametrize("seed", range(3))
def test_one_cloud_is_one_group(name, seed):
    assert separate(CONNECTED[name](np.random.RandomState(seed))).n_groups == 1


def test_groups_that_touch_are_not_separated(fixed_rng):
    X, _ = uneven(fixed_rng, ((0, 0), 1, 300), ((3, 0), 1, 300))

    assert separate(X).n_groups == 1


def test_outliers_are_no_group(fixed_rng):
    X, truth = uneven(fixed_rng, ((0, 0), 1, 200), ((20, 0), 1, 200), ((200, 200), 0.1, module.MIN_GROUP_SIZE - 1))

    found = separate(X)

    assert found.n_groups == 2
    assert set(found.labels[truth == 2]) == {-1}


# ---------------------------------------------------------------------------------------------------------- invariance


def test_row_order_scale_and_rotation_do_not_matter(fixed_rng):
    X, truth = uneven(fixed_rng, *SEPARATED["sizes 15:1 and densities 900:1"])
    order = fixed_rng.permutation(len(X))
    turn = np.array([[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]])

    for rows, labels in ((X[order], truth[order]), (1e6 * X, truth), (1e-6 * X, truth), (X @ turn + 5, truth)):
        assert_groups_are(separate(rows), labels)


def test_a_factor_on_all_weights_does_not_matter(fixed_rng):
    X, _ = uneven(fixed_rng, *SEPARATED["990 and 10 rows"])
    graph = as_affinity(default_recipe(len(X), connect="mst"), X)
    twice = AffinityGraph.from_matrix(2 * graph.weights)

    first, second = (separated_groups(one, np.random.RandomState(0)) for one in (graph, twice))

    assert_array_equal(first.labels, second.labels)


def test_large_graphs_are_coarsened_and_agree(monkeypatch, fixed_rng):
    X, truth = uneven(fixed_rng, ((0, 0), 1, 600), ((12, 0), 0.2, 300), ((0, 30), 3, 300))
    curved, sides = make_moons(2000, noise=0.04, random_state=0)
    as_it_is = [separate(rows) for rows in (X, curved)]
    monkeypatch.setattr(module, "MAX_SEARCH_NODES", 1000)
    monkeypatch.setattr(module, "COARSE_NODES", 500)

    coarse = [separate(rows) for rows in (X, curved)]

    for found, labels in zip([*as_it_is, *coarse], [truth, sides, truth, sides]):
        assert_groups_are(found, labels)


def test_back_ends_agree(backend, fixed_rng):
    X, truth = uneven(fixed_rng, ((0, 0), 1, 60), ((20, 0), 1, 60))

    found = separate(backend(X.astype(np.float32)))

    assert isinstance(found.labels, np.ndarray)
    assert_groups_are(found, truth)
