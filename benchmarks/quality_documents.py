"""Accuracy and NMI of document clustering on random subsets of categories, beside the paper's [lpi, Tables 3 and 4].

    FIEDLER_DATA=... python benchmarks/quality_documents.py [--data tdt2 reuters21578] [--k 2 5 10] [--draws 20]
    FIEDLER_DATA=... python benchmarks/quality_documents.py --k 5 --methods 5% 10% 20% 30% 50% 70% 90% 100%  # Fig. 4

Each draw takes k of the thirty largest categories; rows are term frequencies at length one, as in the paper. Draws are
numbered: those from 1000 on were looked at when the defaults of LPIClustering were chosen, and those below 200 once
before all was settled; those from 200 on are fresh, though of the same two corpora. Means and standard errors.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from measure import arguments, markdown
from sklearn.decomposition import TruncatedSVD

from fiedler import LPI, EmbedKMeans, KNNGraph, LaplacianEigenmaps, LPIClustering
from fiedler.baselines import NMFClustering
from fiedler.core.rows import normalize_rows
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

PAPER = KNNGraph(15, weight="dot")

METHODS = {
    "LPI, paper": lambda k, seed: EmbedKMeans(k, LPI(graph=PAPER), n_components="k-1", random_state=seed),
    "LPIClustering": lambda k, seed: LPIClustering(k, random_state=seed),
    "k-means": lambda k, seed: EmbedKMeans(k, random_state=seed),
    "spherical k-means": lambda k, seed: EmbedKMeans(k, metric="cosine", random_state=seed),
    "LSI": lambda k, seed: EmbedKMeans(k, TruncatedSVD(), n_components="k", random_state=seed),
    "LE": lambda k, seed: EmbedKMeans(k, LaplacianEigenmaps(graph=PAPER), n_components="k-1", random_state=seed),
    "NMF-NCW": lambda k, seed: NMFClustering(k, random_state=seed),
}

SHARES = {f"{percent}%": percent / 100 for percent in (5, 10, 20, 30, 50, 70, 90, 100)}  # for the map, Fig. 4

PUBLISHED = {  # AC and NMI at k = 2, 5, 10: Tables 3 and 4
    ("tdt2", "k-means"): ((0.989, 0.962), (0.948, 0.935), (0.835, 0.865)),
    ("tdt2", "LSI"): ((0.977, 0.925), (0.914, 0.892), (0.786, 0.813)),
    ("tdt2", "LE"): ((0.998, 0.981), (0.993, 0.973), (0.978, 0.958)),
    ("tdt2", "NMF-NCW"): ((0.985, 0.939), (0.980, 0.965), (0.898, 0.897)),
    ("tdt2", "LPI, paper"): ((0.998, 0.981), (0.993, 0.973), (0.979, 0.959)),
    ("reuters21578", "k-means"): ((0.871, 0.600), (0.671, 0.563), (0.545, 0.552)),
    ("reuters21578", "LSI"): ((0.864, 0.569), (0.654, 0.538), (0.540, 0.528)),
    ("reuters21578", "LE"): ((0.923, 0.697), (0.737, 0.603), (0.615, 0.586)),
    ("reuters21578", "NMF-NCW"): ((0.925, 0.705), (0.735, 0.587), (0.616, 0.561)),
    ("reuters21578", "LPI, paper"): ((0.923, 0.697), (0.737, 0.603), (0.615, 0.586)),
}


def draw(data, k, seed):
    """The documents of k random categories, without the terms that none of them uses."""
    categories = np.random.RandomState(seed).choice(30, k, replace=False)
    kept = np.isin(data.y, categories)
    X = sp.csr_array(data.X[kept].astype(np.float64))
    return normalize_rows(sp.csr_array(X[:, np.flatnonzero(X.sum(axis=0))])), data.y[kept]


def score(method, k, draws):
    """AC and NMI of every draw."""
    found = []
    for seed, (X, y) in draws.items():
        if method in SHARES:
            model = LPIClustering(k, fit_fraction=SHARES[method], random_state=seed)
        else:
            model = METHODS[method](k, seed)
        labels = model.fit(X).labels_
        found.append((clustering_accuracy(y, labels), normalized_mutual_information(y, labels)))
    return np.array(found)


def gain(found, scores):
    """How much better than LPI as published on the same draws, AC / NMI, with the standard error of the difference."""
    if "LPI, paper" not in scores:
        return ""
    more = found - scores["LPI, paper"]
    return " / ".join(
        f"{m:+.3f} ± {s:.3f}" for m, s in zip(more.mean(axis=0), more.std(axis=0, ddof=1) / len(more) ** 0.5)
    )


def main():
    warnings.simplefilter("ignore")
    options = arguments(
        data={"nargs": "+", "default": ["tdt2", "reuters21578"]},
        k={"nargs": "+", "type": int, "default": [2, 5, 10]},
        draws={"type": int, "default": 20},
        first={"type": int, "default": 200},
        methods={"nargs": "+", "default": [*METHODS, "30%"]},
    )
    table = []
    for name in options.data:
        data = load(name, subset="top30")
        for k in options.k:
            draws = {seed: draw(data, k, seed) for seed in range(options.first, options.first + options.draws)}
            scores = {}
            for method in options.methods:
                found = scores[method] = score(method, k, draws)
                (ac, nmi), (ac_se, nmi_se) = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
                published = dict(zip((2, 5, 10), PUBLISHED.get((name, method), ()))).get(k, ("", ""))
                table.append(
                    {"data": name, "k": k, "method": method, "AC": f"{ac:.3f} ± {ac_se:.3f}", "paper AC": published[0],
                     "NMI": f"{nmi:.3f} ± {nmi_se:.3f}", "paper NMI": published[1],
                     "gain on LPI, paper": gain(found, scores)}
                )  # fmt: skip
                print(table[-1], flush=True)
    print(markdown(table))


if __name__ == "__main__":
    main()
