"""Compare ManifoldClustering with others on text: tf-idf rows and their embeddings in 384 dimensions.

    FIEDLER_DATA=... python benchmarks/quality_text.py [--data tdt2 reuters21578] [--seeds 5] [--peer-seeds 2]

The thirty largest categories of TDT2 and Reuters, their number given. The embeddings are those of LSI, in float32, as
they are. UMAP (cosine, 10 dimensions, 20 neighbours, min_dist 0) + k-means runs if umap-learn is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from measure import OUT, markdown_table
from quality_manifold import load_rows
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import TruncatedSVD

from fiedler import LPIClustering, ManifoldClustering
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

N_COMPONENTS = 384


def umap_kmeans(X, k, seed):
    """Return the clusters of k-means in the coordinates of UMAP."""
    import umap

    options = {"n_components": 10, "n_neighbors": 20, "min_dist": 0.0, "metric": "cosine", "random_state": seed}
    return KMeans(k, n_init=10, random_state=seed).fit_predict(umap.UMAP(**options).fit_transform(X))


OWN = {
    "fiedler": lambda X, k, seed: ManifoldClustering(k, random_state=seed).fit(X).labels_,
    "fiedler, fast": lambda X, k, seed: ManifoldClustering(k, effort="fast", random_state=seed).fit(X).labels_,
    "LPIClustering": lambda X, k, seed: LPIClustering(k, random_state=seed).fit(X).labels_,
}
PEERS = {
    "k-means": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
    "SpectralClustering": lambda X, k, seed: SpectralClustering(
        k, affinity="nearest_neighbors", random_state=seed
    ).fit_predict(X),
    "UMAP + k-means": umap_kmeans,
}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["tdt2", "reuters21578"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=2)
    options = parser.parse_args()
    table = []
    for name in options.data:
        documents, y = load_rows(name)
        embedded = TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(documents).astype(np.float32)
        for form, X in {"tf-idf": documents, f"LSI, {N_COMPONENTS}": embedded}.items():
            for method, fit in (OWN | PEERS).items():
                scores, started = [], time.process_time()
                for seed in range(options.seeds if method in OWN else options.peer_seeds):
                    try:
                        labels = fit(X, len(np.unique(y)), seed)
                    except ImportError:
                        break
                    accuracy, nmi = clustering_accuracy(y, labels), normalized_mutual_information(y, labels)
                    scores.append((100 * accuracy, 100 * nmi))
                if not scores:
                    continue
                accuracy, nmi = np.mean(scores, axis=0).tolist()
                seconds = (time.process_time() - started) / len(scores)
                row = {"data": name, "rows": form, "method": method, "AC": accuracy, "NMI": nmi, "CPU s": seconds}
                table.append(row)
                print(row, flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    text = markdown_table(table)
    (OUT / "quality_text.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
