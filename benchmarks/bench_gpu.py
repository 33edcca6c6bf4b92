"""Compare NumPy, torch and CuPy: an exact kNN graph of 200,000 x 128 points and ten eigenpairs, times and agreement.

    python benchmarks/bench_gpu.py [--size 200000]

Needs a CUDA device; back ends that are not installed are skipped.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np
from measure import markdown_table, parse_arguments

from fiedler import KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.core.sparse import to_scipy
from fiedler.datasets import tanh_manifold

N_NEIGHBORS, N_PAIRS = 15, 10


def to_torch(X):
    import torch

    return torch.asarray(X, device="cuda"), torch.cuda.synchronize


def to_cupy(X):
    import cupy

    return cupy.asarray(X), cupy.cuda.Device().synchronize


def keep_numpy(X):
    return X, lambda: None


BACKENDS = {"numpy": keep_numpy, "torch": to_torch, "cupy": to_cupy}  # X -> X on the device, synchronize


def timed(function, synchronize):
    """Return the result of a function and the seconds it took."""
    synchronize()
    start = time.perf_counter()
    result = function()
    synchronize()
    return result, time.perf_counter() - start


def run(name, X):
    """Compute graph and eigenpairs with one back end, after a warm-up on some of the rows."""
    X_device, synchronize = BACKENDS[name](X)
    recipe = KNNGraph(N_NEIGHBORS, method="exact")
    if name != "numpy":
        smallest_eigenpairs(recipe.build(X_device[:5000]), N_PAIRS, method="chebyshev")
    graph, graph_s = timed(lambda: recipe.build(X_device), synchronize)
    pairs, eigen_s = timed(lambda: smallest_eigenpairs(graph, N_PAIRS, method="chebyshev"), synchronize)
    weights, values, vectors = to_scipy(graph.weights), to_numpy(pairs.values), to_numpy(pairs.vectors)
    row = {"back end": name, "dtype": str(X.dtype), "graph_s": graph_s, "eigen_s": eigen_s, "edges": graph.n_edges}
    return row | {"residual": float(to_numpy(pairs.residuals).max())}, (weights, values, vectors)


def compare_results(result, reference):
    """Return the share of common edges, the largest eigenvalue difference, the smallest cosine between eigenspaces."""
    weights, values, vectors = result
    ref_weights, ref_values, ref_vectors = reference
    cosines = np.linalg.svd(vectors.T.astype(np.float64) @ ref_vectors, compute_uv=False)
    return {
        "edges in common": float(weights.multiply(ref_weights).nnz / max(weights.nnz, ref_weights.nnz)),
        "eigenvalue difference": float(np.abs(values - ref_values).max()),
        "subspace cosine": float(cosines.min()),
    }


def main():
    options = parse_arguments(size={"type": int, "default": 200_000})
    rows = []
    for dtype in (np.float32, np.float64):
        X, _ = tanh_manifold(options.size, ambient=128, random_state=0, dtype=dtype)
        reference = None
        for name in BACKENDS:
            if importlib.util.find_spec(name) is None:
                continue
            row, result = run(name, X)
            reference = reference or result
            rows.append(row | compare_results(result, reference))
            print(rows[-1], flush=True)
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
