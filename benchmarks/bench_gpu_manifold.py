"""ManifoldClustering on a device: a bent mixture in 50 dimensions, ten clusters; and agreement with the CPU.

    python benchmarks/bench_gpu_manifold.py [--sizes 20000 200000]

Needs a CUDA device; a back end that is missing is left out.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from bench_gpu import BACKENDS
from bench_gpu_cuts import DEVICES
from measure import arguments, markdown

from fiedler import ManifoldClustering
from fiedler.core.backend import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.metrics import adjusted_rand_index, clustering_accuracy


def fit(name, X):
    own, synchronize = BACKENDS[name](X)
    synchronize()
    start = time.perf_counter()
    model = ManifoldClustering(10, random_state=0).fit(own)
    synchronize()
    return model, time.perf_counter() - start


def main():
    warnings.simplefilter("ignore")
    options = arguments(sizes={"type": int, "nargs": "+", "default": [20_000, 200_000]})
    table = []
    for size in options.sizes:
        X, y = tanh_manifold(size, dtype=np.float32, random_state=0)
        reference, seconds = fit("numpy", X)
        table.append(
            {"rows": size, "back end": "numpy", "fit_s": seconds, "AC": clustering_accuracy(y, reference.labels_)}
        )
        print(table[-1], flush=True)
        for name in DEVICES:
            model, seconds = fit(name, X)
            same = adjusted_rand_index(to_numpy(model.labels_), reference.labels_)
            right = clustering_accuracy(y, to_numpy(model.labels_))
            table.append({"rows": size, "back end": name, "fit_s": seconds, "AC": right, "ARI with the CPU": same})
            print(table[-1], flush=True)
    print(markdown(table))


if __name__ == "__main__":
    main()
