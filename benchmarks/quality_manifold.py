"""Compare ManifoldClustering with other methods on the same rows, without labels.

    FIEDLER_DATA=... python benchmarks/quality_manifold.py compare [--data ...] [--seeds 5] [--models ...]
    FIEDLER_DATA=... python benchmarks/quality_manifold.py soft | new | known

=========  ===========================================================================================================
compare    accuracy and NMI for known K; UMAP (10 dimensions, 20 neighbours, min_dist 0) + GMM; Leiden on the binary
           graph of 15 neighbours, with a resolution that gives K communities; scikit-learn's SpectralClustering and
           HDBSCAN (without K; noise counts as a cluster)
soft       calibration error of the memberships, after matching clusters to classes
new        ``predict`` on 20 % of the rows after a fit on the others, compared with a fit on all rows
known      accuracy with one label per class, and with fifty pairs
=========  ===========================================================================================================

Rows are preprocessed as in quality_mixture.py: images are scaled to unit length, measurements standardised, texts
weighted by tf-idf. UMAP, Leiden and igraph are optional (pip install umap-learn leidenalg); without them, choose other
methods by --models. Results are appended to out/manifold.jsonl; ``compare`` skips those that are already there.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measure import markdown_table
from quality_mixture import load_rows as load_real
from sklearn.cluster import HDBSCAN
from sklearn.cluster import SpectralClustering as SklearnSpectralClustering
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.mixture import GaussianMixture as SklearnGaussianMixture
from sklearn.preprocessing import StandardScaler

from fiedler import KNNGraph, ManifoldClustering, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import row_indices
from fiedler.datasets import circles, two_moons
from fiedler.metrics import adjusted_rand_index, calibration_error, clustering_accuracy, normalized_mutual_information

RECORDS = Path("out") / "manifold.jsonl"

# -------------------------------------------------------------------------------------------------------------- data


def make_arcs(sizes, widths, seed, dimensions=20):
    """Draw noisy curves of the given sizes and widths in three dimensions; embed them in twenty and add noise."""
    rng = np.random.RandomState(seed)
    parts = []
    for size, width in zip(sizes, widths):
        t, center = rng.uniform(0, np.pi, size), 2.2 * rng.normal(size=3)
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        curve = np.stack([np.cos(t), np.sin(t), 0.3 * np.sin(2 * t)], axis=1) @ rotation + center
        parts.append(curve + width * rng.normal(size=curve.shape))
    basis = np.linalg.qr(rng.normal(size=(dimensions, 3)))[0]
    X = np.concatenate(parts) @ basis.T
    return X + 0.05 * rng.normal(size=X.shape), np.repeat(np.arange(len(sizes)), sizes)


def make_uneven_blobs():
    """Draw eight Gaussian clusters of 800 to 30 rows; smaller clusters are wider."""
    rng = np.random.RandomState(5)
    centers, sizes = 2.2 * rng.normal(size=(8, 10)), [800, 400, 300, 200, 100, 60, 40, 30]
    parts = [centers[i] + (0.6 + 0.1 * i) * rng.normal(size=(size, 10)) for i, size in enumerate(sizes)]
    return np.concatenate(parts), np.repeat(np.arange(8), sizes)


def load_standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


TOY = {
    "iris": lambda: load_standardised(load_iris),
    "wine": lambda: load_standardised(load_wine),
    "breast_cancer": lambda: load_standardised(load_breast_cancer),
    "moons": lambda: two_moons(1000, noise=0.1, random_state=0),
    "circles": lambda: circles(1000, noise=0.08, random_state=0),
    "arcs": lambda: make_arcs([300] * 6, [0.12] * 6, seed=1),
    "arcs of uneven size": lambda: make_arcs([1000, 500, 250, 120, 60, 30], [0.12] * 6, seed=2),
    "arcs of uneven density": lambda: make_arcs([300] * 6, [0.05, 0.08, 0.12, 0.16, 0.2, 0.25], seed=3),
    "uneven blobs": make_uneven_blobs,
}
REAL = (
    *("digits", "usps", "coil20", "orl", "umist", "yale", "letter", "tdt2", "reuters21578", "vehicle", "ecoli"),
    *("glass", "libras", "dermatology", "zoo", "soybean_small", "haberman"),
)
DATA = (*REAL, *TOY)


def load_rows(name):
    """Load the rows and integer classes of a data set."""
    X, y = TOY[name]() if name in TOY else load_real(name)
    return X, np.unique(y, return_inverse=True)[1]


# ------------------------------------------------------------------------------------------------------------ models


def fiedler(X, k, seed):
    model = ManifoldClustering(k, random_state=seed).fit(X)
    return to_numpy(model.labels_), to_numpy(model.memberships_)


def umap_gmm(X, k, seed):
    from umap import UMAP

    n = X.shape[0]
    options = {"n_components": min(10, n - 2), "n_neighbors": min(20, n - 1), "min_dist": 0.0, "random_state": seed}
    Z = UMAP(init="spectral" if n > 60 else "random", **options).fit_transform(X).astype(np.float64)
    for ridge in (1e-6, 1e-4, 1e-2):
        try:
            mixture = SklearnGaussianMixture(k, n_init=5, random_state=seed, reg_covar=ridge).fit(Z)
        except ValueError:  # a covariance matrix is not positive definite
            continue
        return mixture.predict(Z), mixture.predict_proba(Z)
    raise RuntimeError("the covariance is singular even with the largest ridge")


def leiden(X, k, seed, n_neighbors=15):
    """Search for a resolution that gives k communities; return the partition whose number is closest to k."""
    import igraph
    import leidenalg

    W = KNNGraph(min(n_neighbors, X.shape[0] - 1)).build(X).weights
    edges = np.stack([row_indices(W), W.indices], axis=1)
    graph = igraph.Graph(n=X.shape[0], edges=edges[edges[:, 0] < edges[:, 1]].tolist())
    low, high, best = 1e-3, 10.0, (np.inf, None)
    for _ in range(30):
        resolution = np.sqrt(low * high)
        partition = leidenalg.find_partition(
            graph, leidenalg.RBConfigurationVertexPartition, resolution_parameter=resolution, seed=seed
        )
        best = min(best, (abs(len(partition) - k), partition.membership), key=lambda pair: pair[0])
        if len(partition) == k:
            break
        low, high = (resolution, high) if len(partition) < k else (low, resolution)
    return np.array(best[1]), None


def spectral(X, k, seed):
    if X.shape[0] > 10_000:
        return None
    n_neighbors = min(10, X.shape[0] - 1)
    model = SklearnSpectralClustering(k, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=seed)
    return model.fit_predict(X), None


def hdbscan(X, k, seed):
    if X.shape[0] > 10_000 or not isinstance(X, np.ndarray):
        return None
    return HDBSCAN(copy=True).fit_predict(X), None


MODELS = {  # (X, k, seed) -> labels, memberships or None; None if the data are too large
    "fiedler": fiedler,
    "UMAP + GMM": umap_gmm,
    "Leiden, 15": leiden,
    "SpectralClustering": spectral,
    "HDBSCAN": hdbscan,
}
DETERMINISTIC = ("HDBSCAN",)

# ------------------------------------------------------------------------------------------------------------ records


def read_records(table):
    """Return the records of one table."""
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    return [row for row in map(json.loads, lines) if row["table"] == table]


def add_record(**row):
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def compare_models(options):
    """Run every model on every data set with every seed, and print the table."""
    done = {(row["data"], row["model"], row["seed"]) for row in read_records("compare")}
    for name in options.data:
        X, y = load_rows(name)
        k = len(np.unique(y))
        for label in options.models:
            for seed in range(1 if label in DETERMINISTIC else options.seeds):
                if (name, label, seed) in done:
                    continue
                start = time.perf_counter()
                result = MODELS[label](X, k, seed)
                if result is None:
                    break
                seconds, (labels, memberships) = time.perf_counter() - start, result
                add_record(
                    table="compare",
                    data=name,
                    model=label,
                    seed=seed,
                    ac=clustering_accuracy(y, labels),
                    nmi=normalized_mutual_information(y, labels),
                    ece=None if memberships is None else calibration_error(y, memberships),
                    seconds=seconds,
                )
    print(format_comparison(options.data))


def format_comparison(data):
    """Format the mean scores, and whether fiedler is at least as good as UMAP + GMM and Leiden where both were run."""
    records = read_records("compare")
    table, n_wins = [], 0
    for name in data:
        scores = {
            label: [(row["ac"], row["nmi"]) for row in records if (row["data"], row["model"]) == (name, label)]
            for label in MODELS
        }
        means = {label: np.mean(values, axis=0) for label, values in scores.items() if values}
        row = {"data": name} | {label: f"{100 * ac:.1f}/{100 * nmi:.1f}" for label, (ac, nmi) in means.items()}
        if {"fiedler", "UMAP + GMM", "Leiden, 15"} <= means.keys():
            wins = all((means["fiedler"] >= means[label] - 1e-9).all() for label in ("UMAP + GMM", "Leiden, 15"))
            n_wins += wins
            row["at least as good"] = "yes" if wins else "no"
        table.append(row)
    n_compared = sum("at least as good" in row for row in table)
    summary = f"at least as good as UMAP + GMM and Leiden in both scores on {n_wins} of {n_compared} data sets"
    return f"{markdown_table(table)}\n\n{summary}"


def print_calibration(options):
    """Print the mean calibration errors from the records of ``compare``."""
    records = [row for row in read_records("compare") if row["ece"] is not None]
    table = []
    for name in options.data:
        errors = {
            label: [row["ece"] for row in records if (row["data"], row["model"]) == (name, label)]
            for label in ("fiedler", "UMAP + GMM")
        }
        table.append({"data": name} | {label: np.mean(values) for label, values in errors.items() if values})
    print(markdown_table(table))


def predict_new_rows(options):
    """Predict held-out rows, and compare with a fit on all rows."""
    for name in options.data:
        X, y = load_rows(name)
        k, order = len(np.unique(y)), np.random.RandomState(0).permutation(X.shape[0])
        test, train = order[: X.shape[0] // 5], order[X.shape[0] // 5 :]
        for seed in range(options.seeds):
            full_model = ManifoldClustering(k, random_state=seed).fit(X)
            train_model = ManifoldClustering(k, random_state=seed).fit(X[train])
            proba = to_numpy(train_model.predict_proba(X[test]))
            labels = proba.argmax(axis=1)
            add_record(
                table="new",
                data=name,
                seed=seed,
                ari=adjusted_rand_index(to_numpy(full_model.labels_)[test], labels),
                ac=clustering_accuracy(y[test], labels),
                ece=calibration_error(y[test], proba),
            )


def compare_supervision(options):
    """Record the accuracy without supervision, with one label per class, and with fifty random pairs."""
    for name in options.data:
        X, y = load_rows(name)
        k = len(np.unique(y))
        for seed in range(options.seeds):
            rng = np.random.RandomState(seed)
            labels = np.full(len(y), -1)
            labelled = [rng.choice(np.flatnonzero(y == c)) for c in range(k)]
            labels[labelled] = y[labelled]
            pairs = rng.randint(len(y), size=(60, 2))
            pairs = pairs[pairs[:, 0] != pairs[:, 1]][:50]
            same = y[pairs[:, 0]] == y[pairs[:, 1]]
            constraints = PairwiseConstraints(pairs[same], pairs[~same], len(y))
            models = {
                "unsupervised": ManifoldClustering(k, random_state=seed).fit(X),
                "labels": ManifoldClustering(k, random_state=seed).fit(X, labels),
                "pairs": ManifoldClustering(k, random_state=seed).fit(X, constraints=constraints),
            }
            scores = {label: clustering_accuracy(y, model.labels_) for label, model in models.items()}
            add_record(table="known", data=name, seed=seed, **scores)


TABLES = {
    "compare": compare_models,
    "soft": print_calibration,
    "new": predict_new_rows,
    "known": compare_supervision,
}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
