"""Cluster rows of a file in blocks, within a memory limit: time, peak memory of all processes, and time by step.

    python benchmarks/bench_out_of_core.py --sizes 1000000 10000000 --memory 4GB

A curved mixture of 20 clusters in 50 dimensions, float32. Every size runs in a process of its own, whose resident
memory is added to that of its children, the workers, ten times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
from measure import OUT, machine_info, markdown_table

from fiedler import ManifoldClustering
from fiedler.datasets import tanh_manifold
from fiedler.io import read_blocks
from fiedler.metrics import clustering_accuracy, normalized_mutual_information
from fiedler.out_of_core import config_context

K = 20


def rows_file(size: int) -> Path:
    """Return the file of the rows, which is written if it does not exist."""
    path = OUT / f"manifold-{size}.npy"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        X, y = tanh_manifold(size, n_clusters=K, dtype="float32", random_state=0)
        np.save(path, X)
        np.save(path.with_suffix(".labels.npy"), y)
    return path


class PeakMemory(threading.Thread):
    """Watches the resident memory of this process and its children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.own = 0, 0

    def run(self) -> None:
        """Look ten times a second."""
        process = psutil.Process()
        while True:
            total, own = 0, process.memory_info().rss
            for child in process.children(recursive=True):
                with contextlib.suppress(psutil.Error):  # it has ended
                    total += child.memory_info().rss
            self.peak, self.own = max(self.peak, total + own), max(self.own, own)
            time.sleep(0.1)


class StepTimes(logging.Handler):
    """Collects the seconds of every step from the log."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Add up the steps of the same name, without their numbers."""
        if record.msg.startswith("%s: made"):
            step, _, seconds = record.args
            name = step.split("/")[0].rstrip("0123456789-.") if "walk" in step or "sums" in step else step
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def run(size: int, memory: str, workdir: Path) -> None:
    """Cluster one file and print a JSON line."""
    memory_watch, steps = PeakMemory(), StepTimes()
    memory_watch.start()
    logger = logging.getLogger("fiedler.out_of_core")
    logger.setLevel(logging.INFO)
    logger.addHandler(steps)
    started = time.perf_counter()
    with config_context(workdir, memory=memory):
        X = read_blocks(rows_file(size))
        model = ManifoldClustering(K, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    y, labels = np.load(rows_file(size).with_suffix(".labels.npy")), model.labels_.compute()
    disk = sum(path.stat().st_size for path in workdir.rglob("*") if path.is_file())
    row = {
        "rows": size,
        "blocks": X.numblocks[0],
        "seconds": round(seconds, 1),
        "peak GB": round(memory_watch.peak / 1e9, 2),
        "client GB": round(memory_watch.own / 1e9, 2),
        "disk GB": round(disk / 1e9, 2),
        "AC": round(100 * clustering_accuracy(y, labels), 2),
        "NMI": round(100 * normalized_mutual_information(y, labels), 2),
    }
    print(json.dumps({"row": row, "steps": {name: round(value, 1) for name, value in steps.seconds.items()}}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--workdir", type=Path, default=OUT / "work")
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case:
        run(options.case, options.memory, options.workdir)
        return
    rows, steps = [], []
    for size in options.sizes:
        rows_file(size)
        shutil.rmtree(options.workdir, ignore_errors=True)
        command = [sys.executable, __file__, "--case", str(size), "--memory", options.memory]
        command += ["--workdir", str(options.workdir)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(result.stdout.strip().splitlines()[-1])
        rows.append(found["row"])
        steps.append({"rows": size} | found["steps"])
        print(found, file=sys.stderr, flush=True)
    names = list(dict.fromkeys(name for step in steps for name in step))
    table = [{name: step.get(name, "") for name in names} for step in steps]
    text = f"{machine_info()}, {options.memory}\n\n{markdown_table(rows)}\n\n{markdown_table(table)}\n"
    (OUT / "bench_out_of_core.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
