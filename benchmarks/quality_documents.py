"""Compare document clustering on random subsets of categories with the paper's figures [lpi, Tables 3 and 4].

    FIEDLER_DATA=... python benchmarks/quality_documents.py [--data tdt2 reuters21578] [--k 2 5 10] [--draws 20]
    FIEDLER_DATA=... python benchmarks/quality_documents.py --k 5 --methods 5% 10% 20% 30% 50% 70% 90% 100%  # Fig. 4

Each draw takes k of the thirty largest categories; rows are term frequencies scaled to unit length, as in the paper.
Draws are numbered by their seeds. Draws 1000 and above were used to choose the defaults of LPIClustering, and draws
below 200 were scored once before the defaults were final. Draws 200 to 999 were not used before, but come from the same
two corpora; --first is 200 by default. The table has means and standard errors of accuracy (AC) and NMI.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from measure import markdown_table, parse_arguments
from sklearn.decomposition import TruncatedSVD

from fiedler import LPI, EmbedKMeans, KNNGraph, LaplacianEigenmaps, LPIClustering
from fiedler.core.arrays import normalize_rows
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information
from fiedler_papers.baselines import NMFClustering

PAPER_GRAPH = KNNGraph(15, weight="dot")

METHODS = {
    "LPI, paper": lambda k, seed: EmbedKMeans(k, LPI(graph=PAPER_GRAPH), n_components="k-1", random_state=seed),
    "LPIClustering": lambda k, seed: LPIClustering(k, random_state=seed),
    "k-means": lambda k, seed: EmbedKMeans(k, random_state=seed),
    "spherical k-means": lambda k, seed: EmbedKMeans(k, metric="cosine", random_state=seed),
    "LSI": lambda k, seed: EmbedKMeans(k, TruncatedSVD(), n_components="k", random_state=seed),
    "LE": lambda k, seed: EmbedKMeans(k, LaplacianEigenmaps(graph=PAPER_GRAPH), n_components="k-1", random_state=seed),
    "NMF-NCW": lambda k, seed: NMFClustering(k, random_state=seed),
}

# Fractions of the documents from which the map is learned: Fig. 4
FRACTIONS = {f"{percent}%": percent / 100 for percent in (5, 10, 20, 30, 50, 70, 90, 100)}

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
    """Return the documents of k random categories, without the terms that do not occur in them."""
    categories = np.random.RandomState(seed).choice(30, k, replace=False)
    mask = np.isin(data.y, categories)
    X = sp.csr_array(data.X[mask].astype(np.float64))
    return normalize_rows(sp.csr_array(X[:, np.flatnonzero(X.sum(axis=0))])), data.y[mask]


def score_draws(method, k, draws):
    """Return accuracy and NMI for each draw."""
    scores = []
    for seed, (X, y) in draws.items():
        if method in FRACTIONS:
            model = LPIClustering(k, fit_fraction=FRACTIONS[method], random_state=seed)
        else:
            model = METHODS[method](k, seed)
        labels = model.fit(X).labels_
        scores.append((clustering_accuracy(y, labels), normalized_mutual_information(y, labels)))
    return np.array(scores)


def format_gain(scores, scores_by_method):
    """Format the mean difference from LPI as published on the same draws, AC / NMI, with standard errors."""
    if "LPI, paper" not in scores_by_method:
        return ""
    gains = scores - scores_by_method["LPI, paper"]
    return " / ".join(f"{mean:+.3f} ± {error:.3f}" for mean, error in zip(gains.mean(axis=0), standard_error(gains)))


def standard_error(values):
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(
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
            scores_by_method = {}
            for method in options.methods:
                scores = scores_by_method[method] = score_draws(method, k, draws)
                (ac, nmi), (ac_error, nmi_error) = scores.mean(axis=0), standard_error(scores)
                published = dict(zip((2, 5, 10), PUBLISHED.get((name, method), ()))).get(k, ("", ""))
                table.append(
                    {
                        "data": name,
                        "k": k,
                        "method": method,
                        "AC": f"{ac:.3f} ± {ac_error:.3f}",
                        "paper AC": published[0],
                        "NMI": f"{nmi:.3f} ± {nmi_error:.3f}",
                        "paper NMI": published[1],
                        "gain on LPI, paper": format_gain(scores, scores_by_method),
                    }
                )
                print(table[-1], flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
