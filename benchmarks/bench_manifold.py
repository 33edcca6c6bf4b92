"""Compare ManifoldClustering with UMAP + GMM; measure how time grows with the number of rows.

    FIEDLER_DATA=... python benchmarks/bench_manifold.py            # USPS; UMAP with and without compilation time
    python benchmarks/bench_manifold.py --sizes 10000 50000 200000  # a curved mixture in 50 dimensions, 10 clusters
    python benchmarks/bench_manifold.py --wide                      # 70,000 rows of 784 features

Needs umap-learn for the comparison.
"""

from __future__ import annotations

import functools
import warnings

from measure import compare_methods, measure_case, parse_arguments
from quality_manifold import load_rows, umap_gmm

from fiedler import ManifoldClustering
from fiedler.core.backend import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

K = 10


def fit_fiedler(data):
    X, _ = data
    return to_numpy(ManifoldClustering(K, random_state=0, n_jobs=2).fit(X).labels_)


def fit_umap_gmm(data):
    X, _ = data
    return umap_gmm(X, K, 0)[0]


def load_and_compile(name):
    """Load the rows and run UMAP on a few of them, because it compiles on its first call."""
    X, y = load_rows(name)
    umap_gmm(X[:500], K, 0)
    return X, y


def evaluate(data, labels):
    _, y = data
    return {"AC": clustering_accuracy(y, labels), "NMI": normalized_mutual_information(y, labels)}


def make_manifold(size, ambient=50):
    return tanh_manifold(size, ambient=ambient, n_clusters=K, dtype="float32", random_state=0)


def run(prepare, method):
    warnings.simplefilter("ignore")
    measure_case(prepare, method, evaluate)


def make_cases(options):
    if options.sizes:
        return {
            f"{size} rows": (functools.partial(run, functools.partial(make_manifold, size), fit_fiedler), 1)
            for size in options.sizes
        }
    if options.wide:
        return {"70,000 x 784": (functools.partial(run, functools.partial(make_manifold, 70_000, 784), fit_fiedler), 1)}
    usps, usps_compiled = functools.partial(load_rows, "usps"), functools.partial(load_and_compile, "usps")
    return {
        "fiedler": (functools.partial(run, usps, fit_fiedler), 3),
        "UMAP + GMM": (functools.partial(run, usps, fit_umap_gmm), 1),
        "UMAP + GMM, already compiled": (functools.partial(run, usps_compiled, fit_umap_gmm), 3),
    }


def main():
    options = parse_arguments(sizes={"type": int, "nargs": "+", "default": []}, wide={"action": "store_true"})
    cases = make_cases(options)
    if options.case:
        cases[options.case][0]()
        return
    extra = ["--sizes", *map(str, options.sizes)] if options.sizes else ["--wide"] if options.wide else []
    compare_methods(__file__, "ManifoldClustering", cases, extra)


if __name__ == "__main__":
    main()
