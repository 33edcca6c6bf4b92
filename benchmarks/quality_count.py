"""Measure the number of clusters that is found when none is given.

    python benchmarks/quality_count.py planted [--draws 300] [--first 8600] [--jobs 2]
    python benchmarks/quality_count.py single [--draws 200] [--first 8600] [--jobs 2]
    FIEDLER_DATA=... python benchmarks/quality_count.py sets [--seeds 5] [--jobs 2]
    FIEDLER_DATA=... python benchmarks/quality_count.py peers [--jobs 2]
    FIEDLER_DATA=... python benchmarks/quality_count.py same [--jobs 2]
    python benchmarks/quality_count.py cost

========  ============================================================================================================
planted   situations with a known number of clusters: 2 to 60 Gaussians (1 to 200 dimensions, 100 to 10,000 rows, 8 to
          1,000 standard deviations apart, sizes and standard deviations to 100:1, noise columns, outliers), rings,
          moons and Swiss rolls; the share in which K is within 10 %
single    rows without clusters: Gaussians of any covariance, balls, cubes, t, exponential and lognormal columns, arcs,
          rings, Swiss rolls, lines; the share in which exactly one cluster is found
sets      mean adjusted Rand index of the default fit without and with K, on the benchmark suite of Gagolewski
          (suite_v1.npz, rows as they are) and on the sets of quality_manifold.py, and in how many sets all seeds agree
peers     the same for Leiden (resolution 1, 15 neighbours), HDBSCAN, EVoC and PLSCAN with their defaults, noise as its
          own cluster and without it (pip install leidenalg evoc fast-plscan; those that are missing are left out)
same      in how many sets the number stays if rows are permuted, rotated, multiplied by 1,000 or in single precision,
          and in how many two seeds agree, with K given, with an adjusted Rand index of at least .95
cost      CPU seconds of a fit without K, relative to the same fit with K
========  ============================================================================================================

Thresholds were settled on draws before 5200 and on all sets, the exponents of the score on the first half of the sets;
draws from NEVER_SEEN_FROM on were not looked at. Halves are every other set by name, from the first and the second one
on. Records are appended to out/count.jsonl.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measure import markdown_table
from quality_manifold import REAL, load_rows
from quality_views import load_suite
from sklearn.datasets import make_blobs

import fiedler
from fiedler.core.arrays import to_numpy
from fiedler.metrics import adjusted_rand_index

RECORDS = Path("out") / "count.jsonl"
OWN = (*REAL, "iris", "wine", "breast_cancer")
NEVER_SEEN_FROM = 8800  # draws before were looked at

# ------------------------------------------------------------------------------------------------ drawn situations


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_centers(rng, k, d, distances):
    """Draw centres, one after the other near an earlier one, at least the given distances apart."""
    centers = [np.zeros(d)]
    for i in range(1, k):
        radius = 1.0
        while len(centers) == i:
            direction = rng.standard_normal(d)
            step = direction / np.linalg.norm(direction) * distances[:i, i].min() * rng.uniform(1, 1.5) * radius
            center = centers[rng.randint(i)] + step
            if all(np.linalg.norm(center - centers[j]) >= distances[j, i] for j in range(i)):
                centers.append(center)
            radius *= 1.05
    return np.array(centers)


def draw_gaussians(rng):
    """Draw Gaussians of a random number, size, spread, shape and distance, noise columns and outliers."""
    k, d = round(log_uniform(rng, 2, 60)), int(rng.choice([1, 2, 2, 3, 5, 10, 20, 50, 100, 200]))
    n = int(log_uniform(rng, max(100, 20 * k), 10_000)) if 20 * k < 10_000 else 10_000
    distance = log_uniform(rng, 8, 1000)
    sizes, scales = np.ones(k), np.ones(k)
    if rng.uniform() < 0.5:
        sizes = np.exp(rng.uniform(0, np.log(log_uniform(rng, 1, 100)), k))
    if rng.uniform() < 0.4:
        scales = np.exp(rng.uniform(0, np.log(log_uniform(rng, 1, 100)), k))
    sizes = np.maximum(12, np.round(n * sizes / sizes.sum()).astype(int))
    n_noise = int(rng.randint(1, d + 1)) if rng.uniform() < 0.25 else 0
    outliers = float(rng.choice([0.005, 0.01, 0.02])) if rng.uniform() < 0.2 and d > 1 else 0.0
    is_stretched = rng.uniform() < 0.3 and d > 1
    parts = []
    for center, size, scale in zip(draw_centers(rng, k, d, distance * np.maximum.outer(scales, scales)), sizes, scales):
        rows = rng.standard_normal((size, d))
        if is_stretched:
            axes = np.exp(rng.uniform(np.log(0.1), 0, d))
            rows = rows * (axes / axes.max()) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        parts.append(center + scale * rows)
    X = np.concatenate(parts)
    low, high = X.min(axis=0), X.max(axis=0)
    far = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (int(outliers * len(X)), d))
    X = np.concatenate([X, far])
    X = np.hstack([X, np.median(scales) * rng.standard_normal((len(X), n_noise))])
    what = f"{k} Gaussians, d={d}+{n_noise}, n={len(X)}, {distance:.0f} sd, sizes {sizes.max() / sizes.min():.0f}:1"
    return X, k, f"{what}, sd {scales.max() / scales.min():.0f}:1, outliers {outliers:.1%}, stretched {is_stretched}"


def draw_ring(rng, n, radius, width, center=(0, 0)):
    angle, r = rng.uniform(0, 2 * np.pi, n), radius + width * rng.standard_normal(n)
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1) + center


def draw_moons(rng, n, width, center=(0, 0)):
    a, b = rng.uniform(0, np.pi, n // 2), rng.uniform(0, np.pi, n - n // 2)
    X = np.r_[np.c_[np.cos(a), np.sin(a)], np.c_[1 - np.cos(b), 0.5 - np.sin(b)]]
    return X + width * rng.standard_normal((n, 2)) + center


def draw_roll(rng, n, width):
    t = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n))
    rows = np.stack([t * np.cos(t), 10 * rng.uniform(size=n), t * np.sin(t)], axis=1)
    return rows + width * rng.standard_normal((n, 3))


def draw_curves(rng):
    """Draw rings inside each other or apart, moons, Swiss rolls, or a mixture of shapes."""
    n = int(log_uniform(rng, 300, 10_000))
    kind = rng.choice(["nested rings", "moons", "rolls", "rings", "pairs of moons", "shapes"])
    if kind == "nested rings":
        k, width = rng.randint(2, 5), rng.uniform(0.02, 0.08)
        X = [draw_ring(rng, max(80, n * (r + 1) * 2 // (k * (k + 1))), r + 1, width) for r in range(k)]
    elif kind == "moons":
        k, X = 2, [draw_moons(rng, n, rng.uniform(0.02, 0.08))]
    elif kind == "rolls":
        shifts = np.array([[0, 0, 0], [0, rng.uniform(16, 40), 0]])
        k, X = 2, [draw_roll(rng, max(n // 2, 500), 0.05) + shift for shift in shifts]
    elif kind == "rings":
        k = rng.randint(2, 7)
        X = [draw_ring(rng, max(60, n // k), 1, 0.05, (4 * i, 0)) for i in range(k)]
    elif kind == "pairs of moons":
        pairs = rng.randint(2, 4)
        k, X = 2 * pairs, [draw_moons(rng, max(150, n // pairs), 0.05, (0, 4 * i)) for i in range(pairs)]
    else:
        k, m = 4, max(60, n // 4)
        X = [draw_ring(rng, m, 1, 0.05), 0.1 * rng.standard_normal((m, 2)), 0.3 * rng.standard_normal((m, 2)) + [6, 0]]
        X.append(np.stack([rng.uniform(-2, 2, m), 4 + 0.05 * rng.standard_normal(m)], axis=1))
    X = np.concatenate(X)
    return X, int(k), f"{kind}, K={k}, n={len(X)}"


def draw_planted(seed):
    """Draw a situation with clusters: the rows in random order, the number of clusters, and what it is."""
    rng = np.random.RandomState(seed)
    X, k, what = draw_curves(rng) if rng.uniform() < 0.15 else draw_gaussians(rng)
    return X[rng.permutation(len(X))], k, what


SINGLE = ("Gaussian", "ball", "cube", "t", "exponential", "lognormal", "arc", "ring", "roll", "line")


def draw_single(seed):
    """Draw rows without clusters."""
    rng, kind = np.random.RandomState(10_000 + seed), SINGLE[seed % len(SINGLE)]
    n, d = int(log_uniform(rng, 100, 10_000)), int(rng.choice([1, 2, 3, 5, 10, 20, 50, 100, 200]))
    normal = rng.standard_normal((n, d))
    if kind == "Gaussian":
        axes = np.exp(rng.uniform(-1, 1, d) * rng.choice([0, 1, 3]))
        X = normal * axes @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    elif kind == "ball":
        X = normal / np.linalg.norm(normal, axis=1, keepdims=True) * rng.uniform(size=(n, 1)) ** (1 / d)
    elif kind == "cube":
        X = rng.uniform(size=(n, d))
    elif kind == "t":
        X = rng.standard_t(rng.choice([3, 5, 10]), size=(n, d))
    elif kind == "exponential":
        X = rng.exponential(size=(n, d))
    elif kind == "lognormal":
        X = np.exp(rng.choice([0.5, 1.0]) * normal)
    elif kind == "arc":
        angle = rng.uniform(0, rng.uniform(1, 5), n)
        X = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.uniform(0, 0.1) * rng.standard_normal((n, 2))
    elif kind == "ring":
        X = draw_ring(rng, n, 1, rng.uniform(0, 0.15))
    elif kind == "roll":
        X = draw_roll(rng, max(n, 600), rng.uniform(0, 0.3))
    else:
        d = max(2, d)
        direction = rng.standard_normal(d)
        along = rng.uniform(size=(n, 1)) * direction / np.linalg.norm(direction)
        X = along + rng.uniform(0, 0.02) * rng.standard_normal((n, d))
    return X, 1, f"{kind}, n={len(X)}, d={X.shape[1]}"


def count(task):
    draw, seed = task
    X, k, what = draw(seed)
    choice = fiedler.choose_n_clusters(X)
    return {"table": draw.__name__, "seed": seed, "what": what, "k": k, "chosen": choice.n_clusters, "by": choice.by}


def measure_draws(options, draw, is_right):
    tasks = [(draw, seed) for seed in range(options.first, options.first + options.draws)]
    records = run(options, count, tasks)
    wrong = [row for row in records if not is_right(row)]
    for row in wrong:
        print(f"{row['what']}: {row['chosen']} instead of {row['k']}, by {row['by']} (draw {row['seed']})")
    print(f"right: {1 - len(wrong) / len(records):.3f} of {len(records)}")


# ------------------------------------------------------------------------------------------------------ data sets


@cache
def load_sets():
    """Return rows and reference partitions (0 for noise) by group and name."""
    suite = {("suite", name): (X, references) for name, X, references in load_suite()}
    own = {("own", name): load_rows(name) for name in OWN}
    return suite | {key: (X, [y + 1]) for key, (X, y) in own.items()}


def score(labels, references):
    """Return the highest adjusted Rand index over the references."""
    return max(adjusted_rand_index(y[y > 0], labels[y > 0]) for y in references)


def fit_set(task):
    (group, name), seed = task
    X, references = load_sets()[group, name]
    record = {"table": "sets", "group": group, "name": name, "seed": seed}
    start = time.process_time()
    model = fiedler.cluster(X, random_state=seed).model
    record |= {"seconds": time.process_time() - start, "chosen": model.n_clusters_}
    record["ari"], given = score(to_numpy(model.labels_), references), []
    start = time.process_time()
    for y in references:
        k = len(np.unique(y[y > 0]))
        given.append(score(to_numpy(fiedler.cluster(X, k, random_state=seed).labels), [y]))
    record |= {"given": max(given), "seconds_given": (time.process_time() - start) / len(given)}
    return record | {"classes": [len(np.unique(y[y > 0])) for y in references]}


def measure_sets(options):
    tasks = [(key, seed) for key in load_sets() for seed in range(options.seeds)]
    records = run(options, fit_set, tasks)
    table = []
    for group in ("suite", "own"):
        rows = sorted((row for row in records if row["group"] == group), key=lambda row: row["name"])
        names = sorted({row["name"] for row in rows})
        halves = [np.mean([row["ari"] for row in rows if row["name"] in names[part::2]]) for part in (0, 1)]
        numbers = [{row["chosen"] for row in rows if row["name"] == name} for name in names]
        unknown, given = (np.mean([row[column] for row in rows]) for column in ("ari", "given"))
        seconds = np.median([row["seconds"] / row["seconds_given"] for row in rows])
        table.append(
            {"sets": group, "K unknown": unknown, "halves": f"{halves[0]:.3f} {halves[1]:.3f}", "K given": given}
            | {"ratio": unknown / given, "same K": np.mean([len(one) == 1 for one in numbers]), "CPU ratio": seconds}
        )
        for row in rows:
            print(f"{group} {row['name']}: {row['chosen']} of {row['classes']}, {row['ari']:.3f} of {row['given']:.3f}")
    print(markdown_table(table))


# ------------------------------------------------------------------------------------------------------- invariance


def change_rows(X):
    """Return the rows permuted, rotated, in another unit and in single precision."""
    rng, d = np.random.RandomState(0), X.shape[1]
    changed = {"permuted": X[rng.permutation(X.shape[0])], "scaled": 1000.0 * X, "float32": X.astype(np.float32)}
    if not sp.issparse(X):
        changed["rotated"] = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return changed


def compare_changes(key):
    X, references = load_sets()[key]
    numbers = {name: fiedler.choose_n_clusters(rows).n_clusters for name, rows in change_rows(X).items()}
    classes = len(np.unique(references[0][references[0] > 0]))
    first, second = (to_numpy(fiedler.cluster(X, classes, random_state=seed).labels) for seed in (0, 1))
    own = {"table": "same", "group": key[0], "name": key[1], "chosen": fiedler.choose_n_clusters(X).n_clusters}
    return own | {"numbers": numbers, "two seeds": adjusted_rand_index(first, second)}


def measure_same(options):
    records = run(options, compare_changes, list(load_sets()))
    for row in records:
        if set(row["numbers"].values()) != {row["chosen"]} or row["two seeds"] < 0.95:
            print(row["group"], row["name"], row["chosen"], row["numbers"], f"two seeds {row['two seeds']:.3f}")
    table = []
    for name in ("permuted", "rotated", "scaled", "float32"):
        differences = np.array([abs(row["numbers"][name] - row["chosen"]) for row in records if name in row["numbers"]])
        table.append({"rows": name, "same K": np.mean(differences == 0), "within one": np.mean(differences <= 1)})
    print(markdown_table(table))
    print(f"two seeds agree: {np.mean([row['two seeds'] >= 0.95 for row in records]):.3f}")


# ---------------------------------------------------------------------------------------------------------- peers


def leiden(X):
    import igraph
    import leidenalg

    W = sp.coo_array(fiedler.KNNGraph(min(15, X.shape[0] - 1)).build(X).weights)
    graph = igraph.Graph(n=X.shape[0], edges=list(zip(W.row.tolist(), W.col.tolist()))).simplify()
    return np.array(leidenalg.find_partition(graph, leidenalg.RBConfigurationVertexPartition, seed=0).membership)


def hdbscan(X):
    from sklearn.cluster import HDBSCAN

    return HDBSCAN().fit_predict(X)


def evoc(X):
    from evoc import EVoC

    return EVoC().fit_predict(np.ascontiguousarray(X, dtype=np.float32))


def plscan(X):
    from fast_plscan import PLSCAN

    return PLSCAN().fit_predict(np.ascontiguousarray(X, dtype=np.float32))


PEERS = {"Leiden": leiden, "HDBSCAN": hdbscan, "EVoC": evoc, "PLSCAN": plscan}


def fit_peers(task):
    group, name = task
    X, references = load_sets()[group, name]
    record = {"table": "peers", "group": group, "name": name}
    for peer, method in PEERS.items():
        try:
            labels = np.asarray(method(X))
        except Exception as error:  # documents, and packages that are not installed
            record[peer] = record[f"{peer}, noise left out"] = np.nan
            record[f"{peer} failed"] = repr(error)[:80]
            continue
        record[peer] = score(labels + 1, references)
        known = [np.where(labels >= 0, y, 0) for y in references]
        record[f"{peer}, noise left out"] = score(labels + 1, known) if all(y.any() for y in known) else 0.0
    return record


def measure_peers(options):
    records = run(options, fit_peers, list(load_sets()))
    columns = [name for peer in PEERS for name in (peer, f"{peer}, noise left out")]
    for group in ("suite", "own"):
        rows = [row for row in records if row["group"] == group]
        print(group, {name: round(float(np.nanmean([row[name] for row in rows])), 3) for name in columns})
    print({f"{row['name']}, {key}": value for row in records for key, value in row.items() if "failed" in key})


# ----------------------------------------------------------------------------------------------------------- cost


def measure_cost(options):
    from sklearn.datasets import load_digits

    rows = {"digits": (load_digits().data, 10)}
    for n, d in ((1_000, 5), (10_000, 10), (200_000, 50)):
        rows[f"{n} x {d}, 10 blobs"] = make_blobs(n, d, centers=10, cluster_std=2.5, random_state=0)[0], 10
    rows["100,000 rows, 5 distinct"] = np.repeat(np.random.RandomState(0).normal(size=(5, 3)), 20_000, axis=0), 5
    table = []
    for name, (X, k) in rows.items():
        seconds = []
        for n_clusters in (k, "auto"):
            start = time.process_time()
            chosen = fiedler.cluster(X, n_clusters, random_state=0).model.n_clusters_
            seconds.append(time.process_time() - start)
        table.append(
            {"rows": name, "K given (s)": seconds[0], "unknown (s)": seconds[1], "ratio": seconds[1] / seconds[0]}
        )
        table[-1]["chosen"] = chosen
        print(table[-1], flush=True)
    print(markdown_table(table))


def run(options, measure, tasks):
    """Return the records of all tasks, measured in several processes, and append them to the file."""
    warnings.simplefilter("ignore")
    RECORDS.parent.mkdir(exist_ok=True)
    records = []
    with ProcessPoolExecutor(options.jobs) as pool, RECORDS.open("a", encoding="utf-8") as file:
        for record in pool.map(measure, tasks):
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["planted", "single", "sets", "same", "peers", "cost"])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--first", type=int, default=NEVER_SEEN_FROM)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.table == "planted":
        measure_draws(options, draw_planted, lambda row: abs(row["chosen"] - row["k"]) <= 0.1 * row["k"])
    elif options.table == "single":
        measure_draws(options, draw_single, lambda row: row["chosen"] == 1)
    else:
        {"sets": measure_sets, "same": measure_same, "peers": measure_peers, "cost": measure_cost}[options.table](
            options
        )


if __name__ == "__main__":
    main()
