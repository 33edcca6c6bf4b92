import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import LCGMM, LLGC, NLE, AffinityGraph, KNNGraph, LapGMM, LearnedLaplacian, SpectralClustering
from fiedler.core.backend import to_numpy
from fiedler.graph.constraints import PairwiseConstraints
from fiedler.graph.laplacian import laplacian
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import learned_laplacian
from fiedler.supervision.descent import best_scale, doubling, near_the_start
from fiedler.supervision.evidence import judged, mates_and_others
from fiedler.supervision.objective import METRICS, AllPairs, EdgeList, LaplacianObjective, coefficients

MUST, CANNOT = np.array([(0, 1), (4, 5), (2, 9)]), np.array([(2, 3), (0, 7)])


def printed_laplacian(X, A):
    """[learned_laplacian, Eqs 2 to 4], entry by entry."""
    n = len(X)
    w = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        w[i, j] = np.exp(-(np.linalg.norm(A @ (X[i] - X[j])) ** 2))
    d = w.sum(axis=1)
    return np.array([[float(i == j) - w[i, j] / np.sqrt(d[i] * d[j]) for j in range(n)] for i in range(n)]), w, d


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


@pytest.fixture
def neighbors(X):
    """N_j as a list for every j, and as a matrix with a row for every j."""
    nearest = [np.argsort(np.linalg.norm(X - x, axis=1))[1:4] for x in X]
    matrix = np.zeros((12, 12))
    for j, of in enumerate(nearest):
        matrix[j, of] = 1
    return nearest, sp.csr_array(matrix)


@pytest.fixture
def A(rng):
    return 0.7 * np.eye(3) + 0.2 * rng.normal(size=(3, 3))


def objective(X, neighbors, lam=0.1, weights=(1.0, 1.0), layout=AllPairs, metric="full"):
    C = coefficients(len(X), MUST, CANNOT, weights, neighbors, lam)
    edges = () if layout is AllPairs else (sp.csr_array(1 - np.eye(len(X))),)
    return LaplacianObjective(X, layout(C, *edges, X), METRICS[metric])


# ---------------------------------------------------------------------------------------------------------- equations


def test_the_laplacian_is_the_printed_one(X, A):
    """Eq. 3 on the graph that the recipe builds."""
    printed, w, _ = printed_laplacian(X, A)
    (recipe,) = LearnedLaplacian(graph="full")._recipes(12)
    graph = recipe.build(X @ A.T)
    assert_allclose(graph.weights.toarray(), w, atol=1e-12)
    assert_allclose(laplacian(graph, "symmetric").toarray(), printed, atol=1e-12)


def test_label_smoothness_is_the_sum_over_pairs(X, A, rng):
    """Eqs 6 and 7, for labels ±1 of all points: pairs in both orders, and every point with itself as a must-link."""
    L, w, d = printed_laplacian(X, A)
    f = rng.choice([-1.0, 1.0], size=12)
    smooth = 0.5 * sum(
        w[i, j] * (f[i] / np.sqrt(d[i]) - f[j] / np.sqrt(d[j])) ** 2 for i, j in itertools.product(range(12), repeat=2)
    )
    signed = sum(L[i, j] if f[i] == f[j] else -L[i, j] for i, j in itertools.product(range(12), repeat=2))
    assert_allclose([smooth, signed], f @ L @ f)


def test_the_objective_is_the_printed_one(X, neighbors, A):
    """Eq. 8."""
    L, _, _ = printed_laplacian(X, A)
    nearest, matrix = neighbors
    printed = sum(L[i, j] for i, j in MUST) - sum(L[i, j] for i, j in CANNOT)
    printed += 0.1 * sum(L[i, j] for j in range(12) for i in nearest[j])
    assert objective(X, matrix).value(A) == pytest.approx(printed)
    weighted = 2.0 * sum(L[i, j] for i, j in MUST) - 0.5 * sum(L[i, j] for i, j in CANNOT)
    assert objective(X, matrix, lam=0.0, weights=(2.0, 0.5)).value(A) == pytest.approx(weighted)


def test_the_gradient_is_the_printed_sum(X, neighbors, A):
    """Eqs 9 to 12, pair by pair."""
    _, w, d = printed_laplacian(X, A)

    def of_w(i, j):
        return -2 * w[i, j] * A @ np.outer(X[i] - X[j], X[i] - X[j])

    def of_d(i):
        return sum(of_w(i, j) for j in range(12))

    def of_l(i, j):
        inner = w[i, j] / d[i] * of_d(i) + w[i, j] / d[j] * of_d(j) - 2 * of_w(i, j)
        return inner / (2 * np.sqrt(d[i] * d[j]))

    for i in (0, 3):  # Eq. 12: the sum without a matrix a pair
        scatter = X.T @ np.diag(w[i]) @ X + d[i] * np.outer(X[i], X[i])
        mixed = np.outer(X[i], X.T @ w[i])
        assert_allclose(of_d(i), -2 * A @ (scatter - mixed - mixed.T))
    nearest, matrix = neighbors
    printed = sum(of_l(i, j) for i, j in MUST) - sum(of_l(i, j) for i, j in CANNOT)
    printed = printed + 0.1 * sum(of_l(i, j) for j in range(12) for i in nearest[j])
    assert_allclose(objective(X, matrix).value_and_gradient(A)[1], printed, rtol=1e-10)


@pytest.mark.parametrize("layout", [AllPairs, EdgeList])
@pytest.mark.parametrize("metric", list(METRICS))
def test_the_gradient_is_that_of_finite_differences(layout, metric, X, neighbors, rng):
    problem = objective(X, neighbors[1], layout=layout, metric=metric)
    theta = METRICS[metric].start(X, 2)
    theta = 0.8 * theta + 0.1 * rng.normal(size=theta.shape)
    value, gradient = problem.value_and_gradient(theta)
    assert value == pytest.approx(problem.value(theta))
    for place in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[place] = 1e-6
        slope = (problem.value(theta + step) - problem.value(theta - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_all_pairs_equal_a_complete_list_of_edges(X, neighbors, A):
    dense, sparse = (objective(X, neighbors[1], layout=layout).value_and_gradient(A) for layout in (AllPairs, EdgeList))
    assert dense[0] == pytest.approx(sparse[0])
    assert_allclose(dense[1], sparse[1], atol=1e-12)


@pytest.mark.parametrize("metric", list(METRICS))
def test_metrics_embed_by_their_matrix(metric, X, rng):
    kind = METRICS[metric]
    theta = kind.start(X, 2) + 0.1 * rng.normal(size=kind.start(X, 2).shape)
    assert_allclose(kind.embed(theta, X), X @ kind.matrix(theta, X).T, atol=1e-12)


# --------------------------------------------------------------------------------------------------------- minimisers


def bowl(theta):
    return float(np.sum(theta**4)), 4 * theta**3


def test_the_doubling_rule_never_accepts_a_rise_and_counts_failures():
    """[learned_laplacian, Fig. 1]: η doubles after a success and halves, A kept, after a failure; T steps in all."""
    found = doubling(bowl, np.array([1.5, -2.0]), max_iter=30)
    values, rates = np.array(found.history["objective"]), np.array(found.history["rate"])
    assert (np.diff(values) <= 0).all()
    assert (len(values), found.n_iter) == (31, 30)
    failed = rates[1:] < rates[:-1]
    assert_array_equal(rates[1:] / rates[:-1], np.where(failed, 0.5, 2.0))
    assert_array_equal(values[1:][failed], values[:-1][failed])
    assert failed.sum() == found.n_failures > 0
    assert rates[0] == 1


def test_a_firm_penalty_stays_and_none_finds_the_minimum():
    start = np.array([1.5, -2.0])
    firm, loose = (near_the_start(bowl, start, max_iter=200, penalty=p, size=1.0) for p in (1e9, 0.0))
    assert_allclose(firm.theta, start, atol=1e-5)
    assert_allclose(loose.theta, 0, atol=0.05)
    assert loose.history["objective"][-1] < firm.history["objective"][-1]


def test_the_best_scale_is_found():
    assert best_scale(lambda s: (math.log(s) - 1.3) ** 2) == pytest.approx(math.exp(1.3), rel=0.02)


# ------------------------------------------------------------------------------------------------------ the estimator


def stretched(rng, n=120):
    """Three classes that differ in two features, under four features of noise that are larger."""
    y = np.arange(n) % 3
    return np.hstack([3.0 * np.eye(3)[y][:, :2] + 0.4 * rng.normal(size=(n, 2)), 3 * rng.normal(size=(n, 4))]), y


def test_the_printed_algorithm_lowers_the_objective_as_printed(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian(optimizer="doubling", pair_weight=1.0, inject=False).fit(X, constraints=pairs)
    assert (np.diff(model.history_["objective"]) <= 0).all()
    assert (model.n_iter_, model.scale_, model.penalty_) == (50, 1.0, 0.0)
    median = np.median([np.linalg.norm(a - b) for a, b in itertools.combinations(X, 2)])
    first = LearnedLaplacian(optimizer="doubling", pair_weight=1.0, max_iter=1).fit(X, constraints=pairs)
    start = printed_laplacian(X, np.eye(6) / median)[0]
    nearest = np.argsort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1:21]
    printed = sum(start[i, j] for i, j in pairs.must_link) - sum(start[i, j] for i, j in pairs.cannot_link)
    printed += sum(start[i, j] for i in range(len(X)) for j in nearest[i]) / 20
    assert first.history_["objective"][0] == pytest.approx(printed)


@pytest.mark.parametrize(("metric", "optimizer"), [("full", "lbfgs"), ("diagonal", "lbfgs"), ("low_rank", "doubling")])
def test_pairs_turn_the_metric_towards_what_matters(metric, optimizer, rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.3, random_state=0)
    model = LearnedLaplacian(metric, optimizer, pair_weight=1.0, penalty=1e-3).fit(X, constraints=pairs)
    lengths = np.linalg.norm(model.metric_, axis=0)
    assert lengths[:2].mean() > 1.5 * lengths[2:].mean()


def test_the_graph_is_the_kernel_of_the_transformed_rows(rng):
    X, _ = stretched(rng)
    model = LearnedLaplacian(inject=False).fit(X)
    Z = model.transform(X)
    W = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2)) - np.eye(len(X))
    assert_allclose(model.graph_.weights.toarray(), W, atol=1e-12)
    assert_allclose(Z, X @ model.metric_.T)


def test_injection_writes_the_pairs(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    W = LearnedLaplacian().fit(X, constraints=pairs).graph_.weights.toarray()
    plain = LearnedLaplacian(inject=False).fit(X, constraints=pairs).graph_.weights.toarray()
    assert (W[tuple(pairs.must_link.T)] == plain.max()).all()
    assert (W[tuple(pairs.cannot_link.T)] == 0).all()
    rest = np.ones_like(W, dtype=bool)
    for i, j in np.concatenate([pairs.must_link, pairs.cannot_link]):
        rest[i, j] = rest[j, i] = False
    assert_allclose(W[rest], plain[rest])


def test_labels_are_pairs(rng):
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 24, y, -1)
    by_labels = LearnedLaplacian(random_state=0).fit(X, some)
    by_pairs = LearnedLaplacian(random_state=0).fit(X, constraints=PairwiseConstraints.from_labels(some))
    assert_allclose(by_labels.graph_.weights.toarray(), by_pairs.graph_.weights.toarray(), atol=1e-12)
    both = LearnedLaplacian(random_state=0).fit(X, some, constraints=PairwiseConstraints([(100, 103)], [], 120))
    assert both.constraints_.n_pairs == by_labels.constraints_.n_pairs + 1


def test_more_features_than_rows_change_nothing_but_the_cost(rng):
    X, y = stretched(rng, 60)
    wide = X @ np.linalg.qr(rng.normal(size=(80, 6)))[0].T
    narrow_model, wide_model = (
        LearnedLaplacian(random_state=0).fit(rows, np.where(y == 2, -1, y)) for rows in (X, wide)
    )
    assert wide_model.metric_.shape == (60, 80)
    assert_allclose(wide_model.graph_.weights.toarray(), narrow_model.graph_.weights.toarray(), atol=1e-4)


def test_the_pairs_judge_how_firmly_the_metric_is_held(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian().fit(X, constraints=pairs)
    means = {penalty: shares.mean() for penalty, shares in model.evidence_.items()}
    assert list(means) == list(learned_laplacian.PENALTIES)
    assert model.penalty_ in means
    best = max(model.evidence_.values(), key=np.mean)
    short = best - model.evidence_[model.penalty_]
    assert short.mean() <= short.std() / len(short) ** 0.5 + 1e-12
    unjudged = LearnedLaplacian().fit(X, constraints=PairwiseConstraints([], [(0, 1)], 120))
    assert (unjudged.penalty_, unjudged.evidence_) == (learned_laplacian.UNJUDGED, {})


def test_evidence_is_the_share_of_mates_that_are_nearer():
    """A path 0-1-2-3: for row 0, its mate 1 is nearer than 3; for row 3, its mate 1 is farther than 2."""
    graph = AffinityGraph.from_matrix(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    pairs = PairwiseConstraints([(0, 1)], [(0, 3)], 4)
    judges = mates_and_others(pairs.closure(), np.random.RandomState(0))
    assert_array_equal(judges.rows[judges.own], [0, 1])
    assert_array_equal(judged(graph, judges), [1, 1])
    far = mates_and_others(PairwiseConstraints([(3, 1)], [(3, 2), (1, 2)], 4), np.random.RandomState(0))
    assert judged(graph, far)[-1] == 0


def test_the_better_of_two_graphs_is_taken(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.2, random_state=0)
    model = LearnedLaplacian(penalty=0.1, inject=False).fit(X, constraints=pairs)
    judges = mates_and_others(pairs, np.random.RandomState(0))
    both = [LearnedLaplacian(penalty=0.1, inject=False, graph="full").fit(X, constraints=pairs).graph_]
    both.append(KNNGraph(10, "heat", bandwidth=0.5**0.5, connect="mst").build(model.transform(X)))
    means = [judged(graph, judges).mean() for graph in both]
    assert judged(model.graph_, judges).mean() == pytest.approx(max(means), abs=1e-6)
    assert model.graph_.n_edges == both[int(np.argmax(means))].n_edges
    assert model.link(X[:2] + 0.1, X, model.graph_).shape == (2, 120)


def test_sparse_graphs_learn_on_wider_neighbourhoods(rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    model = LearnedLaplacian(graph=KNNGraph(6), random_state=0).fit(X, constraints=pairs)
    complete = LearnedLaplacian(graph="full", random_state=0).fit(X, constraints=pairs)
    assert model.graph_.n_edges < 0.3 * complete.graph_.n_edges
    assert model.scale_ == pytest.approx(complete.scale_, rel=0.3)


def test_large_data_take_the_sparse_default(rng, monkeypatch):
    monkeypatch.setattr(learned_laplacian, "FULL_UP_TO", 100)
    X, y = stretched(rng)
    model = LearnedLaplacian(random_state=0).fit(X, np.where(np.arange(120) < 20, y, -1))
    assert model.graph_.n_edges < 120 * 25


@pytest.mark.parametrize(
    "model",
    [
        SpectralClustering(3, random_state=0),
        LapGMM(3, random_state=0),
        LCGMM(3, random_state=0),
        NLE(3, n_init=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_it_is_a_graph_for_every_model(model, rng):
    y = np.arange(120) % 3
    X = 4 * np.eye(3)[y] + rng.normal(size=(120, 3))
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    fitted = model.set_params(graph=LearnedLaplacian()).fit(X, constraints=pairs)
    assert adjusted_rand_index(y, fitted.labels_) > 0.9
    assert adjusted_rand_index(y, fitted.predict(X + 0.01)) > 0.9
    assert_allclose(fitted.graph_.weights[tuple(pairs.cannot_link.T)], 0)


def test_labels_reach_it_through_llgc(rng):
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 30, y, -1)
    model = LLGC(LearnedLaplacian("diagonal", pair_weight="balanced", penalty=1e-3)).fit(X, some)
    plain = LLGC().fit(X, some)
    assert (model.transduction_ == y).mean() > (plain.transduction_ == y).mean() + 0.05
    assert (model.predict(X[30:] + 1e-3) == y[30:]).mean() > 0.8


def test_new_points_need_a_learnt_graph(rng):
    X, _ = stretched(rng)
    with pytest.raises(ValueError, match="not learnt by LearnedLaplacian"):
        LearnedLaplacian().link(X, X, KNNGraph().build(X))


def test_no_pairs_at_all_and_all_points_labelled(rng):
    X, y = stretched(rng)
    alone = LearnedLaplacian().fit(X)
    assert alone.constraints_.n_pairs == 0
    everything = LearnedLaplacian().fit(X, y)
    assert adjusted_rand_index(y, SpectralClustering(3, everything.graph_, random_state=0).fit(X).labels_) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "cubic"}, "metric='cubic'"),
        ({"optimizer": "adam"}, "optimizer='adam'"),
        ({"penalty": "some"}, "penalty='some'"),
        ({"penalty": -1.0}, "penalty"),
        ({"lam": 0.0}, "nothing to learn from"),
        ({"pair_weight": (1, 2, 3)}, "pair_weight must be"),
        ({"pair_weight": "heavy"}, "pair_weight='heavy'"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"graph": "sparse"}, "graph='sparse'"),
    ],
)
def test_what_cannot_be_done_ends_in_a_sentence(options, words, rng):
    with pytest.raises(ValueError, match=words):
        LearnedLaplacian(**options).fit(stretched(rng)[0])


def test_bad_rows_end_in_a_sentence(rng):
    with pytest.raises(ValueError, match="median distance between rows is 0"):
        LearnedLaplacian().fit(np.ones((20, 3)))
    with pytest.raises(ValueError, match="takes dense rows"):
        LearnedLaplacian().fit(sp.csr_array(np.eye(20)))
    with pytest.raises(TypeError, match="must be 'full', a KNNGraph of Euclidean"):
        LearnedLaplacian(graph=AffinityGraph.from_matrix(np.ones((20, 20)))).fit(rng.normal(size=(20, 2)))
    with pytest.raises(ValueError, match="refer to 9 rows"):
        LearnedLaplacian().fit(rng.normal(size=(20, 2)), constraints=PairwiseConstraints([(0, 1)], [], 9))


def test_the_metric_is_kept_with_the_graph(rng, tmp_path):
    X, _ = stretched(rng)
    model = LearnedLaplacian().fit(X)
    model.graph_.save(tmp_path / "graph.npz")
    again = AffinityGraph.load(tmp_path / "graph.npz")
    assert_allclose(again.constants.metric, model.metric_)
    assert_allclose(
        LearnedLaplacian().link(X[:3] + 0.1, X, again), LearnedLaplacian().link(X[:3] + 0.1, X, model.graph_)
    )


@pytest.mark.parametrize("graph", ["full", KNNGraph(8)], ids=["full", "sparse"])
@pytest.mark.parametrize("optimizer", ["lbfgs", "doubling"])
def test_back_ends_agree(foreign, optimizer, graph, rng):
    X, y = stretched(rng)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    options = {"optimizer": optimizer, "graph": graph, "pair_weight": 1.0, "max_iter": 10, "random_state": 0}
    here, there = (LearnedLaplacian(**options).fit(rows, constraints=pairs) for rows in (X, foreign(X)))
    assert_allclose(to_numpy(there.metric_), here.metric_, rtol=1e-4, atol=1e-6)
    assert_allclose(there.history_["objective"], here.history_["objective"], rtol=1e-6)


def test_single_precision_stays(rng):
    X, _ = stretched(rng)
    model = LearnedLaplacian().fit(X.astype(np.float32))
    assert model.metric_.dtype == model.graph_.weights.dtype == np.float32
    assert_allclose(model.scale_, LearnedLaplacian().fit(X).scale_, rtol=0.05)


def test_new_points_are_joined_as_the_graph_was_built(rng):
    """However many cannot-links were cut out of it."""
    X, y = stretched(rng)
    some = np.where(np.arange(120) < 100, y, -1)
    for recipe in ("full", KNNGraph(8)):
        model = LearnedLaplacian("scale", graph=recipe).fit(X, some)
        weights = model.link(X[:5] + 0.1, X, model.graph_)
        counts = np.count_nonzero(weights, axis=1) if recipe == "full" else np.diff(weights.indptr)
        assert (counts == (120 if recipe == "full" else 8)).all()


def test_clusterers_hand_on_partial_labels_only(rng):
    """True labels that a search passes along must not be learnt from."""
    X, y = stretched(rng)
    for kind in (SpectralClustering, LapGMM):
        model = kind(3, LearnedLaplacian("scale"), random_state=0)
        full, none = model.fit(X, y).graph_, kind(3, LearnedLaplacian("scale"), random_state=0).fit(X).graph_
        assert_allclose(full.weights.toarray(), none.weights.toarray())
        some = model.fit(X, np.where(np.arange(120) < 60, y, -1)).graph_
        assert abs(some.weights - none.weights).max() > 0.1


def test_many_labels_stay_within_the_cap(rng, monkeypatch):
    monkeypatch.setattr(learned_laplacian, "MAX_PAIRS", 50)
    X, y = stretched(rng)
    assert LearnedLaplacian("scale").fit(X, y).constraints_.n_pairs == 100
    pairs = PairwiseConstraints.from_labels(y, max_pairs=60, random_state=0)
    assert LearnedLaplacian("scale").fit(X, constraints=pairs).constraints_.n_pairs == pairs.n_pairs


def test_a_penalty_found_can_be_given(rng):
    X, y = stretched(rng)
    alone = LearnedLaplacian(penalty=math.inf).fit(X)
    assert alone.penalty_ == math.inf
    assert_allclose(alone.metric_, LearnedLaplacian("scale").fit(X).metric_)
    column = LearnedLaplacian("scale").fit(X, np.where(y == 0, 0, -1)[:, None])
    assert len(column.constraints_.must_link) > 0
