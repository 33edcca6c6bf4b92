"""Calibrate `fiedler.estimate`: measure the stages of fits, and print the coefficients of its model.

    python benchmarks/bench_estimate.py                 # the table "cpu" of fiedler/clustering/cost.py, in some minutes
    python benchmarks/bench_estimate.py --device cuda   # the table "cuda", with torch

Every fit runs in a separate process with one thread (on a device, with all). The CPU time of each stage is fitted by
least squares of the relative error, its memory by the smallest upper bound (a linear program), both with non-negative
coefficients. The second table compares the model with the measurements.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from measure import OUT, machine_info, markdown_table, parse_arguments
from scipy.optimize import linprog, nnls

from fiedler.core.parallel import peak_memory_mb, reset_peak_memory
from fiedler.datasets import tanh_manifold
from fiedler.manifold import cost
from fiedler.manifold import estimator as manifold
from fiedler.manifold.choice import EFFORTS, Comparer
from fiedler.manifold.cost import (
    COMMUNITIES,
    COMPARISON,
    COUNTING,
    GRAPHS,
    MEMBERSHIPS,
    MEMORY_TERMS,
    MEMORY_TERMS_OF_STAGE,
    MIXTURES,
    STAGES,
    TIME_TERMS,
    Costs,
    Problem,
    block_bytes,
    cost_of,
    machine_speed,
)

MIN_SECONDS, MIN_BYTES = 0.05, 20e6  # relative errors of shorter and smaller stages do not matter
LEAST_COEFFICIENTS = {"fixed": 2**27, "data": 1.0}  # of the memory: two blocks of temporaries, a copy of the rows


class Case(NamedTuple):
    """A fit, or only its graphs."""

    n: int
    d: int
    k: int = 10
    dtype: str = "float32"
    nnz: int | None = None
    counts: bool = False
    only_graphs: bool = False
    noise: bool = False  # whether the columns are independent, which is the worst case for trees


CASES = [
    Case(2_000, 20, 5),
    Case(2_000, 20, 20),
    Case(8_000, 20, 5),
    Case(8_000, 40, 20),
    Case(8_000, 8, 10, "float64"),
    Case(4_000, 100, 10, "float64"),
    Case(4_000, 300, 10),
    Case(20_000, 10, 5),
    Case(20_000, 20, 20),
    Case(3_000, 10, 60),
    Case(6_000, 6, 120, "float64"),
    Case(40_000, 30, 100),
    Case(40_000, 30, 10),
    Case(60_000, 20, 3),
    Case(100_000, 50, 20),
    Case(12_000, 60, 5, "float64"),
    Case(1_500, 5, 5, counts=True),
    Case(300, 4, 20, "float64", counts=True),
    Case(2_000, 10, 20, counts=True),
    Case(10_000, 20, 8, counts=True),
    Case(3_000, 5_000, 10, nnz=50),
    Case(20_000, 100, only_graphs=True),
    Case(20_000, 50, dtype="float64", only_graphs=True),
    Case(10_000, 200, dtype="float64", only_graphs=True),
    Case(50_000, 5, only_graphs=True),
    Case(20_000, 15, dtype="float64", only_graphs=True),
    Case(10_000, 8, dtype="float64", only_graphs=True, noise=True),
    Case(10_000, 15, dtype="float64", only_graphs=True, noise=True),
    Case(40_000, 3, dtype="float64", only_graphs=True, noise=True),
    Case(60_000, 100, only_graphs=True),
    Case(200_000, 50, only_graphs=True),
    Case(8_000, 20_000, nnz=100, only_graphs=True),
]

DEVICE_CASES = [
    Case(5_000, 20, 5),
    Case(20_000, 50, 20),
    Case(50_000, 20, 10),
    Case(100_000, 50, 20),
    Case(200_000, 50, 10),
    Case(1_000_000, 50, 20),
    Case(20_000, 20, 20, counts=True),
    Case(20_000, 200, 10),
    Case(50_000, 20, 10, "float64"),
]


# ------------------------------------------------------------------------------------------------------ measurements


def make_rows(case):
    if case.nnz is not None:
        rng = np.random.RandomState(0)
        frequent = np.minimum(rng.zipf(1.3, size=(case.n, case.nnz)) - 1, case.d - 1)  # as words are
        topic = rng.randint(case.k, size=(case.n, 1))
        columns = (frequent * 7 + topic * (case.d // case.k)) % case.d
        rows = np.repeat(np.arange(case.n), case.nnz)
        return sp.csr_array((rng.random_sample(rows.size) + 0.1, (rows, columns.ravel())), shape=(case.n, case.d))
    if case.noise:
        return np.random.RandomState(0).normal(size=(case.n, case.d)).astype(case.dtype)
    return tanh_manifold(case.n, ambient=case.d, n_clusters=case.k, dtype=case.dtype, random_state=0)[0]


class Meter:
    """Time and peak memory of the stages of a fit, on the host or on a device."""

    def __init__(self, device):
        self.device, self.seconds, self.bytes = device, dict.fromkeys(STAGES, 0.0), dict.fromkeys(STAGES, 0.0)
        self.open = []

    def reset(self):
        """Reset the peak of the memory, after what is free has been given back (which glibc can do)."""
        if self.device == "cpu":
            getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
            reset_peak_memory()
        else:
            self.torch.cuda.reset_peak_memory_stats()

    def peak(self):
        """Return the peak of the memory in bytes."""
        return peak_memory_mb() * 2**20 if self.device == "cpu" else self.torch.cuda.max_memory_allocated()

    def clock(self):
        """Return the CPU time, or on a device the time."""
        if self.device == "cpu":
            return time.process_time()
        self.torch.cuda.synchronize()
        return time.perf_counter()

    def start(self):
        """Take the memory that is in use now as the base."""
        gc.collect()
        if self.device != "cpu":
            import torch

            self.torch = torch
        self.reset()
        self.base = self.peak()

    def measure(self, stage, function):
        """Return the function, measured as a stage; a stage inside another one does not count as part of it."""

        def measured(*args, **kwargs):
            if self.open:
                outer = self.open[-1]
                self.bytes[outer] = max(self.bytes[outer], self.peak() - self.base)
            self.reset()
            self.open.append(stage)
            begin = self.clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent = self.clock() - begin
                self.bytes[stage] = max(self.bytes[stage], self.peak() - self.base)
                self.reset()
                self.open.pop()
                self.seconds[stage] += spent
                if self.open:
                    self.seconds[self.open[-1]] -= spent

        return measured


def run_case(case, device):
    """Fit, and print the cost of every stage as JSON."""
    X, model_class, meter = make_rows(case), manifold.ManifoldClustering, Meter(device)
    warm_up = X[:300]
    if device != "cpu":
        import torch

        X, warm_up = torch.as_tensor(X, device=device), torch.as_tensor(warm_up, device=device)
    EFFORTS["default"] = EFFORTS["default"]._replace(enough=np.inf)  # all views are compared
    model_class("auto" if case.counts else 3, max_clusters=4, random_state=0).fit(warm_up)
    model = model_class("auto" if case.counts else case.k, max_clusters=case.k, random_state=0)
    model_class._build_graphs = meter.measure(GRAPHS, model_class._build_graphs)
    model_class._count = meter.measure(COUNTING, model_class._count)
    model_class._find_candidates = meter.measure(COMMUNITIES, model_class._find_candidates)
    Comparer.compare = meter.measure(COMPARISON, Comparer.compare)
    model_class._set_memberships = meter.measure(MEMBERSHIPS, model_class._set_memberships)
    manifold.mixture_candidates = meter.measure(MIXTURES, manifold.mixture_candidates)
    if case.only_graphs:
        model_class._find_candidates = stop
    meter.start()
    with suppress(Stop):
        model.fit(X)
    k = case.k if case.only_graphs or not case.counts else int(model.n_clusters_)
    print(json.dumps({"seconds": meter.seconds, "bytes": meter.bytes, "probes": machine_speed(), "k": k}))


class Stop(Exception):
    """Ends a fit after its graphs."""


def stop(*args, **kwargs):
    raise Stop


def measure_all(cases, device):
    threads = {"OMP_NUM_THREADS": "1"} if device == "cpu" else {}
    for i, case in enumerate(cases):
        command = [sys.executable, __file__, "--case", str(i), "--device", device]
        process = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads})
        if process.returncode:
            sys.exit(process.stderr)
        measured = json.loads(process.stdout.strip().splitlines()[-1])
        used = {name: round(value, 2) for name, value in measured["seconds"].items() if value}
        peak = max(measured["bytes"].values()) / 1e6
        print(f"  {case.n} x {case.d}, k = {measured['k']}: {used}, {peak:.0f} MB", file=sys.stderr, flush=True)
        yield case, measured


def as_problem(case, k, device):
    """Return the size of a case; of a fit that counts clusters, with the number it has found."""
    itemsize = 8 if case.dtype == "float64" or case.nnz else 4
    return Problem(
        case.n,
        case.d,
        case.k if case.counts else k,
        case.counts,
        bytes_per_row=case.d * itemsize if case.nnz is None else case.nnz * (itemsize + 4) + 4,
        nnz=case.nnz,
        search=cost._search(case.n, case.d, itemsize == 4, case.nnz is not None, device),
        n_threads=1,
        n_jobs=1,
        n_compared=0 if case.nnz else min(case.n, EFFORTS["default"].max_rows),
        max_searches=cost.MAX_SEARCHES if case.nnz else EFFORTS["default"].max_searches,
    )


# ------------------------------------------------------------------------------------------------------ coefficients


def fit_seconds(rows):
    coefficients = {}
    for stage in STAGES:
        names = [name for name, term in TIME_TERMS.items() if term.stage == stage]
        used = [(problem, seconds[stage]) for problem, seconds, _ in rows if seconds[stage] > 0]
        if not used:
            continue
        weights = 1 / np.maximum([seconds for _, seconds in used], MIN_SECONDS)
        sizes = np.array([[TIME_TERMS[name].size(problem) for name in names] for problem, _ in used])
        scale = np.maximum(sizes.max(axis=0), 1e-300)
        solution = nnls(sizes / scale * weights[:, None], np.array([seconds for _, seconds in used]) * weights)[0]
        coefficients |= {name: float(f"{a:.3g}") for name, a in zip(names, solution / scale) if a > 0}
    return coefficients


def fit_bytes(rows):
    """Minimise the relative excess of the bounds subject to bound >= measured; graphs stay until the end."""
    table, at_least = {}, dict(LEAST_COEFFICIENTS)
    for stage in STAGES:
        names = MEMORY_TERMS_OF_STAGE[stage]
        used = [(problem, peak[stage]) for problem, _, peak in rows if peak[stage] > 0]
        peaks = np.array([peak - (block_bytes(problem) if stage == GRAPHS else 0) for problem, peak in used])
        sizes = np.array([[MEMORY_TERMS[name](problem) for name in names] for problem, _ in used])
        scale = sizes.max(axis=0)
        excess = (sizes / scale / np.maximum(peaks, MIN_BYTES)[:, None]).sum(axis=0)
        least = [(at_least.get(name, 0) * largest, None) for name, largest in zip(names, scale)]
        bounds = linprog(excess, -sizes / scale, -peaks, bounds=least)
        table[stage] = {name: float(np.ceil(b)) for name, b in zip(names, bounds.x / scale)}
        at_least["nodes"] = table[GRAPHS]["nodes"]
    return table


def compare(rows, costs, probes):
    """Return the model and the measurements of whole fits and of graphs, as rows of a table."""
    for problem, seconds, peaks in rows:
        expected = cost_of(problem, costs, probes)
        measured = {stage for stage in STAGES if seconds[stage] > 0}
        stages = [stage for stage in expected.stages if stage.name in measured]
        spent = sum(seconds.values())
        peak = max(peaks.values())
        yield {
            "rows": f"{problem.n} x {problem.d}",
            "K": problem.k,
            "search": problem.search,
            "CPU s": spent,
            "expected": sum(stage.cpu_seconds for stage in stages),
            "ratio": sum(stage.cpu_seconds for stage in stages) / spent,
            "MB": peak / 1e6,
            "expected MB": (max(stage.peak_bytes for stage in stages) - expected.data_bytes) / 1e6,
        }


def as_source(device, costs):
    lines = [f'    "{device}": Costs(', f"        probes={costs.probes!r},", "        seconds={"]
    lines += [f'            "{name}": {value!r},' for name, value in costs.seconds.items()]
    lines += ["        },", "        bytes={"]
    constants = dict(zip(STAGES, ("GRAPHS", "COUNTING", "COMMUNITIES", "MIXTURES", "COMPARISON", "MEMBERSHIPS")))
    for stage, terms in costs.bytes.items():
        inside = ", ".join(f'"{name}": {value!r}' for name, value in terms.items())
        lines.append(f"            {constants[stage]}: {{{inside}}},")
    return "\n".join([*lines, "        },", "    ),"])


def main():
    options = parse_arguments(device={"default": "cpu"})
    cases = CASES if options.device == "cpu" else DEVICE_CASES
    if options.case:
        run_case(cases[int(options.case)], options.device)
        return
    measured = list(measure_all(cases, options.device))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"estimate_{options.device}.json").write_text(json.dumps(measured))
    rows = [(as_problem(case, row["k"], options.device), row["seconds"], row["bytes"]) for case, row in measured]
    names = ("product", "gather") if options.device == "cpu" else ()
    probes = {name: float(f"{np.median([row['probes'][name] for _, row in measured]):.3g}") for name in names}
    costs = Costs(probes, fit_seconds(rows), fit_bytes(rows))
    print(f"# {machine_info()}\n{as_source(options.device, costs)}\n")
    print(markdown_table(list(compare(rows, costs, probes))))


if __name__ == "__main__":
    main()
