"""Measure LPI with pairs of some labelled documents: the question that the paper leaves open [lpi, section 6, 3].

    FIEDLER_DATA=... python benchmarks/quality_document_pairs.py [--data tdt2 reuters21578] [--k 5] [--draws 2]

Each draw takes k of the thirty largest categories, as in `quality_documents`. A share of every category is labelled,
at least one document each, and all pairs among the labelled documents are given. AC and NMI are means over the
documents that are *not* labelled, after a clustering of all. The methods differ in what they do with the labels:
nothing, edges and repulsion in the graph of the map (`constraints=`), or `LabelGraph`, the affinity of Eq. 5 mixed with
neighbours.
"""

from __future__ import annotations

import warnings

import numpy as np
from measure import markdown_table, parse_arguments
from quality_documents import draw

from fiedler import LabelGraph, LPIClustering, PairwiseConstraints
from fiedler.datasets import load
from fiedler.graph.labels import UNKNOWN
from fiedler.graph.recipes import self_tuned
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

SHARES = (0.01, 0.05, 0.1)
NEIGHBORS = 12  # of the default graph of LPIClustering


def partial_labels(y, share, seed):
    """Return labels 0, 1, ... of a share of every category, at least one document each, and -1 for the others."""
    rng, labels = np.random.RandomState(seed), np.full(len(y), UNKNOWN)
    for code, category in enumerate(np.unique(y)):
        members = rng.permutation(np.flatnonzero(y == category))
        labels[members[: int(np.ceil(share * len(members)))]] = code
    return labels


def fit_without(X, labels, k, seed):
    return LPIClustering(k, random_state=seed).fit(X)


def fit_pairs(X, labels, k, seed):
    return LPIClustering(k, random_state=seed).fit(X, constraints=PairwiseConstraints.from_labels(labels))


def fit_must_links(X, labels, k, seed):
    pairs = PairwiseConstraints.from_labels(labels)
    return LPIClustering(k, random_state=seed).fit(
        X, constraints=PairwiseConstraints(pairs.must_link, n_samples=len(labels))
    )


def fit_label_graph(X, labels, k, seed):
    return LPIClustering(k, LabelGraph(self_tuned(NEIGHBORS)), random_state=seed).fit(X, labels)


METHODS = {
    "no labels": fit_without,
    "must-links": fit_must_links,
    "must-links and cannot-links": fit_pairs,
    "LabelGraph": fit_label_graph,
}


def score(fit, X, y, labels, k, seed):
    """Return accuracy and NMI over the documents without a label."""
    found, rest = fit(X, labels, k, seed).labels_, labels == UNKNOWN
    return clustering_accuracy(y[rest], found[rest]), normalized_mutual_information(y[rest], found[rest])


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(
        data={"nargs": "+", "default": ["tdt2", "reuters21578"]},
        k={"type": int, "default": 5},
        draws={"type": int, "default": 2},
        first={"type": int, "default": 200},
    )
    table = []
    for name in options.data:
        data = load(name, subset="top30")
        draws = {seed: draw(data, options.k, seed) for seed in range(options.first, options.first + options.draws)}
        for method, fit in METHODS.items():
            row = {"data": name, "labels": method}
            for share in SHARES:
                scores = [
                    score(fit, X, y, partial_labels(y, share, seed), options.k, seed) for seed, (X, y) in draws.items()
                ]
                ac, nmi = 100 * np.mean(scores, axis=0)
                row[f"{share:.0%}"] = f"{ac:.1f} / {nmi:.1f}"
            table.append(row)
            print(row, flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
