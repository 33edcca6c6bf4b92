from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from fiedler.datasets import is_available, load
from fiedler.errors import InputError
from fiedler_papers.datasets import DATASETS, files


@pytest.fixture
def place(cache):
    """Return a function that writes arrays to the cache under the name of a data set."""

    def write(name, **arrays):
        cache.mkdir(exist_ok=True)
        files.write(cache / f"{name}.npz", {key: np.asarray(value) for key, value in arrays.items()})

    return write


@pytest.mark.parametrize("name", ["umist", "ecoli"])
def test_sets_in_files_are_available_if_there_is_a_file(name, cache, tmp_path, monkeypatch):
    """umist has neither a generator nor a public source, so it needs a file like the others."""
    assert not is_available(name)

    cache.mkdir()
    (cache / f"{name}.npz").touch()
    assert is_available(name)
    assert not is_available(name, cache=tmp_path / "other")

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / f"{name}.npz").touch()
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path / "data"))
    assert is_available(name, cache=tmp_path / "other")


def test_registry_rows_are_consistent():
    for row in DATASETS.values():
        assert len(row.fingerprint) == 64
        assert len(row.target_names) in (0, row.n_classes)
        assert len(row.feature_names) in (0, row.shape[1])
        assert row.image is None or np.prod(row.image.shape) == row.shape[1]


def test_integers_become_float64_and_float32_is_kept(place):
    place("zoo", X=np.array([[1], [2]], dtype=np.uint8), y=[0, 1])
    place("usps", X=np.array([[1], [2]], dtype=np.float32), y=[0, 1])
    place("tdt2", **files.pack(sp.csr_array(np.eye(2, dtype=np.uint8))), y=[0, 1])

    assert load("zoo").X.dtype == np.float64
    assert load("usps", normalize="standard").X.dtype == np.float32
    assert isinstance(load("tdt2").X, sp.csr_array)
    assert load("tdt2").X.dtype == np.float64


def test_classes_without_names_are_numbered(place):
    place("tdt2", X=np.eye(3), y=[0, 1, 2])

    bunch = load("tdt2", classes=[2, 0])

    assert_array_equal(bunch.target_names, ["2", "0"])
    assert bunch.feature_names is None


def test_images_are_upright_in_their_order(place):
    image = np.arange(32 * 32).reshape(32, 32)
    place("orl", X=[image.T.ravel()], y=[0])
    place("usps", X=[image[:16, :16].ravel()], y=[0])

    orl, usps = load("orl"), load("usps")

    assert_array_equal(orl.X[0].reshape(orl.image_shape, order=orl.image_order), image)
    assert_array_equal(usps.X[0].reshape(usps.image_shape, order=usps.image_order), image[:16, :16])
    assert "image_shape" not in load("iris")


def test_subset_applies_to_every_field(place):
    is_test = [False, False, True, True, True]
    place("usps", X=np.arange(10.0).reshape(5, 2), y=[0, 1, 2, 0, 2], is_test=is_test, target_names=list("abc"))

    test = load("usps", subset="test")

    assert_array_equal(test.X[:, 0], [4, 6, 8])
    assert_array_equal(test.y, [1, 0, 1])
    assert_array_equal(test.target_names, ["a", "c"])
    assert test.is_test.all()
    assert not load("usps", subset="train").is_test.any()


def test_classes_are_numbered_within_the_subset(place):
    place("letter", X=np.arange(6)[:, None], y=[5, 3, 2, 1, 0, 3], target_names=list("ABCDEF"))

    part = load("letter", subset="ABCD", classes=[3])

    assert_array_equal(part.X[:, 0], [1, 5])
    assert_array_equal(part.target_names, ["D"])


def test_missing_values_are_kept_unless_the_subset_is_complete(place):
    place("dermatology", X=np.float32([[1, 2], [3, np.nan], [5, 4]]), y=[0, 1, 1])

    assert np.isnan(load("dermatology").X).sum() == 1
    assert_array_equal(load("dermatology", subset="complete").X, [[1, 2], [5, 4]])


def test_unit_rows_have_unit_length_and_zero_rows_stay_zero(place):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]])
    place("orl", X=X, y=[0, 1, 2])
    place("tdt2", **files.pack(sp.csr_array(X)), y=[0, 1, 2])

    dense, sparse = load("orl", normalize="unit").X, load("tdt2", normalize="unit").X

    assert_allclose(dense, [[0.6, 0.8], [0, 0], [0, 1]])
    assert isinstance(sparse, sp.csr_array)
    assert_allclose(sparse.toarray(), dense)


def test_standard_columns_agree_with_scikit_learn_and_constant_ones_are_zero(place):
    X = np.column_stack([np.arange(7.0) ** 2, np.full(7, 0.1)])
    place("zoo", X=X, y=np.zeros(7, dtype=int))

    Z = load("zoo", normalize="standard").X

    assert_allclose(Z[:, :1], StandardScaler().fit_transform(X[:, :1]))
    assert_array_equal(Z[:, 1], 0)


@pytest.mark.parametrize("normalize", ["unit", "standard", "unit_interval"])
def test_missing_values_stay_missing_and_affect_no_others(normalize, place):
    X = np.float32([[1, 2, 7], [3, np.nan, 7], [5, 4, np.nan]])
    place("dermatology", X=X, y=[0, 1, 1])

    assert_array_equal(np.isnan(load("dermatology", normalize=normalize).X), np.isnan(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "letter", "subset": "XYZ"}, r"subset='XYZ' is not known; choose one of \['ABCD'\]"),
        ({"name": "tdt2", "normalize": "standard"}, "normalize='standard' does not accept sparse data; choose 'unit'"),
        ({"name": "tdt2", "normalize": "unit_interval"}, "normalize='unit_interval' does not accept sparse data"),
    ],
)
def test_options_that_a_set_does_not_have_raise(options, message, place):
    place("tdt2", **files.pack(sp.csr_array(np.eye(2))), y=[0, 1])

    with pytest.raises(InputError, match=message):
        load(**options)
