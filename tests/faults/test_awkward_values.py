"""Rows of extreme or equal values: every estimator gives a result or its own error, and nothing else is warned of."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from contract import INSTANCES, blobs, fit, result, rows_for
from fiedler import LPI, NLE, KNNGraph, LapGMM, LearnedLaplacian
from fiedler.core.pca import fit_pca
from fiedler.errors import FiedlerError, FiedlerWarning, InputError
from fiedler.table import TableEncoder

# Files that an earlier test left open are closed, with a warning, when the collector of garbage finds them.
without_warnings = pytest.mark.filterwarnings("error", "ignore::ResourceWarning")


def with_one_value(value, dtype=np.float64):
    X = blobs(6).astype(dtype)
    X[3, 2] = value
    return X


AWKWARD = {
    "one huge value": with_one_value(1e100),
    "one huge float32": with_one_value(1e17, np.float32),
    "equal rows": np.full((18, 5), 0.1),
    "rows of zeros": np.zeros((18, 5)),
    "one column": blobs(6)[:, :1],
    "tiny values": 1e-140 * blobs(6),
}


@pytest.mark.slow
@without_warnings
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("model", INSTANCES, ids=repr)
def test_awkward_rows_give_a_result_or_an_error_of_fiedler(model, name):
    warnings.simplefilter("ignore", FiedlerWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    model, X = clone(model), rows_for(model, AWKWARD[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with suppress(FiedlerError):
        assert np.isfinite(result(fit(model, X), X)).all()


@pytest.mark.parametrize("n", [7, 12, 50, 60, 128, 150])
@pytest.mark.parametrize("cut", ["ratio", "ncut"])
def test_equal_rows_with_a_cluster_for_each_are_clustered(n, cut):
    """Their graph has one eigenvalue many times, on which LAPACK's solver for a part of the spectrum may fail."""
    model = NLE(n, KNNGraph(5), cut=cut, n_init=1, max_iter=2, random_state=0).fit(np.ones((n, 3)))

    assert model.labels_.shape == (n,)


@without_warnings
@pytest.mark.parametrize("solver", ["svd", "regression"])
@pytest.mark.parametrize("rows", [with_one_value(1e120), with_one_value(1e14, np.float32)], ids=["float64", "float32"])
def test_lpi_says_that_weighted_squares_overflow(rows, solver):
    if solver == "svd":  # computes in double precision
        rows = rows.astype(np.float64) * (1e100 if rows.dtype == np.float32 else 1)
    with pytest.raises(InputError, match=r"overflow float\d\d; scale X down, or use normalize=True") as caught:
        LPI(1, solver=solver).fit(np.abs(rows))

    assert caught.value.code == "sums_overflow"


@without_warnings
@pytest.mark.parametrize("optimizer", ["doubling", "lbfgs"])
def test_a_step_that_overflows_is_undone_without_a_warning(optimizer):
    X = with_one_value(1e20)
    model = LearnedLaplacian(graph="full", optimizer=optimizer, max_iter=8, random_state=0).fit(X, np.arange(18) // 6)

    assert np.isfinite(model.metric_).all()


@without_warnings
def test_principal_components_of_equal_rows_are_zero():
    X = np.ones((20, 5))

    assert_array_equal(fit_pca(X, 2, random_state=0)(X), 0)
    with pytest.raises(InputError, match="all rows of X are equal"):
        LapGMM(2, pca=2).fit(X)


@without_warnings
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_faiss_finds_neighbours_among_equal_rows(value, dtype):
    X = np.full((200, 5), value, dtype=dtype)
    recipe = KNNGraph(5, method="faiss")
    graph = recipe.build(X)

    assert graph.n_nodes == 200
    assert recipe.link(X[:3] + 1, X, graph).shape == (3, 200)


@without_warnings
@pytest.mark.parametrize("power", [-300, -180, 0, 180, 300])
def test_a_column_of_a_table_is_scaled_whatever_its_unit(power):
    X = blobs(6)
    scaled = X * np.array([10.0**power, 1, 1, 1, 1])

    assert_allclose(TableEncoder().fit_transform(scaled), TableEncoder().fit_transform(X), rtol=1e-9, atol=1e-12)
