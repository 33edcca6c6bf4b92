"""Compare clusterings of texts: tf-idf rows and their embeddings in 384 dimensions, the number of topics given or not.

    FIEDLER_DATA=... python benchmarks/quality_text.py [--data tdt2 reuters21578 docstrings] [--seeds 5]

The thirty largest categories of TDT2 and Reuters, and docstrings of ten packages, which repeat each other: up to 240 of
each, drawn anew for each seed. Settings were chosen on "docstrings-other"; "docstrings" was held back. The embeddings
are those of LSI, in float32, as they are. UMAP (cosine, 10 dimensions, 20 neighbours, min_dist 0) + k-means runs if
umap-learn is installed, and Leiden (modularity, 15 nearest neighbours by cosine) if leidenalg and igraph are.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import time
import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp
from measure import OUT, markdown_table
from quality_manifold import load_rows
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from fiedler import KNNGraph, LPIClustering, ManifoldClustering
from fiedler.core.sparse import row_indices
from fiedler.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_information
from fiedler.text import DocumentVectorizer

TFIDF, N_COMPONENTS = "tf-idf", 384
UNKNOWN, GIVEN = "auto", "given"
AREAS = {
    "docstrings": "scipy.optimize scipy.stats sklearn matplotlib networkx pandas sympy.polys torch.nn "
    "plotly.graph_objs numpy.ma",
    "docstrings-other": "scipy.signal scipy.spatial scipy.sparse scipy.linalg dask polars rich PIL pyarrow "
    "sympy.physics",
}
MAX_TEXTS, MIN_WORDS = 240, 5  # of an area, and of a text
NO_MODULES = ("tests", "testing", "conftest", "mypy_plugin", "report")


# ---------------------------------------------------------------------------------------------------------- docstrings


def modules_of(area):
    """Import a package and its public modules, breadth first."""
    modules = [importlib.import_module(area)]
    for module in modules:
        for found in pkgutil.iter_modules(vars(module).get("__path__", []), module.__name__ + "."):
            name = found.name.rpartition(".")[2]
            if not name.startswith("_") and name not in NO_MODULES:
                try:
                    modules.append(importlib.import_module(found.name))
                except Exception:  # a module that needs another library
                    continue
    return modules


@cache
def docstrings_of(area):
    """Return the docstrings of public classes, methods and functions that are defined in a package."""
    seen, texts = set(), []

    def read(source):
        for name in sorted(vars(source)):
            found = None if name.startswith("_") else getattr(source, name, None)
            if (inspect.isclass(found) or inspect.isroutine(found)) and id(found) not in seen:
                if inspect.ismodule(source) and not str(found.__module__).startswith(home):
                    continue
                seen.add(id(found))
                texts.append(inspect.getdoc(found) or "")
                if inspect.isclass(found) and inspect.ismodule(source):
                    read(found)

    home = area if area == "numpy.ma" else area.partition(".")[0]
    for module in modules_of(area):
        read(module)
    return [text for text in texts if len(text.split()) >= MIN_WORDS]


def draw_docstrings(name, seed):
    """Return tf-idf rows of some docstrings, and the package of each."""
    rng, texts, areas = np.random.RandomState(seed), [], []
    for number, area in enumerate(AREAS[name].split()):
        of_area = docstrings_of(area)
        chosen = np.sort(rng.permutation(len(of_area))[:MAX_TEXTS])
        texts += [of_area[i] for i in chosen]
        areas += [number] * len(chosen)
    return DocumentVectorizer("tfidf").fit_transform(texts), np.array(areas)


# ------------------------------------------------------------------------------------------------------------- methods


def umap_kmeans(X, k, seed):
    """Return the clusters of k-means in the coordinates of UMAP."""
    import umap

    if sp.issparse(X):  # UMAP measures cosines of few sparse rows, and of sparse arrays, only as dense ones
        X = X.toarray().astype(np.float32) if X.shape[0] < 4096 else sp.csr_matrix(X)
    options = {"n_components": 10, "n_neighbors": 20, "min_dist": 0.0, "metric": "cosine", "random_state": seed}
    return KMeans(k, n_init=10, random_state=seed).fit_predict(umap.UMAP(**options).fit_transform(X))


def leiden(X, k, seed):
    """Return the communities of the highest modularity that Leiden finds."""
    import igraph
    import leidenalg

    weights = KNNGraph(15).build(normalize(X)).weights
    ends = np.stack([row_indices(weights), weights.indices], axis=1)
    graph = igraph.Graph(n=X.shape[0], edges=ends[ends[:, 0] < ends[:, 1]].tolist())
    kind = leidenalg.RBConfigurationVertexPartition
    return np.array(leidenalg.find_partition(graph, kind, n_iterations=-1, seed=seed).membership)


def lsa_kmeans(X, k, seed):
    """Return the clusters of k-means in 100 dimensions of LSA, at unit length."""
    coordinates = TruncatedSVD(100, random_state=seed).fit_transform(X)
    return KMeans(k, n_init=10, random_state=seed).fit_predict(normalize(coordinates))


OWN = {
    "fiedler": lambda X, k, seed: ManifoldClustering(k, random_state=seed).fit(X).labels_,
    "fiedler, fast": lambda X, k, seed: ManifoldClustering(k, effort="fast", random_state=seed).fit(X).labels_,
    "LPIClustering": lambda X, k, seed: LPIClustering(k, random_state=seed).fit(X).labels_,
}
PEERS = {
    "k-means": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit_predict(X),
    "LSA + k-means": lsa_kmeans,
    "SpectralClustering": lambda X, k, seed: SpectralClustering(
        k, affinity="nearest_neighbors", random_state=seed
    ).fit_predict(X),
    "UMAP + k-means": umap_kmeans,
}
METHODS = {GIVEN: OWN | PEERS, UNKNOWN: {"fiedler": OWN["fiedler"], "Leiden": leiden}}


@cache
def load_texts(name, form, seed):
    """Return the rows of a corpus in some form, and their classes; of docstrings, another draw for each seed."""
    documents, y = draw_docstrings(name, seed) if name in AREAS else load_rows(name)
    if form == TFIDF:
        return documents, y
    return TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(documents).astype(np.float32), y


def evaluate(fit, name, form, given, seeds):
    """Return the mean scores and CPU seconds of some runs, None if a library is not installed."""
    scores = []
    for seed in range(seeds):
        X, y = load_texts(name, form, seed if name in AREAS else 0)
        started = time.process_time()
        try:
            labels = fit(X, len(np.unique(y)) if given == GIVEN else UNKNOWN, seed)
        except ImportError:
            return None
        found = adjusted_rand_index(y, labels), clustering_accuracy(y, labels), normalized_mutual_information(y, labels)
        n_found = len(np.unique(labels[labels >= 0]))
        scores.append([*(100 * score for score in found), n_found, time.process_time() - started])
    mean = dict(zip(("ARI", "AC", "NMI", "K", "CPU s"), np.mean(scores, axis=0).tolist()))
    return mean | {"ARI of each": " ".join(f"{one[0]:.1f}" for one in scores)}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["tdt2", "reuters21578", "docstrings"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=2)
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    options = parser.parse_args()
    table = []
    for name in options.data:
        for form in (TFIDF, f"LSI, {N_COMPONENTS}"):
            for given, methods in METHODS.items():
                for method, fit in methods.items():
                    seeds = options.seeds if method in OWN or name in AREAS else options.peer_seeds
                    scores = None if method in options.without else evaluate(fit, name, form, given, seeds)
                    if scores is not None:
                        row = {"data": name, "rows": form, "K is": given, "method": method} | scores
                        table.append(row)
                        print(row, flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    text = markdown_table(table)
    (OUT / "quality_text.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
