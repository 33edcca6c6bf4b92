"""Compare ManifoldClustering on eight blocks with the same model in memory: USPS, TDT2 (sparse) and 200,000 rows.

    FIEDLER_DATA=... python benchmarks/quality_out_of_core.py

The adjusted Rand index compares both partitions; the accuracies compare them with the classes.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from measure import OUT, machine_info, markdown_table
from sklearn.feature_extraction.text import TfidfTransformer

from fiedler import ManifoldClustering
from fiedler.datasets import load, tanh_manifold
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.out_of_core import config_context

N_BLOCKS = 8


def usps():
    data = load("usps")
    return data.X.astype(np.float32), data.y


def tdt2():
    data = load("tdt2")
    kept = data.y < 30
    return TfidfTransformer(sublinear_tf=True).fit_transform(data.X[kept].astype(np.float64)), data.y[kept]


def curved_mixture():
    return tanh_manifold(200_000, n_clusters=20, dtype="float32", random_state=0)


CASES = {"USPS": usps, "TDT2": tdt2, "curved mixture": curved_mixture}


def in_blocks(X) -> da.Array:
    cuts = np.linspace(0, X.shape[0], N_BLOCKS + 1).astype(int)
    meta = sp.csr_array((0, 0), dtype=X.dtype) if sp.issparse(X) else None
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(X[a:b], pure=True), (b - a, X.shape[1]), dtype=X.dtype, meta=meta)
            for a, b in pairwise(cuts)
        ]
    )


def main() -> None:
    rows = []
    with config_context(memory="6GB"):
        for name, make in CASES.items():
            X, y = make()
            model = ManifoldClustering(len(np.unique(y)), random_state=0)
            in_memory = model.fit(X).labels_.copy()
            labels = model.fit(in_blocks(X)).labels_.compute(scheduler="synchronous")
            rows.append(
                {
                    "data": name,
                    "rows": X.shape[0],
                    "ARI with memory": round(adjusted_rand_index(in_memory, labels), 3),
                    "AC in blocks": round(100 * clustering_accuracy(y, labels), 1),
                    "AC in memory": round(100 * clustering_accuracy(y, in_memory), 1),
                }
            )
            print(rows[-1], file=sys.stderr, flush=True)
    text = f"{machine_info()}\n\n{markdown_table(rows)}\n"
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "quality_out_of_core.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
