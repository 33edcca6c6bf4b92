"""What a newcomer does: cluster what they have, look at the report, predict new rows, compare."""

import csv
import inspect
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler.metrics import clustering_accuracy

FILES = ["labels.csv", "model.npz", "report.html", "summary.json"]


def written(folder):
    return sorted(path.name for path in folder.iterdir())


def labels_in(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------------------------------------- cluster


def test_a_table_becomes_labels_a_model_and_a_report(fiedler_says, table, tmp_path, clouds):
    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--labels", "class", "--out", tmp_path / "out")

    assert said.code == 0, said.err
    assert written(tmp_path / "out") == FILES
    rows = labels_in(tmp_path / "out" / "labels.csv")
    assert list(rows[0]) == ["id", "label", "confidence", "cluster_0", "cluster_1", "cluster_2"]
    assert [row["id"] for row in rows] == [f"r{place}" for place in range(60)]
    assert clustering_accuracy(clouds[1], [int(row["label"]) for row in rows]) == 1
    shares = np.array([[float(row[f"cluster_{k}"]) for k in range(3)] for row in rows])
    assert_allclose(shares.sum(axis=1), 1, atol=2e-4)
    assert_allclose(shares.max(axis=1), [float(row["confidence"]) for row in rows])
    head, columns, *lines = said.out.splitlines()
    assert head.startswith("60 rows in 3 clusters, by auto, in ")
    assert columns.split() == ["cluster", "rows", "share", "confidence"]
    assert [line.split()[:3] for line in lines[:3]] == [[str(label), "20", "33.3%"] for label in range(3)]
    assert lines[3:] == [
        "beside the known labels: AC 1.000, NMI 1.000, ARI 1.000",
        f"written to {tmp_path / 'out'}: labels.csv, model.npz, summary.json, report.html",
    ]


def test_json_is_all_that_is_said(fiedler_says, table, tmp_path):
    said = fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--json", "--out", tmp_path / "o")

    found = json.loads(said.out)
    assert (found["rows"], found["n_clusters"], found["scores"]) == (60, 3, {})
    assert sorted(one["size"] for one in found["clusters"]) == [20, 20, 20]
    assert sorted(found["files"]) == FILES


@pytest.mark.parametrize("method", ["lapgmm", "lcgmm", "spectral", "lpi", "nle", "gmm", "kmeans", "auto"])
def test_every_method_clusters_and_predicts(method, fiedler_says, table, tmp_path):
    said = fiedler_says(
        "cluster", table, "-k", 3, "--method", method, "--id", "name", "--drop", "class", "--out", tmp_path
    )
    assert said.code == 0, said.err

    again = fiedler_says("predict", tmp_path, table, "--id", "name", "--json")

    assert json.loads(again.out)["labels"] == [int(row["label"]) for row in labels_in(tmp_path / "labels.csv")]


def test_auto_chooses_the_number_and_shows_why(fiedler_says, table, tmp_path):
    said = fiedler_says("cluster", table, "-k", "auto", "--id", "name", "--drop", "class", "--out", tmp_path)
    other = fiedler_says(
        "cluster", table, "-k", "auto", "--method", "gmm", "--id", "name", "--drop", "class", "--out", tmp_path
    )

    for one in (said, other):
        assert re.match(r"\d clusters, by stability", one.out), one.err
        assert "modularity" in one.out
        assert json.loads((tmp_path / "summary.json").read_text())["evidence"]


@pytest.mark.parametrize("joined", [(0, 1), (1, 2)])
def test_known_labels_steer(joined, fiedler_says, table, tmp_path, clouds):
    """Of three groups two are joined: those that a few labels say; there is no score to be had from them."""
    lines, seen = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()], [0, 0, 0]
    for row, group in enumerate(clouds[1]):
        seen[group] += 1
        lines[row + 1] += "," + (("together" if group in joined else "apart") if seen[group] <= 6 else "")
    table.write_text("\n".join(["name,x,y,z,class", *lines[1:]]))

    said = fiedler_says("cluster", table, "-k", 2, "--id", "name", "--labels", "class", "--out", tmp_path / "out")

    assert said.code == 0, said.err
    rows = labels_in(tmp_path / "out" / "labels.csv")
    found = np.array([int(row["label"]) for row in rows])
    assert len(np.unique(found[np.isin(clouds[1], joined)])) == 1
    assert "beside the known labels" not in said.out
    assert "note: the labels of 18 of 60 rows steer the clusters: 0 is 'apart', 1 is 'together'" in said.err
    assert {(row["label"], row["name"]) for row in rows} == {("0", "apart"), ("1", "together")}
    new = fiedler_says("predict", tmp_path / "out", table, "--id", "name").out.splitlines()
    assert new[0].startswith("id,label,name,confidence")
    assert {line.split(",")[2] for line in new[1:]} == {"apart", "together"}


def test_pairs_steer(fiedler_says, table, tmp_path, clouds):
    """Of three groups two are joined: those that the pairs say."""
    groups = [np.flatnonzero(clouds[1] == k) for k in range(3)]
    for one, other in [(0, 1), (1, 2)]:
        lines = [f"r{first},r{second},must-link" for first, second in zip(groups[one], groups[other])]
        (tmp_path / "pairs.csv").write_text("\n".join(["first,second,kind", *lines]))

        words = ("cluster", table, "-k", 2, "--id", "name", "--drop", "class", "--pairs", tmp_path / "pairs.csv")
        said = fiedler_says(*words, "--out", tmp_path / "out")

        assert said.code == 0, said.err
        found = np.array([int(row["label"]) for row in labels_in(tmp_path / "out" / "labels.csv")])
        assert len(np.unique(found[np.concatenate([groups[one], groups[other]])])) == 1


def test_a_parquet_file_and_arrays(fiedler_says, clouds, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = clouds
    parquet.write_table(pyarrow.table({name: X[:, i] for i, name in enumerate("xyz")}), tmp_path / "t.parquet")
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "xy.npz", X=X, y=y)

    for name, more in [("t.parquet", ()), ("x.npy", ()), ("xy.npz", ("--labels", "y"))]:
        said = fiedler_says("cluster", tmp_path / name, "-k", 3, "--out", tmp_path / f"of {name}", *more)
        assert said.code == 0, said.err
        found = [int(row["label"]) for row in labels_in(tmp_path / f"of {name}" / "labels.csv")]
        assert clustering_accuracy(y, found) == 1


def test_a_folder_of_texts_and_new_texts(fiedler_says, texts, tmp_path):
    said = fiedler_says("cluster", texts, "-k", 2, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    rows = labels_in(tmp_path / "out" / "labels.csv")
    assert clustering_accuracy([place % 2 for place in range(30)], [int(row["label"]) for row in rows]) == 1
    assert rows[0]["id"] == "00.txt"

    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "a comet near the moon"}\n{"text": "butter on bread"}\n')
    labels = json.loads(fiedler_says("predict", tmp_path / "out" / "model.npz", new, "--json").out)["labels"]
    assert labels == [int(rows[0]["label"]), int(rows[1]["label"])]
    assert "comet" in (tmp_path / "out" / "report.html").read_text()


def test_a_folder_of_images(fiedler_says, pictures, tmp_path):
    said = fiedler_says("cluster", pictures, "-k", 2, "--method", "spectral", "--out", tmp_path / "out")

    assert said.code == 0, said.err
    found = [int(row["label"]) for row in labels_in(tmp_path / "out" / "labels.csv")]
    assert clustering_accuracy([place % 2 for place in range(30)], found) == 1
    assert "data:image/png" in (tmp_path / "out" / "report.html").read_text()


def test_the_same_seed_gives_the_same_files(fiedler_says, table, tmp_path):
    for name in ("a", "b"):
        fiedler_says(
            "cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--seed", 5, "--out", tmp_path / name
        )

    assert (tmp_path / "a" / "labels.csv").read_bytes() == (tmp_path / "b" / "labels.csv").read_bytes()


@pytest.mark.parametrize("method", ["gmm", "lapgmm", "lcgmm"])
def test_mixtures_take_few_sparse_columns(method, fiedler_says, clouds, tmp_path):
    sp.save_npz(tmp_path / "s.npz", sp.csr_array(np.abs(clouds[0])))

    said = fiedler_says("cluster", tmp_path / "s.npz", "-k", 3, "--method", method, "--out", tmp_path / "out")

    assert said.code == 0, said.err


def test_the_model_is_an_estimator_of_raw_rows(fiedler_says, table, tmp_path, clouds):
    fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)

    model = fiedler.load(tmp_path / "model.npz")
    assert_array_equal(model.predict(clouds[0]), [int(row["label"]) for row in labels_in(tmp_path / "labels.csv")])


# ------------------------------------------------------------------------------------------------ the folder of results


@pytest.fixture
def namesakes(table, tmp_path, monkeypatch):
    """Two inputs of one name, in a folder to work in."""
    monkeypatch.chdir(tmp_path)
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_bytes(table.read_bytes())
    return "x/a.csv", "y/a.csv"


WORDS = ("-k", 3, "--method", "kmeans", "--id", "name", "--drop", "class")


def test_results_are_replaced_by_those_of_the_same_input_alone(fiedler_says, namesakes, tmp_path, monkeypatch):
    one, other = namesakes
    assert fiedler_says("cluster", one, *WORDS).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "a").iterdir()}

    refused = fiedler_says("cluster", other, *WORDS)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "fiedler: 'out/a' holds the results of 'x/a.csv'; give another --out, or replace them with --force\n"
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "a").iterdir()} == before
    assert fiedler_says("cluster", one, *WORDS, "--seed", 2).code == 0
    assert fiedler_says("cluster", tmp_path / one, *WORDS).code == 0
    monkeypatch.chdir(tmp_path / "x")
    assert fiedler_says("cluster", "a.csv", *WORDS, "--out", "../out/a").code == 0
    monkeypatch.chdir(tmp_path)
    assert fiedler_says("cluster", other, *WORDS, "--force").code == 0
    assert fiedler_says("cluster", one, *WORDS).code == 1


def test_files_of_unknown_origin_are_not_replaced(fiedler_says, table, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")

    said = fiedler_says("cluster", table, *WORDS, "--out", tmp_path)

    assert said.code == 1
    assert "holds a labels.csv of unknown origin; give another --out, or replace them with --force" in said.err
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_a_folder_and_a_project_that_is_moved(fiedler_says, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(texts)
    assert fiedler_says("cluster", ".", "-k", 2, "--method", "kmeans").code == 0
    assert written(texts / "out" / "texts") == FILES
    moved = texts.rename(tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert fiedler_says("cluster", ".", "-k", 2, "--method", "kmeans", "--out", "out/texts").code == 0


# --------------------------------------------------------------------------------------------------- predict and report


def test_predictions_to_the_screen_and_to_a_file(fiedler_says, table, tmp_path):
    fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)
    mixed = tmp_path / "mixed.csv"
    lines = [line.split(",") for line in table.read_text().splitlines()[:6]]
    mixed.write_text("\n".join(f"{z},{name},{x},{y}" for name, x, y, z, _ in lines))  # the columns in another order

    shown = fiedler_says("predict", tmp_path, mixed, "--id", "name")
    kept = fiedler_says("predict", tmp_path, mixed, "--id", "name", "--out", tmp_path / "new.csv")

    assert shown.out.splitlines()[0] == "id,label,confidence,cluster_0,cluster_1,cluster_2"
    assert (tmp_path / "new.csv").read_text() == shown.out
    assert kept.out == f"5 rows; written to {tmp_path / 'new.csv'}\n"
    assert [row["label"] for row in labels_in(tmp_path / "new.csv")] == [
        row["label"] for row in labels_in(tmp_path / "labels.csv")[:5]
    ]


def test_new_texts_and_images_are_read_as_the_first_were(fiedler_says, texts, pictures, tmp_path):
    lines = [path.read_text() for path in sorted(texts.iterdir())]
    (tmp_path / "t.csv").write_text("n,review\n" + "\n".join(f"{place},{line}" for place, line in enumerate(lines)))
    words = ("-k", 2, "--method", "kmeans")
    fiedler_says("cluster", tmp_path / "t.csv", "--text", "review", *words, "--out", tmp_path / "of texts")
    fiedler_says("cluster", pictures, "--size", 4, *words, "--out", tmp_path / "of images")

    for source, fitted in ((tmp_path / "t.csv", "of texts"), (pictures, "of images")):
        said = fiedler_says("predict", tmp_path / fitted, source, "--json")
        assert said.code == 0, said.err
        again = json.loads(said.out)["labels"]
        assert again == [int(row["label"]) for row in labels_in(tmp_path / fitted / "labels.csv")]


def test_the_report_is_made_again_from_the_results(fiedler_says, table, tmp_path):
    fiedler_says("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)
    before = (tmp_path / "report.html").read_text()
    (tmp_path / "report.html").unlink()

    said = fiedler_says("report", tmp_path)

    assert said.code == 0, said.err
    assert (tmp_path / "report.html").read_text() == before


# ------------------------------------------------------------------------------------------------------------- compare


def test_methods_side_by_side(fiedler_says, table, tmp_path):
    words = ("compare", table, "-k", 3, "--methods", "kmeans,spectral", "--id", "name")
    said = fiedler_says(*words, "--labels", "class", "--out", tmp_path / "methods.csv", "--json")

    lines = json.loads(said.out)["methods"]
    assert [line["method"] for line in lines] == ["kmeans", "spectral"]
    for line in lines:
        assert line["AC"] == 1
        assert line["clusters"] == 3
        assert 0 <= line["cut"] < 0.2
        assert line["silhouette"] > 0.4
        assert line["seconds"] > 0
    assert [row["method"] for row in labels_in(tmp_path / "methods.csv")] == ["kmeans", "spectral"]
    assert "AC" not in fiedler_says(*words, "--drop", "class").out


def test_a_method_that_fails_says_why_and_the_others_go_on(fiedler_says, tmp_path):
    (tmp_path / "one.csv").write_text("a\n" + "\n".join(str(place) for place in [1, 2, 3, 7, 8, 9]))

    lines = json.loads(fiedler_says("compare", tmp_path / "one.csv", "-k", 2, "--methods", "lpi,kmeans", "--json").out)

    assert "lpi tells rows apart by their direction" in lines["methods"][0]["failed"]
    assert lines["methods"][1]["clusters"] == 2
    assert "lpi failed: lpi tells" in fiedler_says("compare", tmp_path / "one.csv", "-k", 2, "--methods", "lpi,gmm").out


def test_methods_that_cannot_be_told_labels_are_fitted_without(fiedler_says, table):
    lines = table.read_text().splitlines()
    table.write_text(
        "\n".join([lines[0], *(line if row % 4 else line[:-1] + "NA" for row, line in enumerate(lines[1:]))])
    )

    said = fiedler_says("compare", table, "-k", 3, "--methods", "gmm,kmeans", "--id", "name", "--labels", "class")

    assert said.code == 0, said.err
    assert said.err == "note: kmeans cannot be told labels and is fitted without them\n"
    assert "failed" not in said.out


# ------------------------------------------------------------------------------------------------------- what there is


def test_doctor_and_data(fiedler_says):
    checked = json.loads(fiedler_says("doctor", "--json").out)
    sets = json.loads(fiedler_says("data", "list", "--json").out)
    got = json.loads(fiedler_says("data", "get", "digits", "--json").out)

    assert checked["fiedler"] == fiedler.__version__
    assert checked["packages"]["numpy"] == np.__version__
    assert sets["digits"]["here"] is True
    assert got == {"name": "digits", "rows": 1797, "columns": 64, "classes": 10}
    assert "scikit-learn" in fiedler_says("doctor").out
    assert "digits" in fiedler_says("data", "list").out


def test_doctor_survives_a_driver_that_does_not_fit(fiedler_says, monkeypatch):
    def broken(_):
        raise RuntimeError("CUDA driver version is insufficient")

    monkeypatch.setattr("fiedler.cli.looking.LISTED", {"json": broken})
    assert "devices: json sees none (CUDA driver version is insufficient)" in fiedler_says("doctor").out


def test_every_option_that_is_shown_is_read():
    """A parameter that its command never mentions would promise something and do nothing."""
    from fiedler.cli.app import COMMANDS
    from fiedler.cli.looking import get, list_all

    for command in (*COMMANDS, get, list_all):
        body = inspect.getsource(command).partition(") -> None:")[2]
        for name in inspect.signature(command).parameters:
            assert re.search(rf"\b{name}\b", body), f"{command.__name__} does not read {name}"


def test_the_version_and_the_help(fiedler_says):
    assert fiedler_says("--version").out == f"fiedler {fiedler.__version__}\n"
    for command in ("cluster", "compare", "predict", "report", "reproduce", "doctor", "data"):
        assert fiedler_says(command, "--help").code == 0


def test_notes_go_to_the_other_stream_and_can_be_silenced(fiedler_says, texts, tmp_path):
    (texts / "99.txt").write_text("")

    loud = fiedler_says("cluster", texts, "-k", 2, "--out", tmp_path / "a")
    quiet = fiedler_says("cluster", texts, "-k", 2, "--out", tmp_path / "b", "--quiet")

    assert loud.err == "note: 1 document(s) are empty (99.txt); they are kept, and resemble nothing\n"
    assert quiet.err == ""


def test_texts_without_a_known_word_are_named(fiedler_says, texts, tmp_path):
    (texts / "98.txt").write_text("42")
    (texts / "99.txt").write_text("")
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "zebra"}\n{"text": ""}\n{"text": "bread"}\n')

    fitted = fiedler_says("cluster", texts, "-k", 2, "--out", tmp_path / "out")
    placed = fiedler_says("predict", tmp_path / "out", new)

    assert fitted.err.count("document(s)") == placed.err.count("document(s)") == 2
    assert "1 document(s) hold no known word (98.txt); they are kept" in fitted.err
    assert "1 document(s) hold no known word (line 1); they are kept" in placed.err


SLOW = """
import signal
import time
import fiedler.cli.clustering as clustering

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a run in the background comes without

def slow(summary, path):
    print("writing", flush=True)
    time.sleep(60)

clustering.write_report = slow
from fiedler.cli import main
main()
"""


def test_an_interrupt_leaves_nothing_half_written(table, tmp_path):
    words = ["cluster", str(table), "-k", "3", "--id", "name", "--drop", "class", "--out", str(tmp_path / "out")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", SLOW, *words], **pipes)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err == "fiedler: interrupted; nothing half-written is left\n"
    assert written(tmp_path) == ["clouds.csv"]


def test_a_reader_that_has_seen_enough_ends_it_quietly(table):
    """As ``head -1`` does, before the first line is written."""
    words = [sys.executable, "-m", "fiedler.cli", "data", "list"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()

    assert process.stderr.read() == ""
    assert process.wait() == 1
