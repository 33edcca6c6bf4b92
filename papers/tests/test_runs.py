"""Runs of cells: complete, resumable and repeatable records; back ends; worker processes."""

import atexit
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fiedler.core.parallel import peak_memory_mb
from fiedler.errors import FileFormatError
from fiedler_papers import RecordFile, load_protocol, run_cell, run_cells
from fiedler_papers.errors import RunError
from fiedler_papers.records import read_archive, record_key, write_archive
from fiedler_papers.run import missing_cells, missing_packages
from fiedler_papers.task_result import TimedCache
from fiedler_papers.workers import run_in_processes

VARYING = {"seconds", "peak_mb"}  # fields that differ from run to run
COMMAND = [sys.executable, "-m", "fiedler.cli", "reproduce", "smoke"]


@pytest.fixture(scope="module")
def smoke():
    return load_protocol("smoke")


@pytest.fixture(scope="module")
def records(smoke, tmp_path_factory):
    """Records of the smoke protocol, run in two processes."""
    file = RecordFile(tmp_path_factory.mktemp("smoke") / "records.jsonl")
    reported = []
    run_cells(smoke.cells(), file, n_jobs=2, on_record=reported.append)
    assert len(reported) == len(smoke.cells())
    return file.read()


def reproducible(record):
    return {name: value for name, value in record.items() if name not in VARYING}


@pytest.mark.slow
def test_every_cell_of_the_smoke_protocol_runs(smoke, records):
    assert {record_key(record) for record in records} == {cell.key for cell in smoke.cells()}
    assert [record for record in records if "error" in record] == []
    for record in records:
        assert record["versions"].count("numpy") == 1
        assert record["seconds"] >= 0
        assert record["peak_mb"] > 10
        assert record["seed"] == record["draw"]
    fits = [record for record in records if record["method"] in ("gmm", "lapgmm", "lcgmm", "lapgmm_printed")]
    assert all({"objective", "n_iter", "converged"} <= set(record) for record in fits)


def test_records_contain_the_convergence_of_a_learner(records):
    learnt = [record for record in records if record["method"] in ("learned", "llgc_learned")]
    assert learnt
    assert all({"objective", "n_iter", "converged"} <= set(record["learner"]) for record in learnt)


def test_scores_make_sense(records):
    scores = {(record["method"], record["draw"]): record["scores"] for record in records if record["scores"]}
    assert scores["kmeans", 0]["AC"] > 0.9
    assert scores["learned", 0]["BR"] > 0.8
    assert scores["llgc_learned", 0]["error"] < 0.2
    best = {record["draw"]: record for record in records if record["method"] == "lpi_best" and record["at"]["k"] == 2}
    assert all(record["best_at"] in (1, 2, 3, 5) for record in best.values())


def test_a_method_that_needs_more_labels_is_skipped_not_failed(records):
    (record,) = [record for record in records if record["method"] == "llgc_lmnn"]
    assert record["skipped"] == "fewer than 50 labelled rows in a class"
    assert record["scores"] == {}


def test_the_same_cell_gives_the_same_record_in_any_process(smoke, records):
    by_key = {record_key(record): record for record in records}
    for cell in smoke.cells(table="1", draws=1, only=["k=2"]):
        assert reproducible(run_cell(cell)) == reproducible(by_key[cell.key])


def test_shared_work_is_done_once_and_its_time_is_reported_to_all_cells():
    done = []
    cache = TimedCache(1)
    for key in ("a", "a", "b", "a"):
        cache.get_or_compute(key, lambda: done.append(time.sleep(0.02)))
    assert len(done) == 3  # the older of two keys was dropped
    cache = TimedCache(2)
    assert cache.get_or_compute("a", lambda: time.sleep(0.02) or 7) == (7, 0.0)
    value, seconds = cache.get_or_compute("a", lambda: 8)
    assert value == 7
    assert seconds >= 0.02


def test_shared_work_is_not_reused_for_other_rows(smoke):
    """Two draws of different classes: the cached graph of the first must not be used for the second."""
    cell = smoke.cells(only=["nle"])[0]
    cells = [replace(cell, at={"k": 2}, drawn=classes) for classes in ((0, 1), (2, 3))]
    scores = [run_cell(cell)["scores"] for cell in cells]
    reverse_order = [run_cell(cell)["scores"] for cell in cells[::-1]]
    assert scores == reverse_order[::-1]
    assert scores[0] != scores[1]


def test_a_failing_model_is_recorded_and_run_again(smoke, tmp_path):
    good = smoke.cells(only=["kmeans"])[0]
    bad = replace(good, spec={**good.spec, "model": {"use": "EmbedKMeans", "n_init": 0}})
    file = RecordFile(tmp_path / "records.jsonl")
    (record,) = run_cells([bad], file)
    assert record["error"].startswith("InputError: n_init must be an integer")
    assert "scores" not in record
    assert missing_cells([bad], file.read()) == [bad]


def test_missing_data_end_the_run(smoke, tmp_path, monkeypatch):
    monkeypatch.setenv("FIEDLER_DATA", str(tmp_path))
    monkeypatch.setenv("FIEDLER_CACHE", str(tmp_path))
    cell = replace(smoke.cells(only=["kmeans"])[0], source={"load": {"name": "coil20", "download": False}})
    with pytest.raises(OSError, match="coil20"):
        run_cells([cell, cell], RecordFile(tmp_path / "records.jsonl"), n_jobs=2)


def test_a_worker_that_dies_is_an_error_and_finished_results_are_kept():
    kept = []
    with pytest.raises(RunError, match="the worker died, probably out of memory") as caught:
        run_in_processes(_die_at, [[(1,), (0,)]], 1, kept.append)
    assert caught.value.code == "worker_died"
    assert kept == [1]


@pytest.mark.slow
def test_workers_stop_after_an_interrupt():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_processes(_die_at, [[(1,), (2,)], [(3,)]], 2, interrupted)
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_workers_run_their_exit_handlers(tmp_path):
    results = []
    run_in_processes(_touch_at_exit, [[(tmp_path / "one",)], [(tmp_path / "two",)]], 2, results.append)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def _touch_at_exit(path):
    """Write a file when the process exits, as libraries release their locks."""
    atexit.register(path.touch)


def _die_at(number):
    if number == 0:
        os._exit(3)
    return number


@pytest.mark.slow
def test_calls_of_a_group_share_a_process_and_blas_has_one_thread():
    kept = []
    run_in_processes(_process_and_threads, [[(), ()], [()]], 2, kept.append)
    counts = Counter(pid for pid, _ in kept)
    assert sorted(counts.values()) in ([1, 2], [3])
    assert {threads for _, threads in kept} == {"1"}


def _process_and_threads():
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


@pytest.mark.slow
def test_the_torch_back_end_runs_every_cell_with_the_same_clusters(smoke, records):
    pytest.importorskip("torch")
    on_host = {record_key(record): record for record in records}
    for cell in smoke.cells(draws=1):
        record = run_cell(cell, "torch")
        assert "error" not in record, record
        assert record["backend"] == ("torch" if cell.device else "numpy")
        assert ("torch" in record["versions"]) == cell.device
        if cell.method in ("kmeans", "gmm", "lapgmm_printed"):  # other methods draw random numbers in another order
            assert record["scores"]["AC"] == pytest.approx(on_host[cell.key]["scores"]["AC"], abs=0.01)
    assert missing_cells(smoke.cells(), records, "torch") == [cell for cell in smoke.cells() if cell.device]
    assert missing_cells(smoke.cells(), records) == []


def test_methods_with_a_missing_package_are_reported(smoke):
    method = replace(smoke.methods["kmeans"], package="no-such-package")
    assert missing_packages([method, smoke.methods["gmm"]]) == {"kmeans": "no-such-package"}


# --------------------------------------------------------------------------------------------------------------- files


def test_an_incomplete_line_is_dropped_and_run_again(smoke, records, tmp_path):
    path = tmp_path / "records.jsonl"
    lines = [json.dumps(record) + "\n" for record in records]
    path.write_text("".join(lines[:5]) + lines[5][:40])
    file = RecordFile(path)
    assert len(file.read()) == 5
    with file.writing() as open_file:
        open_file.add(records[5])
    assert path.read_text().count("\n") == 6
    assert [record_key(record) for record in file.read()] == [record_key(record) for record in records[:6]]


def test_a_line_that_is_not_a_record_is_an_error(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("nonsense\n")
    with pytest.raises(FileFormatError, match=r"records.jsonl' contains a line that is not a record"):
        RecordFile(path).read()


def test_cells_finished_since_the_plan_are_not_run_again(smoke, tmp_path):
    cells = smoke.cells(only=["kmeans"])[:2]
    file = RecordFile(tmp_path / "records.jsonl")
    assert len(run_cells(cells[:1], file)) == 1
    assert [record_key(record) for record in run_cells(cells, file)] == [cells[1].key]


def test_records_are_only_added_under_the_lock(tmp_path):
    with pytest.raises(RuntimeError, match=r"within `with file\.writing"):
        RecordFile(tmp_path / "records.jsonl").add({})


def test_two_runs_cannot_add_to_the_same_file(tmp_path):
    pytest.importorskip("fcntl")
    file = RecordFile(tmp_path / "records.jsonl")
    with file.writing(), pytest.raises(RunError, match="another run is writing to") as caught, file.writing():
        pass
    assert caught.value.code == "file_locked"


def test_archives_are_complete_and_deterministic(records, tmp_path):
    paths = [tmp_path / "a.xz", tmp_path / "b.xz"]
    write_archive(paths[0], records)
    write_archive(paths[1], records[::-1])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert {record_key(record) for record in read_archive(paths[0])} == {record_key(record) for record in records}
    assert read_archive(tmp_path / "none.xz") == []


@pytest.mark.slow
def test_a_killed_run_can_be_continued(smoke, tmp_path):
    """Nothing is lost or run twice, and no process is left behind."""
    pytest.importorskip("typer")
    cells, command = smoke.cells(table="1"), [*COMMAND, "--table", "1", "--jobs", "2", "--out", str(tmp_path)]
    path = tmp_path / "smoke" / "records.jsonl"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    run = subprocess.Popen(command, **quiet)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not path.exists() or path.read_text().count("\n") < 3):
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    before = RecordFile(path).read()
    assert 3 <= len(before) < len(cells)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _alive(run.pid):
        time.sleep(0.1)
    assert not _alive(run.pid)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(cells)} cells, {len(cells) - len(before)} to run" in done.stdout
    lines = path.read_text().splitlines()
    assert len(lines) == len({record_key(json.loads(line)) for line in lines}) == len(cells)


def _alive(group):
    """Whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_peak_memory_is_that_of_the_cell(smoke):
    if not os.path.exists("/proc/self/clear_refs"):
        pytest.skip("this system cannot reset the peak")
    block = np.ones(60_000_000)  # half a gigabyte
    del block
    before = peak_memory_mb()
    assert run_cell(smoke.cells(only=["kmeans"])[0])["peak_mb"] < before - 200
