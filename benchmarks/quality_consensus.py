"""Measure ManifoldClustering's choice by consensus: against effort='fast', and against its own best candidate.

    FIEDLER_DATA=... python benchmarks/quality_consensus.py [--data ...] [--seeds 5] [--group suite]

With the number of classes given, on the sets of quality_manifold.py ("sets") and of the benchmark suite of Gagolewski
(suite_v1.npz, rows as they are; "suite"). Where a set has several references, the best one counts. The *regret* is the
adjusted Rand index of the best candidate minus that of the result; it is known where all rows are compared. Halves are
those on which the rule was settled and reported.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from measure import OUT, markdown_table
from quality_manifold import DATA, load_rows
from quality_views import load_suite
from sklearn.metrics import normalized_mutual_info_score

from fiedler import ManifoldClustering
from fiedler.metrics import adjusted_rand_index, calibration_error, clustering_accuracy

EFFORTS = ("fast", "default")


def evaluate(X, y, effort, seed):
    """Return the figures of one fit; rows with y = 0 have no class."""
    known, started = y > 0, time.process_time()
    model = ManifoldClustering(len(np.unique(y[known])), effort=effort, random_state=seed).fit(X)
    seconds, labels, Q = time.process_time() - started, model.labels_[known], model.memberships_[known]
    competing = [one for one in model._state.candidates if one.family != "spectral" and len(one.labels) == len(y)]
    candidates = [adjusted_rand_index(y[known], one.labels[known]) for one in competing]
    ari = adjusted_rand_index(y[known], labels)
    return {
        "effort": effort,
        "seed": seed,
        "ARI": ari,
        "AC": 100 * clustering_accuracy(y[known], labels),
        "NMI": 100 * normalized_mutual_info_score(y[known], labels),
        "calibration error": calibration_error(y[known], Q),
        "regret": max(candidates) - ari if candidates else None,
        "consensus": model.consensus_,
        "view": model.view_,
        "CPU s": seconds,
    }


def sets(names):
    """Yield group, half, name, rows and references of every set."""
    for i, (name, X, references) in enumerate(load_suite()):
        yield "suite", "second half" if i % 2 else "first half", name, X, references
    for i, name in enumerate(names):
        X, y = load_rows(name)
        yield "sets", "second half" if i % 2 else "first half", name, X, [y + 1]


def mean_rows(table, keys):
    """Return the mean figures of the rows of the table that have the same values of ``keys``."""
    figures = ("ARI", "AC", "NMI", "calibration error", "regret", "CPU s")
    groups = {}
    for row in table:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for group, rows in groups.items():
        values = {name: [row[name] for row in rows if row[name] is not None] for name in figures}
        yield dict(zip(keys, group)) | {name: float(np.mean(each)) if each else None for name, each in values.items()}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=sorted(DATA))
    parser.add_argument("--group", choices=["suite", "sets"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--efforts", nargs="+", default=EFFORTS)
    options = parser.parse_args()
    table = []
    for group, half, name, X, references in sets(options.data):
        if options.group not in (None, group):
            continue
        for effort in options.efforts:
            for seed in range(options.seeds):
                fits = [evaluate(X, y, effort, seed) for y in references]
                table.append({"group": group, "half": half, "data": name} | max(fits, key=lambda fit: fit["ARI"]))
        print(*mean_rows([row for row in table if row["data"] == name], ("data", "effort")), sep="\n", flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "consensus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    for keys in (("data", "effort"), ("group", "half", "effort"), ("group", "effort")):
        print(markdown_table(list(mean_rows(table, keys))))


if __name__ == "__main__":
    main()
