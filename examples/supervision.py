"""The effect of a few known pairs in three figures: the affinity, the violated pairs, and quality by labelled rows.

The data are four classes of digits. Apart from the scores, only the labels of the rows in known pairs are used.
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
CLASSES = (3, 5, 8, 9)
RATES = (0.02, 0.05, 0.1, 0.2)
PRINTED = {"optimizer": "doubling", "pair_weight": 1.0, "inject": False}


def digits(n):
    """Return rows and classes, sorted by class."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(np.isin(y, CLASSES))[:n]
    chosen = chosen[np.argsort(y[chosen], kind="stable")]
    return X[chosen], np.searchsorted(CLASSES, y[chosen])


def euclidean(X):
    """Build the graph without learning: exp(-d²/δ²), where δ is the median distance."""
    median = np.median(np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(len(X), 1)])
    return FullGraph(bandwidth=median / 2**0.5).build(X)


def show_affinity(graph, axis, title):
    """Show D^-½WD^-½ as an image."""
    W, degrees = graph.weights.toarray(), graph.degrees
    S = W / np.sqrt(np.outer(degrees, degrees))
    axis.imshow(S, cmap="magma", vmax=np.quantile(S, 0.99))
    axis.set(title=title, xticks=[], yticks=[])


def show_violated(X, labels, pairs, axis, title):
    """Plot the rows in two principal components, with the pairs that the clusters violate."""
    Z = fit_pca(X, 2, random_state=0)(X)
    axis.scatter(*Z.T, c=labels, cmap="tab10", s=9, vmax=10)
    violated = pairs.violations(labels)
    for links, color in ((violated.must_link, "black"), (violated.cannot_link, "red")):
        for i, j in links:
            axis.plot(*Z[[i, j]].T, color=color, lw=0.6, alpha=0.6)
    axis.set(title=f"{title}: {violated.n_pairs} of {pairs.n_pairs} pairs violated", xticks=[], yticks=[])


def quality_curves(X, y, trials):
    """Return the mean balanced Rand index over draws, by the fraction of labelled rows."""
    fixed = euclidean(X)
    curves = {"Euclidean, untuned": [], "as published": [], "default": []}
    for rate in RATES:
        scores = {name: [] for name in curves}
        for seed in range(trials):
            pairs = PairwiseConstraints.from_labels(y, rate=rate, random_state=seed)
            graphs = (fixed, *(LearnedLaplacian(**o).fit(X, constraints=pairs).graph_ for o in (PRINTED, {})))
            for name, graph in zip(scores, graphs):
                labels = SpectralClustering(len(CLASSES), graph, cut="njw", random_state=seed).fit(X).labels_
                scores[name].append(balanced_rand_index(y, labels))
        for name, values in scores.items():
            curves[name].append(np.mean(values))
    return curves


def answers(X, y, n_pairs, trials):
    """Compare a mixture that is given suggested pairs with one that is given as many random pairs."""
    model = LapGMM(len(CLASSES), pca=15, random_state=0)
    suggested = suggest_pairs(model.fit(X), n_pairs)
    print(f"LapGMM without pairs: {balanced_rand_index(y, model.labels_):.3f}")
    rows = [np.random.RandomState(seed).permutation(len(y))[: suggested.size].reshape(-1, 2) for seed in range(trials)]
    for name, draws in (("suggested", [suggested]), ("random", rows)):
        scores = []
        for drawn in draws:
            same = y[drawn[:, 0]] == y[drawn[:, 1]]
            pairs = PairwiseConstraints(drawn[same], drawn[~same], len(y), strength=3.0)
            scores.append(balanced_rand_index(y, model.fit(X, constraints=pairs).labels_))
        print(f"LapGMM, {len(suggested)} {name} pairs: {np.mean(scores):.3f}")


def main(n=400, trials=5):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    warnings.simplefilter("ignore")
    OUT.mkdir(exist_ok=True)
    X, y = digits(n)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    learned = LearnedLaplacian(random_state=0).fit(X, constraints=pairs)
    before, after = euclidean(X), learned.graph_
    print(f"{pairs}; scale {learned.scale_:.2f}, penalty {learned.penalty_}")

    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    show_affinity(before, axes[0], "Euclidean, untuned")
    show_affinity(after, axes[1], "learned, with pairs")
    figure.savefig(OUT / "learned_affinity.png", dpi=110)

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axis, graph, title in zip(axes, (before, after), ("Euclidean", "learned")):
        labels = SpectralClustering(len(CLASSES), graph, cut="njw", random_state=0).fit(X).labels_
        show_violated(X, labels, pairs, axis, title)
    figure.savefig(OUT / "violated_pairs.png", dpi=110)

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
