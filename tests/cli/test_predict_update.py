"""``fiedler update``: new rows for a folder of results."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fiedler
from fiedler.metrics import adjusted_rand_index
from fiedler.report import read_summary

from .test_cluster_tables import as_csv, make_customers


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def halves(table, tmp_path):
    """The table of three groups without classes, in two files."""
    header, *lines = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    paths = tmp_path / "old.csv", tmp_path / "new.csv"
    for path, part in zip(paths, (lines[:40], lines[40:])):
        path.write_text("\n".join([header, *part]) + "\n")
    return paths


def test_new_rows_are_added_to_all_files(run_fiedler, halves, clouds, tmp_path):
    old, new = halves
    out = tmp_path / "out"
    run_fiedler("cluster", old, "-k", 3, "--id", "name", "--out", out)
    before = rows_of(out / "labels.csv")

    result = run_fiedler("update", out, new)

    assert result.code == 0, result.err
    assert "20 rows were added to 40\nrows that moved to another cluster: 0\nnew clusters: none\ndrift: " in result.out
    rows = rows_of(out / "labels.csv")
    kept = ("name", "label", "cluster_name")
    assert [[row[key] for key in kept] for row in rows[:40]] == [[row[key] for key in kept] for row in before]
    assert [row["name"] for row in rows] == [f"r{i}" for i in range(60)]
    assert adjusted_rand_index(clouds[1], [row["label"] for row in rows]) == 1
    assert_array_equal(fiedler.load(out / "model.safetensors")[-1].labels_, [int(row["label"]) for row in rows])
    summary = read_summary(out / "summary.json")
    assert (summary["n_rows"], summary["title"]) == (60, "old.csv")
    assert summary["settings"]["rows added"] == "20 rows of new.csv"
    assert "20 rows of new.csv" in (out / "report.html").read_text(encoding="utf-8")


def test_the_result_as_json_and_numbers_that_go_on(run_fiedler, clouds, tmp_path):
    X, y = clouds
    np.save(tmp_path / "old.npy", X[y < 2])
    np.save(tmp_path / "new.npy", X[y == 2])
    run_fiedler("cluster", tmp_path / "old.npy", "-k", 2, "--out", tmp_path / "out")

    result = run_fiedler("update", tmp_path / "out", tmp_path / "new.npy", "--json", "--quiet")

    assert (result.code, result.err) == (0, "")
    values = json.loads(result.out)
    assert (values["rows"], values["rows_added"], values["new_clusters"], values["moved"]) == (60, 20, [2], [])
    assert values["ids"] == [str(i) for i in range(40, 60)]
    assert values["labels"] == [2] * 20
    assert values["drift"]["is_large"]


def test_known_classes_are_compared_with_the_clusters_of_all_rows(run_fiedler, table, tmp_path):
    header, *lines = table.read_text().splitlines()
    files = {
        "old.csv": lines[:40],
        "new.csv": [*lines[40:59], lines[59].rsplit(",", 1)[0] + ",d"],
        "gap.csv": ["r60,1,2,3,"],
    }
    for name, part in files.items():
        (tmp_path / name).write_text("\n".join([header, *part]) + "\n")
    out = tmp_path / "out"
    run_fiedler("cluster", tmp_path / "old.csv", "-k", 3, "--id", "name", "--labels", "class", "--out", out)

    result = run_fiedler("update", out, tmp_path / "new.csv")

    assert "agreement with the known labels: AC 0.983, NMI (max) " in result.out
    summary = read_summary(out / "summary.json")
    assert summary["truth"]["classes"] == ["a", "b", "c", "d"]
    assert len(summary["truth"]["codes"]) == 60
    assert np.sum(summary["agreement"]["counts"]) == 60
    values = json.loads(run_fiedler("update", out, tmp_path / "new.csv", "--json").out)
    assert values["scores"]["AC"] == pytest.approx(78 / 80)
    gap = run_fiedler("update", out, tmp_path / "gap.csv")
    assert "note: 1 new row(s) have no class in column 'class', so the clusters are not compared with" in gap.err
    assert read_summary(out / "summary.json")["truth"] is None


def test_a_new_table_without_classes_ends_the_comparison(run_fiedler, table, halves, tmp_path):
    out = tmp_path / "out"
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--labels", "class", "--out", out, "--effort", "fast")

    result = run_fiedler("update", out, halves[1])

    assert "note: the new rows have no column 'class' of classes, so the clusters are not compared" in result.err
    assert "agreement" not in result.out


def test_repeated_names_are_kept_and_said(run_fiedler, halves, tmp_path):
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", tmp_path / "out")

    result = run_fiedler("update", tmp_path / "out", halves[0])

    assert "note: 40 new row(s) have the name of an old one (r0, r1, r2, ...); both are kept" in result.err
    assert len(rows_of(tmp_path / "out" / "labels.csv")) == 80


def test_the_report_has_the_units_of_the_table(run_fiedler, halves, tmp_path):
    lines = [line.split(",") for line in halves[0].read_text().splitlines()]
    large = [
        ",".join([*line[:3], line[3] if i == 0 else f"{1000 + 50 * float(line[3]):.3f}"])
        for i, line in enumerate(lines)
    ]
    halves[0].write_text("\n".join(large) + "\n")
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", tmp_path / "out", "--effort", "fast")
    before = read_summary(tmp_path / "out" / "summary.json")["clusters"]

    run_fiedler("update", tmp_path / "out", halves[0])

    after = read_summary(tmp_path / "out" / "summary.json")
    assert "columns" not in after["settings"]
    means = [
        {one["column"]: one["value"] for one in clusters[0]["contrasts"]} for clusters in (before, after["clusters"])
    ]
    assert float(means[0]["z"].replace(",", "")) > 500
    assert means[0] == means[1]


def test_a_mixed_table_is_encoded_and_named_as_before(run_fiedler, tmp_path):
    pytest.importorskip("pandas")
    for name, n, seed in (("old", 200, 0), ("new", 60, 1)):
        (tmp_path / f"{name}.csv").write_text(as_csv(make_customers(n, seed)[0]), encoding="utf-8")
    out = tmp_path / "out"
    run_fiedler("cluster", tmp_path / "old.csv", "-k", 2, "--effort", "fast", "--out", out)

    result = run_fiedler("update", out, tmp_path / "new.csv")

    assert result.code == 0, result.err
    rows = rows_of(out / "labels.csv")
    kinds = np.concatenate([make_customers(200, 0)[1], make_customers(60, 1)[1]])
    assert adjusted_rand_index(kinds, [row["label"] for row in rows]) > 0.85
    assert [row["customer"] for row in rows[199:201]] == ["C00199", "C10000"]
    summary = read_summary(out / "summary.json")
    assert {line["column"] for line in summary["profiles"]} >= {"amount", "plan"}  # in their units, not encoded
    assert [len(column["values"]) for column in summary["cells"]] == [260] * len(summary["cells"])
    assert summary["column"] == "column"
    assert "amount = " in run_fiedler("explain", out, "C10003").out


def test_texts_and_images_can_be_added(run_fiedler, texts, pictures, tmp_path):
    for source, options in ((texts, ()), (pictures, ("--size", 4))):
        out = tmp_path / "out" / source.name
        run_fiedler("cluster", source, "-k", 2, *options, "--effort", "fast", "--out", out)
        first = sorted(source.iterdir())[0]
        more = tmp_path / "more" / source.name
        more.mkdir(parents=True)
        first.rename(more / f"new{first.suffix}")

        result = run_fiedler("update", out, more)

        assert result.code == 0, result.err
        rows = rows_of(out / "labels.csv")
        assert (len(rows), rows[-1]["label"]) == (31, rows[0]["label"])


def test_models_of_other_methods_and_other_folders_are_errors(run_fiedler, halves, tmp_path):
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--method", "kmeans", "--out", tmp_path / "kmeans")
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", tmp_path / "out")

    other = run_fiedler("update", tmp_path / "kmeans", halves[1])
    nothing = run_fiedler("update", tmp_path / "nothing", halves[1])
    (tmp_path / "out" / "labels.csv").write_text("name,label\nr0,1\n")
    changed = run_fiedler("update", tmp_path / "out", halves[1])

    assert (
        "rows cannot be added to a model of the class EmbedKMeans; cluster all rows again with fiedler "
        "cluster --method auto" in other.err
    )
    assert "there is no model file" in nothing.err
    assert "labels.csv' has 1 rows, but the model next to it has 40; cluster all rows again" in changed.err
    assert (other.code, nothing.code, changed.code) == (1, 1, 1)


def test_a_failed_update_changes_no_file(run_fiedler, halves, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("fiedler.cli.results.write_report", fail)
    result = run_fiedler("update", out, halves[1])

    assert "disk full" in result.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
