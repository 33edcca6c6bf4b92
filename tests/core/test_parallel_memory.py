"""Memory: the peak of the process, and what it can still allocate on a machine or in a container."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from fiedler import LPI, FullGraph, KNNGraph, LearnedLaplacian
from fiedler.core import parallel as memory
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.core.parallel import available_memory, check_memory, peak_memory_mb, reset_peak_memory
from fiedler.errors import InputError, NotEnoughMemoryError

GIB = 2**30


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Files of an operating system with 8 GiB available and no groups; a function that adds some."""
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n")
    (tmp_path / "groups").write_text("")
    monkeypatch.setattr(memory, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "fs")

    def add(line, folder, **files):
        (tmp_path / "groups").write_text(line + "\n")
        (tmp_path / "fs" / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (tmp_path / "fs" / folder / name.replace("__", ".")).write_text(f"{content}\n")

    return add


def version_2(limit, usage, inactive=0):
    return {"memory__max": limit, "memory__current": usage, "memory__stat": f"anon 5\ninactive_file {inactive}"}


def version_1(limit, usage, inactive=0):
    return {
        "memory__limit_in_bytes": limit,
        "memory__usage_in_bytes": usage,
        "memory__stat": f"inactive_file 1\ntotal_inactive_file {inactive}",
    }


def test_without_groups_it_is_what_the_machine_has_left(system):
    assert available_memory() == 8 * GIB


@pytest.mark.parametrize(
    ("line", "folder", "files", "expected"),
    [
        ("0::/app", "app", version_2(4 * GIB, 3 * GIB, GIB // 2), 1.5),
        ("0::/", "", version_2(4 * GIB, 3 * GIB), 1),
        ("0::/app/worker", "app", version_2(2 * GIB, GIB), 1),  # the limit of an outer group
        ("0::/app", "app", version_2("max", GIB), 8),
        ("0::/app", "app", version_2(64 * GIB, GIB), 8),
        ("0::/app", "app", version_2(2 * GIB, 3 * GIB), 0),
        ("4:memory:/docker/1f", "memory/docker/1f", version_1(4 * GIB, 3 * GIB, GIB), 2),
        ("4:cpu,memory:/docker/1f", "memory", version_1(4 * GIB, 3 * GIB), 1),  # a path of the host
        ("4:memory:/", "memory", version_1(2**63 - 4096, GIB), 8),
        ("3:cpuset:/app", "app", version_2(GIB, 0), 8),
        ("0::/app", "app", {"memory__max": "damaged", "memory__current": 1}, 8),
    ],
)
def test_a_lower_limit_of_a_group_counts(line, folder, files, expected, system):
    system(line, folder, **files)

    assert available_memory() == expected * GIB


def test_it_is_unknown_on_other_systems(system, tmp_path):
    (tmp_path / "meminfo").unlink()
    (tmp_path / "groups").unlink()

    assert available_memory() is None


@pytest.mark.skipif(not memory.CLEAR_REFS.exists(), reason="the peak can only be reset on Linux")
def test_the_peak_is_that_since_the_reset():
    reset_peak_memory()
    before = peak_memory_mb()
    block = np.ones(2**24)  # 128 MiB
    during = peak_memory_mb()
    del block

    assert 120 <= during - before <= 200
    reset_peak_memory()
    assert peak_memory_mb() <= during - 100


def test_an_allocation_beyond_the_available_memory_is_refused_with_both_sizes(system):
    check_memory(8 * GIB, "a table", "use fewer rows")

    with pytest.raises(
        NotEnoughMemoryError, match=r"a table needs about 8\.7 GB .* only 8\.6 GB is available; use fewer rows"
    ):
        check_memory(8.1 * GIB, "a table", "use fewer rows")


@pytest.mark.parametrize("model", [FullGraph(), LearnedLaplacian(graph="full")], ids=repr)
def test_complete_graphs_are_refused_before_anything_is_allocated(model, monkeypatch, rng):
    X = rng.normal(size=(2_000, 2))
    fit = model.build if isinstance(model, FullGraph) else lambda X: model.fit(X, np.arange(len(X)) % 2)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    tracemalloc.start()
    with pytest.raises(NotEnoughMemoryError, match=r"FullGraph on 2000 rows needs about 0\.2 GB .*; use KNNGraph"):
        fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 * len(X) ** 2
    with pytest.raises(InputError, match="20000 rows would have 400,000,000 weights, about 18 GB"):
        fit(rng.normal(size=(20_000, 2)))


def test_dense_eigenproblems_are_refused_if_the_matrix_does_not_fit_into_memory(monkeypatch, rng):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)

    with pytest.raises(NotEnoughMemoryError, match=r"a dense matrix of 3000 rows .*; use method='auto'"):
        smallest_eigenpairs(sp.eye_array(3_000, format="csr"), 2, method="dense")
    X = sp.random_array((2_100, 2_100), density=1e-3, random_state=0, format="csr")
    with pytest.raises(NotEnoughMemoryError, match=r"solver='svd' on 2100 rows .*; use solver='regression'"):
        LPI(2, KNNGraph(3), solver="svd").fit(X)


def test_new_points_are_linked_to_a_complete_graph_only_if_the_weights_fit_into_memory(monkeypatch, rng):
    X = rng.normal(size=(300, 2))
    recipe = FullGraph()
    graph = recipe.build(X)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)

    assert recipe.link(X[:5], X, graph).shape == (5, 300)
    with pytest.raises(NotEnoughMemoryError, match="fewer points at a time"):
        recipe.link(rng.normal(size=(20_000, 2)), X, graph)
