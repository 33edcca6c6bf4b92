"""``fiedler cluster`` and ``fiedler predict`` on tables as people have them."""

import csv
import datetime
import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

import fiedler
from fiedler.metrics import adjusted_rand_index

N = 400


@pytest.fixture(scope="module")
def customers():
    """Customers of two kinds, with 8 % empty cells, and their kinds."""
    return make_customers(N, 0)


def make_customers(n, seed):
    rng = np.random.RandomState(seed)
    kind = rng.randint(2, size=n)
    first = datetime.date(2020, 1, 1)
    columns = {
        "customer": [f"C{seed}{i:04d}" for i in range(n)],
        "since": [first + datetime.timedelta(days=int(900 * k + 300 * rng.uniform())) for k in kind],
        "plan": np.where(rng.uniform(size=n) < 0.9, np.array(["basic", "pro"])[kind], "family").tolist(),
        "city": np.array(["Köln", "Wien", "Genève"])[(kind + rng.randint(2, size=n)) % 3].tolist(),
        "newsletter": (rng.uniform(size=n) < 0.3 + 0.4 * kind).tolist(),
        "amount": np.round(np.exp(rng.normal(2 + 2 * kind, 0.3)), 2).tolist(),
        "country": ["EU"] * n,
    }
    for name in ("since", "plan", "city", "newsletter", "amount"):
        columns[name] = [None if rng.uniform() < 0.08 else cell for cell in columns[name]]
    return columns, kind


def as_csv(columns, separator=";"):
    def text(cell):
        if cell is None:
            return ""
        if isinstance(cell, float):
            return f"{cell:.2f}".replace(".", ",")
        return str(cell).lower() if isinstance(cell, bool) else str(cell)

    lines = [separator.join(columns), *(separator.join(map(text, row)) for row in zip(*columns.values()))]
    return "\n".join(lines) + "\n"


def write(columns, form, folder):
    path = folder / {"xlsx": "t.xlsx", "gz": "t.csv.gz", "parquet": "t.parquet"}.get(form, "t.csv")
    if form == "xlsx":
        pytest.importorskip("openpyxl")
        pytest.importorskip("python_calamine")
        pd.DataFrame(columns).to_excel(path, index=False)
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(columns).to_parquet(path)
    else:
        content = as_csv(columns).encode("utf-8" if form == "gz" else form)
        path.write_bytes(gzip.compress(content) if form == "gz" else content)
    return path


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        header = file.readline()
        file.seek(0)
        return list(csv.DictReader(file, delimiter=max(",;", key=header.count)))


@pytest.fixture(scope="module")
def expected(customers, tmp_path_factory, run_module):
    folder = tmp_path_factory.mktemp("customers")
    run_module("cluster", write(customers[0], "utf-8", folder), "-k", 2, "--effort", "fast", "--out", folder / "out")
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["utf-16", "latin-1", "gz", "xlsx", "parquet"])
def test_a_table_has_the_same_clusters_in_every_form(form, customers, expected, run_fiedler, tmp_path):
    path = write(customers[0], form, tmp_path)

    result = run_fiedler("cluster", path, "-k", 2, "--effort", "fast", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    rows = rows_of(tmp_path / "out" / "labels.csv")
    assert [row["cluster"] for row in rows] == [row["cluster"] for row in rows_of(expected / "labels.csv")]
    assert rows[0]["customer"] == "C00000"
    assert adjusted_rand_index(customers[1], [row["cluster"] for row in rows]) > 0.9


def test_the_plan_is_shown_on_request_and_the_table_is_written_with_the_clusters(customers, run_fiedler, tmp_path):
    path = write(customers[0], "utf-8", tmp_path)
    command = ["cluster", path, "-k", 2, "--effort", "fast", "--out", tmp_path / "out"]

    result = run_fiedler(*command, "--append", "--verbose")

    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in result.out.splitlines()[4:11]}
    assert lines["customer"] == "left out  the names of the rows"
    assert lines["country"] == "left out  constant: all values are equal"
    assert lines["amount"].startswith("number    with a decimal comma, ")
    table = rows_of(tmp_path / "out" / "table.csv")
    assert list(table[0]) == [*customers[0], "cluster", "confidence"]
    labels = [row["cluster"] for row in rows_of(tmp_path / "out" / "labels.csv")]
    assert [row["cluster"] for row in table] == labels
    run_fiedler(*command)
    assert not (tmp_path / "out" / "table.csv").exists()  # it would have the clusters of another run
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "plan = basic" in report
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    listed = {line["column"]: line["used"] for line in summary["profiles"]}
    assert listed["plan"] is True
    assert set(listed) == set(customers[0]) - {"customer", "country"}


@pytest.mark.parametrize(
    ("separator", "decimal", "index", "header"),
    [
        (";", ",", "customer", "customer;cluster;cluster_name;confidence;cluster_0;cluster_1"),
        ("\t", ".", None, "id\tcluster\tcluster_name\tconfidence\tcluster_0\tcluster_1"),
        (",", ",", "", ",cluster,cluster_name,confidence,cluster_0,cluster_1"),
        ("|", ".", "cluster", "cluster|cluster_|cluster_name|confidence|cluster_0|cluster_1"),
    ],
)
def test_results_are_written_as_the_table_is(separator, decimal, index, header, run_fiedler, tmp_path):
    """The separator, the decimal mark and the column of row names: in labels, tables and predictions, and updated."""
    kind = np.arange(40) % 2
    frame = pd.DataFrame({"x": 5.25 * kind + np.arange(40) / 64, "y": kind + np.arange(40)[::-1] / 32})
    frame.index = [f"C{i}" for i in range(40)]
    form = {"sep": separator, "decimal": decimal}
    written = form | {"index": index is not None, "index_label": index}
    frame[:30].to_csv(tmp_path / "t.csv", **written)
    frame[30:].to_csv(tmp_path / "new.csv", **written)
    out = tmp_path / "out"

    run_fiedler("cluster", tmp_path / "t.csv", "-k", 2, "--effort", "fast", "--append", "--out", out)
    run_fiedler("predict", out, tmp_path / "new.csv", "--append", "--out", tmp_path / "predicted.csv")

    read = form | {"index_col": 0 if index is not None else None}
    labels, table, predicted = (
        pd.read_csv(path, **read) for path in (out / "labels.csv", out / "table.csv", tmp_path / "predicted.csv")
    )
    given = frame if index is not None else frame.reset_index(drop=True)
    pd.testing.assert_frame_equal(table[["x", "y"]], given[:30], check_names=False)
    pd.testing.assert_frame_equal(predicted[["x", "y"]], frame[30:].set_index(predicted.index), check_names=False)
    assert (out / "labels.csv").read_text().splitlines()[0] == header
    confidence = (labels if index is not None else labels.drop(columns="id"))["confidence"]
    assert confidence.dtype == table["confidence"].dtype == predicted["confidence"].dtype == float
    assert list(confidence) == list(table["confidence"])

    run_fiedler("update", out, tmp_path / "new.csv", "--quiet")

    updated = pd.read_csv(out / "labels.csv", **read)
    assert (out / "labels.csv").read_text().splitlines()[0] == header
    assert list(updated.index) == (list(frame.index) if index is not None else list(range(40)))


def test_new_tables_are_written_with_their_clusters(expected, run_fiedler, tmp_path):
    columns, _ = make_customers(40, 1)
    path = write(columns, "utf-8", tmp_path)

    labels = run_fiedler("predict", expected, path, "--out", tmp_path / "labels.csv")
    shown = run_fiedler("predict", expected, path, "--append")
    run_fiedler("predict", expected, path, "--append", "--out", tmp_path / "table.csv")

    assert labels.code == 0
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == shown.out
    table, labels = rows_of(tmp_path / "table.csv"), rows_of(tmp_path / "labels.csv")
    assert list(table[0]) == [*columns, "cluster", "confidence"]
    assert [row["cluster"] for row in table] == [row["cluster"] for row in labels]


def test_weights_of_rows_stand_for_copies(run_fiedler, tmp_path):
    rng = np.random.RandomState(0)
    X, counts = rng.normal(size=(60, 2)).round(3) + 6 * (np.arange(60) % 2)[:, None], rng.randint(1, 4, size=60)
    lines = [f"{x},{y},{n}" for (x, y), n in zip(X, counts)]
    (tmp_path / "once.csv").write_text("\n".join(["x,y,count", *lines]))
    copies = [f"{x},{y}" for (x, y), n in zip(X, counts) for _ in range(n)]
    (tmp_path / "copies.csv").write_text("\n".join(["x,y", *copies]))
    command = ["-k", 2, "--scale", "none", "--out"]

    weighted = run_fiedler("cluster", tmp_path / "once.csv", "--row-weight", "count", *command, tmp_path / "once")
    run_fiedler("cluster", tmp_path / "copies.csv", *command, tmp_path / "copies")

    assert weighted.code == 0, weighted.err
    labels = [row["cluster"] for row in rows_of(tmp_path / "once" / "labels.csv")]
    expected = [row["cluster"] for row in rows_of(tmp_path / "copies" / "labels.csv")]
    assert list(np.repeat(labels, counts)) == expected
    methods = "kmeans,sklearn.cluster:AgglomerativeClustering"
    options = ["-k", 2, "--scale", "none", "--methods", methods, "--json"]
    compared = run_fiedler("compare", tmp_path / "once.csv", "--row-weight", "count", *options)
    assert "sklearn.cluster:AgglomerativeClustering does not accept weights of rows and is fitted" in compared.err
    unweighted = run_fiedler("compare", tmp_path / "once.csv", "--drop", "count", *options)
    scores = [json.loads(one.out)["methods"][0]["modularity"] for one in (compared, unweighted)]
    assert scores[0] != scores[1]
    (tmp_path / "words.csv").write_text("x,y,count\n1,2,many\n3,4,few\n")
    words = run_fiedler("cluster", tmp_path / "words.csv", "--row-weight", "count", "-k", 2)
    assert "line 2: 'many' is not a number; choose a column of positive numbers as --row-weight" in words.err
    (tmp_path / "bad.csv").write_text("x,y,count\n1,2,0\n3,4,1\n5,5,2\n")
    bad = run_fiedler("cluster", tmp_path / "bad.csv", "--row-weight", "count", "-k", 2, "--out", tmp_path / "b")
    assert "--row-weight must be 3 finite, positive numbers, one per row" in bad.err


def test_columns_that_are_dropped_are_described_by_cluster(customers, run_fiedler, tmp_path):
    path = write(customers[0], "utf-8", tmp_path)

    result = run_fiedler(
        "cluster", path, "-k", 2, "--effort", "fast", "--drop", "plan", "--json", "--out", tmp_path / "o"
    )

    summary = json.loads((tmp_path / "o" / "summary.json").read_text(encoding="utf-8"))
    plans = [line for line in summary["profiles"] if line["column"] == "plan"]
    assert plans
    assert not any(line["used"] for line in plans)
    names = [cluster["name"] for cluster in json.loads(result.out)["clusters"]]
    assert not any("plan" in name for name in names)
    assert {row["cluster_name"] for row in rows_of(tmp_path / "o" / "labels.csv")} == set(names)


def test_next_months_table_may_have_new_words_and_lack_columns(expected, run_fiedler, tmp_path):
    columns, kind = make_customers(60, 1)
    columns["city"][0] = "Ulm"
    del columns["newsletter"]
    columns = dict(reversed(columns.items()))
    path = write(columns, "utf-8", tmp_path)

    result = run_fiedler("predict", expected, path, "--out", tmp_path / "new.csv")

    assert "the table has no column 'newsletter'" in result.err
    assert "did not occur before, in column 'city': 'Ulm'" in result.err
    rows = rows_of(tmp_path / "new.csv")
    assert adjusted_rand_index(kind, [row["cluster"] for row in rows]) > 0.85
    assert rows[3]["customer"] == "C10003"
    assert run_fiedler("predict", expected, tmp_path / "nothing.csv").err.startswith("fiedler: there is no file")


def test_next_months_table_of_numbers_may_lack_cells_and_columns(run_fiedler, tmp_path):
    rng = np.random.RandomState(0)
    kind = np.arange(120) % 2
    X = (np.array([1, 10, 100]) * (rng.normal(size=(120, 3)) + 6 * kind[:, None])).round(3)
    table = pd.DataFrame({"customer": [f"c{i}" for i in range(120)], **dict(zip("abc", X.T))})
    table[:80].to_csv(tmp_path / "old.csv", index=False)
    new, out = table[80:].drop(columns="c")[["b", "customer", "a"]], tmp_path / "out"
    new.iloc[0, 0] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    run_fiedler("cluster", tmp_path / "old.csv", "-k", 2, "--id", "customer", "--out", out)
    expected = fiedler.cluster(pd.read_csv(tmp_path / "old.csv").drop(columns="customer"), 2, random_state=0).labels
    assert [int(row["cluster"]) for row in rows_of(out / "labels.csv")] == expected.tolist()  # as in Python

    predicted = run_fiedler("predict", out, tmp_path / "new.csv", "--out", tmp_path / "labels.csv")
    updated = run_fiedler("update", out, tmp_path / "new.csv")

    for result in (predicted, updated):
        assert result.code == 0, result.err
        assert "note: the table has no column 'c'; its values are estimated from the other columns\n" in result.err
    rows = rows_of(tmp_path / "labels.csv")
    assert adjusted_rand_index(kind[80:], [row["cluster"] for row in rows]) == 1
    assert [row["customer"] for row in rows] == new["customer"].tolist()
    assert [row["cluster"] for row in rows_of(out / "labels.csv")[80:]] == [row["cluster"] for row in rows]


@pytest.mark.parametrize(
    ("column", "cell", "sentence"),
    [
        ("weight", "5", "column 'weight', line 2: '5' is not a number in kg, as in the fit; correct it, or leave it"),
        ("day", "1.2.2024", "line 2: '1.2.2024' is not a date, as in the fit; write it like 2024-12-31, or leave it"),
        ("size", "1,5", "line 2: '1,5' is not a number, as in the fit; write it like 1234.5, or leave it empty"),
    ],
)
def test_new_cells_are_written_as_in_the_fit(column, cell, sentence, awkward, run_fiedler, tmp_path):
    row = {"size": "1.5", "weight": "3 kg", "day": "2024-02-01", "vector": "[1, 2]", column: cell}
    pd.DataFrame([row]).to_csv(tmp_path / "new.csv", index=False)

    result = run_fiedler("predict", awkward, tmp_path / "new.csv")

    assert result.code == 1
    assert sentence in result.err


@pytest.fixture(scope="module")
def awkward(tmp_path_factory, run_module):
    """The model of a table with units, and vectors in words."""
    folder, rng = tmp_path_factory.mktemp("awkward"), np.random.RandomState(0)
    kind = np.arange(60) % 2
    columns = {
        "size": (rng.normal(size=60) + 5 * kind).round(2),
        "weight": [f"{value:.1f} kg" for value in rng.normal(size=60) + 5 * kind],
        "day": [f"2024-{1 + i % 12:02d}-01" for i in range(60)],
        "vector": [f"[{a:.2f}, {b:.2f}]" for a, b in rng.normal(size=(60, 2)) + 5 * kind[:, None]],
    }
    pd.DataFrame(columns).to_csv(folder / "t.csv", index=False)
    run_module("cluster", folder / "t.csv", "-k", 2, "--effort", "fast", "--out", folder / "out")
    return folder / "out"


def test_units_and_vectors_in_words_are_read_again(awkward, run_fiedler, tmp_path):
    pd.DataFrame({"size": [5], "weight": ["5 kg"], "day": ["2024-03-01"], "vector": ["[5 5]"]}).to_csv(
        tmp_path / "new.csv", index=False
    )

    result = run_fiedler("predict", awkward, tmp_path / "new.csv", "--json")

    assert (result.code, result.err) == (0, "")
    high = [i for i, row in enumerate(rows_of(awkward / "labels.csv")) if i % 2 and float(row["confidence"]) > 0.9]
    assert json.loads(result.out)["labels"][0] == int(rows_of(awkward / "labels.csv")[high[0]]["cluster"])


def test_columns_can_be_used_in_another_way(customers, run_fiedler, tmp_path):
    path = write(customers[0], "utf-8", tmp_path)
    options = ["--drop", "newsletter,plan", "--as-category", "amount", "--as-text", "city", "--weight", "since=2"]

    result = run_fiedler("cluster", path, "-k", 2, "--effort", "fast", *options, "--out", tmp_path / "out", "--json")

    uses = json.loads(result.out)["columns"]
    assert (uses["amount"], uses["city"]) == ("category", "text")
    assert {"newsletter", "plan"}.isdisjoint(uses)
    bad = run_fiedler("cluster", path, "-k", 2, "--weight", "since", "--out", tmp_path / "out")
    assert "--weight 'since' is not a column and a number; write it as in --weight age=2" in bad.err


def test_words_for_missing_values_are_those_of_the_fit_in_new_tables(run_fiedler, tmp_path):
    kind = np.arange(60) % 2
    sizes = [f"{5 * k + i / 100:.2f}" for i, k in enumerate(kind)]
    columns = {"size": ["tbd", "-", *sizes[2:]], "color": ["TBD", *np.where(kind, "red", "blue")[1:]]}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"size": ["tbd", "5.1"], "color": ["blue", "tbd"]}).to_csv(tmp_path / "new.csv", index=False)
    command = ("cluster", tmp_path / "t.csv", "-k", 2, "--effort", "fast", "--out", tmp_path / "out")

    result = run_fiedler(*command, "--missing", "tbd, n.d.", "--append", "--verbose")

    assert result.code == 0, result.err
    plan = [line.split(maxsplit=1)[1] for line in result.out.splitlines()[4:6]]
    assert plan == ["number    2 missing ('-' among them)", "category  2 different values, 1 missing"]
    assert rows_of(tmp_path / "out" / "table.csv")[0]["color"] == "TBD"  # as it is in the file
    new = run_fiedler("predict", tmp_path / "out", tmp_path / "new.csv", "--out", tmp_path / "new_labels.csv")
    assert (new.code, new.err) == (0, "")
    labels = rows_of(tmp_path / "out" / "labels.csv")
    predicted = [row["cluster"] for row in rows_of(tmp_path / "new_labels.csv")]
    assert predicted == [labels[2]["cluster"], labels[3]["cluster"]]
    refused = run_fiedler(*command, "--force")
    assert "'tbd' ('t.csv', line 2) is not a finite number, as the other cells are" in refused.err
    assert "or drop them, or name the words for missing values with --missing\n" in refused.err


def test_new_tables_may_have_words_for_missing_values_of_their_own(expected, run_fiedler, tmp_path):
    row = {"customer": "C1", "since": "2021-03-01", "plan": "pro", "amount": "n.d."}
    pd.DataFrame([row]).to_csv(tmp_path / "new.csv", index=False)

    refused = run_fiedler("predict", expected, tmp_path / "new.csv")
    named = run_fiedler("predict", expected, tmp_path / "new.csv", "--missing", "n.d.", "--json")

    assert "'n.d.' is not a number" in refused.err
    assert "or name the words for missing values with --missing" in refused.err
    assert json.loads(named.out)["ids"] == ["C1"]


def test_append_does_not_replace_the_input_or_a_file_of_yours(customers, run_fiedler, tmp_path):
    path = write(customers[0], "utf-8", tmp_path).rename(tmp_path / "table.csv")

    result = run_fiedler("cluster", path, "-k", 2, "--append", "--out", tmp_path)
    assert "contains the input table.csv, and --append would replace it" in result.err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "table.csv").write_text("mine")
    result = run_fiedler("cluster", path, "-k", 2, "--append", "--out", tmp_path / "other")
    assert "table.csv, which was not written by fiedler" in result.err


def test_new_rows_in_a_folder_and_tables_with_a_column_called_id(run_fiedler, tmp_path):
    kind = np.arange(60) % 2
    for name, order in (("old", ("a", "id")), ("new", ("id", "a"))):
        (tmp_path / name).mkdir()
        table = pd.DataFrame({"a": 10 * kind + np.arange(60) % 7, "id": np.where(kind, "x", "y"), "b": kind + 0.5})
        table[[*order, "b"]].to_csv(tmp_path / name / "1.csv", index=False)
    run_fiedler("cluster", tmp_path / "old" / "1.csv", "-k", 2, "--effort", "fast", "--out", tmp_path / "out")

    result = run_fiedler("predict", tmp_path / "out", tmp_path / "new", "--out", tmp_path / "new.csv")

    assert (result.code, result.err) == (0, "")
    assert adjusted_rand_index(kind, [row["cluster"] for row in rows_of(tmp_path / "new.csv")]) == 1


def test_results_are_explained_in_the_columns_of_the_table_and_by_the_names_of_rows(
    customers, expected, run_fiedler, tmp_path
):
    clusters, row = run_fiedler("explain", expected), run_fiedler("explain", expected / "model.safetensors", "C00007")

    assert (clusters.code, clusters.err) == (0, "")
    assert re.search(r"^  amount: .* overall, [+-]\d.\d sd\)$", clusters.out, re.MULTILINE)
    assert re.search(r"^  typical rows: C0\d{4}, C0\d{4}, C0\d{4}$", clusters.out, re.MULTILINE)
    label = rows_of(expected / "labels.csv")[7]["cluster"]
    assert customers[0]["amount"][7] is not None
    assert row.out.startswith(f"row C00007 is in cluster {label}, membership ")
    as_json = json.loads(run_fiedler("explain", expected, "C00007", "--json").out)
    assert (as_json["row"], as_json["label"]) == ("C00007", int(label))
    assert float(as_json["cells"]["amount"]) == pytest.approx(customers[0]["amount"][7], rel=1e-3)
    named = json.loads(run_fiedler("explain", expected, "--json").out)["clusters"]
    assert [one["name"] for one in named] == [one["name"] for one in clusters_of(expected)]
    unknown = run_fiedler("explain", expected, "C0007")
    assert (unknown.code, unknown.out) == (1, "")
    assert "there is no row 'C0007' in labels.csv (did you mean 'C0" in unknown.err


def clusters_of(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["clusters"]


def test_only_clusters_of_the_default_method_are_explained(run_fiedler, table, tmp_path):
    run_fiedler("cluster", table, "-k", 3, "--method", "gmm", "--out", tmp_path / "out")

    result = run_fiedler("explain", tmp_path / "out")

    assert (result.code, result.out) == (1, "")
    assert "the clusters of a GaussianMixture cannot be explained; cluster the rows with fiedler cluster" in result.err


@pytest.mark.parametrize("k", [2, 12])
def test_the_result_comes_first_in_at_most_ten_lines(k, run_fiedler, tmp_path):
    path = write(make_customers(120, 0)[0], "utf-8", tmp_path)

    lines = run_fiedler("cluster", path, "-k", k, "--effort", "fast", "--out", tmp_path / "out").out.splitlines()

    assert len(lines) <= 10
    assert lines[0].startswith(f"120 rows in {k} clusters, in ")
    assert lines[1].split() == ["cluster", "rows", "share", "confidence"]
    listed = [line for line in lines[2:] if line[0].isdigit()]
    rest = [line for line in lines if "smaller clusters: " in line]
    assert len(listed) + sum(int(line.split()[1]) for line in rest) == k
    assert any(line.startswith("columns left out: customer, country (2 of 7)") for line in lines)
    assert lines[-1].startswith(f"written to {tmp_path / 'out'}: report.html, ")


def test_dates_that_may_be_read_in_two_ways_are_noted(run_fiedler, tmp_path):
    kind = np.arange(60) % 2
    columns = {"size": 5.5 * kind + np.arange(60) % 7, "day": [f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(60)]}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)

    result = run_fiedler("cluster", tmp_path / "t.csv", "-k", 2, "--effort", "fast", "--out", tmp_path / "out")

    assert "note: dates in column 'day' are read as month/day/year, but could be day/month/year\n" in result.err
    assert "day/month/year" not in result.out


def test_a_typing_error_is_listed_and_outliers_are_left_out(run_fiedler, tmp_path):
    rng = np.random.RandomState(0)
    kind = np.arange(200) % 2
    table = pd.DataFrame({"age": 40 + 4 * rng.normal(size=200) + 30 * kind, "visits": rng.normal(size=200) + 8 * kind})
    table.loc[17, "age"] = 999
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ("cluster", tmp_path / "t.csv", "-k", 2, "--effort", "fast", "--out", tmp_path / "out")

    result = run_fiedler(*command, "--outliers", 0.005)

    assert result.code == 0, result.err
    assert "age 999 in row 17 (" in result.err
    assert "rows in no cluster (label -1): 1\n" in result.out
    found = np.array([int(row["cluster"]) for row in rows_of(tmp_path / "out" / "labels.csv")])
    assert np.flatnonzero(found == -1).tolist() == [17]
    assert adjusted_rand_index(np.delete(kind, 17), np.delete(found, 17)) == 1
    refused = run_fiedler(*command, "--outliers", 0.005, "--method", "gmm", "--force")
    assert "--method gmm does not take --outliers" in refused.err
