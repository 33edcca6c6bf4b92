"""NLE on a device: a graph of a million nodes, ten neighbours, ten clusters, 300 updates; and agreement with the CPU.

    python benchmarks/bench_gpu_cuts.py [--size 1000000]

Needs a CUDA device; a back end that is missing is left out.
"""

from __future__ import annotations

import importlib.util
import time
import warnings

import numpy as np
from bench_gpu import BACKENDS
from measure import arguments, markdown

from fiedler import NLE, KNNGraph
from fiedler.core.backend import to_numpy
from fiedler.metrics import adjusted_rand_index

DEVICES = [name for name in ("torch", "cupy") if importlib.util.find_spec(name)]
K = 10


def make(n):
    """Ten overlapping clusters in ten dimensions, float32."""
    rng = np.random.RandomState(0)
    return (rng.normal(size=(K, 10))[rng.randint(K, size=n)] * 1.5 + rng.normal(size=(n, 10))).astype(np.float32)


def fit(name, X, init):
    own, synchronize = BACKENDS[name](X)
    graph = KNNGraph(10).build(own)
    synchronize()
    start = time.perf_counter()
    model = NLE(K, graph, init=init, tol=0.0, random_state=0).fit(own)
    synchronize()
    return model, time.perf_counter() - start


def main():
    warnings.simplefilter("ignore")
    options = arguments(size={"type": int, "default": 1_000_000})
    X = make(20_000)
    init = np.random.RandomState(1).uniform(size=(len(X), K))
    reference, _ = fit("numpy", X, init)
    table = []
    for name in DEVICES:
        model, _ = fit(name, X, init)
        close = float(np.abs(to_numpy(model.memberships_) - reference.memberships_).max())
        same = adjusted_rand_index(to_numpy(model.labels_), reference.labels_)
        table.append({"back end": name, "memberships differ by": close, "labels' ARI": same})
    print(markdown(table), flush=True)
    X = make(options.size)
    table = []
    for name in DEVICES:
        for start in ("random", "spectral"):
            own, synchronize = BACKENDS[name](X)
            graph = KNNGraph(10).build(own)
            synchronize()
            begun = time.perf_counter()
            model = NLE(K, graph, init=start, n_init=1, tol=0.0, random_state=0).fit(own)
            synchronize()
            seconds = time.perf_counter() - begun
            table.append({"back end": name, "start": start, "fit_s": seconds, "Ratio Cut": model.objective_})
            print(table[-1], flush=True)
    print(markdown(table))


if __name__ == "__main__":
    main()
