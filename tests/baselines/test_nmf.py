import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from fiedler.baselines import NMFClustering


@pytest.fixture
def X(rng):
    return rng.poisson(np.repeat([[9, 1, 1, 0], [0, 1, 9, 5], [1, 9, 0, 1]], 15, axis=0)).astype(float)


def test_the_weights_are_the_printed_ones(X):
    """[Xu, Liu & Gong 2003]: the document matrix (documents as columns) times diag(X'X e)^-1/2."""
    columns = X.T
    printed = columns @ np.diag((columns.T @ columns @ np.ones(len(X))) ** -0.5)
    plain = NMFClustering(3, weight="none", random_state=0).fit(printed.T)
    weighted = NMFClustering(3, weight="ncw", random_state=0).fit(X)
    assert_allclose(weighted.memberships_, plain.memberships_)


def test_without_weights_it_reads_scikit_learns_factors(X):
    model = NMFClustering(3, weight="none", random_state=0).fit(X)
    nmf = NMF(3, random_state=0)
    V = nmf.fit_transform(X)
    assert_array_equal(model.labels_, (V * np.linalg.norm(nmf.components_, axis=1)).argmax(axis=1))
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert_allclose(model.memberships_.sum(axis=1), 1)


def test_sparse_rows_rows_of_zeros_and_new_rows(X):
    X[4] = 0
    model = NMFClustering(3, random_state=0).fit(X)
    assert_allclose(NMFClustering(3, random_state=0).fit(sp.csr_array(X)).memberships_, model.memberships_, atol=1e-6)
    assert_allclose(model.memberships_[4], 1 / 3)
    assert np.mean(model.predict(X) == model.labels_) > 0.95


def test_negative_rows_end_in_a_sentence(X):
    with pytest.raises(ValueError, match="Negative values in data"):
        NMFClustering(2).fit(X - 5)
