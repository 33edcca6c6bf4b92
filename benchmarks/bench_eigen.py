"""Compare solvers for the ten smallest eigenpairs of the normalised Laplacian with those of scikit-learn.

python benchmarks/bench_eigen.py                  # 70,000 nodes; scikit-learn's default alone takes minutes
python benchmarks/bench_eigen.py --size 1000000   # fiedler and ARPACK only; about half an hour with the graph
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
from measure import OUT, compare_methods, measure_case, parse_arguments
from sklearn.manifold import spectral_embedding

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import tanh_manifold

N_PAIRS = 10


def load_graph(size):
    """Return a graph of 15 neighbours with binary float64 weights; build it on the first call."""
    path = OUT / f"graph_{size}.safetensors"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        X, _ = tanh_manifold(size, random_state=0, dtype=np.float32)
        graph = KNNGraph(15).build(X)
        AffinityGraph(graph.weights.astype(np.float64)).save(path)
    return AffinityGraph.load(path)


def solve_fiedler(graph, **options):
    return smallest_eigenpairs(graph, N_PAIRS, **options).vectors


def solve_sklearn(graph, solver, **options):
    """Call scikit-learn's solver; it returns D^-1/2 u, from which u is recovered."""
    Y = spectral_embedding(
        graph.weights, n_components=N_PAIRS, eigen_solver=solver, drop_first=False, random_state=0, **options
    )
    return Y * np.sqrt(graph.degrees)[:, None]


def evaluate(graph, vectors):
    """Return the largest residual ‖Lu - λu‖ with ‖u‖ = 1, the number of zero eigenvalues, and that of components."""
    L = graph.laplacian("symmetric").astype(np.float64)
    U = vectors.astype(np.float64) / np.linalg.norm(vectors, axis=0)
    values = np.sum(U * (L @ U), axis=0)
    residuals = np.linalg.norm(L @ U - U * values, axis=0)
    return {
        "residual": float(residuals.max()),
        "zeros": int(np.sum(values < 1e-9)),
        "components": graph.components()[0],
    }


def run(size, solve, **options):
    warnings.simplefilter("ignore")
    measure_case(functools.partial(load_graph, size), functools.partial(solve, **options), evaluate)


def make_cases(size):
    repeats = 1 if size > 200_000 else 3
    large = {
        "fiedler, tol 1e-8 (default)": (functools.partial(run, size, solve_fiedler), repeats),
        "fiedler, tol 1e-14": (functools.partial(run, size, solve_fiedler, tol=1e-14), repeats),
        "ARPACK without LU, tol 1e-8": (functools.partial(run, size, solve_fiedler, method="arpack"), 1),
    }
    if size > 200_000:
        return large
    sklearn_solvers = {
        "scikit-learn default (arpack)": (functools.partial(run, size, solve_sklearn, solver="arpack"), 1),
        "scikit-learn lobpcg": (functools.partial(run, size, solve_sklearn, solver="lobpcg"), 1),
        "scikit-learn amg (pyamg)": (functools.partial(run, size, solve_sklearn, solver="amg"), 1),
    }
    return sklearn_solvers | large


def main():
    options = parse_arguments(size={"type": int, "default": 70_000})
    cases = make_cases(options.size)
    if options.case:
        cases[options.case][0]()
    else:
        load_graph(options.size)
        title = f"Ten smallest eigenpairs, {options.size:,} nodes, 15 neighbours"
        compare_methods(__file__, title, cases, ["--size", str(options.size)])


if __name__ == "__main__":
    main()
