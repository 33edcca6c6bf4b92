from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import KNNGraph
from fiedler.errors import InputError, NotConvergedWarning
from fiedler.graph.weights import weigh_graph
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler_papers.baselines import GNMF
from fiedler_papers.baselines.gnmf import Factors, Problem, normalize_factors, objective, update_factors


@pytest.fixture
def X(rng):
    means = np.repeat([[9, 1, 1, 0], [0, 1, 9, 5], [1, 9, 0, 1]], 15, axis=0)
    return rng.poisson(means) + rng.uniform(size=means.shape)  # no two rows at the same distance from a third


@pytest.fixture
def factors(X, rng):
    return Factors(rng.uniform(size=(len(X), 3)), rng.uniform(size=(X.shape[1], 3)))


def test_the_updates_are_the_printed_ones(X, factors):
    """[Cai et al. 2011, Eqs 14, 15]: u <- u (XV) / (UV'V), v <- v (X'U + lam WV) / (VU'U + lam DV), entry by entry, the
    paper's X having samples as columns."""
    graph = KNNGraph(5).build(X)
    W, D, lam = graph.weights.toarray(), np.diag(graph.degrees), 3.0
    V, U = factors
    printed_U = U * (X.T @ V) / (U @ V.T @ V)
    printed_V = V * (X @ printed_U + lam * W @ V) / (V @ printed_U.T @ printed_U + lam * D @ V)

    updated = update_factors(Problem(X, graph.weights, graph.degrees, lam, np.ones((len(X), 1))), factors)

    assert_allclose(updated.U, printed_U, rtol=1e-9)
    assert_allclose(updated.V, printed_V, rtol=1e-9)


def test_the_objective_is_the_printed_sum_and_no_update_increases_it(X, factors):
    """[Cai et al. 2011, Eq. 8]: ||X - UV'||^2 + lam Tr(V'LV)."""
    graph, lam = KNNGraph(5).build(X), 3.0
    W, degrees, L = graph.weights, graph.degrees, graph.laplacian().toarray()
    printed = np.sum((X - factors.V @ factors.U.T) ** 2) + lam * np.trace(factors.V.T @ L @ factors.V)
    problem = Problem(X, W, degrees, lam, np.ones((len(X), 1)))
    assert_allclose(objective(problem, factors), printed)
    assert_allclose(objective(problem._replace(X=sp.csr_array(X)), factors), printed)
    values = [printed]
    for _ in range(30):
        factors = update_factors(problem, factors)
        values.append(objective(problem, factors))
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(values))
    assert values[-1] < 0.9 * values[0]


def test_a_row_with_a_weight_is_as_many_equal_rows(X, factors, rng):
    """On the graph in which each copy is joined to each copy of its neighbours with weight w / √(m_i m_j)."""
    counts = rng.randint(1, 5, size=len(X))
    rows, graph = np.repeat(np.arange(len(X)), counts), KNNGraph(5).build(X)
    weighted = weigh_graph(graph, counts.astype(float))
    problem = Problem(X, weighted.weights, weighted.degrees, 3.0, counts[:, None].astype(float))
    W = (weighted.weights.toarray() / np.outer(counts, counts))[np.ix_(rows, rows)]
    copies = Problem(X[rows], sp.csr_array(W), W.sum(axis=1), 3.0, np.ones((len(rows), 1)))
    copied = Factors(factors.V[rows], factors.U)

    assert_allclose(objective(problem, factors), objective(copies, copied))
    assert_allclose(update_factors(problem, factors).U, update_factors(copies, copied).U)
    assert_allclose(update_factors(problem, factors).V[rows], update_factors(copies, copied).V)
    model = GNMF(3, graph=graph, lam=1.0, max_iter=600, random_state=0)
    again = GNMF(3, graph=W, lam=1.0, max_iter=600, random_state=0).fit(X[rows])
    assert adjusted_rand_index(model.fit(X, sample_weight=counts).labels_[rows], again.labels_) == 1
    assert_allclose(model.objective_, again.objective_, rtol=0.01)


def test_normalizing_the_factors_keeps_the_product(factors):
    V, U = normalize_factors(factors)
    assert_allclose(V @ U.T, factors.V @ factors.U.T)
    assert_allclose(np.linalg.norm(U, axis=0), 1)


def test_without_the_graph_term_it_is_as_good_as_scikit_learns_nmf(X):
    from sklearn.decomposition import NMF

    peer = NMF(3, solver="mu", init="random", max_iter=2000, random_state=0)
    V = peer.fit_transform(X)
    model = GNMF(3, lam=0.0, max_iter=2000, tol=1e-7, random_state=0).fit(X)
    assert_allclose(model.objective_, np.sum((X - V @ peer.components_) ** 2), rtol=0.02)


def test_clusters_and_convergence(X):
    model = GNMF(3, lam=1.0, random_state=0).fit(X)
    assert clustering_accuracy(np.repeat(range(3), 15), model.labels_) > 0.95
    values = model.history_.objective
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(values))
    assert values[-1] == model.objective_ < 0.9 * values[0]
    assert not model.history_.maximize
    assert model.n_iter_ >= 10
    assert model.history_.iterations.tolist() == list(range(0, model.n_iter_ + 1, 10))
    assert model.converged_
    assert model.embedding_.min() >= 0
    again = GNMF(3, lam=1.0, random_state=0).fit(sp.csr_array(X))
    assert_allclose(again.embedding_, model.embedding_, rtol=1e-6)


def test_bad_input_raises_an_error(X):
    with pytest.raises(InputError, match="Negative values in data passed to GNMF") as raised:
        GNMF(2).fit(X - 5)
    assert raised.value.code == "negative_values"
    with pytest.raises(InputError, match="lam must be a non-negative number"):
        GNMF(2, lam=-1).fit(X)


def test_a_warning_says_that_the_updates_did_not_converge(X):
    with pytest.warns(NotConvergedWarning, match="GNMF did not converge within max_iter=15 updates") as warned:
        model = GNMF(2, max_iter=15, tol=0.0, random_state=0).fit(X)
    assert (warned[0].message.code, warned[0].message.fields) == ("not_converged", {"max_iter": 15})
    assert warned[0].filename == __file__
    assert (model.n_iter_, model.converged_) == (15, False)
    assert model.history_.iterations.tolist() == [0, 10, 15]
