"""Measure what answers about pairs of rows add to a fit without the number of clusters.

    FIEDLER_DATA=... python benchmarks/quality_questions.py [--seeds 1] [--jobs 2] [--batch 1]

A simulated user answers the questions of ``ManifoldClustering.questions`` by one of the reference partitions of the
sets of quality_count.py, with 0 % and 10 % wrong answers at random; rows of noise belong to nothing. The table has the
mean adjusted Rand index with that partition, over the references of a set, the seeds of fits, and five users who are
wrong at random, after some numbers of answers. Halves of the sets are the even and the odd ones by name: the rate of
errors and the prior were settled on the even half. Records are appended to out/questions.jsonl.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from measure import markdown_table
from quality_count import load_sets, score

import fiedler
from fiedler.core.arrays import to_numpy

RECORDS = Path("out") / "questions.jsonl"
ANSWERS = (0, 1, 2, 3, 5, 10, 20)
WRONG_SHARES = {0.0: 1, 0.1: 5}  # with the number of users


def simulate(model, y, wrong_share, batch, rng):
    """Return the scores after some numbers of answers, of which a share is wrong."""
    scores, n_answers = [], 0
    for target in ANSWERS:
        while n_answers < target:
            pairs = model.questions(min(batch, target - n_answers))
            first, second = y[pairs[:, 0]], y[pairs[:, 1]]
            same = (first == second) & (first > 0)
            model = model.answer(pairs, same ^ (rng.uniform(size=len(pairs)) < wrong_share))
            n_answers += len(pairs)
        scores.append(score(to_numpy(model.labels_), [y]))
    return scores


def measure_set(task, batch):
    warnings.simplefilter("ignore")
    (group, name), seed = task
    X, references = load_sets()[group, name]
    model = fiedler.ManifoldClustering(random_state=seed).fit(X)
    record = {"group": group, "name": name, "seed": seed, "batch": batch}
    for wrong_share, n_users in WRONG_SHARES.items():
        rng = np.random.RandomState([seed, crc32(name.encode())])
        runs = [simulate(model, y, wrong_share, batch, rng) for y in references for _ in range(n_users)]
        record[f"{wrong_share:.0%}"] = np.mean(runs, axis=0).tolist()
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1, help="questions at a time")
    options = parser.parse_args()
    tasks = [(key, seed) for seed in range(options.seeds) for key in load_sets()]
    RECORDS.parent.mkdir(exist_ok=True)
    records = []
    with ProcessPoolExecutor(options.jobs) as pool, RECORDS.open("a", encoding="utf-8") as file:
        for record in pool.map(partial(measure_set, batch=options.batch), tasks):
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
    table = []
    for group in ("suite", "own"):
        names = sorted({row["name"] for row in records if row["group"] == group})
        for half, kept in (("all", names), ("even", names[::2]), ("odd", names[1::2])):
            rows = [row for row in records if row["group"] == group and row["name"] in kept]
            for wrong_share in WRONG_SHARES:
                means = np.mean([row[f"{wrong_share:.0%}"] for row in rows], axis=0)
                columns = {str(count): f"{mean:.3f}" for count, mean in zip(ANSWERS, means)}
                table.append({"sets": group, "half": half, "wrong answers": f"{wrong_share:.0%}"} | columns)
    print(markdown_table(table))


if __name__ == "__main__":
    main()
