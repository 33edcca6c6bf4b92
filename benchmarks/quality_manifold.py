"""ManifoldClustering beside what people use today: one experiment, the same rows for everyone, nobody sees a label.

    FIEDLER_DATA=... python benchmarks/quality_manifold.py compare [--data ...] [--seeds 5] [--models ...]
    FIEDLER_DATA=... python benchmarks/quality_manifold.py number | soft | new | known

=========  ===========================================================================================================
compare    accuracy and NMI, K given; UMAP (10 dimensions, 20 neighbours, min_dist 0) + GMM; Leiden on the binary graph
           of 15 neighbours, its resolution searched until K communities come out; scikit-learn's SpectralClustering
           and HDBSCAN (no K; its noise counts as a cluster)
number     n_clusters='auto' on the sets of fewer than 15 classes
soft       calibration error of the memberships, after matching
new        a fit on 80 % of the rows and ``predict`` on the rest, beside a fit on all of them
known      one label a class, and fifty pairs
=========  ===========================================================================================================

Rows are prepared as in quality_mixture.py: images at unit length, measurements standardised, texts by tf-idf. UMAP,
Leiden and igraph are measured, not depended on: pip install umap-learn leidenalg. Each result is added to
out/manifold.jsonl, and what is there is not done again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measure import markdown
from quality_mixture import rows as real_rows
from sklearn.cluster import HDBSCAN
from sklearn.cluster import SpectralClustering as PeerSpectralClustering
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.mixture import GaussianMixture as PeerMixture
from sklearn.preprocessing import StandardScaler

from fiedler import KNNGraph, ManifoldClustering, PairwiseConstraints
from fiedler.core.backend import to_numpy
from fiedler.core.sparse import row_indices
from fiedler.datasets import circles, two_moons
from fiedler.metrics import adjusted_rand_index, calibration_error, clustering_accuracy, normalized_mutual_information

RECORDS = Path("out") / "manifold.jsonl"

# ---------------------------------------------------------------------------------------------------------- the data


def arcs(sizes, noise, seed, dimensions=20):
    """Curves in three dimensions, turned and moved at random, of given sizes and widths; then noise in twenty."""
    rng = np.random.RandomState(seed)
    parts = []
    for size, width in zip(sizes, noise):
        t, center = rng.uniform(0, np.pi, size), 2.2 * rng.normal(size=3)
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        curve = np.stack([np.cos(t), np.sin(t), 0.3 * np.sin(2 * t)], axis=1) @ turn + center
        parts.append(curve + width * rng.normal(size=curve.shape))
    plane = np.linalg.qr(rng.normal(size=(dimensions, 3)))[0]
    X = np.concatenate(parts) @ plane.T
    return X + 0.05 * rng.normal(size=X.shape), np.repeat(np.arange(len(sizes)), sizes)


def uneven_blobs():
    """Eight Gaussians of 800 to 30 rows, the small ones wider."""
    rng = np.random.RandomState(5)
    centers, sizes = 2.2 * rng.normal(size=(8, 10)), [800, 400, 300, 200, 100, 60, 40, 30]
    parts = [centers[i] + (0.6 + 0.1 * i) * rng.normal(size=(size, 10)) for i, size in enumerate(sizes)]
    return np.concatenate(parts), np.repeat(np.arange(8), sizes)


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


MADE = {
    "iris": lambda: standardised(load_iris),
    "wine": lambda: standardised(load_wine),
    "breast_cancer": lambda: standardised(load_breast_cancer),
    "moons": lambda: two_moons(1000, noise=0.1, random_state=0),
    "circles": lambda: circles(1000, noise=0.08, random_state=0),
    "arcs": lambda: arcs([300] * 6, [0.12] * 6, seed=1),
    "arcs of uneven size": lambda: arcs([1000, 500, 250, 120, 60, 30], [0.12] * 6, seed=2),
    "arcs of uneven density": lambda: arcs([300] * 6, [0.05, 0.08, 0.12, 0.16, 0.2, 0.25], seed=3),
    "uneven blobs": uneven_blobs,
}
REAL = (
    *("digits", "usps", "coil20", "orl", "umist", "yale", "letter", "tdt2", "reuters21578", "vehicle", "ecoli"),
    *("glass", "libras", "dermatology", "zoo", "soybean_small", "haberman"),
)
DATA = (*REAL, *MADE)


def rows(name):
    X, y = MADE[name]() if name in MADE else real_rows(name)
    return X, np.unique(y, return_inverse=True)[1]


# -------------------------------------------------------------------------------------------------------- the models


def fiedler(X, k, seed):
    model = ManifoldClustering(k, random_state=seed).fit(X)
    return to_numpy(model.labels_), to_numpy(model.memberships_)


def umap_gmm(X, k, seed):
    from umap import UMAP

    n = X.shape[0]
    options = {"n_components": min(10, n - 2), "n_neighbors": min(20, n - 1), "min_dist": 0.0, "random_state": seed}
    Z = UMAP(init="spectral" if n > 60 else "random", **options).fit_transform(X).astype(np.float64)
    for floor in (1e-6, 1e-4, 1e-2):
        try:
            mixture = PeerMixture(k, n_init=5, random_state=seed, reg_covar=floor).fit(Z)
        except ValueError:  # a covariance that is not positive definite
            continue
        return mixture.predict(Z), mixture.predict_proba(Z)
    raise RuntimeError("no ridge was enough")


def leiden(X, k, seed, n_neighbors=15):
    import igraph
    import leidenalg

    W = KNNGraph(min(n_neighbors, X.shape[0] - 1)).build(X).weights
    ends = np.stack([row_indices(W), W.indices], axis=1)
    graph = igraph.Graph(n=X.shape[0], edges=ends[ends[:, 0] < ends[:, 1]].tolist())
    low, high, best = 1e-3, 10.0, (np.inf, None)
    for _ in range(30):
        middle = np.sqrt(low * high)
        found = leidenalg.find_partition(
            graph, leidenalg.RBConfigurationVertexPartition, resolution_parameter=middle, seed=seed
        )
        best = min(best, (abs(len(found) - k), found.membership), key=lambda pair: pair[0])
        if len(found) == k:
            break
        low, high = (middle, high) if len(found) < k else (low, middle)
    return np.array(best[1]), None


def spectral(X, k, seed):
    if X.shape[0] > 10_000:
        return None
    n_neighbors = min(10, X.shape[0] - 1)
    model = PeerSpectralClustering(k, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=seed)
    return model.fit_predict(X), None


def hdbscan(X, k, seed):
    if X.shape[0] > 10_000 or not isinstance(X, np.ndarray):
        return None
    return HDBSCAN(copy=True).fit_predict(X), None


MODELS = {
    "fiedler": fiedler,
    "UMAP + GMM": umap_gmm,
    "Leiden, 15": leiden,
    "SpectralClustering": spectral,
    "HDBSCAN": hdbscan,
}
SEEDLESS = ("HDBSCAN",)

# -------------------------------------------------------------------------------------------------------- the records


def recorded():
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def record(**row):
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def compare(options):
    """Every model on every set, for every seed; then the table."""
    done = {(row["data"], row["model"], row["seed"]) for row in recorded() if row["table"] == "compare"}
    for name in options.data:
        X, y = rows(name)
        k = len(np.unique(y))
        for label in options.models:
            for seed in range(1 if label in SEEDLESS else options.seeds):
                if (name, label, seed) in done:
                    continue
                start = time.perf_counter()
                found = MODELS[label](X, k, seed)
                if found is None:
                    break
                seconds, (labels, memberships) = time.perf_counter() - start, found
                record(
                    table="compare",
                    data=name,
                    model=label,
                    seed=seed,
                    ac=clustering_accuracy(y, labels),
                    nmi=normalized_mutual_information(y, labels),
                    ece=None if memberships is None else calibration_error(y, memberships),
                    seconds=seconds,
                )
    print(compare_table(options.data))


def compare_table(data):
    found = [row for row in recorded() if row["table"] == "compare"]
    table, wins = [], 0
    for name in data:
        means = {
            label: np.mean(
                [(row["ac"], row["nmi"]) for row in found if (row["data"], row["model"]) == (name, label)], axis=0
            )
            for label in MODELS
            if any((row["data"], row["model"]) == (name, label) for row in found)
        }
        ours = means["fiedler"]
        won = all((ours >= means[label] - 1e-9).all() for label in ("UMAP + GMM", "Leiden, 15"))
        wins += won
        shown = {label: f"{100 * ac:.1f}/{100 * nmi:.1f}" for label, (ac, nmi) in means.items()}
        table.append({"data": name} | shown | {"at least as good": "yes" if won else "no"})
    return f"{markdown(table)}\n\nat least as good as UMAP + GMM and Leiden in both on {wins} of {len(data)} sets"


def soft(options):
    """Mean calibration errors, from the records of ``compare``."""
    found = [row for row in recorded() if row["table"] == "compare" and row["ece"] is not None]
    table = []
    for name in options.data:
        of = {
            m: [row["ece"] for row in found if (row["data"], row["model"]) == (name, m)]
            for m in ("fiedler", "UMAP + GMM")
        }
        table.append({"data": name} | {model: np.mean(values) for model, values in of.items() if values})
    print(markdown(table))


def number(options):
    """The number of clusters, counted."""
    done = {row["data"] for row in recorded() if row["table"] == "number"}
    for name in options.data:
        X, y = rows(name)
        k = len(np.unique(y))
        if name in done or k >= 15:
            continue
        start = time.perf_counter()
        model = ManifoldClustering("auto", random_state=0).fit(X)
        gap = model.evidence_.candidates[int(np.argmax(model.evidence_.gaps))]
        top = model.evidence_.candidates[int(np.argmax(model.evidence_.modularity))]
        seconds = time.perf_counter() - start
        record(
            table="number", data=name, classes=k, found=model.n_clusters_, eigengap=gap, modularity=top, seconds=seconds
        )
    table = [row for row in recorded() if row["table"] == "number" and row["data"] in options.data]
    close = {of: sum(abs(row[of] - row["classes"]) <= 1 for row in table) for of in ("found", "eigengap", "modularity")}
    print(
        markdown([{key: row[key] for key in ("data", "classes", "found", "eigengap", "modularity")} for row in table])
    )
    print(f"within one of the classes, of {len(table)} sets: {close}")


def new(options):
    """Held-out rows: predicted, and clustered with the others."""
    for name in options.data:
        X, y = rows(name)
        k, order = len(np.unique(y)), np.random.RandomState(0).permutation(X.shape[0])
        held, kept = order[: X.shape[0] // 5], order[X.shape[0] // 5 :]
        for seed in range(options.seeds):
            whole = ManifoldClustering(k, random_state=seed).fit(X)
            part = ManifoldClustering(k, random_state=seed).fit(X[kept])
            proba = to_numpy(part.predict_proba(X[held]))
            labels = proba.argmax(axis=1)
            record(
                table="new",
                data=name,
                seed=seed,
                ari=adjusted_rand_index(to_numpy(whole.labels_)[held], labels),
                ac=clustering_accuracy(y[held], labels),
                ece=calibration_error(y[held], proba),
            )


def known(options):
    """Accuracy without, with one label a class, and with fifty pairs drawn at random."""
    for name in options.data:
        X, y = rows(name)
        k = len(np.unique(y))
        for seed in range(options.seeds):
            rng = np.random.RandomState(seed)
            labels = np.full(len(y), -1)
            chosen = [rng.choice(np.flatnonzero(y == c)) for c in range(k)]
            labels[chosen] = y[chosen]
            pairs = rng.randint(len(y), size=(60, 2))
            pairs = pairs[pairs[:, 0] != pairs[:, 1]][:50]
            same = y[pairs[:, 0]] == y[pairs[:, 1]]
            told = PairwiseConstraints(pairs[same], pairs[~same], len(y))
            fits = {
                "nothing": ManifoldClustering(k, random_state=seed).fit(X),
                "labels": ManifoldClustering(k, random_state=seed).fit(X, labels),
                "pairs": ManifoldClustering(k, random_state=seed).fit(X, constraints=told),
            }
            scores = {what: clustering_accuracy(y, model.labels_) for what, model in fits.items()}
            record(table="known", data=name, seed=seed, **scores)


TABLES = {"compare": compare, "number": number, "soft": soft, "new": new, "known": known}


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
