"""The k-th open, write, close, fsync, rename or allocation fails, for every k: the old file or the new one."""

import sys
from contextlib import contextmanager

import pytest
from sklearn.cluster import KMeans

import fiedler
from faults.inject import FILE_FAULTS, contents, every_fault
from fiedler import AffinityGraph, EmbedKMeans, KNNGraph, PairwiseConstraints
from fiedler.datasets import blobs
from fiedler.report import read_summary, summarize, write_report, write_summary
from fiedler_papers.datasets import files as archive

X, LABELS = blobs(24, n_features=3, n_clusters=3, random_state=0)
MODELS = [EmbedKMeans(k, random_state=0).fit(X) for k in (2, 3)]
SUMMARIES = [summarize(KMeans(k, n_init=1, random_state=0).fit(X), X, seconds=0.0) for k in (2, 3)]
GRAPHS = [KNNGraph(k).build(X) for k in (3, 4)]
PAIRS = [PairwiseConstraints([(0, k)], [(1, 5)], n_samples=24) for k in (2, 3)]

# What is written: its name, a function that writes version 0 or 1, and one that reads the file or raises.
WRITERS = {
    "model": ("m.safetensors", lambda path, i: fiedler.save(MODELS[i], path, notes={"i": i}), fiedler.load),
    "graph": ("g.safetensors", lambda path, i: GRAPHS[i].save(path), AffinityGraph.load),
    "pairs": (
        "p.csv",
        lambda path, i: PAIRS[i].to_csv(path),
        lambda path: PairwiseConstraints.from_csv(path, n_samples=24),
    ),
    "summary": ("s.json", lambda path, i: write_summary(SUMMARIES[i], path), read_summary),
    "report": ("r.html", lambda path, i: write_report(SUMMARIES[i], path), lambda path: path.read_text("utf-8")),
    "archive": ("a.npz", lambda path, i: archive.write(path, {**archive.pack(X + i), "y": LABELS}), archive.read),
}


@pytest.mark.parametrize("lasting", [True, False], ids=["lasting", "passing"])
@pytest.mark.parametrize("kind", [*FILE_FAULTS, "allocate"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_the_old_one_or_the_new_one(name, kind, lasting, tmp_path):
    file_name, write, read = WRITERS[name]
    path = tmp_path / file_name
    write(path, 0)
    old = contents(tmp_path)
    for fault in every_fault(kind, tmp_path, lasting=lasting):
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            fault.install(patch)
            try:
                write(path, 1)
            except (OSError, MemoryError):
                failed = True
        if failed:
            assert contents(tmp_path) == old
        else:  # no fault, or one after which another attempt succeeded
            assert set(contents(tmp_path)) == set(old)
            assert contents(tmp_path) != old
            read(path)
            path.write_bytes(old[file_name])


@pytest.mark.parametrize("name", ["model", "graph"])
def test_lack_of_memory_is_not_taken_for_a_damaged_file(name, tmp_path):
    file_name, write, read = WRITERS[name]
    path = tmp_path / file_name
    write(path, 1)
    for fault in every_fault("allocate", tmp_path):
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            fault.install(patch)
            try:
                read(path)
            except MemoryError:
                failed = True
        assert failed == fault.has_happened


@contextmanager
def largest_file(n_bytes):
    """Let the operating system refuse writes beyond a size, also those of compiled libraries."""
    resource = pytest.importorskip("resource")
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of files")
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_fills_up_leaves_the_old_file(name, tmp_path):
    file_name, write, read = WRITERS[name]
    path = tmp_path / file_name
    write(path, 1)
    size = path.stat().st_size
    write(path, 0)
    old = contents(tmp_path)
    for limit in {0, 1, size // 3, size // 2, size - 1}:
        with largest_file(limit), pytest.raises(OSError, match="File too large"):
            write(path, 1)
        assert contents(tmp_path) == old
    read(path)
