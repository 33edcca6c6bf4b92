"""NLE beside scikit-learn's SpectralClustering on one graph, ten neighbours and ten clusters; and how it grows.

Points spread evenly over a box, so that no cut is obvious.

python benchmarks/bench_cuts.py                       # 100,000 nodes; scikit-learn's default takes minutes
python benchmarks/bench_cuts.py --sizes 10000 100000 1000000   # 100 updates from a random start
python benchmarks/bench_cuts.py --landmarks           # the complete graph, and its landmarks: ten overlapping clusters
"""

from __future__ import annotations

import functools
import multiprocessing
import warnings

import numpy as np
import sklearn.cluster
import sklearn.datasets
from measure import OUT, arguments, contest, measured

from fiedler import NLE, AffinityGraph, FullGraph, KNNGraph, LandmarkGraph
from fiedler.metrics import adjusted_rand_index, ratio_cut

K = 10


def graph(size):
    """Ten neighbours, binary weights, connected, float64; built once and kept."""
    path = OUT / f"even_{size}.npz"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        X = np.random.RandomState(0).uniform(size=(size, 3)) * [1.0, 0.8, 0.6]
        built = KNNGraph(10, connect="mst").build(X)
        AffinityGraph(built.weights.astype(np.float64)).save(path)
    return AffinityGraph.load(path)


def ours(graph, **options):
    return NLE(K, n_init=1, tol=0.0, random_state=0, **options).fit(graph).labels_


def peer(graph):
    model = sklearn.cluster.SpectralClustering(K, affinity="precomputed", random_state=0)
    return model.fit(graph.weights).labels_


def judge(graph, labels):
    return {"Ratio Cut": ratio_cut(graph, labels), "edges": graph.n_edges}


def case(size, work):
    warnings.simplefilter("ignore")
    measured(functools.partial(graph, size), work, judge)


def blobs(size):
    return sklearn.datasets.make_blobs(size, n_features=10, centers=K, cluster_std=3.5, random_state=0)


def complete(recipe, data):
    return NLE(K, recipe, cut="ncut", n_init=2, random_state=0).fit(data[0]).labels_


def complete_case(size, recipe):
    warnings.simplefilter("ignore")
    judged = lambda data, labels: {"ARI": adjusted_rand_index(data[1], labels)}  # noqa: E731
    measured(functools.partial(blobs, size), functools.partial(complete, recipe), judged)


def cases(sizes, landmarks=False):
    if landmarks:
        named = {"200 landmarks": LandmarkGraph(200, bandwidth=8.0), "500 landmarks": LandmarkGraph(500, bandwidth=8.0)}
        exact = {"complete, 4,000 rows": (functools.partial(complete_case, 4000, FullGraph(bandwidth=8.0)), 1)}
        return exact | {
            f"{name}, {size:,} rows": (functools.partial(complete_case, size, recipe), 1)
            for size in (4000, 100_000) for name, recipe in named.items()
        }  # fmt: skip
    if len(sizes) > 1:
        growth = functools.partial(ours, init="random", max_iter=100, polish=False)
        return {f"100 updates, {size:,} nodes": (functools.partial(case, size, growth), 1) for size in sizes}
    (size,) = sizes
    return {
        "scikit-learn SpectralClustering": (functools.partial(case, size, peer), 1),
        "NLE": (functools.partial(case, size, ours), 1),
        "NLE without polish": (functools.partial(case, size, functools.partial(ours, polish=False)), 1),
    }


if __name__ == "__main__":
    options = arguments(sizes={"nargs": "+", "type": int, "default": [100_000]}, landmarks={"action": "store_true"})
    if options.case:
        cases(options.sizes, options.landmarks)[options.case][0]()
    elif options.landmarks:
        contest(__file__, "NLE on complete graphs", cases((), landmarks=True), ["--landmarks"])
    else:
        for size in options.sizes:  # in a process of its own, whose memory is not counted for the cases
            builder = multiprocessing.get_context("spawn").Process(target=graph, args=(size,))
            builder.start()
            builder.join()
        extra = ["--sizes", *(str(size) for size in options.sizes)]
        contest(__file__, f"NLE, {K} clusters, ten neighbours", cases(options.sizes), extra)
