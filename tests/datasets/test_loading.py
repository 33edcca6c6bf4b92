from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from fiedler.datasets import is_available, list_datasets, load
from fiedler.datasets.loading import DATASETS
from fiedler.errors import DataNotFoundError, InputError


@pytest.mark.parametrize("name", DATASETS)
def test_sets_of_the_library_need_no_files(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FIEDLER_CACHE", str(tmp_path / "cache"))
    bunch = load(name, download=False)

    row = DATASETS[name]
    assert bunch.X.shape == row.shape
    assert bunch.X.dtype == np.float64
    assert_array_equal(np.unique(bunch.y), np.arange(row.n_classes))
    assert len(bunch.target_names) == row.n_classes
    assert bunch.name == name
    assert is_available(name)
    assert not (tmp_path / "cache").exists()


def test_iris_equals_that_of_scikit_learn():
    iris, reference = load("iris"), load_iris()

    assert_array_equal(iris.X, reference.data)
    assert_array_equal(iris.target_names[iris.y], reference.target_names[reference.target])
    assert_array_equal(iris.feature_names, reference.feature_names)


def test_every_data_set_is_described_in_one_line():
    listed = list_datasets()

    assert listed.keys() >= DATASETS.keys()
    assert all(
        "\n" not in listed[name] and f"{row.n_classes} classes" in listed[name] for name, row in DATASETS.items()
    )
    assert load("wine").description == listed["wine"]


def test_unknown_names_raise_with_a_suggestion():
    for function in (load, is_available):
        with pytest.raises(DataNotFoundError, match=r"no data set 'digit' \(did you mean 'digits'\?\)") as caught:
            function("digit")
        assert (caught.value.code, caught.value.fields["value"]) == ("unknown_dataset", "digit")
    with pytest.raises(DataNotFoundError, match=r"choose one of \['two_moons', .*'digits'"):
        load("mnist")


def test_without_fiedler_papers_its_data_sets_name_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fiedler_papers", None)

    assert list_datasets().keys() == DATASETS.keys()
    with pytest.raises(DataNotFoundError) as caught:
        load("usps")
    assert caught.value.code == "unknown_dataset"
    assert str(caught.value).endswith("; for those of the papers, install fiedler-papers: pip install ./papers")


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


def test_unit_interval_scales_all_pixels_equally():
    raw, scaled = load("digits").X, load("digits", normalize="unit_interval").X

    assert_allclose(scaled, raw / 16)


def test_normalization_follows_the_selection_of_rows():
    part = load("iris", classes=2, normalize="standard").X

    assert_allclose(part.mean(axis=0), 0, atol=1e-12)
    assert_allclose(part.std(axis=0), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "iris", "subset": "test"}, "data set 'iris' has no named subsets"),
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
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(InputError, match=message):
        load(**options)
