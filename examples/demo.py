"""Compare several methods on two data sets; make a table, two figures and a report, in about a minute."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE

from fiedler import LCGMM, GaussianMixture, KNNGraph, LapGMM, LaplacianEigenmaps, ManifoldClustering, SpectralClustering
from fiedler.datasets import load, two_moons
from fiedler.metrics import adjusted_rand_index, clustering_accuracy, match_labels, normalized_mutual_information
from fiedler.report import summarize, write_report

OUT = Path("out")

DATASETS = {
    "two_moons": {},
    "digits": {"normalize": "unit"},
}

METHODS = {
    "k-means": lambda k, graph: KMeans(k, n_init=10, random_state=0),
    "GMM": lambda k, graph: GaussianMixture(k, pca=0.98, random_state=0),
    "spectral, ncut": lambda k, graph: SpectralClustering(k, graph=graph, cut="ncut", random_state=0),
    "spectral, njw": lambda k, graph: SpectralClustering(k, graph=graph, cut="njw", random_state=0),
    "spectral, ratio": lambda k, graph: SpectralClustering(k, graph=graph, cut="ratio", random_state=0),
    "LCGMM": lambda k, graph: LCGMM(k, pca=0.98, random_state=0),
    "LapGMM": lambda k, graph: LapGMM(k, pca=0.98, random_state=0),
    "Manifold": lambda k, graph: ManifoldClustering(k, random_state=0),
}

ITERATIONS = (1, 3, 10, 40)


def run(name):
    """Run every method on a data set; return the fitted models with their scores."""
    data = load(name, **DATASETS[name])
    k = len(np.unique(data.y))
    results = {}
    for method, make in METHODS.items():
        start = time.perf_counter()
        model = make(k, KNNGraph(n_neighbors=8)).fit(data.X)
        seconds = time.perf_counter() - start
        measures = (clustering_accuracy, normalized_mutual_information, adjusted_rand_index)
        results[method] = model, (*(measure(data.y, model.labels_) for measure in measures), seconds)
    return data, results


def print_table(name, data, results):
    """Print the scores in per cent."""
    n, d = data.X.shape
    print(f"\n{name}: {n} rows, {d} features, {len(np.unique(data.y))} classes")
    print(f"{'':17}{'AC':>8}{'NMI':>8}{'ARI':>8}{'seconds':>9}")
    for method, (_, (ac, nmi, ari, seconds)) in results.items():
        print(f"{method:17}{100 * ac:8.1f}{100 * nmi:8.1f}{100 * ari:8.1f}{seconds:9.2f}")


def layout(data):
    """Return two coordinates per row: the features, or t-SNE of the first twenty Laplacian eigenmaps."""
    if data.X.shape[1] == 2:
        return data.X
    coordinates = LaplacianEigenmaps(20, random_state=0).fit_transform(data.X)
    return TSNE(init="random", random_state=0).fit_transform(coordinates / coordinates.std(axis=0))


def draw(runs, path):
    """Draw one row per data set and one column per method; clusters have the colour of the matching class."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = ["truth", *METHODS]
    figure, axes = plt.subplots(len(runs), len(columns), figsize=(2.6 * len(columns), 2.8 * len(runs)))
    for row, (name, (data, results)) in zip(axes, runs.items()):
        points = layout(data)
        for axis, column in zip(row, columns):
            labels = data.y if column == "truth" else match_labels(data.y, results[column][0].labels_)
            axis.scatter(*points.T, c=labels, cmap="tab10", vmin=0, vmax=9, s=4, linewidths=0)
            score = "" if column == "truth" else f"\nAC {100 * results[column][1][0]:.1f} %"
            axis.set(title=column + score, xticks=[], yticks=[])
        row[0].set_ylabel(name)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def draw_memberships(path):
    """Draw the memberships over the iterations, without and with the graph. [lapgmm, Fig. 1]"""
    import matplotlib.pyplot as plt

    X, y = two_moons(n_samples=600, noise=0.1, random_state=0)
    lam = LapGMM(2, random_state=0).fit(X).lam_
    models = {"GMM": GaussianMixture(2, random_state=0), "LapGMM": LapGMM(2, lam=lam, random_state=0)}
    figure, axes = plt.subplots(2, len(ITERATIONS), figsize=(3 * len(ITERATIONS), 5), sharex=True, sharey=True)
    for row, (name, model) in zip(axes, models.items()):
        for axis, max_iter in zip(row, ITERATIONS):
            memberships = model.set_params(max_iter=max_iter).fit(X).memberships_
            upper = memberships[:, 0] if np.mean(memberships[y == 0, 0]) > 0.5 else memberships[:, 1]
            axis.scatter(*X.T, c=upper, cmap="coolwarm", vmin=0, vmax=1, s=5, linewidths=0)
            axis.set(xticks=[], yticks=[], title=f"iteration {model.n_iter_}")
        row[0].set_ylabel(name)
    figure.suptitle("membership of each point in one of two clusters")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def report(data, results, path):
    """Write an HTML report with every digit, its cluster and its confidence."""
    model, (*_, seconds) = results["Manifold"]
    images = data.X.reshape(-1, *data.image_shape)
    write_report(
        summarize(model, data.X, images=images, truth=data.y, title="Handwritten digits", seconds=seconds), path
    )


def main():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the graph of the moons may be disconnected
        runs = {name: run(name) for name in DATASETS}
        for name, (data, results) in runs.items():
            print_table(name, data, results)
        OUT.mkdir(exist_ok=True)
        draw(runs, OUT / "demo.png")
        draw_memberships(OUT / "memberships.png")
        report(*runs["digits"], OUT / "report.html")
    print(f"\nFigure of the clusters: {OUT / 'demo.png'}; memberships over iterations: {OUT / 'memberships.png'}")
    print(f"Report to open in a browser: {OUT / 'report.html'}")


if __name__ == "__main__":
    main()
