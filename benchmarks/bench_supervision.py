"""LLGC beside scikit-learn's LabelSpreading on 70,000 points; and what a step of the learned Laplacian takes.

python benchmarks/bench_supervision.py                # LLGC, one label in a hundred
python benchmarks/bench_supervision.py --gradients    # 2007 x 256 complete; 5,000 to 40,000 rows sparse
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import scipy.sparse as sp
from measure import arguments, contest, measured
from sklearn.semi_supervised import LabelSpreading

from fiedler import KNNGraph
from fiedler.core.sparse import to_scipy
from fiedler.datasets import tanh_manifold
from fiedler.supervision import LLGC
from fiedler.supervision.learned_laplacian import neighbor_indicators
from fiedler.supervision.objective import METRIC_FAMILIES, DenseWeights, LaplacianObjective, SparseWeights, coefficients

N_NEIGHBORS, STEPS = 9, 10


# --------------------------------------------------------------------------------------------------------------- LLGC


def labelled():
    """Rows, classes, and the classes of one row in a hundred."""
    X, y = tanh_manifold(70_000, random_state=0, dtype=np.float32)
    some = np.where(np.random.RandomState(0).uniform(size=len(y)) < 0.01, y, -1)
    return X, y, some


def ours(given, graph):
    X, _, some = given
    return LLGC(graph).fit(X, some).transduction_


def peer(given, alpha, max_iter):
    X, _, some = given
    model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, alpha=alpha, max_iter=max_iter)
    return model.fit(X, some).transduction_


def errors(given, found):
    _, y, some = given
    return {"error": float((found != y)[some < 0].mean())}


def spreading(work):
    warnings.simplefilter("ignore")
    measured(labelled, work, errors)


LABELS = {
    "scikit-learn LabelSpreading, its defaults": functools.partial(peer, alpha=0.2, max_iter=30),
    "scikit-learn LabelSpreading, alpha=0.99": functools.partial(peer, alpha=0.99, max_iter=1000),
    "LLGC, its default graph": functools.partial(ours, graph=None),
    "LLGC, binary weights": functools.partial(ours, graph=KNNGraph(N_NEIGHBORS)),
}


# ---------------------------------------------------------------------------------------------------------- gradients


def problem(n, d, complete):
    """Twenty neighbours and a thousand pairs; a sparse problem has a hundred neighbours a row."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, d)) / d**0.5
    pairs = rng.randint(n // 2, size=(1000, 1)) + np.array([[0, n // 2]])
    C = coefficients(n, pairs[::2], pairs[1::2], (1.0, 1.0), neighbor_indicators(X, 20), 0.05)
    if complete:
        return LaplacianObjective(X, DenseWeights(C, X), METRIC_FAMILIES["full"])
    edges = to_scipy(KNNGraph(100).build(X).weights)
    return LaplacianObjective(X, SparseWeights(C, sp.csr_array(edges), X), METRIC_FAMILIES["full"])


def steps(given):
    A = np.eye(given.X.shape[1])
    for _ in range(STEPS):
        given.value_and_gradient(A)


def gradient(n, d, complete):
    def size(given, _):
        layout = given.layout
        return {"weights": n * n if complete else int(layout._edges.values.shape[0]), "steps": STEPS}

    measured(functools.partial(problem, n, d, complete), steps, size)


GRADIENTS = {
    "2,007 x 256, complete": (2007, 256, True),
    **{f"{n:,} x 16, sparse": (n, 16, False) for n in (5000, 10_000, 20_000, 40_000)},
}


def cases(gradients):
    if gradients:
        return {name: (functools.partial(gradient, *size), 1) for name, size in GRADIENTS.items()}
    return {name: (functools.partial(spreading, work), 1) for name, work in LABELS.items()}


if __name__ == "__main__":
    options = arguments(gradients={"action": "store_true"})
    if options.case:
        cases(options.gradients)[options.case][0]()
    elif options.gradients:
        contest(__file__, f"{STEPS} gradients of the learned Laplacian", cases(gradients=True), ["--gradients"])
    else:
        contest(__file__, "Labels spread over 70,000 points", cases(gradients=False))
