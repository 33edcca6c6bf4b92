"""A few mutations of files, always the same; ``make fuzz-files`` tries a million others."""

from collections import Counter
from random import Random

import pytest

import file_fuzzing
from file_fuzzing import FAILED, LOADED, REFUSED, examine, make_seeds, mutate, mutate_bytes, search


@pytest.fixture(scope="module")
def seeds():
    return make_seeds(quick=True)


def outcomes_of(seeds, mutation, n, folder):
    rng, outcomes, path = Random(0), Counter(), folder / "mutated.safetensors"
    for _ in range(n):
        seed = rng.choice(seeds)
        path.write_bytes(mutation(seed.content, rng))
        outcomes[examine(path, seed.rows)] += 1
    return outcomes


def test_every_damage_is_refused(seeds, tmp_path):
    assert outcomes_of(seeds, lambda data, rng: data, len(seeds), tmp_path) == {LOADED: len(seeds)}
    assert outcomes_of(seeds, mutate_bytes, 300, tmp_path) == {REFUSED: 300}


@pytest.mark.parametrize("n", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_crafted_files_are_refused_with_one_sentence_or_loaded(n, seeds, tmp_path):
    outcomes = outcomes_of(seeds, mutate, n, tmp_path)

    assert set(outcomes) == {REFUSED, LOADED, FAILED}
    assert outcomes[LOADED] > 0.03 * n  # some mutations reach what is behind the checks


@pytest.mark.slow
def test_findings_are_stored_and_a_search_without_any_leaves_nothing(seeds, tmp_path, monkeypatch):
    def fail(path, rows=None):
        raise ZeroDivisionError("found")

    monkeypatch.setattr(file_fuzzing, "make_seeds", lambda: seeds)
    with pytest.raises(SystemExit) as ended:
        search(tmp_path, 0, 10, 0)
    assert (ended.value.code, list(tmp_path.iterdir())) == (0, [])
    monkeypatch.setattr(file_fuzzing, "examine", fail)
    with pytest.raises(SystemExit) as ended:
        search(tmp_path, 0, 2, 0)
    assert (ended.value.code, len(list(tmp_path.glob("finding-*.safetensors")))) == (1, 2)
    assert "ZeroDivisionError" in next(tmp_path.glob("finding-*.txt")).read_text()
