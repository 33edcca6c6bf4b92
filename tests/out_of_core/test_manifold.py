"""ManifoldClustering on Dask arrays, on a cluster of two worker processes."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fiedler
from fiedler import ManifoldClustering, PairwiseConstraints
from fiedler.datasets import blobs, tanh_manifold
from fiedler.errors import InputError, SchedulerError
from fiedler.manifold.candidates import communities_of_search
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.out_of_core import config_context, manifold, on_landmarks

from .test_store import damage

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def rows():
    return tanh_manifold(1500, n_clusters=5, ambient=20, dtype="float32", random_state=0)


def in_blocks(X, n_blocks=6):
    if not sp.issparse(X):
        return da.from_array(X, chunks=(-(-len(X) // n_blocks), X.shape[1]))
    cuts = np.linspace(0, X.shape[0], n_blocks + 1).astype(int)
    parts = [
        da.from_delayed(dask.delayed(X[a:b]), (b - a, X.shape[1]), dtype=X.dtype, meta=sp.csr_array((0, 0)))
        for a, b in pairwise(cuts)
    ]
    return da.concatenate(parts)


@pytest.mark.parametrize("effort", ["fast", "default"])
def test_the_clusters_are_those_in_memory(effort, rows, client):
    X, y = rows
    blocks = in_blocks(X)

    model = ManifoldClustering(5, effort=effort, random_state=0).fit(blocks)

    reference = ManifoldClustering(5, effort=effort, random_state=0).fit(X)
    labels, Q = model.labels_.compute(), model.memberships_.compute()
    assert adjusted_rand_index(reference.labels_, labels) > 0.97
    assert abs(clustering_accuracy(y, labels) - clustering_accuracy(y, reference.labels_)) < 0.01
    assert (model.labels_.chunks, model.memberships_.chunks) == ((blocks.chunks[0],), (blocks.chunks[0], (5,)))
    assert (Q.dtype, model.view_) == (np.float32, reference.view_)
    assert_allclose(Q.sum(axis=1), 1, rtol=1e-5)
    assert_array_equal(Q.argmax(axis=1), labels)
    assert set(model.candidates_["family"]) == set(reference.candidates_["family"])
    if effort == "default":
        assert abs(model.consensus_ - reference.consensus_) < 0.05
        assert model.row_agreement_.compute().shape == (1500,)


@pytest.mark.slow
def test_documents_in_sparse_blocks(client, rng):
    topics = rng.dirichlet(np.full(200, 0.05), size=4)
    y = rng.randint(4, size=1000)
    X = sp.csr_array(np.stack([rng.multinomial(60, topics[label]) for label in y]).astype(np.float64))

    model = ManifoldClustering(4, random_state=0).fit(in_blocks(X, 2))

    reference = ManifoldClustering(4, random_state=0).fit(X)
    assert adjusted_rand_index(reference.labels_, model.labels_.compute()) > 0.97
    assert_array_equal(model.predict(X[:50]), model.labels_[:50].compute())


@pytest.mark.slow
def test_large_graphs_are_grouped_first(rows, client, monkeypatch):
    X, y = rows
    monkeypatch.setattr(manifold, "MAX_NODES", 500)
    monkeypatch.setattr(manifold, "MIN_LANDMARKS", 1000)
    monkeypatch.setattr(manifold, "MAX_LANDMARKS", 1000)

    model = ManifoldClustering(5, random_state=0).fit(in_blocks(X))

    labels = model.labels_.compute()
    assert (
        clustering_accuracy(y, labels)
        > clustering_accuracy(y, ManifoldClustering(5, random_state=0).fit(X).labels_) - 0.01
    )
    assert model._fit_X.shape == (1000, 20)
    assert np.mean(model.predict(X) == labels) > 0.98
    sampled, _, numbers = on_landmarks(model, 100)
    assert_array_equal(sampled.labels_, labels[numbers])
    assert "clusters" in sampled.report()


def test_the_number_of_clusters_is_chosen_by_a_sample(client):
    X, _ = blobs(n_samples=1000, n_clusters=4, n_features=3, noise=0.3, random_state=1)

    model = ManifoldClustering("auto", max_clusters=6, effort="fast", random_state=0).fit(in_blocks(X, 2))

    assert model.n_clusters_ == 4
    assert model.evidence_.n_clusters == 4


@pytest.mark.slow
def test_the_number_of_clusters_is_not_chosen_again_when_a_fit_goes_on(client, tmp_path, monkeypatch):
    X, _ = blobs(n_samples=300, n_clusters=3, n_features=2, noise=0.3, random_state=1)
    model = ManifoldClustering("auto", max_clusters=4, effort="fast", random_state=0)
    with config_context(tmp_path / "work"):
        evidence = model.fit(in_blocks(X, 1)).evidence_
        monkeypatch.setattr(manifold, "count_rows", None)  # a call would fail

        assert model.fit(in_blocks(X, 1)).evidence_ == evidence


@pytest.mark.slow
def test_rare_clusters_have_landmarks(client, monkeypatch, rng):
    X = np.concatenate([rng.normal(size=(3000, 3)), rng.normal(size=(40, 3)) + 30])
    monkeypatch.setattr(manifold, "MAX_LANDMARKS", 300)
    monkeypatch.setattr(manifold, "MIN_LANDMARKS", 300)

    model = ManifoldClustering(2, effort="fast", random_state=0).fit(in_blocks(X, 4))

    labels, landmarks = model.labels_.compute(), model._state.landmarks
    assert_array_equal(np.bincount(labels[3000:]).max(), 40)
    assert set(range(3000, 3040)) <= set(landmarks.numbers.tolist())
    assert_array_equal(landmarks.memberships, model.memberships_.compute()[landmarks.numbers])
    assert_array_equal(model._fit_X, X[landmarks.numbers])
    assert (model.predict(rng.normal(size=(20, 3)) + 30) == labels[-1]).all()


def test_models_predict_blocks_are_saved_and_do_not_keep_the_rows(rows, client, tmp_path):
    X, _ = rows
    model = ManifoldClustering(5, effort="fast", random_state=0).fit(in_blocks(X))

    fiedler.save(model, tmp_path / "model.safetensors")
    loaded = fiedler.load(tmp_path / "model.safetensors")

    predicted = loaded.predict(in_blocks(X, 3))
    assert predicted.chunks == ((500, 500, 500),)
    assert_array_equal(predicted.compute(), model.predict(X))
    assert np.mean(predicted.compute() == model.labels_.compute()) > 0.99
    assert loaded.predict_proba(in_blocks(X, 3)).shape == (1500, 5)
    assert "5 neighbours" in model.report()


@pytest.mark.slow
def test_results_outlive_the_model(rows, client):
    X, _ = rows
    labels = ManifoldClustering(5, effort="fast", random_state=0).fit(in_blocks(X[:1000], 2)).labels_

    gc.collect()

    assert len(np.unique(labels.compute())) == 5


# -------------------------------------------------------------------------------------- lost workers, damaged blocks


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter_and_a_fit_goes_on_from_its_blocks(rows, client, tmp_path, caplog):
    X, _ = rows
    blocks, model = in_blocks(X), ManifoldClustering(5, effort="fast", random_state=0)
    with config_context(tmp_path / "two"):
        expected = model.fit(blocks).labels_.compute()
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as alone,
        distributed.Client(alone),
        config_context(tmp_path / "one"),
    ):
        assert_array_equal(model.fit(blocks).labels_.compute(), expected)

    damage(max((tmp_path / "two" / "graph").glob("*.npz")))
    max((tmp_path / "two" / "moves-00").glob("*.npz")).unlink()
    damage(tmp_path / "two" / "result" / "000000.npz")
    with config_context(tmp_path / "two"), caplog.at_level("INFO", logger="fiedler.out_of_core"):
        assert_array_equal(model.fit(blocks).labels_.compute(), expected)

    assert caplog.messages[-1].startswith("3 blocks were made")
    with config_context(tmp_path / "two"):
        with pytest.raises(InputError, match="blocks of a fit with other options"):
            ManifoldClustering(4, effort="fast", random_state=0).fit(blocks)
        with pytest.raises(InputError, match="blocks of a fit with other data"):
            ManifoldClustering(5, effort="fast", random_state=0).fit(in_blocks(X + 1))


@pytest.mark.slow
def test_a_block_that_is_damaged_during_the_fit_is_made_again(rows, client, tmp_path, monkeypatch):
    X, _ = rows
    blocks, model = in_blocks(X), ManifoldClustering(5, effort="fast", random_state=0)
    expected = model.fit(blocks).labels_.compute()
    refine, times = manifold.refine, []

    def refine_after_damage(*args):
        times.append(time.perf_counter())
        if len(times) == 1:
            damage(tmp_path / "work" / "graph" / "000002.npz")
        return refine(*args)

    monkeypatch.setattr(manifold, "refine", refine_after_damage)
    with config_context(tmp_path / "work"):
        assert_array_equal(model.fit(blocks).labels_.compute(), expected)
    assert len(times) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sys.exit", "graceful", "segfault"])
def test_killed_workers_change_nothing(mode, rows, client):
    """The first worker ends after three seconds on average; a fit takes about two."""
    chaos = pytest.importorskip("distributed.chaos")
    X, _ = rows
    blocks, model = in_blocks(X[:1000], 2), ManifoldClustering(5, effort="fast", random_state=0)
    expected = model.fit(blocks).labels_.compute()
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as other:
        cluster.adapt(minimum=2, maximum=2, interval="200ms")  # as fiedler's own cluster does
        first_workers = set(cluster.scheduler.workers)
        other.register_plugin(chaos.KillWorker(delay="4 s", mode=mode))
        while first_workers <= set(cluster.scheduler.workers):
            assert_array_equal(model.fit(blocks).labels_.compute(scheduler="synchronous"), expected)


@pytest.mark.slow
def test_searches_that_are_there_are_not_repeated(rows, client, tmp_path, monkeypatch):
    X, _ = rows
    blocks, model = in_blocks(X[:1200], 2), ManifoldClustering(5, effort="fast", random_state=0)
    with config_context(tmp_path / "work"):
        expected = model.fit(blocks).labels_.compute()
        last = max((tmp_path / "work").glob("communities-1-*"))
        for step in ("candidates", last.name, "coarse-labels", "moves-00"):
            shutil.rmtree(tmp_path / "work" / step)
        searched = []

        def search(scorer, name, multilevel, number, rng):
            searched.append((name, number))
            return communities_of_search(scorer, name, multilevel, number, rng)

        monkeypatch.setattr(manifold, "communities_of_search", search)
        assert_array_equal(model.fit(blocks).labels_.compute(), expected)
    assert searched == [(9, int(last.name[-1]))]


SCRIPT = """
import sys, numpy as np, dask.array as da
from fiedler import ManifoldClustering
from fiedler.out_of_core import config_context

if __name__ == "__main__":
    X = np.load(sys.argv[1])
    with config_context(sys.argv[2], memory="2GB", n_workers=2):
        model = ManifoldClustering(5, effort="fast", random_state=0).fit(da.from_array(X, chunks=(600, 20)))
    np.save(sys.argv[3], model.labels_.compute())
"""


@pytest.mark.slow
def test_the_same_command_after_kill_9_goes_on(rows, client, tmp_path):
    X, _ = rows
    X = X[:1200]
    expected = ManifoldClustering(5, effort="fast", random_state=0).fit(in_blocks(X, 2)).labels_.compute()
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, *(str(tmp_path / name) for name in ("script.py", "rows.npy", "work", "labels.npy"))]

    process = subprocess.Popen(command, start_new_session=True)
    while not (tmp_path / "work" / "graph").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "lists").glob("*.npz")}
    subprocess.run(command, check=True)

    assert_array_equal(np.load(tmp_path / "labels.npy"), expected)
    assert finished == {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "lists").glob("*.npz")}


# ---------------------------------------------------------------------------------------------------------- mistakes


def with_nan(X):
    X = X.copy()
    X[1234, 3] = np.nan
    return X


def of_two_widths(X):
    parts = [dask.delayed(X[:750]), dask.delayed(X[750:, :-1])]
    return da.concatenate([da.from_delayed(part, (750, 20), dtype=X.dtype) for part in parts])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X: in_blocks(with_nan(X)), "block 4, row 234 of it: .*NaN"),
        (of_two_widths, "block 1 of X has 19 columns, but X has 20; give all blocks the same columns"),
        (lambda X: in_blocks(X).rechunk((500, 10)), r"columns of X are divided into 2 blocks; .*rechunk\(\{1: -1\}\)"),
        (lambda X: in_blocks(X[:, 0:1]).ravel(), "two dimensions"),
        (lambda X: in_blocks(np.ones_like(X)), "all rows of X are equal"),
        (lambda X: in_blocks(X[:3], 2), "more than the number of rows"),
        (lambda X: in_blocks(X)[in_blocks(X)[:, 0] > 1e9], "X has no rows"),
    ],
)
def test_mistakes_give_one_sentence(change, sentence, rows, client):
    with pytest.raises(InputError, match=sentence):
        ManifoldClustering(5).fit(change(rows[0]))


def test_unknown_sizes_and_empty_blocks_are_no_mistakes(rows, client):
    X, _ = rows
    blocks = in_blocks(X)
    chosen = blocks[(blocks[:, 0] > np.median(X[:, 0])) & (da.arange(1500, chunks=250) >= 250)]

    model = ManifoldClustering(5, effort="fast", random_state=0).fit(chosen)

    kept = (X[:, 0] > np.median(X[:, 0])) & (np.arange(1500) >= 250)
    assert model.labels_.chunks[0][0] == 0
    assert len(model.labels_.compute()) == kept.sum()
    assert np.isnan(chosen.chunks[0][0])


def test_options_without_a_block_version_say_so(rows, client):
    X, _ = rows
    blocks, y = in_blocks(X), np.where(np.arange(1500) < 10, 0, -1)

    for options, arguments, name in (
        ({"outliers": 0.1}, {}, "outliers"),
        ({"min_cluster_size": 9}, {}, "min_cluster_size"),
        ({"max_cluster_size": 900}, {}, "max_cluster_size"),
        ({"graph": fiedler.KNNGraph(5)}, {}, "graph"),
        ({}, {"sample_weight": np.ones(1500)}, "sample_weight"),
        ({}, {"y": y}, "labels y"),
        ({}, {"constraints": PairwiseConstraints([(0, 1)], [], 1500)}, "constraints"),
    ):
        with pytest.raises(InputError, match=f"does not take {name} with Dask arrays; leave it out, or pass X"):
            ManifoldClustering(5, **options).fit(blocks, **arguments)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer(rows, monkeypatch):
    monkeypatch.setattr("fiedler.out_of_core.run.CONNECT_SECONDS", 0.5)
    blocks = in_blocks(rows[0])

    with (
        config_context(scheduler="tcp://127.0.0.1:1"),
        pytest.raises(SchedulerError, match=r"scheduler at 'tcp://127\.0\.0\.1:1' cannot be reached"),
    ):
        ManifoldClustering(5).fit(blocks)


def test_workers_without_the_package_or_the_directory(rows, client, monkeypatch):
    blocks = in_blocks(rows[0])
    for found, sentence in (
        ((None, False), "has no fiedler, but this is version"),
        (("0.0.1", True), r"has fiedler 0\.0\.1, but this is version .*; install the same version on all workers"),
        ((fiedler.__version__, False), "does not see the work directory .*; use a directory that all machines share"),
    ):
        monkeypatch.setattr("fiedler.out_of_core.run._probe", lambda _, found=found: lambda: found)
        with pytest.raises(SchedulerError, match=sentence):
            ManifoldClustering(5).fit(blocks)
