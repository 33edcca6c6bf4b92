"""``fiedler cluster`` says what a long fit will cost, and refuses what will not fit into memory."""

import pytest

pytest.importorskip("typer", reason="the command line needs the extra 'cli'")

from fiedler import estimate
from fiedler.cli import fitting
from fiedler.manifold import FitCost


@pytest.fixture
def arguments(table, tmp_path):
    return ["cluster", table, "-k", "3", "--id", "name", "--drop", "class", "--out", tmp_path / "out"]


def expect(monkeypatch, seconds, peak_bytes):
    result = FitCost(60, 3, 3, seconds, seconds, peak_bytes, data_bytes=1440)
    monkeypatch.setattr(fitting, "expected_cost", lambda prepared, n_clusters, effort: result)


def test_a_long_fit_is_announced(arguments, run_fiedler, monkeypatch):
    expect(monkeypatch, 200.0, 1_200_000_000)

    result = run_fiedler(*arguments)
    assert result.code == 0
    assert result.err == "note: clustering 60 rows will take about 3 min 20 s and up to 1.2 GB of memory\n"
    assert run_fiedler(*arguments, "--quiet").err == ""


def test_a_short_fit_is_not(arguments, run_fiedler):
    assert run_fiedler(*arguments).err == ""


def test_what_does_not_fit_into_memory_is_refused(arguments, run_fiedler, monkeypatch, tmp_path):
    needed = estimate(60, 3, 3).extra_bytes  # of the rows that are clustered
    monkeypatch.setattr(fitting, "available_memory", lambda: needed - 1)

    result = run_fiedler(*arguments)
    assert result.code == 1
    assert result.err == (
        f"fiedler: clustering 60 x 3 values needs up to {needed / 1e9:.1f} GB of memory, but only "
        f"{needed / 1e9:.1f} GB is free; use fewer rows or columns, or try anyway with --no-memory-check\n"
    )
    assert not (tmp_path / "out").exists()
    assert run_fiedler(*arguments, "--no-memory-check").code == 0


def test_what_fits_is_clustered(arguments, run_fiedler, monkeypatch):
    needed = estimate(60, 3, 3).extra_bytes
    for free in (needed, None):  # None: unknown
        monkeypatch.setattr(fitting, "available_memory", lambda free=free: free)
        assert run_fiedler(*arguments).code == 0


def test_texts_are_sparse_rows(texts, run_fiedler, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(fitting, "estimate", lambda *a, **options: asked.append(options) or estimate(*a, **options))

    assert run_fiedler("cluster", texts, "-k", "2", "--out", tmp_path / "out").code == 0
    assert 1 <= asked[0]["nnz_per_row"] <= 5


def test_other_methods_are_not_estimated(arguments, run_fiedler, monkeypatch):
    monkeypatch.setattr(fitting, "available_memory", lambda: 0)

    assert run_fiedler(*arguments, "--method", "kmeans").code == 0
