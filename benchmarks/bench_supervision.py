"""Compare LLGC with scikit-learn's LabelSpreading; measure the time of gradients of the learned Laplacian.

python benchmarks/bench_supervision.py                # LLGC on 70,000 points, 1 % of them labelled
python benchmarks/bench_supervision.py --gradients    # 2,007 x 256, complete graph; 5,000 to 40,000 rows, sparse graph
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import scipy.sparse as sp
from measure import compare_methods, measure_case, parse_arguments
from sklearn.semi_supervised import LabelSpreading

from fiedler import KNNGraph
from fiedler.core.sparse import to_scipy
from fiedler.datasets import tanh_manifold
from fiedler.supervision import LLGC
from fiedler.supervision.learned_laplacian import neighbor_indicators
from fiedler.supervision.objective import METRIC_FAMILIES, DenseWeights, LaplacianObjective, SparseWeights, coefficients

N_NEIGHBORS, STEPS = 9, 10


# --------------------------------------------------------------------------------------------------------------- LLGC


def make_data():
    """Return rows, classes, and the classes of 1 % of the rows (-1 elsewhere)."""
    X, y = tanh_manifold(70_000, random_state=0, dtype=np.float32)
    partial_labels = np.where(np.random.RandomState(0).uniform(size=len(y)) < 0.01, y, -1)
    return X, y, partial_labels


def fit_llgc(data, graph):
    X, _, partial_labels = data
    return LLGC(graph).fit(X, partial_labels).transduction_


def fit_sklearn(data, alpha, max_iter):
    X, _, partial_labels = data
    model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, alpha=alpha, max_iter=max_iter)
    return model.fit(X, partial_labels).transduction_


def evaluate_labels(data, labels):
    _, y, partial_labels = data
    return {"error": float((labels != y)[partial_labels < 0].mean())}


def run_labels(method):
    warnings.simplefilter("ignore")
    measure_case(make_data, method, evaluate_labels)


METHODS = {
    "scikit-learn LabelSpreading, defaults": functools.partial(fit_sklearn, alpha=0.2, max_iter=30),
    "scikit-learn LabelSpreading, alpha=0.99": functools.partial(fit_sklearn, alpha=0.99, max_iter=1000),
    "LLGC, default graph": functools.partial(fit_llgc, graph=None),
    "LLGC, binary weights": functools.partial(fit_llgc, graph=KNNGraph(N_NEIGHBORS)),
}


# ---------------------------------------------------------------------------------------------------------- gradients


def make_objective(n, d, complete):
    """Return an objective with twenty neighbours and a thousand pairs; a sparse graph has a hundred neighbours."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, d)) / d**0.5
    pairs = rng.randint(n // 2, size=(1000, 1)) + np.array([[0, n // 2]])
    C = coefficients(n, pairs[::2], pairs[1::2], (1.0, 1.0), neighbor_indicators(X, 20), 0.05)
    if complete:
        return LaplacianObjective(X, DenseWeights(C, X), METRIC_FAMILIES["full"])
    edges = to_scipy(KNNGraph(100).build(X).weights)
    return LaplacianObjective(X, SparseWeights(C, sp.csr_array(edges), X), METRIC_FAMILIES["full"])


def compute_gradients(objective):
    A = np.eye(objective.X.shape[1])
    for _ in range(STEPS):
        objective.value_and_gradient(A)


def run_gradients(n, d, complete):
    def count_weights(objective, _):
        n_weights = n * n if complete else int(objective.layout._edges.values.shape[0])
        return {"weights": n_weights, "steps": STEPS}

    measure_case(functools.partial(make_objective, n, d, complete), compute_gradients, count_weights)


GRADIENTS = {
    "2,007 x 256, complete": (2007, 256, True),
    **{f"{n:,} x 16, sparse": (n, 16, False) for n in (5000, 10_000, 20_000, 40_000)},
}


def make_cases(gradients):
    if gradients:
        return {name: (functools.partial(run_gradients, *shape), 1) for name, shape in GRADIENTS.items()}
    return {name: (functools.partial(run_labels, method), 1) for name, method in METHODS.items()}


def main():
    options = parse_arguments(gradients={"action": "store_true"})
    cases = make_cases(options.gradients)
    if options.case:
        cases[options.case][0]()
    elif options.gradients:
        compare_methods(__file__, f"{STEPS} gradients of the learned Laplacian", cases, ["--gradients"])
    else:
        compare_methods(__file__, "Label spreading, 70,000 points", cases)


if __name__ == "__main__":
    main()
