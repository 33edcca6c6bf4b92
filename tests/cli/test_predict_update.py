"""``fiedler update``: new rows for a folder of results."""

import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fiedler
from fiedler.cli import results
from fiedler.datasets import blobs
from fiedler.metrics import adjusted_rand_index
from fiedler.report import read_summary

from .test_cluster_tables import as_csv, make_customers, rows_of


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
    kept = ("name", "cluster", "cluster_name")
    assert [[row[key] for key in kept] for row in rows[:40]] == [[row[key] for key in kept] for row in before]
    assert [row["name"] for row in rows] == [f"r{i}" for i in range(60)]
    assert adjusted_rand_index(clouds[1], [row["cluster"] for row in rows]) == 1
    assert_array_equal(fiedler.load(out / "model.safetensors")[-1].labels_, [int(row["cluster"]) for row in rows])
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
    values = json.loads(run_fiedler("update", out, tmp_path / "new.csv", "--on-duplicate", "add", "--json").out)
    assert values["scores"]["AC"] == pytest.approx(78 / 80)
    gap = run_fiedler("update", out, tmp_path / "gap.csv")
    assert "note: 1 new row(s) have no class in column 'class', so the clusters are not compared with" in gap.err
    assert read_summary(out / "summary.json")["truth"] is None


def test_a_new_table_without_classes_ends_the_comparison(run_fiedler, table, halves, tmp_path):
    out = tmp_path / "out"
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--labels", "class", "--out", out, "--effort", "fast")

    result = run_fiedler("update", out, halves[1], "--on-duplicate", "add")

    assert "note: the new rows have no column 'class' of classes, so the clusters are not compared" in result.err
    assert "agreement" not in result.out


# -------------------------------------------------------------------------------------------- rows with known names


def content_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def results_of_old_rows(tmp_path_factory, run_module):
    """Results of forty rows with names."""
    X, y = blobs(60, n_features=3, n_clusters=3, random_state=0)
    lines = [f"r{i},{a:.6f},{b:.6f},{c:.6f}" for i, (a, b, c) in enumerate(X)]
    folder = tmp_path_factory.mktemp("old")
    (folder / "old.csv").write_text("\n".join(["name,x,y,z", *lines[:40]]) + "\n")
    run_module("cluster", folder / "old.csv", "-k", 3, "--id", "name", "--append", "--out", folder / "out")
    return folder / "out", lines, y


@pytest.fixture
def old_results(results_of_old_rows, tmp_path):
    """A copy of the results, the lines of all rows, and a function that writes some of them to a file."""
    folder, lines, _ = results_of_old_rows
    shutil.copytree(folder, tmp_path / "out")

    def write(name, some):
        path = tmp_path / name
        path.write_text("\n".join(["name,x,y,z", *some]) + "\n")
        return path

    return tmp_path / "out", lines, write


def test_rows_that_are_there_already_change_nothing(old_results, run_fiedler):
    """The same file again; some of its rows, in another order; with a decimal more."""
    out, lines, write = old_results
    before = content_of(out)

    again = run_fiedler("update", out, write("again.csv", lines[:40]))
    some = run_fiedler("update", out, write("some.csv", [f"{line}0" for line in lines[30:10:-1]]), "--json")

    assert again.out == f"nothing was changed: all 40 rows of again.csv are in {out} already\n"
    assert again.code == some.code == 0
    assert {key: json.loads(some.out)[key] for key in ("rows", "rows_added", "rows_known", "moved")} == {
        "rows": 40, "rows_added": 0, "rows_known": 20, "moved": []
    }  # fmt: skip
    assert content_of(out) == before


def test_a_file_that_has_grown_adds_its_new_rows(old_results, run_fiedler):
    out, lines, write = old_results

    result = run_fiedler("update", out, write("grown.csv", lines))

    assert "20 rows were added to 40\n" in result.out
    assert "rows left out, as they are in the results already: 40" in result.out
    assert [row["name"] for row in rows_of(out / "labels.csv")] == [f"r{i}" for i in range(60)]


def test_other_values_of_a_known_row_are_refused_unless_one_says_what_to_do(old_results, run_fiedler):
    out, lines, write = old_results
    other = write("other.csv", [f"r1,{lines[41].split(',', 1)[1]}", *lines[50:52], lines[2]])
    before = content_of(out)

    result = run_fiedler("update", out, other)

    assert result.code == 1
    assert result.err == (
        "fiedler: 1 of the 4 new rows have the name of an old row, but other values (r1); choose --on-duplicate "
        "replace to take the new values, or --on-duplicate add to keep both\n"
    )
    assert content_of(out) == before
    assert "--on-duplicate 'drop' is not known" in run_fiedler("update", out, other, "--on-duplicate", "drop").err


def test_known_rows_are_replaced(old_results, results_of_old_rows, run_fiedler):
    """r1 gets the values of r41, which is in another cluster."""
    out, lines, write = old_results
    other = write("other.csv", [f"r1,{lines[41].split(',', 1)[1]}", *lines[50:52], lines[2]])
    y = results_of_old_rows[2]
    before = rows_of(out / "labels.csv")

    result = run_fiedler("update", out, other, "--on-duplicate", "replace", "--json")

    rows, values = rows_of(out / "labels.csv"), json.loads(result.out)
    assert [row["name"] for row in rows] == [f"r{i}" for i in range(40)] + ["r50", "r51"]
    assert (values["replaced"], values["rows_added"], values["rows_known"]) == (["r1"], 2, 1)
    assert values["ids"] == ["r1", "r50", "r51"]
    assert [int(rows[i]["cluster"]) for i in (1, 40, 41)] == values["labels"]
    expected = y[:40].copy()
    assert y[1] != y[41]
    expected[1] = y[41]
    assert adjusted_rand_index(expected, [row["cluster"] for row in rows[:40]]) == 1
    assert values["moved"] == [{"id": "r1", "from": int(before[1]["cluster"]), "to": values["labels"][0]}]
    again = run_fiedler("update", out, other, "--on-duplicate", "replace")
    assert again.out.startswith("nothing was changed: all 4 rows")


def test_known_rows_are_added_where_one_says_so(old_results, run_fiedler):
    out, lines, write = old_results

    result = run_fiedler("update", out, write("again.csv", lines[:40]), "--on-duplicate", "add")

    assert "note: 40 new row(s) have the name of an old one (r0, r1, r2, ...); both are kept" in result.err
    assert len(rows_of(out / "labels.csv")) == 80


def test_a_name_of_several_rows_cannot_be_replaced(old_results, run_fiedler):
    out, _, write = old_results
    twice = write("twice.csv", ["r1,0,0,0", "r1,1,1,1"])

    result = run_fiedler("update", out, twice, "--on-duplicate", "replace")

    assert "it is not clear which rows to replace, as several have the same name (r1); give each row" in result.err


def test_rows_without_names_are_known_by_their_file(run_fiedler, clouds, tmp_path):
    """A file, the one with which it was updated, and one that begins with all rows; others are added."""
    X, _ = clouds
    out = tmp_path / "out"
    for name, part in {"a": X[:30], "b": X[30:45], "all": X, "end": X[50:]}.items():
        np.save(tmp_path / f"{name}.npy", part)
    run_fiedler("cluster", tmp_path / "a.npy", "-k", 3, "--out", out)

    added = [
        json.loads(run_fiedler("update", out, tmp_path / f"{name}.npy", "--json").out)["rows_added"]
        for name in ("a", "b", "a", "b", "all", "all", "end")
    ]

    assert added == [0, 15, 0, 0, 15, 0, 10]
    assert [row["id"] for row in rows_of(out / "labels.csv")] == [str(i) for i in range(70)]


# ---------------------------------------------------------------------------------------------------------------- undo


def test_the_last_update_can_be_undone(old_results, run_fiedler):
    """Every file is as it was, also the table with the clusters; an update before the last one stays."""
    out, lines, write = old_results
    (out / "notes.txt").write_text("mine")
    run_fiedler("update", out, write("new.csv", lines[40:50]))
    before = {name: content for name, content in content_of(out).items() if results.PREVIOUS not in name}
    run_fiedler("update", out, write("more.csv", lines[50:]))
    assert content_of(out)["labels.csv"] != before["labels.csv"]

    result = run_fiedler("update", out, "--undo")
    again = run_fiedler("update", out, "--undo")

    assert result.out == f"the last update of {out} was undone\n"
    assert content_of(out) == before
    assert f"there is no update to undo in '{out}'; only the last update can be undone" in again.err
    assert again.code == 1


def test_a_table_with_clusters_comes_back_and_one_of_yours_stays(old_results, run_fiedler):
    out, lines, write = old_results
    new, table = write("new.csv", lines[40:]), (out / "table.csv").read_bytes()
    run_fiedler("update", out, new)
    assert not (out / "table.csv").exists()
    run_fiedler("update", out, "--undo")
    assert (out / "table.csv").read_bytes() == table

    run_fiedler("update", out, new)
    (out / "table.csv").write_text("mine")
    run_fiedler("update", out, "--undo")

    assert (out / "table.csv").read_text() == "mine"
    assert len(rows_of(out / "labels.csv")) == 40


def test_there_is_nothing_to_undo_after_another_fit(old_results, run_fiedler):
    out, lines, write = old_results
    run_fiedler("update", out, write("new.csv", lines[40:]))
    run_fiedler("cluster", out.parent / "new.csv", "-k", 2, "--id", "name", "--out", out, "--force")

    result = run_fiedler("update", out, "--undo")

    assert "there is no update to undo" in result.err
    assert sorted(path.name for path in out.iterdir()) == sorted(results.FILES)


@pytest.mark.parametrize("n_moved", range(6))
def test_a_killed_update_or_undo_is_finished_by_the_next_command(n_moved, old_results, run_fiedler, monkeypatch):
    """Killed after any number of files have been moved to their places."""
    out, lines, write = old_results
    new, before = write("new.csv", lines[40:]), content_of(out)
    replace = results.Path.replace

    def killed_after(n):
        moves = iter(range(n))

        def move(path, target):
            if path.parent.name == results.FINISHED and next(moves, None) is None:
                raise KeyboardInterrupt
            return replace(path, target)

        monkeypatch.setattr(results.Path, "replace", move)

    killed_after(n_moved)
    run_fiedler("update", out, new)
    monkeypatch.setattr(results.Path, "replace", replace)
    results.finish_results(out)
    updated = content_of(out)
    assert len(rows_of(out / "labels.csv")) == 60

    killed_after(n_moved)
    run_fiedler("update", out, "--undo")
    monkeypatch.setattr(results.Path, "replace", replace)
    results.finish_results(out)

    assert content_of(out) == before
    assert updated["model.safetensors"] != before["model.safetensors"]


def test_undo_takes_no_rows_and_an_update_needs_some(old_results, run_fiedler):
    out, lines, write = old_results

    neither, both = run_fiedler("update", out), run_fiedler("update", out, write("new.csv", lines[40:]), "--undo")

    assert "there are no new rows; give either new rows or --undo" in neither.err
    assert "--undo takes no new rows" in both.err
    assert (neither.code, both.code) == (1, 1)


def test_the_report_has_the_units_of_the_table(run_fiedler, halves, tmp_path):
    lines = [line.split(",") for line in halves[0].read_text().splitlines()]
    large = [
        ",".join([*line[:3], line[3] if i == 0 else f"{1000 + 50 * float(line[3]):.3f}"])
        for i, line in enumerate(lines)
    ]
    halves[0].write_text("\n".join(large) + "\n")
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", tmp_path / "out", "--effort", "fast")
    before = read_summary(tmp_path / "out" / "summary.json")["clusters"]

    run_fiedler("update", tmp_path / "out", halves[0], "--on-duplicate", "add")

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
    assert adjusted_rand_index(kinds, [row["cluster"] for row in rows]) > 0.85
    assert [row["customer"] for row in rows[199:201]] == ["C00199", "C10000"]
    summary = read_summary(out / "summary.json")
    assert {line["column"] for line in summary["profiles"]} >= {"amount", "plan"}  # in their units, not encoded
    assert [len(column["values"]) for column in summary["cells"]] == [260] * len(summary["cells"])
    assert summary["column"] == "column"
    assert "amount = " in run_fiedler("explain", out, "C10003").out
    assert 0 < float(rows[-1]["confidence"].replace(",", ".")) <= 1


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
        assert (len(rows), rows[-1]["cluster"]) == (31, rows[0]["cluster"])


def test_models_of_other_methods_and_other_folders_are_errors(run_fiedler, halves, tmp_path):
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--method", "kmeans", "--out", tmp_path / "kmeans")
    run_fiedler("cluster", halves[0], "-k", 3, "--id", "name", "--out", tmp_path / "out")

    other = run_fiedler("update", tmp_path / "kmeans", halves[1])
    nothing = run_fiedler("update", tmp_path / "nothing", halves[1])
    (tmp_path / "out" / "labels.csv").write_text("name,cluster\nr0,1\n")
    changed = run_fiedler("update", tmp_path / "out", halves[1])

    assert (
        "rows cannot be added to a model of the class EmbedKMeans; cluster all rows again with fiedler "
        "cluster --method auto" in other.err
    )
    assert "there is no model file" in nothing.err
    assert "nothing" in nothing.err
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
