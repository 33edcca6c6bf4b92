"""Kill workers at random times, and whole fits by ``kill -9``: do labels stay the same, and how much work is repeated?

    python benchmarks/chaos_out_of_core.py --seeds 30 --rows 20000
    python benchmarks/chaos_out_of_core.py --seeds 0 --kills 20 --rows 200000 --blocks 32

Workers are killed by `distributed.chaos.KillWorker` in its three modes, each after a random time, and started again. A
fit that was killed at a random moment is started again by the same command.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
from distributed.chaos import KillWorker
from measure import OUT, machine_info

from fiedler import ManifoldClustering
from fiedler.core.fitting import listen
from fiedler.datasets import tanh_manifold
from fiedler.io import read_blocks
from fiedler.out_of_core import config_context

K = 10
MODES = ("sys.exit", "graceful", "segfault")
CLUSTER = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}


def rows_in_blocks(n_rows: int, n_blocks: int) -> da.Array:
    """Return the rows of a file, which is written if it does not exist."""
    path = OUT / f"chaos-{n_rows}.npy"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        np.save(path, tanh_manifold(n_rows, n_clusters=K, dtype="float32", random_state=0)[0])
    return read_blocks(path, block_rows=-(-n_rows // n_blocks))


def fit(X: da.Array) -> np.ndarray:
    return ManifoldClustering(K, random_state=0).fit(X).labels_.compute(scheduler="synchronous")


class LossWatch(threading.Thread):
    """Notes the step that is running whenever a worker has gone; a listener of :mod:`fiedler.core.fitting`."""

    def __init__(self, cluster: distributed.LocalCluster) -> None:
        super().__init__(daemon=True)
        self.cluster, self.step, self.losses, self.is_over = cluster, "start", Counter(), False

    def begin(self, stage) -> None:
        """Remember the step."""
        self.step = stage.name.split("/")[0].rstrip("0123456789-.")

    def advance(self, stage) -> None:
        """Do nothing."""

    def end(self, stage) -> None:
        """Do nothing."""

    def run(self) -> None:
        """Compare the workers fifty times a second."""
        known = set(self.cluster.scheduler.workers)
        while not self.is_over:
            now = set(self.cluster.scheduler.workers)
            self.losses[self.step] += len(known - now)
            known = now
            time.sleep(0.02)


def kill_workers(X: da.Array, expected: np.ndarray, n_seeds: int, seconds: float) -> list[str]:
    """Fit while workers are killed; return lines of a report."""
    rng, n_equal, losses = np.random.RandomState(0), 0, Counter()
    for seed in range(n_seeds):
        delay = rng.uniform(1.0, seconds)
        with distributed.LocalCluster(**CLUSTER) as cluster, distributed.Client(cluster) as client:
            cluster.adapt(minimum=2, maximum=2, interval="200ms")  # a nanny does not restart a worker that exits
            client.register_plugin(KillWorker(delay=f"{delay:.2f} s", mode=MODES[seed % 3]))
            watch = LossWatch(cluster)
            watch.start()
            with listen(watch):
                is_equal = bool(np.array_equal(fit(X), expected))
            watch.is_over, n_equal = True, n_equal + is_equal
            losses += watch.losses
        lost = {step: count for step, count in watch.losses.items() if count}
        print(f"seed {seed}, {MODES[seed % 3]}: equal {is_equal}, lost {lost}", file=sys.stderr, flush=True)
    steps = ", ".join(f"{step} {count}" for step, count in losses.most_common())
    return [
        f"{n_equal} of {n_seeds} fits with killed workers have the labels of the undisturbed one;",
        f"{sum(losses.values())} workers were lost, by the step that was running: {steps}",
    ]


def kill_fits(n_rows: int, n_blocks: int, n_kills: int) -> list[str]:
    """Kill fits at random moments, and run the same command again; return lines of a report.

    Blocks that are finished are not made again, so what is done twice is what had been done since then: the time since
    each of the two workers wrote its last block of the step, or since the step began. It is compared with the time from
    the first block of an undisturbed run to the last. Blocks that were there before and were written again are counted
    as well.
    """
    work, labels = OUT / "chaos", OUT / "chaos.npy"
    command = [sys.executable, __file__, "--fit", str(n_rows), "--blocks", str(n_blocks)]
    command += ["--workdir", str(work), "--labels", str(labels)]

    def written() -> dict[Path, float]:
        return {path: path.stat().st_mtime for path in work.rglob("[0-9]*.npz")}

    def lost_since(blocks: dict[Path, float]) -> float:
        """Return when the oldest work began that was not finished."""
        by_time = sorted(blocks, key=lambda path: blocks[path])
        newest = by_time[-1].parent
        of_step = [path for path in by_time if path.parent == newest]
        if len(of_step) >= n_of_step.get(newest, 0):  # the step was complete, and the next one had begun
            return blocks[by_time[-1]]
        before = [blocks[path] for path in by_time if path.parent != newest][-1:]
        starts = [*before * CLUSTER["n_workers"], *(blocks[path] for path in of_step)]
        return starts[-CLUSTER["n_workers"]]

    shutil.rmtree(work, ignore_errors=True)
    started = time.perf_counter()
    subprocess.run(command, check=True)
    seconds, undisturbed = time.perf_counter() - started, written()
    times, n_of_step = sorted(undisturbed.values()), Counter(path.parent for path in undisturbed)
    whole = times[-1] - times[0]
    expected = np.load(
        labels
    )  # by the same command: with other numbers of BLAS threads, clusters may have other numbers
    rng, n_equal, n_again, shares = np.random.RandomState(1), 0, 0, []
    while len(shares) < n_kills:
        shutil.rmtree(work, ignore_errors=True)
        labels.unlink(missing_ok=True)
        process, moment = subprocess.Popen(command, start_new_session=True), rng.uniform(0.0, 1.0) * seconds
        time.sleep(moment)
        if process.poll() is not None:
            continue  # it has ended
        now = time.time()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = written()
        shares.append((now - lost_since(before)) / whole if before else 0.0)
        subprocess.run(command, check=True)
        after = written()
        n_again += sum(after.get(path, modified) != modified for path, modified in before.items())
        n_equal += bool(np.array_equal(np.load(labels), expected))
        print(
            f"killed after {moment:.1f} of {seconds:.1f} s, with {len(before)} blocks: {shares[-1]:.1%} done twice",
            file=sys.stderr,
            flush=True,
        )
    return [
        f"{n_equal} of {n_kills} fits killed by kill -9 end with equal labels when the same command is run again;",
        f"{n_again} blocks that were finished were made again; the share of the work of {whole:.1f} s that was done",
        f"twice is at most {np.mean(shares):.1%} on average, {np.min(shares):.1%} to {np.max(shares):.1%}",
    ]


def fit_once(n_rows: int, n_blocks: int, workdir: Path, labels: Path) -> None:
    """Fit in a work directory and write the labels: the command that is killed."""
    with config_context(workdir, memory="3GB", n_workers=2):
        np.save(labels, fit(rows_in_blocks(n_rows, n_blocks)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--fit", type=int)
    parser.add_argument("--workdir", type=Path)
    parser.add_argument("--labels", type=Path)
    options = parser.parse_args()
    if options.fit:
        fit_once(options.fit, options.blocks, options.workdir, options.labels)
        return
    X = rows_in_blocks(options.rows, options.blocks)
    with distributed.LocalCluster(**CLUSTER) as cluster, distributed.Client(cluster):
        fit(X)
        started = time.perf_counter()
        expected = fit(X)
        seconds = time.perf_counter() - started
    lines = kill_workers(X, expected, options.seeds, seconds) if options.seeds else []
    lines += kill_fits(options.rows, options.blocks, options.kills) if options.kills else []
    text = "\n".join([machine_info(), *lines, ""])
    (OUT / "chaos_out_of_core.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
