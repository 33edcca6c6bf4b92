"""``fiedler cluster --levels``: labels of several levels, and the table of levels."""

import csv
import json

import numpy as np
import pytest

import fiedler
from fiedler.datasets import blobs


@pytest.fixture
def command(tmp_path):
    """Cluster six groups into three, in the folder ``out``."""
    X, _ = blobs(240, n_features=3, n_clusters=6, random_state=0)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    return ("cluster", tmp_path / "rows.csv", "-k", 3, "--effort", "fast", "--out", tmp_path / "out")


def columns_of(path):
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, zip(*rows)))


def test_labels_of_levels_are_columns_and_nested(run_fiedler, command, tmp_path):
    result = run_fiedler(*command, "--levels", "6, 2", "--append")

    assert result.code == 0, result.err
    columns, table = columns_of(tmp_path / "out" / "labels.csv"), columns_of(tmp_path / "out" / "table.csv")
    assert list(columns)[-2:] == ["level_2", "level_6"]
    model = fiedler.load(tmp_path / "out" / "model.safetensors")[-1]
    for k in (2, 6):
        assert list(map(int, columns[f"level_{k}"])) == model.at(k).labels_.tolist()
        assert table[f"level_{k}"] == columns[f"level_{k}"]
    assert len(set(zip(columns["level_6"], columns["cluster"], columns["level_2"]))) == 6
    assert "p-value" in result.out
    assert "0 into 0 and 1" in result.out


def test_json_has_the_table_of_levels(run_fiedler, command, tmp_path):
    levels = json.loads(run_fiedler(*command, "--levels", 2, "--json").out)["levels"]

    assert levels["n_clusters"] == list(range(2, 13))
    assert levels["stability"] == [None] * 11  # -k was given
    assert max(levels["p_value"][:4]) < 0.01

    again = json.loads(run_fiedler(*command, "--json").out)
    assert again["levels"] is None
    assert "level_2" not in columns_of(tmp_path / "out" / "labels.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--levels", "2,x"), "--levels must be numbers of clusters, separated by commas; got '2,x'"),
        (("--levels", "0"), "--levels must be numbers of clusters, separated by commas; got '0'"),
        (("--levels", "500"), "there is no level of 500 clusters; the model has levels of 1 to 12 clusters"),
        (("--levels", "2", "--method", "gmm"), "--method gmm does not take --levels"),
        (("--levels", "2", "--memory", "4GB"), "--levels needs all rows in memory"),
    ],
)
def test_levels_that_are_impossible_are_refused_before_writing(options, message, run_fiedler, command, tmp_path):
    result = run_fiedler(*command, *options)

    assert result.code == 1
    assert message in result.err
    assert not (tmp_path / "out").exists()


def test_new_rows_are_predicted_at_a_level(run_fiedler, command, tmp_path):
    rows, out = tmp_path / "rows.csv", tmp_path / "out"
    run_fiedler(*command, "--levels", "5")
    expected = [int(label) for label in columns_of(out / "labels.csv")["level_5"]]

    predicted = run_fiedler("predict", out, rows, "--level", 5, "--out", tmp_path / "new.csv")

    assert predicted.code == 0, predicted.err
    columns = columns_of(tmp_path / "new.csv")
    assert [int(label) for label in columns["cluster"]] == expected
    assert list(columns) == ["id", "cluster", "confidence", *(f"cluster_{k}" for k in range(5))]  # names are of the fit
    refused = run_fiedler("predict", out, rows, "--level", 500)
    assert (refused.code, "there is no level of 500 clusters" in refused.err) == (1, True)


def test_models_without_levels_predict_at_none(run_fiedler, command, tmp_path):
    run_fiedler("cluster", tmp_path / "rows.csv", "-k", 3, "--method", "kmeans", "--out", tmp_path / "out")

    refused = run_fiedler("predict", tmp_path / "out", tmp_path / "rows.csv", "--level", 2)

    assert refused.code == 1
    assert "a model of the class EmbedKMeans has no levels" in refused.err
