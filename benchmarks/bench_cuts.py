"""NLE beside scikit-learn's SpectralClustering on one graph, ten neighbours and ten clusters; and how it grows.

Points spread evenly over a box, so that no cut is obvious.

python benchmarks/bench_cuts.py                       # 100,000 nodes; scikit-learn's default takes minutes
python benchmarks/bench_cuts.py --sizes 10000 100000 1000000   # 100 updates from a random start
"""

from __future__ import annotations

import functools
import multiprocessing
import warnings

import numpy as np
import sklearn.cluster
from measure import OUT, arguments, contest, measured

from fiedler import NLE, AffinityGraph, KNNGraph
from fiedler.metrics import ratio_cut

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


def cases(sizes):
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
    options = arguments(sizes={"nargs": "+", "type": int, "default": [100_000]})
    if options.case:
        cases(options.sizes)[options.case][0]()
    else:
        for size in options.sizes:  # in a process of its own, whose memory is not counted for the cases
            builder = multiprocessing.get_context("spawn").Process(target=graph, args=(size,))
            builder.start()
            builder.join()
        extra = ["--sizes", *(str(size) for size in options.sizes)]
        contest(__file__, f"NLE, {K} clusters, ten neighbours", cases(options.sizes), extra)
