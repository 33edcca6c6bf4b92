"""The kNN graph of 70,000 x 50 points, beside scikit-learn's; and of sparse text rows where FIEDLER_DATA has them.

python benchmarks/bench_graph.py
"""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse as sp
from measure import arguments, contest, measured
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from fiedler import KNNGraph
from fiedler.datasets import load, tanh_manifold

N_NEIGHBORS, SAMPLE = 15, 1000


def manifold():
    return tanh_manifold(70_000, random_state=0, dtype=np.float32)[0]


def text():
    return load("tdt2", subset="top30", normalize="unit").X


def peer_graph(X):
    """What a scikit-learn user writes: the neighbours' graph, made symmetric."""
    A = kneighbors_graph(X, N_NEIGHBORS, include_self=False)
    return A.maximum(A.T)


def recall(X, weights):
    """The share of the exact neighbours of a sample of rows that are edges."""
    rows = np.random.RandomState(1).permutation(X.shape[0])[:SAMPLE]
    found = (
        NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, algorithm="brute")
        .fit(X)
        .kneighbors(X[rows], return_distance=False)
    )
    exact = [(i, j) for i, row in zip(rows, found) for j in row if j != i][: SAMPLE * N_NEIGHBORS]
    i, j = np.array(exact).T
    return float(np.mean(np.asarray(sp.csr_array(weights)[i, j]) > 0))


def judge(X, graph):
    weights = getattr(graph, "weights", graph)
    return {"recall": recall(X, weights), "edges": weights.nnz // 2}


CASES = {
    "scikit-learn exact": (lambda: measured(manifold, peer_graph, judge), 3),
    "fiedler exact": (lambda: measured(manifold, KNNGraph(N_NEIGHBORS, method="exact").build, judge), 3),
    "fiedler approximate (faiss)": (lambda: measured(manifold, KNNGraph(N_NEIGHBORS, method="faiss").build, judge), 3),
}
TEXT = {
    "scikit-learn exact, TDT2": (lambda: measured(text, peer_graph, judge), 3),
    "fiedler exact, TDT2": (lambda: measured(text, KNNGraph(N_NEIGHBORS).build, judge), 3),
}

if __name__ == "__main__":
    options = arguments()
    if options.case:
        (CASES | TEXT)[options.case][0]()
    else:
        cases = CASES | (TEXT if os.environ.get("FIEDLER_DATA") else {})
        contest(__file__, "kNN graph, 15 neighbours: 70,000 x 50 float32, and TDT2 (9,394 x 36,771, sparse)", cases)
