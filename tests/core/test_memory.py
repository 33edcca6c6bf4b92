"""Memory: the peak of the process, and what it can still allocate on a machine or in a container."""

import numpy as np
import pytest

from fiedler.core import memory
from fiedler.core.memory import available_memory, peak_memory_mb, reset_peak_memory

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
