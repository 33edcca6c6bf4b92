"""The ten smallest eigenpairs of the normalised Laplacian, beside scikit-learn's solvers.

python benchmarks/bench_eigen.py                  # 70,000 nodes; scikit-learn's default alone takes minutes
python benchmarks/bench_eigen.py --size 1000000   # ours and Lanczos only; graph building included, about half an hour
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
from measure import OUT, arguments, contest, measured
from sklearn.manifold import spectral_embedding

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import tanh_manifold

N_PAIRS = 10


def graph(size):
    """15 neighbours, binary weights, float64; built once and kept."""
    path = OUT / f"graph_{size}.npz"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        X, _ = tanh_manifold(size, random_state=0, dtype=np.float32)
        built = KNNGraph(15).build(X)
        AffinityGraph(built.weights.astype(np.float64)).save(path)
    return AffinityGraph.load(path)


def ours(graph, **options):
    return smallest_eigenpairs(graph, N_PAIRS, **options).vectors


def peer(graph, solver, **options):
    """scikit-learn's call; it hands back D^-1/2 u, so u is recovered from it."""
    Y = spectral_embedding(
        graph.weights, n_components=N_PAIRS, eigen_solver=solver, drop_first=False, random_state=0, **options
    )
    return Y * np.sqrt(graph.degrees)[:, None]


def judge(graph, vectors):
    """The worst residual ‖Lu - λu‖ at ‖u‖ = 1, and how many zeros were found of how many there are."""
    L = graph.laplacian("symmetric").astype(np.float64)
    U = vectors.astype(np.float64) / np.linalg.norm(vectors, axis=0)
    values = np.sum(U * (L @ U), axis=0)
    residuals = np.linalg.norm(L @ U - U * values, axis=0)
    return {
        "residual": float(residuals.max()),
        "zeros": int(np.sum(values < 1e-9)),
        "components": graph.components()[0],
    }


def case(size, work, **options):
    warnings.simplefilter("ignore")
    measured(functools.partial(graph, size), functools.partial(work, **options), judge)


def cases(size):
    repeats = 1 if size > 200_000 else 3
    mine = {
        "fiedler, tol 1e-8 (default)": (functools.partial(case, size, ours), repeats),
        "fiedler, tol 1e-14": (functools.partial(case, size, ours, tol=1e-14), repeats),
        "ARPACK without LU, tol 1e-8": (functools.partial(case, size, ours, method="arpack"), 1),
    }
    if size > 200_000:
        return mine
    theirs = {
        "scikit-learn default (arpack)": (functools.partial(case, size, peer, solver="arpack"), 1),
        "scikit-learn lobpcg": (functools.partial(case, size, peer, solver="lobpcg"), 1),
        "scikit-learn amg (pyamg)": (functools.partial(case, size, peer, solver="amg"), 1),
    }
    return theirs | mine


if __name__ == "__main__":
    options = arguments(size={"type": int, "default": 70_000})
    if options.case:
        cases(options.size)[options.case][0]()
    else:
        graph(options.size)
        title = f"Ten smallest eigenpairs, {options.size:,} nodes, 15 neighbours"
        contest(__file__, title, cases(options.size), ["--size", str(options.size)])
