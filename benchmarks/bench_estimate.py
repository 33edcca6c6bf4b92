"""Compare `fiedler.estimate` with measured fits: CPU seconds, and the peak memory besides the rows.

    OMP_NUM_THREADS=1 python benchmarks/bench_estimate.py     # two minutes

The time should be right within a factor of about three, and the memory should never be exceeded.
"""

from __future__ import annotations

import gc
import time

from measure import machine_info, markdown_table

from fiedler import ManifoldClustering, estimate
from fiedler.core.parallel import peak_memory_mb, reset_peak_memory
from fiedler.datasets import tanh_manifold

CASES = [  # rows, columns, clusters, whether their number is chosen, type
    (300, 4, 3, True, "float64"),
    (1_000, 5, 4, True, "float64"),
    (2_000, 10, 8, True, "float32"),
    (1_500, 64, 10, False, "float64"),
    (3_000, 30, 4, False, "float64"),
    (10_000, 10, 5, False, "float64"),
    (6_000, 6, 60, False, "float64"),
    (20_000, 50, 20, False, "float32"),
    (100_000, 50, 20, False, "float32"),
]


def main():
    ManifoldClustering(2, random_state=0).fit(tanh_manifold(100, random_state=0)[0])  # loads libraries
    rows = []
    for n, d, k, is_auto, dtype in CASES:
        X, _ = tanh_manifold(n, ambient=d, n_clusters=k, dtype=dtype, random_state=0)
        n_clusters = "auto" if is_auto else k
        gc.collect()
        reset_peak_memory()
        before, start = peak_memory_mb(), time.process_time()
        ManifoldClustering(n_clusters, random_state=0).fit(X)
        seconds, megabytes = time.process_time() - start, (peak_memory_mb() - before) * 2**20 / 1e6
        expected = estimate(n, d, n_clusters, dtype=dtype)
        rows.append(
            {
                "rows": f"{n} x {d}",
                "K": n_clusters,
                "CPU s": seconds,
                "expected": expected.cpu_seconds,
                "ratio": expected.cpu_seconds / seconds,
                "MB": megabytes,
                "at most MB": expected.extra_bytes / 1e6,
            }
        )
    print(f"{machine_info()}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
