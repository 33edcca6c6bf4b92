"""Columns by cluster, against their printed formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler.table.columns import Requests, plan_columns, recognise_columns
from fiedler.table.profiles import Contrast, name_cluster, profile_rows, profile_table


@pytest.fixture
def labels(rng):
    return rng.randint(-1, 3, size=200)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_contrasts_of_numbers_are_differences_of_means_in_standard_deviations(container, labels, rng, monkeypatch):
    monkeypatch.setattr("fiedler.table.profiles.ROWS_PER_BLOCK", 64)
    X = rng.poisson(1.0, size=(200, 3)) + np.array([0.0, 1e6, 5.0]) * (container is np.asarray)

    profiles = profile_rows(container(X), labels, 3, ["a", "b", "c"])

    printed = [(X[labels == k].mean(axis=0) - X.mean(axis=0)) / X.std(axis=0) for k in range(3)]
    assert_allclose(profiles.differences, printed, rtol=1e-6)
    assert profiles.columns == ["a", "b", "c"]


def test_contrasts_of_words_are_those_of_their_indicators_and_missing_values_do_not_count(labels, rng):
    words = [None if rng.uniform() < 0.1 else word for word in rng.choice(["x", "y", "z"], size=200)]
    ages = np.where(rng.uniform(size=200) < 0.2, np.nan, rng.normal(size=200))
    columns = plan_columns({"word": words, "age": ages}, Requests())

    profiles = profile_table(columns, labels, 3)

    entry = profiles.levels.index("y")
    present = np.array([word is not None for word in words])
    is_y = np.array([word == "y" for word in words])
    p = is_y[present].mean()
    for k in range(3):
        share = is_y[present & (labels == k)].mean()
        assert_allclose(profiles.means[k, entry], share)
        assert_allclose(profiles.differences[k, entry], (share - p) / np.sqrt(p * (1 - p)))
        assert_allclose(profiles.means[k, profiles.columns.index("age")], np.nanmean(ages[labels == k]))


def test_the_largest_contrasts_come_first_one_for_each_column():
    y = np.repeat([0, 1], 50)
    table = {"same": np.tile([1.0, 2.0], 50), "far": y * 10.0 + np.tile([0, 1], 50), "sex": ["f"] * 55 + ["m"] * 45}

    contrasts = profile_table(plan_columns(table, Requests()), y, 2).contrasts(1)

    assert [one.column for one in contrasts] == ["far", "sex"]
    assert contrasts[0].difference > contrasts[1].difference > 0
    assert (contrasts[1].level, contrasts[1].lift) == ("m", pytest.approx(0.9 / 0.45))


def test_columns_that_are_left_out_have_profiles_if_they_are_readable():
    table = {
        "id": [f"c{i}" for i in range(60)],
        "unit": ["m"] * 60,
        "joined": np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]"),
        "note": ["a blue car on the road", "red wine and old cheese"] * 30,
    }
    columns = plan_columns(table, Requests(text=("note",)))

    profiles = profile_table(columns, np.tile([0, 1], 30), 2)

    assert profiles.columns == ["joined"]
    assert [terms[0][0] for terms in profiles.terms["note"]] != [[], []]
    assert {term for term, _ in profiles.leading_terms(0)} >= {"blue", "car", "road"}
    assert "2024-01-30" in str(Contrast("joined", "date", None, profiles.means[0, 0], profiles.overall[0], 0.1))


def test_an_empty_cluster_has_no_contrasts(rng):
    profiles = profile_rows(rng.normal(size=(20, 2)), np.zeros(20, dtype=int), 2)

    assert profiles.contrasts(1) == []
    assert profiles.contrasts(0) == []  # all rows


def test_evidence_is_the_printed_sum_of_squares(rng):
    X, y = rng.normal(size=(60, 4)), np.repeat([0, 1, 2], 20)
    X[:, 2] += 3 * y
    profiles, x = profile_rows(X, y, 3), X[25]

    evidence = dict(profiles.evidence(x, 1, 2))

    for j in range(4):
        to_rival, to_own = x[j] - X[y == 2, j].mean(), x[j] - X[y == 1, j].mean()
        assert_allclose(evidence[f"x{j}"], (to_rival**2 - to_own**2) / X[:, j].var())
    assert next(iter(evidence)) == max(evidence, key=lambda name: abs(evidence[name]))


def test_names_are_terms_or_contrasts():
    plan = Contrast("plan", "category", "pro", 0.9, 0.5, 1.0)
    numbers = [Contrast("age", "number", None, 3, 5, -0.5), Contrast("joined", "date", None, 9, 5, 0.4)]

    assert name_cluster([], [plan, *numbers]) == "plan = pro, low age"
    assert name_cluster([], numbers[::-1]) == "late joined, low age"
    assert name_cluster([("car", 1.0), ("road", 0.5), ("red", 0.2), ("x", 0.1)], [plan]) == "car, road, red"
    assert name_cluster([], []) is None


def test_equal_names_get_longer():
    y = np.repeat([0, 1, 2, 3], 25)
    X = np.stack([y % 2, y % 2, y // 2, y // 2], axis=1) + 0.01 * np.arange(100)[:, None] % 0.05 * np.arange(1, 5)
    profiles = profile_rows(X * [4, 4, 1, 1], y, 4, list("abcd"))

    assert len(set(profiles.names())) == 4


def test_columns_that_were_not_compared_are_not_among_the_contrasts(rng):
    y = np.repeat([0, 1], 30)
    columns = plan_columns({"a": y + rng.normal(size=60), "b": 9.0 * y + rng.normal(size=60)}, Requests())

    profiles = profile_table(columns, y, 2, used={"a"})

    assert profiles.left_out == ("b",)
    assert [one.column for one in profiles.contrasts(0)] == ["a"]
    assert profiles.to_dict()["used"] == [True, False] * 2


def test_columns_with_cells_of_several_types_are_described_by_their_words():
    (column,) = recognise_columns({"size": ["1", "2", "3"] * 10 + ["x"]}, Requests(drop=("size",)))

    assert column.kind == "category"


def test_profiles_of_more_rows_are_those_of_all_rows(rng):
    X, y = rng.normal(size=(90, 3)), rng.randint(3, size=90)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y[60:][y[60:] == 2] = 1
    y[80:] = 3  # a new cluster

    some = profile_rows(X[:60], y[:60], 3)
    grown, fresh = some.with_rows(X[60:], y[60:], 4), profile_rows(X, y, 4)

    for name in ("overall", "scales", "means", "counts"):
        assert_allclose(getattr(grown, name), getattr(fresh, name), err_msg=name)


def test_constant_columns_have_no_contrast():
    X = np.column_stack([np.full(300, 0.1), np.repeat([0.0, 1.0], 150)])

    assert [one.column for one in profile_rows(X, np.repeat([0, 1], 150), 2).contrasts(0)] == ["x1"]
