import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, subspace_angles
from sklearn.model_selection import GridSearchCV, KFold

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
from fiedler.errors import DataNotFoundError, FileFormatError, InputError
from fiedler.graph.coarsen import contract
from fiedler.graph.constraints import (
    PairwiseConstraints,
    add_constraints,
    check_constraints,
    group_means,
    overwrite_edges,
    split_by_sign,
)
from fiedler.graph.cuts import cannot_link_eigenpairs
from fiedler.metrics import adjusted_rand_index, normalized_cut, ratio_cut
from fiedler.supervision import ConstrainedKFold


def brute_closure(must, cannot, n):
    """Warshall on the must-links, then every pair of rows of two groups that a cannot-link joins."""
    reach = np.eye(n, dtype=bool)
    for i, j in must:
        reach[i, j] = reach[j, i] = True
    for k, i, j in itertools.product(range(n), repeat=3):
        reach[i, j] |= reach[i, k] and reach[k, j]
    pairs = list(itertools.combinations(range(n), 2))
    apart = {
        (i, j) for i, j in pairs for a, b in cannot if (reach[i, a] and reach[j, b]) or (reach[i, b] and reach[j, a])
    }
    return {(i, j) for i, j in pairs if reach[i, j]}, apart


def as_set(pairs):
    return {tuple(pair) for pair in pairs.tolist()}


@pytest.mark.parametrize("seed", range(5))
def test_closure_equals_brute_force(seed):
    rng = np.random.RandomState(seed)
    side = rng.randint(4, size=14)
    drawn = [tuple(sorted(rng.choice(14, 2, replace=False))) for _ in range(14)]
    must = [(i, j) for i, j in drawn if side[i] == side[j]]
    cannot = [(i, j) for i, j in drawn if side[i] != side[j]]
    closed = PairwiseConstraints(must, cannot, 14).closure()
    assert (as_set(closed.must_link), as_set(closed.cannot_link)) == brute_closure(must, cannot, 14)
    assert closed.closure() == closed


def test_order_and_repetition_do_not_matter():
    once = PairwiseConstraints([(0, 1)], [(3, 2)], 4)
    again = PairwiseConstraints(np.array([(1, 0), (0, 1), (1, 0)]), [(2, 3), (3, 2)], 4)
    assert once == again
    assert once.n_pairs == 2
    assert once != PairwiseConstraints([(0, 1)], [(3, 2)], 5)


def test_conflicts_are_named_with_their_chain():
    with pytest.raises(
        ValueError, match=r"2 cannot-link\(s\) contradict .*\(0, 3\), joined by 0-1-2-3; \(4, 5\), joined by 4-5"
    ):
        PairwiseConstraints([(0, 1), (1, 2), (2, 3), (4, 5)], [(0, 3), (5, 4), (0, 4)], 6)
    chain = [(i, i + 1) for i in range(9)]
    with pytest.raises(ValueError, match="and 3 more"):
        PairwiseConstraints(chain, [(0, j) for j in range(2, 10)], 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([(0, 1)], []), "n_samples is missing"),
        (([(0, 5)], [], 5), r"pair \(0, 5\), but rows are numbered 0 to 4"),
        (([(-1, 2)], [], 5), r"pair \(-1, 2\)"),
        (([(2, 2)], [], 5), "of a row with itself"),
        (([(0, 1, 2)], [], 5), "shape"),
        (([(0.5, 1.5)], [], 5), "row numbers"),
        (([[0], [1, 2]], [], 5), "must be a list of pairs"),
        ((5, [], 5), "must be a list of pairs"),
    ],
)
def test_invalid_pairs_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairwiseConstraints(*arguments)


def test_invalid_pairs_are_described_by_code_and_fields():
    with pytest.raises(InputError) as caught:
        PairwiseConstraints([], [(1, 2), (0, 5)], 5)
    assert caught.value.code == "invalid_pair"
    facts = {"kind": "cannot-link", "pair": (0, 5), "reason": "rows are numbered 0 to 4"}
    assert facts.items() <= caught.value.fields.items()
    with pytest.raises(InputError) as caught:
        PairwiseConstraints([(2, 2), (0, 1), (3, 3)], [], 5)
    assert caught.value.code == "self_pair"
    assert {"kind": "must-link", "n_pairs": 2}.items() <= caught.value.fields.items()


def test_labels_give_all_pairs_of_labelled_rows():
    pairs = PairwiseConstraints.from_labels([0, 0, 1, -1, 1])
    assert as_set(pairs.must_link) == {(0, 1), (2, 4)}
    assert as_set(pairs.cannot_link) == {(0, 2), (0, 4), (1, 2), (1, 4)}
    assert PairwiseConstraints.from_labels(["a", "a", "b", "-1", "b"]) == pairs
    assert PairwiseConstraints.from_labels([-1, -1, 3]).n_pairs == 0
    assert PairwiseConstraints.from_labels([-1, -1], rate=0.5).n_pairs == 0
    hard = PairwiseConstraints.from_labels([0, 0, 1], strength=2.0, hard=True)
    assert (hard.strength, hard.hard, hard.closure().strength) == (2.0, True, 2.0)


def test_labels_are_sampled_class_by_class_and_pairs_capped():
    y = np.repeat([0, 1, 2], [100, 30, 1])
    pairs = PairwiseConstraints.from_labels(y, rate=0.05, random_state=0)
    assert_array_equal(np.bincount(y[pairs.rows]), [5, 2, 1])  # ceil of 5, 1.5 and 0.05
    capped = PairwiseConstraints.from_labels(y, max_pairs=40, random_state=0)
    assert (len(capped.must_link), len(capped.cannot_link)) == (40, 40)
    assert (y[capped.must_link[:, 0]] == y[capped.must_link[:, 1]]).all()
    assert (y[capped.cannot_link[:, 0]] != y[capped.cannot_link[:, 1]]).all()
    assert capped == PairwiseConstraints.from_labels(y, max_pairs=40, random_state=0)


def test_too_many_labels_need_max_pairs(monkeypatch):
    monkeypatch.setattr("fiedler.graph.constraints.MAX_ENUMERATED_PAIRS", 100)
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="1,770 pairs; set max_pairs"):
        PairwiseConstraints.from_labels(y)
    assert PairwiseConstraints.from_labels(y, max_pairs=20, random_state=0).n_pairs == 40
    with pytest.raises(InputError, match="imply") as caught:
        PairwiseConstraints([(i, i + 1) for i in range(59)], [], 60).closure()
    assert caught.value.code == "too_many_pairs"


def test_pairs_survive_a_file(tmp_path):
    pairs = PairwiseConstraints([(0, 1), (4, 2)], [(1, 3)], 6)
    pairs.to_csv(tmp_path / "pairs.csv")
    assert PairwiseConstraints.from_csv(tmp_path / "pairs.csv", 6) == pairs
    assert (tmp_path / "pairs.csv").read_text().splitlines()[0] == "first,second,kind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "must begin with the line"),
        ("", "must begin with the line"),
        ("first,second,kind\n0,x,must-link\n", "line 2: expected two row numbers"),
        ("first,second,kind\n0,1,must-link\n0,1,maybe\n", "line 3"),
        ("first,second,kind\n0,9,must-link\n", "numbered 0 to 4"),
    ],
)
def test_unreadable_files_raise(text, message, tmp_path):
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        PairwiseConstraints.from_csv(tmp_path / "pairs.csv", 5)


def test_unreadable_files_are_described_by_code_and_fields(tmp_path):
    path = tmp_path / "pairs.csv"
    with pytest.raises(DataNotFoundError, match="cannot read pairs") as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert caught.value.code == "pairs_file_unreadable"
    assert caught.value.fields == {"file": str(path), "reason": "No such file or directory"}
    with pytest.raises(FileFormatError, match="cannot read pairs") as caught:
        PairwiseConstraints.from_csv(tmp_path, 5)
    assert caught.value.code == "pairs_file_unreadable"
    path.write_bytes("first,second,kind\n0,1,müst-link\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="not encoded in UTF-8") as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert (caught.value.code, caught.value.fields) == ("pairs_file_encoding", {"file": str(path)})
    path.write_text("first,second,kind\n0,1,must-link\n0,1\n")
    with pytest.raises(FileFormatError) as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert caught.value.fields["line"] == 3


def test_a_subset_keeps_implied_pairs():
    pairs = PairwiseConstraints([(0, 1), (1, 2)], [(2, 3)], 5)
    part = pairs.subset([3, 2, 0])
    assert as_set(part.must_link) == {(1, 2)}
    assert as_set(part.cannot_link) == {(0, 1), (0, 2)}
    with pytest.raises(ValueError, match="different numbers"):
        pairs.subset([0, 0])
    with pytest.raises(ValueError, match="list of row numbers"):
        pairs.subset([0.7, 1.2])


def test_violations_keep_their_kind():
    pairs = PairwiseConstraints([(0, 1), (2, 3)], [(0, 2), (1, 3)], 4)
    broken = pairs.violations([0, 0, 0, 1])
    assert broken == PairwiseConstraints([(2, 3)], [(0, 2)], 4)


def test_a_sample_has_the_requested_size():
    pairs = PairwiseConstraints.from_labels(np.arange(20) % 3)
    assert pairs.sample(15, random_state=0).n_pairs == 15
    assert pairs.sample(15, random_state=0) == pairs.sample(15, random_state=0)


def test_slicing_handles_equals_subset():
    """Slicing the array of handles equals ``subset``."""
    pairs = PairwiseConstraints([(0, 1), (1, 2)], [(2, 3)], 5)
    rows = np.array([4, 2, 3])
    assert check_constraints(pairs.per_row()[rows], np.zeros((3, 1))) == pairs.subset(rows)
    assert check_constraints(pairs.per_row(), np.zeros((5, 1))) == pairs.closure()
    assert check_constraints(None, None) is None


def test_constraints_of_other_rows_or_types_raise():
    pairs = PairwiseConstraints([(0, 1)], [], 5)
    with pytest.raises(ValueError, match="refer to 5 rows, but X has 4"):
        check_constraints(pairs, np.zeros((4, 1)))
    with pytest.raises(TypeError, match="must be PairwiseConstraints"):
        check_constraints(np.array([(0, 1)]), np.zeros((5, 1)))


def test_folds_split_no_group(rng):
    y = np.arange(60) % 3
    pairs = PairwiseConstraints.from_labels(np.where(np.arange(60) < 24, y, -1))
    folds = list(ConstrainedKFold(pairs, 3, random_state=0).split_pairs(np.zeros((60, 2))))
    assert_array_equal(np.sort(np.concatenate([test for _, test, _, _ in folds])), np.arange(60))
    for train, test, known, hidden in folds:
        assert len(np.intersect1d(pairs.groups[train], pairs.groups[test])) == 0
        assert (known, hidden) == (pairs.subset(train), pairs.subset(test))
    with pytest.raises(TypeError, match="without constraints use"):
        ConstrainedKFold(None).split(np.zeros((4, 1)))


@pytest.mark.parametrize("folds", [KFold(3, shuffle=True, random_state=0), "constrained"])
def test_a_grid_search_over_a_constrained_estimator(folds, rng):
    X = np.repeat(6 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))
    y = np.repeat([0, 1, 2], 30)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    cv = ConstrainedKFold(pairs, 3, random_state=0) if folds == "constrained" else folds
    search = GridSearchCV(
        SpectralClustering(3, LearnedLaplacian(penalty=0.1), random_state=0),
        {"n_clusters": [2, 3], "graph__metric": ["scale", "diagonal"]},
        scoring=lambda model, X, y: adjusted_rand_index(y, model.predict(X)),
        cv=cv,
        error_score="raise",
    )
    search.fit(X, y, constraints=pairs.per_row())
    assert search.best_params_["n_clusters"] == 3


def test_constraints_become_edges_if_the_recipe_does_not_learn(rng):
    """Constraints of a model whose recipe does not use them are added to the graph."""
    X = rng.normal(size=(40, 2))
    pairs = PairwiseConstraints([(0, 1)], [(2, 3)], 40)
    graph = SpectralClustering(2, KNNGraph(5), random_state=0).fit(X, constraints=pairs).graph_
    assert graph.weights[0, 1] > 0 > graph.weights[2, 3]


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
