"""Choose between k - 1 and k dimensions of LPIClustering without labels [lpi, Tables 3 and 4].

    FIEDLER_DATA=... python benchmarks/quality_document_dimensions.py [--data tdt2] [--even] [--draws 25]

The rule: of the two clusterings, the one with the smaller normalised cut of the complete graph of inner products. It
was settled on even draws of `papers/lpi/draws.csv`; odd ones are used here unless ``--even`` is given. The first
column of the table is LPIClustering as it is, with the seed of the records.
"""

from __future__ import annotations

import warnings

import numpy as np
from measure import markdown_table, parse_arguments
from quality_documents import draw

from fiedler import LPIClustering
from fiedler.datasets import load
from fiedler.metrics import clustering_accuracy, normalized_mutual_information

FIRST_SEED = 3000  # of the draws of the paper's tables
N_CLUSTERS = range(2, 11)
COLUMNS = ("k - 1 dimensions", "k dimensions", "chosen by the cut", "better by the labels", "gain of the choice")


def inner_product_cut(X, labels):
    """Return Σ_c cut(c) / volume(c) on the complete graph W = XX', from the sums of the rows of each cluster."""
    sums = np.stack([np.asarray(X[labels == c].sum(axis=0)).ravel() for c in np.unique(labels)])
    return float(np.sum(1 - np.sum(sums**2, axis=1) / (sums @ sums.sum(axis=0))))


def score_draw(X, y, k, seed):
    """Return accuracy and NMI of k - 1 dimensions, of k, of the chosen ones, and of the better ones by the labels."""
    found = [LPIClustering(k, n_components=d, random_state=seed).fit(X).labels_ for d in (k - 1, k)]
    scores = [(clustering_accuracy(y, labels), normalized_mutual_information(y, labels)) for labels in found]
    chosen = int(np.argmin([inner_product_cut(X, labels) for labels in found]))
    return [*scores, scores[chosen], max(scores)]


def table_row(name, draws):
    """Return the averages over k and the draws, and the gain of the choice with its standard error over the draws."""
    data = load(name, subset="top30")
    scores = np.array(
        [[score_draw(*draw(data, k, FIRST_SEED + n), k, n) for n in draws] for k in N_CLUSTERS]
    )  # (k, draw, column, score)
    gains = (scores[:, :, 2] - scores[:, :, 0]).mean(axis=0)
    errors = gains.std(axis=0, ddof=1) / len(gains) ** 0.5
    cells = [f"{ac:.1f} / {nmi:.1f}" for ac, nmi in 100 * scores.mean(axis=(0, 1))]
    gain = " / ".join(f"{100 * value:+.1f} ± {100 * error:.1f}" for value, error in zip(gains.mean(axis=0), errors))
    return {"data": name, **dict(zip(COLUMNS, [*cells, gain]))}


def main():
    warnings.simplefilter("ignore")
    options = parse_arguments(
        data={"nargs": "+", "default": ["tdt2", "reuters21578"]},
        even={"action": "store_true"},
        draws={"type": int, "default": 25},
    )
    table, draws = [], range(int(not options.even), 2 * options.draws, 2)
    for name in options.data:
        table.append(table_row(name, draws))
        print(table[-1], flush=True)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
