"""Measure ManifoldClustering on a GPU: a curved mixture in 50 dimensions, ten clusters; and on the CPU.

    python benchmarks/bench_gpu_manifold.py [--sizes 20000 200000] [--effort fast]

"graph_s" is the time for the nine nearest neighbours of all rows, "recall" that of a sample. A fit of (up to) 120,000
rows on the device, which compiles CuPy's kernels, comes first. Needs a CUDA device; back ends that are not installed
are skipped.
"""

from __future__ import annotations

import warnings

import numpy as np
from bench_gpu import BACKENDS, timed
from bench_gpu_cuts import DEVICES
from measure import markdown_table, parse_arguments

from fiedler import ManifoldClustering
from fiedler.core.arrays import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.graph.neighbors import k_nearest
from fiedler.metrics import adjusted_rand_index, clustering_accuracy

WARM_UP_ROWS = 120_000


def measure(name, X, y, effort, reference=None):
    """Time the neighbours and the fit with one back end; return the labels and a row of the table."""
    X_device, synchronize = BACKENDS[name](X)
    fit = lambda rows: ManifoldClustering(10, effort=effort, random_state=0).fit(rows)  # noqa: E731
    if name != "numpy":
        fit(X_device[:WARM_UP_ROWS])
    edges, graph_s = timed(lambda: k_nearest(X_device, 9), synchronize)
    model, fit_s = timed(lambda: fit(X_device), synchronize)
    labels = to_numpy(model.labels_)
    ari = None if reference is None else adjusted_rand_index(labels, reference)
    row = {
        "rows": len(X),
        "back end": name,
        "effort": effort,
        "graph_s": graph_s,
        "recall": edges.recall,
    }
    return labels, row | {"fit_s": fit_s, "AC": clustering_accuracy(y, labels), "ARI with the CPU": ari}


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(
        sizes={"type": int, "nargs": "+", "default": [20_000, 200_000]}, effort={"default": "default"}
    )
    table = []
    for size in options.sizes:
        X, y = tanh_manifold(size, dtype=np.float32, random_state=0)
        reference = None
        for name in ("numpy", *DEVICES):
            labels, row = measure(name, X, y, options.effort, reference)
            reference = labels if reference is None else reference
            table.append(row)
            print(row, flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
