"""Compare the kNN graph of 70,000 x 50 points with scikit-learn's; also of sparse text rows if FIEDLER_DATA is set.

Then the joining of 12 well-separated blobs, whose time must grow at most 10-fold from 10,000 to 80,000 rows.

python benchmarks/bench_graph.py
"""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse as sp
from measure import compare_methods, measure_case, parse_arguments
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from fiedler import KNNGraph
from fiedler.datasets import load, tanh_manifold

N_NEIGHBORS, SAMPLE = 15, 1000


def make_manifold():
    return tanh_manifold(70_000, random_state=0, dtype=np.float32)[0]


def load_text():
    return load("tdt2", subset="top30", normalize="unit").X


def build_sklearn(X):
    """Build the symmetric neighbour graph with scikit-learn."""
    A = kneighbors_graph(X, N_NEIGHBORS, include_self=False)
    return A.maximum(A.T)


def recall(X, weights):
    """Return the share of exact neighbours that are edges, for a sample of rows."""
    rows = np.random.RandomState(1).permutation(X.shape[0])[:SAMPLE]
    search = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, algorithm="brute").fit(X)
    neighbors = search.kneighbors(X[rows], return_distance=False)
    edges = [(i, j) for i, row in zip(rows, neighbors) for j in row if j != i][: SAMPLE * N_NEIGHBORS]
    i, j = np.array(edges).T
    return float(np.mean(np.asarray(sp.csr_array(weights)[i, j]) > 0))


def evaluate(X, graph):
    weights = getattr(graph, "weights", graph)
    return {"recall": recall(X, weights), "edges": weights.nnz // 2}


def make_blobs(n_rows):
    """Return blobs of 50 features that are 12 components of their graph, and this graph."""
    rng = np.random.RandomState(0)
    centers = 4 * rng.normal(size=(12, 50))
    X = (centers[rng.randint(12, size=n_rows)] + rng.normal(size=(n_rows, 50))).astype(np.float32)
    graph = KNNGraph(N_NEIGHBORS).build(X)
    assert graph.components()[0] == 12
    return X, graph


def make_joining(n_rows):
    return (
        lambda: measure_case(
            lambda: make_blobs(n_rows),
            lambda data: data[1].connect(data[0]),
            lambda data, graph: {"edges": graph.n_edges},
        )
    ), 1


def make_case(prepare, build):
    return (lambda: measure_case(prepare, build, evaluate)), 3


DENSE = {
    "scikit-learn exact": make_case(make_manifold, build_sklearn),
    "fiedler exact": make_case(make_manifold, KNNGraph(N_NEIGHBORS, method="exact").build),
    "fiedler approximate (cells)": make_case(make_manifold, KNNGraph(N_NEIGHBORS, method="cells").build),
    "fiedler approximate (faiss)": make_case(make_manifold, KNNGraph(N_NEIGHBORS, method="faiss").build),
}
JOINING = {f"joining 12 blobs, {n_rows} rows": make_joining(n_rows) for n_rows in (10_000, 20_000, 40_000, 80_000)}
TEXT = {
    "scikit-learn exact, TDT2": make_case(load_text, build_sklearn),
    "fiedler exact, TDT2": make_case(load_text, KNNGraph(N_NEIGHBORS).build),
}


def main():
    options = parse_arguments()
    if options.case:
        (DENSE | JOINING | TEXT)[options.case][0]()
    else:
        cases = DENSE | JOINING | (TEXT if os.environ.get("FIEDLER_DATA") else {})
        title = "kNN graph, 15 neighbours: 70,000 x 50 float32, and TDT2 (9,394 x 36,771, sparse)"
        compare_methods(__file__, title, cases)


if __name__ == "__main__":
    main()
