"""One contestant at a time, each in a process of its own: CPU seconds, wall seconds, peak memory, and what it reports.

A benchmark file calls `contest` with its cases; `contest` runs ``python FILE --case NAME`` for each and gathers
one JSON line from it, which the case wrote through `measured`. Nothing else runs meanwhile, so the ratios within one
table are fair.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

OUT = Path("out") / "bench"


def measured(prepare: Callable, work: Callable, judge: Callable) -> None:
    """Time ``work(prepare())`` and print one JSON line with what ``judge`` says of its result."""
    given = prepare()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(given)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = {"cpu_s": cpu, "wall_s": wall, "peak_gb": peak / 2**20, "start_gb": before / 2**20}
    print(json.dumps(row | judge(given, result)))


def run_case(file: str, case: str, repeats: int, extra: list[str]) -> dict:
    """The medians over the repeats of one case."""
    rows = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, file, "--case", case, *extra], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return {"case": case, "failed": done.stderr.strip().splitlines()[-1][:120]}
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return {"case": case} | {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def contest(file: str, title: str, cases: dict[str, tuple[Callable, int]], extra: list[str] | None = None) -> None:
    """Run all cases (name -> function, repeats), print the table, and keep it under out/bench."""
    OUT.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (_, repeats) in cases.items():
        rows.append(run_case(file, name, repeats, extra or []))
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    text = f"### {title}\n\n{machine()}\n\n{markdown(rows)}\n"
    print(text)
    (OUT / f"{Path(file).stem}{''.join(extra or [])}.md").write_text(text)


def markdown(rows: list[dict]) -> str:
    """The rows as a Markdown table, one column a figure."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(_shown(row.get(key, "")) for key in keys) + " |" for row in rows]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"


def machine() -> str:
    """What it ran on, in a line."""
    import numpy
    import scipy
    import sklearn

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"


def arguments(**options: dict) -> argparse.Namespace:
    """``--case`` and the benchmark's own options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    for name, settings in options.items():
        parser.add_argument(f"--{name}", **settings)
    return parser.parse_args()
