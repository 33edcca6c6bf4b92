"""A few mutations of files, always the same; ``make fuzz-files`` tries a million others."""

import signal
from collections import Counter
from random import Random

import pytest

from fiedler.errors import InputError
from file_fuzzing import run
from file_fuzzing.mutate import mutate
from file_fuzzing.seeds import make_seeds
from file_fuzzing.target import LOADED, REFUSED, examine

N_MUTATIONS = 1000


@pytest.fixture(scope="module")
def seeds():
    return make_seeds(quick=True)


def test_valid_files_are_loaded(seeds):
    assert {seed.kind for seed in seeds} == {"model", "graph", "summary"}
    for seed in seeds:
        assert examine(seed.kind, seed.content, seed.rows) == LOADED


def test_mutated_files_are_loaded_and_predict_or_give_an_error_of_ours(seeds):
    rng, outcomes = Random(0), Counter()
    for _ in range(N_MUTATIONS):
        seed, other = rng.choice(seeds), rng.choice(seeds)
        outcomes[examine(seed.kind, mutate(seed.kind, seed.content, other.content, rng), seed.rows)] += 1

    assert outcomes[REFUSED] > 0.5 * N_MUTATIONS  # most mutations are damage
    assert outcomes[LOADED] > 0.03 * N_MUTATIONS  # and some reach what is behind the checks


def test_findings_are_recorded_and_a_run_is_resumed(seeds, tmp_path, monkeypatch):
    def fail(kind, data, rows=None):
        if len(data) % 7 == 0:
            raise ZeroDivisionError("found")
        raise InputError("refused") if len(data) % 7 == 1 else run.Hang

    monkeypatch.setattr(run, "make_seeds", lambda: seeds[-1:])
    monkeypatch.setattr(run, "BATCH", 20)
    worker = run.Worker(tmp_path, 0, 0)
    monkeypatch.setattr(run, "examine", fail)
    previous = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        worker.run_batch(0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    summary = run.summarize_records(tmp_path)

    assert run.Worker.finished(worker) == 1
    assert summary["mutations"] == summary["finding"] == 20
    assert any("ZeroDivisionError" in kind for kind in summary["kinds"])
    assert len(list(tmp_path.glob("finding-*"))) == len(summary["kinds"]) == 3
