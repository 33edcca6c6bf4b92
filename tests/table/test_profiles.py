"""Columns by cluster, against their printed formulas."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from fiedler.table.columns import Requests, plan_columns, recognise_columns
from fiedler.table.profiles import Contrast, _name_parts, name_cluster, profile_rows, profile_table


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
    assert_allclose(profiles.above, [(X[labels == k] > X.mean(axis=0)).mean(axis=0) for k in range(3)])
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

    assert set(profiles.columns) == {"joined", "note"}
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

    terms = [("car", 1.0), ("road", 0.5), ("red", 0.2), ("x", 0.1)]

    named = lambda terms, *contrasts: name_cluster(_name_parts(terms, contrasts))  # noqa: E731
    assert named([], plan, *numbers) == "plan = pro, low age"
    assert named([], *numbers[::-1]) == "joined around 1970-01-10, low age"
    assert named(terms, plan) == "plan = pro"
    assert named(terms) == "car, road, red"
    assert named(terms, numbers[0]._replace(difference=0.3)) == "car, road, red"  # not clear
    assert named([], numbers[0]._replace(difference=0.3)) == "high age"
    assert named([], numbers[0]._replace(difference=0.1)) is None  # says nothing


@pytest.fixture
def segments(rng):
    """Customers of two ages, whose comments say little: one in four of the young praise the family pack."""
    young = np.arange(200) < 80
    others = rng.choice(["all went fine as usual", "it came a day late", "no complaints so far"], size=200)
    praise = young & (rng.uniform(size=200) < 0.26)
    return young, {
        "age": np.where(young, 28, 50) + rng.normal(0, 5, size=200),
        "weight": [f"{value:.1f} kg" for value in 5 + rng.normal(size=200)],
        "price": [f"{value:.2f} €" for value in np.where(young, 20, 60) + rng.normal(size=200)],
        "comment": np.where(praise, "family pack is good value", others).tolist(),
    }


def test_a_word_names_only_a_cluster_that_it_covers(segments):
    young, table = segments
    labels = 1 - young.astype(int)

    for requests in (Requests(text=("comment",)), Requests(category=("comment",))):
        profiles = profile_table(plan_columns(table, requests), labels, 2)
        assert profiles.names() == ["low price, low age", "high price, high age"]
        of_comment = [one for one in profiles.contrasts(0) if one.column == "comment"]
        assert of_comment[0].coverage < 0.4  # it is listed, since nobody else says so
        assert of_comment[0].lift == pytest.approx(2.5)


def test_a_term_that_covers_a_cluster_names_it(segments):
    young, table = segments
    table["comment"] = np.where(young, "for kids at school", table["comment"]).tolist()

    profiles = profile_table(plan_columns(table, Requests(text=("comment",))), 1 - young.astype(int), 2)

    assert "comment: kids/school" in profiles.names()[0]
    assert "'kids' in comment: 100 % of the rows" in "\n".join(map(str, profiles.contrasts(0)))
    assert "comment" not in profiles.names()[1]


def test_one_extreme_value_does_not_name_a_cluster(rng):
    X = rng.normal(size=(200, 2))
    labels = np.repeat([0, 1], 100)
    X[labels == 0, 1] += 1.0
    X[0, 0] = 500.0

    profiles = profile_rows(X, labels, 2, ["amount", "size"])

    assert profiles.contrasts(0)[0].column == "size"
    assert profiles.names()[0] == "high size"


def test_a_word_of_a_single_row_does_not_name_it():
    columns = plan_columns({"plan": ["a"] * 30 + ["b"] * 30 + ["c"]}, Requests(category=("plan",)))

    assert profile_table(columns, np.array([0] * 30 + [1] * 30 + [2]), 3).names() == ["plan = a", "plan = b", None]


def test_units_are_kept_in_contrasts_and_cells(segments):
    young, table = segments
    profiles = profile_table(plan_columns(table, Requests()), 1 - young.astype(int), 2)

    assert profiles.units == {"weight": "kg", "price": "€"}
    assert re.match(r"price: [\d.]+ € \([\d.]+ € overall, -1.2 sd\)", str(profiles.contrasts(0)[0]))
    cells = profiles.cells_of(profiles.entries[0])
    assert (cells["weight"], cells["price"]) == (
        f"{float(table['weight'][0].split()[0]):g} kg",
        f"{float(table['price'][0].split()[0]):.4g} €",
    )


def test_rows_that_are_kept_can_be_grouped_anew(segments):
    young, table = segments
    columns, labels = plan_columns(table, Requests(text=("comment",))), np.arange(200) % 3

    regrouped = profile_table(columns, 1 - young.astype(int), 2).regrouped(labels, 3)

    fresh = profile_table(columns, labels, 3)
    at = [regrouped.columns.index(name) for name in ("age", "weight", "price")]
    assert_allclose(regrouped.means[:, at], fresh.means[:, :3], rtol=1e-5)
    assert regrouped.units == fresh.units


def test_columns_that_were_not_compared_are_no_evidence(rng):
    y = np.repeat([0, 1], 30)
    columns = plan_columns({"a": y + rng.normal(size=60), "b": 9.0 * y + rng.normal(size=60)}, Requests())

    profiles = profile_table(columns, y, 2, used={"a"})

    assert [name for name, _ in profiles.evidence(profiles.entries[3], 0, 1)] == ["a"]


def test_equal_names_are_told_apart():
    y = np.repeat([0, 1, 2, 3], 25)
    X = np.stack([y % 2, y % 2, y // 2, y // 2], axis=1) + 0.01 * np.arange(100)[:, None] % 0.05 * np.arange(1, 5)
    profiles = profile_rows(X * [4, 4, 1, 1], y, 4, list("abcd"))

    names = profiles.names()
    assert len(set(names)) == 4
    terms = {"note": [[("car", 3.0), ("road", 2.0), ("red", 1.0), (last, 0.5)] for last in ("new", "old")]}
    assert profiles._replace(means=profiles.means[:2] * 0, terms=terms, columns=[], kinds=[]).names() == [
        "car, road, new",
        "car, road, old",
    ]


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

    some = profile_rows(X[:60], y[:60], 3, list("abc"))
    grown, fresh = some.with_rows(X[60:], y[60:], 4), profile_rows(X, y, 4, list("abc"))

    for name in ("overall", "scales", "means", "counts", "entries"):
        assert_allclose(getattr(grown, name), getattr(fresh, name), err_msg=name)


def test_constant_columns_have_no_contrast():
    X = np.column_stack([np.full(300, 0.1), np.repeat([0.0, 1.0], 150)])

    assert [one.column for one in profile_rows(X, np.repeat([0, 1], 150), 2).contrasts(0)] == ["x1"]
