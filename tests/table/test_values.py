"""The cells of a column as numbers, dates, words or vectors."""

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.table.values import MISSING, PLACEHOLDERS, describe_notation, is_missing, read_values, to_word

NAN = float("nan")


@pytest.mark.parametrize(
    ("cells", "expected", "how"),
    [
        (["1", "2.5", "", "-3e2"], [1, 2.5, NAN, -300], ""),
        (["1,5", "20", "NA"], [1.5, 20, NAN], "with a decimal comma"),
        (["1.234,50", "7", "12.000"], [1234.5, 7, 12000], "with a decimal comma"),
        (["1,234", "12", "1,234,567.5"], [1234, 12, 1234567.5], "with commas between thousands"),
        (["€ 3,50", "12,00 €"], [3.5, 12], "with a decimal comma"),
        (["5 %", "7.5%"], [5, 7.5], ""),
        (["0,844", "12", "3,125"], [0.844, 12, 3.125], "with a decimal comma"),
        (["(12.50)", "12.5-", "\u22122", "CHF 3", "-$4"], [-12.5, -12.5, -2, 3, -4], ""),
        (["1'234.50", "7", "12\u2019000"], [1234.5, 7, 12000], "with gaps between thousands"),
        (["1 234", "7.5"], [1234, 7.5], "with gaps between thousands"),
        (["12 kg", "", "7.5kg"], [12, NAN, 7.5], "in kg"),
        (["12,5 km/h", "7 km/h"], [12.5, 7], "with a decimal comma, in km/h"),
        (["-3 °C", "20 °C"], [-3, 20], "in °C"),
        (["10:05", "00:00:30"], [36300, 30], "as time of day"),
        (np.array([60, "NaT"], dtype="timedelta64[s]"), [60, NAN], ""),
        ([1, 2.5, None, NAN, np.float32(3)], [1, 2.5, NAN, NAN, 3], ""),
        ([Decimal("1.5"), 2], [1.5, 2], ""),
        ([time(1, 0, 30), None], [3630, NAN], ""),
        ([timedelta(days=1)], [86400], ""),
        (np.array([1, 2, 3]), [1, 2, 3], ""),
    ],
)
def test_numbers(cells, expected, how):
    values = read_values(cells)

    assert (values.type, describe_notation(values.notation, values.unit)) == ("numbers", how)
    assert_allclose(values.cells, expected)


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        (["2024-03-01", None, "2024-12-31"], ""),
        (["2024-03-01T00:00:00Z", "", "2024-12-31"], ""),
        (["01.03.2024", "", "31.12.2024"], "as day.month.year"),
        (["03/01/2024", "", "12/31/2024"], "as month/day/year"),
        (["01/03/2024", "", "31/12/2024"], "as day/month/year"),
        (["1 Mar 2024", "", "31 Dec 2024"], "as day-month-year"),
        (["2024/03/01", "", "2024/12/31"], "as year/month/day"),
        (["03/01/2024 12:00 AM", "", "12/31/2024"], "as month/day/year"),
        ([date(2024, 3, 1), None, datetime(2024, 12, 31)], ""),
        ([datetime(2024, 3, 1, 1, tzinfo=timezone(timedelta(hours=1))), None, date(2024, 12, 31)], ""),
        (np.array(["2024-03-01", "NaT", "2024-12-31"], dtype="datetime64[D]"), ""),
    ],
)
def test_dates_are_days(cells, how):
    values = read_values(cells)

    assert (values.type, describe_notation(values.notation, values.unit)) == ("dates", how)
    assert_allclose(values.cells, [19783, NAN, 20088])


def test_dates_of_another_table_are_read_in_the_same_way():
    assert_allclose(read_values(["01/03/2024"], expected="dates", notation="day/month/year").cells, [19783])
    assert_allclose(read_values(["01/03/2024"], expected="dates", notation="month/day/year").cells, [19725])
    assert read_values(["red", "blue"], expected="numbers").n_mistakes == 2


def test_words_booleans_and_vectors():
    words = read_values(["red", " blue  sky", "NULL", None])
    assert (words.type, words.cells.tolist()) == ("words", ["red", "blue sky", None, None])
    assert read_values([True, False, None]).cells.tolist() == ["true", "false", None]
    assert read_values(["TRUE", "False"]).cells.tolist() == ["true", "false"]
    vectors = read_values([[1, 2], None, np.array([3.0, 4.0])])
    assert vectors.type == "vectors"
    assert_array_equal(vectors.cells, [[1, 2], [NAN, NAN], [3, 4]])
    assert read_values([["a"], ["b", "c"]]).cells.tolist() == ["a", "b, c"]
    assert read_values(["1", "2"], as_words=True).cells.tolist() == ["1", "2"]
    assert read_values([1.0, 2.0], as_words=True).cells.tolist() == ["1", "2"]


def test_a_few_words_among_many_numbers_are_mistakes():
    values = read_values([*map(str, range(40)), "many", "none at all"])

    assert (values.type, values.n_mistakes, values.mistakes) == ("numbers", 2, (40, 41))
    assert read_values(["1", "2", "many"]).type == "words"
    assert read_values([*["4", "6", "8"] * 20, "rotary"]).type == "words"  # few different values are categories
    assert read_values(np.array([1.0, np.inf])).mistakes == (1,)
    assert read_values([*map(str, range(30)), "1e999"]).mistakes == (30,)


def test_missing_cells_are_seen_in_every_type():
    assert [is_missing(cell) for cell in (None, NAN, "", " n/a ", "?", np.datetime64("NaT"))] == [True] * 6
    assert not any(is_missing(cell) for cell in (0, "0", False, "no", [], [NAN]))
    assert to_word(np.float64(2)) == "2"


def test_numbers_of_another_table_are_read_in_the_same_way():
    assert_array_equal(
        read_values(["12.000", "7.500"], expected="numbers", notation="decimal comma").cells, [12e3, 7500]
    )
    assert read_values(["1,5"], expected="numbers", notation="").n_mistakes == 1


@pytest.mark.parametrize("cells", [["01034", "8000"], ["+41791234567"], [10**18, 10**18 + 1], [str(10**18)], [10**400]])
def test_codes_are_words(cells):
    assert read_values(cells).type == "words"


def test_vectors_of_another_length_and_infinite_ones_are_mistakes():
    values = read_values([[1.0, 2.0], [3.0], [4.0, np.inf], None])

    assert (values.type, values.mistakes) == ("vectors", (1, 2))
    assert read_values([[], []]).is_missing.all()
    assert read_values(np.array(["2024-01-01"], dtype="datetime64[D]"), as_words=True).cells.tolist() == ["2024-01-01"]


def test_a_unit_is_expected_again_and_several_units_are_words():
    assert_array_equal(read_values(["3 kg", "4"], expected="numbers", notation="", unit="kg").mistakes, [1])
    assert read_values(["3 kg", "4 g"]).type == "words"
    assert read_values(["4b", "5b", "x"]).type == "words"


def test_lists_of_equally_many_numbers_in_words_are_vectors():
    for cells in (["[1, 2.5]", None, "[-3e2, 4]"], ["[1 2.5]", "", "[ -3e2  4 ]"]):
        values = read_values(cells)
        assert values.type == "vectors"
        assert_allclose(values.cells, [[1, 2.5], [NAN, NAN], [-300, 4]])
    assert read_values(["[1, 2]", "[3]"]).type == "words"
    assert read_values(["['a']", "['b']"]).type == "words"
    assert read_values(["[1, 2]"], expected="vectors", notation="").type == "vectors"
    assert read_values(["[1, x]"], expected="vectors", notation="").n_mistakes == 1


def test_dates_that_can_be_read_in_two_ways_and_in_several_notations():
    assert read_values(["01/02/2024", "05/06/2024"]).alternative == "day/month/year"
    assert read_values(["01/02/2024", "05/26/2024"]).alternative == ""
    mixed = read_values([f"{day:02d}.01.2024" if day % 2 else f"2024-01-{day:02d}" for day in range(1, 29)])
    assert (mixed.type, mixed.has_mixed_notations, mixed.n_mistakes) == ("dates", True, 14)
    assert read_values([f"{i}.5" if i % 2 else f"item {i}" for i in range(40)]).type == "words"


@pytest.mark.parametrize("cell", sorted(PLACEHOLDERS | {"k.A.", "None", " Unknown "}))
def test_placeholders_are_missing_among_numbers_dates_and_vectors_only(cell):
    numbers, dates = read_values(["1", cell, "2.5"]), read_values(["2024-01-31", cell, "2024-02-29"])
    vectors, words = read_values(["[1, 2]", cell, "[3, 4]"]), read_values(["red", cell, "blue"])

    assert [one.type for one in (numbers, dates, vectors, words)] == ["numbers", "dates", "vectors", "words"]
    assert all(one.is_missing.tolist() == [False, True, False] for one in (numbers, dates, vectors))
    assert numbers.placeholders == (to_word(cell),)
    assert words.cells.tolist() == ["red", to_word(cell), "blue"]
    assert not words.is_missing.any()
    assert read_values(["1", cell], as_words=True).cells.tolist() == ["1", to_word(cell)]  # a person asked for words
    assert read_values([3.5, cell, None]).is_missing.tolist() == [False, True, True]  # as in a spreadsheet
    assert read_values([cell, "7"], expected="numbers", notation="").is_missing.tolist() == [True, False]


def test_placeholders_alone_and_parts_of_cells_are_no_missing_values():
    assert read_values(["-", "-"]).cells.tolist() == ["-", "-"]
    assert read_values(["1", "2", "3 missing"]).type == "words"
    assert read_values(["-5", ".5"]).cells.tolist() == [-5, 0.5]


def test_the_documentation_lists_all_words_for_missing_values():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8").lower()
    assert all(f"`{word}`" in page for word in (MISSING | PLACEHOLDERS) - {""})
