"""Compare ManifoldClustering with UMAP + GMM and with EVoC; measure how time grows with the number of rows.

    FIEDLER_DATA=... python benchmarks/bench_manifold.py                     # USPS; UMAP with and without compilation
    python benchmarks/bench_manifold.py --sizes 10000 50000 200000 1000000   # a curved mixture, 20 clusters
    python benchmarks/bench_manifold.py --sizes 200000 --peers               # the same, and EVoC
    python benchmarks/bench_manifold.py --wide                               # 70,000 rows of 784 features
    python benchmarks/bench_manifold.py --auto                               # 5,000 x 10 with K given and 'auto'

With --sizes, the neighbour graphs of each fit are measured alone as well. The peers are installed by
``pip install fiedler[peers]``; EVoC, which compiles on its first call, has fitted other rows before it is measured. Its
layer whose number of clusters is closest to 20 is evaluated; noise counts as a cluster.
"""

from __future__ import annotations

import functools
import warnings

from measure import compare_methods, measure_case, parse_arguments
from quality_manifold import load_rows, umap_gmm

from fiedler import ManifoldClustering
from fiedler.core.arrays import to_numpy
from fiedler.datasets import tanh_manifold
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.manifold.estimator import GRAPH_SIZES
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

K = 10  # classes of USPS
MIXTURE_CLUSTERS = 20


def fit_fiedler(data, n_clusters=K):
    X, _ = data
    return to_numpy(ManifoldClustering(n_clusters, random_state=0).fit(X).labels_)


def fit_mixture(data):
    return fit_fiedler(data, MIXTURE_CLUSTERS)


def build_graphs(data):
    nested_graphs(self_tuned(GRAPH_SIZES[-1], connect="mst"), data[0], GRAPH_SIZES)


def fit_evoc(data):
    from evoc import EVoC

    model = EVoC(random_state=0)
    model.fit_predict(data[0])
    return min(model.cluster_layers_, key=lambda labels: abs(len(set(labels)) - 1 - MIXTURE_CLUSTERS))


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


def make_manifold(size, ambient=50, n_clusters=MIXTURE_CLUSTERS):
    return tanh_manifold(size, ambient=ambient, n_clusters=n_clusters, dtype="float32", random_state=0)


def make_and_compile_evoc(size):
    """Make the rows and run EVoC on others, because it compiles on its first call."""
    fit_evoc(make_manifold(5000))
    return make_manifold(size)


def run(prepare, method):
    warnings.simplefilter("ignore")
    measure_case(prepare, method, evaluate)


def size_cases(size, peers):
    """Return the cases of one number of rows: the fit, its graphs alone, and EVoC."""
    rows = functools.partial(make_manifold, size)
    cases = {
        f"fiedler, {size} rows": (functools.partial(run, rows, fit_mixture), 1),
        f"its graphs, {size} rows": (functools.partial(measure_case, rows, build_graphs, lambda *_: {}), 1),
    }
    if peers:
        compiled = functools.partial(make_and_compile_evoc, size)
        cases[f"EVoC, {size} rows"] = (functools.partial(run, compiled, fit_evoc), 1)
    return cases


def make_cases(options):
    if options.sizes:
        return {name: case for size in options.sizes for name, case in size_cases(size, options.peers).items()}
    if options.wide:
        rows = functools.partial(make_manifold, 70_000, 784, K)
        return {"70,000 x 784": (functools.partial(run, rows, fit_fiedler), 1)}
    if options.auto:
        rows = functools.partial(make_manifold, 5000, 10, 8)
        fits = {"K given": 8, "K chosen": "auto"}
        return {
            name: (functools.partial(run, rows, functools.partial(fit_fiedler, n_clusters=k)), 3)
            for name, k in fits.items()
        }
    usps, usps_compiled = functools.partial(load_rows, "usps"), functools.partial(load_and_compile, "usps")
    return {
        "fiedler": (functools.partial(run, usps, fit_fiedler), 3),
        "UMAP + GMM": (functools.partial(run, usps, fit_umap_gmm), 1),
        "UMAP + GMM, already compiled": (functools.partial(run, usps_compiled, fit_umap_gmm), 3),
    }


def main():
    flags = {"peers", "wide", "auto"}
    options = parse_arguments(
        sizes={"type": int, "nargs": "+", "default": []}, **{flag: {"action": "store_true"} for flag in flags}
    )
    cases = make_cases(options)
    if options.case:
        cases[options.case][0]()
        return
    extra = [f"--{flag}" for flag in sorted(flags) if getattr(options, flag)]
    extra += ["--sizes", *map(str, options.sizes)] if options.sizes else []
    compare_methods(__file__, "ManifoldClustering", cases, extra)


if __name__ == "__main__":
    main()
