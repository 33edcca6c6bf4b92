"""Measure ManifoldClustering on a GPU: a curved mixture in 50 dimensions, ten clusters; compare with the CPU.

    python benchmarks/bench_gpu_manifold.py [--sizes 20000 200000]

Needs a CUDA device; back ends that are not installed are skipped.
"""

from __future__ import annotations

import warnings

import numpy as np
from bench_gpu import BACKENDS, timed
from bench_gpu_cuts import DEVICES
from measure import markdown_table, parse_arguments

from fiedler import ManifoldClustering
from fiedler.core.backend import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.metrics import adjusted_rand_index, clustering_accuracy


def timed_fit(name, X):
    X_device, synchronize = BACKENDS[name](X)
    return timed(lambda: ManifoldClustering(10, random_state=0).fit(X_device), synchronize)


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(sizes={"type": int, "nargs": "+", "default": [20_000, 200_000]})
    table = []
    for size in options.sizes:
        X, y = tanh_manifold(size, dtype=np.float32, random_state=0)
        reference, seconds = timed_fit("numpy", X)
        accuracy = clustering_accuracy(y, reference.labels_)
        table.append({"rows": size, "back end": "numpy", "fit_s": seconds, "AC": accuracy})
        print(table[-1], flush=True)
        for name in DEVICES:
            model, seconds = timed_fit(name, X)
            labels = to_numpy(model.labels_)
            accuracy, ari = clustering_accuracy(y, labels), adjusted_rand_index(labels, reference.labels_)
            table.append({"rows": size, "back end": name, "fit_s": seconds, "AC": accuracy, "ARI with the CPU": ari})
            print(table[-1], flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
