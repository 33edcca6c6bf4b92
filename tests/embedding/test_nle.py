from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from sklearn.base import clone

from fiedler import (
    NLE,
    AffinityGraph,
    FullGraph,
    KNNGraph,
    LabelGraph,
    LandmarkGraph,
    PairwiseConstraints,
    SpectralClustering,
)
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import largest_eigenvalue
from fiedler.embedding import nle
from fiedler.embedding.nle import DENOMINATOR_SHARE, MIN_ENTRY, Update, outlier_scores, run_updates, unit_columns
from fiedler.errors import InputError, NotConvergedWarning
from fiedler.graph.cuts import CutProblem, cut_eigenvectors, cut_problem, polish
from fiedler.metrics import adjusted_rand_index, clustering_accuracy, normalized_cut, ratio_cut

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sparse_graph(rng):
    X = np.repeat(4 * np.eye(3), 20, axis=0) + rng.normal(size=(60, 3))
    return KNNGraph(6, weight="heat").build(X)


def dense_graph(rng):
    return FullGraph("heat").build(rng.normal(size=(25, 3)))


def signed_weights(rng, n=25):
    """Positive weights within two groups and negative between them, with noise of either sign."""
    side = np.repeat([1.0, -1.0], [10, n - 10])
    W = np.outer(side, side) + rng.normal(scale=0.8, size=(n, n))
    W = np.triu(W, 1)
    return W + W.T


def signed_graph(rng):
    return AffinityGraph.from_matrix(signed_weights(rng), signed=True)


GRAPHS = {"sparse": sparse_graph, "dense": dense_graph, "signed": signed_graph}


@pytest.fixture(params=list(GRAPHS))
def graph(request, rng):
    return GRAPHS[request.param](rng)


def printed_step(Q, W, D, sigma, guard):
    """[nle, Eqs 11 and 12], negative entries of W and D on the other side of the fraction."""
    L = Q.T @ (W + sigma * np.eye(len(W)) - D) @ Q
    up, down = np.maximum(L, 0), np.maximum(-L, 0)
    above = np.maximum(W, 0) @ Q + sigma * Q + np.maximum(-D, 0) @ Q + Q @ down
    below = np.maximum(D, 0) @ Q + np.maximum(-W, 0) @ Q + Q @ up
    return Q * np.sqrt(above / (below + guard))


@pytest.mark.parametrize("cut", ["ratio", "ncut"])
def test_one_update_is_the_printed_one(graph, cut, rng):
    W = graph.weights.toarray()
    if cut == "ncut":
        if graph.has_negative_weights:
            pytest.skip("volumes of mixed-sign weights can be negative")
        root = np.diag(W.sum(axis=1) ** -0.5)
        W = root @ W @ root
        D = np.eye(len(W))
    else:
        D = np.diag(W.sum(axis=1))
    update = Update(cut_problem(graph, cut), rng)
    Q = unit_columns(rng.uniform(size=(len(W), 3)))

    assert update.sigma == pytest.approx(np.linalg.eigvalsh(D - W)[-1], rel=1e-6)
    guard = DENOMINATOR_SHARE * np.abs(np.diag(D)).mean()
    assert_allclose(update.step(Q)[0], np.maximum(printed_step(Q, W, D, update.sigma, guard), MIN_ENTRY), rtol=1e-10)


def test_the_lagrangian_with_fixed_multipliers_never_falls(graph, rng):
    """[nle, Theorem 4, Eq. 15]."""
    W = graph.weights.toarray()
    update = Update(cut_problem(graph, "ratio"), rng)
    A = W + update.sigma * np.eye(len(W)) - np.diag(W.sum(axis=1))
    Q = unit_columns(rng.uniform(size=(len(W), 3)))
    for _ in range(200):
        multipliers = update.multipliers(Q, *update.pulls(Q))

        def lagrangian(Q, L=multipliers):
            return np.trace(Q.T @ A @ Q - L @ (Q.T @ Q - np.eye(3)))

        moved = update.step(Q)[0]
        assert lagrangian(moved) >= lagrangian(Q) - 1e-9 * abs(lagrangian(Q))
        Q = moved


def fixed_point(graph, rng):
    """Q after convergence, and the gradient of the Lagrangian (13) there, in units of σ."""
    update = Update(cut_problem(graph, "ratio"), rng)
    run = run_updates(update, unit_columns(rng.uniform(size=(graph.n_nodes, 3))), max_iter=40_000, tol=1e-12)
    assert run.converged
    W, Q = graph.weights.toarray(), run.Q
    A = W + update.sigma * np.eye(len(W)) - np.diag(W.sum(axis=1))
    return Q, (A @ Q - Q @ (Q.T @ A @ Q)) / update.sigma


@pytest.mark.parametrize("distance", [0, 4])
def test_fixed_points_satisfy_the_kkt_conditions_of_nonnegativity(distance, rng):
    """[nle, Theorem 3, Eq. 14]: [(W + σI - D)Q - QΛ] ∘ Q = 0, with Λ of Eq. 12.

    Multipliers of Q ≥ 0 have the right sign as well, since entries stop at a floor from which they could rise.
    """
    X = np.repeat(distance * np.eye(3), 20, axis=0) + rng.normal(size=(60, 3))
    Q, gradient = fixed_point(KNNGraph(6, weight="heat").build(X), rng)
    at_floor = Q <= 2 * MIN_ENTRY

    assert at_floor.sum() > 60
    assert np.abs(gradient * Q).max() < 1e-9
    assert np.abs(gradient[~at_floor]).max() < 1e-4
    assert gradient[at_floor].max() <= 0


def test_fixed_points_are_orthonormal_only_where_clusters_are_apart(fixed_rng):
    """Q'Q = I, the other condition of Eq. 7, does not follow from Eq. 14: Λ of Eq. 12 solves it for any Q."""
    apart = np.repeat(20 * np.eye(3), 20, axis=0) + fixed_rng.normal(size=(60, 3))
    Q, _ = fixed_point(KNNGraph(6, weight="heat").build(apart), fixed_rng)
    mixed, _ = fixed_point(KNNGraph(6, weight="heat").build(fixed_rng.normal(size=(60, 3))), fixed_rng)

    assert np.abs(Q.T @ Q - np.eye(3)).max() < 1e-6
    assert np.abs(mixed.T @ mixed - np.eye(3)).max() > 0.005


@pytest.mark.parametrize("signed", ["split", "shift"])
def test_the_ratio_cut_of_inner_products_is_the_error_of_kmeans(signed, rng):
    """Of centred rows: J = Σ_k Σ_i∈k ‖x_i - m_k‖² - Σ_i ‖x_i‖², plus cn(K - 1) for a shift by c."""
    X = rng.normal(size=(40, 5)) * rng.uniform(0.5, 2, size=(40, 1))
    X -= X.mean(axis=0)
    W = X @ X.T
    shift = -W[~np.eye(40, dtype=bool)].min() if signed == "shift" else 0.0
    problem = cut_problem(AffinityGraph.from_matrix(W, signed=True), "ratio", signed)
    for _ in range(5):
        labels = rng.randint(4, size=40)
        error = sum(((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in range(4))

        assert_allclose(problem.value(labels, 4), error - (X**2).sum() + shift * 40 * 3, rtol=1e-10)


def test_the_ratio_cut_is_a_trace_of_indicators(rng):
    """[nle, Theorem 1 and Eq. 5], printed as a sum over pairs of clusters."""
    graph = sparse_graph(rng)
    W, labels = graph.weights.toarray(), rng.randint(3, size=60)
    H = np.eye(3)[labels]
    between = H.T @ W @ H
    sizes = H.sum(axis=0)
    printed = sum(between[p, q] * (1 / sizes[p] + 1 / sizes[q]) for p in range(3) for q in range(p + 1, 3))
    H = H / np.sqrt(sizes)

    assert cut_problem(graph, "ratio").value(labels, 3) == pytest.approx(printed)
    assert np.trace(H.T @ (np.diag(W.sum(axis=1)) - W) @ H) == pytest.approx(printed)
    assert cut_problem(graph, "ratio").value(labels, 3) == pytest.approx(ratio_cut(graph, labels))
    assert cut_problem(graph, "ncut").value(labels, 3) == pytest.approx(normalized_cut(graph, labels))


def test_a_constant_shift_leaves_the_eigenvectors(rng):
    """[nle, Theorem 2], by the operator that does not form the shifted matrix."""
    W = signed_weights(rng)
    shifted = cut_problem(AffinityGraph.from_matrix(W, signed=True), "ratio", "shift")
    L = np.diag(np.asarray(shifted.degrees)) - shifted.product(np.eye(25))
    values, vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)

    assert (shifted.product(np.eye(25)) - np.diag(np.diag(shifted.product(np.eye(25)))) >= -1e-12).all()
    c = -W[~np.eye(25, dtype=bool)].min()
    trivial = np.abs(vectors.T @ np.ones(25)) > 1e-6
    assert trivial.sum() == 1
    assert_allclose(L @ vectors[:, ~trivial], vectors[:, ~trivial] * (values[~trivial] + 25 * c), atol=1e-9)


def test_the_trace_and_the_factorisation_are_one_problem(rng):
    """[nle, Theorem 5]: ‖A - QQ'‖² and tr Q'AQ order orthonormal Q the same way."""
    graph = sparse_graph(rng)
    W, update = graph.weights.toarray(), Update(cut_problem(graph, "ratio"), rng)
    A = W + update.sigma * np.eye(60) - np.diag(W.sum(axis=1))
    partitions = [np.eye(3)[rng.randint(3, size=60)] for _ in range(20)]
    bases = [unit_columns(H) for H in partitions]
    distances = np.array([np.sum((A - Q @ Q.T) ** 2) for Q in bases])
    traces = np.array([update.step(Q)[1] for Q in bases])
    assert_allclose(distances + 2 * traces, np.sum(A**2) + 3)
    cuts = [cut_problem(graph, "ratio").value(H.argmax(axis=1), 3) for H in partitions]
    assert_allclose(traces, 3 * update.sigma - np.array(cuts))


# ------------------------------------------------------------------------------------------------------- the estimator


@pytest.mark.parametrize("cut", ["ratio", "ncut"])
@pytest.mark.parametrize("init", ["spectral", "kmeans", "random", "auto"])
def test_well_separated_clusters_are_found_with_memberships(cut, init, rng):
    X = np.repeat(5 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))
    y = np.repeat([0, 1, 2], 30)
    model = NLE(3, cut=cut, init=init, max_iter=600, random_state=0).fit(X)

    assert clustering_accuracy(y, model.labels_) > 0.97
    assert_allclose(model.memberships_.sum(axis=1), 1)
    assert (model.embedding_ > 0).all()
    score = ratio_cut if cut == "ratio" else normalized_cut
    assert model.objective_ == pytest.approx(score(model.graph_, model.labels_))
    assert len(model.history_["objective"]) == model.n_iter_
    assert model.history_.maximize
    checked = np.flatnonzero(np.isfinite(model.history_["cut"])) + 1
    assert_array_equal(checked, [*range(10, model.n_iter_, 10), model.n_iter_])
    assert_array_equal(np.flatnonzero(np.isfinite(model.history_["moved"])) + 1, checked)
    new = np.array([[5.0, 0, 0], [0, 5.0, 0], [0, 0, 5.0]])
    assert len(set(model.predict(new))) == 3
    assert_allclose(model.transform(new).sum(axis=1), 1)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.transform(X), model.memberships_)


def test_kmeans_starts_are_its_labels_plus_an_offset(rng, monkeypatch):
    """Also for nodes that are groups of rows, which start where their first row is."""
    X = rng.normal(size=(30, 2))
    starts, run = [], nle.run_updates
    monkeypatch.setattr(nle, "run_updates", lambda update, Q, **limits: starts.append(Q) or run(update, Q, **limits))
    pairs = PairwiseConstraints([(3, 4)], n_samples=30, hard=True)

    NLE(3, init="kmeans", n_init=1, random_state=0).fit(X, constraints=pairs)

    node_rows = np.delete(np.arange(30), 4)
    assert starts[0].shape == (29, 3)
    labels, offset = starts[0].argmax(axis=1), starts[0].min(axis=0)
    assert_allclose(starts[0].max(axis=0) / offset, 6)  # 1.2 and 0.2, before columns are scaled
    centers = np.array([X[node_rows][labels == c].mean(axis=0) for c in range(3)])
    assert_array_equal(((X[node_rows][:, None] - centers) ** 2).sum(axis=2).argmin(axis=1), labels)


def test_kmeans_starts_need_rows(rng):
    graph = sparse_graph(rng)

    with pytest.raises(ValueError, match="init='kmeans' needs rows, but X is a graph or an affinity matrix"):
        NLE(3, init="kmeans").fit(graph)
    with pytest.raises(ValueError, match="init='kmeans' needs rows"):
        NLE(3, "precomputed", init="kmeans").fit(graph.weights.toarray())
    assert len(np.unique(NLE(3, init="auto", n_init=2, random_state=0).fit(graph).labels_)) == 3


def test_the_cut_is_never_above_that_of_the_spectral_start(rng):
    """From its labels the cut can only decrease, with or without polish; ten starts are as good as its best of ten."""
    for seed in range(5):
        X = rng.normal(size=(150, 2))
        graph = KNNGraph(8, connect="mst").build(X)
        spectral = SpectralClustering(6, graph=graph, cut="ratio", random_state=seed).fit(X).labels_
        ours = NLE(6, graph, random_state=seed).fit(X)
        plain = NLE(6, graph, init=spectral, polish=False, random_state=seed).fit(X)
        assert plain.objective_ <= ratio_cut(graph, spectral) + 1e-9
        assert NLE(6, graph, init=spectral).fit(X).objective_ <= plain.objective_ + 1e-9
        assert ours.objective_ <= ratio_cut(graph, spectral) + 1e-9


@pytest.mark.parametrize("cut", ["ratio", "ncut"])
def test_polish_never_raises_the_cut_and_ends_where_no_single_move_helps(cut, rng):
    graph = KNNGraph(5, weight="heat").build(rng.normal(size=(50, 2)))
    problem = cut_problem(graph, cut)
    labels = rng.randint(4, size=50)
    polished, value = polish(problem, labels, 4)

    assert value < problem.value(labels, 4)
    assert value == pytest.approx(problem.value(polished, 4))
    for node in range(50):
        for cluster in range(4):
            moved = polished.copy()
            moved[node] = cluster
            assert problem.value(moved, 4) >= value - 1e-9


def test_a_start_with_an_empty_cluster_is_never_selected(rng):
    graph = sparse_graph(rng)
    problem = cut_problem(graph, "ratio")
    assert problem.value(np.zeros(60, dtype=np.int64), 2) == float("inf")
    with pytest.raises(InputError, match="every start left a cluster empty; choose fewer clusters") as raised:
        NLE(3, graph, init=np.full((60, 3), 1.0) * [3, 1, 1], polish=False).fit(graph)
    assert (raised.value.code, raised.value.fields["n_clusters"]) == ("empty_clusters", 3)
    assert raised.value.fields["n_found"] < 3


@pytest.mark.parametrize("signed", ["split", "shift"])
def test_groups_of_mixed_sign_weights_are_found(signed, rng):
    W = signed_weights(rng)
    y = np.repeat([0, 1], [10, 15])
    for model in (
        NLE(2, "precomputed", signed=signed, random_state=0).fit(W),
        NLE(2, signed=signed, random_state=0).fit(AffinityGraph.from_matrix(W, signed=True)),
    ):
        assert clustering_accuracy(y, model.labels_) == 1


def test_order_of_nodes_and_scale_of_weights_do_not_matter(rng):
    graph = sparse_graph(rng)
    start = rng.uniform(size=(60, 3))
    first = NLE(3, graph, init=start).fit(graph)
    scaled = NLE(3, init=start).fit(AffinityGraph.from_matrix(graph.weights * 1e-7))
    assert_allclose(scaled.embedding_, first.embedding_, rtol=1e-4, atol=1e-8)
    order = rng.permutation(60)
    shuffled = NLE(3, init=start[order]).fit(AffinityGraph.from_matrix(graph.weights.toarray()[np.ix_(order, order)]))
    assert_allclose(shuffled.embedding_, first.embedding_[order], rtol=1e-4, atol=1e-8)
    assert_array_equal(shuffled.labels_, first.labels_[order])


@pytest.mark.parametrize("loops", [None, np.linspace(0, 2, 60)])
def test_renumbering_large_graphs_does_not_change_the_result(loops, rng, monkeypatch):
    """The same start gives the same result for each node, however the nodes are numbered internally."""
    graph = AffinityGraph(sparse_graph(rng).weights, loops=loops)
    start = rng.uniform(size=(60, 3))
    # an estimate depends a little on the numbering
    monkeypatch.setattr(CutProblem, "largest_eigenvalue", lambda problem, rng: 2.0)
    model = NLE(3, cut="ncut", init=start)
    plain = clone(model).fit(graph)
    monkeypatch.setattr(nle, "RENUMBER_FROM", 10)
    renumbered = clone(model).fit(graph)
    assert_array_equal(renumbered.labels_, plain.labels_)
    assert_allclose(renumbered.embedding_, plain.embedding_, rtol=1e-6, atol=1e-9)
    assert_allclose(renumbered.outlier_score_, plain.outlier_score_, rtol=1e-6, atol=1e-9)
    assert renumbered.graph_ is graph
    spectral = NLE(3, random_state=0).fit(graph)
    assert adjusted_rand_index(spectral.labels_, np.repeat([0, 1, 2], 20)) > 0.8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("init", ["spectral", "random"])
def test_back_ends_agree(foreign, dtype, init, rng):
    X = (np.repeat(5 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))).astype(dtype)
    reference, model = (NLE(3, init=init, n_init=2, random_state=0).fit(rows) for rows in (X, foreign(X)))
    assert adjusted_rand_index(to_numpy(model.labels_), reference.labels_) == 1
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-4, abs=1e-4)  # 0 if there are 3 components
    assert adjusted_rand_index(to_numpy(model.predict(foreign(X[::7]))), reference.predict(X[::7])) == 1


@pytest.mark.parametrize("weight", ["heat", "dot"])
def test_landmarks_agree_with_the_complete_graph(weight, rng):
    X = np.abs(np.repeat(4 * np.eye(4), 50, axis=0) + rng.normal(size=(200, 4)))
    full = NLE(4, FullGraph(weight, bandwidth=2.0), cut="ncut", n_init=3, random_state=0).fit(X)
    low = NLE(4, LandmarkGraph(100, weight, bandwidth=2.0), cut="ncut", n_init=3, random_state=0).fit(X)
    assert adjusted_rand_index(full.labels_, low.labels_) > 0.95
    assert low.objective_ == pytest.approx(full.objective_, rel=0.02)
    with pytest.raises(
        ValueError, match="fitted with LandmarkGraph cannot predict new points; fit with a graph of neighbours"
    ):
        low.predict(X)
    with pytest.raises(TypeError, match=r"only NLE takes it|accepted by NLE only"):
        SpectralClustering(3, graph=LandmarkGraph()).fit(X)


@pytest.mark.parametrize("cut", ["ratio", "ncut"])
def test_the_spectrum_of_the_landmark_operator_is_that_of_the_dense_matrix(cut, rng):
    """For a size above that up to which LAPACK is used instead of Lanczos."""
    X = np.repeat(4 * np.eye(4), 150, axis=0) + rng.normal(size=(600, 4))
    low = LandmarkGraph(200, bandwidth=2.0).build(X)
    W = low.factor @ low.factor.T
    np.fill_diagonal(W, 0)
    problem = cut_problem(low, cut)
    mass = W.sum(axis=1) if cut == "ncut" else np.ones(600)
    L = (np.diag(W.sum(axis=1)) - W) / np.sqrt(np.outer(mass, mass))
    values, vectors = np.linalg.eigh(L)

    assert problem.largest_eigenvalue(rng) == pytest.approx(values[-1], rel=1e-4)
    eigenvectors = cut_eigenvectors(low, problem, 4, cut, rng)
    assert np.max(subspace_angles(eigenvectors, vectors[:, :4] / np.sqrt(mass)[:, None])) < 1e-3


@pytest.mark.parametrize("rows", [np.ones((20, 2)), np.zeros((20, 2))])
@pytest.mark.parametrize("weight", ["heat", "dot"])
def test_landmarks_that_are_all_equal_raise_an_error(rows, weight):
    with pytest.raises(ValueError, match=r"all similarities are equal|do not even resemble|no positive eigenvalue"):
        NLE(3, LandmarkGraph(40, weight, bandwidth=1.0)).fit(rows)


def test_signed_weights_may_cancel_in_every_row():
    W = np.array([[0, 1, -1, 0], [1, 0, 0, -1], [-1, 0, 0, 1], [0, -1, 1, 0.0]])
    for model in (NLE(2, "precomputed", random_state=0), NLE(2, W, random_state=0)):
        labels = model.fit(W).labels_
        assert labels[0] == labels[1] != labels[2] == labels[3]


@pytest.mark.parametrize("signed", ["split", "shift"])
def test_signed_graphs_give_valid_memberships_and_scores(signed, rng):
    X = rng.normal(size=(40, 3))
    model = NLE(2, FullGraph("dot", signed=True), signed=signed, random_state=0).fit(X)
    assert (model.outlier_score_ >= 0).all()
    assert (model.outlier_score_ <= 1).all()
    if signed == "split":
        shares = model.transform(rng.normal(size=(30, 3)))
        assert (shares >= 0).all()
        assert_allclose(shares.sum(axis=1), 1)
    assert NLE(2, FullGraph("dot", signed=True).build(X).weights, signed=signed).fit(X).labels_.shape == (40,)


def test_self_loops_count_in_volumes(rng):
    X, y = rng.normal(size=(30, 3)), np.repeat([0, 1, 2], 10)
    model = NLE(3, LabelGraph(KNNGraph(5)), cut="ncut", random_state=0).fit(X, np.where(np.arange(30) % 2, y, -1))
    assert model.objective_ == pytest.approx(normalized_cut(model.graph_, model.labels_))


def test_data_frames_and_parameters_set_after_fit(rng, recwarn):
    X = pd.DataFrame(np.abs(rng.normal(size=(40, 3))), columns=list("abc"))
    model = NLE(2, FullGraph("dot"), signed="shift", random_state=0).fit(X).set_params(signed="split")
    with pytest.raises(InputError, match="fitted with signed='shift' cannot predict new points") as raised:
        model.predict(X)
    assert raised.value.code == "no_new_points"
    NLE(2, random_state=0).fit(X).predict(X)
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]


def test_outliers_have_high_scores(rng):
    X = np.concatenate(
        [np.repeat(6 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3)), rng.normal(scale=6, size=(9, 3))]
    )
    model = NLE(3, KNNGraph(8, weight="heat"), cut="ncut", random_state=0).fit(X)
    scores = model.outlier_score_
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    assert scores[90:].mean() > scores[:90].mean() + 0.2
    assert_allclose(outlier_scores(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([2.0, 2.0])), [0, 1])


def test_one_cluster_and_as_many_as_nodes(rng):
    graph = sparse_graph(rng)
    single = NLE(1, graph, random_state=0).fit(graph)
    assert single.objective_ == pytest.approx(0, abs=1e-9)
    assert (single.labels_ == 0).all()
    small = KNNGraph(3).build(rng.normal(size=(8, 2)))
    every = NLE(8, small, init=np.arange(8), random_state=0).fit(small)
    assert len(np.unique(every.labels_)) == 8


@pytest.mark.filterwarnings("ignore:the graph has")
def test_components_and_isolated_nodes(uneven_graph):
    for cut in ("ratio", "ncut"):
        model = NLE(3, cut=cut, random_state=0).fit(uneven_graph)
        assert len(np.unique(model.labels_)) == 3
        assert np.isfinite(model.embedding_).all()


def test_a_warning_says_that_the_updates_did_not_converge(rng):
    with pytest.warns(NotConvergedWarning, match="NLE did not converge within max_iter=3 updates") as warned:
        model = NLE(3, sparse_graph(rng), max_iter=3, random_state=0).fit(rng.normal(size=(60, 3)))
    assert not model.converged_
    (warning,) = [one for one in warned if one.category is NotConvergedWarning]  # the graph may be disconnected, too
    assert warning.filename == __file__
    assert (warning.message.code, warning.message.fields) == ("not_converged", {"max_iter": 3})


def test_fit_transform_passes_the_labels_to_the_graph(rng):
    X, y = rng.normal(size=(30, 3)), np.where(np.arange(30) % 2, np.repeat([0, 1, 2], 10), -1)
    model = NLE(3, LabelGraph(KNNGraph(5)), n_init=2, random_state=0)
    assert_array_equal(model.fit_transform(X, y), model.fit(X, y).memberships_)


def test_a_failed_fit_leaves_the_model_unchanged(rng):
    X = rng.normal(size=(40, 3))
    model = NLE(2, n_init=1, random_state=0).fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="n_neighbors"):
        model.fit(np.ones((3, 2)))
    assert vars(model) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"graph": np.ones((20, 20))}, "all similarities are equal"),
        ({"graph": np.zeros((20, 20))}, "all similarities are equal"),
        ({"cut": "min"}, "cut="),
        ({"signed": "drop"}, "signed="),
        ({"init": "zeros"}, "init='zeros' is not known; choose one of"),
        ({"init": np.full(20, 7)}, "init as labels must be integers from 0 to 1"),
        ({"init": -np.ones((20, 2))}, "finite, non-negative numbers of shape"),
        ({"init": np.full((20, 2), np.nan)}, "finite, non-negative numbers of shape"),
        ({"graph": LandmarkGraph(9), "signed": "shift"}, "cannot be shifted"),
        ({"n_clusters": 30}, "more than the number of rows"),
    ],
)
@pytest.mark.filterwarnings("ignore:the graph has")
def test_bad_input_raises_an_error(options, words, rng):
    with pytest.raises(ValueError, match=words):
        NLE(**({"n_clusters": 2} | options)).fit(rng.normal(size=(20, 2)))


def test_new_points_need_training_rows_and_unshifted_weights(rng):
    X = np.abs(rng.normal(size=(40, 3)))
    with pytest.raises(ValueError, match="fitted on a graph"):
        NLE(2, random_state=0).fit(KNNGraph(5).build(X)).predict(X)
    with pytest.raises(
        ValueError, match="fitted with signed='shift' cannot predict new points; fit with signed='split'"
    ):
        NLE(2, FullGraph("dot"), signed="shift", random_state=0).fit(X).predict(X)


def test_the_largest_eigenvalue_is_lapacks(rng, backend):
    A = rng.normal(size=(80, 80))
    A = A + A.T
    converted = backend(A)
    value = largest_eigenvalue(lambda v: converted @ v, backend(rng.normal(size=(80, 1))))
    top = np.linalg.eigvalsh(A)[-1]
    assert value == pytest.approx(top, rel=2e-6)
    assert value >= top - 1e-9
    few = backend(np.diag([3.0, 3.0, 1.0]))
    assert largest_eigenvalue(lambda v: few @ v, backend(np.ones((3, 1)))) == pytest.approx(3)


# -------------------------------------------------------------------------------------------------------------- weights


def test_weights_count_in_the_graph_and_in_the_sizes_of_clusters():
    """Ratio Cut of √(m_i m_j) w_ij with the sizes Σ m_i, the least of all partitions into two."""
    rng, n = np.random.RandomState(3), 9  # with these weights, another partition is the best
    m, side = rng.choice([1.0, 8.0], size=n), np.arange(n) < 5
    W = np.triu(rng.uniform(size=(n, n)) * np.where(np.equal.outer(side, side), 1.0, 0.4), 1)
    W += W.T

    def cut_of(labels, weights, masses):
        return weights[np.ix_(labels, ~labels)].sum() * (1 / masses[labels].sum() + 1 / masses[~labels].sum())

    model = NLE(2, cut="ratio", n_init=5, random_state=0).fit(AffinityGraph.from_matrix(W), sample_weight=m)

    partitions = [np.array(bits, dtype=bool) for bits in product([True, False], repeat=n) if 0 < sum(bits) < n]
    weighted = W * np.sqrt(np.outer(m, m))
    best = min(partitions, key=lambda labels: cut_of(labels, weighted, m))
    without = min(partitions, key=lambda labels: cut_of(labels, W, np.ones(n)))
    assert adjusted_rand_index(model.labels_, best) == 1
    assert adjusted_rand_index(model.labels_, without) < 1


def test_equal_weights_are_none_and_landmarks_have_no_weights(rng):
    X = rng.normal(size=(60, 3)) + 5 * np.eye(3)[np.arange(60) % 3]
    plain, equal = (NLE(3, random_state=0).fit(X, sample_weight=one) for one in (None, np.full(60, 7.0)))

    assert_array_equal(equal.labels_, plain.labels_)
    with pytest.raises(InputError, match="a LandmarkGraph has no edges, so sample_weight cannot be used"):
        NLE(3, graph=LandmarkGraph(20), random_state=0).fit(X, sample_weight=np.arange(1, 61))
