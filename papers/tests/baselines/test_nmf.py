import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from fiedler.core.arrays import order_by_first_row, renumber
from fiedler.errors import FiedlerWarning, InputError, NotConvergedWarning
from fiedler_papers.baselines import NMFClustering


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


def test_without_weights_labels_are_those_of_scikit_learns_factors(X):
    model = NMFClustering(3, weight="none", random_state=0).fit(X)
    nmf = NMF(3, random_state=0)
    V = nmf.fit_transform(X)
    expected = (V * np.linalg.norm(nmf.components_, axis=1)).argmax(axis=1)
    assert_array_equal(model.labels_, renumber(expected, order_by_first_row(expected, 3)))
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert_allclose(model.memberships_.sum(axis=1), 1)


@pytest.mark.parametrize("weight", ["ncw", "none"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_row_with_a_weight_is_as_many_equal_rows(weight, convert, X, rng):
    counts = rng.randint(1, 5, size=len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    model = NMFClustering(3, weight=weight, init="nndsvd", tol=1e-8, max_iter=2000, random_state=0)
    copied = model.fit(X[rows]).memberships_, model.components_, model.objective_

    model.fit(convert(X), sample_weight=counts)

    assert_allclose(model.memberships_[rows], copied[0], atol=1e-4)
    assert_allclose(model.components_, copied[1], atol=1e-4)
    assert_allclose(model.objective_, copied[2], rtol=1e-4)
    assert np.abs(model.fit(X).components_ - copied[1]).max() > 1e-3


def test_sparse_rows_zero_rows_and_new_rows(X):
    X[4] = 0
    model = NMFClustering(3, random_state=0).fit(X)
    assert_allclose(NMFClustering(3, random_state=0).fit(sp.csr_array(X)).memberships_, model.memberships_, atol=1e-6)
    assert_allclose(model.memberships_[4], 1 / 3)
    assert np.mean(model.predict(X) == model.labels_) > 0.95


def test_negative_rows_raise_an_error(X):
    with pytest.raises(InputError, match="Negative values in data passed to NMFClustering") as raised:
        NMFClustering(2).fit(X - 5)
    assert raised.value.code == "negative_values"


def test_arrays_of_other_libraries_raise_an_error(X, foreign):
    with pytest.raises(InputError, match="convert the rows to NumPy") as raised:
        NMFClustering(2).fit(foreign(X))
    assert raised.value.code == "numpy_required"


def test_a_warning_says_that_the_iterations_did_not_converge(X):
    assert NMFClustering(3, random_state=0).fit(X).converged_
    with pytest.warns(NotConvergedWarning, match="NMF did not converge within max_iter=2 iterations") as warned:
        model = NMFClustering(3, max_iter=2, random_state=0).fit(X)
    assert [warning.message.code for warning in warned] == ["not_converged"]
    assert (model.n_iter_, model.converged_) == (2, False)


def test_clusters_without_rows_are_a_warning():
    with pytest.warns(FiedlerWarning, match="only 2 of the 4 clusters contain any rows"):
        NMFClustering(4, random_state=0).fit(np.ones((12, 3)))


def test_rows_of_another_precision_than_the_fit_are_predicted(rng):
    X = np.abs(rng.normal(size=(40, 4)))
    single = NMFClustering(3, random_state=0).fit(X.astype(np.float32))
    double = NMFClustering(3, random_state=0).fit(X)

    assert (single.predict(X) == single.predict(X.astype(np.float32))).all()
    assert (double.predict(X.astype(np.float32)) == double.predict(X)).all()
