"""The learned Laplacian and LLGC on a device, beside the CPU: times, and how far the results agree.

    python benchmarks/bench_gpu_supervision.py [--size 200000]

Needs a CUDA device; a back end that is missing is left out.
"""

from __future__ import annotations

import importlib.util
import time
import warnings

import numpy as np
from bench_gpu import BACKENDS
from measure import arguments, markdown

from fiedler import LLGC, KNNGraph, LearnedLaplacian
from fiedler.core.backend import to_numpy

NAMES = ["numpy", *(name for name in ("torch", "cupy") if importlib.util.find_spec(name))]


def make(n, d, dtype):
    """Ten overlapping clusters, and the labels of one row in a hundred."""
    rng = np.random.RandomState(0)
    y = rng.randint(10, size=n)
    X = 1.5 * rng.normal(size=(10, d))[y] + rng.normal(size=(n, d))
    return X.astype(dtype), y, np.where(rng.uniform(size=n) < 0.01, y, -1)


def timed(name, X, work):
    own, synchronize = BACKENDS[name](X)
    work(own[:500])  # start the libraries
    synchronize()
    begun = time.perf_counter()
    found = work(own)
    synchronize()
    return found, time.perf_counter() - begun


def learning(some):
    options = {"optimizer": "doubling", "pair_weight": "balanced", "graph": "full", "max_iter": 20, "random_state": 0}
    return lambda X: LearnedLaplacian(**options).fit(X, some[: X.shape[0]])


def spreading(some):
    return lambda X: LLGC(KNNGraph(10)).fit(X, some[: X.shape[0]])


def main():
    warnings.simplefilter("ignore")
    options = arguments(size={"type": int, "default": 200_000})
    table = []
    for dtype in ("float64", "float32"):
        X, _, some = make(4000, 256, dtype)
        rows, classes, few = make(options.size, 10, dtype)
        reference = {}
        for name in NAMES:
            model, seconds = timed(name, X, learning(some))
            spread, spent = timed(name, rows, spreading(few))
            found = {"metric": to_numpy(model.metric_), "shares": to_numpy(spread.label_distributions_)}
            reference = reference or found
            gaps = {
                key: float(np.abs(found[key] - reference[key]).max() / np.abs(reference[key]).max()) for key in found
            }
            table.append(
                {"back end": name, "dtype": dtype, "20 steps, 4,000 x 256, s": seconds,
                 "metric differs by": gaps["metric"],
                 f"LLGC, {options.size:,} rows, s": spent, "shares differ by": gaps["shares"],
                 "error": float((spread.transduction_ != classes)[few < 0].mean())}
            )  # fmt: skip
            print(table[-1], flush=True)
    print(markdown(table))


if __name__ == "__main__":
    main()
