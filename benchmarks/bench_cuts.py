"""Compare NLE with scikit-learn's SpectralClustering; measure how time grows with the number of nodes.

Both cluster the same graph of ten neighbours into ten clusters. The points are uniform in a box, so that no cut is
obvious.

python benchmarks/bench_cuts.py                       # 100,000 nodes; scikit-learn's default takes minutes
python benchmarks/bench_cuts.py --sizes 10000 100000 1000000   # 100 updates from a random start
python benchmarks/bench_cuts.py --landmarks           # complete and landmark graphs of ten overlapping clusters
python benchmarks/bench_cuts.py --clusters            # one update with 5 to 160 clusters
"""

from __future__ import annotations

import functools
import multiprocessing
import time
import warnings

import numpy as np
import sklearn.cluster
import sklearn.datasets
from measure import OUT, compare_methods, markdown_table, measure_case, parse_arguments

from fiedler import NLE, AffinityGraph, FullGraph, KNNGraph, LandmarkGraph
from fiedler.embedding.nle import Update, unit_columns
from fiedler.graph.cuts import cut_problem
from fiedler.metrics import adjusted_rand_index, ratio_cut

K = 10


def load_graph(size):
    """Return a connected graph of ten neighbours with binary float64 weights; build it on the first call."""
    path = OUT / f"uniform_{size}.safetensors"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        X = np.random.RandomState(0).uniform(size=(size, 3)) * [1.0, 0.8, 0.6]
        graph = KNNGraph(10, connect="mst").build(X)
        AffinityGraph(graph.weights.astype(np.float64)).save(path)
    return AffinityGraph.load(path)


def fit_nle(graph, **options):
    return NLE(K, n_init=1, tol=0.0, random_state=0, **options).fit(graph).labels_


def fit_sklearn(graph):
    model = sklearn.cluster.SpectralClustering(K, affinity="precomputed", random_state=0)
    return model.fit(graph.weights).labels_


def evaluate_cut(graph, labels):
    return {"Ratio Cut": ratio_cut(graph, labels), "edges": graph.n_edges}


def run_sparse(size, method):
    warnings.simplefilter("ignore")
    measure_case(functools.partial(load_graph, size), method, evaluate_cut)


def make_blobs(size):
    return sklearn.datasets.make_blobs(size, n_features=10, centers=K, cluster_std=3.5, random_state=0)


def fit_nle_on_rows(recipe, data):
    return NLE(K, recipe, cut="ncut", n_init=2, random_state=0).fit(data[0]).labels_


def evaluate_labels(data, labels):
    return {"ARI": adjusted_rand_index(data[1], labels)}


def run_complete(size, recipe):
    warnings.simplefilter("ignore")
    measure_case(functools.partial(make_blobs, size), functools.partial(fit_nle_on_rows, recipe), evaluate_labels)


def landmark_cases():
    recipes = {f"{n} landmarks": LandmarkGraph(n, bandwidth=8.0) for n in (200, 500)}
    exact = {"complete, 4,000 rows": (functools.partial(run_complete, 4000, FullGraph(bandwidth=8.0)), 1)}
    return exact | {
        f"{name}, {size:,} rows": (functools.partial(run_complete, size, recipe), 1)
        for size in (4000, 100_000)
        for name, recipe in recipes.items()
    }


def sparse_cases(sizes):
    if len(sizes) > 1:
        updates = functools.partial(fit_nle, init="random", max_iter=100, polish=False)
        return {f"100 updates, {size:,} nodes": (functools.partial(run_sparse, size, updates), 1) for size in sizes}
    (size,) = sizes
    return {
        "scikit-learn SpectralClustering": (functools.partial(run_sparse, size, fit_sklearn), 1),
        "NLE": (functools.partial(run_sparse, size, fit_nle), 1),
        "NLE without polish": (functools.partial(run_sparse, size, functools.partial(fit_nle, polish=False)), 1),
    }


def measure_clusters(n_nodes=20_000, n_repeats=5):
    """Return the CPU time of one update, in milliseconds, by graph and number of clusters."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(n_nodes, 3))
    graphs = {"10 neighbours": KNNGraph(10, connect="mst").build(X), "200 landmarks": LandmarkGraph(200).build(X)}
    table = []
    for name, graph in graphs.items():
        update, row = Update(cut_problem(graph, "ratio"), rng), {"clusters": f"{name}, ms"}
        for k in (5, 10, 20, 40, 80, 160):
            Q = unit_columns(rng.uniform(size=(n_nodes, k)))
            row[str(k)] = 1000 * min(cpu_seconds(functools.partial(update.step, Q)) for _ in range(n_repeats))
        table.append(row)
    return table


def cpu_seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    options = parse_arguments(
        sizes={"nargs": "+", "type": int, "default": [100_000]},
        landmarks={"action": "store_true"},
        clusters={"action": "store_true"},
    )
    if options.clusters:
        print(markdown_table(measure_clusters()))
        return
    cases = landmark_cases() if options.landmarks else sparse_cases(options.sizes)
    if options.case:
        cases[options.case][0]()
    elif options.landmarks:
        compare_methods(__file__, "NLE on complete graphs", cases, ["--landmarks"])
    else:
        for size in options.sizes:  # in a separate process: the cases would inherit the peak memory of this one
            builder = multiprocessing.get_context("spawn").Process(target=load_graph, args=(size,))
            builder.start()
            builder.join()
        extra = ["--sizes", *(str(size) for size in options.sizes)]
        compare_methods(__file__, f"NLE, {K} clusters, ten neighbours", cases, extra)


if __name__ == "__main__":
    main()
