"""Compare LearnedLaplacian and LLGC on a GPU with the CPU: times, and how far the results differ.

    python benchmarks/bench_gpu_supervision.py [--size 200000]

Needs a CUDA device; back ends that are not installed are skipped.
"""

from __future__ import annotations

import warnings

import numpy as np
from bench_gpu import BACKENDS, timed
from bench_gpu_cuts import DEVICES
from measure import markdown_table, parse_arguments

from fiedler import LLGC, KNNGraph, LearnedLaplacian
from fiedler.core.arrays import to_numpy


def make_data(n, d, dtype):
    """Draw ten overlapping clusters; return rows, classes, and the classes of 1 % of the rows (-1 elsewhere)."""
    rng = np.random.RandomState(0)
    y = rng.randint(10, size=n)
    X = 1.5 * rng.normal(size=(10, d))[y] + rng.normal(size=(n, d))
    return X.astype(dtype), y, np.where(rng.uniform(size=n) < 0.01, y, -1)


def timed_fit(name, X, fit):
    """Fit on one back end after a warm-up on 500 rows; return the model and the seconds."""
    X_device, synchronize = BACKENDS[name](X)
    fit(X_device[:500])
    return timed(lambda: fit(X_device), synchronize)


def fit_learned_laplacian(labels):
    options = {"optimizer": "doubling", "pair_weight": "balanced", "graph": "full", "max_iter": 20, "random_state": 0}
    return lambda X: LearnedLaplacian(**options).fit(X, labels[: X.shape[0]])


def fit_llgc(labels):
    return lambda X: LLGC(KNNGraph(10)).fit(X, labels[: X.shape[0]])


def relative_difference(value, reference):
    return float(np.abs(value - reference).max() / np.abs(reference).max())


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(size={"type": int, "default": 200_000})
    table = []
    for dtype in ("float64", "float32"):
        X, _, labels = make_data(4000, 256, dtype)
        X_llgc, y_llgc, labels_llgc = make_data(options.size, 10, dtype)
        reference = None
        for name in ("numpy", *DEVICES):
            learned, learned_s = timed_fit(name, X, fit_learned_laplacian(labels))
            llgc, llgc_s = timed_fit(name, X_llgc, fit_llgc(labels_llgc))
            metric, distributions = to_numpy(learned.metric_), to_numpy(llgc.label_distributions_)
            reference = reference or (metric, distributions)
            table.append(
                {
                    "back end": name,
                    "dtype": dtype,
                    "20 steps, 4,000 x 256, s": learned_s,
                    "metric differs by": relative_difference(metric, reference[0]),
                    f"LLGC, {options.size:,} rows, s": llgc_s,
                    "label distributions differ by": relative_difference(distributions, reference[1]),
                    "error": float((llgc.transduction_ != y_llgc)[labels_llgc < 0].mean()),
                }
            )
            print(table[-1], flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
