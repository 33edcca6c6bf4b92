"""Defects that the laws have found, each in a small case."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import aslinearoperator

from fiedler import (
    LCGMM,
    AffinityGraph,
    Directions,
    EmbedKMeans,
    FullGraph,
    GaussianMixture,
    GenieLinkage,
    LandmarkGraph,
    LapGMM,
    LaplacianEigenmaps,
    ManifoldClustering,
    SpectralClustering,
    Whitening,
    choose_n_clusters,
)
from fiedler._validation import check_data
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import spectral_bounds
from fiedler.core.pca import fit_pca
from fiedler.errors import FiedlerWarning, InputError, NotConvergedWarning
from fiedler.metrics import adjusted_rand_index, calibration_error, match_labels, purity
from fiedler.mixture.covariance import oas
from fiedler.table import TableEncoder
from fiedler_papers.baselines import NMFClustering, TransductiveSVM

from .strategies import Rows


@pytest.fixture(autouse=True)
def _only_our_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FiedlerWarning)
        yield


@pytest.mark.parametrize("form", [sp.dok_array, sp.lil_array, sp.coo_matrix])
def test_every_sparse_form_with_infinity_is_refused_with_our_error(form):
    X = form(np.eye(4))
    X = form(sp.csr_array(X) * np.inf)
    with pytest.raises(InputError, match="infinity") as caught:
        SpectralClustering(2).fit(X)
    assert caught.value.code == "not_finite"


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_infinities_of_both_signs_leak_no_warning(dtype):
    with pytest.raises(InputError, match="infinity"):
        check_data(np.array([[np.inf, 1], [-np.inf, 2]], dtype=dtype))


def test_sparse_rows_may_have_indices_of_64_bits(rng):
    X = sp.csr_array(np.concatenate([rng.rand(10, 3), 5 + rng.rand(10, 3)]))
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)

    labels = EmbedKMeans(2, random_state=0).fit(wide).labels_

    assert_array_equal(labels, EmbedKMeans(2, random_state=0).fit(X).labels_)
    assert wide.indices.dtype == np.int64


def test_principal_components_of_equal_rows_leak_no_warning():
    with pytest.raises(InputError, match="no scatter"):
        Whitening(max_components=1).fit(np.ones((5, 3)))


@pytest.mark.parametrize("score", [adjusted_rand_index, purity, match_labels])
@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([0.5, 1.0, 2.0], "labels_are_not_classes"),
        ([1j, 2j, 1j], "labels_are_not_classes"),
        (np.array([1, "a", 1], dtype=object), "mixed_labels"),
        (np.array([None, "a", "a"], dtype=object), "mixed_labels"),
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(score, labels, code):
    with pytest.raises(InputError) as caught:
        score([0, 1, 1], labels)
    assert caught.value.code == code


def test_calibration_refuses_mixed_labels():
    with pytest.raises(InputError, match="numbers and strings"):
        calibration_error(np.array([1, "a"], dtype=object), [[1.0, 0.0], [0.0, 1.0]])


def test_a_support_vector_machine_of_columns_far_from_zero_ends(rng):
    X, y = 1e8 + rng.normal(size=(12, 5)), np.arange(12) % 2
    with pytest.warns(NotConvergedWarning, match="subtract the mean"):
        model = TransductiveSVM().fit(X, y)
    assert not model.converged_


def fitted_in_single_precision(model, rng):
    return model.fit(np.concatenate([rng.rand(15, 2), 9 + rng.rand(15, 2)]).astype(np.float32))


@pytest.mark.parametrize(
    "model",
    [
        Directions(),
        EmbedKMeans(2, random_state=0),
        GaussianMixture(2, random_state=0),
        GenieLinkage(2),
        SpectralClustering(2, random_state=0),
        Whitening(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_new_rows_too_large_for_the_precision_of_the_fit_are_refused(model, rng):
    fitted = fitted_in_single_precision(model, rng)
    with pytest.raises(InputError, match="overflow float32"):
        (fitted.predict if hasattr(fitted, "predict") else fitted.transform)(np.full((2, 2), 1e100))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_nmf_predicts_rows_of_another_precision(rng, form):
    model = fitted_in_single_precision(NMFClustering(2, random_state=0), rng)

    assert_array_equal(model.predict(form(np.ones((2, 2)))), model.predict(np.ones((2, 2), dtype=np.float32)))


def test_nmf_refuses_zeros():
    with pytest.raises(InputError, match="zero"):
        NMFClustering(2).fit(np.zeros((4, 2)))


def test_sparse_rows_without_variance_have_principal_components():
    projection = fit_pca(sp.csr_array(np.ones((6, 1001))), 2)  # so many columns need ARPACK

    assert_allclose(projection(sp.csr_array(np.ones((3, 1001)))), np.zeros((3, 2)), atol=1e-12)
    assert_array_equal(projection.components.T @ projection.components, np.eye(2))


def test_as_many_classes_as_rows_leak_no_warning(rng):
    assert len(TransductiveSVM().fit(rng.rand(6, 2), np.arange(6)).classes_) == 6


def test_a_machine_without_a_finite_solution_is_refused():
    X, y = Rows("one huge value", 7, 2, 20152).build(), np.arange(7) * 3 // 7
    with pytest.raises(InputError, match="cannot be trained"):
        TransductiveSVM().fit(X, y)


def test_rows_of_very_different_sizes_do_not_overflow():
    X = Rows("mixed rows", 27, 5, 66952).build()

    assert_array_equal(ManifoldClustering(1, random_state=0).fit(sp.csr_array(X)).labels_, np.zeros(27))


def test_bounds_of_a_spectrum_are_the_same_again(rng):
    operator = aslinearoperator(rng.normal(size=(50, 50)))
    symmetric = operator + operator.T

    assert spectral_bounds(symmetric) == spectral_bounds(symmetric)


def test_principal_components_of_sparse_rows_of_low_rank_are_the_same_again():
    X = sp.csr_array(np.arange(7.0)[:, None] * [1, 0, 0])

    assert_array_equal(fit_pca(X, 2, random_state=0).components, fit_pca(X, 2, random_state=0).components)


@pytest.mark.parametrize("kind", ["symmetric", "random_walk"])
def test_the_laplacian_of_a_graph_of_subnormal_weights_is_finite(kind):
    W = 1e-310 * (np.ones((3, 3)) - np.eye(3))

    assert np.isfinite(AffinityGraph.from_matrix(W).laplacian(kind).toarray()).all()


def test_memberships_of_new_rows_that_do_not_converge_give_our_warning(rng):
    model = NMFClustering(3, max_iter=1, tol=1e-12, random_state=0).fit(rng.rand(20, 5))
    with pytest.warns(NotConvergedWarning, match="new rows"):
        model.predict(rng.rand(5, 5))


def test_the_error_of_an_exact_factorisation_is_not_the_root_of_a_negative_number():
    X = Rows("far from zero", 2, 5, 32099, ">i4", "coo matrix").build()

    assert NMFClustering(1, random_state=0).fit(X).objective_ >= 0


@pytest.mark.parametrize("use_graph", [False, True])
def test_a_row_too_far_for_every_density_has_memberships(rng, use_graph):
    model = LapGMM(2, random_state=0).fit(1e-140 * np.concatenate([rng.rand(20, 1), 9 + rng.rand(20, 1)]))

    assert_allclose(model.predict_proba([[1e140]], use_graph=use_graph).sum(), 1)


def test_weights_of_new_rows_that_overflow_are_refused(rng):
    recipe = FullGraph("polynomial")
    model = LCGMM(2, graph=recipe, random_state=0).fit(rng.rand(20, 2))
    with pytest.raises(InputError, match="overflow"):
        model.predict_proba(np.full((1, 2), 1e150), use_graph=True)


def test_landmarks_whose_weights_overflow_are_refused():
    with pytest.raises(InputError, match="overflows"):
        LandmarkGraph(22, weight="polynomial").build(Rows("one huge value", 8, 2, 909).build())


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_shrinkage_has_no_unit(size):
    S, counts = np.diag([1.0, 2.0, 9.0])[None], np.full((1, 1, 1), 99.0)

    assert_allclose(oas(size * S, counts), size * oas(S, counts), rtol=1e-12)


def test_equal_sparse_rows_are_one_row_for_the_number_of_clusters():
    choice = choose_n_clusters(sp.csr_array((20, 5)), range(1, 4), random_state=0)
    assert choice.clusterability is None


def test_anchored_memberships_sum_to_one(rng):
    model = LapGMM(3, solver="anchored", random_state=0).fit(rng.normal(size=(17, 5)))
    assert_allclose(model.memberships_.sum(axis=1), 1, rtol=1e-12)


def test_values_too_far_from_those_of_the_fit_are_refused(rng):
    model = TableEncoder().fit({"a": rng.rand(9), "b": 1e-120 * rng.rand(9)})
    with pytest.raises(InputError, match=r"too far from those of the fit; check their unit"):
        model.transform({"a": [0.5], "b": [1e200]})


def test_sparse_rows_are_assigned_to_centres_of_another_library(rng):
    xp = pytest.importorskip("array_api_strict")
    X = np.abs(rng.normal(size=(16, 3)))
    expected = EmbedKMeans(3, metric="cosine", random_state=0).fit(X).predict(X)
    model = EmbedKMeans(3, metric="cosine", random_state=0).fit(xp.asarray(X))
    assert_array_equal(to_numpy(model.predict(sp.dok_array(X))), expected)


def test_products_of_weights_of_new_rows_that_overflow_are_refused(rng):
    model = LaplacianEigenmaps(graph=FullGraph("polynomial")).fit(1e8 + np.arange(36.0).reshape(9, 4))
    with pytest.raises(InputError, match=r"weight='polynomial' overflows on this data"):
        model.transform(np.full((2, 4), 1e145))
