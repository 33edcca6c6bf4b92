"""How the columns of a table are used."""

import numpy as np
import pytest

from fiedler.errors import InputError
from fiedler.table.columns import Requests, format_plan, plan_columns

N = 60


def kinds(cells, **requests):
    return {column.name: column.kind for column in plan_columns(cells, Requests(**requests))}


@pytest.fixture
def cells(rng):
    return {
        "customer_id": list(range(1000, 1000 + N)),
        "name": [f"N{i}" for i in range(N)],
        "age": rng.randint(18, 80, size=N).tolist(),
        "height": rng.normal(size=N).tolist(),
        "since": [f"2024-01-{1 + i % 28:02d}" for i in range(N)],
        "plan": ["basic", "pro", None] * (N // 3),
        "vip": [True, False] * (N // 2),
        "note": [f"the customer called {i} times about the bill" for i in range(N)],
        "vector": [[1.0 * i, 2.0] for i in range(N)],
        "unit": ["m"] * N,
        "spare": [None] * N,
    }


def test_kinds_are_recognised(cells):
    assert kinds(cells) == {
        "customer_id": "id",
        "name": "id",
        "age": "number",
        "height": "number",
        "since": "date",
        "plan": "category",
        "vip": "category",
        "note": "text",
        "vector": "vector",
        "unit": "constant",
        "spare": "empty",
    }


def test_numbers_that_all_differ_are_no_id_unless_they_count_rows_or_are_called_so(rng):
    numbers = (1000 * rng.permutation(N)).tolist()

    assert kinds({"price": numbers, "x": [1, 2] * (N // 2)})["price"] == "number"
    assert kinds({"orderId": numbers, "x": [1, 2] * (N // 2)})["orderId"] == "id"
    assert kinds({"row": list(range(N)), "x": [1, 2] * (N // 2)})["row"] == "id"
    for name in ("paid", "bid", "grid", "covid"):
        assert kinds({name: numbers, "x": [1, 2] * (N // 2)})[name] == "number"
    repeated = {
        "customer_id": np.repeat(np.arange(0, 90, 3), 2).tolist(),
        "Kunden-Nr.": numbers,
        "x": [1, 2] * (N // 2),
    }
    assert kinds(repeated) == {"customer_id": "id", "Kunden-Nr.": "id", "x": "number"}


@pytest.mark.parametrize("name", ["zip", "PLZ", "postcode", "store", "store_id", "country code", "zip_code", "storeId"])
def test_whole_numbers_are_codes_by_the_name_of_their_column(name, rng):
    few, x = [8001, 8002, None, 3011, 8001, 8002] * 10, rng.normal(size=N).tolist()

    code, _ = plan_columns({name: few, "x": x}, Requests())

    assert (code.kind, code.reason) == ("category", "3 different values, codes, by the name")
    assert set(code.values.cells) == {"8001", "8002", "3011", None}
    assert kinds({name: few, "x": x}, number=(name,))[name] == "number"
    assert kinds({name: [-1, 2, 3] * 20, "x": x})[name] == "number"  # no code is negative
    assert kinds({name: [0.5, 2, 3] * 20, "x": x})[name] == "number"
    assert kinds({name: [5, 2, 3], "x": [1.5, 2, 3]})[name] == "number"  # three rows that differ are no evidence
    assert kinds({name: rng.permutation(1000)[:N].tolist(), "x": x})[name] == "id"
    assert kinds({f"{name} area": few, "x": x})[f"{name} area"] == "number"


def test_postcodes_with_leading_zeros_and_placeholders_are_codes(rng):
    cells = [f"{number:05d}" for number in rng.randint(900, 99999, size=30)] * 4 + ["-"]

    code, _ = plan_columns({"plz": cells, "x": list(range(0, 242, 2))}, Requests())

    assert code.kind == "category"
    assert code.values.cells[0] == cells[0]
    assert code.values.is_missing.tolist() == [False] * 120 + [True]


def test_words_that_differ_in_capitals_are_joined_and_the_plan_says_so():
    cells = {"city": ["Berlin", "berlin", "BERLIN ", "Berlin", "Bonn", None], "x": [1, 2, 3, 4, 5, 7]}

    plan = plan_columns(cells, Requests())

    assert plan[0].values.cells.tolist() == ["Berlin"] * 4 + ["Bonn", None]
    assert "2 different values, 'BERLIN' is taken for 'Berlin', 'berlin' is taken for 'Berlin'" in format_plan(plan)
    asked = plan_columns(cells, Requests(category=("city",)))[0].values.cells.tolist()
    assert asked == ["Berlin", "berlin", "BERLIN", "Berlin", "Bonn", None]  # as they are written
    equal = plan_columns({"ok": ["yes", "YES"], "x": [1, 2]}, Requests())[0]
    assert (equal.kind, equal.reason) == ("constant", "all values are equal, 'yes' is taken for 'YES'")
    notes = [f"{word} customer called {i} times about it" for i in range(N) for word in ("the", "The")]
    assert plan_columns({"note": notes, "x": [1, 2] * N}, Requests())[0].values.cells.tolist() == notes  # a text


def test_the_plan_names_placeholders():
    plan = plan_columns({"x": ["1", "-", "2", "unknown", ""], "y": list("ababb")}, Requests())
    assert format_plan(plan).splitlines()[0] == "x  number    3 missing ('-', 'unknown' among them)"


def test_a_person_can_say_otherwise(cells):
    asked = kinds(cells, drop=("height",), category=("age",), number=("customer_id",), text=("name",))

    assert [asked[name] for name in ("height", "age", "customer_id", "name")] == [
        "dropped",
        "category",
        "number",
        "text",
    ]


def test_words_are_taken_for_numbers_in_any_notation():
    columns = plan_columns({"id": ["7", "8,5", "9"], "x": [1, 2, 4]}, Requests(number=("id",)))

    assert (columns[0].kind, columns[0].values.cells.tolist()) == ("number", [7, 8.5, 9])


def test_all_problems_are_in_one_message(cells):
    cells["age"] = [*map(str, range(N - 2)), "old", "young"]
    cells["price"] = [*(f"{i},5" for i in range(N - 1)), "free"]

    with pytest.raises(
        InputError, match=r"column 'age': 'old' \(row 58\), 'young' \(row 59\) is not a finite number.*'price'"
    ):
        plan_columns(cells, Requests())
    with pytest.raises(InputError, match=r"'free' \(line 61\)"):
        plan_columns(cells, Requests(drop=("age",)), [f"line {i + 2}" for i in range(N)])


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ({"drop": ("agee",)}, r"there is no column 'agee' \(did you mean 'age'\?\)"),
        ({"drop": ("age",), "category": ("age",)}, "column 'age' is given two kinds"),
        ({"weight": {"age": -1.0}}, "the weight of column 'age' is -1.0"),
        ({"number": ("plan",)}, r"column 'plan': 'basic' \(row 0\), 'pro' \(row 1\).* is not a finite number"),
    ],
)
def test_mistaken_requests(requests, message, cells):
    with pytest.raises(InputError, match=message):
        plan_columns(cells, Requests(**requests))


def test_a_table_without_anything_to_compare():
    with pytest.raises(InputError, match="no column is left to compare rows by: 'unit'"):
        plan_columns({"unit": ["m"] * 3}, Requests())


def test_the_plan_has_a_line_for_every_column(cells):
    lines = format_plan(plan_columns(cells, Requests(drop=("height",)))).splitlines()

    assert len(lines) == len(cells)
    assert lines[0].split() == ["customer_id", "left", "out", "id:", "another", "number", "in", "every", "row"]
    assert lines[5].split(maxsplit=2)[2] == "2 different values, 20 missing"
    assert np.all([line == line.rstrip() for line in lines])
