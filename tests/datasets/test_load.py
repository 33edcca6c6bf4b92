from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from fiedler.datasets import archive, is_available, list_datasets, load
from fiedler.datasets.registry import DATASETS
from fiedler.errors import DataNotFoundError, InputError

BUILTIN = [name for name, row in DATASETS.items() if row.builtin is not None]


@pytest.fixture
def place(cache):
    """Return a function that writes arrays to the cache under the name of a data set."""

    def write(name, **arrays):
        cache.mkdir(exist_ok=True)
        archive.write(cache / f"{name}.npz", {key: np.asarray(value) for key, value in arrays.items()})

    return write


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_sets_need_no_files(name, cache):
    bunch = load(name, download=False)

    row = DATASETS[name]
    assert bunch.X.shape == row.shape
    assert bunch.X.dtype == np.float64
    assert_array_equal(np.unique(bunch.y), np.arange(row.n_classes))
    assert len(bunch.target_names) == row.n_classes
    assert bunch.name == name
    assert not cache.exists()


def test_iris_equals_that_of_scikit_learn():
    iris, reference = load("iris"), load_iris()

    assert_array_equal(iris.X, reference.data)
    assert_array_equal(iris.target_names[iris.y], reference.target_names[reference.target])
    assert_array_equal(iris.feature_names, reference.feature_names)


def test_every_data_set_is_described_in_one_line():
    listed = list_datasets()

    assert listed.keys() == DATASETS.keys()
    assert all("\n" not in line and f"{DATASETS[name].n_classes} classes" in line for name, line in listed.items())
    assert load("wine").description == listed["wine"]


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_sets_are_available(name, cache):
    assert is_available(name)


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


def test_unknown_names_raise_with_a_suggestion(cache):
    for function in (load, is_available):
        with pytest.raises(DataNotFoundError, match=r"no data set 'digit' \(did you mean 'digits'\?\)") as caught:
            function("digit")
        assert (caught.value.code, caught.value.fields["value"]) == ("unknown_dataset", "digit")
    with pytest.raises(DataNotFoundError, match=r"choose one of \['two_moons', .*'zoo'\]"):
        load("mnist")


def test_registry_rows_are_consistent():
    for row in DATASETS.values():
        assert (row.fingerprint == "") == (row.builtin is not None)
        assert len(row.target_names) in (0, row.n_classes)
        assert len(row.feature_names) in (0, row.shape[1])
        assert row.image is None or np.prod(row.image.shape) == row.shape[1]


def test_integers_become_float64_and_float32_is_kept(place):
    place("zoo", X=np.array([[1], [2]], dtype=np.uint8), y=[0, 1])
    place("usps", X=np.array([[1], [2]], dtype=np.float32), y=[0, 1])
    place("tdt2", **archive.pack(sp.csr_array(np.eye(2, dtype=np.uint8))), y=[0, 1])

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


def test_classes_are_numbered_in_the_given_order():
    full, part = load("digits"), load("digits", classes=[7, 2])

    rows = np.isin(full.y, [7, 2])
    assert_array_equal(part.X, full.X[rows])
    assert_array_equal(part.target_names[part.y], full.target_names[full.y[rows]])
    assert_array_equal(part.target_names, ["7", "2"])


def test_integer_selects_the_first_classes():
    part = load("digits", classes=3)

    assert_array_equal(part.y, load("digits", classes=[0, 1, 2]).y)
    assert_array_equal(np.unique(part.y), [0, 1, 2])


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
    place("tdt2", **archive.pack(sp.csr_array(X)), y=[0, 1, 2])

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


def test_unit_interval_scales_all_pixels_equally():
    raw, scaled = load("digits").X, load("digits", normalize="unit_interval").X

    assert_allclose(scaled, raw / 16)


def test_normalization_follows_the_selection_of_rows():
    part = load("iris", classes=2, normalize="standard").X

    assert_allclose(part.mean(axis=0), 0, atol=1e-12)
    assert_allclose(part.std(axis=0), 1)


@pytest.mark.parametrize("normalize", ["unit", "standard", "unit_interval"])
def test_missing_values_stay_missing_and_affect_no_others(normalize, place):
    X = np.float32([[1, 2, 7], [3, np.nan, 7], [5, 4, np.nan]])
    place("dermatology", X=X, y=[0, 1, 1])

    assert_array_equal(np.isnan(load("dermatology", normalize=normalize).X), np.isnan(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "iris", "subset": "test"}, "data set 'iris' has no named subsets"),
        ({"name": "letter", "subset": "XYZ"}, r"subset='XYZ' is not known; choose one of \['ABCD'\]"),
        ({"name": "iris", "normalize": "l1"}, "normalize='l1' is not known; choose one of"),
        (
            {"name": "iris", "classes": 4},
            "classes must be distinct numbers from 0 to 2, or a count of at most 3; got 4",
        ),
        ({"name": "iris", "classes": 0}, "classes must be an integer of at least 1"),
        ({"name": "iris", "classes": [0, 0]}, "classes must be distinct"),
        ({"name": "iris", "classes": [-1]}, "classes must be distinct"),
        ({"name": "iris", "classes": []}, "classes must be distinct"),
        ({"name": "iris", "classes": [0.0, 1.0]}, "classes must be distinct"),
        ({"name": "iris", "classes": ["setosa"]}, "classes must be distinct"),
        ({"name": "tdt2", "normalize": "standard"}, "normalize='standard' does not accept sparse data; choose 'unit'"),
        ({"name": "tdt2", "normalize": "unit_interval"}, "normalize='unit_interval' does not accept sparse data"),
    ],
)
def test_invalid_options_raise(options, message, place):
    place("tdt2", **archive.pack(sp.csr_array(np.eye(2))), y=[0, 1])

    with pytest.raises(InputError, match=message):
        load(**options)
