"""Score single generators of partitions, and the measure by which rows are one cluster.

    FIEDLER_DATA=... python benchmarks/quality_views.py views [--data ...]     # the table of docs/views.md
    FIEDLER_DATA=... python benchmarks/quality_views.py linkage                # the tables of docs/hierarchy.md

Adjusted Rand index for the known number of classes, one seed. Views are compared on the data sets of
quality_manifold.py, linkages on those of up to 2,000 rows and on the benchmark suite of Gagolewski (suite_v1.npz), rows
as they are: the score of a set is the highest over its reference partitions, and points marked as noise are left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measure import markdown_table
from quality_manifold import DATA, load_rows

from fiedler import Directions, Whitening
from fiedler.core.arrays import to_numpy
from fiedler.graph import communities
from fiedler.graph.recipes import default_recipe
from fiedler.graph.tree import LENGTHS, cut_tree, genie_merges, spanning_tree
from fiedler.metrics import adjusted_rand_index

MAX_LINKAGE_ROWS = 2000
THRESHOLDS = (0.1, 0.2, 0.3, 0.5)
N_NEIGHBORS = 10

VIEWS = {  # (X, k) -> rows
    "rows as they are": lambda X, k: X,
    "Directions": lambda X, k: Directions(center=not sp.issparse(X)).fit_transform(X),
    "Whitening by rows": lambda X, k: Whitening("rows", random_state=0).fit_transform(X),
    "by cells": lambda X, k: Whitening("cells", n_cells=3 * k, random_state=0).fit_transform(X),
    "by edges": lambda X, k: Whitening("edges", random_state=0).fit_transform(X),
}


def load_suite():
    """Yield the name, the rows and the reference partitions of every set; 0 marks noise."""
    with np.load(Path(os.environ["FIEDLER_DATA"]) / "suite_v1.npz") as archive:
        for name in sorted({key.rsplit("/", 1)[0] for key in archive.files}):
            references = [archive[key] for key in archive.files if key.startswith(f"{name}/labels")]
            yield name, archive[f"{name}/X"].astype(np.float64), references


def score(labels_by_k, references):
    """Return the highest adjusted Rand index over the references, without their noise."""
    scores = []
    for y in references:
        known = y > 0
        scores.append(adjusted_rand_index(y[known], labels_by_k(len(np.unique(y[known])))[known]))
    return max(scores)


def compare_views(options):
    """Print the score of communities on each view."""
    table = []
    for name in options.data:
        X, y = load_rows(name)
        k, row = len(np.unique(y)), {"data": name}
        for label, transform in VIEWS.items():
            rows = transform(X, k)
            graph = default_recipe(rows.shape[0], connect="mst").build(rows)
            row[label] = adjusted_rand_index(y, to_numpy(communities(graph, k, random_state=0).labels))
        table.append(row)
        print(row, flush=True)
    table.append({"data": "mean"} | {label: np.mean([row[label] for row in table]) for label in VIEWS})
    print(markdown_table(table))


def compare_linkages(options):
    """Print the mean score of every length and threshold, on the suite and on the other data sets."""
    loaded = ((name, *load_rows(name)) for name in options.data)
    small = [(name, X, [y + 1]) for name, X, y in loaded if X.shape[0] <= MAX_LINKAGE_ROWS]
    for title, sets in (("suite", list(load_suite())), ("other data sets", small)):
        scores = defaultdict(list)
        for _, X, references in sets:
            for length in LENGTHS:
                tree = spanning_tree(X, min(N_NEIGHBORS, X.shape[0] - 1), length=length)
                for threshold in THRESHOLDS:
                    merges = genie_merges(tree, threshold)
                    scores[length, threshold].append(score(lambda k, merges=merges: cut_tree(merges, k), references))
        for i, (name, *_) in enumerate(sets):
            row = {f"{length} {threshold}": round(values[i], 3) for (length, threshold), values in scores.items()}
            print(name, row, flush=True)
        rows = [
            {"gini_threshold": threshold} | {length: np.mean(scores[length, threshold]) for length in LENGTHS}
            for threshold in THRESHOLDS
        ]
        print(f"{title}, {len(sets)} sets\n\n{markdown_table(rows)}\n", flush=True)


TABLES = {"views": compare_views, "linkage": compare_linkages}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
