"""``fiedler cluster`` in blocks, and ``fiedler doctor`` with a scheduler."""

import json

import numpy as np
import pytest

import fiedler
from fiedler.datasets import tanh_manifold
from fiedler.metrics import clustering_accuracy

distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path):
    """A folder of two tables with columns of different units and a name, and the true clusters."""
    X, y = tanh_manifold(2400, n_clusters=3, ambient=6, random_state=0)
    for number, rows in enumerate(np.split(np.arange(2400), 2)):
        columns = {f"x{j}": X[rows, j] * 10.0**j for j in range(6)}
        columns["name"] = [f"row {row}" for row in rows]
        path = tmp_path / "tables" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table(columns), path, row_group_size=600)
    return tmp_path / "tables", y


@pytest.mark.slow
def test_a_folder_of_tables_becomes_parts_a_model_and_a_report(folder, cluster, run_fiedler, tmp_path):
    source, y = folder
    where = ["--scheduler", cluster.scheduler_address, "--workdir", str(tmp_path / "work")]
    command = ["cluster", str(source), "-k", "3", "--drop", "name", *where, "--out", str(tmp_path / "out"), "--json"]

    result = json.loads(run_fiedler(*command).out)

    parts = sorted((tmp_path / "out" / "labels").glob("*.parquet"))
    tables = [parquet.read_table(part) for part in parts]
    labels = np.concatenate([table["cluster"].to_numpy() for table in tables])
    assert len(parts) == 2
    assert np.concatenate([table["row"].to_numpy() for table in tables]).tolist() == list(range(2400))
    assert tables[0].column_names == ["row", "cluster", "confidence", "cluster_0", "cluster_1", "cluster_2"]
    assert clustering_accuracy(y, labels) > 0.95
    assert [cluster["size"] for cluster in result["clusters"]] == np.bincount(labels).tolist()
    assert "all 2,400 rows" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    model = fiedler.load(tmp_path / "out" / "model.safetensors")
    rows = np.stack([tables_column(source, j) for j in range(6)], axis=1)
    assert np.mean(model.predict(rows) == labels) > 0.99
    again = run_fiedler(*command)
    assert json.loads(again.out)["clusters"] == result["clusters"]
    n_blocks = len(list((tmp_path / "work").rglob("[0-9]*.npz")))
    assert f" contains {n_blocks} finished blocks of " in again.err


def tables_column(source, j):
    return np.concatenate([parquet.read_table(path)[f"x{j}"].to_numpy() for path in sorted(source.glob("*.parquet"))])


def test_mistakes_give_one_sentence(folder, cluster, run_fiedler, tmp_path):
    source, _ = folder
    where = ["--scheduler", cluster.scheduler_address]
    for options, sentence in (
        (["--labels", "name"], "--labels needs all rows in memory"),
        (["--method", "gmm"], "--method needs all rows in memory"),
        ([], "column 'name' of '0.parquet' contains string"),
        (["--drop", "height"], "'0.parquet' has no column 'height'"),
        (["--drop", "name", "--scale", "range"], "range"),
    ):
        result = run_fiedler("cluster", source, "-k", "3", *where, "--out", tmp_path / "out", *options)
        assert sentence in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert not (tmp_path / "out").exists()
    result = run_fiedler("cluster", source, "-k", "3", "--memory", "four")
    assert "is not an amount of memory" in result.err


def test_doctor_tests_a_cluster(cluster, run_fiedler, tmp_path):
    where = ["--scheduler", cluster.scheduler_address, "--workdir", str(tmp_path)]

    result = run_fiedler("doctor", *where)

    assert "2 workers, which have this version and see" in result.out
    assert len(json.loads(run_fiedler("doctor", *where, "--json").out)["workers"]) == 2


@pytest.mark.slow
def test_one_cluster_in_blocks_has_no_confidence(cluster, run_fiedler, tmp_path, rng):
    np.save(tmp_path / "rows.npy", rng.normal(size=(2000, 3)))
    command = ("cluster", tmp_path / "rows.npy", "-k", 1, "--scheduler", cluster.scheduler_address)

    result = run_fiedler(*command, "--workdir", tmp_path / "work", "--out", tmp_path / "out")

    assert result.code == 0, result.err
    assert "2000 rows in one cluster, in" in result.out
    assert "confidence" not in result.out
