"""Measure NLE on a GPU: a graph of a million nodes, ten neighbours, ten clusters, 300 updates; compare with the CPU.

    python benchmarks/bench_gpu_cuts.py [--size 1000000]

Needs a CUDA device; back ends that are not installed are skipped.
"""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from bench_gpu import BACKENDS, timed
from measure import markdown_table, parse_arguments

from fiedler import NLE, KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.metrics import adjusted_rand_index

DEVICES = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]
K = 10


def make_data(n):
    """Draw ten overlapping clusters in ten dimensions, float32."""
    rng = np.random.RandomState(0)
    return (rng.normal(size=(K, 10))[rng.randint(K, size=n)] * 1.5 + rng.normal(size=(n, 10))).astype(np.float32)


def timed_fit(name, X, **options):
    """Build the graph, then fit NLE; return the model and the seconds of the fit."""
    X_device, synchronize = BACKENDS[name](X)
    graph = KNNGraph(10).build(X_device)
    return timed(lambda: NLE(K, graph, tol=0.0, random_state=0, **options).fit(X_device), synchronize)


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(size={"type": int, "default": 1_000_000})
    X = make_data(20_000)
    init = np.random.RandomState(1).uniform(size=(len(X), K))
    reference, _ = timed_fit("numpy", X, init=init)
    table = []
    for name in DEVICES:
        model, _ = timed_fit(name, X, init=init)
        difference = float(np.abs(to_numpy(model.memberships_) - reference.memberships_).max())
        ari = adjusted_rand_index(to_numpy(model.labels_), reference.labels_)
        table.append({"back end": name, "memberships differ by": difference, "ARI with the CPU": ari})
    print(markdown_table(table), flush=True)
    X = make_data(options.size)
    table = []
    for name in DEVICES:
        for init in ("random", "spectral"):
            model, seconds = timed_fit(name, X, init=init, n_init=1)
            table.append({"back end": name, "start": init, "fit_s": seconds, "Ratio Cut": model.objective_})
            print(table[-1], flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
