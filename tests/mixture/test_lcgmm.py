import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler import LCGMM, AffinityGraph, GaussianMixture, KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.datasets import load
from fiedler.errors import FiedlerWarning, SingularCovarianceError
from fiedler.graph import diffuse
from fiedler.mixture.em import MixtureProblem


@pytest.fixture
def toy(rng):
    X = rng.normal(size=(25, 2))
    P = rng.dirichlet(np.ones(2), size=25)
    return X, P, KNNGraph(4).build(X)


def weights_t(P, W, lam):
    """T of [lcgmm, Eq. 6], with the divisions as printed."""
    T = np.ones_like(P)
    for i in range(P.shape[0]):
        for k in range(P.shape[1]):
            T[i, k] = 1 - lam * sum((1 - P[j, k] / P[i, k]) * W[i, j] for j in range(P.shape[0]))
    return T


def test_the_m_step_is_equations_7_9_and_11(toy):
    X, P, graph = toy
    lam = 0.05
    T = weights_t(P, graph.weights.toarray(), lam)
    N = P.sum(axis=0)
    hooks = LCGMM(2, lam=lam)._hooks(MixtureProblem(X, kind="full", ridge=0.0, graph=graph))

    model, _ = hooks.maximize(hooks.start(P))

    means = [sum(P[i, k] * T[i, k] * X[i] for i in range(25)) / N[k] for k in range(2)]
    scatter = lambda i, k: np.outer(X[i] - means[k], X[i] - means[k])  # noqa: E731
    covariances = [sum(P[i, k] * T[i, k] * scatter(i, k) for i in range(25)) / N[k] for k in range(2)]
    assert_allclose(model.weights, N / 25)
    assert_allclose(model.means, means)
    assert_allclose(model.covariances, covariances)


def test_the_sparse_form_is_the_printed_one_and_keeps_the_column_sums(toy, backend):
    _, P, graph = toy
    backend_graph = KNNGraph(4).build(backend(toy[0]))

    weights = to_numpy(diffuse(backend(P), backend_graph.laplacian(), 0.1))

    assert_allclose(weights, P * weights_t(P, graph.weights.toarray(), 0.1))
    assert_allclose(weights.sum(axis=0), P.sum(axis=0))


def test_the_penalty_is_the_printed_divergence(toy):
    """[lcgmm, 2.1.3]: R = sum_ij D_ij W_ij with D the symmetrised Kullback-Leibler divergence."""
    X, P, graph = toy
    W = graph.weights.toarray()
    kl = lambda a, b: sum(x * np.log(x / y) for x, y in zip(a, b))  # noqa: E731
    printed = sum(0.5 * (kl(P[i], P[j]) + kl(P[j], P[i])) * W[i, j] for i in range(25) for j in range(25))
    hooks = LCGMM(2, lam=0.3)._hooks(MixtureProblem(X, kind="full", ridge=0.1, graph=graph))

    step = hooks.score(np.log(P), hooks.start(P), P)

    assert_allclose(step.penalty, 0.3 * printed)


def test_without_the_graph_term_it_is_the_plain_mixture(backend):
    X = backend(load("iris").X)
    options = {"init": np.arange(150) // 50, "ridge": 0.1}  # with less, EM takes thousands of steps

    plain, consistent = GaussianMixture(3, tol=1e-12, **options).fit(X), LCGMM(3, lam=0, tol=1e-9, **options).fit(X)

    assert_allclose(to_numpy(consistent.memberships_), to_numpy(plain.memberships_), atol=1e-6)


def test_negative_weights_are_clipped_only_if_a_covariance_requires_it(rng):
    """Memberships that alternate between neighbours: with a large λ the weights make a covariance indefinite."""
    X = rng.normal(size=(60, 2))
    graph, P = KNNGraph(6).build(X), np.eye(2)[np.arange(60) % 2] * 0.98 + 0.01
    problem = MixtureProblem(X, kind="full", ridge=0.0, graph=graph)

    def m_step(**options):
        hooks = LCGMM(2, **options)._hooks(problem)
        return hooks.maximize(hooks.start(P))

    with pytest.raises(SingularCovarianceError):
        m_step(lam=3.0, negative_weights="signed")
    model, state = m_step(lam=3.0)
    assert_allclose(model.means, m_step(lam=3.0, negative_weights="clip")[0].means)
    assert state.clipped
    assert not m_step(lam=0.01)[1].clipped


def test_clipped_weights_are_reported(rng):
    X, labels = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = LCGMM(2, KNNGraph(6), lam=3.0, ridge=0.0, init=labels, max_iter=3)

    with pytest.warns(
        FiedlerWarning, match="negative weights, so they were clipped at zero; use a smaller lam"
    ) as caught:
        model.fit(X)
    assert "clipped_weights" in [getattr(warning.message, "code", None) for warning in caught]
    assert all(warning.filename == __file__ for warning in caught)


def test_row_weights_are_not_smoothed(rng):
    """With one component nothing is smoothed, so the mean is the weighted mean."""
    X, w = rng.normal(size=(50, 2)), rng.uniform(size=50)

    assert_allclose(LCGMM(1, lam=0.1).fit(X, sample_weight=w).means_[0], np.average(X, axis=0, weights=w))


def test_empty_clusters_are_reported(rng):
    with pytest.warns(UserWarning, match=r"only \d+ of the 20 clusters contain any rows"):
        LCGMM(20, random_state=0).fit(rng.normal(size=(60, 3)))


def test_a_graph_with_negative_weights_is_rejected(rng):
    W = np.ones((10, 10)) - 2 * np.eye(10)[::-1]
    with pytest.raises(ValueError, match="smoothed over non-negative weights, but the graph has negative ones"):
        LCGMM(2, AffinityGraph.from_matrix(W + W.T, signed=True)).fit(rng.normal(size=(10, 3)))


def test_memberships_of_real_data_are_smoother_than_those_of_the_plain_mixture():
    digits = load("digits", classes=4, normalize="unit")
    start = GaussianMixture(4, pca=10, random_state=0).fit(digits.X)
    model = LCGMM(4, pca=10, random_state=0).fit(digits.X)
    plain = np.sum(start.memberships_ * (model.graph_.laplacian() @ start.memberships_))

    assert model.converged_
    assert np.sum(model.memberships_ * (model.graph_.laplacian() @ model.memberships_)) < plain
