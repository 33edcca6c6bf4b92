"""The expected cost of a fit: few measured terms, scaled to the machine; its memory is an upper bound."""

import gc

import pytest

import fiedler
from fiedler import ManifoldClustering, estimate
from fiedler.core import parallel as memory
from fiedler.core.parallel import peak_memory_mb, reset_peak_memory
from fiedler.datasets import tanh_manifold
from fiedler.errors import InputError
from fiedler.graph.neighbors import APPROXIMATE_ABOVE
from fiedler.manifold import FitCost, cost


@pytest.fixture(autouse=True)
def reference_machine(monkeypatch):
    """The machine on which the coefficients were measured."""
    monkeypatch.setattr(cost, "slowness", lambda: 1.0)


def test_memory_is_linear_and_time_almost():
    small, large = (estimate(n, 50, 20, dtype="float32") for n in (200_000, 2_000_000))

    assert 2 * small.peak_bytes < large.peak_bytes < 10 * small.peak_bytes
    assert 9 * small.seconds < large.seconds < 40 * small.seconds
    assert small.peak_bytes - small.extra_bytes == small.data_bytes == 200_000 * 50 * 4


def test_more_of_anything_costs_more():
    base = estimate(20_000, 30, 10, dtype="float32")
    for more in (
        estimate(40_000, 30, 10, dtype="float32"),
        estimate(20_000, 40, 10, dtype="float32"),
        estimate(20_000, 30, 15, dtype="float32"),
        estimate(20_000, 30, "auto", max_clusters=10, dtype="float32"),
        estimate(20_000, 30, 10, dtype="float64"),
        estimate(20_000, 30, 10, dtype="int64"),
        estimate(20_000, 30, 10, effort="thorough", dtype="float32"),
    ):
        assert more.cpu_seconds >= base.cpu_seconds
        assert more.peak_bytes >= base.peak_bytes
        assert (more.cpu_seconds, more.peak_bytes) != (base.cpu_seconds, base.peak_bytes)
    assert estimate(20_000, 30, 200, dtype="float32").cpu_seconds > 3 * base.cpu_seconds  # many clusters
    assert estimate(20_000, 30, 10, effort="fast", dtype="float32").cpu_seconds < base.cpu_seconds


def test_sparse_rows_and_devices_have_a_cost():
    sparse, denser = (estimate(5_000, 10_000, 5, nnz_per_row=nnz) for nnz in (50, 100))

    assert sparse.cpu_seconds < denser.cpu_seconds
    assert sparse.peak_bytes < denser.peak_bytes < estimate(5_000, 10_000, 5).peak_bytes
    assert estimate(10**6, 50, 20, device="cuda").seconds < estimate(10**6, 50, 20).seconds


def test_cells_save_time_and_more_threads_too():
    exact, cells = (estimate(n, 50, 10, dtype="float32") for n in (APPROXIMATE_ABOVE, 2 * APPROXIMATE_ABOVE))

    assert cells.cpu_seconds < 2 * exact.cpu_seconds  # a search of all pairs would take four times as long
    assert estimate(20_000, 50, 10, n_jobs=2).seconds < estimate(20_000, 50, 10, n_jobs=1).seconds


def test_a_slow_machine_takes_longer(monkeypatch):
    fast = estimate(20_000, 50, 10)
    monkeypatch.setattr(cost, "slowness", lambda: 3.0)

    assert estimate(20_000, 50, 10).seconds == pytest.approx(3 * fast.seconds)
    assert estimate(20_000, 50, 10).peak_bytes == fast.peak_bytes


def test_the_probes_measure_this_machine_once(monkeypatch):
    monkeypatch.undo()

    assert cost.slowness() > 0
    assert cost.slowness() == cost.slowness()


@pytest.mark.slow
@pytest.mark.skipif(not memory.CLEAR_REFS.exists(), reason="the peak can only be reset on Linux")
@pytest.mark.parametrize(("n", "d", "k"), [(3000, 30, 4), (6000, 8, 3)])
def test_a_fit_takes_less_memory_than_expected(n, d, k):
    X, _ = tanh_manifold(n, ambient=d, n_clusters=k, random_state=0)
    ManifoldClustering(2, random_state=0).fit(X[:100])  # loads libraries
    gc.collect()
    reset_peak_memory()
    before = peak_memory_mb()
    ManifoldClustering(k, random_state=0).fit(X)

    assert (peak_memory_mb() - before) * 2**20 < estimate(n, d, k).extra_bytes


def test_the_cost_is_printed_as_a_sentence():
    printed = str(FitCost(200_000, 50, 20, 70.0, 140.0, 12 * 10**8, 4 * 10**7))
    in_blocks = str(FitCost(10**7, 50, 20, 70.0, 140.0, 12 * 10**8, 4 * 10**7, n_workers=2, disk_bytes=10**10))

    assert (
        printed == "200,000 x 50 rows, 20 clusters: about 1 min 10 s (2 min 20 s of CPU time), at most 1.2 GB of memory"
    )
    assert "20 clusters, in blocks on 2 workers: about" in in_blocks
    assert in_blocks.endswith("at most 1.2 GB of memory and 10 GB of disk")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 5), {}, "n_rows must be an integer of at least 2"),
        ((10, 0), {}, "n_columns must be an integer of at least 1"),
        ((10, 5, 11), {}, "n_clusters=11 is more than the number of rows"),
        ((10, 5, "some"), {}, "n_clusters must be"),
        ((10, 5), {"nnz_per_row": 0}, "nnz_per_row must be a positive number"),
        ((10, 5), {"device": "tpu"}, "device='tpu' is not known"),
        ((10, 5), {"n_jobs": 0}, "n_jobs"),
    ],
)
def test_invalid_sizes(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        fiedler.estimate(*arguments, **options)


def test_a_fit_in_blocks_costs_less_time_with_more_workers_and_no_more_memory_for_more_rows():
    few, many, wide = (
        estimate(n, 50, 20, dtype="float32", n_workers=n_workers)
        for n, n_workers in ((10**7, 2), (10**8, 2), (10**8, 200))
    )

    assert 8 < many.cpu_seconds / few.cpu_seconds < 14
    assert wide.seconds < many.seconds / 50
    assert abs(many.peak_bytes / few.peak_bytes - 1) < 0.05
    assert 9 < many.disk_bytes / few.disk_bytes < 11
    with pytest.raises(InputError, match="cost of sparse rows in blocks is not known"):
        estimate(10**6, 1000, nnz_per_row=10, n_workers=2)
