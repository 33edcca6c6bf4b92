import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, subspace_angles

from fiedler import (
    LCGMM,
    NLE,
    AffinityGraph,
    GaussianMixture,
    KNNGraph,
    LandmarkGraph,
    LapGMM,
    LearnedLaplacian,
    SpectralClustering,
)
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.graph.coarsen import contract
from fiedler.graph.constraints import (
    PairwiseConstraints,
    add_constraints,
    group_means,
    overwrite_edges,
    split_by_sign,
)
from fiedler.graph.cuts import cannot_link_eigenpairs
from fiedler.metrics import adjusted_rand_index, normalized_cut, ratio_cut


@pytest.fixture
def pairs():
    return PairwiseConstraints([(0, 1), (0, 2)], [(3, 4)], 10, strength=2.0)


def test_overwritten_links_have_the_largest_weight_or_none(uneven_graph, pairs):
    W, linked = uneven_graph.weights.toarray(), overwrite_edges(uneven_graph, pairs).weights.toarray()
    for i in range(len(W)):
        for j in range(len(W)):
            pair = (min(i, j), max(i, j))
            expected = W.max() if pair in {(0, 1), (0, 2)} else 0 if pair == (3, 4) else W[i, j]
            assert linked[i, j] == expected


def test_links_are_edges_of_either_sign_in_units_of_the_mean_degree(uneven_graph, pairs):
    """w_ij = ½ strength · d̄ · (1/m_i + 1/m_j)."""
    W, graph = uneven_graph.weights.toarray(), add_constraints(uneven_graph, pairs)
    unit = 2.0 * W.sum() / len(W)
    added = graph.weights.toarray() - W
    assert_allclose(added[0, [1, 2]], unit * 0.5 * (1 / 2 + 1 / 1))
    assert graph.weights[3, 4] == pytest.approx(-unit)
    assert_allclose(added, added.T)
    assert np.count_nonzero(added) == 6
    assert graph.signed
    attract, repel = split_by_sign(graph)
    assert_allclose((attract.weights - repel.weights).toarray(), graph.weights.toarray())
    assert min(attract.weights.data.min(), repel.weights.data.min()) > 0


def test_groups_become_nodes_and_keep_volumes(uneven_graph):
    groups = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 3])
    small, W = contract(uneven_graph, groups), uneven_graph.weights.toarray()
    G = np.eye(5)[groups]
    assert_allclose(small.weights.toarray() + np.diag(small.loops), G.T @ W @ G)
    assert_allclose(small.degrees, G.T @ W.sum(axis=1))


def test_group_means(rng):
    values, groups = rng.normal(size=(6, 2)), np.array([0, 1, 0, 2, 1, 0])
    for i in range(6):
        assert_allclose(group_means(values, groups)[i], values[groups == groups[i]].mean(axis=0))


# ---------------------------------------------------------------------------------------------------------- repulsion


@pytest.mark.parametrize("kind", ["random_walk", "combinatorial"])
def test_repelled_eigenvectors_are_those_of_the_generalised_problem(kind, rng):
    """L⁺ v = λ (M + L⁻) v, against LAPACK, for dense and iterative solvers."""
    for n in (60, 700):
        X = rng.normal(size=(n, 3))
        y = (X[:, 0] > 0).astype(int)
        pairs = PairwiseConstraints.from_labels(y, rate=12 / n, random_state=0)
        graph = add_constraints(KNNGraph(8, connect="mst").build(X), pairs)
        attract, repel = (side.laplacian().toarray() for side in split_by_sign(graph))
        degrees = np.diag(attract)
        M = np.diag(degrees) if kind == "random_walk" else degrees.mean() * np.eye(n)
        values, vectors = eigh(attract, M + repel, subset_by_index=(0, 3))
        result = cannot_link_eigenpairs(graph, 4, kind=kind, random_state=0)
        assert_allclose(result.values, values, atol=1e-7)
        assert np.max(subspace_angles(result.vectors, vectors)) < 1e-4


def test_without_repelling_edges_it_is_the_random_walk(rng):
    graph = KNNGraph(8, connect="mst").build(rng.normal(size=(80, 3)))
    plain, none = (
        smallest_eigenpairs(graph, 3, kind="random_walk"),
        cannot_link_eigenpairs(graph, 3, kind="random_walk"),
    )
    assert_allclose(none.values, plain.values, atol=1e-10)
    assert np.max(subspace_angles(none.vectors, plain.vectors)) < 1e-6


# ------------------------------------------------------------------------------------------------------------- models


def crossing(rng, n=160, apart=1.6):
    """Two overlapping clouds."""
    y = np.arange(n) % 2
    return np.column_stack([apart * y, np.zeros(n)]) + rng.normal(scale=[0.7, 1.5], size=(n, 2)), y


def models():
    return [
        SpectralClustering(2, KNNGraph(8), random_state=0),
        SpectralClustering(2, KNNGraph(8), cut="ratio", random_state=0),
        NLE(2, KNNGraph(8), n_init=3, random_state=0),
        NLE(2, KNNGraph(8), n_init=3, cut="ncut", random_state=0),
        LapGMM(2, random_state=0),
        LCGMM(2, random_state=0),
        GaussianMixture(2, random_state=0),
    ]


@pytest.fixture(params=models(), ids=lambda model: repr(model)[:40])
def model(request):
    return request.param


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")


def test_constraints_improve_the_clustering(model, rng):
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.3, random_state=0)
    strong = PairwiseConstraints(pairs.must_link, pairs.cannot_link, len(y), strength=3.0)
    without = model.fit(X).labels_
    labels = model.fit(X, constraints=strong).labels_
    assert pairs.violations(labels).n_pairs < 0.7 * pairs.violations(without).n_pairs
    assert adjusted_rand_index(y, labels) > adjusted_rand_index(y, without)


def test_strength_zero_equals_no_constraints(model, rng):
    """The limit: must-links of strength zero change no model."""
    X, y = crossing(rng)
    pairs = PairwiseConstraints([(0, 2), (1, 3)], [], len(y), strength=0.0)
    assert adjusted_rand_index(model.fit(X).labels_, model.fit(X, constraints=pairs).labels_) > 0.97


def test_hard_groups_are_never_split(model, rng):
    X, y = crossing(rng, apart=3.0)
    left, right = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    must = [(left[0], i) for i in left[1:9]] + [(right[0], i) for i in right[1:9]]
    pairs = PairwiseConstraints(must, [], len(y), hard=True)
    model.fit(X, constraints=pairs)
    assert pairs.violations(model.labels_).n_pairs == 0
    assert len(np.unique(model.labels_)) == 2


@pytest.mark.parametrize(("cut", "of"), [("ratio", ratio_cut), ("ncut", normalized_cut)])
def test_a_cut_of_groups_is_the_cut_of_their_rows(cut, of, rng):
    """Contracting must-linked rows changes nothing in the objective of the labels."""
    X, y = crossing(rng)
    pairs = PairwiseConstraints([(0, 2), (2, 4), (1, 3)], [], len(y), strength=0.0, hard=True)
    model = NLE(2, KNNGraph(8), cut=cut, n_init=2, random_state=0).fit(X, constraints=pairs)
    assert model.objective_ == pytest.approx(of(model.graph_, model.labels_))
    assert model.embedding_.shape == (len(y), 2)


def test_cannot_links_count_within_clusters_only(rng):
    """J = Σ_k (cut of W⁺ + W⁻ within A_k) / |A_k|: a node with many cannot-links is not the best cluster."""
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    model = NLE(2, KNNGraph(8), random_state=0).fit(X, constraints=pairs)
    attract, repel = (side.weights.toarray() for side in split_by_sign(model.graph_))
    printed = 0.0
    for k in range(2):
        inside = model.labels_ == k
        within = repel[np.ix_(inside, inside)].sum()
        printed += (attract[np.ix_(inside, ~inside)].sum() + within) / inside.sum()
    assert model.objective_ == pytest.approx(printed)
    assert np.bincount(model.labels_).min() > 40


def test_given_starts_and_renumbering_work_with_groups(rng, monkeypatch):
    X, y = crossing(rng)
    pairs = PairwiseConstraints([(0, 2), (2, 4), (1, 3)], [(0, 1)], len(y), hard=True)
    start = rng.uniform(size=(len(y), 2))
    plain = NLE(2, KNNGraph(8), init=start).fit(X, constraints=pairs)
    monkeypatch.setattr("fiedler.embedding.nle.RENUMBER_FROM", 10)
    inside = NLE(2, KNNGraph(8), init=start).fit(X, constraints=pairs)
    assert_array_equal(plain.labels_, inside.labels_)
    assert_allclose(plain.memberships_, inside.memberships_, atol=1e-6)


def test_the_objective_of_lapgmm_rises_with_constraints(rng):
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    for hard in (False, True):
        constraints = PairwiseConstraints(pairs.must_link, pairs.cannot_link, len(y), hard=hard)
        model = LapGMM(2, lam=0.5, tol=1e-9, max_iter=60).fit(X, constraints=constraints)
        objective = model.history_.objective
        assert (np.diff(objective) >= -1e-9 * np.abs(objective[:-1])).all()


def test_violated_pairs_lower_the_objective_of_a_mixture(rng):
    """Of several starts the one that satisfies the pairs has the smaller penalty."""
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0, strength=3.0)
    satisfied, violated = (
        GaussianMixture(2, init=start, max_iter=1).fit(X, constraints=pairs) for start in (y, np.arange(160) // 2 % 2)
    )
    assert satisfied.penalty_ < 0
    assert satisfied.objective_ == pytest.approx(satisfied.likelihood_ - satisfied.penalty_)
    assert violated.penalty_ > satisfied.penalty_


def test_precomputed_similarities_and_graphs_accept_constraints(rng):
    X, y = crossing(rng)
    graph = KNNGraph(8).build(X)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    by_rows = NLE(2, KNNGraph(8), random_state=0).fit(X, constraints=pairs)
    for model, data in (
        (NLE(2, random_state=0), graph),
        (NLE(2, "precomputed", random_state=0), graph.weights.toarray()),
    ):
        assert model.fit(data, constraints=pairs).objective_ == pytest.approx(by_rows.objective_)
    with pytest.raises(ValueError, match="no edges to which pairs"):
        NLE(2, LandmarkGraph(20)).fit(X, constraints=pairs)


@pytest.mark.parametrize(
    "model", [SpectralClustering(2, random_state=0), LapGMM(2, random_state=0), NLE(2, random_state=0)]
)
def test_back_ends_agree(model, foreign, rng):
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    host = model.fit(X, constraints=pairs).labels_
    device = to_numpy(model.fit(foreign(X), constraints=pairs).labels_)
    assert adjusted_rand_index(host, device) > 0.95


def test_invalid_constraints_raise(model, rng):
    X, _ = crossing(rng)
    with pytest.raises(ValueError, match="refer to 5 rows"):
        model.fit(X, constraints=PairwiseConstraints([(0, 1)], [], 5))
    with pytest.raises(TypeError, match="must be PairwiseConstraints"):
        model.fit(X, constraints=[(0, 1)])


def test_signed_graphs_keep_their_laplacian():
    """The negative weights of a signed graph are not cannot-links."""
    W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.0]])
    labels = SpectralClustering(2, cut="ratio", random_state=0).fit(AffinityGraph.from_matrix(W, signed=True)).labels_
    assert labels[0] == labels[1] != labels[2] == labels[3]


@pytest.mark.parametrize("cannot_link", [[], [(0, 1)]])
def test_pairs_of_strength_zero_do_not_change_signed_graphs(cannot_link, rng):
    pairs = PairwiseConstraints([], cannot_link, 40, strength=0.0)
    side = np.repeat([1.0, -1.0], 20)
    W = np.triu(np.outer(side, side) + rng.normal(scale=0.5, size=(40, 40)), 1)
    graph = AffinityGraph.from_matrix(W + W.T, signed=True)
    for model in (NLE(2, random_state=0), SpectralClustering(2, cut="ratio", random_state=0)):
        name = "objective_" if isinstance(model, NLE) else "eigenvalues_"
        plain = getattr(model.fit(graph), name)
        assert_allclose(getattr(model.fit(graph, constraints=pairs), name), plain)
    with pytest.raises(ValueError, match="already has negative weights"):
        NLE(2).fit(graph, constraints=PairwiseConstraints([], [(0, 1)], 40))


def test_labels_that_contradict_hard_groups_raise(rng):
    X, y = crossing(rng, apart=3.0)
    mates = np.flatnonzero(y == 0)[:5]
    pairs = PairwiseConstraints([(mates[0], i) for i in mates[1:]], [], len(y), hard=True)
    some = np.full(len(y), -1)
    some[mates[0]] = 1
    for kind in (LapGMM, LCGMM, GaussianMixture):
        model = kind(2, random_state=0).fit(X, some, constraints=pairs)
        assert (model.labels_[mates] == 1).all()
        some_wrong = some.copy()
        some_wrong[mates[1]] = 0
        with pytest.raises(ValueError, match="two clusters to rows that hard must-links"):
            kind(2, random_state=0).fit(X, some_wrong, constraints=pairs)


def test_constraints_are_added_to_a_given_graph_for_every_recipe(rng):
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    graph = KNNGraph(8).build(X)
    model = SpectralClustering(2, LearnedLaplacian(), random_state=0).fit(graph, constraints=pairs)
    assert_allclose(model.graph_.weights.toarray(), add_constraints(graph, pairs).weights.toarray())


@pytest.mark.parametrize("solver", ["arpack", "shift_invert"])
def test_solvers_that_need_a_matrix_raise_with_cannot_links(solver, rng):
    X, _ = crossing(rng)
    with pytest.raises(ValueError, match="needs a matrix"):
        SpectralClustering(2, eigen_solver=solver).fit(X, constraints=PairwiseConstraints([], [(0, 1)], 160))


def test_fit_transform_returns_the_memberships(rng):
    X, y = crossing(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    model = NLE(2, random_state=0)
    assert_allclose(model.fit_transform(X, constraints=pairs), model.memberships_)
