"""Nonnegative Laplacian embedding in three figures: its updates, the memberships, and the best of N starts.

The data are thirty images of three people and ten images of ten other people, the outliers [nle, Figs 2, 3 and 6]. Set
FIEDLER_DATA to the folder of the face data; without it, digits are used. Similarities are cosines of centred images,
since plain inner products do not separate the outliers.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from fiedler import NLE, FullGraph, KNNGraph
from fiedler.core.kmeans import kmeans
from fiedler.datasets import load
from fiedler.embedding.nle import Update, run_updates, unit_columns
from fiedler.graph.cuts import cut_eigenvectors, cut_problem, polish
from fiedler.metrics import clustering_accuracy

OUT = Path("out")
ITERATIONS_SHOWN = (1, 10, 50, 300)


def images():
    """Return ten images of each of three classes, then one of each of ten others (digits: from the seven others)."""
    faces = "FIEDLER_DATA" in os.environ
    data = load("orl") if faces else load_digits()
    X, y = np.asarray(data.X if faces else data.data, dtype=float), np.asarray(data.y if faces else data.target)
    members = np.concatenate([np.flatnonzero(y == c)[:10] for c in range(3)])
    others = [
        np.flatnonzero(y == c)[i] for i, c in enumerate([*range(3, 13)] if faces else [3, 4, 5, 6, 7, 8, 9, 3, 4, 5])
    ]
    rows = np.concatenate([members, others])
    return X[rows] - X[rows].mean(axis=0), y[members], "faces" if faces else "digits"


def evolution(X, axes):
    """Plot the embedding in three dimensions after 1, 10, 50 and 300 updates from a random start."""
    problem = cut_problem(FullGraph("cosine", signed=True).build(X), "ratio", "shift")
    update, Q = Update(problem, np.random.RandomState(0)), np.random.RandomState(1).uniform(size=(len(X), 3))
    Q = unit_columns(Q)
    for axis, steps in zip(axes, np.diff([0, *ITERATIONS_SHOWN])):
        for _ in range(steps):
            Q, objective = update.step(Q)
        axis.scatter(*Q.T, c=np.repeat(range(3), 10), cmap="brg", s=18)
        axis.set(title=f"objective {objective:.2f}", xticks=[], yticks=[], zticks=[])


def hinton(memberships, axis):
    """Draw a square for every membership, with an area in proportion to it."""
    for (i, k), share in np.ndenumerate(memberships):
        side = 0.9 * np.sqrt(share)
        axis.add_patch(_square(i + 1, k + 1, side, "tab:blue" if i < 30 else "tab:orange"))
    axis.set(xlim=(0, len(memberships) + 1), ylim=(0.4, 3.6), yticks=[1, 2, 3], xlabel="image", ylabel="cluster")
    axis.set_aspect("equal")
    axis.invert_yaxis()


def _square(x, y, side, color):
    from matplotlib.patches import Rectangle

    return Rectangle((x - side / 2, y - side / 2), side, side, color=color)


def best_of(X, k, starts):
    """Return the mean lowest cut among N starts of spectral clustering and of NLE, for N = 1, 2, 4, ..."""
    graph = KNNGraph(8, connect="mst").build(X)
    rng = np.random.RandomState(0)
    problem = cut_problem(graph, "ratio")
    update, vectors = Update(problem, rng), cut_eigenvectors(graph, problem, k, "ratio", rng)
    cuts = {"spectral clustering": [], "NLE": [], "NLE, polished": []}
    for seed in range(starts):
        labels = kmeans(vectors, k, n_init=1, random_state=seed).labels
        result = run_updates(update, unit_columns(np.eye(k)[labels] + 0.2), max_iter=300, tol=1e-4)
        values = (problem.value(labels.astype(int), k), result.value, polish(problem, result.labels, k)[1])
        for name, value in zip(cuts, values):
            cuts[name].append(value)
    sizes = [2**i for i in range(int(np.log2(starts)) + 1)]
    return sizes, {
        name: [np.mean(np.min(np.reshape(values, (-1, size)), axis=1)) for size in sizes]
        for name, values in cuts.items()
    }


def main(starts=64):
    warnings.simplefilter("ignore")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y, name = images()
    OUT.mkdir(exist_ok=True)
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), subplot_kw={"projection": "3d"}, layout="constrained")
    evolution(X[:30], axes)
    figure.savefig(OUT / "nle_evolution.png", dpi=130)

    model = NLE(3, FullGraph("cosine", signed=True), signed="shift", init="auto", random_state=0).fit(X)
    is_outlier = np.arange(40) >= 30
    sparse = NLE(3, KNNGraph(5, weight="heat"), cut="ncut", random_state=0).fit(X)
    scores = {
        "largest membership, complete graph": 1 - model.memberships_.max(axis=1),
        "degree, five neighbours": -np.asarray(sparse.graph_.degrees),
        "outlier_score_, five neighbours": sparse.outlier_score_,
    }
    print(f"{name}: accuracy on the thirty members {clustering_accuracy(y, model.labels_[:30]):.2f}")
    for label, score in scores.items():
        print(f"  outliers detected by {label}: area under the curve {roc_auc_score(is_outlier, score):.2f}")
    figure, axis = plt.subplots(figsize=(12, 1.9), layout="constrained")
    hinton(model.memberships_, axis)
    figure.savefig(OUT / "nle_memberships.png", dpi=130)

    digits = load_digits()
    sizes, curves = best_of(digits.data, 10, starts)
    figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for label, values in curves.items():
        axis.plot(sizes, values, marker="o", ms=4, label=label)
    axis.set(xscale="log", xlabel="starts", ylabel="lowest Ratio Cut", title="digits, best of N starts")
    axis.legend(frameon=False)
    figure.savefig(OUT / "nle_best_of.png", dpi=130)
    print(f"{OUT}/nle_evolution.png, {OUT}/nle_memberships.png, {OUT}/nle_best_of.png")


if __name__ == "__main__":
    main()
