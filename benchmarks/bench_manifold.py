"""ManifoldClustering beside UMAP + GMM on the same rows, each in a process of its own; and how it grows.

    FIEDLER_DATA=... python benchmarks/bench_manifold.py            # USPS; UMAP twice, since it compiles itself first
    python benchmarks/bench_manifold.py --sizes 10000 50000 200000  # a bent mixture in 50 dimensions, 10 clusters
    python benchmarks/bench_manifold.py --wide                      # 70,000 rows of 784 numbers

Needs umap-learn for the peer and, to stay below the square of the rows beyond 50,000, faiss (fiedler[ann]).
"""

from __future__ import annotations

import functools
import warnings

from measure import arguments, contest, measured
from quality_manifold import rows, umap_gmm

from fiedler import ManifoldClustering
from fiedler.core.backend import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

K = 10


def ours(data):
    return to_numpy(ManifoldClustering(K, random_state=0, n_jobs=2).fit(data[0]).labels_)


def peer(data):
    return umap_gmm(data[0], K, 0)[0]


def warmed(name):
    """UMAP compiles itself on its first call, so one on a few rows comes before."""
    data = rows(name)
    umap_gmm(data[0][:500], K, 0)
    return data


def judge(data, labels):
    return {"AC": clustering_accuracy(data[1], labels), "NMI": normalized_mutual_information(data[1], labels)}


def bent(size, ambient=50):
    return tanh_manifold(size, ambient=ambient, n_clusters=K, dtype="float32", random_state=0)


def case(prepare, work):
    warnings.simplefilter("ignore")
    measured(prepare, work, judge)


def cases(options):
    if options.sizes:
        return {
            f"{size} rows": (functools.partial(case, functools.partial(bent, size), ours), 1) for size in options.sizes
        }
    if options.wide:
        return {"70,000 x 784": (functools.partial(case, functools.partial(bent, 70_000, 784), ours), 1)}
    usps = functools.partial(rows, "usps")
    return {
        "fiedler": (functools.partial(case, usps, ours), 3),
        "UMAP + GMM": (functools.partial(case, usps, peer), 1),
        "UMAP + GMM, compiled before": (functools.partial(case, functools.partial(warmed, "usps"), peer), 3),
    }


def main():
    options = arguments(sizes={"type": int, "nargs": "+", "default": []}, wide={"action": "store_true"})
    table = cases(options)
    if options.case:
        table[options.case][0]()
        return
    extra = ["--sizes", *map(str, options.sizes)] if options.sizes else ["--wide"] if options.wide else []
    contest(__file__, "ManifoldClustering", table, extra)


if __name__ == "__main__":
    main()
