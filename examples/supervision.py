"""What a few known pairs do, in three pictures: the affinity, the broken pairs, and quality against knowledge.

Digits of four kinds. Left out of all pictures: the labels of everything but the rows that a person was asked about.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from fiedler import FullGraph, LapGMM, SpectralClustering
from fiedler.core.pca import fit_pca
from fiedler.metrics import balanced_rand_index
from fiedler.supervision import LearnedLaplacian, PairwiseConstraints, suggest_pairs

OUT = Path("out")
KINDS = (3, 5, 8, 9)
RATES = (0.02, 0.05, 0.1, 0.2)
PRINTED = {"optimizer": "doubling", "pair_weight": 1.0, "inject": False}


def digits(n):
    """Rows and classes, sorted by class."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(np.isin(y, KINDS))[:n]
    chosen = chosen[np.argsort(y[chosen], kind="stable")]
    return X[chosen], np.searchsorted(KINDS, y[chosen])


def euclidean(X):
    """The graph without anything learnt: exp(-d²/δ²), δ the median distance."""
    median = np.median(np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(len(X), 1)])
    return FullGraph(bandwidth=median / 2**0.5).build(X)


def show_affinity(graph, axis, title):
    """D^-½WD^-½ as an image."""
    W, degrees = graph.weights.toarray(), graph.degrees
    S = W / np.sqrt(np.outer(degrees, degrees))
    axis.imshow(S, cmap="magma", vmax=np.quantile(S, 0.99))
    axis.set(title=title, xticks=[], yticks=[])


def show_broken(X, labels, pairs, axis, title):
    """Rows in their first two principal coordinates, and the pairs that the clusters break."""
    Z = fit_pca(X, 2, random_state=0)(X)
    axis.scatter(*Z.T, c=labels, cmap="tab10", s=9, vmax=10)
    broken = pairs.violations(labels)
    for links, colour in ((broken.must_link, "black"), (broken.cannot_link, "red")):
        for i, j in links:
            axis.plot(*Z[[i, j]].T, color=colour, lw=0.6, alpha=0.6)
    axis.set(title=f"{title}: {broken.n_pairs} of {pairs.n_pairs} pairs broken", xticks=[], yticks=[])


def quality_curves(X, y, trials):
    """Balanced Rand index by the share of labelled rows, on average over draws."""
    fixed = euclidean(X)
    curves = {"Euclidean, untuned": [], "as published": [], "default": []}
    for rate in RATES:
        found = {name: [] for name in curves}
        for seed in range(trials):
            pairs = PairwiseConstraints.from_labels(y, rate=rate, random_state=seed)
            graphs = (fixed, *(LearnedLaplacian(**o).fit(X, constraints=pairs).graph_ for o in (PRINTED, {})))
            for name, graph in zip(found, graphs):
                labels = SpectralClustering(len(KINDS), graph, cut="njw", random_state=seed).fit(X).labels_
                found[name].append(balanced_rand_index(y, labels))
        for name, values in found.items():
            curves[name].append(np.mean(values))
    return curves


def answers(X, y, n_pairs, trials):
    """A mixture told about pairs that it asked for, and about as many at random."""
    model = LapGMM(len(KINDS), pca=15, random_state=0)
    asked = suggest_pairs(model.fit(X), n_pairs)
    print(f"LapGMM, nothing known: {balanced_rand_index(y, model.labels_):.3f}")
    rows = [np.random.RandomState(seed).permutation(len(y))[: asked.size].reshape(-1, 2) for seed in range(trials)]
    for name, draws in (("asked for", [asked]), ("at random", rows)):
        scores = []
        for drawn in draws:
            same = y[drawn[:, 0]] == y[drawn[:, 1]]
            pairs = PairwiseConstraints(drawn[same], drawn[~same], len(y), strength=3.0)
            scores.append(balanced_rand_index(y, model.fit(X, constraints=pairs).labels_))
        print(f"LapGMM, {len(asked)} pairs {name}: {np.mean(scores):.3f}")


def main(n=400, trials=5):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    warnings.simplefilter("ignore")
    OUT.mkdir(exist_ok=True)
    X, y = digits(n)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    learnt = LearnedLaplacian(random_state=0).fit(X, constraints=pairs)
    before, after = euclidean(X), learnt.graph_
    print(f"{pairs}; scale {learnt.scale_:.2f}, penalty {learnt.penalty_}")

    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    show_affinity(before, axes[0], "Euclidean, untuned")
    show_affinity(after, axes[1], "learned, pairs written in")
    figure.savefig(OUT / "learned_affinity.png", dpi=110)

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axis, graph, title in zip(axes, (before, after), ("Euclidean", "learned")):
        labels = SpectralClustering(len(KINDS), graph, cut="njw", random_state=0).fit(X).labels_
        show_broken(X, labels, pairs, axis, title)
    figure.savefig(OUT / "broken_pairs.png", dpi=110)

    figure, axis = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for name, values in quality_curves(X, y, trials).items():
        axis.plot([100 * rate for rate in RATES], values, marker="o", label=name)
        print(f"{name}: {', '.join(f'{value:.3f}' for value in values)}")
    axis.set(xlabel="rows labelled, %", ylabel="Balanced Rand index")
    axis.legend()
    figure.savefig(OUT / "quality_by_pairs.png", dpi=110)
    answers(X, y, 40, trials)


if __name__ == "__main__":
    main()
