from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler import KNNGraph
from fiedler.baselines import GNMF
from fiedler.baselines.gnmf import Factors, balanced, objective, update
from fiedler.metrics import clustering_accuracy


@pytest.fixture
def X(rng):
    means = np.repeat([[9, 1, 1, 0], [0, 1, 9, 5], [1, 9, 0, 1]], 15, axis=0)
    return rng.poisson(means) + rng.uniform(size=means.shape)  # no two rows equally far from a third


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

    found = update(X, graph.weights, graph.degrees, lam, factors)

    assert_allclose(found.U, printed_U, rtol=1e-9)
    assert_allclose(found.V, printed_V, rtol=1e-9)


def test_the_objective_is_the_printed_sum_and_no_update_raises_it(X, factors):
    """[Cai et al. 2011, Eq. 8]: ||X - UV'||^2 + lam Tr(V'LV)."""
    graph, lam = KNNGraph(5).build(X), 3.0
    W, degrees, L = graph.weights, graph.degrees, graph.laplacian().toarray()
    printed = np.sum((X - factors.V @ factors.U.T) ** 2) + lam * np.trace(factors.V.T @ L @ factors.V)
    assert_allclose(objective(X, W, degrees, lam, factors), printed)
    assert_allclose(objective(sp.csr_array(X), W, degrees, lam, factors), printed)
    values = [printed]
    for _ in range(30):
        factors = update(X, W, degrees, lam, factors)
        values.append(objective(X, W, degrees, lam, factors))
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(values))
    assert values[-1] < 0.9 * values[0]


def test_balancing_keeps_the_product(factors):
    V, U = balanced(factors)
    assert_allclose(V @ U.T, factors.V @ factors.U.T)
    assert_allclose(np.linalg.norm(U, axis=0), 1)


def test_without_the_graph_term_it_factorises_as_well_as_scikit_learns_nmf(X):
    from sklearn.decomposition import NMF

    peer = NMF(3, solver="mu", init="random", max_iter=2000, random_state=0)
    V = peer.fit_transform(X)
    model = GNMF(3, lam=0.0, max_iter=2000, tol=1e-7, random_state=0).fit(X)
    assert_allclose(model.objective_, np.sum((X - V @ peer.components_) ** 2), rtol=0.02)


def test_clusters_and_how_it_ended(X):
    model = GNMF(3, lam=1.0, random_state=0).fit(X)
    assert clustering_accuracy(np.repeat(range(3), 15), model.labels_) == 1
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(model.history_))
    assert model.history_[-1] == model.objective_ < 0.9 * model.history_[0]
    assert model.n_iter_ >= 10
    assert model.embedding_.min() >= 0
    again = GNMF(3, lam=1.0, random_state=0).fit(sp.csr_array(X))
    assert_allclose(again.embedding_, model.embedding_, rtol=1e-6)


def test_bad_input_is_one_sentence(X):
    with pytest.raises(ValueError, match="Negative values in data passed to GNMF"):
        GNMF(2).fit(X - 5)
    with pytest.raises(ValueError, match="lam must be a nonnegative number"):
        GNMF(2, lam=-1).fit(X)
    with pytest.warns(UserWarning, match="still falling after 10 updates"):
        GNMF(2, max_iter=10, tol=0.0, random_state=0).fit(X)
