"""Clusterability: near zero for a single cloud, above the thresholds where there are clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

import fiedler
from fiedler import KNNGraph, ManifoldClustering, choose_n_clusters
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import blobs, circles, two_moons
from fiedler.graph.recipes import self_tuned
from fiedler.manifold import one_cluster as module
from fiedler.manifold.one_cluster import (
    CLEAR_VALLEY,
    HIGH_CLUSTERABILITY,
    MIN_CLUSTERABILITY,
    MIN_DIP,
    MIN_UNROLLED,
    MIN_VALLEY,
    MODE_RADIUS,
    Clusterability,
    clusterability,
    count_modes,
    cut_angles,
    dip,
    dip_scale,
    draw_gaussian,
    draw_ring,
    error_probability,
    evidence_against_one,
    loop_spread,
    positions,
    principal_axes,
    unrolled_coordinates,
)

SHAPES = {
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "Gaussian": lambda rng, n, d: rng.normal(size=(n, d)) * np.arange(1, d + 1),
    "heavy tails": lambda rng, n, d: rng.standard_t(5, size=(n, d)),
}


def seeded(seed=0):
    return np.random.RandomState(seed)


def graph_of(rows):
    return self_tuned(9, connect="mst").build(rows)


def unrolled_axes(rows, graph, rng):
    return unrolled_coordinates(rows, graph, rng).std(axis=0)


def ring(rng, n, width=0.05):
    return draw_ring(width, np.empty((n, 2)), rng)


# --------------------------------------------------------------------------------------------------- the two statistics


@pytest.mark.parametrize("d", [2, 10, 50])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_single_cloud_is_not_clusterable(shape, d):
    for seed in range(4):
        structure = clusterability(SHAPES[shape](seeded(seed), 300, d), seeded(seed))
        assert structure.plain < MIN_CLUSTERABILITY
        assert structure.unrolled < MIN_UNROLLED


@pytest.mark.parametrize("make", [blobs, two_moons, circles])
def test_clusters_are_clusterable(make):
    for seed in range(3):
        X, _ = make(400, noise=0.05, random_state=seed)
        structure = clusterability(X, seeded(seed))
        assert structure.plain > MIN_CLUSTERABILITY
        assert structure.unrolled > MIN_UNROLLED


def test_they_are_the_printed_differences(rng, monkeypatch):
    """max_K [mean_b log λ_K(b) - log λ_K], K = 2..8, here with draws that are given."""
    X = rng.normal(size=(80, 3))
    drawn = [[rng.normal(size=(80, 3)) * [scale, 1, 1] for _ in range(module.N_DRAWS)] for scale in (1, 4)]
    iterator = iter([*drawn[0], *drawn[1]])
    monkeypatch.setattr(module, "draw_gaussian", lambda *args: next(iterator))

    def log_values(rows):
        values = smallest_eigenpairs(graph_of(rows), 8).values[1:]
        return np.log(np.maximum(values, 1e-4))

    expected = [np.max(np.mean([log_values(rows) for rows in some], axis=0) - log_values(X)) for some in drawn]

    assert_allclose(clusterability(X, seeded())[:2], expected, rtol=1e-5)


@pytest.mark.parametrize("axes", [[3.0], [2.0, 2.0, 2.0], [4.0, 2.0, 1.0]])
def test_the_number_of_axes_is_the_printed_quotient(axes, rng, monkeypatch):
    """(Σ a²)² / Σ a⁴, which is k for k equal axes."""
    coordinates = np.tile([[1.0], [-1.0]], (30, 1)) * axes
    monkeypatch.setattr(module, "unrolled_coordinates", lambda *args: coordinates)

    n_axes = clusterability(rng.normal(size=(60, 2)), seeded()).n_axes

    assert n_axes == pytest.approx(sum(a**2 for a in axes) ** 2 / sum(a**4 for a in axes))


def test_the_axes_are_those_of_the_rows_and_of_the_unrolled_rows(rng, monkeypatch):
    X, used = rng.normal(size=(80, 3)), []
    original = draw_gaussian
    monkeypatch.setattr(module, "draw_gaussian", lambda axes, *args: used.append(axes) or original(axes, *args))

    clusterability(X, seeded())

    assert len(used) == 2 * module.N_DRAWS
    assert_allclose(used[0], principal_axes(X))
    for axes in used[module.N_DRAWS :]:
        assert_allclose(axes, used[-1])
    assert len(used[-1]) > 3  # distances along a graph are not Euclidean


def test_an_arc_and_a_roll_have_more_structure_than_their_principal_axes_only(fixed_rng):
    """Unrolled they have hardly more than a cloud."""
    angles, heights = fixed_rng.uniform(4.7, 14, 800), fixed_rng.uniform(0, 10, 800)
    arc = np.stack([np.cos(angles[:400] / 4), np.sin(angles[:400] / 4)], axis=1)
    roll = np.stack([angles * np.cos(angles), heights, angles * np.sin(angles)], axis=1)

    for X in (arc, roll):
        structure = clusterability(X, seeded())
        assert structure.unrolled < min(structure.plain, MIN_UNROLLED)
    assert clusterability(roll, seeded()).plain > MIN_CLUSTERABILITY


def test_rotation_shift_and_scale_do_not_matter(rng):
    X = rng.normal(size=(200, 4)) * [5, 1, 1, 0.2]
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    first, second = (clusterability(rows, seeded()) for rows in (X, 30 * X @ rotation + 7))
    assert_allclose(first, second, atol=1e-4)


def test_single_precision_far_from_the_origin():
    X, _ = two_moons(400, noise=0.05, random_state=0)
    shifted = (X + 1000).astype(np.float32)

    assert_allclose(principal_axes(shifted), principal_axes(X), rtol=1e-3)
    assert_allclose(unrolled_axes(shifted, graph_of(X), seeded()), unrolled_axes(X, graph_of(X), seeded()), rtol=0.02)
    structure = clusterability(shifted, seeded())
    assert structure.plain > MIN_CLUSTERABILITY
    assert structure.unrolled > MIN_UNROLLED


def test_repeated_rows_count_once(rng):
    """Rounded measurements, of which most are repeated."""
    X = np.round(2 * rng.normal(size=(500, 2)))
    assert clusterability(X, seeded()).plain < MIN_CLUSTERABILITY


def test_sparse_and_dense_rows_agree(rng):
    X = np.where(rng.uniform(size=(150, 12)) < 0.4, rng.normal(size=(150, 12)), 0)

    assert_allclose(clusterability(sp.csr_array(X), seeded()), clusterability(X, seeded()), atol=1e-3)


def test_back_ends_agree(backend):
    X, _ = two_moons(200, random_state=0)
    expected = clusterability(X.astype(np.float32), seeded())
    assert_allclose(clusterability(backend(X.astype(np.float32)), seeded()), expected, atol=0.02)


def test_few_distinct_rows_say_nothing(rng):
    assert clusterability(rng.normal(size=(19, 2)), seeded()) is None
    assert clusterability(np.repeat(rng.normal(size=(10, 2)), 5, axis=0), seeded()) is None


# ------------------------------------------------------------------------------------------------------------- the axes


@pytest.mark.parametrize("shape", [(50, 4), (20, 70)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_draws_have_the_principal_axes_of_the_rows(shape, kind, rng):
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1])) + 3
    axes = principal_axes(kind(X))
    expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) / np.sqrt(len(X))

    assert_allclose(axes, expected[: min(shape[1], shape[0] - 1)], rtol=1e-6)
    many = draw_gaussian(axes, np.zeros((20_000, 1)), seeded())
    assert_allclose(many.std(axis=0), axes, rtol=0.05)


@pytest.mark.parametrize("angle", [1.0, 3.0, 5.5])
def test_an_unrolled_arc_is_as_long_as_the_arc(angle, rng):
    angles = rng.uniform(0, angle, 400)
    arc = 7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)

    axes = unrolled_axes(arc, graph_of(arc), seeded())

    assert_allclose(axes, [7 * angles.std()], rtol=0.01)


def test_an_unrolled_roll_is_as_long_as_its_spiral(rng):
    """√(1 + t²) dt along a spiral t (cos t, sin t); paths along a graph are a tenth longer at most."""
    t, heights = rng.uniform(4.7, 14, 900), rng.uniform(0, 20, 900)
    roll = np.stack([t * np.cos(t), heights, t * np.sin(t)], axis=1)
    along = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2

    axes = unrolled_axes(roll, graph_of(roll), seeded())

    assert_allclose(axes[:2], [along.std(), heights.std()], rtol=0.15)
    assert axes[2] < 0.1 * axes[0]


def test_a_flat_sheet_keeps_its_axes(rng):
    sheet = rng.uniform(size=(600, 2)) * [4, 1]

    axes = unrolled_axes(sheet, graph_of(sheet), seeded())

    assert_allclose(axes[:2], sheet.std(axis=0), rtol=0.15)
    assert axes[2] < 0.15 * axes[0]


def test_the_unrolled_rows_are_those_of_classical_scaling(rng, monkeypatch):
    """-1/2 J D∘D J = V Λ V' with all rows as landmarks: coordinates V √Λ, of which the variance is Λ / n."""
    X = rng.normal(size=(40, 3)) * [3, 2, 1]
    graph = graph_of(X)
    monkeypatch.setattr(module, "N_LANDMARKS", 40)
    lengths = np.where(graph.weights.toarray() > 0, cdist(X, X), 0)
    D, J = dijkstra(lengths), np.eye(40) - 1 / 40
    values = np.linalg.eigvalsh(-0.5 * J @ D**2 @ J)[::-1]

    expected = np.sqrt(values[:20][values[:20] > 1e-3 * values[0]] / 40)

    assert_allclose(unrolled_axes(X, graph, seeded()), expected, rtol=1e-5)
    assert_allclose(unrolled_axes(sp.csr_array(X), graph, seeded()), expected, rtol=1e-5)


def test_the_unrolled_coordinates_of_all_rows_have_the_distances_along_the_graph(rng):
    """Of rows on a line they are the rows themselves, up to a shift and a reflection."""
    X = np.sort(rng.uniform(size=(60, 1)), axis=0)

    unrolled = unrolled_coordinates(X, graph_of(X), seeded())

    assert unrolled.shape == (60, 1)
    assert_allclose(abs(unrolled[:, 0] - unrolled[0, 0]), X[:, 0] - X[0, 0], atol=1e-6)


# --------------------------------------------------------------------------------------------------------- closed loops


def test_a_ring_is_a_loop_with_the_width_of_its_radius(fixed_rng):
    X = ring(fixed_rng, 800)
    radius = np.hypot(*X.T)

    structure = clusterability(X, seeded())

    assert loop_spread(X) == pytest.approx(radius.std() / radius.mean(), rel=0.05)
    assert structure.is_loop
    assert structure.unrolled < MIN_UNROLLED


@pytest.mark.parametrize("shape", ["disc", "arc", "line"])
def test_other_shapes_are_no_loops(shape, fixed_rng):
    shapes = {
        "disc": fixed_rng.normal(size=(500, 2)),
        "arc": ring(fixed_rng, 1000),
        "line": fixed_rng.uniform(size=(500, 1)),
    }
    rows = shapes[shape]
    rows = rows[rows[:, 0] > 0] if shape == "arc" else rows
    assert loop_spread(rows) is None


def test_a_drawn_ring_has_the_given_width(fixed_rng):
    radius = np.hypot(*ring(fixed_rng, 20_000, 0.1).T)

    assert_allclose([radius.mean(), radius.std()], [1, 0.1], rtol=0.02)


# -------------------------------------------------------------------------------------------------------------- the dip


def dip_by_definition(values):
    """The smallest distance of a unimodal distribution, by one linear program for each mode.

    It is described by its value at each of m different values, and by two at the mode, where it may jump; the last
    unknown is the distance.
    """
    x, counts = np.unique(values, return_counts=True)
    m, above = len(x), np.cumsum(counts) / counts.sum()
    below, unit, distances = above - counts / counts.sum(), np.eye(len(x) + 2), []
    for mode in range(m):
        constraints = [(unit[j] - unit[j + 1], 0) for j in range(m)]  # it increases
        for j in range(m + 1):
            i = j if j <= mode else j - 1
            high, low = (below[i] if j == mode else above[i]), (above[i] if j == mode + 1 else below[i])
            constraints += [(unit[j] - unit[-1], low), (-unit[j] - unit[-1], -high)]
        for i in range(1, m - 1):
            if i != mode:  # convex before the mode, concave after it
                j = i if i < mode else i + 1
                slopes = [(unit[j + s] - unit[j + s - 1]) / (x[i + s] - x[i + s - 1]) for s in (0, 1)]
                constraints.append(((slopes[0] - slopes[1]) * (1 if i < mode else -1), 0))
        matrix, limits = map(np.array, zip(*constraints))
        distances.append(linprog(unit[-1], matrix, limits, bounds=(0, 1)).fun)
    return min(distances)


@pytest.mark.parametrize("seed", range(4))
def test_the_dip_is_the_distance_of_the_nearest_unimodal_distribution(seed):
    rng = seeded(seed)
    for n in (1, 2, 5, 9, 14):
        for values in (rng.normal(size=n), rng.randint(6, size=n).astype(float), rng.normal(size=n) ** 3):
            assert dip(values) == pytest.approx(dip_by_definition(values), abs=1e-7)


def test_the_dip_of_known_samples(fixed_rng):
    assert dip(np.arange(50)) == pytest.approx(1 / 100)
    assert dip(np.repeat([0.0, 1.0], 30)) == pytest.approx(1 / 4)
    assert dip(np.repeat([0.0, 1.0], 300) + 1e-3 * fixed_rng.uniform(size=600)) == pytest.approx(1 / 4, abs=0.01)
    assert dip(np.zeros(9)) == 0


def test_the_dip_does_not_depend_on_order_sign_and_scale(fixed_rng):
    values = np.append(fixed_rng.normal(size=60), fixed_rng.normal(size=40) + 4)

    for changed in (values[::-1], -values, 1e9 * values + 3, 1e-9 * values):
        assert dip(changed) == pytest.approx(dip(values), rel=1e-6)


def test_the_dip_of_uniform_rows_is_rarely_above_its_threshold_and_that_of_others_less():
    """In three of 1,000 samples: more than three of these 200 would come about once in 250 runs."""
    shapes = {
        "uniform": lambda rng: rng.uniform(size=150),
        "Gaussian": lambda rng: rng.normal(size=150),
        "exponential": lambda rng: rng.exponential(size=150),
        "around a circle": lambda rng: cut_angles(ring(rng, 150)),
    }
    relative = {
        name: [dip_scale(150) * dip(draw(seeded(i))) / MIN_DIP for i in range(200)] for name, draw in shapes.items()
    }

    assert all(sum(value > 1 for value in values) <= 3 for values in relative.values())
    assert np.median(relative["uniform"]) > max(np.median(relative[name]) for name in ("Gaussian", "exponential"))


@pytest.mark.parametrize(("n_groups", "distance"), [(1, 0), (2, 4), (3, 4), (4, 6)])
def test_the_modes_of_groups_on_a_line_are_counted(n_groups, distance):
    """In nearly all samples: in at least 18 of 20."""
    radius, numbers = MODE_RADIUS / dip_scale(600), []
    for seed in range(20):
        groups = seeded(seed).randint(n_groups, size=600)
        numbers.append(count_modes(seeded(seed).normal(size=600) + distance * groups, radius))

    assert numbers.count(n_groups) >= 18


@pytest.mark.parametrize("seed", range(3))
def test_a_wider_distance_permits_fewer_modes(seed):
    values = seeded(seed).normal(size=80) + 4 * seeded(seed).randint(3, size=80)
    radii = [0.001, 0.01, 0.03, 0.1, 0.3]

    numbers = [count_modes(values, radius) for radius in radii]

    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 3
    assert numbers[-1] == 1
    assert [count_modes(-7 * values, radius) for radius in radii] == numbers
    assert all(n > 1 for n, radius in zip(numbers, radii) if radius < dip(values))


def test_positions_along_a_line_are_those_of_its_direction_where_paths_come_in_steps(fixed_rng):
    """In many dimensions neighbours are as far apart as the noise is."""
    along, direction = fixed_rng.uniform(size=500), fixed_rng.normal(size=30)
    X = along[:, None] * direction + 0.1 * fixed_rng.normal(size=(500, 30)) + 7
    stepped = np.round(20 * along)[:, None] * [1.0, 0.0]

    for rows in (X, sp.csr_array(X)):
        found = positions(rows, stepped, False)
        assert dip(found) < 0.5 * dip(stepped[:, 0])
        assert abs(np.corrcoef(found, along)[0, 1]) > 0.98
    assert_allclose(positions(X, stepped[::-1] * 1e200, False), positions(X, stepped[::-1], False), atol=1e-9)


@pytest.mark.parametrize("turn", [0.0, 0.3, 0.8])
def test_a_circle_is_cut_where_it_is_emptiest_and_measured_from_its_centre(turn, fixed_rng):
    """Also if most rows are on one side, so that their mean is not the centre."""
    turns = np.append(fixed_rng.uniform(0, 0.3, 150), fixed_rng.uniform(0.3, 0.9, 50))
    X = np.stack([np.cos(2 * np.pi * (turns + turn)), np.sin(2 * np.pi * (turns + turn))], axis=1)

    angles = np.sort(cut_angles(5 * X + [2, 7]))

    gap = 1 - np.ptp(turns)
    assert_allclose(np.diff(angles), np.diff(np.sort(turns)), atol=1e-9)
    assert angles[0] == pytest.approx(gap / 2, abs=0.06)


# ----------------------------------------------------------------------------------------------------------- the rule


ABOVE, FLAT = MIN_CLUSTERABILITY + 0.01, MIN_CLUSTERABILITY - 0.01


@pytest.mark.parametrize(
    ("structure", "valley", "dimension", "is_one"),
    [
        ((FLAT, 9, 2.0), 0.0, 2, True),
        ((ABOVE, MIN_UNROLLED + 0.01, 2.0), 0.0, 2, False),  # more than a cloud, and than a curve
        ((ABOVE, MIN_UNROLLED - 0.01, 2.0), 0.0, 2, True),  # an arc
        ((ABOVE, 0, 9.0), 0.0, 2, True),  # tails of few dimensions
        ((ABOVE, 0, 9.0), 0.0, 6, False),
        ((HIGH_CLUSTERABILITY + 0.01, 0, 9.0), 0.0, 2, False),
        ((FLAT, 0, 2.0), MIN_VALLEY + 0.01, 2, False),  # a valley in a cloud
        ((FLAT, 0, 1.4), MIN_VALLEY + 0.01, 1, True),  # along a line
        ((FLAT, 0, 2.0, True), MIN_VALLEY + 0.01, 2, True),  # around a loop
        ((FLAT, 0, 1.4, False, MIN_DIP + 0.01), 0.0, 1, False),  # several modes along a line
        ((FLAT, 0, 1.4, False, MIN_DIP - 0.01), 0.0, 1, True),
        ((FLAT, 0, 2.0, True, MIN_DIP + 0.01), 0.0, 2, False),  # around a loop
        ((FLAT, 0, 2.0, False, MIN_DIP + 0.01), 0.0, 2, True),  # of other rows it says nothing
        ((ABOVE, 0, 1.4), CLEAR_VALLEY + 0.01, 3, False),
        ((ABOVE, 0, 1.4), CLEAR_VALLEY + 0.01, 2, True),
    ],
)
def test_one_cluster_is_the_absence_of_structure_and_of_valleys(structure, valley, dimension, is_one):
    assert (evidence_against_one(Clusterability(*structure), valley, dimension) <= 1) is is_one


def test_the_evidence_is_relative_to_the_thresholds():
    structure = Clusterability(2 * MIN_CLUSTERABILITY, 1.5 * MIN_UNROLLED, 2.0)

    assert evidence_against_one(structure, 0.0, 2) == pytest.approx(1.5)
    assert evidence_against_one(structure, 3 * MIN_VALLEY, 2) == pytest.approx(3)
    assert evidence_against_one(Clusterability(0, 0, 1.0, dip=3 * MIN_DIP), 0.0, 1) == pytest.approx(9)
    assert evidence_against_one(Clusterability(-1, 0, 2.0), -1, 2) == 0


def test_the_probability_of_an_error_is_five_percent_at_the_threshold():
    assert [error_probability(evidence) for evidence in (0, 1, 2)] == pytest.approx([1, 0.05, 0.0025])


def test_the_p_value_of_single_clouds_is_about_uniform(fixed_rng):
    """More draws, of other shapes, are measured by benchmarks/quality_count.py single."""
    values = [choose_n_clusters(fixed_rng.normal(size=(150, 2))).p_value for _ in range(12)]

    assert 0.2 < np.median(values) <= 1
    assert min(values) > 1e-3
    far = choose_n_clusters(np.r_[fixed_rng.normal(size=(100, 2)), fixed_rng.normal(size=(100, 2)) + 40])
    assert far.p_value < 0.05


GROUPS = np.array([[0, 0], [0.6, 0.8], [1.2, 1.6]])


@pytest.mark.parametrize(("distance", "n_groups"), [(5, 2), (4, 3), (5, 3), (6, 3)])
def test_groups_on_a_line_are_found_without_gaps(distance, n_groups):
    rng = seeded(1)
    X = rng.normal(size=(400, 2)) + distance * GROUPS[rng.randint(n_groups, size=400)]

    choice = choose_n_clusters(X, [1, 2, 3, 4])

    assert (choice.n_clusters, choice.by, choice.n_separated) == (n_groups, "modes", 1)
    assert choice.p_value < 0.01
    assert choice.sentence.startswith(f"{n_groups} clusters, the modes along a line or a loop.")


def test_groups_around_a_loop_are_found(fixed_rng):
    turns = np.append(np.repeat([0.1, 0.4, 0.7], 120) + 0.05 * fixed_rng.normal(size=360), fixed_rng.uniform(size=90))
    X = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)
    X *= 1 + 0.05 * fixed_rng.normal(size=(450, 1))

    choice = choose_n_clusters(X, [1, 2, 3])

    assert clusterability(X, seeded()).is_loop
    assert (choice.n_clusters, choice.by) == (3, "modes")


def test_the_number_of_modes_is_chosen_among_the_candidates():
    rng = seeded(1)
    X = rng.normal(size=(400, 2)) + 5 * GROUPS[rng.randint(3, size=400)]

    assert choose_n_clusters(X, [1, 4, 6]).n_clusters == 4


# ------------------------------------------------------------------------------------------------------ the one cluster


def test_auto_answers_one_where_there_is_no_structure(fixed_rng):
    X = fixed_rng.normal(size=(300, 2))
    labels, memberships, model = fiedler.cluster(X, random_state=0)

    assert (model.n_clusters_, model.evidence_.n_clusters, model.evidence_.by) == (1, 1, "one cluster")
    assert memberships.shape == (300, 1)
    assert set(labels) == {0}
    assert model.report().startswith("No clusters found; give n_clusters to split the rows anyway.")
    assert "clusterability 0." in str(model.evidence_)
    assert choose_n_clusters(X, estimator=KMeans()).n_clusters == 1
    assert choose_n_clusters(X, range(2, 8)).n_clusters > 1  # one is not among the candidates
    assert choose_n_clusters(X, [1, 2]).n_clusters == 1
    assert choose_n_clusters(two_moons(200, random_state=0)[0], [1, 2]).n_clusters == 2
    assert ManifoldClustering(max_clusters=2, random_state=0).fit(X).n_clusters_ == 1


def test_one_is_not_considered_with_labels_graphs_or_few_rows(rng):
    X = rng.uniform(size=(120, 2))
    y = np.where(np.arange(120) < 5, np.arange(120) % 2, -1)
    models = [
        ManifoldClustering(max_clusters=3, random_state=0).fit(X, y),
        ManifoldClustering(graph=KNNGraph(9, connect="mst"), max_clusters=3, random_state=0).fit(X),
        ManifoldClustering(max_clusters=3, random_state=0).fit(KNNGraph(9, connect="mst").build(X)),
        ManifoldClustering(max_clusters=3, random_state=0).fit(X[:19]),
    ]
    assert [model.evidence_.clusterability for model in models] == [None] * 4
    assert min(model.n_clusters_ for model in models) >= 2
