"""Compare ManifoldClustering.update with a fresh fit: data sets in random order, 80 % and four times 5 % of the rows.

    FIEDLER_DATA=... python benchmarks/quality_update.py [--data usps digits] [--orders 5] [--efforts default]

The adjusted Rand index of the updated model with a fit on all rows is compared with what can be expected: that of
`predict` after the fit on 80 %, and that of fits on all rows in this and in another order. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np
from measure import OUT, markdown_table
from quality_manifold import load_rows

from fiedler import ManifoldClustering
from fiedler.metrics import adjusted_rand_index

SHARES = np.array([0.8, 0.85, 0.9, 0.95])


def timed(call):
    """Return the result of a call and its CPU time."""
    started = time.process_time()
    result = call()
    return result, time.process_time() - started


def evaluate(X, y, seed, effort):
    """Return the figures of one order of the rows."""
    order = np.random.RandomState(seed).permutation(X.shape[0])
    X, y, k = X[order], y[order], len(np.unique(y))
    fit = lambda rows: ManifoldClustering(k, effort=effort, random_state=0).fit(rows)  # noqa: E731
    first, *others = np.split(np.arange(X.shape[0]), (SHARES * X.shape[0]).astype(int))
    fresh, fit_seconds = timed(lambda: fit(X))
    backwards = fit(X[::-1])
    model = fit(X[first])
    start, old = model.view_, X.shape[0] - len(first)
    predicted = np.concatenate([model.labels_, model.predict(X[-old:])])
    updates = [timed(lambda rows=rows: model.update(X[rows])) for rows in others]
    return {
        "order": seed,
        "effort": effort,
        "ARI update": adjusted_rand_index(model.labels_, fresh.labels_),
        "ARI predict": adjusted_rand_index(predicted, fresh.labels_),
        "ARI other order": adjusted_rand_index(backwards.labels_[::-1], fresh.labels_),
        "classes, update": adjusted_rand_index(y, model.labels_),
        "classes, fresh": adjusted_rand_index(y, fresh.labels_),
        "view": start,
        "moved": [len(result.moved) for result, _ in updates],
        "new clusters": sum(len(result.new_clusters) for result, _ in updates),
        "fit s": fit_seconds,
        "update s": float(np.mean([seconds for _, seconds in updates])),
    }


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["usps"])
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--efforts", nargs="+", default=["default"])
    options = parser.parse_args()
    table = []
    for name in options.data:
        X, y = load_rows(name)
        for effort in options.efforts:
            for seed in range(options.orders):
                table.append({"data": name} | evaluate(X, y, seed, effort))
                print(table[-1], flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "update.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    print(markdown_table(table))


if __name__ == "__main__":
    main()
