"""Interrupt a fit of ManifoldClustering at several moments; measure how long it takes until ``fit`` is left.

    python benchmarks/bench_interrupt.py                               # 500,000 x 50 float32 rows, 20 clusters
    python benchmarks/bench_interrupt.py --moments 5 20 40 --jobs 2    # CPU seconds since the begin of the fit; threads
    python benchmarks/bench_interrupt.py --rows 50000 --moments 1 3

One process makes the rows and fits again and again; it receives SIGINT as from Ctrl-C. The model was fitted to a few of
the rows before and must be the same after each interrupt. Moments are in CPU seconds, so that they mean the same stages
on a busy machine; they are read from /proc. ``cpu_after_s`` is the CPU time that the process uses in the
two seconds after ``fit`` is left: threads that go on show there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from measure import machine_info, markdown_table, parse_arguments

from fiedler import ManifoldClustering
from fiedler.core.fitting import listen
from fiedler.datasets import tanh_manifold

MOMENTS = [3, 20, 40, 52, 60, 68, 76, 84]  # CPU seconds; the whole fit takes about 90
K = 20
N_ROWS_BEFORE = 2000  # to which the model is fitted before
SECONDS_AFTER = 2.0


class CurrentStage:
    """Knows the stage that is running; in an interrupt, the one that was."""

    def __init__(self):
        self.name = "before the first stage"

    def begin(self, stage):
        """Store the names of the stage and of those around it."""
        self.name = ": ".join(part.name for part in stage.path())

    def advance(self, stage):
        """Ignore the steps."""

    def end(self, stage):
        """Say that the stage is over, unless an interrupt ended it."""
        if sys.exc_info()[0] is None:
            self.name = f"after {stage.name}"


def fit_repeatedly(n_rows, n_jobs):
    """Fit, say when it begins and, after an interrupt, where it was and whether the model is unchanged."""
    X, _ = tanh_manifold(n_rows, n_clusters=K, dtype="float32", random_state=0)
    model = ManifoldClustering(K, random_state=0, n_jobs=n_jobs).fit(X[:N_ROWS_BEFORE])
    before, predicted = dict(vars(model)), model.predict(X[-100:])
    for _ in sys.stdin:  # one line asks for one fit
        current = CurrentStage()
        start = time.perf_counter()
        say({"begun": True})
        try:
            with listen(current):
                model.fit(X)
            say({"stage": "fitted", "fit_s": time.perf_counter() - start})
            return
        except KeyboardInterrupt:
            say({"stage": current.name})
        start_cpu = time.process_time()
        time.sleep(SECONDS_AFTER)
        cpu = time.process_time() - start_cpu
        same = all(vars(model)[name] is value for name, value in before.items()) and len(vars(model)) == len(before)
        say({"cpu_after_s": cpu, "unchanged": same and bool(np.array_equal(model.predict(X[-100:]), predicted))})


def say(line):
    print(json.dumps(line), flush=True)


def interrupt_at(process, moment):
    """Start a fit, interrupt it after some seconds, and return the delay with what the process says."""
    process.stdin.write("fit\n")
    process.stdin.flush()
    read_line(process)
    start = cpu_seconds(process.pid)
    while process.poll() is None and cpu_seconds(process.pid) < start + moment:  # it ends after a whole fit
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    sent = time.perf_counter()
    row = {"moment_cpu_s": moment} | read_line(process)
    delay = time.perf_counter() - sent
    return row if row["stage"] == "fitted" else row | {"delay_s": delay} | read_line(process)


def cpu_seconds(pid):
    """Return the CPU time of a process, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_line(process):
    return json.loads(process.stdout.readline())


def measure(n_rows, n_jobs, moments):
    """Return a row of the table for every moment before the end of the fit."""
    command = [sys.executable, __file__, "--case", "fit", "--rows", str(n_rows)]
    command += [] if n_jobs is None else ["--jobs", str(n_jobs)]
    rows = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for moment in moments:
            rows.append({"n_jobs": str(n_jobs)} | interrupt_at(process, moment))
            print(f"  {rows[-1]}", file=sys.stderr, flush=True)
            if rows[-1]["stage"] == "fitted":
                break
        process.stdin.close()
    return rows


def main():
    options = parse_arguments(
        rows={"type": int, "default": 500_000},
        jobs={"type": int},
        moments={"type": float, "nargs": "+", "default": MOMENTS},
    )
    if options.case:
        fit_repeatedly(options.rows, options.jobs)
        return
    rows = measure(options.rows, options.jobs, sorted(options.moments))
    print(f"### Interrupts of ManifoldClustering\n\n{machine_info()}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
