"""The expected cost of a fit: a sum of measured terms, scaled to the machine; its memory is an upper estimate."""

import gc

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import fiedler
from fiedler import ManifoldClustering, estimate
from fiedler.core import parallel as memory
from fiedler.core.arrays import BLOCK_BYTES
from fiedler.core.parallel import peak_memory_mb, reset_peak_memory
from fiedler.datasets import tanh_manifold
from fiedler.errors import InputError
from fiedler.graph import exact_search
from fiedler.graph.neighbors import APPROXIMATE_ABOVE, _prefers_cells, k_nearest
from fiedler.manifold import FitCost, StageCost, cost
from fiedler.manifold.cost import (
    COMMUNITIES,
    COMPARISON,
    COSTS,
    COUNTING,
    GRAPHS,
    MEMBERSHIPS,
    MEMORY_MARGIN,
    MEMORY_TERMS_OF_STAGE,
    MIXTURES,
    N_PROPOSED,
    STAGES,
    THREAD_EFFICIENCY,
    TIME_TERMS,
    WALK_STEPS,
    Costs,
    Problem,
    block_bytes,
    cost_of,
)
from fiedler.manifold.memberships import WALK

PROBLEM = Problem(
    1000, 20, 3, False, bytes_per_row=160, nnz=None, search="double", n_threads=3, n_jobs=1
)  # 3 clusters need 630 rows for mixtures
TOY = Costs(
    probes={"product": 0.5, "gather": 2.0},
    seconds={"double": 2e-6, "double, sort": 3e-6, "cells": 1e6, "communities, rows": 1e-3},
    bytes={stage: {"fixed": 100.0, "data": 2.0, "nodes": 5.0, "memberships": 7.0} for stage in STAGES},
)


@pytest.fixture(autouse=True)
def reference_machine(monkeypatch):
    """The machine on which the coefficients were measured."""
    monkeypatch.setattr(cost, "machine_speed", lambda: dict(COSTS["cpu"].probes))


def by_stage(result, name):
    return {stage.name: getattr(stage, name) for stage in result.stages}


def test_the_cost_is_the_sum_of_its_terms():
    result = cost_of(PROBLEM, TOY, {"product": 1.0, "gather": 2.0})  # products take twice as long here

    seconds = {GRAPHS: 2 * 2e-6 * 1000**2 * 20 + 3e-6 * 1000**2, COMMUNITIES: 1e-3 * 1000}
    assert by_stage(result, "cpu_seconds") == pytest.approx(seconds)
    assert result.cpu_seconds == pytest.approx(sum(seconds.values()))
    threads = 1 + 2 * THREAD_EFFICIENCY
    assert by_stage(result, "seconds") == pytest.approx({**seconds, GRAPHS: seconds[GRAPHS] / threads})
    measured = 100 + 2 * 160_000 + 5 * 1000 + 7 * 1000 * 3
    blocks = 8 * 1000 * (3 * 1000 + N_PROPOSED * 20)
    assert result.peak_bytes == pytest.approx(160_000 + MEMORY_MARGIN * (measured + blocks))
    assert result.peak_bytes - result.extra_bytes == result.data_bytes == 160_000


def test_every_thread_has_a_block_unless_there_are_few_rows():
    many = PROBLEM._replace(n=100_000, n_threads=8)

    assert block_bytes(many) == 8 * BLOCK_BYTES
    assert block_bytes(many._replace(n=60)) < BLOCK_BYTES
    assert block_bytes(many._replace(search="cells")) == 0


def test_every_coefficient_belongs_to_a_term():
    for costs in COSTS.values():
        assert set(costs.seconds) <= set(TIME_TERMS)
        assert set(costs.bytes) == set(STAGES)
        assert all(tuple(terms) == MEMORY_TERMS_OF_STAGE[stage] for stage, terms in costs.bytes.items())
        assert {term.stage for name, term in TIME_TERMS.items() if name in costs.seconds} == set(STAGES)


def test_memory_is_linear_and_time_almost():
    small, large = (estimate(n, 50, 20, dtype="float32") for n in (200_000, 2_000_000))

    assert 2 * small.peak_bytes < large.peak_bytes < 10 * small.peak_bytes
    assert 9 * small.seconds < large.seconds < 40 * small.seconds


def test_more_of_anything_costs_more():
    base = estimate(20_000, 30, 10, dtype="float32")
    for more in (
        estimate(40_000, 30, 10, dtype="float32"),
        estimate(20_000, 40, 10, dtype="float32"),
        estimate(20_000, 30, 15, dtype="float32"),
        estimate(20_000, 30, "auto", max_clusters=10, dtype="float32"),
        estimate(20_000, 30, 10, dtype="float64"),
        estimate(20_000, 30, 10, dtype="int64"),
    ):
        assert more.cpu_seconds >= base.cpu_seconds
        assert more.peak_bytes >= base.peak_bytes
        assert (more.cpu_seconds, more.peak_bytes) != (base.cpu_seconds, base.peak_bytes)
    assert estimate(20_000, 30, 200, dtype="float32").cpu_seconds > 3 * base.cpu_seconds  # many clusters


@pytest.mark.parametrize(
    ("kind", "n", "d", "options"),
    [
        ("tree", 20_000, 10, {}),
        ("product", 20_000, 30, {"dtype": "float32"}),
        ("double", 20_000, 30, {}),
        ("cells", 100_000, 30, {}),
        ("sparse", 5_000, 10_000, {"nnz_per_row": 50}),
    ],
)
def test_every_search_of_neighbours_has_a_cost(kind, n, d, options, monkeypatch):
    expected = by_stage(estimate(n, d, 5, **options), "cpu_seconds")[GRAPHS]
    monkeypatch.setitem(TIME_TERMS, kind, TIME_TERMS[kind]._replace(size=lambda p: 0.0))
    others = [name for name in TIME_TERMS if name.startswith(f"{kind},")]
    for name in others:
        monkeypatch.setitem(TIME_TERMS, name, TIME_TERMS[name]._replace(size=lambda p: 0.0))
    assert expected > 1.2 * by_stage(estimate(n, d, 5, **options), "cpu_seconds")[GRAPHS]


def test_only_stages_that_take_place_are_listed():
    def names(*args, **options):
        return [stage.name for stage in estimate(*args, **options).stages]

    assert names(5000, 10, "auto") == [GRAPHS, COUNTING, COMMUNITIES, MIXTURES, COMPARISON, MEMBERSHIPS]
    assert names(5000, 10, 5, effort="fast") == [GRAPHS, COMMUNITIES, MIXTURES, MEMBERSHIPS]
    assert names(1000, 100, 5) == [GRAPHS, COMMUNITIES, COMPARISON, MEMBERSHIPS]  # more parameters than rows
    assert names(5000, 10_000, 5, nnz_per_row=40) == [GRAPHS, COMMUNITIES, COMPARISON, MEMBERSHIPS]


def test_cells_save_time_and_more_threads_too():
    exact, cells = (estimate(n, 50, 10, dtype="float32") for n in (APPROXIMATE_ABOVE, 2 * APPROXIMATE_ABOVE))

    assert cells.cpu_seconds < 2 * exact.cpu_seconds  # a search of all pairs would take four times as long
    assert estimate(20_000, 50, 10, n_jobs=2).seconds < estimate(20_000, 50, 10, n_jobs=1).seconds


@pytest.mark.parametrize(("n", "d"), [(1000, 20), (50_001, 5), (50_001, 4), (50_000, 16)])
def test_cells_are_expected_where_the_graph_uses_them(n, d):
    rows = np.broadcast_to(np.float32(0), (n, d))  # takes no memory

    assert (cost._search(n, d, True, False, "cpu") == "cells") == _prefers_cells(rows, "euclidean")


@pytest.mark.parametrize("d", [4, 15, 16, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_exact_search_is_that_of_the_graph(d, dtype, rng, monkeypatch):
    """Products are used for single precision; for double precision scikit-learn chooses trees or all pairs."""
    called, trees = [], []
    by_products = exact_search.neighbors_by_products
    monkeypatch.setattr(exact_search, "neighbors_by_products", lambda *args: called.append(1) or by_products(*args))
    fit = NearestNeighbors.fit
    monkeypatch.setattr(NearestNeighbors, "fit", lambda self, X: trees.append(fit(self, X)._fit_method) or self)
    k_nearest(rng.normal(size=(200, d)).astype(dtype), 5)

    kind = cost._search(200, d, dtype == "float32", False, "cpu")
    assert kind == ("product" if called else "double" if trees == ["brute"] else "tree")


def test_a_slow_machine_takes_longer(monkeypatch):
    fast = estimate(20_000, 50, 10)
    monkeypatch.setattr(cost, "machine_speed", lambda: {k: 3 * v for k, v in COSTS["cpu"].probes.items()})

    assert estimate(20_000, 50, 10).seconds == pytest.approx(3 * fast.seconds)
    assert estimate(20_000, 50, 10).peak_bytes == fast.peak_bytes


def test_the_probes_measure_this_machine(monkeypatch):
    monkeypatch.undo()
    speed = cost.machine_speed()

    assert set(speed) == set(COSTS["cpu"].probes)
    assert all(seconds > 0 for seconds in speed.values())
    assert cost.machine_speed() is speed  # measured once


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


def test_the_table_is_readable():
    stages = (StageCost(GRAPHS, 70.0, 140.0, 12 * 10**8), StageCost(MEMBERSHIPS, 0.5, 0.5, 9 * 10**8))

    assert str(FitCost(200_000, 50, 20, stages, 4 * 10**7)).splitlines() == [
        "200,000 x 50 rows, 20 clusters: about 1 min 10 s (2 min 20 s of CPU time), at most 1.2 GB",
        "  stage                   seconds    CPU s   memory",
        "  neighbour graphs           70.0    140.0   1.2 GB",
        "  memberships                 0.5      0.5   900 MB",
    ]


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


def test_the_steps_of_the_walk_in_blocks_are_counted():
    walk = pytest.importorskip("fiedler.out_of_core.walk")

    assert walk.n_iterations(WALK) == WALK_STEPS


def test_a_fit_in_blocks_costs_less_time_with_more_workers_and_a_worker_needs_no_more_memory_for_more_rows():
    few, many, wide = (
        estimate(n, 50, 20, dtype="float32", n_workers=n_workers)
        for n, n_workers in ((10**7, 2), (10**8, 2), (10**8, 200))
    )

    assert 8 < many.cpu_seconds / few.cpu_seconds < 14
    assert wide.seconds < many.seconds / 50
    assert abs(many.worker_bytes / few.worker_bytes - 1) < 0.05
    assert many.client_bytes == few.client_bytes
    assert 9 < many.disk_bytes / few.disk_bytes < 11
    assert many.n_tasks > 9 * few.n_tasks
    assert few.peak_bytes == 2 * few.worker_bytes + few.client_bytes
    assert f"in {few.n_blocks} blocks on 2 workers" in str(few)
    with pytest.raises(InputError, match="cost of sparse rows in blocks is not known"):
        estimate(10**6, 1000, nnz_per_row=10, n_workers=2)
