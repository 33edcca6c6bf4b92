"""Run each method in a separate process and measure CPU time, wall time and peak memory.

A benchmark file calls `compare_methods` with its cases, which runs ``python FILE --case NAME`` for each of them and
reads the JSON line that the case prints with `measure_case`. The cases run one after another, so that the figures in
one table can be compared.
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


def measure_case(prepare: Callable, method: Callable, evaluate: Callable) -> None:
    """Measure ``method(prepare())`` and print one JSON line with the scores that ``evaluate`` returns."""
    data = prepare()
    start_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start_wall, start_cpu = time.perf_counter(), time.process_time()
    result = method(data)
    wall, cpu = time.perf_counter() - start_wall, time.process_time() - start_cpu
    peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = {"cpu_s": cpu, "wall_s": wall, "peak_gb": peak_memory / 2**20, "start_gb": start_memory / 2**20}
    print(json.dumps(row | evaluate(data, result)))


def run_case(file: str, case: str, repeats: int, extra: list[str]) -> dict:
    """Run one case several times and return the medians."""
    rows = []
    for _ in range(repeats):
        process = subprocess.run(
            [sys.executable, file, "--case", case, *extra], capture_output=True, text=True, check=False
        )
        if process.returncode:
            return {"case": case, "failed": process.stderr.strip().splitlines()[-1][:120]}
        rows.append(json.loads(process.stdout.strip().splitlines()[-1]))
    return {"case": case} | {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def compare_methods(
    file: str, title: str, cases: dict[str, tuple[Callable, int]], extra: list[str] | None = None
) -> None:
    """Run all cases (name -> function, repeats), print the table and write it to out/bench."""
    OUT.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (_, repeats) in cases.items():
        rows.append(run_case(file, name, repeats, extra or []))
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
    text = f"### {title}\n\n{machine_info()}\n\n{markdown_table(rows)}\n"
    print(text)
    (OUT / f"{Path(file).stem}{''.join(extra or [])}.md").write_text(text)


def markdown_table(rows: list[dict]) -> str:
    """Format the rows as a Markdown table, one column per figure."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(_format_value(row.get(key, "")) for key in keys) + " |" for row in rows]
    return "\n".join(lines)


def _format_value(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"


def machine_info() -> str:
    """Return the machine and library versions in one line."""
    import numpy
    import scipy
    import sklearn

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"


def parse_arguments(**options: dict) -> argparse.Namespace:
    """Parse ``--case`` and the options of the benchmark, which are given as arguments of ``add_argument``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    for name, settings in options.items():
        parser.add_argument(f"--{name}", **settings)
    return parser.parse_args()
