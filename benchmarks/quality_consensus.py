"""Choose among partitions of several views and methods by their agreement: an experiment for ManifoldClustering.

    FIEDLER_DATA=... python benchmarks/quality_consensus.py [--data ...] [--seed 0]

Every method runs on every view of the rows, with the number of classes given. A family is one method on one view; its
members differ in an option. The *consensus* rule takes the partition of the highest

    mean over other families f of max_{j ∈ f} ARI(i, j)

without labels. It is compared with ManifoldClustering, with the partition of the highest mean agreement (medoid), and
with the best partition of all, on the sets of quality_manifold.py and of the benchmark suite of Gagolewski
(suite_v1.npz), up to 8,000 rows, in two halves: the rule was settled on the first.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from measure import markdown_table
from quality_manifold import DATA, load_rows
from quality_views import load_suite
from sklearn.cluster import KMeans

from fiedler import ManifoldClustering, Whitening
from fiedler.core.pca import fit_pca
from fiedler.graph import communities
from fiedler.graph.recipes import default_recipe
from fiedler.graph.tree import cut_tree, genie_merges, spanning_tree
from fiedler.metrics import adjusted_rand_index

MAX_ROWS = 8000
N_NEIGHBORS = 10
LINKAGES = (("mutual", 0.3), ("local", 0.1))
MAX_MIXTURE_WORK = 1e8  # n k d² of an iteration, above which mixtures are left out
MAX_MIXTURE_FEATURES = 30

# ------------------------------------------------------------------------------------------------------------- methods


def find_communities(rows, k, seed):
    graph = default_recipe(rows.shape[0], connect="mst").build(rows)
    return [communities(graph, k, resolution=gamma, random_state=seed).labels for gamma in (None, 1.0)]


def link(rows, k, seed):
    n_neighbors = min(N_NEIGHBORS, rows.shape[0] - 1)
    trees = {length: spanning_tree(rows, n_neighbors, length=length) for length, _ in LINKAGES}
    return [cut_tree(genie_merges(trees[length], threshold), k) for length, threshold in LINKAGES]


def fit_mixtures(rows, starts):
    """Return the partitions of full covariances with OAS shrinkage in every component, from several starts."""
    n, d = rows.shape
    if n * (starts[0].max() + 1) * d**2 > MAX_MIXTURE_WORK:
        return []
    return [fit_shrunken_mixture(rows, start) for start in starts]


def fit_shrunken_mixture(X, labels, max_iter=100, tol=1e-5):
    n, d = X.shape
    resp, last = np.eye(labels.max() + 1)[labels], -np.inf
    for _ in range(max_iter):
        counts = resp.sum(axis=0) + 1e-9
        joint = np.empty_like(resp)
        for c, count in enumerate(counts):
            Z = X - resp[:, c] @ X / count
            S = (resp[:, c, None] * Z).T @ Z / count
            S = shrink(S, count) + 1e-9 * (np.trace(S) / d + 1e-12) * np.eye(d)
            factor = np.linalg.cholesky(S)
            white = np.linalg.solve(factor, Z.T)
            joint[:, c] = np.log(count / n) - np.log(np.diag(factor)).sum() - 0.5 * (white**2).sum(axis=0)
        top = joint.max(axis=1, keepdims=True)
        log_density = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        resp = np.exp(joint - log_density)
        if abs(log_density.mean() - last) < tol:
            break
        last = log_density.mean()
    return joint.argmax(axis=1)


def shrink(S, count):
    """Shrink a covariance to a multiple of the identity: OAS [Chen, Wiesel, Eldar & Hero 2010]."""
    d, trace, square = len(S), np.trace(S), (S**2).sum()
    distance = (count + 1 - 2 / d) * (square - trace**2 / d)
    share = 1.0 if distance <= 0 else min(1.0, ((1 - 2 / d) * square + trace**2) / distance)
    return (1 - share) * S + share * trace / d * np.eye(d)


def candidates(X, k, seed):
    """Return pairs of family and labels."""
    views = {"rows": X}
    for by in ("rows", "cells", "edges"):
        views[f"whitened by {by}"] = Whitening(by, n_cells=3 * k, random_state=seed).fit_transform(X)
    found = []
    for view, rows in views.items():
        found += [((view, "communities"), labels) for labels in find_communities(rows, k, seed)]
        found += [((view, "linkage"), labels) for labels in link(rows, k, seed)]
    n_components = min(50, min(X.shape) - 1)
    rows = fit_pca(X, n_components, random_state=seed)(X) if sp.issparse(X) or X.shape[1] > 50 else X
    kmeans = KMeans(k, n_init=3, random_state=seed).fit_predict(rows)
    starts = [kmeans, found[0][1], found[2][1]]
    mixtures = fit_mixtures(np.asarray(rows, dtype=float)[:, :MAX_MIXTURE_FEATURES], starts)
    found += [(("rows", "mixture"), labels) for labels in mixtures]
    found.append((("rows", "k-means"), kmeans))
    return [(family, labels) for family, labels in found if len(np.unique(labels)) == k]


# --------------------------------------------------------------------------------------------------------------- rules


def agreement_matrix(partitions):
    A = np.eye(len(partitions))
    for i, j in combinations(range(len(partitions)), 2):
        A[i, j] = A[j, i] = max(0.0, adjusted_rand_index(partitions[i], partitions[j]))
    return A


def medoid(A, families):
    return int(np.argmax(A.sum(axis=1)))


def consensus(A, families):
    names = sorted(set(families))
    best = np.stack([A[:, [family == name for family in families]].max(axis=1) for name in names], axis=1)
    own = np.array([names.index(family) for family in families])
    best[np.arange(len(own)), own] = 0
    return int(np.argmax(best.sum(axis=1)))


def evaluate(X, references, seed):
    """Return the scores of one set: the best over its references, each with its number of clusters."""
    scores = []
    for y in references:
        known = y > 0
        k = len(np.unique(y[known]))
        found = candidates(X, k, seed)
        families, partitions = zip(*found)
        A = agreement_matrix(partitions)
        values = [adjusted_rand_index(y[known], labels[known]) for labels in partitions]
        default = ManifoldClustering(k, random_state=seed).fit(X).labels_
        scores.append(
            {
                "ManifoldClustering": adjusted_rand_index(y[known], default[known]),
                "medoid": values[medoid(A, families)],
                "consensus": values[consensus(A, families)],
                "best": max(values),
            }
        )
    return {rule: max(score[rule] for score in scores) for rule in scores[0]}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=sorted(DATA))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    own = ((name, *load_rows(name)) for name in options.data)
    groups = {"suite": list(load_suite()), "other sets": [(name, X, [y + 1]) for name, X, y in own]}
    table = []
    for group, sets in groups.items():
        for i, (name, X, references) in enumerate(sets):
            if X.shape[0] <= MAX_ROWS:
                half = "second half" if i % 2 else "first half"
                table.append({"group": group, "half": half, "data": name} | evaluate(X, references, options.seed))
                print(table[-1], flush=True)
    rules = ("ManifoldClustering", "medoid", "consensus", "best")
    means = []
    for group, half in sorted({(row["group"], row["half"]) for row in table}):
        rows = [row for row in table if (row["group"], row["half"]) == (group, half)]
        means.append({"sets": f"{group}, {half}", "n": len(rows)} | {r: np.mean([x[r] for x in rows]) for r in rules})
    print(markdown_table(means))


if __name__ == "__main__":
    main()
