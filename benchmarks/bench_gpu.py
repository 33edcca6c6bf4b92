"""An exact kNN graph of 200,000 x 128 points and ten eigenpairs, on NumPy, torch and CuPy: times and agreement.

    python benchmarks/bench_gpu.py [--size 200000]

Needs a CUDA device; a back end that is missing is left out.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np
from measure import arguments, markdown

from fiedler import KNNGraph
from fiedler.core.backend import to_numpy
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.core.sparse import to_scipy
from fiedler.datasets import tanh_manifold

N_NEIGHBORS, N_PAIRS = 15, 10


def on_torch(X):
    import torch

    return torch.asarray(X, device="cuda"), torch.cuda.synchronize


def on_cupy(X):
    import cupy

    return cupy.asarray(X), cupy.cuda.Device().synchronize


def on_numpy(X):
    return X, lambda: None


BACKENDS = {"numpy": on_numpy, "torch": on_torch, "cupy": on_cupy}


def timed(work, synchronize):
    synchronize()
    start = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - start


def run(name, X):
    """Graph and eigenpairs on one back end, after a warm-up on a part of the rows."""
    own, synchronize = BACKENDS[name](X)
    recipe = KNNGraph(N_NEIGHBORS, method="exact")
    if name != "numpy":
        smallest_eigenpairs(recipe.build(own[:5000]), N_PAIRS, method="chebyshev")
    graph, graph_s = timed(lambda: recipe.build(own), synchronize)
    pairs, eigen_s = timed(lambda: smallest_eigenpairs(graph, N_PAIRS, method="chebyshev"), synchronize)
    weights, values, vectors = to_scipy(graph.weights), to_numpy(pairs.values), to_numpy(pairs.vectors)
    row = {"back end": name, "dtype": str(X.dtype), "graph_s": graph_s, "eigen_s": eigen_s, "edges": graph.n_edges}
    return row | {"residual": float(to_numpy(pairs.residuals).max())}, (weights, values, vectors)


def agreement(found, reference):
    """Share of edges in common, largest difference of the eigenvalues, smallest cosine between the eigenspaces."""
    common = found[0].multiply(reference[0]).nnz / max(found[0].nnz, reference[0].nnz)
    overlap = np.linalg.svd(found[2].T.astype(np.float64) @ reference[2], compute_uv=False)
    return {
        "edges in common": float(common),
        "eigenvalue difference": float(np.abs(found[1] - reference[1]).max()),
        "subspace cosine": float(overlap.min()),
    }


def main():
    options = arguments(size={"type": int, "default": 200_000})
    rows = []
    for dtype in (np.float32, np.float64):
        X, _ = tanh_manifold(options.size, ambient=128, random_state=0, dtype=dtype)
        reference = None
        for name in BACKENDS:
            if importlib.util.find_spec(name) is None:
                continue
            row, found = run(name, X)
            reference = reference or found
            rows.append(row | agreement(found, reference))
            print(rows[-1], flush=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
