"""The commands from end to end: cluster an input, predict new rows, report, compare, and what is installed."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import scipy.sparse as sp
import typer
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import _registry
from fiedler._files import DRAFT_PREFIX
from fiedler.cli.results import atomic_folder, finish_results
from fiedler.errors import InputError
from fiedler.metrics import clustering_accuracy

FILES = ["labels.csv", "model.safetensors", "report.html", "summary.json"]


def file_names(folder):
    return sorted(path.name for path in folder.iterdir())


def labels_in(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------------------------------------- cluster


def test_cluster_writes_labels_a_model_and_a_report(run_fiedler, table, tmp_path, clouds):
    result = run_fiedler("cluster", table, "-k", 3, "--id", "name", "--labels", "class", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    assert file_names(tmp_path / "out") == FILES
    rows = labels_in(tmp_path / "out" / "labels.csv")
    assert list(rows[0]) == ["name", "cluster", "cluster_name", "confidence", "cluster_0", "cluster_1", "cluster_2"]
    assert [row["name"] for row in rows] == [f"r{i}" for i in range(60)]
    assert clustering_accuracy(clouds[1], [int(row["cluster"]) for row in rows]) == 1
    shares = np.array([[float(row[f"cluster_{k}"]) for k in range(3)] for row in rows])
    assert_allclose(shares.sum(axis=1), 1, atol=2e-4)
    assert_allclose(shares.max(axis=1), [float(row["confidence"]) for row in rows])
    head, columns, *lines = result.out.splitlines()
    assert head.startswith("60 rows in 3 clusters, in ")
    assert columns.split() == ["cluster", "rows", "share", "confidence"]
    names = {row["cluster"]: row["cluster_name"] for row in rows}
    assert all(any(column in name for column in "xyz") for name in names.values())  # the columns in which they differ
    shown = [[label, *names[label].split(), "20", "33.3%"] for label in sorted(names)]
    assert [line.split()[:-1] for line in lines[:3]] == shown
    assert lines[3:] == [
        "agreement with the known labels: AC 1.000, NMI (max) 1.000, ARI 1.000",
        "columns left out: name, class (2 of 5)",
        f"written to {tmp_path / 'out'}: report.html, labels.csv, model.safetensors, summary.json",
    ]


def test_rows_without_structure_are_one_cluster_unless_pairs_separate_them(run_fiedler, tmp_path, rng):
    np.savetxt(tmp_path / "rows.csv", rng.uniform(size=(120, 2)), delimiter=",", header="a,b", comments="")
    (tmp_path / "pairs.csv").write_text("first,second,kind\n0,1,cannot-link\n2,3,cannot-link\n")
    rows, out = tmp_path / "rows.csv", tmp_path / "out"
    common = ("cluster", rows, "-k", "auto", "--method", "spectral", "--force", "--out", out)

    plain, paired = run_fiedler(*common), run_fiedler(*common, "--pairs", tmp_path / "pairs.csv")

    assert "No clusters found; give -k to split the rows anyway." in plain.out.splitlines()[0], plain.err
    assert "confidence" not in plain.out
    assert paired.code == 0, paired.err
    assert re.match(r"120 rows by spectral, in .* s: \d+ clusters", paired.out)


@pytest.mark.parametrize("effort", ["fast", "default"])
def test_the_terminal_says_if_methods_and_views_do_not_agree(effort, run_fiedler, tmp_path, fixed_rng):
    np.savetxt(tmp_path / "rows.csv", fixed_rng.normal(size=(120, 4)), delimiter=",", header="a,b,c,d", comments="")
    common = ("cluster", tmp_path / "rows.csv", "-k", 4, "--effort", effort, "--force", "--out", tmp_path / "out")

    text, result = run_fiedler(*common).out, json.loads(run_fiedler(*common, "--json").out)

    assert ("do not agree" in text.replace("\n", " ")) == (effort == "default")
    assert (result["caution"] is None) == (effort == "fast")
    assert ("do not agree" in (tmp_path / "out" / "report.html").read_text()) == (effort == "default")


def test_clusters_have_the_sizes_that_were_asked_for(run_fiedler, tmp_path, rng):
    np.savetxt(tmp_path / "rows.csv", rng.normal(size=(60, 2)), delimiter=",", header="a,b", comments="")
    command = ("cluster", tmp_path / "rows.csv", "-k", 3, "--min-cluster-size", 20, "--out", tmp_path / "out")

    result = json.loads(run_fiedler(*command, "--json").out)

    assert [cluster["size"] for cluster in result["clusters"]] == [20, 20, 20]
    refused = run_fiedler(*command, "--method", "spectral")
    assert refused.code != 0
    assert "--method spectral does not take --min-cluster-size" in refused.err


def test_unknown_efforts_are_refused(run_fiedler, table):
    result = run_fiedler("cluster", table, "--effort", "much")

    assert result.code != 0
    assert "effort 'much' is not known" in result.err


def test_json_is_the_only_output(run_fiedler, table, tmp_path):
    result = run_fiedler(
        "cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--json", "--out", tmp_path / "o"
    )

    printed = json.loads(result.out)
    assert (printed["rows"], printed["n_clusters"], printed["scores"]) == (60, 3, {})
    assert sorted(cluster["size"] for cluster in printed["clusters"]) == [20, 20, 20]
    assert sorted(printed["files"]) == FILES


@pytest.mark.parametrize("method", ["lapgmm", "lcgmm", "spectral", "lpi", "nle", "gmm", "kmeans", "auto"])
def test_every_method_clusters_and_predicts(method, run_fiedler, table, tmp_path):
    result = run_fiedler(
        "cluster", table, "-k", 3, "--method", method, "--id", "name", "--drop", "class", "--out", tmp_path
    )
    assert result.code == 0, result.err

    again = run_fiedler("predict", tmp_path, table, "--id", "name", "--json")

    assert json.loads(again.out)["labels"] == [int(row["cluster"]) for row in labels_in(tmp_path / "labels.csv")]


class EveryThird(fiedler.EmbedKMeans):
    """A toy clusterer: labels 0, 1, 2, 0, 1, 2, ..."""

    def fit(self, X, y=None):
        super().fit(X)
        self.labels_ = np.arange(X.shape[0]) % self.n_clusters
        return self


def test_methods_come_from_the_registry(run_fiedler, table, tmp_path, monkeypatch):
    """Also those that are registered at run time; a method that is not is an error."""
    monkeypatch.setattr(_registry, "ESTIMATORS", dict(_registry.ESTIMATORS))
    arguments = ("compare", table, "-k", 3, "--methods", "third,kmeans", "--id", "name", "--labels", "class", "--json")
    assert run_fiedler(*arguments).code == 1

    method = _registry.Method("third", "every third row")
    _registry.register(_registry.Estimator("EveryThird", __name__, "Clustering", method=method))

    third, kmeans = json.loads(run_fiedler(*arguments).out)["methods"]
    assert (third["clusters"], kmeans["AC"]) == (3, 1)
    assert third["AC"] < 0.5


def test_auto_chooses_the_number_of_clusters_and_says_how_strong_the_evidence_is(run_fiedler, table, tmp_path):
    result = run_fiedler("cluster", table, "-k", "auto", "--id", "name", "--drop", "class", "--out", tmp_path)
    by_gmm = run_fiedler(
        "cluster", table, "-k", "auto", "--method", "gmm", "--id", "name", "--drop", "class", "--out", tmp_path
    )

    for run in (result, by_gmm):
        assert re.match(r"60 rows.*: \d clusters.*: the evidence for \d is (strong|moderate|weak)\.", run.out), run.err
        assert "modularity" not in run.out  # the table is for those who ask
        assert json.loads((tmp_path / "summary.json").read_text())["evidence"]["score"]


def test_the_evidence_for_every_number_is_shown_on_request(run_fiedler, table, tmp_path):
    run = run_fiedler("cluster", table, "--verbose", "--id", "name", "--drop", "class", "--out", tmp_path)

    assert "the evidence for" in run.out
    assert re.search(r"K +stability +modularity +valley +score\n +2 ", run.out)


def test_the_number_of_clusters_can_be_limited(run_fiedler, tmp_path, fixed_rng):
    X = np.repeat(20 * np.eye(6), 25, axis=0) + fixed_rng.normal(size=(150, 6))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    command = ("cluster", tmp_path / "rows.csv", "--effort", "fast", "--force", "--out", tmp_path / "out", "--json")

    free, limited = run_fiedler(*command), run_fiedler(*command, "--max-clusters", 4)
    other_method = run_fiedler(*command, "--max-clusters", 4, "--method", "gmm")

    assert json.loads(free.out)["n_clusters"] == 6
    assert json.loads(limited.out)["n_clusters"] == 4
    assert "--max-clusters 4 is the largest number of clusters, and it was chosen" in limited.err
    assert "largest number" not in free.err
    assert other_method.code == 1
    assert "--method gmm does not take --max-clusters; use --method auto" in other_method.err


@pytest.mark.parametrize("joined", [(0, 1), (1, 2)])
def test_partially_known_labels_guide_the_clustering(joined, run_fiedler, table, tmp_path, clouds):
    """Two of three groups are merged, as a few labels say; there are no scores, since the labels were used."""
    lines, seen = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()], [0, 0, 0]
    for row, group in enumerate(clouds[1]):
        seen[group] += 1
        lines[row + 1] += "," + (("together" if group in joined else "apart") if seen[group] <= 6 else "")
    table.write_text("\n".join(["name,x,y,z,class", *lines[1:]]))

    result = run_fiedler("cluster", table, "-k", 2, "--id", "name", "--labels", "class", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    rows = labels_in(tmp_path / "out" / "labels.csv")
    labels = np.array([int(row["cluster"]) for row in rows])
    assert len(np.unique(labels[np.isin(clouds[1], joined)])) == 1
    assert "agreement with the known labels" not in result.out
    assert "note: the known labels of 18 of 60 rows guide the clustering: cluster 0 is 'apart', cluster 1" in result.err
    assert {(row["cluster"], row["cluster_name"]) for row in rows} == {("0", "apart"), ("1", "together")}
    new = run_fiedler("predict", tmp_path / "out", table, "--id", "name").out.splitlines()
    assert new[0].startswith("name,cluster,cluster_name,confidence")
    assert {line.split(",")[2] for line in new[1:]} == {"apart", "together"}


def test_pairs_guide_the_clustering(run_fiedler, table, tmp_path, clouds):
    """Two of three groups are merged, as the pairs say."""
    groups = [np.flatnonzero(clouds[1] == k) for k in range(3)]
    for a, b in [(0, 1), (1, 2)]:
        lines = [f"r{first},r{second},must-link" for first, second in zip(groups[a], groups[b])]
        (tmp_path / "pairs.csv").write_text("\n".join(["first,second,kind", *lines]))

        arguments = ("cluster", table, "-k", 2, "--id", "name", "--drop", "class", "--pairs", tmp_path / "pairs.csv")
        result = run_fiedler(*arguments, "--out", tmp_path / "out")

        assert result.code == 0, result.err
        labels = np.array([int(row["cluster"]) for row in labels_in(tmp_path / "out" / "labels.csv")])
        assert len(np.unique(labels[np.concatenate([groups[a], groups[b]])])) == 1


def test_a_parquet_file_and_arrays(run_fiedler, clouds, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = clouds
    parquet.write_table(pyarrow.table({name: X[:, i] for i, name in enumerate("xyz")}), tmp_path / "t.parquet")
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "xy.npz", X=X, y=y)

    for name, more in [("t.parquet", ()), ("x.npy", ()), ("xy.npz", ("--labels", "y"))]:
        result = run_fiedler("cluster", tmp_path / name, "-k", 3, "--out", tmp_path / f"of {name}", *more)
        assert result.code == 0, result.err
        labels = [int(row["cluster"]) for row in labels_in(tmp_path / f"of {name}" / "labels.csv")]
        assert clustering_accuracy(y, labels) == 1


def test_a_folder_of_texts_and_new_texts(run_fiedler, texts, tmp_path):
    result = run_fiedler("cluster", texts, "-k", 2, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    rows = labels_in(tmp_path / "out" / "labels.csv")
    assert clustering_accuracy([i % 2 for i in range(30)], [int(row["cluster"]) for row in rows]) == 1
    assert rows[0]["id"] == "00.txt"

    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "a comet near the moon"}\n{"text": "butter on bread"}\n')
    labels = json.loads(run_fiedler("predict", tmp_path / "out" / "model.safetensors", new, "--json").out)["labels"]
    assert labels == [int(rows[0]["cluster"]), int(rows[1]["cluster"])]
    assert "comet" in (tmp_path / "out" / "report.html").read_text()


def test_a_folder_of_images(run_fiedler, pictures, tmp_path):
    result = run_fiedler("cluster", pictures, "-k", 2, "--method", "spectral", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    labels = [int(row["cluster"]) for row in labels_in(tmp_path / "out" / "labels.csv")]
    assert clustering_accuracy([i % 2 for i in range(30)], labels) == 1
    assert "data:image/png" in (tmp_path / "out" / "report.html").read_text()


def test_classes_of_images_are_their_subfolders(run_fiedler, pictures, tmp_path):
    for i, path in enumerate(sorted(pictures.iterdir())):
        folder = pictures / ("down" if i % 2 else "across")
        folder.mkdir(exist_ok=True)
        path.rename(folder / path.name)
    arguments = (pictures, "-k", 2, "--labels-from-folders", "--json")

    result = run_fiedler("cluster", *arguments, "--method", "spectral", "--out", tmp_path / "out")
    compared = run_fiedler("compare", *arguments, "--methods", "spectral")

    assert result.code == 0, result.err
    assert json.loads(result.out)["scores"] == {"AC": 1, "NMI": 1, "ARI": 1}
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["truth"]["classes"] == ["across", "down"]
    assert json.loads(compared.out)["methods"][0]["ARI"] == 1
    (pictures / "down" / "01.png").rename(pictures / "01.png")  # its class is unknown, so the others guide the clusters
    guided = run_fiedler("cluster", *arguments, "--out", tmp_path / "out")
    assert (
        "known labels of 29 of 30 rows guide the clustering: cluster 0 is 'across', cluster 1 is 'down'" in guided.err
    )
    assert {row["id"]: row["cluster_name"] for row in labels_in(tmp_path / "out" / "labels.csv")}["01.png"] == "down"


def test_broken_images_are_skipped_on_request(run_fiedler, pictures, tmp_path):
    arguments = (pictures, "-k", 2, "--method", "spectral", "--out", tmp_path / "out", "--json")
    for name in ("07.png", "08.png"):
        (pictures / name).write_bytes(b"no image")

    refused = run_fiedler("cluster", *arguments)
    result = run_fiedler("cluster", *arguments, "--skip-broken")
    predicted = run_fiedler("predict", tmp_path / "out", pictures, "--skip-broken", "--json")

    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "2 of 30 images cannot be read: '07.png' (" in refused.err
    assert "repair or remove such files, or use --skip-broken" in refused.err
    assert result.code == 0, result.err
    assert all("2 of 30 images cannot be read and are skipped: '07.png' (" in one.err for one in (result, predicted))
    assert json.loads(result.out)["skipped"] == json.loads(predicted.out)["skipped"] == ["07.png", "08.png"]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["n_rows"], summary["settings"]["skipped"]) == (28, ["07.png", "08.png"])


def test_the_same_seed_gives_the_same_files(run_fiedler, table, tmp_path):
    for name in ("a", "b"):
        run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--seed", 5, "--out", tmp_path / name)

    assert (tmp_path / "a" / "labels.csv").read_bytes() == (tmp_path / "b" / "labels.csv").read_bytes()


@pytest.mark.parametrize("method", ["gmm", "lapgmm", "lcgmm"])
def test_mixtures_take_few_sparse_columns(method, run_fiedler, clouds, tmp_path):
    sp.save_npz(tmp_path / "s.npz", sp.csr_array(np.abs(clouds[0])))

    result = run_fiedler("cluster", tmp_path / "s.npz", "-k", 3, "--method", method, "--out", tmp_path / "out")

    assert result.code == 0, result.err


def test_the_model_is_an_estimator_of_raw_rows(run_fiedler, table, tmp_path, clouds):
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)

    model = fiedler.load(tmp_path / "model.safetensors")
    assert_array_equal(model.predict(clouds[0]), [int(row["cluster"]) for row in labels_in(tmp_path / "labels.csv")])


# ------------------------------------------------------------------------------------------------ the folder of results


@pytest.fixture
def same_named(table, tmp_path, monkeypatch):
    """Two inputs of the same name, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_bytes(table.read_bytes())
    return "x/a.csv", "y/a.csv"


ARGUMENTS = ("-k", 3, "--method", "kmeans", "--id", "name", "--drop", "class")


def test_results_are_replaced_by_those_of_the_same_input_only(run_fiedler, same_named, tmp_path, monkeypatch):
    first, second = same_named
    assert run_fiedler("cluster", first, *ARGUMENTS).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "a").iterdir()}

    refused = run_fiedler("cluster", second, *ARGUMENTS)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "fiedler: 'out/a' contains the results of 'x/a.csv'; choose another --out, or replace them with --force\n"
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "out" / "a").iterdir()} == before
    assert run_fiedler("cluster", first, *ARGUMENTS, "--seed", 2).code == 0
    assert run_fiedler("cluster", tmp_path / first, *ARGUMENTS).code == 0
    monkeypatch.chdir(tmp_path / "x")
    assert run_fiedler("cluster", "a.csv", *ARGUMENTS, "--out", "../out/a").code == 0
    monkeypatch.chdir(tmp_path)
    assert run_fiedler("cluster", second, *ARGUMENTS, "--force").code == 0
    assert run_fiedler("cluster", first, *ARGUMENTS).code == 1


def test_files_of_unknown_origin_are_not_replaced(run_fiedler, table, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")

    result = run_fiedler("cluster", table, *ARGUMENTS, "--out", tmp_path)

    assert result.code == 1
    sentence = (
        "contains labels.csv, which was not written by fiedler; choose another --out, or replace them with --force"
    )
    assert sentence in result.err
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_results_are_replaced_after_input_and_results_were_moved(run_fiedler, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(texts)
    assert run_fiedler("cluster", ".", "-k", 2, "--method", "kmeans").code == 0
    assert file_names(texts / "out" / "texts") == FILES
    moved = texts.rename(tmp_path / "moved")
    monkeypatch.chdir(moved)
    assert run_fiedler("cluster", ".", "-k", 2, "--method", "kmeans", "--out", "out/texts").code == 0


# --------------------------------------------------------------------------------------------------- predict and report


def test_predictions_to_standard_output_and_to_a_file(run_fiedler, table, tmp_path):
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)
    mixed = tmp_path / "mixed.csv"
    lines = [line.split(",") for line in table.read_text().splitlines()[:6]]
    mixed.write_text("\n".join(f"{z},{name},{x},{y}" for name, x, y, z, _ in lines))  # the columns in another order

    shown = run_fiedler("predict", tmp_path, mixed, "--id", "name")
    kept = run_fiedler("predict", tmp_path, mixed, "--id", "name", "--out", tmp_path / "new.csv")

    assert shown.out.splitlines()[0] == "name,cluster,cluster_name,confidence,cluster_0,cluster_1,cluster_2"
    assert (tmp_path / "new.csv").read_text() == shown.out
    assert kept.out == f"5 rows; written to {tmp_path / 'new.csv'}\n"
    assert [row["cluster"] for row in labels_in(tmp_path / "new.csv")] == [
        row["cluster"] for row in labels_in(tmp_path / "labels.csv")[:5]
    ]


def test_new_texts_and_images_are_read_like_those_of_the_model(run_fiedler, texts, pictures, tmp_path):
    lines = [path.read_text() for path in sorted(texts.iterdir())]
    (tmp_path / "t.csv").write_text("n,review\n" + "\n".join(f"{i},{line}" for i, line in enumerate(lines)))
    arguments = ("-k", 2, "--method", "kmeans")
    run_fiedler("cluster", tmp_path / "t.csv", "--text", "review", *arguments, "--out", tmp_path / "of texts")
    run_fiedler("cluster", pictures, "--size", 4, *arguments, "--out", tmp_path / "of images")

    for source, fitted in ((tmp_path / "t.csv", "of texts"), (pictures, "of images")):
        result = run_fiedler("predict", tmp_path / fitted, source, "--json")
        assert result.code == 0, result.err
        again = json.loads(result.out)["labels"]
        assert again == [int(row["cluster"]) for row in labels_in(tmp_path / fitted / "labels.csv")]


@pytest.mark.parametrize("fitted_in", ["grey", "colour"])
def test_new_images_may_have_another_size_and_other_colours(run_fiedler, pictures, tmp_path, fitted_in):
    """Grey images are the same in colour, and blocks of four equal pixels shrink to the pixel."""
    pillow, folder = pytest.importorskip("PIL.Image"), tmp_path / "others"
    folder.mkdir()
    for path in pictures.iterdir():
        image = pillow.open(path)
        image.convert("RGB").resize((12, 12), pillow.Resampling.NEAREST).save(folder / path.name)
    first, second = (pictures, folder) if fitted_in == "grey" else (folder, pictures)
    run_fiedler("cluster", first, "-k", 2, "--method", "kmeans", "--out", tmp_path / "out")
    labels = {row["id"]: int(row["cluster"]) for row in labels_in(tmp_path / "out" / "labels.csv")}

    result = run_fiedler("predict", tmp_path / "out", second, "--json")
    one = run_fiedler("predict", tmp_path / "out", second / "03.png", "--json")
    wrong = run_fiedler("predict", tmp_path / "out", second, "--size", 9)

    assert result.code == 0, result.err
    predicted = json.loads(result.out)
    assert dict(zip(predicted["ids"], predicted["labels"])) == labels
    assert json.loads(one.out)["labels"] == [labels["03.png"]]
    assert "30 image(s) have another size than those of the model (00.png, 01.png, 02.png, ...)" in result.err
    assert ("they are converted to grey" in result.err) == (fitted_in == "grey")
    assert wrong.code == 1
    assert "but these are 9x9" in wrong.err


def test_report_writes_the_same_page_again(run_fiedler, table, tmp_path):
    run_fiedler("cluster", table, "-k", 3, "--id", "name", "--drop", "class", "--out", tmp_path)
    before = (tmp_path / "report.html").read_text()
    (tmp_path / "report.html").unlink()

    result = run_fiedler("report", tmp_path)

    assert result.code == 0, result.err
    assert (tmp_path / "report.html").read_text() == before


# ------------------------------------------------------------------------------------------------------------- compare


def test_compare_takes_estimators_of_other_packages_and_of_your_own(run_fiedler, table, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from sklearn.cluster import KMeans\n\n\nclass Mine(KMeans):\n    def __init__(self, n_clusters=8, *, "
        "random_state=None):\n        super().__init__(n_clusters, random_state=random_state)\n"
    )
    monkeypatch.chdir(tmp_path)
    names = ["kmeans", "sklearn.cluster:Birch", "sklearn.mixture:GaussianMixture", "mine:Mine"]

    result = run_fiedler("compare", table, "-k", 3, "--drop", "class,name", "--methods", ",".join(names), "--json")

    rows = json.loads(result.out)["methods"]
    assert [row["method"] for row in rows] == names
    assert all(row["clusters"] == 3 for row in rows)


def test_compare_counts_clusters_by_itself(run_fiedler, table):
    result = run_fiedler("compare", table, "--methods", "kmeans", "--id", "name", "--labels", "class")

    assert result.code == 0, result.err
    assert re.match(r"\d clusters", result.out)
    assert "NMI (max)" in result.out


def test_a_file_that_does_not_exist_is_told_before_the_results_of_another(run_fiedler, table, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "labels.csv").write_text("of another input")

    result = run_fiedler("cluster", tmp_path / "clouds.parquet", "--out", tmp_path / "results")

    assert result.code == 1
    assert "there is no file, folder or data set" in result.err
    assert "clouds.parquet" in result.err


def test_compare_scores_every_method(run_fiedler, table, tmp_path):
    arguments = ("compare", table, "-k", 3, "--methods", "kmeans,spectral", "--id", "name")
    result = run_fiedler(*arguments, "--labels", "class", "--out", tmp_path / "methods.csv", "--json")

    lines = json.loads(result.out)["methods"]
    assert [line["method"] for line in lines] == ["kmeans", "spectral"]
    for line in lines:
        assert line["AC"] == 1
        assert line["clusters"] == 3
        assert 0 <= line["cut"] < 0.2
        assert line["silhouette"] > 0.4
        assert line["seconds"] > 0
    assert [row["method"] for row in labels_in(tmp_path / "methods.csv")] == ["kmeans", "spectral"]
    assert "AC" not in run_fiedler(*arguments, "--drop", "class").out


def test_a_method_that_fails_does_not_stop_the_others(run_fiedler, tmp_path):
    (tmp_path / "one.csv").write_text("a\n" + "\n".join(str(i) for i in [1, 2, 3, 7, 8, 9]))

    lines = json.loads(run_fiedler("compare", tmp_path / "one.csv", "-k", 2, "--methods", "lpi,kmeans", "--json").out)

    assert "with 1 column(s) all rows of unit length have the same direction" in lines["methods"][0]["failed"]
    assert lines["methods"][1]["clusters"] == 2
    assert (
        "lpi failed: with 1 column(s)"
        in run_fiedler("compare", tmp_path / "one.csv", "-k", 2, "--methods", "lpi,gmm").out
    )


def test_methods_that_accept_no_labels_are_fitted_without(run_fiedler, table):
    lines = table.read_text().splitlines()
    table.write_text(
        "\n".join([lines[0], *(line if row % 4 else line[:-1] + "NA" for row, line in enumerate(lines[1:]))])
    )

    result = run_fiedler("compare", table, "-k", 3, "--methods", "gmm,kmeans", "--id", "name", "--labels", "class")

    assert result.code == 0, result.err
    assert result.err == "note: kmeans does not accept labels and is fitted without them\n"
    assert "failed" not in result.out


# ------------------------------------------------------------------------------------------ data, doctor, reproduce


def test_doctor_and_data(run_fiedler):
    pytest.importorskip("fiedler_papers")
    checked = json.loads(run_fiedler("doctor", "--json").out)
    sets = json.loads(run_fiedler("data", "list", "--json").out)
    got = json.loads(run_fiedler("data", "get", "digits", "--json").out)

    assert checked["fiedler"] == fiedler.__version__
    assert checked["packages"]["numpy"] == np.__version__
    assert sets["digits"]["available"] is True
    assert got == {"name": "digits", "rows": 1797, "columns": 64, "classes": 10}
    assert "scikit-learn" in run_fiedler("doctor").out
    extras = {"tqdm", "narwhals", "python-calamine", "zarr", "torch", "faiss-cpu", "anndata"}
    assert extras <= checked["packages"].keys()
    assert not checked["packages"].keys() & {"pytest", "ruff", "sphinx"}
    assert "digits" in run_fiedler("data", "list").out


def test_doctor_survives_a_data_folder_that_is_none(run_fiedler, monkeypatch, tmp_path):
    pytest.importorskip("fiedler_papers")
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path / "nothing"))

    result = run_fiedler("doctor")

    assert result.code == 0
    assert "is not a folder" in result.out


def test_names_cannot_control_the_terminal_or_be_formulas(run_fiedler, tmp_path):
    rng = np.random.RandomState(0)
    names = ["\x1b[31mred\x1b[0m", "=cmd|' /C calc'!A0", "@sum", "-3.5", *(f"r{i}" for i in range(36))]
    rows = [
        f'"{name}",{x:.3f},{"low" if i % 2 else "high"}\x1b[2J'
        for i, (name, x) in enumerate(zip(names, rng.normal(size=40)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["name,x,kind", *rows]), encoding="utf-8")

    result = run_fiedler("cluster", tmp_path / "t.csv", "-k", 2, "--id", "name", "--append", "--out", tmp_path / "out")
    as_json = run_fiedler("predict", tmp_path / "out", tmp_path / "t.csv", "--id", "name", "--json")

    assert result.code == 0, result.err
    assert "\x1b" not in result.out + result.err + as_json.out + as_json.err
    assert json.loads(as_json.out)["ids"] == names
    for file in ("labels.csv", "table.csv"):
        with (tmp_path / "out" / file).open(newline="", encoding="utf-8") as lines:
            first = [row[0] for row in csv.reader(lines)]
        assert first[2:5] == ["'=cmd|' /C calc'!A0", "'@sum", "-3.5"]


def test_doctor_survives_an_incompatible_driver(run_fiedler, monkeypatch):
    def broken(_):
        raise RuntimeError("CUDA driver version is insufficient")

    monkeypatch.setattr("fiedler.cli.doctor.DEVICE_LISTS", {"json": broken})
    assert "devices: json finds none (CUDA driver version is insufficient)" in run_fiedler("doctor").out


@pytest.mark.parametrize("command", ["reproduce lapgmm --table 2", "data list", "data get usps --json"])
def test_commands_without_their_distribution_say_what_to_install(command, run_fiedler, monkeypatch):
    app = import_module("fiedler.cli.app")
    monkeypatch.setattr(app, "entry_points", lambda group: [])
    monkeypatch.setattr(app, "app", app.build_app())

    result = run_fiedler(*command.split())

    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"fiedler: fiedler {command.split()[0]} needs the distribution fiedler-papers; install it from the folder "
        "papers/ of the repository: pip install ./papers\n"
    )


def hello(name: Annotated[str, typer.Argument()], loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    """Say hello."""
    if name == "nobody":
        raise InputError("there is nobody", "name somebody", code="nobody")
    typer.echo(name.upper() if loud else name)


def test_other_distributions_add_commands(run_fiedler, monkeypatch):
    """One by an entry point, one whose import fails, and one that would replace a command of fiedler."""
    points = [EntryPoint(name, value, "fiedler.commands") for name, value in OTHER_COMMANDS.items()]
    app = import_module("fiedler.cli.app")
    monkeypatch.setattr(app, "entry_points", lambda group: points)
    monkeypatch.setattr(app, "app", app.build_app())

    assert run_fiedler("reproduce", "world", "--loud").out == "WORLD\n"
    assert run_fiedler("reproduce", "nobody").err == "fiedler: there is nobody; name somebody\n"
    assert run_fiedler("data", "hello", "world").out == "world\n"
    broken = run_fiedler("broken")
    assert broken.code == 1
    assert broken.err.startswith("fiedler: the command 'broken' cannot be loaded from 'no_such_package:main' (Module")
    assert "INPUT" in run_fiedler("cluster", "--help").out


OTHER_COMMANDS = {
    "reproduce": f"{__name__}:hello",
    "data.hello": f"{__name__}:hello",
    "broken": "no_such_package:main",
    "cluster": f"{__name__}:hello",
}


def test_the_version_and_the_help(run_fiedler):
    assert run_fiedler("--version").out == f"fiedler {fiedler.__version__}\n"
    for command in ("cluster", "compare", "predict", "report", "reproduce", "doctor", "data"):
        assert run_fiedler(command, "--help").code == 0


def test_notes_go_to_standard_error_and_can_be_silenced(run_fiedler, texts, tmp_path):
    (texts / "99.txt").write_text("")

    loud = run_fiedler("cluster", texts, "-k", 2, "--out", tmp_path / "a")
    quiet = run_fiedler("cluster", texts, "-k", 2, "--out", tmp_path / "b", "--quiet")

    assert loud.err.startswith("note: 1 document(s) are empty (99.txt); they are kept")
    assert loud.err.count("\n") == 1
    assert quiet.err == ""


def test_texts_without_a_known_word_are_named(run_fiedler, texts, tmp_path):
    (texts / "98.txt").write_text("42")
    (texts / "99.txt").write_text("")
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "zebra"}\n{"text": ""}\n{"text": "bread"}\n')

    fitted = run_fiedler("cluster", texts, "-k", 2, "--out", tmp_path / "out")
    placed = run_fiedler("predict", tmp_path / "out", new)

    assert fitted.err.count("document(s)") == placed.err.count("document(s)") == 2
    assert "1 document(s) contain no known word (98.txt); they are in no cluster" in fitted.err
    assert "1 document(s) contain no known word (line 1); they are in no cluster" in placed.err


SLOW = """
import signal
import time
import fiedler.cli.results

signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background start without it

def slow(summary, path):
    print("writing", flush=True)
    time.sleep(60)

fiedler.cli.results.write_report = slow
from fiedler.cli import main
main()
"""


@pytest.mark.slow
def test_an_interrupt_leaves_no_incomplete_files(table, tmp_path):
    arguments = ["cluster", str(table), "-k", "3", "--id", "name", "--drop", "class", "--out", str(tmp_path / "out")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", SLOW, *arguments], **pipes)
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err == "fiedler: interrupted; no incomplete files are left\n"
    assert file_names(tmp_path) == ["clouds.csv"]


WORK = [
    "fitting.read_input", "fitting.prepare", "fitting.expected_cost", "fitting.fit", "cluster.summarize",
    "results.save_csv", "results.save", "results.write_summary", "results.write_report",
]  # fmt: skip


@pytest.mark.parametrize("part", WORK)
def test_an_interrupt_at_any_stage_gives_one_sentence(part, run_fiedler, table, tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"fiedler.cli.{part}", interrupted)
    result = run_fiedler("cluster", table, "-k", "3", "--id", "name", "--drop", "class", "--out", tmp_path / "out")

    assert result == (130, "", "fiedler: interrupted; no incomplete files are left\n")
    assert file_names(tmp_path) == ["clouds.csv"]


def test_an_interrupt_while_starting_gives_the_same_sentence(run_fiedler, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("fiedler.cli.app.app", interrupted)

    assert run_fiedler("data", "list") == (130, "", "fiedler: interrupted; no incomplete files are left\n")


@pytest.fixture
def interruptible():
    """Turn Ctrl-C into an exception, as in a terminal."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, previous)


def write_all(folder, afterwards=lambda: None):
    with atomic_folder(folder) as draft:
        for name in FILES:
            (draft / name).write_text("new")
        afterwards()


def test_an_interrupt_while_files_are_moved_waits_for_the_last_one(tmp_path, monkeypatch, interruptible):
    replace = Path.replace

    def interrupted(self, target):
        interruptible()
        return replace(self, target)

    write_all(tmp_path / "out")
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path / "out")

    assert file_names(tmp_path) == ["out"]
    assert file_names(tmp_path / "out") == FILES
    with pytest.raises(KeyboardInterrupt):
        interruptible()  # as before


def test_a_second_interrupt_does_not_stop_the_cleaning(tmp_path, monkeypatch, interruptible):
    remove = shutil.rmtree

    def interrupted(path, **options):
        interruptible()
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path / "out", afterwards=interruptible)

    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_the_command_silently(table):
    """As ``head -1`` does; here before the first line is written."""
    arguments = [sys.executable, "-m", "fiedler.cli", "data", "list"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()

    assert process.stderr.read() == ""
    assert process.wait() == 1


@pytest.mark.parametrize("k", range(5))
def test_results_are_the_old_or_the_new_ones_if_a_rename_fails(k, tmp_path, monkeypatch):
    """As if the process was killed before the k-th rename: the next command finds one of the two sets."""
    folder, names = tmp_path / "out", ["labels.csv", "model.safetensors", "summary.json"]

    def write(content):
        with atomic_folder(folder) as draft:
            for name in names:
                (draft / name).write_text(content)

    write("old")
    renames, rename = iter(range(10)), Path.replace

    def killed(path, target):
        if next(renames) >= k:
            raise SystemExit
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(SystemExit) if k < 4 else nullcontext():
        write("new")
    monkeypatch.undo()

    finish_results(folder)

    assert {(folder / name).read_text() for name in names} == {"old" if k == 0 else "new"}
    assert sorted(path.name for path in folder.iterdir()) == names


@pytest.mark.parametrize("k", range(2))
def test_a_new_folder_of_results_is_complete_or_missing(k, tmp_path, monkeypatch):
    """As if the process was killed before the k-th rename: there is only one."""
    renames, rename = [], Path.replace

    def killed(path, target):
        if len(renames) >= k:
            raise SystemExit
        renames.append(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(SystemExit) if k == 0 else nullcontext():
        write_all(tmp_path / "new" / "out")

    assert renames == [tmp_path / "new" / "out"] * k
    assert (file_names(tmp_path / "new" / "out") if k else file_names(tmp_path / "new")) == (FILES if k else [])


def test_the_folder_of_results_may_be_a_link_or_a_detour(tmp_path):
    """A link to a folder that does not exist yet, and a path with ``..`` after a folder that does not exist."""
    (tmp_path / "link").symlink_to("target")
    write_all(tmp_path / "link")
    write_all(tmp_path / "none" / ".." / "target")

    assert file_names(tmp_path / "target") == FILES
    assert file_names(tmp_path) == ["link", "target"]


def test_a_new_folder_of_results_has_the_usual_permissions(tmp_path):
    (tmp_path / "other").mkdir()
    write_all(tmp_path / "out")

    assert (tmp_path / "out").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_drafts_of_killed_runs_are_removed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    ended, own = tmp_path / f"{DRAFT_PREFIX}{process.pid}-0123abcd", tmp_path / f"{DRAFT_PREFIX}{os.getpid()}-0123abcd"
    ended.mkdir(), own.mkdir()

    with atomic_folder(tmp_path / "out") as draft:
        (draft / "labels.csv").write_text("")

    assert not ended.exists()
    assert own.exists()
