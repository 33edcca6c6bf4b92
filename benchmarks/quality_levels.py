"""Measure the levels of a fitted model: the p-values of splits, and the partitions at other levels.

    python benchmarks/quality_levels.py single [--draws 200] [--first 6000]
    python benchmarks/quality_levels.py planted [--draws 100] [--first 6000]
    FIEDLER_DATA=... python benchmarks/quality_levels.py partitions

==========  ==========================================================================================================
single      rows without clusters, those of quality_count.py, fitted with two clusters: how often the p-value of this
            split, and the smallest one of all levels, is below 0.05
planted     separated groups, those of quality_count.py of up to 12 groups, fitted with their number: how often the
            p-value of a split is below 0.05, of true ones (up to this number) and of others (finer levels)
partitions  mean adjusted Rand index on the benchmark suite of Gagolewski (sets of up to 2,000 rows) at the true number
            K, of a fit with K and of the level K of fits with K / 2 and with 2 K clusters
==========  ==========================================================================================================

Fits with ``effort='fast'``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
from collections import defaultdict

import numpy as np
from measure import markdown_table
from quality_count import draw_planted, draw_single, score
from quality_views import load_suite

from fiedler import ManifoldClustering

BELOW = 0.05
MAX_GROUPS, MAX_ROWS = 12, 2000


def fit(X, n_clusters):
    return ManifoldClustering(n_clusters, effort="fast", random_state=0).fit(X)


def measure_single(options):
    found = defaultdict(list)
    for seed in range(options.first, options.first + options.draws):
        X, *_, what = draw_single(seed)
        p_values = np.array(fit(X, 2).levels_["p_value"])
        for name in ("all", what.split(",")[0]):
            found[name].append((p_values[0] < BELOW, p_values.min() < BELOW, (p_values < BELOW).mean()))
    return [
        {
            "rows": name,
            "draws": len(values),
            **dict(zip(("first split", "any split", "splits"), np.mean(values, axis=0))),
        }
        for name, values in found.items()
    ]


def measure_planted(options):
    found = {"true": [], "finer": []}
    for seed in range(options.first, options.first + options.draws):
        X, k, _ = draw_planted(seed)
        if k > MAX_GROUPS:
            continue
        p_values = np.array(fit(X, k).levels_["p_value"]) < BELOW
        found["true"].extend(p_values[: k - 1])
        found["finer"].extend(p_values[k - 1 :])
    return [{"levels": kind, "splits": len(are), "below": float(np.mean(are))} for kind, are in found.items()]


def measure_partitions(options):
    found = defaultdict(list)
    for _, X, references in load_suite():
        if len(X) > MAX_ROWS:
            continue
        scores = defaultdict(list)
        for y in references:
            k = len(np.unique(y[y > 0]))
            half, double = fit(X, max(1, k // 2)), fit(X, 2 * k)
            if k > max(half.levels_["n_clusters"], default=1):
                continue
            models = {"K": fit(X, k), "K / 2": half.at(k), "2 K": double.at(k)}
            for name, model in models.items():
                scores[name].append(score(model.labels_, [y]))
        for name, values in scores.items():
            found[name].append(max(values))
    return [{"fitted with": name, "sets": len(values), "ARI": float(np.mean(values))} for name, values in found.items()]


MEASURES = {"single": measure_single, "planted": measure_planted, "partitions": measure_partitions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=6000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(markdown_table(MEASURES[options.measure](options)))


if __name__ == "__main__":
    main()
